/* SPDX-License-Identifier: MIT */
#include "gemm_operands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Given scales, of which all that matrices hold are exact halves: integers up to 16, and numbers from 2^-24 to 1. */
#define SCALE_A 0x1p7
#define SCALE_B 0x1p10

enum {
    GUARD = 128,          /* bytes on each side */
    NAN_PATTERN = 0x7fda, /* a NaN as a half, as a bfloat16 and, twice, as a float; twice, also an index far outside */
};

void *must(void *pointer)
{
    if (!pointer) {
        printf("FAILED: out of host memory\n");
        exit(1);
    }
    return pointer;
}

/* ---- Numbers ----------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double value_of(hgemm_type_t type, const void *from)
{
    uint16_t half;
    float single;
    if (type == HGEMM_TYPE_F32) {
        memcpy(&single, from, sizeof single);
        return (double)single;
    }
    memcpy(&half, from, sizeof half);
    return (double)(type == HGEMM_TYPE_F16 ? hgemm_half_to_float(half) : float_of_bits((uint32_t)half << 16));
}

void store_value(hgemm_type_t type, void *to, double value)
{
    float single = (float)value;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &single, sizeof bits);
    if (type == HGEMM_TYPE_F32) {
        memcpy(to, &single, sizeof single);
        return;
    }
    if (type == HGEMM_TYPE_F16)
        half = hgemm_half_from_float(single);
    else if (isnan(value))
        half = (uint16_t)(bits >> 16 | 0x40);
    else
        half = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    memcpy(to, &half, sizeof half);
}

/* ---- Layout ------------------------------------------------------------------------------------ */

static void make_buffer(buffer_t *b, size_t begin, size_t bytes, int is_tight)
{
    b->begin = GUARD + begin;
    b->bytes = b->begin + bytes + (is_tight ? 0 : GUARD);
    b->bytes += b->bytes & 1;
    b->before = must(malloc(b->bytes));
    b->after = must(malloc(b->bytes));
    for (size_t i = 0; i < b->bytes; i += 2)
        memcpy(b->before + i, &(uint16_t){NAN_PATTERN}, 2);
}

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

/* Lays matrices out. `along_rows`: neighbours in a row are contiguous. */
static void lay_out(operands_t *o, int which, int64_t batch, int64_t rows, int64_t columns, int along_rows)
{
    const case_t *c = o->c;
    matrix_t *x = &o->x[which];
    int64_t width = along_rows ? columns : rows, lines = along_rows ? rows : columns;
    int is_shared = c->gap[which] < 0 || batch <= 1;
    x->type = (hgemm_type_t)c->type[which];
    x->element = x->type == HGEMM_TYPE_F32 ? 4 : 2;
    x->rows = rows, x->columns = columns, x->width = width;
    x->ld = width + c->pad[which] > 1 ? width + c->pad[which] : 1;
    x->row_step = along_rows ? x->ld : 1;
    x->col_step = along_rows ? 1 : x->ld;
    int64_t extent = lines > 0 && width > 0 ? (lines - 1) * x->ld + width : 0, first = c->offset[which];
    x->stride = c->gap[which] < 0 ? 0 : extent + c->gap[which];
    if (c->alignment > x->element) {
        first = round_up(first, c->alignment / x->element);
        x->stride = round_up(x->stride, c->alignment / x->element);
    }
    x->batch = is_shared && batch > 0 ? 1 : batch;
    x->is_reversed = c->batch_mode == HGEMM_BATCH_POINTERS;
    extent += x->batch > 1 ? (x->batch - 1) * x->stride : 0;
    make_buffer(&o->buffers[which], (size_t)(first * x->element), (size_t)(extent * x->element),
                c->tight && which != D && !(which == C && c->in_place));
}

size_t operands_at(const operands_t *o, int which, int64_t matrix, int64_t i, int64_t j)
{
    const matrix_t *x = &o->x[which];
    int64_t slot = x->batch == 1 ? 0 : x->is_reversed ? x->batch - 1 - matrix : matrix;
    return o->buffers[which].begin + (size_t)((slot * x->stride + i * x->row_step + j * x->col_step) * x->element);
}

double operands_value(const operands_t *o, int which, int64_t matrix, int64_t i, int64_t j)
{
    return value_of(o->x[which].type, o->buffers[which].before + operands_at(o, which, matrix, i, j));
}

/* ---- Indices ----------------------------------------------------------------------------------- */

static void make_list(operands_t *o, int which, int64_t count, const int64_t *values, int64_t live)
{
    buffer_t *b = &o->buffers[which];
    size_t element = o->c->index_64 ? 8 : 4;
    make_buffer(b, 0, (size_t)count * element, (int)o->c->tight);
    for (int64_t i = 0; i < live; i++) {
        int32_t narrow = (int32_t)values[i];
        memcpy(b->before + b->begin + (size_t)i * element, element == 8 ? (const void *)&values[i] : &narrow, element);
    }
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Ends of groups that share `rows` rows; of four, one is empty, and more where rows are few. */
static int64_t *draw_ends(const case_t *c, rng_t *rng, int64_t rows)
{
    int64_t *ends = must(malloc(((size_t)c->batch + 1) * sizeof *ends));
    for (int64_t g = 0; g < c->batch; g++)
        ends[g] = g > 0 && rng_between(rng, 0, 3) == 0 ? ends[g - 1] : rng_between(rng, 0, rows);
    if (c->batch > 0)
        ends[c->batch - 1] = rows;
    qsort(ends, (size_t)c->batch, sizeof *ends, compare);
    return ends;
}

/* `count` rows of `of`: each at most once if they are `distinct`. */
static int64_t *draw_rows(rng_t *rng, int64_t count, int64_t of, int distinct)
{
    int64_t *rows = must(malloc(((size_t)of + 1) * sizeof *rows));
    for (int64_t i = 0; i < of; i++)
        rows[i] = i;
    for (int64_t i = 0; i < count; i++) {
        int64_t other = rng_between(rng, i, of - 1), held = rows[i];
        rows[i] = distinct ? rows[other] : rng_between(rng, 0, of - 1);
        if (distinct)
            rows[other] = held;
    }
    return rows;
}

/* Lists the rows of the product, and makes the indices that lead to them. Rows past the last group have none. */
static void make_rows(operands_t *o, rng_t *rng)
{
    const case_t *c = o->c;
    const int is_grouped = c->batch_mode == HGEMM_BATCH_GROUPED;
    const int64_t live = is_grouped ? c->m - c->unused : c->m, matrices = is_grouped ? 1 : c->batch;
    int64_t *gather = c->gather ? draw_rows(rng, live, c->m + c->spare, 0) : NULL;
    int64_t *scatter = c->scatter ? draw_rows(rng, live, c->m + c->spare, 1) : NULL;
    int64_t *ends = is_grouped ? draw_ends(c, rng, live) : NULL, group = 0;
    o->row_count = c->batch == 0 ? 0 : live * matrices;
    o->rows = must(malloc(((size_t)o->row_count + 1) * sizeof *o->rows));
    for (int64_t r = 0; r < o->row_count; r++) {
        int64_t i = r % live, matrix = r / live;
        while (is_grouped && i >= ends[group])
            group++;
        o->rows[r] = (product_row_t){.shared = matrix,
                                     .own = is_grouped ? group : matrix,
                                     .a = gather ? gather[i] : i,
                                     .d = scatter ? scatter[i] : i};
    }
    if (gather)
        make_list(o, GATHER_A, c->m, gather, live);
    if (scatter)
        make_list(o, SCATTER_D, c->m, scatter, live);
    if (is_grouped)
        make_list(o, GROUP_ENDS, c->batch, ends, c->batch);
    free(gather);
    free(scatter);
    free(ends);
}

/* ---- Contents ---------------------------------------------------------------------------------- */

/*
 * Integers for the exact fill, in [-range, range]. A product of two has standard deviation
 * range (range + 1) / 3, a sum of k of them sqrt(k) times that; eight deviations must stay within
 * the accumulator's exact integers: up to 2^11 in a half. In a float they reach 2^24; 16 is enough
 * to leave a half's far behind.
 */
static int64_t exact_range(const case_t *c)
{
    if (c->accumulate == HGEMM_ACCUMULATE_F32)
        return 16;
    int64_t range = 1;
    while (range < 8 && 8 * sqrt((double)c->k) * (double)((range + 1) * (range + 2)) / 3 <= 2048)
        range++;
    return range;
}

static double draw(rng_t *rng, int64_t fill, int64_t range)
{
    if (fill == SPECIAL && rng_between(rng, 0, 99) == 0) {
        const double specials[] = {INFINITY, -INFINITY, NAN, -0.0};
        return specials[rng_between(rng, 0, 3)];
    }
    return fill == BOUNDED || fill == SPREAD ? rng_symmetric(rng) : (double)rng_between(rng, -range, range);
}

static void fill_row(operands_t *o, int which, int64_t matrix, int64_t i, int64_t columns, rng_t *rng, int64_t range)
{
    const int is_spread = o->c->fill == SPREAD && which <= B && o->x[which].type != HGEMM_TYPE_F16;
    for (int64_t j = 0; j < columns; j++)
        store_value(o->x[which].type, o->buffers[which].before + operands_at(o, which, matrix, i, j),
                    ldexp(draw(rng, o->c->fill, range), is_spread ? (int)rng_between(rng, -40, 40) : 0) +
                        (which == BIAS ? 0 : -0.0)); /* no bias is -0 */
}

/* All that is read, row by row of the product, so that what no row needs stays NaN. */
static void fill(operands_t *o, rng_t *rng)
{
    const case_t *c = o->c;
    const int64_t range = exact_range(c);
    if (!case_has_output(c))
        return;
    if (case_reads_factors(c))
        for (int64_t matrix = 0; matrix < o->x[B].batch; matrix++)
            for (int64_t i = 0; i < c->k; i++)
                fill_row(o, B, matrix, i, c->n, rng, range);
    for (int64_t matrix = 0; c->bias == BIAS_PER_COLUMN && matrix < o->x[BIAS].batch; matrix++)
        fill_row(o, BIAS, matrix, 0, c->n, rng, 8);
    for (int64_t r = 0; r < o->row_count; r++) {
        const product_row_t *row = &o->rows[r];
        if (case_reads_factors(c))
            fill_row(o, A, row->shared, row->a, c->k, rng, range);
        if (case_reads_c(c) && c->beta != 0)
            fill_row(o, C, row->shared, row->d, c->n, rng, 8);
        if (c->gate)
            fill_row(o, GATE, row->shared, row->d, c->n, rng, 2);
        if (c->bias == BIAS_PER_ROW)
            fill_row(o, BIAS, row->own, row->d, 1, rng, 8);
    }
}

/* What a buffer held before it was drawn anew. */
static void restore(operands_t *o, unsigned char *const held[], int which, int64_t matrix, int64_t i, int64_t j)
{
    const size_t at = operands_at(o, which, matrix, i, j);
    memcpy(o->buffers[which].before + at, held[which] + at, (size_t)o->x[which].element);
}

void operands_redraw_others(operands_t *o, const staying_t *s, rng_t *rng)
{
    const case_t *c = o->c;
    unsigned char *held[OPERANDS] = {NULL};
    for (int which = A; which < OPERANDS; which++) {
        buffer_t *b = &o->buffers[which];
        if (!b->before || which == D)
            continue;
        held[which] = must(malloc(b->bytes));
        memcpy(held[which], b->before, b->bytes);
        for (size_t i = 0; i < b->bytes; i += 2)
            memcpy(b->before + i, &(uint16_t){(uint16_t)rng_next(rng)}, 2);
    }
    for (int64_t j = 0; j < c->n; j++) {
        for (int64_t matrix = 0; matrix < o->x[B].batch && (s->columns[j] || s->all_of_b); matrix++)
            for (int64_t i = 0; i < c->k; i++)
                restore(o, held, B, matrix, i, j);
        for (int64_t matrix = 0; c->bias == BIAS_PER_COLUMN && matrix < o->x[BIAS].batch && s->columns[j]; matrix++)
            restore(o, held, BIAS, matrix, 0, j);
    }
    for (int64_t r = 0; r < o->row_count; r++) {
        const product_row_t *row = &o->rows[r];
        for (int64_t p = 0; p < c->k && (s->rows[r] || s->all_of_a); p++)
            restore(o, held, A, row->shared, row->a, p);
        if (c->bias == BIAS_PER_ROW && s->rows[r])
            restore(o, held, BIAS, row->own, row->d, 0);
        for (int64_t j = 0; j < c->n; j++)
            for (int which = C; which <= GATE && s->rows[r] && s->columns[j]; which += GATE - C)
                if (held[which])
                    restore(o, held, which, row->shared, row->d, j);
    }
    for (int which = A; which < OPERANDS; which++)
        free(held[which]);
}

/* ---- The call ---------------------------------------------------------------------------------- */

static void *content(const buffer_t *b)
{
    return b->device ? (char *)b->device + b->begin : NULL;
}

/* The pointers to the matrices of an operand, once these have an address. */
static void make_pointers(operands_t *o, int which, hgemm_handle_t handle)
{
    buffer_t *b = &o->buffers[POINTERS + which];
    make_buffer(b, 0, (size_t)o->c->batch * 8, (int)o->c->tight);
    for (int64_t i = 0; i < o->c->batch; i++) {
        uint64_t address = (uint64_t)(uintptr_t)o->buffers[which].device + operands_at(o, which, i, 0, 0);
        memcpy(b->before + b->begin + (size_t)i * 8, &address, 8);
    }
    expect_status(handle, hgemm_malloc(handle, &b->device, b->bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
}

/* Where an operand is said to be, with its leading dimension and stride; `accessed`: the call reads or writes it. */
static void describe(const operands_t *o, int which, int accessed, const void **data, int64_t *ld, int64_t *stride)
{
    const case_t *c = o->c;
    const int is_own = which == B || which == BIAS;
    if (!accessed && c->null)
        return;
    int from = which == D && c->in_place ? C : which;
    *data = content(&o->buffers[c->batch_mode == HGEMM_BATCH_POINTERS ? POINTERS + from : from]);
    if (ld)
        *ld = o->x[from].ld;
    *stride = o->x[from].stride;
    if (c->batch_mode == HGEMM_BATCH_POINTERS || (c->batch_mode == HGEMM_BATCH_GROUPED && !is_own))
        *stride = -3; /* not looked at */
}

static void make_desc(operands_t *o)
{
    const case_t *c = o->c;
    hgemm_desc_t *d = &o->desc;
    const int output = case_has_output(c), factors = output && case_reads_factors(c);
    const void *data_of_d = NULL;
    hgemm_desc_init(d);
    d->layout = (hgemm_layout_t)c->layout;
    d->op_a = (hgemm_op_t)c->op_a, d->op_b = (hgemm_op_t)c->op_b;
    d->accumulate = (hgemm_accumulate_t)c->accumulate;
    d->kernel = (int)c->kernel;
    d->m = c->m, d->n = c->n, d->k = c->k, d->batch = c->batch;
    d->alpha = c->alpha_device ? NAN : (float)c->alpha, d->beta = c->beta_device ? NAN : (float)c->beta;
    describe(o, A, factors, &d->a, &d->lda, &d->stride_a);
    describe(o, B, factors, &d->b, &d->ldb, &d->stride_b);
    describe(o, C, output && case_reads_c(c), &d->c, &d->ldc, &d->stride_c);
    describe(o, D, output, &data_of_d, &d->ldd, &d->stride_d);
    d->d = (void *)(uintptr_t)data_of_d;
    d->type_a = (hgemm_type_t)c->type[A], d->type_b = (hgemm_type_t)c->type[B];
    d->type_c = (hgemm_type_t)c->type[C], d->type_d = (hgemm_type_t)c->type[D];
    d->activation = (hgemm_activation_t)c->activation;
    d->flags = (c->invariant ? HGEMM_FLAG_BATCH_INVARIANT : 0) | (c->exact & 1 ? HGEMM_FLAG_HALVES_IN_A : 0) |
               (c->exact & 2 ? HGEMM_FLAG_HALVES_IN_B : 0);
    d->accuracy = (hgemm_accuracy_t)c->accuracy;
    if (c->bias)
        describe(o, BIAS, 1, &d->bias, NULL, &d->stride_bias);
    d->bias_mode = c->bias == BIAS_PER_ROW ? HGEMM_BIAS_PER_ROW : HGEMM_BIAS_PER_COLUMN;
    d->type_bias = (hgemm_type_t)c->type[BIAS];
    if (c->gate)
        describe(o, GATE, 1, &d->gate, &d->ldgate, &d->stride_gate);
    d->type_gate = (hgemm_type_t)c->type[GATE];
    const float *scalars = content(&o->buffers[SCALARS]); /* alpha, beta, the scales of A and B */
    d->alpha_pointer = c->alpha_device ? scalars : NULL;
    d->beta_pointer = c->beta_device ? scalars + 1 : NULL;
    d->scale_a = c->scaled == 1 ? (float)SCALE_A : 0, d->scale_b = c->scaled == 1 ? (float)SCALE_B : 0;
    d->scale_a_pointer = c->scaled == 2 ? scalars + 2 : NULL, d->scale_b_pointer = c->scaled == 2 ? scalars + 3 : NULL;
    d->batch_mode = (hgemm_batch_mode_t)c->batch_mode;
    d->alignment = (int)c->alignment;
    d->group_ends = content(&o->buffers[GROUP_ENDS]);
    d->gather_a = content(&o->buffers[GATHER_A]);
    d->scatter_d = content(&o->buffers[SCATTER_D]);
    d->index_type = c->index_64 ? HGEMM_INDEX_I64 : HGEMM_INDEX_I32;
}

void operands_create(operands_t *o, const case_t *c, hgemm_handle_t handle)
{
    *o = (operands_t){.c = c};
    rng_t rng = {c->seed};
    const int row_major = c->layout == HGEMM_ROW_MAJOR;
    const int64_t shared = c->batch_mode == HGEMM_BATCH_GROUPED && c->batch > 0 ? 1 : c->batch;
    const int64_t rows_a = c->m + (c->gather ? c->spare : 0), rows_d = c->m + (c->scatter ? c->spare : 0);
    lay_out(o, A, shared, rows_a, c->k, row_major == (c->op_a == HGEMM_OP_N));
    lay_out(o, B, c->batch, c->k, c->n, row_major == (c->op_b == HGEMM_OP_N));
    lay_out(o, C, shared, rows_d, c->n, row_major);
    if (!c->in_place)
        lay_out(o, D, shared, rows_d, c->n, row_major);
    if (c->bias)
        lay_out(o, BIAS, c->batch, c->bias == BIAS_PER_ROW ? rows_d : 1, c->bias == BIAS_PER_ROW ? 1 : c->n,
                c->bias == BIAS_PER_COLUMN);
    if (c->gate)
        lay_out(o, GATE, shared, rows_d, c->n, row_major);
    if (c->alpha_device || c->beta_device || c->scaled == 2) {
        buffer_t *b = &o->buffers[SCALARS];
        make_buffer(b, 0, 4 * sizeof(float), (int)c->tight);
        if (c->alpha_device)
            store_value(HGEMM_TYPE_F32, b->before + b->begin, c->alpha);
        if (c->beta_device)
            store_value(HGEMM_TYPE_F32, b->before + b->begin + sizeof(float), c->beta);
        if (c->scaled == 2) {
            store_value(HGEMM_TYPE_F32, b->before + b->begin + 2 * sizeof(float), SCALE_A);
            store_value(HGEMM_TYPE_F32, b->before + b->begin + 3 * sizeof(float), SCALE_B);
        }
    }
    make_rows(o, &rng);
    fill(o, &rng);
    for (int i = 0; i < POINTERS; i++)
        if (o->buffers[i].before)
            expect_status(handle, hgemm_malloc(handle, &o->buffers[i].device, o->buffers[i].bytes),
                          HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    for (int which = A; which < OPERANDS && c->batch_mode == HGEMM_BATCH_POINTERS; which++)
        if (o->buffers[which].before)
            make_pointers(o, which, handle);
    if (c->in_place)
        o->x[D] = o->x[C];
    make_desc(o);
}

void operands_destroy(operands_t *o, hgemm_handle_t handle)
{
    for (int i = 0; i < BUFFERS; i++) {
        if (o->buffers[i].device)
            expect_status(handle, hgemm_free(handle, o->buffers[i].device), HGEMM_STATUS_SUCCESS, "hgemm_free");
        free(o->buffers[i].before);
        free(o->buffers[i].after);
    }
    free(o->rows);
}

void operands_upload(operands_t *o, hgemm_handle_t handle)
{
    for (buffer_t *b = o->buffers; b < o->buffers + BUFFERS; b++)
        if (b->device)
            expect_status(handle, hgemm_upload(handle, b->device, b->before, b->bytes), HGEMM_STATUS_SUCCESS,
                          "hgemm_upload");
}

void operands_download(operands_t *o, hgemm_handle_t handle)
{
    for (buffer_t *b = o->buffers; b < o->buffers + BUFFERS; b++)
        if (b->device)
            expect_status(handle, hgemm_download(handle, b->after, b->device, b->bytes), HGEMM_STATUS_SUCCESS,
                          "hgemm_download");
}

buffer_t *operands_of_d(operands_t *o)
{
    return &o->buffers[o->c->in_place ? C : D];
}

const char *operands_damage(const operands_t *o, int may_write, char words[200])
{
    static const char *const names[BUFFERS] = {"A",
                                               "B",
                                               "C",
                                               "D",
                                               "bias",
                                               "gate",
                                               "the scalars",
                                               "group_ends",
                                               "gather_a",
                                               "scatter_d",
                                               "a's pointers",
                                               "b's pointers",
                                               "c's pointers",
                                               "d's pointers",
                                               "bias's pointers",
                                               "gate's pointers"};
    const int written = o->c->in_place ? C : D;
    for (int i = 0; i < BUFFERS; i++) {
        const buffer_t *b = &o->buffers[i];
        if (!b->device || memcmp(b->before, b->after, b->bytes) == 0)
            continue;
        unsigned char *expected = must(malloc(b->bytes));
        memcpy(expected, b->before, b->bytes);
        for (int64_t r = 0; i == written && may_write && r < o->row_count; r++)
            for (int64_t j = 0; j < o->c->n; j++) {
                size_t at = operands_at(o, i, o->rows[r].shared, o->rows[r].d, j);
                memcpy(expected + at, b->after + at, (size_t)o->x[i].element);
            }
        size_t at = 0;
        while (at < b->bytes && b->after[at] == expected[at])
            at++;
        free(expected);
        if (at == b->bytes)
            continue;
        snprintf(words, 200, "%s was written where it must not be, %td bytes from its first element: %02x was %02x",
                 names[i], (ptrdiff_t)at - (ptrdiff_t)b->begin, (unsigned)b->after[at], (unsigned)b->before[at]);
        return words;
    }
    return NULL;
}
