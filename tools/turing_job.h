/* SPDX-License-Identifier: MIT */
/* turing_job.h - what `turing run` has read of its file (turing_run.c), and what it tells of a launch
 * (turing_results.c). */
#ifndef TURING_JOB_H
#define TURING_JOB_H

#include "launch.h"

enum { MOST_BUFFERS = 64, MOST_WORDS = 512, MOST_OUTPUTS = 64, LINE = 8192, MOST_THREADS = 1024 };

typedef struct buffer {
    char name[64];
    char type[8];
    size_t count;
    uint64_t address;
} buffer_t;

typedef struct output {
    enum { PRINT, DUMP, EXPECT } what;
    size_t buffer, first, count;
    char path[512]; /* of DUMP, and of EXPECT unless `values` are given */
    double *values, tolerance;
    unsigned line;
} output_t;

typedef struct job {
    turing_module_t *module;
    const turing_kernel_t *kernel;
    turing_memory_t *mem;
    turing_launch_t launch;
    uint8_t params[4096];
    uint32_t n_args;
    buffer_t buffer[MOST_BUFFERS];
    size_t n_buffers;
    output_t output[MOST_OUTPUTS];
    size_t n_outputs;
    bool counters, lines, time, launched, differs;
    turing_clock_t clock;
    uint64_t violations;
    const char *path;
    unsigned line;
} job_t;

/* ---- turing_run.c ---- */

/* Says on stderr what is wrong with the file's line; false. */
bool complain(const job_t *job, const char *what, const char *detail);
bool load_file(const char *path, uint8_t *data, size_t size); /* its first bytes */

/* ---- turing_results.c ---- */

/* As it is found, so that who waits for a kernel sees it. */
void print_violation(void *user, const turing_violation_t *v);
void print_count(void *user, const turing_violation_t *v);   /* how often it was found in all */
void print_text(void *user, const char *text, size_t bytes); /* of the kernel's own */
void print_line(void *user, turing_line_t line, const turing_count_t *c);
void print_counters(const job_t *job, const turing_counters_t *c);
void print_time(const turing_time_t *t);

/* Prints, dumps and compares buffers as the file asks, and forgets that it did. False if one cannot be; that one
 * differs is the job's. */
bool write_outputs(job_t *job);

#endif
