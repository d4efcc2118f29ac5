/* SPDX-License-Identifier: MIT */
/* Packing and unpacking of weights: on the device, or in host memory by the lines that the device runs. */
#include "problem/weights.h"

#include "api/handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void hgemm_weights_init_sized(hgemm_weights_t *weights, size_t size)
{
    if (!weights)
        return;
    memset(weights, 0, size);
    if (size >= sizeof weights->size)
        memcpy(weights, &size, sizeof size);
}

hgemm_status_t hgemm_weights_bytes(const hgemm_weights_t *weights, size_t *bytes)
{
    packed_form_t form;
    char *words = thread_detail();
    words[0] = '\0';
    if (!bytes) {
        snprintf(words, DEVICE_DETAIL, "bytes is NULL.");
        return HGEMM_STATUS_INVALID_HANDLE;
    }
    hgemm_status_t status = take_weights(weights, &form, words);
    if (status == HGEMM_STATUS_SUCCESS)
        *bytes = (size_t)form.bytes;
    return status;
}

static char *words_of(hgemm_handle_t handle)
{
    char *words = handle ? handle->device->detail : thread_detail();
    words[0] = '\0';
    return words;
}

static hgemm_status_t refuse_pointer(char *words, hgemm_status_t status, const char *name, const void *pointer,
                                     int alignment)
{
    if (!pointer)
        snprintf(words, DEVICE_DETAIL, "%s is NULL.", name);
    else
        snprintf(words, DEVICE_DETAIL, "%s is 0x%" PRIxPTR ", no multiple of %d.", name, (uintptr_t)pointer, alignment);
    return status;
}

static int is_usable(const void *pointer, int alignment)
{
    return pointer && (uintptr_t)pointer % (uintptr_t)alignment == 0;
}

/* Memory that a call reads or writes. */
typedef struct span_t {
    const char *name;
    const void *at;
    int64_t bytes;
} span_t;

static hgemm_status_t refuse_overlap(char *words, const span_t *written, const span_t *read)
{
    const uintptr_t to = (uintptr_t)written->at, from = (uintptr_t)read->at;
    if (read->bytes == 0 || to >= from + (uintptr_t)read->bytes || from >= to + (uintptr_t)written->bytes)
        return HGEMM_STATUS_SUCCESS;
    snprintf(words, DEVICE_DETAIL,
             "%s, from 0x%" PRIxPTR " to 0x%" PRIxPTR ", overlaps %s, from 0x%" PRIxPTR " to 0x%" PRIxPTR ".",
             written->name, to, to + (uintptr_t)written->bytes, read->name, from, from + (uintptr_t)read->bytes);
    return HGEMM_STATUS_OVERLAP;
}

/* A thread for each item, in as many launches as a grid asks for: of which there is one in practice. */
static hgemm_status_t launch(hgemm_handle_t handle, void **function, const image_t *image, const pack_args_t *args,
                             int64_t items, int64_t strips, char *words)
{
    const int64_t blocks = (items + HGEMM_PACK_THREADS - 1) / HGEMM_PACK_THREADS;
    if (blocks > INT32_MAX) {
        snprintf(words, DEVICE_DETAIL, "The weights have %" PRId64 " parts.", items);
        return HGEMM_STATUS_TOO_LARGE;
    }
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (!*function)
        status = handle->device->ops->load(handle->device, image, 0, function);
    const launch_t how = {
        .grid = {(unsigned)blocks, (unsigned)(strips < HGEMM_UNPACK_STRIPS ? strips : HGEMM_UNPACK_STRIPS), 1},
        .threads = HGEMM_PACK_THREADS,
        .args = args,
        .args_size = sizeof *args};
    return status == HGEMM_STATUS_SUCCESS ? handle->device->ops->launch(handle->device, handle->stream, *function, &how)
                                          : status;
}

hgemm_status_t hgemm_pack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *codes,
                                  const void *scales, const void *zeros, void *packed)
{
    pack_args_t args = {.codes = codes, .scales = scales, .zeros = zeros, .packed = packed};
    packed_form_t *form = &args.form;
    char *words = words_of(handle);
    hgemm_status_t status = take_weights(weights, form, words);
    if (status != HGEMM_STATUS_SUCCESS || form->n == 0 || form->k == 0)
        return status;
    const int scale_bytes = packed_scale_bytes(form), zero_bytes = form->zero == PACKED_OFFSETS ? scale_bytes : 1;
    if (!is_usable(codes, 1))
        return refuse_pointer(words, HGEMM_STATUS_NULL_B, "codes", codes, 1);
    if (!is_usable(scales, scale_bytes))
        return refuse_pointer(words, scales ? HGEMM_STATUS_MISALIGNED_B : HGEMM_STATUS_NULL_B, "scales", scales,
                              scale_bytes);
    if (form->zero != PACKED_NO_ZEROS && !is_usable(zeros, zero_bytes))
        return refuse_pointer(words, zeros ? HGEMM_STATUS_MISALIGNED_B : HGEMM_STATUS_NULL_B, "zeros", zeros,
                              zero_bytes);
    if (!is_usable(packed, 16))
        return refuse_pointer(words, packed ? HGEMM_STATUS_MISALIGNED_D : HGEMM_STATUS_NULL_D, "packed", packed, 16);
    const int64_t groups = (int64_t)form->n * form->groups;
    const span_t to = {"packed", packed, form->bytes},
                 read[] = {{"codes", codes, (int64_t)form->n * form->k * packed_bits(form) / 8},
                           {"scales", scales, groups * scale_bytes},
                           {"zeros", zeros, form->zero == PACKED_NO_ZEROS ? 0 : groups * zero_bytes}};
    for (int i = 0; i < 3 && status == HGEMM_STATUS_SUCCESS; i++)
        status = refuse_overlap(words, &to, &read[i]);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const int64_t chunks = packed_chunks(form), scale_count = packed_scales(form);
    if (handle)
        return launch(handle, &handle->pack, pack_image(), &args, chunks + scale_count, 1, words);
    for (int64_t i = 0; i < chunks; i++)
        for (int w = 0; w < 4; w++)
            ((unsigned *)packed)[i * 4 + w] = packed_word(form, codes, i, w);
    for (int64_t i = 0; i < scale_count; i++)
        pack_scale(&args, i);
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_unpack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *packed,
                                    int64_t first, int64_t count, hgemm_type_t type, void *matrix, int64_t ld)
{
    pack_args_t args = {.packed = (void *)(uintptr_t)packed, .matrix = matrix, .ld = ld, .type = (int)type};
    packed_form_t *form = &args.form;
    char *words = words_of(handle);
    hgemm_status_t status = take_weights(weights, form, words);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if ((unsigned)type >= TYPE_COUNT) {
        snprintf(words, DEVICE_DETAIL, "type is %d.", (int)type);
        return HGEMM_STATUS_INVALID_TYPE;
    }
    if (first < 0 || count < 0 || first > form->k || count > form->k - first) {
        snprintf(words, DEVICE_DETAIL, "first is %" PRId64 " and count %" PRId64 "; W has %d columns.", first, count,
                 form->k);
        return HGEMM_STATUS_INVALID_K;
    }
    args.first = (int)first, args.count = (int)count;
    if (ld < count) {
        snprintf(words, DEVICE_DETAIL, "ld is %" PRId64 "; a row has %" PRId64 " elements.", ld, count);
        return HGEMM_STATUS_INVALID_LDD;
    }
    if (form->n > 1 && ld > (INT64_C(1) << 60) / form->n) {
        snprintf(words, DEVICE_DETAIL, "ld is %" PRId64 " and there are %d rows.", ld, form->n);
        return HGEMM_STATUS_TOO_LARGE;
    }
    if (form->n == 0 || count == 0)
        return status;
    const int bytes = (int)type_bytes(type, 1);
    if (!is_usable(packed, 16))
        return refuse_pointer(words, packed ? HGEMM_STATUS_MISALIGNED_B : HGEMM_STATUS_NULL_B, "packed", packed, 16);
    if (!is_usable(matrix, bytes))
        return refuse_pointer(words, matrix ? HGEMM_STATUS_MISALIGNED_D : HGEMM_STATUS_NULL_D, "matrix", matrix, bytes);
    status = refuse_overlap(words, &(span_t){"matrix", matrix, ((form->n - 1) * ld + count) * bytes},
                            &(span_t){"packed", packed, form->bytes});
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if (handle)
        return launch(handle, &handle->unpack, unpack_image(), &args, unpacked_units(&args) * 32, packed_strips(form),
                      words);
    for (int64_t row = 0; row < form->n; row++)
        for (int64_t k = first; k < first + count; k++)
            unpack_element(&args, row, k);
    return HGEMM_STATUS_SUCCESS;
}
