// SPDX-License-Identifier: MIT
/*
 * lanes.cu - threads of one warp that meet in memory, and warps that leave a block's barrier out. Without an argument those
 * that are right; with one, a fault. To be run by `turing exec --check`.
 */
#include "want.h"

#include <cooperative_groups.h>
#include <cstring>
#include <mma.h>

enum { N = 64 };

/* ---- right ---- */

__global__ void synced(int *o)
{
    __shared__ int s[N];
    const int t = threadIdx.x;
    s[t] = t;
    __syncwarp();
    o[t] = s[t ^ 1];
}
__global__ void synced_in_halves(int *o)
{
    __shared__ int s[N];
    const int t = threadIdx.x;
    if (t & 16) {
        s[t] = t;
        __syncwarp(0xffff0000);
        o[t] = s[t ^ 1];
    } else {
        s[t] = 2 * t;
        __syncwarp(0x0000ffff);
        o[t] = s[t ^ 3];
    }
}
__global__ void reduce(int *o)
{
    __shared__ int s[32];
    const int t = threadIdx.x;
    int v = t;
    for (int k = 16; k; k /= 2) {
        s[t] = v;
        __syncwarp();
        if (t < k)
            v += s[t + k];
        __syncwarp();
    }
    if (!t)
        *o = v;
}
__global__ void in_tiles(int *o)
{
    __shared__ int s[N];
    const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    o[threadIdx.x] = s[threadIdx.x ^ 7];
}
__global__ void locked(int *lock, int *sum)
{
    for (bool done = false; !done;)
        if (!atomicCAS(lock, 0, 1)) {
            __threadfence();
            *(volatile int *)sum += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
}
__global__ void swaps(int *p)
{
    int seen = *p, old;
    do
        old = seen;
    while ((seen = atomicCAS(p, old, old + 2)) != old);
}
__global__ void ends_early(int *o, int n)
{
    __shared__ int s[N];
    if (threadIdx.x >= n)
        return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    o[threadIdx.x] = s[n - 1 - threadIdx.x];
}

/* ---- with a fault ---- */

__global__ void unsynced(int *o)
{
    __shared__ int s[N];
    const int t = threadIdx.x;
    s[t] = t;
    o[t] = s[t ^ 1];
}
__global__ void overwritten(int *o)
{
    __shared__ int s[N];
    const int t = threadIdx.x;
    s[t] = t;
    __syncwarp();
    const int other = s[t ^ 1];
    s[t] = 2 * other;
    o[t] = other;
}
__global__ void shuffled(int *o)
{
    __shared__ int s[N];
    const int t = threadIdx.x;
    s[t] = t;
    o[t] = __shfl_sync(0xffffffff, t, 3) + s[t ^ 1];
}
__global__ void of_a_matrix(float *o, const half *a)
{
    using namespace nvcuda::wmma;
    __shared__ float s[256];
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, row_major> y;
    fragment<accumulator, 16, 16, 16, float> z;
    load_matrix_sync(x, a, 16);
    load_matrix_sync(y, a, 16);
    fill_fragment(z, 0.0f);
    mma_sync(z, x, y, z);
    store_matrix_sync(s, z, 16, mem_row_major);
    for (int i = threadIdx.x; i < 256; i += 32)
        o[i] = s[i];
}
__global__ void increments(int *c) { *c = *c + 1; }
__global__ void leaves_out(int *o)
{
    if (threadIdx.x < 32)
        __syncthreads();
    o[threadIdx.x] = 2;
}
__global__ void names_those_that_left(int *o)
{
    __shared__ int s[32];
    const int t = threadIdx.x;
    s[t] = t;
    __syncwarp();
    for (int k = 16; t < k; k /= 2) {
        s[t] += s[t + k];
        __syncwarp();
    }
    o[t] = s[t];
}

int main(int argc, char **argv)
{
    const char *fault = argc > 1 ? argv[1] : "";
    int h[N], *o;
    half *a;
    OK(cudaMalloc(&o, 256 * sizeof *o));
    OK(cudaMalloc(&a, 256 * sizeof *a));
    OK(cudaMemset(o, 0, 256 * sizeof *o));
    OK(cudaMemset(a, 0, 256 * sizeof *a));
#define GET() OK(cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost))
    if (!*fault) {
        synced<<<1, N>>>(o);
        GET();
        WANT(h[6] == 7);
        synced_in_halves<<<1, 32>>>(o);
        GET();
        WANT(h[20] == 21 && h[2] == 2);
        reduce<<<1, 32>>>(o);
        in_tiles<<<1, 32>>>(o + 32);
        GET();
        WANT(h[0] == 496 && h[32 + 9] == 14);
        OK(cudaMemset(o, 0, 8));
        locked<<<2, 32>>>(o, o + 1);
        GET();
        WANT(h[1] == 64);
        swaps<<<2, 64>>>(o + 1);
        ends_early<<<1, 96>>>(o + 2, 32);
        GET();
        WANT(h[1] == 320 && h[2] == 31);
    }
#define FAULT(name, ...) if (!strcmp(fault, #name)) name __VA_ARGS__
    FAULT(unsynced, <<<1, 32>>>(o));
    FAULT(overwritten, <<<1, 32>>>(o));
    FAULT(shuffled, <<<1, 32>>>(o));
    FAULT(of_a_matrix, <<<1, 32>>>((float *)o, a));
    FAULT(increments, <<<1, 32>>>(o));
    FAULT(leaves_out, <<<1, 64>>>(o));
    FAULT(names_those_that_left, <<<1, 32>>>(o));
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    OK(strcmp(fault, "") ? cudaSuccess : cudaFree(o));
    OK(strcmp(fault, "") ? cudaSuccess : cudaFree(a));
    return *fault ? 0 : report();
}
