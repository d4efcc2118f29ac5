/* SPDX-License-Identifier: MIT */
/*
 * The cuBLAS door between a program, which is this test, a fake cuBLAS and hgemm.
 *
 *     test_door LIBRARIES mapping    random calls become the descriptors that mean the same
 *     test_door LIBRARIES emulated   random calls give the right results on the emulated T4
 *     test_door LIBRARIES calls      what is declined reaches the real library as it came; streams, captures, threads
 *     test_door LIBRARIES policy W   one product, which hgemm runs (W is "hit") or does not ("miss")
 *     test_door LIBRARIES cost       what the door costs the host
 *
 * LIBRARIES are the paths of a driver, a cuBLAS and a cuBLASLt, separated by commas. Device memory is one arena, of
 * which the host has a copy: where the descriptor is evaluated here, in plain words, or by the emulator, all of it must
 * be as expected afterwards, guards too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"
#include "../util.h"

/* ---- The libraries ------------------------------------------------------------------------------ */

#define X(name, ...) extern name##_fn name; /* the door's, linked into this program */
BLAS_ENTRIES(X)
LT_ENTRIES(X)
#undef X

static fake_driver_t *driver;
static fake_cublas_t *cublas;
static fake_cublas_t *cublaslt; /* NULL where it is the real one */

static int (*blas_create)(void **);
static int (*blas_destroy)(void *);
static int (*set_stream)(void *, void *);
static int (*set_pointer_mode)(void *, int);
static int (*set_math_mode)(void *, int);
static int (*set_sm_count)(void *, int);
static int (*desc_create)(void **, int, int);
static int (*desc_destroy)(void *);
static int (*desc_set)(void *, int, const void *, size_t);
static int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
static int (*layout_destroy)(void *);
static int (*layout_set)(void *, int, const void *, size_t);

static void *must(void *pointer, const char *what)
{
    if (!pointer) {
        printf("FAILED: %s: %s\n", what, dlerror());
        exit(1);
    }
    return pointer;
}

static void find(void *library, const char *symbol, void *function)
{
    void *address = must(dlsym(library, symbol), symbol);
    memcpy(function, &address, sizeof address);
}

/* As Python does it: local to itself, behind the door in the order of search. */
static void open_libraries(char *paths)
{
    void *libraries[3];
    for (int i = 0; i < 3; i++, paths = NULL)
        libraries[i] = must(dlopen(must(strtok(paths, ","), "a library"), RTLD_NOW | RTLD_LOCAL), "a library");
    driver = must(dlsym(libraries[0], "fake_driver"), "fake_driver");
    cublas = must(dlsym(libraries[1], "fake_cublas"), "fake_cublas");
    cublaslt = dlsym(libraries[2], "fake_cublaslt");
    find(libraries[1], "cublasCreate_v2", &blas_create);
    find(libraries[1], "cublasDestroy_v2", &blas_destroy);
    find(libraries[1], "cublasSetStream_v2", &set_stream);
    find(libraries[1], "cublasSetPointerMode_v2", &set_pointer_mode);
    find(libraries[1], "cublasSetMathMode", &set_math_mode);
    find(libraries[1], "cublasSetSmCountTarget", &set_sm_count);
    find(libraries[2], "cublasLtMatmulDescCreate", &desc_create);
    find(libraries[2], "cublasLtMatmulDescDestroy", &desc_destroy);
    find(libraries[2], "cublasLtMatmulDescSetAttribute", &desc_set);
    find(libraries[2], "cublasLtMatrixLayoutCreate", &layout_create);
    find(libraries[2], "cublasLtMatrixLayoutDestroy", &layout_destroy);
    find(libraries[2], "cublasLtMatrixLayoutSetAttribute", &layout_set);
}

/* ---- Device memory ------------------------------------------------------------------------------ */

enum { ARENA = 1 << 17 };

static unsigned char arena[ARENA], before[ARENA];
static unsigned char *base = arena; /* the arena's address on the device */
static size_t used;

/* Ends the test from within a call, where the door holds locks and cmocka could not go on. */
static void check(int condition, const char *what)
{
    if (!condition) {
        printf("FAILED: %s\n", what);
        exit(1);
    }
}

/* The host's copy of what is at a device address. */
static void *host_of(const void *pointer)
{
    size_t at = (size_t)((const unsigned char *)pointer - base);
    check(at < ARENA, "an address is not one of the device");
    return arena + at;
}

/* Space on the device, `offset` bytes past a multiple of 256. */
static void *take(size_t bytes, size_t offset)
{
    unsigned char *taken = base + used + offset;
    used = (used + offset + bytes + 511) / 256 * 256; /* 256 bytes of guard or more */
    check(used < ARENA, "the arena is full");
    return taken;
}

static double read_number(const void *pointer, int64_t index, int type)
{
    const void *at = host_of(pointer);
    return type == BLAS_R_16F ? hgemm_half_to_float(((const uint16_t *)at)[index]) : ((const float *)at)[index];
}

static void write_number(void *pointer, int64_t index, int type, double value)
{
    void *at = host_of(pointer);
    if (type == BLAS_R_16F)
        ((uint16_t *)at)[index] = hgemm_half_from_float((float)value);
    else
        ((float *)at)[index] = (float)value;
}

/* ---- hgemm, as the door sees it ------------------------------------------------------------------- */

struct hgemm_handle {
    void *stream;
    int has_workspace, prepared;
    atomic_int is_used;
};
typedef struct hgemm_handle handle_t;

static hgemm_handle_t emulator; /* NULL: descriptors are evaluated here */
static handle_t handles[64];
static int created;
static handle_t *last_used;
static atomic_int runs, overlaps;
static hgemm_status_t create_status, run_status; /* what the calls give without doing anything, if not success */
static int does_nothing;

extern hgemm_status_t __real_hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);
extern const char *__real_hgemm_error_detail(hgemm_handle_t handle);
extern hgemm_status_t __real_hgemm_destroy(hgemm_handle_t handle);
extern hgemm_status_t __real_hgemm_create(hgemm_handle_t *handle, const char *device);
hgemm_status_t __wrap_hgemm_create(hgemm_handle_t *handle, const char *device);
hgemm_status_t __wrap_hgemm_destroy(hgemm_handle_t handle);
hgemm_status_t __wrap_hgemm_set_stream(hgemm_handle_t handle, void *stream);
hgemm_status_t __wrap_hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes);
hgemm_status_t __wrap_hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc);
hgemm_status_t __wrap_hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);
const char *__wrap_hgemm_error_detail(hgemm_handle_t handle);

hgemm_status_t __wrap_hgemm_create(hgemm_handle_t *handle, const char *device)
{
    if (create_status != HGEMM_STATUS_SUCCESS)
        return create_status;
    if (strcmp(device, "cuda:1") != 0 || driver->capture) /* it allocates */
        return HGEMM_STATUS_INVALID_DEVICE;
    handles[created].has_workspace = 1;
    *handle = &handles[created++];
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t __wrap_hgemm_destroy(hgemm_handle_t handle)
{
    (void)handle;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t __wrap_hgemm_set_stream(hgemm_handle_t handle, void *stream)
{
    handle->stream = stream;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t __wrap_hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes)
{
    handle->has_workspace = bytes != 0;
    return pointer && (uintptr_t)pointer % 128 == 0 ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_NOT_SUPPORTED;
}

hgemm_status_t __wrap_hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    (void)desc;
    handle->prepared = 1;
    return run_status;
}

const char *__wrap_hgemm_error_detail(hgemm_handle_t handle)
{
    return handle ? "words of hgemm" : "";
}

static int type_of(hgemm_type_t type)
{
    return type == HGEMM_TYPE_F16 ? BLAS_R_16F : BLAS_R_32F;
}

/* Matrix number `index` of an operand. */
static const void *matrix_of(const hgemm_desc_t *desc, const void *x, int64_t stride, hgemm_type_t type, int64_t index)
{
    if (desc->batch_mode == HGEMM_BATCH_POINTERS)
        return ((const void *const *)host_of(x))[index];
    return (const char *)x + index * stride * (type == HGEMM_TYPE_F16 ? 2 : 4);
}

static int64_t at(const hgemm_desc_t *desc, int64_t row, int64_t column, int64_t ld)
{
    return desc->layout == HGEMM_ROW_MAJOR ? row * ld + column : row + column * ld;
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double activate(hgemm_activation_t activation, double x)
{
    switch (activation) {
    case HGEMM_ACTIVATION_NONE: return x;
    case HGEMM_ACTIVATION_RELU: return x > 0 ? x : 0;
    case HGEMM_ACTIVATION_GELU_TANH: return gelu(x);
    default: check(0, "an activation that cuBLASLt does not have"); return 0;
    }
}

/* What hgemm.h says that the descriptor means. */
static void evaluate(const hgemm_desc_t *desc)
{
    double alpha = desc->alpha_pointer ? read_number(desc->alpha_pointer, 0, BLAS_R_32F) : desc->alpha;
    double beta = desc->beta_pointer ? read_number(desc->beta_pointer, 0, BLAS_R_32F) : desc->beta;
    check(desc->type_a == HGEMM_TYPE_F16 && desc->type_b == HGEMM_TYPE_F16 && !desc->gate && !desc->flags &&
              desc->batch_mode != HGEMM_BATCH_GROUPED && !desc->gather_a && !desc->scatter_d && !desc->kernel,
          "the descriptor says what no call of cuBLAS does");
    for (int64_t l = 0; l < desc->batch; l++) {
        const void *a = matrix_of(desc, desc->a, desc->stride_a, HGEMM_TYPE_F16, l);
        const void *b = matrix_of(desc, desc->b, desc->stride_b, HGEMM_TYPE_F16, l);
        const void *c = desc->c ? matrix_of(desc, desc->c, desc->stride_c, desc->type_c, l) : NULL;
        void *d = (void *)matrix_of(desc, desc->d, desc->stride_d, desc->type_d, l);
        for (int64_t i = 0; i < desc->m; i++)
            for (int64_t j = 0; j < desc->n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < desc->k; p++)
                    sum +=
                        read_number(a, desc->op_a == HGEMM_OP_N ? at(desc, i, p, desc->lda) : at(desc, p, i, desc->lda),
                                    BLAS_R_16F) *
                        read_number(b, desc->op_b == HGEMM_OP_N ? at(desc, p, j, desc->ldb) : at(desc, j, p, desc->ldb),
                                    BLAS_R_16F);
                double value = alpha * sum;
                if (beta != 0)
                    value += beta * read_number(c, at(desc, i, j, desc->ldc), type_of(desc->type_c));
                if (desc->bias)
                    value += read_number(matrix_of(desc, desc->bias, desc->stride_bias, desc->type_bias, l),
                                         desc->bias_mode == HGEMM_BIAS_PER_ROW ? i : j, type_of(desc->type_bias));
                write_number(d, at(desc, i, j, desc->ldd), type_of(desc->type_d), activate(desc->activation, value));
            }
    }
}

static hgemm_status_t emulate(const hgemm_desc_t *desc)
{
    check(hgemm_upload(emulator, base, arena, ARENA) == HGEMM_STATUS_SUCCESS, "hgemm_upload");
    hgemm_status_t status = __real_hgemm_run_desc(emulator, desc);
    check(status != HGEMM_STATUS_DEVICE_ERROR, __real_hgemm_error_detail(emulator)); /* D may be half written */
    check(hgemm_download(emulator, arena, base, ARENA) == HGEMM_STATUS_SUCCESS, "hgemm_download");
    return status;
}

static hgemm_type_t last_types[4]; /* of A, B, C and D, where hgemm does nothing */

hgemm_status_t __wrap_hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    overlaps += handle->is_used++;
    if (does_nothing && desc->type_a != HGEMM_TYPE_F16) { /* those tests have one thread */
        const hgemm_type_t types[] = {desc->type_a, desc->type_b, desc->type_c, desc->type_d};
        memcpy(last_types, types, sizeof types);
    }
    if (does_nothing || run_status != HGEMM_STATUS_SUCCESS) {
        sched_yield(); /* time for another thread to come in, if it can */
        runs++;
        handle->is_used--;
        return run_status;
    }
    pthread_mutex_lock(&lock);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    last_used = handle;
    runs++;
    if (emulator)
        status = emulate(desc);
    else
        evaluate(desc);
    pthread_mutex_unlock(&lock);
    handle->is_used--;
    return status;
}

/* ---- Calls ------------------------------------------------------------------------------------------ */

enum entry_t {
#define X(name, ...) ENTRY_##name,
    BLAS_ENTRIES(X) LT_ENTRIES(X)
#undef X
        ENTRIES
};

static const struct {
    const char *name;
    int is_ex, is_strided, is_batched;
} entries[ENTRIES] = {
#define HALF 0, 0, 0
#define HALF_STRIDED 0, 1, 0
#define HALF_BATCHED 0, 0, 1
#define EX 1, 0, 0
#define EX_STRIDED 1, 1, 0
#define EX_BATCHED 1, 0, 1
#define X(name, kind, integer) {#name, kind},
    BLAS_ENTRIES(X)
#undef X
        {"cublasLtMatmul", 0, 0, 0}};

#define CALL_HALF(name, T)                                                                                            \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, (T)f->lda, f->b, (T)f->ldb, f->beta, \
         (void *)f->c, (T)f->ldc)
#define CALL_HALF_STRIDED(name, T)                                                                             \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, f->a, (T)f->lda, f->stride_a, f->b, \
         (T)f->ldb, f->stride_b, f->beta, (void *)f->c, (T)f->ldc, f->stride_c, (T)f->batch)
#define CALL_HALF_BATCHED(name, T)                                                                               \
    name(f->handle, f->op_a, f->op_b, (T)f->m, (T)f->n, (T)f->k, f->alpha, (const void *const *)f->a, (T)f->lda, \
         (const void *const *)f->b, (T)f->ldb, f->beta, (void *const *)f->c, (T)f->ldc, (T)f->batch)
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

static int call_blas(int entry, const fake_call_t *f)
{
    switch (entry) {
#define X(name, kind, integer) \
    case ENTRY_##name: return CALL_##kind(name, integer);
        BLAS_ENTRIES(X)
#undef X
    default: return -1;
    }
}

static int call_lt(const fake_call_t *f)
{
    return cublasLtMatmul(f->handle, f->desc, f->alpha, f->a, f->layout_a, f->b, f->layout_b, f->beta, f->c,
                          f->layout_c, f->d, f->layout_d, f->lt_algo, f->workspace, f->workspace_bytes, f->stream);
}

/* The last call that the fake library saw is this one, to the last argument. */
static void assert_passed_on(const fake_call_t *seen, const fake_call_t *call)
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

static rng_t rng;

static int64_t pick(int64_t lowest, int64_t highest)
{
    return rng_between(&rng, lowest, highest);
}

/* A fresh arena: everything is NaN until it is taken. */
static void clear(void)
{
    used = 256;
    memset(arena, 0xff, sizeof arena);
}

/* A batch of matrices of `lines` runs of `width` small integers, apart by ld; or an array of pointers to them. */
typedef struct operand_t {
    const void *argument;
    void *matrices[4];
    int64_t ld;
    long long stride;
} operand_t;

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

/* A scalar of the compute type in host or device memory. */
static const void *make_scalar(int is_half, int on_device, double value)
{
    static uint64_t host[16];
    static int next;
    void *where = on_device ? take(4, 0) : &host[next++ % 16];
    void *written = on_device ? host_of(where) : where;
    if (is_half)
        *(uint16_t *)written = hgemm_half_from_float((float)value);
    else
        *(float *)written = (float)value;
    return where;
}

/* A random call of one of cuBLAS's functions; `expected` becomes the arena after it. */
static fake_call_t make_blas(int entry, void *handle, unsigned char expected[ARENA], int *type_d)
{
    int is_half = !entries[entry].is_ex || pick(0, 1);
    int on_device = !is_half && pick(0, 3) == 0;
    int type_c = is_half || pick(0, 1) ? BLAS_R_16F : BLAS_R_32F;
    int is_batch = entries[entry].is_strided || entries[entry].is_batched;
    int64_t batch = is_batch ? pick(1, 3) : 1;
    fake_call_t call = {.name = entries[entry].name, .handle = handle};
    clear();
    call.op_a = (int)pick(0, 2), call.op_b = (int)pick(0, 2);
    call.m = pick(1, 40), call.n = pick(1, 40), call.k = pick(0, 9) ? pick(1, 40) : 0;
    double alpha = scalars[pick(0, 5)], beta = scalars[pick(0, 5)];
    call.alpha = make_scalar(is_half, on_device, alpha);
    call.beta = make_scalar(is_half, on_device, beta);
    int a_n = call.op_a == BLAS_OP_N, b_n = call.op_b == BLAS_OP_N, pointers = entries[entry].is_batched;
    operand_t a = make_operand(a_n ? call.m : call.k, a_n ? call.k : call.m, BLAS_R_16F, batch, pointers, 1);
    operand_t b = make_operand(b_n ? call.k : call.n, b_n ? call.n : call.k, BLAS_R_16F, batch, pointers, 1);
    operand_t c = make_operand(call.m, call.n, type_c, batch, pointers, 0);
    call.a = a.argument, call.lda = a.ld;
    call.b = b.argument, call.ldb = b.ld;
    call.c = c.argument, call.ldc = c.ld;
    if (entries[entry].is_strided)
        call.stride_a = a.stride, call.stride_b = b.stride, call.stride_c = c.stride;
    if (is_batch)
        call.batch = batch;
    if (entries[entry].is_ex) {
        call.type_a = call.type_b = BLAS_R_16F, call.type_c = type_c;
        call.compute = is_half ? BLAS_COMPUTE_16F : BLAS_COMPUTE_32F;
        call.algo = pick(0, 1) ? BLAS_GEMM_DEFAULT : BLAS_GEMM_DEFAULT_TENSOR_OP;
    }
    memcpy(before, arena, ARENA);
    for (int64_t l = 0; l < batch; l++)
        for (int64_t i = 0; i < call.m; i++)
            for (int64_t j = 0; j < call.n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < call.k; p++)
                    sum += read_number(a.matrices[l], a_n ? i + p * a.ld : p + i * a.ld, BLAS_R_16F) *
                           read_number(b.matrices[l], b_n ? p + j * b.ld : j + p * b.ld, BLAS_R_16F);
                double old = beta != 0 ? beta * read_number(c.matrices[l], i + j * c.ld, type_c) : 0;
                write_number(c.matrices[l], i + j * c.ld, type_c, alpha * sum + old);
            }
    memcpy(expected, arena, ARENA);
    memcpy(arena, before, ARENA);
    set_pointer_mode(handle, on_device ? BLAS_POINTER_MODE_DEVICE : BLAS_POINTER_MODE_HOST);
    *type_d = type_c;
    return call;
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
static operand_t make_layout(void **layout, int order, int64_t rows, int64_t columns, int type, int64_t batch, int mode)
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

static fake_call_t make_lt(unsigned char expected[ARENA], int *type, int *is_rounded)
{
    static const int epilogues[] = {LT_EPILOGUE_DEFAULT,   LT_EPILOGUE_BIAS, LT_EPILOGUE_RELU,
                                    LT_EPILOGUE_RELU_BIAS, LT_EPILOGUE_GELU, LT_EPILOGUE_GELU_BIAS};
    static const int ops[] = {BLAS_OP_N, BLAS_OP_T, BLAS_OP_C};
    int is_half = (int)pick(0, 1), on_device = !is_half && pick(0, 3) == 0;
    int type_d = is_half || pick(0, 1) ? BLAS_R_16F : BLAS_R_32F;
    int order_a = (int)pick(0, 1), order_b = (int)pick(0, 1), order_d = (int)pick(0, 1), in_place = (int)pick(0, 1);
    int mode = pick(0, 5) == 0 ? LT_BATCH_MODE_POINTER_ARRAY : LT_BATCH_MODE_STRIDED;
    int epilogue = mode == LT_BATCH_MODE_STRIDED ? epilogues[pick(0, 5)] : epilogues[2 * pick(0, 2)];
    int op_a = ops[pick(0, 2)], op_b = ops[pick(0, 2)];
    int64_t m = pick(1, 40), n = pick(1, 40), k = pick(1, 40), batch = pick(1, 2);
    fake_call_t call = {.name = "cublasLtMatmul", .handle = &rng, .stream = (void *)0x5000, .workspace_bytes = 7};
    clear();
    double alpha = scalars[pick(0, 5)], beta = scalars[pick(0, 5)];
    call.alpha = make_scalar(is_half, on_device, alpha);
    call.beta = make_scalar(is_half, on_device, beta);
    int compute = is_half ? BLAS_COMPUTE_16F : BLAS_COMPUTE_32F;
    assert_int_equal(desc_create(&call.desc, compute, is_half ? BLAS_R_16F : BLAS_R_32F), 0);
    set32(desc_set, call.desc, LT_DESC_POINTER_MODE, on_device);
    set32(desc_set, call.desc, LT_DESC_TRANSA, op_a);
    set32(desc_set, call.desc, LT_DESC_TRANSB, op_b);
    set32(desc_set, call.desc, LT_DESC_EPILOGUE, epilogue);
    int a_n = op_a == BLAS_OP_N, b_n = op_b == BLAS_OP_N;
    operand_t a = make_layout(&call.layout_a, order_a, a_n ? m : k, a_n ? k : m, BLAS_R_16F, batch, mode);
    operand_t b = make_layout(&call.layout_b, order_b, b_n ? k : n, b_n ? n : k, BLAS_R_16F, batch, mode);
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
                    sum += element(&a, l, order_a, a_n ? i : p, a_n ? p : i, BLAS_R_16F) *
                           element(&b, l, order_b, b_n ? p : j, b_n ? j : p, BLAS_R_16F);
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

static void drop_lt(const fake_call_t *call)
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
    for (size_t i = 0; i < ARENA; i += size) {
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
static void try_one(int entry, void *handle)
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

static void *make_handle(void)
{
    assert_true(blas_count < (int)(sizeof blas_handles / sizeof blas_handles[0]));
    assert_int_equal(blas_create(&blas_handles[blas_count]), 0);
    return blas_handles[blas_count++];
}

static int destroy_handles(void **state)
{
    (void)state;
    while (blas_count > 0)
        blas_destroy(blas_handles[--blas_count]);
    return 0;
}

static void calls_become_descriptors(void **state)
{
    (void)state;
    void *handle = make_handle();
    for (int entry = 0; entry < ENTRIES; entry++)
        for (int i = 0; i < (entry == ENTRY_cublasLtMatmul ? 400 : 60); i++)
            try_one(entry, handle);
}

static void results_are_right_on_the_emulator(void **state)
{
    (void)state;
    void *handle = make_handle(), *memory;
    const char *asked = getenv("HGEMM_DEVICE"); /* t4emu:check, say */
    assert_int_equal(__real_hgemm_create(&emulator, asked && *asked ? asked : "t4emu"), HGEMM_STATUS_SUCCESS);
    assert_int_equal(hgemm_malloc(emulator, &memory, ARENA), HGEMM_STATUS_SUCCESS);
    base = memory;
    for (int entry = 0; entry < ENTRIES; entry++)
        for (int i = 0; i < (entry == ENTRY_cublasLtMatmul ? 60 : 10); i++)
            try_one(entry, handle);
    __real_hgemm_destroy(emulator);
}

/* ---- What hgemm does not run ---------------------------------------------------------------------------- */

static unsigned char scratch[ARENA];

/* A call that hgemm runs. */
static fake_call_t good_call(int entry, void *handle)
{
    int type_d;
    fake_call_t call = make_blas(entry, handle, scratch, &type_d);
    set_pointer_mode(handle, BLAS_POINTER_MODE_HOST);
    static const float one = 1;
    static const uint16_t half_one = 0x3c00;
    if (entries[entry].is_ex)
        call.type_c = BLAS_R_16F, call.compute = BLAS_COMPUTE_32F;
    call.alpha = call.beta = entries[entry].is_ex ? (const void *)&one : &half_one;
    return call;
}

/* The call reaches the real library as it is, whose status is given, and nothing is touched. */
static void expect_passed_on(int entry, const fake_call_t *call, int expected)
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

static void expect_hit(int entry, const fake_call_t *call)
{
    int so_far = cublas->calls, run_so_far = runs;
    assert_int_equal(call_blas(entry, call), 0);
    assert_int_equal(cublas->calls, so_far);
    assert_int_equal(runs, run_so_far + 1);
}

enum { EXECUTION_FAILED = 13 };

static void what_cublas_refuses_it_refuses(void **state)
{
    (void)state;
    static const char *const faults[] = {"handle", "m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "op"};
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        fake_call_t call = good_call(entry, handle);
        expect_hit(entry, &call);
        for (int fault = 0; fault < 10; fault++) {
            call = good_call(entry, handle);
            static const uint16_t zeros[2];
            if (fault >= 1 && fault <= 6 && pick(0, 1)) /* also where A and B are not read */
                call.alpha = zeros;
            switch (fault) {
            case 0: call.handle = NULL; break;
            case 1: call.m = -1; break;
            case 2: call.n = -1; break;
            case 3: call.k = -1; break;
            case 4: call.lda = (call.op_a == BLAS_OP_N ? call.m : call.k) - 1; break;
            case 5: call.ldb = (call.op_b == BLAS_OP_N ? call.k : call.n) - 1; break;
            case 6: call.ldc = call.m - 1; break;
            case 7: call.alpha = NULL; break;
            case 8: call.beta = NULL; break;
            default: call.op_b = 3; break;
            }
            print_message("%s: %s\n", call.name, faults[fault]);
            expect_passed_on(entry, &call, fault == 0 ? BLAS_STATUS_NOT_INITIALIZED : BLAS_STATUS_INVALID_VALUE);
        }
        if (entries[entry].is_strided || entries[entry].is_batched) {
            call = good_call(entry, handle);
            call.batch = -1;
            expect_passed_on(entry, &call, BLAS_STATUS_INVALID_VALUE);
        }
    }
}

/* A and B of bfloat16, with C of the same or of floats. */
static void bfloat16_is_taken(void **state)
{
    (void)state;
    void *handle = make_handle();
    does_nothing = 1;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++)
        for (int is_float = 0; is_float < 2 && entries[entry].is_ex; is_float++) {
            const hgemm_type_t type = is_float ? HGEMM_TYPE_F32 : HGEMM_TYPE_BF16;
            fake_call_t call = good_call(entry, handle);
            call.type_a = call.type_b = BLAS_R_16BF;
            call.type_c = is_float ? BLAS_R_32F : BLAS_R_16BF;
            call.compute = BLAS_COMPUTE_32F;
            expect_hit(entry, &call);
            assert_true(last_types[0] == HGEMM_TYPE_BF16 && last_types[1] == HGEMM_TYPE_BF16);
            assert_true(last_types[2] == type && last_types[3] == type);
        }
    does_nothing = 0;
}

static void what_hgemm_does_not_do_cublas_does(void **state)
{
    (void)state;
    void *handle = make_handle();
    cublas->status = EXECUTION_FAILED;
    for (int entry = 0; entry < ENTRY_cublasLtMatmul; entry++) {
        fake_call_t call;
#define DECLINED(change)                                  \
    do {                                                  \
        call = good_call(entry, handle);                  \
        change;                                           \
        expect_passed_on(entry, &call, EXECUTION_FAILED); \
    } while (0)
        DECLINED(call.m = 0);
        DECLINED(call.n = 0);
        DECLINED(call.a = NULL);
        DECLINED(call.b = NULL);
        DECLINED(call.c = NULL);
        DECLINED(set_math_mode(handle, BLAS_PEDANTIC_MATH | 16));
        set_math_mode(handle, 16); /* no reductions in half precision: hgemm has none among float sums */
        call = good_call(entry, handle);
        expect_hit(entry, &call);
        set_math_mode(handle, 0);
        DECLINED(set_sm_count(handle, 8));
        set_sm_count(handle, 0);
        DECLINED(set_pointer_mode(handle, 2));
        if (entries[entry].is_ex) {
            DECLINED(call.type_a = BLAS_R_16BF);
            DECLINED(call.type_b = BLAS_R_32F);
            DECLINED(call.type_c = BLAS_R_16BF);
            DECLINED(call.compute = BLAS_COMPUTE_32F_PEDANTIC);
            DECLINED(call.compute = BLAS_COMPUTE_16F_PEDANTIC);
            DECLINED(call.compute = 74);
            DECLINED((call.compute = BLAS_COMPUTE_16F, call.type_c = BLAS_R_32F));
            DECLINED((call.compute = BLAS_COMPUTE_16F, set_pointer_mode(handle, BLAS_POINTER_MODE_DEVICE)));
            DECLINED(call.algo = 5);
            DECLINED((call.type_a = call.type_b = call.type_c = BLAS_R_16BF, call.compute = BLAS_COMPUTE_16F));
            DECLINED((call.type_a = call.type_b = BLAS_R_16BF, call.type_c = BLAS_R_16F));
        } else {
            DECLINED(set_pointer_mode(handle, BLAS_POINTER_MODE_DEVICE));
        }
        if (entries[entry].is_strided || entries[entry].is_batched)
            DECLINED(call.batch = 0);
        static const hgemm_status_t statuses[] = {HGEMM_STATUS_NOT_SUPPORTED, HGEMM_STATUS_OVERLAP,
                                                  HGEMM_STATUS_DEVICE_ERROR, HGEMM_STATUS_OUT_OF_MEMORY};
        for (int i = 0; i < 4; i++) {
            run_status = statuses[i];
            DECLINED((void)0);
        }
        run_status = HGEMM_STATUS_SUCCESS;
    }
}

/* cublasLtMatmul, good but for one thing. */
static void expect_lt_passed_on(const fake_call_t *call, const char *what)
{
    int so_far = cublaslt->calls, run_so_far = runs;
    print_message("cublasLtMatmul: %s\n", what);
    assert_int_equal(call_lt(call), call->handle && call->desc ? EXECUTION_FAILED : BLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublaslt->calls, so_far + 1);
    assert_passed_on(&cublaslt->last, call);
    assert_int_equal(runs, run_so_far);
}

static void what_hgemm_does_not_do_cublaslt_does(void **state)
{
    (void)state;
    static const float one = 1;
    static const struct {
        char object; /* o: the operation; a, b, c, d: a layout */
        int attribute, size;
        int64_t value;
    } changes[] = {
        {'o', LT_DESC_COMPUTE_TYPE, 4, BLAS_COMPUTE_32F_PEDANTIC},
        {'o', LT_DESC_COMPUTE_TYPE, 4, 77},
        {'o', LT_DESC_SCALE_TYPE, 4, BLAS_R_16F},
        {'o', LT_DESC_POINTER_MODE, 4, 2},
        {'o', LT_DESC_POINTER_MODE, 4, 4},
        {'o', LT_DESC_TRANSA, 4, 3},
        {'o', LT_DESC_TRANSB, 4, 3},
        {'o', LT_DESC_TRANSC, 4, BLAS_OP_T},
        {'o', LT_DESC_FILL_MODE, 4, 0},
        {'o', LT_DESC_EPILOGUE, 4, 2 | 128},
        {'o', LT_DESC_EPILOGUE, 4, 32 | 128},
        {'o', LT_DESC_EPILOGUE, 4, 5},
        {'o', LT_DESC_EPILOGUE, 4, 256},
        {'o', LT_DESC_EPILOGUE, 4, LT_EPILOGUE_BIAS}, /* and no bias */
        {'o', LT_DESC_SM_COUNT_TARGET, 4, 8},
        {'o', LT_DESC_A_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_B_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_C_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_D_SCALE_POINTER, 8, 8},
        {'o', LT_DESC_AMAX_D_POINTER, 8, 8},
        {'o', LT_DESC_D_OUT_SCALE_POINTER, 8, 8},
        {'a', LT_LAYOUT_TYPE, 4, BLAS_R_16BF},
        {'b', LT_LAYOUT_TYPE, 4, BLAS_R_16BF},
        {'c', LT_LAYOUT_TYPE, 4, BLAS_R_32F},
        {'d', LT_LAYOUT_TYPE, 4, BLAS_R_32F},
        {'a', LT_LAYOUT_ORDER, 4, 2},
        {'c', LT_LAYOUT_ORDER, 4, LT_ORDER_ROW},
        {'d', LT_LAYOUT_ORDER, 4, 4},
        {'a', LT_LAYOUT_ROWS, 8, 7},
        {'b', LT_LAYOUT_ROWS, 8, 7},
        {'b', LT_LAYOUT_COLS, 8, 7},
        {'c', LT_LAYOUT_COLS, 8, 7},
        {'d', LT_LAYOUT_ROWS, 8, 0},
        {'d', LT_LAYOUT_ROWS, 8, INT64_C(1) << 31},
        {'a', LT_LAYOUT_LD, 8, 7},
        {'b', LT_LAYOUT_LD, 8, 7},
        {'c', LT_LAYOUT_LD, 8, -8},
        {'d', LT_LAYOUT_LD, 8, 0},
        {'a', LT_LAYOUT_BATCH_COUNT, 4, 2},
        {'d', LT_LAYOUT_BATCH_COUNT, 4, 0},
        {'b', LT_LAYOUT_BATCH_MODE, 4, LT_BATCH_MODE_POINTER_ARRAY},
        {'0', 0, 0, 0}, /* no change but in an argument, below */
    };
    int count = (int)(sizeof changes / sizeof changes[0]);
    cublaslt->status = EXECUTION_FAILED;
    for (int i = 0; i < count + 9; i++) {
        fake_call_t call = {.name = "cublasLtMatmul", .handle = &rng, .alpha = &one, .beta = &one};
        char what[64] = "good";
        clear();
        desc_create(&call.desc, BLAS_COMPUTE_32F, BLAS_R_32F);
        call.a = make_layout(&call.layout_a, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.b = make_layout(&call.layout_b, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.c = make_layout(&call.layout_c, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        call.d = (void *)make_layout(&call.layout_d, LT_ORDER_COL, 8, 8, BLAS_R_16F, 1, 0).argument;
        int so_far = cublaslt->calls;
        assert_int_equal(call_lt(&call), 0);
        assert_int_equal(cublaslt->calls, so_far);
        fake_call_t whole = call;
        if (i < count - 1) {
            void *objects[] = {call.layout_a, call.layout_b, call.layout_c, call.layout_d};
            snprintf(what, sizeof what, "%c, attribute %d", changes[i].object, changes[i].attribute);
            if (changes[i].object == 'o')
                assert_int_equal(desc_set(call.desc, changes[i].attribute, &changes[i].value, (size_t)changes[i].size),
                                 0);
            else
                assert_int_equal(layout_set(objects[changes[i].object - 'a'], changes[i].attribute, &changes[i].value,
                                            (size_t)changes[i].size),
                                 0);
        } else {
            snprintf(what, sizeof what, "argument %d", i - count + 1);
            switch (i - count + 1) {
            case 0: call.handle = NULL; break;
            case 1: call.desc = NULL; break;
            case 2: call.alpha = NULL; break;
            case 3: call.beta = NULL; break;
            case 4: call.a = NULL; break;
            case 5: call.b = NULL; break;
            case 6: call.c = NULL; break;
            case 7: call.d = NULL; break;
            case 8: call.layout_c = NULL; break;
            default: call.layout_a = NULL; break;
            }
        }
        expect_lt_passed_on(&call, what);
        drop_lt(&whole);
    }
}

/* ---- Handles, streams, captures, threads -------------------------------------------------------------------- */

static void each_stream_has_a_handle(void **state)
{
    (void)state;
    void *handle = make_handle(), *other = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    handle_t *of_stream[12];
    does_nothing = 0;
    for (int i = 0; i < 12; i++) {
        set_stream(handle, (void *)(uintptr_t)(0x9000 + i));
        expect_hit(ENTRY_cublasGemmEx, &call);
        of_stream[i] = last_used;
        for (int j = 0; j < i; j++)
            assert_true(of_stream[i] != of_stream[j] || !of_stream[i]->has_workspace);
    }
    assert_true(of_stream[0]->has_workspace);
    assert_false(of_stream[11]->has_workspace);
    assert_true(created <= 9);
    call.handle = other; /* another cuBLAS handle on a stream that is known */
    set_stream(other, (void *)0x9000);
    expect_hit(ENTRY_cublasGemmEx, &call);
    assert_ptr_equal(last_used, of_stream[0]);
    set_stream(other, (void *)1); /* the legacy stream by its two names */
    expect_hit(ENTRY_cublasGemmEx, &call);
    handle_t *legacy = last_used;
    set_stream(other, NULL);
    expect_hit(ENTRY_cublasGemmEx, &call);
    assert_ptr_equal(last_used, legacy);
}

static void captures_share_no_workspace(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    expect_hit(ENTRY_cublasGemmEx, &call);
    int made = created;
    driver->capture = CUDA_CAPTURE_STATUS_ACTIVE;
    for (int i = 0; i < 3; i++) {
        set_stream(handle, (void *)(uintptr_t)(0x7000 + i)); /* no handle of its own */
        expect_hit(ENTRY_cublasGemmEx, &call);
        assert_false(last_used->has_workspace);
        assert_true(last_used->prepared);
        assert_ptr_equal(last_used->stream, (void *)(uintptr_t)(0x7000 + i));
    }
    assert_int_equal(created, made);
    cublas->status = EXECUTION_FAILED;
    driver->capture = 2;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->capture = 0;
}

static void other_contexts_are_left_alone(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    cublas->status = EXECUTION_FAILED;
    driver->another_is_current = 1;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->another_is_current = 0;
    driver->has_no_context = 1;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->has_no_context = 0;
    driver->result = 999;
    expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    driver->result = 0;
    expect_hit(ENTRY_cublasGemmEx, &call);
}

static fake_call_t inner_call;

static void call_lt_from_within(void)
{
    if (cublaslt->calls == 0)
        check(call_lt(&inner_call) == 0, "a call from within cuBLAS");
}

/* What the real cuBLAS calls by public names while it works is not taken from it. */
static void the_real_library_is_left_alone(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    call.type_a = BLAS_R_16BF;
    inner_call = make_lt(scratch, &type_d, &is_rounded);
    cublas->status = cublaslt->status = 0;
    cublas->inner = call_lt_from_within;
    cublaslt->calls = 0;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
    cublas->inner = NULL;
    assert_int_equal(cublaslt->calls, 1);
    assert_passed_on(&cublaslt->last, &inner_call);
    int run_so_far = runs;
    assert_int_equal(call_lt(&inner_call), 0); /* and afterwards they are taken again */
    assert_int_equal(runs, run_so_far + 1);
    drop_lt(&inner_call);
}

enum { THREADS = 8, ROUNDS = 2000 };

static void *call_often(void *parameter)
{
    const fake_call_t *call = parameter;
    intptr_t failures = 0;
    for (int i = 0; i < ROUNDS; i++)
        failures += call_blas(ENTRY_cublasGemmEx, call) != 0;
    return (void *)failures;
}

/* Half of the threads have a stream of their own, the others share one, and each has a cuBLAS handle. */
static void threads_never_meet_in_a_handle(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    fake_call_t calls[THREADS];
    int run_so_far = runs;
    does_nothing = 1;
    for (int i = 0; i < THREADS; i++) {
        calls[i] = good_call(ENTRY_cublasGemmEx, make_handle());
        set_stream(calls[i].handle, (void *)(uintptr_t)(0x9000 + (i < THREADS / 2 ? 0 : i)));
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &calls[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failures;
        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
    does_nothing = 0;
    assert_int_equal(runs, run_so_far + THREADS * ROUNDS);
    assert_int_equal(overlaps, 0);
}

/* ---- Policy, cost ---------------------------------------------------------------------------------------------- */

static const char *expectation;

static void the_policy_decides(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    cublas->status = cublaslt->status = EXECUTION_FAILED;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    fake_call_t lt_call = make_lt(scratch, &type_d, &is_rounded);
    int is_hit = strcmp(expectation, "hit") == 0;
    does_nothing = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call_lt(&lt_call), is_hit ? 0 : EXECUTION_FAILED);
        if (is_hit)
            expect_hit(ENTRY_cublasGemmEx, &call);
        else
            expect_passed_on(ENTRY_cublasGemmEx, &call, EXECUTION_FAILED);
    }
    drop_lt(&lt_call);
}

/* Distinct products for the log: the test's caller looks at what it says. */
static void products_are_logged(void **state)
{
    (void)state;
    void *handle = make_handle();
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle);
    call.op_a = BLAS_OP_T, call.op_b = BLAS_OP_N, call.m = 24, call.n = 16, call.k = 8;
    call.lda = call.ldb = 8, call.ldc = 24;
    for (int i = 0; i < 3; i++)
        expect_hit(ENTRY_cublasGemmEx, &call);
    run_status = HGEMM_STATUS_NOT_SUPPORTED;
    call.n = 8;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
    run_status = HGEMM_STATUS_SUCCESS;
    call.compute = BLAS_COMPUTE_32F_PEDANTIC;
    expect_passed_on(ENTRY_cublasGemmEx, &call, 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least of some averages, which the machine's other work disturbs least. hgemm itself does nothing here. */
static double cost(int entry, const fake_call_t *call)
{
    double least = 1;
    for (int i = 0; i < 50; i++) {
        double begin = seconds();
        for (int j = 0; j < 400; j++)
            assert_int_equal(entry == ENTRY_cublasLtMatmul ? call_lt(call) : call_blas(entry, call), 0);
        double each = (seconds() - begin) / 400;
        least = each < least ? each : least;
    }
    return least;
}

static void a_call_costs_the_host_little(void **state)
{
    (void)state;
    void *handle = make_handle();
    int type_d, is_rounded;
    fake_call_t call = good_call(ENTRY_cublasGemmEx, handle), lt_call = make_lt(scratch, &type_d, &is_rounded);
    does_nothing = 1;
    double gemm = cost(ENTRY_cublasGemmEx, &call), lt = cost(ENTRY_cublasLtMatmul, &lt_call);
    print_message("beside hgemm's own: cublasGemmEx %.0f ns, cublasLtMatmul %.0f ns\n", 1e9 * gemm, 1e9 * lt);
    assert_true(gemm < 2e-6 && lt < 2e-6);
    drop_lt(&lt_call);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest mapping[] = {cmocka_unit_test(calls_become_descriptors)};
    static const struct CMUnitTest emulated[] = {cmocka_unit_test(results_are_right_on_the_emulator)};
    static const struct CMUnitTest policy[] = {cmocka_unit_test(the_policy_decides)};
    static const struct CMUnitTest logged[] = {cmocka_unit_test(products_are_logged)};
    static const struct CMUnitTest costs[] = {cmocka_unit_test(a_call_costs_the_host_little)};
    static const struct CMUnitTest calls[] = {
        cmocka_unit_test(what_cublas_refuses_it_refuses),     cmocka_unit_test(bfloat16_is_taken),
        cmocka_unit_test(what_hgemm_does_not_do_cublas_does), cmocka_unit_test(what_hgemm_does_not_do_cublaslt_does),
        cmocka_unit_test(captures_share_no_workspace),        cmocka_unit_test(other_contexts_are_left_alone),
        cmocka_unit_test(the_real_library_is_left_alone),     cmocka_unit_test(each_stream_has_a_handle),
        cmocka_unit_test(threads_never_meet_in_a_handle),
    };
    if (argc < 3)
        return 2;
    open_libraries(argv[1]);
    rng.state = test_seed();
    driver->capability = 75;
    for (int i = 3; i < argc; i++) {
        if (atoi(argv[i]) > 0)
            driver->capability = atoi(argv[i]);
        else
            expectation = argv[i];
    }
    const char *group = argv[2];
    if (strcmp(group, "mapping") == 0)
        return cmocka_run_group_tests(mapping, NULL, destroy_handles);
    if (strcmp(group, "emulated") == 0)
        return cmocka_run_group_tests(emulated, NULL, destroy_handles);
    if (strcmp(group, "policy") == 0)
        return cmocka_run_group_tests(policy, NULL, destroy_handles);
    if (strcmp(group, "log") == 0)
        return cmocka_run_group_tests(logged, NULL, destroy_handles);
    if (strcmp(group, "cost") == 0)
        return cmocka_run_group_tests(costs, NULL, destroy_handles);
    return strcmp(group, "calls") == 0 ? cmocka_run_group_tests(calls, NULL, destroy_handles) : 2;
}
