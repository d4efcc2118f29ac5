/* SPDX-License-Identifier: MIT */
/*
 * Where a block and a warp stand: which tile of D is a block's, which k's, where its operands are; which part of that
 * tile is a warp's.
 *
 * k   The short k-tile, padded with zeros, is processed first, before the main loop: it is the last one in memory. If
 *     it would have fewer than HGEMM_LEAST_TAIL k's, it takes that many more from its neighbour, and the first k-tile in
 *     memory, which comes next, has that many less. (Packed weights do not do so: their k-tiles begin at multiples of
 *     BK.) All others follow, and are whole.
 */
#pragma once
#include "convert.cuh"
#include "row.cuh"

/* Whether the matrices of the batch are groups of rows. */
template <class V> static DEVICE bool is_grouped(const arguments &args)
{
    return V::INDIRECT && args.indirect & HGEMM_INDIRECT_GROUPED;
}

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

    /* The same of groups. They fill rows of tiles from the first on, and leave the last ones empty: parts of a tile follow
     * each other, so that blocks that have nothing to do come last. */
    DEVICE explicit assignment(const arguments &args) : tile(block_index()), part(0), split_tiles(0), is_part(false)
    {
        if (!V::CUTS_INDIRECT || tile < args.whole_tiles) return;
        const u32 past = tile - args.whole_tiles;
        tile = args.whole_tiles + past / args.splits, part = past % args.splits, is_part = true;
    }
};

/* A row of tiles, in a batch whose matrices are groups of rows. */
template <class V> struct group_tile {
    u32 group; /* past the last group: there is no such row of tiles */
    u32 m0, m_end;

    /* Each lane counts the rows of tiles of a group, until those before and in 32 groups are more than `row`. */
    DEVICE group_tile(const arguments &args, u32 row)
    {
        const u32 lane = thread_index() % 32;
        const bool are_64 = args.fused & HGEMM_FUSED_INDEX_64;
        u32 before = 0;
        for (u32 first = 0; first < args.groups; first += 32) {
            const u32 g = minimum(first + lane, args.groups - 1);
            const u32 begin = g == 0 ? 0 : (u32)listed_row(args.group_ends, are_64, g - 1);
            const u32 end = (u32)listed_row(args.group_ends, are_64, g);
            const u32 tiles = first + lane < args.groups && (int)end > (int)begin ? (end - begin + V::BM - 1) / V::BM : 0;
            u32 sum = tiles; /* up to and with this lane's */
#pragma unroll
            for (u32 by = 1; by < 32; by *= 2) {
                const u32 below = from_below(sum, by);
                if (lane >= by) sum += below;
            }
            const u32 found = lanes_where(before + sum > row);
            if (found) {
                const u32 its = __ffs(found) - 1;
                group = first + its;
                m0 = from_lane(begin, its) + (row - before - from_lane(sum - tiles, its)) * V::BM;
                m_end = from_lane(end, its);
                return;
            }
            before += from_lane(sum, 31);
        }
        group = args.groups, m0 = 0, m_end = 0;
    }
};

/* Where matrix number `index` of a batch begins. The array of an operand that is not read is NULL. */
template <class V>
static DEVICE const char *matrix_at(const arguments &args, const void *first, long long stride, u32 bytes, u32 index)
{
    if (V::INDIRECT && args.indirect & HGEMM_INDIRECT_POINTERS) {
        u32 low = 0, high = 0;
        ld_global(low, high, (const char *)first + index * 8ull, first != nullptr);
        return (const char *)((u64)high << 32 | low);
    }
    return (const char *)first + index * stride * bytes;
}

/* Where this block stands. */
template <class V> struct block {
    u32 group, group_end;        /* INDIRECT, if rows are in groups: which one is the block's, and where its rows end */
    u32 m0, n0;                  /* first row and column of its tile of D */
    u32 k;                       /* k's of the block: of its part, */
    u32 k0;                      /* which begins there */
    u32 tile_rows, tile_columns; /* of D */
    u32 k_tiles;
    u32 tail, head;              /* live k's of k-tile 0, the last in memory, and of k-tile 1, the first */
    panel a, b;
    float scale_a, scale_b;      /* SCALED */

    DEVICE explicit block(const arguments &args)
    {
        constexpr u32 GROUP = V::spec::GROUP;
        /* Rasterization: tiles are walked in groups of GROUP rows, column by column, so that the blocks in
         * flight at one time share their rows of A and columns of B in the L2 cache. */
        tile_rows = ((u32)args.m + V::BM - 1) / V::BM, tile_columns = ((u32)args.n + V::BN - 1) / V::BN;
        if constexpr (V::INDIRECT)
            if (is_grouped<V>(args)) {
                const assignment<V> mine(args);
                const u32 row = mine.tile / tile_columns;
                const group_tile<V> its(args, row);
                group = its.group, group_end = its.m_end;
                const u32 k0 = mine.part * args.k_split;
                stand(args, its.m0, (mine.tile - row * tile_columns) * V::BN,
                      mine.is_part ? minimum(args.k_split, args.k - k0) : args.k, k0);
                return;
            }
        const assignment<V> mine(args, tile_rows * tile_columns);
        const u32 group = divide(mine.tile, GROUP * tile_columns, args.inv_group_tiles);
        const u32 rest = mine.tile - group * (GROUP * tile_columns);
        const u32 top = group * GROUP, height = minimum(tile_rows - top, GROUP); /* of the last group: less */
        const u32 column = height == GROUP ? rest / GROUP : divide(rest, height, args.inv_last_rows);
        const u32 k0 = mine.part * args.k_split;
        stand(args, (top + rest - column * height) * V::BM, column * V::BN,
              mine.is_part ? minimum(args.k_split, args.k - k0) : args.k, k0);
    }

    /* Whether there is a tile for the block: the host knows but the most that groups have. */
    DEVICE bool is_needed(const arguments &args) const { return !is_grouped<V>(args) || group < args.groups; }

    /* Where the rows of D end, and which matrix of the batch is the block's: of B and bias, and of all others, of which
     * groups share one. */
    DEVICE u32 m_end(const arguments &args) const { return is_grouped<V>(args) ? group_end : args.m; }
    DEVICE u32 own_matrix(const arguments &args) const { return is_grouped<V>(args) ? group : batch_index(); }
    DEVICE u32 shared_matrix(const arguments &args) const { return is_grouped<V>(args) ? 0 : batch_index(); }

private:
    DEVICE void stand(const arguments &args, u32 first_row, u32 first_column, u32 depth, u32 k0)
    {
        using A = typename V::A;
        using B = typename V::B;
        m0 = first_row, n0 = first_column, k = depth, this->k0 = k0;
        k_tiles = (k + V::BK - 1) / V::BK;
        tail = k - (k_tiles - 1) * V::BK;
        head = V::BK;
        if (V::BK > HGEMM_LEAST_TAIL && tail < HGEMM_LEAST_TAIL && k_tiles > 1 && !V::spec::PACKED) tail += HGEMM_LEAST_TAIL, head -= HGEMM_LEAST_TAIL;
        const u32 type_a = args.indirect >> HGEMM_FLOATS_TYPE_A & HGEMM_FUSED_TYPE_MASK;
        const u32 type_b = args.indirect >> HGEMM_FLOATS_TYPE_B & HGEMM_FUSED_TYPE_MASK;
        a = A::panel_at(matrix_at<V>(args, args.a, args.stride_a, A::bytes_of(type_a), shared_matrix(args)),
                        (u64)args.lda * A::bytes_of(type_a), m0, m_end(args), (u32)args.k, type_a);
        b = B::panel_at(matrix_at<V>(args, args.b, args.stride_b, B::bytes_of(type_b), own_matrix(args)),
                        (u64)args.ldb * B::bytes_of(type_b), n0, (u32)args.n, (u32)args.k, type_b);
        if (V::INDIRECT) a.list = args.gather_a, a.is_list_64 = args.fused & HGEMM_FUSED_INDEX_64;
        if (V::SCALED) {
            scale_a = power_of_two(scales_of(args).a, scales_of(args).a_pointer);
            scale_b = power_of_two(scales_of(args).b, scales_of(args).b_pointer);
        }
        a.base += A::k_bytes(a, k0);
        b.base += B::k_bytes(b, k0);
    }
};

/* Where the block stands, remembered or computed anew. */
template <class V> static DEVICE block<V> recomputed(const arguments &args, const block<V> &where)
{
    return V::SPARE_REGISTERS && !V::INDIRECT ? where : block<V>(args);
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
    return all_lanes(at.m0 + w.m >= at.m_end(args) || at.n0 + w.n >= args.n);
}

/* Whether this thread's warp stores rows of D: of the warps that share a tile, not all may. */
template <class V> static DEVICE bool is_owner()
{
    return V::OWNERS == V::K_WARPS || thread_index() < V::OWN_THREADS;
}
