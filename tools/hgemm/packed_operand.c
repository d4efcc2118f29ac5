/* SPDX-License-Identifier: MIT */
#include "packed_operand.h"

#include <stdlib.h>
#include <string.h>

#include "problem/weights.h"

enum { ZERO = 8 }; /* of codes without a sign, and the number of 0 in the table */

/* A linear congruential generator's upper bits. */
static unsigned draw(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*random >> 33);
}

static int has_sign(hgemm_code_t code)
{
    return code == HGEMM_CODE_INT4 || code == HGEMM_CODE_INT8;
}

/* The code of -1, 0 or 1. */
static unsigned exact_code(hgemm_code_t code, int value)
{
    if (code == HGEMM_CODE_E4M3)
        return value == 0 ? 0 : value > 0 ? 0x38 : 0xb8;
    return (unsigned)(has_sign(code) ? value : ZERO + value);
}

static unsigned draw_code(hgemm_code_t code, int is_exact, uint64_t *random)
{
    const unsigned bits = draw(random);
    if (is_exact)
        return exact_code(code, (int)(bits % 3) - 1);
    return code == HGEMM_CODE_E4M3 ? bits & 0xbf /* less than 2 */ : bits;
}

static void write_float(hgemm_type_t type, float value, void *to, size_t i)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == HGEMM_TYPE_F32)
        ((uint32_t *)to)[i] = bits;
    else
        ((uint16_t *)to)[i] = type == HGEMM_TYPE_BF16 ? (uint16_t)(bits >> 16) : hgemm_half_from_float(value);
}

void packed_operand_table(hgemm_weights_t *weights)
{
    for (int i = 0; i < 16; i++)
        weights->table[i] = hgemm_half_from_float((float)(i - ZERO));
}

int packed_operand_write(const hgemm_weights_t *w, int is_exact, uint64_t seed, void *packed)
{
    const packed_form_t form = form_of(w);
    const int is_4 = packed_bits(&form) == 4;
    const size_t codes_bytes = (size_t)(w->n * w->k) / (is_4 ? 2 : 1), groups = (size_t)w->n * (size_t)form.groups;
    uint8_t *codes = malloc(codes_bytes);
    void *scales = malloc(groups * sizeof(float)), *zeros = malloc(groups * sizeof(float));
    const int is_packed = codes && scales && zeros;
    uint64_t random = seed;
    for (size_t i = 0; is_packed && i < codes_bytes; i++) {
        const unsigned low = draw_code(w->code, is_exact, &random);
        codes[i] = (uint8_t)(is_4 ? (low & 15) | draw_code(w->code, is_exact, &random) << 4 : low);
    }
    for (size_t i = 0; is_packed && i < groups; i++) {
        const float scale = is_exact ? 1 : (1 + (float)(draw(&random) % 1024) / 1024) / (is_4 ? 16 : 256);
        write_float(w->type_scale, scale, scales, i);
        if (w->zero == HGEMM_ZERO_OFFSET)
            write_float(w->type_scale, has_sign(w->code) ? 0 : -ZERO * scale, zeros, i);
        else
            ((uint8_t *)zeros)[i] = has_sign(w->code) ? 0 : ZERO;
    }
    if (is_packed)
        hgemm_pack_weights(NULL, w, codes, scales, zeros, packed);
    free(codes);
    free(scales);
    free(zeros);
    return is_packed;
}
