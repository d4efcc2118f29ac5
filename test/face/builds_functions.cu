// SPDX-License-Identifier: MIT
// The device functions of builds.cu.
#include "builds_functions.cuh"

namespace
{
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
    __device__ int corners(int more) const override { return 4 + more; }
};

struct Circle : Shape, Named { // Named's functions are called with another `this`
    float radius;
    __device__ explicit Circle(float r) : radius(r) { name = 77; }
    __device__ float area() const override { return 3 * radius * radius; }
    __device__ int tag() const override { return name + (int)radius; }
    __device__ int corners(int more) const override { return ((const Named *)this)->tag() + more; }
};

struct Hexagon : Square {
    __device__ explicit Hexagon(float s) : Square(s) {}
    __device__ float area() const override
    {
        float t[12], sum = 0;
        for (int i = 0; i < 12; i++)
            t[i] = Square::area() + i * side;
        for (int i = 0; i < 12; i++)
            sum += t[i] * t[11 - i] + sqrtf(t[i]);
        return sum;
    }
};

__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ const binary_t table[3] = {add, subtract, multiply};
}

__device__ __noinline__ Shape *make_shape(int kind, float size)
{
    return kind == 0 ? (Shape *)new Square(size) : kind == 1 ? (Shape *)new Circle(size) : (Shape *)new Hexagon(size);
}

__device__ __noinline__ binary_t binary_of(int kind) { return table[kind]; }

__device__ __noinline__ int few_registers(int x) { return x + 1; }

__device__ __noinline__ float many_registers(const float *p, int n)
{
    float a[24], s = 0;
    for (int i = 0; i < 24; i++)
        a[i] = p[i] * n;
    for (int i = 0; i < 24; i++)
        s += a[i] * a[23 - i] + sqrtf(a[i]);
    return s;
}

__device__ __noinline__ float with_constant(float x)
{
    float half;
    asm("cvt.f32.f16 %0, %1;" : "=f"(half) : "h"((unsigned short)0x3800));
    return x + half;
}

__device__ __noinline__ float with_texture(cudaTextureObject_t from, int at) { return tex1Dfetch<float>(from, at); }

__device__ __noinline__ unsigned choose(unsigned kind, const unsigned *from)
{
    unsigned a = 1;
    switch (kind) {
    case 0: a = from[0] * 3; break;
    case 1: a = from[1] ^ 0x1234; break;
    case 2: a = from[2] >> 3; break;
    case 3: a = from[3] + from[0]; break;
    case 4: a = from[4] & 0xff00; break;
    case 5: a = from[5] - from[1]; break;
    case 6: a = from[6] * from[6]; break;
    case 7: a = ~from[7]; break;
    case 8: a = from[0] | from[7]; break;
    case 9: return 99;
    case 10: a = from[2] + 7; break;
    case 11: a = from[3] << 5; break;
    }
    return a * 7 + 1;
}

__device__ __noinline__ int descend(int depth, volatile int *p)
{
    volatile int a[64];
    a[depth & 63] = depth;
    return depth == 0 ? 0 : descend(depth - 1, p) + a[depth & 63] + p[0];
}
