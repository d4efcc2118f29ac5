/* SPDX-License-Identifier: MIT */
/*
 * bits.h - which bits of a register reach which bits of a result: ptxas keeps predicates in bits of
 * registers, beside halves and what was there before.
 */
#ifndef TURING_BITS_H
#define TURING_BITS_H

#include "insn.h"

typedef struct way {
    uint32_t reg;
    uint32_t mask;   /* of the result: what bits of `reg` may be in it */
    uint8_t from[4]; /* the byte of `reg` in each byte of the result   */
    bool extend[4];  /* of that its uppermost bit alone, eight times   */
} way_t;

enum { WAYS_MAX = 3 };

typedef struct ways {
    int n;
    way_t way[WAYS_MAX];
    uint32_t others; /* the bits of the result that come from what is no register */
} ways_t;

/* How an instruction's registers come to its result, which is a register's or, of R2P, predicates, from bit 0 on.
 * False: any bit may come to any. */
bool emu_ways(const turing_insn_t *in, ways_t *ways);

/* The bits of a result that come from these of a register. */
uint32_t emu_arrive(const way_t *way, uint32_t bits);

/* The bits of a register from which these of a result come. */
uint32_t emu_origin(const way_t *way, uint32_t result);

#endif
