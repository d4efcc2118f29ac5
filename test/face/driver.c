/* SPDX-License-Identifier: MIT */
/*
 * driver CUBIN - a program of the driver's interface, which it finds as programs do, by dlopen. The
 * kernels are those of turing_people.cu. To be run by `turing exec`.
 *
 * driver CUBIN HANDLE - another process, which adds 1 to each word of the memory that the first one shares.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "want.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* of launches as they were before CUDA 4 */

#define CALL(...) WANT((__VA_ARGS__) == CUDA_SUCCESS)

/* The driver's functions, each of the type that cuda.h gives it. */
/* clang-format off */
#define FUNCTIONS(X)                                                                                           \
    X(cuInit)                                                                                                  \
    X(cuDeviceGet)                                                                                             \
    X(cuDeviceGetName)                                                                                         \
    X(cuDeviceGetAttribute)                                                                                    \
    X(cuCtxDestroy)                                                                                            \
    X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxSynchronize) X(cuMemAlloc) X(cuMemFree) X(cuMemcpyHtoD)       \
        X(cuMemcpyDtoH) X(cuMemsetD32) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuModuleLoad) X(cuModuleUnload)    \
            X(cuModuleGetFunction) X(cuModuleGetGlobal) X(cuLaunchKernel) X(cuLaunchCooperativeKernel)         \
                X(cuFuncGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxReset) X(cuEventCreate)  \
                    X(cuEventDestroy) X(cuEventRecord) X(cuEventElapsedTime) X(cuGetErrorName) X(cuMemGetInfo) \
                        X(cuPointerGetAttribute) X(cuGraphCreate)  \
                            X(cuFuncSetBlockShape) X(cuParamSetv) X(cuParamSetSize) X(cuLaunchGrid)            \
                                X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)
/* clang-format on */
#define DECLARE(name) static __typeof__(&name) p_##name;
FUNCTIONS(DECLARE)
static CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static CUfunction find(CUmodule module, const char *name)
{
    CUfunction f = NULL;
    CALL(p_cuModuleGetFunction(&f, module, name));
    return f;
}

static void *elsewhere(void *context)
{
    CUcontext current = context;
    CUdeviceptr p = 0;
    CALL(p_cuCtxGetCurrent(&current));
    WANT(!current && p_cuMemAlloc(&p, 16) == CUDA_ERROR_INVALID_CONTEXT);
    CALL(p_cuCtxSetCurrent(context));
    CALL(p_cuMemAlloc(&p, 16));
    CALL(p_cuMemFree(p));
    return NULL;
}

/* A block and parameters that stay with the function. */
static void launch_as_of_old(CUmodule module, CUdeviceptr a, CUdeviceptr d)
{
    float product[4] = {0};
    CUfunction f = find(module, "module_variables");
    CALL(p_cuFuncSetBlockShape(f, 32, 1, 1));
    CALL(p_cuParamSetSize(f, 16));
    CALL(p_cuParamSetv(f, 0, &d, sizeof d));
    CALL(p_cuParamSetv(f, 8, &a, sizeof a));
    WANT(p_cuParamSetv(f, 4092, &a, sizeof a) == CUDA_ERROR_INVALID_VALUE);
    CALL(p_cuMemsetD32(d, 0, 4));
    CALL(p_cuLaunchGrid(f, 2, 1));
    CALL(p_cuMemcpyDtoH(product, d, sizeof product));
    WANT(product[0] == 2);
}

extern char **environ;

enum { SHARED_WORDS = 2000 };

static void share(char **argv)
{
    static int words[SHARED_WORDS];
    CUipcMemHandle handle;
    CUdeviceptr shared, same;
    char text[2 * sizeof handle + 1];
    pid_t child = 0;
    int status = -1;
    CALL(p_cuMemAlloc(&shared, sizeof words));
    CALL(p_cuMemsetD32(shared, 41, SHARED_WORDS));
    CALL(p_cuIpcGetMemHandle(&handle, shared));
    WANT(p_cuIpcOpenMemHandle(&same, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_CONTEXT);
    WANT(p_cuIpcCloseMemHandle(shared) == CUDA_ERROR_INVALID_VALUE);
    WANT(p_cuIpcGetMemHandle(&handle, 8) == CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof handle; i++)
        sprintf(text + 2 * i, "%02x", (unsigned char)handle.reserved[i]);
    char *arguments[] = {argv[0], argv[1], text, NULL};
    WANT(!posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ));
    WANT(waitpid(child, &status, 0) == child && status == 0);
    CALL(p_cuMemcpyDtoH(words, shared, sizeof words));
    WANT(words[0] == 42 && words[SHARED_WORDS - 1] == 42);
    CALL(p_cuMemFree(shared));
    WANT(p_cuIpcGetMemHandle(&handle, shared) == CUDA_ERROR_INVALID_VALUE);
}

static void be_shared_with(const char *text)
{
    static int words[SHARED_WORDS];
    CUipcMemHandle handle;
    CUdeviceptr shared, again;
    unsigned byte;
    for (size_t i = 0; i < sizeof handle && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
        handle.reserved[i] = (char)byte;
    CALL(p_cuIpcOpenMemHandle(&shared, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CALL(p_cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CALL(p_cuMemcpyDtoH(words, shared, sizeof words));
    for (int i = 0; i < SHARED_WORDS; i++)
        words[i]++;
    CALL(p_cuMemcpyHtoD(again, words, sizeof words));
    CALL(p_cuIpcCloseMemHandle(shared));
    CALL(p_cuIpcCloseMemHandle(again));
    WANT(p_cuMemcpyDtoH(words, shared, sizeof words) == CUDA_ERROR_INVALID_VALUE);
    handle.reserved[0] ^= 1;
    WANT(p_cuIpcOpenMemHandle(&shared, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc < 2 || argc > 3 || !library || !(*(void **)&get = dlsym(library, "cuGetProcAddress_v2"))) {
        printf("no libcuda.so.1\n");
        return 1;
    }
#define LOAD(name) CALL(get(#name, (void **)&p_##name, 13000, 0, NULL));
    FUNCTIONS(LOAD)
    CUdevice device;
    CUcontext context = NULL;
    CUmodule module;
    char name[64];
    int sms = 0, threads = 0;
    CUdeviceptr a, d;
    const int zeros[128] = {0}, one = 1;
    int back[128], *pinned;
    size_t bytes = 0, before = 0, total;
    WANT(p_cuMemAlloc(&a, 16) == CUDA_ERROR_NOT_INITIALIZED);
    CALL(p_cuInit(0));
    WANT(p_cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
    CALL(p_cuDeviceGet(&device, 0));
    CALL(p_cuDeviceGetName(name, sizeof name, device));
    CALL(p_cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    WANT(strstr(name, "T4") && sms == 40);
    CALL(p_cuDevicePrimaryCtxRetain(&context, device));
    CALL(p_cuCtxSetCurrent(context));
    if (argc == 3) {
        be_shared_with(argv[2]);
        return failures != 0;
    }
    CALL(p_cuMemGetInfo(&before, &total));

    CALL(p_cuModuleLoad(&module, argv[1]));
    WANT(p_cuModuleLoad(&module, "/nowhere") == CUDA_ERROR_FILE_NOT_FOUND);
    CALL(p_cuMemAlloc(&a, sizeof zeros));
    CALL(p_cuMemAlloc(&d, sizeof zeros));
    CALL(p_cuMemcpyHtoD(a, zeros, sizeof zeros));
    WANT(p_cuMemcpyHtoD(a, zeros, sizeof zeros + 4) == CUDA_ERROR_INVALID_VALUE);
    CALL(p_cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, find(module, "machine")));
    WANT(threads == 1024);

    /* a variable of the module; parameters by pointers, and as one buffer */
    const float weights[4] = {2, 0, 0, 0};
    float product[64];
    CUdeviceptr symbol;
    void *args[] = {&d, &a};
    CALL(p_cuModuleGetGlobal(&symbol, &bytes, module, "weights"));
    WANT(bytes == sizeof weights && p_cuModuleGetGlobal(&symbol, NULL, module, "none") == CUDA_ERROR_NOT_FOUND);
    CALL(p_cuMemcpyHtoD(symbol, weights, sizeof weights));
    CALL(p_cuLaunchKernel(find(module, "module_variables"), 2, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
    CALL(p_cuMemcpyDtoH(product, d, sizeof product));
    WANT(product[0] == 2 && product[4] == 4 && product[5] == 0);
    size_t size = 8;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &d, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CALL(p_cuLaunchKernel(find(module, "shared_lock"), 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
    CALL(p_cuMemcpyDtoH(back, d, 4));
    WANT(back[0] == 64);

    launch_as_of_old(module, a, d);
    share(argv);

    /* memory of the host, cooperation, events, errors that do not stay */
    void *grid[] = {&pinned, &d};
    CUevent begin, end;
    float ms = -1;
    unsigned type = 0;
    CALL(p_cuMemHostAlloc((void **)&pinned, sizeof zeros, 0));
    CALL(p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(size_t)pinned));
    WANT(type == CU_MEMORYTYPE_HOST);
    CALL(p_cuEventCreate(&begin, 0));
    CALL(p_cuEventCreate(&end, 0));
    CALL(p_cuEventRecord(begin, NULL));
    CALL(p_cuLaunchCooperativeKernel(find(module, "grid_sync"), 2, 1, 1, 64, 1, 1, 0, NULL, grid));
    CALL(p_cuEventRecord(end, NULL));
    CALL(p_cuEventElapsedTime(&ms, begin, end));
    CALL(p_cuEventDestroy(begin));
    CALL(p_cuEventDestroy(end));
    CALL(p_cuMemcpyDtoH(back, d, sizeof back));
    WANT(ms >= 0 && pinned[5] == 5 && back[0] == 127);
    WANT(p_cuLaunchCooperativeKernel(find(module, "grid_sync"), 999, 1, 1, 64, 1, 1, 0, NULL, grid) ==
         CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    WANT(p_cuLaunchKernel(find(module, "machine"), 0, 1, 1, 32, 1, 1, 0, NULL, args, NULL) == CUDA_ERROR_INVALID_VALUE);
    WANT(p_cuLaunchKernel(find(module, "machine"), 1, 1, 1, 32, 1, 1, 60000, NULL, args, NULL) ==
         CUDA_ERROR_INVALID_VALUE);
    CUgraph graph;
    WANT(p_cuGraphCreate(&graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
    const CUdeviceptr handle = 1;
    void *texture[] = {(void *)&handle, &d};
    WANT(p_cuLaunchKernel(find(module, "bad_texture"), 1, 1, 1, 32, 1, 1, 0, NULL, texture, NULL) ==
         CUDA_ERROR_NOT_SUPPORTED);
    CALL(p_cuCtxSynchronize());
    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, context);
    pthread_join(thread, NULL);

    /* an assertion stays until the context is reset */
    const char *text = NULL;
    CALL(p_cuMemsetD32(a, 5, 32));
    void *first[] = {&a, (void *)&one};
    CALL(p_cuLaunchKernel(find(module, "bad_assert"), 1, 1, 1, 32, 1, 1, 0, NULL, first, NULL));
    WANT(p_cuCtxSynchronize() == CUDA_ERROR_ASSERT && p_cuMemFree(a) == CUDA_ERROR_ASSERT);
    CALL(p_cuGetErrorName(CUDA_ERROR_ASSERT, &text));
    WANT(text && !strcmp(text, "CUDA_ERROR_ASSERT"));
    CALL(p_cuDevicePrimaryCtxReset(device));
    CALL(p_cuMemFree(a));
    CALL(p_cuMemFree(d));
    CALL(p_cuMemFreeHost(pinned));
    CALL(p_cuModuleUnload(module));
    CALL(p_cuMemGetInfo(&bytes, &total));
    WANT(bytes == before);
    return report();
}
