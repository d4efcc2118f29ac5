/* SPDX-License-Identifier: MIT */
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

#include "fixture.h"

/* ---- The libraries ------------------------------------------------------------------------------ */

fake_driver_t *driver;
fake_cublas_t *cublas;
fake_cublas_t *cublaslt;

int (*blas_create)(void **);
int (*blas_destroy)(void *);
int (*set_stream)(void *, void *);
int (*set_pointer_mode)(void *, int);
int (*set_math_mode)(void *, int);
int (*set_sm_count)(void *, int);
int (*desc_create)(void **, int, int);
int (*desc_destroy)(void *);
int (*desc_set)(void *, int, const void *, size_t);
int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
int (*layout_destroy)(void *);
int (*layout_set)(void *, int, const void *, size_t);

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

int lookups;

void *__real_dlsym(void *library, const char *symbol);
void *__wrap_dlsym(void *library, const char *symbol);

void *__wrap_dlsym(void *library, const char *symbol)
{
    lookups++;
    return __real_dlsym(library, symbol);
}

/* As Python does it: local to itself, behind the door in the order of search. */
void open_libraries(char *paths)
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
    if (dlsym(libraries[1], "cublasSetSmCountTarget"))
        find(libraries[1], "cublasSetSmCountTarget", &set_sm_count);
    find(libraries[2], "cublasLtMatmulDescCreate", &desc_create);
    find(libraries[2], "cublasLtMatmulDescDestroy", &desc_destroy);
    find(libraries[2], "cublasLtMatmulDescSetAttribute", &desc_set);
    find(libraries[2], "cublasLtMatrixLayoutCreate", &layout_create);
    find(libraries[2], "cublasLtMatrixLayoutDestroy", &layout_destroy);
    find(libraries[2], "cublasLtMatrixLayoutSetAttribute", &layout_set);
}

/* ---- Device memory ------------------------------------------------------------------------------ */

unsigned char arena[ARENA];
unsigned char *device_base = arena; /* the arena's address on the device */
static size_t used;                 /* of what calls take */
static size_t kept;                 /* of what hgemm_malloc gives, before that */

/* Ends the test from within a call, where the door holds locks and cmocka could not go on. */
void check(int condition, const char *what)
{
    if (!condition) {
        printf("FAILED: %s\n", what);
        exit(1);
    }
}

/* The host's copy of what is at a device address. */
void *host_of(const void *pointer)
{
    size_t at = (size_t)((const unsigned char *)pointer - device_base);
    check(at < ARENA, "an address is not one of the device");
    return arena + at;
}

void clear_arena(void)
{
    used = KEPT + 256;
    memset(arena + KEPT, 0xff, sizeof arena - KEPT);
}

/* Space on the device, `offset` bytes past a multiple of 256. */
void *take(size_t bytes, size_t offset)
{
    unsigned char *taken = device_base + used + offset;
    used = (used + offset + bytes + 511) / 256 * 256; /* 256 bytes of guard or more */
    check(used < ARENA, "the arena is full");
    return taken;
}

double read_number(const void *pointer, int64_t index, int type)
{
    const void *at = host_of(pointer);
    return type == BLAS_R_16F ? hgemm_half_to_float(((const uint16_t *)at)[index]) : ((const float *)at)[index];
}

void write_number(void *pointer, int64_t index, int type, double value)
{
    void *at = host_of(pointer);
    if (type == BLAS_R_16F)
        ((uint16_t *)at)[index] = hgemm_half_from_float((float)value);
    else
        ((float *)at)[index] = (float)value;
}

/* ---- hgemm, as the door sees it ------------------------------------------------------------------- */

hgemm_handle_t emulator; /* NULL: descriptors are evaluated here */
static handle_t handles[64];
int created;
handle_t *last_used;
atomic_int runs, overlaps, runs_of_floats;
int widenings;
_Thread_local const void *last_alpha_pointer;
double cublas_ratio, expected_seconds = 1e-9;
hgemm_status_t ratio_status;
hgemm_status_t create_status, run_status;
int does_nothing;

extern hgemm_status_t __real_hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);
extern const char *__real_hgemm_error_detail(hgemm_handle_t handle);
hgemm_status_t __wrap_hgemm_create(hgemm_handle_t *handle, const char *device);
hgemm_status_t __wrap_hgemm_destroy(hgemm_handle_t handle);
hgemm_status_t __wrap_hgemm_set_stream(hgemm_handle_t handle, void *stream);
hgemm_status_t __wrap_hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes);
hgemm_status_t __wrap_hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc);
hgemm_status_t __wrap_hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);
hgemm_status_t __wrap_hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes);
hgemm_status_t __wrap_hgemm_get_cublas_ratio(hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio);
hgemm_status_t __wrap_hgemm_plan_create(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc);
hgemm_status_t __wrap_hgemm_plan_get_info(hgemm_plan_t plan, hgemm_plan_info_t *info);
void __wrap_hgemm_plan_destroy(hgemm_plan_t plan);
hgemm_status_t __wrap_hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info);
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

hgemm_status_t __wrap_hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes)
{
    (void)handle;
    *pointer = device_base + kept;
    kept += (bytes + 255) / 256 * 256;
    return kept <= KEPT ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_OUT_OF_MEMORY;
}

hgemm_status_t __wrap_hgemm_get_cublas_ratio(hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio)
{
    (void)handle, (void)desc;
    *ratio = cublas_ratio;
    return ratio_status;
}

hgemm_status_t __wrap_hgemm_plan_create(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    (void)handle, (void)desc;
    *plan = NULL;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t __wrap_hgemm_plan_get_info(hgemm_plan_t plan, hgemm_plan_info_t *info)
{
    (void)plan;
    *info = (hgemm_plan_info_t){.seconds = expected_seconds};
    return HGEMM_STATUS_SUCCESS;
}

void __wrap_hgemm_plan_destroy(hgemm_plan_t plan)
{
    (void)plan;
}

hgemm_status_t __wrap_hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info)
{
    (void)handle;
    *info = (hgemm_device_info_t){.multiprocessors = 40, .clock_khz = 1590000};
    return HGEMM_STATUS_SUCCESS;
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

double gelu(double x)
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
    check(desc->type_a != HGEMM_TYPE_BF16 && desc->type_b == desc->type_a && !desc->gate && !desc->flags &&
              desc->batch_mode != HGEMM_BATCH_GROUPED && !desc->gather_a && !desc->scatter_d && !desc->kernel,
          "the descriptor says what no call of cuBLAS does");
    for (int64_t l = 0; l < desc->batch; l++) {
        const void *a = matrix_of(desc, desc->a, desc->stride_a, desc->type_a, l);
        const void *b = matrix_of(desc, desc->b, desc->stride_b, desc->type_b, l);
        const void *c = desc->c ? matrix_of(desc, desc->c, desc->stride_c, desc->type_c, l) : NULL;
        void *d = (void *)matrix_of(desc, desc->d, desc->stride_d, desc->type_d, l);
        for (int64_t i = 0; i < desc->m; i++)
            for (int64_t j = 0; j < desc->n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < desc->k; p++)
                    sum +=
                        read_number(a, desc->op_a == HGEMM_OP_N ? at(desc, i, p, desc->lda) : at(desc, p, i, desc->lda),
                                    type_of(desc->type_a)) *
                        read_number(b, desc->op_b == HGEMM_OP_N ? at(desc, p, j, desc->ldb) : at(desc, j, p, desc->ldb),
                                    type_of(desc->type_b));
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

/* No call of cuBLAS has C of another type than D: this one makes floats of scalars. */
static int widens(const hgemm_desc_t *desc)
{
    return desc->type_c == HGEMM_TYPE_F16 && desc->type_d == HGEMM_TYPE_F32 && desc->k == 0 && desc->beta == 1;
}

_Thread_local hgemm_accuracy_t last_accuracy;

static void count(const hgemm_desc_t *desc)
{
    if (widens(desc)) {
        widenings++;
        return;
    }
    runs++;
    runs_of_floats += desc->type_a == HGEMM_TYPE_F32;
    last_accuracy = desc->accuracy;
    last_alpha_pointer = desc->alpha_pointer;
}

static hgemm_status_t emulate(const hgemm_desc_t *desc)
{
    check(hgemm_upload(emulator, device_base, arena, ARENA) == HGEMM_STATUS_SUCCESS, "hgemm_upload");
    hgemm_status_t status = __real_hgemm_run_desc(emulator, desc);
    check(status != HGEMM_STATUS_DEVICE_ERROR, __real_hgemm_error_detail(emulator)); /* D may be half written */
    check(hgemm_download(emulator, arena, device_base, ARENA) == HGEMM_STATUS_SUCCESS, "hgemm_download");
    return status;
}

hgemm_type_t last_types[4];

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
        count(desc);
        handle->is_used--;
        return run_status;
    }
    pthread_mutex_lock(&lock);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    last_used = handle;
    count(desc);
    if (emulator)
        status = emulate(desc);
    else
        evaluate(desc);
    pthread_mutex_unlock(&lock);
    handle->is_used--;
    return status;
}
