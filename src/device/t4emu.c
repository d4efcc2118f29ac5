/* SPDX-License-Identifier: MIT */
/*
 * The emulated T4, in builds with HGEMM_EMULATOR: runs a kernel's sm_75 machine code on the CPU.
 * Every handle is a machine of its own, with memory of its own. Calls are synchronous, so that
 * streams have no order to keep. Events tell the host's time or, with the option `time`, that of
 * a modelled clock. It is advanced by launches alone, between an event's record and the next question
 * for a time: elsewhere nobody would know, and the model is slower than execution.
 */
#include "device/t4emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMORY_BYTES ((size_t)15 << 30)
enum { CLOCK_KHZ = TURING_T4_MHZ * 1000, L2_BYTES = 4 << 20 };

typedef struct loaded_t {
    turing_module_t *module;
    const turing_kernel_t *kernel;
    unsigned shared_bytes; /* the most that a launch may have, as a GPU's driver is told */
} loaded_t;

typedef struct t4emu_t {
    device_t base;
    turing_memory_t *memory;
    turing_tensor_t tensor;
    unsigned checks;
    turing_counters_t *counters;     /* of a launch, the caller's; NULL: nothing is counted */
    turing_time_t *time_sum;         /* of modelled launches, the caller's, or NULL */
    const turing_clock_t *constants; /* of the model, the caller's, or NULL */
    turing_watch_fn *watch;          /* told of what they issue, or NULL */
    void *watch_user;
    int modelled; /* events tell modelled time */
    int dry;      /* launches that are timed compute no results */
    int newer;    /* to the library it is an H100 */
    int awaited;  /* one was recorded, and none was compared since */
    double clock; /* modelled seconds of all launches so far */
    loaded_t *loaded;
    int loaded_count;
} t4emu_t;

static t4emu_t *t4emu_of(device_t *device)
{
    return (t4emu_t *)device;
}

/* The status of a call of the emulator, whose words become the device's. */
static hgemm_status_t explain(device_t *device, int succeeded, const turing_error_t *error)
{
    if (succeeded)
        return HGEMM_STATUS_SUCCESS;
    snprintf(device->detail, sizeof device->detail, "%.1000s.", error->text);
    return HGEMM_STATUS_DEVICE_ERROR;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static hgemm_status_t t4emu_info(device_t *device, hgemm_device_info_t *info)
{
    const t4emu_t *emulator = t4emu_of(device);
    *info = (hgemm_device_info_t){
        .name = "Tesla T4 (emulated)",
        .kind = "t4emu",
        .is_emulated = 1,
        .compute_major = 7,
        .compute_minor = 5,
        .multiprocessors = TURING_T4_SMS,
        .clock_khz = CLOCK_KHZ,
        .memory_bytes = MEMORY_BYTES,
        .l2_bytes = L2_BYTES,
    };
    if (emulator->modelled) {
        strcpy(info->name, "Tesla T4 (timing model)");
        strcpy(info->kind, "t4model");
    }
    if (emulator->newer) { /* an H100, but for the memory that there is */
        strcpy(info->name, "Tesla T4 (emulated), with the plans of an H100");
        info->compute_major = 9;
        info->compute_minor = 0;
        info->multiprocessors = 132;
        info->l2_bytes = 50 << 20;
    }
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_alloc(device_t *device, void **pointer, size_t bytes)
{
    uint64_t address = bytes <= MEMORY_BYTES ? turing_memory_alloc(t4emu_of(device)->memory, bytes) : 0;
    if (!address) {
        snprintf(device->detail, sizeof device->detail, "%zu bytes were asked for.", bytes);
        return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    *pointer = (void *)(uintptr_t)address;
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_release(device_t *device, void *pointer)
{
    turing_error_t error;
    return explain(device, turing_memory_free(t4emu_of(device)->memory, address_of(pointer), &error), &error);
}

static hgemm_status_t t4emu_upload(device_t *device, void *stream, void *to, const void *from, size_t bytes)
{
    turing_error_t error;
    (void)stream;
    return explain(device, turing_memory_write(t4emu_of(device)->memory, address_of(to), from, bytes, &error), &error);
}

static hgemm_status_t t4emu_download(device_t *device, void *stream, void *to, const void *from, size_t bytes)
{
    turing_error_t error;
    (void)stream;
    return explain(device, turing_memory_read(t4emu_of(device)->memory, address_of(from), to, bytes, &error), &error);
}

/* A function is the emulator's kernel. */
static hgemm_status_t t4emu_load(device_t *device, const image_t *image, unsigned shared_bytes, void **function)
{
    t4emu_t *emulator = t4emu_of(device);
    turing_error_t error;
    const size_t count = (size_t)emulator->loaded_count;
    loaded_t *loaded = realloc(emulator->loaded, (count + 1) * sizeof(*loaded));
    if (!loaded) {
        device->detail[0] = '\0';
        return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    emulator->loaded = loaded;
    void *fatbin;
    hgemm_status_t status = image_unpack(image, &fatbin, device->detail, sizeof device->detail);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    turing_module_t *module = turing_module_open(fatbin, image->size, &error);
    free(fatbin); /* the module has copies */
    if (!module)
        return explain(device, 0, &error);
    const turing_kernel_t *kernel = turing_module_find(module, image->symbol);
    if (!kernel) {
        turing_module_close(module);
        snprintf(device->detail, sizeof device->detail, "The image of %s does not contain it.", image->symbol);
        return HGEMM_STATUS_DEVICE_ERROR;
    }
    loaded[emulator->loaded_count++] = (loaded_t){module, kernel, shared_bytes};
    *function = (void *)kernel;
    return HGEMM_STATUS_SUCCESS;
}

/* Keeps the words of the first violation. */
static void keep_report(void *user, const turing_violation_t *violation)
{
    device_t *device = user;
    if (device->detail[0])
        return;
    turing_violation_text(violation, device->detail, sizeof device->detail - 1);
    strcat(device->detail, ".");
}

hgemm_status_t device_t4emu_run(device_t *device, const turing_kernel_t *kernel, turing_launch_t *launch)
{
    t4emu_t *emulator = t4emu_of(device);
    turing_error_t error;
    uint64_t violations = 0;
    turing_time_t modelled;
    launch->tensor = emulator->tensor;
    launch->checks = emulator->checks;
    launch->report = keep_report;
    launch->user = device;
    launch->counters = emulator->counters;
    if (launch->counters)
        turing_counters_free(launch->counters); /* those of the call's launch before */
    launch->time = emulator->awaited || emulator->time_sum ? &modelled : NULL;
    launch->clock = emulator->constants;
    launch->watch = emulator->watch;
    launch->watch_user = emulator->watch_user;
    launch->dry &= emulator->dry;
    device->detail[0] = '\0';
    if (!turing_launch(kernel, emulator->memory, launch, &violations, &error)) {
        emulator->awaited = 0; /* nobody will ask for the time of what failed */
        return explain(device, 0, &error);
    }
    if (launch->time)
        emulator->clock += modelled.cycles / (TURING_T4_MHZ * 1e6);
    if (emulator->time_sum)
        turing_time_add(emulator->time_sum, &modelled);
    return violations ? HGEMM_STATUS_DEVICE_ERROR : HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_launch(device_t *device, void *stream, void *function, const launch_t *launch)
{
    turing_launch_t run = {
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->threads, 1, 1},
        .shared_bytes = launch->shared_bytes,
        .params = launch->args,
        .param_bytes = launch->args_size,
        .dry = true,
    };
    const t4emu_t *emulator = t4emu_of(device);
    (void)stream;
    for (int i = 0; i < emulator->loaded_count; i++)
        if (emulator->loaded[i].kernel == function && launch->shared_bytes > emulator->loaded[i].shared_bytes) {
            snprintf(device->detail, sizeof device->detail, "%u bytes of shared memory for a function with %u at most.",
                     launch->shared_bytes, emulator->loaded[i].shared_bytes);
            return HGEMM_STATUS_DEVICE_ERROR;
        }
    return device_t4emu_run(device, function, &run);
}

static hgemm_status_t t4emu_synchronize(device_t *device, void *stream)
{
    (void)device, (void)stream;
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_event_create(device_t *device, void **event)
{
    (void)device;
    struct timespec *made = calloc(1, sizeof *made);
    if (!made)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    *event = made;
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_event_record(device_t *device, void *event, void *stream)
{
    t4emu_t *emulator = t4emu_of(device);
    struct timespec *now = event;
    (void)stream;
    timespec_get(now, TIME_UTC);
    if (emulator->modelled) {
        now->tv_sec = (time_t)emulator->clock;
        now->tv_nsec = (long)((emulator->clock - (double)now->tv_sec) * 1e9);
        emulator->awaited = 1;
    }
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t t4emu_event_elapsed(device_t *device, void *from, void *to, float *milliseconds)
{
    const struct timespec *begin = from, *end = to;
    t4emu_of(device)->awaited = 0;
    *milliseconds =
        (float)((double)(end->tv_sec - begin->tv_sec) * 1e3 + (double)(end->tv_nsec - begin->tv_nsec) * 1e-6);
    return HGEMM_STATUS_SUCCESS;
}

static void t4emu_event_destroy(device_t *device, void *event)
{
    (void)device;
    free(event);
}

static void t4emu_close(device_t *device)
{
    t4emu_t *emulator = t4emu_of(device);
    for (int i = 0; i < emulator->loaded_count; i++)
        turing_module_close(emulator->loaded[i].module);
    turing_memory_destroy(emulator->memory);
    free(emulator->loaded);
    free(emulator);
}

static const device_ops_t t4emu_ops = {
    .info = t4emu_info,
    .alloc = t4emu_alloc,
    .release = t4emu_release,
    .upload = t4emu_upload,
    .download = t4emu_download,
    .load = t4emu_load,
    .launch = t4emu_launch,
    .synchronize = t4emu_synchronize,
    .event_create = t4emu_event_create,
    .event_record = t4emu_event_record,
    .event_elapsed = t4emu_event_elapsed,
    .event_destroy = t4emu_event_destroy,
    .close = t4emu_close,
};

turing_memory_t *device_t4emu_memory(device_t *device)
{
    return t4emu_of(device)->memory;
}

void device_t4emu_count(device_t *device, turing_counters_t *counters)
{
    t4emu_of(device)->counters = counters;
}

void device_t4emu_time(device_t *device, turing_time_t *sum)
{
    t4emu_of(device)->time_sum = sum;
}

void device_t4emu_clock(device_t *device, const turing_clock_t *clock)
{
    t4emu_of(device)->constants = clock;
}

void device_t4emu_watch(device_t *device, turing_watch_fn *watch, void *user)
{
    t4emu_of(device)->watch = watch;
    t4emu_of(device)->watch_user = user;
}

/* Applies one option, given by its first character and length. */
static int apply_option(t4emu_t *emulator, const char *option, size_t length)
{
    if (length == 5 && strncmp(option, "check", length) == 0)
        emulator->checks = TURING_CHECK_ALL | TURING_CHECK_SAME_VALUE;
    else if (length == 6 && strncmp(option, "hopper", length) == 0)
        emulator->tensor = TURING_TENSOR_HOPPER;
    else if (length == 4 && strncmp(option, "time", length) == 0)
        emulator->modelled = 1;
    else if (length == 3 && strncmp(option, "dry", length) == 0)
        emulator->dry = 1;
    else if (length == 5 && strncmp(option, "newer", length) == 0)
        emulator->newer = 1;
    else
        return 0;
    return 1;
}

hgemm_status_t device_open_t4emu(const char *options, device_t **device, char detail[DEVICE_DETAIL])
{
    t4emu_t *emulator = calloc(1, sizeof *emulator);
    if (!emulator)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    emulator->base.ops = &t4emu_ops;
    emulator->tensor = TURING_TENSOR_TURING;
    for (const char *option = options; *option;) {
        size_t length = strcspn(option, ",");
        if (!apply_option(emulator, option, length)) {
            snprintf(detail, DEVICE_DETAIL,
                     "t4emu has no option \"%.100s\"; it has check, hopper, newer, time and dry.", option);
            free(emulator);
            return HGEMM_STATUS_INVALID_DEVICE;
        }
        option += length;
        option += *option == ',';
    }
    if (emulator->modelled && emulator->newer) {
        snprintf(detail, DEVICE_DETAIL,
                 "t4emu has no time of newer GPUs: its options time and newer exclude each other.");
        free(emulator);
        return HGEMM_STATUS_INVALID_DEVICE;
    }
    emulator->memory = turing_memory_create(emulator->checks ? TURING_MEMORY_TRACK : 0);
    if (!emulator->memory) {
        free(emulator);
        return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    *device = &emulator->base;
    return HGEMM_STATUS_SUCCESS;
}
