/* SPDX-License-Identifier: MIT */
/* How large an element of each type is, and what it needs. All code that counts bytes of an operand asks here. */
#ifndef HGEMM_TYPES_H
#define HGEMM_TYPES_H

#include "hgemm.h"

typedef struct type_info_t {
    const char *constant; /* "HGEMM_TYPE_F16" */
    int bits;             /* of an element */
    int has_scale;        /* A and B of this type are multiplied by a power of two on their way to halves */
} type_info_t;

enum { TYPE_COUNT = HGEMM_TYPE_BF16 + 1 };

/* The type of a B that is packed weights, within the library: of bytes. */
#define HGEMM_TYPE_PACKED ((hgemm_type_t)TYPE_COUNT)

extern const type_info_t type_table[TYPE_COUNT + 1];

static inline int64_t type_bytes(hgemm_type_t type, int64_t count)
{
    return count * (type_table[type].bits / 8);
}

#endif
