/* SPDX-License-Identifier: MIT */
/* Numbers of the types that kernels take, as text and as bytes. */
#include "turing_values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    char kind; /* unsigned, signed, float */
} types[] = {{"u8", 1, 'u'},  {"i8", 1, 'i'},  {"u16", 2, 'u'}, {"i16", 2, 'i'}, {"f16", 2, 'f'}, {"u32", 4, 'u'},
             {"i32", 4, 'i'}, {"f32", 4, 'f'}, {"u64", 8, 'u'}, {"i64", 8, 'i'}, {"f64", 8, 'f'}};

static int find(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].name))
            return (int)i;
    return -1;
}

size_t value_size(const char *type)
{
    const int i = find(type);
    return i < 0 ? 0 : types[i].size;
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31;
    double m = h & 1023, v = e == 31 ? (m != 0 ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static uint16_t half_bits(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    v = fabs(v);
    if (isnan(v))
        return 0x7fff;
    if (v >= 65520)
        return sign | 0x7c00;
    int e;
    frexp(v, &e);
    if (e < -13)
        e = -13;
    long m = lrint(ldexp(v, 11 - e)); /* with the hidden bit, which lifts the exponent by one */
    return sign | (uint16_t)(((e + 13) << 10) + m);
}

void value_encode(const char *type, double v, void *out)
{
    const float f = (float)v;
    const uint16_t h = half_bits(v);
    const uint64_t u = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
    if (!strcmp(type, "f64"))
        memcpy(out, &v, 8);
    else if (!strcmp(type, "f32"))
        memcpy(out, &f, 4);
    else if (!strcmp(type, "f16"))
        memcpy(out, &h, 2);
    else
        memcpy(out, &u, value_size(type));
}

bool count_parse(const char *text, uint64_t most, uint64_t *count)
{
    char *end;
    errno = 0;
    *count = strtoull(text, &end, 0);
    return isdigit((unsigned char)*text) && !*end && !errno && *count <= most;
}

bool real_parse(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return *text && !*end;
}

bool value_parse(const char *type, const char *text, void *out)
{
    const int i = find(type);
    const bool is_negative = text[0] == '-';
    double real;
    uint64_t u;
    if (i < 0)
        return false;
    if (types[i].kind == 'f') {
        if (!real_parse(text, &real))
            return false;
        value_encode(type, real, out);
        return true;
    }
    /* Negative ones of an unsigned type are their bits. */
    const unsigned bits = 8 * (unsigned)types[i].size - (is_negative || types[i].kind == 'i');
    if (!count_parse(text + is_negative, (UINT64_MAX >> (64 - bits)) + is_negative, &u))
        return false;
    u = is_negative ? 0 - u : u;
    memcpy(out, &u, types[i].size);
    return true;
}

double value_decode(const char *type, const void *p)
{
    const int i = find(type);
    uint64_t u = 0;
    double d;
    float f;
    memcpy(&u, p, types[i].size);
    memcpy(&d, &u, 8);
    memcpy(&f, &u, 4);
    if (types[i].kind == 'u')
        return (double)u;
    if (types[i].kind == 'i') {
        const unsigned unused = 64 - 8 * (unsigned)types[i].size;
        return (double)((int64_t)(u << unused) >> unused);
    }
    return types[i].size == 8 ? d : types[i].size == 4 ? (double)f : half_value((uint16_t)u);
}

void value_print(const char *type, const void *p)
{
    const int i = find(type);
    uint64_t u = 0;
    memcpy(&u, p, types[i].size);
    if (types[i].kind == 'u')
        printf(" %" PRIu64, u);
    else if (!strcmp(type, "i64"))
        printf(" %" PRId64, (int64_t)u);
    else if (types[i].kind == 'i')
        printf(" %.0f", value_decode(type, p));
    else
        printf(types[i].size == 8 ? " %.17g" : types[i].size == 4 ? " %.9g" : " %.6g", value_decode(type, p));
}
