/* SPDX-License-Identifier: MIT */
/*
 * transpose.h - 8x8 matrices of halves in vector registers, a row each, transposed
 * (inside the library).  Three rounds that interleave rows i and i + 4 do it.
 */
#ifndef TURING_TRANSPOSE_H
#define TURING_TRANSPOSE_H

#if defined(__SSE2__)
#include <emmintrin.h>

static inline void emu_interleave_8x8(const __m128i in[8], __m128i out[8])
{
    for (int i = 0; i < 4; i++) {
        out[2 * i] = _mm_unpacklo_epi16(in[i], in[i + 4]);
        out[2 * i + 1] = _mm_unpackhi_epi16(in[i], in[i + 4]);
    }
}

static inline void emu_transpose_8x8(__m128i r[8])
{
    __m128i s[8];
    emu_interleave_8x8(r, s);
    emu_interleave_8x8(s, r);
    emu_interleave_8x8(r, s);
    for (int i = 0; i < 8; i++)
        r[i] = s[i];
}
#endif

#endif
