/* SPDX-License-Identifier: MIT */
/* A problem: its contestants are proved, then measured together. */
#ifndef HGEMM_BENCH_TIMING_H
#define HGEMM_BENCH_TIMING_H

#include "run.h"

/* Verifies all contestants of the problem, then hands those that are right to `use`. */
typedef void group_fn(group_t *g, const problem_t *p, const set_t *sets, int set_count);
void prove_group(group_t *g, group_fn *use);

/* Gives the contestants their times. */
group_fn time_group;

#endif
