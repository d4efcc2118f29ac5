/* SPDX-License-Identifier: MIT */
#include "select/few.h"

#include <math.h>

#include "table/warp_facts.h"

enum {
    FLOAT_BYTES = 4,
    UNIT = 4, /* floats that a thread loads at once */
    MOST_SLOW = 256,
};

/* The long operand, its lines, and the columns, or rows, that D is thin in: of the problem, and of a block. */
typedef struct sides_t {
    const factor_t *long_one;
    int64_t lines, columns;
    int most_lines, most_columns;
} sides_t;

static sides_t sides_of(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    if (info->block_m > info->block_n)
        return (sides_t){&p->a, p->m, p->n, info->block_m, info->block_n};
    return (sides_t){&p->b, p->n, p->m, info->block_n, info->block_m};
}

/* For more than 32 columns only where tensor cores have little to do, or load floats one by one. */
int is_few_drawn(const problem_t *p, const machine_t *machine, int kernel)
{
    const sides_t sides = sides_of(p, kernel);
    (void)machine;
    return sides.columns <= 2 * sides.most_columns ||
           (sides.columns <= MOST_SLOW && (p->whole < UNIT || p->k <= MOST_SLOW));
}

/* Rounds of loads in which a warp takes its part of a k-tile, and waits for each. */
static double rounds(int columns, int is_along_k, int block_k)
{
    const int together = columns < HGEMM_FEW_TOGETHER ? columns : HGEMM_FEW_TOGETHER;
    return HGEMM_FEW_ROUNDS(is_along_k, together, HGEMM_FEW_GROUPS(columns), block_k);
}

pace_t few_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers)
{
    const machine_t *machine = price->machine;
    const costs_t *costs = price->costs;
    (void)tiles, (void)sharers;
    const int kernel = variant.kernel;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const sides_t sides = sides_of(p, kernel);
    const factor_t *w = sides.long_one;
    const double lines = fmin((double)sides.lines, sides.most_lines);
    const double columns = fmin((double)sides.columns, sides.most_columns);
    const double k = fmin((double)p->k, info->block_k);
    double multiplied = 1; /* columns: a power of two */
    while (multiplied < columns)
        multiplied *= 2;
    const double macs = multiplied * sides.most_lines * info->block_k;
    const double loads = w->whole >= UNIT ? 1 : UNIT;
    const double bytes = FLOAT_BYTES * lines * k + (w->is_along_k ? lines : k) * costs->overhead_dram_row;
    const double loaded = bytes + FLOAT_BYTES * columns * k;
    const double pipes = fmax(macs / costs->rate_few_macs + loads * lines * k / UNIT * costs->clocks_few_unit,
                              fmax(loaded / costs->rate_l2_bytes, bytes / costs->rate_dram_bytes_alone));
    return (pace_t){.lone = pipes,
                    .beside = pipes,
                    .latency = costs->clocks_few_step +
                               costs->clocks_few_round * rounds((int)multiplied, w->is_along_k, info->block_k),
                    .dram = bytes / costs->rate_few_bytes / machine->multiprocessors,
                    .store = STORED_BYTES * lines * columns / costs->rate_few_bytes / machine->multiprocessors};
}

void price_few(const problem_t *p, variant_t variant, price_t *price)
{
    const int kernel = variant.kernel;
    const costs_t *costs = price->costs;
    const sides_t sides = sides_of(p, kernel);
    const double columns = fmin((double)sides.columns, sides.most_columns);
    price->launch = 0;
    price->end = costs->clocks_few_block + columns * sides.most_lines / costs->rate_epilogue_elements;
    price->overlap = costs->clocks_few_block;
    price->turnover = 0;
    price->least_steps = 1;
}
