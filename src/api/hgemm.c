/* SPDX-License-Identifier: MIT */
/* hgemm_run and its kin: check -> problem -> plan -> launch. */
#include "hgemm.h"

#include <string.h>

#include "problem/check.h"
#include "api/handle.h"
#include "api/scale.h"

void hgemm_desc_init_sized(hgemm_desc_t *desc, size_t size)
{
    const hgemm_desc_t fresh = {.size = size, .batch = 1, .alpha = 1};
    if (!desc)
        return;
    memset(desc, 0, size);
    memcpy(desc, &fresh, size < sizeof fresh ? size : sizeof fresh);
}

/* Checks the call and chooses its plan; KERNEL_NONE where there is nothing to compute. */
static hgemm_status_t prepare(hgemm_handle_t handle, const hgemm_desc_t *desc, problem_t *problem, plan_t *plan)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    plan->variant.kernel = KERNEL_NONE;
    hgemm_status_t status = check_call(desc, CHECK_MEMORY, problem, handle->device->detail);
    if (status != HGEMM_STATUS_SUCCESS || problem->is_idle)
        return status;
    status = handle_choose(handle, problem, plan);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        describe_unsupported(problem, handle->device->detail);
    return status;
}

hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    problem_t problem;
    plan_t plan;
    hgemm_status_t status = prepare(handle, desc, &problem, &plan);
    if (status != HGEMM_STATUS_SUCCESS || plan.variant.kernel == KERNEL_NONE)
        return status;
    return handle_launch(handle, &problem, &plan);
}

/* The short forms. */
static hgemm_status_t run(hgemm_handle_t handle, hgemm_accumulate_t accumulate, hgemm_layout_t layout, hgemm_op_t op_a,
                          hgemm_op_t op_b, int64_t m, int64_t n, int64_t k, float alpha, const void *a, int64_t lda,
                          const void *b, int64_t ldb, float beta, void *c, int64_t ldc)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = layout;
    desc.op_a = op_a, desc.op_b = op_b;
    desc.accumulate = accumulate;
    desc.m = m, desc.n = n, desc.k = k;
    desc.alpha = alpha, desc.beta = beta;
    desc.a = a, desc.lda = lda;
    desc.b = b, desc.ldb = ldb;
    desc.c = c, desc.ldc = ldc;
    desc.d = c, desc.ldd = ldc;
    return hgemm_run_desc(handle, &desc);
}

hgemm_status_t hgemm_run(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b, int64_t m,
                         int64_t n, int64_t k, float alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                         float beta, void *c, int64_t ldc)
{
    return run(handle, HGEMM_ACCUMULATE_F16, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

hgemm_status_t hgemm_run_f32(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b, int64_t m,
                             int64_t n, int64_t k, float alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                             float beta, void *c, int64_t ldc)
{
    return run(handle, HGEMM_ACCUMULATE_F32, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

hgemm_status_t hgemm_find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix, int64_t ld,
                                float *scale)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    hgemm_status_t status = check_scale_call(lines, width, matrix, ld, scale, handle->device->detail);
    return status == HGEMM_STATUS_SUCCESS ? find_scale(handle, lines, width, matrix, ld, scale) : status;
}

hgemm_status_t hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    problem_t problem;
    plan_t plan;
    hgemm_status_t status = prepare(handle, desc, &problem, &plan);
    if (status != HGEMM_STATUS_SUCCESS || plan.variant.kernel == KERNEL_NONE)
        return status;
    return handle_load(handle, &plan);
}

hgemm_status_t hgemm_select(const hgemm_desc_t *desc, int *kernel)
{
    problem_t problem;
    plan_t plan = {.variant.kernel = KERNEL_NONE};
    char *words = thread_detail();
    words[0] = '\0';
    if (!kernel)
        return HGEMM_STATUS_INVALID_HANDLE;
    hgemm_status_t status = check_call(desc, CHECK_ALIGNMENT, &problem, words);
    if (status == HGEMM_STATUS_SUCCESS && !problem.is_idle)
        status = select_plan(&problem, &machine_t4, machine_t4.workspace_bytes, &plan);
    if (status == HGEMM_STATUS_NOT_SUPPORTED && !problem.is_idle)
        describe_unsupported(&problem, words);
    if (status == HGEMM_STATUS_SUCCESS)
        *kernel = plan.variant.kernel;
    return status;
}
