/* SPDX-License-Identifier: MIT */
/*
 * A tuning file: plans that were measured, each for a class of problems. They go before the cost model's.
 *
 *     hgemm tuning 1
 *     library 0.2.0
 *     device Tesla T4
 *     driver 12.2
 *     f16 nn 4096x4096x4096 = k5_256x256 nn x16       # what follows is for people
 *     f32 nt 8x4096x4096 types f16 packed groups 128 = weights_16x128 nt x16
 *     f32 nt 16x4096x1024 = k5_16x64_f32 nt x16 whole 0 splits 4 k 256 cublas 1.25
 *
 * The first four lines are as they are here. Then lines come in any order, each for another problem: its class
 * (problem_class.h), the plan (plan_text.h) and, where both were timed in turn, the time of cuBLAS in times of the
 * plan: above 1 the plan is the faster. Lines that are empty or begin with # do not count. A file of another library,
 * device or driver, or with a line that is not understood, or whose plan this build cannot run, counts as none.
 */
#ifndef HGEMM_TUNING_H
#define HGEMM_TUNING_H

#include "select/machine.h"
#include "device/device.h"

typedef struct tuning_t tuning_t;

/* Reads a file for a device. Returns NULL if it cannot be used; `why` is then the rest of a sentence that begins with
 * its path: "cannot be opened: ..." */
tuning_t *tuning_read(const char *path, const hgemm_device_info_t *info, char why[DEVICE_DETAIL]);

/* What selection asks. Lasts as long as the tuning does. */
const measured_t *tuning_measured(const tuning_t *tuning);

/* NULL, or why calls like this row-major problem have no entries. */
const char *tuning_fault(const problem_t *p);

/* cuBLAS's time in times of the problem's plan, 0 where the file says nothing of it. `tuning` may be NULL. */
double tuning_cublas_ratio(const tuning_t *tuning, const problem_t *p);

enum { TUNING_RATIO = 32 };

/* The words of a ratio, which follow a plan's. */
void tuning_ratio_to_text(double ratio, char text[TUNING_RATIO]);

/* NULL is allowed. */
void tuning_free(tuning_t *tuning);

enum { TUNING_HEADER = 512 };

/* The first four lines of a file of this library for a device. */
void tuning_header(const hgemm_device_info_t *info, char text[TUNING_HEADER]);

#endif
