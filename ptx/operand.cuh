/* SPDX-License-Identifier: MIT */
/*
 * An operand of two bytes an element: how a k-tile of A or B comes from global memory into a thread's registers, and
 * which thread brings which of it to shared memory.
 *
 *   chunk     16 bytes of A or B on their way through a thread's registers
 *   operand   the k-tile: who loads what
 *
 * Edges and alignment are handled here, and cost the main loop nothing. Accesses past the last row of an operand repeat
 * that row. Those past the last column take what follows in memory, or, where each chunk is loaded with care (k1 to k3,
 * access ANY), repeat columns. All of this reaches only accumulators of elements that D does not have; they are not
 * stored. What is short along k becomes zeros (position.cuh says which k-tile that is).
 *
 * What x and rows are is told in shared.cuh.
 */
#pragma once
#include "shared.cuh"
#include "source.cuh"

template <bool FIRST, class A, class B> struct either { using type = A; };
template <class A, class B> struct either<false, A, B> { using type = B; };

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

template <int X, int BK, bool K_CONTIGUOUS, int THREADS, access ACCESS, bool GATHERS>
struct operand : shared_tile<X, BK, K_CONTIGUOUS>, source<X, BK, K_CONTIGUOUS, HALF_BYTES, GATHERS> {
    using tile = shared_tile<X, BK, K_CONTIGUOUS>;
    using from = source<X, BK, K_CONTIGUOUS, HALF_BYTES, GATHERS>;
    using from::clamped, from::row_clamped, from::start;
    using tile::offset, tile::phase;
    static constexpr int ROWS = tile::ROWS, COLS = tile::COLS, ROW_CHUNKS = tile::ROW_CHUNKS;

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
            return (POINTERS ? pointer[i / ACROSS] : base + offset[i / ACROSS]) + across(i) * HALF_BYTES;
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
                to[i].load_or_zero(base + offset[i / ACROSS] + across(i) * HALF_BYTES,
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
    static DEVICE u32 commit_offset(u32 thread, int i)
    {
        return offset(row(thread) + below(i), (col(thread) + across(i)) / 8);
    }
    static DEVICE u32 commit_xor(int i) { return phase(below(i)) << 4; }
    static DEVICE u32 commit_add(int i) { return (below(i) * COLS + across(i)) * HALF_BYTES; }
};
