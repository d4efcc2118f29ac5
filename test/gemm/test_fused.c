/* SPDX-License-Identifier: MIT */
/*
 * D = act(alpha * op(A) * op(B) + beta * C + bias) * gate: the rules of docs/contract.md for special values, for what
 * is not read and for rounding, each by name, on the default device. (test_gemm has everything else, at random.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "error_model.h"
#include "gemm_reference.h"
#include "problem/names.h"

#include <math.h>
#include <string.h>

enum { M = 8, N = 24, K = 8, SIZE = M * N };

static hgemm_handle_t handle;

/* A call whose operands are all there, and hold what `reset` writes: A the identity, so that the sums are B's rows; B,
 * C, bias and gate some numbers. What a test does not want it takes away. */
static struct {
    hgemm_desc_t desc;
    double a[M * K], b[K * N], c[SIZE], bias[N], gate[SIZE], scalars[2];
    double d[SIZE];
} call;

static void reset(void)
{
    hgemm_desc_init(&call.desc);
    hgemm_desc_t *d = &call.desc;
    d->m = M, d->n = N, d->k = K;
    d->lda = K, d->ldb = d->ldc = d->ldd = d->ldgate = N;
    d->accumulate = HGEMM_ACCUMULATE_F32;
    d->type_c = d->type_d = d->type_bias = d->type_gate = HGEMM_TYPE_F32;
    for (int i = 0; i < M * K; i++)
        call.a[i] = i / K == i % K;
    for (int i = 0; i < SIZE; i++) {
        call.b[i] = i % 13 - 6;
        call.c[i] = i % 7 - 3;
        call.gate[i] = 1 + i % 3;
    }
    for (int j = 0; j < N; j++)
        call.bias[j] = j % 5 - 2;
}

static void *place(hgemm_type_t type, const double *values, int count)
{
    unsigned char host[(SIZE + 1) * 4];
    void *device;
    const size_t element = type == HGEMM_TYPE_F32 ? 4 : 2, bytes = (size_t)count * element;
    for (int i = 0; i < count; i++)
        store_value(type, host + (size_t)i * element, values[i]);
    expect_status(handle, hgemm_malloc(handle, &device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

enum {
    WITH_C = 1,
    WITH_BIAS = 2,
    WITH_GATE = 4,
    WITHOUT_AB = 8,
    ALPHA_DEVICE = 16,
    BETA_DEVICE = 32,
    D_IS_C = 64,
    D_IS_ODD = 128
};

/* Runs the call with these operands. D_IS_ODD: D begins an element past an aligned address. */
static void run(int with)
{
    hgemm_desc_t *d = &call.desc;
    const double nothing[SIZE + 1] = {0};
    void *made[8] = {NULL};
    unsigned char host[SIZE * 4];
    const size_t element = d->type_d == HGEMM_TYPE_F32 ? 4 : 2;
    d->a = d->b = d->c = d->bias = d->gate = NULL;
    if (!(with & WITHOUT_AB)) {
        d->a = made[0] = place(HGEMM_TYPE_F16, call.a, M * K);
        d->b = made[1] = place(HGEMM_TYPE_F16, call.b, K * N);
    }
    if (with & WITH_C)
        d->c = made[2] = place(d->type_c, call.c, SIZE);
    if (with & WITH_BIAS)
        d->bias = made[3] = place(d->type_bias, call.bias, d->bias_mode == HGEMM_BIAS_PER_ROW ? M : N);
    if (with & WITH_GATE)
        d->gate = made[4] = place(d->type_gate, call.gate, SIZE);
    made[5] = place(HGEMM_TYPE_F32, call.scalars, 2);
    d->alpha_pointer = with & ALPHA_DEVICE ? made[5] : NULL;
    d->beta_pointer = with & BETA_DEVICE ? (const float *)made[5] + 1 : NULL;
    made[6] = with & D_IS_C ? NULL : place(d->type_d, nothing, SIZE + 1);
    d->d = with & D_IS_C ? made[2] : (char *)made[6] + (with & D_IS_ODD ? element : 0);
    expect_status(handle, hgemm_run_desc(handle, d), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, host, d->d, SIZE * element), HGEMM_STATUS_SUCCESS, "hgemm_download");
    for (int i = 0; i < SIZE; i++) {
        call.d[i] = value_of(d->type_d, host + (size_t)i * element);
    }
    for (int i = 0; i < 8; i++)
        if (made[i])
            expect_status(handle, hgemm_free(handle, made[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

static void assert_element(int i, double want)
{
    if (!(isnan(want) ? isnan(call.d[i]) : call.d[i] == want))
        fail_msg("element %d is %.9g, want %.9g", i, call.d[i], want);
}

static const hgemm_type_t types[] = {HGEMM_TYPE_F16, HGEMM_TYPE_F32, HGEMM_TYPE_BF16};

/* What a number is in a type. */
static double rounded(hgemm_type_t type, double value)
{
    char bits[4];
    store_value(type, bits, value);
    return value_of(type, bits);
}

/* ---- Activations ------------------------------------------------------------------------------- */

/* NaN stays NaN, +infinity stays, and -infinity becomes what the formula gives. Where all is exact, so is the result;
 * the random tests bound the rest. */
static void activations_of_special_values(void **state)
{
    (void)state;
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e30, 3e38, -3e38, 1e-30, -1e-30};
    enum { COUNT = sizeof specials / sizeof *specials };
    for (int activation = HGEMM_ACTIVATION_NONE; activation < ACTIVATION_COUNT; activation++)
        for (int t = 0; t < 3; t++) {
            reset();
            call.desc.activation = (hgemm_activation_t)activation, call.desc.type_d = types[t];
            call.desc.alpha = 0, call.desc.beta = 1;
            for (int i = 0; i < SIZE; i++)
                call.c[i] = specials[i % COUNT];
            run(WITH_C | WITHOUT_AB);
            for (int i = 0; i < SIZE; i++) {
                double want = activation_value((hgemm_activation_t)activation, (double)(float)specials[i % COUNT]);
                if (fabs(want) > 0 && fabs(want) < 1) /* an approximation of a tiny number */
                    assert_true(fabs(call.d[i] - want) <= 0x1p-7 * fabs(want) + 0x1p-25);
                else
                    assert_element(i, rounded(types[t], want));
            }
        }
}

/* Of any number, positive or negative, up to where formulas overflow. */
static void activations_are_within_their_errors(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 30 * ACTIVATION_COUNT; i++) {
        const hgemm_activation_t activation = (hgemm_activation_t)(i % ACTIVATION_COUNT);
        reset();
        call.desc.activation = activation, call.desc.alpha = 0, call.desc.beta = 1;
        for (int e = 0; e < SIZE; e++) /* most where a function bends */
            call.c[e] =
                (double)ldexpf((float)rng_symmetric(&rng), (int)rng_between(&rng, e % 4 ? -2 : -130, e % 4 ? 8 : 127));
        run(WITH_C | WITHOUT_AB);
        for (int e = 0; e < SIZE; e++) {
            const double want = activation_value(activation, call.c[e]),
                         error = activation_error(activation, call.c[e], 0);
            if (!(fabs(call.d[e] - want) <= error + 0x1p-24 * fabs(want) + 0x1p-149))
                fail_msg("%s of %.9g is %.9g, want %.9g within %.3g", hgemm_activation_name(activation), call.c[e],
                         call.d[e], want, error);
        }
    }
}

/* What the table says of slopes, by which errors of sums are bounded: no step is steeper. */
static void activations_are_as_steep_as_their_rows_say(void **state)
{
    (void)state;
    const double step = 0x1p-10;
    for (int a = HGEMM_ACTIVATION_NONE; a < ACTIVATION_COUNT; a++) {
        const hgemm_activation_t activation = (hgemm_activation_t)a;
        double steepest = 0; /* as a part of what the row says */
        for (double x = -20; x < 20; x += step) {
            const double rise = activation_value(activation, x + step) - activation_value(activation, x);
            steepest = fmax(steepest, fabs(rise / step) / activation_slope(activation, x, step));
        }
        if (!(steepest > 0.9 && steepest <= 1.0000001))
            fail_msg("%s is %g times as steep as its row says", hgemm_activation_name(activation), steepest);
        assert_true(activation_error(activation, 2, 0) < 1e-5 && activation_error(activation, 2, 0.5) >= 0.5 * 0.9);
    }
}

static void an_activation_of_nan_is_nan_wherever_it_comes_from(void **state)
{
    (void)state;
    for (int activation = HGEMM_ACTIVATION_NONE; activation < ACTIVATION_COUNT; activation++)
        for (int from = 0; from < 4; from++) {
            reset();
            call.desc.activation = (hgemm_activation_t)activation, call.desc.beta = 1;
            double *const where[] = {&call.b[3 * N + 5], &call.c[3 * N + 5], &call.gate[3 * N + 5], &call.bias[5]};
            *where[from] = NAN;
            run(WITH_C | WITH_BIAS | WITH_GATE);
            for (int i = 0; i < SIZE; i++) /* op(A) has zeros that meet B's NaN in its whole column */
                assert_int_equal(isnan(call.d[i]), i % N == 5 && (from == 0 || from == 3 || i / N == 3));
        }
}

/* Kernels of either accumulator whose epilogues have every way to D; M of them is too small for automatic selection. */
static const char *const kernels[] = {"k5_64x32", "k5_64x32_f32"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* What is exact and F16 but for the bias, by one of the kernels. Returns whether this build has it. */
static int reset_halves(int kernel)
{
    reset();
    hgemm_kernel_info_t info;
    hgemm_desc_t *d = &call.desc;
    d->kernel = hgemm_find_kernel(kernels[kernel]);
    if (d->kernel == 0 || hgemm_get_kernel_info(d->kernel, &info) != HGEMM_STATUS_SUCCESS)
        return 0;
    d->accumulate = info.accumulate;
    d->type_c = d->type_d = d->type_gate = HGEMM_TYPE_F16;
    int runs;
    return hgemm_select(d, &runs) == HGEMM_STATUS_SUCCESS;
}

/* What is no number in one element must not reach another, whichever way they are computed side by side. */
static void neighbours_of_special_values_are_their_own(void **state)
{
    (void)state;
    static const double specials[] = {NAN, INFINITY, -INFINITY, 60000, -60000};
    enum { SPECIALS = sizeof specials / sizeof *specials };
    int ran = 0;
    for (int i = 0; i < KERNELS * 3 * SPECIALS * ACTIVATION_COUNT; i++) {
        const hgemm_activation_t activation = (hgemm_activation_t)(i % ACTIVATION_COUNT);
        const double special = specials[i / ACTIVATION_COUNT % SPECIALS];
        if (!reset_halves(i / ACTIVATION_COUNT / SPECIALS / 3))
            continue;
        call.desc.activation = activation;
        call.desc.type_bias = types[i / ACTIVATION_COUNT / SPECIALS % 3];
        call.bias[5] = call.bias[16] = rounded(call.desc.type_bias, special);
        run(WITH_BIAS);
        ran++;
        for (int e = 0; e < SIZE; e++) {
            const double want = rounded(call.desc.type_d, activation_value(activation, call.b[e] + call.bias[e % N]));
            if (isnan(want) || isinf(want))
                assert_element(e, want);
            else if (!(fabs(call.d[e] - want) <= 0x1p-10 * fabs(want) + 0x1p-23))
                fail_msg("element %d is %.9g, want about %.9g", e, call.d[e], want);
        }
    }
    if (!ran)
        skip();
}

/* What an aligned D gets by accumulators, by chunks or by pairs of halves has the bits of the way that takes anything.
 */
static void every_way_to_d_gives_the_same_bits(void **state)
{
    (void)state;
    static const int operands[] = {0, WITH_BIAS, WITH_C | WITH_BIAS, WITH_BIAS | WITH_GATE};
    rng_t rng = {test_seed()};
    int ran = 0;
    for (int i = 0; i < KERNELS * 3 * 4 * 2 * ACTIVATION_COUNT; i++) {
        const int with = operands[i / ACTIVATION_COUNT % 4];
        if (!reset_halves(i / ACTIVATION_COUNT / 4 / 2 / 3))
            continue;
        call.desc.activation = (hgemm_activation_t)(i % ACTIVATION_COUNT);
        call.desc.type_bias = types[i / ACTIVATION_COUNT / 4 / 2 % 3];
        call.desc.alpha = i / ACTIVATION_COUNT / 4 % 2 ? 1 : 0.7F;
        call.desc.beta = with & WITH_C ? 0.3F : 0;
        for (int e = 0; e < SIZE; e++) {
            call.b[e] = 8 * rng_symmetric(&rng), call.c[e] = 8 * rng_symmetric(&rng);
            call.bias[e % N] = 8 * rng_symmetric(&rng), call.gate[e] = 8 * rng_symmetric(&rng);
        }
        double aligned[SIZE];
        run(with);
        ran++;
        memcpy(aligned, call.d, sizeof aligned);
        run(with | D_IS_ODD);
        if (memcmp(aligned, call.d, sizeof aligned) != 0)
            fail_msg("activation %d, operands %d, bias of type %d, alpha %g, %s", (int)call.desc.activation, with,
                     (int)call.desc.type_bias, (double)call.desc.alpha, kernels[i / ACTIVATION_COUNT / 24]);
    }
    if (!ran)
        skip();
}

/* Where n is odd the neighbour of a row's last element is none of D's: what stands there, behind a row of B, and how
 * rows are read, must not change a bit. Of every kernel. */
static void a_column_that_is_not_there_counts_for_nothing(void **state)
{
    (void)state;
    static const double behind[] = {0, 100, NAN};
    rng_t rng = {test_seed()};
    int32_t rows[M];
    int ran = 0;
    void *list;
    for (int i = 0; i < M; i++)
        rows[i] = i;
    expect_status(handle, hgemm_malloc(handle, &list, sizeof rows), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, list, rows, sizeof rows), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++)
        for (int activation = HGEMM_ACTIVATION_GELU_TANH; activation < ACTIVATION_COUNT; activation++) {
            double first[SIZE];
            hgemm_kernel_info_t info;
            int runs = 0;
            assert_int_equal(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
            reset();
            for (int e = 0; e < SIZE; e++)
                call.b[e] = 4 * rng_symmetric(&rng);
            for (int way = 0; way < 2 * 3; way++) { /* as rows are, or gathered */
                hgemm_desc_t *d = &call.desc;
                int served;
                d->kernel = kernel, d->accumulate = info.accumulate, d->activation = (hgemm_activation_t)activation;
                d->n = N - 1, d->gather_a = way < 3 ? NULL : list;
                for (int i = 0; i < K; i++)
                    call.b[i * N + N - 1] = behind[way % 3];
                if (hgemm_select(d, &served) != HGEMM_STATUS_SUCCESS)
                    continue;
                run(0);
                if (!runs++)
                    memcpy(first, call.d, sizeof first);
                for (int e = 0; e < SIZE; e++)
                    if (e % N < N - 1 && call.d[e] != first[e])
                        fail_msg("%s, %s%s, %g behind each row of B: element %d is %.9g, and was %.9g", info.name,
                                 hgemm_activation_name((hgemm_activation_t)activation), way < 3 ? "" : ", gathered",
                                 behind[way % 3], e, call.d[e], first[e]);
            }
            ran += runs;
        }
    expect_status(handle, hgemm_free(handle, list), HGEMM_STATUS_SUCCESS, "hgemm_free");
    if (!ran)
        skip();
}

static void relu_leaves_no_negative(void **state)
{
    (void)state;
    reset();
    call.desc.activation = HGEMM_ACTIVATION_RELU;
    run(0);
    for (int i = 0; i < SIZE; i++)
        assert_element(i, call.b[i] < 0 ? 0 : call.b[i]);
}

/* Nor -0, whether it was a zero before or became one when it was rounded: by pairs of halves, by floats, in a D that is
 * aligned or not. */
static void relu_leaves_no_negative_zero(void **state)
{
    (void)state;
    int ran = 0;
    for (int i = 0; i < KERNELS * 3 * 2; i++) {
        if (!reset_halves(i / 6))
            continue;
        call.desc.activation = HGEMM_ACTIVATION_RELU, call.desc.type_d = types[i / 2 % 3];
        call.desc.type_bias = HGEMM_TYPE_F16;
        for (int j = 0; j < N; j++)
            call.bias[j] = -0.0;
        for (int e = 0; e < SIZE; e++)
            call.a[e % (M * K)] *= e < M * K ? -0x1p-14 : 1, call.b[e] = e % 2 ? 0x1p-14 : 0;
        run(WITH_BIAS | (i % 2 ? D_IS_ODD : 0));
        ran++;
        for (int e = 0; e < SIZE; e++)
            if (call.d[e] != 0 || signbit(call.d[e]))
                fail_msg("%s, type %d: element %d is %g", kernels[i / 6], (int)call.desc.type_d, e, call.d[e]);
    }
    if (!ran)
        skip();
}

static void a_gate_of_zero_leaves_infinity_nan(void **state)
{
    (void)state;
    reset();
    call.b[0] = INFINITY, call.gate[0] = 0;
    call.b[1] = 2, call.gate[1] = -INFINITY;
    for (int i = 1; i < M; i++)
        call.a[i * K] = call.a[i] = 0;
    run(WITH_GATE);
    assert_element(0, NAN);
    assert_element(1, -INFINITY);
    assert_element(2, call.b[2] * call.gate[2]);
}

/* ---- Rounding ---------------------------------------------------------------------------------- */

static void a_float_d_keeps_what_a_half_cannot(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++) {
        reset();
        call.desc.type_d = types[t];
        for (int i = 0; i < M * K; i++)
            call.a[i] = 256;
        for (int i = 0; i < K * N; i++)
            call.b[i] = 255;
        run(0);
        for (int i = 0; i < SIZE; i++)
            assert_element(i, rounded(types[t], 256.0 * 255 * K));
        assert_int_equal(isinf(call.d[0]) != 0, types[t] == HGEMM_TYPE_F16);
    }
}

/* Half an ulp of the sum and a trifle of the bias: rounded before the bias is added, all would be even. */
static void all_is_rounded_once(void **state)
{
    (void)state;
    const double sums[] = {2049, 2049, 257}, trifles[] = {0x1p-6, 0x1p-6, 0x1p-6};
    for (int t = 0; t < 3; t++) {
        reset();
        call.desc.type_d = types[t];
        for (int i = 0; i < M * K; i++)
            call.a[i] = i % K < 2;
        for (int i = 0; i < K * N; i++)
            call.b[i] = i / N == 0 ? sums[t] - 1 : i / N == 1;
        for (int j = 0; j < N; j++)
            call.bias[j] = trifles[t];
        run(WITH_BIAS);
        for (int i = 0; i < SIZE; i++)
            assert_element(i, rounded(types[t], sums[t] + trifles[t]));
        assert_true(call.d[0] > sums[t]);
        run(0);
        for (int i = 0; i < SIZE; i++) /* to even */
            assert_element(i, rounded(types[t], sums[t]));
        assert_true(types[t] == HGEMM_TYPE_F32 || call.d[0] < sums[t]);
    }
}

/* ---- Signs of zeros ---------------------------------------------------------------------------- */

/* What is not there changes no zero: beta * C keeps its sign where there is no product, through every type of D,
 * but where ReLU makes it 0; a bias of -0 leaves it as it is, and one of +0 makes it +0. */
static void zeros_of_c_keep_their_sign(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int activation = HGEMM_ACTIVATION_NONE; activation <= HGEMM_ACTIVATION_RELU; activation++)
            for (int with = 0; with <= WITH_BIAS + WITH_GATE; with += 2)
                for (int sign = 0; sign < 2; sign++) {
                    reset();
                    call.desc.activation = (hgemm_activation_t)activation;
                    call.desc.type_c = call.desc.type_d = types[t];
                    call.desc.alpha = 0, call.desc.beta = 1;
                    for (int i = 0; i < SIZE; i++)
                        call.c[i] = i % 2 ? -0.0 : 0;
                    for (int j = 0; j < N; j++)
                        call.bias[j] = sign ? -0.0 : 0;
                    run(with | WITH_C | WITHOUT_AB);
                    for (int i = 0; i < SIZE; i++) {
                        assert_element(i, 0);
                        const int is_negative = activation == HGEMM_ACTIVATION_NONE && i % 2;
                        assert_int_equal(!!signbit(call.d[i]), is_negative && (sign || !(with & WITH_BIAS)));
                    }
                }
}

/* A sum begins with +0, and so does what C would have given where it is not read: a product of zeros is +0, whatever
 * their signs and that of alpha. */
static void products_of_zeros_are_positive(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int half = 0; half < 2; half++) {
            reset();
            call.desc.accumulate = half ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
            call.desc.type_d = types[t];
            call.desc.alpha = -1;
            for (int i = 0; i < K * N; i++)
                call.b[i] = i % 2 ? -0.0 : 0;
            run(0);
            for (int i = 0; i < SIZE; i++) {
                assert_element(i, 0);
                assert_false(signbit(call.d[i]));
            }
        }
}

/* ---- What is not read -------------------------------------------------------------------------- */

static void a_device_beta_of_zero_reads_no_c(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++)
        for (int fused = 0; fused < 2; fused++) {
            reset();
            for (int i = 0; i < SIZE; i++)
                call.c[i] = i % 2 ? NAN : INFINITY;
            call.scalars[1] = 0, call.desc.beta = NAN;
            run(WITH_C | BETA_DEVICE | (in_place ? D_IS_C : 0) | (fused ? WITH_BIAS : 0));
            for (int i = 0; i < SIZE; i++)
                assert_element(i, call.b[i] + (fused ? call.bias[i % N] : 0));
        }
}

static void a_device_alpha_of_zero_ignores_a_and_b(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        reset();
        call.desc.accumulate = half ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
        for (int i = 0; i < M * K; i++)
            call.a[i] = NAN;
        call.scalars[0] = 0, call.scalars[1] = 2, call.desc.alpha = NAN;
        run(WITH_C | ALPHA_DEVICE | BETA_DEVICE | WITH_BIAS);
        for (int i = 0; i < SIZE; i++)
            assert_element(i, 2 * call.c[i] + call.bias[i % N]);
    }
}

static void device_scalars_are_read_when_the_kernel_runs(void **state)
{
    (void)state;
    reset();
    call.scalars[0] = -3, call.scalars[1] = 0.5, call.desc.alpha = call.desc.beta = NAN;
    run(WITH_C | ALPHA_DEVICE | BETA_DEVICE);
    for (int i = 0; i < SIZE; i++)
        assert_element(i, -3 * call.b[i] + 0.5 * call.c[i]);
}

/* No shortcut drops bias, activation or gate: where k is 0, where alpha is, and where D is C and beta 1 on top. */
static void nothing_read_is_not_nothing_to_do(void **state)
{
    (void)state;
    for (int by = 0; by < 2; by++)
        for (int beta = 0; beta < 2; beta++)
            for (int with = 0; with < 8; with += 2) {
                reset();
                *(by ? &call.desc.alpha : &(float){0}) = 0;
                call.desc.k = by ? K : 0;
                call.desc.beta = (float)beta;
                call.desc.activation = HGEMM_ACTIVATION_RELU;
                run(with | WITHOUT_AB | (beta ? WITH_C | D_IS_C : 0));
                for (int i = 0; i < SIZE; i++) {
                    double x = beta * call.c[i] + (with & WITH_BIAS ? call.bias[i % N] : 0);
                    assert_element(i, (x > 0 ? x : 0) * (with & WITH_GATE ? call.gate[i] : 1));
                }
            }
}

/* ---- Groups ------------------------------------------------------------------------------------ */

static void empty_groups_write_nothing(void **state)
{
    (void)state;
    int64_t ends[4] = {0, 0, 3, 3};
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, sizeof ends), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    for (int rows = 0; rows <= 3; rows += 3) {
        ends[2] = ends[3] = rows;
        expect_status(handle, hgemm_upload(handle, device, ends, sizeof ends), HGEMM_STATUS_SUCCESS, "hgemm_upload");
        reset();
        call.desc.batch = 4, call.desc.batch_mode = HGEMM_BATCH_GROUPED;
        call.desc.group_ends = device, call.desc.index_type = HGEMM_INDEX_I64;
        call.desc.stride_b = call.desc.stride_bias = 0;
        run(WITH_BIAS);
        for (int i = 0; i < SIZE; i++) /* D was 0 */
            assert_element(i, i / N < rows ? call.b[i] + call.bias[i % N] : 0);
    }
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_of_special_values),
        cmocka_unit_test(activations_are_within_their_errors),
        cmocka_unit_test(activations_are_as_steep_as_their_rows_say),
        cmocka_unit_test(an_activation_of_nan_is_nan_wherever_it_comes_from),
        cmocka_unit_test(neighbours_of_special_values_are_their_own),
        cmocka_unit_test(every_way_to_d_gives_the_same_bits),
        cmocka_unit_test(a_column_that_is_not_there_counts_for_nothing),
        cmocka_unit_test(relu_leaves_no_negative),
        cmocka_unit_test(relu_leaves_no_negative_zero),
        cmocka_unit_test(a_gate_of_zero_leaves_infinity_nan),
        cmocka_unit_test(a_float_d_keeps_what_a_half_cannot),
        cmocka_unit_test(all_is_rounded_once),
        cmocka_unit_test(zeros_of_c_keep_their_sign),
        cmocka_unit_test(products_of_zeros_are_positive),
        cmocka_unit_test(a_device_beta_of_zero_reads_no_c),
        cmocka_unit_test(a_device_alpha_of_zero_ignores_a_and_b),
        cmocka_unit_test(device_scalars_are_read_when_the_kernel_runs),
        cmocka_unit_test(nothing_read_is_not_nothing_to_do),
        cmocka_unit_test(empty_groups_write_nothing),
    };
    handle = test_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    return failed;
}
