/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "driver.h"
#include "settings.h"

#include <pthread.h>
#include <stdio.h>

typedef struct slot_t {
    int is_stream; /* else of captures and of the streams that have none */
    uint64_t stream_id;
    hgemm_handle_t handle; /* NULL: there is none, and `why` */
    const char *why;
    pthread_mutex_t lock;
    float *scalars; /* device memory: of a stream one pair, of captures pairs that no call has had; NULL: none yet */
    int pairs_left; /* of captures */
} slot_t;

typedef struct context_t {
    void *context;
    const char *why; /* products of this context are not hgemm's; NULL: they are */
    char device[16]; /* "cuda:0" */
    int capability;
    slot_t spare; /* without workspace; its handle is NULL until the first stream has one */
    slot_t streams[POOL_STREAMS];
    int stream_count;
} context_t;

/* Guards the lists, not the handles in them. Entries stay where they are. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static context_t contexts[POOL_CONTEXTS];
static int context_count;
static int is_forked; /* the entries are a parent's, whose GPU does not serve a child */

static void begin_child(void)
{
    lists = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    is_forked |= context_count > 0;
    driver_renew_lock();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

static context_t *find_context(void *context)
{
    for (int i = 0; i < context_count; i++)
        if (contexts[i].context == context)
            return &contexts[i];
    return NULL;
}

static context_t *add_context(void *context)
{
    driver_device_t device;
    if (context_count == POOL_CONTEXTS)
        return NULL;
    context_t *added = &contexts[context_count++];
    added->context = context;
    pthread_mutex_init(&added->spare.lock, NULL);
    added->spare.why = "no product has run in this context before the capture";
    if (!driver_device(&device)) {
        added->why = "the driver does not name the context's device";
        return added;
    }
    added->capability = device.capability;
    snprintf(added->device, sizeof added->device, "cuda:%d", device.ordinal);
    if (!device.is_primary)
        added->why = "the context is not the device's primary one";
    else
        added->why = settings_refuse(device.capability);
    return added;
}

static void open_slot(slot_t *slot, const char *device)
{
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, device);
    slot->handle = status == HGEMM_STATUS_SUCCESS ? handle : NULL;
    slot->why = hgemm_status_name(status);
}

/* Adds a handle for the stream, and with a context's first the spare one. */
static slot_t *add_stream(context_t *context, uint64_t stream_id)
{
    static _Alignas(128) char none; /* as a workspace must be; of no bytes it is none */
    if (context->stream_count == 0) {
        slot_t *spare = &context->spare;
        open_slot(spare, context->device);
        hgemm_status_t status = spare->handle ? hgemm_set_workspace(spare->handle, &none, 0) : HGEMM_STATUS_SUCCESS;
        if (status != HGEMM_STATUS_SUCCESS) {
            hgemm_destroy(spare->handle);
            spare->handle = NULL;
            spare->why = hgemm_status_name(status);
        }
    }
    slot_t *added = &context->streams[context->stream_count++];
    added->is_stream = 1;
    added->stream_id = stream_id;
    pthread_mutex_init(&added->lock, NULL);
    open_slot(added, context->device);
    return added;
}

/* Handles are made outside of captures alone, since that allocates memory. */
static slot_t *find_slot(context_t *context, void *stream, int is_captured)
{
    uint64_t id;
    if (is_captured || !driver_stream_id(stream, &id))
        return &context->spare;
    for (int i = 0; i < context->stream_count; i++)
        if (context->streams[i].stream_id == id)
            return &context->streams[i];
    return context->stream_count == POOL_STREAMS ? &context->spare : add_stream(context, id);
}

const char *pool_lease(void *stream, lease_t *lease)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (is_forked)
        return "the process was forked from one that used the GPU, which CUDA does not allow";
    void *current = driver_context();
    if (!current)
        return "the thread has no CUDA context";
    slot_t *slot = NULL;
    const char *why = NULL;
    driver_capture_t capture = DRIVER_UNKNOWN;
    pthread_mutex_lock(&lists);
    context_t *context = find_context(current);
    if (!context)
        context = add_context(current);
    if (!context) {
        why = "there are too many contexts";
    } else if (context->why) {
        why = context->why;
    } else {
        capture = driver_capture(stream);
        if (capture == DRIVER_UNKNOWN)
            why = "the driver does not tell whether the stream is captured";
        else
            slot = find_slot(context, stream, capture == DRIVER_CAPTURING);
    }
    pthread_mutex_unlock(&lists);
    if (why)
        return why;
    if (!slot->handle)
        return slot->why;
    pthread_mutex_lock(&slot->lock);
    *lease = (lease_t){slot->handle, slot, context->capability, capture == DRIVER_CAPTURING};
    hgemm_set_stream(slot->handle, stream);
    return NULL;
}

void pool_return(const lease_t *lease)
{
    pthread_mutex_unlock(&lease->slot->lock);
}

/* New pairs of scalars; 0 where there is no memory. Those of captures are never given back, nor used again. */
static int add_pairs(slot_t *slot, int pairs)
{
    void *memory;
    if (hgemm_malloc(slot->handle, &memory, (size_t)pairs * 2 * sizeof(float)) != HGEMM_STATUS_SUCCESS)
        return 0;
    slot->scalars = memory;
    slot->pairs_left = pairs;
    return 1;
}

float *pool_scalars(const lease_t *lease)
{
    enum { CAPTURED_PAIRS = 512 };
    slot_t *slot = lease->slot;
    if (lease->is_captured)
        return slot->pairs_left || add_pairs(slot, CAPTURED_PAIRS) ? slot->scalars + 2 * --slot->pairs_left : NULL;
    if (!slot->is_stream)
        return NULL;
    return slot->scalars || add_pairs(slot, 1) ? slot->scalars : NULL;
}
