// SPDX-License-Identifier: MIT
//
// What the door declares of cuBLAS for itself is what the vendor's headers declare: values of enumerations, and the
// parameters of functions as the calling convention sees them. The compiler checks it; there is nothing to run.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <type_traits>

#include "../../src/cublas/abi.h"

// A parameter as it is passed: enumerations as int, each pointer alike.
template <class T> using passed =
    std::conditional_t<std::is_pointer_v<T>, void *, std::conditional_t<std::is_enum_v<T>, int, T>>;

template <class R, class... P> struct signature {
};
template <class F> struct of;
template <class R, class... P> struct of<R(P...)> {
    using type = signature<passed<R>, passed<P>...>;
};
template <class Ours, class Vendors> constexpr bool same =
    std::is_same_v<typename of<Ours>::type, typename of<Vendors>::type>;

// Three names are overloaded in C++, for programs of before cublasComputeType_t: these are the library's own.
template <class I> using gemm_ex_t = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, I, I, I,
                                                    const void *, const void *, cudaDataType, I, const void *,
                                                    cudaDataType, I, const void *, void *, cudaDataType, I,
                                                    cublasComputeType_t, cublasGemmAlgo_t);
template <class I> using gemm_strided_ex_t = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, I, I,
                                                            I, const void *, const void *, cudaDataType, I, long long,
                                                            const void *, cudaDataType, I, long long, const void *,
                                                            void *, cudaDataType, I, long long, I, cublasComputeType_t,
                                                            cublasGemmAlgo_t);
template <class I> using gemm_batched_ex_t = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, I, I,
                                                            I, const void *, const void *const[], cudaDataType, I,
                                                            const void *const[], cudaDataType, I, const void *,
                                                            void *const[], cudaDataType, I, I, cublasComputeType_t,
                                                            cublasGemmAlgo_t);

#define SAME(name) static_assert(same<name##_fn, decltype(name)>, #name)
SAME(cublasHgemm);
SAME(cublasHgemm_64);
SAME(cublasHgemmStridedBatched);
SAME(cublasHgemmStridedBatched_64);
SAME(cublasHgemmBatched);
SAME(cublasHgemmBatched_64);
SAME(cublasSgemm_v2);
SAME(cublasSgemm_v2_64);
SAME(cublasSgemmStridedBatched);
SAME(cublasSgemmStridedBatched_64);
SAME(cublasSgemmBatched);
SAME(cublasSgemmBatched_64);
SAME(cublasGemmEx_64);
SAME(cublasGemmStridedBatchedEx_64);
SAME(cublasGemmBatchedEx_64);
SAME(cublasLtMatmul);
SAME(cublasLtMatmulDescGetAttribute);
SAME(cublasLtMatrixLayoutGetAttribute);
SAME(cublasGetStream_v2);
SAME(cublasGetPointerMode_v2);
SAME(cublasGetMathMode);
SAME(cublasGetSmCountTarget);
#define SAME_OVERLOADED(name, type)                   \
    static_assert(same<name##_fn, type<int>>, #name); \
    static_assert(std::is_same_v<decltype(static_cast<type<int> *>(name)), type<int> *>, #name)
SAME_OVERLOADED(cublasGemmEx, gemm_ex_t);
SAME_OVERLOADED(cublasGemmStridedBatchedEx, gemm_strided_ex_t);
SAME_OVERLOADED(cublasGemmBatchedEx, gemm_batched_ex_t);

#define VALUE(ours, vendors) static_assert((int)(ours) == (int)(vendors), #vendors)
VALUE(BLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS);
VALUE(BLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
VALUE(BLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
VALUE(BLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
VALUE(BLAS_OP_N, CUBLAS_OP_N);
VALUE(BLAS_OP_T, CUBLAS_OP_T);
VALUE(BLAS_OP_C, CUBLAS_OP_C);
VALUE(BLAS_FILL_MODE_FULL, CUBLAS_FILL_MODE_FULL);
VALUE(BLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_HOST);
VALUE(BLAS_POINTER_MODE_DEVICE, CUBLAS_POINTER_MODE_DEVICE);
VALUE(BLAS_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_HOST);
VALUE(BLAS_POINTER_MODE_DEVICE, CUBLASLT_POINTER_MODE_DEVICE);
VALUE(BLAS_TENSOR_OP_MATH, CUBLAS_TENSOR_OP_MATH);
VALUE(BLAS_PEDANTIC_MATH, CUBLAS_PEDANTIC_MATH);
VALUE(BLAS_TF32_TENSOR_OP_MATH, CUBLAS_TF32_TENSOR_OP_MATH);
VALUE(BLAS_PEDANTIC_MATH, (CUBLAS_PEDANTIC_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) & BLAS_MATH_MASK);
VALUE(BLAS_COMPUTE_16F, CUBLAS_COMPUTE_16F);
VALUE(BLAS_COMPUTE_16F_PEDANTIC, CUBLAS_COMPUTE_16F_PEDANTIC);
VALUE(BLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F);
VALUE(BLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_PEDANTIC);
VALUE(BLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16F);
VALUE(BLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_16BF);
VALUE(BLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
VALUE(BLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT);
VALUE(BLAS_GEMM_DEFAULT_TENSOR_OP, CUBLAS_GEMM_DEFAULT_TENSOR_OP);
VALUE(BLAS_R_32F, CUDA_R_32F);
VALUE(BLAS_R_16F, CUDA_R_16F);
VALUE(BLAS_R_16BF, CUDA_R_16BF);
VALUE(LT_ORDER_COL, CUBLASLT_ORDER_COL);
VALUE(LT_ORDER_ROW, CUBLASLT_ORDER_ROW);
VALUE(LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT);
VALUE(LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU);
VALUE(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
VALUE(LT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS);
VALUE(LT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU);
VALUE(LT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS);
VALUE(LT_LAYOUT_TYPE, CUBLASLT_MATRIX_LAYOUT_TYPE);
VALUE(LT_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ORDER);
VALUE(LT_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_ROWS);
VALUE(LT_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_COLS);
VALUE(LT_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_LD);
VALUE(LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
VALUE(LT_LAYOUT_STRIDED_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
VALUE(LT_DESC_COMPUTE_TYPE, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
VALUE(LT_DESC_SCALE_TYPE, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
VALUE(LT_DESC_POINTER_MODE, CUBLASLT_MATMUL_DESC_POINTER_MODE);
VALUE(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
VALUE(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
VALUE(LT_DESC_TRANSC, CUBLASLT_MATMUL_DESC_TRANSC);
VALUE(LT_DESC_FILL_MODE, CUBLASLT_MATMUL_DESC_FILL_MODE);
VALUE(LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
VALUE(LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
VALUE(LT_DESC_BIAS_BATCH_STRIDE, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
VALUE(LT_DESC_SM_COUNT_TARGET, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
VALUE(LT_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
VALUE(LT_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
VALUE(LT_DESC_C_SCALE_POINTER, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER);
VALUE(LT_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
VALUE(LT_DESC_AMAX_D_POINTER, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER);
VALUE(LT_DESC_BIAS_DATA_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
#if CUBLAS_VERSION >= 130000 // and what 13.0 added
VALUE(LT_LAYOUT_BATCH_MODE, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE);
VALUE(LT_BATCH_MODE_STRIDED, CUBLASLT_BATCH_MODE_STRIDED);
VALUE(LT_BATCH_MODE_POINTER_ARRAY, CUBLASLT_BATCH_MODE_POINTER_ARRAY);
VALUE(LT_DESC_D_OUT_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER);
#endif

int main()
{
    return 0;
}
