/* SPDX-License-Identifier: MIT */
/* The cost model: an estimate of the clocks that a plan takes. It knows a kernel only by its row of the table. */
#ifndef HGEMM_COST_H
#define HGEMM_COST_H

#include "select/feasible.h"
#include "select/machine.h"

/* What a step of a block costs while a given number of tiles run at one time, in clocks. */
typedef struct pace_t {
    double lone;    /* pipes, if the block has its multiprocessor to itself */
    double beside;  /* pipes, for each of several blocks */
    double latency; /* least clocks of a step, however idle the pipes are */
    double dram;    /* DRAM of the whole GPU */
    double store;   /* the same for storing a tile of D, once a block */
} pace_t;

/* What a variant costs on a machine, as far as it does not depend on how k is split. */
typedef struct price_t {
    const struct costs_t *costs; /* of the machine */
    int multiprocessors;
    int resident;     /* blocks of a multiprocessor at one time */
    int least_steps;  /* of a part of k */
    double launch;    /* clocks before the first block starts, once */
    double end;       /* clocks of a block beside its steps: its start, its epilogue */
    double overlap;   /* what of that blocks of a multiprocessor overlap */
    double turnover;  /* clocks from a lone block to the next one on its multiprocessor */
    double sum_bytes; /* of the sums of a block's tile */
    pace_t pace;      /* of whole tiles, if every multiprocessor is full */
} price_t;

/* The price of the variant, whose image is given, on the operands or on copies of some. */
price_t price_variant(const hgemm_desc_t *p, variant_t variant, const image_t *image, int copies,
                      const machine_t *machine);

/* Clocks of a plan of that variant. */
double plan_clocks(const hgemm_desc_t *p, const machine_t *machine, const price_t *price, const plan_t *plan);

/* Steps of the main loop for a whole tile: its k-tiles. */
int64_t steps_of(const hgemm_desc_t *p, variant_t variant);

/* Steps of all parts of k but the last, where that can be made so much shorter that it ends at the same time; 0 where
 * it cannot. */
int64_t long_part(const hgemm_desc_t *p, const price_t *price, int64_t tiles, int64_t steps, int64_t splits);

/* Whether a block has at most one warp for each sub-core: none hides another's latency. */
int has_few_warps(const hgemm_kernel_info_t *info);

#endif
