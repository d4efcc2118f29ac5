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
 *           way, and lines of aligned chunks are swept for up to 4 columns.
 * Sums      TK threads add up by shuffles, then through shared memory; blocks that share k (split-K) through the
 *           workspace: the last one to arrive adds all parts. The order is fixed, and so are the bits.
 * D         Sums lie in shared memory as D does in global memory, and are stored in aligned chunks. If rows of D are
 *           short and follow each other without a gap, they are stored as one row.
 * Limits    Operands of any alignment; a row that is not aligned is loaded in overlapping chunks. It is multiplied
 *           in passes of up to 4 columns. Not for operands by pointers or indices.
 */
#include "thin_loads.cuh"
#include "thin_output.cuh"
#include "thin_sweep.cuh"

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

/* What is swept, and, unless it is fused, stored. */
template <class V> static DEVICE void sweep_all(const arguments &args)
{
    const int columns = V::LONG_IS_M ? args.n : args.m;
    if (columns > 2) sweep<V, 4>(args); /* in this order ptxas makes no table of jumps */
    else if (columns > 1) sweep<V, 2>(args);
    else sweep<V, 1>(args);
}

template <class V> static DEVICE void thin(const arguments &args)
{
    const bool is_swept = V::CAN_SWEEP && args.indirect & HGEMM_SWEPT;
    if constexpr (V::CAN_SWEEP)
        if (is_swept) sweep_all<V>(args);
    const thin_block<V> at(args);
    constexpr bool CAN_BE_ONE = V::LONG == 8 && V::W_ALONG_K && V::X_ALONG_K;
    if (is_swept) ; /* sums are there */
    else if (V::CAN_STREAM && at.is_streamed) stream(at);
    else if (CAN_BE_ONE && at.lines == 1) multiply_all<V, CAN_BE_ONE ? 1 : V::LINES>(at);
    else multiply_all<V, V::LINES>(at);
    finish(args, at);
}

#define HGEMM_ROW_TYPE(name) row_##name
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
using built = thin_variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B>;
extern "C" __global__ void __launch_bounds__(built::THREADS, HGEMM_ROW_TYPE_OF(HGEMM_ROW)::NEWER_BLOCKS)
    HGEMM_VARIANT(const arguments args)
{
    thin<built>(args);
}
