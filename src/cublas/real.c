/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[REAL_COUNT] = {
#define X(name, ...) [REAL_##name] = #name,
    BLAS_ENTRIES(X) LT_ENTRIES(X) BLAS_QUERIES(X)
#undef X
};

static _Thread_local int depth;

/* Whether the address lies in this library: the door finds itself where it is loaded as libcublas. */
static int is_ours(void *address)
{
    static const char here;
    Dl_info ours, its;
    return dladdr(&here, &ours) && dladdr(address, &its) && ours.dli_fbase == its.dli_fbase;
}

static void *look_up(void *library, const char *name)
{
    void *address = dlsym(library, name);
    return address && !is_ours(address) ? address : NULL;
}

static const char *const blas[] = {"libhgemm_real_cublas.so", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
static const char *const lt[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};

static int is_of_lt(real_symbol_t symbol)
{
    return strncmp(names[symbol], "cublasLt", 8) == 0;
}

static void *search_loaded(real_symbol_t symbol)
{
    const char *const *sonames = is_of_lt(symbol) ? lt : blas;
    const size_t count = is_of_lt(symbol) ? sizeof lt / sizeof lt[0] : sizeof blas / sizeof blas[0];
    void *address = look_up(RTLD_NEXT, names[symbol]);
    for (size_t i = 0; !address && i < count; i++) {
        void *library = dlopen(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            address = look_up(library, names[symbol]);
            if (!address)
                dlclose(library); /* else it stays, whatever the program does */
        }
    }
    return address;
}

static void *search(real_symbol_t symbol)
{
    void *address = search_loaded(symbol);
    const char *path = getenv(is_of_lt(symbol) ? "HGEMM_CUBLASLT_LIBRARY" : "HGEMM_CUBLAS_LIBRARY");
    if (!address && path && *path) {
        void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (library)
            address = look_up(library, names[symbol]);
    }
    return address;
}

/* What every release has: where it is found and another function is not, the release has none. */
static real_symbol_t companion(real_symbol_t symbol)
{
    return is_of_lt(symbol) ? REAL_cublasLtMatmulDescGetAttribute : REAL_cublasGetStream_v2;
}

real_any_fn *real_find(real_symbol_t symbol)
{
    static const char absent;
    static void *_Atomic found[REAL_COUNT];
    void *address = atomic_load_explicit(&found[symbol], memory_order_acquire);
    if (!address) {
        const int is_there = symbol != companion(symbol) && real_find(companion(symbol));
        address = search(symbol);
        if (!address && is_there)
            address = (void *)&absent;
        atomic_store_explicit(&found[symbol], address, memory_order_release);
    }
    if (address == (void *)&absent)
        address = NULL;
    real_any_fn *function; /* POSIX, not C, lets an object pointer carry a function: it is copied, not converted */
    memcpy(&function, &address, sizeof function);
    return function;
}

int real_is_loaded(void)
{
    return search_loaded(companion(REAL_cublasGemmEx)) != NULL;
}

void real_enter(void)
{
    depth++;
}

int real_leave(int status)
{
    depth--;
    return status;
}

int real_is_running(void)
{
    return depth > 0;
}
