/* SPDX-License-Identifier: MIT */
/* The cost model: an estimate of the clocks that a plan takes. It knows a kernel only by its row of the table. */
#ifndef HGEMM_COST_H
#define HGEMM_COST_H

#include "select/feasible.h"
#include "select/machine.h"
#include "select/price.h"

/* What comes before a problem's kernel, whichever it is. */
typedef struct prelude_t {
    double copies; /* clocks until all copies are made, ... */
    double scales; /* ... and until the scales of bfloat16 operands are found */
} prelude_t;

prelude_t prelude_of(const problem_t *p, int copies, const machine_t *machine);

/* The price of the variant, whose image is given. */
price_t price_variant(const problem_t *p, variant_t variant, const image_t *image, const prelude_t *prelude,
                      const machine_t *machine);

/* What a variant's parts of k cost, as far as it does not depend on how many a tile has. */
typedef struct parts_t {
    double tiles;            /* that are split, of all matrices */
    double before, turnover; /* clocks until the whole tiles have ended, and from there to the first part */
    pace_t pace;             /* while so many tiles run at one time */
    double tile_sums;        /* bytes of a tile's sums that a part writes */
    double sum_rate;         /* bytes of sums that are written or read in a clock */
    double runs_on;          /* of what a part's end takes, the share that blocks of the last round alone have */
    int own;                 /* parts whose sums are neither written nor read */
} parts_t;

/* Of a plan whose first `whole_tiles` tiles are not split, of those that are likely to have rows. Its pace is missing
 * where what comes before the parts takes longer than `limit`. */
parts_t price_parts(const problem_t *p, variant_t variant, const price_t *price, int64_t whole_tiles, double limit);

/* Clocks of a plan that splits no tile, and of one with such parts; or some number above `limit`, where it takes longer
 * than that. */
double whole_clocks(const problem_t *p, const price_t *price, const plan_t *plan, double limit);
double parts_clocks(const problem_t *p, const price_t *price, const parts_t *parts, const plan_t *plan, double limit);

/* Steps of all parts of k but the last, where that can be made so much shorter that it ends at the same time; 0 where
 * it cannot. Of a variant whose parts may be uneven. */
int64_t long_part(const price_t *price, int64_t tiles, int64_t splits);

#endif
