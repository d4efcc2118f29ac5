/* SPDX-License-Identifier: MIT */
/* allocation.c - entry points that allocate, register and free, and what is left. */
#include "machine.h"

/* Memory that is freed may be a file, or of a pool. */
static CUresult release(CUdeviceptr address)
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
        leak_end(address);
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
    if (!pitch || !width || width > SIZE_MAX - ALLOCATION_STEP || (element != 4 && element != 8 && element != 16))
        END(CUDA_ERROR_INVALID_VALUE);
    const size_t rounded = (width + ALLOCATION_STEP - 1) / ALLOCATION_STEP * ALLOCATION_STEP;
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

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    BEGIN_ON(stream);
    END(address ? release(address) : CUDA_ERROR_INVALID_VALUE);
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
