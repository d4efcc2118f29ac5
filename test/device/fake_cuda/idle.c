/* SPDX-License-Identifier: MIT */
/* A T4 whose kernels do nothing, for a program as it is: what it computes there must be refused. */
#define cuLaunchKernel launch_of_a_test /* it takes any parameters for those of a GEMM */
#include "libcuda.c"
#undef cuLaunchKernel

EXPORT fake_cuda_t fake_cuda = {.version = 99000, .devices = 1, .capability = {75}};

EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                          unsigned threads_z, unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    (void)function, (void)x, (void)y, (void)z, (void)threads, (void)threads_y, (void)threads_z;
    (void)shared_bytes, (void)stream, (void)parameters, (void)extra;
    return result_in_context("cuLaunchKernel");
}

EXPORT int cuCtxSetCurrent(void *context)
{
    contexts[fake_cuda.depth++] = context;
    return 0;
}

EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream)
{
    (void)stream;
    FAIL_IF(result_in_context("cuMemcpyDtoDAsync"));
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}
