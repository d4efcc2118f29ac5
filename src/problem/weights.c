/* SPDX-License-Identifier: MIT */
#include "problem/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "problem/names.h"
#include "problem/types.h"

static_assert((int)PACKED_NO_ZEROS == (int)HGEMM_ZERO_NONE && (int)PACKED_ZERO_CODES == (int)HGEMM_ZERO_CODE &&
                  (int)PACKED_OFFSETS == (int)HGEMM_ZERO_OFFSET,
              "kernels number zeros otherwise");

enum { ALL_OF_A_ROW = 30 }; /* log_group: no k is as much */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static hgemm_status_t
refuse(char words[DEVICE_DETAIL], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, DEVICE_DETAIL, format, arguments);
    va_end(arguments);
    return HGEMM_STATUS_INVALID_WEIGHTS;
}

/* The logarithm of a group's k's, -1 where there are no such groups. */
static int log_of_group(int group)
{
    for (int log = 4; log <= 8; log++)
        if (group == 1 << log)
            return log;
    return group == 0 ? ALL_OF_A_ROW : -1;
}

hgemm_status_t take_weights(const hgemm_weights_t *weights, packed_form_t *form, char words[DEVICE_DETAIL])
{
    const packed_form_t none = {0};
    if (!weights)
        return refuse(words, "weights is NULL.");
    if (weights->size != sizeof *weights)
        return refuse(words, "weights->size is %zu; this library knows %zu.", weights->size, sizeof *weights);
    const int code = (int)weights->code, zero = (int)weights->zero, type = (int)weights->type_scale;
    if (code < 0 || code >= CODE_COUNT)
        return refuse(words, "weights->code is %d.", code);
    if (zero < 0 || zero > PACKED_OFFSETS)
        return refuse(words, "weights->zero is %d.", zero);
    if (zero != PACKED_NO_ZEROS && !code_table[code].has_zeros)
        return refuse(words, "weights->zero is %d, and codes of %s have no zeros.", zero, code_names[code]);
    if (type < 0 || type >= TYPE_COUNT)
        return refuse(words, "weights->type_scale is %d.", type);
    const int log_group = log_of_group(weights->group);
    if (log_group < 0)
        return refuse(words, "weights->group is %d, and not 16, 32, 64, 128, 256, or 0 for all of a row.",
                      weights->group);
    if (weights->n < 0 || weights->n > INT32_MAX - HGEMM_PACKED_STRIP)
        return refuse(words, "weights->n is %" PRId64 ", not from 0 to %d.", weights->n,
                      INT32_MAX - HGEMM_PACKED_STRIP);
    if (weights->k < 0 || weights->k >= 1 << ALL_OF_A_ROW)
        return refuse(words, "weights->k is %" PRId64 ", not from 0 to %d.", weights->k, (1 << ALL_OF_A_ROW) - 1);
    *form = none;
    form->n = (int)weights->n, form->k = (int)weights->k;
    form->code = code, form->zero = zero, form->type_scale = type;
    form->log_group = log_group;
    if (weights->k * code_table[code].bits % 8)
        return refuse(words, "weights->k is %" PRId64 ", and codes of %d bits fill no byte at the end of a row.",
                      weights->k, code_table[code].bits);
    for (int i = 0; i < 16 && code_table[code].kind == CODES_TABLE; i++) {
        if ((weights->table[i] & 0x7c00) == 0x7c00)
            return refuse(words, "weights->table[%d] is 0x%04x, which is no finite half.", i,
                          (unsigned)weights->table[i]);
        form->table[i] = weights->table[i];
    }
    for (int i = 0; i < 16; i++) {
        const unsigned half = form->table[i];
        form->lookup[i / 4] |= (half & 0xff) << i % 4 * 8, form->lookup[4 + i / 4] |= half >> 8 << i % 4 * 8;
    }
    const int64_t whole = 1 << log_group, padded = (weights->k + HGEMM_PACKED_K - 1) / HGEMM_PACKED_K * HGEMM_PACKED_K;
    form->groups = (int)((weights->k + whole - 1) / whole);
    form->slots = (int)((padded + whole - 1) / whole);
    const int64_t codes = packed_chunks(form) * 16, scales = packed_scales(form);
    const int64_t zeros = zero == PACKED_ZERO_CODES ? scales
                          : zero == PACKED_OFFSETS  ? scales * packed_scale_bytes(form)
                                                    : 0;
    form->scales_at = codes;
    form->zeros_at = codes + scales * packed_scale_bytes(form);
    form->bytes = (form->zeros_at + zeros + 127) / 128 * 128;
    return HGEMM_STATUS_SUCCESS;
}

double weight_bytes(const packed_form_t *form)
{
    return (double)form->bytes / ((double)form->n * (double)form->k);
}

int packed_group(const packed_form_t *form)
{
    return form->log_group == ALL_OF_A_ROW ? 0 : 1 << form->log_group;
}
