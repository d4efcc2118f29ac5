/* SPDX-License-Identifier: MIT */
/* The search for the scales of operands, as far as it is planned: what it reads. api/scale.c enqueues it. */
#ifndef HGEMM_SCALE_SEARCH_H
#define HGEMM_SCALE_SEARCH_H

#include "select/machine.h"

/* Which elements a search for the scales of a product reads. */
typedef enum search_t {
    SEARCH_ALL,
    SEARCH_SAMPLE,        /* some; the product then reports an overflow, ... */
    SEARCH_AFTER_OVERFLOW /* ... after which this reads all, and the product is computed again; else both do nothing */
} search_t;

/* Whether D is computed once, by scales of all elements: what is C is no longer what the product needs once it is D,
 * and of a batch-invariant product no row must tell others of itself. */
int is_once(const problem_t *row_major);

/* SEARCH_SAMPLE where that takes less time than SEARCH_ALL, for a plan that finds these scales (FACTOR_A, FACTOR_B),
 * and the product may be computed twice. */
search_t first_search(const machine_t *machine, int scales, const problem_t *row_major);

/* Bytes that it reads, or somewhat more. */
double searched_bytes(const machine_t *machine, int scales, const problem_t *row_major);

/* Bytes of a sample of an operand, at least; less than twice as many, if it has the rows for that. */
enum { SAMPLE_BYTES = 256 << 10 };

#endif
