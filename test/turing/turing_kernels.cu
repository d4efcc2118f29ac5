/* SPDX-License-Identifier: MIT */
/* turing_kernels.cu - small sm_75 kernels for the emulator's tests. */
#include "turing_kernels.h"

#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

/* ---- the same function on both sides ------------------------------------------------- */

KERNEL run_integers(const uint32_t *a, const uint32_t *b, uint32_t *d) { d[INDEX] = integers(a[INDEX], b[INDEX]); }
KERNEL run_floats(const uint32_t *a, const uint32_t *b, uint32_t *d) { d[INDEX] = floats(a[INDEX], b[INDEX]); }
KERNEL run_branches(const uint32_t *a, const uint32_t *b, uint32_t *d) { d[INDEX] = branches(a[INDEX], b[INDEX]); }
KERNEL run_arrays(const uint32_t *a, const uint32_t *b, uint32_t *d) { d[INDEX] = arrays(a[INDEX], b[INDEX]); }

KERNEL run_complement(const uint32_t *a, const uint32_t *b, uint32_t *d)
{
    const uint64_t x = (uint64_t)b[INDEX] << 32 | a[INDEX];
    d[INDEX] = (uint32_t)((x + (~x << 35 | b[INDEX])) >> 32);
}

static __device__ __noinline__ uint32_t descend(uint32_t x, uint32_t depth)
{
    return depth == 0 ? x : descend(x * 3 + depth, depth - 1) ^ x;
}

/* Calls with a stack, lanes at different depths. */
KERNEL run_calls(const uint32_t *a, const uint32_t *b, uint32_t *d) { d[INDEX] = descend(a[INDEX], b[INDEX] & 7); }

/* ---- halves: d = a op b in the order fma, add, mul, the float sum, comparisons ------------ */

KERNEL run_halves(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d)
{
    const uint32_t i = INDEX, n = gridDim.x * blockDim.x;
    uint32_t r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
    d[i] = r;
    asm("add.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
    d[n + i] = r;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
    d[2 * n + i] = r;
    asm("{.reg .f16 x, y; .reg .f32 f; mov.b32 {x, y}, %1; cvt.f32.f16 f, y; mov.b32 %0, f;}" : "=r"(r) : "r"(a[i]));
    d[3 * n + i] = r;
    asm("{.reg .f16 h; .reg .f32 f; mov.b32 f, %1; cvt.rn.f16.f32 h, f; mov.b32 %0, {h, h};}" : "=r"(r) : "r"(c[i]));
    d[4 * n + i] = r;
}

/* ---- lanes, barriers, atomics -------------------------------------------------------------------- */

KERNEL lanes(const uint32_t *a, uint32_t *d)
{
    const uint32_t x = a[threadIdx.x], n = blockDim.x, t = threadIdx.x;
    d[t] = __shfl_xor_sync(~0u, x, 5);
    d[n + t] = __shfl_up_sync(~0u, x, 3);
    d[2 * n + t] = __shfl_down_sync(~0u, x, 7, 16);
    d[3 * n + t] = __shfl_sync(~0u, x, x & 31);
    d[4 * n + t] = __ballot_sync(~0u, x & 1);
    d[5 * n + t] = __any_sync(~0u, x == 3) + 2 * __all_sync(~0u, x != 3);
    d[6 * n + t] = __popc(x) + 64 * __clz(x) + 4096 * __ffs(x) + 65536 * __byte_perm(x, t, 0x4701);
    d[7 * n + t] = __brev(x) ^ __funnelshift_l(x, t, 9) ^ __umulhi(x, 0x12345677);
}

/* Named barriers: half of the warps produce, the other half consume. */
KERNEL produce_consume(uint32_t *d)
{
    __shared__ uint32_t box[32];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 10; i++) {
        if (warp == 0) {
            if (i)
                asm volatile("bar.sync 2, 64;" ::: "memory");
            box[lane] = i * 100 + lane;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            sum = sum * 3 + box[31 - lane];
            if (i < 9)
                asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
    if (warp)
        d[lane] = sum;
    d[32 + threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0) + 1000 * __syncthreads_and(lane < 32) +
                          10000 * __syncthreads_or(threadIdx.x == 40);
}

KERNEL histogram(const uint32_t *a, uint32_t *d, uint32_t n)
{
    __shared__ uint32_t bin[64];
    for (uint32_t i = threadIdx.x; i < 64; i += blockDim.x)
        bin[i] = 0;
    __syncthreads();
    for (uint32_t i = INDEX; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bin[a[i] & 63], 1);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 64; i += blockDim.x) {
        atomicAdd(&d[i], bin[i]);
        atomicMax(&d[64 + i], bin[i]);
        atomicXor(&d[128 + i], bin[i] * 77);
    }
}

/* Sums in the order of the blocks: each waits for its turn (split-K's semaphore). */
KERNEL in_turn(float *d, uint32_t *turn, uint32_t fence)
{
    if (threadIdx.x == 0)
        while (*(volatile uint32_t *)turn != gridDim.x - 1 - blockIdx.x) {}
    __syncthreads();
    d[threadIdx.x] = d[threadIdx.x] * 0.5f + (float)(blockIdx.x * blockDim.x + threadIdx.x);
    __syncthreads();
    if (fence)
        __threadfence();
    if (threadIdx.x == 0)
        *(volatile uint32_t *)turn = gridDim.x - blockIdx.x;
}

/* The last block to finish adds up what all have written. */
KERNEL last_block(const uint32_t *a, uint32_t *part, uint32_t *ticket, uint32_t *d)
{
    __shared__ uint32_t last;
    part[INDEX] = a[INDEX] * 3;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(ticket, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < gridDim.x; i++)
            sum += part[i * blockDim.x + threadIdx.x];
        d[threadIdx.x] = sum;
    }
}

/* Pointers into three memories behind one type. */
KERNEL generic(uint32_t *d, uint32_t which)
{
    __shared__ uint32_t s[64];
    uint32_t l[8];
    for (uint32_t i = 0; i < 8; i++)
        l[i] = threadIdx.x * 8 + i;
    s[threadIdx.x] = 1000 + threadIdx.x;
    __syncthreads();
    volatile uint32_t *p = (threadIdx.x + which) % 3 == 0 ? d + 64 : (threadIdx.x + which) % 3 == 1 ? s : l;
    p[threadIdx.x & 7] += 0;
    d[threadIdx.x] = p[(threadIdx.x + which) & 7];
}

/* ---- a small HGEMM: C[64][64] a block, 4 warps of 32x32, ldmatrix and m16n8k8 ----------------------- */

static __device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

template <bool F32>
static __device__ __forceinline__ void gemm(const uint4 *a, const uint4 *bt, void *d, uint32_t n, uint32_t k)
{
    __shared__ uint4 sa[64][4], sb[64][4];
    const uint32_t t = threadIdx.x, lane = t % 32, wm = t / 64 * 32, wn = t / 32 % 2 * 32;
    uint32_t h[2][4][2] = {};
    float f[2][4][4] = {};
    for (uint32_t k0 = 0; k0 < k; k0 += 32) {
        for (uint32_t i = t; i < 256; i += 128) {
            uint32_t row = i / 4, col = i % 4, to = col ^ (row / 2 % 4);
            sa[row][to] = a[(size_t)(blockIdx.y * 64 + row) * (k / 8) + k0 / 8 + col];
            sb[row][to] = bt[(size_t)(blockIdx.x * 64 + row) * (k / 8) + k0 / 8 + col];
        }
        __syncthreads();
        for (uint32_t s = 0; s < 4; s++) {
            uint32_t x[4], y[4], ra = wm + lane, rb = wn + lane;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(shared_address(&sa[ra][s ^ (ra / 2 % 4)])));
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(shared_address(&sb[rb][s ^ (rb / 2 % 4)])));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    if (F32)
                        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                                     : "+f"(f[i][j][0]), "+f"(f[i][j][1]), "+f"(f[i][j][2]), "+f"(f[i][j][3])
                                     : "r"(x[2 * i]), "r"(x[2 * i + 1]), "r"(y[j]));
                    else
                        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                                     : "+r"(h[i][j][0]), "+r"(h[i][j][1]) : "r"(x[2 * i]), "r"(x[2 * i + 1]), "r"(y[j]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int q = 0; q < 2; q++) {
                size_t at = (size_t)(blockIdx.y * 64 + wm + i * 16 + q * 8 + lane / 4) * n + blockIdx.x * 64 + wn + j * 8 + lane % 4 * 2;
                if (F32)
                    *(float2 *)((float *)d + at) = make_float2(f[i][j][2 * q], f[i][j][2 * q + 1]);
                else
                    *(uint32_t *)((uint16_t *)d + at) = h[i][j][q];
            }
}

KERNEL gemm_f16(const uint4 *a, const uint4 *bt, void *d, uint32_t n, uint32_t k) { gemm<false>(a, bt, d, n, k); }
KERNEL gemm_f32(const uint4 *a, const uint4 *bt, void *d, uint32_t n, uint32_t k) { gemm<true>(a, bt, d, n, k); }

/* ---- wrong on purpose, chosen by `fault`; 0 is right ------------------------------------------------ */

KERNEL faulty_memory(uint32_t *d, const uint32_t *never_written, uint32_t n, uint32_t fault)
{
    __shared__ uint32_t s[64];
    const uint32_t t = threadIdx.x;
    if (fault == 1 && t == 0)
        d[n] = 1; /* one element past the end */
    if (fault == 2 && t == 3)
        *(uint32_t *)((char *)d + 4 * t + 2) = 5; /* misaligned */
    if (fault == 3)
        d[t] = never_written[t];
    if (fault != 4)
        s[t] = t;
    __syncthreads();
    d[t] = s[t ^ 1]; /* never written for 4 */
    if (fault == 5)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(4 * t + 4 * 48), "r"(t)); /* past 64 words */
    if (fault == 6 && t == 1)
        d[-1] = 2;
    if (fault >= 7) { /* the rows of two matrices fill s; 7: lanes without a row name what follows it */
        uint32_t x, y;
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(x), "=r"(y) : "r"(shared_address(s) + 16 * (fault == 7 ? t % 32 : t % 16)));
        d[t] = x + y;
    }
}

KERNEL faulty_race(uint32_t *d, uint32_t fault)
{
    __shared__ uint32_t s[128];
    const uint32_t t = threadIdx.x;
    s[t] = t;
    if (fault != 1)
        __syncthreads();
    uint32_t x = s[127 - t];
    if (fault == 2) /* overwritten while others still read */
        s[t] = x;
    if (fault == 3)
        s[0] = t; /* lanes and warps */
    if (fault == 4)
        d[0] = t + blockIdx.x;
    if (fault == 5)
        d[t] = x + blockIdx.x; /* every block the same */
    if (fault != 5)
        d[INDEX] = x;
}

KERNEL faulty_convergence(uint32_t *d, uint32_t fault)
{
    __shared__ uint4 s[32];
    const uint32_t t = threadIdx.x;
    uint32_t x = t;
    s[t & 31] = make_uint4(t & 31, 0, 0, 0);
    if (fault == 1 && t < 16)
        asm volatile("bar.sync 0;" ::: "memory");
    if (fault == 2 && t >= 32)
        asm volatile("bar.sync 3, 64;" ::: "memory");
    __syncthreads();
    if (fault == 3 && (t & 1))
        asm volatile("{.reg .b32 y; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];}" : "=r"(x) : "r"(shared_address(&s[t & 7])));
    if (fault == 4 && t < 16)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%1,%0}, {%0}, {%0,%1};" : "+r"(x), "+r"(d[0]));
    if (fault == 5 && t < 8)
        asm volatile("{.reg .pred p; shfl.sync.idx.b32 %0|p, %0, 20, 31, 0xff;}" : "+r"(x));
    d[t] = x;
}

KERNEL run_prefetch(const char *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p + threadIdx.x * 128));
}

/* ---- micro-benchmarks for the timing model: `n` turns, one signature ----------------------------------- */

#define TIMED(name) KERNEL name(uint4 *d, const uint4 *a, uint32_t n, uint32_t x)
#define KEEP(c, n) /* all of it, or the compiler drops what made it */ \
    for (int i = 0; i < n; i++) \
        if (c[i][0] == 1 || c[i][1] == 1) \
            d->x = i
#define TURNS _Pragma("unroll 1") for (uint32_t turn = 0; turn < n; turn++)

static __device__ __forceinline__ uint32_t dynamic_shared()
{
    extern __shared__ uint4 s[];
    return shared_address(s);
}

static __device__ __forceinline__ void multiply(uint32_t (&c)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%2}, {%2}, {%0,%1};" : "+r"(c[0]), "+r"(c[1]) : "r"(0));
}

static __device__ __forceinline__ uint4 load_shared(uint32_t at)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
    return v;
}

static __device__ __forceinline__ uint4 load_matrices(uint32_t at)
{
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
    return v;
}

/* 64 products a turn into 8 accumulators, or one after another into one. */
template <int N> static __device__ __forceinline__ void products(uint4 *d, uint32_t n)
{
    uint32_t c[N][2] = {};
    TURNS
        for (int i = 0; i < 64; i++)
            multiply(c[i % N]);
    KEEP(c, N);
}
TIMED(time_products) { products<8>(d, n); }
TIMED(time_chained_products) { products<1>(d, n); }

/* What comes from memory by way of shared memory, and is multiplied, is spilled and read again. */
TIMED(time_spilled)
{
    __shared__ uint4 s[32];
    const uint32_t lane = threadIdx.x % 32;
    s[lane] = a[lane];
    __syncwarp();
    const uint4 v = load_matrices(shared_address(s + lane));
    uint32_t c[2] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(v.x), "r"(v.y), "r"(v.z));
    uint32_t spilled[64];
    TURNS
        spilled[turn * x & 63] = c[0] + turn;
    d[INDEX].x = spilled[n & 63];
}

/* 64 loads of 512 bytes a turn, no two the same, lanes x bytes apart. */
template <uint4 (*LOAD)(uint32_t)> static __device__ __forceinline__ void loads(uint4 *d, uint32_t n, uint32_t x)
{
    const uint32_t at = dynamic_shared() + threadIdx.x % 32 * x;
    uint32_t sum = 0;
    TURNS
        for (int i = 0; i < 64; i++) {
            const uint4 v = LOAD(at + 128 * i);
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    d[INDEX].x = sum;
}
TIMED(time_loads) { loads<load_shared>(d, n, x); }
TIMED(time_matrices) { loads<load_matrices>(d, n, x); }

/* 64 dependent multiply-adds a turn. */
TIMED(time_integers)
{
    uint32_t c = x;
    TURNS
        for (int i = 0; i < 64; i++)
            asm volatile("mad.lo.u32 %0, %0, %0, %1;" : "+r"(c) : "r"(x));
    d[INDEX].x = c;
}

/* Each load gives the address of the next: 64 a turn, in shared memory, or past L1. */
TIMED(time_shared_chase)
{
    uint32_t at = dynamic_shared();
    asm volatile("st.shared.u32 [%0], %0;" ::"r"(at) : "memory");
    __syncthreads();
    TURNS
        for (int i = 0; i < 64; i++)
            asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at));
    d[INDEX].x = at;
}

TIMED(time_global_chase)
{
    uint64_t at = (uint64_t)a;
    TURNS
        for (int i = 0; i < 64; i++)
            asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at));
    d[INDEX].x = (uint32_t)at;
}

/* n units of a, x times over. */
TIMED(time_read)
{
    uint32_t sum = 0;
    for (uint32_t pass = 0; pass < x; pass++)
#pragma unroll 8
        for (uint32_t i = INDEX; i < n; i += gridDim.x * blockDim.x) {
            const uint4 v = __ldcg(a + i);
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    d[INDEX].x = sum;
}

TIMED(time_copy)
{
#pragma unroll 8
    for (uint32_t i = INDEX; i < n; i += gridDim.x * blockDim.x)
        d[i] = __ldcg(a + i);
}

/* Warp 0 multiplies, and then the others; where x is 0 they do not wait. */
TIMED(time_barrier)
{
    if (threadIdx.x < 32)
        products<1>(d, n);
    if (x)
        __syncthreads();
    if (threadIdx.x >= 32)
        products<1>(d, n);
}

/* 60 products a turn, and stores of 512 bytes to shared memory, one every SPACING products. */
template <int SPACING> static __device__ __forceinline__ void stores(uint4 *d, uint32_t n)
{
    uint32_t c[6][2] = {};
    TURNS
        for (int i = 0; i < 60; i++) {
            if (i % SPACING == 0)
                asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(dynamic_shared() + 16 * threadIdx.x + 1024 * i), "r"(0));
            multiply(c[i % 6]);
        }
    KEEP(c, 6);
}
TIMED(time_stores_by_5) { stores<5>(d, n); }
TIMED(time_stores_by_2) { stores<2>(d, n); }
