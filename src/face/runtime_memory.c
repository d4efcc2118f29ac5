/* SPDX-License-Identifier: MIT */
/* runtime_memory.c - memory by the runtime's names: allocations, pools, copies, fills. */
#include "runtime.h"

#include <string.h>

#define OUT(pointer) (CUdeviceptr *)(pointer)

/* ---- allocations --------------------------------------------------------------------------- */

static CUresult allocate(void **pointer, size_t bytes)
{
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = NULL;
    return bytes ? cuMemAlloc(OUT(pointer), bytes) : CUDA_SUCCESS;
}

/* As an extent of rows, one after the other. */
static CUresult allocate_3d(struct cudaPitchedPtr *p, struct cudaExtent e)
{
    void *pointer = NULL;
    size_t pitch, rows;
    if (!p || __builtin_mul_overflow(e.height, e.depth, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult r = cuMemAllocPitch(OUT(&pointer), &pitch, e.width, rows, 4);
    if (!r)
        *p = (struct cudaPitchedPtr){pointer, pitch, e.width, e.height};
    return r;
}

FORWARD(cudaMalloc, (void **pointer, size_t bytes), allocate(pointer, bytes))
FORWARD(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),
        cuMemAllocPitch(OUT(pointer), pitch, width, height, 4))
FORWARD(cudaMalloc3D, (struct cudaPitchedPtr * p, struct cudaExtent e), allocate_3d(p, e))
FORWARD(cudaFree, (void *pointer), cuMemFree(at(pointer)))
FORWARD(cudaMallocManaged, (void **pointer, size_t bytes, unsigned flags),
        cuMemAllocManaged(OUT(pointer), bytes, flags))
FORWARD(cudaMallocHost, (void **pointer, size_t bytes), cuMemAllocHost(pointer, bytes))
FORWARD(cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags), cuMemHostAlloc(pointer, bytes, flags))
FORWARD(cudaFreeHost, (void *pointer), cuMemFreeHost(pointer))
FORWARD(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags), cuMemHostRegister(pointer, bytes, flags))
FORWARD(cudaHostUnregister, (void *pointer), cuMemHostUnregister(pointer))
FORWARD(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags),
        cuMemHostGetDevicePointer(OUT(device), host, flags))
FORWARD(cudaHostGetFlags, (unsigned *flags, void *host), cuMemHostGetFlags(flags, host))
FORWARD(cudaMemGetInfo, (size_t * unused, size_t *total), cuMemGetInfo(unused, total))

/* Of no attribute for a pointer that CUDA does not know. */
static CUresult attributes_of(struct cudaPointerAttributes *a, const void *pointer)
{
    unsigned type = 0, managed = 0;
    if (!a)
        return CUDA_ERROR_INVALID_VALUE;
    memset(a, 0, sizeof *a);
    a->hostPointer = (void *)(uintptr_t)pointer;
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(pointer)))
        return CUDA_SUCCESS; /* cudaMemoryTypeUnregistered */
    cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at(pointer));
    a->type = managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    a->devicePointer = (void *)(uintptr_t)pointer;
    if (a->type == cudaMemoryTypeDevice)
        a->hostPointer = NULL;
    return CUDA_SUCCESS;
}
FORWARD(cudaPointerGetAttributes, (struct cudaPointerAttributes * a, const void *pointer), attributes_of(a, pointer))

/* ---- pools ---------------------------------------------------------------------------------- */

FORWARD(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream),
        cuMemAllocAsync(OUT(pointer), bytes, stream))
FORWARD(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
        cuMemAllocFromPoolAsync(OUT(pointer), bytes, pool, stream))
FORWARD(cudaFreeAsync, (void *pointer, cudaStream_t stream), cuMemFreeAsync(at(pointer), stream))
FORWARD(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetDefaultMemPool(pool, device))
FORWARD(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), cuDeviceGetMemPool(pool, device))
FORWARD(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), cuDeviceSetMemPool(device, pool))
FORWARD(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties),
        cuMemPoolCreate(pool, (const CUmemPoolProps *)properties))
FORWARD(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
FORWARD(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes), cuMemPoolTrimTo(pool, bytes))
FORWARD(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value),
        cuMemPoolSetAttribute(pool, (CUmemPool_attribute)what, value))
FORWARD(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value),
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)what, value))
FORWARD(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *map, size_t count),
        cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)map, count))
FORWARD(cudaMemPoolGetAccess, (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *where),
        cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool, (CUmemLocation *)where))
FORWARD(cudaMemGetDefaultMemPool,
        (cudaMemPool_t * pool, struct cudaMemLocation *where, enum cudaMemAllocationType type),
        cuMemGetDefaultMemPool(pool, (CUmemLocation *)where, (CUmemAllocationType)type))
FORWARD(cudaMemGetMemPool, (cudaMemPool_t * pool, struct cudaMemLocation *where, enum cudaMemAllocationType type),
        cuMemGetMemPool(pool, (CUmemLocation *)where, (CUmemAllocationType)type))
FORWARD(cudaMemSetMemPool, (struct cudaMemLocation * where, enum cudaMemAllocationType type, cudaMemPool_t pool),
        cuMemSetMemPool((CUmemLocation *)where, (CUmemAllocationType)type, pool))

/* ---- memory of other processes ---------------------------------------------------------------- */

static CUresult open_shared(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
    CUipcMemHandle same;
    memcpy(&same, &handle, sizeof same);
    return cuIpcOpenMemHandle(OUT(pointer), same, flags);
}

FORWARD(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer),
        cuIpcGetMemHandle((CUipcMemHandle *)handle, at(pointer)))
FORWARD(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned flags),
        open_shared(pointer, handle, flags))
FORWARD(cudaIpcCloseMemHandle, (void *pointer), cuIpcCloseMemHandle(at(pointer)))

/* ---- managed memory --------------------------------------------------------------------------- */

static CUmemLocation location(struct cudaMemLocation l)
{
    return (CUmemLocation){(CUmemLocationType)l.type, l.id};
}

#if RUNTIME_VERSION < 13000
#define ADVISE cudaMemAdvise_v2
#define PREFETCH cudaMemPrefetchAsync_v2
cudaError_t ADVISE(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where);
cudaError_t PREFETCH(const void *pointer, size_t bytes, struct cudaMemLocation where, unsigned flags,
                     cudaStream_t stream);
/* By a device's number. The headers of CUDA 13 have other types for these names. */
static struct cudaMemLocation of_device(int device)
{
    return (struct cudaMemLocation){device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                    device == cudaCpuDeviceId ? 0 : device};
}
cudaError_t advise_12(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                      int device) __asm__("cudaMemAdvise");
cudaError_t prefetch_12(const void *pointer, size_t bytes, int device,
                        cudaStream_t stream) __asm__("cudaMemPrefetchAsync");
FORWARD(advise_12, (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device),
        ADVISE(pointer, bytes, advice, of_device(device)))
FORWARD(prefetch_12, (const void *pointer, size_t bytes, int device, cudaStream_t stream),
        PREFETCH(pointer, bytes, of_device(device), 0, stream))
#else
#define ADVISE cudaMemAdvise
#define PREFETCH cudaMemPrefetchAsync
#endif
FORWARD(ADVISE, (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where),
        cuMemAdvise(at(pointer), bytes, (CUmem_advise)advice, location(where)))
FORWARD(PREFETCH,
        (const void *pointer, size_t bytes, struct cudaMemLocation where, unsigned flags, cudaStream_t stream),
        cuMemPrefetchAsync(at(pointer), bytes, location(where), flags, stream))
FORWARD(cudaMemRangeGetAttribute,
        (void *out, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer, size_t bytes),
        cuMemRangeGetAttribute(out, size, (CUmem_range_attribute)attribute, at(pointer), bytes))
FORWARD(cudaMemRangeGetAttributes,
        (void **out, size_t *sizes, enum cudaMemRangeAttribute *attributes, size_t count, const void *pointer,
         size_t bytes),
        cuMemRangeGetAttributes(out, sizes, (CUmem_range_attribute *)attributes, count, at(pointer), bytes))

/* ---- copies ------------------------------------------------------------------------------------ */

static CUmemorytype from_type(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype to_type(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

static CUresult copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(at(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(to, at(from), bytes, stream);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(at(to), at(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return cuMemcpyAsync(at(to), at(from), bytes, stream);
    default: return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

static CUresult copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                        enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const CUDA_MEMCPY2D c = {.srcMemoryType = from_type(kind),
                             .srcHost = from,
                             .srcDevice = at(from),
                             .srcPitch = from_pitch,
                             .dstMemoryType = to_type(kind),
                             .dstHost = to,
                             .dstDevice = at(to),
                             .dstPitch = to_pitch,
                             .WidthInBytes = width,
                             .Height = height};
    return !is_kind(kind)                           ? (CUresult)cudaErrorInvalidMemcpyDirection
           : width > to_pitch || width > from_pitch ? (CUresult)cudaErrorInvalidPitchValue
                                                    : cuMemcpy2DAsync(&c, stream);
}

static CUresult copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->srcArray || p->dstArray)
        return (CUresult)runtime_not_served("a copy of an array");
    if (!is_kind(p->kind))
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    const bool many_rows = p->extent.height > 1 || p->extent.depth > 1;
    if (many_rows && (p->extent.width > p->srcPtr.pitch || p->extent.width > p->dstPtr.pitch))
        return (CUresult)cudaErrorInvalidPitchValue;
    const CUDA_MEMCPY3D c = {.srcXInBytes = p->srcPos.x,
                             .srcY = p->srcPos.y,
                             .srcZ = p->srcPos.z,
                             .srcMemoryType = from_type(p->kind),
                             .srcHost = p->srcPtr.ptr,
                             .srcDevice = at(p->srcPtr.ptr),
                             .srcPitch = p->srcPtr.pitch,
                             .srcHeight = p->srcPtr.ysize,
                             .dstXInBytes = p->dstPos.x,
                             .dstY = p->dstPos.y,
                             .dstZ = p->dstPos.z,
                             .dstMemoryType = to_type(p->kind),
                             .dstHost = p->dstPtr.ptr,
                             .dstDevice = at(p->dstPtr.ptr),
                             .dstPitch = p->dstPtr.pitch,
                             .dstHeight = p->dstPtr.ysize,
                             .WidthInBytes = p->extent.width,
                             .Height = p->extent.height,
                             .Depth = p->extent.depth};
    return cuMemcpy3DAsync(&c, stream);
}

/* Between devices, of which there is one. */
static CUresult copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
    return to_device || from_device ? CUDA_ERROR_INVALID_DEVICE : cuMemcpyDtoDAsync(at(to), at(from), bytes, stream);
}

/* With a stream, and without. */
#define BOTH(name, function, parameters, ...)                \
    FORWARD(name, (parameters), function(__VA_ARGS__, NULL)) \
    FORWARD(name##Async, (parameters, cudaStream_t stream), function(__VA_ARGS__, stream))
#define LIST(...) __VA_ARGS__
BOTH(cudaMemcpy, copy, LIST(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind), to, from, bytes, kind)
BOTH(cudaMemcpy2D, copy_2d,
     LIST(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
          enum cudaMemcpyKind kind),
     to, to_pitch, from, from_pitch, width, height, kind)
BOTH(cudaMemcpy3D, copy_3d, LIST(const struct cudaMemcpy3DParms *p), p)
BOTH(cudaMemcpyPeer, copy_peer, LIST(void *to, int to_device, const void *from, int from_device, size_t bytes), to,
     to_device, from, from_device, bytes)

/* ---- fills -------------------------------------------------------------------------------------- */

static CUresult fill(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return cuMemsetD8Async(at(to), (unsigned char)value, bytes, stream);
}

static CUresult fill_2d(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return cuMemsetD2D8Async(at(to), pitch, (unsigned char)value, width, height, stream);
}

static CUresult fill_3d(struct cudaPitchedPtr p, int value, struct cudaExtent e, cudaStream_t stream)
{
    CUresult r = e.depth > 1 && e.height > p.ysize ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t z = 0; z < e.depth && !r && e.width && e.height; z++)
        r = fill_2d((char *)p.ptr + z * p.pitch * p.ysize, p.pitch, value, e.width, e.height, stream);
    return r;
}

BOTH(cudaMemset, fill, LIST(void *to, int value, size_t bytes), to, value, bytes)
BOTH(cudaMemset2D, fill_2d, LIST(void *to, size_t pitch, int value, size_t width, size_t height), to, pitch, value,
     width, height)
BOTH(cudaMemset3D, fill_3d, LIST(struct cudaPitchedPtr p, int value, struct cudaExtent e), p, value, e)
