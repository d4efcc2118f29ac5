/* SPDX-License-Identifier: MIT */
/* What is known without a GPU. */
#ifndef HGEMM_BENCH_FACTS_H
#define HGEMM_BENCH_FACTS_H

#include "run.h"

/* Kernels, and what would run on a T4 for each problem. */
void print_facts(void);

/* What the library chooses on the device of bench.info, as the results of a timed run say it: JSON, on stdout. */
void print_choices(const group_t *groups, int count);

#endif
