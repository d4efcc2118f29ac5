/* SPDX-License-Identifier: MIT */
/*
 * time_memory.c - the timing model's caches and DRAM.
 *
 * A slice of the L2, a DRAM channel and the port of a multiprocessor each
 * serve one request after another, at a rate; what lies between them is a
 * latency.  Lines are spread over slices, channels and sets by a hash.  Time is
 * in cycles of 1590 MHz.  Sources are those of docs/emulator.md.
 */
#include "time_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 128,
    L1_WAYS = 4,        /* assumed                                          */
    L2_BYTES = 4 << 20, /* JIA table 3.1                                    */
    L2_WAYS = 16,       /* assumed                                          */
    L2_SETS = L2_BYTES / LINE_BYTES / L2_WAYS,
    L2_SLICES = 16,    /* assumed                                          */
    DRAM_CHANNELS = 16 /* 256 bits of GDDR6, 16 each                       */
};
typedef struct line {
    double ready;         /* cycle in which the last sector on its way comes  */
    uint8_t valid, dirty; /* sectors                                          */
} line_t;

typedef struct cache {
    uint32_t sets, ways; /* powers of two                                    */
    uint64_t accesses;
    uint64_t *number, *used; /* of each line: address / 128; when, in accesses   */
    line_t *line;
} cache_t;

struct time_memory {
    const turing_clock_t *c;
    cache_t *l1[TURING_T4_SMS], *l2; /* l2 is the device memory's: it outlives the launch */
    double slice[L2_SLICES], channel[DRAM_CHANNELS], port[TURING_T4_SMS]; /* cycles in which they are free */
};

/* One block, so that free() releases it. */
static cache_t *create(uint32_t sets, uint32_t ways)
{
    const size_t lines = (size_t)sets * ways;
    cache_t *c = calloc(1, sizeof *c + lines * (2 * sizeof(uint64_t) + sizeof(line_t)));
    if (c) {
        c->sets = sets;
        c->ways = ways;
        c->number = (uint64_t *)(c + 1);
        c->used = c->number + lines;
        c->line = (line_t *)(c->used + lines);
    }
    return c;
}

void emu_time_memory_close(time_memory_t *m)
{
    for (uint32_t i = 0; m && i < TURING_T4_SMS; i++)
        free(m->l1[i]);
    free(m);
}

time_memory_t *emu_time_memory_open(turing_memory_t *mem, const turing_clock_t *clock, uint32_t l1_bytes)
{
    time_memory_t *m = calloc(1, sizeof *m);
    void **l2 = emu_memory_l2(mem);
    if (!*l2)
        *l2 = create(L2_SETS, L2_WAYS);
    bool ok = m && *l2;
    for (uint32_t i = 0; ok && i < TURING_T4_SMS; i++)
        ok = (m->l1[i] = create(l1_bytes / LINE_BYTES / L1_WAYS, L1_WAYS));
    if (!ok) {
        emu_time_memory_close(m);
        return NULL;
    }
    m->c = clock;
    m->l2 = *l2;
    for (uint32_t i = 0; i < L2_SETS * L2_WAYS; i++) /* the clock starts again */
        m->l2->line[i].ready = 0;
    return m;
}

static uint64_t hash(uint64_t x)
{
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* A line that lost its place. */
typedef struct evicted {
    uint64_t number;
    uint8_t dirty;
} evicted_t;

/* The place of a line, whose number has that hash, made if need be; `evicted` gets what lay there. */
static line_t *find(cache_t *c, uint64_t number, uint64_t hashed, evicted_t *evicted)
{
    const size_t first = (hashed & (c->sets - 1)) * c->ways;
    uint64_t *numbers = c->number + first, *used = c->used + first;
    uint32_t way = 0;
    while (way < c->ways && numbers[way] != number)
        way++;
    if (way == c->ways) { /* the one that was not used for longest */
        way = 0;
        for (uint32_t i = 1; i < c->ways; i++)
            if (used[i] < used[way])
                way = i;
        *evicted = (evicted_t){numbers[way], c->line[first + way].dirty};
        numbers[way] = number;
        c->line[first + way] = (line_t){0};
    }
    used[way] = ++c->accesses;
    return &c->line[first + way];
}

/* A server that is free at `*free` takes up work of `cycles` at `t` or later; returns when it is done. */
static double serve(double *free_at, double t, double cycles)
{
    return *free_at = later(*free_at, t) + cycles;
}

static double dram(time_memory_t *m, uint64_t hashed, uint32_t sectors, double cost, double t, turing_time_t *sum)
{
    const double share = (emu_time_sectors(sectors) * SECTOR_BYTES + m->c->dram_open) / (LINE_BYTES + m->c->dram_open);
    const double cycles = share * LINE_BYTES * cost / m->c->dram_rate;
    sum->dram += cycles;
    return serve(&m->channel[(hashed >> 40) % DRAM_CHANNELS], t, cycles * DRAM_CHANNELS);
}

/* Returns when a slice has the sectors, or has taken them. */
static double l2(time_memory_t *m, uint64_t number, uint64_t hashed, uint32_t sectors, uint32_t part,
                 request_kind_t kind, double t, turing_time_t *sum)
{
    double passes = emu_time_sectors(sectors);
    if (kind == REQUEST_STORE)
        passes += emu_time_sectors(part) * m->c->l2_part;
    const double served =
        serve(&m->slice[(hashed >> 48) % L2_SLICES], t, passes * SECTOR_BYTES * L2_SLICES / m->c->l2_rate);
    evicted_t evicted = {0};
    line_t *l = find(m->l2, number, hashed, &evicted);
    if (evicted.dirty) {
        dram(m, hash(evicted.number), evicted.dirty, m->c->dram_written, served, sum);
        sum->dram_written += (uint64_t)emu_time_sectors(evicted.dirty) * SECTOR_BYTES;
    }
    const uint32_t missing = sectors & ~l->valid;
    sum->l2_sectors += emu_time_sectors(sectors);
    l->valid |= (uint8_t)sectors;
    if (kind == REQUEST_STORE || kind == REQUEST_ATOMIC)
        l->dirty |= (uint8_t)sectors;
    if (kind == REQUEST_STORE) {
        if (part & missing && m->c->dram_fill > 0)
            dram(m, hashed, part & missing, m->c->dram_fill, served, sum);
        sum->l2_hits += emu_time_sectors(sectors);
        return served;
    }
    sum->l2_hits += emu_time_sectors(sectors & ~missing);
    if (missing) {
        l->ready = later(l->ready, dram(m, hashed, missing, 1, served, sum) + m->c->dram_latency);
        sum->dram_read += (uint64_t)emu_time_sectors(missing) * SECTOR_BYTES;
    }
    return later(served, l->ready);
}

double emu_time_access(time_memory_t *m, uint32_t sm, const request_t *r, turing_time_t *sum)
{
    double answer = r->at + m->c->l1_hit, from_l2 = 0;
    uint32_t fetched = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const uint64_t number = r->line[i] >> LINE_SHIFT, hashed = hash(number);
        uint32_t sectors = r->line[i] & ALL_SECTORS;
        evicted_t evicted;
        line_t *l1 = r->cached ? find(m->l1[sm], number, hashed, &evicted) : NULL;
        if (l1) {
            answer = later(answer, l1->ready);
            sectors &= ~(uint32_t)l1->valid;
            l1->valid |= (uint8_t)sectors;
        }
        if (!sectors)
            continue;
        const uint32_t part = r->line[i] >> SECTORS & ALL_SECTORS;
        const double ready = l2(m, number, hashed, sectors, part, r->kind, r->at + m->c->l2_there, sum) +
                             (m->c->l2_hit - m->c->l2_there);
        fetched += emu_time_sectors(sectors);
        from_l2 = later(from_l2, ready);
        if (l1)
            l1->ready = later(l1->ready, ready);
    }
    if (!fetched)
        return answer;
    if (r->kind == REQUEST_STORE || r->kind == REQUEST_PREFETCH)
        return from_l2;
    const double transfer = (double)fetched * SECTOR_BYTES / m->c->port;
    return later(answer, serve(&m->port[sm], from_l2 - transfer, transfer));
}
