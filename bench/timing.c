/* SPDX-License-Identifier: MIT */
/*
 * A problem's contestants are measured together: inputs, proof of every result, then repetitions in
 * which each contestant has one turn, in another order each time. So whatever drifts (clock, heat,
 * other tenants) drifts for all, and none always follows the one that heats the GPU most. Operands
 * rotate through enough copies that none is found in the L2 cache, unless that takes more than
 * MOST_SETS. C is updated in place, as cuBLAS does it.
 *
 * A turn in burst mode is one launch after a pause; a short kernel goes first, so that the launch
 * and the events around it are all enqueued when it ends and the host's own time is not measured.
 * Modelled, it is one launch after others of the same contestant or, with --mode first, with the L2 cache empty.
 * In continuous mode a turn is a train of launches, with --energy a longer one (energy.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "error_model.h"
#include "experts.h"

enum {
    MOST_SETS = 256,
    MOST_LAUNCHES = 4096, /* of a continuous turn */
    MOST_LEADS = 4,       /* before a modelled burst */
    PAUSE_US = 3000       /* before a burst */
};
static const double TRAIN_SECONDS = 0.02; /* of launches that tell how long one lasts */
static const double L2_COPIES = 2;        /* operands of all sets over the size of the L2 cache */

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

/* ---- proof ------------------------------------------------------------------------------- */

/* The operands of the problem in hand as contestants take them; b is NULL where it is packed. */
static struct stored_t {
    void *a, *b, *c;
} stored[FORMS];

/* Of other operands than halves the peers' are rounded to halves, TF32's further on, and ours to what a call promises.
 */
static double rounding_of_operands(const contestant_t *c)
{
    if (c->kind == CUBLAS_TF32 || c->accuracy == HGEMM_ACCURACY_11_BITS)
        return ERROR_HALF;
    if (c->accuracy == HGEMM_ACCURACY_16_BITS)
        return ERROR_HALF / 32;
    return typed() && c->form == AS_HALVES ? ERROR_HALF : 0;
}

void verify(contestant_t *c, const problem_t *p, const set_t *set, char *apart, void *host)
{
    const size_t bytes = (size_t)(p->batch * p->size_c) * element_bytes(c->form);
    const struct operands_t *from = &set->as[c->form];
    float alpha = bench.options.alpha, beta = bench.options.beta;
    if (p->exact) /* scalars that keep integers integers, and 0 and 1, for which kernels may have code of their own */
        alpha = alpha == 0 || alpha == 1 ? alpha : 2, beta = beta == 0 || beta == 1 ? beta : -3;
    if (c->kind == CEILING || c->kind == COPY || c->result.failure)
        return;

    int separate = p->exact && (c->kind == KERNEL || c->kind == PLAN);
    char *d = separate ? apart : from->c;
    memset(host, 0xff, bytes); /* NaN */
    if (!succeeds(c, hgemm_upload(bench.handle, d, separate || beta == 0 ? host : stored[c->form].c, bytes)) ||
        (separate && !succeeds(c, hgemm_upload(bench.handle, from->c, stored[c->form].c, bytes))) ||
        !enqueue(c, p, set, d, alpha, beta) || !succeeds(c, hgemm_synchronize(bench.handle)) ||
        !succeeds(c, hgemm_download(bench.handle, host, d, bytes)))
        return;
    if ((c->kind == CUBLAS || c->kind == CUTLASS) &&
        c->accumulate == HGEMM_ACCUMULATE_F16) { /* their scalars are halves */
        alpha = hgemm_half_to_float(hgemm_half_from_float(alpha));
        beta = hgemm_half_to_float(hgemm_half_from_float(beta));
    }
    const hgemm_type_t type = form_type(c->form);
    const made_t made = {.d = host,
                         .type = type,
                         .alpha = alpha,
                         .beta = beta,
                         .accumulate = c->accumulate,
                         .is_float = type == HGEMM_TYPE_F32 && !form_is_packed(c->form),
                         .operands = rounding_of_operands(c),
                         .epilogue = c->epilogue};
    c->result.failure = problem_verify(p, &made, &c->result.error, c->failure);
}

/* ---- turns ------------------------------------------------------------------------------- */

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

static size_t padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Whether a contestant of the group takes the operands so. */
static int takes(const group_t *g, form_t form)
{
    for (int i = 0; i < g->count; i++)
        if (g->contestants[i].form == form && g->contestants[i].kind != CEILING && g->contestants[i].kind != COPY)
            return 1;
    return 0;
}

/* Bytes of a form's operands on the device, from A's to C's. */
typedef struct room_t {
    size_t a, b, c;
} room_t;

static room_t room_of(const group_t *g, form_t form)
{
    const problem_t p = problem_of(bench.options.layout, &g->shape);
    const size_t element = element_bytes(form), batch = (size_t)p.batch;
    if (!takes(g, form))
        return (room_t){0, 0, 0};
    return (room_t){padded(batch * (size_t)p.size_a * element),
                    padded((size_t)p.matrices * bytes_of_b(&g->shape, form)),
                    padded(batch * (size_t)p.size_c * element)};
}

static void forget_stored(void)
{
    for (int form = 0; form < FORMS; form++) {
        free(stored[form].a), free(stored[form].b), free(stored[form].c);
        stored[form] = (struct stored_t){NULL, NULL, NULL};
    }
}

static hgemm_status_t store(const group_t *g, const problem_t *p)
{
    forget_stored();
    for (form_t form = AS_HALVES; form < FORMS; form++) {
        const hgemm_type_t type = form_type(form);
        struct stored_t *to = &stored[form];
        if (!takes(g, form))
            continue;
        to->a = fill_elements(p->a, p->batch * p->size_a, type);
        to->b = form_is_packed(form) ? NULL : fill_elements(p->b, p->matrices * p->size_b, type);
        to->c = fill_elements(p->c, p->batch * p->size_c, type);
        if (!to->a || !to->c || (!to->b && !form_is_packed(form)))
            return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t upload_set(const group_t *g, const problem_t *p, const set_t *set)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (form_t form = AS_HALVES; form < FORMS && status == HGEMM_STATUS_SUCCESS; form++) {
        const struct operands_t *to = &set->as[form];
        const size_t element = element_bytes(form), batch = (size_t)p->batch;
        if (!takes(g, form))
            continue;
        status = hgemm_upload(bench.handle, to->a, stored[form].a, batch * (size_t)p->size_a * element);
        if (status == HGEMM_STATUS_SUCCESS)
            status = hgemm_upload(bench.handle, to->b, form_is_packed(form) ? p->weights.packed : stored[form].b,
                                  (size_t)p->matrices * bytes_of_b(&g->shape, form));
        if (status == HGEMM_STATUS_SUCCESS)
            status = hgemm_upload(bench.handle, to->c, stored[form].c, batch * (size_t)p->size_c * element);
    }
    return status;
}

/* Experts' ends lie behind all else. */
static hgemm_status_t upload_ends(const problem_t *p, char *at)
{
    bench.ends = (const int32_t *)(const void *)at;
    return p->is_grouped ? hgemm_upload(bench.handle, at, p->ends, (size_t)p->matrices * sizeof *p->ends)
                         : HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t upload_sets(const group_t *g, const problem_t *p, const set_t *sets, int count)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int i = 0; i < count && status == HGEMM_STATUS_SUCCESS; i++)
        status = upload_set(g, p, &sets[i]);
    return status;
}

/* Gives every set its places; returns where they end. */
static char *lay_out(char *at, const room_t rooms[FORMS], set_t *sets, int count)
{
    for (int i = 0; i < count; i++)
        for (int form = 0; form < FORMS; form++) {
            const room_t *r = &rooms[form];
            sets[i].as[form] = (struct operands_t){at, at + r->a, at + r->a + r->b};
            at += r->a + r->b + r->c;
        }
    return at;
}

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
