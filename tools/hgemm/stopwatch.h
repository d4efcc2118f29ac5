/* SPDX-License-Identifier: MIT */
/* Times plans of one problem on a device: operands, proof that plans agree, turns. */
#ifndef HGEMM_TOOL_STOPWATCH_H
#define HGEMM_TOOL_STOPWATCH_H

#include "cublas.h"
#include "api/handle.h"
#include "select/problem_class.h"

typedef struct stopwatch_t stopwatch_t;

/* Gives a problem operands in device memory, so many copies of them that none is found in the L2 cache, where memory
 * allows. Returns NULL, with words, where it cannot be had. */
stopwatch_t *stopwatch_open(hgemm_handle_t handle, const problem_class_t *problem, const char **fault);
void stopwatch_close(stopwatch_t *watch);

/* The problem, on the first copy of its operands. */
problem_t stopwatch_problem(const stopwatch_t *watch);

/* In the place of a plan, NULL is cuBLAS's product, without an epilogue: once this has said by what. */
void stopwatch_set_cublas(stopwatch_t *watch, const cublas_t *cublas);

/* Before the first turn: runs a plan on integers whose sums are exact in any order. Returns 0, with words, if it fails
 * or computes other bits than the first plan that was proved. */
int stopwatch_prove(stopwatch_t *watch, const plan_t *plan, const char **fault);

/* Repetitions of some plans in alternation, in another order each time; plan i takes seconds[i * repetitions + r] in
 * repetition r, per launch. Returns 0, with words, where the device fails. */
int stopwatch_time(stopwatch_t *watch, const plan_t *const plans[], int count, int repetitions, double *seconds,
                   const char **fault);

#endif
