/* SPDX-License-Identifier: MIT */
#include "util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* splitmix64 */
uint64_t rng_next(rng_t *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t rng_between(rng_t *rng, int64_t lowest, int64_t highest)
{
    return lowest + (int64_t)(rng_next(rng) % (uint64_t)(highest - lowest + 1));
}

double rng_symmetric(rng_t *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-52 - 1;
}

uint64_t test_seed(void)
{
    const char *text = getenv("HGEMM_TEST_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    printf("HGEMM_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

int test_full(void)
{
    const char *text = getenv("HGEMM_TEST_FULL");
    return text && *text && strcmp(text, "0") != 0;
}

hgemm_handle_t test_open(void)
{
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, NULL);
    if (status == HGEMM_STATUS_NO_DRIVER || status == HGEMM_STATUS_NO_DEVICE || status == HGEMM_STATUS_OLD_DEVICE) {
        printf("SKIPPED, no device: %s (%s)\n", hgemm_status_string(status), hgemm_error_detail(NULL));
        exit(TEST_SKIPPED);
    }
    expect_status(NULL, status, HGEMM_STATUS_SUCCESS, "hgemm_create");
    hgemm_device_info_t info;
    expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "hgemm_get_device_info");
    printf("device: %s (%s), compute capability %d.%d, %d multiprocessors\n", info.name, info.kind, info.compute_major,
           info.compute_minor, info.multiprocessors);
    return handle;
}

void expect_status(hgemm_handle_t handle, hgemm_status_t status, hgemm_status_t expected, const char *what)
{
    if (status == expected)
        return;
    printf("FAILED: %s: got %s, want %s (%s)\n", what, hgemm_status_name(status), hgemm_status_name(expected),
           hgemm_error_detail(handle));
    exit(1);
}

void expect_true(int condition, const char *what)
{
    if (!condition) {
        printf("FAILED: %s\n", what);
        exit(1);
    }
}
