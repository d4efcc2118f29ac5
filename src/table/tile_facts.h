/* SPDX-License-Identifier: MIT */
/*
 * What follows from the columns of a row of kernels.def, for the host and for the kernels: C11 and CUDA C++ read this
 * file. All are constant expressions. Columns go by their names in hgemm_kernel_info_t; sum_bytes is 2 or 4.
 */
#ifndef HGEMM_TILE_FACTS_H
#define HGEMM_TILE_FACTS_H

/* Bytes of an element of A and B in shared memory, whatever its type in memory. */
#define HGEMM_STAGED_BYTES 2

/* Elements by which rows of sums in shared memory are longer than the tile: it keeps their writes free of bank
 * conflicts. At least HGEMM_STAGED_ROWS rows of each warp are there at a time. */
#define HGEMM_SUMS_PADDING 8
#define HGEMM_STAGED_ROWS 16

/* Warps that share a tile of sums, each for its part of a k-tile; threads of a block. */
#define HGEMM_K_WARPS(block_k, warp_k) ((block_k) / (warp_k))
#define HGEMM_THREADS(block_m, block_n, block_k, warp_m, warp_n, warp_k) \
    (32 * ((block_m) / (warp_m)) * ((block_n) / (warp_n)) * HGEMM_K_WARPS(block_k, warp_k))

/* Shared memory: of the k-tiles of the main loop, and what floats have beside them for each row of A's tile and each
 * column of B's; from a row of sums to the next one, and of the least rows of sums. */
#define HGEMM_MAIN_BYTES(stages, block_m, block_n, block_k) \
    ((stages) * ((block_m) + (block_n)) * (block_k)*HGEMM_STAGED_BYTES)
#define HGEMM_SIDE_BYTES(block_m, block_n) (((block_m) + (block_n)) * 12 + 128) /* of floats: three words a side */
#define HGEMM_SUMS_PITCH(block_n, sum_bytes) (((block_n) + HGEMM_SUMS_PADDING) * (sum_bytes))
#define HGEMM_SUMS_BYTES(warps, block_n, sum_bytes) ((warps)*HGEMM_STAGED_ROWS * HGEMM_SUMS_PITCH(block_n, sum_bytes))

/* Of a kernel for few rows or columns of floats: two k-tiles of the operand with few. */
#define HGEMM_FEW_BYTES(few, block_k) (2 * ((few) + 4) * (block_k)*4)

/* Of a kernel whose FP32 units multiply floats from shared memory: k-tiles as they are, where the tile's sums lie
 * later; and those sums, of many k's. */
#define HGEMM_FP32_MAX(x, y) ((x) > (y) ? (x) : (y))
#define HGEMM_FP32_BYTES(stages, block_m, block_n, block_k) \
    HGEMM_FP32_MAX((stages) * ((block_m) + (block_n)) * (block_k)*4, (block_m) * (block_n)*4)
#define HGEMM_FP32_KEPT_BYTES(block_m, block_n) ((block_m) * (block_n)*4)

/* Whether a kernel for packed weights takes all of them: also those by tables, those that have offsets, and groups
 * smaller than a warp's k-tile. */
#define HGEMM_TAKES_ALL(warp_m, tables_only) ((warp_m) <= 32 && !(tables_only))

/*
 * Whether the last part of a split tile to arrive leaves its own sums in registers, if there are enough: where the sums
 * of a tile are many, so that to write and read them takes longer than to find out first whether others are missing.
 * On newer GPUs that is 128 KiB of halves. A T4's L2 cache holds no large sums beside A and B, and DRAM takes long.
 * `is_t4_row`: the code is a T4's, from the columns of ON_T4; `t4_blocks`: the first of the column PER_SM.
 */
#define HGEMM_IS_LARGE(block_m, block_n) ((block_m) * (block_n) >= 128 * 128)
#define HGEMM_KEEPS_OWN(is_t4_row, t4_blocks, block_m, block_n, sum_bytes)                     \
    ((is_t4_row) ? (t4_blocks) == 1 || ((block_m) * (block_n) >= 64 * 128 && (sum_bytes) == 4) \
                 : (sum_bytes) == 2 && (block_m) * (block_n) * (sum_bytes) >= 128 << 10)

#endif
