/* SPDX-License-Identifier: MIT */
/*
 * CUTLASS leaves it to its user to find the kernel for a problem. Here all are tried that can run
 * it (--cutlass may name fewer), and k cut into slices in both of CUTLASS's ways where that may fill
 * the GPU: each is verified with integers, then timed in a few turns as the contest has them. The
 * fastest few enter the contest, after they were verified with random inputs too, and the best of
 * them is the peer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "proof.h"
#include "qualify.h"
#include "turns.h"

enum {
    ROUNDS = 3,     /* turns of which a hopeful's time is the median */
    MOST_BLOCKS = 4 /* slices make at most so many blocks per multiprocessor */
};
static const double ROUND_SECONDS = 5e-3; /* of a turn in continuous mode, at most */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Adds a hopeful, unless --cutlass leaves it out. */
static void add_hopeful(hopefuls_t *h, const contestant_t *like, int config, int slices, int parallel)
{
    peers_config_t about = bench.cutlass->config(config);
    contestant_t c = {.kind = CUTLASS,
                      .form = like->form,
                      .accumulate = like->accumulate,
                      .kernel = config,
                      .slices = slices,
                      .parallel = parallel};
    if (slices > 1)
        snprintf(c.note, sizeof c.note, "%s k/%d %s", about.name, slices, parallel ? "parallel" : "serial");
    else
        snprintf(c.note, sizeof c.note, "%s", about.name);
    if (regexec(&bench.options.cutlass, c.note, 0, NULL, 0) != 0)
        return;
    contestant_t *all = realloc(h->all, (size_t)(h->count + 1) * sizeof *all);
    if (!all)
        return;
    h->all = all;
    h->all[h->count++] = c;
}

hopefuls_t find_hopefuls(const group_t *g, const problem_t *p, const set_t *set)
{
    static const int slices[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    hopefuls_t h = {0};
    unsigned seen = 0;
    for (int i = 0; i < g->count; i++) {
        const contestant_t *like = &g->contestants[i];
        if (like->kind != CUTLASS || (seen & 1U << like->accumulate))
            continue;
        seen |= 1U << like->accumulate;
        const struct operands_t *from = &set->as[like->form];
        peers_call_t call = cutlass_call(p, like->form == AS_ASKED, like->accumulate, 1, from->a, from->b, 0, from->c);
        for (int config = 0; config < bench.cutlass->count(); config++) {
            peers_config_t about = bench.cutlass->config(config);
            double blocks =
                (double)((call.m + about.tile_m - 1) / about.tile_m) * ((call.n + about.tile_n - 1) / about.tile_n);
            for (size_t s = 0; s < sizeof slices / sizeof *slices; s++)
                for (int parallel = 0; parallel <= (slices[s] > 1); parallel++) {
                    call.slices = slices[s], call.parallel = parallel;
                    if ((slices[s] == 1 || blocks * slices[s] <= MOST_BLOCKS * bench.info.multiprocessors) &&
                        bench.cutlass->can_run(config, &call))
                        add_hopeful(&h, like, config, slices[s], parallel);
                }
        }
    }
    return h;
}

/* One line for a hopeful that is out because it failed. */
static void report(const group_t *g, const contestant_t *c)
{
    fprintf(stderr, "bench_hgemm: %s: CUTLASS %s does not take part: %s\n", g->name, c->note, c->failure);
}

/* Times the hopefuls in turns and sorts them: `order` gets the numbers of those that have not
 * failed, the fastest first. Returns how many they are, -1 where memory ran out. */
static int sort_hopefuls(group_t *g, hopefuls_t *h, const problem_t *p, const set_t *sets, int set_count, int *order)
{
    double(*seconds)[ROUNDS] = calloc((size_t)h->count, sizeof *seconds);
    int *launches = calloc((size_t)h->count, sizeof *launches), count = 0;
    double limit = bench.options.min_time < ROUND_SECONDS ? bench.options.min_time : ROUND_SECONDS;
    for (int i = 0; i < h->count && seconds && launches; i++) { /* code is loaded */
        double call = 0;
        for (int turn = 0; turn < 2 && !h->all[i].result.failure && !modelled(); turn++)
            take_turn(&h->all[i], p, sets, set_count, &g->next_set, 1, &call);
        launches[i] = launches_of_turn(limit, call);
    }
    const int rounds = modelled() ? 1 : ROUNDS;
    for (int r = 0; r < rounds && seconds && launches; r++)
        for (int i = 0; i < h->count; i++)
            if (!h->all[i].result.failure)
                take_turn(&h->all[i], p, sets, set_count, &g->next_set, launches[i], &seconds[i][r]);
    for (int i = 0; i < h->count && seconds && launches; i++) {
        int at = count;
        if (h->all[i].result.failure) {
            report(g, &h->all[i]);
            continue;
        }
        seconds[i][0] = median(seconds[i], rounds); /* sorted, it is no longer needed whole */
        for (; at > 0 && seconds[order[at - 1]][0] > seconds[i][0]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        count++;
    }
    if (h->count && (!seconds || !launches))
        count = -1;
    free(seconds);
    free(launches);
    return count;
}

void qualify(group_t *g, hopefuls_t *h, const problem_t *p, const set_t *sets, int set_count, void *host)
{
    int *order = calloc((size_t)h->count + 1, sizeof *order);
    if (h->count)
        progress("[%d/%d] %s: qualifying %d configurations of CUTLASS", g->number, g->of, g->name, h->count);
    int count = order ? sort_hopefuls(g, h, p, sets, set_count, order) : -1;
    for (int i = 0; i < g->count; i++) {
        contestant_t *c = &g->contestants[i];
        if (c->kind != CUTLASS)
            continue;
        c->result.failure =
            count < 0 ? "out of memory" : "no configuration of CUTLASS that may take part computes this";
        for (int at = 0; at < count && c->result.failure; at++) {
            contestant_t *best = &h->all[order[at]];
            if (best->accumulate != c->accumulate || best->slices == 0)
                continue;
            c->kernel = best->kernel;
            c->slices = best->slices;
            c->parallel = best->parallel;
            memcpy(c->note, best->note, sizeof c->note);
            c->result.note = c->note;
            c->result.failure = NULL;
            verify(c, p, &sets[0], NULL, host);
            if (c->result.failure) /* such as slices whose sums were rounded to halves too often */
                report(g, c);
            best->slices = 0; /* taken */
        }
    }
    free(order);
}

/* Gives one contestant the other's result. */
static void take_over(contestant_t *to, const contestant_t *from)
{
    const size_t bytes = (size_t)bench.options.repetitions * sizeof(double);
    memcpy(to->seconds, from->seconds, bytes);
    memcpy(to->mhz, from->mhz, bytes);
    memcpy(to->power, from->power, bytes);
    memcpy(to->joules, from->joules, bytes);
    memcpy(to->window, from->window, bytes);
    memcpy(to->note, from->note, sizeof to->note);
    to->result.note = to->note;
    to->result.error = from->result.error;
    to->result.failure = NULL;
}

void crown(group_t *g)
{
    const int repetitions = bench.options.repetitions;
    double *sorted = malloc(2 * (size_t)repetitions * sizeof *sorted);
    for (int i = 0; i + 1 < g->count && sorted; i++) {
        contestant_t *first = &g->contestants[i], *second = first + 1;
        if (first->kind != CUTLASS || second->kind != CUTLASS || first->accumulate != second->accumulate ||
            second->result.failure)
            continue;
        memcpy(sorted, first->seconds, (size_t)repetitions * sizeof *sorted);
        memcpy(sorted + repetitions, second->seconds, (size_t)repetitions * sizeof *sorted);
        if (first->result.failure || median(sorted + repetitions, repetitions) < median(sorted, repetitions))
            take_over(first, second);
    }
    free(sorted);
}
