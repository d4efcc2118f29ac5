/* SPDX-License-Identifier: MIT */
/* D and what a call reads must not share memory: found exactly where that can be, and never overlooked. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "problem/overlap.h"
#include "util.h"

enum { ARENA = 1 << 13 };

static unsigned char arena[ARENA];

/* The bytes of a view, marked from the middle of a map; returns whether one was marked already. */
static int mark(unsigned char map[ARENA], const view_t *view)
{
    int met = 0;
    for (int64_t y = 0; y < view->batch; y++)
        for (int64_t i = 0; i < view->lines; i++)
            for (int64_t j = 0; j < view->bytes * view->width; j++) {
                int64_t at =
                    (const unsigned char *)view->data - arena + j + view->bytes * (y * view->stride + i * view->ld);
                assert_true(at >= 0 && at < ARENA);
                met |= map[at];
                map[at] = 1;
            }
    return met;
}

static int share_memory(const view_t *one, const view_t *other)
{
    static unsigned char maps[2][ARENA];
    memset(maps, 0, sizeof maps);
    mark(maps[0], one);
    mark(maps[1], other);
    for (int i = 0; i < ARENA; i++)
        if (maps[0][i] && maps[1][i])
            return 1;
    return 0;
}

static int shares_with_itself(const view_t *view)
{
    static unsigned char map[ARENA];
    memset(map, 0, sizeof map);
    for (int64_t y = 0; y < view->batch; y++) {
        view_t matrix = *view;
        matrix.data = (const unsigned char *)view->data + view->bytes * y * view->stride;
        matrix.batch = 1;
        if (mark(map, &matrix))
            return 1;
    }
    return 0;
}

static int operands_meet(const view_t *one, const view_t *other)
{
    const area_t area = area_of(one), other_area = area_of(other);
    return areas_meet(&area, &other_area);
}

/* A view somewhere in the middle of the arena. Leading dimension and stride are given in units of 4 bytes. */
static view_t random_view(rng_t *rng, int64_t ld, int64_t stride)
{
    const int bytes = 1 << rng_next(rng) % 3, per_unit = 4 / bytes;
    view_t view = {.bytes = bytes, .lines = rng_between(rng, 1, 5), .batch = rng_between(rng, 1, 4)};
    view.ld = ld * per_unit;
    view.width = rng_between(rng, 1, view.ld < 8 && view.lines > 1 ? view.ld : 8);
    view.stride = rng_next(rng) % 8 ? stride * per_unit : 0;
    view.data = arena + ARENA / 2 + rng_between(rng, -300, 300);
    return view;
}

static void views_that_can_be_compared_are_compared_exactly(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    int met = 0, apart = 0;
    for (int round = 0; round < 20000; round++) {
        const int64_t ld = rng_between(&rng, 1, round % 2 ? 12 : 150), stride = rng_between(&rng, -60, 60);
        view_t one = random_view(&rng, ld, stride), other = random_view(&rng, ld, stride);
        if (other.lines == 1) /* its leading dimension does not matter */
            other.ld = INT64_MAX;
        if (other.batch == 1)
            other.stride = INT64_MIN;
        view_t like = other; /* with values that can be added up */
        like.ld = like.lines == 1 ? like.width : like.ld;
        like.stride = like.batch == 1 ? 0 : like.stride;
        const int expected = share_memory(&one, &like);
        expected ? met++ : apart++;
        if (operands_meet(&one, &other) != expected || operands_meet(&other, &one) != expected)
            fail_msg("round %d: %d lines of %d and %d of %d, ld %d, stride %d, batches %d and %d: %d", round,
                     (int)one.lines, (int)one.width, (int)other.lines, (int)other.width, (int)ld, (int)stride,
                     (int)one.batch, (int)other.batch, expected);
        const area_t area = area_of(&one);
        if (one.batch > 1)
            assert_int_equal(batch_meets_itself(&one, &area), shares_with_itself(&one));
    }
    assert_true(met > 2000 && apart > 2000);
}

static void no_overlap_is_overlooked(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    int allowed = 0;
    for (int round = 0; round < 20000; round++) {
        view_t one = random_view(&rng, rng_between(&rng, 1, 12), rng_between(&rng, -60, 60));
        view_t other = random_view(&rng, rng_between(&rng, 1, 12), rng_between(&rng, -60, 60));
        if (!operands_meet(&one, &other)) {
            allowed++;
            assert_false(share_memory(&one, &other));
        }
    }
    assert_true(allowed > 2000);
}

/* What a call reads beside A, B and C, and a type, so that each has memory of its own. */
static hgemm_desc_t everything(void)
{
    hgemm_desc_t desc = small();
    desc.type_d = HGEMM_TYPE_F32;
    desc.bias = a + 2048, desc.type_bias = HGEMM_TYPE_F32;
    desc.gate = b + 2048, desc.ldgate = 16;
    desc.alpha_pointer = (float *)c + 1024, desc.beta_pointer = (float *)c + 1032;
    return desc;
}

/* D over the last byte of each operand and just behind it: refused by its name, and allowed. */
static void d_keeps_apart_from_every_operand(void **state)
{
    (void)state;
    const struct {
        const char *name;
        size_t offset; /* of the pointer in the descriptor */
        size_t bytes;
    } operands[] = {
        {"overlaps A,", offsetof(hgemm_desc_t, a), 8 * 24 * 2},
        {"overlaps B,", offsetof(hgemm_desc_t, b), 24 * 16 * 2},
        {"overlaps C,", offsetof(hgemm_desc_t, c), 8 * 16 * 2},
        {"overlaps bias,", offsetof(hgemm_desc_t, bias), 16 * 4},
        {"overlaps gate,", offsetof(hgemm_desc_t, gate), 8 * 16 * 2},
        {"overlaps alpha,", offsetof(hgemm_desc_t, alpha_pointer), 4},
        {"overlaps beta,", offsetof(hgemm_desc_t, beta_pointer), 4},
        {"overlaps group_ends,", offsetof(hgemm_desc_t, group_ends), 3 * 8},
        {"overlaps gather_a,", offsetof(hgemm_desc_t, gather_a), 8 * 8},
    };
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++)
        for (int before = 0; before < 2; before++) {
            hgemm_desc_t desc = everything();
            desc.index_type = HGEMM_INDEX_I64;
            if (operands[i].offset == offsetof(hgemm_desc_t, group_ends)) {
                desc.batch_mode = HGEMM_BATCH_GROUPED, desc.batch = 3;
                desc.stride_b = 384;
            }
            uintptr_t d_bytes = 8 * 16 * 4;
            uintptr_t begin = (uintptr_t)elsewhere(0), bytes = before ? (uintptr_t)0 - d_bytes : operands[i].bytes;
            desc.d = (void *)(begin + bytes);
            memcpy((char *)&desc + operands[i].offset, &begin, sizeof begin);
            assert_valid(&desc);
            desc.d = (void *)(begin + bytes + (before ? 4 : (uintptr_t)0 - 4));
            assert_refused(&desc, HGEMM_STATUS_OVERLAP, operands[i].name);
        }
}

/* The same addresses, as often called by mistake: a square product in place. */
static void products_in_place_are_refused(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        hgemm_desc_t desc = small();
        desc.layout = (hgemm_layout_t)(bits & 1), desc.op_a = (hgemm_op_t)(bits >> 1 & 1);
        desc.op_b = (hgemm_op_t)(bits >> 2 & 1);
        desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 40;
        desc.d = d;
        *(bits & 8 ? &desc.b : &desc.a) = d;
        assert_refused(&desc, HGEMM_STATUS_OVERLAP, bits & 8 ? "overlaps B" : "overlaps A");
        desc.alpha = 0; /* neither is read */
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
        fake.loads = 0;
    }
    assert_status(hgemm_run(&handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 40, 40, 40, 1, d, 40, b, 40, 0, d, 40),
                  HGEMM_STATUS_OVERLAP);
}

/* Columns of one matrix: A, B, C and D side by side, in batches too. */
static void columns_of_one_matrix_are_apart(void **state)
{
    (void)state;
    for (int batch = 1; batch <= 2; batch++)
        for (int layout = 0; layout < 2; layout++) {
            hgemm_desc_t desc = small();
            desc.layout = (hgemm_layout_t)layout;
            desc.m = desc.n = desc.k = 8, desc.batch = batch;
            desc.lda = desc.ldb = desc.ldc = desc.ldd = 32;
            desc.stride_a = desc.stride_b = desc.stride_c = desc.stride_d = 256;
            uint16_t *data = elsewhere(0);
            desc.a = data, desc.b = data + 8, desc.c = data + 16, desc.d = data + 24;
            assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
            desc.d = data + 15;
            assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
            desc.d = data + 23;
            assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
            desc.d = data + 25; /* comes around to the next row of A */
            assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
        }
}

/* D may be C if type, leading dimension and stride are C's. */
static void d_is_c_only_as_a_whole(void **state)
{
    (void)state;
    hgemm_desc_t desc = small();
    desc.c = d;
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    fake.loads = 0;
    desc.ldd = 17;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps C");
    desc = small(), desc.c = d, desc.type_d = HGEMM_TYPE_F32;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps C");
    desc = small(), desc.c = d, desc.batch = 2, desc.stride_d = 128, desc.stride_c = 256;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps C");
    desc.stride_d = 0, desc.stride_c = 0;
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "stride_d is 0");
    desc = small(), desc.gate = d, desc.ldgate = 16; /* nothing else may be D */
    assert_refused(&desc, HGEMM_STATUS_OVERLAP, "overlaps gate");
}

/* What the host cannot know is not guessed. */
static void memory_behind_pointers_and_indices_is_not_compared(void **state)
{
    (void)state;
    static const int32_t indices[8] = {0};
    hgemm_desc_t desc = small();
    desc.batch_mode = HGEMM_BATCH_POINTERS, desc.a = d;
    assert_valid(&desc);
    desc = small(), desc.gather_a = indices, desc.a = d;
    assert_valid(&desc);
    desc = small(), desc.scatter_d = indices, desc.a = d;
    assert_valid(&desc);
}

/* However many matrices lie between the rows of one another. */
static void matrices_of_a_batch_may_interleave(void **state)
{
    (void)state;
    fake.compute = 0;
    for (int64_t batch = 3; batch < INT64_C(1) << 40; batch *= 5) {
        hgemm_desc_t desc = small();
        desc.m = 3, desc.n = 2, desc.k = 0;
        desc.batch = batch, desc.stride_c = desc.stride_d = -2;
        desc.ldc = desc.ldd = 2 * batch;
        desc.d = (void *)((uintptr_t)1 << 46);     /* strides lead down from there */
        desc.c = (char *)desc.d + 2 * (6 * batch); /* past all rows, which leave no gap */
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
        desc.c = (const char *)desc.c - 2;
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
        desc.beta = 0;
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
        desc.ldd--; /* the last one's second row then begins in the first one's first */
        assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
    }
}

/* Without a common leading dimension ranges of addresses decide, to the element. */
static void neighbours_are_apart(void **state)
{
    (void)state;
    fake.compute = 0;
    hgemm_desc_t desc = small(); /* adjacent, to the element */
    desc.ldd = 40, desc.c = c, desc.d = c + 8 * 16;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.d = c + 8 * 16 - 1;
    assert_status(hgemm_run_desc(&handle, &desc), HGEMM_STATUS_OVERLAP);
    desc = small(); /* as many candidates as a batch has; rows of C and of D take turns */
    desc.m = 2, desc.n = 1, desc.ldc = desc.ldd = INT64_C(1) << 50;
    desc.batch = INT64_C(1) << 49, desc.stride_c = desc.stride_d = 1;
    desc.d = (void *)(desc.batch * 2 + (intptr_t)desc.c);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_SUCCESS);
    desc.d = (void *)(desc.batch * 2 + (intptr_t)desc.c - 2);
    assert_status(hgemm_prepare(&handle, &desc), HGEMM_STATUS_OVERLAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(views_that_can_be_compared_are_compared_exactly, set_up),
        cmocka_unit_test_setup(no_overlap_is_overlooked, set_up),
        cmocka_unit_test_setup(d_keeps_apart_from_every_operand, set_up),
        cmocka_unit_test_setup(products_in_place_are_refused, set_up),
        cmocka_unit_test_setup(columns_of_one_matrix_are_apart, set_up),
        cmocka_unit_test_setup(d_is_c_only_as_a_whole, set_up),
        cmocka_unit_test_setup(memory_behind_pointers_and_indices_is_not_compared, set_up),
        cmocka_unit_test_setup(matrices_of_a_batch_may_interleave, set_up),
        cmocka_unit_test_setup(neighbours_are_apart, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
