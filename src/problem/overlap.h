/* SPDX-License-Identifier: MIT */
/* Which operands of a call share memory. */
#ifndef HGEMM_OVERLAP_H
#define HGEMM_OVERLAP_H

#include "problem/call.h"

/* What a view covers whose place is known and that has elements, in bytes. What does not matter is 0: the stride of one
 * matrix, the leading dimension of one line. */
typedef struct area_t {
    uintptr_t first;      /* matrix */
    uintptr_t begin, end; /* from the lowest to past the highest of all */
    int64_t lines, width, ld;
    int64_t batch, stride;
} area_t;

area_t area_of(const view_t *view);

/* Whether two operands share memory. The answer is exact where their leading dimensions and strides agree in bytes, or
 * do not matter. Elsewhere operands whose addresses meet count as sharing. */
int areas_meet(const area_t *one, const area_t *other);

/* Whether two matrices of one batch share an element. */
int batch_meets_itself(const view_t *view, const area_t *area);

#endif
