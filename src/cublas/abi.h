/* SPDX-License-Identifier: MIT */
/*
 * What the door knows of the binary interfaces of cuBLAS, cuBLASLt and the CUDA driver, so that it builds
 * without their headers: enumerations are ints, handles and device pointers are pointers. The values are those
 * of https://docs.nvidia.com/cuda/cublas/ (11 to 13) and https://docs.nvidia.com/cuda/cuda-driver-api/;
 * test_door_abi holds them to the vendor's headers where there are some.
 */
#ifndef HGEMM_CUBLAS_ABI_H
#define HGEMM_CUBLAS_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BLAS_STATUS_SUCCESS = 0, /* cublasStatus_t */
    BLAS_STATUS_NOT_INITIALIZED = 1,
    BLAS_STATUS_INVALID_VALUE = 7,
    BLAS_STATUS_NOT_SUPPORTED = 15,

    BLAS_OP_N = 0, /* cublasOperation_t */
    BLAS_OP_T = 1,
    BLAS_OP_C = 2,

    BLAS_FILL_MODE_FULL = 2, /* cublasFillMode_t */

    BLAS_POINTER_MODE_HOST = 0, /* cublasPointerMode_t, and the first of cublasLtPointerMode_t */
    BLAS_POINTER_MODE_DEVICE = 1,

    BLAS_TENSOR_OP_MATH = 1, /* cublasMath_t: modes, and the bits that they take */
    BLAS_PEDANTIC_MATH = 2,
    BLAS_TF32_TENSOR_OP_MATH = 3,
    BLAS_MATH_MASK = 15,

    BLAS_COMPUTE_16F = 64, /* cublasComputeType_t */
    BLAS_COMPUTE_16F_PEDANTIC = 65,
    BLAS_COMPUTE_32F = 68,
    BLAS_COMPUTE_32F_PEDANTIC = 69,
    BLAS_COMPUTE_32F_FAST_16F = 74,
    BLAS_COMPUTE_32F_FAST_16BF = 75,
    BLAS_COMPUTE_32F_FAST_TF32 = 77,

    BLAS_GEMM_DEFAULT = -1, /* cublasGemmAlgo_t */
    BLAS_GEMM_DEFAULT_TENSOR_OP = 99,

    BLAS_R_32F = 0, /* cudaDataType */
    BLAS_R_16F = 2,
    BLAS_R_16BF = 14
};

enum {
    LT_ORDER_COL = 0, /* cublasLtOrder_t */
    LT_ORDER_ROW = 1,

    LT_BATCH_MODE_STRIDED = 0, /* cublasLtBatchMode_t */
    LT_BATCH_MODE_POINTER_ARRAY = 1,

    LT_EPILOGUE_DEFAULT = 1, /* cublasLtEpilogue_t */
    LT_EPILOGUE_RELU = 2,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_RELU_BIAS = 6,
    LT_EPILOGUE_GELU = 32,
    LT_EPILOGUE_GELU_BIAS = 36,

    LT_LAYOUT_TYPE = 0, /* cublasLtMatrixLayoutAttribute_t */
    LT_LAYOUT_ORDER = 1,
    LT_LAYOUT_ROWS = 2,
    LT_LAYOUT_COLS = 3,
    LT_LAYOUT_LD = 4,
    LT_LAYOUT_BATCH_COUNT = 5,
    LT_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    LT_LAYOUT_BATCH_MODE = 8, /* from 13.0 on */

    LT_DESC_COMPUTE_TYPE = 0, /* cublasLtMatmulDescAttributes_t */
    LT_DESC_SCALE_TYPE = 1,
    LT_DESC_POINTER_MODE = 2,
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_TRANSC = 5,
    LT_DESC_FILL_MODE = 6,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_DESC_BIAS_BATCH_STRIDE = 10,
    LT_DESC_SM_COUNT_TARGET = 15,
    LT_DESC_A_SCALE_POINTER = 17,
    LT_DESC_B_SCALE_POINTER = 18,
    LT_DESC_C_SCALE_POINTER = 19,
    LT_DESC_D_SCALE_POINTER = 20,
    LT_DESC_AMAX_D_POINTER = 21,
    LT_DESC_BIAS_DATA_TYPE = 26,
    LT_DESC_D_OUT_SCALE_POINTER = 36
};

/* The parameters of each kind of call, INTEGER being int or, in the _64 forms, int64_t; and their names. */
#define HALF_PARAMETERS(INTEGER)                                                                                      \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *a, INTEGER lda, \
        const void *b, INTEGER ldb, const void *beta, void *c, INTEGER ldc
#define HALF_ARGUMENTS handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc

#define HALF_STRIDED_PARAMETERS(INTEGER)                                                                              \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *a, INTEGER lda, \
        long long stride_a, const void *b, INTEGER ldb, long long stride_b, const void *beta, void *c, INTEGER ldc,   \
        long long stride_c, INTEGER batch
#define HALF_STRIDED_ARGUMENTS \
    handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch

#define HALF_BATCHED_PARAMETERS(INTEGER)                                                                        \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *const *a, \
        INTEGER lda, const void *const *b, INTEGER ldb, const void *beta, void *const *c, INTEGER ldc, INTEGER batch
#define HALF_BATCHED_ARGUMENTS handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch

#define SINGLE_PARAMETERS(INTEGER) HALF_PARAMETERS(INTEGER)
#define SINGLE_ARGUMENTS HALF_ARGUMENTS
#define SINGLE_STRIDED_PARAMETERS(INTEGER) HALF_STRIDED_PARAMETERS(INTEGER)
#define SINGLE_STRIDED_ARGUMENTS HALF_STRIDED_ARGUMENTS
#define SINGLE_BATCHED_PARAMETERS(INTEGER) HALF_BATCHED_PARAMETERS(INTEGER)
#define SINGLE_BATCHED_ARGUMENTS HALF_BATCHED_ARGUMENTS

#define EX_PARAMETERS(INTEGER)                                                                                       \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *a, int type_a, \
        INTEGER lda, const void *b, int type_b, INTEGER ldb, const void *beta, void *c, int type_c, INTEGER ldc,     \
        int compute, int algo
#define EX_ARGUMENTS \
    handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute, algo

#define EX_STRIDED_PARAMETERS(INTEGER)                                                                                 \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *a, int type_a,   \
        INTEGER lda, long long stride_a, const void *b, int type_b, INTEGER ldb, long long stride_b, const void *beta, \
        void *c, int type_c, INTEGER ldc, long long stride_c, INTEGER batch, int compute, int algo
#define EX_STRIDED_ARGUMENTS                                                                                      \
    handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc, \
        stride_c, batch, compute, algo

#define EX_BATCHED_PARAMETERS(INTEGER)                                                                            \
    void *handle, int op_a, int op_b, INTEGER m, INTEGER n, INTEGER k, const void *alpha, const void *const *a,   \
        int type_a, INTEGER lda, const void *const *b, int type_b, INTEGER ldb, const void *beta, void *const *c, \
        int type_c, INTEGER ldc, INTEGER batch, int compute, int algo
#define EX_BATCHED_ARGUMENTS \
    handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, batch, compute, algo

#define LT_PARAMETERS(INTEGER)                                                                                       \
    void *handle, void *desc, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,       \
        const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const void *algo, void *workspace, \
        size_t workspace_bytes, void *stream
#define LT_ARGUMENTS                                                                                                 \
    handle, desc, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d, algo, workspace, workspace_bytes, \
        stream

/* X(name, kind of its parameters, INTEGER): what the door takes in the place of the real libraries. cublasSgemm is a
 * name of the header alone for cublasSgemm_v2: the function that the library has by it is that of cuBLAS before 4.0. */
#define BLAS_ENTRIES(X)                                      \
    X(cublasHgemm, HALF, int)                                \
    X(cublasHgemm_64, HALF, int64_t)                         \
    X(cublasHgemmStridedBatched, HALF_STRIDED, int)          \
    X(cublasHgemmStridedBatched_64, HALF_STRIDED, int64_t)   \
    X(cublasHgemmBatched, HALF_BATCHED, int)                 \
    X(cublasHgemmBatched_64, HALF_BATCHED, int64_t)          \
    X(cublasSgemm_v2, SINGLE, int)                           \
    X(cublasSgemm_v2_64, SINGLE, int64_t)                    \
    X(cublasSgemmStridedBatched, SINGLE_STRIDED, int)        \
    X(cublasSgemmStridedBatched_64, SINGLE_STRIDED, int64_t) \
    X(cublasSgemmBatched, SINGLE_BATCHED, int)               \
    X(cublasSgemmBatched_64, SINGLE_BATCHED, int64_t)        \
    X(cublasGemmEx, EX, int)                                 \
    X(cublasGemmEx_64, EX, int64_t)                          \
    X(cublasGemmStridedBatchedEx, EX_STRIDED, int)           \
    X(cublasGemmStridedBatchedEx_64, EX_STRIDED, int64_t)    \
    X(cublasGemmBatchedEx, EX_BATCHED, int)                  \
    X(cublasGemmBatchedEx_64, EX_BATCHED, int64_t)
#define LT_ENTRIES(X) X(cublasLtMatmul, LT, int)

/* X(name, parameters): what the door asks them. */
#define BLAS_QUERIES(X)                                                        \
    X(cublasGetStream_v2, (void *, void **))                                   \
    X(cublasGetPointerMode_v2, (void *, int *))                                \
    X(cublasGetMathMode, (void *, int *))                                      \
    X(cublasGetSmCountTarget, (void *, int *))                                 \
    X(cublasLtMatmulDescGetAttribute, (void *, int, void *, size_t, size_t *)) \
    X(cublasLtMatrixLayoutGetAttribute, (void *, int, void *, size_t, size_t *))

/* NAME_fn is the type of the function NAME. */
#define X(name, kind, integer) typedef int name##_fn(kind##_PARAMETERS(integer));
BLAS_ENTRIES(X)
LT_ENTRIES(X)
#undef X
#define X(name, parameters) typedef int name##_fn parameters;
BLAS_QUERIES(X)
#undef X

/* The driver. A CUresult of 0 is success. */
enum {
    CUDA_COMPUTE_CAPABILITY_MAJOR = 75, /* CUdevice_attribute */
    CUDA_COMPUTE_CAPABILITY_MINOR = 76,
    CUDA_CAPTURE_STATUS_NONE = 0, /* CUstreamCaptureStatus */
    CUDA_CAPTURE_STATUS_ACTIVE = 1
};
#define CUDA_STREAM_LEGACY ((void *)1) /* CU_STREAM_LEGACY, which NULL stands for */

#ifdef __cplusplus
}
#endif
#endif
