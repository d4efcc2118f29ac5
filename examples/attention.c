/* SPDX-License-Identifier: MIT */
/*
 * One call with a descriptor: the attention scores Q * K^T / sqrt(64) of eight heads, with sums in single
 * precision. The heads of Q and K lie side by side in each row, so a leading dimension and a stride are
 * all it takes to read them in place.
 */
#include <hgemm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 8, TOKENS = 128, DIM = 64, WIDTH = HEADS * DIM };

static uint16_t q[TOKENS][WIDTH], k[TOKENS][WIDTH], scores[HEADS][TOKENS][TOKENS];

/* The status says what went wrong, the handle's detail what the device said of it. */
static void must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "%s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
        exit(1);
    }
}

static void fill(uint16_t (*x)[WIDTH])
{
    for (int token = 0; token < TOKENS; token++)
        for (int i = 0; i < WIDTH; i++)
            x[token][i] = hgemm_half_from_float((float)(rand() % 17 - 8) / 8);
}

int main(void)
{
    hgemm_handle_t handle = NULL;
    void *dev_q, *dev_k, *dev_scores;
    fill(q);
    fill(k);
    must(NULL, hgemm_create(&handle, NULL));
    must(handle, hgemm_malloc(handle, &dev_q, sizeof q));
    must(handle, hgemm_malloc(handle, &dev_k, sizeof k));
    must(handle, hgemm_malloc(handle, &dev_scores, sizeof scores));
    must(handle, hgemm_upload(handle, dev_q, q, sizeof q));
    must(handle, hgemm_upload(handle, dev_k, k, sizeof k));

    hgemm_desc_t desc;
    hgemm_desc_init(&desc); /* row-major, no transpose, half sums, one product, beta 0 */
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.m = desc.n = TOKENS, desc.k = DIM, desc.batch = HEADS;
    desc.alpha = 1 / sqrtf(DIM);
    desc.a = dev_q, desc.lda = WIDTH, desc.stride_a = DIM;
    desc.b = dev_k, desc.ldb = WIDTH, desc.stride_b = DIM;
    desc.d = dev_scores, desc.ldd = TOKENS, desc.stride_d = TOKENS * TOKENS;
    must(handle, hgemm_run_desc(handle, &desc)); /* returns once it is enqueued; the download waits for it */
    must(handle, hgemm_download(handle, scores, dev_scores, sizeof scores));

    int wrong = 0;
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < TOKENS; i++)
            for (int j = 0; j < TOKENS; j++) {
                float sum = 0; /* exact: multiples of 1/64 below 64 */
                for (int e = head * DIM; e < (head + 1) * DIM; e++)
                    sum += hgemm_half_to_float(q[i][e]) * hgemm_half_to_float(k[j][e]);
                wrong += scores[head][i][j] != hgemm_half_from_float(desc.alpha * sum);
            }
    printf("scores of %d heads, %d differ from the CPU's\n", HEADS, wrong);
    must(handle, hgemm_free(handle, dev_q));
    must(handle, hgemm_free(handle, dev_k));
    must(handle, hgemm_free(handle, dev_scores));
    must(NULL, hgemm_destroy(handle));
    return wrong != 0;
}
