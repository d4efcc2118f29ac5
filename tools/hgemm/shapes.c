/* SPDX-License-Identifier: MIT */
#include "shapes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/names.h"
#include "problem/problem.h"
#include "problem/weights.h"
#include "select/parse.h"
#include "shape_row.h"
#include "table/kernels.h"
#include "tool.h"

enum { MOST_LINE = 1024, OP_NN = 0, OP_NT = 1 /* 2 * op_a + op_b */ };

/* ---- Options --------------------------------------------------------------------------------------- */

void shapes_take_layout(shapes_options_t *options, const char *text)
{
    const int layout = name_value(layout_names, text);
    if (layout < 0)
        tool_refuse("--layout is row or col, not %s", text);
    options->layout = (hgemm_layout_t)layout;
}

/* The bits of the words in a list that commas separate. */
static unsigned bits_of(const char *option, const char *list, const char *const words[], int count)
{
    unsigned bits = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        int found = -1;
        for (int i = 0; i < count; i++)
            if (strlen(words[i]) == length && strncmp(words[i], at, length) == 0)
                found = i;
        if (found < 0)
            tool_refuse("%s does not take %s", option, list);
        bits |= 1u << found;
        at += length;
        if (!*at)
            return bits;
    }
}

void shapes_take_accumulate(shapes_options_t *options, const char *list)
{
    options->accumulate = bits_of("--accumulate", list, accumulate_names, name_count(accumulate_names));
}

void shapes_take_trans(shapes_options_t *options, const char *list)
{
    options->ops = bits_of("--trans", list, transpose_names, VARIANT_OPS);
}

void shapes_take_batch(shapes_options_t *options, const char *text)
{
    options->batch = (int64_t)tool_number("--batch", text, 1, INT32_MAX);
}

void shapes_take_weights(shapes_options_t *options, const char *text)
{
    const char *fault = weights_from_text(text, &options->weights);
    if (fault)
        tool_refuse("--weights does not take %s: %s", text, fault);
}

/* ---- Problems -------------------------------------------------------------------------------------- */

void shapes_add(shapes_t *shapes, const problem_class_t *problem)
{
    for (int i = 0; i < shapes->count; i++)
        if (class_compare(&shapes->of[i], problem) == 0)
            return;
    problem_class_t *of = realloc(shapes->of, (size_t)(shapes->count + 1) * sizeof *of);
    if (!of)
        tool_fail("there is no memory left");
    shapes->of = of;
    shapes->of[shapes->count++] = *problem;
}

/* Adds a product by packed weights, of contiguous operands. */
static void add_packed(shapes_t *shapes, const shapes_options_t *options, int64_t m, int64_t n, int64_t k,
                       int64_t batch)
{
    hgemm_desc_t desc;
    hgemm_weights_t weights = options->weights;
    packed_form_t form;
    char words[DEVICE_DETAIL];
    weights.n = n, weights.k = k;
    if (take_weights(&weights, &form, words) != HGEMM_STATUS_SUCCESS)
        tool_refuse("%" PRId64 "x%" PRId64 "x%" PRId64 ": %s", m, n, k, words);
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.m = m, desc.n = n, desc.k = k, desc.batch = batch;
    desc.lda = k, desc.ldc = desc.ldd = n;
    desc.stride_a = m * k, desc.stride_b = form.bytes, desc.stride_c = desc.stride_d = m * n;
    desc.weights = &weights;
    const problem_t row_major = normalise(&desc);
    problem_class_t problem = class_of(&row_major);
    shapes_add(shapes, &problem);
}

/* Adds products of contiguous, aligned operands, one for each accumulator. */
static void add_plain(shapes_t *shapes, const shapes_options_t *options, int64_t m, int64_t n, int64_t k, int op,
                      int64_t batch)
{
    const int is_row_major = options->layout == HGEMM_ROW_MAJOR;
    if (options->weights.size) {
        if (!is_row_major || (options->accumulate & ~(1u << HGEMM_ACCUMULATE_F32)) || op != OP_NT)
            tool_refuse(
                "packed weights are multiplied as f32 nt in row layout, which --layout, --accumulate, --trans or "
                "a file's columns contradict");
        add_packed(shapes, options, m, n, k, batch);
        return;
    }
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        hgemm_desc_t desc;
        if (!((options->accumulate ? options->accumulate : 1u) >> accumulate & 1u))
            continue;
        hgemm_desc_init(&desc);
        desc.layout = options->layout;
        desc.accumulate = (hgemm_accumulate_t)accumulate;
        desc.op_a = (hgemm_op_t)(op >> 1), desc.op_b = (hgemm_op_t)(op & 1);
        desc.m = m, desc.n = n, desc.k = k, desc.batch = batch;
        desc.lda = (desc.op_a == HGEMM_OP_N) == is_row_major ? k : m;
        desc.ldb = (desc.op_b == HGEMM_OP_N) == is_row_major ? n : k;
        desc.ldc = desc.ldd = is_row_major ? n : m;
        desc.stride_a = m * k, desc.stride_b = k * n, desc.stride_c = desc.stride_d = m * n;
        const problem_t row_major = normalise(&desc);
        problem_class_t problem = class_of(&row_major);
        shapes_add(shapes, &problem);
    }
}

/* Of shapes and rows that do not say. */
static int default_op(const shapes_options_t *options)
{
    return options->weights.size ? OP_NT : OP_NN;
}

void shapes_add_argument(shapes_t *shapes, const shapes_options_t *options, const char *text)
{
    int64_t m, n, k;
    problem_class_t problem;
    const char *at = text;
    if (strchr(text, ' ')) {
        const char *fault = class_from_text(text, &problem);
        if (fault)
            tool_refuse("%s: %s", text, fault);
        shapes_add(shapes, &problem);
        return;
    }
    if (take_number(&at, INT32_MAX, &m))
        n = k = m;
    else if (!take_number_until(&at, 'x', INT32_MAX, &m) || !take_number_until(&at, 'x', INT32_MAX, &n) ||
             !take_number(&at, INT32_MAX, &k))
        tool_refuse("not a shape: %s", text);
    if (m < 1 || n < 1 || k < 1)
        tool_refuse("a side is 0: %s", text);
    for (int op = 0; op < 4; op++)
        if ((options->ops ? options->ops : 1u << default_op(options)) >> op & 1u)
            add_plain(shapes, options, m, n, k, op, options->batch ? options->batch : 1);
}

/* ---- Files ----------------------------------------------------------------------------------------- */

void shapes_add_file(shapes_t *shapes, const shapes_options_t *options, const char *path)
{
    char line[MOST_LINE];
    int columns[SHAPE_COLUMNS], count = 0;
    problem_class_t problem;
    int is_told = 0; /* the line before told all of the row that comes */
    FILE *file = fopen(path, "r");
    if (!file)
        tool_refuse("cannot read %s: %s", path, strerror(errno));
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        int64_t value[SHAPE_COLUMNS] = {
            [SHAPE_TRANS_B] = default_op(options) == OP_NT, [SHAPE_BATCH] = options->batch ? options->batch : 1};
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#')
            is_told = strlen(line) > 2 && !class_from_text(line + 2, &problem);
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (count == 0) {
            count = shape_row_header(line, columns);
            if (count == 0)
                tool_refuse("%s: the first line must name the columns m, n, k and may name trans_a, trans_b, batch",
                            path);
            continue;
        }
        if (!shape_row_values(line, columns, count, value))
            tool_refuse("%s: line %d is not a shape: %s", path, number, line);
        if (is_told)
            shapes_add(shapes, &problem);
        else
            add_plain(shapes, options, value[SHAPE_M], value[SHAPE_N], value[SHAPE_K],
                      2 * (value[SHAPE_TRANS_A] != 0) + (value[SHAPE_TRANS_B] != 0), value[SHAPE_BATCH]);
        is_told = 0;
    }
    if (ferror(file) || count == 0)
        tool_refuse("cannot read %s", path);
    fclose(file);
}
