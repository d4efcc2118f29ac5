/* SPDX-License-Identifier: MIT */
/*
 * A call as the rooms below the checks see it: which operands it accesses and where they lie, whether
 * there is anything to compute, and the same problem row-major. Every shortcut is decided here.
 */
#ifndef HGEMM_PROBLEM_H
#define HGEMM_PROBLEM_H

#include "problem/types.h"

typedef enum operand_t {
    OPERAND_A,
    OPERAND_B,
    OPERAND_C,
    OPERAND_D,
    OPERAND_BIAS,
    OPERAND_GATE,
    OPERAND_ALPHA, /* alpha_pointer */
    OPERAND_BETA,
    OPERAND_GROUP_ENDS,
    OPERAND_GATHER_A,
    OPERAND_SCATTER_D,
    OPERAND_SCALE_A, /* scale_a_pointer */
    OPERAND_SCALE_B,
    OPERAND_COUNT
} operand_t;

/* The operands that a call reads or writes, bit 1 << OPERAND_x for each: none where D has no element. A scalar in
 * device memory may have any value. */
unsigned accessed_operands(const hgemm_desc_t *desc);

/* A batch of stored matrices: `lines` rows (column-major: columns) of `width` contiguous elements. */
typedef struct view_t {
    const void *data; /* the first matrix, or the device's array of pointers */
    int is_known;     /* the host knows which memory the elements are in; else they come by pointers or by indices */
    int alignment;    /* bytes that the address must be a multiple of */
    int bits;         /* of an element */
    int64_t lines, width, ld;
    int64_t batch, stride;
} view_t;

/* Where an operand that is accessed lies. */
view_t view_operand(const hgemm_desc_t *desc, operand_t operand);

/* Whether D and C, which is read, are the same matrices. */
int d_is_c(const hgemm_desc_t *desc);

/* Whether D has no element, or is C and stays as it is. */
int nothing_to_compute(const hgemm_desc_t *desc);

/* The row-major problem that a checked call is. What it does not access is NULL there. `layout` is that of C, D and
 * gate: HGEMM_COL_MAJOR where rows of the product are in groups or have indices, and else HGEMM_ROW_MAJOR. */
hgemm_desc_t normalise(const hgemm_desc_t *desc);

/* Whether operands come by pointers or indices in device memory, or D is column-major, for which kernels have variants
 * of their own. Of a row-major problem. */
int is_indirect(const hgemm_desc_t *p);

/* The factors of a product, A and B: each has a type and a shape in memory of its own. */
enum { FACTOR_A = 1, FACTOR_B = 2 };

typedef struct factor_t {
    uintptr_t address; /* in a batch of pointers one that is as aligned as they promise to be */
    hgemm_type_t type;
    int is_along_k;           /* the rows in memory run along k, not along m or n */
    int64_t lines, width, ld; /* rows in memory of one matrix, elements of each, from one to the next */
    int64_t stride;
} factor_t;

/* FACTOR_A or FACTOR_B of a row-major problem. */
factor_t factor_of(const hgemm_desc_t *p, int which);

/* Whether A or B is of floats, and only one of them is. */
int has_floats(const hgemm_desc_t *p);
int is_mixed(const hgemm_desc_t *p);

/* The factors, FACTOR_A | FACTOR_B, of a problem with floats whose elements are halves or bfloat16, or were. */
int exact_factors(const hgemm_desc_t *p);

/* Whether FACTOR_A or FACTOR_B is multiplied by one scale for all of it. */
int factor_has_scale(const hgemm_desc_t *p, int which);

/* The factors, FACTOR_A | FACTOR_B, whose scale the call is to find. */
int scales_to_find(const hgemm_desc_t *p);

/* The kernel's parameter `fused` for a row-major problem (args.h). */
unsigned fused_bits(const hgemm_desc_t *p);

#endif
