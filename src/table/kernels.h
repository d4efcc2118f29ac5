/* SPDX-License-Identifier: MIT */
/*
 * The host's view of kernels.def: the enumeration of kernels, their descriptors, and the names and images of
 * their variants.
 */
#ifndef HGEMM_KERNELS_H
#define HGEMM_KERNELS_H

#include "table/args.h"
#include "device/device.h"

/* Numbers of the kernels, as hgemm_desc_t.kernel counts them: KERNEL_k1_tiled is 1. */
enum {
    KERNEL_NONE = HGEMM_KERNEL_AUTO,
#define HGEMM_KERNEL(rung, name, ...) KERNEL_##name,
#include "table/kernels.def"
    KERNEL_END
};

/* How a variant reads A and B, from the fastest to the most general: ACCESS_x16 and so on (kernels.def, ALIGN). */
typedef enum access_t {
#define ACCESS(name) ACCESS_##name,
#include "table/ways.def"
    ACCESS_COUNT,
    ACCESS_one = ACCESS_COUNT /* of a kernel: its one variant, called ACCESS_x16, takes all of these */
} access_t;

/* Types of A and B that kernels take together: FACTORS_halves and so on. Kernels of floats take halves and bfloat16
 * beside floats. */
typedef enum factors_t {
#define FACTORS(name, type_a, type_b) FACTORS_##name,
#include "table/ways.def"
    FACTORS_COUNT /* of types that no kernel takes together */
} factors_t;

factors_t factors_of(hgemm_type_t type_a, hgemm_type_t type_b);

/* Whether kernels for them get scales beside their arguments (args.h). */
int have_scales(factors_t factors);

/* Columns that say how far a row's variants go. */
enum {
#define LIMIT(column) LIMIT_##column,
#include "table/ways.def"
    LIMIT_COUNT
};

/* What a kernel is made of, by the source that it is of: FAMILY_k5_tuned and so on. */
typedef enum family_t {
#define FAMILY(rung) FAMILY_##rung,
#include "table/ways.def"
    FAMILY_COUNT
} family_t;

/* How blocks walk D and the L2 cache: columns of the table that may differ on a T4. */
typedef struct walk_t {
    int group;    /* rows of tiles that are walked together */
    int prefetch; /* k-tiles that the prefetch to the L2 cache runs ahead of the loads; 0: none */
} walk_t;

typedef struct kernel_t {
    hgemm_kernel_info_t info; /* but for registers, which are in the images */
    family_t family;
    int blocks;              /* that an SM of a T4 holds at one time; 0: the kernel is for newer GPUs only */
    int newer_blocks;        /* that an SM of a newer GPU holds */
    unsigned compiled_ops;   /* HGEMM_OPS_* of its variants: all of info.ops, or one by the name of nt for these */
    access_t access;         /* the most general that it is compiled for; all before it are, too */
    int limits[LIMIT_COUNT]; /* by column: the number of accesses, from the first, up to the one there; 0: no column */
    int tiles;               /* of a block, which has a warp for each; 0: its warps share one */
    hgemm_accuracy_t accuracy; /* of floats: what it promises */
    int has_fp32_units;        /* 1: of floats, which FP32 units multiply from shared memory */
    int has_teams;             /* 1: warps that share a tile have k-tiles of their own */
    int takes_tables_only;     /* 1: of packed weights it takes codes by tables, and no others */
    int is_invariant;          /* 1: it adds up in the order of batch invariance */
    int is_for_t4_alone;       /* 1: automatic selection leaves it out on newer GPUs */
    int is_plain; /* 1: it is there to be read: aligned rows, no fused epilogue, no split k, run by name only */
    walk_t walk;  /* on newer GPUs, ... */
    struct {
        walk_t walk; /* ... and on a T4; a group of 0: the same */
    } on_t4;
} kernel_t;

extern const kernel_t kernel_table[KERNEL_END]; /* row 0 is empty */

/* Whether a kernel's sums are those that a problem asks for: where there are no stages, f32 serves for f16, too. */
int has_sums(int kernel, hgemm_accumulate_t accumulate);

/* Whether a kernel's k can be split. */
int can_split(int kernel);

/* Halves that a kernel makes of a float. */
static inline int kernel_parts(const kernel_t *kernel)
{
    return kernel->accuracy == HGEMM_ACCURACY_11_BITS ? 1 : 2;
}

/* Bytes of a sum. */
static inline int kernel_sum_bytes(const hgemm_kernel_info_t *kernel)
{
    return kernel->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2;
}

/* Bytes of shared memory by which a block of a kernel has more where it multiplies so many k's: FP32 units keep sums.
 */
int kept_sums_bytes(int kernel, int64_t k);

walk_t kernel_walk(int kernel, int on_t4);

/* A variant is a kernel, a transpose, an access, and a way to take A and B (ways.def). `op` is 2 * op_a + op_b of the
 * row-major problem, so that a kernel covers it when bit `op` of info.ops is set; or where one variant takes all of
 * these, the one that it is called by. */
enum {
    VARIANT_OPS = 4,
    VARIANT_WAYS = 2 * FACTORS_COUNT,
    VARIANT_COUNT = KERNEL_END * VARIANT_OPS * ACCESS_COUNT * VARIANT_WAYS,
    VARIANT_SYMBOL = 64
};

enum { MOST_GRID_Y = 65535 }; /* blockIdx.y counts a batch */

/* Limits of a T4's streaming multiprocessor. */
enum { T4_SHARED = 64 << 10, T4_THREADS = 1024 };

typedef struct variant_t {
    int kernel;
    int op;
    access_t access;
    int indirect; /* 1: operands come by pointers or indices */
    factors_t factors;
} variant_t;

/* A number below VARIANT_COUNT, different for every variant, and the variant of such a number. */
int variant_index(variant_t variant);
variant_t variant_of(int index);

/* The transpose of the variant by which a kernel runs the transpose `op`. */
int variant_op(int kernel, int op);

/* The first kernel after that one, or after KERNEL_NONE, that has variants for such factors at all; or KERNEL_END. */
int next_kernel(int kernel, int indirect, factors_t factors);

/* Whether the table has it. Whether this build has its image is another question. */
int variant_exists(variant_t variant);

/* The first access from `least` on that kernels can have for such factors. */
access_t access_from(access_t least, int indirect, factors_t factors);

extern const char *const transpose_names[VARIANT_OPS]; /* nn nt tn tt */
extern const char *const access_names[ACCESS_COUNT];   /* x16 x8 any far */

/* Writes the symbol, such as "k5_64x64_nt_any", "k5_64x64_nt_any_indirect" or "k5_64x64_f32_nt_any_bf16". */
void variant_symbol(variant_t variant, char symbol[VARIANT_SYMBOL]);

/* Its image, NULL if this build has none. */
const image_t *variant_image(variant_t variant);

/* The kernels that are no rows of the table. */
const image_t *realign_image(void);
const image_t *scale_image(void);
const image_t *recompute_image(void);
const image_t *pack_image(void);
const image_t *unpack_image(void);

#endif
