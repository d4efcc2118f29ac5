/* SPDX-License-Identifier: MIT */
#include "problem/check.h"

#include "table/args.h"
#include "problem/names.h"
#include "problem/overlap.h"
#include "problem/problem.h"
#include "problem/weights.h"
#include "table/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static hgemm_status_t
refuse(char words[DEVICE_DETAIL], hgemm_status_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, DEVICE_DETAIL, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- Operands: their names and statuses -------------------------------------------------------- */

typedef struct operand_words_t {
    const char *name, *pointer, *ld, *stride;
    hgemm_status_t invalid_ld, null, misaligned; /* SUCCESS: cannot be */
} operand_words_t;

static const operand_words_t operand_words[OPERAND_COUNT] = {
    [OPERAND_A] = {"A", "a", "lda", "stride_a", HGEMM_STATUS_INVALID_LDA, HGEMM_STATUS_NULL_A,
                   HGEMM_STATUS_MISALIGNED_A},
    [OPERAND_B] = {"B", "b", "ldb", "stride_b", HGEMM_STATUS_INVALID_LDB, HGEMM_STATUS_NULL_B,
                   HGEMM_STATUS_MISALIGNED_B},
    [OPERAND_C] = {"C", "c", "ldc", "stride_c", HGEMM_STATUS_INVALID_LDC, HGEMM_STATUS_NULL_C,
                   HGEMM_STATUS_MISALIGNED_C},
    [OPERAND_D] = {"D", "d", "ldd", "stride_d", HGEMM_STATUS_INVALID_LDD, HGEMM_STATUS_NULL_D,
                   HGEMM_STATUS_MISALIGNED_D},
    [OPERAND_BIAS] = {.name = "bias",
                      .pointer = "bias",
                      .stride = "stride_bias",
                      .misaligned = HGEMM_STATUS_MISALIGNED_BIAS},
    [OPERAND_GATE] = {.name = "gate",
                      .pointer = "gate",
                      .ld = "ldgate",
                      .stride = "stride_gate",
                      .invalid_ld = HGEMM_STATUS_INVALID_LDGATE,
                      .misaligned = HGEMM_STATUS_MISALIGNED_GATE},
    [OPERAND_ALPHA] = {.name = "alpha", .pointer = "alpha_pointer", .misaligned = HGEMM_STATUS_MISALIGNED_SCALAR},
    [OPERAND_BETA] = {.name = "beta", .pointer = "beta_pointer", .misaligned = HGEMM_STATUS_MISALIGNED_SCALAR},
    [OPERAND_GROUP_ENDS] = {.name = "group_ends",
                            .pointer = "group_ends",
                            .null = HGEMM_STATUS_NULL_GROUP_ENDS,
                            .misaligned = HGEMM_STATUS_MISALIGNED_INDEX},
    [OPERAND_GATHER_A] = {.name = "gather_a", .pointer = "gather_a", .misaligned = HGEMM_STATUS_MISALIGNED_INDEX},
    [OPERAND_SCALE_A] = {.name = "scale_a", .pointer = "scale_a_pointer", .misaligned = HGEMM_STATUS_MISALIGNED_SCALAR},
    [OPERAND_SCALE_B] = {.name = "scale_b", .pointer = "scale_b_pointer", .misaligned = HGEMM_STATUS_MISALIGNED_SCALAR},
    [OPERAND_SCATTER_D] = {.name = "scatter_d", .pointer = "scatter_d", .misaligned = HGEMM_STATUS_MISALIGNED_INDEX},
};

/* Of a call those operands that it accesses. */
typedef struct operands_t {
    int count;
    operand_t of[OPERAND_COUNT]; /* the first `count` */
    view_t views[OPERAND_COUNT]; /* of these, by operand */
} operands_t;

static void view_operands(const call_t *call, operands_t *operands)
{
    operands->count = 0;
    for (int i = 0; call->accessed >> i; i++)
        if (call->accessed >> i & 1u) {
            operands->of[operands->count++] = (operand_t)i;
            operands->views[i] = view_operand(call, (operand_t)i);
        }
}

/* ---- The descriptor ---------------------------------------------------------------------------- */

/* Sizes that hgemm_desc_t had: before it grew by types and what follows them, by weights, by accuracy, and today. */
static hgemm_status_t take_desc(const hgemm_desc_t *given, hgemm_desc_t *desc, char *words)
{
    const size_t first = offsetof(hgemm_desc_t, type_a), second = offsetof(hgemm_desc_t, weights),
                 third = offsetof(hgemm_desc_t, accuracy), today = sizeof *desc;
    if (!given)
        return refuse(words, HGEMM_STATUS_INVALID_DESC, "The descriptor is NULL.");
    if (given->size != first && given->size != second && given->size != third && given->size != today)
        return refuse(words, HGEMM_STATUS_INVALID_DESC, "size is %zu; this library knows %zu, %zu, %zu and %zu.",
                      given->size, first, second, third, today);
    memset(desc, 0, sizeof *desc);
    memcpy(desc, given, given->size);
    desc->size = today;
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Enumerations ------------------------------------------------------------------------------ */

/* A field, as wide as an int, whose value must be one that has a name or, without names, be 0 to `last`. What belongs
 * to an operand that is not accessed may have any value. */
typedef struct enumeration_t {
    const char *name;
    size_t offset; /* in the descriptor */
    hgemm_status_t status;
    operand_t operand; /* that it belongs to, OPERAND_COUNT: to none */
    const char *const *names;
    int last;
} enumeration_t;

#define FIELD(name) #name, offsetof(hgemm_desc_t, name)
static const enumeration_t enumerations[] = {
    {FIELD(layout), HGEMM_STATUS_INVALID_LAYOUT, OPERAND_COUNT, layout_names, 0},
    {FIELD(op_a), HGEMM_STATUS_INVALID_OP, OPERAND_COUNT, op_names, 0},
    {FIELD(op_b), HGEMM_STATUS_INVALID_OP, OPERAND_COUNT, op_names, 0},
    {FIELD(accumulate), HGEMM_STATUS_INVALID_ACCUMULATE, OPERAND_COUNT, accumulate_names, 0},
    {FIELD(kernel), HGEMM_STATUS_INVALID_KERNEL, OPERAND_COUNT, NULL, KERNEL_END - 1},
    {FIELD(activation), HGEMM_STATUS_INVALID_ACTIVATION, OPERAND_COUNT, activation_names, 0},
    {FIELD(flags), HGEMM_STATUS_INVALID_FLAGS, OPERAND_COUNT, NULL,
     HGEMM_FLAG_BATCH_INVARIANT | HGEMM_FLAG_HALVES_IN_A | HGEMM_FLAG_HALVES_IN_B},
    {FIELD(batch_mode), HGEMM_STATUS_INVALID_BATCH_MODE, OPERAND_COUNT, batch_mode_names, 0},
    {FIELD(index_type), HGEMM_STATUS_INVALID_INDEX, OPERAND_COUNT, index_type_names, 0},
    {FIELD(accuracy), HGEMM_STATUS_INVALID_ACCURACY, OPERAND_COUNT, accuracy_names, 0},
    {FIELD(bias_mode), HGEMM_STATUS_INVALID_BIAS, OPERAND_BIAS, bias_mode_names, 0},
    {FIELD(type_a), HGEMM_STATUS_INVALID_TYPE, OPERAND_A, type_names, 0},
    {FIELD(type_b), HGEMM_STATUS_INVALID_TYPE, OPERAND_B, type_names, 0},
    {FIELD(type_c), HGEMM_STATUS_INVALID_TYPE, OPERAND_C, type_names, 0},
    {FIELD(type_d), HGEMM_STATUS_INVALID_TYPE, OPERAND_D, type_names, 0},
    {FIELD(type_bias), HGEMM_STATUS_INVALID_TYPE, OPERAND_BIAS, type_names, 0},
    {FIELD(type_gate), HGEMM_STATUS_INVALID_TYPE, OPERAND_GATE, type_names, 0},
};
#undef FIELD
enum { ENUMERATIONS = sizeof enumerations / sizeof enumerations[0] };

/* Those that belong to no operand, or those of operands. */
static hgemm_status_t check_enumerations(const call_t *call, int of_operands, char *words)
{
    for (int i = 0; i < ENUMERATIONS; i++) {
        const enumeration_t *of = &enumerations[i];
        int value;
        if ((of->operand != OPERAND_COUNT) != of_operands || (of_operands && !(call->accessed >> of->operand & 1u)) ||
            (of->offset == offsetof(hgemm_desc_t, type_b) && call->desc.weights))
            continue;
        memcpy(&value, (const char *)&call->desc + of->offset, sizeof value);
        if (value < 0 || value > (of->names ? NAMES - 1 : of->last) || (of->names && !of->names[value]))
            return refuse(words, of->status, "%s is %d.", of->name, value);
    }
    return HGEMM_STATUS_SUCCESS;
}

/* A scale that the host gives must be a power of two that can be undone. */
static hgemm_status_t check_scale(const char *name, float scale, char *words)
{
    int exponent;
    if (scale == 0 || (frexpf(scale, &exponent) == 0.5f && exponent - 1 >= HGEMM_LEAST_SCALE_LOG &&
                       exponent - 1 <= HGEMM_MOST_SCALE_LOG))
        return HGEMM_STATUS_SUCCESS;
    return refuse(words, HGEMM_STATUS_INVALID_SCALE, "%s is %g.", name, (double)scale);
}

/* Enumerations, then weights and scales: it sees what the call accesses. */
static hgemm_status_t check_types(call_t *call, char *words)
{
    const hgemm_desc_t *desc = &call->desc;
    hgemm_status_t status = check_enumerations(call, 0, words);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if (desc->alignment < 0 || (desc->alignment & (desc->alignment - 1)))
        return refuse(words, HGEMM_STATUS_INVALID_ALIGNMENT, "alignment is %d.", desc->alignment);
    see_operands(call);
    status = check_enumerations(call, 1, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = see_types(call, words);
    if (status == HGEMM_STATUS_SUCCESS && call->scaled & FACTOR_A && !desc->scale_a_pointer)
        status = check_scale("scale_a", desc->scale_a, words);
    if (status == HGEMM_STATUS_SUCCESS && call->scaled & FACTOR_B && !desc->scale_b_pointer)
        status = check_scale("scale_b", desc->scale_b, words);
    return status;
}

/* ---- Sizes ------------------------------------------------------------------------------------- */

static hgemm_status_t check_signs(const hgemm_desc_t *desc, char *words)
{
    const struct {
        const char *name;
        int64_t value;
        hgemm_status_t status;
    } sizes[] = {
        {"m", desc->m, HGEMM_STATUS_INVALID_M},
        {"n", desc->n, HGEMM_STATUS_INVALID_N},
        {"k", desc->k, HGEMM_STATUS_INVALID_K},
        {"batch", desc->batch, HGEMM_STATUS_INVALID_BATCH},
    };
    for (int i = 0; i < 4; i++)
        if (sizes[i].value < 0)
            return refuse(words, sizes[i].status, "%s is %" PRId64 ".", sizes[i].name, sizes[i].value);
    return HGEMM_STATUS_SUCCESS;
}

/* Weights are those of the call, and each in a batch begins where a lane can load them. */
static hgemm_status_t check_packed(const hgemm_desc_t *desc, char *words)
{
    if (desc->weights->n != desc->n || desc->weights->k != desc->k)
        return refuse(words, HGEMM_STATUS_INVALID_WEIGHTS,
                      "The weights are %" PRId64 " by %" PRId64 ", and n is %" PRId64 ", k %" PRId64 ".",
                      desc->weights->n, desc->weights->k, desc->n, desc->k);
    if (desc->batch > 1 && desc->batch_mode != HGEMM_BATCH_POINTERS &&
        desc->stride_b % type_table[HGEMM_TYPE_PACKED].alignment != 0)
        return refuse(words, HGEMM_STATUS_INVALID_WEIGHTS,
                      "stride_b is %" PRId64 ", and packed weights begin at multiples of %d bytes.", desc->stride_b,
                      type_table[HGEMM_TYPE_PACKED].alignment);
    return HGEMM_STATUS_SUCCESS;
}

/* Kernels count rows, columns, products and groups in 32 bits. */
static hgemm_status_t check_limits(const call_t *call, char *words)
{
    const hgemm_desc_t *desc = &call->desc;
    const int64_t any = INT64_MAX, most_pointers = INT64_MAX / (int64_t)sizeof(void *);
    const struct {
        const char *name;
        int64_t value, most;
    } sizes[] = {
        {"m", desc->m, INT32_MAX},
        {"n", desc->n, INT32_MAX},
        {"k", desc->k, accesses(call, OPERAND_A) ? INT32_MAX : any},
        {"batch", desc->batch,
         desc->batch_mode == HGEMM_BATCH_POINTERS  ? most_pointers
         : desc->batch_mode == HGEMM_BATCH_GROUPED ? INT32_MAX
                                                   : any},
    };
    for (int i = 0; i < 4 && call->accessed; i++)
        if (sizes[i].value > sizes[i].most)
            return refuse(words, HGEMM_STATUS_TOO_LARGE, "%s is %" PRId64 "; the most is %" PRId64 ".", sizes[i].name,
                          sizes[i].value, sizes[i].most);
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t check_leading_dimensions(const call_t *call, const operands_t *operands, char *words)
{
    for (int i = 0; i < operands->count; i++) {
        const view_t *view = &operands->views[operands->of[i]];
        const operand_words_t *of = &operand_words[operands->of[i]];
        if (of->invalid_ld != HGEMM_STATUS_SUCCESS && view->ld < view->width)
            return refuse(words, of->invalid_ld, "%s is %" PRId64 "; a stored %s of %s has %" PRId64 " elements.",
                          of->ld, view->ld, call->desc.layout == HGEMM_ROW_MAJOR ? "row" : "column", of->name,
                          view->width);
    }
    return HGEMM_STATUS_SUCCESS;
}

/* Whether operands span at most 2^62 bytes each, so that distances between them fit 64 bits. A stride may be negative.
 */
static hgemm_status_t check_extents(const call_t *call, const operands_t *operands, char *words)
{
    const char *line = call->desc.layout == HGEMM_ROW_MAJOR ? "rows" : "columns";
    for (int i = 0; i < operands->count; i++) {
        const view_t *view = &operands->views[operands->of[i]];
        const operand_words_t *of = &operand_words[operands->of[i]];
        const int64_t most = (INT64_C(1) << 62) / view->bytes; /* elements, each in bytes of its own */
        if (view->width > most)
            return refuse(words, HGEMM_STATUS_TOO_LARGE, "%s would have %" PRId64 " elements of %d bits.", of->name,
                          view->width, 8 * view->bytes);
        if (view->lines - 1 > (most - view->width) / view->ld)
            return refuse(words, HGEMM_STATUS_TOO_LARGE,
                          "%s is %" PRId64 " and %s has %" PRId64 " %s: together they span over %" PRId64 " elements.",
                          of->ld, view->ld, of->name, view->lines, line, most);
        const int64_t extent = (view->lines - 1) * view->ld + view->width, jumps = view->batch - 1;
        const uint64_t distance = view->stride < 0 ? 0 - (uint64_t)view->stride : (uint64_t)view->stride;
        if (jumps > 0 && distance > (uint64_t)((most - extent) / jumps))
            return refuse(words, HGEMM_STATUS_TOO_LARGE,
                          "%s is %" PRId64 " and batch %" PRId64 ": together they span over %" PRId64 " elements.",
                          of->stride, view->stride, view->batch, most);
    }
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Pointers ---------------------------------------------------------------------------------- */

static hgemm_status_t check_nulls(const call_t *call, const operands_t *operands, char *words)
{
    const int row_major = call->desc.layout == HGEMM_ROW_MAJOR;
    for (int i = 0; i < operands->count; i++) {
        const view_t *view = &operands->views[operands->of[i]];
        const operand_words_t *of = &operand_words[operands->of[i]];
        if (view->data)
            continue;
        if (operands->of[i] == OPERAND_GROUP_ENDS)
            return refuse(words, of->null, "group_ends is NULL and batch is %" PRId64 ".", call->desc.batch);
        return refuse(words, of->null, "%s is NULL and %s is %" PRId64 " by %" PRId64 ".", of->pointer, of->name,
                      row_major ? view->lines : view->width, row_major ? view->width : view->lines);
    }
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t check_alignments(const operands_t *operands, char *words)
{
    for (int i = 0; i < operands->count; i++) {
        const view_t *view = &operands->views[operands->of[i]];
        const operand_words_t *of = &operand_words[operands->of[i]];
        if ((uintptr_t)view->data & (uintptr_t)(view->alignment - 1))
            return refuse(words, of->misaligned, "%s is 0x%" PRIxPTR ", no multiple of %d.", of->pointer,
                          (uintptr_t)view->data, view->alignment);
    }
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t check_overlaps(const call_t *call, const operands_t *operands, char *words)
{
    const hgemm_desc_t *desc = &call->desc;
    const view_t *const of_d = &operands->views[OPERAND_D];
    if (!of_d->is_known)
        return HGEMM_STATUS_SUCCESS;
    const area_t d = area_of(of_d);
    for (int i = 0; i < operands->count; i++) {
        const view_t *view = &operands->views[operands->of[i]];
        if (!view->is_known || (operands->of[i] == OPERAND_C && d_is_c(desc)))
            continue;
        if (view == of_d) {
            if (of_d->batch > 1 && batch_meets_itself(of_d, &d))
                return refuse(words, HGEMM_STATUS_OVERLAP,
                              "The D's of the batch overlap: stride_d is %" PRId64 ", ldd is %" PRId64
                              " and batch is %" PRId64 ".",
                              desc->stride_d, desc->ldd, desc->batch);
            continue;
        }
        const area_t area = area_of(view);
        if (areas_meet(&d, &area))
            return refuse(words, HGEMM_STATUS_OVERLAP,
                          "D, from 0x%" PRIxPTR " to 0x%" PRIxPTR ", overlaps %s, from 0x%" PRIxPTR " to 0x%" PRIxPTR
                          ".",
                          d.begin, d.end - 1, operand_words[operands->of[i]].name, area.begin, area.end - 1);
    }
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Support ----------------------------------------------------------------------------------- */

/* THE LIST of calls that a descriptor can describe and that no kernel runs. */
static hgemm_status_t check_support(const call_t *call, char *words)
{
    const hgemm_desc_t *desc = &call->desc;
    if (!accesses(call, OPERAND_A))
        return HGEMM_STATUS_SUCCESS;
    const int is_f16 = desc->accumulate != HGEMM_ACCUMULATE_F32;
    const int finds_a = call->scaled & FACTOR_A && desc->scale_a == 0 && !desc->scale_a_pointer,
              finds_b = call->scaled & FACTOR_B && desc->scale_b == 0 && !desc->scale_b_pointer;
    const struct {
        const char *feature;
        int is_used;
    } features[] = {
        {"packed weights in column-major layout", desc->weights && desc->layout != HGEMM_ROW_MAJOR},
        {"packed weights with op_b of HGEMM_OP_N: B is the transpose of what was packed, and hgemm_unpack_weights "
         "writes that",
         desc->weights && desc->op_b != HGEMM_OP_T},
        {"packed weights with op_a of HGEMM_OP_T: rows of A run along k", desc->weights && desc->op_a != HGEMM_OP_N},
        {"HGEMM_ACCUMULATE_F16 for packed weights", desc->weights && is_f16},
        {NULL, factors_of(desc->type_a, desc->type_b) == FACTORS_COUNT},
        {"HGEMM_ACCUMULATE_F16 for A and B of HGEMM_TYPE_BF16", call->scaled && is_f16},
        {"HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32", call->has_floats && is_f16},
        {"A and B of HGEMM_TYPE_BF16 by pointers, in groups or gathered, whose scales are to be found",
         (finds_a || finds_b) && (desc->batch_mode != HGEMM_BATCH_STRIDED || accesses(call, OPERAND_GATHER_A))},
        {"HGEMM_FLAG_BATCH_INVARIANT for an A of HGEMM_TYPE_BF16 whose scale is to be found",
         call->scaled && (desc->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0 && desc->scale_a == 0 &&
             !desc->scale_a_pointer},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (features[i].is_used && features[i].feature)
            return refuse(words, HGEMM_STATUS_NOT_SUPPORTED, "No kernel has %s.", features[i].feature);
        else if (features[i].is_used)
            return refuse(words, HGEMM_STATUS_NOT_SUPPORTED, "No kernel has A of %s beside B of %s.",
                          type_table[desc->type_a].words, type_table[desc->type_b].words);
    return HGEMM_STATUS_SUCCESS;
}

/* ---- All of it --------------------------------------------------------------------------------- */

hgemm_status_t check_call(const hgemm_desc_t *given, check_t depth, problem_t *problem, char words[DEVICE_DETAIL])
{
    call_t call;
    operands_t operands;
    hgemm_status_t status = take_desc(given, &call.desc, words);
    problem->is_idle = 1;
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_types(&call, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_signs(&call.desc, words);
    if (status == HGEMM_STATUS_SUCCESS && call.desc.weights)
        status = check_packed(&call.desc, words);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    view_operands(&call, &operands);
    status = check_leading_dimensions(&call, &operands, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_limits(&call, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_extents(&call, &operands, words);
    if (status != HGEMM_STATUS_SUCCESS || is_idle_call(&call))
        return status;
    if (depth == CHECK_MEMORY)
        status = check_nulls(&call, &operands, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_alignments(&operands, words);
    if (status == HGEMM_STATUS_SUCCESS && depth == CHECK_MEMORY)
        status = check_overlaps(&call, &operands, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_support(&call, words);
    if (status == HGEMM_STATUS_SUCCESS)
        normalise_call(&call, problem);
    return status;
}

hgemm_status_t check_scale_call(int64_t lines, int64_t width, const void *matrix, int64_t ld, const float *scale,
                                char words[DEVICE_DETAIL])
{
    const int64_t most = (INT64_C(1) << 62) / type_bytes(HGEMM_TYPE_BF16, 1); /* elements */
    if (lines < 0)
        return refuse(words, HGEMM_STATUS_INVALID_M, "lines is %" PRId64 ".", lines);
    if (width < 0)
        return refuse(words, HGEMM_STATUS_INVALID_N, "width is %" PRId64 ".", width);
    if (ld < width)
        return refuse(words, HGEMM_STATUS_INVALID_LDA, "ld is %" PRId64 "; a line has %" PRId64 " elements.", ld,
                      width);
    if (lines > INT32_MAX || width > INT32_MAX)
        return refuse(words, HGEMM_STATUS_TOO_LARGE, "The matrix has %" PRId64 " lines of %" PRId64 " elements.", lines,
                      width);
    if (lines > 1 && width > 0 && ld > (most - width) / (lines - 1))
        return refuse(words, HGEMM_STATUS_TOO_LARGE, "ld is %" PRId64 " and there are %" PRId64 " lines.", ld, lines);
    if (!scale)
        return refuse(words, HGEMM_STATUS_INVALID_HANDLE, "scale is NULL.");
    if (lines > 0 && width > 0 && !matrix)
        return refuse(words, HGEMM_STATUS_NULL_A, "matrix is NULL and has %" PRId64 " lines of %" PRId64 " elements.",
                      lines, width);
    if ((uintptr_t)matrix % (uintptr_t)type_bytes(HGEMM_TYPE_BF16, 1))
        return refuse(words, HGEMM_STATUS_MISALIGNED_A, "matrix is 0x%" PRIxPTR ".", (uintptr_t)matrix);
    if ((uintptr_t)scale % sizeof *scale)
        return refuse(words, HGEMM_STATUS_MISALIGNED_SCALAR, "scale is 0x%" PRIxPTR ".", (uintptr_t)scale);
    return HGEMM_STATUS_SUCCESS;
}
