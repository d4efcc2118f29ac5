/* SPDX-License-Identifier: MIT */
/* Which kernel runs: pure functions of the problem. */
#ifndef HGEMM_SELECT_H
#define HGEMM_SELECT_H

#include "kernels.h"

enum { WORKSPACE_BYTES = 32 << 20 /* of a handle */ };

/* What the choice needs to know of a GPU. */
typedef struct machine_t {
    int multiprocessors;
    int shared_bytes, threads; /* that a multiprocessor holds */
    size_t l2_bytes;
    int is_newer;              /* than Turing: its mma.m16n8k8 takes half the clocks */
} machine_t;

extern const machine_t machine_t4;

machine_t machine_of(const hgemm_device_info_t *info);

/* What a call runs: a variant, how many tiles it computes whole, and in how many parts it cuts k
 * for the others. */
typedef struct plan_t {
    variant_t variant;
    int64_t tiles;       /* of a matrix of the batch */
    int64_t whole_tiles; /* the first so many of them */
    int splits;          /* of each other tile; 1: there is none */
    int64_t k_split;     /* of each part but the last, a multiple of the block's k; k where whole */
    int64_t warm_k;      /* what each block has the L2 cache fetch as it starts */
} plan_t;

/* Chooses the plan for a checked row-major problem on a GPU, with a workspace of that many bytes. A
 * kernel that the problem names is honoured, every tile whole, or the status is
 * HGEMM_STATUS_NOT_SUPPORTED. */
hgemm_status_t select_plan(const hgemm_desc_t *row_major, const machine_t *machine,
                           size_t workspace_bytes, plan_t *plan);

/* Block tiles that cover D, for a kernel. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

#endif
