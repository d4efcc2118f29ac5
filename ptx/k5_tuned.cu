/* SPDX-License-Identifier: MIT */
/*
 * k5_tuned: the same loop over tuned tiles, without a gap between k-tiles.
 *
 * Idea      The tensor cores never wait if everything else is slipped in between the mma's, also
 *           where a k-tile ends. And no tile suits every product: a family of them, each with a
 *           schedule of its own, from which a plan is chosen.
 * Changes   The barrier precedes the last slice, whose fragments are already in registers, so the
 *           first slice of the next k-tile is loaded right after it. Tiles, warps, schedule and
 *           rasterization are columns of the table. In smaller tiles warps share a tile of D and
 *           divide each k-tile among them (sliced-K): each then has a larger tile, and fewer
 *           fragments per mma. k-tiles are prefetched into L2 before they are loaded, so that a
 *           step waits for L2 at most, not for DRAM; not so for large tiles on a T4, whose steps
 *           outlast both. C is prefetched between the last k-tiles. Where whole tiles leave
 *           multiprocessors idle, k is split among blocks, too (split-K; T::store adds the parts
 *           up). Warps whose tile lies outside of D multiply nothing.
 * Limits    Wave quantization, that is tiles that do not fill the last wave; and the epilogue.
 */
#include "tile.cuh"

template <class T> static DEVICE void k5_tuned(const arguments &args)
{
    using schedule = typename T::schedule;
    /* In mma's from the begin of a k-tile. */
    constexpr int LAST_STS = schedule::STS_FIRST + (T::SLOTS - 1) * schedule::STS_GAP;
    static_assert(LAST_STS < (T::SLICES - 1) * T::MMAS, "a store comes after the barrier");
    static_assert(LAST_STS + schedule::LDG_LAG < T::SLICES * T::MMAS, "a load comes after the k-tile's last mma");
    static_assert((T::LDSMS - 1) * schedule::LDS_GAP < T::MMAS, "fragments are not loaded within a slice");
    if (T::is_unneeded(args)) return;
    const typename T::block at(args);
    if (!at.is_needed(args)) return;
    const typename T::warp w;
    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    typename T::sums acc;
    typename T::fragments f[2];
    T::clear(acc);

    /* The smallest tiles prefetch C here, for they have few steps. */
    constexpr bool C_FIRST = T::BM * T::BN <= 32 * 32;
    static_assert(!C_FIRST || T::C_PARTS == 1, "a part of C is not prefetched");
    if (C_FIRST && args.beta != 0) T::prefetch_c(args, at, 0);
    const bool idles = T::IDLES && T::is_outside(args, at, w);
    barrier(); /* k-tile 0 is complete */
    if (idles) { /* moves its part of the k-tiles, for the others */
#pragma unroll 1
        for (u32 left = at.k_tiles, to = T::STAGE; left > 0; --left, to = T::STAGE - to) {
#pragma unroll
            for (int q = 0; q < T::SLOTS; ++q) pipe.convert(q), pipe.commit(q, to);
            barrier();
#pragma unroll
            for (int q = 0; q < T::SLOTS; ++q) pipe.fetch(at, q, left > 2);
            pipe.prefetch(left);
            pipe.advance(at);
        }
        for (u32 i = 0; !C_FIRST && args.beta != 0 && i < T::C_PARTS; ++i) T::prefetch_c(args, at, i);
        return;
    }
#pragma unroll
    for (int j = 0; j < T::LDSMS; ++j) pipe.load_one(f[0], j, 0, 0);

    /* Whether a chunk is due so many mma's after the first one was. */
    auto due = [](int mmas) {
        return mmas >= 0 && mmas % schedule::STS_GAP == 0 && mmas / schedule::STS_GAP < T::SLOTS;
    };
    /* If registers are short, and in a T4's rows, ptxas gathers loads and stores in bunches, unless a barrier keeps
     * them apart. For the whole warp, which is converged here, it is compiled to a NOP. */
    auto keep_apart = [] { if (T::ACC == f32 || T::spec::T4_ROW) warp_barrier(); };

    /* One k-tile. Its stage begins at `here` in shared memory, the other one at `there`. */
    u32 left = at.k_tiles, stage = 0;
    auto step = [&](const u32 here, const u32 there) {
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
            if (last) barrier(); /* the next k-tile is complete, and every warp is done with this one */
            if (kk == T::SLICES / 2) pipe.prefetch(left);
#pragma unroll
            for (int h = 0; h < T::MMAS; ++h) {
                const int sts = kk * T::MMAS + h - schedule::STS_FIRST, ldg = sts - schedule::LDG_LAG;
                const int cvt = sts + schedule::CVT_LEAD;
                if (h % schedule::LDS_GAP == 0 && h / schedule::LDS_GAP < T::LDSMS)
                    pipe.load_one(f[(kk + 1) % 2], h / schedule::LDS_GAP, last ? 0 : kk + 1, last ? there : here);
                T::multiply_one(acc, f[kk % 2], h);
                if (T::CONVERTS && T::ACCESS == X16) { /* a pair at a time, with mma's in between */
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int pair = cvt - i * schedule::CVT_GAP;
                        if (due(pair)) pipe.convert(pair / schedule::STS_GAP, i);
                    }
                } else if (T::CONVERTS && due(cvt)) {
                    pipe.convert(cvt / schedule::STS_GAP);
                }
                if (due(sts)) keep_apart(), pipe.commit(sts / schedule::STS_GAP, there);
                if (due(ldg)) pipe.fetch(at, ldg / schedule::STS_GAP, left > 2, T::IN_PAIRS && here > 0), keep_apart();
            }
        }
        pipe.advance(at, !T::IN_PAIRS ? 1 : here > 0 ? 2 : 0);
        --left;
    };
    /* All k-tiles. C is prefetched between the last of them, a part after every other one: all of it at one time, as
     * all blocks would do together, delays A and B. */
#pragma unroll 1
    for (u32 until = !C_FIRST && args.beta != 0 ? T::C_PARTS * 2 : 0;; until -= 2) {
        if (T::IN_PAIRS) {
#pragma unroll 1
            while (left >= until + 2) step(0, T::STAGE), step(T::STAGE, 0);
        } else {
#pragma unroll 1
            while (left > until) step(stage, T::STAGE - stage), stage = T::STAGE - stage;
        }
        if (until == 0) break;
        T::prefetch_c(args, at, until / 2 - 1);
    }
    if (T::IN_PAIRS && left > 0) step(0, T::STAGE);
    T::store(args, at, acc);
}

HGEMM_ENTRY(k5_tuned)
