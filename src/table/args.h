/* SPDX-License-Identifier: MIT */
/*
 * What the host tells the device: the parameters of the kernels, and the numbers that both rely on. C11 and
 * CUDA C++ read this file; its structs lie in memory alike for both.
 */
#ifndef HGEMM_ARGS_H
#define HGEMM_ARGS_H

#include "packed.h"

/* Limits of an SM, the same on a T4 and on newer GPUs. */
#define HGEMM_SM_REGISTERS 65536
#define HGEMM_THREAD_REGISTERS 255

/* Counters at the beginning of the workspace, of 4 bytes: one for each split tile. */
#define HGEMM_WORKSPACE_TILES 16384

/* Last k's of a problem that the k-tile loaded first holds at least, if k is not less. */
#define HGEMM_LEAST_TAIL 16

/* Blocks find their tile by divisions, for which the host passes this of the divisors. */
#define HGEMM_RECIPROCAL(divisor) (0xffffffffu / (divisor))

/*
 * Bits of `fused`, all zero where D = alpha * op(A) op(B) + beta * C, C and D are halves and the scalars the host's.
 * Otherwise HGEMM_FUSED is set, and
 *     D = act(alpha * op(A) op(B) + beta * C + bias) * gate.
 * Types are those of hgemm_type_t, activations those of hgemm_activation_t, at a shift of their own.
 */
#define HGEMM_FUSED 1u
#define HGEMM_FUSED_BIAS_PER_ROW 2u
#define HGEMM_FUSED_INDEX_64 4u /* gathered and scattered rows, ends of groups: 64 bits, not 32 */
#define HGEMM_FUSED_TYPE_C 4
#define HGEMM_FUSED_TYPE_D 6
#define HGEMM_FUSED_TYPE_BIAS 8
#define HGEMM_FUSED_TYPE_GATE 10
#define HGEMM_FUSED_TYPE_MASK 3u
#define HGEMM_FUSED_ANYHOW 8u /* something that only the way for all types, rows and scalars can */
#define HGEMM_FUSED_ACTIVATION 12
#define HGEMM_FUSED_ACTIVATION_MASK 7u

/*
 * Bits of `indirect`, of kernels that are compiled for it: a batch of pointers, in the place of operands and strides;
 * a batch whose matrices are groups of rows; C, D and gate are column-major, ld counts from column to column.
 */
#define HGEMM_INDIRECT_POINTERS 1u
#define HGEMM_INDIRECT_GROUPED 2u
#define HGEMM_INDIRECT_BY_COLUMNS 4u

/*
 * Further bits there, for kernels of floats: sums are added up after every k-tile, so that a row of D does not depend
 * on other rows of A; an operand's elements were halves or bfloat16, so that what a high part leaves is zero. And the
 * types in memory, at a shift of their own: looked at where elements are loaded one by one. And whether memory runs
 * along k, for those that are compiled for all transposes.
 */
#define HGEMM_FLOATS_EACH_STEP 8u
#define HGEMM_FLOATS_EXACT_A 16u
#define HGEMM_FLOATS_EXACT_B 32u
#define HGEMM_FLOATS_ALONG_K_A 1024u
#define HGEMM_FLOATS_ALONG_K_B 2048u
#define HGEMM_FLOATS_TYPE_A 6
#define HGEMM_FLOATS_TYPE_B 8

/* Those that multiply by FP32 units have sums of so many k's in registers, of more in shared memory, too. */
#define HGEMM_FP32_KEPT_K 1024

/* And for thin kernels: aligned lines of the long operand, which run along k, are swept, so many by a block. */
#define HGEMM_SWEPT 8u
#define HGEMM_SWEPT_LINES 128

/* Whether a kernel's variant has registers for fused epilogues; `is_any` is 1 where elements are 2-byte aligned. */
#define HGEMM_CAN_FUSE(block_m, block_n, is_any) (!(is_any) || (block_m) * (block_n) < 256 * 256)

/*
 * The parameter of every kernel of the table. The problem is row-major; a column-major one is passed as its
 * transpose:
 *     D[m][n] = alpha * op(A)[m][k] * op(B)[k][n] + beta * C[m][n]
 * Leading dimensions and batch strides count elements. blockIdx.y is the matrix of the batch.
 *
 * Split-K: the first whole_tiles tiles of D have a block each. Every other tile has `splits` blocks, one for each
 * k_split k's (a multiple of the block's k; the last part is what is left). blockIdx.x counts the whole tiles, then
 * the first parts of all split tiles, then their second parts, and so on. (Code for a T4 alone, see ON_T4 in
 * kernels.def, with two blocks per SM: the parts come before the whole tiles.) Partial sums meet in the workspace:
 * HGEMM_WORKSPACE_TILES counters, all zero before and after a call, then the accumulators of every part of every
 * split tile. (Of groups, the parts of a tile follow each other.)
 */
typedef struct kernel_args_t {
    const void *a, *b, *c;
    void *d;
    long long lda, ldb, ldc, ldd;
    long long stride_a, stride_b, stride_c, stride_d;
    int m, n, k;
    float alpha, beta;
    int whole_tiles, k_split, splits;
    unsigned inv_split_tiles; /* HGEMM_RECIPROCAL of: the split tiles (where warps have tiles: all of a matrix), */
    unsigned inv_group_tiles; /* the tiles in a group of rows of tiles that are walked together, */
    unsigned inv_last_rows;   /* the rows of tiles in the last group */
    void *workspace;
    unsigned fused;          /* HGEMM_FUSED and what goes with it; if zero, nothing of what follows is looked at */
    const void *bias, *gate; /* NULL: none. A bias has a value for each column, or for each row; gate is like D */
    long long stride_bias, ldgate, stride_gate;
    const float *alpha_pointer, *beta_pointer; /* not NULL: in the place of alpha, of beta */
    const void *scatter_d;  /* NULL: none. Row i of the product is row scatter_d[i] of D, C, gate and a bias per row */
    const void *gather_a;   /* NULL: none. Row i of op(A) is row gather_a[i] of the stored one */
    const void *group_ends; /* past the last row of each group */
    int groups;             /* or, where warps have tiles, matrices of the launch */
    unsigned indirect;      /* gather_a, group_ends: looked at by kernels that are compiled for it */
} kernel_args_t;

/* Columns of D, or rows, that it is thin in, up to which a block of a thin kernel may have several tiles. The grid then
 * has fewer blocks than D has tiles, and each gets as many. */
#define HGEMM_FEW_COLUMNS 2

/* One column, or row, of so many k's and lines at least is streamed, if memory runs along the lines and k is not split.
 * A block then has so many lines, and shared memory for so many sums. */
#define HGEMM_STREAMED_LEAST_LINES 8
#define HGEMM_STREAMED_K 129
#define HGEMM_STREAMED_LINES 120
#define HGEMM_STREAMED_SUMS (8 * (HGEMM_STREAMED_LINES + 8))

/* What kernels for bfloat16 get beside that: powers of two by which A and B are multiplied (ptx/convert.cuh). */
typedef struct scales_t {
    float a, b;
    const float *a_pointer, *b_pointer; /* not NULL: in the place of a, of b */
    unsigned *overflow;                 /* not NULL: becomes 1 if a sum is not finite */
    const unsigned *only_after;         /* not NULL: D is computed if this is not 0 */
} scales_t;

typedef struct bf16_args_t {
    kernel_args_t product;
    scales_t scales;
} bf16_args_t;

/* What kernels for packed weights get, of whatever type A is. */
typedef struct packed_args_t {
    kernel_args_t product;
    scales_t scales;
    packed_form_t packed;
} packed_args_t;

/* Logarithms of the scales of bfloat16 operands: of one with the largest element below 2^128, and of one that makes any
 * bfloat16 a half exactly. */
#define HGEMM_LEAST_SCALE_LOG (-112)
#define HGEMM_MOST_SCALE_LOG 126

/* The kernel realign copies unaligned operands of a product, and halves or bfloat16 as floats. Elements are halves, or
 * a float's two halves, of which a thread copies a chunk of 8. */
#define HGEMM_REALIGN_THREADS 128

typedef struct realign_operand_t {
    const void *from;
    void *to;
    long long ld, to_ld;
    long long width;         /* contiguous elements of a row */
    int lines;               /* rows */
    unsigned row_chunks;     /* that are copied of a row, with what it is longer in the copy */
    unsigned inv_row_chunks; /* HGEMM_RECIPROCAL of that */
    unsigned becomes_floats; /* elements of `type`, an hgemm_type_t, become floats: two elements each in the copy */
    unsigned type;
} realign_operand_t;

typedef struct realign_args_t {
    realign_operand_t operand[2]; /* counted by blockIdx.z */
} realign_args_t;

/*
 * The kernel scale finds the scales of bfloat16 operands. HGEMM_SCALE_BLOCKS at most share one; each leaves its largest
 * element in `partial`, and the last one sets `arrived`, which must be 0, to 0 again. One block alone needs neither.
 *
 * It reads all of an operand, or a sample: of every 2^log_every segments of HGEMM_SCALE_SEGMENT elements in a row one,
 * another one in each of as many rows that follow each other. A row and a column then have some of it each. The scale
 * brings the largest element that it has read below 2^(16 - room).
 */
#define HGEMM_SCALE_THREADS 256
#define HGEMM_SCALE_BLOCKS 256
#define HGEMM_SCALE_SEGMENT 64
#define HGEMM_SCALE_SAMPLE_ROOM 3

typedef struct scale_operand_t {
    const void *from;
    float *scale;
    unsigned *partial, *arrived;
    long long ld, stride, batch;
    int lines, width;    /* rows, and the contiguous elements of each */
    int log_across;      /* 2^this threads stand side by side along a row */
    int log_every, room; /* both 0: all of it is read */
    unsigned blocks;     /* that share a matrix; the next ones have the next matrix of the batch */
} scale_operand_t;

/* What a search and a product leave to what is enqueued after them. */
typedef struct findings_t {
    unsigned overflow; /* a sum was not finite */
    unsigned again;    /* of a search after that: its scales serve all elements, and the product is computed again */
    unsigned outlier;  /* of a search of all elements: no scale serves all, and what is not finite is recomputed */
    unsigned has_outlier[2]; /* of each operand */
} findings_t;

typedef struct scale_args_t {
    scale_operand_t operand[2]; /* counted by blockIdx.z */
    unsigned blocks, operands, is_sample;
    findings_t *found;          /* not NULL: outliers are left out of account, and reported */
    unsigned *finished;         /* beside `found`: 0 before and after */
    const unsigned *only_after; /* not NULL: scales are found if this is not 0 */
} scale_args_t;

/* An outlier is that many binades above what is usual. Then the scale brings what is usual as many below 2^16 as it
 * leaves room. */
#define HGEMM_SCALE_OUTLIER 16
#define HGEMM_SCALE_USUAL_ROOM 8

/* Where the scales of a product are found: of A and of B; and what was found beside. */
typedef struct scale_space_t {
    unsigned partial[2][HGEMM_SCALE_BLOCKS];
    float scale[2];
    findings_t found;
    char to_whole_lines[100]; /* what lies before it in memory may begin at any multiple of 128 bytes */
} scale_space_t;

/* The kernel recompute adds up anew what is not finite. Strides of op(A) and op(B) count elements; where B is packed
 * weights, `packed` says what they are, else its n is 0. */
#define HGEMM_RECOMPUTE_THREADS 256
#define HGEMM_RECOMPUTE_TILE 64
#define HGEMM_RECOMPUTE_SHARED 17152

typedef struct recompute_args_t {
    kernel_args_t product;
    long long a_rows, a_ks, b_columns, b_ks;
    long long batch;
    const unsigned *only_after;
    packed_form_t packed;
} recompute_args_t;

#endif
