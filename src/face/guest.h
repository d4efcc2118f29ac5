/* SPDX-License-Identifier: MIT */
/*
 * guest.h - the face over a machine that another program has: libcuda then gives out that machine's memory, and that
 * program runs the kernels. So bench_hgemm times CUTLASS's on the machine that it times hgemm's on.
 */
#ifndef FACE_GUEST_H
#define FACE_GUEST_H

#include "turing/launch.h"

typedef struct face_host {
    turing_memory_t *memory; /* which outlives all calls */
    /* Runs a kernel with the grid, block, shared memory and parameters of `launch`, whose other members are the host's
     * to set. False: it failed; then the launch returns an error, which does not stay. */
    bool (*run)(void *user, const turing_kernel_t *kernel, turing_launch_t *launch);
    void *user;
} face_host_t;

/* To be called before any entry point of CUDA. Both sides must have been built together. */
typedef void turing_face_visit_fn(const face_host_t *host);
turing_face_visit_fn turing_face_visit;

#endif
