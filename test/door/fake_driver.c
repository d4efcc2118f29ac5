/* SPDX-License-Identifier: MIT */
/* What the door asks a CUDA driver, answered as a test wants it. One device, 107, of ordinal 1. */
#include "fake.h"

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, DEVICE = 107 };

EXPORT fake_driver_t fake_driver;

static char primary, another;
static int retains;

EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuStreamIsCapturing(void *stream, int *status);
EXPORT int cuStreamGetId(void *stream, unsigned long long *id);

int cuCtxGetCurrent(void **context)
{
    *context = fake_driver.has_no_context ? 0 : fake_driver.another_is_current ? &another : &primary;
    return fake_driver.result;
}

int cuCtxGetDevice(int *device)
{
    *device = DEVICE;
    return fake_driver.has_no_context ? INVALID_CONTEXT : fake_driver.result;
}

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return fake_driver.result;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = DEVICE - 1 + ordinal;
    return ordinal < 2 ? fake_driver.result : INVALID_VALUE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == CUDA_COMPUTE_CAPABILITY_MAJOR ? fake_driver.capability / 10 : fake_driver.capability % 10;
    return device == DEVICE ? fake_driver.result : INVALID_VALUE;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0, *active = 1;
    return device == DEVICE ? fake_driver.result : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &primary;
    retains++;
    return device == DEVICE ? fake_driver.result : INVALID_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device == DEVICE && retains-- > 0 ? fake_driver.result : INVALID_VALUE;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = fake_driver.capture;
    return fake_driver.result;
}

/* The legacy default stream has two names. */
int cuStreamGetId(void *stream, unsigned long long *id)
{
    *id = stream == CUDA_STREAM_LEGACY ? 0 : (unsigned long long)(uintptr_t)stream;
    return fake_driver.result;
}
