/* SPDX-License-Identifier: MIT */
/*
 * A program that uses cuBLAS and knows nothing of the door, for each way in which programs find cuBLAS:
 *     linked     it was linked to it
 *     opened     it opens a library, local to itself, that was linked to it, as Python opens PyTorch
 *     by_name    it opens libcublas.so.13 and looks names up there
 *     missing    there is none, though the function is there
 *     floats     as linked, but products of floats: a large one and a small one, which hgemm is the slower at on a T4
 * The last argument is what must come of a product of halves, or of the large one of floats: "hgemm" runs it, or
 * "cublas", or "none": an error. "everywhere": hgemm runs the small one of floats, too.
 * IS_LINKED: this build is linked to cuBLAS, and exports functions of an hgemm of its own, which nobody may call.
 * IS_PLUGIN: it is the library that `opened` opens, its second argument.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "hgemm.h"
#include "../device/fake_cuda/libcuda.h"

typedef struct functions_t {
    int (*create)(void **);
    cublasGemmEx_fn *gemm_ex;
} functions_t;

functions_t linked_functions(void);

#ifdef IS_LINKED
extern int cublasCreate_v2(void **);
extern cublasGemmEx_fn cublasGemmEx;

functions_t linked_functions(void)
{
    return (functions_t){cublasCreate_v2, cublasGemmEx};
}

hgemm_status_t hgemm_create(hgemm_handle_t *handle, const char *device)
{
    (void)handle, (void)device;
    abort();
}

void hgemm_desc_init_sized(hgemm_desc_t *desc, size_t size)
{
    (void)desc, (void)size;
    abort();
}

hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    (void)handle, (void)desc;
    abort();
}
#endif

#ifndef IS_PLUGIN

static void *must(void *pointer, const char *what)
{
    if (!pointer) {
        const char *words = dlerror();
        printf("FAILED: %s: %s\n", what, words ? words : "");
        exit(1);
    }
    return pointer;
}

static void find(void *library, const char *symbol, void *function)
{
    void *address = must(dlsym(library, symbol), symbol);
    memcpy(function, &address, sizeof address);
}

static void expect(long got, long wanted, const char *what)
{
    if (got != wanted) {
        printf("FAILED: %s: %ld, not %ld\n", what, got, wanted);
        exit(1);
    }
}

static functions_t find_functions(const char *way, const char *plugin)
{
    functions_t found = {NULL, NULL};
    if (strcmp(way, "opened") == 0) {
        functions_t (*of_plugin)(void);
        find(must(dlopen(plugin, RTLD_NOW | RTLD_LOCAL), plugin), "linked_functions", &of_plugin);
        return of_plugin();
    }
    if (strcmp(way, "by_name") == 0) {
        void *library = must(dlopen("libcublas.so.13", RTLD_LAZY), "libcublas.so.13");
        find(library, "cublasCreate_v2", &found.create);
        find(library, "cublasGemmEx", &found.gemm_ex);
        return found;
    }
    if (strcmp(way, "missing") == 0) {
        find(RTLD_DEFAULT, "cublasGemmEx", &found.gemm_ex);
        return found;
    }
#ifdef IS_LINKED
    return linked_functions();
#else
    return found;
#endif
}

/* What the fake cuBLAS knows, also where the door is before it under its name; NULL: none is loaded. */
static fake_cublas_t *find_cublas(void)
{
    void *real = dlopen("libcublas.so.13", RTLD_LAZY | RTLD_NOLOAD);
    return real ? dlsym(real, "fake_cublas") : NULL;
}

/* A product of floats of that size, whose memory nothing reads, is hgemm's or cuBLAS's. */
static void try_floats(functions_t blas, void *handle, const fake_cuda_t *driver, int size, int is_hgemm)
{
    char *const memory = (char *)0x100000000; /* far apart */
    const float one = 1, zero = 0;
    const fake_cublas_t *cublas = must(find_cublas(), "cuBLAS");
    const int calls = cublas->calls, launches = driver->launches;
    int status = blas.gemm_ex(handle, BLAS_OP_N, BLAS_OP_T, size, size, size, &one, memory, BLAS_R_32F, size,
                              memory + (1 << 30), BLAS_R_32F, size, &zero, memory + (2U << 30), BLAS_R_32F, size,
                              BLAS_COMPUTE_32F, BLAS_GEMM_DEFAULT);
    expect(status, is_hgemm ? 0 : 13, "the status for floats");
    expect(driver->launches, launches + is_hgemm, "launches for floats");
    expect(cublas->calls, calls + !is_hgemm, "calls of cuBLAS for floats");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *way = argv[1], *wanted = argv[argc - 1];
    functions_t blas = find_functions(way, argv[2]);
    static void *handle; /* not a leak to a sanitizer */
    void *library = must(dlopen("libcuda.so.1", RTLD_NOW), "libcuda.so.1"), *context;
    fake_cuda_t *driver = must(dlsym(library, "fake_cuda"), "fake_cuda");
    int (*retain)(void **, int), (*set_current)(void *);
    find(library, "cuDevicePrimaryCtxRetain", &retain);
    find(library, "cuCtxSetCurrent", &set_current);
    expect(retain(&context, 100), 0, "cuDevicePrimaryCtxRetain");
    expect(set_current(context), 0, "cuCtxSetCurrent");

    static uint16_t a[64 * 64], b[64 * 64], c[64 * 64];
    const float one = 1, zero = 0;
    int is_hgemm = strcmp(wanted, "hgemm") == 0, is_there = strcmp(wanted, "none") != 0;
    fake_cublas_t *cublas = find_cublas();
    if (blas.create)
        expect(blas.create(&handle), 0, "cublasCreate");
    if (cublas)
        cublas->status = 13;
    if (strcmp(way, "floats") == 0) {
        const int is_everywhere = strcmp(wanted, "everywhere") == 0;
        try_floats(blas, handle, driver, 2048, is_hgemm || is_everywhere);
        try_floats(blas, handle, driver, 64, is_everywhere);
        return 0;
    }
    int failure = handle ? 13 : BLAS_STATUS_NOT_INITIALIZED;
    for (int i = 1; i <= 3; i++) {
        int status = blas.gemm_ex(handle, BLAS_OP_N, BLAS_OP_T, 64, 64, 64, &one, a, BLAS_R_16F, 64, b, BLAS_R_16F, 64,
                                  &zero, c, BLAS_R_16F, 64, BLAS_COMPUTE_32F, BLAS_GEMM_DEFAULT);
        expect(status, is_hgemm ? 0 : failure, "the status for halves");
        expect(driver->launches, is_hgemm ? i : 0, "launches");
        cublas = find_cublas();
        expect(cublas != NULL, is_there, "cuBLAS is there");
        expect(cublas ? cublas->calls : 0, is_hgemm || !is_there ? 0 : i, "calls of cuBLAS");
    }
    enum { R_64F = 1, COMPUTE_64F = 70 };
    int so_far = cublas ? cublas->calls : 0;
    int status = blas.gemm_ex(handle, BLAS_OP_N, BLAS_OP_T, 32, 32, 32, &one, a, R_64F, 32, b, R_64F, 32, &zero, c,
                              R_64F, 32, COMPUTE_64F, BLAS_GEMM_DEFAULT);
    expect(status, failure, "the status for doubles");
    expect(cublas ? cublas->calls : 0, is_there ? so_far + 1 : 0, "calls of cuBLAS for doubles");
    return 0;
}

#endif
