/* SPDX-License-Identifier: MIT */
/*
 * define.h - which bits of registers and memory hold a value that nobody wrote (inside the library).
 *
 * A load of bytes that were never written is no fault: compilers widen loads, copy padding, and load before they know
 * whether the value counts. So each undefined bit is followed through registers and memory, as valgrind's memcheck does
 * it, until it matters: it decides a branch, is part of an address, or is stored where the host reads it.
 */
#ifndef TURING_DEFINE_H
#define TURING_DEFINE_H

#include "exec.h"

/* Where an undefined value came from: a load, or a SHFL from a lane that did not execute it. */
typedef struct origin {
    uint64_t address;
    uint32_t code; /* instruction index */
    uint8_t space, lane, bytes;
} origin_t;

struct define {
    uint32_t bits[ROW_CONSTANTS][LANES]; /* ones: undefined */
    uint32_t loud[ROW_CONSTANTS];        /* lanes whose value was computed with, not only moved */
    origin_t origin[ROW_CONSTANTS];
    uint32_t pred[PRED_COUNT]; /* lanes whose predicate is undefined */
    origin_t pred_origin[PRED_COUNT];
    uint64_t dirty[(ROW_CONSTANTS + 63) / 64]; /* rows with a bit */
    uint32_t dirty_pred;
    bool any; /* of them is not 0 */
};

/* Before the first launch of a kernel; false: out of memory. */
bool emu_define_open(machine_t *m);
void emu_define_close(machine_t *m);
void emu_define_start(warp_t *w); /* a block begins: registers count as defined */

/* What an instruction makes of its operands; called before it is executed, where anything is undefined. */
void emu_define_follow(warp_t *w, const op_t *o, uint32_t on);
static inline void emu_define_issue(warp_t *w, const op_t *o, uint32_t on)
{
    if (w->define->any)
        emu_define_follow(w, o, on);
}

/* Undefined bits of bytes of memory; true if there are any. */
bool emu_define_bytes(const warp_t *w, turing_space_t space, uint32_t lane, uint64_t address, uint32_t bytes,
                      uint8_t out[16]);
/* The same of a load or a store that is carried out by these lanes. */
void emu_define_load(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES]);
void emu_define_store(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES]);
/* One lane's read-modify-write of `bytes` (4 or 8), before it; `swaps`: a compare-and-swap that succeeds. */
void emu_define_atomic(warp_t *w, const op_t *o, uint32_t lane, turing_space_t space, uint64_t address, uint32_t bytes,
                       bool cas, bool swaps);
/* Bits of a row, undefined for these lanes, loaded by `o` from where `from` says. */
void emu_define_put(warp_t *w, const op_t *o, unsigned row, const uint32_t bits[LANES], uint32_t on, site_t from);

#endif
