/* SPDX-License-Identifier: MIT */
/* turing_apart.cu - compiled with -G, so that functions have sections of their own. */
__device__ __noinline__ int power(int x, int n) { return n ? x * power(x, n - 1) : 1; }
__device__ __noinline__ int twice(int x) { return power(x, 1) * 2; }

extern "C" __global__ void apart(const int *a, int *d) { d[threadIdx.x] = twice(a[threadIdx.x]) + power(a[threadIdx.x], 2); }
extern "C" __global__ void apart_too(const int *a, int *d) { d[threadIdx.x] = power(a[threadIdx.x], 3); }
