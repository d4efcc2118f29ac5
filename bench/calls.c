/* SPDX-License-Identifier: MIT */
/* What is timed, one call of it: a contestant's, the ceiling's and the driver's copy. timing.c says when. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls.h"

enum {
    CEILING_THREADS = 256,
    CEILING_WORDS = 48 * CEILING_THREADS, /* operands of ceiling_*, see ptx/ceiling.cu */
    MMA_OPERATIONS = 16 * 8 * 8 * 2,
    COPY_PIECE = 1 << 18 /* halves */
};
static const double DELAY_SECONDS = 250e-6; /* time to enqueue, cuBLAS's choosing included */
static const size_t COPY_L2S = 8;           /* what the driver's copy reads, over the size of the L2 cache */
static const size_t UNKNOWN_L2 = 4 << 20;   /* bytes, where the device does not tell */

int fails(contestant_t *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->failure, sizeof c->failure, format, arguments);
    va_end(arguments);
    c->result.failure = c->failure;
    return 0;
}

int succeeds(contestant_t *c, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return 1;
    const char *detail = hgemm_error_detail(bench.handle);
    return fails(c, "%s %s", hgemm_status_name(status), *detail ? detail : hgemm_status_string(status));
}

/* ---- the ceiling --------------------------------------------------------------------------- */

typedef struct ceiling_args_t {
    const void *in;
    void *out;
    int iterations;
} ceiling_args_t;

static hgemm_status_t launch_ceiling(hgemm_accumulate_t accumulate, int blocks, int iterations)
{
    ceiling_args_t args = {bench.ceiling_in, bench.ceiling_out, iterations};
    return internals_launch(bench.handle, bench.ceilings[accumulate], blocks, CEILING_THREADS, &args, sizeof args);
}

int enqueue_delay(contestant_t *c)
{
    return succeeds(c, launch_ceiling(HGEMM_ACCUMULATE_F16, 1, (int)bench.delay_iterations));
}

double ceiling_operations(hgemm_accumulate_t accumulate)
{
    int mma = 4 * 8 * (accumulate == HGEMM_ACCUMULATE_F16 ? 8 : 4);
    return (double)mma * MMA_OPERATIONS * (CEILING_THREADS / 32) * bench.info.multiprocessors;
}

/* ---- one call of a contestant --------------------------------------------------------------- */

hgemm_type_t form_type(form_t form)
{
    return form == AS_ASKED ? bench.options.fill.type : HGEMM_TYPE_F16;
}

int form_is_packed(form_t form)
{
    return form == AS_ASKED && bench.options.fill.is_packed;
}

size_t element_bytes(form_t form)
{
    return fill_element_bytes(form_type(form));
}

size_t bytes_of_b(const shape_t *s, form_t form)
{
    const hgemm_weights_t weights = fill_described(&bench.options.fill, s->n, s->k, 0);
    size_t bytes = (size_t)(s->k * s->n) * element_bytes(form);
    if (form_is_packed(form) && hgemm_weights_bytes(&weights, &bytes) != HGEMM_STATUS_SUCCESS)
        bytes = 0; /* its calls say why */
    return bytes;
}

/* The contestant's call, without pointers. */
static hgemm_desc_t describe_call(const contestant_t *c, const problem_t *p, float alpha, float beta)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = p->layout;
    desc.op_a = p->op_a, desc.op_b = p->op_b;
    desc.type_a = desc.type_b = desc.type_c = desc.type_d = desc.type_bias = form_type(c->form);
    desc.accumulate = c->accumulate;
    desc.kernel = c->kernel;
    desc.m = p->m, desc.n = p->n, desc.k = p->k, desc.batch = p->batch;
    desc.alpha = alpha, desc.beta = beta;
    desc.activation = c->epilogue.activation;
    desc.bias_mode = HGEMM_BIAS_PER_COLUMN;
    desc.lda = p->lda, desc.ldb = p->ldb, desc.ldc = desc.ldd = p->ldc;
    desc.stride_a = p->size_a, desc.stride_b = p->size_b, desc.stride_c = desc.stride_d = p->size_c;
    desc.accuracy = c->accuracy;
    if (desc.type_a == HGEMM_TYPE_BF16) {
        desc.scale_a = c->scales == SCALES_GIVEN ? 1 : 0;
        desc.scale_b = c->scales == SCALES_FOUND ? 0 : 1;
    }
    if (form_is_packed(c->form)) {
        bench.weights = fill_described(&bench.options.fill, p->n, p->k, p->exact);
        desc.weights = &bench.weights;
        desc.stride_b = (int64_t)bytes_of_b(&(shape_t){.n = p->n, .k = p->k}, c->form);
    }
    if (p->is_grouped)
        desc.batch = p->matrices, desc.batch_mode = HGEMM_BATCH_GROUPED, desc.group_ends = bench.ends;
    return desc;
}

hgemm_desc_t plan(const shape_t *s, const contestant_t *c)
{
    problem_t p = problem_of(bench.options.layout, s);
    return describe_call(c, &p, bench.options.alpha, bench.options.beta);
}

/* A call, or of experts one for each that has rows. 1 on success. */
static int multiply_by_cublas(const problem_t *p, const hgemm_desc_t *call, int tf32)
{
    const size_t element = fill_element_bytes(call->type_a);
    if (!p->is_grouped)
        return cublas_multiply_by(bench.cublas, call, tf32) == 0;
    for (int64_t i = 0, first = 0; i < p->matrices; first = p->ends[i++]) {
        hgemm_desc_t of_one = *call;
        of_one.m = p->ends[i] - first, of_one.batch = 1;
        of_one.a = (const char *)call->a + (size_t)(first * p->lda) * element;
        of_one.b = (const char *)call->b + (size_t)(i * p->size_b) * element;
        of_one.d = (char *)call->d + (size_t)(first * p->ldc) * element;
        if (of_one.m && cublas_multiply_by(bench.cublas, &of_one, tf32) != 0)
            return 0;
    }
    return 1;
}

static int enqueue_call(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha, float beta)
{
    const struct operands_t *from = &set->as[c->form];
    hgemm_desc_t desc;
    peers_call_t call;
    switch (c->kind) {
    case CEILING:
        return succeeds(c, launch_ceiling(c->accumulate, bench.info.multiprocessors,
                                          (int)(c->result.operations / ceiling_operations(c->accumulate) + 0.5)));
    case COPY:
        return bench.copy((uint64_t)(uintptr_t)bench.copied + copy_bytes(), (uint64_t)(uintptr_t)bench.copied,
                          copy_bytes(), NULL) == 0 ||
               fails(c, "the driver did not copy");
    case CUTLASS:
        call = cutlass_call(p, c->form == AS_ASKED, c->accumulate, alpha, from->a, from->b, beta, d);
        call.slices = c->slices, call.parallel = c->parallel;
        return bench.cutlass->run(c->kernel, &call) == 0 || fails(c, "CUTLASS failed");
    case CUBLAS:
    case CUBLAS_TF32:
    case KERNEL:
    case PLAN: break;
    }
    desc = describe_call(c, p, alpha, beta);
    desc.a = from->a, desc.b = from->b, desc.c = from->c, desc.d = d;
    desc.bias = c->epilogue.has_bias ? from->b : NULL;
    if (c->kind == CUBLAS || c->kind == CUBLAS_TF32)
        return multiply_by_cublas(p, &desc, c->kind == CUBLAS_TF32) || fails(c, "%s failed", c->name);
    if (c->kind == PLAN)
        return succeeds(c, internals_run_plan(bench.handle, c->plan, &desc));
    return succeeds(c, hgemm_run_desc(bench.handle, &desc));
}

int enqueue(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha, float beta)
{
    launched_into(c->images);
    const int is_enqueued = enqueue_call(c, p, set, d, alpha, beta);
    launched_into(NULL);
    return is_enqueued;
}

/* ---- what is opened before --------------------------------------------------------------------- */

size_t l2_bytes(void)
{
    return bench.info.l2_bytes ? bench.info.l2_bytes : UNKNOWN_L2;
}

size_t copy_bytes(void)
{
    return COPY_L2S * l2_bytes();
}

static uint16_t *random_halves(int64_t count)
{
    float *values = fill_matrix(count, HGEMM_TYPE_F16, 1, 0, 3);
    uint16_t *halves = values ? fill_elements(values, count, HGEMM_TYPE_F16) : NULL;
    free(values);
    return halves;
}

hgemm_status_t open_copy(int ordinal)
{
    void *memory;
    bench.copy = copy_open(ordinal);
    if (!bench.copy) {
        fprintf(stderr, "bench_hgemm: no comparison with the driver's copy: libcuda has none\n");
        return HGEMM_STATUS_SUCCESS;
    }
    uint16_t *operands = random_halves(COPY_PIECE); /* like all that is timed */
    if (!operands)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    hgemm_status_t status = hgemm_malloc(bench.handle, &memory, 2 * copy_bytes());
    if (status == HGEMM_STATUS_SUCCESS)
        bench.copied = memory;
    for (size_t at = 0, piece = COPY_PIECE * sizeof(uint16_t);
         status == HGEMM_STATUS_SUCCESS && at + piece <= copy_bytes(); at += piece)
        status = hgemm_upload(bench.handle, bench.copied + at, operands, piece);
    free(operands);
    return status;
}

hgemm_status_t open_ceilings(void)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    uint16_t *operands = random_halves(2 * CEILING_WORDS);
    double seconds = 0;
    for (int acc = 0; acc < 2 && status == HGEMM_STATUS_SUCCESS; acc++)
        status = internals_load_ceiling(bench.handle, (hgemm_accumulate_t)acc, &bench.ceilings[acc]);
    if (!operands)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_malloc(bench.handle, &bench.ceiling_in, CEILING_WORDS * sizeof(uint32_t));
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_malloc(bench.handle, &bench.ceiling_out,
                              (size_t)bench.info.multiprocessors * CEILING_THREADS * sizeof(uint32_t));
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_upload(bench.handle, bench.ceiling_in, operands, CEILING_WORDS * sizeof(uint32_t));
    free(operands);

    if (modelled())
        return status;
    bench.delay_iterations = 100;
    for (int turn = 0; turn < 3 && status == HGEMM_STATUS_SUCCESS; turn++) { /* the last one is warm */
        status = internals_event_record(bench.handle, bench.events[0]);
        if (status == HGEMM_STATUS_SUCCESS)
            status = launch_ceiling(HGEMM_ACCUMULATE_F16, 1, (int)bench.delay_iterations);
        if (status == HGEMM_STATUS_SUCCESS)
            status = internals_event_record(bench.handle, bench.events[1]);
        if (status == HGEMM_STATUS_SUCCESS)
            status = internals_event_elapsed(bench.handle, bench.events[0], bench.events[1], &seconds);
    }
    if (status == HGEMM_STATUS_SUCCESS)
        bench.delay_iterations *= DELAY_SECONDS / seconds;
    return status;
}
