/* SPDX-License-Identifier: MIT */
/*
 * D of floats in single precision where it is nothing but the sums, and its rows are not whole, aligned fours: lanes that
 * stand side by side store neighbouring words. (output.cuh has the other ways.)
 */
#pragma once
#include "tile.cuh"

/* Whether a block's D is such a one: all its threads agree. */
template <class V> static DEVICE bool is_ragged(const arguments &args, const block<V> &at)
{
    const char *const d = (const char *)args.d + batch_index() * args.stride_d * 4; /* columns of blocks begin at fours */
    if (has_fours(d, args.ldd * 4, minimum(args.n - at.n0, V::BN), 4)) return false;
    const bool is_more = args.beta != 0 || args.alpha_pointer || args.beta_pointer || args.bias || args.gate || args.scatter_d ||
                         args.fused & HGEMM_FUSED_ACTIVATION_MASK << HGEMM_FUSED_ACTIVATION;
    return !is_more && (args.fused >> HGEMM_FUSED_TYPE_D & HGEMM_FUSED_TYPE_MASK) == F32;
}

/* As store(), where it is. */
template <class V> static DEVICE void store_ragged(const arguments &args, const block<V> &where, typename V::sums &acc)
{
    using S = stage<V, FLOATS>;
    static_assert(V::K_WARPS == 1 && V::WN % 32 == 0, "a warp does not store whole rows of its sums");
    constexpr u32 ACROSS = V::WN / 32, TOGETHER = 8; /* words of a lane in a row, and of those that are on their way */
    if (!add_parts<V>(args, acc)) return;
    const warp<V> w;
    const block<V> at = recomputed(args, where);
    barrier(); /* every warp has read its last fragments: shared memory is free */
    const u32 row0 = at.m0 + w.m, m = args.m, columns = minimum(args.n - at.n0, V::BN);
    const scaling by(args.alpha);
    const u32 buffer = S::buffer(w.m, w.n), to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const u64 ldd = args.ldd * 4;
    char *d = (char *)args.d + (batch_index() * args.stride_d + at.n0 + w.n + w.lane) * 4 + row0 * ldd;
    u32 row = row0;
#pragma unroll 1
    for (int turn = 0; turn < S::TURNS; ++turn) {
        S::put(to, acc, turn);
        warp_barrier();
        u32 from = buffer + w.lane * 4;
#pragma unroll 1
        for (int r = 0; r < S::ROWS; r += TOGETHER / ACROSS) {
            float x[TOGETHER];
#pragma unroll
            for (u32 i = 0; i < TOGETHER; ++i) {
                u32 word;
                ld_shared_word(word, from + i / ACROSS * S::PITCH + i % ACROSS * 128);
                x[i] = __uint_as_float(word);
            }
            by.apply(x);
#pragma unroll
            for (u32 i = 0; i < TOGETHER; ++i)
                if (row + i / ACROSS < m && w.n + w.lane + i % ACROSS * 32 < columns)
                    st_global_word(d + i / ACROSS * ldd + i % ACROSS * 128, __float_as_uint(x[i]));
            from += TOGETHER / ACROSS * S::PITCH, d += TOGETHER / ACROSS * ldd, row += TOGETHER / ACROSS;
        }
        warp_barrier();
    }
}

/* Stores the sums of floats. */
template <class V> static DEVICE void store_floats(const arguments &args, const block<V> &where, typename V::sums &acc)
{
    if constexpr (!V::INDIRECT)
        if (is_ragged<V>(args, where)) {
            store_ragged<V>(args, where, acc);
            return;
        }
    store(args, where, acc);
}
