/* SPDX-License-Identifier: MIT */
/* Halves of codes by a table, for kernels that take no other codes: all eight codes of a word at once. */
#pragma once
#include "packed.cuh"

/* The table of 16 halves. A permutation has one word of two from the kernel's arguments, the other from a register. Where
 * ptxas knows the word to be alike in all lanes, it has it in a uniform register, and moves it for each permutation (note
 * 491). KEEPS: there are registers for these words; each is one with a 0 that seems to be the lane's. */
template <bool KEEPS> struct lookup_of_all {
    u32 words[8];
    DEVICE lookup_of_all(const packed_form_t &form, u32 lane)
    {
        const u32 zero = KEEPS ? (u32)form.log_group >> 8 & lane : 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) words[i] = i % 2 == 0 ? form.lookup[i] | zero : form.lookup[i];
    }
};

/* The B operands of slice s of four mma tiles, as halves_of_codes by `lookup` finds them, by fewer instructions. */
template <code_kind KIND, bool KEEPS>
static DEVICE void halves_of_codes(u32 (&b)[4], const b128 &unit, int s, const zeros_of_tiles<KIND> &, const lookup_of_all<KEEPS> &table)
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

template <bool OF_ALL, bool KEEPS> struct lookup_for { using type = lookup; };
template <bool KEEPS> struct lookup_for<true, KEEPS> { using type = lookup_of_all<KEEPS>; };
