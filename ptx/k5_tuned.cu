/* SPDX-License-Identifier: MIT */
/*
 * k5_tuned: the same loop, interleaved, over tuned tiles.
 *
 * Idea      The tensor cores never wait if everything else is slipped in between the mma's. The
 *           fragments of the next slice are loaded while this one is multiplied, one ldmatrix at
 *           a time; each store of the next k-tile is followed a little later by the load that
 *           refills its register. The table says after how many mma's each comes.
 * Changes   Fragments are double-buffered. The barrier precedes the last slice, whose fragments
 *           are already in registers, so the first slice of the next k-tile is loaded right after
 *           it. Tiles, warps, schedule and rasterization are columns of the table. In smaller
 *           tiles warps share a tile of D and divide each k-tile among them (sliced-K): each then
 *           has a larger tile, and fewer fragments per mma. k-tiles are prefetched into L2 before
 *           they are loaded, so that a step waits for L2 at most, not for DRAM; not so for large
 *           tiles on a T4, whose steps outlast both. C is prefetched between the last k-tiles.
 *           Where whole tiles leave multiprocessors idle, k is split among blocks, too (split-K;
 *           T::store adds the parts up).
 * Limits    Wave quantization, that is tiles that do not fill the last wave; and the epilogue.
 */
#include "tile.cuh"

template <class T> static __device__ __forceinline__ void k5_tuned(const args &p)
{
    using row = typename T::row;
    static_assert(row::STS_FIRST + (T::SLOTS - 1) * row::STS_GAP < (T::SLICES - 1) * T::MMAS, "a store comes after the barrier");
    static_assert(row::STS_FIRST + (T::SLOTS - 1) * row::STS_GAP + row::LDG_LAG < T::SLICES * T::MMAS, "a load comes after the k-tile's last mma");
    static_assert((T::LDSMS - 1) * row::LDS_GAP < T::MMAS, "fragments are not loaded within a slice");
    const typename T::block at(p);
    const typename T::warp w;
    typename T::index in(at, w); /* k-tile 0 is in shared memory, 1 in registers */
    typename T::sums acc;
    typename T::fragments f[2];
    T::clear(acc);

    constexpr bool AT_ONCE = T::BM * T::BN <= 32 * 32; /* the L2 cache is told of C here: the smallest tiles have few steps */
    static_assert(!AT_ONCE || T::C_PARTS == 1, "a part of C is not told of");
    if (AT_ONCE && p.beta != 0) T::tell_of_c(p, at, 0);
    barrier();
#pragma unroll
    for (int j = 0; j < T::LDSMS; ++j) in.load_one(f[0], j, 0, 0);

    auto due = [](int mmas) { return mmas >= 0 && mmas % row::STS_GAP == 0 && mmas / row::STS_GAP < T::SLOTS; };
    /* Where registers are short, and for a T4, ptxas gathers loads and stores in bunches, unless a barrier is between them; this one is a NOP. */
    auto apart = [] { if (row::ACC == f32 || row::FOR_T4) warp_barrier(); };

    /* One k-tile: `here` and `there` are where its stage and the other begin. */
    u32 left = at.tiles, stage = 0;
    auto step = [&](const u32 here, const u32 there) {
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const bool last = kk == T::SLICES - 1;
            if (last) barrier(); /* the next k-tile is complete, and every warp is done with this one */
            if (kk == T::SLICES / 2) in.tell_ahead(left);
#pragma unroll
            for (int h = 0; h < T::MMAS; ++h) {
                const int put = kk * T::MMAS + h - row::STS_FIRST, get = put - row::LDG_LAG;
                if (h % row::LDS_GAP == 0 && h / row::LDS_GAP < T::LDSMS)
                    in.load_one(f[(kk + 1) % 2], h / row::LDS_GAP, last ? 0 : kk + 1, last ? there : here);
                T::multiply_one(acc, f[kk % 2], h);
                if (due(put)) apart(), in.commit(put / row::STS_GAP, there);
                if (due(get)) in.fetch(at, get / row::STS_GAP, left > 2, T::PAIRS && here > 0), apart();
            }
        }
        in.advance(at, !T::PAIRS ? 1 : here > 0 ? 2 : 0);
        --left;
    };
    /* All k-tiles. The L2 cache is told of C between the last of them, a part every other one: all of it at
     * one time, as all blocks would, stands in the way of A and B. */
#pragma unroll 1
    for (u32 until = !AT_ONCE && p.beta != 0 ? T::C_PARTS * 2 : 0;; until -= 2) {
        if (T::PAIRS) {
#pragma unroll 1
            while (left >= until + 2) step(0, T::STAGE), step(T::STAGE, 0);
        } else {
#pragma unroll 1
            while (left > until) step(stage, T::STAGE - stage), stage = T::STAGE - stage;
        }
        if (until == 0) break;
        T::tell_of_c(p, at, until / 2 - 1);
    }
    if (T::PAIRS && left > 0) step(0, T::STAGE);
    T::store(p, at, acc);
}

HGEMM_ENTRY(k5_tuned, true)
