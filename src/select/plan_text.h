/* SPDX-License-Identifier: MIT */
/*
 * A plan in words, which name its kernel: numbers of kernels change from version to version.
 *
 *     k5_256x256 nn x16 whole 64 splits 2 k 1408 copies a
 *
 * is the kernel, the transposes and the access of the row-major problem, which also tells whether the variant is for
 * indirect operands; then, where k is split, how many tiles of D
 * are whole, into how many parts k is split for the others, and the k's of each part but the last; then, where there
 * are such, the operands that are copied: a, b or ab.
 */
#ifndef HGEMM_PLAN_TEXT_H
#define HGEMM_PLAN_TEXT_H

#include "select/feasible.h"

enum { PLAN_TEXT = 192 };

enum { PLAN_LABEL = 64 };

/* A plan in few words, which results are labelled with: "k5_64x64" or, where it cuts k in 8, "k5_64x64 k/8", or, in
 * parts of which the last is the shortest by far, "k5_64x64 2x384+128"; "tail k/8" where it does so for the last tiles
 * only; "copy" where it runs on aligned copies. */
void plan_to_label(const plan_t *plan, int64_t k, char label[PLAN_LABEL]);

void plan_to_text(const plan_t *plan, char text[PLAN_TEXT]);

/* Reads a plan for a problem. Returns NULL, or what is wrong with the text. Whether the plan runs the problem,
 * plan_fault tells. */
const char *plan_from_text(const char *text, const problem_t *p, plan_t *plan);

#endif
