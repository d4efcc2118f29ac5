/* SPDX-License-Identifier: MIT */
/* What every contestant must show before it is timed: that its results are right. */
#ifndef HGEMM_BENCH_PROOF_H
#define HGEMM_BENCH_PROOF_H

#include "run.h"

/* Computes D from the first set and proves it; the contestant fails where it is wrong. Kernels of
 * hgemm write integer problems to a matrix of their own, `apart`, that was filled with NaN; all
 * else is in place, as it is timed. `host` has room for D. */
void verify(contestant_t *c, const problem_t *p, const set_t *set, char *apart, void *host);

#endif
