/* SPDX-License-Identifier: MIT */
/* The workspace of a handle grows where a plan asks for more, as far as it may: on newer GPUs, of which the emulated T4
 * takes the plans here. The plans copy operands that are larger than what hgemm_create makes. */
#include "util.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t one = 0x3c00;
static const size_t small = (size_t)1 << 20;

/* Bytes that hgemm_create makes; 0: the device's workspace does not grow. */
static size_t made_on(hgemm_handle_t handle)
{
    const size_t least = (size_t)32 << 20, most = (size_t)256 << 20;
    hgemm_device_info_t info;
    expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "info");
    const size_t part = info.memory_bytes / 512 >> 20 << 20;
    return info.compute_major < 8 ? 0 : part < least ? least : part > most ? most : part;
}

static hgemm_handle_t open_newer(void)
{
    hgemm_handle_t handle = test_open();
    hgemm_device_info_t info;
    expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "info");
    if (!info.is_emulated || info.compute_major >= 8)
        return handle;
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    expect_status(NULL, hgemm_create(&handle, "t4emu:newer"), HGEMM_STATUS_SUCCESS, "hgemm_create");
    return handle;
}

static hgemm_desc_t describe(int64_t m, int64_t n, int64_t k)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = m, desc.n = n, desc.k = k, desc.lda = k, desc.ldb = desc.ldd = n;
    desc.a = (void *)((uintptr_t)1 << 40), desc.b = (void *)((uintptr_t)1 << 41);
    desc.d = (void *)((uintptr_t)1 << 42); /* not read or written where the call is not run */
    return desc;
}

static size_t workspace_of(hgemm_plan_t plan)
{
    hgemm_plan_info_t info;
    expect_status(NULL, hgemm_plan_get_info(plan, &info), HGEMM_STATUS_SUCCESS, "hgemm_plan_get_info");
    return info.workspace_bytes;
}

/* A plan for the call in the words of plan_text.h. */
static hgemm_status_t plan_by(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc, const char *words)
{
    char text[HGEMM_PLAN_TEXT];
    hgemm_plan_t chosen = NULL;
    expect_status(handle, hgemm_plan_create(&chosen, handle, desc), HGEMM_STATUS_SUCCESS, "hgemm_plan_create");
    expect_status(handle, hgemm_plan_get_text(chosen, text), HGEMM_STATUS_SUCCESS, "hgemm_plan_get_text");
    hgemm_plan_destroy(chosen);
    char *const own = strrchr(text, '|') + 2;
    snprintf(own, (size_t)(text + sizeof text - own), "%s", words);
    return hgemm_plan_from_text(plan, handle, desc, text);
}

/* What a call would run: in a small workspace without copies, in the handle's own with them. */
static void choice_lets_it_grow(void)
{
    hgemm_handle_t handle = open_newer();
    const size_t made = made_on(handle);
    const int64_t side = (int64_t)sqrt((double)made / 4) / 2 * 2 + 65; /* odd */
    const hgemm_desc_t desc = describe(side, side, side);
    void *own;
    hgemm_plan_t plan = NULL;
    expect_status(handle, hgemm_malloc(handle, &own, small), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_set_workspace(handle, own, small), HGEMM_STATUS_SUCCESS, "workspace");
    expect_status(handle, hgemm_plan_create(&plan, handle, &desc), HGEMM_STATUS_SUCCESS, "in a small workspace");
    expect_true(workspace_of(plan) <= small, "the plan fits a small workspace");
    hgemm_plan_destroy(plan);
    expect_status(handle, hgemm_set_workspace(handle, NULL, 0), HGEMM_STATUS_SUCCESS, "the handle's own");
    expect_status(handle, hgemm_plan_create(&plan, handle, &desc), HGEMM_STATUS_SUCCESS, "in one that grows");
    expect_true(workspace_of(plan) > made, "the plan needs more than hgemm_create made");
    hgemm_plan_destroy(plan);
    expect_status(handle, hgemm_free(handle, own), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
}

/* A plan from elsewhere, which is run: rows of A are K halves, and those of its copy 128 bytes. Sums of ones are K. */
static void plan_lets_it_grow(void)
{
    enum { N = 32, K = 9 };
    static const uint16_t sum = 0x4880; /* 9 */
    static const char words[] = "k5_64x32 nn x16 copies a";
    hgemm_handle_t handle = open_newer();
    const size_t made = made_on(handle);
    const int64_t m = (int64_t)(made / 128) + 1;
    const size_t elements = (size_t)m * N;
    hgemm_desc_t desc = describe(m, N, K);
    hgemm_plan_t plan = NULL;
    void *a, *b, *d, *own;
    uint16_t *host = malloc(elements * 2);
    for (size_t i = 0; i < elements; i++)
        host[i] = one;
    expect_status(handle, hgemm_malloc(handle, &a, (size_t)m * K * 2), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &b, N * K * 2), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &d, elements * 2), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &own, small), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, a, host, (size_t)m * K * 2), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    expect_status(handle, hgemm_upload(handle, b, host, N * K * 2), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    desc.a = a, desc.b = b, desc.d = d;
    expect_status(handle, hgemm_set_workspace(handle, own, small), HGEMM_STATUS_SUCCESS, "workspace");
    expect_status(handle, plan_by(&plan, handle, &desc, words), HGEMM_STATUS_INVALID_PLAN, "in a small workspace");
    expect_status(handle, hgemm_set_workspace(handle, NULL, 0), HGEMM_STATUS_SUCCESS, "the handle's own");
    expect_status(handle, plan_by(&plan, handle, &desc, words), HGEMM_STATUS_SUCCESS, "in one that grows");
    expect_true(workspace_of(plan) > made, "the plan needs more than hgemm_create made");
    expect_status(handle, hgemm_plan_run(plan, handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_plan_run");
    expect_status(handle, hgemm_download(handle, host, d, elements * 2), HGEMM_STATUS_SUCCESS, "hgemm_download");
    for (size_t i = 0; i < elements; i++)
        expect_true(host[i] == sum, "a sum of ones is k");
    const hgemm_desc_t long_one = describe((int64_t)1 << 28, N, K); /* whose copy is more than any handle has */
    hgemm_plan_t none = NULL;
    expect_status(handle, plan_by(&none, handle, &long_one, words), HGEMM_STATUS_INVALID_PLAN,
                  "beyond what it grows to");
    expect_status(handle, hgemm_set_workspace(handle, own, small), HGEMM_STATUS_SUCCESS, "workspace");
    expect_status(handle, hgemm_plan_run(plan, handle, &desc), HGEMM_STATUS_INVALID_PLAN, "with too little");
    hgemm_plan_destroy(plan);
    void *all[] = {a, b, d, own};
    for (int i = 0; i < 4; i++)
        expect_status(handle, hgemm_free(handle, all[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
    free(host);
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
}

int main(void)
{
    hgemm_handle_t handle = open_newer();
    const int applies = made_on(handle) > 0;
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    if (!applies)
        return TEST_SKIPPED;
    choice_lets_it_grow();
    plan_lets_it_grow();
    return 0;
}
