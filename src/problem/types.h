/* SPDX-License-Identifier: MIT */
/* What elements and codes of each type are. All code that counts bytes of an operand asks here. */
#ifndef HGEMM_TYPES_H
#define HGEMM_TYPES_H

#include "hgemm.h"

/* The words of types.def and codes.def. */
typedef enum becomes_t { BECOMES_AS_IS, BECOMES_SCALED, BECOMES_PARTS, BECOMES_DECODED } becomes_t;
typedef enum scales_kind_t { SCALES_NONE, SCALES_ONE, SCALES_GROUPS } scales_kind_t;
typedef enum code_kind_t { CODES_INTEGER, CODES_TABLE, CODES_FLOAT } code_kind_t;

typedef struct type_info_t {
    const char *words; /* for messages: "HGEMM_TYPE_F16" */
    int bits;          /* of an element */
    int alignment;     /* bytes that an operand begins at a multiple of */
    becomes_t becomes;
    scales_kind_t scales;
} type_info_t;

typedef struct code_info_t {
    int bits;
    code_kind_t kind;
    int lowest, highest, has_zeros;
} code_info_t;

enum {
    TYPE_COUNT = 0
#define TYPE(...) +1
#include "table/types.def"
};

enum {
    CODE_COUNT = 0
#define CODE(...) +1
#include "table/codes.def"
};

/* The type of a B that is packed weights, within the library: of bytes. */
#define HGEMM_TYPE_PACKED ((hgemm_type_t)TYPE_COUNT)

extern const type_info_t type_table[TYPE_COUNT + 1];
extern const code_info_t code_table[CODE_COUNT];

static inline int64_t type_bytes(hgemm_type_t type, int64_t count)
{
    return count * (type_table[type].bits / 8);
}

#endif
