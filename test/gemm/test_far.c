/* SPDX-License-Identifier: MIT */
/*
 * Rows that are more than 4 GiB apart: of a stored A from which rows are gathered, of a D to which they are scattered,
 * of operands with a large leading dimension, and matrices of a batch. Little of that memory is touched, which the
 * emulated T4 then does not take from the host.
 *
 *     test_far [KERNEL]     for one kernel alone
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

enum { M = 40, N = 24, K = 136, FAR_BYTES_MIB = 5 << 10 };

#define FAR_BYTES ((size_t)FAR_BYTES_MIB << 20)

static hgemm_handle_t handle;
static void *far_memory, *near_memory, *lists[2];
static int32_t rows_32[M];
static int64_t rows_64[M];
static unsigned char line[K * sizeof(float)];
static int failures;

static void must(hgemm_status_t status, const char *what)
{
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, what);
}

static int64_t bytes_of(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F32 ? 4 : 2;
}

/* Puts a number into `line`. */
static void set(int at, int value, hgemm_type_t type)
{
    const float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t half = type == HGEMM_TYPE_BF16 ? (uint16_t)(bits >> 16) : hgemm_half_from_float(x);
    if (type == HGEMM_TYPE_F32)
        memcpy(line + at * 4, &x, sizeof x);
    else
        memcpy(line + at * 2, &half, sizeof half);
}

/* Writes the first `count` of `line`, a part of a matrix that begins at `base`, from its element `at` on. */
static void write_line(void *base, int64_t at, int count, hgemm_type_t type)
{
    must(hgemm_upload(handle, (char *)base + at * bytes_of(type), line, (size_t)(count * bytes_of(type))),
         "hgemm_upload");
}

static int value_a(int row, int k)
{
    return (row * 5 + k * 3) % 7 - 3;
}

static int value_b(int k, int column)
{
    return (k * 2 + column * 5) % 5 - 2;
}

/* Where rows are, so that the last of `extent` is among them, and no two are the same. */
static void spread_rows(int64_t extent)
{
    for (int i = 0; i < M; i++) {
        rows_64[i] = i % 2 ? extent - 1 - i * 3 : (extent / M) * i;
        rows_32[i] = (int32_t)rows_64[i];
    }
    must(hgemm_upload(handle, lists[0], rows_32, sizeof rows_32), "hgemm_upload");
    must(hgemm_upload(handle, lists[1], rows_64, sizeof rows_64), "hgemm_upload");
}

/* Puts M rows (or, transposed, columns) of A in far memory, at rows_64 or in their order. */
static void place_a(const hgemm_desc_t *desc, int is_listed)
{
    for (int i = 0; i < M; i++) {
        const int64_t at = is_listed ? rows_64[i] : i;
        for (int k = 0; k < K; k++) {
            const int is_row = desc->op_a == HGEMM_OP_N;
            set(is_row ? k : 0, value_a(i, k), desc->type_a);
            if (!is_row)
                write_line(far_memory, k * desc->lda + at, 1, desc->type_a);
        }
        if (desc->op_a == HGEMM_OP_N)
            write_line(far_memory, at * desc->lda, K, desc->type_a);
    }
}

static void place_b(const hgemm_desc_t *desc, void *where)
{
    for (int k = 0; k < K; k++) {
        for (int j = 0; j < N; j++)
            set(j, value_b(k, j), desc->type_b);
        write_line(where, k * desc->ldb, N, desc->type_b);
    }
}

/* Row i of D is where it should be. */
static void expect_row(const hgemm_desc_t *desc, const void *where, int i, const char *what)
{
    float row[N];
    must(hgemm_download(handle, row, where, sizeof row), "hgemm_download");
    for (int j = 0; j < N; j++) {
        int sum = 0;
        for (int k = 0; k < K; k++)
            sum += value_a(i, k) * value_b(k, j);
        if (row[j] == (float)sum)
            continue;
        printf("FAILED: %s, kernel %d, op_a %d, sums %d, type %d: D[%d][%d] is %g, not %d\n", what, desc->kernel,
               (int)desc->op_a, (int)desc->accumulate, (int)desc->type_a, i, j, (double)row[j], sum);
        failures++;
        return;
    }
}

/* Far memory is A, or D where `desc` has no A yet; near memory has the others. */
static hgemm_desc_t describe(int kernel, hgemm_accumulate_t accumulate, hgemm_type_t type)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = kernel, desc.accumulate = accumulate;
    desc.m = M, desc.n = N, desc.k = K;
    desc.type_a = desc.type_b = type, desc.type_d = HGEMM_TYPE_F32;
    desc.scale_a = desc.scale_b = type == HGEMM_TYPE_BF16 ? 1 : 0;
    desc.a = far_memory, desc.lda = K;
    desc.b = near_memory, desc.ldb = N;
    desc.d = (char *)near_memory + (1 << 16), desc.ldd = N;
    return desc;
}

/* 0 if the kernel does not do such. */
static int run(const hgemm_desc_t *desc)
{
    const hgemm_status_t status = hgemm_run_desc(handle, desc);
    if (status == HGEMM_STATUS_NOT_SUPPORTED && desc->kernel != HGEMM_KERNEL_AUTO)
        return 0;
    must(status, "hgemm_run_desc");
    return 1;
}

static void run_and_expect(const hgemm_desc_t *desc, const char *what)
{
    if (run(desc))
        for (int i = 0; i < M; i++)
            expect_row(desc, (float *)desc->d + i * desc->ldd, i, what);
}

/* Rows of whole chunks of 16 bytes; others; columns of a transposed A. */
static void gather(hgemm_desc_t desc)
{
    static const int64_t lds[] = {K, K + 8, K + 1};
    for (int i = 0; i < 3; i++)
        for (int is_64 = 0; is_64 < 2; is_64++) {
            desc.lda = lds[i];
            desc.gather_a = lists[is_64], desc.index_type = is_64 ? HGEMM_INDEX_I64 : HGEMM_INDEX_I32;
            spread_rows((int64_t)FAR_BYTES / bytes_of(desc.type_a) / desc.lda);
            place_a(&desc, 1);
            run_and_expect(&desc, "gathered rows");
        }
    desc.op_a = HGEMM_OP_T;
    desc.lda = 32000000 / bytes_of(desc.type_a); /* K of them are over 4 GiB, a k-tile of them is not */
    desc.gather_a = lists[0], desc.index_type = HGEMM_INDEX_I32;
    spread_rows(desc.lda);
    place_a(&desc, 1);
    run_and_expect(&desc, "gathered columns");
}

static void scatter(hgemm_desc_t desc)
{
    desc.a = (char *)near_memory + (1 << 16), desc.d = far_memory;
    desc.scatter_d = lists[1], desc.index_type = HGEMM_INDEX_I64;
    spread_rows((int64_t)(FAR_BYTES / 4) / desc.ldd);
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < K; k++)
            set(k, value_a(i, k), desc.type_a);
        write_line((void *)(uintptr_t)desc.a, i * K, K, desc.type_a);
    }
    if (run(&desc))
        for (int i = 0; i < M; i++)
            expect_row(&desc, (float *)far_memory + rows_64[i] * desc.ldd, i, "scattered rows");
}

static void stand_apart(hgemm_desc_t desc)
{
    hgemm_desc_t batch = desc;
    if (desc.type_a != HGEMM_TYPE_BF16) { /* of which no kernel has rows so far apart */
        desc.lda = (int64_t)FAR_BYTES / bytes_of(desc.type_a) / M / 8 * 8;
        place_a(&desc, 0);
        run_and_expect(&desc, "rows far apart");
    }
    batch.batch = 2; /* the second matrix is the one that is looked at */
    batch.stride_a = (int64_t)FAR_BYTES / bytes_of(desc.type_a) / 8 * 8 - M * K;
    batch.stride_d = M * N;
    place_a(&batch, 0);
    far_memory = (char *)far_memory + batch.stride_a * bytes_of(desc.type_a);
    place_a(&batch, 0);
    far_memory = (char *)far_memory - batch.stride_a * bytes_of(desc.type_a);
    if (run(&batch))
        for (int i = 0; i < M; i++)
            expect_row(&batch, (float *)batch.d + batch.stride_d + i * N, i, "matrices far apart");
}

static void try_kernel(int kernel)
{
    static const struct {
        hgemm_accumulate_t accumulate;
        hgemm_type_t type;
    } kinds[] = {{HGEMM_ACCUMULATE_F16, HGEMM_TYPE_F16},
                 {HGEMM_ACCUMULATE_F32, HGEMM_TYPE_F16},
                 {HGEMM_ACCUMULATE_F32, HGEMM_TYPE_BF16},
                 {HGEMM_ACCUMULATE_F32, HGEMM_TYPE_F32}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const hgemm_desc_t desc = describe(kernel, kinds[i].accumulate, kinds[i].type);
        place_b(&desc, near_memory);
        gather(desc);
        scatter(desc);
        stand_apart(desc);
    }
}

int main(int argc, char **argv)
{
    handle = test_open();
    if (hgemm_malloc(handle, &far_memory, FAR_BYTES) == HGEMM_STATUS_OUT_OF_MEMORY) {
        printf("skipped: the device, or the host, has no %d MiB\n", FAR_BYTES_MIB);
        return TEST_SKIPPED;
    }
    must(hgemm_malloc(handle, &near_memory, 1 << 17), "hgemm_malloc");
    for (int i = 0; i < 2; i++)
        must(hgemm_malloc(handle, &lists[i], sizeof rows_64), "hgemm_malloc");
    if (argc > 1)
        try_kernel(hgemm_find_kernel(argv[1]));
    else
        try_kernel(HGEMM_KERNEL_AUTO);
    for (int kernel = 1; argc == 1 && kernel <= hgemm_kernel_count(); kernel++)
        try_kernel(kernel);
    must(hgemm_destroy(handle), "hgemm_destroy");
    return failures > 0;
}
