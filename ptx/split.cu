/* SPDX-License-Identifier: MIT */
/*
 * split: the planes of halves that A and B in single precision become, in the workspace, and their scales (args.h): as many
 *        as the kernel's accuracy needs.
 *
 * Idea      Floats are split once (floats.cuh), not by every block that multiplies them, and read once: a block has
 *           HGEMM_SPLIT_X rows of A, or columns of B, and HGEMM_SPLIT_K k's of them, few enough to lie in its registers while
 *           the largest and the smallest element of each row or column are found, which give its scale for these k's.
 * Grid      Where memory runs along k, a warp has whole rows, a lane every 32nd unit of 4 elements. Else 4 lanes have a unit
 *           each of a row of HGEMM_SPLIT_X columns, and threads are below each other.
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
    DEVICE void add_lanes(u32 across) { most = max(most, from_across(most, across)), least = min(least, from_across(least, across)); }
    DEVICE void leave(u32 i) const { max_shared(most_at(i), most), min_shared(least_at(i), least); }
};

/* The scale of a row or column, 0 where none holds its elements. */
template <int LEAST_LOG> static DEVICE float scale_for(u32 i)
{
    u32 most, least;
    ld_shared_word(most, most_at(i)), ld_shared_word(least, least_at(i));
    if (most == 0) return 1;
    const int top = exponent_of(most), bottom = exponent_of(least + 1), log = min(14 - top, HGEMM_MOST_SCALE_LOG);
    const bool fits = most < 0x7f800000 && (bottom + log >= LEAST_LOG || log == HGEMM_MOST_SCALE_LOG);
    return fits ? power_of_two(log) : 0;
}

template <bool ALONG_K, accuracy LEVEL> static DEVICE void split(const split_operand_t &x)
{
    constexpr u32 PARTS = LEVEL == TO_11_BITS ? 1 : 2;
    constexpr u32 WARPS = HGEMM_SPLIT_THREADS / 32, LANES = HGEMM_SPLIT_X / 4; /* LANES: units in a row of columns */
    constexpr int ROWS = ALONG_K ? HGEMM_SPLIT_X / WARPS : 1;                /* of a thread, each with a scale; or */
    constexpr int SCALES = ALONG_K ? ROWS : 4;                               /* a scale for each element of a unit */
    constexpr u32 STEP = ALONG_K ? 128 : HGEMM_SPLIT_THREADS / LANES;        /* k's from unit to unit of a row */
    constexpr int UNITS = HGEMM_SPLIT_K / STEP;                              /* of a row */
    const u32 thread = thread_index(), tiles_x = ((u32)x.x_size + x.tile_x - 1) / x.tile_x;
    const u32 pitch_x = tiles_x * x.tile_x, blocks_x = pitch_x / HGEMM_SPLIT_X, panel = block_index() / blocks_x;
    const u32 x0 = (block_index() - panel * blocks_x) * HGEMM_SPLIT_X, k0 = panel * HGEMM_SPLIT_K;
    const u32 k_tiles = ((u32)x.k + HGEMM_PLANE_K - 1) / HGEMM_PLANE_K, k_end = k_tiles * HGEMM_PLANE_K;
    if (k0 >= k_end) return; /* the other operand has more blocks */
    const u32 own = ALONG_K ? thread / 32 * ROWS : thread % LANES * 4; /* x, of the block's, of its first element */
    const u32 first_k = k0 + (ALONG_K ? thread % 32 * 4 : thread / LANES);
    const reader<ALONG_K> from(x);
    b128 v[ROWS][UNITS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < UNITS; ++i) v[r][i] = from.read(x0 + own + r, first_k + i * STEP);
    if (thread < HGEMM_SPLIT_X) st_shared_word(most_at(thread), 0), st_shared_word(least_at(thread), 0xffffffff);
    barrier();
    magnitudes seen[SCALES];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < UNITS; ++i) {
            const u32 bits[4] = {v[r][i].x, v[r][i].y, v[r][i].z, v[r][i].w};
#pragma unroll
            for (int e = 0; e < 4; ++e) seen[ALONG_K ? r : e].add(bits[e]);
        }
#pragma unroll
    for (int e = 0; e < SCALES; ++e) {
#pragma unroll
        for (u32 across = ALONG_K ? 1 : LANES; across < 32; across *= 2) seen[e].add_lanes(across);
        if (thread % 32 < (ALONG_K ? 1 : LANES)) seen[e].leave(own + e);
    }
    barrier();
    if (thread < HGEMM_SPLIT_X) {
        const float scale = scale_for<split_of<LEVEL>::LEAST_LOG>(thread);
        st_shared_word(power_at(thread), __float_as_uint(scale));
        st_global_word((char *)(x.scale + batch_index() * x.scale_stride + panel * pitch_x + x0 + thread), __float_as_uint(scale));
    }
    barrier();
    float scale[SCALES];
#pragma unroll
    for (int e = 0; e < SCALES; ++e) {
        u32 bits;
        ld_shared_word(bits, power_at(own + e));
        scale[e] = __uint_as_float(bits);
    }
    const u32 plane = x.tile_x * HGEMM_PLANE_K * HALF_BYTES, tile = x0 / x.tile_x, in_tile = x0 - tile * x.tile_x;
    char *const to = (char *)x.to + batch_index() * x.to_stride + (u64)tile * k_tiles * (PARTS * plane);
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < UNITS; ++i) {
            const u32 k = first_k + i * STEP, in_k = k % HGEMM_PLANE_K, at_x = in_tile + own + r;
            u32 *const bits[4] = {&v[r][i].x, &v[r][i].y, &v[r][i].z, &v[r][i].w};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (scale[ALONG_K ? r : e] == 0) *bits[e] = 0; /* which FP32 units multiply */
            u32 high[2], low[2];
            split_check unused;
            split_of<LEVEL>::pair(high[0], low[0], v[r][i].x, v[r][i].y, scale[ALONG_K ? r : 0], scale[ALONG_K ? r : 1], unused);
            split_of<LEVEL>::pair(high[1], low[1], v[r][i].z, v[r][i].w, scale[ALONG_K ? r : 2], scale[ALONG_K ? r : 3], unused);
            /* shared.cuh, swizzled: rows of 64 bytes, or of 128 and more */
            const u32 row = ALONG_K ? at_x : in_k, column = ALONG_K ? in_k : at_x;
            const u32 pitch = (ALONG_K ? HGEMM_PLANE_K : x.tile_x) * HALF_BYTES, phase = ALONG_K ? row / 2 % 4 : row % 8;
            char *const p = to + (u64)(k / HGEMM_PLANE_K) * (PARTS * plane) + row * pitch + ((column / 8 ^ phase) << 4) + column / 4 % 2 * 8;
            st_global(p, high[0], high[1], k < k_end);
            if (PARTS > 1) st_global(p + plane, low[0], low[1], k < k_end);
        }
}

template <accuracy LEVEL> static DEVICE void split(const split_operand_t &x)
{
    if (x.is_along_k) split<true, LEVEL>(x);
    else split<false, LEVEL>(x);
}

extern "C" __global__ void __launch_bounds__(HGEMM_SPLIT_THREADS) HGEMM_VARIANT(const split_args_t args)
{
    const split_operand_t x = operand_index() == 0 ? args.operand[0] : args.operand[1];
    if (batch_index() >= x.matrices) return;
    if (x.accuracy == TO_F32) split<TO_F32>(x);
    else if (x.accuracy == TO_16_BITS) split<TO_16_BITS>(x);
    else split<TO_11_BITS>(x);
}
