/* SPDX-License-Identifier: MIT */
#include "select/way.h"

#include <stdbool.h>

/* Whether rows of D begin at multiples of so many bytes, in all matrices. */
static bool begins_at(const problem_t *p, int bytes)
{
    const kernel_args_t *of = &p->product;
    const int64_t element = type_table[p->type_d].bits / 8, stride = p->matrices > 1 ? of->stride_d : 0;
    return (((uintptr_t)of->d | (uintptr_t)(of->ldd * element) | (uintptr_t)(stride * element)) &
            (uintptr_t)(bytes - 1)) == 0;
}

/* Whether an element of C, of two bytes as those of D, lies at the same place of a chunk as that of D. */
static bool is_c_alike(const problem_t *p)
{
    const kernel_args_t *of = &p->product;
    const uintptr_t strides = p->matrices > 1 ? (uintptr_t)(of->stride_c - of->stride_d) : 0;
    const uintptr_t apart = (uintptr_t)of->c - (uintptr_t)of->d;
    return of->beta == 0 || ((apart | (uintptr_t)(of->ldc - of->ldd) * 2 | strides * 2) & 15) == 0;
}

static bool is_gate_aligned(const problem_t *p)
{
    const kernel_args_t *of = &p->product;
    const uintptr_t stride = p->matrices > 1 ? (uintptr_t)of->stride_gate : 0;
    return (((uintptr_t)of->gate | (uintptr_t)of->ldgate * 2 | stride * 2) & 15) == 0;
}

/* Whether D is the sums times alpha, and nothing else. */
static bool is_sums(const kernel_args_t *of)
{
    return of->beta == 0 && !of->alpha_pointer && !of->beta_pointer && !of->bias && !of->gate && !of->scatter_d &&
           !(of->fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK);
}

/* Of kernels whose sums are in shared memory, or in few registers (thin, few, tiny, fma). */
static unsigned way_of_small(const problem_t *p, const kernel_t *kernel)
{
    if (kernel->has_fp32_units && is_sums(&p->product) && p->type_d == HGEMM_TYPE_F32)
        return HGEMM_WAY_SUMS;
    return p->product.fused || (p->is_indirect && p->is_col_major) ? HGEMM_WAY_ANY : HGEMM_WAY_ROWS;
}

/* In blocks of so many columns. `columns` of D are a multiple of 8 but at its right edge. */
static unsigned way(const problem_t *p, variant_t variant, int64_t columns)
{
    const kernel_args_t *of = &p->product;
    const kernel_t *kernel = &kernel_table[variant.kernel];
    const hgemm_kernel_info_t *info = &kernel->info;
    const bool has_halves = !p->has_floats && !have_scales(variant.factors);
    if (variant.indirect)
        return HGEMM_WAY_ANY;
    if (!has_halves && is_sums(of) && (p->has_floats || of->alpha == 1)) {
        const bool is_aligned = begins_at(p, type_table[p->type_d].bits / 2) && columns % 4 == 0;
        const bool has_words = p->type_d == HGEMM_TYPE_F32 && variant.access == ACCESS_far;
        const bool has_pairs = p->type_d == HGEMM_TYPE_F32 && begins_at(p, 8) && p->n % 2 == 0;
        const unsigned pairs = p->has_floats && has_pairs ? HGEMM_WAY_PAIRS : 0;
        if (is_aligned || (p->has_floats && has_words))
            return HGEMM_WAY_SUMS | (is_aligned ? HGEMM_WAY_ALIGNED : 0) | pairs;
        if (p->has_floats)
            return HGEMM_WAY_ANY | pairs;
    }
    const bool is_any = of->fused & HGEMM_FUSED_ANYHOW, is_alike = is_c_alike(p);
    const bool is_aligned = !is_any && begins_at(p, 16) && columns % 8 == 0 && is_alike;
    const bool is_plain = of->alpha == 1 && of->beta == 0, has_f16_sums = info->accumulate == HGEMM_ACCUMULATE_F16;
    const unsigned how = of->fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK;
    const unsigned extras = of->fused || !has_halves ? HGEMM_WAY_EXTRAS : 0;
    if (!extras) {
        if (is_aligned && is_plain)
            return HGEMM_WAY_EARLY;
        return HGEMM_WAY_ROWS | (is_aligned ? HGEMM_WAY_ALIGNED : 0) | (is_alike ? HGEMM_WAY_C_ALIKE : 0);
    }
    if (!is_aligned || (of->gate && !is_gate_aligned(p)))
        return HGEMM_WAY_ANY;
    /* Sums of halves take a bias of halves in pairs. */
    const bool is_simple =
        how <= HGEMM_ACTIVATION_RELU && (!has_f16_sums || (is_plain && (!of->bias || p->type_bias == HGEMM_TYPE_F16)));
    if (of->beta != 0 || of->gate || (!is_simple && variant.access != ACCESS_x16))
        return HGEMM_WAY_ROWS | HGEMM_WAY_ALIGNED | extras;
    return HGEMM_WAY_EARLY | extras | (is_simple ? 0 : HGEMM_WAY_SMOOTH);
}

unsigned ways_to_d(const problem_t *p, variant_t variant)
{
    const kernel_t *kernel = &kernel_table[variant.kernel];
    const int64_t block = kernel->info.block_n;
    switch (kernel->family) {
    case FAMILY_thin:
    case FAMILY_few:
    case FAMILY_tiny:
    case FAMILY_fma: return way_of_small(p, kernel);
    default: return way(p, variant, block) | way(p, variant, p->n % block) << HGEMM_WAY_AT_EDGE;
    }
}
