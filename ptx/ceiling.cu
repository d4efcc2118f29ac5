/* SPDX-License-Identifier: MIT */
/*
 * ceiling: how fast mma.m16n8k8 can go. Not a kernel of the library: the benchmark measures it
 * beside the kernels, because it varies with power and clocks from minute to minute.
 *
 * A warp computes an outer product of MT x NT mma tiles, as the inner loop of a GEMM does, and
 * accesses no memory between the first and the last mma. Operands are random halves from `args.in`,
 * for constant ones would toggle fewer bits and draw less power. Every product is added again later
 * with the opposite sign, so that sums stay small however long the kernel runs.
 *
 * 256 threads, one block per multiprocessor. `in` holds (4 * MT + 2 * NT) * 256 words, `out` a word
 * per thread of the grid. One iteration is 4 * MT * NT mma per warp, 2048 operations each.
 */
#include "insn.cuh"

#if CEILING_SUMS == 32
typedef float sums[4];
enum { MT = 4, NT = 8 };
#else
typedef u32 sums[2];
enum { MT = 8, NT = 8 };
#endif

struct ceiling_args {
    const u32 *in;
    u32 *out;
    int iterations;
};

extern "C" __global__ void __launch_bounds__(256, 1) HGEMM_VARIANT(const ceiling_args args)
{
    u32 a[2][MT][2], b[4][NT];
    sums acc[MT][NT] = {};
    const u32 *p = args.in + thread_index();

#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
        for (int i = 0; i < MT; ++i) {
            a[s][i][0] = *p, p += 256;
            a[s][i][1] = *p, p += 256;
        }
#pragma unroll
        for (int j = 0; j < NT; ++j) {
            b[s][j] = *p, p += 256;
            b[s + 2][j] = b[s][j] ^ 0x80008000u;
        }
    }

#pragma unroll 1
    for (int t = 0; t < args.iterations; ++t)
#pragma unroll
        for (int s = 0; s < 4; ++s)
#pragma unroll
            for (int i = 0; i < MT; ++i)
#pragma unroll
                for (int j = 0; j < NT; ++j) {
                    const int turn = i % 2 ? NT - 1 - j : j; /* there and back: neighbours share an operand */
                    mma_m16n8k8(acc[i][turn], a[s % 2][i], b[s][turn]);
                }

    float total = 0;
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (auto x : acc[i][j]) total += (float)x;
    args.out[block_index() * 256 + thread_index()] = __float_as_uint(total);
}
