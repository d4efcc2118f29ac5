/* SPDX-License-Identifier: MIT */
/*
 * exec_alu.c - integer, logic and comparison instructions, of both the vector and the uniform datapath
 * (whose operands are rows with equal lanes, see exec.h).
 */
#include "exec.h"

/* A handler that computes one word per lane. */
#define LANEWISE(name, expression)                          \
    static void name(warp_t *w, const op_t *o, uint32_t on) \
    {                                                       \
        SOURCES;                                            \
        EACH                                                \
            t[l] = (expression);                            \
        put(w, o->d, t, on);                                \
    }

static uint32_t flip(const op_t *o, int i) /* all ones where source i is negated or complemented */
{
    return o->in->src[i].neg || o->in->src[i].inv ? ~0u : 0;
}

/* ---- adds --------------------------------------------------------------------- */

LANEWISE(op_mov, a[l])
LANEWISE(op_iadd3_plain, a[l] + b[l] + c[l])

static void op_iadd3(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t fa = flip(o, 0), fb = flip(o, 1), fc = flip(o, 2);
    uint32_t in0 = 0, in1 = 0, carry = 0, carry2 = 0;
    uint64_t ones = 0;
    if (o->in->m.x) {
        in0 = pred(w, o, 0);
        in1 = pred(w, o, 1);
    } else /* -x is ~x + 1 */
        ones = (fa & 1) + (fb & 1) + (fc & 1);
    EACH {
        uint64_t sum = ones + (in0 >> l & 1) + (in1 >> l & 1);
        sum += (uint64_t)(a[l] ^ fa) + (b[l] ^ fb) + (c[l] ^ fc);
        t[l] = (uint32_t)sum;
        carry |= (uint32_t)(sum >> 32 >= 1) << l;
        carry2 |= (uint32_t)(sum >> 32 >= 2) << l;
    }
    put(w, o->d, t, on);
    put_pred(w, o->pdst[0], carry, on);
    put_pred(w, o->pdst[1], carry2, on);
}

/* (c:a << shift), its lower word or its upper one, plus b. A sign is that of the word that is shifted out, so what -(x
 * << s) carries where no bit of x is left in the lower word is carried here too. */
static void op_lea(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const turing_mods_t *m = &o->in->m;
    const uint32_t fa = flip(o, 0), fb = flip(o, 1), in = m->x ? pred(w, o, 0) : 0;
    const uint64_t ones = m->x ? 0 : (fa & 1) + (fb & 1); /* -x is ~x + 1 */
    uint32_t carry = 0;
    EACH {
        uint64_t v = a[l];
        if (m->hi)
            v = (v | (uint64_t)(m->sx32 ? 0u - (a[l] >> 31) : c[l]) << 32) << m->shift >> 32;
        else
            v <<= m->shift;
        uint64_t sum = ((uint32_t)v ^ fa) + (uint64_t)(b[l] ^ fb) + ones + (in >> l & 1);
        t[l] = (uint32_t)sum;
        carry |= (uint32_t)(sum >> 32 != 0) << l;
    }
    put(w, o->d, t, on);
    put_pred(w, o->pdst[0], carry, on);
}

LANEWISE(op_imad_plain, a[l] * b[l] + c[l])

static void op_imad(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t fb = o->in->src[0].neg != o->in->src[1].neg ? ~0u : 0, fc = flip(o, 2);
    const uint32_t in = o->in->m.x ? pred(w, o, 0) : 0, one = o->in->m.x ? 0 : fc & 1;
    EACH
        t[l] = ((a[l] * b[l]) ^ fb) + (fb & 1) + (c[l] ^ fc) + one + (in >> l & 1);
    put(w, o->d, t, on);
}

/* a * b + c, where c is a register pair: both words of it, or the upper one alone. */
static inline void multiply_wide(warp_t *w, const op_t *o, uint32_t on, bool upper_only)
{
    SOURCES;
    uint32_t hi[LANES], carry = 0;
    const uint32_t *c1 = w->r[o->src[2] + 1];
    const bool is_signed = o->in->m.is_signed, negate = o->in->src[0].neg != o->in->src[1].neg;
    const uint64_t fc = flip(o, 2) ? ~UINT64_C(0) : 0;
    const uint32_t in = o->in->m.x ? pred(w, o, 0) : 0, one = o->in->m.x ? 0 : (uint32_t)fc & 1;
    EACH {
        uint64_t p = is_signed ? (uint64_t)((int64_t)(int32_t)a[l] * (int32_t)b[l]) : (uint64_t)a[l] * b[l];
        if (negate)
            p = 0 - p;
        uint64_t add = (((uint64_t)c1[l] << 32 | c[l]) ^ fc), sum = p + add, more = one + (in >> l & 1);
        bool over = sum < p;
        sum += more;
        over |= sum < more;
        t[l] = (uint32_t)sum;
        hi[l] = (uint32_t)(sum >> 32);
        carry |= (uint32_t)over << l;
    }
    if (upper_only)
        put(w, o->d, hi, on);
    else {
        put(w, o->d, t, on);
        put(w, o->d + 1u, hi, on);
    }
    put_pred(w, o->pdst[0], carry, on);
}

static void op_imad_wide(warp_t *w, const op_t *o, uint32_t on)
{
    multiply_wide(w, o, on, false);
}

static void op_imad_hi(warp_t *w, const op_t *o, uint32_t on)
{
    multiply_wide(w, o, on, true);
}

/* Part i of a word as an integer. */
static int32_t part(uint32_t x, unsigned type, int i)
{
    switch (type) {
    case TURING_U8: return (uint8_t)(x >> 8 * i);
    case TURING_S8: return (int8_t)(x >> 8 * i);
    case TURING_U16: return (uint16_t)(x >> 16 * i);
    default: return (int16_t)(x >> 16 * i);
    }
}

/* Dot product of four bytes, or of two halfwords with two bytes. */
static void op_idp(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const turing_mods_t *m = &o->in->m;
    const bool four = m->type == TURING_U8 || m->type == TURING_S8;
    const uint32_t fc = flip(o, 2);
    EACH {
        t[l] = (c[l] ^ fc) + (fc & 1);
        for (int i = 0; i < (four ? 4 : 2); i++)
            t[l] += (uint32_t)part(a[l], m->type, i) * (uint32_t)part(b[l], m->stype, four ? i : i + 2 * m->hi);
    }
    put(w, o->d, t, on);
}

/* ---- logic and shifts --------------------------------------------------------------- */

LANEWISE(op_and, a[l] & b[l])
LANEWISE(op_or, a[l] | b[l])
LANEWISE(op_xor, a[l] ^ b[l])

/* Bit i of the table is the result where (a, b, c), a highest, reads i. */
static inline uint32_t lut3(uint32_t a, uint32_t b, uint32_t c, const uint32_t on[8])
{
    return (on[0] & ~a & ~b & ~c) | (on[1] & ~a & ~b & c) | (on[2] & ~a & b & ~c) | (on[3] & ~a & b & c) |
           (on[4] & a & ~b & ~c) | (on[5] & a & ~b & c) | (on[6] & a & b & ~c) | (on[7] & a & b & c);
}

static void lut_masks(unsigned lut, uint32_t on[8])
{
    for (int i = 0; i < 8; i++)
        on[i] = lut >> i & 1 ? ~0u : 0;
}

static void op_lop3(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    uint32_t mask[8], any = 0;
    lut_masks(o->in->m.lut, mask);
    EACH
        t[l] = lut3(a[l], b[l], c[l], mask);
    if (o->pdst[0] != PRED_SINK) {
        EACH
            any |= (uint32_t)(t[l] != 0) << l;
        put_pred(w, o->pdst[0], o->in->m.aux ? any & pred(w, o, 0) : any | pred(w, o, 0), on);
    }
    put(w, o->d, t, on);
}

static void op_plop3(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t a = pred(w, o, 0), b = pred(w, o, 1), c = pred(w, o, 2), mask[8];
    lut_masks(o->in->m.lut, mask);
    uint32_t first = lut3(a, b, c, mask);
    lut_masks(o->in->m.lut2, mask);
    put_pred(w, o->pdst[1], lut3(a, b, c, mask), on);
    put_pred(w, o->pdst[0], first, on);
}

/* Shifts the pair c:a by b.  A count past the width gives zeros or signs. */
static void op_shf(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const turing_mods_t *m = &o->in->m;
    const bool wide = m->type == TURING_S64 || m->type == TURING_U64;
    const bool arithmetic = m->type == TURING_S64 || m->type == TURING_S32;
    const uint32_t limit = wide ? 64 : 32, wrap = limit - 1;
    EACH {
        uint64_t v = (uint64_t)c[l] << 32 | a[l];
        uint32_t s = m->wrap ? b[l] & wrap : b[l] > limit ? limit : b[l];
        uint64_t fill = arithmetic && v >> 63 ? ~UINT64_C(0) : 0;
        if (m->right)
            v = s == 0 ? v : s > 63 ? fill : v >> s | fill << (64 - s);
        else
            v = s > 63 ? 0 : v << s;
        t[l] = (uint32_t)(m->hi ? v >> 32 : v);
    }
    put(w, o->d, t, on);
}

static void op_shl32(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t s = b[0];
    EACH
        t[l] = a[l] << s;
    put(w, o->d, t, on);
}

static void op_shr32(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t s = b[0];
    EACH
        t[l] = c[l] >> s;
    put(w, o->d, t, on);
}

/* Byte selectors of the pair c:a, one nibble a byte; bit 3 spreads the sign. */
static uint32_t selector(uint32_t control, unsigned mode)
{
    uint32_t i = control & 3;
    switch (mode) {
    case 1: return i | (i + 1) << 4 | (i + 2) << 8 | (i + 3) << 12;                   /* F4E  */
    case 2: return i | ((i - 1) & 7) << 4 | ((i - 2) & 7) << 8 | ((i - 3) & 7) << 12; /* B4E  */
    case 3: return i * 0x1111;                                                        /* RC8  */
    case 4: return i | (i > 1 ? i : 1) << 4 | (i > 2 ? i : 2) << 8 | 3 << 12;         /* ECL  */
    case 5: return 0 | (i < 1 ? i : 1) << 4 | (i < 2 ? i : 2) << 8 | i << 12;         /* ECR  */
    case 6: return i & 1 ? 0x3232 : 0x1010;                                           /* RC16 */
    default: return control;
    }
}

static void op_prmt(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    EACH {
        uint64_t v = (uint64_t)c[l] << 32 | a[l];
        uint32_t s = selector(b[l], o->in->m.func), r = 0;
        for (int i = 0; i < 4; i++) {
            uint32_t n = s >> 4 * i & 15, byte = (uint32_t)(v >> 8 * (n & 7)) & 255;
            if (n & 8)
                byte = byte & 128 ? 255 : 0;
            r |= byte << 8 * i;
        }
        t[l] = r;
    }
    put(w, o->d, t, on);
}

static void op_sgxt(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    EACH {
        uint32_t bits = o->in->m.wrap ? b[l] & 31 : b[l] > 32 ? 32 : b[l], v = a[l];
        if (bits == 0)
            v = 0;
        else if (bits < 32) {
            v <<= 32 - bits;
            v = o->in->m.is_signed ? (uint32_t)((int32_t)v >> (32 - bits)) : v >> (32 - bits);
        }
        t[l] = v;
    }
    put(w, o->d, t, on);
}

static void op_bmsk(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const bool wrap = o->in->m.wrap;
    EACH {
        uint32_t pos = wrap ? a[l] & 31 : a[l] > 32 ? 32 : a[l], width = wrap ? b[l] & 31 : b[l] > 32 ? 32 : b[l];
        uint64_t mask = ((UINT64_C(1) << width) - 1) << pos;
        t[l] = (uint32_t)mask;
    }
    put(w, o->d, t, on);
}

LANEWISE(op_iabs, (int32_t)a[l] < 0 ? 0u - a[l] : a[l])

static void op_sel(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t p = pred(w, o, 0);
    EACH
        t[l] = p >> l & 1 ? a[l] : b[l];
    put(w, o->d, t, on);
}

/* |a - b| + c */
static void op_vabsdiff(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t bias = o->in->m.is_signed ? UINT32_C(1) << 31 : 0;
    EACH
        t[l] = ((a[l] ^ bias) > (b[l] ^ bias) ? a[l] - b[l] : b[l] - a[l]) + c[l];
    put(w, o->d, t, on);
}

/* The same of bytes, without c; .ACC: their sum, and c. */
static void op_vabsdiff4(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t bias = o->in->m.is_signed ? 0x80 : 0;
    EACH {
        uint32_t r = o->in->m.aux ? c[l] : 0;
        for (int k = 0; k < 4; k++) {
            const uint32_t x = (a[l] >> 8 * k & 255) ^ bias, y = (b[l] >> 8 * k & 255) ^ bias,
                           d = x > y ? x - y : y - x;
            r += o->in->m.aux ? d : d << 8 * k;
        }
        t[l] = r;
    }
    put(w, o->d, t, on);
}

static uint32_t saturate(int32_t x, unsigned type)
{
    switch (type) {
    case TURING_U8: return x < 0 ? 0 : x > 255 ? 255 : (uint32_t)x;
    case TURING_S8: return (uint32_t)(x < -128 ? -128 : x > 127 ? 127 : x) & 0xff;
    case TURING_U16: return x < 0 ? 0 : x > 65535 ? 65535 : (uint32_t)x;
    default: return (uint32_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x) & 0xffff;
    }
}

/* An integer, narrowed: its bits, whose sign another instruction spreads. */
LANEWISE(op_i2i, saturate((int32_t)a[l], o->in->m.type))

/* Two integers, narrowed, the second one lowest; above bytes the lower half of c, or its upper one (.H1). */
static void op_i2ip(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const unsigned type = o->in->m.type, width = type == TURING_U8 || type == TURING_S8 ? 8 : 16;
    EACH
        t[l] = saturate((int32_t)b[l], type) | saturate((int32_t)a[l], type) << width |
               (width == 16   ? 0
                : o->in->m.hi ? c[l] & 0xffff0000u
                              : c[l] << 16);
    put(w, o->d, t, on);
}

/* Its own code address. */
static void op_lepc(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], zero[LANES] = {0};
    EACH
        t[l] = o->in->addr;
    put(w, o->d, t, on);
    put(w, o->d + 1u, zero, on);
}

static void op_imnmx(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const uint32_t p = pred(w, o, 0), bias = o->in->m.is_signed ? 0x80000000u : 0;
    EACH {
        bool less = (a[l] ^ bias) < (b[l] ^ bias), want_less = p >> l & 1;
        t[l] = less == want_less ? a[l] : b[l];
    }
    put(w, o->d, t, on);
}

static uint32_t popcount(uint32_t x)
{
    uint32_t n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static uint32_t reverse(uint32_t x)
{
    uint32_t r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1) << (31 - i);
    return r;
}

/* Position of the highest set bit, or its distance from bit 31; ~0 if none. */
static uint32_t leading(uint32_t x, bool is_signed, bool shift)
{
    if (is_signed && x >> 31)
        x = ~x;
    if (!x)
        return ~0u;
    uint32_t n = 31;
    while (!(x >> n))
        n--;
    return shift ? 31 - n : n;
}

LANEWISE(op_popc, popcount(a[l] ^ flip(o, 0)))
LANEWISE(op_brev, reverse(a[l]))

static void op_flo(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    uint32_t found = 0;
    EACH {
        t[l] = leading(a[l] ^ flip(o, 0), o->in->m.is_signed, o->in->m.sh);
        found |= (uint32_t)(t[l] != ~0u) << l;
    }
    put(w, o->d, t, on);
    put_pred(w, o->pdst[0], found, on);
}

/* ---- comparisons ------------------------------------------------------------------------ */

static void op_isetp(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    (void)t;
    const turing_mods_t *m = &o->in->m;
    const uint32_t bias = m->is_signed ? 0x80000000u : 0, combine = pred(w, o, 0);
    uint32_t less = 0, equal = 0;
    EACH {
        less |= (uint32_t)((a[l] ^ bias) < (b[l] ^ bias)) << l;
        equal |= (uint32_t)(a[l] == b[l]) << l;
    }
    /* .EX compares upper words: where they are equal the lower ones, compared
     * before, decide. */
    uint32_t hit = (m->cmp & TURING_CMP_LT ? less : 0) | (m->cmp & TURING_CMP_GT ? ~less & ~equal : 0);
    if (m->x)
        hit |= equal & pred(w, o, 1);
    else
        hit |= m->cmp & TURING_CMP_EQ ? equal : 0;
    uint32_t miss = ~hit;
    if (m->bop == TURING_BOP_AND) {
        hit &= combine;
        miss &= combine;
    } else if (m->bop == TURING_BOP_OR) {
        hit |= combine;
        miss |= combine;
    } else {
        hit ^= combine;
        miss ^= combine;
    }
    put_pred(w, o->pdst[0], hit, on);
    put_pred(w, o->pdst[1], miss, on);
}

/* ---- selection --------------------------------------------------------------------------------------- */

static bool any_sign(const turing_insn_t *in)
{
    return in->src[0].neg || in->src[1].neg || in->src[2].neg || in->src[0].inv || in->src[1].inv || in->src[2].inv;
}

static bool small_immediate(const turing_operand_t *s)
{
    return s->kind == TURING_IMM && s->imm < 32;
}

void emu_select_alu(op_t *o)
{
    const turing_insn_t *in = o->in;
    const turing_mods_t *m = &in->m;
    const bool no_carry_out = o->pdst[0] == PRED_SINK && o->pdst[1] == PRED_SINK;
    switch (in->op) {
    case TURING_MOV: o->fn = m->mask == 15 ? op_mov : NULL; break;
    case TURING_UMOV: o->fn = op_mov; break;
    case TURING_IADD3:
    case TURING_UIADD3: o->fn = !m->x && no_carry_out && !any_sign(in) ? op_iadd3_plain : op_iadd3; break;
    case TURING_LEA:
    case TURING_ULEA: o->fn = op_lea; break;
    case TURING_IMAD:
    case TURING_UIMAD: o->fn = m->x || any_sign(in) ? op_imad : op_imad_plain; break;
    case TURING_IMAD_WIDE:
    case TURING_UIMAD_WIDE: o->fn = op_imad_wide; break;
    case TURING_IMAD_HI:
    case TURING_UIMAD_HI: o->fn = op_imad_hi; break;
    case TURING_IDP: o->fn = op_idp; break;
    case TURING_LOP3:
    case TURING_ULOP3:
        if (o->pdst[0] == PRED_SINK && in->src[2].kind != TURING_IMM) {
            if (m->lut == 0xc0)
                o->fn = op_and;
            else if (m->lut == 0xfc)
                o->fn = op_or;
            else if (m->lut == 0x3c)
                o->fn = op_xor;
        }
        if (!o->fn)
            o->fn = op_lop3;
        break;
    case TURING_PLOP3:
    case TURING_UPLOP3: o->fn = op_plop3; break;
    case TURING_SHF:
    case TURING_USHF:
        if (small_immediate(&in->src[1]) && !m->right && !m->hi)
            o->fn = op_shl32;
        else if (small_immediate(&in->src[1]) && m->right && m->hi && (m->type == TURING_U32 || m->type == TURING_U64))
            o->fn = op_shr32;
        else
            o->fn = op_shf;
        break;
    case TURING_PRMT:
    case TURING_UPRMT: o->fn = op_prmt; break;
    case TURING_SGXT:
    case TURING_USGXT: o->fn = op_sgxt; break;
    case TURING_BMSK:
    case TURING_UBMSK: o->fn = op_bmsk; break;
    case TURING_IABS: o->fn = op_iabs; break;
    case TURING_SEL:
    case TURING_USEL: o->fn = op_sel; break;
    case TURING_IMNMX: o->fn = op_imnmx; break;
    case TURING_POPC:
    case TURING_UPOPC: o->fn = op_popc; break;
    case TURING_BREV:
    case TURING_UBREV: o->fn = op_brev; break;
    case TURING_FLO:
    case TURING_UFLO: o->fn = op_flo; break;
    case TURING_ISETP:
    case TURING_UISETP: o->fn = op_isetp; break;
    case TURING_VABSDIFF: o->fn = no_carry_out ? op_vabsdiff : NULL; break;
    case TURING_VABSDIFF4: o->fn = no_carry_out ? op_vabsdiff4 : NULL; break;
    case TURING_I2I: o->fn = op_i2i; break;
    case TURING_I2IP: o->fn = op_i2ip; break;
    case TURING_LEPC: o->fn = op_lepc; break;
    default: break;
    }
}
