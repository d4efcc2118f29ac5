/* SPDX-License-Identifier: MIT */
/*
 * A k-tile of A or B in shared memory: always of halves, whatever it was made of.
 *
 * Both operands are treated alike. Let x be the dimension that an operand shares with D (m for A, n for B). A k-tile of it
 * is X x BK, and is either k-contiguous (a row in memory runs along k, there is one for each x) or x-contiguous (a row
 * runs along x, there is one for each k). Shared memory keeps this orientation: rows of chunks of 8 halves.
 */
#pragma once
#include "insn.cuh"

constexpr int HALF_BYTES = 2;

template <int X, int BK, bool K_CONTIGUOUS> struct shared_tile {
    static constexpr int ROWS = K_CONTIGUOUS ? X : BK, COLS = K_CONTIGUOUS ? BK : X;
    static constexpr int BYTES = X * BK * HALF_BYTES;
    static constexpr int ROW_CHUNKS = COLS / 8;
    static_assert(BYTES % 128 == 0, "the tile that follows does not begin at a line");

    /*
     * Byte offset in shared memory of chunk c of a row. Shared memory serves 128 bytes, all 32 banks, at a
     * time. Call that a line: 8 chunks that are accessed together must lie in 8 different columns of lines.
     * ldmatrix reads the same chunk of 8 consecutive rows; swizzled, the chunks of a row are permuted by an XOR
     * with the number of its line, which spreads these 8 over all columns:
     *
     *     rows of 128 bytes or more      rows of 64 bytes: two in a line
     *     row 0   0 1 2 3 4 5 6 7        rows 0,1   0 1 2 3  0 1 2 3
     *     row 1   1 0 3 2 5 4 7 6        rows 2,3   1 0 3 2  1 0 3 2
     *     row 2   2 3 0 1 6 7 4 5        rows 4,5   2 3 0 1  2 3 0 1
     *     ...                            rows 6,7   3 2 1 0  3 2 1 0
     *
     * This is free of bank conflicts for ldmatrix, and for 16-byte stores by consecutive threads. Unswizzled,
     * ldmatrix takes 8 or 4 wavefronts instead of one.
     */
    static constexpr u32 LINE_ROWS = ROW_CHUNKS >= 8 ? 1 : 8 / ROW_CHUNKS, PHASES = ROW_CHUNKS >= 8 ? 8 : ROW_CHUNKS;
    static DEVICE u32 phase(u32 row) { return row / LINE_ROWS % PHASES; }
    static DEVICE u32 offset(u32 row, u32 c) { return row * (COLS * HALF_BYTES) + ((c ^ phase(row)) << 4); }

    /* Shared memory: the row that a lane passes to the j-th ldmatrix of slice kk (8 k's) of a warp tile that begins
     * at x = first: four 8x8 matrices, which cover 32 x's. Lanes 8 i to 8 i + 7 name the rows of matrix i. Split in
     * the same way. */
    static DEVICE u32 fragment_offset(u32 first, u32 lane, int j, int kk)
    {
        return K_CONTIGUOUS ? offset(first + j * 32 + lane, kk)
                            : offset(kk * 8 + lane % 8, first / 8 + j * 4 + lane / 8);
    }
    static DEVICE u32 fragment_xor(int j, int kk) { return K_CONTIGUOUS ? kk << 4 : (j & 1) << 6; }
    static DEVICE u32 fragment_add(int j, int kk)
    {
        return K_CONTIGUOUS ? j * 32 * COLS * HALF_BYTES : (j >> 1) * 128 + kk * 8 * COLS * HALF_BYTES;
    }

    /* The same of four matrices that cover 16 x's and 16 k's: of two slices, from kk on, those at x = first + 16 i. Matrices
     * 0 and 1 are of the first slice. */
    static DEVICE u32 square_offset(u32 first, u32 lane, int i, int kk)
    {
        return K_CONTIGUOUS ? offset(first + i * 16 + lane % 16, kk + lane / 16)
                            : offset(kk * 8 + lane / 16 * 8 + lane % 8, first / 8 + i * 2 + lane / 8 % 2);
    }
    static DEVICE u32 square_xor(int i) { return K_CONTIGUOUS ? 0 : (i % 4) << 5; }
    static DEVICE u32 square_add(int i) { return K_CONTIGUOUS ? i * 16 * COLS * HALF_BYTES : (i >> 2) * 128; }

    /* Four or two matrices of a fragment: mma wants k-contiguous pairs, so x-contiguous operands are transposed. */
    static DEVICE void matrices(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x4(r0, r1, r2, r3, address);
        else ldmatrix_x4_trans(r0, r1, r2, r3, address);
    }
    static DEVICE void matrices(u32 &r0, u32 &r1, u32 address)
    {
        if (K_CONTIGUOUS) ldmatrix_x2(r0, r1, address);
        else ldmatrix_x2_trans(r0, r1, address);
    }
};
