/* SPDX-License-Identifier: MIT */
/*
 * Weights of 4 and 8 bits: what is packed comes back, and products of it are those of the numbers that it stands for,
 * by the contract's bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "problem/names.h"
#include "problem/types.h"
#include "weights_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

/* Packs on the device, between guards; the caller takes the memory away. */
static void *pack_on_device(const given_t *w, uint8_t *packed, size_t bytes)
{
    uint8_t *const guarded = test_calloc(bytes + 2 * WEIGHTS_GUARD, 1);
    memset(guarded, 0xa5, bytes + 2 * WEIGHTS_GUARD);
    uint8_t *const device = weights_place(handle, guarded, (int64_t)bytes + 2 * WEIGHTS_GUARD);
    void *const codes = weights_place(handle, w->codes, w->code_bytes), *const zeros = weights_place(handle, w->zeros,
                                                                                                     w->zero_bytes);
    void *const scales =
        weights_place(handle, w->scales, w->scale_count * (w->of.type_scale == HGEMM_TYPE_F32 ? 4 : 2));
    expect_status(handle, hgemm_pack_weights(handle, &w->of, codes, scales, zeros, device + WEIGHTS_GUARD),
                  HGEMM_STATUS_SUCCESS, "hgemm_pack_weights");
    expect_status(handle, hgemm_download(handle, guarded, device, bytes + 2 * WEIGHTS_GUARD), HGEMM_STATUS_SUCCESS,
                  "hgemm_download");
    for (int i = 0; i < WEIGHTS_GUARD; i++)
        if (guarded[i] != 0xa5 || guarded[WEIGHTS_GUARD + bytes + (size_t)i] != 0xa5)
            fail_msg("packing wrote outside of the packed form");
    memcpy(packed, guarded + WEIGHTS_GUARD, bytes);
    weights_take_away(handle, codes), weights_take_away(handle, scales), weights_take_away(handle, zeros);
    test_free(guarded);
    return device;
}

/* Packed on the host and on the device: the same bytes. Unpacked on both, each element is the one number next to it:
 * of all columns, or of some, in rows that are aligned or not. */
static void round_trip(const given_t *w)
{
    static int turn;
    const int64_t n = w->of.n, k = w->of.k, begin = k / 3 / 8 * 8;
    const struct {
        int64_t first, count, ld;
    } ranges[] = {{0, k, k + 3},
                  {0, k, (k + 7) / 8 * 8},
                  {begin, k - begin - k / 5, (k + 7) / 8 * 8},
                  {k / 2, k - k / 2, k}},
      range = ranges[turn++ % 4];
    const int64_t first = range.first, count = range.count, ld = range.ld;
    const size_t bytes = weights_packed_bytes(&w->of);
    uint8_t *const here = test_calloc(bytes, 1), *const there = test_calloc(bytes, 1);
    memset(here, 0x5a, bytes);
    expect_status(NULL, hgemm_pack_weights(NULL, &w->of, w->codes, w->scales, w->zeros, here), HGEMM_STATUS_SUCCESS,
                  "hgemm_pack_weights on the host");
    uint8_t *const device = pack_on_device(w, there, bytes);
    const size_t used = bytes - 127; /* what fills the last line is not written */
    if (memcmp(here, there, used) != 0)
        fail_msg("host and device pack otherwise");
    for (hgemm_type_t type = HGEMM_TYPE_F16; type <= HGEMM_TYPE_BF16; type++) {
        const int64_t size = type == HGEMM_TYPE_F32 ? 4 : 2;
        uint8_t *const host = test_calloc((size_t)(n * ld), (size_t)size), *const got = test_calloc((size_t)(n * ld),
                                                                                                    (size_t)size);
        memset(host, 0x77, (size_t)(n * ld * size));
        uint8_t *const matrix = weights_place(handle, host, n * ld * size);
        expect_status(NULL, hgemm_unpack_weights(NULL, &w->of, here, first, count, type, host, ld),
                      HGEMM_STATUS_SUCCESS, "hgemm_unpack_weights on the host");
        expect_status(handle,
                      hgemm_unpack_weights(handle, &w->of, device + WEIGHTS_GUARD, first, count, type, matrix, ld),
                      HGEMM_STATUS_SUCCESS, "hgemm_unpack_weights");
        expect_status(handle, hgemm_download(handle, got, matrix, (size_t)(n * ld * size)), HGEMM_STATUS_SUCCESS,
                      "hgemm_download");
        for (int64_t i = 0; i < n * ld; i++)
            if (memcmp(&host[i * size], &got[i * size], (size_t)size) != 0 &&
                !(isnan(number_of(type, host, i)) && isnan(number_of(type, got, i))))
                fail_msg("host and device unpack otherwise");
        const double units = type == HGEMM_TYPE_F32 ? 0x1p-24 : type == HGEMM_TYPE_F16 ? 0x1.004p-11 : 0x1.01p-8;
        for (int64_t row = 0; row < n; row++)
            for (int64_t i = 0; i < ld; i++) {
                const double x = number_of(type, got, row * ld + i),
                             want = i < count ? w->element[row * k + first + i] : 0;
                if (i < count ? !(fabs(x - want) <= units * fabs(want)) && !(isnan(x) && isnan(want))
                              : memcmp(&got[(row * ld + i) * size], "\x77\x77\x77\x77", (size_t)size) != 0)
                    fail_msg("element (%d, %d), as type %d, is %g, want %g", (int)row, (int)i, (int)type, x, want);
            }
        weights_take_away(handle, matrix);
        test_free(host), test_free(got);
    }
    weights_take_away(handle, device);
    test_free(here), test_free(there);
}

static void packed_weights_come_back(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 2}, {32, 128}, {40, 72}, {33, 300}, {7, 18}};
    for (int kind = 0; kind < WEIGHTS_KINDS; kind++)
        for (int g = 0; g < WEIGHTS_GROUPS; g++) {
            const int64_t *const shape = shapes[(kind + g) % 5];
            given_t w = weights_give(&rng, weights_kinds[kind].code, weights_kinds[kind].zero,
                                     (hgemm_type_t)((kind + g) % 3), weights_groups[g], shape[0], shape[1], 0);
            round_trip(&w);
            weights_forget(&w);
        }
}

/* A NaN among codes makes its group's scale one. */
static void nan_codes_make_their_group_nan(void **state)
{
    (void)state;
    given_t w = weights_give(&rng, HGEMM_CODE_E4M3, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 32, 5, 100, 0);
    w.codes[3 * 100 + 70] = 0xff;
    for (int64_t k = 64; k < 96; k++)
        w.element[3 * 100 + k] = NAN;
    round_trip(&w);
    weights_forget(&w);
}

static void bad_weights_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        hgemm_weights_t of;
    } bad[] = {
        {"size", {.size = 8, .n = 8, .k = 8}},
        {"code is 6", {.n = 8, .k = 8, .code = (hgemm_code_t)6}},
        {"zero is 3", {.n = 8, .k = 8, .zero = (hgemm_zero_t)3}},
        {"no zeros", {.n = 8, .k = 8, .code = HGEMM_CODE_TABLE16, .zero = HGEMM_ZERO_CODE}},
        {"no zeros", {.n = 8, .k = 8, .code = HGEMM_CODE_E4M3, .zero = HGEMM_ZERO_OFFSET}},
        {"type_scale is 3", {.n = 8, .k = 8, .type_scale = (hgemm_type_t)3}},
        {"group is 48", {.n = 8, .k = 8, .group = 48}},
        {"group is -16", {.n = 8, .k = 8, .group = -16}},
        {"n is -1, not from 0 to", {.n = -1, .k = 8}},
        {"n is 2147483647", {.n = INT32_MAX, .k = 8}},
        {"k is -2", {.n = 8, .k = -2}},
        {"k is 1073741824", {.n = 8, .k = 1 << 30}},
        {"k is 7", {.n = 8, .k = 7}},
        {"table[3]", {.n = 8, .k = 8, .code = HGEMM_CODE_TABLE16, .table = {0, 0, 0, 0x7c00}}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hgemm_weights_t of = bad[i].of;
        size_t bytes = 77;
        uint8_t packed[16] = {0};
        if (of.size == 0)
            of.size = sizeof of;
        expect_status(NULL, hgemm_weights_bytes(&of, &bytes), HGEMM_STATUS_INVALID_WEIGHTS, bad[i].word);
        if (bytes != 77 || !strstr(hgemm_error_detail(NULL), bad[i].word))
            fail_msg("the words \"%s\" do not have \"%s\"", hgemm_error_detail(NULL), bad[i].word);
        expect_status(handle, hgemm_pack_weights(handle, &of, packed, packed, packed, packed),
                      HGEMM_STATUS_INVALID_WEIGHTS, bad[i].word);
        assert_non_null(strstr(hgemm_error_detail(handle), bad[i].word));
        expect_status(NULL, hgemm_unpack_weights(NULL, &of, packed, 0, 8, HGEMM_TYPE_F16, packed, 8),
                      HGEMM_STATUS_INVALID_WEIGHTS, bad[i].word);
    }
    hgemm_weights_t of;
    hgemm_weights_init(&of);
    of.n = 4, of.k = 8;
    _Alignas(16) uint8_t x[4096] = {0};
    const struct {
        hgemm_status_t status;
        const char *word;
        const void *codes, *scales;
        void *packed;
    } pointers[] = {{HGEMM_STATUS_NULL_B, "codes", NULL, x, x},
                    {HGEMM_STATUS_NULL_B, "scales", x, NULL, x},
                    {HGEMM_STATUS_MISALIGNED_B, "scales", x, x + 1, x},
                    {HGEMM_STATUS_NULL_D, "packed", x, x, NULL},
                    {HGEMM_STATUS_MISALIGNED_D, "packed", x, x, x + 8}};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        expect_status(NULL,
                      hgemm_pack_weights(NULL, &of, pointers[i].codes, pointers[i].scales, NULL, pointers[i].packed),
                      pointers[i].status, pointers[i].word);
        assert_non_null(strstr(hgemm_error_detail(NULL), pointers[i].word));
    }
    size_t bytes;
    expect_status(NULL, hgemm_weights_bytes(&of, NULL), HGEMM_STATUS_INVALID_HANDLE, "bytes");
    assert_non_null(strstr(hgemm_error_detail(NULL), "bytes is NULL"));
    of.zero = HGEMM_ZERO_CODE;
    expect_status(NULL, hgemm_pack_weights(NULL, &of, x, x, NULL, x), HGEMM_STATUS_NULL_B, "zeros");

    /* What is written overlaps what is read, by a byte, or ends where it begins. */
    expect_status(NULL, hgemm_weights_bytes(&of, &bytes), HGEMM_STATUS_SUCCESS, "hgemm_weights_bytes");
    uint8_t *const packed = x + 1024, *const end = packed + bytes;
    assert_true(end + 128 < x + sizeof x);
    const struct {
        const char *word; /* NULL: is right */
        const uint8_t *codes, *scales, *zeros;
    } overlaps[] = {{"overlaps codes", end - 1, x, x + 64},       {"overlaps codes", packed - 15, x, x + 64},
                    {"overlaps scales", x, end - 2, x + 64},      {"overlaps zeros", x, x + 64, packed - 3},
                    {NULL, packed - 16, packed - 24, packed - 4}, {NULL, end, end + 16, end + 24}};
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
        expect_status(NULL,
                      hgemm_pack_weights(NULL, &of, overlaps[i].codes, overlaps[i].scales, overlaps[i].zeros, packed),
                      overlaps[i].word ? HGEMM_STATUS_OVERLAP : HGEMM_STATUS_SUCCESS, "overlap");
        if (overlaps[i].word && !strstr(hgemm_error_detail(NULL), overlaps[i].word))
            fail_msg("\"%s\" does not say \"%s\"", hgemm_error_detail(NULL), overlaps[i].word);
    }
    of.zero = HGEMM_ZERO_NONE;
    expect_status(NULL, hgemm_weights_bytes(&of, &bytes), HGEMM_STATUS_SUCCESS, "hgemm_weights_bytes");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, packed, 0, 8, HGEMM_TYPE_F32, packed + bytes - 4, 8),
                  HGEMM_STATUS_OVERLAP, "matrix");
    assert_non_null(strstr(hgemm_error_detail(NULL), "matrix, from "));
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, packed, 0, 8, HGEMM_TYPE_F32, packed + bytes, 8),
                  HGEMM_STATUS_SUCCESS, "matrix");
    const hgemm_type_t half = HGEMM_TYPE_F16;
    const int64_t no_columns[][2] = {{0, 9}, {-1, 4}, {4, 5}, {9, 0}, {0, -1}, {8, INT64_MAX}};
    for (int i = 0; i < 6; i++)
        expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, no_columns[i][0], no_columns[i][1], half, x, 9),
                      HGEMM_STATUS_INVALID_K, "first and count");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, 8, 0, half, x, 0), HGEMM_STATUS_SUCCESS, "no columns");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, 0, 8, half, x, 7), HGEMM_STATUS_INVALID_LDD, "ld");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, 0, 8, (hgemm_type_t)3, x, 8), HGEMM_STATUS_INVALID_TYPE,
                  "type");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, NULL, 0, 8, half, x, 8), HGEMM_STATUS_NULL_B, "packed");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, 0, 8, HGEMM_TYPE_F32, x + 2, 8), HGEMM_STATUS_MISALIGNED_D,
                  "matrix");
}

/* ---- Products ------------------------------------------------------------------------------------------------------
 */

/* Of whole numbers and powers of two sums are exact in any order: every kernel, group and kind of integers, and edges.
 */
static void products_of_integers_are_exact(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 128, 128}, {17, 160, 264}, {130, 40, 128}, {5, 136, 648}, {70, 33, 72}};
    int turn = 0;
    for (int kernel = 0; kernel < WEIGHTS_KERNELS; kernel++)
        for (int kind = 0; kind < WEIGHTS_KINDS; kind++) {
            if (code_table[weights_kinds[kind].code].kind != CODES_INTEGER)
                continue;
            const int64_t *const shape = shapes[turn % 5];
            given_t w = weights_give(&rng, weights_kinds[kind].code, weights_kinds[kind].zero, (hgemm_type_t)(turn % 3),
                                     weights_groups[turn % WEIGHTS_GROUPS], shape[1], shape[2], 1);
            const weights_product_t c = {.w = &w,
                                         .m = shape[0],
                                         .kernel = weights_kernel_for(kernel, kind, w.of.group),
                                         .type_d = HGEMM_TYPE_F32,
                                         .is_exact = 1};
            weights_check(handle, &rng, &c, "integers", NULL);
            weights_forget(&w);
            turn++;
        }
}

/* All kinds of codes with all groups and scales, within the contract's bound. */
static void products_are_within_the_bound(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{3, 96, 512}, {33, 72, 392}, {9, 200, 136}, {65, 128, 264}};
    for (int kind = 0; kind < WEIGHTS_KINDS; kind++)
        for (int g = 0; g < WEIGHTS_GROUPS; g++) {
            const int64_t *const shape = shapes[(kind + g) % 4];
            given_t w = weights_give(&rng, weights_kinds[kind].code, weights_kinds[kind].zero,
                                     (hgemm_type_t)((kind + g) % 3), weights_groups[g], shape[1], shape[2], 0);
            const weights_product_t c = {.w = &w,
                                         .m = shape[0],
                                         .kernel =
                                             weights_kernel_for((kind + g) % WEIGHTS_KERNELS, kind, weights_groups[g]),
                                         .type_a = (kind + g) % 4 == 3 ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F16,
                                         .type_d = (hgemm_type_t)(g % 3)};
            weights_check(handle, &rng, &c, "random", NULL);
            weights_forget(&w);
        }
}
/* Every epilogue, batches, groups, indices, unaligned rows, split k and bfloat16, by the same kernels. */
static void products_have_all_that_others_have(void **state)
{
    (void)state;
    given_t w[3];
    for (int e = 0; e < 3; e++)
        w[e] = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_CODE, HGEMM_TYPE_F16, 32, 72, 264, 1);
    given_t coarse = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_CODE, HGEMM_TYPE_F16, 64, 72, 264, 1);
    given_t of_8 = weights_give(&rng, HGEMM_CODE_INT8, HGEMM_ZERO_NONE, HGEMM_TYPE_F32, 128, 136, 640, 1);
    given_t deep = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 128, 128, 1096, 1), experts[4];
    for (int e = 0; e < 4; e++)
        experts[e] = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_CODE, HGEMM_TYPE_F16, 64, 200, 584, 1);
    given_t table = weights_give(&rng, HGEMM_CODE_TABLE16, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 64, 200, 584, 0);
    const weights_product_t calls[] = {
        {.w = &deep,
         .m = 70,
         .splits = 3,
         .kernel = "weights_64x128",
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 70, .kernel = "weights_table_64x128", .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 65, .splits = 3, .kernel = "weights_table_64x128", .has_bias = 1},
        {.w = &table, .m = 80, .kernel = "weights_table_64x128", .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 81, .kernel = "weights_table_64x128", .type_a = HGEMM_TYPE_BF16, .beta = 1},
        {.w = &table, .m = 593, .kernel = "weights_table_64x128"}, /* rows of tiles: eight, one, and a short one */
        {.w = &table, .m = 35, .splits = 2, .kernel = "weights_table_32x128", .type_a = HGEMM_TYPE_BF16},
        {.w = &table,
         .m = 70,
         .kernel = "weights_table_teams_64x128",
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 65, .splits = 2, .kernel = "weights_table_teams_64x128", .has_bias = 1},
        {.w = &table, .m = 48, .kernel = "weights_table_teams_64x128", .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 49, .kernel = "weights_table_teams_64x128", .type_a = HGEMM_TYPE_BF16, .beta = 1},
        {.w = &table, .m = 112, .kernel = "weights_table_teams_64x128", .type_a = HGEMM_TYPE_BF16},
        {.w = w,
         .m = 9,
         .has_bias = 1,
         .activation = HGEMM_ACTIVATION_RELU,
         .is_exact = 1,
         .kernel = weights_kernels[0]},
        {.w = w,
         .m = 40,
         .has_bias = 1,
         .has_gate = 1,
         .beta = 2,
         .alpha = 0.5f,
         .is_exact = 1,
         .kernel = weights_kernels[1]},
        {.w = &coarse, .m = 70, .beta = -1, .type_d = HGEMM_TYPE_F32, .is_exact = 1, .kernel = weights_kernels[2]},
        {.w = &coarse, .m = 70, .has_bias = 1, .activation = HGEMM_ACTIVATION_SILU, .kernel = weights_kernels[2]},
        {.w = w,
         .m = 21,
         .has_gate = 1,
         .activation = HGEMM_ACTIVATION_SILU,
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_BF16},
        {.w = w, .experts = 3, .m = 5, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = w, .experts = 3, .m = 37, .beta = 1, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32},
        {.w = w, .experts = 3, .m = 20, .is_grouped = 1, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = w,
         .experts = 3,
         .m = 90,
         .is_grouped = 1,
         .is_gathered = 1,
         .is_scattered = 1,
         .is_exact = 1,
         .has_bias = 1},
        {.w = w,
         .experts = 3,
         .m = 90,
         .is_grouped = 1,
         .is_gathered = 1,
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = w, .m = 33, .is_gathered = 1, .lda_more = 1, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = w, .m = 33, .shift = 1, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = w, .m = 18, .lda_more = 3, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32},
        {.w = w, .m = 18, .lda_more = 8, .is_exact = 1},
        {.w = &of_8, .m = 7, .splits = 3, .kernel = weights_kernels[0], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 16, .splits = 4, .kernel = weights_kernels[0], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 33, .splits = 2, .kernel = weights_kernels[1], .is_exact = 1, .has_bias = 1},
        {.w = &deep, .m = 65, .splits = 3, .kernel = weights_kernels[2], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 65, .kernel = weights_kernels[3], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 70, .splits = 2, .kernel = weights_kernels[3], .is_exact = 1, .has_bias = 1},
        {.w = &of_8,
         .m = 40,
         .splits = 3,
         .kernel = weights_kernels[3],
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 3, .is_exact = 1},
        {.w = experts,
         .experts = 4,
         .m = 45,
         .is_grouped = 1,
         .is_gathered = 1,
         .is_scattered = 1,
         .beta = 2,
         .has_bias = 1,
         .splits = 4,
         .kernel = weights_kernels[0],
         .is_exact = 1,
         .type_d = HGEMM_TYPE_F32},
        {.w = experts,
         .experts = 4,
         .m = 45,
         .is_grouped = 1,
         .splits = 3,
         .whole = 3,
         .kernel = weights_kernels[0],
         .is_exact = 1},
        {.w = experts,
         .experts = 4,
         .m = 75,
         .is_grouped = 1,
         .is_gathered = 1,
         .splits = 4,
         .whole = 2,
         .kernel = weights_kernels[1],
         .is_exact = 1,
         .has_gate = 1,
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = experts,
         .m = 19,
         .is_gathered = 1,
         .splits = 2,
         .whole = 1,
         .kernel = weights_kernels[0],
         .type_d = HGEMM_TYPE_F32},
        {.w = experts, .experts = 4, .m = 2, .is_grouped = 1, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "call %d", (int)i);
        weights_check(handle, &rng, &calls[i], what, NULL);
    }
    for (int e = 0; e < 3; e++)
        weights_forget(&w[e]);
    for (int e = 0; e < 4; e++)
        weights_forget(&experts[e]);
    weights_forget(&of_8), weights_forget(&deep), weights_forget(&coarse), weights_forget(&table);
}

/* Numbers that no half holds, and sums that none would. */
static void large_activations_stay_finite(void **state)
{
    (void)state;
    given_t w = weights_give(&rng, HGEMM_CODE_UINT4, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 128, 64, 512, 0);
    const weights_product_t calls[] = {
        {.w = &w, .m = 4, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_BF16, .size = 8e5f},
        {.w = &w, .m = 70, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32, .size = 8e5f},
        {.w = &w, .m = 4, .type_d = HGEMM_TYPE_F32, .size = 6e4f}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        weights_check(handle, &rng, &calls[i], "large", NULL);
    weights_forget(&w);
}

/* Elements of A in bfloat16 of which no scale serves all: their row is right, and so are all others. The last call's
 * scale is found in a sample. */
static void an_outlier_spoils_no_row(void **state)
{
    (void)state;
    for (int kind = 0; kind < WEIGHTS_KINDS; kind++) {
        given_t w[3];
        for (int e = 0; e < 3; e++)
            w[e] = weights_give(&rng, weights_kinds[kind].code, weights_kinds[kind].zero, (hgemm_type_t)(kind % 3),
                                weights_groups[kind % WEIGHTS_GROUPS], 70, 138, 0);
        const weights_product_t calls[] = {
            {.w = w, .m = 5, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32, .outlier = 1e6f},
            {.w = w, .m = 70, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_BF16, .outlier = -1e20f},
            {.w = w, .m = 1, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32, .outlier = 1e30f, .shift = 1},
            {.w = w,
             .experts = 3,
             .m = 33,
             .type_a = HGEMM_TYPE_BF16,
             .type_d = HGEMM_TYPE_F32,
             .outlier = 1e9f,
             .has_bias = 1,
             .has_gate = 1,
             .alpha = 0.5f}};
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
            weights_check(handle, &rng, &calls[i], "outlier", NULL);
        for (int e = 0; e < 3; e++)
            weights_forget(&w[e]);
    }
    given_t w = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 128, 16, 1024, 0);
    const weights_product_t large = {
        .w = &w, .m = 600, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32, .outlier = 1e20f};
    weights_check(handle, &rng, &large, "outlier beside a sample", NULL);
    weights_forget(&w);
}

/* A row's bits are those that it has alone, after any activation. */
static void rows_do_not_depend_on_others(void **state)
{
    (void)state;
    enum { COLUMNS = 199 };
    given_t w = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_CODE, HGEMM_TYPE_F16, 64, COLUMNS, 392, 0);
    static uint8_t bits[3][80 * COLUMNS * 4];
    static const int64_t rows[] = {1, 20, 80};
    for (int activation = HGEMM_ACTIVATION_NONE; activation < ACTIVATION_COUNT; activation++) {
        for (int i = 0; i < 3; i++) {
            const weights_product_t c = {.w = &w,
                                         .m = rows[i],
                                         .type_d = HGEMM_TYPE_F32,
                                         .activation = (hgemm_activation_t)activation,
                                         .flags = HGEMM_FLAG_BATCH_INVARIANT};
            rng.state = 5; /* the same rows */
            weights_check(handle, &rng, &c, "invariant", bits[i]);
        }
        assert_memory_equal(bits[0], bits[1], COLUMNS * 4);
        assert_memory_equal(bits[1], bits[2], 20 * COLUMNS * 4);
    }
    weights_forget(&w);
}

static void what_no_kernel_does_is_refused(void **state)
{
    (void)state;
    hgemm_weights_t of;
    hgemm_weights_init(&of);
    of.n = 64, of.k = 128, of.group = 128;
    hgemm_desc_t plain;
    hgemm_desc_init(&plain);
    plain.op_b = HGEMM_OP_T, plain.accumulate = HGEMM_ACCUMULATE_F32;
    plain.m = 8, plain.n = 64, plain.k = 128;
    plain.a = (void *)4096, plain.lda = 128, plain.b = (void *)65536, plain.d = (void *)1048576, plain.ldd = 64;
    plain.weights = &of;
    int kernel;
    expect_status(NULL, hgemm_select(&plain, &kernel), HGEMM_STATUS_SUCCESS, "hgemm_select");
    hgemm_desc_t calls[9];
    static const struct {
        hgemm_status_t status;
        const char *word;
    } wanted[9] = {{HGEMM_STATUS_NOT_SUPPORTED, "column-major"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "op_b"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "op_a"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_ACCUMULATE_F16"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "64 by 128"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "group is 5"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "stride_b is 8"},
                   {HGEMM_STATUS_MISALIGNED_B, "multiple of 16"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "B of packed int4."}};
    for (int i = 0; i < 9; i++)
        calls[i] = plain;
    hgemm_weights_t bad = of;
    bad.group = 5;
    calls[0].layout = HGEMM_COL_MAJOR, calls[0].op_b = HGEMM_OP_N, calls[0].lda = 8, calls[0].ldd = 8;
    calls[1].op_b = HGEMM_OP_N;
    calls[2].op_a = HGEMM_OP_T, calls[2].lda = 8;
    calls[3].accumulate = HGEMM_ACCUMULATE_F16;
    calls[4].n = 32;
    calls[5].weights = &bad;
    calls[6].batch = 2, calls[6].stride_b = 8, calls[6].stride_d = 512;
    calls[7].b = (void *)(65536 + 8);
    calls[8].kernel = hgemm_find_kernel("weights_table_32x128");
    for (int i = 0; i < 9; i++) {
        expect_status(NULL, hgemm_select(&calls[i], &kernel), wanted[i].status, wanted[i].word);
        if (!strstr(hgemm_error_detail(NULL), wanted[i].word))
            fail_msg("\"%s\" does not say \"%s\"", hgemm_error_detail(NULL), wanted[i].word);
    }
    size_t bytes; /* D begins in the last byte of the second of two experts' weights, or behind it */
    expect_status(NULL, hgemm_weights_bytes(&of, &bytes), HGEMM_STATUS_SUCCESS, "hgemm_weights_bytes");
    calls[0] = plain;
    calls[0].batch = 2, calls[0].stride_b = (int64_t)bytes + 64, calls[0].stride_d = 512;
    calls[0].d = (void *)(65536 + 2 * bytes + 64 - 2);
    expect_status(handle, hgemm_run_desc(handle, &calls[0]), HGEMM_STATUS_OVERLAP, "D in the weights");
    assert_non_null(strstr(hgemm_error_detail(handle), "overlaps B"));
    plain.type_a = HGEMM_TYPE_F32;
    expect_status(NULL, hgemm_select(&plain, &kernel), HGEMM_STATUS_NOT_SUPPORTED, "A of floats");
    plain.alpha = 0; /* what is not read is not looked at */
    plain.weights = (const hgemm_weights_t *)(const void *)"no weights";
    expect_status(NULL, hgemm_select(&plain, &kernel), HGEMM_STATUS_SUCCESS, "alpha is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_come_back),       cmocka_unit_test(nan_codes_make_their_group_nan),
        cmocka_unit_test(bad_weights_are_refused),        cmocka_unit_test(products_of_integers_are_exact),
        cmocka_unit_test(products_are_within_the_bound),  cmocka_unit_test(products_have_all_that_others_have),
        cmocka_unit_test(large_activations_stay_finite),  cmocka_unit_test(rows_do_not_depend_on_others),
        cmocka_unit_test(what_no_kernel_does_is_refused), cmocka_unit_test(an_outlier_spoils_no_row),
    };
    rng.state = test_seed();
    handle = test_open();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hgemm_destroy(handle);
    return failures;
}
