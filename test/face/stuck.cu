// SPDX-License-Identifier: MIT
/* stuck.cu spin|loop - a kernel that goes nowhere: it waits for memory that nobody writes, or counts for ever. */
#include <cstdio>
#include <cstring>

__global__ void spin(volatile int *p)
{
    while (!*p)
        ;
}
__global__ void count_for_ever(int *p)
{
    volatile int i = *p; // a compiler leaves out a loop that only counts
    do
        i = i + 2;
    while (i != 1);
    *p = i;
}

int main(int argc, char **argv)
{
    int *p;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    if (argc > 1 && !strcmp(argv[1], "spin"))
        spin<<<1, 32>>>(p);
    else
        count_for_ever<<<1, 32>>>(p);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
