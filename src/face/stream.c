/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams and events.
 *
 * Work is done when it is enqueued, so a stream is never busy.  An event holds the time of its
 * record: modelled time if kernels are timed, else the host's.
 */
#include "machine.h"

#include <time.h>

/* Attributes that a stream keeps. What they ask for is a matter of time, and changes nothing here. */
static const CUstreamAttrID kept[] = {CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                                      CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                                      CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN};
enum { KEPT = sizeof kept / sizeof *kept };

struct CUstream_st {
    unsigned flags;
    int priority;
    unsigned long long id;
    CUstreamAttrValue attribute[KEPT];
};

struct CUevent_st {
    unsigned flags;
    bool recorded;
    double us;
};

static struct CUstream_st legacy = {.id = 1}, per_thread = {.id = 2};
static unsigned long long next_id = 3;

static double now(void)
{
    struct timespec t;
    if (machine.time)
        return machine.modelled_us;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* NULL: there is no such stream. */
static struct CUstream_st *stream_of(CUstream stream)
{
    return !stream || stream == CU_STREAM_LEGACY ? &legacy
           : stream == CU_STREAM_PER_THREAD      ? &per_thread
           : handle_is(HANDLE_STREAM, stream)    ? stream
                                                 : NULL;
}

bool stream_known(CUstream stream)
{
    return stream_of(stream);
}

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*stream = handle_new(HANDLE_STREAM, sizeof **stream)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->flags = flags;
    (*stream)->priority = priority > 0 ? 0 : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
    (*stream)->id = next_id++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags)
{
    BEGIN;
    END(create(stream, flags, 0));
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    BEGIN;
    END(create(stream, flags, priority));
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
    BEGIN;
    END(handle_end(HANDLE_STREAM, stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    BEGIN_ON(stream);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
    BEGIN_ON(stream);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    BEGIN_ON(stream);
    END(!handle_is(HANDLE_EVENT, event)             ? CUDA_ERROR_INVALID_HANDLE
        : flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_INVALID_VALUE
                                                    : CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *user, unsigned flags)
{
    BEGIN_ON(stream);
    machine_end(CUDA_SUCCESS);
    if (!function || flags)
        return CUDA_ERROR_INVALID_VALUE;
    function(stream, CUDA_SUCCESS, user);
    return CUDA_SUCCESS;
}

/* What a stream is: a member of its struct. */
#define GET(name, type, member)                                 \
    CUresult CUDAAPI name(CUstream stream, type *value)         \
    {                                                           \
        BEGIN_ON(stream);                                       \
        ANSWER(asked(value), value, stream_of(stream)->member); \
    }
GET(cuStreamGetFlags, unsigned, flags)
GET(cuStreamGetPriority, int, priority)
GET(cuStreamGetId, unsigned long long, id)

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    BEGIN_ON(stream);
    machine_end(CUDA_SUCCESS);
    return cuCtxGetCurrent(context);
}

CUresult CUDAAPI cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    BEGIN_ON(stream);
    machine_end(CUDA_SUCCESS);
    return cuCtxGetDevice(device);
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
    BEGIN_ON(stream);
    const pinned_t *p = pinned_at(address);
    const bool known =
        flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || (flags == CU_MEM_ATTACH_SINGLE && stream);
    END(p && p->managed && known && (!bytes || bytes == p->bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- attributes ------------------------------------------------------------------------------- */

static bool attribute_ok(CUstreamAttrID id, const CUstreamAttrValue *value)
{
    switch (id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW: return !value->accessPolicyWindow.num_bytes; /* a T4 has no window */
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return value->syncPolicy >= CU_SYNC_POLICY_AUTO && value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
    case CU_STREAM_ATTRIBUTE_PRIORITY: return value->priority <= 0 && value->priority >= GREATEST_PRIORITY;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN: return value->memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    default: return true;
    }
}

static CUresult attribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *get, const CUstreamAttrValue *set)
{
    struct CUstream_st *s = stream_of(stream);
    if ((!get && !set) || (set && !attribute_ok(id, set)))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_STREAM_ATTRIBUTE_PRIORITY && set)
        s->priority = set->priority;
    else if (id == CU_STREAM_ATTRIBUTE_PRIORITY)
        *get = (CUstreamAttrValue){.priority = s->priority};
    else {
        int i = 0;
        while (i < KEPT && kept[i] != id)
            i++;
        if (i == KEPT)
            return CUDA_ERROR_INVALID_VALUE;
        if (set)
            s->attribute[i] = *set;
        else
            *get = s->attribute[i];
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    BEGIN_ON(stream);
    END(attribute(stream, id, NULL, value));
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)
{
    BEGIN_ON(stream);
    END(attribute(stream, id, value, NULL));
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from)
{
    BEGIN_ON(to);
    struct CUstream_st *a = stream_of(to), *b = stream_of(from);
    if (!b)
        END(CUDA_ERROR_INVALID_HANDLE);
    a->priority = b->priority;
    for (int i = 0; i < KEPT; i++)
        a->attribute[i] = b->attribute[i];
    END(CUDA_SUCCESS);
}

/* ---- capture: nothing is ever captured --------------------------------------------------------- */

static CUresult capture(CUstreamCaptureStatus *status)
{
    if (status)
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return status ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN_ON(stream);
    END(capture(status));
}

/* Where its status says that there is none, nothing else is written. Older forms have fewer arguments: stubs.cmake. */
CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                        const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count)
{
    BEGIN_ON(stream);
    (void)id, (void)graph, (void)nodes, (void)edges, (void)count;
    END(capture(status));
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    ALWAYS;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        END(CUDA_ERROR_INVALID_VALUE);
    const CUstreamCaptureMode old = current;
    current = *mode;
    *mode = old;
    END(CUDA_SUCCESS);
}

/* ---- events --------------------------------------------------------------------------------- */

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags)
{
    BEGIN;
    const unsigned all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!event || flags & ~all || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        END(CUDA_ERROR_INVALID_VALUE);
    *event = handle_new(HANDLE_EVENT, sizeof **event);
    if (*event)
        (*event)->flags = flags;
    END(*event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    BEGIN;
    END(handle_end(HANDLE_EVENT, event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static CUresult record(CUevent event)
{
    if (!handle_is(HANDLE_EVENT, event))
        return CUDA_ERROR_INVALID_HANDLE;
    event->recorded = true;
    event->us = now();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN_ON(stream);
    END(record(event));
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    BEGIN_ON(stream);
    END(flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_INVALID_VALUE : record(event));
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
    BEGIN;
    END(handle_is(HANDLE_EVENT, event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    BEGIN;
    END(handle_is(HANDLE_EVENT, event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* Its first form is the same: stubs.cmake. */
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    BEGIN;
    if (!ms)
        END(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(HANDLE_EVENT, start) || !handle_is(HANDLE_EVENT, end) || !start->recorded || !end->recorded ||
        (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        END(CUDA_ERROR_INVALID_HANDLE);
    *ms = (float)((end->us - start->us) * 1e-3);
    END(CUDA_SUCCESS);
}
