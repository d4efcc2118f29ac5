/* SPDX-License-Identifier: MIT */
/* Which kernel runs: pure functions of the problem. */
#ifndef HGEMM_SELECT_H
#define HGEMM_SELECT_H

#include "kernels.h"

enum { T4_MULTIPROCESSORS = 40 };

/* Chooses the variant for a checked row-major problem on a GPU of that many multiprocessors. A
 * kernel that the problem names is honoured or the status is HGEMM_STATUS_NOT_SUPPORTED. */
hgemm_status_t select_variant(const hgemm_desc_t *row_major, int multiprocessors,
                              variant_t *variant);

/* Block tiles that cover D, for a kernel. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

#endif
