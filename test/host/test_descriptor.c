/* SPDX-License-Identifier: MIT */
/*
 * How a descriptor is read, on a device that only records: its size and defaults, layouts, batches, bias and scales,
 * and the short forms that fill one in.
 */
#include "fixture.h"

#include <math.h>
#include <string.h>

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
    const problem_t row_major = normalise(&desc);
    const kernel_args_t *product = &row_major.product;
    assert_false(row_major.is_idle || row_major.is_col_major || row_major.is_indirect);
    assert_true(row_major.m == 16 && row_major.n == 8 && row_major.k == 24);
    assert_int_equal(row_major.op, 2); /* tn */
    assert_true(row_major.a.data == desc.b && row_major.a.ld == 2 && row_major.a.stride == 7);
    assert_true(row_major.b.data == desc.a && row_major.b.ld == 1 && row_major.b.stride == 6);
    assert_true(row_major.a.type == HGEMM_TYPE_F16 && row_major.b.type == HGEMM_TYPE_BF16);
    assert_true(product->m == 16 && product->n == 8 && product->k == 24);
    assert_true(product->a == desc.b && product->lda == 2 && product->stride_a == 7);
    assert_true(product->b == desc.a && product->ldb == 1 && product->stride_b == 6);
    assert_true(product->c == desc.c && product->ldc == 3 && product->stride_c == 8);
    assert_true(product->d == desc.d && product->ldd == 4 && product->stride_d == 9);
    assert_true(product->gate == desc.gate && product->ldgate == 5 && product->stride_gate == 10);
    assert_true(product->bias == desc.bias && product->stride_bias == 11);
    assert_true(product->alpha_pointer == desc.alpha_pointer && product->beta_pointer == desc.beta_pointer);
    assert_true(row_major.type_d == HGEMM_TYPE_F32 && row_major.type_bias == HGEMM_TYPE_F32);
    assert_true(product->fused & HGEMM_FUSED && product->fused & HGEMM_FUSED_BIAS_PER_ROW);
    assert_int_equal(product->fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK, HGEMM_ACTIVATION_SILU);
    desc.bias_mode = HGEMM_BIAS_PER_ROW;
    assert_false(normalise(&desc).product.fused & HGEMM_FUSED_BIAS_PER_ROW);
    desc.layout = HGEMM_ROW_MAJOR;
    assert_true(normalise(&desc).product.fused & HGEMM_FUSED_BIAS_PER_ROW);
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
            const problem_t p = normalise(&desc);
            const factor_t *x = is_b ? &p.b : &p.a, *other = is_b ? &p.a : &p.b;
            const int64_t rows = is_b ? (op == HGEMM_OP_N ? 24 : 16) : op == HGEMM_OP_N ? 8 : 24;
            const int turned = is_b ? 1 : 2;
            assert_int_equal(p.op, ops ^ turned);
            assert_true(x->ld == rows && x->width == rows && x->lines == 1 && other->ld == 32);

            *(is_b ? &desc.ldb : &desc.lda) = 2; /* there are gaps */
            assert_int_equal(normalise(&desc).op, ops);
            *(is_b ? &desc.ldb : &desc.lda) = 1;
            desc.kernel = 1;
            assert_int_equal(normalise(&desc).op, ops);
            desc.kernel = HGEMM_KERNEL_AUTO, desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
            assert_int_equal(normalise(&desc).op, ops);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_descriptor_of_the_old_size_is_understood, set_up),
        cmocka_unit_test_setup(a_new_descriptor_is_plain, set_up),
        cmocka_unit_test_setup(column_major_is_the_transpose, set_up),
        cmocka_unit_test_setup(a_column_is_laid_along, set_up),
        cmocka_unit_test_setup(a_bias_has_a_value_for_each_row_or_column, set_up),
        cmocka_unit_test_setup(batch_modes_say_where_matrices_are, set_up),
        cmocka_unit_test_setup(scales_are_powers_of_two, set_up),
        cmocka_unit_test_setup(scales_are_found_of_what_is_there, set_up),
        cmocka_unit_test_setup(short_forms_differ_in_their_sums, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
