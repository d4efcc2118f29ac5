/* SPDX-License-Identifier: MIT */
/*
 * All that a plan depends on in a problem, in numbers and in words. Problems of one class differ in addresses, scalars
 * and what is in memory; what runs one runs all.
 *
 *     f16 nt 16x4096x1024 batch 3 lda 2048 ldb 1024 strides 32768 0 aligned 16 8 fused
 *
 * are the accumulator, the transposes and m x n x k of the row-major problem; then what differs from one product of
 * contiguous, aligned operands:
 *     batch N         matrices, or groups
 *     lda N, ldb N    where rows in memory have gaps
 *     strides N N     of A and of B, where matrices of the batch do not follow each other
 *     aligned N N     the greatest of 16, 8 and an element's bytes that the address of A is a multiple of, and of B
 *     fused           there is more to an element of D than alpha * sum + beta * c in halves
 *     invariant       HGEMM_FLAG_BATCH_INVARIANT
 *     gathered        gather_a
 *     pointers        HGEMM_BATCH_POINTERS, whose alignment is then told of twice
 *     grouped         HGEMM_BATCH_GROUPED
 *     col_major       C, D and gate are column-major, as the call's layout is: where it has groups or indices
 *     types T T       of A and of B, where one of them is not f16
 *     codes C, groups N, zeros Z, scales T
 *                     of packed weights, which types has as packed: int4, in groups of N k's (0, as where nothing is
 *                     told: all of a row), without zeros, and with scales of f16
 *     scaled_a        the scale of A is given, and does not have to be found
 *     scaled_b        that of B
 *     accuracy A      of floats, where less than f32 is allowed
 *     exact F         of floats, the factors whose elements are halves or bfloat16, if they are not those whose type is
 */
#ifndef HGEMM_PROBLEM_CLASS_H
#define HGEMM_PROBLEM_CLASS_H

#include "problem/problem.h"

enum {
#define FIELD(name, value) CLASS_##name,
#include "select/problem_class.def"
    CLASS_FIELDS
};

typedef struct problem_class_t {
    int64_t of[CLASS_FIELDS];
} problem_class_t;

/* The class of a problem. */
problem_class_t class_of(const problem_t *p);

/* By field, in their order: less than 0, 0 or more than 0, as memcmp has it. */
int class_compare(const problem_class_t *one, const problem_class_t *other);

uint64_t class_hash(const problem_class_t *problem);

enum { CLASS_TEXT = 320 };

void class_to_text(const problem_class_t *problem, char text[CLASS_TEXT]);

/* Reads a class. Returns NULL, or what is wrong with the text. */
const char *class_from_text(const char *text, problem_class_t *problem);

/* Writes a call that is a problem of the class, whose addresses are not those of memory; and what weights it has, if
 * these are packed, to which it then points. Returns NULL, or what is wrong with such a problem, in words that stay
 * until the thread's next call. */
const char *class_example(const problem_class_t *problem, hgemm_desc_t *call, hgemm_weights_t *weights);

#endif
