/* SPDX-License-Identifier: MIT */
#include "weights_product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "error_model.h"
#include "problem/types.h"

const weights_kind_t weights_kinds[WEIGHTS_KINDS] = {
#define KINDS_0(value) {HGEMM_CODE_##value, HGEMM_ZERO_NONE},
#define KINDS_1(value) KINDS_0(value){HGEMM_CODE_##value, HGEMM_ZERO_CODE}, {HGEMM_CODE_##value, HGEMM_ZERO_OFFSET},
#define CODE(value, name, bits, kind, lowest, highest, has_zeros) KINDS_##has_zeros(value)
#include "table/codes.def"
};
const int weights_groups[WEIGHTS_GROUPS] = {16, 32, 64, 128, 256, 0};

const char *const weights_kernels[WEIGHTS_KERNELS] = {"weights_16x128", "weights_32x128", "weights_64x128",
                                                      "weights_teams_64x128", NULL};

const char *weights_kernel_for(int i, int kind, int group)
{
    const int is_large = weights_kinds[kind].zero != HGEMM_ZERO_OFFSET && (group == 0 || group >= 64);
    if (is_large && code_table[weights_kinds[kind].code].kind == CODES_TABLE && i >= 1 && i < WEIGHTS_KERNELS - 1)
        return i == 1 ? "weights_table_32x128" : i == 2 ? "weights_table_64x128" : "weights_table_teams_64x128";
    return weights_kernels[i >= 2 && i < WEIGHTS_KERNELS - 1 && !is_large ? 1 : i];
}

void *weights_place(hgemm_handle_t handle, const void *host, int64_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, (size_t)bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, (size_t)bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

void weights_take_away(hgemm_handle_t handle, void *device)
{
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

size_t weights_packed_bytes(const hgemm_weights_t *of)
{
    size_t bytes = 0;
    expect_status(NULL, hgemm_weights_bytes(of, &bytes), HGEMM_STATUS_SUCCESS, "hgemm_weights_bytes");
    assert_int_equal(bytes % 128, 0);
    return bytes;
}

static float number_near(hgemm_type_t type, float x)
{
    uint16_t bits[2];
    put_number(type, bits, 0, x);
    return type == HGEMM_TYPE_F32 ? x : (float)number_of(type, bits, 0);
}

/* `count` device pointers, `stride` bytes apart, in device memory. */
static void *place_pointers(hgemm_handle_t handle, const void *first, int64_t stride, int64_t count)
{
    const void **const pointers = test_calloc((size_t)count, sizeof *pointers);
    for (int64_t i = 0; i < count; i++)
        pointers[i] = (const char *)first + i * stride;
    void *const device = weights_place(handle, pointers, count * (int64_t)sizeof *pointers);
    test_free(pointers);
    return device;
}

static void *place_indices(hgemm_handle_t handle, const int32_t *indices, int64_t count, int is_wide)
{
    int64_t *const wide = test_calloc((size_t)count, sizeof *wide);
    for (int64_t i = 0; i < count; i++)
        wide[i] = indices[i];
    void *const device = is_wide ? weights_place(handle, wide, count * 8) : weights_place(handle, indices, count * 4);
    test_free(wide);
    return device;
}

void weights_check(hgemm_handle_t handle, rng_t *rng, const weights_product_t *c, const char *what, uint8_t *bits)
{
    const given_t *const w = c->w;
    const int64_t experts = c->experts ? c->experts : 1, batch = c->is_grouped ? 1 : experts, m = c->m;
    const int64_t n = w->of.n, k = w->of.k, lda = k + c->lda_more, rows = m * batch, ldd = n + 8;
    const int64_t size_a = c->type_a == HGEMM_TYPE_F32 ? 4 : 2, size_d = c->type_d == HGEMM_TYPE_F32 ? 4 : 2;
    const int64_t bytes_a = (rows * lda + c->shift) * size_a, bytes_d = rows * ldd * size_d;
    uint8_t *const a = test_calloc((size_t)bytes_a, 1), *const before =
                                                            test_calloc((size_t)bytes_d + 2 * WEIGHTS_GUARD, 1);
    uint8_t *const after = test_calloc((size_t)bytes_d + 2 * WEIGHTS_GUARD, 1);
    const int64_t biases = c->bias_mode == HGEMM_BIAS_PER_ROW ? m : n;
    const int64_t size_other = c->type_other == HGEMM_TYPE_F32 ? 4 : 2;
    float *const bias = test_calloc((size_t)biases, 4), *const gate = test_calloc((size_t)(rows * n), 4);
    int32_t *const ends = test_calloc((size_t)experts, 4), *const gather = test_calloc((size_t)m, 4);
    int32_t *const scatter = test_calloc((size_t)m, 4);
    const size_t packed_size = weights_packed_bytes(&w->of);
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
                c->is_exact ? (float)rng_between(rng, -4, 4) : (float)rng_symmetric(rng) * (c->size ? c->size : 1);
            const int is_outlier = c->outlier != 0 && i % m == m / 2 && l == k / 2;
            put_number(c->type_a, a, c->shift + i * lda + l, is_outlier ? c->outlier : x);
        }
    for (int64_t i = 0; i < bytes_d + 2 * WEIGHTS_GUARD; i++)
        before[i] = 0xfe;
    for (int64_t i = 0; i < rows && c->beta != 0; i++)
        for (int64_t j = 0; j < n; j++)
            put_number(c->type_d, before + WEIGHTS_GUARD, i * ldd + j, (float)rng_between(rng, -8, 8));
    for (int64_t j = 0; j < biases; j++) /* whole numbers, which they are in every type */
        put_number(c->type_other, bias, j, (float)rng_between(rng, -8, 8));
    for (int64_t i = 0; i < rows * n; i++)
        put_number(c->type_other, gate, i, (float)rng_between(rng, -2, 2));
    for (int64_t i = 0; i < m; i++)
        gather[i] = (int32_t)rng_between(rng, 0, m - 1), scatter[i] = (int32_t)(m - 1 - i);
    for (int64_t g = 0; g < experts; g++) /* the second one is empty */
        ends[g] = (int32_t)(g == experts - 1 ? m : g < 2 ? m / experts : m * g / experts);

    uint8_t *const device_d = weights_place(handle, before, bytes_d + 2 * WEIGHTS_GUARD), *const device_a =
                                                                                              weights_place(handle, a,
                                                                                                            bytes_a);
    uint8_t *const device_w = weights_place(handle, packed, (int64_t)packed_size * experts);
    const float scalars[] = {c->alpha ? c->alpha : 1, c->beta};
    void *const others[] = {weights_place(handle, bias, biases * size_other),
                            weights_place(handle, gate, rows * n * size_other),
                            place_indices(handle, ends, experts, c->has_wide_indices),
                            place_indices(handle, gather, m, c->has_wide_indices),
                            place_indices(handle, scatter, m, c->has_wide_indices),
                            weights_place(handle, scalars, sizeof scalars),
                            place_pointers(handle, device_a + c->shift * size_a, m * lda * size_a, experts),
                            place_pointers(handle, device_w, c->is_shared ? 0 : (int64_t)packed_size, experts),
                            place_pointers(handle, device_d + WEIGHTS_GUARD, m * ldd * size_d, experts)};
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
    desc.c = desc.d = device_d + WEIGHTS_GUARD, desc.ldc = desc.ldd = ldd, desc.stride_c = desc.stride_d = m * ldd;
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
    expect_status(handle, hgemm_download(handle, after, device_d, (size_t)bytes_d + 2 * WEIGHTS_GUARD),
                  HGEMM_STATUS_SUCCESS, what);

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
            const double of_c =
                c->beta != 0 ? (double)c->beta * number_of(c->type_d, before + WEIGHTS_GUARD, row * ldd + j) : 0;
            const double of_bias =
                c->has_bias ? number_of(c->type_other, bias, c->bias_mode == HGEMM_BIAS_PER_ROW ? row % m : j) : 0;
            double want = alpha * sum + of_c + of_bias;
            error *= fabs(alpha);
            error +=
                c->is_exact ? 0 : 0x1p-22 * (fabs(alpha * sum) + fabs(of_c) + fabs(of_bias)); /* which may cancel */
            if (!activation_is_exact(c->activation))
                error = activation_error(c->activation, want, error);
            want = activation_value(c->activation, want);
            if (c->has_gate) {
                const double factor = number_of(c->type_other, gate, row * n + j);
                want *= factor, error *= fabs(factor);
            }
            const double got = number_of(c->type_d, after + WEIGHTS_GUARD, row * ldd + j);
            error += (c->type_d == HGEMM_TYPE_F32   ? 0x1p-24
                      : c->type_d == HGEMM_TYPE_F16 ? 0x1.01p-11
                                                    : 0x1.01p-8) *
                     fabs(want);
            if (c->type_d == HGEMM_TYPE_F16 && fabs(want) + error >= 65520 && got == copysign(INFINITY, want))
                continue; /* beyond what halves hold, or nearly */
            if (c->is_exact ? got != (double)number_near(c->type_d, (float)want) : !(fabs(got - want) <= error))
                fail_msg("%s: %d x %d x %d, codes %d, zeros %d, groups of %d: element (%d, %d) is %.9g, want %.9g "
                         "within %.3g",
                         what, (int)m, (int)n, (int)k, (int)w->of.code, (int)w->of.zero, w->of.group, (int)i, (int)j,
                         got, want, error);
        }
    }
    for (int64_t i = 0; i < bytes_d + 2 * WEIGHTS_GUARD; i++) {
        const int64_t at = i - WEIGHTS_GUARD, column = at % (ldd * size_d) / size_d;
        if ((at < 0 || at >= bytes_d || column >= n) && after[i] != 0xfe)
            fail_msg("%s: byte %d, outside of D, was written", what, (int)at);
    }
    if (bits)
        for (int64_t j = 0; j < rows; j++)
            memcpy(bits + j * n * size_d, after + WEIGHTS_GUARD + j * ldd * size_d, (size_t)(n * size_d));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        weights_take_away(handle, others[i]);
    weights_take_away(handle, device_d), weights_take_away(handle, device_a), weights_take_away(handle, device_w);
    test_free(a), test_free(before), test_free(after), test_free(bias), test_free(gate), test_free(ends),
        test_free(gather);
    test_free(scatter), test_free(packed);
}
