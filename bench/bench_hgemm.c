/* SPDX-License-Identifier: MIT */
/*
 * Times the kernels against cuBLAS and against the tensor cores' ceiling; without a GPU, tells what
 * is known without one. Here is what the results depend on; who takes part is in contestants.c, how it is measured in
 * timing.c.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"
#include "contestants.h"
#ifdef HGEMM_EMULATOR
#include "emulated.h"
#endif
#include "facts.h"
#include "published.h"

static group_t *groups;
static int group_count;

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

/* Exits with 2 where the timing model has no such constant. */
static void set_constants(void)
{
    char list[512];
    snprintf(list, sizeof list, "%s", bench.options.clock);
    for (char *rest, *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char name[32] = "";
        double value;
        int end = 0;
        if (sscanf(item, "%31[a-z_0-9]=%lf%n", name, &value, &end) != 2 || item[end] || !modelled() ||
            !internals_set_clock(bench.handle, name, value)) {
            fprintf(stderr,
                    "bench_hgemm: --clock is for t4emu:time, which has no such constant, or no value for it: %s\n",
                    item);
            exit(2);
        }
    }
}

static hgemm_status_t open_device(void)
{
    hgemm_status_t status = hgemm_create(&bench.handle, bench.options.device);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    launched_open(bench.handle);
    status = hgemm_get_device_info(bench.handle, &bench.info);
    if (!bench.options.repetitions)
        bench.options.repetitions = modelled() ? 3 : 21;
    if (status == HGEMM_STATUS_SUCCESS && bench.options.clock)
        set_constants();
    if (status == HGEMM_STATUS_SUCCESS && bench.options.first && !modelled()) {
        fprintf(stderr, "bench_hgemm: --mode first is for t4emu:time, not for %s\n", bench.info.name);
        exit(2);
    }
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
    if (typed() &&
        (bench.options.fill.is_packed || bench.options.fill.type != HGEMM_TYPE_F32)) /* it has none for them */
        bench.options.peers &= ~(unsigned)PEER_CUTLASS;
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

/* The line of a run's context that says on which device it was. */
static const char device_line[] =
    "compute capability %d.%d, %d multiprocessors, %zu MiB of memory, %zu KiB of L2 cache";

/* Exits with 2 where no run says so of its device. */
static int run_choices(void)
{
    hgemm_device_info_t *const i = &bench.info;
    char again[256];
    if (sscanf(bench.options.choices, device_line, &i->compute_major, &i->compute_minor, &i->multiprocessors,
               &i->memory_bytes, &i->l2_bytes) == 5)
        snprintf(again, sizeof again, device_line, i->compute_major, i->compute_minor, i->multiprocessors,
                 i->memory_bytes, i->l2_bytes);
    else
        *again = '\0';
    if (strcmp(again, bench.options.choices) != 0 || i->multiprocessors < 1 || bench.options.plans) {
        fprintf(stderr,
                "bench_hgemm: --choices takes what results say of their device, and no --plans, which are of the GPU "
                "that is there: %s\n",
                bench.options.choices);
        return 2;
    }
    i->memory_bytes <<= 20, i->l2_bytes <<= 10;
    bench.options.repetitions = 1;
    make_groups();
    print_choices(groups, group_count);
    return 0;
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
    context("device", device_line, i->compute_major, i->compute_minor, i->multiprocessors, i->memory_bytes >> 20,
            i->l2_bytes >> 10);
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
    if (modelled()) {
        context("published", "%s", published_source);
        context("model",
                "calibrated by twelve published times, from which \"events us\" differs by 3.5%% on average, 12%% at "
                "most; not yet judged on times that were kept back (docs/emulator.md)");
    }
    if (o->clock)
        context("clock", "%s", o->clock);
    context("mode", "%s", o->continuous ? "continuous" : o->first ? "first" : "burst");
    if (typed())
        context("operands", "%s", o->operands);
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
    if (bench.options.choices)
        return run_choices();
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
