/* SPDX-License-Identifier: MIT */
/* A call of cuBLAS in hgemm's terms, and what became of it. */
#ifndef HGEMM_CUBLAS_PRODUCT_H
#define HGEMM_CUBLAS_PRODUCT_H

#include "hgemm.h"

/* Marks the functions that programs find in the place of the real ones. */
#define DOOR_EXPORT __attribute__((visibility("default")))

typedef struct product_t {
    const char *entry; /* the function that the program called */
    void *stream;
    hgemm_desc_t desc; /* as far as it is known, while is_described is 0 */
    int is_described;
    const uint16_t *half_alpha, *half_beta; /* in device memory; both NULL: the scalars are the descriptor's */
    int loose_from; /* the compute capability from which on the program lets tensor cores round A and B that are floats:
                       70 to halves, 80 to bfloat16 or TF32; 0: it does not */
    const char *why;  /* it is not hgemm's: words that last; NULL: it is */
    char detail[160]; /* hgemm's own words on that, "" where it has none */
} product_t;

/* Whether calls are to be looked at: not with the policy "nowhere" and no log, nor within the real library. */
int door_is_open(void);

/* Has hgemm enqueue the product unless `why` is set, sets it where that fails, and notes both. Whether it ran. */
int door_run(product_t *product);

/* What cuBLAS's arguments mean, common to all its calls. */
int product_op(int op, hgemm_op_t *meaning); /* 0: no operation of real matrices */

/* The types of A and B, and of C, which follow them. NULL, or why they are not hgemm's. */
const char *product_types(int type_a, int type_b, int type_c, hgemm_desc_t *desc);

/* The compute type, for the types of these. NULL, or why it is not one that hgemm honours. */
const char *product_compute(product_t *product, int compute);

/* What the handle's math mode allows beside the compute type. */
void product_allow_math(product_t *product, int math_mode);

/* The scalars alpha and beta, which are halves where sums are. */
const char *product_scalars(product_t *product, int pointer_mode, const void *alpha, const void *beta);

#endif
