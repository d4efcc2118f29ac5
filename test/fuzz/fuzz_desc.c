/* SPDX-License-Identifier: MIT */
/* Descriptors: every call that takes one refuses it or has a plan for it, which its text brings back. */
#include "fixture.h"
#include "problem/names.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

const char *const fuzz_words[] = {"\1", "\377\377\377\377\377\377\377\177", NULL};

size_t fuzz_seed(int number, char **files, uint8_t data[MOST_INPUT])
{
    enum { SEEDS = 64, LENGTH = 96 };
    (void)files;
    for (int i = 0; i < LENGTH; i++) /* any numbers; the first ones are all small */
        data[i] = (uint8_t)(i < 2 * number ? (number * 7919 + i * 104729) >> 4 : 4 * 2);
    return number < SEEDS ? LENGTH : 0;
}

static const void *address(fuzz_source_t *source)
{
    const unsigned kind = fuzz_byte(source);
    return kind < 16
               ? NULL
               : elsewhere(((uint64_t)kind << 50) + (kind & 7) * 2 + (kind & 8 ? (uint64_t)fuzz_number(source) : 0));
}

/* Mostly a value that there is. */
static int choice(fuzz_source_t *source, unsigned count)
{
    const unsigned byte = fuzz_byte(source);
    return byte < 250 ? (int)(byte % count) : (int)fuzz_number(source);
}

static hgemm_desc_t draw(fuzz_source_t *source)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    if (fuzz_byte(source) == 255)
        desc.size = (size_t)fuzz_number(source);
    desc.layout = (hgemm_layout_t)choice(source, 2);
    desc.op_a = (hgemm_op_t)choice(source, 2), desc.op_b = (hgemm_op_t)choice(source, 2);
    desc.accumulate = (hgemm_accumulate_t)choice(source, 2);
    desc.kernel = fuzz_byte(source) % 4 ? HGEMM_KERNEL_AUTO : choice(source, (unsigned)hgemm_kernel_count() + 1);
    desc.m = fuzz_number(source), desc.n = fuzz_number(source), desc.k = fuzz_number(source);
    desc.batch = fuzz_number(source);
    desc.alpha = (float)choice(source, 3), desc.beta = (float)choice(source, 3);
    desc.a = address(source), desc.b = address(source), desc.c = address(source), desc.d = (void *)address(source);
    const unsigned tight = fuzz_byte(source); /* a bit for each leading dimension that is drawn, too small or not */
    int64_t *const lds[] = {&desc.lda, &desc.ldb, &desc.ldc, &desc.ldd, &desc.ldgate};
    const int64_t longest = desc.m > desc.n ? desc.m : desc.n;
    for (int i = 0; i < 5; i++)
        *lds[i] = tight >> i & 1 ? fuzz_number(source) : longest > desc.k ? longest : desc.k;
    desc.stride_a = fuzz_number(source), desc.stride_b = fuzz_number(source), desc.stride_c = fuzz_number(source);
    desc.stride_d = fuzz_number(source), desc.stride_bias = fuzz_number(source), desc.stride_gate = fuzz_number(source);
    desc.type_a = (hgemm_type_t)(choice(source, 3) & ~1), desc.type_b = desc.type_a;
    if (fuzz_byte(source) > 240)
        desc.type_b = (hgemm_type_t)choice(source, 3);
    desc.type_c = (hgemm_type_t)choice(source, 3), desc.type_d = (hgemm_type_t)choice(source, 3);
    desc.activation = (hgemm_activation_t)choice(source, ACTIVATION_COUNT);
    desc.flags = fuzz_byte(source) % 4 ? 0 : (unsigned)choice(source, 2);
    desc.bias_mode = (hgemm_bias_t)choice(source, 2), desc.type_bias = (hgemm_type_t)choice(source, 3);
    desc.bias = fuzz_byte(source) % 2 ? address(source) : NULL;
    desc.gate = fuzz_byte(source) % 4 ? NULL : address(source), desc.type_gate = (hgemm_type_t)choice(source, 3);
    desc.alpha_pointer = fuzz_byte(source) % 4 ? NULL : address(source);
    desc.beta_pointer = fuzz_byte(source) % 4 ? NULL : address(source);
    desc.batch_mode = (hgemm_batch_mode_t)(fuzz_byte(source) % 2 ? 0 : choice(source, 3));
    desc.alignment = 1 << fuzz_byte(source) % 31;
    desc.group_ends = address(source);
    desc.gather_a = fuzz_byte(source) % 4 ? NULL : address(source);
    desc.scatter_d = fuzz_byte(source) % 4 ? NULL : address(source);
    desc.index_type = (hgemm_index_t)choice(source, 2);
    desc.scale_a = (float)choice(source, 3), desc.scale_b = (float)choice(source, 3);
    desc.scale_a_pointer = fuzz_byte(source) % 2 ? NULL : address(source);
    desc.scale_b_pointer = fuzz_byte(source) % 2 ? NULL : address(source);
    if (fuzz_byte(source) % 4 == 1) {
        static hgemm_weights_t weights;
        hgemm_weights_init(&weights);
        weights.n = fuzz_byte(source) > 250 ? fuzz_number(source) : desc.n, weights.k = desc.k;
        weights.code = (hgemm_code_t)choice(source, 6), weights.zero = (hgemm_zero_t)choice(source, 3);
        weights.group = fuzz_byte(source) % 8 ? 16 << fuzz_byte(source) % 5 : choice(source, 2);
        weights.type_scale = (hgemm_type_t)choice(source, 3);
        desc.weights = &weights;
        if (fuzz_byte(source) % 8) /* what kernels have */
            desc.layout = HGEMM_ROW_MAJOR, desc.op_a = HGEMM_OP_N, desc.op_b = HGEMM_OP_T,
            desc.stride_b &= ~INT64_C(15);
    }
    return desc;
}

void fuzz_one(const uint8_t *data, size_t size)
{
    fuzz_source_t source = {data, size};
    hgemm_plan_t plan = NULL, again = NULL;
    hgemm_plan_info_t info;
    char text[HGEMM_PLAN_TEXT], other[HGEMM_PLAN_TEXT];
    double ratio;
    int kernel = -1;
    set_up(NULL);
    fake.compute = 0;
    strcpy(handle.info.name, "fake");
    handle.machine = (machine_t){0};
    handle.info.multiprocessors = 40, handle.info.compute_major = 7, handle.info.compute_minor = 5;
    if (fuzz_byte(&source) % 2)
        handle.info.multiprocessors = 132, handle.info.compute_major = 9, handle.info.compute_minor = 0;
    handle.machine = machine_of(&handle.info);
    handle.workspace_bytes =
        fuzz_byte(&source) % 4 ? handle.machine.workspace_bytes : (size_t)fuzz_number(&source) >> 1;
    handle.workspace = elsewhere(UINT64_C(1) << 59);
    const hgemm_desc_t desc = draw(&source);

    fuzz_check((hgemm_select(&desc, &kernel) == HGEMM_STATUS_SUCCESS) == (kernel >= 0), "hgemm_select's kernel");
    fuzz_check(kernel <= hgemm_kernel_count(), "there is no such kernel");
    hgemm_get_cublas_ratio(&handle, &desc, &ratio);
    const hgemm_status_t status = hgemm_plan_create(&plan, &handle, &desc);
    fuzz_check((status == HGEMM_STATUS_SUCCESS) == (plan != NULL), "hgemm_plan_create's plan");
    fuzz_check(status < HGEMM_STATUS_COUNT_, "there is no such status");
    if (plan) {
        hgemm_plan_get_info(plan, &info);
        fuzz_check(info.tiles >= info.split_tiles && info.split_tiles >= 0 && info.seconds >= 0, "what a plan has");
        fuzz_check(info.workspace_bytes <= handle.workspace_bytes, "a plan needs more than there is");
        hgemm_plan_get_text(plan, text);
        fuzz_check(hgemm_plan_from_text(&again, &handle, &desc, text) == HGEMM_STATUS_SUCCESS, text);
        hgemm_plan_get_text(again, other);
        fuzz_check(strcmp(text, other) == 0, "a plan's text has come back as another");
        hgemm_plan_destroy(again);
    }
    hgemm_plan_destroy(plan);
    if (desc.batch <= 1000000) /* one launch each 65535 */
        hgemm_run_desc(&handle, &desc);
}
