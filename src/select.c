/* SPDX-License-Identifier: MIT */
/*
 * Selection. Every plan of the tuned rung that can run the problem is priced by a model of a
 * multiprocessor, and the cheapest wins. The model knows tiles only through the table: a new row
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

/* Whether all groups of `width` elements of an operand are aligned and whole; `extent` is its
 * contiguous one. */
static int operand_in_groups(const void *data, int64_t ld, int64_t extent, int64_t batch,
                             int64_t stride, int64_t width)
{
    return (uintptr_t)data % (2 * (uintptr_t)width) == 0 && ld % width == 0 &&
           extent % width == 0 && (batch == 1 || stride % width == 0);
}

/* Whether 32-bit byte offsets reach every element of a tile. */
static int offsets_fit_32_bits(const hgemm_kernel_info_t *kernel, int64_t ld)
{
    int64_t lines = kernel->block_m > kernel->block_n ? kernel->block_m : kernel->block_n;
    if (lines < kernel->block_k)
        lines = kernel->block_k;
    return ld < (INT64_C(1) << 32) / (2 * lines);
}

/* The same for COPY_A, A, or COPY_B, B. */
static int operand_aligned(const hgemm_desc_t *p, int which, int64_t width)
{
    int64_t extent_a = p->op_a == HGEMM_OP_N ? p->k : p->m;
    int64_t extent_b = p->op_b == HGEMM_OP_N ? p->n : p->k;
    if (which == COPY_A)
        return operand_in_groups(p->a, p->lda, extent_a, p->batch, p->stride_a, width);
    return operand_in_groups(p->b, p->ldb, extent_b, p->batch, p->stride_b, width);
}

static int groups_aligned(const hgemm_desc_t *p, int64_t width)
{
    return operand_aligned(p, COPY_A, width) && operand_aligned(p, COPY_B, width);
}

/* Whether what a tile reads of the rows of k beyond its last column is within the matrix: the kernels take what
 * follows in memory, but not in the last HGEMM_LEAST_TAIL k's. */
static int overshoot_stays_inside(int64_t x, int64_t ld, int block)
{
    return (block - x % block) % block <= HGEMM_LEAST_TAIL * ld;
}

static int columns_stay_inside(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel)
{
    return (p->op_a == HGEMM_OP_N || overshoot_stays_inside(p->m, p->lda, kernel->block_m)) &&
           (p->op_b == HGEMM_OP_T || overshoot_stays_inside(p->n, p->ldb, kernel->block_n));
}

/* The fastest access that is right for the operands. */
static access_t needed_access(const hgemm_desc_t *p, const hgemm_kernel_info_t *kernel)
{
    if (p->k == 0) /* A and B are not read */
        return ACCESS_x16;
    if (!offsets_fit_32_bits(kernel, p->lda) || !offsets_fit_32_bits(kernel, p->ldb))
        return ACCESS_far;
    if (!columns_stay_inside(p, kernel))
        return ACCESS_any;
    return groups_aligned(p, 8) ? ACCESS_x16 : groups_aligned(p, 4) ? ACCESS_x8 : ACCESS_any;
}

copy_t copy_of(const hgemm_desc_t *p, int which)
{
    int along_k = which == COPY_A ? p->op_a == HGEMM_OP_N : p->op_b == HGEMM_OP_T;
    int64_t x = which == COPY_A ? p->m : p->n;
    copy_t copy = {.lines = along_k ? x : p->k, .width = along_k ? p->k : x};
    copy.ld = (copy.width + 63) / 64 * 64;
    copy.bytes = copy.lines < INT64_MAX / 2 / copy.ld ? copy.lines * copy.ld * 2 : INT64_MAX / 4;
    return copy;
}

int copies_needed(const hgemm_desc_t *p)
{
    return (operand_aligned(p, COPY_A, 8) ? 0 : COPY_A) | (operand_aligned(p, COPY_B, 8) ? 0 : COPY_B);
}

static int64_t copied_bytes(const hgemm_desc_t *p, int copies)
{
    int64_t bytes = 0;
    for (int which = COPY_A; which <= COPY_B; which <<= 1)
        bytes += copies & which ? copy_of(p, which).bytes : 0;
    return bytes;
}

/* Finds the variant of `kernel` that runs the problem, or runs it on copies, if there is one. Only a
 * kernel that could run it without copies does: asked for by name, it must. */
static int find_variant(const hgemm_desc_t *p, int kernel, int copies, variant_t *variant)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    int op = 2 * (int)p->op_a + (int)p->op_b;
    hgemm_desc_t on = *p;
    if (copies & COPY_A)
        on.lda = copy_of(p, COPY_A).ld;
    if (copies & COPY_B)
        on.ldb = copy_of(p, COPY_B).ld;
    access_t access = needed_access(&on, info);
    if (copies && access != ACCESS_far)
        access = ACCESS_x16;
    *variant = (variant_t){kernel, op, access};
    return info->accumulate == p->accumulate && (info->ops >> op & 1u) &&
           needed_access(p, info) <= kernel_table[kernel].access &&
           tile_count(info, p->m, p->n) <= INT32_MAX;
}

problem_key_t key_of(const hgemm_desc_t *p)
{
    return (problem_key_t){{p->m, p->n, p->k, p->lda, p->ldb, p->batch, p->stride_a, p->stride_b, p->kernel,
                            p->accumulate, 2 * (int)p->op_a + (int)p->op_b, (int64_t)((uintptr_t)p->a % 16),
                            (int64_t)((uintptr_t)p->b % 16)}};
}

/* ---- What it costs ---------------------------------------------------------------------------- */

/*
 * A multiprocessor, in clocks. `throughput` is what all its warps share, `latency` what one block
 * waits for where no other block on the multiprocessor has work to fill the time.
 */
typedef struct costs_t {
    struct {
        double products;     /* multiply-adds of the tensor cores, per clock */
        double shared_bytes; /* of shared memory, per clock */
        double l2_bytes;     /* its share of the L2 cache, per clock */
        double dram_bytes;   /* and of memory, */
        double lone_bytes;   /* of which it gets no more than this, however many others idle; */
        double stored;       /* what a byte of D is worth of them, but for those of the last blocks */
        double elements;     /* of D that the epilogue stores, per clock */
        double sum_bytes;    /* of split tiles that a block adds up, per clock, */
        double tail_bytes;   /* of those of a tail, few of which are added up at one time, */
        double own_sums;     /* and writing its own is like adding up so many parts */
        double joins;        /* how often sums that warps which divide k exchange pass through shared memory */
        double row_bytes;    /* added to each row of a tile that is loaded, */
        double dram_rows;    /* and to each that comes from memory */
        double unaligned;    /* times the wavefronts of what is not aligned, loaded in two pieces */
        double sectors;      /* and times the bytes that the L2 cache delivers for it */
        double copy_bytes;   /* that realign reads, and as many that it writes, per clock */
        double overlap;      /* of tensor cores and shared memory: the norm of both times that a step takes; 1 is none, */
        double beside;       /* and of several blocks' */
        double uneven;       /* times the clocks of parts of unequal length, which do not read the same k's */
    } throughput;
    struct {
        double step;  /* one step along k: load, barrier, first mma, ... */
        double share; /* ... and this part of its own work, which a lone block does not overlap; with one */
        double alone; /* warp for a sub-core of memory's work, too, and this part more of its own */
        double block; /* a block's start and end */
        double meet;  /* for the last block of a split tile to learn that it is the last */
        double pick;  /* added to a step's where chunks are picked out of two loads, */
        double chunk; /* and for each that a thread picks; */
        double cold;  /* and as far as no neighbour has told the L2 cache to fetch the same */
        double spare; /* once a block, where chunks are picked, for each row and column that it has and the matrix has not */
        double copy;  /* realign's launch */
        double code;  /* once a launch, by the square of a warp's mma's: what of its code is in no cache */
        double drift; /* in which blocks that started together on a multiprocessor come to end apart */
        double ends;  /* of the stores and sums of blocks that share a multiprocessor, the part that does not overlap */
        double next;  /* from a block that has its multiprocessor to itself to the next one, by the square of a warp's mma's */
    } latency;
} costs_t;

/* Published figures: 8 clocks an HMMA and sub-core, 1270 GB/s of L2 at 1590 MHz over 40 multiprocessors. The rest,
 * but for `copy` and `code`, of which it knows nothing, `joins`, which is what kernels do, and `spare`, `tail_bytes` and
 * `next`, which change no choice, is fitted to 2,200 plans of 162 shapes that bench_hgemm --plans had
 * from the timing model of the emulated T4, then, staying near those values, to 1,400 of 126 others; shared memory
 * (published: 64 bytes a clock) and DRAM (240 GB/s, 3.8 bytes a clock) come out within a sixth. How far the choice is
 * from the fastest plan over other shapes, by that model: bench_plans.json in bench/results/t4model, docs/t4.md. No T4
 * has confirmed it. */
static const costs_t t4_costs = {
    .throughput = {.products = 512, .shared_bytes = 55.2, .l2_bytes = 20, .dram_bytes = 4.4, .lone_bytes = 58,
                   .stored = 1.2, .elements = 14.5, .sum_bytes = 24, .tail_bytes = 24, .own_sums = 3.8, .joins = 2,
                   .row_bytes = 0, .dram_rows = 0, .unaligned = 2.74, .sectors = 2, .copy_bytes = 1.9,
                   .overlap = 5, .beside = 10, .uneven = 1.04},
    .latency = {.step = 400, .share = 0.018, .alone = 0.7, .block = 4100, .meet = 640, .pick = 709, .chunk = 0,
                .cold = 265, .spare = 0, .copy = 4000, .code = 2, .drift = 100000, .ends = 0.46, .next = 0}};

/* A Hopper GPU takes 4 clocks for such an HMMA and has twice the shared memory bandwidth. The rest is
 * fitted to 5,000 plans of 291 shapes that bench_hgemm --plans measured, then, staying near those values, to 7,000
 * of 254, a third of them with few rows or columns, `chunk` to 1,200 of 62 unaligned ones, `drift` to 800 of 44
 * large ones, `next` and `tail_bytes` to these and 1,200 of 88 others, `spare` to those unaligned ones and 800 of 58
 * others (docs/lab-notes.md). What warps exchange is part of a block's end in these. How far the choice is from the
 * fastest plan over shapes that had no part in it: bench_plans.json in bench/results/h100, docs/performance.md. */
static const costs_t h100_costs = {
    .throughput = {.products = 1024, .shared_bytes = 128, .l2_bytes = 40.3, .dram_bytes = 16.1,
                   .lone_bytes = 18, .stored = 0, .elements = 15, .sum_bytes = 13, .tail_bytes = 17, .own_sums = 0,
                   .joins = 0, .row_bytes = 45, .dram_rows = 19, .unaligned = 3.1, .sectors = 1.6,
                   .copy_bytes = 13.7, .overlap = 2.1, .beside = 2.1, .uneven = 1},
    .latency = {.step = 490, .share = 0.57, .alone = 0, .block = 1400, .meet = 3300, .pick = 0, .chunk = 54,
                .cold = 240, .spare = 30, .copy = 6000, .code = 0.9, .drift = 30000, .ends = 0.115, .next = 1.5}};

enum { LEAST_WORKSPACE = 32 << 20, MOST_WORKSPACE = 256 << 20 };

const machine_t machine_t4 = {
    .multiprocessors = 40,
    .shared_bytes = T4_SHARED,
    .threads = T4_THREADS,
    .l2_bytes = 4 << 20,
    .workspace_bytes = LEAST_WORKSPACE};

machine_t machine_of(const hgemm_device_info_t *info)
{
    machine_t machine = machine_t4;
    machine.multiprocessors = info->multiprocessors;
    machine.l2_bytes = info->l2_bytes ? info->l2_bytes : machine.l2_bytes;
    if (info->compute_major >= 8) {
        machine.is_newer = 1;
        machine.shared_bytes = info->compute_major == 8 ? 99 << 10 : 227 << 10;
        machine.threads = info->compute_major == 8 ? 1536 : 2048;
        machine.workspace_bytes = info->memory_bytes / 512 >> 20 << 20;
        if (machine.workspace_bytes < LEAST_WORKSPACE)
            machine.workspace_bytes = LEAST_WORKSPACE;
        if (machine.workspace_bytes > MOST_WORKSPACE)
            machine.workspace_bytes = MOST_WORKSPACE;
    }
    return machine;
}

enum {
    SUB_CORES = 4,
    BLOCK_SHARED = 1 << 10, /* that newer GPUs add to each block */
    MEMORY_NORM = 6         /* of all the GPU's memory and a multiprocessor's work: by the plans measured on an H100 and
                             * by those of the T4's model alike */
};

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Of two times that overlap but for what one keeps the other waiting: their sum for p = 1, the larger where p is large. */
static double norm(double a, double b, double p)
{
    return pow(pow(a, p) + pow(b, p), 1 / p);
}

/* Blocks of the variant that a multiprocessor holds at one time. */
static int resident_blocks(variant_t variant, const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const image_t *image = variant_image(variant);
    int registers = image ? (image->registers + 7) / 8 * 8 : HGEMM_THREAD_REGISTERS;
    int shared = info->shared_bytes + (machine->is_newer ? BLOCK_SHARED : 0);
    int blocks = smaller(HGEMM_SM_REGISTERS / (registers * info->threads),
                         smaller(machine->shared_bytes / shared, machine->threads / info->threads));
    if (machine->is_newer) /* whose driver may use more registers than ptxas did for a T4 */
        blocks = smaller(blocks, kernel_table[variant.kernel].newer);
    return blocks > 1 ? blocks : 1;
}

/* Rows in memory of a k-tile of A and of B, each weighted. A row costs some bytes more than it has. */
static double tile_rows(const hgemm_kernel_info_t *info, int op, double of_a, double of_b)
{
    return (op & 2 ? info->block_k : info->block_m) * of_a +
           (op & 1 ? info->block_n : info->block_k) * of_b;
}

/* Clocks of a multiprocessor's pipes for one step along k of one block, by how they overlap. What is not aligned is
 * loaded twice. */
static double step_clocks(const hgemm_kernel_info_t *info, variant_t variant, const costs_t *costs, double overlap)
{
    double products = (double)info->block_m * info->block_n * info->block_k;
    double tile = 2.0 * (info->block_m + info->block_n) * info->block_k;
    double reads = tile + tile_rows(info, variant.op, 1, 1) * costs->throughput.row_bytes;
    double loads = variant.access <= ACCESS_x8 ? 1 : variant.access == ACCESS_any ? costs->throughput.unaligned : 8;
    double sectors = variant.access <= ACCESS_x8 ? 1 : variant.access == ACCESS_any ? costs->throughput.sectors : 8;
    double fragments = 2.0 * (info->warp_m + info->warp_n) * info->warp_k * (info->threads / 32);
    double mma = products / costs->throughput.products;
    double shared = (fragments + tile + loads * reads) / costs->throughput.shared_bytes;
    return larger(norm(mma, shared, overlap), sectors * reads / costs->throughput.l2_bytes);
}

/* Bytes of the sums of one block tile. */
static double sum_bytes(const hgemm_kernel_info_t *info)
{
    return (double)info->block_m * info->block_n *
           (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
}

/* How many blocks read the same columns of A, and the same rows of B, from memory only once. */
typedef struct sharers_t {
    double a, b;
} sharers_t;

/* Those of `tiles` that run at one time, neighbours as blocks walk D. Where the L2 cache keeps the rows of
 * A that are walked together, or all of B, in half of its bytes, they are all that will ever read the same. */
static sharers_t sharers_of(const hgemm_desc_t *p, int kernel, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    double rows = ceil((double)p->m / info->block_m), columns = ceil((double)p->n / info->block_n);
    double group = kernel_walk(kernel, !machine->is_newer).group, height = rows < group ? rows : group;
    double kept = (double)machine->l2_bytes / 2;
    double across = ceil(tiles / height), down = tiles < height ? tiles : larger(height, floor(tiles / columns));
    return (sharers_t){.a = across > columns || 2.0 * height * info->block_m * (double)p->k <= kept ? columns : across,
                       .b = down > rows || 2.0 * (double)p->n * (double)p->k <= kept ? rows : down};
}

/* Clocks of a step along k: where blocks on a multiprocessor hide each other's latency, of one alone and of each of
 * several; of all the GPU's memory; and that it takes at least. Clocks of all the GPU's memory for a tile of D. */
typedef struct pace_t {
    double step, beside, memory, least, store;
} pace_t;

/* What a variant costs on a machine, as far as neither k nor the number of blocks matters. */
typedef struct price_t {
    const costs_t *costs;
    int multiprocessors, resident;
    double start;     /* clocks of the launch */
    double end, sums; /* clocks of a block's end; bytes of its sums */
    double next;      /* clocks from a lone block to the next */
    pace_t whole;     /* of tiles in rounds that are full, or as full as they will be */
} price_t;

/* Clocks until all copies are made. Of them half of the L2 cache stays there. */
static double copy_clocks(const hgemm_desc_t *p, int copies, const costs_t *costs,
                          const machine_t *machine)
{
    double bytes = (double)copied_bytes(p, copies);
    bytes += larger(bytes - (double)machine->l2_bytes / 2, 0);
    return copies ? costs->latency.copy +
                        bytes / (costs->throughput.copy_bytes * machine->multiprocessors)
                  : 0;
}

static const costs_t *costs_of(const machine_t *machine)
{
    return machine->is_newer ? &h100_costs : &t4_costs;
}

static pace_t pace_of(const hgemm_desc_t *p, variant_t variant, const machine_t *machine, double tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    const sharers_t sharers = sharers_of(p, variant.kernel, machine, tiles);
    double tile = 2.0 * (info->block_m + info->block_n) * info->block_k;
    double own = 2.0 * (info->block_m / sharers.a + info->block_n / sharers.b) * info->block_k; /* bytes from memory */
    double reads = own + tile_rows(info, variant.op, 1 / sharers.a, 1 / sharers.b) * costs->throughput.dram_rows;
    double on_chip = step_clocks(info, variant, costs, costs->throughput.overlap);
    double beside = step_clocks(info, variant, costs, costs->throughput.beside);
    double lone = reads / costs->throughput.lone_bytes;
    double memory = reads / costs->throughput.dram_bytes;
    double elements = fmin((double)p->m, info->block_m) * fmin((double)p->n, info->block_n);
    double store = costs->throughput.stored * 2.0 * elements / costs->throughput.dram_bytes;
    double cold = kernel_walk(variant.kernel, !machine->is_newer).ahead ? costs->latency.cold * own / tile : costs->latency.cold;
    double chunks = tile / (16.0 * info->threads); /* of a thread */
    double pick = variant.access == ACCESS_any ? costs->latency.pick + costs->latency.chunk * chunks : 0;
    double waits = costs->latency.share * on_chip;
    if (info->threads <= SUB_CORES * 32)
        waits = costs->latency.share * larger(on_chip, memory) + costs->latency.alone * on_chip;
    return (pace_t){.step = larger(on_chip, lone),
                    .beside = larger(beside, lone),
                    .memory = memory / machine->multiprocessors,
                    .store = store / machine->multiprocessors,
                    .least = costs->latency.step + pick + cold + waits};
}

static price_t price_variant(const hgemm_desc_t *p, variant_t variant, int copies,
                             const machine_t *machine)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const costs_t *costs = costs_of(machine);
    double mmas = info->warp_m / 16.0 * (info->warp_n / 8.0);
    price_t price = {
        .costs = costs,
        .multiprocessors = machine->multiprocessors,
        .resident = resident_blocks(variant, machine),
        .start = costs->latency.code * mmas * mmas +
                 copy_clocks(p, copies, costs, machine),
        .end = costs->latency.block +
               (double)info->block_m * info->block_n / costs->throughput.elements,
        .sums = sum_bytes(info),
    };
    if (variant.access == ACCESS_any)
        price.end += costs->latency.spare * (larger((double)(info->block_m - p->m), 0) + larger((double)(info->block_n - p->n), 0));
    price.next = price.resident == 1 ? costs->latency.next * mmas * mmas : 0;
    price.end += costs->throughput.joins * (info->block_k / info->warp_k - 1) * price.sums / costs->throughput.shared_bytes;
    price.whole = pace_of(p, variant, machine, (double)price.multiprocessors * price.resident);
    return price;
}

/* Clocks of a multiprocessor that works off its share of `blocks` in rounds. The blocks of a round
 * share its pipes and hide each other's latency. The first round is spread evenly over multiprocessors. Later
 * ones come to where a block has ended: to both places of a multiprocessor whose blocks end together, to
 * one each where they have drifted apart. Parts of a tile wait for the latest of them all the same. Memory serves
 * all blocks one after another, however few are left in a round; the more of its time is taken, the longer it takes to
 * answer. It also takes what blocks store that others follow. */
static double rounds(const price_t *price, const pace_t *pace, double blocks, double steps, double end, int followed)
{
    double share = ceil(blocks / price->multiprocessors), turns = ceil(share / price->resident);
    double together = share < price->resident ? share : price->resident;
    double last = share - (turns - 1) * together; /* of its blocks in the last round */
    double work = steps * together * (together > 1 ? pace->beside : pace->step);
    double least_work = steps * last * (last > 1 ? pace->beside : pace->step);
    double wait = (steps - 1) * pace->least; /* two steps' loads are on their way at first */
    double stores = (end - price->costs->latency.block) * price->costs->latency.ends;
    double apart = end > price->end ? 0 : 1 - exp(-work / price->costs->latency.drift);
    double busy = (turns - 1) * larger(work, wait) + larger(work - (work - least_work) * apart, wait);
    double others = followed ? blocks : (turns - 1) * together * price->multiprocessors;
    double stored = end > price->end ? 0 : others * pace->store; /* parts of a tile store no D */
    return norm(busy, blocks * steps * pace->memory + stored, MEMORY_NORM) +
           turns * (end + (together - 1) * stores) + (turns - 1) * price->next;
}

/* Along k, of a whole tile. */
static int64_t steps_of(const hgemm_desc_t *p, variant_t variant)
{
    int block_k = kernel_table[variant.kernel].info.block_k;
    return (p->k + block_k - 1) / block_k;
}

/* Rounds in which the last parts of split tiles follow one another on the multiprocessors that the longer parts leave,
 * all of which start at once; 0 where these leave none. In a batch the short ones of one product start before the
 * longer of the next. */
static int64_t short_rounds(const hgemm_desc_t *p, const price_t *price, int64_t tiles, int64_t splits)
{
    int64_t others = price->multiprocessors - (splits - 1) * tiles;
    return others > 0 && price->resident == 1 && p->batch == 1 ? (tiles + others - 1) / others : 0;
}

/* Steps along k that a block's end and the next one's start are worth. */
static double steps_between(const price_t *price)
{
    return (price->end + price->next) / larger(price->whole.step, price->whole.least);
}

/* Clocks of the busiest multiprocessor. Of a split tile one block adds up all parts; those in flight at one
 * time read the same k's. Last parts that are short enough end with the others, on the multiprocessors they leave. */
static double cost(const hgemm_desc_t *p, const machine_t *machine, const price_t *price, const plan_t *plan)
{
    double clocks = price->start, steps = (double)steps_of(p, plan->variant);
    int64_t split_tiles = (plan->tiles - plan->whole_tiles) * p->batch;
    if (plan->whole_tiles > 0)
        clocks += rounds(price, &price->whole, (double)plan->whole_tiles * (double)p->batch, steps, price->end, split_tiles > 0);
    if (split_tiles > 0) {
        pace_t pace = pace_of(p, plan->variant, machine, (double)split_tiles);
        int is_tail = plan->whole_tiles > 0;
        double bytes = is_tail ? price->costs->throughput.tail_bytes : price->costs->throughput.sum_bytes; /* per clock */
        double sums = price->sums * (plan->splits + price->costs->throughput.own_sums) / bytes;
        double part = (double)plan->k_split / kernel_table[plan->variant.kernel].info.block_k, last = steps - (plan->splits - 1) * part;
        int64_t turns = short_rounds(p, price, split_tiles, plan->splits);
        int fits = turns > 1 && (double)turns * last + (double)(turns - 1) * steps_between(price) <= part;
        double blocks = fits ? price->multiprocessors : (double)split_tiles * plan->splits;
        double own = rounds(price, &pace, blocks, part, price->end + price->costs->latency.meet + sums, 0);
        clocks += (fits ? price->costs->throughput.uneven : 1) * own + (is_tail ? price->next : 0);
    }
    return clocks;
}

/* ---- The choice ------------------------------------------------------------------------------- */

enum {
    MOST_SPLITS = 256,
    LEAST_STEPS = 2, /* along k, of a split */
    ROUNDS = 4       /* more of split tiles are not tried */
};

/* k in parts of `part` steps for all tiles but the first `whole`. */
static plan_t make_plan(const hgemm_desc_t *p, variant_t variant, int64_t tiles, int64_t whole, int64_t part)
{
    int is_split = part < steps_of(p, variant);
    int64_t k_split = is_split ? part * kernel_table[variant.kernel].info.block_k : p->k;
    return (plan_t){.variant = variant,
                    .tiles = tiles,
                    .whole_tiles = is_split ? whole : tiles,
                    .splits = is_split ? (int)((p->k + k_split - 1) / k_split) : 1,
                    .k_split = k_split};
}

/* What is looked for, and the cheapest plans found so far. */
typedef struct search_t {
    const hgemm_desc_t *p;
    const machine_t *machine;
    size_t workspace; /* for the sums of split tiles */
    int copies;       /* that plans are made for */
    priced_plan_t *best;
    int most, count;
} search_t;

static void consider(search_t *s, const price_t *price, plan_t plan)
{
    double clocks = cost(s->p, s->machine, price, &plan);
    int at = s->count < s->most ? s->count++ : s->most;
    plan.copies = s->copies;
    for (; at > 0 && s->best[at - 1].clocks > clocks; at--)
        if (at < s->most)
            s->best[at] = s->best[at - 1];
    if (at < s->most)
        s->best[at] = (priced_plan_t){plan, clocks};
}

/* Steps of all parts but the last where that is so short that a multiprocessor computes it for some tiles
 * while others compute the longer parts of one; 0 if there is no such. */
static int64_t long_part(const hgemm_desc_t *p, const price_t *price, int64_t split_tiles, int64_t steps, int64_t splits)
{
    double turns = (double)short_rounds(p, price, split_tiles, splits);
    int64_t part = (int64_t)ceil((turns * (double)steps + (turns - 1) * steps_between(price)) / (1 + turns * (double)(splits - 1)));
    return turns > 1 && steps - (splits - 1) * part >= LEAST_STEPS ? part : 0;
}

/* Considers every sensible number of splits for all tiles but the first `whole`. */
static void try_splits(search_t *s, const price_t *price, variant_t variant, int64_t tiles,
                       int64_t whole)
{
    int64_t split_tiles = (tiles - whole) * s->p->batch, steps = steps_of(s->p, variant);
    double room = ((double)s->workspace - HGEMM_WORKSPACE_TILES * 4.0) / ((double)split_tiles * price->sums);
    int64_t slots = (int64_t)price->multiprocessors * price->resident;
    if (split_tiles > HGEMM_WORKSPACE_TILES || s->p->batch > MOST_GRID_Y)
        return;
    for (int splits = 2, last = 1; splits <= MOST_SPLITS && splits <= room && splits * LEAST_STEPS <= steps &&
                                   split_tiles * splits <= ROUNDS * slots;
         splits += splits < 8 ? 1 : splits / 8) {
        int64_t even = (steps + splits - 1) / splits, part = long_part(s->p, price, split_tiles, steps, splits);
        plan_t plan = make_plan(s->p, variant, tiles, whole, even);
        if (plan.splits > last) /* steps that cannot be shared evenly make fewer splits */
            consider(s, price, plan);
        if (part > even)
            consider(s, price, make_plan(s->p, variant, tiles, whole, part));
        last = plan.splits;
    }
}

/* Considers the plans of a variant. The tiles that would not fill the last round may be split. */
static void try_variant(search_t *s, variant_t variant)
{
    price_t price = price_variant(s->p, variant, s->copies, s->machine);
    int64_t tiles = tile_count(&kernel_table[variant.kernel].info, s->p->m, s->p->n);
    int64_t slots = (int64_t)price.multiprocessors * price.resident;
    int is_for_t4 = kernel_table[variant.kernel].blocks > 0;
    int is_fast_alone = is_for_t4 || kernel_table[variant.kernel].info.threads > SUB_CORES * 32;
    if (!is_for_t4 && !s->machine->is_newer)
        return;
    if (!is_fast_alone && (double)tiles * (double)s->p->batch <= price.multiprocessors)
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
        if (strcmp(kernel_table[kernel].info.rung, tuned_rung) == 0 &&
            find_variant(s->p, kernel, s->copies, &variant))
            try_variant(s, variant);
}

/* The copies that would make all operands aligned, if the workspace has room for them. */
static int possible_copies(const hgemm_desc_t *p, size_t workspace)
{
    int64_t room = (int64_t)workspace - HGEMM_WORKSPACE_TILES * 4;
    int copies = p->k > 0 && p->batch == 1 && !groups_aligned(p, 4) ? copies_needed(p) : 0;
    return copied_bytes(p, copies) <= room ? copies : 0;
}

int rank_plans(const hgemm_desc_t *p, const machine_t *machine, size_t workspace_bytes,
               priced_plan_t *best, int most)
{
    search_t s = {.p = p, .machine = machine, .workspace = workspace_bytes, .best = best, .most = most};
    try_kernels(&s);
    s.copies = possible_copies(p, workspace_bytes);
    s.workspace -= (size_t)copied_bytes(p, s.copies);
    if (s.copies)
        try_kernels(&s);
    return s.count;
}

hgemm_status_t select_plan(const hgemm_desc_t *p, const machine_t *machine, size_t workspace_bytes,
                           plan_t *plan)
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
