/* SPDX-License-Identifier: MIT */
/* Calls of cuBLAS and cublasLtMatmul: random ones, and what becomes of them. */
#ifndef TEST_DOOR_CALLS_H
#define TEST_DOOR_CALLS_H

#include "fixture.h"

enum entry_t {
#define X(name, ...) ENTRY_##name,
    BLAS_ENTRIES(X) LT_ENTRIES(X)
#undef X
        ENTRIES
};

typedef struct entry_info_t {
    const char *name;
    int is_ex, is_single, is_strided, is_batched; /* is_single: of floats alone */
} entry_info_t;

extern const entry_info_t entries[ENTRIES];

int call_blas(int entry, const fake_call_t *call);
int call_lt(const fake_call_t *call);

/* ---- Random calls ------------------------------------------------------------------------------------- */

extern rng_t rng;
extern int draws_floats; /* of A and B */

int64_t pick(int64_t lowest, int64_t highest);

/* A batch of matrices of `lines` runs of `width` small integers, apart by ld; or an array of pointers to them. */
typedef struct operand_t {
    const void *argument;
    void *matrices[4];
    int64_t ld;
    long long stride;
} operand_t;

/* A layout of a rows x columns matrix in an order, and its numbers. */
operand_t make_layout(void **layout, int order, int64_t rows, int64_t columns, int type, int64_t batch, int mode);

/* A random call of one of cuBLAS's functions in a fresh arena, with C of *type_d; `expected` becomes the arena after
 * it. A function that takes types has halves (C of either) and, if it may, floats by turns. */
fake_call_t make_blas(int entry, void *handle, unsigned char expected[ARENA], int *type_d);

/* The same of cublasLtMatmul. `*is_rounded`: D comes from a function that has no exact values. */
fake_call_t make_lt(unsigned char expected[ARENA], int *type_d, int *is_rounded);
void drop_lt(const fake_call_t *call);

extern unsigned char scratch[ARENA]; /* for what is expected and not looked at */

/* A call that hgemm runs, with scalars in host memory; of halves, where the function has a choice, or of floats. */
fake_call_t good_call(int entry, void *handle);
fake_call_t good_call_of_floats(int entry, void *handle);

/* A handle of the fake cuBLAS, until destroy_handles, a group's teardown. */
void *make_handle(void);
int destroy_handles(void **state);

/* ---- What becomes of them ------------------------------------------------------------------------------ */

enum { EXECUTION_FAILED = 13 };

/* One random call: hgemm runs it, on the stream that the call is for, and leaves what cuBLAS would. */
void try_one(int entry, void *handle);

void expect_hit(int entry, const fake_call_t *call);

/* The call reaches the real library as it is, whose status is given, and nothing is touched. */
void expect_passed_on(int entry, const fake_call_t *call, int expected);

/* The last call that the fake library saw is this one, to the last argument. */
void assert_passed_on(const fake_call_t *seen, const fake_call_t *call);

#endif
