/* SPDX-License-Identifier: MIT */
/*
 * Weights of 4 and 8 bits: what is packed comes back, and products of it are those of the numbers that it stands for,
 * by the contract's bound. What numbers codes stand for is decoded here anew, from what the header says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gemm_operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

static const uint16_t normal_floats[16] = {0xbc00, 0xb992, 0xb833, 0xb652, 0xb48d, 0xb1ea, 0xadd5, 0x0000,
                                           0x2d18, 0x3126, 0x33e1, 0x3568, 0x370c, 0x3881, 0x39c9, 0x3c00};

/* Weights as they are given, and the numbers they stand for. */
typedef struct given_t {
    hgemm_weights_t of;
    int64_t groups, code_bytes, scale_count, zero_bytes;
    uint8_t *codes;
    void *scales, *zeros;
    double *element;        /* the number */
    double *exact;          /* code, or code - zero: what is multiplied */
    double *scale, *offset; /* of each group */
} given_t;

static double number_of(hgemm_type_t type, const void *from, int64_t i)
{
    if (type == HGEMM_TYPE_F32)
        return (double)((const float *)from)[i];
    const uint16_t bits = ((const uint16_t *)from)[i];
    if (type == HGEMM_TYPE_F16)
        return (double)hgemm_half_to_float(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return (double)x;
}

static void put_number(hgemm_type_t type, void *to, int64_t i, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == HGEMM_TYPE_F32)
        ((float *)to)[i] = x;
    else
        ((uint16_t *)to)[i] = type == HGEMM_TYPE_F16 ? hgemm_half_from_float(x) : (uint16_t)(bits >> 16);
}

static int bits_of(hgemm_code_t code)
{
    return code == HGEMM_CODE_INT8 || code == HGEMM_CODE_UINT8 || code == HGEMM_CODE_E4M3 ? 8 : 4;
}

static double e4m3(int code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7, sign = code & 0x80 ? -1 : 1;
    if ((code & 0x7f) == 0x7f)
        return NAN;
    return sign * (exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9));
}

static double value_of_code(const hgemm_weights_t *of, int code)
{
    switch (of->code) {
    case HGEMM_CODE_INT4: return code < 8 ? code : code - 16;
    case HGEMM_CODE_INT8: return code < 128 ? code : code - 256;
    case HGEMM_CODE_TABLE16: return (double)hgemm_half_to_float(of->table[code]);
    case HGEMM_CODE_E4M3: return e4m3(code);
    default: return code;
    }
}

static int code_at(const given_t *w, int64_t row, int64_t k)
{
    if (bits_of(w->of.code) == 8)
        return w->codes[row * w->of.k + k];
    const int byte = w->codes[row * (w->of.k / 2) + k / 2];
    return k % 2 ? byte >> 4 : byte & 15;
}

/* Random codes, scales of 1/2 to 8 or, where sums are to be exact, powers of two, and zeros of all kinds. */
static given_t give(hgemm_code_t code, hgemm_zero_t zero, hgemm_type_t type_scale, int group, int64_t n, int64_t k,
                    int is_exact)
{
    given_t w = {0};
    hgemm_weights_init(&w.of);
    w.of.n = n, w.of.k = k;
    w.of.code = code, w.of.zero = zero, w.of.type_scale = type_scale, w.of.group = group;
    memcpy(w.of.table, normal_floats, sizeof normal_floats);
    w.groups = group ? (k + group - 1) / group : 1;
    w.code_bytes = n * k * bits_of(code) / 8, w.scale_count = n * w.groups;
    const int64_t scale_bytes = type_scale == HGEMM_TYPE_F32 ? 4 : 2;
    w.zero_bytes = zero == HGEMM_ZERO_OFFSET ? w.scale_count * scale_bytes : w.scale_count;
    w.codes = test_calloc((size_t)w.code_bytes, 1);
    w.scales = test_calloc((size_t)w.scale_count, (size_t)scale_bytes);
    w.zeros = test_calloc((size_t)w.zero_bytes, 1);
    w.element = test_calloc((size_t)(n * k), sizeof(double)), w.exact = test_calloc((size_t)(n * k), sizeof(double));
    w.scale = test_calloc((size_t)w.scale_count, sizeof(double));
    w.offset = test_calloc((size_t)w.scale_count, sizeof(double));
    for (int64_t i = 0; i < w.code_bytes; i++) {
        w.codes[i] = (uint8_t)rng_between(&rng, 0, 255);
        if (code == HGEMM_CODE_E4M3)
            while ((w.codes[i] & 0x7f) == 0x7f)
                w.codes[i] = (uint8_t)rng_between(&rng, 0, 255);
    }
    for (int64_t i = 0; i < w.scale_count; i++) {
        const float scale = is_exact ? ldexpf(1, (int)rng_between(&rng, -2, 2))
                                     : ldexpf((float)rng_between(&rng, 129, 255), (int)rng_between(&rng, -8, -5));
        put_number(type_scale, w.scales, i, scale);
        w.scale[i] = number_of(type_scale, w.scales, i);
        if (zero == HGEMM_ZERO_OFFSET) {
            put_number(type_scale, w.zeros, i, (float)rng_between(&rng, -8, 8) * (is_exact ? 1 : 0.375f));
            w.offset[i] = number_of(type_scale, w.zeros, i);
        } else if (zero == HGEMM_ZERO_CODE) {
            const int lowest = code == HGEMM_CODE_INT4 ? -8 : code == HGEMM_CODE_INT8 ? -128 : 0;
            const int highest = code == HGEMM_CODE_INT4 ? 8 : code == HGEMM_CODE_UINT4 ? 16 : lowest + 255;
            ((uint8_t *)w.zeros)[i] = (uint8_t)rng_between(&rng, lowest, highest);
        }
    }
    for (int64_t row = 0; row < n; row++)
        for (int64_t l = 0; l < k; l++) {
            const int64_t at = row * w.groups + (group ? l / group : 0);
            double x = value_of_code(&w.of, code_at(&w, row, l));
            if (zero == HGEMM_ZERO_CODE)
                x -= code == HGEMM_CODE_INT4 || code == HGEMM_CODE_INT8 ? ((int8_t *)w.zeros)[at]
                                                                        : ((uint8_t *)w.zeros)[at];
            w.exact[row * k + l] = x;
            w.element[row * k + l] = w.scale[at] * x + w.offset[at];
        }
    return w;
}

static void forget(given_t *w)
{
    test_free(w->codes), test_free(w->scales), test_free(w->zeros);
    test_free(w->element), test_free(w->exact), test_free(w->scale), test_free(w->offset);
}

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

/* Packed on the host and on the device: the same bytes. Unpacked on both, each element is the one number next to it. */
static void round_trip(const given_t *w)
{
    const int64_t n = w->of.n, k = w->of.k, ld = k + 3;
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
        expect_status(NULL, hgemm_unpack_weights(NULL, &w->of, here, type, host, ld), HGEMM_STATUS_SUCCESS,
                      "hgemm_unpack_weights on the host");
        expect_status(handle, hgemm_unpack_weights(handle, &w->of, device + GUARD, type, matrix, ld),
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
                const double x = number_of(type, got, row * ld + i), want = i < k ? w->element[row * k + i] : 0;
                if (i < k ? !(fabs(x - want) <= units * fabs(want)) && !(isnan(x) && isnan(want))
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
            given_t w = give(kinds[kind].code, kinds[kind].zero, (hgemm_type_t)((kind + g) % 3), every_group[g],
                             shape[0], shape[1], 0);
            round_trip(&w);
            forget(&w);
        }
}

/* A NaN among codes makes its group's scale one. */
static void nan_codes_make_their_group_nan(void **state)
{
    (void)state;
    given_t w = give(HGEMM_CODE_E4M3, HGEMM_ZERO_NONE, HGEMM_TYPE_F16, 32, 5, 100, 0);
    w.codes[3 * 100 + 70] = 0xff;
    for (int64_t k = 64; k < 96; k++)
        w.element[3 * 100 + k] = NAN;
    round_trip(&w);
    forget(&w);
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
        expect_status(NULL, hgemm_unpack_weights(NULL, &of, packed, HGEMM_TYPE_F16, packed, 8),
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
    of.zero = HGEMM_ZERO_CODE;
    expect_status(NULL, hgemm_pack_weights(NULL, &of, x, x, NULL, x), HGEMM_STATUS_NULL_B, "zeros");
    of.zero = HGEMM_ZERO_NONE;
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, HGEMM_TYPE_F16, x, 7), HGEMM_STATUS_INVALID_LDD, "ld");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, (hgemm_type_t)3, x, 8), HGEMM_STATUS_INVALID_TYPE, "type");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, NULL, HGEMM_TYPE_F16, x, 8), HGEMM_STATUS_NULL_B, "packed");
    expect_status(NULL, hgemm_unpack_weights(NULL, &of, x, HGEMM_TYPE_F32, x + 2, 8), HGEMM_STATUS_MISALIGNED_D,
                  "matrix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_come_back),
        cmocka_unit_test(nan_codes_make_their_group_nan),
        cmocka_unit_test(bad_weights_are_refused),
    };
    rng.state = test_seed();
    handle = test_open();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hgemm_destroy(handle);
    return failures;
}
