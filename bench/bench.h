/* SPDX-License-Identifier: MIT */
/* What the parts of bench_hgemm share: the run, its problems and who takes part in them. */
#ifndef HGEMM_BENCH_H
#define HGEMM_BENCH_H

#include "gbench.h"
#include "handle.h"
#include "options.h"
#include "peers.h"
#include "verify.h"

typedef struct bench_t {
    options_t options;
    hgemm_handle_t handle;
    hgemm_device_info_t info;
    cublas_t *cublas; /* NULL: not there */
    void *events[2];
    void *ceilings[2]; /* functions, by hgemm_accumulate_t */
    void *ceiling_in, *ceiling_out;
    double delay_iterations; /* of one block of ceiling_f16 that last DELAY_SECONDS */
} bench_t;

extern bench_t bench;

typedef enum kind_t { CEILING, CUBLAS_HGEMM, CUBLAS_GEMM_EX, KERNEL } kind_t;

typedef struct contestant_t {
    char note[64];
    gbench_case_t result;
    kind_t kind;
    hgemm_accumulate_t accumulate;
    int kernel;
    char name[48], failure[VERIFY_WORDS];
    double *seconds, *mhz; /* of the repetitions */
} contestant_t;

typedef struct group_t {
    shape_t shape;
    char name[96];
    int number; /* of this group, from 1 */
    int of;     /* how many groups there are */
    int measured;
    int count;
    contestant_t *contestants;
} group_t;

/* One copy of the operands on the device. */
typedef struct set_t {
    char *a, *b, *c;
} set_t;

/* ---- contest.c: measures ----------------------------------------------------------------------
 */

/* Loads the ceiling's code, gives it random operands and learns how long an iteration takes. */
hgemm_status_t open_ceilings(void);

/* Operations of one iteration of a ceiling's whole grid. */
double ceiling_operations(hgemm_accumulate_t accumulate);

/* The contestant's call, without pointers. */
hgemm_desc_t describe_call(const contestant_t *c, const problem_t *p, float alpha, float beta);

/* The same from the shape alone, with the options' scalars. */
hgemm_desc_t plan(const shape_t *s, hgemm_accumulate_t accumulate, int kernel);

/* Enqueues the contestant's call on a set, with D in `d`. 1, or 0 where the contestant has failed.
 */
int enqueue(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha,
            float beta);

/* Verifies all contestants of the problem, then hands those that are right to `use`. */
typedef void group_fn(group_t *g, const problem_t *p, const set_t *sets, int set_count);
void prove_group(group_t *g, group_fn *use);

/* Gives the contestants their times. */
group_fn time_group;

/* ---- facts.c: what is known without a GPU ---------------------------------------------------- */

/* Kernels, and what would run on a T4 for each problem. */
void print_facts(void);

/* ---- emulated.c, in builds with the emulator ---------------------------------------------------
 */

/* Runs the problems on the emulated T4 and prints what it counted, in the options' format. Returns
 * the number of failures, -1 where the output cannot be written. */
int print_emulated(group_t *groups, int count);

#endif
