/* SPDX-License-Identifier: MIT */
/* Handles on a device: memory, streams, independence, many at once on many threads. */
#include "util.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 3, SIZE = 72 };

static hgemm_plan_t plan; /* that all threads run by, each with a handle of its own */

static hgemm_desc_t describe(void *const device[3])
{
    hgemm_desc_t d;
    hgemm_desc_init(&d);
    d.m = d.n = d.k = d.lda = d.ldb = d.ldd = SIZE;
    d.a = device[0], d.b = device[1], d.d = device[2];
    return d;
}

static void make_plan(void)
{
    static _Alignas(16) uint16_t aligned[3][8];
    hgemm_handle_t handle = NULL;
    expect_status(NULL, hgemm_create(&handle, NULL), HGEMM_STATUS_SUCCESS, "hgemm_create");
    const hgemm_desc_t d = describe((void *[3]){aligned[0], aligned[1], aligned[2]});
    expect_status(handle, hgemm_plan_create(&plan, handle, &d), HGEMM_STATUS_SUCCESS, "hgemm_plan_create");
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
}

/* D = A * B for matrices whose entries follow from `tag`, on a handle of its own; for every second tag by the plan. */
static void multiply_once(uint64_t tag)
{
    enum { COUNT = SIZE * SIZE };
    hgemm_handle_t handle = NULL;
    uint16_t host[3][COUNT];
    float value[2][COUNT];
    void *device[3];
    rng_t rng = {tag};
    expect_status(NULL, hgemm_create(&handle, NULL), HGEMM_STATUS_SUCCESS, "hgemm_create");
    for (int x = 0; x < 3; x++) {
        for (int i = 0; x < 2 && i < COUNT; i++) {
            value[x][i] = (float)rng_between(&rng, -2, 2);
            host[x][i] = hgemm_half_from_float(value[x][i]);
        }
        expect_status(handle, hgemm_malloc(handle, &device[x], sizeof host[x]), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        if (x < 2)
            expect_status(handle, hgemm_upload(handle, device[x], host[x], sizeof host[x]), HGEMM_STATUS_SUCCESS,
                          "hgemm_upload");
    }
    const hgemm_desc_t d = describe(device);
    expect_status(handle, tag % 2 ? hgemm_plan_run(plan, handle, &d) : hgemm_run_desc(handle, &d), HGEMM_STATUS_SUCCESS,
                  "a product on a thread");
    expect_status(handle, hgemm_download(handle, host[2], device[2], sizeof host[2]), HGEMM_STATUS_SUCCESS,
                  "hgemm_download");
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            float sum = 0;
            for (int l = 0; l < SIZE; l++)
                sum += value[0][i * SIZE + l] * value[1][l * SIZE + j];
            expect_true(hgemm_half_to_float(host[2][i * SIZE + j]) == sum, "a product on a thread is wrong");
        }
    for (int x = 0; x < 3; x++)
        expect_status(handle, hgemm_free(handle, device[x]), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
}

static void *thread(void *tag)
{
    for (int round = 0; round < ROUNDS; round++)
        multiply_once((uint64_t)(uintptr_t)tag * ROUNDS + (uint64_t)round);
    return NULL;
}

static void handles_work_in_parallel(void)
{
    pthread_t threads[THREADS];
    make_plan();
    for (uintptr_t t = 0; t < THREADS; t++)
        expect_true(pthread_create(&threads[t], NULL, thread, (void *)t) == 0, "pthread_create");
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    hgemm_plan_destroy(plan);
}

static void memory_keeps_what_is_written(hgemm_handle_t handle)
{
    unsigned char sent[1000], received[1000];
    void *p = NULL, *q = NULL;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 1000; i++)
        sent[i] = (unsigned char)rng_next(&rng);
    expect_status(handle, hgemm_malloc(handle, &p, 1000), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &q, 1), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_true(p && q && p != q, "allocations are apart");
    expect_true((uintptr_t)p % 16 == 0 && (uintptr_t)q % 16 == 0, "allocations are aligned");
    expect_status(handle, hgemm_upload(handle, p, sent, 1000), HGEMM_STATUS_SUCCESS, "upload");
    expect_status(handle, hgemm_upload(handle, (char *)p + 3, sent + 500, 5), HGEMM_STATUS_SUCCESS, "upload of a part");
    memcpy(sent + 3, sent + 500, 5);
    expect_status(handle, hgemm_download(handle, received, p, 1000), HGEMM_STATUS_SUCCESS, "download");
    expect_true(memcmp(received, sent, 1000) == 0, "memory keeps what is written");
    expect_status(handle, hgemm_download(handle, received, (char *)p + 995, 5), HGEMM_STATUS_SUCCESS,
                  "download of a part");
    expect_true(memcmp(received, sent + 995, 5) == 0, "memory keeps what is written");
    expect_status(handle, hgemm_free(handle, p), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, q), HGEMM_STATUS_SUCCESS, "hgemm_free");
    p = sent;
    expect_status(handle, hgemm_malloc(handle, &p, SIZE_MAX / 4), HGEMM_STATUS_OUT_OF_MEMORY,
                  "an allocation beyond any memory");
    expect_true(p == sent, "a failed allocation writes nothing");
}

static void streams_are_remembered(hgemm_handle_t handle)
{
    int mark;
    void *stream = &mark;
    expect_status(handle, hgemm_get_stream(handle, &stream), HGEMM_STATUS_SUCCESS, "get_stream");
    expect_true(stream == NULL, "a new handle uses the default stream");
    expect_status(handle, hgemm_set_stream(handle, &mark), HGEMM_STATUS_SUCCESS, "set_stream");
    expect_status(handle, hgemm_get_stream(handle, &stream), HGEMM_STATUS_SUCCESS, "get_stream");
    expect_true(stream == &mark, "a handle remembers its stream");
    expect_status(handle, hgemm_set_stream(handle, NULL), HGEMM_STATUS_SUCCESS, "set_stream");
    expect_status(handle, hgemm_synchronize(handle), HGEMM_STATUS_SUCCESS, "synchronize");
}

static void info_is_plausible(hgemm_handle_t handle)
{
    hgemm_device_info_t info;
    expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "info");
    expect_true(info.name[0] && info.kind[0], "the device has a name and a kind");
    expect_true(10 * info.compute_major + info.compute_minor >= 75, "the device is Turing or newer");
    expect_true(info.multiprocessors > 0 && info.memory_bytes > 0, "the device has processors and memory");
}

int main(void)
{
    hgemm_handle_t handle = test_open();
    info_is_plausible(handle);
    memory_keeps_what_is_written(handle);
    streams_are_remembered(handle);
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    handles_work_in_parallel();
    printf("passed\n");
    return 0;
}
