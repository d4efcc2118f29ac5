/* SPDX-License-Identifier: MIT */
/* Handles: lifetime, streams, memory. Each call hands over to the handle's device. */
#include "handle.h"

#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char create_detail[DEVICE_DETAIL];

/* The ordinal that follows "cuda:", -1 where it is not a plain number. */
static int parse_ordinal(const char *digits)
{
    char *end;
    if (*digits < '0' || *digits > '9')
        return -1;
    long ordinal = strtol(digits, &end, 10);
    return *end || ordinal > 9999 ? -1 : (int)ordinal;
}

/* A GPU or, where there is none that could be used, the emulator of builds that have it. */
static hgemm_status_t open_default(device_t **device, char detail[DEVICE_DETAIL])
{
    hgemm_status_t status = device_open_cuda(-1, device, detail);
#ifdef HGEMM_EMULATOR
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE || status == HGEMM_STATUS_OLD_DEVICE)
        status = device_open_t4emu("", device, detail);
#endif
    return status;
}

hgemm_status_t device_open(const char *name, device_t **device, char detail[DEVICE_DETAIL])
{
    if (!*name)
        return open_default(device, detail);
    if (strcmp(name, "cuda") == 0)
        return device_open_cuda(-1, device, detail);
    if (strncmp(name, "cuda:", 5) == 0) {
        int ordinal = parse_ordinal(name + 5);
        if (ordinal >= 0)
            return device_open_cuda(ordinal, device, detail);
    }
#ifdef HGEMM_EMULATOR
    if (strcmp(name, "t4emu") == 0)
        return device_open_t4emu("", device, detail);
    if (strncmp(name, "t4emu:", 6) == 0)
        return device_open_t4emu(name + 6, device, detail);
#endif
    snprintf(detail, DEVICE_DETAIL, "no device is called \"%.100s\"", name);
    return HGEMM_STATUS_INVALID_DEVICE;
}

static hgemm_status_t clear_counters(struct hgemm_handle *handle, void *stream)
{
    static const unsigned char zeros[HGEMM_WORKSPACE_TILES * 4];
    return handle->device->ops->upload(handle->device, stream, handle->workspace, zeros, sizeof zeros);
}

/* The memory in which the parts of a split k meet and copies of unaligned operands are. A handle
 * for which there is no such memory works without. */
static hgemm_status_t make_workspace(hgemm_handle_t handle)
{
    device_t *device = handle->device;
    hgemm_status_t status = device->ops->alloc(device, &handle->workspace, handle->machine.workspace_bytes);
    if (status == HGEMM_STATUS_SUCCESS)
        status = clear_counters(handle, DEVICE_STREAM_PER_THREAD);
    if (status == HGEMM_STATUS_SUCCESS)
        handle->workspace_bytes = handle->machine.workspace_bytes;
    if (status != HGEMM_STATUS_OUT_OF_MEMORY)
        return status;
    if (handle->workspace)
        device->ops->release(device, handle->workspace);
    handle->workspace = NULL;
    device->detail[0] = '\0';
    return HGEMM_STATUS_SUCCESS;
}

/* Gives back all that the handle holds, and itself. */
static void discard(hgemm_handle_t handle)
{
    const device_ops_t *ops = handle->device->ops;
    if (handle->workspace)
        ops->release(handle->device, handle->workspace);
    ops->close(handle->device);
    free(handle);
}

hgemm_status_t hgemm_create(hgemm_handle_t *handle, const char *device)
{
    create_detail[0] = '\0';
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    if (!device || !*device)
        device = getenv("HGEMM_DEVICE");

    struct hgemm_handle *made = calloc(1, sizeof *made);
    if (!made)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    hgemm_status_t status = device_open(device ? device : "", &made->device, create_detail);
    if (status != HGEMM_STATUS_SUCCESS) {
        free(made);
        return status;
    }
    hgemm_device_info_t info;
    status = made->device->ops->info(made->device, &info);
    if (status == HGEMM_STATUS_SUCCESS) {
        made->machine = machine_of(&info);
        status = make_workspace(made);
    }
    if (status == HGEMM_STATUS_SUCCESS) {
        *handle = made;
    } else {
        memcpy(create_detail, made->device->detail, sizeof create_detail);
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

/* FNV-1a, a word at a time. */
static unsigned hash_of(const problem_key_t *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof key->of / sizeof key->of[0]; i++)
        hash = (hash ^ (uint64_t)key->of[i]) * UINT64_C(0x100000001b3);
    return (unsigned)(hash >> 32);
}

hgemm_status_t handle_choose(hgemm_handle_t handle, const hgemm_desc_t *row_major, plan_t *plan)
{
    problem_key_t key = key_of(row_major);
    known_plan_t *known = &handle->known[hash_of(&key) % KNOWN_PLANS];
    if (known->plan.variant.kernel == KERNEL_NONE || memcmp(&known->key, &key, sizeof key) != 0) {
        hgemm_status_t status = select_plan(row_major, &handle->machine, handle->workspace_bytes, plan);
        if (status != HGEMM_STATUS_SUCCESS)
            return status;
        *known = (known_plan_t){key, *plan};
    }
    *plan = known->plan;
    return HGEMM_STATUS_SUCCESS;
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
            snprintf(handle->device->detail, DEVICE_DETAIL, "this build carries no machine code for %s", symbol);
            return HGEMM_STATUS_NOT_SUPPORTED;
        }
        unsigned shared_bytes = (unsigned)kernel_table[plan->variant.kernel].info.shared_bytes;
        hgemm_status_t status = ops->load(handle->device, image, shared_bytes, slot);
        if (status != HGEMM_STATUS_SUCCESS)
            return status;
    }
    if (plan->copies && !handle->realign)
        return ops->load(handle->device, realign_image(), 0, &handle->realign);
    return HGEMM_STATUS_SUCCESS;
}

void handle_forget_parts(hgemm_handle_t handle)
{
    char detail[DEVICE_DETAIL];
    memcpy(detail, handle->device->detail, sizeof detail);
    clear_counters(handle, handle->stream); /* where the device is lost, it fails as all that follows does */
    memcpy(handle->device->detail, detail, sizeof detail);
}

/* A pointer that is NULL: the handle, or another one, for which the device has no words. */
static hgemm_status_t refuse(hgemm_handle_t handle)
{
    if (handle)
        handle->device->detail[0] = '\0';
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
        return refuse(handle);
    *stream = handle->stream;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_synchronize(hgemm_handle_t handle)
{
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    return handle->device->ops->synchronize(handle->device, handle->stream);
}

const char *hgemm_error_detail(hgemm_handle_t handle)
{
    return handle ? handle->device->detail : create_detail;
}

hgemm_status_t hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info)
{
    if (!handle || !info)
        return refuse(handle);
    return handle->device->ops->info(handle->device, info);
}

hgemm_status_t hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes)
{
    if (!handle || !pointer)
        return refuse(handle);
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
        return refuse(handle);
    if (bytes == 0)
        return HGEMM_STATUS_SUCCESS;
    return handle->device->ops->upload(handle->device, handle->stream, device, host, bytes);
}

hgemm_status_t hgemm_download(hgemm_handle_t handle, void *host, const void *device, size_t bytes)
{
    if (!handle || (bytes && (!device || !host)))
        return refuse(handle);
    if (bytes == 0)
        return HGEMM_STATUS_SUCCESS;
    return handle->device->ops->download(handle->device, handle->stream, host, device, bytes);
}
