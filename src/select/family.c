/* SPDX-License-Identifier: MIT */
#include "select/family.h"

#include "select/few.h"
#include "select/fma.h"
#include "select/mma.h"
#include "select/thin.h"
#include "select/tiny.h"

const family_info_t family_table[FAMILY_COUNT] = {
    [FAMILY_k0_naive] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_k1_tiled] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_k2_swizzled] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_k3_prefetch] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_k4_fastindex] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_k5_tuned] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_single] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_weights] = {.pace = mma_pace, .price = price_mma},
    [FAMILY_few] = {.is_drawn = is_few_drawn, .pace = few_pace, .price = price_few},
    [FAMILY_fma] = {.pace = fma_pace, .price = price_fma, .shape = fma_shape},
    [FAMILY_thin] = {is_thin_drawn, thin_pace, price_thin, thin_clocks, thin_cuts, thin_shape},
    [FAMILY_tiny] = {.is_drawn = is_tiny_drawn, .pace = tiny_pace, .clocks = tiny_clocks},
};
