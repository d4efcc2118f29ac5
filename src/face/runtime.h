/* SPDX-License-Identifier: MIT */
/* runtime.h - libcudart over the driver's interface of this folder (inside it). */
#ifndef FACE_RUNTIME_H
#define FACE_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct runtime_error_name {
    cudaError_t value;
    const char *name;
} runtime_error_name_t;
extern const runtime_error_name_t runtime_error_names[];
extern const unsigned runtime_error_name_count;

cudaError_t runtime_not_served(const char *name);

/* Makes the primary context current, as a first call does; then keeps what a call returned, which has
 * the driver's number. */
CUresult runtime_ready(void);
cudaError_t runtime_keep(CUresult result);
#define CALL(call)                                             \
    do {                                                       \
        CUresult begun = runtime_ready();                      \
        return runtime_keep(begun ? begun : (CUresult)(call)); \
    } while (0)

/* An entry point that is a call of the driver's, or several that give one result. */
#define FORWARD(name, parameters, call) \
    cudaError_t name parameters         \
    {                                   \
        CALL(call);                     \
    }

static inline CUdeviceptr at(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static inline bool is_kind(enum cudaMemcpyKind kind)
{
    return (unsigned)kind <= cudaMemcpyDefault;
}

static inline bool is_bank_size(enum cudaSharedMemConfig config)
{
    return (unsigned)config <= cudaSharedMemBankSizeEightByte;
}

/* Of cuda_profiler_api.h, which is in no package that tools/setup.sh fetches. */
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#endif
