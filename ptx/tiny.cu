/* SPDX-License-Identifier: MIT */
/*
 * tiny: products of few k's, and batches of products of few tiles.
 *
 * Idea      A product of 16x16x16 is 1.5 KiB of memory and eight mma's. To bring it to shared memory, to meet at barriers, and to
 *           stage sums takes longer than that. So a warp has a tile of D by itself, loads the fragments of its mma's from
 *           global memory, and stores its accumulators as they are. A block has several such warps, which share nothing:
 *           it spares the launch of as many blocks.
 * Fragments An mma takes any of the k's in any order, if A and B have the same, and any rows and columns. So a lane
 *           g * 4 + t has 8 k's from 8 t on, of B the 4 columns from 4 g on, of A the rows g and g + 8, or, where these
 *           follow each other in memory, 2 g and 2 g + 1. Both operands then come in units of 16, 8 or 4 bytes, and D in
 *           rows of 8 elements.
 * Tiles     of all matrices of a batch are counted through.
 * Limits    A and B are read by every warp that needs them, from the L1 or L2 cache. k is not split.
 */
#define TILES(count) static constexpr int TILES = count; /* a column of the row */
#include "../src/table/warp_facts.h"
#include "epilogue.cuh"

enum { UNIT_K = HGEMM_TINY_UNIT_K, STEP_K = HGEMM_TINY_STEP_K }; /* k's of a lane, and of the warp, in a step */

template <class SPEC, bool A_ALONG_K_, bool B_ALONG_K_, bool IS_INDIRECT> struct tiny_variant {
    static constexpr bool INDIRECT = IS_INDIRECT, A_ALONG_K = A_ALONG_K_, B_ALONG_K = B_ALONG_K_;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, TILES = SPEC::TILES;
    static constexpr int NEXT_ROW = A_ALONG_K ? 8 : 1; /* from a lane's row to its other one */
    static constexpr int TOGETHER = SPEC::BK / STEP_K; /* steps in flight */
    static constexpr int BLOCKS = INDIRECT ? SPEC::BLOCKS : SPEC::NEWER_BLOCKS; /* of an SM */
    static constexpr int THREADS = 32 * TILES, ROWS = HGEMM_TINY_LINES(BM), COLUMNS = HGEMM_TINY_LINES(BN); /* of a lane */
    static_assert(BM == 16 && BN == 32 && SPEC::BK % STEP_K == 0, "a lane has not 8 neighbours of a row of D");
};

/* Where a warp stands: its tile of D, and the matrix of a batch that this is of. */
template <class V> struct tiny_tile {
    u32 own, shared; /* matrix: of B and bias, and of all others, of which groups share one */
    u32 m0, m_end, n0;
    bool is_needed;

    DEVICE explicit tiny_tile(const arguments &args)
    {
        const u32 columns = ((u32)args.n + V::BN - 1) / V::BN, tiles = ((u32)args.m + V::BM - 1) / V::BM * columns;
        const u32 index = block_index() * V::TILES + from_lane(thread_index() / 32, 0);
        const bool is_grouped = V::INDIRECT && args.indirect & HGEMM_INDIRECT_GROUPED;
        own = shared = is_grouped ? 0 : divide(index, tiles, args.inv_split_tiles);
        const u32 tile = is_grouped ? index : index - own * tiles, row = divide(tile, columns, args.inv_group_tiles);
        m0 = row * V::BM, m_end = args.m, n0 = (tile - row * columns) * V::BN;
        is_needed = own < args.groups;
        if (V::INDIRECT && is_grouped) {
            const group_tile<V> mine(args, row);
            own = mine.group, m0 = mine.m0, m_end = mine.m_end;
            is_needed = own < args.groups;
        }
    }
    DEVICE u32 own_matrix(const arguments &) const { return own; }
    DEVICE u32 shared_matrix(const arguments &) const { return shared; }
};

/* What a lane has in a step of X rows of A, or columns of B: as it is in memory, so that nothing waits for it. */
template <bool ALONG_K, int X> struct lane_step {
    static constexpr int UNITS = ALONG_K ? X : UNIT_K, WIDTH = ALONG_K ? UNIT_K : X; /* halves of a unit */
    u32 w[UNITS][WIDTH / 2];

    /* k's 2 s and 2 s + 1 of row or column i. */
    DEVICE u32 pair(int i, int s) const
    {
        if constexpr (ALONG_K) return w[i][s];
        else return permute(w[s * 2][i / 2], w[s * 2 + 1][i / 2], i % 2 ? 0x7632 : 0x5410);
    }
};

/* Where a lane's rows of A, or columns of B, are: X of them, NEXT from each other. */
template <bool ALONG_K, int X, int NEXT, bool LISTED> struct lane_lines {
    typedef lane_step<ALONG_K, X> step;
    static constexpr int WIDTH = step::WIDTH;
    const char *base; /* k 0 of the first of them, or, if LISTED, of the matrix */
    u64 ld;
    u64 listed[X];    /* LISTED: bytes from there to each of them */
    int live;         /* rows, or columns, from the first of them to the end of the matrix */
    u32 k_end;
    int width;        /* halves that are loaded at a time: 8, 4, 2 or 1 */

    /* x0: of the lane; those from x_begin to x_end may be read. */
    DEVICE lane_lines(const char *matrix, long long ld_elements, u32 k, u32 x0, u32 x_begin, u32 x_end, const void *list,
                      bool is_list_64)
        : ld((u64)ld_elements * HALF_BYTES), live((int)(x_end - x0)), k_end(k)
    {
        const u64 to_next = ALONG_K ? ld : HALF_BYTES;
        const u32 bits = (u32)(u64)matrix | (u32)ld | (ALONG_K ? k : x_begin | x_end) * HALF_BYTES;
        width = (LISTED && list && !ALONG_K) || bits & 3 ? 1 : bits & 7 || WIDTH < 4 ? 2 : bits & 15 || WIDTH < 8 ? 4 : 8;
        base = matrix + (LISTED ? 0 : x0 * to_next);
        if (LISTED)
#pragma unroll
            for (int i = 0; i < X; ++i)
                listed[i] = (list && i * NEXT < live ? listed_row(list, is_list_64, x0 + i * NEXT) : x0 + i * NEXT) * to_next;
    }
    DEVICE u64 to_line(int i) const { return LISTED ? listed[i] : i * NEXT * (ALONG_K ? ld : HALF_BYTES); }

    /* The lane's k's from k0 on. Zeros where there is no k. */
    template <int W> DEVICE void load_by(step &to, u32 k0) const
    {
        const int left = (int)(k_end - k0);
        auto &w = to.w;
#pragma unroll
        for (int u = 0; u < step::UNITS; ++u)
#pragma unroll
            for (int e = 0; e < WIDTH; e += W) {
                const u64 k_bytes = (u64)(k0 + (ALONG_K ? e : u)) * (ALONG_K ? HALF_BYTES : ld);
                const char *const p = base + k_bytes + to_line(ALONG_K ? u : e);
                const bool is_there = (ALONG_K ? u : e) * NEXT < live && (ALONG_K ? e : u) < left;
                if constexpr (W == 8) {
                    b128 v = {};
                    ld_global(v, p, is_there);
                    w[u][0] = v.x, w[u][1] = v.y, w[u][2] = v.z, w[u][3] = v.w;
                } else if constexpr (W == 4) ld_global(w[u][e / 2], w[u][e / 2 + 1], p, is_there);
                else if constexpr (W == 2) ld_global_word(w[u][e / 2], p, is_there);
                else {
                    u32 half = 0;
                    ld_global_half(half, p, is_there);
                    w[u][e / 2] |= half << e % 2 * 16;
                }
            }
    }
    DEVICE void load(step &to, u32 k0) const
    {
        to = {};
        if constexpr (WIDTH >= 8)
            if (all_lanes(width == 8)) return load_by<8>(to, k0);
        if constexpr (WIDTH >= 4)
            if (all_lanes(width >= 4)) return load_by<4>(to, k0);
        if (all_lanes(width >= 2)) load_by<2>(to, k0);
        else load_by<1>(to, k0);
    }
};

/* Eight neighbours in row i of a lane: mma j has the lane's columns 2t and 2t + 1, which are number j of the four of two
 * lanes that follow each other. */
static DEVICE eight_sums<FLOATS> row_of(const float (&acc)[4][4], int i)
{
    eight_sums<FLOATS> x;
#pragma unroll
    for (int e = 0; e < 8; ++e) x.v[e] = __float_as_uint(acc[e % 4][i * 2 + e / 4]);
    return x;
}

/* Stores the lane's rows, from `row` and `column` on. */
template <class V> static DEVICE void store_plain(const arguments &args, const tiny_tile<V> &at, const float (&acc)[4][4], u32 row, u32 column)
{
    const epilogue end{args.alpha, args.beta};
    const int count = (int)minimum(args.n - column, 8);
    const char *c = matrix_at<V>(args, args.c, args.stride_c, HALF_BYTES, at.shared);
    char *d = (char *)matrix_at<V>(args, args.d, args.stride_d, HALF_BYTES, at.shared);
    c += row * (u64)args.ldc * HALF_BYTES + column * HALF_BYTES, d += row * (u64)args.ldd * HALF_BYTES + column * HALF_BYTES;
    const bool d_whole = count == 8 && (((u32)(u64)d | (u32)args.ldd * HALF_BYTES) & 15) == 0;
    const bool c_whole = count == 8 && (((u32)(u64)c | (u32)args.ldc * HALF_BYTES) & 15) == 0;
#pragma unroll
    for (int i = 0; i < V::ROWS; ++i) {
        if (row + i * V::NEXT_ROW >= at.m_end) break;
        const eight_sums<FLOATS> x = row_of(acc, i);
        float sum[8], cs[8] = {};
        if (end.reads_c()) values_of(cs, load_elements(c + i * V::NEXT_ROW * (u64)args.ldc * HALF_BYTES, F16, c_whole, count), F16);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[e] = end.finish_float(x.at(e), cs[e]);
        store_elements(d + i * V::NEXT_ROW * (u64)args.ldd * HALF_BYTES, F16, d_whole, count, sum);
    }
}

template <class V> static DEVICE void tiny(const arguments &args)
{
    const tiny_tile<V> at(args);
    if (!all_lanes(at.is_needed)) return;
    const u32 lane = thread_index() % 32, g = lane / 4, t = lane % 4;
    const u32 first_row = at.m0 + g * (V::NEXT_ROW > 1 ? 1 : V::ROWS);
    using lines_a = lane_lines<V::A_ALONG_K, V::ROWS, V::NEXT_ROW, V::INDIRECT>;
    using lines_b = lane_lines<V::B_ALONG_K, V::COLUMNS, 1, false>;
    const lines_a a(matrix_at<V>(args, args.a, args.stride_a, HALF_BYTES, at.shared), args.lda, args.k,
        first_row, at.m0, at.m_end, V::INDIRECT ? args.gather_a : nullptr, args.fused & HGEMM_FUSED_INDEX_64);
    const lines_b b(matrix_at<V>(args, args.b, args.stride_b, HALF_BYTES, at.own), args.ldb, args.k,
        at.n0 + g * V::COLUMNS, at.n0, args.n, nullptr, false);
    float acc[V::COLUMNS][4] = {};
#pragma unroll 1
    for (u32 k0 = 0; k0 < args.k; k0 += STEP_K * V::TOGETHER) {
        typename lines_a::step fa[V::TOGETHER];
        typename lines_b::step fb[V::TOGETHER];
#pragma unroll
        for (int d = 0; d < V::TOGETHER; ++d) {
            if (k0 + d * STEP_K >= args.k) break;
            a.load(fa[d], k0 + d * STEP_K + t * UNIT_K);
            b.load(fb[d], k0 + d * STEP_K + t * UNIT_K);
        }
#pragma unroll
        for (int d = 0; d < V::TOGETHER; ++d) {
            if (k0 + d * STEP_K >= args.k) break;
#pragma unroll
            for (int j = 0; j < V::COLUMNS; ++j) {
                if (all_lanes(at.n0 + j >= args.n)) break; /* it is not there of any lane */
#pragma unroll
                for (int s = 0; s < UNIT_K / 2; ++s) {
                    const u32 rows[2] = {fa[d].pair(0, s), fa[d].pair(1, s)};
                    mma_m16n8k8(acc[j], rows, fb[d].pair(j, s));
                }
            }
        }
    }
    const u32 column = at.n0 + t * 8;
    if (column >= args.n) return;
    if (args.fused || is_by_columns<V::INDIRECT>(args)) {
        const fused_epilogue<V::INDIRECT> end(args, at, column);
#pragma unroll
        for (int i = 0; i < V::ROWS; ++i)
            if (first_row + i * V::NEXT_ROW < at.m_end) end.finish(row_of(acc, i), first_row + i * V::NEXT_ROW);
    } else {
        store_plain<V>(args, at, acc, first_row, column);
    }
}

#define HGEMM_ROW_TYPE(name) row_##name
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
using built = tiny_variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B, HGEMM_INDIRECT>;
extern "C" __global__ void __launch_bounds__(built::THREADS, built::BLOCKS) HGEMM_VARIANT(const arguments args)
{
    tiny<built>(args);
}
