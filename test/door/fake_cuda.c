/* SPDX-License-Identifier: MIT */
/* The driver that hgemm's tests have, with what the door asks besides: for the door as programs load it. Kernels do
 * nothing, and are counted. */
#define cuLaunchKernel launch_of_a_test /* it takes any parameters for those of a GEMM */
#include "../fake_cuda/libcuda.c"
#undef cuLaunchKernel

EXPORT fake_cuda_t fake_cuda = {.version = 13000, .devices = 1, .capability = {75}};

EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                          unsigned threads_z, unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    (void)function, (void)x, (void)y, (void)z, (void)threads, (void)threads_y, (void)threads_z;
    (void)shared_bytes, (void)stream, (void)parameters, (void)extra;
    fake_cuda.launches++;
    return result_in_context("cuLaunchKernel");
}

EXPORT int cuCtxSetCurrent(void *context)
{
    contexts[fake_cuda.depth++] = context;
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = fake_cuda.depth ? contexts[fake_cuda.depth - 1] : NULL;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
    *device = 100;
    return 0;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0, *active = fake_cuda.retains > 0;
    return 0;
}

EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return 0;
}
