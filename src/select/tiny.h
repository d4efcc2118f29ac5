/* SPDX-License-Identifier: MIT */
/* Kernels whose warps have a tile each (ptx/tiny.cu), as automatic selection sees them: which products they are drawn
 * for, and what they cost. */
#ifndef HGEMM_TINY_H
#define HGEMM_TINY_H

#include "select/feasible.h"
#include "select/price.h"

/* Whether automatic selection draws from them. */
int is_tiny_drawn(const problem_t *p, const machine_t *machine, int kernel);

/* It has no steps that tiles share: tiny_clocks prices all. */
pace_t tiny_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);

/* Clocks of a plan whose price is that. */
double tiny_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);

#endif
