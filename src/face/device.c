/* SPDX-License-Identifier: MIT */
/* device.c - the driver's start and its one device. */
#include "machine.h"

#include <string.h>

enum { DRIVER_VERSION = CUDA_VERSION };

/* ---- the driver -------------------------------------------------------------------------- */

CUresult CUDAAPI cuInit(unsigned flags)
{
    ALWAYS;
    END(flags ? CUDA_ERROR_INVALID_VALUE : machine_init());
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    ALWAYS;
    ANSWER(asked(version), version, DRIVER_VERSION);
}

/* ---- the device ------------------------------------------------------------------------------ */

CUresult device_ok(CUdevice device, const void *out)
{
    return !machine.initialized ? CUDA_ERROR_NOT_INITIALIZED
           : device != 0        ? CUDA_ERROR_INVALID_DEVICE
           : !out               ? CUDA_ERROR_INVALID_VALUE
                                : CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    ALWAYS;
    ANSWER(device_ok(0, count), count, 1);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    ALWAYS;
    ANSWER(device_ok(ordinal, device), device, 0);
}

/* As many characters as there is room for. */
static CUresult put(char *out, int size, CUdevice device, const char *text)
{
    const CUresult r = device_ok(device, out);
    if (r != CUDA_SUCCESS || size <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)size, "%s", text);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device)
{
    ALWAYS;
    END(put(name, size, device, "Tesla T4 (emulated)"));
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, uuid);
    if (r == CUDA_SUCCESS)
        memcpy(uuid->bytes, "turing-emulated", sizeof uuid->bytes);
    END(r);
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    ALWAYS;
    ANSWER(device_ok(device, bytes), bytes, (size_t)MACHINE_MEMORY_MB << 20);
}

CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, major && minor ? major : NULL);
    if (r == CUDA_SUCCESS)
        *major = 7, *minor = 5;
    END(r);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    ALWAYS;
    END(put(id, size, device, "0000:00:00.0"));
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    ALWAYS;
    ANSWER(device_ok(0, device && id ? device : NULL), device, 0);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    /* Those of a T4 that are not 0: what it cannot do, and what the emulator does not. */
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } t4[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, TURING_T4_SHARED},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, TURING_T4_SHARED},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, TURING_T4_REGISTERS},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, TURING_T4_REGISTERS},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, TURING_T4_MHZ * 1000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 5001000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 32 * TURING_T4_WARPS},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, TURING_T4_BLOCKS},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, TURING_T4_SMS},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 5},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
    };
    ALWAYS;
    const bool known = attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX;
    const CUresult r = device_ok(device, known ? value : NULL);
    if (r == CUDA_SUCCESS) {
        *value = 0;
        for (size_t i = 0; i < sizeof t4 / sizeof *t4; i++)
            if (t4[i].attribute == attribute)
                *value = t4[i].value;
    }
    END(r);
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ALWAYS;
    ANSWER(device_ok(device ? device : peer, can), can, 0);
}
