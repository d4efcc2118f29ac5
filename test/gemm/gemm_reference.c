/* SPDX-License-Identifier: MIT */
#include "gemm_reference.h"

#include "error_model.h"
#include "table/kernels.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sums -------------------------------------------------------------------------------------- */

/* What is kept of the products that make up each element of a row: arrays, so that the compiler can use vector
 * instructions. */
typedef struct sums_t {
    double *sum;        /* so far */
    double *low, *high; /* the least and the largest that it has been, 0 included */
    double *absolute;   /* of the absolute products */
} sums_t;

static void add_products(double *restrict sum, double *restrict low, double *restrict high, double *restrict absolute,
                         double a, const double *restrict b, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double product = a * b[j];
        sum[j] += product;
        low[j] = sum[j] < low[j] ? sum[j] : low[j];
        high[j] = sum[j] > high[j] ? sum[j] : high[j];
        absolute[j] += fabs(product);
    }
}

/*
 * How far from the exact sum an accumulator may be. The tensor core adds up to 8 products at a time,
 * neighbours along k:
 *     s' = round(s + p_1 + ... + p_8)
 * It cuts each of the 9 terms to 24 bits below the largest and adds them exactly, an error of at
 * most 10 * 2^-23 =: v of their absolute sum; a half is then rounded to nearest, at most u = 2^-11
 * of the result, or 2^-25 below the normal numbers.
 *     A kernel may begin with the k-tiles at both ends of k. So a partial sum is a sum over at most
 * two runs of consecutive k's, and no run exceeds the range R = high - low of the sums from k = 0:
 * |s'| <= 2 R. There are at most k / 8 + 3 steps that add anything. With an error e so far, each
 * adds at most (u + v) (2 R + e) + 2^-25, and all together v times the absolute products.
 *     This needs no assumption on the numbers, yet it follows them: it grows with the sums that
 * occur, where the textbook's k u sum|a||b| grows with those that might.
 *     Thin kernels add in single precision, in an order of their own: for them, and where they may be chosen, the
 * textbook's comes on top.
 */
static double accumulator_error(const sums_t *s, int64_t j, int64_t k, int half, int may_be_thin)
{
    const double u = half ? 0x1p-11 : 0, v = 10 * 0x1p-23, tiny = half ? 0x1p-25 : 0;
    double steps = (double)((k + 7) / 8 + 2), partial = 2 * (s->high[j] - s->low[j]);
    return exp(steps * (u + v)) * (steps * ((u + v) * partial + tiny) + v * s->absolute[j]) +
           (may_be_thin ? (double)k * 0x1p-24 : 0) * s->absolute[j];
}

double reference_float_units(hgemm_accuracy_t accuracy, int64_t k, int is_of_any)
{
    const double length = (double)k, more = is_of_any ? length / 32 : 0;
    switch (accuracy) {
    case HGEMM_ACCURACY_F32: return 40 + fmin(length / 16, 32) + length / 200 + more;
    case HGEMM_ACCURACY_16_BITS: return 768 + length / 64 + more;
    case HGEMM_ACCURACY_11_BITS: return 16384 + 1024 + length / 512 + more;
    }
    return 0;
}

/* ---- Rows -------------------------------------------------------------------------------------- */

typedef struct part_t {
    const reference_t *r;
    const operands_t *o;
    int64_t begin, end; /* rows of the product */
} part_t;

/* An element of D before it is rounded, and its error: alpha * sum + beta * C + bias takes three roundings of single
 * precision, or a fourth with a bias, each of at most the terms' absolute sum; the gate takes one. */
static void finish(const part_t *part, int64_t r, int64_t j, double sum, double sum_error)
{
    const operands_t *o = part->o;
    const case_t *c = o->c;
    const product_row_t *row = &o->rows[r];
    const hgemm_activation_t activation = (hgemm_activation_t)c->activation;
    const double alpha = (double)(float)c->alpha, beta = (double)(float)c->beta;
    double added = beta == 0 ? 0 : beta * operands_value(o, C, row->shared, row->d, j), bias = -0.0; /* adds nothing */
    if (c->bias)
        bias = c->bias == BIAS_PER_ROW ? operands_value(o, BIAS, row->own, row->d, 0)
                                       : operands_value(o, BIAS, row->own, 0, j);
    double none = beta == 0 ? 0 : -0.0; /* where there is no product, beta * C keeps the sign of a zero */
    double scaled = alpha == 0 || c->k == 0 ? none : alpha * sum, x = scaled + added + bias;
    double error = fabs(alpha) * sum_error + 4 * 0x1p-24 * (fabs(scaled) + fabs(added) + fabs(bias));
    if (case_is_of_integers(c))
        error = 0; /* all are integers, or multiples of the same power of two */
    double y = activation_value(activation, x);
    error = activation_error(activation, x, error);
    if (c->gate) {
        double gate = operands_value(o, GATE, row->shared, row->d, j);
        /* What vanishes in single precision and does not in double makes infinity or NaN of an infinite gate. */
        error = isinf(gate) && !activation_is_exact(activation) && fabs(y) < 0x1p-100
                    ? INFINITY
                    : fabs(gate) * error + 0x1p-24 * fabs(gate * y);
        y *= gate;
    }
    part->r->value[r * c->n + j] = y;
    part->r->error[r * c->n + j] = error;
}

static void *compute_rows(void *argument)
{
    const part_t *part = argument;
    const operands_t *o = part->o;
    const case_t *c = o->c;
    const int half = c->accumulate == HGEMM_ACCUMULATE_F16,
              may_be_thin = !c->kernel || has_sums((int)c->kernel, HGEMM_ACCUMULATE_F32);
    const int multiplies = case_reads_factors(c) && c->alpha != 0;
    const double units = case_has_floats(c) ? reference_float_units((hgemm_accuracy_t)c->accuracy, c->k, 1) : 0;
    int64_t n = c->n, last = -1;
    double *all = must(calloc(4 * (size_t)n + 1, sizeof *all));
    const sums_t sums = {all, all + n, all + 2 * n, all + 3 * n};
    double *b = multiplies ? must(malloc(((size_t)(c->k * n) + 1) * sizeof *b)) : NULL; /* B, row by row */
    for (int64_t r = part->begin; r < part->end; r++) {
        const product_row_t *row = &o->rows[r];
        for (int64_t p = 0; b && row->own != last && p < c->k; p++)
            for (int64_t j = 0; j < n; j++)
                b[p * n + j] = operands_value(o, B, row->own, p, j);
        last = row->own;
        memset(all, 0, 4 * (size_t)n * sizeof *all);
        for (int64_t p = 0; b && p < c->k; p++)
            add_products(sums.sum, sums.low, sums.high, sums.absolute, operands_value(o, A, row->shared, row->a, p),
                         &b[p * n], n);
        for (int64_t j = 0; j < n; j++)
            finish(part, r, j, sums.sum[j],
                   units > 0 ? units * 0x1p-24 * sums.absolute[j]
                             : accumulator_error(&sums, j, c->k, half, may_be_thin));
    }
    free(b);
    free(all);
    return NULL;
}

/* On several threads where the work is worth it. */
void reference_create(reference_t *r, const operands_t *o)
{
    enum { THREADS = 16 };
    const int64_t n = o->c->n, rows = o->row_count;
    r->value = must(calloc(2 * (size_t)(rows * n) + 1, sizeof *r->value));
    r->error = r->value + rows * n;
    if (rows * n * (o->c->k + 1) < 1 << 24) {
        compute_rows(&(part_t){r, o, 0, rows});
        return;
    }
    pthread_t threads[THREADS];
    part_t parts[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t] = (part_t){r, o, rows * t / THREADS, rows * (t + 1) / THREADS};
        if (pthread_create(&threads[t], NULL, compute_rows, &parts[t]) != 0) {
            printf("FAILED: no thread for the reference\n");
            exit(1);
        }
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

void reference_destroy(reference_t *r)
{
    free(r->value);
}

/* ---- Comparison -------------------------------------------------------------------------------- */

/* Half an ulp, as a part of a number, and below the normal ones. */
static double rounding(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F16 ? 0x1p-11 : type == HGEMM_TYPE_BF16 ? 0x1p-8 : 0x1p-24;
}

static double least_rounding(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F16 ? 0x1p-25 : 0x1p-126;
}

int reference_is_exact(const case_t *c)
{
    return case_is_of_integers(c) && activation_is_exact((hgemm_activation_t)c->activation);
}

int reference_agrees(const case_t *c, const void *element, double value, double error)
{
    const hgemm_type_t type = (hgemm_type_t)c->type[D];
    const double got = value_of(type, element);
    char nearest[4];
    if (isinf(error))
        return isnan(got) || isinf(got);
    if (isnan(value))
        return isnan(got);
    store_value(type, nearest, value);
    double wanted = value_of(type, nearest);
    if (reference_is_exact(c) || isinf(value))
        return got == wanted && !signbit(got) == !signbit(wanted);
    if (isinf(got)) { /* as it may be where a value that is as wrong would become infinity */
        store_value(type, nearest, value + copysign(error, got));
        return value_of(type, nearest) == got;
    }
    return fabs(got - value) <= error + rounding(type) * (fabs(value) + error) + least_rounding(type);
}

/*
 * By the model of bench/error_model.h. Rounding a sum to nearest adds 0.425 times the half ulp of its deviation: errors
 * are uniform within an ulp, a power of two. A D of floats feels the roundings of the epilogue, and an activation's
 * approximation. One error is the wider, the larger the sums on its way: over long sums its kurtosis is 7, and its tail
 * is no normal one but exponential. Hence the room.
 */
static const double left_out_of_products[] = {
    [HGEMM_ACCURACY_F32] = 0x1p-23, [HGEMM_ACCURACY_16_BITS] = 0x1p-17, [HGEMM_ACCURACY_11_BITS] = 0x1p-11};

double reference_deviation(const case_t *c, double count)
{
    const double share = 0.425, k = case_reads_factors(c) ? (double)c->k : 0;
    double values = sqrt(c->alpha * c->alpha * k * PRODUCT_VARIANCE + c->beta * c->beta / 3 + (c->bias ? 1.0 / 3 : 0));
    double sums = sum_error((hgemm_accumulate_t)c->accumulate, c->k, share * ERROR_HALF);
    if (case_has_floats(c)) /* what parts of floats leave out, as if it were a rounding of A and B */
        sums = hypot(sums, sqrt(k * PRODUCT_VARIANCE) * left_out_of_products[c->accuracy]);
    const hgemm_activation_t activation = (hgemm_activation_t)c->activation;
    double approximation = activation_is_exact(activation) ? 0 : 0x1p-20;
    double last = share * rounding((hgemm_type_t)c->type[D]) + 3 * 0x1p-24 + approximation;
    double expected = activation_slope(activation, 0, values) * hypot(c->alpha * sums, last * values);
    return expected * (1.2 + 8 / sqrt(count) + 1 / sqrt(k + 1));
}
