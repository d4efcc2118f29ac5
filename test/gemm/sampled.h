/* SPDX-License-Identifier: MIT */
/*
 * Products of bfloat16 operands whose scales a call finds in samples: an element may be spoiled that is in the sample,
 * or one that is not, and what the search leaves in the workspace is taken from there.
 */
#ifndef TEST_SAMPLED_H
#define TEST_SAMPLED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gemm_operands.h"
#include "api/handle.h"

enum { WORKSPACE = 32 << 20, UNTOUCHED = 0x5a5a5a5a, OUTLIER = 1 << 15 };

extern hgemm_handle_t handle;
extern char *workspace;
extern rng_t rng;
extern scale_space_t space; /* what the search has left: the word for an overflow, and the scales */

/* A stored matrix, of which a sample is of `every` segments in a row one, of rows those that `every_row` divides. */
typedef struct stored_t {
    uint16_t *x;
    int64_t lines, width, ld;
    int64_t every, every_row;
} stored_t;

typedef struct product_t {
    int op_a, op_b;
    int64_t m, n, k;
    stored_t a, b;
    float *d;
    hgemm_desc_t desc;
} product_t;

uint16_t bits_of(double x); /* of bfloat16 */
double value(uint16_t bits);

/* Operands of -1, 0 and 1, which have room to be sampled: more where the device samples larger ones. */
product_t make(int op_a, int op_b, int64_t m, int64_t n, int64_t k, int64_t gap);
void discard(product_t *p);
uint16_t *a_at(const product_t *p, int64_t i, int64_t q); /* of op(A) */
uint16_t *b_at(const product_t *p, int64_t q, int64_t j);

/* A k at which row i of op(A), or column j of op(B), is or is not in the sample. */
int64_t k_of_a(const product_t *p, int64_t i, int sampled);
int64_t k_of_b(const product_t *p, int64_t j, int sampled);

/* Sums of all products, in order; the caller's to free. */
double *reference(const product_t *p);

/* Device memory that holds a copy of the host's; its contents; its end. */
void *place(const void *host, size_t bytes);
void take(void *host, const void *device, size_t bytes);
void release(const void *device);

/* Multiplies, by a plan if one is given, into p->d and `space`. C, if there is one, is D or beside it. */
void run_with(product_t *p, const plan_t *plan, const float *c, int c_is_d);
void run(product_t *p, const plan_t *plan);
void assert_sums(const product_t *p, const double *sums);

/* Opens the device with a workspace of its own, runs the tests, and closes it: the program's exit status. */
#define run_sampled(tests) (sampled_open(), sampled_close(cmocka_run_group_tests(tests, NULL, NULL)))
void sampled_open(void);
int sampled_close(int failed);

#endif
