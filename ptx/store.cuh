/* SPDX-License-Identifier: MIT */
/*
 * From accumulators to D. The host plans the way for each call (args.h, `ways`); a block follows it, and its main loop
 * knows of none. There are four policies:
 *
 *   sums    store_sums.cuh    D is the sums of bfloat16 or of floats, and nothing else; of any type
 *   early   store_early.cuh   neither C nor a gate: sums become elements before they are rows
 *   rows    store_rows.cuh    C, a gate and all in chunks of halves, or of bfloat16, where A and B are
 *   any     any.cuh           all else, by the way that minds types, alignment and ends itself
 */
#pragma once
#include "any.cuh"
#include "store_early.cuh"
#include "store_sums.cuh"

/* A policy of its own, for all that no other takes: eight elements of a row at a time. Where D is column-major, lanes
 * stand side by side along columns, so that they write whole sectors. */
template <class V>
static DEVICE void store_any(const arguments &args, const typename V::sums &sums, const block<V> &where,
                             const warp<V> &w)
{
    using L = lanes<V, FORMAT<V>>;
    const L lane(w);
    const u32 row0 = where.m0 + w.m, m_end = where.m_end(args);
    const bool by_columns = is_by_columns<V::INDIRECT>(args);
    lane.by_turns(sums, [&](int turn) {
        u32 below = by_columns ? w.lane % L::ROWS : lane.down;
        u32 column = by_columns ? w.lane / L::ROWS * 8 : lane.across;
#pragma unroll 1
        for (int q = 0; q < L::ROUNDS; column += 32 / L::ROWS * 8) {
            const any_elements<V::INDIRECT> end(args, where, where.n0 + w.n + column);
#pragma unroll 1
            do {
                const u32 row = row0 + turn * L::ROWS + below;
                if (row < m_end && end.count > 0) end.store(lane.template get<false>(below, column), row);
                below += by_columns ? 0 : L::STEP;
            } while (++q < L::ROUNDS && !by_columns);
        }
    });
}

/* Where the warp's part of a matrix of C, D or a gate begins that has so many bytes an element. */
static DEVICE char *part_of(const void *first, long long stride, u32 column, u32 bytes)
{
    return (char *)first + (batch_index() * stride + column) * bytes;
}

/* Adds up what other warps and blocks have of the sums, and writes D. BY_WORDS: sums of floats also go to rows that are
 * not aligned as they are. */
template <class V, bool BY_WORDS = false>
static DEVICE void store(const arguments &args, const block<V> &where, typename V::sums &acc)
{
    warp<V> w;
    warp_bias<V> bias;
    constexpr bool LATE = V::K_WARPS == 1 && V::TIGHT;
    if (!LATE) bias.load(args, where, w); /* while sums of other warps are added */
    add_warps(acc, w);
    if (!is_owner<V>()) return; /* barriers wait for threads that have not exited (CUDA guide, __syncthreads) */
    if (!add_parts<V>(args, acc)) return;
    if (V::TIGHT) w = warp<V>(); /* computed anew: sums of all parts leave no registers */
    w.m += w.k_warp * V::OWN_M;
    const block<V> at = recomputed(args, where);
    if (LATE) bias.load(args, at, w);
    barrier(); /* every warp has read its last fragments: shared memory is free */
    const u32 row0 = at.m0 + w.m, col0 = at.n0 + w.n, block_width = minimum(args.n - at.n0, V::BN);
    const int width = (int)(block_width - w.n);
    /* By a shuffle, so that ptxas does not take it for uniform: that changes the order of the main loop of floats, whose
     * registers are all in use, and costs them 4%. */
    const u32 way = from_lane(args.ways >> (block_width < V::BN ? HGEMM_WAY_AT_EDGE : 0), 0);
    const u32 policy = way & HGEMM_WAY_POLICY;
    if constexpr (V::SCALED) report_overflow<V>(args, acc, w.lane, (int)(at.m_end(args) - row0), width);
    if constexpr (V::SCALED || V::ARE == OF_FLOATS) {
        const scaling by = V::SCALED ? scaling(args) : scaling(args.alpha);
        if (!V::INDIRECT && policy == HGEMM_WAY_SUMS) {
            const u32 t = args.fused >> HGEMM_FUSED_TYPE_D & HGEMM_FUSED_TYPE_MASK, bytes = bytes_of(t);
            char *const d = part_of(args.d, args.stride_d, col0, bytes);
            const u64 ldd = args.ldd * bytes;
            if (BY_WORDS && !(way & HGEMM_WAY_ALIGNED))
                store_sums<F32, 1, V>(acc, w, row0, d, ldd, args.m, width, by);
            else if (t == BF16) store_sums<BF16, 4, V>(acc, w, row0, d, ldd, args.m, width, by);
            else if (t == F16) store_sums<F16, 4, V>(acc, w, row0, d, ldd, args.m, width, by);
            else store_sums<F32, 4, V>(acc, w, row0, d, ldd, args.m, width, by);
            return;
        }
        if (V::SCALED) unscale<V>(acc, by);
    }
    if (V::FUSES && (V::INDIRECT || policy == HGEMM_WAY_ANY)) {
        store_any<V>(args, acc, at, w);
        return;
    }
    if constexpr (!V::INDIRECT) {
        const output o{part_of(args.c, args.stride_c, col0, HALF_BYTES),
                       part_of(args.d, args.stride_d, col0, HALF_BYTES), (u64)args.ldc * HALF_BYTES,
                       (u64)args.ldd * HALF_BYTES, row0, (u32)args.m, width, way, {args.alpha, args.beta}};
        const extras<V> more{bias, args.fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK,
                             args.gate ? part_of(args.gate, args.stride_gate, col0, HALF_BYTES) : nullptr,
                             (u64)args.ldgate * HALF_BYTES};
        if (policy == HGEMM_WAY_EARLY) {
            store_early<V>(acc, w, o, bias, more.how);
        } else if (V::FUSES && (V::ARE != OF_HALVES || way & HGEMM_WAY_EXTRAS)) {
            store_rows<true, true>(acc, w, o, more);
        } else if (way & HGEMM_WAY_ALIGNED) {
            store_rows<true, false>(acc, w, o, more);
        } else {
            store_rows<false, false>(acc, w, o, more);
        }
    }
}

/* The same of floats. */
template <class V> static DEVICE void store_floats(const arguments &args, const block<V> &where, typename V::sums &acc)
{
    store<V, true>(args, where, acc);
}

/* The tile of C in cache lines of 128 bytes, or what is left of one, in parts of one to each thread. */
template <class V> constexpr u32 C_ROW_LINES = (V::BN + 63) / 64;
template <class V> constexpr u32 C_PARTS = (V::BM * C_ROW_LINES<V> + V::THREADS - 1) / V::THREADS;

/* Prefetches a part of the tile of C to the L2 cache. */
template <class V> static DEVICE void prefetch_c(const arguments &args, const block<V> &where, u32 part)
{
    if (V::INDIRECT) return;
    const block<V> at = recomputed(args, where);
    const char *const c = (const char *)args.c + batch_index() * args.stride_c * HALF_BYTES;
    const u32 i = part * V::THREADS + thread_index();
    if (i < V::BM * C_ROW_LINES<V>)
        prefetch_l2(c + minimum(at.m0 + i / C_ROW_LINES<V>, args.m - 1) * (args.ldc * HALF_BYTES) +
                    minimum(at.n0 + i % C_ROW_LINES<V> * 64, args.n - 1) * (u64)HALF_BYTES);
}
