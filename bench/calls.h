/* SPDX-License-Identifier: MIT */
/* What is timed, one call of it. */
#ifndef HGEMM_BENCH_CALLS_H
#define HGEMM_BENCH_CALLS_H

#include "run.h"

/* Bytes of op(B)'s matrix, and of an element of the others, in that form. */
size_t bytes_of_b(const shape_t *shape, form_t form);
size_t element_bytes(form_t form);

/* The contestant has failed, for that reason; 0. */
__attribute__((format(printf, 2, 3))) int fails(contestant_t *c, const char *format, ...);

/* 1 on success; otherwise the contestant has failed with the status's words. */
int succeeds(contestant_t *c, hgemm_status_t status);

/* The type of A and B in a form, and whether B is packed weights there. */
hgemm_type_t form_type(form_t form);
int form_is_packed(form_t form);

/* Bytes of the L2 cache, or what stands for them where the device does not tell. */
size_t l2_bytes(void);

/* Loads the ceiling's code, gives it random operands and learns how long an iteration takes. */
hgemm_status_t open_ceilings(void);

/* Allocates what the driver's copy copies, and learns of that copy; bench.copy is NULL where it is missing. */
hgemm_status_t open_copy(int ordinal);

/* What that copy reads, and writes as often: so much that it makes no difference what the L2 cache keeps. */
size_t copy_bytes(void);

/* Operations of one iteration of a ceiling's whole grid. */
double ceiling_operations(hgemm_accumulate_t accumulate);

/* The contestant's call from the shape alone, without pointers, with the options' scalars. */
hgemm_desc_t plan(const shape_t *s, const contestant_t *c);

/* Enqueues the contestant's call on a set, with D in `d`. 1, or 0 where the contestant has failed.
 */
int enqueue(contestant_t *c, const problem_t *p, const set_t *set, void *d, float alpha, float beta);

/* Enqueues a short kernel, which runs while more is enqueued. 1, or 0 where the contestant has failed. */
int enqueue_delay(contestant_t *c);

#endif
