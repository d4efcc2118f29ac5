/* SPDX-License-Identifier: MIT */
#include "fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/types.h"

size_t fill_element_bytes(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

uint64_t fill_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* In [0, 1). */
static float uniform(uint64_t *state)
{
    return (float)(fill_random(state) >> 40) * 0x1p-24F;
}

/* ---- types ------------------------------------------------------------------------------- */

static uint16_t bfloat_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float bfloat_to_float(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float rounded(float x, hgemm_type_t type)
{
    return type == HGEMM_TYPE_F32    ? x
           : type == HGEMM_TYPE_BF16 ? bfloat_to_float(bfloat_from_float(x))
                                     : hgemm_half_to_float(hgemm_half_from_float(x));
}

void *fill_elements(const float *values, int64_t count, hgemm_type_t type)
{
    void *elements = malloc((size_t)count * fill_element_bytes(type) + 1);
    uint16_t *x = elements;
    if (elements && type == HGEMM_TYPE_F32)
        memcpy(elements, values, (size_t)count * sizeof *values);
    for (int64_t i = 0; elements && type != HGEMM_TYPE_F32 && i < count; i++)
        x[i] = type == HGEMM_TYPE_BF16 ? bfloat_from_float(values[i]) : hgemm_half_from_float(values[i]);
    return elements;
}

float *fill_values(const void *elements, int64_t count, hgemm_type_t type)
{
    float *values = malloc((size_t)count * sizeof *values + 1);
    const uint16_t *x = elements;
    if (values && type == HGEMM_TYPE_F32)
        memcpy(values, elements, (size_t)count * sizeof *values);
    for (int64_t i = 0; values && type != HGEMM_TYPE_F32 && i < count; i++)
        values[i] = type == HGEMM_TYPE_BF16 ? bfloat_to_float(x[i]) : hgemm_half_to_float(x[i]);
    return values;
}

/* ---- matrices ---------------------------------------------------------------------------- */

/* A product of two such elements has variance density^2: a sum of k stays below 2048 by 30 deviations. */
static float density_of(int64_t k)
{
    return fminf(2.0F / 3, 64 / sqrtf((float)(k > 0 ? k : 1)));
}

/* By 16 random bits each through a table, but for floats. */
float *fill_matrix(int64_t count, hgemm_type_t type, int64_t k, int exact, uint64_t seed)
{
    float *x = malloc((size_t)(count + 3) * sizeof *x), *table = malloc(65536 * sizeof *table);
    const float density = density_of(k);
    for (int i = 0; table && i < 65536; i++) {
        const float value = (float)(i - 32768) / 32768;
        table[i] = !exact ? rounded(value, type) : fabsf(value) >= density ? 0 : value < 0 ? -1.0F : 1.0F;
    }
    for (int64_t i = 0; x && table && i < count; i += 4) {
        const uint64_t bits = fill_random(&seed);
        for (int j = 0; j < 4; j++)
            x[i + j] = table[bits >> 16 * j & 0xffff];
    }
    for (int64_t i = 0; x && type == HGEMM_TYPE_F32 && !exact && i < count; i++) /* all bits of a float's fraction */
        x[i] = 2 * uniform(&seed) - 1;
    if (!table)
        free(x), x = NULL;
    free(table);
    return x;
}

/* ---- weights ----------------------------------------------------------------------------- */

enum { ONE_E4M3 = 0x38, SIGN_E4M3 = 0x80 };
enum { MINUS, NOTHING, PLUS }; /* of a table of integers */

hgemm_weights_t fill_described(const fill_t *fill, int64_t n, int64_t k, int exact)
{
    hgemm_weights_t w = fill->weights;
    w.n = n, w.k = k;
    for (int i = 0; exact && code_table[w.code].kind == CODES_TABLE && i < 16; i++)
        w.table[i] = hgemm_half_from_float(i == MINUS ? -1 : i == PLUS ? 1 : 0);
    return w;
}

/* A random code of the integer `value`, which is -1, 0 or 1, for a scale of 1 and that zero. */
static int code_of_integer(const hgemm_weights_t *w, int value, int zero)
{
    const code_info_t *code = &code_table[w->code];
    if (code->kind == CODES_TABLE)
        return value < 0 ? MINUS : value > 0 ? PLUS : NOTHING;
    if (code->kind == CODES_FLOAT)
        return value < 0 ? ONE_E4M3 | SIGN_E4M3 : value > 0 ? ONE_E4M3 : 0;
    return code->lowest == 0 && w->zero == HGEMM_ZERO_NONE ? abs(value) : value + zero;
}

/* The zero of all groups: a code in the middle, or the offset that takes it to 0 where a code is worth `scale`. */
static int middle(const hgemm_weights_t *w)
{
    const code_info_t *code = &code_table[w->code];
    return w->zero == HGEMM_ZERO_NONE ? 0 : code->lowest < 0 ? 1 : (code->highest + 1) / 2;
}

/* What a code is worth where W's elements are to be as large as others in [-1, 1). */
static float usual_scale(const hgemm_weights_t *w)
{
    const code_info_t *code = &code_table[w->code];
    float squares = 0;
    if (code->kind == CODES_FLOAT)
        return 1;
    if (code->kind == CODES_INTEGER)
        return (code->lowest < 0 || w->zero == HGEMM_ZERO_NONE ? 1.0F : 2.0F) /
               (float)(code->lowest < 0 ? -code->lowest : code->highest + 1);
    for (int i = 0; i < 16; i++)
        squares += hgemm_half_to_float(w->table[i]) * hgemm_half_to_float(w->table[i]);
    return sqrtf(16 / (3 * squares));
}

/* Codes, scales and zeros of a matrix, as hgemm_pack_weights takes them. */
typedef struct codes_t {
    uint8_t *codes;
    float *scales, *zeros;
} codes_t;

static void draw(const hgemm_weights_t *w, int exact, uint64_t *seed, int64_t groups, const codes_t *to)
{
    const int is_nibble = code_table[w->code].bits == 4;
    const int zero = middle(w);
    const float density = density_of(w->k);
    for (int64_t i = 0; i < groups; i++) { /* thirds and fifths are no halves */
        to->scales[i] = exact ? 1 : usual_scale(w) * (0.75F + 0.5F * uniform(seed));
        to->zeros[i] = w->zero == HGEMM_ZERO_OFFSET ? -to->scales[i] * (float)zero : (float)zero;
    }
    for (int64_t i = 0; i < w->n * w->k; i++) {
        const uint64_t bits = fill_random(seed);
        const float share = (float)(bits >> 40) * 0x1p-24F;
        const int integer = share >= density ? 0 : bits & 1 ? 1 : -1;
        int code = (int)(bits >> 8 & 0xff);
        if (exact)
            code = code_of_integer(w, integer, zero);
        else if (code_table[w->code].kind == CODES_FLOAT)
            code = (code & SIGN_E4M3) | (code & 0x7f) % (ONE_E4M3 + 1);
        if (is_nibble && i % 2)
            to->codes[i / 2] = (uint8_t)(to->codes[i / 2] | (code & 15) << 4);
        else
            to->codes[is_nibble ? i / 2 : i] = (uint8_t)(is_nibble ? code & 15 : code);
    }
}

static hgemm_status_t pack(const hgemm_weights_t *w, const codes_t *from, int64_t groups, void *packed)
{
    void *scales = fill_elements(from->scales, groups, w->type_scale);
    void *zeros = fill_elements(from->zeros, groups, w->type_scale);
    int8_t *whole = malloc((size_t)groups + 1);
    for (int64_t i = 0; whole && i < groups; i++)
        whole[i] = (int8_t)(uint8_t)from->zeros[i];
    const hgemm_status_t status = scales && zeros && whole
                                      ? hgemm_pack_weights(NULL, w, from->codes, scales,
                                                           w->zero == HGEMM_ZERO_CODE ? (void *)whole : zeros, packed)
                                      : HGEMM_STATUS_OUT_OF_MEMORY;
    free(scales), free(zeros), free(whole);
    return status;
}

hgemm_status_t fill_weights(const hgemm_weights_t *w, int64_t batch, int exact, uint64_t seed, fill_packed_t *filled)
{
    const int64_t count = w->n * w->k, groups = w->n * (w->group ? (w->k + w->group - 1) / w->group : 1);
    *filled = (fill_packed_t){0};
    hgemm_status_t status = hgemm_weights_bytes(w, &filled->bytes);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const codes_t codes = {calloc((size_t)count + 1, 1), calloc((size_t)groups, sizeof(float)),
                           calloc((size_t)groups, sizeof(float))};
    filled->packed = malloc((size_t)batch * filled->bytes);
    filled->values = malloc((size_t)(batch * count) * sizeof *filled->values);
    if (!codes.codes || !codes.scales || !codes.zeros || !filled->packed || !filled->values)
        status = HGEMM_STATUS_OUT_OF_MEMORY;
    for (int64_t i = 0; i < batch && status == HGEMM_STATUS_SUCCESS; i++) {
        void *packed = (char *)filled->packed + (size_t)i * filled->bytes;
        draw(w, exact, &seed, groups, &codes);
        status = pack(w, &codes, groups, packed);
        if (status == HGEMM_STATUS_SUCCESS)
            status = hgemm_unpack_weights(NULL, w, packed, 0, w->k, HGEMM_TYPE_F32, filled->values + i * count, w->k);
    }
    free(codes.codes), free(codes.scales), free(codes.zeros);
    if (status != HGEMM_STATUS_SUCCESS)
        fill_weights_free(filled);
    return status;
}

void fill_weights_free(fill_packed_t *filled)
{
    free(filled->packed);
    free(filled->values);
    *filled = (fill_packed_t){0};
}
