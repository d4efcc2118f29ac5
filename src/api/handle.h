/* SPDX-License-Identifier: MIT */
#ifndef HGEMM_HANDLE_H
#define HGEMM_HANDLE_H

#include "select/selection.h"
#include "problem/problem.h"
#include "select/problem_class.h"
#include "select/tuning.h"

enum { KNOWN_SETS = 64, KNOWN_WAYS = 4, MOST_GROWTHS = 8 };

typedef struct known_plan_t {
    problem_class_t problem;
    int kernel;  /* that the problem names */
    plan_t plan; /* of KERNEL_NONE: nothing is known */
} known_plan_t;

struct hgemm_handle {
    device_t *device;
    void *stream; /* the caller's, NULL for the default one */
    hgemm_device_info_t info;
    machine_t machine; /* its measured plans are those of `tuning` */
    tuning_t *tuning;  /* NULL: none */
    void *workspace;   /* in use: counters, all zero, sums of split k, aligned copies; NULL: none */
    size_t workspace_bytes;
    void *own_workspace; /* the handle's, NULL: none could be had */
    size_t own_workspace_bytes;
    size_t most_workspace;          /* up to which it may grow */
    void *outgrown[MOST_GROWTHS];   /* those that it had before: kernels and graphs may use them still */
    void *functions[VARIANT_COUNT]; /* what the device loaded, by variant_index; NULL: not yet */
    void *realign, *scale, *recompute, *pack, *unpack; /* the same for these kernels */
    known_plan_t known[KNOWN_SETS][KNOWN_WAYS]; /* what was chosen of late: of a hash of the class, the latest first */
};

/* Bytes of workspace that a plan may need: those that there are, or up to which the handle's own may grow. */
size_t handle_room(hgemm_handle_t handle);

/* Lets it grow to so many, if need be. 0: that cannot be, now and later. */
int handle_make_room(hgemm_handle_t handle, size_t bytes);

/* select_plan for the handle's machine and workspace, which then has room for the plan. A problem that comes again is
 * not priced again: that takes a host as long as a small product takes a GPU. */
hgemm_status_t handle_choose(hgemm_handle_t handle, const problem_t *row_major, plan_t *plan);

/* The words of the thread's last failure of a call without a handle, DEVICE_DETAIL bytes. */
char *thread_detail(void);

/* Loads what the plan runs, unless it is loaded. */
hgemm_status_t handle_load(hgemm_handle_t handle, const plan_t *plan);

/* The same for the kernel scale. */
hgemm_status_t handle_load_scale(hgemm_handle_t handle);

/* After a launch that failed, and may have stopped midway, as the emulated T4 does: no part of a split
 * tile counts as having come. The device's words for the failure stay. */
void handle_forget_parts(hgemm_handle_t handle);

/* Enqueues a plan of select_plan's, or one like it, for a checked row-major problem. */
hgemm_status_t handle_launch(hgemm_handle_t handle, const problem_t *row_major, const plan_t *plan);

#endif
