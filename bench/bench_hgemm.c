/* SPDX-License-Identifier: MIT */
/*
 * Times the kernels against cuBLAS and against the tensor cores' ceiling.
 *
 * A problem's contestants are measured together: inputs, proof of every result, then repetitions in
 * which each contestant has one turn and a different one begins each time. So whatever drifts
 * (clock, heat, other tenants) drifts for all. Operands rotate through enough copies that none is
 * found in the L2 cache. C is updated in place, as cuBLAS does it.
 *
 * A turn in burst mode is one launch after a pause; a short kernel goes first, so that the launch
 * and the events around it are all enqueued when it ends and the host's own time is not measured.
 * In continuous mode a turn is a train of launches.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commit.h"
#include "gbench.h"
#include "handle.h"
#include "options.h"
#include "peers.h"
#include "select.h"
#include "verify.h"

enum {
    CEILING_THREADS = 256,
    CEILING_WORDS = 48 * CEILING_THREADS, /* operands of ceiling_*, see ptx/ceiling.cu */
    MMA_OPERATIONS = 16 * 8 * 8 * 2,
    MOST_SETS = 256,
    MOST_LAUNCHES = 4096, /* of a continuous turn */
    PAUSE_US = 3000       /* before a burst */
};
static const double DELAY_SECONDS = 60e-6; /* time to enqueue a launch between two events */
static const double L2_COPIES = 2;         /* operands of all sets over the size of the L2 cache */

extern const image_t bench_images[]; /* ceiling_f16, ceiling_f32 */
extern const int bench_image_count;

typedef struct bench_t {
    options_t options;
    hgemm_handle_t handle;
    hgemm_device_info_t info;
    cublas_t *cublas; /* NULL: not there */
    void *events[2];
    void *ceilings[2]; /* functions, by hgemm_accumulate_t */
    void *ceiling_in, *ceiling_out;
    double delay_iterations; /* of one block of ceiling_f16 that last DELAY_SECONDS */
} bench_t;

static bench_t bench;

typedef enum kind_t { CEILING, CUBLAS_HGEMM, CUBLAS_GEMM_EX, KERNEL } kind_t;

typedef struct contestant_t {
    gbench_case_t result;
    kind_t kind;
    hgemm_accumulate_t accumulate;
    int kernel;
    char name[48], failure[VERIFY_WORDS];
    double *seconds, *mhz; /* of the repetitions */
} contestant_t;

typedef struct group_t {
    shape_t shape;
    char name[96];
    int number; /* of this group, from 1 */
    int measured;
    int count;
    contestant_t *contestants;
} group_t;

static group_t *groups;
static int group_count;

/* One copy of the operands on the device. */
typedef struct set_t {
    char *a, *b, *c;
} set_t;

__attribute__((format(printf, 1, 2))) static void progress(const char *format, ...)
{
    static int width;
    va_list arguments;
    va_start(arguments, format);
    if (isatty(2))
        fprintf(stderr, "\r%*s\r", width, "");
    width = vfprintf(stderr, format, arguments);
    if (!isatty(2))
        fputc('\n', stderr);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static int fail(contestant_t *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->failure, sizeof c->failure, format, arguments);
    va_end(arguments);
    c->result.failure = c->failure;
    return 0;
}

/* 1 on success; otherwise the contestant has failed with the status's words. */
static int check(contestant_t *c, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return 1;
    return fail(c, "%s %s", hgemm_status_name(status), hgemm_error_detail(bench.handle));
}

/* ---- one call of a contestant ------------------------------------------------------------------
 */

typedef struct ceiling_args_t {
    const void *in;
    void *out;
    int iterations;
} ceiling_args_t;

static hgemm_status_t launch_ceiling(hgemm_accumulate_t accumulate, int blocks, int iterations)
{
    ceiling_args_t args = {bench.ceiling_in, bench.ceiling_out, iterations};
    launch_t launch = {{(unsigned)blocks, 1, 1}, CEILING_THREADS, 0, &args, sizeof args};
    return bench.handle->device->ops->launch(bench.handle->device, NULL, bench.ceilings[accumulate],
                                             &launch);
}

/* Operations of one iteration of all warps on the whole device: see ptx/ceiling.cu. */
static double ceiling_operations(hgemm_accumulate_t accumulate)
{
    int mma = 4 * 8 * (accumulate == HGEMM_ACCUMULATE_F16 ? 8 : 4);
    return (double)mma * MMA_OPERATIONS * (CEILING_THREADS / 32) * bench.info.multiprocessors;
}

static hgemm_desc_t describe(const contestant_t *c, const problem_t *p, float alpha, float beta)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = p->layout;
    desc.op_a = p->op_a, desc.op_b = p->op_b;
    desc.accumulate = c->accumulate;
    desc.kernel = c->kernel;
    desc.m = p->m, desc.n = p->n, desc.k = p->k;
    desc.alpha = alpha, desc.beta = beta;
    desc.lda = p->lda, desc.ldb = p->ldb, desc.ldc = desc.ldd = p->ldc;
    return desc;
}

static int enqueue(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha,
                   float beta)
{
    hgemm_desc_t desc;
    switch (c->kind) {
    case CEILING:
        return check(c, launch_ceiling(
                            c->accumulate, bench.info.multiprocessors,
                            (int)(c->result.operations / ceiling_operations(c->accumulate) + 0.5)));
    case CUBLAS_HGEMM:
        return cublas_hgemm(bench.cublas, p, alpha, set->a, set->b, beta, d) == 0 ||
               fail(c, "cublasHgemm failed");
    case CUBLAS_GEMM_EX:
        return cublas_gemm_ex(bench.cublas, p, alpha, set->a, set->b, beta, d) == 0 ||
               fail(c, "cublasGemmEx failed");
    case KERNEL: break;
    }
    desc = describe(c, p, alpha, beta);
    desc.a = set->a, desc.b = set->b, desc.c = set->c, desc.d = d;
    return check(c, hgemm_run_desc(bench.handle, &desc));
}

/* ---- proof -------------------------------------------------------------------------------------
 */

/* Computes D from the first set and proves it. Kernels of hgemm write integer problems to a matrix
 * of their own, `apart`, that was filled with NaN; all else is in place, as it is timed. */
static void verify(contestant_t *c, const problem_t *p, const set_t *set, char *apart,
                   uint16_t *host)
{
    size_t count = (size_t)(p->m * p->n);
    float alpha = bench.options.alpha, beta = bench.options.beta;
    if (p->exact) /* scalars that keep integers integers, and zero where they are zero */
        alpha = alpha != 0 ? 2 : 0, beta = beta != 0 ? -3 : 0;
    if (c->kind == CEILING || c->result.failure)
        return;

    int separate = p->exact && c->kind == KERNEL;
    char *d = separate ? apart : set->c;
    memset(host, 0xff, count * sizeof *host); /* NaN */
    if (!check(c, hgemm_upload(bench.handle, d, separate || beta == 0 ? host : p->c,
                               count * sizeof *host)) ||
        (separate && !check(c, hgemm_upload(bench.handle, set->c, p->c, count * sizeof *host))) ||
        !enqueue(c, p, set, d, alpha, beta) || !check(c, hgemm_synchronize(bench.handle)) ||
        !check(c, hgemm_download(bench.handle, host, d, count * sizeof *host)))
        return;
    if (c->kind == CUBLAS_HGEMM) { /* its scalars are halves */
        alpha = hgemm_half_to_float(hgemm_half_from_float(alpha));
        beta = hgemm_half_to_float(hgemm_half_from_float(beta));
    }
    c->result.failure =
        problem_verify(p, host, alpha, beta, c->accumulate, &c->result.error, c->failure);
}

/* ---- turns -------------------------------------------------------------------------------------
 */

static void pause_us(long us)
{
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

/* Seconds of a call, by device events around `launches` calls that begin with set number `*next`.
 */
static int take_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count,
                     int *next, int launches, double *seconds)
{
    const device_ops_t *ops = bench.handle->device->ops;
    device_t *device = bench.handle->device;
    float milliseconds = 0;
    int lead = bench.options.continuous ? launches > 1
                                        : 0; /* the train is already moving when timing begins */
    if (!bench.options.continuous) {
        pause_us(PAUSE_US);
        if (!check(c, launch_ceiling(HGEMM_ACCUMULATE_F16, 1, (int)bench.delay_iterations)))
            return 0;
    }
    for (int i = -lead; i < launches; i++) {
        if (i == 0 && !check(c, ops->event_record(device, bench.events[0], NULL)))
            return 0;
        const set_t *set = &sets[*next];
        *next = (*next + 1) % set_count;
        if (!enqueue(c, p, set, set->c, bench.options.alpha, bench.options.beta))
            return 0;
    }
    if (!check(c, ops->event_record(device, bench.events[1], NULL)) ||
        !check(c, ops->event_elapsed(device, bench.events[0], bench.events[1], &milliseconds)))
        return 0;
    *seconds = (double)milliseconds * 1e-3 / launches;
    return 1;
}

static void time_group(group_t *g, const problem_t *p, const set_t *sets, int set_count)
{
    int next = 0, *launches = calloc((size_t)g->count, sizeof *launches);
    if (!launches)
        return;
    for (int i = 0; i < g->count; i++) { /* warm-up: code and clocks; how long is a call? */
        contestant_t *c = &g->contestants[i];
        double seconds = 0;
        for (int turn = 0; turn < 2 && !c->result.failure; turn++)
            take_turn(c, p, sets, set_count, &next, 1, &seconds);
        double wanted =
            bench.options.continuous && seconds > 0 ? bench.options.min_time / seconds + 1 : 1;
        launches[i] = wanted < MOST_LAUNCHES ? (int)wanted : MOST_LAUNCHES;
    }
    for (int r = 0; r < bench.options.repetitions; r++)
        for (int i = 0; i < g->count; i++) {
            int turn = (r + i) % g->count;
            contestant_t *c = &g->contestants[turn];
            if (c->result.failure)
                continue;
            take_turn(c, p, sets, set_count, &next, launches[turn], &c->seconds[r]);
            c->mhz[r] = clocks_sm_mhz();
        }
    free(launches);
}

/* ---- a problem ---------------------------------------------------------------------------------
 */

static size_t padded(int64_t elements)
{
    return ((size_t)elements * sizeof(uint16_t) + 255) / 256 * 256;
}

static hgemm_status_t upload_set(const problem_t *p, const set_t *set)
{
    hgemm_status_t status = hgemm_upload(bench.handle, set->a, p->a, (size_t)(p->m * p->k) * 2);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_upload(bench.handle, set->b, p->b, (size_t)(p->k * p->n) * 2);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_upload(bench.handle, set->c, p->c, (size_t)(p->m * p->n) * 2);
    return status;
}

static void measure(group_t *g)
{
    const shape_t s = g->shape;
    const size_t a = padded(s.m * s.k), b = padded(s.k * s.n), c = padded(s.m * s.n);
    double copies = 1 + L2_COPIES * (double)bench.info.l2_bytes / (double)(a + b + c);
    int set_count = copies < 2 ? 2 : copies < MOST_SETS ? (int)copies : MOST_SETS;
    set_t *sets = calloc((size_t)set_count, sizeof *sets);
    uint16_t *host = malloc((size_t)(s.m * s.n) * sizeof *host);
    void *slab = NULL;
    problem_t p = {0};
    hgemm_status_t status =
        sets && host ? hgemm_malloc(bench.handle, &slab, (size_t)set_count * (a + b + c) + c)
                     : HGEMM_STATUS_OUT_OF_MEMORY;
    for (int i = 0; i < set_count && status == HGEMM_STATUS_SUCCESS; i++) {
        sets[i].a = (char *)slab + (size_t)i * (a + b + c);
        sets[i].b = sets[i].a + a;
        sets[i].c = sets[i].b + b;
    }
    char *apart =
        status == HGEMM_STATUS_SUCCESS ? (char *)slab + (size_t)set_count * (a + b + c) : NULL;

    for (int exact = 1; exact >= 0 && status == HGEMM_STATUS_SUCCESS; exact--) {
        progress("[%d/%d] %s: verifying (%s inputs)", g->number, group_count, g->name,
                 exact ? "integer" : "random");
        problem_destroy(&p);
        if (!problem_create(&p, bench.options.layout, s.op_a, s.op_b, s.m, s.n, s.k, exact)) {
            status = HGEMM_STATUS_OUT_OF_MEMORY;
            break;
        }
        status = upload_set(&p, &sets[0]);
        for (int i = 0; i < g->count && status == HGEMM_STATUS_SUCCESS; i++)
            verify(&g->contestants[i], &p, &sets[0], apart, host);
    }
    for (int i = 0; i < set_count && status == HGEMM_STATUS_SUCCESS; i++)
        status = upload_set(&p, &sets[i]);
    if (status == HGEMM_STATUS_SUCCESS) {
        progress("[%d/%d] %s: timing %d contestants", g->number, group_count, g->name, g->count);
        time_group(g, &p, sets, set_count);
    } else {
        for (int i = 0; i < g->count; i++)
            check(&g->contestants[i], status);
    }
    if (isatty(2))
        progress("%s", "");
    hgemm_free(bench.handle, slab);
    problem_destroy(&p);
    free(host);
    free(sets);
}

static void measure_once(void *context)
{
    group_t *g = context;
    if (!g->measured)
        measure(g);
    g->measured = 1;
}

/* ---- who takes part ----------------------------------------------------------------------------
 */

/* The descriptor of a contestant without pointers: enough to ask what would run. */
static hgemm_desc_t plan(const shape_t *s, hgemm_accumulate_t accumulate, int kernel)
{
    int row = bench.options.layout == HGEMM_ROW_MAJOR;
    problem_t p = {.layout = bench.options.layout,
                   .op_a = s->op_a,
                   .op_b = s->op_b,
                   .m = s->m,
                   .n = s->n,
                   .k = s->k,
                   .lda = row == (s->op_a == HGEMM_OP_N) ? s->k : s->m,
                   .ldb = row == (s->op_b == HGEMM_OP_N) ? s->n : s->k,
                   .ldc = row ? s->n : s->m};
    contestant_t c = {.accumulate = accumulate, .kernel = kernel};
    return describe(&c, &p, bench.options.alpha, bench.options.beta);
}

static contestant_t *add(group_t *g, kind_t kind, hgemm_accumulate_t accumulate, int kernel,
                         const char *name)
{
    int repetitions = bench.options.repetitions;
    contestant_t *c = &g->contestants[g->count++];
    double m = (double)g->shape.m, n = (double)g->shape.n, k = (double)g->shape.k;
    double turns = bench.options.beta != 0 ? 2 : 1;
    *c = (contestant_t){.kind = kind, .accumulate = accumulate, .kernel = kernel};
    snprintf(c->name, sizeof c->name, "%s", name);
    c->seconds = calloc(2 * (size_t)repetitions, sizeof *c->seconds);
    c->mhz = c->seconds + repetitions;
    c->result = (gbench_case_t){.group = g->name,
                                .name = c->name,
                                .operations = 2 * m * n * k,
                                .bytes = 2 * (m * k + k * n + turns * m * n),
                                .cublas = -1,
                                .ceiling = -1,
                                .repetitions = repetitions,
                                .measure = measure_once,
                                .context = g,
                                .seconds = c->seconds,
                                .mhz = c->mhz,
                                .error = -1};
    if (kind == CEILING) { /* as many operations as the problem has, in whole iterations */
        double per_iteration = ceiling_operations(accumulate);
        c->result.operations =
            per_iteration * (double)(int)(c->result.operations / per_iteration + 1);
        c->result.bytes = 0;
    }
    return c;
}

static int wanted(const char *name)
{
    return regexec(&bench.options.kernels, name, 0, NULL, 0) == 0;
}

/* The kernel that this device would run: a column-major problem is the row-major one of the
 * transposed matrices. */
static int chosen(const hgemm_desc_t *desc)
{
    hgemm_desc_t row = *desc;
    variant_t variant;
    if (desc->layout == HGEMM_COL_MAJOR) {
        row.layout = HGEMM_ROW_MAJOR;
        row.op_a = desc->op_b, row.op_b = desc->op_a;
        row.m = desc->n, row.n = desc->m;
        row.lda = desc->ldb, row.ldb = desc->lda;
    }
    return select_variant(&row, bench.info.multiprocessors, &variant) == HGEMM_STATUS_SUCCESS
               ? variant.kernel
               : 0;
}

static void add_kernels(group_t *g, hgemm_accumulate_t accumulate, int cublas, int ceiling)
{
    const char *automatic = accumulate == HGEMM_ACCUMULATE_F16 ? "auto" : "auto_f32";
    for (int kernel = HGEMM_KERNEL_AUTO; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t info = {.name = automatic, .accumulate = accumulate};
        hgemm_desc_t desc = plan(&g->shape, accumulate, kernel);
        int runs;
        if (kernel != HGEMM_KERNEL_AUTO)
            hgemm_get_kernel_info(kernel, &info);
        if (info.accumulate != accumulate || !wanted(info.name) ||
            hgemm_select(&desc, &runs) != HGEMM_STATUS_SUCCESS)
            continue;
        contestant_t *c = add(g, KERNEL, accumulate, kernel, info.name);
        c->result.cublas = cublas;
        c->result.ceiling = ceiling;
        if (kernel == HGEMM_KERNEL_AUTO &&
            hgemm_get_kernel_info(chosen(&desc), &info) == HGEMM_STATUS_SUCCESS)
            c->result.note = info.name;
        gbench_register(&c->result);
    }
}

/* Baselines come first, so that they are known when a kernel is compared with them. */
static void add_contestants(group_t *g)
{
    int cublas[2] = {-1, -1}, ceiling[2] = {-1, -1}; /* by hgemm_accumulate_t */
    g->contestants = calloc((size_t)hgemm_kernel_count() + 6, sizeof *g->contestants);
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.peers && (bench.options.accumulate & 1U << acc)) {
            contestant_t *c = add(g, CEILING, (hgemm_accumulate_t)acc, 0,
                                  acc == HGEMM_ACCUMULATE_F16 ? "ceiling_f16" : "ceiling_f32");
            ceiling[acc] = gbench_register(&c->result);
        }
    if (bench.cublas) {
        cublas[HGEMM_ACCUMULATE_F16] =
            gbench_register(&add(g, CUBLAS_HGEMM, HGEMM_ACCUMULATE_F16, 0, "cublasHgemm")->result);
        cublas[HGEMM_ACCUMULATE_F32] = gbench_register(
            &add(g, CUBLAS_GEMM_EX, HGEMM_ACCUMULATE_F32, 0, "cublasGemmEx_f32")->result);
    }
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.accumulate & 1U << acc)
            add_kernels(g, (hgemm_accumulate_t)acc, cublas[acc], ceiling[acc]);
}

/* Returns how many contestants there are in all. */
static int make_groups(void)
{
    const options_t *o = &bench.options;
    int contestants = 0;
    groups = calloc((size_t)o->shape_count, sizeof *groups);
    group_count = o->shape_count;
    for (int i = 0; i < group_count; i++) {
        group_t *g = &groups[i];
        g->shape = o->shapes[i];
        g->number = i + 1;
        snprintf(g->name, sizeof g->name, "%lldx%lldx%lld %c%c %s", (long long)g->shape.m,
                 (long long)g->shape.n, (long long)g->shape.k, g->shape.op_a ? 't' : 'n',
                 g->shape.op_b ? 't' : 'n', o->layout == HGEMM_ROW_MAJOR ? "row" : "col");
        add_contestants(g);
        contestants += g->count;
    }
    return contestants;
}

/* ---- the machine -------------------------------------------------------------------------------
 */

/* Loads the ceiling's code, gives it random operands and learns how long an iteration takes. */
static hgemm_status_t open_ceilings(void)
{
    device_t *device = bench.handle->device;
    const device_ops_t *ops = device->ops;
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    problem_t operands;
    float milliseconds = 0;
    for (int i = 0; i < bench_image_count && status == HGEMM_STATUS_SUCCESS; i++) {
        int acc = strcmp(bench_images[i].symbol, "ceiling_f16") == 0 ? HGEMM_ACCUMULATE_F16
                                                                     : HGEMM_ACCUMULATE_F32;
        status = ops->load(device, &bench_images[i], 0, &bench.ceilings[acc]);
    }
    if (!problem_create(&operands, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 2, CEILING_WORDS, 1, 0))
        return HGEMM_STATUS_OUT_OF_MEMORY;
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_malloc(bench.handle, &bench.ceiling_in, CEILING_WORDS * sizeof(uint32_t));
    if (status == HGEMM_STATUS_SUCCESS)
        status =
            hgemm_malloc(bench.handle, &bench.ceiling_out,
                         (size_t)bench.info.multiprocessors * CEILING_THREADS * sizeof(uint32_t));
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_upload(bench.handle, bench.ceiling_in, operands.c,
                              CEILING_WORDS * sizeof(uint32_t));
    problem_destroy(&operands);

    bench.delay_iterations = 100;
    for (int turn = 0; turn < 3 && status == HGEMM_STATUS_SUCCESS;
         turn++) { /* the last one is warm */
        status = ops->event_record(device, bench.events[0], NULL);
        if (status == HGEMM_STATUS_SUCCESS)
            status = launch_ceiling(HGEMM_ACCUMULATE_F16, 1, (int)bench.delay_iterations);
        if (status == HGEMM_STATUS_SUCCESS)
            status = ops->event_record(device, bench.events[1], NULL);
        if (status == HGEMM_STATUS_SUCCESS)
            status = ops->event_elapsed(device, bench.events[0], bench.events[1], &milliseconds);
    }
    if (status == HGEMM_STATUS_SUCCESS)
        bench.delay_iterations *= DELAY_SECONDS / ((double)milliseconds * 1e-3);
    return status;
}

/* The ordinal of "cuda:N", else of the first GPU. */
static int ordinal(void)
{
    const char *name = bench.options.device && *bench.options.device ? bench.options.device
                                                                     : getenv("HGEMM_DEVICE");
    return name && strncmp(name, "cuda:", 5) == 0 ? atoi(name + 5) : 0;
}

static hgemm_status_t open_device(void)
{
    hgemm_status_t status = hgemm_create(&bench.handle, bench.options.device);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    device_t *device = bench.handle->device;
    status = hgemm_get_device_info(bench.handle, &bench.info);
    for (int i = 0; i < 2 && status == HGEMM_STATUS_SUCCESS; i++)
        status = device->ops->event_create(device, &bench.events[i]);
    if (status == HGEMM_STATUS_SUCCESS)
        status = open_ceilings();
    if (status == HGEMM_STATUS_SUCCESS && bench.options.peers) {
        char why[VERIFY_WORDS];
        bench.cublas = cublas_open(ordinal(), why);
        if (!bench.cublas)
            fprintf(stderr, "bench_hgemm: no comparison with cuBLAS: %s\n", why);
    }
    clocks_open(ordinal());
    return status;
}

static void close_device(void)
{
    device_t *device = bench.handle->device;
    cublas_close(bench.cublas);
    for (int i = 0; i < 2; i++)
        device->ops->event_destroy(device, bench.events[i]);
    hgemm_free(bench.handle, bench.ceiling_in);
    hgemm_free(bench.handle, bench.ceiling_out);
    hgemm_destroy(bench.handle);
}

__attribute__((format(printf, 2, 3))) static void context(const char *key, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gbench_context(key, text);
}

/* All that the figures depend on. */
static void describe_run(void)
{
    const options_t *o = &bench.options;
    const hgemm_device_info_t *i = &bench.info;
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    context("gpu", "%s", i->name);
    context("device",
            "compute capability %d.%d, %d multiprocessors, %zu MiB of memory, %zu KiB of L2 cache",
            i->compute_major, i->compute_minor, i->multiprocessors, i->memory_bytes >> 20,
            i->l2_bytes >> 10);
    context("clocks", "%.0f MHz at most, power limit %.0f W", clocks_max_sm_mhz(),
            clocks_power_limit_w());
    context("driver", "%s, CUDA %d.%d", clocks_driver(), i->driver_version / 1000,
            i->driver_version % 1000 / 10);
    if (bench.cublas) {
        int version = cublas_version(bench.cublas);
        context("cublas", "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    }
    context("hgemm", "%d.%d.%d, commit %s, nvcc %s", HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR,
            HGEMM_VERSION_PATCH, HGEMM_COMMIT, HGEMM_NVCC_VERSION);
    context("date", "%s", date);
    context("witness", "measured");
    context("mode", "%s", o->continuous ? "continuous" : "burst");
    context("alpha", "%g", (double)o->alpha);
    context("beta", "%g", (double)o->beta);
    context("repetitions", "%d", o->repetitions);
}

/* ---- without a GPU ------------------------------------------------------------------------------
 */

/* What is known without running anything. */
static void print_facts(void)
{
    printf("%-16s %-9s %-7s %6s %7s %5s %7s %9s %6s  %s\n", "kernel", "block", "warp", "stages",
           "threads", "regs", "shared", "per SM", "sums", "operations per byte: global, shared");
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t i;
        char block[32], warp[32];
        hgemm_get_kernel_info(kernel, &i);
        snprintf(block, sizeof block, "%dx%dx%d", i.block_m, i.block_n, i.block_k);
        snprintf(warp, sizeof warp, "%dx%d", i.warp_m, i.warp_n);
        /* A step of k brings block_m + block_n halves for 2 * block_m * block_n operations. */
        printf("%-16s %-9s %-7s %6d %7d %5d %7d %9d %6s  %.1f, %.1f\n", i.name, block, warp,
               i.stages, i.threads, i.registers, i.shared_bytes, kernel_table[kernel].blocks,
               i.accumulate == HGEMM_ACCUMULATE_F16 ? "f16" : "f32",
               (double)i.block_m * i.block_n / (i.block_m + i.block_n),
               (double)i.warp_m * i.warp_n / (i.warp_m + i.warp_n));
    }
    printf("\n%-26s %-16s %8s %10s  %s\n", "problem on a T4", "would run", "blocks", "waves",
           "operations per byte of A, B, C and D");
    for (int i = 0; i < bench.options.shape_count; i++) {
        const shape_t *s = &bench.options.shapes[i];
        hgemm_accumulate_t accumulate = bench.options.accumulate & 1U << HGEMM_ACCUMULATE_F16
                                            ? HGEMM_ACCUMULATE_F16
                                            : HGEMM_ACCUMULATE_F32;
        hgemm_desc_t desc = plan(s, accumulate, HGEMM_KERNEL_AUTO);
        hgemm_kernel_info_t info;
        char name[64];
        int kernel;
        snprintf(name, sizeof name, "%lldx%lldx%lld %c%c", (long long)s->m, (long long)s->n,
                 (long long)s->k, s->op_a ? 't' : 'n', s->op_b ? 't' : 'n');
        if (hgemm_select(&desc, &kernel) != HGEMM_STATUS_SUCCESS ||
            hgemm_get_kernel_info(kernel, &info) != HGEMM_STATUS_SUCCESS)
            continue;
        int row = bench.options.layout == HGEMM_ROW_MAJOR;
        int64_t tiles = tile_count(&info, row ? s->m : s->n, row ? s->n : s->m);
        double m = (double)s->m, n = (double)s->n, k = (double)s->k;
        printf("%-26s %-16s %8lld %10.2f  %.0f\n", name, info.name, (long long)tiles,
               (double)tiles / (T4_MULTIPROCESSORS * kernel_table[kernel].blocks),
               2 * m * n * k / (2 * (m * k + k * n + (bench.options.beta != 0 ? 2 : 1) * m * n)));
    }
}

int main(int argc, char **argv)
{
    options_parse(&bench.options, argc, argv);
    hgemm_status_t status = open_device();
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE) {
        printf("No GPU: %s\nNothing is timed. What is known without one:\n\n",
               hgemm_status_string(status));
        print_facts();
        return 0;
    }
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "bench_hgemm: %s %s\n", hgemm_status_string(status),
                hgemm_error_detail(bench.handle));
        return 1;
    }
    describe_run();
    if (make_groups() == 0) {
        fprintf(stderr, "bench_hgemm: no kernel of that name covers these problems\n");
        close_device();
        return 2;
    }
    int failures = gbench_run(bench.options.format, bench.options.out);
    if (failures < 0)
        fprintf(stderr, "bench_hgemm: cannot write %s\n", bench.options.out);
    else if (failures)
        fprintf(stderr, "bench_hgemm: %d results did not count\n", failures);
    close_device();
    return failures != 0;
}
