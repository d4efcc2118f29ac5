/* SPDX-License-Identifier: MIT */
/*
 * The hgemm handles behind the door. A handle owns a workspace, so each stream has one of its own: work of one stream
 * is in order, whichever thread or cuBLAS handle it comes from. The streams that a context has after the first
 * POOL_STREAMS, and all captures (a graph may run beside anything), share a handle without a workspace, which has
 * no state that its kernels could meet in. Handles are never given back: graphs may hold their kernels.
 */
#ifndef HGEMM_CUBLAS_POOL_H
#define HGEMM_CUBLAS_POOL_H

#include "hgemm.h"

enum { POOL_STREAMS = 8, POOL_CONTEXTS = 32 };

/* A handle, locked by its user. */
typedef struct lease_t {
    hgemm_handle_t handle;
    struct slot_t *slot;
    int capability;  /* of its GPU: 75 is 7.5 */
    int is_captured; /* what is enqueued goes into a graph */
} lease_t;

/* A handle for `stream` in the calling thread's context, set to that stream. Gives NULL, or why there is none:
 * words that last. With NULL the caller has the handle until pool_return. */
const char *pool_lease(void *stream, lease_t *lease);
void pool_return(const lease_t *lease);

/* Two floats in device memory, which no work but what is enqueued by this lease touches, or by later ones of the same
 * stream; in a graph none but this call. NULL where there are none: on a stream without a handle of its own. */
float *pool_scalars(const lease_t *lease);

#endif
