/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include "error_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *float_of_half; /* all 65536, built once: a conversion per element must be cheap */

static const float *conversions(void)
{
    if (!float_of_half && (float_of_half = malloc(65536 * sizeof(float))))
        for (int bits = 0; bits < 65536; bits++)
            float_of_half[bits] = hgemm_half_to_float((uint16_t)bits);
    return float_of_half;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Each element by 16 random bits through a table of 65536 halves. */
static uint16_t *random_matrix(int64_t count, const uint16_t *table, uint64_t seed)
{
    uint16_t *x = malloc((size_t)(count + 3) * sizeof *x);
    for (int64_t i = 0; x && i < count; i += 4) {
        uint64_t bits = next_random(&seed);
        for (int j = 0; j < 4; j++)
            x[i + j] = table[bits >> 16 * j & 0xffff];
    }
    return x;
}

static void fill_table(uint16_t *table, int64_t k, int exact)
{
    /* A product of two entries has variance density^2: a sum of k stays below 2048 by 30
     * deviations. */
    double density = fmin(2.0 / 3, 64 / sqrt((double)(k > 0 ? k : 1)));
    for (int i = 0; i < 65536; i++) {
        float value = (float)(i - 32768) / 32768;
        if (exact)
            value = fabsf(value) >= density ? 0.0F : value < 0 ? -1.0F : 1.0F;
        table[i] = hgemm_half_from_float(value);
    }
}

/* y = X * v, or X^T * v, for a stored matrix of `lines` lines of `width` elements. */
static void times_vector(const uint16_t *x, int64_t lines, int64_t width, int transposed, const double *v, double *y)
{
    const float *value = float_of_half;
    if (transposed)
        memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t i = 0; i < lines; i++) {
        const uint16_t *line = x + i * width;
        if (transposed) {
            for (int64_t j = 0; j < width; j++)
                y[j] += v[i] * (double)value[line[j]];
        } else {
            double sum = 0;
            for (int64_t j = 0; j < width; j++)
                sum += v[j] * (double)value[line[j]];
            y[i] = sum;
        }
    }
}

/* y = op(X) * v where op(X) is rows x columns, in the problem's layout. */
static void apply(const problem_t *p, const uint16_t *x, hgemm_op_t op, int64_t rows, int64_t columns, const double *v,
                  double *y)
{
    int lines_are_rows = (p->layout == HGEMM_ROW_MAJOR) == (op == HGEMM_OP_N);
    times_vector(x, lines_are_rows ? rows : columns, lines_are_rows ? columns : rows, !lines_are_rows, v, y);
}

static double element(const uint16_t *x, int64_t ld, int lines_are_rows, int64_t i, int64_t j)
{
    return (double)float_of_half[lines_are_rows ? x[i * ld + j] : x[i + j * ld]];
}

static void take_samples(const problem_t *p)
{
    const int row = p->layout == HGEMM_ROW_MAJOR;
    uint64_t seed = 5;
    for (struct sample_t *s = p->samples; s < p->samples + VERIFY_SAMPLES; s++) {
        s->matrix = (int64_t)(next_random(&seed) % (uint64_t)p->batch);
        s->i = (int64_t)(next_random(&seed) % (uint64_t)p->m);
        s->j = (int64_t)(next_random(&seed) % (uint64_t)p->n);
        s->product = 0;
        for (int64_t q = 0; q < p->k; q++)
            s->product += element(p->a + s->matrix * p->size_a, p->lda, row == (p->op_a == HGEMM_OP_N), s->i, q) *
                          element(p->b + s->matrix * p->size_b, p->ldb, row == (p->op_b == HGEMM_OP_N), q, s->j);
        s->addend = element(p->c + s->matrix * p->size_c, p->ldc, row, s->i, s->j);
    }
}

problem_t problem_of(hgemm_layout_t layout, const shape_t *s)
{
    int row = layout == HGEMM_ROW_MAJOR;
    return (problem_t){.layout = layout,
                       .op_a = s->op_a,
                       .op_b = s->op_b,
                       .m = s->m,
                       .n = s->n,
                       .k = s->k,
                       .batch = s->batch,
                       .lda = row == (s->op_a == HGEMM_OP_N) ? s->k : s->m,
                       .ldb = row == (s->op_b == HGEMM_OP_N) ? s->n : s->k,
                       .ldc = row ? s->n : s->m,
                       .size_a = s->m * s->k,
                       .size_b = s->k * s->n,
                       .size_c = s->m * s->n};
}

int problem_create(problem_t *p, hgemm_layout_t layout, const shape_t *shape, int exact)
{
    *p = problem_of(layout, shape);
    p->exact = exact;
    uint16_t *table = malloc(65536 * sizeof *table);
    double *bx = malloc((size_t)p->k * sizeof *bx + 1);
    int complete = table && bx && conversions();
    if (complete) {
        fill_table(table, p->k, exact);
        p->a = random_matrix(p->batch * p->size_a, table, 1);
        p->b = random_matrix(p->batch * p->size_b, table, 2);
        p->c = random_matrix(p->batch * p->size_c, table, 3);
        p->samples = malloc(VERIFY_SAMPLES * sizeof *p->samples);
        complete = p->a && p->b && p->c && p->samples;
    }
    if (complete)
        take_samples(p);
    uint64_t seed = 4;
    for (int v = 0; complete && v < VERIFY_VECTORS; v++) {
        p->signs[v] = malloc((size_t)p->n * sizeof(double));
        p->product[v] = malloc((size_t)(p->batch * p->m) * sizeof(double));
        p->addend[v] = malloc((size_t)(p->batch * p->m) * sizeof(double));
        complete = p->signs[v] && p->product[v] && p->addend[v];
        if (!complete)
            break;
        for (int64_t j = 0; j < p->n; j++)
            p->signs[v][j] = next_random(&seed) & 1 ? 1 : -1;
        for (int64_t i = 0; i < p->batch; i++) {
            apply(p, p->b + i * p->size_b, p->op_b, p->k, p->n, p->signs[v], bx);
            apply(p, p->a + i * p->size_a, p->op_a, p->m, p->k, bx, p->product[v] + i * p->m);
            apply(p, p->c + i * p->size_c, HGEMM_OP_N, p->m, p->n, p->signs[v], p->addend[v] + i * p->m);
        }
    }
    free(table);
    free(bx);
    if (!complete)
        problem_destroy(p);
    return complete;
}

void problem_destroy(problem_t *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->samples);
    for (int v = 0; v < VERIFY_VECTORS; v++) {
        free(p->signs[v]);
        free(p->product[v]);
        free(p->addend[v]);
    }
    *p = (problem_t){0};
}

static double error_deviation(const problem_t *p, double alpha, double beta, hgemm_accumulate_t accumulate)
{
    if (p->exact)
        return 0;
    double values = alpha * alpha * (double)p->k * PRODUCT_VARIANCE + beta * beta / 3;
    return hypot(alpha * sum_error(accumulate, p->k, ERROR_HALF), ERROR_HALF * sqrt(values));
}

/* "matrix 3, " of a batch, "" where there is only one. */
static const char *name_matrix(const problem_t *p, int64_t matrix, char words[32])
{
    if (p->batch > 1)
        snprintf(words, 32, "matrix %lld, ", (long long)matrix);
    return words;
}

const char *problem_verify(const problem_t *p, const uint16_t *d, float alpha, float beta,
                           hgemm_accumulate_t accumulate, epilogue_t epilogue, double *relative_error,
                           char why[VERIFY_WORDS])
{
    const int is_fused = epilogue.has_bias || epilogue.activation;
    const int is_exact = activation_is_exact(epilogue.activation);
    const double rounding = ldexp(1, -11);
    const double sum_bound = 8 * error_deviation(p, (double)alpha, (double)beta, accumulate);
    const double row_bound = sum_bound * sqrt((double)p->n); /* rows are summed up where nothing is fused */
    const int row = p->layout == HGEMM_ROW_MAJOR;
    const int64_t rows = p->batch * p->m;
    double *sums = malloc((size_t)rows * sizeof *sums);
    char which[32] = "";
    int found = 0;
    if (!sums)
        return strcpy(why, "out of host memory");

    /* Written so that a NaN fails. */
    for (int v = 0; v < VERIFY_VECTORS && !found && !is_fused; v++) {
        for (int64_t i = 0; i < p->batch; i++)
            apply(p, d + i * p->size_c, HGEMM_OP_N, p->m, p->n, p->signs[v], sums + i * p->m);
        for (int64_t i = 0; i < rows && !found; i++) {
            double expected = (double)alpha * p->product[v][i] + (double)beta * p->addend[v][i];
            if (!(fabs(sums[i] - expected) <= row_bound)) {
                snprintf(why, VERIFY_WORDS,
                         "WRONG: %srow %lld times random signs is %g, should be %g +- %g (%s inputs)",
                         name_matrix(p, i / p->m, which), (long long)(i % p->m), sums[i], expected, row_bound,
                         p->exact ? "integer" : "random");
                found = 1;
            }
        }
    }
    free(sums);

    double errors = 0, values = 0;
    for (const struct sample_t *s = p->samples; s < p->samples + VERIFY_SAMPLES && !found; s++) {
        double expected = (double)alpha * s->product + (double)beta * s->addend;
        double got = element(d + s->matrix * p->size_c, p->ldc, row, s->i, s->j);
        double bound = sum_bound;
        if (is_fused) {
            const double x = expected + (epilogue.has_bias ? (double)float_of_half[p->b[s->j]] : 0);
            expected = activation_value(epilogue.activation, x);
            bound = activation_error(epilogue.activation, x, sum_bound) + (p->exact ? 0 : rounding) +
                    (is_exact ? 0 : rounding + rounding * fabs(expected));
        }
        if (!(fabs(got - expected) <= bound)) {
            snprintf(why, VERIFY_WORDS, "WRONG: %selement (%lld, %lld) is %g, should be %g +- %g (%s inputs)",
                     name_matrix(p, s->matrix, which), (long long)s->i, (long long)s->j, got, expected, bound,
                     p->exact ? "integer" : "random");
            found = 1;
        }
        errors += (got - expected) * (got - expected);
        values += expected * expected;
    }
    *relative_error = values > 0 ? sqrt(errors / values) : sqrt(errors);
    return found ? why : NULL;
}
