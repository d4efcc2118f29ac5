/* SPDX-License-Identifier: MIT */
/*
 * blas.c - libturing_blas.so: what is left of cuBLAS where its products are the door's (src/cublas).
 *
 * NVIDIA's cuBLAS brings NVIDIA's runtime with it, which does not run on the emulated T4. Preloaded after the door,
 *
 *   LD_PRELOAD=libhgemm_cublas.so:libturing_blas.so turing exec python program.py
 *
 * this gives the program its handles, and refuses by name each product that the door hands on. Descriptors of
 * cuBLASLt are the real ones: they need no GPU.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOCATION_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

typedef struct blas {
    void *stream;
    int pointer_mode, math_mode, atomics_mode, sm_count;
} blas_t;

int cublasCreate_v2(blas_t **handle);
int cublasCreate_v2(blas_t **handle)
{
    if (!handle)
        return INVALID_VALUE;
    *handle = calloc(1, sizeof **handle);
    return *handle ? SUCCESS : ALLOCATION_FAILED;
}

int cublasDestroy_v2(blas_t *handle);
int cublasDestroy_v2(blas_t *handle)
{
    free(handle);
    return handle ? SUCCESS : NOT_INITIALIZED;
}

int cublasLtCreate(blas_t **handle);
int cublasLtCreate(blas_t **handle)
{
    return cublasCreate_v2(handle);
}

int cublasLtDestroy(blas_t *handle);
int cublasLtDestroy(blas_t *handle)
{
    return cublasDestroy_v2(handle);
}

int cublasSetWorkspace_v2(blas_t *handle, void *workspace, size_t bytes);
int cublasSetWorkspace_v2(blas_t *handle, void *workspace, size_t bytes)
{
    (void)workspace, (void)bytes;
    return handle ? SUCCESS : NOT_INITIALIZED;
}

#define PROPERTY(setter, getter, type, field)                \
    int setter(blas_t *handle, type value);                  \
    int setter(blas_t *handle, type value)                   \
    {                                                        \
        if (!handle)                                         \
            return NOT_INITIALIZED;                          \
        handle->field = value;                               \
        return SUCCESS;                                      \
    }                                                        \
    int getter(blas_t *handle, type *value);                 \
    int getter(blas_t *handle, type *value)                  \
    {                                                        \
        if (!handle || !value)                               \
            return handle ? INVALID_VALUE : NOT_INITIALIZED; \
        *value = handle->field;                              \
        return SUCCESS;                                      \
    }
PROPERTY(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
PROPERTY(cublasSetMathMode, cublasGetMathMode, int, math_mode)
PROPERTY(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics_mode)
PROPERTY(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count)

/* The door does not look at the algorithm of a product. */
typedef struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
} heuristic_t;

int cublasLtMatmulAlgoGetHeuristic(blas_t *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, heuristic_t *results, int *count);
int cublasLtMatmulAlgoGetHeuristic(blas_t *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, heuristic_t *results, int *count)
{
    (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (!handle)
        return NOT_INITIALIZED;
    if (!desc || wanted < 1 || !results || !count)
        return INVALID_VALUE;
    memset(results, 0, sizeof *results);
    *count = 1;
    return SUCCESS;
}

static int refuse(const char *name)
{
    fflush(stdout);
    fprintf(stderr, "turing: %s: there is no cuBLAS on the emulated T4, and the door does not run this call\n", name);
    return NOT_SUPPORTED;
}

#define REFUSED(name)         \
    int name(void);           \
    int name(void)            \
    {                         \
        return refuse(#name); \
    }
#define REFUSED_64(name) REFUSED(name) REFUSED(name##_64)
#define REFUSED_SDCZ(verb, suffix) \
    REFUSED(cublasS##verb##suffix) \
    REFUSED(cublasD##verb##suffix) REFUSED(cublasC##verb##suffix) REFUSED(cublasZ##verb##suffix)
REFUSED_64(cublasHgemm)
REFUSED_64(cublasHgemmBatched)
REFUSED_64(cublasHgemmStridedBatched)
REFUSED_64(cublasGemmEx)
REFUSED_64(cublasGemmBatchedEx)
REFUSED_64(cublasGemmStridedBatchedEx)
REFUSED_64(cublasSgemmEx)
REFUSED_64(cublasDotEx)
REFUSED(cublasLtMatmul)
REFUSED_SDCZ(gemm, _v2)
REFUSED_SDCZ(gemm, _v2_64)
REFUSED_SDCZ(gemmBatched, )
REFUSED_SDCZ(gemmStridedBatched, )
REFUSED_SDCZ(gemv, _v2)
REFUSED_SDCZ(trsm, _v2)
REFUSED_SDCZ(trsmBatched, )
REFUSED_SDCZ(getrfBatched, )
REFUSED_SDCZ(getrsBatched, )
REFUSED_SDCZ(geqrfBatched, )
REFUSED_SDCZ(gelsBatched, )
REFUSED(cublasSdot_v2)
REFUSED(cublasDdot_v2)
REFUSED(cublasCdotu_v2)
REFUSED(cublasCdotc_v2)
REFUSED(cublasZdotu_v2)
REFUSED(cublasZdotc_v2)
