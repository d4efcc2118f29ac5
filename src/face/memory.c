/* SPDX-License-Identifier: MIT */
/*
 * memory.c - allocations of the driver's interface, and what is known of a pointer.
 *
 * Memory of the host that the device may use - pinned, registered, managed - is bound at the
 * address that it has there, so that one pointer serves both.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

enum { PITCH = 512, PAGE = 4096 };

bool is_device(CUdeviceptr address)
{
    uint64_t base, bytes;
    return turing_memory_range(machine.mem, address, &base, &bytes);
}

CUresult done(bool ok, const turing_error_t *err)
{
    if (!ok)
        machine_say("%s", err->text);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- allocations ----------------------------------------------------------------------- */

static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
    if (!address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *address = 0;
    if (bytes > ((uint64_t)MACHINE_MEMORY_MB << 20) - machine.used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(machine.checks & TURING_CHECK_MEMORY)) /* then what is a little out of bounds does no harm, as on a GPU */
        bytes = (bytes + PITCH - 1) / PITCH * PITCH;
    *address = turing_memory_alloc(machine.mem, bytes);
    if (!*address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    machine.used += bytes;
    return CUDA_SUCCESS;
}

typedef struct pinned {
    void *pointer;
    size_t bytes;
    bool ours, managed;
    struct pinned *next;
} pinned_t;

static pinned_t *pinned;

static pinned_t **find_pinned(const void *pointer)
{
    pinned_t **p = &pinned;
    while (*p && (*p)->pointer != pointer)
        p = &(*p)->next;
    return p;
}

/* The one that holds an address, or NULL. */
static const pinned_t *pinned_at(CUdeviceptr address)
{
    for (const pinned_t *p = pinned; p; p = p->next)
        if (address - address_of(p->pointer) < p->bytes)
            return p;
    return NULL;
}

bool is_pinned(CUdeviceptr address)
{
    return pinned_at(address);
}

static CUresult pin(void *pointer, size_t bytes, bool ours, bool managed)
{
    pinned_t *p = calloc(1, sizeof *p);
    turing_error_t err;
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!turing_memory_bind(machine.mem, address_of(pointer), pointer, bytes, &err)) {
        free(p);
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    *p = (pinned_t){pointer, bytes, ours, managed, pinned};
    pinned = p;
    return CUDA_SUCCESS;
}

static CUresult unpin(const void *pointer)
{
    pinned_t **at = find_pinned(pointer), *p = *at;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    turing_memory_free(machine.mem, address_of(pointer), NULL);
    *at = p->next;
    if (p->ours)
        free(p->pointer);
    free(p);
    return CUDA_SUCCESS;
}

static CUresult pin_new(void **pointer, size_t bytes, bool managed)
{
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!*pointer)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult r = pin(*pointer, bytes, true, managed);
    if (r != CUDA_SUCCESS)
        free(*pointer);
    return r;
}

/* Which the device sees at the same address. */
static CUresult host_alloc(void **pointer, size_t bytes)
{
    return pin_new(pointer, bytes, false);
}

static CUresult host_free(void *pointer)
{
    return pointer ? unpin(pointer) : CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address)
{
    uint64_t base, bytes;
    turing_error_t err;
    if (!address)
        return CUDA_SUCCESS;
    if (*find_pinned(host(address)))
        return unpin(host(address));
    const bool known = turing_memory_range(machine.mem, address, &base, &bytes);
    if (known && base == address)
        machine.used -= bytes < machine.used ? bytes : machine.used;
    const CUresult r = done(turing_memory_free(machine.mem, address, &err), &err);
    if (r == CUDA_SUCCESS)
        share_end(address);
    return r;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    BEGIN;
    END(allocate(address, bytes));
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    BEGIN;
    (void)element;
    if (!pitch)
        END(CUDA_ERROR_INVALID_VALUE);
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    END(allocate(address, *pitch * height));
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address)
{
    BEGIN;
    END(release(address));
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    BEGIN;
    void *pointer = NULL;
    (void)flags;
    const CUresult r = address ? pin_new(&pointer, bytes, true) : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *address = address_of(pointer);
    END(r);
}

CUresult CUDAAPI cuMemAllocHost(void **pointer, size_t bytes)
{
    BEGIN;
    END(host_alloc(pointer, bytes));
}

CUresult CUDAAPI cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    BEGIN;
    (void)flags;
    END(host_alloc(pointer, bytes));
}

CUresult CUDAAPI cuMemFreeHost(void *pointer)
{
    BEGIN;
    END(host_free(pointer));
}

CUresult CUDAAPI cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    BEGIN;
    (void)flags;
    END(pointer && bytes ? pin(pointer, bytes, false, false) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostUnregister(void *pointer)
{
    BEGIN;
    const CUresult r = unpin(pointer);
    END(r == CUDA_SUCCESS ? r : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *address, void *pointer, unsigned flags)
{
    BEGIN;
    if (!address || flags || !pinned_at(address_of(pointer)))
        END(CUDA_ERROR_INVALID_VALUE);
    *address = address_of(pointer);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    BEGIN;
    if (!flags || !pinned_at(address_of(pointer)))
        END(CUDA_ERROR_INVALID_VALUE);
    *flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemGetInfo(size_t *unused, size_t *total)
{
    BEGIN;
    const size_t all = (size_t)MACHINE_MEMORY_MB << 20;
    if (unused)
        *unused = all - machine.used;
    if (total)
        *total = all;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    BEGIN;
    uint64_t first, bytes;
    if (!turing_memory_range(machine.mem, address, &first, &bytes))
        END(CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = first;
    if (size)
        *size = bytes;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation where, unsigned flags,
                                    CUstream stream)
{
    BEGIN;
    (void)bytes, (void)where, (void)flags, (void)stream;
    END(is_device(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
    BEGIN;
    (void)bytes, (void)advice, (void)where;
    END(is_device(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- what a pointer is -------------------------------------------------------------------- */

static CUresult attribute_of(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    uint64_t base, bytes;
    const pinned_t *p = pinned_at(address);
    if (!turing_memory_range(machine.mem, address, &base, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = p && !p->managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = address; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = p ? host(address) : NULL;
        return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = base; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = p && p->managed; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)out = 1; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = base; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = bytes; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(void **)out = NULL; return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) /* which takes the lock itself */
        return is_device(address) ? cuCtxGetCurrent(out) : CUDA_ERROR_INVALID_VALUE;
    BEGIN;
    END(out ? attribute_of(out, attribute, address) : CUDA_ERROR_INVALID_VALUE);
}

/* What does not apply is zero. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out,
                                        CUdeviceptr address)
{
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    BEGIN;
    for (unsigned i = 0; i < count; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT)
            *(CUcontext *)out[i] = is_device(address) ? context : NULL;
        else if (attribute_of(out[i], attributes[i], address) != CUDA_SUCCESS) {
            const bool word =
                attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                attributes[i] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED;
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                *(int *)out[i] = -2; /* CU_DEVICE_INVALID */
            else
                memset(out[i], 0, word ? 4 : 8);
        }
    END(CUDA_SUCCESS);
}

/* ---- in the order of streams: pools ------------------------------------------------------------- */

static struct CUmemPoolHandle_st {
    cuuint64_t threshold;
} pool;

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(allocate(address, bytes));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool from, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(from ? allocate(address, bytes) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(release(address));
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    ALWAYS;
    if (!out || device)
        END(CUDA_ERROR_INVALID_VALUE);
    *out = &pool;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    ALWAYS;
    if (!out || device)
        END(CUDA_ERROR_INVALID_VALUE);
    *out = &pool;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool given)
{
    ALWAYS;
    END(device || !given ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    BEGIN;
    if (!out || !properties)
        END(CUDA_ERROR_INVALID_VALUE);
    *out = calloc(1, sizeof **out);
    END(*out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool given)
{
    BEGIN;
    if (!given || given == &pool)
        END(CUDA_ERROR_INVALID_VALUE);
    free(given);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool given, size_t bytes)
{
    BEGIN;
    (void)bytes;
    END(given ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool given, CUmemPool_attribute attribute, void *value)
{
    BEGIN;
    if (!given || !value)
        END(CUDA_ERROR_INVALID_VALUE);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        given->threshold = *(cuuint64_t *)value;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool given, CUmemPool_attribute attribute, void *value)
{
    BEGIN;
    if (!given || !value)
        END(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = 1; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = given->threshold; break;
    default: *(cuuint64_t *)value = machine.used; break;
    }
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool given, const CUmemAccessDesc *map, size_t count)
{
    BEGIN;
    (void)map, (void)count;
    END(given ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
