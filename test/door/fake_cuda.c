/* SPDX-License-Identifier: MIT */
/*
 * The driver that hgemm's tests have, with what the door asks besides: for the door and the command hgemm as they are.
 * Kernels do nothing, are counted, and take 2 us each of a time that events tell. FAKE_CAPABILITY, in the environment,
 * is that of the device: 75 is 7.5.
 */
#define cuLaunchKernel launch_of_a_test /* it takes any parameters for those of a GEMM */
#define cuEventCreate event_create_of_a_test
#define cuEventRecord event_record_of_a_test
#define cuEventElapsedTime event_elapsed_of_a_test
#include "../device/fake_cuda/libcuda.c"
#undef cuLaunchKernel
#undef cuEventCreate
#undef cuEventRecord
#undef cuEventElapsedTime

EXPORT fake_cuda_t fake_cuda = {.version = 13000, .devices = 1, .capability = {75}};
EXPORT double fake_microseconds; /* that have passed on the device */

__attribute__((constructor)) static void read_environment(void)
{
    const char *capability = getenv("FAKE_CAPABILITY");
    if (capability)
        fake_cuda.capability[0] = atoi(capability);
}

EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                          unsigned threads_z, unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    (void)function, (void)x, (void)y, (void)z, (void)threads, (void)threads_y, (void)threads_z;
    (void)shared_bytes, (void)stream, (void)parameters, (void)extra;
    fake_cuda.launches++;
    fake_microseconds += 2;
    return result_in_context("cuLaunchKernel");
}

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(double));
    return result_in_context("cuEventCreate");
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    (void)stream;
    *(double *)event = fake_microseconds;
    return result_in_context("cuEventRecord");
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    *milliseconds = (float)((*(double *)to - *(double *)from) / 1000);
    return result_in_context("cuEventElapsedTime");
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
