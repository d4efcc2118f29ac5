/* SPDX-License-Identifier: MIT */
/*
 * lower.c - turns a decoded kernel into op_t: operands become row numbers,
 * constants and immediates get rows of their own, opcodes become functions.
 */
#include "exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that follow each other in the constant rows, for one operand. */
typedef struct words {
    uint32_t n, word[4];
} words_t;

typedef struct pool {
    words_t *entries;
    uint16_t *rows;
    size_t n, capacity;
    uint32_t n_rows;
} pool_t;

static bool intern(pool_t *pool, const words_t *words, uint16_t *row, turing_error_t *err)
{
    for (size_t i = 0; i < pool->n; i++)
        if (pool->entries[i].n == words->n && !memcmp(pool->entries[i].word, words->word, 4 * words->n)) {
            *row = pool->rows[i];
            return true;
        }
    if (pool->n == pool->capacity) {
        size_t capacity = pool->capacity ? 2 * pool->capacity : 64;
        words_t *entries = realloc(pool->entries, capacity * sizeof *entries);
        if (entries)
            pool->entries = entries;
        uint16_t *rows = realloc(pool->rows, capacity * sizeof *rows);
        if (rows)
            pool->rows = rows;
        if (!entries || !rows)
            return turing_fail(err, "out of memory");
        pool->capacity = capacity;
    }
    if (ROW_CONSTANTS + pool->n_rows + words->n > UINT16_MAX)
        return turing_fail(err, "too many constants");
    pool->entries[pool->n] = *words;
    *row = pool->rows[pool->n++] = (uint16_t)(ROW_CONSTANTS + pool->n_rows);
    pool->n_rows += words->n;
    return true;
}

/* How many words a source has: of a product's upper word the addend is a pair. */
static uint32_t words_of(const turing_insn_t *in, int i)
{
    if (i == 2 && (in->op == TURING_IMAD_HI || in->op == TURING_UIMAD_HI))
        return 2;
    return in->src[i].n ? in->src[i].n : 1;
}

/* A source's words in a constant bank; NULL: they are not all within it. */
static const uint8_t *constant(const machine_t *m, const turing_insn_t *in, int i)
{
    const turing_operand_t *s = &in->src[i];
    const uint8_t *data = s->bank < TURING_BANKS ? m->bank[s->bank].data : NULL;
    const uint32_t size = data ? m->bank[s->bank].size : 0;
    return data && s->imm <= size && size - s->imm >= 4 * words_of(in, i) ? data + s->imm : NULL;
}

/* Is an immediate in the place of 64 bits their upper word? */
static bool is_upper_word(const turing_insn_t *in)
{
    return in->op == TURING_DADD || in->op == TURING_DMUL || in->op == TURING_DFMA || in->op == TURING_DSETP ||
           (in->op == TURING_FRND && in->m.type == TURING_F64) ||
           ((in->op == TURING_F2F || in->op == TURING_F2I) && in->m.stype == TURING_F64) || in->op == TURING_I2F;
}

static bool source(const machine_t *m, pool_t *pool, const turing_insn_t *in, int i, uint16_t *row, turing_error_t *err)
{
    const turing_operand_t *s = &in->src[i];
    const uint8_t *bank = NULL;
    words_t words = {.n = words_of(in, i)};
    switch (s->kind) {
    case TURING_REG: *row = s->reg == TURING_RZ ? ROW_ZERO : s->reg; return true;
    case TURING_UREG: *row = s->reg == TURING_URZ ? ROW_ZERO : (uint16_t)(ROW_UNIFORM + s->reg); return true;
    case TURING_IMM:
        if (words.n > 1 && is_upper_word(in)) {
            words.word[1] = s->imm;
            words.word[0] = 0;
        } else {
            words.word[0] = s->imm;
            for (uint32_t w = 1; w < words.n; w++)
                words.word[w] = in->m.is_signed && s->imm >> 31 ? ~0u : 0;
        }
        return intern(pool, &words, row, err);
    case TURING_CONST:
        if ((bank = constant(m, in, i)))
            memcpy(words.word, bank, 4 * words.n);
        *row = ROW_ZERO; /* never read: op_beyond_kernel */
        return !bank || intern(pool, &words, row, err);
    case TURING_CONST_R:
    case TURING_CONST_UR:
        *row = s->kind == TURING_CONST_R ? (s->reg == TURING_RZ ? ROW_ZERO : s->reg)
                                         : (s->reg == TURING_URZ ? ROW_ZERO : (uint16_t)(ROW_UNIFORM + s->reg));
        return true;
    default: /* barriers, warp state, bindless: the handler looks at the operand itself */ *row = ROW_ZERO; return true;
    }
}

static uint8_t pred_index(turing_pred_t p)
{
    return (uint8_t)(p.reg + (p.uniform ? PRED_UNIFORM : 0));
}

/* Does an instruction use a register or a constant that the kernel does not have? `what`, if not NULL, says which. */
static bool beyond_kernel(const machine_t *m, const turing_insn_t *in, turing_error_t *what)
{
    turing_access_t access[TURING_ACCESS_MAX];
    const int n = turing_insn_access(in, access);
    for (int i = 0; i < n; i++)
        if (access[i].file == TURING_FILE_R && access[i].first + access[i].count > m->kernel->registers) {
            turing_fail(what, "uses a register beyond the %u of the kernel", m->kernel->registers);
            return true;
        }
    for (int i = 0; i < in->n_src && i < 4; i++)
        if (in->src[i].kind == TURING_CONST && !constant(m, in, i)) {
            const turing_operand_t *s = &in->src[i];
            turing_fail(what, "reads c[0x%x][0x%x], past the end of the bank (0x%x bytes)", s->bank, s->imm,
                        s->bank < TURING_BANKS && m->bank[s->bank].data ? m->bank[s->bank].size : 0);
            return true;
        }
    return false;
}

/* In a function of the file that this kernel does not call, or not within its registers and constants. */
static void op_beyond_kernel(warp_t *w, const op_t *o, uint32_t on)
{
    turing_error_t what;
    (void)on;
    beyond_kernel(w->block->worker->m, o->in, &what);
    emu_fault_as(w, o, TURING_FAILED_INSTRUCTION, "%s", what.text);
}

static bool is_texture(const turing_insn_t *in)
{
    return turing_op_pipe((turing_op_t)in->op) == TURING_PIPE_TEX;
}

static void op_unknown(warp_t *w, const op_t *o, uint32_t on)
{
    (void)on;
    emu_fault_as(w, o, TURING_FAILED_INSTRUCTION,
                 is_texture(o->in) ? "textures and surfaces are not emulated"
                                   : "cannot execute this instruction or modifier");
}

/* Finds what executes o->in, whose pdst is filled. */
static void select_function(op_t *o)
{
    o->flow = FLOW_PLAIN;
    emu_select_alu(o);
    if (!o->fn)
        emu_select_lanes(o);
    if (!o->fn)
        emu_select_float(o);
    if (!o->fn)
        emu_select_memory(o);
    if (!o->fn)
        emu_select_tensor(o);
    if (!o->fn && turing_op_pipe((turing_op_t)o->in->op) == TURING_PIPE_CONTROL)
        o->flow = FLOW_CONTROL;
    else if (!o->fn) {
        o->fn = op_unknown;
        o->flow = FLOW_STOPPING;
    }
}

/* A text for people about an instruction that cannot be executed; returns false. */
static bool refuse(const turing_kernel_t *k, uint32_t index, turing_error_t *err)
{
    char text[TURING_TEXT_MAX], line[160] = "";
    const turing_insn_t *in = &k->insns[index];
    turing_disasm(in, text);
    if (k->lines && k->lines[index].file)
        snprintf(line, sizeof line, " at %.140s:%u", k->lines[index].file, k->lines[index].line);
    turing_fail(err, "%s+0x%x (%.120s)%s: %s", k->name, in->addr, text, line,
                is_texture(in) ? "textures and surfaces are not emulated"
                               : "the emulator cannot execute this instruction or modifier");
    return false;
}

const turing_insn_t *turing_unsupported(const turing_kernel_t *k, turing_error_t *why)
{
    for (uint32_t i = 0; i < k->n_insns && i < k->n_own; i++) {
        op_t o = {.in = &k->insns[i], .pdst = {PRED_SINK, PRED_SINK}};
        for (int p = 0; p < 2; p++)
            if (o.in->pdst[p].present && o.in->pdst[p].reg != TURING_PT)
                o.pdst[p] = pred_index(o.in->pdst[p]);
        select_function(&o);
        if (o.fn == op_unknown) {
            refuse(k, i, why);
            return o.in;
        }
    }
    return NULL;
}

static bool uniform_op(const turing_insn_t *in)
{
    return turing_op_pipe((turing_op_t)in->op) == TURING_PIPE_UNIFORM && in->op != TURING_VOTEU;
}

static bool lower_one(machine_t *m, pool_t *pool, op_t *o, const turing_insn_t *in, turing_error_t *err)
{
    o->in = in;
    o->uniform = uniform_op(in);
    o->guard = pred_index(in->guard);
    o->guard_xor = in->guard.neg;
    o->d = ROW_SINK;
    if (in->dst.kind == TURING_REG && in->dst.reg != TURING_RZ)
        o->d = in->dst.reg;
    else if (in->dst.kind == TURING_UREG && in->dst.reg != TURING_URZ)
        o->d = (uint16_t)(ROW_UNIFORM + in->dst.reg);
    for (int i = 0; i < 4; i++) {
        o->src[i] = ROW_ZERO;
        if (i < in->n_src && !source(m, pool, in, i, &o->src[i], err))
            return false;
    }
    for (int i = 0; i < 2; i++)
        o->pdst[i] = in->pdst[i].present && in->pdst[i].reg != TURING_PT ? pred_index(in->pdst[i]) : PRED_SINK;
    for (int i = 0; i < 3; i++) {
        o->psrc[i] = in->psrc[i].present ? pred_index(in->psrc[i]) : PRED_TRUE;
        o->psrc_xor[i] = in->psrc[i].present && in->psrc[i].neg;
    }
    if (in->mem.present) {
        o->addr_base = in->mem.base == TURING_RZ ? ROW_ZERO : in->mem.base;
        o->addr_uniform = in->mem.uniform == TURING_URZ ? ROW_ZERO : (uint16_t)(ROW_UNIFORM + in->mem.uniform);
    }
    if (in->target >= 0 && in->target % TURING_INSN_BYTES == 0 && in->target / TURING_INSN_BYTES < m->n_ops)
        o->target = (uint32_t)(in->target / TURING_INSN_BYTES);
    else
        o->target = UINT32_MAX;

    select_function(o);
    if (beyond_kernel(m, in, NULL)) {
        o->fn = op_beyond_kernel;
        o->flow = FLOW_STOPPING;
    }
    const uint32_t index = (uint32_t)(o - m->ops);
    return !is_texture(in) || index >= m->kernel->n_own || refuse(m->kernel, index, err);
}

/* Results then depend on which block comes first, so blocks keep their order. */
static bool order_dependent(const turing_insn_t *in)
{
    switch (in->op) {
    case TURING_ATOM:
    case TURING_ATOMG:
    case TURING_RED:
        return (in->dst.kind == TURING_REG && in->dst.reg != TURING_RZ) || in->m.type == TURING_F16X2 ||
               in->m.type == TURING_F32 || in->m.type == TURING_F64 || in->m.func == TURING_ATOM_EXCH;
    case TURING_ATOM_CAS:
    case TURING_ATOMG_CAS: return true;
    case TURING_LDG:
    case TURING_LD: return in->m.order == TURING_ORDER_STRONG;
    default: return false;
    }
}

bool emu_lower_kernel(machine_t *m, turing_error_t *err)
{
    const turing_kernel_t *k = m->kernel;
    pool_t pool = {0};
    m->n_ops = k->n_insns;
    m->ops = calloc(k->n_insns ? k->n_insns : 1, sizeof *m->ops);
    bool ok = m->ops || turing_fail(err, "out of memory");
    for (uint32_t i = 0; ok && i < k->n_insns; i++) {
        ok = lower_one(m, &pool, &m->ops[i], &k->insns[i], err);
        if (order_dependent(&k->insns[i]))
            m->ordered = true;
    }
    if (ok) {
        m->n_constants = pool.n_rows;
        m->constants = calloc(pool.n_rows ? pool.n_rows : 1, sizeof *m->constants);
        ok = m->constants || turing_fail(err, "out of memory");
    }
    for (size_t i = 0; ok && i < pool.n; i++)
        for (uint32_t j = 0; j < pool.entries[i].n; j++)
            for (int l = 0; l < LANES; l++)
                m->constants[pool.rows[i] - ROW_CONSTANTS + j][l] = pool.entries[i].word[j];
    free(pool.entries);
    free(pool.rows);
    return ok;
}

void emu_lower_free(machine_t *m)
{
    free(m->ops);
    free(m->constants);
}
