/* SPDX-License-Identifier: MIT */
/*
 * Energy by the GPU's own counter. The counter is read often, but moves only every 20 to 100 ms, by
 * what was used since: a difference of two readings is off by up to two such steps. So a turn is a
 * train of launches over several steps, both ends of its window are moments at which the counter
 * was seen to move, and both lie inside the train, the first of them late enough for the power to
 * have settled. A window holds no whole number of calls; what a call takes is the window's mean
 * power times the call's time. The counter is the whole board's: memory and idle power included.
 */
#include <string.h>
#include <time.h>

#include "energy.h"
#include "turns.h"

static const double SETTLE_SECONDS = 0.1;  /* of a train, before its window */
static const double STEP_SECONDS = 0.1;    /* of the counter, at most, as a rule */
static const double POLL_SECONDS = 1e-3;   /* between readings */
static const double SHORTEST_WINDOW = 0.1; /* a shorter one does not count */

typedef struct move_t {
    double at; /* seconds of the host's clock */
    double joules;
} move_t;

/* What was seen of the counter during a train. */
typedef struct watch_t {
    double next, joules;
    int count;
    move_t moves[4096];
} watch_t;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void poll_counter(watch_t *w)
{
    double joules;
    if (now() < w->next || !clocks_energy_j(&joules))
        return;
    double at = now();
    w->next = at + POLL_SECONDS;
    if (w->joules > 0 && joules != w->joules) {
        if (w->count == sizeof w->moves / sizeof *w->moves)
            w->count--; /* the last one is what matters */
        w->moves[w->count++] = (move_t){at, joules};
    }
    w->joules = joules;
}

int take_energy_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next, double call,
                     int repetition)
{
    static watch_t w;
    double length = bench.options.min_time + SETTLE_SECONDS + STEP_SECONDS, elapsed;
    double wanted = call > 0 ? length / call + 1 : 1;
    int launches = wanted < 1e8 ? (int)wanted : (int)1e8;
    w = (watch_t){0};
    if (!mark(c, 0))
        return 0;
    double begin = now();
    for (int i = 0; i < launches; i++) { /* waits where the queue is full: the host keeps pace */
        if (!enqueue_next(c, p, sets, set_count, next))
            return 0;
        poll_counter(&w);
    }
    if (!mark(c, 1))
        return 0;
    while (now() < begin + 0.98 * call * launches) {
        struct timespec pause = {0, (long)(POLL_SECONDS * 1e9 / 4)};
        nanosleep(&pause, NULL);
        poll_counter(&w);
    }
    c->mhz[repetition] = clocks_sm_mhz(); /* while it runs */
    c->power[repetition] = clocks_power_w();
    if (!seconds_between_marks(c, &elapsed))
        return 0;
    c->seconds[repetition] = elapsed / launches;

    int first = 0, last = w.count - 1;
    while (first < w.count && w.moves[first].at < begin + SETTLE_SECONDS)
        first++;
    while (last > first && w.moves[last].at > begin + elapsed)
        last--;
    if (last > first && w.moves[last].at - w.moves[first].at >= SHORTEST_WINDOW) {
        c->joules[repetition] = w.moves[last].joules - w.moves[first].joules;
        c->window[repetition] = w.moves[last].at - w.moves[first].at;
    }
    return 1;
}
