/* SPDX-License-Identifier: MIT */
/* Which operands of a call share memory. */
#ifndef HGEMM_OVERLAP_H
#define HGEMM_OVERLAP_H

#include "problem/problem.h"

/* Whether two operands share memory, whose views are known and have elements. The answer is exact where their leading
 * dimensions and strides agree in bytes, or do not matter: of a single line, or of one matrix. Elsewhere operands whose
 * address ranges meet count as sharing. */
int operands_meet(const view_t *one, const view_t *other);

/* Whether two matrices of one batch share an element. */
int batch_meets_itself(const view_t *view);

/* Addresses, in bytes, from the lowest to past the highest element of a batch. */
void address_range(const view_t *view, uintptr_t *begin, uintptr_t *end);

#endif
