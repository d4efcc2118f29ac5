/* SPDX-License-Identifier: MIT */
/*
 * Every kernel on a device, against references in double precision.
 *
 *     test_gemm                       all kernels and automatic selection
 *     test_gemm NAME                  one kernel, or "auto"
 *     test_gemm random                random cases, other ones in every run
 *     test_gemm copies                the same, on aligned copies of operands that are not aligned
 *     test_gemm --one KEY=VALUE...    one case, as a failure prints it
 *
 * What a case checks:
 *   - D, by one of three fills. exact: small integers whose partial sums are exact in the
 *     accumulator, so that D must match bit for bit. bounded: numbers in [-1, 1), each element of D
 *     within the error that the arithmetic allows, all together within what it makes likely.
 *     special: exact, with NaN and infinities strewn in.
 *   - what is not read (A and B where k or alpha is 0, C where beta is 0) holds NaN throughout.
 *   - a NaN pattern before and after every matrix, between its rows and between those of a batch,
 *     is intact afterwards, and so are A, B and C themselves. In half of the cases nothing follows
 *     what is only read, so that an emulator or sanitizer that watches sees a read beyond it.
 *   - a second run gives the same bits. For each kernel also: beta 0 those of beta 1 with C of zeros.
 *   - a kernel that does not cover the case says so, and writes nothing.
 * But for the random ones, the layouts, strides, scalars, ... of the many cases are chosen by
 * counting, so that every run covers the same; the numbers in the matrices are fresh in every run.
 */
#include "handle.h"
#include "util.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A case ----------------------------------------------------------------------------------- */

enum { A, B, C, D, MATRICES };
enum { EXACT, BOUNDED, SPECIAL };

typedef struct case_t {
    int64_t kernel; /* number of the kernel, 0: automatic */
    int64_t layout, op_a, op_b, accumulate;
    int64_t m, n, k, batch;
    int64_t pad[MATRICES];    /* elements between the rows: leading dimension - width */
    int64_t offset[MATRICES]; /* elements from a 16-byte aligned address */
    int64_t gap[MATRICES];    /* elements between the matrices of a batch; -1: all are the same */
    double alpha, beta;
    int64_t in_place; /* D is C */
    int64_t copies;   /* of operands that are not aligned; row-major, batch 1 */
    int64_t tail;     /* quarters of k that parts have, for the latter half of the tiles; batch 1 */
    int64_t tight;    /* what is only read ends where its memory ends, for tools that watch */
    int64_t fill;
    uint64_t seed;
} case_t;

static const struct {
    const char *key;
    size_t offset;
} integer_fields[] = {
#define FIELD(key, member)            \
    {                                 \
        key, offsetof(case_t, member) \
    }
    FIELD("kernel", kernel),
    FIELD("layout", layout),
    FIELD("op_a", op_a),
    FIELD("op_b", op_b),
    FIELD("acc", accumulate),
    FIELD("m", m),
    FIELD("n", n),
    FIELD("k", k),
    FIELD("batch", batch),
    FIELD("pad_a", pad[A]),
    FIELD("pad_b", pad[B]),
    FIELD("pad_c", pad[C]),
    FIELD("pad_d", pad[D]),
    FIELD("off_a", offset[A]),
    FIELD("off_b", offset[B]),
    FIELD("off_c", offset[C]),
    FIELD("off_d", offset[D]),
    FIELD("gap_a", gap[A]),
    FIELD("gap_b", gap[B]),
    FIELD("gap_c", gap[C]),
    FIELD("gap_d", gap[D]),
    FIELD("in_place", in_place),
    FIELD("fill", fill),
    FIELD("copies", copies),
    FIELD("tail", tail),
    FIELD("tight", tight),
#undef FIELD
};
enum { INTEGER_FIELDS = sizeof integer_fields / sizeof integer_fields[0] };

static int64_t *field(case_t *c, int i)
{
    return (int64_t *)((char *)c + integer_fields[i].offset);
}

static const char *kernel_name(const case_t *c)
{
    hgemm_kernel_info_t info;
    return hgemm_get_kernel_info((int)c->kernel, &info) == HGEMM_STATUS_SUCCESS ? info.name : "auto";
}

/* Everything that differs from an all-zero case of batch 1; kernels by name. */
static void print_case(const case_t *c)
{
    case_t copy = *c;
    printf("test_gemm --one kernel=%s", kernel_name(c));
    for (int i = 1; i < INTEGER_FIELDS; i++)
        if (*field(&copy, i))
            printf(" %s=%" PRId64, integer_fields[i].key, *field(&copy, i));
    printf(" alpha=%.9g beta=%.9g seed=%" PRIu64 "\n", c->alpha, c->beta, c->seed);
}

static int parse_case(case_t *c, int count, char **words)
{
    *c = (case_t){.batch = 1, .alpha = 1};
    for (int w = 0; w < count; w++) {
        char *value = strchr(words[w], '=');
        size_t length = value ? (size_t)(value - words[w]) : 0;
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
        } else {
            int i = 1;
            while (i < INTEGER_FIELDS &&
                   (strlen(integer_fields[i].key) != length || strncmp(integer_fields[i].key, words[w], length) != 0))
                i++;
            if (i == INTEGER_FIELDS)
                return 0;
            *field(c, i) = strtoll(value, NULL, 10);
        }
    }
    return 1;
}

static int reads_operands(const case_t *c)
{
    return c->k > 0 && c->alpha != 0;
}

/* ---- Matrices --------------------------------------------------------------------------------- */

enum { GUARD = 64, NAN_PATTERN = 0x7e5a }; /* guard elements on each side; a NaN's bits */

typedef struct matrix_t {
    int64_t rows, columns;      /* as a mathematical matrix, after its op */
    int64_t row_step, col_step; /* elements between neighbours in a column and in a row */
    int64_t width, ld, stride;  /* width: the contiguous extent */
    int64_t batch;              /* matrices that are stored */
    int64_t first;              /* element 0, counted in the buffer */
    int64_t size;               /* elements of the buffer */
    uint16_t *before, *after;   /* the buffer, as uploaded and as found afterwards */
    void *device;
} matrix_t;

static int64_t at(const matrix_t *x, int64_t index, int64_t i, int64_t j)
{
    return x->first + index * x->stride + i * x->row_step + j * x->col_step;
}

static void *must(void *pointer)
{
    if (!pointer) {
        printf("FAILED: out of host memory\n");
        exit(1);
    }
    return pointer;
}

/* Lays the matrix out. `along_rows`: neighbours in a row are contiguous. */
static void lay_out(matrix_t *x, const case_t *c, int which, int64_t rows, int64_t columns, int along_rows)
{
    int64_t width = along_rows ? columns : rows, lines = along_rows ? rows : columns;
    x->rows = rows, x->columns = columns, x->width = width;
    x->ld = width + c->pad[which];
    if (x->ld < 1)
        x->ld = 1;
    x->row_step = along_rows ? x->ld : 1;
    x->col_step = along_rows ? 1 : x->ld;
    int64_t extent = lines > 0 && width > 0 ? (lines - 1) * x->ld + width : 0;
    int shared = c->gap[which] < 0;
    x->stride = shared ? 0 : extent + c->gap[which];
    x->batch = shared && c->batch > 0 ? 1 : c->batch;
    x->first = GUARD + c->offset[which];
    x->size = x->first + (x->batch > 1 ? (x->batch - 1) * x->stride : 0) + extent;
    if (!c->tight || which == D || (which == C && c->in_place))
        x->size += GUARD;
    x->before = must(malloc((size_t)x->size * sizeof *x->before));
    x->after = must(malloc((size_t)x->size * sizeof *x->after));
    for (int64_t e = 0; e < x->size; e++)
        x->before[e] = NAN_PATTERN;
}

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

static uint16_t draw(rng_t *rng, int64_t fill, int64_t range)
{
    static const uint16_t specials[] = {0x7c00, 0xfc00, 0x7e00, 0x7c00, 0xfc00, 0xfe01};
    if (fill == SPECIAL && rng_between(rng, 0, 99) == 0)
        return specials[rng_between(rng, 0, 5)];
    if (fill == BOUNDED)
        return hgemm_half_from_float((float)rng_symmetric(rng));
    return hgemm_half_from_float((float)rng_between(rng, -range, range));
}

static void fill_matrix(matrix_t *x, rng_t *rng, int64_t fill, int64_t range)
{
    for (int64_t index = 0; index < x->batch; index++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->columns; j++)
                x->before[at(x, index, i, j)] = draw(rng, fill, range);
}

/* ---- Reference -------------------------------------------------------------------------------- */

/* What the reference keeps of the products that make up each element of a row: arrays, so that the
 * compiler can use vector instructions. */
typedef struct sums_t {
    double *sum;        /* so far */
    double *low, *high; /* the least and the largest that it has been, 0 included */
    double *absolute;   /* of the absolute products */
} sums_t;

static void add_products(double *restrict sum, double *restrict low, double *restrict high, double *restrict absolute,
                         double a, const double *restrict b, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double product = a * b[j];
        sum[j] += product;
        low[j] = sum[j] < low[j] ? sum[j] : low[j];
        high[j] = sum[j] > high[j] ? sum[j] : high[j];
        absolute[j] += fabs(product);
    }
}

/*
 * How far from the exact sum an accumulator may be. The tensor core adds up to 8 products at a time,
 * neighbours along k:
 *     s' = round(s + p_1 + ... + p_8)
 * It cuts each of the 9 terms to 24 bits below the largest and adds them exactly, an error of at
 * most 10 * 2^-23 =: v of their absolute sum; a half is then rounded to nearest, at most u = 2^-11
 * of the result, or 2^-25 below the normal numbers.
 *     A kernel may begin with the k-tiles at both ends of k. So a partial sum is a sum over at most
 * two runs of consecutive k's, and no run exceeds the range R = high - low of the sums from k = 0:
 * |s'| <= 2 R. There are at most k / 8 + 3 steps that add anything. With an error e so far, each
 * adds at most (u + v) (2 R + e) + 2^-25, and all together v times the absolute products.
 *     This needs no assumption on the numbers, yet it follows them: it grows with the sums that
 * occur, where the textbook's k u sum|a||b| grows with those that might.
 */
static double accumulator_error(const sums_t *s, int64_t j, int64_t k, int half)
{
    const double u = half ? 0x1p-11 : 0, v = 10 * 0x1p-23, tiny = half ? 0x1p-25 : 0;
    double steps = (double)((k + 7) / 8 + 2), partial = 2 * (s->high[j] - s->low[j]);
    return exp(steps * (u + v)) * (steps * ((u + v) * partial + tiny) + v * s->absolute[j]);
}

typedef struct reference_t {
    const case_t *c;
    const matrix_t *x;          /* A, B, C, D */
    double *value;              /* batch * m * n results before rounding to half */
    double *error;              /* bound of alpha * accumulator + beta * C against it */
    int64_t row_begin, row_end; /* rows of all matrices of the batch, one after another */
} reference_t;

static double half_at(const matrix_t *x, int64_t index, int64_t i, int64_t j)
{
    return hgemm_half_to_float(x->before[at(x, x->batch == 1 ? 0 : index, i, j)]);
}

static void *reference_rows(void *argument)
{
    reference_t *r = argument;
    const case_t *c = r->c;
    int64_t n = c->n, last_index = -1;
    int half = c->accumulate == HGEMM_ACCUMULATE_F16;
    double *all = must(malloc(4 * (size_t)n * sizeof *all));
    const sums_t sums = {all, all + n, all + 2 * n, all + 3 * n};
    double *b = NULL; /* B as doubles, row by row */
    float alpha = (float)c->alpha, beta = (float)c->beta;
    if (reads_operands(c))
        b = must(malloc((size_t)(c->k * n) * sizeof *b));

    for (int64_t row = r->row_begin; row < r->row_end; row++) {
        int64_t index = row / c->m, i = row % c->m;
        if (b && index != last_index)
            for (int64_t p = 0; p < c->k; p++)
                for (int64_t j = 0; j < n; j++)
                    b[p * n + j] = half_at(&r->x[B], index, p, j);
        last_index = index;
        memset(all, 0, 4 * (size_t)n * sizeof *all);
        for (int64_t p = 0; b && p < c->k; p++)
            add_products(sums.sum, sums.low, sums.high, sums.absolute, half_at(&r->x[A], index, i, p), &b[p * n], n);
        for (int64_t j = 0; j < n; j++) {
            double scaled = b ? (double)alpha * sums.sum[j] : 0;
            double added = beta == 0 ? 0 : (double)beta * half_at(&r->x[C], index, i, j);
            /* alpha * acc + beta * c in floats: a rounding each for two products and a sum. */
            r->value[row * n + j] = scaled + added;
            r->error[row * n + j] =
                fabs(alpha) * accumulator_error(&sums, j, c->k, half) + 3 * 0x1p-24 * (fabs(scaled) + fabs(added));
        }
    }
    free(b);
    free(all);
    return NULL;
}

/* Fills value and error of all elements, on several threads where the work is worth it. */
static void compute_reference(reference_t *whole)
{
    enum { THREADS = 16 };
    const case_t *c = whole->c;
    int64_t rows = c->batch * c->m;
    if (rows * c->n * (c->k + 1) < 1 << 24) {
        whole->row_begin = 0, whole->row_end = rows;
        reference_rows(whole);
        return;
    }
    pthread_t threads[THREADS];
    reference_t parts[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t] = *whole;
        parts[t].row_begin = rows * t / THREADS;
        parts[t].row_end = rows * (t + 1) / THREADS;
        if (pthread_create(&threads[t], NULL, reference_rows, &parts[t]) != 0) {
            printf("FAILED: no thread for the reference\n");
            exit(1);
        }
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

/* ---- Running a case --------------------------------------------------------------------------- */

static int failures;

/* The line that reproduces a failure; `what` tells it. */
static void fail(const case_t *c, const char *what)
{
    failures++;
    printf("FAILED: %s: ", what);
    print_case(c);
}

static int is_nan(uint16_t half)
{
    return (half & 0x7fff) > 0x7c00;
}

/* Whether a half is right. Zeros are equal whatever their sign. */
static int agrees(const case_t *c, uint16_t got, double value, double error)
{
    if (isnan(value))
        return is_nan(got);
    if (c->fill != BOUNDED || isinf(value)) {
        uint16_t want = hgemm_half_from_float((float)value);
        return got == want || ((got | want) & 0x7fff) == 0;
    }
    if (is_nan(got))
        return 0;
    double result = hgemm_half_to_float(got);
    return fabs(result - value) <= error + 0x1p-11 * (fabs(value) + error) + 0x1p-25;
}

/*
 * The root mean square that `count` errors of the bounded fill may have, by the model of bench/verify.h. Rounding a sum
 * to a half adds 0.425 * 2^-11 of its deviation: errors are uniform within an ulp, which is 2^-10 of the power of two
 * below the sum. One error is the wider, the larger the sums on its way: over long sums its kurtosis is 7, and its tail
 * is no normal one but exponential. Hence the room, and FEW: of fewer errors one in some 100,000 products has more.
 */
enum { FEW = 128 };

static double most_deviation(const case_t *c, double count)
{
    const double half = 0.425 * 0x1p-11, single = 0x1p-23, v = 1.0 / 9, k = (double)c->k, steps = ceil(k / 8);
    double sums = c->accumulate == HGEMM_ACCUMULATE_F16 ? half * sqrt(8 * v * steps * (steps + 1) / 2)
                                                        : single * sqrt(8 * v) * 2 / 3 * pow(steps + 1, 1.5);
    double expected = hypot(c->alpha * sums, half * sqrt(c->alpha * c->alpha * k * v + c->beta * c->beta / 3));
    return expected * (1.2 + 8 / sqrt(count) + 1 / sqrt(k + 1));
}

static void check_values(const case_t *c, const matrix_t *x)
{
    reference_t r = {.c = c, .x = x};
    size_t count = (size_t)(c->batch * c->m * c->n);
    r.value = must(calloc(2 * count + 1, sizeof *r.value));
    r.error = r.value + count;
    compute_reference(&r);
    int64_t wrong = 0;
    double squares = 0; /* of the errors */
    char first[256] = "";
    for (int64_t e = 0; e < (int64_t)count; e++) {
        int64_t index = e / (c->m * c->n), i = e / c->n % c->m, j = e % c->n;
        uint16_t got = x[D].after[at(&x[D], index, i, j)];
        squares += pow(hgemm_half_to_float(got) - r.value[e], 2);
        if (agrees(c, got, r.value[e], r.error[e]) || wrong++)
            continue;
        snprintf(first, sizeof first,
                 "matrix %" PRId64 " element (%" PRId64 ", %" PRId64 ") is %.9g (bits %04x), want %.9g within %.3g",
                 index, i, j, (double)hgemm_half_to_float(got), (unsigned)got, r.value[e],
                 c->fill == BOUNDED ? r.error[e] : 0.0);
    }
    if (wrong) {
        char what[320];
        snprintf(what, sizeof what, "%" PRId64 " wrong, the first: %s", wrong, first);
        fail(c, what);
    }
    double deviation = sqrt(squares / (double)count), most = most_deviation(c, (double)count);
    if (count >= FEW && c->fill == BOUNDED && !(deviation <= most)) {
        char what[160];
        snprintf(what, sizeof what, "errors have a root mean square of %.3g, want %.3g at most", deviation, most);
        fail(c, what);
    }
    free(r.value);
}

/* Whether a buffer still holds what was uploaded, but for D's elements where they may change. */
static void check_intact(const case_t *c, const matrix_t *x, char name, int elements_change)
{
    uint16_t *expected = must(malloc((size_t)x->size * sizeof *expected));
    memcpy(expected, x->before, (size_t)x->size * sizeof *expected);
    for (int64_t index = 0; elements_change && index < x->batch; index++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->columns; j++)
                expected[at(x, index, i, j)] = x->after[at(x, index, i, j)];
    for (int64_t e = 0; e < x->size; e++)
        if (x->after[e] != expected[e]) {
            char what[160];
            snprintf(what, sizeof what,
                     "%c was written where it must not be, %" PRId64 " elements from its first one: %04x was %04x",
                     name, e - x->first, (unsigned)x->after[e], (unsigned)expected[e]);
            fail(c, what);
            break;
        }
    free(expected);
}

/* The leading dimension from which a tile spans 2^32 bytes. */
static int64_t far_distance(const hgemm_kernel_info_t *info)
{
    int64_t lines = info->block_m > info->block_n ? info->block_m : info->block_n;
    lines = lines > info->block_k ? lines : info->block_k;
    return (INT64_C(1) << 31) / lines;
}

/* The copies that a case makes: of the operands that are not aligned. */
static int copies_of(const case_t *c, const hgemm_desc_t *desc)
{
    return c->copies && c->m && c->n && c->k && c->alpha != 0 ? copies_needed(desc) : 0;
}

/* Whether groups of `width` elements along the rows of an operand are aligned and whole. */
static int has_aligned(const case_t *c, const matrix_t *x, int which, int width)
{
    return c->offset[which] % width == 0 && x[which].width % width == 0 && x[which].ld % width == 0 &&
           (c->batch == 1 || x[which].stride % width == 0);
}

/* The test's own reading of which access a kernel needs, on the operands or on copies of some; ACCESS_COUNT where none
 * will do. Copies are aligned, and their rows are long. */
static access_t needed_access(const case_t *c, const matrix_t *x, const hgemm_kernel_info_t *info, int copies)
{
    int row_major = c->layout == HGEMM_ROW_MAJOR, overshoots = 0;
    if (!reads_operands(c))
        return ACCESS_x16;
    for (int which = A; which <= B; which++) {
        int by_k = row_major == ((which == A ? c->op_a : c->op_b) == HGEMM_OP_N); /* rows of A are then along k */
        int64_t block = (which == A) == row_major ? info->block_m : info->block_n, extent = which == A ? c->m : c->n;
        if (copies & (which == A ? COPY_A : COPY_B))
            continue;
        if (x[which].ld >= far_distance(info))
            return ACCESS_far;
        if ((which == A ? !by_k : by_k) && (block - extent % block) % block > 16 * x[which].ld)
            overshoots = 1; /* a tile's missing columns reach too far */
    }
    if (copies)
        return overshoots ? ACCESS_COUNT : ACCESS_x16;
    for (int width = 8; width >= 4 && !overshoots; width /= 2)
        if (has_aligned(c, x, A, width) && has_aligned(c, x, B, width))
            return width == 8 ? ACCESS_x16 : ACCESS_x8;
    return ACCESS_any;
}

/* Whether a kernel covers a problem with that access, and this build has its code. */
static int has_variant(const case_t *c, int kernel, access_t access)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    int row_major = c->layout == HGEMM_ROW_MAJOR;
    int op = 2 * (int)(row_major ? c->op_a : c->op_b) + (int)(row_major ? c->op_b : c->op_a);
    return (info->ops >> op & 1) && info->accumulate == (hgemm_accumulate_t)c->accumulate &&
           access <= kernel_table[kernel].access && variant_image((variant_t){kernel, op, access, 0});
}

/* Whether automatic selection has the kernel to draw from. */
static int is_drawn_from(hgemm_handle_t handle, int kernel)
{
    const kernel_t *row = &kernel_table[kernel];
    return strcmp(row->info.rung, "k5_tuned") == 0 && (row->blocks > 0 || handle->machine.is_newer);
}

/* Which problems a named kernel covers, and automatic selection: that may make copies by itself. */
static int is_covered(hgemm_handle_t handle, const case_t *c, const matrix_t *x, int copies)
{
    if (c->kernel) {
        const hgemm_kernel_info_t *info = &kernel_table[c->kernel].info;
        access_t access = copies ? needed_access(c, x, info, copies) : ACCESS_COUNT;
        return has_variant(c, (int)c->kernel, access == ACCESS_COUNT ? needed_access(c, x, info, 0) : access);
    }
    int unaligned = (has_aligned(c, x, A, 8) ? 0 : COPY_A) | (has_aligned(c, x, B, 8) ? 0 : COPY_B);
    int can_copy = reads_operands(c) && c->batch == 1 && !(has_aligned(c, x, A, 4) && has_aligned(c, x, B, 4));
    for (int kernel = 1; kernel < KERNEL_END; kernel++) {
        const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
        if (is_drawn_from(handle, kernel) &&
            (has_variant(c, kernel, needed_access(c, x, info, 0)) ||
             ((can_copy || copies) && has_variant(c, kernel, needed_access(c, x, info, unaligned)))))
            return 1;
    }
    return 0;
}

static void *element_zero(const matrix_t *x)
{
    return x->device ? (char *)x->device + x->first * 2 : NULL;
}

static void transfer(hgemm_handle_t handle, matrix_t *x, int up)
{
    size_t bytes = (size_t)x->size * 2;
    expect_status(handle,
                  up ? hgemm_upload(handle, x->device, x->before, bytes)
                     : hgemm_download(handle, x->after, x->device, bytes),
                  HGEMM_STATUS_SUCCESS, up ? "hgemm_upload" : "hgemm_download");
}

/* A plan on copies: that of a problem whose operands are aligned. Where a kernel wants no such, since it reaches too
 * far beyond an operand that is not copied, the status is not success, or the plan has no copies. */
static hgemm_status_t select_on_copies(hgemm_handle_t handle, const hgemm_desc_t *p, int copies, plan_t *plan)
{
    hgemm_desc_t like = *p;
    like.m = (p->m + 7) & -8, like.n = (p->n + 7) & -8, like.k = (p->k + 7) & -8;
    if (copies & COPY_A)
        like.a = NULL, like.lda = copy_of(p, COPY_A).ld;
    if (copies & COPY_B)
        like.b = NULL, like.ldb = copy_of(p, COPY_B).ld;
    hgemm_status_t status = select_plan(&like, &handle->machine, handle->workspace_bytes / 2, plan);
    if (status == HGEMM_STATUS_SUCCESS && plan->variant.access == ACCESS_x16)
        plan->copies = copies;
    return status;
}

/* Copies and tails are not asked for through the library's interface, and what is worth one is too large for
 * the emulator. */
static hgemm_status_t run(hgemm_handle_t handle, const case_t *c, const hgemm_desc_t *desc)
{
    plan_t plan;
    int multiplies = c->m && c->n && c->k && c->alpha != 0, copies = copies_of(c, desc);
    if (!copies && !(c->tail && multiplies))
        return hgemm_run_desc(handle, desc);
    const hgemm_desc_t p = normalise(desc);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (!copies || select_on_copies(handle, &p, copies, &plan) != HGEMM_STATUS_SUCCESS || !plan.copies)
        status = select_plan(&p, &handle->machine, handle->workspace_bytes / 2, &plan);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const hgemm_kernel_info_t *info = &kernel_table[plan.variant.kernel].info;
    const int64_t block_k = info->block_k, steps = (c->k + block_k - 1) / block_k;
    if (c->tail && steps > 1) {
        plan.whole_tiles = plan.tiles / 2;
        plan.k_split = (steps * c->tail + 3) / 4 * block_k;
        plan.splits = (int)((c->k + plan.k_split - 1) / plan.k_split);
    }
    return handle_launch(handle, &p, &plan);
}

static void run_case(hgemm_handle_t handle, const case_t *c)
{
    matrix_t x[MATRICES] = {{0}};
    int row_major = c->layout == HGEMM_ROW_MAJOR;
    rng_t rng = {c->seed};
    lay_out(&x[A], c, A, c->m, c->k, row_major == (c->op_a == HGEMM_OP_N));
    lay_out(&x[B], c, B, c->k, c->n, row_major == (c->op_b == HGEMM_OP_N));
    lay_out(&x[C], c, C, c->m, c->n, row_major);
    if (!c->in_place)
        lay_out(&x[D], c, D, c->m, c->n, row_major);
    if (reads_operands(c)) {
        fill_matrix(&x[A], &rng, c->fill, exact_range(c));
        fill_matrix(&x[B], &rng, c->fill, exact_range(c));
    }
    if (c->beta != 0)
        fill_matrix(&x[C], &rng, c->fill, 8);
    int stored = c->in_place ? D : MATRICES;
    for (int i = 0; i < stored; i++) {
        expect_status(handle, hgemm_malloc(handle, &x[i].device, (size_t)x[i].size * 2), HGEMM_STATUS_SUCCESS,
                      "hgemm_malloc");
        transfer(handle, &x[i], 1);
    }
    if (c->in_place)
        x[D] = x[C];

    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = (hgemm_layout_t)c->layout;
    desc.op_a = (hgemm_op_t)c->op_a, desc.op_b = (hgemm_op_t)c->op_b;
    desc.accumulate = (hgemm_accumulate_t)c->accumulate;
    desc.kernel = (int)c->kernel;
    desc.m = c->m, desc.n = c->n, desc.k = c->k, desc.batch = c->batch;
    desc.alpha = (float)c->alpha, desc.beta = (float)c->beta;
    desc.a = element_zero(&x[A]), desc.lda = x[A].ld, desc.stride_a = x[A].stride;
    desc.b = element_zero(&x[B]), desc.ldb = x[B].ld, desc.stride_b = x[B].stride;
    desc.c = element_zero(&x[C]), desc.ldc = x[C].ld, desc.stride_c = x[C].stride;
    desc.d = element_zero(&x[D]), desc.ldd = x[D].ld, desc.stride_d = x[D].stride;

    int covered = is_covered(handle, c, x, copies_of(c, &desc)) || c->m == 0 || c->n == 0 || c->batch == 0 ||
                  (!reads_operands(c) && c->beta == 1 && c->in_place);
    hgemm_status_t status = run(handle, c, &desc);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_synchronize(handle);
    if (status != (covered ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_NOT_SUPPORTED)) {
        char what[1200];
        snprintf(what, sizeof what, "%s (%s)", hgemm_status_name(status), hgemm_error_detail(handle));
        fail(c, what);
        if (status == HGEMM_STATUS_DEVICE_ERROR)
            exit(1); /* nothing that follows on this device would mean anything */
    }
    for (int i = 0; i < stored; i++)
        transfer(handle, &x[i], 0);
    for (int i = 0; i < stored; i++) {
        int is_d = i == D || (i == C && c->in_place);
        check_intact(c, &x[i], "ABCD"[i], is_d && covered);
    }
    matrix_t *d = c->in_place ? &x[C] : &x[D];
    if (covered && status == HGEMM_STATUS_SUCCESS) {
        check_values(c, x);
        uint16_t *once = must(malloc((size_t)d->size * 2));
        memcpy(once, d->after, (size_t)d->size * 2);
        transfer(handle, d, 1);
        expect_status(handle, run(handle, c, &desc), HGEMM_STATUS_SUCCESS, "second run");
        transfer(handle, d, 0);
        if (memcmp(once, d->after, (size_t)d->size * 2) != 0)
            fail(c, "a second run gave other bits");
        free(once);
    }
    for (int i = 0; i < stored; i++) {
        expect_status(handle, hgemm_free(handle, x[i].device), HGEMM_STATUS_SUCCESS, "hgemm_free");
        free(x[i].before);
        free(x[i].after);
    }
}

/* ---- The cases -------------------------------------------------------------------------------- */

typedef struct shape_t {
    int64_t m, n, k;
} shape_t;

static int64_t case_count;

/* Fills in what a shape leaves open from lists whose lengths have no common factor, so that the
 * count walks through their combinations. */
static void vary(case_t *c, uint64_t seed)
{
    static const double alphas[] = {1, 0.5, -2, 1, 0, 1, -1};
    static const double betas[] = {0, 1, 0, -0.5, 2};
    static const int64_t pads[] = {0, 8, 0, 3, 16, 1, 0, 40, 8, 0, 5};
    static const int64_t offsets[] = {0, 0, 0, 1, 0, 8, 0, 0, 3, 0, 0, 16, 5};
    static const int64_t gaps[] = {0, 8, 24};
    int64_t i = case_count++;
    c->alpha = alphas[i % 7];
    c->beta = betas[i % 5];
    if (c->accumulate == HGEMM_ACCUMULATE_F32 && c->fill != BOUNDED)
        c->alpha *= 0x1p-6; /* keeps sums of larger integers within a half */
    if (c->fill == BOUNDED && i % 2)
        c->alpha *= 0.7, c->beta *= 0.3;
    c->in_place = i % 3 == 1;
    c->tight = i % 17 < 9;
    int aligned = i % 4 < 2; /* half of all: what the variants for 16 bytes want, or for 8 */
    int64_t group = i % 8 < 4 ? 8 : 4;
    for (int which = A; which < MATRICES; which++) {
        c->pad[which] = pads[(i + 2 * which) % 11];
        c->offset[which] = offsets[(i + 5 * which) % 13];
        c->gap[which] = gaps[(i + which) % 3];
        if (aligned && which <= B)
            c->offset[which] &= -group;
    }
    if (c->batch > 1 && i % 2) {
        c->gap[A] = i % 4 == 1 ? -1 : c->gap[A];
        c->gap[B] = i % 4 == 3 ? -1 : c->gap[B];
        if (!c->in_place && i % 8 == 5)
            c->gap[C] = -1;
    }
    if (aligned) { /* leading dimensions in whole groups, whatever the width */
        int row_major = c->layout == HGEMM_ROW_MAJOR;
        int64_t width_a = row_major == (c->op_a == HGEMM_OP_N) ? c->k : c->m;
        int64_t width_b = row_major == (c->op_b == HGEMM_OP_N) ? c->n : c->k;
        c->pad[A] = (c->pad[A] & -group) + (group - width_a % group) % group;
        c->pad[B] = (c->pad[B] & -group) + (group - width_b % group) % group;
    }
    c->seed = seed ^ (uint64_t)i * UINT64_C(0x2545f4914f6cdd1d);
}

static void run_shape(hgemm_handle_t handle, case_t c, shape_t shape, int64_t batch, uint64_t seed)
{
    static const int64_t fills[] = {EXACT, BOUNDED, EXACT, BOUNDED, SPECIAL};
    c.m = shape.m, c.n = shape.n, c.k = shape.k, c.batch = batch;
    c.fill = fills[case_count % 5];
    vary(&c, seed);
    run_case(handle, &c);
}

/* Rows of A, then of B, so far apart that a tile spans 2^32 bytes: two rows are enough to tell. */
static void run_far(hgemm_handle_t handle, case_t c, const hgemm_kernel_info_t *info, uint64_t seed)
{
    int row_major = c.layout == HGEMM_ROW_MAJOR;
    for (int which = A; which <= B; which++) {
        int by_rows = row_major == ((which == A ? c.op_a : c.op_b) == HGEMM_OP_N);
        c.m = 9, c.n = 9, c.k = 9, c.batch = 1;
        if (which == A) /* the extent across the rows */
            *(by_rows ? &c.m : &c.k) = 2;
        else
            *(by_rows ? &c.k : &c.n) = 2;
        vary(&c, seed);
        c.alpha = 1;
        c.pad[A] = c.pad[B] = 0;
        c.pad[which] = far_distance(info);
        run_case(handle, &c);
    }
}

/* One operand of more than 2^31 elements, its rows as far apart as 32-bit offsets within a tile
 * allow. */
static void run_large(hgemm_handle_t handle, int kernel, const hgemm_kernel_info_t *info, uint64_t seed)
{
    int which = kernel % 3 == 0 ? A : kernel % 3 == 1 ? B : C;
    case_t c = {.kernel = kernel,
                .accumulate = info->accumulate,
                .batch = 1,
                .alpha = 1,
                .beta = 1,
                .in_place = 1,
                .m = 40,
                .n = 40,
                .k = 40,
                .seed = seed};
    c.pad[which] = far_distance(info) - 64;
    *(which == B ? &c.k : &c.m) = (INT64_C(1) << 31) / (far_distance(info) - 64) + 2;
    run_case(handle, &c);
    case_count++;
}

/* One kernel, transpose and layout over all shapes. */
static void run_shapes(hgemm_handle_t handle, const case_t *base, int64_t bm, int64_t bn, int64_t bk, uint64_t seed)
{
    const shape_t shapes[] = {
        {1, 1, 1}, /* the smallest */
        {0, 5, 7},
        {5, 0, 7},
        {9, 7, 0}, /* empty: no output, no output, no products */
        {2, 3, 5},
        {8, 8, 8},
        {17, 33, 9},  /* less than a tile */
        {bm, bn, bk}, /* exactly one tile */
        {bm, bn, 2 * bk},
        {bm, bn, 5 * bk},
        {bm - 1, bn - 1, bk - 1}, /* one short, one over */
        {bm + 1, bn + 1, bk + 1},
        {bm + 8, bn + 8, bk + 8}, /* edges that are multiples of 8 */
        {bm - 8, bn + 16, 3 * bk - 8},
        {bm + 4, bn + 12, 2 * bk + 4}, /* and of 4 only */
        {bm - 4, bn - 4, 3 * bk - 4},
        {12, 20, 4 * bk + 12},
        {2 * bm, 2 * bn, 4 * bk}, /* several tiles */
        {2 * bm - 7, bn + 3, 2 * bk + 7},
        {1, 2 * bn + 8, 3 * bk},
        {2 * bm + 8, 1, 3 * bk}, /* one row, one column */
        {1, bn + 5, 77},
        {bm + 5, 1, 131},
        {3, 5, 31 * bk + 3},
        {8, 16, 32 * bk}, /* long sums */
        {8, 8, 4 * bk + 8},
        {4, 4, 4 * bk + 20}, /* rows so short that a tile spans many */
    };
    enum { PASSES = 3 }; /* each with other strides, scalars, ... */
    const shape_t long_shapes[] = {
        {1024, 1024, 1024}, {1000, 1000, 1000},
        {1023, 1025, 1027}, {512, 2048, 4096},
        {2048, 512, 264},   {16, 4096, 4096},
        {4095, 33, 2049},   {1, 8192, 1024},
        {64, 64, 16384},    {9 * bm + 1, 9 * bn + 1, 3 * bk + 1},
    };
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            run_shape(handle, *base, shapes[i], 1, seed);
        run_shape(handle, *base, (shape_t){bm + 8, bn - 8, bk + 8}, 3, seed);
        run_shape(handle, *base, (shape_t){19, 11, 21}, 5, seed);
        run_shape(handle, *base, (shape_t){8, 16, 24}, 2, seed);
        run_shape(handle, *base, (shape_t){8, 16, 24}, 0, seed);
        if (!base->kernel) { /* k is split: evenly, with a short last part, over a batch */
            run_shape(handle, *base, (shape_t){64, 72, 2048}, 1, seed);
            run_shape(handle, *base, (shape_t){33, 65, 1511}, 1, seed);
            run_shape(handle, *base, (shape_t){40, 24, 1032}, 3, seed);
            run_shape(handle, *base, (shape_t){16, 5184, 384}, 1, seed); /* on a T4: the last tile of 41 */
            run_shape(handle, *base, (shape_t){13, 5250, 391}, 1, seed);
        } else if (strcmp(kernel_table[base->kernel].info.rung, "k5_tuned") == 0) {
            case_t tail = *base;
            tail.tail = 2;
            run_shape(handle, tail, (shape_t){2 * bm - 8, bn + 8, 3 * bk + 8}, 1, seed);
            tail.tail = 3;
            run_shape(handle, tail, (shape_t){2 * bm - 7, 2 * bn + 3, 3 * bk + 5}, 1, seed);
        }
    }
    for (size_t i = 0; test_full() && i < sizeof long_shapes / sizeof long_shapes[0]; i++)
        run_shape(handle, *base, long_shapes[i], 1, seed);
}

/* Where alpha is 1 and beta 0 a kernel stores its sums as they are: the same bits as with beta 1 and a
 * C of zeros, also where a sum so small that it vanishes was negative. (K has no slice of zeros, which
 * would make all of these +0.) */
static void run_scalars(hgemm_handle_t handle, int kernel, uint64_t seed)
{
    enum { M = 80, N = 136, K = 64, PRODUCTS = M * K + K * N, SUMS = M * N };
    static uint16_t numbers[PRODUCTS + SUMS], d[2][SUMS]; /* A, B and C, which stays zero */
    case_t c = {.kernel = kernel, .m = M, .n = N, .k = K, .batch = 1, .alpha = 1, .seed = seed};
    rng_t rng = {seed};
    void *device, *result;
    for (int i = 0; i < PRODUCTS; i++)
        numbers[i] = hgemm_half_from_float((float)(rng_symmetric(&rng) * 0x1p-13));
    expect_status(handle, hgemm_malloc(handle, &device, sizeof numbers), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_malloc(handle, &result, sizeof d[0]), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, numbers, sizeof numbers), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.kernel = kernel, desc.m = M, desc.n = N, desc.k = K;
    if (kernel != HGEMM_KERNEL_AUTO)
        desc.accumulate = kernel_table[kernel].info.accumulate;
    c.accumulate = (int64_t)desc.accumulate;
    desc.a = device, desc.b = (uint16_t *)device + M * K, desc.c = (uint16_t *)device + PRODUCTS, desc.d = result;
    desc.lda = K, desc.ldb = desc.ldc = desc.ldd = N;
    int zeros = 0, differ = 0;
    for (int beta = 0; beta < 2; beta++) {
        desc.beta = (float)beta;
        expect_status(handle, hgemm_run_desc(handle, &desc), HGEMM_STATUS_SUCCESS, "hgemm_run_desc");
        expect_status(handle, hgemm_download(handle, d[beta], result, sizeof d[0]), HGEMM_STATUS_SUCCESS,
                      "hgemm_download");
    }
    for (int i = 0; i < SUMS; i++)
        zeros += (d[1][i] & 0x7fff) == 0, differ += d[0][i] != d[1][i];
    if (differ)
        fail(&c, "beta 0 gives other bits than beta 1 and a C of zeros");
    if (zeros == 0 || zeros == SUMS)
        fail(&c, "no sum, or every one, vanished: nothing was compared");
    expect_status(handle, hgemm_free(handle, device), HGEMM_STATUS_SUCCESS, "hgemm_free");
    expect_status(handle, hgemm_free(handle, result), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

/* All transposes and layouts of a kernel, those it does not cover too. */
static void run_kernel(hgemm_handle_t handle, int kernel, uint64_t seed)
{
    hgemm_kernel_info_t info = {.block_m = 128, .block_n = 128, .block_k = 32};
    int64_t before = case_count, accumulators = 2;
    case_t c = {.kernel = kernel};
    if (kernel != HGEMM_KERNEL_AUTO) {
        expect_status(handle, hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS, "hgemm_get_kernel_info");
        accumulators = 1;
    }
    for (int64_t acc = 0; acc < accumulators; acc++)
        for (int bits = 0; bits < 8; bits++) {
            c.accumulate = accumulators == 1 ? (int64_t)info.accumulate : acc;
            c.layout = bits & 1, c.op_a = bits >> 1 & 1, c.op_b = bits >> 2;
            if (!bits) /* groups of rows of tiles that are walked together, the last one short */
                run_shape(handle, c, (shape_t){14 * info.block_m - 3, 3 * info.block_n - 5, info.block_k + 3}, 1, seed);
            if (info.ops == HGEMM_OPS_NN && (c.op_a || c.op_b)) {
                run_shape(handle, c, (shape_t){64, 64, 64}, 1, seed);
                continue;
            }
            run_shapes(handle, &c, info.block_m, info.block_n, info.block_k, seed);
            if (c.layout == HGEMM_ROW_MAJOR)
                run_far(handle, c, &info, seed);
        }
    const case_t plain = {.kernel = kernel, .accumulate = kernel ? (int64_t)info.accumulate : HGEMM_ACCUMULATE_F16};
    int runs_plain = 0; /* not in every build */
    for (int other = 1; other < KERNEL_END; other++)
        runs_plain |=
            (kernel ? other == kernel : is_drawn_from(handle, other)) && has_variant(&plain, other, ACCESS_x16);
    if (runs_plain)
        run_scalars(handle, kernel, seed);
    if (test_full())
        run_large(handle, kernel, &info, seed);
    printf("%s: %" PRId64 " cases\n", kernel_name(&c), case_count - before);
}

/* A length that is as often small as large, and a multiple of 8 half of the time. */
static int64_t random_length(rng_t *rng, int64_t most)
{
    int64_t bound = 1;
    while (bound < most && rng_between(rng, 0, 3))
        bound *= 2;
    int64_t length = rng_between(rng, 0, bound < most ? bound : most);
    return rng_between(rng, 0, 1) ? length : length & ~INT64_C(7);
}

static void run_random(hgemm_handle_t handle, int copies, uint64_t seed)
{
    static const double scalars[] = {0, 1, -1, 0.5, 2};
    const int64_t most = test_full() ? 2000 : 300;
    rng_t rng = {seed};
    for (int count = test_full() ? 5000 : 1000; count > 0; count--) {
        case_t c = {.kernel = rng_between(&rng, 0, hgemm_kernel_count()),
                    .layout = copies ? HGEMM_ROW_MAJOR : rng_between(&rng, 0, 1),
                    .copies = copies,
                    .op_a = rng_between(&rng, 0, 1),
                    .op_b = rng_between(&rng, 0, 1),
                    .m = random_length(&rng, most),
                    .n = random_length(&rng, most),
                    .k = random_length(&rng, most),
                    .batch = copies || rng_between(&rng, 0, 3) ? 1 : rng_between(&rng, 0, 4),
                    .alpha = scalars[rng_between(&rng, 0, 4)],
                    .beta = scalars[rng_between(&rng, 0, 4)],
                    .in_place = rng_between(&rng, 0, 1),
                    .tight = rng_between(&rng, 0, 1),
                    .fill = rng_between(&rng, EXACT, SPECIAL)};
        hgemm_kernel_info_t info;
        c.accumulate = hgemm_get_kernel_info((int)c.kernel, &info) == HGEMM_STATUS_SUCCESS ? (int64_t)info.accumulate
                                                                                           : rng_between(&rng, 0, 1);
        if (c.accumulate == HGEMM_ACCUMULATE_F32 && c.fill != BOUNDED)
            c.alpha *= 0x1p-6;                                 /* as in vary */
        int64_t group = INT64_C(1) << rng_between(&rng, 0, 3); /* of elements that all is made of */
        for (int which = A; which < MATRICES; which++) {
            c.pad[which] = random_length(&rng, 100);
            c.offset[which] = rng_between(&rng, 0, 15) & -group;
            c.gap[which] = random_length(&rng, 100);
        }
        c.m = (c.m + group - 1) & -group, c.n = (c.n + group - 1) & -group;
        c.k = (c.k + group - 1) & -group;
        for (int which = A; which < MATRICES; which++)
            c.pad[which] &= -group, c.gap[which] &= -group;
        c.seed = rng_next(&rng);
        run_case(handle, &c);
        case_count++;
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--one") == 0) {
        case_t c;
        if (!parse_case(&c, argc - 2, argv + 2)) {
            printf("cannot read the case: words are KEY=VALUE, as a failure prints them\n");
            return 2;
        }
        hgemm_handle_t handle = test_open();
        run_case(handle, &c);
        hgemm_destroy(handle);
        printf("%s\n", failures ? "FAILED" : "passed");
        return failures != 0;
    }
    int only = HGEMM_KERNEL_AUTO;
    int copies = argc > 1 && strcmp(argv[1], "copies") == 0;
    int random = copies || (argc > 1 && strcmp(argv[1], "random") == 0);
    if (argc > 1 && !random && strcmp(argv[1], "auto") != 0 && !(only = hgemm_find_kernel(argv[1]))) {
        printf("no kernel is called %s\n", argv[1]);
        return 2;
    }
    hgemm_handle_t handle = test_open();
    uint64_t seed = test_seed();
    if (argc < 2 || random)
        run_random(handle, copies, seed);
    for (int kernel = HGEMM_KERNEL_AUTO; kernel <= hgemm_kernel_count(); kernel++)
        if (argc < 2 || (!random && kernel == only))
            run_kernel(handle, kernel, seed);
    expect_status(handle, hgemm_destroy(handle), HGEMM_STATUS_SUCCESS, "hgemm_destroy");
    printf("%" PRId64 " cases, %d failures\n", case_count, failures);
    return failures != 0;
}
