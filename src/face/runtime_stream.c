/* SPDX-License-Identifier: MIT */
/* runtime_stream.c - streams and events by the runtime's names. */
#include "runtime.h"

/* ---- streams -------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    CALL(cuStreamCreate(stream, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    CALL(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    CALL(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    CALL(cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    CALL(cuStreamDestroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CALL(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CALL(cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    CALL(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    CALL(cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    CALL(cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    CALL(cuStreamGetId(stream, id));
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    CALL(cuStreamGetDevice(stream, device));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes, unsigned flags)
{
    CALL(cuStreamAttachMemAsync(stream, (CUdeviceptr)(uintptr_t)pointer, bytes, flags));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *user, unsigned flags)
{
    CALL(cuStreamAddCallback(stream, (CUstreamCallback)function, user, flags));
}

/* ---- capture: nothing is ever captured ------------------------------------------------------ */

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

/* Where its status says that there is none, nothing else is written. Older forms have fewer arguments. */
#undef cudaStreamGetCaptureInfo
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    (void)id, (void)graph, (void)nodes, (void)edges, (void)count;
    return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CALL(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

/* ---- on the host ---------------------------------------------------------------------------- */

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user)
{
    CALL(cuLaunchHostFunc(stream, function, user));
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    CALL(cuEventCreate(event, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    CALL(cuEventCreate(event, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CALL(cuEventRecord(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    CALL(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CALL(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CALL(cuEventSynchronize(event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    CALL(cuEventDestroy(event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    CALL(cuEventElapsedTime(ms, start, end));
}
