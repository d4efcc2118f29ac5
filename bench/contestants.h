/* SPDX-License-Identifier: MIT */
/* Who takes part. */
#ifndef HGEMM_BENCH_CONTESTANTS_H
#define HGEMM_BENCH_CONTESTANTS_H

#include "run.h"

/* Baselines come first, so that they are known when a kernel is compared with them. */
void add_contestants(group_t *g);

#endif
