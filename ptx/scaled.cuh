/* SPDX-License-Identifier: MIT */
/*
 * D of bfloat16 operands, where it is nothing but the sums: divided by both scales, and rounded to the type of D.
 *
 * Sums are staged as they are, and become elements of D on their way from shared memory: so this code is a short loop.
 * (Straight code for all sums of a thread, which no warp has run before, takes as long to come from L2 as to run.)
 */
#pragma once
#include "stage.cuh"
#include "typed.cuh"

/* What sums are multiplied by: a power of two; or two of them, both above 1 or both below, where their product may be
 * no float. */
struct scaling {
    float first, second;
    float zero; /* that is added: -0 leaves a zero as it is, +0 makes it +0 */

    DEVICE explicit scaling(float by) : first(by), second(1), zero(0) {}
    DEVICE explicit scaling(const arguments &args)
    {
        const int log_a = log2_of(power_of_two(scales_of(args).a, scales_of(args).a_pointer));
        const int log_ab = log_a + log2_of(power_of_two(scales_of(args).b, scales_of(args).b_pointer));
        const int part = log_ab < -126 || log_ab > 126 ? log_ab >> 1 : log_ab;
        first = power_of_two(-part), second = power_of_two(part - log_ab), zero = -0.0f;
    }

    DEVICE bool is_two() const { return second != 1; }

    template <int N> DEVICE void apply(float (&x)[N]) const
    {
#pragma unroll
        for (int e = 0; e < N; ++e) x[e] = __fmaf_rn(x[e], first, zero);
        if (is_two()) {
#pragma unroll
            for (int e = 0; e < N; ++e) x[e] = __fmul_rn(x[e], second);
        }
    }
};

/* The same of all sums of a thread. */
template <class V> static DEVICE void scale_sums(typename V::sums &acc, const scaling &by)
{
#pragma unroll
    for (int i = 0; i < V::OWN_MT; ++i)
#pragma unroll
        for (int j = 0; j < V::NT; ++j) by.apply(acc[i][j]);
}

/* Reports sums that are not finite. An infinity in A or B makes a row or a column of D so: it is enough to look at the
 * first column and the first row of the warp's part, which has so many rows and columns of D. */
template <class V>
static DEVICE void report_overflow(const arguments &args, const typename V::sums &acc, u32 lane, int rows, int columns)
{
    unsigned *const overflow = scales_of(args).overflow;
    if (!overflow) return;
    const int rows_below = lane % 4 == 0 && columns > 0 ? rows - (int)(lane / 4) : 0; /* from that of the lane's first sum on */
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

/* Four neighbours of a row of D, from sums. */
template <type T> static DEVICE void store_four(char *p, const float *x, bool when)
{
    if constexpr (T == F32) {
        const u32 words[4] = {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])};
        st_global(p, b128{words[0], words[1], words[2], words[3]}, when);
    } else {
        st_global(p, pair_of<T>(x[0], x[1]), pair_of<T>(x[2], x[3]), when);
    }
}

/* Whether D has rows of whole, aligned fours. `width` is in elements. */
static DEVICE bool has_fours(const void *d, u64 ldd, u32 width, u32 bytes)
{
    return (((u64)d | ldd | width * bytes) & (4 * bytes - 1)) == 0;
}

/* Stores the warp's rows of D, from row0 on: `d` is row 0 at the warp's first column, ldd in bytes, m rows. */
template <type T, class V>
static DEVICE void store_scaled(const typename V::sums &sums, const warp<V> &w, u32 row0, char *d, u64 ldd, u32 m,
                                int width, const scaling &by)
{
    using S = stage<V, FLOATS>;
    constexpr int ACROSS = V::WN / 4, STEP = 32 / ACROSS, ROUNDS = S::ROWS / STEP, TOGETHER = ROUNDS < 4 ? ROUNDS : 4;
    const u32 buffer = S::buffer(w.m, w.n), column = w.lane % ACROSS * 4, down = w.lane / ACROSS;
    const u32 to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const bool inside = (int)column + 4 <= width;
    u32 row = row0 + down;
    char *at = d + row * ldd + column * bytes_of(T);
#pragma unroll 1
    for (int turn = 0; turn < S::TURNS; ++turn) {
        S::put(to, sums, turn);
        warp_barrier();
        u32 from = buffer + down * S::PITCH + column * S::SUM_BYTES;
#pragma unroll 1
        for (int q0 = 0; q0 < ROUNDS; q0 += TOGETHER) {
            float x[TOGETHER * 4];
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                b128 v;
                ld_shared(v, from + q * STEP * S::PITCH);
                x[q * 4] = __uint_as_float(v.x), x[q * 4 + 1] = __uint_as_float(v.y);
                x[q * 4 + 2] = __uint_as_float(v.z), x[q * 4 + 3] = __uint_as_float(v.w);
            }
            by.apply(x);
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                store_four<T>(at, &x[q * 4], row < m && inside);
                at += STEP * ldd, row += STEP;
            }
            from += TOGETHER * STEP * S::PITCH;
        }
        warp_barrier();
    }
}
