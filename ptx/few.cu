/* SPDX-License-Identifier: MIT */
/*
 * few: A and B in single precision, and up to 16 rows, or columns, of D. Bytes bound it, not arithmetic.
 *
 * Idea      A long operand W is streamed once from global memory into registers and multiplied there, by FP32 units, with up
 *           to 16 columns (rows) of the other operand X. Where D is taller than wide, W is A and X is B; else W is B.
 * Tile      LONG x SHORT of D. A warp has 4 lines of W in each thread: where memory runs along k, 16 lines, of each of which 8
 *           lanes have units of 4 k's; where it runs along the lines, 64, of which 16 lanes have units of 4 lines, and 2 lanes
 *           share the k's. Warps divide the k's of a k-tile, and, if D has more than 8 columns, these.
 * X         A k-tile of X lies in shared memory, zero where there is none, and the next one comes meanwhile.
 * Sums      Of up to 512 k's, in a chain of 64 additions at most; these add up. Lanes add by shuffles, warps through shared
 *           memory, and blocks that share k (split-K) through the workspace: the last one to arrive adds all parts. The order
 *           is fixed, and so are the bits.
 * Limits    Operands of any alignment; of W, rows that are not aligned are loaded one float at a time. Not for operands by
 *           pointers or indices.
 */
#include "few_block.cuh"
#include "thin_output.cuh"

/* A k-tile of X, on its way to shared memory: T columns, or, if that is 8, up to 16. */
template <class V, int T> struct few_columns_ahead {
    static constexpr u32 COLUMNS = T == 8 ? V::SHORT : T;
    static constexpr int COUNT = T == 1 ? 1 : (int)COLUMNS * V::BK / V::THREADS;
    u32 x[COUNT];

    static DEVICE u32 column(u32 i) { return V::X_ALONG_K ? i / V::BK : i % COLUMNS; }
    static DEVICE u32 k(u32 i) { return V::X_ALONG_K ? i % V::BK : i / COLUMNS; }

    DEVICE void load(const few_block<V> &at, u32 k0)
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const u32 i = thread_index() + q * V::THREADS, c = column(i), l = k0 + k(i);
            x[q] = 0;
            ld_global_word(x[q], at.x.base + (V::X_ALONG_K ? c : l) * at.x.ld + (V::X_ALONG_K ? l : c) * 4ull, c < at.columns && l < at.k_end);
        }
    }
    DEVICE void store(u32 buffer) const
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const u32 i = thread_index() + q * V::THREADS;
            if (T > 1 || i < V::BK) st_shared_word(buffer + V::x_at(column(i), k(i)), x[q]);
        }
    }
};

/* A thread's units of W for a round: UNITS of 4 lines and one k each, or those of 4 k's and one line, for 4 lines. */
template <class V, int UNITS> struct few_lines {
    b128 v[UNITS];

    DEVICE void load(const few_block<V> &at, u32 k0, bool is_whole)
    {
        const int lines = (int)at.lines - (int)V::line(0);
        const u32 first = k0 + V::k_lane();
        const char *const p = at.w.base + (V::W_ALONG_K ? V::line(0) : first) * at.w.ld + (V::W_ALONG_K ? first : V::line(0)) * 4ull;
        const u64 ld = in_place(at.w.ld);
        const auto place = [&](int i) { return V::W_ALONG_K ? p + i % 4 * (4 * ld) + i / 4 * 128 : p + i * (2 * ld); };
#pragma unroll
        for (int i = 0; i < UNITS; ++i) v[i] = b128{};
        if (is_whole) {
#pragma unroll
            for (int i = 0; i < UNITS; ++i) ld_global(v[i], place(i), V::W_ALONG_K ? i % 4 * 4 < lines : 0 < lines);
        } else {
#pragma unroll
            for (int i = 0; i < UNITS; ++i) {
                const int ks = (int)(at.k_end - first) - (V::W_ALONG_K ? i / 4 * 32 : i * 2);
                const int count = V::W_ALONG_K ? i % 4 * 4 < lines ? ks : 0 : ks > 0 ? lines : 0;
                ld_global_word(v[i].x, place(i), count > 0), ld_global_word(v[i].y, place(i) + 4, count > 1);
                ld_global_word(v[i].z, place(i) + 8, count > 2), ld_global_word(v[i].w, place(i) + 12, count > 3);
            }
        }
    }
};

static DEVICE float few_value(const b128 &v, int e) { return __uint_as_float(e == 0 ? v.x : e == 1 ? v.y : e == 2 ? v.z : v.w); }

/* Multiplies a round's units by T columns, the first of which is at `x` in shared memory, as is the lane's first k. */
template <class V, int T, int UNITS> static DEVICE void multiply_few(float (&acc)[4][T], const few_lines<V, UNITS> &w, u32 x)
{
    if constexpr (V::W_ALONG_K) {
#pragma unroll
        for (int s = 0; s < UNITS / 4; ++s)
#pragma unroll
            for (int t = 0; t < T; ++t) {
                b128 y;
                ld_shared(y, x + V::x_at(t, s * 32));
#pragma unroll
                for (int q = 0; q < 4; ++q)
#pragma unroll
                    for (int e = 0; e < 4; ++e) acc[e][t] = __fmaf_rn(few_value(w.v[s * 4 + e], q), few_value(y, q), acc[e][t]);
            }
    } else {
#pragma unroll
        for (int i = 0; i < UNITS; ++i) {
            u32 y[T];
            if constexpr (T >= 4) {
#pragma unroll
                for (int t = 0; t < T; t += 4) {
                    b128 four;
                    ld_shared(four, x + V::x_at(t, i * 2));
                    y[t] = four.x, y[t + 1] = four.y, y[t + 2] = four.z, y[t + 3] = four.w;
                }
            } else {
#pragma unroll
                for (int t = 0; t < T; ++t) ld_shared_word(y[t], x + V::x_at(t, i * 2));
            }
#pragma unroll
            for (int t = 0; t < T; ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e) acc[e][t] = __fmaf_rn(few_value(w.v[i], e), __uint_as_float(y[t]), acc[e][t]);
        }
    }
}

/* Multiplies all columns, T at a time, and leaves the sums in shared memory. `groups` of warps have T columns each. */
template <class V, int T> static DEVICE void multiply(const few_block<V> &at, u32 groups)
{
    constexpr int UNITS = HGEMM_FEW_UNITS(V::W_ALONG_K, T);
    constexpr u32 NEAR_TILES = 512 / V::BK, ROUND = UNITS * V::LANES_K; /* k's of a warp in a round */
    const u32 group = V::slot() % groups, k_part = V::slot() / groups, rounds = HGEMM_FEW_ROUNDS(V::W_ALONG_K, T, groups, V::BK);
    float near[4][T] = {}, all[4][T] = {};
    const auto fold = [&] {
#pragma unroll
        for (int i = 0; i < 4 * T; ++i) all[i / T][i % T] = __fadd_rn(all[i / T][i % T], near[i / T][i % T]), near[i / T][i % T] = 0;
    };
    few_columns_ahead<V, T> next;
    next.load(at, at.k0);
    next.store(shared_base());
    barrier();
    u32 tile = 0;
#pragma unroll 1
    for (u32 k = at.k0; k < at.k_end; k += V::BK, ++tile) {
        const u32 here = shared_base() + tile % 2 * V::X_BYTES, there = shared_base() + (tile + 1) % 2 * V::X_BYTES;
        const bool is_whole = at.is_aligned && k + V::BK <= at.k_end;
        if (tile > 0 && tile % NEAR_TILES == 0) fold();
        next.load(at, k + V::BK);
#pragma unroll 1
        for (u32 round = 0; round < rounds; ++round) {
            const u32 in_tile = (k_part * rounds + round) * ROUND;
            few_lines<V, UNITS> w;
            w.load(at, k + in_tile, is_whole);
            if (round == 0) next.store(there);
            multiply_few<V, T, UNITS>(near, w, here + V::x_at(group * T, in_tile + V::k_lane()));
        }
        barrier();
    }
    fold();
    float x[4 * T];
#pragma unroll
    for (int i = 0; i < 4 * T; ++i) x[i] = all[i / T][i % T];
    constexpr u32 APART = V::W_ALONG_K ? 1 : 16, ALIKE = (V::LANES_K - 1) & ~(4 * T - 1); /* lanes; of these, that have the same sum */
    const u32 index = add_lanes<4 * T, V::LANES_K, APART>(x), columns = T * groups;
    constexpr int OWN = 4 * T / V::LANES_K > 0 ? 4 * T / V::LANES_K : 1;
#pragma unroll
    for (int i = 0; i < OWN; ++i) /* parts follow each other */
        if (!(thread_index() & ALIKE * APART))
            st_shared_word(shared_base() + ((k_part * columns + group * T + (index + i) % T) * V::LONG + V::line((index + i) / T)) * 4,
                           __float_as_uint(x[i]));
    barrier();
    constexpr int SUMS = T == 8 ? V::LONG * V::SHORT / V::THREADS : (V::LONG * T + V::THREADS - 1) / V::THREADS;
    float sum[SUMS] = {};
    const u32 count = columns * V::LONG;
#pragma unroll 1
    for (u32 part = 0; part < V::SLOTS / groups; ++part)
#pragma unroll
        for (int q = 0; q < SUMS; ++q) {
            const u32 i = thread_index() + q * V::THREADS;
            u32 y = 0;
            if (i < count) ld_shared_word(y, shared_base() + (part * count + i) * 4);
            sum[q] += __uint_as_float(y);
        }
    barrier();
#pragma unroll
    for (int q = 0; q < SUMS; ++q) {
        const u32 i = thread_index() + q * V::THREADS, line = i % V::LONG, column = i / V::LONG;
        if (column < at.columns) st_shared_word(shared_base() + (V::LONG_IS_M ? line * at.pitch + column : i) * 4, __float_as_uint(sum[q]));
    }
}

template <class V> static DEVICE void few(const arguments &args)
{
    const few_block<V> at(args);
    if (at.columns == 1) multiply<V, 1>(at, 1);
    else if (at.columns == 2) multiply<V, 2>(at, 1);
    else if (at.columns <= 4) multiply<V, 4>(at, 1);
    else multiply<V, HGEMM_FEW_TOGETHER>(at, HGEMM_FEW_GROUPS(at.columns));
    finish(args, at);
}

#define HGEMM_ROW_TYPE(name) row_##name
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
using built = few_variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B>;
extern "C" __global__ void __launch_bounds__(built::THREADS, HGEMM_ROW_TYPE_OF(HGEMM_ROW)::NEWER_BLOCKS) HGEMM_VARIANT(const arguments args)
{
    few<built>(args);
}
