/* SPDX-License-Identifier: MIT */
/* Kernels for few rows or columns of floats (ptx/few.cu) as the host sees them: which products they are drawn for, and
 * what they cost. */
#ifndef HGEMM_FEW_H
#define HGEMM_FEW_H

#include "select/feasible.h"
#include "select/price.h"

/* Whether automatic selection has such a kernel to draw from. */
int is_few_drawn(const problem_t *p, const machine_t *machine, int kernel);

/* What a step costs, and, in a price, its launch, start and end. */
pace_t few_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);
void price_few(const problem_t *p, variant_t variant, price_t *price);

#endif
