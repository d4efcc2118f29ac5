/* SPDX-License-Identifier: MIT */
/*
 * bfloat16 on tensor cores that have none: elements of A and B become halves on their way to shared memory.
 *
 * A bfloat16 has 8 significant bits and a half 11, so all that a half lacks is range. A power of two for each operand
 * supplies it: an element x becomes the half next to x * scale, and the sums are divided by both scales at the end.
 * Where the largest finite element lies in [2^15, 2^16) after scaling, which all bfloat16 below 2^16 are halves in:
 *   - elements of at least 2^-32 of 2^15, and so of 2^-32 of the largest one, are multiples of 2^-24 and thus exact;
 *   - others are rounded to such a multiple: by 2^-25 at most, or 2^-40 of the largest element;
 *   - infinities and NaN stay what they are.
 * A scale that is found in a sample (scale.cu) brings that of the sample to [2^12, 2^13). The largest of all then lies in
 * [2^12, 2^16), for which these bounds are 2^-29 and 2^-37; or an element becomes an infinity. Such a one makes its row,
 * or column, of sums infinite or NaN: then two more launches find the scale of all elements, and multiply again.
 */
#pragma once
#include "insn.cuh"
#include "../src/table/args.h"

/* 2^log, for -126 <= log <= 127, and back. */
static DEVICE float power_of_two(int log) { return __uint_as_float((u32)(log + 127) << 23); }
static DEVICE int log2_of(float power) { return (int)(__float_as_uint(power) >> 23) - 127; }

/* The scale of an operand, if in device memory: made a power of two that can be undone, whatever lies there. */
static DEVICE float power_of_two(float value, const float *pointer)
{
    u32 bits = __float_as_uint(value);
    ld_global_word(bits, (const char *)pointer, pointer != nullptr);
    const int log = (int)(bits >> 23 & 0xff) - 127;
    return power_of_two(min(max(log, HGEMM_LEAST_SCALE_LOG), HGEMM_MOST_SCALE_LOG));
}

/* Whether a launch has nothing to do: one that is for an overflow alone, of which there was none. */
static DEVICE bool is_unneeded(const unsigned *only_after)
{
    u32 overflow = 1;
    ld_global_word(overflow, (const char *)only_after, only_after != nullptr);
    return overflow == 0;
}

/* Two bfloat16, multiplied by a power of two, as halves. */
static DEVICE u32 halves_of(u32 pair, float scale)
{
    return pack_halves(__fmul_rn(__uint_as_float(pair << 16), scale), __fmul_rn(__uint_as_float(pair & 0xffff0000), scale));
}

/* Eight of them. */
static DEVICE b128 halves_of(const b128 &v, float scale)
{
    return b128{halves_of(v.x, scale), halves_of(v.y, scale), halves_of(v.z, scale), halves_of(v.w, scale)};
}
