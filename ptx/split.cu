/* SPDX-License-Identifier: MIT */
/*
 * split: the planes of halves that A and B in single precision become, in the workspace, and their scales (args.h): as many
 *        as the kernel's accuracy needs.
 *
 * Idea      Floats are split once (floats.cuh), not by every block that multiplies them, and read once: a block has
 *           HGEMM_SPLIT_X rows of A, or columns of B, and HGEMM_SPLIT_K k's of them, few enough to lie in its registers while
 *           the largest and the smallest element of each row or column are found, which give its scale for these k's.
 * Grid      Where memory runs along k, 8 lanes have 128 bytes of a row, and a warp 4 rows. Else 4 lanes have a unit of 4 elements
 *           each of a row of HGEMM_SPLIT_X columns, and a thread 8 rows, which become a chunk along k for each of its columns.
 */
#include "convert.cuh"
#include "floats.cuh"
#include "../src/table/args.h"

/* The operand, a unit of 4 elements at a time; what is not there is 0. */
template <bool ALONG_K> struct reader {
    const split_operand_t &x;
    const char *from, *end; /* the whole matrix */
    u64 ld;

    DEVICE reader(const split_operand_t &operand) : x(operand)
    {
        from = (const char *)x.from + batch_index() * x.stride * 4;
        ld = x.ld * 4;
        end = from + (u64)((ALONG_K ? x.x_size : x.k) - 1) * ld + (ALONG_K ? x.k : x.x_size) * 4ull;
    }
    DEVICE b128 read(u32 at_x, u32 k) const
    {
        const u32 row = ALONG_K ? at_x : k, column = ALONG_K ? k : at_x;
        const u32 rows = ALONG_K ? x.x_size : x.k, columns = ALONG_K ? x.k : x.x_size;
        const char *const p = from + row * ld + column * 4ull;
        b128 v = {};
        if (x.is_aligned) ld_global(v, p, row < rows && column < columns);
        else v = extracted(p, row < rows && column < columns ? columns - column : 0);
        return v;
    }

private:
    /* A unit that begins in any word, of which `count` elements are there: from the two aligned ones that cover it. */
    DEVICE b128 extracted(const char *p, u32 count) const
    {
        const u32 shift = (u32)(u64)p / 4 % 4;
        b128 low = {}, high = {};
        load_inside(low, p - shift * 4, count > 0);
        load_inside(high, p - shift * 4 + 16, count > 0 && shift + count > 4);
        const u32 w[7] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z};
        u32 two[5], one[4];
#pragma unroll
        for (int i = 0; i < 5; ++i) two[i] = shift & 2 ? w[i + 2] : w[i];
#pragma unroll
        for (int i = 0; i < 4; ++i) one[i] = i < count ? (shift & 1 ? two[i + 1] : two[i]) : 0;
        return b128{one[0], one[1], one[2], one[3]};
    }
    /* 16 aligned bytes, as far as the matrix has them. */
    DEVICE void load_inside(b128 &v, const char *p, bool when) const
    {
        const bool is_inside = p >= from && p + 16 <= end;
        ld_global(v, p, when && is_inside);
        if (is_inside) return;
        ld_global_word(v.x, p, when && p >= from && p < end);
        ld_global_word(v.y, p + 4, when && p + 4 >= from && p + 4 < end);
        ld_global_word(v.z, p + 8, when && p + 8 >= from && p + 8 < end);
        ld_global_word(v.w, p + 12, when && p + 12 >= from && p + 12 < end);
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
    const bool fits = most < 0x7f800000 && bottom + log >= LEAST_LOG;
    return fits ? power_of_two(log) : 0;
}

/* The planes of a tile's part, `first` being where the halves of its first x and k are: chunks of 8 k's, first all x's of the
 * same k's. */
struct planes_at {
    char *first;
    u32 tile_x, parts;

    /* High parts of a row or column, from k on, to the end of a chunk. Low ones lie a plane beyond. */
    DEVICE char *high(u32 x, u32 k) const
    {
        const u32 k_tile = k / HGEMM_PLANE_K, in_k = k % HGEMM_PLANE_K;
        return first + (u64)k_tile * (parts * plane()) + (in_k / 8 * tile_x + x) * 16 + in_k % 8 * HALF_BYTES;
    }
    DEVICE u32 plane() const { return tile_x * HGEMM_PLANE_K * HALF_BYTES; }
};

/* Stores two neighbours' chunks, of which each of two lanes that are `across` has such ones, the first lane's `apart` before
 * the other's. So that they write 32 bytes in one place together, each takes the same of both. */
static DEVICE void store_chunks(char *to, u32 apart, u32 across, b128 even, b128 odd, bool when)
{
    const bool is_second = thread_index() & across;
    u32 own[4] = {even.x, even.y, even.z, even.w}, other[4] = {odd.x, odd.y, odd.z, odd.w};
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const u32 got = from_across(is_second ? own[c] : other[c], across);
        own[c] = is_second ? got : own[c], other[c] = is_second ? other[c] : got;
    }
    char *const p = is_second ? to - apart + 16 : to;
    st_global(p, b128{own[0], own[1], own[2], own[3]}, when);
    st_global(p + apart, b128{other[0], other[1], other[2], other[3]}, when);
}

template <bool ALONG_K, accuracy LEVEL> static DEVICE void split(const split_operand_t &x)
{
    using parts_of = split_of<LEVEL>;
    constexpr u32 PARTS = LEVEL == TO_11_BITS ? 1 : 2;
    constexpr u32 LANES = ALONG_K ? 8 : HGEMM_SPLIT_X / 4;               /* units side by side: of a line, or a row of x's */
    constexpr int UNITS = 8, SCALES = ALONG_K ? 1 : 4;                   /* of a thread */
    constexpr u32 STEP = ALONG_K ? LANES * 4 : 1;                        /* k's from a thread's unit to its next one */
    constexpr u32 FURTHER = HGEMM_SPLIT_X / 4;                           /* ALONG_K: warps that have other x's */
    static_assert(HGEMM_SPLIT_THREADS * UNITS * 4 == HGEMM_SPLIT_X * HGEMM_SPLIT_K, "threads do not share a block's elements");
    const u32 thread = thread_index(), tiles_x = ((u32)x.x_size + x.tile_x - 1) / x.tile_x;
    const u32 pitch_x = tiles_x * x.tile_x, blocks_x = pitch_x / HGEMM_SPLIT_X, panel = block_index() / blocks_x;
    const u32 x0 = (block_index() - panel * blocks_x) * HGEMM_SPLIT_X, k0 = panel * HGEMM_SPLIT_K;
    const u32 k_tiles = ((u32)x.k + HGEMM_PLANE_K - 1) / HGEMM_PLANE_K, k_end = k_tiles * HGEMM_PLANE_K;
    if (k0 >= k_end) return; /* the other operand has more blocks */
    /* x, of the block's, and k of its first element */
    const u32 own = ALONG_K ? thread / 32 % FURTHER * 4 + thread % 32 / LANES : thread % LANES * 4;
    const u32 first_k = k0 + (ALONG_K ? thread / 32 / FURTHER * (UNITS * STEP) + thread % LANES * 4 : thread / LANES * UNITS);
    const reader<ALONG_K> from(x);
    u32 v[UNITS][4];
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        const b128 unit = from.read(x0 + own, first_k + i * STEP);
        v[i][0] = unit.x, v[i][1] = unit.y, v[i][2] = unit.z, v[i][3] = unit.w;
    }
    if (thread < HGEMM_SPLIT_X) st_shared_word(most_at(thread), 0), st_shared_word(least_at(thread), 0xffffffff);
    barrier();
    magnitudes seen[SCALES];
#pragma unroll
    for (int i = 0; i < UNITS; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) seen[e % SCALES].add(v[i][e]);
#pragma unroll
    for (int e = 0; e < SCALES; ++e) {
#pragma unroll
        for (u32 across = ALONG_K ? 1 : LANES; across < (ALONG_K ? LANES : 32); across *= 2) seen[e].add_lanes(across);
        if (ALONG_K ? thread % LANES == 0 : thread % 32 < LANES) seen[e].leave(own + e);
    }
    barrier();
    if (thread < HGEMM_SPLIT_X) {
        const float scale = scale_for<parts_of::LEAST_LOG>(thread);
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
#pragma unroll
        for (int i = 0; i < UNITS * 4; ++i)
            if (i % SCALES == e && scale[e] == 0) v[i / 4][i % 4] = 0; /* which FP32 units multiply */
    }
    const u32 tile = x0 / x.tile_x, in_tile = x0 - tile * x.tile_x + own;
    const planes_at to{(char *)x.to + batch_index() * x.to_stride + (u64)tile * k_end * (PARTS * x.tile_x * HALF_BYTES), (u32)x.tile_x, PARTS};
    split_check unused;
    if constexpr (ALONG_K) {
#pragma unroll
        for (int i = 0; i < UNITS; ++i) {
            const u32 k = first_k + i * STEP;
            u32 high[2], low[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) parts_of::pair(high[c], low[c], v[i][2 * c], v[i][2 * c + 1], scale[0], scale[0], unused);
            st_global(to.high(in_tile, k), high[0], high[1], k < k_end);
            if (PARTS > 1) st_global(to.high(in_tile, k) + to.plane(), low[0], low[1], k < k_end);
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            u32 high[2][4], low[2][4];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int c = i % 4, at = i / 4;
                parts_of::pair(high[at][c], low[at][c], v[2 * c][e + at], v[2 * c + 1][e + at], scale[e + at], scale[e + at], unused);
            }
            char *const p = to.high(in_tile + e, first_k);
            store_chunks(p, 4 * 16, 1, b128{high[0][0], high[0][1], high[0][2], high[0][3]}, b128{high[1][0], high[1][1], high[1][2], high[1][3]}, first_k < k_end);
            if (PARTS > 1)
                store_chunks(p + to.plane(), 4 * 16, 1, b128{low[0][0], low[0][1], low[0][2], low[0][3]}, b128{low[1][0], low[1][1], low[1][2], low[1][3]}, first_k < k_end);
        }
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
