/* SPDX-License-Identifier: MIT */
/*
 * pool.c - memory in the order of streams, and the pools that it comes from.
 *
 * A pool keeps nothing that was freed: what it has reserved is what is in use.
 */
#include "machine.h"

#include <stdlib.h>

struct CUmemPoolHandle_st {
    cuuint64_t threshold, used, most_used, most_reserved, limit; /* limit 0: the device's memory */
    int reuse[3];
};

#define NEW_POOL .reuse = {1, 1, 1}
static struct CUmemPoolHandle_st standard = {NEW_POOL};
static CUmemoryPool current = &standard;

typedef struct part { /* an allocation of a pool */
    CUdeviceptr address;
    size_t bytes;
    CUmemoryPool pool;
    struct part *next;
} part_t;

static part_t *parts;

static bool is_pool(CUmemoryPool pool)
{
    return pool == &standard || handle_is(HANDLE_POOL, pool);
}

static CUresult take(CUdeviceptr *address, size_t bytes, CUmemoryPool pool)
{
    if (!address || !bytes || !is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->limit && bytes > pool->limit - pool->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    part_t *p = malloc(sizeof *p);
    const CUresult r = p ? allocate(address, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        free(p);
        return r;
    }
    *p = (part_t){*address, bytes, pool, parts};
    parts = p;
    pool->used += bytes;
    if (pool->used > pool->most_used)
        pool->most_used = pool->used;
    if (pool->used > pool->most_reserved)
        pool->most_reserved = pool->used;
    return CUDA_SUCCESS;
}

void pool_end(CUdeviceptr address)
{
    part_t **at = &parts;
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    part_t *p = *at;
    if (!p)
        return;
    if (is_pool(p->pool))
        p->pool->used -= p->bytes;
    *at = p->next;
    free(p);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    BEGIN_ON(stream);
    END(take(address, bytes, current));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    BEGIN_ON(stream);
    END(take(address, bytes, pool));
}

/* ---- which pool is whose -------------------------------------------------------------------------- */

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    ALWAYS;
    ANSWER(device_ok(device, out), out, &standard);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    ALWAYS;
    ANSWER(device_ok(device, out), out, current);
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    ALWAYS;
    ANSWER(device_ok(device, is_pool(pool) ? pool : NULL), &current, pool);
}

static bool is_here(const CUmemLocation *where)
{
    return where && where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id == 0;
}

/* Of memory of the device; pools of the host's are not there. */
static CUresult location_ok(const CUmemLocation *where, CUmemAllocationType type, const void *out)
{
    return is_here(where) && type == CU_MEM_ALLOCATION_TYPE_PINNED ? device_ok(0, out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *where, CUmemAllocationType type)
{
    ALWAYS;
    ANSWER(location_ok(where, type, out), out, &standard);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *where, CUmemAllocationType type)
{
    ALWAYS;
    ANSWER(location_ok(where, type, out), out, current);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
    ALWAYS;
    ANSWER(location_ok(where, type, is_pool(pool) ? pool : NULL), &current, pool);
}

/* ---- pools ---------------------------------------------------------------------------------------- */

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *p)
{
    BEGIN;
    if (!out || !p || p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        END(CUDA_ERROR_INVALID_VALUE);
    if (p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && p->location.id)
        END(CUDA_ERROR_INVALID_DEVICE);
    if (!is_here(&p->location) || p->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        END(not_served("a pool of the host's memory, or for other processes"));
    if (!(*out = handle_new(HANDLE_POOL, sizeof **out)))
        END(CUDA_ERROR_OUT_OF_MEMORY);
    **out = (struct CUmemPoolHandle_st){.limit = p->maxSize, NEW_POOL};
    END(CUDA_SUCCESS);
}

/* What was taken of it stays until it is freed. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    BEGIN;
    if (!handle_is(HANDLE_POOL, pool))
        END(CUDA_ERROR_INVALID_VALUE);
    for (part_t *p = parts; p; p = p->next)
        if (p->pool == pool)
            p->pool = NULL;
    if (current == pool)
        current = &standard;
    handle_end(HANDLE_POOL, pool);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    BEGIN;
    (void)bytes;
    END(is_pool(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    BEGIN;
    if (!is_pool(pool) || !value)
        END(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value != 0;
        END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: /* these begin anew, with 0 only */
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value)
            END(CUDA_ERROR_INVALID_VALUE);
        *(attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? &pool->most_used : &pool->most_reserved) = pool->used;
        END(CUDA_SUCCESS);
    default: END(CUDA_ERROR_INVALID_VALUE);
    }
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    BEGIN;
    if (!is_pool(pool) || !value)
        END(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->most_reserved; END(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->most_used; END(CUDA_SUCCESS);
    default: END(CUDA_ERROR_INVALID_VALUE);
    }
}

/* The device may always access its own pools, and there is no other. */
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    BEGIN;
    if (!is_pool(pool) || (count && !map))
        END(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        if (!is_here(&map[i].location))
            END(CUDA_ERROR_INVALID_DEVICE);
        else if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            END(CUDA_ERROR_INVALID_VALUE);
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
    BEGIN;
    if (!flags || !is_pool(pool) || !where)
        END(CUDA_ERROR_INVALID_VALUE);
    if (!is_here(where))
        END(CUDA_ERROR_INVALID_DEVICE);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    END(CUDA_SUCCESS);
}
