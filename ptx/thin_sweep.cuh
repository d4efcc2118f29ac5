/* SPDX-License-Identifier: MIT */
/*
 * Of a thin kernel (thin.cu): lines of aligned chunks along k, for up to 4 columns.
 *
 * 8 lanes share a line, so that a warp's load takes all of the sectors that it touches. A warp has 32 lines, all of which are
 * under way before the first is needed. What is on the way is little code: it comes from DRAM, too, in a launch of its own,
 * and its way is longer than that of all but the longest operands.
 */
#pragma once
#include "thin_loads.cuh"
#include "thin_sums.cuh"

/* Multiplies T columns. Returns only where the epilogue is a fused one, with the sums in shared memory. */
template <class V, int T> static DEVICE void sweep(const arguments &args)
{
    constexpr bool TALL = V::LONG_IS_M;
    constexpr int LANES = 8, APART = 32 / LANES, LINES = HGEMM_SWEPT_LINES / (V::THREADS / 32) / APART; /* of a lane */
    static_assert(LINES == LANES, "a lane has not one line in the end");
    const u32 lane = thread_index() % 32, line0 = thread_index() / 32 * (LINES * APART) + lane / LANES; /* in the block */
    const u32 first = block_index() * HGEMM_SWEPT_LINES, columns = TALL ? args.n : args.m;
    const int lines = (int)((TALL ? args.m : args.n) - first - line0);
    const char *const w = (const char *)(TALL ? args.a : args.b) + batch_index() * (TALL ? args.stride_a : args.stride_b) * HALF_BYTES;
    const char *const x = (const char *)(TALL ? args.b : args.a) + batch_index() * (TALL ? args.stride_b : args.stride_a) * HALF_BYTES;
    const u64 ldw = (TALL ? args.lda : args.ldb) * HALF_BYTES, ldx = (TALL ? args.ldb : args.lda) * HALF_BYTES;
    float acc[LINES * T] = {};
#pragma unroll 1
    for (u32 k = lane % LANES * 8; k < (u32)args.k; k += LANES * 8) {
        const char *const begin = w + (first + line0) * ldw + k * HALF_BYTES;
        b128 v[LINES] = {};
#pragma unroll
        for (int i = 0; i < LINES; ++i) ld_global_once(v[i], begin + i * APART * in_place(ldw), i * APART < lines);
        u32 y[8][T];
#pragma unroll
        for (int q = 0; q < 8; ++q)
#pragma unroll
            for (int t = 0; t < T; ++t) {
                const u64 column = T < 4 || t < columns ? t : 0;
                ld_global_half(y[q][t], x + (k + q) * (V::X_ALONG_K ? HALF_BYTES : ldx) + column * (V::X_ALONG_K ? ldx : HALF_BYTES), true);
            }
#pragma unroll
        for (int q = 0; q < 8; ++q)
#pragma unroll
            for (int t = 0; t < T; ++t)
#pragma unroll
                for (int i = 0; i < LINES; ++i)
                    acc[i * T + t] = __fmaf_rn(value(v[i], q), half_to_float(y[q][t]), acc[i * T + t]);
    }
    const u32 line = line0 + add_lanes<LINES * T, LANES>(acc) / T * APART, from = first + line;
    if (args.fused) {
#pragma unroll
        for (int t = 0; t < T; ++t)
            if (T < 4 || t < columns) put(sum_at<V>(TALL ? columns : HGEMM_SWEPT_LINES, line, t), acc[t], true);
        return;
    }
    if (from >= (TALL ? args.m : args.n)) leave();
    const u64 ldc = args.ldc * HALF_BYTES, ldd = args.ldd * HALF_BYTES, to_next = TALL ? HALF_BYTES : ldd;
    const char *const c = (const char *)args.c + batch_index() * args.stride_c * HALF_BYTES + from * (TALL ? ldc : HALF_BYTES);
    char *const d = (char *)args.d + batch_index() * args.stride_d * HALF_BYTES + from * (TALL ? ldd : HALF_BYTES);
    const epilogue end{args.alpha, args.beta};
#pragma unroll
    for (int t = 0; t < T; ++t)
        if (T < 4 || t < columns) {
            u32 before = 0;
            ld_global_half(before, c + t * (TALL ? HALF_BYTES : ldc), end.reads_c());
            const float sum = end.finish_float(acc[t], half_to_float(before));
            st_global_half(d + t * to_next, pack_halves(sum, 0));
        }
    leave();
}
