/* SPDX-License-Identifier: MIT */
/*
 * Products of bfloat16 beside those of FP16 with FP32 sums, as JSON: what the conversion and the search for scales
 * cost.
 *
 * Each shape runs with A, B and D of FP16, and with A and B of BF16: where both scales are given; where B's is, as for
 * weights whose scale hgemm_find_scale has found; where the call finds both. Elements are multiples of 1/128 in [-1,
 * 1). On a GPU all ways take turns, and medians count; a model is asked once.
 */
#include "internals.h"
#include "problem/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"

static const char usage[] =
    "Usage: bench_bf16 [--device NAME] [--trans LIST] [--d f16|f32|bf16] [--ways LIST] [--plans N] SHAPE...\n"
    "\n"
    "Times products of BF16 beside those of FP16 with FP32 sums. Writes JSON: microseconds, and the time of FP16 over\n"
    "that of BF16 in percent.\n"
    "\n"
    "  SHAPE          N (a square) or MxNxK\n"
    "  --device NAME  default t4emu:time, whose times are a model's, not measured. With t4emu:time,dry large products\n"
    "                 take less long; no scale can be found there. cuda: measured\n"
    "  --trans LIST   of nn, nt, tn, tt: transposes of A and B; default nn\n"
    "  --d            type of D; default that of A and B\n"
    "  --ways LIST    of given, b_given, found: scales that are given; default all\n"
    "  --plans N      also the N plans that selection finds cheapest, at most 32, of FP16 and where both scales are\n"
    "                 given: what the choice loses to the best\n";

enum { F16, GIVEN, B_GIVEN, FOUND, WAYS };
enum { ROUNDS = 21, LAUNCHES = 20, MOST_PLANS = 32, MOST_CONTESTANTS = WAYS + 2 * MOST_PLANS };
static const char *const way_names[WAYS] = {"none", "given", "b_given", "found"};

/* A way by the plan that is chosen, or by one of those that could be. */
typedef struct contestant_t {
    int way;
    internals_plan_t *plan; /* NULL: the chosen one */
    hgemm_desc_t desc;
    double us[ROUNDS];
} contestant_t;

typedef struct bench_t {
    hgemm_handle_t handle;
    void *begin, *end; /* events */
    int is_measured, ways, plans, written;
    const char *trans, *type_d;
} bench_t;

static void want(const bench_t *bench, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return;
    fprintf(stderr, "bench_bf16: %s %s\n", hgemm_status_string(status), hgemm_error_detail(bench->handle));
    exit(1);
}

static void *matrix(const bench_t *bench, int64_t elements, hgemm_type_t type)
{
    void *device = NULL;
    uint16_t *host = malloc((size_t)elements * sizeof *host);
    if (!host)
        want(bench, HGEMM_STATUS_OUT_OF_MEMORY);
    for (int64_t i = 0; host && i < elements; i++) {
        const float x = (float)((uint32_t)i * 2654435761U >> 24) / 128 - 1;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        host[i] = type == HGEMM_TYPE_BF16 ? (uint16_t)(bits >> 16) : hgemm_half_from_float(x);
    }
    want(bench, hgemm_malloc(bench->handle, &device, (size_t)elements * sizeof *host));
    want(bench, hgemm_upload(bench->handle, device, host, (size_t)elements * sizeof *host));
    free(host);
    return device;
}

static double microseconds(const bench_t *bench, const contestant_t *c)
{
    const int launches = bench->is_measured ? LAUNCHES : 1;
    double seconds = 0;
    want(bench, internals_event_record(bench->handle, bench->begin));
    for (int i = 0; i < launches; i++)
        want(bench,
             c->plan ? internals_run_plan(bench->handle, c->plan, &c->desc) : hgemm_run_desc(bench->handle, &c->desc));
    want(bench, internals_event_record(bench->handle, bench->end));
    want(bench, internals_event_elapsed(bench->handle, bench->begin, bench->end, &seconds));
    return seconds * 1e6 / launches;
}

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static hgemm_type_t type_of_d(const bench_t *bench, hgemm_type_t common)
{
    return bench->type_d ? (hgemm_type_t)name_value(type_names, bench->type_d) : common;
}

static hgemm_desc_t product(const bench_t *bench, int way, const int64_t mnk[3])
{
    const hgemm_type_t type = way == F16 ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16;
    hgemm_desc_t d;
    hgemm_desc_init(&d);
    d.accumulate = HGEMM_ACCUMULATE_F32;
    d.type_a = d.type_b = type, d.type_d = type_of_d(bench, type);
    d.op_a = bench->trans[0] == 't' ? HGEMM_OP_T : HGEMM_OP_N;
    d.op_b = bench->trans[1] == 't' ? HGEMM_OP_T : HGEMM_OP_N;
    d.m = mnk[0], d.n = mnk[1], d.k = mnk[2];
    d.lda = d.op_a == HGEMM_OP_T ? d.m : d.k;
    d.ldb = d.op_b == HGEMM_OP_T ? d.k : d.n;
    d.ldd = d.n;
    d.scale_a = way == GIVEN ? 1 : 0;
    d.scale_b = way == GIVEN || way == B_GIVEN ? 1 : 0;
    return d;
}

static void print_result(bench_t *bench, const contestant_t *c, double us, double us_f16)
{
    const hgemm_desc_t *d = &c->desc;
    char words[INTERNALS_WORDS];
    if (c->plan)
        internals_describe_plan(c->plan, words);
    else
        want(bench, internals_describe_choice(bench->handle, d, words));
    printf("%s\n{\"problem\": \"%lldx%lldx%lld %.2s row\", \"type\": \"%s\", \"type_d\": \"%s\", ",
           bench->written++ ? "," : "", (long long)d->m, (long long)d->n, (long long)d->k, bench->trans,
           type_names[d->type_a], type_names[d->type_d]);
    printf("\"scales\": \"%s\", \"%s\": \"%s\", \"%s\": %.2f, \"percent_of_f16\": %.1f}", way_names[c->way],
           c->plan ? "candidate" : "plan", words, bench->is_measured ? "measured_us" : "modelled_us", us,
           100 * us_f16 / us);
    fflush(stdout);
}

/* Who takes part in a problem, FP16's own choice first; returns how many. */
static int contestants_of(const bench_t *bench, const int64_t mnk[3], void *const operands[4], void *d,
                          contestant_t all[MOST_CONTESTANTS])
{
    int count = 0;
    for (int way = 0; way < WAYS; way++) {
        if (!(bench->ways >> way & 1))
            continue;
        contestant_t one = {.way = way, .desc = product(bench, way, mnk)};
        internals_plan_t *plans[MOST_PLANS];
        one.desc.a = operands[way == F16 ? 0 : 2], one.desc.b = operands[way == F16 ? 1 : 3], one.desc.d = d;
        all[count++] = one;
        const int found = way > GIVEN ? 0 : internals_rank_plans(bench->handle, &one.desc, bench->plans, plans);
        for (int i = 0; i < found; i++) {
            one.plan = plans[i];
            all[count++] = one;
        }
    }
    return count;
}

static void time_shape(bench_t *bench, const int64_t mnk[3])
{
    const int rounds = bench->is_measured ? ROUNDS : 1;
    static contestant_t all[MOST_CONTESTANTS];
    void *operands[4], *d = NULL;
    for (int i = 0; i < 4; i++)
        operands[i] = matrix(bench, mnk[2] * mnk[i % 2], i < 2 ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16);
    want(bench, hgemm_malloc(bench->handle, &d, (size_t)(mnk[0] * mnk[1]) * sizeof(float)));
    const int count = contestants_of(bench, mnk, operands, d, all);
    for (int round = bench->is_measured ? -1 : 0; round < rounds; round++) /* the first one loads what it runs */
        for (int i = 0; i < count; i++)
            all[i].us[round < 0 ? 0 : round] = microseconds(bench, &all[i]);
    for (int i = 0; i < count; i++) {
        qsort(all[i].us, (size_t)rounds, sizeof all[i].us[0], ascending);
        print_result(bench, &all[i], all[i].us[rounds / 2], all[0].us[rounds / 2]);
        free(all[i].plan);
    }
    for (int i = 0; i < 4; i++)
        want(bench, hgemm_free(bench->handle, operands[i]));
    want(bench, hgemm_free(bench->handle, d));
}

static int refuse(const char *what)
{
    fprintf(stderr, "bench_bf16: %s: not understood\n%s", what, usage);
    return 2;
}

/* 1 << way of each that the list names; 0 where one is no way. */
static int ways_of(const char *list)
{
    int ways = 1 << F16;
    for (size_t length; *list; list += length + (list[length] == ',')) {
        int way = GIVEN;
        length = strcspn(list, ",");
        while (way < WAYS && (strlen(way_names[way]) != length || strncmp(way_names[way], list, length) != 0))
            way++;
        if (way == WAYS)
            return 0;
        ways |= 1 << way;
    }
    return ways;
}

static int is_list_of_transposes(const char *list)
{
    while (strspn(list, "nt") == 2 && list[2] == ',')
        list += 3;
    return strspn(list, "nt") == 2 && !list[2];
}

int main(int argc, char **argv)
{
    bench_t bench = {.ways = (1 << WAYS) - 1};
    const char *device = "t4emu:time", *transposes = "nn";
    hgemm_device_info_t info;
    int i = 1;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("%s", usage);
        return 0;
    }
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--device") == 0)
            device = value;
        else if (strcmp(argv[i], "--trans") == 0 && is_list_of_transposes(value))
            transposes = value;
        else if (strcmp(argv[i], "--d") == 0 && name_value(type_names, value) >= 0)
            bench.type_d = value;
        else if (strcmp(argv[i], "--ways") == 0 && ways_of(value))
            bench.ways = ways_of(value);
        else if (strcmp(argv[i], "--plans") == 0 && atoi(value) > 0 && atoi(value) <= MOST_PLANS)
            bench.plans = atoi(value);
        else
            return refuse(argv[i]);
    }
    for (int s = i; s < argc || i == argc; s++) { /* all shapes, before any is timed */
        long long m, n, k;
        int end = 0;
        if (s == argc)
            return refuse("no shape");
        if ((sscanf(argv[s], "%lldx%lldx%lld%n", &m, &n, &k, &end) != 3 || argv[s][end]) &&
            (sscanf(argv[s], "%lld%n", &m, &end) != 1 || argv[s][end]))
            return refuse(argv[s]);
    }
    hgemm_status_t status = hgemm_create(&bench.handle, device);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_get_device_info(bench.handle, &info);
    want(&bench, status);
    bench.is_measured = !info.is_emulated;
    want(&bench, internals_event_create(bench.handle, &bench.begin));
    want(&bench, internals_event_create(bench.handle, &bench.end));
    printf("{\n\"context\": {\n  \"gpu\": \"%s\",\n  \"hgemm\": \"%d.%d.%d, commit %s, nvcc %s\",\n  \"witness\": "
           "\"%s\"\n},\n"
           "\"results\": [",
           info.name, HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, HGEMM_COMMIT, HGEMM_NVCC_VERSION,
           bench.is_measured ? "measured" : "modelled");
    for (; i < argc; i++) {
        int64_t mnk[3];
        long long m, n, k;
        if (sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) != 3)
            m = n = k = strtoll(argv[i], NULL, 10);
        mnk[0] = m, mnk[1] = n, mnk[2] = k;
        for (bench.trans = transposes; *bench.trans; bench.trans += bench.trans[2] ? 3 : 2)
            time_shape(&bench, mnk);
    }
    printf("\n]\n}\n");
    internals_event_destroy(bench.handle, bench.begin);
    internals_event_destroy(bench.handle, bench.end);
    return hgemm_destroy(bench.handle) != HGEMM_STATUS_SUCCESS;
}
