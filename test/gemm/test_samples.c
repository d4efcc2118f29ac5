/* SPDX-License-Identifier: MIT */
/*
 * Scales that a call finds in samples of A and B: which products do, that those of numbers which the sample has not met
 * come out as if all had been read, and that every kernel for bfloat16 notices such numbers wherever they are. The
 * library's search leaves in the workspace what this looks at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table/args.h"
#include "gemm_operands.h"
#include "api/handle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 32 << 20, UNTOUCHED = 0x5a5a5a5a };

static hgemm_handle_t handle;
static char *workspace;
static rng_t rng = {1};

static uint16_t bits_of(double x)
{
    uint16_t bits;
    store_value(HGEMM_TYPE_BF16, &bits, x);
    return bits;
}

static double value(uint16_t bits)
{
    return value_of(HGEMM_TYPE_BF16, &bits);
}

/* ---- A product ---------------------------------------------------------------------------------- */

/* A stored matrix, of which a sample is of `every` segments in a row one, of rows those that `every_row` divides. */
typedef struct stored_t {
    uint16_t *x;
    int64_t lines, width, ld;
    int64_t every, every_row;
} stored_t;

typedef struct product_t {
    int op_a, op_b;
    int64_t m, n, k;
    stored_t a, b;
    float *d;
    hgemm_desc_t desc;
} product_t;

/* What the search has left: the word for an overflow, and the scales. */
static scale_space_t space;

static stored_t store(int64_t lines, int64_t width, int64_t gap)
{
    stored_t s = {.lines = lines, .width = width, .ld = width + gap, .every = 1, .every_row = 1};
    int64_t segments = (width + 63) / 64;
    s.x = must(calloc((size_t)(lines * s.ld), sizeof *s.x));
    while (lines * width * 2 / (2 * s.every) >= 256 << 10 && 2 * s.every <= lines)
        s.every *= 2;
    for (; s.every > segments; s.every /= 2)
        s.every_row *= 2;
    return s;
}

/* As args.h has it. */
static int is_sampled(const stored_t *s, int64_t line, int64_t column)
{
    return line % s->every_row == 0 && (line / s->every_row * 11 - column / 64) % s->every == 0;
}

/* Operands of -1, 0 and 1, which have room to be sampled: more where the device samples larger ones. */
static product_t make(int op_a, int op_b, int64_t m, int64_t n, int64_t k, int64_t gap)
{
    product_t p = {.op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k * (handle->machine.is_newer ? 12 : 1)};
    p.a = op_a ? store(p.k, m, gap) : store(m, p.k, gap);
    p.b = op_b ? store(n, p.k, gap) : store(p.k, n, gap);
    p.d = must(malloc((size_t)(m * n) * sizeof *p.d));
    for (int which = 0; which < 2; which++) {
        const stored_t *s = which ? &p.b : &p.a;
        for (int64_t i = 0; i < s->lines * s->ld; i++)
            s->x[i] = i % s->ld < s->width ? bits_of((double)rng_between(&rng, -1, 1)) : 0x7fff;
    }
    hgemm_desc_init(&p.desc);
    p.desc.accumulate = HGEMM_ACCUMULATE_F32;
    p.desc.type_a = p.desc.type_b = HGEMM_TYPE_BF16, p.desc.type_d = HGEMM_TYPE_F32;
    p.desc.op_a = op_a ? HGEMM_OP_T : HGEMM_OP_N, p.desc.op_b = op_b ? HGEMM_OP_T : HGEMM_OP_N;
    p.desc.m = m, p.desc.n = n, p.desc.k = p.k;
    p.desc.lda = p.a.ld, p.desc.ldb = p.b.ld, p.desc.ldd = n;
    return p;
}

static void discard(product_t *p)
{
    free(p->a.x), free(p->b.x), free(p->d);
}

static uint16_t *a_at(const product_t *p, int64_t i, int64_t q)
{
    return &p->a.x[p->op_a ? q * p->a.ld + i : i * p->a.ld + q];
}

static uint16_t *b_at(const product_t *p, int64_t q, int64_t j)
{
    return &p->b.x[p->op_b ? j * p->b.ld + q : q * p->b.ld + j];
}

/* A k at which row i of op(A), or column j of op(B), is or is not in the sample. */
static int64_t k_of_a(const product_t *p, int64_t i, int sampled)
{
    int64_t q = 0;
    while (q < p->k && is_sampled(&p->a, p->op_a ? q : i, p->op_a ? i : q) != sampled)
        q++;
    assert_true(q < p->k);
    return q;
}

static int64_t k_of_b(const product_t *p, int64_t j, int sampled)
{
    int64_t q = 0;
    while (q < p->k && is_sampled(&p->b, p->op_b ? j : q, p->op_b ? q : j) != sampled)
        q++;
    assert_true(q < p->k);
    return q;
}

/* Sums of all products, in order; the caller's to free. */
static double *reference(const product_t *p)
{
    double *sums = must(malloc((size_t)(p->m * p->n) * sizeof *sums));
    float *b = must(malloc((size_t)(p->n * p->k) * sizeof *b)), *row = must(malloc((size_t)p->k * sizeof *row));
    for (int64_t i = 0; i < p->n * p->k; i++)
        b[i] = (float)value(*b_at(p, i % p->k, i / p->k));
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t q = 0; q < p->k; q++)
            row[q] = (float)value(*a_at(p, i, q));
        for (int64_t j = 0; j < p->n; j++) {
            const float *const column = &b[j * p->k];
            double sum = 0;
            for (int64_t q = 0; q < p->k; q++)
                sum += (double)row[q] * (double)column[q];
            sums[i * p->n + j] = sum;
        }
    }
    free(b), free(row);
    return sums;
}

static void *place(const void *host, size_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

static void take(void *host, const void *device, size_t bytes)
{
    expect_status(handle, hgemm_download(handle, host, device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_download");
}

static void release(const void *device)
{
    expect_status(handle, hgemm_free(handle, (void *)device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

/* Multiplies, by a plan if one is given, into p->d and `space`. C, if there is one, is D or beside it. */
static void run_with(product_t *p, const plan_t *plan, const float *c, int c_is_d)
{
    const size_t bytes = (size_t)(p->m * p->n) * sizeof *p->d;
    char *const end = workspace + WORKSPACE - sizeof space;
    hgemm_desc_t *desc = &p->desc;
    memset(p->d, 0xff, bytes);
    memset(&space, UNTOUCHED & 0xff, sizeof space);
    expect_status(handle, hgemm_upload(handle, end, &space, sizeof space), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    desc->a = place(p->a.x, (size_t)(p->a.lines * p->a.ld) * 2);
    desc->b = place(p->b.x, (size_t)(p->b.lines * p->b.ld) * 2);
    desc->d = place(c_is_d ? c : p->d, bytes);
    desc->c = c_is_d ? desc->d : c ? place(c, bytes) : NULL;
    const hgemm_desc_t row_major = normalise(desc);
    const hgemm_status_t status = plan ? handle_launch(handle, &row_major, plan) : hgemm_run_desc(handle, desc);
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, "the product");
    take(p->d, desc->d, bytes);
    take(&space, end, sizeof space);
    release(desc->a), release(desc->b), release(desc->d);
    if (!c_is_d)
        release(desc->c);
}

static void run(product_t *p, const plan_t *plan)
{
    run_with(p, plan, NULL, 0);
}

static void assert_sums(const product_t *p, const double *sums)
{
    for (int64_t i = 0; i < p->m * p->n; i++)
        if (isnan(sums[i]) ? !isnan(p->d[i]) : (double)p->d[i] != sums[i])
            fail_msg("row %d, column %d is %.9g, want %.9g", (int)(i / p->n), (int)(i % p->n), (double)p->d[i],
                     sums[i]);
}

static void run_and_compare(product_t *p, unsigned overflow)
{
    double *sums = reference(p);
    run(p, NULL);
    assert_sums(p, sums);
    assert_int_equal(space.found.overflow, overflow);
    free(sums);
}

/* ---- What is met, and what is missed ------------------------------------------------------------ */

enum { M = 40, N = 24, K = 13312, OUTLIER = 1 << 15 };

static void a_sample_serves_usual_numbers(void **state)
{
    (void)state;
    for (int op = 0; op < 4; op++) {
        product_t p = make(op / 2, op % 2, M, N, K, 0);
        run_and_compare(&p, 0);
        assert_true((double)space.scale[0] == 0x1p12 && (double)space.scale[1] == 0x1p12);
        discard(&p);
    }
}

/* Rows that are not aligned are sampled, too, and so is what is then copied. */
static void as_it_does_where_nothing_is_aligned(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, N, K + 3, 3);
    run_and_compare(&p, 0);
    *a_at(&p, M - 1, k_of_a(&p, M - 1, 0)) = bits_of(OUTLIER);
    run_and_compare(&p, 1);
    discard(&p);
}

static void what_it_misses_is_found_after_all(void **state)
{
    (void)state;
    for (int op = 0; op < 4; op++)
        for (int is_b = 0; is_b < 2; is_b++)
            for (int sampled = 0; sampled < 2; sampled++) {
                product_t p = make(op / 2, op % 2, M, N, K, 0);
                if (is_b)
                    *b_at(&p, k_of_b(&p, 5, sampled), 5) = bits_of(-OUTLIER);
                else
                    *a_at(&p, 7, k_of_a(&p, 7, sampled)) = bits_of(OUTLIER);
                run_and_compare(&p, !sampled);
                assert_true((double)space.scale[is_b] == (sampled ? 0x1p-3 : 0x1p0));
                assert_true((double)space.scale[!is_b] == (sampled ? 0x1p12 : 0x1p15));
                discard(&p);
            }
}

/* Three binades of room: 15 times as large as what the sample has is no overflow, 16 times is. */
static void there_is_room_above_a_sample(void **state)
{
    (void)state;
    for (int large = 15; large <= 16; large++) {
        product_t p = make(0, 1, M, N, K, 0);
        *a_at(&p, 0, k_of_a(&p, 0, 0)) = bits_of(large);
        run_and_compare(&p, large == 16);
        discard(&p);
    }
}

static void infinities_and_nan_are_those_of_ieee(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        product_t p = make(0, 0, M, N, K, 0);
        *a_at(&p, 3, k_of_a(&p, 3, sampled)) = 0x7f80;
        *a_at(&p, 4, k_of_a(&p, 4, sampled)) = 0x7fc0;
        *b_at(&p, k_of_b(&p, 6, sampled), 6) = 0xff80;
        run_and_compare(&p, 1);
        assert_true((double)space.scale[0] == 0x1p15 && (double)space.scale[1] == 0x1p15);
        discard(&p);
    }
}

/* An A of `usual` numbers, and one that the sample has not met. */
static void one_beside(uint16_t usual, uint16_t other, unsigned overflow)
{
    product_t p = make(0, 1, M, N, K, 0);
    for (int64_t i = 0; i < p.a.lines * p.a.ld; i++)
        p.a.x[i] = usual;
    *a_at(&p, M - 1, k_of_a(&p, M - 1, 0)) = other;
    run_and_compare(&p, overflow);
    discard(&p);
}

static void a_sample_of_zeros_hides_nothing(void **state)
{
    (void)state;
    one_beside(0, 0, 0);
    one_beside(0x8000, 0x3f80, 1);
    one_beside(0, 0x7f00, 1);
    one_beside(0, 0x0001, 0);
    one_beside(0, bits_of(0x1p-111), 0);
    one_beside(0, bits_of(0x1p-110), 1);
}

static void nor_does_one_of_the_smallest_or_largest(void **state)
{
    (void)state;
    one_beside(0x0001, 0x0001, 0);
    one_beside(0x0003, bits_of(0x1p-110), 1);
    one_beside(0x0003, bits_of(0x1p-120), 0);
    one_beside(bits_of(0x1p110), bits_of(0x1p113), 0);
    one_beside(bits_of(0x1p113), bits_of(0x1p127), 1);
    product_t p = make(0, 1, M, N, K, 0);
    for (int64_t i = 0; i < p.a.lines * p.a.ld; i++)
        p.a.x[i] = 0;
    *a_at(&p, 0, k_of_a(&p, 0, 1)) = bits_of(0x1p126);
    *a_at(&p, 1, k_of_a(&p, 1, 0)) = bits_of(0x1p127);
    run_and_compare(&p, 0); /* there is no smaller scale, and no overflow by it */
    assert_true((double)space.scale[0] == 0x1p-112);
    discard(&p);
}

/* The contract's bounds: 2^-29 of the largest element is exact, less is off by 2^-37 of it. */
static void elements_are_as_exact_as_the_contract_says(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, N, K, 0);
    for (int64_t i = 0; i < p.a.lines * p.a.ld; i++)
        p.a.x[i] = 0;
    for (int64_t j = 0; j < N; j++)
        for (int64_t q = 0; q < p.k; q++)
            *b_at(&p, q, j) = bits_of(q % N == j);
    /* D is some columns of A: numbers of all binades below 2^7, 2^4 being the largest that the sample meets, and usual.
     */
    for (int64_t i = 0; i < M; i++) {
        for (int64_t q = 0; q < p.k; q += N)
            *a_at(&p, i, q) = bits_of(0x1p4);
        for (int64_t j = 0; j < N; j++)
            *a_at(&p, i, k_of_a(&p, i, 1) + j) =
                bits_of(ldexp((double)rng_between(&rng, 128, 255), 4 - 7 - (int)(i + j)));
    }
    int64_t missed = k_of_a(&p, 0, 0);
    *a_at(&p, 0, missed) = bits_of(0x1p7);
    run(&p, NULL);
    assert_int_equal(space.found.overflow, 0);
    int far = 0;
    for (int64_t i = 0; i < M; i++) {
        const int64_t first = k_of_a(&p, i, 1);
        for (int64_t j = 0; j < N; j++) {
            const int64_t column = (first + j) % N;
            if (column == 0 || (i == 0 && column == missed % N))
                continue;
            const double x = value(*a_at(&p, i, first + j)), error = fabs((double)p.d[i * N + column] - x);
            if (x >= 0x1p-29 * 0x1p7)
                assert_true(error == 0);
            else
                far++;
            assert_true(error <= 0x1p-37 * 0x1p7);
        }
    }
    assert_in_range(far, 100, M * N - 100);
    discard(&p);
}

/* ---- Outliers, beside which no scale serves all ---------------------------------------------------- */

/* 2^70 times what is usual: a row of A, as of memory that nobody wrote; a column of B; a row of B, which A does not
 * read from, so that all sums of halves are NaN. */
static void rows_that_are_real_do_not_vanish(void **state)
{
    (void)state;
    for (int op = 0; op < 4; op++)
        for (int where = 0; where < 3; where++)
            for (int size = 0; size < 4; size++) {
                const int64_t m = size == 0 ? 2 : size == 1 ? 8 : size == 2 ? 65 : M, k = size < 3 ? 40 * size + 64 : K;
                product_t p = make(op / 2, op % 2, m, size == 1 ? 70 : N, k, size == 2);
                for (int64_t q = 0; q < p.k && where == 0; q++)
                    *a_at(&p, m / 2, q) = bits_of(ldexp(value(*a_at(&p, m / 2, q)), 70));
                for (int64_t q = 0; q < p.k && where == 1; q++)
                    *b_at(&p, q, 3) = bits_of(ldexp(value(*b_at(&p, q, 3)), 70));
                for (int64_t j = 0; j < p.n && where == 2; j++)
                    *b_at(&p, 5, j) = bits_of(ldexp(value(*b_at(&p, 5, j)), 70));
                for (int64_t i = 0; i < m && where == 2; i++)
                    *a_at(&p, i, 5) = 0;
                run_and_compare(&p, size == 3);
                assert_int_equal(space.found.outlier, 1);
                assert_int_equal(space.found.again, 0);
                discard(&p);
            }
}

/* Usual rows are exact to 24 binades below what is usual; the outlier's row is summed in single precision. Its elements
 * of D that are finite stay as they were. */
static void an_outlier_among_epilogues(void **state)
{
    (void)state;
    for (int type = 0; type < 3; type++)
        for (int batch = 1; batch <= 2; batch++) {
            product_t p = make(0, 1, M, N, 256, 0);
            float *c = must(malloc(M * N * sizeof *c));
            float bias[N];
            for (int64_t q = 0; q < p.k; q++)
                *a_at(&p, 11, q) = bits_of(ldexp(value(*a_at(&p, 11, q)), 60));
            double *sums = reference(&p);
            for (int i = 0; i < M * N; i++)
                c[i] = (float)(i % 7), sums[i] = 2 * sums[i] + i % 7 + i % N;
            for (int j = 0; j < N; j++)
                bias[j] = (float)j;
            const int64_t rows = M / batch;
            p.desc.type_d = (hgemm_type_t[]){HGEMM_TYPE_F32, HGEMM_TYPE_BF16, HGEMM_TYPE_F16}[type];
            p.desc.m = rows, p.desc.batch = batch, p.desc.stride_a = rows * p.desc.lda;
            p.desc.stride_c = p.desc.stride_d = rows * N;
            p.desc.type_c = p.desc.type_bias = HGEMM_TYPE_F32, p.desc.ldc = N, p.desc.alpha = 2, p.desc.beta = 1;
            p.desc.bias = place(bias, sizeof bias), p.desc.bias_mode = HGEMM_BIAS_PER_COLUMN;
            p.desc.activation = HGEMM_ACTIVATION_RELU;
            run_with(&p, NULL, c, 0);
            assert_int_equal(space.found.outlier, 1);
            for (int i = 0; i < M * N; i++) {
                uint32_t want = 0;
                store_value(p.desc.type_d, &want, sums[i] > 0 ? sums[i] : 0);
                const double is = type == 0 ? (double)p.d[i] : value_of(p.desc.type_d, (uint16_t *)p.d + i);
                if (is != value_of(p.desc.type_d, &want))
                    fail_msg("type %d, batch %d: row %d, column %d is %g", type, batch, i / N, i % N, is);
            }
            release(p.desc.bias);
            free(c), free(sums);
            discard(&p);
        }
}

/* 15 binades above what is usual is no outlier, 16 are; and numbers of many magnitudes have none. */
static void what_is_usual(void **state)
{
    (void)state;
    for (int log = 15; log <= 16; log++) {
        product_t p = make(0, 1, M, N, 64, 0);
        *a_at(&p, 9, 9) = bits_of(ldexp(1, log));
        run_and_compare(&p, 0);
        assert_int_equal(space.found.outlier, log == 16);
        assert_true((double)space.scale[0] == (log == 16 ? 0x1p7 : 0x1p0));
        discard(&p);
    }
}

/* ---- Which products are sampled ----------------------------------------------------------------- */

static void small_operands_are_read_whole(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, N, K / 4, 0);
    *a_at(&p, M - 1, p.k - 1) = bits_of(OUTLIER);
    run_and_compare(&p, 0);
    discard(&p);
}

/* What D was is gone once it was computed. */
static void so_are_those_of_a_d_that_is_c(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, N, K, 0);
    double *sums = reference(&p);
    float *c = must(malloc(M * N * sizeof *c));
    for (int i = 0; i < M * N; i++)
        c[i] = (float)i, sums[i] += i;
    p.desc.type_c = HGEMM_TYPE_F32, p.desc.ldc = N, p.desc.beta = 1;
    for (int is_d = 0; is_d < 2; is_d++) {
        run_with(&p, NULL, c, is_d);
        assert_sums(&p, sums);
        assert_int_equal(space.found.overflow, is_d ? UNTOUCHED : 0);
    }
    free(sums), free(c);
    discard(&p);
}

/* Else NaN in one row would tell the others of itself, by another scale of B. */
static void and_those_of_batch_invariant_calls(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, 2 * N, K, 0);
    p.desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    p.desc.scale_a = 1;
    *a_at(&p, 1, 0) = 0x7fc0;
    run_and_compare(&p, UNTOUCHED);
    p.desc.flags = 0;
    run_and_compare(&p, 1);
    discard(&p);
}

/* Beside a scale that is given the other one is found in a sample; an overflow by the given one is the caller's. */
static void one_scale_may_be_given(void **state)
{
    (void)state;
    product_t p = make(0, 1, M, 2 * N, K, 0);
    p.desc.scale_a = 0x1p-8f;
    *a_at(&p, M - 1, 17) = bits_of(0x1p20);
    run_and_compare(&p, 0);
    *b_at(&p, k_of_b(&p, 2 * N - 1, 0), 2 * N - 1) = bits_of(OUTLIER);
    run_and_compare(&p, 1);
    p.desc.scale_a = 1;
    double *sums = reference(&p);
    for (int64_t j = 0; j < 2 * N; j++) {
        const double b = value(*b_at(&p, 17, j));
        sums[(M - 1) * 2 * N + j] = b > 0 ? HUGE_VAL : b < 0 ? -HUGE_VAL : (double)NAN;
    }
    run(&p, NULL);
    assert_sums(&p, sums);
    free(sums);
    discard(&p);
}

/* Matrices that follow each other, that do not, and one for all. */
static void batches(void **state)
{
    (void)state;
    enum { BATCH = 9, ROWS = 4 };
    for (int gap = 0; gap < 2; gap++)
        for (int outlier = 0; outlier < 2; outlier++) {
            product_t p = make(0, 1, BATCH * (ROWS + gap), N, K, 0);
            const int64_t last = (BATCH - 1) * (ROWS + gap) + ROWS - 1;
            if (outlier)
                *a_at(&p, last, k_of_a(&p, last, 0)) = bits_of(OUTLIER);
            double *sums = reference(&p);
            p.desc.m = ROWS, p.desc.batch = BATCH;
            p.desc.stride_a = (ROWS + gap) * p.desc.lda, p.desc.stride_d = (ROWS + gap) * N;
            run(&p, NULL);
            for (int64_t i = 0; i < p.m * N; i++)
                if (i / N % (ROWS + gap) < ROWS && (double)p.d[i] != sums[i])
                    fail_msg("row %d is wrong", (int)(i / N));
            assert_in_range(space.found.overflow, gap ? 0 : outlier, outlier); /* a gap moves the sample */
            free(sums);
            discard(&p);
        }
}

/* By rows that are scattered in a column-major D: by kernels that have such. */
static void scattered_rows_of_columns(void **state)
{
    (void)state;
    int32_t rows[M];
    for (int outlier = 0; outlier < 2; outlier++) {
        product_t p = make(0, 1, M, N, K, 0);
        for (int i = 0; i < M; i++)
            rows[i] = (i * 7 + 3) % M;
        if (outlier)
            *b_at(&p, k_of_b(&p, N - 1, 0), N - 1) = bits_of(OUTLIER);
        double *sums = reference(&p), *want = must(malloc(M * N * sizeof *want));
        for (int i = 0; i < M * N; i++)
            want[rows[i / N] + i % N * M] = sums[i];
        p.desc.layout = HGEMM_COL_MAJOR, p.desc.ldd = M;
        p.desc.op_a = HGEMM_OP_T, p.desc.op_b = HGEMM_OP_N; /* as columns, what is stored is its transpose */
        p.desc.scatter_d = place(rows, sizeof rows);
        run(&p, NULL);
        assert_sums(&p, want);
        assert_int_equal(space.found.overflow, outlier);
        release(p.desc.scatter_d);
        free(sums), free(want);
        discard(&p);
    }
}

/* ---- Every kernel ------------------------------------------------------------------------------- */

/* The kernel's plan for a problem, whose k is in so many parts for all tiles. */
static plan_t plan_of(const product_t *p, int kernel, int splits)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    hgemm_desc_t placed = p->desc;
    placed.a = placed.b = placed.d = workspace; /* aligned, as all allocations are */
    const hgemm_desc_t row_major = normalise(&placed);
    plan_t plan = {.splits = splits, .scales = FACTOR_A | FACTOR_B};
    assert_true(find_variant(&row_major, kernel, 0, &plan.variant));
    plan.tiles = problem_tiles(&row_major, info);
    plan.whole_tiles = splits > 1 ? 0 : plan.tiles;
    plan.k_split = splits > 1 ? ceil_div(ceil_div(p->k, splits), info->block_k) * info->block_k : p->k;
    assert_null(plan_fault(&row_major, WORKSPACE, &plan));
    return plan;
}

/* An outlier at the given row of A, or column of B, changes a row or a column of D. */
static void assert_noticed(product_t *p, const plan_t *plan, const double *sums, int64_t row, int64_t column)
{
    double *want = must(malloc((size_t)(p->m * p->n) * sizeof *want));
    const int64_t q = row >= 0 ? k_of_a(p, row, 0) : k_of_b(p, column, 0);
    uint16_t *const at = row >= 0 ? a_at(p, row, q) : b_at(p, q, column);
    const uint16_t before = *at;
    memcpy(want, sums, (size_t)(p->m * p->n) * sizeof *want);
    for (int64_t i = 0; i < p->m && row < 0; i++)
        want[i * p->n + column] += (OUTLIER - value(before)) * value(*a_at(p, i, q));
    for (int64_t j = 0; j < p->n && row >= 0; j++)
        want[row * p->n + j] += (OUTLIER - value(before)) * value(*b_at(p, q, j));
    *at = bits_of(OUTLIER);
    run(p, plan);
    *at = before;
    if (space.found.overflow != 1)
        fail_msg("%s, op %d, access %d, parts %d: an overflow in row %d, column %d is not noticed",
                 kernel_table[plan->variant.kernel].info.name, plan->variant.op, plan->variant.access, plan->splits,
                 (int)row, (int)column);
    assert_sums(p, want);
    free(want);
}

/* In the last row and column of a tile, and of D. */
static void test_kernel(int kernel, int op, int64_t gap, int splits)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int64_t m = info->block_m + 8 - gap, n = info->block_n + 8 - gap, shorter = m < n ? m : n;
    product_t p = make(op / 2, op % 2, m, n, (ceil_div(520 << 10, 2 * shorter) + 63) / 64 * 64, gap);
    const plan_t plan = plan_of(&p, kernel, splits);
    double *sums = reference(&p);
    if (op == 0) {
        run(&p, &plan);
        assert_sums(&p, sums);
        assert_int_equal(space.found.overflow, 0);
    }
    assert_noticed(&p, &plan, sums, info->block_m - 1, -1);
    assert_noticed(&p, &plan, sums, -1, info->block_n - 1);
    if (op == 1) {
        assert_noticed(&p, &plan, sums, m - 1, -1);
        assert_noticed(&p, &plan, sums, -1, n - 1);
    }
    free(sums);
    discard(&p);
}

static void every_kernel_notices_an_overflow(void **state)
{
    (void)state;
    int kernels = 0;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++) {
        if (!kernel_table[kernel].limits[LIMIT_bf16])
            continue;
        kernels++;
        for (int op = 0; op < VARIANT_OPS; op++) {
            test_kernel(kernel, op, 0, 1);
            if (kernel_table[kernel].limits[LIMIT_bf16] > ACCESS_any)
                test_kernel(kernel, op, 1, 1);
        }
        test_kernel(kernel, 1, 0, 3);
    }
    assert_true(kernels > 0);
}

/* Without an argument what products do; with one, whatever it is, what kernels do, which takes longer. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_serves_usual_numbers),
        cmocka_unit_test(as_it_does_where_nothing_is_aligned),
        cmocka_unit_test(what_it_misses_is_found_after_all),
        cmocka_unit_test(there_is_room_above_a_sample),
        cmocka_unit_test(infinities_and_nan_are_those_of_ieee),
        cmocka_unit_test(a_sample_of_zeros_hides_nothing),
        cmocka_unit_test(nor_does_one_of_the_smallest_or_largest),
        cmocka_unit_test(elements_are_as_exact_as_the_contract_says),
        cmocka_unit_test(rows_that_are_real_do_not_vanish),
        cmocka_unit_test(an_outlier_among_epilogues),
        cmocka_unit_test(what_is_usual),
        cmocka_unit_test(small_operands_are_read_whole),
        cmocka_unit_test(so_are_those_of_a_d_that_is_c),
        cmocka_unit_test(and_those_of_batch_invariant_calls),
        cmocka_unit_test(one_scale_may_be_given),
        cmocka_unit_test(batches),
        cmocka_unit_test(scattered_rows_of_columns),
    };
    const struct CMUnitTest kernel_tests[] = {
        cmocka_unit_test(every_kernel_notices_an_overflow),
    };
    handle = test_open();
    expect_status(handle, hgemm_malloc(handle, (void **)&workspace, WORKSPACE), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_set_workspace(handle, workspace, WORKSPACE), HGEMM_STATUS_SUCCESS,
                  "hgemm_set_workspace");
    int failed =
        argc > 1 ? cmocka_run_group_tests(kernel_tests, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    release(workspace);
    return hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS ? failed : 1;
}
