/* SPDX-License-Identifier: MIT */
#include "problem/weights_text.h"

#include <stdio.h>
#include <string.h>

#include "problem/names.h"
#include "problem/types.h"
#include "problem/weights.h"

/* Halves, as python/hgemm/formats has them: NF4's are times 1.638504, by which they are nearest to halves, and FP4's
 * times 1.0019531. Groups and scales are what checkpoints have. */
static const struct {
    const char *name, *group, *scales;
    uint16_t values[16];
} tables[] = {
    {"nf4",
     "64",
     "f32",
     {0xbe8e, 0xbc90, 0xbae2, 0xb92d, 0xb775, 0xb4d8, 0xb0c6, 0x0000, 0x302c, 0x3438, 0x3674, 0x386e, 0x39c7, 0x3b60,
      0x3cbd, 0x3e8e}},
    {"fp4",
     "64",
     "f32",
     {0x0000, 0x1d58, 0x3958, 0x3c02, 0x3558, 0x3802, 0x3158, 0x3402, 0x0000, 0x9d58, 0xb958, 0xbc02, 0xb558, 0xb802,
      0xb158, 0xb402}},
    {"mxfp4",
     "32",
     "bf16",
     {0x0000, 0x3800, 0x3c00, 0x3e00, 0x4000, 0x4200, 0x4400, 0x4600, 0x8000, 0xb800, 0xbc00, 0xbe00, 0xc000, 0xc200,
      0xc400, 0xc600}},
};

enum { TABLES = sizeof tables / sizeof tables[0], NO_TABLE = -1, MOST_PART = 16 };

static int table_called(const char *name)
{
    for (int i = 0; i < TABLES; i++)
        if (strcmp(tables[i].name, name) == 0)
            return i;
    return NO_TABLE;
}

static int table_of(const uint16_t values[16])
{
    for (int i = 0; i < TABLES; i++)
        if (memcmp(tables[i].values, values, sizeof tables[i].values) == 0)
            return i;
    return NO_TABLE;
}

/* The k's of a group, -1 if these are none. */
static int group_called(const char *part)
{
    static const int groups[] = {0, 16, 32, 64, 128, 256};
    char name[8];
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        snprintf(name, sizeof name, "%d", groups[i]);
        if (strcmp(name, part) == 0)
            return groups[i];
    }
    return -1;
}

const char *weights_from_text(const char *text, hgemm_weights_t *weights)
{
    enum { CODES, GROUP, ZEROS, SCALES, PARTS };
    char parts[PARTS][MOST_PART];
    int said = 0;
    for (;; text++) {
        const size_t length = strcspn(text, ":");
        if (said == PARTS)
            return "more follows than codes, group, zeros and type of scales";
        snprintf(parts[said++], MOST_PART, "%.*s", length < MOST_PART ? (int)length : 0, text);
        text += length;
        if (*text == '\0')
            break;
    }
    const int table = table_called(parts[CODES]);
    const char *const usual[PARTS] = {[GROUP] = table == NO_TABLE ? "128" : tables[table].group,
                                      [ZEROS] = "none",
                                      [SCALES] = table == NO_TABLE ? "f16" : tables[table].scales};
    for (; said < PARTS; said++)
        snprintf(parts[said], MOST_PART, "%s", usual[said]);
    const int group = group_called(parts[GROUP]);
    const int code = table == NO_TABLE ? name_value(code_names, parts[CODES]) : HGEMM_CODE_TABLE16;
    const int zero = name_value(zero_names, parts[ZEROS]), type = name_value(type_names, parts[SCALES]);
    if (code < 0 || (code_table[code].kind == CODES_TABLE && table == NO_TABLE))
        return "codes are int4, uint4, int8, uint8, e4m3, nf4, fp4 or mxfp4";
    if (group < 0)
        return "a group has 16, 32, 64, 128 or 256 k's, or 0 for all of a row";
    if (zero < 0)
        return "zeros are none, code or offset";
    if (zero != HGEMM_ZERO_NONE && !code_table[code].has_zeros)
        return "codes of a table or of e4m3 have no zeros";
    if (type < 0)
        return "scales are f16, bf16 or f32";
    hgemm_weights_init(weights);
    weights->code = (hgemm_code_t)code, weights->group = group;
    weights->zero = (hgemm_zero_t)zero, weights->type_scale = (hgemm_type_t)type;
    if (table != NO_TABLE)
        memcpy(weights->table, tables[table].values, sizeof weights->table);
    return NULL;
}

static void write(int code, const uint16_t table[16], int group, int zero, int scale, char text[WEIGHTS_TEXT])
{
    const int known = table_of(table);
    const char *codes =
        code_table[code].kind != CODES_TABLE ? code_names[code] : tables[known == NO_TABLE ? 0 : known].name;
    snprintf(text, WEIGHTS_TEXT, "%s:%d:%s:%s", codes, group, zero_names[zero], type_names[scale]);
}

void weights_to_text(const hgemm_weights_t *weights, char text[WEIGHTS_TEXT])
{
    write(weights->code, weights->table, weights->group, weights->zero, weights->type_scale, text);
}

void form_to_text(const packed_form_t *form, char text[WEIGHTS_TEXT])
{
    write(form->code, form->table, packed_group(form), form->zero, form->type_scale, text);
}
