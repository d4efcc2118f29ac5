/* SPDX-License-Identifier: MIT */
/* Of planes.cu: what no scale serves, rows, columns and tiles, which FP32 units multiply from the floats in memory. */
#pragma once
#include "tile.cuh"

/* A row's or column's scale; 0: it has none. */
static DEVICE float scale_at(const float *scales, u32 i)
{
    u32 bits = 0;
    ld_global_word(bits, (const char *)(scales + i), true);
    return __uint_as_float(bits);
}

/* Lines without scales, of a tile and HGEMM_SPLIT_K k's, up to which they are multiplied one by one. */
constexpr u32 MOST_LACKING = 8;

/* How many times HGEMM_SPLIT_K k's some of `k` k's are, which begin anywhere. */
static DEVICE u32 panels_of(u32 k0, u32 k) { return (k0 % HGEMM_SPLIT_K + k + HGEMM_SPLIT_K - 1) / HGEMM_SPLIT_K; }

/* A or B in memory, which FP32 units read: rows of op(A) or columns of op(B), from the first one and the first k of a block. */
struct float_lines {
    const char *first;
    u64 next, next_k; /* bytes to them */
    u32 last;         /* beyond it a line is that one */

    DEVICE void compute_in_place() { next = in_place(next), next_k = in_place(next_k); }
    DEVICE void load(u32 &v, u32 x, u32 k, bool when = true) const { ld_global_word(v, first + minimum(x, last) * next + k * next_k, when); }
};

template <class V> static DEVICE float_lines rows_of_a(const arguments &args, const block<V> &at)
{
    const u64 next = args.planes.a_rows * 4, next_k = args.planes.a_ks * 4;
    const char *const first = matrix_at<V>(args, args.a, args.stride_a, 4, batch_index());
    return float_lines{first + at.m0 * next + at.k0 * next_k, next, next_k, args.m - at.m0 - 1};
}
template <class V> static DEVICE float_lines columns_of_b(const arguments &args, const block<V> &at)
{
    const u64 next = args.planes.b_columns * 4, next_k = args.planes.b_ks * 4;
    const char *const first = matrix_at<V>(args, args.b, args.stride_b, 4, batch_index());
    return float_lines{first + at.n0 * next + at.k0 * next_k, next, next_k, args.n - at.n0 - 1};
}

template <class V> struct float_tile {
    const float *scales_a, *scales_b; /* of the block's tile, for the k's of a k-tile */
    u32 pitch_a, pitch_b;             /* to those of the next HGEMM_SPLIT_K k's */

    DEVICE float_tile(const arguments &args, const block<V> &at, u32 k_tile)
    {
        pitch_a = at.tile_rows * V::BM, pitch_b = at.tile_columns * V::BN;
        const u32 panel = k_tile / (HGEMM_SPLIT_K / V::BK);
        scales_a = args.planes.scale_a + batch_index() * args.planes.scale_stride_a + panel * pitch_a + at.m0;
        scales_b = args.planes.scale_b + batch_index() * args.planes.scale_stride_b + panel * pitch_b + at.n0;
    }

    /* The scale of line i, a row or, after those, a column, for the t-th HGEMM_SPLIT_K k's from here. */
    DEVICE float scale_of(u32 i, u32 t) const
    {
        return i < V::BM ? scale_at(scales_a, t * pitch_a + i) : scale_at(scales_b, t * pitch_b + i - V::BM);
    }

    /* How many scales are not there of so many times HGEMM_SPLIT_K k's of all lines. All threads of the block ask. */
    DEVICE u32 lacking(u32 panels) const
    {
        u32 own = 0, all = 0;
        for (u32 i = thread_index(); i < V::BM + V::BN; i += V::THREADS)
#pragma unroll 4
            for (u32 t = 0; t < panels; ++t) own += scale_of(i, t) == 0;
        const u32 most = panels * ((V::BM + V::BN + V::THREADS - 1) / V::THREADS);
        for (u32 bit = 0; most >> bit; ++bit) all += count_at_barrier(own >> bit & 1) << bit;
        return all;
    }

    /* Multiplies lines without a scale by FP32 units, for the k's from the begin'th to the end'th of the block's, which
     * have the scales that this has; adds the sums to those in shared memory. */
    static DEVICE void multiply_lines(const float_tile &tile, const arguments &args, const block<V> &at, u32 begin, u32 end)
    {
        const float_lines rows = rows_of_a(args, at), columns = columns_of_b(args, at);
        static_assert(V::THREADS % V::BM == 0 && V::THREADS % V::BN == 0, "a line has not as many threads as elements");
        constexpr u32 TOGETHER = V::spec::T4_ROW ? 4 : 16; /* k's that are loaded at one time */
        static_assert(V::BK % TOGETHER == 0, "sums of a k-tile end elsewhere");
        u32 of_kind[2] = {};
        barrier(); /* all have added to the sums of the k's before */
#pragma unroll 1
        for (u32 i = 0; i < V::BM + V::BN; ++i) {
            if (tile.scale_of(i, 0) != 0) continue; /* alike for all threads */
            const bool is_row = i < V::BM;
            const u32 side = is_row ? V::BN : V::BM, x = thread_index() % side;
            if ((is_row ? of_kind[0]++ : of_kind[1]++) % (V::THREADS / side) != thread_index() / side) continue; /* others' */
            const u32 row = is_row ? i : x, column = is_row ? x : i - V::BM;
            if (!is_row && tile.scale_of(row, 0) == 0) continue; /* with its row */
            float sum = 0, few = 0;
#pragma unroll 1
            for (u32 l = begin; l < end; l += TOGETHER) {
                u32 a[TOGETHER] = {}, b[TOGETHER] = {};
#pragma unroll
                for (u32 j = 0; j < TOGETHER; ++j) rows.load(a[j], row, l + j, l + j < end), columns.load(b[j], column, l + j, l + j < end);
#pragma unroll
                for (u32 j = 0; j < TOGETHER; ++j) few = __fmaf_rn(__uint_as_float(a[j]), __uint_as_float(b[j]), few);
                if (l % V::BK == V::BK - TOGETHER) sum = __fadd_rn(sum, few), few = 0;
            }
            u32 all;
            const u32 to = sum_at(row, column);
            ld_shared_word(all, to);
            st_shared_word(to, __float_as_uint(__fadd_rn(__uint_as_float(all), __fadd_rn(sum, few))));
        }
        barrier(); /* an element is one thread's above, and another's below */
    }

    /* Takes the sum of an element, in units of the scales, of what the loop has; of one product, `low` is `near`. */
    static DEVICE float take(float near, float &low)
    {
        float sum = near;
        if (V::spec::ACCURACY == TO_F32) sum = __fmaf_rn(low, 1.0f / (1 << LOW_LOG), near), low = 0;
        if (V::spec::ACCURACY == TO_16_BITS) sum = __fmul_rn(__fadd_rn(near, low), 64.0f / 65), low = 0;
        return sum;
    }

    /* Adds the sums of these k's to those in shared memory, in units of D, and leaves all in `near`. */
    DEVICE void join(typename V::sums &near, typename V::sums &low) const
    {
        const warp<V> w;
        int row[V::MT * 2], column[V::NT * 2]; /* logarithms of what to multiply by */
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) row[i] = -log2_of(scale_at(scales_a, w.m + i * 8 + w.lane / 4));
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) column[j] = -log2_of(scale_at(scales_b, w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2));
        int least_row = row[0], most_row = row[0], least_column = column[0], most_column = column[0];
#pragma unroll
        for (int i = 1; i < V::MT * 2; ++i) least_row = min(least_row, row[i]), most_row = max(most_row, row[i]);
#pragma unroll
        for (int j = 1; j < V::NT * 2; ++j) least_column = min(least_column, column[j]), most_column = max(most_column, column[j]);
        /* The factor may be no float, but its root is one. */
        const bool are_floats = all_lanes(least_row + least_column >= -126 && most_row + most_column <= 127);
#pragma unroll
        for (int i = 0; i < V::MT; ++i)
#pragma unroll
            for (int j = 0; j < V::NT; ++j) {
                b128 v;
                ld_shared(v, all_at(i * V::NT + j));
                float *const all[4] = {(float *)&v.x, (float *)&v.y, (float *)&v.z, (float *)&v.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int log = row[i * 2 + e / 2] + column[j * 2 + e % 2], half = are_floats ? 0 : log >> 1;
                    const float sum = take(near[i][j][e], low[i][j][e]);
                    near[i][j][e] = __fmaf_rn(are_floats ? sum : __fmul_rn(sum, power_of_two(half)), power_of_two(log - half), *all[e]);
                    *all[e] = near[i][j][e];
                }
                st_shared(all_at(i * V::NT + j), v);
            }
    }
    /* Where a thread keeps the sums of mma tile c of its warp's, beyond the stages. */
    static DEVICE u32 all_at(int c) { return shared_base() + V::MAIN_BYTES + (c * V::THREADS + thread_index()) * 16; }
    /* Where the sum of an element of the tile is there. */
    static DEVICE u32 sum_at(u32 row, u32 column)
    {
        static_assert(!V::IDLES, "a warp's place is not its index");
        const u32 m = row % V::WM, n = column % V::WN, c = m / 16 * V::NT + n / 8, e = m / 8 % 2 * 2 + n % 2;
        const u32 lane = m % 8 * 4 + n % 8 / 2, w = row / V::WM + column / V::WN * (V::BM / V::WM);
        return shared_base() + V::MAIN_BYTES + (c * V::THREADS + w * 32 + lane) * 16 + e * 4;
    }
    static DEVICE void clear()
    {
#pragma unroll
        for (int c = 0; c < V::MMAS; ++c) st_shared(all_at(c), b128{});
    }

    /* Adds sums to those in shared memory, in units of D both, and leaves all in `sums`. */
    static DEVICE void add(typename V::sums &sums)
    {
#pragma unroll
        for (int i = 0; i < V::MT; ++i)
#pragma unroll
            for (int j = 0; j < V::NT; ++j) {
                b128 v;
                ld_shared(v, all_at(i * V::NT + j));
                float *const all[4] = {(float *)&v.x, (float *)&v.y, (float *)&v.z, (float *)&v.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[i][j][e] = *all[e] = __fadd_rn(*all[e], sums[i][j][e]);
                st_shared(all_at(i * V::NT + j), v);
            }
    }

    /* The tile by FP32 units, of A and B themselves: a k-tile's k's at a time, of which some are loaded together. */
    static DEVICE void multiply_floats(typename V::sums &sums, const arguments &args, const warp<V> &w)
    {
        constexpr u32 TOGETHER = V::spec::T4_ROW || V::MMAS > 16 ? 1 : 4; /* as registers allow */
        static_assert(V::BK % TOGETHER == 0, "sums of a k-tile end elsewhere");
        const block<V> at(args);
        float_lines rows = rows_of_a(args, at), columns = columns_of_b(args, at);
        ::clear<V>(sums);
#pragma unroll 1
        for (u32 l = 0; l < at.k;) {
            u32 a[TOGETHER][V::MT * 2] = {}, b[TOGETHER][V::NT * 2] = {};
            rows.compute_in_place(), columns.compute_in_place(); /* or all addresses are computed before the loop, to lie in registers */
#pragma unroll
            for (u32 t = 0; t < TOGETHER; ++t) {
#pragma unroll
                for (int i = 0; i < V::MT * 2; ++i) rows.load(a[t][i], w.m + i * 8 + w.lane / 4, l + t, l + t < at.k);
#pragma unroll
                for (int j = 0; j < V::NT * 2; ++j) columns.load(b[t][j], w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2, l + t, l + t < at.k);
            }
#pragma unroll
            for (u32 t = 0; t < TOGETHER; ++t)
#pragma unroll
                for (int j = 0; j < V::NT * 2; ++j)
#pragma unroll
                    for (int i = 0; i < V::MT * 2; ++i) {
                        float &sum = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
                        sum = __fmaf_rn(__uint_as_float(a[t][i]), __uint_as_float(b[t][j]), sum);
                    }
            l += TOGETHER;
            if (l % V::BK != 0 && l < at.k) continue;
            add(sums);
            if (l < at.k) ::clear<V>(sums);
        }
    }
};
