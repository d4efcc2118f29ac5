/* SPDX-License-Identifier: MIT */
/* What others have published of a T4, to stand beside what its timing model says; nothing here was measured by us. */
#ifndef HGEMM_BENCH_PUBLISHED_H
#define HGEMM_BENCH_PUBLISHED_H

#include "verify.h"

/* What the figures are, and their source. */
extern const char *const published_source;

/* TFLOPS of cublasHgemm on a T4 for that problem; 0 where none are known. */
double published_cublas(hgemm_layout_t layout, const shape_t *shape);

#endif
