/* SPDX-License-Identifier: MIT */
/*
 * How warps of kernels without stages take their operands, for prices and for the kernels: C11 and CUDA C++ read this
 * file. All are constant expressions.
 */
#ifndef HGEMM_WARP_FACTS_H
#define HGEMM_WARP_FACTS_H

/* Of a kernel for few rows or columns of floats, whose long operand runs along k or not: slots of warps that have a
 * part of a k-tile; lanes of a warp that share lines; units of 16 bytes in a round of a thread's loads, for so many
 * columns at a time, HGEMM_FEW_TOGETHER at most; groups of warps that share columns; and rounds in a k-tile. */
#define HGEMM_FEW_TOGETHER 8
#define HGEMM_FEW_SLOTS(is_along_k) ((is_along_k) ? 2 : 8)
#define HGEMM_FEW_LANES_K(is_along_k) ((is_along_k) ? 8 : 2)
#define HGEMM_FEW_UNITS(is_along_k, together) \
    ((is_along_k) && (together) == HGEMM_FEW_TOGETHER ? 4 : 8) /* by registers */
#define HGEMM_FEW_GROUPS(columns) ((columns) <= HGEMM_FEW_TOGETHER ? 1 : 2)
#define HGEMM_FEW_ROUNDS(is_along_k, together, groups, block_k) \
    ((block_k) / HGEMM_FEW_SLOTS(is_along_k) /                  \
     (HGEMM_FEW_UNITS(is_along_k, together) * HGEMM_FEW_LANES_K(is_along_k)) * (groups))

/* Of a kernel whose FP32 units multiply floats from shared memory: lanes of a warp along n. */
#define HGEMM_FP32_LANES_N(warp_n) ((warp_n) < 32 ? 4 : 8)

/* Of a kernel whose warps have a tile each: k's of a lane and of the warp in a step, and a lane's rows or columns. */
#define HGEMM_TINY_UNIT_K 8
#define HGEMM_TINY_STEP_K (4 * HGEMM_TINY_UNIT_K)
#define HGEMM_TINY_LINES(block) ((block) / 8)

#endif
