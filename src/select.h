/* SPDX-License-Identifier: MIT */
/* Which kernel runs a problem, and how: pure functions of the problem and the GPU. */
#ifndef HGEMM_SELECT_H
#define HGEMM_SELECT_H

#include "kernels.h"

/* What selection needs to know of a GPU. */
typedef struct machine_t {
    int multiprocessors;
    int shared_bytes, threads; /* limits of a multiprocessor */
    size_t l2_bytes;
    size_t workspace_bytes; /* that a handle allocates */
    int is_newer;           /* than Turing: priced as a Hopper GPU, runs the code that is compiled from PTX */
} machine_t;

extern const machine_t machine_t4;

machine_t machine_of(const hgemm_device_info_t *info);

/* How a problem is run: by which variant, and for which tiles of D k is split among several blocks. */
typedef struct plan_t {
    variant_t variant;
    int64_t tiles;       /* of D, for one matrix of the batch */
    int64_t whole_tiles; /* the first of them, computed by one block each */
    int splits;          /* parts of k for each of the other tiles; 1 if there are none */
    int64_t k_split;     /* k's of each part but the last: a multiple of the block's k, or all of k */
    int copies;          /* COPY_A | COPY_B: operands that are first copied, aligned, to the workspace */
} plan_t;

enum { COPY_A = 1, COPY_B = 2 };

/* An aligned copy of an operand, whose rows begin at multiples of 128 bytes. */
typedef struct copy_t {
    int64_t lines, width, ld; /* rows in memory, elements of each, leading dimension */
    int64_t bytes;
} copy_t;

/* The copy of operand `which`, COPY_A or COPY_B, of a row-major problem with k > 0. */
copy_t copy_of(const hgemm_desc_t *row_major, int which);

/* The operands that are not aligned to 16 bytes, so that a variant for ACCESS_x16 needs copies of them. */
int copies_needed(const hgemm_desc_t *row_major);

/* Chooses the plan for a checked row-major problem. If the problem names a kernel, the plan uses it and splits
 * no tile; the status is HGEMM_STATUS_NOT_SUPPORTED if it, or every kernel, cannot run the problem. */
hgemm_status_t select_plan(const hgemm_desc_t *row_major, const machine_t *machine, size_t workspace_bytes,
                           plan_t *plan);

/* All that select_plan looks at in a row-major problem: on one machine, with one workspace, problems with
 * the same key have the same plan. */
typedef struct problem_key_t {
    int64_t of[13];
} problem_key_t;

problem_key_t key_of(const hgemm_desc_t *row_major);

typedef struct priced_plan_t {
    plan_t plan;
    double clocks; /* by the cost model */
} priced_plan_t;

/* Writes the cheapest plans of automatic selection, `most` at most, the cheapest first; returns how many. */
int rank_plans(const hgemm_desc_t *row_major, const machine_t *machine, size_t workspace_bytes, priced_plan_t *best,
               int most);

/* Number of the kernel's block tiles that cover an m x n matrix. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

#endif
