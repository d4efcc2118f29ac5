/* SPDX-License-Identifier: MIT */
/* Which variants, copies and plans can run a problem. */
#include "select/feasible.h"

#include "table/args.h"
#include "table/tile_facts.h"

#include <string.h>

enum {
    WIDEST_LOAD = 16,    /* bytes that a thread loads at once, at most */
    COPY_ALIGNMENT = 128 /* bytes of which rows of copies begin at a multiple */
};

int64_t tile_count(const hgemm_kernel_info_t *kernel, int64_t m, int64_t n)
{
    return ceil_div(m, kernel->block_m) * ceil_div(n, kernel->block_n);
}

int64_t problem_tiles(const problem_t *p, const hgemm_kernel_info_t *kernel)
{
    int64_t rows = ceil_div(p->m, kernel->block_m);
    if (p->batch_mode == HGEMM_BATCH_GROUPED) /* every group may end within a tile, and has a row at least */
        rows = p->m / kernel->block_m + p->batch < p->m ? p->m / kernel->block_m + p->batch : p->m;
    return rows * ceil_div(p->n, kernel->block_n);
}

/* The leading dimension and the type of a factor, or of its copy. */
typedef struct lines_t {
    int64_t ld;
    hgemm_type_t type;
} lines_t;

static lines_t lines_of(const problem_t *p, int which, int copies)
{
    const factor_t *x = factor_of(p, which);
    if (copies & which)
        return (lines_t){copy_of(p, which).ld, copied_type(p, x->type)};
    return (lines_t){x->ld, x->type};
}

/* Whether 32-bit byte offsets reach every element of an operand's tile. */
static int offsets_fit_32_bits(lines_t x, const hgemm_kernel_info_t *kernel)
{
    int64_t lines = kernel->block_m > kernel->block_n ? kernel->block_m : kernel->block_n;
    if (lines < kernel->block_k)
        lines = kernel->block_k;
    return x.ld < (INT64_C(1) << 35) / (type_table[x.type].bits * lines);
}

/* Where rows are along m or n, the aligned loads take a tile's missing columns for the elements that follow in memory:
 * those of the next rows. Only the k-tile with the last HGEMM_LEAST_TAIL rows masks them, so no tile may overshoot its
 * row by more elements than these rows span. */
static int columns_stay_inside(const problem_t *p, lines_t a, lines_t b, const hgemm_kernel_info_t *kernel)
{
    const int64_t missing_m = (kernel->block_m - p->m % kernel->block_m) % kernel->block_m,
                  missing_n = (kernel->block_n - p->n % kernel->block_n) % kernel->block_n;
    return (p->a.is_along_k || missing_m <= HGEMM_LEAST_TAIL * a.ld) &&
           (p->b.is_along_k || missing_n <= HGEMM_LEAST_TAIL * b.ld);
}

/* The fastest access that is correct for the operands, or for the copies; ACCESS_COUNT if there is none. Groups may
 * begin at any row, which is a column of a transposed A. Of gathered rows, the kernels find whole chunks or single
 * elements. */
static access_t needed_access(const problem_t *p, int copies, const hgemm_kernel_info_t *kernel)
{
    if (p->k == 0) /* A and B are not read */
        return ACCESS_x16;
    if (p->is_mixed && !copies) /* loaded one by one, by types that are known when the kernel runs */
        return ACCESS_far;
    const lines_t a = lines_of(p, FACTOR_A, copies), b = lines_of(p, FACTOR_B, copies);
    access_t access = ACCESS_any;
    if (!offsets_fit_32_bits(a, kernel) || !offsets_fit_32_bits(b, kernel))
        access = ACCESS_far;
    else if (p->has_floats) /* whose columns are clamped */
        access = copies || p->whole >= WIDEST_LOAD / 4 ? ACCESS_x16 : ACCESS_any;
    else if (columns_stay_inside(p, a, b, kernel))
        access = copies || p->whole >= 8 ? ACCESS_x16 : p->whole >= 4 ? ACCESS_x8 : ACCESS_any;
    else if (copies) /* the rows of an operand that needs no copy are too short */
        return ACCESS_COUNT;
    const int by_columns = !p->a.is_along_k && (p->batch_mode == HGEMM_BATCH_GROUPED || p->product.gather_a);
    if (p->is_indirect && access != ACCESS_far && (by_columns || access != ACCESS_x16))
        access = p->product.gather_a ? ACCESS_far : ACCESS_any;
    return access;
}

hgemm_type_t copied_type(const problem_t *p, hgemm_type_t type)
{
    return p->has_floats ? HGEMM_TYPE_F32 : type;
}

copy_t copy_of(const problem_t *p, int which)
{
    const factor_t *x = factor_of(p, which);
    const hgemm_type_t type = copied_type(p, x->type);
    const int64_t whole = COPY_ALIGNMENT * 8 / type_table[type].bits, ld = ceil_div(x->width, whole) * whole;
    copy_t copy = {.lines = x->lines, .width = x->width, .ld = ld};
    copy.bytes = INT64_MAX / 4; /* so that those of both are a number */
    if (copy.lines < INT64_MAX / 16 / ld)
        copy.bytes = copy.lines * type_bytes(type, ld);
    return copy;
}

int copies_needed(const problem_t *p)
{
    const int halves = !p->is_mixed ? 0 : p->a.type == HGEMM_TYPE_F32 ? FACTOR_B : FACTOR_A; /* which become floats */
    const int width = p->has_floats ? WIDEST_LOAD / 4 : 8;
    if (p->is_packed)
        return 0;
    return halves | (p->a.whole >= width ? 0 : FACTOR_A) | (p->b.whole >= width ? 0 : FACTOR_B);
}

int64_t copied_bytes(const problem_t *p, int copies)
{
    int64_t bytes = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which <<= 1)
        bytes += copies & which ? copy_of(p, which).bytes : 0;
    return bytes;
}

int possible_copies(const problem_t *p, size_t workspace_bytes)
{
    int64_t room = (int64_t)workspace_bytes - HGEMM_WORKSPACE_TILES * 4 - scale_bytes(p->scales);
    int copies = p->k > 0 && p->batch == 1 && !p->is_indirect && (p->is_mixed || p->whole < 4) ? copies_needed(p) : 0;
    return copied_bytes(p, copies) <= room ? copies : 0;
}

/* Whether rows of C or D are whole chunks of 8 aligned halves. */
static int result_is_aligned(const problem_t *p, const void *data, int64_t ld, int64_t stride)
{
    return (uintptr_t)data % 16 == 0 && ld % 8 == 0 && p->n % 8 == 0 && (p->batch == 1 || stride % 8 == 0);
}

int is_plain_result(const problem_t *p)
{
    const kernel_args_t *of = &p->product;
    return !of->fused && result_is_aligned(p, of->d, of->ldd, of->stride_d) &&
           (of->beta == 0 || result_is_aligned(p, of->c, of->ldc, of->stride_c));
}

/* Whether a kernel for packed weights takes these: one that does not take all has no offsets, nor groups smaller than a
 * warp's k-tile; and it takes codes by tables, or the others. */
static int takes_weights(const kernel_t *kernel, const packed_form_t *weights)
{
    const int has_tables = code_table[weights->code].kind == CODES_TABLE,
              takes_all = HGEMM_TAKES_ALL(kernel->info.warp_m, kernel->takes_tables_only);
    return takes_all || (has_tables == kernel->takes_tables_only && 1 << weights->log_group >= kernel->info.warp_k &&
                         weights->zero != HGEMM_ZERO_OFFSET);
}

/* Whether a kernel does what the problem asks beside taking its operands. */
static int serves(const problem_t *p, int number)
{
    const kernel_t *kernel = &kernel_table[number];
    return has_sums(number, p->accumulate) && (!kernel->is_plain || is_plain_result(p)) &&
           kernel->accuracy <= p->accuracy && (!p->is_packed || takes_weights(kernel, &p->packed)) &&
           (!p->is_invariant || (p->kernel != HGEMM_KERNEL_AUTO && !p->has_floats) || kernel->is_invariant);
}

/* Whether a kernel that serves has such a variant. */
static int has_variant(const problem_t *p, variant_t variant)
{
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    return variant_exists(variant) &&
           (!p->product.fused || HGEMM_CAN_FUSE(info->block_m, info->block_n, variant.access >= ACCESS_any)) &&
           problem_tiles(p, info) <= INT32_MAX;
}

variant_t variant_for(const problem_t *p, int kernel, access_t access)
{
    return (variant_t){.kernel = kernel,
                       .op = variant_op(kernel, p->op),
                       .access = access,
                       .indirect = p->is_indirect,
                       .factors = p->factors};
}

int find_variant(const problem_t *p, int kernel, int copies, variant_t *variant)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    if (copies && kernel_table[kernel].is_plain) /* the rows of a copy are aligned, but may end within a chunk */
        return 0;
    const int takes_all = kernel_table[kernel].access == ACCESS_one; /* but halves beside floats: they are copied */
    if ((takes_all && (copies != 0) != p->is_mixed) || !serves(p, kernel))
        return 0;
    const access_t access = takes_all ? ACCESS_x16 : needed_access(p, copies, info);
    if (access == ACCESS_COUNT)
        return 0;
    *variant = variant_for(p, kernel, access);
    variant->access = access_from(access, variant->indirect, variant->factors);
    return has_variant(p, *variant);
}

int same_plan(const plan_t *one, const plan_t *other)
{
    return variant_index(one->variant) == variant_index(other->variant) && one->tiles == other->tiles &&
           one->whole_tiles == other->whole_tiles && one->splits == other->splits && one->k_split == other->k_split &&
           one->copies == other->copies && one->scales == other->scales;
}

int64_t sum_bytes(const hgemm_kernel_info_t *kernel)
{
    return (int64_t)kernel->block_m * kernel->block_n * kernel_sum_bytes(kernel);
}

int64_t scale_bytes(int scales)
{
    return scales ? (int64_t)sizeof(scale_space_t) : 0;
}

int64_t plan_workspace(const problem_t *p, const plan_t *plan)
{
    int64_t parts = (plan->tiles - plan->whole_tiles) * p->matrices * plan->splits;
    int64_t bytes = copied_bytes(p, plan->copies) + scale_bytes(plan->scales);
    if (plan->splits > 1)
        bytes += parts * sum_bytes(&kernel_table[plan->variant.kernel].info);
    return plan->splits > 1 || plan->copies || plan->scales ? HGEMM_WORKSPACE_TILES * 4 + bytes : 0;
}

static const char *variant_fault(const problem_t *p, variant_t variant, int copies)
{
    variant_t needed;
    if (variant.kernel <= KERNEL_NONE || variant.kernel >= KERNEL_END)
        return "there is no such kernel";
    if (variant_index(variant) != variant_index(variant_for(p, variant.kernel, variant.access)))
        return "the transposes, types, or pointers and indices are not those of the problem";
    if (copies && (p->k == 0 || p->batch != 1 || p->is_indirect || copies != copies_needed(p)))
        return "the copies are not of the operands that need them";
    if (!find_variant(p, variant.kernel, copies, &needed))
        return "the kernel does not run the problem";
    if (variant.access < needed.access || !has_variant(p, variant))
        return "the access is not what the operands need";
    if (!variant_image(variant))
        return "this build has no machine code for the variant";
    return NULL;
}

static const char *split_fault(const problem_t *p, const plan_t *plan)
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    int64_t split_tiles = plan->tiles - plan->whole_tiles;
    if (!can_split(plan->variant.kernel))
        return "the kernel cannot split k";
    if (p->keeps_k_whole)
        return "k of this problem must not be split";
    if (plan->whole_tiles < 0 || split_tiles <= 0)
        return "no tile is left to split, or more than there are";
    if (plan->k_split <= 0 || plan->k_split % info->block_k != 0 || ceil_div(p->k, plan->k_split) != plan->splits)
        return "the parts are not whole steps that cover k";
    if (p->matrices > MOST_GRID_Y || split_tiles > HGEMM_WORKSPACE_TILES / p->matrices)
        return "more tiles are split than the workspace has counters for";
    if (split_tiles > (INT32_MAX - plan->whole_tiles) / plan->splits)
        return "the blocks are more than a grid has";
    return NULL;
}

const char *plan_fault(const problem_t *p, size_t workspace_bytes, const plan_t *plan)
{
    const char *fault = variant_fault(p, plan->variant, plan->copies);
    if (fault)
        return fault;
    if (plan->tiles != problem_tiles(p, &kernel_table[plan->variant.kernel].info))
        return "the tiles are not those of the problem";
    if (plan->splits == 1 && (plan->whole_tiles != plan->tiles || plan->k_split != p->k))
        return "a tile is neither whole nor split";
    if (plan->scales != p->scales)
        return "the scales that it finds are not those that the problem lacks";
    fault = plan->splits == 1 ? NULL : split_fault(p, plan);
    if (!fault && plan_workspace(p, plan) > (int64_t)workspace_bytes)
        return "the workspace is too small";
    return fault;
}
