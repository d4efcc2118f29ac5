/* SPDX-License-Identifier: MIT */
/* Texts of plans: each is refused in words, or is a plan that runs, whose own text brings it back. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

const char *const fuzz_words[] = {
    " | ",        " whole ",  " splits ", " k ",     " copies ", "ab",        " x16",
    " x8",        " any",     " far",     " nn",     " nt",      "k5_64x64",  "k5_128x128_f32",
    "thin_512x8", "k1_tiled", "nothing",  " batch ", " lda ",    " strides ", " fused",
    "f16",        "f32",      "hgemm 0.", NULL};

enum { PROBLEMS = 8 };

static hgemm_desc_t problem(int number)
{
    hgemm_desc_t desc = small();
    desc.m = 64, desc.n = 96, desc.k = number & 1 ? 4096 : 640;
    desc.lda = desc.k + (number & 2 ? 1 : 0), desc.ldb = desc.n, desc.ldc = desc.ldd = desc.n;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 40), desc.c = desc.d = elsewhere(UINT64_C(1) << 42);
    if (number & 4)
        desc.accumulate = HGEMM_ACCUMULATE_F32, desc.batch = 3,
        desc.stride_a = desc.stride_b = desc.stride_c = desc.stride_d = 1 << 24;
    return desc;
}

static void open_handle(void)
{
    set_up(NULL);
    fake.compute = 0;
    strcpy(handle.info.name, "fake");
    handle.info.multiprocessors = 132, handle.info.compute_major = 9;
    handle.machine = machine_of(&handle.info);
    handle.workspace_bytes = handle.machine.workspace_bytes;
    handle.workspace = elsewhere(UINT64_C(1) << 59);
}

/* The number of a problem, and its plan's text. */
size_t fuzz_seed(int number, char **files, uint8_t data[MOST_INPUT])
{
    hgemm_plan_t plan;
    (void)files;
    if (number == PROBLEMS)
        return 0;
    open_handle();
    const hgemm_desc_t desc = problem(number);
    fuzz_check(hgemm_plan_create(&plan, &handle, &desc) == HGEMM_STATUS_SUCCESS, "a problem has no plan");
    data[0] = (uint8_t)number;
    hgemm_plan_get_text(plan, (char *)data + 1);
    hgemm_plan_destroy(plan);
    return 1 + strlen((char *)data + 1);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    const hgemm_desc_t desc = problem(size ? data[0] % PROBLEMS : 0);
    char *text = calloc(1, size + 1), again[HGEMM_PLAN_TEXT], same[HGEMM_PLAN_TEXT];
    hgemm_plan_t plan = NULL, copy = NULL;
    fuzz_check(text != NULL, "no memory");
    if (size)
        memcpy(text, data + 1, size - 1);
    open_handle();
    const hgemm_status_t status = hgemm_plan_from_text(&plan, &handle, &desc, text);
    fuzz_check((status == HGEMM_STATUS_SUCCESS) == (plan != NULL), "hgemm_plan_from_text's plan");
    fuzz_check(plan || status == HGEMM_STATUS_INVALID_PLAN, hgemm_status_name(status));
    fuzz_check(plan || handle.device->detail[0], "a text is refused without a word");
    if (plan) {
        hgemm_plan_get_text(plan, again);
        fuzz_check(hgemm_plan_from_text(&copy, &handle, &desc, again) == HGEMM_STATUS_SUCCESS, "a plan's own text");
        hgemm_plan_get_text(copy, same);
        fuzz_check(strcmp(again, same) == 0, "a plan's text has come back as another");
        fuzz_check(hgemm_plan_run(plan, &handle, &desc) == HGEMM_STATUS_SUCCESS, "a plan does not run");
        fuzz_check(fake.launches > 0 && fake.launch.grid[0] > 0, "nothing is launched");
        hgemm_plan_destroy(copy);
    }
    hgemm_plan_destroy(plan);
    free(text);
}
