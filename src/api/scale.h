/* SPDX-License-Identifier: MIT */
/* The search for scales of bfloat16 operands: the kernel `scale` runs on the handle's stream, and the product that
 * needs them follows it there. */
#ifndef HGEMM_SCALE_H
#define HGEMM_SCALE_H

#include "api/handle.h"
#include "select/scale_search.h"
#include "table/args.h"

/* Enqueues the search for the scales that a plan finds, in the workspace. */
hgemm_status_t find_scales(hgemm_handle_t handle, const plan_t *plan, const problem_t *row_major, search_t search);

/* What the product is told of scales: where they are found, and, beside a sample, of an overflow. */
scales_t scales_of(const hgemm_handle_t handle, const plan_t *plan, const problem_t *row_major, search_t search);

/* Enqueues the sums that are not finite once more, which are so many matrices' of a product: nothing happens unless the
 * search found an outlier. */
hgemm_status_t recompute(hgemm_handle_t handle, const problem_t *row_major, const kernel_args_t *product,
                         int64_t matrices);

/* SEARCH_ALL for the matrix of a checked call of hgemm_find_scale. */
hgemm_status_t find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix, int64_t ld,
                          float *scale);

#endif
