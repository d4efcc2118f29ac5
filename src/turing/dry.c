/* SPDX-License-Identifier: MIT */
/*
 * dry.c - which instructions a launch may leave out that is only to be timed.
 *
 * What takes time is the path of each warp, its addresses and its predicates.
 * An instruction whose result reaches none of these is idle: it is issued, and
 * accesses memory as far as time is concerned, but computes and moves nothing.
 * Two passes over the control flow find them, after one that leaves out what the
 * launch's parameters rule out (fold.c).  A warp that comes to such a place
 * nevertheless ends the launch with an error.
 *
 * Forward: a register is bulk where its value may come from an HMMA or from
 * memory.  A store of bulk is taken to be of data that decide nothing.  That is
 * a guess, and it is checked: bytes that such a store leaves out are marked as
 * absent, and an instruction that needs one ends the launch with an error.  To
 * local memory, where pointers are spilled as well, that is said of sums only.
 *
 * Backward: a register is needed where a path leads to a guard, an address, an
 * operand of a control instruction, an atomic or a store of what is not bulk.
 * An instruction is idle if none of its results is needed after it.
 *
 * All passes go through a function once for each call of it.  That it returns
 * behind that call is checked as it does.  Where calls are nested, nothing is
 * known, and nothing is idle.
 *
 * Taken to be off the path, and blocked, are jumps by registers, which choose an
 * activation, and what is guarded by a predicate that may come from an HMMA or from
 * more than a word of shared memory, as an activation's special cases are.  A warp
 * that comes to one ends the launch as well.  ptxas keeps predicates in bits of
 * registers whose other bits are what a sum has left, so what may come from sums,
 * and what is needed of such a register, is followed bit by bit.
 */
#include "bits.h"
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#define ALL_BITS UINT32_MAX

enum { SUCCESSORS = 2, NOWHERE = -1 };

typedef enum role {
    ROLE_COMPUTE,
    ROLE_CONTROL, /* control, atomics, fences: always executed */
    ROLE_LOAD,
    ROLE_STORE
} role_t;

/* What is needed somewhere, by condition: ALWAYS, or only in lanes where a predicate is true (2 p) or false
 * (2 p + 1).  A register may stand under several; one that is written before it is needed, both under
 * the same condition, is not needed before. */
enum { ALWAYS = 14, CONDITIONS };
typedef struct needs {
    set_t under[CONDITIONS];
    uint32_t bits[SLOT_UR]; /* of registers of which only some bits are needed: flags */
} needs_t;

/* Bits that may come from sums: an HMMA's, or what has been stored of them. */
typedef struct sums {
    uint32_t bits[SLOTS]; /* predicates: 0 or all */
} sums_t;

/* An instruction. */
typedef struct node {
    set_t condition, address, reads, writes; /* of the guard; of an access; all reads; all writes */
    role_t role;
    int guard;       /* condition under which a lane executes it, or ALWAYS          */
    bool overwrites; /* then it writes all of what it writes                         */
    bool bulk_source, bulk_store, sum_source;
    bool blocked;
    bool bitwise; /* its registers come to its result by `ways` alone; else any bit may come to any */
    ways_t ways;
    set_t others; /* of what is read: all that does not go by ways */
} node_t;

/* Instructions, and the places in which they stand: one for each instruction outside of calls, and
 * one for each within each call.  Place p is of instruction p % n. */
typedef struct graph {
    const machine_t *m;
    uint32_t n, places;
    node_t *node;
    int32_t (*next)[SUCCESSORS];
    bool *reached;
    known_t *known; /* before each place */
    set_t *bulk;    /* before each place: what may be bulk, and what of it may come from sums */
    sums_t *sums;
    needs_t *needed;
    uint32_t *visited, *grown; /* when a place last was, and its needs last grew, in visits */
} graph_t;

static bool meet(set_t *to, const set_t *from)
{
    uint64_t changed = 0;
    for (int i = 0; i < SLOT_WORDS; i++) {
        changed |= from->word[i] & ~to->word[i];
        to->word[i] |= from->word[i];
    }
    return changed != 0;
}

static bool meets(const set_t *a, const set_t *b)
{
    uint64_t common = 0;
    for (int i = 0; i < SLOT_WORDS; i++)
        common |= a->word[i] & b->word[i];
    return common != 0;
}

static void take_out(set_t *from, const set_t *what)
{
    for (int i = 0; i < SLOT_WORDS; i++)
        from->word[i] &= ~what->word[i];
}

static void put_in(set_t *s, uint32_t slot)
{
    s->word[slot / 64] |= UINT64_C(1) << slot % 64;
}

static role_t role_of(const turing_insn_t *in)
{
    switch (in->op) {
    case TURING_LDG:
    case TURING_LD:
    case TURING_LDS:
    case TURING_LDL:
    case TURING_LDSM: return ROLE_LOAD;
    case TURING_STG:
    case TURING_ST:
    case TURING_STS:
    case TURING_STL: return ROLE_STORE;
    case TURING_ATOM:
    case TURING_ATOM_CAS:
    case TURING_ATOMG:
    case TURING_ATOMG_CAS:
    case TURING_ATOMS:
    case TURING_ATOMS_CAS:
    case TURING_RED:
    case TURING_MEMBAR:
    case TURING_ERRBAR:
    case TURING_CCTL:
    case TURING_CCTLL:
    case TURING_CCTLT: return ROLE_CONTROL;
    default: return turing_op_pipe((turing_op_t)in->op) == TURING_PIPE_CONTROL ? ROLE_CONTROL : ROLE_COMPUTE;
    }
}

static bool is_true(const turing_pred_t *p)
{
    return !p->present || (p->reg == TURING_PT && !p->neg);
}

/* By registers, and not to return. */
static bool jumps(const turing_insn_t *in)
{
    return in->op == TURING_BRX || in->op == TURING_BRXU || in->op == TURING_JMX || in->op == TURING_JMXU;
}

/* Where a place leads to.  `call` is the instruction that called, or NOWHERE; `calls` counts those
 * before an instruction.  False where it may lead anywhere. */
static bool link_up(const graph_t *g, uint32_t place, int32_t call, const uint32_t *calls)
{
    const op_t *o = &g->m->ops[place % g->n];
    const turing_insn_t *in = o->in;
    const bool always = is_true(&in->guard) && is_true(&in->psrc[0]);
    const int32_t first = (int32_t)(place - place % g->n);
    int32_t *next = g->next[place];
    next[0] = place % g->n + 1 < g->n && !always ? (int32_t)place + 1 : NOWHERE;
    next[1] = NOWHERE;
    switch (in->op) {
    case TURING_BRA:
    case TURING_JMP:
        if (in->m.conv)
            next[0] = (int32_t)place + 1;
        next[1] = first + (int32_t)o->target;
        return o->target < g->n && !in->n_src;
    case TURING_CALL_REL:
    case TURING_CALL_ABS:
        next[1] = (int32_t)((calls[place % g->n] + 1) * g->n + o->target);
        return o->target < g->n && !in->n_src && call == NOWHERE;
    case TURING_RET_REL:
    case TURING_RET_ABS: next[1] = call + 1; return call != NOWHERE && (uint32_t)call + 1 < g->n;
    case TURING_EXIT: return true;
    case TURING_BRX:
    case TURING_BRXU:
    case TURING_JMX:
    case TURING_JMXU: next[0] = NOWHERE; return true;
    default: next[0] = place % g->n + 1 < g->n ? (int32_t)place + 1 : NOWHERE; return true;
    }
}

/* Links all places that can be reached. */
static bool explore(graph_t *g, const int32_t *call, const uint32_t *calls)
{
    int32_t *stack = malloc(g->places * sizeof *stack);
    uint32_t depth = 0;
    bool known = stack != NULL;
    if (known)
        stack[depth++] = 0;
    g->reached[0] = true;
    while (known && depth) {
        const uint32_t place = (uint32_t)stack[--depth];
        known = link_up(g, place, place < g->n ? NOWHERE : call[place / g->n - 1], calls);
        for (int i = 0; known && i < SUCCESSORS; i++) {
            const int32_t to = g->next[place][i];
            if (to == NOWHERE || g->reached[to])
                continue;
            g->reached[to] = true;
            stack[depth++] = to;
        }
    }
    free(stack);
    return known;
}

static void describe(const turing_insn_t *in, node_t *node)
{
    static const uint32_t base[TURING_FILE_COUNT] = {
        [TURING_FILE_UR] = SLOT_UR, [TURING_FILE_P] = SLOT_P, [TURING_FILE_UP] = SLOT_UP};
    turing_access_t access[TURING_ACCESS_MAX];
    const int n = turing_insn_access(in, access);
    for (int i = 0; i < n; i++)
        for (uint32_t r = 0; r < access[i].count && access[i].file != TURING_FILE_B; r++)
            put_in(access[i].write ? &node->writes : &node->reads, base[access[i].file] + access[i].first + r);
    if (in->mem.present) {
        for (uint32_t i = 0; i < in->mem.base_words && in->mem.base != TURING_RZ; i++)
            put_in(&node->address, in->mem.base + i);
        for (uint32_t i = 0; i < in->mem.uniform_words && in->mem.uniform != TURING_URZ; i++)
            put_in(&node->address, SLOT_UR + in->mem.uniform + i);
    }
    if (in->guard.reg != TURING_PT)
        put_in(&node->condition, (in->guard.uniform ? SLOT_UP : SLOT_P) + in->guard.reg);
    node->role = role_of(in);
    const bool guarded = in->guard.reg != TURING_PT && !in->guard.uniform;
    node->guard = guarded ? 2 * in->guard.reg + in->guard.neg : ALWAYS;
    node->overwrites = (in->op != TURING_R2P || in->src[1].kind == TURING_IMM) && (guarded || is_true(&in->guard));
    node->others = node->reads;
    node->bitwise = emu_ways(in, &node->ways);
    if (node->bitwise)
        for (uint32_t i = 0; i < SLOT_UR / 64; i++)
            node->others.word[i] = 0;
    node->bulk_source = node->role == ROLE_LOAD || in->op == TURING_HMMA_1688;
    node->sum_source = in->op == TURING_HMMA_1688 || (in->op == TURING_LDS && in->mem.bytes > 4);
    node->blocked = jumps(in);
}

/* Takes out what a place does not lead to, for what is known before it. */
static void choose(graph_t *g, uint32_t p)
{
    const turing_insn_t *in = g->m->ops[p % g->n].in;
    const truth_t guard = emu_fold_pred(&g->known[p], &in->guard), also = emu_fold_pred(&g->known[p], &in->psrc[0]);
    if ((in->op != TURING_BRA && in->op != TURING_EXIT) || in->m.conv)
        return;
    if (guard == FALSE_IN_ALL || also == FALSE_IN_ALL)
        g->next[p][1] = NOWHERE;
    else if (guard == TRUE_IN_ALL && also == TRUE_IN_ALL)
        g->next[p][0] = NOWHERE;
}

/* What the launch's parameters decide, and so which places are reached. */
static bool spread_known(graph_t *g, machine_t *m)
{
    worker_t worker = {.m = m};
    block_t *scratch = emu_block_create(&worker);
    int32_t(*every)[SUCCESSORS] = malloc(g->places * sizeof *every);
    const bool ok = scratch && every;
    if (ok) {
        emu_block_start(scratch, 0);
        memcpy(every, g->next, g->places * sizeof *every);
        memset(g->reached, 0, g->places * sizeof *g->reached);
        g->reached[0] = true;
    }
    for (bool changed = ok; changed;) {
        changed = false;
        for (uint32_t p = 0; p < g->places; p++) {
            if (!g->reached[p])
                continue;
            const node_t *node = &g->node[p % g->n];
            known_t after = g->known[p];
            emu_fold_step(scratch->warp, &m->ops[p % g->n], &node->reads, &node->writes, &after);
            memcpy(g->next[p], every[p], sizeof *every);
            choose(g, p);
            for (int i = 0; i < SUCCESSORS; i++) {
                const int32_t to = g->next[p][i];
                if (to == NOWHERE)
                    continue;
                changed |= emu_fold_meet(&g->known[to], &after, !g->reached[to]);
                g->reached[to] = true;
            }
        }
    }
    emu_block_free(scratch);
    free(every);
    return ok;
}

static truth_t agree(const graph_t *g, uint32_t i, const turing_pred_t *pred)
{
    bool may_be[3] = {false};
    for (uint32_t p = i; p < g->places; p += g->n)
        if (g->reached[p])
            may_be[emu_fold_pred(&g->known[p], pred)] = true;
    return may_be[UNKNOWN] || may_be[FALSE_IN_ALL] == may_be[TRUE_IN_ALL] ? UNKNOWN
           : may_be[TRUE_IN_ALL]                                          ? TRUE_IN_ALL
                                                                          : FALSE_IN_ALL;
}

/* Of an instruction what it does in this launch: a guard or a SEL's predicate may be known. */
static void specialize(const graph_t *g, uint32_t i)
{
    node_t *node = &g->node[i];
    const turing_insn_t *in = g->m->ops[i].in;
    const truth_t guard = agree(g, i, &in->guard), chooses = agree(g, i, &in->psrc[0]);
    if (guard == FALSE_IN_ALL) { /* it takes a turn and does nothing */
        const set_t none = {{0}};
        node->reads = node->condition;
        node->address = node->writes = node->others = none;
        node->bitwise = false;
        node->guard = ALWAYS;
        node->bulk_source = node->sum_source = false;
    } else if (guard == TRUE_IN_ALL && node->overwrites)
        node->guard = ALWAYS;
    if (in->op == TURING_SEL && guard != FALSE_IN_ALL && chooses != UNKNOWN) {
        const turing_operand_t *left = &in->src[chooses == TRUE_IN_ALL ? 1 : 0],
                               *taken = &in->src[chooses == TRUE_IN_ALL ? 0 : 1];
        if (left->kind == TURING_REG && left->reg != TURING_RZ &&
            (taken->kind != TURING_REG || taken->reg != left->reg)) {
            node->reads.word[left->reg / 64] &= ~(UINT64_C(1) << left->reg % 64);
            node->others.word[left->reg / 64] &= ~(UINT64_C(1) << left->reg % 64);
        }
    }
}

/* What may derive from bulk, before each place. */
static void spread_bulk(const graph_t *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t p = 0; p < g->places; p++) {
            const node_t *node = &g->node[p % g->n];
            set_t after = g->bulk[p];
            if (!g->reached[p])
                continue;
            if (node->overwrites && node->guard == ALWAYS)
                take_out(&after, &node->writes);
            if (node->bulk_source || meets(&node->reads, &g->bulk[p]))
                meet(&after, &node->writes);
            for (int i = 0; i < SUCCESSORS; i++)
                if (g->next[p][i] != NOWHERE)
                    changed |= meet(&g->bulk[g->next[p][i]], &after);
        }
    }
}

static bool any_of(const sums_t *sums, const set_t *slots)
{
    for (uint32_t i = 0; i < SLOT_WORDS; i++)
        for (uint64_t rest = slots->word[i]; rest; rest &= rest - 1)
            if (sums->bits[64 * i + (uint32_t)__builtin_ctzll(rest)])
                return true;
    return false;
}

/* Sums only settle what is blocked: a guarded write counts as one of all lanes, for what it leaves is rarely used. */
static void step_forward(sums_t *s, const node_t *node)
{
    const bool others = any_of(s, &node->others);
    const bool all = node->sum_source || any_of(s, &node->condition);
    uint32_t result = all ? ALL_BITS : !others ? 0 : node->bitwise ? node->ways.others : ALL_BITS;
    for (int i = 0; node->bitwise && i < node->ways.n; i++)
        result |= emu_arrive(&node->ways.way[i], s->bits[node->ways.way[i].reg]);
    const uint32_t truth = result || others ? ALL_BITS : 0; /* of predicates */
    for (uint32_t i = 0; i < SLOT_WORDS; i++)
        for (uint64_t rest = node->writes.word[i]; rest; rest &= rest - 1) {
            const uint32_t slot = 64 * i + (uint32_t)__builtin_ctzll(rest);
            const uint32_t bits = slot < SLOT_P ? result : truth;
            s->bits[slot] = node->overwrites ? bits : s->bits[slot] | bits;
        }
}

static bool meet_sums(sums_t *to, const sums_t *from)
{
    uint32_t changed = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        changed |= from->bits[i] & ~to->bits[i];
        to->bits[i] |= from->bits[i];
    }
    return changed != 0;
}

static void spread_sums(const graph_t *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t p = 0; p < g->places; p++) {
            if (!g->reached[p])
                continue;
            sums_t after = g->sums[p];
            step_forward(&after, &g->node[p % g->n]);
            for (int i = 0; i < SUCCESSORS; i++)
                if (g->next[p][i] != NOWHERE)
                    changed |= meet_sums(&g->sums[g->next[p][i]], &after);
        }
    }
}

static void find_bulk(graph_t *g)
{
    spread_bulk(g);
    spread_sums(g);
    for (uint32_t p = 0; p < g->places; p++) {
        node_t *node = &g->node[p % g->n];
        set_t data = node->reads;
        take_out(&data, &node->address);
        take_out(&data, &node->condition);
        const bool spills = g->m->ops[p % g->n].in->op == TURING_STL;
        node->bulk_store |= g->reached[p] && node->role == ROLE_STORE &&
                            (spills ? any_of(&g->sums[p], &data) : meets(&data, &g->bulk[p]));
        node->blocked |= g->reached[p] && any_of(&g->sums[p], &node->condition);
    }
}

static bool meet_needs(needs_t *to, const needs_t *from)
{
    uint32_t changed = 0;
    for (int c = 0; c < CONDITIONS; c++)
        changed |= meet(&to->under[c], &from->under[c]);
    for (uint32_t r = 0; r < SLOT_UR; r++) {
        changed |= from->bits[r] & ~to->bits[r];
        to->bits[r] |= from->bits[r];
    }
    return changed != 0;
}

static needs_t needed_after(const graph_t *g, uint32_t p)
{
    static const needs_t none;
    const int32_t *next = g->next[p];
    needs_t s = next[0] != NOWHERE ? g->needed[next[0]] : next[1] != NOWHERE ? g->needed[next[1]] : none;
    if (next[0] != NOWHERE && next[1] != NOWHERE)
        meet_needs(&s, &g->needed[next[1]]);
    const node_t *node = &g->node[p % g->n];
    for (int c = 0; c < ALWAYS; c++) /* conditions are those before the instruction */
        if (node->writes.word[SLOT_P / 64] >> (SLOT_P % 64 + c / 2) & 1) {
            meet(&s.under[ALWAYS], &s.under[c]);
            s.under[c] = (set_t){{0}};
        }
    return s;
}

/* Whether all bits are needed of something that an instruction writes. */
static bool is_needed(const node_t *node, const needs_t *needed)
{
    for (int c = 0; c < CONDITIONS; c++)
        if ((node->guard == ALWAYS || c != (node->guard ^ 1)) && meets(&node->writes, &needed->under[c]))
            return true;
    return false;
}

/* The bits that are needed of what an instruction writes, in any of its registers. */
static uint32_t needed_bits(const node_t *node, const needs_t *needed)
{
    uint32_t bits = is_needed(node, needed) ? ALL_BITS : 0;
    for (uint32_t i = 0; i < SLOT_UR / 64; i++)
        for (uint64_t rest = node->writes.word[i]; rest; rest &= rest - 1)
            bits |= needed->bits[64 * i + (uint32_t)__builtin_ctzll(rest)];
    return bits;
}

static bool is_idle(const node_t *node, const needs_t *needed)
{
    return node->role == ROLE_STORE ? node->bulk_store : node->role != ROLE_CONTROL && !needed_bits(node, needed);
}

static void overwrite(needs_t *needed, const node_t *node)
{
    if (node->guard == ALWAYS) {
        for (int c = 0; c < CONDITIONS; c++)
            take_out(&needed->under[c], &node->writes);
        for (uint32_t i = 0; i < SLOT_UR / 64; i++)
            for (uint64_t rest = node->writes.word[i]; rest; rest &= rest - 1)
                needed->bits[64 * i + (uint32_t)__builtin_ctzll(rest)] = 0;
    } else {
        set_t both = needed->under[ALWAYS];
        take_out(&needed->under[ALWAYS], &node->writes);
        take_out(&needed->under[node->guard], &node->writes);
        take_out(&both, &needed->under[ALWAYS]);
        meet(&needed->under[node->guard ^ 1], &both);
    }
}

/* What is needed before an instruction, from what is after it. */
static void step_back(needs_t *s, const node_t *node)
{
    if (node->blocked)
        return;
    const bool idle = is_idle(node, s);
    /* which bits are needed is known for all lanes only, so not where a guard says that none is */
    const bool bitwise = node->bitwise && (node->guard == ALWAYS || !is_needed(node, s));
    const uint32_t wanted = bitwise ? needed_bits(node, s) : ALL_BITS;
    if (node->overwrites)
        overwrite(s, node);
    meet(&s->under[ALWAYS], &node->condition);
    meet(&s->under[node->guard], &node->address);
    if (idle)
        return;
    set_t reads = bitwise ? node->others : node->reads;
    for (int i = 0; bitwise && i < node->ways.n; i++) {
        const way_t *way = &node->ways.way[i];
        const uint32_t bits = emu_origin(way, wanted);
        if (bits == ALL_BITS)
            put_in(&reads, way->reg);
        else
            s->bits[way->reg] |= bits;
    }
    meet(&s->under[node->guard], &reads);
}

/* Whether what is needed after a place has grown since the place was last visited. */
static bool is_stale(const graph_t *g, uint32_t p)
{
    for (int i = 0; i < SUCCESSORS; i++)
        if (g->next[p][i] != NOWHERE && g->grown[g->next[p][i]] >= g->visited[p])
            return true;
    return !g->visited[p];
}

static void find_needed(graph_t *g)
{
    uint32_t now = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t p = g->places; p-- > 0;) {
            if (!g->reached[p] || !is_stale(g, p))
                continue;
            needs_t s = needed_after(g, p);
            step_back(&s, &g->node[p % g->n]);
            g->visited[p] = ++now;
            if (meet_needs(&g->needed[p], &s)) {
                g->grown[p] = now;
                changed = true;
            }
        }
    }
}

/* An instruction is idle if it is wherever it stands. */
static void settle(const graph_t *g, machine_t *m)
{
    for (uint32_t i = 0; i < g->n; i++) {
        bool reached = false, idle = true;
        for (uint32_t p = i; p < g->places; p += g->n) {
            const needs_t s = needed_after(g, p);
            reached |= g->reached[p];
            idle &= !g->reached[p] || is_idle(&g->node[i], &s);
        }
        m->ops[i].idle = idle;
        if (!reached)
            m->ops[i].flow = FLOW_UNFORESEEN;
        else if (g->node[i].blocked)
            m->ops[i].flow = FLOW_BLOCKED;
        else if (idle && g->node[i].role == ROLE_COMPUTE)
            m->ops[i].flow = FLOW_IDLE;
    }
    m->dry = true;
}

bool emu_dry_open(machine_t *m)
{
    graph_t g = {.m = m, .n = m->n_ops};
    uint32_t *calls = calloc(g.n + 1, sizeof *calls), n_calls = 0; /* calls before each instruction */
    int32_t *call = calloc(g.n + 1, sizeof *call);
    for (uint32_t i = 0; calls && call && i < g.n; i++) {
        calls[i] = n_calls;
        if (m->ops[i].in->op == TURING_CALL_REL || m->ops[i].in->op == TURING_CALL_ABS)
            call[n_calls++] = (int32_t)i;
    }
    g.places = g.n * (n_calls + 1);
    g.node = calloc(g.n + 1, sizeof *g.node);
    g.next = calloc(g.places + 1, sizeof *g.next);
    g.reached = calloc(g.places + 1, sizeof *g.reached);
    g.known = calloc(g.places + 1, sizeof *g.known);
    g.bulk = calloc(g.places + 1, sizeof *g.bulk);
    g.sums = calloc(g.places + 1, sizeof *g.sums);
    g.needed = calloc(g.places + 1, sizeof *g.needed);
    g.visited = calloc(g.places + 1, sizeof *g.visited);
    g.grown = calloc(g.places + 1, sizeof *g.grown);
    bool ok = calls && call && g.node && g.next && g.reached && g.known && g.bulk && g.sums && g.needed && g.visited &&
              g.grown;
    for (uint32_t i = 0; ok && i < g.n; i++)
        describe(m->ops[i].in, &g.node[i]);
    if (ok && explore(&g, call, calls)) {
        ok = !m->launch->params || spread_known(&g, m);
        for (uint32_t i = 0; ok && m->launch->params && i < g.n; i++)
            specialize(&g, i);
        find_bulk(&g);
        find_needed(&g);
        settle(&g, m);
    }
    free(calls);
    free(call);
    free(g.node);
    free(g.next);
    free(g.reached);
    free(g.known);
    free(g.bulk);
    free(g.sums);
    free(g.needed);
    free(g.visited);
    free(g.grown);
    return ok;
}
