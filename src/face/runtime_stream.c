/* SPDX-License-Identifier: MIT */
/* runtime_stream.c - streams and events by the runtime's names. */
#include "runtime.h"

/* ---- streams -------------------------------------------------------------------------------- */

FORWARD(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate(stream, 0))
FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), cuStreamCreate(stream, flags))
FORWARD(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
        cuStreamCreateWithPriority(stream, flags, priority))
FORWARD(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
FORWARD(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
FORWARD(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(stream))
FORWARD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
        cuStreamWaitEvent(stream, event, flags))
FORWARD(cudaStreamGetPriority, (cudaStream_t stream, int *priority), cuStreamGetPriority(stream, priority))
FORWARD(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), cuStreamGetFlags(stream, flags))
FORWARD(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), cuStreamGetId(stream, id))
FORWARD(cudaStreamGetDevice, (cudaStream_t stream, int *device), cuStreamGetDevice(stream, device))
FORWARD(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
        cuStreamAttachMemAsync(stream, at(pointer), bytes, flags))
FORWARD(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t function, void *user, unsigned flags),
        cuStreamAddCallback(stream, (CUstreamCallback)function, user, flags))
FORWARD(cudaStreamSetAttribute, (cudaStream_t stream, cudaStreamAttrID id, const cudaStreamAttrValue *value),
        cuStreamSetAttribute(stream, (CUstreamAttrID)id, (const CUstreamAttrValue *)value))
FORWARD(cudaStreamGetAttribute, (cudaStream_t stream, cudaStreamAttrID id, cudaStreamAttrValue *value),
        cuStreamGetAttribute(stream, (CUstreamAttrID)id, (CUstreamAttrValue *)value))
FORWARD(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), cuStreamCopyAttributes(to, from))
FORWARD(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *user),
        cuLaunchHostFunc(stream, function, user))

/* ---- capture: nothing is ever captured ------------------------------------------------------ */

FORWARD(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
        cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
/* Where its status says that there is none, nothing else is written. Older forms have fewer arguments. */
FORWARD(cudaStreamGetCaptureInfo,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count),
        ((void)id, (void)graph, (void)nodes, (void)edges, (void)count,
         cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status)))
FORWARD(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
        cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))

/* ---- events ---------------------------------------------------------------------------------- */

FORWARD(cudaEventCreate, (cudaEvent_t * event), cuEventCreate(event, 0))
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), cuEventCreate(event, flags))
FORWARD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
FORWARD(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
        cuEventRecordWithFlags(event, stream, flags))
FORWARD(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
FORWARD(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
FORWARD(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
FORWARD(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime(ms, start, end))
