/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver for tests, found in place of the real one: device memory is host memory, kernels do
 * nothing, and any function can be made to fail. It insists on what the real one insists on: work is
 * done in a current context, only what was made is given back, and no memory is allocated or freed
 * during a capture but by a thread that says it knows what it does.
 */
#include "libcuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_LEFT = 1 << 20 /* bytes: more would only take time */ };
enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, CAPTURE_UNSUPPORTED = 900, CAPTURE_RELAXED = 2, STACK = 16 };

EXPORT fake_cuda_t fake_cuda;

static void *contexts[STACK];

/* The result of a call of that name: 0, or what the test asked for. */
static int result_of(const char *name)
{
    return fake_cuda.failing && strcmp(fake_cuda.failing, name) == 0 ? fake_cuda.result : 0;
}

/* The same for a function that needs a context. */
static int result_in_context(const char *name)
{
    if (fake_cuda.depth == 0 || contexts[fake_cuda.depth - 1] != &fake_cuda)
        return INVALID_CONTEXT;
    return result_of(name);
}

/* The same for a function that would end a capture. */
static int result_in_capture(const char *name)
{
    return fake_cuda.capture_mode == CAPTURE_RELAXED ? result_in_context(name) : CAPTURE_UNSUPPORTED;
}

#define FAIL_IF(result)         \
    do {                        \
        int result_ = (result); \
        if (result_)            \
            return result_;     \
    } while (0)

EXPORT int cuInit(unsigned flags)
{
    return flags ? INVALID_VALUE : result_of("cuInit");
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = fake_cuda.version;
    return result_of("cuDriverGetVersion");
}

EXPORT int cuGetErrorName(int result, const char **name)
{
    *name = result == fake_cuda.result ? "CUDA_ERROR_OF_THE_TEST" : NULL;
    return *name ? 0 : INVALID_VALUE;
}

EXPORT int cuGetErrorString(int result, const char **words)
{
    *words = result == fake_cuda.result ? "words of the test" : NULL;
    return *words ? 0 : INVALID_VALUE;
}

EXPORT int cuDeviceGetCount(int *count)
{
    *count = fake_cuda.devices;
    return result_of("cuDeviceGetCount");
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= fake_cuda.devices)
        return INVALID_VALUE;
    *device = 100 + ordinal; /* a device is not its ordinal */
    return result_of("cuDeviceGet");
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    strncpy(name, "fake GPU 0", (size_t)size);
    name[9] = (char)('0' + device - 100);
    return result_of("cuDeviceGetName");
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (device < 100 || device >= 100 + fake_cuda.devices)
        return INVALID_VALUE;
    int capability = fake_cuda.capability[device - 100];
    *value = attribute == 75   ? capability / 10
             : attribute == 76 ? capability % 10
             : attribute == 16 ? 40
             : attribute == 13 ? 1590000
             : attribute == 38 ? 4 << 20
                               : -1;
    return *value < 0 ? INVALID_VALUE : result_of("cuDeviceGetAttribute");
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)16 << 30;
    return result_of("cuDeviceTotalMem");
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    FAIL_IF(result_of("cuDevicePrimaryCtxRetain"));
    *context = &fake_cuda;
    fake_cuda.retained_device = device;
    fake_cuda.retains++;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (device != fake_cuda.retained_device || fake_cuda.retains == 0)
        return INVALID_VALUE;
    fake_cuda.retains--;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    FAIL_IF(result_of("cuCtxPushCurrent"));
    contexts[fake_cuda.depth++] = context;
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    if (fake_cuda.depth == 0)
        return INVALID_CONTEXT;
    *context = contexts[--fake_cuda.depth];
    return 0;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    FAIL_IF(result_of("cuThreadExchangeStreamCaptureMode"));
    int former = fake_cuda.capture_mode;
    fake_cuda.capture_mode = *mode;
    *mode = former;
    return 0;
}

EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    FAIL_IF(result_in_capture("cuMemAlloc"));
    void *memory = malloc(bytes);
    if (!memory)
        return 2;
    memset(memory, 0x5a, bytes < MOST_LEFT ? bytes : MOST_LEFT); /* what others left there */
    *address = (uintptr_t)memory;
    fake_cuda.allocations++;
    return 0;
}

EXPORT int cuMemFree_v2(unsigned long long address)
{
    FAIL_IF(result_in_capture("cuMemFree"));
    free((void *)(uintptr_t)address);
    fake_cuda.allocations--;
    return 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
    FAIL_IF(result_in_context("cuMemcpyHtoDAsync"));
    memcpy((void *)(uintptr_t)to, from, bytes);
    fake_cuda.copied = stream, fake_cuda.copying = 1;
    return 0;
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    FAIL_IF(result_in_context("cuMemcpyDtoHAsync"));
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    fake_cuda.copied = stream, fake_cuda.copying = 1;
    return 0;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    FAIL_IF(result_in_context("cuStreamSynchronize"));
    if (fake_cuda.copying && stream != fake_cuda.copied)
        return INVALID_VALUE; /* a copy would be waited for on a stream that does not do it */
    fake_cuda.copying = 0;
    fake_cuda.synchronised = stream;
    fake_cuda.synchronisations++;
    return 0;
}

EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    int result = result_in_context("cuModuleLoadDataEx");
    for (unsigned i = 0; i + 1 < count; i++)
        if (result && options[i] == 5 && options[i + 1] == 6) /* the error log and its size */
            strncpy(values[i], "ptxas says no", (size_t)(uintptr_t)values[i + 1]);
    FAIL_IF(result);
    /* All of a fatbin is read, and nothing of it later: the caller may have freed it. */
    const struct {
        unsigned magic;
        unsigned short version, header_bytes;
        unsigned long long bytes;
    } *fatbin = image;
    if ((uintptr_t)image % 8 || fatbin->magic != 0xba55ed50)
        return INVALID_VALUE;
    size_t bytes = fatbin->header_bytes + fatbin->bytes;
    *module = malloc(bytes);
    if (!*module)
        return 2;
    memcpy(*module, image, bytes);
    fake_cuda.modules++;
    return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *symbol)
{
    FAIL_IF(result_in_context("cuModuleGetFunction"));
    *function = module;
    strncpy(fake_cuda.symbol, symbol, sizeof fake_cuda.symbol - 1);
    return 0;
}

EXPORT int cuModuleUnload(void *module)
{
    FAIL_IF(result_in_context("cuModuleUnload"));
    free(module);
    fake_cuda.modules--;
    return 0;
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value)
{
    FAIL_IF(result_in_context("cuFuncSetAttribute"));
    (void)function;
    if (attribute != 8)
        return INVALID_VALUE;
    fake_cuda.shared_bytes = value;
    return 0;
}

EXPORT int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                          unsigned threads_z, unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    FAIL_IF(result_in_context("cuLaunchKernel"));
    if (!function || !x || !y || z != 1 || !threads || threads_y != 1 || threads_z != 1 || !parameters || extra ||
        (int)shared_bytes > fake_cuda.shared_bytes)
        return INVALID_VALUE;
    fake_cuda.launches++;
    fake_cuda.launch_stream = stream;
    memcpy(&fake_cuda.parameters, parameters[0], sizeof fake_cuda.parameters);
    return 0;
}

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    FAIL_IF(result_in_context("cuEventCreate"));
    if (flags)
        return INVALID_VALUE;
    *event = calloc(1, 1);
    fake_cuda.events++;
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    (void)event, (void)stream;
    return result_in_context("cuEventRecord");
}

EXPORT int cuEventSynchronize(void *event)
{
    (void)event;
    return result_in_context("cuEventSynchronize");
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    FAIL_IF(result_in_context("cuEventElapsedTime"));
    *milliseconds = from == to ? 0 : 2.5f;
    return 0;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    FAIL_IF(result_in_context("cuEventDestroy"));
    free(event);
    fake_cuda.events--;
    return 0;
}
