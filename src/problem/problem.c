/* SPDX-License-Identifier: MIT */
#include "problem/problem.h"

#include "problem/weights.h"
#include "table/args.h"

static int index_bits(const hgemm_desc_t *desc)
{
    return desc->index_type == HGEMM_INDEX_I64 ? 64 : 32;
}

/* ---- What is accessed -------------------------------------------------------------------------- */

static unsigned mark(operand_t operand, int is_accessed)
{
    return is_accessed ? 1u << operand : 0;
}

/* Also before the types are checked. Beside floats a bfloat16 is taken for one. */
int factor_has_scale(const hgemm_desc_t *p, int which)
{
    const hgemm_type_t type = which == FACTOR_A ? p->type_a : p->type_b;
    return (unsigned)type <= TYPE_COUNT && type_table[type].has_scale && !has_floats(p);
}

unsigned accessed_operands(const hgemm_desc_t *desc)
{
    int multiplies = desc->k != 0 && (desc->alpha_pointer || desc->alpha != 0);
    if (desc->m == 0 || desc->n == 0 || desc->batch == 0)
        return 0;
    return mark(OPERAND_A, multiplies) | mark(OPERAND_B, multiplies) |
           mark(OPERAND_C, desc->beta_pointer || desc->beta != 0) | mark(OPERAND_D, 1) |
           mark(OPERAND_BIAS, desc->bias != NULL) | mark(OPERAND_GATE, desc->gate != NULL) |
           mark(OPERAND_ALPHA, multiplies && desc->alpha_pointer) | mark(OPERAND_BETA, desc->beta_pointer != NULL) |
           mark(OPERAND_GROUP_ENDS, desc->batch_mode == HGEMM_BATCH_GROUPED) |
           mark(OPERAND_GATHER_A, multiplies && desc->gather_a) | mark(OPERAND_SCATTER_D, desc->scatter_d != NULL) |
           mark(OPERAND_SCALE_A, multiplies && factor_has_scale(desc, FACTOR_A) && desc->scale_a_pointer) |
           mark(OPERAND_SCALE_B, multiplies && factor_has_scale(desc, FACTOR_B) && desc->scale_b_pointer);
}

int d_is_c(const hgemm_desc_t *desc)
{
    int one_stride = desc->batch_mode != HGEMM_BATCH_STRIDED || desc->batch == 1 || desc->stride_d == desc->stride_c;
    return desc->d == desc->c && desc->type_d == desc->type_c && desc->ldd == desc->ldc && one_stride;
}

int nothing_to_compute(const hgemm_desc_t *desc)
{
    unsigned accessed = accessed_operands(desc);
    int is_copy =
        (accessed & ~(1u << OPERAND_SCATTER_D | 1u << OPERAND_GROUP_ENDS)) == (1u << OPERAND_C | 1u << OPERAND_D) &&
        desc->beta == 1 && desc->activation == HGEMM_ACTIVATION_NONE;
    return accessed == 0 || (is_copy && d_is_c(desc));
}

/* ---- Where it lies ------------------------------------------------------------------------------ */

/* A matrix with `rows` and `columns`, as it is stored in the call's layout. */
static view_t view_matrix(const hgemm_desc_t *desc, const void *data, hgemm_type_t type, int64_t rows, int64_t columns,
                          int64_t ld, int64_t stride)
{
    int row_major = desc->layout == HGEMM_ROW_MAJOR;
    return (view_t){.data = data,
                    .bits = type_table[type].bits,
                    .lines = row_major ? rows : columns,
                    .width = row_major ? columns : rows,
                    .ld = ld,
                    .batch = desc->batch,
                    .stride = stride};
}

static view_t view_vector(const void *data, int bits, int64_t width, int64_t batch, int64_t stride)
{
    return (view_t){
        .data = data, .bits = bits, .lines = 1, .width = width, .ld = width, .batch = batch, .stride = stride};
}

static view_t view_stored(const hgemm_desc_t *desc, operand_t operand)
{
    const int a_is_t = desc->op_a == HGEMM_OP_T, b_is_t = desc->op_b == HGEMM_OP_T;
    const int64_t m = desc->m, n = desc->n, k = desc->k;
    switch (operand) {
    case OPERAND_A:
        return view_matrix(desc, desc->a, desc->type_a, a_is_t ? k : m, a_is_t ? m : k, desc->lda, desc->stride_a);
    case OPERAND_B:
        if (desc->type_b == HGEMM_TYPE_PACKED)
            return view_vector(desc->b, 8, form_of(desc->weights).bytes, desc->batch, desc->stride_b);
        return view_matrix(desc, desc->b, desc->type_b, b_is_t ? n : k, b_is_t ? k : n, desc->ldb, desc->stride_b);
    case OPERAND_C: return view_matrix(desc, desc->c, desc->type_c, m, n, desc->ldc, desc->stride_c);
    case OPERAND_D: return view_matrix(desc, desc->d, desc->type_d, m, n, desc->ldd, desc->stride_d);
    case OPERAND_GATE: return view_matrix(desc, desc->gate, desc->type_gate, m, n, desc->ldgate, desc->stride_gate);
    case OPERAND_BIAS:
        return view_vector(desc->bias, type_table[desc->type_bias].bits, desc->bias_mode == HGEMM_BIAS_PER_ROW ? m : n,
                           desc->batch, desc->stride_bias);
    case OPERAND_ALPHA: return view_vector(desc->alpha_pointer, 32, 1, 1, 0);
    case OPERAND_BETA: return view_vector(desc->beta_pointer, 32, 1, 1, 0);
    case OPERAND_SCALE_A: return view_vector(desc->scale_a_pointer, 32, 1, 1, 0);
    case OPERAND_SCALE_B: return view_vector(desc->scale_b_pointer, 32, 1, 1, 0);
    case OPERAND_GROUP_ENDS: return view_vector(desc->group_ends, index_bits(desc), desc->batch, 1, 0);
    case OPERAND_GATHER_A: return view_vector(desc->gather_a, index_bits(desc), m, 1, 0);
    default: return view_vector(desc->scatter_d, index_bits(desc), m, 1, 0);
    }
}

/* The m rows that an operand with indices would have are any rows of a stored matrix: of these the host knows that
 * there is one. */
static void forget_rows(view_t *view, int rows_are_lines)
{
    *(rows_are_lines ? &view->lines : &view->width) = 1;
    view->is_known = 0;
}

view_t view_operand(const hgemm_desc_t *desc, operand_t operand)
{
    view_t view = view_stored(desc, operand);
    const int row_major = desc->layout == HGEMM_ROW_MAJOR, is_matrix = operand <= OPERAND_GATE;
    const int has_rows_of_d = operand == OPERAND_C || operand == OPERAND_D || operand == OPERAND_GATE;
    view.is_known = 1;
    view.alignment = operand == OPERAND_B && desc->type_b == HGEMM_TYPE_PACKED ? 16 : (int)bytes_of_bits(view.bits, 1);
    if (is_matrix && desc->batch_mode == HGEMM_BATCH_POINTERS) {
        view.alignment = sizeof(void *), view.is_known = 0;
        view.batch = 1, view.stride = 0;
    }
    if (desc->batch_mode == HGEMM_BATCH_GROUPED && (operand == OPERAND_A || has_rows_of_d))
        view.batch = 1, view.stride = 0; /* groups follow each other in the rows of one matrix */
    if (desc->gather_a && operand == OPERAND_A)
        forget_rows(&view, row_major == (desc->op_a == HGEMM_OP_N));
    if (desc->scatter_d && has_rows_of_d)
        forget_rows(&view, row_major);
    if (desc->scatter_d && operand == OPERAND_BIAS && desc->bias_mode == HGEMM_BIAS_PER_ROW)
        forget_rows(&view, 0);
    return view;
}

/* ---- Row-major ---------------------------------------------------------------------------------- */

/* A column-major matrix is the row-major one of its transpose, so D = op(A) op(B) turns into
 * D^T = op(B)^T op(A)^T: the operands trade places, and so do m and n, rows and columns. */
static hgemm_desc_t transpose(const hgemm_desc_t *desc)
{
    hgemm_desc_t p = *desc;
    p.layout = HGEMM_ROW_MAJOR;
    p.op_a = desc->op_b, p.op_b = desc->op_a;
    p.m = desc->n, p.n = desc->m;
    p.a = desc->b, p.lda = desc->ldb, p.stride_a = desc->stride_b, p.type_a = desc->type_b;
    p.b = desc->a, p.ldb = desc->lda, p.stride_b = desc->stride_a, p.type_b = desc->type_a;
    p.scale_a = desc->scale_b, p.scale_a_pointer = desc->scale_b_pointer;
    p.scale_b = desc->scale_a, p.scale_b_pointer = desc->scale_a_pointer;
    p.flags = (desc->flags & ~(HGEMM_FLAG_HALVES_IN_A | HGEMM_FLAG_HALVES_IN_B)) |
              (desc->flags & HGEMM_FLAG_HALVES_IN_A ? HGEMM_FLAG_HALVES_IN_B : 0) |
              (desc->flags & HGEMM_FLAG_HALVES_IN_B ? HGEMM_FLAG_HALVES_IN_A : 0);
    p.bias_mode = desc->bias_mode == HGEMM_BIAS_PER_ROW ? HGEMM_BIAS_PER_COLUMN : HGEMM_BIAS_PER_ROW;
    return p;
}

/* Rows in groups or with indices would be columns of D^T, and kernels have such of rows alone. Then D stays what it is;
 * of A and B, which as row-major ones are their transposes, the ops change. */
static hgemm_desc_t read_as_row_major(const hgemm_desc_t *desc)
{
    hgemm_desc_t p = *desc;
    p.op_a = desc->op_a == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N;
    p.op_b = desc->op_b == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N;
    return p;
}

static int has_listed_rows(unsigned accessed)
{
    return (accessed & (1u << OPERAND_GROUP_ENDS | 1u << OPERAND_GATHER_A | 1u << OPERAND_SCATTER_D)) != 0;
}

/* What is added up of parts of floats is not the same with A and B exchanged. So where a row is to have the same bits
 * alone and in a group, D stays what it is for both. */
static int has_rows_that_stay(const hgemm_desc_t *desc, unsigned accessed)
{
    return has_listed_rows(accessed) ||
           (accessed & 1u << OPERAND_A && has_floats(desc) && (desc->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0);
}

/* Strides that the call does not look at are 0. */
static void forget_strides(hgemm_desc_t *p)
{
    if (p->batch_mode == HGEMM_BATCH_STRIDED)
        return;
    p->stride_a = p->stride_c = p->stride_d = p->stride_gate = 0;
    if (p->batch_mode == HGEMM_BATCH_POINTERS)
        p->stride_b = p->stride_bias = 0;
}

/* A stored column whose elements follow each other is as well a row, which kernels load in chunks. */
static void lie_along(int64_t rows, int64_t columns, hgemm_op_t *op, int64_t *ld)
{
    if (columns == 1 && *ld == 1 && rows > 1) {
        *op = *op == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N;
        *ld = rows;
    }
}

/* A kernel that is asked for by name may not have the other transpose, and sums that do not depend on m come from
 * kernels that do not. */
static void lay_columns_along(hgemm_desc_t *p)
{
    if (p->kernel != HGEMM_KERNEL_AUTO || p->flags & HGEMM_FLAG_BATCH_INVARIANT || p->type_b == HGEMM_TYPE_PACKED)
        return;
    const int a_is_t = p->op_a == HGEMM_OP_T, b_is_t = p->op_b == HGEMM_OP_T;
    if (!p->gather_a && p->batch_mode != HGEMM_BATCH_GROUPED)
        lie_along(a_is_t ? p->k : p->m, a_is_t ? p->m : p->k, &p->op_a, &p->lda);
    lie_along(b_is_t ? p->n : p->k, b_is_t ? p->k : p->n, &p->op_b, &p->ldb);
}

/* Where A and B are not read, k is 0 and the kernel's sum is +0. alpha is then a zero of the sign that leaves
 * beta * C as it is, -0 included, and that gives +0 where C is not read either. */
hgemm_desc_t normalise(const hgemm_desc_t *desc)
{
    const unsigned accessed = accessed_operands(desc);
    hgemm_desc_t p = desc->layout == HGEMM_ROW_MAJOR      ? *desc
                     : has_rows_that_stay(desc, accessed) ? read_as_row_major(desc)
                                                          : transpose(desc);
    forget_strides(&p);
    if (!(accessed & 1u << OPERAND_A)) {
        p.a = p.b =
            desc->batch_mode == HGEMM_BATCH_POINTERS ? desc->d : NULL; /* kernels load pointers, also unused ones */
        p.gather_a = NULL;
        p.lda = p.ldb = 1, p.stride_a = p.stride_b = 0;
        p.type_a = p.type_b = HGEMM_TYPE_F16;
        p.weights = NULL;
        p.k = 0;
        p.alpha_pointer = NULL;
        p.alpha = accessed & 1u << OPERAND_C ? -0.0f : 0.0f;
    }
    if (!(accessed & 1u << OPERAND_C)) {
        p.c = NULL;
        p.ldc = 1, p.stride_c = 0;
        p.type_c = HGEMM_TYPE_F16;
    }
    if (p.weights)
        p.type_b = HGEMM_TYPE_PACKED, p.ldb = 0, p.scale_b = 1, p.scale_b_pointer = NULL;
    /* One kernel alone adds up in the order of batch invariance. */
    if (!has_floats(&p) || p.flags & HGEMM_FLAG_BATCH_INVARIANT)
        p.accuracy = HGEMM_ACCURACY_F32;
    lay_columns_along(&p);
    return p;
}

int is_indirect(const hgemm_desc_t *p)
{
    return p->batch_mode != HGEMM_BATCH_STRIDED || p->gather_a != NULL || p->layout == HGEMM_COL_MAJOR;
}

/* ---- A and B ------------------------------------------------------------------------------------- */

factor_t factor_of(const hgemm_desc_t *p, int which)
{
    const int is_a = which == FACTOR_A, is_along_k = is_a ? p->op_a == HGEMM_OP_N : p->op_b == HGEMM_OP_T;
    const int64_t x = is_a ? p->m : p->n;
    const hgemm_type_t type = is_a ? p->type_a : p->type_b;
    const uintptr_t least = (uintptr_t)type_bytes(type, 1), promised = (uintptr_t)p->alignment;
    uintptr_t address = (uintptr_t)(is_a ? p->a : p->b);
    if (p->batch_mode == HGEMM_BATCH_POINTERS)
        address = promised > least ? promised : least;
    return (factor_t){.address = address,
                      .type = type,
                      .is_along_k = is_along_k,
                      .lines = is_along_k ? x : p->k,
                      .width = is_along_k ? p->k : x,
                      .ld = is_a ? p->lda : p->ldb,
                      .stride = is_a ? p->stride_a : p->stride_b};
}

int has_floats(const hgemm_desc_t *p)
{
    return p->type_a == HGEMM_TYPE_F32 || p->type_b == HGEMM_TYPE_F32;
}

int is_mixed(const hgemm_desc_t *p)
{
    return has_floats(p) && p->type_a != p->type_b;
}

int exact_factors(const hgemm_desc_t *p)
{
    return (p->type_a != HGEMM_TYPE_F32 || p->flags & HGEMM_FLAG_HALVES_IN_A ? FACTOR_A : 0) |
           (p->type_b != HGEMM_TYPE_F32 || p->flags & HGEMM_FLAG_HALVES_IN_B ? FACTOR_B : 0);
}

int scales_to_find(const hgemm_desc_t *p)
{
    const int a = factor_has_scale(p, FACTOR_A) && p->scale_a == 0 && !p->scale_a_pointer;
    const int b = factor_has_scale(p, FACTOR_B) && p->scale_b == 0 && !p->scale_b_pointer;
    return (a ? FACTOR_A : 0) | (b ? FACTOR_B : 0);
}

/* ---- The epilogue ------------------------------------------------------------------------------- */

unsigned fused_bits(const hgemm_desc_t *p)
{
    unsigned bits = (unsigned)p->type_c << HGEMM_FUSED_TYPE_C | (unsigned)p->type_d << HGEMM_FUSED_TYPE_D |
                    (unsigned)p->activation << HGEMM_FUSED_ACTIVATION;
    if (p->bias)
        bits |= (unsigned)p->type_bias << HGEMM_FUSED_TYPE_BIAS | HGEMM_FUSED |
                (p->bias_mode == HGEMM_BIAS_PER_ROW ? HGEMM_FUSED_BIAS_PER_ROW : 0);
    if (p->gate)
        bits |= (unsigned)p->type_gate << HGEMM_FUSED_TYPE_GATE | HGEMM_FUSED;
    if (p->index_type == HGEMM_INDEX_I64 && (p->scatter_d || p->gather_a || p->batch_mode == HGEMM_BATCH_GROUPED))
        bits |= HGEMM_FUSED_INDEX_64;
    const hgemm_type_t common = factor_has_scale(p, FACTOR_A) ? HGEMM_TYPE_BF16 : HGEMM_TYPE_F16;
    int is_common = (p->type_c == common || !p->c) && p->type_d == common && (!p->gate || p->type_gate == common) &&
                    !(bits & HGEMM_FUSED_BIAS_PER_ROW) && !p->scatter_d && !p->alpha_pointer && !p->beta_pointer;
    if (!is_common)
        bits |= HGEMM_FUSED_ANYHOW;
    return bits || p->scatter_d || p->alpha_pointer || p->beta_pointer ? bits | HGEMM_FUSED : 0;
}
