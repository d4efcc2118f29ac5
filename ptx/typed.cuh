/* SPDX-License-Identifier: MIT */
/* Eight neighbours in a row of C, D, bias or gate, whatever their type is: that is known when the kernel runs. */
#pragma once
#include "insn.cuh"

enum type { F16, F32, BF16 }; /* as hgemm_type_t */
static DEVICE u32 bytes_of(u32 type) { return type == F32 ? 4 : 2; }

/* As they are in memory: eight words, or four with two elements each. */
struct eight_elements { u32 v[8]; };

/* Bytes from the first of the eight to number e: they are contiguous, or, if they may be APART, `step` bytes each. */
template <bool APART> static DEVICE u64 bytes_to(int e, u64 size, u64 step) { return e * (APART ? step : size); }

/* Reads the first `count` at p; the others are zero. `whole`: p is a multiple of 16 bytes, and count 0 or 8. */
template <bool APART = false>
static DEVICE eight_elements load_elements(const char *p, u32 type, bool whole, int count, u64 step = 0)
{
    eight_elements x = {};
    if (whole) {
        b128 low = {}, high = {};
        ld_global(low, p, count > 0);
        ld_global(high, p + 16, count > 0 && type == F32);
        x = eight_elements{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    } else if (type == F32) {
#pragma unroll
        for (int e = 0; e < 8; ++e) ld_global_word(x.v[e], p + bytes_to<APART>(e, 4, step), e < count);
    } else {
        u32 h[8] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e) ld_global_half(h[e], p + bytes_to<APART>(e, 2, step), e < count);
#pragma unroll
        for (int e = 0; e < 4; ++e) x.v[e] = permute(h[2 * e], h[2 * e + 1], 0x5410);
    }
    return x;
}

/* Reads two neighbours of a type, `live` or zeros: into a word, or two of floats. */
static DEVICE void load_pair(u32 (&v)[2], const char *p, u32 type, bool live)
{
    const bool is_float = type == F32, is_word = is_float || ((u64)p & 2) == 0;
    v[0] = v[1] = 0;
    ld_global_word(v[0], p, live && is_word);
    ld_global_word(v[1], p + 4, live && is_float);
    if (!is_word) {
        u32 low = 0, high = 0;
        ld_global_half(low, p, live);
        ld_global_half(high, p + 2, live);
        v[0] = permute(low, high, 0x5410);
    }
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
template <bool APART = false>
static DEVICE void store_elements(char *p, u32 type, bool whole, int count, const float (&f)[8], u64 step = 0)
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
                if (e < count) st_global_word(p + bytes_to<APART>(e, 4, step), __float_as_uint(f[e]));
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
            if (e < count) st_global_half(p + bytes_to<APART>(e, 2, step), h[e / 2] >> e % 2 * 16);
    }
}
