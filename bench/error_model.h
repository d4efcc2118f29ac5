/* SPDX-License-Identifier: MIT */
/* How far rounding takes a sum of products of random numbers in [-1, 1): what benchmark and tests expect. */
#ifndef HGEMM_ERROR_MODEL_H
#define HGEMM_ERROR_MODEL_H

#include "hgemm.h"

#define ERROR_HALF 0x1p-11   /* most that rounding to a half changes a number, as a part of it */
#define ERROR_BFLOAT 0x1p-8  /* the same of a bfloat16 ... */
#define ERROR_FLOAT 0x1p-24  /* ... and of a float */
#define ERROR_SINGLE 0x1p-23 /* most that a truncation to 24 bits does */
#define PRODUCT_VARIANCE (1.0 / 9)

/*
 * The standard deviation of the error of a sum of k products, with S = k / 8 additions to the accumulator and products
 * of variance v:
 *     half accumulator    half * sqrt(sum of 8 j v, j = 1 .. S): roundings to nearest, independent
 *     float accumulator   ERROR_SINGLE * sum of sqrt(8 j v): truncations, which may all go one way
 * `half` is that of one rounding to a half, as a part of the sum's deviation.
 */
double sum_error(hgemm_accumulate_t accumulate, int64_t k, double half);

/* The same of a sum by FP32 arithmetic, S = k: ERROR_SINGLE * sqrt(sum of j v), independent; and of its products, of
 * which hgemm's leave out 2^-22. */
double float_sum_error(int64_t k);

/* The activation's value as the header's formula gives it in IEEE arithmetic. */
double activation_value(hgemm_activation_t activation, double x);

/* The most that its slope is within `error` of x. */
double activation_slope(hgemm_activation_t activation, double x, double error);

/* The error of a kernel's value for an x that is wrong by `error` at most. */
double activation_error(hgemm_activation_t activation, double x, double error);

/* Whether it takes whole numbers to whole numbers. */
int activation_is_exact(hgemm_activation_t activation);

#endif
