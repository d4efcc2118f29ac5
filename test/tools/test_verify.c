/* SPDX-License-Identifier: MIT */
/* The proof that bench_hgemm makes of every result: it accepts what is right and finds one wrong element anywhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "experts.h"
#include "problem/types.h"

static const float ALPHA = 2, BETA = -3;

static float at(const float *x, int64_t ld, int rows_are_lines, int64_t i, int64_t j)
{
    return rows_are_lines ? x[i * ld + j] : x[i + j * ld];
}

/* D of the problem, by three loops. */
static float *product(const problem_t *p)
{
    const int row = p->layout == HGEMM_ROW_MAJOR;
    float *d = malloc((size_t)(p->batch * p->size_c) * sizeof *d);
    assert_non_null(d);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                float sum = 0;
                int64_t of_b = b;
                while (p->is_grouped && p->ends[of_b] <= i)
                    of_b++;
                for (int64_t q = 0; q < p->k; q++)
                    sum += at(p->a + b * p->size_a, p->lda, row == (p->op_a == HGEMM_OP_N), i, q) *
                           at(p->b + of_b * p->size_b, p->ldb, row == (p->op_b == HGEMM_OP_N), q, j);
                sum = ALPHA * sum + BETA * at(p->c + b * p->size_c, p->ldc, row, i, j);
                d[b * p->size_c + (row ? i * p->ldc + j : i + j * p->ldc)] = sum;
            }
    return d;
}

/* Of D as that type has it. */
static const char *verdict(const problem_t *p, const float *d, hgemm_type_t type)
{
    static char why[VERIFY_WORDS];
    double error;
    made_t made = {.type = type, .alpha = ALPHA, .beta = BETA, .accumulate = HGEMM_ACCUMULATE_F32};
    void *elements = fill_elements(d, p->batch * p->size_c, type);
    assert_non_null(elements);
    made.d = elements;
    made.is_float = type == HGEMM_TYPE_F32;
    const char *words = problem_verify(p, &made, &error, why);
    free(elements);
    return words;
}

static void check_problem(hgemm_layout_t layout, const shape_t *shape, const fill_t *fill)
{
    for (int exact = 0; exact < 2; exact++) {
        problem_t p;
        assert_int_equal(problem_create(&p, layout, shape, fill, exact), HGEMM_STATUS_SUCCESS);
        float *d = product(&p);
        assert_null(verdict(&p, d, fill->type));
        const int64_t count = p.batch * p.size_c;
        const int64_t places[] = {0, p.size_c - 1, count / 2, count - 1};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const float held = d[places[i]];
            d[places[i]] = NAN;
            assert_non_null(verdict(&p, d, fill->type));
            d[places[i]] = held + (exact ? 1.0F : fill->type == HGEMM_TYPE_F32 ? 0.01F : 8.0F);
            const char *why = verdict(&p, d, fill->type);
            assert_non_null(why);
            assert_int_equal(strstr(why, "matrix ") != NULL, p.batch > 1);
            d[places[i]] = held;
        }
        if (p.batch > 1) { /* the right matrices in the wrong places */
            float *swapped = malloc((size_t)count * sizeof *d);
            assert_non_null(swapped);
            memcpy(swapped, d, (size_t)count * sizeof *d);
            memcpy(swapped, d + p.size_c, (size_t)p.size_c * sizeof *d);
            memcpy(swapped + p.size_c, d, (size_t)p.size_c * sizeof *d);
            assert_non_null(verdict(&p, swapped, fill->type));
            free(swapped);
        }
        free(d);
        problem_destroy(&p);
    }
}

static void finds_one_wrong_element(void **state)
{
    static const hgemm_type_t types[] = {HGEMM_TYPE_F16, HGEMM_TYPE_BF16, HGEMM_TYPE_F32};
    (void)state;
    for (int layout = 0; layout < 2; layout++)
        for (int op = 0; op < 4; op++)
            for (int batch = 1; batch <= 3; batch += 2)
                check_problem((hgemm_layout_t)layout,
                              &(shape_t){.m = 19,
                                         .n = 33,
                                         .k = 24,
                                         .batch = batch,
                                         .op_a = (hgemm_op_t)(op / 2),
                                         .op_b = (hgemm_op_t)(op % 2)},
                              &(fill_t){.type = types[op % 3]});
}

/* A row for each expert that a token takes, all of them different, and each by its expert's matrix. */
static void knows_experts(void **state)
{
    (void)state;
    static const struct {
        int64_t tokens, experts, top, hit; /* hit: 0, not told */
    } cases[] = {{1, 8, 2, 2}, {9, 4, 4, 4}, {3, 1, 1, 1}, {1, 1, 1, 1}, {40, 8, 2, 0}, {2, 60, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape_t shape = {.m = cases[i].tokens,
                               .n = 33,
                               .k = 24,
                               .batch = cases[i].experts,
                               .top = cases[i].top,
                               .op_b = (hgemm_op_t)(i % 2)};
        int32_t *ends = experts_ends(&shape);
        assert_non_null(ends);
        int64_t hit = 0;
        for (int64_t e = 0; e < shape.batch; e++) {
            const int64_t rows = ends[e] - (e ? ends[e - 1] : 0);
            assert_in_range(rows, 0, shape.m);
            hit += rows > 0;
        }
        assert_int_equal(ends[shape.batch - 1], shape.m * shape.top);
        assert_int_equal(hit, experts_hit(&shape));
        assert_true(hit >= shape.top && (cases[i].hit == 0 || hit == cases[i].hit));
        free(ends);
        check_problem(HGEMM_ROW_MAJOR, &shape, &(fill_t){.type = HGEMM_TYPE_F16});
    }
    problem_t p; /* one row by the matrix of the next expert */
    assert_int_equal(problem_create(&p, HGEMM_ROW_MAJOR, &(shape_t){.m = 6, .n = 33, .k = 24, .batch = 3, .top = 1},
                                    &(fill_t){.type = HGEMM_TYPE_F16}, 0),
                     HGEMM_STATUS_SUCCESS);
    p.ends[0]++;
    float *d = product(&p);
    p.ends[0]--;
    assert_non_null(verdict(&p, d, HGEMM_TYPE_F16));
    free(d);
    problem_destroy(&p);
}

/* Every code with every zero that it may have: what is packed stands for the numbers of B, and integers for integers.
 */
static void fills_packed_weights(void **state)
{
    (void)state;
    for (int code = 0; code < CODE_COUNT; code++)
        for (int zero = HGEMM_ZERO_NONE; zero <= (code_table[code].has_zeros ? HGEMM_ZERO_OFFSET : HGEMM_ZERO_NONE);
             zero++) {
            const shape_t shape = {.m = 3, .n = 33, .k = 70, .batch = 2, .op_b = HGEMM_OP_T};
            fill_t fill = {.is_packed = 1};
            hgemm_weights_init(&fill.weights);
            fill.weights.code = (hgemm_code_t)code, fill.weights.zero = (hgemm_zero_t)zero, fill.weights.group = 32;
            for (int i = 0; i < 16; i++)
                fill.weights.table[i] = hgemm_half_from_float((float)(i - 8) / 4);
            check_problem(HGEMM_ROW_MAJOR, &shape, &fill);
            for (int exact = 0; exact < 2; exact++) {
                problem_t p;
                double squares = 0;
                assert_int_equal(problem_create(&p, HGEMM_ROW_MAJOR, &shape, &fill, exact), HGEMM_STATUS_SUCCESS);
                for (int64_t i = 0; i < p.batch * p.size_b; i++) {
                    if (exact)
                        assert_true(p.b[i] == -1 || p.b[i] == 0 || p.b[i] == 1);
                    squares += (double)(p.b[i] * p.b[i]);
                }
                squares /= (double)(p.batch * p.size_b);
                assert_true(squares > 0.03 && squares < 0.7); /* 1/3, about; E4M3's are small, integers as they come */
                problem_destroy(&p);
            }
        }
}

/* A product of FP32 that was rounded to TF32 on its way is none. */
static void tells_tf32_from_fp32(void **state)
{
    problem_t p;
    double error;
    char why[VERIFY_WORDS];
    (void)state;
    assert_int_equal(problem_create(&p, HGEMM_ROW_MAJOR, &(shape_t){.m = 64, .n = 64, .k = 256, .batch = 1},
                                    &(fill_t){.type = HGEMM_TYPE_F32}, 0),
                     HGEMM_STATUS_SUCCESS);
    float *const exact[] = {p.a, p.b};
    for (int i = 0; i < 2; i++) /* 11 bits, as halves of that size have them */
        for (int64_t j = 0; j < 64 * 256; j++)
            exact[i][j] = hgemm_half_to_float(hgemm_half_from_float(exact[i][j]));
    float *d = product(&p);
    made_t made = {.d = d, .type = HGEMM_TYPE_F32, .alpha = ALPHA, .beta = BETA, .accumulate = HGEMM_ACCUMULATE_F32};
    made.is_float = 1;
    assert_non_null(problem_verify(&p, &made, &error, why));
    made.operands = 0x1p-11;
    assert_null(problem_verify(&p, &made, &error, why));
    free(d);
    problem_destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_one_wrong_element),
                                       cmocka_unit_test(fills_packed_weights), cmocka_unit_test(knows_experts),
                                       cmocka_unit_test(tells_tf32_from_fp32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
