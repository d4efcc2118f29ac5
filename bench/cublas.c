/* SPDX-License-Identifier: MIT */
#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OP_N = 0,
    OP_T = 1,
    R_32F = 0,
    R_16F = 2,
    R_16BF = 14,
    COMPUTE_32F = 68,
    COMPUTE_32F_FAST_TF32 = 77,
    ALGORITHM_DEFAULT = -1
}; /* of cublas_api.h */

struct cublas_t {
    void *handle;
    int (*destroy)(void *);
    int (*version)(void *, int *);
    int (*hgemm)(void *, int, int, int, int, int, const uint16_t *, const void *, int, const void *, int,
                 const uint16_t *, void *, int);
    int (*gemm_ex)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                   const void *, void *, int, int, int, int);
    int (*hgemm_batched)(void *, int, int, int, int, int, const uint16_t *, const void *, int, long long, const void *,
                         int, long long, const uint16_t *, void *, int, long long, int);
    int (*gemm_batched_ex)(void *, int, int, int, int, int, const void *, const void *, int, int, long long,
                           const void *, int, int, long long, const void *, void *, int, int, long long, int, int, int);
    int (*sgemm)(void *, int, int, int, int, int, const float *, const void *, int, const void *, int, const float *,
                 void *, int);
    int (*sgemm_batched)(void *, int, int, int, int, int, const float *, const void *, int, long long, const void *,
                         int, long long, const float *, void *, int, long long, int);
};

/* POSIX, not C, lets an object pointer carry a function: it is copied, not converted. */
static int find(void *library, const char *symbol, void *function)
{
    void *address = library ? dlsym(library, symbol) : NULL;
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

int cublas_make_current(int ordinal)
{
    int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*set_current)(void *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context;
    int device;
    return find(driver, "cuInit", &init) && find(driver, "cuDeviceGet", &device_get) &&
           find(driver, "cuDevicePrimaryCtxRetain", &retain) && find(driver, "cuCtxSetCurrent", &set_current) &&
           init(0) == 0 && device_get(&device, ordinal) == 0 && retain(&context, device) == 0 &&
           set_current(context) == 0;
}

cublas_t *cublas_open(int ordinal, char why[CUBLAS_WORDS])
{
    const char *names[] = {getenv("HGEMM_CUBLAS_LIBRARY"), "libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        if (names[i])
            library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, CUBLAS_WORDS,
                 "libcublas was not found: put it on LD_LIBRARY_PATH or its path in HGEMM_CUBLAS_LIBRARY");
        return NULL;
    }
    cublas_t *cublas = calloc(1, sizeof *cublas);
    int (*create)(void **);
    if (cublas && find(library, "cublasCreate_v2", &create) && find(library, "cublasDestroy_v2", &cublas->destroy) &&
        find(library, "cublasGetVersion_v2", &cublas->version) && find(library, "cublasHgemm", &cublas->hgemm) &&
        find(library, "cublasGemmEx", &cublas->gemm_ex) &&
        find(library, "cublasHgemmStridedBatched", &cublas->hgemm_batched) &&
        find(library, "cublasGemmStridedBatchedEx", &cublas->gemm_batched_ex) &&
        find(library, "cublasSgemm_v2", &cublas->sgemm) &&
        find(library, "cublasSgemmStridedBatched", &cublas->sgemm_batched) && cublas_make_current(ordinal) &&
        create(&cublas->handle) == 0)
        return cublas;
    snprintf(why, CUBLAS_WORDS, "libcublas was found but could not be started");
    free(cublas);
    return NULL;
}

void cublas_close(cublas_t *cublas)
{
    if (cublas)
        cublas->destroy(cublas->handle);
    free(cublas);
}

int cublas_version(const cublas_t *cublas)
{
    int version = 0;
    cublas->version(cublas->handle, &version);
    return version;
}

/* cuBLAS is column-major: a row-major problem is handed over transposed, as
 * D^T = op(B)^T * op(A)^T, which only exchanges the operands. */
typedef struct columns_t {
    int op_a, op_b, m, n, k, lda, ldb, ldd, batch;
    const void *a, *b;
    long long stride_a, stride_b, stride_d;
} columns_t;

static columns_t as_columns(const hgemm_desc_t *p)
{
    const int op_a = p->op_a == HGEMM_OP_T ? OP_T : OP_N, op_b = p->op_b == HGEMM_OP_T ? OP_T : OP_N;
    columns_t q = {.op_a = op_a,
                   .op_b = op_b,
                   .m = (int)p->m,
                   .n = (int)p->n,
                   .k = (int)p->k,
                   .lda = (int)p->lda,
                   .ldb = (int)p->ldb,
                   .ldd = (int)p->ldd,
                   .batch = (int)p->batch,
                   .a = p->a,
                   .b = p->b,
                   .stride_a = p->stride_a,
                   .stride_b = p->stride_b,
                   .stride_d = p->stride_d};
    if (p->layout == HGEMM_ROW_MAJOR) {
        q.op_a = op_b, q.op_b = op_a;
        q.m = (int)p->n, q.n = (int)p->m;
        q.a = p->b, q.lda = (int)p->ldb, q.stride_a = p->stride_b;
        q.b = p->a, q.ldb = (int)p->lda, q.stride_b = p->stride_a;
    }
    return q;
}

int cublas_multiply(const cublas_t *cublas, const hgemm_desc_t *desc)
{
    return cublas_multiply_by(cublas, desc, 0);
}

int cublas_multiply_by(const cublas_t *cublas, const hgemm_desc_t *desc, int tf32)
{
    const columns_t q = as_columns(desc);
    static const int types[] = {[HGEMM_TYPE_F16] = R_16F, [HGEMM_TYPE_F32] = R_32F, [HGEMM_TYPE_BF16] = R_16BF};
    const int type = types[desc->type_a], is_half = desc->accumulate == HGEMM_ACCUMULATE_F16;
    const int compute = tf32 ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F;
    const uint16_t half_alpha = hgemm_half_from_float(desc->alpha), half_beta = hgemm_half_from_float(desc->beta);
    void *blas = cublas->handle;
    if (is_half && q.batch == 1)
        return cublas->hgemm(blas, q.op_a, q.op_b, q.m, q.n, q.k, &half_alpha, q.a, q.lda, q.b, q.ldb, &half_beta,
                             desc->d, q.ldd);
    if (is_half)
        return cublas->hgemm_batched(blas, q.op_a, q.op_b, q.m, q.n, q.k, &half_alpha, q.a, q.lda, q.stride_a, q.b,
                                     q.ldb, q.stride_b, &half_beta, desc->d, q.ldd, q.stride_d, q.batch);
    if (type == R_32F && !tf32 && q.batch == 1)
        return cublas->sgemm(blas, q.op_a, q.op_b, q.m, q.n, q.k, &desc->alpha, q.a, q.lda, q.b, q.ldb, &desc->beta,
                             desc->d, q.ldd);
    if (type == R_32F && !tf32)
        return cublas->sgemm_batched(blas, q.op_a, q.op_b, q.m, q.n, q.k, &desc->alpha, q.a, q.lda, q.stride_a, q.b,
                                     q.ldb, q.stride_b, &desc->beta, desc->d, q.ldd, q.stride_d, q.batch);
    if (q.batch == 1)
        return cublas->gemm_ex(blas, q.op_a, q.op_b, q.m, q.n, q.k, &desc->alpha, q.a, type, q.lda, q.b, type, q.ldb,
                               &desc->beta, desc->d, type, q.ldd, compute, ALGORITHM_DEFAULT);
    return cublas->gemm_batched_ex(blas, q.op_a, q.op_b, q.m, q.n, q.k, &desc->alpha, q.a, type, q.lda, q.stride_a, q.b,
                                   type, q.ldb, q.stride_b, &desc->beta, desc->d, type, q.ldd, q.stride_d, q.batch,
                                   compute, ALGORITHM_DEFAULT);
}
