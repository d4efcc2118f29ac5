/* SPDX-License-Identifier: MIT */
/* Inputs of a benchmark and the proof that a result made from them is right. */
#ifndef HGEMM_BENCH_VERIFY_H
#define HGEMM_BENCH_VERIFY_H

#include "hgemm.h"

enum { VERIFY_VECTORS = 2, VERIFY_SAMPLES = 4096, VERIFY_WORDS = 200 };

typedef struct shape_t {
    int64_t m, n, k, batch;
    hgemm_op_t op_a, op_b;
} shape_t;

/* What follows a product: a bias, which is the first n elements of B, and an activation. All zero: nothing. */
typedef struct epilogue_t {
    int has_bias;
    hgemm_activation_t activation;
} epilogue_t;

/* A problem with dense matrices on the host: every leading dimension is the stored extent, and the matrices of a
 * batch follow one another. */
typedef struct problem_t {
    hgemm_layout_t layout;
    hgemm_op_t op_a, op_b;
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;
    int64_t size_a, size_b, size_c; /* elements of one matrix, which are the strides of a batch */
    int exact;                      /* inputs are small integers: every sum is exact */
    uint16_t *a, *b, *c;
    double *signs[VERIFY_VECTORS];   /* x: n random signs, for all matrices of the batch */
    double *product[VERIFY_VECTORS]; /* op(A) * (op(B) * x): m for each matrix */
    double *addend[VERIFY_VECTORS];  /* C * x: m for each */
    struct sample_t {
        int64_t matrix, i, j;
        double product, addend; /* element (i, j) of op(A) * op(B), of C */
    } * samples;                /* VERIFY_SAMPLES */
} problem_t;

/* The same without matrices: all of them are NULL. */
problem_t problem_of(hgemm_layout_t layout, const shape_t *shape);

/* Random halves in [-1, 1), or, if exact, random integers of {-1, 0, 1} so sparse that no partial
 * sum of a product leaves the integers that a half represents. 0 where memory ran out. */
int problem_create(problem_t *p, hgemm_layout_t layout, const shape_t *shape, int exact);
void problem_destroy(problem_t *p);

/*
 * Whether d is act(alpha * op(A) * op(B) + beta * C + bias), for every matrix of the batch. NULL if so, otherwise words
 * in `why`. `relative_error` gets the root mean square of the sampled errors over that of the values.
 *
 * Every element counts (Freivalds): for a vector x of random signs, D * x is compared with
 * alpha * op(A) * (op(B) * x) + beta * C * x, in double, for two such vectors. With exact inputs
 * the two must be equal, and one wrong element of a row cannot escape. With random inputs the sum
 * of a row of rounding errors is a random walk of n steps: it may come to 8 standard deviations.
 * VERIFY_SAMPLES elements are also computed in double and held to the same bound one by one. Where there is an
 * epilogue, these alone count, and the bound grows by the rounding of the bias and by the most that an activation's
 * slope is, 1.13.
 *
 * An element's error has the standard deviation of its sum (error_model.h), times alpha, and of the rounding of D:
 * 2^-11 * sqrt(alpha^2 * k / 9 + beta^2 / 3).
 */
const char *problem_verify(const problem_t *p, const uint16_t *d, float alpha, float beta,
                           hgemm_accumulate_t accumulate, epilogue_t epilogue, double *relative_error,
                           char why[VERIFY_WORDS]);

#endif
