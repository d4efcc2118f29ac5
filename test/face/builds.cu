// SPDX-License-Identifier: MIT
/*
 * builds.cu - what differs between builds of one program (-O3, -G, -rdc=true, both): functions of a file beside kernels of
 * fewer registers, without their constants and without textures, jump tables, virtual functions, functions by pointers,
 * stacks, parameters. To be run by `turing exec`.
 */
#include "builds_functions.cuh"
#ifndef __CUDACC_RDC__
#include "builds_functions.cu"
#endif

#include "want.h"

#include <vector>

__global__ void small(int *o) { o[threadIdx.x] = few_registers(threadIdx.x); }
__global__ void large(const float *p, float *o) { o[threadIdx.x] = many_registers(p, threadIdx.x + 1); }

__global__ void add_half(float *p) { p[threadIdx.x] = with_constant(p[threadIdx.x]); }
__global__ void fetch(int *o, cudaTextureObject_t from, int at) { o[threadIdx.x] = at < 0 ? 5 : (int)with_texture(from, at); }

__global__ void switches(const unsigned *from, unsigned *o)
{
    unsigned kind = threadIdx.x % 14, a;
    switch (from[8 + threadIdx.x] % 8) { // another table, in the kernel itself
    case 0: a = 5; break;
    case 1: a = from[1] * 5; break;
    case 2: a = from[2] - 5; break;
    case 3: a = from[3] ^ 5; break;
    case 4: a = from[4] << 5; break;
    case 5: a = from[5] & 5; break;
    case 6: a = from[6] | 5; break;
    default: a = from[7] / 5; break;
    }
    o[threadIdx.x] = a + choose(kind, from);
}

static unsigned switches_of(const unsigned *from, unsigned thread)
{
    const unsigned kind = thread % 14;
    const unsigned first[8] = {5, from[1] * 5, from[2] - 5, from[3] ^ 5, from[4] << 5, from[5] & 5, from[6] | 5, from[7] / 5};
    const unsigned second[14] = {from[0] * 3, from[1] ^ 0x1234, from[2] >> 3, from[3] + from[0], from[4] & 0xff00,
                                 from[5] - from[1], from[6] * from[6], ~from[7], from[0] | from[7], 0, from[2] + 7,
                                 from[3] << 5, 1, 1};
    return first[from[8 + thread] % 8] + (kind == 9 ? 99 : second[kind] * 7 + 1);
}

__global__ void construct(Shape **shapes, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        shapes[i] = make_shape(i % 3, 1 + i);
}
__global__ void call(Shape *const *shapes, float *areas, int *corners, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        areas[i] = shapes[i]->area();
        corners[i] = shapes[i]->corners(i);
    }
}
__global__ void destroy(Shape **shapes, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        delete shapes[i];
}
__global__ void by_pointer(int *o) { o[threadIdx.x] = binary_of(threadIdx.x % 3)(threadIdx.x, 7); }

__global__ void recurse(int depth, int *p) { p[1 + threadIdx.x] = descend(depth, p); }

struct fields_t { // of a size that the host chooses
    int at[8189]; // with the pointer before it 32,764 bytes, the most that there are
};
struct half_t {
    int at[1024];
};
template <class P> __global__ void sum(unsigned *o, __grid_constant__ const P p)
{
    unsigned s = 0;
    for (unsigned i = threadIdx.x; i < sizeof p.at / sizeof *p.at; i += 32) // by an index, and the last one by a constant
        s += (unsigned)p.at[i] * (i + 1);
    atomicAdd(o, s + (threadIdx.x ? 0 : p.at[sizeof p.at / sizeof *p.at - 1]));
}

template <class P> static void parameters(unsigned *managed)
{
    P *p = new P;
    const unsigned n = sizeof p->at / sizeof *p->at;
    unsigned want = 0;
    for (unsigned i = 0; i < n; i++) {
        p->at[i] = (int)(i * 2654435761u >> 20);
        want += (unsigned)p->at[i] * (i + 1);
    }
    want += p->at[n - 1];
    *managed = 0;
    sum<P><<<1, 32>>>(managed, *p);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    WANT(*managed == want);
    delete p;
}

static float hexagon(float side)
{
    float t[12], s = 0;
    for (int i = 0; i < 12; i++)
        t[i] = side * side + i * side;
    for (int i = 0; i < 12; i++)
        s += t[i] * t[11 - i] + sqrtf(t[i]);
    return s;
}

static void stacks(int *p)
{
    enum { DEPTH = 100 };
    size_t bytes = 0;
    OK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
    WANT(bytes == 1024);
    p[0] = 0;
    recurse<<<1, 32>>>(1, p); // for which that is enough
    OK(cudaDeviceSynchronize());
    WANT(p[1] == 1 && p[32] == 1);
    recurse<<<1, 32>>>(DEPTH, p);
    IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    OK(cudaDeviceReset());
    IS(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitStackSize, (512 << 10) + 1));
    IS(cudaErrorMemoryAllocation, cudaDeviceSetLimit(cudaLimitStackSize, 512 << 10)); // for all threads of a T4
    OK(cudaDeviceSetLimit(cudaLimitStackSize, (64 << 10) - 3));
    OK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
    WANT(bytes == 64 << 10);
    for (int i = 0; i < 2; i++) { // the second block finds what the first one left
        recurse<<<2, 64>>>(DEPTH, p);
        OK(cudaDeviceSynchronize());
        for (int t = 0; t < 64; t++)
            WANT(p[1 + t] == DEPTH * (DEPTH + 1) / 2);
    }
}

// Where a function has a section of its own, a kernel is launched that only may come to a texture.
static void textures(int *p)
{
#if defined(__CUDACC_RDC__) || defined(__CUDACC_DEBUG__)
    fetch<<<1, 32>>>(p, 0, -1);
    OK(cudaDeviceSynchronize());
    WANT(p[0] == 5 && p[31] == 5);
    fetch<<<1, 32>>>(p, 0, 1);
    IS(cudaErrorIllegalInstruction, cudaDeviceSynchronize());
#else
    fetch<<<1, 32>>>(p, 0, -1);
    WANT(cudaGetLastError() == cudaErrorNotSupported);
#endif
}

int main()
{
    enum { N = 66 };
    int *p;
    OK(cudaMallocManaged(&p, 4096));
    small<<<1, 32>>>(p);
    OK(cudaDeviceSynchronize());
    WANT(p[0] == 1 && p[31] == 32);
    float *f = (float *)p;
    for (int i = 0; i < 24; i++)
        f[i] = 4;
    large<<<1, 32>>>(f, f + 32);
    OK(cudaDeviceSynchronize());
    WANT(f[32] == 24 * (16 + 2) && f[35] == 24 * (256 + 4));

    f[31] = -2;
    add_half<<<1, 32>>>(f);
    OK(cudaDeviceSynchronize());
    WANT(f[0] == 4.5f && f[31] == -1.5f);

    unsigned *u;
    OK(cudaMallocManaged(&u, 4096));
    for (int i = 0; i < 8 + 64; i++)
        u[i] = i * 2654435761u >> (i % 9);
    switches<<<1, 64>>>(u, u + 128);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        WANT(u[128 + i] == switches_of(u, i));

    Shape **shapes;
    float *areas;
    int *corners;
    OK(cudaMalloc(&shapes, N * sizeof *shapes));
    OK(cudaMallocManaged(&areas, N * sizeof *areas));
    OK(cudaMallocManaged(&corners, N * sizeof *corners));
    construct<<<1, 32>>>(shapes, N);
    call<<<1, 64>>>(shapes, areas, corners, N);
    destroy<<<1, 32>>>(shapes, N);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) {
        const float size = 1 + i, want = i % 3 == 0 ? size * size : i % 3 == 1 ? 3 * size * size : hexagon(size);
        WANT(fabsf(areas[i] - want) <= 1e-5f * want && corners[i] == (i % 3 == 1 ? 77 + 1 + i : 4) + i);
    }
    by_pointer<<<1, 32>>>(p);
    OK(cudaDeviceSynchronize());
    WANT(p[30] == 37 && p[31] == 24 && p[29] == 203);

    parameters<half_t>(u); // 4104 bytes
    parameters<fields_t>(u);
    stacks(p);
    textures(p);
    return report();
}
