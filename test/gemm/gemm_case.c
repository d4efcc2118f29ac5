/* SPDX-License-Identifier: MIT */
#include "gemm_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- As words ---------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t offset;
} fields[] = {
#define FIELD(key, member)            \
    {                                 \
        key, offsetof(case_t, member) \
    }
#define OPERAND_FIELDS(name, which)                                                                    \
    FIELD("pad_" name, pad[which]), FIELD("off_" name, offset[which]), FIELD("gap_" name, gap[which]), \
        FIELD("type_" name, type[which])
    /* Features first, sizes last: a failure is shrunk in this order. */
    FIELD("tail", tail),
    FIELD("copies", copies),
    FIELD("gate", gate),
    FIELD("bias", bias),
    FIELD("activation", activation),
    FIELD("scatter", scatter),
    FIELD("gather", gather),
    FIELD("batch_mode", batch_mode),
    FIELD("alpha_device", alpha_device),
    FIELD("beta_device", beta_device),
    FIELD("scaled", scaled),
    FIELD("accuracy", accuracy),
    FIELD("exact", exact),
    FIELD("invariant", invariant),
    FIELD("in_place", in_place),
    FIELD("index_64", index_64),
    FIELD("alignment", alignment),
    FIELD("unused", unused),
    FIELD("spare", spare),
    FIELD("null", null),
    FIELD("tight", tight),
    FIELD("fill", fill),
    OPERAND_FIELDS("a", A),
    OPERAND_FIELDS("b", B),
    OPERAND_FIELDS("c", C),
    OPERAND_FIELDS("d", D),
    OPERAND_FIELDS("bias", BIAS),
    OPERAND_FIELDS("gate", GATE),
    FIELD("op_a", op_a),
    FIELD("op_b", op_b),
    FIELD("layout", layout),
    FIELD("acc", accumulate),
    FIELD("batch", batch),
    FIELD("k", k),
    FIELD("n", n),
    FIELD("m", m),
#undef OPERAND_FIELDS
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

int case_integers(void)
{
    return FIELDS;
}

int64_t *case_integer(case_t *c, int which)
{
    return (int64_t *)((char *)c + fields[which].offset);
}

const char *case_kernel(const case_t *c)
{
    hgemm_kernel_info_t info;
    return hgemm_get_kernel_info((int)c->kernel, &info) == HGEMM_STATUS_SUCCESS ? info.name : "auto";
}

void case_write(const case_t *c, char line[CASE_LINE])
{
    const case_t zero = {.batch = 1};
    case_t copy = *c, plain = zero;
    int length = snprintf(line, CASE_LINE, "test_gemm --one kernel=%s", case_kernel(c));
    for (int i = 0; i < FIELDS; i++)
        if (*case_integer(&copy, i) != *case_integer(&plain, i))
            length += snprintf(line + length, CASE_LINE - (size_t)length, " %s=%" PRId64, fields[i].key,
                               *case_integer(&copy, i));
    snprintf(line + length, CASE_LINE - (size_t)length, " alpha=%.9g beta=%.9g seed=%" PRIu64, c->alpha, c->beta,
             c->seed);
}

static int read_integer(case_t *c, const char *word, size_t length, const char *value)
{
    for (int i = 0; i < FIELDS; i++)
        if (strlen(fields[i].key) == length && strncmp(fields[i].key, word, length) == 0) {
            *case_integer(c, i) = strtoll(value, NULL, 10);
            return 1;
        }
    return 0;
}

int case_read(case_t *c, int count, char **words)
{
    *c = (case_t){.batch = 1, .alpha = 1};
    for (int w = 0; w < count; w++) {
        char *value = strchr(words[w], '=');
        if (!value++)
            return 0;
        if (strncmp(words[w], "kernel=", 7) == 0) {
            c->kernel = hgemm_find_kernel(value);
            if (!c->kernel && strcmp(value, "auto") != 0)
                return 0;
        } else if (strncmp(words[w], "alpha=", 6) == 0) {
            c->alpha = strtod(value, NULL);
        } else if (strncmp(words[w], "beta=", 5) == 0) {
            c->beta = strtod(value, NULL);
        } else if (strncmp(words[w], "seed=", 5) == 0) {
            c->seed = strtoull(value, NULL, 10);
        } else if (!read_integer(c, words[w], (size_t)(value - 1 - words[w]), value)) {
            return 0;
        }
    }
    case_settle(c);
    return 1;
}

/* ---- What goes together ------------------------------------------------------------------------ */

void case_settle(case_t *c)
{
    if (c->in_place) {
        c->type[C] = c->type[D];
        if (c->gap[C] < 0)
            c->gap[C] = 0;
    }
    if (c->batch_mode != HGEMM_BATCH_POINTERS)
        c->alignment = 0;
    while (c->alignment & (c->alignment - 1)) /* a power of two */
        c->alignment &= c->alignment - 1;
    if (c->batch_mode != HGEMM_BATCH_GROUPED)
        c->unused = 0;
    if (c->unused > c->m)
        c->unused = c->m;
    if (!c->gather && !c->scatter)
        c->spare = 0;
    if (c->gap[D] < 0) /* matrices of D are the caller's to keep apart */
        c->gap[D] = 0;
    if (c->fill == SPREAD && !case_has_floats(c))
        c->fill = BOUNDED;
    if (!case_is_of_integers(c))
        c->exact = 0;
    if (case_is_indirect(c) || c->batch != 1 || c->layout != HGEMM_ROW_MAJOR)
        c->copies = 0;
    if (case_is_indirect(c) || c->batch != 1 || c->invariant)
        c->tail = 0;
}

int case_has_output(const case_t *c)
{
    return c->m != 0 && c->n != 0 && c->batch != 0;
}

int case_reads_factors(const case_t *c)
{
    return c->k > 0 && (c->alpha_device || c->alpha != 0);
}

int case_reads_c(const case_t *c)
{
    return c->beta_device || c->beta != 0;
}

int case_has_floats(const case_t *c)
{
    return c->type[A] == HGEMM_TYPE_F32 || c->type[B] == HGEMM_TYPE_F32;
}

int case_is_of_integers(const case_t *c)
{
    return c->fill == EXACT || c->fill == SPECIAL;
}

int case_has_listed_rows(const case_t *c)
{
    return c->batch_mode == HGEMM_BATCH_GROUPED || (c->gather && case_reads_factors(c)) || c->scatter;
}

int case_has_rows_that_stay(const case_t *c)
{
    return case_has_listed_rows(c) || (c->invariant && case_has_floats(c) && case_reads_factors(c));
}

int case_is_indirect(const case_t *c)
{
    return c->batch_mode != HGEMM_BATCH_STRIDED || (c->gather && case_reads_factors(c)) ||
           (case_has_rows_that_stay(c) && c->layout == HGEMM_COL_MAJOR);
}

int case_is_fused(const case_t *c)
{
    return c->bias || c->gate || c->activation || c->scatter || c->beta_device ||
           (c->alpha_device && case_reads_factors(c)) || c->type[D] || (case_reads_c(c) && c->type[C]) ||
           (c->index_64 && case_is_indirect(c) && c->batch_mode != HGEMM_BATCH_POINTERS) ||
           (c->index_64 && c->gather && case_reads_factors(c));
}
