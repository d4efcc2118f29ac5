/* SPDX-License-Identifier: MIT */
/* turing_gemm.h - arguments of the library's kernels, and which of them a symbol is. */
#ifndef TURING_GEMM_H
#define TURING_GEMM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "table/kernels.h"

/* The kernel of a variant's symbol. */
static inline const kernel_t *kernel_of(const char *symbol)
{
    const kernel_t *best = NULL;
    for (const kernel_t *row = kernel_table + 1; row < kernel_table + KERNEL_END; row++)
        if (!strncmp(symbol, row->info.name, strlen(row->info.name)) &&
            (!best || strlen(row->info.name) > strlen(best->info.name)))
            best = row;
    return best;
}

/* Arguments of a product of whole tiles. */
static inline void take_whole_tiles(kernel_args_t *args, const kernel_t *kernel)
{
    const hgemm_kernel_info_t *info = &kernel->info;
    int rows = (args->m + info->block_m - 1) / info->block_m, columns = (args->n + info->block_n - 1) / info->block_n;
    int group = kernel_walk((int)(kernel - kernel_table), 1).group;
    args->whole_tiles = rows * columns;
    args->splits = 1;
    args->inv_group_tiles = HGEMM_RECIPROCAL((unsigned)(group * columns));
    args->inv_last_rows = HGEMM_RECIPROCAL((unsigned)(rows % group ? rows % group : group));
}

/* Splits IMAGE:SYMBOL; returns the symbol, or NULL. */
static inline const char *split_image(const char *word, char *path, size_t size)
{
    const char *colon = strrchr(word, ':');
    if (!colon || (size_t)(colon - word) >= size)
        return NULL;
    memcpy(path, word, (size_t)(colon - word));
    path[colon - word] = 0;
    return colon + 1;
}

#endif
