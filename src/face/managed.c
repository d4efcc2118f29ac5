/* SPDX-License-Identifier: MIT */
/*
 * managed.c - managed memory: advice, prefetches, and variables.
 *
 * It lies where host and device see it alike, so nothing moves; what was said of each page is kept to be asked for.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, NOWHERE = -2 /* CU_DEVICE_INVALID */ };

/* ---- advice ------------------------------------------------------------------------------------- */

/* Where: 0 the device, -1 the host. */
static CUresult place_of(CUmemLocation l, int *where)
{
    switch (l.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: *where = 0; return l.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *where = CU_DEVICE_CPU; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* As calls had it before CUDA 13. */
static CUmemLocation of_device(CUdevice device)
{
    return device == CU_DEVICE_CPU ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}
                                   : (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
}

/* The pages of a range of managed memory. */
static CUresult pages_of(CUdeviceptr address, size_t bytes, pinned_t **out, size_t *first, size_t *end)
{
    pinned_t *p = pinned_at(address);
    if (!p || !p->managed || !bytes || bytes > p->bytes - (address - address_of(p->pointer)))
        return CUDA_ERROR_INVALID_VALUE;
    *out = p;
    *first = (address - address_of(p->pointer)) / PAGE;
    *end = (address - address_of(p->pointer) + bytes + PAGE - 1) / PAGE;
    return CUDA_SUCCESS;
}

static CUresult change(CUdeviceptr address, size_t bytes, CUmemLocation l, bool prefetch, CUmem_advise advice)
{
    pinned_t *p;
    size_t first, end;
    int where = 0;
    const bool somewhere = prefetch || advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    CUresult r = pages_of(address, bytes, &p, &first, &end);
    if (r == CUDA_SUCCESS && somewhere && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        r = place_of(l, &where);
    if (r != CUDA_SUCCESS)
        return r;
    if (!p->advice && !(p->advice = calloc((p->bytes + PAGE - 1) / PAGE, sizeof *p->advice)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (advice_t *a = p->advice + first; a < p->advice + end; a++) {
        bool *by = where ? &a->by_host : &a->by_device;
        if (prefetch)
            a->prefetched = true, a->prefetched_to = (signed char)where;
        else
            switch (advice) {
            case CU_MEM_ADVISE_SET_READ_MOSTLY: a->read_mostly = true; break;
            case CU_MEM_ADVISE_UNSET_READ_MOSTLY: a->read_mostly = false; break;
            case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: a->preferred = true, a->preferred_at = (signed char)where; break;
            case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: a->preferred = false; break;
            case CU_MEM_ADVISE_SET_ACCESSED_BY: *by = true; break;
            case CU_MEM_ADVISE_UNSET_ACCESSED_BY: *by = false; break;
            default: return CUDA_ERROR_INVALID_VALUE;
            }
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation where, unsigned flags,
                                    CUstream stream)
{
    BEGIN_ON(stream);
    END(flags ? CUDA_ERROR_INVALID_VALUE : change(address, bytes, where, true, 0));
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
    BEGIN;
    END(change(address, bytes, where, false, advice));
}

#undef cuMemPrefetchAsync
#undef cuMemAdvise
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice where, CUstream stream);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice where, CUstream stream)
{
    BEGIN_ON(stream);
    END(change(address, bytes, of_device(where), true, 0));
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice where);
CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice where)
{
    BEGIN;
    END(change(address, bytes, of_device(where), false, advice));
}

/* ---- what was advised ------------------------------------------------------------------------------ */

static const advice_t none;

static int preferred_of(const advice_t *a)
{
    return a->preferred ? a->preferred_at : NOWHERE;
}

static int prefetched_of(const advice_t *a)
{
    return a->prefetched ? a->prefetched_to : NOWHERE;
}

static int type_of(int where)
{
    return where == NOWHERE         ? CU_MEM_LOCATION_TYPE_INVALID
           : where == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                    : CU_MEM_LOCATION_TYPE_DEVICE;
}

/* Those that all pages of the range have been told to be accessed by; the rest of the list is NOWHERE. */
static CUresult accessed_by(int *out, size_t size, bool by_device, bool by_host)
{
    if (!size || size % sizeof *out)
        return CUDA_ERROR_INVALID_VALUE;
    size_t n = 0;
    if (by_device)
        out[n++] = 0;
    if (by_host && n < size / sizeof *out)
        out[n++] = CU_DEVICE_CPU;
    while (n < size / sizeof *out)
        out[n++] = NOWHERE;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(void *out, size_t size, CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes)
{
    pinned_t *p;
    size_t first, end;
    const CUresult r = out ? pages_of(address, bytes, &p, &first, &end) : CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        return r;
    const advice_t *a = p->advice ? p->advice + first : &none;
    bool read_mostly = true, by_device = true, by_host = true;
    int preferred = preferred_of(a), prefetched = prefetched_of(a);
    for (size_t i = 0; i < (p->advice ? end - first : 1); i++) {
        read_mostly &= a[i].read_mostly, by_device &= a[i].by_device, by_host &= a[i].by_host;
        preferred = preferred == preferred_of(&a[i]) ? preferred : NOWHERE;
        prefetched = prefetched == prefetched_of(&a[i]) ? prefetched : NOWHERE;
    }
    int value;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: value = read_mostly; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: value = preferred; break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return accessed_by(out, size, by_device, by_host);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: value = prefetched; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: value = type_of(preferred); break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: value = type_of(prefetched); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: value = preferred < 0 ? 0 : preferred; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: value = prefetched < 0 ? 0 : prefetched; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    if (size != sizeof value)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRangeGetAttribute(void *out, size_t size, CUmem_range_attribute attribute, CUdeviceptr address,
                                        size_t bytes)
{
    BEGIN;
    END(attribute_of(out, size, attribute, address, bytes));
}

CUresult CUDAAPI cuMemRangeGetAttributes(void **out, size_t *sizes, CUmem_range_attribute *attributes, size_t count,
                                         CUdeviceptr address, size_t bytes)
{
    BEGIN;
    if (!out || !sizes || !attributes || !count)
        END(CUDA_ERROR_INVALID_VALUE);
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = attribute_of(out[i], sizes[i], attributes[i], address, bytes);
    END(r);
}

/* ---- __managed__ variables ----------------------------------------------------------------------- */

static bool has_managed(const turing_module_t *code)
{
    const turing_symbol_t *y;
    for (size_t i = 0; (y = turing_module_symbol(code, i)); i++)
        if (y->managed)
            return true;
    return false;
}

/* The same bytes at the same address, which is one of the host's, too, from now on. */
static CUresult map_at(uint64_t address, size_t bytes)
{
    turing_error_t err;
    void *at =
        mmap(host(address), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED || at != host(address)) {
        if (at != MAP_FAILED)
            munmap(at, bytes);
        machine_say("the host has no room at 0x%llx for managed variables", (unsigned long long)address);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const CUresult r = done(turing_memory_read(machine.mem, address, at, bytes, &err), &err);
    if (r != CUDA_SUCCESS)
        return r;
    turing_memory_free(machine.mem, address, NULL);
    return pin(at, bytes, false, true);
}

CUresult managed_map(const turing_module_t *code)
{
    const turing_global_t *g;
    CUresult r = CUDA_SUCCESS;
    if (has_managed(code))
        for (size_t i = 0; (g = turing_module_global(code, i)) && r == CUDA_SUCCESS; i++)
            r = map_at(g->address, g->size);
    return r;
}

void managed_unmap(const turing_module_t *code)
{
    const turing_global_t *g;
    if (has_managed(code))
        for (size_t i = 0; (g = turing_module_global(code, i)); i++)
            if (unpin(host(g->address), false, true) == CUDA_SUCCESS)
                munmap(host(g->address), g->size);
}
