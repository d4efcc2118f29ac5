/* SPDX-License-Identifier: MIT */
/*
 * blas.c - libturing_blas.so: what is left of cuBLAS where its products are the door's (src/cublas).
 *
 * NVIDIA's cuBLAS brings NVIDIA's runtime with it, which does not run on the emulated T4. Preloaded after the door,
 *
 *   LD_PRELOAD=libhgemm_cublas.so:libturing_blas.so turing exec python program.py
 *
 * this gives the program its handles. Plain products that the door hands on, of FP32 and FP64 and such, are computed
 * by the host, in double precision and without a T4's time; what else there is in cuBLAS is refused by name. Arguments
 * that cuBLAS does not take get the status that it gives them.
 * Descriptors of cuBLASLt are the real ones: they need no GPU.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOCATION_FAILED = 3,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15
};

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

/* ---- memory of the device ------------------------------------------------------------------- */

/* Copies between any two addresses, by the driver, which is this folder's. 0: done. */
static int copy(void *to, const void *from, size_t bytes)
{
    static int (*driver)(uint64_t, uint64_t, size_t);
    if (!driver) {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY), *function = library ? dlsym(library, "cuMemcpy") : NULL;
        memcpy(&driver, &function, sizeof driver);
    }
    return driver ? driver((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes) : NOT_INITIALIZED;
}

/* ---- numbers -------------------------------------------------------------------------------- */

enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 }; /* cudaDataType */

static size_t size_of(int type)
{
    return type == R_64F ? 8 : type == R_32F ? 4 : type == R_16F || type == R_16BF ? 2 : 0;
}

static double load(int type, const void *array, size_t i)
{
    double d;
    float f;
    uint16_t h;
    uint32_t bits;
    switch (type) {
    case R_64F: memcpy(&d, (const char *)array + 8 * i, 8); return d;
    case R_32F: memcpy(&f, (const char *)array + 4 * i, 4); return (double)f;
    default: memcpy(&h, (const char *)array + 2 * i, 2);
    }
    if (type == R_16BF) {
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    d = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
        : exponent == 0 ? ldexp(mantissa, -24)
                        : ldexp(mantissa + 1024, exponent - 25);
    return h >> 15 ? -d : d;
}

/* The 16-bit number with `bits` of mantissa and exponents of at least `least` that is nearest, ties to even. */
static uint16_t round_to_16(double d, int bits, int least, int most)
{
    const uint16_t sign = signbit(d) ? 0x8000 : 0, infinity = (uint16_t)(0x7fff >> bits << bits);
    int exponent;
    d = fabs(d);
    if (isnan(d))
        return 0x7fff;
    frexp(d, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    const double units = d < HUGE_VAL ? nearbyint(ldexp(d, bits - exponent)) : 0;
    if (d == HUGE_VAL || ldexp(units, exponent - bits) >= ldexp(1, most + 1))
        return (uint16_t)(sign | infinity);
    const int whole = (int)units; /* which may have been rounded up to a power of two */
    return (uint16_t)(sign | (whole >> bits ? ((exponent - least + 1) << bits) + (whole - (1 << bits)) : whole));
}

static void store(int type, void *array, size_t i, double value)
{
    const float f = (float)value;
    uint16_t h;
    switch (type) {
    case R_64F: memcpy((char *)array + 8 * i, &value, 8); return;
    case R_32F: memcpy((char *)array + 4 * i, &f, 4); return;
    default:
        h = type == R_16F ? round_to_16(value, 10, -14, 15) : round_to_16((double)f, 7, -126, 127);
        memcpy((char *)array + 2 * i, &h, 2);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

typedef struct matrix { /* column-major, on the device */
    const void *data;
    int type, op; /* op: 0 as it is, else transposed */
    int64_t ld, stride;
} matrix_t;

/* op(matrix), rows x columns, as doubles and column-major; NULL: it cannot be had. */
static double *fetch(const matrix_t *m, int64_t rows, int64_t columns, int64_t batch)
{
    const int64_t inner = m->op ? columns : rows, outer = m->op ? rows : columns;
    const size_t size = size_of(m->type), count = (size_t)(m->ld * (outer - 1) + inner);
    char *raw = size ? malloc(count * size) : NULL;
    double *out = malloc((size_t)(rows * columns) * sizeof *out);
    if (!raw || !out || copy(raw, (const char *)m->data + (size_t)(batch * m->stride) * size, count * size)) {
        free(raw);
        free(out);
        return NULL;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            out[i + j * rows] = load(m->type, raw, (size_t)(m->op ? j + i * m->ld : i + j * m->ld));
    free(raw);
    return out;
}

static int scalar(const blas_t *handle, int type, const void *at, double *value)
{
    char bytes[8];
    if (!at || (handle->pointer_mode && copy(bytes, at, size_of(type))))
        return INVALID_VALUE;
    *value = load(type, handle->pointer_mode ? bytes : at, 0);
    return SUCCESS;
}

/* C = alpha op(A) op(B) + beta C. */
static int multiply(const matrix_t *a, const matrix_t *b, const matrix_t *c, int64_t m, int64_t n, int64_t k,
                    int64_t batch, double alpha, double beta)
{
    const size_t size = size_of(c->type);
    double *x = k ? fetch(a, m, k, batch) : NULL, *y = k ? fetch(b, k, n, batch) : NULL;
    double *z = beta != 0 ? fetch(c, m, n, batch) : calloc((size_t)(m * n), sizeof *z);
    char *column = malloc((size_t)m * size + 1);
    int status = (k && (!x || !y)) || !z || !column ? ALLOCATION_FAILED : SUCCESS;
    for (int64_t j = 0; j < n && status == SUCCESS; j++) {
        double *d = z + j * m;
        for (int64_t i = 0; i < m; i++)
            d[i] *= beta;
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = 0; i < m; i++)
                d[i] += alpha * x[i + p * m] * y[p + j * k];
        for (int64_t i = 0; i < m; i++)
            store(c->type, column, (size_t)i, d[i]);
        if (copy((char *)(uintptr_t)c->data + (size_t)(batch * c->stride + j * c->ld) * size, column, (size_t)m * size))
            status = EXECUTION_FAILED;
    }
    free(x);
    free(y);
    free(z);
    free(column);
    return status;
}

/* Whether the columns of a matrix, of so many rows as it lies in memory, are far enough apart. */
static int ld_holds(int64_t ld, int64_t rows)
{
    return ld >= (rows > 1 ? rows : 1);
}

static int product(blas_t *handle, matrix_t a, matrix_t b, matrix_t c, int64_t m, int64_t n, int64_t k, int64_t batch,
                   int type_scalar, const void *alpha, const void *beta, const char *name)
{
    double x, y;
    if (!handle)
        return NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batch < 0 || (unsigned)a.op > 2 || (unsigned)b.op > 2 ||
        !ld_holds(a.ld, a.op ? k : m) || !ld_holds(b.ld, b.op ? n : k) || !ld_holds(c.ld, m) || !alpha || !beta)
        return INVALID_VALUE;
    if (!size_of(a.type) || !size_of(b.type) || !size_of(c.type))
        return refuse(name);
    if (scalar(handle, type_scalar, alpha, &x) || scalar(handle, type_scalar, beta, &y))
        return INVALID_VALUE;
    int status = SUCCESS;
    for (int64_t i = 0; i < batch && m && n && status == SUCCESS; i++)
        status = multiply(&a, &b, &c, m, n, x != 0 ? k : 0, i, x, y); /* of A and B nothing is read where alpha is 0 */
    return status;
}

/* cublasComputeType_t, each with its scalars, and the types that it has products of: A and B alike, and C. */
enum {
    COMPUTE_16F = 64,
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_32I = 72,
    FAST_16F = 74,
    FAST_16BF = 75,
    FAST_TF32 = 77
};

static int scalar_type(int compute)
{
    return compute == COMPUTE_16F ? R_16F : compute == COMPUTE_64F ? R_64F : R_32F;
}

static int is_combination(int compute, int type_ab, int type_c)
{
    switch (compute) {
    case COMPUTE_16F: return type_ab == R_16F && type_c == R_16F;
    case COMPUTE_64F: return type_ab == R_64F && type_c == R_64F;
    case COMPUTE_32F:
        return (type_ab == R_32F && type_c == R_32F) ||
               ((type_ab == R_16F || type_ab == R_16BF) && (type_c == type_ab || type_c == R_32F));
    default: return type_ab == R_32F && type_c == R_32F;
    }
}

static int product_ex(blas_t *handle, matrix_t a, matrix_t b, matrix_t c, int64_t m, int64_t n, int64_t k,
                      int64_t batch, int compute, const void *alpha, const void *beta, const char *name)
{
    const int is_pedantic = compute <= COMPUTE_32I + 1 && compute % 2;
    const int kind = is_pedantic ? compute - 1 : compute;
    if (!handle)
        return NOT_INITIALIZED;
    if (kind == COMPUTE_32I)
        return refuse(name);
    if (kind != COMPUTE_16F && kind != COMPUTE_32F && kind != COMPUTE_64F && kind != FAST_16F && kind != FAST_16BF &&
        kind != FAST_TF32)
        return INVALID_VALUE;
    const int is_served = size_of(a.type) && size_of(b.type) && size_of(c.type);
    if (a.type != b.type || (is_served && !is_combination(kind, a.type, c.type)))
        return NOT_SUPPORTED;
    return product(handle, a, b, c, m, n, k, batch, scalar_type(kind), alpha, beta, name);
}

int cublasGemmStridedBatchedEx(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                               const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b,
                               int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
                               long long stride_c, int batch, int compute, int algorithm);
int cublasGemmStridedBatchedEx(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                               const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b,
                               int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
                               long long stride_c, int batch, int compute, int algorithm)
{
    (void)algorithm;
    return product_ex(handle, (matrix_t){a, type_a, op_a, lda, stride_a}, (matrix_t){b, type_b, op_b, ldb, stride_b},
                      (matrix_t){c, type_c, 0, ldc, stride_c}, m, n, k, batch, compute, alpha, beta, __func__);
}

int cublasGemmEx(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                 int compute, int algorithm);
int cublasGemmEx(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                 int compute, int algorithm)
{
    (void)algorithm;
    return product_ex(handle, (matrix_t){a, type_a, op_a, lda, 0}, (matrix_t){b, type_b, op_b, ldb, 0},
                      (matrix_t){c, type_c, 0, ldc, 0}, m, n, k, 1, compute, alpha, beta, __func__);
}

/* y = alpha op(A) x + beta y is a product with rows that are inc apart. */
#define PRODUCTS(letter, type)                                                                                         \
    int cublas##letter##gemm_v2(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,            \
                                const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc);   \
    int cublas##letter##gemm_v2(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,            \
                                const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)    \
    {                                                                                                                  \
        return product(handle, (matrix_t){a, type, op_a, lda, 0}, (matrix_t){b, type, op_b, ldb, 0},                   \
                       (matrix_t){c, type, 0, ldc, 0}, m, n, k, 1, type, alpha, beta, __func__);                       \
    }                                                                                                                  \
    int cublas##letter##gemmStridedBatched(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, \
                                           const void *a, int lda, long long stride_a, const void *b, int ldb,         \
                                           long long stride_b, const void *beta, void *c, int ldc, long long stride_c, \
                                           int batch);                                                                 \
    int cublas##letter##gemmStridedBatched(blas_t *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, \
                                           const void *a, int lda, long long stride_a, const void *b, int ldb,         \
                                           long long stride_b, const void *beta, void *c, int ldc, long long stride_c, \
                                           int batch)                                                                  \
    {                                                                                                                  \
        return product(handle, (matrix_t){a, type, op_a, lda, stride_a}, (matrix_t){b, type, op_b, ldb, stride_b},     \
                       (matrix_t){c, type, 0, ldc, stride_c}, m, n, k, batch, type, alpha, beta, __func__);            \
    }                                                                                                                  \
    int cublas##letter##gemv_v2(blas_t *handle, int op, int m, int n, const void *alpha, const void *a, int lda,       \
                                const void *x, int step_x, const void *beta, void *y, int step_y);                     \
    int cublas##letter##gemv_v2(blas_t *handle, int op, int m, int n, const void *alpha, const void *a, int lda,       \
                                const void *x, int step_x, const void *beta, void *y, int step_y)                      \
    {                                                                                                                  \
        if (!step_x || !step_y || (unsigned)op > 2)                                                                    \
            return handle ? INVALID_VALUE : NOT_INITIALIZED;                                                           \
        if (step_x < 0 || step_y < 0)                                                                                  \
            return refuse(__func__);                                                                                   \
        return product(handle, (matrix_t){x, type, 0, step_x, 0}, (matrix_t){a, type, !op, lda, 0},                    \
                       (matrix_t){y, type, 0, step_y, 0}, 1, op ? n : m, op ? m : n, 1, type, alpha, beta, __func__);  \
    }
PRODUCTS(S, R_32F)
PRODUCTS(D, R_64F)

/* ---- what is refused ------------------------------------------------------------------------ */

#define REFUSED(name)         \
    int name(void);           \
    int name(void)            \
    {                         \
        return refuse(#name); \
    }
#define REFUSED_CZ(verb, suffix) REFUSED(cublasC##verb##suffix) REFUSED(cublasZ##verb##suffix)
#define REFUSED_SDCZ(verb, suffix) \
    REFUSED(cublasS##verb##suffix) REFUSED(cublasD##verb##suffix) REFUSED_CZ(verb, suffix)
REFUSED(cublasHgemm)
REFUSED(cublasHgemmBatched)
REFUSED(cublasHgemmStridedBatched)
REFUSED(cublasGemmBatchedEx)
REFUSED(cublasSgemmEx)
REFUSED(cublasDotEx)
REFUSED(cublasLtMatmul)
REFUSED_CZ(gemm, _v2)
REFUSED_CZ(gemmStridedBatched, )
REFUSED_CZ(gemv, _v2)
REFUSED_SDCZ(gemmBatched, )
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
