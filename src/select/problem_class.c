/* SPDX-License-Identifier: MIT */
#include "select/problem_class.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "problem/check.h"
#include "problem/names.h"
#include "problem/weights.h"
#include "select/parse.h"
#include "table/kernels.h"

problem_class_t class_of(const problem_t *p)
{
    return (problem_class_t){{
#define FIELD(name, value) [CLASS_##name] = (value),
#include "select/problem_class.def"
    }};
}

int class_compare(const problem_class_t *one, const problem_class_t *other)
{
    for (int i = 0; i < CLASS_FIELDS; i++)
        if (one->of[i] != other->of[i])
            return one->of[i] < other->of[i] ? -1 : 1;
    return 0;
}

/* FNV-1a, a number at a time. */
uint64_t class_hash(const problem_class_t *problem)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < CLASS_FIELDS; i++)
        hash = (hash ^ (uint64_t)problem->of[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- Words ----------------------------------------------------------------------------------------- */

/* Whether the rows in memory of FACTOR_A or FACTOR_B run along k. */
static int is_along_k(const int64_t *of, int which)
{
    return which == FACTOR_A ? !(of[CLASS_op] & 2) : of[CLASS_op] & 1;
}

/* Whether an operand is packed, and has no rows. */
static int is_packed(const int64_t *of, int which)
{
    return which == FACTOR_B && of[CLASS_type_b] == HGEMM_TYPE_PACKED;
}

/* Leading dimension and stride of an operand without gaps. */
static int64_t tight_ld(const int64_t *of, int which)
{
    if (is_packed(of, which))
        return 0;
    return is_along_k(of, which) ? of[CLASS_k] : which == FACTOR_A ? of[CLASS_m] : of[CLASS_n];
}

/* 0 where there is no stride, and where it would be no int64_t. */
static int64_t tight_stride(const int64_t *of, int which)
{
    const int64_t lines = !is_along_k(of, which) ? of[CLASS_k] : which == FACTOR_A ? of[CLASS_m] : of[CLASS_n];
    const int64_t ld = of[which == FACTOR_A ? CLASS_lda : CLASS_ldb];
    const int has_stride =
        which == FACTOR_A ? of[CLASS_batch_mode] == HGEMM_BATCH_STRIDED : of[CLASS_batch_mode] != HGEMM_BATCH_POINTERS;
    return has_stride && !is_packed(of, which) && of[CLASS_batch] > 1 && (lines == 0 || ld <= INT64_MAX / lines)
               ? lines * ld
               : 0;
}

/* FACTOR_A and FACTOR_B, of floats or made of halves, by those that are of halves. */
static const char *const factor_names[NAMES] = {"none", "a", "b", "ab"};

static int64_t absent_exact(const int64_t *of)
{
    const int a_is_f32 = of[CLASS_type_a] == HGEMM_TYPE_F32, b_is_f32 = of[CLASS_type_b] == HGEMM_TYPE_F32;
    return a_is_f32 || b_is_f32 ? (a_is_f32 ? 0 : FACTOR_A) | (b_is_f32 ? 0 : FACTOR_B) : 0;
}

typedef enum word_t {
#define WORDS(word, first, count, names, absent) WORD_##first,
#define FLAG(word, field, value) WORD_##field##_##value,
#include "select/problem_class.def"
    WORD_COUNT
} word_t;

/* `count` values follow the word, or none: it then says that the first field is `value`. */
static const struct {
    const char *word;
    int first, count;
    int64_t value;
    const char *const *names;
    const char *fault; /* if the values do not follow */
} words[WORD_COUNT] = {
#define WORDS(word, first, count, names, absent) \
    {word, CLASS_##first, count, 0, names, word " is not followed by its values"},
#define FLAG(word, field, value) {word, CLASS_##field, 0, value, NULL, NULL},
#include "select/problem_class.def"
};

/* The value of a field of such a word that is not there. */
static int64_t absent_value(word_t word, int field, const int64_t *of)
{
    const int64_t values[WORD_COUNT] = {
#define WORDS(word, first, count, names, absent) [WORD_##first] = absent,
#include "select/problem_class.def"
    };
    return values[word];
}

static int is_absent(word_t word, const int64_t *of)
{
    const int first = words[word].first;
    if (words[word].count == 0)
        return of[first] != words[word].value;
    for (int field = first; field < first + words[word].count; field++)
        if (of[field] != absent_value(word, field, of))
            return 0;
    return 1;
}

void class_to_text(const problem_class_t *problem, char text[CLASS_TEXT])
{
    const int64_t *of = problem->of;
    int used =
        snprintf(text, CLASS_TEXT, "%s %s %" PRId64 "x%" PRId64 "x%" PRId64, accumulate_names[of[CLASS_accumulate]],
                 transpose_names[of[CLASS_op]], of[CLASS_m], of[CLASS_n], of[CLASS_k]);
    for (word_t word = 0; word < WORD_COUNT; word++) {
        if (is_absent(word, of))
            continue;
        used += snprintf(text + used, (size_t)(CLASS_TEXT - used), " %s", words[word].word);
        for (int i = words[word].first; i < words[word].first + words[word].count; i++)
            used += words[word].names
                        ? snprintf(text + used, (size_t)(CLASS_TEXT - used), " %s", words[word].names[of[i]])
                        : snprintf(text + used, (size_t)(CLASS_TEXT - used), " %" PRId64, of[i]);
    }
}

static int take_value(const char **text, const char *const *names, int64_t *value)
{
    if (!names)
        return take_number(text, INT64_MAX, value);
    *value = take_one_of(text, names, NAMES);
    return *value >= 0;
}

/* Reads a word if it comes next, and what follows it; returns what is wrong. */
static const char *take_words(const char **text, word_t word, int64_t *of, int *is_there)
{
    const int first = words[word].first, count = words[word].count;
    *is_there = (count > 0 || of[first] == 0) && take_word(text, words[word].word);
    if (*is_there && count == 0)
        of[first] = words[word].value;
    for (int i = 0; *is_there && i < count; i++)
        if (!take_value(text, words[word].names, &of[first + i]))
            return words[word].fault;
    return NULL;
}

const char *class_from_text(const char *text, problem_class_t *problem)
{
    int64_t *of = problem->of;
    int is_there[WORD_COUNT];
    memset(problem, 0, sizeof *problem);
    int accumulate = take_one_of(&text, accumulate_names, NAMES);
    int op = accumulate < 0 ? -1 : take_one_of(&text, transpose_names, VARIANT_OPS);
    if (op < 0)
        return "a problem begins with f16 or f32 and the transposes (nn, nt, tn, tt)";
    of[CLASS_accumulate] = accumulate, of[CLASS_op] = op;
    if (!take_number_until(&text, 'x', INT32_MAX, &of[CLASS_m]) ||
        !take_number_until(&text, 'x', INT32_MAX, &of[CLASS_n]) || !take_number(&text, INT32_MAX, &of[CLASS_k]))
        return "the transposes are not followed by MxNxK";
    for (word_t word = 0; word < WORD_COUNT; word++) {
        const char *fault = take_words(&text, word, of, &is_there[word]);
        if (fault)
            return fault;
    }
    if (*text)
        return "more words follow than a problem has, or not in their order";
    for (word_t word = 0; word < WORD_COUNT; word++) /* now that all flags are known */
        for (int field = words[word].first; !is_there[word] && field < words[word].first + words[word].count; field++)
            of[field] = absent_value(word, field, of);
    for (int i = 0; i < 2; i++)
        if (of[CLASS_aligned_a + i] != 16 && of[CLASS_aligned_a + i] != 8 &&
            of[CLASS_aligned_a + i] != type_bytes((hgemm_type_t)of[CLASS_type_a + i], 1))
            return "aligned is followed by two of 16, 8 and the bytes of an element";
    return NULL;
}

/* ---- A problem of a class -------------------------------------------------------------------------- */

const char *class_example(const problem_class_t *problem, hgemm_desc_t *call, hgemm_weights_t *weights)
{
    static const float bias;
    const int64_t *of = problem->of;
    static _Thread_local char detail[DEVICE_DETAIL];
    hgemm_desc_t desc;
    problem_t checked;
    hgemm_desc_init(&desc);
    desc.accumulate = (hgemm_accumulate_t)of[CLASS_accumulate];
    desc.op_a = (hgemm_op_t)(of[CLASS_op] >> 1), desc.op_b = (hgemm_op_t)(of[CLASS_op] & 1);
    desc.m = of[CLASS_m], desc.n = of[CLASS_n], desc.k = of[CLASS_k];
    desc.batch = of[CLASS_batch];
    desc.batch_mode = (hgemm_batch_mode_t)of[CLASS_batch_mode];
    desc.lda = of[CLASS_lda], desc.ldb = of[CLASS_ldb], desc.ldc = desc.ldd = desc.n;
    desc.stride_a = of[CLASS_stride_a], desc.stride_b = of[CLASS_stride_b];
    desc.stride_d = desc.m * desc.n;
    desc.flags = of[CLASS_invariant] ? HGEMM_FLAG_BATCH_INVARIANT : 0;
    if (desc.batch_mode == HGEMM_BATCH_POINTERS) {
        desc.alignment = (int)of[CLASS_aligned_a];
    } else {
        desc.a = (const void *)(uintptr_t)of[CLASS_aligned_a];
        desc.b = (const void *)(uintptr_t)of[CLASS_aligned_b];
    }
    desc.type_a = (hgemm_type_t)of[CLASS_type_a], desc.type_b = (hgemm_type_t)of[CLASS_type_b];
    desc.scale_a = of[CLASS_scaled_a] ? 1 : 0, desc.scale_b = of[CLASS_scaled_b] ? 1 : 0;
    desc.accuracy = (hgemm_accuracy_t)of[CLASS_accuracy];
    desc.flags |= (of[CLASS_exact] & FACTOR_A ? HGEMM_FLAG_HALVES_IN_A : 0) |
                  (of[CLASS_exact] & FACTOR_B ? HGEMM_FLAG_HALVES_IN_B : 0);
    if (of[CLASS_fused])
        desc.bias = &bias, desc.type_bias = HGEMM_TYPE_F32;
    if (of[CLASS_gathered])
        desc.gather_a = &bias;
    if (desc.type_b == HGEMM_TYPE_PACKED) {
        hgemm_weights_init(weights);
        weights->n = desc.n, weights->k = desc.k;
        weights->code = (hgemm_code_t)of[CLASS_code], weights->group = (int)of[CLASS_weight_group];
        weights->zero = (hgemm_zero_t)of[CLASS_zero], weights->type_scale = (hgemm_type_t)of[CLASS_type_scale];
        desc.weights = weights;
    }
    if (of[CLASS_col_major]) { /* the call whose A and B are the transposes of these */
        desc.layout = HGEMM_COL_MAJOR;
        desc.op_a = desc.op_a == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N;
        desc.op_b = desc.op_b == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N;
        desc.ldc = desc.ldd = desc.m;
    }
    if (desc.k < 1)
        return "k is 0";
    if (check_call(&desc, CHECK_ALIGNMENT, &checked, detail) != HGEMM_STATUS_SUCCESS) {
        const size_t length = strlen(detail);
        if (length > 0 && detail[length - 1] == '.') /* words that go on, and no sentence */
            detail[length - 1] = '\0';
        return length > 0 ? detail : "the problem's sizes, leading dimensions, strides or alignments cannot be";
    }
    if (checked.is_idle)
        return "D has no elements";
    if (checked.is_col_major != of[CLASS_col_major]) {
        desc.scatter_d = &bias; /* what else has rows that stay; it is fused, too */
        if (!of[CLASS_fused])
            return "a problem is col_major whose rows are in groups or have indices";
    }
    *call = desc;
    return NULL;
}
