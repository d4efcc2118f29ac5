/* SPDX-License-Identifier: MIT */
/* Which kernel runs: pure functions of the problem. */
#ifndef HGEMM_SELECT_H
#define HGEMM_SELECT_H

#include "kernels.h"

/* What the choice needs to know of a GPU. */
typedef struct machine_t {
    int multiprocessors;
    int shared_bytes, threads; /* that a multiprocessor holds */
    size_t l2_bytes;
    size_t workspace_bytes;    /* that a handle asks for */
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
    int copies;          /* COPY_A, COPY_B: what is first copied, aligned, into the workspace */
} plan_t;

enum { COPY_A = 1, COPY_B = 2 };

/* The copy of an operand of a row-major problem: where rows begin at multiples of 128 bytes. */
typedef struct copy_t {
    int64_t lines, width, ld; /* rows of so many contiguous elements */
    int64_t bytes;
} copy_t;

copy_t copy_of(const hgemm_desc_t *row_major, int which);

/* The operands that are not aligned, which a variant for x16 then needs copies of. */
int copies_needed(const hgemm_desc_t *row_major);

/* Chooses the plan for a checked row-major problem on a GPU, with a workspace of that many bytes. A
 * kernel that the problem names is honoured, every tile whole, or the status is
 * HGEMM_STATUS_NOT_SUPPORTED. */
hgemm_status_t select_plan(const hgemm_desc_t *row_major, const machine_t *machine,
                           size_t workspace_bytes, plan_t *plan);

/* All of a row-major problem that select_plan looks at: on one machine, with one workspace, problems
 * with the same key have the same plan. */
typedef struct problem_key_t {
    int64_t of[13];
} problem_key_t;

problem_key_t key_of(const hgemm_desc_t *row_major);

/* The `most` plans of automatic selection that its model finds cheapest, the cheapest first, and how
 * many they are. */
typedef struct priced_plan_t {
    plan_t plan;
    double clocks;
} priced_plan_t;

int rank_plans(const hgemm_desc_t *row_major, const machine_t *machine, size_t workspace_bytes,
               priced_plan_t *best, int most);

/* Block tiles that cover D, for a kernel. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

#endif
