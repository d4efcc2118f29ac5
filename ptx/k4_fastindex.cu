/* SPDX-License-Identifier: MIT */
/*
 * k4_fastindex: every address is computed once.
 *
 * Idea      A thread's position within a k-tile never changes; only the k-tile's origin moves. So
 *           an address is a base that all threads share plus an offset computed before the loop;
 *           in shared memory, where all sizes are powers of two, an XOR and an immediate are all
 *           that is left.
 * Changes   fetch, commit and load go through T::pipeline. The two k-tiles that may be short are
 *           fetched before the loop, so it has no k edge; one k-tile is always in registers.
 * Limits    Within a step the instructions come in bunches: each ldmatrix right before the mma's
 *           that need it, stores at the end. The tensor cores wait at each bunch.
 */
#include "tile.cuh"

template <class T> static DEVICE void k4_fastindex(const arguments &args)
{
    const typename T::block at(args);
    const typename T::warp w;
    typename T::pipeline pipe(at, w); /* k-tile 0 is in shared memory, k-tile 1 in registers */
    typename T::sums acc;
    T::clear(acc);

    u32 stage = 0; /* where in shared memory this k-tile begins; the other stage is at STAGE - stage */
    barrier();
    for (u32 left = at.k_tiles; left > 0; --left) {
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            typename T::fragments f;
#pragma unroll
            for (int j = 0; j < T::LDSMS; ++j) pipe.load_one(f, j, kk, stage);
            T::multiply(acc, f);
        }
#pragma unroll
        for (int q = 0; q < T::SLOTS; ++q) pipe.commit(q, T::STAGE - stage);
#pragma unroll
        for (int q = 0; q < T::SLOTS; ++q) pipe.fetch(at, q, left > 2);
        pipe.advance(at);
        stage = T::STAGE - stage;
        barrier(); /* the next k-tile is complete, and every warp is done with this one */
    }
    T::store(args, at, acc);
}

HGEMM_ENTRY(k4_fastindex, true)
