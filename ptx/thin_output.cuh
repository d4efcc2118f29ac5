/* SPDX-License-Identifier: MIT */
/* Of thin.cu and few.cu: blocks add up through the workspace, and the sums in shared memory become D. */
#pragma once
#include "thin_sums.cuh"

/* Adds up what blocks have, if k is split: the last block to arrive does. Lanes of a warp that share a sum take parts
 * in turn. Returns whether this block stores the tile. */
template <template <class> class PLACE, class V> static DEVICE bool add_blocks(const arguments &args, const PLACE<V> &at)
{
    constexpr int TOGETHER = V::LONG == 8 ? 16 : 8; /* loads in flight */
    constexpr u32 SUMS_BYTES = V::LONG * V::SHORT * 4; /* of a part */
    if (!at.is_part) return true;
    const u32 tiles = (((u32)args.m + V::BM - 1) / V::BM) * (((u32)args.n + V::BN - 1) / V::BN);
    const u32 tile = batch_index() * (tiles - args.whole_tiles) + at.tile - args.whole_tiles, splits = args.splits;
    u32 *const arrived = (u32 *)args.workspace + tile;
    char *const first = (char *)args.workspace + HGEMM_WORKSPACE_TILES * 4 + (u64)tile * splits * SUMS_BYTES;
    const u32 sums = (V::LONG_IS_M ? at.lines : V::LONG) * at.columns;
    for (u32 i = thread_index(); i < sums; i += V::THREADS) {
        u32 x;
        ld_shared_word(x, shared_base() + i * 4);
        st_global_word(first + (u64)at.part * SUMS_BYTES + i * 4, x);
    }
    barrier();
    if (thread_index() == 0) st_shared_word(shared_base(), atomic_add(arrived, 1));
    barrier();
    u32 before;
    ld_shared_word(before, shared_base());
    if (before + 1 < splits) return false;
    barrier();
    const u32 lanes = V::LONG > 8 ? 1 : at.columns == 1 ? 16 : at.columns == 2 ? 8 : at.columns <= 4 ? 4 : 2;
#pragma unroll 1
    for (u32 i0 = 0; i0 < sums; i0 += V::THREADS / lanes) {
        const u32 i = i0 + thread_index() / lanes;
        float sum = 0;
#pragma unroll 1
        for (u32 s0 = thread_index() % lanes; s0 < splits; s0 += lanes * TOGETHER) {
            u32 x[TOGETHER] = {};
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                const u32 s = s0 + q * lanes;
                ld_global_word(x[q], first + (u64)s * SUMS_BYTES + i * 4, s < splits && i < sums);
            }
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) sum += __uint_as_float(x[q]);
        }
#pragma unroll 1
        for (u32 by = 1; by < lanes; by *= 2) sum += __uint_as_float(from_across(__float_as_uint(sum), by));
        if (thread_index() % lanes == 0 && i < sums) st_shared_word(shared_base() + i * 4, __float_as_uint(sum));
    }
    if (thread_index() == 0) *arrived = 0;
    return true;
}

/* The first `count` of eight sums at that address in shared memory; the others repeat the last of them. */
static DEVICE eight_sums<FLOATS> sums_from(u32 address, int count)
{
    eight_sums<FLOATS> x;
    if (address % 16 == 0 && count == 8) {
        b128 low, high;
        ld_shared(low, address);
        ld_shared(high, address + 16);
        return eight_sums<FLOATS>{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) ld_shared_word(x.v[e], address + minimum(e, count - 1) * 4);
    return x;
}

/* Stores rows of D, in chunks that are aligned there. */
template <template <class> class PLACE, class V> static DEVICE void store_plain(const arguments &args, const PLACE<V> &at)
{
    const u64 ldc = args.ldc * HALF_BYTES, ldd = args.ldd * HALF_BYTES;
    const char *const c = (const char *)args.c + (batch_index() * args.stride_c + at.n0) * HALF_BYTES + at.m0 * ldc;
    char *const d = (char *)args.d + (batch_index() * args.stride_d + at.n0) * HALF_BYTES + at.m0 * ldd;
    const epilogue end{args.alpha, args.beta};
    u32 rows = V::LONG_IS_M ? at.lines : at.columns, width = V::LONG_IS_M ? at.columns : at.lines;
    if (V::LONG_IS_M && args.ldd == width && (args.ldc == width || !end.reads_c())) width *= rows, rows = 1;
    const u32 across = V::LONG_IS_M && rows > 1 ? 2 : V::THREADS; /* threads along a row: of 8, or of many elements */
    const u32 chunk0 = thread_index() % across * 8;
    for (u32 row = thread_index() / across, chunk = chunk0; row < rows; chunk += across * 8) {
        char *const to = d + row * ldd;
        const char *const from = c + row * ldc;
        const int before = (int)((u64)to & 15) / HALF_BYTES, col = (int)chunk - before; /* of an aligned chunk */
        if (col >= (int)width) {
            row += V::THREADS / across, chunk = chunk0 - across * 8;
            continue;
        }
        const int first = col < 0 ? 0 : col, past = col + 8 < (int)width ? col + 8 : (int)width, count = past - first;
        if (count <= 0) continue;
        const eight_sums<FLOATS> x = sums_from(shared_base() + (row * at.pitch + first) * 4, count);
        const bool c_whole = count == 8 && ((u64)(from + first * HALF_BYTES) & 15) == 0;
        float cs[8] = {}, sum[8];
        if (end.reads_c()) values_of(cs, load_elements(from + first * HALF_BYTES, F16, c_whole, count), F16);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[e] = __fmaf_rn(args.beta, cs[e], __fmul_rn(args.alpha, x.at(e)));
        store_elements(to + first * HALF_BYTES, F16, count == 8, count, sum);
    }
}

/* The same by the fused epilogue: a thread has 8 columns at a time, in several rows. */
template <template <class> class PLACE, class V> static DEVICE void store_fused(const arguments &args, const PLACE<V> &at)
{
    constexpr u32 ACROSS = V::LONG_IS_M ? 1 : V::TL, STEP = V::THREADS / ACROSS;
    const u32 rows = V::LONG_IS_M ? at.lines : at.columns, width = V::LONG_IS_M ? at.columns : at.lines;
#pragma unroll 1
    for (u32 column = thread_index() % ACROSS * 8; column < width; column += ACROSS * 8) {
        const fused_epilogue<false> end(args, at, at.n0 + column);
#pragma unroll 1
        for (u32 row = thread_index() / ACROSS; row < rows; row += STEP)
            end.finish(sums_from(shared_base() + (row * at.pitch + column) * 4, end.count), at.m0 + row);
    }
}

/* What follows when threads have brought their sums to shared memory. */
template <template <class> class PLACE, class V> static DEVICE void finish(const arguments &args, const PLACE<V> &at)
{
    barrier();
    if (!add_blocks(args, at)) return;
    barrier();
    if (args.fused) store_fused(args, at);
    else store_plain(args, at);
}
