/* SPDX-License-Identifier: MIT */
/*
 * What a call means: the row-major problem, with all that follows from it, computed once. The rooms below the checks
 * see nothing else of a call.
 */
#ifndef HGEMM_PROBLEM_H
#define HGEMM_PROBLEM_H

#include "problem/call.h"
#include "table/kernels.h"

/* A or B: each has a type and a shape in memory of its own. */
typedef struct factor_t {
    const void *data;  /* the first matrix, or the device's array of pointers; of packed weights all. NULL: not read */
    uintptr_t address; /* the same; in a batch of pointers one that is as aligned as they promise to be */
    hgemm_type_t type;
    int is_along_k;           /* the rows in memory run along k, not along m or n */
    int64_t lines, width, ld; /* rows in memory of one matrix, elements of each, from one to the next */
    int64_t stride;
    int aligned;                /* the greatest of 16, 8 and an element's bytes that the address is a multiple of */
    int whole;                  /* the most of 8, 4 and 1 elements that rows have in whole, aligned groups */
    double bytes;               /* of an element in memory; of packed weights with its share of scales and zeros */
    int is_exact;               /* beside floats or as one: its elements are halves or bfloat16, or were */
    int has_scale, finds_scale; /* it is multiplied by a power of two for all of it; which the call is to find */
    float scale;
    const float *scale_pointer;
} factor_t;

/* The row-major problem. What the call does not access is NULL, and its type F16. */
typedef struct problem_t {
    int is_idle; /* there is nothing to compute, and nothing else is set */
    int kernel;  /* that the call names, or HGEMM_KERNEL_AUTO */
    hgemm_accumulate_t accumulate;
    hgemm_accuracy_t accuracy; /* F32 where it makes no difference */
    int is_invariant;          /* HGEMM_FLAG_BATCH_INVARIANT */
    int64_t m, n, k;           /* k is 0 where A and B are not read */
    int64_t batch, matrices;   /* groups of rows share a matrix */
    hgemm_batch_mode_t batch_mode;
    int is_col_major;  /* C, D and gate are, of a call whose rows are in groups or have indices, or must stay rows */
    int is_indirect;   /* operands come by pointers or indices, or D is column-major: kernels have variants for that */
    int keeps_k_whole; /* no plan splits k: sums in parts would be others for another m, and most kernels that find
                          operands by pointers, indices or groups add up no parts. Those of packed weights do */
    int op;            /* 2 * op_a + op_b */
    int whole;         /* of both factors' groups of elements, the smaller */
    factor_t a, b;
    factors_t factors;
    int has_floats, is_mixed; /* A or B is of floats; and only one of them is */
    int scales;               /* FACTOR_A | FACTOR_B: those whose scale the call is to find */
    int is_packed;            /* B is packed weights */
    int weight_group;         /* k's that share a scale, 0: all of a row */
    packed_form_t packed;     /* whose form this is */
    hgemm_type_t type_c, type_d, type_bias, type_gate;
    kernel_args_t product; /* as kernels are told of it, but for what a plan says. Strides that do not count are 0 */
} problem_t;

/* The problem that a valid call is. */
problem_t normalise(const hgemm_desc_t *desc);

/* The same of a call whose operands and types have been seen, and that is not idle. */
void normalise_call(const call_t *call, problem_t *problem);

/* FACTOR_A or FACTOR_B. */
static inline const factor_t *factor_of(const problem_t *p, int which)
{
    return which == FACTOR_A ? &p->a : &p->b;
}

#endif
