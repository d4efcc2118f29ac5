/* SPDX-License-Identifier: MIT */
/* The search for scales of bfloat16 operands, by the kernel scale: on the handle's stream, as the product that needs
 * them. */
#ifndef HGEMM_SCALE_H
#define HGEMM_SCALE_H

#include "handle.h"

/* Enqueues the search for the scales that a plan finds, and lets the problem point to them, in the workspace. */
hgemm_status_t find_scales(hgemm_handle_t handle, const plan_t *plan, hgemm_desc_t *row_major);

/* The same for the matrix of a checked call of hgemm_find_scale. */
hgemm_status_t find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix, int64_t ld,
                          float *scale);

#endif
