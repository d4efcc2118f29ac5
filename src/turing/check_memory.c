/* SPDX-License-Identifier: MIT */
/*
 * check_memory.c - bounds, alignment, and which bytes were written.
 *
 * Shared and local memory start out unwritten in every block.  Global bytes
 * are tracked in memory created with TURING_MEMORY_TRACK.
 */
#include "exec.h"
#include "system.h"

#include <string.h>

static const char *verb(access_t kind)
{
    return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

/* Shadow of the bytes of an access, NULL if untracked; *inside tells whether storage backs all of them. An aligned word
 * is backed as a whole: atomics of 16 bits read and update the word around them. */
static uint8_t *shadow(warp_t *w, turing_space_t space, int lane, uint64_t address, uint32_t bytes, access_t kind,
                       bool *inside)
{
    block_t *b = w->block;
    const machine_t *m = b->worker->m;
    if (space == TURING_SPACE_GLOBAL) {
        alloc_t *a = emu_memory_find(m->mem, address);
        const uint64_t rest = a ? a->size - (address - a->base) : 0;
        *inside = a && (bytes <= rest || (kind != ACCESS_WRITE && a->owned && bytes == 4 && !(address & 3)));
        return *inside && a->valid ? a->valid + (address - a->base) : NULL;
    }
    const uint32_t size = space == TURING_SPACE_SHARED ? m->shared_bytes : m->local_bytes;
    uint8_t *valid = space == TURING_SPACE_SHARED ? b->shared_valid : w->local_valid + (uint64_t)lane * size;
    *inside = address <= size && bytes <= size - address;
    return *inside ? valid + address : NULL;
}

static void out_of_bounds(warp_t *w, const op_t *o, site_t site, access_t kind)
{
    const machine_t *m = w->block->worker->m;
    if (site.space == TURING_SPACE_GLOBAL) {
        const alloc_t *a = emu_memory_nearest(m->mem, site.address);
        if (!a) {
            emu_report(w, o, TURING_OUT_OF_BOUNDS, site, "%s, and nothing is allocated", verb(kind));
            return;
        }
        const bool before = site.address < a->base;
        const uint64_t end = a->base + a->size;
        const uint64_t by = before                ? a->base - site.address
                            : site.address >= end ? site.address - end + site.bytes
                                                  : site.address + site.bytes - end;
        emu_report(w, o, TURING_OUT_OF_BOUNDS, site, "%s up to %llu bytes %s the %llu bytes at 0x%llx", verb(kind),
                   (unsigned long long)by, before ? "before" : "past the end of", (unsigned long long)a->size,
                   (unsigned long long)a->base);
        return;
    }
    emu_report(w, o, TURING_OUT_OF_BOUNDS, site, "%s past the %u bytes of %s memory", verb(kind),
               site.space == TURING_SPACE_SHARED ? m->shared_bytes : m->local_bytes,
               site.space == TURING_SPACE_SHARED ? "shared" : "local");
}

uint32_t emu_check_memory(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                          const uint64_t address[LANES], uint32_t bytes)
{
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(on >> l & 1))
            continue;
        site_t site = {.space = space, .address = address[l], .lane = l, .bytes = bytes};
        bool inside;
        uint8_t *valid = shadow(w, space, (int)l, address[l], bytes, kind, &inside);
        if (!inside) {
            out_of_bounds(w, o, site, kind);
            on &= ~(1u << l);
            continue;
        }
        if (address[l] & (bytes - 1)) {
            emu_report(w, o, TURING_MISALIGNED, site, "%u bytes are %s at an address that is %u modulo %u", bytes,
                       kind == ACCESS_READ ? "read" : "written", (unsigned)(address[l] & (bytes - 1)), bytes);
            on &= ~(1u << l);
            continue;
        }
        if (!valid)
            continue;
        if (space == TURING_SPACE_GLOBAL && memchr(valid, BYTE_NOT_GIVEN, bytes)) {
            emu_report(w, o, TURING_OUT_OF_BOUNDS, site,
                       "%s the heap of device code where malloc gave nothing, or after free", verb(kind));
            on &= ~(1u << l);
            continue;
        }
        if (kind == ACCESS_WRITE)
            memset(valid, BYTE_WRITTEN, bytes);
    }
    return on;
}
