/* SPDX-License-Identifier: MIT */
/*
 * pack_images PACK OTHER FILE... - the files, one after the other, as one Zstandard frame. Its window is as long as
 * they are, so that each is told by what it has in common with any before it. Run by the build, for the images of each
 * kernel. Compressing is slow, and the same for all builds of the same images: where PACK holds these files already, or
 * OTHER, which may be another build's or none, that is it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Higher ones gain 3% of the bytes and take twice the time. */
enum { LEVEL = 17 };

static int refuse(const char *path)
{
    fprintf(stderr, "pack_images: ");
    perror(path);
    return EXIT_FAILURE;
}

/* Appends the file to *data, which holds *size bytes. */
static int read_file(const char *path, unsigned char **data, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t got = 0;
    do {
        enum { STEP = 1 << 20 };
        unsigned char *more = realloc(*data, *size + STEP);
        if (!more)
            break;
        *data = more;
        *size += got = fread(more + *size, 1, STEP, file);
    } while (got);
    const int is_read = feof(file) && !ferror(file);
    return fclose(file) == 0 && is_read;
}

static size_t compress(unsigned char *packed, size_t most, const unsigned char *data, size_t size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    int window = ZSTD_cParam_getBounds(ZSTD_c_windowLog).lowerBound;
    while ((size_t)1 << window < size)
        window++;
    size_t result = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
    if (!ZSTD_isError(result))
        result = ZSTD_compress2(context, packed, most, data, size);
    ZSTD_freeCCtx(context);
    return result;
}

/* The frame in a file, if these bytes are its contents; else NULL. */
static unsigned char *frame_of(const char *path, const unsigned char *data, size_t size, size_t *bytes)
{
    unsigned char *frame = NULL, *contents = NULL;
    *bytes = 0;
    if (read_file(path, &frame, bytes) && ZSTD_getFrameContentSize(frame, *bytes) == size &&
        (contents = malloc(size + 1)) && ZSTD_decompress(contents, size, frame, *bytes) == size &&
        memcmp(contents, data, size) == 0) {
        free(contents);
        return frame;
    }
    free(contents);
    free(frame);
    return NULL;
}

int main(int count, char **words)
{
    unsigned char *data = NULL;
    size_t size = 0, bytes = 0;
    if (count < 4) {
        fprintf(stderr, "pack_images: takes a file to write, another build's, and files to read\n");
        return 2;
    }
    for (int i = 3; i < count; i++)
        if (!read_file(words[i], &data, &size)) {
            free(data);
            return refuse(words[i]);
        }
    unsigned char *packed = frame_of(words[1], data, size, &bytes);
    if (!packed)
        packed = frame_of(words[2], data, size, &bytes);
    if (!packed) {
        const size_t most = ZSTD_compressBound(size);
        packed = malloc(most);
        bytes = packed ? compress(packed, most, data, size) : 0;
    }
    free(data);
    if (!packed || ZSTD_isError(bytes)) {
        fprintf(stderr, "pack_images: %s: %s\n", words[1], packed ? ZSTD_getErrorName(bytes) : "out of memory");
        free(packed);
        return EXIT_FAILURE;
    }
    FILE *file = fopen(words[1], "wb");
    int is_written = file && fwrite(packed, 1, bytes, file) == bytes;
    is_written = file && fclose(file) == 0 && is_written;
    free(packed);
    return is_written ? EXIT_SUCCESS : refuse(words[1]);
}
