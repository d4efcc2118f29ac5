/* SPDX-License-Identifier: MIT */
#include "select/tiny.h"

#include <math.h>

#include "table/warp_facts.h"

enum { MOST_TINY_K = 128 }; /* beyond, bytes that warps read again cost more than to share them */

int is_tiny_drawn(const problem_t *p, const machine_t *machine, int kernel)
{
    (void)machine, (void)kernel;
    return p->k <= MOST_TINY_K;
}

/* Bytes of a matrix of so many rows in memory, and what accesses to lines of it cost beside: a warp's takes up to
 * `most` elements of a row, and the rows that follow in the same line where there is no gap. */
static double accessed_bytes(const costs_t *costs, double lines, double width, double ld, double most)
{
    const double run = 2 * (width <= most && ld == width ? fmax(width, LINE_BYTES / 2) : fmin(width, most));
    return 2 * lines * width * (1 + costs->overhead_line_access / fmin(run, LINE_BYTES));
}

/* Loads of a lane in a step, of so many lines of eight k's each; or, beside rows along the lines, of as many k's. */
static double step_loads(const factor_t *x, int lines)
{
    const int most = x->is_along_k ? HGEMM_TINY_UNIT_K : lines, width = x->whole < most ? x->whole : most;
    return (x->is_along_k ? lines : HGEMM_TINY_UNIT_K) * (most / width);
}

pace_t tiny_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers)
{
    (void)p, (void)variant, (void)price, (void)tiles, (void)sharers;
    return (pace_t){0};
}

double tiny_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    const costs_t *costs = price->costs;
    const kernel_t *kernel = &kernel_table[plan->variant.kernel];
    const hgemm_kernel_info_t *info = &kernel->info;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k, matrices = (double)p->matrices;
    const double rows = ceil(m / info->block_m), columns = ceil(n / info->block_n);
    const double warps = (double)plan->tiles * matrices, later_steps = fmax(k / HGEMM_TINY_STEP_K - 1, 0);
    const double multiprocessors = machine->multiprocessors, resident = price->resident * (double)kernel->tiles;
    const factor_t a = p->a, b = p->b;
    const double bytes_of_a = accessed_bytes(costs, (double)a.lines, (double)a.width, (double)a.ld,
                                             a.is_along_k ? HGEMM_TINY_STEP_K : info->block_m);
    const double bytes_of_b = accessed_bytes(costs, (double)b.lines, (double)b.width, (double)b.ld,
                                             b.is_along_k ? HGEMM_TINY_STEP_K : info->block_n);
    const double bytes_of_d = accessed_bytes(costs, m, n, n, info->block_n);
    const double dram = (1 + later_steps * costs->factor_tiny_steps) * matrices *
                        (bytes_of_a + bytes_of_b + costs->factor_tiny_store * bytes_of_d) /
                        (costs->rate_dram_bytes * (1 + costs->overhead_line_access / LINE_BYTES));
    const double l2 = matrices * (columns * bytes_of_a + rows * bytes_of_b) / costs->rate_l2_bytes;
    const double of_m = m / (rows * info->block_m), of_n = n / (columns * info->block_n); /* of tiles, that D has */
    const double loads = (step_loads(&a, HGEMM_TINY_LINES(info->block_m)) * of_m +
                          step_loads(&b, HGEMM_TINY_LINES(info->block_n)) * of_n) *
                         k / HGEMM_TINY_STEP_K;
    const double pipes = warps * (costs->clocks_tiny_warp + loads * costs->clocks_tiny_load);
    const double waits = costs->clocks_tiny_tile + later_steps * costs->clocks_tiny_step;
    return fmax(fmax(dram, l2), pipes) / multiprocessors + waits * fmax(1, warps / (multiprocessors * resident) / 4);
}
