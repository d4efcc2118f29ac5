/* SPDX-License-Identifier: MIT */
/*
 * Accuracy beside cuBLAS: with half accumulation (cublasHgemm) and with float accumulation
 * (cublasGemmEx) the root mean square of our error to double precision is at most 1.1 times
 * cuBLAS's own. The limit can be moved for a study by HGEMM_TEST_CUBLAS_RATIO.
 *
 * With half accumulation that holds cuBLAS to the same instruction. mma.m16n8k8 rounds a sum after
 * 8 products, and so does all that a T4 has. From compute capability 8.0 on cuBLAS uses
 * instructions that round it after 16: half as many roundings, each of the same independent size,
 * so a root mean square smaller by sqrt(2), which the limit then allows for. The outputs are many
 * enough to fill any GPU, so that cuBLAS does not split k, which would shorten its sums.
 */
#include "util.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { R_16F = 2, COMPUTE_32F = 68, GEMM_DEFAULT = -1 }; /* CUDA_..., CUBLAS_... */

static struct {
    int (*create)(void **);
    int (*destroy)(void *);
    int (*hgemm)(void *, int, int, int, int, int, const uint16_t *, const void *, int, const void *, int,
                 const uint16_t *, void *, int);
    int (*gemm_ex)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                   const void *, void *, int, int, int, int);
} cublas;

static void *must(void *pointer, const char *what)
{
    if (!pointer) {
        printf("FAILED: %s\n", what);
        exit(1);
    }
    return pointer;
}

static void find(void *library, const char *symbol, void *function)
{
    void *address = must(dlsym(library, symbol), symbol);
    memcpy(function, &address, sizeof address);
}

static void expect_cublas(int result, const char *what)
{
    if (result != 0) {
        printf("FAILED: %s gives %d\n", what, result);
        exit(1);
    }
}

typedef struct operand_t {
    int64_t rows, columns; /* as stored, column-major without padding */
    uint16_t *host;
    void *device;
} operand_t;

static operand_t make(hgemm_handle_t handle, int64_t rows, int64_t columns, rng_t *rng)
{
    size_t bytes = (size_t)(rows * columns) * 2;
    operand_t x = {rows, columns, must(malloc(bytes), "host memory"), NULL};
    for (int64_t i = 0; i < rows * columns; i++)
        x.host[i] = hgemm_half_from_float((float)rng_symmetric(rng));
    expect_status(handle, hgemm_malloc(handle, &x.device, bytes), HGEMM_STATUS_SUCCESS, "malloc");
    expect_status(handle, hgemm_upload(handle, x.device, x.host, bytes), HGEMM_STATUS_SUCCESS, "upload");
    return x;
}

static void drop(hgemm_handle_t handle, operand_t *x)
{
    expect_status(handle, hgemm_free(handle, x->device), HGEMM_STATUS_SUCCESS, "free");
    free(x->host);
}

enum { SAMPLE = 61 }; /* every SAMPLE-th row of D is compared: a step prime to the tiles */

/* op(x) as doubles; row i of the result is contiguous where `by_rows`, column j otherwise. */
static double *unpack(const operand_t *x, int transposed, int by_rows)
{
    double *values = must(malloc((size_t)(x->rows * x->columns) * sizeof *values), "host memory");
    int64_t rows = transposed ? x->columns : x->rows, columns = transposed ? x->rows : x->columns;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            values[by_rows ? i * columns + j : i + j * rows] =
                hgemm_half_to_float(x->host[transposed ? j + i * x->rows : i + j * x->rows]);
    return values;
}

/* Root mean square of what is on the device, less the reference, over the sampled rows. */
static double error_of(hgemm_handle_t handle, const operand_t *d, const double *reference)
{
    int64_t count = d->rows * d->columns;
    uint16_t *result = must(malloc((size_t)count * 2), "host memory");
    double sum = 0;
    expect_status(handle, hgemm_synchronize(handle), HGEMM_STATUS_SUCCESS, "synchronize");
    expect_status(handle, hgemm_download(handle, result, d->device, (size_t)count * 2), HGEMM_STATUS_SUCCESS,
                  "download");
    int64_t samples = 0;
    for (int64_t j = 0; j < d->columns; j++)
        for (int64_t i = 0; i < d->rows; i += SAMPLE, samples++)
            sum += pow(hgemm_half_to_float(result[i + j * d->rows]) - reference[i + j * d->rows], 2);
    free(result);
    return sqrt(sum / (double)samples);
}

static int compare(hgemm_handle_t handle, void *peer, hgemm_accumulate_t accumulate, int op_a, int op_b, int64_t m,
                   int64_t n, int64_t k, float alpha, float beta, double limit, uint64_t seed)
{
    rng_t rng = {seed};
    operand_t a = make(handle, op_a ? k : m, op_a ? m : k, &rng);
    operand_t b = make(handle, op_b ? n : k, op_b ? k : n, &rng);
    operand_t c = make(handle, m, n, &rng);
    double *by_row = unpack(&a, op_a, 1), *by_column = unpack(&b, op_b, 0);
    double *reference = must(malloc((size_t)(m * n) * sizeof *reference), "host memory");
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i += SAMPLE) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += by_row[i * k + p] * by_column[j * k + p];
            reference[i + j * m] = (double)alpha * sum + (double)beta * hgemm_half_to_float(c.host[i + j * m]);
        }

    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = HGEMM_COL_MAJOR;
    desc.op_a = (hgemm_op_t)op_a, desc.op_b = (hgemm_op_t)op_b;
    desc.accumulate = accumulate;
    desc.m = m, desc.n = n, desc.k = k, desc.alpha = alpha, desc.beta = beta;
    desc.a = a.device, desc.lda = a.rows;
    desc.b = b.device, desc.ldb = b.rows;
    desc.c = desc.d = c.device, desc.ldc = desc.ldd = m;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    double ours = error_of(handle, &c, reference);

    expect_status(handle, hgemm_upload(handle, c.device, c.host, (size_t)(m * n) * 2), HGEMM_STATUS_SUCCESS, "upload");
    if (accumulate == HGEMM_ACCUMULATE_F16) {
        uint16_t half_alpha = hgemm_half_from_float(alpha), half_beta = hgemm_half_from_float(beta);
        expect_cublas(cublas.hgemm(peer, op_a, op_b, (int)m, (int)n, (int)k, &half_alpha, a.device, (int)a.rows,
                                   b.device, (int)b.rows, &half_beta, c.device, (int)m),
                      "cublasHgemm");
    } else {
        expect_cublas(cublas.gemm_ex(peer, op_a, op_b, (int)m, (int)n, (int)k, &alpha, a.device, R_16F, (int)a.rows,
                                     b.device, R_16F, (int)b.rows, &beta, c.device, R_16F, (int)m, COMPUTE_32F,
                                     GEMM_DEFAULT),
                      "cublasGemmEx");
    }
    double theirs = error_of(handle, &c, reference);
    int bad = !(ours <= limit * theirs);
    printf("%s%s %c%c %" PRId64 "x%" PRId64 "x%" PRId64 " alpha=%g beta=%g: rms error %.3e, cuBLAS %.3e, ratio %.3f\n",
           bad ? "FAILED: " : "", accumulate == HGEMM_ACCUMULATE_F16 ? "f16" : "f32", "nt"[op_a], "nt"[op_b], m, n, k,
           (double)alpha, (double)beta, ours, theirs, ours / theirs);
    free(by_row), free(by_column), free(reference);
    drop(handle, &a), drop(handle, &b), drop(handle, &c);
    return bad;
}

int main(void)
{
    static const char *const names[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    static const int64_t shapes[][3] = {{2048, 4096, 64}, {2048, 4096, 1024}, {4096, 2048, 2048}, {2047, 4097, 1023}};
    void *library = NULL, *peer = NULL;
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, "cuda");
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE || status == HGEMM_STATUS_OLD_DEVICE) {
        printf("SKIPPED: %s\n", hgemm_status_string(status));
        return TEST_SKIPPED;
    }
    expect_status(NULL, status, HGEMM_STATUS_SUCCESS, "hgemm_create");
    for (int i = 0; i < 4 && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library) {
        printf("SKIPPED: cuBLAS was not found\n");
        hgemm_destroy(handle);
        return TEST_SKIPPED;
    }
    find(library, "cublasCreate_v2", &cublas.create);
    find(library, "cublasDestroy_v2", &cublas.destroy);
    find(library, "cublasHgemm", &cublas.hgemm);
    find(library, "cublasGemmEx", &cublas.gemm_ex);
    expect_cublas(cublas.create(&peer), "cublasCreate");

    const char *ratio = getenv("HGEMM_TEST_CUBLAS_RATIO");
    double limit = ratio && *ratio ? strtod(ratio, NULL) : 1.1;
    hgemm_device_info_t device;
    expect_status(handle, hgemm_get_device_info(handle, &device), HGEMM_STATUS_SUCCESS, "device info");
    double half_limit = device.compute_major >= 8 ? limit * sqrt(2) : limit;
    printf("limits: f16 %.3f, f32 %.3f\n", half_limit, limit);
    uint64_t seed = test_seed();
    int failures = 0;
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int ops = 0; ops < 4; ops++)
                failures += compare(handle, peer, (hgemm_accumulate_t)accumulate, ops >> 1, ops & 1, shapes[s][0],
                                    shapes[s][1], shapes[s][2], ops % 3 ? 0.5f : 1, ops % 2 ? 0.25f : 0,
                                    accumulate == HGEMM_ACCUMULATE_F16 ? half_limit : limit, seed++);
    cublas.destroy(peer);
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    printf("%d failures\n", failures);
    return failures != 0;
}
