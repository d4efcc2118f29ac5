/* SPDX-License-Identifier: MIT */
/* The run that the parts of bench_hgemm share: its options, device, problems and who takes part in them. */
#ifndef HGEMM_BENCH_RUN_H
#define HGEMM_BENCH_RUN_H

#include "gbench.h"
#include "internals.h"
#include "launched.h"
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
    char images[LAUNCHED_WORDS];  /* of hgemm: what its calls launched */
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

/* The device that was asked for, "" for any. */
const char *device_name(void);

#endif
