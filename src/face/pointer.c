/* SPDX-License-Identifier: MIT */
/* pointer.c - entry points that tell what a pointer is. */
#include "machine.h"

#include <string.h>

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
