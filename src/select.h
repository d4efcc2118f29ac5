/* SPDX-License-Identifier: MIT */
/* Which kernel runs: pure functions of the problem. */
#ifndef HGEMM_SELECT_H
#define HGEMM_SELECT_H

#include "kernels.h"

enum { T4_MULTIPROCESSORS = 40, WORKSPACE_BYTES = 32 << 20 /* of a handle */ };

/* What a call runs: a variant, and in how many parts it cuts k (1: whole). */
typedef struct plan_t {
    variant_t variant;
    int splits;
    int64_t k_split; /* of each part but the last, a multiple of the block's k; k where whole */
} plan_t;

/* Chooses the plan for a checked row-major problem on a GPU of that many multiprocessors, with a
 * workspace of that many bytes. A kernel that the problem names is honoured, whole, or the status
 * is HGEMM_STATUS_NOT_SUPPORTED. */
hgemm_status_t select_plan(const hgemm_desc_t *row_major, int multiprocessors,
                           size_t workspace_bytes, plan_t *plan);

/* Block tiles that cover D, for a kernel. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

#endif
