/* SPDX-License-Identifier: MIT */
/*
 * Errors of products of bfloat16 beside those of FP16 with FP32 sums, and beside sums in single precision one product
 * after the other, as JSON: root mean squares over that of sum |a||b|, of 128 x 128 results of FP32 with k = 2048.
 * A and B are the same numbers for all, each a bfloat16: normal ones; the same, of which one in a hundred is 8e5 times
 * as large; and numbers over 80 binades.
 */
#include <hgemm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"

static const char usage[] = "Usage: bf16_errors [DEVICE]\n"
                            "\n"
                            "Writes JSON: errors of products of BF16, of FP16, and of FP32 in order. DEVICE: default "
                            "t4emu\n";

enum { N = 128, K = 2048 };
enum { NORMAL, OUTLIERS, WIDE, KINDS };
enum { F16, GIVEN, FOUND, F32, WAYS };
static const char *const kind_names[KINDS] = {"normal", "outliers", "wide"};
static const char *const type_names[WAYS] = {"f16", "bf16", "bf16", "f32"};
static const char *const scale_names[WAYS] = {"none", "given", "found", "none"};

static hgemm_handle_t handle;
static uint64_t state = 1;

static void want(hgemm_status_t status)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return;
    fprintf(stderr, "bf16_errors: %s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
    exit(1);
}

/* In [0, 1): a linear congruential generator's upper bits. */
static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double draw(int kind)
{
    double sum = -6;
    if (kind == WIDE)
        return ldexp(2 * uniform() - 1, (int)(uniform() * 81) - 40);
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return kind == OUTLIERS && uniform() < 0.01 ? 8e5 * sum : sum;
}

/* The upper half of a float: cut, not rounded, which is as good here. */
static uint16_t bfloat16_of(double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float value_of(uint16_t bfloat16)
{
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void *place(const void *host, size_t bytes)
{
    void *device;
    want(hgemm_malloc(handle, &device, bytes));
    want(hgemm_upload(handle, device, host, bytes));
    return device;
}

/* A is N x K, B^T too. */
static uint16_t a[N][K], b[N][K], half_a[N][K], half_b[N][K];
static float d[N][N];

static void multiply(int way)
{
    hgemm_desc_t desc;
    const int is_f16 = way == F16;
    const float none = 0;
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.type_a = desc.type_b = is_f16 ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16, desc.type_d = HGEMM_TYPE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.m = desc.n = N, desc.k = K;
    desc.lda = desc.ldb = K, desc.ldd = N;
    void *const on_a = place(is_f16 ? half_a : a, sizeof a), *const on_b = place(is_f16 ? half_b : b, sizeof b);
    float *const scales[2] = {place(&none, sizeof none), place(&none, sizeof none)};
    desc.a = on_a, desc.b = on_b, desc.d = place(d, sizeof d);
    if (way == GIVEN) {
        want(hgemm_find_scale(handle, N, K, on_a, K, scales[0]));
        want(hgemm_find_scale(handle, N, K, on_b, K, scales[1]));
        desc.scale_a_pointer = scales[0], desc.scale_b_pointer = scales[1];
    }
    want(hgemm_run_desc(handle, &desc));
    want(hgemm_download(handle, d, desc.d, sizeof d));
    want(hgemm_free(handle, on_a)), want(hgemm_free(handle, on_b)), want(hgemm_free(handle, desc.d));
    want(hgemm_free(handle, scales[0])), want(hgemm_free(handle, scales[1]));
}

static void add_in_order(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int p = 0; p < K; p++)
                sum = fmaf(value_of(a[i][p]), value_of(b[j][p]), sum);
            d[i][j] = sum;
        }
}

/* Of d; infinite or NaN where an element of it is. */
static double error_of_d(void)
{
    double errors = 0, sizes = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0, absolute = 0;
            for (int p = 0; p < K; p++) {
                const double product = (double)value_of(a[i][p]) * (double)value_of(b[j][p]);
                sum += product, absolute += fabs(product);
            }
            errors += ((double)d[i][j] - sum) * ((double)d[i][j] - sum);
            sizes += absolute * absolute;
        }
    return sqrt(errors / sizes);
}

int main(int argc, char **argv)
{
    hgemm_device_info_t info;
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--help") == 0)) {
        printf("%s", usage);
        return argc > 2 ? 2 : 0;
    }
    want(hgemm_create(&handle, argc == 2 ? argv[1] : "t4emu"));
    want(hgemm_get_device_info(handle, &info));
    printf("{\n\"context\": {\n  \"gpu\": \"%s\",\n  \"hgemm\": \"%d.%d.%d, commit %s, nvcc %s\",\n  \"witness\": "
           "\"%s\",\n  \"depends\": \"k5_tuned recompute scale\"\n},\n\"results\": [",
           info.name, HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, HGEMM_COMMIT, HGEMM_NVCC_VERSION,
           info.is_emulated ? "emulated" : "measured");
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < N * K; i++) {
            a[i / K][i % K] = bfloat16_of(draw(kind)), b[i / K][i % K] = bfloat16_of(draw(kind));
            half_a[i / K][i % K] = hgemm_half_from_float(value_of(a[i / K][i % K]));
            half_b[i / K][i % K] = hgemm_half_from_float(value_of(b[i / K][i % K]));
        }
        for (int way = 0; way < WAYS; way++) {
            if (way == F32)
                add_in_order();
            else
                multiply(way);
            const double error = error_of_d();
            printf("%s\n{\"data\": \"%s\", \"type\": \"%s\", \"scales\": \"%s\", \"rms_error\": ",
                   kind + way ? "," : "", kind_names[kind], type_names[way], scale_names[way]);
            printf(isfinite(error) ? "%.1e}" : "null}", error);
        }
    }
    printf("\n]\n}\n");
    return hgemm_destroy(handle) != HGEMM_STATUS_SUCCESS;
}
