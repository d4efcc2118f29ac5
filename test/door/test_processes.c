/* SPDX-License-Identifier: MIT */
/* Children of a process that multiplies, and releases of cuBLAS that lack a function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "groups.h"

/* A function that the release does not have is looked up once, not at each call. */
static void an_old_release_is_searched_once(void **state)
{
    (void)state;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, make_handle());
    assert_null(set_sm_count); /* it came with 11.5 */
    does_nothing = 1;
    expect_hit(ENTRY_cublasGemmEx, &call);
    const int before = lookups;
    assert_true(before > 0);
    for (int i = 0; i < 10; i++)
        expect_hit(ENTRY_cublasGemmEx, &call);
    assert_int_equal(lookups, before);
}

/* Runs in a child, which must end by itself with the status that the function gives. */
static void expect_of_child(int (*run)(const fake_call_t *call), const fake_call_t *call)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* it hangs */
        exit(run(call));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int do_nothing(const fake_call_t *call)
{
    (void)call;
    return 0;
}

/* CUDA does not work in a child, so the real cuBLAS is asked, and says that in its own way. */
static int multiply(const fake_call_t *call)
{
    const int before = cublas->calls;
    cublas->status = EXECUTION_FAILED;
    return call_blas(ENTRY_cublasGemmEx, call) != EXECUTION_FAILED || cublas->calls != before + 1;
}

/* For the summary, at which the test's caller looks: the parent's and that of the child that multiplied. */
static void a_child_counts_for_itself(void **state)
{
    (void)state;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, make_handle());
    does_nothing = 1;
    for (int i = 0; i < 3; i++)
        expect_hit(ENTRY_cublasGemmEx, &call);
    expect_of_child(do_nothing, &call);
    expect_of_child(multiply, &call);
}

static atomic_int is_over;

static void *multiply_on(void *call)
{
    while (!is_over)
        call_blas(ENTRY_cublasGemmEx, call);
    return NULL;
}

/* Whatever another thread is at. */
static void a_child_does_not_wait_for_threads_of_its_parent(void **state)
{
    (void)state;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, make_handle());
    pthread_t threads[2];
    does_nothing = 1;
    expect_hit(ENTRY_cublasGemmEx, &call);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply_on, &call), 0);
    for (int i = 0; i < 200; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            _exit(multiply(&call));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    is_over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int test_old(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(an_old_release_is_searched_once)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_child(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_counts_for_itself)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_forks(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_does_not_wait_for_threads_of_its_parent)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}
