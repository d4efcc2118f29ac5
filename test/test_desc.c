/* SPDX-License-Identifier: MIT */
/*
 * Random calls with everything that a descriptor can say, on a device: types, bias, activation, gate, scalars in device
 * memory, batches of all modes, indices, either layout, any transpose and alignment. All numbers are small integers, so
 * that D is exact; what lies between and behind its elements must stay.
 */
#include "util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 77, MOST_BATCH = 4, MOST_ROWS = 128, SPARE = 16 };

static hgemm_handle_t handle;
static rng_t rng;

static int between(int lowest, int highest)
{
    return (int)rng_between(&rng, lowest, highest);
}

static int one_in(int count)
{
    return between(1, count) == 1;
}

static void must(hgemm_status_t status, const char *what)
{
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, what);
}

/* ---- Operands ---------------------------------------------------------------------------------- */

/* Numbers on the host, and in device memory as the type says. */
typedef struct operand_t {
    hgemm_type_t type;
    int64_t count, stride; /* of elements; from one matrix to the next */
    float *values;
    void *device;
} operand_t;

static size_t bytes_of(const operand_t *x)
{
    return (size_t)x->count * (x->type == HGEMM_TYPE_F32 ? 4 : 2);
}

static void *upload(const void *host, size_t bytes)
{
    void *device;
    must(hgemm_malloc(handle, &device, bytes), "hgemm_malloc");
    must(hgemm_upload(handle, device, host, bytes), "hgemm_upload");
    return device;
}

/* `matrices` of `stride` elements, and some spare ones, between lowest and highest. */
static operand_t make(hgemm_type_t type, int64_t matrices, int64_t stride, int lowest, int highest)
{
    operand_t x = {.type = type, .count = matrices * stride + SPARE, .stride = stride};
    x.values = malloc((size_t)x.count * sizeof *x.values);
    uint16_t *halves = malloc((size_t)x.count * sizeof *halves);
    for (int64_t i = 0; i < x.count; i++) {
        x.values[i] = (float)between(lowest, highest);
        halves[i] = hgemm_half_from_float(x.values[i]);
    }
    x.device = upload(type == HGEMM_TYPE_F32 ? (void *)x.values : (void *)halves, bytes_of(&x));
    free(halves);
    return x;
}

static void discard(operand_t *x)
{
    free(x->values);
    must(hgemm_free(handle, x->device), "hgemm_free");
}

/* ---- A call ------------------------------------------------------------------------------------ */

typedef struct call_t {
    hgemm_desc_t desc;
    operand_t a, b, c, d, bias, gate;
    int offset_a, offset_b;       /* elements by which they are not aligned */
    int64_t gathered[MOST_ROWS];  /* the stored row of each row of op(A) */
    int64_t scattered[MOST_ROWS]; /* the row of D of each row of the product */
    int64_t ends[MOST_BATCH];     /* of groups */
    float scalars[2];             /* alpha, beta */
    void *temporary[12];          /* device memory: pointers, indices, scalars */
    int temporaries;
} call_t;

static void *keep(call_t *call, void *device)
{
    call->temporary[call->temporaries++] = device;
    return device;
}

static void *keep_indices(call_t *call, const int64_t *indices, int count)
{
    int32_t narrow[MOST_ROWS];
    for (int i = 0; i < count; i++)
        narrow[i] = (int32_t)indices[i];
    return keep(call, call->desc.index_type == HGEMM_INDEX_I64 ? upload(indices, (size_t)count * sizeof *indices)
                                                               : upload(narrow, (size_t)count * sizeof *narrow));
}

/* The operand as the descriptor wants it: its memory, or pointers to its matrices. */
static void *keep_matrices(call_t *call, const operand_t *x, int64_t stride, int offset)
{
    const size_t element = x->type == HGEMM_TYPE_F32 ? 4 : 2;
    char *pointers[MOST_BATCH];
    for (int y = 0; y < MOST_BATCH; y++)
        pointers[y] = (char *)x->device + element * (size_t)(y * stride + offset);
    return call->desc.batch_mode == HGEMM_BATCH_POINTERS
               ? keep(call, upload(pointers, (size_t)call->desc.batch * sizeof *pointers))
               : pointers[0];
}

static void draw_shape(hgemm_desc_t *desc)
{
    desc->accumulate = (hgemm_accumulate_t)between(0, 1);
    desc->batch_mode = (hgemm_batch_mode_t)between(0, 2);
    desc->layout = desc->batch_mode == HGEMM_BATCH_GROUPED ? HGEMM_ROW_MAJOR : (hgemm_layout_t)between(0, 1);
    desc->op_a = (hgemm_op_t)between(0, 1), desc->op_b = (hgemm_op_t)between(0, 1);
    desc->m = between(1, 90), desc->n = between(1, 70), desc->k = one_in(6) ? 0 : between(1, 40);
    desc->batch = between(1, MOST_BATCH);
    desc->type_c = (hgemm_type_t)between(0, 1), desc->type_d = (hgemm_type_t)between(0, 1);
    desc->type_bias = (hgemm_type_t)between(0, 1), desc->type_gate = (hgemm_type_t)between(0, 1);
    desc->activation = one_in(2) ? HGEMM_ACTIVATION_RELU : HGEMM_ACTIVATION_NONE; /* others are not exact */
    desc->bias_mode = (hgemm_bias_t)between(0, 1);
    desc->index_type = (hgemm_index_t)between(0, 1);
    desc->flags = one_in(4) ? HGEMM_FLAG_BATCH_INVARIANT : 0;
    desc->alpha = (float)between(-1, 1), desc->beta = (float)between(-1, 1);
}

/* A leading dimension for rows of `width`: a multiple of `unit`. */
static int64_t draw_ld(int64_t width, int unit)
{
    return (width + between(0, 9) + unit) / unit * unit;
}

/* A permutation's first `count` of `rows` rows. */
static void draw_rows(int64_t *rows_of, int count, int rows)
{
    int64_t all[MOST_ROWS];
    for (int i = 0; i < rows; i++)
        all[i] = i;
    for (int i = 0; i < count; i++) {
        int other = between(i, rows - 1);
        rows_of[i] = all[other];
        all[other] = all[i];
    }
}

static void draw(call_t *call)
{
    hgemm_desc_t *desc = &call->desc;
    memset(call, 0, sizeof *call);
    hgemm_desc_init(desc);
    draw_shape(desc);
    const int row_major = desc->layout == HGEMM_ROW_MAJOR, is_grouped = desc->batch_mode == HGEMM_BATCH_GROUPED;
    const int gathers = row_major && one_in(3), scatters = row_major && one_in(3), unit = one_in(2) ? 8 : 1;
    const int m = (int)desc->m, n = (int)desc->n, k = (int)desc->k;
    const int stored_m = gathers ? m + between(0, 20) : m, rows = scatters ? m + between(0, 20) : m;
    const int a_is_t = (desc->op_a == HGEMM_OP_T) == row_major, b_is_t = (desc->op_b == HGEMM_OP_T) == row_major;
    const int64_t a_lines = a_is_t ? k : stored_m, a_width = a_is_t ? stored_m : k;
    const int64_t b_lines = b_is_t ? n : k, b_width = b_is_t ? k : n;
    const int64_t lines = row_major ? rows : n, width = row_major ? n : rows;
    const int64_t matrices = is_grouped ? 1 : desc->batch, bias = desc->bias_mode == HGEMM_BIAS_PER_ROW ? rows : n;

    desc->lda = draw_ld(a_width, unit), desc->ldb = draw_ld(b_width, unit);
    desc->ldc = draw_ld(width, unit), desc->ldd = draw_ld(width, unit), desc->ldgate = draw_ld(width, unit);
    call->offset_a = unit == 8 ? 0 : between(0, 3), call->offset_b = unit == 8 ? 0 : between(0, 3);
    call->a = make(HGEMM_TYPE_F16, matrices, a_lines * desc->lda + SPARE / 2 * unit, -2, 2);
    call->b = make(HGEMM_TYPE_F16, desc->batch, b_lines * desc->ldb + SPARE / 2 * unit, -2, 2);
    call->c = make(desc->type_c, matrices, lines * desc->ldc, -9, 9);
    call->d = make(desc->type_d, matrices, lines * desc->ldd, KEPT, KEPT);
    call->gate = make(desc->type_gate, matrices, lines * desc->ldgate, -2, 2);
    call->bias = make(desc->type_bias, desc->batch, bias, -5, 5);
    desc->stride_a = call->a.stride, desc->stride_b = one_in(4) ? 0 : call->b.stride;
    desc->stride_c = call->c.stride, desc->stride_d = call->d.stride, desc->stride_gate = call->gate.stride;
    desc->stride_bias = one_in(3) ? 0 : bias;

    for (int i = 0; i < m; i++)
        call->gathered[i] = gathers ? between(0, stored_m - 1) : i, call->scattered[i] = i;
    if (scatters)
        draw_rows(call->scattered, m, rows);
    for (int g = 0, end = 0; g < desc->batch; g++)
        call->ends[g] = end = between(end, m);
    call->scalars[0] = one_in(3) ? (float)between(-1, 1) : desc->alpha;
    call->scalars[1] = one_in(3) ? (float)between(-1, 1) : desc->beta;
    float *scalars = keep(call, upload(call->scalars, sizeof call->scalars));
    desc->alpha_pointer = call->scalars[0] != desc->alpha || one_in(4) ? scalars : NULL;
    desc->beta_pointer = call->scalars[1] != desc->beta || one_in(4) ? scalars + 1 : NULL;

    const int reads_ab = k && (desc->alpha != 0 || desc->alpha_pointer),
              reads_c = desc->beta != 0 || desc->beta_pointer;
    desc->alignment = unit == 8 && one_in(2) ? 16 : 0;
    desc->a = reads_ab ? keep_matrices(call, &call->a, desc->stride_a, call->offset_a) : NULL;
    desc->b = reads_ab ? keep_matrices(call, &call->b, desc->stride_b, call->offset_b) : NULL;
    desc->c = reads_c ? keep_matrices(call, &call->c, desc->stride_c, 0) : NULL;
    desc->d = keep_matrices(call, &call->d, desc->stride_d, 0);
    desc->bias = one_in(2) ? keep_matrices(call, &call->bias, desc->stride_bias, 0) : NULL;
    desc->gate = one_in(2) ? keep_matrices(call, &call->gate, desc->stride_gate, 0) : NULL;
    desc->gather_a = gathers ? keep_indices(call, call->gathered, m) : NULL;
    desc->scatter_d = scatters ? keep_indices(call, call->scattered, m) : NULL;
    desc->group_ends = is_grouped ? keep_indices(call, call->ends, (int)desc->batch) : NULL;
}

/* ---- What D must be ---------------------------------------------------------------------------- */

/* Where row i and column j of a matrix are, in the call's layout. */
static int64_t at(const hgemm_desc_t *desc, int is_t, int64_t i, int64_t j, int64_t ld)
{
    return (desc->layout == HGEMM_ROW_MAJOR) != is_t ? i * ld + j : i + j * ld;
}

static float element(const call_t *call, int64_t y, int64_t i, int64_t j)
{
    const hgemm_desc_t *p = &call->desc;
    const int64_t matrix = p->batch_mode == HGEMM_BATCH_GROUPED ? 0 : y, row = call->scattered[i];
    const float alpha = call->scalars[0], beta = call->scalars[1];
    float x = 0;
    for (int64_t l = 0; l < p->k && alpha != 0; l++) {
        int64_t in_a = at(p, p->op_a == HGEMM_OP_T, call->gathered[i], l, p->lda);
        int64_t in_b = at(p, p->op_b == HGEMM_OP_T, l, j, p->ldb);
        x += alpha * call->a.values[call->offset_a + matrix * p->stride_a + in_a] *
             call->b.values[call->offset_b + y * p->stride_b + in_b];
    }
    if (beta != 0)
        x += beta * call->c.values[matrix * p->stride_c + at(p, 0, row, j, p->ldc)];
    if (p->bias)
        x += call->bias.values[y * p->stride_bias + (p->bias_mode == HGEMM_BIAS_PER_ROW ? row : j)];
    if (p->activation == HGEMM_ACTIVATION_RELU && x < 0)
        x = 0;
    return p->gate ? x * call->gate.values[matrix * p->stride_gate + at(p, 0, row, j, p->ldgate)] : x;
}

static void verify(call_t *call, int round)
{
    const hgemm_desc_t *p = &call->desc;
    const int is_grouped = p->batch_mode == HGEMM_BATCH_GROUPED;
    float *want = call->d.values;
    void *got = malloc(bytes_of(&call->d));
    for (int64_t y = 0; y < p->batch; y++) {
        int64_t begin = is_grouped && y > 0 ? call->ends[y - 1] : 0, end = is_grouped ? call->ends[y] : p->m;
        for (int64_t i = begin; i < end; i++)
            for (int64_t j = 0; j < p->n; j++)
                want[(is_grouped ? 0 : y * p->stride_d) + at(p, 0, call->scattered[i], j, p->ldd)] =
                    element(call, y, i, j);
    }
    must(hgemm_download(handle, got, call->d.device, bytes_of(&call->d)), "hgemm_download");
    for (int64_t i = 0; i < call->d.count; i++) {
        float value = p->type_d == HGEMM_TYPE_F32 ? ((float *)got)[i] : hgemm_half_to_float(((uint16_t *)got)[i]);
        if (value == want[i])
            continue;
        printf("FAILED: call %d, element %" PRId64 " of D's memory: %g, want %g. m %" PRId64 " n %" PRId64 " k %" PRId64
               " batch %" PRId64
               " mode %d layout %d ops %d%d types of C D %d %d bias %d per row %d gate %d activation %d"
               " alpha %g%s beta %g%s gather %d scatter %d ld %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
               round, i, value, want[i], p->m, p->n, p->k, p->batch, p->batch_mode, p->layout, p->op_a, p->op_b,
               p->type_c, p->type_d, p->bias != NULL, p->bias_mode, p->gate != NULL, p->activation, call->scalars[0],
               p->alpha_pointer ? " (device)" : "", call->scalars[1], p->beta_pointer ? " (device)" : "",
               p->gather_a != NULL, p->scatter_d != NULL, p->lda, p->ldb, p->ldc, p->ldd);
        exit(1);
    }
    free(got);
}

int main(void)
{
    const int calls = test_full() ? 20000 : 200;
    handle = test_open();
    const uint64_t seed = test_seed();
    for (int i = 0; i < calls; i++) {
        static call_t call;
        char what[64];
        rng.state = seed + (uint64_t)i; /* a call that fails comes first with a seed of its own */
        draw(&call);
        snprintf(what, sizeof what, "call 0 of HGEMM_TEST_SEED=%" PRIu64, seed + (uint64_t)i);
        must(hgemm_run_desc(handle, &call.desc), what);
        verify(&call, i);
        operand_t *const operands[] = {&call.a, &call.b, &call.c, &call.d, &call.bias, &call.gate};
        for (int x = 0; x < 6; x++)
            discard(operands[x]);
        for (int t = 0; t < call.temporaries; t++)
            must(hgemm_free(handle, call.temporary[t]), "hgemm_free");
    }
    must(hgemm_destroy(handle), "hgemm_destroy");
    printf("%d calls passed\n", calls);
    return 0;
}
