/* SPDX-License-Identifier: MIT */
/*
 * The contract of a call's arguments, on a device that only records: which status and which words each
 * wrong one gives and in which order, that nothing is launched or written then, and that nothing is asked of what
 * the call does not access.
 */
#include "fixture.h"
#include "problem/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    desc.activation = (hgemm_activation_t)5, desc.flags = 8, desc.accuracy = (hgemm_accuracy_t)16;
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
    assert_refused(&desc, HGEMM_STATUS_INVALID_ACTIVATION, "activation is 5.");
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
        assert_false(nothing_to_compute(&more[i]));
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

/* The descriptor of version 0.1, by which programs were compiled that must go on working. */
typedef struct old_desc_t {
    size_t size;
    int layout, op_a, op_b, accumulate, kernel;
    int64_t m, n, k, batch;
    float alpha, beta;
    const void *a;
    int64_t lda, stride_a;
    const void *b;
    int64_t ldb, stride_b;
    const void *c;
    int64_t ldc, stride_c;
    void *d;
    int64_t ldd, stride_d;
} old_desc_t;

static void a_descriptor_of_the_old_size_is_understood(void **state)
{
    (void)state;
    const hgemm_desc_t today = small();
    struct {
        old_desc_t desc;
        unsigned char beyond[sizeof(hgemm_desc_t)]; /* must not be read: as arguments they would be refused */
    } old;
    memset(&old, 0x7f, sizeof old);
    old.desc = (old_desc_t){.size = sizeof(old_desc_t),
                            .m = 8,
                            .n = 16,
                            .k = 24,
                            .batch = 1,
                            .alpha = 1,
                            .beta = 1,
                            .a = a,
                            .lda = 24,
                            .b = b,
                            .ldb = 16,
                            .c = c,
                            .ldc = 16,
                            .d = d,
                            .ldd = 16};
    const hgemm_desc_t *given = (const hgemm_desc_t *)(const void *)&old;
    assert_int_equal(offsetof(hgemm_desc_t, type_a), sizeof(old_desc_t));
    int kernel = 0, of_today = 0;
    assert_status(hgemm_select(given, &kernel), HGEMM_STATUS_SUCCESS);
    assert_status(hgemm_select(&today, &of_today), HGEMM_STATUS_SUCCESS);
    assert_int_equal(kernel, of_today);
    assert_status(hgemm_run_desc(&handle, given), HGEMM_STATUS_SUCCESS);
    static uint16_t result[ELEMENTS];
    memcpy(result, d, sizeof result);
    set_up(NULL);
    assert_status(hgemm_run_desc(&handle, &today), HGEMM_STATUS_SUCCESS);
    assert_memory_equal(result, d, sizeof result);
    set_up(NULL);
    old.desc.ldd = 15;
    assert_refused(given, HGEMM_STATUS_INVALID_LDD, "ldd is 15");
    old.desc.ldd = 16;
    for (size_t size = 0; size < sizeof today + 64; size++) {
        old.desc.size = size;
        if (size != sizeof(old_desc_t) && size != offsetof(hgemm_desc_t, weights) &&
            size != offsetof(hgemm_desc_t, accuracy) && size != sizeof today)
            assert_refused(given, HGEMM_STATUS_INVALID_DESC, "size is");
    }
    hgemm_desc_t of_0_2 = today; /* the size of 0.2, which had no weights */
    of_0_2.size = offsetof(hgemm_desc_t, weights);
    memset(&of_0_2.weights, 0x7f, sizeof of_0_2.weights);
    assert_status(hgemm_run_desc(&handle, &of_0_2), HGEMM_STATUS_SUCCESS);
    of_0_2.size = offsetof(hgemm_desc_t, accuracy), of_0_2.weights = NULL; /* and with weights */
    of_0_2.accuracy = (hgemm_accuracy_t)16;
    assert_status(hgemm_run_desc(&handle, &of_0_2), HGEMM_STATUS_SUCCESS);
    assert_memory_equal(result, d, sizeof result);
}

/* A new descriptor says nothing beyond what its comment says. */
static void a_new_descriptor_is_plain(void **state)
{
    (void)state;
    hgemm_desc_t desc, zeros = {.size = sizeof desc, .batch = 1, .alpha = 1};
    memset(&desc, 0x7f, sizeof desc);
    hgemm_desc_init(&desc);
    assert_int_equal(desc.size, zeros.size);
    assert_true(desc.alpha == 1 && desc.beta == 0 && desc.batch == 1);
    assert_true(!desc.a && !desc.b && !desc.c && !desc.d && !desc.bias && !desc.gate && !desc.alpha_pointer &&
                !desc.beta_pointer && !desc.group_ends && !desc.gather_a && !desc.scatter_d);
    assert_true(desc.layout == HGEMM_ROW_MAJOR && desc.op_a == HGEMM_OP_N && desc.op_b == HGEMM_OP_N &&
                desc.accumulate == HGEMM_ACCUMULATE_F16 && desc.kernel == HGEMM_KERNEL_AUTO);
    assert_true(desc.type_a == HGEMM_TYPE_F16 && desc.type_d == HGEMM_TYPE_F16 &&
                desc.activation == HGEMM_ACTIVATION_NONE && desc.flags == 0 && desc.alignment == 0 &&
                desc.batch_mode == HGEMM_BATCH_STRIDED && desc.index_type == HGEMM_INDEX_I32);
    assert_true(desc.m == 0 && desc.n == 0 && desc.k == 0 && desc.lda == 0 && desc.stride_d == 0 && desc.ldgate == 0);
    hgemm_desc_init(NULL);
}

/* A column-major problem is the row-major one of the transposes, in all that it says. */
static void column_major_is_the_transpose(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.layout = HGEMM_COL_MAJOR, desc.op_b = HGEMM_OP_T;
    desc.lda = 1, desc.ldb = 2, desc.ldc = 3, desc.ldd = 4, desc.ldgate = 5;
    desc.stride_a = 6, desc.stride_b = 7, desc.stride_c = 8, desc.stride_d = 9, desc.stride_gate = 10;
    desc.type_a = HGEMM_TYPE_BF16, desc.type_d = desc.type_bias = HGEMM_TYPE_F32;
    desc.bias = elsewhere(0), desc.gate = elsewhere(4), desc.stride_bias = 11;
    desc.activation = HGEMM_ACTIVATION_SILU, desc.alignment = 16;
    desc.alpha_pointer = elsewhere(8), desc.beta_pointer = elsewhere(12);
    const hgemm_desc_t row_major = normalise(&desc);
    assert_int_equal(row_major.layout, HGEMM_ROW_MAJOR);
    assert_true(row_major.m == 16 && row_major.n == 8 && row_major.k == 24);
    assert_true(row_major.op_a == HGEMM_OP_T && row_major.op_b == HGEMM_OP_N);
    assert_true(row_major.a == desc.b && row_major.lda == 2 && row_major.stride_a == 7);
    assert_true(row_major.b == desc.a && row_major.ldb == 1 && row_major.stride_b == 6);
    assert_true(row_major.type_a == HGEMM_TYPE_F16 && row_major.type_b == HGEMM_TYPE_BF16);
    assert_true(row_major.c == desc.c && row_major.ldc == 3 && row_major.stride_c == 8);
    assert_true(row_major.d == desc.d && row_major.ldd == 4 && row_major.stride_d == 9);
    assert_true(row_major.gate == desc.gate && row_major.ldgate == 5 && row_major.stride_gate == 10);
    assert_true(row_major.bias == desc.bias && row_major.bias_mode == HGEMM_BIAS_PER_ROW &&
                row_major.stride_bias == 11);
    assert_true(row_major.type_d == HGEMM_TYPE_F32 && row_major.type_bias == HGEMM_TYPE_F32);
    assert_true(row_major.activation == HGEMM_ACTIVATION_SILU && row_major.alignment == 16);
    assert_true(row_major.alpha_pointer == desc.alpha_pointer && row_major.beta_pointer == desc.beta_pointer);
    desc.bias_mode = HGEMM_BIAS_PER_ROW;
    assert_int_equal(normalise(&desc).bias_mode, HGEMM_BIAS_PER_COLUMN);
    desc.layout = HGEMM_ROW_MAJOR;
    assert_int_equal(normalise(&desc).bias_mode, HGEMM_BIAS_PER_ROW);
}

/* A column whose elements follow each other is taken as a row, where selection is free to. */
static void a_column_is_laid_along(void **state)
{
    (void)state;
    for (int ops = 0; ops < 4; ops++)
        for (int is_b = 0; is_b < 2; is_b++) {
            hgemm_desc_t desc = small();
            desc.op_a = (hgemm_op_t)(ops >> 1), desc.op_b = (hgemm_op_t)(ops & 1);
            const hgemm_op_t op = is_b ? desc.op_b : desc.op_a;
            if (is_b)
                desc.n = op == HGEMM_OP_N ? 1 : 16, desc.k = op == HGEMM_OP_N ? 24 : 1;
            else
                desc.m = op == HGEMM_OP_N ? 8 : 1, desc.k = op == HGEMM_OP_N ? 1 : 24;
            desc.lda = desc.ldb = desc.ldc = desc.ldd = 32;
            *(is_b ? &desc.ldb : &desc.lda) = 1;
            const hgemm_desc_t p = normalise(&desc);
            const int64_t rows = is_b ? (op == HGEMM_OP_N ? 24 : 16) : op == HGEMM_OP_N ? 8 : 24;
            assert_int_equal(is_b ? p.op_b : p.op_a, op == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N);
            assert_int_equal(is_b ? p.ldb : p.lda, rows);
            assert_int_equal(is_b ? p.op_a : p.op_b, is_b ? desc.op_a : desc.op_b);
            assert_int_equal(is_b ? p.lda : p.ldb, 32);

            *(is_b ? &desc.ldb : &desc.lda) = 2; /* there are gaps */
            assert_int_equal(is_b ? normalise(&desc).op_b : normalise(&desc).op_a, op);
            *(is_b ? &desc.ldb : &desc.lda) = 1;
            desc.kernel = 1;
            assert_int_equal(is_b ? normalise(&desc).op_b : normalise(&desc).op_a, op);
            desc.kernel = HGEMM_KERNEL_AUTO, desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
            assert_int_equal(is_b ? normalise(&desc).op_b : normalise(&desc).op_a, op);
        }
}

/* How far a bias reaches, by its mode, its type and the batch: to the byte, seen by what D may touch. */
static void a_bias_has_a_value_for_each_row_or_column(void **state)
{
    (void)state;
    for (int bits = 0; bits < 8; bits++) {
        hgemm_desc_t desc = small();
        const int per_row = bits & 1, wide = bits >> 1 & 1, batch = bits >> 2 & 1 ? 3 : 1;
        desc.bias_mode = per_row ? HGEMM_BIAS_PER_ROW : HGEMM_BIAS_PER_COLUMN;
        desc.type_bias = wide ? HGEMM_TYPE_F32 : HGEMM_TYPE_F16;
        desc.batch = batch, desc.stride_bias = 20, desc.stride_d = 128;
        desc.bias = elsewhere(0);
        const uint64_t values = (per_row ? 8 : 16) + (uint64_t)(batch - 1) * 20, bytes = values * (wide ? 4 : 2);
        desc.d = elsewhere(bytes);
        assert_valid(&desc);
        desc.d = elsewhere(bytes - 2);
        assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps bias");
    }
}

/* Batches of pointers and groups: what is an array of pointers, what is one matrix, what has strides. */
static void batch_modes_say_where_matrices_are(void **state)
{
    (void)state;
    static int32_t ends[3];
    hgemm_desc_t desc = small();
    desc.batch_mode = HGEMM_BATCH_POINTERS, desc.batch = 3;
    desc.stride_a = desc.stride_d = INT64_MIN; /* not looked at */
    assert_valid(&desc);
    desc.a = (char *)a + 4;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_A, "no multiple of 8.");
    desc.a = a, desc.gate = (char *)b + 4, desc.ldgate = 16;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_GATE, "no multiple of 8.");
    desc.gate = NULL, desc.bias = (char *)b + 4;
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_BIAS, "no multiple of 8.");
    desc.bias = NULL, desc.ldd = 15;
    assert_refused(&desc, HGEMM_STATUS_INVALID_LDD, "ldd is 15");

    desc = small(), desc.batch_mode = HGEMM_BATCH_GROUPED, desc.batch = 3, desc.group_ends = ends;
    desc.stride_a = desc.stride_c = desc.stride_d = desc.stride_gate = INT64_MIN; /* not looked at */
    desc.stride_b = 384;
    assert_valid(&desc);
    desc.stride_b = INT64_MIN;
    assert_refused(&desc, HGEMM_STATUS_TOO_LARGE, "stride_b is");
    desc.stride_b = 384, desc.index_type = HGEMM_INDEX_I64;
    desc.group_ends = (char *)ends + ((uintptr_t)ends % 8 ? 0 : 4);
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_INDEX, "no multiple of 8.");
    desc.group_ends = NULL;
    assert_refused(&desc, HGEMM_STATUS_NULL_GROUP_ENDS, "batch is 3");
    /* The matrices of B are all read. */
    desc.group_ends = elsewhere(0), desc.b = elsewhere(1024), desc.d = elsewhere(1024 + 3 * 768 - 2);
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps B");
}

/* The kernels that do not have it say what they were asked for; so does hgemm_select, to its thread. */
static void a_kernel_that_does_not_cover_a_call_is_named(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    int kernel = 0;
    desc.kernel = KERNEL_k1_tiled, desc.op_a = HGEMM_OP_T, desc.lda = 8;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "k1_tiled does not cover this row-major problem: tn, f16 sums");
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(hgemm_error_detail(NULL), "k1_tiled does not cover"));
    desc.gather_a = elsewhere(0), desc.bias = elsewhere(64), desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED,
                   ", a fused epilogue, operands by pointers or indices, batch-invariant.");
    desc.gather_a = NULL;
    desc.lda = 3;
    assert_status(hgemm_select(&desc, &kernel), HGEMM_STATUS_INVALID_LDA);
    assert_string_equal(hgemm_error_detail(NULL), "lda is 3; a stored row of A has 8 elements.");
    assert_int_equal(kernel, 0);
}

/* A scale of the host's is 0 or a power of two that can be undone; one in device memory takes its place, and of halves
 * there is none. What bfloat16 does not go with is said. */
static void scales_are_powers_of_two(void **state)
{
    (void)state;
    const float wrong[] = {-1, 3, 0x1p127f, 0x1p-113f, INFINITY, NAN, 0x1.8p3f, -0x1p-20f};
    const float right[] = {0, 1, 0x1p126f, 0x1p-112f};
    static float scale[2];
    hgemm_desc_t desc = small();
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = HGEMM_TYPE_BF16;
    desc.scale_a = desc.scale_b = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        desc.scale_a = wrong[i];
        assert_refused(&desc, HGEMM_STATUS_INVALID_SCALE, "scale_a is ");
        desc.scale_a_pointer = scale;
        assert_valid(&desc);
        desc.scale_a_pointer = NULL, desc.scale_a = 1, desc.scale_b = wrong[i];
        assert_refused(&desc, HGEMM_STATUS_INVALID_SCALE, "scale_b is ");
        desc.type_a = desc.type_b = HGEMM_TYPE_F16;
        assert_valid(&desc);
        desc.type_a = desc.type_b = HGEMM_TYPE_BF16;
        desc.scale_b = 1;
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        desc.scale_a = desc.scale_b = right[i];
        assert_valid(&desc);
    }
    desc.scale_b_pointer = (const float *)((const char *)scale + 2);
    assert_refused(&desc, HGEMM_STATUS_MISALIGNED_SCALAR, "scale_b_pointer");
    desc.scale_b_pointer = NULL;
    desc.accumulate = HGEMM_ACCUMULATE_F16;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_ACCUMULATE_F16");
    desc.accumulate = HGEMM_ACCUMULATE_F32, desc.type_b = HGEMM_TYPE_F16;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "A of HGEMM_TYPE_BF16 beside B of HGEMM_TYPE_F16");
    desc.type_b = HGEMM_TYPE_BF16, desc.flags = HGEMM_FLAG_BATCH_INVARIANT, desc.scale_a = 0;
    assert_refused(&desc, HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_FLAG_BATCH_INVARIANT");
    desc.scale_a = 1;
    assert_valid(&desc);
}

/* What hgemm_find_scale refuses, and that it touches nothing then. */
static void scales_are_found_of_what_is_there(void **state)
{
    (void)state;
    float scale[2] = {7, 7};
    const struct {
        int64_t lines, width;
        const void *matrix;
        int64_t ld;
        float *scale;
        hgemm_status_t status;
    } calls[] = {
        {-1, 8, a, 8, scale, HGEMM_STATUS_INVALID_M},
        {8, -1, a, 8, scale, HGEMM_STATUS_INVALID_N},
        {8, 8, a, 7, scale, HGEMM_STATUS_INVALID_LDA},
        {INT64_C(1) << 31, 8, a, 8, scale, HGEMM_STATUS_TOO_LARGE},
        {8, 8, a, INT64_MAX / 4, scale, HGEMM_STATUS_TOO_LARGE},
        {8, 8, NULL, 8, scale, HGEMM_STATUS_NULL_A},
        {8, 8, (const char *)a + 1, 8, scale, HGEMM_STATUS_MISALIGNED_A},
        {8, 8, a, 8, NULL, HGEMM_STATUS_INVALID_HANDLE},
        {8, 8, a, 8, (float *)((char *)scale + 2), HGEMM_STATUS_MISALIGNED_SCALAR},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        assert_status(
            hgemm_find_scale(&handle, calls[i].lines, calls[i].width, calls[i].matrix, calls[i].ld, calls[i].scale),
            calls[i].status);
        assert_true(strlen(hgemm_error_detail(&handle)) > 0);
    }
    assert_status(hgemm_find_scale(NULL, 8, 8, a, 8, scale), HGEMM_STATUS_INVALID_HANDLE);
    assert_int_equal(fake.loads + fake.launches, 0);
    assert_true(scale[0] == 7 && scale[1] == 7);
}

/* hgemm_run sums in halves, hgemm_run_f32 in floats, and else they are one. */
static void short_forms_differ_in_their_sums(void **state)
{
    (void)state;
    for (int f32 = 0; f32 < 2; f32++) {
        set_up(NULL);
        assert_status((f32 ? hgemm_run_f32 : hgemm_run)(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 24, 16, 160,
                                                        2, a, 160, b, 16, 3, d, 16),
                      HGEMM_STATUS_SUCCESS);
        assert_int_equal(strstr(fake.image->symbol, "_f32_") != NULL, f32);
        assert_true(fake.args.m == 24 && fake.args.n == 16 && fake.args.k == 160);
        assert_true(fake.args.alpha == 2 && fake.args.beta == 3 && fake.args.a == a && fake.args.b == b);
        assert_true(fake.args.c == d && fake.args.d == d && fake.args.ldc == 16 && fake.args.ldd == 16);
    }
    assert_status(hgemm_run_f32(NULL, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 24, b, 16, 1, d, 16),
                  HGEMM_STATUS_INVALID_HANDLE);
    assert_status(hgemm_run_f32(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 8, 16, 24, 1, a, 23, b, 16, 1, d, 16),
                  HGEMM_STATUS_INVALID_LDA);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(statuses_come_in_order, set_up),
        cmocka_unit_test_setup(missing_features_are_named, set_up),
        cmocka_unit_test_setup(what_is_not_accessed_may_be_anything, set_up),
        cmocka_unit_test_setup(empty_problems_do_nothing, set_up),
        cmocka_unit_test_setup(what_is_read_must_be_there, set_up),
        cmocka_unit_test_setup(sizes_do_not_overflow, set_up),
        cmocka_unit_test_setup(a_descriptor_of_the_old_size_is_understood, set_up),
        cmocka_unit_test_setup(a_new_descriptor_is_plain, set_up),
        cmocka_unit_test_setup(column_major_is_the_transpose, set_up),
        cmocka_unit_test_setup(a_column_is_laid_along, set_up),
        cmocka_unit_test_setup(a_bias_has_a_value_for_each_row_or_column, set_up),
        cmocka_unit_test_setup(batch_modes_say_where_matrices_are, set_up),
        cmocka_unit_test_setup(a_kernel_that_does_not_cover_a_call_is_named, set_up),
        cmocka_unit_test_setup(scales_are_powers_of_two, set_up),
        cmocka_unit_test_setup(scales_are_found_of_what_is_there, set_up),
        cmocka_unit_test_setup(short_forms_differ_in_their_sums, set_up),
        cmocka_unit_test_setup(short_form_checks_too, set_up),
        cmocka_unit_test_setup(leading_dimensions_follow_layout_and_op, set_up),
        cmocka_unit_test_setup(operands_are_not_read_without_products, set_up),
        cmocka_unit_test_setup(null_handles_are_found, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
