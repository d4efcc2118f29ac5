/* SPDX-License-Identifier: MIT */
/* bits.c - which bits of a register reach which bits of a result. */
#include "bits.h"

#define ALL_BITS UINT32_MAX

static void add_way(ways_t *ways, const turing_operand_t *s, way_t way)
{
    if (s->kind != TURING_REG || s->reg == TURING_RZ || !way.mask)
        return;
    way.reg = s->reg;
    ways->way[ways->n++] = way;
}

/* The bits of a LOP3's result that depend on an operand, for what is known of the others. */
static uint32_t decided_by(const turing_insn_t *in, int operand)
{
    uint32_t decided = 0;
    for (unsigned inputs = 0; inputs < 8; inputs++) {
        uint32_t possible = ALL_BITS; /* where the operands' bits may be these */
        for (int i = 0; i < 3; i++) {
            const uint32_t is_one = inputs >> (2 - i) & 1 ? ALL_BITS : 0;
            if (in->src[i].kind == TURING_IMM)
                possible &= ~(in->src[i].imm ^ is_one);
            else if (i != operand && in->src[i].kind == TURING_REG && in->src[i].reg == TURING_RZ)
                possible &= ~is_one;
        }
        if ((in->m.lut >> inputs ^ in->m.lut >> (inputs ^ 4u >> operand)) & 1)
            decided |= possible;
    }
    return decided;
}

bool emu_ways(const turing_insn_t *in, ways_t *ways)
{
    static const way_t same = {.from = {0, 1, 2, 3}};
    const turing_operand_t *s = in->src;
    way_t way = same;
    *ways = (ways_t){.others = ALL_BITS};
    if (in->op == TURING_LOP3)
        for (int i = 0; i < 3; i++) {
            way.mask = decided_by(in, i);
            add_way(ways, &s[i], way);
        }
    else if (in->op == TURING_PRMT && !in->m.func && s[1].kind == TURING_IMM)
        for (uint32_t upper = 0; upper < 2; upper++) {
            way.mask = 0;
            for (int byte = 0; byte < 4; byte++) {
                const uint32_t selected = s[1].imm >> 4 * byte & 15;
                way.from[byte] = selected & 3;
                way.extend[byte] = selected >> 3;
                if ((selected >> 2 & 1) == upper)
                    way.mask |= UINT32_C(0xff) << 8 * byte;
            }
            add_way(ways, &s[2 * upper], way);
        }
    else if (in->op == TURING_P2R && s[1].kind == TURING_IMM) {
        ways->others = s[1].imm << 8 * in->m.byte;
        way.mask = ~ways->others;
        add_way(ways, &s[0], way);
    } else if (in->op == TURING_R2P && s[1].kind == TURING_IMM) {
        way.mask = s[1].imm & 0x7f;
        way.from[0] = in->m.byte;
        add_way(ways, &s[0], way);
    } else
        return false;
    return true;
}

uint32_t emu_arrive(const way_t *way, uint32_t bits)
{
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t byte = bits >> 8 * way->from[i] & 0xff;
        if (way->extend[i])
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result & way->mask;
}

uint32_t emu_origin(const way_t *way, uint32_t result)
{
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t byte = (result & way->mask) >> 8 * i & 0xff;
        if (way->extend[i])
            byte = byte ? 0x80 : 0;
        bits |= byte << 8 * way->from[i];
    }
    return bits;
}
