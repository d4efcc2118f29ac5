/* SPDX-License-Identifier: MIT */
/*
 * decode.c - 128 bits to a turing_insn_t, by the table of isa.def.
 *
 * Every piece of a row's format claims bits.  A row fits when its fixed bits
 * hold; it decodes when, besides, every field has a known value and no bit is
 * left over that is set.  Nothing is skipped silently.
 */
#include "turing.h"

#include "isa.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool turing_fail(turing_error_t *err, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return false;
}

/* One attempt to read an instruction by one row. */
typedef struct attempt {
    turing_insn_t *insn;
    const uint64_t *raw;
    uint64_t seen[2]; /* bits accounted for */
    unsigned form;
    unsigned n_pdst, n_psrc;
    turing_error_t *err;
} attempt_t;

static uint64_t take(attempt_t *t, unsigned lo, unsigned width)
{
    for (unsigned i = lo; i < lo + width; i++)
        t->seen[i / 64] |= UINT64_C(1) << (i % 64);
    return turing_isa_bits(t->raw, lo, width);
}

static int64_t take_signed(attempt_t *t, unsigned lo, unsigned width)
{
    uint64_t v = take(t, lo, width);
    uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)((v ^ sign) - sign);
}

static bool uniform_form(const attempt_t *t)
{
    return turing_isa_bits(t->raw, ISA_UNIFORM_BIT, 1);
}

/* Only opcodes of fixed latency read through the ports that have a reuse bit. */
static bool fixed_latency(turing_op_t op)
{
    switch (turing_op_pipe(op)) {
    case TURING_PIPE_XU:
    case TURING_PIPE_LSU:
    case TURING_PIPE_TEX:
    case TURING_PIPE_CONTROL: return op == TURING_NOP || op == TURING_DEPBAR || op == TURING_ERRBAR;
    default: return op != TURING_MOVM;
    }
}

/* ---- operands --------------------------------------------------------------------- */

/* Until the modifiers are known, `n` of an operand holds its count letter. */
static uint8_t words(const turing_insn_t *insn, uint8_t letter)
{
    static const uint8_t by_type[TURING_TYPE_COUNT] = {
        [TURING_U8] = 1,  [TURING_S8] = 1,   [TURING_U16] = 1,   [TURING_S16] = 1,   [TURING_U32] = 1, [TURING_S32] = 1,
        [TURING_U64] = 2, [TURING_S64] = 2,  [TURING_F16] = 1,   [TURING_F32] = 1,   [TURING_F64] = 2, [TURING_B32] = 1,
        [TURING_B64] = 2, [TURING_B128] = 4, [TURING_F16X2] = 1, [TURING_BU128] = 4, [TURING_U4] = 1,  [TURING_S4] = 1,
    };
    switch (letter) {
    case 'P': return 2;
    case 'm':
    case 'W': return by_type[insn->m.type];
    case 'V': return by_type[insn->m.stype];
    case 'M': return insn->m.f32 ? 4 : 2;
    case 'C': return insn->m.count;
    case 'D': return insn->m.aux ? 1 : 2; /* CS2R.32 */
    case 'N': return insn->m.aux ? 2 : 1; /* MATCH.U64 */
    default: return 1;
    }
}

static void constant(attempt_t *t, turing_operand_t *o, bool byte_offset)
{
    o->bank = (uint8_t)take(t, 54, 5);
    o->imm = byte_offset ? (uint32_t)take(t, 38, 16) : (uint32_t)take(t, 40, 14) << 2;
}

static void source_bits(attempt_t *t, const isa_element_t *e, turing_operand_t *o, isa_place_t p)
{
    /* bits of (negate or complement, absolute, half selector) by register field */
    unsigned neg = 63, abs = 62, sel = 60;
    if (p.lo == 24)
        neg = 72, abs = 73, sel = 74;
    else if (p.lo == 64)
        neg = e->half ? 84 : 75, abs = e->half ? 83 : 74, sel = 81;
    if (e->neg)
        o->neg = (uint8_t)take(t, neg, 1);
    if (e->inv)
        o->inv = (uint8_t)take(t, neg, 1);
    if (e->abs)
        o->abs = (uint8_t)take(t, abs, 1);
    if (e->half || e->sub)
        o->sel = (uint8_t)take(t, sel, 2);
}

static void source(attempt_t *t, const isa_element_t *e, turing_operand_t *o)
{
    isa_place_t p = turing_isa_place(e, t->form);
    switch (p.what) {
    case ISA_AT_REG:
        o->kind = TURING_REG;
        o->reg = (uint8_t)take(t, p.lo, 8);
        if (e->place != 'r' && fixed_latency(t->insn->op)) {
            o->slot = e->place == 'a' ? 0 : e->place == 'b' || e->place == 'e' ? 1 : 2;
            o->reuse = (uint8_t)turing_isa_bits(t->raw, 122u + o->slot, 1);
        }
        break;
    case ISA_AT_UREG:
        o->kind = TURING_UREG;
        o->reg = (uint8_t)take(t, p.lo, 6);
        break;
    case ISA_AT_IMM:
        o->kind = TURING_IMM;
        o->imm = (uint32_t)take(t, 32, 32);
        return;
    case ISA_AT_CONST:
        o->kind = TURING_CONST;
        constant(t, o, false);
        break;
    }
    source_bits(t, e, o, p);
}

static bool address(attempt_t *t, const isa_element_t *e)
{
    turing_mem_t *m = &t->insn->mem;
    const isa_mem_t *k = turing_isa_mem(e->mem);
    bool uniform = uniform_form(t);
    bool wide = k->wide_lo && t->insn->m.aux; /* .E */
    m->present = 1;
    m->base = (uint8_t)take(t, 24, 8);
    m->base_words = wide ? 2 : 1;
    m->uniform = TURING_URZ;
    if (uniform) {
        m->uniform = (uint8_t)take(t, k->uniform_lo, 6);
        m->uniform_words = wide ? 2 : 1;
        if (k->wide_lo)
            m->base_words = take(t, k->wide_lo, 1) ? 2 : 1;
        if (m->base_words == 2 && !wide && m->base != TURING_RZ)
            return turing_fail(t->err, "a 64-bit base register without a 64-bit address");
    }
    if (k->width == 32 && uniform)
        m->offset = (int32_t)take_signed(t, 40, 24);
    else
        m->offset = (int32_t)take_signed(t, k->offset_lo, k->width);
    if (k->scale_lo) {
        unsigned s = (unsigned)take(t, k->scale_lo, 2);
        m->scale = (uint8_t)(s ? s + 1 : 0);
    }
    return true;
}

static bool state(attempt_t *t, const isa_element_t *e, turing_operand_t *o)
{
    o->reg = (uint8_t)take(t, e->lo, e->width);
    o->kind = o->reg < 16 ? TURING_BARRIER : TURING_STATE;
    if (o->reg >= 16 && !turing_isa_state_name(o->reg))
        return turing_fail(t->err, "unknown warp state %u", o->reg);
    return true;
}

static bool operand(attempt_t *t, const isa_element_t *e)
{
    turing_insn_t *in = t->insn;
    turing_pred_t *p;
    turing_operand_t *o = e->is_dst || e->place == 'd' ? &in->dst : &in->src[in->n_src];
    bool ok = true;
    switch (e->place) {
    case 'p':
        p = &in->pdst[t->n_pdst++];
        *p = (turing_pred_t){(uint8_t)take(t, e->lo, 3), 0, e->uniform, 1};
        return true;
    case 'q':
        p = &in->psrc[t->n_psrc++];
        *p = (turing_pred_t){(uint8_t)take(t, e->lo, 3), (uint8_t)take(t, e->lo + 3u, 1), e->uniform, 1};
        if (e->either)
            p->uniform = (uint8_t)take(t, e->lo - 1u, 1);
        return true;
    case 'n':
        p = &in->psrc[t->n_psrc++];
        *p = (turing_pred_t){(uint8_t)(7 - take(t, e->lo, 3)), 0, 0, 1};
        return true;
    case 'm': return address(t, e);
    case 't':
    case 'o': in->target = (int64_t)in->addr + TURING_INSN_BYTES + 4 * take_signed(t, e->lo, e->width); return true;
    case 'T': in->target = (int64_t)(take(t, e->lo, e->width) << 2); return true;
    case 'A': in->target = 4 * take_signed(t, e->lo, e->width); return true;
    case ISA_SET: in->m.mask = (uint8_t)take(t, 32, 6); return true;
    case ISA_LUT: in->m.lut = (uint8_t)(take(t, 64, 3) | take(t, 72, 5) << 3); return true;
    case ISA_SWZ: in->m.mask = (uint8_t)take(t, 32, 8); return true;
    case ISA_ALIAS: return true;
    case 'd':
        o->kind = e->uniform ? TURING_UREG : TURING_REG;
        o->reg = (uint8_t)take(t, 16, e->uniform ? 6 : 8);
        break;
    case 'x':
        o->kind = TURING_IMM;
        o->imm = (uint32_t)take(t, e->lo, e->width);
        break;
    case 'B':
        o->kind = TURING_BARRIER;
        o->reg = (uint8_t)take(t, e->lo, e->width);
        break;
    case 'S': ok = state(t, e, o); break;
    case 'k':
        o->kind = e->uniform ? TURING_CONST_UR : TURING_CONST_R;
        o->reg = (uint8_t)take(t, 24, e->uniform ? 6 : 8);
        constant(t, o, true);
        if (!e->uniform && in->op == TURING_ULDC) /* ULDC c[][]: no index */
            o->kind = o->reg == 0 ? TURING_CONST : TURING_NONE;
        else if (!e->uniform && o->reg == TURING_RZ && o->imm)
            o->kind = TURING_CONST;
        break;
    case 'K':
        o->kind = TURING_BINDLESS;
        o->reg = (uint8_t)take(t, 24, 6);
        o->imm = (uint32_t)take(t, 38, 16);
        break;
    default: source(t, e, o); break;
    }
    o->n = (uint8_t)e->words;
    if (o == &in->src[in->n_src])
        in->n_src++;
    return ok;
}

/* ---- fields ------------------------------------------------------------------------- */

static bool field(attempt_t *t, const isa_field_t *f)
{
    uint8_t raw = (uint8_t)take(t, f->lo, f->width);
    uint8_t *member = (uint8_t *)&t->insn->m + f->member;
    if (!f->values) {
        *member = raw;
        return true;
    }
    for (const isa_value_t *v = f->values; v->text; v++)
        if (v->raw == raw) {
            *member = v->value;
            return true;
        }
    return turing_fail(t->err, "value %u of bits %u-%u (%s)", raw, f->lo, f->lo + f->width - 1u, f->name);
}

static bool control(attempt_t *t)
{
    turing_control_t *c = &t->insn->ctl;
    c->stall = (uint8_t)take(t, 105, 4);
    c->yield = !take(t, 109, 1);
    c->wbarrier = (uint8_t)take(t, 110, 3);
    c->rbarrier = (uint8_t)take(t, 113, 3);
    c->wait = (uint8_t)take(t, 116, 6);
    c->reuse = (uint8_t)take(t, 122, 3);
    /* scoreboards are 0..5 */
    return (c->wbarrier != 6 && c->rbarrier != 6) || turing_fail(t->err, "scoreboard 6 in bits 110-115");
}

/* What single fields cannot say. */
static bool consistent(attempt_t *t)
{
    turing_insn_t *in = t->insn;
    if (in->m.ftz && in->m.dnz)
        return turing_fail(t->err, "bits 76 and 80 (.FMZ and .FTZ) together");
    if (in->op == TURING_HMMA_884 && !in->m.f32 && (in->m.aux || in->m.func > 1))
        return turing_fail(t->err, "bits 78-80, an accumulator that HMMA.884 does not have");
    if (in->op == TURING_ULDC && in->src[0].kind == TURING_NONE)
        return turing_fail(t->err, "bits 24-31 set");
    if (in->op == TURING_ATOMS_CAS && in->m.conv && !in->m.func)
        return turing_fail(t->err, "bit 88 (.SPIN) without .CAST");
    bool small = in->m.stype < TURING_U32; /* bytes and halfwords */
    if (in->op == TURING_I2F && in->src[0].kind == TURING_IMM && small)
        return turing_fail(t->err, "bits 84-85, a type that an immediate cannot have");
    if (in->op == TURING_F2F && in->m.type == in->m.stype)
        return turing_fail(t->err, "bits 75-76 and 84-85, a conversion to the same type");
    if (in->op == TURING_F2I || in->op == TURING_I2F) {
        bool wide = in->m.type == TURING_F64 || in->m.type == TURING_U64 || in->m.type == TURING_S64 ||
                    in->m.stype == TURING_F64 || in->m.stype == TURING_U64 || in->m.stype == TURING_S64;
        if (wide != ((in->raw[0] & 0x1ff) >= 0x110))
            return turing_fail(t->err, "bits 75-76 and 84-85, types of another opcode");
    }
    unsigned ports = 0;
    for (unsigned i = 0; i < in->n_src; i++)
        if (in->src[i].kind == TURING_REG && in->src[i].slot < 3)
            ports |= 1u << in->src[i].slot;
    if (fixed_latency(in->op) ? in->ctl.reuse & ~ports : in->ctl.reuse > 5)
        return turing_fail(t->err, "reuse bits 122-124 (%u)", in->ctl.reuse);
    for (unsigned i = 0; i < in->n_src; i++) {
        turing_operand_t *o = &in->src[i];
        unsigned limit = in->m.stype == TURING_F16 || in->m.stype == TURING_U16 || in->m.stype == TURING_S16 ? 2
                         : in->m.stype == TURING_U8 || in->m.stype == TURING_S8                              ? 4
                                                                                                             : 1;
        bool sub = in->op == TURING_F2F || in->op == TURING_F2I || in->op == TURING_I2F || in->op == TURING_FRND;
        if (sub && o->sel >= limit)
            return turing_fail(t->err, "value %u of bits 60-61 (part of the source)", o->sel);
    }
    return true;
}

static void finish(attempt_t *t)
{
    static const uint8_t bytes[TURING_TYPE_COUNT] = {
        [TURING_U8] = 1,  [TURING_S8] = 1,  [TURING_U16] = 2,   [TURING_S16] = 2,   [TURING_U32] = 4,
        [TURING_S32] = 4, [TURING_U64] = 8, [TURING_S64] = 8,   [TURING_F32] = 4,   [TURING_F64] = 8,
        [TURING_B32] = 4, [TURING_B64] = 8, [TURING_B128] = 16, [TURING_F16X2] = 4, [TURING_BU128] = 16,
    };
    turing_insn_t *in = t->insn;
    in->dst.n = words(in, in->dst.n);
    for (unsigned i = 0; i < in->n_src; i++)
        in->src[i].n = words(in, in->src[i].n);
    if (in->mem.present) {
        in->mem.bytes = in->op == TURING_LDSM ? 16 : bytes[in->m.type];
        in->mem.is_signed = in->m.type == TURING_S8 || in->m.type == TURING_S16;
    }
}

/* ---- rows ------------------------------------------------------------------------------ */

typedef enum outcome { NO_MATCH, BAD, GOOD } outcome_t;

static outcome_t try_row(turing_insn_t *insn, const isa_row_t *row, uint16_t index, turing_error_t *err)
{
    uint64_t raw[2] = {insn->raw[0], insn->raw[1]};
    attempt_t t = {.insn = insn, .raw = raw, .form = (unsigned)(raw[0] >> 9 & 7), .err = err};
    *insn = (turing_insn_t){.op = row->op, .row = index, .addr = insn->addr, .raw = {raw[0], raw[1]}};
    insn->mem.base = TURING_RZ;
    insn->mem.uniform = TURING_URZ;
    for (unsigned i = 0; i < TURING_SRC_MAX; i++)
        insn->src[i].slot = 255;
    insn->dst.slot = 255;

    const char *f = row->format;
    isa_element_t e;
    while ((e = turing_isa_next(&f)).kind == ISA_FIXED)
        if (take(&t, e.lo, e.width) != e.value)
            return NO_MATCH;

    take(&t, 0, 12);
    take(&t, ISA_UNIFORM_BIT, 1);
    bool uniform_guard =
        (turing_op_pipe(row->op) == TURING_PIPE_UNIFORM && row->op != TURING_VOTEU) || row->op == TURING_S2UR;
    insn->guard = (turing_pred_t){(uint8_t)take(&t, 12, 3), (uint8_t)take(&t, 15, 1), uniform_guard, 1};
    if (!control(&t))
        return BAD;

    for (; e.kind != ISA_END; e = turing_isa_next(&f))
        switch (e.kind) {
        case ISA_FIXED:
            if (take(&t, e.lo, e.width) != e.value)
                return NO_MATCH;
            break;
        case ISA_FIELD:
            if (!field(&t, e.field))
                return BAD;
            break;
        case ISA_RESERVED: {
            uint64_t v = take(&t, e.lo, e.width), ones = (UINT64_C(1) << e.width) - 1;
            if (v && v != ones && (e.width != 4 || v != TURING_PT)) {
                turing_fail(err, "value %u of unused bits %u-%u", (unsigned)v, e.lo, e.lo + e.width - 1u);
                return BAD;
            }
            break;
        }
        case ISA_OPERAND:
            if (!operand(&t, &e))
                return BAD;
            break;
        default: break;
        }

    char left[128] = "";
    size_t used = 0;
    for (unsigned i = 0; i < 128 && used + 8 < sizeof left; i++)
        if ((raw[i / 64] & ~t.seen[i / 64]) >> (i % 64) & 1)
            used += (size_t)snprintf(left + used, sizeof left - used, " %u", i);
    if (used) {
        turing_fail(err, "bits%s set", left);
        return BAD;
    }
    if (!consistent(&t))
        return BAD;
    finish(&t);
    return GOOD;
}

bool turing_decode(turing_insn_t *insn, uint64_t lo, uint64_t hi, uint32_t addr, turing_error_t *err)
{
    const isa_row_t *rows;
    size_t n = turing_isa_rows(&rows);
    turing_error_t why = {""}, first = {""};
    const char *name = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!turing_isa_row_accepts(&rows[i], lo, hi))
            continue;
        *insn = (turing_insn_t){.addr = addr, .raw = {lo, hi}};
        name = turing_op_name(rows[i].op);
        outcome_t outcome = try_row(insn, &rows[i], (uint16_t)i, &why);
        if (outcome == GOOD)
            return true;
        if (outcome == BAD && !first.text[0])
            first = why;
    }
    *insn = (turing_insn_t){.addr = addr, .raw = {lo, hi}};
    if (!name)
        return turing_fail(err, "0x%04x: unknown opcode 0x%03x%s (0x%016llx%016llx)", addr, (unsigned)(lo & 0xfff),
                           hi >> (ISA_UNIFORM_BIT - 64) & 1 ? " with bit 91" : "", (unsigned long long)hi,
                           (unsigned long long)lo);
    return turing_fail(err, "0x%04x: %s: unknown %.150s (0x%016llx%016llx)", addr, name,
                       first.text[0] ? first.text : "combination of modifier bits", (unsigned long long)hi,
                       (unsigned long long)lo);
}

/* ---- names and pipes ----------------------------------------------------------------- */

turing_pipe_t turing_op_pipe(turing_op_t op)
{
    static const uint8_t pipes[] = {
#define X(name, pipe) TURING_PIPE_##pipe,
        TURING_OPS(X)
#undef X
    };
    return (unsigned)op < TURING_OP_COUNT ? (turing_pipe_t)pipes[op] : TURING_PIPE_CONTROL;
}

const char *turing_op_name(turing_op_t op)
{
    static const char *const names[] = {
#define X(name, pipe) #name,
        TURING_OPS(X)
#undef X
    };
    return (unsigned)op < TURING_OP_COUNT ? names[op] : "?";
}

const char *turing_pipe_name(turing_pipe_t pipe)
{
    static const char *const names[] = {
#define X(name, text) text,
        TURING_PIPES(X)
#undef X
    };
    return (unsigned)pipe < TURING_PIPE_COUNT ? names[pipe] : "?";
}

/* ---- what an instruction touches ------------------------------------------------------ */

typedef struct touched {
    turing_access_t *out;
    int n;
} touched_t;

static void touch(touched_t *t, turing_file_t file, unsigned first, unsigned count, bool write, uint8_t slot)
{
    static const uint8_t none[TURING_FILE_COUNT] = {TURING_RZ, TURING_URZ, TURING_PT, TURING_PT, 255};
    if (!count || first == none[file] || t->n == TURING_ACCESS_MAX)
        return;
    if (file != TURING_FILE_B && first + count > none[file]) /* a range that runs into RZ */
        count = none[file] - first;
    t->out[t->n++] = (turing_access_t){(uint8_t)file, (uint8_t)first, (uint8_t)count, write, slot};
}

static void touch_operand(touched_t *t, const turing_operand_t *o, bool write)
{
    switch (o->kind) {
    case TURING_REG: touch(t, TURING_FILE_R, o->reg, o->n, write, write ? 255 : o->slot); break;
    case TURING_UREG: touch(t, TURING_FILE_UR, o->reg, o->n, write, 255); break;
    case TURING_CONST_R: touch(t, TURING_FILE_R, o->reg, 1, false, 255); break;
    case TURING_CONST_UR: touch(t, TURING_FILE_UR, o->reg, 1, false, 255); break;
    case TURING_BINDLESS: touch(t, TURING_FILE_UR, o->reg, 2, false, 255); break;
    case TURING_BARRIER: touch(t, TURING_FILE_B, o->reg, 1, write, 255); break;
    default: break;
    }
}

static void touch_pred(touched_t *t, const turing_pred_t *p, bool write)
{
    if (p->present)
        touch(t, p->uniform ? TURING_FILE_UP : TURING_FILE_P, p->reg, 1, write, 255);
}

int turing_insn_access(const turing_insn_t *in, turing_access_t out[TURING_ACCESS_MAX])
{
    touched_t t = {out, 0};
    touch_pred(&t, &in->guard, false);
    for (unsigned i = 0; i < 3; i++)
        touch_pred(&t, &in->psrc[i], false);
    for (unsigned i = 0; i < in->n_src; i++)
        touch_operand(&t, &in->src[i], false);
    if (in->mem.present) {
        touch(&t, TURING_FILE_R, in->mem.base, in->mem.base_words, false, 255);
        touch(&t, TURING_FILE_UR, in->mem.uniform, in->mem.uniform_words, false, 255);
    }
    bool masked = in->src[1].kind == TURING_IMM; /* P2R, R2P: else the mask is not known here */
    unsigned mask = masked ? in->src[1].imm & 0x7f : 0x7f;
    if (in->op == TURING_P2R || in->op == TURING_UP2UR || in->op == TURING_R2P)
        for (unsigned i = 0; i < 7; i++)
            if (mask >> i & 1)
                touch(&t, in->op == TURING_UP2UR ? TURING_FILE_UP : TURING_FILE_P, i, 1, in->op == TURING_R2P, 255);
    if (in->op == TURING_BREAK || (in->op == TURING_BMOV && in->m.clear))
        touch_operand(&t, &in->src[0], true);
    touch_operand(&t, &in->dst, true);
    for (unsigned i = 0; i < 2; i++)
        touch_pred(&t, &in->pdst[i], true);
    return t.n;
}
