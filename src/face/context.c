/* SPDX-License-Identifier: MIT */
/*
 * context.c - the driver's start, its one device, and contexts.
 *
 * All contexts share the device's memory.  Each thread has a stack of current ones.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CURRENT = 64, DRIVER_VERSION = CUDA_VERSION };

struct CUctx_st {
    unsigned flags;
    unsigned long long id;
    size_t limit[16];
};

static struct CUctx_st primary = {.id = 1};
static int primary_count;
static unsigned long long next_id = 2;
static __thread CUcontext stack[MOST_CURRENT];
static __thread int depth;

bool context_current(void)
{
    return depth > 0 && stack[depth - 1];
}

/* ---- the driver -------------------------------------------------------------------------- */

CUresult CUDAAPI cuInit(unsigned flags)
{
    ALWAYS;
    END(flags ? CUDA_ERROR_INVALID_VALUE : machine_init());
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    ALWAYS;
    if (version)
        *version = DRIVER_VERSION;
    END(version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- the device ------------------------------------------------------------------------------ */

static CUresult device_ok(CUdevice device, const void *out)
{
    return !machine.initialized ? CUDA_ERROR_NOT_INITIALIZED
           : device != 0        ? CUDA_ERROR_INVALID_DEVICE
           : !out               ? CUDA_ERROR_INVALID_VALUE
                                : CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    ALWAYS;
    const CUresult r = device_ok(0, count);
    if (r == CUDA_SUCCESS)
        *count = 1;
    END(r);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    ALWAYS;
    const CUresult r = device_ok(ordinal, device);
    if (r == CUDA_SUCCESS)
        *device = 0;
    END(r);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, name);
    if (r == CUDA_SUCCESS && size > 0)
        snprintf(name, (size_t)size, "Tesla T4 (emulated)");
    END(r);
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
    const CUresult r = device_ok(device, bytes);
    if (r == CUDA_SUCCESS)
        *bytes = (size_t)MACHINE_MEMORY_MB << 20;
    END(r);
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
    const CUresult r = device_ok(device, id);
    if (r == CUDA_SUCCESS && size > 0)
        snprintf(id, (size_t)size, "0000:00:00.0");
    END(r);
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    ALWAYS;
    const CUresult r = device_ok(0, device && id ? device : NULL);
    if (r == CUDA_SUCCESS)
        *device = 0;
    END(r);
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
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0},
    };
    ALWAYS;
    const CUresult r = device_ok(device, value);
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
    (void)peer;
    const CUresult r = device_ok(device, can);
    if (r == CUDA_SUCCESS)
        *can = 0;
    END(r);
}

/* ---- contexts --------------------------------------------------------------------------------- */

static CUresult push(CUcontext context)
{
    if (depth == MOST_CURRENT)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, context);
    if (r == CUDA_SUCCESS) {
        *context = &primary;
        primary_count++;
    }
    END(r);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, &device);
    if (r == CUDA_SUCCESS && !primary_count)
        END(CUDA_ERROR_INVALID_CONTEXT);
    if (r == CUDA_SUCCESS && !--primary_count)
        machine_reset();
    END(r);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device)
{
    ALWAYS;
    const CUresult r = device_ok(device, &device);
    if (r == CUDA_SUCCESS)
        machine_reset();
    END(r);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    ALWAYS;
    const CUresult r = device_ok(device, flags && active ? flags : NULL);
    if (r == CUDA_SUCCESS)
        *flags = primary.flags, *active = primary_count > 0;
    END(r);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    ALWAYS;
    const CUresult r = device_ok(device, &device);
    if (r == CUDA_SUCCESS)
        primary.flags = flags;
    END(r);
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    const CUresult r = device_ok(device, context);
    if (r != CUDA_SUCCESS)
        return r;
    if (!(*context = calloc(1, sizeof **context)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*context)->flags = flags;
    (*context)->id = next_id++;
    return push(*context);
}

/* Without the parameters for green contexts. */
#undef cuCtxCreate
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    ALWAYS;
    END(create(context, flags, device));
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags,
                                CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags,
                                CUdevice device)
{
    ALWAYS;
    END(affinity || count ? CUDA_ERROR_NOT_SUPPORTED : create(context, flags, device));
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    ALWAYS;
    END(params && params->execAffinityParams ? CUDA_ERROR_NOT_SUPPORTED : create(context, flags, device));
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context)
{
    ALWAYS;
    if (!context || context == &primary)
        END(CUDA_ERROR_INVALID_CONTEXT);
    for (int i = 0; i < depth; i++)
        if (stack[i] == context) {
            memmove(stack + i, stack + i + 1, (size_t)(depth - i - 1) * sizeof *stack);
            depth--;
            i--;
        }
    free(context);
    machine_reset();
    END(CUDA_SUCCESS);
}

/* A context of one user, which leaves it. */
CUresult CUDAAPI cuCtxDetach(CUcontext context)
{
    return cuCtxDestroy(context);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context)
{
    ALWAYS;
    END(context ? push(context) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context)
{
    ALWAYS;
    if (!depth)
        END(CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (context)
        *context = stack[depth];
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context)
{
    ALWAYS;
    if (depth)
        depth--;
    END(context ? push(context) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    ALWAYS;
    if (context)
        *context = depth ? stack[depth - 1] : NULL;
    END(context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    ALWAYS;
    if (!context_current())
        END(CUDA_ERROR_INVALID_CONTEXT);
    if (device)
        *device = 0;
    END(device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    BEGIN;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    ALWAYS;
    (void)context;
    if (version)
        *version = 3020;
    END(version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id)
{
    ALWAYS;
    if (!context && depth)
        context = stack[depth - 1];
    if (context && id)
        *id = context->id;
    END(context && id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult CUDAAPI cuCtxGetFlags(unsigned *flags)
{
    BEGIN;
    if (flags)
        *flags = stack[depth - 1]->flags;
    END(flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxSetFlags(unsigned flags)
{
    BEGIN;
    stack[depth - 1]->flags = flags;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetLimit(size_t *value, CUlimit limit)
{
    BEGIN;
    if (!value || (unsigned)limit >= 16)
        END(CUDA_ERROR_INVALID_VALUE);
    *value = stack[depth - 1]->limit[limit];
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        *value = turing_memory_heap_bytes(machine.mem);
    else if (limit == CU_LIMIT_STACK_SIZE && !*value)
        *value = 1024;
    else if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && !*value)
        *value = 1 << 20;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    BEGIN;
    if ((unsigned)limit >= 16)
        END(CUDA_ERROR_INVALID_VALUE);
    stack[depth - 1]->limit[limit] = value;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && !turing_memory_set_heap(machine.mem, value, NULL))
        END(CUDA_ERROR_INVALID_VALUE);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *config)
{
    BEGIN;
    if (config)
        *config = CU_FUNC_CACHE_PREFER_NONE;
    END(config ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    BEGIN;
    (void)config;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuProfilerStart(void)
{
    ALWAYS;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuProfilerStop(void)
{
    ALWAYS;
    END(CUDA_SUCCESS);
}
