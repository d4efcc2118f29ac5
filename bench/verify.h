/* SPDX-License-Identifier: MIT */
/* Inputs of a benchmark and the proof that a result made from them is right. */
#ifndef HGEMM_BENCH_VERIFY_H
#define HGEMM_BENCH_VERIFY_H

#include "fill.h"

enum { VERIFY_VECTORS = 2, VERIFY_SAMPLES = 4096, VERIFY_WORDS = 200 };

typedef struct shape_t {
    int64_t m, n, k, batch;
    hgemm_op_t op_a, op_b;
    int64_t top; /* 0: a strided batch. Else `batch` experts, of which each of m tokens takes so many (experts.h) */
} shape_t;

/* What follows a product: a bias, which is the first n elements of B, and an activation. All zero: nothing. */
typedef struct epilogue_t {
    int has_bias;
    hgemm_activation_t activation;
} epilogue_t;

/* A problem with dense matrices on the host, as numbers: every leading dimension is the stored extent, and the matrices
 * of a batch follow one another. */
typedef struct problem_t {
    hgemm_layout_t layout;
    hgemm_op_t op_a, op_b;
    int64_t m, n, k, batch; /* of experts m is the rows of all of them, and batch 1 */
    int64_t matrices;       /* of B */
    int is_grouped;         /* each by the rows of an expert */
    int64_t lda, ldb, ldc;
    int64_t size_a, size_b, size_c; /* elements of one matrix, which are the strides of a batch */
    int exact;                      /* inputs are small integers: every sum is exact */
    int32_t *ends;                  /* of the rows of each expert, else NULL */
    float *a, *b, *c;
    fill_packed_t weights;           /* of B, where they are packed: b is what they stand for */
    double *signs[VERIFY_VECTORS];   /* x: n random signs, for all matrices of the batch */
    double *product[VERIFY_VECTORS]; /* op(A) * (op(B) * x): m for each matrix */
    double *addend[VERIFY_VECTORS];  /* C * x: m for each */
    struct sample_t {
        int64_t matrix, i, j;   /* matrix: of the batch */
        double product, addend; /* element (i, j) of op(A) * op(B), of C */
    } * samples;                /* VERIFY_SAMPLES */
} problem_t;

/* What a contestant made of a problem, and by what arithmetic. */
typedef struct made_t {
    const void *d;
    hgemm_type_t type; /* of D, and of C as it was taken */
    float alpha, beta;
    hgemm_accumulate_t accumulate;
    int is_float;    /* A and B are FP32, and D is as exact as FP32 arithmetic */
    double operands; /* most that taking A, B and C changed an element, as a part of it */
    epilogue_t epilogue;
} made_t;

/* The same without matrices and ends: all of them are NULL. */
problem_t problem_of(hgemm_layout_t layout, const shape_t *shape);

/* Random operands in [-1, 1), or, if exact, random integers of {-1, 0, 1} (fill.h). Else a status, and no problem. */
hgemm_status_t problem_create(problem_t *p, hgemm_layout_t layout, const shape_t *shape, const fill_t *fill, int exact);
void problem_destroy(problem_t *p);

/*
 * Whether D is act(alpha * op(A) * op(B) + beta * C + bias), for every matrix of the batch. NULL if so, otherwise words
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
 * An element's error has the standard deviation of its sum (error_model.h), times alpha, of what its operands were
 * rounded by, and of the rounding of D: half an ulp of sqrt(alpha^2 * k / 9 + beta^2 / 3).
 */
const char *problem_verify(const problem_t *p, const made_t *made, double *relative_error, char why[VERIFY_WORDS]);

#endif
