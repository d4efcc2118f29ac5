/* SPDX-License-Identifier: MIT */
/* Thin kernels (ptx/thin.cu), for products that bytes bound, as the host sees them: which products they are drawn for,
 * what they cost, and how they are launched (family.h). */
#ifndef HGEMM_THIN_H
#define HGEMM_THIN_H

#include "select/feasible.h"
#include "select/price.h"

int is_thin_drawn(const problem_t *p, const machine_t *machine, int kernel);
pace_t thin_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);
void price_thin(const problem_t *p, variant_t variant, price_t *price);

/* Of a plan that sweeps its long operand. */
double thin_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);

/* Whether it takes its long operand tile by tile. */
int thin_cuts(const problem_t *p, int kernel);

launch_shape_t thin_shape(const problem_t *p, const plan_t *plan, const machine_t *machine);

#endif
