/* SPDX-License-Identifier: MIT */
#include "problem/types.h"

#include <string.h>

const type_info_t type_table[TYPE_COUNT] =
    {
#define TYPE(constant_) [HGEMM_TYPE_##constant_] = {.constant = "HGEMM_TYPE_" #constant_,
        TYPE(F16).name = "f16", .bits = 16, .is_factor = 1},
                  TYPE(F32).name = "f32", .bits = 32, .is_factor = 1
}
, TYPE(BF16).name = "bf16", .bits = 16, .is_factor = 1, .has_scale = 1
}
,
#undef TYPE
}
;

int type_value(const char *name)
{
    for (int type = 0; type < TYPE_COUNT; type++)
        if (strcmp(type_table[type].name, name) == 0)
            return type;
    return -1;
}
