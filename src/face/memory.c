/* SPDX-License-Identifier: MIT */
/*
 * memory.c - memory of the device, and of the host where the device may use it: taken, given back, looked for.
 *
 * Memory of the host that the device may use - pinned, registered, managed - is bound at the
 * address that it has there, so that one pointer serves both.
 */
#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

bool is_device(CUdeviceptr address)
{
    uint64_t base, bytes;
    return turing_memory_range(machine.mem, address, &base, &bytes);
}

bool is_mapped(CUdeviceptr address, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = address / page * page;
    /* Nothing is written anywhere: the kernel only looks whether all of it is there. */
    return address && bytes <= UINTPTR_MAX - address &&
           (!msync((void *)first, address + bytes - first, MS_ASYNC) || errno != ENOMEM);
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
    const size_t asked = bytes;
    if (!(machine.checks & TURING_CHECK_MEMORY)) /* then what is a little out of bounds does no harm, as on a GPU */
        bytes = (bytes + ALLOCATION_STEP - 1) / ALLOCATION_STEP * ALLOCATION_STEP;
    *address = turing_memory_alloc(machine.mem, bytes);
    if (!*address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    machine.used += bytes;
    leak_begin(*address, asked);
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
    if (ours)
        leak_begin(address_of(pointer), bytes);
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
    leak_end(address_of(pointer));
    *at = p->next;
    if (p->ours)
        free(p->pointer);
    free(p->advice);
    free(p);
    return CUDA_SUCCESS;
}

CUresult pin_new(void **pointer, size_t bytes, bool managed)
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
