/* SPDX-License-Identifier: MIT */
/* Handles: lifetime, streams, memory. Each call hands over to the handle's device. */
#include "api/handle.h"

#include "select/selection.h"
#include "api/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNTER_BYTES = HGEMM_WORKSPACE_TILES * 4,
    WORKSPACE_ALIGNMENT = 128 /* rows of copies begin at such multiples, counted from its end */
};

char *thread_detail(void)
{
    static _Thread_local char detail[DEVICE_DETAIL];
    return detail;
}

/* Workspaces begin with the counters of split tiles, all zero. */
static hgemm_status_t clear_counters(device_t *device, void *stream, void *workspace)
{
    static const unsigned char zeros[COUNTER_BYTES];
    return device->ops->upload(device, stream, workspace, zeros, sizeof zeros);
}

static void use_workspace(hgemm_handle_t handle, void *workspace, size_t bytes)
{
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    memset(handle->known, 0, sizeof handle->known); /* plans fit a workspace */
}

/* The memory in which the parts of a split k meet and copies of unaligned operands are. A handle
 * for which there is no such memory works without. */
static hgemm_status_t make_workspace(hgemm_handle_t handle)
{
    device_t *device = handle->device;
    const size_t bytes = handle->machine.workspace_bytes;
    hgemm_status_t status = device->ops->alloc(device, &handle->own_workspace, bytes);
    if (status == HGEMM_STATUS_SUCCESS)
        status = clear_counters(device, DEVICE_STREAM_PER_THREAD, handle->own_workspace);
    if (status == HGEMM_STATUS_SUCCESS) {
        handle->own_workspace_bytes = bytes;
        handle->most_workspace = handle->machine.most_workspace;
        use_workspace(handle, handle->own_workspace, bytes);
    }
    if (status != HGEMM_STATUS_OUT_OF_MEMORY)
        return status;
    if (handle->own_workspace)
        device->ops->release(device, handle->own_workspace);
    handle->own_workspace = NULL;
    device->detail[0] = '\0';
    return HGEMM_STATUS_SUCCESS;
}

size_t handle_room(hgemm_handle_t handle)
{
    const int is_own = handle->own_workspace && handle->workspace == handle->own_workspace;
    return is_own && handle->most_workspace > handle->workspace_bytes ? handle->most_workspace
                                                                      : handle->workspace_bytes;
}

/* At least twice as many bytes, so that it grows seldom. */
int handle_make_room(hgemm_handle_t handle, size_t bytes)
{
    device_t *device = handle->device;
    const size_t most = handle_room(handle), twice = 2 * handle->workspace_bytes;
    void *larger = NULL;
    int place = 0;
    if (bytes <= handle->workspace_bytes)
        return 1;
    while (place < MOST_GROWTHS && handle->outgrown[place])
        place++;
    bytes = bytes < twice ? twice : (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
    bytes = bytes < most ? bytes : most;
    if (bytes > handle->workspace_bytes && place < MOST_GROWTHS &&
        device->ops->alloc(device, &larger, bytes) == HGEMM_STATUS_SUCCESS &&
        clear_counters(device, DEVICE_STREAM_PER_THREAD, larger) == HGEMM_STATUS_SUCCESS) {
        handle->outgrown[place] = handle->own_workspace;
        handle->workspace = handle->own_workspace = larger;
        handle->workspace_bytes = handle->own_workspace_bytes = bytes;
        return 1;
    }
    if (larger)
        device->ops->release(device, larger);
    device->detail[0] = '\0';
    if (handle->workspace == handle->own_workspace)
        handle->most_workspace = handle->own_workspace_bytes;
    return 0;
}

/* Gives back all that the handle holds, and itself. */
static void discard(hgemm_handle_t handle)
{
    const device_ops_t *ops = handle->device->ops;
    if (handle->own_workspace)
        ops->release(handle->device, handle->own_workspace);
    for (int i = 0; i < MOST_GROWTHS; i++)
        if (handle->outgrown[i])
            ops->release(handle->device, handle->outgrown[i]);
    ops->close(handle->device);
    tuning_free(handle->tuning);
    free(handle);
}

static void use_tuning(hgemm_handle_t handle, tuning_t *tuning)
{
    tuning_free(handle->tuning);
    handle->tuning = tuning;
    handle->machine.measured = tuning_measured(tuning);
    memset(handle->known, 0, sizeof handle->known);
}

/* The file that the environment names, if it can be used. */
static void load_default_tuning(hgemm_handle_t handle)
{
    const char *path = getenv("HGEMM_TUNING");
    char why[DEVICE_DETAIL];
    tuning_t *tuning = path && *path ? tuning_read(path, &handle->info, why) : NULL;
    if (tuning)
        use_tuning(handle, tuning);
    else if (path && *path)
        record_remark("HGEMM_TUNING is ignored: %s %s", path, why);
}

hgemm_status_t hgemm_load_tuning(hgemm_handle_t handle, const char *path)
{
    char why[DEVICE_DETAIL];
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    tuning_t *tuning = path ? tuning_read(path, &handle->info, why) : NULL;
    if (path && !tuning) {
        snprintf(handle->device->detail, DEVICE_DETAIL, "The file %.300s %.600s", path, why);
        return HGEMM_STATUS_INVALID_TUNING;
    }
    use_tuning(handle, tuning);
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_create(hgemm_handle_t *handle, const char *device)
{
    char *words = thread_detail();
    words[0] = '\0';
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    if (!device || !*device)
        device = getenv("HGEMM_DEVICE");

    struct hgemm_handle *made = calloc(1, sizeof *made);
    if (!made)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    hgemm_status_t status = device_open(device ? device : "", &made->device, words);
    if (status != HGEMM_STATUS_SUCCESS) {
        free(made);
        return status;
    }
    status = made->device->ops->info(made->device, &made->info);
    if (status == HGEMM_STATUS_SUCCESS) {
        made->machine = machine_of(&made->info);
        status = make_workspace(made);
    }
    if (status == HGEMM_STATUS_SUCCESS) {
        load_default_tuning(made);
        *handle = made;
    } else {
        memcpy(words, made->device->detail, DEVICE_DETAIL);
        discard(made);
    }
    return status;
}

hgemm_status_t hgemm_destroy(hgemm_handle_t handle)
{
    if (!handle)
        return HGEMM_STATUS_SUCCESS;
    hgemm_status_t status = handle->device->ops->synchronize(handle->device, handle->stream);
    discard(handle);
    return status;
}

static int is_of(const known_plan_t *known, const problem_class_t *problem, int kernel)
{
    return known->plan.variant.kernel != KERNEL_NONE && known->kernel == kernel &&
           class_compare(&known->problem, problem) == 0;
}

hgemm_status_t handle_choose(hgemm_handle_t handle, const problem_t *p, plan_t *plan)
{
    const problem_class_t problem = class_of(p);
    const uint64_t hash = class_hash(&problem) ^ (uint64_t)p->kernel << 32;
    known_plan_t *known = handle->known[(hash >> 32) % KNOWN_SETS];
    /* Of C and D, which decide where a plain kernel is named, the class tells nothing. */
    for (int i = 0; i < KNOWN_WAYS && !kernel_table[p->kernel].is_plain; i++)
        if (is_of(&known[i], &problem, p->kernel)) {
            *plan = known[i].plan;
            return HGEMM_STATUS_SUCCESS;
        }
    hgemm_status_t status = select_plan(p, &handle->machine, handle_room(handle), plan);
    if (status == HGEMM_STATUS_SUCCESS && !handle_make_room(handle, (size_t)plan_workspace(p, plan)))
        status = select_plan(p, &handle->machine, handle->workspace_bytes, plan);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    memmove(&known[1], &known[0], (KNOWN_WAYS - 1) * sizeof known[0]);
    known[0] = (known_plan_t){problem, p->kernel, *plan};
    record_call(handle->device, p, plan);
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t load_recompute(hgemm_handle_t handle)
{
    return handle->recompute ? HGEMM_STATUS_SUCCESS
                             : handle->device->ops->load(handle->device, recompute_image(), HGEMM_RECOMPUTE_SHARED,
                                                         &handle->recompute);
}

hgemm_status_t handle_load(hgemm_handle_t handle, const plan_t *plan)
{
    const device_ops_t *ops = handle->device->ops;
    void **slot = &handle->functions[variant_index(plan->variant)];
    if (!*slot) {
        const image_t *image = variant_image(plan->variant);
        if (!image) {
            char symbol[VARIANT_SYMBOL];
            variant_symbol(plan->variant, symbol);
            snprintf(handle->device->detail, DEVICE_DETAIL, "This build carries no machine code for %s.", symbol);
            return HGEMM_STATUS_NOT_SUPPORTED;
        }
        const int kernel = plan->variant.kernel;
        unsigned shared_bytes = (unsigned)(kernel_table[kernel].info.shared_bytes + kept_sums_bytes(kernel, INT64_MAX));
        hgemm_status_t loaded = ops->load(handle->device, image, shared_bytes, slot);
        if (loaded != HGEMM_STATUS_SUCCESS)
            return loaded;
    }
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (plan->copies && !handle->realign)
        status = ops->load(handle->device, realign_image(), 0, &handle->realign);
    if (plan->scales && status == HGEMM_STATUS_SUCCESS)
        status = handle_load_scale(handle);
    if (plan->scales && status == HGEMM_STATUS_SUCCESS)
        status = load_recompute(handle);
    return status;
}

hgemm_status_t handle_load_scale(hgemm_handle_t handle)
{
    return handle->scale
               ? HGEMM_STATUS_SUCCESS
               : handle->device->ops->load(handle->device, scale_image(), HGEMM_SCALE_THREADS / 32 * 4, &handle->scale);
}

void handle_forget_parts(hgemm_handle_t handle)
{
    char detail[DEVICE_DETAIL];
    memcpy(detail, handle->device->detail, sizeof detail);
    clear_counters(handle->device, handle->stream,
                   handle->workspace); /* where the device is lost, it fails as all that follows does */
    memcpy(handle->device->detail, detail, sizeof detail);
}

/* For a pointer of that name that is NULL, or the handle. */
static hgemm_status_t refuse(hgemm_handle_t handle, const char *name)
{
    if (handle)
        snprintf(handle->device->detail, DEVICE_DETAIL, "%s is NULL.", name);
    return HGEMM_STATUS_INVALID_HANDLE;
}

hgemm_status_t hgemm_set_stream(hgemm_handle_t handle, void *stream)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    handle->stream = stream;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_get_stream(hgemm_handle_t handle, void **stream)
{
    if (!handle || !stream)
        return refuse(handle, "stream");
    *stream = handle->stream;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_synchronize(hgemm_handle_t handle)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    return handle->device->ops->synchronize(handle->device, handle->stream);
}

hgemm_status_t hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    device_t *device = handle->device;
    if (!pointer && bytes == 0) {
        use_workspace(handle, handle->own_workspace, handle->own_workspace_bytes);
        return HGEMM_STATUS_SUCCESS;
    }
    if (!pointer)
        return refuse(handle, "pointer");
    if ((uintptr_t)pointer % WORKSPACE_ALIGNMENT) {
        snprintf(device->detail, DEVICE_DETAIL, "pointer is 0x%" PRIxPTR ".", (uintptr_t)pointer);
        return HGEMM_STATUS_MISALIGNED_WORKSPACE;
    }
    if (bytes < COUNTER_BYTES) { /* no room for what every use of it needs */
        use_workspace(handle, NULL, 0);
        return HGEMM_STATUS_SUCCESS;
    }
    hgemm_status_t status = clear_counters(device, handle->stream, pointer);
    if (status == HGEMM_STATUS_SUCCESS)
        use_workspace(handle, pointer, bytes - bytes % WORKSPACE_ALIGNMENT);
    return status;
}

const char *hgemm_error_detail(hgemm_handle_t handle)
{
    return handle ? handle->device->detail : thread_detail();
}

hgemm_status_t hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info)
{
    if (!handle || !info)
        return refuse(handle, "info");
    hgemm_status_t status = handle->device->ops->info(handle->device, info);
    if (status == HGEMM_STATUS_SUCCESS)
        memcpy(info->fallback, handle->device->fallback, sizeof info->fallback);
    return status;
}

hgemm_status_t hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes)
{
    if (!handle || !pointer)
        return refuse(handle, "pointer");
    if (bytes == 0) {
        *pointer = NULL;
        return HGEMM_STATUS_SUCCESS;
    }
    return handle->device->ops->alloc(handle->device, pointer, bytes);
}

hgemm_status_t hgemm_free(hgemm_handle_t handle, void *pointer)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    if (!pointer)
        return HGEMM_STATUS_SUCCESS;
    return handle->device->ops->release(handle->device, pointer);
}

hgemm_status_t hgemm_upload(hgemm_handle_t handle, void *device, const void *host, size_t bytes)
{
    if (!handle || (bytes && (!device || !host)))
        return refuse(handle, device ? "host" : "device");
    if (bytes == 0)
        return HGEMM_STATUS_SUCCESS;
    return handle->device->ops->upload(handle->device, handle->stream, device, host, bytes);
}

hgemm_status_t hgemm_download(hgemm_handle_t handle, void *host, const void *device, size_t bytes)
{
    if (!handle || (bytes && (!device || !host)))
        return refuse(handle, device ? "host" : "device");
    if (bytes == 0)
        return HGEMM_STATUS_SUCCESS;
    return handle->device->ops->download(handle->device, handle->stream, host, device, bytes);
}
