/* SPDX-License-Identifier: MIT */
/*
 * A real GPU, through the CUDA driver.
 *
 * Work is done in the device's primary context, which the CUDA runtime uses too; it is made
 * current around each call and the caller's is restored. So is the thread's mode of stream capture,
 * which is relaxed around each call: none touches another's streams, but in the other modes to
 * allocate memory, say, ends any capture that runs (CUDA driver API, cuThreadExchangeStreamCaptureMode).
 */
#include "device/cuda_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What handles share ------------------------------------------------------------------------- */

/* A kernel in a GPU's primary context. */
typedef struct loaded_t {
    const image_t *image;
    CUmodule module;
    CUfunction function;
} loaded_t;

/* What the process's handles of a GPU share: whichever needs a kernel first loads it for all, and the last one to close
 * unloads them. A handle for each thread costs no more kernels than one. */
typedef struct shared_t {
    struct shared_t *next;
    CUdevice device;
    int users, count;
    loaded_t *loaded;
} shared_t;

static shared_t *all_shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of it and all that it leads to */

/*
 * CUDA does not work in the child of a process that has used it. There the handles of the parent are dead, and with
 * them all that they share; what a child opens by itself, where the parent has opened nothing, is not. Forks since the
 * process's first ancestor tell them apart.
 */
static unsigned forks;

static void begin_child(void)
{
    forks++;
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* a thread that the child does not have may have held it */
    all_shared = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

typedef struct cuda_t {
    device_t base;
    unsigned forks; /* when it was opened */
    driver_t driver;
    CUdevice device;
    CUcontext context;
    int capture_mode; /* between enter and leave: the caller's */
    shared_t *shared;
} cuda_t;

static cuda_t *cuda_of(device_t *device)
{
    return (cuda_t *)device;
}

/* ---- Calls in the primary context ------------------------------------------------------------- */

/* Evaluates to the status of a driver call, described on failure. */
#define TRY(cuda, symbol, call) cuda_explain(&(cuda)->driver, (cuda)->driver.call, symbol, (cuda)->base.detail)

static hgemm_status_t enter(cuda_t *cuda)
{
    CUcontext ours;
    if (cuda->forks != forks)
        return cuda_refuse_child(cuda->base.detail);
    hgemm_status_t status = TRY(cuda, "cuCtxPushCurrent", context_push(cuda->context));
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    cuda->capture_mode = CAPTURE_MODE_RELAXED;
    status = TRY(cuda, "cuThreadExchangeStreamCaptureMode", exchange_capture_mode(&cuda->capture_mode));
    if (status != HGEMM_STATUS_SUCCESS)
        cuda->driver.context_pop(&ours);
    return status;
}

static void leave(cuda_t *cuda)
{
    CUcontext ours;
    cuda->driver.exchange_capture_mode(&cuda->capture_mode);
    cuda->driver.context_pop(&ours);
}

/* Returns the status of `calls`, an expression that is evaluated in the primary context. */
#define RETURN_INSIDE(cuda, calls)             \
    do {                                       \
        hgemm_status_t status_ = enter(cuda);  \
        if (status_ == HGEMM_STATUS_SUCCESS) { \
            status_ = (calls);                 \
            leave(cuda);                       \
        }                                      \
        return status_;                        \
    } while (0)

static CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static hgemm_status_t attribute(cuda_t *cuda, int which, int *value)
{
    return TRY(cuda, "cuDeviceGetAttribute", device_attribute(value, which, cuda->device));
}

static hgemm_status_t cuda_info(device_t *device, hgemm_device_info_t *info)
{
    cuda_t *cuda = cuda_of(device);
    hgemm_device_info_t found = {.kind = "cuda"};
    int l2_bytes = 0;
    const struct {
        int which;
        int *value;
    } attributes[] = {
        {ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &found.compute_major},
        {ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &found.compute_minor},
        {ATTRIBUTE_MULTIPROCESSOR_COUNT, &found.multiprocessors},
        {ATTRIBUTE_CLOCK_RATE, &found.clock_khz},
        {ATTRIBUTE_L2_CACHE_SIZE, &l2_bytes},
    };
    if (cuda->forks != forks)
        return cuda_refuse_child(cuda->base.detail);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (status == HGEMM_STATUS_SUCCESS)
            status = attribute(cuda, attributes[i].which, attributes[i].value);
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDeviceGetName", device_name(found.name, (int)sizeof found.name, cuda->device));
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDeviceTotalMem", device_memory(&found.memory_bytes, cuda->device));
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDriverGetVersion", driver_version(&found.driver_version));
    if (status == HGEMM_STATUS_SUCCESS) {
        found.l2_bytes = (size_t)l2_bytes;
        *info = found;
    }
    return status;
}

static hgemm_status_t allocate(cuda_t *cuda, void **pointer, size_t bytes)
{
    CUdeviceptr address;
    hgemm_status_t status = TRY(cuda, "cuMemAlloc", memory_alloc(&address, bytes));
    if (status == HGEMM_STATUS_SUCCESS)
        *pointer = (void *)(uintptr_t)address;
    return status;
}

static hgemm_status_t cuda_alloc(device_t *device, void **pointer, size_t bytes)
{
    RETURN_INSIDE(cuda_of(device), allocate(cuda_of(device), pointer, bytes));
}

static hgemm_status_t cuda_release(device_t *device, void *pointer)
{
    cuda_t *cuda = cuda_of(device);
    RETURN_INSIDE(cuda, TRY(cuda, "cuMemFree", memory_free(address_of(pointer))));
}

/* Waits for what was enqueued with that status. */
static hgemm_status_t await(cuda_t *cuda, void *stream, hgemm_status_t enqueued)
{
    return enqueued == HGEMM_STATUS_SUCCESS ? TRY(cuda, "cuStreamSynchronize", stream_synchronize(stream)) : enqueued;
}

static hgemm_status_t cuda_synchronize(device_t *device, void *stream)
{
    RETURN_INSIDE(cuda_of(device), await(cuda_of(device), stream, HGEMM_STATUS_SUCCESS));
}

static hgemm_status_t cuda_upload(device_t *device, void *stream, void *to, const void *from, size_t bytes)
{
    cuda_t *cuda = cuda_of(device);
    RETURN_INSIDE(
        cuda, await(cuda, stream, TRY(cuda, "cuMemcpyHtoDAsync", copy_to_device(address_of(to), from, bytes, stream))));
}

static hgemm_status_t cuda_download(device_t *device, void *stream, void *to, const void *from, size_t bytes)
{
    cuda_t *cuda = cuda_of(device);
    RETURN_INSIDE(
        cuda, await(cuda, stream, TRY(cuda, "cuMemcpyDtoHAsync", copy_to_host(to, address_of(from), bytes, stream))));
}

/* Loads the module. Where the driver compiles PTX, its log says what is wrong. */
static hgemm_status_t load_module(cuda_t *cuda, const image_t *image, CUmodule *module)
{
    char log[DEVICE_DETAIL / 2] = "";
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}; /* the size by value, as the driver wants it */
    char *detail = cuda->base.detail;
    void *fatbin;
    hgemm_status_t status = image_unpack(image, &fatbin, detail, DEVICE_DETAIL);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    status = TRY(cuda, "cuModuleLoadDataEx", module_load(module, fatbin, 2, options, values));
    free(fatbin); /* the driver has a copy */
    if (status != HGEMM_STATUS_SUCCESS && log[0])
        snprintf(detail + strlen(detail), DEVICE_DETAIL - strlen(detail), " Its log: %s.", log);
    return status;
}

/* The kernel of that image, NULL if no handle has loaded it. */
static CUfunction find_loaded(const shared_t *shared, const image_t *image)
{
    for (int i = 0; i < shared->count; i++)
        if (shared->loaded[i].image == image)
            return shared->loaded[i].function;
    return NULL;
}

/* Gives a kernel to all handles, unless one was quicker; returns theirs, or NULL where memory ran out. */
static CUfunction share(shared_t *shared, const loaded_t *mine)
{
    CUfunction found = find_loaded(shared, mine->image);
    loaded_t *loaded = found ? NULL : realloc(shared->loaded, ((size_t)shared->count + 1) * sizeof *loaded);
    if (!loaded)
        return found;
    loaded[shared->count++] = *mine;
    shared->loaded = loaded;
    return mine->function;
}

/* The driver may compile for long: handles that load at one time do not wait for each other. */
static hgemm_status_t load(cuda_t *cuda, const image_t *image, unsigned shared_bytes, void **function)
{
    loaded_t mine = {.image = image};
    pthread_mutex_lock(&mutex);
    CUfunction found = find_loaded(cuda->shared, image);
    pthread_mutex_unlock(&mutex);
    if (found) {
        *function = found;
        return HGEMM_STATUS_SUCCESS;
    }
    hgemm_status_t status = load_module(cuda, image, &mine.module);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    status = TRY(cuda, "cuModuleGetFunction", module_function(&mine.function, mine.module, image->symbol));
    /* The attribute also makes a driver that loads lazily load now, not during a capture. How much
     * of an SM's memory is shared and how much is cache is left to the driver: kernels that read
     * unaligned operands live on the cache. */
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuFuncSetAttribute",
                     function_set_attribute(mine.function, FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes));
    if (status == HGEMM_STATUS_SUCCESS) {
        pthread_mutex_lock(&mutex);
        found = share(cuda->shared, &mine);
        pthread_mutex_unlock(&mutex);
        if (!found) {
            cuda->base.detail[0] = '\0';
            status = HGEMM_STATUS_OUT_OF_MEMORY;
        }
    }
    if (found != mine.function || !found)
        cuda->driver.module_unload(mine.module);
    if (status == HGEMM_STATUS_SUCCESS)
        *function = found;
    return status;
}

static hgemm_status_t cuda_load(device_t *device, const image_t *image, unsigned shared_bytes, void **function)
{
    RETURN_INSIDE(cuda_of(device), load(cuda_of(device), image, shared_bytes, function));
}

static hgemm_status_t cuda_launch(device_t *device, void *stream, void *function, const launch_t *launch)
{
    cuda_t *cuda = cuda_of(device);
    void *parameters[] = {(void *)launch->args};
    RETURN_INSIDE(cuda, TRY(cuda, "cuLaunchKernel",
                            kernel_launch(function, launch->grid[0], launch->grid[1], launch->grid[2], launch->threads,
                                          1, 1, launch->shared_bytes, stream, parameters, NULL)));
}

static hgemm_status_t make_event(cuda_t *cuda, void **event)
{
    CUevent made;
    hgemm_status_t status = TRY(cuda, "cuEventCreate", event_create(&made, 0));
    if (status == HGEMM_STATUS_SUCCESS)
        *event = made;
    return status;
}

static hgemm_status_t cuda_event_create(device_t *device, void **event)
{
    RETURN_INSIDE(cuda_of(device), make_event(cuda_of(device), event));
}

static hgemm_status_t cuda_event_record(device_t *device, void *event, void *stream)
{
    cuda_t *cuda = cuda_of(device);
    RETURN_INSIDE(cuda, TRY(cuda, "cuEventRecord", event_record(event, stream)));
}

static hgemm_status_t elapsed(cuda_t *cuda, void *from, void *to, float *milliseconds)
{
    hgemm_status_t status = TRY(cuda, "cuEventSynchronize", event_synchronize(to));
    return status == HGEMM_STATUS_SUCCESS ? TRY(cuda, "cuEventElapsedTime", event_elapsed(milliseconds, from, to))
                                          : status;
}

static hgemm_status_t cuda_event_elapsed(device_t *device, void *from, void *to, float *milliseconds)
{
    RETURN_INSIDE(cuda_of(device), elapsed(cuda_of(device), from, to, milliseconds));
}

static void cuda_event_destroy(device_t *device, void *event)
{
    cuda_t *cuda = cuda_of(device);
    if (enter(cuda) != HGEMM_STATUS_SUCCESS)
        return;
    cuda->driver.event_destroy(event);
    leave(cuda);
}

/* The last to leave gets what was shared, which no other finds any more. */
static shared_t *leave_shared(shared_t *shared)
{
    pthread_mutex_lock(&mutex);
    const int is_last = --shared->users == 0;
    shared_t **at = &all_shared;
    while (is_last && *at != shared)
        at = &(*at)->next;
    if (is_last)
        *at = shared->next;
    pthread_mutex_unlock(&mutex);
    return is_last ? shared : NULL;
}

static void cuda_close(device_t *device)
{
    cuda_t *cuda = cuda_of(device);
    if (cuda->forks !=
        forks) { /* the driver has nothing of this process, and a thread may have been at what is shared */
        free(cuda);
        return;
    }
    shared_t *last = leave_shared(cuda->shared);
    if (last && enter(cuda) == HGEMM_STATUS_SUCCESS) {
        for (int i = 0; i < last->count; i++)
            cuda->driver.module_unload(last->loaded[i].module);
        leave(cuda);
    }
    cuda->driver.context_release(cuda->device);
    if (last)
        free(last->loaded);
    free(last);
    free(cuda);
}

static const device_ops_t cuda_ops = {
    .info = cuda_info,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .upload = cuda_upload,
    .download = cuda_download,
    .load = cuda_load,
    .launch = cuda_launch,
    .synchronize = cuda_synchronize,
    .event_create = cuda_event_create,
    .event_record = cuda_event_record,
    .event_elapsed = cuda_event_elapsed,
    .event_destroy = cuda_event_destroy,
    .close = cuda_close,
};

/* ---- Opening ----------------------------------------------------------------------------------- */

/* Becomes one of the handles of a GPU; NULL where memory ran out. */
static shared_t *join_shared(CUdevice device)
{
    pthread_mutex_lock(&mutex);
    shared_t *shared = all_shared;
    while (shared && shared->device != device)
        shared = shared->next;
    if (!shared && (shared = calloc(1, sizeof *shared))) {
        shared->device = device;
        shared->next = all_shared;
        all_shared = shared;
    }
    if (shared)
        shared->users++;
    pthread_mutex_unlock(&mutex);
    return shared;
}

/*
 * Whether the GPU is of compute capability 7.5 or newer and the driver can run what the build made for it. For 7.5
 * that is machine code, which runs on every driver of the compiler's major release of CUDA; other GPUs get PTX, which
 * a driver compiles up to its own release (https://docs.nvidia.com/deploy/cuda-compatibility, Minor Version
 * Compatibility).
 */
static hgemm_status_t check_gpu(cuda_t *cuda)
{
    int major = 0, minor = 0, driver = 0;
    hgemm_status_t status = attribute(cuda, ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
    if (status == HGEMM_STATUS_SUCCESS)
        status = attribute(cuda, ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDriverGetVersion", driver_version(&driver));
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const int capability = 10 * major + minor;
    const int oldest = capability == 75 ? HGEMM_CUDA_VERSION / 1000 * 1000 : HGEMM_CUDA_VERSION;
    if (capability < 75) {
        cuda_describe(cuda->base.detail, "GPU %d is of compute capability %d.%d.", cuda->base.ordinal, major, minor);
        return HGEMM_STATUS_OLD_DEVICE;
    }
    if (driver < oldest) {
        cuda_describe(
            cuda->base.detail,
            "The driver is for CUDA %d.%d; GPU %d, of compute capability %d.%d, needs one for %d.%d or newer, "
            "because nvcc %d.%d compiled the kernels.",
            driver / 1000, driver % 1000 / 10, cuda->base.ordinal, major, minor, oldest / 1000, oldest % 1000 / 10,
            HGEMM_CUDA_VERSION / 1000, HGEMM_CUDA_VERSION % 1000 / 10);
        return HGEMM_STATUS_NO_DRIVER;
    }
    return HGEMM_STATUS_SUCCESS;
}

/* Takes a GPU, if it can be used, and retains its context. */
static hgemm_status_t take(cuda_t *cuda, int ordinal)
{
    cuda->base.ordinal = ordinal;
    hgemm_status_t status = TRY(cuda, "cuDeviceGet", device_get(&cuda->device, ordinal));
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_gpu(cuda);
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDevicePrimaryCtxRetain", context_retain(&cuda->context, cuda->device));
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    cuda->shared = join_shared(cuda->device);
    if (!cuda->shared) {
        cuda->driver.context_release(cuda->device);
        cuda->base.detail[0] = '\0';
        return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    return HGEMM_STATUS_SUCCESS;
}

/* How much a GPU's failure tells, where no GPU can be used: one that fails rather than one whose driver is too old for
 * it, and that rather than one that is itself too old. */
static int weight(hgemm_status_t failure)
{
    return failure == HGEMM_STATUS_SUCCESS      ? 0
           : failure == HGEMM_STATUS_OLD_DEVICE ? 1
           : failure == HGEMM_STATUS_NO_DRIVER  ? 2
                                                : 3;
}

/* Takes the GPU of that ordinal, or the first usable one. */
static hgemm_status_t choose(cuda_t *cuda, int ordinal)
{
    int count = 0;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    hgemm_status_t status = cuda_driver_open(&cuda->driver, cuda->base.detail);
    if (status == HGEMM_STATUS_SUCCESS)
        status = TRY(cuda, "cuDeviceGetCount", device_count(&count));
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if (count == 0)
        return HGEMM_STATUS_NO_DEVICE;
    if (ordinal >= count) {
        cuda_describe(cuda->base.detail, "There is no GPU %d; the last one is %d.", ordinal, count - 1);
        return HGEMM_STATUS_INVALID_DEVICE;
    }
    if (ordinal >= 0)
        return take(cuda, ordinal);
    hgemm_status_t failure = HGEMM_STATUS_SUCCESS;
    char words[DEVICE_DETAIL];
    for (int i = 0; i < count; i++) {
        status = take(cuda, i);
        if (status == HGEMM_STATUS_SUCCESS)
            return status;
        if (weight(status) > weight(failure))
            failure = status, memcpy(words, cuda->base.detail, sizeof words);
    }
    memcpy(cuda->base.detail, words, sizeof words);
    return failure;
}

hgemm_status_t device_open_cuda(int ordinal, device_t **device, char detail[DEVICE_DETAIL])
{
    cuda_t *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    cuda->base.ops = &cuda_ops;
    cuda->forks = forks;
    hgemm_status_t status = choose(cuda, ordinal);
    if (status == HGEMM_STATUS_SUCCESS) {
        cuda->base.detail[0] = '\0'; /* words about GPUs that were passed over */
        *device = &cuda->base;
    } else {
        memcpy(detail, cuda->base.detail, DEVICE_DETAIL);
        free(cuda);
    }
    return status;
}
