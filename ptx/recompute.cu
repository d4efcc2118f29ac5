/* SPDX-License-Identifier: MIT */
/*
 * recompute: the elements of D that are not finite, of bfloat16 operands of which no scale serves every element.
 *
 * Idea      The scale is one for usual numbers. What lies far above them became infinite, and with it a row or a column of
 *           sums, or NaN. Those are added up once more, by FP32 units, which have bfloat16's range.
 * Grid      As many blocks as a GPU runs at a time; they walk over the tiles of D in all matrices. Most find nothing to do, and
 *           without an outlier no block looks.
 * Block     A tile of 64x64. A thread has eight neighbours in two rows. The tiles of A and B are floats in shared memory; B may
 *           be packed weights, of which each element is formed and rounded to single precision.
 */
#include "epilogue.cuh"
#include "convert.cuh"
#include "../src/table/packed.h"

static constexpr u32 TILE = HGEMM_RECOMPUTE_TILE, DEPTH = 32, THREADS = HGEMM_RECOMPUTE_THREADS;
static constexpr u32 A_PITCH = DEPTH + 1, B_PITCH = TILE + 4; /* in floats: rows of B begin at whole chunks */
static_assert((TILE * A_PITCH + DEPTH * B_PITCH) * 4 <= HGEMM_RECOMPUTE_SHARED, "shared memory has another size");
static_assert(TILE * A_PITCH % 4 == 0, "B's chunks are not aligned");

struct strided { static constexpr bool INDIRECT = false; };

/* A matrix of a batch of which the epilogue reads. */
template <class V> struct matrix_of {
    u32 index;
    DEVICE u32 shared_matrix(const kernel_args_t &) const { return index; }
    DEVICE u32 own_matrix(const kernel_args_t &) const { return index; }
};

/* op(A), or op(B) turned over: element (line, k) is at line * line_step + k * k_step, in bytes. */
struct factor {
    const char *at;
    u64 line_step, k_step;
    u32 lines, k;
    u32 shared, line_words, k_words; /* where its tile goes: words from line to line, and from k to k */

    /* The tile from line0 and k0 on; what the matrix lacks is 0. Neighbours in memory are loaded by neighbours. */
    DEVICE void load(u32 line0, u32 k0) const
    {
        constexpr u32 EACH = TILE * DEPTH / THREADS;
        const bool along_k = k_step == HALF_BYTES;
        u32 bits[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
            const u32 at_tile = i * THREADS + thread_index();
            const u32 line = along_k ? at_tile / DEPTH : at_tile % TILE, q = along_k ? at_tile % DEPTH : at_tile / TILE;
            bits[i] = 0;
            ld_global_half(bits[i], at + (line0 + line) * line_step + (k0 + q) * k_step, line0 + line < lines && k0 + q < k);
        }
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) {
            const u32 at_tile = i * THREADS + thread_index();
            const u32 line = along_k ? at_tile / DEPTH : at_tile % TILE, q = along_k ? at_tile % DEPTH : at_tile / TILE;
            st_shared_word(shared + (line * line_words + q * k_words) * 4, bits[i] << 16);
        }
    }
};

/* The same of op(B) turned over where it is packed weights. Neighbours along k lie near each other. */
static DEVICE void load_packed(const packed_form_t &form, const char *packed, u32 shared, u32 line0, u32 k0)
{
#pragma unroll 1
    for (u32 at_tile = thread_index(); at_tile < TILE * DEPTH; at_tile += THREADS) {
        const u32 line = at_tile / DEPTH, q = at_tile % DEPTH;
        const bool is_there = line0 + line < (u32)form.n && k0 + q < (u32)form.k;
        const float x = is_there ? packed_element(&form, packed, line0 + line, k0 + q) : 0;
        st_shared_word(shared + (q * B_PITCH + line) * 4, __float_as_uint(x));
    }
}

static DEVICE bool is_finite(float x) { return fabsf(x) <= 3.4028235e38f; }

/* The thread's part of a row of D as it is, zeros where there is none; returns which row it is in memory. */
static DEVICE long long load_row(float (&x)[8], const fused_epilogue<true> &end, u32 row, u32 m)
{
    const bool live = row < m;
    const long long place = live && end.scatter ? listed_row(end.scatter, end.fused & HGEMM_FUSED_INDEX_64, row) : row;
    values_of(x, end.d.load(place, live ? end.count : 0), end.d.type);
    return place;
}

extern "C" __global__ void __launch_bounds__(HGEMM_RECOMPUTE_THREADS, 1) HGEMM_VARIANT(const recompute_args_t args)
{
    if (is_unneeded(args.only_after)) return;
    const kernel_args_t &p = args.product;
    const u32 columns = (p.n + TILE - 1) / TILE, tiles = columns * ((p.m + TILE - 1) / TILE);
    const u32 thread = thread_index(), down = thread / 8, across = thread % 8 * 8;
#pragma unroll 1
    for (u64 i = block_index(); i < (u64)tiles * args.batch; i += block_count()) {
        const u32 matrix = (u32)(i / tiles), tile = (u32)(i % tiles), m0 = tile / columns * TILE, n0 = tile % columns * TILE;
        const fused_epilogue<true> end(p, matrix_of<strided>{matrix}, n0 + across);
        bool is_mine = false;
#pragma unroll 1
        for (u32 r = 0; r < 2; ++r) {
            float was[8];
            load_row(was, end, m0 + down + r * 32, p.m);
#pragma unroll
            for (int e = 0; e < 8; ++e) is_mine |= !is_finite(was[e]);
        }
        if (!any_at_barrier(is_mine)) continue;

        const u32 shared = shared_base();
        const factor a = {(const char *)p.a + matrix * p.stride_a * HALF_BYTES, args.a_rows * (u64)HALF_BYTES, args.a_ks * (u64)HALF_BYTES,
                          (u32)p.m, (u32)p.k, shared, A_PITCH, 1};
        const factor b = {(const char *)p.b + matrix * p.stride_b * HALF_BYTES, args.b_columns * (u64)HALF_BYTES,
                          args.b_ks * (u64)HALF_BYTES, (u32)p.n, (u32)p.k, shared + TILE * A_PITCH * 4, 1, B_PITCH};
        eight_sums<FLOATS> sums[2] = {};
#pragma unroll 1
        for (u32 k0 = 0; k0 < p.k; k0 += DEPTH) {
            barrier();
            a.load(m0, k0);
            if (args.packed.n) load_packed(args.packed, (const char *)p.b + matrix * p.stride_b, b.shared, n0, k0);
            else b.load(n0, k0);
            barrier();
#pragma unroll 4
            for (u32 q = 0; q < DEPTH; ++q) {
                b128 low, high;
                ld_shared(low, b.shared + (q * B_PITCH + across) * 4);
                ld_shared(high, b.shared + (q * B_PITCH + across + 4) * 4);
                const u32 y[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (u32 r = 0; r < 2; ++r) {
                    u32 x;
                    ld_shared_word(x, a.shared + ((down + r * 32) * A_PITCH + q) * 4);
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        sums[r].v[e] = __float_as_uint(__fmaf_rn(__uint_as_float(x), __uint_as_float(y[e]), __uint_as_float(sums[r].v[e])));
                }
            }
        }
        if (!is_mine) continue;
#pragma unroll
        for (u32 r = 0; r < 2; ++r) {
            const u32 row = m0 + down + r * 32;
            if (row >= p.m) continue;
            float was[8], now[8];
            load_row(was, end, row, p.m);
            end.finish(sums[r], row); /* all eight */
            const long long place = load_row(now, end, row, p.m);
#pragma unroll
            for (int e = 0; e < 8; ++e) now[e] = is_finite(was[e]) ? was[e] : now[e];
            store_elements<true>(end.d.at + place * end.d.ld, end.d.type, end.d.whole, end.count, now, end.d.step);
        }
    }
}
