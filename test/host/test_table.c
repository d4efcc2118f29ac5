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
    const char *rung, *name, *acc, *ops, *align;
    int bm, bn, bk, wm, wn, wk, stages, blocks;
    int is_packed, tiles;
} row_t;

static const row_t rows[] = {
#define BLOCK(m, n, k) .bm = m, .bn = n, .bk = k,
#define WARP(m, n, k) .wm = m, .wn = n, .wk = k,
#define STAGES(count) .stages = count,
#define ACC(type) .acc = #type,
#define OPS(which) .ops = #which,
#define ALIGN(access) .align = #access,
#define F32(access) .align = #access,
#define WEIGHTS(access) .align = #access, .is_packed = 1,
#define PER_SM(t4, newer) .blocks = (t4) ? (t4) : 1,
#define TILES(count) .tiles = count,
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
                                           (info.block_k / info.warp_k) * (rows[i].tiles ? rows[i].tiles : 1));
        const int staged_n = rows[i].is_packed ? 0 : info.block_n; /* packed weights do not pass through it */
        assert_true(info.shared_bytes >= 2 * info.stages * info.block_k * (info.block_m + staged_n));
        assert_true(info.shared_bytes * rows[i].blocks <= 65536);
        assert_int_equal(info.ops & HGEMM_OPS_NN, strcmp(rows[i].ops, "nt") != 0);
        assert_int_equal(!(info.ops & HGEMM_OPS_NT), strcmp(rows[i].ops, "nn") == 0);
        assert_int_equal(!(info.ops & HGEMM_OPS_TN), rows[i].ops[0] == 'n' && !strstr(rows[i].ops, "tn"));
        assert_int_equal(!(info.ops & HGEMM_OPS_TT), rows[i].ops[0] == 'n');
        assert_int_equal(info.any_alignment, rows[i].align[0] != 'x');
        assert_true(info.registers >= 0 && info.registers <= 255); /* 0: of no variant in this build */
        assert_true(info.registers * info.threads * (rows[i].is_packed ? 1 : rows[i].blocks) <= 65536);
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

/* Every variant of the table that the build was asked for has one image, in order, and there is no other image. The
 * build reads the table and the ways by itself: it knows of EVERY_IMAGE, those of no row too, and made BUILT_IMAGES. */
static void every_variant_has_its_image(void **state)
{
    (void)state;
    int variants = 0, built = 0;
    for (int index = variant_index((variant_t){.kernel = 1}); index < VARIANT_COUNT; index++) {
        const variant_t variant = variant_of(index);
        const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
        const image_t *image = variant_image(variant);
        if (!variant_exists(variant)) {
            assert_null(image);
            continue;
        }
        variants++;
        if (!image)
            continue;
        built++;
        hgemm_kernel_info_t told;
        assert_int_equal(hgemm_get_kernel_info(variant.kernel, &told), HGEMM_STATUS_SUCCESS);
        assert_int_equal(strncmp(image->symbol, info->name, strlen(info->name)), 0);
        assert_true(image->size > 0 && image->packed > 0 && image->pack);
        assert_true(image->registers > 0 && image->registers <= told.registers);
    }
    assert_int_equal(variants + 5, EVERY_IMAGE);
    assert_int_equal(built + 5, BUILT_IMAGES);
    assert_non_null(realign_image());
    assert_non_null(scale_image());
    assert_non_null(recompute_image());
    assert_non_null(pack_image());
    assert_non_null(unpack_image());
    assert_int_equal(hgemm_image_count, BUILT_IMAGES);
    for (int i = 1; i < hgemm_image_count; i++)
        assert_true(strcmp(hgemm_images[i - 1].symbol, hgemm_images[i].symbol) < 0);
}

/* What the words of a row and of ways.def mean, told once more by some rows. */
static void variants_are_those_of_the_columns(void **state)
{
    (void)state;
    enum { MOST = 8 };
    static const struct {
        int kernel;
        const char *symbols[MOST]; /* with the transposes nt, but for a kernel without them */
    } rows_of[] = {
        {KERNEL_thin_8x8, {"thin_8x8_nt"}},
        {KERNEL_k5_128x256, {"k5_128x256_nt"}},
        {KERNEL_k5_256x256, {"k5_256x256_nt", "k5_256x256_nt_x8", "k5_256x256_nt_any"}},
        {KERNEL_k5_32x128_f32, {"k5_32x128_f32_nt", "k5_32x128_f32_nt_bf16"}},
        {KERNEL_k5_16x64_f32,
         {"k5_16x64_f32_nt", "k5_16x64_f32_nt_bf16", "k5_16x64_f32_nt_indirect", "k5_16x64_f32_nt_indirect_bf16",
          "k5_16x64_f32_nt_x8", "k5_16x64_f32_nt_any"}},
        {KERNEL_single_128x64,
         {"single_128x64_nt_f32", "single_128x64_nt_far_f32", "single_128x64_nt_far_indirect_f32"}},
        {KERNEL_fma_64x64, {"fma_64x64_nt_f32"}},
        {KERNEL_weights_16x128,
         {"weights_16x128_nt_packed", "weights_16x128_nt_packed_bf16", "weights_16x128_nt_indirect_packed",
          "weights_16x128_nt_indirect_packed_bf16"}},
    };
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        int count = 0, wanted = 0;
        while (wanted < MOST && rows_of[i].symbols[wanted])
            wanted++;
        for (int index = variant_index((variant_t){.kernel = rows_of[i].kernel});
             index < VARIANT_COUNT && variant_of(index).kernel == rows_of[i].kernel; index++) {
            char symbol[VARIANT_SYMBOL];
            int found = 0;
            if (variant_of(index).op != 1 || !variant_exists(variant_of(index)))
                continue;
            variant_symbol(variant_of(index), symbol);
            for (int s = 0; s < wanted; s++)
                found += strcmp(symbol, rows_of[i].symbols[s]) == 0;
            if (found != 1)
                fail_msg("%s is none of the variants that the row has", symbol);
            count++;
        }
        assert_int_equal(count, wanted);
    }
}

/* Of a row whose kernel is told where memory runs there is one variant for all. */
static void transposes_have_a_variant(void **state)
{
    (void)state;
    int shared = 0;
    for (int i = 0; i < ROWS; i++) {
        const int kernel = i + 1, is_one = strcmp(rows[i].ops, "one") == 0;
        assert_int_equal(is_one, kernel_table[kernel].has_fp32_units);
        for (int op = 0; op < VARIANT_OPS; op++) {
            assert_int_equal(variant_op(kernel, op), is_one ? 1 : op);
            for (access_t access = 0; access < ACCESS_COUNT; access++)
                assert_false(is_one && op != 1 && variant_exists((variant_t){kernel, op, access, 0, FACTORS_f32}));
        }
        shared += is_one && variant_exists((variant_t){kernel, 1, ACCESS_x16, 0, FACTORS_f32});
    }
    assert_int_equal(shared, 2);
}

static void accesses_give_way_to_more_general_ones(void **state)
{
    (void)state;
    assert_int_equal(access_from(ACCESS_x8, 0, FACTORS_halves), ACCESS_x8);
    assert_int_equal(access_from(ACCESS_x8, 1, FACTORS_halves), ACCESS_any);
    assert_int_equal(access_from(ACCESS_x8, 0, FACTORS_bf16), ACCESS_any);
    assert_int_equal(access_from(ACCESS_any, 1, FACTORS_bf16), ACCESS_far);
    assert_int_equal(access_from(ACCESS_x16, 1, FACTORS_bf16), ACCESS_x16);
    assert_int_equal(factors_of(HGEMM_TYPE_F16, HGEMM_TYPE_F16), FACTORS_halves);
    assert_int_equal(factors_of(HGEMM_TYPE_BF16, HGEMM_TYPE_BF16), FACTORS_bf16);
    assert_int_equal(factors_of(HGEMM_TYPE_BF16, HGEMM_TYPE_F16), FACTORS_COUNT);
    assert_true(have_scales(FACTORS_bf16) && !have_scales(FACTORS_halves));
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
    for (int index = 0; index < VARIANT_COUNT; index++) {
        const variant_t variant = variant_of(index);
        assert_in_range(variant.kernel, 0, KERNEL_END - 1);
        assert_in_range(variant.factors, 0, FACTORS_COUNT - 1);
        assert_int_equal(variant_index(variant), index);
        assert_int_equal(seen[index]++, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_is_the_row),
        cmocka_unit_test(other_kernels_do_not_exist),
        cmocka_unit_test(every_variant_has_its_image),
        cmocka_unit_test(variants_are_those_of_the_columns),
        cmocka_unit_test(transposes_have_a_variant),
        cmocka_unit_test(accesses_give_way_to_more_general_ones),
        cmocka_unit_test(walks_are_those_of_the_gpu),
        cmocka_unit_test(variants_are_numbered_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
