/* SPDX-License-Identifier: MIT */
#include "select/problem_class.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/check.h"
#include "select/feasible.h"
#include "problem/names.h"
#include "problem/problem.h"
#include "select/parse.h"

/* The greatest of 16, 8 and an element's bytes that the address is a multiple of. */
static int64_t alignment_of(const factor_t *x)
{
    return x->address % 16 == 0 ? 16 : x->address % 8 == 0 ? 8 : type_bytes(x->type, 1);
}

problem_class_t class_of(const hgemm_desc_t *p)
{
    const int is_strided = p->batch_mode == HGEMM_BATCH_STRIDED, has_pointers = p->batch_mode == HGEMM_BATCH_POINTERS;
    const factor_t a = factor_of(p, FACTOR_A), b = factor_of(p, FACTOR_B);
    problem_class_t problem = {{
        [CLASS_ACCUMULATE] = p->accumulate,
        [CLASS_OP] = 2 * (int)p->op_a + (int)p->op_b,
        [CLASS_M] = p->m,
        [CLASS_N] = p->n,
        [CLASS_K] = p->k,
        [CLASS_BATCH] = p->batch,
        [CLASS_LDA] = p->lda,
        [CLASS_LDB] = p->ldb,
        [CLASS_STRIDE_A] = is_strided && p->batch > 1 ? p->stride_a : 0,
        [CLASS_STRIDE_B] = !has_pointers && p->batch > 1 ? p->stride_b : 0,
        [CLASS_ALIGNED_A] = alignment_of(&a),
        [CLASS_ALIGNED_B] = alignment_of(&b),
        [CLASS_FUSED] = fused_bits(p) != 0,
        [CLASS_INVARIANT] = (p->flags & HGEMM_FLAG_BATCH_INVARIANT) != 0,
        [CLASS_GATHERED] = p->gather_a != NULL,
        [CLASS_BATCH_MODE] = p->batch_mode,
        [CLASS_COL_MAJOR] = p->layout == HGEMM_COL_MAJOR,
        [CLASS_BF16] = p->type_a == HGEMM_TYPE_BF16,
        [CLASS_SCALED_A] = type_table[p->type_a].has_scale && !(scales_to_find(p) & FACTOR_A),
        [CLASS_SCALED_B] = type_table[p->type_b].has_scale && !(scales_to_find(p) & FACTOR_B),
    }};
    return problem;
}

int class_compare(const problem_class_t *one, const problem_class_t *other)
{
    for (int i = 0; i < CLASS_FIELDS; i++)
        if (one->of[i] != other->of[i])
            return one->of[i] < other->of[i] ? -1 : 1;
    return 0;
}

/* Leading dimensions and strides of operands without gaps; `of` is complete up to the field before. */
static int64_t tight_lda(const int64_t *of)
{
    return of[CLASS_OP] & 2 ? of[CLASS_M] : of[CLASS_K];
}

static int64_t tight_ldb(const int64_t *of)
{
    return of[CLASS_OP] & 1 ? of[CLASS_K] : of[CLASS_N];
}

/* lines * ld, 0 where there is no stride, and where it is no int64_t. */
static int64_t tight_stride(const int64_t *of, int64_t lines, int64_t ld, int has_stride)
{
    return has_stride && of[CLASS_BATCH] > 1 && (lines == 0 || ld <= INT64_MAX / lines) ? lines * ld : 0;
}

static int64_t tight_stride_a(const int64_t *of)
{
    return tight_stride(of, of[CLASS_OP] & 2 ? of[CLASS_K] : of[CLASS_M], of[CLASS_LDA],
                        of[CLASS_BATCH_MODE] == HGEMM_BATCH_STRIDED);
}

static int64_t tight_stride_b(const int64_t *of)
{
    return tight_stride(of, of[CLASS_OP] & 1 ? of[CLASS_N] : of[CLASS_K], of[CLASS_LDB],
                        of[CLASS_BATCH_MODE] != HGEMM_BATCH_POINTERS);
}

/* Words that stand for a field that is 1, and for values of the batch's mode. */
static const struct {
    const char *word;
    class_field_t field;
    int value;
} flags[] = {
    {"fused", CLASS_FUSED, 1},
    {"invariant", CLASS_INVARIANT, 1},
    {"gathered", CLASS_GATHERED, 1},
    {"pointers", CLASS_BATCH_MODE, HGEMM_BATCH_POINTERS},
    {"grouped", CLASS_BATCH_MODE, HGEMM_BATCH_GROUPED},
    {"col_major", CLASS_COL_MAJOR, 1},
    {"bf16", CLASS_BF16, 1},
    {"scaled_a", CLASS_SCALED_A, 1},
    {"scaled_b", CLASS_SCALED_B, 1},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

void class_to_text(const problem_class_t *problem, char text[CLASS_TEXT])
{
    const int64_t *of = problem->of;
    int used =
        snprintf(text, CLASS_TEXT, "%s %s %" PRId64 "x%" PRId64 "x%" PRId64, accumulate_names[of[CLASS_ACCUMULATE]],
                 transpose_names[of[CLASS_OP]], of[CLASS_M], of[CLASS_N], of[CLASS_K]);
    if (of[CLASS_BATCH] != 1)
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " batch %" PRId64, of[CLASS_BATCH]);
    if (of[CLASS_LDA] != tight_lda(of))
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " lda %" PRId64, of[CLASS_LDA]);
    if (of[CLASS_LDB] != tight_ldb(of))
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " ldb %" PRId64, of[CLASS_LDB]);
    if (of[CLASS_STRIDE_A] != tight_stride_a(of) || of[CLASS_STRIDE_B] != tight_stride_b(of))
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " strides %" PRId64 " %" PRId64, of[CLASS_STRIDE_A],
                         of[CLASS_STRIDE_B]);
    if (of[CLASS_ALIGNED_A] != 16 || of[CLASS_ALIGNED_B] != 16)
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " aligned %" PRId64 " %" PRId64, of[CLASS_ALIGNED_A],
                         of[CLASS_ALIGNED_B]);
    for (int i = 0; i < FLAGS; i++)
        if (of[flags[i].field] == flags[i].value)
            used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " %s", flags[i].word);
}

static int take_alignment(const char **text, int64_t *alignment)
{
    return take_number(text, 16, alignment) && (*alignment == 16 || *alignment == 8 || *alignment == 2);
}

const char *class_from_text(const char *text, problem_class_t *problem)
{
    int64_t *of = problem->of;
    memset(problem, 0, sizeof *problem);
    int accumulate = take_one_of(&text, accumulate_names, NAMES);
    int op = accumulate < 0 ? -1 : take_one_of(&text, transpose_names, VARIANT_OPS);
    if (op < 0)
        return "a problem begins with f16 or f32 and the transposes (nn, nt, tn, tt)";
    of[CLASS_ACCUMULATE] = accumulate, of[CLASS_OP] = op;
    if (!take_number_until(&text, 'x', INT32_MAX, &of[CLASS_M]) ||
        !take_number_until(&text, 'x', INT32_MAX, &of[CLASS_N]) || !take_number(&text, INT32_MAX, &of[CLASS_K]))
        return "the transposes are not followed by MxNxK";
    of[CLASS_BATCH] = 1;
    if (take_word(&text, "batch") && !take_number(&text, INT64_MAX, &of[CLASS_BATCH]))
        return "batch is followed by a number";
    of[CLASS_LDA] = tight_lda(of), of[CLASS_LDB] = tight_ldb(of);
    if ((take_word(&text, "lda") && !take_number(&text, INT64_MAX, &of[CLASS_LDA])) ||
        (take_word(&text, "ldb") && !take_number(&text, INT64_MAX, &of[CLASS_LDB])))
        return "lda and ldb are followed by a number";
    int has_strides = take_word(&text, "strides");
    if (has_strides &&
        (!take_number(&text, INT64_MAX, &of[CLASS_STRIDE_A]) || !take_number(&text, INT64_MAX, &of[CLASS_STRIDE_B])))
        return "strides are followed by two numbers";
    of[CLASS_ALIGNED_A] = of[CLASS_ALIGNED_B] = 16;
    if (take_word(&text, "aligned") &&
        (!take_alignment(&text, &of[CLASS_ALIGNED_A]) || !take_alignment(&text, &of[CLASS_ALIGNED_B])))
        return "aligned is followed by two of 16, 8 and 2";
    for (int i = 0; i < FLAGS; i++)
        if (of[flags[i].field] == 0 && take_word(&text, flags[i].word))
            of[flags[i].field] = flags[i].value;
    if (!has_strides)
        of[CLASS_STRIDE_A] = tight_stride_a(of), of[CLASS_STRIDE_B] = tight_stride_b(of);
    return *text ? "more words follow than a problem has, or not in their order" : NULL;
}

const char *class_example(const problem_class_t *problem, hgemm_desc_t *row_major)
{
    static const float bias;
    const int64_t *of = problem->of;
    hgemm_desc_t desc, checked;
    char words[DEVICE_DETAIL];
    hgemm_desc_init(&desc);
    desc.accumulate = (hgemm_accumulate_t)of[CLASS_ACCUMULATE];
    desc.op_a = (hgemm_op_t)(of[CLASS_OP] >> 1), desc.op_b = (hgemm_op_t)(of[CLASS_OP] & 1);
    desc.m = of[CLASS_M], desc.n = of[CLASS_N], desc.k = of[CLASS_K];
    desc.batch = of[CLASS_BATCH];
    desc.batch_mode = (hgemm_batch_mode_t)of[CLASS_BATCH_MODE];
    desc.lda = of[CLASS_LDA], desc.ldb = of[CLASS_LDB], desc.ldc = desc.ldd = desc.n;
    desc.stride_a = of[CLASS_STRIDE_A], desc.stride_b = of[CLASS_STRIDE_B];
    desc.stride_d = desc.m * desc.n;
    desc.flags = of[CLASS_INVARIANT] ? HGEMM_FLAG_BATCH_INVARIANT : 0;
    if (desc.batch_mode == HGEMM_BATCH_POINTERS) {
        desc.alignment = (int)of[CLASS_ALIGNED_A];
    } else {
        desc.a = (const void *)(uintptr_t)of[CLASS_ALIGNED_A];
        desc.b = (const void *)(uintptr_t)of[CLASS_ALIGNED_B];
    }
    if (of[CLASS_BF16])
        desc.type_a = desc.type_b = HGEMM_TYPE_BF16;
    desc.scale_a = of[CLASS_SCALED_A] ? 1 : 0, desc.scale_b = of[CLASS_SCALED_B] ? 1 : 0;
    if (of[CLASS_FUSED])
        desc.bias = &bias, desc.type_bias = HGEMM_TYPE_F32;
    if (of[CLASS_GATHERED])
        desc.gather_a = &bias;
    if (desc.k < 1)
        return "k is 0";
    if (check_call(&desc, CHECK_ALIGNMENT, &checked, words) != HGEMM_STATUS_SUCCESS || nothing_to_compute(&checked))
        return "the problem's sizes, leading dimensions or strides cannot be";
    *row_major = normalise(&checked);
    row_major->layout = of[CLASS_COL_MAJOR] ? HGEMM_COL_MAJOR : HGEMM_ROW_MAJOR;
    return NULL;
}
