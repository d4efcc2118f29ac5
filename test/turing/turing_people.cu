/* SPDX-License-Identifier: MIT */
/*
 * turing_people.cu - kernels of the kinds that people write, for turing_people_test.c: each
 * must run right and, with all checks on, without an alarm, unless its name begins with bad_.
 */
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/barrier>
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

/* ---- module variables ------------------------------------------------------------- */

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int visits;
__device__ int powers[4] = {1, 2, 4, 8};

KERNEL module_variables(float *d)
{
    d[INDEX] = weights[INDEX & 3] * powers[INDEX >> 2 & 3];
    atomicAdd(&visits, 1);
}

typedef int (*function_t)(int);
__device__ __noinline__ int add_one(int x) { return x + 1; }
__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ function_t table[2] = {add_one, twice};

KERNEL function_table(const int *a, int *d) { d[INDEX] = table[a[INDEX] & 1](a[INDEX]); }

struct shape {
    __device__ virtual int area() const = 0;
};
struct square : shape {
    int side;
    __device__ square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};
struct strip : shape {
    int length;
    __device__ strip(int l) : length(l) {}
    __device__ int area() const override { return 3 * length; }
};

KERNEL virtual_functions(const int *a, int *d)
{
    const square s(a[INDEX]);
    const strip t(a[INDEX]);
    const shape *which = INDEX & 1 ? static_cast<const shape *>(&s) : &t;
    d[INDEX] = which->area();
}

/* ---- the device's runtime ------------------------------------------------------------ */

KERNEL prints(const int *a)
{
    if (INDEX == 3)
        printf("%d %5.2f %s %c|%-4u|%lld|%x %%\n", a[3], 1.5, "text", 'z', 7u, 1ll << 40, 255);
}

KERNEL allocates(int *d)
{
    int *p = static_cast<int *>(malloc((INDEX + 1) * sizeof(int)));
    for (int i = 0; i <= INDEX; i++)
        p[i] = i;
    d[INDEX] = p[INDEX];
    free(p);
}

KERNEL bad_heap(int *d, int fault)
{
    int *p = static_cast<int *>(malloc(16));
    p[0] = 1;
    if (fault == 1)
        p[5] = 2;
    free(p);
    if (fault == 2)
        d[0] = p[0];
    if (fault == 3)
        free(p);
}

KERNEL bad_assert(const int *a) { assert(a[INDEX] != 5); }

/* ---- calls ------------------------------------------------------------------------------ */

__device__ void sort(int *a, int lo, int hi)
{
    if (lo >= hi)
        return;
    const int pivot = a[(lo + hi) / 2];
    int i = lo, j = hi;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            const int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    sort(a, lo, j);
    sort(a, i, hi);
}

KERNEL sorts(int *a, int n) { sort(a + INDEX * n, 0, n - 1); }

/* ---- parameters, bank 0 ------------------------------------------------------------------- */

KERNEL flag_last(const int *a, int *d, bool negative) { d[INDEX] = negative ? -a[INDEX] : a[INDEX]; }

KERNEL machine(unsigned *d)
{
    asm("mov.u32 %0, %%nsmid;" : "=r"(d[0]));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(d[1]));
}

KERNEL grid_sync(int *a, int *d)
{
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    a[INDEX] = INDEX;
    grid.sync();
    d[INDEX] = a[gridDim.x * blockDim.x - 1 - INDEX];
}

/* The same by the functions that libcudadevrt calls, as code does that is linked from several files. */
extern "C" __device__ unsigned long long __cuda_syscall_CGS_get_intrinsic_handle(unsigned scope);
extern "C" __device__ unsigned __cuda_syscall_CGS_sync(unsigned long long handle, unsigned flags);

KERNEL grid_call(int *a, int *d)
{
    const unsigned long long grid = __cuda_syscall_CGS_get_intrinsic_handle(1);
    for (int round = 0; round < 3; round++) {
        a[INDEX] = INDEX + round;
        const unsigned error = __cuda_syscall_CGS_sync(grid, 0);
        d[INDEX] = error ? -1 : a[gridDim.x * blockDim.x - 1 - INDEX];
        __cuda_syscall_CGS_sync(grid, 0);
    }
}

/* The sum of a block of less than a warp: what lanes of its upper half take does not matter; that all lanes take from
 * one that is not there does. */
KERNEL half_warp_sum(const int *a, int *d)
{
    int sum = a[threadIdx.x];
    for (int step = blockDim.x / 2; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0)
        *d = sum;
}

KERNEL bad_half_warp_sum(const int *a, int *d)
{
    int sum = a[threadIdx.x];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0)
        *d = sum;
}

/* A vote of lanes that have gone on to the end of the branch does not wait for them; ones that wait for other lanes
 * than those that wait for them never come together. */
KERNEL early_vote(unsigned *d)
{
    unsigned seen = ~0u;
    if (threadIdx.x < 16)
        seen = __ballot_sync(~0u, 1);
    d[threadIdx.x] = seen;
}

KERNEL bad_masks(unsigned *d)
{
    if (threadIdx.x < 16)
        __syncwarp(~0u);
    else
        __syncwarp(0xffff0001u);
    d[threadIdx.x] = threadIdx.x;
}

/* Who has ended is not waited for: 10 threads are left. */
KERNEL grid_of_few(int *a, int *d)
{
    if (INDEX >= 10)
        return;
    a[INDEX] = INDEX;
    __cuda_syscall_CGS_sync(__cuda_syscall_CGS_get_intrinsic_handle(1), 0);
    d[INDEX] = a[9 - INDEX];
}

/* ---- atomics, locks, flags -------------------------------------------------------------------- */

KERNEL cas_loops(int *top, unsigned short *count, double *sum, __half2 *pairs)
{
    const int mine = INDEX * 7 % 101;
    int old = *top, seen;
    do {
        seen = old;
        old = atomicCAS(top, seen, max(seen, mine));
    } while (old != seen);
    unsigned short was = *count, now;
    do {
        now = was;
        was = atomicCAS(count, now, static_cast<unsigned short>(now + 1));
    } while (was != now);
    unsigned long long *const word = reinterpret_cast<unsigned long long *>(sum), bits = *word, next = bits, before;
    do {
        before = next;
        next = atomicCAS(word, before, __double_as_longlong(__longlong_as_double(before) + 0.5));
    } while (next != before);
    atomicAdd(&pairs[INDEX & 1], __floats2half2_rn(1, 2));
}

KERNEL shared_cas(unsigned long long *d)
{
    __shared__ unsigned long long sum;
    __shared__ __half2 pair;
    if (threadIdx.x == 0) {
        sum = 0;
        pair = __floats2half2_rn(0, 0);
    }
    __syncthreads();
    unsigned long long old = sum, seen;
    do {
        seen = old;
        old = atomicCAS(&sum, seen, seen + 3);
    } while (old != seen);
    atomicAdd(&pair, __floats2half2_rn(1, 2));
    __syncthreads();
    if (threadIdx.x == 0)
        d[blockIdx.x] = sum * 1000000 + static_cast<int>(__low2float(pair)) * 1000 + static_cast<int>(__high2float(pair));
}

KERNEL shared_lock(int *d)
{
    __shared__ int lock, value;
    if (threadIdx.x == 0)
        lock = value = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            value = value + 1;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    __syncthreads();
    if (threadIdx.x == 0)
        d[blockIdx.x] = value;
}

/* Without a fence, and without a barrier after atomics. */
KERNEL bad_order(int *d, int fault)
{
    __shared__ int lock, value, many;
    if (threadIdx.x == 0)
        lock = value = many = 0;
    __syncthreads();
    if (fault == 1 && threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0)
            ;
        value = value + 1;
        atomicExch(&lock, 0);
    }
    if (fault == 2) {
        atomicAdd(&many, static_cast<int>(threadIdx.x));
        d[threadIdx.x] = many;
    }
}

KERNEL shared_flag(int *d)
{
    __shared__ volatile int ready;
    __shared__ int data;
    if (threadIdx.x == 0)
        ready = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = 42;
        __threadfence_block();
        ready = 1;
    } else if (threadIdx.x == 0) {
        while (!ready)
            ;
        __threadfence_block();
        d[0] = data;
    }
}

/* The last block to add, which sees the counter by loads, empties it. */
KERNEL last_block(unsigned *count, int *data, int *d)
{
    if (threadIdx.x)
        return;
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    atomicAdd(count, 1);
    if (blockIdx.x == gridDim.x - 1) {
        while (*const_cast<volatile unsigned *>(count) != gridDim.x)
            ;
        __threadfence();
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++)
            sum += data[i];
        d[0] = sum;
        *count = 0;
    }
}

KERNEL block_barrier(const int *a, int *d)
{
    using barrier_t = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier_t barrier;
    __shared__ int s[128];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    s[threadIdx.x] = a[threadIdx.x];
    barrier.arrive_and_wait();
    d[threadIdx.x] = s[127 - threadIdx.x];
}

/* ---- what never ends ----------------------------------------------------------------------------- */

KERNEL bad_endless(volatile int *a, int fault)
{
    __shared__ volatile int never;
    if (threadIdx.x == 0)
        never = 0;
    __syncthreads();
    if (fault == 1)
        while (!never)
            ;
    if (fault == 2)
        while (!a[0])
            ;
    if (fault == 3 && threadIdx.x < 32)
        __syncthreads();
    if (fault == 3 && threadIdx.x >= 32)
        asm volatile("bar.sync 1, 64;");
}

/* A shuffle of all lanes, which two come to while the others wait for the end of the branch. */
KERNEL bad_shuffle(int *d)
{
    int x = threadIdx.x;
    if (threadIdx.x < 2) {
        x += __shfl_down_sync(~0u, x, 1);
        d[32] = x;
    }
    __syncwarp();
    d[threadIdx.x] = x;
}

/* ---- further instructions --------------------------------------------------------------------------- */

KERNEL matches(const int *a, unsigned *d)
{
    int all;
    d[threadIdx.x] = __match_any_sync(~0u, a[threadIdx.x]);
    d[32 + threadIdx.x] = __match_any_sync(~0u, static_cast<long long>(a[threadIdx.x]) << 35);
    d[64 + threadIdx.x] = __match_all_sync(~0u, a[threadIdx.x] >> 30, &all) + all;
}

KERNEL packs(const int *a, const int *b, unsigned *d)
{
    const int x = a[threadIdx.x], y = b[threadIdx.x];
    unsigned *o = d + threadIdx.x * 8;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(o[0]) : "r"(x), "r"(y), "r"(7));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(o[1]) : "r"(x), "r"(y), "r"(7));
    asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(o[2]) : "r"(x), "r"(y));
    asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(o[3]) : "r"(x), "r"(y));
    o[4] = __vabsdiffu4(x, y);
    o[5] = __vsadu4(x, y);
    o[6] = __sad(x, y, 5);
    o[7] = __usad(x, y, 5);
}

KERNEL extremes(const double *a, const double *b, double *d)
{
    d[2 * threadIdx.x] = fmin(a[threadIdx.x], b[threadIdx.x]);
    d[2 * threadIdx.x + 1] = fmax(a[threadIdx.x], b[threadIdx.x]);
}

/* 8 x 8 products of 32 bytes or so: rows of A, columns of B. */
KERNEL products(const unsigned *a, const unsigned *b, int *s8, int *u4, int *b1)
{
    namespace wmma = nvcuda::wmma;
    const int l = threadIdx.x;
    int d0 = 1, d1 = 2;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {%0,%1},{%2},{%3},{%0,%1};" : "+r"(d0), "+r"(d1) : "r"(a[l]), "r"(b[l]));
    s8[2 * l] = d0;
    s8[2 * l + 1] = d1;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum4;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::u4, wmma::row_major> a4;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::u4, wmma::col_major> b4;
    wmma::fill_fragment(sum4, 0);
    wmma::load_matrix_sync(a4, a, 32);
    wmma::load_matrix_sync(b4, b, 32);
    wmma::mma_sync(sum4, a4, b4, sum4);
    wmma::store_matrix_sync(u4, sum4, 8, wmma::mem_row_major);
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum1;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> a1;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> b1f;
    wmma::fill_fragment(sum1, 0);
    wmma::load_matrix_sync(a1, a, 128);
    wmma::load_matrix_sync(b1f, b, 128);
    wmma::bmma_sync(sum1, a1, b1f, sum1);
    wmma::store_matrix_sync(b1, sum1, 8, wmma::mem_row_major);
}

/* mma.m8n8k4 in quad pair 1, with A by rows and B by columns, sums as floats and as halves. */
KERNEL volta_products(const __half *a, const __half *b, float *d32, __half *d16)
{
    const int l = threadIdx.x, q = l % 4 + (l >= 16 ? 4 : 0);
    const unsigned *pa = reinterpret_cast<const unsigned *>(a + 4 * q), *pb = reinterpret_cast<const unsigned *>(b + 4 * q);
    const unsigned a0 = pa[0], a1 = pa[1], b0 = pb[0], b1 = pb[1];
    float f[8] = {};
    unsigned h[4] = {};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},"
                 "{%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]), "+f"(f[4]), "+f"(f[5]), "+f"(f[6]), "+f"(f[7])
                 : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%0,%1,%2,%3},{%4,%5},{%6,%7},{%0,%1,%2,%3};"
                 : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3])
                 : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
    if (l / 4 % 4 != 1)
        return;
    for (int i = 0; i < 8; i++) {
        d32[((l & 1) + (i & 2) + (l >= 16 ? 4 : 0)) * 8 + (i & 4) + (l & 2) + (i & 1)] = f[i];
        d16[((l & 3) + (l >= 16 ? 4 : 0)) * 8 + i] = __ushort_as_half(static_cast<unsigned short>(h[i / 2] >> i % 2 * 16));
    }
}

/* ---- refused ------------------------------------------------------------------------------------------- */

KERNEL bad_texture(cudaTextureObject_t t, float *d) { d[INDEX] = tex1Dfetch<float>(t, INDEX); }
