/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include "abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* X(name here, exported symbol, whether the door needs it, parameters) */
#define DRIVER_FUNCTIONS(X)                                                     \
    X(context_current, "cuCtxGetCurrent", 1, (void **))                         \
    X(context_device, "cuCtxGetDevice", 1, (int *))                             \
    X(device_count, "cuDeviceGetCount", 1, (int *))                             \
    X(device_get, "cuDeviceGet", 1, (int *, int))                               \
    X(device_attribute, "cuDeviceGetAttribute", 1, (int *, int, int))           \
    X(primary_state, "cuDevicePrimaryCtxGetState", 1, (int, unsigned *, int *)) \
    X(primary_retain, "cuDevicePrimaryCtxRetain", 1, (void **, int))            \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", 1, (int))                \
    X(stream_is_capturing, "cuStreamIsCapturing", 1, (void *, int *))           \
    X(stream_id, "cuStreamGetId", 0, (void *, unsigned long long *))

typedef struct driver_t {
#define X(name, symbol, needed, parameters) int(*name) parameters;
    DRIVER_FUNCTIONS(X)
#undef X
} driver_t;

typedef enum state_t { UNKNOWN, USABLE, TOO_OLD } state_t;

static state_t load(driver_t *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int complete = 1;
    if (!library)
        return UNKNOWN;
#define X(name, symbol, needed, parameters)              \
    {                                                    \
        void *address = dlsym(library, symbol);          \
        memcpy(&driver->name, &address, sizeof address); \
        complete &= address || !(needed);                \
    }
    DRIVER_FUNCTIONS(X)
#undef X
    return complete ? USABLE : TOO_OLD;
}

static driver_t loaded;
static atomic_int state; /* state_t */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The driver, NULL while the program has not loaded it. */
static const driver_t *find_driver(void)
{
    if (atomic_load_explicit(&state, memory_order_acquire) == UNKNOWN) {
        pthread_mutex_lock(&lock);
        if (atomic_load_explicit(&state, memory_order_relaxed) == UNKNOWN)
            atomic_store_explicit(&state, load(&loaded), memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    return atomic_load_explicit(&state, memory_order_acquire) == USABLE ? &loaded : NULL;
}

void driver_renew_lock(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void *driver_context(void)
{
    const driver_t *driver = find_driver();
    void *context = NULL;
    return driver && driver->context_current(&context) == 0 ? context : NULL;
}

static int is_primary(const driver_t *driver, int device)
{
    void *current = NULL, *primary = NULL;
    unsigned flags;
    int active = 0;
    if (driver->primary_state(device, &flags, &active) != 0 || !active || driver->context_current(&current) != 0 ||
        driver->primary_retain(&primary, device) != 0)
        return 0;
    driver->primary_release(device);
    return current == primary;
}

int driver_device(driver_device_t *found)
{
    const driver_t *driver = find_driver();
    int device, count, major, minor;
    if (!driver || driver->context_device(&device) != 0 || driver->device_count(&count) != 0 ||
        driver->device_attribute(&major, CUDA_COMPUTE_CAPABILITY_MAJOR, device) != 0 ||
        driver->device_attribute(&minor, CUDA_COMPUTE_CAPABILITY_MINOR, device) != 0)
        return 0;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        int candidate;
        if (driver->device_get(&candidate, ordinal) == 0 && candidate == device) {
            *found = (driver_device_t){ordinal, 10 * major + minor, is_primary(driver, device)};
            return 1;
        }
    }
    return 0;
}

driver_capture_t driver_capture(void *stream)
{
    const driver_t *driver = find_driver();
    int status;
    if (!driver || driver->stream_is_capturing(stream, &status) != 0)
        return DRIVER_UNKNOWN;
    return status == CUDA_CAPTURE_STATUS_NONE     ? DRIVER_NOT_CAPTURING
           : status == CUDA_CAPTURE_STATUS_ACTIVE ? DRIVER_CAPTURING
                                                  : DRIVER_UNKNOWN;
}

int driver_stream_id(void *stream, uint64_t *id)
{
    const driver_t *driver = find_driver();
    unsigned long long number;
    if (!driver)
        return 0;
    if (driver->stream_id) {
        if (driver->stream_id(stream, &number) != 0)
            return 0;
        *id = number;
        return 1;
    }
    *id = 0;
    return stream == NULL || stream == CUDA_STREAM_LEGACY;
}
