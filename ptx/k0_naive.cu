/* SPDX-License-Identifier: MIT */
/*
 * k0_naive: one thread, one element.
 *
 * Idea      Each thread has an element of D. It walks along k, loads a half of A and one of B, and adds
 *           their product to a sum in single precision. The 32 threads of a warp stand side by side
 *           in a row of D: they share the half of A, and their halves of B are neighbours.
 * Limits    Two loads for one multiply-add. Nothing that is loaded is used twice by a thread, and the
 *           tensor cores are not used at all.
 */
#include "../src/table/args.h"
#include "insn.cuh"

constexpr u32 BM = 8, BN = 32; /* a block's tile of D: a warp has a row of it */

extern "C" __global__ void __launch_bounds__(256, 4) HGEMM_VARIANT(const kernel_args_t args)
{
    const u32 columns = (args.n + BN - 1) / BN;
    const u32 m = block_index() / columns * BM + thread_index() / 32;
    const u32 n = block_index() % columns * BN + thread_index() % 32;
    const bool is_inside = m < args.m && n < args.n;
    const char *const a = (const char *)args.a + (batch_index() * args.stride_a + m * args.lda) * 2;
    const char *const b = (const char *)args.b + (batch_index() * args.stride_b + n) * 2;
    float sum = 0;

    for (u32 k = 0; k < args.k; ++k) {
        u32 x = 0, y = 0;
        ld_global_half(x, a + k * 2ull, is_inside);
        ld_global_half(y, b + k * args.ldb * 2, is_inside);
        sum = __fmaf_rn(half_to_float(x), half_to_float(y), sum);
    }

    u32 c = 0;
    ld_global_half(c, (const char *)args.c + (batch_index() * args.stride_c + m * args.ldc + n) * 2,
                   is_inside && args.beta != 0);
    const u32 d = pack_halves(__fmaf_rn(args.beta, half_to_float(c), __fmul_rn(args.alpha, sum)), 0);
    if (is_inside) st_global_half((char *)args.d + (batch_index() * args.stride_d + m * args.ldd + n) * 2, d);
}
