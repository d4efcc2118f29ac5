/* SPDX-License-Identifier: MIT */
/*
 * k3_prefetch: the next k-tile is loaded while this one is multiplied.
 *
 * Idea      Turing has no asynchronous copy to shared memory, so the next k-tile is fetched into registers
 *           early in the multiplication of this one, and committed to shared memory after it.
 * Changes   Shared memory has two stages: one is read while the other is written, and one barrier for
 *           each k-tile is enough. The one after the last is fetched, too: all zeros, without an access.
 * Limits    Each step computes its addresses anew, and its loads and stores stand in two bunches: they
 *           compete with the mma's for issue slots, and the mma's wait while they pass.
 */
#include "../src/table/args.h"
#include "insn.cuh"

constexpr u32 BM = 128, BN = 128, BK = 32;     /* a block's tile of D; how deep a k-tile is */
constexpr u32 WM = 64, WN = 64;                /* a warp's tile of D */
constexpr u32 A_BYTES = BM * BK * 2;           /* in shared memory A's part of a k-tile comes first, then B's */
constexpr u32 STAGE = A_BYTES + BK * BN * 2;   /* bytes of a k-tile there: it has room for two */
constexpr u32 PITCH = WN * 2 + 16;             /* bytes of a row of sums there, at the end; padded for the banks */

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

    /* Global memory -> registers: the k-tile from k0 on. What A and B do not have is zero. */
    auto fetch = [&](u32 k0) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 m = m0 + thread / 4 + i * 32, k = k0 + thread % 4 * 8;
            next[i] = b128{};
            ld_global(next[i], a + (m * args.lda + k) * 2, m < m_end && k < k_end);
        }
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 k = k0 + thread / 16 + i * 8, n = n0 + thread % 16 * 8;
            next[4 + i] = b128{};
            ld_global(next[4 + i], b + (k * args.ldb + n) * 2, k < k_end && n < n_end);
        }
    };
    /* Registers -> shared memory. */
    auto commit = [&](u32 stage) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) st_shared(shared + stage + place_a(thread / 4 + i * 32, thread % 4), next[i]);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) st_shared(shared + stage + place_b(thread / 16 + i * 8, thread % 16), next[4 + i]);
    };
    /* Shared memory -> fragments -> sums: slice kk of the k-tile, 8 k's. */
    auto multiply = [&](u32 kk, u32 stage) {
        u32 fa[WM / 16][2], fb[WN / 8];
#pragma unroll
        for (u32 j = 0; j < 8; j += 4) /* B has rows along n, and is transposed on its way */
            ldmatrix_x4_trans(fb[j], fb[j + 1], fb[j + 2], fb[j + 3],
                              shared + stage + place_b(kk * 8 + lane % 8, warp_n / 8 + j + lane / 8));
#pragma unroll
        for (u32 i = 0; i < 4; i += 2)
            ldmatrix_x4(fa[i][0], fa[i][1], fa[i + 1][0], fa[i + 1][1],
                        shared + stage + place_a(warp_m + i * 16 + lane, kk));
#pragma unroll
        for (u32 h = 0; h < 32; ++h) { /* along n and back, so that neighbours share an operand */
            const u32 i = h / 8, j = i % 2 ? 7 - h % 8 : h % 8;
            mma_m16n8k8(acc[i][j], fa[i], fb[j]);
        }
    };

    fetch(0);
    commit(0);
    barrier();
    for (u32 k0 = 0, stage = 0; k0 < k_end; k0 += BK, stage = STAGE - stage) {
        multiply(0, stage);
        fetch(k0 + BK);
#pragma unroll
        for (u32 kk = 1; kk < BK / 8; ++kk) multiply(kk, stage);
        commit(STAGE - stage);
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
