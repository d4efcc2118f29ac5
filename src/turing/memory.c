/* SPDX-License-Identifier: MIT */
/*
 * memory.c - device allocations: a sorted array of address ranges, each with
 * host storage and, where tracked, a shadow of written bytes.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, GAP = 256, HEAP_BYTES = 8 << 20 /* as CUDA has it, unless told otherwise */ };
enum { WORD = 4, MOST_NOTES = 255 };

/* First address handed out: clear of zero and of the windows through which
 * generic addresses reach shared and local memory. */
#define FIRST_ADDRESS UINT64_C(0x700000000000)

struct turing_memory {
    unsigned flags;
    size_t n, capacity;
    alloc_t *allocs;
    uint64_t next;
    void *l2;
    heap_t *heap;
    uint64_t heap_bytes;
    note_t *notes;
    unsigned n_notes;
};

turing_memory_t *turing_memory_create(unsigned flags)
{
    turing_memory_t *mem = calloc(1, sizeof *mem);
    if (mem) {
        mem->flags = flags;
        mem->next = FIRST_ADDRESS;
        mem->heap_bytes = HEAP_BYTES;
    }
    return mem;
}

static void release(alloc_t *a)
{
    if (a->owned)
        free(a->host);
    free(a->valid);
    free(a->undefined);
    free(a->note);
    free(a->absent);
}

void turing_memory_destroy(turing_memory_t *mem)
{
    if (!mem)
        return;
    for (size_t i = 0; i < mem->n; i++)
        release(&mem->allocs[i]);
    free(mem->allocs);
    free(mem->l2);
    emu_heap_free(mem->heap);
    for (unsigned i = 0; i < mem->n_notes; i++) {
        const turing_violation_t *v = &mem->notes[i].v;
        free((char *)v->kernel);
        free((char *)v->insn);
        free((char *)v->file);
        free((char *)v->what);
    }
    free(mem->notes);
    free(mem);
}

void **emu_memory_l2(turing_memory_t *mem)
{
    return &mem->l2;
}

void turing_memory_empty_l2(turing_memory_t *mem)
{
    free(mem->l2);
    mem->l2 = NULL;
}

heap_t **emu_memory_heap(turing_memory_t *mem)
{
    return &mem->heap;
}

uint64_t turing_memory_heap_bytes(const turing_memory_t *mem)
{
    return mem->heap_bytes;
}

bool turing_memory_set_heap(turing_memory_t *mem, uint64_t bytes, turing_error_t *err)
{
    if (mem->heap)
        return turing_fail(err, "the heap is in use: its size cannot change any more");
    mem->heap_bytes = bytes;
    return true;
}

/* Index of the first allocation whose end lies beyond the address. */
static size_t lower(const turing_memory_t *mem, uint64_t address)
{
    size_t lo = 0, hi = mem->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (mem->allocs[mid].base + mem->allocs[mid].size <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

alloc_t *emu_memory_find(const turing_memory_t *mem, uint64_t address)
{
    size_t i = lower(mem, address);
    return i < mem->n && mem->allocs[i].base <= address ? &mem->allocs[i] : NULL;
}

const alloc_t *emu_memory_nearest(const turing_memory_t *mem, uint64_t address)
{
    size_t i = lower(mem, address);
    if (mem->n == 0)
        return NULL;
    if (i == mem->n)
        return &mem->allocs[i - 1];
    if (i == 0 || mem->allocs[i].base <= address)
        return &mem->allocs[i];
    const alloc_t *before = &mem->allocs[i - 1], *after = &mem->allocs[i];
    return address - (before->base + before->size) < after->base - address ? before : after;
}

size_t emu_memory_allocs(const turing_memory_t *mem, alloc_t **allocs)
{
    *allocs = mem->allocs;
    return mem->n;
}

bool emu_memory_absent(alloc_t *a, uint64_t offset, size_t bytes, bool absent)
{
    if (absent && !a->absent)
        a->absent = calloc(a->size, 1);
    if (!a->absent)
        return !absent;
    memset(a->absent + offset, absent, bytes);
    return true;
}

bool emu_memory_undefine(alloc_t *a)
{
    if (!a->undefined) {
        a->undefined = calloc(a->size + WORD, 1);
        a->note = calloc(a->size + WORD, 1);
    }
    return a->undefined && a->note;
}

bool emu_memory_any_undefined(const turing_memory_t *mem)
{
    for (size_t i = 0; i < mem->n; i++)
        if (mem->allocs[i].undefined)
            return true;
    return false;
}

uint8_t emu_memory_note(turing_memory_t *mem, const turing_violation_t *v, uint32_t by)
{
    unsigned i = 0;
    while (i < mem->n_notes && (mem->notes[i].by != by || mem->notes[i].v.code != v->code ||
                                strcmp(mem->notes[i].v.kernel, v->kernel) != 0))
        i++;
    if (i < mem->n_notes)
        return (uint8_t)(i + 1);
    if (!mem->notes)
        mem->notes = calloc(MOST_NOTES, sizeof *mem->notes);
    if (!mem->notes || i == MOST_NOTES)
        return 0;
    turing_violation_t *kept = &mem->notes[i].v;
    *kept = *v;
    kept->kernel = strdup(v->kernel);
    kept->insn = strdup(v->insn);
    kept->file = v->file ? strdup(v->file) : NULL;
    kept->what = strdup(v->what);
    mem->notes[i].by = by;
    mem->n_notes++;
    return kept->kernel && kept->insn && kept->what ? (uint8_t)(i + 1) : 0;
}

uint64_t turing_memory_undefined(turing_memory_t *mem, uint64_t address, size_t bytes, turing_report_fn *report,
                                 void *user)
{
    const alloc_t *a = emu_memory_find(mem, address);
    uint64_t found = 0;
    if (!a || !a->note || bytes > a->size - (address - a->base))
        return 0;
    for (const uint8_t *n = a->note + (address - a->base), *end = n + bytes; n < end; n++)
        if (*n && !mem->notes[*n - 1].told) {
            mem->notes[*n - 1].told = true;
            report(user, &mem->notes[*n - 1].v);
            found++;
        }
    return found;
}

static bool insert(turing_memory_t *mem, alloc_t a)
{
    if (mem->n == mem->capacity) {
        size_t capacity = mem->capacity ? 2 * mem->capacity : 16;
        alloc_t *grown = realloc(mem->allocs, capacity * sizeof *grown);
        if (!grown)
            return false;
        mem->allocs = grown;
        mem->capacity = capacity;
    }
    size_t i = lower(mem, a.base);
    memmove(mem->allocs + i + 1, mem->allocs + i, (mem->n - i) * sizeof a);
    mem->allocs[i] = a;
    mem->n++;
    return true;
}

uint64_t turing_memory_alloc(turing_memory_t *mem, size_t bytes)
{
    if (bytes == 0 || bytes > UINT64_C(1) << 44)
        return 0;
    /* Bindings may sit anywhere: step over those in the way. */
    uint64_t base = mem->next;
    for (size_t i = lower(mem, base - GAP); i < mem->n && mem->allocs[i].base < base + bytes + GAP; i++)
        base = (mem->allocs[i].base + mem->allocs[i].size + GAP + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    alloc_t a = {.base = base, .size = bytes, .host = calloc(bytes + WORD, 1), .owned = true};
    if (mem->flags & TURING_MEMORY_TRACK)
        a.valid = calloc(bytes + WORD, 1);
    if (!a.host || ((mem->flags & TURING_MEMORY_TRACK) && !a.valid) || !insert(mem, a)) {
        release(&a);
        return 0;
    }
    mem->next = (base + bytes + GAP + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return base;
}

bool turing_memory_bind(turing_memory_t *mem, uint64_t address, void *host, size_t bytes, turing_error_t *err)
{
    if (bytes == 0 || !host || address + bytes < address)
        return turing_fail(err, "cannot bind %zu bytes at 0x%llx", bytes, (unsigned long long)address);
    size_t i = lower(mem, address);
    if (i < mem->n && mem->allocs[i].base < address + bytes)
        return turing_fail(err, "binding at 0x%llx overlaps the allocation at 0x%llx", (unsigned long long)address,
                           (unsigned long long)mem->allocs[i].base);
    if (!insert(mem, (alloc_t){.base = address, .size = bytes, .host = host}))
        return turing_fail(err, "out of memory");
    return true;
}

bool turing_memory_place(turing_memory_t *mem, uint64_t address, size_t bytes, turing_error_t *err)
{
    void *host = calloc(bytes + WORD, 1);
    if (!host)
        return turing_fail(err, "out of memory");
    if (!turing_memory_bind(mem, address, host, bytes, err)) {
        free(host);
        return false;
    }
    emu_memory_find(mem, address)->owned = true;
    return true;
}

bool turing_module_map(const turing_module_t *module, turing_memory_t *mem, turing_error_t *err)
{
    const turing_global_t *g;
    for (size_t i = 0; (g = turing_module_global(module, i)); i++)
        if (!turing_memory_place(mem, g->address, g->size, err) ||
            (g->init && !turing_memory_write(mem, g->address, g->init, g->size, err))) {
            while (i--)
                turing_memory_free(mem, turing_module_global(module, i)->address, NULL);
            return false;
        }
    return true;
}

void turing_module_unmap(const turing_module_t *module, turing_memory_t *mem)
{
    const turing_global_t *g;
    for (size_t i = 0; (g = turing_module_global(module, i)); i++)
        turing_memory_free(mem, g->address, NULL);
}

bool turing_memory_free(turing_memory_t *mem, uint64_t address, turing_error_t *err)
{
    alloc_t *a = emu_memory_find(mem, address);
    if (!a || a->base != address)
        return turing_fail(err, "no allocation begins at 0x%llx", (unsigned long long)address);
    release(a);
    size_t i = (size_t)(a - mem->allocs);
    memmove(a, a + 1, (mem->n - i - 1) * sizeof *a);
    mem->n--;
    return true;
}

bool turing_memory_range(const turing_memory_t *mem, uint64_t address, uint64_t *base, uint64_t *bytes)
{
    const alloc_t *a = emu_memory_find(mem, address);
    if (!a)
        return false;
    *base = a->base;
    *bytes = a->size;
    return true;
}

static alloc_t *range(turing_memory_t *mem, uint64_t address, size_t bytes, turing_error_t *err)
{
    alloc_t *a = emu_memory_find(mem, address);
    if (a && bytes <= a->base + a->size - address)
        return a;
    turing_fail(err, "%zu bytes at 0x%llx do not lie inside one allocation", bytes, (unsigned long long)address);
    return NULL;
}

static void written(alloc_t *a, uint64_t offset, size_t bytes)
{
    emu_memory_absent(a, offset, bytes, false);
    if (a->valid)
        memset(a->valid + offset, 1, bytes);
    if (a->undefined) {
        memset(a->undefined + offset, 0, bytes);
        memset(a->note + offset, 0, bytes);
    }
}

bool turing_memory_write(turing_memory_t *mem, uint64_t address, const void *from, size_t bytes, turing_error_t *err)
{
    if (bytes == 0)
        return true;
    alloc_t *a = range(mem, address, bytes, err);
    if (!a)
        return false;
    memcpy(a->host + (address - a->base), from, bytes);
    written(a, address - a->base, bytes);
    return true;
}

static bool is_absent(const alloc_t *a, uint64_t address, size_t bytes)
{
    return a->absent && memchr(a->absent + (address - a->base), 1, bytes);
}

bool turing_memory_read(turing_memory_t *mem, uint64_t address, void *to, size_t bytes, turing_error_t *err)
{
    if (bytes == 0)
        return true;
    alloc_t *a = range(mem, address, bytes, err);
    if (!a)
        return false;
    if (is_absent(a, address, bytes))
        return turing_fail(err, "a dry launch left out some of the %zu bytes at 0x%llx", bytes,
                           (unsigned long long)address);
    memcpy(to, a->host + (address - a->base), bytes);
    return true;
}

bool turing_memory_fill(turing_memory_t *mem, uint64_t address, uint8_t value, size_t bytes, turing_error_t *err)
{
    if (bytes == 0)
        return true;
    alloc_t *a = range(mem, address, bytes, err);
    if (!a)
        return false;
    memset(a->host + (address - a->base), value, bytes);
    written(a, address - a->base, bytes);
    return true;
}

/* What was never written stays so in the copy; where a byte is absent, all of the copy is. */
bool turing_memory_copy(turing_memory_t *mem, uint64_t to, uint64_t from, size_t bytes, turing_error_t *err)
{
    if (bytes == 0)
        return true;
    alloc_t *a = range(mem, from, bytes, err), *b = a ? range(mem, to, bytes, err) : NULL;
    if (!b)
        return false;
    if (!emu_memory_absent(b, to - b->base, bytes, is_absent(a, from, bytes)))
        return turing_fail(err, "out of memory");
    memmove(b->host + (to - b->base), a->host + (from - a->base), bytes);
    if (b->valid && a->undefined && emu_memory_undefine(b)) {
        memmove(b->undefined + (to - b->base), a->undefined + (from - a->base), bytes);
        memmove(b->note + (to - b->base), a->note + (from - a->base), bytes);
    } else if (b->undefined)
        written(b, to - b->base, bytes);
    if (b->valid && a->valid)
        memmove(b->valid + (to - b->base), a->valid + (from - a->base), bytes);
    else if (b->valid)
        memset(b->valid + (to - b->base), 1, bytes);
    return true;
}
