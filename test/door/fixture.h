/* SPDX-License-Identifier: MIT */
/*
 * What the door stands between in its tests: the fake libraries, which play the program's cuBLAS and driver, and a
 * stand-in for hgemm, which notes its calls and evaluates descriptors in plain words or on the emulated T4.
 *
 * Device memory is one arena, of which the host has a copy: all of it must be as expected after a call, guards too.
 */
#ifndef TEST_DOOR_FIXTURE_H
#define TEST_DOOR_FIXTURE_H

#include "fake.h"
#include "../common/util.h"

/* ---- The libraries ------------------------------------------------------------------------------ */

#define X(name, ...) extern name##_fn name; /* the door's, linked into the program */
BLAS_ENTRIES(X)
LT_ENTRIES(X)
#undef X

extern fake_driver_t *driver;
extern fake_cublas_t *cublas;
extern fake_cublas_t *cublaslt; /* NULL where it is the real one */

extern int (*blas_create)(void **);
extern int (*blas_destroy)(void *);
extern int (*set_stream)(void *, void *);
extern int (*set_pointer_mode)(void *, int);
extern int (*set_math_mode)(void *, int);
extern int (*set_sm_count)(void *, int); /* NULL where the fake cuBLAS is an old one */
extern int (*desc_create)(void **, int, int);
extern int (*desc_destroy)(void *);
extern int (*desc_set)(void *, int, const void *, size_t);
extern int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
extern int (*layout_destroy)(void *);
extern int (*layout_set)(void *, int, const void *, size_t);

extern int lookups; /* calls of dlsym so far */

/* Opens a driver, a cuBLAS and a cuBLASLt at three paths with commas between them, local to themselves and behind the
 * door in the order of search, as Python does it. */
void open_libraries(char *paths);

/* ---- Device memory ------------------------------------------------------------------------------ */

enum { KEPT = 1 << 14 /* at its beginning, for hgemm_malloc */, ARENA = (1 << 17) + KEPT };

extern unsigned char arena[ARENA];
extern unsigned char *device_base; /* the arena's address on the device */

/* A fresh arena: everything but what is kept is NaN until it is taken. */
void clear_arena(void);

/* Space on the device, `offset` bytes past a multiple of 256. */
void *take(size_t bytes, size_t offset);

/* The host's copy of what is at a device address. */
void *host_of(const void *pointer);

/* An element of BLAS_R_16F or BLAS_R_32F. */
double read_number(const void *pointer, int64_t index, int type);
void write_number(void *pointer, int64_t index, int type, double value);

/* Ends the test from within a call, where the door holds locks and cmocka could not go on. */
void check(int condition, const char *what);

/* ---- hgemm, as the door sees it ------------------------------------------------------------------- */

typedef struct hgemm_handle {
    void *stream;
    int has_workspace, prepared;
    atomic_int is_used;
} handle_t;

extern hgemm_handle_t emulator; /* NULL: descriptors are evaluated here */
extern int created;             /* handles */
extern handle_t *last_used;
extern atomic_int runs, overlaps;                    /* products; those that met another in their handle */
extern atomic_int runs_of_floats;                    /* those of A and B in single precision */
extern int widenings;                                /* calls beside them, that make floats of halves */
extern _Thread_local const void *last_alpha_pointer; /* of a product, by this thread */
extern _Thread_local hgemm_accuracy_t last_accuracy;
extern hgemm_type_t last_types[4];               /* of A, B, C and D, where hgemm does nothing */
extern hgemm_status_t create_status, run_status; /* what the calls give without doing anything, if not success */
extern hgemm_status_t ratio_status;
extern double cublas_ratio;     /* of all products */
extern double expected_seconds; /* of hgemm, for all products, by the cost model */
extern int does_nothing;

double gelu(double x);

/* The functions that are hgemm's where --wrap does not have these in their place. */
extern hgemm_status_t __real_hgemm_create(hgemm_handle_t *handle, const char *device);
extern hgemm_status_t __real_hgemm_destroy(hgemm_handle_t handle);
extern hgemm_status_t __real_hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes);

#endif
