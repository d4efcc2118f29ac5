/* SPDX-License-Identifier: MIT */
/*
 * The main loop: over the k-tiles of a block, and in each over the events of its schedule (schedule.cuh).
 *
 * A LOOP says what an event is for its operands and its mathematics. It has
 *
 *   SCHEDULE                    its list of events
 *   IN_PAIRS                    a turn takes two k-tiles, so that stages are constants
 *   STAGE                       bytes of a k-tile in shared memory
 *   on<KIND, INDEX, OF>(here, there)   does what that event is; stages by their byte offsets
 *   between(stage)              what is due before the k-tile in that stage; false where there is none
 *   goes_on()                   whether the next k-tile, or pair, follows with nothing in between
 */
#pragma once
#include "insn.cuh"
#include "schedule.cuh"

/* Events FROM to TO of a schedule. Halved, for a template may not be nested that deeply. */
template <class LOOP, int FROM, int TO> static DEVICE void walk(LOOP &loop, const u32 here, const u32 there)
{
    if constexpr (TO - FROM > 1) {
        walk<LOOP, FROM, (FROM + TO) / 2>(loop, here, there);
        walk<LOOP, (FROM + TO) / 2, TO>(loop, here, there);
    } else {
        constexpr event e = LOOP::SCHEDULE.events[FROM];
        loop.template on<e.kind, e.index, e.of>(here, there);
    }
}

template <class LOOP> static DEVICE void main_loop(LOOP &loop)
{
    constexpr int EVENTS = LOOP::SCHEDULE.count;
    u32 stage = 0;
#pragma unroll 1
    while (loop.between(stage)) {
#pragma unroll 1
        do {
            if constexpr (LOOP::IN_PAIRS) {
                walk<LOOP, 0, EVENTS>(loop, 0, LOOP::STAGE);
                walk<LOOP, 0, EVENTS>(loop, LOOP::STAGE, 0);
            } else {
                walk<LOOP, 0, EVENTS>(loop, stage, LOOP::STAGE - stage);
                stage = LOOP::STAGE - stage;
            }
        } while (loop.goes_on());
    }
    if constexpr (LOOP::IN_PAIRS)
        if (loop.has_odd()) walk<LOOP, 0, EVENTS>(loop, 0, LOOP::STAGE);
}
