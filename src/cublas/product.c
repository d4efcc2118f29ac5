/* SPDX-License-Identifier: MIT */
#include "product.h"

#include "abi.h"
#include "log.h"
#include "pool.h"
#include "real.h"
#include "settings.h"
#include "sgemm.h"

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

/* NULL where the tuning file, if there is one, lets hgemm run it, else why not. `*ratio` is 0 where it says nothing. */
static const char *ask_tuning(product_t *product, const lease_t *lease, double *ratio)
{
    *ratio = 0;
    if (!settings()->has_tuning)
        return NULL;
    const char *why = reason(product, lease, hgemm_get_cublas_ratio(lease->handle, &product->desc, ratio));
    return why ? why : settings_refuse_ratio(lease->capability, *ratio);
}

/* Times of what the cost model expects of a product of floats that it may take, of those that are in question: on the
 * T4's timing model it is 10% off there (docs/lab-notes/selection-t4.md, note 321). */
static const double doubt = 1.1;

/* The same of floats by the cost model: the time that hgemm expects beside that of cuBLAS's SGEMM at its best. */
static const char *ask_model(product_t *product, const lease_t *lease)
{
    hgemm_plan_t plan;
    hgemm_plan_info_t plan_info;
    hgemm_device_info_t gpu;
    const char *why = reason(product, lease, hgemm_plan_create(&plan, lease->handle, &product->desc));
    if (why)
        return why;
    hgemm_plan_get_info(plan, &plan_info);
    hgemm_plan_destroy(plan);
    why = reason(product, lease, hgemm_get_device_info(lease->handle, &gpu));
    if (!why && doubt * plan_info.seconds > sgemm_seconds(&product->desc, &gpu))
        why = "the policy is faster, and by the cost model cuBLAS's SGEMM may be";
    return why;
}

/* NULL where the policy has hgemm run it, else why not. */
static const char *ask_policy(product_t *product, const lease_t *lease)
{
    double ratio;
    if (settings()->policy != POLICY_FASTER)
        return NULL;
    if (product->loose_from && lease->capability >= product->loose_from)
        return "the policy is faster, and the program lets cuBLAS round floats for tensor cores";
    const char *why = ask_tuning(product, lease, &ratio);
    if (!why && ratio == 0 && product->desc.type_a == HGEMM_TYPE_F32)
        why = ask_model(product, lease);
    return why;
}

/* Of floats: what the setting says, or the program permits. Who may round to halves, bfloat16 or TF32 gets 11 bits. */
static hgemm_accuracy_t accuracy_of(const product_t *product)
{
    if (product->desc.type_a != HGEMM_TYPE_F32)
        return HGEMM_ACCURACY_F32;
    return product->loose_from && settings()->honours_permission ? HGEMM_ACCURACY_11_BITS : settings()->accuracy;
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
    product->desc.accuracy = accuracy_of(product);
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

const char *product_types(int type_a, int type_b, int type_c, hgemm_desc_t *desc)
{
    hgemm_type_t type;
    switch (type_a) {
    case BLAS_R_16F: type = HGEMM_TYPE_F16; break;
    case BLAS_R_16BF: type = HGEMM_TYPE_BF16; break;
    case BLAS_R_32F: type = HGEMM_TYPE_F32; break;
    default: return "A and B are neither of halves nor of bfloat16 nor of floats";
    }
    if (type_b != type_a)
        return "A and B are of different types";
    if (type_c != type_a && type_c != BLAS_R_32F)
        return "C is neither of the type of A and B nor of floats";
    if (type == HGEMM_TYPE_F32 && !settings()->takes_floats)
        return "A and B are of floats, and HGEMM_CUBLAS_F32 is off";
    desc->type_a = desc->type_b = type;
    desc->type_c = desc->type_d = type_c == BLAS_R_32F ? HGEMM_TYPE_F32 : type;
    return NULL;
}

enum { HALVES_FROM = 70, TF32_FROM = 80 }; /* the compute capabilities whose tensor cores take them */

const char *product_compute(product_t *product, int compute)
{
    hgemm_desc_t *desc = &product->desc;
    const int is_of_floats = desc->type_a == HGEMM_TYPE_F32;
    desc->accumulate = compute == BLAS_COMPUTE_16F ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
    switch (compute) {
    case BLAS_COMPUTE_16F:
        return desc->type_c == HGEMM_TYPE_F16 ? NULL : "the compute type is 16F and C is not of halves";
    case BLAS_COMPUTE_32F: return NULL;
    case BLAS_COMPUTE_32F_FAST_16F: product->loose_from = HALVES_FROM; break;
    case BLAS_COMPUTE_32F_FAST_16BF:
    case BLAS_COMPUTE_32F_FAST_TF32: product->loose_from = TF32_FROM; break;
    default: return "the compute type is neither 16F nor 32F nor one of its FAST forms";
    }
    return is_of_floats ? NULL : "the compute type is for floats, and A and B are none";
}

void product_allow_math(product_t *product, int math_mode)
{
    const int from = math_mode == BLAS_TENSOR_OP_MATH        ? HALVES_FROM
                     : math_mode == BLAS_TF32_TENSOR_OP_MATH ? TF32_FROM
                                                             : 0;
    if (from && product->desc.type_a == HGEMM_TYPE_F32 && (!product->loose_from || from < product->loose_from))
        product->loose_from = from;
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
