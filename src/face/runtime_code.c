/* SPDX-License-Identifier: MIT */
/* runtime_code.c - what nvcc's host code registers before main, and launches of it. */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct binary {
    const void *image;
    CUmodule module; /* loaded when something of it is first wanted */
    CUresult error;
} binary_t;

typedef struct item { /* a kernel or a variable, by the host's address of it */
    const void *host;
    char *name;
    binary_t *binary;
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    void **managed;
    struct item *next;
} item_t;

enum { BUCKETS = 4096 };
static item_t *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static item_t **bucket(const void *host)
{
    return &table[((uintptr_t)host >> 4) % BUCKETS];
}

static item_t *add(binary_t *binary, const void *host, const char *name)
{
    item_t *i = calloc(1, sizeof *i);
    if (!i)
        abort(); /* before main: there is nobody to tell */
    *i = (item_t){.host = host, .name = strdup(name), .binary = binary, .next = *bucket(host)};
    return *bucket(host) = i;
}

void **__cudaRegisterFatBinary(void *wrapper);
void **__cudaRegisterFatBinary(void *wrapper)
{
    binary_t *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->image = wrapper;
    return (void **)b;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle; /* at the end of the program, which may still have threads */
}

char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, void *tid,
                            void *bid, void *block, void *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, void *tid,
                            void *bid, void *block, void *grid, int *warp)
{
    (void)device, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add((binary_t *)handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                       int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                       int constant, int global)
{
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    add((binary_t *)handle, host, name);
}

static CUresult load(binary_t *b)
{
    CUresult r = runtime_ready();
    if (r == CUDA_SUCCESS && !b->module && b->error == CUDA_SUCCESS && (r = cuCtxSynchronize()) == CUDA_SUCCESS)
        b->error = cuModuleLoadData(&b->module, b->image); /* what is wrong before that is not the image's fault */
    return r ? r : b->error;
}

/* Finds a kernel by the function that host code names. */
static CUresult find_function(const void *host, CUfunction *out)
{
    pthread_mutex_lock(&lock);
    item_t *i = *bucket(host);
    while (i && i->host != host)
        i = i->next;
    CUresult r = i ? load(i->binary) : (CUresult)cudaErrorInvalidDeviceFunction;
    if (r == CUDA_SUCCESS && !i->function)
        r = cuModuleGetFunction(&i->function, i->binary->module, i->name);
    if (r == CUDA_SUCCESS)
        *out = i->function;
    pthread_mutex_unlock(&lock);
    return r == CUDA_ERROR_NOT_FOUND ? (CUresult)cudaErrorInvalidDeviceFunction : r;
}

static CUresult find_symbol(const void *host, CUdeviceptr *address, size_t *bytes)
{
    pthread_mutex_lock(&lock);
    item_t *i = *bucket(host);
    while (i && i->host != host)
        i = i->next;
    CUresult r = i ? load(i->binary) : (CUresult)cudaErrorInvalidSymbol;
    if (r == CUDA_SUCCESS)
        r = cuModuleGetGlobal(address, bytes, i->binary->module, i->name);
    pthread_mutex_unlock(&lock);
    return r == CUDA_ERROR_NOT_FOUND ? (CUresult)cudaErrorInvalidSymbol : r;
}

/* ---- launches --------------------------------------------------------------------------- */

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} call; /* between <<< and >>> */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    call.grid = grid, call.block = block, call.shared = shared, call.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = call.grid, *block = call.block, *shared = call.shared;
    memcpy(stream, &call.stream, sizeof call.stream);
    return cudaSuccess;
}

static CUresult start(CUfunction f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t stream, bool all)
{
    const CUresult r = all ? cuLaunchCooperativeKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, args)
                           : cuLaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, args, NULL);
    return r == CUDA_ERROR_INVALID_VALUE ? (CUresult)cudaErrorInvalidConfiguration : r;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    *kernel = (cudaKernel_t)f;
    return runtime_keep(r);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream)
{
    const cudaError_t before = cudaPeekAtLastError(); /* why __cudaGetKernel gave none */
    CALL(kernel   ? start((CUfunction)kernel, grid, block, args, shared, stream, false)
         : before ? (CUresult)before
                  : (CUresult)cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    return runtime_keep(r ? r : start(f, grid, block, args, shared, stream, false));
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    return runtime_keep(r ? r : start(f, grid, block, args, shared, stream, true));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args)
{
    CUfunction f = NULL;
    CUresult r = find_function(host, &f);
    bool all = false;
    for (unsigned i = 0; i < c->numAttrs; i++)
        all = all || (c->attrs[i].id == cudaLaunchAttributeCooperative && c->attrs[i].val.cooperative);
    return runtime_keep(r ? r : start(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, all));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *host)
{
    return runtime_keep(find_function(host, function));
}

/* ---- functions ------------------------------------------------------------------------------ */

static int attribute(CUfunction f, CUfunction_attribute a)
{
    int value = 0;
    cuFuncGetAttribute(&value, a, f);
    return value;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *host)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    if (r)
        return runtime_keep(r);
    memset(out, 0, sizeof *out);
    out->sharedSizeBytes = (size_t)attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    out->constSizeBytes = (size_t)attribute(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    out->localSizeBytes = (size_t)attribute(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    out->maxThreadsPerBlock = attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out->numRegs = attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
    out->ptxVersion = out->binaryVersion = 75;
    out->maxDynamicSharedSizeBytes = attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute a, int value)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    return runtime_keep(r ? r : cuFuncSetAttribute(f, (CUfunction_attribute)a, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config)
{
    CUfunction f = NULL;
    (void)config;
    return runtime_keep(find_function(host, &f));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads,
                                                                   size_t shared, unsigned flags)
{
    CUfunction f = NULL;
    const CUresult r = find_function(host, &f);
    return runtime_keep(r ? r
                          : cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, 0);
}

/* ---- libraries ------------------------------------------------------------------------------ */

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *options, void **values,
                                unsigned count, enum cudaLibraryOption *library_options, void **library_values,
                                unsigned library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    CALL(cuLibraryLoadData((CUlibrary *)library, code, NULL, NULL, 0, NULL, NULL, 0));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, enum cudaJitOption *options,
                                    void **values, unsigned count, enum cudaLibraryOption *library_options,
                                    void **library_values, unsigned library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    CALL(cuLibraryLoadFromFile((CUlibrary *)library, path, NULL, NULL, 0, NULL, NULL, 0));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    CALL(cuLibraryUnload((CUlibrary)library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    CALL(cuLibraryGetKernel((CUkernel *)kernel, (CUlibrary)library, name));
}

cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library)
{
    CALL(cuLibraryGetKernelCount(count, (CUlibrary)library));
}

cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CALL(cuLibraryGetGlobal((CUdeviceptr *)address, bytes, (CUlibrary)library, name));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute a, int value, int device)
{
    CALL(cuKernelSetAttribute((CUfunction_attribute)a, value, (CUkernel)kernel, device));
}

/* ---- variables -------------------------------------------------------------------------------- */

cudaError_t cudaGetSymbolAddress(void **address, const void *host)
{
    CUdeviceptr at = 0;
    size_t bytes;
    const CUresult r = find_symbol(host, &at, &bytes);
    *address = (void *)(uintptr_t)at;
    return runtime_keep(r);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *host)
{
    CUdeviceptr at;
    return runtime_keep(find_symbol(host, &at, bytes));
}

/* Where bytes of a symbol are, which must lie in it. */
static CUresult find_part(const void *host, size_t count, size_t offset, CUdeviceptr *at)
{
    size_t bytes;
    const CUresult r = find_symbol(host, at, &bytes);
    if (r)
        return r;
    *at += offset;
    return offset > bytes || count > bytes - offset ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    CUdeviceptr at;
    (void)kind;
    const CUresult r = find_part(host, count, offset, &at);
    return runtime_keep(r ? r : cuMemcpy(at, (CUdeviceptr)(uintptr_t)from, count));
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    CUdeviceptr at;
    (void)kind;
    const CUresult r = find_part(host, count, offset, &at);
    return runtime_keep(r ? r : cuMemcpy((CUdeviceptr)(uintptr_t)to, at, count));
}
