/* SPDX-License-Identifier: MIT */
/*
 * check_define.c - follows undefined bits: define.h.
 *
 *   moves       (MOV, SHF, PRMT, SEL, SHFL, ...) move undefined bits as they move bits: the instruction itself is run
 * on masks of them logic       bits that no undefined operand can change are defined sums        are undefined from the
 * lowest undefined bit on; products likewise comparisons are defined where all values of the undefined bits give one
 * result matrices    element (i, j) depends on row i, column j and its sum all others  give undefined results where an
 * operand has an undefined bit
 *
 * A value that was computed with is loud: it is told where it is stored for the host. One that was only moved is told
 * where it fills a store of four bytes or more: less is padding, which copies of structs take along.
 */
#include "define.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_READS = 24, MOST_WRITES = 12 };

/* How an instruction's results depend on its operands. */
typedef enum rule {
    RULE_ANY,
    RULE_MOVE, /* of sources 0 and 2, by source 1 */
    RULE_LOGIC,
    RULE_SUM,
    RULE_WIDE,
    RULE_SELECT,
    RULE_COMPARE,
    RULE_PREDICATES, /* PLOP3 */
    RULE_TO_WORD,    /* P2R */
    RULE_FROM_WORD,  /* R2P */
    RULE_VOTE,
    RULE_WARP, /* any lane's operand makes all undefined */
    RULE_SHUFFLE,
    RULE_MATRIX,
    RULE_LOAD, /* loads and atomics fill the result by themselves */
    RULE_STORE,
    RULE_CONTROL
} rule_t;

struct define_plan {
    uint8_t rule, n_reads, n_writes, n_preds;
    bool tries; /* a load of a word before a compare-and-swap of it, which looks at 16 bits of it, perhaps */
    uint16_t read[MOST_READS], write[MOST_WRITES];
    uint8_t pred[8]; /* read, the guard among them */
};

typedef uint32_t mask_t[LANES];
static const mask_t none;

/* ---- once per kernel ---------------------------------------------------------------------- */

static rule_t rule_of(const op_t *o)
{
    switch (o->in->op) {
    case TURING_MOV:
    case TURING_UMOV:
    case TURING_SHF:
    case TURING_USHF:
    case TURING_PRMT:
    case TURING_UPRMT:
    case TURING_SGXT:
    case TURING_USGXT:
    case TURING_BREV:
    case TURING_UBREV:
    case TURING_MOVM:
    case TURING_R2UR: return RULE_MOVE;
    case TURING_LOP3:
    case TURING_ULOP3: return RULE_LOGIC;
    case TURING_IADD3:
    case TURING_UIADD3:
    case TURING_IMAD:
    case TURING_UIMAD: return RULE_SUM;
    case TURING_LEA:
    case TURING_ULEA: return o->in->m.hi ? RULE_ANY : RULE_SUM;
    case TURING_IMAD_WIDE:
    case TURING_UIMAD_WIDE: return RULE_WIDE;
    case TURING_SEL:
    case TURING_USEL:
    case TURING_FSEL: return RULE_SELECT;
    case TURING_ISETP:
    case TURING_UISETP: return RULE_COMPARE;
    case TURING_PLOP3:
    case TURING_UPLOP3: return RULE_PREDICATES;
    case TURING_P2R:
    case TURING_UP2UR: return RULE_TO_WORD;
    case TURING_R2P: return RULE_FROM_WORD;
    case TURING_VOTE:
    case TURING_VOTEU: return RULE_VOTE;
    case TURING_MATCH:
    case TURING_HMMA_884: return RULE_WARP;
    case TURING_SHFL: return RULE_SHUFFLE;
    case TURING_HMMA_1688:
    case TURING_IMMA:
    case TURING_BMMA: return RULE_MATRIX;
    case TURING_LDG:
    case TURING_LDS:
    case TURING_LDL:
    case TURING_LD:
    case TURING_LDSM:
    case TURING_LDC:
    case TURING_ULDC:
    case TURING_ATOM:
    case TURING_ATOM_CAS:
    case TURING_ATOMG:
    case TURING_ATOMG_CAS:
    case TURING_ATOMS:
    case TURING_ATOMS_CAS:
    case TURING_RED: return RULE_LOAD;
    case TURING_STG:
    case TURING_STS:
    case TURING_STL:
    case TURING_ST: return RULE_STORE;
    default: return o->flow == FLOW_CONTROL ? RULE_CONTROL : RULE_ANY;
    }
}

static bool is_cas(const turing_insn_t *in)
{
    return in->op == TURING_ATOM_CAS || in->op == TURING_ATOMG_CAS || in->op == TURING_ATOMS_CAS;
}

/* Is the load at `i` one of a word that a compare-and-swap close behind it has, too? */
static bool tries(const machine_t *m, uint32_t i)
{
    enum { BEHIND = 24 };
    const turing_insn_t *in = m->ops[i].in;
    if (rule_of(&m->ops[i]) != RULE_LOAD || !in->mem.present || in->mem.bytes != 4 || in->op == TURING_LDL)
        return false;
    for (uint32_t j = i + 1; j < m->n_ops && j <= i + BEHIND; j++)
        if (is_cas(m->ops[j].in))
            return m->ops[j].in->mem.base == in->mem.base && m->ops[j].in->mem.offset == in->mem.offset;
    return false;
}

bool emu_define_open(machine_t *m)
{
    m->define_plans = calloc(m->n_ops ? m->n_ops : 1, sizeof *m->define_plans);
    if (!m->define_plans)
        return false;
    for (uint32_t i = 0; i < m->n_ops; i++) {
        turing_access_t access[TURING_ACCESS_MAX];
        struct define_plan *p = &m->define_plans[i];
        const int n = turing_insn_access(m->ops[i].in, access);
        p->rule = (uint8_t)rule_of(&m->ops[i]);
        p->tries = tries(m, i);
        for (int a = 0; a < n; a++)
            for (unsigned k = access[a].first; k < access[a].first + access[a].count; k++) {
                const uint16_t row = (uint16_t)(k + (access[a].file == TURING_FILE_UR ? ROW_UNIFORM : 0));
                const bool is_word = access[a].file == TURING_FILE_R || access[a].file == TURING_FILE_UR;
                const uint8_t pred = (uint8_t)(k + (access[a].file == TURING_FILE_UP ? PRED_UNIFORM : 0));
                if (is_word && access[a].write && p->n_writes < MOST_WRITES)
                    p->write[p->n_writes++] = row;
                else if (is_word && !access[a].write && p->n_reads < MOST_READS)
                    p->read[p->n_reads++] = row;
                else if (!is_word && access[a].file != TURING_FILE_B && !access[a].write && p->n_preds < 8)
                    p->pred[p->n_preds++] = pred;
            }
    }
    return true;
}

void emu_define_close(machine_t *m)
{
    free(m->define_plans);
}

void emu_define_start(warp_t *w)
{
    define_t *d = w->define;
    for (unsigned row = 0; row < ROW_CONSTANTS; row++)
        if (d->dirty[row / 64] >> row % 64 & 1) {
            memset(d->bits[row], 0, sizeof d->bits[row]);
            d->loud[row] = 0;
        }
    memset(d->pred, 0, sizeof d->pred);
    memset(d->dirty, 0, sizeof d->dirty);
    d->dirty_pred = 0;
    d->any = false;
}

/* ---- what is undefined ----------------------------------------------------------------------- */

static bool is_dirty(const define_t *d, unsigned row)
{
    return row < ROW_CONSTANTS && d->dirty[row / 64] >> row % 64 & 1;
}

static const uint32_t *bits_of(const define_t *d, unsigned row)
{
    return is_dirty(d, row) ? d->bits[row] : none;
}

static uint32_t lanes_of(const define_t *d, unsigned row)
{
    uint32_t lanes = 0;
    if (is_dirty(d, row))
        EACH
            lanes |= (uint32_t)(d->bits[row][l] != 0) << l;
    return lanes;
}

static void update_any(define_t *d)
{
    uint64_t any = d->dirty_pred;
    for (size_t i = 0; i < sizeof d->dirty / sizeof *d->dirty; i++)
        any |= d->dirty[i];
    d->any = any;
}

static void put_bits(define_t *d, unsigned row, const uint32_t bits[LANES], uint32_t on, uint32_t loud,
                     const origin_t *origin)
{
    uint32_t any = 0, fresh = 0;
    if (row >= ROW_CONSTANTS || (row >= ROW_ZERO && row < ROW_UNIFORM))
        return;
    EACH {
        if (on >> l & 1) {
            d->bits[row][l] = bits[l];
            fresh |= bits[l];
        }
        any |= d->bits[row][l];
    }
    d->loud[row] = (d->loud[row] & ~on) | (loud & on);
    if (fresh && origin)
        d->origin[row] = *origin;
    if (any) {
        d->dirty[row / 64] |= UINT64_C(1) << row % 64;
        d->any = true;
    } else
        d->dirty[row / 64] &= ~(UINT64_C(1) << row % 64);
}

static void put_undefined_pred(define_t *d, unsigned p, uint32_t lanes, uint32_t on, const origin_t *origin)
{
    if (p == PRED_SINK || p % PRED_UNIFORM == PRED_TRUE)
        return;
    d->pred[p] = (d->pred[p] & ~on) | (lanes & on);
    if (lanes & on) {
        d->pred_origin[p] = *origin;
        d->dirty_pred |= 1u << p;
        d->any = true;
    } else if (!d->pred[p])
        d->dirty_pred &= ~(1u << p);
}

/* ---- it matters ------------------------------------------------------------------------------- */

static void describe(const machine_t *m, const op_t *o, char text[TURING_TEXT_MAX + 200])
{
    char insn[TURING_TEXT_MAX];
    const turing_line_t *line = m->kernel->lines ? &m->kernel->lines[o - m->ops] : NULL;
    turing_disasm(o->in, insn);
    const int n = snprintf(text, TURING_TEXT_MAX + 200, "0x%x (%.60s)", o->in->addr, insn);
    if (line && line->file)
        snprintf(text + n, TURING_TEXT_MAX + 200 - (size_t)n, " at %.80s:%u", line->file, line->line);
}

/* Told at the instruction that brought the value in. */
static void matters(warp_t *w, const op_t *o, const origin_t *from, const char *verb)
{
    const machine_t *m = w->block->worker->m;
    const op_t *source = &m->ops[from->code];
    const bool shuffled = source->in->op == TURING_SHFL;
    char text[TURING_TEXT_MAX + 200];
    describe(m, o, text);
    emu_report(
        w, source, shuffled ? TURING_DIVERGENT : TURING_UNINITIALISED,
        (site_t){
            .space = (turing_space_t)from->space, .address = from->address, .lane = from->lane, .bytes = from->bytes},
        shuffled ? "lane %u takes a value from a lane that does not execute this SHFL, and %s %s"
                 : "lane %u reads what was never written, and %s %s",
        from->lane, text, verb);
}

/* The registers and predicates that this one reads count as defined from now on: it is told once. */
static bool words_matter(warp_t *w, const op_t *o, unsigned row, uint32_t on, const char *verb)
{
    define_t *d = w->define;
    const uint32_t lanes = lanes_of(d, row) & on;
    if (!lanes)
        return false;
    matters(w, o, &d->origin[row], verb);
    put_bits(d, row, none, lanes, 0, NULL);
    return true;
}

static void pred_matters(warp_t *w, const op_t *o, unsigned p, uint32_t on, const char *verb)
{
    define_t *d = w->define;
    if (!(d->pred[p] & on))
        return;
    matters(w, o, &d->pred_origin[p], verb);
    put_undefined_pred(d, p, 0, d->pred[p] & on, NULL);
}

/* ---- results ------------------------------------------------------------------------------------- */

static uint32_t smear(uint32_t x)
{
    return 0u - (x & (0u - x)); /* from the lowest one on */
}

static uint32_t lut(unsigned table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
}

/* Bits of a table's result that undefined bits of its inputs can change. */
static uint32_t lut_undefined(unsigned table, uint32_t a, uint32_t b, uint32_t c, uint32_t ua, uint32_t ub, uint32_t uc)
{
    const uint32_t value = lut(table, a, b, c);
    uint32_t changed = 0;
    for (int i = 1; i < 8; i++)
        changed |= lut(table, i & 4 ? a ^ ua : a, i & 2 ? b ^ ub : b, i & 1 ? c ^ uc : c) ^ value;
    return changed;
}

/* Runs the instruction on masks of its sources 0 and 2. */
static void move(warp_t *w, const op_t *o, uint32_t on, mask_t out)
{
    define_t *d = w->define;
    op_t fake = *o;
    row_t kept[4];
    memcpy(kept, w->r + ROW_SINK, sizeof kept);
    memcpy(w->r[ROW_SINK], bits_of(d, o->src[0]), sizeof(row_t));
    memcpy(w->r[ROW_SINK + 1], bits_of(d, o->src[2]), sizeof(row_t));
    fake.src[0] = ROW_SINK;
    fake.src[2] = ROW_SINK + 1;
    fake.d = ROW_SINK + 2;
    fake.pdst[0] = fake.pdst[1] = PRED_SINK;
    const uint32_t sink = w->p[PRED_SINK];
    fake.fn(w, &fake, on);
    w->p[PRED_SINK] = sink;
    memcpy(out, w->r[ROW_SINK + 2], sizeof(mask_t));
    memcpy(w->r + ROW_SINK, kept, sizeof kept);
    if (is_dirty(d, o->src[1])) /* how far, and which */
        EACH
            if (d->bits[o->src[1]][l])
                out[l] = ~0u;
}

static void sum(const warp_t *w, const op_t *o, mask_t out)
{
    const define_t *d = w->define;
    const uint32_t *ua = bits_of(d, o->src[0]), *ub = bits_of(d, o->src[1]), *uc = bits_of(d, o->src[2]);
    const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]], *c = w->r[o->src[2]];
    const bool product = o->in->op == TURING_IMAD || o->in->op == TURING_UIMAD,
               is_lea = o->in->op == TURING_LEA || o->in->op == TURING_ULEA,
               plain = !o->in->m.x && !o->in->src[0].neg && !o->in->src[1].neg && !o->in->src[2].neg &&
                       !o->in->src[0].inv && !o->in->src[1].inv && !o->in->src[2].inv;
    const uint32_t carry = o->in->m.x ? d->pred[o->psrc[0]] | d->pred[o->psrc[1]] : 0;
    EACH {
        uint32_t x = ua[l], y = ub[l], z = is_lea ? 0 : uc[l];
        uint32_t p = a[l], q = b[l];
        if (is_lea)
            x <<= o->in->m.shift, p <<= o->in->m.shift;
        if (product) { /* one that is 0 decides; by a power of two it is a shift */
            const uint32_t by_y = y && !(p == 0 && !x) ? y << (p && !x ? __builtin_ctz(p) : 0) : 0,
                           by_x = x && !(q == 0 && !y) ? x << (q && !y ? __builtin_ctz(q) : 0) : 0;
            const bool shift = !y && q && !(q & (q - 1));
            const uint32_t m = by_x | by_y;
            out[l] = !m && plain && a[l] * b[l] == 0 ? z : !z && plain && shift && c[l] == 0 ? by_x : smear(m | z);
            p = a[l] * b[l];
            (void)p;
        } else if (plain && !y && !z && q == 0 && (is_lea || c[l] == 0))
            out[l] = x;
        else if (plain && !x && !z && p == 0 && (is_lea || c[l] == 0))
            out[l] = y;
        else if (plain && !is_lea && !x && !y && p == 0 && q == 0)
            out[l] = z;
        else
            out[l] = smear(x | y | z);
        if (carry >> l & 1)
            out[l] = ~0u;
    }
}

static void wide(const warp_t *w, const op_t *o, mask_t low, mask_t high)
{
    const define_t *d = w->define;
    const uint32_t *ua = bits_of(d, o->src[0]), *ub = bits_of(d, o->src[1]), *uc = bits_of(d, o->src[2]),
                   *uc1 = bits_of(d, o->src[2] + 1u);
    const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]];
    const uint32_t carry = o->in->m.x ? d->pred[o->psrc[0]] : 0;
    EACH {
        const bool zero = (a[l] == 0 && !ua[l]) || (b[l] == 0 && !ub[l]);
        const uint64_t m = (zero ? 0 : (uint64_t)(ua[l] | ub[l])) | uc[l] | (uint64_t)uc1[l] << 32 | (carry >> l & 1),
                       all = UINT64_C(0) - (m & (UINT64_C(0) - m));
        low[l] = (uint32_t)all;
        high[l] = (uint32_t)(all >> 32);
    }
}

/* Lanes whose comparison can go both ways; `hit` gets how it went. */
static uint32_t compare(const warp_t *w, const op_t *o, uint32_t *hit)
{
    const define_t *d = w->define;
    const turing_mods_t *m = &o->in->m;
    const uint32_t *ua = bits_of(d, o->src[0]), *ub = bits_of(d, o->src[1]);
    const uint32_t bias = m->is_signed ? 0x80000000u : 0, lower = m->x ? d->pred[o->psrc[1]] : 0;
    uint32_t open = 0;
    *hit = 0;
    EACH {
        const uint32_t a = w->r[o->src[0]][l] ^ bias, b = w->r[o->src[1]][l] ^ bias;
        const uint32_t least_a = a & ~ua[l], most_a = a | ua[l], least_b = b & ~ub[l], most_b = b | ub[l];
        const bool may_less = least_a<most_b, may_greater = most_a> least_b;
        const bool may_equal = !((a ^ b) & ~(ua[l] | ub[l])) && least_a <= most_b && least_b <= most_a;
        const bool lower_hit = m->x && (w->p[o->psrc[1]] ^ (0u - o->psrc_xor[1])) >> l & 1;
        const bool lt = m->cmp & TURING_CMP_LT, gt = m->cmp & TURING_CMP_GT,
                   eq = m->x ? lower_hit : m->cmp & TURING_CMP_EQ;
        const bool may_hit = (may_less && lt) || (may_greater && gt) || (may_equal && (eq || lower >> l & 1));
        const bool may_miss = (may_less && !lt) || (may_greater && !gt) || (may_equal && (!eq || lower >> l & 1));
        open |= (uint32_t)(may_hit && may_miss) << l;
        *hit |= (uint32_t)(a < b ? lt : a > b ? gt : eq) << l;
    }
    return open;
}

/* x op y, where op is AND or OR or XOR and some of each are undefined. */
static uint32_t combined(unsigned bop, uint32_t x, uint32_t ux, uint32_t y, uint32_t uy)
{
    switch (bop) {
    case TURING_BOP_AND: return (ux | uy) & (x | ux) & (y | uy);
    case TURING_BOP_OR: return (ux | uy) & (~x | ux) & (~y | uy);
    default: return ux | uy;
    }
}

static void matrix(warp_t *w, const op_t *o, const struct define_plan *p, const origin_t *origin)
{
    define_t *d = w->define;
    const bool halves = o->in->op == TURING_HMMA_1688, f32 = !halves || o->in->m.f32;
    const unsigned words = p->n_writes;
    uint32_t row[2] = {0, 0}, column = 0; /* bit i: row i of the upper and the lower half, column i */
    EACH {
        row[0] |= (uint32_t)(bits_of(d, o->src[0])[l] != 0) << l / 4;
        if (halves)
            row[1] |= (uint32_t)(bits_of(d, o->src[0] + 1u)[l] != 0) << l / 4;
        column |= (uint32_t)(bits_of(d, o->src[1])[l] != 0) << l / 4;
    }
    for (unsigned k = 0; k < words; k++) {
        const uint32_t *c = bits_of(d, o->src[2] + k);
        const uint32_t rows = row[halves && k >= words / 2];
        mask_t out;
        uint32_t loud = 0;
        EACH {
            const unsigned j = 2u * (l & 3) + (f32 ? k & 1 : 0);
            const bool first = rows >> l / 4 & 1 || column >> j & 1,
                       second = rows >> l / 4 & 1 || column >> (j + 1) & 1;
            out[l] = f32 ? (first || c[l] ? ~0u : 0)
                         : (first || c[l] & 0xffff ? 0xffffu : 0) | (second || c[l] >> 16 ? 0xffff0000u : 0);
            loud |= (uint32_t)(out[l] != 0) << l;
        }
        put_bits(d, p->write[k], out, ALL_LANES, loud, origin);
    }
}

static void vote(warp_t *w, const op_t *o, uint32_t on, const origin_t *origin)
{
    define_t *d = w->define;
    const uint32_t undefined = d->pred[o->psrc[0]] & on, p = pred(w, o, 0) & on & ~undefined;
    const bool any_open = undefined && !p, all_open = undefined && (p | undefined) == on,
               open = o->in->m.func == TURING_VOTE_ALL ? all_open
                      : o->in->m.func == TURING_VOTE_ANY
                          ? any_open
                          : undefined && ((any_open || all_open) || p == 0 || (p | undefined) == on);
    const uint32_t written = o->in->op == TURING_VOTEU ? ALL_LANES : on;
    mask_t out;
    EACH
        out[l] = undefined;
    put_bits(d, o->d, out, written, undefined ? ALL_LANES : 0, origin);
    put_undefined_pred(d, o->pdst[0], open ? ~0u : 0, written, origin);
}

/* An operand's origin; which one matters little. */
static const origin_t *origin_of(const define_t *d, const struct define_plan *p)
{
    for (unsigned i = 0; i < p->n_reads; i++)
        if (is_dirty(d, p->read[i]))
            return &d->origin[p->read[i]];
    for (unsigned i = 0; i < p->n_preds; i++)
        if (d->pred[p->pred[i]])
            return &d->pred_origin[p->pred[i]];
    return NULL;
}

/* Lanes with an undefined bit in any operand. */
static uint32_t open_lanes(const define_t *d, const struct define_plan *p, uint32_t *loud)
{
    uint32_t open = 0;
    *loud = 0;
    for (unsigned i = 0; i < p->n_reads; i++)
        if (is_dirty(d, p->read[i])) {
            open |= lanes_of(d, p->read[i]);
            *loud |= d->loud[p->read[i]];
        }
    for (unsigned i = 0; i < p->n_preds; i++)
        open |= d->pred[p->pred[i]];
    return open;
}

static void fill(mask_t out, uint32_t lanes)
{
    EACH
        out[l] = lanes >> l & 1 ? ~0u : 0;
}

static void results(warp_t *w, const op_t *o, const struct define_plan *p, uint32_t on, const origin_t *origin)
{
    define_t *d = w->define;
    mask_t out = {0}, high = {0};
    uint32_t moved, hit, open = open_lanes(d, p, &moved), loud = open, preds = open, preds1 = open;
    switch ((rule_t)p->rule) {
    case RULE_MOVE:
        move(w, o, on, out);
        loud = moved;
        break;
    case RULE_LOGIC: {
        const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]], *c = w->r[o->src[2]];
        const uint32_t *ua = bits_of(d, o->src[0]), *ub = bits_of(d, o->src[1]), *uc = bits_of(d, o->src[2]);
        uint32_t zero_open = 0, nonzero = 0;
        EACH {
            out[l] = lut_undefined(o->in->m.lut, a[l], b[l], c[l], ua[l], ub[l], uc[l]);
            const bool sure = lut(o->in->m.lut, a[l], b[l], c[l]) & ~out[l];
            zero_open |= (uint32_t)(out[l] && !sure) << l;
            nonzero |= (uint32_t)sure << l;
        }
        preds = combined(o->in->m.aux ? TURING_BOP_AND : TURING_BOP_OR, nonzero, zero_open, pred(w, o, 0),
                         d->pred[o->psrc[0]]);
        loud = moved;
        break;
    }
    case RULE_SUM: sum(w, o, out); break;
    case RULE_WIDE: wide(w, o, out, high); break;
    case RULE_SELECT: {
        const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]];
        const uint32_t *ua = bits_of(d, o->src[0]), *ub = bits_of(d, o->src[1]);
        const uint32_t which = pred(w, o, 0), unknown = d->pred[o->psrc[0]];
        EACH
            out[l] = unknown >> l & 1 ? ua[l] | ub[l] | (a[l] ^ b[l]) : which >> l & 1 ? ua[l] : ub[l];
        loud = moved;
        break;
    }
    case RULE_COMPARE: {
        const uint32_t undecided = compare(w, o, &hit), other = pred(w, o, 0), unknown = d->pred[o->psrc[0]];
        preds = combined(o->in->m.bop, hit, undecided, other, unknown);
        preds1 = combined(o->in->m.bop, ~hit, undecided, other, unknown);
        break;
    }
    case RULE_PREDICATES:
        preds = lut_undefined(o->in->m.lut, pred(w, o, 0), pred(w, o, 1), pred(w, o, 2), d->pred[o->psrc[0]],
                              d->pred[o->psrc[1]], d->pred[o->psrc[2]]);
        preds1 = lut_undefined(o->in->m.lut2, pred(w, o, 0), pred(w, o, 1), pred(w, o, 2), d->pred[o->psrc[0]],
                               d->pred[o->psrc[1]], d->pred[o->psrc[2]]);
        break;
    case RULE_TO_WORD: {
        const unsigned base = o->uniform ? PRED_UNIFORM : 0, shift = 8u * o->in->m.byte;
        const uint32_t *ua = bits_of(d, o->src[0]), *b = w->r[o->src[1]];
        EACH {
            uint32_t bits = 0;
            for (unsigned i = 0; i < 7; i++)
                bits |= (d->pred[base + i] >> l & 1) << i;
            out[l] = (ua[l] & ~(b[l] << shift)) | (bits << shift & b[l] << shift);
        }
        break;
    }
    case RULE_FROM_WORD: {
        const uint32_t *ua = bits_of(d, o->src[0]), *b = w->r[o->src[1]];
        for (unsigned i = 0; i < 7; i++) {
            uint32_t value = 0, mask = 0;
            EACH {
                value |= (ua[l] >> (8u * o->in->m.byte + i) & 1) << l;
                mask |= (b[l] >> i & 1) << l;
            }
            put_undefined_pred(d, i, value, on & mask, origin);
        }
        return;
    }
    case RULE_VOTE: vote(w, o, on, origin); return;
    case RULE_MATRIX: matrix(w, o, p, origin); return;
    case RULE_SHUFFLE:
        move(w, o, on, out);
        preds = 0;
        loud = moved ? ALL_LANES : 0;
        break;
    case RULE_WARP:
        if (open & on)
            open = preds = preds1 = loud = ALL_LANES;
        fill(out, open);
        fill(high, open);
        break;
    default:
        fill(out, open);
        fill(high, open);
        break;
    }
    const uint32_t written = o->in->op == TURING_R2UR ? ALL_LANES : on;
    for (unsigned i = 0; i < p->n_writes; i++)
        put_bits(d, p->write[i], i && p->rule != RULE_MOVE ? high : out, written, loud, origin);
    for (int i = 0; i < 2; i++)
        if (o->pdst[i] != PRED_SINK)
            put_undefined_pred(d, o->pdst[i], i ? preds1 : preds, written, origin);
}

void emu_define_follow(warp_t *w, const op_t *o, uint32_t on)
{
    define_t *d = w->define;
    const struct define_plan *p = &w->block->worker->m->define_plans[o - w->block->worker->m->ops];
    bool touched = false;
    for (unsigned i = 0; i < p->n_reads && !touched; i++)
        touched = is_dirty(d, p->read[i]);
    for (unsigned i = 0; i < p->n_preds && !touched; i++)
        touched = d->pred[p->pred[i]];
    if (!touched) {
        uint32_t lanes = o->uniform || o->in->op == TURING_VOTEU || o->in->op == TURING_R2UR ? ALL_LANES : on;
        if (!on)
            return;
        for (unsigned i = 0; i < p->n_writes; i++)
            if (is_dirty(d, p->write[i]))
                put_bits(d, p->write[i], none, lanes, 0, NULL);
        for (int i = 0; i < 2; i++)
            if (d->dirty_pred >> o->pdst[i] & 1)
                put_undefined_pred(d, o->pdst[i], 0, lanes, NULL);
        if (p->rule == RULE_FROM_WORD)
            for (unsigned i = 0; i < 7; i++)
                put_undefined_pred(d, i, 0, lanes, NULL);
        update_any(d);
        return;
    }
    const uint32_t guarded = d->pred[o->guard] & w->active;
    switch ((rule_t)p->rule) {
    case RULE_CONTROL:
        for (unsigned i = 0; i < p->n_preds; i++)
            pred_matters(w, o, p->pred[i], w->active, "decides by it");
        for (unsigned i = 0; i < p->n_reads; i++)
            words_matter(w, o, p->read[i], on, "decides by it");
        break;
    case RULE_LOAD:
    case RULE_STORE:
        if (guarded && (p->rule == RULE_STORE || o->in->op == TURING_RED))
            pred_matters(w, o, o->guard, w->active, "stores or not, depending on it");
        if (o->in->mem.present && on) {
            for (unsigned i = 0; i < (o->in->mem.base_words ? o->in->mem.base_words : 1); i++)
                words_matter(w, o, o->addr_base + i, on, "has it in its address");
            for (unsigned i = 0; i < o->in->mem.uniform_words; i++)
                words_matter(w, o, o->addr_uniform + i, ALL_LANES, "has it in its address");
        } else if (!o->in->mem.present && on)
            for (unsigned i = 0; i < p->n_reads; i++)
                words_matter(w, o, p->read[i], on, "has it in its address");
        if (p->rule == RULE_LOAD) {
            mask_t unknown;
            fill(unknown, guarded);
            for (unsigned i = 0; i < p->n_writes; i++) /* those that are on are filled by the load */
                put_bits(d, p->write[i], unknown, on | guarded, guarded, guarded ? &d->pred_origin[o->guard] : NULL);
            if (on && o->pdst[0] != PRED_SINK)
                put_undefined_pred(d, o->pdst[0], 0, on, NULL);
        }
        break;
    default: {
        const origin_t *found = origin_of(d, p);
        const origin_t origin = found ? *found : (origin_t){0};
        if (on)
            results(w, o, p, o->uniform ? ALL_LANES : on, &origin);
        if (guarded) { /* written or not */
            mask_t unknown;
            fill(unknown, guarded);
            for (unsigned i = 0; i < p->n_writes; i++)
                put_bits(d, p->write[i], unknown, guarded, guarded, &origin);
            for (int i = 0; i < 2; i++)
                if (o->pdst[i] != PRED_SINK)
                    put_undefined_pred(d, o->pdst[i], guarded, guarded, &origin);
        }
        break;
    }
    }
    update_any(d);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The number of what is to be told where the host reads what `o` stores. */
static uint8_t note(warp_t *w, const op_t *o, const origin_t *from)
{
    const machine_t *m = w->block->worker->m;
    const op_t *source = &m->ops[from->code];
    char text[TURING_TEXT_MAX + 200], what[TURING_TEXT_MAX + 300], insn[TURING_TEXT_MAX];
    describe(m, o, text);
    snprintf(what, sizeof what, "%s, and %s stores it where the host reads it",
             source->in->op == TURING_SHFL ? "takes a value from a lane that does not execute this SHFL"
                                           : "reads what was never written",
             text);
    turing_disasm(source->in, insn);
    turing_violation_t v = {.kind = source->in->op == TURING_SHFL ? TURING_DIVERGENT : TURING_UNINITIALISED,
                            .kernel = m->kernel->name,
                            .code = source->in->addr,
                            .insn = insn,
                            .warp = w->index,
                            .lane = from->lane,
                            .space = (turing_space_t)from->space,
                            .address = from->address,
                            .bytes = from->bytes,
                            .count = 1,
                            .what = what};
    v.advice = emu_advice(v.kind);
    memcpy(v.block, w->block->id, sizeof v.block);
    if (m->kernel->lines) {
        v.file = m->kernel->lines[from->code].file;
        v.line = m->kernel->lines[from->code].line;
    }
    return emu_memory_note(m->mem, &v, o->in->addr);
}

/* Shadow of bytes that storage backs: states, and undefined bits of those that were written. False: not tracked. */
static bool shadows(const warp_t *w, turing_space_t space, uint32_t lane, uint64_t address, uint8_t **valid,
                    uint8_t **bits, alloc_t **alloc)
{
    const block_t *b = w->block;
    const machine_t *m = b->worker->m;
    *alloc = NULL;
    if (space == TURING_SPACE_GLOBAL) {
        alloc_t *a = w->hit;
        if (!a || address - a->base >= a->size)
            a = emu_memory_find(m->mem, address);
        if (!a || !a->valid)
            return false;
        *alloc = a;
        *valid = a->valid + (address - a->base);
        *bits = a->undefined ? a->undefined + (address - a->base) : NULL;
        return true;
    }
    if (space == TURING_SPACE_SHARED && b->shared_valid) {
        *valid = b->shared_valid + address;
        *bits = b->shared_undefined + address;
        return true;
    }
    if (space == TURING_SPACE_LOCAL && w->local_valid) {
        *valid = w->local_valid + (uint64_t)lane * m->local_bytes + address;
        *bits = w->local_undefined + (uint64_t)lane * m->local_bytes + address;
        return true;
    }
    return false;
}

bool emu_define_bytes(const warp_t *w, turing_space_t space, uint32_t lane, uint64_t address, uint32_t bytes,
                      uint8_t out[16])
{
    uint8_t *valid, *bits, any = 0;
    alloc_t *a;
    if (!shadows(w, space, lane, address, &valid, &bits, &a))
        return false;
    uint32_t states, undefined = 0;
    if (bytes == 4 && !(address & 3)) { /* mostly: all of a word was written; behind an allocation's end nothing is */
        memcpy(&states, valid, 4);
        if (bits)
            memcpy(&undefined, bits, 4);
        if (states == BYTE_WRITTEN * UINT32_C(0x01010101) && !undefined && (!a || a->base + a->size - address >= 4))
            return false;
    }
    uint32_t backed = bytes; /* an aligned word may reach over an allocation's end */
    if (a && a->base + a->size - address < bytes)
        backed = (uint32_t)(a->base + a->size - address);
    if (backed == bytes && !memchr(valid, BYTE_NOT_WRITTEN, bytes)) {
        if (!bits)
            return false;
        for (uint32_t i = 0; i < bytes; i++)
            any |= bits[i];
        if (!any)
            return false;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        out[i] = i >= backed || valid[i] == BYTE_NOT_WRITTEN ? 0xff : bits ? bits[i] : 0;
        any |= out[i];
    }
    return any;
}

void emu_define_put(warp_t *w, const op_t *o, unsigned row, const uint32_t bits[LANES], uint32_t on, site_t from)
{
    const origin_t origin = {.address = from.address,
                             .code = (uint32_t)(o - w->block->worker->m->ops),
                             .space = (uint8_t)from.space,
                             .lane = (uint8_t)from.lane,
                             .bytes = (uint8_t)from.bytes};
    put_bits(w->define, row, bits, on, o->in->op == TURING_SHFL ? on : 0, &origin);
}

void emu_define_load(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES])
{
    const uint32_t bytes = o->in->mem.bytes;
    const bool begins = w->block->worker->m->define_plans[o - w->block->worker->m->ops].tries;
    uint32_t bits[4][LANES], undefined = 0, first = LANES;
    EACH {
        uint8_t at[16];
        if (!(on >> l & 1) || !emu_define_bytes(w, space, (uint32_t)l, address[l], bytes, at))
            continue;
        if (begins && (at[0] & at[1] & at[2] & at[3]) != 0xff)
            continue;
        if (!undefined)
            memset(bits, 0, sizeof bits);
        undefined |= 1u << l;
        first = first == LANES ? (uint32_t)l : first;
        for (uint32_t i = 0; i < bytes; i++)
            bits[i / 4][l] |= (uint32_t)at[i] << i % 4 * 8;
        if (o->in->mem.is_signed && bytes < 4 && at[bytes - 1] & 0x80)
            bits[0][l] |= ~0u << 8 * bytes;
    }
    if (undefined)
        for (uint32_t i = 0; i < (bytes + 3) / 4; i++)
            emu_define_put(w, o, o->d + i, bits[i], on,
                           (site_t){.space = space, .address = address[first], .lane = first, .bytes = bytes});
}

/* Memory of the host's own, of which nothing is tracked, is read by it at once. */
static void store_bits(warp_t *w, const op_t *o, uint32_t lane, turing_space_t space, uint64_t address, uint32_t bytes,
                       const uint8_t at[16], bool any, bool loud, const origin_t *origin)
{
    machine_t *m = w->block->worker->m;
    uint8_t *valid, *bits;
    alloc_t *a;
    const bool tracked = shadows(w, space, lane, address, &valid, &bits, &a);
    if (loud && space == TURING_SPACE_GLOBAL && (!tracked || !m->launch->host_reads)) {
        matters(w, o, origin, "stores it");
        loud = false;
    }
    if (!tracked || (!any && !bits))
        return;
    if (a && bytes > a->base + a->size - address)
        bytes = (uint32_t)(a->base + a->size - address);
    if (space == TURING_SPACE_SHARED)
        w->block->has_undefined = true;
    else if (space == TURING_SPACE_LOCAL)
        w->has_undefined = true;
    if (!a) {
        memcpy(bits, at, bytes);
        return;
    }
    pthread_mutex_lock(&m->finding);
    if (emu_memory_undefine(a)) {
        memcpy(a->undefined + (address - a->base), at, bytes);
        memset(a->note + (address - a->base), loud ? note(w, o, origin) : 0, bytes);
        m->has_undefined = true;
    }
    pthread_mutex_unlock(&m->finding);
}

void emu_define_store(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES])
{
    define_t *d = w->define;
    const uint32_t bytes = o->in->mem.bytes, words = (bytes + 3) / 4;
    if (!d->any && !(space == TURING_SPACE_SHARED  ? w->block->has_undefined
                     : space == TURING_SPACE_LOCAL ? w->has_undefined
                                                   : w->block->worker->m->has_undefined))
        return;
    EACH {
        if (!(on >> l & 1))
            continue;
        uint8_t at[16] = {0}, any = 0, all = 0xff;
        bool loud = false;
        const origin_t *origin = NULL;
        for (uint32_t i = 0; i < words; i++)
            if (is_dirty(d, o->src[0] + i) && d->bits[o->src[0] + i][l]) {
                memcpy(at + 4 * i, &d->bits[o->src[0] + i][l], bytes < 4 ? bytes : 4);
                loud |= d->loud[o->src[0] + i] >> l & 1;
                origin = &d->origin[o->src[0] + i];
            }
        for (uint32_t i = 0; i < bytes; i++)
            any |= at[i], all &= at[i];
        store_bits(w, o, (uint32_t)l, space, address[l], bytes, at, any, any && (loud || (bytes >= 4 && all == 0xff)),
                   origin);
    }
}

void emu_define_atomic(warp_t *w, const op_t *o, uint32_t l, turing_space_t space, uint64_t address, uint32_t bytes,
                       bool cas, bool swaps)
{
    define_t *d = w->define;
    uint8_t old[16] = {0}, now[16] = {0}, any = 0;
    const bool was = emu_define_bytes(w, space, l, address, bytes, old), dirty = d->any;
    if (!was && !dirty)
        return;
    const unsigned source = o->src[cas ? 1 : 0];
    origin_t origin = {.address = address,
                       .code = (uint32_t)(o - w->block->worker->m->ops),
                       .space = (uint8_t)space,
                       .lane = (uint8_t)l,
                       .bytes = (uint8_t)bytes};
    for (uint32_t i = 0; i < bytes / 4; i++) {
        uint32_t from = is_dirty(d, source + i) ? d->bits[source + i][l] : 0, in_memory;
        memcpy(&in_memory, old + 4 * i, 4);
        if (from && !was)
            origin = d->origin[source + i];
        if (cas ? !swaps : o->in->m.func != TURING_ATOM_EXCH)
            from = cas ? in_memory : smear(from | in_memory);
        memcpy(now + 4 * i, &from, 4);
        any |= from != 0;
        /* What was compared is known from then on, and so is what it was compared with. */
        const uint32_t back = cas ? 0 : in_memory;
        mask_t bits = {0};
        bits[l] = back;
        if (o->d != ROW_SINK)
            put_bits(d, o->d + i, bits, 1u << l, 1u << l, &origin);
        if (cas && is_dirty(d, o->src[0] + i))
            put_bits(d, o->src[0] + i, none, 1u << l, 0, NULL);
    }
    store_bits(w, o, l, space, address, bytes, now, any, any && !cas, &origin);
}
