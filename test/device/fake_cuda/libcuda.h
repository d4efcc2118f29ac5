/* SPDX-License-Identifier: MIT */
/* What a test tells the fake driver and what it learns from it. */
#ifndef TEST_FAKE_CUDA_H
#define TEST_FAKE_CUDA_H

#include <stddef.h>

#include "../../../src/table/args.h"

typedef struct fake_cuda_t {
    const char *failing; /* the function that fails, without its version suffix; NULL: none */
    int result;          /* with this */
    int version;
    int devices;
    int capability[4]; /* of each device: 75 is 7.5 */

    int depth;                                 /* of the stack of contexts */
    int capture_mode;                          /* 0 is the strictest, 2 relaxed; a capture runs all the time */
    int retains, allocations, modules, events; /* made and not given back */
    int retained_device;
    int launches, synchronisations;
    int shared_bytes;                            /* attribute of the last function */
    char symbol[64];                             /* its name */
    int copying;                                 /* a copy was enqueued and not waited for */
    void *copied, *synchronised, *launch_stream; /* streams of the last copy, wait and launch */
    kernel_args_t parameters;                    /* of the last launch */
} fake_cuda_t;

#endif
