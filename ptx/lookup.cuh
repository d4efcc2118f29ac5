/* SPDX-License-Identifier: MIT */
/* Halves of codes by a table, for kernels that take no other codes: all eight codes of a word at once. */
#pragma once
#include "packed.cuh"

/* The table of 16 halves in registers. ptxas must not know words 0 and 2 to be alike in all lanes: else it has them in
 * uniform registers, and moves them for each permutation. */
struct lookup_of_all {
    u32 words[8];
    DEVICE explicit lookup_of_all(const unsigned (&from)[8])
    {
#pragma unroll
        for (int i = 0; i < 8; ++i) words[i] = i == 0 || i == 2 ? from_lane(from[i], 0) : from[i];
    }
};

/* The B operands of slice s of four mma tiles, as halves_of_codes by `lookup` finds them, by fewer instructions. */
template <code_kind KIND>
static DEVICE void halves_of_codes(u32 (&b)[4], const b128 &unit, int s, const zeros_of_tiles<KIND> &, const lookup_of_all &table)
{
    static_assert(KIND == CODES_TABLE, "codes are no places in a table");
    const u32 units[4] = {unit.x, unit.y, unit.z, unit.w}, x = units[s];
    const u32(&words)[8] = table.words;
    u32 which = x & 0x77777777, half = and_or(x >> 1, 0x44444444, 0x32103210);
#pragma unroll
    for (int i = 0; i < 4; i += 2, which >>= 16, half >>= 16) {
        const u32 l = permute(permute(words[0], words[1], which), permute(words[2], words[3], which), half);
        const u32 h = permute(permute(words[4], words[5], which), permute(words[6], words[7], which), half);
        b[i] = permute(l, h, 0x5140), b[i + 1] = permute(l, h, 0x7362);
    }
}

template <bool OF_ALL> struct lookup_for { using type = lookup; };
template <> struct lookup_for<true> { using type = lookup_of_all; };
