/* SPDX-License-Identifier: MIT */
/* memory.h - device allocations as the interpreter sees them (inside the library). */
#ifndef TURING_MEMORY_H
#define TURING_MEMORY_H

#include "launch.h"

typedef struct alloc {
    uint64_t base, size;
    uint8_t *host;
    uint8_t *valid;     /* one byte per byte, see system.h: 0 never written; NULL: not tracked */
    uint8_t *undefined; /* bits of each written byte that nobody wrote; NULL: none */
    uint8_t *note;      /* beside it: where such a byte was stored, for the host that reads it; 0: not to be told */
    uint8_t *absent;    /* one byte per byte, 1 left out by a dry launch; NULL: none was */
    bool owned;
} alloc_t;

/* The allocation that holds the address, or NULL. */
alloc_t *emu_memory_find(const turing_memory_t *mem, uint64_t address);

/* The allocation that holds the address or is nearest to it; NULL if there are none. */
const alloc_t *emu_memory_nearest(const turing_memory_t *mem, uint64_t address);

/* Marks the bytes of a range as absent, or no longer so.  False: out of memory. */
bool emu_memory_absent(alloc_t *a, uint64_t offset, size_t bytes, bool absent);

/* An undefined value that a kernel stored, as it is told when the host reads it. */
typedef struct note {
    turing_violation_t v; /* whose strings are the memory's */
    uint32_t by;          /* the instruction that stored it */
    bool told;
} note_t;

/* Makes the allocation's `undefined` and `note`; false: out of memory. */
bool emu_memory_undefine(alloc_t *a);
bool emu_memory_any_undefined(const turing_memory_t *mem);
/* The number of a note, from 1 on; 0: there is no room for more. */
uint8_t emu_memory_note(turing_memory_t *mem, const turing_violation_t *v, uint32_t by);

/* All allocations, sorted by address. */
size_t emu_memory_allocs(const turing_memory_t *mem, alloc_t **allocs);

/* What the timing model's L2 holds between launches: one block from malloc,
 * NULL before the first; freed with the memory. */
void **emu_memory_l2(turing_memory_t *mem);

/* What malloc of device code gives out; NULL before the first launch that may call it. */
typedef struct heap heap_t;
heap_t **emu_memory_heap(turing_memory_t *mem);
void emu_heap_free(heap_t *heap);

#endif
