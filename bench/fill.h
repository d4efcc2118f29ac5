/* SPDX-License-Identifier: MIT */
/* Operands of a benchmark: random numbers, and the forms in which contestants take them. */
#ifndef HGEMM_BENCH_FILL_H
#define HGEMM_BENCH_FILL_H

#include "hgemm.h"

/* What a problem's operands are. */
typedef struct fill_t {
    hgemm_type_t type;       /* of A, C and D, and of B where it is not packed */
    int is_packed;           /* B is the transpose of packed weights ... */
    hgemm_weights_t weights; /* ... such ones, whose n and k are the problem's */
} fill_t;

/* Packed weights of a batch, one matrix after the other, and what they stand for. */
typedef struct fill_packed_t {
    void *packed;
    size_t bytes; /* of a matrix */
    float *values;
} fill_packed_t;

size_t fill_element_bytes(hgemm_type_t type);

/* Numbers that the type represents, in [-1, 1); or, if `exact`, integers of {-1, 0, 1} so sparse that a sum of k
 * products of two of them stays within the integers that a half represents. NULL where memory ran out. */
float *fill_matrix(int64_t count, hgemm_type_t type, int64_t k, int exact, uint64_t seed);

/* Those weights, n x k. If `exact`, their table is one of -1, 0 and 1. */
hgemm_weights_t fill_described(const fill_t *fill, int64_t n, int64_t k, int exact);

/* Weights, as fill_described has them, that stand for numbers of about the same size, or for the same integers; what a
 * half does not represent is among the former. SUCCESS, or what packing them says. */
hgemm_status_t fill_weights(const hgemm_weights_t *weights, int64_t batch, int exact, uint64_t seed,
                            fill_packed_t *filled);
void fill_weights_free(fill_packed_t *filled);

/* The numbers as elements of a type, rounded to nearest; elements as numbers. NULL where memory ran out. */
void *fill_elements(const float *values, int64_t count, hgemm_type_t type);
float *fill_values(const void *elements, int64_t count, hgemm_type_t type);

/* splitmix64 */
uint64_t fill_random(uint64_t *state);

#endif
