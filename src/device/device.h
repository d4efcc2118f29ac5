/* SPDX-License-Identifier: MIT */
/*
 * The seam between the library and what executes its kernels. Everything above it speaks of
 * devices; only the file that implements one knows the CUDA driver or an emulator.
 */
#ifndef HGEMM_DEVICE_H
#define HGEMM_DEVICE_H

#include "device/image.h"

typedef struct device_t device_t;

enum {
    DEVICE_DETAIL = 1024,  /* bytes of a device's words on a failure */
    DEVICE_FALLBACK = 256, /* of hgemm_device_info_t.fallback */
};

typedef struct launch_t {
    unsigned grid[3];
    unsigned threads;      /* of a block, along x */
    unsigned shared_bytes; /* dynamic */
    const void *args;      /* one struct by value, laid out as on the device */
    size_t args_size;
} launch_t;

/* CU_STREAM_PER_THREAD: a default stream of the calling thread's own, apart from others' captures. */
#define DEVICE_STREAM_PER_THREAD ((void *)2)

/* What a device does. `stream` is the caller's, NULL for the default one. A function is the
 * device's own handle of a loaded kernel; an event marks a point in a stream. */
typedef struct device_ops_t {
    hgemm_status_t (*info)(device_t *, hgemm_device_info_t *);
    hgemm_status_t (*alloc)(device_t *, void **, size_t);
    hgemm_status_t (*release)(device_t *, void *);
    hgemm_status_t (*upload)(device_t *, void *stream, void *dst, const void *src, size_t);
    hgemm_status_t (*download)(device_t *, void *stream, void *dst, const void *src, size_t);
    hgemm_status_t (*load)(device_t *, const image_t *, unsigned shared_bytes, void **function);
    hgemm_status_t (*launch)(device_t *, void *stream, void *function, const launch_t *);
    hgemm_status_t (*synchronize)(device_t *, void *stream);
    hgemm_status_t (*event_create)(device_t *, void **event);
    hgemm_status_t (*event_record)(device_t *, void *event, void *stream);
    hgemm_status_t (*event_elapsed)(device_t *, void *from, void *to, float *milliseconds); /* waits for `to` */
    void (*event_destroy)(device_t *, void *event);
    void (*close)(device_t *);
} device_ops_t;

/* Every device begins with this. */
struct device_t {
    const device_ops_t *ops;
    int ordinal;                    /* of a GPU, as CUDA counts them */
    char detail[DEVICE_DETAIL];     /* words of the last failure */
    char fallback[DEVICE_FALLBACK]; /* why the emulator was opened for a GPU, or "" */
};

/* Open the device of that name ("" being the default one; see hgemm_create), or of that CUDA
 * ordinal, -1 being the first usable one, or the emulator. On failure `*device` stays and `detail`
 * may say more than the status. */
hgemm_status_t device_open(const char *name, device_t **device, char detail[DEVICE_DETAIL]);
hgemm_status_t device_open_cuda(int ordinal, device_t **device, char detail[DEVICE_DETAIL]);
hgemm_status_t device_open_t4emu(const char *options, device_t **device,
                                 char detail[DEVICE_DETAIL]); /* what follows "t4emu:", or "" */

#endif
