/* SPDX-License-Identifier: MIT */
/*
 * time.c - the timing model: 40 multiprocessors in simulated time.
 *
 * The executor runs a warp from one stopping point to the next and leaves a
 * trace: which instructions, how many wavefronts of shared memory, which
 * sectors of global memory.  The model takes the traces up one instruction at
 * a time and asks for more when one is used up.  So execution runs ahead of
 * simulated time by a trace at most, barriers and polled flags happen in the
 * order of simulated time, and no trace of a whole grid is ever held.
 *
 * A sub-core issues one instruction a cycle, of the warp that can go first; of
 * several the one that went last, then the lowest.  An instruction waits for
 * the stall count of the one before, its scoreboards, its pipe, and, where it
 * is for the load/store unit, for one of the sub-core's places in the queue.
 * The four sub-cores share that unit, which serves in order of issue.
 *
 * Multiprocessors meet in memory only, and memory answers no sooner than
 * l1_hit cycles after it was asked.  So each runs that far on its own;
 * then the requests of all are served in the order of their cycles.
 *
 * Times are cycles of 1590 MHz, fractional where a rate is.  Sources are those
 * of docs/emulator.md.
 */
#include "time_memory.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum {
    SUBCORES = 4,
    SLOTS = TURING_T4_WARPS,
    BOARDS = 6, /* scoreboards of a warp                                       */
    NO_BOARD = 7,
    LSU_PLACES = 8,      /* the most places of a sub-core in the queue */
    LSU_SECTORS = 4,     /* of global memory that pass in the time of a wavefront */
    STALEMATE = 1 << 16, /* polls in a row, by all warps, that end a launch             */
    REQUESTS = 64        /* of an SM at a time: in queues 20, served before an answer 16 */
};

#define NEVER 1e300

static double sooner(double a, double b)
{
    return a < b ? a : b;
}

/* ---- traces ----------------------------------------------------------------------- */

static const turing_clock_t *clock_of(const machine_t *m)
{
    return m->launch->clock ? m->launch->clock : &turing_clock;
}

/* Marks the sectors of `line`, n of them, that lanes which write `stored` bytes each fill in part. */
static void mark_parts(uint64_t *line, uint32_t n, uint32_t on, const uint64_t address[LANES], uint32_t stored)
{
    uint16_t filled[LANES][SECTORS] = {{0}}; /* bytes, of lanes summed */
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; on >> l & 1 && i < n; i++)
            if (line[i] >> LINE_SHIFT == address[l] >> 7)
                filled[i][address[l] >> 5 & 3] += (uint16_t)stored;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = 0; s < SECTORS; s++)
            if (filled[i][s] > 0 && filled[i][s] < SECTOR_BYTES)
                line[i] |= UINT64_C(1) << (SECTORS + s);
}

void emu_time_global(warp_t *w, uint32_t on, const uint64_t address[LANES], uint32_t stored)
{
    trace_t *t = w->trace;
    uint64_t *line = t->line + t->n_lines;
    uint32_t n = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(on >> l & 1))
            continue;
        const uint64_t number = address[l] >> 7;
        const uint64_t sector = UINT64_C(1) << (address[l] >> 5 & 3);
        uint32_t i = n;
        while (i > 0 && line[i - 1] >> LINE_SHIFT != number)
            i--;
        if (i > 0)
            line[i - 1] |= sector;
        else
            line[n++] = number << LINE_SHIFT | sector;
    }
    const turing_clock_t *c = clock_of(w->block->worker->m);
    if (stored && (c->l2_part > 0 || c->dram_fill > 0))
        mark_parts(line, n, on, address, stored);
    t->event[t->n - 1].lines = (uint8_t)n;
    t->n_lines += n;
}

/* ---- the machine -------------------------------------------------------------------- */

/* What the model needs of an instruction at every issue. */
typedef struct plan {
    uint8_t pipe, stall, wait, write_board, read_board;
    uint8_t kind;               /* request_kind_t, of the load/store unit                 */
    bool cached, fence, issued; /* issued: by some warp of the launch */
    uint8_t op;
} plan_t;

/* One of the places for warps of a multiprocessor; slot i is of sub-core i % 4. */
typedef struct slot {
    warp_t *warp;                      /* NULL: none                                             */
    const event_t *event, *events_end; /* of its trace: the next instruction, ..  */
    const uint64_t *line;              /* and the lines of global memory from it on */
    uint32_t place;                    /* of its block                                           */
    int waits;                         /* named barrier, or -1                                   */
    uint32_t op;                       /* next instruction                                       */
    double ready;                      /* no issue before that cycle,                            */
    turing_stall_t why;                /* because of this                                       */
    double issued;                     /* cycle of the last issue                                */
    double served;                     /* the load/store unit is done with all it issued         */
    double board[BOARDS];              /* cycle in which all known releases have happened     */
    uint8_t board_why[BOARDS];
    uint8_t pending[BOARDS]; /* releases that memory has yet to date             */
    uint8_t tenant;          /* counts warps, so that none gets an earlier one's answer */
} slot_t;

typedef struct timed_barrier {
    uint32_t threads, arrived; /* threads 0: all of the block                    */
    double last;
} timed_barrier_t;

/* Room for a block. */
typedef struct place {
    block_t *block;
    uint32_t live; /* warps                                                  */
    double free_from;
    timed_barrier_t barrier[16];
} place_t;

typedef struct subcore {
    double next;        /* cycle of the next issue, or NEVER,                     */
    uint32_t slot;      /* by this warp                                           */
    turing_stall_t why; /* which waited for that                                 */
    uint32_t last;      /* slot that issued last                                  */
    /* of each of its slots: when it may issue but for the sub-core, NEVER where that is not known; why then; its pipe
     */
    double own[SLOTS / SUBCORES];
    uint8_t own_why[SLOTS / SUBCORES], own_pipe[SLOTS / SUBCORES];
    double issue_free, pipe_free[TURING_PIPE_COUNT];
    double queued[LSU_PLACES]; /* cycles in which the last ones left the queue    */
    uint32_t in_queue;         /* the oldest of them                                     */
} subcore_t;

typedef struct sm {
    subcore_t sub[SUBCORES];
    slot_t slot[SLOTS];
    place_t place[TURING_T4_BLOCKS];
    double lsu_free;
    uint32_t live; /* blocks                                                 */
    uint32_t first_request, n_requests;
    request_t request[REQUESTS]; /* a ring, in the order of their cycles         */
} sm_t;

/* A pipe of a sub-core: cycles that one warp instruction occupies it, and until a scoreboard says that it is done. */
typedef struct pipe {
    double busy, latency;
} pipe_t;

typedef struct model {
    turing_clock_t c;
    pipe_t pipe[TURING_PIPE_COUNT];
    uint32_t queue; /* places of a sub-core */
    worker_t *worker;
    machine_t *m;
    plan_t *plan; /* one per instruction                                    */
    time_memory_t *memory;
    turing_time_t *sum;
    uint32_t places; /* of an SM                                               */
    uint32_t live;   /* blocks                                                 */
    uint32_t polls;  /* in a row                                               */
    double dealt;    /* start of the last block                                */
    double end;
    sm_t sm[TURING_T4_SMS];
} model_t;

static plan_t plan_of(const turing_insn_t *in)
{
    plan_t p = {.pipe = (uint8_t)turing_op_pipe((turing_op_t)in->op),
                .stall = in->ctl.stall ? in->ctl.stall : 1,
                .wait = in->ctl.wait,
                .write_board = in->ctl.wbarrier,
                .read_board = in->ctl.rbarrier,
                .op = in->op};
    switch (in->op) {
    case TURING_LDG:
    case TURING_LD: p.cached = in->m.order != TURING_ORDER_STRONG; break;
    case TURING_STG:
    case TURING_ST:
    case TURING_RED: p.kind = REQUEST_STORE; break;
    case TURING_ATOM:
    case TURING_ATOM_CAS:
    case TURING_ATOMG:
    case TURING_ATOMG_CAS: p.kind = REQUEST_ATOMIC; break;
    case TURING_CCTL: p.kind = REQUEST_PREFETCH; break;
    case TURING_MEMBAR: p.fence = in->m.scope >= TURING_SCOPE_GPU; break;
    default: break;
    }
    return p;
}

/* ---- issue ------------------------------------------------------------------------------ */

/* Notes when a slot may issue, as far as that is its own affair. */
static void note(const model_t *model, sm_t *sm, uint32_t slot)
{
    const slot_t *s = &sm->slot[slot];
    subcore_t *c = &sm->sub[slot % SUBCORES];
    const uint32_t i = slot / SUBCORES;
    c->own[i] = NEVER;
    if (!s->warp || s->waits >= 0)
        return;
    const plan_t *p = &model->plan[s->op];
    double t = s->ready;
    turing_stall_t why = s->why;
    for (uint32_t b = 0, wait = p->wait; wait; b++, wait >>= 1) {
        if (!(wait & 1))
            continue;
        if (s->pending[b])
            return;
        if (s->board[b] > t) {
            t = s->board[b];
            why = (turing_stall_t)s->board_why[b];
        }
    }
    c->own[i] = t;
    c->own_why[i] = (uint8_t)why;
    c->own_pipe[i] = p->pipe;
}

/* Finds who issues next on a sub-core. */
static void choose(const model_t *model, sm_t *sm, uint32_t sub)
{
    subcore_t *c = &sm->sub[sub];
    const uint32_t used = (model->places * model->m->n_warps + SUBCORES - 1 - sub) / SUBCORES,
                   last = c->last / SUBCORES;
    double next = NEVER, its_room = 0;
    uint32_t winner = 0;
    c->pipe_free[TURING_PIPE_LSU] = c->queued[c->in_queue];
    for (uint32_t i = 0; i < used; i++) {
        const double own = c->own[i], room = c->pipe_free[c->own_pipe[i]];
        const double t = later(later(own, room), c->issue_free);
        if (t < next || (t == next && i == last && t < NEVER)) {
            next = t;
            its_room = room;
            winner = i;
        }
    }
    c->next = next;
    c->slot = winner * SUBCORES + sub;
    c->why = (turing_stall_t)c->own_why[winner];
    if (its_room > c->own[winner])
        c->why = c->own_pipe[winner] == TURING_PIPE_LSU      ? TURING_STALL_QUEUE
                 : c->own_pipe[winner] == TURING_PIPE_TENSOR ? TURING_STALL_TENSOR
                                                             : TURING_STALL_PIPE;
}

/* The next event of a warp becomes its next instruction; has the executor make more
 * events where there are none.  False when the warp has ended or failed. */
static bool advance(model_t *model, slot_t *s)
{
    if (s->event == s->events_end) {
        trace_t *t = s->warp->trace;
        t->n = t->n_lines = 0;
        if (s->warp->stop == STOP_EXIT)
            return false;
        /* other warps have run since, and pushed its registers out of the host's caches */
        for (uint32_t i = 0; i < model->m->kernel->registers; i++) {
            __builtin_prefetch(s->warp->r[i]);
            __builtin_prefetch(s->warp->r[i] + LANES / 2);
        }
        if (s->warp->stop == STOP_BARRIER)
            emu_block_deadlock(s->warp->block);
        else if (emu_block_step(s->warp->block, s->warp) != STOP_YIELD)
            model->polls = 0;
        else if (++model->polls > STALEMATE)
            emu_fault(s->warp, &model->m->ops[t->event[t->n - 1].op],
                      "every warp that a T4 would hold polls memory for ever");
        if (s->warp->stop == STOP_FAULT)
            return false;
        s->event = t->event;
        s->events_end = t->event + t->n;
        s->line = t->line;
    }
    const uint32_t op = s->event->op;
    if (op != s->op + 1)
        s->ready = later(s->ready, s->issued + model->c.branch);
    s->op = op;
    return true;
}

/* ---- blocks and barriers ------------------------------------------------------------------ */

static void end_warp(model_t *model, sm_t *sm, slot_t *s, double t);

static void fill_barrier(model_t *model, sm_t *sm, uint32_t place, int id)
{
    place_t *p = &sm->place[place];
    timed_barrier_t *b = &p->barrier[id];
    if (!b->arrived || b->arrived < (b->threads ? b->threads : p->live * LANES))
        return;
    const double last = b->last;
    *b = (timed_barrier_t){0};
    for (uint32_t i = place * model->m->n_warps; i < (place + 1) * model->m->n_warps; i++) {
        slot_t *s = &sm->slot[i];
        if (!s->warp || s->waits != id)
            continue;
        s->waits = -1;
        if (last + model->c.barrier > s->ready) {
            s->ready = last + model->c.barrier;
            s->why = TURING_STALL_BARRIER;
        }
        if (!advance(model, s))
            end_warp(model, sm, s, last);
        note(model, sm, i);
    }
    for (uint32_t i = 0; i < SUBCORES; i++)
        choose(model, sm, i);
}

static void end_warp(model_t *model, sm_t *sm, slot_t *s, double t)
{
    const uint32_t place = s->place;
    place_t *p = &sm->place[place];
    s->warp = NULL;
    model->end = later(model->end, t);
    if (--p->live == 0) {
        p->free_from = t + model->c.block;
        sm->live--;
        model->live--;
    }
    for (int id = 0; id < 16; id++)
        fill_barrier(model, sm, place, id);
}

/* Deals blocks to the places that were free first, of those to the multiprocessor with
 * the fewest blocks.  Returns the start of the first of them. */
static double deal(model_t *model)
{
    machine_t *m = model->m;
    double first = NEVER;
    while (!model->worker->failed && atomic_load(&m->next_block) < m->n_blocks) {
        uint32_t best_sm = 0, best = model->places;
        for (uint32_t k = 0; k < TURING_T4_SMS; k++)
            for (uint32_t i = 0; i < model->places; i++) {
                const place_t *p = &model->sm[k].place[i], *q = &model->sm[best_sm].place[best];
                if (!p->live && (best == model->places || p->free_from < q->free_from ||
                                 (p->free_from == q->free_from && model->sm[k].live < model->sm[best_sm].live))) {
                    best_sm = k;
                    best = i;
                }
            }
        if (best == model->places)
            break;
        sm_t *sm = &model->sm[best_sm];
        place_t *p = &sm->place[best];
        const double start = later(p->free_from, model->dealt);
        model->dealt = start + model->c.deal;
        if (first == NEVER)
            first = start;
        emu_block_start(p->block, atomic_fetch_add(&m->next_block, 1));
        memset(p->barrier, 0, sizeof p->barrier);
        p->live = m->n_warps;
        sm->live++;
        model->live++;
        for (uint32_t i = 0; i < m->n_warps; i++) {
            slot_t *s = &sm->slot[best * m->n_warps + i];
            *s = (slot_t){.warp = &p->block->warp[i],
                          .place = best,
                          .waits = -1,
                          .op = UINT32_MAX,
                          .ready = start,
                          .issued = start,
                          .why = TURING_STALL_COUNT,
                          .tenant = (uint8_t)(s->tenant + 1)};
            if (!advance(model, s))
                return NEVER; /* a fault before the first barrier */
            note(model, sm, best * m->n_warps + i);
        }
        for (uint32_t i = 0; i < SUBCORES; i++)
            choose(model, sm, i);
    }
    return first;
}

/* ---- what an instruction does when it issues -------------------------------------------------- */

/* A scoreboard's release is dated. */
static void release(slot_t *s, uint32_t board, double t, turing_stall_t why)
{
    if (board < BOARDS && t > s->board[board]) {
        s->board[board] = t;
        s->board_why[board] = (uint8_t)why;
    }
}

static void ask(const event_t *e, const plan_t *p, sm_t *sm, uint32_t slot, double t)
{
    request_t *r = &sm->request[(sm->first_request + sm->n_requests++) % REQUESTS];
    r->at = t;
    r->kind = p->kind;
    r->cached = p->cached;
    r->slot = (uint8_t)slot;
    r->tenant = sm->slot[slot].tenant;
    r->scoreboard = p->write_board;
    r->n = e->lines;
    memcpy(r->line, sm->slot[slot].line, e->lines * sizeof *r->line);
    if (p->write_board < BOARDS)
        sm->slot[slot].pending[p->write_board]++;
}

/* The load/store unit takes an instruction up when it is done with those before. */
static void load_store(model_t *model, sm_t *sm, subcore_t *c, uint32_t slot, const event_t *e, const plan_t *p,
                       double t)
{
    slot_t *s = &sm->slot[slot];
    const bool shared_store = p->op == TURING_STS;
    const double start = later(t, sm->lsu_free);
    double busy = model->c.wave * (e->detail > 1 ? e->detail : 1) + (shared_store ? model->c.store_more : 0);
    if (e->lines) {
        uint32_t sectors = 0;
        for (uint32_t i = 0; i < e->lines; i++)
            sectors += emu_time_sectors((uint32_t)s->line[i] & ALL_SECTORS);
        busy = later(busy, model->c.sector_wave * later((double)sectors / LSU_SECTORS, e->lines / 2.0));
        ask(e, p, sm, slot, start);
    } else
        release(s, p->write_board,
                start + busy - model->c.wave + (e->detail ? model->c.shared_latency : model->c.other_latency),
                TURING_STALL_SHARED);
    release(s, p->read_board, start + busy + model->c.shared_read, TURING_STALL_SHARED);
    c->queued[c->in_queue] = start;
    c->in_queue = c->in_queue + 1 < model->queue ? c->in_queue + 1 : 0;
    sm->lsu_free = s->served = start + busy;
    model->sum->lsu += busy;
    s->line += e->lines;
    if (p->fence) {
        s->ready = later(s->ready, start + model->c.fence);
        s->why = TURING_STALL_MEMORY;
    }
}

/* Tells the caller of an instruction that was just issued. */
static void watch(const model_t *model, const sm_t *sm, uint32_t sub, const event_t *e, double t)
{
    const turing_launch_t *launch = model->m->launch;
    const subcore_t *c = &sm->sub[sub];
    const plan_t *p = &model->plan[e->op];
    const bool queued = p->pipe == TURING_PIPE_LSU;
    const turing_issue_t issued = {
        .sm = (uint32_t)(sm - model->sm),
        .sub_core = sub,
        .warp = c->slot,
        .issued = t,
        .begin = queued ? c->queued[(c->in_queue > 0 ? c->in_queue : model->queue) - 1] : t,
        .end = queued ? sm->lsu_free : c->pipe_free[p->pipe],
        .insn = model->m->ops[e->op].in,
    };
    launch->watch(launch->watch_user, &issued);
}

static void issue(model_t *model, sm_t *sm, uint32_t sub)
{
    subcore_t *c = &sm->sub[sub];
    const uint32_t slot = c->slot;
    slot_t *s = &sm->slot[slot];
    plan_t *p = &model->plan[s->op];
    const event_t e = *s->event++;
    const double t = c->next;
    if (t > c->issue_free && c->why < TURING_STALL_COUNT)
        model->sum->stall[c->why] += t - c->issue_free;
    model->sum->instructions++;
    p->issued = true;
    c->issue_free = t + model->c.issue;
    c->last = slot;
    s->issued = t;
    s->ready = t + p->stall;
    s->why = TURING_STALL_FIXED;
    if (e.on && p->pipe == TURING_PIPE_LSU)
        load_store(model, sm, c, slot, &e, p, t);
    else if (e.on) {
        c->pipe_free[p->pipe] = t + model->pipe[p->pipe].busy;
        release(s, p->write_board, t + model->pipe[p->pipe].latency, TURING_STALL_PIPE);
        release(s, p->read_board, t + model->c.pipe_read, TURING_STALL_PIPE);
        if (p->op == TURING_HMMA_1688)
            model->sum->tensor += model->c.tensor;
    }
    if (e.on && model->m->launch->watch)
        watch(model, sm, sub, &e, t);
    const bool waits = e.on && p->op == TURING_BAR && model->m->ops[e.op].in->m.func != TURING_BAR_ARV;
    if (e.on && p->op == TURING_BAR) {
        /* it follows the warp's accesses through the load/store unit */
        timed_barrier_t *b = &sm->place[s->place].barrier[e.detail & 15];
        b->threads = (uint32_t)(e.detail >> 4) * LANES;
        b->arrived += LANES;
        b->last = later(b->last, later(t, s->served));
        s->waits = waits ? e.detail & 15 : -1;
        fill_barrier(model, sm, s->place, e.detail & 15);
    }
    if (!waits && !advance(model, s))
        end_warp(model, sm, s, t);
    note(model, sm, slot);
    choose(model, sm, sub);
}

/* ---- the simulation --------------------------------------------------------------------------- */

/* A multiprocessor's turn is short, and the host's caches do not hold all of them. */
static void prefetch(const model_t *model, const sm_t *sm)
{
    const uint32_t used = model->places * model->m->n_warps;
    for (uint32_t i = 0; i < used; i++) {
        __builtin_prefetch(sm->slot[i].event);
        __builtin_prefetch((const char *)(sm->slot[i].event) + 64);
    }
}

static void prefetch_slots(const model_t *model, const sm_t *sm)
{
    const uint32_t used = model->places * model->m->n_warps;
    for (uint32_t i = 0; i < SUBCORES; i++)
        for (size_t at = 0; at < sizeof sm->sub[i]; at += 64)
            __builtin_prefetch((const char *)&sm->sub[i] + at);
    for (uint32_t i = 0; i < used; i++)
        for (size_t at = 0; at < sizeof sm->slot[i]; at += 64)
            __builtin_prefetch((const char *)&sm->slot[i] + at);
}

/* Issues all that one multiprocessor can before `until`; returns the cycle of its next issue. */
static double run_sm(model_t *model, sm_t *sm, double until)
{
    for (;;) {
        uint32_t sub = 0;
        for (uint32_t i = 1; i < SUBCORES; i++)
            if (sm->sub[i].next < sm->sub[sub].next)
                sub = i;
        if (sm->sub[sub].next >= until || model->worker->failed)
            return sm->sub[sub].next;
        issue(model, sm, sub);
    }
}

/* Has memory serve all that was asked before `until`; returns the cycle of the next request or issue. */
static double run_memory(model_t *model, double until)
{
    double next = NEVER;
    for (;;) {
        uint32_t from = 0;
        const request_t *r = NULL;
        for (uint32_t k = 0; k < TURING_T4_SMS; k++) {
            const sm_t *sm = &model->sm[k];
            const request_t *first = &sm->request[sm->first_request];
            if (sm->n_requests && (!r || first->at < r->at)) {
                r = first;
                from = k;
            }
        }
        if (!r || r->at >= until)
            return r ? sooner(next, r->at) : next;
        sm_t *sm = &model->sm[from];
        const double answer = emu_time_access(model->memory, from, r, model->sum);
        slot_t *s = &sm->slot[r->slot];
        sm->first_request = (sm->first_request + 1) % REQUESTS;
        sm->n_requests--;
        if (r->kind == REQUEST_STORE)
            model->end = later(model->end, answer);
        if (r->scoreboard < BOARDS && r->tenant == s->tenant) {
            s->pending[r->scoreboard]--;
            release(s, r->scoreboard, answer, TURING_STALL_MEMORY);
            note(model, sm, r->slot);
            choose(model, sm, r->slot % SUBCORES);
            next = sooner(next, sm->sub[r->slot % SUBCORES].next);
        }
    }
}

static bool open_model(model_t *model, worker_t *worker)
{
    machine_t *m = worker->m;
    const turing_occupancy_t occupancy = turing_occupancy(m->kernel, m->threads, m->launch->shared_bytes);
    model->c = *clock_of(m);
    const turing_clock_t *c = &model->c;
    const pipe_t pipes[TURING_PIPE_COUNT] = {
        [TURING_PIPE_TENSOR] = {c->tensor, c->tensor_latency},
        [TURING_PIPE_ALU] = {c->alu, c->alu_latency},
        [TURING_PIPE_FMA] = {c->fma, c->fma_latency},
        [TURING_PIPE_HALF] = {c->half, c->half_latency},
        [TURING_PIPE_UNIFORM] = {c->uniform, c->uniform_latency},
        [TURING_PIPE_XU] = {c->xu, c->xu_latency},
        [TURING_PIPE_FMA64] = {c->fma64, c->fma64_latency},
    };
    memcpy(model->pipe, pipes, sizeof pipes);
    model->queue = (uint32_t)c->queue;
    model->worker = worker;
    model->m = m;
    model->places = occupancy.blocks;
    model->sum = m->launch->time;
    *model->sum = (turing_time_t){0};
    /* 96 KiB are shared memory, 32 or 64, and L1 */
    model->memory =
        emu_time_memory_open(m->mem, &model->c, occupancy.blocks * m->shared_bytes > 32 << 10 ? 32 << 10 : 64 << 10);
    model->plan = malloc(m->n_ops * sizeof *model->plan);
    if (!model->memory || !model->plan)
        return false;
    for (uint32_t i = 0; i < m->n_ops; i++)
        model->plan[i] = plan_of(m->ops[i].in);
    for (uint32_t k = 0; k < TURING_T4_SMS; k++)
        for (uint32_t i = 0; i < SLOTS; i++) {
            subcore_t *sub = &model->sm[k].sub[i % SUBCORES];
            sub->next = sub->own[i / SUBCORES] = NEVER;
        }
    for (uint64_t i = 0; i < (uint64_t)TURING_T4_SMS * model->places && i < m->n_blocks; i++) {
        block_t *b = model->sm[i % TURING_T4_SMS].place[i / TURING_T4_SMS].block = emu_block_create(worker);
        for (uint32_t j = 0; b && j < b->n_warps; j++)
            if (!(b->warp[j].trace = malloc(sizeof(trace_t))))
                return false;
        if (!b)
            return false;
    }
    return true;
}

static void close_model(model_t *model)
{
    for (uint32_t k = 0; k < TURING_T4_SMS; k++)
        for (uint32_t i = 0; i < model->places; i++) {
            block_t *b = model->sm[k].place[i].block;
            for (uint32_t j = 0; b && j < b->n_warps; j++)
                free(b->warp[j].trace);
            emu_block_free(b);
        }
    emu_time_memory_close(model->memory);
    free(model->plan);
    free(model);
}

/* From sums over units to averages, and what comes on top of the first pass through the code. */
static void finish(model_t *model)
{
    turing_time_t *sum = model->sum;
    uint32_t code = 0;
    for (uint32_t i = 0; i < model->m->n_ops; i++)
        code += model->plan[i].issued;
    sum->warm_start = code * (model->c.fetch_l2 - model->c.issue) + model->c.constant_l2;
    sum->cold_start = code * (model->c.fetch_dram - model->c.issue) + model->c.constant_l2 + model->c.dram_latency +
                      model->c.tlb_miss;
    sum->paused = sum->cold_start + model->c.event;
    sum->cycles = model->end;
    sum->tensor /= TURING_T4_SMS * SUBCORES;
    sum->lsu /= TURING_T4_SMS;
    for (int i = 0; i < TURING_STALL_COUNT; i++)
        sum->stall[i] /= TURING_T4_SMS * SUBCORES;
}

void emu_time_run(worker_t *worker)
{
    model_t *model = calloc(1, sizeof *model);
    if (!model || !open_model(model, worker))
        worker->failed = !turing_fail(&worker->error, "out of memory for the timing model");
    for (double next = worker->failed ? NEVER : deal(model); next < NEVER && !worker->failed;) {
        const double until = next + model->c.l1_hit;
        next = NEVER;
        for (uint32_t k = 0; k < TURING_T4_SMS; k++) {
            prefetch_slots(model, &model->sm[(k + 2) % TURING_T4_SMS]);
            prefetch(model, &model->sm[(k + 1) % TURING_T4_SMS]);
            next = sooner(next, run_sm(model, &model->sm[k], until));
        }
        next = sooner(next, run_memory(model, until));
        next = sooner(next, deal(model));
    }
    for (uint32_t k = 0; k < TURING_T4_SMS && model && !worker->failed && model->live; k++)
        for (uint32_t i = 0; i < model->places; i++)
            if (model->sm[k].place[i].live)
                emu_block_deadlock(model->sm[k].place[i].block);
    if (model && !worker->failed)
        finish(model);
    if (model)
        close_model(model);
}

/* ---- figures ------------------------------------------------------------------------------------ */

const turing_clock_t turing_clock = {
#define TIME(name, value, low, high, kind, what, source) .name = value,
#include "time.def"
#undef TIME
};

bool turing_clock_set(turing_clock_t *clock, const char *name, double value)
{
    double *constant = NULL, lowest = 0;
#define TIME(id, v, low, high, kind, what, source) \
    if (!strcmp(name, #id)) {                      \
        constant = &clock->id;                     \
        lowest = low;                              \
    }
#include "time.def"
#undef TIME
    if (!constant || !(value >= 0 && value < 1e9) || (value < 1e-3 && lowest > 0))
        return false;
    if (constant == &clock->queue && !(value >= 1 && value <= LSU_PLACES))
        return false;
    *constant = value;
    return true;
}

void turing_time_add(turing_time_t *sum, const turing_time_t *time)
{
    sum->cycles += time->cycles;
    sum->tensor += time->tensor;
    sum->lsu += time->lsu;
    sum->dram += time->dram;
    sum->warm_start += time->warm_start;
    sum->cold_start += time->cold_start;
    sum->paused += time->paused;
    for (int i = 0; i < TURING_STALL_COUNT; i++)
        sum->stall[i] += time->stall[i];
    sum->instructions += time->instructions;
    sum->l2_sectors += time->l2_sectors;
    sum->l2_hits += time->l2_hits;
    sum->dram_read += time->dram_read;
    sum->dram_written += time->dram_written;
}

const char *turing_stall_name(turing_stall_t stall)
{
    static const char *const names[] = {
#define X(name, text) text,
        TURING_STALLS(X)
#undef X
    };
    return stall < TURING_STALL_COUNT ? names[stall] : "?";
}
