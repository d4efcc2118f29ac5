/* SPDX-License-Identifier: MIT */
/*
 * Scales that a call finds in samples of A and B: which products do, and that those of numbers which the sample has not
 * met come out as if all had been read.
 */
#include "sampled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run_and_compare(product_t *p, unsigned overflow)
{
    double *sums = reference(p);
    run(p, NULL);
    assert_sums(p, sums);
    assert_int_equal(space.found.overflow, overflow);
    free(sums);
}

/* ---- What is met, and what is missed ------------------------------------------------------------ */

enum { M = 40, N = 24, K = 13312 };

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

int main(void)
{
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
    return run_sampled(tests);
}
