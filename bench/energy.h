/* SPDX-License-Identifier: MIT */
/* Energy by the GPU's own counter. */
#ifndef HGEMM_BENCH_ENERGY_H
#define HGEMM_BENCH_ENERGY_H

#include "run.h"

/* A turn of launches back to back during which the GPU's energy counter is watched; `call` is about
 * how many seconds one lasts. Fills in the repetition. 1, or 0 where the contestant has failed. */
int take_energy_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next, double call,
                     int repetition);

#endif
