/* SPDX-License-Identifier: MIT */
/* What tensor cores cannot multiply: floats that no power of two makes halves of. FP32 units take them from global memory. */
#pragma once
#include "tile.cuh"

/* Adds to a lane's sums the products of its rows and columns for one k, those for whose number it `is_due`. */
template <class V, class DUE> static DEVICE void multiply_floats_at(typename V::sums &sums, const block<V> &at, const warp<V> &w, u32 k, const DUE &is_due)
{
    panel a = at.a, b = at.b;
    a.ld = in_place(a.ld), b.ld = in_place(b.ld); /* or all addresses are computed before the loop, to lie in registers */
    u32 x[V::MT * 2], y;
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) V::A::load(x[i], a, w.m + i * 8 + w.lane / 4, k, true);
#pragma unroll
    for (int j = 0; j < V::NT * 2; ++j) {
        V::B::load(y, b, w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2, k, true);
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) {
            float &sum = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
            if (is_due(i, j)) sum = __fmaf_rn(__uint_as_float(x[i]), __uint_as_float(y), sum);
        }
    }
}
