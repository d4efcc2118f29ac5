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

/* Whether D must be the value rounded to nearest even, to the last bit (zeros have either sign). */
int reference_is_exact(const case_t *c);

/* Whether an element of D of that type is right. */
int reference_agrees(const case_t *c, const void *element, double value, double error);

/* The root mean square that the errors of `count` elements of a bounded fill may have. */
double reference_deviation(const case_t *c, double count);

#endif
