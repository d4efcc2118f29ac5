/* SPDX-License-Identifier: MIT */
/*
 * Batch invariance: with HGEMM_FLAG_BATCH_INVARIANT a row of D has the same bits whatever m, the batch and the other
 * rows are. 300 rows are multiplied at once; then any m of them, from 1 to 300, wherever they stand, aligned otherwise
 * and among other rows: alone, in batches, in groups, gathered. Every row's bits are compared, of every type of A and B
 * and of D, after every activation, and where A and B are not read.
 *
 * HGEMM_TEST_FULL takes every m, and every way in turn, so that over all settings each m comes in each way, in six of
 * them; otherwise a sample of the m's is taken, in half as many settings.
 */
#include "gemm_operands.h"
#include "problem/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 300, BATCH = 3, MOST_N = 520, MOST_K = 2000, SLACK = 8 };
typedef enum way_t { ALONE, STRIDED, BY_POINTERS, GROUPED, GATHERED, WAYS } way_t;
static const char *const way_names[WAYS] = {"alone", "strided", "by pointers", "grouped", "gathered"};

typedef struct shape_t {
    int64_t n, k;
} shape_t;

typedef struct setting_t {
    hgemm_accumulate_t accumulate;
    hgemm_layout_t layout;
    hgemm_op_t op_a, op_b;
    hgemm_type_t type, type_d; /* of A and B; of D */
    hgemm_activation_t activation;
    float alpha; /* 0: D = act(0.5 * C) */
    shape_t shape;
} setting_t;

static hgemm_handle_t handle;
static int64_t compared;
static int failures;

/* Device memory, made once for all. */
static char *memory_a, *memory_b, *memory_d, *lists;
enum { MOST_BYTES = 4 /* of an element */ };
static float rows_of_a[ROWS * MOST_K], rows_of_c[ROWS * MOST_N], b[MOST_K * MOST_N]; /* op(A), C; B as stored */
static unsigned char want[ROWS * MOST_N * MOST_BYTES];                               /* D, row by row */
static unsigned char host_a[BATCH * (ROWS + SLACK) * (MOST_K + SLACK) * MOST_BYTES],
    host_d[BATCH * ROWS * MOST_N * MOST_BYTES], host_b[MOST_K * MOST_N * MOST_BYTES];

static int64_t bytes_of(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F32 ? 4 : 2;
}

static void upload(void *device, const void *host, size_t bytes)
{
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
}

static void *allocate(size_t bytes)
{
    void *pointer;
    expect_status(handle, hgemm_malloc(handle, &pointer, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    return pointer;
}

static hgemm_desc_t describe(const setting_t *s, int64_t m)
{
    hgemm_desc_t desc;
    const int64_t n = s->shape.n, k = s->shape.k;
    const int row_major = s->layout == HGEMM_ROW_MAJOR;
    hgemm_desc_init(&desc);
    desc.accumulate = s->accumulate, desc.layout = s->layout, desc.op_a = s->op_a, desc.op_b = s->op_b;
    desc.m = m, desc.n = n, desc.k = k;
    desc.b = memory_b, desc.ldb = row_major == (s->op_b == HGEMM_OP_N) ? n : k;
    desc.d = memory_d, desc.ldd = row_major ? n : m;
    desc.type_a = desc.type_b = s->type, desc.type_c = desc.type_d = s->type_d;
    desc.scale_a = desc.scale_b = 0x1p10F; /* of bfloat16: all numbers are below 1 */
    desc.activation = s->activation, desc.alpha = s->alpha;
    if (s->alpha == 0)
        desc.beta = 0.5F, desc.c = desc.d, desc.ldc = desc.ldd;
    desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    return desc;
}

/* Stores `lines` rows of op(A), given by number, at element `to` of host_a; ld is the leading dimension. */
static void store_rows(const setting_t *s, int64_t to, int64_t ld, const int64_t *numbers, int64_t lines)
{
    const int64_t k = s->shape.k;
    const int by_rows = (s->layout == HGEMM_ROW_MAJOR) == (s->op_a == HGEMM_OP_N);
    for (int64_t i = 0; i < lines; i++)
        for (int64_t p = 0; p < k; p++)
            store_value(s->type, host_a + (to + (by_rows ? i * ld + p : p * ld + i)) * bytes_of(s->type),
                        (double)rows_of_a[numbers[i] * k + p]);
}

/* Where row i and column j of matrix x of D are in host_d. */
static unsigned char *element_of_d(const setting_t *s, int64_t m, int64_t x, int64_t i, int64_t j)
{
    const int64_t n = s->shape.n;
    return host_d + (x * m * n + (s->layout == HGEMM_ROW_MAJOR ? i * n + j : j * m + i)) * bytes_of(s->type_d);
}

/* D before a product of `matrices` matrices, which is C: row i of each by its number. */
static void upload_c(const setting_t *s, int64_t m, int64_t matrices, int64_t numbers[][ROWS])
{
    for (int64_t x = 0; x < matrices; x++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < s->shape.n; j++)
                store_value(s->type_d, element_of_d(s, m, x, i, j), (double)rows_of_c[numbers[x][i] * s->shape.n + j]);
    upload(memory_d, host_d, (size_t)(matrices * m * s->shape.n * bytes_of(s->type_d)));
}

/* Ends of BATCH groups of m rows, and the rows that are gathered: the last ones first. */
static void make_lists(hgemm_desc_t *desc, way_t way, int64_t m, rng_t *rng)
{
    int32_t list[ROWS];
    if (way == GROUPED) {
        list[0] = (int32_t)rng_between(rng, 0, m), list[1] = (int32_t)rng_between(rng, list[0], m),
        list[2] = (int32_t)m;
        desc->batch = BATCH, desc->batch_mode = HGEMM_BATCH_GROUPED, desc->group_ends = lists;
        upload(lists, list, BATCH * sizeof *list);
    } else if (way == GATHERED) {
        for (int64_t i = 0; i < m; i++)
            list[i] = (int32_t)(m - 1 - i);
        desc->gather_a = lists;
        upload(lists, list, (size_t)m * sizeof *list);
    }
}

static void make_batch(const setting_t *s, hgemm_desc_t *desc, way_t way, int64_t stride_a, int64_t stride_d)
{
    if (way == STRIDED) {
        desc->batch = BATCH, desc->stride_a = stride_a, desc->stride_c = desc->stride_d = stride_d;
    } else if (way == BY_POINTERS) {
        uint64_t pointers[3][BATCH];
        for (int i = 0; i < BATCH; i++) {
            pointers[0][i] = (uint64_t)(uintptr_t)desc->a + (uint64_t)(i * stride_a * bytes_of(s->type));
            pointers[1][i] = (uint64_t)(uintptr_t)desc->b;
            pointers[2][i] = (uint64_t)(uintptr_t)desc->d + (uint64_t)(i * stride_d * bytes_of(s->type_d));
        }
        upload(lists, pointers, sizeof pointers);
        desc->batch = BATCH, desc->batch_mode = HGEMM_BATCH_POINTERS;
        desc->a = lists, desc->b = lists + sizeof pointers[0], desc->d = lists + 2 * sizeof pointers[0];
        desc->c = desc->c ? desc->d : NULL;
    }
}

/* Multiplies m rows from `first` on in that way, and compares. */
static void compare(const setting_t *s, way_t way, int64_t first, int64_t m, rng_t *rng)
{
    const int64_t n = s->shape.n, k = s->shape.k, matrices = way == STRIDED || way == BY_POINTERS ? BATCH : 1;
    const int by_rows = (s->layout == HGEMM_ROW_MAJOR) == (s->op_a == HGEMM_OP_N);
    const int64_t offset = rng_between(rng, 0, 1) ? rng_between(rng, 0, SLACK - 1) : 0, ld = (by_rows ? k : m) + offset;
    const int64_t stride_a = (by_rows ? m : k) * ld, stride_d = m * n;
    int64_t numbers[BATCH][ROWS];
    hgemm_desc_t desc = describe(s, m);
    memset(host_a, 0x7e, (size_t)((offset + matrices * stride_a) * bytes_of(s->type)));
    for (int64_t x = 0; x < matrices; x++) { /* each matrix of a batch begins with another row */
        for (int64_t i = 0; i < m; i++)
            numbers[x][i] = (first + x * 7 + (way == GATHERED ? m - 1 - i : i)) % ROWS;
        store_rows(s, offset + x * stride_a, ld, numbers[x], m);
        for (int64_t i = 0; i < m; i++)
            numbers[x][i] = (first + x * 7 + i) % ROWS;
    }
    upload(memory_a, host_a, (size_t)((offset + matrices * stride_a) * bytes_of(s->type)));
    upload_c(s, m, matrices, numbers);
    desc.a = memory_a + offset * bytes_of(s->type), desc.lda = ld;
    make_lists(&desc, way, m, rng);
    make_batch(s, &desc, way, stride_a, stride_d);
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, host_d, memory_d, (size_t)(matrices * stride_d * bytes_of(s->type_d))),
                  HGEMM_STATUS_SUCCESS, "hgemm_download");
    for (int64_t e = 0; e < matrices * stride_d; e++) {
        const int64_t x = e / stride_d, i = e % stride_d / n, j = e % n;
        const unsigned char *const got = element_of_d(s, m, x, i, j), *const wanted = want + (numbers[x][i] * n + j) *
                                                                                                 bytes_of(s->type_d);
        if (memcmp(got, wanted, (size_t)bytes_of(s->type_d)) == 0)
            continue;
        printf("FAILED: %s sums, %s by %s, alpha %g, %s, %s-major, op_a %d, op_b %d, n %" PRId64 ", k %" PRId64
               ", %s, m %" PRId64 ", a %" PRId64 " elements off: row %" PRId64 ", column %" PRId64
               " is %.9g, and %.9g among %d rows\n",
               s->accumulate ? "F32" : "F16", type_names[s->type_d], type_names[s->type], (double)s->alpha,
               activation_names[s->activation], s->layout ? "column" : "row", (int)s->op_a, (int)s->op_b, n, k,
               way_names[way], m, offset, i, j, value_of(s->type_d, got), value_of(s->type_d, wanted), ROWS);
        failures++;
        return;
    }
    compared += matrices * m;
}

/* All rows at once: what each must be. */
static void make_want(const setting_t *s)
{
    const int64_t n = s->shape.n, k = s->shape.k;
    const int by_rows = (s->layout == HGEMM_ROW_MAJOR) == (s->op_a == HGEMM_OP_N);
    int64_t numbers[1][ROWS];
    hgemm_desc_t desc = describe(s, ROWS);
    for (int64_t i = 0; i < ROWS; i++)
        numbers[0][i] = i;
    for (int64_t i = 0; i < k * n; i++)
        store_value(s->type, host_b + i * bytes_of(s->type), (double)b[i]);
    desc.a = memory_a, desc.lda = by_rows ? k : ROWS;
    store_rows(s, 0, desc.lda, numbers[0], ROWS);
    upload(memory_a, host_a, (size_t)(ROWS * k * bytes_of(s->type)));
    upload(memory_b, host_b, (size_t)(k * n * bytes_of(s->type)));
    upload_c(s, ROWS, 1, numbers);
    expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
    expect_status(handle, hgemm_download(handle, host_d, memory_d, (size_t)(ROWS * n * bytes_of(s->type_d))),
                  HGEMM_STATUS_SUCCESS, "hgemm_download");
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < n; j++)
            memcpy(want + (i * n + j) * bytes_of(s->type_d), element_of_d(s, ROWS, 0, i, j),
                   (size_t)bytes_of(s->type_d));
}

static void run_setting(const setting_t *s, rng_t *rng)
{
    static const int64_t sample[] = {1, 2, 15, 16, 17, 32, 33, 64, 65, 127, 129, 256, 300};
    static int turn;
    make_want(s);
    for (int64_t m = 1; m <= ROWS && test_full(); m++)
        compare(s, (way_t)((m + turn) % WAYS), rng_between(rng, 0, ROWS - 1), m, rng);
    turn++; /* ROWS is a multiple of WAYS: else each m would come in the same way again */
    for (size_t i = 0; i < sizeof sample / sizeof *sample && !test_full(); i++)
        compare(s, (way_t)(turn++ % WAYS), rng_between(rng, 0, ROWS - 1), sample[i], rng);
}

int main(void)
{
    static const shape_t shapes[] = {{64, 200}, {72, 1000}, {130, 65}, {256, 512}, {520, 136}, {33, 2000}};
    const size_t count = sizeof shapes / sizeof *shapes;
    handle = test_open();
    rng_t rng = {test_seed()};
    memory_a = allocate(sizeof host_a), memory_b = allocate(sizeof host_b), memory_d = allocate(sizeof host_d);
    lists = allocate(sizeof(int64_t) * ROWS);
    for (size_t i = 0; i < sizeof rows_of_a / sizeof *rows_of_a; i++)
        rows_of_a[i] = (float)rng_symmetric(&rng);
    for (size_t i = 0; i < sizeof rows_of_c / sizeof *rows_of_c; i++)
        rows_of_c[i] = 8 * (float)rng_symmetric(&rng);
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = (float)rng_symmetric(&rng);
    const size_t every = test_full() ? count / 2 : count; /* shapes of each setting: two, or one */
    /* Of A and B beside FP32 sums, by layout and transposes; of D. */
    static const hgemm_type_t types[] = {HGEMM_TYPE_F32, HGEMM_TYPE_F32,  HGEMM_TYPE_F16, HGEMM_TYPE_BF16,
                                         HGEMM_TYPE_F16, HGEMM_TYPE_BF16, HGEMM_TYPE_F32, HGEMM_TYPE_F32};
    static const hgemm_type_t types_of_d[] = {HGEMM_TYPE_F32, HGEMM_TYPE_F16, HGEMM_TYPE_BF16};
    int settings = 0;
    for (int bits = 0; bits < 16; bits++)
        for (size_t i = (size_t)bits % every; i < count; i += every, settings++) {
            const setting_t s = {.accumulate = (hgemm_accumulate_t)(bits & 1),
                                 .layout = (hgemm_layout_t)(bits >> 1 & 1),
                                 .op_a = (hgemm_op_t)(bits >> 2 & 1),
                                 .op_b = (hgemm_op_t)(bits >> 3),
                                 .type = bits & 1 ? types[bits >> 1] : HGEMM_TYPE_F16,
                                 .type_d = types_of_d[settings % 3],
                                 .activation = (hgemm_activation_t)((2 * settings + 3) % ACTIVATION_COUNT),
                                 .alpha = bits == 6 || bits == 8 || bits >= 13 ? 0 : 1,
                                 .shape = shapes[i]};
            run_setting(&s, &rng);
        }
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    printf("%" PRId64 " rows compared, %d products with other bits\n", compared, failures);
    return failures != 0;
}
