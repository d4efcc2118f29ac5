/* SPDX-License-Identifier: MIT */
/*
 * An operand: how a k-tile of A or B comes from global memory into a thread's registers, and where it lies in
 * shared memory.
 *
 *   chunk     16 bytes of A or B on their way through a thread's registers
 *   operand   the k-tile: who loads what, where it lies, where ldmatrix finds it
 *
 * Edges and alignment are handled here, and cost the main loop nothing. Accesses past the last row of an operand repeat
 * that row. Those past the last column take what follows in memory, or, where each chunk is loaded with care (k1 to k3,
 * access ANY), repeat columns. All of this reaches only accumulators of elements that D does not have; they are not
 * stored. What is short along k becomes zeros (position.cuh says which k-tile that is).
 *
 * Both operands are treated alike. Let x be the dimension that an operand shares with D (m for A, n
 * for B). A k-tile of it is X x BK, and is either k-contiguous (a row in memory runs along k, there is
 * one for each x) or x-contiguous (a row runs along x, there is one for each k). Shared memory keeps
 * this orientation: rows of chunks of 8 halves.
 */
#pragma once
#include "insn.cuh"

constexpr int ELEMENT_BYTES = 2; /* of a half: A, B, C and D consist of them */

template <bool FIRST, class A, class B> struct either { using type = A; };
template <class A, class B> struct either<false, A, B> { using type = B; };

static DEVICE u32 minimum(u32 a, u32 b) { return a < b ? a : b; }

/* n / d by the reciprocal HGEMM_RECIPROCAL(d) = floor((2^32 - 1) / d): the high word of n * reciprocal is the
 * quotient or one less. A hardware division is a chain of 20 dependent instructions. */
static DEVICE u32 divide(u32 n, u32 d, u32 reciprocal)
{
    const u32 q = __umulhi(n, reciprocal);
    return q + (n - q * d >= d);
}

/* Eight halves, each in a register of its own, as a chunk. */
static DEVICE b128 pack_chunk(const u32 (&h)[8])
{
    return b128{permute(h[0], h[1], 0x5410), permute(h[2], h[3], 0x5410), permute(h[4], h[5], 0x5410),
                permute(h[6], h[7], 0x5410)};
}

/* The first `count` halves of a chunk, then zeros. */
static DEVICE b128 first_halves(const b128 &v, int count)
{
    const u32 x[4] = {v.x, v.y, v.z, v.w};
    u32 y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = count > 2 * i + 1 ? x[i] : count == 2 * i + 1 ? x[i] & 0xffff : 0;
    return b128{y[0], y[1], y[2], y[3]};
}

/*
 * How a variant reads A and B (the column `align` of the table). The unit is a chunk: 8 contiguous halves.
 *   X16  Chunks are 16-byte aligned and whole: one load.
 *   X8   Groups of 4 halves are 8-byte aligned and whole: two loads for a chunk.
 *   ANY  Chunks are 2-byte aligned. Two aligned 16-byte loads cover one, which is extracted when it is
 *        committed. Close to either end of the matrix these loads would reach outside; this concerns the
 *        first two k-tiles only, which load such chunks piece by piece.
 *   FAR  Offsets within a tile exceed 32 bits: each half is loaded by itself. So do k1 to k3 with ANY.
 */
enum access { X16, X8, ANY, FAR };

/* Row number `index` of a list of them, 32 or 64 bits each. */
static DEVICE long long listed_row(const void *list, bool are_64, u32 index)
{
    u32 low, high;
    if (are_64) {
        ld_global(low, high, (const char *)list + index * 8ull, true);
        return (long long)((u64)high << 32 | low);
    }
    ld_global_word(low, (const char *)list + index * 4ull, true);
    return (int)low;
}

/* The panel of an operand from which a block reads its k-tiles. Pointers and `ld` are in bytes. */
struct panel {
    const char *base;        /* first k of the block, x = 0 */
    const char *begin, *end; /* the whole matrix */
    u64 ld;
    u32 x0, x_size;          /* first x of the block; extent of x in the matrix */
    const void *list;        /* GATHERS: where each x is in the matrix; NULL: in its place */
    bool is_list_64;
};

/* The words from p on, where they reach outside of the matrix: loads those inside, and a lone half at either end of
 * them. What is outside is zero. */
template <int WORDS> static DEVICE void load_words_inside(u32 (&w)[WORDS], const panel &src, const char *p)
{
    constexpr int BYTES = WORDS * 4;
    const int begin = src.begin > p ? (int)(src.begin - p) : 0, end = src.end - p < BYTES ? (int)(src.end - p) : BYTES;
    u32 low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) w[i] = 0, ld_global_word(w[i], p + i * 4, i * 4 >= begin && i * 4 + 4 <= end);
    ld_global_half(low, p + end - 2, end % 4 == 2 && end > begin);
    ld_global_half(high, p + begin, begin % 4 == 2 && begin < end);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) w[i] |= (end - 2 == i * 4 ? low : 0) | (begin - 2 == i * 4 ? high << 16 : 0);
}

/* A chunk in registers, as aligned loads bring it. */
template <access ACCESS> struct chunk {
    b128 v;

    /* Loads the chunk at p; undefined if not `when`. */
    DEVICE void load(const char *p, bool when)
    {
        if (ACCESS == X8) ld_generic(v.x, v.y, p, when), ld_generic(v.z, v.w, p + 8, when);
        else ld_generic(v, p, when);
    }
    /* The same; zero if not `when`, and for X8 its second half if not `when_second`. */
    DEVICE void load_or_zero(const char *p, bool when, bool when_second)
    {
        v = b128{};
        if (ACCESS == X8) ld_global(v.x, v.y, p, when), ld_global(v.z, v.w, p + 8, when_second);
        else ld_global(v, p, when);
    }
    DEVICE b128 extract(u32) const { return v; }
};

/* ANY: p is aligned down to 16 bytes, and the chunk begins `shift` bytes into the 32 that are loaded. */
template <> struct chunk<ANY> {
    b128 v, next;

    DEVICE void load(const char *p, bool when)
    {
        ld_generic(v, p, when);
        ld_generic(next, p + 16, when);
    }
    DEVICE void load_or_zero(const char *p, bool when, bool)
    {
        v = next = b128{};
        ld_global(v, p, when);
        ld_global(next, p + 16, when);
    }
    /* The same where the 32 bytes reach outside of the matrix. */
    DEVICE void load_inside(const panel &src, const char *p)
    {
        u32 w[8];
        load_words_inside(w, src, p);
        v = b128{w[0], w[1], w[2], w[3]};
        next = b128{w[4], w[5], w[6], w[7]};
    }
    /* The 16 bytes from `shift` on: shifts by 8, 4 and 2 bytes, each if its bit is set. */
    DEVICE b128 extract(u32 shift) const
    {
        const u32 by_half = shift & 2 ? 0x5432 : 0x3210, x[8] = {v.x, v.y, v.z, v.w, next.x, next.y, next.z, next.w};
        u32 y[6], z[5];
#pragma unroll
        for (int i = 0; i < 6; ++i) y[i] = shift & 8 ? x[i + 2] : x[i];
#pragma unroll
        for (int i = 0; i < 5; ++i) z[i] = shift & 4 ? y[i + 1] : y[i];
        return b128{permute(z[0], z[1], by_half), permute(z[1], z[2], by_half), permute(z[2], z[3], by_half),
                    permute(z[3], z[4], by_half)};
    }
};

/* ---- a k-tile of A or B ------------------------------------------------------------------------ */

template <int X, int BK, bool K_CONTIGUOUS, int THREADS, bool SWIZZLED, access ACCESS, bool GATHERS>
struct operand {
    static constexpr int ROWS = K_CONTIGUOUS ? X : BK, COLS = K_CONTIGUOUS ? BK : X;
    static constexpr int BYTES = X * BK * ELEMENT_BYTES;
    static constexpr int ROW_CHUNKS = COLS / 8;

    /* LANES threads stand side by side along a row. Each loads ACROSS chunks of it, LANES chunks apart, and the same
     * of DOWN rows, STEP rows apart. 8 lanes load 128 bytes at a time: more would not be faster, and chunks of
     * one row share an address. */
    static constexpr int MIN_LANES = THREADS / ROWS > 8 ? THREADS / ROWS : 8;
    static constexpr int LANES = ACCESS <= X8 && ROW_CHUNKS > MIN_LANES ? MIN_LANES : ROW_CHUNKS;
    static constexpr int ACROSS = ROW_CHUNKS / LANES, STEP = THREADS / LANES, DOWN = ROWS / STEP;
    static constexpr int LOADS = DOWN * ACROSS; /* chunks of a thread */
    static_assert(THREADS % LANES == 0 && ROW_CHUNKS % LANES == 0 && ROWS % STEP == 0,
                  "threads do not divide the tile");
    static_assert(ACCESS != ANY || STEP % 8 == 0, "all chunks of a thread need the same shift");

    /*
     * Byte offset in shared memory of chunk c of a row. Shared memory serves 128 bytes, all 32 banks, at a
     * time. Call that a line: 8 chunks that are accessed together must lie in 8 different columns of lines.
     * ldmatrix reads the same chunk of 8 consecutive rows; swizzled, the chunks of a row are permuted by an XOR
     * with the number of its line, which spreads these 8 over all columns:
     *
     *     rows of 128 bytes or more      rows of 64 bytes: two in a line
     *     row 0   0 1 2 3 4 5 6 7        rows 0,1   0 1 2 3  0 1 2 3
     *     row 1   1 0 3 2 5 4 7 6        rows 2,3   1 0 3 2  1 0 3 2
     *     row 2   2 3 0 1 6 7 4 5        rows 4,5   2 3 0 1  2 3 0 1
     *     ...                            rows 6,7   3 2 1 0  3 2 1 0
     *
     * This is free of bank conflicts for ldmatrix, and for 16-byte stores by consecutive threads. Unswizzled,
     * ldmatrix takes 8 or 4 wavefronts instead of one.
     */
    static constexpr u32 LINE_ROWS = ROW_CHUNKS >= 8 ? 1 : 8 / ROW_CHUNKS, PHASES = ROW_CHUNKS >= 8 ? 8 : ROW_CHUNKS;
    static DEVICE u32 phase(u32 row) { return SWIZZLED ? row / LINE_ROWS % PHASES : 0; }
    static DEVICE u32 offset(u32 row, u32 c) { return row * (COLS * ELEMENT_BYTES) + ((c ^ phase(row)) << 4); }

    /* Row and column in the k-tile of a thread's first chunk, and how far below and across its chunk i is. */
    static DEVICE u32 row(u32 thread) { return thread / LANES; }
    static DEVICE u32 col(u32 thread) { return thread % LANES * 8; }
    static DEVICE constexpr int below(int i) { return i / ACROSS * STEP; }
    static DEVICE constexpr int across(int i) { return i % ACROSS * (LANES * 8); }

    /* How many of a thread's rows the matrix has; the others repeat its last row. */
    static DEVICE int rows_inside(const panel &src, u32 thread)
    {
        return K_CONTIGUOUS ? (int)((src.x_size - src.x0 + STEP - 1 - row(thread)) / STEP) : DOWN;
    }

    /* How many columns the matrix has from a thread's first one on, and whether half e of its chunk i is in one. */
    static DEVICE int columns_inside(const panel &src, u32 thread)
    {
        return (int)(src.x_size - src.x0 - col(thread));
    }
    static DEVICE bool has(int columns, int i, int e)
    {
        return K_CONTIGUOUS || columns > across(i) + e;
    }

    /* k, within the k-tile, of half e of a thread's chunk i. */
    static DEVICE u32 k_of(u32 thread, int i, int e)
    {
        return K_CONTIGUOUS ? col(thread) + across(i) + e : row(thread) + below(i);
    }

    /* The panel from x0 on of a matrix of k_size k's. */
    static DEVICE panel panel_at(const char *base, u64 ld, u32 x0, u32 x_size, u32 k_size)
    {
        const u32 rows = K_CONTIGUOUS ? x_size : k_size, cols = K_CONTIGUOUS ? k_size : x_size;
        return panel{base, base, base + (rows - 1) * ld + cols * ELEMENT_BYTES, ld, x0, x_size, nullptr, false};
    }

    /* Global memory: bytes that k k's are apart, and the address at which the block's k-tile from k0 on begins. */
    static DEVICE u64 k_bytes(const panel &src, u32 k) { return K_CONTIGUOUS ? (u64)k * ELEMENT_BYTES : k * src.ld; }
    static DEVICE const char *start(const panel &src, u32 k0)
    {
        if (GATHERS && src.list) return src.base + k_bytes(src, k0);
        return src.base + (K_CONTIGUOUS ? src.x0 * src.ld : (u64)src.x0 * ELEMENT_BYTES) + k_bytes(src, k0);
    }

    /* Byte offset from there of column c of row r. Rows past the last one are that one. Clamped, columns past the
     * last `width` ones are these: an access of that many halves stays inside. (Rows of a realigned copy end in
     * zeros, so that its last whole chunk may be read.) */
    static DEVICE u64 row_clamped(const panel &src, u32 r, u32 c)
    {
        if constexpr (GATHERS)
            if (src.list) {
                const u32 x = K_CONTIGUOUS ? minimum(r, src.x_size - src.x0 - 1) : c;
                const long long listed = listed_row(src.list, src.is_list_64, src.x0 + x);
                return K_CONTIGUOUS ? listed * src.ld + c * ELEMENT_BYTES : r * src.ld + listed * ELEMENT_BYTES;
            }
        return (K_CONTIGUOUS ? minimum(r, src.x_size - src.x0 - 1) : r) * src.ld + c * ELEMENT_BYTES;
    }
    static DEVICE u64 clamped(const panel &src, u32 r, u32 c, u32 width)
    {
        return row_clamped(src, r, K_CONTIGUOUS ? c : minimum(c, (src.x_size - src.x0 - 1) / width * width));
    }

    /* A thread's chunk i of the k-tile that starts at `tile`, with zeros for k's from `live` on. */
    static DEVICE b128 fetch(const char *tile, const panel &src, u32 row, u32 col, int i, u32 live)
    {
        const u32 r = row + below(i);
        col += across(i);
        if constexpr (ACCESS == X16) {
            b128 v = {};
            ld_global(v, tile + clamped(src, r, col, 8), (K_CONTIGUOUS ? col : r) < live);
            return v;
        } else if constexpr (ACCESS == X8) {
            b128 v = {};
            ld_global(v.x, v.y, tile + clamped(src, r, col, 4), (K_CONTIGUOUS ? col : r) < live);
            ld_global(v.z, v.w, tile + clamped(src, r, col + 4, 4), (K_CONTIGUOUS ? col + 4 : r) < live);
            return v;
        } else {
            u32 h[8] = {};
#pragma unroll
            for (int e = 0; e < 8; ++e)
                ld_global_half(h[e], tile + clamped(src, r, col + e, 1), (K_CONTIGUOUS ? col + e : r) < live);
            return pack_chunk(h);
        }
    }

    /* ---- where a thread's rows of a k-tile are in memory, computed once --------------------------
     * As offsets of its first chunk in each row from the start of the k-tile, a base that all threads share; or, with
     * POINTERS, as pointers to these chunks. For ANY all are aligned down to 16 bytes. */

    /* Rows of a list are anywhere in the matrix, which may have more than 4 GiB. (Lists of columns, and what is not
     * aligned to 16 bytes, have access FAR.) */
    using offset_t = typename either<GATHERS && K_CONTIGUOUS && ACCESS == X16, u64, u32>::type;

    template <bool POINTERS> struct addresses {
        const char *base, *pointer[DOWN];
        offset_t offset[DOWN];

        /* Sets the base, where the k-tile from k0 on begins, and the offsets; for ANY both are aligned down. Returns
         * the shift of a chunk, by how many bytes it was: the same for all chunks of a thread, for STEP is a multiple
         * of 8 rows, which are a multiple of 16 bytes. */
        DEVICE u32 locate(const panel &src, u32 k0, u32 thread)
        {
            constexpr u32 GRAIN = ACCESS == ANY ? 16 : 1;
            const char *const tile = start(src, k0);
            const u32 skew = (u32)(u64)tile % GRAIN, first = row(thread), c = col(thread);
            auto from_start = [&](u32 r) {
                return (offset_t)(ACCESS == ANY ? clamped(src, r, c, 1) : row_clamped(src, r, c));
            };
            base = tile - skew;
#pragma unroll
            for (int i = 0; i < DOWN; ++i) offset[i] = (from_start(first + i * STEP) + skew) / GRAIN * GRAIN;
            return (u32)((from_start(first) + skew) % GRAIN);
        }
        DEVICE void make_pointers()
        {
#pragma unroll
            for (int i = 0; i < DOWN; ++i) pointer[i] = base + offset[i];
        }
        DEVICE void advance(u64 bytes)
        {
            base += bytes;
#pragma unroll
            for (int i = 0; i < DOWN; ++i) pointer[i] += bytes;
        }
        DEVICE const char *chunk_at(int i) const
        {
            return (POINTERS ? pointer[i / ACROSS] : base + offset[i / ACROSS]) + across(i) * ELEMENT_BYTES;
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
            DEVICE bool holds(u32 at) const { return ACCESS != ANY || (at >= first && at <= last); }
        };

        /* Loads the chunks of the k-tile at the base that hold one of its `live` k's and one of the `columns` that the
         * matrix has from the thread's first one on; the others become zero. For ANY, load_ends() loads those for which
         * 32 bytes would reach outside of the matrix. */
        DEVICE void load_checked(chunk<ACCESS> *to, const panel &src, int columns, u32 live, u32 thread) const
        {
            const safe_range safe(src, base);
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                to[i].load_or_zero(base + offset[i / ACROSS] + across(i) * ELEMENT_BYTES,
                                   k_of(thread, i, 0) < live && has(columns, i, 0) && safe.holds(offset[i / ACROSS]),
                                   k_of(thread, i, 4) < live && has(columns, i, 4));
        }
        template <bool SPARE_REGISTERS>
        DEVICE void load_ends(chunk<ACCESS> *to, const panel &src, int columns, u32 live, u32 thread) const
        {
            static_assert(ACROSS == 1, "a row has several chunks of a thread");
            const safe_range safe(src, base);
            /* Rows that repeat the last one are not safe either, but are not needed. To skip them takes a register. */
            const int inside = SPARE_REGISTERS ? rows_inside(src, thread) : LOADS;
            if (!has(columns, 0, 0)) return;
            bool all = true;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) all &= safe.holds(offset[i]) || i >= inside;
            if (all) return;
#pragma unroll 1
            for (int i = 0; i < LOADS; ++i) { /* rolled, for it is much code; j finds register i */
                u32 at = 0;
#pragma unroll
                for (int j = 0; j < LOADS; ++j) at = j == i ? offset[j] : at;
                if constexpr (SPARE_REGISTERS) {
                    if (k_of(thread, i, 0) >= live || safe.holds(at) || i >= inside) continue;
                } else {
                    if (k_of(thread, i, 0) >= live || safe.holds(at)) continue;
                }
                chunk<ACCESS> c;
                c.load_inside(src, base + at);
#pragma unroll
                for (int j = 0; j < LOADS; ++j)
                    if (j == i) to[j] = c;
            }
        }
    };

    /* Shared memory: where a thread commits its chunk i, and the same as (offset of its chunk 0 ^ constant) +
     * constant. The XOR commutes because all sizes are powers of two: phases of rows that are a multiple of STEP
     * apart differ by an XOR, and chunks LANES apart differ in bits that no phase has. It may be applied to an address
     * instead of an offset, because operands begin at multiples of a line. */
    static_assert(BYTES % 128 == 0, "the operand that follows does not begin at a line");
    static DEVICE u32 commit_offset(u32 thread, int i)
    {
        return offset(row(thread) + below(i), (col(thread) + across(i)) / 8);
    }
    static DEVICE u32 commit_xor(int i) { return phase(below(i)) << 4; }
    static DEVICE u32 commit_add(int i) { return (below(i) * COLS + across(i)) * ELEMENT_BYTES; }

    /* Shared memory: the row that a lane passes to the j-th ldmatrix of slice kk (8 k's) of a warp tile that begins
     * at x = first: four 8x8 matrices, which cover 32 x's. Lanes 8 i to 8 i + 7 name the rows of matrix i. Split in
     * the same way. */
    static DEVICE u32 fragment_offset(u32 first, u32 lane, int j, int kk)
    {
        return K_CONTIGUOUS ? offset(first + j * 32 + lane, kk)
                            : offset(kk * 8 + lane % 8, first / 8 + j * 4 + lane / 8);
    }
    static DEVICE u32 fragment_xor(int j, int kk) { return K_CONTIGUOUS ? kk << 4 : (j & 1) << 6; }
    static DEVICE u32 fragment_add(int j, int kk)
    {
        return K_CONTIGUOUS ? j * 32 * COLS * ELEMENT_BYTES : (j >> 1) * 128 + kk * 8 * COLS * ELEMENT_BYTES;
    }

    /* Four or two matrices of a fragment: mma wants k-contiguous pairs, so x-contiguous operands are transposed. */
    static DEVICE void matrices(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x4(r0, r1, r2, r3, address);
        else ldmatrix_x4_trans(r0, r1, r2, r3, address);
    }
    static DEVICE void matrices(u32 &r0, u32 &r1, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x2(r0, r1, address);
        else ldmatrix_x2_trans(r0, r1, address);
    }

    /* Cache lines of 128 bytes in a k-tile, for the prefetch, and the byte offset of each from the k-tile's start. */
    static constexpr u32 ROW_LINES = (X + 63) / 64, LINES = K_CONTIGUOUS ? X * ((BK + 63) / 64) : BK * ROW_LINES;
    static DEVICE u32 line_offset(const panel &src, u32 i)
    {
        return (u32)(K_CONTIGUOUS ? clamped(src, i % X, i / X * 64, 1)
                                  : clamped(src, i / ROW_LINES, i % ROW_LINES * 64, 1));
    }
};
