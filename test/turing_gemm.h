/* SPDX-License-Identifier: MIT */
/* turing_gemm.h - arguments and tiles of the library's kernels, from their table. */
#ifndef TURING_GEMM_H
#define TURING_GEMM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct arguments {
#define HGEMM_ARG(type, name) type name;
#include "kernels.def"
#undef HGEMM_ARG
} arguments_t;

typedef struct tile {
    const char *name;
    uint32_t bm, bn, threads, shared, group;
} tile_t;

static const tile_t tiles[] = {
#define HGEMM_KERNEL(rung, name, BM, BN, BK, WM, WN, WK, stages, acc, ops, align, blocks, newer_blocks, group, ...) \
    {#name,                                                                                                         \
     BM,                                                                                                            \
     BN,                                                                                                            \
     HGEMM_THREADS(BM, BN, BK, WM, WN, WK),                                                                         \
     HGEMM_SHARED_BYTES(BM, BN, BK, WM, WK, stages, HGEMM_ACC_BYTES_##acc),                                         \
     group},
#include "kernels.def"
#undef HGEMM_KERNEL
};

/* Rows of tiles that a T4 walks together, where they are others. */
static inline uint32_t group_of(const tile_t *tile)
{
#define HGEMM_ON_T4(row, group, ...) \
    if (!strcmp(tile->name, #row))   \
        return group;
#include "kernels.def"
#undef HGEMM_ON_T4
    return tile->group;
}

static inline const tile_t *tile_of(const char *symbol)
{
    const tile_t *best = NULL;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        if (!strncmp(symbol, tiles[i].name, strlen(tiles[i].name)) &&
            (!best || strlen(tiles[i].name) > strlen(best->name)))
            best = &tiles[i];
    return best;
}

/* Arguments of a product of whole tiles. */
static inline void take_whole_tiles(arguments_t *args, const tile_t *tile)
{
    uint32_t rows = ((uint32_t)args->m + tile->bm - 1) / tile->bm,
             columns = ((uint32_t)args->n + tile->bn - 1) / tile->bn;
    uint32_t group = group_of(tile);
    args->whole_tiles = (int)(rows * columns);
    args->splits = 1;
    args->inv_group_tiles = HGEMM_RECIPROCAL(group * columns);
    args->inv_last_rows = HGEMM_RECIPROCAL(rows % group ? rows % group : group);
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
