/* SPDX-License-Identifier: MIT */
/*
 * turing_kernels.h - functions that the emulator's tests run twice: compiled by
 * nvcc to sm_75 and executed on the emulator, and compiled for the host as the
 * reference.  Plain C, no contraction, so that both sides must give the same bits.
 */
#ifndef TURING_KERNELS_H
#define TURING_KERNELS_H

#ifdef __CUDACC__
#define FN static __device__ __forceinline__
#else
#include <math.h>
#define FN static inline
#endif
#include <stdint.h>
#include <string.h>

FN float to_float(uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return f;
}

FN uint32_t from_float(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}

FN uint32_t fold(uint64_t x)
{
    return (uint32_t)(x ^ x >> 32);
}

/* 32- and 64-bit arithmetic, every shift and comparison. */
FN uint32_t integers(uint32_t a, uint32_t b)
{
    const int32_t sa = (int32_t)a, sb = (int32_t)b;
    const uint64_t wa = (uint64_t)a << 32 | b, wb = (uint64_t)b * 0x9e3779b97f4a7c15u + a;
    const int64_t ta = (int64_t)wa, tb = (int64_t)wb;
    uint32_t r = a + b * 3 - (a ^ b) + (a & ~b) - (a | b);
    r = r * 31 + a / (b | 1) + a % (b | 1);
    r = r * 31 + (uint32_t)((sa >> 3) / ((sb >> 5) | 1)) + (uint32_t)((sa >> 1) % ((sb >> 2) | 1));
    r = r * 31 + (a << (b & 31)) + (a >> (b & 31)) + (uint32_t)(sa >> (b & 31));
    r = r * 31 + (a << (b & 31) | a >> (-b & 31));
    r = r * 31 + (sa < sb) + 2 * (sa <= sb) + 4 * (a > b) + 8 * (a >= b) + 16 * (sa == sb) + 32 * (a != b);
    r = r * 31 + (uint32_t)(sa < sb ? sa : sb) + (a > b ? a : b) + (sa < 0 ? 0 - a : a);
    r = r * 31 + fold((uint64_t)a * b) + fold((uint64_t)((int64_t)sa * sb)) + fold((uint64_t)a * b + wb);
    r = r * 31 + fold(wa + wb) + fold(wa - wb) + fold(wa * wb);
    r = r * 31 + fold(wa / (wb >> 20 | 1)) + fold(wa % (wb >> 33 | 1)) + fold((uint64_t)(ta / ((tb >> 25) | 1)));
    r = r * 31 + fold(wa << (b & 63)) + fold(wa >> (a & 63)) + fold((uint64_t)(ta >> (b & 63)));
    r = r * 31 + (wa < wb) + 2 * (ta < tb) + 4 * (ta >= tb) + 8 * (wa == (wb & wa)) + 16 * (wa <= wb);
    r = r * 31 + (uint8_t)a * (int8_t)b + (uint16_t)(a >> 7) * (int16_t)b;
    r = r * 31 + ((a & 0xff00ff) | (b & 0xff00ff00)) + ((a & b) | (a & ~r) | (b & r));
    return r;
}

/* Arithmetic, rounding and conversions of floats; NaNs are folded together. */
FN uint32_t float_result(float f)
{
    return f != f ? 0x7fc00000u : from_float(f);
}

FN uint32_t floats(uint32_t a, uint32_t b)
{
    const float x = to_float(a), y = to_float(b);
    const float small = (float)(int32_t)(a >> 9) * (1.0f / 4096), other = (float)(b & 0xffff) + 0.5f;
    uint32_t r = float_result(x + y);
    r = r * 31 + float_result(x * y);
    r = r * 31 + float_result(x - y * 2);
    r = r * 31 + float_result(fmaf(x, y, small));
    r = r * 31 + float_result(small / other);
    r = r * 31 + float_result(x / y);
    r = r * 31 + float_result(sqrtf(small));
    r = r * 31 + (x < y) + 2 * (x <= y) + 4 * (x > y) + 8 * (x >= y) + 16 * (x == y) + 32 * (x != y) + 64 * !(x < y);
    r = r * 31 + float_result(x < y ? x : y) + float_result(fabsf(x)) + float_result(-y);
    r = r * 31 + float_result(floorf(small)) + float_result(ceilf(small)) + float_result(truncf(small)) +
        float_result(rintf(small));
    r = r * 31 + (uint32_t)(int32_t)small + (uint32_t)other + float_result((float)a) + float_result((float)(int32_t)b);
    r = r * 31 + float_result((float)(int8_t)a) + float_result((float)(uint16_t)b);
    r = r * 31 + float_result((float)((uint64_t)a << 32 | b)) + float_result((float)(int64_t)((uint64_t)b << 32 | a));
    const double d = (double)small * other + 1.0 / 3;
    uint64_t bits;
    memcpy(&bits, &d, 8);
    r = r * 31 + fold(bits) + (uint32_t)(d > 1000) + float_result((float)d) + (uint32_t)(int32_t)d;
    return r;
}

/* Nested loops and branches whose every lane goes its own way. */
FN uint32_t branches(uint32_t a, uint32_t b)
{
    uint32_t r = a;
    for (uint32_t i = 0; i < (a & 15) + 1; i++) {
        if ((r ^ b) & 1) {
            for (uint32_t j = i; j < 20; j++) {
                r = r * 1664525 + 1013904223;
                if ((r >> 16 & 7) == 0)
                    break;
                if (r & 0x100)
                    continue;
                r ^= b >> (j & 15);
            }
        } else if (r & 2)
            r += integers(r, b | 1);
        else {
            switch (r >> 4 & 7) {
            case 0: r += 17; break;
            case 1: r ^= r << 3; break;
            case 2: r = ~r; break;
            case 3: r *= 5; break;
            case 4: r -= b; break;
            case 5: r = r >> 5 | r << 27; break;
            case 6:
                if (r & 0x40000)
                    return r * 3;
                break;
            default: r += 1;
            }
        }
        while (r & 0x80000000)
            r = (r << 1) + 1 - (r >> 30 & 1) * 7;
    }
    return r;
}

/* An array that is indexed at run time: local memory on the device. */
FN uint32_t arrays(uint32_t a, uint32_t b)
{
    uint32_t t[24];
    for (uint32_t i = 0; i < 24; i++)
        t[i] = a * i + b;
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t from = (t[i % 24] >> 3) % 24, to = (t[(i * 7) % 24] >> 5) % 24;
        t[to] += t[from] ^ i;
    }
    uint8_t bytes[16];
    for (uint32_t i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(t[i] >> (i & 7));
    uint32_t r = 0;
    for (uint32_t i = 0; i < 16; i++)
        r = r * 31 + bytes[(b + i) & 15] + t[(a + i) % 24];
    return r;
}

#endif
