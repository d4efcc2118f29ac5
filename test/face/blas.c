/* SPDX-License-Identifier: MIT */
/*
 * blas LIBRARY - what the stand-in for cuBLAS, libturing_blas.so, answers to arguments that cuBLAS takes, and to those
 * that it refuses: then C stays as it was. To be run by `turing exec`.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F64 = 1, F16 = 2, I8 = 3, C32 = 4, BF16 = 14, I32 = 10 }; /* cudaDataType */
enum {
    BY_16F = 64,
    BY_32F = 68,
    BY_64F = 70,
    BY_32I = 72,
    FAST_16F = 74,
    FAST_16BF = 75,
    FAST_TF32 = 77
}; /* cublasComputeType_t */
enum { M = 3, N = 2, K = 4, LD = 5, ELEMENTS = LD * LD };

static int failures;

static int (*create)(void **), (*allocate)(uint64_t *, size_t), (*upload)(uint64_t, const void *, size_t),
    (*download)(void *, uint64_t, size_t);
static int (*ex)(void *, int, int, int, int, int, const void *, uint64_t, int, int, uint64_t, int, int, const void *,
                 uint64_t, int, int, int, int);
static int (*strided)(void *, int, int, int, int, int, const void *, uint64_t, int, int, long long, uint64_t, int, int,
                      long long, const void *, uint64_t, int, int, long long, int, int, int);
static int (*sgemm)(void *, int, int, int, int, int, const float *, uint64_t, int, uint64_t, int, const float *,
                    uint64_t, int);
static int (*sgemv)(void *, int, int, int, const float *, uint64_t, int, uint64_t, int, const float *, uint64_t, int);
static void *handle;
static uint64_t a, b, c;
static const float one = 1, zero = 0;

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (!found)
        printf("no %s\n", name), failures++;
    memcpy(function, &found, sizeof found);
}

static void want(const char *what, int status, int wanted)
{
    if (status != wanted)
        printf("%s: status %d, not %d\n", what, status, wanted), failures++;
}

/* Whether D is that of the product of a[i] = i and b[i] = i % 3, or, where nothing may be written, still -1. */
static void want_result(const char *what, int is_written)
{
    float d[ELEMENTS], x[ELEMENTS], y[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)i, y[i] = (float)(i % 3);
    download(d, c, sizeof d);
    for (int j = 0; j < LD; j++)
        for (int i = 0; i < LD; i++) {
            float sum = is_written && i < M && j < N ? 0 : -1;
            for (int p = 0; p < K && sum >= 0; p++)
                sum += x[i + p * LD] * y[p + j * LD];
            if (d[i + j * LD] != sum)
                printf("%s: element %d, %d is %g, not %g\n", what, i, j, (double)d[i + j * LD], (double)sum),
                    failures++;
        }
    for (int i = 0; i < ELEMENTS; i++)
        d[i] = -1;
    upload(c, d, sizeof d);
}

static void combinations(void)
{
    static const int types[] = {F32, F64, F16, BF16, I8, C32, I32};
    static const int computes[] = {BY_16F,     BY_16F + 1, BY_32F,    BY_32F + 1, BY_64F,
                                   BY_64F + 1, FAST_16F,   FAST_16BF, FAST_TF32};
    static const struct {
        int compute, ab, c;
    } served[] = {{BY_16F, F16, F16},    {BY_64F, F64, F64},   {BY_32F, F32, F32},  {BY_32F, F16, F16},
                  {BY_32F, F16, F32},    {BY_32F, BF16, BF16}, {BY_32F, BF16, F32}, {FAST_16F, F32, F32},
                  {FAST_16BF, F32, F32}, {FAST_TF32, F32, F32}};
    const uint64_t scalars[2] = {0};
    for (size_t i = 0; i < sizeof computes / sizeof *computes; i++)
        for (size_t j = 0; j < sizeof types / sizeof *types; j++)
            for (size_t k = 0; k < sizeof types / sizeof *types; k++)
                for (size_t l = 0; l < sizeof types / sizeof *types; l++) {
                    int status = NOT_SUPPORTED;
                    for (size_t s = 0; s < sizeof served / sizeof *served; s++)
                        if (served[s].compute == (computes[i] < BY_32I ? computes[i] & ~1 : computes[i]) &&
                            served[s].ab == types[j] && served[s].ab == types[k] && served[s].c == types[l])
                            status = SUCCESS;
                    char what[99];
                    snprintf(what, sizeof what, "types %d, %d, %d by %d", types[j], types[k], types[l], computes[i]);
                    want(what,
                         ex(handle, 0, 0, M, N, 0, scalars, a, types[j], LD, b, types[k], LD, scalars + 1, c, types[l],
                            LD, computes[i], -1),
                         status);
                }
    want("compute type 0", ex(handle, 0, 0, M, N, K, &one, a, F32, LD, b, F32, LD, &zero, c, F32, LD, 0, -1),
         INVALID_VALUE);
}

int main(int count, char **words)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *blas = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    int (*initialise)(unsigned), (*retain)(void **, int), (*make_current)(void *);
    void *context = NULL;
    if (!driver || !blas) {
        printf("%s\n", dlerror());
        return 1;
    }
    find(driver, "cuInit", &initialise);
    find(driver, "cuDevicePrimaryCtxRetain", &retain);
    find(driver, "cuCtxSetCurrent", &make_current);
    find(driver, "cuMemAlloc_v2", &allocate);
    find(driver, "cuMemcpyHtoD_v2", &upload);
    find(driver, "cuMemcpyDtoH_v2", &download);
    find(blas, "cublasCreate_v2", &create);
    find(blas, "cublasGemmEx", &ex);
    find(blas, "cublasGemmStridedBatchedEx", &strided);
    find(blas, "cublasSgemm_v2", &sgemm);
    find(blas, "cublasSgemv_v2", &sgemv);
    if (failures)
        return 1;
    initialise(0), retain(&context, 0), make_current(context);
    float x[ELEMENTS], y[ELEMENTS], d[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)i, y[i] = (float)(i % 3), d[i] = -1;
    allocate(&a, 2 * sizeof x), allocate(&b, 2 * sizeof y), allocate(&c, 2 * sizeof d);
    upload(a, x, sizeof x), upload(b, y, sizeof y), upload(c, d, sizeof d);
    want("create", create(&handle), SUCCESS);

    want("a product", sgemm(handle, 0, 0, M, N, K, &one, a, LD, b, LD, &zero, c, LD), SUCCESS);
    want_result("a product", 1);
    want("by GemmEx", ex(handle, 0, 0, M, N, K, &one, a, F32, LD, b, F32, LD, &zero, c, F32, LD, BY_32F, -1), SUCCESS);
    want_result("by GemmEx", 1);
    want("no handle", sgemm(NULL, 0, 0, M, N, K, &one, a, LD, b, LD, &zero, c, LD), NOT_INITIALIZED);
    want("no scalar", sgemm(handle, 0, 0, M, N, K, NULL, a, LD, b, LD, &zero, c, LD), INVALID_VALUE);
    want("an op of 3", sgemm(handle, 3, 0, M, N, K, &one, a, LD, b, LD, &zero, c, LD), INVALID_VALUE);
    want("a size of -1", sgemm(handle, 0, 0, M, -1, K, &one, a, LD, b, LD, &zero, c, LD), INVALID_VALUE);

    /* Leading dimensions: as large as columns are as they lie in memory, and one less. */
    for (int op = 0; op < 4; op++) {
        const int t_a = op & 1, t_b = op >> 1, lda = t_a ? K : M, ldb = t_b ? N : K;
        char what[99];
        for (int less = 0; less < 4; less++) {
            const int l = lda - (less == 1), r = ldb - (less == 2), o = M - (less == 3);
            const int wanted = less ? INVALID_VALUE : SUCCESS;
            snprintf(what, sizeof what, "ops %d and %d, ld %d, %d, %d", t_a, t_b, l, r, o);
            want(what, sgemm(handle, t_a, t_b, M, N, K, &one, a, l, b, r, &zero, c, o), wanted);
            if (!less)
                upload(c, d, sizeof d);
            want(what, ex(handle, t_a, t_b, M, N, K, &one, a, F32, l, b, F32, r, &zero, c, F32, o, BY_32F, -1), wanted);
            if (!less)
                upload(c, d, sizeof d);
            want(what,
                 strided(handle, t_a, t_b, M, N, K, &one, a, F32, l, 0, b, F32, r, 0, &zero, c, F32, o, ELEMENTS, 1,
                         BY_32F, -1),
                 wanted);
            if (!less)
                upload(c, d, sizeof d);
        }
    }
    want("ld 0 of nothing", sgemm(handle, 0, 0, 0, N, K, &one, a, 0, b, LD, &zero, c, 1), INVALID_VALUE);
    want("a vector", sgemv(handle, 0, M, K, &one, a, M, b, 1, &zero, c, 1), SUCCESS);
    upload(c, d, sizeof d);
    want("a vector's ld", sgemv(handle, 0, M, K, &one, a, M - 1, b, 1, &zero, c, 1), INVALID_VALUE);
    want("a vector's ld, transposed", sgemv(handle, 1, M, K, &one, a, M - 1, b, 1, &zero, c, 1), INVALID_VALUE);
    want("a vector's op", sgemv(handle, 3, M, K, &one, a, M, b, 1, &zero, c, 1), INVALID_VALUE);
    want("a vector's step", sgemv(handle, 0, M, K, &one, a, M, b, 0, &zero, c, 1), INVALID_VALUE);
    want("mixed types", ex(handle, 0, 0, M, N, K, &one, a, F32, LD, b, F16, LD, &zero, c, F32, LD, BY_32F, -1),
         NOT_SUPPORTED);
    want_result("what is refused", 0);
    combinations();
    return failures != 0;
}
