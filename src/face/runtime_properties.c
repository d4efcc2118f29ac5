/* SPDX-License-Identifier: MIT */
/* runtime_properties.c - cudaDeviceProp, as CUDA 12 and CUDA 13 lay it out. */
#include "runtime.h"

#include <stddef.h>
#include <string.h>

#if RUNTIME_VERSION < 13000
/* CUDA 12's, which the headers of CUDA 13 do not have. */
typedef struct properties {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int textures[40]; /* sizes of textures and surfaces */
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,
        unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
        maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
        singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,
        timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, reserved[63];
} properties_t;
_Static_assert(sizeof(properties_t) == 1032 && offsetof(properties_t, l2CacheSize) == 616 &&
                   offsetof(properties_t, memoryPoolsSupported) == 744,
               "the layout of CUDA 12");
#define ONLY_12(X)                        \
    X(clockRate, CLOCK_RATE)              \
    X(deviceOverlap, GPU_OVERLAP)         \
    X(memoryClockRate, MEMORY_CLOCK_RATE) \
    X(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
cudaError_t cudaGetDeviceProperties_v2(properties_t *p, int device);
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#else
typedef struct cudaDeviceProp properties_t;
#define ONLY_12(X)
#endif

/* Members that are attributes; the others are 0. */
#define ATTRIBUTES(X)                                                             \
    X(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                             \
    X(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                  \
    X(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)           \
    X(regsPerBlock, MAX_REGISTERS_PER_BLOCK)                                      \
    X(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)                    \
    X(warpSize, WARP_SIZE)                                                        \
    X(memPitch, MAX_PITCH)                                                        \
    X(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                                  \
    X(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)                \
    X(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)                  \
    X(maxThreadsDim[0], MAX_BLOCK_DIM_X)                                          \
    X(maxThreadsDim[1], MAX_BLOCK_DIM_Y)                                          \
    X(maxThreadsDim[2], MAX_BLOCK_DIM_Z)                                          \
    X(maxGridSize[0], MAX_GRID_DIM_X)                                             \
    X(maxGridSize[1], MAX_GRID_DIM_Y)                                             \
    X(maxGridSize[2], MAX_GRID_DIM_Z)                                             \
    X(totalConstMem, TOTAL_CONSTANT_MEMORY)                                       \
    X(major, COMPUTE_CAPABILITY_MAJOR)                                            \
    X(minor, COMPUTE_CAPABILITY_MINOR)                                            \
    X(textureAlignment, TEXTURE_ALIGNMENT)                                        \
    X(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)                             \
    X(multiProcessorCount, MULTIPROCESSOR_COUNT)                                  \
    X(canMapHostMemory, CAN_MAP_HOST_MEMORY)                                      \
    X(concurrentKernels, CONCURRENT_KERNELS)                                      \
    X(asyncEngineCount, ASYNC_ENGINE_COUNT)                                       \
    X(unifiedAddressing, UNIFIED_ADDRESSING)                                      \
    X(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)                                    \
    X(l2CacheSize, L2_CACHE_SIZE)                                                 \
    X(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)                     \
    X(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)                          \
    X(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)                            \
    X(managedMemory, MANAGED_MEMORY)                                              \
    X(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)                         \
    X(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)                   \
    X(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) \
    X(cooperativeLaunch, COOPERATIVE_LAUNCH)                                      \
    X(hostRegisterSupported, HOST_REGISTER_SUPPORTED)                             \
    X(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)                               \
    ONLY_12(X)

cudaError_t cudaGetDeviceProperties(properties_t *p, int device)
{
    int value;
    const CUresult r = runtime_ready();
    if (r || device || !p)
        return runtime_keep(r ? r : device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE);
    memset(p, 0, sizeof *p);
    cuDeviceGetName(p->name, sizeof p->name, 0);
    cuDeviceGetUuid((CUuuid *)&p->uuid, 0);
    cuDeviceTotalMem(&p->totalGlobalMem, 0);
#define X(member, attribute)                                          \
    cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##attribute, 0); \
    p->member = (__typeof__(p->member))value;
    ATTRIBUTES(X)
#undef X
    return cudaSuccess;
}
