/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "calls.h"
#include "facts.h"
#include "problem/names.h"

enum { T4_MULTIPROCESSORS = 40 };

void print_choices(const group_t *groups, int count)
{
    const char *separator = "";
    printf("{\n\"context\": {\"hgemm\": \"%s\"},\n\"results\": [", version());
    for (const group_t *g = groups; g < groups + count; g++)
        for (const contestant_t *c = g->contestants; c < g->contestants + g->count; c++)
            if (c->result.note) {
                printf("%s\n{\"problem\": \"%s\", \"kernel\": \"%s\", \"note\": \"%s\"}", separator, g->name, c->name,
                       c->note);
                separator = ",";
            }
    printf("\n]\n}\n");
}

/* What is known of the kernels without running them. */
void print_facts(void)
{
    printf("%-16s %-10s %-10s %6s %7s %5s %7s %9s %6s  %s\n", "kernel", "block", "warp", "stages", "threads", "regs",
           "shared", "per SM", "sums", "operations per byte: global, shared");
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t i;
        char block[32], warp[32];
        hgemm_get_kernel_info(kernel, &i);
        snprintf(block, sizeof block, "%dx%dx%d", i.block_m, i.block_n, i.block_k);
        snprintf(warp, sizeof warp, "%dx%dx%d", i.warp_m, i.warp_n, i.warp_k);
        /* A step of k brings block_m + block_n halves for 2 * block_m * block_n operations. */
        printf("%-16s %-10s %-10s %6d %7d %5d %7d %9d %6s  %.1f, %.1f\n", i.name, block, warp, i.stages, i.threads,
               i.registers, i.shared_bytes, internals_blocks_on_t4(kernel), accumulate_names[i.accumulate],
               (double)i.block_m * i.block_n / (i.block_m + i.block_n),
               (double)i.warp_m * i.warp_n / (i.warp_m + i.warp_n));
    }
    printf("\n%-26s %-16s %8s %10s  %s\n", "problem on a T4", "would run", "blocks", "waves",
           "operations per byte of A, B, C and D");
    for (int i = 0; i < bench.options.shape_count; i++) {
        const shape_t *s = &bench.options.shapes[i];
        hgemm_accumulate_t accumulate =
            bench.options.accumulate & 1U << HGEMM_ACCUMULATE_F16 ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
        hgemm_desc_t desc = plan(s, &(contestant_t){.accumulate = accumulate});
        hgemm_kernel_info_t info;
        char name[SHAPE_NAME];
        int kernel;
        shape_name(s, name);
        if (hgemm_select(&desc, &kernel) != HGEMM_STATUS_SUCCESS ||
            hgemm_get_kernel_info(kernel, &info) != HGEMM_STATUS_SUCCESS)
            continue;
        int row = bench.options.layout == HGEMM_ROW_MAJOR;
        int64_t lines = row ? s->m : s->n, columns = row ? s->n : s->m;
        int64_t tiles =
            s->batch * ((lines + info.block_m - 1) / info.block_m) * ((columns + info.block_n - 1) / info.block_n);
        double m = (double)s->m, n = (double)s->n, k = (double)s->k;
        printf("%-26s %-16s %8lld %10.2f  %.0f\n", name, info.name, (long long)tiles,
               (double)tiles / (T4_MULTIPROCESSORS * internals_blocks_on_t4(kernel)),
               2 * m * n * k / (2 * (m * k + k * n + (bench.options.beta != 0 ? 2 : 1) * m * n)));
    }
}
