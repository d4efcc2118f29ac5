/* SPDX-License-Identifier: MIT */
/*
 * The contract of a call, on a device that only records: which status each wrong argument gives and
 * in which order, that nothing is launched or written then, and what is launched otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_device.h"
#include "util.h"

enum { ELEMENTS = 4096, MARK = 0x5555 };

static fake_device_t fake;
static struct hgemm_handle handle;
static _Alignas(16) uint16_t a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], d[ELEMENTS];

static int set_up(void **state)
{
    (void)state;
    fake_device_init(&fake);
    memset(&handle, 0, sizeof handle);
    handle.device = &fake.base;
    handle.machine = machine_t4;
    for (int i = 0; i < ELEMENTS; i++) {
        a[i] = hgemm_half_from_float((float)(i % 7 - 3));
        b[i] = hgemm_half_from_float((float)(i % 5 - 2));
        c[i] = hgemm_half_from_float((float)(i % 11 - 5));
        d[i] = MARK;
    }
    return 0;
}

/* 8 x 16 x 24, row-major, all apart. */
static hgemm_desc_t small(void)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = 8, desc.n = 16, desc.k = 24;
    desc.alpha = 1, desc.beta = 1;
    desc.a = a, desc.lda = 24;
    desc.b = b, desc.ldb = 16;
    desc.c = c, desc.ldc = 16;
    desc.d = d, desc.ldd = 16;
    return desc;
}

static int untouched(const uint16_t *data)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (data[i] != MARK)
            return 0;
    return 1;
}

#define assert_status(call, expected) assert_string_equal(hgemm_status_name(call), hgemm_status_name(expected))

/* Both calls that take a descriptor refuse it, and nothing happens. */
static void assert_refused(const hgemm_desc_t *desc, hgemm_status_t expected)
{
    assert_status(hgemm_run_desc(&handle, desc), expected);
    assert_status(hgemm_prepare(&handle, desc), expected);
    assert_int_equal(fake.launches, 0);
    assert_int_equal(fake.loads, 0);
    assert_true(untouched(d));
}

static void assert_nothing_to_do(const hgemm_desc_t *desc)
{
    assert_refused(desc, HGEMM_STATUS_SUCCESS);
    int kernel = -1;
    assert_status(hgemm_select(desc, &kernel), HGEMM_STATUS_SUCCESS);
    assert_int_equal(kernel, 0);
}

/* Starts from a call in which everything is wrong and mends one argument after another: each step
 * must uncover the next status, and only the last one launches. */
static void statuses_come_in_order(void **state)
{
    (void)state;
    const int64_t huge = INT64_C(1) << 61;
    hgemm_desc_t desc, good = small();
    memset(&desc, 0, sizeof desc);
    desc.layout = (hgemm_layout_t)2;
    desc.op_a = (hgemm_op_t)2, desc.op_b = (hgemm_op_t)3;
    desc.accumulate = (hgemm_accumulate_t)2;
    desc.kernel = hgemm_kernel_count() + 1;
    desc.m = desc.n = desc.k = desc.batch = -1;
    desc.alpha = desc.beta = 1;

    assert_status(hgemm_run_desc(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_prepare(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_select(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_refused(NULL, HGEMM_STATUS_INVALID_DESC);
    assert_refused(&desc, HGEMM_STATUS_INVALID_DESC);
    desc.size = good.size + 1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_DESC);
    desc.size = good.size;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LAYOUT);
    desc.layout = HGEMM_ROW_MAJOR;
    assert_refused(&desc, HGEMM_STATUS_INVALID_OP);
    desc.op_a = HGEMM_OP_T;
    assert_refused(&desc, HGEMM_STATUS_INVALID_OP);
    desc.op_b = HGEMM_OP_T;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ACCUMULATE);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_KERNEL);
    desc.kernel = -1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_KERNEL);
    desc.kernel = KERNEL_k1_tiled;
    assert_refused(&desc, HGEMM_STATUS_INVALID_M);
    desc.m = good.m;
    assert_refused(&desc, HGEMM_STATUS_INVALID_N);
    desc.n = good.n;
    assert_refused(&desc, HGEMM_STATUS_INVALID_K);
    desc.k = good.k;
    assert_refused(&desc, HGEMM_STATUS_INVALID_BATCH);
    desc.batch = 1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDA);
    desc.lda = 7; /* A is stored 24 x 8 */
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDA);
    desc.lda = huge;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDB);
    desc.ldb = 23; /* B is stored 16 x 24 */
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDB);
    desc.ldb = 24;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDC);
    desc.ldc = 16;
    desc.ldd = 15;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDD);
    desc.ldd = 17;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    desc.lda = 8;
    assert_refused(&desc, HGEMM_STATUS_NULL_A);
    desc.a = (char *)a + 1;
    assert_refused(&desc, HGEMM_STATUS_NULL_B);
    desc.b = (char *)b + 1;
    assert_refused(&desc, HGEMM_STATUS_NULL_C);
    desc.c = (char *)d + 3;
    assert_refused(&desc, HGEMM_STATUS_NULL_D);
    desc.d = (char *)d + 1;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_A);
    desc.a = a;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_B);
    desc.b = b;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_C);
    desc.c = d;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_D);
    desc.d = d;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP);
    desc.ldd = 16;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED);
    desc.kernel = HGEMM_KERNEL_AUTO;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
}

/* The short form checks the same things. */
static void short_form_checks_too(void **state)
{
    (void)state;
    assert_status(hgemm_run(NULL, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 1, d, 16),
                  HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_run(&handle, HGEMM_COL_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 7, b, 24, 1, d, 8),
                  HGEMM_STATUS_INVALID_LDA);
    assert_status(hgemm_run(&handle, HGEMM_COL_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 8, b, 24, 1, d, 7),
                  HGEMM_STATUS_INVALID_LDC);
    assert_status(hgemm_run(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 1, NULL, 16),
                  HGEMM_STATUS_NULL_C);
    assert_int_equal(fake.launches, 0);
    assert_true(untouched(d));
    assert_status(hgemm_run(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 0, d, 16),
                  HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
    assert_false(untouched(d));
}

static void leading_dimensions_follow_layout_and_op(void **state)
{
    (void)state;
    for (int bits = 0; bits < 8; bits++) {
        hgemm_desc_t desc = small();
        int row_major = !(bits & 1), n_a = !(bits & 2), n_b = !(bits & 4);
        desc.layout = row_major ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
        desc.op_a = n_a ? HGEMM_OP_N : HGEMM_OP_T;
        desc.op_b = n_b ? HGEMM_OP_N : HGEMM_OP_T;
        int64_t least_a = row_major == n_a ? desc.k : desc.m;
        int64_t least_b = row_major == n_b ? desc.n : desc.k;
        int64_t least_d = row_major ? desc.n : desc.m;
        desc.lda = least_a, desc.ldb = least_b, desc.ldc = desc.ldd = least_d;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        fake_device_init(&fake);
        memset(handle.functions, 0, sizeof handle.functions);
        for (int i = 0; i < ELEMENTS; i++)
            d[i] = MARK;
        desc.lda = least_a - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDA);
        desc.lda = least_a, desc.ldb = least_b - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDB);
        desc.ldb = least_b, desc.ldc = least_d - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDC);
        desc.ldc = least_d, desc.ldd = least_d - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDD);
    }
}

/* Shape errors are found even where nothing would be computed and every pointer is NULL. */
static void empty_problems_are_checked_and_do_nothing(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.a = desc.b = desc.c = desc.d = NULL;
    desc.m = 0;
    assert_nothing_to_do(&desc);
    desc.lda = 0;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDA);
    desc.lda = 24, desc.n = -1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_N);
    desc = small(), desc.d = NULL, desc.n = 0;
    assert_nothing_to_do(&desc);
    desc.ldb = 0; /* no column is stored, yet it must be 1 */
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDB);
    desc = small(), desc.d = NULL, desc.batch = 0;
    assert_nothing_to_do(&desc);
    desc.n = 0, desc.m = 0, desc.k = 0;
    desc.lda = desc.ldb = desc.ldc = desc.ldd = 1;
    assert_nothing_to_do(&desc);
    desc = small(), desc.k = 0, desc.beta = 1, desc.c = desc.d;
    assert_nothing_to_do(&desc);
    desc = small(), desc.alpha = 0, desc.beta = 1, desc.c = desc.d;
    assert_nothing_to_do(&desc);
    int kernel = 0;
    desc.c = c; /* is copied to D */
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
    assert_int_not_equal(kernel, 0);
}

/* Without products A and B are neither needed nor named to the kernel's loop; zeros keep their sign. */
static void operands_are_not_read_without_products(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        hgemm_desc_t desc = small();
        desc.a = way ? NULL : (char *)a + 1, desc.b = NULL;
        if (way)
            desc.k = 0, desc.alpha = 1e30f;
        else
            desc.alpha = 0;
        desc.beta = -2;
        c[0] = 0x8000;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake.args.k, 0);
        assert_int_equal(d[0], 0x0000);
        assert_int_equal(d[1], hgemm_half_from_float(-2 * hgemm_half_to_float(c[1])));
        desc.beta = 1;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(d[0], 0x8000);
        desc.beta = 0, desc.c = NULL;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_true(fake.args.alpha == 0 && !signbit(fake.args.alpha));
        for (int i = 0; i < 8 * 16; i++)
            assert_int_equal(d[i], 0);
    }
}

/* Any scalar but a zero reads its operands. */
static void what_is_read_must_be_there(void **state)
{
    (void)state;
    const float scalars[] = {1, -1, 1e-45f, -1e-45f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        hgemm_desc_t desc = small();
        desc.alpha = scalars[i], desc.a = NULL;
        assert_refused(&desc, HGEMM_STATUS_NULL_A);
        desc = small(), desc.beta = scalars[i], desc.c = NULL;
        assert_refused(&desc, HGEMM_STATUS_NULL_C);
        desc.c = d + 1;
        assert_refused(&desc, HGEMM_STATUS_OVERLAP);
    }
}

static void unread_c_is_free(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.beta = 0, desc.c = (char *)d + 1;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.c = d + 1; /* would overlap, were it read */
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 2);
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    const int64_t most = INT32_MAX, largest = INT64_MAX;
    hgemm_desc_t desc = small();
    desc.m = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    desc = small(), desc.n = most + 1, desc.ldb = desc.ldc = desc.ldd = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    desc = small(), desc.k = most + 1, desc.lda = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    for (int which = 0; which < 4; which++) {
        desc = small();
        *(which == 0 ? &desc.lda : which == 1 ? &desc.ldb : which == 2 ? &desc.ldc : &desc.ldd) = largest;
        assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
        const int64_t strides[] = {largest, -largest, INT64_MIN, largest / 2};
        for (int s = 0; s < 4; s++) {
            desc = small(), desc.batch = 4;
            desc.stride_d = 128;
            *(which == 0   ? &desc.stride_a
              : which == 1 ? &desc.stride_b
              : which == 2 ? &desc.stride_c
                           : &desc.stride_d) = strides[s];
            assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
            desc.batch = 1; /* where a stride does not matter */
            int kernel;
            assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
            assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
            fake.loads = 0;
        }
        desc = small(), desc.batch = largest, desc.stride_a = desc.stride_b = desc.stride_c = 0;
        desc.stride_d = 128;
        assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    }
    desc = small(); /* 2^62 elements and one, then 2^62 */
    desc.m = 2, desc.ldd = (INT64_C(1) << 62) - desc.n + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE);
    desc.ldd--;
    desc.beta = 0; /* C would lie in D's range */
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
}

/* Whether the elements of D and C (or of two D's of the batch) meet, by enumeration. */
static int meets(const hgemm_desc_t *desc)
{
    static unsigned char marks[2][8 * ELEMENTS];
    memset(marks, 0, sizeof marks);
    ptrdiff_t from_c = (const uint16_t *)desc->d - (const uint16_t *)desc->c + 2 * ELEMENTS;
    for (int64_t y = 0; y < desc->batch; y++)
        for (int64_t i = 0; i < desc->m; i++)
            for (int64_t j = 0; j < desc->n; j++) {
                marks[0][2 * ELEMENTS + y * desc->stride_c + i * desc->ldc + j] = 1;
                if (marks[1][from_c + y * desc->stride_d + i * desc->ldd + j]++)
                    return 1;
            }
    int same = desc->d == desc->c && desc->ldd == desc->ldc && (desc->batch == 1 || desc->stride_d == desc->stride_c);
    for (int i = 0; !same && i < 8 * ELEMENTS; i++)
        if (marks[0][i] && marks[1][i])
            return 1;
    return 0;
}

static void overlap_is_exact_for_equal_leading_dimensions(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    int met = 0, apart = 0;
    fake.compute = 0;
    for (int round = 0; round < 200000; round++) {
        hgemm_desc_t desc = small();
        desc.k = 1, desc.lda = 64, desc.ldb = 64;
        desc.m = rng_between(&rng, 1, 5), desc.n = rng_between(&rng, 1, 6);
        desc.ldc = desc.ldd = rng_between(&rng, desc.n, round % 2 ? 20 : 300);
        desc.batch = rng_between(&rng, 1, round % 4 ? 4 : 30);
        desc.stride_c = desc.stride_d = rng_between(&rng, -60, 60);
        desc.c = c + ELEMENTS / 2;
        desc.d = c + ELEMENTS / 2 + rng_between(&rng, -150, 150);
        int expected = meets(&desc);
        expected ? met++ : apart++;
        hgemm_status_t status = hgemm_run_desc(&handle, &desc);
        if (status != (expected ? HGEMM_STATUS_OVERLAP : HGEMM_STATUS_SUCCESS))
            fail_msg("m %d n %d ld %d batch %d stride %d D-C %d: %s", (int)desc.m, (int)desc.n, (int)desc.ldd,
                     (int)desc.batch, (int)desc.stride_d, (int)((uint16_t *)desc.d - (const uint16_t *)desc.c),
                     hgemm_status_name(status));
    }
    assert_true(met > 1000 && apart > 1000);
}

/* However many matrices lie between the rows of one another. */
static void matrices_of_a_batch_may_interleave(void **state)
{
    (void)state;
    fake.compute = 0;
    for (int64_t batch = 3; batch < INT64_C(1) << 40; batch *= 5) {
        hgemm_desc_t desc = small();
        desc.m = 3, desc.n = 2, desc.k = 0;
        desc.batch = batch, desc.stride_c = desc.stride_d = -2;
        desc.ldc = desc.ldd = 2 * batch;
        desc.c = (void *)((uintptr_t)d + 2 * (uintptr_t)(6 * batch)); /* past all rows, which leave no gap */
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
        desc.c = (const char *)desc.c - 2;
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
        desc.beta = 0;
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
        desc.ldd--; /* the last one's second row then begins in the first one's first */
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
    }
}

static void overlap_is_safe_for_different_leading_dimensions(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    fake.compute = 0;
    int allowed = 0;
    for (int round = 0; round < 100000; round++) {
        hgemm_desc_t desc = small();
        desc.k = 1, desc.lda = 64, desc.ldb = 64;
        desc.m = rng_between(&rng, 1, 5), desc.n = rng_between(&rng, 1, 6);
        desc.ldc = rng_between(&rng, desc.n, 20), desc.ldd = rng_between(&rng, desc.n, 20);
        desc.batch = rng_between(&rng, 1, 3);
        desc.stride_c = rng_between(&rng, -60, 60), desc.stride_d = rng_between(&rng, -60, 60);
        desc.c = c + ELEMENTS / 2;
        desc.d = c + ELEMENTS / 2 + rng_between(&rng, -300, 300);
        hgemm_status_t status = hgemm_run_desc(&handle, &desc);
        if (status == HGEMM_STATUS_SUCCESS) {
            allowed++;
            assert_false(meets(&desc));
        } else {
            assert_status(status, HGEMM_STATUS_OVERLAP);
        }
    }
    assert_true(allowed > 1000);
    hgemm_desc_t desc = small(); /* adjacent, to the element */
    desc.ldd = 40, desc.c = c, desc.d = c + 8 * 16;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.d = c + 8 * 16 - 1;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_OVERLAP);
    desc = small(); /* as many candidates as a batch has; rows of C and of D take turns */
    desc.m = 2, desc.n = 1, desc.ldc = desc.ldd = INT64_C(1) << 50;
    desc.batch = INT64_C(1) << 49, desc.stride_c = desc.stride_d = 1;
    desc.d = (void *)(desc.batch * 2 + (intptr_t)desc.c);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.d = (void *)(desc.batch * 2 + (intptr_t)desc.c - 2);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
}

/* Element (i, j) of a stored matrix, as the caller describes it. */
static double element(const uint16_t *data, hgemm_layout_t layout, int transposed, int64_t i, int64_t j, int64_t ld)
{
    int64_t row = transposed ? j : i, column = transposed ? i : j;
    return hgemm_half_to_float(data[layout == HGEMM_ROW_MAJOR ? row * ld + column : row + column * ld]);
}

/* For all layouts, transposes and batches the arguments that a kernel gets describe the product
 * that the caller described; and the launch is the table's. */
static void launches_describe_the_product(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++)
        for (int kernel = 0; kernel <= hgemm_kernel_count(); kernel++) {
            hgemm_desc_t desc = small();
            hgemm_kernel_info_t info;
            desc.layout = (hgemm_layout_t)(bits & 1);
            desc.op_a = (hgemm_op_t)(bits >> 1 & 1), desc.op_b = (hgemm_op_t)(bits >> 2 & 1);
            desc.batch = bits & 8 ? 3 : 1;
            desc.m = 16, desc.n = 8, desc.k = 32;
            desc.lda = 40, desc.ldb = 48, desc.ldc = 17, desc.ldd = 19;
            desc.stride_a = 640, desc.stride_b = 8, desc.stride_c = 3, desc.stride_d = 400;
            desc.alpha = 0.5f, desc.beta = -2;
            desc.kernel = kernel;
            if (kernel) {
                assert_status(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
                desc.accumulate = info.accumulate;
            }
            int launches = fake.launches;
            hgemm_status_t status = hgemm_run_desc(&handle, &desc);
            if (status == HGEMM_STATUS_NOT_SUPPORTED && kernel && info.ops == HGEMM_OPS_NN)
                continue;
            assert_status(status, HGEMM_STATUS_SUCCESS);
            assert_int_equal(fake.launches, launches + 1);
            if (kernel) {
                int64_t m = desc.layout == HGEMM_ROW_MAJOR ? desc.m : desc.n;
                int64_t n = desc.layout == HGEMM_ROW_MAJOR ? desc.n : desc.m;
                assert_int_equal(strncmp(fake.image->symbol, info.name, strlen(info.name)), 0);
                assert_int_equal(fake.launch.threads, info.threads);
                assert_int_equal(fake.launch.shared_bytes, info.shared_bytes);
                assert_int_equal(fake.launch.grid[0],
                                 ((m + info.block_m - 1) / info.block_m) * ((n + info.block_n - 1) / info.block_n));
            }
            assert_int_equal(fake.launch.grid[1], desc.batch);
            assert_int_equal(fake.launch.grid[2], 1);
            assert_int_equal(fake.launch.args_size, sizeof(kernel_args_t));
            for (int64_t y = 0; y < desc.batch; y++)
                for (int64_t i = 0; i < desc.m; i++)
                    for (int64_t j = 0; j < desc.n; j++) {
                        double sum = 0;
                        for (int64_t l = 0; l < desc.k; l++)
                            sum +=
                                element(a + y * desc.stride_a, desc.layout, desc.op_a == HGEMM_OP_T, i, l, desc.lda) *
                                element(b + y * desc.stride_b, desc.layout, desc.op_b == HGEMM_OP_T, l, j, desc.ldb);
                        double want = 0.5 * sum - 2 * element(c + y * desc.stride_c, desc.layout, 0, i, j, desc.ldc);
                        double got = element(d + y * desc.stride_d, desc.layout, 0, i, j, desc.ldd);
                        if (got != want)
                            fail_msg("layout %d ops %d%d kernel %d (%d,%d): %g, want %g", desc.layout, desc.op_a,
                                     desc.op_b, kernel, (int)i, (int)j, got, want);
                    }
        }
}

/* The x16 variant runs where every chunk of A and B is 16-byte aligned, the x8 one where each half
 * of one is 8-byte aligned, the far one where a tile spans 2^32 bytes. */
static void operands_choose_the_variant(void **state)
{
    (void)state;
    enum { FAR = 1 << 24 }; /* k1's tiles have 128 lines: 2^32 bytes / (2 * 128) */
    const struct {
        const char *symbol;
        int64_t m, n, k, lda, ldb, batch, stride_a, stride_b;
        int offset_a, offset_b;
    } rows[] = {
        {"k1_tiled_nn", 8, 16, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn", 5, 16, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn", 8, 16, 24, 24, 16, 1, 1, 1, 0, 0},
        {"k1_tiled_nn", 8, 16, 24, 24, 16, 2, 8, -16, 0, 0},
        {"k1_tiled_nn", 8, 16, 24, 24, 16, 1, 0, 0, 8, 16},
        {"k1_tiled_nn", 8, 16, 24, FAR - 8, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 15, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 23, 24, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 25, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 24, 17, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 24, 16, 1, 0, 0, 1, 0},
        {"k1_tiled_nn_x8", 8, 16, 24, 24, 16, 1, 0, 0, 0, 4},
        {"k1_tiled_nn_x8", 8, 16, 24, 24, 16, 2, 4, 8, 0, 0},
        {"k1_tiled_nn_x8", 8, 16, 24, 24, 16, 2, 8, 12, 0, 0},
        {"k1_tiled_nn_x8", 8, 12, 20, 20, 12, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 14, 24, 24, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 26, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 24, 16, 1, 0, 0, 2, 0},
        {"k1_tiled_nn_any", 8, 16, 24, 24, 16, 2, 4, 6, 0, 0},
        {"k1_tiled_nn_any", 8, 16, 24, FAR - 1, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_far", 8, 16, 24, FAR, 16, 1, 0, 0, 0, 0},
        {"k1_tiled_nn_far", 8, 16, 24, 24, FAR + 1, 1, 0, 0, 0, 0},
        {"k1_tiled_nn", 8, 16, 0, FAR + 1, 17, 1, 0, 0, 1, 1}, /* nothing of A and B is read */
    };
    fake.compute = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hgemm_desc_t desc = small();
        desc.kernel = KERNEL_k1_tiled;
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k;
        desc.lda = rows[i].lda, desc.ldb = rows[i].ldb, desc.ldd = 17;
        desc.batch = rows[i].batch, desc.stride_d = 1024;
        desc.stride_a = rows[i].stride_a, desc.stride_b = rows[i].stride_b;
        desc.a = a + rows[i].offset_a, desc.b = b + rows[i].offset_b;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        if (strcmp(fake.image->symbol, rows[i].symbol) != 0)
            fail_msg("row %d: %s, want %s", (int)i, fake.image->symbol, rows[i].symbol);
    }
}

static void large_batches_take_several_launches(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.batch = 3 * 65535 + 7;
    desc.beta = 0; /* C would lie in D's range */
    desc.stride_a = 5, desc.stride_b = -16, desc.stride_c = 0, desc.stride_d = 128;
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 4);
    assert_int_equal(fake.matrices, desc.batch);
    assert_int_equal(fake.launch.grid[1], 7);
    /* Addresses far outside the arrays: integers, because C knows no such pointers. */
    assert_int_equal((uintptr_t)fake.args.a, (uintptr_t)a + UINT64_C(2) * 3 * 65535 * 5);
    assert_int_equal((uintptr_t)fake.args.b, (uintptr_t)b - UINT64_C(2) * 3 * 65535 * 16);
    assert_ptr_equal(fake.args.c, c);
    assert_int_equal((uintptr_t)fake.args.d, (uintptr_t)d + UINT64_C(2) * 3 * 65535 * 128);
    fake_device_init(&fake); /* an error ends it at once */
    fake.launch_status = HGEMM_STATUS_DEVICE_ERROR;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(fake.launches, 1);
}

static void kernels_are_loaded_once(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    fake.load_status = HGEMM_STATUS_DEVICE_ERROR;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_DEVICE_ERROR);
    plan_t plan; /* not even a copy is made */
    assert_status(select_plan(&desc, &machine_t4, 0, &plan), HGEMM_STATUS_SUCCESS);
    plan.copies = COPY_A;
    assert_status(handle_launch(&handle, &desc, &plan), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(fake.launches, 0);
    fake.load_status = HGEMM_STATUS_SUCCESS;
    fake.loads = 0;
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.launches, 0);
    int stream;
    assert_status(hgemm_set_stream(&handle, &stream), HGEMM_STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.launches, 3);
    assert_ptr_equal(fake.stream, &stream);
    assert_int_equal(fake.synchronisations, 0);
}

/* A problem that comes again is not priced again, and one that takes its place among the known is not mistaken for it.
 */
static void choices_are_remembered(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    plan_t plan, again;
    int known = 0;
    assert_status(handle_choose(&handle, &desc, &plan), HGEMM_STATUS_SUCCESS);
    for (int i = 0; i < KNOWN_PLANS; i++)
        if (handle.known[i].plan.variant.kernel != KERNEL_NONE) {
            known++;
            handle.known[i].plan.whole_tiles = 77;
        }
    assert_int_equal(known, 1);
    assert_status(handle_choose(&handle, &desc, &again), HGEMM_STATUS_SUCCESS);
    assert_int_equal(again.whole_tiles, 77);
    for (desc.m = 1; desc.m < 2 * KNOWN_PLANS; desc.m++) {
        assert_status(handle_choose(&handle, &desc, &again), HGEMM_STATUS_SUCCESS);
        assert_status(select_plan(&desc, &machine_t4, 0, &plan), HGEMM_STATUS_SUCCESS);
        assert_true(desc.m == small().m || again.tiles == plan.tiles);
        assert_int_equal(again.variant.kernel, plan.variant.kernel);
    }
}

static void null_handles_are_found(void **state)
{
    (void)state;
    void *p = NULL;
    hgemm_device_info_t info;
    assert_status(hgemm_create(NULL, "cuda"), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_destroy(NULL), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_set_stream(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_stream(NULL, &p), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_stream(&handle, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_synchronize(NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_device_info(NULL, &info), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_device_info(&handle, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_malloc(NULL, &p, 1), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_malloc(&handle, NULL, 1), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_free(NULL, &p), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(NULL, d, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, NULL, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, d, NULL, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_download(NULL, d, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_download(&handle, NULL, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, NULL, NULL, 0), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_free(&handle, NULL), HGEMM_STATUS_SUCCESS);
    p = d;
    assert_status(hgemm_malloc(&handle, &p, 0), HGEMM_STATUS_SUCCESS);
    assert_null(p);
    assert_non_null(hgemm_error_detail(NULL));
    hgemm_desc_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(statuses_come_in_order, set_up),
        cmocka_unit_test_setup(short_form_checks_too, set_up),
        cmocka_unit_test_setup(leading_dimensions_follow_layout_and_op, set_up),
        cmocka_unit_test_setup(empty_problems_are_checked_and_do_nothing, set_up),
        cmocka_unit_test_setup(operands_are_not_read_without_products, set_up),
        cmocka_unit_test_setup(what_is_read_must_be_there, set_up),
        cmocka_unit_test_setup(unread_c_is_free, set_up),
        cmocka_unit_test_setup(sizes_do_not_overflow, set_up),
        cmocka_unit_test_setup(overlap_is_exact_for_equal_leading_dimensions, set_up),
        cmocka_unit_test_setup(matrices_of_a_batch_may_interleave, set_up),
        cmocka_unit_test_setup(overlap_is_safe_for_different_leading_dimensions, set_up),
        cmocka_unit_test_setup(launches_describe_the_product, set_up),
        cmocka_unit_test_setup(operands_choose_the_variant, set_up),
        cmocka_unit_test_setup(large_batches_take_several_launches, set_up),
        cmocka_unit_test_setup(kernels_are_loaded_once, set_up),
        cmocka_unit_test_setup(choices_are_remembered, set_up),
        cmocka_unit_test_setup(null_handles_are_found, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
