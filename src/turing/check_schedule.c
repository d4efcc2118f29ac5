/* SPDX-License-Identifier: MIT */
/*
 * check_schedule.c - is the control word right?
 *
 * The hardware does not interlock: a register is read when the control words
 * say so.  This checker keeps, for each warp, the earliest time at which each
 * instruction of its path can issue (the sum of stall counts), and for each
 * register who writes it and who still has to read it.
 *
 *   fixed latency     the result may be read so many cycles after issue, by
 *                     producer and consumer (latency.c)
 *   variable latency  the result may be read after a wait for the scoreboard
 *                     that the producer releases (write barrier), and a source
 *                     may be overwritten after a wait for the one released when
 *                     it was read (read barrier; having written implies having
 *                     read)
 *   in order          units with queues finish in order, so a wait that covers
 *                     an instruction covers the earlier ones of its queue:
 *                     shared-memory accesses and SHFL, conversions and the like, FP64, HMMA,
 *                     and the reading of sources by all load/store instructions
 *                     (which BAR waits for too) and by all conversions
 *   HMMA              may use a result of HMMA after 14 cycles without a wait
 *
 * The latencies are the least issue distances found in ptxas's output by a sweep
 * over many kernels (latency.h): any distance below them is one that it never dares.
 * Scoreboard waits are taken to be instant, which is the worst case.
 *
 * Instructions that are switched off for all lanes still take their cycles but
 * touch nothing, and one whose lanes are disjoint from another's does not
 * conflict with it.
 */
#include "exec.h"
#include "latency.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT_UR = 256, SLOT_P = 320, SLOT_UP = 328, SLOTS = 336 };
enum { TENSOR_LATENCY = 14, SCOREBOARDS = 6, NONE = 7, DRAIN_CYCLES = 16 /* ERRBAR lets all fixed latencies pass */ };
enum { SETTLED = 14 /* no result of fixed latency takes longer */ };

/* Queues that finish in order. */
typedef enum queue {
    QUEUE_SHARED,
    QUEUE_XU,
    QUEUE_TENSOR,
    QUEUE_READS,
    QUEUE_XU_READS,
    QUEUE_DOUBLE,
    QUEUE_OTHER,
    QUEUES
} queue_t;

typedef struct use {
    uint16_t slot;
    uint8_t guard; /* read as guard or branch condition */
} use_t;

typedef struct plan {
    station_t station;
    uint8_t unit, queue;
    uint8_t n_reads, n_writes;
    use_t read[32];
    uint16_t write[16];
} plan_t;

typedef struct writer {
    uint64_t issued;
    uint32_t code, lanes; /* lanes 0: nothing outstanding */
    uint8_t unit, queue, scoreboard;
    uint32_t number, place; /* of the scoreboard; in the queue */
} writer_t;

typedef struct reader {
    uint32_t code, lanes;
    uint8_t unit, queue, scoreboard; /* queue: in which sources are read in order */
    uint32_t number, place;
} reader_t;

struct schedule {
    uint64_t now;
    uint32_t number[SCOREBOARDS], done[SCOREBOARDS]; /* releases asked for, known to have happened */
    uint32_t place[QUEUES], finished[QUEUES];
    uint32_t covers[SCOREBOARDS][QUEUES]; /* place that a wait for it covers */
    writer_t writer[SLOTS];
    reader_t reader[SLOTS];
};

/* ---- once per kernel --------------------------------------------------------------------- */

static queue_t queue_of(const turing_insn_t *in)
{
    switch (in->op) {
    case TURING_SHFL:
    case TURING_LDS:
    case TURING_STS:
    case TURING_LDSM:
    case TURING_ATOMS:
    case TURING_ATOMS_CAS: return QUEUE_SHARED;
    case TURING_HMMA_1688:
    case TURING_HMMA_884:
    case TURING_BMMA:
    case TURING_IMMA: return QUEUE_TENSOR;
    default: break;
    }
    switch (emu_station(in).unit) {
    case UNIT_XU: return QUEUE_XU;
    case UNIT_DOUBLE: return QUEUE_DOUBLE;
    default: return QUEUE_OTHER;
    }
}

static void make_plan(const turing_insn_t *in, plan_t *p)
{
    static const uint16_t first_slot[TURING_FILE_COUNT] = {0, SLOT_UR, SLOT_P, SLOT_UP, SLOTS};
    turing_access_t access[TURING_ACCESS_MAX];
    const int n = turing_insn_access(in, access);
    p->station = emu_station(in);
    p->unit = p->station.unit;
    p->queue = (uint8_t)queue_of(in);
    for (int i = 0; i < n; i++) {
        if (access[i].file == TURING_FILE_B)
            continue;
        const bool predicate = access[i].file == TURING_FILE_P || access[i].file == TURING_FILE_UP;
        for (unsigned k = 0; k < access[i].count; k++) {
            const uint16_t slot = (uint16_t)(first_slot[access[i].file] + access[i].first + k);
            const bool is_guard = predicate && ((in->guard.reg == access[i].first && in->guard.reg != TURING_PT &&
                                                 in->guard.uniform == (access[i].file == TURING_FILE_UP)) ||
                                                p->unit == UNIT_CONTROL);
            if (access[i].write && p->n_writes < 16)
                p->write[p->n_writes++] = slot;
            else if (!access[i].write && p->n_reads < 32)
                p->read[p->n_reads++] = (use_t){slot, is_guard};
        }
    }
}

bool emu_schedule_open(machine_t *m, turing_error_t *err)
{
    m->plans = calloc(m->n_ops ? m->n_ops : 1, sizeof *m->plans);
    if (!m->plans)
        return turing_fail(err, "out of memory");
    for (uint32_t i = 0; i < m->n_ops; i++)
        make_plan(m->ops[i].in, &m->plans[i]);
    return true;
}

void emu_schedule_close(machine_t *m)
{
    free(m->plans);
    m->plans = NULL;
}

size_t emu_schedule_bytes(const machine_t *m)
{
    (void)m;
    return sizeof(schedule_t);
}

void emu_schedule_start(warp_t *w)
{
    memset(w->schedule, 0, sizeof *w->schedule);
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void wait_for(schedule_t *s, int scoreboard, uint32_t outstanding)
{
    const uint32_t reached = s->number[scoreboard] > outstanding ? s->number[scoreboard] - outstanding : 0;
    if (reached > s->done[scoreboard])
        s->done[scoreboard] = reached;
    if (!outstanding)
        for (int q = 0; q < QUEUES; q++)
            if (s->covers[scoreboard][q] > s->finished[q])
                s->finished[q] = s->covers[scoreboard][q];
}

static bool written(const schedule_t *s, const writer_t *x)
{
    if (x->scoreboard != NONE && x->number <= s->done[x->scoreboard])
        return true;
    return x->queue != QUEUE_OTHER && x->place <= s->finished[x->queue];
}

static bool has_read(const schedule_t *s, const reader_t *x)
{
    if (x->scoreboard != NONE && x->number <= s->done[x->scoreboard])
        return true;
    return x->queue != QUEUE_OTHER && x->place <= s->finished[x->queue];
}

/* ---- hazards ----------------------------------------------------------------------------------- */

static const char *slot_name(uint16_t slot, char text[8])
{
    const char *file = slot < SLOT_UR ? "R" : slot < SLOT_P ? "UR" : slot < SLOT_UP ? "P" : "UP";
    unsigned n = slot < SLOT_UR   ? slot
                 : slot < SLOT_P  ? slot - SLOT_UR
                 : slot < SLOT_UP ? slot - SLOT_P
                                  : slot - SLOT_UP;
    size_t at = 0;
    while (*file)
        text[at++] = *file++;
    if (n >= 100)
        text[at++] = (char)('0' + n / 100);
    if (n >= 10)
        text[at++] = (char)('0' + n / 10 % 10);
    text[at++] = (char)('0' + n % 10);
    text[at] = 0;
    return text;
}

static site_t site_of(const warp_t *w, uint32_t code)
{
    return (site_t){.lane = TURING_NO_LANE,
                    .has_other = true,
                    .other_warp = w->index,
                    .other_block = w->block->linear,
                    .other_code = w->block->worker->m->ops[code].in->addr};
}

static void missed(warp_t *w, const op_t *o, const writer_t *x, uint16_t slot, const char *verb)
{
    char name[8], text[TURING_TEXT_MAX];
    turing_disasm(w->block->worker->m->ops[x->code].in, text);
    const site_t site = site_of(w, x->code);
    if (x->scoreboard == NONE)
        emu_report(w, o, TURING_SCOREBOARD_MISSED, site,
                   "%s %s, which 0x%x (%.100s) writes at an unknown time and "
                   "without releasing a scoreboard",
                   verb, slot_name(slot, name), site.other_code, text);
    else
        emu_report(w, o, TURING_SCOREBOARD_MISSED, site,
                   "%s %s, which 0x%x (%.100s) may not have written yet: nobody "
                   "waited for scoreboard %u",
                   verb, slot_name(slot, name), site.other_code, text, x->scoreboard);
}

static void too_short(warp_t *w, const op_t *o, const writer_t *x, uint16_t slot, uint64_t distance, unsigned need)
{
    char name[8], text[TURING_TEXT_MAX];
    turing_disasm(w->block->worker->m->ops[x->code].in, text);
    const site_t site = site_of(w, x->code);
    emu_report(w, o, TURING_STALL_TOO_SHORT, site,
               "needs %s %u cycles after its producer 0x%x (%.100s), and issues after %llu", slot_name(slot, name),
               need, site.other_code, text, (unsigned long long)distance);
}

static void check_read(warp_t *w, const op_t *o, const plan_t *p, use_t use, uint32_t on)
{
    schedule_t *s = w->schedule;
    writer_t *x = &s->writer[use.slot];
    const bool is_of_lanes = use.slot < SLOT_UR; /* each lane has its own, and reads no other's */
    if (!x->lanes || (is_of_lanes && !(x->lanes & on)))
        return;
    const uint64_t distance = s->now - x->issued;
    if (x->unit >= UNIT_FIXED) {
        if (written(s, x))
            x->lanes = 0;
        else if (!(x->unit == UNIT_TENSOR && p->unit == UNIT_TENSOR && distance >= TENSOR_LATENCY))
            missed(w, o, x, use.slot, "reads");
        return;
    }
    const turing_file_t file = use.slot < SLOT_UR   ? TURING_FILE_R
                               : use.slot < SLOT_P  ? TURING_FILE_UR
                               : use.slot < SLOT_UP ? TURING_FILE_P
                                                    : TURING_FILE_UP;
    const unsigned need = emu_latency((unit_t)x->unit, p->station, file, use.guard);
    if (distance < need)
        too_short(w, o, x, use.slot, distance, need);
    else if (distance >= SETTLED)
        x->lanes = 0;
}

static void check_write(warp_t *w, const op_t *o, const plan_t *p, uint16_t slot, uint32_t on)
{
    schedule_t *s = w->schedule;
    writer_t *x = &s->writer[slot];
    if (x->lanes & on) {
        const uint64_t distance = s->now - x->issued;
        if (x->unit >= UNIT_FIXED) {
            const bool in_order =
                x->unit == p->unit && (x->unit == UNIT_TENSOR || (x->queue == p->queue && x->queue != QUEUE_OTHER));
            if (!in_order && !written(s, x))
                missed(w, o, x, slot, "overwrites");
        } else if (p->unit < UNIT_FIXED && distance + emu_write_latency[p->unit] <= emu_write_latency[x->unit])
            too_short(w, o, x, slot, distance, emu_write_latency[x->unit] - emu_write_latency[p->unit] + 1u);
    }
    reader_t *r = &s->reader[slot];
    /* A unit reads its sources in order, before it writes later results.
     * Uniform registers are read at issue. */
    if (r->lanes & on && slot < SLOT_UR && r->unit != p->unit && !has_read(s, r)) {
        char name[8], text[TURING_TEXT_MAX];
        turing_disasm(w->block->worker->m->ops[r->code].in, text);
        const site_t site = site_of(w, r->code);
        emu_report(w, o, TURING_SOURCE_OVERWRITTEN, site, "overwrites %s, which 0x%x (%.100s) may not have read yet",
                   slot_name(slot, name), site.other_code, text);
    }
    r->lanes = 0;
}

static int release_of(const turing_control_t *c, bool read)
{
    return read && c->rbarrier != NONE ? c->rbarrier : c->wbarrier;
}

/* ---- one instruction ------------------------------------------------------------------------------ */

/* The queue in whose order a unit reads its sources. */
static queue_t reads_of(const plan_t *p)
{
    return p->unit == UNIT_MEMORY ? QUEUE_READS : p->unit == UNIT_XU ? QUEUE_XU_READS : (queue_t)p->queue;
}

/* Takes its places in the queues, and the scoreboards that it will release. */
static bool enqueue(schedule_t *s, const plan_t *p, const turing_control_t *c)
{
    const bool queued =
        p->unit == UNIT_MEMORY || p->unit == UNIT_XU || p->unit == UNIT_TENSOR || p->unit == UNIT_DOUBLE;
    if (queued) {
        s->place[p->queue]++;
        if (reads_of(p) != p->queue)
            s->place[reads_of(p)]++;
    }
    for (int read = 0; read < 2; read++) {
        const uint8_t b = read ? c->rbarrier : c->wbarrier;
        if (b >= SCOREBOARDS)
            continue;
        s->number[b]++;
        if (!queued)
            continue;
        if (!read)
            s->covers[b][p->queue] = s->place[p->queue];
        s->covers[b][reads_of(p)] = s->place[reads_of(p)];
    }
    return queued;
}

static void settle(warp_t *w, const op_t *o, const plan_t *p, uint32_t on)
{
    schedule_t *s = w->schedule;
    const turing_control_t *c = &o->in->ctl;
    const uint32_t code = (uint32_t)(o - w->block->worker->m->ops);
    const bool queued = enqueue(s, p, c);
    if (queued) {
        const int b = release_of(c, true);
        const queue_t order = reads_of(p);
        for (unsigned i = 0; i < p->n_reads; i++)
            s->reader[p->read[i].slot] = (reader_t){.code = code,
                                                    .lanes = on,
                                                    .unit = p->unit,
                                                    .queue = (uint8_t)order,
                                                    .scoreboard = (uint8_t)b,
                                                    .number = b < SCOREBOARDS ? s->number[b] : 0,
                                                    .place = s->place[order]};
    }
    if (p->unit == UNIT_CONTROL)
        return;
    for (unsigned i = 0; i < p->n_writes; i++)
        s->writer[p->write[i]] = (writer_t){.issued = s->now,
                                            .code = code,
                                            .lanes = on,
                                            .unit = p->unit,
                                            .queue = p->queue,
                                            .scoreboard = c->wbarrier,
                                            .number = c->wbarrier < SCOREBOARDS ? s->number[c->wbarrier] : 0,
                                            .place = s->place[p->queue]};
}

void emu_schedule_issue(warp_t *w, const op_t *o, uint32_t on)
{
    schedule_t *s = w->schedule;
    const machine_t *m = w->block->worker->m;
    const turing_control_t *c = &o->in->ctl;
    const plan_t *p = &m->plans[o - m->ops];
    const unsigned named = o->in->op == TURING_DEPBAR ? o->in->m.mask : 0; /* DEPBAR SB0, n, {1,2} */
    for (int b = 0; b < SCOREBOARDS; b++)
        if ((c->wait | named) >> b & 1)
            wait_for(s, b, 0);
    if (o->in->op == TURING_BAR)
        s->finished[QUEUE_READS] = s->place[QUEUE_READS];
    if (o->in->op == TURING_DEPBAR && o->in->m.func < SCOREBOARDS)
        wait_for(s, o->in->m.func, o->in->m.aux);
    for (unsigned i = 0; i < p->n_reads; i++)
        if (on || p->read[i].guard)
            check_read(w, o, p, p->read[i], on);
    if (on) {
        for (unsigned i = 0; i < p->n_writes; i++)
            check_write(w, o, p, p->write[i], on);
        settle(w, o, p, on);
    } else
        enqueue(s, p, c); /* passes through its queue all the same */
    s->now += o->in->op == TURING_ERRBAR ? DRAIN_CYCLES : c->stall ? c->stall : 1;
}
