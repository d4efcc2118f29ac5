/* SPDX-License-Identifier: MIT */
/* names.c - errors by name, entry points by name. */
#include "findings.h"

#include <stdlib.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------ */

static const error_name_t *find_error(CUresult error)
{
    for (unsigned i = 0; i < error_name_count; i++)
        if (error_names[i].value == error)
            return &error_names[i];
    return NULL;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text)
{
    const error_name_t *e = find_error(error);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = e ? e->name : NULL;
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text)
{
    static const struct {
        CUresult error;
        const char *text;
    } words[] = {
        {CUDA_SUCCESS, "no error"},
        {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
        {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
        {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
        {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
        {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
        {CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"},
        {CUDA_ERROR_DEINITIALIZED, "driver shutting down"},
        {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
        {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
        {CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"},
        {CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"},
        {CUDA_ERROR_FILE_NOT_FOUND, "file not found"},
        {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
        {CUDA_ERROR_NOT_READY, "device not ready"},
        {CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"},
        {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"},
        {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"},
        {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
        {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
        {CUDA_ERROR_ASSERT, "device-side assert triggered"},
        {CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"},
        {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
        {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
        {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"},
        {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].error == error && text) {
            *text = words[i].text;
            return CUDA_SUCCESS;
        }
    return cuGetErrorName(error, text);
}

/* ---- entry points by name ------------------------------------------------------------------ */

/* Those whose newer form takes other arguments, and since which version of CUDA it is meant by the name without a
 * number. */
enum { BY_NUMBER_ONLY = 1 << 30 };
static const struct {
    const char *name;
    int since;
} newer[] = {{"cuCtxCreate_v4", 12050},
             {"cuCtxCreate_v3", 11040},
             {"cuGetProcAddress_v2", 12000},
             {"cuStreamGetCaptureInfo_v3", 12030},
             {"cuStreamGetCaptureInfo_v2", 11030},
             {"cuMemPrefetchAsync_v2", 13000},
             {"cuMemAdvise_v2", 13000},
             {"cuGraphInstantiate_v2", 11000},
             {"cuCtxGetDevice_v2", BY_NUMBER_ONLY},
             {"cuCtxSynchronize_v2", BY_NUMBER_ONLY},
             {"cuStreamGetCtx_v2", BY_NUMBER_ONLY}};

static const entry_point_t *find_entry(const char *name, const char *suffix, int version)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", name, suffix);
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (*suffix && !strcmp(newer[i].name, whole) && version && version < newer[i].since)
            return NULL;
    for (unsigned i = 0; i < entry_point_count; i++)
        if (!strcmp(entry_points[i].name, whole))
            return &entry_points[i];
    return NULL;
}

/* The newest form that is served, or else that is not. */
CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status)
{
    static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
    (void)flags;
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    const entry_point_t *e = NULL, *any = NULL;
    for (int i = 0; i < 4 && !e; i++) {
        const entry_point_t *x = find_entry(name, suffixes[i], version);
        any = any ? any : x;
        e = x && x->function != x->stub ? x : NULL;
    }
    e = e ? e : any;
    *function = e ? e->function : NULL;
    if (status)
        *status = e ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!e)
        machine_log(name, "no such entry point");
    return e ? CUDA_SUCCESS : status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags);
CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    const CUresult r = cuGetProcAddress_v2(name, function, version, flags, NULL);
    return r;
}

/* NVIDIA's runtime asks for tables that only NVIDIA's driver has. */
CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *id)
{
    static bool told;
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    if (!told)
        findings_refused("NVIDIA's own runtime, which is linked into this program, does not run on the emulated T4: "
                         "link with nvcc -cudart shared");
    told = true;
    return CUDA_ERROR_NOT_FOUND;
}
