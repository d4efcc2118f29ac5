/* SPDX-License-Identifier: MIT */
/*
 * Sums of sums: warps that share a tile of D add up theirs through shared memory (sliced-K), blocks that share one
 * through the workspace (split-K).
 */
#pragma once
#include "position.cuh"

/* Accumulators as words, MMA_WORDS of each mma, and as chunks of four words, COUNT in the rows that a thread stores. */
template <class V> struct sum_chunks {
    typedef typename V::sums sums;
    static constexpr int MMA_WORDS = V::ACC == f32 ? 4 : 2, COUNT = V::OWN_MT * V::NT * MMA_WORDS / 4;

    static DEVICE u32 word(const u32 (&x)[2], int i) { return x[i]; }
    static DEVICE u32 word(const float (&x)[4], int i) { return __float_as_uint(x[i]); }
    static DEVICE u32 get_word(const sums &acc, int i)
    {
        return word(acc[i / MMA_WORDS / V::NT][i / MMA_WORDS % V::NT], i % MMA_WORDS);
    }
    static DEVICE b128 get(const sums &acc, int c)
    {
        return b128{get_word(acc, 4 * c), get_word(acc, 4 * c + 1), get_word(acc, 4 * c + 2), get_word(acc, 4 * c + 3)};
    }

    static DEVICE void put_word(u32 (&x)[2], int i, u32 v) { x[i] = v; }
    static DEVICE void put_word(float (&x)[4], int i, u32 v) { x[i] = __uint_as_float(v); }
    static DEVICE void put_word(sums &acc, int i, u32 v)
    {
        put_word(acc[i / MMA_WORDS / V::NT][i / MMA_WORDS % V::NT], i % MMA_WORDS, v);
    }

    /* The same from single precision: a pair of halves takes both sums, a float the first. */
    static DEVICE void round_word(u32 (&x)[2], int i, float lo, float hi) { x[i] = pack_halves(lo, hi); }
    static DEVICE void round_word(float (&x)[4], int i, float v, float) { x[i] = v; }
    static DEVICE void round_word(sums &acc, int i, float lo, float hi)
    {
        round_word(acc[i / MMA_WORDS / V::NT][i / MMA_WORDS % V::NT], i % MMA_WORDS, lo, hi);
    }

    static DEVICE u32 add_words(u32 x, u32 y)
    {
        return V::ACC == f32 ? __float_as_uint(__fadd_rn(__uint_as_float(x), __uint_as_float(y))) : add_halves(x, y);
    }
};

/* Adds up the sums of the K_WARPS warps that share a tile, through shared memory. Each owner receives those of the
 * rows that it stores, which afterwards are the first OWN_MT rows of mma tiles in its acc. Shared memory holds
 * ROUND chunks of every thread at a time, in pages: one chunk from each thread of MN_WARPS warps. */
template <class V> static DEVICE void add_warps(typename V::sums &acc, const warp<V> &w)
{
    if constexpr (V::K_WARPS > 1) {
        using chunks = sum_chunks<V>;
        constexpr int OWNERS = V::OWNERS, OTHERS = V::K_WARPS - 1, PAGE = V::MN_WARPS * 32 * 16;
        constexpr int FITS = V::MAIN_BYTES / (OWNERS * OTHERS * PAGE);
        constexpr int ROUND = FITS >= chunks::COUNT ? chunks::COUNT : FITS >= 8 ? 8 : FITS >= 4 ? 4 : 2;
        static_assert(chunks::COUNT % ROUND == 0 && ROUND <= FITS, "shared memory holds no round of sums");
        const u32 page = shared_base() + place<V>() % (V::MN_WARPS * 32) * 16;
#pragma unroll
        for (int c0 = 0; c0 < chunks::COUNT; c0 += ROUND) {
            barrier(); /* the last round, or the last k-tile, has been read */
#pragma unroll
            for (int to = 0; to < OWNERS; ++to) {
                if (w.k_warp == to) continue;
                const u32 from = V::K_WARPS == 2 ? 0 : w.k_warp - (w.k_warp > to); /* among the others of `to` */
#pragma unroll
                for (int c = 0; c < ROUND; ++c)
                    st_shared(page + ((to * OTHERS + from) * ROUND + c) * PAGE,
                              chunks::get(acc, to * chunks::COUNT + c0 + c));
            }
            barrier();
            if (!is_owner<V>()) continue;
#pragma unroll
            for (int c = 0; c < ROUND; ++c) {
                b128 mine = chunks::get(acc, c0 + c);
#pragma unroll
                for (int to = 1; to < OWNERS; ++to)
                    if (w.k_warp == to) mine = chunks::get(acc, to * chunks::COUNT + c0 + c);
                u32 x[4] = {mine.x, mine.y, mine.z, mine.w};
#pragma unroll
                for (int from = 0; from < OTHERS; ++from) {
                    b128 theirs;
                    ld_shared(theirs, page + ((w.k_warp * OTHERS + from) * ROUND + c) * PAGE);
                    const u32 y[4] = {theirs.x, theirs.y, theirs.z, theirs.w};
#pragma unroll
                    for (int e = 0; e < 4; ++e) x[e] = chunks::add_words(x[e], y[e]);
                }
#pragma unroll
                for (int e = 0; e < 4; ++e) chunks::put_word(acc, (c0 + c) * 4 + e, x[e]);
            }
        }
    }
}

/* The sum of a tile's parts, in the order of k, to those of part `own`: its sums are in acc, those of the others in
 * the workspace. One part at a time, for want of registers. */
template <class V> static DEVICE void add_in_turn(typename V::sums &acc, const char *from, u32 own, u32 splits)
{
    using chunks = sum_chunks<V>;
    constexpr int TURN = V::ACC == f32 ? 8 : 4; /* chunks at a time */
    constexpr int CHUNK = V::OWN_THREADS * 16, PART = chunks::COUNT * CHUNK;
#pragma unroll
    for (int c0 = 0; c0 < chunks::COUNT; c0 += TURN) {
        const char *part = from + c0 * CHUNK;
        float x[TURN * 8] = {};
        auto add_word = [&](int i, u32 word) {
            x[i * 2] += V::ACC == f32 ? __uint_as_float(word) : half_to_float(word);
            x[i * 2 + 1] += V::ACC == f32 ? 0 : half_to_float(word >> 16);
        };
        auto add_parts = [&](u32 parts) {
#pragma unroll 1
            for (; parts > 0; --parts, part += PART) {
                b128 v[TURN];
#pragma unroll
                for (int c = 0; c < TURN; ++c) ld_global(v[c], part + c * CHUNK, true);
#pragma unroll
                for (int c = 0; c < TURN; ++c) {
                    const u32 words[4] = {v[c].x, v[c].y, v[c].z, v[c].w};
#pragma unroll
                    for (int e = 0; e < 4; ++e) add_word(c * 4 + e, words[e]);
                }
            }
        };
        add_parts(own);
#pragma unroll
        for (int i = 0; i < TURN * 4; ++i) add_word(i, chunks::get_word(acc, c0 * 4 + i));
        part += PART;
        add_parts(splits - 1 - own);
#pragma unroll
        for (int i = 0; i < TURN * 4; ++i) chunks::round_word(acc, c0 * 4 + i, x[i * 2], x[i * 2 + 1]);
    }
}

/* Split-K. The blocks of a tile leave their accumulators in the workspace and count themselves. The last one to
 * arrive adds up all parts and sets the counter back to zero. It adds in the order of k and in single precision,
 * so that the result does not depend on which block that is. Its own sums stay in registers where there are enough.
 * Returns whether this block stores the tile; acc is then the sum. */
template <class V> static DEVICE bool add_parts(const arguments &args, typename V::sums &acc)
{
    using chunks = sum_chunks<V>;
    constexpr int COUNT = chunks::COUNT, OWN_THREADS = V::OWN_THREADS;

    /* How many chunks are added up at a time, and for how many parts they are in flight: 8 loads a thread, or 16,
     * if registers suffice. */
    constexpr bool MANY = V::SPARE_REGISTERS;
    constexpr int BATCH = COUNT < 4 ? COUNT : COUNT > 4 && MANY ? 8 : 4;
    constexpr int PARTS = (COUNT >= 4 && MANY ? 16 : 8) / BATCH;

    constexpr bool IS_LARGE = HGEMM_IS_LARGE(V::BM, V::BN);
    constexpr bool KEEPS_OWN =
        HGEMM_KEEPS_OWN(V::spec::T4_ROW, V::spec::BLOCKS, V::BM, V::BN, V::ACC == f32 ? 4 : 2);
    /* On a T4 each part takes a ticket as it ends, and the last of them waits for what the others write: they have
     * begun to, so that it does not wait for long. Elsewhere it looks whether they are there, in vain where parts end
     * at the same time, and then writes, too. */
    constexpr bool HAS_TICKETS = V::spec::T4_ROW && KEEPS_OWN;
    constexpr u32 WRITTEN = 1 << 16; /* counts the parts that are there, above the tickets */

    if ((V::INDIRECT && !V::CUTS_INDIRECT) || (!V::PARTS_FIRST && block_index() < args.whole_tiles)) return true;
    const u32 tiles = (((u32)args.m + V::BM - 1) / V::BM) * (((u32)args.n + V::BN - 1) / V::BN);
    const assignment<V> mine = is_grouped<V>(args) ? assignment<V>(args) : assignment<V>(args, tiles);
    if (V::PARTS_FIRST && !mine.is_part) return true;
    const u32 thread = thread_index(), splits = args.splits;
    const u32 tile = batch_index() * mine.split_tiles + mine.tile - args.whole_tiles;
    u32 *const arrived = (u32 *)args.workspace + tile;
    char *const first = (char *)args.workspace + HGEMM_WORKSPACE_TILES * 4 +
                        ((u64)tile * splits * COUNT * OWN_THREADS + thread) * 16;
    char *const own = first + (u64)mine.part * (COUNT * OWN_THREADS * 16);
    auto others_after_adding = [&](u32 count) { /* how many parts had arrived before */
        barrier(); /* all threads have read their last fragments, and written what they leave of their sums */
        if (thread == 0) st_shared_word(shared_base(), atomic_add(arrived, count));
        barrier();
        u32 before;
        ld_shared_word(before, shared_base());
        return before;
    };
    const u32 before = !KEEPS_OWN ? 0 : others_after_adding(HAS_TICKETS ? 1 : 0);
    if (!KEEPS_OWN || (HAS_TICKETS ? before % WRITTEN : before) + 1 < splits) {
#pragma unroll
        for (int c = 0; c < COUNT; ++c)
            st_global(own + c * (OWN_THREADS * 16), chunks::get(acc, c));
        if (others_after_adding(HAS_TICKETS ? WRITTEN : 1) + 1 < splits || HAS_TICKETS) return false;
    } else if (HAS_TICKETS) {
        if (thread == 0)
            while (atomic_add(arrived, 0) / WRITTEN + 1 < splits) {
            }
        barrier();
    }
    if constexpr (HAS_TICKETS && (IS_LARGE || V::spec::PACKED)) {
        add_in_turn<V>(acc, first, mine.part, splits);
    } else {
#pragma unroll(V::SPARE_REGISTERS && !KEEPS_OWN ? 1 : COUNT)
        for (int c0 = 0; c0 < COUNT; c0 += BATCH) {
            float x[BATCH * 8] = {};
#pragma unroll 1
            for (u32 s = 0; s < splits; s += PARTS) {
                b128 v[PARTS * BATCH] = {}; /* zeros past the last part */
#pragma unroll
                for (int c = 0; c < PARTS * BATCH; ++c) {
                    const bool is_own = KEEPS_OWN && s + c / BATCH == mine.part;
                    if (is_own) v[c] = chunks::get(acc, c0 + c % BATCH);
                    ld_global(v[c], first + (u64)((s + c / BATCH) * COUNT + c0 + c % BATCH) * (OWN_THREADS * 16),
                              s + c / BATCH < splits && !is_own);
                }
#pragma unroll
                for (int c = 0; c < PARTS * BATCH; ++c) {
                    const u32 words[4] = {v[c].x, v[c].y, v[c].z, v[c].w};
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        float &lo = x[c % BATCH * 8 + e * 2], &hi = x[c % BATCH * 8 + e * 2 + 1];
                        lo += V::ACC == f32 ? __uint_as_float(words[e]) : half_to_float(words[e]);
                        hi += V::ACC == f32 ? 0 : half_to_float(words[e] >> 16);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < COUNT * 4; ++i) {
                if (i / (BATCH * 4) * BATCH != c0) continue; /* a search, for registers have no index */
                const int e = i % (BATCH * 4);
                chunks::round_word(acc, i, x[e * 2], x[e * 2 + 1]);
            }
        }
    }
    if (thread == 0) *arrived = 0;
    return true;
}
