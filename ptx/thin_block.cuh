/* SPDX-License-Identifier: MIT */
/* Of a thin kernel (thin.cu): which lines and k's a thread has, and where a block stands. */
#pragma once
#include "epilogue.cuh"

template <class SPEC, bool A_ALONG_K, bool B_ALONG_K> struct thin_variant {
    static constexpr bool INDIRECT = false, PARTS_FIRST = false;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, THREADS = 128;
    static constexpr bool LONG_IS_M = BM >= BN;
    static constexpr bool W_ALONG_K = LONG_IS_M ? A_ALONG_K : B_ALONG_K, X_ALONG_K = LONG_IS_M ? B_ALONG_K : A_ALONG_K;
    static constexpr int LONG = LONG_IS_M ? BM : BN, SHORT = 8;
    static constexpr int TL = THREADS * 8 / SPEC::BK, TK = THREADS / TL;
    static constexpr int LINES = LONG / TL; /* of a thread */
    static_assert((LONG_IS_M ? BN : BM) == 8 && TL * TK == THREADS && TL * LINES == LONG, "not what threads can do");

    /* Where D is 8x8, all lanes of a warp share its lines. PARTS warps, or groups of warps, have a part of each sum. */
    static constexpr int LANES_K = LONG == 8 ? 32 : 1, PARTS = TK / LANES_K;
    static_assert(LONG == 8 ? TL == 1 : TK == 1, "lanes of a warp do not agree");
    static constexpr bool CAN_STREAM = LONG > 8 && !W_ALONG_K, CAN_SWEEP = LONG > 8 && W_ALONG_K; /* stream(), sweep() */
    static DEVICE u32 tl() { return W_ALONG_K ? thread_index() / TK : thread_index() % TL; }
    static DEVICE u32 tk() { return W_ALONG_K ? thread_index() % TK : thread_index() / TL; }

    /* The line, within the tile, of a thread's accumulator e. */
    static DEVICE u32 line(int e) { return W_ALONG_K ? tl() + e * TL : tl() * LINES + e; }
};

/* Where a block stands. Its tile is several of the table's, side by side, where the grid has fewer blocks than D has
 * tiles. */
template <class V> struct thin_block {
    u32 tile, part; /* part: of k, if split */
    bool is_part;
    bool is_streamed, is_swept; /* by stream(), by sweep() */
    u32 m0, n0, k0, k_end;
    int lines, columns; /* of the tile, that D has: along LONG, and of the 8 */
    u32 pitch;          /* of sums in shared memory: columns side by side, or else lines */
    panel w, x;

    DEVICE explicit thin_block(const arguments &args)
    {
        constexpr bool TALL = V::LONG_IS_M;
        const u32 tile_columns = ((u32)args.n + V::BN - 1) / V::BN, tile_rows = ((u32)args.m + V::BM - 1) / V::BM;
        const u32 tiles = tile_rows * tile_columns;
        const bool may_have_several = V::LONG > 8 && (TALL ? args.n : args.m) <= HGEMM_FEW_COLUMNS;
        const u32 each = may_have_several ? (tiles + block_count() - 1) / block_count() : 1;
        const assignment<V> mine(args, tiles);
        tile = mine.tile * each, part = mine.part, is_part = mine.is_part;
        const u32 row = divide(tile, tile_columns, args.inv_group_tiles); /* the group of its walk is of one row */
        u32 most = V::LONG * each; /* lines */
        m0 = row * V::BM, n0 = (tile - row * tile_columns) * V::BN;
        is_streamed = V::CAN_STREAM && (TALL ? args.n : args.m) == 1 && args.k >= HGEMM_STREAMED_K &&
                      (TALL ? args.m : args.n) >= HGEMM_STREAMED_LEAST_LINES && args.splits == 1;
        is_swept = V::CAN_SWEEP && args.indirect & HGEMM_SWEPT;
        if (is_streamed || is_swept) {
            is_part = false, most = is_streamed ? HGEMM_STREAMED_LINES : HGEMM_SWEPT_LINES;
            m0 = TALL ? block_index() * most : 0, n0 = TALL ? 0 : block_index() * most;
        }
        k0 = is_part ? part * args.k_split : 0;
        k_end = is_part ? minimum(k0 + args.k_split, args.k) : args.k;
        const int rows = (int)minimum(args.m - m0, TALL ? most : V::BM);
        const int cols = (int)minimum(args.n - n0, TALL ? V::BN : most);
        lines = TALL ? rows : cols, columns = TALL ? cols : rows, pitch = TALL ? cols : most;
        const panel a = whole(args.a, args.stride_a, args.lda, TALL ? V::W_ALONG_K : V::X_ALONG_K, args.m, args.k, m0);
        const panel b = whole(args.b, args.stride_b, args.ldb, TALL ? V::X_ALONG_K : V::W_ALONG_K, args.n, args.k, n0);
        w = TALL ? a : b, x = TALL ? b : a;
    }
    DEVICE u32 own_matrix(const arguments &) const { return batch_index(); }
    DEVICE u32 shared_matrix(const arguments &) const { return batch_index(); }

private:
    /* A stored operand of `extent` rows or columns and `k` k's; its base is at x0 and the first k of all. */
    static DEVICE panel whole(const void *first, long long stride, long long ld_elements, bool along_k, int extent,
                              int k, u32 x0)
    {
        const u64 ld = (u64)ld_elements * HALF_BYTES;
        const char *const begin = (const char *)first + batch_index() * stride * HALF_BYTES;
        const char *const end = begin + ((along_k ? extent : k) - 1) * ld + (along_k ? k : extent) * (u64)HALF_BYTES;
        return panel{begin + x0 * (along_k ? ld : HALF_BYTES), begin, end, ld, x0, (u32)extent, nullptr, false, F16};
    }
};
