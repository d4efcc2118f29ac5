/* SPDX-License-Identifier: MIT */
/*
 * A policy of store.cuh: D of the operands' own type in aligned rows, without C or a gate. Sums become elements where
 * they are, and are halves, or bfloat16, on their way: half the bytes of floats in shared memory.
 */
#pragma once
#include "store_rows.cuh"

/* Stores the rows of a turn, which are in shared memory as elements but for a bias of halves, and ReLU of halves. */
template <format F, class V>
static DEVICE void store_elements_of(const lanes<V, F> &lane, const output &o, int turn, const b128 &bias, bool relu)
{
    using L = lanes<V, F>;
    constexpr int TOGETHER = L::ROUNDS < 4 ? L::ROUNDS : 4;
    u32 row = o.row0 + turn * L::ROWS + lane.down;
    char *at = o.d + row * o.ldd + lane.across * HALF_BYTES;
#pragma unroll
    for (int q0 = 0; q0 < L::ROUNDS; q0 += TOGETHER) {
        b128 v[TOGETHER];
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q)
            v[q] = plus_bias(lane.template get<false>((q0 + q) * L::STEP + lane.down, lane.across), bias);
        if (relu)
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q)
                v[q] = b128{relu_of_pair(v[q].x), relu_of_pair(v[q].y), relu_of_pair(v[q].z), relu_of_pair(v[q].w)};
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q) {
            st_global(at, v[q], row < o.m && (int)lane.across + 8 <= o.width);
            at += L::STEP * o.ldd, row += L::STEP;
        }
    }
}

/* alpha * sum + bias of WIDE neighbouring mma tiles: of group `index`, LOW <= index < HIGH, of so many in rows of mma
 * tiles. A search, for registers have no index. */
template <class V, int WIDE, int LOW, int HIGH>
static DEVICE void values_of_mmas(float (&x)[WIDE * 4], const typename V::sums &sums, const float (&bias)[V::NT * 2],
                                  const scalars &by, int index)
{
    if constexpr (HIGH - LOW > 1) {
        constexpr int MIDDLE = (LOW + HIGH) / 2;
        if (index < MIDDLE) values_of_mmas<V, WIDE, LOW, MIDDLE>(x, sums, bias, by, index);
        else values_of_mmas<V, WIDE, MIDDLE, HIGH>(x, sums, bias, by, index);
    } else {
        auto biases = [&](float (&f)[WIDE * 4]) {
#pragma unroll
            for (int i = 0; i < WIDE * 4; ++i) f[i] = bias[(LOW * WIDE % V::NT + i / 4) * 2 + i % 2];
        };
#pragma unroll
        for (int i = 0; i < WIDE * 4; ++i)
            x[i] = sum_of_mma(sums[LOW * WIDE / V::NT][LOW * WIDE % V::NT + i / 4], i % 4);
        finish(x, by, values_if(true, biases), no_values(), NONE, no_values());
    }
}

/* With any activation: some mma tiles at a time, as registers allow, in a rolled loop. */
template <class V>
static DEVICE void store_activated(const typename V::sums &sums, const warp<V> &w, const output &o,
                                   const warp_bias<V> &bias, u32 how)
{
    using L = lanes<V, ROUNDED>;
    constexpr type T = FAST_D<V>;
    constexpr int ROOM = V::REGISTERS - V::ACC_WORDS, MOST = ROOM >= 120 ? 4 : 2;
    constexpr int WIDE = V::NT < MOST ? V::NT : MOST, PARTS = V::NT / WIDE; /* mma tiles; such parts of a row of them */
    float biases[V::NT * 2];
    bias.get_of_mmas(biases, w);
    const L lane(w);
#pragma unroll 1
    for (int turn = 0; turn < L::TURNS; ++turn) {
#pragma unroll 1
        for (int part = 0; part < L::GROUPS * PARTS; ++part) {
            float x[WIDE * 4];
            values_of_mmas<V, WIDE, 0, V::OWN_MT * PARTS>(x, sums, biases, o.by, turn * (L::GROUPS * PARTS) + part);
            activate(x, how);
            const u32 at = lane.to + part / PARTS * (16 * L::PITCH) + part % PARTS * (WIDE * 8 * L::SUM_BYTES);
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                const halves_of_mma v = {pair_of<T>(x[j * 4], x[j * 4 + 1]), pair_of<T>(x[j * 4 + 2], x[j * 4 + 3])};
                L::put_one(at, v, j);
            }
        }
        warp_barrier();
        store_elements_of(lane, o, turn, b128{}, false);
        warp_barrier();
    }
}

/* Of f32 sums, with no more than alpha, a bias and ReLU. All are rounded before the first is stored. */
template <class V>
static DEVICE void store_rounded(const typename V::sums &acc, const warp<V> &w, const output &o,
                                 const warp_bias<V> &bias, bool relu)
{
    constexpr type T = FAST_D<V>;
    halves_of_mma r[V::MT][V::NT];
    auto round = [&](auto value) { /* value(sum, k): of column k of the lane's */
#pragma unroll
        for (int i = 0; i < V::OWN_MT * V::NT * 2; ++i) {
            const int j = i / 2 % V::NT, e = i % 2 * 2;
            const float(&x)[4] = acc[i / 2 / V::NT][j];
            r[i / 2 / V::NT][j][i % 2] = pair_of<T>(value(x[e], j * 2), value(x[e + 1], j * 2 + 1));
        }
    };
    if (o.way & HGEMM_WAY_EXTRAS) {
        float b[V::NT * 2];
        bias.get_of_mmas(b, w);
        round([&](float sum, int k) {
            float x[1] = {sum};
            finish(x, o.by, values_if(true, [&](float (&f)[1]) { f[0] = b[k]; }), no_values(), NONE, no_values());
            return T == BF16 && relu ? each_relu(x[0]) : x[0];
        });
    } else { /* as few instructions as there can be: no warp has run them before */
        round([](float sum, int) { return sum; });
    }
    const lanes<V, ROUNDED> lane(w);
    lane.by_turns(r, [&](int turn) { store_elements_of(lane, o, turn, b128{}, relu && T == F16); });
}

template <class V>
static DEVICE void store_early(const typename V::sums &acc, const warp<V> &w, const output &o, const warp_bias<V> &bias,
                               u32 how)
{
    if constexpr (V::FUSES && V::ACTIVATES)
        if (o.way & HGEMM_WAY_SMOOTH) {
            store_activated<V>(acc, w, o, bias, how);
            return;
        }
    if constexpr (V::ACC == f32) {
        store_rounded<V>(acc, w, o, bias, how == RELU);
    } else {
        const lanes<V, HALVES> lane(w);
        const b128 biases = bias.get_words(lane.across);
        lane.by_turns(acc, [&](int turn) { store_elements_of(lane, o, turn, biases, how == RELU); });
    }
}
