/* SPDX-License-Identifier: MIT */
/*
 * k3_prefetch: the next k-tile is loaded while this one is multiplied.
 *
 * Idea      Turing has no asynchronous copy to shared memory, so the next k-tile is fetched into
 *           registers before the multiplication and committed to shared memory after it.
 * Changes   Shared memory is double-buffered: one stage is read while the other is written, and
 *           one barrier per k-tile is enough.
 * Limits    Each step computes its addresses anew: the integer instructions compete with the mma's
 *           for issue slots, and their registers with the prefetch.
 */
#include "tile.cuh"

template <class T> static DEVICE void k3_prefetch(const arguments &args)
{
    const typename T::block at(args);
    const typename T::warp w;
    typename T::sums acc;
    typename T::staging next;
    T::clear(acc);

    T::fetch(next, at, 0);
    T::commit(next, 0);
    barrier();
    for (u32 t = 0; t < at.k_tiles; ++t) {
        if (t + 1 < at.k_tiles) T::fetch(next, at, t + 1);
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            typename T::fragments f;
            T::load(f, w, t % 2, kk);
            T::multiply(acc, f);
        }
        T::commit(next, (t + 1) % 2); /* after the last k-tile nobody reads it; a branch would part the step */
        barrier(); /* the next k-tile is complete, and every warp is done with this one */
    }
    T::store(args, at, acc);
}

HGEMM_ENTRY(k3_prefetch, SWIZZLED)
