/* SPDX-License-Identifier: MIT */
/*
 * exec_flow.c - the instruction loop of a warp: branches, divergence and
 * reconvergence, calls, exits, barriers.
 *
 * A warp runs one set of lanes, `active`, at `pc`.  A branch that splits it
 * parks the other lanes in `split`.  As on the hardware, lanes meet again only
 * where the code says so: at a BSYNC, for the participants that BSSY recorded,
 * or at a WARPSYNC.  Lanes that merely reach the same address stay apart, so
 * that code which relies on luck is seen to do so.
 *
 * Convergence barriers are kept per lane: parts of a warp may use the same
 * barrier register at different depths.
 */
#include "define.h"
#include "system.h"
#include "trace.h"

#include <stdio.h>

enum {
    SPINS = 256,      /* backward branches of a split warp before another part runs         */
    TURN = 4096,      /* backward branches of a warp before other warps of its block may run */
    TURNS_A_LOOK = 16 /* at the clock */
};

static uint32_t first_lane(uint32_t mask)
{
    uint32_t l = 0;
    while (!(mask >> l & 1))
        l++;
    return l;
}

/* ---- splits ----------------------------------------------------------------------- */

static void park(warp_t *w, uint32_t mask, uint32_t pc, int wait, uint32_t need)
{
    if (mask)
        w->split[w->n_splits++] = (split_t){mask, pc, wait, need};
}

/* The lanes that a waiting split must meet. */
static uint32_t company(const warp_t *w, const split_t *s)
{
    return (s->wait == WAIT_WARPSYNC ? s->need : w->barrier[s->wait][first_lane(s->mask)]) & w->alive;
}

/* Do two waiting splits wait for each other? A barrier register may be in use at several depths of calls:
 * those that wait at one depth have the same participants, and at another depth others. At a WARPSYNC those
 * meet that name the same lanes. */
static bool meet_each_other(const warp_t *w, const split_t *a, const split_t *b)
{
    return a->wait == b->wait && company(w, a) == company(w, b);
}

/* The lanes that wait where split s does. */
static uint32_t waiting(const warp_t *w, const split_t *s)
{
    uint32_t mask = 0;
    for (int i = 0; i < w->n_splits; i++)
        if (w->split[i].wait != WAIT_NONE && meet_each_other(w, &w->split[i], s))
            mask |= w->split[i].mask;
    return mask;
}

/* Frees waiting splits whose company is complete; those at one address merge. */
static void release(warp_t *w)
{
    for (int i = 0; i < w->n_splits; i++) {
        split_t *s = &w->split[i];
        if (s->wait == WAIT_NONE)
            continue;
        uint32_t need = company(w, s);
        if (need & ~waiting(w, s))
            continue;
        uint32_t together = need | s->mask;
        const split_t first = *s;
        if (w->block->race && first.wait == WAIT_WARPSYNC)
            emu_race_sync(w, together);
        for (int j = 0; j < w->n_splits; j++)
            if (w->split[j].mask & together && w->split[j].wait != WAIT_NONE &&
                meet_each_other(w, &w->split[j], &first))
                w->split[j].wait = WAIT_NONE;
        for (int j = w->n_splits - 1; j > i; j--)
            if (w->split[j].wait == WAIT_NONE && w->split[j].mask & together && w->split[j].pc == w->split[i].pc) {
                w->split[i].mask |= w->split[j].mask;
                w->split[j] = w->split[--w->n_splits];
            }
    }
}

/* Makes a runnable split the active one.  False when there is none. */
static bool pick(warp_t *w)
{
    release(w);
    for (int i = 0; i < w->n_splits; i++)
        if (w->split[i].wait == WAIT_NONE) {
            w->active = w->split[i].mask;
            w->pc = w->split[i].pc;
            /* keep the order of arrival, so that everyone gets a turn */
            for (int j = i + 1; j < w->n_splits; j++)
                w->split[j - 1] = w->split[j];
            w->n_splits--;
            return true;
        }
    return false;
}

static uint32_t waits_at(const warp_t *w, const split_t *s)
{
    return w->block->worker->m->ops[s->pc && s->pc <= w->block->worker->m->n_ops ? s->pc - 1 : 0].in->addr;
}

/* Who waits for whom, of lanes that never meet: a __syncwarp first, which names lanes that do not come. */
static void say_mismatch(warp_t *w, const op_t *o)
{
    const split_t *s = &w->split[0], *other = NULL;
    for (int i = 0; i < w->n_splits; i++)
        if (w->split[i].wait == WAIT_WARPSYNC)
            s = &w->split[i];
    const uint32_t here = waiting(w, s), absent = company(w, s) & ~here;
    for (int i = 0; i < w->n_splits; i++)
        if (w->split[i].mask & absent)
            other = &w->split[i];
    const bool named = s->wait == WAIT_WARPSYNC;
    emu_report(w, o, TURING_BARRIER_MISMATCH, (site_t){.lane = TURING_NO_LANE},
               "lanes 0x%08x wait at 0x%x %s lanes 0x%08x, of which 0x%08x do not come: they wait at 0x%x%s", here,
               waits_at(w, s), named ? "with a __syncwarp, a shuffle or a vote that names" : "to reconverge with",
               company(w, s), absent, other ? waits_at(w, other) : 0,
               !other                         ? ""
               : other->wait == WAIT_WARPSYNC ? ", with one of other lanes"
                                              : " to reconverge, having left the branch or the loop");
}

static void stuck(warp_t *w, const op_t *o)
{
    const machine_t *m = w->block->worker->m;
    uint32_t in_warpsync = 0;
    char where[400] = "";
    size_t n = 0;
    for (int i = 0; i < w->n_splits; i++) {
        const split_t *s = &w->split[i];
        if (s->wait == WAIT_WARPSYNC)
            in_warpsync |= s->mask;
        if (n + 1 < sizeof where) {
            int k = snprintf(where + n, sizeof where - n, "; lanes 0x%08x wait at 0x%x for 0x%08x", s->mask,
                             waits_at(w, s), company(w, s));
            n += k > 0 ? (size_t)k : 0;
        }
    }
    if (m->checks & TURING_CHECK_CONVERGENCE)
        say_mismatch(w, o);
    /* A shuffle or vote of more lanes than come: a GPU does not wait for those that wait to reconverge (BSYNC). For
     * those that wait at a WARPSYNC of other lanes it does, and for ever: lab note 376. */
    for (int i = 0; i < w->n_splits; i++)
        if (w->split[i].wait == WAIT_WARPSYNC &&
            !(company(w, &w->split[i]) & ~waiting(w, &w->split[i]) & in_warpsync)) {
            w->split[i].wait = WAIT_NONE;
            pick(w);
            return;
        }
    emu_fault_as(w, o, TURING_FAILED_STUCK, "the lanes of the warp wait for each other at different places%s", where);
}

/* Parks the active lanes and runs others. */
static void yield_to(warp_t *w, const op_t *o, uint32_t pc, int wait, uint32_t need)
{
    park(w, w->active, pc, wait, need);
    w->active = 0;
    if (!pick(w))
        stuck(w, o);
}

static void exit_lanes(warp_t *w, uint32_t lanes)
{
    machine_t *m = w->block->worker->m;
    if (m->grid_sync)
        emu_grid_leave(m, lanes & w->alive);
    w->alive &= ~lanes;
    w->active &= ~lanes;
    for (int i = w->n_splits - 1; i >= 0; i--) {
        w->split[i].mask &= ~lanes;
        if (!w->split[i].mask)
            w->split[i] = w->split[--w->n_splits];
    }
}

static void out_of_time(warp_t *w, const op_t *o)
{
    char where[480];
    emu_fault_as(w, o, TURING_FAILED_STUCK, "no block of the kernel has ended for %u seconds: an endless loop?%s",
                 w->block->worker->m->launch->seconds, emu_where(w->block, where, sizeof where));
}

/* ---- branches -------------------------------------------------------------------------- */

static void branch(warp_t *w, const op_t *o, uint32_t taken, uint32_t target)
{
    const uint32_t here = w->pc;
    if (target >= w->block->worker->m->n_ops) {
        if (taken)
            emu_fault(w, o, "jump outside the kernel");
        else
            w->pc++;
        return;
    }
    if (taken == w->active)
        w->pc = target;
    else if (!taken)
        w->pc++;
    else {
        park(w, taken, target, WAIT_NONE, 0);
        w->active &= ~taken;
        w->pc++;
    }
    if (target <= here && taken && !(++w->loops % TURN)) {
        if (!w->trace && w->block->live > 1 && w->stop == RUNNING)
            w->stop = STOP_TURN; /* what the loop waits for may be another warp's to do */
        if (!(w->loops % (TURN * TURNS_A_LOOK)) && emu_out_of_time(w->block->worker->m))
            out_of_time(w, o);
    }
    if (target <= here && taken && w->n_splits && ++w->spins >= SPINS) {
        /* The rest of the warp may be what this loop waits for. */
        w->spins = 0;
        yield_to(w, o, w->pc, WAIT_NONE, 0);
    }
}

/* Targets in registers: one branch per distinct value. */
static void branch_indirect(warp_t *w, const op_t *o, uint32_t taken, int source)
{
    const row_t *r = (const row_t *)(w->r + o->src[source]);
    uint32_t rest = w->active & ~taken, next = w->pc + 1;
    park(w, rest, next, WAIT_NONE, 0);
    while (taken) {
        uint32_t l = first_lane(taken), same = 0;
        for (uint32_t k = l; k < LANES; k++)
            if (taken >> k & 1 && r[0][k] == r[0][l])
                same |= 1u << k;
        const machine_t *m = w->block->worker->m;
        uint64_t to = (uint64_t)o->in->target + ((uint64_t)r[1][l] << 32 | r[0][l]);
        if (o->in->op == TURING_CALL_ABS && emu_system_is(to)) {
            const uint32_t waiting_lanes = same & ~emu_system_call(w, o, same, to);
            if (w->stop == STOP_FAULT)
                return;
            if (waiting_lanes) { /* for other warps: they call again */
                park(w, waiting_lanes, w->pc, WAIT_NONE, 0);
                w->stop = STOP_YIELD;
                same &= ~waiting_lanes;
                taken &= ~waiting_lanes;
                if (!same)
                    continue;
                l = first_lane(same);
            }
            to = ((uint64_t)w->r[RETURN_REGISTER + 1][l] << 32 | w->r[RETURN_REGISTER][l]);
            for (uint32_t k = l; k < LANES; k++) /* those that return elsewhere have a turn of their own */
                if (same >> k & 1 && w->r[RETURN_REGISTER][k] != (uint32_t)to) {
                    park(w, 1u << k, w->r[RETURN_REGISTER][k] / TURING_INSN_BYTES, WAIT_NONE, 0);
                    same &= ~(1u << k);
                    taken &= ~(1u << k);
                }
        }
        if (to % TURING_INSN_BYTES || to / TURING_INSN_BYTES >= m->n_ops) {
            emu_fault(w, o, "lane %u jumps to 0x%llx, outside the kernel", l, (unsigned long long)to);
            return;
        }
        if (m->dry && to / TURING_INSN_BYTES != w->called[l] + UINT64_C(1)) {
            emu_fault(w, o, "lane %u returns to 0x%llx, not behind its call: a dry launch cannot follow", l,
                      (unsigned long long)to);
            return;
        }
        park(w, same, (uint32_t)(to / TURING_INSN_BYTES), WAIT_NONE, 0);
        taken &= ~same;
    }
    w->active = 0;
    pick(w);
}

/* ---- barriers of the block ------------------------------------------------------------------ */

static void arrive(warp_t *w, const op_t *o, uint32_t on)
{
    const turing_insn_t *in = o->in;
    block_t *b = w->block;
    const machine_t *m = b->worker->m;
    if (on != w->alive) {
        if (!(m->checks & TURING_CHECK_CONVERGENCE)) {
            emu_fault(w, o, "a barrier with lanes 0x%08x of 0x%08x only", on, w->alive);
            return;
        }
        emu_report(w, o, TURING_DIVERGENT, (site_t){.lane = TURING_NO_LANE},
                   "the barrier is reached by lanes 0x%08x of 0x%08x only", on, w->alive);
        /* the others are taken along, as if they had arrived */
        w->n_splits = 0;
        w->active = w->alive;
    }
    uint32_t l = first_lane(on), id = w->r[o->src[0]][l], count = w->r[o->src[1]][l];
    if (in->n_src < 1) {
        emu_fault(w, o, "a barrier without a number");
        return;
    }
    if (in->src[0].kind == TURING_REG && in->n_src < 2) { /* BAR R: number and count in one register */
        count = id >> 16;
        id &= 15;
    }
    if (id > 15 || count % LANES || count > m->n_warps * LANES) {
        emu_fault(w, o, "barrier %u with %u threads", id, count);
        return;
    }
    named_barrier_t *n = &b->barrier[id];
    const bool waits = in->m.func != TURING_BAR_ARV;
    if (!n->arrived) {
        n->expected = count;
        n->code = in->addr;
        n->popc = n->any = 0;
        n->all = 1;
    } else if (n->expected != count) {
        emu_report(w, o, TURING_BARRIER_MISMATCH,
                   (site_t){.lane = TURING_NO_LANE,
                            .has_other = true,
                            .other_code = n->code,
                            .other_warp = w->index,
                            .other_block = b->linear},
                   "barrier %u is used with %u threads here and %u elsewhere", id, count, n->expected);
        emu_fault(w, o, "barrier %u is used with %u threads here and %u at 0x%x", id, count, n->expected, n->code);
        return;
    }
    n->arrived += LANES;
    if (w->trace)
        emu_time_barrier(w, id, count);
    if (in->m.func == TURING_BAR_RED) {
        uint32_t p = pred(w, o, 0) & on;
        for (uint32_t k = 0; k < LANES; k++)
            n->popc += p >> k & 1;
        n->all &= p == on;
        n->any |= p != 0;
    }
    if (b->race)
        emu_race_arrive(w, (int)id);
    w->stored = false;
    if (waits) {
        n->sync_warps |= 1u << w->index;
        w->waits_at = (int)id;
        w->stop = STOP_BARRIER;
    }
}

/* ---- control instructions ----------------------------------------------------------------------- */

/* Executes one; w->pc, active and stop tell what comes next. */
static void control(warp_t *w, const op_t *o, uint32_t on)
{
    const turing_insn_t *in = o->in;
    if (in->psrc[0].present && in->op != TURING_BAR)
        on &= pred(w, o, 0);
    switch (in->op) {
    case TURING_BRA:
        switch (in->m.conv) {
        case 2: /* .DIV: taken when lanes are missing */
            branch(w, o, w->active == (w->n_splits ? ALL_LANES : w->alive) ? 0 : on, o->target);
            return;
        case 3: /* .CONV: taken when they are not */
            branch(w, o, w->active == (w->n_splits ? ALL_LANES : w->alive) ? on : 0, o->target);
            return;
        default: branch(w, o, on, o->target); return;
        }
    case TURING_JMP: branch(w, o, on, o->target); return;
    case TURING_BRX:
    case TURING_RET_REL:
    case TURING_RET_ABS:
    case TURING_BRXU: branch_indirect(w, o, on, 0); return;
    case TURING_CALL_REL:
    case TURING_CALL_ABS:
        for (uint32_t l = 0; l < LANES; l++)
            if (on >> l & 1)
                w->called[l] = w->pc;
        if (in->m.inc)
            emu_fault(w, o, "CALL with a call stack");
        else if (in->n_src || emu_system_is((uint64_t)in->target))
            branch_indirect(w, o, on, 0);
        else
            branch(w, o, on, o->target);
        return;
    case TURING_EXIT:
        if (in->m.func)
            break;
        exit_lanes(w, on);
        if (w->active)
            w->pc++;
        else if (!w->alive)
            w->stop = STOP_EXIT;
        else if (!pick(w))
            stuck(w, o);
        return;
    case TURING_BSSY:
        for (uint32_t l = 0; l < LANES; l++)
            if (on >> l & 1)
                w->barrier[in->dst.reg][l] = on;
        w->pc++;
        return;
    case TURING_BREAK: {
        const uint8_t b = in->src[0].kind == TURING_BARRIER ? in->src[0].reg : in->dst.reg;
        for (uint32_t l = 0; l < LANES; l++)
            w->barrier[b][l] &= ~on;
        w->pc++;
        return;
    }
    case TURING_BSYNC: {
        const uint8_t b = in->src[0].kind == TURING_BARRIER ? in->src[0].reg : in->dst.reg;
        if (!on)
            w->pc++;
        else if (on != w->active) {
            park(w, w->active & ~on, w->pc + 1, WAIT_NONE, 0);
            w->active = on;
            yield_to(w, o, w->pc + 1, b, 0);
        } else if (w->barrier[b][first_lane(on)] & w->alive & ~on)
            yield_to(w, o, w->pc + 1, b, 0);
        else
            w->pc++;
        return;
    }
    case TURING_WARPSYNC: {
        if (!on) {
            w->pc++;
            return;
        }
        uint32_t need = w->r[o->src[0]][first_lane(on)] & w->alive;
        if (need & ~w->active)
            yield_to(w, o, w->pc + 1, WAIT_WARPSYNC, need);
        else {
            if (w->block->race)
                emu_race_sync(w, need);
            w->pc++;
        }
        return;
    }
    case TURING_BMOV:
        if (in->m.aux)
            break;
        if (in->dst.kind == TURING_REG && in->src[0].kind == TURING_BARRIER) {
            put(w, o->d, w->barrier[in->src[0].reg], on);
            if (in->m.clear)
                for (uint32_t l = 0; l < LANES; l++)
                    if (on >> l & 1)
                        w->barrier[in->src[0].reg][l] = 0;
        } else if (in->dst.kind == TURING_BARRIER && in->src[0].kind == TURING_REG) {
            for (uint32_t l = 0; l < LANES; l++)
                if (on >> l & 1)
                    w->barrier[in->dst.reg][l] = w->r[o->src[0]][l];
        } else if (in->dst.kind == TURING_BARRIER && in->src[0].kind == TURING_BARRIER) {
            for (uint32_t l = 0; l < LANES; l++)
                if (on >> l & 1)
                    w->barrier[in->dst.reg][l] = w->barrier[in->src[0].reg][l];
        } else
            break;
        w->pc++;
        return;
    case TURING_YIELD:
        w->pc++;
        if (w->n_splits && on)
            yield_to(w, o, w->pc, WAIT_NONE, 0);
        return;
    case TURING_NANOSLEEP:
        w->pc++;
        if (on)
            w->stop = STOP_YIELD;
        if (w->n_splits && on)
            yield_to(w, o, w->pc, WAIT_NONE, 0);
        return;
    case TURING_BAR:
        w->pc++;
        if (!on)
            return;
        if (in->m.func == TURING_BAR_SCAN || in->m.func == TURING_BAR_SYNCALL)
            break;
        arrive(w, o, on);
        return;
    case TURING_NOP: /* of a __syncwarp, where the warp is whole */
        if (w->block->race)
            emu_race_sync(w, on);
        w->pc++;
        return;
    case TURING_DEPBAR:
    case TURING_PMTRIG: w->pc++; return;
    case TURING_BPT:
        w->pc++;
        if (on)
            emu_fault_as(w, o, TURING_FAILED_TRAP, "trap by lanes 0x%08x", on);
        return;
    default: break;
    }
    emu_fault_as(w, o, TURING_FAILED_INSTRUCTION, "cannot execute this instruction or modifier");
}

/* ---- the loop ----------------------------------------------------------------------------------------- */

typedef enum watching { NOTHING, TRACE_ONLY, EVERYTHING } watching_t;

static void out_of_patience(warp_t *w, const op_t *o)
{
    char where[480];
    emu_fault_as(w, o, TURING_FAILED_STUCK, "the warp executed %llu instructions, its limit: an endless loop?%s",
                 (unsigned long long)w->issued, emu_where(w->block, where, sizeof where));
}

/* `watching` is a constant in each of the copies that the compiler makes. */
static inline void loop(warp_t *w, watching_t watching)
{
    const machine_t *m = w->block->worker->m;
    const op_t *const ops = m->ops;
    while (w->stop == RUNNING) {
        if (w->pc >= m->n_ops) {
            emu_fault(w, &ops[m->n_ops - 1], "ran past the end of the kernel");
            return;
        }
        const op_t *o = &ops[w->pc];
        uint32_t on = (w->p[o->guard] ^ (0u - o->guard_xor)) & w->active;
        w->issued++;
        if (watching == EVERYTHING) {
            if (w->block->worker->count)
                emu_count_issue(w, o, on);
            if (w->schedule)
                emu_schedule_issue(w, o, on);
            if (w->define)
                emu_define_issue(w, o, on);
        }
        if (watching == TRACE_ONLY || (watching == EVERYTHING && w->trace))
            emu_time_issue(w, w->pc, on);
        if (o->flow == FLOW_CONTROL) {
            control(w, o, on);
            if (w->issued >= m->max_issued)
                out_of_patience(w, o);
            continue;
        }
        w->pc++;
        if (o->flow == FLOW_BLOCKED)
            emu_fault(w, o, "a dry launch cannot tell where the warp goes: it may depend on results");
        else if (o->flow == FLOW_UNFORESEEN)
            emu_fault(w, o, "a dry launch did not find that the warp goes here");
        else if (on && o->flow != FLOW_IDLE)
            o->fn(w, o, o->uniform ? ALL_LANES : on);
    }
}

void emu_run_warp(warp_t *w)
{
    if (!watched(w))
        loop(w, NOTHING);
    else if (!w->block->worker->count && !w->block->worker->m->checks)
        loop(w, TRACE_ONLY);
    else
        loop(w, EVERYTHING);
}
