/* SPDX-License-Identifier: MIT */
/*
 * Teams: warps that share a tile of packed weights, and have k-tiles and a barrier of their own (kernels.def, column TEAMS).
 *
 * To each other they are what two blocks on a multiprocessor are: the warps of one multiply while those of the other wait.
 * Yet their sums meet in shared memory, once, and not in the workspace. Team i has the i-th share of the block's k's. In
 * shared memory the stages of its k-tiles follow those of the teams before.
 */
#pragma once
#include "position.cuh"

/* A thread's team, found in a way by which ptxas knows it to be one for the warp, and its k's with it. */
template <class V> static DEVICE u32 team_index()
{
    u32 team = 0;
#pragma unroll
    for (u32 t = 1; t < V::TEAM_COUNT; ++t)
        if (all_lanes(thread_index() >= t * V::LOADERS)) team = t;
    return team;
}

/* Which thread of its team it is. */
template <class V> static DEVICE u32 team_thread() { return V::TEAMS ? thread_index() % V::LOADERS : thread_index(); }

/* Barrier number 0 is the block's. 9.7.12 bar */
template <class V> static DEVICE void team_barrier(u32 team)
{
    if constexpr (V::TEAMS) asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(V::LOADERS) : "memory");
    else barrier();
}

/* Leaves of a block's k's a team's: as many units of packed weights as others have, but for the last ones. */
template <class V> static DEVICE void take_share(block<V> &at, u32 team)
{
    if (!V::TEAMS) return;
    constexpr u32 GRAIN = HGEMM_PACKED_K;
    const u32 share = (at.k + V::TEAM_COUNT * GRAIN - 1) / (V::TEAM_COUNT * GRAIN) * GRAIN, first = minimum(team * share, at.k);
    at.k = minimum(share, at.k - first), at.k0 += first;
    at.k_tiles = (at.k + V::BK - 1) / V::BK;
    at.tail = at.k > 0 ? at.k - (at.k_tiles - 1) * V::BK : 0;
    at.a.base += V::A::k_bytes(at.a, first);
}
