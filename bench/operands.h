/* SPDX-License-Identifier: MIT */
/* The operands of a problem in each form that contestants take: on the host, and in sets on the device. */
#ifndef HGEMM_BENCH_OPERANDS_H
#define HGEMM_BENCH_OPERANDS_H

#include "run.h"

/* Bytes of a form's operands on the device, from A's to C's; none where no contestant of the group takes it. */
typedef struct room_t {
    size_t a, b, c;
} room_t;
room_t room_of(const group_t *g, form_t form);

/* Gives every set its places; returns where they end. */
char *lay_out(char *at, const room_t rooms[FORMS], set_t *sets, int count);

/* Makes the operands of a problem on the host, in place of the last one's, until they are forgotten. */
hgemm_status_t store(const group_t *g, const problem_t *p);
void forget_stored(void);

/* C as stored in that form. */
const void *stored_c(form_t form);

/* Copies what is stored to the device: into a set, into all, and experts' ends to a place of their own, bench.ends. */
hgemm_status_t upload_set(const group_t *g, const problem_t *p, const set_t *set);
hgemm_status_t upload_sets(const group_t *g, const problem_t *p, const set_t *sets, int count);
hgemm_status_t upload_ends(const problem_t *p, char *at);

#endif
