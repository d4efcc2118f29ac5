/* SPDX-License-Identifier: MIT */
/*
 * A program that uses cuBLAS and knows nothing of the door, for each way in which programs find cuBLAS:
 *     linked     it was linked to it
 *     opened     it opens a library, local to itself, that was linked to it, as Python opens PyTorch
 *     by_name    it opens libcublas.so.13 and looks names up there
 *     missing    there is none, though the function is there
 * The last argument is what must come of a product of halves: "hgemm" runs it, or "cublas", or "none": an error.
 * IS_LINKED: this build is linked to cuBLAS. IS_PLUGIN: it is the library that `opened` opens, its second argument.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
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

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *way = argv[1], *wanted = argv[argc - 1];
    functions_t blas = find_functions(way, argv[2]);
    void *library = must(dlopen("libcuda.so.1", RTLD_NOW), "libcuda.so.1"), *context, *handle = NULL;
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
    int so_far = cublas ? cublas->calls : 0;
    int status = blas.gemm_ex(handle, BLAS_OP_N, BLAS_OP_T, 64, 64, 64, &one, a, BLAS_R_32F, 64, b, BLAS_R_32F, 64,
                              &zero, c, BLAS_R_32F, 64, BLAS_COMPUTE_32F, BLAS_GEMM_DEFAULT);
    expect(status, failure, "the status for floats");
    expect(cublas ? cublas->calls : 0, is_there ? so_far + 1 : 0, "calls of cuBLAS for floats");
    return 0;
}

#endif
