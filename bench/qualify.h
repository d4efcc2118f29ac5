/* SPDX-License-Identifier: MIT */
/* Which of CUTLASS's configurations take part. */
#ifndef HGEMM_BENCH_QUALIFY_H
#define HGEMM_BENCH_QUALIFY_H

#include "run.h"

typedef struct hopefuls_t {
    contestant_t *all;
    int count;
} hopefuls_t;

/* Every configuration and slicing of k that can run the problem, for each of the accumulators that
 * the group's contestants of kind CUTLASS have. Pointers are taken from the set. */
hopefuls_t find_hopefuls(const group_t *g, const problem_t *p, const set_t *set);

/* Gives the group's contestants of kind CUTLASS the hopefuls that are right and fastest in a few
 * turns, those that have failed left out. Proves them with this problem. */
void qualify(group_t *g, hopefuls_t *hopefuls, const problem_t *p, const set_t *sets, int set_count, void *host);

/* After the contest: the first contestant of CUTLASS, whose result is shown, gets the better. */
void crown(group_t *g);

#endif
