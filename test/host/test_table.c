/* SPDX-License-Identifier: MIT */
/* The table and the images: what a row says is what the library tells and what the build embeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "table/kernels.h"

/* The rows once more, as text. */
typedef struct row_t {
    const char *rung, *name, *acc, *ops, *align, *indirect, *bf16; /* NULL: no such variant */
    int bm, bn, bk, wm, wn, wk, stages, blocks;
} row_t;

static const row_t rows[] = {
#define BLOCK(m, n, k) .bm = m, .bn = n, .bk = k,
#define WARP(m, n, k) .wm = m, .wn = n, .wk = k,
#define STAGES(count) .stages = count,
#define ACC(type) .acc = #type,
#define OPS(which) .ops = #which,
#define ALIGN(access) .align = #access,
#define PER_SM(t4, newer) .blocks = (t4) ? (t4) : 1,
#define INDIRECT(access) .indirect = #access,
#define BF16(access) .bf16 = #access,
#define HGEMM_KERNEL(rung_, name_, columns, ...) {.rung = #rung_, .name = #name_, columns},
#include "table/kernels.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void info_is_the_row(void **state)
{
    (void)state;
    assert_int_equal(hgemm_kernel_count(), ROWS);
    for (int i = 0; i < ROWS; i++) {
        hgemm_kernel_info_t info;
        assert_int_equal(hgemm_get_kernel_info(i + 1, &info), HGEMM_STATUS_SUCCESS);
        assert_string_equal(info.name, rows[i].name);
        assert_string_equal(info.rung, rows[i].rung);
        assert_int_equal(strncmp(info.name, info.rung, 2), 0); /* "k5_64x64" is of rung 5 */
        assert_int_equal(info.accumulate, strcmp(rows[i].acc, "f32") == 0);
        assert_int_equal(info.block_m, rows[i].bm);
        assert_int_equal(info.block_n, rows[i].bn);
        assert_int_equal(info.block_k, rows[i].bk);
        assert_int_equal(info.warp_m, rows[i].wm);
        assert_int_equal(info.warp_n, rows[i].wn);
        assert_int_equal(info.warp_k, rows[i].wk);
        assert_int_equal(info.stages, rows[i].stages);
        assert_int_equal(info.threads, 32 * (info.block_m / info.warp_m) * (info.block_n / info.warp_n) *
                                           (info.block_k / info.warp_k));
        assert_true(info.shared_bytes >= 2 * info.stages * info.block_k * (info.block_m + info.block_n));
        assert_true(info.shared_bytes * rows[i].blocks <= 65536);
        assert_int_equal(info.ops, strcmp(rows[i].ops, "all") == 0 ? 15 : HGEMM_OPS_NN);
        assert_int_equal(info.any_alignment, rows[i].align[0] != 'x');
        assert_true(info.registers >= 0 && info.registers <= 255); /* 0: of no variant in this build */
        assert_true(info.registers * info.threads * rows[i].blocks <= 65536);
        assert_int_equal(hgemm_find_kernel(info.name), i + 1);
    }
}

static void other_kernels_do_not_exist(void **state)
{
    (void)state;
    hgemm_kernel_info_t info;
    assert_int_equal(hgemm_get_kernel_info(0, &info), HGEMM_STATUS_INVALID_KERNEL);
    assert_int_equal(hgemm_get_kernel_info(-1, &info), HGEMM_STATUS_INVALID_KERNEL);
    assert_int_equal(hgemm_get_kernel_info(ROWS + 1, &info), HGEMM_STATUS_INVALID_KERNEL);
    assert_int_equal(hgemm_get_kernel_info(1, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_int_equal(hgemm_find_kernel("k1_tile"), 0);
    assert_int_equal(hgemm_find_kernel("k1_tiled_"), 0);
    assert_int_equal(hgemm_find_kernel(""), 0);
    assert_int_equal(hgemm_find_kernel(NULL), 0);
}

static int number_of(const char *access)
{
    int number = ACCESS_x16;
    if (strcmp(access, "one") == 0) /* whose only variant is named so */
        return number;
    while (strcmp(access_names[number], access) != 0)
        number++;
    return number;
}

/* Every variant that the build was asked for has one image, in order, and there is no other image. The build reads
 * the table as the compiler does: it knows of EVERY_IMAGE, realign's too, and made BUILT_IMAGES. */
static void every_variant_has_its_image(void **state)
{
    (void)state;
    static const char *const ops[] = {"nn", "nt", "tn", "tt"};
    static const char *const accesses[] = {"", "_x8", "_any", "_far"};
    static const char *const ways[] = {"", "_indirect", "_bf16", "_indirect_bf16"};
    int variants = 0, built = 0;
    for (int i = 0; i < ROWS; i++) {
        hgemm_kernel_info_t info;
        assert_int_equal(hgemm_get_kernel_info(i + 1, &info), HGEMM_STATUS_SUCCESS);
        const int widest = number_of(rows[i].align);
        const int indirect = rows[i].indirect ? number_of(rows[i].indirect) : -1;
        const int bf16 = rows[i].bf16 ? number_of(rows[i].bf16) : -1;
        const int widest_of[] = {widest, indirect, bf16, bf16 < 0 ? -1 : indirect};
        for (int op = 0; op < (strcmp(rows[i].ops, "all") == 0 ? 4 : 1); op++)
            for (int access = 0; access <= widest; access++)
                for (int way = 0; way < 4; way++) {
                    char symbol[VARIANT_SYMBOL], ours[VARIANT_SYMBOL];
                    variant_t variant = {i + 1, op, (access_t)access, way & 1, way >> 1};
                    const image_t *image = variant_image(variant);
                    snprintf(symbol, sizeof symbol, "%s_%s%s%s", rows[i].name, ops[op], accesses[access], ways[way]);
                    variant_symbol(variant, ours);
                    assert_string_equal(ours, symbol);
                    if ((way && (access == ACCESS_x8 || access > widest_of[way])) ||
                        (way == 3 && access == ACCESS_any)) {
                        assert_null(image);
                        continue;
                    }
                    variants++;
                    if (!image)
                        continue;
                    built++;
                    assert_string_equal(image->symbol, symbol);
                    assert_true(image->size > 0 && image->packed > 0 && image->pack);
                    assert_true(image->registers > 0 && image->registers <= info.registers);
                }
    }
    assert_int_equal(variants + 2, EVERY_IMAGE);
    assert_int_equal(built + 2, BUILT_IMAGES);
    assert_non_null(realign_image());
    assert_non_null(scale_image());
    assert_int_equal(hgemm_image_count, BUILT_IMAGES);
    for (int i = 1; i < hgemm_image_count; i++)
        assert_true(strcmp(hgemm_images[i - 1].symbol, hgemm_images[i].symbol) < 0);
}

/* What a T4's machine code has for itself: how many rows of tiles are walked together, and nothing that newer GPUs
 * would see. */
static void walks_are_those_of_the_gpu(void **state)
{
    (void)state;
    int differ = 0;
    for (int kernel = 1; kernel < KERNEL_END; kernel++) {
        walk_t newer = kernel_walk(kernel, 0), t4 = kernel_walk(kernel, 1);
        assert_true(newer.group >= 1 && t4.group >= 1 && newer.prefetch >= 0 && t4.prefetch >= 0);
        differ += newer.group != t4.group;
    }
    assert_true(differ > 0);
    walk_t newer = kernel_walk(KERNEL_k5_256x256, 0), t4 = kernel_walk(KERNEL_k5_256x256, 1);
    assert_true(newer.group == 8 && t4.group == 4);
    newer = kernel_walk(KERNEL_k1_tiled, 0), t4 = kernel_walk(KERNEL_k1_tiled, 1);
    assert_true(newer.group == 1 && t4.group == 1);
}

static void variants_are_numbered_apart(void **state)
{
    (void)state;
    unsigned char seen[VARIANT_COUNT] = {0};
    for (int kernel = 0; kernel < KERNEL_END; kernel++)
        for (int op = 0; op < VARIANT_OPS; op++)
            for (int access = 0; access < ACCESS_COUNT; access++)
                for (int way = 0; way < 4; way++) {
                    int index = variant_index((variant_t){kernel, op, (access_t)access, way & 1, way >> 1});
                    assert_in_range(index, 0, VARIANT_COUNT - 1);
                    assert_int_equal(seen[index]++, 0);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_is_the_row),
        cmocka_unit_test(other_kernels_do_not_exist),
        cmocka_unit_test(every_variant_has_its_image),
        cmocka_unit_test(walks_are_those_of_the_gpu),
        cmocka_unit_test(variants_are_numbered_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
