/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calls.h"

/* ---- Calls ------------------------------------------------------------------------------------------ */

const entry_info_t entries[ENTRIES] = {
#define HALF 0, 0, 0, 0
#define HALF_STRIDED 0, 0, 1, 0
#define HALF_BATCHED 0, 0, 0, 1
#define SINGLE 0, 1, 0, 0
#define SINGLE_STRIDED 0, 1, 1, 0
#define SINGLE_BATCHED 0, 1, 0, 1
#define EX 1, 0, 0, 0
#define EX_STRIDED 1, 0, 1, 0
#define EX_BATCHED 1, 0, 0, 1
#define X(name, kind, integer) {#name, kind},
    BLAS_ENTRIES(X)
#undef X
        {"cublasLtMatmul", 0, 0, 0, 0}};

#define CALL_HALF(name, T)                                                                                            \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, (T)f->lda, f->b, (T)f->ldb, f->beta, \
         (void *)f->c, (T)f->ldc)
#define CALL_HALF_STRIDED(name, T)                                                                             \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, (T)f->lda, f->stride_a, f->b, \
         (T)f->ldb, f->stride_b, f->beta, (void *)f->c, (T)f->ldc, f->stride_c, (T)f->batch)
#define CALL_HALF_BATCHED(name, T)                                                                               \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, (const void *const *)f->a, (T)f->lda, \
         (const void *const *)f->b, (T)f->ldb, f->beta, (void *const *)f->c, (T)f->ldc, (T)f->batch)
#define CALL_SINGLE(name, T) CALL_HALF(name, T)
#define CALL_SINGLE_STRIDED(name, T) CALL_HALF_STRIDED(name, T)
#define CALL_SINGLE_BATCHED(name, T) CALL_HALF_BATCHED(name, T)
#define CALL_EX(name, T)                                                                                     \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, f->type_a, (T)f->lda, f->b, \
         f->type_b, (T)f->ldb, f->beta, (void *)f->c, f->type_c, (T)f->ldc, f->compute, f->algo)
#define CALL_EX_STRIDED(name, T)                                                                                    \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, f->type_a, (T)f->lda, f->stride_a, \
         f->b, f->type_b, (T)f->ldb, f->stride_b, f->beta, (void *)f->c, f->type_c, (T)f->ldc, f->stride_c,         \
         (T)f->batch, f->compute, f->algo)
#define CALL_EX_BATCHED(name, T)                                                                                 \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, (const void *const *)f->a, f->type_a, \
         (T)f->lda, (const void *const *)f->b, f->type_b, (T)f->ldb, f->beta, (void *const *)f->c, f->type_c,    \
         (T)f->ldc, (T)f->batch, f->compute, f->algo)

int call_blas(int entry, const fake_call_t *f)
{
    switch (entry) {
#define X(name, kind, integer) \
    case ENTRY_##name: return CALL_##kind(name, integer);
        BLAS_ENTRIES(X)
#undef X
    default: return -1;
    }
}

int call_lt(const fake_call_t *f)
{
    return cublasLtMatmul(f->handle, f->desc, f->alpha, f->a, f->layout_a, f->b, f->layout_b, f->beta, f->c,
                          f->layout_c, f->d, f->layout_d, f->lt_algo, f->workspace, f->workspace_bytes, f->stream);
}

/* The last call that the fake library saw is this one, to the last argument. */
void assert_passed_on(const fake_call_t *seen, const fake_call_t *call)
{
    assert_string_equal(seen->name, call->name);
#define SAME(field) assert_true(seen->field == call->field)
    SAME(handle), SAME(op_a), SAME(op_b), SAME(m), SAME(n), SAME(k), SAME(alpha), SAME(beta), SAME(a), SAME(b);
    SAME(c), SAME(type_a), SAME(type_b), SAME(type_c), SAME(lda), SAME(ldb), SAME(ldc), SAME(stride_a), SAME(stride_b);
    SAME(stride_c), SAME(batch), SAME(compute), SAME(algo), SAME(desc), SAME(layout_a), SAME(layout_b), SAME(layout_c);
    SAME(layout_d), SAME(d), SAME(lt_algo), SAME(workspace), SAME(stream), SAME(workspace_bytes);
#undef SAME
}

/* ---- Random calls ------------------------------------------------------------------------------------- */

rng_t rng;
int draws_floats = 1;
static unsigned char before[ARENA];

int64_t pick(int64_t lowest, int64_t highest)
{
    return rng_between(&rng, lowest, highest);
}

static operand_t make_operand(int64_t width, int64_t lines, int type, int64_t batch, int is_pointers, int may_be_shared)
{
    size_t size = type == BLAS_R_16F ? 2 : 4, offset = size * (size_t)(pick(0, 2) == 0 ? pick(0, 7) : 0);
    operand_t x = {.ld = (width > 1 ? width : 1) + (pick(0, 1) ? pick(0, 9) : 0)};
    int64_t elements = x.ld * (lines > 1 ? lines : 1);
    int is_shared = may_be_shared && pick(0, 3) == 0;
    x.stride = is_shared ? 0 : elements + pick(0, 5);
    int64_t step = is_pointers ? elements + 5 : x.stride; /* pointers go backwards, so that they are needed */
    char *data = take((size_t)(elements + step * (batch - 1)) * size, offset);
    void **array = is_pointers ? take(sizeof(void *) * (size_t)batch, 0) : NULL;
    for (int64_t l = 0; l < batch; l++) {
        x.matrices[l] = data + (is_pointers ? batch - 1 - l : l) * step * (int64_t)size;
        if (array)
            ((void **)host_of(array))[l] = x.matrices[l];
        for (int64_t j = 0; j < lines; j++)
            for (int64_t i = 0; i < width; i++)
                write_number(x.matrices[l], j * x.ld + i, type, (double)pick(-4, 4));
    }
    x.argument = array ? (void *)array : (void *)data;
    return x;
}

static const double scalars[] = {1, 1, 2, -1, 0.5, 0};

/* Scalars of the compute type in host or device memory: apart or side by side, in any order, or one for both. */
static void make_scalars(fake_call_t *call, int is_half, int on_device, double alpha, double beta)
{
    enum { SCALARS = 96 };
    static float host[SCALARS];
    const size_t size = is_half ? 2 : 4;
    char *place = on_device ? take(SCALARS * sizeof(float), 0) : (char *)host;
    const int64_t at_alpha = pick(0, SCALARS - 1), step = pick(1, pick(0, 1) ? 1 : SCALARS - 1);
    const int64_t at_beta = alpha == beta && pick(0, 1) ? at_alpha : (at_alpha + step) % SCALARS;
    call->alpha = place + (size_t)at_alpha * size;
    call->beta = place + (size_t)at_beta * size;
    for (int i = 0; i < 2; i++) {
        const void *where = i ? call->beta : call->alpha;
        const float value = (float)(i ? beta : alpha);
        const uint16_t half = hgemm_half_from_float(value);
        memcpy(on_device ? host_of(where) : (void *)where, is_half ? (const void *)&half : &value, size);
    }
}

/* A random call of one of cuBLAS's functions; `expected` becomes the arena after it. */
static fake_call_t make_blas_of(int type, int entry, void *handle, unsigned char expected[ARENA], int *type_d)
{
    int is_half = type == BLAS_R_16F && (!entries[entry].is_ex || pick(0, 1)); /* sums and scalars */
    int on_device = pick(0, 3) == 0;
    int type_c = is_half || (type == BLAS_R_16F && pick(0, 1)) ? BLAS_R_16F : BLAS_R_32F;
    int is_batch = entries[entry].is_strided || entries[entry].is_batched;
    int64_t batch = is_batch ? pick(1, 3) : 1;
    fake_call_t call = {.name = entries[entry].name, .handle = handle};
    clear_arena();
    call.op_a = (int)pick(0, 2), call.op_b = (int)pick(0, 2);
    call.m = pick(1, 40), call.n = pick(1, 40), call.k = pick(0, 9) ? pick(1, 40) : 0;
    double alpha = scalars[pick(0, 5)], beta = scalars[pick(0, 5)];
    make_scalars(&call, is_half, on_device, alpha, beta);
    int a_n = call.op_a == BLAS_OP_N, b_n = call.op_b == BLAS_OP_N, pointers = entries[entry].is_batched;
    operand_t a = make_operand(a_n ? call.m : call.k, a_n ? call.k : call.m, type, batch, pointers, 1);
    operand_t b = make_operand(b_n ? call.k : call.n, b_n ? call.n : call.k, type, batch, pointers, 1);
    operand_t c = make_operand(call.m, call.n, type_c, batch, pointers, 0);
    call.a = a.argument, call.lda = a.ld;
    call.b = b.argument, call.ldb = b.ld;
    call.c = c.argument, call.ldc = c.ld;
    if (entries[entry].is_strided)
        call.stride_a = a.stride, call.stride_b = b.stride, call.stride_c = c.stride;
    if (is_batch)
        call.batch = batch;
    if (entries[entry].is_ex) {
        call.type_a = call.type_b = type, call.type_c = type_c;
        call.compute = is_half ? BLAS_COMPUTE_16F : BLAS_COMPUTE_32F;
        call.algo = pick(0, 1) ? BLAS_GEMM_DEFAULT : BLAS_GEMM_DEFAULT_TENSOR_OP;
    }
    memcpy(before, arena, ARENA);
    for (int64_t l = 0; l < batch; l++)
        for (int64_t i = 0; i < call.m; i++)
            for (int64_t j = 0; j < call.n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < call.k; p++)
                    sum += read_number(a.matrices[l], a_n ? i + p * a.ld : p + i * a.ld, type) *
                           read_number(b.matrices[l], b_n ? p + j * b.ld : j + p * b.ld, type);
                double old = beta != 0 ? beta * read_number(c.matrices[l], i + j * c.ld, type_c) : 0;
                write_number(c.matrices[l], i + j * c.ld, type_c, alpha * sum + old);
            }
    memcpy(expected, arena, ARENA);
    memcpy(arena, before, ARENA);
    set_pointer_mode(handle, on_device ? BLAS_POINTER_MODE_DEVICE : BLAS_POINTER_MODE_HOST);
    *type_d = type_c;
    return call;
}

fake_call_t make_blas(int entry, void *handle, unsigned char expected[ARENA], int *type_d)
{
    const int is_single = entries[entry].is_single || (draws_floats && entries[entry].is_ex && pick(0, 2) == 0);
    return make_blas_of(is_single ? BLAS_R_32F : BLAS_R_16F, entry, handle, expected, type_d);
}

static void set32(int (*set)(void *, int, const void *, size_t), void *object, int attribute, int value)
{
    assert_int_equal(set(object, attribute, &value, sizeof value), 0);
}

static void set64(int (*set)(void *, int, const void *, size_t), void *object, int attribute, int64_t value)
{
    assert_int_equal(set(object, attribute, &value, sizeof value), 0);
}

/* A layout of a rows x columns matrix in an order, and its numbers. */
operand_t make_layout(void **layout, int order, int64_t rows, int64_t columns, int type, int64_t batch, int mode)
{
    int is_column_major = order == LT_ORDER_COL;
    operand_t x = make_operand(is_column_major ? rows : columns, is_column_major ? columns : rows, type, batch,
                               mode == LT_BATCH_MODE_POINTER_ARRAY, 0);
    assert_int_equal(layout_create(layout, type, (uint64_t)rows, (uint64_t)columns, x.ld), 0);
    set32(layout_set, *layout, LT_LAYOUT_ORDER, order);
    set32(layout_set, *layout, LT_LAYOUT_BATCH_COUNT, (int)batch);
    set64(layout_set, *layout, LT_LAYOUT_STRIDED_BATCH_OFFSET, x.stride);
    if (mode != LT_BATCH_MODE_STRIDED)
        set32(layout_set, *layout, LT_LAYOUT_BATCH_MODE, mode);
    return x;
}

static double element(const operand_t *x, int64_t matrix, int order, int64_t row, int64_t column, int type)
{
    return read_number(x->matrices[matrix], order == LT_ORDER_COL ? row + column * x->ld : row * x->ld + column, type);
}

fake_call_t make_lt(unsigned char expected[ARENA], int *type, int *is_rounded)
{
    static const int epilogues[] = {LT_EPILOGUE_DEFAULT,   LT_EPILOGUE_BIAS, LT_EPILOGUE_RELU,
                                    LT_EPILOGUE_RELU_BIAS, LT_EPILOGUE_GELU, LT_EPILOGUE_GELU_BIAS};
    static const int ops[] = {BLAS_OP_N, BLAS_OP_T, BLAS_OP_C};
    int factors = draws_floats && pick(0, 2) == 0 ? BLAS_R_32F : BLAS_R_16F,
        is_half = factors == BLAS_R_16F && pick(0, 1);
    int on_device = pick(0, 3) == 0;
    int type_d = is_half || (factors == BLAS_R_16F && pick(0, 1)) ? BLAS_R_16F : BLAS_R_32F;
    int order_a = (int)pick(0, 1), order_b = (int)pick(0, 1), order_d = (int)pick(0, 1), in_place = (int)pick(0, 1);
    int mode = pick(0, 5) == 0 ? LT_BATCH_MODE_POINTER_ARRAY : LT_BATCH_MODE_STRIDED;
    int epilogue = mode == LT_BATCH_MODE_STRIDED ? epilogues[pick(0, 5)] : epilogues[2 * pick(0, 2)];
    int op_a = ops[pick(0, 2)], op_b = ops[pick(0, 2)];
    int64_t m = pick(1, 40), n = pick(1, 40), k = pick(1, 40), batch = pick(1, 2);
    fake_call_t call = {.name = "cublasLtMatmul", .handle = &rng, .stream = (void *)0x5000, .workspace_bytes = 7};
    clear_arena();
    double alpha = scalars[pick(0, 5)], beta = scalars[pick(0, 5)];
    make_scalars(&call, is_half, on_device, alpha, beta);
    int compute = is_half ? BLAS_COMPUTE_16F : BLAS_COMPUTE_32F;
    assert_int_equal(desc_create(&call.desc, compute, is_half ? BLAS_R_16F : BLAS_R_32F), 0);
    set32(desc_set, call.desc, LT_DESC_POINTER_MODE, on_device);
    set32(desc_set, call.desc, LT_DESC_TRANSA, op_a);
    set32(desc_set, call.desc, LT_DESC_TRANSB, op_b);
    set32(desc_set, call.desc, LT_DESC_EPILOGUE, epilogue);
    int a_n = op_a == BLAS_OP_N, b_n = op_b == BLAS_OP_N;
    operand_t a = make_layout(&call.layout_a, order_a, a_n ? m : k, a_n ? k : m, factors, batch, mode);
    operand_t b = make_layout(&call.layout_b, order_b, b_n ? k : n, b_n ? n : k, factors, batch, mode);
    operand_t c = make_layout(&call.layout_c, order_d, m, n, type_d, batch, mode), d = c;
    call.layout_d = call.layout_c;
    if (!in_place)
        d = make_layout(&call.layout_d, order_d, m, n, type_d, batch, mode);
    call.a = a.argument, call.b = b.argument, call.d = (void *)d.argument;
    call.c = beta == 0 && !on_device && pick(0, 1) ? NULL : c.argument;
    operand_t bias = {.stride = 0};
    if (epilogue & LT_EPILOGUE_BIAS) {
        bias = make_operand(m, 1, type_d, batch, 0, 1);
        set64(desc_set, call.desc, LT_DESC_BIAS_POINTER, (int64_t)(uintptr_t)bias.argument);
        set64(desc_set, call.desc, LT_DESC_BIAS_BATCH_STRIDE, bias.stride);
        if (pick(0, 1))
            set32(desc_set, call.desc, LT_DESC_BIAS_DATA_TYPE, type_d);
    }
    memcpy(before, arena, ARENA);
    for (int64_t l = 0; l < batch; l++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += element(&a, l, order_a, a_n ? i : p, a_n ? p : i, factors) *
                           element(&b, l, order_b, b_n ? p : j, b_n ? j : p, factors);
                double x = alpha * sum;
                if (beta != 0)
                    x += beta * element(&c, l, order_d, i, j, type_d);
                if (epilogue & LT_EPILOGUE_BIAS)
                    x += read_number(bias.matrices[l], i, type_d);
                x = epilogue & LT_EPILOGUE_GELU ? gelu(x) : epilogue & LT_EPILOGUE_RELU ? fmax(x, 0) : x;
                write_number(d.matrices[l], order_d == LT_ORDER_COL ? i + j * d.ld : i * d.ld + j, type_d, x);
            }
    memcpy(expected, arena, ARENA);
    memcpy(arena, before, ARENA);
    *type = type_d;
    *is_rounded = (epilogue & LT_EPILOGUE_GELU) != 0;
    return call;
}

void drop_lt(const fake_call_t *call)
{
    desc_destroy(call->desc);
    if (call->layout_d != call->layout_c)
        layout_destroy(call->layout_d);
    layout_destroy(call->layout_a);
    layout_destroy(call->layout_b);
    layout_destroy(call->layout_c);
}

/* The arena is as expected: bit for bit, but for the sign of a zero and, where D comes from a function that has no
 * exact values, an error of 2^-9. */
static void assert_arena(const unsigned char expected[ARENA], int type_d, int is_rounded, const fake_call_t *call)
{
    size_t size = type_d == BLAS_R_16F ? 2 : 4;
    for (size_t i = KEPT; i < ARENA; i += size) {
        if (memcmp(arena + i, expected + i, size) == 0)
            continue;
        uint16_t halves[2];
        float floats[2];
        memcpy(&halves[0], arena + i, 2), memcpy(&halves[1], expected + i, 2);
        memcpy(&floats[0], arena + i, 4), memcpy(&floats[1], expected + i, 4);
        double got = size == 2 ? hgemm_half_to_float(halves[0]) : (double)floats[0];
        double want = size == 2 ? hgemm_half_to_float(halves[1]) : (double)floats[1];
        if (!(fabs(got - want) <= (is_rounded ? 0x1p-9 * fmax(1, fabs(want)) : 0)))
            fail_msg("%s, m %lld n %lld k %lld: byte %zu of the arena gives %g, not %g", call->name, (long long)call->m,
                     (long long)call->n, (long long)call->k, i, got, want);
    }
}

/* One random call: hgemm runs it, on the stream that the call is for, and leaves what cuBLAS would. */
void try_one(int entry, void *handle)
{
    static unsigned char expected[ARENA];
    int type_d, is_rounded = 0, is_lt = entry == ENTRY_cublasLtMatmul;
    fake_call_t call = is_lt ? make_lt(expected, &type_d, &is_rounded) : make_blas(entry, handle, expected, &type_d);
    int run_so_far = runs;
    void *stream = is_lt ? call.stream : (void *)(uintptr_t)(0x1000 + 16 * pick(0, 2));
    set_stream(handle, stream);
    assert_int_equal(is_lt ? call_lt(&call) : call_blas(entry, &call), 0);
    if (runs != run_so_far + 1)
        fail_msg("%s, m %lld n %lld k %lld: not hgemm's", call.name, (long long)call.m, (long long)call.n,
                 (long long)call.k);
    assert_ptr_equal(last_used->stream, stream);
    assert_arena(expected, type_d, is_rounded, &call);
    if (is_lt)
        drop_lt(&call);
}

static void *blas_handles[64];
static int blas_count;

void *make_handle(void)
{
    assert_true(blas_count < (int)(sizeof blas_handles / sizeof blas_handles[0]));
    assert_int_equal(blas_create(&blas_handles[blas_count]), 0);
    return blas_handles[blas_count++];
}

int destroy_handles(void **state)
{
    (void)state;
    while (blas_count > 0)
        blas_destroy(blas_handles[--blas_count]);
    return 0;
}

/* ---- Hits and misses -------------------------------------------------------------------------------- */

unsigned char scratch[ARENA];

static fake_call_t good_call_of(int type, int entry, void *handle)
{
    int type_d;
    fake_call_t call = make_blas_of(type, entry, handle, scratch, &type_d);
    set_pointer_mode(handle, BLAS_POINTER_MODE_HOST);
    static const float one = 1;
    static const uint16_t half_one = 0x3c00;
    if (entries[entry].is_ex)
        call.type_c = type, call.compute = BLAS_COMPUTE_32F;
    const int is_half = !entries[entry].is_ex && !entries[entry].is_single;
    call.alpha = call.beta = is_half ? (const void *)&half_one : &one;
    return call;
}

fake_call_t good_call(int entry, void *handle)
{
    return good_call_of(entries[entry].is_single ? BLAS_R_32F : BLAS_R_16F, entry, handle);
}

fake_call_t good_call_of_floats(int entry, void *handle)
{
    return good_call_of(BLAS_R_32F, entry, handle);
}

/* The call reaches the real library as it is, whose status is given, and nothing is touched. */
void expect_passed_on(int entry, const fake_call_t *call, int expected)
{
    int so_far = cublas->calls, run_so_far = runs;
    memcpy(before, arena, ARENA);
    int status = call_blas(entry, call);
    if (status != expected || cublas->calls != so_far + 1)
        fail_msg("%s: status %d, want %d; the real library was called %d times", call->name, status, expected,
                 cublas->calls - so_far);
    assert_passed_on(&cublas->last, call);
    if (run_status == HGEMM_STATUS_SUCCESS)
        assert_int_equal(runs, run_so_far);
    assert_memory_equal(arena, before, ARENA);
}

void expect_hit(int entry, const fake_call_t *call)
{
    int so_far = cublas->calls, run_so_far = runs;
    assert_int_equal(call_blas(entry, call), 0);
    assert_int_equal(cublas->calls, so_far);
    assert_int_equal(runs, run_so_far + 1);
}
