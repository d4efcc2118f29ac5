/* SPDX-License-Identifier: MIT */
/* More live values than 64 registers hold: the build must refuse it. */
extern "C" __global__ void __launch_bounds__(1024, 1) HGEMM_VARIANT(float *a)
{
    float v[160];
#pragma unroll
    for (int i = 0; i < 160; ++i) v[i] = a[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 160; ++i) a[(159 - i) * 1024 + threadIdx.x] = v[i] * v[i * 7 % 160];
}
