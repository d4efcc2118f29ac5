/* SPDX-License-Identifier: MIT */
/*
 * Machine code of kernels, as the build embeds it: the images of one kernel are compressed together, for they are
 * nearly alike, and unpacked when one is loaded.
 */
#ifndef HGEMM_IMAGE_H
#define HGEMM_IMAGE_H

#include "hgemm.h"

/* Machine code of one kernel variant. */
typedef struct image_t {
    const char *symbol;        /* entry point */
    const unsigned char *pack; /* a Zstandard frame, of fatbins one after the other */
    size_t packed;             /* bytes of that */
    size_t offset, size;       /* of this image among its contents: a fatbin of sm_75 machine code and PTX */
    int registers;             /* of a thread, in the sm_75 machine code */
} image_t;

/* Every variant of every kernel, realign and scale, sorted by symbol. The build generates them. libhgemm.so exports
 * them to the commands of its own release (cmake/exports.map.in). */
HGEMM_API extern const image_t hgemm_images[];
HGEMM_API extern const int hgemm_image_count;

/* Gives the image's fatbin, aligned for any type and the caller's to free. On failure there is none, and `detail`, of
 * `detail_size` bytes, says what is wrong, or nothing where memory ran out. */
hgemm_status_t image_unpack(const image_t *image, void **fatbin, char *detail, size_t detail_size);

#endif
