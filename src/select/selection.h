/* SPDX-License-Identifier: MIT */
/* Which kernel runs a problem, and how: pure functions of a checked row-major problem and the GPU. */
#ifndef HGEMM_SELECTION_H
#define HGEMM_SELECTION_H

#include "select/feasible.h"
#include "select/machine.h"

/* Writes the plan that was measured for the problem, if there is one that can run it; else returns 0. */
int measured_plan(const problem_t *p, const machine_t *machine, size_t workspace_bytes, plan_t *plan);

/* Chooses the plan for a problem. If it names a kernel, the plan uses that and splits no tile. Else the plan is the
 * machine's measured one, if there is one that can run the problem; else the cheapest by the cost model. The status is
 * HGEMM_STATUS_NOT_SUPPORTED if the named kernel, or every kernel of this build, cannot run the problem. On one
 * machine, with one workspace, problems of one class (problem_class.h) that name the same kernel, or none, have the
 * same plan. */
hgemm_status_t select_plan(const problem_t *p, const machine_t *machine, size_t workspace_bytes, plan_t *plan);

/* The words for a problem that no kernel, or not the one that it names, can run. */
void describe_unsupported(const problem_t *p, char words[DEVICE_DETAIL]);

typedef struct priced_plan_t {
    plan_t plan;
    double clocks; /* by the cost model */
} priced_plan_t;

/* Clocks of a plan by the cost model. */
double estimate_clocks(const problem_t *p, const machine_t *machine, const plan_t *plan);

/* Writes the plans that the cost model finds cheapest, `most` at most (1 or more), the cheapest first; returns how
 * many. */
int rank_plans(const problem_t *p, const machine_t *machine, size_t workspace_bytes, priced_plan_t *best, int most);

#endif
