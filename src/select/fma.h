/* SPDX-License-Identifier: MIT */
/* Kernels whose FP32 units multiply floats from shared memory (ptx/fma.cu) as the host sees them: which products they
 * are drawn for, and what they cost. */
#ifndef HGEMM_FMA_H
#define HGEMM_FMA_H

#include "select/feasible.h"
#include "select/price.h"

/* What a step costs, if blocks share what they read from DRAM as told, and, in a price, its start and end. */
pace_t fma_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);
void price_fma(const problem_t *p, variant_t variant, price_t *price);

/* With shared memory for the sums that its blocks keep. */
launch_shape_t fma_shape(const problem_t *p, const plan_t *plan, const machine_t *machine);

#endif
