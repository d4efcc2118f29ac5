/* SPDX-License-Identifier: MIT */
/*
 * disasm.c - a turing_insn_t back to text, by the table of isa.def.
 *
 * It prints from the decoded fields, never from the 128 bits, so a field that
 * was decoded wrong shows in the text.
 */
#include "turing.h"

#include "isa.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    char *text;
    size_t used, size;
    bool form; /* kinds of operands instead of operands: turing_form() */
} writer_t;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(writer_t *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n < w->size - w->used ? (size_t)n : w->size - w->used - 1;
}

static void put_number(writer_t *w, unsigned v)
{
    if (w->form)
        put(w, "i");
    else
        put(w, "0x%x", v);
}

static void put_signed_hex(writer_t *w, int64_t v)
{
    if (w->form)
        put(w, "i");
    else
        put(w, "%s0x%llx", v < 0 ? "-" : "", v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v);
}

/* ---- numbers -------------------------------------------------------------------------- */

/* The digits are the exact decimal expansion cut at 20 places after the first,
 * as the vendor's tool prints them. */
static void put_float(writer_t *w, double x, bool negative, bool quiet)
{
    if (isnan(x))
        put(w, "%c%cNAN ", negative ? '-' : '+', quiet ? 'Q' : 'S');
    else if (isinf(x))
        put(w, "%cINF ", negative ? '-' : '+');
    else if (x == 0)
        put(w, negative ? "-0.0 " : "0");
    else
        put(w, fabs(x) < 1e9 ? "%.20g" : "%.20e", x);
}

static void put_f32(writer_t *w, uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    put_float(w, (double)f, bits >> 31, bits >> 22 & 1);
}

static void put_f64_high(writer_t *w, uint32_t high)
{
    uint64_t bits = (uint64_t)high << 32;
    double d;
    memcpy(&d, &bits, sizeof d);
    put_float(w, d, high >> 31, high >> 19 & 1);
}

static void put_f16(writer_t *w, uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 1023);
    double x = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    put_float(w, bits >> 15 & 1 ? -x : x, bits >> 15 & 1, bits >> 9 & 1);
}

/* ---- operands -------------------------------------------------------------------------- */

static void put_reg(writer_t *w, bool uniform, unsigned reg)
{
    if (w->form)
        put(w, uniform ? "UR" : "R");
    else if (reg == (uniform ? TURING_URZ : TURING_RZ))
        put(w, uniform ? "URZ" : "RZ");
    else
        put(w, uniform ? "UR%u" : "R%u", reg);
}

static void put_pred(writer_t *w, const turing_pred_t *p)
{
    put(w, "%s%s", p->neg && !w->form ? "!" : "", p->uniform ? "U" : "");
    if (w->form)
        put(w, "P");
    else if (p->reg == TURING_PT)
        put(w, "PT");
    else
        put(w, "P%u", p->reg);
}

static void put_immediate(writer_t *w, const turing_operand_t *o, char how)
{
    if (w->form) {
        put(w, "i");
        return;
    }
    switch (how) {
    case 'i': put_signed_hex(w, (int32_t)o->imm); break;
    case 'f': put_f32(w, o->imm); break;
    case 'F': put_f64_high(w, o->imm); break;
    case 'H':
        put_f16(w, o->imm >> 16);
        put(w, ", ");
        put_f16(w, o->imm & 0xffff);
        break;
    default: put(w, "0x%x", o->imm); break;
    }
}

static void put_source(writer_t *w, const turing_insn_t *in, const turing_operand_t *o, const isa_element_t *e)
{
    static const char *const halves[] = {"", ".F32", ".H0_H0", ".H1_H1"};
    static const char *const bytes[] = {"", ".B1", ".B2", ".B3"};
    if (o->kind == TURING_IMM) {
        bool high_word =
            in->op == TURING_MUFU && (in->m.func == TURING_MUFU_RCP64H || in->m.func == TURING_MUFU_RSQ64H);
        const bool of_double = high_word || (e->imm == 'f' && in->m.stype == TURING_F64);
        if (e->imm == 'f' && in->m.stype == TURING_F16 && !w->form)
            put_f16(w, o->imm & 0xffff);
        else
            put_immediate(w, o, of_double ? 'F' : e->imm);
        return;
    }
    bool byte = in->m.stype == TURING_U8 || in->m.stype == TURING_S8;
    bool word = in->m.stype == TURING_U16 || in->m.stype == TURING_S16 || in->m.stype == TURING_F16;
    bool parts = e->half || (e->sub && (byte || word));
    const char *part = e->half ? halves[o->sel & 3] : parts && o->sel ? (byte ? bytes[o->sel & 3] : ".H1") : "";
    /* The bars close behind the part of the register, except where a reuse
     * mark could come between. */
    bool inside = !e->half || o->kind != TURING_REG;
    put(w, "%s%s%s", o->inv ? "~" : "", o->neg ? "-" : "", o->abs ? "|" : "");
    if (o->kind == TURING_CONST && w->form)
        put(w, "c");
    else if (o->kind == TURING_CONST) {
        put(w, parts ? "c[0x%x] [" : "c[0x%x][", o->bank);
        put_signed_hex(w, (int16_t)o->imm);
        put(w, "]");
    } else
        put_reg(w, o->kind == TURING_UREG, o->reg);
    put(w, "%s%s%s%s", inside ? part : "", o->abs ? "|" : "", o->reuse && !w->form ? ".reuse" : "", inside ? "" : part);
}

static void put_indexed_constant(writer_t *w, const turing_operand_t *o)
{
    int offset = w->form ? 0 : (int16_t)o->imm;
    if (w->form && o->kind != TURING_BINDLESS) {
        put(w, o->kind == TURING_CONST ? "c" : o->kind == TURING_CONST_R ? "c[R]" : "c[UR]");
        return;
    }
    if (o->kind == TURING_BINDLESS) {
        put(w, "cx[");
        put_reg(w, true, o->reg);
        put(w, "][");
    } else {
        put(w, "c[0x%x][", o->bank);
        if (o->kind != TURING_CONST)
            put_reg(w, o->kind == TURING_CONST_UR, o->reg);
        if (o->kind != TURING_CONST && offset)
            put(w, "+");
    }
    if (offset || o->kind == TURING_CONST || o->kind == TURING_BINDLESS)
        put_signed_hex(w, offset);
    put(w, "]");
}

static void put_address(writer_t *w, const turing_insn_t *in, const isa_mem_t *k)
{
    const turing_mem_t *m = &in->mem;
    bool uniform = m->uniform_words != 0;
    bool base = m->base != TURING_RZ || (uniform && m->scale);
    put(w, "[");
    if (base) {
        put_reg(w, false, m->base);
        if (m->scale)
            put(w, ".X%u", 1u << m->scale);
        if (uniform && k->wide_lo)
            put(w, m->base_words == 2 ? ".64" : ".U32");
    }
    if (uniform) {
        put(w, base ? "+" : "");
        put_reg(w, true, m->uniform);
    }
    if (base || uniform) {
        if (m->offset && !w->form) {
            put(w, "+");
            put_signed_hex(w, in->op == TURING_LDSM && !base ? m->offset & 0xffffff : m->offset);
        }
    } else if (w->form)
        put(w, "i");
    else if (m->offset)
        put(w, "0x%x", k->width == 32 ? (uint32_t)m->offset : (uint32_t)m->offset & 0xffffff);
    else
        put(w, "RZ");
    put(w, "]");
}

/* IMAD stands in for simpler operations; the tool names what it does. */
static const char *imad_alias(const turing_insn_t *in)
{
    const turing_operand_t *a = &in->src[0], *b = &in->src[1], *c = &in->src[2];
    uint32_t imm = b->kind == TURING_IMM ? b->imm : 3;
    if (b->kind == TURING_UREG || c->kind == TURING_UREG)
        return "";
    bool a_zero = a->reg == TURING_RZ, b_zero = (b->kind == TURING_REG && b->reg == TURING_RZ) || imm == 0;
    bool c_zero = c->kind == TURING_REG && c->reg == TURING_RZ;
    if (a_zero || b_zero || (imm == 1 && c_zero))
        return ".MOV";
    if (imm == 1)
        return ".IADD";
    if (c_zero && imm < 0x80000000 && imm != 0x10000 && !(imm & (imm - 1)))
        return ".SHL";
    return "";
}

static void put_operand(writer_t *w, const turing_insn_t *in, const isa_element_t *e, unsigned *src, unsigned *pdst,
                        unsigned *psrc)
{
    static const char *const lane_signs[] = {"PP", "PN", "NP", "ZP"};
    const turing_pred_t *p;
    const turing_operand_t *o;
    switch (e->place) {
    case 'p':
        p = &in->pdst[(*pdst)++];
        if (!e->hide || p->reg != TURING_PT)
            put_pred(w, p);
        return;
    case 'q':
        p = &in->psrc[(*psrc)++];
        if (!e->hide || p->reg != TURING_PT || p->neg)
            put_pred(w, p);
        return;
    case 'n':
        p = &in->psrc[(*psrc)++];
        if (p->reg != TURING_PT)
            put_pred(w, p);
        return;
    case 'm': put_address(w, in, turing_isa_mem(e->mem)); return;
    case 't': put_signed_hex(w, in->target); return;
    case 'o': put_signed_hex(w, in->target - in->addr - TURING_INSN_BYTES); return;
    case 'T':
    case 'A':
        if (!e->hide || in->target)
            put_signed_hex(w, in->target);
        return;
    case ISA_LUT: put_number(w, in->m.lut); return;
    case ISA_ALIAS: put(w, "%s", w->form ? "" : imad_alias(in)); return;
    case ISA_SET:
        if (w->form) {
            put(w, "i");
            return;
        }
        for (int i = 5, first = 1; i >= 0; i--)
            if (in->m.mask >> i & 1) {
                put(w, "%s%d", first ? "{" : ",", i);
                first = 0;
            }
        put(w, in->m.mask ? "}" : "");
        return;
    case ISA_SWZ:
        if (w->form) {
            put(w, "i");
            return;
        }
        for (int i = 6; i >= 0; i -= 2)
            put(w, "%s", lane_signs[in->m.mask >> i & 3]);
        return;
    default: break;
    }
    o = e->place == 'd' || e->is_dst ? &in->dst : &in->src[(*src)++];
    if (e->hide &&
        ((o->kind == TURING_UREG && o->reg == TURING_URZ) || (o->kind == TURING_REG && o->reg == TURING_RZ) ||
         (o->kind == TURING_IMM && o->imm == (in->op == TURING_R2P ? 0xff : 0))))
        return;
    switch (o->kind) {
    case TURING_BARRIER: put(w, w->form ? "B" : "B%u", o->reg); return;
    case TURING_STATE: put(w, "%s", turing_isa_state_name(o->reg)); return;
    default: break;
    }
    if (e->place == 'k' || e->place == 'K')
        put_indexed_constant(w, o);
    else
        put_source(w, in, o, e);
}

static void put_field(writer_t *w, const turing_insn_t *in, const isa_field_t *f)
{
    uint8_t value = *((const uint8_t *)&in->m + f->member);
    if (!f->values || (w->form && !strcmp(f->name, "sb")))
        put_number(w, value);
    else
        for (const isa_value_t *v = f->values; v->text; v++)
            if (v->value == value) {
                put(w, "%s", v->text);
                return;
            }
}

static size_t print(const turing_insn_t *in, bool form, char text[TURING_TEXT_MAX])
{
    writer_t w = {text, 0, TURING_TEXT_MAX, form};
    const isa_row_t *rows;
    text[0] = 0;
    if (in->row >= turing_isa_rows(&rows))
        return 0;

    if (!form && (in->guard.reg != TURING_PT || in->guard.neg)) {
        put(&w, "@");
        put_pred(&w, &in->guard);
        put(&w, " ");
    }

    /* Everything up to the first space is the mnemonic; behind it stand operands,
     * of which the empty ones vanish with their comma. */
    unsigned src = 0, pdst = 0, psrc = 0;
    size_t item = 0; /* where the current operand began            */
    bool operands = false;
    const char *f = rows[in->row].format;
    isa_element_t e;
    while ((e = turing_isa_next(&f)).kind != ISA_END)
        switch (e.kind) {
        case ISA_FIELD: put_field(&w, in, e.field); break;
        case ISA_OPERAND: put_operand(&w, in, &e, &src, &pdst, &psrc); break;
        case ISA_TEXT:
            for (size_t i = 0; i < e.length; i++) {
                char c = e.text[i];
                if (c == ',' && w.used == item) {
                    i++; /* nothing was printed: drop ", " */
                    continue;
                }
                put(&w, "%c", c);
                if (c == ' ' && (!operands || (i && e.text[i - 1] == ','))) {
                    operands = true;
                    item = w.used;
                }
            }
            break;
        default: break;
        }
    while (w.used && (text[w.used - 1] == ' ' || text[w.used - 1] == ','))
        text[--w.used] = 0;
    return w.used;
}

size_t turing_disasm(const turing_insn_t *in, char text[TURING_TEXT_MAX])
{
    return print(in, false, text);
}

size_t turing_form(const turing_insn_t *in, char text[TURING_TEXT_MAX])
{
    return print(in, true, text);
}

size_t turing_disasm_control(const turing_insn_t *in, char text[TURING_TEXT_MAX])
{
    const turing_control_t *c = &in->ctl;
    writer_t w = {text, 0, TURING_TEXT_MAX, false};
    text[0] = 0;
    for (unsigned i = 0; i < 6; i++)
        put(&w, "%c", c->wait >> i & 1 ? (char)('0' + i) : '-');
    put(&w, ":%c:%c:%c:%02u", c->rbarrier == 7 ? '-' : (char)('0' + c->rbarrier),
        c->wbarrier == 7 ? '-' : (char)('0' + c->wbarrier), c->yield ? 'Y' : '-', c->stall);
    return w.used;
}
