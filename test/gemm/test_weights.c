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

#include "error_model.h"
#include "weights_given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

static void *place(const void *host, int64_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, (size_t)bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, (size_t)bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

static void take_away(void *device)
{
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

static size_t packed_bytes(const hgemm_weights_t *of)
{
    size_t bytes = 0;
    expect_status(NULL, hgemm_weights_bytes(of, &bytes), HGEMM_STATUS_SUCCESS, "hgemm_weights_bytes");
    assert_int_equal(bytes % 128, 0);
    return bytes;
}

enum { GUARD = 256 };

/* Packs on the device, between guards; the caller takes the memory away. */
static void *pack_on_device(const given_t *w, uint8_t *packed, size_t bytes)
{
    uint8_t *const guarded = test_calloc(bytes + 2 * GUARD, 1);
    memset(guarded, 0xa5, bytes + 2 * GUARD);
    uint8_t *const device = place(guarded, (int64_t)bytes + 2 * GUARD);
    void *const codes = place(w->codes, w->code_bytes), *const zeros = place(w->zeros, w->zero_bytes);
    void *const scales = place(w->scales, w->scale_count * (w->of.type_scale == HGEMM_TYPE_F32 ? 4 : 2));
    expect_status(handle, hgemm_pack_weights(handle, &w->of, codes, scales, zeros, device + GUARD),
                  HGEMM_STATUS_SUCCESS, "hgemm_pack_weights");
    expect_status(handle, hgemm_download(handle, guarded, device, bytes + 2 * GUARD), HGEMM_STATUS_SUCCESS,
                  "hgemm_download");
    for (int i = 0; i < GUARD; i++)
        if (guarded[i] != 0xa5 || guarded[GUARD + bytes + (size_t)i] != 0xa5)
            fail_msg("packing wrote outside of the packed form");
    memcpy(packed, guarded + GUARD, bytes);
    take_away(codes), take_away(scales), take_away(zeros);
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
    const size_t bytes = packed_bytes(&w->of);
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
        uint8_t *const matrix = place(host, n * ld * size);
        expect_status(NULL, hgemm_unpack_weights(NULL, &w->of, here, first, count, type, host, ld),
                      HGEMM_STATUS_SUCCESS, "hgemm_unpack_weights on the host");
        expect_status(handle, hgemm_unpack_weights(handle, &w->of, device + GUARD, first, count, type, matrix, ld),
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
        take_away(matrix);
        test_free(host), test_free(got);
    }
    take_away(device);
    test_free(here), test_free(there);
}

/* Kinds of codes and zeros that go together. */
static const struct {
    hgemm_code_t code;
    hgemm_zero_t zero;
} kinds[] = {
    {HGEMM_CODE_INT4, HGEMM_ZERO_NONE},    {HGEMM_CODE_INT4, HGEMM_ZERO_CODE},  {HGEMM_CODE_INT4, HGEMM_ZERO_OFFSET},
    {HGEMM_CODE_UINT4, HGEMM_ZERO_NONE},   {HGEMM_CODE_UINT4, HGEMM_ZERO_CODE}, {HGEMM_CODE_UINT4, HGEMM_ZERO_OFFSET},
    {HGEMM_CODE_INT8, HGEMM_ZERO_NONE},    {HGEMM_CODE_INT8, HGEMM_ZERO_CODE},  {HGEMM_CODE_INT8, HGEMM_ZERO_OFFSET},
    {HGEMM_CODE_UINT8, HGEMM_ZERO_NONE},   {HGEMM_CODE_UINT8, HGEMM_ZERO_CODE}, {HGEMM_CODE_UINT8, HGEMM_ZERO_OFFSET},
    {HGEMM_CODE_TABLE16, HGEMM_ZERO_NONE}, {HGEMM_CODE_E4M3, HGEMM_ZERO_NONE}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
static const int every_group[] = {16, 32, 64, 128, 256, 0};
enum { GROUPS = sizeof every_group / sizeof every_group[0] };

static void packed_weights_come_back(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 2}, {32, 128}, {40, 72}, {33, 300}, {7, 18}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int g = 0; g < GROUPS; g++) {
            const int64_t *const shape = shapes[(kind + g) % 5];
            given_t w = weights_give(&rng, kinds[kind].code, kinds[kind].zero, (hgemm_type_t)((kind + g) % 3),
                                     every_group[g], shape[0], shape[1], 0);
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
        {"n is -1", {.n = -1, .k = 8}},
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

/* A call: W and what else it has. What is 0 is as plain as can be. */
typedef struct product_t {
    const given_t *w; /* of each matrix of a batch, or group, one after the other */
    int experts;      /* how many, 0: one */
    int64_t m;
    const char *kernel; /* NULL: automatic */
    hgemm_type_t type_a, type_d;
    int lda_more, shift; /* elements by which rows of A are longer, and A begins later */
    int is_exact;
    int is_grouped, is_gathered, is_scattered;
    int splits; /* 0: as chosen. Of tiles from number `whole` on */
    int whole;
    float alpha, beta;
    int has_bias, has_gate;
    hgemm_bias_t bias_mode;
    hgemm_type_t type_other; /* of bias and gate */
    hgemm_activation_t activation;
    unsigned flags;
    float size;                              /* of elements of A; 0: 1 */
    int is_shared;                           /* a batch by one matrix */
    int has_scalars_there, has_wide_indices; /* alpha and beta in device memory; indices of 64 bits */
    int has_pointers;                        /* a batch of pointers */
} product_t;

static float number_near(hgemm_type_t type, float x)
{
    uint16_t bits[2];
    put_number(type, bits, 0, x);
    return type == HGEMM_TYPE_F32 ? x : (float)number_of(type, bits, 0);
}

/* `count` device pointers, `stride` bytes apart, in device memory. */
static void *place_pointers(const void *first, int64_t stride, int64_t count)
{
    const void **const pointers = test_calloc((size_t)count, sizeof *pointers);
    for (int64_t i = 0; i < count; i++)
        pointers[i] = (const char *)first + i * stride;
    void *const device = place(pointers, count * (int64_t)sizeof *pointers);
    test_free(pointers);
    return device;
}

static void *place_indices(const int32_t *indices, int64_t count, int is_wide)
{
    int64_t *const wide = test_calloc((size_t)count, sizeof *wide);
    for (int64_t i = 0; i < count; i++)
        wide[i] = indices[i];
    void *const device = is_wide ? place(wide, count * 8) : place(indices, count * 4);
    test_free(wide);
    return device;
}

/* Runs the call on poisoned, guarded memory, and compares every element with double precision. Leaves D's bits in
 * `bits` where that is not NULL. */
static void check(const product_t *c, const char *what, uint8_t *bits)
{
    const given_t *const w = c->w;
    const int64_t experts = c->experts ? c->experts : 1, batch = c->is_grouped ? 1 : experts, m = c->m;
    const int64_t n = w->of.n, k = w->of.k, lda = k + c->lda_more, rows = m * batch, ldd = n + 8;
    const int64_t size_a = c->type_a == HGEMM_TYPE_F32 ? 4 : 2, size_d = c->type_d == HGEMM_TYPE_F32 ? 4 : 2;
    const int64_t bytes_a = (rows * lda + c->shift) * size_a, bytes_d = rows * ldd * size_d;
    uint8_t *const a = test_calloc((size_t)bytes_a, 1), *const before = test_calloc((size_t)bytes_d + 2 * GUARD, 1);
    uint8_t *const after = test_calloc((size_t)bytes_d + 2 * GUARD, 1);
    const int64_t biases = c->bias_mode == HGEMM_BIAS_PER_ROW ? m : n;
    const int64_t size_other = c->type_other == HGEMM_TYPE_F32 ? 4 : 2;
    float *const bias = test_calloc((size_t)biases, 4), *const gate = test_calloc((size_t)(rows * n), 4);
    int32_t *const ends = test_calloc((size_t)experts, 4), *const gather = test_calloc((size_t)m, 4);
    int32_t *const scatter = test_calloc((size_t)m, 4);
    const size_t packed_size = packed_bytes(&w->of);
    uint8_t *const packed = test_calloc(packed_size * (size_t)experts, 1);
    for (int64_t e = 0; e < experts; e++)
        expect_status(
            NULL,
            hgemm_pack_weights(NULL, &w[e].of, w[e].codes, w[e].scales, w[e].zeros, packed + (size_t)e * packed_size),
            HGEMM_STATUS_SUCCESS, "hgemm_pack_weights");
    memset(a, 0xff, (size_t)bytes_a); /* NaN, between rows */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < k; l++) {
            const float x =
                c->is_exact ? (float)rng_between(&rng, -4, 4) : (float)rng_symmetric(&rng) * (c->size ? c->size : 1);
            put_number(c->type_a, a, c->shift + i * lda + l, x);
        }
    for (int64_t i = 0; i < bytes_d + 2 * GUARD; i++)
        before[i] = 0xfe;
    for (int64_t i = 0; i < rows && c->beta != 0; i++)
        for (int64_t j = 0; j < n; j++)
            put_number(c->type_d, before + GUARD, i * ldd + j, (float)rng_between(&rng, -8, 8));
    for (int64_t j = 0; j < biases; j++) /* whole numbers, which they are in every type */
        put_number(c->type_other, bias, j, (float)rng_between(&rng, -8, 8));
    for (int64_t i = 0; i < rows * n; i++)
        put_number(c->type_other, gate, i, (float)rng_between(&rng, -2, 2));
    for (int64_t i = 0; i < m; i++)
        gather[i] = (int32_t)rng_between(&rng, 0, m - 1), scatter[i] = (int32_t)(m - 1 - i);
    for (int64_t g = 0; g < experts; g++) /* the second one is empty */
        ends[g] = (int32_t)(g == experts - 1 ? m : g < 2 ? m / experts : m * g / experts);

    uint8_t *const device_d = place(before, bytes_d + 2 * GUARD), *const device_a = place(a, bytes_a);
    uint8_t *const device_w = place(packed, (int64_t)packed_size * experts);
    const float scalars[] = {c->alpha ? c->alpha : 1, c->beta};
    void *const others[] = {place(bias, biases * size_other),
                            place(gate, rows * n * size_other),
                            place_indices(ends, experts, c->has_wide_indices),
                            place_indices(gather, m, c->has_wide_indices),
                            place_indices(scatter, m, c->has_wide_indices),
                            place(scalars, sizeof scalars),
                            place_pointers(device_a + c->shift * size_a, m * lda * size_a, experts),
                            place_pointers(device_w, c->is_shared ? 0 : (int64_t)packed_size, experts),
                            place_pointers(device_d + GUARD, m * ldd * size_d, experts)};
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.kernel = c->kernel ? hgemm_find_kernel(c->kernel) : HGEMM_KERNEL_AUTO;
    desc.m = m, desc.n = n, desc.k = k, desc.batch = experts;
    desc.alpha = c->alpha ? c->alpha : 1, desc.beta = c->beta;
    desc.a = device_a + c->shift * size_a, desc.lda = lda, desc.stride_a = m * lda, desc.type_a = c->type_a;
    desc.b = device_w, desc.stride_b = c->is_shared ? 0 : (int64_t)packed_size, desc.weights = &w->of,
    desc.type_b = (hgemm_type_t)77;
    desc.c = desc.d = device_d + GUARD, desc.ldc = desc.ldd = ldd, desc.stride_c = desc.stride_d = m * ldd;
    desc.type_c = desc.type_d = c->type_d;
    desc.activation = c->activation, desc.flags = c->flags;
    if (c->has_bias)
        desc.bias = others[0], desc.type_bias = c->type_other, desc.bias_mode = c->bias_mode;
    if (c->has_gate)
        desc.gate = others[1], desc.type_gate = c->type_other, desc.ldgate = n, desc.stride_gate = m * n;
    if (c->has_scalars_there) {
        desc.alpha_pointer = others[5], desc.beta_pointer = c->beta != 0 ? desc.alpha_pointer + 1 : NULL;
        desc.alpha = NAN, desc.beta = c->beta != 0 ? NAN : 0;
    }
    if (c->has_pointers) {
        desc.batch_mode = HGEMM_BATCH_POINTERS, desc.alignment = (c->shift | c->lda_more) % 8 ? 0 : 16;
        desc.a = others[6], desc.b = others[7], desc.c = desc.d = others[8];
    }
    desc.index_type = c->has_wide_indices ? HGEMM_INDEX_I64 : HGEMM_INDEX_I32;
    if (c->is_grouped)
        desc.batch_mode = HGEMM_BATCH_GROUPED, desc.group_ends = others[2];
    if (c->is_gathered)
        desc.gather_a = others[3];
    if (c->is_scattered)
        desc.scatter_d = others[4];
    if (c->type_a == HGEMM_TYPE_BF16 && (c->is_grouped || c->is_gathered || c->has_pointers || c->flags))
        desc.scale_a = 16;
    hgemm_status_t status;
    if (c->splits) {
        hgemm_plan_t plan;
        char text[HGEMM_PLAN_TEXT], split[HGEMM_PLAN_TEXT + 128];
        expect_status(handle, hgemm_plan_create(&plan, handle, &desc), HGEMM_STATUS_SUCCESS, what);
        expect_status(handle, hgemm_plan_get_text(plan, text), HGEMM_STATUS_SUCCESS, what);
        hgemm_plan_destroy(plan);
        char *words = text;
        while (strstr(words, " | "))
            words = strstr(words, " | ") + 3;
        *words = '\0';
        const int64_t steps = (k + 127) / 128, part = (steps + c->splits - 1) / c->splits * 128;
        snprintf(split, sizeof split, "%s%s nt x16 whole %d splits %d k %d", text, c->kernel, c->whole,
                 (int)((k + part - 1) / part), (int)part);
        status = hgemm_plan_from_text(&plan, handle, &desc, split);
        if (status != HGEMM_STATUS_SUCCESS)
            fail_msg("%s: %s: %s", what, split, hgemm_error_detail(handle));
        expect_status(handle, hgemm_plan_run(plan, handle, &desc), HGEMM_STATUS_SUCCESS, what);
        hgemm_plan_destroy(plan);
    } else {
        expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, what);
    }
    expect_status(handle, hgemm_download(handle, after, device_d, (size_t)bytes_d + 2 * GUARD), HGEMM_STATUS_SUCCESS,
                  what);

    for (int64_t i = 0; i < rows; i++) {
        int64_t expert = c->is_grouped ? 0 : i / m;
        while (c->is_grouped && i >= ends[expert])
            expert++;
        const int64_t row = c->is_scattered ? scatter[i] : i, from = c->is_gathered ? gather[i] : i;
        for (int64_t j = 0; j < n; j++) {
            const given_t *const own = &w[c->is_shared ? 0 : expert];
            double sum = 0, absolute = 0;
            for (int64_t l = 0; l < k; l++) {
                const double x = number_of(c->type_a, a, c->shift + from * lda + l), y = own->element[j * k + l];
                sum += x * y,
                    absolute +=
                    fabs(x) * (fabs(y) + fabs(own->offset[j * own->groups + (w->of.group ? l / w->of.group : 0)]));
            }
            const double alpha = (double)scalars[0];
            double error = c->is_exact ? 0 : (96 + (double)k / 64) * 0x1p-24 * absolute;
            double want = alpha * sum +
                          (c->beta != 0 ? (double)c->beta * number_of(c->type_d, before + GUARD, row * ldd + j) : 0);
            error *= fabs(alpha);
            if (c->has_bias)
                want += number_of(c->type_other, bias, c->bias_mode == HGEMM_BIAS_PER_ROW ? row % m : j);
            error += c->is_exact ? 0 : 0x1p-22 * fabs(want);
            if (!activation_is_exact(c->activation))
                error = activation_error(c->activation, want, error);
            want = activation_value(c->activation, want);
            if (c->has_gate) {
                const double factor = number_of(c->type_other, gate, row * n + j);
                want *= factor, error *= fabs(factor);
            }
            const double got = number_of(c->type_d, after + GUARD, row * ldd + j);
            error += (c->type_d == HGEMM_TYPE_F32   ? 0x1p-24
                      : c->type_d == HGEMM_TYPE_F16 ? 0x1.01p-11
                                                    : 0x1.01p-8) *
                     fabs(want);
            if (c->is_exact ? got != (double)number_near(c->type_d, (float)want) : !(fabs(got - want) <= error))
                fail_msg("%s: %d x %d x %d, codes %d, zeros %d, groups of %d: element (%d, %d) is %.9g, want %.9g "
                         "within %.3g",
                         what, (int)m, (int)n, (int)k, (int)w->of.code, (int)w->of.zero, w->of.group, (int)i, (int)j,
                         got, want, error);
        }
    }
    for (int64_t i = 0; i < bytes_d + 2 * GUARD; i++) {
        const int64_t at = i - GUARD, column = at % (ldd * size_d) / size_d;
        if ((at < 0 || at >= bytes_d || column >= n) && after[i] != 0xfe)
            fail_msg("%s: byte %d, outside of D, was written", what, (int)at);
    }
    if (bits)
        for (int64_t j = 0; j < rows; j++)
            memcpy(bits + j * n * size_d, after + GUARD + j * ldd * size_d, (size_t)(n * size_d));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        take_away(others[i]);
    take_away(device_d), take_away(device_a), take_away(device_w);
    test_free(a), test_free(before), test_free(after), test_free(bias), test_free(gate), test_free(ends),
        test_free(gather);
    test_free(scatter), test_free(packed);
}

static const char *const kernels[] = {"weights_16x128", "weights_32x128", "weights_64x128", NULL};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* Kernel number i of the three, or one for such codes or groups in its place; then the automatic choice. */
static const char *kernel_for(int i, int kind, int group)
{
    const int is_large = kinds[kind].zero != HGEMM_ZERO_OFFSET && (group == 0 || group >= 64);
    if (is_large && kinds[kind].code == HGEMM_CODE_TABLE16 && (i == 1 || i == 2))
        return i == 1 ? "weights_table_32x128" : "weights_table_64x128";
    return kernels[i == 2 && !is_large ? 1 : i];
}

/* Of whole numbers and powers of two sums are exact in any order: every kernel, group and kind of integers, and edges.
 */
static void products_of_integers_are_exact(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 128, 128}, {17, 160, 264}, {130, 40, 128}, {5, 136, 648}, {70, 33, 72}};
    int turn = 0;
    for (int kernel = 0; kernel < KERNELS; kernel++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (kinds[kind].code >= HGEMM_CODE_TABLE16)
                continue;
            const int64_t *const shape = shapes[turn % 5];
            given_t w = weights_give(&rng, kinds[kind].code, kinds[kind].zero, (hgemm_type_t)(turn % 3),
                                     every_group[turn % GROUPS], shape[1], shape[2], 1);
            const product_t c = {.w = &w,
                                 .m = shape[0],
                                 .kernel = kernel_for(kernel, kind, w.of.group),
                                 .type_d = HGEMM_TYPE_F32,
                                 .is_exact = 1};
            check(&c, "integers", NULL);
            weights_forget(&w);
            turn++;
        }
}

/* All kinds of codes with all groups and scales, within the contract's bound. */
static void products_are_within_the_bound(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{3, 96, 512}, {33, 72, 392}, {9, 200, 136}, {65, 128, 264}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int g = 0; g < GROUPS; g++) {
            const int64_t *const shape = shapes[(kind + g) % 4];
            given_t w = weights_give(&rng, kinds[kind].code, kinds[kind].zero, (hgemm_type_t)((kind + g) % 3),
                                     every_group[g], shape[1], shape[2], 0);
            const product_t c = {.w = &w,
                                 .m = shape[0],
                                 .kernel = kernel_for((kind + g) % KERNELS, kind, every_group[g]),
                                 .type_a = (kind + g) % 4 == 3 ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F16,
                                 .type_d = (hgemm_type_t)(g % 3)};
            check(&c, "random", NULL);
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
    const product_t calls[] = {
        {.w = &table, .m = 70, .kernel = "weights_table_64x128", .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32},
        {.w = &table, .m = 65, .splits = 3, .kernel = "weights_table_64x128", .has_bias = 1},
        {.w = &table, .m = 35, .splits = 2, .kernel = "weights_table_32x128", .type_a = HGEMM_TYPE_BF16},
        {.w = w, .m = 9, .has_bias = 1, .activation = HGEMM_ACTIVATION_RELU, .is_exact = 1, .kernel = kernels[0]},
        {.w = w, .m = 40, .has_bias = 1, .has_gate = 1, .beta = 2, .alpha = 0.5f, .is_exact = 1, .kernel = kernels[1]},
        {.w = &coarse, .m = 70, .beta = -1, .type_d = HGEMM_TYPE_F32, .is_exact = 1, .kernel = kernels[2]},
        {.w = &coarse, .m = 70, .has_bias = 1, .activation = HGEMM_ACTIVATION_SILU, .kernel = kernels[2]},
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
        {.w = &of_8, .m = 7, .splits = 3, .kernel = kernels[0], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 16, .splits = 4, .kernel = kernels[0], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
        {.w = &deep, .m = 33, .splits = 2, .kernel = kernels[1], .is_exact = 1, .has_bias = 1},
        {.w = &deep, .m = 65, .splits = 3, .kernel = kernels[2], .is_exact = 1, .type_d = HGEMM_TYPE_F32},
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
         .kernel = kernels[0],
         .is_exact = 1,
         .type_d = HGEMM_TYPE_F32},
        {.w = experts,
         .experts = 4,
         .m = 45,
         .is_grouped = 1,
         .splits = 3,
         .whole = 3,
         .kernel = kernels[0],
         .is_exact = 1},
        {.w = experts,
         .experts = 4,
         .m = 75,
         .is_grouped = 1,
         .is_gathered = 1,
         .splits = 4,
         .whole = 2,
         .kernel = kernels[1],
         .is_exact = 1,
         .has_gate = 1,
         .type_a = HGEMM_TYPE_BF16,
         .type_d = HGEMM_TYPE_F32},
        {.w = experts,
         .m = 19,
         .is_gathered = 1,
         .splits = 2,
         .whole = 1,
         .kernel = kernels[0],
         .type_d = HGEMM_TYPE_F32},
        {.w = experts, .experts = 4, .m = 2, .is_grouped = 1, .is_exact = 1, .type_d = HGEMM_TYPE_F32},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "call %d", (int)i);
        check(&calls[i], what, NULL);
    }
    for (int e = 0; e < 3; e++)
        weights_forget(&w[e]);
    for (int e = 0; e < 4; e++)
        weights_forget(&experts[e]);
    weights_forget(&of_8), weights_forget(&deep), weights_forget(&coarse), weights_forget(&table);
}

/* Calls that nobody chose: of all that a descriptor can say beside packed weights. */
static void calls_at_random(void **state)
{
    (void)state;
    enum { CALLS = 150, MOST_EXPERTS = 4 };
    for (int i = 0; i < CALLS; i++) {
        const int kind = (int)rng_between(&rng, 0, KINDS - 1), group = every_group[rng_between(&rng, 0, GROUPS - 1)];
        const int experts = rng_between(&rng, 0, 1) ? (int)rng_between(&rng, 2, MOST_EXPERTS) : 1;
        const int64_t n = rng_between(&rng, 1, 140), k = (rng_between(&rng, 0, 1) ? 8 : 2) * rng_between(&rng, 1, 45);
        const hgemm_type_t type_scale = (hgemm_type_t)rng_between(&rng, 0, 2);
        given_t w[MOST_EXPERTS];
        for (int e = 0; e < experts; e++)
            w[e] = weights_give(&rng, kinds[kind].code, kinds[kind].zero, type_scale, group, n, k, 0);
        const int mode = experts == 1 ? 0 : (int)rng_between(&rng, 0, 3); /* strided, shared, grouped, pointers */
        product_t c = {.w = w,
                       .experts = experts,
                       .m = rng_between(&rng, 0, 3) ? rng_between(&rng, 1, 40) : rng_between(&rng, 41, 140),
                       .type_a = rng_between(&rng, 0, 2) ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16,
                       .type_d = (hgemm_type_t)rng_between(&rng, 0, 2),
                       .lda_more = (int)rng_between(&rng, 0, 1) * (int)rng_between(&rng, 1, 9),
                       .shift = (int)rng_between(&rng, 0, 3) == 0,
                       .is_shared = mode == 1,
                       .is_grouped = mode == 2,
                       .has_pointers = mode == 3,
                       .alpha = rng_between(&rng, 0, 1) ? -0.75F : 0,
                       .beta = rng_between(&rng, 0, 1) ? 0.5F : 0,
                       .has_bias = (int)rng_between(&rng, 0, 1),
                       .has_gate = rng_between(&rng, 0, 2) == 0,
                       .bias_mode = rng_between(&rng, 0, 1) ? HGEMM_BIAS_PER_ROW : HGEMM_BIAS_PER_COLUMN,
                       .type_other = (hgemm_type_t)rng_between(&rng, 0, 2),
                       .activation =
                           (hgemm_activation_t)rng_between(&rng, HGEMM_ACTIVATION_NONE, HGEMM_ACTIVATION_SILU),
                       .flags = rng_between(&rng, 0, 4) ? 0 : HGEMM_FLAG_BATCH_INVARIANT,
                       .has_scalars_there = rng_between(&rng, 0, 3) == 0,
                       .has_wide_indices = (int)rng_between(&rng, 0, 1)};
        c.has_gate = c.has_gate && !c.has_pointers; /* whose bias and gate are arrays of pointers, too */
        c.has_bias = c.has_bias && !c.has_pointers;
        c.is_gathered = mode == 2 && rng_between(&rng, 0, 1), c.is_scattered = mode == 2 && rng_between(&rng, 0, 1);
        if (k % 8 == 0 && c.lda_more % 8 == 0 && c.shift == 0 && rng_between(&rng, 0, 1)) /* what every kernel takes, */
            c.kernel = mode < 2 ? kernel_for((int)rng_between(&rng, 0, KERNELS - 1), kind, group)
                                : kernels[rng_between(&rng, 0, 1)]; /* or two do */
        char what[64];
        snprintf(what, sizeof what, "call %d, mode %d, kernel %s", i, mode, c.kernel ? c.kernel : "auto");
        check(&c, what, NULL);
        for (int e = 0; e < experts; e++)
            weights_forget(&w[e]);
    }
}

/* Numbers that no half holds, and sums that none would. */
static void large_activations_stay_finite(void **state)
{
    (void)state;
    given_t w = weights_give(&rng, HGEMM_CODE_UINT4, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 128, 64, 512, 0);
    const product_t calls[] = {{.w = &w, .m = 4, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_BF16, .size = 8e5f},
                               {.w = &w, .m = 70, .type_a = HGEMM_TYPE_BF16, .type_d = HGEMM_TYPE_F32, .size = 8e5f},
                               {.w = &w, .m = 4, .type_d = HGEMM_TYPE_F32, .size = 6e4f}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        check(&calls[i], "large", NULL);
    weights_forget(&w);
}

/* A row's bits are those that it has alone. */
static void rows_do_not_depend_on_others(void **state)
{
    (void)state;
    given_t w = weights_give(&rng, HGEMM_CODE_INT4, HGEMM_ZERO_CODE, HGEMM_TYPE_F16, 64, 200, 392, 0);
    static uint8_t bits[3][80 * 200 * 4];
    static const int64_t rows[] = {1, 20, 80};
    for (int i = 0; i < 3; i++) {
        const product_t c = {.w = &w, .m = rows[i], .type_d = HGEMM_TYPE_F32, .flags = HGEMM_FLAG_BATCH_INVARIANT};
        rng.state = 5; /* the same rows */
        check(&c, "invariant", bits[i]);
    }
    assert_memory_equal(bits[0], bits[1], 200 * 4);
    assert_memory_equal(bits[1], bits[2], 20 * 200 * 4);
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
    hgemm_desc_t calls[8];
    static const struct {
        hgemm_status_t status;
        const char *word;
    } wanted[8] = {{HGEMM_STATUS_NOT_SUPPORTED, "column-major"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "op_b"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "op_a"},
                   {HGEMM_STATUS_NOT_SUPPORTED, "HGEMM_ACCUMULATE_F16"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "64 by 128"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "group is 5"},
                   {HGEMM_STATUS_INVALID_WEIGHTS, "stride_b is 8"},
                   {HGEMM_STATUS_MISALIGNED_B, "multiple of 16"}};
    for (int i = 0; i < 8; i++)
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
    for (int i = 0; i < 8; i++) {
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
        cmocka_unit_test(packed_weights_come_back),
        cmocka_unit_test(nan_codes_make_their_group_nan),
        cmocka_unit_test(bad_weights_are_refused),
        cmocka_unit_test(products_of_integers_are_exact),
        cmocka_unit_test(products_are_within_the_bound),
        cmocka_unit_test(products_have_all_that_others_have),
        cmocka_unit_test(calls_at_random),
        cmocka_unit_test(large_activations_stay_finite),
        cmocka_unit_test(rows_do_not_depend_on_others),
        cmocka_unit_test(what_no_kernel_does_is_refused),
    };
    rng.state = test_seed();
    handle = test_open();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hgemm_destroy(handle);
    return failures;
}
