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
    struct item *managed; /* its variables of managed memory */
} binary_t;

typedef struct item { /* a kernel or a variable, by the host's address of it */
    const void *host;
    char *name;
    binary_t *binary;
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    void **managed; /* what host code reads such a variable through */
    struct item *next, *next_managed;
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

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes,
                              int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes,
                              int constant, int global)
{
    binary_t *b = (binary_t *)handle;
    item_t *i = add(b, host, name);
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    i->managed = host;
    i->next_managed = b->managed;
    b->managed = i;
}

/* Host code reads managed variables through pointers, and by what they point at it names them as symbols. */
static CUresult show_managed(binary_t *b)
{
    CUresult r = CUDA_SUCCESS;
    for (item_t *i = b->managed; i && r == CUDA_SUCCESS; i = i->next_managed) {
        r = cuModuleGetGlobal(&i->address, &i->bytes, b->module, i->name);
        if (r == CUDA_SUCCESS) {
            *i->managed = (void *)(uintptr_t)i->address;
            add(b, *i->managed, i->name);
        }
    }
    return r;
}

static CUresult load(binary_t *b)
{
    CUresult r = runtime_ready();
    if (r == CUDA_SUCCESS && !b->module && b->error == CUDA_SUCCESS && (r = cuCtxSynchronize()) == CUDA_SUCCESS) {
        b->error = cuModuleLoadData(&b->module, b->image); /* what is wrong before that is not the image's fault */
        if (b->error == CUDA_SUCCESS)
            b->error = show_managed(b);
    }
    return r ? r : b->error;
}

/* Before host code first reads a managed variable. */
char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
    binary_t *b = (binary_t *)handle;
    pthread_mutex_lock(&lock);
    const CUresult r = b->managed ? load(b) : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    runtime_keep(r);
    return 1;
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
    if (!grid || !block || !shared || !stream)
        return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    *grid = call.grid, *block = call.block, *shared = call.shared;
    memcpy(stream, &call.stream, sizeof call.stream);
    return cudaSuccess;
}

/* What the runtime tells of a grid or block that no device has; the driver calls it an invalid value as others. */
static bool has_shape(dim3 g, dim3 b)
{
    return g.x && g.y && g.z && b.x && b.y && b.z && g.x <= INT32_MAX && g.y <= 65535 && g.z <= 65535 && b.x <= 1024 &&
           b.y <= 1024 && b.z <= 64 && (uint64_t)b.x * b.y * b.z <= 1024;
}

static CUresult start(CUfunction f, const cudaLaunchConfig_t *c, void **args)
{
    const CUlaunchConfig config = {.gridDimX = c->gridDim.x,
                                   .gridDimY = c->gridDim.y,
                                   .gridDimZ = c->gridDim.z,
                                   .blockDimX = c->blockDim.x,
                                   .blockDimY = c->blockDim.y,
                                   .blockDimZ = c->blockDim.z,
                                   .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                                   .hStream = c->stream,
                                   .attrs = (CUlaunchAttribute *)c->attrs,
                                   .numAttrs = c->numAttrs};
    return !has_shape(c->gridDim, c->blockDim) ? (CUresult)cudaErrorInvalidConfiguration
           : c->dynamicSmemBytes > UINT32_MAX  ? CUDA_ERROR_INVALID_VALUE
                                               : cuLaunchKernelEx(&config, f, args, NULL);
}

static cudaLaunchConfig_t plain(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    return (cudaLaunchConfig_t){.gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream};
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    CUfunction f = NULL;
    const CUresult r = kernel ? find_function(host, &f) : CUDA_ERROR_INVALID_VALUE;
    if (kernel)
        *kernel = (cudaKernel_t)f;
    return runtime_keep(r);
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    return __cudaGetKernel(kernel, host);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream)
{
    const cudaError_t before = cudaPeekAtLastError(); /* why __cudaGetKernel gave none */
    const cudaLaunchConfig_t c = plain(grid, block, shared, stream);
    CALL(kernel   ? start((CUfunction)kernel, &c, args)
         : before ? (CUresult)before
                  : (CUresult)cudaErrorInvalidDeviceFunction);
}

static CUresult launch(const cudaLaunchConfig_t *c, const void *host, void **args)
{
    CUfunction f = NULL;
    const CUresult r = c ? find_function(host, &f) : CUDA_ERROR_INVALID_VALUE;
    return r ? r : start(f, c, args);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args)
{
    return runtime_keep(launch(c, host, args));
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    const cudaLaunchConfig_t c = plain(grid, block, shared, stream);
    return runtime_keep(launch(&c, host, args));
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream)
{
    cudaLaunchAttribute all = {.id = cudaLaunchAttributeCooperative, .val.cooperative = 1};
    cudaLaunchConfig_t c = plain(grid, block, shared, stream);
    c.attrs = &all;
    c.numAttrs = 1;
    return runtime_keep(launch(&c, host, args));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *host)
{
    return runtime_keep(function ? find_function(host, function) : CUDA_ERROR_INVALID_VALUE);
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
    const CUresult r = out ? find_function(host, &f) : CUDA_ERROR_INVALID_VALUE;
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

/* A call of the driver's with the function f, of which the caller names the host's side. */
#define FORWARD_FUNCTION(name, parameters, call)       \
    cudaError_t name parameters                        \
    {                                                  \
        CUfunction f = NULL;                           \
        const CUresult r = find_function(host, &f);    \
        return runtime_keep(r ? r : (CUresult)(call)); \
    }
FORWARD_FUNCTION(cudaFuncSetAttribute, (const void *host, enum cudaFuncAttribute a, int value),
                 cuFuncSetAttribute(f, (CUfunction_attribute)a, value))
FORWARD_FUNCTION(cudaFuncSetCacheConfig, (const void *host, enum cudaFuncCache config),
                 cuFuncSetCacheConfig(f, (CUfunc_cache)config))
FORWARD_FUNCTION(cudaFuncSetSharedMemConfig, (const void *host, enum cudaSharedMemConfig config),
                 is_bank_size(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
FORWARD_FUNCTION(cudaFuncGetName, (const char **name, const void *host), cuFuncGetName(name, f))
FORWARD_FUNCTION(cudaFuncGetParamInfo, (const void *host, size_t index, size_t *offset, size_t *size),
                 cuFuncGetParamInfo(f, index, offset, size))
FORWARD_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                 (int *blocks, const void *host, int threads, size_t shared, unsigned flags),
                 cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags))
FORWARD_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
                 (int *blocks, const void *host, int threads, size_t shared),
                 cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared))
FORWARD_FUNCTION(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, const void *host, int blocks, int threads),
                 cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, threads))

/* ---- libraries ------------------------------------------------------------------------------ */

/* Options are of how PTX is compiled and when code is loaded. */
FORWARD(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *code, enum cudaJitOption *options, void **values, unsigned count,
         enum cudaLibraryOption *library_options, void **library_values, unsigned library_count),
        ((void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count,
         cuLibraryLoadData((CUlibrary *)library, code, NULL, NULL, 0, NULL, NULL, 0)))
FORWARD(cudaLibraryLoadFromFile,
        (cudaLibrary_t * library, const char *path, enum cudaJitOption *options, void **values, unsigned count,
         enum cudaLibraryOption *library_options, void **library_values, unsigned library_count),
        ((void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count,
         cuLibraryLoadFromFile((CUlibrary *)library, path, NULL, NULL, 0, NULL, NULL, 0)))
FORWARD(cudaLibraryUnload, (cudaLibrary_t library), cuLibraryUnload((CUlibrary)library))
FORWARD(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
        cuLibraryGetKernel((CUkernel *)kernel, (CUlibrary)library, name))
FORWARD(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t library),
        cuLibraryGetKernelCount(count, (CUlibrary)library))
FORWARD(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned count, cudaLibrary_t library),
        cuLibraryEnumerateKernels((CUkernel *)kernels, count, (CUlibrary)library))
FORWARD(cudaLibraryGetGlobal, (void **address, size_t *bytes, cudaLibrary_t library, const char *name),
        cuLibraryGetGlobal((CUdeviceptr *)address, bytes, (CUlibrary)library, name))
FORWARD(cudaLibraryGetManaged, (void **address, size_t *bytes, cudaLibrary_t library, const char *name),
        cuLibraryGetManaged((CUdeviceptr *)address, bytes, (CUlibrary)library, name))
FORWARD(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, enum cudaFuncAttribute a, int value, int device),
        cuKernelSetAttribute((CUfunction_attribute)a, value, (CUkernel)kernel, device))

/* ---- variables -------------------------------------------------------------------------------- */

cudaError_t cudaGetSymbolAddress(void **address, const void *host)
{
    size_t bytes;
    return runtime_keep(address ? find_symbol(host, (CUdeviceptr *)address, &bytes) : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *host)
{
    CUdeviceptr address;
    return runtime_keep(bytes ? find_symbol(host, &address, bytes) : CUDA_ERROR_INVALID_VALUE);
}

/* Where bytes of a symbol are, which must lie in it. */
static CUresult find_part(const void *host, size_t count, size_t offset, CUdeviceptr *address)
{
    size_t bytes;
    const CUresult r = find_symbol(host, address, &bytes);
    if (r)
        return r;
    *address += offset;
    return offset > bytes || count > bytes - offset ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult copy_to(const void *host, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind,
                        cudaStream_t stream)
{
    CUdeviceptr symbol;
    if (!is_kind(kind) || kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    const CUresult r = find_part(host, count, offset, &symbol);
    return r ? r : cuMemcpyAsync(symbol, at(from), count, stream);
}

static CUresult copy_from(void *to, const void *host, size_t count, size_t offset, enum cudaMemcpyKind kind,
                          cudaStream_t stream)
{
    CUdeviceptr symbol;
    if (!is_kind(kind) || kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    const CUresult r = find_part(host, count, offset, &symbol);
    return r ? r : cuMemcpyAsync(at(to), symbol, count, stream);
}

#define TO_SYMBOL const void *host, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind
#define FROM_SYMBOL void *to, const void *host, size_t count, size_t offset, enum cudaMemcpyKind kind
FORWARD(cudaMemcpyToSymbol, (TO_SYMBOL), copy_to(host, from, count, offset, kind, NULL))
FORWARD(cudaMemcpyToSymbolAsync, (TO_SYMBOL, cudaStream_t stream), copy_to(host, from, count, offset, kind, stream))
FORWARD(cudaMemcpyFromSymbol, (FROM_SYMBOL), copy_from(to, host, count, offset, kind, NULL))
FORWARD(cudaMemcpyFromSymbolAsync, (FROM_SYMBOL, cudaStream_t stream), copy_from(to, host, count, offset, kind, stream))
