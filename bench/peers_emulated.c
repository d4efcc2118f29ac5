/* SPDX-License-Identifier: MIT */
/*
 * The part of CUDA's runtime that CUTLASS calls, on the emulated T4: linked with CUTLASS's kernels
 * instead of NVIDIA's runtime it makes libhgemm_peers_t4emu.so (see peers_cutlass.h), which runs
 * their sm_75 machine code as hgemm's own is run there. Launches are synchronous; whatever is not
 * needed for that is an error. crt/host_runtime.h says what nvcc's code calls.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "peers_emulated.h"
#include "turing/launch.h"

#define EXPORTED __attribute__((visibility("default")))

static peers_machine_t machine;

EXPORTED void hgemm_peers_emulate(const peers_machine_t *emulator)
{
    machine = *emulator;
}

static cudaError_t check(hgemm_status_t status)
{
    return status == HGEMM_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/* ---- code: what nvcc's constructors hand over ----------------------------------------------- */

/* A compiled file: fatbinary_section.h and the header of what it points to. */
typedef struct wrapper_t {
    int magic, version;
    const unsigned char *image;
    void *unused;
} wrapper_t;

typedef struct binary_t {
    const wrapper_t *wrapper;
    turing_module_t *module; /* opened when a kernel of it is first wanted */
    struct binary_t *next;
} binary_t;

typedef struct function_t {
    const char *name;
    const void *host; /* the function that host code names */
    binary_t *binary;
    const turing_kernel_t *kernel;
    struct function_t *next;
} function_t;

static binary_t *binaries;
static function_t *functions;
static cudaError_t last_error;

void **__cudaRegisterFatBinary(void *wrapper)
{
    binary_t *binary = calloc(1, sizeof *binary);
    if (!binary)
        abort(); /* before main: there is nobody to tell */
    *binary = (binary_t){wrapper, NULL, binaries};
    binaries = binary;
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    binary_t *binary = (binary_t *)handle;
    turing_module_close(binary->module);
    binary->module = NULL;
}

/* Constants of headers; no kernel here reads one. */
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external, size_t bytes,
                       int constant, int global)
{
    (void)handle, (void)host, (void)address, (void)name;
    (void)external, (void)bytes, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device_function, const char *name, int threads,
                            uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    function_t *function = calloc(1, sizeof *function);
    (void)device_function, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    if (!function)
        abort();
    *function = (function_t){name, host, (binary_t *)handle, NULL, functions};
    functions = function;
}

static function_t *function_of(const void *host)
{
    function_t *function = functions;
    while (function && function->host != host)
        function = function->next;
    return function;
}

/* NULL where there is no sm_75 machine code of it that the emulator knows. */
static const turing_kernel_t *kernel_of(function_t *function)
{
    binary_t *binary = function ? function->binary : NULL;
    if (binary && !binary->module) {
        uint16_t header_bytes;
        uint64_t image_bytes;
        memcpy(&header_bytes, binary->wrapper->image + 6, sizeof header_bytes);
        memcpy(&image_bytes, binary->wrapper->image + 8, sizeof image_bytes);
        binary->module = turing_module_open(binary->wrapper->image, header_bytes + image_bytes, NULL);
    }
    if (binary && binary->module && !function->kernel)
        function->kernel = turing_module_find(binary->module, function->name);
    return function ? function->kernel : NULL;
}

/* ---- launches ------------------------------------------------------------------------------- */

static struct {
    dim3 grid, block;
    size_t shared_bytes;
} call; /* between <<< and >>> */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
    (void)stream;
    call.grid = grid, call.block = block, call.shared_bytes = shared_bytes;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = call.grid, *block = call.block, *shared_bytes = call.shared_bytes;
    memset(stream, 0, sizeof(cudaStream_t));
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)function_of(host);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                               cudaStream_t stream)
{
    const turing_kernel_t *kernel = kernel_of((function_t *)handle);
    unsigned char params[4096];
    (void)stream;
    last_error = cudaErrorInvalidDeviceFunction;
    if (!kernel || !machine.handle || kernel->param_bytes > sizeof params)
        return last_error;
    for (uint32_t i = 0; i < kernel->n_params; i++)
        memcpy(params + kernel->params[i].offset, args[i], kernel->params[i].size);
    turing_launch_t launch = {.grid = {grid.x, grid.y, grid.z},
                              .block = {block.x, block.y, block.z},
                              .shared_bytes = (uint32_t)shared_bytes,
                              .params = params,
                              .param_bytes = kernel->param_bytes};
    return last_error = check(machine.run(machine.handle, kernel, &launch));
}

/* ---- the rest ------------------------------------------------------------------------------- */

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    return machine.handle ? check(machine.malloc(machine.handle, pointer, bytes)) : cudaErrorNoDevice;
}

cudaError_t cudaFree(void *pointer)
{
    return pointer ? check(machine.free(machine.handle, pointer)) : cudaSuccess;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    void *host = malloc(bytes);
    if (!host)
        return cudaErrorMemoryAllocation;
    memset(host, value, bytes);
    cudaError_t error = check(machine.upload(machine.handle, pointer, host, bytes));
    free(host);
    return error;
}

cudaError_t cudaSetDevice(int ordinal)
{
    (void)ordinal;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    (void)ordinal;
    if (attribute != cudaDevAttrMultiProcessorCount)
        return cudaErrorNotSupported;
    *value = TURING_T4_SMS;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->ptxVersion = 75;
    return kernel_of(function_of(host)) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    (void)host, (void)attribute, (void)value; /* a launch says how much shared memory it wants */
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads,
                                                                   size_t shared_bytes, unsigned flags)
{
    const turing_kernel_t *kernel = kernel_of(function_of(host));
    (void)flags;
    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    *blocks = (int)turing_occupancy(kernel, (uint32_t)threads, (uint32_t)shared_bytes).blocks;
    return cudaSuccess;
}
