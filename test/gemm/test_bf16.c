/* SPDX-License-Identifier: MIT */
/*
 * A and B of bfloat16: conversion to the last bit, scales from all their sources, D of all types, and the contract's
 * error bound on normal and on awkward numbers, against double precision. (test_gemm has all else, at random.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gemm_operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

static void *place(const void *host, size_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

static void take(void *host, void *device, size_t bytes)
{
    expect_status(handle, hgemm_download(handle, host, device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_download");
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

static void release(const void *device)
{
    expect_status(handle, hgemm_free(handle, (void *)device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

static double value(uint16_t bits)
{
    return value_of(HGEMM_TYPE_BF16, &bits);
}

static uint16_t bits_of(double x)
{
    uint16_t bits;
    store_value(HGEMM_TYPE_BF16, &bits, x);
    return bits;
}

/* The scale that the contract promises of operands this small, which are read whole: the power of two that brings the
 * largest finite magnitude to [2^15, 2^16). */
static double scale_of(const uint16_t *x, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        most = isfinite(value(x[i])) ? fmax(most, fabs(value(x[i]))) : most;
    return most < 0x1p-126 ? 0x1p126 : fmin(ldexp(1, 15 - ilogb(most)), 0x1p126);
}

/* What an element is multiplied as. */
static double converted(uint16_t bits, double scale)
{
    return (double)hgemm_half_to_float(hgemm_half_from_float((float)(value(bits) * scale))) / scale;
}

/* ---- Conversion --------------------------------------------------------------------------------- */

enum { COLUMNS = 8, MOST = 4096 };

/* D = A * [1 .. 1], of a column A: every element of D is one converted element of A. */
static void multiply_by_ones(const uint16_t *a, int count, hgemm_op_t op_a, float scale, float (*d)[COLUMNS])
{
    hgemm_desc_t desc;
    uint16_t ones[COLUMNS];
    for (int j = 0; j < COLUMNS; j++)
        ones[j] = bits_of(1);
    memset(d, 0xff, (size_t)count * sizeof *d);
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_d = HGEMM_TYPE_F32;
    desc.op_a = op_a;
    desc.m = count, desc.n = COLUMNS, desc.k = 1;
    desc.lda = op_a == HGEMM_OP_N ? 1 : count, desc.ldb = desc.ldd = COLUMNS;
    desc.scale_a = scale;
    desc.a = place(a, (size_t)count * 2);
    desc.b = place(ones, sizeof ones);
    desc.d = place(d, (size_t)count * sizeof *d);
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    take(d, desc.d, (size_t)count * sizeof *d);
    release(desc.a), release(desc.b);
}

static void assert_converted(const uint16_t *a, int count, hgemm_op_t op_a, float given)
{
    static float d[MOST][COLUMNS];
    const double scale = given != 0 ? (double)given : scale_of(a, count);
    multiply_by_ones(a, count, op_a, given, d);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const double want = converted(a[i], scale), got = (double)d[i][j];
            if (isnan(want) ? !isnan(got) : got != want)
                fail_msg("0x%04x, scaled by %g, is %.9g in column %d, want %.9g", a[i], scale, got, j, want);
        }
}

/* All significands at these distances below the largest exponent. */
static int list_elements(uint16_t *a, int largest_exponent)
{
    static const int below[] = {0, 1, 7, 28, 29, 30, 31, 32, 33, 36, 39, 40, 41, 42};
    int count = 0;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        for (int significand = 0; largest_exponent >= below[i] && significand < 128; significand++)
            for (int sign = 0; sign < 2; sign++)
                a[count++] = (uint16_t)(sign << 15 | (largest_exponent - below[i]) << 7 | significand);
    return count;
}

static void elements_convert_to_the_last_bit(void **state)
{
    (void)state;
    static const int exponents[] = {0, 1, 15, 16, 17, 100, 127, 140, 253, 254};
    static uint16_t a[MOST];
    for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++) {
        const int count = list_elements(a, exponents[i]);
        const float scale = (float)scale_of(a, count); /* as hgemm_find_scale has it */
        assert_converted(a, count, HGEMM_OP_N, scale);
        assert_converted(a, count, HGEMM_OP_T, scale);
    }
}

/* The contract in its own words, apart from how a half is made. */
static void near_elements_are_exact_and_far_ones_close(void **state)
{
    (void)state;
    static uint16_t a[MOST];
    static float d[MOST][COLUMNS];
    const int count = list_elements(a, 127);
    const double most = value(0x3fff);
    int far = 0;
    multiply_by_ones(a, count, HGEMM_OP_N, 0, d);
    for (int i = 0; i < count; i++) {
        const double x = value(a[i]), error = fabs((double)d[i][0] - x);
        if (fabs(x) >= 0x1p-32 * most)
            assert_true(error == 0);
        else
            far++;
        assert_true(error <= 0x1p-40 * most);
    }
    assert_in_range(far, 100, count - 100);
}

static void infinities_and_nan_stay(void **state)
{
    (void)state;
    uint16_t a[16] = {0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81, 0x7fff, 0x7f7f, 0xff7f, 0x0000, 0x8000, 0x3f80};
    static float d[MOST][COLUMNS];
    assert_converted(a, 16, HGEMM_OP_N, (float)scale_of(a, 16));
    multiply_by_ones(a, 16, HGEMM_OP_N, 0, d); /* beside numbers that are far larger, 1 does not vanish */
    for (int i = 0; i < 16; i++)
        assert_true(isnan(value(a[i])) ? isnan(d[i][0]) : (double)d[i][0] == value(a[i]));
    a[6] = a[7] = 0x0001; /* now without a large finite one */
    assert_converted(a, 16, HGEMM_OP_N, 0);
}

static void zeros_give_zero(void **state)
{
    (void)state;
    const uint16_t a[8] = {0x8000};
    assert_converted(a, 8, HGEMM_OP_N, 0);
}

static void a_given_scale_is_taken(void **state)
{
    (void)state;
    static uint16_t a[MOST];
    const int count = list_elements(a, 127);
    static const float scales[] = {1, 0x1p14f, 0x1p-20f, 0x1p-112f, 0x1p126f};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        assert_converted(a, count, HGEMM_OP_N, scales[i]); /* too large a scale makes infinities, as a half would be */
}

/* ---- Scales ------------------------------------------------------------------------------------- */

/* By hgemm_find_scale, of lines at any address, between which larger elements lie. */
static void scales_are_found(void **state)
{
    (void)state;
    enum { SPACE = 1 << 17 };
    static uint16_t x[SPACE], live[SPACE];
    static const struct {
        int lines, width, ld, offset;
    } shapes[] = {{1, 1, 1, 0},     {1, 1, 9, 3},        {3, 5, 7, 1},         {7, 8, 8, 0},
                  {64, 64, 64, 0},  {33, 129, 131, 5},   {1, 70000, 70000, 2}, {30000, 1, 4, 1},
                  {513, 24, 40, 8}, {16, 2051, 2100, 7}, {0, 4, 4, 0},         {4, 0, 1, 0}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int lines = shapes[s].lines, width = shapes[s].width, ld = shapes[s].ld, offset = shapes[s].offset;
        int count = 0;
        float scale = -1;
        for (int i = 0; i < SPACE; i++)
            x[i] = 0x7f7f;
        for (int i = 0; i < lines * width; i++) {
            uint16_t *at = &x[offset + i / width * ld + i % width];
            *at = (uint16_t)(rng_between(&rng, 0, 1) << 15 | rng_between(&rng, 0, 0x3000));
            if (rng_between(&rng, 0, 50) == 0)
                *at = 0x7f80; /* does not count */
            live[count++] = *at;
        }
        if (count) { /* the largest one is anywhere */
            const int i = (int)rng_between(&rng, 0, count - 1);
            x[offset + i / width * ld + i % width] = live[i] = (uint16_t)rng_between(&rng, 0x3800, 0x7f7f);
        }
        uint16_t *device = place(x, sizeof x);
        float *found = place(&scale, sizeof scale);
        expect_status(handle, hgemm_find_scale(handle, lines, width, device + offset, ld, found), HGEMM_STATUS_SUCCESS,
                      "hgemm_find_scale");
        take(&scale, found, sizeof scale);
        release(device);
        if ((double)scale != scale_of(live, count))
            fail_msg("the scale of %d lines of %d is %g, want %g", lines, width, (double)scale, scale_of(live, count));
    }
}

/* Where there is no workspace a scale is still found by hgemm_find_scale, and no product finds one by itself. */
static void without_a_workspace(void **state)
{
    (void)state;
    uint16_t x[64];
    float scale = 0, d[64];
    hgemm_desc_t desc;
    for (int i = 0; i < 64; i++)
        x[i] = bits_of(i);
    uint16_t *device = place(x, sizeof x);
    float *found = place(&scale, sizeof scale);
    expect_status(handle, hgemm_set_workspace(handle, device, 1), HGEMM_STATUS_SUCCESS, "hgemm_set_workspace");
    expect_status(handle, hgemm_find_scale(handle, 8, 8, device, 8, found), HGEMM_STATUS_SUCCESS, "hgemm_find_scale");
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_d = HGEMM_TYPE_F32;
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = 8;
    desc.a = desc.b = device, desc.d = place(d, sizeof d);
    desc.scale_a_pointer = found;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "hgemm_run_desc");
    assert_non_null(strstr(hgemm_error_detail(handle), "types bf16 bf16"));
    assert_non_null(strstr(hgemm_error_detail(handle), "need a workspace of more than 64 KiB"));
    desc.scale_b_pointer = found;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_set_workspace(handle, NULL, 0), HGEMM_STATUS_SUCCESS, "hgemm_set_workspace");
    take(&scale, found, sizeof scale);
    take(d, desc.d, sizeof d);
    release(device);
    assert_true((double)scale == 0x1p10);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double want = 0;
            for (int p = 0; p < 8; p++)
                want += (i * 8 + p) * (p * 8 + j);
            assert_true((double)d[i * 8 + j] == want);
        }
}

/* ---- D of all types ----------------------------------------------------------------------------- */

enum { D_ROWS = 70, D_COLUMNS = 72, D_DEPTH = 24, D_PITCH = 76 };

static struct {
    uint16_t a[D_ROWS][D_DEPTH], b[D_COLUMNS][D_DEPTH];
    unsigned char d[D_ROWS * D_PITCH * 4];
    float sums[D_ROWS * D_PITCH];
} typed;

/* Small integers, many of whose sums lie midway between two bfloat16, in the given units; rows of A with an infinity
 * and with NaN; and in row 9 of A and 1 of B the largest element. All other sums are exact. */
static void draw_typed(double unit_a, double unit_b, double largest_a, double largest_b)
{
    for (int i = 0; i < D_ROWS; i++)
        for (int p = 0; p < D_DEPTH; p++)
            typed.a[i][p] = bits_of((double)rng_between(&rng, -8, 8) * unit_a);
    for (int j = 0; j < D_COLUMNS; j++)
        for (int p = 0; p < D_DEPTH; p++)
            typed.b[j][p] = bits_of((double)rng_between(&rng, -8, 8) * unit_b);
    typed.a[3][5] = 0x7f80, typed.a[4][0] = 0xff80, typed.a[68][7] = 0x7fc0;
    typed.a[9][2] = bits_of(largest_a), typed.b[1][6] = bits_of(largest_b);
}

/* op(A) B^T of the first `columns` columns into typed.d. A bias of zeros changes nothing but the way to D. */
static void run_typed(const char *kernel, hgemm_type_t type_d, int columns, const float *bias)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    memset(typed.d, 0xff, sizeof typed.d);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.kernel = hgemm_find_kernel(kernel);
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_d = type_d, desc.type_bias = HGEMM_TYPE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.m = D_ROWS, desc.n = columns, desc.k = D_DEPTH;
    desc.lda = desc.ldb = D_DEPTH, desc.ldd = D_PITCH;
    desc.a = place(typed.a, sizeof typed.a), desc.b = place(typed.b, sizeof typed.b);
    desc.d = place(typed.d, sizeof typed.d), desc.bias = bias;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, kernel);
    take(typed.d, desc.d, sizeof typed.d);
    release(desc.a), release(desc.b);
}

static void assert_typed(const char *kernel, const float *zeros)
{
    static const int bytes[] = {[HGEMM_TYPE_F16] = 2, [HGEMM_TYPE_F32] = 4, [HGEMM_TYPE_BF16] = 2};
    static const int columns[] = {72, 68, 67, 36, 3};
    int finite = 0;
    run_typed(kernel, HGEMM_TYPE_F32, D_COLUMNS, zeros);
    memcpy(typed.sums, typed.d, sizeof typed.sums);
    for (int i = 0; i < D_ROWS; i++)
        for (int j = 0; j < D_COLUMNS; j++) {
            double want = 0;
            for (int p = 0; p < D_DEPTH; p++)
                want += value(typed.a[i][p]) * value(typed.b[j][p]);
            if (i != 9 && j != 1 && isfinite(want) && (double)typed.sums[i * D_PITCH + j] != want)
                fail_msg("%s: sum %d, %d is %.9g, want %.9g", kernel, i, j, (double)typed.sums[i * D_PITCH + j], want);
        }
    for (hgemm_type_t type = HGEMM_TYPE_F16; type <= HGEMM_TYPE_BF16; type++)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            run_typed(kernel, type, columns[c], NULL);
            for (int i = 0; i < D_ROWS; i++)
                for (int j = 0; j < D_PITCH; j++) {
                    const unsigned char *got = &typed.d[(i * D_PITCH + j) * bytes[type]];
                    const double sum = (double)typed.sums[i * D_PITCH + j];
                    unsigned char want[4] = {0xff, 0xff, 0xff, 0xff}; /* beside D */
                    if (j < columns[c])
                        store_value(type, want, sum);
                    finite += j < columns[c] && isfinite(sum) && sum != 0;
                    if (j < columns[c] && isnan(sum) ? !isnan(value_of(type, got))
                                                     : memcmp(got, want, (size_t)bytes[type]))
                        fail_msg("%s, type %d, %d columns: element %d, %d is %.9g, want %.9g", kernel, type, columns[c],
                                 i, j, value_of(type, got), sum);
                }
        }
    assert_true(finite > D_ROWS * 10);
}

static void d_is_the_rounded_sum(void **state)
{
    (void)state;
    static const char *const kernels[] = {"k5_256x128_f32", "k5_128x128_f32", "k5_64x64_f32", "k5_64x64x128_f32",
                                          "k5_32x64_f32",   "k5_32x128_f32",  "k5_16x64_f32"};
    static const float none[D_COLUMNS];
    float *zeros = place(none, sizeof none);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        draw_typed(1, 1, 16, 16);
        assert_typed(kernels[i], zeros);
        draw_typed(0x1p95, 0x1p5, 0x1p127, 0x1p35); /* 1 / both scales is above 2^127 */
        assert_typed(kernels[i], zeros);
        draw_typed(0x1p-120, 0x1p-10, 0x1p-112, 0x1p-5); /* below 2^-126 */
        assert_typed(kernels[i], zeros);
    }
    release(zeros);
}

/* ---- Errors of sums ----------------------------------------------------------------------------- */

enum { M = 48, N = 40, K = 264, BATCH = 2 };

typedef double draw_fn(void);

static double normal(void) /* a sum of twelve uniform numbers */
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += rng_symmetric(&rng);
    return sum / 2;
}
static double with_outliers(void)
{
    return normal() * (rng_between(&rng, 0, 99) == 0 ? 8e5 : 1);
}
static double wide(void) /* over 80 binades */
{
    return ldexp(rng_symmetric(&rng), (int)rng_between(&rng, -40, 40));
}
static double subnormal(void)
{
    return ldexp((double)rng_between(&rng, -127, 127), -133);
}
static double huge_number(void)
{
    return ldexp(rng_symmetric(&rng), 100);
}

static struct {
    uint16_t a[BATCH][M][K], b[BATCH][K][N];
    float d[BATCH][M][N];
} product;

/* What a sum may be off by: each addition of 8 products cuts them to 24 bits, 10 * 2^-23 of their magnitudes; elements
 * below 2^-32 of their operand's largest are off by 2^-40 of it, for it is read whole; D is rounded. */
static void assert_sums(double most_a, double most_b)
{
    const double v = (K / 8 + 3) * 10 * 0x1p-23, near = 0x1p-32, off = 0x1p-40;
    for (int batch = 0; batch < BATCH; batch++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0, absolute = 0, error = 0;
                for (int p = 0; p < K; p++) {
                    const double x = value(product.a[batch][i][p]), y = value(product.b[batch][p][j]);
                    const double off_x = fabs(x) < near * most_a ? off * most_a : 0;
                    const double off_y = fabs(y) < near * most_b ? off * most_b : 0;
                    sum += x * y;
                    absolute += fabs(x * y);
                    error += off_x * fabs(y) + fabs(x) * off_y + off_x * off_y;
                }
                error += v * (absolute + error) + 0x1p-24 * fabs(sum) + 0x1p-149;
                const double got = (double)product.d[batch][i][j];
                if (!(fabs(got - sum) <= error))
                    fail_msg("element %d, %d of %d is %.9g, want %.9g within %.3g", i, j, batch, got, sum, error);
            }
}

static void multiply(draw_fn *draw_a, draw_fn *draw_b)
{
    hgemm_desc_t desc;
    double most_a = 0, most_b = 0;
    uint16_t *const a = &product.a[0][0][0], *const b = &product.b[0][0][0];
    for (int i = 0; i < BATCH * M * K; i++)
        a[i] = bits_of(draw_a()), most_a = fmax(most_a, fabs(value(a[i])));
    for (int i = 0; i < BATCH * K * N; i++)
        b[i] = bits_of(draw_b()), most_b = fmax(most_b, fabs(value(b[i])));
    memset(product.d, 0xff, sizeof product.d);
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16, desc.type_d = HGEMM_TYPE_F32;
    desc.m = M, desc.n = N, desc.k = K, desc.batch = BATCH;
    desc.lda = K, desc.ldb = desc.ldd = N;
    desc.stride_a = M * K, desc.stride_b = K * N, desc.stride_d = M * N;
    desc.a = place(a, sizeof product.a), desc.b = place(b, sizeof product.b);
    desc.d = place(product.d, sizeof product.d);
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    take(product.d, desc.d, sizeof product.d);
    release(desc.a), release(desc.b);
    assert_sums(most_a, most_b);
}

static void sums_of_all_kinds_of_numbers(void **state)
{
    (void)state;
    multiply(normal, normal);
    multiply(with_outliers, normal);
    multiply(with_outliers, with_outliers);
    multiply(wide, wide);
    multiply(normal, wide);
    multiply(subnormal, normal);
    multiply(subnormal, huge_number);
    multiply(huge_number, subnormal);
    multiply(subnormal, subnormal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_convert_to_the_last_bit),
        cmocka_unit_test(near_elements_are_exact_and_far_ones_close),
        cmocka_unit_test(infinities_and_nan_stay),
        cmocka_unit_test(zeros_give_zero),
        cmocka_unit_test(a_given_scale_is_taken),
        cmocka_unit_test(scales_are_found),
        cmocka_unit_test(without_a_workspace),
        cmocka_unit_test(d_is_the_rounded_sum),
        cmocka_unit_test(sums_of_all_kinds_of_numbers),
    };
    handle = test_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS ? failed : 1;
}
