/* SPDX-License-Identifier: MIT */
/* The few things that the door asks the CUDA driver, which the program has loaded. */
#ifndef HGEMM_CUBLAS_DRIVER_H
#define HGEMM_CUBLAS_DRIVER_H

#include <stdint.h>

/* Makes the lock anew in the child of a fork: a thread may hold it that the child does not have. */
void driver_renew_lock(void);

/* The calling thread's current context, NULL where it has none or there is no driver. */
void *driver_context(void);

typedef struct driver_device_t {
    int ordinal;    /* as CUDA counts devices */
    int capability; /* 75 is 7.5 */
    int is_primary; /* the current context is the device's primary one, in which hgemm works */
} driver_device_t;

/* The device of the current context. Gives 0 where the driver does not tell. */
int driver_device(driver_device_t *device);

typedef enum driver_capture_t { DRIVER_NOT_CAPTURING, DRIVER_CAPTURING, DRIVER_UNKNOWN } driver_capture_t;

driver_capture_t driver_capture(void *stream);

/* A number that no other stream of the process has had or will have. Gives 0 where the driver has none: before 12.0
 * for streams that are not the context's legacy default one. */
int driver_stream_id(void *stream, uint64_t *id);

#endif
