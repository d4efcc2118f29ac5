/* SPDX-License-Identifier: MIT */
/*
 * An estimate of the clocks from the launch of a plan to its last store, for the multiprocessor that
 * has most to do:
 *
 *   plan    = launch (and copies of unaligned operands, if the plan makes them)
 *           + rounds of the blocks that compute whole tiles
 *           + rounds of the blocks that compute parts of tiles whose k is split              plan_clocks
 *   rounds  The blocks of a phase run in rounds (waves, as one multiprocessor sees them) of as many as
 *           fit on it. A phase takes the longer of what its multiprocessors do, round by round, and of
 *           the DRAM traffic of all its blocks, and each round ends with an epilogue.      phase_clocks
 *   steps   A round takes as many steps as a block has k-tiles. A step takes the longer of what the
 *           pipes need for all blocks of the round, and of the latency of one block's step (load,
 *           barrier, first mma), which the other blocks of the round hide.                      pace_of
 *   pipes   Tensor cores, shared memory and L2 cache, for one k-tile of one block.          step_clocks
 *   split k The end of a part includes writing its sums and, for the last part to arrive at a tile,
 *           reading and adding up those of all parts.                                      split_clocks
 *
 * Everything is in clocks of a multiprocessor, bytes, and elements.
 */
#include "select/cost.h"

#include <math.h>

#include "problem/weights.h"
#include "select/few.h"
#include "select/fma.h"
#include "select/scale_search.h"
#include "select/thin.h"
#include "select/tiny.h"
#include "table/short_rows.h"
#include "table/tile_facts.h"

enum {
    SUB_CORES = 4,    /* of a multiprocessor */
    DRAM_OVERLAP = 6, /* the exponent of norm() for a phase's DRAM traffic beside its other work: fits an
                       * H100's plans and those of the T4's model alike */
    FAR_LOADS = 8,    /* ACCESS_far loads each half of a chunk by itself */
    CHUNK = 8,        /* elements of A or B that a thread stores to shared memory at once */
};

static walk_t walk_of(int kernel, const machine_t *machine)
{
    return kernel_walk(kernel, !machine->is_newer);
}

int64_t steps_of(const problem_t *p, variant_t variant)
{
    return ceil_div(p->k, kernel_table[variant.kernel].info.block_k);
}

/* How many groups are likely to have rows. */
static double groups_with_rows(const problem_t *p)
{
    const double groups = (double)p->batch;
    return fmax(1, groups * (1 - pow(1 - 1 / groups, (double)p->m)));
}

/* Tiles in a column of D, of all groups: the last one of a group is half full. */
static double rows_of_tiles(const problem_t *p, const hgemm_kernel_info_t *kernel)
{
    if (p->batch_mode != HGEMM_BATCH_GROUPED)
        return (double)ceil_div(p->m, kernel->block_m);
    return fmax(groups_with_rows(p), (double)p->m / kernel->block_m + groups_with_rows(p) / 2);
}

int64_t likely_tiles(const problem_t *p, const hgemm_kernel_info_t *kernel)
{
    const int64_t most = problem_tiles(p, kernel);
    if (p->batch_mode != HGEMM_BATCH_GROUPED)
        return most;
    const double likely = ceil(rows_of_tiles(p, kernel)) * (double)ceil_div(p->n, kernel->block_n);
    return likely < (double)most ? (int64_t)likely : most;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Two times that overlap, but not perfectly: from their sum (p = 1) towards the longer one (p large). */
static double norm(double a, double b, double p)
{
    return pow(pow(a, p) + pow(b, p), 1 / p);
}

int has_few_warps(const hgemm_kernel_info_t *info)
{
    return info->threads <= SUB_CORES * 32;
}

/* Occupancy: blocks of the variant that a multiprocessor holds at one time. */
static int resident_blocks(variant_t variant, const image_t *image, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    int registers = (image->registers + 7) / 8 * 8; /* allocated by eights */
    const int shared = shared_bytes_on(machine, variant.kernel);
    int blocks = smaller(HGEMM_SM_REGISTERS / (registers * info->threads), machine->threads / info->threads);
    if (shared)
        blocks = smaller(blocks, machine->shared_bytes / shared);
    if (machine->is_newer) /* the driver compiles the PTX and may use more registers than the sm_75 code */
        blocks = smaller(blocks, kernel_table[variant.kernel].newer_blocks);
    return blocks > 1 ? blocks : 1;
}

/* Elements of a k-tile, of A and B, that pass through shared memory: packed weights do not. */
static double tile_elements(const problem_t *p, const hgemm_kernel_info_t *info)
{
    return (double)(info->block_m + (p->is_packed ? 0 : info->block_n)) * info->block_k;
}

/* Bytes in memory of a k-tile. */
static double tile_bytes(const problem_t *p, const hgemm_kernel_info_t *info)
{
    return (p->a.bytes * info->block_m + p->b.bytes * info->block_n) * info->block_k;
}

/* Elements of it that become halves on their way. */
static double converted_elements(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    if (kernel_table[kernel].splits_first)
        return 0;
    const int a = p->a.type != HGEMM_TYPE_F16 || p->has_floats ? info->block_m : 0,
              b = (p->b.type != HGEMM_TYPE_F16 && !p->is_packed) || p->has_floats ? info->block_n : 0;
    return (double)(a + b) * info->block_k;
}

/* Whether A and B become floats that the main loop splits. */
static int splits_in_loop(const problem_t *p, int kernel)
{
    const kernel_t *row = &kernel_table[kernel];
    return p->has_floats && !row->splits_first && !row->has_fp32_units && !is_few(kernel);
}

/* Halves that an element of A or B becomes, and products of them for one of A and B (ptx/single.cu). */
static int parts_of(const problem_t *p, int kernel)
{
    return p->has_floats ? kernel_parts(&kernel_table[kernel]) : 1;
}

static int products_of(const problem_t *p, int kernel)
{
    if (!p->has_floats || kernel_table[kernel].accuracy != HGEMM_ACCURACY_F32)
        return parts_of(p, kernel);
    return 3 - p->a.is_exact - p->b.is_exact;
}

/* Rows in memory of a k-tile of A and of B, each with a weight. */
static double weighted_rows(const hgemm_kernel_info_t *info, int op, double weight_a, double weight_b)
{
    return (op & 2 ? info->block_k : info->block_m) * weight_a + (op & 1 ? info->block_n : info->block_k) * weight_b;
}

/* The k's of packed weights after which a warp scales their sums (ptx/weights.cu). */
static double scaled_k(const problem_t *p, int kernel)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    enum { FINE = 16 };
    const int64_t group = packed_group(&p->packed) ? packed_group(&p->packed) : p->k;
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
    const int code = p->packed.code;
    double tight = 1;
    if (info->warp_m <= 32)
        tight = 1; /* registers are not short there */
    else if (code == HGEMM_CODE_TABLE16)
        tight = !kernel_table[kernel].has_teams ? costs->factor_packed_tables
                : p->a.type == HGEMM_TYPE_F16   ? costs->factor_table_teams
                                                : costs->factor_table_teams_bfloats;
    else if (code == HGEMM_CODE_INT8 || code == HGEMM_CODE_UINT8 || code == HGEMM_CODE_E4M3)
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
    const int waits = p->packed.code == HGEMM_CODE_TABLE16 && info->warp_m <= 32;
    return waits ? costs->clocks_table_code : costs->clocks_packed_code;
}

/* Pipes: clocks for one k-tile of one block. Shared memory and L1 are one pipe, which the k-tile passes three
 * times: loaded from L2, stored to shared memory, read as fragments by every warp. */
static double step_clocks(const problem_t *p, variant_t variant, const costs_t *costs, double overlap)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const int parts = parts_of(p, variant.kernel), products = products_of(p, variant.kernel);
    double macs = (double)products * info->block_m * info->block_n * info->block_k;
    macs *= packed_macs(p, variant.kernel, costs);
    double stored = parts * HGEMM_STAGED_BYTES * tile_elements(p, info);
    double loaded = tile_bytes(p, info) + weighted_rows(info, variant.op, 1, 1) * costs->overhead_loaded_row;
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
    return fmax(norm(mma, shared, overlap), sectors * loaded / costs->rate_l2_bytes);
}

/* How many blocks share one read from DRAM: of the rows of A that a tile needs, and of the columns of B. */
typedef struct sharers_t {
    double a, b;
} sharers_t;

/* `tiles` run at one time, neighbours in the order in which blocks walk D: `height` rows of tiles, column by
 * column. Those in one row of tiles share A, those in one column share B. Later tiles do, too, if what they
 * share stays in the L2 cache until then; half of its bytes count: rows of A, or all of B, that fit are read once.
 * Groups are walked row of tiles by row of tiles: the next one needs B when other columns have taken its place. */
static sharers_t sharers_of(const problem_t *p, int kernel, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    double rows = rows_of_tiles(p, info), columns = ceil((double)p->n / info->block_n);
    const int has_groups = p->batch_mode == HGEMM_BATCH_GROUPED;
    if (has_groups)
        rows /= groups_with_rows(p);
    double height = has_groups ? 1 : fmin(rows, walk_of(kernel, machine).group), cache = (double)machine->l2_bytes / 2;
    double across = ceil(tiles / height), down = tiles < height ? tiles : fmax(height, floor(tiles / columns));
    if (has_groups)
        down = 1;
    int keeps_a = p->a.bytes * height * info->block_m * (double)p->k <= cache;
    int keeps_b = p->b.bytes * (double)p->n * (double)p->k <= cache;
    return (sharers_t){.a = across > columns || keeps_a ? columns : across, .b = down > rows || keeps_b ? rows : down};
}

/* Lines along a side of a tile of which the problem has `extent`: those, and of the others what the machine's costs
 * count. */
static double lines_there(const costs_t *costs, int side, double extent)
{
    return side - (side - fmin(side, extent)) * (1 - costs->factor_missing_lines);
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

/* Whether blocks of floats that were split before share a multiprocessor, or have one to themselves. */
static int planes_share(int kernel)
{
    return kernel_table[kernel].splits_first && kernel_table[kernel].newer_blocks > 1;
}

/* Clocks of a k-tile of floats that were split before, of a block that has its multiprocessor to itself. */
static double planes_step(const costs_t *costs, int kernel)
{
    const hgemm_accuracy_t accuracy = kernel_table[kernel].accuracy;
    return planes_share(kernel)                 ? costs->clocks_planes_step_lone
           : accuracy == HGEMM_ACCURACY_F32     ? costs->clocks_planes_step
           : accuracy == HGEMM_ACCURACY_16_BITS ? costs->clocks_planes_step_16
                                                : costs->clocks_planes_step_11;
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

/* The same for A, and for B, of which packed weights are whole lines. */
static double opened_by_a(const problem_t *p, const costs_t *costs, int op, double lines_m, double lines_k)
{
    return opened_lines(costs, p->a.bytes * (op & 2 ? lines_m : lines_k), p->a.bytes * (double)p->a.ld);
}

static double opened_by_b(const problem_t *p, const costs_t *costs, int op, double lines_n, double lines_k)
{
    if (p->is_packed)
        return 1;
    return opened_lines(costs, p->b.bytes * (op & 1 ? lines_k : lines_n), p->b.bytes * (double)p->b.ld);
}

static pace_t pace_of(const problem_t *p, variant_t variant, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    if (is_thin(variant.kernel))
        return thin_pace(p, variant, machine, fmin(tiles, (double)problem_tiles(p, info)));
    if (is_few(variant.kernel))
        return few_pace(p, variant, machine);
    const costs_t *costs = costs_of(machine);
    const sharers_t sharers = sharers_of(p, variant.kernel, machine, tiles);
    if (kernel_table[variant.kernel].has_fp32_units)
        return fma_pace(p, variant, machine, sharers.a, sharers.b);
    double lines_m = lines_there(costs, info->block_m, (double)p->m);
    double lines_n = lines_there(costs, info->block_n, (double)p->n);
    double lines_k = lines_there(costs, info->block_k, (double)p->k / (double)steps_of(p, variant));
    double of_a = p->a.bytes * lines_m / sharers.a * opened_by_a(p, costs, variant.op, lines_m, lines_k);
    double of_b = p->b.bytes * lines_n / sharers.b * opened_by_b(p, costs, variant.op, lines_n, lines_k);
    double own = (of_a + of_b) * lines_k; /* from DRAM */
    double read = own + weighted_rows(info, variant.op, 1 / sharers.a, 1 / sharers.b) * costs->overhead_dram_row;
    double lone = step_clocks(p, variant, costs, costs->overlap_lone_block);
    double beside = step_clocks(p, variant, costs, costs->overlap_several_blocks);
    double dram_alone = read / costs->rate_dram_bytes_alone;
    double dram = read / costs->rate_dram_bytes * (splits_in_loop(p, variant.kernel) ? costs->factor_float_dram : 1);
    double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    double store = costs->factor_dram_store * STORED_BYTES * elements / costs->rate_dram_bytes;
    double exposed = costs->factor_exposed * lone;
    if (has_few_warps(info))
        exposed = costs->factor_exposed * fmax(lone, dram) + costs->factor_exposed_few_warps * lone;
    double dram_latency = costs->clocks_dram_latency;
    if (walk_of(variant.kernel, machine).prefetch) /* the first of the sharers fetches for the others */
        dram_latency = dram_latency * own / tile_bytes(p, info);
    double chunks = tile_elements(p, info) / CHUNK, converted = converted_elements(p, variant.kernel) / CHUNK, more = 0;
    if (variant.access == ACCESS_any)
        more = costs->clocks_unaligned_step + costs->clocks_unaligned_chunk * chunks / info->threads;
    const int has_teams = kernel_table[variant.kernel].has_teams; /* which work side by side, as blocks do */
    if (p->is_packed)
        more += costs->clocks_packed_k * (has_teams ? info->warp_k : info->block_k) +
                costs->clocks_packed_scaling * info->warp_k / scaled_k(p, variant.kernel);
    if (has_teams)
        lone = beside;
    more += splits_in_loop(p, variant.kernel) ? split_step(costs, kernel_table[variant.kernel].accuracy) : 0;
    more += costs->clocks_waited_chunk * converted / info->threads;
    const double each =
        splits_in_loop(p, variant.kernel) ? split_chunk(costs, variant.kernel) : costs->clocks_converted_chunk;
    lone += each * converted;
    beside += each * converted;
    double latency = costs->clocks_step + more + dram_latency + exposed;
    if (kernel_table[variant.kernel].splits_first) { /* the loop loads ahead */
        lone = planes_step(costs, variant.kernel), latency = 0;
        beside = planes_share(variant.kernel) ? costs->clocks_planes_step_beside : lone;
    }
    return (pace_t){.lone = fmax(lone, dram_alone),
                    .beside = fmax(beside, dram_alone),
                    .latency = latency,
                    .dram = dram / machine->multiprocessors,
                    .store = store / machine->multiprocessors};
}

/* Clocks until all copies are made, or planes, of which 11 bits have half as many bytes, but as many that are read.
 * What fits half of the L2 cache is not written back to DRAM meanwhile. */
static double copy_clocks(const problem_t *p, int kernel, int copies, const machine_t *machine)
{
    const costs_t *costs = costs_of(machine);
    const int planes = kernel_table[kernel].splits_first;
    double bytes = planes ? (double)planes_bytes(p, kernel) * (kernel_parts(&kernel_table[kernel]) > 1 ? 1 : 1.5)
                          : (double)copied_bytes(p, copies);
    bytes += fmax(bytes - (double)machine->l2_bytes / 2, 0);
    const double launch = planes ? costs->clocks_planes_launch : costs->clocks_copy_launch,
                 rate = planes ? costs->rate_planes_bytes : costs->rate_copy_bytes;
    bytes *= copies && p->has_floats ? costs->factor_float_copies : 1;
    return bytes > 0 ? launch + bytes / (rate * machine->multiprocessors) : 0;
}

/* The same until the scales of bfloat16 operands are found. */
static double scale_clocks(const problem_t *p, const machine_t *machine)
{
    const costs_t *costs = costs_of(machine);
    const int scales = p->scales;
    const double bytes = searched_bytes(machine, scales, p);
    return scales ? costs->clocks_copy_launch + bytes / (costs->rate_copy_bytes * machine->multiprocessors) : 0;
}

price_t price_variant(const problem_t *p, variant_t variant, const image_t *image, int copies, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    double mmas = info->warp_m / 16.0 * (info->warp_n / 8.0); /* of a warp tile, for 8 k's: code grows with them */
    double elements = lines_there(costs, info->block_m, (double)p->m) * lines_there(costs, info->block_n, (double)p->n);
    double warp_k_sums = costs->factor_warp_k_sums * (info->block_k / info->warp_k - 1);
    price_t price = {
        .costs = costs,
        .multiprocessors = machine->multiprocessors,
        .resident = resident_blocks(variant, image, machine),
        .least_steps = is_few(variant.kernel) || (is_thin(variant.kernel) && info->block_m == info->block_n) ? 1 : 2,
        .launch = costs->clocks_cold_code * mmas * mmas + copy_clocks(p, variant.kernel, copies, machine) +
                  scale_clocks(p, machine),
        .end = costs->clocks_block + elements / costs->rate_epilogue_elements,
        .overlap = costs->clocks_block,
        .sum_bytes = (double)sum_bytes(info),
        .latency_overlap = p->is_packed ? costs->overlap_packed_latency : 0,
    };
    if (variant.access == ACCESS_any) {
        double missing_rows = fmax((double)(info->block_m - p->m), 0);
        double missing_columns = fmax((double)(info->block_n - p->n), 0);
        price.end += costs->clocks_missing_row * (missing_rows + missing_columns);
    }
    if (p->n % 8 != 0)
        price.end += fmin((double)p->m / info->block_m, 1) * price.sum_bytes * costs->clocks_ragged_byte;
    if (splits_in_loop(p, variant.kernel))
        price.end += costs->clocks_split_block + costs->clocks_split_line * (info->block_m + info->block_n);
    const int is_alone = kernel_table[variant.kernel].splits_first && !planes_share(variant.kernel);
    price.end += is_alone ? costs->clocks_planes_block : 0; /* and what passes from one to the next */
    price.end += warp_k_sums * price.sum_bytes / costs->rate_shared_bytes;
    if (planes_share(variant.kernel))
        price.turnover = costs->clocks_planes_turnover;
    else if (price.resident == 1 && !is_alone)
        price.turnover = costs->clocks_lone_turnover * mmas * mmas;
    if (is_thin(variant.kernel))
        price_thin(p, variant.kernel, &price);
    if (is_few(variant.kernel))
        price_few(p, variant.kernel, &price);
    if (kernel_table[variant.kernel].has_fp32_units)
        price_fma(p, variant.kernel, &price);
    price.pace = pace_of(p, variant, machine, (double)price.multiprocessors * price.resident);
    return price;
}

/* A phase of a launch: equal blocks, all of which compute whole tiles, or all parts of split ones. */
typedef struct phase_t {
    double blocks, steps; /* how many, and the steps of each */
    double worked;        /* share of these steps that there are, where blocks stand for places */
    double end;           /* of a block, as in price_t */
    double late;          /* of that what blocks of the last round alone have: they add up the sums of others */
    double drift;         /* how far parts have drifted apart before it */
    double sums;          /* DRAM's clocks for what it writes of a part's sums */
    int are_parts;        /* they store no D, and the tile waits for the latest of them */
    int is_followed;      /* another phase starts where this one ends */
} phase_t;

/* Of a round's work and its steps' latency: the longer, or somewhat more where warps wait for packed weights. */
static double longer(const price_t *price, double work, double latency)
{
    return price->latency_overlap > 0 ? norm(work, latency, price->latency_overlap) : fmax(work, latency);
}

/*
 * Clocks of a phase. The first round is spread evenly over multiprocessors. Later blocks start wherever one
 * has ended: while the blocks of a multiprocessor still run in step, they end together and the next round has
 * as many; once they have drifted apart, the remaining blocks spread evenly. The last round lies between the two.
 * DRAM serves all multiprocessors, however few of them a round has left busy; stores compete with reads, except
 * those of the last round.
 */
static double phase_clocks(const price_t *price, const pace_t *pace, phase_t phase)
{
    const costs_t *costs = price->costs;
    double share = ceil(phase.blocks / price->multiprocessors); /* blocks of the busiest multiprocessor */
    double rounds = ceil(share / price->resident), full = fmin(share, price->resident);
    double last = share - (rounds - 1) * full; /* blocks in its last round, once they have drifted apart */
    double worked = phase.steps * phase.worked;
    double full_work = worked * full * (full > 1 ? pace->beside : pace->lone);
    double last_work = worked * last * (last > 1 ? pace->beside : pace->lone);
    double latency = (phase.steps - 1) * pace->latency; /* two k-tiles are loaded at once in the beginning */
    double drifted = phase.are_parts ? phase.drift : 1 - exp(-full_work / costs->clocks_drift);
    double last_round = full_work - (full_work - last_work) * drifted;
    double serial = (phase.end - price->overlap) * costs->factor_serial_epilogue;
    double ends = rounds * (phase.end + (full - 1) * serial) + (rounds - 1) * (price->turnover - phase.late);
    /* The rounds that are full, and the last one: work, and DRAM traffic beside it. Blocks of a round end together,
     * so that DRAM which one round leaves idle does not serve another; only their ends and its first loads overlap.
     * But all multiprocessors do not end at once, and DRAM may serve others `behind` the ends of a round. */
    double blocks = (rounds - 1) * full * price->multiprocessors, last_blocks = phase.blocks - blocks;
    double busy = (rounds - 1) * longer(price, full_work, latency), last_busy = longer(price, last_round, latency);
    double read = worked * pace->dram * (full > 1 ? costs->factor_dram_streams : 1);
    double last_read = worked * pace->dram * (last > 1 ? costs->factor_dram_streams : 1);
    double store = phase.are_parts ? phase.sums : pace->store;
    int last_stores = phase.is_followed || phase.are_parts;
    double dram = blocks * (read + store), last_dram = last_blocks * (last_read + (last_stores ? store : 0));
    double behind = (rounds - 1) * (phase.end + (full - 1) * serial + price->turnover) *
                    (phase.are_parts ? 0 : costs->factor_dram_ends);
    double mixed = norm(busy + behind + last_busy, dram + last_dram, DRAM_OVERLAP);
    double apart = norm(busy + behind, dram, DRAM_OVERLAP) + norm(last_busy, last_dram, DRAM_OVERLAP);
    return fmax(mixed, apart - price->end) + ends - behind;
}

/* Blocks that run at one time. */
static int64_t places(const price_t *price)
{
    return (int64_t)price->multiprocessors * price->resident;
}

/*
 * Parts of unequal length. If places are left when every longer part of all tiles has one, the last parts
 * can be so short that several rounds of them fit there in the time of a longer one: tiles that fill three quarters
 * of a round then take little more than three quarters of its time, not all of it. Blocks must have a
 * multiprocessor to themselves, unless they are of packed weights, and all longer parts must start first, which they do
 * not in a batch, nor in groups.
 *
 * Returns the rounds of short parts, 0 if there cannot be such.
 */
static int64_t short_rounds(const problem_t *p, const price_t *price, int64_t tiles, int64_t splits)
{
    int64_t left = places(price) - (splits - 1) * tiles;
    if (p->has_floats) /* whose parts take long to begin and to end */
        return 0;
    const int starts_in_order = p->matrices == 1 && p->batch_mode != HGEMM_BATCH_GROUPED;
    return left > 0 && (price->resident == 1 || p->is_packed) && starts_in_order ? ceil_div(tiles, left) : 0;
}

/* A part's end and the start of the next one, in steps. */
static double steps_between(const price_t *price)
{
    double clocks = price->end + price->costs->clocks_split_arrival + price->turnover;
    return clocks / fmax(price->pace.lone, price->pace.latency);
}

/* Steps of a longer part, if the short ones are to end at the same time as these: with r rounds of short parts,
 * r * (steps - (splits - 1) * part) + (r - 1) * steps_between = part. 0 where they would be too short. */
int64_t long_part(const problem_t *p, const price_t *price, int64_t tiles, int64_t steps, int64_t splits)
{
    double rounds = (double)short_rounds(p, price, tiles, splits);
    double all_steps = rounds * (double)steps + (rounds - 1) * steps_between(price);
    int64_t part = (int64_t)ceil(all_steps / (1 + rounds * (double)(splits - 1)));
    return rounds > 1 && steps - (splits - 1) * part >= price->least_steps ? part : 0;
}

/* Bytes of A and B. */
static double operand_bytes(const problem_t *p)
{
    return (p->a.bytes * (double)p->m + p->b.bytes * (double)p->n) * (double)p->k * (double)p->matrices;
}

/* Whether the last part of a tile to arrive neither writes nor reads its own sums, on a T4, of rows that have columns
 * for it. */
static int keeps_own_sums(variant_t variant, const machine_t *machine)
{
    const kernel_t *kernel = &kernel_table[variant.kernel];
    const hgemm_kernel_info_t *info = &kernel->info;
    return !machine->is_newer && kernel->on_t4.walk.group &&
           HGEMM_KEEPS_OWN(1, kernel->blocks, info->block_m, info->block_n, kernel_sum_bytes(info));
}

/* The phase of a plan's `tiles` split tiles. Parts that run at one time read the same k's of neighbouring tiles. */
static double split_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan,
                           int64_t tiles, double steps)
{
    const costs_t *costs = price->costs;
    const pace_t pace = pace_of(p, plan->variant, machine, (double)tiles);
    const int has_fp32_units = kernel_table[plan->variant.kernel].has_fp32_units;
    double sum_rate = p->is_packed                              ? costs->rate_packed_sum_bytes
                      : has_fp32_units                          ? costs->rate_fma_sum_bytes
                      : splits_in_loop(p, plan->variant.kernel) ? costs->rate_float_sum_bytes
                      : plan->whole_tiles > 0                   ? costs->rate_tail_split_sum_bytes
                                                                : costs->rate_split_sum_bytes;
    const double runs_on =
        p->has_floats && !kernel_table[plan->variant.kernel].splits_first ? costs->factor_float_parts : 0;
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    double rows = fmin((double)p->m / info->block_m, 1); /* of a tile that D has; the others may cost something, too */
    double tile_sums = (rows + (1 - rows) * costs->factor_missing_sums) * price->sum_bytes;
    double read = plan->splits - keeps_own_sums(plan->variant, machine);
    double sums = tile_sums * (read + costs->factor_own_sums) / sum_rate, arrival = costs->clocks_split_arrival;
    if (kernel_table[plan->variant.kernel].splits_first)
        sums *= costs->factor_planes_sums, arrival += costs->clocks_planes_part;
    double all_sums = read * tile_sums * (double)tiles;
    double written = p->is_packed && all_sums + operand_bytes(p) > (double)machine->l2_bytes
                         ? costs->factor_written_sums * tile_sums * read / plan->splits
                         : 0;
    double spilled = fmax(all_sums - (double)machine->l2_bytes / 2, 0);
    double part = (double)plan->k_split / info->block_k;
    double last = steps - (plan->splits - 1) * part;
    int64_t rounds = short_rounds(p, price, tiles, plan->splits);
    int is_uneven = rounds > 1 && (double)rounds * last + (double)(rounds - 1) * steps_between(price) <= part;
    double clocks = phase_clocks(
        price, &pace,
        (phase_t){
            .blocks = is_uneven ? (double)places(price) : (double)tiles * plan->splits,
            .steps = part,
            .worked = is_uneven && p->is_packed ? (double)tiles * steps / ((double)places(price) * part) : 1,
            .end = price->end + arrival + sums,
            .late = runs_on * (arrival + sums),
            .drift = runs_on,
            .sums = written / (costs->rate_dram_bytes * machine->multiprocessors),
            .are_parts = 1,
        });
    return (!is_uneven     ? 1
            : p->is_packed ? costs->factor_packed_parts
                           : costs->factor_uneven_parts) *
               clocks +
           costs->factor_spilled_sums * spilled / (costs->rate_dram_bytes * machine->multiprocessors);
}

/* Whole tiles by their work: the last row of tiles starts last, and takes less where D has few rows there. */
static double worked_tiles(const problem_t *p, int kernel, const machine_t *machine, int64_t tiles)
{
    const kernel_t *row = &kernel_table[kernel];
    const int64_t last_rows = p->m - (ceil_div(p->m, row->info.block_m) - 1) * row->info.block_m;
    const int has_short =
        row->takes_tables_only && !row->has_teams && row->info.warp_m > 32 && last_rows <= HGEMM_SHORT_ROWS;
    const double less = has_short ? 1 - costs_of(machine)->factor_short_tile : 0;
    return (double)tiles - less * (double)ceil_div(p->n, row->info.block_n);
}

double plan_clocks(const problem_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    double clocks = price->launch, steps = (double)steps_of(p, plan->variant);
    if (is_tiny(plan->variant.kernel))
        return tiny_clocks(p, machine, price, plan);
    if (is_swept(p, plan->variant.kernel) && plan->splits == 1)
        return swept_clocks(p, machine, price, plan);
    const int64_t tiles = likely_tiles(p, &kernel_table[plan->variant.kernel].info);
    const int64_t whole_tiles = plan->whole_tiles < tiles ? plan->whole_tiles : tiles;
    int64_t split_tiles = saturated_product(tiles - whole_tiles, p->matrices);
    if (whole_tiles > 0)
        clocks += phase_clocks(price, &price->pace,
                               (phase_t){
                                   .blocks = (split_tiles > 0 ? (double)whole_tiles
                                                              : worked_tiles(p, plan->variant.kernel, machine, tiles)) *
                                             (double)p->matrices,
                                   .steps = steps,
                                   .worked = 1,
                                   .end = price->end,
                                   .is_followed = split_tiles > 0,
                               });
    if (split_tiles > 0)
        clocks += split_clocks(p, machine, price, plan, split_tiles, steps) + (whole_tiles > 0 ? price->turnover : 0);
    return clocks;
}
