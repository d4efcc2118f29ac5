/* SPDX-License-Identifier: MIT */
/*
 * What bench_hgemm needs of the library beyond hgemm.h: events and launches on the handle's device, the plans that
 * selection weighs, and the emulated T4's counters. internals.c alone includes headers of src/.
 */
#ifndef HGEMM_BENCH_INTERNALS_H
#define HGEMM_BENCH_INTERNALS_H

#include "hgemm.h"

/* ---- the device ------------------------------------------------------------------------------- */

/* Of a GPU, as CUDA counts them. */
int internals_ordinal(hgemm_handle_t handle);

/* Events mark points of the default stream; the time between two waits for the second. */
hgemm_status_t internals_event_create(hgemm_handle_t handle, void **event);
hgemm_status_t internals_event_record(hgemm_handle_t handle, void *event);
hgemm_status_t internals_event_elapsed(hgemm_handle_t handle, void *from, void *to, double *seconds);
void internals_event_destroy(hgemm_handle_t handle, void *event);

/* The kernel ceiling_f16 or ceiling_f32 (ptx/ceiling.cu), and a launch of it on the default stream: blocks and
 * threads in one dimension, `args` one struct by value. */
hgemm_status_t internals_load_ceiling(hgemm_handle_t handle, hgemm_accumulate_t accumulate, void **function);
hgemm_status_t internals_launch(hgemm_handle_t handle, void *function, int blocks, int threads, const void *args,
                                size_t args_size);

/* ---- selection -------------------------------------------------------------------------------- */

enum { INTERNALS_WORDS = 64 }; /* bytes of a plan in words */

/* A way to run a problem, made by malloc. */
typedef struct internals_plan_t internals_plan_t;

/* Those of automatic selection for the handle's device that its model finds cheapest, the cheapest first: `most` at
 * most, each to be freed. Returns how many. */
int internals_rank_plans(hgemm_handle_t handle, const hgemm_desc_t *desc, int most, internals_plan_t **plans);

/* Enqueues one of the plans of a problem. */
hgemm_status_t internals_run_plan(hgemm_handle_t handle, const internals_plan_t *plan, const hgemm_desc_t *desc);

/* A plan in few words, such as "k5_64x64 k/8" (select/plan_text.h, plan_to_label). */
void internals_describe_plan(const internals_plan_t *plan, char words[INTERNALS_WORDS]);

/* In the same words what selection chooses for the handle's device; where the handle is NULL, for the device of `info`;
 * where that is NULL, too, for a T4. */
hgemm_status_t internals_describe_choice(hgemm_handle_t handle, const hgemm_device_info_t *info,
                                         const hgemm_desc_t *desc, char words[INTERNALS_WORDS]);

/* Blocks of a kernel that a T4 holds at one time; 0: the kernel is for newer GPUs only. */
int internals_blocks_on_t4(int kernel);

/* ---- the emulated T4, in builds with the emulator --------------------------------------------- */

struct face_host;
struct turing_counters;

/* From now on a launch leaves there what it counted (turing/launch.h); NULL ends it. */
void internals_count(hgemm_handle_t handle, struct turing_counters *counters);

/* Has a libcuda that is made of the emulator (src/face/guest.h) work on the handle's machine: `visit` is its
 * turing_face_visit. */
typedef void internals_visit_fn(const struct face_host *host);
void internals_receive(hgemm_handle_t handle, internals_visit_fn *visit);

/* Of a handle whose times are modelled: from now on a constant of the model (turing/time.def) has that value. 0 where
 * there is no such constant, or it cannot have it. */
int internals_set_clock(hgemm_handle_t handle, const char *name, double value);

/* Of a handle whose times are modelled: the next launch finds nothing in the L2 cache. */
void internals_empty_l2(hgemm_handle_t handle);

/* Of a handle whose times are modelled: seconds that a pair of events around what is launched between these two, on a
 * T4 after a pause, would show beside the kernels' own. */
void internals_begin_beside(hgemm_handle_t handle);
double internals_end_beside(hgemm_handle_t handle);

/* Whether a kernel is there to be read: a rung of the ladder, shown among the others whatever its own sums are. */
int internals_is_plain(int kernel);

#endif
