/* SPDX-License-Identifier: MIT */
/* runtime.c - the calls of libcudart that are calls of the driver by another name. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread cudaError_t last;
static __thread int ready;

CUresult runtime_ready(void)
{
    CUcontext context = NULL;
    if (ready && !cuCtxGetCurrent(&context) && context)
        return CUDA_SUCCESS;
    CUresult r = cuInit(0);
    if (!r && !cuCtxGetCurrent(&context) && context)
        ready = 1;
    else if (!r && !(r = cuDevicePrimaryCtxRetain(&context, 0)) && !(r = cuCtxSetCurrent(context)))
        ready = 1;
    return r;
}

cudaError_t runtime_keep(CUresult result)
{
    if (result)
        last = (cudaError_t)result;
    return (cudaError_t)result;
}

cudaError_t runtime_not_served(const char *name)
{
    const char *log = getenv("TURING_LOG");
    if (log && *log && strcmp(log, "0"))
        fprintf(stderr, "%s: not served\n", name);
    return last = cudaErrorNotSupported;
}

static CUdeviceptr at(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* ---- errors ------------------------------------------------------------------------------ */

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (unsigned i = 0; i < runtime_error_name_count; i++)
        if (runtime_error_names[i].value == error)
            return runtime_error_names[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    if (error == cudaErrorInvalidDeviceFunction)
        return "invalid device function";
    if (error == cudaErrorInvalidConfiguration)
        return "invalid configuration argument";
    return !cuGetErrorString((CUresult)error, &text) && text && strncmp(text, "CUDA_", 5) ? text
                                                                                          : cudaGetErrorName(error);
}

/* ---- the device ------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *count)
{
    const CUresult r = cuInit(0);
    return runtime_keep(r ? r : cuDeviceGetCount(count));
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    CALL(device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
}

cudaError_t cudaDeviceSynchronize(void)
{
    CALL(cuCtxSynchronize());
}

cudaError_t cudaDeviceReset(void)
{
    CALL(cuDevicePrimaryCtxReset(0));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const CUresult r = cuInit(0);
    return runtime_keep(r ? r : cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return runtime_keep(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult r = cuGetProcAddress(name, function, (int)version, flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return runtime_keep(r);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, status);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    CALL(cuDeviceGetPCIBusId(id, size, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    CALL(cuDeviceGetByPCIBusId(device, id));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CALL(cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    CALL(cuCtxSetLimit((CUlimit)limit, value));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    CALL(cuCtxGetLimit(value, (CUlimit)limit));
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}

#if RUNTIME_VERSION >= 13000 /* the older struct is not in these headers */
static int attribute(CUdevice_attribute a)
{
    int value = 0;
    cuDeviceGetAttribute(&value, a, 0);
    return value;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    const CUresult r = runtime_ready();
    if (r || device)
        return runtime_keep(r ? r : CUDA_ERROR_INVALID_DEVICE);
    memset(p, 0, sizeof *p);
    cuDeviceGetName(p->name, sizeof p->name, 0);
    cuDeviceGetUuid((CUuuid *)&p->uuid, 0);
    cuDeviceTotalMem(&p->totalGlobalMem, 0);
    p->sharedMemPerBlock = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p->sharedMemPerBlockOptin = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->sharedMemPerMultiprocessor = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p->regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p->memPitch = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p->maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p->maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    for (int i = 0; i < 3; i++) {
        p->maxThreadsDim[i] = attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
        p->maxGridSize[i] = attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
    }
    p->totalConstMem = (size_t)attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p->major = 7, p->minor = 5;
    p->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p->memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    p->unifiedAddressing = p->managedMemory = p->concurrentManagedAccess = p->canMapHostMemory = 1;
    p->concurrentKernels = p->cooperativeLaunch = p->streamPrioritiesSupported = p->memoryPoolsSupported = 1;
    p->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    return cudaSuccess;
}
#endif

/* ---- memory ------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    if (!pointer)
        return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    *pointer = NULL;
    CALL(bytes ? cuMemAlloc((CUdeviceptr *)pointer, bytes) : CUDA_SUCCESS);
}

cudaError_t cudaFree(void *pointer)
{
    CALL(cuMemFree(at(pointer)));
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    CALL(cuMemAllocManaged((CUdeviceptr *)pointer, bytes, flags));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    CALL(cuMemAllocPitch((CUdeviceptr *)pointer, pitch, width, height, 4));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    CALL(cuMemAllocHost(pointer, bytes));
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    CALL(cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t cudaFreeHost(void *pointer)
{
    CALL(cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    CALL(cuMemHostRegister(pointer, bytes, flags));
}

cudaError_t cudaHostUnregister(void *pointer)
{
    CALL(cuMemHostUnregister(pointer));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    CALL(cuMemHostGetDevicePointer((CUdeviceptr *)device, host, flags));
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    CALL(cuMemAllocAsync((CUdeviceptr *)pointer, bytes, stream));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    CALL(cuMemFreeAsync(at(pointer), stream));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    CALL(cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    CALL(cuMemPoolTrimTo(pool, bytes));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value)
{
    CALL(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)what, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value)
{
    CALL(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)what, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *map, size_t count)
{
    CALL(cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)map, count));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    CALL(cuIpcGetMemHandle((CUipcMemHandle *)handle, at(pointer)));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
    CUipcMemHandle same;
    memcpy(&same, &handle, sizeof same);
    CALL(cuIpcOpenMemHandle((CUdeviceptr *)pointer, same, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    CALL(cuIpcCloseMemHandle(at(pointer)));
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    CALL(cuMemGetInfo(unused, total));
}

static CUresult copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoD(at(to), from, bytes);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoH(to, at(from), bytes);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD(at(to), at(from), bytes);
    default: return cuMemcpy(at(to), at(from), bytes);
    }
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    CALL(copy(to, from, bytes, kind));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)stream;
    CALL(copy(to, from, bytes, kind));
}

/* Between devices, of which there is one. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    (void)stream;
    CALL(to_device || from_device ? CUDA_ERROR_INVALID_DEVICE : cuMemcpyDtoD(at(to), at(from), bytes));
}

static CUresult copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                          enum cudaMemcpyKind kind)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t y = 0; y < height && !r; y++)
        r = copy((char *)to + y * to_pitch, (const char *)from + y * from_pitch, width, kind);
    return r;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    CALL(copy_rows(to, to_pitch, from, from_pitch, width, height, kind));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)stream;
    CALL(copy_rows(to, to_pitch, from, from_pitch, width, height, kind));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    CALL(bytes ? cuMemsetD8(at(to), (unsigned char)value, bytes) : CUDA_SUCCESS);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    CALL(bytes ? cuMemsetD8(at(to), (unsigned char)value, bytes) : CUDA_SUCCESS);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *pointer)
{
    const CUresult r = runtime_ready();
    unsigned type = 0, managed = 0;
    memset(a, 0, sizeof *a);
    if (r)
        return runtime_keep(r);
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(pointer))) {
        a->type = cudaMemoryTypeUnregistered;
        a->hostPointer = (void *)(uintptr_t)pointer;
        return cudaSuccess;
    }
    cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at(pointer));
    a->type = managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    a->devicePointer = (void *)(uintptr_t)pointer;
    a->hostPointer = a->type == cudaMemoryTypeDevice ? NULL : a->devicePointer;
    return cudaSuccess;
}
