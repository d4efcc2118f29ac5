/* SPDX-License-Identifier: MIT */
/* Weights of 4 and 8 bits as a caller gives them, and the numbers that they stand for: decoded anew, from what hgemm.h
 * says. */
#ifndef HGEMM_WEIGHTS_GIVEN_H
#define HGEMM_WEIGHTS_GIVEN_H

#include "gemm_operands.h"

typedef struct given_t {
    hgemm_weights_t of;
    int64_t groups, code_bytes, scale_count, zero_bytes;
    uint8_t *codes;
    void *scales, *zeros;
    double *element;        /* the number */
    double *exact;          /* code, or code - zero: what is multiplied */
    double *scale, *offset; /* of each group */
} given_t;

/* Random codes, scales of 1/2 to 8 or, where sums are to be exact, powers of two, and zeros of all kinds. */
given_t weights_give(rng_t *rng, hgemm_code_t code, hgemm_zero_t zero, hgemm_type_t type_scale, int group, int64_t n,
                     int64_t k, int is_exact);
void weights_forget(given_t *weights);

/* Element i of an array of that type, read and written. */
double number_of(hgemm_type_t type, const void *from, int64_t i);
void put_number(hgemm_type_t type, void *to, int64_t i, float x);

#endif
