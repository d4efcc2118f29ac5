/* SPDX-License-Identifier: MIT */
/*
 * Teams: warps that share a tile of packed weights, and have k-tiles and a barrier of their own (kernels.def, column TEAMS).
 *
 * To each other they are what two blocks on a multiprocessor are: the warps of one multiply while those of the other wait.
 * Yet their sums meet in shared memory, once, and not in the workspace. Team i has the i-th share of the block's k's. In
 * shared memory the stages of its k-tiles follow those of the teams before.
 */
#pragma once
#include "tile.cuh"

/* Whether the row that is compiled has them. */
struct without_teams { static constexpr bool TEAMS = false; };
#define TEAMS() static constexpr bool TEAMS = true;
#define HGEMM_KERNEL(rung, name, columns, ...) struct teams_of_##name : without_teams { columns };
#include "../src/table/kernels.def"
#define HGEMM_TEAMS_OF(name) teams_of_##name
#define HGEMM_TEAMS_OF_ROW(name) HGEMM_TEAMS_OF(name) /* expands `name` first */
constexpr bool HAS_TEAMS = HGEMM_TEAMS_OF_ROW(HGEMM_ROW)::TEAMS;

/* A thread's team, found in a way by which ptxas knows it to be one for the warp, and its k's with it. */
template <class V> static DEVICE u32 team_index()
{
    u32 team = 0;
#pragma unroll
    for (u32 t = 1; t < V::K_WARPS && HAS_TEAMS; ++t)
        if (all_lanes(thread_index() >= t * (V::THREADS / V::K_WARPS))) team = t;
    return team;
}

/* A team's k-tile of A: who loads what, by its index in the block. */
template <class V> struct team_operand : operand_of<V::ARE, V::BM, V::WK, V::A_K_CONTIGUOUS, V::THREADS / V::K_WARPS, V::ACCESS, V::INDIRECT> {
    static constexpr u32 THREADS = V::THREADS / V::K_WARPS;
    using whole = operand_of<V::ARE, V::BM, V::WK, V::A_K_CONTIGUOUS, THREADS, V::ACCESS, V::INDIRECT>;
    static constexpr u32 TEAM_BYTES = V::MAIN_BYTES / V::K_WARPS;
    static_assert(V::ACCESS == X16 && TEAM_BYTES == V::spec::STAGES * whole::BYTES, "teams share shared memory otherwise");

    static DEVICE int columns_inside(const panel &src, u32 thread) { return whole::columns_inside(src, thread % THREADS); }
    static DEVICE u32 commit_offset(u32 thread, int i)
    {
        return whole::commit_offset(thread % THREADS, i) + team_index<V>() * TEAM_BYTES;
    }
    /* kk: the first slice of a team's warp, of all that the warps of its tile have. */
    static DEVICE u32 fragment_offset(u32 first, u32 lane, int j, int kk)
    {
        return whole::fragment_offset(first, lane, j, 0) + (u32)kk / V::SLICES * TEAM_BYTES;
    }

    template <bool POINTERS> struct addresses : whole::template addresses<POINTERS> {
        using all = typename whole::template addresses<POINTERS>;
        DEVICE u32 locate(const panel &src, u32 k0, u32 thread) { return all::locate(src, k0, thread % THREADS); }
        DEVICE void load_checked(chunk<V::ACCESS> *to, const panel &src, int columns, u32 live, u32 thread) const
        {
            all::load_checked(to, src, columns, live, thread % THREADS);
        }
    };
};

/* A variant as its loop sees it: one k-tile is a team's. */
template <class V> struct team_variant : V {
    static constexpr int BK = V::WK;
    using A = team_operand<V>;
    static constexpr int STAGE = A::BYTES, SLOTS = A::LOADS;
};
template <bool, class V> struct loop_variant { using type = V; };
template <class V> struct loop_variant<true, V> { using type = team_variant<V>; };

/* Barrier number 0 is the block's. 9.7.12 bar */
template <class V> static DEVICE void team_barrier(u32 team)
{
    if constexpr (HAS_TEAMS) asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(V::THREADS / V::K_WARPS) : "memory");
    else barrier();
}

/* Has ptxas find what follows from x anew, where it would keep it in registers. */
static DEVICE void find_anew(u32 &x)
{
    if (HAS_TEAMS) asm volatile("" : "+r"(x));
}

/* Leaves of a block's k's a team's: as many units of packed weights as others have, but for the last ones. */
template <class V> static DEVICE void take_share(block<V> &at, u32 team)
{
    if (!HAS_TEAMS) return;
    constexpr u32 GRAIN = HGEMM_PACKED_K;
    const u32 share = (at.k + V::K_WARPS * GRAIN - 1) / (V::K_WARPS * GRAIN) * GRAIN, first = minimum(team * share, at.k);
    at.k = minimum(share, at.k - first), at.k0 += first;
    at.k_tiles = (at.k + V::BK - 1) / V::BK;
    at.tail = at.k > 0 ? at.k - (at.k_tiles - 1) * V::BK : 0;
    at.a.base += V::A::k_bytes(at.a, first);
}
