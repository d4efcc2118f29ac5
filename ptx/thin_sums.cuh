/* SPDX-License-Identifier: MIT */
/* Of thin.cu and few.cu: their threads add up by shuffles, and in shared memory. */
#pragma once
#include "thin_block.cuh"

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

/* Adds up sums over LANES lanes of a warp, which are APART and exchange halves of them. A lane then has the sums from the one on whose
 * number is returned, COUNT / LANES of them; where that is less than 1, x[0], as lanes have it whose number is the same
 * modulo COUNT. */
template <int COUNT, int LANES = 32, int APART = 1> static DEVICE u32 add_lanes(float (&x)[COUNT])
{
    u32 index = 0;
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) {
        const int half = COUNT / by / 2; /* of the sums that are left; 0: there is but one */
        const bool is_upper = thread_index() & (by * APART);
        if (half == 0) x[0] += __uint_as_float(from_across(__float_as_uint(x[0]), by * APART));
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float own = is_upper ? x[i + half] : x[i], others = is_upper ? x[i] : x[i + half];
            x[i] = own + __uint_as_float(from_across(__float_as_uint(others), by * APART));
        }
        index += is_upper ? half : 0;
    }
    return index;
}
