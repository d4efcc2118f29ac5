/* SPDX-License-Identifier: MIT */
/* Classes of problems in words, tuning files, and what they change. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "select/plan_text.h"
#include "problem/problem.h"
#include "problem/weights_text.h"
#include "select/problem_class.h"
#include "util.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define VERSION TEXT(HGEMM_VERSION_MAJOR) "." TEXT(HGEMM_VERSION_MINOR) "." TEXT(HGEMM_VERSION_PATCH)
#define HEADER "hgemm tuning 1\nlibrary " VERSION "\ndevice fake\ndriver 12.2\n"

static char path[64];

static int open_fixture(void **state)
{
    set_up(state);
    strcpy(handle.info.name, "fake");
    handle.info.driver_version = 12020;
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    return hgemm_load_tuning(&handle, NULL);
}

static void write_file(const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

/* ---- Classes --------------------------------------------------------------------------------------- */

/* Words of files that other versions read: they stay. */
static void words_are_these(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "f16 nn 512x512x512",
        "f32 nt 16x4096x1024",
        "f16 tn 8x16x24 batch 3",
        "f16 tt 8x16x24 lda 9 ldb 25",
        "f16 nn 8x16x24 batch 3 lda 32 ldb 64 strides 0 99",
        "f16 nn 8x16x24 batch 3 strides 192 0",
        "f32 nn 8x16x24 batch 3 grouped types bf16 bf16 scaled_a scaled_b",
        "f32 nn 8x16x24 aligned 2 4 types bf16 f32",
        "f32 nt 8x16x24 aligned 4 4 types f32 f32 accuracy 16bits",
        "f32 tn 8x16x24 types f32 f32 accuracy 11bits exact ab",
        "f32 nn 8x16x24 types f32 f16 exact ab",
        "f16 nn 8x16x24 aligned 8 16",
        "f32 nn 8x16x24 aligned 16 2 fused",
        "f16 nn 8x16x24 batch 4 invariant gathered grouped",
        "f16 nn 8x16x24 batch 4 aligned 8 8 fused invariant gathered pointers",
        "f16 nt 2147483647x2147483647x2147483647 lda 9223372036854775807 aligned 2 2",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        problem_class_t class;
        char again[CLASS_TEXT];
        assert_null(class_from_text(texts[i], &class));
        class_to_text(&class, again);
        assert_string_equal(again, texts[i]);
    }
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "f16",
        "f17 nn 8x16x24",
        "f16 nx 8x16x24",
        "f16 nn",
        "f16 nn 8",
        "f16 nn 8x16",
        "f16 nn 8x16x",
        "f16 nn 8x16x24x",
        "f16 nn 8x16x2147483648",
        "f16 nn -8x16x24",
        "f16  nn 8x16x24",
        "f16 nn 8x16x24 batch",
        "f16 nn 8x16x24 batch x",
        "f16 nn 8x16x24 lda 9223372036854775808",
        "f16 nn 8x16x24 ldb 9 lda 8",
        "f16 nn 8x16x24 strides 1",
        "f16 nn 8x16x24 aligned 4 16",
        "f16 nn 8x16x24 aligned 16",
        "f16 nn 8x16x24 fused fused",
        "f16 nn 8x16x24 grouped pointers",
        "f16 nn 8x16x24 gathered fused",
        "f16 nn 8x16x24 more",
        "f16 nn 8x16x24 types bf16",
        "f16 nn 8x16x24 types bf16 f17",
        "f16 nn 8x16x24 aligned 2 2 types f16 f32",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        problem_class_t class;
        if (!class_from_text(texts[i], &class))
            fail_msg("\"%s\" is taken", texts[i]);
    }
}

static hgemm_desc_t random_problem(rng_t *rng, hgemm_weights_t *weights)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.accumulate = (hgemm_accumulate_t)rng_between(rng, 0, 1);
    desc.op_a = (hgemm_op_t)rng_between(rng, 0, 1), desc.op_b = (hgemm_op_t)rng_between(rng, 0, 1);
    desc.m = rng_between(rng, 1, 999), desc.n = 8 * rng_between(rng, 1, 99), desc.k = 8 * rng_between(rng, 1, 999);
    int64_t gap = rng_between(rng, 0, 1) ? rng_between(rng, 0, 9) : 0;
    desc.lda = (desc.op_a ? desc.m : desc.k) + gap, desc.ldb = (desc.op_b ? desc.k : desc.n) + gap;
    desc.ldc = desc.ldd = desc.n;
    desc.batch = rng_between(rng, 0, 3) ? 1 : rng_between(rng, 2, 9);
    desc.stride_a = (desc.op_a ? desc.k : desc.m) * desc.lda, desc.stride_b = rng_between(rng, 0, 99999);
    desc.stride_d = desc.m * desc.n;
    desc.a = (const void *)(uintptr_t)(4096 + 2 * rng_between(rng, 0, 15));
    desc.b = (const void *)(uintptr_t)(4096 + 8 * rng_between(rng, 0, 3));
    desc.bias = rng_between(rng, 0, 3) ? NULL : desc.a;
    desc.flags = rng_between(rng, 0, 7) ? 0 : HGEMM_FLAG_BATCH_INVARIANT;
    if (desc.accumulate == HGEMM_ACCUMULATE_F32 && !desc.op_a && desc.op_b && rng_between(rng, 0, 1)) {
        static const char *const words[] = {"int4:128", "uint4:16:code", "int8:0:offset:f32", "e4m3:256:none:bf16",
                                            "nf4:64"};
        assert_null(weights_from_text(words[rng_between(rng, 0, 4)], weights));
        weights->n = desc.n, weights->k = desc.k;
        desc.weights = weights, desc.stride_b = 16 * rng_between(rng, 0, 9999);
        desc.b = (const void *)(uintptr_t)(4096 + 16 * rng_between(rng, 0, 3));
    } else if (desc.accumulate == HGEMM_ACCUMULATE_F32 && rng_between(rng, 0, 1)) {
        hgemm_type_t *const types[] = {&desc.type_a, &desc.type_b};
        desc.type_a = desc.type_b = HGEMM_TYPE_F32;
        if (rng_between(rng, 0, 1))
            *types[rng_between(rng, 0, 1)] = rng_between(rng, 0, 1) ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16;
        desc.accuracy = (hgemm_accuracy_t)rng_between(rng, HGEMM_ACCURACY_F32, HGEMM_ACCURACY_11_BITS);
        desc.flags |= (unsigned)rng_between(rng, 0, 3) * HGEMM_FLAG_HALVES_IN_A;
        desc.a = (const void *)(uintptr_t)(4096 + 4 * rng_between(rng, 0, 7));
    }
    return desc;
}

/* Problems of one class have one plan; the words hold all of the class; the class's example is of it. */
static void a_class_is_what_selection_sees(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 5000; i++) {
        hgemm_weights_t drawn_weights, weights;
        hgemm_desc_t drawn = random_problem(&rng, &drawn_weights), other = drawn, example;
        const problem_t of_drawn = normalise(&drawn);
        problem_class_t class = class_of(&of_drawn), read;
        char text[CLASS_TEXT];
        class_to_text(&class, text);
        assert_null(class_from_text(text, &read));
        assert_int_equal(class_compare(&class, &read), 0);
        assert_null(class_example(&class, &example, &weights));
        const problem_t example_of_class = normalise(&example);
        problem_class_t of_example = class_of(&example_of_class);
        assert_int_equal(class_compare(&class, &of_example), 0);

        static const int64_t residues[4][4] = {{0, 16, 32, 160}, {8, 24, 40, 152}, {2, 4, 6, 12}, {4, 12, 20, 28}};
        int which = class.of[CLASS_aligned_a] == 16 ? 0 : class.of[CLASS_aligned_a] == 8 ? 1 : 2;
        which += which == 2 && of_drawn.a.type == HGEMM_TYPE_F32;
        other.a = (const void *)(uintptr_t)(8192 + residues[which][rng_between(&rng, 0, 3)]);
        other.alpha = 5, other.ldd += 3;
        const problem_t other_of_class = normalise(&other);
        problem_class_t of_other = class_of(&other_of_class);
        assert_int_equal(class_compare(&class, &of_other), 0);
        plan_t plans[3];
        const problem_t *const same[3] = {&of_drawn, &other_of_class, &example_of_class};
        for (int j = 0; j < 3; j++)
            assert_int_equal(select_plan(same[j], &machine_t4, machine_t4.workspace_bytes, &plans[j]),
                             HGEMM_STATUS_SUCCESS);
        assert_true(same_plan(&plans[0], &plans[1]) && same_plan(&plans[0], &plans[2]));
    }
}

/* ---- Files ----------------------------------------------------------------------------------------- */

static void faults_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "is no tuning file: it has 0 lines"},
        {"hgemm tuning 1\nlibrary " VERSION "\ndevice fake\n", "it has 3 lines"},
        {"hgemm tuning 2\n", "line 1 is \"hgemm tuning 2\", not \"hgemm tuning 1\""},
        {"\177ELF\n", "line 1 is"},
        {"hgemm tuning 1\nlibrary 0.1.0\n", "line 2 is \"library 0.1.0\", not \"library " VERSION "\""},
        {"hgemm tuning 1\nlibrary " VERSION "\ndevice fak\n", "line 3 is \"device fak\", not \"device fake\""},
        {"hgemm tuning 1\nlibrary " VERSION "\ndevice fake\ndriver 12.20\n", "line 4 is \"driver 12.20\""},
        {HEADER "f16 nn 64x64x64\n", "line 5 that cannot be used: a problem and its plan are joined"},
        {HEADER "\n# words\nf16 nn 64x64x64 =\n", "line 7 that"},
        {HEADER "f16 nn 64x64 = k5_64x64 nn x16\n", "followed by MxNxK"},
        {HEADER "f16 nn 64x64x0 = k5_64x64 nn x16\n", "k is 0"},
        {HEADER "f16 nn 0x64x64 = k5_64x64 nn x16\n", "D has no elements"},
        {HEADER "f16 nn 64x64x64 lda 63 = k5_64x64 nn x16\n", "lda is 63; a stored row of A has 64 elements."},
        {HEADER "f16 nn 64x64x64 batch 9223372036854775807 = k5_64x64 nn x16\n",
         "stride_a is 4096 and batch 9223372036854775807"},
        {HEADER "f16 nn 64x64x64 types f32 f32 = single_128x64 nn x16\n",
         "No kernel has HGEMM_ACCUMULATE_F16 for A or B of"},
        {HEADER "f32 nn 64x64x64 types f16 packed = weights_16x128 nn x16\n", "packed weights with op_b of HGEMM_OP_N"},
        {HEADER "f32 nt 64x64x63 types f16 packed = weights_16x128 nt x16\n", "weights->k is 63"},
        {HEADER "f32 nt 64x64x64 types f32 packed = weights_16x128 nt x16\n", "A of HGEMM_TYPE_F32 beside B of packed"},
        {HEADER "f16 nn 64x64x64 = k9 nn x16\n", "no kernel"},
        {HEADER "f32 nt 64x64x64 types f32 f32 = planes_64x64 nt x16\n", "no kernel"}, /* of earlier builds */
        {HEADER "f16 nn 64x64x64 = k5_64x64 nt x16\n", "transposes"},
        {HEADER "f16 nn 64x64x64 = k5_64x64_f32 nn x16\n", "does not run"},
        {HEADER "f16 nn 64x64x64 aligned 8 8 = k5_64x64 nn x16\n", "access"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 whole 0 splits 2 k 64\n", "cover k"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 copies a\n", "copies"},
        {HEADER "f16 nn 64x64x64 = k1_tiled nn x16 whole 0 splits 2 k 32\n", "cannot split"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas\n", "more words"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 1\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 1,250\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 1.25\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 1.2500\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas -1.250\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 0.000\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16 cublas 1.250 1.250\n", "such as 1.250"},
        {HEADER "f16 nn 64x64x64 grouped = k5_64x64 nn x16\n", "are not tuned"},
        {HEADER "f32 nt 64x64x64 types f16 packed groups 32 = k5_64x64_f32 nt x16\n", "does not run"},
        {HEADER "f32 nt 64x64x64 types f16 packed groups 48 = weights_16x128 nt x16\n", "weights->group is 48"},
        {HEADER "f16 nn 64x64x64 invariant = k5_64x64 nn x16\n", "are not tuned"},
        {HEADER "f16 nn 64x64x64 = k5_64x64 nn x16\nf16 nn 64x64x72 = k5_64x64 nn x16\n"
                "f16 nn 64x64x64 lda 64 = k5_64x32 nn x16 # once more\n",
         "one problem twice, in lines 5 and 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i].text, strlen(cases[i].text));
        assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_INVALID_TUNING);
        const char *words = hgemm_error_detail(&handle);
        if (!strstr(words, cases[i].word) || !strstr(words, path) || words[strlen(words) - 1] != '.')
            fail_msg("case %zu: \"%s\" is no sentence with \"%s\"", i, words, cases[i].word);
        assert_null(handle.machine.measured);
    }
    char long_line[3000] = HEADER;
    memset(long_line + strlen(HEADER), ' ', 2000);
    write_file(long_line, 2500);
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_INVALID_TUNING);
    assert_non_null(strstr(hgemm_error_detail(&handle), "too long"));
    assert_status(hgemm_load_tuning(&handle, "/nonexistent/file"), HGEMM_STATUS_INVALID_TUNING);
    assert_non_null(strstr(hgemm_error_detail(&handle), "cannot be opened"));
    assert_status(hgemm_load_tuning(&handle, "/"), HGEMM_STATUS_INVALID_TUNING);
    assert_non_null(strstr(hgemm_error_detail(&handle), "is no regular file."));

    /* Nobody writes the FIFO: who waited for that would wait for ever. */
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_INVALID_TUNING);
    assert_non_null(strstr(hgemm_error_detail(&handle), "is no regular file."));
    unlink(path);
    assert_status(hgemm_load_tuning(NULL, path), HGEMM_STATUS_INVALID_HANDLE);
}

static const char *kernel_of(const hgemm_desc_t *desc, int *is_tuned)
{
    hgemm_plan_t plan;
    hgemm_plan_info_t info;
    assert_status(hgemm_plan_create(&plan, &handle, desc), HGEMM_STATUS_SUCCESS);
    hgemm_plan_get_info(plan, &info);
    hgemm_plan_destroy(plan);
    *is_tuned = info.is_tuned;
    return kernel_table[info.kernel].info.name;
}

/* What a file lists goes before the cost model, in calls that it may serve, until it is taken away. */
static void entries_are_followed(void **state)
{
    (void)state;
    static const char text[] = HEADER "\r\n# words\n"
                                      "f16 nn 8x16x24 = k5_256x128 nn x16 # slow, and so not the model's choice\n"
                                      "f32 nt 8x16x24=k9 # no entry: a comment\n";
    hgemm_desc_t desc = small();
    int is_tuned;
    char by_default[64];
    snprintf(by_default, sizeof by_default, "%s", kernel_of(&desc, &is_tuned));
    write_file(HEADER, strlen(HEADER)); /* lists nothing */
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    assert_string_equal(kernel_of(&desc, &is_tuned), by_default);
    write_file(text, strlen(text) - strlen("f32 nt 8x16x24=k9 # no entry: a comment\n"));
    assert_string_not_equal(by_default, "k5_256x128");
    assert_int_equal(is_tuned, 0);
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    assert_string_equal(kernel_of(&desc, &is_tuned), "k5_256x128");
    assert_int_equal(is_tuned, 1);
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_non_null(strstr(fake.image->symbol, "k5_256x128"));
    hgemm_desc_t as_columns = desc; /* the same row-major problem */
    as_columns.layout = HGEMM_COL_MAJOR;
    as_columns.m = desc.n, as_columns.n = desc.m;
    as_columns.a = desc.b, as_columns.lda = desc.ldb, as_columns.b = desc.a, as_columns.ldb = desc.lda;
    assert_string_equal(kernel_of(&as_columns, &is_tuned), "k5_256x128");

    hgemm_desc_t others[5] = {desc, desc, desc, desc, desc};
    others[0].m = 7;
    others[1].a = a + 4;
    others[2].flags = HGEMM_FLAG_BATCH_INVARIANT;
    others[3].kernel = KERNEL_k1_tiled;
    others[4].bias = c;
    for (int i = 0; i < 5; i++) {
        assert_string_not_equal(kernel_of(&others[i], &is_tuned), "k5_256x128");
        assert_int_equal(is_tuned, 0);
    }
    write_file(text, strlen(text)); /* one line too much: what was loaded stays */
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_INVALID_TUNING);
    assert_string_equal(kernel_of(&desc, &is_tuned), "k5_256x128");
    assert_status(hgemm_load_tuning(&handle, NULL), HGEMM_STATUS_SUCCESS);
    assert_string_equal(kernel_of(&desc, &is_tuned), by_default);
}

/* An entry for packed weights serves calls with such weights, whatever their table, and no others. */
static void entries_know_weights(void **state)
{
    (void)state;
    static const char text[] =
        HEADER "f32 nt 8x64x256 types f16 packed codes table16 groups 64 = weights_32x128 nt x16\n";
    static _Alignas(16) unsigned char packed[64 * 256]; /* as large as any of the cases */
    hgemm_weights_t weights;
    hgemm_desc_t desc;
    int is_tuned;
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.op_b = HGEMM_OP_T;
    desc.m = 8, desc.n = 64, desc.k = 256, desc.lda = 256, desc.ldd = 64;
    desc.a = a, desc.b = packed, desc.d = c, desc.weights = &weights;
    write_file(text, strlen(text));
    static const struct {
        const char *words;
        int is_tuned;
    } cases[] = {{"nf4:64:none:f16", 1}, {"fp4:64:none:f16", 1}, {"nf4:32:none:f16", 0}, {"int4:64", 0}, {"nf4", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(weights_from_text(cases[i].words, &weights));
        weights.n = desc.n, weights.k = desc.k;
        assert_status(hgemm_load_tuning(&handle, NULL), HGEMM_STATUS_SUCCESS);
        assert_string_not_equal(kernel_of(&desc, &is_tuned), "weights_32x128");
        assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
        assert_int_equal(strcmp(kernel_of(&desc, &is_tuned), "weights_32x128") == 0, cases[i].is_tuned);
        assert_int_equal(is_tuned, cases[i].is_tuned);
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(strstr(fake.image->symbol, "weights_32x128") != NULL, cases[i].is_tuned);
    }
    assert_status(hgemm_load_tuning(&handle, NULL), HGEMM_STATUS_SUCCESS);
}

/* Entries for floats serve calls of the same types, accuracy and promised halves. */
static void entries_know_floats(void **state)
{
    (void)state;
    static const char text[] = HEADER "f32 nn 8x16x24 types f32 f32 = single_128x64 nn x16 cublas 1.500\n"
                                      "f32 nn 8x16x24 types f32 f32 accuracy 11bits = single11_128x128 nn x16\n"
                                      "f32 nn 8x16x24 types f32 f32 exact b = single_32x64 nn x16\n"
                                      "f32 nn 8x16x24 types f32 f16 = single_128x64 nn far\n";
    static const struct {
        hgemm_type_t type_b;
        hgemm_accuracy_t accuracy;
        unsigned flags;
        const char *kernel; /* NULL: none of the entries' */
    } cases[] = {{HGEMM_TYPE_F32, HGEMM_ACCURACY_F32, 0, "single_128x64"},
                 {HGEMM_TYPE_F32, HGEMM_ACCURACY_11_BITS, 0, "single11_128x128"},
                 {HGEMM_TYPE_F32, HGEMM_ACCURACY_16_BITS, 0, NULL},
                 {HGEMM_TYPE_F32, HGEMM_ACCURACY_F32, HGEMM_FLAG_HALVES_IN_B, "single_32x64"},
                 {HGEMM_TYPE_F32, HGEMM_ACCURACY_F32, HGEMM_FLAG_HALVES_IN_A, NULL},
                 {HGEMM_TYPE_F32, HGEMM_ACCURACY_F32, HGEMM_FLAG_BATCH_INVARIANT, NULL},
                 {HGEMM_TYPE_F16, HGEMM_ACCURACY_F32, HGEMM_FLAG_HALVES_IN_B, "single_128x64"},
                 {HGEMM_TYPE_BF16, HGEMM_ACCURACY_F32, 0, NULL}};
    hgemm_desc_t desc = small();
    double ratio;
    int is_tuned;
    write_file(text, strlen(text));
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.type_a = HGEMM_TYPE_F32;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        desc.type_b = cases[i].type_b, desc.accuracy = cases[i].accuracy, desc.flags = cases[i].flags;
        const char *const kernel = kernel_of(&desc, &is_tuned);
        if (is_tuned != (cases[i].kernel != NULL) || (cases[i].kernel && strcmp(kernel, cases[i].kernel) != 0))
            fail_msg("case %zu runs on %s, tuned: %d", i, kernel, is_tuned);
        assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_SUCCESS);
        assert_true(ratio == (i == 0 ? 1.5 : 0));
    }
    static const char *const wrong[][2] = {
        {HEADER "f32 nn 8x16x24 types f32 f32 = single11_128x128 nn x16\n", "does not run"},
        {HEADER "f16 nn 8x16x24 types f32 f32 = single_128x64 nn x16\n", "cannot be"},
        {HEADER "f32 nn 8x16x24 types f32 f32 accuracy 12bits = single_128x64 nn x16\n", "accuracy"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_file(wrong[i][0], strlen(wrong[i][0]));
        assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_INVALID_TUNING);
        if (!strstr(hgemm_error_detail(&handle), wrong[i][1]))
            fail_msg("\"%s\" has no \"%s\"", hgemm_error_detail(&handle), wrong[i][1]);
    }
    assert_status(hgemm_load_tuning(&handle, NULL), HGEMM_STATUS_SUCCESS);
}

/* The ratio of an entry is that of the calls that it serves, and of no other. */
static void ratios_are_told(void **state)
{
    (void)state;
    static const char text[] = HEADER "f16 nn 8x16x24 = k5_256x128 nn x16 cublas 1.250 # words\n"
                                      "f16 nn 7x16x24 = k5_256x128 nn x16\n"
                                      "f16 nn 8x16x24 fused = k5_256x128 nn x16 cublas 0.007\n";
    hgemm_desc_t desc = small();
    double ratio = 9;
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_SUCCESS);
    assert_true(ratio == 0);
    write_file(text, strlen(text));
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_SUCCESS);
    assert_true(ratio == 1.25);
    hgemm_desc_t others[6] = {desc, desc, desc, desc, desc, desc};
    static const double expected[6] = {0, 0, 0, 0, 0.007, 0};
    others[0].m = 7;
    others[1].a = a + 4;
    others[2].flags = HGEMM_FLAG_BATCH_INVARIANT;
    others[3].kernel = KERNEL_k1_tiled;
    others[4].bias = c;
    others[5].m = 0;
    for (int i = 0; i < 6; i++) {
        assert_status(hgemm_get_cublas_ratio(&handle, &others[i], &ratio), HGEMM_STATUS_SUCCESS);
        assert_true(ratio == expected[i]);
    }
    ratio = 9;
    others[0].m = -1;
    assert_status(hgemm_get_cublas_ratio(&handle, &others[0], &ratio), HGEMM_STATUS_INVALID_M);
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_cublas_ratio(NULL, &desc, &ratio), HGEMM_STATUS_INVALID_HANDLE);
    assert_true(ratio == 9);
    static const struct {
        double ratio;
        const char *text;
    } written[] = {
        {1.25, " cublas 1.250"}, {0.007, " cublas 0.007"}, {1e-9, " cublas 0.001"}, {1e9, " cublas 999999.999"}};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        char words[TUNING_RATIO];
        tuning_ratio_to_text(written[i].ratio, words);
        assert_string_equal(words, written[i].text);
    }
}

/* An entry whose workspace is not there gives way. */
static void entries_without_workspace_give_way(void **state)
{
    (void)state;
    static const char text[] = HEADER "f16 nn 64x64x8192 = k5_64x64 nn x16 whole 0 splits 128 k 64 cublas 2.500\n";
    static _Alignas(128) char workspace[4 << 20];
    hgemm_desc_t desc = small();
    double ratio;
    int is_tuned;
    desc.m = desc.n = desc.ldb = desc.ldc = desc.ldd = 64, desc.k = desc.lda = 8192;
    desc.a = elsewhere(0), desc.b = elsewhere(1 << 24), desc.c = desc.d = elsewhere(1 << 25);
    write_file(text, strlen(text));
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_set_workspace(&handle, workspace, sizeof workspace), HGEMM_STATUS_SUCCESS);
    kernel_of(&desc, &is_tuned);
    assert_int_equal(is_tuned, 1);
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_SUCCESS);
    assert_true(ratio == 2.5);
    assert_status(hgemm_set_workspace(&handle, workspace, 1 << 20), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_SUCCESS);
    assert_true(ratio == 0);
    kernel_of(&desc, &is_tuned);
    assert_int_equal(is_tuned, 0);
}

/* Files that were spoilt are refused with words, or hold plans that run their problems. */
static void spoilt_files_do_no_harm(void **state)
{
    (void)state;
    static const char text[] =
        HEADER "f16 nn 64x64x8192 = k5_64x64 nn x16 whole 0 splits 128 k 64\n"
               "f32 nt 16x512x1000 lda 1001 aligned 2 2 = k5_16x64_f32 nt any # 9 us\n"
               "f16 tt 200x300x400 batch 7 strides 0 120000 fused = k5_64x64 tt x16\n"
               "f16 nn 2048x2048x2048 aligned 2 16 = k5_256x128 nn x16 copies a\n"
               "f32 nt 64x64x64 types f32 f16 accuracy 16bits exact ab = few_16x64 nt x16 copies b\n";
    char spoilt[sizeof text];
    rng_t rng = {test_seed()};
    int taken = 0, refused = 0;
    write_file(text, strlen(text));
    assert_status(hgemm_load_tuning(&handle, path), HGEMM_STATUS_SUCCESS);
    for (int i = 0; i < 500; i++) {
        size_t length = sizeof text - 1;
        memcpy(spoilt, text, sizeof text);
        for (int64_t n = rng_between(&rng, 1, 4); n > 0; n--)
            spoilt[rng_between(&rng, (int64_t)strlen(HEADER), (int64_t)length - 1)] =
                rng_between(&rng, 0, 2) ? "0123456789 xtnab=#\n"[rng_between(&rng, 0, 18)]
                                        : (char)rng_between(&rng, 0, 255);
        if (rng_between(&rng, 0, 9) == 0)
            length = (size_t)rng_between(&rng, 0, (int64_t)length);
        write_file(spoilt, length);
        hgemm_device_info_t info = {.name = "fake", .driver_version = 12020};
        char why[DEVICE_DETAIL] = "";
        tuning_t *tuning = tuning_read(path, &info, why);
        if (!tuning) {
            assert_true(strlen(why) > 10 && why[strlen(why) - 1] == '.');
            refused++;
        } else {
            taken++;
        }
        tuning_free(tuning);
    }
    assert_in_range(refused, 100, 499);
    assert_in_range(taken, 1, 400);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/hgemm_test_tuning_%ld", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_these),
        cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(a_class_is_what_selection_sees),
        cmocka_unit_test_setup_teardown(faults_are_told, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(entries_are_followed, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(entries_know_weights, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(entries_know_floats, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(ratios_are_told, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(entries_without_workspace_give_way, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(spoilt_files_do_no_harm, open_fixture, close_fixture),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    return failures;
}
