/* SPDX-License-Identifier: MIT */
/*
 * Packed weights as B (src/table/packed.h tells how they lie): codes go straight from memory to registers, where they
 * become the halves that an mma takes. Every step of that is exact.
 */
#pragma once
#include "source.cuh"
#include "../src/table/packed.h"

/* Packed weights as the pipeline through shared memory sees them: it carries none. */
struct packed_operand {
    static constexpr int ELEMENT = 1, BYTES = 0, LOADS = 0; /* a matrix is so many bytes from the one before */
    static constexpr u32 LINES = 0;
    template <bool POINTERS> struct addresses {
        const char *base;
        DEVICE u32 locate(const panel &, u32, u32) { return base = nullptr, 0; }
        DEVICE void make_pointers() {}
        DEVICE void advance(u64) {}
        DEVICE const char *chunk_at(int) const { return base; }
        template <class CHUNK> DEVICE void load_checked(CHUNK *, const panel &, int, u32, u32) const {}
    };
    static DEVICE u32 bytes_of(u32) { return ELEMENT; }
    static DEVICE panel panel_at(const char *base, u64, u32 x0, u32 x_size, u32, u32 type)
    {
        return panel{base, base, base, 0, x0, x_size, nullptr, false, type};
    }
    static DEVICE u64 k_bytes(const panel &, u32) { return 0; }
    static DEVICE const char *start(const panel &src, u32) { return src.base; }
    static DEVICE b128 fetch(const char *, const panel &, u32, u32, int, u32) { return b128{}; }
    static DEVICE u32 row(u32) { return 0; }
    static DEVICE u32 col(u32) { return 0; }
    static DEVICE int columns_inside(const panel &, u32) { return 0; }
    static DEVICE bool has(int, int, int) { return false; }
    static DEVICE u32 line_offset(const panel &, u32) { return 0; }
    static DEVICE u32 commit_offset(u32, int) { return 0; }
    static DEVICE u32 commit_xor(int) { return 0; }
    static DEVICE u32 commit_add(int) { return 0; }
    static DEVICE u32 fragment_offset(u32, u32, int, int) { return 0; }
    static DEVICE u32 fragment_xor(int, int) { return 0; }
    static DEVICE u32 fragment_add(int, int) { return 0; }
    static DEVICE void matrices(u32 &, u32 &, u32 &, u32 &, u32) {}
    static DEVICE void matrices(u32 &, u32 &, u32) {}
};

/* ---- Codes become halves ------------------------------------------------------------------------------------------- */

/* What codes are to the loop. */
enum code_kind { CODES_4, CODES_8, CODES_TABLE, CODES_E4M3 };
static DEVICE constexpr bool is_of_8_bits(code_kind kind) { return kind == CODES_8 || kind == CODES_E4M3; }

constexpr u32 PAIR_OF_1 = 0x3c003c00, PAIR_OF_1024 = 0x64006400; /* halves from 1024 on are integers: their last bits are such a one */

/* Zeros of a lane's columns in four mma tiles, from their bytes, as what is added to the halves that codes become first:
 * -(1024 + zero), or -(64 + zero) where a code is a half's bits from the fifth on and was divided by 16. */
template <code_kind KIND> struct zeros_of_tiles {
    u32 less[4];
    DEVICE void set(u32 bytes)
    {
        if constexpr (KIND == CODES_4 || KIND == CODES_8) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const u32 pair = permute(bytes, PAIR_OF_1024, 0x5050 | j << 8 | j) ^ 0x80008000; /* -(1024 + zero) */
                less[j] = KIND == CODES_4 && j % 2 ? add_halves(pair, 0x63806380) : pair;         /* + 960 */
            }
        }
    }
};

/* The table of 16 halves, as packed_form_t has it for this. */
struct lookup {
    const unsigned (&words)[8];
    DEVICE lookup(const packed_form_t &form, u32) : words(form.lookup) {}
    /* Of the four codes in the lower half of x: two pairs of halves. Bytes of the first 8, or of the last 8. */
    DEVICE void find(u32 &first, u32 &second, u32 x) const
    {
        const u32 which = x & 0x7777, half = (x >> 1 & 0x4444) | 0x3210;
        const u32 l = permute(permute(words[0], words[1], which), permute(words[2], words[3], which), half);
        const u32 h = permute(permute(words[4], words[5], which), permute(words[6], words[7], which), half);
        first = permute(l, h, 0x5140), second = permute(l, h, 0x7362);
    }
};

/* (x & mask) | more by one instruction (PTX ISA 9.7.8.6): of C with two constants ptxas makes two. */
static DEVICE u32 and_or(u32 x, u32 mask, u32 more)
{
    u32 y;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "r"(mask), "r"(more));
    return y;
}

/* The B operands of slice s of four mma tiles, from a lane's chunk of a unit. */
template <code_kind KIND>
static DEVICE void halves_of_codes(u32 (&b)[4], const b128 &unit, int s, const zeros_of_tiles<KIND> &zeros, const lookup &table)
{
    const u32 words[4] = {unit.x, unit.y, unit.z, unit.w};
    if constexpr (KIND == CODES_4) {
        const u32 x = words[s], y = x >> 8;
        b[0] = add_halves(and_or(x, 0x000f000f, PAIR_OF_1024), zeros.less[0]);
        b[1] = fma_halves(and_or(x, 0x00f000f0, PAIR_OF_1024), 0x2c002c00, zeros.less[1]); /* 1/16 */
        b[2] = add_halves(and_or(y, 0x000f000f, PAIR_OF_1024), zeros.less[2]);
        b[3] = fma_halves(and_or(y, 0x00f000f0, PAIR_OF_1024), 0x2c002c00, zeros.less[3]);
    } else if constexpr (KIND == CODES_8) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            b[j] = add_halves(permute(words[2 * s + j / 2], PAIR_OF_1024, j % 2 ? 0x5352 : 0x5150), zeros.less[j]);
    } else if constexpr (KIND == CODES_TABLE) {
        table.find(b[0], b[1], words[s]);
        table.find(b[2], b[3], words[s] >> 16);
    } else { /* a half's exponent has a bit more, and its bias is 8 more */
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 x = permute(words[2 * s + j / 2], 0, j % 2 ? 0x3424 : 0x1404);
            b[j] = fma_halves((x & 0x80008000) | (x >> 1 & 0x3f803f80), 0x5c005c00, 0x80008000); /* 256 */
        }
    }
}

/* ---- Scales -------------------------------------------------------------------------------------------------------- */

/* Of a group of k's: scales and offsets for the sums that a lane has in four mma tiles, and zeros for its codes. A strip has
 * as many scales as a warp has lanes: each keeps one. */
struct group_facts {
    float scale, offset;
    u32 zero;

    /* Of a strip's scales, or offsets, that of element e of a row of mma tile j. */
    static DEVICE float of(float own, u32 lane, int j, int e)
    {
        return __uint_as_float(from_lane(__float_as_uint(own), lane % 4 * 8 + j * 2 + e));
    }
};

/* Number i of either size, from the word that it lies in: what is made of it waits for the load, and so is done where it is
 * first needed. */
static DEVICE float number_of(float loaded, u32 i, int type)
{
    const u32 word = __float_as_uint(loaded), bits = word >> i % 2 * 16;
    return type == PACKED_F32 ? loaded : type == PACKED_F16 ? half_to_float(bits) : __uint_as_float(bits << 16);
}

/* Those of a warp's strip. ADDS: they have offsets. */
template <bool ADDS> struct groups_of_strip {
    const char *scales, *zeros; /* the lane's words, of the strip's first group; with ADDS zeros are offsets */
    u32 scale_bytes;            /* of a group */

    DEVICE groups_of_strip(const packed_form_t &form, const char *packed, u32 strip, u32 lane)
    {
        const u64 first = (u64)strip * form.slots * HGEMM_PACKED_STRIP;
        const u32 each = form.type_scale == PACKED_F32 ? 4 : 2;
        scale_bytes = each * HGEMM_PACKED_STRIP;
        const u64 number = (first + lane) * each / 4 * 4;
        scales = packed + form.scales_at + number;
        zeros = packed + form.zeros_at + (ADDS ? number : first + lane / 4 * 4);
    }

    /* Loads those of the group that k is in. */
    DEVICE void load(group_facts &to, const packed_form_t &form, u32 k, bool when) const
    {
        const u32 group = k >> form.log_group;
        u32 scale = 0, offset = 0;
        ld_global_word(scale, scales + (u64)group * scale_bytes, when);
        if (ADDS) ld_global_word(offset, zeros + (u64)group * scale_bytes, when);
        to.scale = __uint_as_float(scale), to.offset = __uint_as_float(offset);
        to.zero = packed_bias(&form) * 0x01010101;
        if (!ADDS) ld_global_word(to.zero, zeros + (u64)group * HGEMM_PACKED_STRIP, when && form.zero == PACKED_ZERO_CODES);
    }
};
