/* SPDX-License-Identifier: MIT */
/*
 * k4_fastindex: every address is computed once.
 *
 * Idea      A thread's place in a k-tile never changes: only the k-tile's start moves. So an
 *           address is a base that all threads share plus an offset computed before the loop; in
 *           shared memory, where all sizes are powers of two, what is left is an XOR and an
 *           immediate.
 * Changes   fetch, commit and load go through T::index. The first k-tile, the only short one, is
 *           peeled off, so that the loop has no k edge.
 * Limits    Within a step the instructions come in bunches: ldmatrix before the mma's that need
 *           it, stores at the end. The tensor cores wait at each bunch.
 */
#include "tile.cuh"

template <class T> static __device__ __forceinline__ void k4_fastindex(const args &p)
{
    const typename T::block at(p);
    const typename T::warp w;
    typename T::index at_k(at, w);
    typename T::sums acc;
    typename T::staging next = {};
    T::clear(acc);

#pragma unroll
    for (int q = 0; q < T::index::SLOTS; ++q) at_k.fetch(next, at, q, at.tiles > 0, at.first);
#pragma unroll
    for (int q = 0; q < T::index::SLOTS; ++q) at_k.commit(next, q);
    at_k.advance(at, at.first);
    at_k.flip_puts();
    barrier();
    for (u32 left = at.tiles; left > 0; --left) {
#pragma unroll
        for (int q = 0; q < T::index::SLOTS; ++q) at_k.fetch(next, at, q, left > 1);
        at_k.advance(at, T::BK);
#pragma unroll
        for (int kk = 0; kk < T::SLICES; ++kk) {
            typename T::fragments f;
#pragma unroll
            for (int j = 0; j < T::LDSMS; ++j) at_k.load_one(f, j, kk);
            T::multiply(acc, f);
        }
#pragma unroll
        for (int q = 0; q < T::index::SLOTS; ++q) at_k.commit(next, q);
        at_k.flip_gets();
        at_k.flip_puts();
        barrier();
    }
    T::store(p, acc);
}

HGEMM_ENTRY(k4_fastindex, true)
