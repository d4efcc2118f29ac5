// SPDX-License-Identifier: MIT
/*
 * interface.cu - calls of the runtime that a device's attributes promise, by what they do, and what they say of bad
 * arguments. To be run by `turing exec`; built, too, with a default stream for each thread.
 */
#include "want.h"

#include <cstdint>
#include <cstring>
#include <vector>

__managed__ int counter = 5;
__managed__ float cells[100];
__device__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ int scale = 3;

__global__ void change(int *through) // a managed variable by its name, and by its address on the host
{
    cells[threadIdx.x] = (float)(threadIdx.x * scale);
    if (threadIdx.x == 0) {
        counter += 2;
        *through += 10;
    }
}
__global__ void nothing(int *p) { if (p) *p = 1; }
__global__ void __launch_bounds__(64) narrow() {}
__global__ void dynamic(int *o)
{
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    *o = s[threadIdx.x];
}

template <int N> __global__ void wide(const float *in, float *out) // N values and more in registers at a time
{
    float x[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = in ? in[i * 32 + threadIdx.x % 32] : 1;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++)
        if (out)
            atomicAdd(&out[i], x[N - 1 - i]);
}

#define LAUNCHED(error, ...)                           \
    do {                                               \
        cudaGetLastError();                            \
        __VA_ARGS__;                                   \
        const cudaError_t found_ = cudaGetLastError(); \
        WANT(found_ == (error));                       \
    } while (0)

static void managed_variables()
{
    counter++;
    change<<<1, 100>>>(&counter);
    OK(cudaDeviceSynchronize());
    WANT(counter == 18 && cells[99] == 297);
    cudaPointerAttributes a;
    OK(cudaPointerGetAttributes(&a, &cells[7]));
    WANT(a.type == cudaMemoryTypeManaged && a.devicePointer == &cells[7] && a.hostPointer == &cells[7]);
    void *address;
    size_t bytes;
    OK(cudaGetSymbolAddress(&address, cells));
    OK(cudaGetSymbolSize(&bytes, cells));
    WANT(address == cells && bytes == sizeof cells);
}

/* What the attributes say is the largest block can be launched, and a larger one cannot: each of four sub-cores has a quarter
 * of the registers. Returns its threads. */
template <int N> static int largest_block()
{
    cudaFuncAttributes a;
    int fits = 0, more = 1;
    OK(cudaFuncGetAttributes(&a, wide<N>));
    const int threads = a.maxThreadsPerBlock, warps = 16384 / ((a.numRegs + 7) / 8 * 256) * 4;
    WANT(threads == (warps < 32 ? warps : 32) * 32);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, wide<N>, threads, 0));
    WANT(fits >= 1);
    LAUNCHED(cudaSuccess, wide<N><<<1, threads>>>(nullptr, nullptr));
    if (threads < 1024) {
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&more, wide<N>, threads + 32, 0));
        WANT(more == 0);
        LAUNCHED(cudaErrorLaunchOutOfResources, wide<N><<<1, threads + 32>>>(nullptr, nullptr));
    }
    OK(cudaDeviceSynchronize());
    return threads;
}

static void largest_blocks()
{
    const int found[] = {largest_block<8>(),  largest_block<56>(), largest_block<64>(), largest_block<72>(),
                         largest_block<80>(), largest_block<96>(), largest_block<120>()};
    WANT(found[0] == 1024);
    int less = 0;
    for (int threads : found)
        less += threads < 1024;
    WANT(less >= 4);
}

static cudaMemLocation on_device(int id)
{
    cudaMemLocation l;
    l.type = cudaMemLocationTypeDevice, l.id = id;
    return l;
}

static void managed_memory()
{
    const size_t page = 4096, bytes = 5 * page;
    char *p, *device;
    int value, by[3];
    cudaMemLocation host, here = on_device(0);
    host.type = cudaMemLocationTypeHost, host.id = 0;
    OK(cudaMallocManaged(&p, bytes));
    OK(cudaMalloc(&device, bytes));
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, 0));
    WANT(value == 1);
    OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributePreferredLocation, p, bytes));
    WANT(value == cudaInvalidDeviceId);
    OK(cudaMemPrefetchAsync(p, bytes, here, 0, 0));
    OK(cudaMemPrefetchAsync(p + page, page, host, 0, 0));
    OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, p, page));
    WANT(value == 0);
    OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, p + page, page));
    WANT(value == cudaCpuDeviceId);
    OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, p, bytes)); // both
    WANT(value == cudaInvalidDeviceId);
    OK(cudaMemAdvise(p, 2 * page, cudaMemAdviseSetReadMostly, here));
    OK(cudaMemAdvise(p, bytes, cudaMemAdviseSetPreferredLocation, here));
    OK(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, host));
    OK(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, here));
    cudaMemRangeAttribute which[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation,
                                     cudaMemRangeAttributeAccessedBy};
    int first[2];
    void *out[] = {&first[0], &first[1], by};
    size_t sizes[] = {4, 4, sizeof by};
    OK(cudaMemRangeGetAttributes(out, sizes, which, 3, p, 2 * page));
    WANT(first[0] == 1 && first[1] == 0 && by[0] == 0 && by[1] == cudaCpuDeviceId && by[2] == cudaInvalidDeviceId);
    OK(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, p, bytes)); // of some pages
    WANT(value == 0);
    OK(cudaMemAdvise(p, bytes, cudaMemAdviseUnsetAccessedBy, here));
    OK(cudaMemRangeGetAttribute(by, sizeof by, cudaMemRangeAttributeAccessedBy, p, bytes));
    WANT(by[0] == cudaCpuDeviceId && by[1] == cudaInvalidDeviceId);
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(p, bytes + page, here, 0, 0));
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(p, 0, here, 0, 0));
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(device, bytes, here, 0, 0));
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(p, bytes, here, 1, 0));
    IS(cudaErrorInvalidDevice, cudaMemPrefetchAsync(p, bytes, on_device(1), 0, 0));
    IS(cudaErrorInvalidValue, cudaMemAdvise(p, bytes, (cudaMemoryAdvise)77, here));
    IS(cudaErrorInvalidDevice, cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, on_device(2)));
    IS(cudaErrorInvalidValue, cudaMemRangeGetAttribute(&value, 8, cudaMemRangeAttributeReadMostly, p, bytes));
    IS(cudaErrorInvalidValue, cudaMemRangeGetAttribute(nullptr, 4, cudaMemRangeAttributeReadMostly, p, bytes));
    IS(cudaErrorInvalidValue, cudaMallocManaged(&p, 16, 7));
    OK(cudaFree(p));
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(p, bytes, here, 0, 0));
    OK(cudaFree(device));
}

static void pools()
{
    cudaMemPool_t standard, pool, current;
    cudaMemPoolProps properties = {};
    uint64_t bytes = 0, threshold = 1 << 20;
    int flag = 0;
    char *p, *q, back[64];
    cudaStream_t stream;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = on_device(0);
    properties.maxSize = 1 << 20;
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync(&p, 64, pool, stream));
    OK(cudaMemsetAsync(p, 7, 64, stream));
    OK(cudaMemcpyAsync(back, p, 64, cudaMemcpyDeviceToHost, stream));
    WANT(back[0] == 7 && back[63] == 7);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    WANT(bytes == 64);
    IS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&q, 1 << 20, pool, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    WANT(bytes == 0);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &bytes));
    WANT(bytes == 64);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &(bytes = 0)));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &bytes));
    WANT(bytes == 0);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
    WANT(bytes == threshold);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &flag));
    WANT(flag == 1);
    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    WANT(current == pool && current != standard);
    OK(cudaMallocAsync(&p, 128, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
    WANT(bytes == 128);
    cudaMemAccessFlags access;
    cudaMemLocation here = on_device(0);
    OK(cudaMemPoolGetAccess(&access, pool, &here));
    WANT(access == cudaMemAccessFlagsProtReadWrite);
    OK(cudaMemPoolTrimTo(pool, 0));
    OK(cudaMemPoolDestroy(pool)); // what is taken of it stays
    OK(cudaDeviceGetMemPool(&current, 0));
    WANT(current == standard);
    OK(cudaMemset(p, 1, 128));
    OK(cudaFree(p));
    IS(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    IS(cudaErrorInvalidValue, cudaMemPoolDestroy(standard));
    IS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&p, 64, pool, stream));
    IS(cudaErrorInvalidValue, cudaMemPoolGetAttribute(standard, (cudaMemPoolAttr)99, &bytes));
    properties.location.id = 3;
    IS(cudaErrorInvalidDevice, cudaMemPoolCreate(&pool, &properties));
    IS(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, nullptr));
    OK(cudaStreamDestroy(stream));
}

/* Boxes of rows and layers: 6 bytes x 3 rows x 2 layers out of 8 x 4 x 3. */
static void boxes()
{
    char in[8 * 4 * 3], out[8 * 4 * 3], want[8 * 4 * 3];
    cudaPitchedPtr p;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)i;
    OK(cudaMalloc3D(&p, make_cudaExtent(8, 4, 3)));
    WANT(p.pitch >= 8 && p.pitch % 32 == 0 && p.xsize == 8 && p.ysize == 4);
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(in, 8, 8, 4);
    c.dstPtr = p;
    c.extent = make_cudaExtent(8, 4, 3);
    c.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&c));
    OK(cudaMemset3D(p, 99, make_cudaExtent(2, 1, 2)));
    OK(cudaMemset2D((char *)p.ptr + 4, p.pitch, 55, 3, 2));
    memset(out, 0, sizeof out);
    memset(want, 0, sizeof want);
    c = {};
    c.srcPtr = p;
    c.srcPos = make_cudaPos(1, 1, 1);
    c.dstPtr = make_cudaPitchedPtr(out, 8, 8, 4);
    c.dstPos = make_cudaPos(2, 0, 0);
    c.extent = make_cudaExtent(6, 3, 2);
    c.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3DAsync(&c, 0));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 6; x++)
                want[x + 2 + 8 * (y + 4 * z)] = in[x + 1 + 8 * (y + 1 + 4 * (z + 1))];
    WANT(!memcmp(out, want, sizeof out));
    OK(cudaMemcpy2DAsync(out, 8, p.ptr, p.pitch, 8, 12, cudaMemcpyDefault, 0));
    memcpy(want, in, sizeof want);
    want[0] = want[1] = want[32] = want[33] = 99;
    for (int x = 4; x < 7; x++)
        want[x] = want[x + 8] = 55;
    WANT(!memcmp(out, want, sizeof out));
    OK(cudaMemset3DAsync(p, 1, make_cudaExtent(8, 4, 3), 0));
    OK(cudaMemset2DAsync(p.ptr, p.pitch, 2, 8, 4, 0));
    OK(cudaMemcpy2D(out, 8, p.ptr, p.pitch, 8, 12, cudaMemcpyDeviceToHost));
    WANT(out[0] == 2 && out[31] == 2 && out[32] == 1 && out[95] == 1);
    OK(cudaMemcpyPeer(p.ptr, 0, (char *)p.ptr + p.pitch * 4, 0, 8));
    OK(cudaMemcpyPeerAsync(p.ptr, 0, (char *)p.ptr + p.pitch * 4, 0, 8, 0));

    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(out, 7, p.ptr, p.pitch, 8, 2, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2DAsync(p.ptr, p.pitch, out, 4, 8, 2, cudaMemcpyHostToDevice, 0));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(out, 8, p.ptr, p.pitch, 8, 2, (cudaMemcpyKind)9));
    IS(cudaErrorInvalidValue, cudaMemcpy2D(nullptr, 8, p.ptr, p.pitch, 8, 2, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidValue, cudaMemcpy2D(out, 8, p.ptr, p.pitch, 8, 1000, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidValue, cudaMemset2D(p.ptr, 4, 0, 8, 2));
    IS(cudaErrorInvalidValue, cudaMemset2D(p.ptr, p.pitch, 0, 8, 1000));
    IS(cudaErrorInvalidValue, cudaMemset3D(p, 0, make_cudaExtent(8, 5, 3)));
    IS(cudaErrorInvalidValue, cudaMemcpy3D(nullptr));
    c.kind = (cudaMemcpyKind)9;
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&c));
    c.kind = cudaMemcpyDeviceToHost, c.dstPtr.pitch = 5;
    IS(cudaErrorInvalidPitchValue, cudaMemcpy3D(&c));
    c.dstPtr = make_cudaPitchedPtr(nullptr, 8, 8, 4);
    IS(cudaErrorInvalidValue, cudaMemcpy3D(&c));
    IS(cudaErrorInvalidDevice, cudaMemcpyPeer(p.ptr, 1, p.ptr, 0, 8));
    IS(cudaErrorInvalidValue, cudaMalloc3D(&p, make_cudaExtent(0, 4, 3)));
    OK(cudaFree(p.ptr));
}

static void symbols()
{
    float back[8] = {0}, two[2] = {-1, -2};
    OK(cudaMemcpyToSymbolAsync(table, two, sizeof two, 8, cudaMemcpyHostToDevice, 0));
    OK(cudaMemcpyFromSymbolAsync(back, table, 5 * sizeof *back, 4, cudaMemcpyDeviceToHost, 0));
    OK(cudaDeviceSynchronize());
    WANT(back[0] == 2 && back[1] == -1 && back[2] == -2 && back[3] == 5 && back[4] == 6 && back[5] == 0);
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, two, sizeof two, 28));
    IS(cudaErrorInvalidValue, cudaMemcpyFromSymbolAsync(back, table, 36, 0, cudaMemcpyDeviceToHost, 0));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(table, two, 8, 0, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpyFromSymbol(back, table, 8, 0, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, nullptr, 8));
    IS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(two, two, 8));
}

static void device()
{
    unsigned flags = 0;
    cudaFuncCache cache;
    const char *name = nullptr;
    size_t offset, size, bytes;
    int value, fits = 0;
    OK(cudaInitDevice(0, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid));
    OK(cudaGetDeviceFlags(&flags));
    WANT((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleYield && flags & cudaDeviceMapHost);
    OK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    OK(cudaGetDeviceFlags(&flags));
    WANT((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync);
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    OK(cudaDeviceGetCacheConfig(&cache));
    WANT(cache == cudaFuncCachePreferShared);
    OK(cudaFuncSetCacheConfig(nothing, cudaFuncCachePreferL1));
    OK(cudaFuncGetName(&name, (const void *)nothing));
    WANT(name && strstr(name, "nothing"));
    OK(cudaFuncGetParamInfo((const void *)nothing, 0, &offset, &size));
    WANT(offset == 0 && size == sizeof(void *));
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, nothing, 2, 128));
    WANT(bytes == 32 << 10);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, nothing, 128, 0));
    WANT(fits == 8);
    OK(cudaFuncSetAttribute(nothing, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, nothing));
    WANT(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
    IS(cudaErrorInvalidDevice, cudaInitDevice(1, 0, 0));
    IS(cudaErrorInvalidDevice, cudaSetDevice(3));
    IS(cudaErrorInvalidValue, cudaSetDeviceFlags(0x4000));
    IS(cudaErrorInvalidValue, cudaDeviceSetCacheConfig((cudaFuncCache)9));
    IS(cudaErrorInvalidValue, cudaFuncSetCacheConfig(nothing, (cudaFuncCache)9));
    IS(cudaErrorInvalidValue, cudaFuncSetAttribute(nothing, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    IS(cudaErrorInvalidValue, cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 65540));
    IS(cudaErrorInvalidDeviceFunction, cudaFuncSetCacheConfig((const void *)&value, cudaFuncCachePreferL1));
    IS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
    IS(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
    IS(cudaErrorUnsupportedLimit, cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 4096));
    IS(cudaErrorInvalidValue, cudaDeviceSetLimit((cudaLimit)99, 1));
    IS(cudaErrorInvalidValue, cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
}

static void streams()
{
    cudaStream_t s, t;
    cudaEvent_t a, b, untimed;
    int least, greatest, priority;
    unsigned flags;
    unsigned long long id, other;
    float ms;
    cudaStreamAttrValue v = {};
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    WANT(least == 0 && greatest < 0);
    OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest));
    OK(cudaStreamCreate(&t));
    OK(cudaStreamGetPriority(s, &priority));
    OK(cudaStreamGetFlags(s, &flags));
    OK(cudaStreamGetId(s, &id));
    OK(cudaStreamGetId(t, &other));
    WANT(priority == greatest && flags == cudaStreamNonBlocking && id != other);
    v.syncPolicy = cudaSyncPolicyYield;
    OK(cudaStreamSetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &v));
    v.priority = -2;
    OK(cudaStreamSetAttribute(s, cudaStreamAttributePriority, &v));
    OK(cudaStreamCopyAttributes(t, s));
    OK(cudaStreamGetAttribute(t, cudaStreamAttributeSynchronizationPolicy, &v));
    WANT(v.syncPolicy == cudaSyncPolicyYield);
    OK(cudaStreamGetPriority(t, &priority));
    WANT(priority == -2);
    v = {};
    OK(cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &v));
    v.accessPolicyWindow.num_bytes = 4096; // of which a T4 has none
    IS(cudaErrorInvalidValue, cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &v));
    v.priority = 4;
    IS(cudaErrorInvalidValue, cudaStreamSetAttribute(s, cudaStreamAttributePriority, &v));
    IS(cudaErrorInvalidValue, cudaStreamGetAttribute(s, (cudaStreamAttrID)99, &v));
    cudaStreamCaptureStatus capture;
    OK(cudaStreamIsCapturing(s, &capture));
    WANT(capture == cudaStreamCaptureStatusNone);

    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b)); // not recorded
    OK(cudaEventRecord(a, s));
    OK(cudaEventRecord(b, t));
    OK(cudaStreamWaitEvent(t, a, 0));
    OK(cudaEventElapsedTime(&ms, a, b));
    WANT(ms >= 0);
    OK(cudaEventRecord(untimed, s));
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, untimed));
    IS(cudaErrorInvalidValue, cudaEventElapsedTime(nullptr, a, b));
    IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&untimed, 0x100));
    IS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&s, 0x20));

    /* what is destroyed is known no more */
    OK(cudaEventDestroy(a));
    IS(cudaErrorInvalidResourceHandle, cudaEventDestroy(a));
    IS(cudaErrorInvalidResourceHandle, cudaEventRecord(a, t));
    IS(cudaErrorInvalidResourceHandle, cudaEventQuery(a));
    IS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(a));
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
    IS(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(t, a, 0));
    IS(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, t));
    OK(cudaStreamDestroy(t));
    IS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(t));
    IS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(0));
    IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(t));
    IS(cudaErrorInvalidResourceHandle, cudaStreamQuery(t));
    IS(cudaErrorInvalidResourceHandle, cudaEventRecord(b, t));
    IS(cudaErrorInvalidResourceHandle, cudaMemsetAsync(cells, 0, 4, t));
    IS(cudaErrorInvalidResourceHandle, cudaStreamCopyAttributes(0, t));
    LAUNCHED(cudaErrorInvalidResourceHandle, nothing<<<1, 1, 0, t>>>(nullptr));
}

static void launches()
{
    int *p;
    OK(cudaMalloc(&p, 256));
    LAUNCHED(cudaErrorInvalidConfiguration, nothing<<<0, 1>>>(p));
    LAUNCHED(cudaErrorInvalidConfiguration, nothing<<<1, 1025>>>(p));
    LAUNCHED(cudaErrorInvalidConfiguration, nothing<<<1, dim3(1, 1, 65)>>>(p));
    LAUNCHED(cudaErrorInvalidConfiguration, nothing<<<dim3(1, 65536), 1>>>(p));
    LAUNCHED(cudaErrorInvalidValue, dynamic<<<1, 32, 48 * 1024 + 4>>>(p));
    OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    LAUNCHED(cudaSuccess, dynamic<<<1, 32, 65536>>>(p));
    LAUNCHED(cudaErrorInvalidValue, dynamic<<<1, 32, 65540>>>(p));
    LAUNCHED(cudaErrorInvalidValue, dynamic<<<1, 32, (size_t)1 << 32>>>(p));
    narrow<<<1, 128>>>(); // beyond its bounds
    WANT(cudaGetLastError() != cudaSuccess);
    void *none[] = {nullptr};
    IS(cudaErrorInvalidValue, cudaLaunchKernel((const void *)nothing, 1, 1, none, 0, 0));
    IS(cudaErrorInvalidValue, cudaLaunchKernelExC(nullptr, (const void *)nothing, none));
    IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((const void *)p, 1, 1, none, 0, 0));
    void *args[] = {&p};
    IS(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel((const void *)nothing, 99999, 1, args, 0, 0));
    OK(cudaLaunchCooperativeKernel((const void *)nothing, 2, 1, args, 0, 0));
    OK(cudaFree(p));
}

static void memory()
{
    char host[64] = {0}, *d, *pinned, *managed;
    void *p;
    unsigned flags;
    size_t bytes;
    OK(cudaMalloc(&d, 4096));
    OK(cudaMallocManaged(&managed, 4096));
    OK(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped));
    OK(cudaHostGetFlags(&flags, pinned));
    WANT(flags & cudaHostAllocMapped);
    OK(cudaMemcpy(d, host, 0, cudaMemcpyHostToDevice));
    OK(cudaMalloc(&p, 0));
    WANT(!p);
    OK(cudaFree(nullptr));
    OK(cudaFreeHost(nullptr));
    char *const wild = (char *)8; /* where no page is */
    IS(cudaErrorInvalidValue, cudaMemcpy(nullptr, d, 4, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, nullptr, 4, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, wild, 4, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(wild, d, 4, cudaMemcpyDefault));
    IS(cudaErrorInvalidValue, cudaMemcpy(managed, nullptr, 4, cudaMemcpyDefault));
    IS(cudaErrorInvalidValue, cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToHost));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, host, 4, cudaMemcpyDeviceToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(host, d, 4, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d, host, 4, (cudaMemcpyKind)9));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpyAsync(d, host, 4, (cudaMemcpyKind)-1, 0));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, managed, (size_t)1 << 30, cudaMemcpyDefault));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, host, (size_t)-1, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemset(nullptr, 0, 4));
    IS(cudaErrorInvalidValue, cudaMemset(host, 0, 4));
    IS(cudaErrorInvalidValue, cudaMemset(d, 0, 1 << 30));
    IS(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 40));
    IS(cudaErrorMemoryAllocation, cudaMallocManaged(&p, (size_t)1 << 60));
    IS(cudaErrorMemoryAllocation, cudaMallocHost(&p, (size_t)1 << 60));
    IS(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, 4));
    IS(cudaErrorInvalidValue, cudaMallocManaged((void **)nullptr, 4));
    IS(cudaErrorInvalidValue, cudaMallocPitch(&p, &bytes, (size_t)-1, 2));
    IS(cudaErrorInvalidValue, cudaHostAlloc(&p, 64, 0x80));
    IS(cudaErrorInvalidValue, cudaHostRegister(nullptr, 64, 0));
    IS(cudaErrorInvalidValue, cudaHostRegister(wild, 64, 0));
    IS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pinned, 64, 0));
    IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host));
    IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&p, host, 0));
    IS(cudaErrorInvalidValue, cudaPointerGetAttributes(nullptr, d));
    IS(cudaErrorInvalidValue, cudaGetDeviceProperties(nullptr, 0));
    IS(cudaErrorInvalidValue, cudaGetDevice(nullptr));
    IS(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
    IS(cudaErrorInvalidValue, cudaRuntimeGetVersion(nullptr));
    IS(cudaErrorInvalidValue, cudaMemGetInfo(nullptr, &bytes));
    /* each kind of memory goes by its own call */
    IS(cudaErrorInvalidValue, cudaFree(host));
    IS(cudaErrorInvalidValue, cudaFree(d + 4));
    IS(cudaErrorInvalidValue, cudaFree(pinned));
    IS(cudaErrorInvalidValue, cudaFreeHost(d));
    IS(cudaErrorInvalidValue, cudaFreeHost(managed));
    OK(cudaFreeHost(pinned));
    IS(cudaErrorInvalidValue, cudaFreeHost(pinned));
    OK(cudaFree(d));
    IS(cudaErrorInvalidValue, cudaFree(d));
    IS(cudaErrorInvalidValue, cudaMemcpy(host, d, 4, cudaMemcpyDeviceToHost));
    OK(cudaFree(managed));
}

static void refusals()
{
    cudaGraph_t graph;
    for (int i = 0; i < 2; i++)
        IS(cudaErrorNotSupported, cudaGraphCreate(&graph, 0)); // told of once
    WANT(!strcmp(cudaGetErrorString(cudaErrorInvalidPitchValue), "invalid pitch argument"));
    WANT(!strcmp(cudaGetErrorString(cudaErrorInvalidResourceHandle), "invalid resource handle"));
    WANT(!strcmp(cudaGetErrorString(cudaErrorNotSupported), "operation not supported"));
}

int main()
{
    managed_variables();
    managed_memory();
    pools();
    boxes();
    symbols();
    device();
    largest_blocks();
    streams();
    launches();
    memory();
    refusals();
    OK(cudaDeviceSynchronize());
    return report();
}
