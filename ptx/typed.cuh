/* SPDX-License-Identifier: MIT */
/* Eight neighbours in a row of C, D, bias or gate, whatever their type is: that is known when the kernel runs. */
#pragma once
#include "insn.cuh"

enum type { F16, F32, BF16 }; /* as hgemm_type_t */
static DEVICE u32 bytes_of(u32 type) { return type == F32 ? 4 : 2; }

/* As they are in memory: eight words, or four with two elements each. */
struct eight_elements { u32 v[8]; };

/* Reads the first `count` at p; the others are zero. `whole`: p is a multiple of 16 bytes, and count 0 or 8. */
static DEVICE eight_elements load_elements(const char *p, u32 type, bool whole, int count)
{
    eight_elements x = {};
    if (whole) {
        b128 low = {}, high = {};
        ld_global(low, p, count > 0);
        ld_global(high, p + 16, count > 0 && type == F32);
        x = eight_elements{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    } else if (type == F32) {
#pragma unroll
        for (int e = 0; e < 8; ++e) ld_global_word(x.v[e], p + e * 4, e < count);
    } else {
        u32 h[8] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e) ld_global_half(h[e], p + e * 2, e < count);
#pragma unroll
        for (int e = 0; e < 4; ++e) x.v[e] = permute(h[2 * e], h[2 * e + 1], 0x5410);
    }
    return x;
}

/* A float rounded to nearest even: its upper half is a bfloat16. It comes from arithmetic, whose only NaN is 0x7fffffff
 * (PTX ISA 9.7.3, add and others): one that stays NaN without the carry, which would make it -0. */
static DEVICE u32 bfloat16_above(float f)
{
    const int x = min(__float_as_int(f), 0x7fff0000);
    return (u32)x + 0x7fff + ((u32)x >> 16 & 1);
}

/* The values of two neighbours of two bytes each in a word, and two rounded values as such. */
template <type T> static DEVICE float value_in_pair(u32 pair, int e)
{
    return T == BF16 ? __uint_as_float(e ? pair & 0xffff0000 : pair << 16) : half_to_float(pair >> e * 16);
}
template <type T> static DEVICE u32 pair_of(float low, float high)
{
    return T == BF16 ? permute(bfloat16_above(low), bfloat16_above(high), 0x7632) : pack_halves(low, high);
}

/* Their values. */
static DEVICE void values_of(float (&f)[8], const eight_elements &x, u32 type)
{
    if (type == F32) {
#pragma unroll
        for (int e = 0; e < 8; ++e) f[e] = __uint_as_float(x.v[e]);
    } else if (type == F16) {
#pragma unroll
        for (int e = 0; e < 8; ++e) f[e] = value_in_pair<F16>(x.v[e / 2], e % 2);
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) f[e] = value_in_pair<BF16>(x.v[e / 2], e % 2);
    }
}

/* Writes the first `count`, rounded to their type. `whole` as above. */
static DEVICE void store_elements(char *p, u32 type, bool whole, int count, const float (&f)[8])
{
    if (type == F32) {
        if (whole) {
            st_global(p, b128{__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3])},
                      count > 0);
            st_global(p + 16,
                      b128{__float_as_uint(f[4]), __float_as_uint(f[5]), __float_as_uint(f[6]), __float_as_uint(f[7])},
                      count > 0);
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e)
                if (e < count) st_global_word(p + e * 4, __float_as_uint(f[e]));
        }
        return;
    }
    u32 h[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        h[e] = type == F16 ? pair_of<F16>(f[2 * e], f[2 * e + 1]) : pair_of<BF16>(f[2 * e], f[2 * e + 1]);
    if (whole) {
        st_global(p, b128{h[0], h[1], h[2], h[3]}, count > 0);
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (e < count) st_global_half(p + e * 2, h[e / 2] >> e % 2 * 16);
    }
}
