/* SPDX-License-Identifier: MIT */
/* Plans in words: written and read back, and refused where the words are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "problem_of.h"
#include "select/plan_text.h"

static hgemm_desc_t problem(int64_t m, int64_t n, int64_t k)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = m, desc.n = n, desc.k = desc.lda = k;
    desc.ldb = desc.ldc = desc.ldd = n;
    return desc;
}

/* The words are part of files that other versions read: they stay. */
static void words_are_these(void **state)
{
    (void)state;
    const struct {
        plan_t plan;
        const char *text;
    } cases[] = {
        {{{KERNEL_k1_tiled, 0, ACCESS_x16, 0, 0}, 12, 12, 1, 2048, 0, 0}, "k1_tiled nn x16"},
        {{{KERNEL_k5_64x64, 1, ACCESS_far, 0, 0}, 35, 35, 1, 2048, 0, 0}, "k5_64x64 nt far"},
        {{{KERNEL_k5_64x64x128_f32, 2, ACCESS_x16, 0, 0}, 35, 35, 1, 2048, FACTOR_B, 0},
         "k5_64x64x128_f32 tn x16 copies b"},
        {{{KERNEL_k5_64x64, 3, ACCESS_x8, 0, 0}, 35, 0, 4, 512, 0, 0}, "k5_64x64 tt x8 whole 0 splits 4 k 512"},
        {{{KERNEL_k5_256x256, 0, ACCESS_x16, 0, 0}, 4, 2, 2, 1408, FACTOR_A, 0},
         "k5_256x256 nn x16 whole 2 splits 2 k 1408 copies a"},
        {{{KERNEL_k5_256x256, 0, ACCESS_any, 0, 0}, 4, 2, 2, 1408, FACTOR_A | FACTOR_B, 0},
         "k5_256x256 nn any whole 2 splits 2 k 1408 copies ab"},
    };
    const hgemm_desc_t p = problem(300, 400, 2048);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[PLAN_TEXT];
        plan_t plan;
        memset(&plan, 0x55, sizeof plan);
        plan_to_text(&cases[i].plan, text);
        assert_string_equal(text, cases[i].text);
        assert_null(plan_from_text(text, problem_of(&p), &plan));
        assert_int_equal(plan.variant.kernel, cases[i].plan.variant.kernel);
        assert_int_equal(plan.variant.op, cases[i].plan.variant.op);
        assert_int_equal(plan.variant.access, cases[i].plan.variant.access);
        assert_int_equal(plan.tiles, cases[i].plan.tiles);
        assert_int_equal(plan.whole_tiles, cases[i].plan.whole_tiles);
        assert_int_equal(plan.splits, cases[i].plan.splits);
        assert_int_equal(plan.k_split, cases[i].plan.k_split);
        assert_int_equal(plan.copies, cases[i].plan.copies);
    }
}

/* All kernels, transposes, accesses, copies: read back as they were, and in room that suffices for the longest. */
static void every_plan_is_read_back(void **state)
{
    (void)state;
    const hgemm_desc_t p = problem(INT32_MAX, INT32_MAX, INT32_MAX);
    for (int kernel = 1; kernel < KERNEL_END; kernel++)
        for (int op = 0; op < VARIANT_OPS; op++)
            for (access_t access = 0; access < ACCESS_COUNT; access++)
                for (int copies = 0; copies < 4; copies++) {
                    plan_t plan = {{kernel, op, access, 0, 0}, 0, INT32_MAX, INT32_MAX, INT32_MAX, copies, 0}, read;
                    char text[PLAN_TEXT];
                    plan.tiles = tile_count(&kernel_table[kernel].info, p.m, p.n);
                    plan_to_text(&plan, text);
                    assert_true(strlen(text) < PLAN_TEXT / 2);
                    assert_null(plan_from_text(text, problem_of(&p), &read));
                    assert_true(read.variant.kernel == kernel && read.variant.op == op &&
                                read.variant.access == access);
                    assert_true(read.tiles == plan.tiles && read.whole_tiles == INT32_MAX && read.copies == copies);
                    assert_true(read.splits == INT32_MAX && read.k_split == INT32_MAX);
                }
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"", "no kernel"},
        {" k1_tiled nn x16", "no kernel"},
        {"k5_64x6 nn x16", "no kernel"},
        {"k5_64x641 nn x16", "no kernel"},
        {"k5_64x64", "transposes"},
        {"k5_64x64 nn", "access"},
        {"k5_64x64 nx x16", "transposes"},
        {"k5_64x64  nn x16", "transposes"},
        {"k5_64x64 nn x32", "access"},
        {"k5_64x64 nn x16 whole", "whole TILES"},
        {"k5_64x64 nn x16 whole 3", "whole TILES"},
        {"k5_64x64 nn x16 whole -3 splits 2 k 64", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 2", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 2 k", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 2 k 64x", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 2147483648 k 64", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 99999999999999999999 k 64", "whole TILES"},
        {"k5_64x64 nn x16 whole 3 splits 1 k 64", "two parts"},
        {"k5_64x64 nn x16 whole 3 splits 0 k 64", "two parts"},
        {"k5_64x64 nn x16 splits 2 k 64", "more words"},
        {"k5_64x64 nn x16 copies", "a, b or ab"},
        {"k5_64x64 nn x16 copies ba", "a, b or ab"},
        {"k5_64x64 nn x16 copies a whole 3 splits 2 k 64", "more words"},
        {"k5_64x64 nn x16 copies a b", "more words"},
        {"k5_64x64 nn x16\n", "access"},
    };
    const hgemm_desc_t p = problem(300, 400, 2048);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plan_t plan;
        const char *fault = plan_from_text(cases[i].text, problem_of(&p), &plan);
        if (!fault || !strstr(fault, cases[i].fault))
            fail_msg("\"%s\": %s, want %s", cases[i].text, fault ? fault : "no fault", cases[i].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_these),
        cmocka_unit_test(every_plan_is_read_back),
        cmocka_unit_test(wrong_words_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
