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

#include "verify.h"

static const float ALPHA = 2, BETA = -3;

static float at(const uint16_t *x, int64_t ld, int rows_are_lines, int64_t i, int64_t j)
{
    return hgemm_half_to_float(rows_are_lines ? x[i * ld + j] : x[i + j * ld]);
}

/* D of the problem, by three loops. */
static uint16_t *product(const problem_t *p)
{
    const int row = p->layout == HGEMM_ROW_MAJOR;
    uint16_t *d = malloc((size_t)(p->batch * p->size_c) * sizeof *d);
    assert_non_null(d);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                float sum = 0;
                for (int64_t q = 0; q < p->k; q++)
                    sum += at(p->a + b * p->size_a, p->lda, row == (p->op_a == HGEMM_OP_N), i, q) *
                           at(p->b + b * p->size_b, p->ldb, row == (p->op_b == HGEMM_OP_N), q, j);
                sum = ALPHA * sum + BETA * at(p->c + b * p->size_c, p->ldc, row, i, j);
                d[b * p->size_c + (row ? i * p->ldc + j : i + j * p->ldc)] = hgemm_half_from_float(sum);
            }
    return d;
}

static const char *verdict(const problem_t *p, const uint16_t *d)
{
    static char why[VERIFY_WORDS];
    double error;
    return problem_verify(p, d, ALPHA, BETA, HGEMM_ACCUMULATE_F32, (epilogue_t){0}, &error, why);
}

static void check_problem(hgemm_layout_t layout, const shape_t *shape)
{
    for (int exact = 0; exact < 2; exact++) {
        problem_t p;
        assert_true(problem_create(&p, layout, shape, exact));
        uint16_t *d = product(&p);
        assert_null(verdict(&p, d));
        const int64_t count = p.batch * p.size_c;
        const int64_t places[] = {0, p.size_c - 1, count / 2, count - 1};
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const uint16_t held = d[places[i]];
            d[places[i]] = 0x7e00; /* NaN */
            assert_non_null(verdict(&p, d));
            d[places[i]] = hgemm_half_from_float(hgemm_half_to_float(held) + (exact ? 1.0F : 8.0F));
            const char *why = verdict(&p, d);
            assert_non_null(why);
            assert_int_equal(strstr(why, "matrix ") != NULL, p.batch > 1);
            d[places[i]] = held;
        }
        if (p.batch > 1) { /* the right matrices in the wrong places */
            uint16_t *swapped = malloc((size_t)count * sizeof *d);
            assert_non_null(swapped);
            memcpy(swapped, d, (size_t)count * sizeof *d);
            memcpy(swapped, d + p.size_c, (size_t)p.size_c * sizeof *d);
            memcpy(swapped + p.size_c, d, (size_t)p.size_c * sizeof *d);
            assert_non_null(verdict(&p, swapped));
            free(swapped);
        }
        free(d);
        problem_destroy(&p);
    }
}

static void finds_one_wrong_element(void **state)
{
    (void)state;
    for (int layout = 0; layout < 2; layout++)
        for (int op = 0; op < 4; op++)
            for (int batch = 1; batch <= 3; batch += 2)
                check_problem((hgemm_layout_t)layout, &(shape_t){.m = 19,
                                                                 .n = 33,
                                                                 .k = 24,
                                                                 .batch = batch,
                                                                 .op_a = (hgemm_op_t)(op / 2),
                                                                 .op_b = (hgemm_op_t)(op % 2)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_one_wrong_element)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
