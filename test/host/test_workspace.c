/* SPDX-License-Identifier: MIT */
/* The workspace of a handle grows where a plan asks for more, as far as it may. */
#include "util.h"

#include <stdint.h>
#include <stdlib.h>

/* A product whose planes are larger than the workspace that hgemm_create makes. Its sums are of ones. */
int main(void)
{
    enum { LINES = 128 };
    const int planes = hgemm_find_kernel("planes_128x128");
    hgemm_handle_t handle = test_open_for(planes);
    hgemm_device_info_t info;
    hgemm_plan_t plan = NULL;
    hgemm_plan_info_t told;
    void *a, *b, *d, *own;
    expect_status(handle, hgemm_get_device_info(handle, &info), HGEMM_STATUS_SUCCESS, "info");
    const int applies = info.compute_major >= 8; /* a T4 is given no planes */
    if (applies) {
        const size_t least = (size_t)32 << 20, most = (size_t)256 << 20, part = info.memory_bytes / 512;
        const size_t made = part < least ? least : part > most ? most : part;
        const int64_t k = (int64_t)(made / (4 * 2 * LINES)) + 33;
        float *ones = malloc((size_t)k * LINES * 4), sums[LINES * LINES];
        for (int64_t i = 0; i < k * LINES; i++)
            ones[i] = 1;
        const size_t bytes = (size_t)k * LINES * 4;
        expect_status(handle, hgemm_malloc(handle, &a, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_malloc(handle, &b, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_malloc(handle, &d, sizeof sums), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_malloc(handle, &own, (size_t)1 << 20), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
        expect_status(handle, hgemm_upload(handle, a, ones, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
        expect_status(handle, hgemm_upload(handle, b, ones, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
        hgemm_desc_t desc;
        hgemm_desc_init(&desc);
        desc.type_a = desc.type_b = desc.type_d = HGEMM_TYPE_F32, desc.accumulate = HGEMM_ACCUMULATE_F32;
        desc.m = desc.n = LINES, desc.k = k, desc.lda = k, desc.ldb = desc.ldd = LINES, desc.kernel = planes;
        desc.a = a, desc.b = b, desc.d = d;
        expect_status(handle, hgemm_set_workspace(handle, own, (size_t)1 << 20), HGEMM_STATUS_SUCCESS, "workspace");
        expect_status(handle, hgemm_prepare(handle, &desc), HGEMM_STATUS_NOT_SUPPORTED, "in a small workspace");
        expect_status(handle, hgemm_set_workspace(handle, NULL, 0), HGEMM_STATUS_SUCCESS, "the handle's own");
        expect_status(handle, hgemm_plan_create(&plan, handle, &desc), HGEMM_STATUS_SUCCESS, "in one that grows");
        expect_status(handle, hgemm_plan_get_info(plan, &told), HGEMM_STATUS_SUCCESS, "hgemm_plan_get_info");
        expect_true(told.workspace_bytes > made, "the plan needs more than hgemm_create made");
        expect_status(handle, hgemm_plan_run(plan, handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_plan_run");
        expect_status(handle, hgemm_download(handle, sums, d, sizeof sums), HGEMM_STATUS_SUCCESS, "hgemm_download");
        for (int i = 0; i < LINES * LINES; i++)
            expect_true(sums[i] == (float)k, "a sum of ones is k");
        hgemm_desc_t long_one = desc;
        long_one.k = long_one.lda = (int64_t)1 << 28; /* more than any handle has, and not read */
        long_one.a = (void *)((uintptr_t)1 << 40), long_one.b = (void *)((uintptr_t)1 << 41);
        long_one.d = (void *)((uintptr_t)1 << 42);
        expect_status(handle, hgemm_prepare(handle, &long_one), HGEMM_STATUS_NOT_SUPPORTED, "beyond what it grows to");
        expect_status(handle, hgemm_set_workspace(handle, own, (size_t)1 << 20), HGEMM_STATUS_SUCCESS, "workspace");
        expect_status(handle, hgemm_plan_run(plan, handle, &desc), HGEMM_STATUS_INVALID_PLAN, "with too little");
        hgemm_plan_destroy(plan);
        void *all[] = {a, b, d, own};
        for (int i = 0; i < 4; i++)
            expect_status(handle, hgemm_free(handle, all[i]), HGEMM_STATUS_SUCCESS, "hgemm_free");
        free(ones);
    }
    expect_status(NULL, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    return applies ? 0 : 77; /* skipped */
}
