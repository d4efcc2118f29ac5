/* SPDX-License-Identifier: MIT */
#include "problem/problem.h"

#include "problem/weights.h"

enum { WIDEST_LOAD = 16 }; /* bytes that a thread loads at once, at most */

/* ---- A and B ------------------------------------------------------------------------------------- */

/* A or B of the call, as it is stored there, but for its lines and widths; whether memory runs along k is told by the
 * call's own op, in its own layout. */
static factor_t take_factor(const call_t *call, int which)
{
    const hgemm_desc_t *desc = &call->desc;
    factor_t x = {.type = HGEMM_TYPE_F16, .ld = 1, .scale = 1};
    if (!accesses(call, OPERAND_A)) { /* kernels load pointers, also unused ones */
        x.data = desc->batch_mode == HGEMM_BATCH_POINTERS ? desc->d : NULL;
    } else if (which == FACTOR_A) {
        x.data = desc->a, x.type = desc->type_a, x.ld = desc->lda, x.stride = desc->stride_a;
        x.scale = desc->scale_a, x.scale_pointer = desc->scale_a_pointer;
        x.is_exact = type_table[x.type].becomes != BECOMES_PARTS || (desc->flags & HGEMM_FLAG_HALVES_IN_A) != 0;
    } else {
        x.data = desc->b, x.type = desc->type_b, x.ld = desc->ldb, x.stride = desc->stride_b;
        x.scale = desc->scale_b, x.scale_pointer = desc->scale_b_pointer;
        x.is_exact = type_table[x.type].becomes != BECOMES_PARTS || (desc->flags & HGEMM_FLAG_HALVES_IN_B) != 0;
        if (desc->weights) /* which have no rows, and scales of their own */
            x.ld = 0, x.scale = 1, x.scale_pointer = NULL;
    }
    x.has_scale = (call->scaled & which) != 0;
    x.finds_scale = x.has_scale && x.scale == 0 && !x.scale_pointer;
    x.is_along_k = (which == FACTOR_A) == ((which == FACTOR_A ? desc->op_a : desc->op_b) == HGEMM_OP_N);
    if (desc->layout == HGEMM_COL_MAJOR)
        x.is_along_k = !x.is_along_k;
    return x;
}

/* The factor has `extent` rows of op(A), or columns of op(B). A stored column whose elements follow each other is as
 * well a row, which kernels load in chunks, unless it `stays` one. */
static void lay(factor_t *x, int64_t extent, int64_t k, int stays)
{
    x->lines = x->is_along_k ? extent : k, x->width = x->is_along_k ? k : extent;
    if (!stays && x->width == 1 && x->ld == 1 && x->lines > 1) {
        x->is_along_k = !x->is_along_k;
        x->ld = x->width = x->lines, x->lines = 1;
    }
}

/* Whether every group of so many elements along its rows is whole, and aligned to its own bytes, or to those of the
 * widest load. */
static int is_whole(const factor_t *x, int element, int width, int has_stride)
{
    const int bytes = element * width, aligned = bytes < WIDEST_LOAD ? bytes : WIDEST_LOAD, step = aligned / element;
    return x->address % (uintptr_t)aligned == 0 && x->ld % step == 0 && x->width % width == 0 &&
           (!has_stride || x->stride % step == 0);
}

static void align(const problem_t *p, factor_t *x, int64_t promised)
{
    const int element = type_table[x->type].bits / 8;
    const int has_stride = p->batch != 1 && p->batch_mode != HGEMM_BATCH_POINTERS;
    x->address = (uintptr_t)x->data;
    if (p->batch_mode == HGEMM_BATCH_POINTERS)
        x->address = (uintptr_t)(promised > element ? promised : element);
    x->aligned = x->address % 16 == 0 ? 16 : x->address % 8 == 0 ? 8 : element;
    x->whole = is_whole(x, element, 8, has_stride) ? 8 : is_whole(x, element, 4, has_stride) ? 4 : 1;
    x->bytes = element;
}

/* ---- The epilogue ------------------------------------------------------------------------------- */

/* The kernels' parameter `fused` (args.h). */
static unsigned fused_bits(const problem_t *p, const hgemm_desc_t *desc)
{
    const kernel_args_t *of = &p->product;
    unsigned bits = (unsigned)p->type_c << HGEMM_FUSED_TYPE_C | (unsigned)p->type_d << HGEMM_FUSED_TYPE_D |
                    (unsigned)desc->activation << HGEMM_FUSED_ACTIVATION;
    const int is_per_row =
        of->bias && (desc->bias_mode == HGEMM_BIAS_PER_ROW) == (desc->layout == HGEMM_ROW_MAJOR || p->is_col_major);
    if (of->bias)
        bits |=
            (unsigned)p->type_bias << HGEMM_FUSED_TYPE_BIAS | HGEMM_FUSED | (is_per_row ? HGEMM_FUSED_BIAS_PER_ROW : 0);
    if (of->gate)
        bits |= (unsigned)p->type_gate << HGEMM_FUSED_TYPE_GATE | HGEMM_FUSED;
    if (desc->index_type == HGEMM_INDEX_I64 && (of->scatter_d || of->gather_a || p->batch_mode == HGEMM_BATCH_GROUPED))
        bits |= HGEMM_FUSED_INDEX_64;
    const hgemm_type_t common = p->a.has_scale ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F16;
    const int is_common = (p->type_c == common || !of->c) && p->type_d == common &&
                          (!of->gate || p->type_gate == common) && !is_per_row && !of->scatter_d &&
                          !of->alpha_pointer && !of->beta_pointer;
    if (!is_common)
        bits |= HGEMM_FUSED_ANYHOW;
    return bits || of->scatter_d || of->alpha_pointer || of->beta_pointer ? bits | HGEMM_FUSED : 0;
}

/* C, D and what an element of D has beside its sum. */
static void take_epilogue(problem_t *p, const call_t *call)
{
    const hgemm_desc_t *desc = &call->desc;
    const int reads_c = accesses(call, OPERAND_C);
    const int has_strides = desc->batch_mode == HGEMM_BATCH_STRIDED;
    kernel_args_t *of = &p->product;
    p->type_c = reads_c ? desc->type_c : HGEMM_TYPE_F16, p->type_d = desc->type_d;
    p->type_bias = desc->bias ? desc->type_bias : HGEMM_TYPE_F16;
    p->type_gate = desc->gate ? desc->type_gate : HGEMM_TYPE_F16;
    of->c = reads_c ? desc->c : NULL, of->ldc = reads_c ? desc->ldc : 1;
    of->d = desc->d, of->ldd = desc->ldd;
    of->bias = desc->bias;
    of->gate = desc->gate, of->ldgate = desc->ldgate;
    of->scatter_d = desc->scatter_d, of->group_ends = desc->group_ends;
    if (has_strides)
        of->stride_c = reads_c ? desc->stride_c : 0, of->stride_d = desc->stride_d, of->stride_gate = desc->stride_gate;
    if (desc->batch_mode != HGEMM_BATCH_POINTERS)
        of->stride_bias = desc->stride_bias;
    of->alpha = desc->alpha, of->alpha_pointer = desc->alpha_pointer;
    if (!accesses(call, OPERAND_A)) /* a zero of the sign that leaves beta * C as it is, -0 included, or gives +0 */
        of->alpha = reads_c ? -0.0f : 0.0f, of->alpha_pointer = NULL;
    of->beta = desc->beta_pointer ? 0 : desc->beta, of->beta_pointer = desc->beta_pointer;
    of->fused = fused_bits(p, desc);
}

/* ---- Row-major ---------------------------------------------------------------------------------- */

/* Rows in groups or with indices would be columns of D^T, and kernels have such of rows alone. And what is added up of
 * parts of floats is not the same with A and B exchanged: where a row is to have the same bits alone and in a group, D
 * stays what it is for both. */
static int has_rows_that_stay(const call_t *call)
{
    const hgemm_desc_t *desc = &call->desc;
    const unsigned listed = 1u << OPERAND_GROUP_ENDS | 1u << OPERAND_GATHER_A | 1u << OPERAND_SCATTER_D;
    return (call->accessed & listed) != 0 || (call->has_floats && (desc->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0);
}

/* A column-major matrix is the row-major one of its transpose, so D = op(A) op(B) turns into D^T = op(B)^T op(A)^T: the
 * factors trade places, and so do m and n, rows and columns. Where D's rows stay, D stays what it is, and of A and B
 * alone the transposes are taken. */
void normalise_call(const call_t *call, problem_t *p)
{
    const hgemm_desc_t *desc = &call->desc;
    const int stay = has_rows_that_stay(call), is_transposed = desc->layout == HGEMM_COL_MAJOR && !stay;
    const int is_read = accesses(call, OPERAND_A), is_invariant = (desc->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0;
    const factor_t a = take_factor(call, FACTOR_A), b = take_factor(call, FACTOR_B);
    *p = (problem_t){
        .kernel = desc->kernel,
        .accumulate = desc->accumulate,
        .is_invariant = is_invariant,
        .m = is_transposed ? desc->n : desc->m,
        .n = is_transposed ? desc->m : desc->n,
        .k = is_read ? desc->k : 0,
        .batch = desc->batch,
        .matrices = desc->batch_mode == HGEMM_BATCH_GROUPED ? 1 : desc->batch,
        .batch_mode = desc->batch_mode,
        .is_col_major = desc->layout == HGEMM_COL_MAJOR && stay,
        .a = is_transposed ? b : a,
        .b = is_transposed ? a : b,
        .is_packed = desc->weights != NULL,
        .factors = factors_of(is_transposed ? b.type : a.type, is_transposed ? a.type : b.type),
        .has_floats = call->has_floats,
        .is_mixed = call->has_floats && a.type != b.type,
        .product.gather_a = is_read ? desc->gather_a : NULL,
    };
    if (p->is_packed)
        p->packed = call->packed, p->weight_group = packed_group(&call->packed);
    p->is_indirect = p->batch_mode != HGEMM_BATCH_STRIDED || p->product.gather_a || p->is_col_major;
    p->keeps_k_whole = is_invariant || (p->is_indirect && !p->is_packed);
    p->scales = (p->a.finds_scale ? FACTOR_A : 0) | (p->b.finds_scale ? FACTOR_B : 0);
    /* One kernel alone adds up in the order of batch invariance. */
    p->accuracy = p->has_floats && !is_invariant ? desc->accuracy : HGEMM_ACCURACY_F32;
    if (p->batch_mode != HGEMM_BATCH_STRIDED)
        p->a.stride = 0;
    if (p->batch_mode == HGEMM_BATCH_POINTERS)
        p->b.stride = 0;
    /* A kernel that is asked for by name may not have the other transpose, and sums that do not depend on m come from
     * kernels that do not. */
    const int stays = p->kernel != HGEMM_KERNEL_AUTO || is_invariant || p->is_packed;
    lay(&p->a, p->m, p->k, stays || p->product.gather_a || p->batch_mode == HGEMM_BATCH_GROUPED);
    lay(&p->b, p->n, p->k, stays);
    p->op = 2 * !p->a.is_along_k + p->b.is_along_k;
    align(p, &p->a, desc->alignment);
    align(p, &p->b, desc->alignment);
    p->whole = p->a.whole < p->b.whole ? p->a.whole : p->b.whole;
    if (p->is_packed)
        p->b.bytes = weight_bytes(&p->packed);
    take_epilogue(p, call);
    p->product.a = p->a.data, p->product.lda = p->a.ld, p->product.stride_a = p->a.stride;
    p->product.b = p->b.data, p->product.ldb = p->b.ld, p->product.stride_b = p->b.stride;
    p->product.m = (int)p->m, p->product.n = (int)p->n, p->product.k = (int)p->k;
}

problem_t normalise(const hgemm_desc_t *desc)
{
    problem_t problem = {.is_idle = 1};
    call_t call = {.desc = *desc};
    char words[DEVICE_DETAIL];
    see_operands(&call);
    if (see_types(&call, words) == HGEMM_STATUS_SUCCESS && !is_idle_call(&call))
        normalise_call(&call, &problem);
    return problem;
}
