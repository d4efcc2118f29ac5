/* SPDX-License-Identifier: MIT */
/* What the parts of bench_hgemm share: the run, its problems and who takes part in them. */
#ifndef HGEMM_BENCH_H
#define HGEMM_BENCH_H

#include "gbench.h"
#include "internals.h"
#include "options.h"
#include "peers.h"
#include "verify.h"

typedef struct bench_t {
    options_t options;
    hgemm_handle_t handle;
    hgemm_device_info_t info;
    hgemm_weights_t weights;  /* of the last call that was described: the library looks at them during the call only */
    const int32_t *ends;      /* of experts' rows, on the device */
    cublas_t *cublas;         /* NULL: not there */
    const cutlass_t *cutlass; /* NULL: not there */
    copy_fn *copy;            /* NULL: not there */
    char *copied;             /* memory that it copies: copy_bytes() from here to there */
    void *events[2];
    void *ceilings[2]; /* functions, by hgemm_accumulate_t */
    void *ceiling_in, *ceiling_out;
    double delay_iterations; /* of one block of ceiling_f16 that last DELAY_SECONDS */
} bench_t;

extern bench_t bench;

typedef enum kind_t { CEILING, COPY, CUBLAS, CUBLAS_TF32, CUTLASS, KERNEL, PLAN } kind_t;

/* How a contestant takes the operands: rounded to halves, or as the options' type and weights have them. */
typedef enum form_t { AS_HALVES, AS_ASKED, FORMS } form_t;

/* Which scales of BF16 operands the caller gives; the call finds the others. */
typedef enum scales_t { SCALES_GIVEN, SCALES_B_GIVEN, SCALES_FOUND, SCALES } scales_t;

typedef struct contestant_t {
    char note[INTERNALS_WORDS], on_t4[INTERNALS_WORDS];
    gbench_case_t result;
    kind_t kind;
    form_t form;
    scales_t scales;
    hgemm_accuracy_t accuracy;
    hgemm_accumulate_t accumulate;
    int kernel;                   /* of hgemm; of CUTLASS the configuration */
    int slices, parallel;         /* of CUTLASS's call, see peers_cutlass.h */
    const internals_plan_t *plan; /* of hgemm: what a PLAN runs */
    epilogue_t epilogue;          /* of hgemm */
    char name[80], failure[VERIFY_WORDS];
    double *seconds, *mhz, *power, *joules, *window, *beside; /* of the repetitions, see gbench_case_t */
    double shown_beside;                                      /* the same of the last turn */
} contestant_t;

typedef struct group_t {
    shape_t shape;
    char name[SHAPE_NAME + 4];
    int number; /* of this group, from 1 */
    int of;     /* how many groups there are */
    int measured;
    int next_set; /* of operands, which the next timed launch takes */
    int count;
    contestant_t *contestants;
} group_t;

/* One copy of the operands on the device, one after the other, in each form that contestants take. */
typedef struct set_t {
    struct operands_t {
        char *a, *b, *c;
    } as[FORMS];
} set_t;

/* Whether the device is an emulated T4: one that counts, or one whose events tell what a timing model says, no
 * measurement. */
int emulated(void);
int modelled(void);

/* Whether launches that are timed compute no results. */
int is_dry(void);

/* Whether A and B are something else than halves: then products of halves are there to be compared with. */
int typed(void);

/* Bytes of op(B)'s matrix, and of an element of the others, in that form. */
size_t bytes_of_b(const shape_t *shape, form_t form);
size_t element_bytes(form_t form);

/* ---- contestants.c: who takes part -------------------------------------------------------------
 */

/* Baselines come first, so that they are known when a kernel is compared with them. */
void add_contestants(group_t *g);

/* ---- calls.c: what is timed --------------------------------------------------------------------
 */

/* The contestant has failed, for that reason; 0. */
__attribute__((format(printf, 2, 3))) int fails(contestant_t *c, const char *format, ...);

/* 1 on success; otherwise the contestant has failed with the status's words. */
int succeeds(contestant_t *c, hgemm_status_t status);

/* The type of A and B in a form, and whether B is packed weights there. */
hgemm_type_t form_type(form_t form);
int form_is_packed(form_t form);

/* Bytes of the L2 cache, or what stands for them where the device does not tell. */
size_t l2_bytes(void);

/* Loads the ceiling's code, gives it random operands and learns how long an iteration takes. */
hgemm_status_t open_ceilings(void);

/* Allocates what the driver's copy copies, and learns of that copy; bench.copy is NULL where it is missing. */
hgemm_status_t open_copy(int ordinal);

/* What that copy reads, and writes as often: so much that it makes no difference what the L2 cache keeps. */
size_t copy_bytes(void);

/* Operations of one iteration of a ceiling's whole grid. */
double ceiling_operations(hgemm_accumulate_t accumulate);

/* The contestant's call from the shape alone, without pointers, with the options' scalars. */
hgemm_desc_t plan(const shape_t *s, const contestant_t *c);

/* Enqueues the contestant's call on a set, with D in `d`. 1, or 0 where the contestant has failed.
 */
int enqueue(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha, float beta);

/* Enqueues a short kernel, which runs while more is enqueued. 1, or 0 where the contestant has failed. */
int enqueue_delay(contestant_t *c);

/* ---- timing.c: measures ------------------------------------------------------------------------
 */

/* Computes D from the first set and proves it; the contestant fails where it is wrong. Kernels of
 * hgemm write integer problems to a matrix of their own, `apart`, that was filled with NaN; all
 * else is in place, as it is timed. `host` has room for D. */
void verify(contestant_t *c, const problem_t *p, const set_t *set, char *apart, void *host);

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

/* Verifies all contestants of the problem, then hands those that are right to `use`. */
typedef void group_fn(group_t *g, const problem_t *p, const set_t *sets, int set_count);
void prove_group(group_t *g, group_fn *use);

/* Gives the contestants their times. */
group_fn time_group;

/* ---- energy.c ----------------------------------------------------------------------------------
 */

/* A turn of launches back to back during which the GPU's energy counter is watched; `call` is about
 * how many seconds one lasts. Fills in the repetition. 1, or 0 where the contestant has failed. */
int take_energy_turn(contestant_t *c, const problem_t *p, const set_t *sets, int set_count, int *next, double call,
                     int repetition);

/* ---- qualify.c: which of CUTLASS's configurations take part ------------------------------------
 */

typedef struct hopefuls_t {
    contestant_t *all;
    int count;
} hopefuls_t;

/* Every configuration and slicing of k that can run the problem, for each of the accumulators that
 * the group's contestants of kind CUTLASS have. Pointers are taken from the set. */
hopefuls_t find_hopefuls(const group_t *g, const problem_t *p, const set_t *set);

/* Gives the group's contestants of kind CUTLASS the hopefuls that are right and fastest in a few
 * turns, those that have failed left out. Proves them with this problem. */
void qualify(group_t *g, hopefuls_t *hopefuls, const problem_t *p, const set_t *sets, int set_count, void *host);

/* After the contest: the first contestant of CUTLASS, whose result is shown, gets the better. */
void crown(group_t *g);

/* ---- facts.c: what is known without a GPU ---------------------------------------------------- */

/* Kernels, and what would run on a T4 for each problem. */
void print_facts(void);

/* What the library chooses on the device of bench.info, as the results of a timed run say it: JSON, on stdout. */
void print_choices(const group_t *groups, int count);

/* ---- emulated.c, in builds with the emulator ---------------------------------------------------
 */

/* Runs the problems on the emulated T4 and prints what it counted, in the options' format. Returns
 * the number of failures, -1 where the output cannot be written. */
int print_emulated(group_t *groups, int count);

#endif
