/* SPDX-License-Identifier: MIT */
/* What is wrong with a call, found before anything is touched, with words that name the value. */
#ifndef HGEMM_CHECK_H
#define HGEMM_CHECK_H

#include "problem/problem.h"

/* Whether pointers are to be checked as what they point to, or by their alignment alone. */
typedef enum check_t { CHECK_ALIGNMENT, CHECK_MEMORY } check_t;

/* Takes a descriptor of any size that a version of the library had, checks it in the order that hgemm.h promises, and
 * writes the problem that it is. On failure `words` says which value met which limit. */
hgemm_status_t check_call(const hgemm_desc_t *given, check_t depth, problem_t *problem, char words[DEVICE_DETAIL]);

/* Checks a call of hgemm_find_scale. */
hgemm_status_t check_scale_call(int64_t lines, int64_t width, const void *matrix, int64_t ld, const float *scale,
                                char words[DEVICE_DETAIL]);

#endif
