/* SPDX-License-Identifier: MIT */
/* Products by packed weights, each compared with double precision, by the contract's bound. */
#ifndef HGEMM_WEIGHTS_PRODUCT_H
#define HGEMM_WEIGHTS_PRODUCT_H

#include "weights_given.h"

enum { WEIGHTS_GUARD = 256 }; /* bytes before and behind what a call writes */

/* Kinds of codes and zeros that go together; sizes of groups; kernels, of which the last is automatic. */
enum { WEIGHTS_GROUPS = 6, WEIGHTS_KERNELS = 5 };
enum {
    WEIGHTS_KINDS = 0
#define CODE(value, name, bits, kind, lowest, highest, has_zeros) +((has_zeros) ? 3 : 1)
#include "table/codes.def"
};
typedef struct weights_kind_t {
    hgemm_code_t code;
    hgemm_zero_t zero;
} weights_kind_t;
extern const weights_kind_t weights_kinds[WEIGHTS_KINDS];
extern const int weights_groups[WEIGHTS_GROUPS];
extern const char *const weights_kernels[WEIGHTS_KERNELS];

/* Kernel number i of the four, or one for such codes or groups in its place; then the automatic choice, NULL. */
const char *weights_kernel_for(int i, int kind, int group);

/* A copy in device memory, to be taken away. */
void *weights_place(hgemm_handle_t handle, const void *host, int64_t bytes);
void weights_take_away(hgemm_handle_t handle, void *device);

/* Bytes of the packed form. */
size_t weights_packed_bytes(const hgemm_weights_t *of);

/* A call: W and what else it has. What is 0 is as plain as can be. */
typedef struct weights_product_t {
    const given_t *w; /* of each matrix of a batch, or group, one after the other */
    int experts;      /* how many, 0: one */
    int64_t m;
    const char *kernel; /* NULL: automatic */
    hgemm_type_t type_a, type_d;
    int lda_more, shift; /* elements by which rows of A are longer, and A begins later */
    int is_exact;
    int is_grouped, is_gathered, is_scattered;
    int splits; /* 0: as chosen. Of tiles from number `whole` on */
    int whole;
    float alpha, beta;
    int has_bias, has_gate;
    hgemm_bias_t bias_mode;
    hgemm_type_t type_other; /* of bias and gate */
    hgemm_activation_t activation;
    unsigned flags;
    float size;                              /* of elements of A; 0: 1 */
    float outlier;                           /* an element of the middle row of A, in each matrix; 0: none */
    int is_shared;                           /* a batch by one matrix */
    int has_scalars_there, has_wide_indices; /* alpha and beta in device memory; indices of 64 bits */
    int has_pointers;                        /* a batch of pointers */
} weights_product_t;

/* Runs the call on poisoned, guarded memory, and compares every element with double precision. Leaves D's bits in
 * `bits` where that is not NULL. */
void weights_check(hgemm_handle_t handle, rng_t *rng, const weights_product_t *c, const char *what, uint8_t *bits);

#endif
