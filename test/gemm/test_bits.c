/* SPDX-License-Identifier: MIT */
/*
 * The same bits on silicon and in the emulator: a fixed list of problems, for every kernel of the
 * table and every transpose it covers, each with a hash of its result.
 *
 *     test_bits FILE            compares with the hashes in FILE, which a GPU wrote
 *     test_bits --write FILE    writes them, on the device at hand
 *
 * Hopper's tensor cores keep one bit more of the aligned products than Turing's; the emulator is
 * told so ("t4emu:hopper") when it is held to hashes that a Hopper GPU wrote. Operands are drawn
 * in three ways: in [-1, 1); with exponents spread widely, subnormals included; and as any bits at
 * all, infinities and NaN among them. Six of sixteen cases of a tuned kernel have k split, of all
 * tiles or all but the first; some of them first copy what is not aligned.
 */
#include "api/handle.h"
#include "util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 16 /* of a kernel and a transpose */, LINE = 160, NOTE = 24 };

static uint16_t draw(rng_t *rng, int how)
{
    uint64_t bits = rng_next(rng);
    if (how == 0)
        return hgemm_half_from_float((float)rng_symmetric(rng));
    if (how == 1) /* exponent 0 .. 17: at most 4 */
        return (uint16_t)((bits & 0x83ff) | (bits >> 16) % 18 << 10);
    return (uint16_t)bits;
}

static void *fill(hgemm_handle_t handle, size_t count, rng_t *rng, int how)
{
    uint16_t *host = malloc(count * 2);
    void *device;
    if (!host)
        exit(1);
    for (size_t i = 0; i < count; i++)
        host[i] = draw(rng, how);
    expect_status(handle, hgemm_malloc(handle, &device, count * 2), HGEMM_STATUS_SUCCESS, "malloc");
    expect_status(handle, hgemm_upload(handle, device, host, count * 2), HGEMM_STATUS_SUCCESS, "upload");
    free(host);
    return device;
}

/* FNV-1a over the halves of the m x n result, its padding left out. */
static uint64_t hash_of(hgemm_handle_t handle, const void *d, int64_t m, int64_t n, int64_t ld)
{
    uint16_t *host = malloc((size_t)(m * ld) * 2);
    uint64_t hash = UINT64_C(14695981039346656037);
    if (!host)
        exit(1);
    expect_status(handle, hgemm_download(handle, host, d, (size_t)(m * ld) * 2), HGEMM_STATUS_SUCCESS, "download");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            hash = (hash ^ host[i * ld + j]) * UINT64_C(1099511628211);
    free(host);
    return hash;
}

/* Numbers that hang on the case alone, so that other kernels may come and go. */
static rng_t rng_of(const char *kernel, int op, int number)
{
    rng_t rng = {(uint64_t)(op * CASES + number)};
    for (; *kernel; kernel++)
        rng.state = (rng.state ^ (unsigned char)*kernel) * UINT64_C(1099511628211);
    return rng;
}

/* Makes the plan of a named kernel one that selection would only choose by itself, and says how. */
static void alter(plan_t *plan, const problem_t *row_major, rng_t *rng, char how[NOTE])
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const int64_t steps = (row_major->k + info->block_k - 1) / info->block_k;
    plan->copies = rng_between(rng, 0, 1) ? copies_needed(row_major) : 0;
    if (plan->copies)
        plan->variant.access = ACCESS_x16;
    plan->k_split = (steps + 1) / rng_between(rng, 2, 4) * info->block_k;
    if (plan->k_split == 0)
        plan->k_split = info->block_k;
    plan->splits = (int)((row_major->k + plan->k_split - 1) / plan->k_split);
    plan->whole_tiles = plan->splits == 1 ? plan->tiles : plan->tiles > 1 ? rng_between(rng, 0, 1) : 0;
    int length = snprintf(how, NOTE, "%s", plan->copies ? " copy" : "");
    if (plan->splits > 1)
        snprintf(how + length, NOTE - (size_t)length, "%s k/%d", plan->whole_tiles ? " tail" : "", plan->splits);
}

/* Runs case number `number` of the kernel and writes its line. */
static void run(hgemm_handle_t handle, int kernel, int op, int number, char line[LINE])
{
    static const float alphas[] = {1, 0.7f, -2}, betas[] = {0, 0.3f, 1};
    static const char *const draws[] = {"uniform", "wide", "any"};
    hgemm_kernel_info_t info;
    hgemm_get_kernel_info(kernel, &info);
    rng_t rng = rng_of(info.name, op, number);
    int altered = number % 5 >= 3 && !kernel_table[kernel].is_plain;
    int aligned = number % 2 == 0 || !info.any_alignment;
    int64_t step = aligned ? 8 : 1, how = number % 3;
    int64_t m = rng_between(&rng, 1, (info.block_m + 40) / step) * step;
    int64_t n = rng_between(&rng, 1, (info.block_n + 40) / step) * step;
    int64_t k = rng_between(&rng, 1, (altered ? 4 * info.block_k : 200) / step) * step;
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = kernel;
    desc.accumulate = info.accumulate;
    desc.op_a = (hgemm_op_t)(op >> 1), desc.op_b = (hgemm_op_t)(op & 1);
    desc.m = m, desc.n = n, desc.k = k;
    desc.alpha = alphas[rng_between(&rng, 0, 2)], desc.beta = betas[rng_between(&rng, 0, 2)];
    desc.lda = (desc.op_a == HGEMM_OP_N ? k : m) + step * rng_between(&rng, 0, 2);
    desc.ldb = (desc.op_b == HGEMM_OP_N ? n : k) + step * rng_between(&rng, 0, 2);
    desc.ldc = desc.ldd = n + step * rng_between(&rng, 0, 2);
    void *a = fill(handle, (size_t)((desc.op_a == HGEMM_OP_N ? m : k) * desc.lda), &rng, (int)how);
    void *b = fill(handle, (size_t)((desc.op_b == HGEMM_OP_N ? k : n) * desc.ldb), &rng, (int)how);
    void *c = fill(handle, (size_t)(m * desc.ldc), &rng, (int)how);
    desc.a = a, desc.b = b, desc.c = desc.d = c;
    char note[NOTE] = "";
    hgemm_status_t status;
    if (altered) {
        const problem_t row_major = normalise(&desc);
        plan_t plan;
        status = select_plan(&row_major, &handle->machine, handle->workspace_bytes, &plan);
        if (status == HGEMM_STATUS_SUCCESS) {
            alter(&plan, &row_major, &rng, note);
            status = handle_launch(handle, &row_major, &plan);
        }
    } else {
        status = hgemm_run_desc(handle, &desc);
    }
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_synchronize(handle);
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, info.name);
    snprintf(line, LINE,
             "%s%s %c%c %" PRId64 "x%" PRId64 "x%" PRId64 " lda=%" PRId64 " ldb=%" PRId64 " ldc=%" PRId64
             " alpha=%g beta=%g %s %016" PRIx64 "\n",
             info.name, note, "nt"[op >> 1], "nt"[op & 1], m, n, k, desc.lda, desc.ldb, desc.ldc, (double)desc.alpha,
             (double)desc.beta, draws[how], hash_of(handle, c, m, n, desc.ldc));
    hgemm_free(handle, a);
    hgemm_free(handle, b);
    hgemm_free(handle, c);
}

int main(int argc, char **argv)
{
    int writing = argc == 3 && strcmp(argv[1], "--write") == 0;
    if (argc != 2 && !writing) {
        printf("usage: test_bits [--write] FILE\n");
        return 2;
    }
    hgemm_handle_t handle = test_open();
    device_t *device = handle->device;
    void *event; /* the emulator told to model time does so once somebody might ask for it */
    expect_status(handle, device->ops->event_create(device, &event), HGEMM_STATUS_SUCCESS, "event_create");
    expect_status(handle, device->ops->event_record(device, event, NULL), HGEMM_STATUS_SUCCESS, "event_record");
    FILE *file = fopen(argv[argc - 1], writing ? "w" : "r");
    if (!file) {
        printf("FAILED: cannot open %s\n", argv[argc - 1]);
        return 1;
    }
    int count = 0, failures = 0;
    char line[LINE], expected[LINE];
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t info;
        hgemm_get_kernel_info(kernel, &info);
        /* Without tensor cores rounding is another on each GPU; FP32 operands are no halves. */
        if (!info.stages || !kernel_table[kernel].limits[LIMIT_align])
            continue;
        for (int op = 0; op < 4; op++)
            for (int number = 0; number < CASES && info.ops >> op & 1; number++, count++) {
                run(handle, kernel, op, number, line);
                if (writing) {
                    fputs(line, file);
                } else if (!fgets(expected, LINE, file) || strcmp(line, expected) != 0) {
                    printf("FAILED: %s  expected: %s", line, feof(file) ? "nothing\n" : expected);
                    failures++;
                }
            }
    }
    if (!writing && fgets(expected, LINE, file)) {
        printf("FAILED: %s has further lines\n", argv[1]);
        failures++;
    }
    if (fclose(file) != 0)
        failures++;
    device->ops->event_destroy(device, event);
    hgemm_destroy(handle);
    printf("%d problems, %d failures\n", count, failures);
    return failures != 0;
}
