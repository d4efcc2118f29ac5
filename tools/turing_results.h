/* SPDX-License-Identifier: MIT */
/* turing_results.h - what `turing run` tells of a launch. */
#ifndef TURING_RESULTS_H
#define TURING_RESULTS_H

#include "turing_job.h"

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
