/* SPDX-License-Identifier: MIT */
/*
 * Rows of D: which way they are written, in aligned chunks, and what these leave of a row at either end. C is read, and
 * prefetched, in the same way.
 */
#pragma once
#include "epilogue.cuh"
#include "scaled.cuh"
#include "sums.cuh"

/* Where a warp's rows go. */
struct output {
    const char *c; /* row 0 of C, and of D, at the warp's first column */
    char *d;
    u64 ldc, ldd;  /* in bytes */
    u32 m;         /* rows of D */
    int width;     /* columns from the warp's first one to the end of the block's, as far as D has them */
    epilogue end;
    bool c_like_d; /* where a chunk of D is aligned, that of C is, too */
};

/* Columns of a row of D before its first aligned chunk. */
template <bool ALIGNED> static DEVICE int lead(const char *row_of_d)
{
    return ALIGNED ? 0 : (int)(16 - (u64)row_of_d % 16) % 16 / ELEMENT_BYTES;
}

/* Stores what whole chunks leave of the rows from `top` on at either end of the block's columns, in pairs of
 * halves. A lane has the head or the tail of a row. Shared memory has the rows at `buffer`, `columns` of each. */
template <class V, format F>
static DEVICE void store_row_ends(const warp<V> &w, const output &o, u32 buffer, u32 top, u32 columns)
{
    using S = stage<V, F>;
    const bool heads = w.n == 0, tails = o.width < V::WN + 8, read_c = o.end.reads_c();
    if (!heads && !tails) return;
#pragma unroll 1
    for (u32 i = w.lane; i < (heads && tails ? 2 : 1) * S::ROWS; i += 32) {
        const bool is_tail = !heads || i >= S::ROWS;
        const u32 r = i % S::ROWS, row = top + r;
        char *const begin = o.d + row * o.ldd;
        const int head = lead<false>(begin), tail = o.width > head ? (o.width - head) % 8 : 0;
        int from = 0, count = head < o.width ? head : o.width;
        if (is_tail) from = o.width - tail, count = from - head < V::WN ? tail : 0;
        if (row >= o.m || count <= 0) continue;
        const eight_sums<F> x = S::template get<true>(buffer + r * S::PITCH, from, columns);
        u32 h[9] = {};
#pragma unroll
        for (int e = 0; e < 7; ++e)
            ld_global_half(h[e], o.c + row * o.ldc + (from + e) * ELEMENT_BYTES, read_c && e < count);
#pragma unroll
        for (int e = 0; e < 8; e += 2)
            h[e / 2] = pack_halves(o.end.finish(x.at(e), h[e]), o.end.finish(x.at(e + 1), h[e + 1]));
        char *to = begin + from * ELEMENT_BYTES;
        const bool odd = (u64)to & 2;
        if (odd) st_global_half(to, h[0]), to += ELEMENT_BYTES, --count;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const u32 pair = odd ? permute(h[e], h[e + 1], 0x5432) : h[e];
            if (2 * e + 1 < count) st_global_word(to + e * 4, pair);
            else if (2 * e < count) st_global_half(to + e * 4, pair);
        }
    }
}

/* Stores the warp's rows of D, from row0 on, in aligned chunks: those that begin in its columns and end in the
 * block's. Unless rows of D are ALIGNED, the first chunk of each is `lead` columns in. A lane stores every STEP-th
 * row. `sums` has a warp's tile, of which the first OWN_MT rows of mma's are the warp's to store. */
template <bool ALIGNED, format F, class V, class SUMS>
static DEVICE void store_rows(const SUMS &sums, const warp<V> &w, u32 row0, const output &o)
{
    using S = stage<V, F>;
    constexpr int ACROSS = V::WN / 8, STEP = 32 / ACROSS; /* lanes along a row; rows between a lane's */
    constexpr int ROUNDS = S::ROWS / STEP, TOGETHER = ROUNDS < 4 ? ROUNDS : 4;
    const u32 buffer = S::buffer(w.m, w.n);
    const u32 columns = V::IDLES ? (o.width + 7) / 8 * 8 : V::BN - w.n; /* there: warps that idle leave none */
    const u32 to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const u32 first_row = row0 + w.lane / ACROSS; /* of this lane */
    const bool read_c = o.end.reads_c();
    auto meet = [] { ALIGNED ? warp_barrier() : barrier(); }; /* a chunk may span two warps' columns */
    auto column = [&](const char *row_of_d) { return lead<ALIGNED>(row_of_d) + (int)(w.lane % ACROSS * 8); };
    auto fetch_c = [&](b128 (&cs)[ROUNDS], u32 below, bool when) { /* of the rows `below` first_row */
#pragma unroll
        for (int q = 0; q < ROUNDS; ++q) {
            const u32 row = first_row + below + q * STEP;
            const int col = column(o.d + row * o.ldd);
            const bool live = row < o.m && col + 8 <= o.width && when;
            const char *const from = o.c + row * o.ldc + col * ELEMENT_BYTES;
            if (ALIGNED || o.c_like_d) {
                ld_global(cs[q], from, live);
            } else if (read_c) {
                u32 h[8] = {};
#pragma unroll
                for (int e = 0; e < 8; ++e) ld_global_half(h[e], from + e * ELEMENT_BYTES, live);
                cs[q] = pack_chunk(h);
            }
        }
    };
    constexpr bool EARLY = ALIGNED && ROUNDS <= 4; /* C of the next rows is fetched while these are stored */
    b128 next[ROUNDS] = {};
    if (EARLY) fetch_c(next, 0, read_c);
    char *at = o.d + first_row * o.ldd;
    const bool plain = o.end.is_plain() && !(ALIGNED && F == FLOATS); /* plain FLOATS are ROUNDED, where ALIGNED */
#pragma unroll 1
    for (int turn = 0; turn < S::TURNS; ++turn) { /* rolled: code that has not run yet is slow to come */
        const u32 below = turn * S::ROWS;
        b128 cs[ROUNDS] = {};
        if (EARLY) {
#pragma unroll
            for (int q = 0; q < ROUNDS; ++q) cs[q] = next[q];
            fetch_c(next, below + S::ROWS, read_c && turn + 1 < S::TURNS);
        } else {
            fetch_c(cs, below, read_c);
        }
        S::put(to, sums, turn);
        meet();
#pragma unroll
        for (int q0 = 0; q0 < ROUNDS; q0 += TOGETHER) {
            eight_sums<F> x[TOGETHER];
            b128 v[TOGETHER];
            char *row[TOGETHER];
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                row[q] = at;
                at += STEP * o.ldd;
                x[q] = S::template get<!ALIGNED>(buffer + ((q0 + q) * STEP + w.lane / ACROSS) * S::PITCH,
                                                 column(row[q]), columns);
            }
            if (plain) {
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) v[q] = o.end.finish_plain(x[q]);
            } else {
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) v[q] = o.end.finish(x[q], cs[q0 + q]);
            }
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                const int col = column(row[q]);
                st_global(row[q] + col * ELEMENT_BYTES, v[q],
                          first_row + below + (q0 + q) * STEP < o.m && col + 8 <= o.width);
            }
        }
        if (!ALIGNED) store_row_ends<V, F>(w, o, buffer, row0 + below, columns);
        meet();
    }
}

/* The same of f32 sums that are all of D. Rounded first, they are half the bytes in shared memory. */
template <type T, class V>
static DEVICE void store_rounded(const typename V::sums &acc, const warp<V> &w, u32 row0, const output &o)
{
    halves_of_mma r[V::MT][V::NT];
#pragma unroll
    for (int i = 0; i < V::OWN_MT * V::NT * 2; ++i) {
        const float(&x)[4] = acc[i / 2 / V::NT][i / 2 % V::NT];
        r[i / 2 / V::NT][i / 2 % V::NT][i % 2] = pair_of<T>(x[i % 2 * 2], x[i % 2 * 2 + 1]);
    }
    store_rows<true, ROUNDED>(r, w, row0, o);
}

/* The bias of a lane's eight columns, loaded while sums of other warps are added. */
template <class V> struct lane_bias {
    u32 type;
    eight_elements elements;

    DEVICE lane_bias(const arguments &args, const block<V> &where, const warp<V> &w) : elements{}
    {
        type = args.fused >> HGEMM_FUSED_TYPE_BIAS & HGEMM_FUSED_TYPE_MASK;
        if (!V::FUSES || V::INDIRECT || !args.bias || args.fused & HGEMM_FUSED_ANYHOW) return;
        const u32 column = where.n0 + w.n + w.lane % (V::WN / 8) * 8;
        const char *const at =
            (const char *)args.bias + (batch_index() * args.stride_bias + column) * bytes_of(type);
        if (column + 8 <= args.n) elements = load_elements(at, type, ((u64)at & 15) == 0, 8);
    }
};

/* The same by the fused epilogue: what is `common` in aligned chunks of halves (of bfloat16, where A and B are), N rows
 * of a lane at a time; all else a row at a time by the way that minds types, alignment and ends itself. */
template <format F, class V, class SUMS>
static DEVICE void store_rows_fused(const arguments &args, const SUMS &sums, const block<V> &where, const warp<V> &w,
                                    const output &o, const lane_bias<V> &bias, bool common)
{
    using S = stage<V, F>;
    constexpr int ACROSS = V::WN / 8, STEP = 32 / ACROSS, ROUNDS = S::ROWS / STEP;
    constexpr int ROOM = V::REGISTERS - V::MMAS * (V::ACC == f32 ? 4 : 2), N = ROUNDS > 1 && ROOM >= 120 ? 2 : 1;
    const u32 buffer = S::buffer(w.m, w.n), across = w.lane % ACROSS * 8, down = w.lane / ACROSS;
    const u32 to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const u32 row0 = where.m0 + w.m, m_end = where.m_end(args);
    const bool read_c = o.end.reads_c(), inside = (int)across + 8 <= o.width;
    const u64 ldgate = args.ldgate * ELEMENT_BYTES;
    extras more{args.fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK, nullptr};
    if (common) {
        values_of(more.bias, bias.elements, bias.type);
        if (args.gate)
            more.gate = (const char *)args.gate +
                        (batch_index() * args.stride_gate + where.n0 + w.n + across) * ELEMENT_BYTES;
        common = (((u64)more.gate | ldgate) & 15) == 0 || !more.gate;
    }
#pragma unroll 1
    for (int turn = 0; turn < S::TURNS; ++turn) {
        S::put(to, sums, turn);
        warp_barrier();
        if (common) {
#pragma unroll 1
            for (int q0 = 0; q0 < ROUNDS; q0 += N) {
                eight_sums<F> x[N];
                b128 cs[N] = {}, gates[N] = {}, v[N];
                const u32 first = row0 + turn * S::ROWS + q0 * STEP + down;
#pragma unroll
                for (int q = 0; q < N; ++q) {
                    const u32 row = first + q * STEP;
                    const bool live = row < m_end && inside;
                    ld_global(cs[q], o.c + row * o.ldc + across * ELEMENT_BYTES, live && read_c);
                    ld_global(gates[q], more.gate + row * ldgate, live && more.gate);
                    x[q] = S::template get<false>(buffer + ((q0 + q) * STEP + down) * S::PITCH, across, 0);
                }
                finish_with<V::CONVERTS ? BF16 : F16>(v, x, cs, gates, o.end, more);
#pragma unroll
                for (int q = 0; q < N; ++q) {
                    const u32 row = first + q * STEP;
                    st_global(o.d + row * o.ldd + across * ELEMENT_BYTES, v[q], row < m_end && inside);
                }
            }
        } else {
            const fused_epilogue end(args, where, where.n0 + w.n + across);
#pragma unroll 1
            for (int q = 0; q < ROUNDS; ++q) {
                const u32 row = row0 + turn * S::ROWS + q * STEP + down;
                if (row < m_end && end.count > 0)
                    end.finish(S::template get<false>(buffer + (q * STEP + down) * S::PITCH, across, 0), row);
            }
        }
        warp_barrier();
    }
}

/* Of bfloat16 operands: writes a D that is nothing but the sums, of any type. False where it is more. */
template <class V>
static DEVICE bool store_plain(const arguments &args, const typename V::sums &acc, const warp<V> &w, u32 row0,
                               u32 col0, int width, u32 block_width, const scaling &by)
{
    const u32 t = args.fused >> HGEMM_FUSED_TYPE_D & HGEMM_FUSED_TYPE_MASK, bytes = bytes_of(t);
    const bool is_more = args.alpha != 1 || args.beta != 0 || args.alpha_pointer || args.beta_pointer || args.bias ||
                         args.gate || args.scatter_d ||
                         args.fused & HGEMM_FUSED_ACTIVATION_MASK << HGEMM_FUSED_ACTIVATION;
    char *const d = (char *)args.d + (batch_index() * args.stride_d + col0) * bytes;
    const u64 ldd = args.ldd * bytes;
    if (V::INDIRECT || is_more || !has_fours(d, ldd, block_width, bytes)) return false;
    if (t == BF16) store_scaled<BF16, V>(acc, w, row0, d, ldd, args.m, width, by);
    else if (t == F16) store_scaled<F16, V>(acc, w, row0, d, ldd, args.m, width, by);
    else store_scaled<F32, V>(acc, w, row0, d, ldd, args.m, width, by);
    return true;
}

/* Adds up what other warps and blocks have of the sums, and writes D. */
template <class V> static DEVICE void store(const arguments &args, const block<V> &where, typename V::sums &acc)
{
    warp<V> w;
    const lane_bias<V> bias(args, where, w);
    add_warps(acc, w);
    if (!is_owner<V>()) return; /* barriers wait for threads that have not exited (CUDA guide, __syncthreads) */
    w.m += w.k_warp * V::OWN_M;
    if (!add_parts<V>(args, acc)) return;
    barrier(); /* every warp has read its last fragments: shared memory is free */
    const block<V> at = recomputed(args, where);
    const u32 row0 = at.m0 + w.m, col0 = at.n0 + w.n, m = args.m, n = args.n;
    const long long batch = batch_index();
    const u64 ldc = args.ldc * ELEMENT_BYTES, ldd = args.ldd * ELEMENT_BYTES;
    const char *const c = (const char *)args.c + batch * args.stride_c * ELEMENT_BYTES + (u64)col0 * ELEMENT_BYTES;
    char *const d = (char *)args.d + batch * args.stride_d * ELEMENT_BYTES + (u64)col0 * ELEMENT_BYTES;
    const epilogue end{args.alpha, args.beta};
    const bool c_like_d = (((u64)c - (u64)d | ldc - ldd) & 15) == 0;
    const u32 block_width = minimum(n - at.n0, V::BN);
    const int width = (int)(block_width - w.n);

    /* The way is chosen here, and nowhere else. Aligned: rows of D are whole aligned chunks. */
    const bool aligned = (((u64)d | ldd | block_width * ELEMENT_BYTES) & 15) == 0;
    if constexpr (V::CONVERTS) {
        const scaling by(args);
        if (store_plain<V>(args, acc, w, row0, col0, width, block_width, by)) return;
        scale_sums<V>(acc, by);
    }
    if constexpr (V::FUSES)
        if (V::INDIRECT || V::CONVERTS || args.fused) {
            const bool common = !V::INDIRECT && !(args.fused & HGEMM_FUSED_ANYHOW) && aligned && (c_like_d || !end.reads_c());
            store_rows_fused<FORMAT<V>>(args, acc, at, w, {c, d, ldc, ldd, m, width, end, true}, bias, common);
            return;
        }
    if constexpr (V::ACC == f32) {
        if (aligned && end.is_plain()) {
            store_rounded<F16, V>(acc, w, row0, {c, d, ldc, ldd, m, width, {1, 0}, true});
            return;
        }
    }
    if (aligned && (c_like_d || !end.reads_c()))
        store_rows<true, FORMAT<V>>(acc, w, row0, {c, d, ldc, ldd, m, width, end, true});
    else
        store_rows<false, FORMAT<V>>(acc, w, row0, {c, d, ldc, ldd, m, width, end, c_like_d});
}

/* The tile of C in cache lines of 128 bytes, or what is left of one, in parts of one to each thread. */
template <class V> constexpr u32 C_ROW_LINES = (V::BN + 63) / 64;
template <class V> constexpr u32 C_PARTS = (V::BM * C_ROW_LINES<V> + V::THREADS - 1) / V::THREADS;

/* Prefetches a part of the tile of C to the L2 cache. */
template <class V> static DEVICE void prefetch_c(const arguments &args, const block<V> &where, u32 part)
{
    if (V::INDIRECT) return;
    const block<V> at = recomputed(args, where);
    const char *const c = (const char *)args.c + batch_index() * args.stride_c * ELEMENT_BYTES;
    const u32 i = part * V::THREADS + thread_index();
    if (i < V::BM * C_ROW_LINES<V>)
        prefetch_l2(c + minimum(at.m0 + i / C_ROW_LINES<V>, args.m - 1) * (args.ldc * ELEMENT_BYTES) +
                    minimum(at.n0 + i % C_ROW_LINES<V> * 64, args.n - 1) * (u64)ELEMENT_BYTES);
}
