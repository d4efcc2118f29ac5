/* SPDX-License-Identifier: MIT */
/* turing_job.h - what `turing run` has read of its file. */
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

/* Says on stderr what is wrong with the file's line; false. */
bool complain(const job_t *job, const char *what, const char *detail);
bool load_file(const char *path, uint8_t *data, size_t size); /* its first bytes */

#endif
