/* SPDX-License-Identifier: MIT */
#include "product.h"

#include "abi.h"
#include "log.h"
#include "pool.h"
#include "real.h"
#include "settings.h"

#include <stdio.h>

int door_is_open(void)
{
    return !real_is_running() && (settings()->policy != POLICY_NOWHERE || log_is_on());
}

/* Why hgemm did not enqueue it, NULL where it did. A failed launch leaves C as it was: the real library may still do
 * it. */
static const char *run(product_t *product)
{
    lease_t lease;
    const char *why = pool_lease(product->stream, &lease);
    if (why)
        return why;
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (lease.is_captured) /* what is not loaded yet cannot be captured */
        status = hgemm_prepare(lease.handle, &product->desc);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_run_desc(lease.handle, &product->desc);
    if (status != HGEMM_STATUS_SUCCESS)
        snprintf(product->detail, sizeof product->detail, "%s", hgemm_error_detail(lease.handle));
    pool_return(&lease);
    return status == HGEMM_STATUS_SUCCESS ? NULL : hgemm_status_name(status);
}

int door_run(product_t *product)
{
    product->detail[0] = '\0';
    product->is_described = product->why == NULL;
    if (product->is_described)
        product->why = run(product);
    if (log_is_on())
        log_product(product);
    return product->why == NULL;
}

int product_op(int op, hgemm_op_t *meaning)
{
    *meaning = op == BLAS_OP_N ? HGEMM_OP_N : HGEMM_OP_T;
    return op == BLAS_OP_N || op == BLAS_OP_T || op == BLAS_OP_C;
}

int product_accumulate(int compute, hgemm_accumulate_t *meaning)
{
    *meaning = compute == BLAS_COMPUTE_16F ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
    return compute == BLAS_COMPUTE_16F || compute == BLAS_COMPUTE_32F;
}

const char *product_types(int type_a, int type_b, int type_c, hgemm_desc_t *desc)
{
    const hgemm_type_t narrow = type_a == BLAS_R_16BF ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F16;
    if ((type_a != BLAS_R_16F && type_a != BLAS_R_16BF) || type_b != type_a)
        return "A and B are neither of halves nor of bfloat16";
    if (type_c != type_a && type_c != BLAS_R_32F)
        return "C is neither of the type of A and B nor of floats";
    desc->type_a = desc->type_b = narrow;
    desc->type_c = desc->type_d = type_c == BLAS_R_32F ? HGEMM_TYPE_F32 : narrow;
    return NULL;
}

const char *product_scalars(hgemm_desc_t *desc, int pointer_mode, const void *alpha, const void *beta)
{
    if (!alpha || !beta)
        return "alpha or beta is NULL";
    int are_halves = desc->accumulate == HGEMM_ACCUMULATE_F16;
    switch (pointer_mode) {
    case BLAS_POINTER_MODE_HOST:
        desc->alpha = are_halves ? hgemm_half_to_float(*(const uint16_t *)alpha) : *(const float *)alpha;
        desc->beta = are_halves ? hgemm_half_to_float(*(const uint16_t *)beta) : *(const float *)beta;
        return NULL;
    case BLAS_POINTER_MODE_DEVICE:
        desc->alpha_pointer = alpha;
        desc->beta_pointer = beta;
        return are_halves ? "alpha and beta are halves in device memory" : NULL;
    default: return "the pointer mode is neither host nor device";
    }
}
