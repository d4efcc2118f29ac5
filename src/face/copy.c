/* SPDX-License-Identifier: MIT */
/* copy.c - copies and fills of the driver's interface. */
#include "findings.h"

#include <string.h>

/* ---- copies --------------------------------------------------------------------------------- */

/* What a caller says of an address: it is memory of the device, or it is found out. */
typedef enum side { EITHER, DEVICE } side_t;

typedef struct place {
    CUdeviceptr at;
    side_t side;
    size_t pitch, slice; /* bytes from a row to the next, and from a layer to the next */
} place_t;

/* Whether `bytes` from there on can be copied. The reason why not is told. */
static bool reachable(const place_t *p, size_t bytes, const char *which)
{
    uint64_t base, size;
    if (turing_memory_range(machine.mem, p->at, &base, &size)) {
        if (bytes <= size - (p->at - base))
            return true;
        machine_say("%s 0x%llx: %zu bytes, of which %llu are there", which, p->at, bytes,
                    (unsigned long long)(size - (p->at - base)));
        return false;
    }
    if (p->side != DEVICE && is_mapped(p->at, bytes))
        return true;
    machine_say("%s 0x%llx: %zu bytes, where no %smemory is", which, p->at, bytes, p->side == DEVICE ? "device " : "");
    return false;
}

/* Bytes from the first to the last of a box. False: there are not so many. */
static bool span(const place_t *p, size_t width, size_t height, size_t depth, size_t *bytes)
{
    size_t rows, layers;
    return !__builtin_mul_overflow(p->pitch, height - 1, &rows) &&
           !__builtin_mul_overflow(p->slice, depth - 1, &layers) && !__builtin_add_overflow(rows, layers, &rows) &&
           !__builtin_add_overflow(rows, width, bytes);
}

static CUresult copy_row(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    turing_error_t err;
    const bool to_device = is_device(to), from_device = is_device(from);
    if (to_device && from_device)
        return done(turing_memory_copy(machine.mem, to, from, bytes, &err), &err);
    if (to_device)
        return done(turing_memory_write(machine.mem, to, host(from), bytes, &err), &err);
    if (from_device) {
        findings_t findings = {0, CUDA_SUCCESS};
        turing_memory_undefined(machine.mem, from, bytes, findings_found, &findings);
        if (findings.count && (machine.sticky = findings_error(&findings)) != CUDA_SUCCESS)
            return machine.sticky;
        return done(turing_memory_read(machine.mem, from, host(to), bytes, &err), &err);
    }
    memmove(host(to), host(from), bytes);
    return CUDA_SUCCESS;
}

static CUresult copy_box(place_t to, place_t from, size_t width, size_t height, size_t depth)
{
    size_t to_bytes, from_bytes;
    CUresult r = CUDA_SUCCESS;
    if (!width || !height || !depth)
        return CUDA_SUCCESS;
    if (!span(&to, width, height, depth, &to_bytes) || !span(&from, width, height, depth, &from_bytes) ||
        !reachable(&to, to_bytes, "a copy to") || !reachable(&from, from_bytes, "a copy from"))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height && r == CUDA_SUCCESS; y++)
            r = copy_row(to.at + y * to.pitch + z * to.slice, from.at + y * from.pitch + z * from.slice, width);
    return r;
}

static CUresult copy(CUdeviceptr to, side_t to_side, CUdeviceptr from, side_t from_side, size_t bytes)
{
    return copy_box((place_t){.at = to, .side = to_side}, (place_t){.at = from, .side = from_side}, bytes, 1, 1);
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
        BEGIN_ON(stream);              \
        END(copy(__VA_ARGS__, bytes)); \
    }
#define TO CUdeviceptr to, CUdeviceptr from, size_t bytes
COPY(cuMemcpy, (TO), to, EITHER, from, EITHER)
COPY(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes), to, DEVICE, address_of(from), EITHER)
COPY(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes), address_of(to), EITHER, from, DEVICE)
COPY(cuMemcpyDtoD, (TO), to, DEVICE, from, DEVICE)
COPY_IN(cuMemcpyAsync, (TO, CUstream stream), to, EITHER, from, EITHER)
COPY_IN(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), to, DEVICE,
        address_of(from), EITHER)
COPY_IN(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), address_of(to), EITHER, from,
        DEVICE)
COPY_IN(cuMemcpyDtoDAsync, (TO, CUstream stream), to, DEVICE, from, DEVICE)

/* Between contexts, which have the same memory. */
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes)
{
    BEGIN;
    END(there && here ? copy(to, DEVICE, from, DEVICE, bytes) : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes,
                                   CUstream stream)
{
    BEGIN_ON(stream);
    END(there && here ? copy(to, DEVICE, from, DEVICE, bytes) : CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- boxes: rows of a pitch, layers of a height ---------------------------------------------------- */

/* One end of a copy, as CUDA_MEMCPY3D has it. */
typedef struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t pitch, rows, x, y, z;
} end_t;

static CUresult place_of(const end_t *e, const CUDA_MEMCPY3D *c, place_t *p)
{
    if (e->type == CU_MEMORYTYPE_ARRAY)
        return not_served("a copy of an array");
    const bool many_rows = c->Height > 1 || c->Depth > 1;
    if ((e->type != CU_MEMORYTYPE_HOST && e->type != CU_MEMORYTYPE_DEVICE && e->type != CU_MEMORYTYPE_UNIFIED) ||
        (many_rows && e->pitch < e->x + c->WidthInBytes) || (c->Depth > 1 && e->rows < e->y + c->Height))
        return CUDA_ERROR_INVALID_VALUE;
    *p = (place_t){.at = e->type == CU_MEMORYTYPE_HOST ? address_of(e->host) : e->device,
                   .side = e->type == CU_MEMORYTYPE_DEVICE ? DEVICE : EITHER,
                   .pitch = e->pitch,
                   .slice = e->pitch * e->rows};
    if (!p->at)
        return CUDA_ERROR_INVALID_VALUE;
    p->at += e->x + e->y * e->pitch + e->z * p->slice;
    return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    place_t to, from;
    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    const CUresult r = place_of(&(end_t){c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstHeight,
                                         c->dstXInBytes, c->dstY, c->dstZ},
                                c, &to),
                   s = place_of(&(end_t){c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcHeight,
                                         c->srcXInBytes, c->srcY, c->srcZ},
                                c, &from);
    return r ? r : s ? s : copy_box(to, from, c->WidthInBytes, c->Height, c->Depth);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
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
    return copy_3d(&box);
}

#define COPY_BOX(name, type, function)   \
    CUresult CUDAAPI name(const type *c) \
    {                                    \
        BEGIN;                           \
        END(function(c));                \
    }
#define COPY_BOX_IN(name, type, function)                 \
    CUresult CUDAAPI name(const type *c, CUstream stream) \
    {                                                     \
        BEGIN_ON(stream);                                 \
        END(function(c));                                 \
    }
COPY_BOX(cuMemcpy2D, CUDA_MEMCPY2D, copy_2d)
COPY_BOX(cuMemcpy2DUnaligned, CUDA_MEMCPY2D, copy_2d)
COPY_BOX(cuMemcpy3D, CUDA_MEMCPY3D, copy_3d)
COPY_BOX_IN(cuMemcpy2DAsync, CUDA_MEMCPY2D, copy_2d)
COPY_BOX_IN(cuMemcpy3DAsync, CUDA_MEMCPY3D, copy_3d)

/* ---- fills ------------------------------------------------------------------------------------ */

enum { PATTERN = 1 << 14 };

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned size, size_t width, size_t height)
{
    turing_error_t err;
    uint8_t pattern[PATTERN];
    size_t row, bytes;
    if (!width || !height)
        return CUDA_SUCCESS;
    if (to % size || (height > 1 && pitch % size) || __builtin_mul_overflow(width, size, &row) ||
        (height > 1 && pitch < row) || !span(&(place_t){.pitch = pitch}, row, height, 1, &bytes) ||
        !reachable(&(place_t){.at = to, .side = DEVICE}, bytes, "a fill of"))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < PATTERN && i < row; i += size)
        memcpy(pattern + i, &value, size);
    CUresult r = CUDA_SUCCESS;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < row && r == CUDA_SUCCESS; x += PATTERN)
            r = done(turing_memory_write(machine.mem, to + y * pitch + x, pattern,
                                         row - x < PATTERN ? row - x : PATTERN, &err),
                     &err);
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
        BEGIN_ON(stream);                                                                               \
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
        BEGIN_ON(stream);                                                                                           \
        END(fill(to, pitch, value, sizeof value, width, height));                                                   \
    }
/* What is pasted together is renamed by cuda.h afterwards, as all names are. */
FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned)
FILL_2D(D2D8, unsigned char)
FILL_2D(D2D16, unsigned short)
FILL_2D(D2D32, unsigned)
