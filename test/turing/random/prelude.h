/* SPDX-License-Identifier: MIT */
/*
 * prelude.h - what kernels.py's texts are made of, twice: for nvcc, where a function is the GPU's instruction, and for
 * gcc, where it is the host's own arithmetic. A batch of kernels is compiled as both, and the results must be the same
 * bits.
 *
 * NaNs are compared as NaNs, and with FTZ (nvcc -ftz=true) subnormal floats as zeros: every float passes f_bits()
 * before its bits are looked at. What C leaves undefined is defined here as PTX has it.
 */
#ifndef PRELUDE_H
#define PRELUDE_H

#include <stdint.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
#ifdef __CUDACC__
typedef unsigned long long u64; /* what CUDA's functions take */
typedef long long s64;
#else
typedef uint64_t u64;
typedef int64_t s64;
#endif
typedef float f32;
typedef double f64;
typedef u16 h16; /* a half's bits  */
typedef u32 h32; /* two halves'    */

enum {
    BLOCKS = 2,
    THREADS = 64,
    IN_BYTES = 128,
    IN_COUNT = BLOCKS * THREADS,
    OUT_WORDS = 8,
    MEM_BYTES = 128,
    CELLS = 16
};

#ifdef __CUDACC__
#define ALIGNED(n) __align__(n)
#else
#define ALIGNED(n) __attribute__((aligned(n)))
#endif

/* What a thread is given: IN_BYTES, which kernels also read as arrays of other types. */
typedef struct ALIGNED(16) in {
    u64 a, b;
    s64 p, r;
    f64 d, e;
    u32 x, y, z;
    s32 q, m;
    f32 f, g, o;
    h32 v, w;
    u16 h, i;
    s16 j, k;
    h16 s, t;
    u8 c, l;
    s8 n, u;
    u8 more[24];
} in_t;

typedef struct ALIGNED(8) vec2 {
    u32 x, y;
} vec2;
typedef struct ALIGNED(16) vec4 {
    u32 x, y, z, w;
} vec4;

/* What a thread keeps from one phase to the next. */
typedef struct kept {
    u64 a, b;
    u32 x, y;
} kept_t;

/* Parameters: uniform values of every width. */
#define PARAMETERS                                                                                                  \
    u64 *out, const in_t *in, u8 *mem, u64 A, u64 B, s64 P, u32 X, u32 Y, s32 Q, f32 F, f32 G, f64 D, u16 H, s16 J, \
        u8 C, s8 N, h16 S, h32 V

#ifdef __CUDACC__
#include "device.cuh"
#else
#include "host.h"
#endif

FN u32 f_bits(f32 x)
{
    u32 b = raw32(x);
    if ((b & 0x7fffffffu) > 0x7f800000u)
        b = 0x7fc00000u;
#ifdef FTZ
    if ((b & 0x7f800000u) == 0)
        b &= 0x80000000u;
#endif
    return b;
}
FN u64 d_bits(f64 x)
{
    const u64 b = raw64(x);
    return (b & 0x7fffffffffffffffull) > 0x7ff0000000000000ull ? 0x7ff8000000000000ull : b;
}
FN u32 h_bits(h16 x)
{
    return (x & 0x7fffu) > 0x7c00u ? 0x7e00u : x;
}
FN u32 h2_bits(h32 x)
{
    return h_bits((h16)x) | h_bits((h16)(x >> 16)) << 16;
}
#endif
