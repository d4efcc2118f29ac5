/* SPDX-License-Identifier: MIT */
#include "select/mma.h"

#include <math.h>

#include "problem/weights.h"
#include "table/tile_facts.h"

enum {
    FAR_LOADS = 8, /* ACCESS_far loads each half of a chunk by itself */
    CHUNK = 8,     /* elements of A or B that a thread stores to shared memory at once */
};

/* Elements of a k-tile that become halves on their way. */
static double converted_elements(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int a = p->a.type != HGEMM_TYPE_F16 || p->has_floats ? info->block_m : 0,
              b = (p->b.type != HGEMM_TYPE_F16 && !p->is_packed) || p->has_floats ? info->block_n : 0;
    return (double)(a + b) * info->block_k;
}

/* Halves that an element of A or B becomes, and products of them for one of A and B (ptx/single.cu). */
static int parts_of(const problem_t *p, int kernel)
{
    return p->has_floats ? kernel_parts(&kernel_table[kernel]) : 1;
}

static int products_of(const problem_t *p, int kernel, int parts)
{
    if (!p->has_floats || kernel_table[kernel].accuracy != HGEMM_ACCURACY_F32)
        return parts;
    return 3 - p->a.is_exact - p->b.is_exact;
}

/* The k's of packed weights after which a warp scales their sums (ptx/weights.cu). */
static double scaled_k(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    enum { FINE = 16 };
    const int64_t group = p->weight_group ? p->weight_group : p->k;
    if (group < info->warp_k)
        return FINE;
    return (double)(info->block_k == HGEMM_PACKED_K && !kernel_table[kernel].has_teams ? info->warp_k : group);
}

/* Time of a multiply-add by packed weights in that of another. */
static double packed_macs(const problem_t *p, int kernel, const costs_t *costs)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    if (!p->is_packed)
        return 1;
    const code_info_t *code = &code_table[p->packed.code];
    double tight = 1;
    if (info->warp_m <= 32)
        tight = 1; /* registers are not short there */
    else if (code->kind == CODES_TABLE)
        tight = !kernel_table[kernel].has_teams ? costs->factor_packed_tables
                : p->a.type == HGEMM_TYPE_F16   ? costs->factor_table_teams
                                                : costs->factor_table_teams_bfloats;
    else if (code->bits == 8)
        tight = costs->factor_packed_tight;
    else if (p->a.type != HGEMM_TYPE_F16)
        tight = costs->factor_packed_bfloats;
    return (1 + costs->k_packed_scaling / scaled_k(p, kernel)) * tight;
}

/* Clocks of the pipes for a code of packed weights. A slice of a tile of 64 rows has mma's enough beside a table's
 * lookups. */
static double clocks_of_code(const problem_t *p, const hgemm_kernel_info_t *info, const costs_t *costs)
{
    if (!p->is_packed)
        return 0;
    const int waits = code_table[p->packed.code].kind == CODES_TABLE && info->warp_m <= 32;
    return waits ? costs->clocks_table_code : costs->clocks_packed_code;
}

/* Pipes: clocks for one k-tile of one block. Shared memory and L1 are one pipe, which the k-tile passes three
 * times: loaded from L2, stored to shared memory, read as fragments by every warp. */
static void price_pipes(const problem_t *p, variant_t variant, const costs_t *costs, step_t *step)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const int parts = parts_of(p, variant.kernel), products = products_of(p, variant.kernel, parts);
    double macs = (double)products * info->block_m * info->block_n * info->block_k;
    macs *= packed_macs(p, variant.kernel, costs);
    double stored = parts * HGEMM_STAGED_BYTES * step->elements;
    double loaded = step->tile_bytes + (step->rows_a + step->rows_b) * costs->overhead_loaded_row;
    double fragments = (double)parts * HGEMM_STAGED_BYTES * (info->warp_m + (p->is_packed ? 0 : info->warp_n)) *
                       info->warp_k * (info->threads / 32);
    double wavefronts = variant.access == ACCESS_x16   ? 1
                        : variant.access == ACCESS_x8  ? costs->factor_half_chunk_wavefronts
                        : variant.access == ACCESS_any ? costs->factor_unaligned_wavefronts
                                                       : FAR_LOADS;
    double sectors = variant.access <= ACCESS_x8    ? 1
                     : variant.access == ACCESS_any ? costs->factor_unaligned_sectors
                                                    : FAR_LOADS;
    double mma = macs / costs->rate_macs + clocks_of_code(p, info, costs) * info->block_n * info->block_k;
    double shared = (fragments + stored + wavefronts * loaded) / costs->rate_shared_bytes;
    const double l2 = sectors * loaded / costs->rate_l2_bytes;
    step->lone = fmax(overlapped(mma, shared, costs->overlap_lone_block), l2);
    step->beside = fmax(overlapped(mma, shared, costs->overlap_several_blocks), l2);
}

/* Clocks added to a k-tile of floats that are split in the loop. */
static double split_step(const costs_t *costs, hgemm_accuracy_t accuracy)
{
    return accuracy == HGEMM_ACCURACY_F32 ? costs->clocks_split_step : costs->clocks_split_step_11;
}

/* The same for each chunk. */
static double split_chunk(const costs_t *costs, int kernel)
{
    switch (kernel_table[kernel].accuracy) {
    case HGEMM_ACCURACY_16_BITS: return costs->clocks_split_chunk_16;
    case HGEMM_ACCURACY_11_BITS: return costs->clocks_split_chunk_11;
    default: return kernel_table[kernel].is_for_t4_alone ? costs->clocks_split_chunk_beside : costs->clocks_split_chunk;
    }
}

/* The largest power of two that divides the length of a row in memory, at most a line. */
static double row_step(double row_bytes)
{
    int step = LINE_BYTES;
    while (step > 1 && fmod(row_bytes, step) != 0)
        step /= 2;
    return step;
}

/* DRAM's time for a byte of a tile that reads rows in memory by `run` bytes, in that for a byte of whole lines: each
 * line that an access touches is opened. Rows begin anywhere in lines, at a multiple of what divides their length. */
static double opened_lines(const costs_t *costs, double run, double row_bytes)
{
    const double together = fmin(run, LINE_BYTES);
    const double lines = fmax(1 + (together - row_step(row_bytes)) / LINE_BYTES, 1);
    return (1 + lines * costs->overhead_line_access / together) / (1 + costs->overhead_line_access / LINE_BYTES);
}

/* Of a step what there is in memory, and in D. */
static step_t lines_of_step(const problem_t *p, variant_t variant, const price_t *price)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = price->costs;
    const int op = variant.op;
    const factor_t *a = &p->a, *b = &p->b;
    const double lines_m = lines_there(costs, info->block_m, (double)p->m);
    const double lines_n = lines_there(costs, info->block_n, (double)p->n);
    const double lines_k = lines_there(costs, info->block_k, (double)p->k / (double)price->steps);
    const double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    return (step_t){
        .lines_k = lines_k,
        .bytes_a = a->bytes * lines_m,
        .bytes_b = b->bytes * lines_n,
        .opened_a = opened_lines(costs, a->bytes * (op & 2 ? lines_m : lines_k), a->bytes * (double)a->ld),
        .opened_b = p->is_packed /* in whole lines */
                        ? 1
                        : opened_lines(costs, b->bytes * (op & 1 ? lines_k : lines_n), b->bytes * (double)b->ld),
        .rows_a = op & 2 ? info->block_k : info->block_m,
        .rows_b = op & 1 ? info->block_n : info->block_k,
        .elements = (double)(info->block_m + (p->is_packed ? 0 : info->block_n)) * info->block_k,
        .tile_bytes = (a->bytes * info->block_m + b->bytes * info->block_n) * info->block_k,
        .store = costs->factor_dram_store * STORED_BYTES * elements / costs->rate_dram_bytes,
    };
}

void price_mma(const problem_t *p, variant_t variant, price_t *price)
{
    const kernel_t *row = &kernel_table[variant.kernel];
    const hgemm_kernel_info_t *info = &row->info;
    const int splits = row->family == FAMILY_single; /* floats, in the loop */
    const costs_t *costs = price->costs;
    const double converted = converted_elements(p, variant.kernel) / CHUNK;
    double more = 0;
    price->step = lines_of_step(p, variant, price);
    const double chunks = price->step.elements / CHUNK;
    price_pipes(p, variant, costs, &price->step);
    if (variant.access == ACCESS_any)
        more = costs->clocks_unaligned_step + costs->clocks_unaligned_chunk * chunks / info->threads;
    if (p->is_packed)
        more += costs->clocks_packed_k * (row->has_teams ? info->warp_k : info->block_k) +
                costs->clocks_packed_scaling * info->warp_k / scaled_k(p, variant.kernel);
    more += splits ? split_step(costs, row->accuracy) : 0;
    more += costs->clocks_waited_chunk * converted / info->threads;
    price->step.latency = more;
    price->step.conversions = (splits ? split_chunk(costs, variant.kernel) : costs->clocks_converted_chunk) * converted;
}

pace_t mma_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers)
{
    (void)p, (void)tiles;
    const kernel_t *row = &kernel_table[variant.kernel];
    const hgemm_kernel_info_t *info = &row->info;
    const costs_t *costs = price->costs;
    const step_t *step = &price->step;
    const double of_a = step->bytes_a / sharers.a * step->opened_a, of_b = step->bytes_b / sharers.b * step->opened_b;
    const double own = (of_a + of_b) * step->lines_k; /* from DRAM */
    const double rows = step->rows_a * (1 / sharers.a) + step->rows_b * (1 / sharers.b);
    const double read = own + rows * costs->overhead_dram_row;
    double dram_alone = read / costs->rate_dram_bytes_alone;
    double dram = read / costs->rate_dram_bytes * (row->family == FAMILY_single ? costs->factor_float_dram : 1);
    double lone = step->lone, beside = step->beside, exposed = costs->factor_exposed * lone;
    if (info->threads <= ONE_WARP_EACH)
        exposed = costs->factor_exposed * fmax(lone, dram) + costs->factor_exposed_few_warps * lone;
    double dram_latency = costs->clocks_dram_latency;
    if (price->walk.prefetch) /* the first of the sharers fetches for the others */
        dram_latency = dram_latency * own / step->tile_bytes;
    if (row->has_teams) /* which work side by side, as blocks do */
        lone = beside;
    lone += step->conversions;
    beside += step->conversions;
    return (pace_t){.lone = fmax(lone, dram_alone),
                    .beside = fmax(beside, dram_alone),
                    .latency = costs->clocks_step + step->latency + dram_latency + exposed,
                    .dram = dram / price->multiprocessors,
                    .store = step->store / price->multiprocessors};
}

double mma_block(int kernel, const costs_t *costs)
{
    const kernel_t *row = &kernel_table[kernel];
    return row->family == FAMILY_single
               ? costs->clocks_split_block + costs->clocks_split_line * (row->info.block_m + row->info.block_n)
               : 0;
}

double mma_turnover(int kernel, const costs_t *costs, int resident)
{
    return resident == 1 ? costs->clocks_lone_turnover * mma_code(&kernel_table[kernel].info) : 0;
}
