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

/* Why a call of hgemm did not do what it should, NULL where it did. */
static const char *reason(product_t *product, const lease_t *lease, hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return NULL;
    snprintf(product->detail, sizeof product->detail, "%s", hgemm_error_detail(lease->handle));
    return hgemm_status_name(status);
}

/* NULL where the policy has hgemm run it, else why not. */
static const char *ask_policy(product_t *product, const lease_t *lease)
{
    double ratio = 0;
    if (!settings_ask_ratio())
        return NULL;
    const char *why = reason(product, lease, hgemm_get_cublas_ratio(lease->handle, &product->desc, &ratio));
    return why ? why : settings_refuse_ratio(lease->capability, ratio);
}

static const char *enqueue(product_t *product, const lease_t *lease, const hgemm_desc_t *desc)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (lease->is_captured) /* what is not loaded yet cannot be captured */
        status = hgemm_prepare(lease->handle, desc);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_run_desc(lease->handle, desc);
    return reason(product, lease, status);
}

/* Scalars that are halves in device memory become floats there, to which the descriptor points: `widening` is the call
 * of hgemm that writes them. The halves are its C, a column of one or two with the distance as ldc, to which a product
 * is added whose k is 0. */
static const char *widen_scalars(product_t *product, const lease_t *lease, hgemm_desc_t *widening)
{
    const uintptr_t alpha = (uintptr_t)product->half_alpha, beta = (uintptr_t)product->half_beta;
    const uintptr_t first = alpha < beta ? alpha : beta, last = alpha < beta ? beta : alpha;
    float *floats = pool_scalars(lease);
    if (!floats)
        return "alpha and beta are halves in device memory, and there is no room for them as floats";
    hgemm_desc_init(widening);
    widening->accumulate = HGEMM_ACCUMULATE_F32;
    widening->m = first == last ? 1 : 2, widening->n = 1, widening->k = 0;
    widening->lda = widening->ldb = widening->ldd = 1;
    widening->ldc = first == last ? 1 : (int64_t)((last - first) / sizeof(uint16_t));
    widening->beta = 1;
    widening->c = (const void *)first;
    widening->d = floats, widening->type_d = HGEMM_TYPE_F32;
    product->desc.alpha_pointer = floats + (alpha > beta);
    product->desc.beta_pointer = floats + (beta > alpha);
    return NULL;
}

/* Why hgemm did not enqueue it, NULL where it did. A failed launch leaves C as it was: the real library may still do
 * it. */
static const char *run(product_t *product)
{
    lease_t lease;
    hgemm_desc_t widening;
    const char *why = pool_lease(product->stream, &lease);
    if (why)
        return why;
    if (product->half_alpha)
        why = widen_scalars(product, &lease, &widening);
    if (!why)
        why = ask_policy(product, &lease);
    if (!why && product->half_alpha)
        why = enqueue(product, &lease, &widening);
    if (!why)
        why = enqueue(product, &lease, &product->desc);
    pool_return(&lease);
    return why;
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

const char *product_scalars(product_t *product, int pointer_mode, const void *alpha, const void *beta)
{
    hgemm_desc_t *desc = &product->desc;
    if (!alpha || !beta)
        return "alpha or beta is NULL";
    int are_halves = desc->accumulate == HGEMM_ACCUMULATE_F16;
    switch (pointer_mode) {
    case BLAS_POINTER_MODE_HOST:
        desc->alpha = are_halves ? hgemm_half_to_float(*(const uint16_t *)alpha) : *(const float *)alpha;
        desc->beta = are_halves ? hgemm_half_to_float(*(const uint16_t *)beta) : *(const float *)beta;
        return NULL;
    case BLAS_POINTER_MODE_DEVICE:
        if (are_halves) {
            product->half_alpha = alpha;
            product->half_beta = beta;
        } else {
            desc->alpha_pointer = alpha;
            desc->beta_pointer = beta;
        }
        return NULL;
    default: return "the pointer mode is neither host nor device";
    }
}
