/* SPDX-License-Identifier: MIT */
/*
 * A rung of the ladder launched by a program of one's own: change ptx/k1_tiled.cu, or a copy of it, and see what that
 * does. On a machine without a GPU:
 *
 *   nvcc -arch=sm_75 -std=c++17 -O3 -lineinfo -cudart shared -Isrc -o rung examples/rung.cu
 *   turing exec --check --time ./rung
 *
 * -DRUNG='"../ptx/k4_fastindex.cu"' takes another one, up to k4.
 */
#include <cstdio>
#include <cuda_fp16.h>

#ifndef RUNG
#define RUNG "../ptx/k1_tiled.cu"
#endif
#define HGEMM_VARIANT rung /* the kernel's name */
#include RUNG

int main()
{
    const int m = 200, n = 136, k = 72; /* rows of A, B and D are whole chunks of 8 halves */
    __half *a, *b, *d;
    cudaMallocManaged(&a, m * k * sizeof *a);
    cudaMallocManaged(&b, k * n * sizeof *b);
    cudaMallocManaged(&d, m * n * sizeof *d);
    for (int i = 0; i < m * k; i++)
        a[i] = i % 7 - 3;
    for (int i = 0; i < k * n; i++)
        b[i] = i % 5 - 2;

    kernel_args_t args = {};
    args.a = a, args.b = b, args.c = d, args.d = d;
    args.m = m, args.n = n, args.k = k;
    args.lda = k, args.ldb = args.ldc = args.ldd = n;
    args.alpha = 1;
    const int tiles = (m + BM - 1) / BM * ((n + BN - 1) / BN);
    rung<<<tiles, 128, 2 * (BM + BN) * BK * sizeof *a>>>(args); /* shared memory for two k-tiles */
    const cudaError_t error = cudaDeviceSynchronize();

    int wrong = 0;
    for (int i = 0; i < m * n && !error; i++) {
        int sum = 0;
        for (int j = 0; j < k; j++)
            sum += ((i / n * k + j) % 7 - 3) * ((j * n + i % n) % 5 - 2);
        wrong += (float)d[i] != (float)sum;
    }
    printf("%s, %d of %d elements are wrong\n", cudaGetErrorString(error), wrong, m * n);
    return error || wrong;
}
