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

#include "select/family.h"
#include "select/mma.h"
#include "select/scale_search.h"
#include "table/short_rows.h"
#include "table/tile_facts.h"

enum {
    DRAM_OVERLAP = 6 /* the exponent of overlapped() for a phase's DRAM traffic beside its other work: fits an H100's
                      * plans and those of the T4's model alike */
};

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

/* `tiles` run at one time, neighbours in the order in which blocks walk D: `height` rows of tiles, column by
 * column. Those in one row of tiles share A, those in one column share B. Later tiles do, too, if what they
 * share stays in the L2 cache until then; half of its bytes count: rows of A, or all of B, that fit are read once.
 * Groups are walked row of tiles by row of tiles: the next one needs B when other columns have taken its place. */
static sharers_t sharers_of(const problem_t *p, int kernel, const price_t *price, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    double rows = rows_of_tiles(p, info), columns = ceil((double)p->n / info->block_n);
    const int has_groups = p->batch_mode == HGEMM_BATCH_GROUPED;
    if (has_groups)
        rows /= groups_with_rows(p);
    double height = has_groups ? 1 : fmin(rows, price->walk.group), cache = (double)price->machine->l2_bytes / 2;
    double across = ceil(tiles / height), down = tiles < height ? tiles : fmax(height, floor(tiles / columns));
    if (has_groups)
        down = 1;
    int keeps_a = p->a.bytes * height * info->block_m * (double)p->k <= cache;
    int keeps_b = p->b.bytes * (double)p->n * (double)p->k <= cache;
    return (sharers_t){.a = across > columns || keeps_a ? columns : across, .b = down > rows || keeps_b ? rows : down};
}

static pace_t pace_of(const problem_t *p, variant_t variant, const price_t *price, double tiles)
{
    return family_table[kernel_table[variant.kernel].family].pace(p, variant, price, tiles,
                                                                  sharers_of(p, variant.kernel, price, tiles));
}

/* Clocks until all copies are made. What fits half of the L2 cache is not written back to DRAM meanwhile. */
static double copy_clocks(const problem_t *p, int copies, const machine_t *machine)
{
    const costs_t *costs = costs_of(machine);
    double bytes = (double)copied_bytes(p, copies);
    bytes += fmax(bytes - (double)machine->l2_bytes / 2, 0);
    bytes *= p->has_floats ? costs->factor_float_copies : 1;
    return bytes > 0 ? costs->clocks_copy_launch + bytes / (costs->rate_copy_bytes * machine->multiprocessors) : 0;
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
    const family_info_t *family = &family_table[kernel_table[variant.kernel].family];
    const costs_t *costs = costs_of(machine);
    double elements = lines_there(costs, info->block_m, (double)p->m) * lines_there(costs, info->block_n, (double)p->n);
    double warp_k_sums = costs->factor_warp_k_sums * (info->block_k / info->warp_k - 1);
    price_t price = {
        .machine = machine,
        .costs = costs,
        .walk = kernel_walk(variant.kernel, !machine->is_newer),
        .multiprocessors = machine->multiprocessors,
        .resident = resident_blocks(variant, image, machine),
        .least_steps = 2,
        .launch = costs->clocks_cold_code * mma_code(info) + copy_clocks(p, copies, machine) + scale_clocks(p, machine),
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
    price.end += mma_block(variant.kernel, costs); /* and what passes from one to the next */
    price.end += warp_k_sums * price.sum_bytes / costs->rate_shared_bytes;
    price.turnover = mma_turnover(variant.kernel, costs, price.resident);
    if (family->price)
        family->price(p, variant, &price);
    price.pace = pace_of(p, variant, &price, (double)price.multiprocessors * price.resident);
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
    return price->latency_overlap > 0 ? overlapped(work, latency, price->latency_overlap) : fmax(work, latency);
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
    double mixed = overlapped(busy + behind + last_busy, dram + last_dram, DRAM_OVERLAP);
    double apart = overlapped(busy + behind, dram, DRAM_OVERLAP) + overlapped(last_busy, last_dram, DRAM_OVERLAP);
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
    const pace_t pace = pace_of(p, plan->variant, price, (double)tiles);
    const family_t family = kernel_table[plan->variant.kernel].family;
    double sum_rate = p->is_packed              ? costs->rate_packed_sum_bytes
                      : family == FAMILY_fma    ? costs->rate_fma_sum_bytes
                      : family == FAMILY_single ? costs->rate_float_sum_bytes
                      : plan->whole_tiles > 0   ? costs->rate_tail_split_sum_bytes
                                                : costs->rate_split_sum_bytes;
    const double runs_on = p->has_floats ? costs->factor_float_parts : 0;
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    double rows = fmin((double)p->m / info->block_m, 1); /* of a tile that D has; the others may cost something, too */
    double tile_sums = (rows + (1 - rows) * costs->factor_missing_sums) * price->sum_bytes;
    double read = plan->splits - keeps_own_sums(plan->variant, machine);
    const double ending = costs->clocks_split_arrival + tile_sums * (read + costs->factor_own_sums) / sum_rate;
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
            .end = price->end + ending,
            .late = runs_on * ending,
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
    const family_info_t *family = &family_table[kernel_table[plan->variant.kernel].family];
    const double whole = family->clocks ? family->clocks(p, machine, price, plan) : 0,
                 steps = (double)steps_of(p, plan->variant);
    double clocks = price->launch;
    if (whole > 0)
        return whole;
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
