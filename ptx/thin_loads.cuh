/* SPDX-License-Identifier: MIT */
/* Of a thin kernel (thin.cu): chunks of the long operand, and a few columns of the other one, from global memory. */
#pragma once
#include "thin_block.cuh"

/* Loads the aligned 16 bytes around p, of which the matrix may not have all. */
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
