/* SPDX-License-Identifier: MIT */
/*
 * time_memory.h - the memory of the modelled T4, as its multiprocessors see it
 * (inside the timing model).
 */
#ifndef TURING_TIME_MEMORY_H
#define TURING_TIME_MEMORY_H

#include "exec.h"

enum {
    SECTORS = 4, /* of 32 bytes in a line of 128                                     */
    ALL_SECTORS = 15,
    LINE_SHIFT = 2 * SECTORS, /* of a line's number in a request's word */
    SECTOR_BYTES = 32
};

typedef enum request_kind { REQUEST_LOAD, REQUEST_STORE, REQUEST_ATOMIC, REQUEST_PREFETCH } request_kind_t;

/* What one warp instruction asks for. */
typedef struct request {
    double at; /* cycle in which the load/store unit takes it up   */
    uint8_t kind;
    bool cached;          /* may be answered by L1                            */
    uint8_t slot, tenant; /* of the multiprocessor, and its scoreboard that   */
    uint8_t scoreboard;   /* waits for the answer; 7: none does               */
    uint32_t n;
    uint64_t line[LANES]; /* address / 128 << 8 | sectors of which a part only is meant << 4 | sectors */
} request_t;

/* Sectors of a line. */
static inline uint32_t emu_time_sectors(uint32_t mask)
{
    return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1);
}

typedef struct time_memory time_memory_t;

/* The L2 holds what the last timed launch on `mem` left in it.  NULL: out of memory. */
time_memory_t *emu_time_memory_open(turing_memory_t *mem, const turing_clock_t *clock, uint32_t l1_bytes);
void emu_time_memory_close(time_memory_t *memory);

/* The cycle in which the answer is complete: in registers, for stores and
 * prefetches in L2.  Requests come in the order of their cycles.  Adds to the
 * figures of L2 and DRAM in `sum`. */
double emu_time_access(time_memory_t *memory, uint32_t sm, const request_t *r, turing_time_t *sum);

static inline double later(double a, double b)
{
    return a > b ? a : b;
}

#endif
