/* SPDX-License-Identifier: MIT */
/* The functions of cuBLAS that the door takes. What hgemm declines goes to the real ones as it came. */
#include "abi.h"
#include "product.h"
#include "real.h"

/* The arguments of any of them. */
typedef struct call_t {
    const char *entry;
    void *handle;
    int op_a, op_b;
    int64_t m, n, k;
    const void *alpha, *beta;
    const void *a, *b;
    void *c;
    int type_a, type_b, type_c;
    int64_t lda, ldb, ldc;
    long long stride_a, stride_b, stride_c;
    int64_t batch;
    hgemm_batch_mode_t batch_mode;
    int compute, algo;
} call_t;

static int64_t at_least_1(int64_t value)
{
    return value > 1 ? value : 1;
}

/* Whether cuBLAS would refuse an argument, have nothing to compute or read a NULL: its own business. */
static int is_for_cublas_to_judge(const call_t *call, hgemm_op_t op_a, hgemm_op_t op_b)
{
    return call->m <= 0 || call->n <= 0 || call->k < 0 || call->batch <= 0 || !call->a || !call->b || !call->c ||
           call->lda < at_least_1(op_a == HGEMM_OP_N ? call->m : call->k) ||
           call->ldb < at_least_1(op_b == HGEMM_OP_N ? call->k : call->n) || call->ldc < call->m;
}

/* What the cuBLAS handle says: its stream, and the scalars' place. */
static const char *ask_handle(const call_t *call, product_t *product)
{
    cublasGetStream_v2_fn *get_stream = REAL(cublasGetStream_v2);
    cublasGetPointerMode_v2_fn *get_pointer_mode = REAL(cublasGetPointerMode_v2);
    cublasGetMathMode_fn *get_math_mode = REAL(cublasGetMathMode);
    cublasGetSmCountTarget_fn *get_sm_count = REAL(cublasGetSmCountTarget); /* from 11.5 on */
    int pointer_mode, math_mode, sm_count = 0;
    if (!get_stream || !get_pointer_mode || !get_math_mode)
        return "the real cuBLAS was not found";
    if (get_stream(call->handle, &product->stream) != BLAS_STATUS_SUCCESS ||
        get_pointer_mode(call->handle, &pointer_mode) != BLAS_STATUS_SUCCESS ||
        get_math_mode(call->handle, &math_mode) != BLAS_STATUS_SUCCESS ||
        (get_sm_count && get_sm_count(call->handle, &sm_count) != BLAS_STATUS_SUCCESS))
        return "cuBLAS refuses the handle";
    if ((math_mode & BLAS_MATH_MASK) == BLAS_PEDANTIC_MATH)
        return "the math mode is pedantic";
    product_allow_math(product, math_mode & BLAS_MATH_MASK);
    if (sm_count != 0)
        return "the handle is to use a part of the multiprocessors";
    return product_scalars(product, pointer_mode, call->alpha, call->beta);
}

static const char *describe(const call_t *call, product_t *product)
{
    hgemm_desc_t *desc = &product->desc;
    desc->layout = HGEMM_COL_MAJOR;
    desc->m = call->m, desc->n = call->n, desc->k = call->k;
    desc->batch = call->batch, desc->batch_mode = call->batch_mode;
    desc->a = call->a, desc->lda = call->lda, desc->stride_a = call->stride_a;
    desc->b = call->b, desc->ldb = call->ldb, desc->stride_b = call->stride_b;
    desc->c = call->c, desc->ldc = call->ldc, desc->stride_c = call->stride_c;
    desc->d = call->c, desc->ldd = call->ldc, desc->stride_d = call->stride_c;
    if (!product_op(call->op_a, &desc->op_a) || !product_op(call->op_b, &desc->op_b))
        return "an operation is none of N, T and C";
    const char *why = product_types(call->type_a, call->type_b, call->type_c, desc);
    if (why)
        return why;
    why = product_compute(product, call->compute);
    if (why)
        return why;
    if (call->algo != BLAS_GEMM_DEFAULT && call->algo != BLAS_GEMM_DEFAULT_TENSOR_OP)
        return "the program names an algorithm";
    if (is_for_cublas_to_judge(call, desc->op_a, desc->op_b))
        return "an argument is for cuBLAS to judge";
    return ask_handle(call, product);
}

static int take(const call_t *call)
{
    product_t product = {.entry = call->entry};
    if (!door_is_open())
        return 0;
    hgemm_desc_init(&product.desc);
    product.why = describe(call, &product);
    return door_run(&product);
}

/* The arguments of one kind as a call_t. */
#define PRODUCT(name)                                                                                            \
    .entry = name, .handle = handle, .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .alpha = alpha, .a = a, \
    .lda = lda, .b = b, .ldb = ldb, .beta = beta, .c = (void *)c, .ldc = ldc
#define HALVES                                                                                     \
    .type_a = BLAS_R_16F, .type_b = BLAS_R_16F, .type_c = BLAS_R_16F, .compute = BLAS_COMPUTE_16F, \
    .algo = BLAS_GEMM_DEFAULT
#define SINGLES                                                                                    \
    .type_a = BLAS_R_32F, .type_b = BLAS_R_32F, .type_c = BLAS_R_32F, .compute = BLAS_COMPUTE_32F, \
    .algo = BLAS_GEMM_DEFAULT
#define TYPES .type_a = type_a, .type_b = type_b, .type_c = type_c, .compute = compute, .algo = algo
#define STRIDES .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch
#define POINTERS .batch_mode = HGEMM_BATCH_POINTERS, .batch = batch

#define HALF_CALL(name) PRODUCT(name), HALVES, .batch = 1
#define HALF_STRIDED_CALL(name) PRODUCT(name), HALVES, STRIDES
#define HALF_BATCHED_CALL(name) PRODUCT(name), HALVES, POINTERS
#define SINGLE_CALL(name) PRODUCT(name), SINGLES, .batch = 1
#define SINGLE_STRIDED_CALL(name) PRODUCT(name), SINGLES, STRIDES
#define SINGLE_BATCHED_CALL(name) PRODUCT(name), SINGLES, POINTERS
#define EX_CALL(name) PRODUCT(name), TYPES, .batch = 1
#define EX_STRIDED_CALL(name) PRODUCT(name), TYPES, STRIDES
#define EX_BATCHED_CALL(name) PRODUCT(name), TYPES, POINTERS

#define X(name, kind, integer)                         \
    DOOR_EXPORT int name(kind##_PARAMETERS(integer));  \
    int name(kind##_PARAMETERS(integer))               \
    {                                                  \
        if (take(&(const call_t){kind##_CALL(#name)})) \
            return BLAS_STATUS_SUCCESS;                \
        return REAL_CALL(name, (kind##_ARGUMENTS));    \
    }
BLAS_ENTRIES(X)
