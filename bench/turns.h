/* SPDX-License-Identifier: MIT */
/* When calls are timed: the turn of one contestant. */
#ifndef HGEMM_BENCH_TURNS_H
#define HGEMM_BENCH_TURNS_H

#include "run.h"

/* Seconds of a call, by device events around `launches` calls that begin with set number `*next`.
 * 1, or 0 where the contestant has failed. */
int take_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next, int launches,
              double *seconds);

/* The parts of a turn; 1, or 0 where the contestant has failed: an event (0 or 1) on the default
 * stream, a call on set number `*next`, which then is the next one, and the seconds between the
 * events, once the second is there. */
int mark(contestant_t *c, int event);
int enqueue_next(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next);
int seconds_between_marks(contestant_t *c, double *seconds);

/* How many launches a turn of that many seconds has, where one lasts `call` seconds. */
int launches_of_turn(double seconds, double call);

/* One line on a terminal, of which the next takes the place. */
__attribute__((format(printf, 1, 2))) void progress(const char *format, ...);

#endif
