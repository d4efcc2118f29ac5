/* SPDX-License-Identifier: MIT */
/*
 * A C face of Google Benchmark, as narrow as bench_hgemm needs it.
 *
 * Google Benchmark runs one benchmark after another; on a GPU whose clock follows its temperature
 * that favours whoever runs first. So a case hands in times of its own (manual time), and cases of
 * one group are measured together, in alternation, when the first of them is asked.
 */
#ifndef HGEMM_GBENCH_H
#define HGEMM_GBENCH_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gbench_case_t {
    const char *group, *name;           /* together they name the benchmark: "<group>/<name>" */
    double operations, bytes;           /* of one call */
    int cublas, cutlass, ceiling, copy; /* numbers of the cases it is compared with, -1: none */
    double published;                   /* operations per second that others have published, 0: none */
    int repetitions;

    /* Called once, before the first repetition; fills in what follows. */
    void (*measure)(void *context);
    void *context;

    /* Of each repetition; but for the seconds of a call, 0 is unknown: clock, a reading of the
     * board's power in watts, and the energy that it used in a window of so many seconds. */
    const double *seconds, *mhz, *power, *joules, *window;
    /* Modelled: seconds that a pair of events around the call of an idle GPU would show beside its own. */
    const double *beside;
    double error;        /* of the result, relative to its own size, -1: not checked */
    const char *failure; /* why its times do not count, NULL: they do */
    const char *note;    /* such as the kernel that was chosen, may be NULL */
    const char *on_t4;   /* what would be chosen on a T4, may be NULL */
    const char *images;  /* those of hgemm that its calls launched, with blanks between them, may be "" */
} gbench_case_t;

/* Returns the case's number: 0, 1, ... It must live until gbench_run returns. */
int gbench_register(gbench_case_t *c);

/* A line of what the results depend on: GPU, driver, options. Strings are copied. */
void gbench_context(const char *key, const char *value);

/* Runs all cases and prints a table, unless `format` is "csv" or "json". With a path the format
 * goes there and the table to stdout. The table says if times are modelled, and then leaves out what
 * only a GPU has. Returns the number of cases that failed, -1 where the file cannot be written. */
int gbench_run(const char *format, const char *path, int modelled);

#ifdef __cplusplus
}
#endif
#endif
