/* SPDX-License-Identifier: MIT */
/* Problems that plans are chosen for, and GPUs that they are chosen on. */
#ifndef TEST_PROBLEMS_H
#define TEST_PROBLEMS_H

#include "api/handle.h"
#include "problem_of.h"
#include "util.h"

/* A row-major product of dense operands, none of which is transposed. */
hgemm_desc_t problem(hgemm_accumulate_t accumulate, int64_t m, int64_t n, int64_t k);

/* Any size, layout, transpose, alignment and batch. */
hgemm_desc_t random_problem(rng_t *rng);

/* The plan that runs on a T4. */
hgemm_status_t select_for_t4(const hgemm_desc_t *desc, size_t workspace, plan_t *plan);

/* One like an H100. */
machine_t a_newer_gpu(void);

#endif
