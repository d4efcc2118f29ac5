/* SPDX-License-Identifier: MIT */
#include "select/few.h"

#include <math.h>

#include "table/warp_facts.h"

enum {
    FLOAT_BYTES = 4,
    UNIT = 4, /* floats that a thread loads at once */
    MOST_SLOW = 256,
};

static int is_tall(int kernel)
{
    return kernel_table[kernel].info.block_m > kernel_table[kernel].info.block_n;
}

/* Columns, or rows, that D is thin in, and lines of the long operand. */
static int64_t columns_of(const problem_t *p, int kernel)
{
    return is_tall(kernel) ? p->n : p->m;
}
static int64_t lines_of(const problem_t *p, int kernel)
{
    return is_tall(kernel) ? p->m : p->n;
}

static int most_columns(int kernel)
{
    return is_tall(kernel) ? kernel_table[kernel].info.block_n : kernel_table[kernel].info.block_m;
}
static int most_lines(int kernel)
{
    return is_tall(kernel) ? kernel_table[kernel].info.block_m : kernel_table[kernel].info.block_n;
}

/* For more than 32 columns only where tensor cores have little to do, or load floats one by one. */
int is_few_drawn(const problem_t *p, int kernel)
{
    const int is_slow = p->a.whole < UNIT || p->b.whole < UNIT;
    const int64_t columns = columns_of(p, kernel);
    return columns <= 2 * most_columns(kernel) || (columns <= MOST_SLOW && (is_slow || p->k <= MOST_SLOW));
}

/* The columns that are multiplied: a power of two. */
static double multiplied_columns(const problem_t *p, int kernel)
{
    double columns = 1;
    while (columns < fmin((double)columns_of(p, kernel), most_columns(kernel)))
        columns *= 2;
    return columns;
}

/* Rounds of loads in which a warp takes its part of a k-tile, and waits for each. */
static double rounds(int columns, int is_along_k, int block_k)
{
    const int together = columns < HGEMM_FEW_TOGETHER ? columns : HGEMM_FEW_TOGETHER;
    return HGEMM_FEW_ROUNDS(is_along_k, together, HGEMM_FEW_GROUPS(columns), block_k);
}

pace_t few_pace(const problem_t *p, variant_t variant, const machine_t *machine)
{
    const int kernel = variant.kernel;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const costs_t *costs = costs_of(machine);
    const factor_t *w = is_tall(kernel) ? &p->a : &p->b;
    const double lines = fmin((double)lines_of(p, kernel), most_lines(kernel));
    const double columns = fmin((double)columns_of(p, kernel), most_columns(kernel));
    const double k = fmin((double)p->k, info->block_k);
    const double multiplied = multiplied_columns(p, kernel);
    const double macs = multiplied * most_lines(kernel) * info->block_k;
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

void price_few(const problem_t *p, int kernel, price_t *price)
{
    const costs_t *costs = price->costs;
    const double columns = fmin((double)columns_of(p, kernel), most_columns(kernel));
    price->launch = 0;
    price->end = costs->clocks_few_block + columns * most_lines(kernel) / costs->rate_epilogue_elements;
    price->overlap = costs->clocks_few_block;
    price->turnover = 0;
}
