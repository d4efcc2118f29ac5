/* SPDX-License-Identifier: MIT */
/*
 * thin: products that bytes bound, not arithmetic. D is a few columns, or a few rows, or a few elements.
 *
 * Idea      A long operand W is streamed once from global memory into registers and multiplied there, in single
 *           precision, with up to 8 columns (rows) of the other operand X, which stay in the L1 cache. Neither tensor
 *           cores nor shared memory would save a byte. Where D is taller than wide, W is A and X is B; else W is B.
 * Tile      LONG x 8 of D. TL threads share its LONG lines of W, and TK threads the k's. Where memory runs along k, a
 *           thread takes 8 k's of a line at a time, and neighbours continue it. Where it runs along the lines, all
 *           those of a thread come with each k.
 *           If D has a column or two, a block may have several tiles. One column of many k's is streamed in its own
 *           way.
 * Sums      TK threads add up by shuffles, then through shared memory; blocks that share k (split-K) through the
 *           workspace: the last one to arrive adds all parts. The order is fixed, and so are the bits.
 * D         Sums lie in shared memory as D does in global memory, and are stored in aligned chunks. If rows of D are
 *           short and follow each other without a gap, they are stored as one row.
 * Limits    Operands of any alignment; a row that is not aligned is loaded in overlapping chunks. It is multiplied
 *           in passes of up to 4 columns. Not for operands by pointers or indices.
 */
#include "epilogue.cuh"

template <class SPEC, bool A_ALONG_K, bool B_ALONG_K> struct thin_variant {
    static constexpr bool INDIRECT = false, PARTS_FIRST = false;
    static constexpr int BM = SPEC::BM, BN = SPEC::BN, THREADS = 128;
    static constexpr bool LONG_IS_M = BM >= BN;
    static constexpr bool W_ALONG_K = LONG_IS_M ? A_ALONG_K : B_ALONG_K, X_ALONG_K = LONG_IS_M ? B_ALONG_K : A_ALONG_K;
    static constexpr int LONG = LONG_IS_M ? BM : BN;
    static constexpr int TL = THREADS * 8 / SPEC::BK, TK = THREADS / TL;
    static constexpr int LINES = LONG / TL; /* of a thread */
    static_assert((LONG_IS_M ? BN : BM) == 8 && TL * TK == THREADS && TL * LINES == LONG, "not what threads can do");

    /* Where D is 8x8, all lanes of a warp share its lines. PARTS warps, or groups of warps, have a part of each sum. */
    static constexpr int LANES_K = LONG == 8 ? 32 : 1, PARTS = TK / LANES_K;
    static_assert(LONG == 8 ? TL == 1 : TK == 1, "lanes of a warp do not agree");
    static constexpr bool CAN_STREAM = LONG > 8 && !W_ALONG_K; /* stream() */
    static DEVICE u32 tl() { return W_ALONG_K ? thread_index() / TK : thread_index() % TL; }
    static DEVICE u32 tk() { return W_ALONG_K ? thread_index() % TK : thread_index() / TL; }

    /* The line, within the tile, of a thread's accumulator e. */
    static DEVICE u32 line(int e) { return W_ALONG_K ? tl() + e * TL : tl() * LINES + e; }
};

/* Where a block stands. Its tile is several of the table's, side by side, where the grid has fewer blocks than D has
 * tiles. */
template <class V> struct thin_block {
    u32 tile, part; /* part: of k, if split */
    bool is_part;
    bool is_streamed; /* by stream() */
    u32 m0, n0, k0, k_end;
    int lines, columns; /* of the tile, that D has: along LONG, and of the 8 */
    u32 pitch;          /* of sums in shared memory: columns side by side, or else lines */
    panel w, x;

    DEVICE explicit thin_block(const arguments &args)
    {
        constexpr bool TALL = V::LONG_IS_M;
        const u32 tile_columns = ((u32)args.n + V::BN - 1) / V::BN, tile_rows = ((u32)args.m + V::BM - 1) / V::BM;
        const u32 tiles = tile_rows * tile_columns;
        const bool may_have_several = V::LONG > 8 && (TALL ? args.n : args.m) <= HGEMM_FEW_COLUMNS;
        const u32 each = may_have_several ? (tiles + block_count() - 1) / block_count() : 1;
        const assignment<V> mine(args, tiles);
        tile = mine.tile * each, part = mine.part, is_part = mine.is_part;
        const u32 row = divide(tile, tile_columns, args.inv_group_tiles); /* the group of its walk is of one row */
        u32 most = V::LONG * each; /* lines */
        m0 = row * V::BM, n0 = (tile - row * tile_columns) * V::BN;
        is_streamed = V::CAN_STREAM && (TALL ? args.n : args.m) == 1 && args.k >= HGEMM_STREAMED_K &&
                      (TALL ? args.m : args.n) >= HGEMM_STREAMED_LEAST_LINES && args.splits == 1;
        if (is_streamed) {
            is_part = false, most = HGEMM_STREAMED_LINES;
            m0 = TALL ? block_index() * most : 0, n0 = TALL ? 0 : block_index() * most;
        }
        k0 = is_part ? part * args.k_split : 0;
        k_end = is_part ? minimum(k0 + args.k_split, args.k) : args.k;
        const int rows = (int)minimum(args.m - m0, TALL ? most : V::BM);
        const int cols = (int)minimum(args.n - n0, TALL ? V::BN : most);
        lines = TALL ? rows : cols, columns = TALL ? cols : rows, pitch = TALL ? cols : most;
        const panel a = whole(args.a, args.stride_a, args.lda, TALL ? V::W_ALONG_K : V::X_ALONG_K, args.m, args.k, m0);
        const panel b = whole(args.b, args.stride_b, args.ldb, TALL ? V::X_ALONG_K : V::W_ALONG_K, args.n, args.k, n0);
        w = TALL ? a : b, x = TALL ? b : a;
    }
    DEVICE u32 own_matrix(const arguments &) const { return batch_index(); }
    DEVICE u32 shared_matrix(const arguments &) const { return batch_index(); }

private:
    /* A stored operand of `extent` rows or columns and `k` k's; its base is at x0 and the first k of all. */
    static DEVICE panel whole(const void *first, long long stride, long long ld_elements, bool along_k, int extent,
                              int k, u32 x0)
    {
        const u64 ld = (u64)ld_elements * HALF_BYTES;
        const char *const begin = (const char *)first + batch_index() * stride * HALF_BYTES;
        const char *const end = begin + ((along_k ? extent : k) - 1) * ld + (along_k ? k : extent) * (u64)HALF_BYTES;
        return panel{begin + x0 * (along_k ? ld : HALF_BYTES), begin, end, ld, x0, (u32)extent, nullptr, false};
    }
};

/* The 16 bytes that p lies in, of a matrix that has not all of them. */
static DEVICE b128 load_edge(const panel &m, const char *p)
{
    u32 w[4];
    p = in_place(p);
    load_words_inside(w, m, p - ((u64)p & 15));
    return b128{w[0], w[1], w[2], w[3]};
}

/* COUNT chunks, `step` bytes apart, on their way: all loads are under way before the first value is needed. Chunks from
 * `live` on, and halves from `width` on, are undefined. ALIKE: the step is a multiple of 16 bytes. */
template <int COUNT, bool ALIKE> struct chunks {
    chunk<ANY> c[COUNT];
    u32 shift0, step; /* the low bits of the step */

    DEVICE void load(const panel &m, const char *at, u64 step_bytes, int live, int width)
    {
        shift0 = (u32)(u64)at & 15, step = (u32)step_bytes;
        const char *const first = ALIKE ? at - shift0 : at;
        const auto aligned = [&](int i) { return first + i * step_bytes - (ALIKE ? 0 : shift(i)); };
        const auto is_wide = [&](int i) { return shift(i) + width * HALF_BYTES > 16; };
        u32 heads = 0, tails = 0, nexts = 0; /* which of these reach over the matrix's begin, over its end */
        if (aligned(0) < m.begin || aligned((live < COUNT ? live : COUNT) - 1) + 32 > m.end)
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                heads |= (aligned(i) < m.begin ? 1u : 0u) << i;
                tails |= (aligned(i) + 16 > m.end ? 1u : 0u) << i;
                nexts |= (aligned(i) + 32 > m.end ? 1u : 0u) << i;
            }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            ld_generic(c[i].v, aligned(i), i < live && !((heads | tails) >> i & 1));
            ld_generic(c[i].next, aligned(i) + 16, i < live && is_wide(i) && !(nexts >> i & 1));
        }
        if (heads | nexts) /* rare */
#pragma unroll 1
            for (int end = 0; end < 2; ++end) {
                const b128 part = load_edge(m, end ? m.end : m.begin);
#pragma unroll
                for (int i = 0; i < COUNT; ++i) {
                    if ((end ? tails & ~heads : heads) >> i & 1) c[i].v = part;
                    if ((end ? nexts : 0) >> i & 1) c[i].next = part;
                }
            }
    }
    DEVICE b128 get(int i) const { return c[i].extract(shift(i)); }

private:
    DEVICE u32 shift(int i) const { return ALIKE ? shift0 : (shift0 + i * step) & 15; }
};

/* Half e of a chunk. */
static DEVICE float value(const b128 &v, int e)
{
    const u32 x[4] = {v.x, v.y, v.z, v.w};
    return half_to_float(x[e / 2] >> e % 2 * 16);
}

/* X from k on: COUNT k's, STEP apart, and T columns. Zeros from k number `live` on, and from `columns` on. Halves that
 * follow each other in memory, along k or across columns, come together if they are all there and aligned. */
template <class V, int COUNT, int STEP, int T> struct few_columns {
    static constexpr bool BY_K = V::X_ALONG_K && STEP == 1; /* which of them come together */
    static constexpr int ROW = BY_K ? COUNT : T, ROWS = BY_K ? T : COUNT, ROW_BYTES = ROW * HALF_BYTES;
    u32 w[ROWS][(ROW + 1) / 2] = {};

    DEVICE few_columns(const thin_block<V> &at, u32 k, int live)
    {
        const u64 ld = in_place(at.x.ld);
        const u64 k_bytes = V::X_ALONG_K ? HALF_BYTES : ld, t_bytes = V::X_ALONG_K ? ld : HALF_BYTES;
        const char *const first = at.x.base + k * k_bytes;
        const int have_k = live < COUNT ? live : COUNT, have_t = at.columns < T ? at.columns : T;
        const int rows = BY_K ? have_t : have_k, halves = BY_K ? have_k : have_t;
        if (BY_K == V::X_ALONG_K && ROW > 1 && halves == ROW && (((u32)(u64)first | (u32)ld) & (ROW_BYTES - 1)) == 0)
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const char *const p = first + i * (BY_K ? ld : STEP * ld);
                if constexpr (ROW == 8) {
                    b128 v = {};
                    ld_global(v, p, i < rows);
                    w[i][0] = v.x, w[i][1] = v.y, w[i][2] = v.z, w[i][3] = v.w;
                } else if constexpr (ROW == 4) ld_global(w[i][0], w[i][1], p, i < rows);
                else if constexpr (ROW == 2) ld_global_word(w[i][0], p, i < rows);
            }
        else
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
#pragma unroll
                for (int t = 0; t < T; ++t) {
                    u32 half = 0;
                    ld_global_half(half, first + i * (STEP * k_bytes) + t * t_bytes, i < live && t < at.columns);
                    const int row = BY_K ? t : i, e = BY_K ? i : t;
                    w[row][e / 2] |= e % 2 ? half << 16 : half;
                }
    }
    DEVICE float value(int i, int t) const
    {
        const int row = BY_K ? t : i, e = BY_K ? i : t;
        return half_to_float(w[row][e / 2] >> e % 2 * 16);
    }
};

/* A thread's sums over its k's, where memory runs along k: 8 k's at a time, of which the first DEPTH count. */
template <class V, int T, int DEPTH> static DEVICE void add_along_k(float (&acc)[V::LINES][T], const thin_block<V> &at)
{
    constexpr int TOGETHER = T > 2 || V::LINES > 4 ? 2 : 4; /* lines in flight */
    if (at.lines <= (int)V::tl()) return;
    const int lines = (int)(at.lines - V::tl() + V::TL - 1) / V::TL; /* of the thread, that D has */
#pragma unroll 1
    for (u32 k = at.k0 + V::tk() * 8; k < at.k_end; k += V::TK * 8) {
        const int count = (int)minimum(at.k_end - k, 8);
        const char *const first = at.w.base + V::tl() * at.w.ld + (u64)k * HALF_BYTES;
        const few_columns<V, DEPTH, 1, T> x(at, k, count);
#pragma unroll
        for (int e0 = 0; e0 < V::LINES; e0 += TOGETHER) {
            if (e0 >= lines) break;
            chunks<TOGETHER, V::TL % 8 == 0> w;
            w.load(at.w, first + e0 * (V::TL * at.w.ld), in_place(V::TL * at.w.ld), lines - e0, count);
            b128 line[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) line[i] = w.get(i);
            if (count < DEPTH) /* zeros where there is no k */
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) line[i] = first_halves(line[i], count);
#pragma unroll
            for (int q = 0; q < DEPTH; ++q)
#pragma unroll
                for (int t = 0; t < T; ++t) {
                    const float y = x.value(q, t);
#pragma unroll
                    for (int i = 0; i < TOGETHER; ++i) acc[e0 + i][t] = __fmaf_rn(value(line[i], q), y, acc[e0 + i][t]);
                }
        }
    }
}

/* The same where D has one line and all memory runs along k: SPAN times 8 k's are under way. */
template <class V, int T> static DEVICE void add_one_line(float (&acc)[1][T], const thin_block<V> &at)
{
    constexpr int SPAN = T > 1 ? 2 : 4;
    constexpr u32 STEP = V::TK * 8;
#pragma unroll 1
    for (u32 k = at.k0 + V::tk() * 8; k < at.k_end; k += STEP * SPAN) {
        const int left = (int)(at.k_end - k), spans = (left + (int)STEP - 1) / (int)STEP;
        const u64 skip = (u64)k * HALF_BYTES;
        chunks<SPAN, true> w, x[T];
        w.load(at.w, at.w.base + skip, STEP * HALF_BYTES, spans, 8);
#pragma unroll
        for (int t = 0; t < T; ++t)
            x[t].load(at.x, at.x.base + t * at.x.ld + skip, STEP * HALF_BYTES, t < at.columns ? spans : 0, 8);
#pragma unroll
        for (int s = 0; s < SPAN; ++s) {
            const int count = left - s * (int)STEP;
            b128 line = w.get(s);
            if (count < 8) line = first_halves(line, count); /* zeros where there is no k */
#pragma unroll
            for (int t = 0; t < T; ++t) {
                b128 column = x[t].get(s);
                if (count < 8) column = first_halves(column, count);
#pragma unroll
                for (int q = 0; q < 8; ++q) acc[0][t] = __fmaf_rn(value(line, q), value(column, q), acc[0][t]);
            }
        }
    }
}

/* The same where memory runs along the lines: those of a thread come with each k, and TOGETHER k's are in flight. */
template <class V, int T, int TOGETHER>
static DEVICE void add_along_lines(float (&acc)[V::LINES][T], const thin_block<V> &at)
{
    const int lines = at.lines - (int)V::tl() * V::LINES;
    if (lines <= 0) return;
#pragma unroll 1
    for (u32 k = at.k0 + V::tk(); k < at.k_end; k += V::TK * TOGETHER) {
        const int live = (int)minimum((at.k_end - k + V::TK - 1) / V::TK, TOGETHER);
        chunks<TOGETHER, V::TK % 8 == 0> w;
        w.load(at.w, at.w.base + k * at.w.ld + V::tl() * (V::LINES * HALF_BYTES),
               in_place(V::TK * at.w.ld), live, lines < V::LINES ? lines : V::LINES);
        const few_columns<V, TOGETHER, V::TK, T> x(at, k, live);
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            if (i >= live) break;
            const b128 v = w.get(i);
#pragma unroll
            for (int t = 0; t < T; ++t) {
                const float y = x.value(i, t);
#pragma unroll
                for (int e = 0; e < V::LINES; ++e) acc[e][t] = __fmaf_rn(value(v, e), y, acc[e][t]);
            }
        }
    }
}

/* Adds sums to those at an address in shared memory, or, if they are the first, writes them there. */
static DEVICE void put(u32 address, float sum, bool is_first)
{
    u32 before = 0;
    if (!is_first) ld_shared_word(before, address);
    st_shared_word(address, __float_as_uint(__uint_as_float(before) + sum));
}
static DEVICE void put(u32 address, float a, float b, float c, float d, bool is_first)
{
    b128 x = {};
    if (!is_first) ld_shared(x, address);
    st_shared(address, b128{__float_as_uint(__uint_as_float(x.x) + a), __float_as_uint(__uint_as_float(x.y) + b),
                            __float_as_uint(__uint_as_float(x.z) + c), __float_as_uint(__uint_as_float(x.w) + d)});
}

/* Where the sum of a line and a column is in shared memory: as in D. */
template <class V> static DEVICE u32 sum_at(u32 pitch, u32 line, u32 column)
{
    return shared_base() + (V::LONG_IS_M ? line * pitch + column : column * pitch + line) * 4;
}

/* Brings a thread's sums of the lines from `line0` on, and from column t0 on, to shared memory. */
template <class V, int T, int E>
static DEVICE void put_sums(const float (&acc)[E][T], int columns, u32 pitch, u32 line0, int t0, bool is_first)
{
    if (!V::LONG_IS_M && !V::W_ALONG_K) { /* lines follow each other */
#pragma unroll
        for (int t = 0; t < T; ++t)
#pragma unroll
            for (int e = 0; e < E; e += 4)
                if (t0 + t < columns)
                    put(sum_at<V>(pitch, line0 + V::line(e), t0 + t), acc[e][t], acc[e + 1][t], acc[e + 2][t],
                        acc[e + 3][t], is_first);
    } else if (V::LONG_IS_M && !V::W_ALONG_K && columns == T) { /* and so do their columns */
        const u32 first = sum_at<V>(pitch, line0 + V::line(0), 0);
#pragma unroll
        for (int i = 0; i < E * T; i += 4)
            put(first + i * 4, acc[i / T][i % T], acc[(i + 1) / T][(i + 1) % T], acc[(i + 2) / T][(i + 2) % T],
                acc[(i + 3) / T][(i + 3) % T], is_first);
    } else if (V::LONG_IS_M && T == 4 && columns % 4 == 0) { /* 4 columns do */
#pragma unroll
        for (int e = 0; e < E; ++e)
            put(sum_at<V>(pitch, line0 + V::line(e), t0), acc[e][0], acc[e][1 % T], acc[e][2 % T], acc[e][3 % T],
                is_first);
    } else {
#pragma unroll
        for (int t = 0; t < T; ++t)
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (t0 + t < columns) put(sum_at<V>(pitch, line0 + V::line(e), t0 + t), acc[e][t], is_first);
    }
}

/* Adds up sums over the lanes of a warp, which exchange halves of them. x[0] of a lane is then the sum whose number is
 * returned, as it is in lanes whose number is the same modulo COUNT. */
template <int COUNT> static DEVICE u32 add_lanes(float (&x)[COUNT])
{
    static_assert(COUNT <= 32, "a lane would have several");
    u32 index = 0;
#pragma unroll
    for (int bit = 1; bit < 32; bit *= 2) {
        const int half = COUNT / bit / 2; /* of the sums that are left; 0: there is but one */
        const bool is_upper = thread_index() & bit;
        if (half == 0) x[0] += __uint_as_float(from_across(__float_as_uint(x[0]), bit));
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float own = is_upper ? x[i + half] : x[i], others = is_upper ? x[i] : x[i + half];
            x[i] = own + __uint_as_float(from_across(__float_as_uint(others), bit));
        }
        index += is_upper ? half : 0;
    }
    return index;
}

/* Multiplies T columns from t0 on by E lines of each thread, and leaves the sums in shared memory. Where columns are
 * few, a block may have several tiles, which it takes one by one. */
template <class V, int T, int E> static DEVICE void multiply(thin_block<V> at, int t0)
{
    constexpr bool ARE_SEVERAL = V::LONG > 8 && T <= HGEMM_FEW_COLUMNS;
    const int columns = at.columns;
    at.columns -= t0, at.x.base += t0 * (V::X_ALONG_K ? at.x.ld : HALF_BYTES);
    u32 line0 = 0;
#pragma unroll 1
    do {
        float acc[E][T] = {};
        if constexpr (E == 1) add_one_line(acc, at);
        else if constexpr (!V::W_ALONG_K)
            if (ARE_SEVERAL && at.k_end <= 2) add_along_lines<V, T, ARE_SEVERAL ? 2 : 4>(acc, at);
            else add_along_lines<V, T, T == 1 ? 8 : 4>(acc, at);
        else if (V::TK == 1 && at.k_end <= 4) add_along_k<V, T, 4>(acc, at);
        else add_along_k<V, T, 8>(acc, at);
        /* Columns: ptxas waits for many shuffles as if for one. */
        constexpr int AT_ONCE = V::LANES_K > 1 && T > 2 ? 2 : T;
#pragma unroll
        for (int c = 0; c < T; c += AT_ONCE) {
            float x[E * AT_ONCE];
#pragma unroll
            for (int i = 0; i < E * AT_ONCE; ++i) x[i] = acc[i / AT_ONCE][c + i % AT_ONCE];
            u32 index = 0;
            if constexpr (V::LANES_K > 1) index = add_lanes(x);
#pragma unroll 1
            for (u32 part = 0; part < V::PARTS; ++part) { /* in turn */
                if (part > 0) barrier();
                if (V::tk() / V::LANES_K != part) continue;
                const u32 column = t0 + c + index % AT_ONCE;
                if (V::LANES_K == 1) put_sums<V>(acc, columns, at.pitch, line0, t0, part == 0);
                else if (thread_index() % 32 < E * AT_ONCE && column < columns)
                    put(sum_at<V>(at.pitch, V::line(index / AT_ONCE), column), x[0], part == 0);
            }
        }
        if (ARE_SEVERAL)
            line0 += V::LONG, at.lines -= V::LONG, at.w.base += V::LONG * (V::W_ALONG_K ? at.w.ld : HALF_BYTES);
    } while (ARE_SEVERAL && at.lines > 0);
}

/* Multiplies all columns. */
template <class V, int E> static DEVICE void multiply_all(const thin_block<V> &at)
{
    if (at.columns == 1) multiply<V, 1, E>(at, 0);
    else if (at.columns == 2) multiply<V, 2, E>(at, 0);
    else
#pragma unroll 1
        for (int t0 = 0; t0 < at.columns; t0 += 4) multiply<V, 4, E>(at, t0);
}

/*
 * Multiplies a column by few lines and many k's, where memory runs along the lines. Rows of any alignment are loaded in
 * aligned chunks, once, and nothing is shifted: 16 threads take a chunk each of rows that are 8 apart, whose lines lie
 * alike in their chunks, and the sums of the 8 groups of threads are added up in shared memory, each where its lines
 * are.
 */
template <class V> static DEVICE void stream(const thin_block<V> &at)
{
    constexpr u32 LANES = 16, GROUPS = V::THREADS / LANES, TOGETHER = 8, LINES = HGEMM_STREAMED_LINES;
    static_assert(LANES * 8 == LINES + 8 && GROUPS == 8, "chunks do not cover the lines, or rows are not alike");
    const u32 lane = thread_index() % LANES, group = thread_index() / LANES;
    const u64 ld = in_place(at.w.ld);
    const auto shift = [&](u32 g) { return (u32)(u64)(at.w.base + g * ld) & 15; };
    const char *const chunk0 = at.w.base - shift(group) + lane * 16; /* of row 0, if that lay like the thread's rows */
    const bool is_inside = (int)(lane * 8) < at.lines + (int)shift(group) / HALF_BYTES;
    float acc[8] = {};
    const auto add = [&](const b128 &v, float x) {
#pragma unroll
        for (int e = 0; e < 8; ++e) acc[e] = __fmaf_rn(value(v, e), x, acc[e]);
    };
    /* All but the first and the last row, whose chunks may reach outside of the matrix. */
#pragma unroll 1
    for (u32 k = group ? group : GROUPS; k < at.k_end - 1; k += GROUPS * TOGETHER) {
        const int count = (int)((at.k_end - 1 - k + GROUPS - 1) / GROUPS);
        b128 v[TOGETHER] = {};
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) ld_global(v[i], chunk0 + (k + i * GROUPS) * ld, is_inside && i < count);
        const few_columns<V, TOGETHER, GROUPS, 1> x(at, k, count);
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) add(v[i], x.value(i, 0));
    }
#pragma unroll 1
    for (u32 k = 0; k < at.k_end; k += at.k_end - 1) {
        if (k % GROUPS != group || !is_inside) continue;
        chunks<1, true> w;
        w.load(at.w, chunk0 + k * ld, 0, 1, 8);
        add(w.get(0), few_columns<V, 1, 1, 1>(at, k, 1).value(0, 0));
    }
    const u32 page = shared_base() + group * (LANES * 32) + lane * 32;
    put(page, acc[0], acc[1], acc[2], acc[3], true);
    put(page + 16, acc[4], acc[5], acc[6], acc[7], true);
    barrier();
    const bool has_line = thread_index() < LINES;
    float sum = 0;
#pragma unroll
    for (u32 g = 0; g < GROUPS; ++g) {
        u32 x = 0;
        if (has_line) ld_shared_word(x, shared_base() + g * (LANES * 32) + thread_index() * 4 + shift(g) * 2);
        sum += __uint_as_float(x);
    }
    barrier();
    if (has_line) put(sum_at<V>(at.pitch, thread_index(), 0), sum, true);
}

/* Adds up what blocks have, if k is split: the last block to arrive does. Lanes of a warp that share a sum take parts
 * in turn. Returns whether this block stores the tile. */
template <class V> static DEVICE bool add_blocks(const arguments &args, const thin_block<V> &at)
{
    constexpr int TOGETHER = V::LONG == 8 ? 16 : 8; /* loads in flight */
    constexpr u32 SUMS_BYTES = V::LONG * 8 * 4;     /* of a part */
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
template <class V> static DEVICE void store_plain(const arguments &args, const thin_block<V> &at)
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
template <class V> static DEVICE void store_fused(const arguments &args, const thin_block<V> &at)
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

template <class V> static DEVICE void thin(const arguments &args)
{
    const thin_block<V> at(args);
    constexpr bool CAN_BE_ONE = V::LONG == 8 && V::W_ALONG_K && V::X_ALONG_K;
    if (V::CAN_STREAM && at.is_streamed) stream(at);
    else if (CAN_BE_ONE && at.lines == 1) multiply_all<V, CAN_BE_ONE ? 1 : V::LINES>(at);
    else multiply_all<V, V::LINES>(at);
    barrier();
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
