/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include "error_model.h"
#include "experts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = X * v, or X^T * v, for a stored matrix of `lines` lines of `width` elements. */
static void times_vector(const float *x, int64_t lines, int64_t width, int transposed, const double *v, double *y)
{
    if (transposed)
        memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t i = 0; i < lines; i++) {
        const float *line = x + i * width;
        if (transposed) {
            for (int64_t j = 0; j < width; j++)
                y[j] += v[i] * (double)line[j];
        } else {
            double sum = 0;
            for (int64_t j = 0; j < width; j++)
                sum += v[j] * (double)line[j];
            y[i] = sum;
        }
    }
}

/* y = op(X) * v where op(X) is rows x columns, in the problem's layout. */
static void apply(const problem_t *p, const float *x, hgemm_op_t op, int64_t rows, int64_t columns, const double *v,
                  double *y)
{
    int lines_are_rows = (p->layout == HGEMM_ROW_MAJOR) == (op == HGEMM_OP_N);
    times_vector(x, lines_are_rows ? rows : columns, lines_are_rows ? columns : rows, !lines_are_rows, v, y);
}

static double element(const float *x, int64_t ld, int lines_are_rows, int64_t i, int64_t j)
{
    return (double)(lines_are_rows ? x[i * ld + j] : x[i + j * ld]);
}

/* What a matrix of B is multiplied by: so many rows of op(A), from that one of all on. */
typedef struct rows_t {
    const float *a;
    int64_t first, count;
} rows_t;

static rows_t rows_of(const problem_t *p, int64_t matrix)
{
    if (!p->ends)
        return (rows_t){p->a + matrix * p->size_a, matrix * p->m, p->m};
    const int64_t first = matrix ? p->ends[matrix - 1] : 0;
    return (rows_t){p->a + first * p->lda, first, p->ends[matrix] - first};
}

/* Which matrix of B row i of matrix number `matrix` of the batch is multiplied by. */
static int64_t b_of(const problem_t *p, int64_t matrix, int64_t i)
{
    while (p->ends && i >= p->ends[matrix])
        matrix++;
    return matrix;
}

static void take_samples(const problem_t *p)
{
    const int row = p->layout == HGEMM_ROW_MAJOR;
    uint64_t seed = 5;
    for (struct sample_t *s = p->samples; s < p->samples + VERIFY_SAMPLES; s++) {
        s->matrix = (int64_t)(fill_random(&seed) % (uint64_t)p->batch);
        s->i = (int64_t)(fill_random(&seed) % (uint64_t)p->m);
        s->j = (int64_t)(fill_random(&seed) % (uint64_t)p->n);
        s->product = 0;
        const float *const b = p->b + b_of(p, s->matrix, s->i) * p->size_b;
        for (int64_t q = 0; q < p->k; q++)
            s->product += element(p->a + s->matrix * p->size_a, p->lda, row == (p->op_a == HGEMM_OP_N), s->i, q) *
                          element(b, p->ldb, row == (p->op_b == HGEMM_OP_N), q, s->j);
        s->addend = element(p->c + s->matrix * p->size_c, p->ldc, row, s->i, s->j);
    }
}

problem_t problem_of(hgemm_layout_t layout, const shape_t *s)
{
    const int row = layout == HGEMM_ROW_MAJOR;
    const int64_t m = s->top ? s->m * s->top : s->m;
    return (problem_t){.layout = layout,
                       .op_a = s->op_a,
                       .op_b = s->op_b,
                       .m = m,
                       .n = s->n,
                       .k = s->k,
                       .batch = s->top ? 1 : s->batch,
                       .matrices = s->batch,
                       .is_grouped = s->top != 0,
                       .lda = row == (s->op_a == HGEMM_OP_N) ? s->k : m,
                       .ldb = row == (s->op_b == HGEMM_OP_N) ? s->n : s->k,
                       .ldc = row ? s->n : m,
                       .size_a = m * s->k,
                       .size_b = s->k * s->n,
                       .size_c = m * s->n};
}

/* The operands alone. */
static hgemm_status_t fill_problem(problem_t *p, const fill_t *fill)
{
    p->a = fill_matrix(p->batch * p->size_a, fill->type, p->k, p->exact, 1);
    p->c = fill_matrix(p->batch * p->size_c, fill->type, p->k, p->exact, 3);
    if (!fill->is_packed) {
        p->b = fill_matrix(p->matrices * p->size_b, fill->type, p->k, p->exact, 2);
    } else {
        const hgemm_weights_t weights = fill_described(fill, p->n, p->k, p->exact);
        const hgemm_status_t status = fill_weights(&weights, p->matrices, p->exact, 2, &p->weights);
        if (status != HGEMM_STATUS_SUCCESS)
            return status;
        p->b = p->weights.values;
    }
    return p->a && p->b && p->c ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_OUT_OF_MEMORY;
}

/* Products with random signs; 0 where memory ran out. */
static int multiply_signs(problem_t *p)
{
    double *bx = malloc((size_t)p->k * sizeof *bx + 1);
    int complete = bx != NULL;
    uint64_t seed = 4;
    for (int v = 0; complete && v < VERIFY_VECTORS; v++) {
        p->signs[v] = malloc((size_t)p->n * sizeof(double));
        p->product[v] = malloc((size_t)(p->batch * p->m) * sizeof(double));
        p->addend[v] = malloc((size_t)(p->batch * p->m) * sizeof(double));
        complete = p->signs[v] && p->product[v] && p->addend[v];
        if (!complete)
            break;
        for (int64_t j = 0; j < p->n; j++)
            p->signs[v][j] = fill_random(&seed) & 1 ? 1 : -1;
        for (int64_t i = 0; i < p->matrices; i++) {
            const rows_t rows = rows_of(p, i);
            apply(p, p->b + i * p->size_b, p->op_b, p->k, p->n, p->signs[v], bx);
            apply(p, rows.a, p->op_a, rows.count, p->k, bx, p->product[v] + rows.first);
        }
        for (int64_t i = 0; i < p->batch; i++)
            apply(p, p->c + i * p->size_c, HGEMM_OP_N, p->m, p->n, p->signs[v], p->addend[v] + i * p->m);
    }
    free(bx);
    return complete;
}

hgemm_status_t problem_create(problem_t *p, hgemm_layout_t layout, const shape_t *shape, const fill_t *fill, int exact)
{
    *p = problem_of(layout, shape);
    p->exact = exact;
    hgemm_status_t status =
        shape->top && !(p->ends = experts_ends(shape)) ? HGEMM_STATUS_OUT_OF_MEMORY : fill_problem(p, fill);
    if (status == HGEMM_STATUS_SUCCESS && !(p->samples = malloc(VERIFY_SAMPLES * sizeof *p->samples)))
        status = HGEMM_STATUS_OUT_OF_MEMORY;
    if (status == HGEMM_STATUS_SUCCESS) {
        take_samples(p);
        if (!multiply_signs(p))
            status = HGEMM_STATUS_OUT_OF_MEMORY;
    }
    if (status != HGEMM_STATUS_SUCCESS)
        problem_destroy(p);
    return status;
}

void problem_destroy(problem_t *p)
{
    free(p->a);
    if (p->b != p->weights.values)
        free(p->b);
    free(p->c);
    free(p->ends);
    fill_weights_free(&p->weights);
    free(p->samples);
    for (int v = 0; v < VERIFY_VECTORS; v++) {
        free(p->signs[v]);
        free(p->product[v]);
        free(p->addend[v]);
    }
    *p = (problem_t){0};
}

static double rounding_of(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F32 ? ERROR_FLOAT : type == HGEMM_TYPE_BF16 ? ERROR_BFLOAT : ERROR_HALF;
}

static double error_deviation(const problem_t *p, const made_t *made)
{
    if (p->exact)
        return 0;
    const double alpha = (double)made->alpha, beta = (double)made->beta, v = PRODUCT_VARIANCE, k = (double)p->k;
    const double sum = made->is_float ? float_sum_error(p->k) : sum_error(made->accumulate, p->k, ERROR_HALF);
    const double taken = made->operands * sqrt(alpha * alpha * 2 * k * v + beta * beta / 3);
    return hypot(hypot(alpha * sum, taken), rounding_of(made->type) * sqrt(alpha * alpha * k * v + beta * beta / 3));
}

/* "matrix 3, " of a batch, "" where there is only one. */
static const char *name_matrix(const problem_t *p, int64_t matrix, char words[32])
{
    if (p->batch > 1)
        snprintf(words, 32, "matrix %lld, ", (long long)matrix);
    return words;
}

const char *problem_verify(const problem_t *p, const made_t *made, double *relative_error, char why[VERIFY_WORDS])
{
    const epilogue_t epilogue = made->epilogue;
    const double alpha = (double)made->alpha, beta = (double)made->beta;
    const int is_fused = epilogue.has_bias || epilogue.activation;
    const int is_exact = activation_is_exact(epilogue.activation);
    const double rounding = rounding_of(made->type);
    const double sum_bound = 8 * error_deviation(p, made);
    const double row_bound = sum_bound * sqrt((double)p->n); /* rows are summed up where nothing is fused */
    const int row = p->layout == HGEMM_ROW_MAJOR;
    const int64_t rows = p->batch * p->m;
    double *sums = malloc((size_t)rows * sizeof *sums);
    float *d = fill_values(made->d, p->batch * p->size_c, made->type);
    char which[32] = "";
    int found = 0;
    if (!sums || !d) {
        free(sums);
        free(d);
        return strcpy(why, "out of host memory");
    }

    /* Written so that a NaN fails. */
    for (int v = 0; v < VERIFY_VECTORS && !found && !is_fused; v++) {
        for (int64_t i = 0; i < p->batch; i++)
            apply(p, d + i * p->size_c, HGEMM_OP_N, p->m, p->n, p->signs[v], sums + i * p->m);
        for (int64_t i = 0; i < rows && !found; i++) {
            double expected = alpha * p->product[v][i] + beta * p->addend[v][i];
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
        double expected = alpha * s->product + beta * s->addend;
        double got = element(d + s->matrix * p->size_c, p->ldc, row, s->i, s->j);
        double bound = sum_bound;
        if (is_fused) {
            const double x = expected + (epilogue.has_bias ? (double)p->b[s->j] : 0);
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
    free(d);
    *relative_error = values > 0 ? sqrt(errors / values) : sqrt(errors);
    return found ? why : NULL;
}
