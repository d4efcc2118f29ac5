/* SPDX-License-Identifier: MIT */
/* Kernel images, unpacked. */
#include "device/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Unpacks up to `size` bytes more; returns how many came, or one of the decompressor's errors. */
static size_t unpack(ZSTD_DStream *stream, ZSTD_inBuffer *from, void *to, size_t size)
{
    ZSTD_outBuffer out = {to, size, 0};
    size_t result; /* 0: the end of the frame */
    do {
        result = ZSTD_decompressStream(stream, &out, from);
        if (ZSTD_isError(result))
            return result;
    } while (out.pos < size && result && from->pos < from->size);
    return out.pos;
}

/* The same for an image, and what is before it. Nothing behind it is unpacked. */
static size_t unpack_image(ZSTD_DStream *stream, const image_t *image, void *fatbin)
{
    unsigned char passed[1 << 14];
    ZSTD_inBuffer from = {image->pack, image->packed, 0};
    for (size_t left = image->offset; left;) {
        size_t step = left < sizeof passed ? left : sizeof passed, got = unpack(stream, &from, passed, step);
        if (got != step)
            return ZSTD_isError(got) ? got : 0;
        left -= step;
    }
    return unpack(stream, &from, fatbin, image->size);
}

hgemm_status_t image_unpack(const image_t *image, void **fatbin, char *detail, size_t detail_size)
{
    void *made = malloc(image->size);
    ZSTD_DStream *stream = made ? ZSTD_createDStream() : NULL;
    size_t got = stream ? unpack_image(stream, image, made) : 0;
    ZSTD_freeDStream(stream);
    if (got == image->size) {
        *fatbin = made;
        return HGEMM_STATUS_SUCCESS;
    }
    free(made);
    if (!stream || ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) {
        detail[0] = '\0';
        return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    snprintf(detail, detail_size, "The image of %s is damaged: %s.", image->symbol,
             ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it ends too early");
    return HGEMM_STATUS_DEVICE_ERROR;
}
