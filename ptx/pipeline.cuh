/* SPDX-License-Identifier: MIT */
/*
 * The way of A and B to the tensor cores: fetch (global memory -> registers), commit (registers -> shared memory), load_one
 * (shared memory -> fragments). struct pipeline computes every address once. Where offsets exceed 32 bits (FAR), the
 * first functions compute them where they are needed. What is special at the edges of a matrix is in operand.cuh.
 */
#pragma once
#include "position.cuh"

template <class V> struct staging { b128 v[V::SLOTS]; };              /* a thread's part of a k-tile, in registers */
template <class V> struct fragments { u32 a[V::MT][2], b[V::NT]; }; /* a warp's operands for one slice */

/* ---- fragments and mma's --------------------------------------------------------------------- */

template <class V> static DEVICE void clear(typename V::sums &acc)
{
#pragma unroll
    for (int i = 0; i < V::MT; ++i)
#pragma unroll
        for (int j = 0; j < V::NT; ++j)
#pragma unroll
            for (auto &x : acc[i][j]) x = 0;
}

/* The j-th ldmatrix of a slice: those of B come first. */
template <class V> static DEVICE void load_one(fragments<V> &f, int j, u32 address)
{
    const int i = 2 * (j - V::B_LDSMS);
    if (j < V::B_LDSMS) {
        if constexpr (V::NT >= 4)
            V::B::matrices(f.b[4 * j], f.b[4 * j + 1], f.b[4 * j + 2], f.b[4 * j + 3], address);
        else V::B::matrices(f.b[0], f.b[1], address);
    } else {
        if constexpr (V::MT >= 2) V::A::matrices(f.a[i][0], f.a[i][1], f.a[i + 1][0], f.a[i + 1][1], address);
        else V::A::matrices(f.a[0][0], f.a[0][1], address);
    }
}

/* Where the h-th mma of a slice is. The order is boustrophedon, along n and back, so that neighbours share an operand. */
template <class V> constexpr int mma_row(int h) { return h / V::NT; }
template <class V> constexpr int mma_column(int h) { return mma_row<V>(h) % 2 ? V::NT - 1 - h % V::NT : h % V::NT; }
template <class V, int H> constexpr int MMA_ROW = mma_row<V>(H);
template <class V, int H> constexpr int MMA_COLUMN = mma_column<V>(H);

/* ---- FAR: every address computed where it is needed ----------------------------------------------- */

/* Chunk q of k-tile t; zeros past the last k-tile. */
template <class V> static DEVICE b128 fetch_one(const block<V> &at, u32 t, int q)
{
    using A = typename V::A;
    using B = typename V::B;
    const u32 thread = thread_index(), live = t >= at.k_tiles ? 0 : t == 0 ? at.tail : t == 1 ? at.head : V::BK;
    const u32 k0 = t == 0 ? at.k - at.tail : t == 1 ? 0 : at.head + (t - 2) * V::BK;
    if (q < A::LOADS) return A::fetch(A::start(at.a, k0), at.a, A::row(thread), A::col(thread), q, live);
    return B::fetch(B::start(at.b, k0), at.b, B::row(thread), B::col(thread), q - A::LOADS, live);
}

template <class V> static DEVICE void fetch(staging<V> &s, const block<V> &at, u32 t)
{
#pragma unroll
    for (int q = 0; q < V::SLOTS; ++q) {
        s.v[q] = fetch_one(at, t, q);
        if (V::ACCESS > X8 && q % 4 == 3) warp_barrier(); /* or ptxas has all halves in flight, and spills */
    }
}

template <class V> static DEVICE void commit(const staging<V> &s, u32 stage)
{
    using A = typename V::A;
    using B = typename V::B;
    const u32 thread = thread_index(), to = shared_base() + stage * V::STAGE;
#pragma unroll
    for (int q = 0; q < V::SLOTS; ++q) {
        const int j = q - A::LOADS;
        const u32 offset = q < A::LOADS ? A::commit_offset(thread, q) : A::BYTES + B::commit_offset(thread, j);
        st_shared(to + offset, s.v[q]);
    }
}

/* ---- every address computed once -----------------------------------------------------------------
 * In global memory a base that all threads share plus an offset, or a pointer; in shared memory an XOR and an
 * immediate. */

template <class V> struct pipeline {
    using A = typename V::A;
    using B = typename V::B;
    static constexpr access ACCESS = V::ACCESS;
    static constexpr int BK = V::BK, SLOTS = V::SLOTS;

    typename A::template addresses<V::ROW_POINTERS> a; /* of the k-tile to fetch next */
    typename B::template addresses<V::ROW_POINTERS> b;
    u32 shift;                      /* ANY: see locate(); A's | B's << 4 */
    int columns_a, columns_b;       /* columns that the matrix has from the thread's first one on */
    u32 commit_a, commit_b;         /* addresses in the first stage: of the thread's first chunk, */
    u32 fragment_a, fragment_b;     /* and of the lane's row of the first ldmatrix */
    u32 t;                          /* number of the k-tile to fetch next */
    chunk<ACCESS> next[SLOTS];      /* the k-tile in registers */
    float scale_a, scale_b;         /* SCALED */
    const char *line;               /* cache line that the thread prefetches next, */
    u32 line_step, line_stop;       /* bytes to the next k-tile's; stops when no more k-tiles than this are left */

    /* Brings k-tile 0 to shared memory and k-tile 1 to registers. */
    DEVICE pipeline(const block<V> &at, const warp<V> &w)
    {
        const u32 base = shared_base(), thread = thread_index();
        scale_a = at.scale_a, scale_b = at.scale_b;
        commit_a = base + A::commit_offset(thread, 0);
        commit_b = base + A::BYTES + B::commit_offset(thread, 0);
        fragment_a = base + A::fragment_offset(w.m, w.lane_a(), 0, w.k_warp * V::SLICES);
        fragment_b = base + A::BYTES + B::fragment_offset(w.n, w.lane_b(), 0, w.k_warp * V::SLICES);
        columns_a = A::columns_inside(at.a, thread), columns_b = B::columns_inside(at.b, thread);
        if constexpr (ACCESS == FAR) {
            staging<V> s;
#pragma unroll 1
            for (t = 0; t < 2; ++t) {
                if (t == 1) {
#pragma unroll
                    for (int q = 0; q < SLOTS; ++q) s.v[q] = operand_of_mma(q, s.v[q]);
                    ::commit(s, 0);
                }
                ::fetch(s, at, t);
            }
#pragma unroll
            for (int q = 0; q < SLOTS; ++q) next[q].v = s.v[q];
        } else {
            /* k-tiles begin at multiples of 16 k's, so that offsets and shifts are the same for all. */
            t = 2;
            shift = a.locate(at.a, at.k - at.tail, thread);
            shift += b.locate(at.b, at.k - at.tail, thread) << 4;
            const u64 back_a = A::k_bytes(at.a, at.k - at.tail), back_b = B::k_bytes(at.b, at.k - at.tail);
            chunk<ACCESS> first[SLOTS];
            if constexpr (ACCESS != ANY || SLOTS <= 3) { /* both k-tiles in flight at once */
                load_checked(first, at, at.k_tiles > 0 ? at.tail : 0, thread);
                a.base -= back_a, b.base -= back_b;
                load_checked(next, at, at.k_tiles > 1 ? at.head : 0, thread);
                a.base += A::k_bytes(at.a, at.head), b.base += B::k_bytes(at.b, at.head);
                start_prefetch(at);
                commit_first(first, at, thread);
            } else { /* one after the other, for want of registers; rolled if possible, for it is much code */
#pragma unroll(V::SPARE_REGISTERS ? 1 : 2)
                for (u32 i = 0; i < 2; ++i) {
                    if (i == 1) commit_first(next, at, thread), a.base -= back_a, b.base -= back_b;
                    load_checked(next, at, i >= at.k_tiles ? 0 : i == 0 ? at.tail : at.head, thread);
                    if (i == 0 && at.k_tiles > 1) prefetch_k_tile(back_a, back_b);
                }
                a.base += A::k_bytes(at.a, at.head), b.base += B::k_bytes(at.b, at.head);
                start_prefetch(at);
            }
        }
        a.make_pointers(), b.make_pointers();
    }

    /* Loads the chunks of the k-tile at the bases that hold one of its `live` k's; the others become zero. Chunks
     * whose loads would reach outside of the matrix come last, when all others are in flight. */
    DEVICE void load_checked(chunk<ACCESS> (&to)[SLOTS], const block<V> &at, u32 live, u32 thread) const
    {
        a.load_checked(&to[0], at.a, columns_a, live, thread);
        b.load_checked(&to[A::LOADS], at.b, columns_b, live, thread);
        if constexpr (ACCESS == ANY) {
            a.template load_ends<V::SPARE_REGISTERS>(&to[0], at.a, columns_a, live, thread);
            b.template load_ends<V::SPARE_REGISTERS>(&to[A::LOADS], at.b, columns_b, live, thread);
        }
    }

    /* Commits k-tile 0. For ANY a row's last chunk of live k's also holds what follows them: zeros go there. */
    DEVICE void commit_first(const chunk<ACCESS> (&from)[SLOTS], const block<V> &at, u32 thread) const
    {
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            const b128 v = from[q].extract(q < A::LOADS ? shift : shift >> 4);
            const bool cut = ACCESS == ANY && (q < A::LOADS ? V::A_K_CONTIGUOUS : V::B_K_CONTIGUOUS);
            const u32 col = q < A::LOADS ? A::col(thread) : B::col(thread);
            commit_chunk(q, operand_of_mma(q, cut ? first_halves(v, (int)(at.tail - col)) : v), 0);
        }
    }

    /* Prefetches to L2 the thread's chunks of k-tile 1 while k-tile 0 is loaded. */
    DEVICE void prefetch_k_tile(u64 back_a, u64 back_b) const
    {
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            const int j = q - A::LOADS;
            if (q < A::LOADS ? A::has(columns_a, q, 0) : B::has(columns_b, j, 0))
                prefetch_l2(q < A::LOADS ? a.base - back_a + a.offset[q] : b.base - back_b + b.offset[j]);
        }
    }

    /* A step may be shorter than the latency of DRAM, so k-tiles are prefetched to the L2 cache PREFETCH steps
     * before they are loaded, a cache line by each thread. Blocks in one row of tiles read the same of A, those
     * in one column the same of B: a power of two of them, SHARERS at most, share the lines equally. If a block
     * has fewer threads than its part has lines, the rest is not prefetched. */
    static constexpr u32 PREFETCH = V::INDIRECT ? 0 : V::spec::PREFETCH, SHARERS = V::spec::GROUP;
    DEVICE void start_prefetch(const block<V> &at)
    {
        if (ACCESS == FAR || PREFETCH == 0) return;
        const u32 thread = thread_index();
        const int log_a = 31 - __clz(minimum(at.tile_columns, SHARERS)); /* log2 of the blocks that share */
        const int log_b = 31 - __clz(minimum(at.tile_rows, SHARERS));
        const u32 lines_a = A::LINES >> log_a, lines_b = B::LINES >> log_b; /* of a block */
        const u32 part_a = at.n0 / V::BN & (1 << log_a) - 1, part_b = at.m0 / V::BM & (1 << log_b) - 1;
        static_assert(A::LINES % SHARERS == 0 && B::LINES % SHARERS == 0, "parts are equal");
        const bool is_a = thread < lines_a, has_line = thread < lines_a + lines_b;
        const u32 i = is_a ? part_a * lines_a + thread : part_b * lines_b + thread - lines_a;
        line = is_a ? a.base + A::line_offset(at.a, i) : b.base + B::line_offset(at.b, i);
        line_step = (u32)(is_a ? A::k_bytes(at.a, BK) : B::k_bytes(at.b, BK));
        line_stop = has_line ? PREFETCH + 2 : 0xffffffff;
#pragma unroll
        for (u32 i = 2; i < 2 + PREFETCH; ++i, line += line_step)
            if (has_line && i < at.k_tiles) prefetch_l2(line);
    }
    DEVICE void prefetch(u32 left)
    {
        if (ACCESS == FAR || PREFETCH == 0) return;
        if (left > line_stop) prefetch_l2(line);
        line += line_step;
    }

    /* Fetches chunk q of the k-tile at the bases, or of the one `after` it; nothing unless `more`. Columns that the
     * matrix does not have are not masked, nor clamped: what follows in memory is read for them. This stays
     * inside: the matrix's last HGEMM_LEAST_TAIL rows are in k-tile 0, which load_checked masks, and where that
     * is too little, selection takes ANY, whose columns are clamped. */
    DEVICE void fetch(const block<V> &at, int q, bool more, bool after = false)
    {
        const int j = q - A::LOADS;
        if (ACCESS == FAR) next[q].v = fetch_one(at, more ? t : at.k_tiles, q);
        else if (q < A::LOADS)
            next[q].load(a.chunk_at(q) + (V::A_K_CONTIGUOUS && after ? BK * HALF_BYTES : 0), more);
        else next[q].load(b.chunk_at(j) + (V::B_K_CONTIGUOUS && after ? BK * HALF_BYTES : 0), more);
    }

    /* To be called after all chunks of a k-tile were fetched: on to the next one. `k_contiguous_tiles` is by how
     * many k-tiles bases along contiguous k's move: two at every other call, if the loop takes pairs. */
    DEVICE void advance(const block<V> &at, int k_contiguous_tiles = 1)
    {
        a.advance(A::k_bytes(at.a, BK * (V::A_K_CONTIGUOUS ? k_contiguous_tiles : 1)));
        b.advance(B::k_bytes(at.b, BK * (V::B_K_CONTIGUOUS ? k_contiguous_tiles : 1)));
        ++t;
    }

    /* Chunk q as it is multiplied: of halves. */
    DEVICE b128 operand_of_mma(int q, const b128 &v) const
    {
        if constexpr (V::CONVERTS) return halves_of(v, q < A::LOADS ? scale_a : scale_b);
        else return v;
    }

    /* `stage` is a byte offset in shared memory: constant, or the same for all threads, it becomes a part of the
     * instruction's address. */
    DEVICE void commit_chunk(int q, const b128 &v, u32 stage) const
    {
        const int j = q - A::LOADS;
        if (q < A::LOADS) st_shared((commit_a ^ A::commit_xor(q)) + A::commit_add(q) + stage, v);
        else st_shared((commit_b ^ B::commit_xor(j)) + B::commit_add(j) + stage, v);
    }
    DEVICE void commit(int q, u32 stage) const
    {
        commit_chunk(q, V::CONVERTS ? next[q].v : next[q].extract(q < A::LOADS ? shift : shift >> 4), stage);
    }

    /* CONVERTS: makes chunk q one of halves, in its registers, before it is committed. */
    DEVICE void convert(int q)
    {
        if (V::CONVERTS) next[q].v = operand_of_mma(q, next[q].extract(q < A::LOADS ? shift : shift >> 4));
    }
    /* The same of its pair i, where chunks are aligned. */
    DEVICE void convert(int q, int i)
    {
        if (!V::CONVERTS) return;
        u32 &pair = i == 0 ? next[q].v.x : i == 1 ? next[q].v.y : i == 2 ? next[q].v.z : next[q].v.w;
        pair = halves_of(pair, q < A::LOADS ? scale_a : scale_b);
    }

    DEVICE void load_one(fragments<V> &f, int j, int kk, u32 stage) const
    {
        const int i = j - V::B_LDSMS;
        ::load_one(f, j, j < V::B_LDSMS ? (fragment_b ^ B::fragment_xor(j, kk)) + B::fragment_add(j, kk) + stage
                                        : (fragment_a ^ A::fragment_xor(i, kk)) + A::fragment_add(i, kk) + stage);
    }
};
