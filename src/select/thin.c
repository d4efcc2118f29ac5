/* SPDX-License-Identifier: MIT */
#include "select/thin.h"

#include <math.h>

enum {
    MOST_THIN_K = 128,  /* of a product that is thin in m or n alone */
    LEAST_SWEPT_K = 24, /* of lines that are swept: less is a sector, which a thread loads by itself */
    MOST_SWEPT_K = 256, /* more have to be split where lines are few */
    MOST_SWEPT_COLUMNS = 4,
    LEAST_DOT_K = 1 << 16, /* of one of up to 8 x 8, for which a thin kernel takes two passes; on a T4 at a loss */
    STREAMED_STEPS = 16,   /* of a kernel that streams, in the latency of one of others */
    SECTOR = 32            /* bytes that DRAM reads at least */
};

/* ---- Which products -------------------------------------------------------------------------------- */

int is_streamed(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int is_tall = info->block_m > info->block_n;
    if (!is_thin(kernel) || info->block_m == info->block_n || p->k < HGEMM_STREAMED_K)
        return 0;
    return (is_tall ? p->n : p->m) == 1 && (is_tall ? p->m : p->n) >= HGEMM_STREAMED_LEAST_LINES &&
           (is_tall ? !p->a.is_along_k : !p->b.is_along_k);
}

/* Columns, or rows, that D is thin in. */
static int64_t thin_columns(const problem_t *p, const hgemm_kernel_info_t *info)
{
    return info->block_m >= info->block_n ? p->n : p->m;
}

int is_swept(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int is_tall = info->block_m > info->block_n;
    const factor_t *x = is_tall ? &p->a : &p->b;
    if (!is_thin(kernel) || info->block_m == info->block_n || p->k < LEAST_SWEPT_K)
        return 0;
    return thin_columns(p, info) <= MOST_SWEPT_COLUMNS && x->is_along_k && x->whole == 8;
}

/* Whether rows of the operand that a thin kernel streams are not all aligned to 16 bytes. */
static int is_unaligned(const problem_t *p, const hgemm_kernel_info_t *info)
{
    const int is_a = info->block_m > info->block_n;
    return (is_a ? p->a.ld : p->b.ld) % 8 != 0 || (uintptr_t)(is_a ? p->a.data : p->b.data) % 16 != 0;
}

/* Thin kernels multiply up to 4 columns in a pass over their operands; where both sides of an operand are long, or more
 * columns are to be multiplied, tensor cores are as fast or faster. But a single column streams rows of any alignment,
 * which tensor cores do at a loss. */
int is_thin_drawn(const problem_t *p, const machine_t *machine, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    int is_small = (p->m <= 8 && p->n <= 4) || (p->m == 1 && p->n <= 8), is_side = p->m <= 8 || p->n <= 8;
    if (info->block_m == info->block_n)
        return is_small || (p->m <= 8 && p->n <= 8 && p->k >= LEAST_DOT_K && (machine->is_newer || copies_needed(p)));
    return (is_side && p->k <= MOST_THIN_K) || (is_swept(p, kernel) && p->k <= MOST_SWEPT_K) ||
           (is_streamed(p, kernel) && is_unaligned(p, info));
}

/* ---- What they cost -------------------------------------------------------------------------------- */

/* What the L2 cache does not keep of so many bytes until they are read again: a share. */
static double beyond(double bytes, const machine_t *machine)
{
    return fmin(fmax(bytes / (0.75 * (double)machine->l2_bytes) - 1, 0), 1);
}

/* Passes of a thin kernel's block over its long operand, each for four columns of the other one (ptx/thin.cu). */
static double thin_passes(const problem_t *p, const hgemm_kernel_info_t *info)
{
    double columns =
        info->block_m >= info->block_n ? fmin((double)p->n, info->block_n) : fmin((double)p->m, info->block_m);
    return ceil(columns / 4);
}

/* A thin kernel's step, as far as D and k have it: a long operand streams from DRAM, each row of it in whole sectors,
 * and is multiplied by up to 8 columns of the other one, which stay in the cache. */
pace_t thin_pace(const problem_t *p, variant_t variant, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    int long_is_m = info->block_m >= info->block_n;
    int is_along_k = long_is_m ? p->a.is_along_k : p->b.is_along_k;
    double m = fmin((double)p->m, info->block_m), n = fmin((double)p->n, info->block_n);
    if (is_streamed(p, variant.kernel)) /* by blocks of fewer lines, none of which is nearly empty */
        m = (double)p->m / ceil((double)p->m / info->block_m), n = (double)p->n / ceil((double)p->n / info->block_n);
    double k = fmin((double)p->k, info->block_k), ld = (double)(long_is_m ? p->a.ld : p->b.ld);
    double rows = is_along_k ? (long_is_m ? m : n) : k, width = is_along_k ? k : long_is_m ? m : n;
    /* What is read again: the rest of a sector, by the next step, and all by the next pass. */
    double lines = tiles * (long_is_m ? info->block_m : info->block_n); /* in flight */
    double each = long_is_m ? p->a.bytes : p->b.bytes, other = long_is_m ? p->b.bytes : p->a.bytes;
    double rest = is_along_k ? beyond(lines * fmin(each * ld, LINE_BYTES), machine) : 1;
    double row_bytes =
        fmin(each * ld, each * width + costs->overhead_thin_row + (SECTOR / 2.0 - costs->overhead_thin_row) * rest);
    double bytes = rows * row_bytes + other * (long_is_m ? n : m) * k;
    double passes = thin_passes(p, info), repeats = (passes - 1) * costs->factor_thin_passes;
    double dram = (1 + repeats * beyond(each * lines * (double)p->k, machine)) * bytes / costs->rate_dram_bytes;
    double alone = passes * bytes / costs->rate_dram_bytes_alone;
    double pipes = fmax(alone, m * n * k / costs->rate_thin_macs);
    return (pace_t){.lone = pipes,
                    .beside = pipes,
                    .latency =
                        (1 + repeats) * costs->clocks_thin_step / (is_streamed(p, variant.kernel) ? STREAMED_STEPS : 1),
                    .dram = dram / machine->multiprocessors,
                    .store = STORED_BYTES * m * n / costs->rate_dram_bytes / machine->multiprocessors};
}

void price_thin(const problem_t *p, int kernel, price_t *price)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const costs_t *costs = price->costs;
    const double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    price->launch = 0;
    price->end = costs->clocks_thin_block + elements / costs->rate_thin_sums;
    /* A phase counts the latency of all steps but the first: of the first pass. */
    price->end += (thin_passes(p, info) - 1) * costs->factor_thin_passes * costs->clocks_thin_step;
    price->overlap = costs->clocks_thin_block;
    price->turnover = 0;
}

/* Lines that are swept: bytes bind, or what FP32 units do with them, or what one multiprocessor gets; beside it the
 * first load's way and the end of the last block, and a part of the way of each further 64 k's. */
double swept_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    enum { STEP_K = 64 }; /* of 8 lanes */
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const costs_t *costs = price->costs;
    const factor_t *w = info->block_m > info->block_n ? &p->a : &p->b;
    const double matrices = (double)p->matrices, lines = (double)w->lines, k = (double)p->k;
    const double columns = (double)thin_columns(p, info), multiplied = columns > 2 ? MOST_SWEPT_COLUMNS : columns;
    const double line = w->ld == w->width ? 2 * k : ceil(2 * k / SECTOR) * SECTOR;
    const double bytes = line + 2 * columns; /* of a line */
    const double blocks = matrices * ceil(lines / HGEMM_SWEPT_LINES);
    const double dram = matrices * lines * bytes / costs->rate_dram_bytes / machine->multiprocessors;
    const double pipes =
        matrices * lines * k * (1 + multiplied) / (2 * costs->rate_thin_macs) / machine->multiprocessors;
    const double alone =
        ceil(blocks / machine->multiprocessors) * HGEMM_SWEPT_LINES * bytes / costs->rate_dram_bytes_alone;
    const double steps = ceil(k / STEP_K);
    return costs->clocks_thin_block / 2 + (steps - 1) * costs->clocks_thin_step / 4 + fmax(fmax(dram, pipes), alone);
}

/* ---- How they are launched ------------------------------------------------------------------------- */

/* Where D has a column or two, a tile is less work than what a block does once, or waits for. So a block may have four
 * tiles, or two, in as few rounds of blocks as that takes. */
int64_t thin_block_tiles(const problem_t *p, const plan_t *plan, const machine_t *machine)
{
    const kernel_t *kernel = &kernel_table[plan->variant.kernel];
    const int64_t columns = thin_columns(p, &kernel->info);
    if (kernel->info.block_m == kernel->info.block_n || columns > HGEMM_FEW_COLUMNS || plan->splits > 1 ||
        is_swept(p, plan->variant.kernel))
        return 1;
    const int64_t slots = machine->multiprocessors * (machine->is_newer ? kernel->newer_blocks : kernel->blocks);
    const int64_t tiles = saturated_product(plan->tiles, p->matrices), most = 4 / columns;
    const int64_t even = ceil_div(tiles, slots * ceil_div(tiles, slots * most));
    return even < plan->tiles ? even : plan->tiles;
}

/* As many as a block's sums take: so more blocks run at one time. */
int thin_shared_bytes(const problem_t *p, const plan_t *plan, int64_t tiles)
{
    const int kernel = plan->variant.kernel;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int64_t columns = thin_columns(p, info) * tiles;
    if (is_streamed(p, kernel) && plan->splits == 1)
        return HGEMM_STREAMED_SUMS * 4;
    if (is_swept(p, kernel) && plan->splits == 1)
        return HGEMM_SWEPT_LINES * (int)columns * 4;
    return columns < 8 ? info->shared_bytes / 8 * (int)columns : info->shared_bytes;
}

int64_t thin_blocks(const problem_t *p, const plan_t *plan, int64_t tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const int64_t lines = info->block_m > info->block_n ? p->m : p->n;
    if (is_streamed(p, plan->variant.kernel) && plan->splits == 1)
        return ceil_div(lines, HGEMM_STREAMED_LINES);
    if (is_swept(p, plan->variant.kernel) && plan->splits == 1)
        return ceil_div(lines, HGEMM_SWEPT_LINES);
    return ceil_div(plan->whole_tiles, tiles) + (plan->tiles - plan->whole_tiles) * plan->splits;
}

unsigned thin_bits(const problem_t *p, const plan_t *plan)
{
    return is_swept(p, plan->variant.kernel) && plan->splits == 1 ? HGEMM_SWEPT : 0;
}
