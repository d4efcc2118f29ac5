/* SPDX-License-Identifier: MIT */
/* cuBLAS, to be measured beside. It is not linked: where no library is found there is none. */
#ifndef HGEMM_BENCH_CUBLAS_H
#define HGEMM_BENCH_CUBLAS_H

#include "hgemm.h"

typedef struct cublas_t cublas_t;

enum { CUBLAS_WORDS = 200 };

/* Opens libcublas (the path in HGEMM_CUBLAS_LIBRARY, else as the dynamic linker finds it) for the GPU of that CUDA
 * ordinal and makes its primary context current. NULL and words in `why` where it cannot. */
cublas_t *cublas_open(int ordinal, char why[CUBLAS_WORDS]);
void cublas_close(cublas_t *cublas);        /* NULL is allowed */
int cublas_version(const cublas_t *cublas); /* major * 10000 + minor * 100 + patch */

/* Enqueues D = alpha * op(A) * op(B) + beta * D on the default stream, where D is the descriptor's and of the type of A
 * and B; bias, activation, gate and c are not looked at. Half accumulation is cublasHgemm, with half scalars, single
 * precision cublasGemmEx, of floats cublasSgemm; of a strided batch cublasHgemmStridedBatched and so on. 0 on success.
 */
int cublas_multiply(const cublas_t *cublas, const hgemm_desc_t *desc);

/* The same, where A and B are FP32 by TF32's tensor cores if `tf32`. */
int cublas_multiply_by(const cublas_t *cublas, const hgemm_desc_t *desc, int tf32);

/* Makes the primary context of the GPU of that ordinal current: cuBLAS computes there, else on the first GPU. 0 where
 * it cannot. */
int cublas_make_current(int ordinal);

#endif
