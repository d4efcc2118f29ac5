/* SPDX-License-Identifier: MIT */
/* Handles, streams, captures, contexts and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "calls.h"
#include "groups.h"

/* A call whose scalars are halves in device memory: 1 and 0. */
static fake_call_t call_with_halves(void *handle)
{
    fake_call_t call = good_call(ENTRY_cublasHgemm, handle);
    uint16_t *halves = take(2 * sizeof *halves, 0), *written = host_of(halves);
    written[0] = 0x3c00, written[1] = 0;
    call.alpha = halves, call.beta = halves + 1;
    set_pointer_mode(handle, BLAS_POINTER_MODE_DEVICE);
    return call;
}

static void each_stream_has_a_handle(void **state)
{
    (void)state;
    void *handle = make_handle(), *other = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    handle_t *of_stream[12];
    does_nothing = 0;
    for (int i = 0; i < 12; i++) {
        set_stream(handle, (void *)(uintptr_t)(0x9000 + i));
        expect_hit(ENTRY_cublasGemmEx, &call);
        of_stream[i] = last_used;
        for (int j = 0; j < i; j++)
            assert_true(of_stream[i] != of_stream[j] || !of_stream[i]->has_workspace);
    }
    assert_true(of_stream[0]->has_workspace);
    assert_false(of_stream[11]->has_workspace);
    assert_true(created <= 9);
    call.handle = other; /* another cuBLAS handle on a stream that is known */
    set_stream(other, (void *)0x9000);
    expect_hit(ENTRY_cublasGemmEx, &call);
    assert_ptr_equal(last_used, of_stream[0]);
    set_stream(other, (void *)1); /* the legacy stream by its two names */
    expect_hit(ENTRY_cublasGemmEx, &call);
    handle_t *legacy = last_used;
    set_stream(other, NULL);
    expect_hit(ENTRY_cublasGemmEx, &call);
    assert_ptr_equal(last_used, legacy);
    set_stream(other, (void *)(uintptr_t)0x900b); /* without a handle of its own it has no place for floats */
    call = call_with_halves(other);
    cublas->status = EXECUTION_FAILED;
    expect_passed_on(ENTRY_cublasHgemm, &call, EXECUTION_FAILED);
}

static void captures_share_no_workspace(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    expect_hit(ENTRY_cublasGemmEx, &call);
    int made = created;
    driver->capture = CUDA_CAPTURE_STATUS_ACTIVE;
    for (int i = 0; i < 3; i++) {
        set_stream(handle, (void *)(uintptr_t)(0x7000 + i)); /* no handle of its own */
        expect_hit(ENTRY_cublasGemmEx, &call);
        assert_false(last_used->has_workspace);
        assert_true(last_used->prepared);
        assert_ptr_equal(last_used->stream, (void *)(uintptr_t)(0x7000 + i));
    }
    assert_int_equal(created, made);
    cublas->status = EXECUTION_FAILED;
    driver->capture = 2;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->capture = 0;
}

static void other_contexts_are_left_alone(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    cublas->status = EXECUTION_FAILED;
    driver->another_is_current = 1;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->another_is_current = 0;
    driver->has_no_context = 1;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->has_no_context = 0;
    driver->result = 999;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->result = 0;
    expect_hit(ENTRY_cublasGemmEx, &call);
}

/* The floats that such scalars become are where no other work looks: those of a stream are its own, those of a captured
 * call, which a graph may run at any time, no later call has. */
static void scalars_are_kept_apart(void **state)
{
    (void)state;
    enum { CALLS = 1200 };
    static const void *of_call[CALLS];
    void *handle = make_handle();
    set_stream(handle, NULL);
    fake_call_t call = call_with_halves(handle);
    expect_hit(ENTRY_cublasHgemm, &call);
    const void *of_stream = last_alpha_pointer;
    const int so_far = widenings;
    expect_hit(ENTRY_cublasHgemm, &call);
    assert_ptr_equal(last_alpha_pointer, of_stream);
    assert_int_equal(widenings, so_far + 1);
    driver->capture = CUDA_CAPTURE_STATUS_ACTIVE;
    for (int i = 0; i < CALLS; i++) {
        expect_hit(ENTRY_cublasHgemm, &call);
        of_call[i] = last_alpha_pointer;
        assert_ptr_not_equal(of_call[i], of_stream);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(of_call[i], of_call[j]);
    }
    driver->capture = 0;
    run_status = HGEMM_STATUS_DEVICE_ERROR; /* then cuBLAS has the scalars as they came */
    cublas->status = EXECUTION_FAILED;
    expect_passed_on(ENTRY_cublasHgemm, &call, EXECUTION_FAILED);
    run_status = HGEMM_STATUS_SUCCESS;
}

static fake_call_t inner_call;

static void call_lt_from_within(void)
{
    if (cublaslt->calls == 0)
        check(call_lt(&inner_call) == 0, "a call from within cuBLAS");
}

/* What the real cuBLAS calls by public names while it works is not taken from it. */
static void the_real_library_is_left_alone(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    call.type_a = BLAS_R_16BF;
    inner_call = make_lt(scratch, &type_d, &is_rounded);
    cublas->status = cublaslt->status = 0;
    cublas->inner = call_lt_from_within;
    cublaslt->calls = 0;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
    cublas->inner = NULL;
    assert_int_equal(cublaslt->calls, 1);
    assert_passed_on(&cublaslt->last, &inner_call);
    int run_so_far = runs;
    assert_int_equal(call_lt(&inner_call), 0); /* and afterwards they are taken again */
    assert_int_equal(runs, run_so_far + 1);
    drop_lt(&inner_call);
}

enum { THREADS = 8, ROUNDS = 2000 };

static void *call_often(void *parameter)
{
    const fake_call_t *call = parameter;
    intptr_t failures = 0;
    for (int i = 0; i < ROUNDS; i++)
        failures += call_blas(ENTRY_cublasGemmEx, call) != 0;
    return (void *)failures;
}

/* Half of the threads have a stream of their own, the others share one, and each has a cuBLAS handle. */
static void threads_never_meet_in_a_handle(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    fake_call_t calls[THREADS];
    int run_so_far = runs;
    does_nothing = 1;
    for (int i = 0; i < THREADS; i++) {
        calls[i] = good_call(ENTRY_cublasGemmEx, make_handle());
        set_stream(calls[i].handle, (void *)(uintptr_t)(0x9000 + (i < THREADS / 2 ? 0 : i)));
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &calls[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failures;
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    does_nothing = 0;
    assert_int_equal(runs, run_so_far + THREADS * ROUNDS);
    assert_int_equal(overlaps, 0);
}

int test_streams(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_share_no_workspace),   cmocka_unit_test(scalars_are_kept_apart),
        cmocka_unit_test(other_contexts_are_left_alone), cmocka_unit_test(the_real_library_is_left_alone),
        cmocka_unit_test(each_stream_has_a_handle),      cmocka_unit_test(threads_never_meet_in_a_handle),
    };
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}
