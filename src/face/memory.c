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

CUresult allocate(CUdeviceptr *address, size_t bytes)
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

static pinned_t *pinned;

pinned_t *pinned_at(CUdeviceptr address)
{
    for (pinned_t *p = pinned; p; p = p->next)
        if (address - address_of(p->pointer) < p->bytes)
            return p;
    return NULL;
}

bool is_pinned(CUdeviceptr address)
{
    return pinned_at(address);
}

CUresult pin(void *pointer, size_t bytes, bool ours, bool managed)
{
    pinned_t *p = calloc(1, sizeof *p);
    turing_error_t err;
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!turing_memory_bind(machine.mem, address_of(pointer), pointer, bytes, &err)) {
        free(p);
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    *p = (pinned_t){pointer, bytes, ours, managed, NULL, pinned};
    pinned = p;
    return CUDA_SUCCESS;
}

CUresult unpin(const void *pointer, bool ours, bool managed)
{
    pinned_t **at = &pinned;
    while (*at && (*at)->pointer != pointer)
        at = &(*at)->next;
    pinned_t *p = *at;
    if (!p || p->ours != ours || p->managed != managed)
        return CUDA_ERROR_INVALID_VALUE;
    turing_memory_free(machine.mem, address_of(pointer), NULL);
    *at = p->next;
    if (p->ours)
        free(p->pointer);
    free(p->advice);
    free(p);
    return CUDA_SUCCESS;
}

static CUresult pin_new(void **pointer, size_t bytes, bool managed)
{
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = NULL;
    if (bytes > (uint64_t)MACHINE_MEMORY_MB << 20)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!*pointer)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult r = pin(*pointer, bytes, true, managed);
    if (r != CUDA_SUCCESS)
        free(*pointer);
    return r;
}

CUresult release(CUdeviceptr address)
{
    uint64_t base, bytes;
    turing_error_t err;
    if (!address)
        return CUDA_SUCCESS;
    if (is_pinned(address))
        return unpin(host(address), true, true);
    const bool known = turing_memory_range(machine.mem, address, &base, &bytes);
    if (known && base == address)
        machine.used -= bytes < machine.used ? bytes : machine.used;
    const CUresult r = done(turing_memory_free(machine.mem, address, &err), &err);
    if (r == CUDA_SUCCESS) {
        share_end(address);
        pool_end(address);
    }
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
    size_t bytes;
    if (!pitch || !width || width > SIZE_MAX - PITCH || (element != 4 && element != 8 && element != 16))
        END(CUDA_ERROR_INVALID_VALUE);
    const size_t rounded = (width + PITCH - 1) / PITCH * PITCH;
    if (__builtin_mul_overflow(rounded, height, &bytes))
        END(CUDA_ERROR_INVALID_VALUE);
    const CUresult r = allocate(address, bytes);
    if (r == CUDA_SUCCESS)
        *pitch = rounded;
    END(r);
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
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    const CUresult r = address && known ? pin_new(&pointer, bytes, true) : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *address = address_of(pointer);
    END(r);
}

CUresult CUDAAPI cuMemAllocHost(void **pointer, size_t bytes)
{
    BEGIN;
    END(pin_new(pointer, bytes, false));
}

CUresult CUDAAPI cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    BEGIN;
    const unsigned all = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    END(flags & ~all ? CUDA_ERROR_INVALID_VALUE : pin_new(pointer, bytes, false));
}

CUresult CUDAAPI cuMemFreeHost(void *pointer)
{
    BEGIN;
    END(pointer ? unpin(pointer, true, false) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    BEGIN;
    const unsigned all = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) /* as the device's attributes say */
        END(CUDA_ERROR_NOT_SUPPORTED);
    END(!(flags & ~all) && bytes && is_mapped(address_of(pointer), bytes) ? pin(pointer, bytes, false, false)
                                                                          : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostUnregister(void *pointer)
{
    BEGIN;
    const CUresult r = pointer ? unpin(pointer, false, false) : CUDA_ERROR_INVALID_VALUE;
    END(r == CUDA_SUCCESS || !pointer ? r : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
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
    if (!unused || !total)
        END(CUDA_ERROR_INVALID_VALUE);
    *unused = all - machine.used;
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

/* The memory of all contexts is that of the current one. */
static CUresult context_of(void *out, CUdeviceptr address)
{
    if (!is_device(address))
        return CUDA_ERROR_INVALID_VALUE;
    *(CUcontext *)out = context_here();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    BEGIN;
    END(!out                                        ? CUDA_ERROR_INVALID_VALUE
        : attribute == CU_POINTER_ATTRIBUTE_CONTEXT ? context_of(out, address)
                                                    : attribute_of(out, attribute, address));
}

/* What does not apply is zero. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out,
                                        CUdeviceptr address)
{
    BEGIN;
    if (!count || !attributes || !out)
        END(CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < count; i++)
        if (!out[i])
            END(CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < count; i++)
        if ((attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT
                 ? context_of(out[i], address)
                 : attribute_of(out[i], attributes[i], address)) != CUDA_SUCCESS) {
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
