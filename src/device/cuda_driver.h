/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver's library, opened at run time. The few declarations that are needed are here, so that the library
 * builds, links and loads without CUDA.
 */
#ifndef HGEMM_CUDA_DRIVER_H
#define HGEMM_CUDA_DRIVER_H

#include "device/device.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,

    ATTRIBUTE_CLOCK_RATE = 13, /* CU_DEVICE_ATTRIBUTE_... */
    ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    ATTRIBUTE_L2_CACHE_SIZE = 38,
    ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,

    FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, /* CU_FUNC_ATTRIBUTE_... */

    JIT_ERROR_LOG_BUFFER = 5, /* CU_JIT_... */
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,

    CAPTURE_MODE_RELAXED = 2, /* CU_STREAM_... */

    OLDEST_DRIVER = 11000
};

/* X(name here, exported symbol, parameters) */
#define DRIVER_FUNCTIONS(X)                                                                                           \
    X(init, "cuInit", (unsigned))                                                                                     \
    X(driver_version, "cuDriverGetVersion", (int *))                                                                  \
    X(error_name, "cuGetErrorName", (CUresult, const char **))                                                        \
    X(error_string, "cuGetErrorString", (CUresult, const char **))                                                    \
    X(device_count, "cuDeviceGetCount", (int *))                                                                      \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                                   \
    X(device_name, "cuDeviceGetName", (char *, int, CUdevice))                                                        \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                               \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *, CUdevice))                                                     \
    X(context_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                            \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                                    \
    X(context_push, "cuCtxPushCurrent_v2", (CUcontext))                                                               \
    X(context_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                               \
    X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int *))                                            \
    X(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                         \
    X(memory_free, "cuMemFree_v2", (CUdeviceptr))                                                                     \
    X(copy_to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                          \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))                                  \
    X(stream_synchronize, "cuStreamSynchronize", (CUstream))                                                          \
    X(module_load, "cuModuleLoadDataEx", (CUmodule *, const void *, unsigned, int *, void **))                        \
    X(module_function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                                 \
    X(module_unload, "cuModuleUnload", (CUmodule))                                                                    \
    X(function_set_attribute, "cuFuncSetAttribute", (CUfunction, int, int))                                           \
    X(kernel_launch, "cuLaunchKernel",                                                                                \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    X(event_create, "cuEventCreate", (CUevent *, unsigned))                                                           \
    X(event_record, "cuEventRecord", (CUevent, CUstream))                                                             \
    X(event_synchronize, "cuEventSynchronize", (CUevent))                                                             \
    X(event_elapsed, "cuEventElapsedTime", (float *, CUevent, CUevent))                                               \
    X(event_destroy, "cuEventDestroy_v2", (CUevent))

typedef struct driver_t {
#define X(name, symbol, parameters) CUresult(*name) parameters;
    DRIVER_FUNCTIONS(X)
#undef X
} driver_t;

/* Finds the driver, and starts it. The library is never closed: the driver keeps threads and state of its own. */
hgemm_status_t cuda_driver_open(driver_t *driver, char detail[DEVICE_DETAIL]);

/* The status for a result of the driver; on failure `detail` tells the call and its words. */
hgemm_status_t cuda_explain(const driver_t *driver, CUresult result, const char *call, char detail[DEVICE_DETAIL]);

/* What becomes of a call in a child whose parent had used CUDA. */
hgemm_status_t cuda_refuse_child(char detail[DEVICE_DETAIL]);

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void cuda_describe(char detail[DEVICE_DETAIL], const char *format, ...);

#endif
