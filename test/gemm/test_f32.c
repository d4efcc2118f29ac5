/* SPDX-License-Identifier: MIT */
/*
 * A and B of single precision: the contract's bound, against double precision, on data of every range that floats have,
 * and what IEEE says of infinities and NaN. (test_gemm has layouts, batches, indices and epilogues, at random.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gemm_operands.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static const char *kernel; /* whose turn it is */
static rng_t rng = {1};

/* A product of contiguous row-major matrices, stored as the ops say; at(x, i, j) is element i, j of op(x). */
typedef struct problem_t {
    int m, n, k;
    hgemm_op_t op_a, op_b;
    float *a, *b, *d;
} problem_t;

static float *a_at(const problem_t *p, int i, int l)
{
    return &p->a[p->op_a == HGEMM_OP_N ? i * p->k + l : l * p->m + i];
}

static float *b_at(const problem_t *p, int l, int j)
{
    return &p->b[p->op_b == HGEMM_OP_N ? l * p->n + j : j * p->k + l];
}

static problem_t create(int m, int n, int k, hgemm_op_t op_a, hgemm_op_t op_b)
{
    return (problem_t){m,
                       n,
                       k,
                       op_a,
                       op_b,
                       test_calloc((size_t)m * (size_t)k, 4),
                       test_calloc((size_t)k * (size_t)n, 4),
                       test_calloc((size_t)m * (size_t)n, 4)};
}

static void destroy(problem_t *p)
{
    test_free(p->a), test_free(p->b), test_free(p->d);
}

static void *place(const void *host, size_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

static void multiply(problem_t *p)
{
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    hgemm_desc_t desc;
    memset(p->d, 0xff, m * n * 4);
    hgemm_desc_init(&desc);
    desc.kernel = hgemm_find_kernel(kernel);
    assert_int_not_equal(desc.kernel, HGEMM_KERNEL_AUTO);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = desc.type_d = HGEMM_TYPE_F32;
    desc.op_a = p->op_a, desc.op_b = p->op_b;
    desc.m = p->m, desc.n = p->n, desc.k = p->k;
    desc.lda = p->op_a == HGEMM_OP_N ? p->k : p->m, desc.ldb = p->op_b == HGEMM_OP_N ? p->n : p->k, desc.ldd = p->n;
    void *const a = place(p->a, m * k * 4), *const b = place(p->b, k * n * 4), *const d = place(p->d, m * n * 4);
    desc.a = a, desc.b = b, desc.d = d;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, p->d, d, m * n * 4), HGEMM_STATUS_SUCCESS, "hgemm_download");
    void *const all[] = {a, b, d};
    for (int i = 0; i < 3; i++)
        expect_status(handle, hgemm_free(handle, all[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

/* The contract's bound, in units of 2^-24 times the sum of |a||b|. */
static double bound(int k)
{
    return 40 + fmin(k / 16.0, 32) + k / 200.0;
}

/* Multiplies, and holds every element to `units` of that. Returns the root mean square of the errors over the sums. */
static double check(problem_t *p, const char *what, double units)
{
    double squares = 0;
    multiply(p);
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            double sum = 0, absolute = 0;
            for (int l = 0; l < p->k; l++) {
                const double product = (double)*a_at(p, i, l) * (double)*b_at(p, l, j);
                sum += product, absolute += fabs(product);
            }
            const double got = (double)p->d[i * p->n + j], error = fabs(got - sum);
            const double allowed = units * 0x1p-24 * absolute + 0x1p-24 * fabs(sum) + 0x1p-148;
            if (isnan(sum) || isinf(sum) ? isnan(sum) != isnan(got) || (isinf(sum) && got != sum) : !(error <= allowed))
                fail_msg("%s, %dx%dx%d: element (%d, %d) is %.9g, want %.9g within %.3g, and sum |a||b| is %.3g", what,
                         p->m, p->n, p->k, i, j, got, sum, allowed, absolute);
            squares += absolute > 0 && isfinite(absolute) ? error / absolute * (error / absolute) : 0;
        }
    return sqrt(squares / ((double)p->m * p->n));
}

static float normal(void)
{
    double x = 0;
    for (int i = 0; i < 12; i++)
        x += rng_symmetric(&rng);
    return (float)(x / 2);
}

static float positive(void)
{
    return (float)fabs(rng_symmetric(&rng)) + 0x1p-20f;
}

static float of_80_binades(void)
{
    return ldexpf((float)rng_symmetric(&rng), (int)rng_between(&rng, -40, 40));
}

static float subnormal(void)
{
    return ldexpf((float)rng_between(&rng, -(1 << 22), 1 << 22), -149);
}

static void fill(problem_t *p, float (*draw_a)(void), float (*draw_b)(void))
{
    for (int i = 0; i < p->m * p->k; i++)
        p->a[i] = draw_a();
    for (int i = 0; i < p->k * p->n; i++)
        p->b[i] = draw_b();
}

/* For each pair of ops, of extents that fill chunks and of others. */
static void with_all_layouts(void (*body)(problem_t *))
{
    static const int extents[][3] = {{40, 72, 96}, {37, 19, 61}};
    for (int op = 0; op < 4; op++)
        for (int e = 0; e < 2; e++) {
            problem_t p =
                create(extents[e][0], extents[e][1], extents[e][2], (hgemm_op_t)(op >> 1), (hgemm_op_t)(op & 1));
            body(&p);
            destroy(&p);
        }
}

static void check_ranges(problem_t *p)
{
    fill(p, normal, normal);
    check(p, "normal numbers", bound(p->k));
    fill(p, of_80_binades, of_80_binades);
    check(p, "80 binades", bound(p->k));
    fill(p, subnormal, positive);
    for (int i = 0; i < p->k * p->n; i++)
        p->b[i] = ldexpf(p->b[i], 100);
    check(p, "subnormal numbers", bound(p->k));
    fill(p, normal, normal);
    for (int i = 0; i < p->m; i++)
        for (int l = 0; l < p->k; l++)
            *a_at(p, i, l) = ldexpf(*a_at(p, i, l), i % 2 ? 100 : -100);
    for (int j = 0; j < p->n; j++)
        for (int l = 0; l < p->k; l++)
            *b_at(p, l, j) = ldexpf(*b_at(p, l, j), j % 3 ? -80 : 20);
    check(p, "rows and columns of other magnitudes", bound(p->k));
}

static void every_range_keeps_the_bound(void **state)
{
    (void)state;
    with_all_layouts(check_ranges);
}

/* Graded: a column of A falls as a row of B grows. Cancelling: all but a trace of each sum. */
static void check_structure(problem_t *p)
{
    fill(p, normal, normal);
    for (int l = 0; l < p->k; l++) {
        for (int i = 0; i < p->m; i++)
            *a_at(p, i, l) = ldexpf(*a_at(p, i, l), 60 - l);
        for (int j = 0; j < p->n; j++)
            *b_at(p, l, j) = ldexpf(*b_at(p, l, j), l - 60);
    }
    check(p, "graded numbers", bound(p->k));
    fill(p, normal, normal);
    for (int l = 0; l + 1 < p->k; l += 2) {
        for (int i = 0; i < p->m; i++)
            *a_at(p, i, l + 1) = -*a_at(p, i, l);
        for (int j = 0; j < p->n; j++)
            *b_at(p, l + 1, j) = *b_at(p, l, j) * (1 + 0x1p-12f);
    }
    check(p, "cancelling numbers", bound(p->k));
    memset(p->b, 0, (size_t)p->k * (size_t)p->n * 4);
    for (int l = 0; l < p->k && l < p->n; l++)
        *b_at(p, l, l) = 1;
    fill((problem_t *)&(problem_t){p->m, 0, p->k, p->op_a, p->op_b, p->a, p->b, p->d}, of_80_binades, normal);
    check(p, "times the identity", 4); /* 2^-22 of each */
}

static void structure_keeps_the_bound(void **state)
{
    (void)state;
    with_all_layouts(check_structure);
}

static float integer(void)
{
    return (float)rng_between(&rng, -(1 << 9), 1 << 9);
}

static float wide_integer(void)
{
    return (float)rng_between(&rng, -(1 << 22), 1 << 22);
}

static float sign_or_none(void)
{
    return (float)rng_between(&rng, -1, 1);
}

static void check_integers(problem_t *p)
{
    fill(p, integer, integer);
    for (int i = 0; i < p->m * p->k; i++) /* sums of less than 2^24 */
        p->a[i] = (float)((int)p->a[i] % 256);
    check(p, "integers", 0);
    fill(p, wide_integer, sign_or_none);
    for (int i = 0; i < p->k * p->n; i++) /* three products of 2^22 at most in a sum */
        p->b[i] = 0;
    for (int j = 0; j < p->n; j++)
        for (int t = 0; t < 3; t++)
            *b_at(p, (int)rng_between(&rng, 0, p->k - 1), j) = 1;
    check(p, "integers of 22 bits", 0);
}

static void integers_are_exact(void **state)
{
    (void)state;
    with_all_layouts(check_integers);
}

static void check_specials(problem_t *p)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, 3e37f, 0, -0.0f, 1e-40f, FLT_MAX};
    for (int s = 0; s < 8; s++) {
        fill(p, normal, normal);
        for (int i = 0; i < p->k * p->n; i++) /* no product of the largest number overflows */
            p->b[i] *= 0x1p-9f;
        *a_at(p, (int)rng_between(&rng, 0, p->m - 1), (int)rng_between(&rng, 0, p->k - 1)) = specials[s];
        *b_at(p, (int)rng_between(&rng, 0, p->k - 1), (int)rng_between(&rng, 0, p->n - 1)) = specials[(s + 1) % 3];
        check(p, "infinities and NaN", bound(p->k));
    }
}

static void specials_are_as_ieee_says(void **state)
{
    (void)state;
    with_all_layouts(check_specials);
}

/* Sums of thousands of k's, whose root mean square error is that of cuBLAS's SGEMM at most, as an H100 showed it. */
static void long_sums_stay_close(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        float (*draw)(void);
        int k;
        double most;
    } cases[] = {{"normal numbers", normal, 2048, 1.4e-8}, {"positive numbers", positive, 2048, 1.2e-7}};
    for (int i = 0; i < 2; i++) {
        problem_t p = create(64, 48, cases[i].k, HGEMM_OP_N, HGEMM_OP_T);
        fill(&p, cases[i].draw, cases[i].draw);
        const double error = check(&p, cases[i].what, bound(p.k));
        print_message("%s, k %d: %.2g\n", cases[i].what, cases[i].k, error);
        assert_true(error <= cases[i].most);
        destroy(&p);
    }
}

static void half_sums_are_refused(void **state)
{
    (void)state;
    hgemm_desc_t desc;
    float x[1] = {1};
    hgemm_desc_init(&desc);
    desc.type_a = desc.type_b = desc.type_d = HGEMM_TYPE_F32;
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = 1;
    void *const a = place(x, 4), *const b = place(x, 4), *const d = place(x, 4);
    desc.a = a, desc.b = b, desc.d = d;
    desc.accumulate = HGEMM_ACCUMULATE_F16;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "half sums of floats");
    assert_non_null(strstr(hgemm_error_detail(handle), "HGEMM_ACCUMULATE_F16 for A and B of HGEMM_TYPE_F32"));
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.type_b = HGEMM_TYPE_F16;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "floats beside halves");
    expect_status(handle, hgemm_free(handle, a), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, b), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, d), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_keeps_the_bound), cmocka_unit_test(structure_keeps_the_bound),
        cmocka_unit_test(integers_are_exact),          cmocka_unit_test(specials_are_as_ieee_says),
        cmocka_unit_test(long_sums_stay_close),        cmocka_unit_test(half_sums_are_refused),
    };
    handle = test_open();
    static const char *const kernels[] = {"single_128x64", "planes_128x128"};
    int failures = 0;
    for (int i = 0; i < 2; i++) {
        kernel = kernels[i];
        print_message("%s\n", kernel);
        failures += cmocka_run_group_tests(tests, NULL, NULL);
    }
    hgemm_destroy(handle);
    return failures ? 1 : 0;
}
