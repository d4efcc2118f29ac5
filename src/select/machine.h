/* SPDX-License-Identifier: MIT */
/* What selection needs to know of a GPU. */
#ifndef HGEMM_MACHINE_H
#define HGEMM_MACHINE_H

#include "problem/problem.h"

struct plan_t;

/* Plans that were measured on a GPU, which go before the cost model's. `find` writes the one for a row-major problem,
 * or returns 0; it alone knows what `entries` are. */
typedef struct measured_t {
    int (*find)(const void *entries, const problem_t *p, struct plan_t *plan);
    const void *entries;
} measured_t;

typedef struct machine_t {
    int multiprocessors;
    int shared_bytes, threads; /* limits of a multiprocessor */
    size_t l2_bytes;
    size_t workspace_bytes;     /* that a handle allocates, ... */
    size_t most_workspace;      /* ... and up to which that may grow */
    int is_newer;               /* than Turing: priced as a Hopper GPU */
    int has_t4_code;            /* it runs machine code for a T4, not what is compiled from PTX for newer GPUs */
    const measured_t *measured; /* NULL: none */
} machine_t;

extern const machine_t machine_t4;

machine_t machine_of(const hgemm_device_info_t *info);

/* Shared memory that a block of a kernel takes. */
int shared_bytes_on(const machine_t *machine, int kernel);

#endif
