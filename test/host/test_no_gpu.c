/* SPDX-License-Identifier: MIT */
/*
 * What a machine without a GPU answers: the library loads and runs, and asking for a GPU gives a
 * status. Where there are GPUs they are hidden from the driver first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hgemm.h"

static hgemm_status_t create(const char *device)
{
    static int mark;
    hgemm_handle_t untouched = (hgemm_handle_t)(void *)&mark, handle = untouched;
    hgemm_status_t status = hgemm_create(&handle, device);
    if (status == HGEMM_STATUS_SUCCESS)
        hgemm_destroy(handle);
    else
        assert_ptr_equal(handle, untouched);
    return status;
}

static void no_gpu_is_a_status(void **state)
{
    (void)state;
    const char *const asked[] = {"cuda", "cuda:0", "cuda:7"};
    for (int i = 0; i < 3; i++) {
        hgemm_status_t status = create(asked[i]);
        assert_true(status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE);
        if (status == HGEMM_STATUS_NO_DRIVER)
            assert_string_not_equal(hgemm_error_detail(NULL), "");
    }
    assert_int_equal(setenv("HGEMM_DEVICE", "cuda", 1), 0);
    hgemm_status_t status = create(NULL);
    assert_true(status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE);
    assert_int_equal(create(""), status);
    unsetenv("HGEMM_DEVICE");
}

static void names_are_understood_or_refused(void **state)
{
    (void)state;
    const char *const wrong[] = {"gpu",
                                 "cuda:",
                                 "cuda:x",
                                 "cuda:1x",
                                 "cuda:-1",
                                 "cuda: 1",
                                 "CUDA",
                                 "cuda1",
                                 "cuda:+1",
                                 " cuda",
                                 "cuda ",
                                 "cuda:99999999999999999999999999999",
                                 "cuda:4294967296",
                                 "t4em",
                                 "t4emu2",
                                 "t4emu:chec",
                                 "t4emu:checks",
                                 "t4emu:times",
                                 "t4emu:hopper;check",
                                 "t4emu:newer,time"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(create(wrong[i]), HGEMM_STATUS_INVALID_DEVICE);
        assert_string_not_equal(hgemm_error_detail(NULL), "");
        assert_int_equal(hgemm_create(NULL, wrong[i]), HGEMM_STATUS_INVALID_HANDLE);
        assert_string_equal(hgemm_error_detail(NULL), "");
        assert_int_equal(setenv("HGEMM_DEVICE", wrong[i], 1), 0);
        assert_int_equal(create(NULL), HGEMM_STATUS_INVALID_DEVICE);
        assert_int_equal(create(""), HGEMM_STATUS_INVALID_DEVICE);
        unsetenv("HGEMM_DEVICE");
    }
}

static void *fail_on_a_thread(void *own)
{
    int *words = own;
    words[0] = hgemm_error_detail(NULL)[0] != '\0';
    create("theirs");
    words[1] = strstr(hgemm_error_detail(NULL), "theirs") != NULL;
    return NULL;
}

/* What hgemm_create has to say of a failure, it says to the thread that called it. */
static void words_are_a_thread_s_own(void **state)
{
    (void)state;
    pthread_t thread;
    int words[2] = {1, 0};
    create("ours");
    assert_int_equal(pthread_create(&thread, NULL, fail_on_a_thread, words), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 1);
    assert_non_null(strstr(hgemm_error_detail(NULL), "ours"));
}

/* Without a name a machine without a GPU gets the emulated T4, where the build has one. */
static void the_emulator_is_the_default(void **state)
{
    (void)state;
    hgemm_handle_t handle = NULL;
    if (!HAS_EMULATOR) {
        assert_int_equal(create("t4emu"), HGEMM_STATUS_INVALID_DEVICE);
        assert_non_null(strstr(hgemm_error_detail(NULL), "this build has no emulator"));
        assert_int_equal(create(NULL), create("cuda"));
        return;
    }
    const char *const names[] = {NULL,
                                 "",
                                 "t4emu",
                                 "t4emu:",
                                 "t4emu:check",
                                 "t4emu:hopper,check",
                                 "t4emu:time",
                                 "t4emu:time,dry",
                                 "t4emu:check,newer"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hgemm_device_info_t info;
        assert_int_equal(hgemm_create(&handle, names[i]), HGEMM_STATUS_SUCCESS);
        assert_int_equal(hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS);
        assert_string_equal(info.kind, names[i] && strstr(names[i], "time") ? "t4model" : "t4emu");
        const int is_newer = names[i] && strstr(names[i], "newer");
        assert_int_equal(10 * info.compute_major + info.compute_minor, is_newer ? 90 : 75);
        assert_int_equal(info.multiprocessors, is_newer ? 132 : 40);
        assert_int_equal(info.is_emulated, 1);
        assert_int_equal(info.fallback[0] != '\0', !names[i] || !*names[i]); /* it took a GPU's place */
        assert_int_equal(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
    }
}

/* Whoever requires a GPU gets none in its place, and hears why there is none. */
static void the_emulator_can_be_refused(void **state)
{
    (void)state;
    hgemm_status_t status = create("cuda");
    assert_int_equal(setenv("HGEMM_REQUIRE_GPU", "1", 1), 0);
    assert_int_equal(create(NULL), status);
    assert_int_equal(create(""), status);
    if (HAS_EMULATOR)
        assert_non_null(strstr(hgemm_error_detail(NULL), "HGEMM_REQUIRE_GPU"));
    unsetenv("HGEMM_REQUIRE_GPU");
}

/* An argument wins over the environment. */
static void the_argument_wins(void **state)
{
    (void)state;
    assert_int_equal(setenv("HGEMM_DEVICE", "nonsense", 1), 0);
    assert_int_not_equal(create("cuda"), HGEMM_STATUS_INVALID_DEVICE);
    unsetenv("HGEMM_DEVICE");
}

int main(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    unsetenv("HGEMM_DEVICE");
    unsetenv("HGEMM_REQUIRE_GPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gpu_is_a_status),          cmocka_unit_test(names_are_understood_or_refused),
        cmocka_unit_test(words_are_a_thread_s_own),    cmocka_unit_test(the_emulator_is_the_default),
        cmocka_unit_test(the_emulator_can_be_refused), cmocka_unit_test(the_argument_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
