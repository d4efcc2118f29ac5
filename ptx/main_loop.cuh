/* SPDX-License-Identifier: MIT */
/*
 * The main loop: over the k-tiles of a block, and in each over the events of its schedule (schedule.cuh).
 *
 * A LOOP says what an event is for its operands and its mathematics. It has
 *
 *   SCHEDULE                    its list of events
 *   IN_PAIRS                    a turn takes two k-tiles, so that stages are constants
 *   STAGE                       bytes of a k-tile in shared memory
 *   HAS_BOTH_STAGES             where both stages begin is kept, else one: which is faster ptxas decides (note 500)
 *   on<KIND, INDEX, OF>(here, there)   does what that event is; stages by their byte offsets
 *   holds<CONDITION>()          whether it does, where the schedule has conditions
 *   t                           number of the k-tile, where the schedule has APART
 *   PAUSES                      something may be due between k-tiles; if not, all that follows is goes_on()
 *   is_due()                    whether anything is due before the next k-tile, or pair
 *   between(stage)              does that; false where the loop ends. The next k-tile is in that stage
 *   has_odd()                   IN_PAIRS: whether one k-tile is left
 *
 * What a LOOP refers to are variables of their own, and it holds no arrays: else the compiler keeps all of it in memory
 * until loops are unrolled, and takes invariants of the loop for registers (note 500).
 */
#pragma once
#include "insn.cuh"
#include "schedule.cuh"

/* Never, which the compiler cannot know: t is not that large. A branch ends a block of instructions that ptxas
 * orders. Else it puts additions off, for there are registers, and then has the tensor cores wait. */
static DEVICE bool is_past_all(u32 t, int place)
{
    u32 same;
    asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(t));
    return same == ~(u32)place;
}

/* Events FROM to TO of a schedule. Halved, for a template may not be nested that deeply. False where the loop ends:
 * never, as it turns out; what follows the loop needs the sums, or they would be added up there. */
template <class LOOP, int FROM, int TO> static DEVICE bool walk(LOOP &loop, const u32 here, const u32 there)
{
    if constexpr (TO - FROM > 1) {
        return walk<LOOP, FROM, (FROM + TO) / 2>(loop, here, there) && walk<LOOP, (FROM + TO) / 2, TO>(loop, here, there);
    } else {
        constexpr event e = LOOP::SCHEDULE.events[FROM];
        if constexpr (e.kind == APART) return !is_past_all(loop.t, e.place);
        else return loop.template on<e.kind, e.index, e.of>(here, there), true;
    }
}

/* The same of those from FROM on, each where its condition holds. Runs of opposite conditions are the sides of one branch. */
template <class LOOP, int FROM> constexpr int RUN_END = end_of_run(LOOP::SCHEDULE, FROM);
template <class LOOP, int FROM, int WHEN> constexpr int OTHER_END = end_of_other(LOOP::SCHEDULE, FROM, WHEN);
template <class LOOP, int FROM = 0> static DEVICE bool walk_all(LOOP &loop, const u32 here, const u32 there)
{
    constexpr int WHEN = LOOP::SCHEDULE.events[FROM].when, END = RUN_END<LOOP, FROM>;
    constexpr int OTHER = WHEN == ALWAYS ? END : OTHER_END<LOOP, END, WHEN>;
    if constexpr (WHEN == ALWAYS) {
        if (!walk<LOOP, FROM, END>(loop, here, there)) return false;
    } else if (WHEN > 0 ? loop.template holds<WHEN>() : !loop.template holds<-WHEN>()) {
        walk<LOOP, FROM, END>(loop, here, there);
    } else if constexpr (OTHER > END) {
        walk<LOOP, END, OTHER>(loop, here, there);
    }
    if constexpr (OTHER < LOOP::SCHEDULE.count) return walk_all<LOOP, OTHER>(loop, here, there);
    return true;
}

template <class LOOP> static DEVICE void main_loop(LOOP &loop)
{
    u32 stage = 0, other = LOOP::STAGE;
    if constexpr (!LOOP::PAUSES) {
#pragma unroll 1
        while (loop.goes_on()) {
            walk_all(loop, stage, LOOP::STAGE - stage);
            stage = LOOP::STAGE - stage;
        }
    } else {
#pragma unroll 1
        while (loop.between(stage)) {
#pragma unroll 1
            do {
                if constexpr (LOOP::IN_PAIRS) {
                    walk_all(loop, 0, LOOP::STAGE);
                    walk_all(loop, LOOP::STAGE, 0);
                } else {
                    const u32 here = stage, there = LOOP::HAS_BOTH_STAGES ? other : LOOP::STAGE - stage;
                    if (!walk_all(loop, here, there)) return;
                    stage = there, other = here;
                }
            } while (!loop.is_due());
        }
        if constexpr (LOOP::IN_PAIRS)
            if (loop.has_odd()) walk_all(loop, 0, LOOP::STAGE);
    }
}
