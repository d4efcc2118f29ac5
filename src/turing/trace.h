/* SPDX-License-Identifier: MIT */
/*
 * trace.h - what the executor leaves for the timing model: the instructions that
 * a warp executed since it last stopped, and what they asked of memory.
 */
#ifndef TURING_TRACE_H
#define TURING_TRACE_H

#include "exec.h"

enum { TRACE_EVENTS = 1024, TRACE_LINES = 512 };

typedef struct event {
    uint32_t op;     /* instruction                                             */
    uint16_t detail; /* shared memory: wavefronts; BAR: number | warps << 4     */
    uint8_t on;      /* some lane was                                           */
    uint8_t lines;   /* of global memory                                        */
} event_t;

struct trace {
    uint32_t n, n_lines;
    event_t event[TRACE_EVENTS];
    uint64_t line[TRACE_LINES]; /* as in request_t         */
};

static inline void emu_time_issue(warp_t *w, uint32_t op, uint32_t on)
{
    trace_t *t = w->trace;
    t->event[t->n++] = (event_t){.op = op, .on = on != 0};
    /* this instruction may still add LANES lines, and so may the next */
    if (t->n == TRACE_EVENTS || t->n_lines > TRACE_LINES - 2 * LANES)
        w->stop = STOP_TRACED;
}

static inline void emu_time_shared(warp_t *w, uint32_t waves)
{
    w->trace->event[w->trace->n - 1].detail = (uint16_t)waves;
}

static inline void emu_time_barrier(warp_t *w, uint32_t id, uint32_t threads)
{
    w->trace->event[w->trace->n - 1].detail = (uint16_t)(id | threads / LANES << 4);
}

/* The lines and sectors that an access touches; stored: bytes that a lane writes, 0 for a load. */
void emu_time_global(warp_t *w, uint32_t on, const uint64_t address[LANES], uint32_t stored);

#endif
