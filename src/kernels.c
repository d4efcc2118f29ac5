/* SPDX-License-Identifier: MIT */
/* The table: its checks at compile time, its descriptors, its images. */
#include "kernels.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_THREADS = 1024 }; /* limit of a block */

/* Values of the words in the columns acc and ops. */
enum {
    ACCUMULATE_f16 = HGEMM_ACCUMULATE_F16,
    ACCUMULATE_f32 = HGEMM_ACCUMULATE_F32,
    OPS_nn = HGEMM_OPS_NN,
    OPS_all = HGEMM_OPS_NN | HGEMM_OPS_NT | HGEMM_OPS_TN | HGEMM_OPS_TT
};

#define ROW_SHARED(BM, BN, BK, WM, WK, stages, acc) \
    HGEMM_SHARED_BYTES(BM, BN, BK, WM, WK, stages, HGEMM_ACC_BYTES_##acc)
#define AT_LEAST_ONE(blocks) ((blocks) ? (blocks) : 1)

/* A row that could not run on a T4 fails the build here, with its name. */
#define HGEMM_KERNEL(rung, name, BM, BN, BK, WM, WN, WK, stages, acc, ops, align, blocks, newer_blocks, group,       \
                     prefetch, ...)                                                                                  \
    static_assert((BM) % (WM) == 0, #name ": WM does not divide BM");                                                \
    static_assert((BN) % (WN) == 0, #name ": WN does not divide BN");                                                \
    static_assert((WM) % 16 == 0, #name ": WM is not a multiple of the 16 rows of an mma");                          \
    static_assert((WN) % 16 == 0, #name ": WN is not a multiple of the 16 columns of an ldmatrix");                  \
    static_assert((BK) % (WK) == 0, #name ": WK does not divide BK");                                                \
    static_assert((WK) % 16 == 0, #name ": WK is not an even number of the 8 k's of an mma");                        \
    static_assert((BK) / (WK) > (WM) / 16 || (WM) / 16 % ((BK) / (WK)) == 0,                                         \
                  #name ": the warps that share a tile do not share its rows evenly");                               \
    static_assert((stages) == 1 || (stages) == 2, #name ": stages is neither 1 nor 2");                              \
    static_assert((blocks) >= 0 && (newer_blocks) >= AT_LEAST_ONE(blocks) && (group) >= 1,                           \
                  #name ": group or newer_blocks is less than 1, or newer_blocks than blocks");                      \
    static_assert(((group) & ((group)-1)) == 0, #name ": group is not a power of two");                              \
    static_assert((prefetch) >= 0, #name ": prefetch is negative");                                                  \
    static_assert(HGEMM_THREADS(BM, BN, BK, WM, WN, WK) <= BLOCK_THREADS, #name ": more than 1024 threads a block"); \
    static_assert(HGEMM_THREADS(BM, BN, BK, WM, WN, WK) * AT_LEAST_ONE(blocks) <= T4_THREADS,                        \
                  #name ": the blocks of an SM have more than its 1024 threads");                                    \
    static_assert(ROW_SHARED(BM, BN, BK, WM, WK, stages, acc) * AT_LEAST_ONE(blocks) <= T4_SHARED,                   \
                  #name ": the blocks of an SM need more than its 64 KiB of shared memory");                         \
    static_assert((BM) * (BK) / 8 % HGEMM_THREADS(BM, BN, BK, WM, WN, WK) == 0,                                      \
                  #name ": the threads do not share the chunks of A's tile evenly");                                 \
    static_assert((BN) * (BK) / 8 % HGEMM_THREADS(BM, BN, BK, WM, WN, WK) == 0,                                      \
                  #name ": the threads do not share the chunks of B's tile evenly");                                 \
    static_assert((WM) * (WN) / 32 * HGEMM_ACC_BYTES_##acc / 4 < HGEMM_THREAD_REGISTERS,                             \
                  #name ": the accumulators alone fill a thread's registers");
#define HGEMM_ON_T4(name, group, prefetch, ...)                                                         \
    static_assert((group) >= 1 && ((group) & ((group)-1)) == 0, #name ": group is not a power of two"); \
    static_assert((prefetch) >= 0, #name ": prefetch is negative");
#include "kernels.def"
#undef HGEMM_KERNEL
#undef HGEMM_ON_T4

const kernel_t kernel_table[KERNEL_END] = {
#define HGEMM_KERNEL(rung_, name_, BM, BN, BK, WM, WN, WK, stages_, acc, ops_, align, blocks_, newer_blocks_, group_, \
                     prefetch_, ...)                                                                                  \
    [KERNEL_##name_] = {                                                                                              \
        .info =                                                                                                       \
            {                                                                                                         \
                .name = #name_,                                                                                       \
                .rung = #rung_,                                                                                       \
                .accumulate = (hgemm_accumulate_t)ACCUMULATE_##acc,                                                   \
                .block_m = (BM),                                                                                      \
                .block_n = (BN),                                                                                      \
                .block_k = (BK),                                                                                      \
                .warp_m = (WM),                                                                                       \
                .warp_n = (WN),                                                                                       \
                .warp_k = (WK),                                                                                       \
                .stages = (stages_),                                                                                  \
                .threads = HGEMM_THREADS(BM, BN, BK, WM, WN, WK),                                                     \
                .shared_bytes = ROW_SHARED(BM, BN, BK, WM, WK, stages_, acc),                                         \
                .ops = OPS_##ops_,                                                                                    \
                .any_alignment = ACCESS_##align >= ACCESS_any,                                                        \
            },                                                                                                        \
        .blocks = (blocks_),                                                                                          \
        .newer_blocks = (newer_blocks_),                                                                              \
        .walk = {(group_), (prefetch_)},                                                                              \
        .access = ACCESS_##align,                                                                                     \
    },
#include "kernels.def"
#undef HGEMM_KERNEL
};

walk_t kernel_walk(int kernel, int on_t4)
{
    static const walk_t t4_walk[KERNEL_END] = {
#define HGEMM_ON_T4(name, group_, prefetch_, ...) [KERNEL_##name] = {(group_), (prefetch_)},
#include "kernels.def"
#undef HGEMM_ON_T4
    };
    return on_t4 && t4_walk[kernel].group ? t4_walk[kernel] : kernel_table[kernel].walk;
}

int variant_index(variant_t variant)
{
    return (variant.kernel * VARIANT_OPS + variant.op) * ACCESS_COUNT + (int)variant.access;
}

void variant_symbol(variant_t variant, char symbol[VARIANT_SYMBOL])
{
    static const char *const op_names[VARIANT_OPS] = {"nn", "nt", "tn", "tt"};
    static const char *const access_names[ACCESS_COUNT] = {"", "_x8", "_any", "_far"};
    snprintf(symbol, VARIANT_SYMBOL, "%s_%s%s", kernel_table[variant.kernel].info.name, op_names[variant.op],
             access_names[variant.access]);
}

static int compare_symbol(const void *symbol, const void *image)
{
    return strcmp(symbol, ((const image_t *)image)->symbol);
}

static const image_t *find_image(const char *symbol)
{
    return bsearch(symbol, hgemm_images, (size_t)hgemm_image_count, sizeof hgemm_images[0], compare_symbol);
}

const image_t *variant_image(variant_t variant)
{
    char symbol[VARIANT_SYMBOL];
    variant_symbol(variant, symbol);
    return find_image(symbol);
}

const image_t *realign_image(void)
{
    return find_image("realign");
}

int hgemm_kernel_count(void)
{
    return KERNEL_END - 1;
}

hgemm_status_t hgemm_get_kernel_info(int kernel, hgemm_kernel_info_t *info)
{
    if (kernel <= KERNEL_NONE || kernel >= KERNEL_END)
        return HGEMM_STATUS_INVALID_KERNEL;
    if (!info)
        return HGEMM_STATUS_INVALID_HANDLE;
    *info = kernel_table[kernel].info;
    for (int op = 0; op < VARIANT_OPS; op++)
        for (access_t access = 0; access < ACCESS_COUNT; access++) {
            const image_t *image = variant_image((variant_t){kernel, op, access});
            if (image && image->registers > info->registers)
                info->registers = image->registers;
        }
    return HGEMM_STATUS_SUCCESS;
}

int hgemm_find_kernel(const char *name)
{
    for (int kernel = KERNEL_NONE + 1; name && kernel < KERNEL_END; kernel++)
        if (strcmp(kernel_table[kernel].info.name, name) == 0)
            return kernel;
    return KERNEL_NONE;
}
