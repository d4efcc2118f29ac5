/* SPDX-License-Identifier: MIT */
/*
 * Handles that come and go in some threads while others work on the same device: what one closes belongs to no other.
 *
 *     test_close [SECONDS]    (2; of the emulator each thread takes two handles, however long that is)
 */
#include "util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8, N = 64, ELEMENTS = N * N, BYTES = ELEMENTS * 2, PRODUCTS = 12 };

static double seconds = 2, began;
static atomic_long handles, products;

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* D = A * B of ones is N everywhere. 0 if the kernel is not there, or not for this problem. */
static int multiply(hgemm_handle_t handle, int kernel, const void *ones, void *d)
{
    uint16_t host[ELEMENTS];
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = N;
    desc.lda = desc.ldb = desc.ldd = N;
    desc.a = desc.b = ones, desc.d = d;
    desc.kernel = kernel;
    memset(host, 0xff, sizeof host);
    expect_status(handle, hgemm_upload(handle, d, host, BYTES), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    const hgemm_status_t status = hgemm_run_desc(handle, &desc);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        return 0;
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, host, d, BYTES), HGEMM_STATUS_SUCCESS, "hgemm_download");
    for (int i = 0; i < ELEMENTS; i++)
        if (hgemm_half_to_float(host[i]) != N) {
            printf("FAILED: element %d by kernel %d is %g\n", i, kernel, (double)hgemm_half_to_float(host[i]));
            exit(1);
        }
    products++;
    return 1;
}

/* By the first kernel from `kernel` on that is there; a build may have few. */
static void multiply_by_one(hgemm_handle_t handle, int kernel, const void *ones, void *d)
{
    const int count = hgemm_kernel_count() + 1;
    for (int i = 0; i < count; i++)
        if (multiply(handle, (kernel + i) % count, ones, d))
            return;
    printf("FAILED: no kernel multiplies\n");
    exit(1);
}

static void *come_and_go(void *argument)
{
    rng_t rng = {*(uint64_t *)argument};
    uint16_t host[ELEMENTS];
    hgemm_device_info_t info = {.is_emulated = 0};
    for (int i = 0; i < ELEMENTS; i++)
        host[i] = hgemm_half_from_float(1);
    for (int turn = 0; info.is_emulated ? turn < 2 : now() - began < seconds; turn++) {
        hgemm_handle_t handle = NULL;
        void *ones = NULL, *d = NULL;
        expect_status(NULL, hgemm_create(&handle, NULL), HGEMM_STATUS_SUCCESS, "hgemm_create");
        expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "hgemm_get_device_info");
        expect_status(handle, hgemm_malloc(handle, &ones, BYTES), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_malloc(handle, &d, BYTES), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_upload(handle, ones, host, BYTES), HGEMM_STATUS_SUCCESS, "hgemm_upload");
        for (int64_t i = rng_between(&rng, 1, PRODUCTS); i > 0; i--)
            multiply_by_one(handle, (int)rng_between(&rng, 0, hgemm_kernel_count()), ones, d);
        expect_status(handle, hgemm_free(handle, ones), HGEMM_STATUS_SUCCESS, "hgemm_free");
        expect_status(handle, hgemm_free(handle, d), HGEMM_STATUS_SUCCESS, "hgemm_free");
        expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
        handles++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    rng_t rng = {test_seed()};
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    hgemm_destroy(test_open()); /* which says that it is skipped where there is no device */
    began = now();
    for (int t = 0; t < THREADS; t++) {
        seeds[t] = rng_next(&rng);
        if (pthread_create(&threads[t], NULL, come_and_go, &seeds[t]) != 0) {
            printf("FAILED: no thread\n");
            return 1;
        }
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    printf("%ld handles, %ld products\n", (long)handles, (long)products);
    printf("passed\n");
    return 0;
}
