/* SPDX-License-Identifier: MIT */
/*
 * An estimate of the clocks from the launch of a plan to its last store, for the multiprocessor that
 * has most to do:
 *
 *   plan    = launch (and copies of unaligned operands, if the plan makes them)
 *           + rounds of the blocks that compute whole tiles
 *           + rounds of the blocks that compute parts of tiles whose k is split  whole_clocks, parts_clocks
 *   rounds  The blocks of a phase run in rounds (waves, as one multiprocessor sees them) of as many as
 *           fit on it. A phase takes the longer of what its multiprocessors do, round by round, and of
 *           the DRAM traffic of all its blocks, and each round ends with an epilogue.     phase_clocks
 *   steps   A round takes as many steps as a block has k-tiles. A step takes the longer of what the
 *           pipes need for all blocks of the round, and of the latency of one block's step (load,
 *           barrier, first mma), which the other blocks of the round hide.                     pace_of
 *   pipes   Tensor cores, shared memory and L2 cache, for one k-tile of one block.         price_pipes
 *   split k The end of a part includes writing its sums and, for the last part to arrive at a tile,
 *           reading and adding up those of all parts.                                     parts_clocks
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

/* Puts a problem's tiles into a price. Of groups, whose sizes the device knows, as many are likely as there are if each
 * row is in any of them alike, rather more than fewer: the last one of a group is half full. */
static void count_tiles(const problem_t *p, const hgemm_kernel_info_t *info, price_t *price)
{
    price->tiles = price->likely = problem_tiles(p, info);
    price->steps = ceil_div(p->k, info->block_k);
    price->columns = ceil((double)p->n / info->block_n);
    if (p->batch_mode != HGEMM_BATCH_GROUPED) {
        price->rows = ceil((double)p->m / info->block_m);
        return;
    }
    const double groups = groups_with_rows(p), rows = fmax(groups, (double)p->m / info->block_m + groups / 2);
    const double likely = ceil(rows) * price->columns;
    if (likely < (double)price->tiles)
        price->likely = (int64_t)likely;
    price->rows = rows / groups;
}

/* Occupancy: blocks of the variant that a multiprocessor holds at one time. */
static int resident_blocks(variant_t variant, const image_t *image, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const int registers = (image->registers + 7) / 8 * 8; /* allocated by eights */
    const int shared = shared_bytes_on(machine, variant.kernel);
    double blocks = fmin(HGEMM_SM_REGISTERS / (registers * info->threads), machine->threads / info->threads);
    if (shared)
        blocks = fmin(blocks, machine->shared_bytes / shared);
    if (machine->is_newer) /* the driver compiles the PTX and may use more registers than the sm_75 code */
        blocks = fmin(blocks, kernel_table[variant.kernel].newer_blocks);
    return (int)fmax(blocks, 1);
}

/* `tiles` run at one time, neighbours in the order in which blocks walk D: `height` rows of tiles, column by
 * column. Those in one row of tiles share A, those in one column share B. Later tiles do, too, if what they
 * share stays in the L2 cache until then; half of its bytes count: rows of A, or all of B, that fit are read once.
 * Groups are walked row of tiles by row of tiles: the next one needs B when other columns have taken its place. */
static sharers_t sharers_of(const problem_t *p, int kernel, const price_t *price, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const double rows = price->rows, columns = price->columns;
    const int has_groups = p->batch_mode == HGEMM_BATCH_GROUPED;
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

prelude_t prelude_of(const problem_t *p, int copies, const machine_t *machine)
{
    const costs_t *costs = costs_of(machine);
    const double rate = costs->rate_copy_bytes * machine->multiprocessors;
    prelude_t prelude = {0};
    if (copies) {
        double bytes = (double)copied_bytes(p, copies);
        bytes += fmax(bytes - (double)machine->l2_bytes / 2, 0); /* what fits is not written back to DRAM meanwhile */
        bytes *= p->has_floats ? costs->factor_float_copies : 1;
        prelude.copies = costs->clocks_copy_launch + bytes / rate;
    }
    if (p->scales)
        prelude.scales = costs->clocks_copy_launch + searched_bytes(machine, p->scales, p) / rate;
    return prelude;
}

/* Whether parts of k may be of unequal length: see short_rounds. Floats' take long to begin and to end. */
static int may_be_uneven(const problem_t *p, const price_t *price)
{
    const int starts_in_order = p->matrices == 1 && p->batch_mode != HGEMM_BATCH_GROUPED;
    return !p->has_floats && (price->resident == 1 || p->is_packed) && starts_in_order;
}

price_t price_variant(const problem_t *p, variant_t variant, const image_t *image, const prelude_t *prelude,
                      const machine_t *machine)
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
        .launch = costs->clocks_cold_code * mma_code(info) + prelude->copies + prelude->scales,
        .end = costs->clocks_block + elements / costs->rate_epilogue_elements,
        .overlap = costs->clocks_block,
        .sum_bytes = (double)sum_bytes(info),
        .latency_overlap = p->is_packed ? costs->overlap_packed_latency : 0,
    };
    count_tiles(p, info, &price);
    price.places = (int64_t)price.multiprocessors * price.resident;
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
    price.pace = pace_of(p, variant, &price, (double)price.places);
    price.may_be_uneven = may_be_uneven(p, &price);
    price.steps_between =
        (price.end + costs->clocks_split_arrival + price.turnover) / fmax(price.pace.lone, price.pace.latency);
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

/* Two times that overlap take the longer one at least, but for rounding. */
#define LEAST_OVERLAPPED (1 - 1e-9)

/*
 * Clocks of a phase; or some number above `limit`, where it takes longer than that. The first round is spread evenly
 * over multiprocessors. Later blocks start wherever one has ended: while the blocks of a multiprocessor still run in
 * step, they end together and the next round has as many; once they have drifted apart, the remaining blocks spread
 * evenly. The last round lies between the two. DRAM serves all multiprocessors, however few of them a round has left
 * busy; stores compete with reads, except those of the last round.
 */
static double phase_clocks(const price_t *price, const pace_t *pace, phase_t phase, double limit)
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
    double busy = (rounds - 1) * fmax(full_work, latency), last_busy = fmax(last_round, latency);
    double read = worked * pace->dram * (full > 1 ? costs->factor_dram_streams : 1);
    double last_read = worked * pace->dram * (last > 1 ? costs->factor_dram_streams : 1);
    double store = phase.are_parts ? phase.sums : pace->store;
    int last_stores = phase.is_followed || phase.are_parts;
    double dram = blocks * (read + store), last_dram = last_blocks * (last_read + (last_stores ? store : 0));
    double behind = (rounds - 1) * (phase.end + (full - 1) * serial + price->turnover) *
                    (phase.are_parts ? 0 : costs->factor_dram_ends);
    const double least =
        LEAST_OVERLAPPED * fmax(busy + behind + last_busy, dram + last_dram) + (ends - behind); /* without a power */
    if (least > limit)
        return least;
    if (price->latency_overlap > 0) { /* warps that wait for packed weights take somewhat more than the longer */
        last_busy = overlapped(last_round, latency, price->latency_overlap);
        busy = rounds > 1 ? (rounds - 1) * overlapped(full_work, latency, price->latency_overlap) : 0;
    }
    const double mixed = overlapped(busy + behind + last_busy, dram + last_dram, DRAM_OVERLAP);
    if (rounds == 1)
        return mixed + ends - behind;
    const double apart = overlapped(busy + behind, dram, DRAM_OVERLAP) + overlapped(last_busy, last_dram, DRAM_OVERLAP);
    return fmax(mixed, apart - price->end) + ends - behind;
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
static int64_t short_rounds(const price_t *price, int64_t tiles, int64_t splits)
{
    const int64_t left = price->places - (splits - 1) * tiles;
    return left > 0 ? ceil_div(tiles, left) : 0;
}

/* Steps of a longer part, if the short ones are to end at the same time as these: with r rounds of short parts,
 * r * (steps - (splits - 1) * part) + (r - 1) * steps_between = part. 0 where they would be too short. */
int64_t long_part(const price_t *price, int64_t tiles, int64_t splits)
{
    const double rounds = (double)short_rounds(price, tiles, splits);
    const double all_steps = rounds * (double)price->steps + (rounds - 1) * price->steps_between;
    const int64_t part = (int64_t)ceil(all_steps / (1 + rounds * (double)(splits - 1)));
    return rounds > 1 && price->steps - (splits - 1) * part >= price->least_steps ? part : 0;
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

/* Whole tiles by their work: the last row of tiles starts last, and takes less where D has few rows there. */
static double worked_tiles(const problem_t *p, int kernel, const price_t *price)
{
    const kernel_t *row = &kernel_table[kernel];
    const double tiles = (double)price->likely;
    if (!row->takes_tables_only || row->has_teams || row->info.warp_m <= 32)
        return tiles;
    const int64_t last_rows = p->m - (ceil_div(p->m, row->info.block_m) - 1) * row->info.block_m;
    return last_rows <= HGEMM_SHORT_ROWS ? tiles - (1 - price->costs->factor_short_tile) * price->columns : tiles;
}

/* The phase of whole tiles, `worked` of each matrix by their work. */
static double tiles_clocks(const problem_t *p, const price_t *price, double worked, int is_followed, double limit)
{
    const phase_t phase = {.blocks = worked * (double)p->matrices,
                           .steps = (double)price->steps,
                           .worked = 1,
                           .end = price->end,
                           .is_followed = is_followed};
    return phase_clocks(price, &price->pace, phase, limit);
}

double whole_clocks(const problem_t *p, const price_t *price, const plan_t *plan, double limit)
{
    const family_info_t *family = &family_table[kernel_table[plan->variant.kernel].family];
    const double clocks = family->clocks ? family->clocks(p, price->machine, price, plan) : 0;
    if (clocks > 0)
        return clocks;
    return price->launch +
           tiles_clocks(p, price, worked_tiles(p, plan->variant.kernel, price), 0, limit - price->launch);
}

parts_t price_parts(const problem_t *p, variant_t variant, const price_t *price, int64_t whole_tiles, double limit)
{
    const costs_t *costs = price->costs;
    const family_t family = kernel_table[variant.kernel].family;
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const double rows =
        fmin((double)p->m / info->block_m, 1); /* of a tile that D has; the others may cost something, too */
    parts_t parts = {
        .tiles = (double)(price->likely - whole_tiles) * (double)p->matrices,
        .before = price->launch,
        .turnover = whole_tiles > 0 ? price->turnover : 0,
        .tile_sums = (rows + (1 - rows) * costs->factor_missing_sums) * price->sum_bytes,
        .sum_rate = p->is_packed              ? costs->rate_packed_sum_bytes
                    : family == FAMILY_fma    ? costs->rate_fma_sum_bytes
                    : family == FAMILY_single ? costs->rate_float_sum_bytes
                    : whole_tiles > 0         ? costs->rate_tail_split_sum_bytes
                                              : costs->rate_split_sum_bytes,
        .runs_on = p->has_floats ? costs->factor_float_parts : 0,
        .own = keeps_own_sums(variant, price->machine),
    };
    if (whole_tiles > 0)
        parts.before += tiles_clocks(p, price, (double)whole_tiles, 1, limit - price->launch);
    if (parts.before <= limit)
        parts.pace = pace_of(p, variant, price, parts.tiles);
    return parts;
}

/* Parts that run at one time read the same k's of neighbouring tiles. */
double parts_clocks(const problem_t *p, const price_t *price, const parts_t *parts, const plan_t *plan, double limit)
{
    const machine_t *machine = price->machine;
    const costs_t *costs = price->costs;
    const double steps = (double)price->steps, places = (double)price->places;
    const double read = plan->splits - parts->own;
    const double ending =
        costs->clocks_split_arrival + parts->tile_sums * (read + costs->factor_own_sums) / parts->sum_rate;
    const double all_sums = read * parts->tile_sums * parts->tiles;
    const double written = p->is_packed && all_sums + operand_bytes(p) > (double)machine->l2_bytes
                               ? costs->factor_written_sums * parts->tile_sums * read / plan->splits
                               : 0;
    const double spilled = fmax(all_sums - (double)machine->l2_bytes / 2, 0);
    const double part = (double)plan->k_split / kernel_table[plan->variant.kernel].info.block_k;
    const double last = steps - (plan->splits - 1) * part;
    const double rounds = price->may_be_uneven && 2 * last <= part /* in two rounds at least */
                              ? (double)short_rounds(price, (int64_t)parts->tiles, plan->splits)
                              : 0;
    const int is_uneven = rounds > 1 && rounds * last + (rounds - 1) * price->steps_between <= part;
    const double factor = !is_uneven ? 1 : p->is_packed ? costs->factor_packed_parts : costs->factor_uneven_parts;
    const phase_t phase = {.blocks = is_uneven ? places : parts->tiles * plan->splits,
                           .steps = part,
                           .worked = is_uneven && p->is_packed ? parts->tiles * steps / (places * part) : 1,
                           .end = price->end + ending,
                           .late = parts->runs_on * ending,
                           .drift = parts->runs_on,
                           .sums = written / (costs->rate_dram_bytes * machine->multiprocessors),
                           .are_parts = 1};
    const double clocks = factor * phase_clocks(price, &parts->pace, phase, (limit - parts->before) / factor) +
                          costs->factor_spilled_sums * spilled / (costs->rate_dram_bytes * machine->multiprocessors);
    return parts->before + (clocks + parts->turnover);
}
