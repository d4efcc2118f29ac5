/* SPDX-License-Identifier: MIT */
/*
 * k4_fastindex: every address is computed once, so that instructions may stand anywhere.
 *
 * Idea      A thread's position within a k-tile never changes; only the k-tile's origin moves. So
 *           an address is a base that all threads share plus an offset computed before the loop;
 *           in shared memory, where all sizes are powers of two, an XOR and an immediate are all
 *           that is left. What needs no arithmetic before it fits between any two mma's: in a T4's
 *           machine code stores are spread over the k-tile, each soon followed by the load that
 *           refills its register, and each ldmatrix comes a slice before the mma's that need it.
 * Changes   fetch, commit and load go through T::pipeline. The two k-tiles that may be short are
 *           fetched before the loop, so it has no k edge; one k-tile is always in registers. The
 *           table says after how many mma's each instruction comes. On newer GPUs they still come
 *           in bunches: each ldmatrix right before its slice, stores and loads at the end.
 * Limits    A k-tile begins with an ldmatrix that all wait for, behind the barrier. One tile for
 *           all shapes: small products have fewer blocks than the GPU has places for them, large
 *           ones load more than larger tiles would.
 */
#include "tile.cuh"

template <class T> static DEVICE void k4_fastindex(const arguments &args)
{
    using spec = typename T::spec;
    constexpr bool SPREAD = spec::LDS_GAP > 0; /* whether the row has a schedule */
    constexpr int AHEAD = SPREAD ? 1 : 0;      /* slices by which an ldmatrix precedes its mma's */
    constexpr int FIRST_STS = SPREAD ? spec::STS_FIRST : T::SLICES * T::MMAS - 1; /* counts a k-tile's mma's */
    constexpr int LAST_LDG = FIRST_STS + (T::SLOTS - 1) * spec::STS_GAP + spec::LDG_LAG;
    static_assert(LAST_LDG < T::SLICES * T::MMAS, "a load comes after the k-tile's last mma");
    static_assert((T::LDSMS - 1) * spec::LDS_GAP < T::MMAS, "fragments are not loaded within a slice");
    const typename T::block at(args);
    const typename T::warp w;
    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    typename T::sums acc;
    T::clear(acc);

    /* What is spread ptxas gathers in bunches again, unless a barrier keeps it apart. For the whole warp, which is
     * converged here, it is compiled to a NOP. */
    auto keep_apart = [] { if (SPREAD) warp_barrier(); };

    u32 stage = 0; /* where in shared memory this k-tile begins; the other stage is at STAGE - stage */
    barrier();
    for (u32 left = at.k_tiles; left > 0; --left) {
        typename T::fragments f[2];
#pragma unroll
        for (int j = 0; AHEAD && j < T::LDSMS; ++j) pipe.load_one(f[0], j, 0, stage);
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            const int next = kk + AHEAD;
#pragma unroll
            for (int h = 0; h < T::MMAS; ++h) {
                const int after = kk * T::MMAS + h - FIRST_STS; /* mma's since the first store */
#pragma unroll
                for (int j = 0; j < T::LDSMS; ++j)
                    if (h == j * spec::LDS_GAP && next < T::SLICES)
                        pipe.load_one(f[next % 2], j, next, stage), keep_apart();
                T::multiply_one(acc, f[kk % 2], h);
#pragma unroll
                for (int q = 0; q < T::SLOTS; ++q)
                    if (after == q * spec::STS_GAP) keep_apart(), pipe.commit(q, T::STAGE - stage);
#pragma unroll
                for (int q = 0; q < T::SLOTS; ++q)
                    if (after == q * spec::STS_GAP + spec::LDG_LAG) pipe.fetch(at, q, left > 2), keep_apart();
            }
        }
        pipe.advance(at);
        stage = T::STAGE - stage;
        barrier(); /* the next k-tile is complete, and every warp is done with this one */
    }
    T::store(args, at, acc);
}

HGEMM_ENTRY(k4_fastindex, SWIZZLED)
