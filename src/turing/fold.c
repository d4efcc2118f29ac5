/* SPDX-License-Identifier: MIT */
/*
 * fold.c - constant propagation over a launch.
 *
 * Parameters choose among the ways of a kernel: what is batched and how, which
 * epilogue.  An instruction whose operands all derive from parameters has one
 * value in all lanes, which the interpreter's own function for it computes here.
 */
#include "fold.h"

static bool has(const set_t *s, uint32_t slot)
{
    return s->word[slot / 64] >> slot % 64 & 1;
}

truth_t emu_fold_pred(const known_t *k, const turing_pred_t *p)
{
    if (!p->present || p->reg == TURING_PT)
        return p->present && p->neg ? FALSE_IN_ALL : TRUE_IN_ALL;
    const uint32_t slot = (p->uniform ? SLOT_UP : SLOT_P) + p->reg;
    if (!has(&k->slots, slot))
        return UNKNOWN;
    return (k->value[slot] != 0) != p->neg ? TRUE_IN_ALL : FALSE_IN_ALL;
}

bool emu_fold_meet(known_t *to, const known_t *from, bool is_first)
{
    if (is_first) {
        *to = *from;
        return true;
    }
    bool changed = false;
    for (uint32_t i = 0; i < SLOT_WORDS; i++)
        for (uint64_t rest = to->slots.word[i]; rest; rest &= rest - 1) {
            const uint32_t slot = 64 * i + (uint32_t)__builtin_ctzll(rest);
            if (has(&from->slots, slot) && to->value[slot] == from->value[slot])
                continue;
            to->slots.word[i] &= ~(UINT64_C(1) << slot % 64);
            changed = true;
        }
    return changed;
}

/* Whether results depend on operands alone, and all lanes' on their own. */
static bool is_pure(const op_t *o)
{
    switch (o->in->op) {
    case TURING_IADD3:
    case TURING_LEA:
    case TURING_LOP3:
    case TURING_SHF:
    case TURING_PRMT:
    case TURING_SEL:
    case TURING_MOV:
    case TURING_ISETP:
    case TURING_IMNMX:
    case TURING_PLOP3:
    case TURING_P2R:
    case TURING_IMAD:
    case TURING_IMAD_WIDE:
    case TURING_IMAD_HI:
    case TURING_FSETP:
    case TURING_R2UR:
    case TURING_UIADD3:
    case TURING_ULEA:
    case TURING_ULOP3:
    case TURING_USHF:
    case TURING_UPRMT:
    case TURING_USEL:
    case TURING_UMOV:
    case TURING_UISETP:
    case TURING_UPLOP3:
    case TURING_UIMAD:
    case TURING_UIMAD_WIDE: return o->flow == FLOW_PLAIN;
    case TURING_LDC:
    case TURING_ULDC: return true;                            /* it may fault */
    case TURING_R2P: return o->in->src[1].kind == TURING_IMM; /* else it is not known which it writes */
    default: return false;
    }
}

static uint32_t *row_of(warp_t *w, uint32_t slot)
{
    return w->r[slot < SLOT_UR ? slot : ROW_UNIFORM + slot - SLOT_UR];
}

/* Rows of uniform predicates follow those of the others, as slots do. */
static void load(warp_t *w, const known_t *k, uint32_t slot)
{
    if (slot >= SLOT_P)
        w->p[slot - SLOT_P] = k->value[slot] ? ALL_LANES : 0;
    else
        for (int l = 0; l < LANES; l++)
            row_of(w, slot)[l] = k->value[slot];
}

static uint32_t result(warp_t *w, uint32_t slot)
{
    return slot >= SLOT_P ? w->p[slot - SLOT_P] != 0 : row_of(w, slot)[0];
}

void emu_fold_step(warp_t *w, const op_t *o, const set_t *reads, const set_t *writes, known_t *k)
{
    const truth_t guard = emu_fold_pred(k, &o->in->guard);
    if (guard == FALSE_IN_ALL)
        return;
    bool is_known = guard == TRUE_IN_ALL && is_pure(o);
    for (uint32_t i = 0; i < SLOT_WORDS; i++)
        is_known &= !(reads->word[i] & ~k->slots.word[i]);
    if (is_known) {
        for (uint32_t i = 0; i < SLOT_WORDS; i++)
            for (uint64_t rest = reads->word[i]; rest; rest &= rest - 1)
                load(w, k, 64 * i + (uint32_t)__builtin_ctzll(rest));
        o->fn(w, o, ALL_LANES);
        is_known = w->stop == RUNNING; /* else it faulted */
        w->stop = RUNNING;
    }
    for (uint32_t i = 0; i < SLOT_WORDS; i++) {
        for (uint64_t rest = is_known ? writes->word[i] : 0; rest; rest &= rest - 1) {
            const uint32_t slot = 64 * i + (uint32_t)__builtin_ctzll(rest);
            k->value[slot] = result(w, slot);
        }
        k->slots.word[i] = is_known ? k->slots.word[i] | writes->word[i] : k->slots.word[i] & ~writes->word[i];
    }
}
