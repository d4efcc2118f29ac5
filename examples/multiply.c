/* SPDX-License-Identifier: MIT */
/* C = A * B for matrices of 512 x 512 on the default device. A is all 1/2, B all 2: C is all 512. */
#include <hgemm.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 512, BYTES = N * N * 2 };

/* The status says what went wrong, the handle's detail what the device said of it. */
static void must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "%s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
        exit(1);
    }
}

int main(void)
{
    static uint16_t a[N * N], b[N * N], c[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = hgemm_half_from_float(0.5f);
        b[i] = hgemm_half_from_float(2);
    }
    hgemm_handle_t handle = NULL;
    void *dev_a, *dev_b, *dev_c;
    must(NULL, hgemm_create(&handle, NULL));
    must(handle, hgemm_malloc(handle, &dev_a, BYTES));
    must(handle, hgemm_malloc(handle, &dev_b, BYTES));
    must(handle, hgemm_malloc(handle, &dev_c, BYTES));
    must(handle, hgemm_upload(handle, dev_a, a, BYTES));
    must(handle, hgemm_upload(handle, dev_b, b, BYTES));
    must(handle,
         hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, N, N, N, 1.0f, dev_a, N, dev_b, N, 0.0f, dev_c, N));
    must(handle, hgemm_download(handle, c, dev_c, BYTES));
    int wrong = 0;
    for (int i = 0; i < N * N; i++)
        wrong += hgemm_half_to_float(c[i]) != N;
    printf("C is all %d: %s\n", N, wrong ? "no" : "yes");
    must(handle, hgemm_free(handle, dev_a));
    must(handle, hgemm_free(handle, dev_b));
    must(handle, hgemm_free(handle, dev_c));
    must(NULL, hgemm_destroy(handle));
    return wrong != 0;
}
