/* SPDX-License-Identifier: MIT */
/*
 * Who takes part in a problem. Of halves: the ceilings, the driver's copy, cuBLAS, CUTLASS, hgemm's kernels, its choice
 * and its plans. Of other types and of packed weights: hgemm's kernels, choice and plans for them, what cuBLAS has for
 * the same product, and of floats CUTLASS, and hgemm's product of halves with FP32 sums.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "contestants.h"
#include "experts.h"
#include "problem/names.h"
#include "published.h"
#include "timing.h"

static void time_once(void *context)
{
    group_t *g = context;
    if (!g->measured)
        prove_group(g, time_group);
    g->measured = 1;
}

static contestant_t *add(group_t *g, kind_t kind, form_t form, hgemm_accumulate_t accumulate, int kernel,
                         const char *name)
{
    int repetitions = bench.options.repetitions;
    contestant_t *c = &g->contestants[g->count++];
    const problem_t p = problem_of(bench.options.layout, &g->shape);
    const double m = (double)p.m, n = (double)p.n, k = (double)p.k, batch = (double)p.batch;
    const double read = g->shape.top ? (double)experts_hit(&g->shape) : batch; /* matrices of B */
    double turns = bench.options.beta != 0 ? 2 : 1;
    const double element = (double)element_bytes(form), b = (double)bytes_of_b(&g->shape, form);
    *c = (contestant_t){.kind = kind, .form = form, .accumulate = accumulate, .kernel = kernel};
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
                                .bytes = batch * element * (m * k + turns * m * n) + read * b,
                                .cublas = -1,
                                .cutlass = -1,
                                .ceiling = -1,
                                .copy = -1,
                                .repetitions = repetitions,
                                .images = c->images,
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
    if (internals_describe_choice(bench.handle, &bench.info, desc, c->note) == HGEMM_STATUS_SUCCESS)
        c->result.note = c->note;
    if (internals_describe_choice(NULL, NULL, desc, c->on_t4) == HGEMM_STATUS_SUCCESS)
        c->result.on_t4 = c->on_t4;
}

/* The plans that selection's model finds cheapest. */
static void add_plans(group_t *g, form_t form, hgemm_accumulate_t accumulate)
{
    hgemm_desc_t call = plan(&g->shape, &(contestant_t){.form = form, .accumulate = accumulate});
    internals_plan_t **best = calloc((size_t)bench.options.plans + 1, sizeof *best);
    int count = best ? internals_rank_plans(bench.handle, &call, bench.options.plans, best) : 0;
    for (int i = 0; i < count; i++) {
        char name[5 + INTERNALS_WORDS] = "plan ";
        internals_describe_plan(best[i], name + 5);
        contestant_t *c = add(g, PLAN, form, accumulate, HGEMM_KERNEL_AUTO, name);
        c->plan = best[i]; /* as long as the program runs, like its contestant */
        gbench_register(&c->result);
    }
    free(best);
}

/* Automatic selection with a bias and each activation. The bias lies where an operand's matrix does, as aligned. */
static void add_epilogues(group_t *g, hgemm_accumulate_t accumulate)
{
    static const _Alignas(256) float place_of_bias[1];
    for (int i = HGEMM_ACTIVATION_NONE; hgemm_activation_name((hgemm_activation_t)i); i++) {
        char name[48];
        snprintf(name, sizeof name, "%s+bias%s%s", accumulate == HGEMM_ACCUMULATE_F16 ? "auto" : "auto_f32",
                 i == HGEMM_ACTIVATION_NONE ? "" : "+",
                 i == HGEMM_ACTIVATION_NONE ? "" : hgemm_activation_name((hgemm_activation_t)i));
        contestant_t *c = add(g, KERNEL, AS_HALVES, accumulate, HGEMM_KERNEL_AUTO, name);
        c->epilogue = (epilogue_t){.has_bias = 1, .activation = (hgemm_activation_t)i};
        hgemm_desc_t desc = plan(&g->shape, c);
        desc.bias = place_of_bias;
        note_choice(c, &desc);
        gbench_register(&c->result);
    }
}

/* Numbers of the cases that others are compared with, -1: none. */
typedef struct baselines_t {
    int cublas, cutlass, ceiling, copy;
} baselines_t;

/* Up the ladder the kernels that take the form with those sums, then hgemm's own choice. */
static void add_kernels(group_t *g, form_t form, hgemm_accumulate_t accumulate, const char *automatic,
                        const baselines_t *beside)
{
    for (int i = 1; i <= hgemm_kernel_count() + 1; i++) {
        int kernel = i <= hgemm_kernel_count() ? i : HGEMM_KERNEL_AUTO;
        hgemm_kernel_info_t info = {.name = automatic, .accumulate = accumulate};
        hgemm_desc_t desc = plan(&g->shape, &(contestant_t){.form = form, .accumulate = accumulate, .kernel = kernel});
        int runs;
        if (kernel != HGEMM_KERNEL_AUTO)
            hgemm_get_kernel_info(kernel, &info);
        const hgemm_accumulate_t shown_with = internals_is_plain(kernel) ? HGEMM_ACCUMULATE_F16 : info.accumulate;
        if (shown_with != accumulate || !wanted(info.name))
            continue;
        const hgemm_status_t status = hgemm_select(&desc, &runs);
        if (status != HGEMM_STATUS_SUCCESS && kernel == HGEMM_KERNEL_AUTO) /* a kernel covers what it covers */
            fprintf(stderr, "bench_hgemm: %s: %s does not take part: %s %s\n", g->name, info.name,
                    hgemm_status_string(status), hgemm_error_detail(NULL));
        if (status != HGEMM_STATUS_SUCCESS)
            continue;
        contestant_t *c = add(g, KERNEL, form, accumulate, kernel, info.name);
        c->result.cublas = beside->cublas;
        c->result.cutlass = beside->cutlass;
        c->result.ceiling = beside->ceiling;
        c->result.copy = beside->copy;
        if (modelled() && accumulate == HGEMM_ACCUMULATE_F16)
            c->result.published = 1e12 * published_cublas(bench.options.layout, &g->shape);
        if (kernel == HGEMM_KERNEL_AUTO)
            note_choice(c, &desc);
        gbench_register(&c->result);
    }
}

static int add_ceiling(group_t *g, hgemm_accumulate_t accumulate)
{
    if (!bench.ceilings[accumulate] || !(bench.options.peers & PEER_CEILING))
        return -1;
    const char *name = accumulate == HGEMM_ACCUMULATE_F16 ? "ceiling_f16" : "ceiling_f32";
    return gbench_register(&add(g, CEILING, AS_HALVES, accumulate, 0, name)->result);
}

static int add_copy(group_t *g)
{
    return bench.copy ? gbench_register(&add(g, COPY, AS_HALVES, HGEMM_ACCUMULATE_F16, 0, "copy")->result) : -1;
}

/* The number of the case that it becomes; its note names the function that is called for a batch. */
static int add_cublas(group_t *g, kind_t kind, form_t form, hgemm_accumulate_t accumulate, const char *name,
                      const char *batched)
{
    if (!bench.cublas)
        return -1;
    contestant_t *c = add(g, kind, form, accumulate, 0, name);
    if (g->shape.batch > 1)
        c->result.note = g->shape.top ? "a call for each expert" : batched;
    return gbench_register(&c->result);
}

static int add_cutlass(group_t *g, form_t form, hgemm_accumulate_t accumulate)
{
    if (!bench.cutlass || g->shape.top) /* of which no grouped kernel is built */
        return -1;
    /* Two take part; `crown` lets the first, which is shown, have the better's result. */
    const char *name = form == AS_ASKED                     ? "cutlass_of_f32"
                       : accumulate == HGEMM_ACCUMULATE_F16 ? "cutlass"
                                                            : "cutlass_f32";
    const int number = gbench_register(&add(g, CUTLASS, form, accumulate, 0, name)->result);
    add(g, CUTLASS, form, accumulate, 0, name);
    return number;
}

static void add_halves(group_t *g)
{
    baselines_t beside[2] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}}; /* by accumulator */
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.accumulate & 1U << acc)
            beside[acc].ceiling = add_ceiling(g, (hgemm_accumulate_t)acc);
    beside[0].copy = beside[1].copy = add_copy(g);
    beside[HGEMM_ACCUMULATE_F16].cublas =
        add_cublas(g, CUBLAS, AS_HALVES, HGEMM_ACCUMULATE_F16, "cublasHgemm", "cublasHgemmStridedBatched");
    beside[HGEMM_ACCUMULATE_F32].cublas =
        add_cublas(g, CUBLAS, AS_HALVES, HGEMM_ACCUMULATE_F32, "cublasGemmEx_f32", "cublasGemmStridedBatchedEx");
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.accumulate & 1U << acc)
            beside[acc].cutlass = add_cutlass(g, AS_HALVES, (hgemm_accumulate_t)acc);
    for (int acc = 0; acc < 2; acc++)
        if (bench.options.accumulate & 1U << acc) {
            add_kernels(g, AS_HALVES, (hgemm_accumulate_t)acc, acc == HGEMM_ACCUMULATE_F16 ? "auto" : "auto_f32",
                        &beside[acc]);
            if (bench.options.epilogues && !emulated())
                add_epilogues(g, (hgemm_accumulate_t)acc);
            if (bench.options.plans && !emulated())
                add_plans(g, AS_HALVES, (hgemm_accumulate_t)acc);
        }
}

/* hgemm's choice for a call that differs from the usual one in what `like` says. */
static void add_choice(group_t *g, const char *name, const contestant_t *like, const baselines_t *beside)
{
    if (!wanted(name))
        return;
    contestant_t *c = add(g, KERNEL, like->form, like->accumulate, HGEMM_KERNEL_AUTO, name);
    const hgemm_desc_t desc = plan(&g->shape, like);
    c->scales = like->scales, c->accuracy = like->accuracy;
    c->result.cublas = beside->cublas, c->result.cutlass = beside->cutlass;
    c->result.ceiling = beside->ceiling, c->result.copy = beside->copy;
    note_choice(c, &desc);
    gbench_register(&c->result);
}

/* Of bfloat16 calls that find scales, which none can that computes no results; of floats less accurate ones. */
static void add_variants(group_t *g, const baselines_t *beside)
{
    static const char *const finders[SCALES] = {[SCALES_B_GIVEN] = "b_given", [SCALES_FOUND] = "found"};
    contestant_t call = {.form = AS_ASKED, .accumulate = HGEMM_ACCUMULATE_F32};
    char name[48];
    for (int scales = SCALES_B_GIVEN;
         bench.options.fill.type == HGEMM_TYPE_BF16 && scales < SCALES && !is_dry() && !g->shape.top; scales++) {
        call.scales = (scales_t)scales;
        snprintf(name, sizeof name, "auto_of_bf16_%s", finders[scales]);
        add_choice(g, name, &call, beside);
    }
    for (int accuracy = HGEMM_ACCURACY_16_BITS; bench.options.fill.type == HGEMM_TYPE_F32 && accuracy_names[accuracy];
         accuracy++) {
        call.accuracy = (hgemm_accuracy_t)accuracy;
        snprintf(name, sizeof name, "auto_of_f32_%s", accuracy_names[accuracy]);
        add_choice(g, name, &call, beside);
    }
}

static void add_typed(group_t *g)
{
    const hgemm_accumulate_t sums = HGEMM_ACCUMULATE_F32;
    const hgemm_type_t type = bench.options.fill.type;
    const int is_packed = bench.options.fill.is_packed;
    char automatic[80];
    baselines_t beside = {-1, -1, add_ceiling(g, sums), add_copy(g)}, halves = beside;
    halves.cublas = add_cublas(g, CUBLAS, AS_HALVES, sums, "cublasGemmEx_f32", "cublasGemmStridedBatchedEx");
    beside.cublas = halves.cublas;
    if (!is_packed && type == HGEMM_TYPE_F32) {
        beside.cublas = add_cublas(g, CUBLAS, AS_ASKED, sums, "cublasSgemm", "cublasSgemmStridedBatched");
        if (bench.info.compute_major >= 8)
            add_cublas(g, CUBLAS_TF32, AS_ASKED, sums, "cublasGemmEx_tf32", "cublasGemmStridedBatchedEx");
        beside.cutlass = add_cutlass(g, AS_ASKED, sums);
    } else if (!is_packed) {
        beside.cublas = add_cublas(g, CUBLAS, AS_ASKED, sums, "cublasGemmEx_bf16", "cublasGemmStridedBatchedEx");
    }
    add_choice(g, "auto_f32", &(contestant_t){.form = AS_HALVES, .accumulate = sums}, &halves);
    snprintf(automatic, sizeof automatic, "auto_of_%s", bench.options.operands);
    add_kernels(g, AS_ASKED, sums, automatic, &beside);
    if (!is_packed)
        add_variants(g, &beside);
    if (bench.options.plans && !emulated())
        add_plans(g, AS_ASKED, sums);
}

void add_contestants(group_t *g)
{
    g->contestants = calloc((size_t)(hgemm_kernel_count() + 20 + 2 * bench.options.plans), sizeof *g->contestants);
    if (typed())
        add_typed(g);
    else
        add_halves(g);
}
