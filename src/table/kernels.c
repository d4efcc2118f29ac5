/* SPDX-License-Identifier: MIT */
/* The table: its checks at compile time, its descriptors, its images. */
#include "table/kernels.h"

#include "problem/types.h"
#include "table/tile_facts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_THREADS = 1024 }; /* limit of a block */

/* Values of the words in the columns ACC and OPS: transposes that a kernel runs, and those that it is compiled for. */
enum {
    ACC_BYTES_f16 = 2,
    ACC_BYTES_f32 = 4,
    ACCUMULATE_f16 = HGEMM_ACCUMULATE_F16,
    ACCUMULATE_f32 = HGEMM_ACCUMULATE_F32,
    OPS_nn = HGEMM_OPS_NN,
    OPS_nt = HGEMM_OPS_NT,
    OPS_nn_nt = OPS_nn | OPS_nt,
    OPS_nn_nt_tn = OPS_nn_nt | HGEMM_OPS_TN,
    OPS_all = HGEMM_OPS_NN | HGEMM_OPS_NT | HGEMM_OPS_TN | HGEMM_OPS_TT,
    OPS_one = OPS_all,
    COMPILED_nn = OPS_nn,
    COMPILED_nt = OPS_nt,
    COMPILED_nn_nt = OPS_nn_nt,
    COMPILED_nn_nt_tn = OPS_nn_nt_tn,
    COMPILED_all = OPS_all,
    COMPILED_one = OPS_nt,
    OP_one = 1 /* its number */
};

/* A row as a type. C has no constants in a type but the sizes of arrays: ROW(name, column) is the number in a column of
 * a row. A row without ON_T4 has nothing in on_t4. */
#define BLOCK(m, n, k) char block_m[m], block_n[n], block_k[k];
#define WARP(m, n, k) char warp_m[m], warp_n[n], warp_k[k];
#define STAGES(count) char stages[count];
#define ACC(type) char acc_bytes[ACC_BYTES_##type];
#define PER_SM(t4, newer)                              \
    char blocks[(t4) ? (t4) : 1];                      \
    char most_shared[(t4) ? T4_SHARED : NEWER_SHARED]; \
    char newer_blocks[newer];
#define WALK(group_, prefetch_)                                                                              \
    char group[group_];                                                                                      \
    static_assert((group_) >= 1 && ((group_) & ((group_)-1)) == 0, "WALK: the group is not a power of two"); \
    static_assert((prefetch_) >= 0, "WALK: the prefetch is negative");
#define SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag)                                    \
    static_assert((lds_gap) >= 1 && (sts_first) >= 0 && (sts_gap) >= 1 && (ldg_lag) >= 0, \
                  "SCHEDULE: a gap is less than 1, or another number negative");
#define BF16_SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag, cvt_lead, cvt_gap)            \
    static_assert((lds_gap) >= 1 && (sts_gap) >= 1 && (ldg_lag) >= 0 && (cvt_gap) >= 1 && \
                      3 * (cvt_gap) <= (cvt_lead) && (cvt_lead) <= (sts_first),           \
                  "BF16_SCHEDULE: a pair is converted after it is stored, or before the k-tile begins");
#define HGEMM_KERNEL(rung, name, columns, ...) \
    struct row_##name {                        \
        columns struct {                       \
            __VA_ARGS__                        \
        } on_t4;                               \
    };
#include "table/kernels.def"

#define ROW(name, column) ((int)sizeof(((struct row_##name *)0)->column))

/* What follows from a row. In the main loop shared memory holds k-tiles of A and B; the epilogue reuses it for sums. */
#define ROW_K_WARPS(name) HGEMM_K_WARPS(ROW(name, block_k), ROW(name, warp_k))
#define ROW_THREADS(name)                                                                                            \
    (HGEMM_THREADS(ROW(name, block_m), ROW(name, block_n), ROW(name, block_k), ROW(name, warp_m), ROW(name, warp_n), \
                   ROW(name, warp_k)) *                                                                              \
     (TILES_##name ? TILES_##name : 1))
#define ROW_MAIN_BYTES(name)                                                                            \
    (HGEMM_MAIN_BYTES(ROW(name, stages), ROW(name, block_m), IS_PACKED_##name ? 0 : ROW(name, block_n), \
                      ROW(name, block_k)) *                                                             \
     PARTS_##name)
#define ROW_SUMS_BYTES(name)                                                                         \
    HGEMM_SUMS_BYTES(ROW(name, block_m) / ROW(name, warp_m) * ROW_K_WARPS(name), ROW(name, block_n), \
                     ROW(name, acc_bytes))
#define ROW_SIDE_BYTES(name)                                                               \
    (SPLITS_FIRST_##name   ? HGEMM_KEPT_SUMS_BYTES(ROW(name, block_m), ROW(name, block_n)) \
     : IS_OF_FLOATS_##name ? HGEMM_SIDE_BYTES(ROW(name, block_m), ROW(name, block_n))      \
                           : 0)
#define ROW_MMA_SHARED(name) \
    ((ROW_MAIN_BYTES(name) > ROW_SUMS_BYTES(name) ? ROW_MAIN_BYTES(name) : ROW_SUMS_BYTES(name)) + ROW_SIDE_BYTES(name))

/* Tiles of a block that a warp has by itself; 0: the block has one. */
#define TILES(count) +(count)
#define HGEMM_KERNEL(rung, name, columns, ...) enum { TILES_##name = 0 columns };
#include "table/kernels.def"

/* Packed weights do not pass through shared memory. */
#define WEIGHTS(most) +1
#define HGEMM_KERNEL(rung, name, columns, ...) enum { IS_PACKED_##name = 0 columns };
#include "table/kernels.def"

#define F32(most) +1
#define HGEMM_KERNEL(rung, name, columns, ...) enum { IS_OF_FLOATS_##name = 0 columns };
#include "table/kernels.def"

/* Halves that an element of A or B is in shared memory. */
enum { LESS_PARTS_16_BITS = 0, LESS_PARTS_11_BITS = 1 };
#define F32(most) +1
#define ACCURACY(level) -LESS_PARTS_##level
#define HGEMM_KERNEL(rung, name, columns, ...) enum { PARTS_##name = 1 columns };
#include "table/kernels.def"

#define SPLITS_FIRST() +1
#define HGEMM_KERNEL(rung, name, columns, ...) enum { SPLITS_FIRST_##name = 0 columns };
#include "table/kernels.def"

#define FP32_UNITS() +1
#define HGEMM_KERNEL(rung, name, columns, ...) \
    enum { FP32_UNITS_##name = 0 columns, CHUNK_##name = FP32_UNITS_##name ? 4 : 8 };
#include "table/kernels.def"

/* A kernel without stages has no k-tiles there. A thin one has a tile's sums, one whose warps have tiles nothing. */
#define ROW_IS_THIN(name) (ROW(name, stages) == 0)
#define ROW_THIN_SHARED(name) (TILES_##name ? 0 : ROW(name, block_m) * ROW(name, block_n) * ROW(name, acc_bytes))
#define ROW_FEW_SHARED(name)                                                                           \
    HGEMM_FEW_BYTES(ROW(name, block_m) < ROW(name, block_n) ? ROW(name, block_m) : ROW(name, block_n), \
                    ROW(name, block_k))
#define ROW_FP32_SHARED(name) \
    HGEMM_FP32_BYTES(ROW(name, stages), ROW(name, block_m), ROW(name, block_n), ROW(name, block_k))
#define ROW_NEEDS_SHARED(name)                    \
    (FP32_UNITS_##name    ? ROW_FP32_SHARED(name) \
     : !ROW_IS_THIN(name) ? ROW_MMA_SHARED(name)  \
     : PARTS_##name > 1   ? ROW_FEW_SHARED(name)  \
                          : ROW_THIN_SHARED(name))

/* A plain kernel takes its share of an SM, needed or not: PER_SM then says how many run there at one time. Else a rung
 * with less shared memory would have more of them, and what it gains or loses would not be due to its idea. */
#define PLAIN() +1
#define HGEMM_KERNEL(rung, name, columns, ...) enum { IS_PLAIN_##name = 0 columns };
#include "table/kernels.def"
#define ROW_SHARED(name) (IS_PLAIN_##name ? T4_SHARED / ROW(name, blocks) : ROW_NEEDS_SHARED(name))

/* A row that could not run on a T4 fails the build here, with its name. */
#define HGEMM_KERNEL(rung, name, ...)                                                                               \
    static_assert(ROW(name, block_m) % ROW(name, warp_m) == 0, #name ": the warp's m does not divide the block's"); \
    static_assert(ROW(name, block_n) % ROW(name, warp_n) == 0, #name ": the warp's n does not divide the block's"); \
    static_assert(ROW(name, block_k) % ROW(name, warp_k) == 0, #name ": the warp's k does not divide the block's"); \
    static_assert(ROW_IS_THIN(name) || ROW(name, warp_m) % 16 == 0,                                                 \
                  #name ": the warp's m is no multiple of the 16 rows of an mma");                                  \
    static_assert(ROW_IS_THIN(name) || ROW(name, warp_n) % 16 == 0,                                                 \
                  #name ": the warp's n is no multiple of an ldmatrix's 16 columns");                               \
    static_assert(ROW_IS_THIN(name) || ROW(name, warp_k) % 16 == 0,                                                 \
                  #name ": the warp's k is no even number of the 8 k's of an mma");                                 \
    static_assert(ROW_IS_THIN(name) || ROW_K_WARPS(name) > ROW(name, warp_m) / 16 ||                                \
                      ROW(name, warp_m) / 16 % ROW_K_WARPS(name) == 0,                                              \
                  #name ": the warps that share a tile do not share its rows evenly");                              \
    static_assert(ROW(name, stages) <= 2, #name ": stages are not 0, 1 or 2");                                      \
    static_assert(ROW(name, newer_blocks) >= ROW(name, blocks), #name ": fewer blocks on newer GPUs than on a T4"); \
    static_assert(ROW(name, group) >= 1, #name ": it has no WALK");                                                 \
    static_assert(ROW_THREADS(name) <= BLOCK_THREADS, #name ": more than 1024 threads a block");                    \
    static_assert(ROW_THREADS(name) * ROW(name, blocks) <= T4_THREADS,                                              \
                  #name ": the blocks of an SM have more than its 1024 threads");                                   \
    static_assert(ROW_NEEDS_SHARED(name) * ROW(name, blocks) <= ROW(name, most_shared),                             \
                  #name ": the blocks of an SM need more shared memory than it has");                               \
    static_assert(ROW_IS_THIN(name) ||                                                                              \
                      ROW(name, block_m) * ROW(name, block_k) / CHUNK_##name % ROW_THREADS(name) == 0,              \
                  #name ": the threads do not share the chunks of A's tile evenly");                                \
    static_assert(ROW_IS_THIN(name) ||                                                                              \
                      ROW(name, block_n) * ROW(name, block_k) / CHUNK_##name % ROW_THREADS(name) == 0,              \
                  #name ": the threads do not share the chunks of B's tile evenly");                                \
    static_assert(ROW(name, warp_m) * ROW(name, warp_n) / 32 * ROW(name, acc_bytes) / 4 < HGEMM_THREAD_REGISTERS,   \
                  #name ": the accumulators alone fill a thread's registers");
#include "table/kernels.def"

const kernel_t kernel_table[KERNEL_END] = {
#define BLOCK(m, n, k) .info.block_m = (m), .info.block_n = (n), .info.block_k = (k),
#define WARP(m, n, k) .info.warp_m = (m), .info.warp_n = (n), .info.warp_k = (k),
#define STAGES(count) .info.stages = (count),
#define ACC(type) .info.accumulate = (hgemm_accumulate_t)ACCUMULATE_##type,
#define OPS(which) .info.ops = OPS_##which, .compiled_ops = COMPILED_##which,
#define ALIGN(most)                                                             \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_align] = ACCESS_##most == ACCESS_one ? ACCESS_x16 + 1 : ACCESS_##most + 1,
#define PER_SM(t4, newer) .blocks = (t4), .newer_blocks = (newer),
#define INDIRECT(most) .limits[LIMIT_indirect] = ACCESS_##most + 1,
#define BF16(most) .limits[LIMIT_bf16] = ACCESS_##most + 1,
#define F32(most)                                                               \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_f32] = ACCESS_##most == ACCESS_one ? ACCESS_x16 + 1 : ACCESS_##most + 1,
#define ACCURACY(level) .accuracy = HGEMM_ACCURACY_##level,
#define SPLITS_FIRST() .splits_first = 1,
#define FP32_UNITS() .has_fp32_units = 1,
#define T4_ALONE() .is_for_t4_alone = 1,
#define WEIGHTS(most)                                                           \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_weights] = ACCESS_##most + 1,
#define TEAMS() .has_teams = 1,
#define TABLES() .takes_tables_only = 1,
#define TILES(count) .tiles = (count),
#define PLAIN() .is_plain = 1,
#define WALK(group_, prefetch_) .walk = {.group = (group_), .prefetch = (prefetch_)},
#define HGEMM_KERNEL(rung_, name_, columns, ...)                \
    [KERNEL_##name_] = {.info.name = #name_,                    \
                        .info.rung = #rung_,                    \
                        .info.threads = ROW_THREADS(name_),     \
                        .info.shared_bytes = ROW_SHARED(name_), \
                        columns.on_t4 = {__VA_ARGS__}},
#include "table/kernels.def"
};

int is_thin(int kernel)
{
    const kernel_t *row = &kernel_table[kernel];
    return kernel != KERNEL_NONE && row->info.stages == 0 && !row->is_plain && !row->tiles && !is_few(kernel);
}

int is_few(int kernel)
{
    return kernel_table[kernel].info.stages == 0 && kernel_table[kernel].limits[LIMIT_f32];
}

int is_tiny(int kernel)
{
    return kernel_table[kernel].tiles > 0;
}

int has_sums(int kernel, hgemm_accumulate_t accumulate)
{
    return kernel_table[kernel].info.accumulate == accumulate ||
           (kernel_table[kernel].info.stages == 0 && !is_few(kernel));
}

int is_selectable(int kernel)
{
    return kernel != KERNEL_NONE && !kernel_table[kernel].is_plain;
}

int can_split(int kernel)
{
    return is_selectable(kernel) && !is_tiny(kernel);
}

int kept_sums_bytes(int kernel, int64_t k)
{
    const kernel_t *row = &kernel_table[kernel];
    const int keeps = row->has_fp32_units && k > HGEMM_FP32_KEPT_K;
    return keeps ? HGEMM_FP32_KEPT_BYTES(row->info.block_m, row->info.block_n) : 0;
}

walk_t kernel_walk(int kernel, int on_t4)
{
    const kernel_t *row = &kernel_table[kernel];
    return on_t4 && row->on_t4.walk.group ? row->on_t4.walk : row->walk;
}

/* ---- Ways ----------------------------------------------------------------------------------------- */

static const struct {
    hgemm_type_t type_a, type_b;
} factor_types[FACTORS_COUNT] = {
#define FACTORS(name, a, b) [FACTORS_##name] = {HGEMM_TYPE_##a, HGEMM_TYPE_##b},
#include "table/ways.def"
};

factors_t factors_of(hgemm_type_t type_a, hgemm_type_t type_b)
{
    factors_t factors = (factors_t)0;
    if (type_table[type_a].bits == 16 && type_b == HGEMM_TYPE_F32) /* kernels of floats take these, too */
        type_a = HGEMM_TYPE_F32;
    if (type_table[type_b].bits == 16 && type_a == HGEMM_TYPE_F32)
        type_b = HGEMM_TYPE_F32;
    while (factors < FACTORS_COUNT &&
           (factor_types[factors].type_a != type_a || factor_types[factors].type_b != type_b))
        factors++;
    return factors;
}

int have_scales(factors_t factors)
{
    return type_table[factor_types[factors].type_a].has_scale || type_table[factor_types[factors].type_b].has_scale;
}

/* Bits of accesses by the names that ways.def has for them. */
enum {
    far = 1 << ACCESS_far,
    x16_far = 1 << ACCESS_x16 | 1 << ACCESS_far,
    x16_any_far = x16_far | 1 << ACCESS_any,
    x16_x8_any_far = x16_any_far | 1 << ACCESS_x8
};

static const struct {
    const char *name; /* NULL: there is no such way */
    int needs, upto;  /* columns */
    int accesses;     /* bits */
} ways[FACTORS_COUNT + 1][2] = {
/* none for types that no kernel takes together */
#define WAY(name_, indirect, factors, needs_, upto_, accesses_) \
    [FACTORS_##factors][indirect] = {#name_, LIMIT_##needs_, LIMIT_##upto_, accesses_},
#include "table/ways.def"
};

access_t access_from(access_t least, int indirect, factors_t factors)
{
    while (least < ACCESS_far && !(ways[factors][indirect].accesses >> least & 1))
        least++;
    return least;
}

/* ---- Variants ------------------------------------------------------------------------------------- */

int variant_exists(variant_t v)
{
    const int *limits = kernel_table[v.kernel].limits;
    return ways[v.factors][v.indirect].name && kernel_table[v.kernel].compiled_ops >> v.op & 1 &&
           ways[v.factors][v.indirect].accesses >> v.access & 1 && limits[ways[v.factors][v.indirect].needs] &&
           (int)v.access < limits[ways[v.factors][v.indirect].upto];
}

int variant_op(int kernel, int op)
{
    const kernel_t *row = &kernel_table[kernel];
    return row->info.ops == row->compiled_ops ? op : OP_one;
}

int variant_index(variant_t v)
{
    const int row = (v.kernel * VARIANT_OPS + v.op) * ACCESS_COUNT + (int)v.access;
    return (row * 2 + v.indirect) * FACTORS_COUNT + (int)v.factors;
}

variant_t variant_of(int index)
{
    const int row = index / VARIANT_WAYS;
    return (variant_t){.kernel = row / ACCESS_COUNT / VARIANT_OPS,
                       .op = row / ACCESS_COUNT % VARIANT_OPS,
                       .access = (access_t)(row % ACCESS_COUNT),
                       .indirect = index / FACTORS_COUNT % 2,
                       .factors = (factors_t)(index % FACTORS_COUNT)};
}

const char *const transpose_names[VARIANT_OPS] = {"nn", "nt", "tn", "tt"};
const char *const access_names[ACCESS_COUNT] = {
#define ACCESS(name) #name,
#include "table/ways.def"
};

void variant_symbol(variant_t variant, char symbol[VARIANT_SYMBOL])
{
    const int is_first = variant.access == ACCESS_x16, is_plain = !variant.indirect && !variant.factors;
    snprintf(symbol, VARIANT_SYMBOL, "%s_%s%s%s%s%s", kernel_table[variant.kernel].info.name,
             transpose_names[variant.op], is_first ? "" : "_", is_first ? "" : access_names[variant.access],
             is_plain ? "" : "_", is_plain ? "" : ways[variant.factors][variant.indirect].name);
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

const image_t *scale_image(void)
{
    return find_image("scale");
}

const image_t *recompute_image(void)
{
    return find_image("recompute");
}

const image_t *planes_image(void)
{
    return find_image("split");
}

const image_t *pack_image(void)
{
    return find_image("pack_weights");
}

const image_t *unpack_image(void)
{
    return find_image("unpack_weights");
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
    for (int index = variant_index((variant_t){.kernel = kernel}); index < VARIANT_COUNT; index++) {
        const variant_t variant = variant_of(index);
        const image_t *image = variant.kernel == kernel && variant_exists(variant) ? variant_image(variant) : NULL;
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
