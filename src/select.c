/* SPDX-License-Identifier: MIT */
/*
 * Selection. A kernel that can run the problem is priced by a model of a T4's multiprocessor, and
 * the cheapest one of the tuned rung wins. The model knows tiles only through the table: a new row
 * takes part without a change here.
 */
#include "select.h"

#include <math.h>
#include <string.h>

/* The rung that automatic selection draws from. */
static const char tuned_rung[] = "k5_tuned";

int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n)
{
    int64_t rows = (m + kernel->block_m - 1) / kernel->block_m;
    int64_t columns = (n + kernel->block_n - 1) / kernel->block_n;
    return rows * columns;
}

/* ---- What can run ----------------------------------------------------------------------------- */

static int multiple_of_8(int64_t value)
{
    return value % 8 == 0;
}

/* Whether every 8-element chunk of an operand is 16-byte aligned; `width` is its contiguous extent. */
static int operand_in_chunks(const void *data, int64_t ld, int64_t width, int64_t batch,
                             int64_t stride)
{
    return (uintptr_t)data % 16 == 0 && multiple_of_8(ld) && multiple_of_8(width) &&
           (batch == 1 || multiple_of_8(stride));
}

/* Whether 32-bit byte offsets reach every element of a tile. */
static int offsets_fit_32_bits(const hgemm_kernel_info_t *kernel, int64_t ld)
{
    int64_t lines = kernel->block_m > kernel->block_n ? kernel->block_m : kernel->block_n;
    if (lines < kernel->block_k)
        lines = kernel->block_k;
    return ld < (INT64_C(1) << 32) / (2 * lines);
}

static int chunks_aligned(const hgemm_desc_t *p)
{
    int64_t width_a = p->op_a == HGEMM_OP_N ? p->k : p->m;
    int64_t width_b = p->op_b == HGEMM_OP_N ? p->n : p->k;
    return operand_in_chunks(p->a, p->lda, width_a, p->batch, p->stride_a) &&
           operand_in_chunks(p->b, p->ldb, width_b, p->batch, p->stride_b);
}

/* The fastest access that is right for the operands. */
static access_t needed_access(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel)
{
    if (p->k == 0) /* A and B are not read */
        return ACCESS_x16;
    if (!offsets_fit_32_bits(kernel, p->lda) || !offsets_fit_32_bits(kernel, p->ldb))
        return ACCESS_far;
    return chunks_aligned(p) ? ACCESS_x16 : ACCESS_any;
}

/* Finds the variant of `kernel` that runs the problem, if there is one. */
static int find_variant(const hgemm_desc_t *p, int kernel, variant_t *variant)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    int op = 2 * (int)p->op_a + (int)p->op_b;
    access_t access = needed_access(p, info);
    *variant = (variant_t){kernel, op, access};
    return info->accumulate == p->accumulate && (info->ops >> op & 1u) &&
           access <= kernel_table[kernel].access && tile_count(info, p->m, p->n) <= INT32_MAX;
}

/* ---- What it costs ---------------------------------------------------------------------------- */

/* Throughputs of one multiprocessor of a T4, per clock, and latencies in clocks. */
static const struct {
    double products;       /* multiply-adds of its tensor cores */
    double shared_bytes;   /* shared memory */
    double l2_bytes;       /* its share of the L2 cache */
    double step;           /* of one step along k that nothing hides: load, barrier, first mma */
    double block;          /* of a block's start and end */
    double meet;           /* for the last block of a tile to learn that it is the last */
} sm = {.products = 512, .shared_bytes = 64, .l2_bytes = 20, .step = 600, .block = 3000, .meet = 2000};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Clocks for one step along k of one block that has its multiprocessor's pipes to itself. */
static double step_clocks(const hgemm_kernel_info_t *kernel)
{
    double products = (double)kernel->block_m * kernel->block_n * kernel->block_k;
    double tile_bytes = 2.0 * (kernel->block_m + kernel->block_n) * kernel->block_k;
    double fragment_bytes =
        2.0 * (kernel->warp_m + kernel->warp_n) * kernel->block_k * (kernel->threads / 32);
    double mma = products / sm.products;
    double shared = (fragment_bytes + tile_bytes) / sm.shared_bytes;
    double l2 = tile_bytes / sm.l2_bytes;
    return larger(mma, larger(shared, l2));
}

/* Bytes of the sums of one block tile. */
static double sum_bytes(const hgemm_kernel_info_t *kernel)
{
    return (double)kernel->block_m * kernel->block_n *
           (kernel->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
}

/* Clocks of the busiest multiprocessor. It works off its tiles in rounds of `blocks` at a time;
 * the blocks of a round share its pipes and hide each other's latency. Where k is split, the sums
 * of all parts are written, and one block of each tile reads them. */
static double cost(const kernel_t *kernel, const hgemm_desc_t *p, int multiprocessors, int splits)
{
    const hgemm_kernel_info_t *info = &kernel->info;
    double tiles = (double)tile_count(info, p->m, p->n) * (double)p->batch * splits;
    double steps = ceil(ceil((double)p->k / info->block_k) / splits);
    double per_sm = ceil(tiles / multiprocessors);
    double rounds = floor(per_sm / kernel->blocks);
    double rest = per_sm - rounds * kernel->blocks;
    double clocks = step_clocks(info);
    double end = sm.block + (splits > 1 ? sm.meet + sum_bytes(info) * (1 + splits) / sm.l2_bytes : 0);
    double full_round = steps * larger(kernel->blocks * clocks, sm.step) + end;
    double last_round = rest > 0 ? steps * larger(rest * clocks, sm.step) + end : 0;
    return rounds * full_round + last_round;
}

/* ---- The choice ------------------------------------------------------------------------------- */

enum { MOST_SPLITS = 64, LEAST_STEPS = 4 /* along k, of a split */ };

/* The most parts that k may be cut into: each some steps long, their sums within the workspace. */
static int most_splits(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel, size_t workspace)
{
    double tiles = (double)tile_count(kernel, p->m, p->n) * (double)p->batch;
    double room = ((double)workspace - HGEMM_WORKSPACE_TILES * 4.0) / (tiles * sum_bytes(kernel));
    double steps = (double)p->k / kernel->block_k / LEAST_STEPS;
    double most = room < steps ? room : steps;
    if (tiles > HGEMM_WORKSPACE_TILES || p->batch > MOST_GRID_Y || most < 2)
        return 1;
    return most < MOST_SPLITS ? (int)most : MOST_SPLITS;
}

static plan_t make_plan(const hgemm_desc_t *p, variant_t variant, int splits)
{
    int64_t block_k = kernel_table[variant.kernel].info.block_k;
    int64_t steps = (p->k + block_k - 1) / block_k;
    int64_t k_split = splits > 1 ? (steps + splits - 1) / splits * block_k : p->k;
    return (plan_t){variant, k_split ? (int)((p->k + k_split - 1) / k_split) : 1, k_split};
}

hgemm_status_t select_plan(const hgemm_desc_t *p, int multiprocessors, size_t workspace_bytes,
                           plan_t *plan)
{
    variant_t variant;
    if (p->kernel != HGEMM_KERNEL_AUTO) {
        if (!find_variant(p, p->kernel, &variant))
            return HGEMM_STATUS_NOT_SUPPORTED;
        *plan = make_plan(p, variant, 1);
        return HGEMM_STATUS_SUCCESS;
    }
    double lowest = INFINITY;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++) {
        const kernel_t *row = &kernel_table[kernel];
        if (strcmp(row->info.rung, tuned_rung) != 0 || !find_variant(p, kernel, &variant))
            continue;
        int most = most_splits(p, &row->info, workspace_bytes);
        for (int splits = 1; splits <= most; splits++) {
            double clocks = cost(row, p, multiprocessors, splits);
            if (clocks < lowest) {
                lowest = clocks;
                *plan = make_plan(p, variant, splits);
            }
        }
    }
    return lowest < INFINITY ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_NOT_SUPPORTED;
}
