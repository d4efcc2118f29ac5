/* SPDX-License-Identifier: MIT */
/*
 * A policy of store.cuh: D, of any type, is the sums times alpha, or divided by the scales of bfloat16 operands.
 *
 * Sums are staged as they are, and become elements of D on their way from shared memory: so this code is a short loop.
 * (Straight code for all sums of a thread, which no warp has run before, takes as long to come from L2 as to run.)
 */
#pragma once
#include "finish.cuh"
#include "sums.cuh"
#include "stage.cuh"

/* COUNT neighbours of a row of D, one or four. */
template <type T, int COUNT> static DEVICE void store_neighbours(char *p, const float *x, bool when)
{
    if constexpr (COUNT == 1) {
        if (when) st_global_word(p, __float_as_uint(x[0]));
    } else if constexpr (T == F32) {
        st_global(p, words_of(x), when);
    } else {
        st_global(p, pair_of<T>(x[0], x[1]), pair_of<T>(x[2], x[3]), when);
    }
}

/* Stores the warp's rows from row0 on, EACH neighbours a lane: four, which are aligned, or words of any rows. `d` is
 * row 0 at the warp's first column, ldd in bytes, m rows of `width` columns. A lane has EACH columns in each PIECE. */
template <type T, int EACH, class V>
static DEVICE void store_sums(const typename V::sums &sums, const warp<V> &w, u32 row0, char *d, u64 ldd, u32 m,
                              int width, const scaling &by)
{
    constexpr int PIECES = V::WN > 32 * EACH ? V::WN / (32 * EACH) : 1, COLUMNS = EACH * PIECES;
    using L = lanes<V, FLOATS, COLUMNS>;
    constexpr int PIECE = L::ACROSS * EACH, ALL = L::ROUNDS * PIECES;
    constexpr int TOGETHER = EACH == 1 ? 8 : ALL < 4 ? ALL : 4;
    static_assert(ALL % TOGETHER == 0 && TOGETHER % PIECES == 0, "a lane's rows are not taken evenly");
    const L lane(w);
    const u32 column = w.lane % L::ACROSS * EACH;
    u32 row = row0 + lane.down;
    char *at = d + row * ldd + column * bytes_of(T);
    lane.by_turns(sums, [&](int) {
        u32 from = lane.buffer + lane.down * L::PITCH + column * L::SUM_BYTES;
#pragma unroll 1
        for (int i0 = 0; i0 < ALL; i0 += TOGETHER) {
            float x[TOGETHER * EACH];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const u32 its = from + i / PIECES * L::STEP * L::PITCH + i % PIECES * PIECE * L::SUM_BYTES;
                b128 v = {};
                if constexpr (EACH == 1) ld_shared_word(v.x, its);
                else ld_shared(v, its);
                const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int e = 0; e < EACH; ++e) x[i * EACH + e] = __uint_as_float(words[e]);
            }
            finish(x, by);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const int piece = i % PIECES * PIECE;
                store_neighbours<T, EACH>(at + piece * bytes_of(T), &x[i * EACH],
                                          row < m && (int)column + piece + EACH <= width);
                if (i % PIECES == PIECES - 1) at += L::STEP * ldd, row += L::STEP;
            }
            from += TOGETHER / PIECES * L::STEP * L::PITCH;
        }
    });
}

/* The same of floats in aligned pairs, from registers: a warp's store is a sector of each of eight rows. That keeps the
 * load/store unit busy for less time than to bring them to shared memory, to read them and to store whole lines. False,
 * and nothing is done, where D is another. */
template <class V> static DEVICE bool store_pairs(const arguments &args, typename V::sums &acc)
{
    if (V::INDIRECT || !(args.ways & HGEMM_WAY_PAIRS)) return false;
    if (!add_parts<V>(args, acc)) return true;
    const block<V> at(args);
    const warp<V> w;
    const u32 row = at.m0 + w.m + w.lane / 4, column = at.n0 + w.n + w.lane % 4 * 2;
    const scaling by(args.alpha);
    char *to = (char *)args.d + (batch_index() * args.stride_d + row * (u64)args.ldd + column) * 4;
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) {
#pragma unroll
        for (int j = 0; j < V::NT; ++j) {
            const float *const x = &acc[i / 2][j][i % 2 * 2];
            st_global(to + j * 32, __float_as_uint(finish(x[0], by)), __float_as_uint(finish(x[1], by)),
                      row + i * 8 < args.m && column + j * 8 < args.n);
        }
        to += args.ldd * 32;
    }
    return true;
}

/* Divides all sums of a thread by the scales of A and B, for the other policies. */
template <class V> static DEVICE void unscale(typename V::sums &acc, const scaling &by)
{
#pragma unroll
    for (int i = 0; i < V::OWN_MT; ++i)
#pragma unroll
        for (int j = 0; j < V::NT; ++j) finish(acc[i][j], by);
}

/* Reports sums that are not finite. An infinity in A or B makes a row or a column of D so: it is enough to look at the
 * first column and the first row of the warp's part, which has so many rows and columns of D. */
template <class V>
static DEVICE void report_overflow(const arguments &args, const typename V::sums &acc, u32 lane, int rows, int columns)
{
    unsigned *const overflow = scales_of(args).overflow;
    if (!overflow) return;
    /* From those of the lane's first sum on. */
    const int rows_below = lane % 4 == 0 && columns > 0 ? rows - (int)(lane / 4) : 0;
    const int columns_across = lane < 4 && rows > 0 ? columns - (int)lane * 2 : 0;
    float zero = 0; /* stays so, or becomes NaN */
#pragma unroll
    for (int i = 0; i < V::OWN_MT * 2; ++i)
        if (i * 8 < rows_below) zero = __fmaf_rn(acc[i / 2][0][i % 2 * 2], 0, zero);
#pragma unroll
    for (int j = 0; j < V::NT * 2; ++j)
        if (j / 2 * 8 + j % 2 < columns_across) zero = __fmaf_rn(acc[0][j / 2][j % 2], 0, zero);
    if (zero != 0) st_global_common(overflow, 1);
}
