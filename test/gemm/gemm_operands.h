/* SPDX-License-Identifier: MIT */
/*
 * The operands of a case in host and device memory. Around and between whatever the product may touch lies a NaN, and
 * so it does in what it has no reason to read: rows that no index names, operands that are not read.
 */
#ifndef TEST_GEMM_OPERANDS_H
#define TEST_GEMM_OPERANDS_H

#include "gemm_case.h"
#include "util.h"

/* Every operand's memory; then that of the pointers to its matrices. */
enum { SCALARS = OPERANDS, GROUP_ENDS, GATHER_A, SCATTER_D, POINTERS, BUFFERS = POINTERS + OPERANDS };

typedef struct buffer_t {
    size_t begin, bytes;           /* where the contents begin, and the size of all */
    unsigned char *before, *after; /* as uploaded and as found afterwards; NULL: there is none */
    void *device;
} buffer_t;

typedef struct matrix_t {
    hgemm_type_t type;
    int element;                /* bytes of one */
    int64_t rows, columns;      /* as a mathematical matrix, after its op */
    int64_t row_step, col_step; /* elements between neighbours in a column and in a row */
    int64_t width, ld, stride;  /* width: the contiguous extent */
    int64_t batch;              /* matrices that are stored */
    int is_reversed;            /* the last one is stored first */
} matrix_t;

/* A row of the product: in which matrix of D, C, gate and A it is, and which of B and bias it needs. */
typedef struct product_row_t {
    int64_t shared, own;
    int64_t a, d; /* its row in A, and in D, C, gate and a bias per row */
} product_row_t;

typedef struct operands_t {
    const case_t *c;
    matrix_t x[OPERANDS];
    buffer_t buffers[BUFFERS];
    product_row_t *rows;
    int64_t row_count;
    hgemm_desc_t desc; /* the call */
} operands_t;

void operands_create(operands_t *o, const case_t *c, hgemm_handle_t handle);
void operands_destroy(operands_t *o, hgemm_handle_t handle);

/* Which elements of D stay as they are: those in a row of the product and a column that both stay. */
typedef struct staying_t {
    const unsigned char *rows, *columns; /* 1: it stays */
    int all_of_a, all_of_b;              /* 1: they may depend on other rows of A, on other columns of B */
} staying_t;

/* Draws any bits for all that these may not depend on, and for what lies around and between the matrices. */
void operands_redraw_others(operands_t *o, const staying_t *s, rng_t *rng);

void operands_upload(operands_t *o, hgemm_handle_t handle);
void operands_download(operands_t *o, hgemm_handle_t handle);

/* The buffer that D is in. */
buffer_t *operands_of_d(operands_t *o);

/* The byte of an element, counted in its buffer. */
size_t operands_at(const operands_t *o, int which, int64_t matrix, int64_t i, int64_t j);

/* An element as uploaded. The bias is a row or a column. */
double operands_value(const operands_t *o, int which, int64_t matrix, int64_t i, int64_t j);

/* What has changed but for elements of D, in words; NULL if nothing has. `may_write`: elements of D may have. */
const char *operands_damage(const operands_t *o, int may_write, char words[200]);

/* Conversions, to nearest even. */
double value_of(hgemm_type_t type, const void *from);
void store_value(hgemm_type_t type, void *to, double value);

/* Ends the test where memory ran out. */
void *must(void *pointer);

#endif
