/* SPDX-License-Identifier: MIT */
/* Random cases of everything that a descriptor can say, and how a failure becomes a small one. */
#ifndef TEST_GEMM_RANDOM_H
#define TEST_GEMM_RANDOM_H

#include "gemm_run.h"
#include "util.h"

/* Lengths are up to `most`. `copies`: on aligned copies of operands that are not aligned. */
case_t random_case(rng_t *rng, int64_t most, int copies);

/* Takes away from a case that fails what it can, one thing after another, while it still fails. `outcome` is then that
 * of the smaller one. */
void shrink_case(hgemm_handle_t handle, case_t *c, outcome_t *outcome);

#endif
