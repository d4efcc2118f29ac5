/* SPDX-License-Identifier: MIT */
/* The table: its checks at compile time, its descriptors, its images. */
#include "table/kernels.h"

#include "problem/types.h"
#include "table/tile_facts.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
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

/*
 * The table is read once: a column becomes a tuple of its name and numbers, a row a sequence of tuples, from which its
 * element of the array is made. Three words are said of each of them: INIT_<column>, what it initialises;
 * TYPE_<column>, members of a type; FACT_<column>, a summand of the row's facts, where what it says is that it is
 * there. MAP(word, row) says one of a whole row: two macros take turns, for none may call itself.
 */
#define MAP(word, ...) MAP_END(word##_A __VA_ARGS__)
#define MAP_END(...) MAP_LAST(__VA_ARGS__)
#define MAP_LAST(...) __VA_ARGS__##_END
#define INIT_A(column, ...) INIT_##column(__VA_ARGS__) INIT_B
#define INIT_B(column, ...) INIT_##column(__VA_ARGS__) INIT_A
#define TYPE_A(column, ...) TYPE_##column(__VA_ARGS__) TYPE_B
#define TYPE_B(column, ...) TYPE_##column(__VA_ARGS__) TYPE_A
#define FACT_A(column, ...) FACT_##column(__VA_ARGS__) FACT_B
#define FACT_B(column, ...) FACT_##column(__VA_ARGS__) FACT_A
#define INIT_A_END
#define INIT_B_END
#define TYPE_A_END
#define TYPE_B_END
#define FACT_A_END
#define FACT_B_END

/* C has no constants in a type but the sizes of arrays: COLUMN(name, column) is the number in a column of a row, and
 * HAS(name, fact) whether it has one without numbers; TILES_OF(name) the number of those, which may be 0. */
#define COLUMN(name, column) ((int)sizeof(((struct row_##name *)0)->column))
#define HAS(name, fact) (((COLUMN(name, facts) - 1) & FACT_##fact) != 0)
#define TILES_OF(name) ((COLUMN(name, facts) - 1) / FACT_TILE)
enum {
    FACT_PACKED = 1,
    FACT_FLOATS = 2,
    FACT_11_BITS = 4,
    FACT_FP32 = 8,
    FACT_PLAIN_ROW = 16,
    FACT_INVARIANT_ROW = 32,
    FACT_TILE = 64
};

#define BLOCK(m, n, k) (BLOCK, m, n, k)
#define INIT_BLOCK(m, n, k) .info.block_m = (m), .info.block_n = (n), .info.block_k = (k),
#define TYPE_BLOCK(m, n, k) char block_m[m], block_n[n], block_k[k];
#define FACT_BLOCK(...)

#define WARP(m, n, k) (WARP, m, n, k)
#define INIT_WARP(m, n, k) .info.warp_m = (m), .info.warp_n = (n), .info.warp_k = (k),
#define TYPE_WARP(m, n, k) char warp_m[m], warp_n[n], warp_k[k];
#define FACT_WARP(...)

#define STAGES(count) (STAGES, count)
#define INIT_STAGES(count) .info.stages = (count),
#define TYPE_STAGES(count) char stages[count];
#define FACT_STAGES(...)

#define ACC(type) (ACC, type)
#define INIT_ACC(type) .info.accumulate = (hgemm_accumulate_t)ACCUMULATE_##type,
#define TYPE_ACC(type) char acc_bytes[ACC_BYTES_##type];
#define FACT_ACC(...)

#define OPS(which) (OPS, which)
#define INIT_OPS(which) .info.ops = OPS_##which, .compiled_ops = COMPILED_##which,
#define TYPE_OPS(...)
#define FACT_OPS(...)

#define ALIGN(most) (ALIGN, most)
#define INIT_ALIGN(most)                                                        \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_align] = ACCESS_##most == ACCESS_one ? ACCESS_x16 + 1 : ACCESS_##most + 1,
#define TYPE_ALIGN(...)
#define FACT_ALIGN(...)

#define PER_SM(t4, newer) (PER_SM, t4, newer)
#define INIT_PER_SM(t4, newer) .blocks = (t4), .newer_blocks = (newer),
#define TYPE_PER_SM(t4, newer)    \
    char blocks[(t4) ? (t4) : 1]; \
    char newer_blocks[newer];
#define FACT_PER_SM(...)

#define INDIRECT(most) (INDIRECT, most)
#define INIT_INDIRECT(most) .limits[LIMIT_indirect] = ACCESS_##most + 1,
#define TYPE_INDIRECT(...)
#define FACT_INDIRECT(...)

#define BF16(most) (BF16, most)
#define INIT_BF16(most) .limits[LIMIT_bf16] = ACCESS_##most + 1,
#define TYPE_BF16(...)
#define FACT_BF16(...)

#define F32(most) (F32, most)
#define INIT_F32(most)                                                          \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_f32] = ACCESS_##most == ACCESS_one ? ACCESS_x16 + 1 : ACCESS_##most + 1,
#define TYPE_F32(...)
#define FACT_F32(...) +FACT_FLOATS

#define ACCURACY(level) (ACCURACY, level)
#define INIT_ACCURACY(level) .accuracy = HGEMM_ACCURACY_##level,
#define TYPE_ACCURACY(...)
#define FACT_ACCURACY(level) +(HGEMM_ACCURACY_##level == HGEMM_ACCURACY_11_BITS ? FACT_11_BITS : 0)

#define FP32_UNITS() (FP32_UNITS, 1)
#define INIT_FP32_UNITS(...) .has_fp32_units = 1,
#define TYPE_FP32_UNITS(...)
#define FACT_FP32_UNITS(...) +FACT_FP32

#define T4_ALONE() (T4_ALONE, 1)
#define INIT_T4_ALONE(...) .is_for_t4_alone = 1,
#define TYPE_T4_ALONE(...)
#define FACT_T4_ALONE(...)

#define WEIGHTS(most) (WEIGHTS, most)
#define INIT_WEIGHTS(most)                                                      \
    .info.any_alignment = ACCESS_##most >= ACCESS_any, .access = ACCESS_##most, \
    .limits[LIMIT_weights] = ACCESS_##most + 1,
#define TYPE_WEIGHTS(...)
#define FACT_WEIGHTS(...) +FACT_PACKED

#define TEAMS() (TEAMS, 1)
#define INIT_TEAMS(...) .has_teams = 1,
#define TYPE_TEAMS(...)
#define FACT_TEAMS(...)

#define TABLES() (TABLES, 1)
#define INIT_TABLES(...) .takes_tables_only = 1,
#define TYPE_TABLES(...)
#define FACT_TABLES(...)

#define INVARIANT() (INVARIANT, 1)
#define INIT_INVARIANT(...) .is_invariant = 1,
#define TYPE_INVARIANT(...)
#define FACT_INVARIANT(...) +FACT_INVARIANT_ROW

#define TILES(count) (TILES, count)
#define INIT_TILES(count) .tiles = (count),
#define TYPE_TILES(...)
#define FACT_TILES(count) +(count)*FACT_TILE

#define PLAIN() (PLAIN, 1)
#define INIT_PLAIN(...) .is_plain = 1,
#define TYPE_PLAIN(...)
#define FACT_PLAIN(...) +FACT_PLAIN_ROW

#define WALK(group, prefetch) (WALK, group, prefetch)
#define INIT_WALK(group_, prefetch_) .walk = {.group = (group_), .prefetch = (prefetch_)},
#define TYPE_WALK(group_, prefetch_)                                                                         \
    char group[group_];                                                                                      \
    static_assert((group_) >= 1 && ((group_) & ((group_)-1)) == 0, "WALK: the group is not a power of two"); \
    static_assert((prefetch_) >= 0, "WALK: the prefetch is negative");
#define FACT_WALK(...)

#define SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag) (SCHEDULE, lds_gap, sts_first, sts_gap, ldg_lag)
#define INIT_SCHEDULE(...)
#define TYPE_SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag)                               \
    static_assert((lds_gap) >= 1 && (sts_first) >= 0 && (sts_gap) >= 1 && (ldg_lag) >= 0, \
                  "SCHEDULE: a gap is less than 1, or another number negative");
#define FACT_SCHEDULE(...)

#define BF16_SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag, cvt_lead, cvt_gap) \
    (BF16_SCHEDULE, lds_gap, sts_first, sts_gap, ldg_lag, cvt_lead, cvt_gap)
#define INIT_BF16_SCHEDULE(...)
#define TYPE_BF16_SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag, cvt_lead, cvt_gap)       \
    static_assert((lds_gap) >= 1 && (sts_gap) >= 1 && (ldg_lag) >= 0 && (cvt_gap) >= 1 && \
                      3 * (cvt_gap) <= (cvt_lead) && (cvt_lead) <= (sts_first),           \
                  "BF16_SCHEDULE: a pair is converted after it is stored, or before the k-tile begins");
#define FACT_BF16_SCHEDULE(...)

/* ---- What follows from a row --------------------------------------------------------------------- */

#define K_WARPS_OF(name) HGEMM_K_WARPS(COLUMN(name, block_k), COLUMN(name, warp_k))
#define THREADS_OF(name)                                                                                      \
    (HGEMM_THREADS(COLUMN(name, block_m), COLUMN(name, block_n), COLUMN(name, block_k), COLUMN(name, warp_m), \
                   COLUMN(name, warp_n), COLUMN(name, warp_k)) *                                              \
     (TILES_OF(name) ? TILES_OF(name) : 1))
#define IS_THIN(name) (COLUMN(name, stages) == 0)
#define CHUNK_OF(name) (HAS(name, FP32) ? 4 : 8) /* elements that a thread stores to shared memory at once */

/* Halves that an element of A or B is in shared memory. */
#define PARTS_OF(name) (HAS(name, FLOATS) && !HAS(name, 11_BITS) ? 2 : 1)

/* In the main loop shared memory holds k-tiles of A and B, but for packed weights; the epilogue reuses it for sums. */
#define MAIN_BYTES(name)                                                                                          \
    (HGEMM_MAIN_BYTES(COLUMN(name, stages), COLUMN(name, block_m), HAS(name, PACKED) ? 0 : COLUMN(name, block_n), \
                      COLUMN(name, block_k)) *                                                                    \
     PARTS_OF(name))
#define SUMS_BYTES(name)                                                                                     \
    HGEMM_SUMS_BYTES(COLUMN(name, block_m) / COLUMN(name, warp_m) * K_WARPS_OF(name), COLUMN(name, block_n), \
                     COLUMN(name, acc_bytes))
#define SIDE_BYTES(name) (HAS(name, FLOATS) ? HGEMM_SIDE_BYTES(COLUMN(name, block_m), COLUMN(name, block_n)) : 0)
#define MMA_SHARED(name) \
    ((MAIN_BYTES(name) > SUMS_BYTES(name) ? MAIN_BYTES(name) : SUMS_BYTES(name)) + SIDE_BYTES(name))

/* A kernel without stages has no k-tiles there. A thin one has a tile's sums, one whose warps have tiles nothing. */
#define THIN_SHARED(name) (TILES_OF(name) ? 0 : COLUMN(name, block_m) * COLUMN(name, block_n) * COLUMN(name, acc_bytes))
#define FEW_SHARED(name)                                                                                           \
    HGEMM_FEW_BYTES(COLUMN(name, block_m) < COLUMN(name, block_n) ? COLUMN(name, block_m) : COLUMN(name, block_n), \
                    COLUMN(name, block_k))
#define FP32_SHARED(name) \
    HGEMM_FP32_BYTES(COLUMN(name, stages), COLUMN(name, block_m), COLUMN(name, block_n), COLUMN(name, block_k))
#define NEEDED_SHARED(name)                  \
    (HAS(name, FP32)     ? FP32_SHARED(name) \
     : !IS_THIN(name)    ? MMA_SHARED(name)  \
     : HAS(name, FLOATS) ? FEW_SHARED(name)  \
                         : THIN_SHARED(name))

/* A plain kernel takes its share of an SM, needed or not: PER_SM then says how many run there at one time. Else a rung
 * with less shared memory would have more of them, and what it gains or loses would not be due to its idea. */
#define SHARED_OF(name) (HAS(name, PLAIN_ROW) ? T4_SHARED / COLUMN(name, blocks) : NEEDED_SHARED(name))

/* A row that could not run on a T4 fails the build here, with its name. */
#define CHECKED(name)                                                                                         \
    static_assert(COLUMN(name, block_m) % COLUMN(name, warp_m) == 0,                                          \
                  #name ": the warp's m does not divide the block's");                                        \
    static_assert(COLUMN(name, block_n) % COLUMN(name, warp_n) == 0,                                          \
                  #name ": the warp's n does not divide the block's");                                        \
    static_assert(COLUMN(name, block_k) % COLUMN(name, warp_k) == 0,                                          \
                  #name ": the warp's k does not divide the block's");                                        \
    static_assert(IS_THIN(name) || COLUMN(name, warp_m) % 16 == 0,                                            \
                  #name ": the warp's m is no multiple of the 16 rows of an mma");                            \
    static_assert(IS_THIN(name) || COLUMN(name, warp_n) % 16 == 0,                                            \
                  #name ": the warp's n is no multiple of an ldmatrix's 16 columns");                         \
    static_assert(IS_THIN(name) || COLUMN(name, warp_k) % 16 == 0,                                            \
                  #name ": the warp's k is no even number of the 8 k's of an mma");                           \
    static_assert(IS_THIN(name) || K_WARPS_OF(name) > COLUMN(name, warp_m) / 16 ||                            \
                      COLUMN(name, warp_m) / 16 % K_WARPS_OF(name) == 0,                                      \
                  #name ": the warps that share a tile do not share its rows evenly");                        \
    static_assert(!HAS(name, INVARIANT_ROW) || HAS(name, FLOATS) ||                                           \
                      (COLUMN(name, block_k) == 64 && COLUMN(name, warp_k) == (HAS(name, PACKED) ? 64 : 32)), \
                  #name ": it does not add up in the order of INVARIANT");                                    \
    static_assert(COLUMN(name, stages) <= 2, #name ": stages are not 0, 1 or 2");                             \
    static_assert(COLUMN(name, newer_blocks) >= COLUMN(name, blocks),                                         \
                  #name ": fewer blocks on newer GPUs than on a T4");                                         \
    static_assert(COLUMN(name, group) >= 1, #name ": it has no WALK");                                        \
    static_assert(THREADS_OF(name) <= BLOCK_THREADS, #name ": more than 1024 threads a block");               \
    static_assert(THREADS_OF(name) * COLUMN(name, blocks) <= T4_THREADS,                                      \
                  #name ": the blocks of an SM have more than its 1024 threads");                             \
    static_assert(NEEDED_SHARED(name) * COLUMN(name, blocks) <= T4_SHARED,                                    \
                  #name ": the blocks of an SM need more shared memory than it has");                         \
    static_assert(IS_THIN(name) ||                                                                            \
                      COLUMN(name, block_m) * COLUMN(name, block_k) / CHUNK_OF(name) % THREADS_OF(name) == 0, \
                  #name ": the threads do not share the chunks of A's tile evenly");                          \
    static_assert(IS_THIN(name) ||                                                                            \
                      COLUMN(name, block_n) * COLUMN(name, block_k) / CHUNK_OF(name) % THREADS_OF(name) == 0, \
                  #name ": the threads do not share the chunks of B's tile evenly");                          \
    static_assert(COLUMN(name, warp_m) * COLUMN(name, warp_n) / 32 * COLUMN(name, acc_bytes) / 4 <            \
                      HGEMM_THREAD_REGISTERS,                                                                 \
                  #name ": the accumulators alone fill a thread's registers");

/* Declares what a type has within an expression, which is 0. */
#define DECLARED(...) (0 * (int)sizeof(struct __VA_ARGS__))

/* A row without ON_T4 has nothing in on_t4. Registers are in the images. */
const kernel_t kernel_table[KERNEL_END] = {
#define HGEMM_KERNEL(rung_, name_, columns, ...)                                                   \
    [KERNEL_##name_] = {.info.registers = DECLARED(row_##name_ {                                   \
                                              MAP(TYPE, columns) char facts[1 MAP(FACT, columns)]; \
                                              struct {                                             \
                                                  MAP(TYPE, __VA_ARGS__)                           \
                                              } on_t4;                                             \
                                          }) +                                                     \
                                          DECLARED({                                               \
                                              CHECKED(name_)                                       \
                                              char is_checked;                                     \
                                          }),                                                      \
                        .info.name = #name_,                                                       \
                        .info.rung = #rung_,                                                       \
                        .family = FAMILY_##rung_,                                                  \
                        .info.threads = THREADS_OF(name_),                                         \
                        .info.shared_bytes = SHARED_OF(name_),                                     \
                        MAP(INIT, columns).on_t4 = {MAP(INIT, __VA_ARGS__)}},
#include "table/kernels.def"
};

int has_sums(int kernel, hgemm_accumulate_t accumulate)
{
    const kernel_t *row = &kernel_table[kernel];
    return row->info.accumulate == accumulate || (row->info.stages == 0 && row->family != FAMILY_few);
}

int can_split(int kernel)
{
    return kernel != KERNEL_NONE && !kernel_table[kernel].is_plain && !kernel_table[kernel].tiles;
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
    return type_table[factor_types[factors].type_a].scales == SCALES_ONE ||
           type_table[factor_types[factors].type_b].scales == SCALES_ONE;
}

/* Bits of accesses by the names that ways.def has for them. */
enum {
    far = 1 << ACCESS_far,
    x16_far = 1 << ACCESS_x16 | 1 << ACCESS_far,
    x16_any_far = x16_far | 1 << ACCESS_any,
    x16_x8_any_far = x16_any_far | 1 << ACCESS_x8
};

static const struct {
    const char *name;
    int needs, upto; /* columns */
    int accesses;    /* bits; 0: there is no such way */
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

int next_kernel(int kernel, int indirect, factors_t factors)
{
    const int accesses = ways[factors][indirect].accesses, needs = ways[factors][indirect].needs;
    do
        kernel++;
    while (kernel < KERNEL_END && !(accesses && kernel_table[kernel].limits[needs]));
    return kernel;
}

int variant_exists(variant_t v)
{
    return kernel_table[v.kernel].limits[ways[v.factors][v.indirect].needs] &&
           kernel_table[v.kernel].compiled_ops >> v.op & 1 && ways[v.factors][v.indirect].accesses >> v.access & 1 &&
           (int)v.access < kernel_table[v.kernel].limits[ways[v.factors][v.indirect].upto];
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

static const image_t *find_image(const char *symbol)
{
    int low = 0, high = hgemm_image_count; /* it is between them, if there is one */
    while (low < high) {
        const int middle = (low + high) / 2, order = strcmp(symbol, hgemm_images[middle].symbol);
        if (order == 0)
            return &hgemm_images[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Threads that look for the same one write the same. */
const image_t *variant_image(variant_t variant)
{
    static _Atomic(const image_t *) found[VARIANT_COUNT]; /* NULL: not looked for, or not in this build */
    _Atomic(const image_t *) *const place = &found[variant_index(variant)];
    const image_t *image = atomic_load_explicit(place, memory_order_relaxed);
    if (!image) {
        char symbol[VARIANT_SYMBOL];
        variant_symbol(variant, symbol);
        image = find_image(symbol);
        atomic_store_explicit(place, image, memory_order_relaxed);
    }
    return image;
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
