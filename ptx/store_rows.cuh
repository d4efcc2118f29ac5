/* SPDX-License-Identifier: MIT */
/*
 * A policy of store.cuh: rows of D, and of C and a gate, of the operands' own type of two bytes, in aligned chunks of
 * eight elements, and what these leave of a row at either end.
 */
#pragma once
#include "finish.cuh"
#include "stage.cuh"
#include "sums.cuh"

/* The type of D that has the fastest ways, beside FP32: that of the operands. */
template <class V> static constexpr type FAST_D = V::SCALED ? BF16 : F16;

/* Where a warp's rows go. */
struct output {
    const char *c; /* row 0 of C, and of D, at the warp's first column */
    char *d;
    u64 ldc, ldd;  /* in bytes */
    u32 row0, m;   /* the warp's first row, and rows of D */
    int width;     /* columns from the warp's first one to the end of the block's, as far as D has them */
    u32 way;
    scalars by;
};

/* A warp's bias: each lane has that of two columns, for all of them. */
template <class V> struct warp_bias {
    u32 type = F16, v[2] = {}; /* two floats, or a word with two elements */

    DEVICE void load(const arguments &args, const block<V> &where, const warp<V> &w)
    {
        type = args.fused >> HGEMM_FUSED_TYPE_BIAS & HGEMM_FUSED_TYPE_MASK;
        if (args.beta != 0) v[0] = 0x80008000; /* no bias leaves beta * C as it is: halves of -0 */
        if (!V::FUSES || V::INDIRECT || !args.bias || args.fused & HGEMM_FUSED_ANYHOW) return;
        const u32 column = where.n0 + w.n + w.lane * 2;
        const char *const at =
            (const char *)args.bias + (batch_index() * args.stride_bias + column) * bytes_of(type);
        load_pair(v, at, type, w.lane < V::WN / 2 && column + 1 < args.n);
    }

    /* The values in COUNT columns: of every STEP-th pair from that of `first` on. */
    template <int COUNT, int STEP> DEVICE void get(float (&f)[COUNT], u32 first) const
    {
        auto value = [&](int e) {
            return type == F32   ? v[e]
                   : type == F16 ? __float_as_uint(value_in_pair<F16>(v[0], e))
                                 : __float_as_uint(value_in_pair<BF16>(v[0], e));
        };
        const u32 low = value(0), high = value(1);
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

/* An element's value in a chunk of eight of two bytes each, and eight values rounded to such. */
template <type T> static DEVICE float value_in_chunk(const b128 &x, int e)
{
    const u32 pairs[4] = {x.x, x.y, x.z, x.w};
    return value_in_pair<T>(pairs[e / 2], e % 2);
}
template <type T> static DEVICE b128 chunk_of(const float *x)
{
    return b128{pair_of<T>(x[0], x[1]), pair_of<T>(x[2], x[3]), pair_of<T>(x[4], x[5]), pair_of<T>(x[6], x[7])};
}

/* A chunk of D of rounded sums, which take a bias of halves. An addition of +0 turns -0 into +0, as finish() does; and
 * 24 bits are twice 11 and two, so that to round twice does no harm. */
static DEVICE b128 plus_bias(const eight_sums<HALVES> &x, const b128 &bias)
{
    return b128{add_halves(x.v[0], bias.x), add_halves(x.v[1], bias.y), add_halves(x.v[2], bias.z),
                add_halves(x.v[3], bias.w)};
}
static DEVICE b128 plus_bias(const eight_sums<ROUNDED> &x, const b128 &)
{
    return b128{x.v[0], x.v[1], x.v[2], x.v[3]};
}
static DEVICE b128 plus_bias(const eight_sums<FLOATS> &x, const b128 &)
{
    return b128{pack_halves(x.at(0), x.at(1)), pack_halves(x.at(2), x.at(3)), pack_halves(x.at(4), x.at(5)),
                pack_halves(x.at(6), x.at(7))};
}

/* Columns of a row of D before its first aligned chunk. */
template <bool ALIGNED> static DEVICE int lead(const char *row_of_d)
{
    return ALIGNED ? 0 : (int)(16 - (u64)row_of_d % 16) % 16 / HALF_BYTES;
}

/* Stores what whole chunks leave of the rows from `top` on at either end of the block's columns, in pairs of halves. A
 * lane has the head or the tail of a row. Shared memory has `columns` of each. */
template <class V, format F>
static DEVICE void store_row_ends(const lanes<V, F> &lane, const warp<V> &w, const output &o, u32 top, u32 columns)
{
    constexpr u32 ROWS = lanes<V, F>::ROWS;
    const bool heads = w.n == 0, tails = o.width < V::WN + 8, read_c = o.by.reads_c();
    if (!heads && !tails) return;
#pragma unroll 1
    for (u32 i = w.lane; i < (heads && tails ? 2 : 1) * ROWS; i += 32) {
        const bool is_tail = !heads || i >= ROWS;
        const u32 r = i % ROWS, row = top + r;
        char *const begin = o.d + row * o.ldd;
        const int head = lead<false>(begin), tail = o.width > head ? (o.width - head) % 8 : 0;
        int from = 0, count = head < o.width ? head : o.width;
        if (is_tail) from = o.width - tail, count = from - head < V::WN ? tail : 0;
        if (row >= o.m || count <= 0) continue;
        const eight_sums<F> sums = lane.template get<true>(r, from, columns);
        u32 h[9] = {};
#pragma unroll
        for (int e = 0; e < 7; ++e)
            ld_global_half(h[e], o.c + row * o.ldc + (from + e) * HALF_BYTES, read_c && e < count);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = sums.at(e);
        finish(x, o.by, [&](float (&f)[8]) {
#pragma unroll
            for (int e = 0; e < 8; ++e) f[e] = half_to_float(h[e]);
        });
#pragma unroll
        for (int e = 0; e < 8; e += 2) h[e / 2] = pack_halves(x[e], x[e + 1]);
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

/* What rows have beside alpha, beta and C: a bias for each column, an activation, a gate, whose row 0 begins there. */
template <class V> struct extras {
    const warp_bias<V> &bias;
    u32 how;
    const char *gate; /* at the warp's first column; NULL: none */
    u64 ldgate;
};

/* C, and with extras a gate, of COUNT rows of a lane: chunks that begin where those of D do. */
template <class V, bool ALIGNED, bool HAS_EXTRAS, int COUNT> struct rows_beside {
    b128 c[COUNT], gate[COUNT];

    DEVICE void fetch(const lanes<V, FORMAT<V>> &lane, const output &o, const extras<V> &more, u32 first, bool when)
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const u32 row = first + q * lane.STEP;
            const int col = lead<ALIGNED>(o.d + row * o.ldd) + (int)lane.across;
            const bool live = row < o.m && col + 8 <= o.width && when;
            const char *const from = o.c + row * o.ldc + col * HALF_BYTES;
            c[q] = gate[q] = b128{};
            if (ALIGNED || o.way & HGEMM_WAY_C_ALIKE) {
                ld_global(c[q], from, live && o.by.reads_c());
            } else if (o.by.reads_c()) {
                u32 h[8] = {};
#pragma unroll
                for (int e = 0; e < 8; ++e) ld_global_half(h[e], from + e * HALF_BYTES, live);
                c[q] = pack_chunk(h);
            }
            if (HAS_EXTRAS)
                ld_global(gate[q], more.gate + row * more.ldgate + col * HALF_BYTES, live && more.gate);
        }
    }
    /* N rows of D from their sums, of which the first is number `first` here. */
    template <int N>
    DEVICE void finish_rows(b128 (&d)[N], const eight_sums<FORMAT<V>> (&sums)[N], int first, const scalars &by,
                            const float (&biases)[8], const extras<V> &more) const
    {
        constexpr type T = FAST_D<V>;
        float x[N * 8];
#pragma unroll
        for (int e = 0; e < N * 8; ++e) x[e] = sums[e / 8].at(e % 8);
        auto of_c = [&](float (&f)[N * 8]) {
#pragma unroll
            for (int e = 0; e < N * 8; ++e) f[e] = value_in_chunk<T>(c[first + e / 8], e % 8);
        };
        auto of_gate = [&](float (&f)[N * 8]) {
#pragma unroll
            for (int e = 0; e < N * 8; ++e) f[e] = value_in_chunk<T>(gate[first + e / 8], e % 8);
        };
        auto of_bias = [&](float (&f)[N * 8]) {
#pragma unroll
            for (int e = 0; e < N * 8; ++e) f[e] = biases[e % 8];
        };
        if constexpr (HAS_EXTRAS)
            finish(x, by, values_if(true, of_bias), values_if(by.reads_c(), of_c), more.how,
                   values_if(more.gate, of_gate));
        else finish(x, by, of_c);
#pragma unroll
        for (int q = 0; q < N; ++q) d[q] = chunk_of<T>(x + q * 8);
    }
};

/* Stores the warp's rows, in aligned chunks: those that begin in its columns and end in the block's. Unless rows of D
 * are ALIGNED, the first chunk of each is `lead` columns in. What is beside HELD rows of a lane is fetched at a time,
 * AHEAD, while rows before are computed, if there are registers. */
template <bool ALIGNED, bool HAS_EXTRAS, class V>
static DEVICE void store_rows(const typename V::sums &sums, const warp<V> &w, const output &o, const extras<V> &more)
{
    using L = lanes<V, FORMAT<V>>;
    constexpr int ROUNDS = L::ROUNDS, STEP = L::STEP, ROOM = V::REGISTERS - V::ACC_WORDS;
    constexpr int MOST = !HAS_EXTRAS ? 4 : ROOM >= 120 ? 2 : 1, N = ROUNDS < MOST ? ROUNDS : MOST; /* rows at a time */
    constexpr int HELD = HAS_EXTRAS ? N : ROUNDS;
    constexpr bool AHEAD = HAS_EXTRAS ? !V::TIGHT : ALIGNED && ROUNDS <= 4;
    const L lane(w);
    const u32 columns = V::IDLES ? (o.width + 7) / 8 * 8 : V::BN - w.n; /* there: warps that idle leave none */
    const u32 first_row = o.row0 + lane.down;
    const bool plain = !ALIGNED && o.by.alpha == 1 && !o.by.reads_c();
    auto meet = [] { ALIGNED ? warp_barrier() : barrier(); }; /* a chunk may span two warps' columns */
    auto column = [&](const char *row_of_d) { return lead<ALIGNED>(row_of_d) + (int)lane.across; };
    rows_beside<V, ALIGNED, HAS_EXTRAS, HELD> next, now;
    if (AHEAD) next.fetch(lane, o, more, first_row, true);
    auto take = [&](u32 below) { /* what is beside these rows is there now */
        if constexpr (AHEAD) {
            now = next;
            next.fetch(lane, o, more, first_row + below + HELD * STEP, below + HELD * STEP < L::TURNS * L::ROWS);
        } else {
            now.fetch(lane, o, more, first_row + below, true);
        }
    };
    float biases[8];
    if (HAS_EXTRAS) more.bias.template get<8, 1>(biases, lane.across);
    char *at = o.d + first_row * o.ldd;
#pragma unroll 1
    for (int turn = 0; turn < L::TURNS; ++turn) {
        if (!HAS_EXTRAS) take(turn * L::ROWS);
        L::put(lane.to, sums, turn);
        meet();
#pragma unroll(HAS_EXTRAS ? 1 : ROUNDS)
        for (int q0 = 0; q0 < ROUNDS; q0 += N) {
            const u32 below = turn * L::ROWS + q0 * STEP;
            eight_sums<FORMAT<V>> its[N];
            b128 v[N];
            char *row[N];
#pragma unroll
            for (int q = 0; q < N; ++q) {
                row[q] = at;
                at += STEP * o.ldd;
                its[q] = lane.template get<!ALIGNED>((q0 + q) * STEP + lane.down, column(row[q]), columns);
            }
            if (HAS_EXTRAS) take(below);
            if (plain) {
#pragma unroll
                for (int q = 0; q < N; ++q) v[q] = plus_bias(its[q], b128{});
            } else {
                now.finish_rows(v, its, HAS_EXTRAS ? 0 : q0, o.by, biases, more);
            }
#pragma unroll
            for (int q = 0; q < N; ++q)
                st_global(row[q] + column(row[q]) * HALF_BYTES, v[q],
                          first_row + below + q * STEP < o.m && column(row[q]) + 8 <= o.width);
        }
        if (!ALIGNED) store_row_ends(lane, w, o, o.row0 + turn * L::ROWS, columns);
        meet();
    }
}
