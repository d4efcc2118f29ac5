/* SPDX-License-Identifier: MIT */
/* fold.h - constant propagation over a launch: what its parameters decide, whatever memory holds. */
#ifndef TURING_FOLD_H
#define TURING_FOLD_H

#include "exec.h"

/* All that instructions read and write, in one row. */
enum { SLOT_UR = 256, SLOT_P = 320, SLOT_UP = 328, SLOTS = 336, SLOT_WORDS = (SLOTS + 63) / 64 };

typedef struct set {
    uint64_t word[SLOT_WORDS];
} set_t;

/* Slots that have the same value in all lanes, and the values; of predicates 0 or 1. */
typedef struct known {
    set_t slots;
    uint32_t value[SLOTS];
} known_t;

typedef enum truth { UNKNOWN, FALSE_IN_ALL, TRUE_IN_ALL } truth_t;

truth_t emu_fold_pred(const known_t *k, const turing_pred_t *p);

/* Where every path to a place has been heard of; what they agree in is known there. True if that is news. */
bool emu_fold_meet(known_t *to, const known_t *from, bool is_first);

/* What is known behind an instruction, from what is before it. The warp is one to compute on. */
void emu_fold_step(warp_t *w, const op_t *o, const set_t *reads, const set_t *writes, known_t *k);

#endif
