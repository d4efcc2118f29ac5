/* SPDX-License-Identifier: MIT */
/*
 * Products of floats by large warp tiles (single.cu): one set of sums in registers, and for warps of 64x32 a loop whose order is given
 * place by place.
 */
#pragma once

#include "float_pipeline.cuh"

/* Sums that leave the tensor cores after 16 k's, in units of the scales, for 1,024 k's; then they go to others, in local memory for
 * want of registers, for the more are added up one after the other, the less exact they are. And, once a scale has changed, in
 * units of D: an element goes there when the scale of its own row or column changes. */
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

    /* Adds what is in units of the scales to `all`: of elements whose scales are no longer what they were; else of all, to
     * whom `near` is given. The factor may be no float, but its root is one. */
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

    /* Where registers are short, `near` is in memory while a k-tile is settled (put_aside, take_back); at first it is zero. */
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

/* Two slices, 16 k's: fragments of a row of mma tiles, and of a column of them. */
struct row_fragments { u32 high[2][2], low[2][2]; };
struct column_fragments { u32 high[2], low[2]; };

/* Never, which the compiler cannot know: t is not that large. */
template <class T> static DEVICE bool is_past_all(u32 t, int number)
{
    u32 same;
    asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(t));
    return same == ~(u32)number;
}

/*
 * The loop of tiles whose warps have 64x32: a k-tile is one pair of slices. Two mma tiles at a time are multiplied, and what
 * came out for the two before is added up. All that is due meanwhile has a place, counted in threes of products for both.
 */
template <class T> static DEVICE void summed(const arguments &args)
{
    using V = typename T::variant;
    using A = typename V::A;
    using B = typename V::B;
    using pipeline = float_pipeline<V>;
    constexpr int MT = T::MT, NT = T::NT, TWOS = MT * NT / 2, PLACES = 2 * TWOS;
    constexpr int BARRIER = 12, LAG = 2; /* places: that of the barrier; between two steps of a pair's split */
    constexpr u32 TILES = short_sums<V>::TILES;
    static_assert(T::SLICES == 2 && NT == 4 && MT % 2 == 0, "the order of loads is for these");
    static_assert(T::ACCESS == X16 && 2 * T::SLOTS - 1 + 2 * LAG < BARRIER, "the k-tile is written after the barrier");
    const typename T::block first(args);
    if (!first.is_needed(args)) return;
    const u32 k_tiles = first.k_tiles;
    const typename T::warp w;
    pipeline pipe(first, w);
    typename short_sums<V>::memory memory;
    short_sums<V> sums(memory, args);
    row_fragments a[2]; /* of a row of mma tiles, and of the next one */
    column_fragments b[NT];
    float low[2][2][4] = {}, high[2][2][4] = {}; /* of two mma tiles, and of the two before: 2^11 times what they are; high ones */
    u32 fragment_a = shared_base() + A::square_offset(w.m, w.lane, 0, 0);
    u32 fragment_b = shared_base() + V::PARTS * A::BYTES + B::square_offset(w.n, w.lane, 0, 0);

    auto load_a = [&](int i, bool is_low) {
        row_fragments &x = a[i % 2];
        u32 (&r)[2][2] = is_low ? x.low : x.high;
        A::matrices(r[0][0], r[0][1], r[1][0], r[1][1], (fragment_a ^ A::square_xor(i)) + A::square_add(i) + is_low * A::BYTES);
    };
    auto load_b = [&](int j, bool is_low) {
        column_fragments &x = b[2 * j], &y = b[2 * j + 1];
        u32 (&r)[2] = is_low ? x.low : x.high, (&s)[2] = is_low ? y.low : y.high;
        B::matrices(r[0], s[0], r[1], s[1], (fragment_b ^ B::square_xor(j)) + B::square_add(j) + is_low * B::BYTES);
    };
    auto add = [&](int two) {
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float &sum = sums.near[two / (NT / 2)][two % (NT / 2) * 2 + q][e];
                sum = __fadd_rn(sum, __fmaf_rn(low[two % 2][q][e], 1.0f / (1 << LOW_LOG), high[two % 2][q][e]));
            }
    };

    const bool low_a = !(args.indirect & HGEMM_FLOATS_EXACT_A), low_b = !(args.indirect & HGEMM_FLOATS_EXACT_B);
    u32 t = 0, stage = 0;
    bool unsettled = k_tiles > 0;
#pragma unroll 1
    for (;;) {
        if (t > 0 && (unsettled || t % TILES == 0 || t == k_tiles)) {
            add(TWOS - 1);
#pragma unroll
            for (int q = 0; q < 2; ++q) {
#pragma unroll
                for (int e = 0; e < 4; ++e) low[(TWOS - 1) % 2][q][e] = high[(TWOS - 1) % 2][q][e] = 0;
            }
        }
        if (unsettled) {
            pipe.settle(sums, args, w, t, stage);
            load_a(0, true), load_a(0, false), load_b(0, false), load_b(0, true);
        }
        if (t >= k_tiles) break;
        if (t > 0 && t % TILES == 0) sums.to_far();
        const u32 there = T::STAGE - stage;
        typename pipeline::pairs pairs;
#pragma unroll
        for (int place = 0; place < PLACES; ++place) {
            const int two = place / 2, i = two / (NT / 2), j = two % (NT / 2);
            if (place == BARRIER) { /* the next k-tile is complete, and every warp has read the last rows of this one */
                unsettled = any_at_barrier(pipe.seen.failed(pipeline::split::LEAST_LOG)) && t + 1 < k_tiles;
                fragment_a += there - stage, fragment_b += there - stage;
            }
            if (i < MT - 1 && j == 0) load_a(i + 1, place % 2 == 0);
            if (place == BARRIER || place == BARRIER + 1) load_a(0, place == BARRIER);
            if (place == PLACES - 2) load_b(0, false), load_b(0, true);
            if (place == 0) load_b(1, false), load_b(1, true);
            const row_fragments &x = a[i % 2];
#pragma unroll
            for (int s = place % 2 * 3; s < place % 2 * 3 + 3; ++s)
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    const column_fragments &y = b[j * 2 + q];
                    float (&l)[4] = low[two % 2][q], (&h)[4] = high[two % 2][q];
                    if (s == 0) mma_m16n8k8_from_zero(l, x.low[0], y.high[0]);
                    if (s == 1) mma_m16n8k8(l, x.low[1], y.high[1], low_a);
                    if (s == 2) mma_m16n8k8_from_zero(h, x.high[0], y.high[0]);
                    if (s == 3) mma_m16n8k8(l, x.high[0], y.low[0], low_b);
                    if (s == 4) mma_m16n8k8(h, x.high[1], y.high[1]);
                    if (s == 5) mma_m16n8k8(l, x.high[1], y.low[1], low_b);
                }
            if (place % 2) add((two + TWOS - 1) % TWOS);
#pragma unroll
            for (int r = 0; r < 2 * T::SLOTS; ++r) {
                const int q = r / 2, p = r % 2;
                if (place == r) pipe.split_high(pairs, q, p);
                if (place == r && p) pipe.fetch(args, t + 2, q, t + 2 < k_tiles);
                if (place == r + LAG) pipe.split_rest(pairs, q, p, there);
                if (place == r + 2 * LAG) pipe.split_low(pairs, q, p, there);
            }
            /* A branch ends a block of instructions that ptxas orders. Else it puts additions off, for there are registers, and
             * then has the tensor cores wait. Where it goes sums are needed, or they would be added up at the end of the loop. */
            if (T::spec::T4_ROW && place % 2 == 0 && is_past_all<T>(t, place)) goto end;
        }
        pipe.seen = split_check();
        pipe.advance(args);
        ++t;
        stage = there;
    }
end:
    sums.template drain<true>(w);
    T::store(args, typename T::block(args), sums.near);
}
