/* SPDX-License-Identifier: MIT */
/*
 * exec.c - a launch: sets the machine up, deals blocks to host threads, and
 * runs the warps of each block between its barriers.
 *
 * A host thread takes blocks in their linear order and runs one until it is
 * done.  A block that only polls memory is set aside and another one runs, so
 * that blocks may wait for each other as long as a T4 would hold them at the
 * same time.  Where results could depend on the order of blocks (atomics that
 * return something or round, strong loads), one thread runs them all.
 */
#include "exec.h"

#include "define.h"
#include "system.h"

#include <fenv.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "device memory is little-endian, and so must be the host"
#endif

enum {
    POISON_WORD = 0x7fff7fff, /* two NaNs, in registers never written */
    POISON_BYTE = 0xff,       /* and in shared memory                 */
    STACK_BYTES = 1024,       /* for frames of called functions, unless a launch says otherwise */
    LOCAL_STEP = 1024,        /* of local memory that is made ready at a time */
    STALEMATE = 1 << 20,      /* polls in a row that end a launch where no block ends and no memory changes */
    POLLS_A_LOOK = 256,       /* after so many of them a limited launch looks at the clock */
    POLLING_NS = 2000000000,  /* and ends where they went on for so long */
    DRIVER_BYTES = 0x160      /* of bank 0, before the parameters                 */
};

/* " at FILE:LINE" of an instruction, or "". */
static const char *source_line(const machine_t *m, const op_t *o, char text[160])
{
    const turing_line_t *line = m->kernel->lines ? &m->kernel->lines[o - m->ops] : NULL;
    text[0] = 0;
    if (line && line->file)
        snprintf(text, 160, " at %.140s:%u", line->file, line->line);
    return text;
}

void emu_fault_as(warp_t *w, const op_t *o, turing_failure_t kind, const char *format, ...)
{
    worker_t *worker = w->block->worker;
    w->stop = STOP_FAULT;
    if (worker->failed)
        return;
    worker->failed = true;
    char what[700], insn[TURING_TEXT_MAX], line[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    turing_disasm(o->in, insn);
    const uint32_t *id = w->block->id;
    turing_fail(&worker->error, "%s+0x%x (%.80s)%s, block (%u,%u,%u) warp %u: %s", worker->m->kernel->name, o->in->addr,
                insn, source_line(worker->m, o, line), id[0], id[1], id[2], w->index, what);
    worker->failure = kind;
}

const char *emu_where(const block_t *b, char *text, size_t size)
{
    const machine_t *m = b->worker->m;
    size_t n = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < b->n_warps && n + 1 < size; i++) {
        const warp_t *w = &b->warp[i];
        char line[160], barrier[32] = "runs";
        if (w->stop == STOP_EXIT)
            continue;
        const uint32_t at = w->stop == STOP_BARRIER && w->pc ? w->pc - 1 : w->pc < m->n_ops ? w->pc : m->n_ops - 1;
        if (w->stop == STOP_BARRIER)
            snprintf(barrier, sizeof barrier, "waits at barrier %d", w->waits_at);
        int k = snprintf(text + n, size - n, "; warp %u %s, 0x%x%s", w->index, barrier, m->ops[at].in->addr,
                         source_line(m, &m->ops[at], line));
        n += k > 0 ? (size_t)k : 0;
    }
    return text;
}

/* ---- blocks --------------------------------------------------------------------------- */

static size_t round_64(size_t x)
{
    return (x + 63) & ~(size_t)63;
}

void emu_block_free(block_t *b)
{
    if (b) {
        emu_race_block_free(b->race);
        free(b->storage);
        free(b);
    }
}

/* Storage for one block, to be used for one after another. */
block_t *emu_block_create(worker_t *worker)
{
    const machine_t *m = worker->m;
    const size_t rows = round_64((ROW_CONSTANTS + m->n_constants) * sizeof(row_t));
    const size_t local = round_64((size_t)LANES * m->local_bytes), shared = round_64(m->shared_bytes);
    const bool shadow = m->checks & TURING_CHECK_MEMORY;
    const size_t schedule = m->checks & TURING_CHECK_SCHEDULE ? round_64(emu_schedule_bytes(m)) : 0;
    const size_t define = m->define_plans ? round_64(sizeof(define_t)) : 0;
    const size_t per_warp = round_64(sizeof(warp_t)) + rows + local * (1 + 2 * shadow + m->dry) + schedule + define;
    block_t *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->worker = worker;
    b->n_warps = m->n_warps;
    b->storage = calloc(1, 64 + m->n_warps * per_warp + shared * (1 + 2 * shadow + m->dry));
    if (m->checks & TURING_CHECK_RACE)
        b->race = emu_race_block(b);
    if (!b->storage || ((m->checks & TURING_CHECK_RACE) && !b->race)) {
        emu_block_free(b);
        return NULL;
    }
    uint8_t *p = (uint8_t *)round_64((uintptr_t)b->storage);
    b->warp = (warp_t *)p;
    p += m->n_warps * round_64(sizeof(warp_t));
    for (uint32_t i = 0; i < m->n_warps; i++) {
        warp_t *w = &b->warp[i];
        w->block = b;
        w->index = i;
        w->r = (row_t *)p;
        memcpy(w->r + ROW_CONSTANTS, m->constants, m->n_constants * sizeof(row_t));
        p += rows;
        w->local = p;
        w->local_low = m->local_bytes;
        p += local;
        if (shadow) {
            w->local_valid = p;
            p += local;
            w->local_undefined = p;
            p += local;
        }
        if (m->dry) {
            w->local_absent = p;
            p += local;
        }
        if (schedule) {
            w->schedule = (schedule_t *)p;
            p += schedule;
        }
        if (define) {
            w->define = (define_t *)p;
            p += define;
        }
    }
    b->shared = p;
    if (shadow)
        b->shared_valid = p + shared, b->shared_undefined = p + 2 * shared;
    if (m->dry)
        b->shared_absent = p + shared * (1 + 2 * shadow);
    return b;
}

void emu_local_lower(warp_t *w, uint32_t address)
{
    const uint32_t low = address / LOCAL_STEP * LOCAL_STEP, bytes = w->block->worker->m->local_bytes;
    EACH
        memset(w->local + (size_t)l * bytes + low, POISON_BYTE, w->local_low - low);
    w->local_low = low;
}

/* Of the last block's local memory, which it used from local_low on. */
static void forget_local(warp_t *w)
{
    const uint32_t bytes = w->block->worker->m->local_bytes, low = w->local_low;
    EACH {
        if (w->local_valid)
            memset(w->local_valid + (size_t)l * bytes + low, 0, bytes - low);
        if (w->has_undefined)
            memset(w->local_undefined + (size_t)l * bytes + low, 0, bytes - low);
        if (w->local_absent)
            memset(w->local_absent + (size_t)l * bytes + low, 0, bytes - low);
    }
    w->local_low = bytes;
    w->has_undefined = false;
}

void emu_block_start(block_t *b, uint64_t linear)
{
    const machine_t *m = b->worker->m;
    const uint32_t *grid = m->launch->grid;
    b->linear = linear;
    b->id[0] = (uint32_t)(linear % grid[0]);
    b->id[1] = (uint32_t)(linear / grid[0] % grid[1]);
    b->id[2] = (uint32_t)(linear / grid[0] / grid[1]);
    b->live = b->n_warps;
    b->polls = 0;
    b->patience = 1;
    memset(b->barrier, 0, sizeof b->barrier);
    if (b->race)
        emu_race_start(b);
    memset(b->shared, POISON_BYTE, m->shared_bytes);
    if (b->shared_valid)
        memset(b->shared_valid, 0, m->shared_bytes);
    if (b->has_undefined)
        memset(b->shared_undefined, 0, m->shared_bytes);
    b->has_undefined = false;
    if (b->shared_absent)
        memset(b->shared_absent, 0, m->shared_bytes);
    for (uint32_t i = 0; i < b->n_warps; i++) {
        warp_t *w = &b->warp[i];
        uint32_t threads = m->threads - i * LANES;
        w->threads = threads >= LANES ? ALL_LANES : (1u << threads) - 1;
        w->alive = w->active = w->threads;
        w->pc = w->spins = w->loops = 0;
        w->n_splits = 0;
        w->stop = RUNNING;
        w->stored = false;
        w->waits_at = -1;
        w->issued = 0;
        w->hit = NULL;
        memset(w->p, 0, sizeof w->p);
        w->p[PRED_TRUE] = w->p[PRED_UNIFORM + PRED_TRUE] = ALL_LANES;
        for (uint32_t r = 0; r < m->kernel->registers && r < ROW_ZERO; r++)
            for (int l = 0; l < LANES; l++)
                w->r[r][l] = POISON_WORD;
        memset(w->barrier, 0, sizeof w->barrier);
        forget_local(w);
        if (w->schedule)
            emu_schedule_start(w);
        if (w->define)
            emu_define_start(w);
    }
}

/* A barrier of the whole block that warps have ended without. A warp that has nothing to do may end early; one that
 * stored something since its last barrier went past this one. */
static void passed_by(block_t *b, const named_barrier_t *n)
{
    warp_t *waits = NULL;
    uint32_t passed = 0, first = 0;
    for (uint32_t i = 0; i < b->n_warps; i++)
        if (n->sync_warps >> i & 1)
            waits = &b->warp[i];
        else if (b->warp[i].stop == STOP_EXIT && b->warp[i].stored) {
            first = passed ? first : i;
            passed++;
            b->warp[i].stored = false; /* told once */
        }
    if (waits && passed)
        emu_report(waits, &b->worker->m->ops[waits->pc - 1], TURING_BARRIER_MISMATCH, (site_t){.lane = TURING_NO_LANE},
                   "%u of %u warps ended without this barrier, warp %u first, and they stored something before: "
                   "__syncthreads is for all threads of a block",
                   passed, b->n_warps, first);
}

/* Frees the warps at a barrier that has all its threads. */
static void fill_barrier(block_t *b, int id)
{
    named_barrier_t *n = &b->barrier[id];
    const uint32_t expected = n->expected ? n->expected : b->live * LANES;
    if (!n->arrived || n->arrived < expected)
        return;
    if (b->worker->m->checks & TURING_CHECK_RACE)
        emu_race_barrier(b, id, n->sync_warps);
    if (!n->expected && b->live < b->n_warps && b->worker->m->checks & TURING_CHECK_CONVERGENCE)
        passed_by(b, n);
    for (uint32_t i = 0; i < b->n_warps; i++) {
        warp_t *w = &b->warp[i];
        if (!(n->sync_warps >> i & 1))
            continue;
        w->waits_at = -1;
        w->stop = RUNNING;
        const turing_insn_t *in = b->worker->m->ops[w->pc - 1].in;
        if (in->m.func == TURING_BAR_RED) {
            uint32_t v = in->m.red == TURING_RED_POPC ? n->popc : in->m.red == TURING_RED_AND ? n->all : n->any;
            for (int l = 0; l < LANES; l++)
                w->barrier_result[l] = v;
        }
    }
    memset(n, 0, sizeof *n);
}

void emu_block_deadlock(block_t *b)
{
    for (uint32_t i = 0; i < b->n_warps; i++) {
        warp_t *w = &b->warp[i];
        if (w->stop != STOP_BARRIER)
            continue;
        const op_t *o = &b->worker->m->ops[w->pc - 1];
        const named_barrier_t *n = &b->barrier[w->waits_at];
        const uint32_t expected = n->expected ? n->expected : b->live * LANES;
        char where[480];
        if (b->worker->m->checks & TURING_CHECK_CONVERGENCE)
            emu_report(w, o, TURING_BARRIER_MISMATCH, (site_t){.lane = TURING_NO_LANE},
                       "barrier %d waits for ever: %u of %u threads arrived and no warp can run", w->waits_at,
                       n->arrived, expected);
        emu_fault_as(w, o, TURING_FAILED_STUCK,
                     "barrier %d waits for ever: %u of %u threads arrived and no warp can run%s", w->waits_at,
                     n->arrived, expected, emu_where(b, where, sizeof where));
        return;
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double idle_seconds(machine_t *m)
{
    return (double)(int64_t)(now_ns() - atomic_load(&m->progress_ns)) * 1e-9;
}

bool emu_out_of_time(machine_t *m)
{
    return m->launch->seconds && idle_seconds(m) > m->launch->seconds;
}

stop_t emu_block_step(block_t *b, warp_t *w)
{
    w->stop = RUNNING;
    emu_run_warp(w);
    if (w->stop == STOP_EXIT && !--b->live && b->worker->m->launch->seconds)
        atomic_store(&b->worker->m->progress_ns, now_ns());
    if (w->stop == STOP_EXIT || w->stop == STOP_BARRIER) {
        const stop_t why = w->stop;
        for (int id = 0; id < 16; id++)
            fill_barrier(b, id);
        return why;
    }
    return w->stop;
}

typedef enum outcome { BLOCK_DONE, BLOCK_POLLS, BLOCK_FAILED } outcome_t;

static outcome_t block_run(block_t *b)
{
    for (;;) {
        bool progress = false, polls = false;
        for (uint32_t i = 0; i < b->n_warps; i++) {
            warp_t *w = &b->warp[i];
            if (w->stop == STOP_EXIT || w->stop == STOP_BARRIER)
                continue;
            const stop_t why = emu_block_step(b, w);
            if (why == STOP_FAULT)
                return BLOCK_FAILED;
            if (why == STOP_YIELD)
                polls = true;
            else
                progress = true;
        }
        if (b->live == 0)
            return BLOCK_DONE;
        if (polls && (!progress || (b->worker->m->checks & TURING_CHECK_RACE)))
            return BLOCK_POLLS;
        if (!progress) {
            emu_block_deadlock(b);
            return BLOCK_FAILED;
        }
    }
}

/* ---- workers ------------------------------------------------------------------------------ */

static bool next_block(machine_t *m, uint64_t *linear)
{
    if (atomic_load(&m->stop_all))
        return false;
    *linear = atomic_fetch_add(&m->next_block, 1);
    return *linear < m->n_blocks;
}

static void *work(void *arg)
{
    worker_t *worker = arg;
    machine_t *m = worker->m;
    const uint32_t limit = m->resident;
    block_t **resident = calloc(limit, sizeof *resident), *spare = NULL;
    uint32_t n = 0, at = 0, stalemate = 0, seen = 0;
    uint64_t since = 0;
    bool more = true;
    if (!resident)
        worker->failed = !turing_fail(&worker->error, "out of memory");
    while (resident && !worker->failed && !atomic_load(&m->stop_all)) {
        /* When everyone polls, bring in a new block, or else go round. */
        uint64_t linear;
        if (more && n < limit && at == n) {
            more = next_block(m, &linear);
            if (more) {
                block_t *b = spare ? spare : emu_block_create(worker);
                spare = NULL;
                if (!b) {
                    worker->failed = !turing_fail(&worker->error, "out of memory for a block");
                    break;
                }
                emu_block_start(b, linear);
                resident[n++] = b;
            }
        }
        if (!n)
            break;
        if (at >= n)
            at = 0;
        block_t *b = resident[at];
        outcome_t outcome = block_run(b);
        if (outcome == BLOCK_DONE) {
            stalemate = 0;
            resident[at] = resident[--n];
            emu_block_free(spare);
            spare = b;
            at = 0;
            if (!n && !more)
                break;
        } else if (outcome == BLOCK_POLLS) {
            at++;
            const uint32_t changes = worker->changes;
            if (changes != seen || !stalemate) {
                seen = changes;
                stalemate = 0;
                since = m->launch->seconds ? now_ns() : 0;
            }
            const bool look = m->launch->seconds && !(++stalemate % POLLS_A_LOOK);
            if (stalemate > STALEMATE || (look && (now_ns() - since > POLLING_NS || emu_out_of_time(m)))) {
                warp_t *w = &b->warp[0];
                char where[480];
                while (w->stop == STOP_EXIT && w + 1 < b->warp + b->n_warps)
                    w++;
                emu_fault_as(w, &m->ops[w->pc ? w->pc - 1 : 0], TURING_FAILED_STUCK,
                             "every block that a T4 would hold polls memory for ever%s",
                             emu_where(b, where, sizeof where));
            }
        }
    }
    for (uint32_t i = 0; i < n; i++)
        emu_block_free(resident[i]);
    emu_block_free(spare);
    free(resident);
    if (worker->failed)
        atomic_store(&m->stop_all, true);
    return NULL;
}

/* ---- launch ----------------------------------------------------------------------------------- */

static bool validate(const turing_kernel_t *k, const turing_launch_t *l, turing_error_t *err)
{
    const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (k->unusable)
        return turing_fail(err, "%s: %s", k->name, k->unusable);
    if (!l->grid[0] || !l->grid[1] || !l->grid[2] || l->grid[0] > 0x7fffffff || l->grid[1] > 65535 ||
        l->grid[2] > 65535)
        return turing_fail(err, "%s: grid %ux%ux%u is not possible", k->name, l->grid[0], l->grid[1], l->grid[2]);
    if (!threads || l->block[0] > 1024 || l->block[1] > 1024 || l->block[2] > 64 || threads > 1024)
        return turing_fail(err, "%s: block %ux%ux%u is not possible", k->name, l->block[0], l->block[1], l->block[2]);
    if (k->max_threads && threads > k->max_threads)
        return turing_fail(err, "%s: %u threads, but the kernel was built for %u", k->name, (unsigned)threads,
                           k->max_threads);
    if (l->shared_bytes > TURING_T4_SHARED || k->shared_bytes + l->shared_bytes > TURING_T4_SHARED)
        return turing_fail(err, "%s: %u bytes of shared memory, a T4 has %u", k->name,
                           k->shared_bytes + l->shared_bytes, (unsigned)TURING_T4_SHARED);
    if (l->param_bytes != k->param_bytes)
        return turing_fail(err, "%s: %zu bytes of parameters, the kernel takes %u", k->name, l->param_bytes,
                           k->param_bytes);
    if (k->registers > 255)
        return turing_fail(err, "%s: %u registers", k->name, k->registers);
    if (l->stack_bytes > TURING_MOST_LOCAL)
        return turing_fail(err, "%s: %u bytes of stack, a thread has %d of local memory", k->name, l->stack_bytes,
                           TURING_MOST_LOCAL);
    if (!turing_occupancy(k, (uint32_t)threads, turing_resident_shared(k, l)).blocks)
        return turing_fail(err, "%s: %u threads with %u registers each do not fit on an SM", k->name, (unsigned)threads,
                           k->registers);
    return true;
}

/* Words of bank 0 with the address of bank 0 itself, by which parameters are read through pointers, and with the
 * address through which cooperative_groups waits for a grid. */
enum { BANK0_ADDRESS = 0x40, GRID_BARRIER_HIGH = 0x8c, GRID_BARRIER_LOW = 0x90, GRID_BARRIER_BYTES = 64 };

/* Does an instruction have bytes of bank 0 from `first` on, before `end`, for an operand? */
static bool reads_bank0(const turing_kernel_t *k, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < k->n_insns; i++)
        for (unsigned j = 0; j < k->insns[i].n_src; j++) {
            const turing_operand_t *s = &k->insns[i].src[j];
            if (s->kind == TURING_CONST && s->bank == 0 && s->imm + 4u * (s->n ? s->n : 1) > first && s->imm < end)
                return true;
        }
    return false;
}

bool turing_waits_for_grid(const turing_kernel_t *k)
{
    return reads_bank0(k, GRID_BARRIER_HIGH, GRID_BARRIER_LOW + 4);
}

static bool calls_system(const turing_kernel_t *k)
{
    for (uint32_t i = 0; i < k->n_insns; i++)
        if (k->insns[i].op == TURING_CALL_ABS && (k->insns[i].n_src || emu_system_is((uint64_t)k->insns[i].target)))
            return true;
    return false;
}

static bool has_calls(const turing_kernel_t *k)
{
    for (uint32_t i = 0; i < k->n_insns; i++)
        if (k->insns[i].op == TURING_CALL_REL || k->insns[i].op == TURING_CALL_ABS)
            return true;
    return false;
}

/* Bank 0: what the driver would put there, and the parameters. */
static bool fill_bank0(machine_t *m, turing_error_t *err)
{
    const turing_kernel_t *k = m->kernel;
    const turing_launch_t *l = m->launch;
    uint32_t size = k->bank[0].data ? k->bank[0].size : 0;
    if (size < k->param_base + k->param_bytes)
        size = k->param_base + k->param_bytes;
    if (size < DRIVER_BYTES)
        size = DRIVER_BYTES;
    size = (size + 15) & ~15u; /* words are read where the last parameter is a byte */
    m->bank0 = calloc(1, size);
    if (!m->bank0)
        return turing_fail(err, "out of memory");
    m->bank[0] = (turing_bank_t){m->bank0, size, 0};
    if (k->bank[0].data)
        memcpy(m->bank0, k->bank[0].data, k->bank[0].size);
    const uint64_t shared = SHARED_WINDOW, local = LOCAL_WINDOW;
    memcpy(m->bank0 + 0x00, l->block, 12);
    memcpy(m->bank0 + 0x0c, l->grid, 12);
    memcpy(m->bank0 + 0x18, &shared, 8);
    memcpy(m->bank0 + 0x20, &local, 8);
    memcpy(m->bank0 + 0x28, &m->local_bytes, 4); /* the stack grows down from the end of local memory */
    memcpy(m->bank0 + 0x2c, &l->shared_bytes, 4);
    const uint32_t high = (uint32_t)(m->grid_barrier >> 32), low = (uint32_t)m->grid_barrier, sms = TURING_T4_SMS;
    memcpy(m->bank0 + GRID_BARRIER_HIGH, &high, 4);
    memcpy(m->bank0 + GRID_BARRIER_LOW, &low, 4);
    memcpy(m->bank0 + 0x10c, &sms, 4);               /* %nsmid */
    memcpy(m->bank0 + 0x50, &k->bank[3].address, 8); /* by which __constant__ variables are read through pointers */
    if (k->param_bytes)
        memcpy(m->bank0 + k->param_base, l->params, k->param_bytes);
    if (!reads_bank0(k, BANK0_ADDRESS, BANK0_ADDRESS + 8))
        return true;
    m->bank0_address = turing_memory_alloc(m->mem, size);
    memcpy(m->bank0 + BANK0_ADDRESS, &m->bank0_address, 8);
    return (m->bank0_address && turing_memory_write(m->mem, m->bank0_address, m->bank0, size, err)) ||
           turing_fail(err, "out of memory");
}

/* The other banks: the module's variables as they are now, where they are mapped. */
static void take_banks(machine_t *m)
{
    for (unsigned b = 1; b < TURING_BANKS; b++) {
        m->bank[b] = m->kernel->bank[b];
        const alloc_t *a = m->bank[b].address ? emu_memory_find(m->mem, m->bank[b].address) : NULL;
        if (a && a->base == m->bank[b].address && a->size >= m->bank[b].size)
            m->bank[b].data = a->host;
    }
}

static bool open_grid_barrier(machine_t *m, turing_error_t *err)
{
    if (!m->launch->cooperative)
        return true;
    if (m->n_blocks > m->resident)
        return turing_fail(err, "%s: its %llu blocks are to wait for each other, and a T4 holds %u at a time",
                           m->kernel->name, (unsigned long long)m->n_blocks, m->resident);
    m->grid_barrier = turing_memory_alloc(m->mem, GRID_BARRIER_BYTES);
    return (m->grid_barrier && turing_memory_fill(m->mem, m->grid_barrier, 0, GRID_BARRIER_BYTES, err)) ||
           turing_fail(err, "out of memory");
}

static unsigned thread_count(const machine_t *m)
{
    unsigned n = m->launch->threads;
    if (!n) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        n = cores > 0 ? (unsigned)cores : 1;
    }
    /* Race cells of global memory are shared by all blocks, and so is simulated time. */
    if (m->ordered || m->checks & TURING_CHECK_RACE || m->launch->time)
        n = 1;
    return n > m->n_blocks ? (unsigned)m->n_blocks : n > 256 ? 256 : n;
}

static bool open_worker(machine_t *m, worker_t *worker)
{
    worker->m = m;
    if (m->launch->counters)
        worker->count = calloc(m->n_ops, sizeof *worker->count);
    if (m->checks)
        worker->finding = calloc((size_t)m->n_ops * TURING_VIOLATION_COUNT, sizeof *worker->finding);
    return (worker->count || !m->launch->counters) && (worker->finding || !m->checks);
}

static void close_worker(worker_t *worker)
{
    if (worker->finding)
        for (size_t i = 0; i < (size_t)worker->m->n_ops * TURING_VIOLATION_COUNT; i++)
            free(worker->finding[i]);
    free(worker->finding);
    free(worker->count);
}

static bool run_grid(machine_t *m, uint64_t *violations, turing_error_t *err)
{
    const unsigned n = thread_count(m);
    worker_t *workers = calloc(n, sizeof *workers);
    pthread_t *threads = calloc(n, sizeof *threads);
    bool ok = workers && threads, started = ok;
    for (unsigned i = 0; ok && i < n; i++)
        ok = open_worker(m, &workers[i]);
    unsigned running = 1;
    if (!ok)
        turing_fail(err, "out of memory");
    else {
        while (running < n && !pthread_create(&threads[running], NULL, work, &workers[running]))
            running++;
        if (m->launch->time)
            emu_time_run(&workers[0]);
        else
            work(&workers[0]);
        for (unsigned i = 1; i < running; i++)
            pthread_join(threads[i], NULL);
        for (unsigned i = 0; ok && i < running; i++)
            if (workers[i].failed) {
                ok = false;
                if (err)
                    *err = workers[i].error;
                if (m->launch->failure)
                    *m->launch->failure = workers[i].failure;
            }
        uint64_t reported = m->checks ? emu_report_all(m, workers, running) : 0;
        if (violations)
            *violations = reported;
        if (ok && m->launch->counters && !emu_count_finish(m, workers, running))
            ok = turing_fail(err, "out of memory");
    }
    for (unsigned i = 0; started && i < n; i++)
        if (workers[i].m)
            close_worker(&workers[i]);
    free(workers);
    free(threads);
    return ok;
}

bool turing_launch(const turing_kernel_t *kernel, turing_memory_t *mem, const turing_launch_t *launch,
                   uint64_t *violations, turing_error_t *err)
{
    if (violations)
        *violations = 0;
    if (launch->failure)
        *launch->failure = TURING_FAILED_OTHER;
    if (!validate(kernel, launch, err))
        return false;
    machine_t m = {.kernel = kernel, .mem = mem, .launch = launch, .checks = launch->checks};
    m.threads = launch->block[0] * launch->block[1] * launch->block[2];
    m.n_warps = (m.threads + LANES - 1) / LANES;
    m.shared_bytes = (kernel->shared_bytes + launch->shared_bytes + 15) & ~15u; /* loads of 16 bytes may reach there */
    m.has_stack = has_calls(kernel);
    m.local_bytes = (kernel->local_bytes + 15) & ~15u;
    if (m.has_stack)
        m.local_bytes += ((launch->stack_bytes ? launch->stack_bytes : STACK_BYTES) + 15) & ~15u;
    m.n_blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    m.resident = TURING_T4_SMS * turing_occupancy(kernel, m.threads, turing_resident_shared(kernel, launch)).blocks;
    m.progress_ns = now_ns();
    m.max_issued = launch->max_warp_instructions ? launch->max_warp_instructions : UINT64_C(1) << 32;
    m.hmma = turing_hmma_best();
    m.fraction = turing_tensor_fraction(launch->tensor);
    pthread_mutex_init(&m.atomics, NULL);
    pthread_mutex_init(&m.finding, NULL);
    if (calls_system(kernel)) {
        m.ordered = true; /* what it prints, and which block malloc gives to whom */
        if (!emu_heap_open(mem) || !emu_grid_open(&m))
            return turing_fail(err, "out of memory for what device code calls");
    }
    fenv_t callers; /* the threads that run blocks get theirs from this one */
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    bool ok = open_grid_barrier(&m, err) && fill_bank0(&m, err);
    take_banks(&m);
    ok = ok && emu_lower_kernel(&m, err);
    if (ok && m.checks & TURING_CHECK_RACE && !emu_race_open(&m))
        ok = turing_fail(err, "out of memory for the race checker");
    if (ok && m.checks & TURING_CHECK_SCHEDULE)
        ok = emu_schedule_open(&m, err);
    if (ok && m.checks & (TURING_CHECK_MEMORY | TURING_CHECK_CONVERGENCE))
        ok = emu_define_open(&m) || turing_fail(err, "out of memory for the check of memory");
    m.has_undefined = emu_memory_any_undefined(mem);
    if (ok && m.checks && launch->found)
        ok = (m.announced = calloc((size_t)m.n_ops * TURING_VIOLATION_COUNT + 1, sizeof *m.announced)) ||
             turing_fail(err, "out of memory");
    if (ok && launch->counters)
        ok = emu_count_open(&m) || turing_fail(err, "out of memory for the counters");
    if (ok && launch->dry && launch->time && !m.checks)
        ok = emu_dry_open(&m) || turing_fail(err, "out of memory");
    ok = ok && run_grid(&m, violations, err);
    emu_count_close(&m);
    emu_schedule_close(&m);
    emu_define_close(&m);
    emu_race_close(&m);
    emu_lower_free(&m);
    free(m.bank0);
    free(m.announced);
    free(m.grid_sync);
    if (m.grid_barrier)
        turing_memory_free(mem, m.grid_barrier, NULL);
    if (m.bank0_address)
        turing_memory_free(mem, m.bank0_address, NULL);
    pthread_mutex_destroy(&m.atomics);
    pthread_mutex_destroy(&m.finding);
    fesetenv(&callers);
    return ok;
}
