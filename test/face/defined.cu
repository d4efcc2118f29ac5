// SPDX-License-Identifier: MIT
/*
 * defined.cu - values that nobody wrote: programs that load some and never use them, which are right, and with an argument
 * one that uses some. To be run by `turing exec --check`; built optimised, for a debugger, and linked.
 */
#include "want.h"

#include <cstring>
#include <cuda_fp16.h>

enum { N = 64 };

struct record { char tag; int value; };
struct wide { double value; char tag; };
struct fields { unsigned low : 5, middle : 11, high : 16; };

/* ---- right ---- */

__global__ void copy_padding(record *a, record *b, int *o)
{
    const int t = threadIdx.x;
    a[t].tag = (char)(t & 31), a[t].value = 3 * t;
    __syncthreads();
    memcpy(&b[t], &a[N - 1 - t], sizeof *a);
    o[t] = b[t].tag + b[t].value;
}
__global__ void copy_padding_widely(int *o)
{
    __shared__ __align__(16) wide s[N];
    const int t = threadIdx.x;
    wide x;
    s[t].value = t, s[t].tag = (char)(t & 7);
    __syncthreads();
    *(int4 *)&x = *(const int4 *)&s[t ^ 1];
    o[t] = (int)x.value + x.tag;
}
__global__ void bit_fields(fields *g, int *o)
{
    const int t = threadIdx.x;
    g[t].low = t, g[t].middle = t, g[t].high = 1;
    o[t] = g[t].low + g[t].middle + g[t].high;
}
__global__ void widened(const float *x, float *o, int n)
{
    const int i = 4 * threadIdx.x;
    const float4 v = *(const float4 *)(x + i);
    const float a[4] = {v.x, v.y, v.z, v.w};
    for (int k = 0; k < 4; k++)
        if (i + k < n)
            o[i + k] = 2 * a[k];
}
__global__ void add_halves(__half *h) { atomicAdd(h + threadIdx.x % 3, __float2half(1)); }
__global__ void swap_halves(unsigned short *h)
{
    unsigned short *p = h + threadIdx.x % 3, seen = *(volatile unsigned short *)p, old;
    do
        old = seen;
    while ((seen = atomicCAS(p, old, (unsigned short)(old + 1))) != old);
}
struct source {
    int left, data[8];
    __device__ virtual bool take(int &value)
    {
        const int i = atomicSub(&left, 1) - 1;
        if (i < 0)
            return false;
        value = data[i];
        return true;
    }
};
__device__ source *shared_source;
__global__ void make_source()
{
    shared_source = new source;
    shared_source->left = 2;
    shared_source->data[0] = shared_source->data[1] = 5;
}
__global__ void speculate(int *o)
{
    int v;
    o[threadIdx.x] = shared_source->take(v) ? v : -1;
}
__global__ void dropped_shuffle(int *o)
{
    const int t = threadIdx.x;
    if (t < 20) {
        int v = t;
        for (int k = 16; k; k /= 2) {
            const int other = __shfl_down_sync(0xfffff, v, k);
            if (t + k < 20)
                v += other;
        }
        if (!t)
            *o = v;
    }
}
__global__ void divide(const long long *x, long long *o)
{
    const int t = threadIdx.x;
    o[t] = x[t] / (t + 3) + x[t] % (t + 7);
}
__global__ void found(const int *x, int *flag)
{
    if (x[blockIdx.x * N + threadIdx.x] == 7)
        *flag = 1; /* by many */
}

/* ---- with a fault ---- */

__global__ void decides(const int *x)
{
    if (x[threadIdx.x] == 77)
        __trap();
}
__global__ void addresses(const int *x, int *o) { o[x[threadIdx.x] & 31] = 1; }
__global__ void stores(int *o)
{
    __shared__ int s[N];
    if (threadIdx.x != 9)
        s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    o[threadIdx.x] = s[N - 1 - threadIdx.x];
}
__global__ void computes(const unsigned char *x, unsigned char *o)
{
    o[threadIdx.x] = (unsigned char)(x[threadIdx.x] + 1);
}
__global__ void counts(int *c) { atomicAdd(c, 1); }
__global__ void shuffles(int *o)
{
    int v = threadIdx.x;
    if (threadIdx.x < 16)
        v = __shfl_sync(0xffff, v, 20);
    o[threadIdx.x] = v;
}

static char *fresh(size_t bytes)
{
    char *p = NULL;
    OK(cudaMalloc(&p, bytes));
    return p;
}

static void right()
{
    int h[4 * N], seven[N];
    int *o = (int *)fresh(sizeof h);
#define GET(n) OK(cudaMemcpy(h, o, (n) * sizeof *h, cudaMemcpyDeviceToHost))
    copy_padding<<<1, N>>>((record *)fresh(N * sizeof(record)), (record *)fresh(N * sizeof(record)), o);
    GET(N);
    WANT(h[1] == (62 & 31) + 3 * 62);
    copy_padding_widely<<<1, N>>>(o);
    GET(N);
    WANT(h[5] == 4 + 4);
    bit_fields<<<1, N>>>((fields *)fresh(N * sizeof(fields)), o);
    GET(N);
    WANT(h[33] == 1 + 33 + 1);

    float x[10], *few = (float *)fresh(N * sizeof *few);
    for (int i = 0; i < 10; i++)
        x[i] = (float)i;
    OK(cudaMemcpy(few, x, sizeof x, cudaMemcpyHostToDevice));
    widened<<<1, 16>>>(few, (float *)o, 10);
    OK(cudaMemcpy(x, o, sizeof x, cudaMemcpyDeviceToHost));
    WANT(x[9] == 18);

    unsigned short *halves = (unsigned short *)fresh(6), back[3];
    OK(cudaMemset(halves, 0, 6));
    add_halves<<<1, 96>>>((__half *)halves);
    OK(cudaMemcpy(back, halves, 6, cudaMemcpyDeviceToHost));
    WANT(back[2] == 0x5000); /* 32 */
    swap_halves<<<1, 96>>>(halves);
    OK(cudaMemcpy(back, halves, 6, cudaMemcpyDeviceToHost));
    WANT(back[2] == 0x5020);

    make_source<<<1, 1>>>();
    speculate<<<1, 32>>>(o);
    GET(32);
    int fives = 0;
    for (int i = 0; i < 32; i++)
        fives += h[i] == 5;
    WANT(fives == 2);
    dropped_shuffle<<<1, 32>>>(o);
    GET(1);
    WANT(h[0] == 190);

    long long in[N], out[N], *wide_in = (long long *)fresh(sizeof in), *wide_out = (long long *)fresh(sizeof out);
    for (int i = 0; i < N; i++)
        in[i] = (long long)i * 1234567890123 - 99, seven[i] = 7;
    OK(cudaMemcpy(wide_in, in, sizeof in, cudaMemcpyHostToDevice));
    divide<<<1, N>>>(wide_in, wide_out);
    OK(cudaMemcpy(out, wide_out, sizeof out, cudaMemcpyDeviceToHost));
    WANT(out[50] == in[50] / 53 + in[50] % 57);
    OK(cudaMemcpy(o, seven, sizeof seven, cudaMemcpyHostToDevice));
    OK(cudaMemset(o + N, 0, 4));
    found<<<1, N>>>(o, o + N);
    OK(cudaMemcpy(h, o + N, 4, cudaMemcpyDeviceToHost));
    WANT(h[0] == 1);
}

int main(int argc, char **argv)
{
    const char *fault = argc > 1 ? argv[1] : "";
    int h[N], *o = (int *)fresh(sizeof h), *unwritten = (int *)fresh(sizeof h);
    OK(cudaMemset(o, 0, sizeof h));
    if (!*fault)
        right();
#define FAULT(name, ...) if (!strcmp(fault, #name)) __VA_ARGS__
    FAULT(decides, decides<<<1, N>>>(unwritten));
    FAULT(addresses, addresses<<<1, N>>>(unwritten, o));
    FAULT(stores, stores<<<1, N>>>(o));
    FAULT(computes, computes<<<1, N>>>((unsigned char *)unwritten, (unsigned char *)o));
    FAULT(counts, counts<<<1, N>>>(o = unwritten));
    FAULT(shuffles, shuffles<<<1, 32>>>(o));
    cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost); /* whatever it returns */
    return *fault ? 0 : report();
}
