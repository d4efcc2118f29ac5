/* SPDX-License-Identifier: MIT */
/* What the emulated T4 counts. */
#ifndef HGEMM_BENCH_EMULATED_H
#define HGEMM_BENCH_EMULATED_H

#include "run.h"

/* Runs the problems on the emulated T4 and prints what it counted, in the options' format. Returns
 * the number of failures, -1 where the output cannot be written. */
int print_emulated(group_t *groups, int count);

#endif
