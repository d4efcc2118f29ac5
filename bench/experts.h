/* SPDX-License-Identifier: MIT */
/*
 * Tokens of a mixture of experts: each takes some of them, all alike likely, and a row for each that it takes. Rows are
 * in the order of the experts, as a router leaves them, so that one matrix by one expert is a product of its own for
 * peers.
 */
#ifndef HGEMM_BENCH_EXPERTS_H
#define HGEMM_BENCH_EXPERTS_H

#include "verify.h"

/* Where the rows of each of shape->batch experts end: shape->m * shape->top rows in all. The same for the same shape.
 * The caller frees them; NULL where memory ran out. */
int32_t *experts_ends(const shape_t *shape);

/* How many of them have rows; 0 where memory ran out. */
int64_t experts_hit(const shape_t *shape);

#endif
