/* SPDX-License-Identifier: MIT */
/* hmma.h - HMMA.1688 on a register file of 32-lane rows (inside the library). */
#ifndef TURING_HMMA_H
#define TURING_HMMA_H

#include "launch.h"

/*
 * Rows are 32 words, one per lane; an operand's registers are consecutive rows.
 * With lane = 4 g + t a row of packed halves holds element (g, 2t) low and
 * (g, 2t+1) high, so that its 128 bytes are an 8x8 row-major matrix of halves:
 *   a   2 rows   A[0..7], A[8..15]                         (16x8, by k)
 *   b   1 row    B transposed: row n holds B[0..7][n]
 *   c,d 2 rows   halves, laid out as A is (by n)
 *       4 rows   floats: row 2h + q, lane 4 g + t is element (8h + g, 2t + q)
 * d may be any of the others.  `fraction` is 24 or 25.
 */
typedef void turing_hmma_fn(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                            const uint32_t (*c)[32], uint32_t (*d)[32]);

static inline int turing_tensor_fraction(turing_tensor_t tensor)
{
    return tensor == TURING_TENSOR_HOPPER ? 25 : 24;
}

turing_hmma_fn turing_hmma_portable;
/* NULL where the build or the CPU lacks them. */
turing_hmma_fn *turing_hmma_avx2(void);
turing_hmma_fn *turing_hmma_avx512(void);
turing_hmma_fn *turing_hmma_best(void);

#endif
