/* SPDX-License-Identifier: MIT */
/*
 * Products by packed weights beside those of FP16 weights with FP32 sums, as JSON. On a GPU both take turns, and
 * medians count; a model is asked once. Codes are random, scales 1/64.
 */
#include "internals.h"
#include "problem/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"

static const char usage[] =
    "Usage: bench_weights [--device NAME] [--weights CODES[:GROUP[:ZEROS]]] [--a f16|bf16] [--plans N] SHAPE...\n"
    "\n"
    "Times products by packed weights, and by FP16 ones. Writes JSON: microseconds, and gigabytes of packed weights "
    "read in\n"
    "a second.\n"
    "\n"
    "  SHAPE          MxNxK\n"
    "  --device NAME  default t4emu:time,dry, whose times are a model's, not measured. cuda: measured\n"
    "  --weights      int4, uint4, int8, uint8, table16 or e4m3; k's that share a scale, 0: all of a row; none, code "
    "or\n"
    "                 offset. Default int4:128:none\n"
    "  --a            type of A; the scale of bfloat16 is given. Default f16\n"
    "  --plans N      also the N plans that selection finds cheapest, at most 32\n";

enum { ROUNDS = 21, LAUNCHES = 20, MOST_PLANS = 32, MOST_CONTESTANTS = 2 + MOST_PLANS };

/* Packed weights or FP16 ones, by the plan that is chosen, or by one of those that could be. */
typedef struct contestant_t {
    int is_packed;
    internals_plan_t *plan; /* NULL: the chosen one */
    hgemm_desc_t desc;
    double us[ROUNDS];
} contestant_t;

typedef struct bench_t {
    hgemm_handle_t handle;
    void *begin, *end; /* events */
    int is_measured, plans, written;
    hgemm_type_t type_a;
    hgemm_weights_t weights;
} bench_t;

static void want(const bench_t *bench, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return;
    fprintf(stderr, "bench_weights: %s %s\n", hgemm_status_string(status), hgemm_error_detail(bench->handle));
    exit(1);
}

/* Bytes at random, or the same 16 bits everywhere. */
static void *memory(const bench_t *bench, size_t bytes, int is_random, uint16_t value)
{
    void *device = NULL;
    uint16_t *host = malloc(bytes + 2);
    if (!host)
        want(bench, HGEMM_STATUS_OUT_OF_MEMORY);
    for (size_t i = 0; host && i <= bytes / 2; i++)
        host[i] = is_random ? (uint16_t)((uint32_t)i * 2654435761U >> 13) : value;
    want(bench, hgemm_malloc(bench->handle, &device, bytes + 2));
    want(bench, hgemm_upload(bench->handle, device, host, bytes + 2));
    free(host);
    return device;
}

/* Random weights, packed on the host. */
static void *packed_weights(const bench_t *bench, size_t *bytes)
{
    const hgemm_weights_t *w = &bench->weights;
    const size_t count = (size_t)(w->n * w->k);
    want(bench, hgemm_weights_bytes(w, bytes));
    uint8_t *const codes = malloc(count), *const packed = malloc(*bytes), *const zeros = calloc(count, 2);
    uint16_t *const scales = malloc(count * 2);
    void *device = NULL;
    if (!codes || !packed || !zeros || !scales)
        want(bench, HGEMM_STATUS_OUT_OF_MEMORY);
    for (size_t i = 0; i < count; i++)
        codes[i] = (uint8_t)((uint32_t)i * 2654435761U >> 24) & 0x77, scales[i] = 0x2400;
    want(bench, hgemm_pack_weights(NULL, w, codes, scales, zeros, packed));
    want(bench, hgemm_malloc(bench->handle, &device, *bytes));
    want(bench, hgemm_upload(bench->handle, device, packed, *bytes));
    free(codes), free(packed), free(zeros), free(scales);
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

static void print_result(bench_t *bench, const contestant_t *c, double us, size_t packed_bytes)
{
    const hgemm_desc_t *d = &c->desc;
    char words[INTERNALS_WORDS];
    if (c->plan)
        internals_describe_plan(c->plan, words);
    else
        want(bench, internals_describe_choice(bench->handle, d, words));
    printf("%s\n{\"problem\": \"%lldx%lldx%lld nt row\", \"type_a\": \"%s\", ", bench->written++ ? "," : "",
           (long long)d->m, (long long)d->n, (long long)d->k, type_names[d->type_a]);
    if (c->is_packed)
        printf("\"weights\": \"%s:%d:%s\", ", code_names[bench->weights.code], bench->weights.group,
               zero_names[bench->weights.zero]);
    else
        printf("\"weights\": \"f16\", ");
    printf("\"%s\": \"%s\", \"%s\": %.2f, \"gb_per_second\": %.1f}", c->plan ? "candidate" : "plan", words,
           bench->is_measured ? "measured_us" : "modelled_us", us,
           (c->is_packed ? (double)packed_bytes : 2 * (double)d->n * (double)d->k) * 1e-3 / us);
    fflush(stdout);
}

static void time_shape(bench_t *bench, const int64_t mnk[3])
{
    const int rounds = bench->is_measured ? ROUNDS : 1;
    static contestant_t all[MOST_CONTESTANTS];
    const size_t m = (size_t)mnk[0], n = (size_t)mnk[1], k = (size_t)mnk[2];
    size_t packed_bytes;
    internals_plan_t *plans[MOST_PLANS];
    contestant_t one = {.is_packed = 1};
    bench->weights.n = mnk[1], bench->weights.k = mnk[2];
    hgemm_desc_init(&one.desc);
    one.desc.accumulate = HGEMM_ACCUMULATE_F32;
    one.desc.op_b = HGEMM_OP_T;
    one.desc.m = mnk[0], one.desc.n = mnk[1], one.desc.k = mnk[2];
    one.desc.lda = one.desc.ldb = mnk[2], one.desc.ldd = mnk[1];
    void *const halves = memory(bench, m * k * 2, 0, 0x3800), *const bfloats = memory(bench, m * k * 2, 0, 0x3f00);
    void *const matrix = memory(bench, n * k * 2, 0, 0x3800), *const packed = packed_weights(bench, &packed_bytes);
    void *const d = memory(bench, m * n * 2, 0, 0);
    one.desc.a = bench->type_a == HGEMM_TYPE_BF16 ? bfloats : halves, one.desc.d = d;
    one.desc.type_a = one.desc.type_d = bench->type_a;
    one.desc.scale_a = 1;
    one.desc.b = packed, one.desc.weights = &bench->weights;
    int count = 0;
    all[count++] = one;
    const int found = internals_rank_plans(bench->handle, &one.desc, bench->plans, plans);
    for (int i = 0; i < found; i++) {
        one.plan = plans[i];
        all[count++] = one;
    }
    one = all[0];
    one.is_packed = 0;
    one.desc.a = halves, one.desc.b = matrix, one.desc.type_a = one.desc.type_d = HGEMM_TYPE_F16,
    one.desc.weights = NULL;
    all[count++] = one;
    for (int round = bench->is_measured ? -1 : 0; round < rounds; round++) /* the first one loads what it runs */
        for (int i = 0; i < count; i++)
            all[i].us[round < 0 ? 0 : round] = microseconds(bench, &all[i]);
    for (int i = 0; i < count; i++) {
        qsort(all[i].us, (size_t)rounds, sizeof all[i].us[0], ascending);
        print_result(bench, &all[i], all[i].us[rounds / 2], packed_bytes);
        free(all[i].plan);
    }
    void *const held[] = {halves, bfloats, matrix, packed, d};
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        want(bench, hgemm_free(bench->handle, held[i]));
}

static int refuse(const char *what)
{
    fprintf(stderr, "bench_weights: %s: not understood\n%s", what, usage);
    return 2;
}

/* CODES[:GROUP[:ZEROS]] */
static int take_weights_words(const char *text, hgemm_weights_t *weights)
{
    char code[16] = "", zero[16] = "none";
    int group = 128, end = 0;
    if (sscanf(text, "%15[a-z0-9]%n:%d%n:%15[a-z]%n", code, &end, &group, &end, zero, &end) < 1 || text[end] ||
        name_value(code_names, code) < 0 || name_value(zero_names, zero) < 0)
        return 0;
    weights->code = (hgemm_code_t)name_value(code_names, code), weights->group = group;
    weights->zero = (hgemm_zero_t)name_value(zero_names, zero);
    return 1;
}

int main(int argc, char **argv)
{
    bench_t bench = {0};
    const char *device = "t4emu:time,dry";
    hgemm_device_info_t info;
    int i = 1;
    hgemm_weights_init(&bench.weights);
    bench.weights.group = 128;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("%s", usage);
        return 0;
    }
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--device") == 0)
            device = value;
        else if (strcmp(argv[i], "--weights") == 0 && take_weights_words(value, &bench.weights))
            continue;
        else if (strcmp(argv[i], "--a") == 0 && (strcmp(value, "f16") == 0 || strcmp(value, "bf16") == 0))
            bench.type_a = (hgemm_type_t)name_value(type_names, value);
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
        if (sscanf(argv[s], "%lldx%lldx%lld%n", &m, &n, &k, &end) != 3 || argv[s][end] || m < 1 || n < 1 || k < 1)
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
        long long m, n, k;
        sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k);
        const int64_t mnk[3] = {m, n, k};
        time_shape(&bench, mnk);
    }
    printf("\n]\n}\n");
    internals_event_destroy(bench.handle, bench.begin);
    internals_event_destroy(bench.handle, bench.end);
    return hgemm_destroy(bench.handle) != HGEMM_STATUS_SUCCESS;
}
