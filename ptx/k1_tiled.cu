/* SPDX-License-Identifier: MIT */
/*
 * k1_tiled: hierarchical tiling.
 *
 * Idea      A grid of thread blocks covers D; a block tile is divided into warp tiles, a warp tile
 *           into mma.m16n8k8. Each k-tile of A and B is loaded into shared memory once and used by
 *           all warps: 64 multiply-adds for every half that is loaded from global memory.
 * Limits    Bank conflicts: the rows that an ldmatrix reads share banks, which takes 4 or 8
 *           wavefronts instead of one. All warps wait while the next k-tile is loaded.
 */
#include "tile.cuh"

template <class T> static DEVICE void k1_tiled(const arguments &args)
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

HGEMM_ENTRY(k1_tiled, 0)
