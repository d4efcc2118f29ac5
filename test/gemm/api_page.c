/* SPDX-License-Identifier: MIT */
/* docs/api.md's lines of C, as they stand there and one after the other, between what they take for granted. */
#include "hgemm.h"

#include <stdio.h>
#include <stdlib.h>

enum { M = 24, N = 16, K = 64, GROUP = 32 };

static uint16_t halves_a[M * K], halves_b[K * N], halves_d[M * N], brains[K * N], scales[N * K / GROUP];
static uint8_t codes[N * K / 2];
static float unpacked[N * K], found_scale, in_half;
static hgemm_plan_info_t about_plan;
static hgemm_kernel_info_t about_kernel;
static hgemm_status_t failure;
static double ratio_of_none = -1;

static void must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "%s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
        exit(1);
    }
}

static void want(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static float number(int row, int at)
{
    return row == 0 && at == 0 ? 2.5F : (float)((row * 3 + at) % 5 - 2);
}

/* The page's lines. What they leave in variables of theirs is looked at by the caller. */
static void follow_page(void)
{
#include "api_page_1.inc"
    must(handle, hgemm_download(handle, &found_scale, scale, sizeof found_scale));
    about_plan = about, about_kernel = info, failure = status, in_half = first, ratio_of_none = ratio;
    free(packed);
#include "api_page_2.inc"
}

int main(void)
{
    for (int i = 0; i < M * K; i++)
        halves_a[i] = hgemm_half_from_float(number(i / K, i % K));
    halves_a[0] = 0; /* which the page sets */
    for (int i = 0; i < K * N; i++) {
        halves_b[i] = hgemm_half_from_float((float)(i % 3 - 1));
        brains[i] = i % 2 ? 0x4040 : 0xbf80; /* 3 and -1 */
    }
    for (int i = 0; i < N * K / 2; i++)
        codes[i] = (uint8_t)(i % 251);
    for (int i = 0; i < N * K / GROUP; i++)
        scales[i] = hgemm_half_from_float((float)(i + 1) / 4);
    follow_page();
    want(failure == HGEMM_STATUS_INVALID_HANDLE, "a copy to NULL fails");
    want(in_half == 2.5F, "a half is read back");
    want(found_scale == 0x1p14F, "the scale brings 3 to 2^15 or above");
    want(about_kernel.threads > 0 && about_plan.kernel > 0, "there is a kernel");
    want(ratio_of_none == 0, "without a file no ratio is known");
    for (int i = 0; i < N * K; i++) {
        const int code = codes[i / 2] >> i % 2 * 4 & 15;
        want(unpacked[i] == (float)(code < 8 ? code : code - 16) * hgemm_half_to_float(scales[i / GROUP]), "weights");
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* which is exact */
            for (int at = 0; at < K; at++)
                sum += number(i, at) * hgemm_half_to_float(halves_b[at * N + j]);
            want(halves_d[i * N + j] == hgemm_half_from_float(sum > 0 ? sum : 0), "D");
        }
    return 0;
}
