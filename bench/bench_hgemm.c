/* SPDX-License-Identifier: MIT */
/*
 * Times the kernels against cuBLAS and against the tensor cores' ceiling; without a GPU, tells what
 * is known without one. Here is who takes part and what the results depend on; how it is measured
 * is in timing.c.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "published.h"

bench_t bench;
static group_t *groups;
static int group_count;

static int emulated(void)
{
    return strcmp(bench.info.kind, "t4emu") == 0;
}

/* The same, but its events tell what a timing model says. */
int modelled(void)
{
    return strcmp(bench.info.kind, "t4model") == 0;
}

/* ---- who takes part ---------------------------------------------------------------------- */

static void time_once(void *context)
{
    group_t *g = context;
    if (!g->measured)
        prove_group(g, time_group);
    g->measured = 1;
}

static contestant_t *add(group_t *g, kind_t kind, hgemm_accumulate_t accumulate, int kernel, const char *name)
{
    int repetitions = bench.options.repetitions;
    contestant_t *c = &g->contestants[g->count++];
    double m = (double)g->shape.m, n = (double)g->shape.n, k = (double)g->shape.k, batch = (double)g->shape.batch;
    double turns = bench.options.beta != 0 ? 2 : 1;
    *c = (contestant_t){.kind = kind, .accumulate = accumulate, .kernel = kernel};
    snprintf(c->name, sizeof c->name, "%s", name);
    c->seconds = calloc(6 * (size_t)repetitions, sizeof *c->seconds);
    c->mhz = c->seconds + repetitions;
    c->power = c->mhz + repetitions;
    c->joules = c->power + repetitions;
    c->window = c->joules + repetitions;
    c->beside = c->window + repetitions;
    c->result = (gbench_case_t){.group = g->name,
                                .name = c->name,
                                .operations = batch * 2 * m * n * k,
                                .bytes = batch * 2 * (m * k + k * n + turns * m * n),
                                .cublas = -1,
                                .cutlass = -1,
                                .ceiling = -1,
                                .copy = -1,
                                .repetitions = repetitions,
                                .measure = time_once,
                                .context = g,
                                .seconds = c->seconds,
                                .mhz = c->mhz,
                                .power = c->power,
                                .joules = c->joules,
                                .window = c->window,
                                .beside = c->beside,
                                .error = -1};
    if (kind == CEILING) { /* as many operations as the problem has, in whole iterations */
        double per_iteration = ceiling_operations(accumulate);
        c->result.operations = per_iteration * (double)(int)(c->result.operations / per_iteration + 1);
        c->result.bytes = 0;
    }
    if (kind == COPY) {
        c->result.operations = 0;
        c->result.bytes = 2 * (double)copy_bytes();
    }
    return c;
}

static int wanted(const char *name)
{
    return regexec(&bench.options.kernels, name, 0, NULL, 0) == 0;
}

/* Notes what hgemm chooses on this device and would on a T4. */
static void note_choice(contestant_t *c, const hgemm_desc_t *desc)
{
    if (internals_describe_choice(bench.handle, desc, c->note) == HGEMM_STATUS_SUCCESS)
        c->result.note = c->note;
    if (internals_describe_choice(NULL, desc, c->on_t4) == HGEMM_STATUS_SUCCESS)
        c->result.on_t4 = c->on_t4;
}

/* The plans that selection's model finds cheapest. */
static void add_plans(group_t *g, hgemm_accumulate_t accumulate)
{
    hgemm_desc_t call = plan(&g->shape, accumulate, HGEMM_KERNEL_AUTO);
    internals_plan_t **best = calloc((size_t)bench.options.plans + 1, sizeof *best);
    int count = best ? internals_rank_plans(bench.handle, &call, bench.options.plans, best) : 0;
    for (int i = 0; i < count; i++) {
        char name[5 + INTERNALS_WORDS] = "plan ";
        internals_describe_plan(best[i], name + 5);
        contestant_t *c = add(g, PLAN, accumulate, HGEMM_KERNEL_AUTO, name);
        c->plan = best[i]; /* as long as the program runs, like its contestant */
        gbench_register(&c->result);
    }
    free(best);
}

/* Automatic selection with a bias and each activation. */
static void add_epilogues(group_t *g, hgemm_accumulate_t accumulate)
{
    for (int i = HGEMM_ACTIVATION_NONE; hgemm_activation_name((hgemm_activation_t)i); i++) {
        char name[48];
        snprintf(name, sizeof name, "%s+bias%s%s", accumulate == HGEMM_ACCUMULATE_F16 ? "auto" : "auto_f32",
                 i == HGEMM_ACTIVATION_NONE ? "" : "+",
                 i == HGEMM_ACTIVATION_NONE ? "" : hgemm_activation_name((hgemm_activation_t)i));
        contestant_t *c = add(g, KERNEL, accumulate, HGEMM_KERNEL_AUTO, name);
        c->epilogue = (epilogue_t){.has_bias = 1, .activation = (hgemm_activation_t)i};
        gbench_register(&c->result);
    }
}

static void add_kernels(group_t *g, hgemm_accumulate_t accumulate, int cublas, int cutlass, int ceiling, int copy)
{
    const char *automatic = accumulate == HGEMM_ACCUMULATE_F16 ? "auto" : "auto_f32";
    for (int i = 1; i <= hgemm_kernel_count() + 1; i++) { /* up the ladder, then hgemm's own choice */
        int kernel = i <= hgemm_kernel_count() ? i : HGEMM_KERNEL_AUTO;
        hgemm_kernel_info_t info = {.name = automatic, .accumulate = accumulate};
        hgemm_desc_t desc = plan(&g->shape, accumulate, kernel);
        int runs;
        if (kernel != HGEMM_KERNEL_AUTO)
            hgemm_get_kernel_info(kernel, &info);
        const hgemm_accumulate_t shown_with = internals_is_plain(kernel) ? HGEMM_ACCUMULATE_F16 : info.accumulate;
        if (shown_with != accumulate || !wanted(info.name) || hgemm_select(&desc, &runs) != HGEMM_STATUS_SUCCESS)
            continue;
        contestant_t *c = add(g, KERNEL, accumulate, kernel, info.name);
        c->result.cublas = cublas;
        c->result.cutlass = cutlass;
        c->result.ceiling = ceiling;
        c->result.copy = copy;
        if (modelled() && accumulate == HGEMM_ACCUMULATE_F16)
            c->result.published = 1e12 * published_cublas(bench.options.layout, &g->shape);
        if (kernel == HGEMM_KERNEL_AUTO)
            note_choice(c, &desc);
        gbench_register(&c->result);
    }
}

/* Baselines come first, so that they are known when a kernel is compared with them. */
static void add_contestants(group_t *g)
{
    int cublas[2] = {-1, -1}, cutlass[2] = {-1, -1}, ceiling[2] = {-1, -1}; /* by accumulator */
    int copy = -1;
    g->contestants = calloc((size_t)(hgemm_kernel_count() + 20 + 2 * bench.options.plans), sizeof *g->contestants);
    for (int acc = 0; acc < 2; acc++)
        if (bench.ceilings[acc] && (bench.options.peers & PEER_CEILING) && (bench.options.accumulate & 1U << acc)) {
            contestant_t *c = add(g, CEILING, (hgemm_accumulate_t)acc, 0,
                                  acc == HGEMM_ACCUMULATE_F16 ? "ceiling_f16" : "ceiling_f32");
            ceiling[acc] = gbench_register(&c->result);
        }
    if (bench.copy)
        copy = gbench_register(&add(g, COPY, HGEMM_ACCUMULATE_F16, 0, "copy")->result);
    if (bench.cublas) {
        contestant_t *half = add(g, CUBLAS_HGEMM, HGEMM_ACCUMULATE_F16, 0, "cublasHgemm");
        contestant_t *single = add(g, CUBLAS_GEMM_EX, HGEMM_ACCUMULATE_F32, 0, "cublasGemmEx_f32");
        if (g->shape.batch > 1) { /* the functions that are called then */
            half->result.note = "cublasHgemmStridedBatched";
            single->result.note = "cublasGemmStridedBatchedEx";
        }
        cublas[HGEMM_ACCUMULATE_F16] = gbench_register(&half->result);
        cublas[HGEMM_ACCUMULATE_F32] = gbench_register(&single->result);
    }
    for (int acc = 0; acc < 2; acc++)
        if (bench.cutlass && (bench.options.accumulate & 1U << acc)) {
            /* Two take part; `crown` lets the first, which is shown, have the better's result. */
            const char *name = acc == HGEMM_ACCUMULATE_F16 ? "cutlass" : "cutlass_f32";
            cutlass[acc] = gbench_register(&add(g, CUTLASS, (hgemm_accumulate_t)acc, 0, name)->result);
            add(g, CUTLASS, (hgemm_accumulate_t)acc, 0, name);
        }
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.accumulate & 1U << acc) {
            add_kernels(g, (hgemm_accumulate_t)acc, cublas[acc], cutlass[acc], ceiling[acc], copy);
            if (bench.options.epilogues && !emulated())
                add_epilogues(g, (hgemm_accumulate_t)acc);
            if (bench.options.plans && !emulated())
                add_plans(g, (hgemm_accumulate_t)acc);
        }
}

static void make_groups(void)
{
    const options_t *o = &bench.options;
    int contestants = 0;
    groups = calloc((size_t)o->shape_count, sizeof *groups);
    group_count = o->shape_count;
    for (int i = 0; i < group_count; i++) {
        group_t *g = &groups[i];
        g->shape = o->shapes[i];
        g->number = i + 1;
        g->of = group_count;
        shape_name(&g->shape, g->name);
        strcat(g->name, o->layout == HGEMM_ROW_MAJOR ? " row" : " col");
        add_contestants(g);
        contestants += g->count;
    }
    if (contestants == 0) {
        fprintf(stderr, "bench_hgemm: no kernel of that name covers these problems\n");
        exit(2);
    }
}

/* ---- the machine ------------------------------------------------------------------------- */

/* The device that was asked for, "" for any. */
static const char *device_name(void)
{
    const char *name = bench.options.device && *bench.options.device ? bench.options.device : getenv("HGEMM_DEVICE");
    return name ? name : "";
}

static hgemm_status_t open_device(void)
{
    hgemm_status_t status = hgemm_create(&bench.handle, bench.options.device);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    status = hgemm_get_device_info(bench.handle, &bench.info);
    if (!bench.options.repetitions)
        bench.options.repetitions = modelled() ? 3 : 21;
    if (emulated())
        return status;
    for (int i = 0; i < 2 && status == HGEMM_STATUS_SUCCESS; i++)
        status = internals_event_create(bench.handle, &bench.events[i]);
    if (status == HGEMM_STATUS_SUCCESS)
        status = open_ceilings();
    if (modelled()) /* which knows neither cuBLAS nor copies */
        bench.options.peers &= PEER_CEILING | PEER_CUTLASS;
    char why[VERIFY_WORDS];
    if (status == HGEMM_STATUS_SUCCESS && (bench.options.peers & PEER_CUBLAS)) {
        bench.cublas = cublas_open(internals_ordinal(bench.handle), why);
        if (!bench.cublas)
            fprintf(stderr, "bench_hgemm: no comparison with cuBLAS: %s\n", why);
    }
    if (status == HGEMM_STATUS_SUCCESS && (bench.options.peers & PEER_CUTLASS)) {
        bench.cutlass = cutlass_open(internals_ordinal(bench.handle), modelled() ? bench.handle : NULL, why);
        if (!bench.cutlass)
            fprintf(stderr, "bench_hgemm: no comparison with CUTLASS: %s\n", why);
    }
    if (status == HGEMM_STATUS_SUCCESS && (bench.options.peers & PEER_COPY) && !bench.options.energy)
        status = open_copy(internals_ordinal(bench.handle));
    if (modelled())
        return status;
    clocks_open(internals_ordinal(bench.handle));
    double joules;
    if (status == HGEMM_STATUS_SUCCESS && bench.options.energy && !clocks_energy_j(&joules)) {
        fprintf(stderr, "bench_hgemm: no energy: this GPU has no counter of it that libnvidia-ml "
                        "can read\n");
        bench.options.energy = 0;
    }
    return status;
}

static void close_device(void)
{
    cublas_close(bench.cublas);
    if (bench.cutlass)
        bench.cutlass->close();
    for (int i = 0; i < 2 && bench.events[i]; i++)
        internals_event_destroy(bench.handle, bench.events[i]);
    hgemm_free(bench.handle, bench.copied);
    hgemm_free(bench.handle, bench.ceiling_in);
    hgemm_free(bench.handle, bench.ceiling_out);
    hgemm_destroy(bench.handle);
}

__attribute__((format(printf, 2, 3))) static void context(const char *key, const char *format, ...)
{
    char text[512];
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
    context("device", "compute capability %d.%d, %d multiprocessors, %zu MiB of memory, %zu KiB of L2 cache",
            i->compute_major, i->compute_minor, i->multiprocessors, i->memory_bytes >> 20, i->l2_bytes >> 10);
    if (clocks_max_sm_mhz() > 0)
        context("clocks", "%.0f MHz at most, power limit %.0f W", clocks_max_sm_mhz(), clocks_power_limit_w());
    else
        context("clocks", i->clock_khz ? "%d MHz" : "unknown", i->clock_khz / 1000);
    if (modelled())
        context("driver", "none");
    else
        context("driver", "%s, CUDA %d.%d", *clocks_driver() ? clocks_driver() : "unknown", i->driver_version / 1000,
                i->driver_version % 1000 / 10);
    if (o->energy)
        context("energy", "by the board's counter, over windows of about %g s", o->min_time);
    if (bench.cublas) {
        int version = cublas_version(bench.cublas);
        context("cublas", "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    }
    if (bench.cutlass)
        context("cutlass", "%s", bench.cutlass->about());
    if (bench.cutlass && o->cutlass_regex)
        context("cutlass_only", "%s", o->cutlass_regex);
    context("hgemm", "%s", version());
    context("date", "%s", date);
    context("witness", "%s", modelled() ? "modelled" : "measured");
    if (modelled())
        context("published", "%s", published_source);
    context("mode", "%s", o->continuous ? "continuous" : "burst");
    context("alpha", "%g", (double)o->alpha);
    context("beta", "%g", (double)o->beta);
    context("repetitions", "%d", o->repetitions);
}

static int run_timed(void)
{
    describe_run();
    make_groups();
    return gbench_run(bench.options.format, bench.options.out, modelled());
}

#ifdef HGEMM_EMULATOR
static int run_emulated(void)
{
    options_t *o = &bench.options;
    if (strcmp(o->format, "table") == 0) {
        printf("No GPU is used: nothing is timed. What is known of the kernels:\n\n");
        print_facts();
    }
    for (int i = 0; o->shapes_are_default && i < o->shape_count; i++) {
        shape_t *s = &o->shapes[i]; /* an emulator is slow: a quarter of each side will do */
        s->m /= 4, s->n /= 4, s->k /= 4;
    }
    make_groups();
    return print_emulated(groups, group_count);
}
#else /* no device is emulated */
#define run_emulated run_timed
#endif

int main(int argc, char **argv)
{
    options_parse(&bench.options, argc, argv);
    hgemm_status_t status = open_device();
    if (!*device_name() && (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE)) {
        printf("No GPU: %s\nNothing is timed. What is known without one:\n\n", hgemm_status_string(status));
        print_facts();
        return 0;
    }
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "bench_hgemm: %s %s\n", hgemm_status_string(status), hgemm_error_detail(bench.handle));
        return 1;
    }
    int failures = emulated() ? run_emulated() : run_timed();
    if (failures < 0)
        fprintf(stderr, "bench_hgemm: cannot write %s\n", bench.options.out);
    else if (failures)
        fprintf(stderr, "bench_hgemm: %d results did not count\n", failures);
    close_device();
    return failures != 0;
}
