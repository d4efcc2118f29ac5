/* SPDX-License-Identifier: MIT */
#ifndef HGEMM_HANDLE_H
#define HGEMM_HANDLE_H

#include "select.h"

struct hgemm_handle {
    device_t *device;
    void *stream;                   /* the caller's, NULL for the default one */
    machine_t machine;
    void *workspace;                /* for sums of split k, its counters zero; NULL: there is none */
    size_t workspace_bytes;
    void *functions[VARIANT_COUNT]; /* what the device loaded, by variant_index; NULL: not yet */
};

/* Loads the variant unless it is loaded. */
hgemm_status_t handle_load(hgemm_handle_t handle, variant_t variant, void **function);

#endif
