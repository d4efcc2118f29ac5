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

/* A descriptor of today's size, and where the operands lie that it accesses. */
typedef struct call_t {
    const hgemm_desc_t *desc;
    unsigned mask; /* accessed_operands */
    int count;
    operand_t accessed[OPERAND_COUNT]; /* the same, listed: the first `count` */
    view_t views[OPERAND_COUNT];       /* of these */
} call_t;

static int accesses(const call_t *call, operand_t operand)
{
    return call->mask >> operand & 1u;
}

static call_t open_call(const hgemm_desc_t *desc)
{
    call_t call;
    call.desc = desc;
    call.mask = accessed_operands(desc);
    call.count = 0;
    for (int i = 0; call.mask >> i; i++)
        if (accesses(&call, (operand_t)i)) {
            call.accessed[call.count++] = (operand_t)i;
            call.views[i] = view_operand(desc, (operand_t)i);
        }
    return call;
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

/* A field, as wide as an int, whose value must be one that has a name or, without names, be 0 to `last`. */
typedef struct enumeration_t {
    const char *name;
    size_t offset; /* in the descriptor */
    const char *const *names;
    int last;
    hgemm_status_t status;
} enumeration_t;

#define FIELD(name) #name, offsetof(hgemm_desc_t, name)
static const enumeration_t enumerations[] = {
    {FIELD(layout), layout_names, 0, HGEMM_STATUS_INVALID_LAYOUT},
    {FIELD(op_a), op_names, 0, HGEMM_STATUS_INVALID_OP},
    {FIELD(op_b), op_names, 0, HGEMM_STATUS_INVALID_OP},
    {FIELD(accumulate), accumulate_names, 0, HGEMM_STATUS_INVALID_ACCUMULATE},
    {FIELD(kernel), NULL, KERNEL_END - 1, HGEMM_STATUS_INVALID_KERNEL},
    {FIELD(activation), activation_names, 0, HGEMM_STATUS_INVALID_ACTIVATION},
    {FIELD(flags), NULL, HGEMM_FLAG_BATCH_INVARIANT | HGEMM_FLAG_HALVES_IN_A | HGEMM_FLAG_HALVES_IN_B,
     HGEMM_STATUS_INVALID_FLAGS},
    {FIELD(batch_mode), batch_mode_names, 0, HGEMM_STATUS_INVALID_BATCH_MODE},
    {FIELD(index_type), index_type_names, 0, HGEMM_STATUS_INVALID_INDEX},
    {FIELD(accuracy), accuracy_names, 0, HGEMM_STATUS_INVALID_ACCURACY},
};

/* What belongs to an operand that is not accessed may have any value. */
static const struct {
    operand_t operand;
    enumeration_t of;
} operand_enumerations[] = {
    {OPERAND_BIAS, {FIELD(bias_mode), bias_mode_names, 0, HGEMM_STATUS_INVALID_BIAS}},
    {OPERAND_A, {FIELD(type_a), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
    {OPERAND_B, {FIELD(type_b), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
    {OPERAND_C, {FIELD(type_c), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
    {OPERAND_D, {FIELD(type_d), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
    {OPERAND_BIAS, {FIELD(type_bias), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
    {OPERAND_GATE, {FIELD(type_gate), type_names, 0, HGEMM_STATUS_INVALID_TYPE}},
};
#undef FIELD
enum { TYPE_B = 2 }; /* its place in this list */

static hgemm_status_t check_enumeration(const hgemm_desc_t *desc, const enumeration_t *of, char *words)
{
    int value;
    memcpy(&value, (const char *)desc + of->offset, sizeof value);
    if (value >= 0 && value <= (of->names ? name_count(of->names) - 1 : of->last))
        return HGEMM_STATUS_SUCCESS;
    return refuse(words, of->status, "%s is %d.", of->name, value);
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

static hgemm_status_t check_scales(const hgemm_desc_t *desc, char *words)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (!(accessed_operands(desc) >> OPERAND_A & 1u))
        return status;
    if (factor_has_scale(desc, FACTOR_A) && !desc->scale_a_pointer)
        status = check_scale("scale_a", desc->scale_a, words);
    if (status == HGEMM_STATUS_SUCCESS && factor_has_scale(desc, FACTOR_B) && !desc->scale_b_pointer)
        status = check_scale("scale_b", desc->scale_b, words);
    return status;
}

/* Weights that are multiplied, whose type then is one that no caller says; others are not looked at. */
static hgemm_status_t take_packed(hgemm_desc_t *desc, char *words)
{
    packed_form_t form;
    if (!(accessed_operands(desc) >> OPERAND_B & 1u))
        desc->weights = NULL;
    if (!desc->weights)
        return HGEMM_STATUS_SUCCESS;
    desc->type_b = HGEMM_TYPE_PACKED;
    return take_weights(desc->weights, &form, words);
}

static hgemm_status_t check_enumerations(hgemm_desc_t *desc, char *words)
{
    const unsigned accessed = accessed_operands(desc);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof enumerations / sizeof enumerations[0]; i++)
        if ((status = check_enumeration(desc, &enumerations[i], words)) != HGEMM_STATUS_SUCCESS)
            return status;
    if (desc->alignment < 0 || (desc->alignment & (desc->alignment - 1)))
        return refuse(words, HGEMM_STATUS_INVALID_ALIGNMENT, "alignment is %d.", desc->alignment);
    for (size_t i = 0; i < sizeof operand_enumerations / sizeof operand_enumerations[0]; i++)
        if (accessed >> operand_enumerations[i].operand & 1u && !(desc->weights && i == TYPE_B) &&
            (status = check_enumeration(desc, &operand_enumerations[i].of, words)) != HGEMM_STATUS_SUCCESS)
            return status;
    status = take_packed(desc, words);
    return status == HGEMM_STATUS_SUCCESS ? check_scales(desc, words) : status;
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

/* Weights are those of the call, and each in a batch begins where a lane can load 16 bytes. */
static hgemm_status_t check_packed(const hgemm_desc_t *desc, char *words)
{
    if (!desc->weights)
        return HGEMM_STATUS_SUCCESS;
    if (desc->weights->n != desc->n || desc->weights->k != desc->k)
        return refuse(words, HGEMM_STATUS_INVALID_WEIGHTS,
                      "The weights are %" PRId64 " by %" PRId64 ", and n is %" PRId64 ", k %" PRId64 ".",
                      desc->weights->n, desc->weights->k, desc->n, desc->k);
    if (desc->batch > 1 && desc->batch_mode != HGEMM_BATCH_POINTERS && desc->stride_b % 16 != 0)
        return refuse(words, HGEMM_STATUS_INVALID_WEIGHTS,
                      "stride_b is %" PRId64 ", and packed weights begin at multiples of 16 bytes.", desc->stride_b);
    return HGEMM_STATUS_SUCCESS;
}

/* Kernels count rows, columns, products and groups in 32 bits. */
static hgemm_status_t check_limits(const call_t *call, char *words)
{
    const hgemm_desc_t *desc = call->desc;
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
    for (int i = 0; i < 4 && accesses(call, OPERAND_D); i++)
        if (sizes[i].value > sizes[i].most)
            return refuse(words, HGEMM_STATUS_TOO_LARGE, "%s is %" PRId64 "; the most is %" PRId64 ".", sizes[i].name,
                          sizes[i].value, sizes[i].most);
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t check_leading_dimension(const call_t *call, operand_t operand, char *words)
{
    const view_t *view = &call->views[operand];
    const operand_words_t *of = &operand_words[operand];
    if (of->invalid_ld == HGEMM_STATUS_SUCCESS || view->ld >= view->width)
        return HGEMM_STATUS_SUCCESS;
    return refuse(words, of->invalid_ld, "%s is %" PRId64 "; a stored %s of %s has %" PRId64 " elements.", of->ld,
                  view->ld, call->desc->layout == HGEMM_ROW_MAJOR ? "row" : "column", of->name, view->width);
}

/* Whether the operand spans at most 2^62 bytes, so that distances between it and another one fit 64 bits. A stride may
 * be negative. */
static hgemm_status_t check_extent(const call_t *call, operand_t operand, char *words)
{
    const view_t *view = &call->views[operand];
    const operand_words_t *of = &operand_words[operand];
    const int64_t most = (INT64_C(1) << 62) / bytes_of_bits(view->bits, 1); /* elements, each in bytes of its own */
    const char *line = call->desc->layout == HGEMM_ROW_MAJOR ? "rows" : "columns";
    if (view->width > most)
        return refuse(words, HGEMM_STATUS_TOO_LARGE, "%s would have %" PRId64 " elements of %d bits.", of->name,
                      view->width, view->bits);
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
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Pointers ---------------------------------------------------------------------------------- */

static hgemm_status_t check_null(const call_t *call, operand_t operand, char *words)
{
    const view_t *view = &call->views[operand];
    const operand_words_t *of = &operand_words[operand];
    const int row_major = call->desc->layout == HGEMM_ROW_MAJOR;
    if (view->data)
        return HGEMM_STATUS_SUCCESS;
    if (operand == OPERAND_GROUP_ENDS)
        return refuse(words, of->null, "group_ends is NULL and batch is %" PRId64 ".", call->desc->batch);
    return refuse(words, of->null, "%s is NULL and %s is %" PRId64 " by %" PRId64 ".", of->pointer, of->name,
                  row_major ? view->lines : view->width, row_major ? view->width : view->lines);
}

static hgemm_status_t check_alignment(const call_t *call, operand_t operand, char *words)
{
    const view_t *view = &call->views[operand];
    const operand_words_t *of = &operand_words[operand];
    if (((uintptr_t)view->data & (uintptr_t)(view->alignment - 1)) == 0)
        return HGEMM_STATUS_SUCCESS;
    return refuse(words, of->misaligned, "%s is 0x%" PRIxPTR ", no multiple of %d.", of->pointer, (uintptr_t)view->data,
                  view->alignment);
}

/* One check of every operand that is accessed. */
typedef hgemm_status_t check_fn(const call_t *call, operand_t operand, char *words);

static hgemm_status_t check_operands(const call_t *call, check_fn *check, char *words)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int i = 0; i < call->count && status == HGEMM_STATUS_SUCCESS; i++)
        status = check(call, call->accessed[i], words);
    return status;
}

static hgemm_status_t check_overlap(const call_t *call, operand_t operand, char *words)
{
    const view_t *view = &call->views[operand];
    const hgemm_desc_t *desc = call->desc;
    const view_t *d = &call->views[OPERAND_D];
    if (!d->is_known || !view->is_known)
        return HGEMM_STATUS_SUCCESS;
    if (operand == OPERAND_D)
        return batch_meets_itself(d) ? refuse(words, HGEMM_STATUS_OVERLAP,
                                              "The D's of the batch overlap: stride_d is %" PRId64 ", ldd is %" PRId64
                                              " and batch is %" PRId64 ".",
                                              desc->stride_d, desc->ldd, desc->batch)
                                     : HGEMM_STATUS_SUCCESS;
    if ((operand == OPERAND_C && d_is_c(desc)) || !operands_meet(d, view))
        return HGEMM_STATUS_SUCCESS;
    uintptr_t begin, end, d_begin, d_end;
    address_range(view, &begin, &end);
    address_range(d, &d_begin, &d_end);
    return refuse(words, HGEMM_STATUS_OVERLAP,
                  "D, from 0x%" PRIxPTR " to 0x%" PRIxPTR ", overlaps %s, from 0x%" PRIxPTR " to 0x%" PRIxPTR ".",
                  d_begin, d_end - 1, operand_words[operand].name, begin, end - 1);
}

/* ---- Support ----------------------------------------------------------------------------------- */

/* THE LIST of what a descriptor can say and no kernel does. */
static hgemm_status_t check_support(const call_t *call, char *words)
{
    const hgemm_desc_t *desc = call->desc;
    const int multiplies = accesses(call, OPERAND_A);
    const int has_scales = multiplies && (factor_has_scale(desc, FACTOR_A) || factor_has_scale(desc, FACTOR_B));
    const int has_floats = multiplies && (desc->type_a == HGEMM_TYPE_F32 || desc->type_b == HGEMM_TYPE_F32);
    const int are_strange = multiplies && factors_of(desc->type_a, desc->type_b) == FACTORS_COUNT;
    char types[96] = "";
    if (are_strange) /* each call passes here: words only where they are needed */
        snprintf(types, sizeof types, "A of %s beside B of %s", type_table[desc->type_a].constant,
                 type_table[desc->type_b].constant);
    const struct {
        const char *feature;
        int is_used;
    } features[] = {
        {"packed weights in column-major layout", desc->weights && desc->layout != HGEMM_ROW_MAJOR},
        {"packed weights with op_b of HGEMM_OP_N: B is the transpose of what was packed, and hgemm_unpack_weights "
         "writes that",
         desc->weights && desc->op_b != HGEMM_OP_T},
        {"packed weights with op_a of HGEMM_OP_T: rows of A run along k", desc->weights && desc->op_a != HGEMM_OP_N},
        {"HGEMM_ACCUMULATE_F16 for packed weights", desc->weights && desc->accumulate != HGEMM_ACCUMULATE_F32},
        {types, are_strange},
        {"HGEMM_ACCUMULATE_F16 for A and B of HGEMM_TYPE_BF16", has_scales && desc->accumulate != HGEMM_ACCUMULATE_F32},
        {"HGEMM_ACCUMULATE_F16 for A or B of HGEMM_TYPE_F32", has_floats && desc->accumulate != HGEMM_ACCUMULATE_F32},
        {"A and B of HGEMM_TYPE_BF16 by pointers, in groups or gathered, whose scales are to be found",
         has_scales && scales_to_find(desc) &&
             (desc->batch_mode != HGEMM_BATCH_STRIDED || accesses(call, OPERAND_GATHER_A))},
        {"HGEMM_FLAG_BATCH_INVARIANT for an A of HGEMM_TYPE_BF16 whose scale is to be found",
         has_scales && (desc->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0 && desc->scale_a == 0 && !desc->scale_a_pointer},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (features[i].is_used)
            return refuse(words, HGEMM_STATUS_NOT_SUPPORTED, "No kernel has %s.", features[i].feature);
    return HGEMM_STATUS_SUCCESS;
}

void describe_unsupported(const hgemm_desc_t *p, char words[DEVICE_DETAIL])
{
    char types[96] = "";
    if ((unsigned)p->type_a <= TYPE_COUNT && (unsigned)p->type_b <= TYPE_COUNT && /* what is not read may be of any */
        (p->type_a != HGEMM_TYPE_F16 || p->type_b != HGEMM_TYPE_F16))
        snprintf(types, sizeof types, ", A of %s and B of %s%s%s%s%s", element_names[p->type_a],
                 element_names[p->type_b], p->weights ? " " : "", p->weights ? code_names[p->weights->code] : "",
                 has_floats(p) ? ", accuracy " : "", has_floats(p) ? accuracy_names[p->accuracy] : "");
    const char *name = p->kernel == HGEMM_KERNEL_AUTO ? "No kernel" : kernel_table[p->kernel].info.name;
    refuse(words, HGEMM_STATUS_NOT_SUPPORTED,
           "%s %s this row-major problem: %s%s, %s sums, m %" PRId64 ", n %" PRId64 ", k %" PRId64 ", lda %" PRId64
           ", ldb %" PRId64 ", A %d and B %d bytes past a multiple of 16%s%s%s%s.%s%s",
           name, p->kernel == HGEMM_KERNEL_AUTO ? "covers" : "does not cover", op_names[p->op_a], op_names[p->op_b],
           accumulate_names[p->accumulate], p->m, p->n, p->k, p->lda, p->ldb, (int)((uintptr_t)p->a % 16),
           (int)((uintptr_t)p->b % 16), fused_bits(p) ? ", a fused epilogue" : "", types,
           is_indirect(p) ? ", operands by pointers or indices" : "",
           p->flags & HGEMM_FLAG_BATCH_INVARIANT ? ", batch-invariant" : "",
           scales_to_find(p) ? " Scales of bfloat16 that a call is to find need a workspace of more than 64 KiB, too."
                             : "",
           kernel_table[p->kernel].splits_first
               ? " It has A and B split in the workspace, which needs room for that, and is for GPUs newer than Turing."
           : !kernel_table[p->kernel].is_plain
               ? ""
               : " It is there to be read, and covers nn, F16 sums, and rows of A, B, C and "
                 "D in whole, 16-byte aligned chunks, without a fused epilogue.");
}

/* ---- All of it --------------------------------------------------------------------------------- */

hgemm_status_t check_call(const hgemm_desc_t *given, check_t depth, hgemm_desc_t *desc, char words[DEVICE_DETAIL])
{
    hgemm_status_t status = take_desc(given, desc, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_enumerations(desc, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_signs(desc, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_packed(desc, words);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const call_t call = open_call(desc);
    status = check_operands(&call, check_leading_dimension, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_limits(&call, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_operands(&call, check_extent, words);
    if (status != HGEMM_STATUS_SUCCESS || nothing_to_compute(desc))
        return status;
    if (depth == CHECK_MEMORY)
        status = check_operands(&call, check_null, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_operands(&call, check_alignment, words);
    if (status == HGEMM_STATUS_SUCCESS && depth == CHECK_MEMORY)
        status = check_operands(&call, check_overlap, words);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_support(&call, words);
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
