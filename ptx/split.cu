/* SPDX-License-Identifier: MIT */
/*
 * split: the planes of halves that A and B in single precision become, in the workspace, and their scales (args.h).
 *
 * Idea      Floats are split once (floats.cuh), not by every block that multiplies them. A block reads its rows of A, or columns
 *           of B, twice: for the largest and the smallest element of each, which give its scale, and to split them. The second
 *           time most come from a cache.
 * Grid      Where memory runs along k, a warp has a row at a time, its lanes a unit of 4 elements each. Else 4 lanes have a
 *           unit each of a row of HGEMM_SPLIT_X columns, and threads are below each other.
 */
#include "convert.cuh"
#include "floats.cuh"
#include "../src/table/args.h"

/* The operand, a unit of 4 elements at a time; what is not there is 0. */
template <bool ALONG_K> struct reader {
    const split_operand_t &x;
    const char *from;
    u64 ld;

    DEVICE reader(const split_operand_t &operand) : x(operand)
    {
        from = (const char *)x.from + batch_index() * x.stride * 4;
        ld = x.ld * 4;
    }
    DEVICE b128 read(u32 at_x, u32 k) const
    {
        const u32 row = ALONG_K ? at_x : k, column = ALONG_K ? k : at_x;
        const u32 rows = ALONG_K ? x.x_size : x.k, columns = ALONG_K ? x.k : x.x_size;
        const char *const p = from + row * ld + column * 4ull;
        b128 v = {};
        if (x.is_aligned) {
            ld_global(v, p, row < rows && column < columns);
        } else {
            ld_global_word(v.x, p, row < rows && column < columns);
            ld_global_word(v.y, p + 4, row < rows && column + 1 < columns);
            ld_global_word(v.z, p + 8, row < rows && column + 2 < columns);
            ld_global_word(v.w, p + 12, row < rows && column + 3 < columns);
        }
        return v;
    }
};

/* Where a block keeps the largest and smallest magnitude of each of its rows or columns, from their bits, and its scale. */
static DEVICE u32 most_at(u32 i) { return shared_base() + i * 4; }
static DEVICE u32 least_at(u32 i) { return shared_base() + (HGEMM_SPLIT_X + i) * 4; }
static DEVICE u32 power_at(u32 i) { return shared_base() + (2 * HGEMM_SPLIT_X + i) * 4; }

/* The largest of magnitudes, and the smallest of those that are not 0. */
struct magnitudes {
    u32 most = 0, least = 0xffffffff; /* least: less 1, so that zero is the largest number */

    DEVICE void add(u32 bits)
    {
        const u32 x = bits & 0x7fffffff;
        most = max(most, x), least = min(least, x - 1);
    }
    DEVICE void leave(u32 i) const { max_shared(most_at(i), most), min_shared(least_at(i), least); }
};

/* The scale of a row or column, 0 where none holds its elements. */
static DEVICE float scale_for(u32 i)
{
    u32 most, least;
    ld_shared_word(most, most_at(i)), ld_shared_word(least, least_at(i));
    if (most == 0) return 1;
    const int top = exponent_of(most), bottom = exponent_of(least + 1), log = min(14 - top, HGEMM_MOST_SCALE_LOG);
    const bool fits = most < 0x7f800000 && (bottom + log >= -14 || log == HGEMM_MOST_SCALE_LOG);
    return fits ? power_of_two(log) : 0;
}

template <bool ALONG_K> static DEVICE void split(const split_operand_t &x)
{
    constexpr u32 WARPS = HGEMM_SPLIT_THREADS / 32, LANES = HGEMM_SPLIT_X / 4; /* LANES: units in a row */
    constexpr int TOGETHER = 4; /* units in flight */
    constexpr u32 STEP = ALONG_K ? 128 : HGEMM_SPLIT_THREADS / LANES; /* k's from unit to unit of a thread */
    constexpr u32 TURNS = ALONG_K ? HGEMM_SPLIT_X / WARPS : 1;
    const u32 thread = thread_index(), x0 = block_index() * HGEMM_SPLIT_X;
    const u32 k_tiles = ((u32)x.k + HGEMM_PLANE_K - 1) / HGEMM_PLANE_K, k_end = k_tiles * HGEMM_PLANE_K;
    const u32 first_k = ALONG_K ? thread % 32 * 4 : thread / LANES;
    const u32 tiles_x = ((u32)x.x_size + x.tile_x - 1) / x.tile_x;
    if (x0 >= tiles_x * x.tile_x) return; /* the other operand has more */
    const reader<ALONG_K> from(x);
    if (thread < HGEMM_SPLIT_X) st_shared_word(most_at(thread), 0), st_shared_word(least_at(thread), 0xffffffff);
    barrier();
#pragma unroll 1
    for (u32 turn = 0; turn < TURNS; ++turn) {
        const u32 own = ALONG_K ? thread / 32 * TURNS + turn : thread % LANES * 4; /* x of the first element of its units */
        magnitudes seen[ALONG_K ? 1 : 4];
#pragma unroll 1
        for (u32 k = first_k; k < k_end && x0 + own < x.x_size; k += TOGETHER * STEP) {
            b128 v[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) v[i] = from.read(x0 + own, k + i * STEP);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
                seen[0].add(v[i].x), seen[ALONG_K ? 0 : 1].add(v[i].y), seen[ALONG_K ? 0 : 2].add(v[i].z), seen[ALONG_K ? 0 : 3].add(v[i].w);
        }
#pragma unroll
        for (int e = 0; e < (ALONG_K ? 1 : 4); ++e) seen[e].leave(own + e);
    }
    barrier();
    if (thread < HGEMM_SPLIT_X) {
        const float scale = scale_for(thread);
        st_shared_word(power_at(thread), __float_as_uint(scale));
        if (x0 + thread < x.x_size) st_global_word((char *)(x.scale + batch_index() * x.scale_stride + x0 + thread), __float_as_uint(scale));
    }
    barrier();
    const u32 plane = x.tile_x * HGEMM_PLANE_K * HALF_BYTES, tile = x0 / x.tile_x, in_tile = x0 - tile * x.tile_x;
    char *const to = (char *)x.to + batch_index() * x.to_stride + (u64)tile * k_tiles * (2 * plane);
#pragma unroll 1
    for (u32 turn = 0; turn < TURNS; ++turn) {
        const u32 own = ALONG_K ? thread / 32 * TURNS + turn : thread % LANES * 4;
        float scale[ALONG_K ? 1 : 4];
#pragma unroll
        for (int e = 0; e < (ALONG_K ? 1 : 4); ++e) {
            u32 bits;
            ld_shared_word(bits, power_at(own + e));
            scale[e] = __uint_as_float(bits);
        }
#pragma unroll 1
        for (u32 k0 = first_k; k0 < k_end; k0 += TOGETHER * STEP) {
            b128 v[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) v[i] = from.read(x0 + own, k0 + i * STEP);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const u32 k = k0 + i * STEP, in_k = k % HGEMM_PLANE_K, at_x = in_tile + own;
                u32 high[2], low[2];
                split_check seen;
                split_pair(high[0], low[0], v[i].x, v[i].y, scale[0], scale[ALONG_K ? 0 : 1], seen);
                split_pair(high[1], low[1], v[i].z, v[i].w, scale[ALONG_K ? 0 : 2], scale[ALONG_K ? 0 : 3], seen);
                /* shared.cuh, swizzled: rows of 64 bytes, or of 128 and more */
                const u32 row = ALONG_K ? at_x : in_k, column = ALONG_K ? in_k : at_x;
                const u32 pitch = (ALONG_K ? HGEMM_PLANE_K : x.tile_x) * HALF_BYTES;
                const u32 phase = ALONG_K ? row / 2 % 4 : row % 8;
                char *const p = to + (u64)(k / HGEMM_PLANE_K) * (2 * plane) + row * pitch + ((column / 8 ^ phase) << 4) + column / 4 % 2 * 8;
                st_global(p, high[0], high[1], k < k_end);
                st_global(p + plane, low[0], low[1], k < k_end);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(HGEMM_SPLIT_THREADS) HGEMM_VARIANT(const split_args_t args)
{
    const split_operand_t x = operand_index() == 0 ? args.operand[0] : args.operand[1];
    if (batch_index() >= x.matrices) return;
    if (x.is_along_k) split<true>(x);
    else split<false>(x);
}
