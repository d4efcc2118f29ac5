/* SPDX-License-Identifier: MIT */
/* The emulated T4 as a device of the library: its reports become statuses and words, and a handle is a machine of its
 * own. Its clock is in test_t4emu_time. */
#include "problem_of.h"
#include "emulated.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

static void assert_reported(hgemm_status_t status, const char *word)
{
    assert_string_equal(hgemm_status_name(status), "HGEMM_STATUS_DEVICE_ERROR");
    const char *words = hgemm_error_detail(handle);
    const int has_kernel = strstr(words, "k5_") || strstr(words, "tiny_");
    if (!strstr(words, word) || !has_kernel || words[strlen(words) - 1] != '.')
        fail_msg("the report is no sentence with the kernel and \"%s\": %s", word, words);
}

/* An operand of one element too few: the last is read in vain, with checks or without. Checks tell past whose end,
 * though other operands lie before and behind it. */
static void accesses_out_of_bounds_are_reported(void **state)
{
    (void)state;
    const char *const names[] = {"t4emu", "t4emu:check"};
    for (int i = 0; i < 2; i++) {
        open_device(names[i]);
        void *a = allocate(BYTES, zeros), *b = allocate(BYTES - 2, zeros), *c = allocate(BYTES, NULL);
        assert_reported(multiply(a, b, c), "out of bounds");
        if (i == 1)
            assert_reported(multiply(a, b, c), "past the end of the 510 bytes");
        void *whole = allocate(BYTES, zeros); /* the device lives on */
        assert_int_equal(multiply(a, whole, c), HGEMM_STATUS_SUCCESS);
        close_device();
    }
}

/* Indices and ends of groups that lead out of a matrix: past its end, before its begin, far away. */
static void indices_out_of_range_are_reported(void **state)
{
    (void)state;
    static const int32_t wrong[] = {N, -1, 1 << 20};
    enum { GATHER, SCATTER, ENDS, LISTS };
    for (int layout = 0; layout < 2; layout++)
        for (int list = 0; list < LISTS; list++)
            for (int w = 0; w < 3; w++) {
                int32_t rows[N];
                hgemm_desc_t desc;
                if (list == ENDS && wrong[w] < 0) /* a group of no rows */
                    continue;
                for (int i = 0; i < N; i++)
                    rows[i] = i;
                rows[list == ENDS ? 0 : 5] = list == ENDS ? wrong[w] + 1 : wrong[w];
                open_device("t4emu:check");
                hgemm_desc_init(&desc);
                desc.layout = (hgemm_layout_t)layout;
                desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = N;
                desc.a = allocate(BYTES, zeros), desc.b = allocate(BYTES, zeros), desc.d = allocate(BYTES, NULL);
                const void *indices = allocate(list == ENDS ? sizeof rows[0] : sizeof rows, rows);
                desc.gather_a = list == GATHER ? indices : NULL, desc.scatter_d = list == SCATTER ? indices : NULL;
                if (list == ENDS)
                    desc.batch_mode = HGEMM_BATCH_GROUPED, desc.group_ends = indices;
                /* By columns the row behind the last one is the next column's first, which another lane writes. */
                const int is_twice = layout == HGEMM_COL_MAJOR && list == SCATTER && wrong[w] == N;
                assert_reported(hgemm_run_desc(handle, &desc), is_twice ? "race" : "out of bounds");
                close_device();
            }
}

/* Two rows of different blocks that are scattered to one row of D: which of them stays is left to chance. */
static void a_row_of_d_named_twice_is_reported(void **state)
{
    (void)state;
    enum { M = 300 };
    static uint16_t a[M * N];
    static int32_t rows[M];
    for (int layout = 0; layout < 2; layout++) {
        hgemm_desc_t desc;
        for (int i = 0; i < M; i++)
            rows[i] = i == M - 1 ? 0 : i;
        open_device("t4emu:check");
        hgemm_desc_init(&desc);
        desc.layout = (hgemm_layout_t)layout;
        desc.m = M, desc.n = desc.k = desc.ldb = N;
        desc.lda = desc.ldd = layout == HGEMM_ROW_MAJOR ? N : M;
        desc.a = allocate(sizeof a, a), desc.b = allocate(BYTES, zeros), desc.d = allocate(sizeof a, NULL);
        desc.scatter_d = allocate(sizeof rows, rows);
        assert_reported(hgemm_run_desc(handle, &desc), "race");
        close_device();
    }
}

/* A launch that is stopped when some parts of a split k have come: the next one counts anew. */
static void a_fault_leaves_no_parts_behind(void **state)
{
    (void)state;
    enum { M = 64, K = 4096 };
    static uint16_t a[M * K], d[M * M];
    hgemm_desc_t desc;
    plan_t plan;
    open_device("t4emu");
    hgemm_desc_init(&desc);
    desc.m = desc.n = M, desc.k = desc.lda = K, desc.ldb = desc.ldc = desc.ldd = M;
    desc.alpha = 1.0f / K;
    for (int i = 0; i < M * K; i++)
        a[i] = hgemm_half_from_float(1);
    desc.a = allocate(sizeof a, a), desc.b = allocate(sizeof a, a);
    desc.d = allocate(16, NULL); /* too small for the first tile that is stored */
    assert_int_equal(handle_choose(handle, problem_of(&desc), &plan), HGEMM_STATUS_SUCCESS);
    assert_true(plan.splits > 1 && plan.tiles > 1);
    assert_reported(hgemm_run_desc(handle, &desc), "out of bounds");
    for (int i = 0; i < M * K; i++)
        a[i] = hgemm_half_from_float(-1);
    desc.a = allocate(sizeof a, a), desc.d = allocate(sizeof d, NULL);
    assert_int_equal(hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_download(handle, d, desc.d, sizeof d), HGEMM_STATUS_SUCCESS);
    for (int i = 0; i < M * M; i++)
        assert_true(hgemm_half_to_float(d[i]) == -1);
    close_device();
}

static void reads_of_memory_never_written_are_reported(void **state)
{
    (void)state;
    for (int check = 0; check < 2; check++) {
        open_device(check ? "t4emu:check" : "t4emu");
        void *a = allocate(BYTES, zeros), *b = allocate(BYTES, NULL), *c = allocate(BYTES, NULL);
        hgemm_status_t status = multiply(a, b, c);
        if (check)
            assert_reported(status, "never written");
        else
            assert_int_equal(status, HGEMM_STATUS_SUCCESS);
        close_device();
    }
}

static void copies_stay_within_an_allocation(void **state)
{
    (void)state;
    static uint16_t host[2 * N * N];
    open_device("t4emu");
    char *a = allocate(BYTES, zeros);
    int mark;
    assert_int_equal(hgemm_upload(handle, a, host, BYTES + 1), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(hgemm_download(handle, host, a + 1, BYTES), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(hgemm_upload(handle, &mark, host, sizeof mark), HGEMM_STATUS_DEVICE_ERROR);
    assert_string_not_equal(hgemm_error_detail(handle), "");
    assert_int_equal(hgemm_free(handle, a + 256), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(hgemm_free(handle, a), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_free(handle, a), HGEMM_STATUS_DEVICE_ERROR);
    close_device();
}

/* A failure is not told with the words of an earlier one. */
static void words_are_of_the_last_failure(void **state)
{
    (void)state;
    void *p = NULL;
    open_device("t4emu");
    for (int way = 0; way < 4; way++) {
        assert_int_equal(hgemm_free(handle, &p), HGEMM_STATUS_DEVICE_ERROR);
        char earlier[1024];
        snprintf(earlier, sizeof earlier, "%s", hgemm_error_detail(handle));
        assert_string_not_equal(earlier, "");
        hgemm_status_t status = way == 0   ? hgemm_malloc(handle, &p, (size_t)1 << 40)
                                : way == 1 ? multiply(NULL, NULL, NULL)
                                : way == 2 ? hgemm_upload(handle, NULL, zeros, 2)
                                           : hgemm_get_stream(handle, NULL);
        assert_int_not_equal(status, HGEMM_STATUS_SUCCESS);
        assert_string_not_equal(hgemm_error_detail(handle), earlier);
        assert_string_not_equal(hgemm_error_detail(handle), "");
    }
    close_device();
}

/* 1 * 1 - 2^-13 * 2^-12 in one step of a tensor core: Turing keeps 24 bits below the largest term
 * and loses the 2^-25, Hopper keeps 25 and then rounds toward zero, to 1 - 2^-24. */
static void hopper_keeps_one_bit_more(void **state)
{
    (void)state;
    const uint16_t one = hgemm_half_from_float(1), a[8] = {one, hgemm_half_from_float(0x1p-13f)},
                   b[8] = {one, hgemm_half_from_float(-0x1p-12f)};
    for (int hopper = 0; hopper < 2; hopper++) {
        open_device(hopper ? "t4emu:hopper" : "t4emu");
        hgemm_desc_t desc;
        uint16_t result = 0;
        hgemm_desc_init(&desc);
        desc.accumulate = HGEMM_ACCUMULATE_F32;
        desc.kernel = hgemm_find_kernel("k5_16x64_f32"); /* a thin one has no tensor cores */
        desc.m = desc.n = 1, desc.k = 8;
        desc.alpha = 0x1p24f, desc.beta = -0x1p24f; /* shows the accumulator less 1 */
        desc.a = allocate(sizeof a, a), desc.lda = 8;
        desc.b = allocate(sizeof b, b), desc.ldb = 1;
        desc.c = desc.d = allocate(2, &one), desc.ldc = desc.ldd = 1;
        assert_int_equal(hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(hgemm_download(handle, &result, desc.d, 2), HGEMM_STATUS_SUCCESS);
        assert_true(hgemm_half_to_float(result) == (hopper ? -1 : 0));
        close_device();
    }
}

/* 1 + (1 + 2^-23) * 2^-11 is nearest to 1 + 2^-11 in single precision, and that to 1 as a half; rounded up it would
 * become 1 + 2^-10. */
static void a_caller_s_rounding_does_not_matter(void **state)
{
    (void)state;
    const uint16_t one = hgemm_half_from_float(1), c = hgemm_half_from_float(0x1p-11f);
    uint16_t result = 0;
    hgemm_desc_t desc;
    open_device("t4emu");
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 1;
    desc.beta = 1 + 0x1p-23f;
    desc.a = desc.b = allocate(2, &one);
    desc.c = desc.d = allocate(2, &c);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    hgemm_status_t status = hgemm_run_desc(handle, &desc);
    int rounding = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(status, HGEMM_STATUS_SUCCESS);
    assert_int_equal(rounding, FE_UPWARD);
    assert_int_equal(hgemm_download(handle, &result, desc.d, 2), HGEMM_STATUS_SUCCESS);
    assert_int_equal(result, one);
    close_device();
}

/* Memory of one machine does not exist on another. */
static void every_handle_is_a_machine(void **state)
{
    (void)state;
    open_device("t4emu");
    hgemm_handle_t other = NULL;
    void *p = allocate(BYTES, zeros);
    assert_int_equal(hgemm_create(&other, "t4emu"), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_free(other, p), HGEMM_STATUS_DEVICE_ERROR);
    assert_int_equal(hgemm_destroy(other), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_free(handle, p), HGEMM_STATUS_SUCCESS);
    void *q = &other;
    assert_int_equal(hgemm_malloc(handle, &q, (size_t)1 << 40), HGEMM_STATUS_OUT_OF_MEMORY);
    assert_ptr_equal(q, &other);
    close_device();
}

static void a_damaged_image_is_reported(void **state)
{
    (void)state;
    open_device("t4emu");
    void *function = NULL;
    image_t image = hgemm_images[0];
    image.packed /= 16; /* the first of several that are compressed as one needs not all */
    assert_int_equal(handle->device->ops->load(handle->device, &image, 0, &function), HGEMM_STATUS_DEVICE_ERROR);
    assert_non_null(strstr(hgemm_error_detail(handle), "damaged: it ends too early."));
    assert_null(function);
    image = hgemm_images[0];
    image.size /= 2; /* what is there is whole, what it holds is not */
    assert_int_equal(handle->device->ops->load(handle->device, &image, 0, &function), HGEMM_STATUS_DEVICE_ERROR);
    assert_non_null(strstr(hgemm_error_detail(handle), "truncated fatbin."));
    assert_int_equal(handle->device->ops->load(handle->device, &hgemm_images[0], 0, &function), HGEMM_STATUS_SUCCESS);
    assert_non_null(function);
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_out_of_bounds_are_reported),
        cmocka_unit_test(indices_out_of_range_are_reported),
        cmocka_unit_test(a_row_of_d_named_twice_is_reported),
        cmocka_unit_test(a_fault_leaves_no_parts_behind),
        cmocka_unit_test(reads_of_memory_never_written_are_reported),
        cmocka_unit_test(copies_stay_within_an_allocation),
        cmocka_unit_test(words_are_of_the_last_failure),
        cmocka_unit_test(hopper_keeps_one_bit_more),
        cmocka_unit_test(a_caller_s_rounding_does_not_matter),
        cmocka_unit_test(every_handle_is_a_machine),
        cmocka_unit_test(a_damaged_image_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
