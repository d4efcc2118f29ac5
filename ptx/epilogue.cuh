/* SPDX-License-Identifier: MIT */
/*
 * Where a sum becomes an element of D. Every path of output.cuh calls finish(), or takes the shortcut finish_plain()
 * where is_plain() allows it. Whatever more an epilogue does belongs into finish() and is_plain(), and nowhere else.
 */
#pragma once
#include "stage.cuh"

struct epilogue {
    float alpha, beta;

    DEVICE bool reads_c() const { return beta != 0; }

    /* D = alpha * sum + beta * C, of one element, in single precision; c is a half. */
    DEVICE float finish(float sum, u32 c) const { return __fmaf_rn(beta, half_to_float(c), __fmul_rn(alpha, sum)); }

    /* The same of eight neighbours in a row, rounded. */
    template <format F> DEVICE b128 finish(const eight_sums<F> &x, const b128 &c) const
    {
        const u32 cs[4] = {c.x, c.y, c.z, c.w};
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = pack_halves(finish(x.at(2 * e), cs[e]), finish(x.at(2 * e + 1), cs[e] >> 16));
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* Whether D is the rounded sum and nothing else. */
    DEVICE bool is_plain() const { return alpha == 1 && !reads_c(); }

    /* What finish() would then give: the addition turns -0 into 0, as there. */
    template <format F> static DEVICE b128 finish_plain(const eight_sums<F> &x)
    {
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = F == ROUNDED  ? x.v[e]
                   : F == FLOATS ? pack_halves(x.at(2 * e), x.at(2 * e + 1))
                                 : add_halves(x.v[e], 0);
        return b128{d[0], d[1], d[2], d[3]};
    }
};
