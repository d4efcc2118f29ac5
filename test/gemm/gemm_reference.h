/* SPDX-License-Identifier: MIT */
/* What a case's D must be, computed in double precision, and how far the library may be from it. */
#ifndef TEST_GEMM_REFERENCE_H
#define TEST_GEMM_REFERENCE_H

#include "gemm_operands.h"

typedef struct reference_t {
    double *value; /* of D, before it is rounded to its type: row_count rows of n */
    double *error; /* most that the library's may differ there; infinite: NaN and infinity are both right */
} reference_t;

void reference_create(reference_t *r, const operands_t *o);
void reference_destroy(reference_t *r);

/* The contract's bound for a sum of products of floats, in units of 2^-24 of the absolute products. That of any
 * numbers; or of numbers that keep their scales, and k that is not cut, so that sums are added to D's but once. */
double reference_float_units(hgemm_accuracy_t accuracy, int64_t k, int is_of_any);

/* Whether D must be the value rounded to nearest even, to the last bit (zeros have either sign). */
int reference_is_exact(const case_t *c);

/* Whether an element of D of that type is right. */
int reference_agrees(const case_t *c, const void *element, double value, double error);

/* The root mean square that the errors of `count` elements of a bounded fill may have. */
double reference_deviation(const case_t *c, double count);

#endif
