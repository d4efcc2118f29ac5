/* SPDX-License-Identifier: MIT */
#include "problem/call.h"

#include "problem/weights.h"

/* ---- What is accessed -------------------------------------------------------------------------- */

static int multiplies(const hgemm_desc_t *desc)
{
    return desc->k != 0 && (desc->alpha_pointer || desc->alpha != 0);
}

void see_operands(call_t *call)
{
    const hgemm_desc_t *desc = &call->desc;
    call->accessed = 1u << OPERAND_D;
    if (multiplies(desc))
        call->accessed |= 1u << OPERAND_A | 1u << OPERAND_B | (unsigned)(desc->alpha_pointer != NULL) << OPERAND_ALPHA |
                          (unsigned)(desc->gather_a != NULL) << OPERAND_GATHER_A;
    call->accessed |= (unsigned)(desc->beta_pointer || desc->beta != 0) << OPERAND_C |
                      (unsigned)(desc->beta_pointer != NULL) << OPERAND_BETA |
                      (unsigned)(desc->bias != NULL) << OPERAND_BIAS | (unsigned)(desc->gate != NULL) << OPERAND_GATE |
                      (unsigned)(desc->batch_mode == HGEMM_BATCH_GROUPED) << OPERAND_GROUP_ENDS |
                      (unsigned)(desc->scatter_d != NULL) << OPERAND_SCATTER_D;
    if (desc->m == 0 || desc->n == 0 || desc->batch == 0)
        call->accessed = 0;
}

hgemm_status_t see_types(call_t *call, char words[DEVICE_DETAIL])
{
    hgemm_desc_t *desc = &call->desc;
    call->scaled = call->has_floats = 0;
    if (!accesses(call, OPERAND_B)) {
        desc->weights = NULL;
        return HGEMM_STATUS_SUCCESS;
    }
    if (desc->weights) { /* whose type is one that no caller says */
        const hgemm_status_t status = take_weights(desc->weights, &call->packed, words);
        if (status != HGEMM_STATUS_SUCCESS)
            return status;
        desc->type_b = HGEMM_TYPE_PACKED;
    }
    const type_info_t *a = &type_table[desc->type_a], *b = &type_table[desc->type_b];
    call->has_floats = a->becomes == BECOMES_PARTS || b->becomes == BECOMES_PARTS;
    if (!call->has_floats) /* beside floats it is taken for one */
        call->scaled = (a->scales == SCALES_ONE ? FACTOR_A : 0) | (b->scales == SCALES_ONE ? FACTOR_B : 0);
    if (call->scaled & FACTOR_A && desc->scale_a_pointer)
        call->accessed |= 1u << OPERAND_SCALE_A;
    if (call->scaled & FACTOR_B && desc->scale_b_pointer)
        call->accessed |= 1u << OPERAND_SCALE_B;
    return HGEMM_STATUS_SUCCESS;
}

int d_is_c(const hgemm_desc_t *desc)
{
    int one_stride = desc->batch_mode != HGEMM_BATCH_STRIDED || desc->batch == 1 || desc->stride_d == desc->stride_c;
    return desc->d == desc->c && desc->type_d == desc->type_c && desc->ldd == desc->ldc && one_stride;
}

int is_idle_call(const call_t *call)
{
    const unsigned matrices = call->accessed & ~(1u << OPERAND_SCATTER_D | 1u << OPERAND_GROUP_ENDS);
    const int is_copy = matrices == (1u << OPERAND_C | 1u << OPERAND_D) && call->desc.beta == 1 &&
                        call->desc.activation == HGEMM_ACTIVATION_NONE;
    return call->accessed == 0 || (is_copy && d_is_c(&call->desc));
}

/* ---- Where it lies ------------------------------------------------------------------------------ */

/* A matrix with `rows` and `columns`, as it is stored in the call's layout. */
static view_t view_matrix(const hgemm_desc_t *desc, const void *data, hgemm_type_t type, int64_t rows, int64_t columns,
                          int64_t ld, int64_t stride)
{
    int row_major = desc->layout == HGEMM_ROW_MAJOR;
    return (view_t){.data = data,
                    .alignment = type_table[type].alignment,
                    .bytes = type_table[type].bits / 8,
                    .lines = row_major ? rows : columns,
                    .width = row_major ? columns : rows,
                    .ld = ld,
                    .batch = desc->batch,
                    .stride = stride};
}

static view_t view_vector(const void *data, int bytes, int64_t width, int64_t batch, int64_t stride)
{
    return (view_t){.data = data,
                    .alignment = bytes,
                    .bytes = bytes,
                    .lines = 1,
                    .width = width,
                    .ld = width,
                    .batch = batch,
                    .stride = stride};
}

static view_t view_stored(const call_t *call, operand_t operand)
{
    const hgemm_desc_t *desc = &call->desc;
    const int a_is_t = desc->op_a == HGEMM_OP_T, b_is_t = desc->op_b == HGEMM_OP_T;
    const int scalar = sizeof(float), index = desc->index_type == HGEMM_INDEX_I64 ? 8 : 4; /* bytes */
    const int64_t m = desc->m, n = desc->n, k = desc->k;
    switch (operand) {
    case OPERAND_A:
        return view_matrix(desc, desc->a, desc->type_a, a_is_t ? k : m, a_is_t ? m : k, desc->lda, desc->stride_a);
    case OPERAND_B:
        if (desc->weights)
            return view_vector(desc->b, 1, call->packed.bytes, desc->batch, desc->stride_b);
        return view_matrix(desc, desc->b, desc->type_b, b_is_t ? n : k, b_is_t ? k : n, desc->ldb, desc->stride_b);
    case OPERAND_C: return view_matrix(desc, desc->c, desc->type_c, m, n, desc->ldc, desc->stride_c);
    case OPERAND_D: return view_matrix(desc, desc->d, desc->type_d, m, n, desc->ldd, desc->stride_d);
    case OPERAND_GATE: return view_matrix(desc, desc->gate, desc->type_gate, m, n, desc->ldgate, desc->stride_gate);
    case OPERAND_BIAS:
        return view_vector(desc->bias, type_table[desc->type_bias].bits / 8,
                           desc->bias_mode == HGEMM_BIAS_PER_ROW ? m : n, desc->batch, desc->stride_bias);
    case OPERAND_ALPHA: return view_vector(desc->alpha_pointer, scalar, 1, 1, 0);
    case OPERAND_BETA: return view_vector(desc->beta_pointer, scalar, 1, 1, 0);
    case OPERAND_SCALE_A: return view_vector(desc->scale_a_pointer, scalar, 1, 1, 0);
    case OPERAND_SCALE_B: return view_vector(desc->scale_b_pointer, scalar, 1, 1, 0);
    case OPERAND_GROUP_ENDS: return view_vector(desc->group_ends, index, desc->batch, 1, 0);
    case OPERAND_GATHER_A: return view_vector(desc->gather_a, index, m, 1, 0);
    default: return view_vector(desc->scatter_d, index, m, 1, 0);
    }
}

/* The m rows that an operand with indices would have are any rows of a stored matrix: of these the host knows that
 * there is one. */
static void forget_rows(view_t *view, int rows_are_lines)
{
    *(rows_are_lines ? &view->lines : &view->width) = 1;
    view->is_known = 0;
}

view_t view_operand(const call_t *call, operand_t operand)
{
    view_t view = view_stored(call, operand);
    const hgemm_desc_t *desc = &call->desc;
    const int row_major = desc->layout == HGEMM_ROW_MAJOR, is_matrix = operand <= OPERAND_GATE;
    const int has_rows_of_d = operand == OPERAND_C || operand == OPERAND_D || operand == OPERAND_GATE;
    view.is_known = 1;
    if (operand == OPERAND_B)
        view.alignment = type_table[desc->type_b].alignment;
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
