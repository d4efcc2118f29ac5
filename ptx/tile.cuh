/* SPDX-License-Identifier: MIT */
/*
 * What the rungs are written in: where a block and a warp stand, fetch (global memory -> registers),
 * commit (registers -> shared memory), load (shared memory -> fragments), multiply, store
 * (accumulators -> D). A tile is a kernel variant: two operands (operand.cuh), block and warp, main
 * loop, epilogue, split-K.
 *
 * Edges cost the main loop nothing:
 *   x   Accesses past the last row of an operand repeat that row. Those past the last column take what
 *       follows in memory, or, where each chunk is loaded with care (k1 to k3, access ANY), repeat columns.
 *       All of this reaches only accumulators of elements that D does not have; they are not stored.
 *   k   The short k-tile, padded with zeros, is processed first, before the main loop: it is the last one
 *       in memory. If it would have fewer than HGEMM_LEAST_TAIL k's, it has so many more, and the first k-tile
 *       in memory, which comes next, so many less. All others follow, and are whole.
 */
#pragma once
#include "operand.cuh"
#include "../src/args.h"

typedef kernel_args_t args;

enum accumulator { f16, f32 };

/* A row of the table as a type, row_<name>, and t4_<name> with the columns that ON_T4 replaces: it becomes the machine
 * code for a T4, where a row has that. The two differ in the order of blocks, in prefetches, in the order of
 * instructions, and in what warps outside of D do: not in any bit of D. */
struct row_defaults {
    static constexpr int LDS_GAP = 0, STS_FIRST = 0, STS_GAP = 0, LDG_LAG = 0;
    static constexpr bool T4_ROW = false, ROUNDED = false;
};
#define BLOCK(m, n, k) static constexpr int BM = m, BN = n, BK = k;
#define WARP(m, n, k) static constexpr int WM = m, WN = n, WK = k;
#define STAGES(count) static constexpr int STAGES = count;
#define ACC(type) static constexpr accumulator ACC = type;
#define PER_SM(t4, newer) static constexpr int BLOCKS = t4, NEWER_BLOCKS = newer;
#define WALK(group, prefetch) static constexpr int GROUP = group, PREFETCH = prefetch;
#define SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag) \
    static constexpr int LDS_GAP = lds_gap, STS_FIRST = sts_first, STS_GAP = sts_gap, LDG_LAG = ldg_lag;
#define HGEMM_KERNEL(rung, name, columns, ...) \
    struct row_##name : row_defaults { columns }; \
    struct t4_##name : row_##name { __VA_ARGS__ static constexpr bool T4_ROW = true; };
#include "../src/kernels.def"

/* ---- a kernel variant: a row of the table, the storage of A and B, and how they are accessed --- */

/* A row with f16 accumulators that hold f32 sums already rounded for D. */
template <class R> struct rounded_row : R {
    static constexpr accumulator ACC = f16;
    static constexpr bool ROUNDED = true;
};

template <class R, bool A_K_CONTIGUOUS, bool B_K_CONTIGUOUS, bool SWIZZLED, access ACCESS> struct tile {
    typedef R row;
    static constexpr int BM = R::BM, BN = R::BN, BK = R::BK, WM = R::WM, WN = R::WN, WK = R::WK;
    static constexpr int MN_WARPS = BM / WM * (BN / WN); /* warp tiles in the block's tile of D */
    static constexpr int K_WARPS = BK / WK;              /* warps that share one, each for WK of a k-tile's k's */
    static constexpr int THREADS = MN_WARPS * K_WARPS * 32;
    static constexpr int MT = WM / 16, NT = WN / 8; /* mma tiles of a warp tile along m and n */
    static constexpr int MMAS = MT * NT;            /* mma instructions of a warp in a slice, which is 8 k's */
    static constexpr int SLICES = WK / 8;           /* of a warp in a k-tile */
    static constexpr int B_LDSMS = (NT + 3) / 4, LDSMS = B_LDSMS + (MT + 1) / 2; /* ldmatrix of a slice */

    /* Of K_WARPS warps, OWNERS store OWN_M rows of their common tile each: the first OWN_THREADS of the block. */
    static constexpr int OWNERS = MT < K_WARPS ? MT : K_WARPS;
    static constexpr int OWN_M = WM / OWNERS, OWN_MT = MT / OWNERS, OWN_THREADS = MN_WARPS * OWNERS * 32;

    using A = operand<BM, BK, A_K_CONTIGUOUS, THREADS, SWIZZLED, ACCESS>;
    using B = operand<BN, BK, B_K_CONTIGUOUS, THREADS, SWIZZLED, ACCESS>;
    static constexpr int STAGE = A::BYTES + B::BYTES; /* bytes of a k-tile in shared memory */
    static constexpr int SLOTS = A::LOADS + B::LOADS; /* chunks of a thread in a k-tile: those of A come first */

    /* Whether a thread has registers to spare beside its accumulators and fragments. Where it has none, values are
     * recomputed, and loops unrolled that need a counter. */
    static constexpr bool SPARE_REGISTERS = MMAS < 64;

    /* Occupancy that ptxas must allow for (__launch_bounds__). Large unaligned variants need too many registers for that
     * of newer GPUs. */
    static constexpr int MIN_BLOCKS = ACCESS <= X8 || MMAS < 32 ? R::NEWER_BLOCKS : R::BLOCKS;

    /* The tuned loop takes two k-tiles a turn, so that stages are constants, if a thread has enough registers: for
     * accumulators, two fragments and a k-tile, and for all else an empirical number. */
    static constexpr int LIVE_REGISTERS = MMAS * (R::ACC == f32 ? 4 : 2) + 2 * (2 * MT + NT) + 4 * SLOTS;
    static constexpr int OTHER_REGISTERS = ACCESS == X16 ? 65 : 127;
    static constexpr int SM_SHARE = HGEMM_SM_REGISTERS / (MIN_BLOCKS * THREADS);
    static constexpr int REGISTERS = SM_SHARE < HGEMM_THREAD_REGISTERS ? SM_SHARE : HGEMM_THREAD_REGISTERS;
    static constexpr bool IN_PAIRS = ACCESS <= X8 && LIVE_REGISTERS + OTHER_REGISTERS <= REGISTERS && MMAS >= 8;

    /* A global load on Turing adds a 32-bit offset to a base that all threads share. Newer GPUs compute the sum with
     * instructions of their own, and each that writes a register takes a clock or two from the tensor cores. So every
     * row of A or B has a pointer, unless threads are few and thus have many rows, or the row of the table is a T4's. */
    static constexpr bool ROW_POINTERS = !R::T4_ROW && ACCESS <= X8 && THREADS > 128;

    /* Whether warps whose tile lies outside of D idle, and leave the tensor cores to others. A multiprocessor gives a
     * block's warps to its four sub-cores in turn. So the second four are renumbered: warps of one row of tiles, of one
     * column, or of one tile are then on different sub-cores. Not for the widest tile with ANY, for want of registers.
     * On newer GPUs only for large tiles that have a multiprocessor to themselves: others lose more than they gain. So
     * do the widest, and f32 where warps divide k. */
    static constexpr bool IDLES_NEWER = R::NEWER_BLOCKS == 1 && MMAS >= 32 && BN <= 128 && (R::ACC == f16 || K_WARPS == 1);
    static constexpr bool IDLES = MN_WARPS > 1 && (R::T4_ROW ? ACCESS <= X8 || BN <= 128 : IDLES_NEWER);
    static DEVICE u32 place()
    {
        const u32 thread = thread_index();
        return IDLES ? thread ^ thread / 128 % 2 * (96 % (MN_WARPS * 32)) : thread;
    }

    static_assert(WM % 64 == 0 || WM == 32 || WM == 16, "fragment_xor needs it");
    static_assert(WN % 64 == 0 || WN == 32 || WN == 16, "fragment_xor needs it");
    static_assert(SLICES % 2 == 0, "the two fragments of the tuned loop alternate");
    static_assert(BK >= 2 * HGEMM_LEAST_TAIL, "the first two k-tiles are not deep enough");
    static_assert(MT % OWNERS == 0, "the rows of a tile are not shared evenly");

    /* Of one mma. (The second parameter makes the specialization a partial one, which a class may contain.) */
    template <accumulator, class> struct sums_of { typedef u32 type[2]; };
    template <class V> struct sums_of<f32, V> { typedef float type[4]; };
    typedef typename sums_of<R::ACC, void>::type sums[MT][NT]; /* a warp's accumulators */

    struct fragments { u32 a[MT][2], b[NT]; }; /* a warp's operands for one slice */
    struct staging { b128 v[SLOTS]; };         /* a thread's part of a k-tile, between global and shared memory */

    /* Which tile of D a block computes, wholly or for one part of k. Parts come after the whole tiles, so that these
     * start together. In a T4's rows with two blocks on an SM they come first: at the end, a part that runs longest
     * would leave the place beside it empty. */
    static constexpr bool PARTS_FIRST = R::T4_ROW && R::BLOCKS > 1;
    struct assignment {
        u32 tile, part, split_tiles;
        bool is_part;
        DEVICE assignment(const args &p, u32 tiles)
        {
            const u32 index = block_index(), past = PARTS_FIRST ? index : index - p.whole_tiles;
            split_tiles = tiles - p.whole_tiles;
            is_part = PARTS_FIRST ? index < split_tiles * p.splits : index >= p.whole_tiles;
            part = is_part ? divide(past, split_tiles, p.inv_split_tiles) : 0;
            if (!PARTS_FIRST) tile = index - part * split_tiles;
            else if (is_part) tile = p.whole_tiles + past - part * split_tiles;
            else tile = index - split_tiles * p.splits;
        }
    };

    /* Where this block stands. */
    struct block {
        u32 m0, n0;                  /* first row and column of its tile of D */
        u32 k;                       /* k's of the block: of its part */
        u32 tile_rows, tile_columns; /* of D */
        u32 k_tiles;
        u32 tail, head;              /* live k's of k-tile 0, the last in memory, and of k-tile 1, the first */
        panel a, b;

        DEVICE explicit block(const args &p)
        {
            /* Rasterization: tiles are walked in groups of GROUP rows, column by column, so that the blocks in
             * flight at one time share their rows of A and columns of B in the L2 cache. */
            tile_rows = ((u32)p.m + BM - 1) / BM, tile_columns = ((u32)p.n + BN - 1) / BN;
            const assignment mine(p, tile_rows * tile_columns);
            const u32 group = divide(mine.tile, R::GROUP * tile_columns, p.inv_group_tiles);
            const u32 rest = mine.tile - group * (R::GROUP * tile_columns);
            const u32 top = group * R::GROUP, height = minimum(tile_rows - top, R::GROUP); /* of the last group: less */
            const u32 column = height == R::GROUP ? rest / R::GROUP : divide(rest, height, p.inv_last_rows);
            m0 = (top + rest - column * height) * BM;
            n0 = column * BN;
            const u32 k0 = mine.part * p.k_split;
            k = mine.is_part ? minimum(p.k_split, p.k - k0) : p.k;
            k_tiles = (k + BK - 1) / BK;
            tail = k - (k_tiles - 1) * BK;
            head = BK;
            if (tail < HGEMM_LEAST_TAIL && k_tiles > 1) tail += HGEMM_LEAST_TAIL, head -= HGEMM_LEAST_TAIL;
            const long long batch = batch_index();
            a = A::panel_at((const char *)p.a + batch * p.stride_a * 2, (u64)p.lda * 2, m0, (u32)p.m, (u32)p.k);
            b = B::panel_at((const char *)p.b + batch * p.stride_b * 2, (u64)p.ldb * 2, n0, (u32)p.n, (u32)p.k);
            a.base += A::k_bytes(a, k0);
            b.base += B::k_bytes(b, k0);
        }
    };

    /* Where this warp stands in its block. */
    struct warp {
        u32 lane, m, n; /* first row and column of its tile within the block's */
        u32 k_warp;     /* which of the K_WARPS that share this tile it is */
        DEVICE warp()
        {
            const u32 w = place() / 32;
            lane = thread_index() % 32;
            m = w % (BM / WM) * WM;
            n = w / (BM / WM) % (BN / WN) * WN;
            k_warp = K_WARPS > 1 ? w / MN_WARPS : 0;
        }
        /* Whose row a lane passes to the ldmatrix of A and of B. Where these load two matrices, 16 lanes suffice, but on
         * Turing the others must pass valid addresses, too. */
        DEVICE u32 lane_a() const { return MT >= 2 ? lane : lane % 16; }
        DEVICE u32 lane_b() const { return NT >= 4 ? lane : lane % 16; }
    };

    /* Whether a warp's tile has no element of D. */
    static DEVICE bool is_outside(const args &p, const block &at, const warp &w)
    {
        return all_lanes(at.m0 + w.m >= p.m || at.n0 + w.n >= p.n);
    }

    static DEVICE void clear(sums &acc)
    {
#pragma unroll
        for (int i = 0; i < MT; ++i)
#pragma unroll
            for (int j = 0; j < NT; ++j)
#pragma unroll
                for (auto &x : acc[i][j]) x = 0;
    }

    /* ---- fetch, commit, load: every address computed where it is needed ------------------------ */

    static DEVICE void fetch(staging &s, const block &at, u32 t)
    {
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            s.v[q] = fetch_one(at, t, q);
            if (ACCESS > X8 && q % 4 == 3) warp_barrier(); /* or ptxas has all halves in flight, and spills */
        }
    }

    static DEVICE b128 fetch_one(const block &at, u32 t, int q)
    {
        const u32 thread = thread_index(), live = t >= at.k_tiles ? 0 : t == 0 ? at.tail : t == 1 ? at.head : BK;
        const u32 k0 = t == 0 ? at.k - at.tail : t == 1 ? 0 : at.head + (t - 2) * BK;
        if (q < A::LOADS) return A::fetch(A::start(at.a, k0), at.a, A::row(thread), A::col(thread), q, live);
        return B::fetch(B::start(at.b, k0), at.b, B::row(thread), B::col(thread), q - A::LOADS, live);
    }

    static DEVICE void commit(const staging &s, u32 stage)
    {
        const u32 thread = thread_index(), to = shared_base() + stage * STAGE;
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            const int j = q - A::LOADS;
            const u32 offset = q < A::LOADS ? A::commit_offset(thread, q) : A::BYTES + B::commit_offset(thread, j);
            st_shared(to + offset, s.v[q]);
        }
    }

    static DEVICE void load(fragments &f, const warp &w, u32 stage, int kk)
    {
        const u32 from = shared_base() + stage * STAGE;
#pragma unroll
        for (int j = 0; j < LDSMS; ++j)
            load_one(f, j, from + (j < B_LDSMS ? A::BYTES + B::fragment_offset(w.n, w.lane_b(), j, kk)
                                               : A::fragment_offset(w.m, w.lane_a(), j - B_LDSMS, kk)));
    }

    /* The j-th ldmatrix of a slice: those of B come first. */
    static DEVICE void load_one(fragments &f, int j, u32 address)
    {
        const int i = 2 * (j - B_LDSMS);
        if (j < B_LDSMS) {
            if constexpr (NT >= 4) B::matrices(f.b[4 * j], f.b[4 * j + 1], f.b[4 * j + 2], f.b[4 * j + 3], address);
            else B::matrices(f.b[0], f.b[1], address);
        } else {
            if constexpr (MT >= 2) A::matrices(f.a[i][0], f.a[i][1], f.a[i + 1][0], f.a[i + 1][1], address);
            else A::matrices(f.a[0][0], f.a[0][1], address);
        }
    }

    /* The h-th mma of a slice. The order is boustrophedon, along n and back, so that neighbours share an operand. */
    static DEVICE void multiply_one(sums &acc, const fragments &f, int h)
    {
        const int i = h / NT, j = i % 2 ? NT - 1 - h % NT : h % NT;
        mma_m16n8k8(acc[i][j], f.a[i], f.b[j]);
    }

    static DEVICE void multiply(sums &acc, const fragments &f)
    {
#pragma unroll
        for (int h = 0; h < MMAS; ++h) multiply_one(acc, f, h);
    }

    /* ---- fetch, commit, load: every address computed once --------------------------------------
     * In global memory a base that all threads share plus an offset, or a pointer; in shared memory an XOR and an
     * immediate. */

    /* Where a thread's rows of a k-tile are: offsets of its first chunk in each row, from the start of the k-tile;
     * or pointers to these chunks. For ANY all are aligned down to 16 bytes. */
    template <class O> struct row_addresses {
        const char *base, *pointer[O::DOWN];
        u32 offset[O::DOWN];

        DEVICE void advance(u64 bytes)
        {
            base += bytes;
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) pointer[i] += bytes;
        }
        DEVICE void make_pointers()
        {
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) pointer[i] = base + offset[i];
        }
        DEVICE const char *chunk_at(int i) const
        {
            return (ROW_POINTERS ? pointer[i / O::ACROSS] : base + offset[i / O::ACROSS]) + O::across(i) * 2;
        }
    };

    struct pipeline {
        row_addresses<A> a;             /* of the k-tile to fetch next */
        row_addresses<B> b;
        u32 shift;                      /* ANY: see locate(); A's | B's << 4 */
        int columns_a, columns_b;       /* columns that the matrix has from the thread's first one on */
        u32 commit_a, commit_b;         /* addresses in the first stage: of the thread's first chunk, */
        u32 fragment_a, fragment_b;     /* and of the lane's row of the first ldmatrix */
        u32 t;                          /* number of the k-tile to fetch next */
        chunk<ACCESS> next[SLOTS];      /* the k-tile in registers */
        const char *line;               /* cache line that the thread prefetches next, */
        u32 line_step, line_stop;       /* bytes to the next k-tile's; stops when no more k-tiles than this are left */

        /* Brings k-tile 0 to shared memory and k-tile 1 to registers. */
        DEVICE pipeline(const block &at, const warp &w)
        {
            const u32 base = shared_base(), thread = thread_index();
            commit_a = base + A::commit_offset(thread, 0);
            commit_b = base + A::BYTES + B::commit_offset(thread, 0);
            fragment_a = base + A::fragment_offset(w.m, w.lane_a(), 0, w.k_warp * SLICES);
            fragment_b = base + A::BYTES + B::fragment_offset(w.n, w.lane_b(), 0, w.k_warp * SLICES);
            columns_a = A::columns_inside(at.a, thread), columns_b = B::columns_inside(at.b, thread);
            if constexpr (ACCESS == FAR) {
                staging s;
#pragma unroll 1
                for (t = 0; t < 2; ++t) {
                    if (t == 1) tile::commit(s, 0);
                    tile::fetch(s, at, t);
                }
#pragma unroll
                for (int q = 0; q < SLOTS; ++q) next[q].v = s.v[q];
            } else {
                /* k-tiles begin at multiples of 16 k's, so that offsets and shifts are the same for all. */
                t = 2;
                shift = locate<A>(a, at.a, at.k - at.tail, thread);
                shift += locate<B>(b, at.b, at.k - at.tail, thread) << 4;
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
#pragma unroll(SPARE_REGISTERS ? 1 : 2)
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

        /* Sets the base, where the k-tile from k0 on begins, and the offsets of the thread's rows; for ANY both are
         * aligned down. Returns the shift of a chunk, by how many bytes it was: the same for all chunks of a thread,
         * for STEP is a multiple of 8 rows, which are a multiple of 16 bytes. */
        template <class O> static DEVICE u32 locate(row_addresses<O> &rows, const panel &src, u32 k0, u32 thread)
        {
            constexpr u32 GRAIN = ACCESS == ANY ? 16 : 1;
            const char *const start = O::start(src, k0);
            const u32 skew = (u32)(u64)start % GRAIN, row = O::row(thread), col = O::col(thread);
            auto from_start = [&](u32 r) {
                return (u32)(ACCESS == ANY ? O::clamped(src, r, col, 1) : O::row_clamped(src, r, col));
            };
            rows.base = start - skew;
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) rows.offset[i] = (from_start(row + i * O::STEP) + skew) / GRAIN * GRAIN;
            return (from_start(row) + skew) % GRAIN;
        }

        /* Loads the chunks of the k-tile at the bases that hold one of its `live` k's; the others become zero. Chunks
         * whose loads would reach outside of the matrix come last, when all others are in flight. */
        DEVICE void load_checked(chunk<ACCESS> (&to)[SLOTS], const block &at, u32 live, u32 thread) const
        {
            load_checked<A, 0>(to, at.a, a, columns_a, live, thread);
            load_checked<B, A::LOADS>(to, at.b, b, columns_b, live, thread);
            if constexpr (ACCESS == ANY) {
                load_ends<A, 0>(to, at.a, a, columns_a, live, thread);
                load_ends<B, A::LOADS>(to, at.b, b, columns_b, live, thread);
            }
        }

        /* Offsets from a k-tile's base at which ANY may load 32 bytes: first .. last are inside the matrix. */
        struct safe_range {
            u32 first, last;
            DEVICE safe_range(const panel &src, const char *tile)
            {
                const u64 room = src.end - tile;
                first = room < 32 ? 0xffffffff : src.begin > tile ? (u32)(src.begin - tile) : 0;
                last = room - 32 < 0xffffffff ? (u32)room - 32 : 0xffffffff;
            }
            DEVICE bool holds(u32 offset) const
            {
                return ACCESS != ANY || (offset >= first && offset <= last);
            }
        };

        template <class O, int FIRST>
        static DEVICE void load_checked(chunk<ACCESS> (&to)[SLOTS], const panel &src, const row_addresses<O> &rows,
                                       int columns, u32 live, u32 thread)
        {
            const safe_range safe(src, rows.base);
#pragma unroll
            for (int i = 0; i < O::LOADS; ++i)
                to[FIRST + i].load_or_zero(rows.base + rows.offset[i / O::ACROSS] + O::across(i) * 2,
                                           O::k_of(thread, i, 0) < live && O::has(columns, i, 0) &&
                                               safe.holds(rows.offset[i / O::ACROSS]),
                                           O::k_of(thread, i, 4) < live && O::has(columns, i, 4));
        }

        template <class O, int FIRST>
        static DEVICE void load_ends(chunk<ACCESS> (&to)[SLOTS], const panel &src, const row_addresses<O> &rows,
                                    int columns, u32 live, u32 thread)
        {
            static_assert(O::ACROSS == 1, "a row has several chunks of a thread");
            const safe_range safe(src, rows.base);
            /* Rows that repeat the last one are not safe either, but are not needed. To skip them takes a register. */
            const int inside = SPARE_REGISTERS ? O::rows_inside(src, thread) : O::LOADS;
            if (!O::has(columns, 0, 0)) return;
            bool all = true;
#pragma unroll
            for (int i = 0; i < O::LOADS; ++i) {
                if constexpr (SPARE_REGISTERS) all &= safe.holds(rows.offset[i]) || i >= inside;
                else all &= safe.holds(rows.offset[i]);
            }
            if (all) return;
#pragma unroll 1
            for (int i = 0; i < O::LOADS; ++i) { /* rolled, for it is much code; j finds register i */
                u32 offset = 0;
#pragma unroll
                for (int j = 0; j < O::LOADS; ++j) offset = j == i ? rows.offset[j] : offset;
                if constexpr (SPARE_REGISTERS) {
                    if (O::k_of(thread, i, 0) >= live || safe.holds(offset) || i >= inside) continue;
                } else {
                    if (O::k_of(thread, i, 0) >= live || safe.holds(offset)) continue;
                }
                chunk<ACCESS> c;
                c.load_inside(src, rows.base + offset);
#pragma unroll
                for (int j = 0; j < O::LOADS; ++j)
                    if (j == i) to[FIRST + j] = c;
            }
        }

        /* Commits k-tile 0. For ANY a row's last chunk of live k's also holds what follows them: zeros go there. */
        DEVICE void commit_first(const chunk<ACCESS> (&from)[SLOTS], const block &at, u32 thread) const
        {
#pragma unroll
            for (int q = 0; q < SLOTS; ++q) {
                const b128 v = from[q].extract(q < A::LOADS ? shift : shift >> 4);
                const bool cut = ACCESS == ANY && (q < A::LOADS ? A_K_CONTIGUOUS : B_K_CONTIGUOUS);
                const u32 col = q < A::LOADS ? A::col(thread) : B::col(thread);
                commit_chunk(q, cut ? first_halves(v, (int)(at.tail - col)) : v, 0);
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
        static constexpr u32 PREFETCH = R::PREFETCH, SHARERS = R::GROUP;
        DEVICE void start_prefetch(const block &at)
        {
            if (ACCESS == FAR || PREFETCH == 0) return;
            const u32 thread = thread_index();
            const int log_a = 31 - __clz(minimum(at.tile_columns, SHARERS)); /* log2 of the blocks that share */
            const int log_b = 31 - __clz(minimum(at.tile_rows, SHARERS));
            const u32 lines_a = A::LINES >> log_a, lines_b = B::LINES >> log_b; /* of a block */
            const u32 part_a = at.n0 / BN & (1 << log_a) - 1, part_b = at.m0 / BM & (1 << log_b) - 1;
            static_assert(A::LINES % SHARERS == 0 && B::LINES % SHARERS == 0, "parts are equal");
            const bool is_a = thread < lines_a, has_line = thread < lines_a + lines_b;
            const u32 i = is_a ? part_a * lines_a + thread : part_b * lines_b + thread - lines_a;
            line = is_a ? a.base + A::line_offset(at.a, i) : b.base + B::line_offset(at.b, i);
            line_step = (u32)(is_a ? A::k_bytes(at.a, BK) : B::k_bytes(at.b, BK));
            line_stop = has_line ? PREFETCH + 2 : 0xffffffff;
#pragma unroll
            for (u32 t = 2; t < 2 + PREFETCH; ++t, line += line_step)
                if (has_line && t < at.k_tiles) prefetch_l2(line);
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
        DEVICE void fetch(const block &at, int q, bool more, bool after = false)
        {
            const int j = q - A::LOADS;
            if (ACCESS == FAR) next[q].v = fetch_one(at, more ? t : at.k_tiles, q);
            else if (q < A::LOADS) next[q].load(a.chunk_at(q) + (A_K_CONTIGUOUS && after ? BK * 2 : 0), more);
            else next[q].load(b.chunk_at(j) + (B_K_CONTIGUOUS && after ? BK * 2 : 0), more);
        }

        /* To be called after all chunks of a k-tile were fetched: on to the next one. `k_contiguous_tiles` is by how
         * many k-tiles bases along contiguous k's move: two at every other call, if the loop takes pairs. */
        DEVICE void advance(const block &at, int k_contiguous_tiles = 1)
        {
            a.advance(A::k_bytes(at.a, BK * (A_K_CONTIGUOUS ? k_contiguous_tiles : 1)));
            b.advance(B::k_bytes(at.b, BK * (B_K_CONTIGUOUS ? k_contiguous_tiles : 1)));
            ++t;
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
            commit_chunk(q, next[q].extract(q < A::LOADS ? shift : shift >> 4), stage);
        }

        DEVICE void load_one(fragments &f, int j, int kk, u32 stage) const
        {
            const int i = j - B_LDSMS;
            tile::load_one(f, j, j < B_LDSMS ? (fragment_b ^ B::fragment_xor(j, kk)) + B::fragment_add(j, kk) + stage
                                             : (fragment_a ^ A::fragment_xor(i, kk)) + A::fragment_add(i, kk) + stage);
        }
    };

    /* ---- warps that share a tile, and split-K: sums of sums ----------------------------------- */

    /* A thread's accumulators as words, MMA_WORDS of each mma, and as chunks of four words. */
    static constexpr int MMA_WORDS = R::ACC == f32 ? 4 : 2, SUM_CHUNKS = OWN_MT * NT * MMA_WORDS / 4;

    static DEVICE u32 word(const u32 (&x)[2], int i) { return x[i]; }
    static DEVICE u32 word(const float (&x)[4], int i) { return __float_as_uint(x[i]); }
    static DEVICE u32 get_word(const sums &acc, int i)
    {
        return word(acc[i / MMA_WORDS / NT][i / MMA_WORDS % NT], i % MMA_WORDS);
    }
    static DEVICE b128 get_chunk(const sums &acc, int c)
    {
        return b128{get_word(acc, 4 * c), get_word(acc, 4 * c + 1), get_word(acc, 4 * c + 2), get_word(acc, 4 * c + 3)};
    }
    static DEVICE void put_word(u32 (&x)[2], int i, u32 v) { x[i] = v; }
    static DEVICE void put_word(float (&x)[4], int i, u32 v) { x[i] = __uint_as_float(v); }
    /* The same from single precision: a pair of halves takes both sums, a float the first. */
    static DEVICE void round_word(u32 (&x)[2], int i, float lo, float hi) { x[i] = pack_halves(lo, hi); }
    static DEVICE void round_word(float (&x)[4], int i, float v, float) { x[i] = v; }
    static DEVICE u32 add_words(u32 x, u32 y)
    {
        return R::ACC == f32 ? __float_as_uint(__fadd_rn(__uint_as_float(x), __uint_as_float(y))) : add_halves(x, y);
    }

    static DEVICE bool is_owner() { return OWNERS == K_WARPS || thread_index() < OWN_THREADS; }

    /* Adds up the sums of the K_WARPS warps that share a tile, through shared memory. Each owner receives those of the
     * rows that it stores, which afterwards are the first OWN_MT rows of mma tiles in its acc. Shared memory holds
     * ROUND chunks of every thread at a time, in pages: one chunk from each thread of MN_WARPS warps. */
    static DEVICE void add_warps(sums &acc, const warp &w)
    {
        if constexpr (K_WARPS > 1) {
            constexpr int OTHERS = K_WARPS - 1, PAGE = MN_WARPS * 32 * 16;
            constexpr int FITS = R::STAGES * STAGE / (OWNERS * OTHERS * PAGE);
            constexpr int ROUND = FITS >= SUM_CHUNKS ? SUM_CHUNKS : FITS >= 8 ? 8 : FITS >= 4 ? 4 : 2;
            static_assert(SUM_CHUNKS % ROUND == 0 && ROUND <= FITS, "shared memory holds no round of sums");
            const u32 page = shared_base() + place() % (MN_WARPS * 32) * 16;
#pragma unroll
            for (int c0 = 0; c0 < SUM_CHUNKS; c0 += ROUND) {
                barrier(); /* the last round, or the last k-tile, has been read */
#pragma unroll
                for (int to = 0; to < OWNERS; ++to) {
                    if (w.k_warp == to) continue;
                    const u32 from = K_WARPS == 2 ? 0 : w.k_warp - (w.k_warp > to); /* among the others of `to` */
#pragma unroll
                    for (int c = 0; c < ROUND; ++c)
                        st_shared(page + ((to * OTHERS + from) * ROUND + c) * PAGE,
                                  get_chunk(acc, to * SUM_CHUNKS + c0 + c));
                }
                barrier();
                if (!is_owner()) continue;
#pragma unroll
                for (int c = 0; c < ROUND; ++c) {
                    b128 mine = get_chunk(acc, c0 + c);
#pragma unroll
                    for (int to = 1; to < OWNERS; ++to)
                        if (w.k_warp == to) mine = get_chunk(acc, to * SUM_CHUNKS + c0 + c);
                    u32 x[4] = {mine.x, mine.y, mine.z, mine.w};
#pragma unroll
                    for (int from = 0; from < OTHERS; ++from) {
                        b128 theirs;
                        ld_shared(theirs, page + ((w.k_warp * OTHERS + from) * ROUND + c) * PAGE);
                        const u32 y[4] = {theirs.x, theirs.y, theirs.z, theirs.w};
#pragma unroll
                        for (int e = 0; e < 4; ++e) x[e] = add_words(x[e], y[e]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int i = (c0 + c) * 4 + e;
                        put_word(acc[i / MMA_WORDS / NT][i / MMA_WORDS % NT], i % MMA_WORDS, x[e]);
                    }
                }
            }
        }
    }

    /* How many chunks are added up at a time, and for how many parts they are in flight: 8 loads a thread, or 16 in
     * rungs that are ever split, if registers suffice. */
    static constexpr bool TUNED = R::LDS_GAP > 0, MANY = TUNED && SPARE_REGISTERS;
    static constexpr int BATCH = SUM_CHUNKS < 4 ? SUM_CHUNKS : SUM_CHUNKS > 4 && MANY ? 8 : 4;
    static constexpr int PARTS = (SUM_CHUNKS >= 4 && MANY ? 16 : 8) / BATCH;

    /* Whether the last part to arrive leaves its own sums in registers, if there are enough: where the sums of a tile
     * are many, so that to write and read them takes longer than to look first whether others are missing. That is 128
     * KiB on newer GPUs. A T4's L2 cache holds no large sums beside A and B, and DRAM takes long. */
    static constexpr bool KEEPS_OWN = R::T4_ROW ? R::BLOCKS == 1 && (R::ACC == f16 || SUM_CHUNKS <= 16)
                                                : R::ACC == f16 && BM * BN * 2 >= 128 << 10;

    /* Split-K. The blocks of a tile leave their accumulators in the workspace and count themselves. The last one to
     * arrive adds up all parts and sets the counter back to zero. It adds in the order of k and in single precision,
     * so that the result does not depend on which block that is. If its sums stay in registers, it finds before it
     * leaves them that all others have arrived, unless two arrive at the same time. Returns whether this block stores
     * the tile; acc is then the sum. */
    static DEVICE bool add_parts(const args &p, sums &acc)
    {
        if (!PARTS_FIRST && block_index() < p.whole_tiles) return true;
        const assignment mine(p, (((u32)p.m + BM - 1) / BM) * (((u32)p.n + BN - 1) / BN));
        if (PARTS_FIRST && !mine.is_part) return true;
        const u32 thread = thread_index(), splits = p.splits;
        const u32 tile = batch_index() * mine.split_tiles + mine.tile - p.whole_tiles;
        u32 *const arrived = (u32 *)p.workspace + tile;
        char *const first = (char *)p.workspace + HGEMM_WORKSPACE_TILES * 4 +
                            ((u64)tile * splits * SUM_CHUNKS * OWN_THREADS + thread) * 16;
        char *const own = first + (u64)mine.part * (SUM_CHUNKS * OWN_THREADS * 16);
        auto others_after_adding = [&](u32 count) { /* how many parts had arrived before */
            barrier(); /* all threads have read their last fragments, and written what they leave of their sums */
            if (thread == 0) st_shared_word(shared_base(), atomic_add(arrived, count));
            barrier();
            u32 before;
            ld_shared_word(before, shared_base());
            return before;
        };
        if (!KEEPS_OWN || others_after_adding(0) + 1 < splits) {
#pragma unroll
            for (int c = 0; c < SUM_CHUNKS; ++c)
                st_global(own + c * (OWN_THREADS * 16), get_chunk(acc, c));
            if (others_after_adding(1) + 1 < splits) return false;
        }
#pragma unroll(SPARE_REGISTERS && !KEEPS_OWN ? 1 : SUM_CHUNKS)
        for (int c0 = 0; c0 < SUM_CHUNKS; c0 += BATCH) {
            float x[BATCH * 8] = {};
#pragma unroll 1
            for (u32 s = 0; s < splits; s += PARTS) {
                b128 v[PARTS * BATCH] = {}; /* zeros past the last part */
#pragma unroll
                for (int c = 0; c < PARTS * BATCH; ++c) {
                    const bool is_own = KEEPS_OWN && s + c / BATCH == mine.part;
                    if (is_own) v[c] = get_chunk(acc, c0 + c % BATCH);
                    ld_global(v[c],
                              first + (u64)((s + c / BATCH) * SUM_CHUNKS + c0 + c % BATCH) * (OWN_THREADS * 16),
                              s + c / BATCH < splits && !is_own);
                }
#pragma unroll
                for (int c = 0; c < PARTS * BATCH; ++c) {
                    const u32 words[4] = {v[c].x, v[c].y, v[c].z, v[c].w};
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        float &lo = x[c % BATCH * 8 + e * 2], &hi = x[c % BATCH * 8 + e * 2 + 1];
                        lo += R::ACC == f32 ? __uint_as_float(words[e]) : half_to_float(words[e]);
                        hi += R::ACC == f32 ? 0 : half_to_float(words[e] >> 16);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < SUM_CHUNKS * 4; ++i) {
                if (i / (BATCH * 4) * BATCH != c0) continue; /* a search, for registers have no index */
                const int e = i % (BATCH * 4);
                round_word(acc[i / MMA_WORDS / NT][i / MMA_WORDS % NT], i % MMA_WORDS, x[e * 2], x[e * 2 + 1]);
            }
        }
        if (thread == 0) *arrived = 0;
        return true;
    }

    /* ---- epilogue: D = alpha * acc + beta * C -------------------------------------------------
     * Accumulators pass through shared memory, 16 * GROUPS rows of each warp at a time: the lanes then hold 8
     * consecutive columns, so that D is written, and C read, in full 32-byte sectors. Warps that stand side by side
     * join their rows there. A pitch of 8 elements more than a row keeps the fragments' writes, 8 rows by 4 lanes,
     * free of bank conflicts.                                                                     */

    static constexpr int SUM_BYTES = R::ACC == f32 ? 4 : 2, PITCH = (BN + 8) * SUM_BYTES;
    static constexpr int FITTING_GROUPS = R::STAGES * STAGE / (BM / OWN_M) / (16 * PITCH);
    static constexpr int GROUPS = FITTING_GROUPS < 2 || OWN_MT < 2 || MMAS >= 32 ? 1 : 2;

    /* Writes the accumulators of mma tile j of a row of them. */
    static DEVICE void put_sums(u32 to, const u32 (&x)[2], int j)
    {
        st_shared_word(to + j * 16, x[0]);
        st_shared_word(to + j * 16 + 8 * PITCH, x[1]);
    }
    static DEVICE void put_sums(u32 to, const float (&x)[4], int j)
    {
        st_shared(to + j * 32, x[0], x[1]);
        st_shared(to + j * 32 + 8 * PITCH, x[2], x[3]);
    }

    /* Writes the `group`-th GROUPS rows of mma tiles, LOW <= group < HIGH: a search, for registers have no index. */
    template <int LOW, int HIGH> static DEVICE void put_group(u32 to, const sums &acc, int group)
    {
        if constexpr (HIGH - LOW > 1) {
            constexpr int MIDDLE = (LOW + HIGH) / 2;
            if (group < MIDDLE) put_group<LOW, MIDDLE>(to, acc, group);
            else put_group<MIDDLE, HIGH>(to, acc, group);
        } else {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i)
#pragma unroll
                for (int j = 0; j < NT; ++j) put_sums(to + i * 16 * PITCH, acc[LOW * GROUPS + i][j], j);
        }
    }

    /* Eight consecutive sums of a row, in the type of the accumulators. */
    struct eight_sums { u32 v[2 * SUM_BYTES]; };
    static DEVICE float sum_of(const eight_sums &x, int e)
    {
        return R::ACC == f32 ? __uint_as_float(x.v[e % (2 * SUM_BYTES)]) : half_to_float(x.v[e / 2] >> e % 2 * 16);
    }

    /* Reads those from column c on: a multiple of 8, or ANYWHERE in a row of `columns`, where those past the end of the
     * row are undefined. */
    template <bool ANYWHERE> static DEVICE eight_sums get_sums(u32 row, int c, u32 columns)
    {
        eight_sums x;
        if constexpr (R::ACC == f32 && ANYWHERE) {
#pragma unroll
            for (int e = 0; e < 8; ++e) ld_shared_word(x.v[e], row + minimum(c + e, columns - 1) * 4);
        } else if constexpr (R::ACC == f32) {
            b128 v, w;
            ld_shared(v, row + c * 4);
            ld_shared(w, row + c * 4 + 16);
            x = eight_sums{{v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}};
        } else {
            b128 v;
            if constexpr (ANYWHERE) {
                chunk<ANY> w;
                const u32 at = c * 2 & ~15;
                ld_shared(w.v, row + minimum(at, columns * 2 - 16));
                ld_shared(w.next, row + minimum(at + 16, columns * 2 - 16));
                v = w.extract(c * 2 & 15);
            } else {
                ld_shared(v, row + c * 2);
            }
            x = eight_sums{{v.x, v.y, v.z, v.w}};
        }
        return x;
    }

    static DEVICE float blend(float x, u32 c, float alpha, float beta)
    {
        return __fmaf_rn(beta, half_to_float(c), __fmul_rn(alpha, x));
    }
    static DEVICE b128 blend(const eight_sums &x, const b128 &c, float alpha, float beta)
    {
        const u32 cs[4] = {c.x, c.y, c.z, c.w};
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = pack_halves(blend(sum_of(x, 2 * e), cs[e], alpha, beta),
                               blend(sum_of(x, 2 * e + 1), cs[e] >> 16, alpha, beta));
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* The same for alpha = 1 and beta = 0. The addition turns -0 into 0, as the blend would. */
    static DEVICE b128 rounded(const eight_sums &x)
    {
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = R::ROUNDED      ? x.v[e]
                   : R::ACC == f32 ? pack_halves(sum_of(x, 2 * e), sum_of(x, 2 * e + 1))
                                   : add_halves(x.v[e], 0);
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* Where a warp's rows go. */
    struct output {
        const char *c; /* row 0 of C, and of D, at the warp's first column */
        char *d;
        u64 ldc, ldd;  /* in bytes */
        u32 m;         /* rows of D */
        int width;     /* columns from the warp's first one to the end of the block's, as far as D has them */
        float alpha, beta;
        bool c_like_d; /* where a chunk of D is aligned, that of C is, too */
    };

    /* Adds up what other warps and blocks have of the sums, and writes D. */
    static DEVICE void store(const args &p, const block &where, sums &acc)
    {
        warp w;
        add_warps(acc, w);
        if (!is_owner()) return; /* barriers wait for threads that have not exited (CUDA guide, __syncthreads) */
        w.m += w.k_warp * OWN_M;
        if (!add_parts(p, acc)) return;
        barrier(); /* every warp has read its last fragments: shared memory is free */
        const block at = recomputed(p, where);
        const u32 row0 = at.m0 + w.m, col0 = at.n0 + w.n, m = p.m, n = p.n;
        const long long batch = batch_index();
        const u64 ldc = p.ldc * 2, ldd = p.ldd * 2;
        const char *const c = (const char *)p.c + batch * p.stride_c * 2 + (u64)col0 * 2;
        char *const d = (char *)p.d + batch * p.stride_d * 2 + (u64)col0 * 2;
        const float alpha = p.alpha, beta = p.beta;
        const bool read_c = beta != 0;
        const bool c_like_d = (((u64)c - (u64)d | ldc - ldd) & 15) == 0;
        const u32 block_width = minimum(n - at.n0, BN);
        const int width = (int)(block_width - w.n);
        const bool aligned = (((u64)d | ldd | block_width * 2) & 15) == 0; /* rows of D are whole aligned chunks */
        if constexpr (R::ACC == f32) {
            if (aligned && alpha == 1 && !read_c) { /* rounded first, sums are half the bytes in shared memory */
                using rounded_tile = tile<rounded_row<R>, A_K_CONTIGUOUS, B_K_CONTIGUOUS, SWIZZLED, ACCESS>;
                typename rounded_tile::sums r;
                typename rounded_tile::warp rw;
                rw.m = w.m;
#pragma unroll
                for (int i = 0; i < OWN_MT * NT * 2; ++i) {
                    const float(&x)[4] = acc[i / 2 / NT][i / 2 % NT];
                    r[i / 2 / NT][i / 2 % NT][i % 2] = pack_halves(x[i % 2 * 2], x[i % 2 * 2 + 1]);
                }
                rounded_tile::template store_rows<true>(r, rw, row0, {c, d, ldc, ldd, m, width, 1, 0, true});
                return;
            }
        }
        if (aligned && (c_like_d || !read_c))
            store_rows<true>(acc, w, row0, {c, d, ldc, ldd, m, width, alpha, beta, true});
        else
            store_rows<false>(acc, w, row0, {c, d, ldc, ldd, m, width, alpha, beta, c_like_d});
    }

    /* Where the block stands, remembered or computed anew. */
    static DEVICE block recomputed(const args &p, const block &where) { return SPARE_REGISTERS ? where : block(p); }

    /* Prefetches a part of the tile of C to the L2 cache: a cache line of 128 bytes, or what is left of one, by each
     * thread. C_PARTS parts are all of it. */
    static constexpr u32 C_ROW_LINES = (BN + 63) / 64, C_PARTS = (BM * C_ROW_LINES + THREADS - 1) / THREADS;
    static DEVICE void prefetch_c(const args &p, const block &where, u32 part)
    {
        const block at = recomputed(p, where);
        const char *const c = (const char *)p.c + batch_index() * p.stride_c * 2;
        const u32 i = part * THREADS + thread_index();
        if (i < BM * C_ROW_LINES)
            prefetch_l2(c + minimum(at.m0 + i / C_ROW_LINES, p.m - 1) * (p.ldc * 2) +
                        minimum(at.n0 + i % C_ROW_LINES * 64, p.n - 1) * 2ull);
    }

    /* Columns of a row of D before its first aligned chunk. */
    template <bool ALIGNED> static DEVICE int lead(const char *row_of_d)
    {
        return ALIGNED ? 0 : (int)(16 - (u64)row_of_d % 16) % 16 / 2;
    }

    /* Stores the warp's rows of D, from row0 on, in aligned chunks: those that begin in its columns and end in the
     * block's. Unless rows of D are ALIGNED, the first chunk of each is `lead` columns in. A lane stores every STEP-th
     * row. */
    template <bool ALIGNED>
    static DEVICE void store_rows(const sums &acc, const warp &w, u32 row0, const output &o)
    {
        constexpr int ACROSS = WN / 8, STEP = 32 / ACROSS; /* lanes along a row; rows between a lane's */
        constexpr int ROUNDS = GROUPS * 16 / STEP, TOGETHER = ROUNDS < 4 ? ROUNDS : 4;
        const u32 buffer = shared_base() + w.m / OWN_M * (GROUPS * 16 * PITCH) + w.n * SUM_BYTES;
        const u32 columns = IDLES ? (o.width + 7) / 8 * 8 : BN - w.n; /* there: warps that idle leave none */
        const u32 to = buffer + w.lane / 4 * PITCH + w.lane % 4 * 2 * SUM_BYTES;
        const u32 first_row = row0 + w.lane / ACROSS; /* of this lane */
        const bool read_c = o.beta != 0, plain = o.alpha == 1 && !read_c && !(ALIGNED && R::ACC == f32);
        auto meet = [] { ALIGNED ? warp_barrier() : barrier(); }; /* a chunk may span two warps' columns */
        auto column = [&](const char *row_of_d) { return lead<ALIGNED>(row_of_d) + (int)(w.lane % ACROSS * 8); };
        auto fetch_c = [&](b128 (&cs)[ROUNDS], u32 below, bool when) { /* of the rows `below` first_row */
#pragma unroll
            for (int q = 0; q < ROUNDS; ++q) {
                const u32 row = first_row + below + q * STEP;
                const int col = column(o.d + row * o.ldd);
                const bool live = row < o.m && col + 8 <= o.width && when;
                const char *const from = o.c + row * o.ldc + col * 2;
                if (ALIGNED || o.c_like_d) {
                    ld_global(cs[q], from, live);
                } else if (read_c) {
                    u32 h[8] = {};
#pragma unroll
                    for (int e = 0; e < 8; ++e) ld_global_half(h[e], from + e * 2, live);
                    cs[q] = pack_chunk(h);
                }
            }
        };
        constexpr bool EARLY = ALIGNED && ROUNDS <= 4; /* C of the next rows is fetched while these are stored */
        b128 next[ROUNDS] = {};
        if (EARLY) fetch_c(next, 0, read_c);
        char *at = o.d + first_row * o.ldd;
#pragma unroll 1
        for (int group = 0; group < OWN_MT / GROUPS; ++group) { /* rolled: code that has not run yet is slow to come */
            const u32 below = group * (GROUPS * 16);
            b128 cs[ROUNDS] = {};
            if (EARLY) {
#pragma unroll
                for (int q = 0; q < ROUNDS; ++q) cs[q] = next[q];
                fetch_c(next, below + GROUPS * 16, read_c && group + 1 < OWN_MT / GROUPS);
            } else {
                fetch_c(cs, below, read_c);
            }
            put_group<0, OWN_MT / GROUPS>(to, acc, group);
            meet();
#pragma unroll
            for (int q0 = 0; q0 < ROUNDS; q0 += TOGETHER) {
                eight_sums x[TOGETHER];
                b128 v[TOGETHER];
                char *row[TOGETHER];
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) {
                    row[q] = at;
                    at += STEP * o.ldd;
                    x[q] = get_sums<!ALIGNED>(buffer + ((q0 + q) * STEP + w.lane / ACROSS) * PITCH, column(row[q]),
                                              columns);
                }
                if (plain) {
#pragma unroll
                    for (int q = 0; q < TOGETHER; ++q) v[q] = rounded(x[q]);
                } else {
#pragma unroll
                    for (int q = 0; q < TOGETHER; ++q) v[q] = blend(x[q], cs[q0 + q], o.alpha, o.beta);
                }
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) {
                    const int col = column(row[q]);
                    st_global(row[q] + col * 2, v[q], first_row + below + (q0 + q) * STEP < o.m && col + 8 <= o.width);
                }
            }
            if (!ALIGNED) store_row_ends(w, o, buffer, row0 + below, columns);
            meet();
        }
    }

    /* Stores what whole chunks leave of the rows from `top` on at either end of the block's columns, in pairs of
     * halves. A lane has the head or the tail of a row. Shared memory has the rows at `buffer`, `columns` of each. */
    static DEVICE void store_row_ends(const warp &w, const output &o, u32 buffer, u32 top, u32 columns)
    {
        const bool heads = w.n == 0, tails = o.width < WN + 8, read_c = o.beta != 0;
        if (!heads && !tails) return;
#pragma unroll 1
        for (u32 i = w.lane; i < (heads && tails ? 2 : 1) * GROUPS * 16; i += 32) {
            const bool is_tail = !heads || i >= GROUPS * 16;
            const u32 r = i % (GROUPS * 16), row = top + r;
            char *const begin = o.d + row * o.ldd;
            const int head = lead<false>(begin), tail = o.width > head ? (o.width - head) % 8 : 0;
            int from = 0, count = head < o.width ? head : o.width;
            if (is_tail) from = o.width - tail, count = from - head < WN ? tail : 0;
            if (row >= o.m || count <= 0) continue;
            const eight_sums x = get_sums<true>(buffer + r * PITCH, from, columns);
            u32 h[9] = {};
#pragma unroll
            for (int e = 0; e < 7; ++e) ld_global_half(h[e], o.c + row * o.ldc + (from + e) * 2, read_c && e < count);
#pragma unroll
            for (int e = 0; e < 8; e += 2)
                h[e / 2] = pack_halves(blend(sum_of(x, e), h[e], o.alpha, o.beta),
                                       blend(sum_of(x, e + 1), h[e + 1], o.alpha, o.beta));
            char *to = begin + from * 2;
            const bool odd = (u64)to & 2;
            if (odd) st_global_half(to, h[0]), to += 2, --count;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const u32 pair = odd ? permute(h[e], h[e + 1], 0x5432) : h[e];
                if (2 * e + 1 < count) st_global_word(to + e * 4, pair);
                else if (2 * e < count) st_global_half(to + e * 4, pair);
            }
        }
    }
};

/* The kernel of the variant that the build asks for: HGEMM_VARIANT is its symbol, HGEMM_ROW its row, HGEMM_OP_A and
 * HGEMM_OP_B are 1 if that operand is transposed, HGEMM_ACCESS is an access. HGEMM_T4 is defined for the machine
 * code of a row with columns of the T4's own. */
#ifdef HGEMM_T4
#define HGEMM_ROW_TYPE(name) t4_##name
#else
#define HGEMM_ROW_TYPE(name) row_##name
#endif
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
#define HGEMM_ENTRY(rung, swizzled)                                                                             \
    using variant = tile<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B, swizzled, HGEMM_ACCESS>;        \
    extern "C" __global__ void __launch_bounds__(variant::THREADS, variant::MIN_BLOCKS) HGEMM_VARIANT(const args p) \
    {                                                                                                           \
        rung<variant>(p);                                                                                       \
    }
