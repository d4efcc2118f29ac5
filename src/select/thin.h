/* SPDX-License-Identifier: MIT */
/* Thin kernels (ptx/thin.cu), for products that bytes bound, as the host sees them: which products they are drawn for,
 * what they cost, and how they are launched. */
#ifndef HGEMM_THIN_H
#define HGEMM_THIN_H

#include "select/feasible.h"
#include "select/price.h"

/* Whether a kernel is a thin one that streams its long operand, unless k is split (args.h). */
int is_streamed(const problem_t *p, int kernel);

/* Whether it is a thin one that sweeps its long operand, unless k is split. */
int is_swept(const problem_t *p, int kernel);

/* Whether automatic selection has a thin kernel to draw from. */
int is_thin_drawn(const problem_t *p, const machine_t *machine, int kernel);

/* What a step costs while so many tiles run at one time. */
pace_t thin_pace(const problem_t *p, variant_t variant, const machine_t *machine, double tiles);

/* Puts into a price what a thin kernel has in the place of other kernels' starts and ends. */
void price_thin(const problem_t *p, int kernel, price_t *price);

/* Clocks of a plan that sweeps, whose price is that. */
double swept_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);

/* How many tiles, side by side, a block has; blocks for the tiles and parts of a matrix; bytes of shared memory. */
int64_t thin_block_tiles(const problem_t *p, const plan_t *plan, const machine_t *machine);
int64_t thin_blocks(const problem_t *p, const plan_t *plan, int64_t block_tiles);
int thin_shared_bytes(const problem_t *p, const plan_t *plan, int64_t block_tiles);

/* What a thin kernel is told in `indirect` (args.h). */
unsigned thin_bits(const problem_t *p, const plan_t *plan);

#endif
