/* SPDX-License-Identifier: MIT */
/*
 * A cuBLAS for tests: it multiplies nothing, notes each call with all its arguments, and refuses what cuBLAS refuses.
 * It shares the door's declarations, which test_door_abi holds to the vendor's. FAKE_CUBLAS_US, in the environment, is
 * the time that a product takes by the clock of a fake driver that has one (fake_cuda.c). FAKE_CUBLAS_TYPE is the one
 * type of A that it knows.
 */
#include "fake.h"

#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_cublas_t fake_cublas;

EXPORT int cublasCreate_v2(void **handle);
EXPORT int cublasDestroy_v2(void *handle);
EXPORT int cublasGetVersion_v2(void *handle, int *version);

int cublasCreate_v2(void **handle)
{
    *handle = calloc(1, sizeof(fake_handle_t));
    return *handle ? BLAS_STATUS_SUCCESS : BLAS_STATUS_NOT_INITIALIZED;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    return BLAS_STATUS_SUCCESS;
}

int cublasGetVersion_v2(void *handle, int *version)
{
    *version = 130000;
    return handle ? BLAS_STATUS_SUCCESS : BLAS_STATUS_NOT_INITIALIZED;
}

static void spend_time(void)
{
    const char *microseconds = getenv("FAKE_CUBLAS_US");
    void *driver = microseconds ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    double *clock = driver ? dlsym(driver, "fake_microseconds") : NULL;
    if (clock)
        *clock += atof(microseconds);
}

#define PROPERTY(set, get, type, field)                  \
    EXPORT int set(void *handle, type value);            \
    EXPORT int get(void *handle, type *value);           \
    int set(void *handle, type value)                    \
    {                                                    \
        if (!handle)                                     \
            return BLAS_STATUS_NOT_INITIALIZED;          \
        ((fake_handle_t *)handle)->field = value;        \
        return BLAS_STATUS_SUCCESS;                      \
    }                                                    \
    int get(void *handle, type *value)                   \
    {                                                    \
        if (!handle)                                     \
            return BLAS_STATUS_NOT_INITIALIZED;          \
        *value = ((const fake_handle_t *)handle)->field; \
        return BLAS_STATUS_SUCCESS;                      \
    }
PROPERTY(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
PROPERTY(cublasSetMathMode, cublasGetMathMode, int, math_mode)
#ifndef IS_OLD /* from 11.5 on */
PROPERTY(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count)
#endif

static int64_t at_least_1(int64_t value)
{
    return value > 1 ? value : 1;
}

static int is_unknown(int type)
{
    const char *known = getenv("FAKE_CUBLAS_TYPE");
    return known && atoi(known) != type;
}

static int judge(const fake_call_t *call)
{
    fake_cublas.calls++;
    fake_cublas.last = *call;
    spend_time();
    if (fake_cublas.inner)
        fake_cublas.inner();
    if (!call->handle)
        return BLAS_STATUS_NOT_INITIALIZED;
    if (call->op_a < BLAS_OP_N || call->op_a > BLAS_OP_C || call->op_b < BLAS_OP_N || call->op_b > BLAS_OP_C ||
        call->m < 0 || call->n < 0 || call->k < 0 || call->batch < 0 || !call->alpha || !call->beta ||
        call->lda < at_least_1(call->op_a == BLAS_OP_N ? call->m : call->k) ||
        call->ldb < at_least_1(call->op_b == BLAS_OP_N ? call->k : call->n) || call->ldc < at_least_1(call->m))
        return BLAS_STATUS_INVALID_VALUE;
    if (is_unknown(call->type_a))
        return BLAS_STATUS_NOT_SUPPORTED;
    return fake_cublas.status;
}

#define X(name, kind, integer)                                  \
    EXPORT int name(kind##_PARAMETERS(integer));                \
    int name(kind##_PARAMETERS(integer))                        \
    {                                                           \
        return judge(&(const fake_call_t){FAKE_##kind(#name)}); \
    }
BLAS_ENTRIES(X)
