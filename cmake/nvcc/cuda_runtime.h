/* SPDX-License-Identifier: MIT */
/*
 * What ptx/ uses of the CUDA toolkit's header of this name, which nvcc includes on its own before every source. The
 * toolkit's takes a quarter of a variant's compile time to read, this one nothing: it stands first among the folders that are
 * searched (cmake/kernels.cmake). A name that nvcc does not find is missing here: declare it as the toolkit does.
 */
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define BUILTIN extern "C" __device__ __attribute__((device_builtin))
BUILTIN unsigned __float_as_uint(float);
BUILTIN int __float_as_int(float);
BUILTIN float __uint_as_float(unsigned);
BUILTIN float __int_as_float(int);
BUILTIN float __fadd_rn(float, float);
BUILTIN float __fmul_rn(float, float);
BUILTIN float __fmaf_rn(float, float, float);
BUILTIN float fabsf(float);
BUILTIN float fminf(float, float);
BUILTIN float fmaxf(float, float);
BUILTIN int __clz(int);
BUILTIN int __ffs(int);
BUILTIN int __popc(unsigned);
BUILTIN unsigned __umulhi(unsigned, unsigned);
BUILTIN unsigned __byte_perm(unsigned, unsigned, unsigned);
BUILTIN int min(int, int);
BUILTIN int max(int, int);
BUILTIN unsigned umin(unsigned, unsigned);
BUILTIN unsigned umax(unsigned, unsigned);
#undef BUILTIN

static __device__ __forceinline__ unsigned min(unsigned a, unsigned b) { return umin(a, b); }
static __device__ __forceinline__ unsigned max(unsigned a, unsigned b) { return umax(a, b); }
