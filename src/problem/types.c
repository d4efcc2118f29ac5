/* SPDX-License-Identifier: MIT */
#include "problem/types.h"

#include <assert.h>

#include "table/args.h"
#include "table/packed.h"

/* Kernels get types in fields of a few bits. What a B of packed weights is stands among those of `indirect` alone. */
static_assert(TYPE_COUNT - 1 <= (int)HGEMM_FUSED_TYPE_MASK, "a type has no room in the fields of `fused`");
static_assert((int)HGEMM_TYPE_PACKED <= (int)HGEMM_FUSED_TYPE_MASK, "a type has no room in the fields of `indirect`");

/* Joined by `op`: their sum is their union where none overlap. */
#define TYPE_AT(shift) (HGEMM_FUSED_TYPE_MASK << (shift))
enum {
    OF_C = TYPE_AT(HGEMM_FUSED_TYPE_C),
    OF_D = TYPE_AT(HGEMM_FUSED_TYPE_D),
    OF_BIAS = TYPE_AT(HGEMM_FUSED_TYPE_BIAS),
    OF_GATE = TYPE_AT(HGEMM_FUSED_TYPE_GATE),
    OF_ACT = HGEMM_FUSED_ACTIVATION_MASK << HGEMM_FUSED_ACTIVATION,
    OF_A = TYPE_AT(HGEMM_FLOATS_TYPE_A),
    OF_B = TYPE_AT(HGEMM_FLOATS_TYPE_B)
};
#define FUSED_FIELDS(op)                                                                                              \
    (HGEMM_FUSED op HGEMM_FUSED_BIAS_PER_ROW op HGEMM_FUSED_INDEX_64 op HGEMM_FUSED_ANYHOW op OF_C op OF_D op OF_BIAS \
         op OF_GATE op OF_ACT)
#define INDIRECT_FIELDS(op)                                                                                          \
    (HGEMM_INDIRECT_POINTERS op HGEMM_INDIRECT_GROUPED op HGEMM_INDIRECT_BY_COLUMNS op HGEMM_FLOATS_EACH_STEP op     \
         HGEMM_FLOATS_EXACT_A op HGEMM_FLOATS_EXACT_B op HGEMM_FLOATS_ALONG_K_A op HGEMM_FLOATS_ALONG_K_B op OF_A op \
             OF_B)
static_assert(FUSED_FIELDS(+) == FUSED_FIELDS(|), "fields of `fused` overlap");
static_assert(INDIRECT_FIELDS(+) == INDIRECT_FIELDS(|), "fields of `indirect` overlap");

/* Rows stand in the order of the values, and kernels number them so. */
#define TYPE(value, ...) \
    static_assert((int)PACKED_##value == (int)HGEMM_TYPE_##value, #value ": its row is not where its value is");
#include "table/types.def"
#define CODE(value, ...) \
    static_assert((int)PACKED_##value == (int)HGEMM_CODE_##value, #value ": its row is not where its value is");
#include "table/codes.def"

const type_info_t type_table[TYPE_COUNT + 1] = {
#define ROW(value, words, bits, alignment, becomes, scales) \
    [HGEMM_TYPE_##value] = {words, (bits), (alignment), BECOMES_##becomes, SCALES_##scales},
#define TYPE(value, name, ...) ROW(value, "HGEMM_TYPE_" #value, __VA_ARGS__)
#define TYPE_WITHIN(value, name, ...) ROW(value, #name " weights", __VA_ARGS__)
#include "table/types.def"
};

const code_info_t code_table[CODE_COUNT] = {
#define CODE(value, name, bits, kind, lowest, highest, has_zeros) \
    [HGEMM_CODE_##value] = {(bits), CODES_##kind, (lowest), (highest), (has_zeros)},
#include "table/codes.def"
};
