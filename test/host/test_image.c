/* SPDX-License-Identifier: MIT */
/*
 * test_image FOLDER - each image that the library carries unpacks to the file of its name there, to the byte; one that
 * is damaged, or for which there is no memory, to a status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/image.h"

enum { DETAIL = 256, MOST_BYTES = 16000000, MOST_BYTES_OF_WEIGHTS = 4000000, MOST_IMAGES_OF_WEIGHTS = 60 };

static const char *folder;

static unsigned char *contents_of(const char *symbol, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.fatbin", folder, symbol);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

static void images_are_the_files(void **state)
{
    (void)state;
    for (int i = 0; i < hgemm_image_count; i++) {
        const image_t *image = &hgemm_images[i];
        size_t size;
        unsigned char *file = contents_of(image->symbol, &size);
        void *fatbin = NULL;
        char detail[DETAIL] = "as it was";
        assert_int_equal(image_unpack(image, &fatbin, detail, sizeof detail), HGEMM_STATUS_SUCCESS);
        assert_string_equal(detail, "as it was");
        assert_int_equal(image->size, size);
        if (memcmp(fatbin, file, size) != 0)
            fail_msg("%s is not its file", image->symbol);
        free(fatbin);
        free(file);
    }
}

/* Each pack is of one kernel, and all of them together may not explode, nor may those of packed weights. */
static void images_take_few_bytes(void **state)
{
    (void)state;
    size_t bytes = 0, bytes_of_weights = 0;
    int of_weights = 0;
    for (int i = 0; i < hgemm_image_count; i++) {
        const size_t pack = hgemm_images[i].offset == 0 ? hgemm_images[i].packed : 0;
        const int is_of_weights = strstr(hgemm_images[i].symbol, "weights") != NULL;
        bytes += pack;
        bytes_of_weights += is_of_weights ? pack : 0, of_weights += is_of_weights;
    }
    printf("%d images take %.2f MB, %d of packed weights %.2f MB of these\n", hgemm_image_count, (double)bytes * 1e-6,
           of_weights, (double)bytes_of_weights * 1e-6);
    assert_in_range(bytes, 1, MOST_BYTES);
    assert_in_range(bytes_of_weights, 0, MOST_BYTES_OF_WEIGHTS);
    assert_in_range(of_weights, 0, MOST_IMAGES_OF_WEIGHTS);
}

static void expect_damaged(const image_t *image, const char *words)
{
    char detail[DETAIL] = "", expected[DETAIL];
    void *fatbin = detail;
    assert_int_equal(image_unpack(image, &fatbin, detail, sizeof detail), HGEMM_STATUS_DEVICE_ERROR);
    assert_ptr_equal(fatbin, detail);
    snprintf(expected, sizeof expected, "The image of %s is damaged: %s", image->symbol, words);
    assert_memory_equal(detail, expected, strlen(expected));
    assert_int_equal(detail[strlen(detail) - 1], '.');
}

/* The image that is last in its pack, of those that are not alone there. */
static image_t last_image(void)
{
    const image_t *found = &hgemm_images[0];
    for (int i = 0; i < hgemm_image_count; i++)
        if (hgemm_images[i].offset > found->offset)
            found = &hgemm_images[i];
    return *found;
}

static void damage_is_a_status(void **state)
{
    (void)state;
    const image_t image = last_image();
    image_t other = image;
    other.size++; /* the end is where it should be */
    expect_damaged(&other, "it ends too early");
    other = image, other.offset += image.size;
    expect_damaged(&other, "it ends too early");
    other = image, other.offset += 10 * image.size;
    expect_damaged(&other, "it ends too early");
    /* In memory of its own, so that no sanitizer misses a read behind it. */
    const size_t parts[] = {1, 5, image.packed / 2, image.packed - 1};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        unsigned char *part = malloc(parts[i]);
        assert_non_null(part);
        memcpy(part, image.pack, parts[i]);
        other = image, other.pack = part, other.packed = parts[i];
        expect_damaged(&other, "it ends too early");
        free(part);
    }
    other = image, other.packed = 0;
    expect_damaged(&other, "it ends too early");
    unsigned char *pack = malloc(image.packed);
    assert_non_null(pack);
    other = image, other.pack = pack;
    memcpy(pack, image.pack, image.packed);
    pack[0] ^= 1;
    expect_damaged(&other, "");
    /* Whatever byte is another one: other contents or a status. */
    for (size_t at = 4; at < image.packed; at += at < 64 ? 1 : image.packed / 50) {
        char detail[DETAIL];
        void *fatbin = NULL;
        memcpy(pack, image.pack, image.packed);
        pack[at] ^= 0xff;
        hgemm_status_t status = image_unpack(&other, &fatbin, detail, sizeof detail);
        assert_true(status == HGEMM_STATUS_SUCCESS || status == HGEMM_STATUS_OUT_OF_MEMORY ||
                    status == HGEMM_STATUS_DEVICE_ERROR);
        assert_int_equal(fatbin != NULL, status == HGEMM_STATUS_SUCCESS);
        free(fatbin);
    }
    free(pack);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    image_t image = hgemm_images[0];
    char detail[DETAIL] = "as it was";
    void *fatbin = detail;
    image.size = PTRDIFF_MAX / 2;
    assert_int_equal(image_unpack(&image, &fatbin, detail, sizeof detail), HGEMM_STATUS_OUT_OF_MEMORY);
    assert_ptr_equal(fatbin, detail);
    assert_string_equal(detail, "");
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_the_files),
        cmocka_unit_test(images_take_few_bytes),
        cmocka_unit_test(damage_is_a_status),
        cmocka_unit_test(memory_may_run_out),
    };
    if (count != 2) {
        fprintf(stderr, "test_image: takes the folder of the images\n");
        return 2;
    }
    folder = words[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
