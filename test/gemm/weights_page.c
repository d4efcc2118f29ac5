/* SPDX-License-Identifier: MIT */
/* docs/weights.md's lines of C, as they stand there, between what they take for granted: they give the product. */
#include "hgemm.h"

#include <stdio.h>
#include <stdlib.h>

enum { M = 5, N = 40, K = 384, GROUP = 128 };

static void must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "%s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
        exit(1);
    }
}

static void *place(hgemm_handle_t handle, const void *host, size_t bytes)
{
    void *device;
    must(handle, hgemm_malloc(handle, &device, bytes));
    must(handle, hgemm_upload(handle, device, host, bytes));
    return device;
}

static void multiply(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, const void *codes, const void *scales,
                     const void *x, void *y)
{
#include "weights_page.inc"
    must(handle, hgemm_free(handle, packed));
}

static int code(int row, int at)
{
    return (row * 7 + at * 5) % 16 - 8;
}

static float scale(int row, int group)
{
    return row % 2 ? 0.5F : (float)(group + 1);
}

static float number(int row, int at)
{
    return (float)((row * 3 + at) % 5 - 2);
}

int main(void)
{
    static uint8_t codes[N * K / 2];
    static uint16_t scales[N * K / GROUP], x[M * K], y[M * N];
    hgemm_handle_t handle;
    must(NULL, hgemm_create(&handle, NULL));
    for (int row = 0; row < N; row++)
        for (int at = 0; at < K; at++) {
            codes[(row * K + at) / 2] |= (uint8_t)((code(row, at) & 15) << at % 2 * 4);
            scales[(row * K + at) / GROUP] = hgemm_half_from_float(scale(row, at / GROUP));
        }
    for (int i = 0; i < M * K; i++)
        x[i] = hgemm_half_from_float(number(i / K, i % K));
    void *const device[] = {place(handle, codes, sizeof codes), place(handle, scales, sizeof scales),
                            place(handle, x, sizeof x), place(handle, y, sizeof y)};
    multiply(handle, M, N, K, device[0], device[1], device[2], device[3]);
    must(handle, hgemm_download(handle, y, device[3], sizeof y));
    for (int i = 0; i < 4; i++)
        must(handle, hgemm_free(handle, device[i]));
    hgemm_destroy(handle);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* which is exact */
            for (int at = 0; at < K; at++)
                sum += number(i, at) * (float)code(j, at) * scale(j, at / GROUP);
            if (y[i * N + j] != hgemm_half_from_float(sum)) {
                fprintf(stderr, "element (%d, %d) is %g, want %g\n", i, j, (double)hgemm_half_to_float(y[i * N + j]),
                        (double)sum);
                return 1;
            }
        }
    return 0;
}
