/* SPDX-License-Identifier: MIT */
/*
 * The verbs that the rungs speak: where a block and a warp stand, fetch (global -> registers),
 * commit (registers -> shared), load (shared -> fragments), multiply, store (accumulators -> D).
 * All index arithmetic of a tile is here and nowhere else.
 *
 * Both operands are treated alike. With x for the dimension an operand keeps (m for A, n for B),
 * its tile is X x BK and either k-contiguous (stored rows are x) or x-contiguous (stored rows are
 * k); shared memory holds it as global memory does, row by row, in chunks of 8 halves (16 bytes).
 *
 * Edges cost the main loop nothing:
 *   x   an access past the last row goes to the last one instead, one past the last column to what
 *       follows in memory. What it brings only reaches elements of D that do not exist and are not stored.
 *   k   the first k-tile is the short one: it has k - (tiles - 1) * BK live k's and zeros beyond.
 */
#pragma once
#include "insn.cuh"

struct args {
#define HGEMM_ARG(type, name) type name;
#include "../src/kernels.def"
#undef HGEMM_ARG
};

enum accumulator { f16, f32 };

/* A row of the table as a type, row_<name>; as what it is on a T4 alone, t4_<name>. They differ in the walk
 * over D, in what the L2 cache is told, in the order of instructions and in NOPs: not in any bit of D. */
#define HGEMM_KERNEL(rung, name, bm, bn, bk, wm, wn, wk, stages, acc, ops, align, blocks, newer, group, ahead, lds, sts, gap, lag) \
    struct row_##name {                                                                              \
        static constexpr int BM = bm, BN = bn, BK = bk, WM = wm, WN = wn, WK = wk, STAGES = stages;  \
        static constexpr int BLOCKS = blocks, NEWER_BLOCKS = newer;                                  \
        static constexpr int GROUP = group, AHEAD = ahead;                                           \
        static constexpr int LDS_GAP = lds, STS_FIRST = sts, STS_GAP = gap, LDG_LAG = lag;           \
        static constexpr accumulator ACC = acc;                                                      \
        static constexpr bool FOR_T4 = false, ROUNDED = false;                                       \
    };
#define HGEMM_ON_T4(name, group, ahead, lds, sts, gap, lag)                                \
    struct t4_##name : row_##name {                                                        \
        static constexpr int GROUP = group, AHEAD = ahead;                                 \
        static constexpr int LDS_GAP = lds, STS_FIRST = sts, STS_GAP = gap, LDG_LAG = lag; \
        static constexpr bool FOR_T4 = true;                                               \
    };
#include "../src/kernels.def"
#undef HGEMM_KERNEL
#undef HGEMM_ON_T4

static __device__ __forceinline__ u32 least(u32 a, u32 b) { return a < b ? a : b; }

/* n / d, where reciprocal is HGEMM_RECIPROCAL(d), at least 2^32 / d - 1: the high word of n * reciprocal
 * is the quotient or one less. A division proper takes 20 instructions, each waiting for the last. */
static __device__ __forceinline__ u32 divide(u32 n, u32 d, u32 reciprocal)
{
    const u32 q = __umulhi(n, reciprocal);
    return q + (n - q * d >= d);
}

/*
 * How a variant reads A and B. A thread moves chunks: 8 contiguous halves, 16 bytes.
 *   X16  every chunk is 16-byte aligned and whole: one load
 *   X8   half chunks are 8-byte aligned and whole: two loads
 *   ANY  chunks are aligned to 2 bytes. Two aligned 16-byte loads cover one, and what is needed of
 *        them is picked when it is stored. Only in the first two k-tiles, from either end of k,
 *        they might reach outside of the matrix; what is there is read half by half.
 *   FAR  leading dimensions beyond 32-bit offsets within a tile: all is read half by half.
 */
enum access { X16, X8, ANY, FAR };

/* The part of an operand that a block reads: x0 .. of `xs`, rows `ld` bytes apart. The whole matrix
 * is at begin .. end. */
struct source {
    const char *base, *begin, *end;
    u64 ld;
    u32 x0, xs;
};

/* A chunk in registers, as aligned loads bring it: it begins `shift` bytes into them. X8 has its second
 * half loaded by itself, where that is wanted. load() leaves undefined what is not. read() does not: it is
 * zero then. Both must stay within the matrix; where ANY would not, read_end() does. */
template <access ACCESS> struct chunk {
    b128 v;
    __device__ __forceinline__ void load(const char *p, bool when)
    {
        if (ACCESS == X8) ld_generic(v.x, v.y, p, when), ld_generic(v.z, v.w, p + 8, when);
        else ld_generic(v, p, when);
    }
    __device__ __forceinline__ void read(const char *p, bool when, bool when_second)
    {
        v = b128{};
        if (ACCESS == X8) ld_global(v.x, v.y, p, when), ld_global(v.z, v.w, p + 8, when_second);
        else ld_global(v, p, when);
    }
    __device__ __forceinline__ b128 get(u32) const { return v; }
};
template <> struct chunk<ANY> {
    b128 v, next;
    __device__ __forceinline__ void load(const char *p, bool when)
    {
        ld_generic(v, p, when);
        ld_generic(next, p + 16, when);
    }
    __device__ __forceinline__ void read(const char *p, bool when, bool)
    {
        v = next = b128{};
        ld_global(v, p, when);
        ld_global(next, p + 16, when);
    }
    /* The same where the loads would reach outside of the matrix: its words, and the half before or after them. */
    __device__ __forceinline__ void read_end(const source &s, const char *p)
    {
        const int first = s.begin > p ? (int)(s.begin - p) : 0, end = s.end - p < 32 ? (int)(s.end - p) : 32; /* bytes of the matrix */
        u32 w[8] = {}, low = 0, high = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) ld_global_word(w[i], p + i * 4, i * 4 >= first && i * 4 + 4 <= end);
        ld_global(low, p + end - 2, end % 4 == 2 && end > first);
        ld_global(high, p + first, first % 4 == 2 && first < end);
#pragma unroll
        for (int i = 0; i < 8; ++i) w[i] |= (end - 2 == i * 4 ? low : 0) | (first - 2 == i * 4 ? high << 16 : 0);
        v = b128{w[0], w[1], w[2], w[3]};
        next = b128{w[4], w[5], w[6], w[7]};
    }
    __device__ __forceinline__ b128 get(u32 shift) const
    {
        const u32 half = shift & 2 ? 0x5432 : 0x3210, x[8] = {v.x, v.y, v.z, v.w, next.x, next.y, next.z, next.w};
        u32 y[6], z[5];
#pragma unroll
        for (int i = 0; i < 6; ++i) y[i] = shift & 8 ? x[i + 2] : x[i];
#pragma unroll
        for (int i = 0; i < 5; ++i) z[i] = shift & 4 ? y[i + 1] : y[i];
        return b128{permute(z[0], z[1], half), permute(z[1], z[2], half), permute(z[2], z[3], half), permute(z[3], z[4], half)};
    }
};

/* The first `count` halves of a chunk, zeros for the others. */
static __device__ __forceinline__ b128 first_halves(const b128 &v, int count)
{
    const u32 x[4] = {v.x, v.y, v.z, v.w};
    u32 y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = count > 2 * i + 1 ? x[i] : count == 2 * i + 1 ? x[i] & 0xffff : 0;
    return b128{y[0], y[1], y[2], y[3]};
}

template <int X, int BK, bool K_CONTIGUOUS, int THREADS, bool SWIZZLED, access ACCESS> struct operand {
    static constexpr int ROWS = K_CONTIGUOUS ? X : BK, COLS = K_CONTIGUOUS ? BK : X;
    static constexpr int BYTES = X * BK * 2;
    static constexpr int CHUNKS = COLS / 8;       /* of a row */
    /* LANES threads stand side by side in a row. Each has ACROSS chunks of it, that far apart, and the same of DOWN
     * rows: 128 bytes at a time are as good as more, and chunks of one row share an address. */
    static constexpr int LEAST = THREADS / ROWS > 8 ? THREADS / ROWS : 8;
    static constexpr int LANES = ACCESS <= X8 && CHUNKS > LEAST ? LEAST : CHUNKS, ACROSS = CHUNKS / LANES;
    static constexpr int STEP = THREADS / LANES; /* rows between a thread's */
    static constexpr int DOWN = ROWS / STEP, LOADS = DOWN * ACROSS; /* chunks of a thread */
    static_assert(THREADS % LANES == 0 && CHUNKS % LANES == 0 && ROWS % STEP == 0, "threads do not divide the tile");
    static_assert(ACCESS != ANY || STEP % 8 == 0, "all chunks of a thread need the same shift");

    /*
     * Byte offset of a chunk in the tile. Shared memory serves 128 bytes (a line of 8 chunks) at
     * a time, so 8 chunks that are read together must lie in 8 different columns of such lines.
     * ldmatrix reads one chunk column of 8 consecutive rows; swizzled, row r has its chunks
     * XORed with its line number, which spreads them over all columns:
     *
     *     rows of 128 bytes or more      rows of 64 bytes: two in a line
     *     row 0   0 1 2 3 4 5 6 7        rows 0,1   0 1 2 3  0 1 2 3
     *     row 1   1 0 3 2 5 4 7 6        rows 2,3   1 0 3 2  1 0 3 2
     *     row 2   2 3 0 1 6 7 4 5        rows 4,5   2 3 0 1  2 3 0 1
     *     ...                            rows 6,7   3 2 1 0  3 2 1 0
     *
     * Conflict-free for ldmatrix and for 16-byte stores of consecutive threads; unswizzled,
     * ldmatrix takes 8 or 4 wavefronts where one would do.
     */
    static constexpr u32 LINE_ROWS = CHUNKS >= 8 ? 1 : 8 / CHUNKS, PHASES = CHUNKS >= 8 ? 8 : CHUNKS;
    static __device__ __forceinline__ u32 phase(u32 row) { return SWIZZLED ? row / LINE_ROWS % PHASES : 0; }
    static __device__ __forceinline__ u32 offset(u32 row, u32 c) { return row * (COLS * 2) + ((c ^ phase(row)) << 4); }

    /* Stored row and column of a thread's first chunk; chunk i is so many below, and across from there. */
    static __device__ __forceinline__ u32 row(u32 thread) { return thread / LANES; }
    static __device__ __forceinline__ u32 col(u32 thread) { return thread % LANES * 8; }
    static __device__ __forceinline__ constexpr int below(int i) { return i / ACROSS * STEP; }
    static __device__ __forceinline__ constexpr int across(int i) { return i % ACROSS * (LANES * 8); }

    /* Rows of a thread's that the matrix has; others repeat its last row. */
    static __device__ __forceinline__ int inside(const source &s, u32 thread) { return K_CONTIGUOUS ? (int)((s.xs - s.x0 + STEP - 1 - row(thread)) / STEP) : DOWN; }

    /* k of half e of a thread's chunk i, within the k-tile. */
    static __device__ __forceinline__ u32 k(u32 thread, int i, int e) { return K_CONTIGUOUS ? col(thread) + across(i) + e : row(thread) + below(i); }

    /* Columns of the matrix from a thread's first on, and whether half e of its chunk i is one of them. */
    static __device__ __forceinline__ int columns(const source &s, u32 thread) { return (int)(s.xs - s.x0 - col(thread)); }
    static __device__ __forceinline__ bool has(int columns, int i, int e) { return K_CONTIGUOUS || columns > across(i) + e; }

    /* The part of a matrix of `ks` k's from x0 on. */
    static __device__ __forceinline__ source whole(const char *base, u64 ld, u32 x0, u32 xs, u32 ks)
    {
        const char *const end = base + ((K_CONTIGUOUS ? xs : ks) - 1) * ld + (K_CONTIGUOUS ? ks : xs) * 2;
        return source{base, base, end, ld, x0, xs};
    }

    /* Global: where the block's k-tile at k0 begins, and the byte offset of column c of row r from
     * there, for an access of `width` halves; distance() has it stay within x, or within the last whole
     * chunk of a copy's row, which are filled with zeros. */
    static __device__ __forceinline__ u64 k_bytes(const source &s, u32 k) { return K_CONTIGUOUS ? (u64)k * 2 : k * s.ld; }
    static __device__ __forceinline__ const char *start(const source &s, u32 k0)
    {
        return s.base + (K_CONTIGUOUS ? s.x0 * s.ld : (u64)s.x0 * 2) + k_bytes(s, k0);
    }
    static __device__ __forceinline__ u64 reach(const source &s, u32 r, u32 c) { return (K_CONTIGUOUS ? least(r, s.xs - s.x0 - 1) : r) * s.ld + c * 2; }
    static __device__ __forceinline__ u64 distance(const source &s, u32 r, u32 c, u32 width) { return reach(s, r, K_CONTIGUOUS ? c : least(c, (s.xs - s.x0 - 1) / width * width)); }

    /* Chunk i of the k-tile that starts at `tile`: its k's below `live`, zeros for the others. */
    static __device__ __forceinline__ b128 fetch(const char *tile, const source &s, u32 row, u32 col, int i, u32 live)
    {
        const u32 r = row + below(i);
        col += across(i);
        if constexpr (ACCESS == X16) {
            b128 v = {};
            ld_global(v, tile + distance(s, r, col, 8), (K_CONTIGUOUS ? col : r) < live);
            return v;
        } else if constexpr (ACCESS == X8) {
            b128 v = {};
            ld_global(v.x, v.y, tile + distance(s, r, col, 4), (K_CONTIGUOUS ? col : r) < live);
            ld_global(v.z, v.w, tile + distance(s, r, col + 4, 4), (K_CONTIGUOUS ? col + 4 : r) < live);
            return v;
        } else {
            u32 h[8] = {};
#pragma unroll
            for (int e = 0; e < 8; ++e) ld_global(h[e], tile + distance(s, r, col + e, 1), (K_CONTIGUOUS ? col + e : r) < live);
            return b128{permute(h[0], h[1], 0x5410), permute(h[2], h[3], 0x5410), permute(h[4], h[5], 0x5410), permute(h[6], h[7], 0x5410)};
        }
    }

    /* Shared: byte offset of chunk i, and the same split into a part per thread, an XOR and an
     * addend that are constants. Rows that are STEP apart have phases that differ by an XOR, because
     * everything here is a power of two; chunks LANES apart differ in bits that no phase has. */
    static __device__ __forceinline__ u32 put(u32 thread, int i) { return offset(row(thread) + below(i), (col(thread) + across(i)) / 8); }
    static __device__ __forceinline__ u32 put_xor(int i) { return phase(below(i)) << 4; }
    static __device__ __forceinline__ u32 put_add(int i) { return below(i) * COLS * 2 + across(i) * 2; }

    /* Shared: byte offset of a lane's row for the j-th ldmatrix of slice kk (8 k's) of a warp tile
     * that begins at x = first: four 8x8 matrices, 32 x's wide. Split in the same way. */
    static __device__ __forceinline__ u32 get(u32 first, u32 lane, int j, int kk)
    {
        return K_CONTIGUOUS ? offset(first + j * 32 + lane, kk) : offset(kk * 8 + lane % 8, first / 8 + j * 4 + lane / 8);
    }
    static __device__ __forceinline__ u32 get_xor(int j, int kk) { return K_CONTIGUOUS ? kk << 4 : (j & 1) << 6; }
    static __device__ __forceinline__ u32 get_add(int j, int kk)
    {
        return K_CONTIGUOUS ? j * 32 * COLS * 2 : (j >> 1) * 128 + kk * 8 * COLS * 2;
    }

    static __device__ __forceinline__ void matrices(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x4(r0, r1, r2, r3, address);
        else ldmatrix_x4_trans(r0, r1, r2, r3, address);
    }
    static __device__ __forceinline__ void matrices(u32 &r0, u32 &r1, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x2(r0, r1, address);
        else ldmatrix_x2_trans(r0, r1, address);
    }

    /* Lines of 128 bytes in a k-tile, and the byte offset of each from its start. */
    static constexpr u32 LINE_COLS = (X + 63) / 64, LINES = K_CONTIGUOUS ? X * ((BK + 63) / 64) : BK * LINE_COLS;
    static __device__ __forceinline__ u32 line(const source &s, u32 i)
    {
        return (u32)(K_CONTIGUOUS ? distance(s, i % X, i / X * 64, 1) : distance(s, i / LINE_COLS, i % LINE_COLS * 64, 1));
    }
};

/* ---- a kernel variant: a row of the table, the storage of A and B, and how they are accessed --- */

/* A row of half sums, which are what D gets of those of R as they are. */
template <class R> struct rounded_row : R {
    static constexpr accumulator ACC = f16;
    static constexpr bool ROUNDED = true;
};

template <class R, bool A_K_CONTIGUOUS, bool B_K_CONTIGUOUS, bool SWIZZLED, access ACCESS> struct tile {
    typedef R row;
    static constexpr int BM = R::BM, BN = R::BN, BK = R::BK, WM = R::WM, WN = R::WN, WK = R::WK;
    static constexpr int MN_WARPS = BM / WM * (BN / WN), K_WARPS = BK / WK, THREADS = MN_WARPS * K_WARPS * 32;
    static constexpr int MT = WM / 16, NT = WN / 8; /* mma's of a warp along m and n */
    static constexpr int MMAS = MT * NT;            /* of a slice */
    static constexpr int SLICES = WK / 8;           /* of a warp, in a k-tile */
    static constexpr int OWNERS = MT < K_WARPS ? MT : K_WARPS;      /* of the K_WARPS that share a tile of D, those that store it */
    static constexpr int OWN_M = WM / OWNERS, OWN_MT = MT / OWNERS; /* rows of D that each of them stores */
    static constexpr int OWN_THREADS = MN_WARPS * OWNERS * 32;      /* theirs, the first of the block */
    static constexpr int B_LDSMS = (NT + 3) / 4, LDSMS = B_LDSMS + (MT + 1) / 2; /* of a slice */
    using A = operand<BM, BK, A_K_CONTIGUOUS, THREADS, SWIZZLED, ACCESS>;
    using B = operand<BN, BK, B_K_CONTIGUOUS, THREADS, SWIZZLED, ACCESS>;
    static constexpr int STAGE = A::BYTES + B::BYTES;
    static constexpr int SLOTS = A::LOADS + B::LOADS; /* chunks of a thread: those of A come first */
    static constexpr int BLOCKS = ACCESS <= X8 || MMAS < 32 ? R::NEWER_BLOCKS : R::BLOCKS; /* others have no registers for more */
    /* The tuned loop takes two k-tiles a turn, so that stages are constants, where registers suffice: those
     * of sums, fragments and a k-tile, and the others, fit in what a thread may have. */
    static constexpr int LIVE = MMAS * (R::ACC == f32 ? 4 : 2) + 2 * (2 * MT + NT) + 4 * SLOTS, OTHERS = ACCESS == X16 ? 65 : 127;
    static constexpr int SHARE = HGEMM_SM_REGISTERS / (BLOCKS * THREADS), ROOM = SHARE < HGEMM_THREAD_REGISTERS ? SHARE : HGEMM_THREAD_REGISTERS;
    static constexpr bool PAIRS = ACCESS <= X8 && LIVE + OTHERS <= ROOM && MMAS >= 8;
    /* A load of Turing's adds an offset to a base that all threads share. A newer GPU's does not, and each
     * instruction that writes a register takes a clock or two from the tensor cores: a row of A or B has a
     * pointer there, unless warps are few and have many rows. */
    static constexpr bool POINTERS = !R::FOR_T4 && ACCESS <= X8 && THREADS > 128;
    static_assert(WM % 64 == 0 || WM == 32 || WM == 16, "get_xor needs it");
    static_assert(WN % 64 == 0 || WN == 32 || WN == 16, "get_xor needs it");
    static_assert(SLICES % 2 == 0, "fragments take turns");
    static_assert(BK >= 2 * HGEMM_LEAST_TAIL, "the first two k-tiles are not deep enough");
    static_assert(MT % OWNERS == 0, "the rows of a tile are not shared evenly");

    template <accumulator, class> struct sums_of { typedef u32 type[2]; };
    template <class V> struct sums_of<f32, V> { typedef float type[4]; };
    typedef typename sums_of<R::ACC, void>::type sums[MT][NT];

    struct fragments { u32 a[MT][2], b[NT]; };
    struct staging { b128 v[SLOTS]; };              /* a k-tile on its way through a thread's registers */

    /* What this block computes: a tile of D, or one split of it. Splits come after whole tiles, so that these start
     * together; before them in code for a T4 alone that has two blocks on a multiprocessor: one's place would end up empty. */
    static constexpr bool PARTS_FIRST = R::FOR_T4 && R::BLOCKS > 1;
    struct part {
        u32 tile, split, split_tiles;
        bool is_split;
        __device__ __forceinline__ part(const args &p, u32 tiles)
        {
            const u32 index = block_index(), past = PARTS_FIRST ? index : index - p.whole_tiles;
            split_tiles = tiles - p.whole_tiles;
            is_split = PARTS_FIRST ? index < split_tiles * p.splits : index >= p.whole_tiles;
            split = is_split ? divide(past, split_tiles, p.inv_split_tiles) : 0;
            if (PARTS_FIRST) tile = is_split ? p.whole_tiles + past - split * split_tiles : index - split_tiles * p.splits;
            else tile = index - split * split_tiles;
        }
    };

    /* Where this block stands. */
    struct block {
        u32 m0, n0;          /* first row and column of its tile of D */
        u32 k;               /* of this split */
        u32 rows, columns;   /* tiles of D */
        u32 tiles;           /* k-tiles */
        u32 tail, head;      /* live k's of k-tile 0, which is the last in memory, and of k-tile 1, the first */
        source a, b;

        __device__ __forceinline__ explicit block(const args &p)
        {
            /* Blocks walk GROUP rows of tiles together, column by column, so that those in flight
             * at one time share their rows of A and columns of B in the L2 cache. */
            rows = ((u32)p.m + BM - 1) / BM, columns = ((u32)p.n + BN - 1) / BN;
            const part of(p, rows * columns);
            const u32 group = divide(of.tile, R::GROUP * columns, p.inv_group_tiles), rest = of.tile - group * (R::GROUP * columns);
            const u32 top = group * R::GROUP, height = least(rows - top, R::GROUP);
            const u32 column = height == R::GROUP ? rest / R::GROUP : divide(rest, height, p.inv_last_rows);
            m0 = (top + rest - column * height) * BM;
            n0 = column * BN;
            const u32 k0 = of.split * p.k_split;
            k = of.is_split ? least(p.k_split, p.k - k0) : p.k;
            tiles = (k + BK - 1) / BK;
            tail = k - (tiles - 1) * BK;
            head = BK;
            if (tail < HGEMM_LEAST_TAIL && tiles > 1) tail += HGEMM_LEAST_TAIL, head -= HGEMM_LEAST_TAIL;
            const long long batch = batch_index();
            a = A::whole((const char *)p.a + batch * p.stride_a * 2, (u64)p.lda * 2, m0, (u32)p.m, (u32)p.k);
            b = B::whole((const char *)p.b + batch * p.stride_b * 2, (u64)p.ldb * 2, n0, (u32)p.n, (u32)p.k);
            a.base += A::k_bytes(a, k0);
            b.base += B::k_bytes(b, k0);
        }
    };

    /* Where this warp stands in its block. K_WARPS warps have the same tile of D: each multiplies WK of
     * the k-tile's k's, and OWNERS of them store OWN_M rows of the sum each. */
    struct warp {
        u32 lane, m, n; /* first row and column of its tile within the block's */
        u32 share;      /* which of the K_WARPS it is */
        __device__ __forceinline__ warp()
        {
            const u32 w = thread_index() / 32;
            lane = thread_index() % 32;
            m = w % (BM / WM) * WM;
            n = w / (BM / WM) % (BN / WN) * WN;
            share = K_WARPS > 1 ? w / MN_WARPS : 0;
        }
    };

    static __device__ __forceinline__ void clear(sums &acc)
    {
#pragma unroll
        for (int i = 0; i < MT; ++i)
#pragma unroll
            for (int j = 0; j < NT; ++j)
#pragma unroll
                for (auto &x : acc[i][j]) x = 0;
    }

    /* fetch, commit, load: every address computed from scratch. */

    static __device__ __forceinline__ void fetch(staging &s, const block &at, u32 t)
    {
#pragma unroll
        for (int q = 0; q < SLOTS; ++q) {
            s.v[q] = fetch_one(at, t, q);
            if (ACCESS > X8 && q % 4 == 3) warp_barrier(); /* or ptxas has all halves in flight, and spills */
        }
    }

    static __device__ __forceinline__ b128 fetch_one(const block &at, u32 t, int q)
    {
        const u32 thread = thread_index(), live = t >= at.tiles ? 0 : t == 0 ? at.tail : t == 1 ? at.head : BK;
        const u32 k0 = t == 0 ? at.k - at.tail : t == 1 ? 0 : at.head + (t - 2) * BK;
        if (q < A::LOADS) return A::fetch(A::start(at.a, k0), at.a, A::row(thread), A::col(thread), q, live);
        return B::fetch(B::start(at.b, k0), at.b, B::row(thread), B::col(thread), q - A::LOADS, live);
    }

    static __device__ __forceinline__ void commit(const staging &s, u32 stage)
    {
        const u32 thread = thread_index(), to = shared_base() + stage * STAGE;
#pragma unroll
        for (int q = 0; q < SLOTS; ++q)
            st_shared(to + (q < A::LOADS ? A::put(thread, q) : A::BYTES + B::put(thread, q - A::LOADS)), s.v[q]);
    }

    static __device__ __forceinline__ void load(fragments &f, const warp &w, u32 stage, int kk)
    {
        const u32 from = shared_base() + stage * STAGE;
#pragma unroll
        for (int j = 0; j < LDSMS; ++j)
            load_one(f, j, from + (j < B_LDSMS ? A::BYTES + B::get(w.n, w.lane, j, kk) : A::get(w.m, w.lane, j - B_LDSMS, kk)));
    }

    /* The j-th ldmatrix of a slice: those of B come first. */
    static __device__ __forceinline__ void load_one(fragments &f, int j, u32 address)
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

    /* The h-th mma of a slice: along n first, turning back at each end, so that neighbours share
     * an operand. */
    static __device__ __forceinline__ void multiply_one(sums &acc, const fragments &f, int h)
    {
        const int i = h / NT, j = i % 2 ? NT - 1 - h % NT : h % NT;
        mma_m16n8k8(acc[i][j], f.a[i], f.b[j]);
    }

    static __device__ __forceinline__ void multiply(sums &acc, const fragments &f)
    {
#pragma unroll
        for (int h = 0; h < MMAS; ++h) multiply_one(acc, f, h);
    }

    /* fetch, commit, load with every address computed once: a base that all threads share plus an
     * offset, or a pointer; in shared memory an XOR and an immediate. */

    /* A thread's rows of a k-tile: where it begins, aligned down, the first chunk of each from there, aligned down,
     * and the same as pointers. */
    template <class O> struct rows {
        const char *base, *at[O::DOWN];
        u32 from[O::DOWN];

        __device__ __forceinline__ void move(u64 bytes)
        {
            base += bytes;
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) at[i] += bytes;
        }
        __device__ __forceinline__ void point()
        {
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) at[i] = base + from[i];
        }
        __device__ __forceinline__ const char *chunk_at(int i) const { return (POINTERS ? at[i / O::ACROSS] : base + from[i / O::ACROSS]) + O::across(i) * 2; }
    };

    struct index {
        rows<A> a;                      /* of the k-tile to fetch next */
        rows<B> b;
        u32 shift;                      /* of a chunk from where it is aligned down to: of A, and << 4 of B */
        int columns_a, columns_b;       /* of the matrix, from a thread's first on */
        u32 put_a, put_b, get_a, get_b; /* shared addresses, from the first stage */
        u32 t;                          /* number of the k-tile to fetch next */
        chunk<ACCESS> next[SLOTS];      /* the k-tile in registers */
        const char *ahead;              /* the line that this thread brings to the L2 cache next, */
        u32 ahead_step, ahead_stop;     /* from there to the next k-tile's; and how many are left when it is done */

        /* Brings k-tile 0 to shared memory and k-tile 1 to registers. */
        __device__ __forceinline__ index(const block &at, const warp &w)
        {
            const u32 base = shared_base(), thread = thread_index();
            put_a = base + A::put(thread, 0);
            put_b = base + A::BYTES + B::put(thread, 0);
            get_a = base + A::get(w.m, w.lane, 0, w.share * SLICES);
            get_b = base + A::BYTES + B::get(w.n, w.lane, 0, w.share * SLICES);
            columns_a = A::columns(at.a, thread), columns_b = B::columns(at.b, thread);
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
                /* Where a k-tile begins is a multiple of 16 k's: offsets and shifts are the same for all. */
                t = 2;
                shift = point<A>(a, at.a, at.k - at.tail, thread);
                shift += point<B>(b, at.b, at.k - at.tail, thread) << 4;
                const u64 back_a = A::k_bytes(at.a, at.k - at.tail), back_b = B::k_bytes(at.b, at.k - at.tail);
                chunk<ACCESS> first[SLOTS];
                if constexpr (ACCESS != ANY || SLOTS <= 3) { /* both at once */
                    read(first, at, at.tiles > 0 ? at.tail : 0, thread);
                    a.base -= back_a, b.base -= back_b;
                    read(next, at, at.tiles > 1 ? at.head : 0, thread);
                    a.base += A::k_bytes(at.a, at.head), b.base += B::k_bytes(at.b, at.head);
                    start_ahead(at);
                    put_first(first, at, thread);
                } else { /* one after the other, for want of registers; rolled, for it is long, but where the loop takes one */
#pragma unroll(MMAS < 64 ? 1 : 2)
                    for (u32 tile = 0; tile < 2; ++tile) {
                        if (tile == 1) put_first(next, at, thread), a.base -= back_a, b.base -= back_b;
                        read(next, at, tile >= at.tiles ? 0 : tile == 0 ? at.tail : at.head, thread);
                        if (tile == 0 && at.tiles > 1) {
#pragma unroll
                            for (int q = 0; q < SLOTS; ++q) {
                                const int j = q - A::LOADS;
                                if (q < A::LOADS ? A::has(columns_a, q, 0) : B::has(columns_b, j, 0))
                                    prefetch_l2(q < A::LOADS ? a.base - back_a + a.from[q] : b.base - back_b + b.from[j]);
                            }
                        }
                    }
                    a.base += A::k_bytes(at.a, at.head), b.base += B::k_bytes(at.b, at.head);
                    start_ahead(at);
                }
            }
            a.point(), b.point();
        }

        /* k-tile 0: where chunks are not whole, what follows its last k is not zero yet. */
        __device__ __forceinline__ void put_first(const chunk<ACCESS> (&from)[SLOTS], const block &at, u32 thread) const
        {
#pragma unroll
            for (int q = 0; q < SLOTS; ++q) {
                const b128 v = from[q].get(q < A::LOADS ? shift : shift >> 4);
                const bool cut = ACCESS == ANY && (q < A::LOADS ? A_K_CONTIGUOUS : B_K_CONTIGUOUS);
                put(q, cut ? first_halves(v, (int)(at.tail - (q < A::LOADS ? A::col(thread) : B::col(thread)))) : v, 0);
            }
        }

        /* A step may be shorter than DRAM takes to answer: the L2 cache is told of a k-tile AHEAD
         * steps before it is loaded, a line by a thread. Of the blocks that read the same, a power of
         * two, at most as many as rows of them are walked together, tell an equal part each; where
         * one's threads are too few for its part, the rest is not told. */
        static constexpr u32 AHEAD = R::AHEAD, SHARERS = R::GROUP;
        __device__ __forceinline__ void start_ahead(const block &at)
        {
            if (ACCESS == FAR || AHEAD == 0) return;
            const u32 thread = thread_index();
            const int log_a = 31 - __clz(least(at.columns, SHARERS)), log_b = 31 - __clz(least(at.rows, SHARERS)); /* that share */
            const u32 lines_a = A::LINES >> log_a, lines_b = B::LINES >> log_b;                                    /* of each */
            const u32 part_a = at.n0 / BN & (1 << log_a) - 1, part_b = at.m0 / BM & (1 << log_b) - 1;
            static_assert(A::LINES % SHARERS == 0 && B::LINES % SHARERS == 0, "parts are equal");
            const bool is_a = thread < lines_a, mine = thread < lines_a + lines_b;
            const u32 i = is_a ? part_a * lines_a + thread : part_b * lines_b + thread - lines_a;
            ahead = is_a ? a.base + A::line(at.a, i) : b.base + B::line(at.b, i);
            ahead_step = (u32)(is_a ? A::k_bytes(at.a, BK) : B::k_bytes(at.b, BK));
            ahead_stop = mine ? AHEAD + 2 : 0xffffffff;
#pragma unroll
            for (u32 t = 2; t < 2 + AHEAD; ++t, ahead += ahead_step)
                if (mine && t < at.tiles) prefetch_l2(ahead);
        }
        __device__ __forceinline__ void tell_ahead(u32 left)
        {
            if (ACCESS == FAR || AHEAD == 0) return;
            if (left > ahead_stop) prefetch_l2(ahead);
            ahead += ahead_step;
        }

        /* The chunks of the k-tile at hand that have one of its `live` k's; those at an end of the
         * matrix when all others are on their way. */
        __device__ __forceinline__ void read(chunk<ACCESS> (&to)[SLOTS], const block &at, u32 live, u32 thread) const
        {
            read<A, 0>(to, at.a, a, columns_a, live, thread);
            read<B, A::LOADS>(to, at.b, b, columns_b, live, thread);
            if constexpr (ACCESS == ANY) {
                read_ends<A, 0>(to, at.a, a, columns_a, live, thread);
                read_ends<B, A::LOADS>(to, at.b, b, columns_b, live, thread);
            }
        }

        /* Offsets from a k-tile from which 32 bytes are within the matrix: first .. last. */
        struct inner {
            u32 first, last;
            __device__ __forceinline__ inner(const source &s, const char *tile)
            {
                const u64 room = s.end - tile;
                first = room < 32 ? 0xffffffff : s.begin > tile ? (u32)(s.begin - tile) : 0;
                last = room - 32 < 0xffffffff ? (u32)room - 32 : 0xffffffff;
            }
            __device__ __forceinline__ bool holds(u32 offset) const { return ACCESS != ANY || (offset >= first && offset <= last); }
        };

        template <class O, int FIRST> static __device__ __forceinline__ void
        read(chunk<ACCESS> (&to)[SLOTS], const source &s, const rows<O> &tile, int columns, u32 live, u32 thread)
        {
            const inner range(s, tile.base);
#pragma unroll
            for (int i = 0; i < O::LOADS; ++i)
                to[FIRST + i].read(tile.base + tile.from[i / O::ACROSS] + O::across(i) * 2, O::k(thread, i, 0) < live && O::has(columns, i, 0) && range.holds(tile.from[i / O::ACROSS]),
                                   O::k(thread, i, 4) < live && O::has(columns, i, 4));
        }

        template <class O, int FIRST> static __device__ __forceinline__ void
        read_ends(chunk<ACCESS> (&to)[SLOTS], const source &s, const rows<O> &tile, int columns, u32 live, u32 thread)
        {
            static_assert(O::ACROSS == 1, "a row has several chunks of a thread");
            const inner range(s, tile.base);
            /* What repeats the last row is as near to the matrix's end, and no matter. The largest warps have no register to tell. */
            constexpr bool TELLS = MMAS < 64;
            const int inside = TELLS ? O::inside(s, thread) : O::LOADS;
            if (!O::has(columns, 0, 0)) return;
            bool all = true;
#pragma unroll
            for (int i = 0; i < O::LOADS; ++i) {
                if constexpr (TELLS) all &= range.holds(tile.from[i]) || i >= inside;
                else all &= range.holds(tile.from[i]);
            }
            if (all) return;
#pragma unroll 1
            for (int i = 0; i < O::LOADS; ++i) { /* rolled, for it is long; registers cannot be indexed */
                u32 offset = 0;
#pragma unroll
                for (int j = 0; j < O::LOADS; ++j) offset = j == i ? tile.from[j] : offset;
                if constexpr (TELLS) {
                    if (O::k(thread, i, 0) >= live || range.holds(offset) || i >= inside) continue;
                } else {
                    if (O::k(thread, i, 0) >= live || range.holds(offset)) continue;
                }
                chunk<ACCESS> c;
                c.read_end(s, tile.base + offset);
#pragma unroll
                for (int j = 0; j < O::LOADS; ++j)
                    if (j == i) to[FIRST + j] = c;
            }
        }

        /* Where the k-tile at k0 begins, aligned down, the offsets of the thread's chunks from there,
         * aligned down, and by how much: for all of them the same, and only for ANY at all. */
        template <class O> static __device__ __forceinline__ u32
        point(rows<O> &tile, const source &s, u32 k0, u32 thread)
        {
            constexpr u32 GRAIN = ACCESS == ANY ? 16 : 1;
            const char *const start = O::start(s, k0);
            const u32 skew = (u32)(u64)start % GRAIN, row = O::row(thread), col = O::col(thread);
            auto from_start = [&](u32 r) { return (u32)(ACCESS == ANY ? O::distance(s, r, col, 1) : O::reach(s, r, col)); };
            tile.base = start - skew;
#pragma unroll
            for (int i = 0; i < O::DOWN; ++i) tile.from[i] = (from_start(row + i * O::STEP) + skew) / GRAIN * GRAIN;
            return (from_start(row) + skew) % GRAIN;
        }

        /* Chunk q of the k-tile at hand, or of the one after it; nothing where !more. Columns that the matrix has
         * not are what follows in memory: the last HGEMM_LEAST_TAIL rows of k are in k-tile 0, so that it is
         * within the matrix, or selection takes ANY, which repeats the last column. */
        __device__ __forceinline__ void fetch(const block &at, int q, bool more, bool after)
        {
            const int j = q - A::LOADS;
            if (ACCESS == FAR) next[q].v = fetch_one(at, more ? t : at.tiles, q);
            else if (q < A::LOADS) next[q].load(a.chunk_at(q) + (A_K_CONTIGUOUS && after ? BK * 2 : 0), more);
            else next[q].load(b.chunk_at(j) + (B_K_CONTIGUOUS && after ? BK * 2 : 0), more);
        }

        /* All chunks are on their way: on to the next k-tile, along contiguous k's by so many at once. */
        __device__ __forceinline__ void advance(const block &at, int tiles)
        {
            a.move(A::k_bytes(at.a, BK * (A_K_CONTIGUOUS ? tiles : 1)));
            b.move(B::k_bytes(at.b, BK * (B_K_CONTIGUOUS ? tiles : 1)));
            ++t;
        }

        /* `stage`: where in shared memory, in bytes; known, or the same for all threads, it is no arithmetic. */
        __device__ __forceinline__ void put(int q, const b128 &v, u32 stage) const
        {
            const int j = q - A::LOADS;
            if (q < A::LOADS) st_shared((put_a ^ A::put_xor(q)) + A::put_add(q) + stage, v);
            else st_shared((put_b ^ B::put_xor(j)) + B::put_add(j) + stage, v);
        }
        __device__ __forceinline__ void commit(int q, u32 stage) const { put(q, next[q].get(q < A::LOADS ? shift : shift >> 4), stage); }

        __device__ __forceinline__ void load_one(fragments &f, int j, int kk, u32 stage) const
        {
            const int i = j - B_LDSMS;
            tile::load_one(f, j, j < B_LDSMS ? (get_b ^ B::get_xor(j, kk)) + B::get_add(j, kk) + stage
                                             : (get_a ^ A::get_xor(i, kk)) + A::get_add(i, kk) + stage);
        }
    };

    /* ---- epilogue: D = alpha * acc + beta * C -------------------------------------------------
     * 16 or 32 rows of each warp's at a time go through shared memory, so that lanes then hold
     * 8 consecutive columns and D is written, C read, in full 32-byte sectors. Warps that stand
     * side by side join their rows there. The pitch of 8 elements more than the row keeps the
     * writes, 8 rows by 4 lanes, free of bank conflicts.                                          */

    static constexpr int SIZE = R::ACC == f32 ? 4 : 2, PITCH = (BN + 8) * SIZE;
    static constexpr int MOST_GROUPS = R::STAGES * STAGE / (BM / OWN_M) / (16 * PITCH); /* of 16 rows of each warp, that shared memory holds */
    static constexpr int GROUPS = MOST_GROUPS < 2 || OWN_MT < 2 || MMAS >= 32 ? 1 : 2;

    static __device__ __forceinline__ void put_sums(u32 to, const u32 (&x)[2], int j)
    {
        st_shared(to + j * 16, x[0]);
        st_shared(to + j * 16 + 8 * PITCH, x[1]);
    }
    static __device__ __forceinline__ void put_sums(u32 to, const float (&x)[4], int j)
    {
        st_shared(to + j * 32, x[0], x[1]);
        st_shared(to + j * 32 + 8 * PITCH, x[2], x[3]);
    }

    /* Eight sums of a row as shared memory has them. */
    struct eight { u32 v[2 * SIZE]; };
    static __device__ __forceinline__ float sum(const eight &x, int e) { return R::ACC == f32 ? __uint_as_float(x.v[e % (2 * SIZE)]) : half_to_float(x.v[e / 2] >> e % 2 * 16); }

    /* Those from column c, a multiple of 8; or from any column of 0 .. columns, where those that are
     * not in the row are undefined. */
    template <bool ANYWHERE> static __device__ __forceinline__ eight get_sums(u32 row, int c, u32 columns)
    {
        eight x;
        if constexpr (R::ACC == f32 && ANYWHERE) {
#pragma unroll
            for (int e = 0; e < 8; ++e) ld_shared(x.v[e], row + least(c + e, columns - 1) * 4);
        } else if constexpr (R::ACC == f32) {
            b128 v, w;
            ld_shared(v, row + c * 4);
            ld_shared(w, row + c * 4 + 16);
            x = eight{{v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}};
        } else {
            b128 v;
            if constexpr (ANYWHERE) {
                chunk<ANY> w;
                const u32 at = c * 2 & ~15;
                ld_shared(w.v, row + least(at, columns * 2 - 16));
                ld_shared(w.next, row + least(at + 16, columns * 2 - 16));
                v = w.get(c * 2 & 15);
            } else {
                ld_shared(v, row + c * 2);
            }
            x = eight{{v.x, v.y, v.z, v.w}};
        }
        return x;
    }

    static __device__ __forceinline__ float blend(float x, u32 c, float alpha, float beta) { return __fmaf_rn(beta, half_to_float(c), __fmul_rn(alpha, x)); }
    static __device__ __forceinline__ b128 blend(const eight &x, const b128 &c, float alpha, float beta)
    {
        const u32 cs[4] = {c.x, c.y, c.z, c.w};
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = halves(blend(sum(x, 2 * e), cs[e], alpha, beta), blend(sum(x, 2 * e + 1), cs[e] >> 16, alpha, beta));
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* The same for alpha = 1 and beta = 0: -0 becomes 0. */
    static __device__ __forceinline__ b128 rounded(const eight &x)
    {
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) d[e] = R::ROUNDED ? x.v[e] : R::ACC == f32 ? halves(sum(x, 2 * e), sum(x, 2 * e + 1)) : add_halves(x.v[e], 0);
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* ---- split k ------------------------------------------------------------------------------
     * The blocks of a tile leave their accumulators in the workspace and count themselves. The
     * last one to come adds all of them up in the order of k, in single precision, so that the
     * result does not depend on which one that is; it sets the counter back to zero.             */

    static constexpr int WORDS = R::ACC == f32 ? 4 : 2, CHUNKS = OWN_MT * NT * WORDS / 4; /* of a thread's sums: per mma; of 16 bytes */
    /* Chunks that are added up together; splits in flight: more loads for rungs that are ever split, if registers suffice. */
    static constexpr bool MORE = R::LDS_GAP > 0 && MMAS < 64;
    static constexpr int BATCH = CHUNKS < 4 ? CHUNKS : CHUNKS > 4 && MORE ? 8 : 4, AHEAD = (CHUNKS >= 4 && MORE ? 16 : 8) / BATCH;

    static __device__ __forceinline__ u32 word(const u32 (&x)[2], int i) { return x[i]; }
    static __device__ __forceinline__ u32 word(const float (&x)[4], int i) { return __float_as_uint(x[i]); }
    static __device__ __forceinline__ u32 get_word(const sums &acc, int i) { return word(acc[i / WORDS / NT][i / WORDS % NT], i % WORDS); }
    static __device__ __forceinline__ b128 get_chunk(const sums &acc, int c) { return b128{get_word(acc, 4 * c), get_word(acc, 4 * c + 1), get_word(acc, 4 * c + 2), get_word(acc, 4 * c + 3)}; }
    static __device__ __forceinline__ void set_word(u32 (&x)[2], int i, float lo, float hi) { x[i] = halves(lo, hi); }
    static __device__ __forceinline__ void set_word(float (&x)[4], int i, float v, float) { x[i] = v; }
    static __device__ __forceinline__ void put_word(u32 (&x)[2], int i, u32 v) { x[i] = v; }
    static __device__ __forceinline__ void put_word(float (&x)[4], int i, u32 v) { x[i] = __uint_as_float(v); }
    static __device__ __forceinline__ u32 add_words(u32 x, u32 y) { return R::ACC == f32 ? __float_as_uint(__fadd_rn(__uint_as_float(x), __uint_as_float(y))) : add_halves(x, y); }

    static __device__ __forceinline__ bool owns() { return OWNERS == K_WARPS || thread_index() < OWN_THREADS; }

    /* Adds up the sums of the warps that share a tile: the first OWN_MT rows of mma's of acc are
     * then those of the rows that this warp stores. */
    static __device__ __forceinline__ void join(sums &acc, const warp &w)
    {
        if constexpr (K_WARPS > 1) {
            constexpr int OTHERS = K_WARPS - 1, PAGE = MN_WARPS * 32 * 16; /* bytes of a chunk of each thread of one share */
            constexpr int MOST = R::STAGES * STAGE / (OWNERS * OTHERS * PAGE), ROUND = MOST >= CHUNKS ? CHUNKS : MOST >= 8 ? 8 : MOST >= 4 ? 4 : 2;
            static_assert(CHUNKS % ROUND == 0 && ROUND <= MOST, "shared memory holds no round of sums");
            const u32 page = shared_base() + thread_index() % (MN_WARPS * 32) * 16;
#pragma unroll
            for (int c0 = 0; c0 < CHUNKS; c0 += ROUND) {
                barrier(); /* what shared memory held has been read */
#pragma unroll
                for (int to = 0; to < OWNERS; ++to) {
                    if (w.share == to) continue;
                    const u32 from = K_WARPS == 2 ? 0 : w.share - (w.share > to); /* which of the others this one is; of two, the only one */
#pragma unroll
                    for (int c = 0; c < ROUND; ++c) st_shared(page + ((to * OTHERS + from) * ROUND + c) * PAGE, get_chunk(acc, to * CHUNKS + c0 + c));
                }
                barrier();
                if (!owns()) continue;
#pragma unroll
                for (int c = 0; c < ROUND; ++c) {
                    b128 mine = get_chunk(acc, c0 + c);
#pragma unroll
                    for (int to = 1; to < OWNERS; ++to)
                        if (w.share == to) mine = get_chunk(acc, to * CHUNKS + c0 + c);
                    u32 x[4] = {mine.x, mine.y, mine.z, mine.w};
#pragma unroll
                    for (int from = 0; from < OTHERS; ++from) {
                        b128 theirs;
                        ld_shared(theirs, page + ((w.share * OTHERS + from) * ROUND + c) * PAGE);
                        const u32 y[4] = {theirs.x, theirs.y, theirs.z, theirs.w};
#pragma unroll
                        for (int e = 0; e < 4; ++e) x[e] = add_words(x[e], y[e]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int i = (c0 + c) * 4 + e;
                        put_word(acc[i / WORDS / NT][i / WORDS % NT], i % WORDS, x[e]);
                    }
                }
            }
        }
    }

    /* Whether this block stores the tile; acc is then the sum of all splits. */
    static __device__ __forceinline__ bool gather(const args &p, sums &acc)
    {
        if (!PARTS_FIRST && block_index() < p.whole_tiles) return true;
        const part of(p, (((u32)p.m + BM - 1) / BM) * (((u32)p.n + BN - 1) / BN));
        if (PARTS_FIRST && !of.is_split) return true;
        const u32 thread = thread_index(), splits = p.splits;
        const u32 tile = batch_index() * of.split_tiles + of.tile - p.whole_tiles;
        u32 *const arrived = (u32 *)p.workspace + tile;
        char *const first = (char *)p.workspace + HGEMM_WORKSPACE_TILES * 4 + ((u64)tile * splits * CHUNKS * OWN_THREADS + thread) * 16;
        char *const mine = first + (u64)of.split * (CHUNKS * OWN_THREADS * 16);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
            st_global(mine + c * (OWN_THREADS * 16), get_chunk(acc, c));
        barrier(); /* all of the block have written, and read their last fragments */
        if (thread == 0) st_shared(shared_base(), atomic_add(arrived, 1));
        barrier();
        u32 before;
        ld_shared(before, shared_base());
        if (before + 1 < splits) return false;
#pragma unroll(MMAS < 64 ? 1 : CHUNKS) /* rolled, but where a counter has no register left */
        for (int c0 = 0; c0 < CHUNKS; c0 += BATCH) {
            float x[BATCH * 8] = {};
#pragma unroll 1
            for (u32 s = 0; s < splits; s += AHEAD) {
                b128 v[AHEAD * BATCH] = {}; /* zeros past the last split */
#pragma unroll
                for (int c = 0; c < AHEAD * BATCH; ++c)
                    ld_global(v[c], first + (u64)((s + c / BATCH) * CHUNKS + c0 + c % BATCH) * (OWN_THREADS * 16), s + c / BATCH < splits);
#pragma unroll
                for (int c = 0; c < AHEAD * BATCH; ++c) {
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
            for (int i = 0; i < CHUNKS * 4; ++i) {
                if (i / (BATCH * 4) * BATCH != c0) continue; /* registers cannot be indexed */
                const int e = i % (BATCH * 4);
                set_word(acc[i / WORDS / NT][i / WORDS % NT], i % WORDS, x[e * 2], x[e * 2 + 1]);
            }
        }
        if (thread == 0) *arrived = 0;
        return true;
    }

    static __device__ __forceinline__ void store(const args &p, const block &where, sums &acc)
    {
        warp w;
        join(acc, w);
        if (!owns()) return; /* barriers wait for no thread that has ended (CUDA programming guide, __syncthreads) */
        w.m += w.share * OWN_M;
        if (!gather(p, acc)) return;
        barrier(); /* every warp has read its last fragments: shared memory is free */
        const block at = again(p, where);
        const u32 row0 = at.m0 + w.m, col0 = at.n0 + w.n, m = p.m, n = p.n;
        const long long batch = batch_index();
        const u64 ldc = p.ldc * 2, ldd = p.ldd * 2;
        const char *const c = (const char *)p.c + batch * p.stride_c * 2 + (u64)col0 * 2;
        char *const d = (char *)p.d + batch * p.stride_d * 2 + (u64)col0 * 2;
        const float alpha = p.alpha, beta = p.beta;
        const bool read_c = beta != 0;
        const bool alike = (((u64)c - (u64)d | ldc - ldd) & 15) == 0; /* chunks of D are chunks of C */
        const u32 block_width = least(n - at.n0, BN);
        const int width = (int)(block_width - w.n);                      /* from here to the end of the block's columns */
        const bool whole = (((u64)d | ldd | block_width * 2) & 15) == 0; /* rows of D are whole chunks */
        if constexpr (R::ACC == f32) {
            if (whole && alpha == 1 && !read_c) { /* rounded first, sums are half the bytes for shared memory */
                using rounded_tile = tile<rounded_row<R>, A_K_CONTIGUOUS, B_K_CONTIGUOUS, SWIZZLED, ACCESS>;
                typename rounded_tile::sums r;
                typename rounded_tile::warp of;
                of.m = w.m;
#pragma unroll
                for (int i = 0; i < OWN_MT * NT * 2; ++i) {
                    const float(&x)[4] = acc[i / 2 / NT][i / 2 % NT];
                    r[i / 2 / NT][i / 2 % NT][i % 2] = halves(x[i % 2 * 2], x[i % 2 * 2 + 1]);
                }
                rounded_tile::template store_rows<true>(r, of, row0, m, width, c, d, ldc, ldd, 1, 0, true);
                return;
            }
        }
        if (whole && (alike || !read_c)) store_rows<true>(acc, w, row0, m, width, c, d, ldc, ldd, alpha, beta, true);
        else store_rows<false>(acc, w, row0, m, width, c, d, ldc, ldd, alpha, beta, alike);
    }

    /* Where the block stands: the largest warps have no registers to remember it. */
    static __device__ __forceinline__ block again(const args &p, const block &where) { return MMAS < 64 ? where : block(p); }

    /* A part of a tile of C: a line of 128 bytes or less for each thread. The L2 cache is told to fetch it. */
    static constexpr u32 C_ACROSS = (BN + 63) / 64, C_PARTS = (BM * C_ACROSS + THREADS - 1) / THREADS;
    static __device__ __forceinline__ void tell_of_c(const args &p, const block &where, u32 part)
    {
        const block at = again(p, where);
        const char *const c = (const char *)p.c + batch_index() * p.stride_c * 2;
        const u32 i = part * THREADS + thread_index();
        if (i < BM * C_ACROSS)
            prefetch_l2(c + least(at.m0 + i / C_ACROSS, p.m - 1) * (p.ldc * 2) + least(at.n0 + i % C_ACROSS * 64, p.n - 1) * 2ull);
    }

    /* The sums of rows 16 * GROUPS * group .. of acc, LOW <= group < HIGH: registers cannot be indexed. */
    template <int LOW, int HIGH> static __device__ __forceinline__ void put_group(u32 to, const sums &acc, int group)
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

    /* Each row of D is cut where its own 16-byte chunks begin: `lead` columns in. Chunks that lie
     * within the block's columns are moved as such, each by the warp in whose columns it begins, a
     * lane having every STEP-th row. */
    template <bool WHOLE>
    static __device__ __forceinline__ void store_rows(const sums &acc, const warp &w, u32 row0, u32 m, int width, const char *c, char *d,
                                                      u64 ldc, u64 ldd, float alpha, float beta, bool alike)
    {
        constexpr int ACROSS = WN / 8, STEP = 32 / ACROSS, ROUNDS = GROUPS * 16 / STEP, TOGETHER = ROUNDS < 4 ? ROUNDS : 4;
        const u32 buffer = shared_base() + w.m / OWN_M * (GROUPS * 16 * PITCH) + w.n * SIZE, columns = BN - w.n;
        const u32 to = buffer + w.lane / 4 * PITCH + w.lane % 4 * 2 * SIZE;
        const u32 first_row = row0 + w.lane / ACROSS; /* of D, of this lane */
        const bool read_c = beta != 0, plain = alpha == 1 && !read_c && !(WHOLE && R::ACC == f32);
        auto meet = [] { WHOLE ? warp_barrier() : barrier(); };
        auto lead = [&](const char *row_of_d) { return WHOLE ? 0 : (int)(16 - (u64)row_of_d % 16) % 16 / 2; };
        auto column = [&](const char *row_of_d) { return lead(row_of_d) + (int)(w.lane % ACROSS * 8); };
        auto fetch_c = [&](b128 (&cs)[ROUNDS], u32 below, bool when) { /* of rows `below` first_row */
#pragma unroll
            for (int q = 0; q < ROUNDS; ++q) {
                const u32 row = first_row + below + q * STEP;
                const int col = column(d + row * ldd);
                const bool live = row < m && col + 8 <= width && when;
                const char *const from = c + row * ldc + col * 2;
                if (WHOLE || alike) {
                    ld_global(cs[q], from, live);
                } else if (read_c) {
                    u32 h[8] = {};
#pragma unroll
                    for (int e = 0; e < 8; ++e) ld_global(h[e], from + e * 2, live);
                    cs[q] = b128{permute(h[0], h[1], 0x5410), permute(h[2], h[3], 0x5410), permute(h[4], h[5], 0x5410), permute(h[6], h[7], 0x5410)};
                }
            }
        };
        constexpr bool EARLY = WHOLE && ROUNDS <= 4; /* C of the next rows is on its way while these are stored */
        b128 next[ROUNDS] = {};
        if (EARLY) fetch_c(next, 0, read_c);
        char *at = d + first_row * ldd;
#pragma unroll 1
        for (int group = 0; group < OWN_MT / GROUPS; ++group) { /* rolled, for code that was not run of late is slow to come */
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
                eight x[TOGETHER];
                b128 v[TOGETHER];
                char *row[TOGETHER];
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) {
                    row[q] = at;
                    at += STEP * ldd;
                    x[q] = get_sums<!WHOLE>(buffer + ((q0 + q) * STEP + w.lane / ACROSS) * PITCH, column(row[q]), columns);
                }
                if (plain) {
#pragma unroll
                    for (int q = 0; q < TOGETHER; ++q) v[q] = rounded(x[q]);
                } else {
#pragma unroll
                    for (int q = 0; q < TOGETHER; ++q) v[q] = blend(x[q], cs[q0 + q], alpha, beta);
                }
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) {
                    const int col = column(row[q]);
                    st_global(row[q] + col * 2, v[q], first_row + below + (q0 + q) * STEP < m && col + 8 <= width);
                }
            }
            const bool heads = w.n == 0, tails = width < WN + 8;
            if (!WHOLE && (heads || tails)) {
                /* what is left of each row at either end of the block's columns, in pairs: a lane has a row's begin or end */
#pragma unroll 1
                for (u32 i = w.lane; i < (heads && tails ? 2 : 1) * GROUPS * 16; i += 32) {
                    const bool is_tail = !heads || i >= GROUPS * 16;
                    const u32 r = i % (GROUPS * 16), row = row0 + below + r;
                    char *const begin = d + row * ldd;
                    const int head = lead(begin), tail = width > head ? (width - head) % 8 : 0;
                    int from = 0, count = head < width ? head : width;
                    if (is_tail) from = width - tail, count = from - head < WN ? tail : 0;
                    if (row >= m || count <= 0) continue;
                    const eight x = get_sums<true>(buffer + r * PITCH, from, columns);
                    u32 h[9] = {};
#pragma unroll
                    for (int e = 0; e < 7; ++e) ld_global(h[e], c + row * ldc + (from + e) * 2, read_c && e < count);
#pragma unroll
                    for (int e = 0; e < 8; e += 2) h[e / 2] = halves(blend(sum(x, e), h[e], alpha, beta), blend(sum(x, e + 1), h[e + 1], alpha, beta));
                    char *to = begin + from * 2;
                    const bool odd = (u64)to & 2;
                    if (odd) st_global(to, h[0]), to += 2, --count;
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const u32 pair = odd ? permute(h[e], h[e + 1], 0x5432) : h[e];
                        if (2 * e + 1 < count) st_global_word(to + e * 4, pair);
                        else if (2 * e < count) st_global(to + e * 4, pair);
                    }
                }
            }
            meet();
        }
    }
};

/* The kernel of the variant that the build asked for: HGEMM_VARIANT is its symbol, HGEMM_ROW its
 * row, HGEMM_OP_A and HGEMM_OP_B are 1 where that operand is transposed, HGEMM_ACCESS is an access;
 * HGEMM_T4 is defined for machine code of a row that is another on a T4. */
#ifdef HGEMM_T4
#define HGEMM_ROW_TYPE(name) t4_##name
#else
#define HGEMM_ROW_TYPE(name) row_##name
#endif
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name)
#define HGEMM_ENTRY(rung, swizzled)                                                                                   \
    using variant = tile<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B, swizzled, HGEMM_ACCESS>;                 \
    extern "C" __global__ void __launch_bounds__(variant::THREADS, variant::BLOCKS) HGEMM_VARIANT(const args p)           \
    {                                                                                                                 \
        rung<variant>(p);                                                                                             \
    }
