/* SPDX-License-Identifier: MIT */
/*
 * Every kernel on a device, against references in double precision (gemm_reference.h).
 *
 *     test_gemm                       all kernels and automatic selection
 *     test_gemm NAME                  one kernel, or "auto"
 *     test_gemm random                random cases of everything that a descriptor can say
 *     test_gemm copies                the same, on aligned copies of operands that are not aligned
 *         --count N                   how many (1000, with HGEMM_TEST_FULL 5000)
 *         --seed S                    which ones: other ones in every run, unless this or HGEMM_TEST_SEED says it
 *         --jobs J                    on so many threads, each with a handle (1)
 *     test_gemm --one KEY=VALUE...    one case, as a failure prints it
 *
 * gemm_run.h says what is checked of a case. For each kernel also: beta 0 gives the bits of beta 1 with C of zeros. A
 * random case that fails is made as small as it can be, and still fail, before it is printed. But for the random ones,
 * the layouts, strides, scalars, ... of the many cases are chosen by counting, so that every run covers the same; the
 * numbers in the matrices are fresh in every run.
 */
#include "gemm_random.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What failed ------------------------------------------------------------------------------- */

static int failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of it and of what is printed */

static int64_t computed_count; /* cases of one thread that a kernel computed */

/* The line that reproduces a failure; `why` tells it. */
static void fail(const case_t *c, const char *why)
{
    char line[CASE_LINE];
    case_write(c, line);
    pthread_mutex_lock(&lock);
    failures++;
    printf("FAILED: %s: %s\n", why, line);
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}

static void run_case(hgemm_handle_t handle, const case_t *c)
{
    outcome_t outcome;
    case_run(handle, c, &outcome);
    computed_count += outcome.is_computed;
    if (!outcome.is_right)
        fail(c, outcome.why);
    if (outcome.device_is_lost)
        exit(1);
}

/* ---- Cases that are chosen by counting --------------------------------------------------------- */

typedef struct shape_t {
    int64_t m, n, k;
} shape_t;

static int64_t case_count;

/* Fills in what a shape leaves open from lists whose lengths have no common factor, so that the
 * count walks through their combinations. */
static void vary(case_t *c, uint64_t seed)
{
    static const double alphas[] = {1, 0.5, -2, 1, 0, 1, -1};
    static const double betas[] = {0, 1, 0, -0.5, 2};
    static const int64_t pads[] = {0, 8, 0, 3, 16, 1, 0, 40, 8, 0, 5};
    static const int64_t offsets[] = {0, 0, 0, 1, 0, 8, 0, 0, 3, 0, 0, 16, 5};
    static const int64_t gaps[] = {0, 8, 24};
    int64_t i = case_count++;
    c->alpha = alphas[i % 7];
    c->beta = betas[i % 5];
    if (c->accumulate == HGEMM_ACCUMULATE_F32 && case_is_of_integers(c))
        c->alpha *= 0x1p-6; /* keeps sums of larger integers within a half */
    if (!case_is_of_integers(c) && i % 2)
        c->alpha *= 0.7, c->beta *= 0.3;
    c->in_place = i % 3 == 1;
    c->tight = i % 17 < 9;
    int aligned = i % 4 < 2; /* half of all: what the variants for 16 bytes want, or for 8 */
    int64_t group = i % 8 < 4 ? 8 : 4;
    for (int which = A; which < BIAS; which++) {
        c->pad[which] = pads[(i + 2 * which) % 11];
        c->offset[which] = offsets[(i + 5 * which) % 13];
        c->gap[which] = gaps[(i + which) % 3];
        if (aligned && which <= B)
            c->offset[which] &= -group;
    }
    if (c->batch > 1 && i % 2) {
        c->gap[A] = i % 4 == 1 ? -1 : c->gap[A];
        c->gap[B] = i % 4 == 3 ? -1 : c->gap[B];
        if (!c->in_place && i % 8 == 5)
            c->gap[C] = -1;
    }
    if (aligned) { /* leading dimensions in whole groups, whatever the width */
        int row_major = c->layout == HGEMM_ROW_MAJOR;
        int64_t width_a = row_major == (c->op_a == HGEMM_OP_N) ? c->k : c->m;
        int64_t width_b = row_major == (c->op_b == HGEMM_OP_N) ? c->n : c->k;
        c->pad[A] = (c->pad[A] & -group) + (group - width_a % group) % group;
        c->pad[B] = (c->pad[B] & -group) + (group - width_b % group) % group;
    }
    c->seed = seed ^ (uint64_t)i * UINT64_C(0x2545f4914f6cdd1d);
}

static void run_shape(hgemm_handle_t handle, case_t c, shape_t shape, int64_t batch, uint64_t seed)
{
    static const int64_t fills[] = {EXACT, BOUNDED, EXACT, SPREAD, SPECIAL};
    c.m = shape.m, c.n = shape.n, c.k = shape.k, c.batch = batch;
    c.fill = fills[case_count % 5];
    if (c.fill == SPREAD && !case_has_floats(&c))
        c.fill = BOUNDED;
    vary(&c, seed);
    run_case(handle, &c);
}

/* Rows of A, then of B, so far apart that a tile spans 2^32 bytes: two rows are enough to tell. */
static void run_far(hgemm_handle_t handle, case_t c, const hgemm_kernel_info_t *info, uint64_t seed)
{
    int row_major = c.layout == HGEMM_ROW_MAJOR;
    for (int which = A; which <= B; which++) {
        int by_rows = row_major == ((which == A ? c.op_a : c.op_b) == HGEMM_OP_N);
        c.m = 9, c.n = 9, c.k = 9, c.batch = 1;
        if (which == A) /* the extent across the rows */
            *(by_rows ? &c.m : &c.k) = 2;
        else
            *(by_rows ? &c.k : &c.n) = 2;
        vary(&c, seed);
        c.alpha = 1;
        c.pad[A] = c.pad[B] = 0;
        c.pad[which] = far_distance(info);
        run_case(handle, &c);
    }
}

/* One operand of more than 2^31 elements, its rows as far apart as 32-bit offsets within a tile
 * allow. */
static void run_large(hgemm_handle_t handle, int kernel, const hgemm_kernel_info_t *info, uint64_t seed)
{
    int which = kernel % 3 == 0 ? A : kernel % 3 == 1 ? B : C;
    case_t c = {.kernel = kernel,
                .accumulate = info->accumulate,
                .batch = 1,
                .alpha = 1,
                .beta = 1,
                .in_place = 1,
                .m = 40,
                .n = 40,
                .k = 40,
                .seed = seed};
    c.pad[which] = far_distance(info) - 64;
    *(which == B ? &c.k : &c.m) = (INT64_C(1) << 31) / (far_distance(info) - 64) + 2;
    run_case(handle, &c);
    case_count++;
}

/* One kernel, transpose and layout over all shapes. */
static void run_shapes(hgemm_handle_t handle, const case_t *base, int64_t bm, int64_t bn, int64_t bk, uint64_t seed)
{
    const shape_t shapes[] = {
        {1, 1, 1}, /* the smallest */
        {0, 5, 7},
        {5, 0, 7},
        {9, 7, 0}, /* empty: no output, no output, no products */
        {2, 3, 5},
        {8, 8, 8},
        {17, 33, 9},  /* less than a tile */
        {bm, bn, bk}, /* exactly one tile */
        {bm, bn, 2 * bk},
        {bm, bn, 5 * bk},
        {bm - 1, bn - 1, bk - 1}, /* one short, one over */
        {bm + 1, bn + 1, bk + 1},
        {bm + 8, bn + 8, bk + 8}, /* edges that are multiples of 8 */
        {bm - 8, bn + 16, 3 * bk - 8},
        {bm + 4, bn + 12, 2 * bk + 4}, /* and of 4 only */
        {bm - 4, bn - 4, 3 * bk - 4},
        {12, 20, 4 * bk + 12},
        {2 * bm, 2 * bn, 4 * bk}, /* several tiles */
        {2 * bm - 7, bn + 3, 2 * bk + 7},
        {1, 2 * bn + 8, 3 * bk},
        {2 * bm + 8, 1, 3 * bk}, /* one row, one column */
        {1, bn + 5, 77},
        {bm + 5, 1, 131},
        {3, 5, 31 * bk + 3},
        {8, 16, 32 * bk}, /* long sums */
        {8, 8, 4 * bk + 8},
        {4, 4, 4 * bk + 20}, /* rows so short that a tile spans many */
    };
    /* Each with other strides, scalars, ... What is column-major reaches a kernel as its transpose; automatic selection
     * has random cases besides. */
    const int most_passes = (base->kernel ? 2 : 1) + test_full();
    const int passes = base->layout == HGEMM_COL_MAJOR ? 1 : most_passes;
    const shape_t long_shapes[] = {
        {1024, 1024, 1024}, {1000, 1000, 1000},
        {1023, 1025, 1027}, {512, 2048, 4096},
        {2048, 512, 264},   {16, 4096, 4096},
        {4095, 33, 2049},   {1, 8192, 1024},
        {64, 64, 16384},    {9 * bm + 1, 9 * bn + 1, 3 * bk + 1},
    };
    for (int pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            run_shape(handle, *base, shapes[i], 1, seed);
        run_shape(handle, *base, (shape_t){bm + 8, bn - 8, bk + 8}, 3, seed);
        run_shape(handle, *base, (shape_t){19, 11, 21}, 5, seed);
        run_shape(handle, *base, (shape_t){8, 16, 24}, 2, seed);
        run_shape(handle, *base, (shape_t){8, 16, 24}, 0, seed);
        if (!base->kernel) { /* k is split: evenly, with a short last part, over a batch */
            run_shape(handle, *base, (shape_t){64, 72, 2048}, 1, seed);
            run_shape(handle, *base, (shape_t){33, 65, 1511}, 1, seed);
            run_shape(handle, *base, (shape_t){40, 24, 1032}, 3, seed);
            run_shape(handle, *base, (shape_t){16, 5184, 384}, 1, seed); /* on a T4: the last tile of 41 */
            run_shape(handle, *base, (shape_t){13, 5250, 391}, 1, seed);
        } else if (can_split((int)base->kernel)) {
            case_t tail = *base;
            tail.tail = 2;
            run_shape(handle, tail, (shape_t){2 * bm - 8, bn + 8, 3 * bk + 8}, 1, seed);
            tail.tail = 3;
            run_shape(handle, tail, (shape_t){2 * bm - 7, 2 * bn + 3, 3 * bk + 5}, 1, seed);
        }
    }
    for (size_t i = 0; test_full() && i < sizeof long_shapes / sizeof long_shapes[0]; i++)
        run_shape(handle, *base, long_shapes[i], 1, seed);
}

/* D of a column or two, in more tiles of a thin kernel than a GPU has blocks at a time: a block has several. */
static void run_several_tiles(hgemm_handle_t handle, case_t c, const hgemm_kernel_info_t *info, uint64_t seed)
{
    static const struct {
        int64_t columns, k, bias;
    } shapes[] = {{1, 1, NO_BIAS}, {1, 9, NO_BIAS}, {2, 3, NO_BIAS}, {1, 2, BIAS_PER_COLUMN}, {7, 5, BIAS_PER_COLUMN}};
    const int is_tall = info->block_m > info->block_n;
    const int64_t lines = 4 * (int64_t)(is_tall ? info->block_m : info->block_n) + 3; /* five tiles */
    hgemm_device_info_t device;
    expect_status(handle, hgemm_get_device_info(handle, &device), HGEMM_STATUS_SUCCESS, "hgemm_get_device_info");
    const int64_t batch = device.multiprocessors * 4 / 5 + 5; /* an SM has four blocks at a time */
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t columns = shapes[i].columns;
        c.bias = shapes[i].bias;
        run_shape(handle, c, (shape_t){is_tall ? lines : columns, is_tall ? columns : lines, shapes[i].k}, batch, seed);
    }
}

/* Up to four rows or columns of D and whole chunks of k's, which are swept where rows are aligned, 128 lines a block;
 * and what is not. */
static void run_swept(hgemm_handle_t handle, case_t c, const hgemm_kernel_info_t *info, uint64_t seed)
{
    static const shape_t shapes[] = {{300, 1, 24}, {127, 2, 64}, {128, 3, 72}, {129, 4, 128},
                                     {1, 2, 32},   {31, 4, 200}, {513, 2, 40}, {260, 1, 256},
                                     {36, 3, 64},  {140, 5, 64}, {140, 2, 63}, {140, 4, 16}};
    enum { COUNT = sizeof shapes / sizeof shapes[0] };
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const shape_t s = shapes[i % COUNT];
        c.bias = (i + i / COUNT) % 2 ? BIAS_PER_COLUMN : NO_BIAS; /* sums are stored from registers without one */
        run_shape(handle, c, info->block_m > info->block_n ? s : (shape_t){s.n, s.m, s.k}, i % 4 == 3 ? 3 : 1, seed);
    }
}

/* One row or column of D and many k's, which are streamed in chunks that rows of any alignment share with others, 120
 * lines a block; and what is too little for that. */
static void run_streamed(hgemm_handle_t handle, case_t c, const hgemm_kernel_info_t *info, uint64_t seed)
{
    static const shape_t shapes[] = {{7, 0, 200},   {8, 0, 128},   {8, 0, 129},   {9, 0, 130},  {113, 0, 131},
                                     {119, 0, 257}, {120, 0, 136}, {121, 0, 193}, {365, 0, 999}};
    enum { COUNT = sizeof shapes / sizeof shapes[0] };
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const shape_t s = shapes[i % COUNT];
        c.bias = i % 3 == 2 ? BIAS_PER_COLUMN : NO_BIAS;
        run_shape(handle, c, info->block_m > info->block_n ? (shape_t){s.m, 1, s.k} : (shape_t){1, s.m, s.k},
                  i % 4 == 3 ? 3 : 1, seed);
    }
}

/* Tiles of a kernel whose warps have one each: those of a block are of several matrices, the last of a launch are fewer
 * than a block has, and matrices, their rows or groups begin at any address. */
static void run_batches(hgemm_handle_t handle, case_t c, uint64_t seed)
{
    static const struct {
        shape_t shape;
        int64_t batch;
    } cases[] = {{{16, 16, 16}, 9}, {{5, 3, 2}, 7},    {{17, 31, 18}, 6}, {{32, 32, 32}, 5},
                 {{48, 40, 20}, 3}, {{33, 65, 37}, 3}, {{1, 64, 66}, 11}, {{70, 1, 24}, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int64_t mode = HGEMM_BATCH_STRIDED; mode <= HGEMM_BATCH_GROUPED; mode++)
            for (int gather = 0; gather < 2; gather++) {
                case_t batched = c;
                batched.batch_mode = mode, batched.gather = gather;
                batched.alignment = mode == HGEMM_BATCH_POINTERS ? (int64_t)i % 3 * 4 : 0;
                run_shape(handle, batched, cases[i].shape, cases[i].batch, seed);
            }
}

/* Where alpha is 1 and beta 0 a kernel stores its sums as they are: the same bits as with beta 1 and a
 * C of zeros, also where a sum so small that it vanishes was negative. (K has no slice of zeros, which
 * would make all of these +0.) */
static void run_scalars(hgemm_handle_t handle, int kernel, uint64_t seed)
{
    enum { M = 80, N = 136, K = 64, PRODUCTS = M * K + K * N, SUMS = M * N };
    static uint16_t numbers[PRODUCTS + SUMS], d[2][SUMS]; /* A, B and C, which stays zero */
    case_t c = {.kernel = kernel, .m = M, .n = N, .k = K, .batch = 1, .alpha = 1, .seed = seed};
    rng_t rng = {seed};
    void *device, *result;
    for (int i = 0; i < PRODUCTS; i++)
        numbers[i] = hgemm_half_from_float((float)(rng_symmetric(&rng) * 0x1p-13));
    expect_status(handle, hgemm_malloc(handle, &device, sizeof numbers), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &result, sizeof d[0]), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, numbers, sizeof numbers), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = kernel, desc.m = M, desc.n = N, desc.k = K;
    if (kernel != HGEMM_KERNEL_AUTO)
        desc.accumulate = kernel_table[kernel].info.accumulate;
    c.accumulate = (int64_t)desc.accumulate;
    desc.a = device, desc.b = (uint16_t *)device + M * K, desc.c = (uint16_t *)device + PRODUCTS, desc.d = result;
    desc.lda = K, desc.ldb = desc.ldc = desc.ldd = N;
    int zeros = 0, differ = 0;
    for (int beta = 0; beta < 2; beta++) {
        desc.beta = (float)beta;
        expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
        expect_status(handle, hgemm_download(handle, d[beta], result, sizeof d[0]), HGEMM_STATUS_SUCCESS,
                      "hgemm_download");
    }
    for (int i = 0; i < SUMS; i++)
        zeros += (d[1][i] & 0x7fff) == 0, differ += d[0][i] != d[1][i];
    if (differ)
        fail(&c, "beta 0 gives other bits than beta 1 and a C of zeros");
    if (zeros == 0 || zeros == SUMS)
        fail(&c, "no sum, or every one, vanished: nothing was compared");
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, result), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

/* Whether this build has the kernel. */
static int is_here(int kernel)
{
    int is_built = 0;
    for (int op = 0; op < 4; op++)
        for (int access = 0; access < ACCESS_COUNT; access++)
            for (int factors = 0; factors < FACTORS_COUNT; factors++) {
                const variant_t variant = {kernel, op, (access_t)access, 0, (factors_t)factors};
                is_built |= variant_exists(variant) && variant_image(variant);
            }
    return is_built;
}

/* All transposes and layouts of a kernel, those it does not cover too. */
static void run_kernel(hgemm_handle_t handle, int kernel, uint64_t seed)
{
    hgemm_kernel_info_t info = {.block_m = 128, .block_n = 128, .block_k = 32};
    int64_t before = case_count, computed_before = computed_count, accumulators = 2;
    case_t c = {.kernel = kernel};
    if (kernel != HGEMM_KERNEL_AUTO) {
        expect_status(handle, hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS, "hgemm_get_kernel_info");
        accumulators = 1;
        if (kernel_table[kernel].limits[LIMIT_f32])
            c.type[A] = c.type[B] = HGEMM_TYPE_F32, c.accuracy = (int64_t)kernel_table[kernel].accuracy;
    }
    const int every = c.accuracy ? 2 : 1; /* row-major alone for less accuracy: what is loaded is as with more */
    for (int64_t acc = 0; acc < accumulators; acc++)
        for (int bits = 0; bits < 8; bits += every) {
            c.accumulate = accumulators == 1 ? (int64_t)info.accumulate : acc;
            c.layout = bits & 1, c.op_a = bits >> 1 & 1, c.op_b = bits >> 2;
            if (kernel && kernel_table[kernel].is_plain) /* several tiles, the last ones short, in aligned rows */
                run_shape(handle, c, (shape_t){2 * info.block_m + 5, 2 * info.block_n + 8, 3 * info.block_k + 8}, 2,
                          seed);
            if (!bits) /* groups of rows of tiles that are walked together, the last one short */
                run_shape(handle, c, (shape_t){14 * info.block_m - 3, 3 * info.block_n - 5, info.block_k + 3}, 1, seed);
            if (info.ops == HGEMM_OPS_NN && (c.op_a || c.op_b)) {
                run_shape(handle, c, (shape_t){64, 64, 64}, 1, seed);
                continue;
            }
            run_shapes(handle, &c, info.block_m, info.block_n, info.block_k, seed);
            if (kernel_table[kernel].family == FAMILY_thin && info.block_m != info.block_n &&
                c.layout == HGEMM_ROW_MAJOR)
                run_several_tiles(handle, c, &info, seed), run_swept(handle, c, &info, seed),
                    run_streamed(handle, c, &info, seed);
            if (kernel_table[kernel].family == FAMILY_tiny)
                run_batches(handle, c, seed);
            if (c.layout == HGEMM_ROW_MAJOR)
                run_far(handle, c, &info, seed);
        }
    const case_t plain = {.kernel = kernel, .accumulate = kernel ? (int64_t)info.accumulate : HGEMM_ACCUMULATE_F16};
    int runs_plain = 0; /* not in every build */
    for (int other = 1; other < KERNEL_END; other++)
        runs_plain |=
            (kernel ? other == kernel : is_drawn_from(handle, other)) && has_variant(&plain, other, ACCESS_x16);
    if (runs_plain)
        run_scalars(handle, kernel, seed);
    if (test_full())
        run_large(handle, kernel, &info, seed);
    printf("%s: %" PRId64 " cases, of which it computed %" PRId64 "\n", case_kernel(&c), case_count - before,
           computed_count - computed_before);
    if (kernel && is_here(kernel) && computed_count == computed_before)
        fail(&c, "no case was one that the kernel covers");
}

/* ---- Random cases ------------------------------------------------------------------------------ */

typedef struct options_t {
    const char *what;
    int64_t count, jobs;
    uint64_t seed;
} options_t;

typedef struct job_t {
    const options_t *options;
    int64_t first; /* and every jobs-th after it */
    int64_t computed;
} job_t;

enum { MOST_FAILURES = 20, MOST_JOBS = 256, LEAST_COMPUTED = 20 };

static int is_enough(void)
{
    pthread_mutex_lock(&lock);
    int enough = failures >= MOST_FAILURES;
    pthread_mutex_unlock(&lock);
    return enough;
}

/* What each job runs; seed 0: nothing. */
static case_t running[MOST_JOBS];

static void set_running(int64_t job, case_t c)
{
    pthread_mutex_lock(&lock);
    running[job] = c;
    pthread_mutex_unlock(&lock);
}

/* A fault on a GPU ends the work of all jobs, and any of them may be the first to hear of it: while one tells what ran,
 * the others wait for the end. */
static void tell_running(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int job = 0; job < MOST_JOBS; job++) {
        char line[CASE_LINE];
        if (!running[job].seed)
            continue;
        case_write(&running[job], line);
        printf("was running: %s\n", line);
        count++;
    }
    if (count) {
        fflush(stdout);
        _exit(1);
    }
    pthread_mutex_unlock(&lock);
}

static void *run_job(void *argument)
{
    job_t *job = argument;
    const options_t *options = job->options;
    const int copies = strcmp(options->what, "copies") == 0;
    hgemm_handle_t handle = test_open();
    for (int64_t i = job->first; i < options->count && !is_enough(); i += options->jobs) {
        rng_t rng = {options->seed + (uint64_t)i * UINT64_C(0xd1342543de82ef95)};
        case_t c = random_case(&rng, test_full() ? 2000 : 300, copies);
        outcome_t outcome;
        set_running(job->first, c);
        case_run(handle, &c, &outcome);
        job->computed += outcome.is_computed;
        if (outcome.is_right)
            continue;
        fail(&c, outcome.why);
        if (outcome.device_is_lost)
            exit(1);
        shrink_case(handle, &c, &outcome);
        fail(&c, outcome.why);
    }
    set_running(job->first, (case_t){0});
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    return NULL;
}

/* The cases are the same, however many jobs share them. */
static void run_random(const options_t *options)
{
    pthread_t threads[MOST_JOBS];
    job_t jobs[MOST_JOBS];
    int64_t computed = 0;
    atexit(tell_running);
    for (int64_t t = 0; t < options->jobs; t++) {
        jobs[t] = (job_t){.options = options, .first = t};
        if (pthread_create(&threads[t], NULL, run_job, &jobs[t]) != 0) {
            printf("FAILED: no thread for a job\n");
            exit(1);
        }
    }
    for (int64_t t = 0; t < options->jobs; t++) {
        pthread_join(threads[t], NULL);
        computed += jobs[t].computed;
    }
    case_count += options->count;
    printf("%s: %" PRId64 " cases, of which kernels computed %" PRId64 "\n", options->what, options->count, computed);
    if (computed < options->count / LEAST_COMPUTED) { /* of a build with few kernels; with all it is more than half */
        failures++;
        printf("FAILED: too few of the cases were computed\n");
    }
}

/* ---- The command line -------------------------------------------------------------------------- */

static int run_one(int count, char **words)
{
    case_t c;
    if (!case_read(&c, count, words)) {
        printf("cannot read the case: words are KEY=VALUE, as a failure prints them\n");
        return 2;
    }
    hgemm_handle_t handle = test_open();
    run_case(handle, &c);
    hgemm_destroy(handle);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}

/* Reads what follows random or copies; 0 if it is not understood. */
static int read_options(int count, char **words, options_t *options)
{
    int has_seed = 0;
    for (int i = 0; i < count; i += 2) {
        char *end = NULL;
        unsigned long long value = i + 1 < count ? strtoull(words[i + 1], &end, 10) : 0;
        if (!end || *end || end == words[i + 1])
            return 0;
        if (strcmp(words[i], "--count") == 0)
            options->count = (int64_t)value;
        else if (strcmp(words[i], "--jobs") == 0 && value >= 1 && value <= MOST_JOBS)
            options->jobs = (int64_t)value;
        else if (strcmp(words[i], "--seed") == 0)
            options->seed = value, has_seed = 1;
        else
            return 0;
    }
    if (!has_seed)
        options->seed = test_seed();
    return 1;
}

static int result(void)
{
    printf("%" PRId64 " cases, %d failures\n", case_count, failures);
    return failures != 0;
}

int main(int argc, char **argv)
{
    options_t options = {.what = argc > 1 ? argv[1] : "random", .count = test_full() ? 5000 : 1000, .jobs = 1};
    const int random = strcmp(options.what, "random") == 0 || strcmp(options.what, "copies") == 0;
    int only = HGEMM_KERNEL_AUTO;
    if (argc > 1 && strcmp(argv[1], "--one") == 0)
        return run_one(argc - 2, argv + 2);
    if (!read_options(random && argc > 2 ? argc - 2 : 0, argv + 2, &options) || (!random && argc > 2)) {
        printf("cannot read the options: see the head of test_gemm.c\n");
        return 2;
    }
    if (random)
        run_random(&options);
    if (argc > 1 && random)
        return result();
    if (argc > 1 && strcmp(argv[1], "auto") != 0 && !(only = hgemm_find_kernel(argv[1]))) {
        printf("no kernel is called %s\n", argv[1]);
        return 2;
    }
    hgemm_handle_t handle = test_open();
    for (int kernel = HGEMM_KERNEL_AUTO; kernel <= hgemm_kernel_count(); kernel++)
        if (argc < 2 || kernel == only)
            run_kernel(handle, kernel, options.seed);
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    return result();
}
