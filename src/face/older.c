/* SPDX-License-Identifier: MIT */
/* older.c - launches as CUDA had them before 4.0, which pycuda makes: a function's block and parameters are set one by
 * one. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

typedef struct older_call {
    unsigned block[3], shared_bytes;
    uint8_t parameters[OLDER_PARAMETERS];
} older_call_t;

static older_call_t *call_of(CUfunction function)
{
    function_t *f = (function_t *)function;
    if (!function_known(f))
        return NULL;
    if (!f->older && (f->older = calloc(1, sizeof *f->older)))
        f->older->block[0] = f->older->block[1] = f->older->block[2] = 1;
    return f->older;
}

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    ALWAYS;
    older_call_t *c = call_of(function);
    if (!c || x <= 0 || y <= 0 || z <= 0)
        END(CUDA_ERROR_INVALID_VALUE);
    c->block[0] = (unsigned)x, c->block[1] = (unsigned)y, c->block[2] = (unsigned)z;
    END(CUDA_SUCCESS);
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction function, unsigned bytes)
{
    ALWAYS;
    older_call_t *c = call_of(function);
    if (c)
        c->shared_bytes = bytes;
    END(c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* The kernel knows how many bytes it wants. */
CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned bytes)
{
    ALWAYS;
    END(call_of(function) && bytes <= OLDER_PARAMETERS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult set(CUfunction function, int offset, const void *value, size_t bytes)
{
    older_call_t *c = call_of(function);
    if (!c || !value || offset < 0 || bytes > OLDER_PARAMETERS || (size_t)offset > OLDER_PARAMETERS - bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(c->parameters + offset, value, bytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuParamSeti(CUfunction function, int offset, unsigned value)
{
    ALWAYS;
    END(set(function, offset, &value, sizeof value));
}

CUresult CUDAAPI cuParamSetf(CUfunction function, int offset, float value)
{
    ALWAYS;
    END(set(function, offset, &value, sizeof value));
}

CUresult CUDAAPI cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
    ALWAYS;
    END(set(function, offset, value, bytes));
}

static CUresult start(CUfunction function, int width, int height)
{
    older_call_t *c = call_of(function);
    if (!c || width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned grid[3] = {(unsigned)width, (unsigned)height, 1};
    size_t bytes = OLDER_PARAMETERS;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, c->parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    return launch((function_t *)function, grid, c->block, c->shared_bytes, NULL, extra, false);
}

CUresult CUDAAPI cuLaunch(CUfunction function)
{
    BEGIN;
    END(start(function, 1, 1));
}

CUresult CUDAAPI cuLaunchGrid(CUfunction function, int width, int height)
{
    BEGIN;
    END(start(function, width, height));
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    BEGIN_ON(stream);
    END(start(function, width, height));
}
