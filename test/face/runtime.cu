/* SPDX-License-Identifier: MIT */
/*
 * runtime.cu - a program of <<<>>>, symbols, streams, events, managed memory and cub, as people
 * write them, to be run by `turing exec`. With an argument it has a fault: race, bounds or hang.
 */
#include "want.h"

#include <cub/cub.cuh>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thread>
#include <vector>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        const cudaError_t error = (call);                                                      \
        if (error != cudaSuccess) {                                                            \
            printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));            \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

__constant__ int factor;
__device__ int calls;

__global__ void scale(int *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= factor;
    if (i == 0)
        atomicAdd(&calls, 1);
}

__global__ void reverse(int *x, bool with_barrier)
{
    __shared__ int s[128];
    s[threadIdx.x] = x[threadIdx.x];
    if (with_barrier)
        __syncthreads();
    x[threadIdx.x] = s[127 - threadIdx.x]; // the race
}

__global__ void spin(volatile int *x)
{
    while (*x == 0)
        ;
}

int main(int argc, char **argv)
{
    const char *fault = argc > 1 ? argv[1] : "";
    const int n = 1000, seven = 7;
    int *x, *managed, count, read = 0;
    CHECK(cudaGetDeviceCount(&count));
    WANT(count == 1);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    WANT(properties.major == 7 && properties.minor == 5 && properties.multiProcessorCount == 40);
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMallocManaged(&managed, n * sizeof *managed));
    for (int i = 0; i < n; i++)
        managed[i] = i;
    CHECK(cudaMemcpyToSymbol(factor, &seven, sizeof seven));
    cudaStream_t stream;
    cudaEvent_t begin, end;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaMemcpyAsync(x, managed, n * sizeof *x, cudaMemcpyDefault, stream));
    scale<<<(n + 255) / 256, 256, 0, stream>>>(x, strcmp(fault, "bounds") ? n : n + 20);
    CHECK(cudaGetLastError());
    scale<<<(n + 255) / 256, 256, 0, stream>>>(managed, n);
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    WANT(ms >= 0);
    CHECK(cudaMemcpyFromSymbol(&read, calls, sizeof read));
    WANT(read == 2);
    std::vector<int> back(n);
    CHECK(cudaMemcpy(back.data(), x, n * sizeof *x, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        WANT(back[i] == 7 * i && managed[i] == 7 * i);
    reverse<<<1, 128>>>(x, strcmp(fault, "race"));
    if (!strcmp(fault, "hang")) {
        CHECK(cudaMemset(x, 0, 4));
        spin<<<1, 32>>>(x);
    }
    if (!strcmp(fault, "race")) { // what follows a failure says so, too, by whatever kernel that was not looked up before
        spin<<<1, 32>>>(x);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());

    reverse<<<1, 2048>>>(x, true);
    WANT(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess);

    size_t bytes = 0;
    int *sum;
    void *work = nullptr;
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cub::DeviceReduce::Sum(work, bytes, managed, sum, n));
    CHECK(cudaMalloc(&work, bytes));
    CHECK(cub::DeviceReduce::Sum(work, bytes, managed, sum, n));
    CHECK(cudaMemcpy(&read, sum, sizeof read, cudaMemcpyDeviceToHost));
    WANT(read == 7 * n * (n - 1) / 2);

    thrust::device_vector<int> v(5000);
    std::vector<int> h(5000);
    for (int i = 0; i < 5000; i++)
        h[i] = i * 7919 % 5003;
    v.assign(h.begin(), h.end());
    thrust::sort(v.begin(), v.end());
    std::sort(h.begin(), h.end());
    WANT(std::equal(h.begin(), h.end(), v.begin()));

    int wrong = 0;
    std::thread other([&] { /* a thread of its own, which has the device at once */
        int *y;
        wrong = cudaMalloc(&y, 4 * n) || cudaMemset(y, 0, 4 * n) || cudaFree(y);
    });
    other.join();
    WANT(!wrong);
    CHECK(cudaFree(x));
    return report();
}
