/* SPDX-License-Identifier: MIT */
/*
 * A turn in burst mode is one launch after a pause; a short kernel goes first, so that the launch
 * and the events around it are all enqueued when it ends and the host's own time is not measured.
 * Modelled, it is one launch after others of the same contestant or, with --mode first, with the L2 cache empty.
 * In continuous mode a turn is a train of launches, with --energy a longer one (energy.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "turns.h"

enum {
    MOST_LAUNCHES = 4096, /* of a continuous turn */
    MOST_LEADS = 4,       /* before a modelled burst */
    PAUSE_US = 3000       /* before a burst */
};

void progress(const char *format, ...)
{
    static int width;
    va_list arguments;
    va_start(arguments, format);
    if (isatty(2))
        fprintf(stderr, "\r%*s\r", width, "");
    width = vfprintf(stderr, format, arguments);
    if (!isatty(2))
        fputc('\n', stderr);
    va_end(arguments);
}

static void pause_us(long us)
{
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

int mark(contestant_t *c, int event)
{
    return succeeds(c, internals_event_record(bench.handle, bench.events[event]));
}

int enqueue_next(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next)
{
    const set_t *set = &sets[*next];
    if (c->kind != CEILING && c->kind != COPY) /* which read none: a set is used again when all others were */
        *next = (*next + 1) % set_count;
    return enqueue(c, p, set, set->as[c->form].c, bench.options.alpha, bench.options.beta);
}

int seconds_between_marks(contestant_t *c, double *seconds)
{
    return succeeds(c, internals_event_elapsed(bench.handle, bench.events[0], bench.events[1], seconds));
}

/* Launches of the contestant after which the L2 cache holds nothing of others, or as many as are worth their time. */
static int launches_filling_l2(const contestant_t *c, const problem_t *p)
{
    const size_t l2 = l2_bytes();
    const size_t b = bytes_of_b(&(shape_t){.n = p->n, .k = p->k}, c->form);
    const size_t bytes = (size_t)p->batch * (b + (size_t)(p->size_a + p->size_c) * element_bytes(c->form));
    const size_t launches = c->kind == CEILING || c->kind == COPY ? 1 : (l2 + bytes - 1) / bytes;
    return launches < MOST_LEADS ? (int)launches : MOST_LEADS;
}

int take_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next, int launches,
              double *seconds)
{
    /* The train is already moving when timing begins; and modelled launches start with what the contestant itself
     * leaves in the L2 cache, whose dirty lines the next launch writes. */
    int lead = bench.options.continuous ? launches > 1 : modelled() ? launches_filling_l2(c, p) : 0;
    if (bench.options.first) {
        lead = 0;
        internals_empty_l2(bench.handle);
    }
    if (!bench.options.continuous && !modelled()) {
        pause_us(PAUSE_US);
        if (!enqueue_delay(c))
            return 0;
    }
    for (int i = -lead; i < launches; i++) {
        if (i == 0 && modelled())
            internals_begin_beside(bench.handle);
        if ((i == 0 || i == -lead) && !mark(c, 0)) /* the T4 model runs only what follows an event */
            return 0;
        if (!enqueue_next(c, p, sets, set_count, next))
            return 0;
    }
    if (!mark(c, 1) || !seconds_between_marks(c, seconds))
        return 0;
    c->shown_beside = modelled() ? internals_end_beside(bench.handle) : 0;
    *seconds /= launches;
    return 1;
}

int launches_of_turn(double seconds, double call)
{
    double wanted = bench.options.continuous && call > 0 ? seconds / call + 1 : 1;
    return wanted < MOST_LAUNCHES ? (int)wanted : MOST_LAUNCHES;
}
