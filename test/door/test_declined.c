/* SPDX-License-Identifier: MIT */
/* What hgemm does not run reaches the real library as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "calls.h"
#include "groups.h"

static void what_cublas_refuses_it_refuses(void **state)
{
    (void)state;
    static const char *const faults[] = {"handle", "m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "op"};
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        fake_call_t call = good_call(entry, handle);
        expect_hit(entry, &call);
        for (int fault = 0; fault < 10; fault++) {
            call = good_call(entry, handle);
            static const uint16_t zeros[2];
            if (fault >= 1 && fault <= 6 && pick(0, 1)) /* also where A and B are not read */
                call.alpha = zeros;
            switch (fault) {
            case 0: call.handle = NULL; break;
            case 1: call.m = -1; break;
            case 2: call.n = -1; break;
            case 3: call.k = -1; break;
            case 4: call.lda = (call.op_a == BLAS_OP_N ? call.m : call.k) - 1; break;
            case 5: call.ldb = (call.op_b == BLAS_OP_N ? call.k : call.n) - 1; break;
            case 6: call.ldc = call.m - 1; break;
            case 7: call.alpha = NULL; break;
            case 8: call.beta = NULL; break;
            default: call.op_b = 3; break;
            }
            print_message("%s: %s\n", call.name, faults[fault]);
            expect_passed_on(entry, &call, fault == 0 ? BLAS_STATUS_NOT_INITIALIZED : BLAS_STATUS_INVALID_VALUE);
        }
        if (entries[entry].is_strided || entries[entry].is_batched) {
            call = good_call(entry, handle);
            call.batch = -1;
            expect_passed_on(entry, &call, BLAS_STATUS_INVALID_VALUE);
        }
    }
}

/* A and B of bfloat16, with C of the same or of floats. */
static void bfloat16_is_taken(void **state)
{
    (void)state;
    void *handle = make_handle();
    does_nothing = 1;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++)
        for (int is_float = 0; is_float < 2 && entries[entry].is_ex; is_float++) {
            const hgemm_type_t type = is_float ? HGEMM_TYPE_F32 : HGEMM_TYPE_BF16;
            fake_call_t call = good_call(entry, handle);
            call.type_a = call.type_b = BLAS_R_16BF;
            call.type_c = is_float ? BLAS_R_32F : BLAS_R_16BF;
            call.compute = BLAS_COMPUTE_32F;
            expect_hit(entry, &call);
            assert_true(last_types[0] == HGEMM_TYPE_BF16 && last_types[1] == HGEMM_TYPE_BF16);
            assert_true(last_types[2] == type && last_types[3] == type);
        }
    does_nothing = 0;
}

/* A and B of floats, by the functions that are for nothing else and by those that take types. */
static void floats_are_taken(void **state)
{
    (void)state;
    static const int computes[] = {BLAS_COMPUTE_32F, BLAS_COMPUTE_32F_FAST_16BF, BLAS_COMPUTE_32F_FAST_TF32};
    void *handle = make_handle();
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++)
        for (int i = 0; i < 3 && (entries[entry].is_ex || (entries[entry].is_single && i == 0)); i++) {
            fake_call_t call = good_call_of_floats(entry, handle);
            if (entries[entry].is_ex)
                call.compute = computes[i];
            const int so_far = runs_of_floats;
            expect_hit(entry, &call);
            assert_int_equal(runs_of_floats, so_far + 1);
            assert_int_equal(last_accuracy, i ? HGEMM_ACCURACY_11_BITS : HGEMM_ACCURACY_F32);
        }
}

/* Of floats; what of other types is passed on is below. */
static void floats_that_hgemm_does_not_do_cublas_does(void **state)
{
    (void)state;
    static const int computes[] = {BLAS_COMPUTE_32F_PEDANTIC,
                                   BLAS_COMPUTE_16F,
                                   BLAS_COMPUTE_16F_PEDANTIC,
                                   BLAS_COMPUTE_32F_FAST_16F /* tensor cores serve it */,
                                   78,
                                   70};
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        fake_call_t call;
        if (!entries[entry].is_ex && !entries[entry].is_single)
            continue;
        for (int i = 0; i < 6 && entries[entry].is_ex; i++) {
            call = good_call_of_floats(entry, handle);
            call.compute = computes[i];
            expect_passed_on(entry, &call, EXECUTION_FAILED);
        }
        for (int i = 0; i < 3 && entries[entry].is_ex; i++) {
            call = good_call_of_floats(entry, handle);
            *(i == 0 ? &call.type_a : i == 1 ? &call.type_b : &call.type_c) = BLAS_R_16F;
            expect_passed_on(entry, &call, EXECUTION_FAILED);
        }
        call = good_call_of_floats(entry, handle);
        set_math_mode(handle, BLAS_PEDANTIC_MATH);
        expect_passed_on(entry, &call, EXECUTION_FAILED);
        set_math_mode(handle, BLAS_TENSOR_OP_MATH); /* which lets it round to halves */
        expect_passed_on(entry, &call, EXECUTION_FAILED);
        set_math_mode(handle, BLAS_TF32_TENSOR_OP_MATH); /* which a T4 does not have */
        expect_hit(entry, &call);
        set_math_mode(handle, 0);
    }
}

static void what_hgemm_does_not_do_cublas_does(void **state)
{
    (void)state;
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        fake_call_t call;
#define DECLINED(change)                                  \
    do {                                                  \
        call = good_call(entry, handle);                  \
        change;                                           \
        expect_passed_on(entry, &call, EXECUTION_FAILED); \
    } while (0)
        DECLINED(call.m = 0);
        DECLINED(call.n = 0);
        DECLINED(call.a = NULL);
        DECLINED(call.b = NULL);
        DECLINED(call.c = NULL);
        DECLINED(set_math_mode(handle, BLAS_PEDANTIC_MATH | 16));
        set_math_mode(handle, 16); /* no reductions in half precision: hgemm has none among float sums */
        call = good_call(entry, handle);
        expect_hit(entry, &call);
        set_math_mode(handle, 0);
        DECLINED(set_sm_count(handle, 8));
        set_sm_count(handle, 0);
        DECLINED(set_pointer_mode(handle, 2));
        if (entries[entry].is_ex) {
            DECLINED(call.type_a = BLAS_R_16BF);
            DECLINED(call.type_b = BLAS_R_32F);
            DECLINED(call.type_c = BLAS_R_16BF);
            DECLINED(call.compute = BLAS_COMPUTE_32F_PEDANTIC);
            DECLINED(call.compute = BLAS_COMPUTE_16F_PEDANTIC);
            DECLINED(call.compute = 74);
            DECLINED((call.compute = BLAS_COMPUTE_16F, call.type_c = BLAS_R_32F));
            DECLINED(call.algo = 5);
            DECLINED((call.type_a = call.type_b = call.type_c = BLAS_R_16BF, call.compute = BLAS_COMPUTE_16F));
            DECLINED((call.type_a = call.type_b = BLAS_R_16BF, call.type_c = BLAS_R_16F));
        }
        if (entries[entry].is_strided || entries[entry].is_batched)
            DECLINED(call.batch = 0);
        static const hgemm_status_t statuses[] = {HGEMM_STATUS_NOT_SUPPORTED, HGEMM_STATUS_OVERLAP,
                                                  HGEMM_STATUS_DEVICE_ERROR, HGEMM_STATUS_OUT_OF_MEMORY};
        for (int i = 0; i < 4; i++) {
            run_status = statuses[i];
            DECLINED((void)0);
        }
        run_status = HGEMM_STATUS_SUCCESS;
    }
}

/* cublasLtMatmul, good but for one thing. */
static void expect_lt_passed_on(const fake_call_t *call, const char *what)
{
    int so_far = cublaslt->calls, run_so_far = runs;
    print_message("cublasLtMatmul: %s\n", what);
    assert_int_equal(call_lt(call), call->handle && call->desc ? EXECUTION_FAILED : BLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublaslt->calls, so_far + 1);
    assert_passed_on(&cublaslt->last, call);
    assert_int_equal(runs, run_so_far);
}

/* A, B, C and D of floats, by each compute type, and what has none of hgemm's types. */
static void floats_by_cublaslt(void **state)
{
    (void)state;
    static const float one = 1;
    static const struct {
        int compute, type_a, type_d, is_taken;
        hgemm_accuracy_t accuracy;
    } cases[] = {{BLAS_COMPUTE_32F, BLAS_R_32F, BLAS_R_32F, 1, HGEMM_ACCURACY_F32},
                 {BLAS_COMPUTE_32F_FAST_TF32, BLAS_R_32F, BLAS_R_32F, 1, HGEMM_ACCURACY_11_BITS},
                 {BLAS_COMPUTE_32F_FAST_16BF, BLAS_R_32F, BLAS_R_32F, 1, HGEMM_ACCURACY_11_BITS},
                 {BLAS_COMPUTE_32F_FAST_16F, BLAS_R_32F, BLAS_R_32F, 0, 0}, /* tensor cores serve it */
                 {BLAS_COMPUTE_32F_PEDANTIC, BLAS_R_32F, BLAS_R_32F, 0, 0},
                 {BLAS_COMPUTE_32F, BLAS_R_16F, BLAS_R_32F, 0, 0},
                 {BLAS_COMPUTE_32F, BLAS_R_32F, BLAS_R_16F, 0, 0}};
    cublaslt->status = EXECUTION_FAILED;
    does_nothing = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_call_t call = {.name = "cublasLtMatmul", .handle = &rng, .alpha = &one, .beta = &one};
        char what[64];
        snprintf(what, sizeof what, "floats, case %zu", i);
        clear_arena();
        desc_create(&call.desc, cases[i].compute, BLAS_R_32F);
        call.a = make_layout(&call.layout_a, LT_ORDER_COL, 8, 8, cases[i].type_a, 1, 0).argument;
        call.b = make_layout(&call.layout_b, LT_ORDER_COL, 8, 8, BLAS_R_32F, 1, 0).argument;
        call.c = make_layout(&call.layout_c, LT_ORDER_COL, 8, 8, cases[i].type_d, 1, 0).argument;
        call.d = (void *)make_layout(&call.layout_d, LT_ORDER_COL, 8, 8, cases[i].type_d, 1, 0).argument;
        const int so_far = runs_of_floats;
        if (cases[i].is_taken) {
            assert_int_equal(call_lt(&call), 0);
            assert_int_equal(runs_of_floats, so_far + 1);
            assert_int_equal(last_accuracy, cases[i].accuracy);
        } else {
            expect_lt_passed_on(&call, what);
        }
        drop_lt(&call);
    }
    does_nothing = 0;
}

static void what_hgemm_does_not_do_cublaslt_does(void **state)
{
    (void)state;
    static const float one = 1;
    static const struct {
        char object; /* o: the operation; a, b, c, d: a layout */
        int attribute, size;
        int64_t value;
    } changes[] = {
        {'o', LT_DESC_COMPUTE_TYPE, 4, BLAS_COMPUTE_32F_PEDANTIC},
        {'o', LT_DESC_COMPUTE_TYPE, 4, 77},
        {'o', LT_DESC_SCALE_TYPE, 4, BLAS_R_16F},
        {'o', LT_DESC_POINTER_MODE, 4, 2},
        {'o', LT_DESC_POINTER_MODE, 4, 4},
        {'o', LT_DESC_TRANSA, 4, 3},
        {'o', LT_DESC_TRANSB, 4, 3},
        {'o', LT_DESC_TRANSC, 4, BLAS_OP_T},
        {'o', LT_DESC_FILL_MODE, 4, 0},
        {'o', LT_DESC_EPILOGUE, 4, 2 | 128},
        {'o', LT_DESC_EPILOGUE, 4, 32 | 128},
        {'o', LT_DESC_EPILOGUE, 4, 5},
        {'o', LT_DESC_EPILOGUE, 4, 256},
        {'o', LT_DESC_EPILOGUE, 4, LT_EPILOGUE_BIAS}, /* and no bias */
        {'o', LT_DESC_SM_COUNT_TARGET, 4, 8},
        {'o', LT_DESC_A_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_B_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_C_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_D_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_AMAX_D_POINTER, 8, 8},
        {'o', LT_DESC_D_OUT_SCALE_POINTER, 8, 8},
        {'a', LT_LAYOUT_TYPE, 4, BLAS_R_16BF},
        {'b', LT_LAYOUT_TYPE, 4, BLAS_R_16BF},
        {'c', LT_LAYOUT_TYPE, 4, BLAS_R_32F},
        {'d', LT_LAYOUT_TYPE, 4, BLAS_R_32F},
        {'a', LT_LAYOUT_ORDER, 4, 2},
        {'c', LT_LAYOUT_ORDER, 4, LT_ORDER_ROW},
        {'d', LT_LAYOUT_ORDER, 4, 4},
        {'a', LT_LAYOUT_ROWS, 8, 7},
        {'b', LT_LAYOUT_ROWS, 8, 7},
        {'b', LT_LAYOUT_COLS, 8, 7},
        {'c', LT_LAYOUT_COLS, 8, 7},
        {'d', LT_LAYOUT_ROWS, 8, 0},
        {'d', LT_LAYOUT_ROWS, 8, INT64_C(1) << 31},
        {'a', LT_LAYOUT_LD, 8, 7},
        {'b', LT_LAYOUT_LD, 8, 7},
        {'c', LT_LAYOUT_LD, 8, -8},
        {'d', LT_LAYOUT_LD, 8, 0},
        {'a', LT_LAYOUT_BATCH_COUNT, 4, 2},
        {'d', LT_LAYOUT_BATCH_COUNT, 4, 0},
        {'b', LT_LAYOUT_BATCH_MODE, 4, LT_BATCH_MODE_POINTER_ARRAY},
        {'0', 0, 0, 0}, /* no change but in an argument, below */
    };
    int count = (int)(sizeof changes / sizeof changes[0]);
    cublaslt->status = EXECUTION_FAILED;
    for (int i = 0; i < count + 9; i++) {
        fake_call_t call = {.name = "cublasLtMatmul", .handle = &rng, .alpha = &one, .beta = &one};
        char what[64] = "good";
        clear_arena();
        desc_create(&call.desc, BLAS_COMPUTE_32F, BLAS_R_32F);
        call.a = make_layout(&call.layout_a, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.b = make_layout(&call.layout_b, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.c = make_layout(&call.layout_c, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.d = (void *)make_layout(&call.layout_d, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        int so_far = cublaslt->calls;
        assert_int_equal(call_lt(&call), 0);
        assert_int_equal(cublaslt->calls, so_far);
        fake_call_t whole = call;
        if (i < count - 1) {
            void *objects[] = {call.layout_a, call.layout_b, call.layout_c, call.layout_d};
            snprintf(what, sizeof what, "%c, attribute %d", changes[i].object, changes[i].attribute);
            if (changes[i].object == 'o')
                assert_int_equal(desc_set(call.desc, changes[i].attribute, &changes[i].value, (size_t)changes[i].size),
                                 0);
            else
                assert_int_equal(layout_set(objects[changes[i].object - 'a'], changes[i].attribute, &changes[i].value,
                                            (size_t)changes[i].size),
                                 0);
        } else {
            snprintf(what, sizeof what, "argument %d", i - count + 1);
            switch (i - count + 1) {
            case 0: call.handle = NULL; break;
            case 1: call.desc = NULL; break;
            case 2: call.alpha = NULL; break;
            case 3: call.beta = NULL; break;
            case 4: call.a = NULL; break;
            case 5: call.b = NULL; break;
            case 6: call.c = NULL; break;
            case 7: call.d = NULL; break;
            case 8: call.layout_c = NULL; break;
            default: call.layout_a = NULL; break;
            }
        }
        expect_lt_passed_on(&call, what);
        drop_lt(&whole);
    }
}

int test_declined(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cublas_refuses_it_refuses),
        cmocka_unit_test(bfloat16_is_taken),
        cmocka_unit_test(floats_are_taken),
        cmocka_unit_test(floats_that_hgemm_does_not_do_cublas_does),
        cmocka_unit_test(what_hgemm_does_not_do_cublas_does),
        cmocka_unit_test(what_hgemm_does_not_do_cublaslt_does),
        cmocka_unit_test(floats_by_cublaslt),
    };
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}
