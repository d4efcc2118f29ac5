/* SPDX-License-Identifier: MIT */
/*
 * check_race.c - accesses that nothing orders, whatever order this run had.
 *
 * Happens-before, by vector clocks.  clock[w][v] is the latest moment of warp v
 * that warp w is known to come after.  A warp's own moment advances when it
 * arrives at a barrier; who waits there learns the moments of all who arrived.
 * An access is stamped with its warp's moment, and a later one by another warp
 * is ordered after it if that warp has learnt of the moment.
 *
 * Shared memory has a cell per granule: the last write, and the last read by
 * each warp.  Two accesses of which one writes, by different warps, unordered,
 * not both atomic, are a race.
 *
 * Global memory has a cell per granule with the last write and two reads (more
 * readers than two unordered ones are forgotten: a race may be missed, none is
 * invented).  Across blocks the rule is that of a semaphore:
 *   - MEMBAR of GPU scope or wider makes all that its warp comes after ready
 *     for publication; barriers hand on what is ready;
 *   - a strong store or an atomic publishes what is ready in its warp, at its
 *     address;
 *   - a strong load or an atomic makes its whole block come after all that was
 *     published at that address before.
 * Strong accesses and atomics never race with each other.
 *
 * Where the last write is an atomic, a block that has since read the same address so comes after
 * that write, at this address.
 *
 * Within a block the same holds of shared memory, with fences of any scope.  Shared memory has no
 * strong accesses, so two kinds of plain ones are taken for them: a store right behind a fence
 * publishes, and a load in a loop that stores nothing, which waits for it, learns.
 *
 * A plain load that its warp follows with an atomic at the same address only has a value to begin
 * with, as a loop of compare-and-swap has: that it meets atomics of others is no race.  Whether it
 * is such a load is known after the warp has gone on, so findings of that kind wait until the end.
 *
 * Lanes of one warp run apart as far as CUDA promises: what one stores another may only load after a __syncwarp (a NOP
 * where the warp is whole, else WARPSYNC), a barrier, or behind a fence.  A shuffle or a vote orders no memory.  Each
 * cell has the last lane that wrote and those that read since.  Within one store, two lanes must not write different
 * values to one address.
 */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

enum { WARPS = 32, SYNC_SLOTS = 1 << 12 };

typedef struct stamp {
    uint32_t block, moment;
    uint32_t code; /* instruction index */
    uint8_t warp, set, atomic;
} stamp_t;

/* What lanes of one warp did; times are of warp_t.issued, blocks one more than their index. */
typedef struct touch {
    uint32_t wrote, read; /* 0: not */
    uint32_t writer_block, reader_block;
    uint32_t readers, write_code, read_code;
    uint8_t writer, writer_warp, reader_warp;
    bool write_atomic, read_atomic;
} touch_t;

typedef struct cell {
    stamp_t write, read[2];
    touch_t lanes;
    uint32_t observer; /* block + 1 that read it by a strong load or an atomic since the last write */
} cell_t;

/* What is known of an instruction. */
enum { ROLE_WAITS = 1 /* a load in a loop without stores */, ROLE_TRIES = 2 /* a load before an atomic */ };

/* The last plain loads of a warp, to see whether an atomic follows. */
enum { RECENT = 4 };
typedef struct recent {
    uint32_t code, on;
    uint8_t space;
    uint64_t address[LANES];
} recent_t;

typedef struct publication {
    uint64_t address;
    uint32_t *moment; /* [block * n_warps + warp]; NULL: free slot */
} publication_t;

struct global_race {
    uint32_t granule;
    cell_t **cells; /* per allocation, made on first use */
    publication_t *published;
    bool overflow; /* too many flags: blocks are not compared any more */
    uint8_t *role; /* per instruction */
};

struct race {
    uint32_t base; /* first moment of this block               */
    uint32_t n_warps, n_cells;
    uint32_t clock[WARPS][WARPS];
    uint32_t arrived[16][WARPS];
    uint32_t ready[WARPS][WARPS]; /* made visible by MEMBAR; 0: nothing  */
    uint32_t arrived_ready[16][WARPS];
    uint32_t *known; /* other blocks' moments, or NULL           */
    stamp_t *write;  /* shared cells */
    touch_t *lanes;
    uint32_t synced[WARPS][LANES], lane_fenced[WARPS][LANES]; /* of warp_t.issued */
    uint32_t all_synced[WARPS], any_synced[WARPS];            /* all lanes of a warp; the last of them */
    uint32_t *read;                                           /* [cell * n_warps + warp]: moment          */
    uint32_t *read_code;
    uint32_t fenced[WARPS][WARPS]; /* made visible in the block by MEMBAR            */
    bool behind_fence[WARPS];      /* no store since                                 */
    uint32_t *published;           /* [cell * n_warps + warp], made on first use     */
    recent_t recent[WARPS][RECENT];
    uint32_t n_recent[WARPS];
};

/* ---- setting up --------------------------------------------------------------------- */

static uint32_t least_access(const turing_kernel_t *k, bool global)
{
    uint32_t least = 4;
    for (uint32_t i = 0; i < k->n_insns; i++) {
        const turing_insn_t *in = &k->insns[i];
        const bool is_shared = in->op == TURING_LDS || in->op == TURING_STS,
                   is_generic = in->op == TURING_LD || in->op == TURING_ST;
        const bool is_global = in->op == TURING_LDG || in->op == TURING_STG;
        if ((is_generic || (global ? is_global : is_shared)) && in->mem.bytes < least)
            least = in->mem.bytes;
    }
    return least;
}

static bool is_store(const turing_insn_t *in)
{
    switch (in->op) {
    case TURING_STG:
    case TURING_STS:
    case TURING_ST:
    case TURING_ATOM:
    case TURING_ATOM_CAS:
    case TURING_ATOMG:
    case TURING_ATOMG_CAS:
    case TURING_ATOMS:
    case TURING_ATOMS_CAS:
    case TURING_RED:
    case TURING_BAR: return true;
    default: return false;
    }
}

/* Is the load at `i` in a small loop that stores nothing? */
static bool waits(const turing_kernel_t *k, uint32_t i)
{
    enum { BEHIND = 16, BEFORE = 8 };
    for (uint32_t j = i + 1; j < k->n_insns && j <= i + BEHIND && !is_store(&k->insns[j]); j++) {
        const turing_insn_t *in = &k->insns[j];
        if (in->op != TURING_BRA || in->target < 0)
            continue;
        const uint64_t to = (uint64_t)in->target / TURING_INSN_BYTES;
        bool stores = to > i || to + BEFORE < i;
        for (uint64_t s = to; s < i && !stores; s++)
            stores = is_store(&k->insns[s]);
        if (!stores)
            return true;
    }
    return false;
}

void emu_race_forget(machine_t *m, uint64_t address, uint64_t bytes)
{
    alloc_t *allocs, *a = emu_memory_find(m->mem, address);
    const global_race_t *g = m->global_race;
    emu_memory_allocs(m->mem, &allocs);
    cell_t *cells = a ? g->cells[a - allocs] : NULL;
    if (cells)
        memset(cells + (address - a->base) / g->granule, 0, (bytes + g->granule - 1) / g->granule * sizeof *cells);
}

bool emu_race_forgives(const machine_t *m, uint32_t index)
{
    return m->global_race->role[index] & ROLE_TRIES;
}

bool emu_race_open(machine_t *m)
{
    alloc_t *allocs;
    const size_t n = emu_memory_allocs(m->mem, &allocs);
    global_race_t *g = m->global_race = calloc(1, sizeof *g);
    if (!g)
        return false;
    m->granule = least_access(m->kernel, false);
    g->granule = least_access(m->kernel, true);
    g->cells = calloc(n ? n : 1, sizeof *g->cells);
    g->published = calloc(SYNC_SLOTS, sizeof *g->published);
    g->role = calloc(m->n_ops ? m->n_ops : 1, 1);
    for (uint32_t i = 0; g->role && i < m->n_ops; i++)
        if ((m->ops[i].in->op == TURING_LDS || m->ops[i].in->op == TURING_LD) && waits(m->kernel, i))
            g->role[i] = ROLE_WAITS;
    return g->cells && g->published && g->role;
}

void emu_race_close(machine_t *m)
{
    global_race_t *g = m->global_race;
    if (!g)
        return;
    alloc_t *allocs;
    const size_t n = emu_memory_allocs(m->mem, &allocs);
    for (size_t i = 0; g->cells && i < n; i++)
        free(g->cells[i]);
    for (size_t i = 0; g->published && i < SYNC_SLOTS; i++)
        free(g->published[i].moment);
    free(g->cells);
    free(g->published);
    free(g->role);
    free(g);
    m->global_race = NULL;
}

race_t *emu_race_block(block_t *b)
{
    const machine_t *m = b->worker->m;
    race_t *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->n_warps = m->n_warps;
    r->n_cells = m->shared_bytes / m->granule + 1;
    r->write = calloc(r->n_cells, sizeof *r->write);
    r->lanes = calloc(r->n_cells, sizeof *r->lanes);
    r->read = calloc((size_t)r->n_cells * r->n_warps, sizeof *r->read);
    r->read_code = calloc((size_t)r->n_cells * r->n_warps, sizeof *r->read_code);
    if (r->write && r->lanes && r->read && r->read_code)
        return r;
    emu_race_block_free(r);
    return NULL;
}

void emu_race_block_free(race_t *r)
{
    if (!r)
        return;
    free(r->write);
    free(r->lanes);
    free(r->read);
    free(r->read_code);
    free(r->known);
    free(r->published);
    free(r);
}

/* Moments go on rising from block to block, so that old cells are in the past. */
void emu_race_start(block_t *b)
{
    race_t *r = b->race;
    for (uint32_t w = 0; w < r->n_warps; w++)
        if (r->clock[w][w] > r->base)
            r->base = r->clock[w][w];
    r->base += 1;
    for (uint32_t w = 0; w < r->n_warps; w++) {
        for (uint32_t v = 0; v < r->n_warps; v++)
            r->clock[w][v] = r->base - (v != w);
    }
    memset(r->arrived, 0, sizeof r->arrived);
    memset(r->synced, 0, sizeof r->synced);
    memset(r->lane_fenced, 0, sizeof r->lane_fenced);
    memset(r->all_synced, 0, sizeof r->all_synced);
    memset(r->any_synced, 0, sizeof r->any_synced);
    memset(r->fenced, 0, sizeof r->fenced);
    memset(r->behind_fence, 0, sizeof r->behind_fence);
    memset(r->n_recent, 0, sizeof r->n_recent);
    memset(r->ready, 0, sizeof r->ready);
    memset(r->arrived_ready, 0, sizeof r->arrived_ready);
    free(r->known);
    r->known = NULL;
}

/* ---- order within a block ---------------------------------------------------------------- */

static void join(uint32_t *to, const uint32_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (from[i] > to[i])
            to[i] = from[i];
}

void emu_race_sync(warp_t *w, uint32_t lanes)
{
    race_t *r = w->block->race;
    const uint32_t now = (uint32_t)w->issued;
    EACH
        if (lanes >> l & 1)
            r->synced[w->index][l] = now;
    r->any_synced[w->index] = now;
    if (!(w->alive & ~lanes))
        r->all_synced[w->index] = now;
}

void emu_race_arrive(warp_t *w, int barrier)
{
    race_t *r = w->block->race;
    join(r->arrived[barrier], r->clock[w->index], r->n_warps);
    join(r->arrived_ready[barrier], r->ready[w->index], r->n_warps);
    r->clock[w->index][w->index]++;
    emu_race_sync(w, ALL_LANES);
}

void emu_race_barrier(block_t *b, int barrier, uint32_t syncing)
{
    race_t *r = b->race;
    for (uint32_t w = 0; w < r->n_warps; w++)
        if (syncing >> w & 1) {
            join(r->clock[w], r->arrived[barrier], r->n_warps);
            join(r->ready[w], r->arrived_ready[barrier], r->n_warps);
        }
    memset(r->arrived[barrier], 0, sizeof r->arrived[barrier]);
    memset(r->arrived_ready[barrier], 0, sizeof r->arrived_ready[barrier]);
}

/* ---- order between blocks ------------------------------------------------------------------ */

static publication_t *publication(global_race_t *g, uint64_t address)
{
    uint64_t h = address * UINT64_C(0x9e3779b97f4a7c15) >> 52;
    for (size_t i = 0; i < SYNC_SLOTS; i++) {
        publication_t *p = &g->published[(h + i) % SYNC_SLOTS];
        if (!p->moment || p->address == address) {
            p->address = address;
            return p;
        }
    }
    return NULL;
}

void emu_race_fence(warp_t *w, uint32_t on, bool of_gpu)
{
    race_t *r = w->block->race;
    EACH
        if (on >> l & 1)
            r->lane_fenced[w->index][l] = (uint32_t)w->issued;
    if (of_gpu)
        memcpy(r->ready[w->index], r->clock[w->index], sizeof r->ready[0]);
    memcpy(r->fenced[w->index], r->clock[w->index], sizeof r->fenced[0]);
    r->behind_fence[w->index] = true;
    r->clock[w->index][w->index]++;
}

/* Order within the block through a word of shared memory. */
static void learn_shared(warp_t *w, uint32_t index)
{
    race_t *r = w->block->race;
    if (r->published)
        join(r->clock[w->index], r->published + (size_t)index * r->n_warps, r->n_warps);
}

static void publish_shared(warp_t *w, uint32_t index)
{
    race_t *r = w->block->race;
    if (!r->published)
        r->published = calloc((size_t)r->n_cells * r->n_warps, sizeof *r->published);
    if (r->published)
        join(r->published + (size_t)index * r->n_warps, r->fenced[w->index], r->n_warps);
}

static void publish(warp_t *w, uint64_t address)
{
    machine_t *m = w->block->worker->m;
    global_race_t *g = m->global_race;
    race_t *r = w->block->race;
    bool any = r->known;
    for (uint32_t v = 0; v < r->n_warps && !any; v++)
        any = r->ready[w->index][v];
    if (!any)
        return;
    publication_t *p = publication(g, address);
    const size_t n = (size_t)m->n_blocks * r->n_warps;
    if (p && !p->moment)
        p->moment = calloc(n, sizeof *p->moment);
    if (!p || !p->moment) {
        g->overflow = true;
        return;
    }
    if (r->known)
        join(p->moment, r->known, n);
    join(p->moment + w->block->linear * r->n_warps, r->ready[w->index], r->n_warps);
}

static void learn(warp_t *w, uint64_t address)
{
    machine_t *m = w->block->worker->m;
    race_t *r = w->block->race;
    const publication_t *p = publication(m->global_race, address);
    if (!p || !p->moment)
        return;
    const size_t n = (size_t)m->n_blocks * r->n_warps;
    if (!r->known)
        r->known = calloc(n, sizeof *r->known);
    if (r->known)
        join(r->known, p->moment, n);
    else
        m->global_race->overflow = true;
    join(r->clock[w->index], p->moment + w->block->linear * r->n_warps, r->n_warps);
}

void emu_race_strong(warp_t *w, uint32_t on, access_t kind, const uint64_t address[LANES])
{
    for (int l = 0; l < LANES; l++) {
        if (!(on >> l & 1))
            continue;
        if (kind != ACCESS_WRITE)
            learn(w, address[l]);
        if (kind != ACCESS_READ)
            publish(w, address[l]);
    }
}

static bool ordered(const warp_t *w, const stamp_t *s)
{
    const block_t *b = w->block;
    const race_t *r = b->race;
    if (!s->set)
        return true;
    if (s->block == b->linear)
        return s->warp == w->index || r->clock[w->index][s->warp] >= s->moment;
    if (b->worker->m->global_race->overflow)
        return true;
    return r->known && r->known[(size_t)s->block * r->n_warps + s->warp] >= s->moment;
}

/* ---- accesses --------------------------------------------------------------------------------- */

/* Of a store that is about to be carried out. */
static bool stores_what_is_there(const warp_t *w, const op_t *o, site_t site)
{
    const machine_t *m = w->block->worker->m;
    const uint8_t *there = NULL;
    uint32_t value[4] = {0};
    if (site.space == TURING_SPACE_SHARED && site.address + site.bytes <= m->shared_bytes)
        there = w->block->shared + site.address;
    else if (site.space == TURING_SPACE_GLOBAL) {
        const alloc_t *a = emu_memory_find(m->mem, site.address);
        if (a && site.bytes <= a->size - (site.address - a->base))
            there = a->host + (site.address - a->base);
    }
    for (uint32_t i = 0; i < (site.bytes + 3) / 4; i++)
        value[i] = w->r[o->src[0] + i][site.lane];
    return there && !memcmp(there, value, site.bytes);
}

/* The site of an access that meets another one. */
static site_t meets(const warp_t *w, const op_t *o, site_t site, access_t kind, const stamp_t *other, bool other_wrote)
{
    const machine_t *m = w->block->worker->m;
    site.has_other = true;
    site.other_code = m->ops[other->code].in->addr;
    site.other_warp = other->warp;
    site.other_block = other->block;
    /* a plain load and an atomic */
    if (kind == ACCESS_READ && other->atomic)
        site.forgiven_by = (uint32_t)(o - m->ops) + 1;
    else if (kind == ACCESS_ATOMIC && !other_wrote && !other->atomic)
        site.forgiven_by = other->code + 1;
    return site;
}

static turing_violation_kind_t race_kind(const warp_t *w, const op_t *o, site_t site, access_t kind, bool other_wrote)
{
    const bool same = kind == ACCESS_WRITE && other_wrote && stores_what_is_there(w, o, site) &&
                      !(w->block->worker->m->checks & TURING_CHECK_SAME_VALUE);
    return same ? TURING_SAME_VALUE : TURING_RACE;
}

static void race(warp_t *w, const op_t *o, site_t site, access_t kind, const stamp_t *other, bool other_wrote)
{
    const machine_t *m = w->block->worker->m;
    char text[TURING_TEXT_MAX];
    site = meets(w, o, site, kind, other, other_wrote);
    turing_disasm(m->ops[other->code].in, text);
    const turing_violation_kind_t found = race_kind(w, o, site, kind, other_wrote);
    if (other->block == w->block->linear)
        emu_report(w, o, found, site, "%s what warp %u %s at 0x%x (%.100s), with no barrier between",
                   kind == ACCESS_READ ? "reads" : "writes", other->warp, other_wrote ? "writes" : "reads",
                   site.other_code, text);
    else
        emu_report(w, o, found, site, "%s what block %u %s at 0x%x (%.100s), and nothing orders the blocks",
                   kind == ACCESS_READ ? "reads" : "writes", other->block, other_wrote ? "writes" : "reads",
                   site.other_code, text);
}

/* ---- lanes of one warp ---------------------------------------------------------------------- */

static bool apart(const warp_t *w, uint32_t a, uint32_t b, uint32_t since)
{
    const race_t *r = w->block->race;
    if (r->all_synced[w->index] > since)
        return false;
    return !(r->synced[w->index][a] > since && r->synced[w->index][b] > since) && r->lane_fenced[w->index][a] <= since;
}

static void race_within(warp_t *w, const op_t *o, site_t site, access_t kind, const stamp_t *other, uint32_t lane,
                        bool other_wrote)
{
    const machine_t *m = w->block->worker->m;
    char text[TURING_TEXT_MAX];
    site = meets(w, o, site, kind, other, other_wrote);
    turing_disasm(m->ops[other->code].in, text);
    emu_report(w, o, race_kind(w, o, site, kind, other_wrote), site,
               "%s what lane %u of the same warp %s at 0x%x (%.100s), with no __syncwarp between",
               kind == ACCESS_READ ? "reads" : "writes", lane, other_wrote ? "writes" : "reads", site.other_code, text);
}

static void lanes_cell(warp_t *w, const op_t *o, const site_t *site, access_t kind, bool atomic, touch_t *t)
{
    const uint32_t now = (uint32_t)w->issued, block = (uint32_t)w->block->linear + 1;
    const uint32_t code = (uint32_t)(o - w->block->worker->m->ops);
    const bool matrix = o->in->op == TURING_LDSM; /* hands what a lane's row holds to other lanes */
    const uint32_t own = matrix ? 0 : 1u << site->lane;
    if (t->wrote && t->writer_block == block && t->writer_warp == w->index && t->wrote != now &&
        (matrix || t->writer != site->lane) && !(atomic && t->write_atomic) &&
        apart(w, t->writer, site->lane, t->wrote)) {
        const stamp_t s = {(uint32_t)w->block->linear, 0, t->write_code, (uint8_t)w->index, 1, t->write_atomic};
        race_within(w, o, *site, kind, &s, t->writer, true);
    }
    const bool is_reader = t->read && t->reader_block == block && t->reader_warp == w->index;
    if (kind == ACCESS_READ) {
        const race_t *r = w->block->race;
        uint32_t still = 0; /* readers that nothing has ordered since */
        if (is_reader && (t->read == now || r->any_synced[w->index] <= t->read))
            still = t->readers;
        else if (is_reader && r->all_synced[w->index] <= t->read)
            EACH
                still |= (uint32_t)(r->synced[w->index][l] <= t->read) << l & t->readers;
        t->readers = still | (matrix ? ALL_LANES : own);
        t->read = now;
        t->read_code = code;
        t->reader_block = block;
        t->reader_warp = (uint8_t)w->index;
        t->read_atomic = atomic;
        return;
    }
    for (uint32_t k = 0; is_reader && t->read != now && k < LANES; k++)
        if ((t->readers & ~own) >> k & 1 && !(atomic && t->read_atomic) && apart(w, k, site->lane, t->read)) {
            const stamp_t s = {(uint32_t)w->block->linear, 0, t->read_code, (uint8_t)w->index, 1, t->read_atomic};
            race_within(w, o, *site, kind, &s, k, false);
            break;
        }
    t->wrote = now;
    t->write_code = code;
    t->writer = (uint8_t)site->lane;
    t->writer_block = block;
    t->writer_warp = (uint8_t)w->index;
    t->write_atomic = atomic;
    t->readers = 0;
}

/* ---- cells ------------------------------------------------------------------------------------ */

static void shared_cell(warp_t *w, const op_t *o, const site_t *site, access_t kind, bool atomic, uint32_t index)
{
    race_t *r = w->block->race;
    const uint32_t code = (uint32_t)(o - w->block->worker->m->ops), self = w->index;
    const uint32_t *clock = r->clock[self];
    stamp_t *last = &r->write[index];
    lanes_cell(w, o, site, kind, atomic, &r->lanes[index]);
    if (last->set && last->warp != self && clock[last->warp] < last->moment && !(atomic && last->atomic)) {
        last->block = (uint32_t)w->block->linear;
        race(w, o, *site, kind, last, true);
    }
    uint32_t *read = r->read + (size_t)index * r->n_warps, *read_code = r->read_code + (size_t)index * r->n_warps;
    if (kind != ACCESS_WRITE && !atomic) {
        read[self] = clock[self];
        read_code[self] = code;
    }
    if (kind == ACCESS_READ)
        return;
    for (uint32_t v = 0; v < r->n_warps; v++)
        if (read[v] > clock[v] && v != self) {
            stamp_t s = {(uint32_t)w->block->linear, read[v], read_code[v], (uint8_t)v, 1, 0};
            race(w, o, *site, kind, &s, false);
            break;
        }
    *last = (stamp_t){(uint32_t)w->block->linear, clock[self], code, (uint8_t)self, 1, atomic};
}

static void global_cell(warp_t *w, const op_t *o, const site_t *site, access_t kind, bool atomic, cell_t *c)
{
    const uint32_t moment = w->block->race->clock[w->index][w->index];
    const stamp_t now = {(uint32_t)w->block->linear, moment, (uint32_t)(o - w->block->worker->m->ops),
                         (uint8_t)w->index,          1,      atomic};
    lanes_cell(w, o, site, kind, atomic, &c->lanes);
    const bool observed = c->write.atomic && c->observer == now.block + 1;
    if (!(atomic && c->write.atomic) && !observed && !ordered(w, &c->write))
        race(w, o, *site, kind, &c->write, true);
    if (kind == ACCESS_READ) {
        if (atomic && c->write.atomic)
            c->observer = now.block + 1;
        int at = 1;
        for (int i = 1; i >= 0; i--)
            if (ordered(w, &c->read[i]) || (c->read[i].block == now.block && c->read[i].warp == now.warp))
                at = i;
        c->read[at] = now;
        return;
    }
    for (int i = 0; i < 2; i++)
        if (!(atomic && c->read[i].atomic) && !ordered(w, &c->read[i])) {
            race(w, o, *site, kind, &c->read[i], false);
            break;
        }
    c->write = now;
    c->observer = 0;
}

static void same_address(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, const uint64_t address[LANES],
                         uint32_t bytes)
{
    const row_t *v = (const row_t *)(w->r + o->src[0]);
    const uint32_t mask = bytes == 1 ? 0xff : bytes == 2 ? 0xffff : ~0u;
    for (uint32_t l = 1; l < LANES; l++)
        for (uint32_t k = 0; k < l && on >> l & 1; k++) {
            if (!(on >> k & 1) || address[k] != address[l])
                continue;
            bool differ = (v[0][k] ^ v[0][l]) & mask;
            for (uint32_t i = 1; i < bytes / 4; i++)
                differ |= v[i][k] != v[i][l];
            if (differ)
                emu_report(w, o, TURING_LANE_CONFLICT,
                           (site_t){.space = space, .address = address[l], .lane = l, .bytes = bytes},
                           "lanes %u and %u store different values to one address", k, l);
        }
}

static bool same_word(uint64_t a, uint64_t b)
{
    return a / 8 == b / 8;
}

/* Remembers a plain load, or finds those that an atomic follows. */
static void follow(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                   const uint64_t address[LANES])
{
    race_t *r = w->block->race;
    if (kind == ACCESS_READ) {
        recent_t *now = &r->recent[w->index][r->n_recent[w->index]++ % RECENT];
        now->code = (uint32_t)(o - w->block->worker->m->ops);
        now->on = on;
        now->space = (uint8_t)space;
        memcpy(now->address, address, sizeof now->address);
        return;
    }
    for (uint32_t i = 0; i < RECENT && i < r->n_recent[w->index]; i++) {
        const recent_t *load = &r->recent[w->index][i];
        for (int l = 0; l < LANES && load->space == space; l++)
            if (load->on & on & 1u << l && same_word(load->address[l], address[l])) {
                w->block->worker->m->global_race->role[load->code] |= ROLE_TRIES;
                break;
            }
    }
}

static void shared_access(warp_t *w, const op_t *o, const site_t *site, access_t kind, bool atomic)
{
    race_t *r = w->block->race;
    const int shift = __builtin_ctz(w->block->worker->m->granule);
    for (uint64_t at = site->address >> shift; at <= (site->address + site->bytes - 1) >> shift; at++) {
        if (at >= r->n_cells)
            return;
        if (atomic && kind != ACCESS_WRITE)
            learn_shared(w, (uint32_t)at);
        shared_cell(w, o, site, kind, atomic, (uint32_t)at);
        if (atomic && kind != ACCESS_READ)
            publish_shared(w, (uint32_t)at);
    }
}

void emu_race_access(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                     const uint64_t address[LANES], uint32_t bytes)
{
    machine_t *m = w->block->worker->m;
    global_race_t *g = m->global_race;
    const turing_insn_t *in = o->in;
    const bool strong = (in->op == TURING_LDG || in->op == TURING_STG || in->op == TURING_LD || in->op == TURING_ST) &&
                        in->m.order == TURING_ORDER_STRONG;
    race_t *r = w->block->race;
    const bool near = space == TURING_SPACE_SHARED;
    const bool behind_fence = near && kind == ACCESS_WRITE && r->behind_fence[w->index];
    const bool waiting = near && kind == ACCESS_READ && g->role[o - m->ops] & ROLE_WAITS;
    const bool atomic = kind == ACCESS_ATOMIC || strong || behind_fence || waiting;
    if (kind != ACCESS_READ)
        r->behind_fence[w->index] = false;
    if (kind == ACCESS_ATOMIC || (kind == ACCESS_READ && !atomic))
        follow(w, o, on, space, kind, address);
    if (kind == ACCESS_WRITE)
        same_address(w, o, on, space, address, bytes);
    alloc_t *allocs, *a = NULL;
    emu_memory_allocs(m->mem, &allocs);
    const int shift = __builtin_ctz(g->granule);
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(on >> l & 1))
            continue;
        const site_t site = {.space = space, .address = address[l], .lane = l, .bytes = bytes};
        if (near) {
            shared_access(w, o, &site, kind, atomic);
            continue;
        }
        if (!a || address[l] < a->base || address[l] - a->base >= a->size)
            a = emu_memory_find(m->mem, address[l]);
        if (!a || bytes > a->size - (address[l] - a->base))
            continue;
        cell_t **cells = &g->cells[a - allocs];
        if (!*cells)
            *cells = calloc(a->size / g->granule + 2, sizeof **cells);
        const uint64_t first = address[l] - a->base;
        for (uint64_t at = first >> shift; *cells && at <= (first + bytes - 1) >> shift; at++)
            global_cell(w, o, &site, kind, atomic, *cells + at);
    }
}
