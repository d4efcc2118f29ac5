/* SPDX-License-Identifier: MIT */
/* Of a kernel for few rows or columns of floats (few.cu): which lines and k's a thread has, and where a block stands. */
#pragma once
#include "../src/table/warp_facts.h"
#include "epilogue.cuh"

template <class SPEC, bool A_ALONG_K, bool B_ALONG_K> struct few_variant {
    static constexpr bool INDIRECT = false, PARTS_FIRST = false;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, BK = SPEC::BK, THREADS = 256;
    static constexpr bool LONG_IS_M = BM >= BN;
    static constexpr bool W_ALONG_K = LONG_IS_M ? A_ALONG_K : B_ALONG_K, X_ALONG_K = LONG_IS_M ? B_ALONG_K : A_ALONG_K;
    static constexpr int LONG = LONG_IS_M ? BM : BN, SHORT = LONG_IS_M ? BN : BM;
    static constexpr int TL = LONG / 8; /* threads that store a row of D along LONG */
    static_assert(LONG == 64 && SHORT == 16 && BK == 128, "not what threads can do");

    /* SLOTS groups of warps have a part of the k's, or of the columns; lanes of a warp that share lines have 4 k's, or one. */
    static constexpr int LANES_K = HGEMM_FEW_LANES_K(W_ALONG_K), SLOTS = HGEMM_FEW_SLOTS(W_ALONG_K);
    static DEVICE u32 slot() { return thread_index() / (THREADS / SLOTS); }
    static DEVICE u32 k_lane() { return W_ALONG_K ? thread_index() % 8 * 4 : thread_index() % 32 / 16; }

    /* The line, within the tile, of a thread's sums e. */
    static DEVICE u32 line(u32 e)
    {
        const u32 thread = thread_index();
        return W_ALONG_K ? thread / 32 % 4 * 16 + thread % 32 / 8 + e * 4 : thread % 16 * 4 + e;
    }

    /* Of X in shared memory: units of 4 k's of a column, or of 4 columns of a k, are aligned, and little conflicts. */
    static constexpr u32 X_BYTES = HGEMM_FEW_BYTES(SHORT, BK) / 2;
    static DEVICE constexpr u32 x_at(u32 column, u32 k) { return (W_ALONG_K ? column * (BK + 4) + k : k * (SHORT + 4) + column) * 4; }
    static_assert(SHORT * (BK + 4) * 4 <= X_BYTES && BK * (SHORT + 4) * 4 <= X_BYTES, "X takes more");
    static_assert(SLOTS * LONG * 8 * 4 <= 2 * X_BYTES, "sums of all parts take more");
};

template <class V> struct few_block {
    u32 tile, part; /* part: of k, if split */
    bool is_part;
    bool is_aligned; /* W's rows are, and its units are whole but for the last k's */
    u32 m0, n0, k0, k_end;
    u32 lines, columns; /* of the tile, that D has: along LONG, and along SHORT */
    u32 pitch;          /* of sums in shared memory: columns side by side, or else lines */
    struct operand { const char *base; u64 ld; } w, x; /* from the tile's first line, or column, and the first k of all; bytes */

    DEVICE explicit few_block(const arguments &args)
    {
        constexpr bool TALL = V::LONG_IS_M;
        const u32 tile_columns = ((u32)args.n + V::BN - 1) / V::BN, tile_rows = ((u32)args.m + V::BM - 1) / V::BM;
        const assignment<V> mine(args, tile_rows * tile_columns);
        tile = mine.tile, part = mine.part, is_part = mine.is_part;
        const u32 row = divide(tile, tile_columns, args.inv_group_tiles); /* the group of its walk is of one row */
        m0 = row * V::BM, n0 = (tile - row * tile_columns) * V::BN;
        k0 = is_part ? part * args.k_split : 0;
        k_end = is_part ? minimum(k0 + args.k_split, args.k) : args.k;
        const u32 rows = minimum(args.m - m0, V::BM), cols = minimum(args.n - n0, V::BN);
        lines = TALL ? rows : cols, columns = TALL ? cols : rows, pitch = TALL ? cols : V::LONG;
        const operand a = at(args.a, args.stride_a, args.lda, TALL ? V::W_ALONG_K : V::X_ALONG_K, m0);
        const operand b = at(args.b, args.stride_b, args.ldb, TALL ? V::X_ALONG_K : V::W_ALONG_K, n0);
        w = TALL ? a : b, x = TALL ? b : a;
        is_aligned = (((u64)w.base | w.ld) & 15) == 0 && (V::W_ALONG_K || lines % 4 == 0);
    }
    DEVICE u32 own_matrix(const arguments &) const { return batch_index(); }
    DEVICE u32 shared_matrix(const arguments &) const { return batch_index(); }

private:
    static DEVICE operand at(const void *first, long long stride, long long ld, bool along_k, u32 x0)
    {
        return operand{(const char *)first + (batch_index() * stride + x0 * (along_k ? ld : 1)) * 4, (u64)ld * 4};
    }
};
