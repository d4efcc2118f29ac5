/* SPDX-License-Identifier: MIT */
/* What a test tells the fake cuBLAS, cuBLASLt and driver of the door's tests, and what it learns from them. */
#ifndef TEST_FAKE_CUBLAS_H
#define TEST_FAKE_CUBLAS_H

#include "../../src/cublas/abi.h"

#include <stdatomic.h>

/* The arguments of a call; those that it does not have are 0. */
typedef struct fake_call_t {
    const char *name;
    void *handle;
    int op_a, op_b;
    int64_t m, n, k;
    const void *alpha, *beta;
    const void *a, *b, *c;
    int type_a, type_b, type_c;
    int64_t lda, ldb, ldc;
    long long stride_a, stride_b, stride_c;
    int64_t batch;
    int compute, algo;
    void *desc, *layout_a, *layout_b, *layout_c, *layout_d, *d; /* of cublasLtMatmul */
    const void *lt_algo;
    void *workspace, *stream;
    size_t workspace_bytes;
} fake_call_t;

/* A fake_call_t made of the parameters of one kind of call. */
#define FAKE_PRODUCT(name_)                                                                                      \
    .name = name_, .handle = handle, .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .alpha = alpha, .a = a, \
    .lda = lda, .b = b, .ldb = ldb, .beta = beta, .c = (const void *)c, .ldc = ldc
#define FAKE_TYPES .type_a = type_a, .type_b = type_b, .type_c = type_c, .compute = compute, .algo = algo
#define FAKE_STRIDES .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch
#define FAKE_HALF(name) FAKE_PRODUCT(name)
#define FAKE_HALF_STRIDED(name) FAKE_PRODUCT(name), FAKE_STRIDES
#define FAKE_HALF_BATCHED(name) FAKE_PRODUCT(name), .batch = batch
#define FAKE_SINGLE(name) FAKE_HALF(name)
#define FAKE_SINGLE_STRIDED(name) FAKE_HALF_STRIDED(name)
#define FAKE_SINGLE_BATCHED(name) FAKE_HALF_BATCHED(name)
#define FAKE_EX(name) FAKE_PRODUCT(name), FAKE_TYPES
#define FAKE_EX_STRIDED(name) FAKE_PRODUCT(name), FAKE_TYPES, FAKE_STRIDES
#define FAKE_EX_BATCHED(name) FAKE_PRODUCT(name), FAKE_TYPES, .batch = batch
#define FAKE_LT(name_)                                                                                               \
    .name = name_, .handle = handle, .desc = desc, .alpha = alpha, .a = a, .layout_a = layout_a, .b = b,             \
    .layout_b = layout_b, .beta = beta, .c = c, .layout_c = layout_c, .d = d, .layout_d = layout_d, .lt_algo = algo, \
    .workspace = workspace, .workspace_bytes = workspace_bytes, .stream = stream

typedef struct fake_cublas_t {
    int status;          /* of calls whose arguments are right */
    atomic_int calls;    /* of the functions that multiply */
    fake_call_t last;    /* of them */
    void (*inner)(void); /* each calls it, as the real library calls its own functions by their public names */
} fake_cublas_t;

/* A cuBLAS handle. */
typedef struct fake_handle_t {
    void *stream;
    int pointer_mode, math_mode, sm_count;
} fake_handle_t;

typedef struct fake_driver_t {
    int capability;         /* 75 is 7.5 */
    int another_is_current; /* a context that is not the device's primary one */
    int capture;            /* what cuStreamIsCapturing says: 0 none, 1 active, 2 invalidated */
    int result;             /* what all give: 0 is success */
    int has_no_context;     /* of the calling thread */
} fake_driver_t;

#endif
