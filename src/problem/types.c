/* SPDX-License-Identifier: MIT */
#include "problem/types.h"

const type_info_t type_table[TYPE_COUNT + 1] = {
    [HGEMM_TYPE_F16] = {.constant = "HGEMM_TYPE_F16", .bits = 16},
    [HGEMM_TYPE_F32] = {.constant = "HGEMM_TYPE_F32", .bits = 32},
    [HGEMM_TYPE_BF16] = {.constant = "HGEMM_TYPE_BF16", .bits = 16, .has_scale = 1},
    [HGEMM_TYPE_PACKED] = {.constant = "packed weights", .bits = 8},
};
