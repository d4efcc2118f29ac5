/* SPDX-License-Identifier: MIT */
/*
 * Selection: which kernel runs a problem, and into how many parts it cuts k. Every plan of the tuned
 * rung that can run the problem is priced by the cost model below; the cheapest wins. The model knows
 * a kernel only by its row of the table, so a new row takes part without a change here.
 */
#include "select.h"

#include <math.h>
#include <string.h>

/* The rung that automatic selection draws from. */
static const char tuned_rung[] = "k5_tuned";

static int64_t ceil_div(int64_t dividend, int64_t divisor)
{
    return (dividend + divisor - 1) / divisor;
}

int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n)
{
    return ceil_div(m, kernel->block_m) * ceil_div(n, kernel->block_n);
}

/* Steps of the main loop for a whole tile: its k-tiles. */
static int64_t steps_of(const hgemm_desc_t *p, variant_t variant)
{
    return ceil_div(p->k, kernel_table[variant.kernel].info.block_k);
}

/* ---- What can run ----------------------------------------------------------------------------- */

/* Whether every group of `width` elements along the rows of an operand is aligned and whole; a row in
 * memory has `extent` elements. */
static int groups_are_aligned(const void *data, int64_t ld, int64_t extent, int64_t batch, int64_t stride,
                              int64_t width)
{
    return (uintptr_t)data % (2 * (uintptr_t)width) == 0 && ld % width == 0 && extent % width == 0 &&
           (batch == 1 || stride % width == 0);
}

/* The same for the operand COPY_A or COPY_B of a problem. */
static int operand_is_aligned(const hgemm_desc_t *p, int which, int64_t width)
{
    int64_t extent_a = p->op_a == HGEMM_OP_N ? p->k : p->m;
    int64_t extent_b = p->op_b == HGEMM_OP_N ? p->n : p->k;
    if (which == COPY_A)
        return groups_are_aligned(p->a, p->lda, extent_a, p->batch, p->stride_a, width);
    return groups_are_aligned(p->b, p->ldb, extent_b, p->batch, p->stride_b, width);
}

static int operands_are_aligned(const hgemm_desc_t *p, int64_t width)
{
    return operand_is_aligned(p, COPY_A, width) && operand_is_aligned(p, COPY_B, width);
}

/* Whether 32-bit byte offsets reach every element of a tile. */
static int offsets_fit_32_bits(const hgemm_kernel_info_t *kernel, int64_t ld)
{
    int64_t lines = kernel->block_m > kernel->block_n ? kernel->block_m : kernel->block_n;
    if (lines < kernel->block_k)
        lines = kernel->block_k;
    return ld < (INT64_C(1) << 32) / (2 * lines);
}

/* Where rows are along m or n, whose extent is x, the aligned loads take a tile's missing columns for the
 * elements that follow in memory: those of the next rows. Only the k-tile with the last HGEMM_LEAST_TAIL
 * rows masks them, so no tile may overshoot its row by more elements than these rows span. */
static int overshoot_stays_inside(int64_t x, int64_t ld, int block)
{
    return (block - x % block) % block <= HGEMM_LEAST_TAIL * ld;
}

static int columns_stay_inside(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel)
{
    return (p->op_a == HGEMM_OP_N || overshoot_stays_inside(p->m, p->lda, kernel->block_m)) &&
           (p->op_b == HGEMM_OP_T || overshoot_stays_inside(p->n, p->ldb, kernel->block_n));
}

/* The fastest access that is correct for the operands. */
static access_t needed_access(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel)
{
    if (p->k == 0) /* A and B are not read */
        return ACCESS_x16;
    if (!offsets_fit_32_bits(kernel, p->lda) || !offsets_fit_32_bits(kernel, p->ldb))
        return ACCESS_far;
    if (!columns_stay_inside(p, kernel))
        return ACCESS_any;
    return operands_are_aligned(p, 8) ? ACCESS_x16 : operands_are_aligned(p, 4) ? ACCESS_x8 : ACCESS_any;
}

copy_t copy_of(const hgemm_desc_t *p, int which)
{
    int k_contiguous = which == COPY_A ? p->op_a == HGEMM_OP_N : p->op_b == HGEMM_OP_T;
    int64_t x = which == COPY_A ? p->m : p->n;
    copy_t copy = {.lines = k_contiguous ? x : p->k, .width = k_contiguous ? p->k : x};
    copy.ld = ceil_div(copy.width, 64) * 64;
    copy.bytes = copy.lines < INT64_MAX / 2 / copy.ld ? copy.lines * copy.ld * 2 : INT64_MAX / 4;
    return copy;
}

int copies_needed(const hgemm_desc_t *p)
{
    return (operand_is_aligned(p, COPY_A, 8) ? 0 : COPY_A) | (operand_is_aligned(p, COPY_B, 8) ? 0 : COPY_B);
}

static int64_t copied_bytes(const hgemm_desc_t *p, int copies)
{
    int64_t bytes = 0;
    for (int which = COPY_A; which <= COPY_B; which <<= 1)
        bytes += copies & which ? copy_of(p, which).bytes : 0;
    return bytes;
}

/* Finds the variant of `kernel` that runs the problem, on the operands or on the given copies. */
static int find_variant(const hgemm_desc_t *p, int kernel, int copies, variant_t *variant)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    int op = 2 * (int)p->op_a + (int)p->op_b;
    hgemm_desc_t copied = *p;
    if (copies & COPY_A)
        copied.lda = copy_of(p, COPY_A).ld;
    if (copies & COPY_B)
        copied.ldb = copy_of(p, COPY_B).ld;
    access_t access = needed_access(&copied, info);
    if (copies && access != ACCESS_far) {
        if (!columns_stay_inside(&copied, info)) /* the rows of an operand that needs no copy are too short */
            return 0;
        access = ACCESS_x16;
    }
    *variant = (variant_t){kernel, op, access};
    return info->accumulate == p->accumulate && (info->ops >> op & 1u) && access <= kernel_table[kernel].access &&
           tile_count(info, p->m, p->n) <= INT32_MAX;
}

problem_key_t key_of(const hgemm_desc_t *p)
{
    return (problem_key_t){{p->m, p->n, p->k, p->lda, p->ldb, p->batch, p->stride_a, p->stride_b, p->kernel,
                            p->accumulate, 2 * (int)p->op_a + (int)p->op_b, (int64_t)((uintptr_t)p->a % 16),
                            (int64_t)((uintptr_t)p->b % 16)}};
}

/* ---- The cost model ---------------------------------------------------------------------------
 *
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

typedef struct costs_t {
    /* Rates of one multiprocessor, per clock; of what multiprocessors have in common, its share. */
    struct {
        double macs;                 /* multiply-adds on the tensor cores */
        double shared_bytes;         /* shared memory, read or written */
        double l2_bytes;             /* read from the L2 cache */
        double dram_bytes;           /* read from DRAM while all multiprocessors do */
        double dram_bytes_alone;     /* read from DRAM while few others do: the limit of one multiprocessor */
        double epilogue_elements;    /* elements of D that the epilogue stores */
        double split_sum_bytes;      /* sums of parts that are added up, if all tiles are split */
        double tail_split_sum_bytes; /* the same if only the tiles of the last round are: fewer add at a time */
        double copy_bytes;           /* that realign reads; it writes as many */
    } rate;
    struct {
        double unaligned_wavefronts; /* wavefronts of a global load of ACCESS_any, in those of an aligned one */
        double unaligned_sectors;    /* bytes that L2 delivers for ACCESS_any, in those that are needed */
        double dram_streams;         /* DRAM time of a byte read by one of several blocks on a multiprocessor */
        double dram_store;           /* DRAM time of a byte of D stored; both in that of a byte read by a lone block.
                                      * The last round stores for nothing */
        double own_sums;             /* writing a part's sums, in times that reading them takes */
        double warp_k_sums;          /* times that the sums of warps which divide k pass through shared memory */
        double uneven_parts;         /* on the clocks of parts of unequal length, which read different k's at a time */
        double exposed;              /* part of a step's own pipe clocks that adds to its latency ... */
        double exposed_few_warps;    /* ... and the further part with one warp per sub-core; DRAM then adds, too */
        double serial_epilogue;      /* part of the epilogue that blocks of a multiprocessor do not overlap */
    } factor;
    /* Bytes that a row of a k-tile costs beyond its own: partly used lines and sectors. */
    struct {
        double loaded_row; /* each row that a block loads */
        double dram_row;   /* each row that comes from DRAM */
    } overhead;
    /* How tensor cores and shared memory overlap: the exponent p of norm(). */
    struct {
        double lone_block; /* within one block */
        double several_blocks;
    } overlap;
    struct {
        double step;            /* latency of a step: load, barrier, ldmatrix, first mma */
        double unaligned_step;  /* added for ACCESS_any, which extracts each chunk from two loads ... */
        double unaligned_chunk; /* ... and for each chunk of a thread */
        double dram_latency;    /* added to a step, as far as no other block has brought its data to L2 */
        double block;           /* start and end of a block, without its stores */
        double split_arrival;   /* until the last part of a tile knows that it is the last */
        double missing_row;     /* for each row and column of a block's tile that D has not, with ACCESS_any */
        double copy_launch;     /* the launch of realign */
        double cold_code;       /* once a launch, per squared mma of a warp tile: instructions come from memory */
        double lone_turnover;   /* from a lone block to the next one, per squared mma of a warp tile */
        double drift;           /* of work, in which blocks that started together drift apart by 1 - 1/e */
    } clocks;
} costs_t;

/*
 * The T4. From published figures (docs/emulator.md cites them): macs, 4 sub-cores that take 8 clocks for an
 * HMMA of 16 x 8 x 8; l2_bytes, 1270 GB/s at 1590 MHz over 40 multiprocessors. warp_k_sums is what the
 * kernels do: write and read. cold_code and copy_launch are estimates, for the timing model knows neither.
 * missing_row, lone_turnover and a tail_split_sum_bytes of its own change no choice and are left out; dram_streams was
 * not tried.
 *
 * The rest is fitted to the timing model of the emulated T4 (bench_hgemm --plans): to 2,200 plans of 162
 * shapes, then, staying near those values, to 1,400 of 126 others. Shared memory (published: 64 bytes a clock)
 * and DRAM (240 GB/s, 3.8 bytes a clock) come out within a sixth. How far the choice is from the fastest plan
 * over other shapes, by that model: bench_plans.json in bench/results/t4model, docs/t4.md. No T4 has confirmed it.
 */
static const costs_t t4_costs = {.rate = {.macs = 512,
                                          .shared_bytes = 55.2,
                                          .l2_bytes = 20,
                                          .dram_bytes = 4.4,
                                          .dram_bytes_alone = 58,
                                          .epilogue_elements = 14.5,
                                          .split_sum_bytes = 24,
                                          .tail_split_sum_bytes = 24,
                                          .copy_bytes = 1.9},
                                 .factor = {.unaligned_wavefronts = 2.74,
                                            .unaligned_sectors = 2,
                                            .dram_streams = 1,
                                            .dram_store = 1.2,
                                            .own_sums = 3.8,
                                            .warp_k_sums = 2,
                                            .uneven_parts = 1.04,
                                            .exposed = 0.018,
                                            .exposed_few_warps = 0.7,
                                            .serial_epilogue = 0.46},
                                 .overhead = {.loaded_row = 0, .dram_row = 0},
                                 .overlap = {.lone_block = 5, .several_blocks = 10},
                                 .clocks = {.step = 400,
                                            .unaligned_step = 709,
                                            .unaligned_chunk = 0,
                                            .dram_latency = 265,
                                            .block = 4100,
                                            .split_arrival = 640,
                                            .missing_row = 0,
                                            .copy_launch = 4000,
                                            .cold_code = 2,
                                            .lone_turnover = 0,
                                            .drift = 100000}};

/*
 * A Hopper GPU, which stands for all newer ones. Published: macs, half the T4's clocks for such an HMMA;
 * shared_bytes, twice the T4's. warp_k_sums is 0, for the end of a block includes that exchange.
 *
 * The rest is fitted to an H100 (bench_hgemm --plans): to 5,000 plans of 291 shapes, then, staying near those
 * values, to 7,000 of 254, a third of them with few rows or columns. Some were fitted to shapes of their own:
 * unaligned_chunk to 1,200 plans of 62 unaligned shapes, missing_row to these and 800 of 58 others, copy_launch
 * to 1,300 of 94 others, drift to 800 of 44 large ones, lone_turnover and tail_split_sum_bytes to the latter and
 * 1,200 of 88 others, dram_streams to DeepBench's longest sums (docs/lab-notes.md). How far the choice is from the
 * fastest plan over shapes of which only DRAM_OVERLAP has seen plans: bench_plans.json in bench/results/h100,
 * docs/performance.md.
 */
static const costs_t h100_costs = {.rate = {.macs = 1024,
                                            .shared_bytes = 128,
                                            .l2_bytes = 40.3,
                                            .dram_bytes = 16.1,
                                            .dram_bytes_alone = 18,
                                            .epilogue_elements = 15,
                                            .split_sum_bytes = 13,
                                            .tail_split_sum_bytes = 17,
                                            .copy_bytes = 13.7},
                                   .factor = {.unaligned_wavefronts = 3.1,
                                              .unaligned_sectors = 1.6,
                                              .dram_streams = 1.04,
                                              .dram_store = 0,
                                              .own_sums = 0,
                                              .warp_k_sums = 0,
                                              .uneven_parts = 1,
                                              .exposed = 0.57,
                                              .exposed_few_warps = 0,
                                              .serial_epilogue = 0.115},
                                   .overhead = {.loaded_row = 45, .dram_row = 19},
                                   .overlap = {.lone_block = 2.1, .several_blocks = 2.1},
                                   .clocks = {.step = 490,
                                              .unaligned_step = 0,
                                              .unaligned_chunk = 54,
                                              .dram_latency = 240,
                                              .block = 1400,
                                              .split_arrival = 3300,
                                              .missing_row = 30,
                                              .copy_launch = 5000,
                                              .cold_code = 0.9,
                                              .lone_turnover = 1.5,
                                              .drift = 30000}};

enum {
    SUB_CORES = 4,           /* of a multiprocessor */
    SYSTEM_SHARED = 1 << 10, /* bytes of shared memory that newer GPUs reserve in each block */
    DRAM_OVERLAP = 6,        /* the exponent of norm() for a phase's DRAM traffic beside its other work: fits an
                              * H100's plans and those of the T4's model alike */
    FAR_LOADS = 8,           /* ACCESS_far loads each half of a chunk by itself */
    MOST_SPLITS = 256,
    LEAST_STEPS = 2,            /* of a part */
    MOST_SPLIT_ROUNDS = 4,      /* of parts */
    LEAST_WORKSPACE = 32 << 20, /* bytes; what machines ask for */
    MOST_WORKSPACE = 256 << 20
};

const machine_t machine_t4 = {.multiprocessors = 40,
                              .shared_bytes = T4_SHARED,
                              .threads = T4_THREADS,
                              .l2_bytes = 4 << 20,
                              .workspace_bytes = LEAST_WORKSPACE};

/* Limits of a multiprocessor: CUDA C++ Programming Guide, technical specifications per compute capability. Those of
 * 8.6 for 8.x and from 12.0 on, those of 9.0 between them. */
machine_t machine_of(const hgemm_device_info_t *info)
{
    machine_t machine = machine_t4;
    machine.multiprocessors = info->multiprocessors;
    machine.l2_bytes = info->l2_bytes ? info->l2_bytes : machine.l2_bytes;
    if (info->compute_major >= 8) {
        machine.is_newer = 1;
        int is_small = info->compute_major == 8 || info->compute_major >= 12;
        machine.shared_bytes = is_small ? 99 << 10 : 227 << 10;
        machine.threads = is_small ? 1536 : 2048;
        machine.workspace_bytes = info->memory_bytes / 512 >> 20 << 20;
        if (machine.workspace_bytes < LEAST_WORKSPACE)
            machine.workspace_bytes = LEAST_WORKSPACE;
        if (machine.workspace_bytes > MOST_WORKSPACE)
            machine.workspace_bytes = MOST_WORKSPACE;
    }
    return machine;
}

static const costs_t *costs_of(const machine_t *machine)
{
    return machine->is_newer ? &h100_costs : &t4_costs;
}

static walk_t walk_of(int kernel, const machine_t *machine)
{
    return kernel_walk(kernel, !machine->is_newer);
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

/* At most one warp for each sub-core: none hides another's latency. */
static int has_few_warps(const hgemm_kernel_info_t *info)
{
    return info->threads <= SUB_CORES * 32;
}

/* Occupancy: blocks of the variant that a multiprocessor holds at one time. */
static int resident_blocks(variant_t variant, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const image_t *image = variant_image(variant);
    int registers = image ? (image->registers + 7) / 8 * 8 : HGEMM_THREAD_REGISTERS; /* allocated by eights */
    int shared = info->shared_bytes + (machine->is_newer ? SYSTEM_SHARED : 0);
    int blocks = smaller(HGEMM_SM_REGISTERS / (registers * info->threads),
                         smaller(machine->shared_bytes / shared, machine->threads / info->threads));
    if (machine->is_newer) /* the driver compiles the PTX and may use more registers than the sm_75 code */
        blocks = smaller(blocks, kernel_table[variant.kernel].newer_blocks);
    return blocks > 1 ? blocks : 1;
}

static double tile_bytes(const hgemm_kernel_info_t *info)
{
    return 2.0 * (info->block_m + info->block_n) * info->block_k;
}

/* Rows in memory of a k-tile of A and of B, each with a weight. */
static double weighted_rows(const hgemm_kernel_info_t *info, int op, double weight_a, double weight_b)
{
    return (op & 2 ? info->block_k : info->block_m) * weight_a + (op & 1 ? info->block_n : info->block_k) * weight_b;
}

/* Pipes: clocks for one k-tile of one block. Shared memory and L1 are one pipe, which the k-tile passes three
 * times: loaded from L2, stored to shared memory, read as fragments by every warp. */
static double step_clocks(const hgemm_kernel_info_t *info, variant_t variant, const costs_t *costs, double overlap)
{
    double macs = (double)info->block_m * info->block_n * info->block_k;
    double tile = tile_bytes(info);
    double loaded = tile + weighted_rows(info, variant.op, 1, 1) * costs->overhead.loaded_row;
    double fragments = 2.0 * (info->warp_m + info->warp_n) * info->warp_k * (info->threads / 32);
    double wavefronts = variant.access <= ACCESS_x8    ? 1
                        : variant.access == ACCESS_any ? costs->factor.unaligned_wavefronts
                                                       : FAR_LOADS;
    double sectors = variant.access <= ACCESS_x8    ? 1
                     : variant.access == ACCESS_any ? costs->factor.unaligned_sectors
                                                    : FAR_LOADS;
    double mma = macs / costs->rate.macs;
    double shared = (fragments + tile + wavefronts * loaded) / costs->rate.shared_bytes;
    return fmax(norm(mma, shared, overlap), sectors * loaded / costs->rate.l2_bytes);
}

/* How many blocks share one read from DRAM: of the rows of A that a tile needs, and of the columns of B. */
typedef struct sharers_t {
    double a, b;
} sharers_t;

/* `tiles` run at one time, neighbours in the order in which blocks walk D: `height` rows of tiles, column by
 * column. Those in one row of tiles share A, those in one column share B. Later tiles do, too, if what they
 * share stays in the L2 cache until then; half of its bytes count: rows of A, or all of B, that fit are read once. */
static sharers_t sharers_of(const hgemm_desc_t *p, int kernel, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    double rows = ceil((double)p->m / info->block_m), columns = ceil((double)p->n / info->block_n);
    double height = fmin(rows, walk_of(kernel, machine).group), cache = (double)machine->l2_bytes / 2;
    double across = ceil(tiles / height), down = tiles < height ? tiles : fmax(height, floor(tiles / columns));
    int keeps_a = 2.0 * height * info->block_m * (double)p->k <= cache;
    int keeps_b = 2.0 * (double)p->n * (double)p->k <= cache;
    return (sharers_t){.a = across > columns || keeps_a ? columns : across, .b = down > rows || keeps_b ? rows : down};
}

/* What a step of a block costs while a given number of tiles run at one time. */
typedef struct pace_t {
    double lone;    /* pipes, if the block has its multiprocessor to itself */
    double beside;  /* pipes, for each of several blocks */
    double latency; /* least clocks of a step, however idle the pipes are */
    double dram;    /* DRAM of the whole GPU */
    double store;   /* the same for storing a tile of D, once a block */
} pace_t;

static pace_t pace_of(const hgemm_desc_t *p, variant_t variant, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    const sharers_t sharers = sharers_of(p, variant.kernel, machine, tiles);
    double tile = tile_bytes(info);
    double own = 2.0 * (info->block_m / sharers.a + info->block_n / sharers.b) * info->block_k; /* from DRAM */
    double read = own + weighted_rows(info, variant.op, 1 / sharers.a, 1 / sharers.b) * costs->overhead.dram_row;
    double lone = step_clocks(info, variant, costs, costs->overlap.lone_block);
    double beside = step_clocks(info, variant, costs, costs->overlap.several_blocks);
    double dram_alone = read / costs->rate.dram_bytes_alone;
    double dram = read / costs->rate.dram_bytes;
    double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    double store = costs->factor.dram_store * 2.0 * elements / costs->rate.dram_bytes;
    double exposed = costs->factor.exposed * lone;
    if (has_few_warps(info))
        exposed = costs->factor.exposed * fmax(lone, dram) + costs->factor.exposed_few_warps * lone;
    double dram_latency = costs->clocks.dram_latency;
    if (walk_of(variant.kernel, machine).prefetch) /* the first of the sharers fetches for the others */
        dram_latency = dram_latency * own / tile;
    double unaligned = 0;
    if (variant.access == ACCESS_any) {
        double chunks = tile / (16.0 * info->threads); /* of a thread */
        unaligned = costs->clocks.unaligned_step + costs->clocks.unaligned_chunk * chunks;
    }
    return (pace_t){.lone = fmax(lone, dram_alone),
                    .beside = fmax(beside, dram_alone),
                    .latency = costs->clocks.step + unaligned + dram_latency + exposed,
                    .dram = dram / machine->multiprocessors,
                    .store = store / machine->multiprocessors};
}

/* Clocks until all copies are made. What fits half of the L2 cache is not written back to DRAM meanwhile. */
static double copy_clocks(const hgemm_desc_t *p, int copies, const machine_t *machine)
{
    const costs_t *costs = costs_of(machine);
    double bytes = (double)copied_bytes(p, copies);
    bytes += fmax(bytes - (double)machine->l2_bytes / 2, 0);
    return copies ? costs->clocks.copy_launch + bytes / (costs->rate.copy_bytes * machine->multiprocessors) : 0;
}

/* What a variant costs on a machine, as far as it does not depend on how k is split. */
typedef struct price_t {
    const costs_t *costs;
    int multiprocessors;
    int resident;     /* blocks of a multiprocessor at one time */
    double launch;    /* clocks before the first block starts, once */
    double end;       /* clocks of a block beside its steps: its start, its epilogue */
    double turnover;  /* clocks from a lone block to the next one on its multiprocessor */
    double sum_bytes; /* of the sums of a block's tile */
    pace_t pace;      /* of whole tiles, if every multiprocessor is full */
} price_t;

static price_t price_variant(const hgemm_desc_t *p, variant_t variant, int copies, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    double mmas = info->warp_m / 16.0 * (info->warp_n / 8.0); /* of a warp tile, for 8 k's: code grows with them */
    double elements = (double)info->block_m * info->block_n;
    double warp_k_sums = costs->factor.warp_k_sums * (info->block_k / info->warp_k - 1);
    price_t price = {
        .costs = costs,
        .multiprocessors = machine->multiprocessors,
        .resident = resident_blocks(variant, machine),
        .launch = costs->clocks.cold_code * mmas * mmas + copy_clocks(p, copies, machine),
        .end = costs->clocks.block + elements / costs->rate.epilogue_elements,
        .sum_bytes = elements * (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2),
    };
    if (variant.access == ACCESS_any) {
        double missing_rows = fmax((double)(info->block_m - p->m), 0);
        double missing_columns = fmax((double)(info->block_n - p->n), 0);
        price.end += costs->clocks.missing_row * (missing_rows + missing_columns);
    }
    price.end += warp_k_sums * price.sum_bytes / costs->rate.shared_bytes;
    price.turnover = price.resident == 1 ? costs->clocks.lone_turnover * mmas * mmas : 0;
    price.pace = pace_of(p, variant, machine, (double)price.multiprocessors * price.resident);
    return price;
}

/* A phase of a launch: equal blocks, all of which compute whole tiles, or all parts of split ones. */
typedef struct phase_t {
    double blocks, steps; /* how many, and the steps of each */
    double end;           /* of a block, as in price_t */
    int are_parts;        /* they store no D, and the tile waits for the latest of them */
    int is_followed;      /* another phase starts where this one ends */
} phase_t;

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
    double full_work = phase.steps * full * (full > 1 ? pace->beside : pace->lone);
    double last_work = phase.steps * last * (last > 1 ? pace->beside : pace->lone);
    double latency = (phase.steps - 1) * pace->latency; /* two k-tiles are loaded at once in the beginning */
    double drifted = phase.are_parts ? 0 : 1 - exp(-full_work / costs->clocks.drift);
    double last_round = full_work - (full_work - last_work) * drifted;
    double serial = (phase.end - costs->clocks.block) * costs->factor.serial_epilogue;
    double ends = rounds * (phase.end + (full - 1) * serial) + (rounds - 1) * price->turnover;
    /* The rounds that are full, and the last one: work, and DRAM traffic beside it. Blocks of a round end together,
     * so that DRAM which one round leaves idle does not serve another; only their ends and its first loads overlap. */
    double blocks = (rounds - 1) * full * price->multiprocessors, last_blocks = phase.blocks - blocks;
    double busy = (rounds - 1) * fmax(full_work, latency), last_busy = fmax(last_round, latency);
    double read = phase.steps * pace->dram * (full > 1 ? costs->factor.dram_streams : 1);
    double last_read = phase.steps * pace->dram * (last > 1 ? costs->factor.dram_streams : 1);
    double store = phase.are_parts ? 0 : pace->store;
    double dram = blocks * (read + store), last_dram = last_blocks * (last_read + (phase.is_followed ? store : 0));
    double mixed = norm(busy + last_busy, dram + last_dram, DRAM_OVERLAP);
    double apart = norm(busy, dram, DRAM_OVERLAP) + norm(last_busy, last_dram, DRAM_OVERLAP);
    return fmax(mixed, apart - price->end) + ends;
}

/*
 * Parts of unequal length. If multiprocessors are left when every longer part of all tiles has one, the last parts
 * can be so short that several rounds of them fit there in the time of a longer one: tiles that fill three quarters
 * of a round then take little more than three quarters of its time, not all of it. Blocks must have a
 * multiprocessor to themselves, and all longer parts must start first, which they do not in a batch.
 *
 * Returns the rounds of short parts, 0 if there cannot be such.
 */
static int64_t short_rounds(const hgemm_desc_t *p, const price_t *price, int64_t tiles, int64_t splits)
{
    int64_t left = price->multiprocessors - (splits - 1) * tiles;
    return left > 0 && price->resident == 1 && p->batch == 1 ? ceil_div(tiles, left) : 0;
}

/* A part's end and the start of the next one, in steps. */
static double steps_between(const price_t *price)
{
    double clocks = price->end + price->costs->clocks.split_arrival + price->turnover;
    return clocks / fmax(price->pace.lone, price->pace.latency);
}

/* Steps of a longer part, if the short ones are to end at the same time as these: with r rounds of short parts,
 * r * (steps - (splits - 1) * part) + (r - 1) * steps_between = part. 0 where they would be too short. */
static int64_t long_part(const hgemm_desc_t *p, const price_t *price, int64_t tiles, int64_t steps, int64_t splits)
{
    double rounds = (double)short_rounds(p, price, tiles, splits);
    double all_steps = rounds * (double)steps + (rounds - 1) * steps_between(price);
    int64_t part = (int64_t)ceil(all_steps / (1 + rounds * (double)(splits - 1)));
    return rounds > 1 && steps - (splits - 1) * part >= LEAST_STEPS ? part : 0;
}

/* The phase of a plan's `tiles` split tiles. Parts that run at one time read the same k's of neighbouring tiles. */
static double split_clocks(const hgemm_desc_t *p, const machine_t *machine, const price_t *price, const plan_t *plan,
                           int64_t tiles, double steps)
{
    const costs_t *costs = price->costs;
    const pace_t pace = pace_of(p, plan->variant, machine, (double)tiles);
    double sum_rate = plan->whole_tiles > 0 ? costs->rate.tail_split_sum_bytes : costs->rate.split_sum_bytes;
    double sums = price->sum_bytes * (plan->splits + costs->factor.own_sums) / sum_rate;
    double part = (double)plan->k_split / kernel_table[plan->variant.kernel].info.block_k;
    double last = steps - (plan->splits - 1) * part;
    int64_t rounds = short_rounds(p, price, tiles, plan->splits);
    int is_uneven = rounds > 1 && (double)rounds * last + (double)(rounds - 1) * steps_between(price) <= part;
    double clocks = phase_clocks(price, &pace,
                                 (phase_t){
                                     .blocks = is_uneven ? price->multiprocessors : (double)tiles * plan->splits,
                                     .steps = part,
                                     .end = price->end + costs->clocks.split_arrival + sums,
                                     .are_parts = 1,
                                 });
    return (is_uneven ? costs->factor.uneven_parts : 1) * clocks;
}

/* Clocks of a plan. */
static double plan_clocks(const hgemm_desc_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    double clocks = price->launch, steps = (double)steps_of(p, plan->variant);
    int64_t split_tiles = (plan->tiles - plan->whole_tiles) * p->batch;
    if (plan->whole_tiles > 0)
        clocks += phase_clocks(price, &price->pace,
                               (phase_t){
                                   .blocks = (double)plan->whole_tiles * (double)p->batch,
                                   .steps = steps,
                                   .end = price->end,
                                   .is_followed = split_tiles > 0,
                               });
    if (split_tiles > 0)
        clocks +=
            split_clocks(p, machine, price, plan, split_tiles, steps) + (plan->whole_tiles > 0 ? price->turnover : 0);
    return clocks;
}

/* ---- The choice ------------------------------------------------------------------------------- */

/* A plan that cuts k into parts of `part` steps, for all tiles but the first `whole_tiles`. */
static plan_t make_plan(const hgemm_desc_t *p, variant_t variant, int64_t tiles, int64_t whole_tiles, int64_t part)
{
    int is_split = part < steps_of(p, variant);
    int64_t k_split = is_split ? part * kernel_table[variant.kernel].info.block_k : p->k;
    return (plan_t){.variant = variant,
                    .tiles = tiles,
                    .whole_tiles = is_split ? whole_tiles : tiles,
                    .splits = is_split ? (int)ceil_div(p->k, k_split) : 1,
                    .k_split = k_split};
}

/* What is looked for, and the cheapest plans found so far. */
typedef struct search_t {
    const hgemm_desc_t *p;
    const machine_t *machine;
    size_t workspace; /* bytes for the sums of split tiles */
    int copies;       /* that plans are made for */
    priced_plan_t *best;
    int most, count;
} search_t;

/* Prices a plan and inserts it among the cheapest. Of plans that cost the same, the first stays ahead. */
static void consider(search_t *s, const price_t *price, plan_t plan)
{
    double clocks = plan_clocks(s->p, s->machine, price, &plan);
    int at = s->count < s->most ? s->count++ : s->most;
    plan.copies = s->copies;
    for (; at > 0 && s->best[at - 1].clocks > clocks; at--)
        if (at < s->most)
            s->best[at] = s->best[at - 1];
    if (at < s->most)
        s->best[at] = (priced_plan_t){plan, clocks};
}

/* The most parts for `split_tiles` tiles of `steps` steps that are worth a try and fit in the workspace. */
static double most_splits(const search_t *s, const price_t *price, int64_t split_tiles, int64_t steps)
{
    double room = ((double)s->workspace - HGEMM_WORKSPACE_TILES * 4.0) / ((double)split_tiles * price->sum_bytes);
    double blocks = (double)MOST_SPLIT_ROUNDS * price->multiprocessors * price->resident;
    return fmin(fmin(MOST_SPLITS, room), fmin((double)(steps / LEAST_STEPS), blocks / (double)split_tiles));
}

/* Considers numbers of splits for all tiles but the first `whole_tiles`: each up to 8, then ever fewer. */
static void try_splits(search_t *s, const price_t *price, variant_t variant, int64_t tiles, int64_t whole_tiles)
{
    if (s->p->batch > MOST_GRID_Y || (tiles - whole_tiles) * s->p->batch > HGEMM_WORKSPACE_TILES)
        return;
    int64_t split_tiles = (tiles - whole_tiles) * s->p->batch, steps = steps_of(s->p, variant);
    double most = most_splits(s, price, split_tiles, steps);
    for (int splits = 2, last = 1; splits <= most; splits += splits < 8 ? 1 : splits / 8) {
        int64_t even = ceil_div(steps, splits), uneven = long_part(s->p, price, split_tiles, steps, splits);
        plan_t plan = make_plan(s->p, variant, tiles, whole_tiles, even);
        if (plan.splits > last) /* rounding parts up to whole steps may have given the last number again */
            consider(s, price, plan);
        if (uneven > even)
            consider(s, price, make_plan(s->p, variant, tiles, whole_tiles, uneven));
        last = plan.splits;
    }
}

/* Considers the plans of a variant: no tile split, all of them, or those that would not fill the last round. */
static void try_variant(search_t *s, variant_t variant)
{
    const kernel_t *kernel = &kernel_table[variant.kernel];
    int is_for_t4 = kernel->blocks > 0;
    if (!is_for_t4 && !s->machine->is_newer)
        return;
    price_t price = price_variant(s->p, variant, s->copies, s->machine);
    int64_t tiles = tile_count(&kernel->info, s->p->m, s->p->n);
    int64_t slots = (int64_t)price.multiprocessors * price.resident;
    /* Newer GPUs' kernels of few warps are made for two blocks on a multiprocessor. */
    if (!is_for_t4 && has_few_warps(&kernel->info) && (double)tiles * (double)s->p->batch <= price.multiprocessors)
        return;
    consider(s, &price, make_plan(s->p, variant, tiles, tiles, steps_of(s->p, variant)));
    try_splits(s, &price, variant, tiles, 0);
    if (s->p->batch == 1 && tiles > slots && tiles % slots)
        try_splits(s, &price, variant, tiles, tiles / slots * slots);
}

/* Considers all variants that run the problem, on the operands or on copies. */
static void try_kernels(search_t *s)
{
    variant_t variant;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++)
        if (strcmp(kernel_table[kernel].info.rung, tuned_rung) == 0 && find_variant(s->p, kernel, s->copies, &variant))
            try_variant(s, variant);
}

/* The copies that would make all operands aligned, if the workspace has room for them. */
static int possible_copies(const hgemm_desc_t *p, size_t workspace)
{
    int64_t room = (int64_t)workspace - HGEMM_WORKSPACE_TILES * 4;
    int copies = p->k > 0 && p->batch == 1 && !operands_are_aligned(p, 4) ? copies_needed(p) : 0;
    return copied_bytes(p, copies) <= room ? copies : 0;
}

int rank_plans(const hgemm_desc_t *p, const machine_t *machine, size_t workspace_bytes, priced_plan_t *best, int most)
{
    search_t s = {.p = p, .machine = machine, .workspace = workspace_bytes, .best = best, .most = most};
    try_kernels(&s);
    s.copies = possible_copies(p, workspace_bytes);
    s.workspace -= (size_t)copied_bytes(p, s.copies);
    if (s.copies)
        try_kernels(&s);
    return s.count;
}

hgemm_status_t select_plan(const hgemm_desc_t *p, const machine_t *machine, size_t workspace_bytes, plan_t *plan)
{
    priced_plan_t best;
    if (p->kernel != HGEMM_KERNEL_AUTO) {
        variant_t variant;
        if (!find_variant(p, p->kernel, 0, &variant))
            return HGEMM_STATUS_NOT_SUPPORTED;
        int64_t tiles = tile_count(&kernel_table[p->kernel].info, p->m, p->n);
        *plan = make_plan(p, variant, tiles, tiles, steps_of(p, variant));
        return HGEMM_STATUS_SUCCESS;
    }
    if (rank_plans(p, machine, workspace_bytes, &best, 1) == 0)
        return HGEMM_STATUS_NOT_SUPPORTED;
    *plan = best.plan;
    return HGEMM_STATUS_SUCCESS;
}
