/* SPDX-License-Identifier: MIT */
/* copy.c - copies and fills of the driver's interface. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies --------------------------------------------------------------------------------- */

static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    turing_error_t err;
    if (!bytes)
        return CUDA_SUCCESS;
    const bool to_device = is_device(to), from_device = is_device(from);
    if (to_device && from_device)
        return done(turing_memory_copy(machine.mem, to, from, bytes, &err), &err);
    if (to_device)
        return done(turing_memory_write(machine.mem, to, host(from), bytes, &err), &err);
    if (from_device)
        return done(turing_memory_read(machine.mem, from, host(to), bytes, &err), &err);
    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    memmove(host(to), host(from), bytes);
    return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, bool to_device, CUdeviceptr from, bool from_device, size_t bytes)
{
    if (bytes && ((to_device && !is_device(to)) || (from_device && !is_device(from)))) {
        machine_say("a copy %s 0x%llx, where no device memory is", to_device && !is_device(to) ? "to" : "from",
                    to_device && !is_device(to) ? to : from);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return copy_any(to, from, bytes);
}

#define COPY(name, parameters, ...)    \
    CUresult CUDAAPI name parameters   \
    {                                  \
        BEGIN;                         \
        END(copy(__VA_ARGS__, bytes)); \
    }
#define COPY_IN(name, parameters, ...) \
    CUresult CUDAAPI name parameters   \
    {                                  \
        BEGIN;                         \
        (void)stream;                  \
        END(copy(__VA_ARGS__, bytes)); \
    }
COPY(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, false, from, false)
COPY(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes), to, true, address_of(from), false)
COPY(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes), address_of(to), false, from, true)
COPY(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, true, from, true)
COPY_IN(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, false, from, false)
COPY_IN(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), to, true,
        address_of(from), false)
COPY_IN(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), address_of(to), false, from,
        true)
COPY_IN(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, true, from, true)

static CUresult copy_box(const CUDA_MEMCPY3D *c)
{
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    const CUdeviceptr from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? address_of(c->srcHost) : c->srcDevice,
                      to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? address_of(c->dstHost) : c->dstDevice;
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            const CUresult r = copy_any(
                to + c->dstXInBytes + c->dstPitch * (c->dstY + y + c->dstHeight * (c->dstZ + z)),
                from + c->srcXInBytes + c->srcPitch * (c->srcY + y + c->srcHeight * (c->srcZ + z)), c->WidthInBytes);
            if (r != CUDA_SUCCESS)
                return r;
        }
    return CUDA_SUCCESS;
}

static CUresult copy_rectangle(const CUDA_MEMCPY2D *c)
{
    const CUDA_MEMCPY3D box = {.srcXInBytes = c->srcXInBytes,
                               .srcY = c->srcY,
                               .srcMemoryType = c->srcMemoryType,
                               .srcHost = c->srcHost,
                               .srcDevice = c->srcDevice,
                               .srcPitch = c->srcPitch,
                               .dstXInBytes = c->dstXInBytes,
                               .dstY = c->dstY,
                               .dstMemoryType = c->dstMemoryType,
                               .dstHost = c->dstHost,
                               .dstDevice = c->dstDevice,
                               .dstPitch = c->dstPitch,
                               .WidthInBytes = c->WidthInBytes,
                               .Height = c->Height,
                               .Depth = 1};
    return copy_box(&box);
}

CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D *c)
{
    BEGIN;
    END(c ? copy_rectangle(c) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *c)
{
    BEGIN;
    END(c ? copy_rectangle(c) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(c ? copy_rectangle(c) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemcpy3D(const CUDA_MEMCPY3D *c)
{
    BEGIN;
    END(c ? copy_box(c) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D *c, CUstream stream)
{
    BEGIN;
    (void)stream;
    END(c ? copy_box(c) : CUDA_ERROR_INVALID_VALUE);
}

/* ---- fills ------------------------------------------------------------------------------------ */

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned size, size_t width, size_t height)
{
    turing_error_t err;
    uint8_t *row = malloc(width * size + 1);
    if (!row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < width; i++)
        memcpy(row + i * size, &value, size);
    CUresult r = CUDA_SUCCESS;
    for (size_t y = 0; y < height && r == CUDA_SUCCESS; y++)
        r = done(turing_memory_write(machine.mem, to + y * pitch, row, width * size, &err), &err);
    free(row);
    return r;
}

#define FILL(suffix, type)                                                                              \
    CUresult CUDAAPI cuMemset##suffix(CUdeviceptr to, type value, size_t count)                         \
    {                                                                                                   \
        BEGIN;                                                                                          \
        END(fill(to, 0, value, sizeof value, count, 1));                                                \
    }                                                                                                   \
    CUresult CUDAAPI cuMemset##suffix##Async(CUdeviceptr to, type value, size_t count, CUstream stream) \
    {                                                                                                   \
        BEGIN;                                                                                          \
        (void)stream;                                                                                   \
        END(fill(to, 0, value, sizeof value, count, 1));                                                \
    }
#define FILL_2D(suffix, type)                                                                                       \
    CUresult CUDAAPI cuMemset##suffix(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height)        \
    {                                                                                                               \
        BEGIN;                                                                                                      \
        END(fill(to, pitch, value, sizeof value, width, height));                                                   \
    }                                                                                                               \
    CUresult CUDAAPI cuMemset##suffix##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, \
                                             CUstream stream)                                                       \
    {                                                                                                               \
        BEGIN;                                                                                                      \
        (void)stream;                                                                                               \
        END(fill(to, pitch, value, sizeof value, width, height));                                                   \
    }
/* What is pasted together is renamed by cuda.h afterwards, as all names are. */
FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned)
FILL_2D(D2D8, unsigned char)
FILL_2D(D2D16, unsigned short)
FILL_2D(D2D32, unsigned)
