/* SPDX-License-Identifier: MIT */
/* Of the kernel whose FP32 units multiply k-tiles in shared memory (fma.cu): who has which sums, and where a block stands. */
#pragma once
#include "../src/table/warp_facts.h"
#include "sums.cuh"
#include "thin_output.cuh"

template <class SPEC> struct fma_variant {
    typedef SPEC spec;
    static constexpr bool INDIRECT = false, CUTS_INDIRECT = false, PARTS_FIRST = false;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, BK = SPEC::BK, WM = SPEC::WM, WN = SPEC::WN;
    static constexpr int THREADS = HGEMM_THREADS(BM, BN, BK, WM, WN, SPEC::WK);
    static_assert(BK == 16 && SPEC::WK == BK, "not what threads can do");

    /* A lane has TM rows and TN columns of its warp's tile, fours of which follow each other. */
    static constexpr int LANES_N = HGEMM_FP32_LANES_N(WN), LANES_M = 32 / LANES_N, TM = WM / LANES_M, TN = WN / LANES_N;
    static_assert(TM % 4 == 0 && TN % 4 == 0, "a lane has no fours of rows or columns");
    static DEVICE u32 row(u32 i)
    {
        const u32 thread = thread_index();
        return thread / 32 % (BM / WM) * WM + thread % 32 / LANES_N * 4 + i / 4 * (4 * LANES_M) + i % 4;
    }
    static DEVICE u32 column()
    {
        const u32 thread = thread_index();
        return thread / 32 / (BM / WM) * WN + thread % LANES_N * 4;
    }

    /* For sums.cuh: they are like those of an mma, four words each. For thin_output.cuh: columns of D are its lines. */
    typedef float sums[TM][TN / 4][4];
    static constexpr accumulator ACC = f32;
    static constexpr int OWN_MT = TM, NT = TN / 4, OWN_THREADS = THREADS, LONG = BN, SHORT = BM, TL = BN / 8;
    static constexpr bool LONG_IS_M = false, SPARE_REGISTERS = true;
};

template <class V> struct fma_block {
    u32 tile;
    u32 m0, n0, k;
    u32 lines, columns; /* of the tile, that D has: columns and rows of D */
    static constexpr u32 pitch = V::BN;
    struct operand {
        const char *base; /* the tile's first element of the first k */
        u64 line;         /* bytes from one to the next of memory's rows */
        u32 extent;       /* rows, or columns, of the tile that there are */
        bool is_along_k;  /* as memory runs */
        bool is_aligned;  /* units of four, which are whole */
    } a, b;

    DEVICE explicit fma_block(const arguments &args)
    {
        const u32 tile_columns = ((u32)args.n + V::BN - 1) / V::BN, tile_rows = ((u32)args.m + V::BM - 1) / V::BM;
        const assignment<V> mine(args, tile_rows * tile_columns);
        tile = mine.tile;
        const u32 row = divide(tile, tile_columns, args.inv_group_tiles); /* the group of its walk is of one row */
        m0 = row * V::BM, n0 = (tile - row * tile_columns) * V::BN;
        const u32 k0 = mine.is_part ? mine.part * args.k_split : 0;
        k = mine.is_part ? minimum(args.k_split, args.k - k0) : args.k;
        columns = minimum(args.m - m0, V::BM), lines = minimum(args.n - n0, V::BN);
        a = at(args.a, args.stride_a, args.lda, args.indirect & HGEMM_FLOATS_ALONG_K_A, m0, k0, columns);
        b = at(args.b, args.stride_b, args.ldb, args.indirect & HGEMM_FLOATS_ALONG_K_B, n0, k0, lines);
    }
    DEVICE u32 own_matrix(const arguments &) const { return batch_index(); }
    DEVICE u32 shared_matrix(const arguments &) const { return batch_index(); }

private:
    DEVICE operand at(const void *first, long long stride, long long ld, bool along_k, u32 x0, u32 k0, u32 extent) const
    {
        const u64 line = (u64)ld * 4;
        const char *const base = (const char *)first + batch_index() * stride * 4 + (along_k ? x0 * line + k0 * 4 : k0 * line + x0 * 4);
        return operand{base, line, extent, along_k, (((u64)base | line | (along_k ? k : extent) * 4) & 15) == 0};
    }
};
