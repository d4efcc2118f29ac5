/* SPDX-License-Identifier: MIT */
/* What the host asks of a kernel's family (table/ways.def): which products it is for, what it costs, how it is
 * launched. */
#ifndef HGEMM_FAMILY_H
#define HGEMM_FAMILY_H

#include "select/feasible.h"
#include "select/price.h"

typedef struct family_info_t {
    /* Whether automatic selection draws from a kernel, unless it is there to be read; NULL: wherever it runs. Within
     * that the cost model chooses. */
    int (*is_drawn)(const problem_t *p, const machine_t *machine, int kernel);
    /* What a step costs while so many tiles run at one time, whose blocks share what they read from DRAM as told. */
    pace_t (*pace)(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);
    /* Puts into a price what does not depend on tiles: its step, or what a block has in the place of others' starts and
     * ends. */
    void (*price)(const problem_t *p, variant_t variant, price_t *price);
    /* Clocks of a plan that is priced as a whole, 0 of another; NULL: of all others. */
    double (*clocks)(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);
    /* Whether plans that cut k are worth a try; NULL: they are. */
    int (*cuts)(const problem_t *p, int kernel);
    /* How a plan is launched; NULL: a block for each tile or part. */
    launch_shape_t (*shape)(const problem_t *p, const plan_t *plan, const machine_t *machine);
} family_info_t;

extern const family_info_t family_table[FAMILY_COUNT];

#endif
