/* SPDX-License-Identifier: MIT */
/* Element types: their bytes and names, and those of the public enumerations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "problem/names.h"
#include "problem/problem.h"
#include "problem/weights.h"
#include "problem/weights_text.h"

static void elements_have_bytes(void **state)
{
    (void)state;
    assert_int_equal(type_bytes(HGEMM_TYPE_F16, 3), 6);
    assert_int_equal(type_bytes(HGEMM_TYPE_BF16, -3), -6);
    assert_int_equal(type_bytes(HGEMM_TYPE_F32, INT64_C(1) << 60), INT64_C(1) << 62);
}

static void types_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(name_count(type_names), TYPE_COUNT);
    for (int type = 0; type < TYPE_COUNT; type++) {
        assert_int_equal(name_value(type_names, type_names[type]), type);
        assert_int_equal(strncmp(type_table[type].words, "HGEMM_TYPE_", 11), 0);
        assert_true(type_table[type].bits > 0);
    }
    assert_int_equal(name_value(type_names, "f64"), -1);
    assert_int_equal(name_value(type_names, "bf16"), HGEMM_TYPE_BF16);
}

static void values_are_found_by_name(void **state)
{
    (void)state;
    const char *const *const all[] = {layout_names,     op_names,         accumulate_names, bias_mode_names,
                                      batch_mode_names, index_type_names, type_names,       activation_names};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_in_range(name_count(all[i]), 2, NAMES - 1);
        for (int value = 0; value < name_count(all[i]); value++)
            assert_int_equal(name_value(all[i], all[i][value]), value);
        assert_int_equal(name_value(all[i], "nonsense"), -1);
    }
    assert_int_equal(name_value(layout_names, "col"), HGEMM_COL_MAJOR);
    assert_int_equal(name_value(batch_mode_names, "grouped"), HGEMM_BATCH_GROUPED);
}

/* Every word names weights that the library takes, and is written as it was read; what is not said is as it says. */
static void weights_are_words(void **state)
{
    (void)state;
    static const char *const whole[] = {"int4:128:none:f16",  "uint4:16:code:f16", "int8:0:offset:bf16",
                                        "uint8:256:code:f32", "e4m3:64:none:f32",  "nf4:64:none:f32",
                                        "fp4:32:none:f16",    "mxfp4:32:none:bf16"};
    static const char *const faulty[] = {"",
                                         ":128",
                                         "int5",
                                         "table16",
                                         "int4:",
                                         "int4:48",
                                         "int4:0128",
                                         "int4:128:zeros",
                                         "nf4:64:code",
                                         "e4m3:64:offset",
                                         "int4:-16",
                                         "int4:128::",
                                         "int4:128:none:",
                                         "int4:128:none:f64",
                                         "int4:128:none:f16:",
                                         "INT4",
                                         "int4 ",
                                         "int4:128:none:f16:f16",
                                         "int4444444444444444444444"};
    hgemm_weights_t weights;
    packed_form_t form;
    char text[WEIGHTS_TEXT], words[DEVICE_DETAIL];
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        assert_null(weights_from_text(whole[i], &weights));
        weights_to_text(&weights, text);
        assert_string_equal(text, whole[i]);
        weights.n = weights.k = 64;
        assert_int_equal(take_weights(&weights, &form, words), HGEMM_STATUS_SUCCESS);
    }
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++)
        assert_non_null(weights_from_text(faulty[i], &weights));
    assert_null(weights_from_text("int4", &weights));
    weights_to_text(&weights, text);
    assert_string_equal(text, whole[0]);
    assert_null(weights_from_text("uint8:0", &weights));
    weights_to_text(&weights, text);
    assert_string_equal(text, "uint8:0:none:f16");
    static const char *const usual[][2] = {{"mxfp4", "mxfp4:32:none:bf16"}, /* as checkpoints have them */
                                           {"fp4", "fp4:64:none:f32"},
                                           {"nf4:128", "nf4:128:none:f32"},
                                           {"nf4", "nf4:64:none:f32"}};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        assert_null(weights_from_text(usual[i][0], &weights));
        weights_to_text(&weights, text);
        assert_string_equal(text, usual[i][1]);
    }
    assert_int_equal(weights.table[0], 0xbe8e);
    weights.table[0] = 0; /* of no name */
    weights_to_text(&weights, text);
    assert_string_equal(text, "nf4:64:none:f32");
}

/* Where words for weights are asked for, or refused, every code is named but that of tables, which go by their names.
 */
static void codes_are_told(void **state)
{
    (void)state;
    hgemm_weights_t weights;
    const char *fault = weights_from_text("int5", &weights);
    assert_int_equal(name_count(code_names), CODE_COUNT);
    for (int code = 0; code < CODE_COUNT; code++) {
        const char *name = code_table[code].kind == CODES_TABLE ? "nf4" : code_names[code];
        if (!strstr(WEIGHTS_TEXT_HELP, name) || !strstr(fault, name))
            fail_msg("%s is not told", name);
    }
}

static void activations_have_names(void **state)
{
    (void)state;
    assert_string_equal(hgemm_activation_name(HGEMM_ACTIVATION_NONE), "none");
    assert_string_equal(hgemm_activation_name(HGEMM_ACTIVATION_GELU_TANH), "gelu_tanh");
    assert_int_equal(name_value(activation_names, "gelu_erf"), HGEMM_ACTIVATION_GELU_ERF);
    assert_int_equal(name_count(activation_names), ACTIVATION_COUNT);
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        assert_string_equal(hgemm_activation_name((hgemm_activation_t)i), activation_names[i]);
    assert_null(hgemm_activation_name((hgemm_activation_t)ACTIVATION_COUNT));
    assert_null(hgemm_activation_name((hgemm_activation_t)-1));
}

/* A and B as they lie in memory, each with a type of its own. */
static void factors_are_apart(void **state)
{
    (void)state;
    hgemm_desc_t p;
    hgemm_desc_init(&p);
    p.m = 3, p.n = 5, p.k = 7, p.batch = 2;
    p.a = (const void *)64, p.b = (const void *)72;
    p.op_a = HGEMM_OP_T, p.op_b = HGEMM_OP_T;
    p.lda = 11, p.ldb = 13, p.stride_a = 100, p.stride_b = 200;
    p.type_b = HGEMM_TYPE_BF16;
    const problem_t given = normalise(&p);
    const factor_t a = given.a, b = given.b;
    assert_true(a.address == 64 && a.type == HGEMM_TYPE_F16 && !a.is_along_k);
    assert_true(a.lines == 7 && a.width == 3 && a.ld == 11 && a.stride == 100);
    assert_true(a.aligned == 16 && a.whole == 1 && a.bytes == 2);
    assert_true(b.address == 72 && b.type == HGEMM_TYPE_BF16 && b.is_along_k);
    assert_true(b.lines == 5 && b.width == 7 && b.ld == 13 && b.stride == 200);
    assert_true(b.aligned == 8 && b.has_scale && b.finds_scale);
    assert_int_equal(given.scales, FACTOR_B);
    p.batch_mode = HGEMM_BATCH_POINTERS;
    assert_int_equal(normalise(&p).a.address, 2); /* what an element promises */
    p.alignment = 64;
    assert_int_equal(normalise(&p).b.address, 64);
}

/* Rows in whole groups of 8 elements, of 4, or neither: by address, leading dimension, width and stride. */
static void rows_are_whole_or_not(void **state)
{
    (void)state;
    static const struct {
        hgemm_type_t type;
        int address, ld, width, batch, stride, whole;
    } cases[] = {
        {HGEMM_TYPE_F16, 16, 24, 16, 1, 0, 8}, {HGEMM_TYPE_F16, 8, 24, 16, 1, 0, 4},
        {HGEMM_TYPE_F16, 2, 24, 16, 1, 0, 1},  {HGEMM_TYPE_F16, 16, 20, 16, 1, 0, 4},
        {HGEMM_TYPE_F16, 16, 24, 12, 1, 0, 4}, {HGEMM_TYPE_F16, 16, 24, 10, 1, 0, 1},
        {HGEMM_TYPE_F16, 16, 24, 16, 1, 3, 8}, {HGEMM_TYPE_F16, 16, 24, 16, 2, 4, 4},
        {HGEMM_TYPE_F16, 16, 24, 16, 2, 3, 1}, {HGEMM_TYPE_F32, 16, 20, 16, 1, 0, 8},
        {HGEMM_TYPE_F32, 16, 20, 12, 1, 0, 4}, {HGEMM_TYPE_F32, 8, 20, 12, 1, 0, 1},
        {HGEMM_TYPE_F32, 16, 20, 12, 2, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hgemm_desc_t desc;
        hgemm_desc_init(&desc);
        desc.type_a = desc.type_b = cases[i].type;
        desc.m = desc.n = desc.ldb = desc.ldd = 32, desc.k = cases[i].width, desc.batch = cases[i].batch;
        desc.a = (const void *)(uintptr_t)(64 + cases[i].address), desc.lda = cases[i].ld;
        desc.stride_a = cases[i].stride;
        if (normalise(&desc).a.whole != cases[i].whole)
            fail_msg("case %d: %d, want %d", (int)i, normalise(&desc).a.whole, cases[i].whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_have_bytes),      cmocka_unit_test(types_are_found_by_name),
        cmocka_unit_test(values_are_found_by_name), cmocka_unit_test(weights_are_words),
        cmocka_unit_test(activations_have_names),   cmocka_unit_test(factors_are_apart),
        cmocka_unit_test(rows_are_whole_or_not),    cmocka_unit_test(codes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
