/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weights_given.h"

#include <math.h>
#include <string.h>

#include "problem/types.h"

static const uint16_t normal_floats[16] = {0xbc00, 0xb992, 0xb833, 0xb652, 0xb48d, 0xb1ea, 0xadd5, 0x0000,
                                           0x2d18, 0x3126, 0x33e1, 0x3568, 0x370c, 0x3881, 0x39c9, 0x3c00};

double number_of(hgemm_type_t type, const void *from, int64_t i)
{
    if (type == HGEMM_TYPE_F32)
        return (double)((const float *)from)[i];
    const uint16_t bits = ((const uint16_t *)from)[i];
    if (type == HGEMM_TYPE_F16)
        return (double)hgemm_half_to_float(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return (double)x;
}

void put_number(hgemm_type_t type, void *to, int64_t i, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == HGEMM_TYPE_F32)
        ((float *)to)[i] = x;
    else
        ((uint16_t *)to)[i] = type == HGEMM_TYPE_F16 ? hgemm_half_from_float(x) : (uint16_t)(bits >> 16);
}

static int bits_of(hgemm_code_t code)
{
    return code_table[code].bits;
}

static double e4m3(int code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7, sign = code & 0x80 ? -1 : 1;
    if ((code & 0x7f) == 0x7f)
        return NAN;
    return sign * (exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9));
}

static double value_of_code(const hgemm_weights_t *of, int code)
{
    const code_info_t *info = &code_table[of->code];
    switch (info->kind) {
    case CODES_TABLE: return (double)hgemm_half_to_float(of->table[code]);
    case CODES_FLOAT: return e4m3(code);
    default: return code <= info->highest ? code : code - (1 << info->bits);
    }
}

static int code_at(const given_t *w, int64_t row, int64_t k)
{
    if (bits_of(w->of.code) == 8)
        return w->codes[row * w->of.k + k];
    const int byte = w->codes[row * (w->of.k / 2) + k / 2];
    return k % 2 ? byte >> 4 : byte & 15;
}

given_t weights_give(rng_t *rng, hgemm_code_t code, hgemm_zero_t zero, hgemm_type_t type_scale, int group, int64_t n,
                     int64_t k, int is_exact)
{
    given_t w = {0};
    hgemm_weights_init(&w.of);
    w.of.n = n, w.of.k = k;
    w.of.code = code, w.of.zero = zero, w.of.type_scale = type_scale, w.of.group = group;
    memcpy(w.of.table, normal_floats, sizeof normal_floats);
    w.groups = group ? (k + group - 1) / group : 1;
    w.code_bytes = n * k * bits_of(code) / 8, w.scale_count = n * w.groups;
    const int64_t scale_bytes = type_scale == HGEMM_TYPE_F32 ? 4 : 2;
    w.zero_bytes = zero == HGEMM_ZERO_OFFSET ? w.scale_count * scale_bytes : w.scale_count;
    w.codes = test_calloc((size_t)w.code_bytes, 1);
    w.scales = test_calloc((size_t)w.scale_count, (size_t)scale_bytes);
    w.zeros = test_calloc((size_t)w.zero_bytes, 1);
    w.element = test_calloc((size_t)(n * k), sizeof(double)), w.exact = test_calloc((size_t)(n * k), sizeof(double));
    w.scale = test_calloc((size_t)w.scale_count, sizeof(double));
    w.offset = test_calloc((size_t)w.scale_count, sizeof(double));
    for (int64_t i = 0; i < w.code_bytes; i++) {
        w.codes[i] = (uint8_t)rng_between(rng, 0, 255);
        if (code_table[code].kind == CODES_FLOAT)
            while ((w.codes[i] & 0x7f) == 0x7f)
                w.codes[i] = (uint8_t)rng_between(rng, 0, 255);
    }
    for (int64_t i = 0; i < w.scale_count; i++) {
        const float scale = is_exact ? ldexpf(1, (int)rng_between(rng, -2, 2))
                                     : ldexpf((float)rng_between(rng, 129, 255), (int)rng_between(rng, -8, -5));
        put_number(type_scale, w.scales, i, scale);
        w.scale[i] = number_of(type_scale, w.scales, i);
        if (zero == HGEMM_ZERO_OFFSET) {
            put_number(type_scale, w.zeros, i, (float)rng_between(rng, -8, 8) * (is_exact ? 1 : 0.375f));
            w.offset[i] = number_of(type_scale, w.zeros, i);
        } else if (zero == HGEMM_ZERO_CODE) {
            const int lowest = code_table[code].lowest, highest = code_table[code].highest + (bits_of(code) == 4);
            ((uint8_t *)w.zeros)[i] = (uint8_t)rng_between(rng, lowest, highest);
        }
    }
    for (int64_t row = 0; row < n; row++)
        for (int64_t l = 0; l < k; l++) {
            const int64_t at = row * w.groups + (group ? l / group : 0);
            double x = value_of_code(&w.of, code_at(&w, row, l));
            if (zero == HGEMM_ZERO_CODE)
                x -= code_table[code].lowest < 0 ? ((int8_t *)w.zeros)[at] : ((uint8_t *)w.zeros)[at];
            w.exact[row * k + l] = x;
            w.element[row * k + l] = w.scale[at] * x + w.offset[at];
        }
    return w;
}

void weights_forget(given_t *w)
{
    test_free(w->codes), test_free(w->scales), test_free(w->zeros);
    test_free(w->element), test_free(w->exact), test_free(w->scale), test_free(w->offset);
}
