// SPDX-License-Identifier: MIT
// Functions and classes of builds.cu, which live in a file of their own where device code is linked (-rdc=true).
#pragma once

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
    __device__ virtual int corners(int more) const { return more; }
};

struct Named {
    int name;
    __device__ virtual int tag() const { return name; }
};

__device__ Shape *make_shape(int kind, float size);
__device__ int few_registers(int x);
__device__ float many_registers(const float *p, int n);
__device__ unsigned choose(unsigned kind, const unsigned *from); // a dense switch
__device__ float with_constant(float x);                         // of half precision, with -G in its kernel's bank 2
__device__ float with_texture(cudaTextureObject_t from, int at);
__device__ int descend(int depth, volatile int *p);              // a frame of some 300 bytes for each step

typedef int (*binary_t)(int, int);
__device__ binary_t binary_of(int kind);
