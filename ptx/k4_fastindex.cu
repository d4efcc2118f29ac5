/* SPDX-License-Identifier: MIT */
/*
 * k4_fastindex: every address is computed once, so that instructions may stand anywhere.
 *
 * Idea      A thread's place within a k-tile never changes; only the k-tile moves on. So an address is a base
 *           that all threads share plus an offset from before the loop; in shared memory, where all sizes
 *           are powers of two, an XOR and an immediate are all that is left. What needs no arithmetic
 *           before it fits between any two mma's: a slice's fragments are loaded while the slice before is
 *           multiplied, stores are spread over the k-tile, and each is soon followed by the load that
 *           refills its register.
 * Changes   fetch, commit and load take one chunk, or one ldmatrix, at a time; the loop says after how
 *           many mma's each comes. One k-tile is always in registers, so two are fetched before the loop.
 * Limits    A k-tile begins with an ldmatrix that all wait for, behind the barrier. One tile for all
 *           shapes: small products have fewer blocks than the GPU has places for them, large ones load
 *           more than larger tiles would.
 */
#include "../src/table/args.h"
#include "insn.cuh"

constexpr u32 BM = 128, BN = 128, BK = 32;     /* a block's tile of D; how deep a k-tile is */
constexpr u32 WM = 64, WN = 64;                /* a warp's tile of D */
constexpr u32 A_BYTES = BM * BK * 2;           /* in shared memory A's part of a k-tile comes first, then B's */
constexpr u32 STAGE = A_BYTES + BK * BN * 2;   /* bytes of a k-tile there: it has room for two */
constexpr u32 PITCH = WN * 2 + 16;             /* bytes of a row of sums there, at the end; padded for the banks */
constexpr u32 LDS_GAP = 5, STS_FIRST = 12, STS_GAP = 12, LDG_LAG = 6; /* the schedule, in mma's: see the loop */

/* In a T4's machine code (HGEMM_T4) what is spread over the mma's stays there. ptxas would gather it in bunches, unless a barrier for
 * the warp, which is compiled to nothing, keeps it apart. Newer GPUs are faster with the bunches. */
#ifdef HGEMM_T4
static DEVICE void keep_apart() { warp_barrier(); }
#else
static DEVICE void keep_apart() {}
#endif

/* Where in shared memory chunk c, which is 8 halves, of a row of A's or of B's part begins. */
static DEVICE u32 place_a(u32 row, u32 c) { return row * (BK * 2) + (c ^ row / 2 % 4) * 16; }
static DEVICE u32 place_b(u32 row, u32 c) { return A_BYTES + row * (BN * 2) + (c ^ row % 8) * 16; }

/* alpha * sum + beta * c of a pair of halves, rounded once. */
static DEVICE u32 finish(u32 sums, u32 c, float alpha, float beta)
{
    const float lo = __fmaf_rn(beta, half_to_float(c), __fmul_rn(alpha, half_to_float(sums)));
    const float hi = __fmaf_rn(beta, half_to_float(c >> 16), __fmul_rn(alpha, half_to_float(sums >> 16)));
    return pack_halves(lo, hi);
}

extern "C" __global__ void __launch_bounds__(128, 2) HGEMM_VARIANT(const kernel_args_t args)
{
    const u32 m_end = args.m, n_end = args.n, k_end = args.k, columns = (n_end + BN - 1) / BN;
    const u32 thread = thread_index(), lane = thread % 32, warp = thread / 32, shared = shared_base();
    const u32 m0 = block_index() / columns * BM, n0 = block_index() % columns * BN; /* where the block's tile begins, */
    const u32 warp_m = warp % 2 * WM, warp_n = warp / 2 * WN;                       /* and the warp's within it */
    const char *const a = (const char *)args.a + batch_index() * args.stride_a * 2;
    const char *const b = (const char *)args.b + batch_index() * args.stride_b * 2;
    u32 acc[WM / 16][WN / 8][2] = {}; /* a lane's sums, in pairs of halves */
    b128 next[8];                     /* a thread's chunks of a k-tile: four of A, 32 rows apart, then of B, 8 rows apart */

    /* Every address, once. In global memory an offset from a base that all threads share; rows of A and columns of B that
     * they do not have repeat the last ones, for D has none there either. In shared memory the places of a thread's first
     * chunks, and of a lane's rows of the first ldmatrix. k-tiles end at k_end, so it is the first that may be short. */
    const u32 missing = (BK - k_end % BK) % BK; /* k's of the first k-tile that come before k 0 */
    const char *base_a = a + (m0 * args.lda - missing) * 2, *base_b = b + (n0 - missing * args.ldb) * 2;
    u32 from_a[4], from_b[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 m = min(thread / 4 + i * 32, m_end - m0 - 1);
        const u32 k = thread / 16 + i * 8, n = min(thread % 16 * 8, n_end - n0 - 8);
        from_a[i] = (u32)(m * args.lda + thread % 4 * 8) * 2, from_b[i] = (u32)(k * args.ldb + n) * 2;
    }
    const u32 to_a = shared + place_a(thread / 4, thread % 4), to_b = shared + place_b(thread / 16, thread % 16);
    const u32 row_a = shared + place_a(warp_m + lane, 0), row_b = shared + place_b(lane % 8, warp_n / 8 + lane / 8);

    /* Global memory -> registers: chunk q of the k-tile at the bases; anything unless `when`. */
    auto fetch = [&](u32 q, bool when) {
        if (q < 4) ld_generic(next[q], base_a + from_a[q], when);
        else ld_generic(next[q], base_b + from_b[q - 4], when);
    };
    auto advance = [&]() { base_a += BK * 2, base_b += BK * args.ldb * 2; };
    /* Registers -> shared memory. */
    auto commit = [&](u32 q, u32 stage) {
        if (q < 4) st_shared(to_a + q * (32 * BK * 2) + stage, next[q]);
        else st_shared(to_b + (q - 4) * (8 * BN * 2) + stage, next[q]);
    };
    /* Shared memory -> fragments of slice kk, 8 k's: the j-th ldmatrix of four. */
    u32 fa[2][WM / 16][2], fb[2][WN / 8];
    auto load = [&](u32 j, u32 kk, u32 stage) {
        u32(&x)[WM / 16][2] = fa[kk % 2], (&y)[WN / 8] = fb[kk % 2];
        if (j < 2) /* B has rows along n, and is transposed on its way */
            ldmatrix_x4_trans(y[j * 4], y[j * 4 + 1], y[j * 4 + 2], y[j * 4 + 3],
                              (row_b ^ j * 64) + kk * (8 * BN * 2) + stage);
        else
            ldmatrix_x4(x[j * 2 - 4][0], x[j * 2 - 4][1], x[j * 2 - 3][0], x[j * 2 - 3][1],
                        (row_a ^ kk * 16) + (j - 2) * (32 * BK * 2) + stage);
    };

    /* k-tile 0 to shared memory, k-tile 1 to registers. */
#pragma unroll
    for (u32 q = 0; q < 8; ++q) {
        const bool is_there = (q < 4 ? thread % 4 * 8 : thread / 16 + (q - 4) * 8) >= missing && k_end > 0;
        fetch(q, is_there);
        if (!is_there) next[q] = b128{};
    }
    advance();
#pragma unroll
    for (u32 q = 0; q < 8; ++q) commit(q, 0), fetch(q, k_end > BK);
    advance();
    barrier();
    for (u32 left = (k_end + BK - 1) / BK, stage = 0; left > 0; --left, stage = STAGE - stage) {
#pragma unroll
        for (u32 j = 0; j < 4; ++j) load(j, 0, stage);
#pragma unroll
        for (u32 h = 0; h < BK / 8 * 32; ++h) { /* the mma's of a k-tile: 32 of each slice */
            const u32 kk = h / 32, sts = h - STS_FIRST, ldg = sts - LDG_LAG;
            if (h % 32 % LDS_GAP == 0 && h % 32 / LDS_GAP < 4 && kk < BK / 8 - 1)
                load(h % 32 / LDS_GAP, kk + 1, stage), keep_apart();
            const u32 i = h % 32 / 8, j = i % 2 ? 7 - h % 8 : h % 8;
            mma_m16n8k8(acc[i][j], fa[kk % 2][i], fb[kk % 2][j]);
            if (h >= STS_FIRST && sts % STS_GAP == 0 && sts / STS_GAP < 8)
                keep_apart(), commit(sts / STS_GAP, STAGE - stage);
            if (h >= STS_FIRST + LDG_LAG && ldg % STS_GAP == 0 && ldg / STS_GAP < 8)
                fetch(ldg / STS_GAP, left > 2), keep_apart();
        }
        advance();
        barrier(); /* the next k-tile is complete, and every warp is done with this one */
    }

    /* Sums -> D, 16 rows at a time through shared memory: from there a lane takes 8 neighbours, and stores 16 bytes. */
    const char *const c = (const char *)args.c + batch_index() * args.stride_c * 2;
    char *const d = (char *)args.d + batch_index() * args.stride_d * 2;
    const u32 rows = shared + warp * 16 * PITCH;
    const bool is_sum = args.alpha == 1 && args.beta == 0; /* then D is the sums, but for -0, which becomes 0 */
    barrier(); /* every warp has read its last fragments */
#pragma unroll
    for (u32 i = 0; i < WM / 16; ++i) {
#pragma unroll
        for (u32 j = 0; j < WN / 8; ++j) {
            st_shared_word(rows + lane / 4 * PITCH + j * 16 + lane % 4 * 4, acc[i][j][0]);
            st_shared_word(rows + (lane / 4 + 8) * PITCH + j * 16 + lane % 4 * 4, acc[i][j][1]);
        }
        warp_barrier();
#pragma unroll
        for (u32 row = lane / 8; row < 16; row += 4) {
            const u32 m = m0 + warp_m + i * 16 + row, n = n0 + warp_n + lane % 8 * 8;
            const bool is_inside = m < m_end && n < n_end;
            b128 x, y = {};
            ld_shared(x, rows + row * PITCH + lane % 8 * 16);
            ld_global(y, c + (m * args.ldc + n) * 2, is_inside && args.beta != 0);
            if (is_sum) x = {add_halves(x.x, 0), add_halves(x.y, 0), add_halves(x.z, 0), add_halves(x.w, 0)};
            else x = {finish(x.x, y.x, args.alpha, args.beta), finish(x.y, y.y, args.alpha, args.beta),
                      finish(x.z, y.z, args.alpha, args.beta), finish(x.w, y.w, args.alpha, args.beta)};
            st_global(d + (m * args.ldd + n) * 2, x, is_inside);
        }
        warp_barrier();
    }
}
