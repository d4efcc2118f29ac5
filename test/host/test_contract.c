/* SPDX-License-Identifier: MIT */
/*
 * The contract of a call's arguments, on a device that only records: which status and which words each
 * wrong one gives and in which order, that nothing is launched or written then, and that nothing is asked of what
 * the call does not access.
 */
#include "fixture.h"
#include "problem/names.h"

#include <math.h>
#include <string.h>

static void assert_nothing_to_do(const hgemm_desc_t *desc)
{
    assert_idle(desc, HGEMM_STATUS_SUCCESS);
    int kernel = -1;
    assert_status(hgemm_select(desc, &kernel), HGEMM_STATUS_SUCCESS);
    assert_int_equal(kernel, 0);
}

/* Starts from a call in which everything is wrong and mends one argument after another: each step
 * must uncover the next status, with words that name the value, and only the last one launches. */
static void statuses_come_in_order(void **state)
{
    (void)state;
    static int64_t indices[8];
    const int64_t huge = INT64_C(1) << 61;
    hgemm_desc_t desc, good = small();
    memset(&desc, 0, sizeof desc);
    desc.layout = (hgemm_layout_t)2;
    desc.op_a = (hgemm_op_t)2, desc.op_b = (hgemm_op_t)3;
    desc.accumulate = (hgemm_accumulate_t)4;
    desc.kernel = hgemm_kernel_count() + 1;
    desc.activation = (hgemm_activation_t)32, desc.flags = 8, desc.accuracy = (hgemm_accuracy_t)16;
    desc.bias_mode = (hgemm_bias_t)7, desc.batch_mode = (hgemm_batch_mode_t)8, desc.index_type = (hgemm_index_t)9;
    desc.alignment = 10;
    desc.type_a = HGEMM_TYPE_F32, desc.type_b = (hgemm_type_t)11, desc.type_c = (hgemm_type_t)12;
    desc.type_d = (hgemm_type_t)13, desc.type_bias = (hgemm_type_t)14, desc.type_gate = (hgemm_type_t)15;
    desc.bias = (char *)a + 4097, desc.gate = (char *)b + 4097;
    desc.m = -16, desc.n = -17, desc.k = -18, desc.batch = -19;
    desc.alpha_pointer = (float *)(void *)((char *)c + 4098), desc.beta_pointer = (float *)(void *)((char *)c + 4106);
    desc.gather_a = (char *)indices + 4, desc.scatter_d = (char *)indices + 2;

    assert_status(hgemm_run_desc(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_prepare(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_select(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_refused(NULL, HGEMM_STATUS_INVALID_DESC, "NULL");
    assert_refused(&desc, HGEMM_STATUS_INVALID_DESC, "size is 0");
    desc.size = good.size + 1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_DESC, "size is");
    desc.size = good.size;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LAYOUT, "layout is 2.");
    desc.layout = HGEMM_ROW_MAJOR;
    assert_refused(&desc, HGEMM_STATUS_INVALID_OP, "op_a is 2.");
    desc.op_a = HGEMM_OP_T;
    assert_refused(&desc, HGEMM_STATUS_INVALID_OP, "op_b is 3.");
    desc.op_b = HGEMM_OP_T;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ACCUMULATE, "accumulate is 4.");
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_KERNEL, "kernel is");
    desc.kernel = -1;
    assert_refused(&desc, HGEMM_STATUS_INVALID_KERNEL, "kernel is -1.");
    desc.kernel = KERNEL_k1_tiled;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ACTIVATION, "activation is 32.");
    desc.activation = (hgemm_activation_t)(ACTIVATION_COUNT - 1);
    assert_refused(&desc, HGEMM_STATUS_INVALID_FLAGS, "flags is 8.");
    desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    assert_refused(&desc, HGEMM_STATUS_INVALID_BATCH_MODE, "batch_mode is 8.");
    desc.batch_mode = HGEMM_BATCH_GROUPED;
    assert_refused(&desc, HGEMM_STATUS_INVALID_INDEX, "index_type is 9.");
    desc.index_type = HGEMM_INDEX_I64;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ACCURACY, "accuracy is 16.");
    desc.accuracy = HGEMM_ACCURACY_16_BITS;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ALIGNMENT, "alignment is 10.");
    desc.alignment = -8;
    assert_refused(&desc, HGEMM_STATUS_INVALID_ALIGNMENT, "alignment is -8.");
    desc.alignment = 8;
    desc.type_a = (hgemm_type_t)3, desc.type_b = (hgemm_type_t)11;
    assert_refused(&desc, HGEMM_STATUS_INVALID_BIAS, "bias_mode is 7.");
    desc.bias_mode = HGEMM_BIAS_PER_ROW;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_a is 3.");
    desc.type_a = HGEMM_TYPE_BF16;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_b is 11.");
    desc.type_b = HGEMM_TYPE_F16;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_c is 12.");
    desc.type_c = HGEMM_TYPE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_d is 13.");
    desc.type_d = HGEMM_TYPE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_bias is 14.");
    desc.type_bias = HGEMM_TYPE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_TYPE, "type_gate is 15.");
    desc.type_gate = HGEMM_TYPE_F32;
    assert_refused(&desc, HGEMM_STATUS_INVALID_M, "m is -16.");
    desc.m = good.m;
    assert_refused(&desc, HGEMM_STATUS_INVALID_N, "n is -17.");
    desc.n = good.n;
    assert_refused(&desc, HGEMM_STATUS_INVALID_K, "k is -18.");
    desc.k = good.k;
    assert_refused(&desc, HGEMM_STATUS_INVALID_BATCH, "batch is -19.");
    desc.batch = 2;
    desc.gather_a = desc.scatter_d = NULL; /* they hide how many rows are stored */
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDA, "lda is 0;");
    desc.lda = 7;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDA, "lda is 7; a stored row of A has 8 elements.");
    desc.lda = huge;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDB, "ldb is 0;");
    desc.ldb = 23;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDB, "ldb is 23; a stored row of B has 24 elements.");
    desc.ldb = 24;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDC, "ldc is 0; a stored row of C has 16 elements.");
    desc.ldc = 16, desc.ldd = 15;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDD, "ldd is 15; a stored row of D has 16 elements.");
    desc.ldd = 17, desc.ldgate = 14;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDGATE, "ldgate is 14; a stored row of gate has 16 elements.");
    desc.ldgate = 16;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "lda is 2305843009213693952 and A has 24 rows");
    desc.lda = 8, desc.stride_b = INT64_MIN;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "stride_b is -9223372036854775808 and batch 2");
    desc.stride_b = 384;
    desc.gather_a = (char *)indices + 4, desc.scatter_d = (char *)indices + 2;
    assert_refused(&desc, HGEMM_STATUS_NULL_A, "a is NULL");
    desc.a = (char *)a + 1;
    assert_refused(&desc, HGEMM_STATUS_NULL_B, "b is NULL and B is 16 by 24.");
    desc.b = (char *)b + 1;
    assert_refused(&desc, HGEMM_STATUS_NULL_C, "c is NULL");
    desc.c = (char *)d + 2;
    assert_refused(&desc, HGEMM_STATUS_NULL_D, "d is NULL");
    desc.d = (char *)d + 6;
    assert_refused(&desc, HGEMM_STATUS_NULL_GROUP_ENDS, "group_ends is NULL and batch is 2.");
    desc.group_ends = (char *)indices + 4;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_A, "a is 0x");
    desc.a = a;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_B, "no multiple of 2.");
    desc.b = b;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_C, "no multiple of 4.");
    desc.c = d + 2;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_D, "no multiple of 4.");
    desc.d = d;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_BIAS, "bias is 0x");
    desc.bias = a + 2048;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_GATE, "gate is 0x");
    desc.gate = b + 2048;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_SCALAR, "alpha_pointer is 0x");
    desc.alpha_pointer = (float *)(void *)(c + 2048);
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_SCALAR, "beta_pointer is 0x");
    desc.beta_pointer = (float *)(void *)(c + 2056);
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_INDEX, "group_ends is 0x");
    desc.group_ends = indices;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_INDEX, "gather_a is 0x");
    desc.gather_a = NULL;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_INDEX, "scatter_d is 0x");
    desc.scatter_d = NULL;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps C");
    desc.c = c;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_TYPE_BF16");
    desc = small();
    desc.kernel = KERNEL_k1_tiled, desc.accumulate = HGEMM_ACCUMULATE_F32;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "k1_tiled does not cover");
    desc.accumulate = HGEMM_ACCUMULATE_F16, desc.ldd += 1; /* a rung writes whole, aligned chunks */
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "C and D in whole, 16-byte aligned chunks");
    desc = small(), desc.accumulate = HGEMM_ACCUMULATE_F32;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
}

/* What the kernels do not have is named, each by itself, by hgemm_select too. */
static void missing_features_are_named(void **state)
{
    (void)state;
    static int32_t indices[8] = {8};
    enum { WANTED = 6 };
    hgemm_desc_t wanted[WANTED];
    const char *const words[WANTED] = {"HGEMM_ACCUMULATE_F16", "A of HGEMM_TYPE_BF16 beside B of HGEMM_TYPE_F16",
                                       "to be found",          "to be found",
                                       "to be found",          "HGEMM_FLAG_BATCH_INVARIANT"};
    for (int i = 0; i < WANTED; i++) {
        wanted[i] = small();
        wanted[i].type_a = wanted[i].type_b = HGEMM_TYPE_BF16;
        wanted[i].accumulate = i == 0 ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
    }
    wanted[1].type_b = HGEMM_TYPE_F16;
    wanted[2].batch_mode = HGEMM_BATCH_GROUPED, wanted[2].group_ends = indices;
    wanted[3].gather_a = indices, wanted[3].scale_a = 1;
    wanted[4].batch_mode = HGEMM_BATCH_POINTERS, wanted[4].scale_b = 1;
    wanted[5].flags = HGEMM_FLAG_BATCH_INVARIANT;
    for (int i = 0; i < WANTED; i++) {
        int kernel = -1;
        assert_refused(&wanted[i], HGEMM_STATUS_NOT_SUPPORTED, words[i]);
        assert_status(hgemm_select(&wanted[i], &kernel), HGEMM_STATUS_NOT_SUPPORTED);
        assert_non_null(strstr(hgemm_error_detail(NULL), words[i]));
        assert_int_equal(kernel, -1);
        wanted[i].n = 0; /* nothing is asked of the kernels */
        assert_nothing_to_do(&wanted[i]);
    }
}

/* Sets all that belongs to an operand to what no operand could be. */
static void spoil(int64_t *ld, int64_t *stride, hgemm_type_t *type, int way)
{
    const int64_t values[] = {0, -1, INT64_MAX, INT64_MIN};
    *ld = values[way], *stride = values[3 - way], *type = (hgemm_type_t)77;
}

/* Nothing is checked of what is not read: beta 0, k 0, alpha 0, nothing at all. */
static void what_is_not_accessed_may_be_anything(void **state)
{
    (void)state;
    fake.compute = 0;
    for (int way = 0; way < 4; way++)
        for (int odd = 0; odd < 2; odd++)
            for (int batch = 1; batch <= 2; batch++) {
                const void *nothing = odd ? (char *)d + 1 : NULL; /* would overlap, were it read */
                hgemm_desc_t desc = small();
                desc.batch = batch, desc.stride_a = desc.stride_b = 0, desc.stride_d = 128;
                hgemm_desc_t without_c = desc;
                without_c.beta = 0, without_c.c = nothing;
                spoil(&without_c.ldc, &without_c.stride_c, &without_c.type_c, way);
                assert_status(hgemm_run_desc(&handle, &without_c), HGEMM_STATUS_SUCCESS);
                assert_null(fake.args.c);
                for (int zero = 0; zero < 3; zero++) {
                    hgemm_desc_t without_ab = desc;
                    without_ab.a = without_ab.b = nothing;
                    spoil(&without_ab.lda, &without_ab.stride_a, &without_ab.type_a, way);
                    spoil(&without_ab.ldb, &without_ab.stride_b, &without_ab.type_b, way);
                    without_ab.gather_a = zero == 2 ? (char *)d + 1 : NULL;
                    without_ab.alpha_pointer = zero == 2 ? (float *)(void *)((char *)d + 1) : NULL;
                    *(zero ? &without_ab.k : &without_ab.m) = zero ? 0 : without_ab.m;
                    without_ab.alpha = zero ? NAN : 0;
                    assert_status(hgemm_run_desc(&handle, &without_ab), HGEMM_STATUS_SUCCESS);
                    assert_null(fake.args.a);
                    assert_null(fake.args.b);
                    without_ab.k = zero ? 0 : INT64_MAX; /* not counted either */
                    assert_status(hgemm_run_desc(&handle, &without_ab), HGEMM_STATUS_SUCCESS);
                }
                hgemm_desc_t empty = without_c;
                spoil(&empty.lda, &empty.stride_a, &empty.type_a, way);
                spoil(&empty.ldd, &empty.stride_d, &empty.type_d, way);
                spoil(&empty.ldgate, &empty.stride_gate, &empty.type_gate, way);
                empty.a = nothing, empty.d = (void *)(uintptr_t)nothing, empty.gate = nothing, empty.bias = nothing;
                *(way == 0 ? &empty.m : way == 1 ? &empty.n : &empty.batch) = 0;
                fake.launches = fake.loads = 0;
                assert_idle(&empty, HGEMM_STATUS_SUCCESS);
                fake.launches = fake.loads = 0;
            }
    /* As hgemm_desc_init leaves it. */
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldd = 16;
    desc.a = a, desc.b = b, desc.d = d;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.alpha = 0, desc.lda = desc.ldb = 0, desc.a = desc.b = NULL;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    hgemm_desc_init(&desc);
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
}

static void empty_problems_do_nothing(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.a = desc.b = desc.c = desc.d = NULL;
    desc.m = 0;
    assert_nothing_to_do(&desc);
    desc.n = -1; /* signs and enumerations are checked all the same */
    assert_refused(&desc, HGEMM_STATUS_INVALID_N, "n is -1.");
    desc = small(), desc.m = 0, desc.op_b = (hgemm_op_t)2;
    assert_refused(&desc, HGEMM_STATUS_INVALID_OP, "op_b is 2.");
    desc = small(), desc.d = NULL, desc.n = 0;
    assert_nothing_to_do(&desc);
    desc = small(), desc.d = NULL, desc.batch = 0;
    assert_nothing_to_do(&desc);
    /* C stays as it is. */
    desc = small(), desc.k = 0, desc.c = desc.d;
    assert_nothing_to_do(&desc);
    desc = small(), desc.alpha = 0, desc.c = desc.d;
    assert_nothing_to_do(&desc);
    hgemm_desc_t more[5] = {desc, desc, desc, desc, desc}; /* and not where anything else is asked for */
    more[0].activation = HGEMM_ACTIVATION_RELU;
    more[1].bias = elsewhere(0);
    more[2].gate = elsewhere(0), more[2].ldgate = 16;
    more[3].beta_pointer = elsewhere(0);
    more[4].alpha_pointer = elsewhere(0), more[4].k = 24;
    for (int i = 0; i < 5; i++) {
        assert_valid(&more[i]);
        assert_false(normalise(&more[i]).is_idle);
    }
    hgemm_desc_t other = desc;
    int kernel = 0;
    other = desc, other.type_d = HGEMM_TYPE_F32;
    assert_refused(&other, HGEMM_STATUS_OVERLAP, "overlaps C");
    desc.c = c; /* is copied to D */
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
    assert_int_not_equal(kernel, 0);
}

/* Any scalar but a zero reads its operands, and so does one in device memory. */
static void what_is_read_must_be_there(void **state)
{
    (void)state;
    const float scalars[] = {1, -1, 1e-45f, -1e-45f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        hgemm_desc_t desc = small();
        desc.alpha = scalars[i], desc.a = NULL;
        assert_refused(&desc, HGEMM_STATUS_NULL_A, "A is 8 by 24");
        desc = small(), desc.beta = scalars[i], desc.c = NULL;
        assert_refused(&desc, HGEMM_STATUS_NULL_C, "C is 8 by 16");
        desc.c = d + 1;
        assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps C");
    }
    hgemm_desc_t desc = small();
    desc.alpha = desc.beta = 0, desc.alpha_pointer = elsewhere(0), desc.beta_pointer = elsewhere(4);
    desc.layout = HGEMM_COL_MAJOR, desc.lda = 8, desc.ldb = 24, desc.ldc = desc.ldd = 8;
    desc.b = NULL;
    assert_refused(&desc, HGEMM_STATUS_NULL_B, "B is 24 by 16");
    desc.b = b, desc.c = NULL;
    assert_refused(&desc, HGEMM_STATUS_NULL_C, "C is 8 by 16");
    desc.c = c;
    assert_valid(&desc);
}

/* The addresses of m, n, k, leading dimensions, strides: how far is too far, for elements of each size. */
static void sizes_do_not_overflow(void **state)
{
    (void)state;
    const int64_t most = INT32_MAX, largest = INT64_MAX;
    hgemm_desc_t desc = small();
    desc.m = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "m is 2147483648; the most is 2147483647.");
    desc = small(), desc.n = most + 1, desc.ldb = desc.ldc = desc.ldd = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "n is 2147483648");
    desc = small(), desc.k = most + 1, desc.lda = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "k is 2147483648");
    desc = small(), desc.batch_mode = HGEMM_BATCH_POINTERS, desc.batch = largest;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "batch is 9223372036854775807");
    desc = small(), desc.batch_mode = HGEMM_BATCH_GROUPED, desc.batch = most + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "batch is 2147483648; the most is 2147483647.");
    for (int which = 0; which < 5; which++) {
        const char *const lds[] = {"lda is", "ldb is", "ldc is", "ldd is", "ldgate is"};
        const char *const names[] = {"stride_a is", "stride_b is", "stride_c is", "stride_d is", "stride_gate is"};
        hgemm_desc_t plain = small();
        if (which == 4)
            plain.gate = elsewhere(0), plain.ldgate = 16;
        desc = plain;
        int64_t *const ld_of[] = {&desc.lda, &desc.ldb, &desc.ldc, &desc.ldd, &desc.ldgate};
        int64_t *const stride_of[] = {&desc.stride_a, &desc.stride_b, &desc.stride_c, &desc.stride_d,
                                      &desc.stride_gate};
        *ld_of[which] = largest;
        assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, lds[which]);
        assert_non_null(strstr(hgemm_error_detail(&handle), "9223372036854775807"));
        const int64_t strides[] = {largest, -largest, INT64_MIN, largest / 2};
        for (int s = 0; s < 4; s++) {
            desc = plain, desc.batch = 4;
            desc.stride_d = 128;
            *stride_of[which] = strides[s];
            assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, names[which]);
            desc.batch = 1; /* where a stride does not matter */
            assert_valid(&desc);
        }
    }
    desc = small(), desc.batch = largest, desc.stride_d = 128;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "stride_d is 128 and batch 9223372036854775807");
    /* The row that is alone has no distance to another. */
    desc = small(), desc.m = 1, desc.lda = desc.ldc = desc.ldd = largest;
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    fake.loads = 0;
    /* 2^61 halves and one, then 2^61; half of that of floats. Nothing else is read: it would lie in D's range. */
    desc = small(), desc.k = 0, desc.beta = 0;
    desc.m = 2, desc.ldd = (INT64_C(1) << 61) - desc.n + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "over 2305843009213693952 elements");
    desc.type_d = HGEMM_TYPE_F32, desc.ldd = (INT64_C(1) << 60) - desc.n + 1;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "over 1152921504606846976 elements");
    desc.ldd--;
    assert_valid(&desc);
    desc.type_d = HGEMM_TYPE_F16, desc.ldd = (INT64_C(1) << 61) - desc.n;
    fake.compute = 0;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
}

/* The kernels that do not have it say what they were asked for; so does hgemm_select, to its thread. */
static void a_kernel_that_does_not_cover_a_call_is_named(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    int kernel = 0;
    desc.kernel = KERNEL_k1_tiled, desc.op_a = HGEMM_OP_T, desc.lda = 8;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "k1_tiled does not cover this row-major problem: f16 tn");
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(hgemm_error_detail(NULL), "k1_tiled does not cover"));
    desc.gather_a = elsewhere(0), desc.bias = elsewhere(64), desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, " fused invariant gathered.");
    desc.gather_a = NULL;
    desc.lda = 3;
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_INVALID_LDA);
    assert_string_equal(hgemm_error_detail(NULL), "lda is 3; a stored row of A has 8 elements.");
    assert_int_equal(kernel, 0);
}

/* The short form checks the same things. */
static void short_form_checks_too(void **state)
{
    (void)state;
    assert_status(hgemm_run(NULL, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 1, d, 16),
                  HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_run(&handle, HGEMM_COL_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 7, b, 24, 1, d, 8),
                  HGEMM_STATUS_INVALID_LDA);
    assert_status(hgemm_run(&handle, HGEMM_COL_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 8, b, 24, 1, d, 7),
                  HGEMM_STATUS_INVALID_LDC);
    assert_status(hgemm_run(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 1, NULL, 16),
                  HGEMM_STATUS_NULL_C);
    assert_int_equal(fake.launches, 0);
    assert_true(d_is_untouched());
    assert_status(hgemm_run(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 0, d, 16),
                  HGEMM_STATUS_SUCCESS);
    assert_int_equal(fake.launches, 1);
    assert_false(d_is_untouched());
}

static void leading_dimensions_follow_layout_and_op(void **state)
{
    (void)state;
    for (int bits = 0; bits < 8; bits++) {
        hgemm_desc_t desc = small();
        int row_major = !(bits & 1), n_a = !(bits & 2), n_b = !(bits & 4);
        desc.layout = row_major ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
        desc.op_a = n_a ? HGEMM_OP_N : HGEMM_OP_T;
        desc.op_b = n_b ? HGEMM_OP_N : HGEMM_OP_T;
        int64_t least_a = row_major == n_a ? desc.k : desc.m;
        int64_t least_b = row_major == n_b ? desc.n : desc.k;
        int64_t least_d = row_major ? desc.n : desc.m;
        desc.lda = least_a, desc.ldb = least_b, desc.ldc = desc.ldd = least_d;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        set_up(NULL);
        const char *line = row_major ? "a stored row of" : "a stored column of";
        desc.lda = least_a - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDA, line);
        desc.lda = least_a, desc.ldb = least_b - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDB, line);
        desc.ldb = least_b, desc.ldc = least_d - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDC, line);
        desc.ldc = least_d, desc.ldd = least_d - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDD, line);
        desc.ldd = least_d, desc.gate = elsewhere(0), desc.ldgate = least_d - 1;
        assert_refused(&desc, HGEMM_STATUS_INVALID_LDGATE, line);
        desc.ldgate = least_d;
        assert_valid(&desc);
    }
    hgemm_desc_t row = small(); /* a single one has no second, and the same rule */
    row.m = 1, row.lda = row.k - 1;
    assert_refused(&row, HGEMM_STATUS_INVALID_LDA, "lda is 23");
}

/* Without products A and B are neither needed nor named to the kernel's loop; zeros keep their sign. */
static void operands_are_not_read_without_products(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        hgemm_desc_t desc = small();
        desc.a = way ? NULL : (char *)a + 1, desc.b = NULL;
        if (way)
            desc.k = 0, desc.alpha = 1e30f;
        else
            desc.alpha = 0;
        desc.beta = -2;
        c[0] = 0x8000;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(fake.args.k, 0);
        assert_int_equal(d[0], 0x0000);
        assert_int_equal(d[1], hgemm_half_from_float(-2 * hgemm_half_to_float(c[1])));
        desc.beta = 1;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_int_equal(d[0], 0x8000);
        desc.beta = 0, desc.c = NULL;
        assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
        assert_true(fake.args.alpha == 0 && !signbit(fake.args.alpha));
        for (int i = 0; i < 8 * 16; i++)
            assert_int_equal(d[i], 0);
    }
}

static void null_handles_are_found(void **state)
{
    (void)state;
    void *p = NULL;
    hgemm_device_info_t info;
    assert_status(hgemm_create(NULL, "cuda"), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_destroy(NULL), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_set_stream(NULL, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_stream(NULL, &p), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_stream(&handle, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_synchronize(NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_device_info(NULL, &info), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_get_device_info(&handle, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_malloc(NULL, &p, 1), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_malloc(&handle, NULL, 1), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_free(NULL, &p), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(NULL, d, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, NULL, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, d, NULL, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_download(NULL, d, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_download(&handle, NULL, a, 2), HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_upload(&handle, NULL, NULL, 0), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_free(&handle, NULL), HGEMM_STATUS_SUCCESS);
    p = d;
    assert_status(hgemm_malloc(&handle, &p, 0), HGEMM_STATUS_SUCCESS);
    assert_null(p);
    assert_non_null(hgemm_error_detail(NULL));
    assert_status(hgemm_get_device_info(&handle, NULL), HGEMM_STATUS_INVALID_HANDLE);
    assert_string_equal(hgemm_error_detail(&handle), "info is NULL.");
}

/* What a call would write for its caller is as it was where it fails. */
static void results_are_written_on_success_only(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    hgemm_handle_t made = &handle;
    hgemm_plan_t plan = (hgemm_plan_t)elsewhere(0), mark = plan;
    hgemm_kernel_info_t info = {.threads = 77};
    hgemm_weights_t weights;
    int kernel = 77;
    size_t bytes = 77;
    double ratio = 77;
    desc.m = -1;
    hgemm_weights_init(&weights);
    weights.n = weights.k = 64, weights.group = 3;
    assert_status(hgemm_create(&made, "no such device"), HGEMM_STATUS_INVALID_DEVICE);
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_INVALID_M);
    assert_status(hgemm_plan_create(&plan, &handle, &desc), HGEMM_STATUS_INVALID_M);
    assert_status(hgemm_plan_from_text(&plan, &handle, &desc, ""), HGEMM_STATUS_INVALID_M);
    assert_status(hgemm_get_cublas_ratio(&handle, &desc, &ratio), HGEMM_STATUS_INVALID_M);
    assert_status(hgemm_weights_bytes(&weights, &bytes), HGEMM_STATUS_INVALID_WEIGHTS);
    assert_status(hgemm_get_kernel_info(0, &info), HGEMM_STATUS_INVALID_KERNEL);
    assert_status(hgemm_get_kernel_info(hgemm_kernel_count() + 1, &info), HGEMM_STATUS_INVALID_KERNEL);
    desc.m = 8;
    assert_status(hgemm_plan_from_text(&plan, &handle, &desc, "no plan"), HGEMM_STATUS_INVALID_PLAN);
    assert_true(made == &handle && plan == mark && kernel == 77 && bytes == 77 && ratio == 77 && info.threads == 77);
    assert_int_equal(hgemm_find_kernel(NULL), 0);
}

/* Of calls without a handle the thread's words tell, until the next of these. */
static void failures_without_a_handle_are_told(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    hgemm_weights_t weights;
    int kernel;
    size_t bytes;
    hgemm_weights_init(&weights);
    weights.n = weights.k = 64, weights.group = 3;
    assert_status(hgemm_weights_bytes(&weights, &bytes), HGEMM_STATUS_INVALID_WEIGHTS);
    assert_non_null(strstr(hgemm_error_detail(NULL), "group is 3"));
    desc.ldd = 7;
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_INVALID_LDD);
    assert_non_null(strstr(hgemm_error_detail(NULL), "ldd is 7"));
    assert_status(hgemm_pack_weights(NULL, &weights, a, b, NULL, d), HGEMM_STATUS_INVALID_WEIGHTS);
    assert_non_null(strstr(hgemm_error_detail(NULL), "group is 3"));
    weights.group = 32;
    assert_status(hgemm_unpack_weights(NULL, &weights, a, 65, 0, HGEMM_TYPE_F16, d, 64), HGEMM_STATUS_INVALID_K);
    assert_non_null(strstr(hgemm_error_detail(NULL), "first is 65"));
    assert_status(hgemm_weights_bytes(&weights, &bytes), HGEMM_STATUS_SUCCESS);
    assert_string_equal(hgemm_error_detail(NULL), "");
}

/* A workspace that is refused leaves the one of before. */
static void a_refused_workspace_changes_nothing(void **state)
{
    (void)state;
    void *before = handle.workspace;
    const size_t bytes = handle.workspace_bytes;
    assert_status(hgemm_set_workspace(&handle, (char *)elsewhere(0) + 64, 1 << 20), HGEMM_STATUS_MISALIGNED_WORKSPACE);
    assert_status(hgemm_set_workspace(&handle, NULL, 1 << 20), HGEMM_STATUS_INVALID_HANDLE);
    assert_string_equal(hgemm_error_detail(&handle), "pointer is NULL.");
    assert_true(handle.workspace == before && handle.workspace_bytes == bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(results_are_written_on_success_only, set_up),
        cmocka_unit_test_setup(failures_without_a_handle_are_told, set_up),
        cmocka_unit_test_setup(a_refused_workspace_changes_nothing, set_up),
        cmocka_unit_test_setup(statuses_come_in_order, set_up),
        cmocka_unit_test_setup(missing_features_are_named, set_up),
        cmocka_unit_test_setup(what_is_not_accessed_may_be_anything, set_up),
        cmocka_unit_test_setup(empty_problems_do_nothing, set_up),
        cmocka_unit_test_setup(what_is_read_must_be_there, set_up),
        cmocka_unit_test_setup(sizes_do_not_overflow, set_up),
        cmocka_unit_test_setup(a_kernel_that_does_not_cover_a_call_is_named, set_up),
        cmocka_unit_test_setup(short_form_checks_too, set_up),
        cmocka_unit_test_setup(leading_dimensions_follow_layout_and_op, set_up),
        cmocka_unit_test_setup(operands_are_not_read_without_products, set_up),
        cmocka_unit_test_setup(null_handles_are_found, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
