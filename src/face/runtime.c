/* SPDX-License-Identifier: MIT */
/* runtime.c - libcudart's errors by name, and its one device. */
#include "runtime.h"

#include <string.h>

/* ---- errors ------------------------------------------------------------------------------ */

const char *cudaGetErrorName(cudaError_t error)
{
    for (unsigned i = 0; i < runtime_error_name_count; i++)
        if (runtime_error_names[i].value == error)
            return runtime_error_names[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    switch (error) { /* those that the driver does not have */
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidSymbol: return "invalid device symbol";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    default:
        return !cuGetErrorString((CUresult)error, &text) && text && strncmp(text, "CUDA_", 5) ? text
                                                                                              : cudaGetErrorName(error);
    }
}

/* ---- the device ------------------------------------------------------------------------------ */

/* What is wrong with a device, before there is a context. */
static CUresult device(int number)
{
    const CUresult r = cuInit(0);
    return r ? r : number ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const CUresult r = cuInit(0);
    return runtime_keep(r ? r : cuDeviceGetCount(count));
}

cudaError_t cudaGetDevice(int *number)
{
    if (number)
        *number = 0;
    return runtime_keep(number ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number)
{
    const CUresult r = cuInit(0);
    return runtime_keep(r ? r : cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, number));
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return runtime_keep(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (version)
        *version = RUNTIME_VERSION;
    return runtime_keep(version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* There is one to choose. */
cudaError_t cudaChooseDevice(int *number, const struct cudaDeviceProp *properties)
{
    if (number && properties)
        *number = 0;
    return runtime_keep(number && properties ? device(0) : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaSetValidDevices(int *numbers, int count)
{
    CUresult r = count < 0 || (count && !numbers) ? CUDA_ERROR_INVALID_VALUE : device(0);
    for (int i = 0; i < count && !r; i++)
        r = device(numbers[i]);
    return runtime_keep(r);
}

enum { DEVICE_FLAGS = cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax };

static CUresult set_flags(unsigned flags)
{
    const CUresult r = device(0);
    return r ? r : flags & ~(unsigned)DEVICE_FLAGS ? CUDA_ERROR_INVALID_VALUE : cuDevicePrimaryCtxSetFlags(0, flags);
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    return runtime_keep(set_flags(flags));
}

/* Memory of the host can be mapped, whether that was asked for or not. */
cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    int active;
    const CUresult r = device(0), s = r ? r : cuDevicePrimaryCtxGetState(0, flags, &active);
    if (!s)
        *flags |= cudaDeviceMapHost;
    return runtime_keep(s);
}

/* Makes the context, and not current. */
cudaError_t cudaInitDevice(int number, unsigned device_flags, unsigned flags)
{
    CUcontext context;
    CUresult r = device(number);
    if (!r && flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && flags)
        r = set_flags(device_flags);
    return runtime_keep(r ? r : cuDevicePrimaryCtxRetain(&context, 0));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult r = cuGetProcAddress(name, function, (int)version, flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return runtime_keep(r);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, status);
}

FORWARD(cudaSetDevice, (int number), device(number))
FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize())
FORWARD(cudaDeviceReset, (void), cuDevicePrimaryCtxReset(0))
FORWARD(cudaDeviceGetPCIBusId, (char *id, int size, int number), cuDeviceGetPCIBusId(id, size, number))
FORWARD(cudaDeviceGetByPCIBusId, (int *number, const char *id), cuDeviceGetByPCIBusId(number, id))
FORWARD(cudaDeviceCanAccessPeer, (int *can, int number, int peer), cuDeviceCanAccessPeer(can, number, peer))
FORWARD(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
FORWARD(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit), cuCtxGetLimit(value, (CUlimit)limit))
FORWARD(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), cuCtxSetCacheConfig((CUfunc_cache)config))
FORWARD(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config), cuCtxGetCacheConfig((CUfunc_cache *)config))
FORWARD(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest))
FORWARD(cudaProfilerStart, (void), CUDA_SUCCESS)
FORWARD(cudaProfilerStop, (void), CUDA_SUCCESS)

/* Of banks, whose width a T4 does not change. */
FORWARD(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config),
        is_bank_size(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
FORWARD(cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig * config),
        config ? (*config = cudaSharedMemBankSizeFourByte, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE)

#if RUNTIME_VERSION < 13000 /* of no meaning since there are doubles */
cudaError_t cudaSetDoubleForDevice(double *d);
cudaError_t cudaSetDoubleForHost(double *d);
FORWARD(cudaSetDoubleForDevice, (double *d), d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
FORWARD(cudaSetDoubleForHost, (double *d), d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
#endif
