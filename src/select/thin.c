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

/* Columns, or rows, that D is thin in. */
static int64_t thin_columns(const problem_t *p, const hgemm_kernel_info_t *info)
{
    return info->block_m >= info->block_n ? p->n : p->m;
}

/* How a kernel takes its long operand, unless k is split (args.h). */
typedef enum way_t { TILE_BY_TILE, STREAMED, SWEPT } way_t;

static way_t way_of(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int is_tall = info->block_m > info->block_n;
    const factor_t *x = is_tall ? &p->a : &p->b;
    const int64_t columns = thin_columns(p, info), lines = is_tall ? p->m : p->n;
    if (info->block_m == info->block_n)
        return TILE_BY_TILE;
    if (x->is_along_k)
        return p->k >= LEAST_SWEPT_K && columns <= MOST_SWEPT_COLUMNS && x->whole == 8 ? SWEPT : TILE_BY_TILE;
    return p->k >= HGEMM_STREAMED_K && columns == 1 && lines >= HGEMM_STREAMED_LEAST_LINES ? STREAMED : TILE_BY_TILE;
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
    const way_t way = way_of(p, kernel);
    const factor_t *x = info->block_m > info->block_n ? &p->a : &p->b;
    return (is_side && p->k <= MOST_THIN_K) || (way == SWEPT && p->k <= MOST_SWEPT_K) ||
           (way == STREAMED && (x->ld % 8 != 0 || (uintptr_t)x->data % 16 != 0)); /* rows that are not all aligned */
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
pace_t thin_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers)
{
    const machine_t *machine = price->machine;
    const costs_t *costs = price->costs;
    (void)sharers;
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const int is_streamed = way_of(p, variant.kernel) == STREAMED;
    tiles = fmin(tiles, (double)price->tiles);
    int long_is_m = info->block_m >= info->block_n;
    int is_along_k = long_is_m ? p->a.is_along_k : p->b.is_along_k;
    double m = fmin((double)p->m, info->block_m), n = fmin((double)p->n, info->block_n);
    if (is_streamed) /* by blocks of fewer lines, none of which is nearly empty */
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
                    .latency = (1 + repeats) * costs->clocks_thin_step / (is_streamed ? STREAMED_STEPS : 1),
                    .dram = dram / machine->multiprocessors,
                    .store = STORED_BYTES * m * n / costs->rate_dram_bytes / machine->multiprocessors};
}

void price_thin(const problem_t *p, variant_t variant, price_t *price)
{
    const int kernel = variant.kernel;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const costs_t *costs = price->costs;
    const double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    price->launch = 0;
    price->least_steps = info->block_m == info->block_n ? 1 : 2;
    price->end = costs->clocks_thin_block + elements / costs->rate_thin_sums;
    /* A phase counts the latency of all steps but the first: of the first pass. */
    price->end += (thin_passes(p, info) - 1) * costs->factor_thin_passes * costs->clocks_thin_step;
    price->overlap = costs->clocks_thin_block;
    price->turnover = 0;
}

/* Lines that are swept: bytes bind, or what FP32 units do with them, or what one multiprocessor gets; beside it the
 * first load's way and the end of the last block, and a part of the way of each further 64 k's. */
double thin_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    enum { STEP_K = 64 }; /* of 8 lanes */
    if (way_of(p, plan->variant.kernel) != SWEPT || plan->splits > 1)
        return 0;
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

int thin_cuts(const problem_t *p, int kernel)
{
    return way_of(p, kernel) == TILE_BY_TILE;
}

/* Where D has a column or two, a tile is less work than what a block does once, or waits for. So a block may have four
 * tiles, or two, side by side, in as few rounds of blocks as that takes. */
static int64_t block_tiles(const problem_t *p, const plan_t *plan, const machine_t *machine)
{
    const kernel_t *kernel = &kernel_table[plan->variant.kernel];
    const int64_t columns = thin_columns(p, &kernel->info);
    if (kernel->info.block_m == kernel->info.block_n || columns > HGEMM_FEW_COLUMNS || plan->splits > 1)
        return 1;
    const int64_t slots = machine->multiprocessors * (machine->is_newer ? kernel->newer_blocks : kernel->blocks);
    const int64_t tiles = saturated_product(plan->tiles, p->matrices), most = 4 / columns;
    const int64_t even = ceil_div(tiles, slots * ceil_div(tiles, slots * most));
    return even < plan->tiles ? even : plan->tiles;
}

/* Of shared memory as much as a block's sums take: so more blocks run at one time. */
launch_shape_t thin_shape(const problem_t *p, const plan_t *plan, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const int64_t lines = info->block_m > info->block_n ? p->m : p->n, columns = thin_columns(p, info);
    const way_t way = plan->splits > 1 ? TILE_BY_TILE : way_of(p, plan->variant.kernel);
    if (way == SWEPT)
        return (launch_shape_t){ceil_div(lines, HGEMM_SWEPT_LINES), HGEMM_SWEPT_LINES * (int)columns * 4, HGEMM_SWEPT};
    if (way == STREAMED)
        return (launch_shape_t){ceil_div(lines, HGEMM_STREAMED_LINES), HGEMM_STREAMED_SUMS * 4, 0};
    const int64_t tiles = block_tiles(p, plan, machine), sums = columns * tiles;
    return (launch_shape_t){
        .blocks = ceil_div(plan->whole_tiles, tiles) + (plan->tiles - plan->whole_tiles) * plan->splits,
        .shared_bytes = sums < 8 ? info->shared_bytes / 8 * (int)sums : info->shared_bytes,
    };
}
