/* SPDX-License-Identifier: MIT */
/*
 * Conversion between float and the bits of a half, in integers only, so that the result depends
 * neither on the compiler nor on the rounding mode. A half is sign 1, exponent 5 (bias 15),
 * fraction 10; a float is sign 1, exponent 8 (bias 127), fraction 23.
 */
#include "hgemm.h"

#include <string.h>

uint16_t hgemm_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u) /* NaN: made quiet, the upper payload kept */
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520, half-way past the largest half, and above: infinity */
        return (uint16_t)(sign | 0x7c00u);

    /* Drop `shift` bits of the significand, which then counts units of the half's last place. */
    uint32_t exponent = magnitude >> 23;
    uint32_t result, dropped, shift;
    if (exponent >= 113) { /* 2^-14 and above: normal */
        shift = 13;
        result = (magnitude >> shift) - (112u << 10);
        dropped = magnitude & ((1u << shift) - 1);
    } else if (exponent >= 102) { /* 2^-25 and above: subnormal, or rounded up to one */
        shift = 126 - exponent;
        uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
        result = significand >> shift;
        dropped = significand & ((1u << shift) - 1);
    } else {
        return (uint16_t)sign;
    }
    uint32_t half_way = 1u << (shift - 1);
    if (dropped > half_way || (dropped == half_way && (result & 1)))
        result++; /* a carry into the exponent is right */
    return (uint16_t)(sign | result);
}

float hgemm_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 31) { /* infinity, NaN */
        bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else { /* zero, subnormal: fraction * 2^-24 is exact */
        float magnitude = (float)fraction * 0x1p-24f;
        memcpy(&bits, &magnitude, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
