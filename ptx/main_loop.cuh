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
 *   t                           number of the k-tile, where the schedule has APART
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

template <class LOOP> static DEVICE void main_loop(LOOP &loop)
{
    constexpr int EVENTS = LOOP::SCHEDULE.count;
    u32 stage = 0, other = LOOP::STAGE;
#pragma unroll 1
    while (loop.between(stage)) {
#pragma unroll 1
        do {
            if constexpr (LOOP::IN_PAIRS) {
                walk<LOOP, 0, EVENTS>(loop, 0, LOOP::STAGE);
                walk<LOOP, 0, EVENTS>(loop, LOOP::STAGE, 0);
            } else {
                const u32 here = stage, there = LOOP::HAS_BOTH_STAGES ? other : LOOP::STAGE - stage;
                if (!walk<LOOP, 0, EVENTS>(loop, here, there)) return;
                stage = there, other = here;
            }
        } while (!loop.is_due());
    }
    if constexpr (LOOP::IN_PAIRS)
        if (loop.has_odd()) walk<LOOP, 0, EVENTS>(loop, 0, LOOP::STAGE);
}
