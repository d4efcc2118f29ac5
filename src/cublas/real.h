/* SPDX-License-Identifier: MIT */
/* The real cuBLAS, as the program has loaded it: to ask it, and to hand calls on to it. */
#ifndef HGEMM_CUBLAS_REAL_H
#define HGEMM_CUBLAS_REAL_H

#include "abi.h"

typedef enum real_symbol_t {
#define X(name, ...) REAL_##name,
    BLAS_ENTRIES(X) LT_ENTRIES(X) BLAS_QUERIES(X)
#undef X
        REAL_COUNT
} real_symbol_t;

typedef void real_any_fn(void);

/*
 * The real function, NULL while it cannot be found. It is looked for, in this order, among the libraries that
 * follow this one in the program's search order, among those that are loaded under the names
 * libhgemm_real_cublas.so, libcublas.so.13, .12 and .11 (libcublasLt alike), and at the path that
 * HGEMM_CUBLAS_LIBRARY (HGEMM_CUBLASLT_LIBRARY) names. What was found is remembered, and of a cuBLAS that is there also
 * what it does not have.
 */
real_any_fn *real_find(real_symbol_t symbol);

/* Whether the process has loaded a cuBLAS by now. */
int real_is_loaded(void);

/* Evaluates to a pointer to the real function NAME, or NULL. */
#define REAL(name) ((name##_fn *)real_find(REAL_##name))

/* Evaluates to what the real function NAME gives, or says that there is no cuBLAS. */
#define REAL_CALL(name, arguments) \
    (!REAL(name) ? BLAS_STATUS_NOT_INITIALIZED : real_leave((real_enter(), REAL(name) arguments)))

/* Between the two a thread is in the real library: what that calls by the names which the door takes is its
 * own affair. real_is_running() says whether the calling thread is there. */
void real_enter(void);
int real_leave(int status); /* gives the status */
int real_is_running(void);

#endif
