/* SPDX-License-Identifier: MIT */
/*
 * What can run a problem: variants, by alignment and offsets; aligned copies of operands; plans. Problems are checked
 * and row-major.
 */
#ifndef HGEMM_FEASIBLE_H
#define HGEMM_FEASIBLE_H

#include "table/kernels.h"
#include "problem/problem.h"

static inline int64_t ceil_div(int64_t dividend, int64_t divisor)
{
    return (dividend + divisor - 1) / divisor;
}

/* The product of two numbers that are not negative, or INT64_MAX where that is less: counts of what no memory holds. */
static inline int64_t saturated_product(int64_t one, int64_t other)
{
    return other == 0 || one <= INT64_MAX / other ? one * other : INT64_MAX;
}

/* Number of the kernel's block tiles that cover an m x n matrix. */
int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n);

/* Tiles of one matrix. Where rows are in groups, whose sizes the device knows: as many as they can have. */
int64_t problem_tiles(const problem_t *p, const hgemm_kernel_info_t *kernel);

/* Whether D = alpha * A * B + beta * C, and rows of D, and of C where it is read, are whole chunks of 8 aligned halves:
 * what plain kernels (kernels.def) write. */
int is_plain_result(const problem_t *p);

/* An aligned copy of an operand, whose rows begin at multiples of 128 bytes. */
typedef struct copy_t {
    int64_t lines, width, ld; /* rows in memory, elements of each, leading dimension */
    int64_t bytes;
} copy_t;

/* The type of a copy: beside floats, copies are of floats. */
hgemm_type_t copied_type(const problem_t *p, hgemm_type_t type);

/* The copy of operand `which`, FACTOR_A or FACTOR_B, of a problem with k > 0. */
copy_t copy_of(const problem_t *p, int which);

/* Bytes of the copies, FACTOR_A | FACTOR_B. */
int64_t copied_bytes(const problem_t *p, int copies);

/* The operands that are not aligned to 16 bytes, or are no floats beside one of floats, so that a variant for
 * ACCESS_x16 needs copies of them. */
int copies_needed(const problem_t *p);

/* The copies that would make all operands aligned, if they are worth a try and the workspace has room for them. */
int possible_copies(const problem_t *p, size_t workspace_bytes);

/* The variant of a kernel that a problem would need, if it had that access. */
variant_t variant_for(const problem_t *p, int kernel, access_t access);

/* Finds the variant of `kernel` that runs the problem, on the operands or on the given copies; returns 0 if there is
 * none. Whether this build has its image is another question. */
int find_variant(const problem_t *p, int kernel, int copies, variant_t *variant);

/* How a problem is run: by which variant, and for which tiles of D k is split among several blocks. */
typedef struct plan_t {
    variant_t variant;
    int64_t tiles;       /* of D, for one matrix of the batch */
    int64_t whole_tiles; /* the first of them, computed by one block each */
    int splits;          /* parts of k for each of the other tiles; 1 if there are none */
    int64_t k_split;     /* k's of each part but the last: a multiple of the block's k, or all of k */
    int copies;          /* FACTOR_A | FACTOR_B: operands that are first copied, aligned, to the workspace */
    int scales;          /* FACTOR_A | FACTOR_B: operands whose scale is first found, in the workspace */
} plan_t;

/* Steps of the main loop for a whole tile: its k-tiles. */
static inline int64_t steps_of(const problem_t *p, variant_t variant)
{
    return ceil_div(p->k, kernel_table[variant.kernel].info.block_k);
}

/* Blocks for one matrix, if each has a tile or a part of one. */
static inline int64_t plan_blocks(const plan_t *plan)
{
    return plan->whole_tiles + (plan->tiles - plan->whole_tiles) * plan->splits;
}

int same_plan(const plan_t *one, const plan_t *other);

/* Blocks for one matrix, their shared memory, and what the kernel is told in `indirect` (args.h). */
typedef struct launch_shape_t {
    int64_t blocks;
    int shared_bytes;
    unsigned bits;
} launch_shape_t;

/* Bytes of a block's sums, where k is split. */
int64_t sum_bytes(const hgemm_kernel_info_t *kernel);

/* Bytes at the end of the workspace where scales are found, if any are. */
int64_t scale_bytes(int scales);

/* Workspace that a plan needs: counters and sums of split tiles, then copies, then scales. */
int64_t plan_workspace(const problem_t *p, const plan_t *plan);

/* What is wrong with a plan from elsewhere, in words; NULL if it runs the problem in this build. */
const char *plan_fault(const problem_t *p, size_t workspace_bytes, const plan_t *plan);

#endif
