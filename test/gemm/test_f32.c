/* SPDX-License-Identifier: MIT */
/*
 * A and B of single precision, or one of them: the contract's bound for every accuracy, against double precision, on
 * data of every range that floats have, and what IEEE says of infinities and NaN; batch invariance. (test_gemm has
 * layouts, batches, indices and epilogues, at random.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gemm_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

/* Whose turn it is. */
static const char *kernel; /* NULL: what selection takes */
static hgemm_accuracy_t accuracy;
static hgemm_type_t type_a, type_b; /* in memory. The problem's floats can be such */
static unsigned flags;
static hgemm_layout_t layout;
static float alpha = 1;
static int matrices = 1; /* of a batch: A and D are cut along m */

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

/* The 16 bits of a number that has no more. */
static uint16_t short_bits(hgemm_type_t type, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return type == HGEMM_TYPE_F16 ? hgemm_half_from_float(x) : (uint16_t)(bits >> 16);
}

static void *place_as(hgemm_type_t type, const float *host, size_t count)
{
    if (type == HGEMM_TYPE_F32)
        return place(host, count * sizeof *host);
    uint16_t *bits = test_malloc(count * sizeof *bits);
    for (size_t i = 0; i < count; i++)
        bits[i] = short_bits(type, host[i]);
    void *const device = place(bits, count * sizeof *bits);
    test_free(bits);
    return device;
}

/* Elements that operands begin beyond aligned memory: of extents that fill no chunks. */
static int skew;

static void *place_skewed(hgemm_type_t type, const float *host, size_t count)
{
    float *const skewed = test_calloc(count + (size_t)skew, sizeof *skewed);
    memcpy(skewed + skew, host, count * sizeof *skewed);
    void *const device = place_as(type, skewed, count + (size_t)skew);
    test_free(skewed);
    return device;
}

static hgemm_desc_t describe(void)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = kernel ? hgemm_find_kernel(kernel) : HGEMM_KERNEL_AUTO;
    assert_true(!kernel || desc.kernel != HGEMM_KERNEL_AUTO);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = type_a, desc.type_b = type_b, desc.type_d = HGEMM_TYPE_F32;
    desc.accuracy = accuracy, desc.flags = flags, desc.layout = layout, desc.alpha = alpha;
    return desc;
}

/* The op for the other layout, in which what is stored by rows is stored by columns. */
static hgemm_op_t op_of(hgemm_op_t op)
{
    return (op == HGEMM_OP_N) == (layout == HGEMM_ROW_MAJOR) ? HGEMM_OP_N : HGEMM_OP_T;
}

/* Makes rows x columns numbers row-major. */
static void by_rows(float *x, int rows, int columns)
{
    float *copy = test_malloc((size_t)rows * (size_t)columns * sizeof *copy);
    memcpy(copy, x, (size_t)rows * (size_t)columns * sizeof *copy);
    for (int i = 0; i < rows && layout == HGEMM_COL_MAJOR; i++)
        for (int j = 0; j < columns; j++)
            x[i * columns + j] = copy[j * rows + i];
    test_free(copy);
}

static void multiply(problem_t *p)
{
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    hgemm_desc_t desc = describe();
    memset(p->d, 0xff, m * n * 4);
    desc.op_a = op_of(p->op_a), desc.op_b = op_of(p->op_b);
    desc.m = p->m / matrices, desc.n = p->n, desc.k = p->k;
    desc.batch = matrices, desc.stride_a = desc.m * desc.k, desc.stride_b = 0, desc.stride_d = desc.m * desc.n;
    desc.lda = p->op_a == HGEMM_OP_N ? p->k : p->m, desc.ldb = p->op_b == HGEMM_OP_N ? p->n : p->k;
    desc.ldd = layout == HGEMM_ROW_MAJOR ? p->n : p->m;
    void *const a = place_skewed(type_a, p->a, m * k), *const b = place_skewed(type_b, p->b, k * n),
                *const d = place(p->d, m * n * 4);
    desc.a = (const char *)a + skew * (type_a == HGEMM_TYPE_F32 ? 4 : 2);
    desc.b = (const char *)b + skew * (type_b == HGEMM_TYPE_F32 ? 4 : 2), desc.d = d;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, p->d, d, m * n * 4), HGEMM_STATUS_SUCCESS, "hgemm_download");
    by_rows(p->d, p->m, p->n);
    void *const all[] = {a, b, d};
    for (int i = 0; i < 3; i++)
        expect_status(handle, hgemm_free(handle, all[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

/* The bound for numbers that keep their scales, and k that is not cut; for any; and for products by 1. */
static double bound(int k)
{
    return reference_float_units(accuracy, k, 0);
}

static double bound_of_all(int k)
{
    return reference_float_units(accuracy, k, 1);
}

static double bound_of_elements(void)
{
    return accuracy == HGEMM_ACCURACY_F32 ? 4 : accuracy == HGEMM_ACCURACY_16_BITS ? 264 : 8192;
}

/* What the contract allows an element of D, whose sum of absolute products is `absolute`: `units` of it, a rounding for
 * each product and one of D where these are subnormal, and that of D where it is not. */
static double allowed_error(const problem_t *p, double units, double sum, double absolute)
{
    return units * 0x1p-24 * absolute + 0x1p-24 * fabs(sum) + (p->k + 1) * 0x1p-150;
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
            const double allowed = allowed_error(p, units, sum, absolute);
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
/* What is known of the kernel, or of all of them together. */
static hgemm_kernel_info_t info_of_kernel(void)
{
    hgemm_kernel_info_t info = {.any_alignment = 1, .ops = HGEMM_OPS_NN | HGEMM_OPS_NT | HGEMM_OPS_TN | HGEMM_OPS_TT};
    if (kernel)
        assert_int_equal(hgemm_get_kernel_info(hgemm_find_kernel(kernel), &info), HGEMM_STATUS_SUCCESS);
    return info;
}

static void with_all_layouts(void (*body)(problem_t *))
{
    static const int extents[][3] = {{40, 72, 96}, {36, 20, 60}, {37, 19, 61}};
    const hgemm_kernel_info_t info = info_of_kernel();
    for (int op = 0; op < 4; op++)
        for (int e = 0; e < 2 && info.ops >> op & 1; e++) {
            const int *const x = extents[e && info.any_alignment ? 2 : e];
            skew = e && info.any_alignment ? op : 0;
            problem_t p = create(x[0], x[1], x[2], (hgemm_op_t)(op >> 1), (hgemm_op_t)(op & 1));
            body(&p);
            destroy(&p);
        }
    skew = 0;
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

/* Products, and sums of them, below the normal numbers: of 2^-151, each less than half of the least number that there
 * is, so that FP32 units lose all; and of any size around that. */
static void check_tiny_products(problem_t *p)
{
    static const int exponents[] = {-149, -100, -2}; /* of A */
    for (int e = 0; e < 3; e++) {
        for (int i = 0; i < p->m * p->k; i++)
            p->a[i] = ldexpf(1, exponents[e]);
        for (int i = 0; i < p->k * p->n; i++)
            p->b[i] = ldexpf(1, -151 - exponents[e]);
        check(p, "products of 2^-151", bound(p->k));
        for (int i = 0; i < p->m * p->k; i++)
            p->a[i] *= normal();
        for (int i = 0; i < p->k * p->n; i++)
            p->b[i] *= positive();
        check(p, "products below subnormal numbers", bound_of_all(p->k));
        for (int i = 0; i < p->k * p->n; i++)
            p->b[i] = ldexpf(p->b[i], (int)rng_between(&rng, 0, 40));
        check(p, "products around subnormal numbers", bound_of_all(p->k));
    }
}

static void tiny_products_are_lost_as_by_fp32_at_most(void **state)
{
    (void)state;
    for (int k = 60; k <= 240; k *= 4) {
        problem_t p = create(36, 20, k, HGEMM_OP_N, HGEMM_OP_T);
        check_tiny_products(&p);
        destroy(&p);
    }
}

/* Sums beyond FP32, whose products have one sign or both: D is finite and within the bound, or a part of it is beyond
 * FP32. Then it is not finite, but the infinity of that sign where all products have one. */
static void check_sums_beyond_floats(problem_t *p, float (*draw)(void), int exponent)
{
    int finite = 0;
    fill(p, draw, draw);
    for (int i = 0; i < p->m * p->k; i++)
        p->a[i] = ldexpf(p->a[i], exponent / 2);
    for (int i = 0; i < p->k * p->n; i++)
        p->b[i] = ldexpf(draw == positive ? -p->b[i] : p->b[i], exponent - exponent / 2);
    multiply(p);
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            double sum = 0, absolute = 0;
            for (int l = 0; l < p->k; l++) {
                const double product = (double)*a_at(p, i, l) * (double)*b_at(p, l, j);
                sum += product, absolute += fabs(product);
            }
            const double got = (double)p->d[i * p->n + j],
                         allowed = allowed_error(p, bound_of_all(p->k), sum, absolute);
            const int is_right = isfinite(got)      ? fabs(got - sum) <= allowed
                                 : draw == positive ? isinf(got) && got < 0 && sum - allowed <= -0x1.ffffffp127
                                                    : absolute > 0x1p127;
            if (!is_right)
                fail_msg("%dx%dx%d, numbers times 2^%d: element (%d, %d) is %.9g, want %.9g within %.3g, and sum "
                         "|a||b| is %.3g",
                         p->m, p->n, p->k, exponent, i, j, got, sum, allowed, absolute);
            finite += isfinite(got) != 0;
        }
    assert_true(exponent > 110 || finite > 0);
}

static void sums_beyond_floats_are_not_finite(void **state)
{
    (void)state;
    for (int k = 8; k <= 512; k *= 4) {
        problem_t p = create(36, 20, k + k / 64 * 4, HGEMM_OP_N, HGEMM_OP_T);
        for (int exponent = 110; exponent <= 134; exponent += 8) {
            check_sums_beyond_floats(&p, normal, exponent);
            check_sums_beyond_floats(&p, positive, exponent);
        }
        destroy(&p);
    }
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
    check(p, "times the identity", bound_of_elements());
}

static void structure_keeps_the_bound(void **state)
{
    (void)state;
    with_all_layouts(check_structure);
}

/* A few numbers so small that no scale holds them beside the others of their row or column, each alone in a sum. */
static void a_few_small_numbers_keep_the_bound(void **state)
{
    (void)state;
    enum { FEW = 3 };
    const int step = info_of_kernel().ops & HGEMM_OPS_TT ? 3 : 1; /* nn and tt, or nn and nt */
    for (int op = 0; op <= step; op += step) {
        problem_t p = create(132, 36, 1100, (hgemm_op_t)(op >> 1), (hgemm_op_t)(op & 1));
        static const int ks[FEW] = {3, 700, 1099};
        fill(&p, normal, normal);
        for (int s = 0; s < FEW; s++) {
            for (int l = 0; l < p.k; l++)
                if (l != ks[s])
                    *b_at(&p, l, 5 * s) = *a_at(&p, 40 * s, l) = 0;
            *a_at(&p, 40 * s + 1, ks[s]) *= 0x1p-40f, *b_at(&p, ks[s], 5 * s + 2) *= 0x1p-37f;
        }
        *a_at(&p, 1, 600) = INFINITY; /* in a row that has a small one, too */
        check(&p, "few small numbers", bound_of_all(p.k));
        destroy(&p);
    }
}

static void batches_are_apart(void **state)
{
    (void)state;
    problem_t p = create(3 * 40, 136, 48, HGEMM_OP_N, HGEMM_OP_N);
    fill(&p, normal, normal);
    matrices = 3;
    check(&p, "three matrices", bound(p.k));
    matrices = 1;
    destroy(&p);
}

/* Of a power of two to the bit, whichever way D is stored: by pairs, or where a row has an odd end. */
static void alpha_scales_what_is_stored(void **state)
{
    (void)state;
    for (int n = 135; n <= 136; n++) {
        problem_t p = create(70, n, 48, HGEMM_OP_N, n % 2 ? HGEMM_OP_T : HGEMM_OP_N);
        for (int i = 0; i < p.m * p.k; i++)
            p.a[i] = (float)rng_between(&rng, -999, 999) / 7;
        for (int i = 0; i < p.k * p.n; i++)
            p.b[i] = (float)rng_between(&rng, -999, 999) / 7;
        multiply(&p);
        float *const sums = test_malloc((size_t)p.m * (size_t)p.n * sizeof *sums);
        memcpy(sums, p.d, (size_t)p.m * (size_t)p.n * sizeof *sums);
        alpha = -0.25F;
        multiply(&p);
        alpha = 1;
        for (int i = 0; i < p.m * p.n; i++)
            assert_true(p.d[i] == -0.25F * sums[i]);
        test_free(sums);
        destroy(&p);
    }
}

/* Sums of k's that are all alike, which err alike: as they are, and where a small number in every k-tile, in some rows
 * and columns, leaves these without a scale. */
static void sums_of_equals_keep_the_bound(void **state)
{
    (void)state;
    enum { K = 4096 };
    for (int turn = accuracy == HGEMM_ACCURACY_F32 ? 0 : 2; turn < 3; turn++) {
        problem_t p = create(7, 6, K, HGEMM_OP_N, HGEMM_OP_T);
        const float x = 1 + positive(), y = 1 + positive();
        for (int l = 0; l < K; l++) {
            for (int i = 0; i < p.m; i++)
                *a_at(&p, i, l) = turn > 0 && i % 2 && l % 32 == 5 ? x * 0x1p-40f : x;
            for (int j = 0; j < p.n; j++)
                *b_at(&p, l, j) = turn > 1 && j % 2 && l % 32 == 9 ? y * 0x1p-40f : y;
        }
        check(&p, "equal numbers", bound_of_all(K));
        destroy(&p);
    }
}

static float integer(void)
{
    return (float)rng_between(&rng, -(1 << 9), 1 << 9);
}

/* Of 22 bits, or of 11 where no more are promised. */
static float wide_integer(void)
{
    const int most = accuracy == HGEMM_ACCURACY_F32 ? 1 << 22 : 1 << 11;
    return (float)rng_between(&rng, -most, most);
}

static float sign_or_none(void)
{
    return (float)rng_between(&rng, -1, 1);
}

static void check_integers(problem_t *p)
{
    fill(p, integer, integer);
    for (int i = 0; i < p->m * p->k; i++) /* sums of less than 2^24, or 2^17 */
        p->a[i] = (float)((int)p->a[i] % (accuracy == HGEMM_ACCURACY_F32 ? 256 : 2));
    check(p, "integers", 0);
    fill(p, wide_integer, sign_or_none);
    for (int i = 0; i < p->k * p->n; i++) /* three products of 2^22 at most in a sum */
        p->b[i] = 0;
    for (int j = 0; j < p->n; j++)
        for (int t = 0; t < 3; t++)
            *b_at(p, (int)rng_between(&rng, 0, p->k - 1), j) = 1;
    check(p, "integers of many bits", 0);
    if (accuracy != HGEMM_ACCURACY_F32)
        return;
    for (int i = 0; i < p->m * p->k; i++) /* three products of 12 and of 11 bits */
        p->a[i] = (float)((int)p->a[i] % 2600);
    for (int i = 0; i < p->k * p->n; i++)
        p->b[i] *= (float)rng_between(&rng, 1, 1 << 10) * 2 - 1;
    check(p, "integers of 12 and of 11 bits", 0);
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
        double most[3]; /* by accuracy */
    } cases[] = {{"normal numbers", normal, 2048, {1.4e-8, 3e-7, 2e-5}},
                 {"positive numbers", positive, 2048, {1.2e-7, 4e-6, 4e-5}}};
    for (int i = 0; i < 2; i++) {
        problem_t p = create(64, 48, cases[i].k, HGEMM_OP_N, HGEMM_OP_T);
        fill(&p, cases[i].draw, cases[i].draw);
        const double error = check(&p, cases[i].what, bound(p.k));
        print_message("%s, k %d: %.2g\n", cases[i].what, cases[i].k, error);
        assert_true(error <= cases[i].most[accuracy]);
        destroy(&p);
    }
}

/* ---- Halves and bfloat16 beside floats ------------------------------------------------------------ */

/* Makes the numbers such that a type has. */
static void round_to(hgemm_type_t type, float *x, int count)
{
    for (int i = 0; i < count && type != HGEMM_TYPE_F32; i++) {
        const uint16_t bits = short_bits(type, x[i]);
        const uint32_t above = (uint32_t)bits << 16;
        if (type == HGEMM_TYPE_F16)
            x[i] = hgemm_half_to_float(bits);
        else
            memcpy(&x[i], &above, sizeof x[i]);
    }
}

static void check_mixed(problem_t *p)
{
    static const hgemm_type_t types[][2] = {{HGEMM_TYPE_F32, HGEMM_TYPE_F16},
                                            {HGEMM_TYPE_F32, HGEMM_TYPE_BF16},
                                            {HGEMM_TYPE_F16, HGEMM_TYPE_F32},
                                            {HGEMM_TYPE_BF16, HGEMM_TYPE_F32}};
    static float (*const draw[])(void) = {normal, of_80_binades, positive};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 3; i++) {
            type_a = types[t][0], type_b = types[t][1];
            fill(p, draw[i], draw[i]);
            if (i == 2)
                *a_at(p, p->m / 2, p->k / 3) = INFINITY, *b_at(p, p->k / 2, p->n / 3) = NAN;
            round_to(type_a, p->a, p->m * p->k), round_to(type_b, p->b, p->k * p->n);
            check(p, "floats beside others", bound(p->k));
        }
    type_a = type_b = HGEMM_TYPE_F32;
}

static void halves_beside_floats_keep_the_bound(void **state)
{
    (void)state;
    with_all_layouts(check_mixed);
    problem_t few = create(3, 256, 200, HGEMM_OP_N, HGEMM_OP_T); /* rows for FP32 units */
    check_mixed(&few);
    destroy(&few);
}

/* Where an operand of halves is copied as floats, and where it is not. */
static void halves_are_copied_where_that_pays(void **state)
{
    (void)state;
    hgemm_plan_t plan;
    hgemm_plan_info_t info;
    for (int is_aligned = 0; is_aligned < 2; is_aligned++) {
        hgemm_desc_t desc = describe();
        desc.type_b = HGEMM_TYPE_F16, desc.op_b = HGEMM_OP_T;
        desc.m = 256, desc.n = 512, desc.k = 512, desc.lda = desc.ldb = desc.ldd = 512;
        desc.a = (const void *)(uintptr_t)(is_aligned ? 256 : 4);
        expect_status(handle, hgemm_plan_create(&plan, handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_plan_create");
        expect_status(handle, hgemm_plan_get_info(plan, &info), HGEMM_STATUS_SUCCESS, "hgemm_plan_get_info");
        assert_int_equal(info.copies_b, 1);
        assert_int_equal(info.copies_a, !is_aligned);
        hgemm_plan_destroy(plan);
    }
}

/* What the flag says is relied on: such an operand has no low parts. */
static void check_halves_in_floats(problem_t *p)
{
    for (int which = 0; which < 2; which++) {
        fill(p, normal, normal);
        flags = which ? HGEMM_FLAG_HALVES_IN_B : HGEMM_FLAG_HALVES_IN_A;
        const double error = check(p, "floats that are no halves", 2 * 8192);
        assert_true(!kernel || error > 1e-6); /* FP32 units, which may be chosen, do not look at the flag */
        round_to(HGEMM_TYPE_F16, which ? p->b : p->a, which ? p->k * p->n : p->m * p->k);
        check(p, "halves in floats", bound(p->k));
        flags = 0;
    }
}

static void floats_may_hold_halves(void **state)
{
    (void)state;
    with_all_layouts(check_halves_in_floats);
}

/* ---- Batch invariance ----------------------------------------------------------------------------- */

enum { ROWS = 150, COLUMNS = 40, DEPTH = 104 };
typedef enum way_t { ALONE, OFFSET, STRIDED, GROUPED, GATHERED, BY_POINTERS, WAYS } way_t;

/* Multiplies `count` rows of A from `first` on in one of the ways, and compares them with those of D. */
static void compare_rows(const problem_t *p, hgemm_type_t type, way_t way, int first, int count)
{
    static const char *const names[] = {"alone", "unaligned", "strided", "grouped", "gathered", "by pointers"};
    const int offset = way == OFFSET ? 1 : 0, element = type == HGEMM_TYPE_F32 ? 4 : 2;
    const int32_t ends[2] = {count / 3, count};
    int32_t rows[ROWS];
    float d[2 * ROWS * COLUMNS], *a = test_calloc((size_t)(count + 1) * DEPTH, 4);
    hgemm_desc_t desc = describe();
    for (int i = 0; i < count; i++)
        rows[i] = count - 1 - i;
    for (int i = 0; i < count; i++)
        for (int l = 0; l < DEPTH; l++) {
            const int row = way == GATHERED ? rows[i] : i;
            a[offset + (p->op_a == HGEMM_OP_N ? row * DEPTH + l : l * count + row)] = *a_at(p, first + i, l);
        }
    void *const of_a = place_as(type, a, (size_t)(count + 1) * DEPTH), *const of_b = place(p->b, DEPTH * COLUMNS * 4),
                *const of_d = place(d, sizeof d), *list = NULL;
    desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    desc.type_a = type, desc.op_a = op_of(p->op_a), desc.op_b = op_of(p->op_b);
    desc.m = count, desc.n = COLUMNS, desc.k = DEPTH;
    desc.a = (const char *)of_a + offset * element, desc.lda = p->op_a == HGEMM_OP_N ? DEPTH : count;
    desc.b = of_b, desc.ldb = p->op_b == HGEMM_OP_N ? COLUMNS : DEPTH, desc.d = of_d;
    desc.ldd = layout == HGEMM_ROW_MAJOR ? COLUMNS : count;
    const uint64_t pointers[] = {(uint64_t)(uintptr_t)desc.a, (uint64_t)(uintptr_t)desc.b, (uint64_t)(uintptr_t)of_d};
    if (way == STRIDED) { /* twice the same */
        desc.batch = 2, desc.stride_d = count * COLUMNS;
    } else if (way == GROUPED) {
        desc.batch_mode = HGEMM_BATCH_GROUPED, desc.batch = 2, desc.group_ends = list = place(ends, sizeof ends);
    } else if (way == GATHERED) {
        desc.gather_a = list = place(rows, sizeof rows);
    } else if (way == BY_POINTERS) {
        list = place(pointers, sizeof pointers);
        desc.batch_mode = HGEMM_BATCH_POINTERS;
        desc.a = list, desc.b = (const char *)list + 8, desc.d = (char *)list + 16;
    }
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, d, of_d, sizeof d), HGEMM_STATUS_SUCCESS, "hgemm_download");
    float *const last = d + (way == STRIDED ? count * COLUMNS : 0);
    by_rows(last, count, COLUMNS);
    for (int i = 0; i < count * COLUMNS; i++)
        if (memcmp(&last[i], &p->d[first * COLUMNS + i], 4) != 0)
            fail_msg("%d rows from %d on, %s: row %d, column %d is %.9g, and %.9g among all", count, first, names[way],
                     first + i / COLUMNS, i % COLUMNS, (double)last[i], (double)p->d[first * COLUMNS + i]);
    void *const all[] = {of_a, of_b, of_d, list};
    for (int i = 0; i < (list ? 4 : 3); i++)
        expect_status(handle, hgemm_free(handle, all[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
    test_free(a);
}

/* Rows of all kinds: some have scales of their own, some none, in a part of their k's. */
static void rows_do_not_depend_on_others(void **state)
{
    (void)state;
    static const hgemm_type_t types[] = {HGEMM_TYPE_F32, HGEMM_TYPE_BF16};
    static const int counts[] = {1, 5, 64, 129};
    kernel = NULL, accuracy = HGEMM_ACCURACY_11_BITS; /* which is no reason to depend on them */
    for (int turn = 0; turn < 8; turn++) {
        const int op = turn % 4;
        const hgemm_type_t type = types[(op + turn / 4) % 2];
        layout = turn < 4 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
        problem_t p = create(ROWS, COLUMNS, DEPTH, (hgemm_op_t)(op >> 1), (hgemm_op_t)(op & 1));
        fill(&p, normal, normal);
        for (int i = 0; i < ROWS; i++) {
            const int from = (int)rng_between(&rng, 0, DEPTH - 1);
            for (int l = from; l < DEPTH && i % 5 < 3; l++)
                *a_at(&p, i, l) = i % 5 == 0 ? of_80_binades() : ldexpf(*a_at(&p, i, l), i % 5 == 1 ? 60 : -60);
        }
        *a_at(&p, ROWS / 2, DEPTH / 2) = INFINITY, *b_at(&p, DEPTH / 3, COLUMNS / 2) = 1e12f;
        round_to(type, p.a, ROWS * DEPTH);
        flags = HGEMM_FLAG_BATCH_INVARIANT, type_a = type;
        check(&p, "rows of all kinds", 40 + DEPTH / 16.0 + DEPTH / 200.0 + DEPTH / 32.0);
        for (int way = 0; way < WAYS; way++)
            compare_rows(&p, type, (way_t)way, (int)rng_between(&rng, 0, ROWS - 129),
                         counts[(way + turn + turn / 4) % 4]);
        flags = 0, type_a = HGEMM_TYPE_F32;
        destroy(&p);
    }
    accuracy = HGEMM_ACCURACY_F32, layout = HGEMM_ROW_MAJOR;
}

/* ---- What is refused ------------------------------------------------------------------------------ */

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    float x[1] = {1};
    kernel = NULL;
    hgemm_desc_t desc = describe();
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = 1;
    void *const a = place(x, 4), *const b = place(x, 4), *const d = place(x, 4);
    desc.a = a, desc.b = b, desc.d = d;
    desc.accumulate = HGEMM_ACCUMULATE_F16;
    for (int i = 0; i < 2; i++) {
        desc.type_b = i ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F32;
        expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "half sums of floats");
        assert_non_null(strstr(hgemm_error_detail(handle), "HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32"));
    }
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.accuracy = (hgemm_accuracy_t)3;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_INVALID_ACCURACY, "an accuracy that is none");
    assert_non_null(strstr(hgemm_error_detail(handle), "accuracy is 3."));
    desc.accuracy = HGEMM_ACCURACY_F32, desc.type_b = HGEMM_TYPE_F32;
    desc.kernel = hgemm_find_kernel("single11_128x128");
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "a kernel that promises less");
    assert_non_null(strstr(hgemm_error_detail(handle), "accuracy f32"));
    desc.kernel = hgemm_find_kernel("fma_32x32"), desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "a kernel that is not invariant");
    expect_status(handle, hgemm_free(handle, a), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, b), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, d), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

int main(void)
{
    const struct CMUnitTest of_each_kernel[] = {
        cmocka_unit_test(every_range_keeps_the_bound),
        cmocka_unit_test(tiny_products_are_lost_as_by_fp32_at_most),
        cmocka_unit_test(sums_beyond_floats_are_not_finite),
        cmocka_unit_test(structure_keeps_the_bound),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(specials_are_as_ieee_says),
        cmocka_unit_test(long_sums_stay_close),
        cmocka_unit_test(a_few_small_numbers_keep_the_bound),
        cmocka_unit_test(sums_of_equals_keep_the_bound),
        cmocka_unit_test(alpha_scales_what_is_stored),
        cmocka_unit_test(batches_are_apart),
    };
    const struct CMUnitTest of_halves[] = {
        cmocka_unit_test(halves_beside_floats_keep_the_bound),
        cmocka_unit_test(floats_may_hold_halves),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(halves_are_copied_where_that_pays),
        cmocka_unit_test(rows_do_not_depend_on_others),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    static const struct {
        const char *kernel;
        hgemm_accuracy_t accuracy;
    } turns[] = {{"single_128x64", HGEMM_ACCURACY_F32},
                 {"single_128x128", HGEMM_ACCURACY_F32},
                 {"single_32x64", HGEMM_ACCURACY_F32},
                 {"few_64x16", HGEMM_ACCURACY_F32},
                 {"few_16x64", HGEMM_ACCURACY_F32},
                 {"fma_64x64", HGEMM_ACCURACY_F32},
                 {"fma_32x32", HGEMM_ACCURACY_F32},
                 {"single16_256x128", HGEMM_ACCURACY_16_BITS},
                 {"single11_128x128", HGEMM_ACCURACY_11_BITS},
                 {NULL, HGEMM_ACCURACY_F32}};
    int failures = 0;
    handle = test_open();
    type_a = type_b = HGEMM_TYPE_F32;
    for (int i = 0; i < (int)(sizeof turns / sizeof turns[0]); i++) {
        kernel = turns[i].kernel, accuracy = turns[i].accuracy;
        print_message("%s\n", kernel ? kernel : "any kernel");
        if (kernel)
            failures += cmocka_run_group_tests(of_each_kernel, NULL, NULL);
        if (!kernel || i == 0) /* with copies, and without */
            failures += cmocka_run_group_tests(of_halves, NULL, NULL);
    }
    failures += cmocka_run_group_tests(once, NULL, NULL);
    hgemm_destroy(handle);
    return failures ? 1 : 0;
}
