/* SPDX-License-Identifier: MIT */
/* What cuBLAS may make of a product of floats, for those for which nobody has measured it. */
#ifndef HGEMM_CUBLAS_SGEMM_H
#define HGEMM_CUBLAS_SGEMM_H

#include "hgemm.h"

/* The time of cuBLAS's SGEMM on a Turing GPU at its best, in seconds, launch not counted, as in hgemm_plan_info_t. 0
 * where the clock is unknown. */
double sgemm_seconds(const hgemm_desc_t *desc, const hgemm_device_info_t *gpu);

#endif
