/* SPDX-License-Identifier: MIT */
/* Which products the policy has hgemm run, what is logged, and what the door costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"
#include "groups.h"

static const char *expectation;

static void the_policy_decides(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    cublas->status = cublaslt->status = EXECUTION_FAILED;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    fake_call_t lt_call = make_lt(scratch, &type_d, &is_rounded);
    int is_hit = strcmp(expectation, "hit") == 0;
    does_nothing = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call_lt(&lt_call), is_hit ? 0 : EXECUTION_FAILED);
        if (is_hit)
            expect_hit(ENTRY_cublasGemmEx, &call);
        else
            expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    }
    drop_lt(&lt_call);
}

/* ---- Floats ------------------------------------------------------------------------------------------- */

static const char *const *expectations; /* of products that are to be exact, or may be of TF32, or of halves */

/* The most that hgemm may expect to take, as docs/cublas.md has it: SGEMM at its best takes 1.1 times that. In clocks
 * of a T4, whose 40 multiprocessors have 64 lanes each and 3.9 bytes of DRAM a clock. */
static double limit_of(double macs, double bytes)
{
    return (fmax(macs / 64, bytes / 3.9) / 40 + 5000) / 1.59e9 / 1.1;
}

/* What is asked for is what HGEMM_CUBLAS_F32 says; where that is no accuracy, what the program permits. */
static hgemm_accuracy_t accuracy_of(int permits)
{
    const char *setting = getenv("HGEMM_CUBLAS_F32");
    if (!setting || strcmp(setting, "on") == 0)
        return permits ? HGEMM_ACCURACY_11_BITS : HGEMM_ACCURACY_F32;
    return strcmp(setting, "16bits") == 0 ? HGEMM_ACCURACY_16_BITS : HGEMM_ACCURACY_F32;
}

static void expect_of_floats(int permits, int entry, const fake_call_t *call, double limit)
{
    const char *const expected = expectations[permits];
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        expected_seconds = limit * (is_slow ? 1.001 : 0.999);
        if (strcmp(expected, "hit") == 0 || (strcmp(expected, "model") == 0 && !is_slow)) {
            expect_hit(entry, call);
            assert_int_equal(last_accuracy, accuracy_of(permits));
        } else {
            expect_passed_on(entry, call, EXECUTION_FAILED);
        }
    }
}

static void the_policy_decides_on_floats(void **state)
{
    (void)state;
    static const struct {
        int compute, permits; /* the place in `expectations` */
    } computes[] = {{BLAS_COMPUTE_32F, 0},
                    {BLAS_COMPUTE_32F_FAST_TF32, 1},
                    {BLAS_COMPUTE_32F_FAST_16BF, 1},
                    {BLAS_COMPUTE_32F_FAST_16F, 2}};
    static const struct {
        int mode, permits;
    } modes[] = {{0, 0}, {BLAS_TF32_TENSOR_OP_MATH, 1}, {BLAS_TENSOR_OP_MATH, 2}};
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    does_nothing = 1;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        if (!entries[entry].is_ex && !entries[entry].is_single)
            continue;
        fake_call_t call = good_call_of_floats(entry, handle);
        const int has_batch = entries[entry].is_strided || entries[entry].is_batched;
        call.op_a = call.op_b = BLAS_OP_N;
        call.m = 512, call.n = 256, call.k = 1024, call.lda = 512, call.ldb = 1024, call.ldc = 512;
        call.batch = has_batch ? 3 : 0;
        if (entries[entry].is_strided)
            call.stride_a = 0, call.stride_b = 1024 * 256, call.stride_c = 512 * 256;
        const double batch = has_batch ? 3 : 1, of_a = entries[entry].is_strided ? 1 : batch;
        const double macs = 0x1p27 * batch, bytes = 4 * (of_a * 0x1p19 + batch * (0x1p18 + 0x1p17));
        for (int i = 0; i < 4 && entries[entry].is_ex; i++) {
            call.compute = computes[i].compute;
            expect_of_floats(computes[i].permits, entry, &call, limit_of(macs, bytes));
        }
        call.compute = entries[entry].is_ex ? BLAS_COMPUTE_32F : 0;
        for (int i = 0; i < 3; i++) {
            set_math_mode(handle, modes[i].mode);
            expect_of_floats(modes[i].permits, entry, &call, limit_of(macs, bytes));
        }
        set_math_mode(handle, 0);
        call.m = 1; /* where bytes bind */
        expect_of_floats(0, entry, &call, limit_of(0x1p18 * batch, 4 * (of_a * 0x1p10 + batch * (0x1p18 + 0x1p8))));
    }
    does_nothing = 0;
}

/* Distinct products for the log: the test's caller looks at what it says. */
static void products_are_logged(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    call.op_a = BLAS_OP_T, call.op_b = BLAS_OP_N, call.m = 24, call.n = 16, call.k = 8;
    call.lda = call.ldb = 8, call.ldc = 24;
    for (int i = 0; i < 3; i++)
        expect_hit(ENTRY_cublasGemmEx, &call);
    run_status = HGEMM_STATUS_NOT_SUPPORTED;
    call.n = 8;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
    run_status = HGEMM_STATUS_SUCCESS;
    call.compute = BLAS_COMPUTE_32F_PEDANTIC;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
}

static void floats_are_logged(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call_of_floats(ENTRY_cublasSgemm_v2, handle);
    call.op_a = BLAS_OP_T, call.op_b = BLAS_OP_N, call.m = 24, call.n = 16, call.k = 8;
    call.lda = call.ldb = 8, call.ldc = 24;
    for (int i = 0; i < 3; i++)
        assert_int_equal(call_blas(ENTRY_cublasSgemm_v2, &call), 0);
    expected_seconds = 1;
    assert_int_equal(call_blas(ENTRY_cublasSgemm_v2, &call), 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { MOST_NS = 2000, PATIENCE = 10 /* seconds */ };

/* The least of some averages, of more while none is below the limit: other work may hold up the machine for a second.
 * hgemm itself does nothing here. */
static double cost(int entry, const fake_call_t *call)
{
    double least = 1, start = seconds();
    for (int i = 0; i < 50 || (least >= 1e-9 * MOST_NS && seconds() - start < PATIENCE); i++) {
        double begin = seconds();
        for (int j = 0; j < 400; j++)
            assert_int_equal(entry == ENTRY_cublasLtMatmul ? call_lt(call) : call_blas(entry, call), 0);
        double each = (seconds() - begin) / 400;
        least = each < least ? each : least;
    }
    return least;
}

static void a_call_costs_the_host_little(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle), lt_call = make_lt(scratch, &type_d, &is_rounded);
    does_nothing = 1;
    double gemm = cost(ENTRY_cublasGemmEx, &call), lt = cost(ENTRY_cublasLtMatmul, &lt_call);
    print_message("beside hgemm's own: cublasGemmEx %.0f ns, cublasLtMatmul %.0f ns\n", 1e9 * gemm, 1e9 * lt);
    assert_true(gemm < 1e-9 * MOST_NS && lt < 1e-9 * MOST_NS);
    drop_lt(&lt_call);
}

int test_policy(const char *expected)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(the_policy_decides)};
    expectation = expected;
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_floats(const char *const expected[3])
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(the_policy_decides_on_floats)};
    expectations = expected;
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_log_of_floats(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(floats_are_logged)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_log(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_logged)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_cost(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_costs_the_host_little)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}
