/* SPDX-License-Identifier: MIT */
/* How a plan's kernel brings sums to D. */
#ifndef HGEMM_WAY_H
#define HGEMM_WAY_H

#include "select/feasible.h"

/* The kernels' parameter `ways` (table/args.h). */
unsigned ways_to_d(const problem_t *p, variant_t variant);

#endif
