/* SPDX-License-Identifier: MIT */
/*
 * Where a block and a warp stand: which tile of D is a block's, which k's, where its operands are; which part of that
 * tile is a warp's.
 *
 * k   The short k-tile, padded with zeros, is processed first, before the main loop: it is the last one in memory. If
 *     it would have fewer than HGEMM_LEAST_TAIL k's, it has so many more, and the first k-tile in memory, which comes
 *     next, so many less. All others follow, and are whole.
 */
#pragma once
#include "row.cuh"

/* Which tile of D a block computes, wholly or for one part of k. */
template <class V> struct assignment {
    u32 tile, part, split_tiles;
    bool is_part;
    DEVICE assignment(const arguments &args, u32 tiles)
    {
        const u32 index = block_index(), past = V::PARTS_FIRST ? index : index - args.whole_tiles;
        split_tiles = tiles - args.whole_tiles;
        is_part = V::PARTS_FIRST ? index < split_tiles * args.splits : index >= args.whole_tiles;
        part = is_part ? divide(past, split_tiles, args.inv_split_tiles) : 0;
        if (!V::PARTS_FIRST) tile = index - part * split_tiles;
        else if (is_part) tile = args.whole_tiles + past - part * split_tiles;
        else tile = index - split_tiles * args.splits;
    }
};

/* Where this block stands. */
template <class V> struct block {
    u32 m0, n0;                  /* first row and column of its tile of D */
    u32 k;                       /* k's of the block: of its part */
    u32 tile_rows, tile_columns; /* of D */
    u32 k_tiles;
    u32 tail, head;              /* live k's of k-tile 0, the last in memory, and of k-tile 1, the first */
    panel a, b;

    DEVICE explicit block(const arguments &args)
    {
        using A = typename V::A;
        using B = typename V::B;
        constexpr u32 GROUP = V::spec::GROUP;
        /* Rasterization: tiles are walked in groups of GROUP rows, column by column, so that the blocks in
         * flight at one time share their rows of A and columns of B in the L2 cache. */
        tile_rows = ((u32)args.m + V::BM - 1) / V::BM, tile_columns = ((u32)args.n + V::BN - 1) / V::BN;
        const assignment<V> mine(args, tile_rows * tile_columns);
        const u32 group = divide(mine.tile, GROUP * tile_columns, args.inv_group_tiles);
        const u32 rest = mine.tile - group * (GROUP * tile_columns);
        const u32 top = group * GROUP, height = minimum(tile_rows - top, GROUP); /* of the last group: less */
        const u32 column = height == GROUP ? rest / GROUP : divide(rest, height, args.inv_last_rows);
        m0 = (top + rest - column * height) * V::BM;
        n0 = column * V::BN;
        const u32 k0 = mine.part * args.k_split;
        k = mine.is_part ? minimum(args.k_split, args.k - k0) : args.k;
        k_tiles = (k + V::BK - 1) / V::BK;
        tail = k - (k_tiles - 1) * V::BK;
        head = V::BK;
        if (tail < HGEMM_LEAST_TAIL && k_tiles > 1) tail += HGEMM_LEAST_TAIL, head -= HGEMM_LEAST_TAIL;
        const long long batch = batch_index();
        a = A::panel_at((const char *)args.a + batch * args.stride_a * ELEMENT_BYTES, (u64)args.lda * ELEMENT_BYTES, m0,
                        (u32)args.m, (u32)args.k);
        b = B::panel_at((const char *)args.b + batch * args.stride_b * ELEMENT_BYTES, (u64)args.ldb * ELEMENT_BYTES, n0,
                        (u32)args.n, (u32)args.k);
        a.base += A::k_bytes(a, k0);
        b.base += B::k_bytes(b, k0);
    }
};

/* Where the block stands, remembered or computed anew. */
template <class V> static DEVICE block<V> recomputed(const arguments &args, const block<V> &where)
{
    return V::SPARE_REGISTERS ? where : block<V>(args);
}

/* A thread's place in the block, which is not its index where warps idle. A multiprocessor gives a block's warps to its
 * four sub-cores in turn. So the second four are renumbered: warps of one row of tiles, of one column, or of one tile
 * are then on different sub-cores. */
template <class V> static DEVICE u32 place()
{
    const u32 thread = thread_index();
    return V::IDLES ? thread ^ thread / 128 % 2 * (96 % (V::MN_WARPS * 32)) : thread;
}

/* Where this warp stands in its block. */
template <class V> struct warp {
    u32 lane, m, n; /* first row and column of its tile within the block's */
    u32 k_warp;     /* which of the K_WARPS that share this tile it is */
    DEVICE warp()
    {
        const u32 w = place<V>() / 32;
        lane = thread_index() % 32;
        m = w % (V::BM / V::WM) * V::WM;
        n = w / (V::BM / V::WM) % (V::BN / V::WN) * V::WN;
        k_warp = V::K_WARPS > 1 ? w / V::MN_WARPS : 0;
    }
    /* Whose row a lane passes to the ldmatrix of A and of B. Where these load two matrices, 16 lanes suffice, but on
     * Turing the others must pass valid addresses, too. */
    DEVICE u32 lane_a() const { return V::MT >= 2 ? lane : lane % 16; }
    DEVICE u32 lane_b() const { return V::NT >= 4 ? lane : lane % 16; }
};

/* Whether a warp's tile has no element of D. */
template <class V> static DEVICE bool is_outside(const arguments &args, const block<V> &at, const warp<V> &w)
{
    return all_lanes(at.m0 + w.m >= args.m || at.n0 + w.n >= args.n);
}

/* Whether this thread's warp stores rows of D: of the warps that share a tile, not all may. */
template <class V> static DEVICE bool is_owner()
{
    return V::OWNERS == V::K_WARPS || thread_index() < V::OWN_THREADS;
}
