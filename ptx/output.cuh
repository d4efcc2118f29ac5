/* SPDX-License-Identifier: MIT */
/*
 * Rows of D: which way they are written, in aligned chunks, and what these leave of a row at either end. C is read, and
 * prefetched, in the same way.
 */
#pragma once
#include "epilogue.cuh"
#include "scaled.cuh"
#include "sums.cuh"

/* The type of D that has the fastest ways, beside FP32: that of the operands. */
template <class V> static constexpr type FAST_D = V::SCALED ? BF16 : F16;

/* Where a warp's rows go. */
struct output {
    const char *c; /* row 0 of C, and of D, at the warp's first column */
    char *d;
    u64 ldc, ldd;  /* in bytes */
    u32 m;         /* rows of D */
    int width;     /* columns from the warp's first one to the end of the block's, as far as D has them */
    epilogue end;
    bool c_like_d; /* where a chunk of D is aligned, that of C is, too */

    /* Beside sums that are else all of D, half-precision ones. */
    b128 bias; /* of a lane's eight columns, if rows of D are aligned; 0: none */
    bool relu;
};

/* Columns of a row of D before its first aligned chunk. */
template <bool ALIGNED> static DEVICE int lead(const char *row_of_d)
{
    return ALIGNED ? 0 : (int)(16 - (u64)row_of_d % 16) % 16 / HALF_BYTES;
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
            ld_global_half(h[e], o.c + row * o.ldc + (from + e) * HALF_BYTES, read_c && e < count);
#pragma unroll
        for (int e = 0; e < 8; e += 2)
            h[e / 2] = pack_halves(o.end.finish(x.at(e), h[e]), o.end.finish(x.at(e + 1), h[e + 1]));
        char *to = begin + from * HALF_BYTES;
        const bool odd = (u64)to & 2;
        if (odd) st_global_half(to, h[0]), to += HALF_BYTES, --count;
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
            const char *const from = o.c + row * o.ldc + col * HALF_BYTES;
            if (ALIGNED || o.c_like_d) {
                ld_global(cs[q], from, live);
            } else if (read_c) {
                u32 h[8] = {};
#pragma unroll
                for (int e = 0; e < 8; ++e) ld_global_half(h[e], from + e * HALF_BYTES, live);
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
                for (int q = 0; q < TOGETHER; ++q) v[q] = o.end.finish_plain(x[q], o.bias);
                if (o.relu)
#pragma unroll
                    for (int q = 0; q < TOGETHER; ++q) v[q] = relu_halves(v[q]);
            } else {
#pragma unroll
                for (int q = 0; q < TOGETHER; ++q) v[q] = o.end.finish(x[q], cs[q0 + q]);
            }
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) {
                const int col = column(row[q]);
                st_global(row[q] + col * HALF_BYTES, v[q],
                          first_row + below + (q0 + q) * STEP < o.m && col + 8 <= o.width);
            }
        }
        if (!ALIGNED) store_row_ends<V, F>(w, o, buffer, row0 + below, columns);
        meet();
    }
}

/* A warp's bias: each lane has that of two columns, for all of them. */
template <class V> struct warp_bias {
    u32 type = F16, v[2] = {}; /* two floats, or a word with two elements */

    DEVICE void load(const arguments &args, const block<V> &where, const warp<V> &w)
    {
        type = args.fused >> HGEMM_FUSED_TYPE_BIAS & HGEMM_FUSED_TYPE_MASK;
        if (args.beta != 0) v[0] = 0x80008000; /* if there is none: halves of -0, which leave beta * C as it is */
        if (!V::FUSES || V::INDIRECT || !args.bias || args.fused & HGEMM_FUSED_ANYHOW) return;
        const u32 column = where.n0 + w.n + w.lane * 2;
        const char *const at =
            (const char *)args.bias + (batch_index() * args.stride_bias + column) * bytes_of(type);
        load_pair(v, at, type, w.lane < V::WN / 2 && column + 1 < args.n);
    }

    /* The values in COUNT columns: of every STEP-th pair from that of `first` on. */
    template <int COUNT, int STEP> DEVICE void get(float (&f)[COUNT], u32 first) const
    {
        const u32 low = type == F32 ? v[0] : __float_as_uint(type == F16 ? value_in_pair<F16>(v[0], 0) : value_in_pair<BF16>(v[0], 0));
        const u32 high = type == F32 ? v[1] : __float_as_uint(type == F16 ? value_in_pair<F16>(v[0], 1) : value_in_pair<BF16>(v[0], 1));
#pragma unroll
        for (int e = 0; e < COUNT; e += 2) {
            f[e] = __uint_as_float(from_lane(low, first / 2 + e / 2 * STEP));
            f[e + 1] = __uint_as_float(from_lane(high, first / 2 + e / 2 * STEP));
        }
    }
    /* Eight of two bytes each, as they are. */
    DEVICE b128 get_words(u32 first) const
    {
        return b128{from_lane(v[0], first / 2), from_lane(v[0], first / 2 + 1), from_lane(v[0], first / 2 + 2),
                    from_lane(v[0], first / 2 + 3)};
    }
    /* Those of the lane's sums in every row of mma's. */
    DEVICE void get_of_mmas(float (&f)[V::NT * 2], const warp<V> &w) const { get<V::NT * 2, 4>(f, w.lane % 4 * 2); }
};

/* The values alpha * sum + bias of WIDE neighbouring mma tiles: of group `index`, LOW <= index < HIGH, of so many in rows
 * of mma tiles. A search, for registers have no index. */
template <class V, int WIDE, int LOW, int HIGH>
static DEVICE void values_of_mmas(float (&x)[WIDE * 4], const typename V::sums &sums, const float (&bias)[V::NT * 2],
                                  const epilogue &end, int index)
{
    if constexpr (HIGH - LOW > 1) {
        constexpr int MIDDLE = (LOW + HIGH) / 2;
        if (index < MIDDLE) values_of_mmas<V, WIDE, LOW, MIDDLE>(x, sums, bias, end, index);
        else values_of_mmas<V, WIDE, MIDDLE, HIGH>(x, sums, bias, end, index);
    } else {
#pragma unroll
        for (int i = 0; i < WIDE * 4; ++i) {
            const int j = LOW * WIDE % V::NT + i / 4;
            x[i] = end.scaled(sum_of_mma(sums[LOW * WIDE / V::NT][j], i % 4), bias[j * 2 + i % 2]);
        }
    }
}

/* As store_rows, of f32 sums that are all of D, but for a scale, a bias and ReLU if it is `fused`. Rounded first, they are
 * half the bytes in shared memory. */
template <type T, class V>
static DEVICE void store_rounded(const typename V::sums &acc, const warp<V> &w, u32 row0, output o,
                                 const warp_bias<V> &bias, bool fused, bool relu)
{
    halves_of_mma r[V::MT][V::NT];
    auto round = [&](auto value) { /* value(sum, k): of column k of the lane's */
#pragma unroll
        for (int i = 0; i < V::OWN_MT * V::NT * 2; ++i) {
            const int j = i / 2 % V::NT, e = i % 2 * 2;
            const float(&x)[4] = acc[i / 2 / V::NT][j];
            r[i / 2 / V::NT][j][i % 2] = pair_of<T>(value(x[e], j * 2), value(x[e + 1], j * 2 + 1));
        }
    };
    if (fused) {
        float b[V::NT * 2];
        bias.get_of_mmas(b, w);
        round([&](float sum, int k) {
            const float x = o.end.scaled(sum, b[k]);
            return T == BF16 && relu && x <= 0 ? 0 : x;
        });
    } else { /* as few instructions as there can be: no warp has run them before */
        round([](float sum, int) { return sum; });
    }
    o.end = {1, 0}, o.relu = relu && T == F16;
    store_rows<true, ROUNDED>(r, w, row0, o);
}

/* Stores the warp's rows of D, in aligned chunks of elements of type T, where neither C nor a gate is read. Scale, bias
 * and activation come first, on accumulators: so floats need no more room in shared memory than halves. */
template <type T, class V>
static DEVICE void store_activated(const typename V::sums &sums, const warp<V> &w, u32 row0, const output &o,
                                   const warp_bias<V> &bias, u32 how)
{
    using S = stage<V, ROUNDED>;
    /* mma tiles at a time, as registers allow, and of a row of them */
    constexpr int ROOM = V::REGISTERS - V::ACC_WORDS, MOST = ROOM >= 120 ? 4 : 2;
    constexpr int WIDE = V::NT < MOST ? V::NT : MOST, PARTS = V::NT / WIDE;
    constexpr int ACROSS = V::WN / 8, STEP = 32 / ACROSS, ROUNDS = S::ROWS / STEP;
    const u32 buffer = S::buffer(w.m, w.n), across = w.lane % ACROSS * 8, down = w.lane / ACROSS;
    const u32 to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const bool inside = (int)across + 8 <= o.width;
    float biases[V::NT * 2];
    bias.get_of_mmas(biases, w);
#pragma unroll 1
    for (int turn = 0; turn < S::TURNS; ++turn) {
#pragma unroll 1
        for (int part = 0; part < S::GROUPS * PARTS; ++part) {
            float x[WIDE * 4];
            values_of_mmas<V, WIDE, 0, V::OWN_MT * PARTS>(x, sums, biases, o.end, turn * (S::GROUPS * PARTS) + part);
            activate(x, how);
            const u32 at = to + part / PARTS * (16 * S::PITCH) + part % PARTS * (WIDE * 8 * S::SUM_BYTES);
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                const halves_of_mma v = {pair_of<T>(x[j * 4], x[j * 4 + 1]), pair_of<T>(x[j * 4 + 2], x[j * 4 + 3])};
                S::put_one(at, v, j);
            }
        }
        warp_barrier();
#pragma unroll
        for (int q = 0; q < ROUNDS; ++q) {
            const u32 below = q * STEP + down, row = row0 + turn * S::ROWS + below;
            b128 v;
            ld_shared(v, buffer + below * S::PITCH + across * S::SUM_BYTES);
            st_global(o.d + row * o.ldd + across * HALF_BYTES, v, row < o.m && inside);
        }
        warp_barrier();
    }
}

/* The same by the fused epilogue, C or a gate and all: what is `common` in aligned chunks of halves (of bfloat16, where A
 * and B are), N rows of a lane at a time, whose C and gate are fetched AHEAD, while those before are computed, if there
 * are registers; all else by the way that minds types, alignment and ends itself. */
template <format F, class V, class SUMS>
static DEVICE void store_rows_fused(const arguments &args, const SUMS &sums, const block<V> &where, const warp<V> &w,
                                    const output &o, const warp_bias<V> &bias, bool common)
{
    using S = stage<V, F>;
    constexpr int ACROSS = V::WN / 8, STEP = 32 / ACROSS, ROUNDS = S::ROWS / STEP;
    constexpr int ROOM = V::REGISTERS - V::ACC_WORDS, N = ROUNDS > 1 && ROOM >= 120 ? 2 : 1;
    constexpr bool AHEAD = !V::TIGHT;
    const u32 buffer = S::buffer(w.m, w.n), across = w.lane % ACROSS * 8, down = w.lane / ACROSS;
    const u32 to = buffer + w.lane / 4 * S::PITCH + w.lane % 4 * 2 * S::SUM_BYTES;
    const u32 row0 = where.m0 + w.m, m_end = where.m_end(args);
    const bool read_c = o.end.reads_c(), inside = (int)across + 8 <= o.width;
    const u64 ldgate = args.ldgate * HALF_BYTES;
    extras more{args.fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK, nullptr};
    b128 c[N], gate[N];
    auto fetch = [&](u32 first, bool when) {
#pragma unroll
        for (int q = 0; q < N; ++q) {
            const u32 row = first + q * STEP;
            const bool live = row < m_end && inside && when;
            c[q] = gate[q] = b128{};
            ld_global(c[q], o.c + row * o.ldc + across * HALF_BYTES, live && read_c);
            ld_global(gate[q], more.gate + row * ldgate, live && more.gate);
        }
    };
    if (common) {
        if (args.gate)
            more.gate = (const char *)args.gate +
                        (batch_index() * args.stride_gate + where.n0 + w.n + across) * HALF_BYTES;
        common = (((u64)more.gate | ldgate) & 15) == 0 || !more.gate;
        if (AHEAD) fetch(row0 + down, common);
        bias.template get<8, 1>(more.bias, across);
    }
    if (common) {
#pragma unroll 1
        for (int turn = 0; turn < S::TURNS; ++turn) {
            S::put(to, sums, turn);
            warp_barrier();
#pragma unroll 1
            for (int q0 = 0; q0 < ROUNDS; q0 += N) {
                const u32 below = q0 * STEP + down, first = row0 + turn * S::ROWS + below;
                eight_sums<F> x[N];
                b128 cs[N], gates[N], v[N];
                if (!AHEAD) fetch(first, true);
#pragma unroll
                for (int q = 0; q < N; ++q) {
                    cs[q] = c[q], gates[q] = gate[q];
                    x[q] = S::template get<false>(buffer + (below + q * STEP) * S::PITCH, across, 0);
                }
                if (AHEAD) fetch(first + N * STEP, q0 + N < ROUNDS || turn + 1 < S::TURNS);
                finish_with<FAST_D<V>>(v, x, cs, gates, o.end, more);
#pragma unroll
                for (int q = 0; q < N; ++q) {
                    const u32 row = first + q * STEP;
                    st_global(o.d + row * o.ldd + across * HALF_BYTES, v[q], row < m_end && inside);
                }
            }
            warp_barrier();
        }
    } else {
        /* Where D is column-major, lanes stand side by side along columns, so that they write whole sectors. */
        const bool by_columns = is_by_columns<V::INDIRECT>(args);
#pragma unroll 1
        for (int turn = 0; turn < S::TURNS; ++turn) {
            S::put(to, sums, turn);
            warp_barrier();
            u32 below = by_columns ? w.lane % S::ROWS : down, column = by_columns ? w.lane / S::ROWS * 8 : across;
#pragma unroll 1
            for (int q = 0; q < ROUNDS; column += 32 / S::ROWS * 8) {
                const fused_epilogue<V::INDIRECT> end(args, where, where.n0 + w.n + column);
#pragma unroll 1
                do {
                    const u32 row = row0 + turn * S::ROWS + below;
                    if (row < m_end && end.count > 0)
                        end.finish(S::template get<false>(buffer + below * S::PITCH, column, 0), row);
                    below += by_columns ? 0 : STEP;
                } while (++q < ROUNDS && !by_columns);
            }
            warp_barrier();
        }
    }
}

/* Of bfloat16 operands, or of floats: writes a D that is nothing but the sums, of any type. False where it is more. Of
 * floats, alpha is a part of the scaling. */
template <class V>
static DEVICE bool store_plain(const arguments &args, const typename V::sums &acc, const warp<V> &w, u32 row0,
                               u32 col0, int width, u32 block_width, const scaling &by)
{
    const u32 t = args.fused >> HGEMM_FUSED_TYPE_D & HGEMM_FUSED_TYPE_MASK, bytes = bytes_of(t);
    const bool is_more = V::SCALED && args.alpha != 1 || args.beta != 0 || args.alpha_pointer || args.beta_pointer || args.bias ||
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
    warp_bias<V> bias;
    constexpr bool LATE = V::K_WARPS == 1 && V::TIGHT;
    if (!LATE) bias.load(args, where, w); /* while sums of other warps are added */
    add_warps(acc, w);
    if (!is_owner<V>()) return; /* barriers wait for threads that have not exited (CUDA guide, __syncthreads) */
    if (!add_parts<V>(args, acc)) return;
    if (V::TIGHT) w = warp<V>(); /* computed anew: sums of all parts leave no registers */
    w.m += w.k_warp * V::OWN_M;
    const block<V> at = recomputed(args, where);
    if (LATE) bias.load(args, at, w);
    barrier(); /* every warp has read its last fragments: shared memory is free */
    const u32 row0 = at.m0 + w.m, col0 = at.n0 + w.n, m = args.m, n = args.n;
    const long long batch = batch_index();
    const u64 ldc = args.ldc * HALF_BYTES, ldd = args.ldd * HALF_BYTES;
    const char *const c = (const char *)args.c + batch * args.stride_c * HALF_BYTES + (u64)col0 * HALF_BYTES;
    char *const d = (char *)args.d + batch * args.stride_d * HALF_BYTES + (u64)col0 * HALF_BYTES;
    const epilogue end{args.alpha, args.beta};
    const bool c_like_d = (((u64)c - (u64)d | ldc - ldd) & 15) == 0;
    const u32 block_width = minimum(n - at.n0, V::BN);
    const int width = (int)(block_width - w.n);

    /* The way is chosen here, and nowhere else. Aligned: rows of D are whole aligned chunks. */
    const bool aligned = (((u64)d | ldd | block_width * HALF_BYTES) & 15) == 0;
    if constexpr (V::ARE == OF_FLOATS) {
        if (store_plain<V>(args, acc, w, row0, col0, width, block_width, scaling(args.alpha))) return;
    }
    if constexpr (V::SCALED) {
        report_overflow<V>(args, acc, w.lane, (int)(at.m_end(args) - row0), width);
        const scaling by(args);
        if (store_plain<V>(args, acc, w, row0, col0, width, block_width, by)) return;
        scale_sums<V>(acc, by);
    }
    output o{c, d, ldc, ldd, m, width, end, c_like_d};
    bool alone = aligned && end.is_plain(); /* D is the sums, but for scale, bias and activation */
    u32 how = NONE;
    const bool fused = V::FUSES && (V::INDIRECT || V::ARE != OF_HALVES || args.fused);
    if constexpr (V::FUSES)
        if (fused) {
            const bool common = !V::INDIRECT && !(args.fused & HGEMM_FUSED_ANYHOW) && aligned && (c_like_d || !end.reads_c());
            how = args.fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK;
            alone = common && !end.reads_c() && !args.gate;
            const bool simple = how <= RELU && (V::ACC == f32 || end.is_plain() && bias.type == F16);
            if (V::INDIRECT || !alone || !V::ACTIVATES && !simple) {
                store_rows_fused<FORMAT<V>>(args, acc, at, w, o, bias, common);
                return;
            }
            if constexpr (V::ACTIVATES)
                if (!simple) {
                    store_activated<FAST_D<V>>(acc, w, row0, o, bias, how);
                    return;
                }
            if (V::ACC == f16) o.bias = bias.get_words(w.lane % (V::WN / 8) * 8), o.relu = how == RELU;
        }
    if constexpr (V::ACC == f32) {
        if (alone) {
            store_rounded<FAST_D<V>, V>(acc, w, row0, o, bias, fused, how == RELU);
            return;
        }
    }
    if (aligned && (c_like_d || !end.reads_c())) {
        o.c_like_d = true;
        store_rows<true, FORMAT<V>>(acc, w, row0, o);
    } else {
        store_rows<false, FORMAT<V>>(acc, w, row0, o);
    }
}

/* The tile of C in cache lines of 128 bytes, or what is left of one, in parts of one to each thread. */
template <class V> constexpr u32 C_ROW_LINES = (V::BN + 63) / 64;
template <class V> constexpr u32 C_PARTS = (V::BM * C_ROW_LINES<V> + V::THREADS - 1) / V::THREADS;

/* Prefetches a part of the tile of C to the L2 cache. */
template <class V> static DEVICE void prefetch_c(const arguments &args, const block<V> &where, u32 part)
{
    if (V::INDIRECT) return;
    const block<V> at = recomputed(args, where);
    const char *const c = (const char *)args.c + batch_index() * args.stride_c * HALF_BYTES;
    const u32 i = part * V::THREADS + thread_index();
    if (i < V::BM * C_ROW_LINES<V>)
        prefetch_l2(c + minimum(at.m0 + i / C_ROW_LINES<V>, args.m - 1) * (args.ldc * HALF_BYTES) +
                    minimum(at.n0 + i % C_ROW_LINES<V> * 64, args.n - 1) * (u64)HALF_BYTES);
}
