/* SPDX-License-Identifier: MIT */
/*
 * k2_swizzled: shared memory without bank conflicts.
 *
 * Idea      The 16-byte chunks of a shared-memory row are permuted by an XOR that depends on the
 *           row (the map is in operand.cuh), so that the eight rows of an ldmatrix lie in different
 *           banks. No padding: the tile keeps its size and its alignment.
 * Changes   Only the layout, which HGEMM_ENTRY selects; the loop is k1's.
 * Limits    All warps wait while the next k-tile is loaded.
 */
#include "tile.cuh"

template <class T> static DEVICE void k2_swizzled(const arguments &args)
{
    const typename T::block at(args);
    const typename T::warp w;
    typename T::sums acc;
    T::clear(acc);

    for (u32 t = 0; t < at.k_tiles; ++t) {
        typename T::staging next;
        T::fetch(next, at, t);
        barrier(); /* every warp is done with the previous k-tile */
        T::commit(next, 0);
        barrier(); /* this one is complete */
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            typename T::fragments f;
            T::load(f, w, 0, kk);
            T::multiply(acc, f);
        }
    }
    T::store(args, at, acc);
}

HGEMM_ENTRY(k2_swizzled, SWIZZLED)
