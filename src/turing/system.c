/* SPDX-License-Identifier: MIT */
/*
 * system.c - the functions of the device's runtime that kernels call: see system.h.
 *
 * The heap of malloc is one allocation of the device's memory, with a list of the blocks
 * that were given out.  Where written bytes are tracked, the rest of it is marked, so that
 * an access outside of a block is found.
 */
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYSTEM_STEP = 16, FIRST_ARGUMENT = 4, TEXT_LIMIT = 4096, HEAP_ALIGNMENT = 16 };
#define SYSTEM_BASE UINT64_C(0x0000700000000000)

typedef bool system_fn(warp_t *w, const op_t *o, uint32_t lane); /* false: the lane waits */
static system_fn call_vprintf, call_assertfail, call_malloc, call_free, call_grid_handle, call_grid_sync;

static const struct {
    const char *name;
    system_fn *fn;
} functions[] = {{"vprintf", call_vprintf},
                 {"__assertfail", call_assertfail},
                 {"malloc", call_malloc},
                 {"free", call_free},
                 {"__cuda_syscall_CGS_get_intrinsic_handle", call_grid_handle},
                 {"__cuda_syscall_CGS_sync", call_grid_sync}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

bool emu_system_address(const char *name, uint64_t *address)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (!strcmp(functions[i].name, name)) {
            *address = SYSTEM_BASE + (uint64_t)i * SYSTEM_STEP;
            return true;
        }
    return false;
}

bool emu_system_is(uint64_t address)
{
    return address >= SYSTEM_BASE && address < SYSTEM_BASE + FUNCTIONS * SYSTEM_STEP && address % SYSTEM_STEP == 0;
}

uint32_t emu_system_call(warp_t *w, const op_t *o, uint32_t on, uint64_t address)
{
    system_fn *fn = functions[(address - SYSTEM_BASE) / SYSTEM_STEP].fn;
    uint32_t done = 0;
    for (uint32_t l = 0; l < LANES && w->stop != STOP_FAULT; l++)
        if (on >> l & 1 && fn(w, o, l))
            done |= 1u << l;
    return done;
}

/* ---- arguments and memory ------------------------------------------------------------- */

static uint32_t word(const warp_t *w, uint32_t lane, uint32_t reg)
{
    return w->r[reg][lane];
}

static uint64_t pair(const warp_t *w, uint32_t lane, uint32_t reg)
{
    return (uint64_t)w->r[reg + 1][lane] << 32 | w->r[reg][lane];
}

/* Host storage of a byte at a generic address, and how many bytes follow it; NULL: there is none. */
static const uint8_t *bytes_at(warp_t *w, uint32_t lane, uint64_t address, uint64_t *left)
{
    const machine_t *m = w->block->worker->m;
    if (address - SHARED_WINDOW < m->shared_bytes) {
        *left = m->shared_bytes - (address - SHARED_WINDOW);
        return w->block->shared + (address - SHARED_WINDOW);
    }
    if (address - LOCAL_WINDOW < m->local_bytes) {
        *left = m->local_bytes - (address - LOCAL_WINDOW);
        emu_local_reach(w, (uint32_t)(address - LOCAL_WINDOW));
        return w->local + (uint64_t)lane * m->local_bytes + (address - LOCAL_WINDOW);
    }
    const alloc_t *a = emu_memory_find(m->mem, address);
    if (!a)
        return NULL;
    *left = a->size - (address - a->base);
    return a->host + (address - a->base);
}

/* Copies a string of the device, at most `size` - 1 bytes of it. */
static void text_at(warp_t *w, uint32_t lane, uint64_t address, char *text, size_t size)
{
    uint64_t left;
    const uint8_t *p = bytes_at(w, lane, address, &left);
    size_t n = 0;
    if (!p) {
        snprintf(text, size, address ? "(no text at 0x%llx)" : "(null)", (unsigned long long)address);
        return;
    }
    for (; n + 1 < size && n < left && p[n]; n++)
        text[n] = (char)p[n];
    text[n] = 0;
}

static void print(warp_t *w, const char *text, size_t bytes)
{
    const turing_launch_t *l = w->block->worker->m->launch;
    if (l->print)
        l->print(l->user, text, bytes);
}

/* ---- vprintf(format, arguments) --------------------------------------------------------- */

typedef struct output {
    char text[TEXT_LIMIT];
    size_t n;
} output_t;

static void append(output_t *out, int written)
{
    if (written > 0)
        out->n = out->n + (size_t)written < sizeof out->text ? out->n + (size_t)written : sizeof out->text - 1;
}

/* The next argument: aligned to its size, which is 4 or 8. */
static uint64_t next_argument(warp_t *w, uint32_t lane, uint64_t *at, unsigned bytes)
{
    uint64_t left = 0, value = 0;
    *at = (*at + bytes - 1) / bytes * bytes;
    const uint8_t *p = bytes_at(w, lane, *at, &left);
    if (p && left >= bytes)
        memcpy(&value, p, bytes);
    *at += bytes;
    return value;
}

/* One conversion, from % to its letter; returns what follows it. */
static const char *convert(warp_t *w, uint32_t lane, const char *format, uint64_t *at, output_t *out)
{
    char spec[64] = "%", text[TEXT_LIMIT];
    size_t n = 1;
    bool wide = false;
    const char *f = format + 1;
    for (; *f && strchr("-+ #0123456789.*hlLqjzt", *f); f++)
        if (*f == '*')
            n += (size_t)snprintf(spec + n, 16, "%d", (int)next_argument(w, lane, at, 4));
        else if (strchr("hlLqjzt", *f))
            wide = wide || *f != 'h';
        else if (n < 30)
            spec[n++] = *f;
        else
            break;
    if (!*f)
        return f;
    char *to = out->text + out->n;
    const size_t room = sizeof out->text - out->n;
    spec[n] = 0;
    switch (*f) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
        uint64_t v = next_argument(w, lane, at, wide ? 8 : 4);
        const bool is_signed = *f == 'd' || *f == 'i';
        snprintf(spec + n, sizeof spec - n, "ll%c", *f);
        if (is_signed)
            append(out, snprintf(to, room, spec, wide ? (long long)v : (long long)(int32_t)v));
        else
            append(out, snprintf(to, room, spec, (unsigned long long)v));
        break;
    }
    case 'c':
        strcpy(spec + n, "c");
        append(out, snprintf(to, room, spec, (int)next_argument(w, lane, at, 4)));
        break;
    case 's':
        strcpy(spec + n, "s");
        text_at(w, lane, next_argument(w, lane, at, 8), text, sizeof text);
        append(out, snprintf(to, room, spec, text));
        break;
    case 'p': append(out, snprintf(to, room, "0x%llx", (unsigned long long)next_argument(w, lane, at, 8))); break;
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
        const uint64_t bits = next_argument(w, lane, at, 8);
        double v;
        memcpy(&v, &bits, 8);
        spec[n] = *f, spec[n + 1] = 0;
        append(out, snprintf(to, room, spec, v));
        break;
    }
    default: append(out, snprintf(to, room, "%%%c", *f)); break;
    }
    return f + 1;
}

static bool call_vprintf(warp_t *w, const op_t *o, uint32_t lane)
{
    (void)o;
    char format[TEXT_LIMIT];
    output_t out = {.n = 0};
    uint64_t at = pair(w, lane, FIRST_ARGUMENT + 2);
    text_at(w, lane, pair(w, lane, FIRST_ARGUMENT), format, sizeof format);
    for (const char *f = format; *f && out.n + 1 < sizeof out.text;)
        if (*f == '%' && f[1] == '%') {
            out.text[out.n++] = '%';
            f += 2;
        } else if (*f == '%')
            f = convert(w, lane, f, &at, &out);
        else
            out.text[out.n++] = *f++;
    print(w, out.text, out.n);
    w->r[FIRST_ARGUMENT][lane] = (uint32_t)out.n;
    return true;
}

/* ---- __assertfail(message, file, line, function, size of a character) ---------------------- */

static bool call_assertfail(warp_t *w, const op_t *o, uint32_t lane)
{
    char message[256], file[256], function[256], text[1024];
    const machine_t *m = w->block->worker->m;
    const uint32_t *dim = m->launch->block, *id = w->block->id, thread = w->index * LANES + lane;
    text_at(w, lane, pair(w, lane, FIRST_ARGUMENT), message, sizeof message);
    text_at(w, lane, pair(w, lane, FIRST_ARGUMENT + 2), file, sizeof file);
    text_at(w, lane, pair(w, lane, FIRST_ARGUMENT + 6), function, sizeof function);
    const uint32_t line = word(w, lane, FIRST_ARGUMENT + 4);
    int n = snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                     file, line, function, id[0], id[1], id[2], thread % dim[0], thread / dim[0] % dim[1],
                     thread / dim[0] / dim[1], message);
    print(w, text, n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    emu_fault_as(w, o, TURING_FAILED_ASSERT, "lane %u: assertion `%.100s` of %.80s:%u failed", lane, message, file,
                 line);
    return true;
}

/* ---- malloc and free ------------------------------------------------------------------------ */

typedef struct chunk {
    uint64_t offset, bytes;
} chunk_t;

struct heap {
    uint64_t base, bytes;
    chunk_t *chunk; /* given out, in the order of offsets */
    size_t n, capacity;
};

bool emu_heap_open(turing_memory_t *mem)
{
    heap_t **at = emu_memory_heap(mem);
    if (*at)
        return true;
    heap_t *h = calloc(1, sizeof *h);
    if (!h)
        return false;
    h->bytes = turing_memory_heap_bytes(mem);
    h->base = turing_memory_alloc(mem, h->bytes);
    alloc_t *a = h->base ? emu_memory_find(mem, h->base) : NULL;
    if (!a) {
        free(h);
        return false;
    }
    if (a->valid)
        memset(a->valid, BYTE_NOT_GIVEN, a->size);
    *at = h;
    return true;
}

void emu_heap_free(heap_t *h)
{
    if (h)
        free(h->chunk);
    free(h);
}

static void mark_chunk(const turing_memory_t *mem, const heap_t *h, chunk_t c, uint8_t state)
{
    alloc_t *a = emu_memory_find(mem, h->base);
    if (a && a->valid)
        memset(a->valid + c.offset, state, c.bytes);
}

/* First fit, with a gap in front of each chunk. 0: there is no room. */
static uint64_t take(const turing_memory_t *mem, heap_t *h, uint64_t bytes)
{
    uint64_t offset = HEAP_ALIGNMENT;
    size_t i = 0;
    if (!bytes || bytes > h->bytes)
        return 0;
    for (; i < h->n && offset + bytes + HEAP_ALIGNMENT > h->chunk[i].offset; i++)
        offset = (h->chunk[i].offset + h->chunk[i].bytes + 2 * HEAP_ALIGNMENT - 1) / HEAP_ALIGNMENT * HEAP_ALIGNMENT;
    if (offset + bytes > h->bytes)
        return 0;
    if (h->n == h->capacity) {
        const size_t capacity = h->capacity ? 2 * h->capacity : 64;
        chunk_t *grown = realloc(h->chunk, capacity * sizeof *grown);
        if (!grown)
            return 0;
        h->chunk = grown;
        h->capacity = capacity;
    }
    memmove(h->chunk + i + 1, h->chunk + i, (h->n - i) * sizeof *h->chunk);
    h->n++;
    h->chunk[i] = (chunk_t){offset, bytes};
    mark_chunk(mem, h, h->chunk[i], BYTE_NOT_WRITTEN);
    return h->base + offset;
}

static bool call_malloc(warp_t *w, const op_t *o, uint32_t lane)
{
    (void)o;
    machine_t *m = w->block->worker->m;
    const uint64_t bytes = pair(w, lane, FIRST_ARGUMENT), at = take(m->mem, *emu_memory_heap(m->mem), bytes);
    if (at && m->global_race)
        emu_race_forget(m, at, bytes); /* who had it before */
    w->r[FIRST_ARGUMENT][lane] = (uint32_t)at;
    w->r[FIRST_ARGUMENT + 1][lane] = (uint32_t)(at >> 32);
    return true;
}

static bool call_free(warp_t *w, const op_t *o, uint32_t lane)
{
    turing_memory_t *mem = w->block->worker->m->mem;
    heap_t *h = *emu_memory_heap(mem);
    const uint64_t at = pair(w, lane, FIRST_ARGUMENT);
    if (!at)
        return true;
    for (size_t i = 0; i < h->n; i++)
        if (h->base + h->chunk[i].offset == at) {
            mark_chunk(mem, h, h->chunk[i], BYTE_NOT_GIVEN);
            memmove(h->chunk + i, h->chunk + i + 1, (h->n - i - 1) * sizeof *h->chunk);
            h->n--;
            return true;
        }
    emu_fault_as(w, o, TURING_FAILED_ADDRESS,
                 "lane %u: free of 0x%llx, which malloc did not give or which is free already", lane,
                 (unsigned long long)at);
    return true;
}

/* ---- the barrier of a grid, which is cooperative_groups' where code is linked with libcudadevrt ---- */

enum { NOT_COOPERATIVE = 1 /* cudaErrorInvalidValue */ };

struct grid_sync {
    uint64_t threads, arrived; /* that have not ended; at the barrier in this round */
    uint32_t round;            /* from 1 on */
    uint32_t waits[];          /* the round that a thread of the grid waits in, or 0 */
};

bool emu_grid_open(machine_t *m)
{
    const uint64_t threads = m->n_blocks * m->threads;
    if (!m->launch->cooperative)
        return true;
    m->grid_sync = calloc(1, sizeof *m->grid_sync + threads * sizeof *m->grid_sync->waits);
    if (m->grid_sync)
        *m->grid_sync = (struct grid_sync){.threads = threads, .round = 1};
    return m->grid_sync;
}

static void next_round(struct grid_sync *g)
{
    if (g->arrived && g->arrived == g->threads) {
        g->round++;
        g->arrived = 0;
    }
}

void emu_grid_leave(machine_t *m, uint32_t lanes)
{
    m->grid_sync->threads -= (unsigned)__builtin_popcount(lanes);
    next_round(m->grid_sync);
}

/* What stands for the grid: the address that its accesses are ordered by. */
static bool call_grid_handle(warp_t *w, const op_t *o, uint32_t lane)
{
    const uint64_t handle = w->block->worker->m->grid_barrier;
    (void)o;
    w->r[FIRST_ARGUMENT][lane] = (uint32_t)handle;
    w->r[FIRST_ARGUMENT + 1][lane] = (uint32_t)(handle >> 32);
    return true;
}

/* A lane's memory before the barrier is everybody's behind it. */
static void order(warp_t *w, uint32_t lane, access_t kind)
{
    uint64_t address[LANES];
    address[lane] = w->block->worker->m->grid_barrier;
    if (!w->block->race)
        return;
    if (kind != ACCESS_READ)
        emu_race_fence(w, ALL_LANES, true);
    emu_race_strong(w, 1u << lane, kind, address);
}

static bool call_grid_sync(warp_t *w, const op_t *o, uint32_t lane)
{
    machine_t *m = w->block->worker->m;
    struct grid_sync *g = m->grid_sync;
    (void)o;
    if (!g || pair(w, lane, FIRST_ARGUMENT) != m->grid_barrier) {
        w->r[FIRST_ARGUMENT][lane] = NOT_COOPERATIVE;
        return true;
    }
    uint32_t *waits = &g->waits[w->block->linear * m->threads + w->index * LANES + lane];
    if (!*waits) {
        *waits = g->round;
        order(w, lane, ACCESS_ATOMIC);
        g->arrived++;
        next_round(g);
    }
    if (*waits == g->round)
        return false;
    *waits = 0;
    order(w, lane, ACCESS_READ);
    w->r[FIRST_ARGUMENT][lane] = 0;
    return true;
}
