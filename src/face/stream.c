/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams and events.
 *
 * Work is done when it is enqueued, so a stream is never busy.  An event holds the time of its
 * record: modelled time if kernels are timed, else the host's.
 */
#include "machine.h"

#include <stdlib.h>
#include <time.h>

struct CUstream_st {
    unsigned flags;
    int priority;
    unsigned long long id;
};

struct CUevent_st {
    unsigned flags;
    bool recorded;
    double us;
};

static unsigned long long next_id = 3;

static double now(void)
{
    struct timespec t;
    if (machine.time)
        return machine.modelled_us;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are no pointers. */
static bool is_own(CUstream stream)
{
    return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*stream = calloc(1, sizeof **stream)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    **stream = (struct CUstream_st){flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, next_id++};
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
    if (!is_own(stream))
        END(CUDA_ERROR_INVALID_HANDLE);
    free(stream);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    BEGIN;
    (void)stream;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
    BEGIN;
    (void)stream;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    BEGIN;
    (void)stream, (void)flags;
    END(event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *user, unsigned flags)
{
    BEGIN;
    machine_end(CUDA_SUCCESS);
    if (!function || flags)
        return CUDA_ERROR_INVALID_VALUE;
    function(stream, CUDA_SUCCESS, user);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    BEGIN;
    if (flags)
        *flags = is_own(stream) ? stream->flags : 0;
    END(flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int *priority)
{
    BEGIN;
    if (priority)
        *priority = is_own(stream) ? stream->priority : 0;
    END(priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long *id)
{
    BEGIN;
    if (id)
        *id = is_own(stream) ? stream->id : stream == CU_STREAM_PER_THREAD ? 2 : 1;
    END(id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

CUresult CUDAAPI cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    (void)stream;
    return cuCtxGetDevice(device);
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
    BEGIN;
    (void)stream, (void)bytes, (void)flags;
    END(is_device(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Nothing is ever captured. */
CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN;
    (void)stream;
    if (status)
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
    END(status ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    ALWAYS;
    if (!mode)
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
    if (!event)
        END(CUDA_ERROR_INVALID_VALUE);
    *event = calloc(1, sizeof **event);
    if (*event)
        (*event)->flags = flags;
    END(*event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    BEGIN;
    if (!event)
        END(CUDA_ERROR_INVALID_HANDLE);
    free(event);
    END(CUDA_SUCCESS);
}

static CUresult record(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    event->recorded = true;
    event->us = now();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(record(event));
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    BEGIN;
    (void)stream, (void)flags;
    END(record(event));
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
    BEGIN;
    END(event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    BEGIN;
    END(event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start || !end || !start->recorded || !end->recorded || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *ms = (float)((end->us - start->us) * 1e-3);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end) /* _v2 */
{
    BEGIN;
    END(elapsed(ms, start, end));
}

#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    BEGIN;
    END(elapsed(ms, start, end));
}
