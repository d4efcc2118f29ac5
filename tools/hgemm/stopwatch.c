/* SPDX-License-Identifier: MIT */
#include "stopwatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "problem/weights.h"

enum { MOST_COPIES = 64, MOST_LAUNCHES = 1000, SLACK = 16 /* bytes before an operand that is not aligned */ };
static const double TURN_SECONDS = 2e-3; /* of launches back to back */
static const double MOST_MEMORY = 0.25;  /* of the device's */

/* Device memory of an operand. */
typedef struct operand_space_t {
    size_t bytes, offset; /* of a copy, with what lies before it */
} operand_space_t;

struct stopwatch_t {
    hgemm_handle_t handle;
    const cublas_t *cublas; /* NULL: none */
    hgemm_desc_t problem;
    hgemm_weights_t weights; /* to which it may point */
    operand_space_t a, b;
    size_t d; /* bytes */
    unsigned char *memory;
    float *bias;
    int copies, next;
    void *events[2];
    void *proved; /* D of the first plan that was proved; NULL: none was */
    uint64_t random;
    int is_random; /* A and B of all copies are; else those of the first are integers */
    int is_modelled;
};

/* A linear congruential generator's upper bits. */
static unsigned draw(stopwatch_t *watch)
{
    watch->random = watch->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(watch->random >> 33);
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static operand_space_t space_of(hgemm_type_t type, int64_t lines, int64_t ld, int64_t batch, int64_t stride,
                                int64_t alignment)
{
    const int64_t elements = lines * ld + (batch > 1 ? (batch - 1) * stride : 0);
    return (operand_space_t){whole_lines((size_t)type_bytes(type, elements) + SLACK),
                             alignment == 16 ? 0 : (size_t)alignment};
}

static size_t bytes_of_copy(const stopwatch_t *watch)
{
    return watch->a.bytes + watch->b.bytes + whole_lines(watch->d);
}

/* The problem on copy number `copy`. */
static hgemm_desc_t problem_on(const stopwatch_t *watch, int copy)
{
    hgemm_desc_t desc = watch->problem;
    unsigned char *memory = watch->memory + (size_t)copy * bytes_of_copy(watch);
    desc.a = memory + watch->a.offset;
    desc.b = memory + watch->a.bytes + watch->b.offset;
    desc.c = desc.d = memory + watch->a.bytes + watch->b.bytes;
    if (desc.bias)
        desc.bias = watch->bias;
    return desc;
}

problem_t stopwatch_problem(const stopwatch_t *watch)
{
    return normalise(&watch->problem);
}

/* Numbers of a type in so many bytes, which begin with no whole element where an operand does not. */
static void fill_operand(stopwatch_t *watch, hgemm_type_t type, unsigned char *bytes, operand_space_t space,
                         int is_exact)
{
    static const uint16_t integers[4] = {0xbc00, 0, 0, 0x3c00};
    const size_t size = (size_t)type_bytes(type, 1);
    for (size_t at = space.offset % size; at + size <= space.bytes; at += size) {
        const unsigned bits = draw(watch);
        const uint16_t half = is_exact ? integers[bits % 4] : (uint16_t)((bits & 0x87ff) | 0x3000);
        float value = hgemm_half_to_float(half);
        if (type == HGEMM_TYPE_F32 && !is_exact)
            value *= 1 + 0x1p-11f * (float)(draw(watch) % 2048) / 2048; /* all bits that a float has */
        memcpy(bytes + at, type == HGEMM_TYPE_F32 ? (const void *)&value : &half, size);
    }
}

/* Fills the packed weights of a batch, which are the same in each. */
static hgemm_status_t pack_weights(stopwatch_t *watch, unsigned char *bytes, int is_exact)
{
    const hgemm_desc_t *p = &watch->problem;
    fill_packed_t filled;
    const hgemm_status_t status = fill_weights(p->weights, 1, is_exact, draw(watch), &filled);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    for (int64_t i = 0; i < p->batch && (i == 0 || p->stride_b != 0); i++)
        memcpy(bytes + i * p->stride_b, filled.packed, filled.bytes);
    fill_weights_free(&filled);
    return status;
}

/* Fills A and B of the first copy with -1, 0 and 1, or those of all copies with numbers from 1/8 to 1/2 of either sign.
 */
static hgemm_status_t fill(stopwatch_t *watch, int is_exact)
{
    const hgemm_desc_t *p = &watch->problem;
    const size_t bytes = watch->a.bytes + watch->b.bytes;
    unsigned char *host = calloc(bytes, 1);
    hgemm_status_t status = host ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_OUT_OF_MEMORY;
    if (host) {
        fill_operand(watch, p->type_a, host, watch->a, is_exact);
        if (p->weights)
            status = pack_weights(watch, host + watch->a.bytes, is_exact);
        else
            fill_operand(watch, p->type_b, host + watch->a.bytes, watch->b, is_exact);
    }
    for (int copy = 0; copy < (is_exact ? 1 : watch->copies) && status == HGEMM_STATUS_SUCCESS; copy++)
        status = hgemm_upload(watch->handle, watch->memory + (size_t)copy * bytes_of_copy(watch), host, bytes);
    watch->is_random = !is_exact;
    free(host);
    return status;
}

static hgemm_status_t open_memory(stopwatch_t *watch)
{
    const hgemm_device_info_t *info = &watch->handle->info;
    const double copy = (double)bytes_of_copy(watch);
    const double wanted = ceil(1 + 2 * (double)watch->handle->machine.l2_bytes / copy);
    const double room = floor(MOST_MEMORY * (double)info->memory_bytes / copy);
    float *zeros = NULL;
    void *memory;
    watch->copies = (int)fmax(1, fmin(fmin(wanted, room), MOST_COPIES));
    hgemm_status_t status = hgemm_malloc(watch->handle, &memory, (size_t)watch->copies * bytes_of_copy(watch));
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    watch->memory = memory;
    if (watch->problem.bias) {
        const size_t bytes = (size_t)watch->problem.n * sizeof *zeros;
        zeros = calloc(1, bytes);
        status = zeros ? hgemm_malloc(watch->handle, &memory, bytes) : HGEMM_STATUS_OUT_OF_MEMORY;
        if (status == HGEMM_STATUS_SUCCESS) {
            watch->bias = memory;
            status = hgemm_upload(watch->handle, watch->bias, zeros, bytes);
        }
        free(zeros);
    }
    if (status == HGEMM_STATUS_SUCCESS)
        status = fill(watch, 1);
    for (int i = 0; i < 2 && status == HGEMM_STATUS_SUCCESS; i++)
        status = watch->handle->device->ops->event_create(watch->handle->device, &watch->events[i]);
    return status;
}

/* The words for a failure of the device, NULL for none. */
static const char *words_of(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return NULL;
    return *hgemm_error_detail(handle) ? hgemm_error_detail(handle) : hgemm_status_string(status);
}

stopwatch_t *stopwatch_open(hgemm_handle_t handle, const problem_class_t *problem, const char **fault)
{
    const int64_t *of = problem->of;
    stopwatch_t *watch = calloc(1, sizeof *watch);
    *fault = watch ? class_example(problem, &watch->problem, &watch->weights) : "there is no memory left";
    if (!*fault) {
        const hgemm_desc_t *p = &watch->problem;
        watch->handle = handle;
        watch->random = 1;
        if (p->type_a == p->type_b && p->bias) /* as cuBLAS has it */
            watch->problem.type_c = watch->problem.type_d = p->type_a;
        watch->is_modelled = strcmp(handle->info.kind, "t4model") == 0;
        watch->a = space_of(p->type_a, p->op_a == HGEMM_OP_N ? p->m : p->k, p->lda, p->batch, p->stride_a,
                            of[CLASS_aligned_a]);
        if (p->weights) {
            watch->weights = fill_described(&(fill_t){.weights = watch->weights}, p->n, p->k, 1);
            watch->b = space_of(HGEMM_TYPE_PACKED, 1, normalise(p).packed.bytes, p->batch, p->stride_b, 16);
        } else {
            watch->b = space_of(p->type_b, p->op_b == HGEMM_OP_N ? p->k : p->n, p->ldb, p->batch, p->stride_b,
                                of[CLASS_aligned_b]);
        }
        watch->d = (size_t)type_bytes(p->type_d, p->batch * p->m * p->n);
        *fault = words_of(handle, open_memory(watch));
    }
    if (!*fault) {
        watch->problem = problem_on(watch, 0);
        return watch;
    }
    stopwatch_close(watch);
    return NULL;
}

void stopwatch_close(stopwatch_t *watch)
{
    if (!watch)
        return;
    if (watch->handle) {
        for (int i = 0; i < 2; i++)
            if (watch->events[i])
                watch->handle->device->ops->event_destroy(watch->handle->device, watch->events[i]);
        hgemm_free(watch->handle, watch->memory);
        hgemm_free(watch->handle, watch->bias);
    }
    free(watch->proved);
    free(watch);
}

void stopwatch_set_cublas(stopwatch_t *watch, const cublas_t *cublas)
{
    watch->cublas = cublas;
}

/* Enqueues a plan, or cuBLAS where it is NULL. */
static hgemm_status_t enqueue(stopwatch_t *watch, const hgemm_desc_t *problem, const plan_t *plan)
{
    if (plan) {
        const problem_t p = normalise(problem);
        return handle_launch(watch->handle, &p, plan);
    }
    if (cublas_multiply(watch->cublas, problem) == 0)
        return HGEMM_STATUS_SUCCESS;
    snprintf(watch->handle->device->detail, DEVICE_DETAIL, "cuBLAS fails.");
    return HGEMM_STATUS_DEVICE_ERROR;
}

int stopwatch_prove(stopwatch_t *watch, const plan_t *plan, const char **fault)
{
    const size_t bytes = watch->d;
    void *d = malloc(bytes);
    if (!d) {
        *fault = "there is no memory left";
        return 0;
    }
    memset(d, 0xff, bytes); /* NaN */
    hgemm_status_t status = hgemm_upload(watch->handle, watch->problem.d, d, bytes);
    if (status == HGEMM_STATUS_SUCCESS)
        status = enqueue(watch, &watch->problem, plan);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_download(watch->handle, d, watch->problem.d, bytes);
    *fault = words_of(watch->handle, status);
    if (!*fault && !watch->proved) {
        watch->proved = d;
        return 1;
    }
    if (!*fault && memcmp(watch->proved, d, bytes) != 0)
        *fault = "its result is another";
    free(d);
    return !*fault;
}

/* Seconds of a launch among some back to back, after one that has the others wait. */
static hgemm_status_t take_turn(stopwatch_t *watch, const plan_t *plan, int launches, double *seconds)
{
    const device_ops_t *ops = watch->handle->device->ops;
    device_t *device = watch->handle->device;
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    float milliseconds = 0;
    for (int i = watch->is_modelled ? 0 : -1; i < launches && status == HGEMM_STATUS_SUCCESS; i++) {
        if (i == 0)
            status = ops->event_record(device, watch->events[0], watch->handle->stream);
        hgemm_desc_t problem = problem_on(watch, watch->next);
        watch->next = (watch->next + 1) % watch->copies;
        if (status == HGEMM_STATUS_SUCCESS)
            status = enqueue(watch, &problem, plan);
    }
    if (status == HGEMM_STATUS_SUCCESS)
        status = ops->event_record(device, watch->events[1], watch->handle->stream);
    if (status == HGEMM_STATUS_SUCCESS)
        status = ops->event_elapsed(device, watch->events[0], watch->events[1], &milliseconds);
    *seconds = (double)milliseconds * 1e-3 / launches;
    return status;
}

/* How many launches a plan's turn has; warms the device up. */
static hgemm_status_t launches_of(stopwatch_t *watch, const plan_t *plan, int *launches)
{
    double seconds = TURN_SECONDS;
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int turn = 0; turn < 2 && !watch->is_modelled && status == HGEMM_STATUS_SUCCESS; turn++)
        status = take_turn(watch, plan, 1, &seconds);
    *launches = seconds > 0 ? (int)fmax(1, fmin(MOST_LAUNCHES, TURN_SECONDS / seconds)) : MOST_LAUNCHES;
    return status;
}

int stopwatch_time(stopwatch_t *watch, const plan_t *const plans[], int count, int repetitions, double *seconds,
                   const char **fault)
{
    int *launches = calloc(2 * (size_t)count, sizeof *launches), *order = launches + count;
    hgemm_status_t status = launches ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_OUT_OF_MEMORY;
    if (status == HGEMM_STATUS_SUCCESS && !watch->is_random)
        status = fill(watch, 0);
    for (int i = 0; i < count && status == HGEMM_STATUS_SUCCESS; i++) {
        order[i] = i;
        status = launches_of(watch, plans[i], &launches[i]);
    }
    for (int r = 0; r < repetitions && status == HGEMM_STATUS_SUCCESS; r++) {
        for (int i = count - 1; i > 0; i--) { /* shuffled, alike in every run */
            int j = (int)(draw(watch) % (unsigned)(i + 1)), held = order[i];
            order[i] = order[j], order[j] = held;
        }
        for (int i = 0; i < count && status == HGEMM_STATUS_SUCCESS; i++)
            status = take_turn(watch, plans[order[i]], launches[order[i]], &seconds[order[i] * repetitions + r]);
    }
    free(launches);
    *fault = words_of(watch->handle, status);
    return !*fault;
}
