/* SPDX-License-Identifier: MIT */
/*
 * A device for tests of the host library: device memory is host memory, it records what it is
 * asked, and a launch computes the product by the definition, from the kernel's arguments alone.
 */
#ifndef TEST_FAKE_DEVICE_H
#define TEST_FAKE_DEVICE_H

#include "api/handle.h"

typedef struct fake_device_t {
    device_t base;
    hgemm_status_t load_status, launch_status; /* what these calls answer */
    int loads, launches, synchronisations, closes;
    const image_t *image; /* of the last load or launch */
    void *stream;         /* of the last launch */
    launch_t launch;      /* the last one, its args being `args` */
    kernel_args_t args;
    int64_t matrices; /* of all launches */
    int compute;      /* 0: record only */
} fake_device_t;

void fake_device_init(fake_device_t *device);

#endif
