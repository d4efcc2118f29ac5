/* SPDX-License-Identifier: MIT */
/* Plans on a device: every bit as the call without, whole, split and copied, with the workspace that they ask for. */
#include "problem_of.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "select/plan_text.h"

enum { MOST = 12 };

static void must(hgemm_handle_t handle, hgemm_status_t status, const char *what)
{
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, what);
}

static void *upload_integers(hgemm_handle_t handle, rng_t *rng, hgemm_type_t type, int64_t count)
{
    const size_t bytes = (size_t)count * (type == HGEMM_TYPE_F32 ? sizeof(float) : sizeof(uint16_t));
    void *host = malloc(bytes), *device = NULL;
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)rng_between(rng, -1, 1);
        if (type == HGEMM_TYPE_F32)
            ((float *)host)[i] = x;
        else
            ((uint16_t *)host)[i] = hgemm_half_from_float(x);
    }
    must(handle, hgemm_malloc(handle, &device, bytes), "hgemm_malloc");
    must(handle, hgemm_upload(handle, device, host, bytes), "hgemm_upload");
    free(host);
    return device;
}

/* D of a call by a plan or, where that is NULL, without; before, D is NaN. */
static uint16_t *result(hgemm_handle_t handle, const hgemm_desc_t *desc, hgemm_plan_t plan)
{
    size_t bytes = (size_t)(desc->m * desc->n) * sizeof(uint16_t);
    uint16_t *host = malloc(bytes);
    memset(host, 0xff, bytes);
    must(handle, hgemm_upload(handle, desc->d, host, bytes), "hgemm_upload");
    if (plan)
        must(handle, hgemm_plan_run(plan, handle, desc), "hgemm_plan_run");
    else
        must(handle, hgemm_run_desc(handle, desc), "hgemm_run_desc");
    must(handle, hgemm_download(handle, host, desc->d, bytes), "hgemm_download");
    return host;
}

/* All plans that selection weighs, each made of its text, on a workspace of just the bytes that it asks for. */
static int plans_agree(hgemm_handle_t handle, hgemm_type_t type_a, hgemm_type_t type_b, hgemm_accuracy_t accuracy,
                       int64_t m, int64_t n, int64_t k, int offset)
{
    rng_t rng = {test_seed()};
    const int is_of_floats = type_a == HGEMM_TYPE_F32 || type_b == HGEMM_TYPE_F32;
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.type_a = type_a, desc.type_b = type_b, desc.accuracy = accuracy;
    desc.accumulate = is_of_floats ? HGEMM_ACCUMULATE_F32 : HGEMM_ACCUMULATE_F16;
    desc.m = m, desc.n = n, desc.k = k;
    desc.lda = k, desc.ldb = desc.ldc = desc.ldd = n;
    void *a = upload_integers(handle, &rng, type_a, m * k + offset);
    void *b = upload_integers(handle, &rng, type_b, k * n), *d = NULL;
    must(handle, hgemm_malloc(handle, &d, (size_t)(m * n) * 2), "hgemm_malloc");
    desc.a = (const char *)a + offset * (type_a == HGEMM_TYPE_F32 ? 4 : 2), desc.b = b, desc.c = desc.d = d;
    uint16_t *wanted = result(handle, &desc, NULL);

    priced_plan_t ranked[MOST];
    int count = rank_plans(problem_of(&desc), &handle->machine, handle->workspace_bytes, ranked, MOST),
        with_workspace = 0;
    for (int i = 0; i < count; i++) {
        hgemm_plan_t plan, again;
        hgemm_plan_info_t info;
        char text[HGEMM_PLAN_TEXT];
        void *workspace = NULL;
        must(handle, hgemm_plan_create(&plan, handle, &desc), "hgemm_plan_create");
        must(handle, hgemm_plan_get_text(plan, text), "hgemm_plan_get_text");
        plan_to_text(&ranked[i].plan, strrchr(text, '|') + 2);
        must(handle, hgemm_plan_from_text(&again, handle, &desc, text), text);
        must(handle, hgemm_plan_get_info(again, &info), "hgemm_plan_get_info");
        with_workspace += info.workspace_bytes > 0;
        must(handle, hgemm_malloc(handle, &workspace, info.workspace_bytes), "hgemm_malloc");
        must(handle, hgemm_set_workspace(handle, workspace, info.workspace_bytes), "hgemm_set_workspace");
        uint16_t *got = result(handle, &desc, again);
        if (memcmp(got, wanted, (size_t)(m * n) * 2) != 0) {
            printf("FAILED: %s computes something else\n", text);
            exit(1);
        }
        must(handle, hgemm_set_workspace(handle, NULL, 0), "hgemm_set_workspace");
        must(handle, hgemm_free(handle, workspace), "hgemm_free");
        free(got);
        hgemm_plan_destroy(plan);
        hgemm_plan_destroy(again);
    }
    must(handle, hgemm_free(handle, a), "hgemm_free");
    must(handle, hgemm_free(handle, b), "hgemm_free");
    must(handle, hgemm_free(handle, d), "hgemm_free");
    free(wanted);
    return with_workspace;
}

/* Every tuned kernel by three parts of k, of which any may end last. Returns how many there are. */
static int parts_agree(hgemm_handle_t handle, hgemm_accumulate_t accumulate)
{
    enum { M = 300, N = 264, K = 768, PARTS = 3 };
    rng_t rng = {test_seed()};
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = M, desc.n = N, desc.k = K, desc.lda = K, desc.ldb = desc.ldc = desc.ldd = N, desc.accumulate = accumulate;
    void *d = NULL;
    must(handle, hgemm_malloc(handle, &d, sizeof(uint16_t[M * N])), "hgemm_malloc");
    desc.a = upload_integers(handle, &rng, HGEMM_TYPE_F16, M * K);
    desc.b = upload_integers(handle, &rng, HGEMM_TYPE_F16, K * N);
    desc.c = desc.d = d;
    uint16_t *wanted = result(handle, &desc, NULL);
    int count = 0;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++) {
        plan_t parts = {.splits = PARTS, .k_split = K / PARTS};
        hgemm_plan_t plan;
        char text[HGEMM_PLAN_TEXT];
        if (!can_split(kernel) || kernel_table[kernel].family == FAMILY_thin ||
            kernel_table[kernel].info.accumulate != accumulate ||
            !find_variant(problem_of(&desc), kernel, 0, &parts.variant) || !variant_image(parts.variant))
            continue;
        must(handle, hgemm_plan_create(&plan, handle, &desc), "hgemm_plan_create");
        must(handle, hgemm_plan_get_text(plan, text), "hgemm_plan_get_text");
        hgemm_plan_destroy(plan);
        plan_to_text(&parts, strrchr(text, '|') + 2);
        must(handle, hgemm_plan_from_text(&plan, handle, &desc, text), text);
        uint16_t *got = result(handle, &desc, plan);
        if (memcmp(got, wanted, sizeof(uint16_t[M * N])) != 0) {
            printf("FAILED: %s computes something else\n", text);
            exit(1);
        }
        free(got);
        hgemm_plan_destroy(plan);
        count++;
    }
    must(handle, hgemm_free(handle, (void *)desc.a), "hgemm_free");
    must(handle, hgemm_free(handle, (void *)desc.b), "hgemm_free");
    must(handle, hgemm_free(handle, d), "hgemm_free");
    free(wanted);
    return count;
}

/* The same of floats, of each accuracy and beside halves. */
static int plans_of_floats_agree(hgemm_handle_t handle)
{
    const hgemm_type_t half = HGEMM_TYPE_F16, single = HGEMM_TYPE_F32;
    int with_workspace = 0;
    for (int accuracy = HGEMM_ACCURACY_F32; accuracy <= HGEMM_ACCURACY_11_BITS; accuracy++)
        with_workspace += plans_agree(handle, single, single, (hgemm_accuracy_t)accuracy, 40, 64, 1024, 0);
    return with_workspace + plans_agree(handle, single, single, HGEMM_ACCURACY_F32, 130, 70, 513, 1) +
           plans_agree(handle, single, half, HGEMM_ACCURACY_F32, 40, 64, 1000, 1) +
           plans_agree(handle, half, single, HGEMM_ACCURACY_16_BITS, 9, 64, 1000, 0);
}

int main(void)
{
    hgemm_handle_t handle = test_open();
    int kernels = parts_agree(handle, HGEMM_ACCUMULATE_F16) + parts_agree(handle, HGEMM_ACCUMULATE_F32);
    const int least = hgemm_image_count > 100 ? 12 : 1; /* a build may have a part of the kernels */
    if (kernels < least) {
        printf("FAILED: %d kernels run in parts\n", kernels);
        return 1;
    }
    const hgemm_type_t half = HGEMM_TYPE_F16;
    int with_workspace = plans_agree(handle, half, half, HGEMM_ACCURACY_F32, 48, 72, 64, 0) +
                         plans_agree(handle, half, half, HGEMM_ACCURACY_F32, 40, 64, 1024, 0) +
                         plans_agree(handle, half, half, HGEMM_ACCURACY_F32, 40, 64, 1000, 1);
    int of_floats = hgemm_image_count > 100 ? plans_of_floats_agree(handle) : 4;
    must(NULL, hgemm_destroy(handle), "hgemm_destroy");
    if (with_workspace < 4 || of_floats < 4) {
        printf("FAILED: %d plans use the workspace, and %d of floats\n", with_workspace, of_floats);
        return 1;
    }
    printf("passed\n");
    return 0;
}
