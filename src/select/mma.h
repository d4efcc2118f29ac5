/* SPDX-License-Identifier: MIT */
/* Kernels whose k-tiles lie in shared memory and feed tensor cores (ptx/k5_tuned.cu, single.cu, weights.cu),
 * as the cost model sees them. */
#ifndef HGEMM_MMA_H
#define HGEMM_MMA_H

#include "select/feasible.h"
#include "select/price.h"

enum {
    ONE_WARP_EACH = 4 * 32
}; /* threads of a block that has at most one warp for each sub-core: none hides another's
    * latency */

/* Puts its step into a price; and what that costs, if blocks share what they read from DRAM as told. */
void price_mma(const problem_t *p, variant_t variant, price_t *price);
pace_t mma_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers);

/* Squared mma's of a warp tile, for 8 k's: code grows with them. */
static inline double mma_code(const hgemm_kernel_info_t *info)
{
    const double mmas = info->warp_m / 16.0 * (info->warp_n / 8.0);
    return mmas * mmas;
}

/* Clocks that floats add to a block's start and end. */
double mma_block(int kernel, const costs_t *costs);

/* From a block to the next one on its multiprocessor, which holds so many at one time. */
double mma_turnover(int kernel, const costs_t *costs, int resident);

#endif
