/* SPDX-License-Identifier: MIT */
/* Plans as callers have them: what they say, what they run, what they refuse. On a device that only records. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "util.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define VERSION TEXT(HGEMM_VERSION_MAJOR) "." TEXT(HGEMM_VERSION_MINOR) "." TEXT(HGEMM_VERSION_PATCH)

enum { WORKSPACE = 1 << 20 };

static _Alignas(128) unsigned char workspace[WORKSPACE];

static int open_fixture(void **state)
{
    set_up(state);
    fake.compute = 0;
    strcpy(handle.info.name, "fake");
    handle.info.clock_khz = 1000000;
    handle.workspace = workspace, handle.workspace_bytes = sizeof workspace;
    return 0;
}

static hgemm_plan_t create(const hgemm_desc_t *desc)
{
    hgemm_plan_t plan = NULL;
    assert_status(hgemm_plan_create(&plan, &handle, desc), HGEMM_STATUS_SUCCESS);
    assert_non_null(plan);
    return plan;
}

static hgemm_plan_info_t info_of(hgemm_plan_t plan)
{
    hgemm_plan_info_t info;
    memset(&info, 0x55, sizeof info);
    assert_status(hgemm_plan_get_info(plan, &info), HGEMM_STATUS_SUCCESS);
    return info;
}

/* A long k: 64 x 64 x 8192, no memory of which is touched. */
static hgemm_desc_t long_k(void)
{
    hgemm_desc_t desc = small();
    desc.m = desc.n = 64, desc.k = 8192;
    desc.lda = desc.k, desc.ldb = desc.ldc = desc.ldd = 64;
    desc.a = elsewhere(0), desc.b = elsewhere(1 << 24), desc.c = desc.d = elsewhere(1 << 25);
    return desc;
}

static void assert_words(hgemm_status_t status, hgemm_status_t expected, const char *word)
{
    const char *words = hgemm_error_detail(&handle);
    assert_status(status, expected);
    if (!strstr(words, word) || words[strlen(words) - 1] != '.')
        fail_msg("\"%s\" is no sentence with \"%s\"", words, word);
    assert_int_equal(fake.launches, 0);
}

/* A run by a plan is the run without: the same kernel, grid and arguments. */
static void a_plan_runs_what_the_call_runs(void **state)
{
    (void)state;
    const hgemm_desc_t descs[] = {small(), long_k()};
    for (int i = 0; i < 2; i++) {
        hgemm_plan_t plan = create(&descs[i]);
        int loads = fake.loads;
        assert_status(hgemm_plan_run(plan, &handle, &descs[i]), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake.launches, 1);
        assert_int_equal(fake.loads, loads); /* it was loaded with the plan */
        kernel_args_t args = fake.args;
        launch_t launch = fake.launch;
        const image_t *image = fake.image;
        assert_status(hgemm_run_desc(&handle, &descs[i]), HGEMM_STATUS_SUCCESS);
        assert_true(args.a == fake.args.a && args.b == fake.args.b && args.c == fake.args.c && args.d == fake.args.d);
        assert_true(args.lda == fake.args.lda && args.ldb == fake.args.ldb && args.ldd == fake.args.ldd);
        assert_true(args.m == fake.args.m && args.n == fake.args.n && args.k == fake.args.k);
        assert_true(args.alpha == fake.args.alpha && args.beta == fake.args.beta);
        assert_true(args.whole_tiles == fake.args.whole_tiles && args.splits == fake.args.splits);
        assert_true(args.k_split == fake.args.k_split && args.workspace == fake.args.workspace);
        assert_memory_equal(launch.grid, fake.launch.grid, sizeof launch.grid);
        assert_ptr_equal(image, fake.image);
        hgemm_plan_destroy(plan);
        fake.launches = 0;
    }
}

static void a_plan_tells_what_it_is(void **state)
{
    (void)state;
    hgemm_desc_t desc = long_k();
    hgemm_plan_t plan = create(&desc);
    hgemm_plan_info_t info = info_of(plan);
    int kernel;
    assert_true(info.splits > 1 && info.split_tiles >= 1 && info.split_tiles <= info.tiles);
    assert_true(info.workspace_bytes > HGEMM_WORKSPACE_TILES * 4 && info.workspace_bytes <= sizeof workspace);
    assert_true(info.seconds > 1e-6 && info.seconds < 1e-3);
    assert_int_equal(info.is_tuned, 0);
    assert_int_equal(info.copies_a + info.copies_b, 0);
    hgemm_plan_destroy(plan);

    desc = small();
    plan = create(&desc);
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
    assert_int_equal(info_of(plan).kernel, kernel);
    assert_int_equal(info_of(plan).splits, 1);
    assert_int_equal(info_of(plan).workspace_bytes, 0);
    hgemm_plan_destroy(plan);

    desc.m = 0;
    plan = create(&desc);
    const hgemm_plan_info_t none = {0};
    info = info_of(plan);
    assert_memory_equal(&info, &none, sizeof none);
    assert_status(hgemm_plan_run(plan, &handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 0);
    hgemm_plan_destroy(plan);
}

/* In column-major layout, A of the call is B of the row-major problem. */
static void copies_are_those_of_the_call(void **state)
{
    (void)state;
    static char memory[64 << 20];
    static const char *const texts[] = {
        [HGEMM_ROW_MAJOR] =
            "hgemm " VERSION " | fake | f16 nn 2048x2048x2048 aligned 2 16 | k5_256x128 nn x16 copies a",
        [HGEMM_COL_MAJOR] =
            "hgemm " VERSION " | fake | f16 nn 2048x2048x2048 aligned 16 2 | k5_256x128 nn x16 copies b"};
    handle.workspace = memory, handle.workspace_bytes = sizeof memory;
    for (int layout = 0; layout < 2; layout++) {
        hgemm_desc_t desc = small();
        desc.layout = (hgemm_layout_t)layout;
        desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 2048;
        desc.a = elsewhere(2), desc.b = elsewhere(1 << 24), desc.c = desc.d = elsewhere(1 << 26);
        hgemm_plan_t plan = NULL;
        assert_status(hgemm_plan_from_text(&plan, &handle, &desc, texts[layout]), HGEMM_STATUS_SUCCESS);
        hgemm_plan_info_t info = info_of(plan);
        assert_int_equal(info.copies_a, 1);
        assert_int_equal(info.copies_b, 0);
        assert_true(info.workspace_bytes >= (size_t)2048 * 2048 * 2);
        hgemm_plan_destroy(plan);
    }
}

/* Pointers of the same alignment, scalars, ldc, ldd may differ. */
static void other_pointers_serve(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    hgemm_plan_t plan = create(&desc);
    desc.a = a + 64, desc.b = b + 8, desc.c = c + 1, desc.d = d + 1;
    desc.ldc = 17, desc.ldd = 18, desc.alpha = 3, desc.beta = 0;
    assert_status(hgemm_plan_run(plan, &handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
    assert_ptr_equal(fake.args.a, a + 64);
    hgemm_plan_destroy(plan);
}

static void other_problems_are_refused(void **state)
{
    (void)state;
    const hgemm_desc_t desc = small();
    hgemm_plan_t plan = create(&desc);
    enum { CHANGES = 13 };
    hgemm_desc_t changed[CHANGES];
    for (int i = 0; i < CHANGES; i++)
        changed[i] = desc;
    changed[0].m = 7;
    changed[1].n = 15;
    changed[2].k = 23;
    changed[3].lda = 25;
    changed[4].ldb = 24;
    changed[5].batch = 2, changed[5].stride_d = changed[5].stride_c = 8 * 16;
    changed[6].accumulate = HGEMM_ACCUMULATE_F32;
    changed[7].op_a = HGEMM_OP_T;
    changed[8].a = a + 1;
    changed[9].b = b + 4;
    changed[10].bias = c;
    changed[11].flags = HGEMM_FLAG_BATCH_INVARIANT;
    changed[12].alpha = 0; /* then k is 0 */
    for (int i = 0; i < CHANGES; i++)
        assert_words(hgemm_plan_run(plan, &handle, &changed[i]), HGEMM_STATUS_INVALID_PLAN,
                     "The plan is for f16 nn 8x16x24, the call is ");
    changed[0] = desc, changed[0].kernel = KERNEL_k1_tiled;
    assert_words(hgemm_plan_run(plan, &handle, &changed[0]), HGEMM_STATUS_INVALID_PLAN, "the call names k1_tiled");
    hgemm_plan_t rung; /* a plan is for any C and D of a class, but a rung wants them aligned */
    changed[0] = desc, changed[0].kernel = KERNEL_k1_tiled, changed[0].ldd = changed[0].ldc = 24;
    assert_status(hgemm_plan_create(&rung, &handle, &changed[0]), HGEMM_STATUS_SUCCESS);
    changed[0].ldd = 25;
    assert_words(hgemm_plan_run(rung, &handle, &changed[0]), HGEMM_STATUS_INVALID_PLAN, "aligned rows");
    hgemm_plan_destroy(rung);
    changed[0] = desc, changed[0].lda = 23; /* the call is checked as ever */
    assert_words(hgemm_plan_run(plan, &handle, &changed[0]), HGEMM_STATUS_INVALID_LDA, "23");
    strcpy(handle.info.name, "another");
    assert_words(hgemm_plan_run(plan, &handle, &desc), HGEMM_STATUS_INVALID_PLAN,
                 "\"fake\", the handle's is \"another\"");
    assert_true(d_is_untouched());
    hgemm_plan_destroy(plan);
}

/* Asked, a plan tells what it needs; with that much it runs, with less it is refused. */
static void the_workspace_is_as_asked(void **state)
{
    (void)state;
    const hgemm_desc_t desc = long_k();
    hgemm_plan_t plan = create(&desc);
    size_t bytes = info_of(plan).workspace_bytes;
    assert_status(hgemm_set_workspace(&handle, workspace, bytes - 128), HGEMM_STATUS_SUCCESS);
    assert_words(hgemm_plan_run(plan, &handle, &desc), HGEMM_STATUS_INVALID_PLAN, "needs a workspace of ");
    assert_status(hgemm_set_workspace(&handle, workspace, bytes), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_plan_run(plan, &handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
    assert_ptr_equal(fake.args.workspace, workspace);
    hgemm_plan_destroy(plan);
}

static void text_is_read_back(void **state)
{
    (void)state;
    hgemm_desc_t descs[4] = {small(), long_k(), long_k(), small()};
    descs[2].layout = HGEMM_COL_MAJOR, descs[2].lda = 64, descs[2].ldb = 8192;
    descs[3].beta = 1, descs[3].alpha = 0, descs[3].c = descs[3].d; /* nothing to compute */
    for (int i = 0; i < 4; i++) {
        char text[HGEMM_PLAN_TEXT], again[HGEMM_PLAN_TEXT];
        hgemm_plan_t plan = create(&descs[i]), read = NULL;
        assert_status(hgemm_plan_get_text(plan, text), HGEMM_STATUS_SUCCESS);
        assert_status(hgemm_plan_from_text(&read, &handle, &descs[i], text), HGEMM_STATUS_SUCCESS);
        hgemm_plan_info_t one = info_of(plan), other = info_of(read);
        assert_int_equal(one.kernel, other.kernel);
        assert_int_equal(one.splits, other.splits);
        assert_int_equal(one.tiles, other.tiles);
        assert_int_equal(one.split_tiles, other.split_tiles);
        assert_int_equal(one.workspace_bytes, other.workspace_bytes);
        assert_true(one.seconds == other.seconds);
        assert_status(hgemm_plan_get_text(read, again), HGEMM_STATUS_SUCCESS);
        assert_string_equal(text, again);
        assert_status(hgemm_plan_run(read, &handle, &descs[i]), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake.launches, i < 3);
        fake.launches = 0;
        hgemm_plan_destroy(plan);
        hgemm_plan_destroy(read);
    }
}

/* Rows in groups stay rows: a column-major D is another problem than a row-major one, with the same A and B. */
static void groups_tell_the_layout_of_d(void **state)
{
    (void)state;
    static int32_t ends[1] = {8};
    char text[HGEMM_PLAN_TEXT];
    hgemm_desc_t rows = small();
    rows.batch_mode = HGEMM_BATCH_GROUPED, rows.group_ends = ends;
    hgemm_desc_t columns = rows;
    columns.layout = HGEMM_COL_MAJOR, columns.op_a = columns.op_b = HGEMM_OP_T, columns.ldc = columns.ldd = 8;
    hgemm_plan_t plan = create(&columns), read = NULL;
    assert_status(hgemm_plan_get_text(plan, text), HGEMM_STATUS_SUCCESS);
    assert_non_null(strstr(text, "f16 nn 8x16x24 grouped col_major |"));
    assert_status(hgemm_plan_from_text(&read, &handle, &columns, text), HGEMM_STATUS_SUCCESS);
    assert_words(hgemm_plan_run(plan, &handle, &rows), HGEMM_STATUS_INVALID_PLAN, "col_major");
    assert_status(hgemm_plan_run(read, &handle, &columns), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
    assert_int_equal(fake.args.indirect, HGEMM_INDIRECT_GROUPED | HGEMM_INDIRECT_BY_COLUMNS);
    hgemm_plan_destroy(plan);
    hgemm_plan_destroy(read);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "no plan"},
        {"hgemm", "no plan"},
        {"hgemm " VERSION " | fake", "no plan"},
        {"hgemm 0.1.0 | fake | f16 nn 8x16x24 | k5_64x64 nn x16", "the library \"hgemm 0.1.0\""},
        {"hgemm " VERSION " | Tesla T4 | f16 nn 8x16x24 | k5_64x64 nn x16", "the device \"Tesla T4\", not \"fake\""},
        {"hgemm " VERSION " | fake | f16 nn 8x16x32 | k5_64x64 nn x16", "the problem \"f16 nn 8x16x32\""},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x65 nn x16", "no kernel"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | planes_64x64 nt x16", "no kernel"}, /* of earlier builds */
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64_f32 nn x16", "does not run"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64 nt x16", "transposes"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64 nn x16 whole 0 splits 9 k 64", "parts"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64 nn x16 copies a", "copies"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | nothing", "no kernel"},
        {"hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64 nn x16\n", "access"},
    };
    const hgemm_desc_t desc = small();
    hgemm_plan_t plan = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_words(hgemm_plan_from_text(&plan, &handle, &desc, cases[i].text), HGEMM_STATUS_INVALID_PLAN,
                     cases[i].word);
        assert_null(plan);
    }
    assert_int_equal(fake.loads, 0);
    assert_status(
        hgemm_plan_from_text(&plan, &handle, &desc, "hgemm " VERSION " | fake | f16 nn 8x16x24 | k5_64x64 nn any"),
        HGEMM_STATUS_SUCCESS); /* a more general access than is needed */
    hgemm_plan_destroy(plan);
}

/* Texts that were spoilt are refused, or are plans that run the call: nothing else happens. */
static void spoilt_texts_do_no_harm(void **state)
{
    (void)state;
    const hgemm_desc_t desc = long_k();
    char text[HGEMM_PLAN_TEXT], spoilt[HGEMM_PLAN_TEXT];
    rng_t rng = {test_seed()};
    hgemm_plan_t plan = create(&desc);
    hgemm_plan_get_text(plan, text);
    hgemm_plan_destroy(plan);
    const size_t length = strlen(text);
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        strcpy(spoilt, text);
        for (int64_t n = rng_between(&rng, 1, 3); n > 0; n--)
            spoilt[rng_between(&rng, 0, (int64_t)length - 1)] =
                rng_between(&rng, 0, 1) ? "0123456789 x|ab"[rng_between(&rng, 0, 14)] : (char)rng_between(&rng, 0, 255);
        hgemm_plan_t read = NULL;
        hgemm_status_t status = hgemm_plan_from_text(&read, &handle, &desc, spoilt);
        refused += status == HGEMM_STATUS_INVALID_PLAN;
        assert_true((status == HGEMM_STATUS_SUCCESS) == (read != NULL));
        assert_true(status == HGEMM_STATUS_SUCCESS || status == HGEMM_STATUS_INVALID_PLAN);
        if (read)
            assert_status(hgemm_plan_run(read, &handle, &desc), HGEMM_STATUS_SUCCESS);
        hgemm_plan_destroy(read);
    }
    assert_in_range(refused, 15000, 19999);
}

/* Sizes that no memory has are counted as far as numbers go, which sanitizers watch. */
static void counts_do_not_overflow(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.a = elsewhere(2), desc.b = elsewhere(6), desc.d = elsewhere(UINT64_C(1) << 62), desc.beta = 0;
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 1518500002;
    for (handle.machine.is_newer = 0; handle.machine.is_newer < 2; handle.machine.is_newer++) {
        hgemm_plan_t none; /* copies of A and B have almost 2^63 bytes; no kernel has so many tiles */
        assert_status(hgemm_plan_create(&none, &handle, &desc), HGEMM_STATUS_NOT_SUPPORTED);
    }
    desc.m = desc.n = desc.k = 1024, desc.a = elsewhere(0), desc.b = elsewhere(8);
    desc.batch = INT64_C(1) << 59, desc.batch_mode = HGEMM_BATCH_POINTERS;
    hgemm_plan_t plan = create(&desc);
    assert_true(info_of(plan).tiles == INT64_MAX && info_of(plan).split_tiles == 0);
    hgemm_plan_destroy(plan);
}

/* Why a call is not supported stays told, with the value, where there is no problem to look for a kernel for. */
static void reasons_stay_told(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    hgemm_plan_t none;
    desc.type_a = desc.type_b = HGEMM_TYPE_F32, desc.accumulate = HGEMM_ACCUMULATE_F16;
    assert_status(hgemm_plan_create(&none, &handle, &desc), HGEMM_STATUS_NOT_SUPPORTED);
    assert_string_equal(hgemm_error_detail(&handle),
                        "No kernel has HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32.");
}

static void null_is_refused(void **state)
{
    (void)state;
    const hgemm_desc_t desc = small();
    hgemm_plan_t plan = create(&desc);
    hgemm_plan_info_t info;
    assert_status(hgemm_plan_create(NULL, &handle, &desc), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_create(&plan, NULL, &desc), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_create(&plan, &handle, NULL), HGEMM_STATUS_INVALID_DESC);
    assert_status(hgemm_plan_get_info(NULL, &info), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_get_info(plan, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_get_text(NULL, (char[HGEMM_PLAN_TEXT]){0}), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_run(NULL, &handle, &desc), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_run(plan, NULL, &desc), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_run(plan, &handle, NULL), HGEMM_STATUS_INVALID_DESC);
    assert_status(hgemm_plan_from_text(&plan, &handle, &desc, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_plan_from_text(NULL, &handle, &desc, ""), HGEMM_STATUS_INVALID_HANDLE);
    hgemm_plan_destroy(NULL);
    hgemm_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_plan_runs_what_the_call_runs, open_fixture),
        cmocka_unit_test_setup(a_plan_tells_what_it_is, open_fixture),
        cmocka_unit_test_setup(copies_are_those_of_the_call, open_fixture),
        cmocka_unit_test_setup(other_pointers_serve, open_fixture),
        cmocka_unit_test_setup(other_problems_are_refused, open_fixture),
        cmocka_unit_test_setup(the_workspace_is_as_asked, open_fixture),
        cmocka_unit_test_setup(text_is_read_back, open_fixture),
        cmocka_unit_test_setup(groups_tell_the_layout_of_d, open_fixture),
        cmocka_unit_test_setup(other_texts_are_refused, open_fixture),
        cmocka_unit_test_setup(spoilt_texts_do_no_harm, open_fixture),
        cmocka_unit_test_setup(counts_do_not_overflow, open_fixture),
        cmocka_unit_test_setup(reasons_stay_told, open_fixture),
        cmocka_unit_test_setup(null_is_refused, open_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
