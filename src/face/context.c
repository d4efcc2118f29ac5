/* SPDX-License-Identifier: MIT */
/*
 * context.c - contexts, their limits and flags; where an entry point begins that needs one.
 *
 * All contexts share the device's memory.  Each thread has a stack of current ones.
 */
#include "findings.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CURRENT = 64, LIMITS = 16, STACK_BYTES = 1024, FIFO_BYTES = 1 << 20, L2_FETCH = 64, MOST_L2_FETCH = 128 };

struct CUctx_st {
    unsigned flags;
    unsigned long long id;
    CUfunc_cache cache;
    CUsharedconfig shared_config;
    size_t limit[LIMITS];
};

#define NEW_CONTEXT                                            \
    .shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, \
    .limit = {[CU_LIMIT_STACK_SIZE] = STACK_BYTES,             \
              [CU_LIMIT_PRINTF_FIFO_SIZE] = FIFO_BYTES,        \
              [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = L2_FETCH}

static struct CUctx_st primary = {.id = 1, NEW_CONTEXT};
static int primary_count;
static unsigned long long next_id = 2;
static __thread CUcontext stack[MOST_CURRENT];
static __thread int depth;

static bool is_live(CUcontext context)
{
    return context == &primary || handle_is(HANDLE_CONTEXT, context);
}

/* What is wrong with the current context. */
static CUresult current(void)
{
    return !depth || !stack[depth - 1] ? CUDA_ERROR_INVALID_CONTEXT
           : is_live(stack[depth - 1]) ? CUDA_SUCCESS
                                       : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_begin(const char *entry_point)
{
    machine_lock(entry_point);
    if (!machine.initialized)
        return machine_end(CUDA_ERROR_NOT_INITIALIZED);
    const CUresult context = current();
    if (context != CUDA_SUCCESS)
        return machine_end(context);
    findings_used();
    return machine.sticky == CUDA_SUCCESS ? CUDA_SUCCESS : machine_end(machine.sticky);
}

CUcontext context_here(void)
{
    return stack[depth - 1];
}

size_t context_stack_bytes(void)
{
    return context_here()->limit[CU_LIMIT_STACK_SIZE];
}

static CUresult push(CUcontext context)
{
    if (depth == MOST_CURRENT || !is_live(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

/* ---- the primary context ------------------------------------------------------------------------ */

static bool flags_ok(unsigned flags)
{
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(schedule & (schedule - 1));
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
    if (r == CUDA_SUCCESS) {
        machine_reset();
        primary = (struct CUctx_st){.id = 1, .flags = primary.flags, NEW_CONTEXT};
    }
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
    const CUresult r = device_ok(device, flags_ok(flags) ? &device : NULL);
    if (r == CUDA_SUCCESS)
        primary.flags = flags;
    END(r);
}

/* ---- contexts --------------------------------------------------------------------------------- */

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    const CUresult r = device_ok(device, flags_ok(flags) ? context : NULL);
    if (r != CUDA_SUCCESS)
        return r;
    if (!(*context = handle_new(HANDLE_CONTEXT, sizeof **context)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    **context = (struct CUctx_st){.id = next_id++, .flags = flags, NEW_CONTEXT};
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
    END(affinity || count ? not_served("a context of some multiprocessors") : create(context, flags, device));
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    ALWAYS;
    END(params && params->execAffinityParams ? not_served("a context of some multiprocessors")
                                             : create(context, flags, device));
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context)
{
    ALWAYS;
    if (!handle_is(HANDLE_CONTEXT, context))
        END(CUDA_ERROR_INVALID_CONTEXT);
    for (int i = 0; i < depth; i++)
        if (stack[i] == context) {
            memmove(stack + i, stack + i + 1, (size_t)(depth - i - 1) * sizeof *stack);
            depth--;
            i--;
        }
    handle_end(HANDLE_CONTEXT, context);
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
    END(push(context));
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
    if (context && !is_live(context))
        END(CUDA_ERROR_INVALID_CONTEXT);
    if (depth)
        depth--;
    END(context ? push(context) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    ALWAYS;
    ANSWER(asked(context), context, depth ? stack[depth - 1] : NULL);
}

static CUresult device_of(CUdevice *device, CUresult context)
{
    if (context != CUDA_SUCCESS)
        return context;
    if (device)
        *device = 0;
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    ALWAYS;
    END(device_of(device, current()));
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    ALWAYS;
    END(device_of(device, is_live(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT));
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    BEGIN;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context)
{
    BEGIN;
    END(is_live(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    ALWAYS;
    if (context && !is_live(context))
        END(CUDA_ERROR_INVALID_CONTEXT);
    ANSWER(asked(version), version, 3020);
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id)
{
    ALWAYS;
    if (!context && depth)
        context = stack[depth - 1];
    if (!is_live(context))
        END(CUDA_ERROR_INVALID_CONTEXT);
    ANSWER(asked(id), id, context->id);
}

/* ---- what a context has: flags, limits, configurations ------------------------------------------ */

CUresult CUDAAPI cuCtxGetFlags(unsigned *flags)
{
    BEGIN;
    ANSWER(asked(flags), flags, context_here()->flags);
}

CUresult CUDAAPI cuCtxSetFlags(unsigned flags)
{
    BEGIN;
    if (!flags_ok(flags))
        END(CUDA_ERROR_INVALID_VALUE);
    context_here()->flags = flags;
    END(CUDA_SUCCESS);
}

/* Whether a T4 has that limit, and the emulator what it limits. */
static CUresult limit_ok(CUlimit limit)
{
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY: return CUDA_SUCCESS;
    default: return (unsigned)limit < CU_LIMIT_MAX ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuCtxGetLimit(size_t *value, CUlimit limit)
{
    BEGIN;
    const CUresult r = value ? limit_ok(limit) : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *value =
            limit == CU_LIMIT_MALLOC_HEAP_SIZE ? turing_memory_heap_bytes(machine.mem) : context_here()->limit[limit];
    END(r);
}

/* A driver sets memory aside for the stacks of all threads that the device can hold. */
static CUresult set_stack(size_t bytes)
{
    const size_t rounded = (bytes + 15) / 16 * 16, threads = (size_t)TURING_T4_SMS * TURING_T4_WARPS * 32;
    if (bytes > TURING_MOST_LOCAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (rounded * threads > (size_t)MACHINE_MEMORY_MB << 20)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context_here()->limit[CU_LIMIT_STACK_SIZE] = rounded;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    BEGIN;
    const CUresult r = limit_ok(limit);
    if (r != CUDA_SUCCESS)
        END(r);
    if (limit == CU_LIMIT_STACK_SIZE)
        END(set_stack(value));
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        END(turing_memory_set_heap(machine.mem, value, NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if ((limit == CU_LIMIT_PRINTF_FIFO_SIZE && machine.printed) ||
        (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > MOST_L2_FETCH))
        END(CUDA_ERROR_INVALID_VALUE);
    context_here()->limit[limit] = value;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *config)
{
    BEGIN;
    ANSWER(asked(config), config, context_here()->cache);
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    BEGIN;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        END(CUDA_ERROR_INVALID_VALUE);
    context_here()->cache = config;
    END(CUDA_SUCCESS);
}

/* Of banks, whose width a T4 does not change. */
CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    BEGIN;
    ANSWER(asked(config), config, context_here()->shared_config);
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    BEGIN;
    END((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = GREATEST_PRIORITY;
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
