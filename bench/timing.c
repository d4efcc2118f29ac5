/* SPDX-License-Identifier: MIT */
/*
 * A problem's contestants are measured together: inputs, proof of every result, then repetitions in
 * which each contestant has one turn, in another order each time. So whatever drifts (clock, heat,
 * other tenants) drifts for all, and none always follows the one that heats the GPU most. Operands
 * rotate through enough copies that none is found in the L2 cache, unless that takes more than
 * MOST_SETS. C is updated in place, as cuBLAS does it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "energy.h"
#include "experts.h"
#include "operands.h"
#include "proof.h"
#include "qualify.h"
#include "timing.h"
#include "turns.h"

enum { MOST_SETS = 256 };
static const double TRAIN_SECONDS = 0.02; /* of launches that tell how long one lasts */
static const double L2_COPIES = 2;        /* operands of all sets over the size of the L2 cache */

/* What is known of a contestant's turns, and the order of this repetition: numbers of contestants.
 */
typedef struct turn_t {
    double call; /* seconds, about */
    int launches, contestant;
} turn_t;

static void take_timed_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next,
                            const turn_t *turn, int repetition)
{
    if (bench.options.energy) {
        take_energy_turn(c, p, sets, set_count, next, turn->call, repetition);
        return;
    }
    take_turn(c, p, sets, set_count, next, turn->launches, &c->seconds[repetition]);
    c->beside[repetition] = c->shown_beside;
    c->mhz[repetition] = clocks_sm_mhz();
    c->power[repetition] = clocks_power_w();
}

void time_group(group_t *g, const problem_t *p, const set_t *sets, int set_count)
{
    int *next = &g->next_set;
    turn_t *turns = calloc((size_t)g->count, sizeof *turns);
    if (!turns)
        return;
    uint32_t random = 1;
    for (int i = 0; i < g->count; i++) { /* warm-up: code and clocks; how long is a call? */
        contestant_t *c = &g->contestants[i];
        double *call = &turns[i].call;
        for (int turn = 0; turn < 2 && !c->result.failure && !modelled(); turn++)
            take_turn(c, p, sets, set_count, next, 1, call);
        if (bench.options.energy && !c->result.failure) /* in a train it is shorter */
            take_turn(c, p, sets, set_count, next, launches_of_turn(TRAIN_SECONDS, *call), call);
        turns[i].launches = launches_of_turn(bench.options.min_time, *call);
        turns[i].contestant = i;
    }
    for (int i = 0; i < g->count; i++) /* by themselves: they would empty the caches of the others */
        for (int r = 0;
             r < bench.options.repetitions && g->contestants[i].kind == COPY && !g->contestants[i].result.failure; r++)
            take_timed_turn(&g->contestants[i], p, sets, set_count, next, &turns[i], r);
    for (int r = 0; r < bench.options.repetitions; r++) {
        for (int i = g->count - 1; i > 0; i--) { /* shuffled, alike in every run */
            random = random * 1664525 + 1013904223;
            int j = (int)((random >> 8) % (uint32_t)(i + 1)), held = turns[i].contestant;
            turns[i].contestant = turns[j].contestant;
            turns[j].contestant = held;
        }
        for (int i = 0; i < g->count; i++) {
            int at = turns[i].contestant;
            if (!g->contestants[at].result.failure && g->contestants[at].kind != COPY)
                take_timed_turn(&g->contestants[at], p, sets, set_count, next, &turns[at], r);
        }
    }
    free(turns);
    crown(g);
}

/* ---- a problem --------------------------------------------------------------------------- */

void prove_group(group_t *g, group_fn *use)
{
    const room_t rooms[FORMS] = {room_of(g, AS_HALVES), room_of(g, AS_ASKED)};
    const size_t c = rooms[AS_HALVES].c > rooms[AS_ASKED].c ? rooms[AS_HALVES].c : rooms[AS_ASKED].c;
    const size_t ends = (size_t)g->shape.batch * sizeof(int32_t);
    size_t bytes = 0, least = SIZE_MAX; /* of a set, and of what a contestant takes of it */
    for (int form = 0; form < FORMS; form++) {
        size_t taken = rooms[form].a + rooms[form].b + rooms[form].c;
        bytes += taken;
        if (g->shape.top) /* experts without rows are not */
            taken -= rooms[form].b / (size_t)g->shape.batch * (size_t)(g->shape.batch - experts_hit(&g->shape));
        least = taken && taken < least ? taken : least;
    }
    double copies = 1 + L2_COPIES * (double)bench.info.l2_bytes / (double)least;
    int set_count = copies < 2 ? 2 : copies < MOST_SETS ? (int)copies : MOST_SETS;
    set_t *sets = calloc((size_t)set_count, sizeof *sets);
    void *host = malloc(c + 1), *slab = NULL;
    char *apart = NULL;
    problem_t p = {0};
    hopefuls_t hopefuls = {0};
    hgemm_status_t status = sets && host ? hgemm_malloc(bench.handle, &slab, (size_t)set_count * bytes + c + ends)
                                         : HGEMM_STATUS_OUT_OF_MEMORY;
    if (status == HGEMM_STATUS_SUCCESS)
        apart = lay_out(slab, rooms, sets, set_count);

    for (int exact = 1; exact >= 0 && status == HGEMM_STATUS_SUCCESS; exact--) {
        progress("[%d/%d] %s: verifying (%s inputs)", g->number, g->of, g->name, exact ? "integer" : "random");
        problem_destroy(&p);
        status = problem_create(&p, bench.options.layout, &g->shape, &bench.options.fill, exact);
        if (status == HGEMM_STATUS_SUCCESS)
            status = store(g, &p);
        if (status == HGEMM_STATUS_SUCCESS)
            status = upload_ends(&p, apart + c);
        if (status == HGEMM_STATUS_SUCCESS)
            status = exact ? upload_set(g, &p, &sets[0]) : upload_sets(g, &p, sets, set_count);
        for (int i = 0; i < g->count && status == HGEMM_STATUS_SUCCESS; i++)
            if (g->contestants[i].kind != CUTLASS)
                verify(&g->contestants[i], &p, &sets[0], apart, host);
        if (status != HGEMM_STATUS_SUCCESS)
            break;
        if (exact) {
            hopefuls = find_hopefuls(g, &p, &sets[0]);
            for (int i = 0; i < hopefuls.count; i++)
                verify(&hopefuls.all[i], &p, &sets[0], apart, host);
        } else {
            qualify(g, &hopefuls, &p, sets, set_count, host);
        }
    }
    if (status == HGEMM_STATUS_SUCCESS)
        status = upload_sets(g, &p, sets, set_count);
    if (status == HGEMM_STATUS_SUCCESS) {
        progress("[%d/%d] %s: measuring %d contestants", g->number, g->of, g->name, g->count);
        use(g, &p, sets, set_count);
    } else {
        for (int i = 0; i < g->count; i++)
            succeeds(&g->contestants[i], status);
    }
    if (isatty(2))
        progress("%s", "");
    hgemm_free(bench.handle, slab);
    forget_stored();
    problem_destroy(&p);
    free(hopefuls.all);
    free(host);
    free(sets);
}
