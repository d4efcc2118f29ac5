/* SPDX-License-Identifier: MIT */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cuda_describe(char detail[DEVICE_DETAIL], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, DEVICE_DETAIL, format, arguments);
    va_end(arguments);
}

hgemm_status_t cuda_explain(const driver_t *driver, CUresult result, const char *call, char detail[DEVICE_DETAIL])
{
    if (result == CUDA_SUCCESS)
        return HGEMM_STATUS_SUCCESS;
    const char *name = NULL, *words = NULL;
    driver->error_name(result, &name);
    driver->error_string(result, &words);
    cuda_describe(detail, "%s: %s (%d): %s.", call, name ? name : "unknown error", result,
                  words ? words : "the driver has no words for it");
    return result == CUDA_ERROR_OUT_OF_MEMORY ? HGEMM_STATUS_OUT_OF_MEMORY : HGEMM_STATUS_DEVICE_ERROR;
}

hgemm_status_t cuda_refuse_child(char detail[DEVICE_DETAIL])
{
    cuda_describe(
        detail, "The process was forked from one that had used CUDA, which does not work in such a child. Fork before "
                "anything uses the GPU, or start the child anew (exec; in Python the start method \"spawn\").");
    return HGEMM_STATUS_DEVICE_ERROR;
}

hgemm_status_t cuda_driver_open(driver_t *driver, char detail[DEVICE_DETAIL])
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        cuda_describe(detail, "%s.", words ? words : "libcuda.so.1 cannot be opened");
        return HGEMM_STATUS_NO_DRIVER;
    }
    /* POSIX, not C, lets an object pointer carry a function: it is copied, not converted. */
#define X(name, symbol, parameters)                                                  \
    {                                                                                \
        void *address = dlsym(library, symbol);                                      \
        if (!address) {                                                              \
            cuda_describe(detail, "libcuda.so.1 is too old: it has no %s.", symbol); \
            return HGEMM_STATUS_NO_DRIVER;                                           \
        }                                                                            \
        memcpy(&driver->name, &address, sizeof address);                             \
    }
    DRIVER_FUNCTIONS(X)
#undef X

    int version = 0;
    CUresult result = driver->init(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return HGEMM_STATUS_NO_DEVICE;
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        return cuda_refuse_child(detail);
    hgemm_status_t status = cuda_explain(driver, result, "cuInit", detail);
    if (result == CUDA_ERROR_STUB_LIBRARY || result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ||
        result == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
        return HGEMM_STATUS_NO_DRIVER;
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    status = cuda_explain(driver, driver->driver_version(&version), "cuDriverGetVersion", detail);
    if (status == HGEMM_STATUS_SUCCESS && version < OLDEST_DRIVER) {
        cuda_describe(detail, "The driver is for CUDA %d.%d, older than %d.", version / 1000, version % 1000 / 10,
                      OLDEST_DRIVER / 1000);
        return HGEMM_STATUS_NO_DRIVER;
    }
    return status;
}
