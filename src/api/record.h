/* SPDX-License-Identifier: MIT */
/*
 * What the environment asks to be told of calls. Both are read once, before the first call of the process.
 *     HGEMM_LOG=1, HGEMM_LOG=FILE    a line to stderr, or to the end of a file, for each new call: a command of
 *                                    bench_hgemm; and lines that begin with # for what is odd
 *     HGEMM_RECORD=FILE              each shape once, at the end of a file that bench_hgemm --shapes and hgemm tune
 *                                    --shapes read
 */
#ifndef HGEMM_RECORD_H
#define HGEMM_RECORD_H

#include "select/feasible.h"

/* Tells of a problem for which a handle chose a plan. A handle asks for each problem again when it has forgotten the
 * choice: what was told is not told twice. A problem without a product is not told of. */
void record_call(device_t *device, const problem_t *row_major, const plan_t *plan);

/* Writes a line for people to the log: "# hgemm: ..." */
__attribute__((format(printf, 1, 2))) void record_remark(const char *format, ...);

#endif
