/* SPDX-License-Identifier: MIT */
/* The cost model: an estimate of the clocks that a plan takes. It knows a kernel only by its row of the table. */
#ifndef HGEMM_COST_H
#define HGEMM_COST_H

#include "select/feasible.h"
#include "select/machine.h"
#include "select/price.h"

/* The price of the variant, whose image is given, on the operands or on copies of some. */
price_t price_variant(const problem_t *p, variant_t variant, const image_t *image, int copies,
                      const machine_t *machine);

/* Clocks of a plan of that variant. */
double plan_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);

/* Tiles of one matrix that have rows of D. Of groups, whose sizes the device knows: as many as there are if each row is
 * in any of them alike, rather more than fewer. */
int64_t likely_tiles(const problem_t *p, const hgemm_kernel_info_t *kernel);

/* Steps of all parts of k but the last, where that can be made so much shorter that it ends at the same time; 0 where
 * it cannot. */
int64_t long_part(const problem_t *p, const price_t *price, int64_t tiles, int64_t steps, int64_t splits);

#endif
