/* SPDX-License-Identifier: MIT */
/* What tensor cores cannot multiply: floats that no power of two makes halves of. FP32 units take them from global memory. */
#pragma once
#include "tile.cuh"

/* Elements of a panel, as an operand's k-tiles are loaded from it. */
template <class OPERAND> struct panel_floats {
    panel src;
    DEVICE explicit panel_floats(const panel &from) : src(from) {}
    DEVICE void compute_in_place() { src.ld = in_place(src.ld); }
    DEVICE void load(u32 &v, u32 x, u32 k) const { OPERAND::load(v, src, x, k, true); }
};

/* Adds to a lane's sums the products of its rows and columns for one k, those for whose number it `is_due`. */
template <class V, class ROWS, class COLUMNS, class DUE>
static DEVICE void multiply_floats_at(typename V::sums &sums, ROWS a, COLUMNS b, const warp<V> &w, u32 k, const DUE &is_due)
{
    a.compute_in_place(), b.compute_in_place(); /* or all addresses are computed before the loop, to lie in registers */
    u32 x[V::MT * 2], y;
#pragma unroll
    for (int i = 0; i < V::MT * 2; ++i) a.load(x[i], w.m + i * 8 + w.lane / 4, k);
#pragma unroll
    for (int j = 0; j < V::NT * 2; ++j) {
        b.load(y, w.n + j / 2 * 8 + w.lane % 4 * 2 + j % 2, k);
#pragma unroll
        for (int i = 0; i < V::MT * 2; ++i) {
            float &sum = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
            if (is_due(i, j)) sum = __fmaf_rn(__uint_as_float(x[i]), __uint_as_float(y), sum);
        }
    }
}
