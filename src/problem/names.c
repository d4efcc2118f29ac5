/* SPDX-License-Identifier: MIT */
#include "problem/names.h"

#include <assert.h>
#include <string.h>

#include "problem/types.h"
#include "table/args.h"

/* Kernels number activations by their rows, and have few bits for them. */
enum {
#define ACTIVATION(value, name, ...) ROW_##value,
#include "table/activations.def"
};
#define ACTIVATION(value, name, ...)                                                                                \
    static_assert((int)ROW_##value == (int)HGEMM_ACTIVATION_##value, #value ": its row is not where its value is"); \
    static_assert(ROW_##value <= (int)HGEMM_FUSED_ACTIVATION_MASK,                                                  \
                  #value ": the kernels' arguments have no room for it");
#include "table/activations.def"
static_assert((int)ACTIVATION_COUNT < (int)NAMES, "NAMES has no room for the activations");

names_t layout_names = {[HGEMM_ROW_MAJOR] = "row", [HGEMM_COL_MAJOR] = "col"};
names_t op_names = {[HGEMM_OP_N] = "n", [HGEMM_OP_T] = "t"};
names_t accumulate_names = {[HGEMM_ACCUMULATE_F16] = "f16", [HGEMM_ACCUMULATE_F32] = "f32"};
names_t type_names = {
#define TYPE(value, name, ...) [HGEMM_TYPE_##value] = #name,
#include "table/types.def"
};
names_t element_names = {
#define TYPE(value, name, ...) [HGEMM_TYPE_##value] = #name,
#define TYPE_WITHIN TYPE
#include "table/types.def"
};
names_t code_names = {
#define CODE(value, name, ...) [HGEMM_CODE_##value] = #name,
#include "table/codes.def"
};
names_t zero_names = {[HGEMM_ZERO_NONE] = "none", [HGEMM_ZERO_CODE] = "code", [HGEMM_ZERO_OFFSET] = "offset"};
names_t activation_names = {
#define ACTIVATION(value, name, ...) [HGEMM_ACTIVATION_##value] = #name,
#include "table/activations.def"
};
names_t bias_mode_names = {[HGEMM_BIAS_PER_COLUMN] = "per column", [HGEMM_BIAS_PER_ROW] = "per row"};
names_t batch_mode_names = {
    [HGEMM_BATCH_STRIDED] = "strided", [HGEMM_BATCH_POINTERS] = "pointers", [HGEMM_BATCH_GROUPED] = "grouped"};
names_t index_type_names = {[HGEMM_INDEX_I32] = "i32", [HGEMM_INDEX_I64] = "i64"};
names_t accuracy_names = {
    [HGEMM_ACCURACY_F32] = "f32", [HGEMM_ACCURACY_16_BITS] = "16bits", [HGEMM_ACCURACY_11_BITS] = "11bits"};

int name_count(names_t names)
{
    int count = 0;
    while (names[count])
        count++;
    return count;
}

int name_value(names_t names, const char *name)
{
    for (int value = 0; names[value]; value++)
        if (strcmp(names[value], name) == 0)
            return value;
    return -1;
}

/* A value of the enumeration without a row is a warning here. */
const char *hgemm_activation_name(hgemm_activation_t activation)
{
    switch (activation) {
#define ACTIVATION(value, name, ...) case HGEMM_ACTIVATION_##value:
#include "table/activations.def"
        return activation_names[activation];
    }
    return NULL;
}
