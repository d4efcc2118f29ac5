/* SPDX-License-Identifier: MIT */
/*
 * thin: products that bytes bound, not arithmetic. D is a few columns, or a few rows, or a few elements.
 *
 * Idea      A long operand W is streamed once from global memory into registers and multiplied there, in single
 *           precision, with up to 8 columns (rows) of the other operand X, which stay in the L1 cache. Neither tensor
 *           cores nor shared memory would save a byte. Where D is taller than wide, W is A and X is B; else W is B.
 * Tile      LONG x 8 of D. A thread has 8 of the LONG lines of W, and of the k's one TK-th: TK threads share these
 *           lines. Where memory runs along k, each line gives a thread 8 k's at a time, and neighbours continue it.
 *           Where it runs along the lines, 8 lines at a time come with each k.
 * Sums      TK threads add up by shuffles, then through shared memory; blocks that share k (split-K) through the
 *           workspace: the last one to arrive adds all parts in the order of k. The order is fixed, and so are the bits.
 * D         Sums lie in shared memory as D does in global memory, and are stored in aligned chunks. If rows of D are
 *           short and follow each other without a gap, they are stored as one row.
 * Limits    Operands of any alignment; a row that is not aligned is loaded in overlapping chunks. Not for operands by
 *           pointers or indices.
 */
#include "epilogue.cuh"

template <class SPEC, bool A_ALONG_K, bool B_ALONG_K> struct thin_variant {
    static constexpr bool INDIRECT = false, PARTS_FIRST = false;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, THREADS = 128;
    static constexpr bool LONG_IS_M = BM >= BN;
    static constexpr bool W_ALONG_K = LONG_IS_M ? A_ALONG_K : B_ALONG_K, X_ALONG_K = LONG_IS_M ? B_ALONG_K : A_ALONG_K;
    static constexpr int LONG = LONG_IS_M ? BM : BN, TL = LONG / 8, TK = THREADS / TL;
    static constexpr int STEP = SPEC::BK / TK; /* k's that a thread takes before the next thread's */
    static_assert((LONG_IS_M ? BN : BM) == 8 && TL * TK == THREADS && STEP == 8, "not what the threads are made for");

    /* Neighbours in a warp share a line where memory runs along k, else they share a k. LANES_K of them share lines, and
     * are LANE_STEP apart; PARTS warps have a part of each sum. */
    static constexpr int LANES_K = W_ALONG_K ? (TK < 32 ? TK : 32) : (TL < 32 ? 32 / TL : 1);
    static constexpr int LANE_STEP = W_ALONG_K ? 1 : 32 / LANES_K, PARTS = TK / LANES_K;
    static DEVICE u32 tl() { return W_ALONG_K ? thread_index() / TK : thread_index() % TL; }
    static DEVICE u32 tk() { return W_ALONG_K ? thread_index() % TK : thread_index() / TL; }

    /* The line, within the tile, of a thread's accumulator e. */
    static DEVICE u32 line(int e) { return W_ALONG_K ? tl() + e * TL : tl() * 8 + e; }
};

/* Where a block stands. */
template <class V> struct thin_block {
    u32 tile, part; /* part: of k, if split */
    bool is_part;
    u32 m0, n0, k0, k_end;
    int lines, columns; /* of the tile, that D has: along LONG, and of the 8 */
    panel w, x;

    DEVICE explicit thin_block(const arguments &args)
    {
        const u32 tile_columns = ((u32)args.n + V::BN - 1) / V::BN, tile_rows = ((u32)args.m + V::BM - 1) / V::BM;
        const assignment<V> mine(args, tile_rows * tile_columns);
        tile = mine.tile, part = mine.part, is_part = mine.is_part;
        const u32 row = tile / tile_columns;
        m0 = row * V::BM, n0 = (tile - row * tile_columns) * V::BN;
        k0 = mine.part * args.k_split;
        k_end = mine.is_part ? minimum(k0 + args.k_split, args.k) : args.k;
        const int rows = (int)minimum(args.m - m0, V::BM), cols = (int)minimum(args.n - n0, V::BN);
        lines = V::LONG_IS_M ? rows : cols, columns = V::LONG_IS_M ? cols : rows;
        const panel a = whole(args.a, args.stride_a, args.lda, V::LONG_IS_M ? V::W_ALONG_K : V::X_ALONG_K, args.m, args.k, m0);
        const panel b = whole(args.b, args.stride_b, args.ldb, V::LONG_IS_M ? V::X_ALONG_K : V::W_ALONG_K, args.n, args.k, n0);
        w = V::LONG_IS_M ? a : b, x = V::LONG_IS_M ? b : a;
    }
    DEVICE u32 own_matrix(const arguments &) const { return batch_index(); }
    DEVICE u32 shared_matrix(const arguments &) const { return batch_index(); }

private:
    /* A stored operand of `extent` rows or columns and `k` k's; its base is at x0 and the first k of all. */
    static DEVICE panel whole(const void *first, long long stride, long long ld_elements, bool along_k, int extent, int k,
                              u32 x0)
    {
        const u64 ld = (u64)ld_elements * ELEMENT_BYTES;
        const char *const begin = (const char *)first + batch_index() * stride * ELEMENT_BYTES;
        const char *const end = begin + ((along_k ? extent : k) - 1) * ld + (along_k ? k : extent) * (u64)ELEMENT_BYTES;
        return panel{begin + x0 * (along_k ? ld : ELEMENT_BYTES), begin, end, ld, x0, (u32)extent, nullptr, false};
    }
};

/* COUNT chunks, whose lines are `step` bytes apart, on their way. All loads are under way before the first value is
 * needed. Chunks from `live` on, and halves from `width` on, are undefined. */
template <int COUNT> struct chunks_of_lines {
    chunk<ANY> c[COUNT];
    const char *first;
    u64 step;
    u32 shifts; /* 15; 0 where chunks are already in their place */

    DEVICE void load(const panel &m, const char *at, u64 line_step, int live, int width)
    {
        first = at, step = line_step, shifts = 15;
        const char *const last = at + ((live < COUNT ? live : COUNT) - 1) * step;
        const char *const low = aligned(at), *const high = aligned(last) + 32;
        if (low >= m.begin && high <= m.end) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const char *const line = at + i * step;
                c[i].v = c[i].next = b128{};
                ld_global(c[i].v, aligned(line), i < live);
                ld_global(c[i].next, aligned(line) + 16, i < live && shift(line) + width * ELEMENT_BYTES > 16);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) c[i].v = c[i].next = b128{};
            shifts = 0;
#pragma unroll 1
            for (int i = 0; i < live && i < COUNT; ++i) { /* rolled: it is rare, and long */
                u32 h[8] = {};
#pragma unroll
                for (int e = 0; e < 8; ++e) ld_global_half(h[e], at + i * step + e * ELEMENT_BYTES, e < width);
#pragma unroll
                for (int j = 0; j < COUNT; ++j) /* a search, for registers have no index */
                    if (j == i) c[j].v = pack_chunk(h);
            }
        }
    }
    DEVICE b128 get(int i) const { return c[i].extract(shift(first + i * step) & shifts); }

private:
    static DEVICE u32 shift(const char *p) { return (u32)(u64)p & 15; }
    static DEVICE const char *aligned(const char *p) { return p - shift(p); }
};

/* Half e of a chunk. */
static DEVICE float value(const b128 &v, int e)
{
    const u32 x[4] = {v.x, v.y, v.z, v.w};
    return half_to_float(x[e / 2] >> e % 2 * 16);
}

/* A thread's sums over its k's, where memory runs along k: of 8 lines, 8 k's at a time, of which the first
 * DEPTH count. */
template <class V, int T, int DEPTH> static DEVICE void add_along_k(float (&acc)[8][T], const thin_block<V> &at)
{
    constexpr int TOGETHER = T <= 4 ? 4 : 2; /* lines in flight */
    const int lines = (int)(at.lines - V::tl() + V::TL - 1) / V::TL; /* of the thread, that D has */
    if (lines <= 0 || at.lines <= (int)V::tl()) return;
    const int last = lines - 1;
#pragma unroll 1
    for (u32 k = at.k0 + V::tk() * 8; k < at.k_end; k += V::TK * 8) {
        const int count = (int)minimum(at.k_end - k, 8);
        /* X: 8 k's of each column, or all columns of each k. */
        constexpr int CHUNKS = V::X_ALONG_K ? T : DEPTH, AT_ONCE = CHUNKS < 4 ? CHUNKS : 4;
        b128 x[CHUNKS];
#pragma unroll
        for (int i0 = 0; i0 < CHUNKS; i0 += AT_ONCE) {
            chunks_of_lines<AT_ONCE> some;
            const char *const from = at.x.base + (V::X_ALONG_K ? i0 * at.x.ld + (u64)k * ELEMENT_BYTES : (k + i0) * at.x.ld);
            some.load(at.x, from, at.x.ld, (V::X_ALONG_K ? at.columns : count) - i0, V::X_ALONG_K ? count : at.columns);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) /* zeros where there is no k */
                x[i0 + i] = V::X_ALONG_K ? first_halves(some.get(i), count) : i0 + i < count ? some.get(i) : b128{};
        }
#pragma unroll
        for (int e0 = 0; e0 < 8; e0 += TOGETHER) {
            if (e0 > last) break;
            chunks_of_lines<TOGETHER> w;
            const char *const from = at.w.base + (V::tl() + e0 * V::TL) * at.w.ld + (u64)k * ELEMENT_BYTES;
            w.load(at.w, from, V::TL * at.w.ld, lines - e0, count);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const b128 v = first_halves(w.get(i), count);
#pragma unroll
                for (int q = 0; q < DEPTH; ++q) {
#pragma unroll
                    for (int t = 0; t < T; ++t) {
                        const float y = V::X_ALONG_K ? value(x[t % CHUNKS], q) : value(x[q % CHUNKS], t);
                        acc[e0 + i][t] = __fmaf_rn(value(v, q), y, acc[e0 + i][t]);
                    }
                }
            }
        }
    }
}

/* The same where memory runs along the lines: 8 lines come with each k. */
template <class V, int T> static DEVICE void add_along_lines(float (&acc)[8][T], const thin_block<V> &at)
{
    constexpr int TOGETHER = T <= 2 && V::TK > 1 ? 8 : T <= 4 || !V::X_ALONG_K ? 4 : 2; /* k's in flight */
    const int lines = at.lines - (int)V::tl() * 8;
    if (lines <= 0) return;
#pragma unroll 1
    for (u32 k = at.k0 + V::tk(); k < at.k_end; k += V::TK * TOGETHER) {
        const int live = (int)((at.k_end - k + V::TK - 1) / V::TK) < TOGETHER ? (at.k_end - k + V::TK - 1) / V::TK : TOGETHER;
        chunks_of_lines<TOGETHER> w;
        w.load(at.w, at.w.base + k * at.w.ld + V::tl() * 16, V::TK * at.w.ld, live, lines < 8 ? lines : 8);
        float y[TOGETHER][T];
        if constexpr (V::X_ALONG_K) {
            u32 h[TOGETHER][T] = {};
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
                for (int t = 0; t < T; ++t)
                    ld_global_half(h[i][t], at.x.base + t * at.x.ld + (u64)(k + i * V::TK) * ELEMENT_BYTES,
                                   i < live && t < at.columns);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
                for (int t = 0; t < T; ++t) y[i][t] = half_to_float(h[i][t]);
        } else {
            chunks_of_lines<TOGETHER> x;
            x.load(at.x, at.x.base + k * at.x.ld, V::TK * at.x.ld, live, at.columns);
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
                for (int t = 0; t < T; ++t) y[i][t] = value(x.get(i), t);
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            if (i >= live) break;
            const b128 v = w.get(i);
#pragma unroll
            for (int e = 0; e < 8; ++e)
#pragma unroll
                for (int t = 0; t < T; ++t) acc[e][t] = __fmaf_rn(value(v, e), y[i][t], acc[e][t]);
        }
    }
}

/* Where the sum of a line and a column is in shared memory: as in D. */
template <class V> static DEVICE u32 sum_at(u32 columns, u32 line, u32 column)
{
    return shared_base() + (V::LONG_IS_M ? line * columns + column : column * V::LONG + line) * 4;
}
template <class V> constexpr u32 SUMS_BYTES = V::LONG * 8 * 4; /* of a block, in the workspace */

/* Multiplies T columns from t0 on, and leaves the sums of the block in shared memory. */
template <class V, int T> static DEVICE void multiply(thin_block<V> at, int t0)
{
    float acc[8][T] = {};
    const int columns = at.columns;
    at.columns -= t0, at.x.base += t0 * (V::X_ALONG_K ? at.x.ld : ELEMENT_BYTES);
    if (V::W_ALONG_K && V::TK == 1 && at.k_end <= 4) add_along_k<V, T, 4>(acc, at);
    else if (V::W_ALONG_K) add_along_k<V, T, 8>(acc, at);
    else add_along_lines<V, T>(acc, at);
#pragma unroll
    for (int lanes = 1; lanes < V::LANES_K; lanes *= 2)
#pragma unroll
        for (int e = 0; e < 8; ++e)
#pragma unroll
            for (int t = 0; t < T; ++t)
                acc[e][t] += __uint_as_float(from_across(__float_as_uint(acc[e][t]), lanes * V::LANE_STEP));
    if (thread_index() / V::LANE_STEP % V::LANES_K != 0) return;
    const u32 part = V::tk() / V::LANES_K * (V::LONG * columns * 4);
#pragma unroll
    for (int t = 0; t < T; ++t) {
        if (t >= at.columns) break;
#pragma unroll
        for (int e = 0; e < 8; ++e)
            st_shared_word(part + sum_at<V>(columns, V::line(e), t0 + t), __float_as_uint(acc[e][t]));
    }
}

/* Adds up what warps have of each sum. A thread adds those that it alone touches, here and in add_blocks(). */
template <class V> static DEVICE void add_warps(const thin_block<V> &at)
{
    for (u32 i = thread_index(); V::PARTS > 1 && i < V::LONG * at.columns; i += V::THREADS) {
        float sum = 0;
#pragma unroll
        for (int part = 0; part < V::PARTS; ++part) {
            u32 x;
            ld_shared_word(x, shared_base() + (part * V::LONG * at.columns + i) * 4);
            sum += __uint_as_float(x);
        }
        st_shared_word(shared_base() + i * 4, __float_as_uint(sum));
    }
}

/* Adds up what blocks have, if k is split: in the order of k, by the last block to arrive. Returns whether this block
 * stores the tile. */
template <class V> static DEVICE bool add_blocks(const arguments &args, const thin_block<V> &at)
{
    constexpr int TOGETHER = V::LONG == 8 ? 32 : 8; /* loads in flight: the fewer sums, the more parts */
    if (!at.is_part) return true;
    const u32 tiles = (((u32)args.m + V::BM - 1) / V::BM) * (((u32)args.n + V::BN - 1) / V::BN);
    const u32 tile = batch_index() * (tiles - args.whole_tiles) + at.tile - args.whole_tiles, splits = args.splits;
    u32 *const arrived = (u32 *)args.workspace + tile;
    char *const first = (char *)args.workspace + HGEMM_WORKSPACE_TILES * 4 + (u64)tile * splits * SUMS_BYTES<V>;
    const u32 sums = V::LONG * at.columns;
    for (u32 i = thread_index(); i < sums; i += V::THREADS) {
        u32 x;
        ld_shared_word(x, shared_base() + i * 4);
        st_global_word(first + (u64)at.part * SUMS_BYTES<V> + i * 4, x);
    }
    barrier();
    if (thread_index() == 0) st_shared_word(shared_base(), atomic_add(arrived, 1));
    barrier();
    u32 before;
    ld_shared_word(before, shared_base());
    if (before + 1 < splits) return false;
    barrier();
    for (u32 i = thread_index(); i < sums; i += V::THREADS) {
        float sum = 0;
#pragma unroll 1
        for (u32 s = 0; s < splits; s += TOGETHER) {
            u32 x[TOGETHER] = {};
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q)
                ld_global_word(x[q], first + (u64)(s + q) * SUMS_BYTES<V> + i * 4, s + q < splits);
#pragma unroll
            for (int q = 0; q < TOGETHER; ++q) sum += __uint_as_float(x[q]);
        }
        st_shared_word(shared_base() + i * 4, __float_as_uint(sum));
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
template <class V> static DEVICE void store_plain(const arguments &args, const thin_block<V> &at)
{
    const u64 ldc = args.ldc * ELEMENT_BYTES, ldd = args.ldd * ELEMENT_BYTES;
    const char *const c = (const char *)args.c + (batch_index() * args.stride_c + at.n0) * ELEMENT_BYTES + at.m0 * ldc;
    char *const d = (char *)args.d + (batch_index() * args.stride_d + at.n0) * ELEMENT_BYTES + at.m0 * ldd;
    const epilogue end{args.alpha, args.beta};
    u32 rows = V::LONG_IS_M ? at.lines : at.columns, width = V::LONG_IS_M ? at.columns : at.lines;
    const u32 pitch = V::LONG_IS_M ? at.columns : V::LONG;
    if (V::LONG_IS_M && args.ldd == width && (args.ldc == width || !end.reads_c())) width *= rows, rows = 1;
    const u32 across = V::LONG_IS_M && rows > 1 ? 2 : V::THREADS; /* threads along a row: of 8, or of many elements */
    const u32 chunk0 = thread_index() % across * 8;
    for (u32 row = thread_index() / across, chunk = chunk0; row < rows; chunk += across * 8) {
        char *const to = d + row * ldd;
        const char *const from = c + row * ldc;
        const int before = (int)((u64)to & 15) / ELEMENT_BYTES, col = (int)chunk - before; /* of an aligned chunk */
        if (col >= (int)width) {
            row += V::THREADS / across, chunk = chunk0 - across * 8;
            continue;
        }
        const int first = col < 0 ? 0 : col, past = col + 8 < (int)width ? col + 8 : (int)width, count = past - first;
        if (count <= 0) continue;
        const eight_sums<FLOATS> x = sums_from(shared_base() + (row * pitch + first) * 4, count);
        const bool c_whole = count == 8 && ((u64)(from + first * ELEMENT_BYTES) & 15) == 0;
        float cs[8] = {}, sum[8];
        if (end.reads_c()) values_of(cs, load_elements(from + first * ELEMENT_BYTES, F16, c_whole, count), F16);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[e] = __fmaf_rn(args.beta, cs[e], __fmul_rn(args.alpha, x.at(e)));
        store_elements(to + first * ELEMENT_BYTES, F16, count == 8, count, sum);
    }
}

/* The same by the fused epilogue: a thread has 8 columns, in several rows. */
template <class V> static DEVICE void store_fused(const arguments &args, const thin_block<V> &at)
{
    constexpr int ACROSS = V::LONG_IS_M ? 1 : V::TL, STEP = V::THREADS / ACROSS;
    const u32 column = thread_index() % ACROSS * 8, rows = V::LONG_IS_M ? at.lines : at.columns;
    const u32 pitch = V::LONG_IS_M ? at.columns : V::LONG;
    const fused_epilogue<false> end(args, at, at.n0 + column);
    if (end.count <= 0) return;
#pragma unroll 1
    for (u32 row = thread_index() / ACROSS; row < rows; row += STEP)
        end.finish(sums_from(shared_base() + (row * pitch + column) * 4, end.count), at.m0 + row);
}

template <class V> static DEVICE void thin(const arguments &args)
{
    const thin_block<V> at(args);
    /* Where k is short, more threads hide more latency than a second look into the cache costs. */
    constexpr int MOST = V::TK == 1 ? 4 : 8;
    if (at.columns == 1) multiply<V, 1>(at, 0);
    else if (at.columns == 2) multiply<V, 2>(at, 0);
    else if (at.columns <= 4 && MOST > 4) multiply<V, 4>(at, 0);
    else
#pragma unroll 1
        for (int t0 = 0; t0 < at.columns; t0 += MOST) multiply<V, MOST>(at, t0);
    barrier();
    add_warps(at);
    if (!add_blocks(args, at)) return;
    barrier();
    if (args.fused) store_fused(args, at);
    else store_plain(args, at);
}

#define HGEMM_ROW_TYPE(name) row_##name
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
using built = thin_variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B>;
extern "C" __global__ void __launch_bounds__(built::THREADS, HGEMM_ROW_TYPE_OF(HGEMM_ROW)::NEWER_BLOCKS)
    HGEMM_VARIANT(const arguments args)
{
    thin<built>(args);
}
