/* SPDX-License-Identifier: MIT */
/* Sums of floats by large warp tiles (square_loop.cuh): one set in registers. */
#pragma once

#include "float_pipeline.cuh"

/* Sums that leave the tensor cores after 16 k's, in units of the scales, for 1,024 k's; then they go to others, in
 * local memory for want of registers, for the more are added up one after the other, the less exact they are. And,
 * once a scale has changed, in units of D: an element goes there when the scale of its own row or column changes. */
template <class V> struct short_sums {
    using pipe = float_pipeline<V>;
    static constexpr u32 TILES = 1024 / V::BK;
    typename V::sums near;
    float *const far, *const all, *const aside;
    bool has_far = false, has_all = false;

    /* In local memory; where it begins the compiler shall not know, or it takes some of it for registers. */
    struct memory { float of[3 * V::MMAS * 4 + 4]; };
    DEVICE short_sums(memory &to, const arguments &args) : far(to.of + ((u32)args.k >> 31)), all(far + V::MMAS * 4), aside(all + V::MMAS * 4)
    {
        clear<V>(near);
    }
    DEVICE float &of(int c) { return near[c / 4 / V::NT][c / 4 % V::NT][c % 4]; }
    DEVICE void to_far()
    {
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            float sum = of(c);
            if (has_far) sum = __fadd_rn(far[c], sum);
            far[c] = sum, of(c) = 0;
        }
        has_far = true;
    }

    static DEVICE int old_log(u32 side)
    {
        u32 bits;
        ld_shared_word(bits, shared_base() + pipe::LEAST + side * 4);
        return log2_of(__uint_as_float(bits));
    }

    /* Adds what is in units of the scales to `all`: of elements whose scales are no longer what they were; else of
     * all, to whom `near` is given. The factor may be no float, but its root is one. */
    template <bool AT_END> DEVICE void drain(const warp<V> &w)
    {
#pragma unroll
        for (int j = 0; j < V::NT * 2; ++j) {
            const u32 column_side = V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2;
            const int column = AT_END ? pipe::log_at(column_side) : old_log(column_side);
            const bool other_column = !AT_END && column != pipe::log_at(column_side);
#pragma unroll
            for (int i = 0; i < V::MT * 2; ++i) { /* read again each time, for want of registers */
                const u32 side = w.m + i * 8 + w.lane / 4;
                const int row = AT_END ? pipe::log_at(side) : old_log(side), log = -(row + column), half = log >> 1;
                const int e = i % 2 * 2 + j % 2, c = (i / 2 * V::NT + j / 2) * 4 + e;
                float &x = of(c), sum = 0;
                if (has_all) sum = all[c];
                if (AT_END || other_column || row != pipe::log_at(side)) {
                    if (has_far) x = __fadd_rn(far[c], x), far[c] = 0;
                    if (V::spec::ACCURACY == TO_16_BITS) x = __fmul_rn(x, 64.0f / 65);
                    sum = __fmaf_rn(__fmul_rn(x, power_of_two(half)), power_of_two(log - half), sum);
                    x = 0;
                }
                if (AT_END) x = sum;
                else all[c] = sum;
            }
        }
        has_all = true;
    }

    /* Where registers are short, `near` is in memory while a k-tile is settled (put_aside, take_back); at first it
     * is zero. */
    static constexpr bool YIELDS = V::MMAS >= 32;
    DEVICE void put_aside()
    {
        float *const to = in_place(aside);
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) to[c] = of(c);
    }
    DEVICE void take_back()
    {
        const float *const from = in_place(aside);
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) of(c) = from[c];
    }
    DEVICE void move(const warp<V> &w)
    {
        if (YIELDS) take_back();
        drain<false>(w);
        if (YIELDS) put_aside();
    }
    template <class F> DEVICE void multiply(const F &f)
    {
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            if (!YIELDS) aside[c] = of(c);
            of(c) = 0;
        }
        f(near);
#pragma unroll
        for (int c = 0; c < V::MMAS * 4; ++c) {
            float sum = of(c);
            if (has_all) sum = __fadd_rn(all[c], sum);
            all[c] = sum;
            if (!YIELDS) of(c) = aside[c];
        }
        has_all = true;
    }
};

/* What short_sums::drain does at the end, by fewer instructions: powers of a lane's rows and columns are halved once,
 * their products are found by adding exponents, and other sums are asked for once. No branch chooses between two ways:
 * the loop's order of instructions suffers. The exponent of a product is -127 at least: 0 as of a subnormal number, and
 * then D is 0. */
template <class V> static DEVICE void drain_at_end(short_sums<V> &sums, const warp<V> &w)
{
    using pipe = typename short_sums<V>::pipe;
    constexpr int ALL = V::MMAS * 4;
    u32 first[V::MT * 2], second[V::MT * 2];
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) {
        const int log = -pipe::log_at(w.m + i * 8 + w.lane / 4), half = log >> 1;
        first[i] = __float_as_uint(__fmul_rn(power_of_two(half), 64.0f / 65)),
        second[i] = __float_as_uint(power_of_two(log - half));
    }
    if (sums.has_far)
#pragma unroll
        for (int c = 0; c < ALL; ++c)
            sums.of(c) = __fadd_rn(sums.far[c], sums.of(c));
#pragma unroll
    for (int j = 0; j < V::NT * 2; ++j) {
        const int log = -pipe::log_at(V::BM + w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2), half = log >> 1;
        const u32 to_first = (u32)half << 23, to_second = (u32)(log - half) << 23;
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) {
            float &x = sums.of((i / 2 * V::NT + j / 2) * 4 + i % 2 * 2 + j % 2);
            x = __fmul_rn(__fmul_rn(x, __uint_as_float(first[i] + to_first)), __uint_as_float(second[i] + to_second));
        }
    }
    if (sums.has_all) /* a zero there may be due to others' scales, and -0 stays */
#pragma unroll
        for (int c = 0; c < ALL; ++c) {
            const float x = sums.of(c), other = sums.all[c];
            sums.of(c) = other == 0 ? x : __fadd_rn(x, other);
        }
}
