/* SPDX-License-Identifier: MIT */
/*
 * exec_lanes.c - instructions that know of lanes: predicates as words, votes, exchange between lanes, special
 * registers.
 */
#include "define.h"

/* ---- predicates as words, votes -------------------------------------------------------------- */

static void op_p2r(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    const unsigned base = o->uniform ? PRED_UNIFORM : 0, shift = 8u * o->in->m.byte;
    EACH {
        uint32_t bits = 0, mask = b[l] << shift;
        for (unsigned i = 0; i < 7; i++)
            bits |= (w->p[base + i] >> l & 1) << i;
        t[l] = (a[l] & ~mask) | (bits << shift & mask);
    }
    put(w, o->d, t, on);
}

static void op_r2p(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    (void)t;
    for (unsigned i = 0; i < 7; i++) {
        uint32_t value = 0, mask = 0;
        EACH {
            value |= (a[l] >> (8u * o->in->m.byte + i) & 1) << l;
            mask |= (b[l] >> i & 1) << l;
        }
        put_pred(w, i, value, on & mask);
    }
}

static void vote(warp_t *w, const op_t *o, uint32_t on, uint32_t written)
{
    uint32_t p = pred(w, o, 0) & on, t[LANES];
    bool all = p == on, any = p != 0;
    bool result = o->in->m.func == TURING_VOTE_ALL ? all : o->in->m.func == TURING_VOTE_ANY ? any : all || !any;
    EACH
        t[l] = p;
    put(w, o->d, t, written);
    put_pred(w, o->pdst[0], result ? ~0u : 0, written);
}

static void op_vote(warp_t *w, const op_t *o, uint32_t on)
{
    vote(w, o, on, on);
}

static void op_voteu(warp_t *w, const op_t *o, uint32_t on)
{
    vote(w, o, on, ALL_LANES);
}

/* ---- exchange between lanes ------------------------------------------------------------------- */

static void op_shfl(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    uint32_t inside = 0, lost = 0;
    EACH {
        uint32_t lane = (uint32_t)l, segment = c[l] >> 8 & 31, clamp = c[l] & 31, from = b[l] & 31;
        uint32_t first = lane & segment, last = first | (clamp & ~segment);
        int32_t j;
        bool in;
        switch (o->in->m.func) {
        case TURING_SHFL_UP:
            j = (int32_t)(lane - from);
            in = j >= (int32_t)last;
            break;
        case TURING_SHFL_DOWN:
            j = (int32_t)(lane + from);
            in = j <= (int32_t)last;
            break;
        case TURING_SHFL_BFLY:
            j = (int32_t)(lane ^ from);
            in = j <= (int32_t)last;
            break;
        default:
            j = (int32_t)(first | (from & ~segment));
            in = j <= (int32_t)last;
            break;
        }
        t[l] = !in ? a[l] : on >> (j & 31) & 1 ? a[j & 31] : 0; /* undefined; 0 on an H100 */
        inside |= (uint32_t)in << l;
        /* Halving steps over a block of less than a warp: what lane + from does not have goes to a lane whose own value
         * is being handed down, and which nobody reads any more. */
        const bool spent = o->in->m.func == TURING_SHFL_DOWN && lane >= from && !(w->threads >> (j & 31) & 1);
        if (in && !spent && (on >> l & 1) && !(on >> (j & 31) & 1))
            lost |= 1u << l;
    }
    put(w, o->d, t, on);
    if (lost && w->define && o->d < ROW_CONSTANTS && w->block->worker->m->checks & TURING_CHECK_CONVERGENCE) {
        uint32_t all[LANES], first = 0; /* undefined: many a program drops it */
        while (!(lost >> first & 1))
            first++;
        EACH
            all[l] = ~0u;
        emu_define_put(w, o, o->d, all, lost, (site_t){.lane = first});
    }
    put_pred(w, o->pdst[0], inside, on);
}

/* The lanes that hold what this one does; .ALL: all of them, if all do, and a predicate that says so. */
static void op_match(warp_t *w, const op_t *o, uint32_t on)
{
    const bool wide = o->in->m.aux, all = o->in->pdst[0].present;
    const uint32_t *a = w->r[o->src[0]], *b = wide ? w->r[o->src[0] + 1u] : w->r[ROW_ZERO];
    uint32_t t[LANES] = {0}, same = 0;
    EACH {
        for (int k = 0; k < LANES; k++)
            t[l] |= (uint32_t)((on >> k & 1) && a[k] == a[l] && b[k] == b[l]) << k;
        same |= (uint32_t)(t[l] == on) << l;
    }
    if (all) {
        const bool equal = (same & on) == on;
        EACH
            t[l] = equal ? on : 0;
        put_pred(w, o->pdst[0], equal ? ALL_LANES : 0, on);
    }
    put(w, o->d, t, on);
}

static void op_r2ur(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    int first = 0;
    while (!(on >> first & 1))
        first++;
    EACH
        t[l] = a[first];
    put(w, o->d, t, ALL_LANES);
}

/* 8x8 transpose of halves held as LDSM leaves them. */
static void op_movm(warp_t *w, const op_t *o, uint32_t on)
{
    SOURCES;
    EACH {
        uint32_t word = 0;
        for (int h = 0; h < 2; h++) {
            int row = 2 * (l & 3) + h, col = l >> 2;
            uint32_t from = a[4 * row + col / 2];
            word |= (col & 1 ? from >> 16 : from & 0xffff) << 16 * h;
        }
        t[l] = word;
    }
    put(w, o->d, t, on);
}

/* ---- special registers -------------------------------------------------------------------------- */

/* Clocks count the instructions that the warp issued, so that they advance and
 * repeat from run to run; the SM number is the block's, as if dealt in turn. */
static bool special_register(const warp_t *w, unsigned id, unsigned l, uint32_t *value)
{
    const block_t *b = w->block;
    const uint32_t *dim = b->worker->m->launch->block, lane = l, thread = w->index * LANES + lane;
    switch (id) {
    case TURING_SR_LANEID: *value = lane; return true;
    case TURING_SR_TID_X: *value = thread % dim[0]; return true;
    case TURING_SR_TID_Y: *value = thread / dim[0] % dim[1]; return true;
    case TURING_SR_TID_Z: *value = thread / dim[0] / dim[1] % dim[2]; return true;
    case TURING_SR_TID:
        *value = thread % dim[0] | thread / dim[0] % dim[1] << 16 | (thread / dim[0] / dim[1] % dim[2]) << 26;
        return true;
    case TURING_SR_CTAID_X: *value = b->id[0]; return true;
    case TURING_SR_CTAID_Y: *value = b->id[1]; return true;
    case TURING_SR_CTAID_Z: *value = b->id[2]; return true;
    case TURING_SR_EQMASK: *value = 1u << lane; return true;
    case TURING_SR_LTMASK: *value = (1u << lane) - 1; return true;
    case TURING_SR_LEMASK: *value = (2u << lane) - 1; return true;
    case TURING_SR_GTMASK: *value = ~((2u << lane) - 1); return true;
    case TURING_SR_GEMASK: *value = ~((1u << lane) - 1); return true;
    case TURING_SR_CLOCKLO:
    case TURING_SR_GLOBALTIMERLO: *value = (uint32_t)w->issued; return true;
    case TURING_SR_CLOCKHI:
    case TURING_SR_GLOBALTIMERHI: *value = (uint32_t)(w->issued >> 32); return true;
    case 0x43: *value = (uint32_t)(b->linear % TURING_T4_SMS); return true;                       /* VIRTUALSMID */
    case 0x03: *value = (uint32_t)(b->linear % TURING_T4_SMS) << 20 | w->index << 8; return true; /* VIRTID */
    case 0x2e: *value = (uint32_t)(LOCAL_WINDOW >> 32); return true;                              /* LWINHI */
    case 0x34: *value = (uint32_t)LOCAL_WINDOW; return true;                                      /* LWINLO */
    case 0x2f: *value = (uint32_t)(SHARED_WINDOW >> 32); return true;                             /* SWINHI */
    case 0x30: *value = (uint32_t)SHARED_WINDOW; return true;                                     /* SWINLO */
    case 0x31:
    case 0x35: *value = WINDOW_BYTES; return true;               /* SWINSZ, LWINSZ */
    case 0x32: *value = b->worker->m->shared_bytes; return true; /* SMEMSZ */
    case 0x37: *value = 0; return true;                          /* LMEMHIOFF: how far down the stack may grow */
    case TURING_SRZ: *value = 0; return true;
    default: return false;
    }
}

static void op_s2r(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    const unsigned id = o->in->m.sreg;
    for (unsigned l = 0; l < LANES; l++)
        if (!special_register(w, id, l, &t[l])) {
            emu_fault(w, o, "special register 0x%x is not known", id);
            return;
        }
    if (o->in->op == TURING_S2UR) {
        EACH
            t[l] = t[0];
        on = ALL_LANES;
    }
    put(w, o->d, t, on);
    if (o->in->op == TURING_CS2R && !o->in->m.aux) {
        for (unsigned l = 0; l < LANES; l++) {
            bool clock = id == TURING_SR_CLOCKLO || id == TURING_SR_GLOBALTIMERLO;
            t[l] = clock ? (uint32_t)(w->issued >> 32) : 0;
        }
        put(w, o->d + 1u, t, on);
    }
}

static void op_b2r(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t nonzero = 0;
    EACH
        nonzero |= (uint32_t)(w->barrier_result[l] != 0) << l;
    put(w, o->d, w->barrier_result, on);
    put_pred(w, o->pdst[0], nonzero, on);
}

/* ---- selection --------------------------------------------------------------------------------------- */

void emu_select_lanes(op_t *o)
{
    switch (o->in->op) {
    case TURING_P2R:
    case TURING_UP2UR: o->fn = op_p2r; break;
    case TURING_R2P: o->fn = op_r2p; break;
    case TURING_VOTE: o->fn = op_vote; break;
    case TURING_VOTEU: o->fn = op_voteu; break;
    case TURING_SHFL: o->fn = op_shfl; break;
    case TURING_R2UR: o->fn = op_r2ur; break;
    case TURING_MOVM: o->fn = op_movm; break;
    case TURING_MATCH: o->fn = op_match; break;
    case TURING_S2R:
    case TURING_S2UR:
    case TURING_CS2R:
        o->fn = op_s2r;
        o->flow = FLOW_STOPPING;
        break;
    case TURING_B2R: o->fn = op_b2r; break;
    default: break;
    }
}
