/* SPDX-License-Identifier: MIT */
/*
 * One product to test: everything that a descriptor can say, how its operands lie in memory and what they hold. A case
 * is a line of KEY=VALUE words, from which it is made again to the last bit.
 */
#ifndef TEST_GEMM_CASE_H
#define TEST_GEMM_CASE_H

#include "hgemm.h"

enum { A, B, C, D, BIAS, GATE, OPERANDS };

/* What matrices hold: small integers, whose every result is exact; numbers in [-1, 1); integers with NaN and infinities
 * strewn in; where A or B is of floats, numbers of 80 binades in them, but for halves, and such as BOUNDED has
 * elsewhere. */
enum { EXACT, BOUNDED, SPECIAL, SPREAD, FILLS };

enum { NO_BIAS, BIAS_PER_COLUMN, BIAS_PER_ROW };

enum { CASE_LINE = 1200 };

typedef struct case_t {
    int64_t kernel; /* number of the kernel, 0: automatic */
    int64_t layout, op_a, op_b, accumulate;
    int64_t m, n, k, batch;
    int64_t pad[OPERANDS];    /* elements between the rows: leading dimension - width */
    int64_t offset[OPERANDS]; /* elements from a 16-byte aligned address */
    int64_t gap[OPERANDS];    /* elements between the matrices of a batch; -1: all are the same */
    int64_t type[OPERANDS];   /* hgemm_type_t */
    double alpha, beta;
    int64_t alpha_device, beta_device; /* they are in device memory */
    int64_t activation;
    int64_t bias; /* NO_BIAS, ... */
    int64_t gate; /* 1: there is one */
    int64_t batch_mode;
    int64_t alignment; /* promised of pointers, and kept */
    int64_t unused;    /* grouped: rows past the last group */
    int64_t gather, scatter;
    int64_t spare; /* rows that a matrix has beside those of the product, where indices choose among them */
    int64_t index_64;
    int64_t scaled;   /* scales of bfloat16 A and B: 0, found; 1, of the host; 2, in device memory */
    int64_t accuracy; /* of floats, an hgemm_accuracy_t */
    int64_t exact;    /* bits: A, B of floats, promised to hold halves */
    int64_t invariant;
    int64_t in_place; /* D is C */
    int64_t null;     /* what is not accessed is NULL, without leading dimension; else it is memory full of NaN */
    int64_t copies;   /* of operands that are not aligned; row-major, batch 1 */
    int64_t tail;     /* quarters of k that parts have, for the latter half of the tiles; batch 1 */
    int64_t tight;    /* what is only read ends where its memory ends, for tools that watch */
    int64_t fill;
    uint64_t seed;
} case_t;

/* The integers of a case but for the kernel and the seed, for whoever walks through them. */
int case_integers(void);
int64_t *case_integer(case_t *c, int which);

/* Makes a case one that can be run, from one whose members do not go together. */
void case_settle(case_t *c);

/* Writes the line that test_gemm takes: what differs from an all-zero case of batch 1; kernels by name. */
void case_write(const case_t *c, char line[CASE_LINE]);

/* Reads such words; 0 if they are not those of a case. */
int case_read(case_t *c, int count, char **words);

/* The kernel's name, "auto" for none. */
const char *case_kernel(const case_t *c);

/* Whether there is an element of D; whether A and B are read for it, and C. A scalar in device memory may have any
 * value. */
int case_has_output(const case_t *c);
int case_reads_factors(const case_t *c);
int case_reads_c(const case_t *c);

/* Whether A or B, or both, are of floats. */
int case_has_floats(const case_t *c);

/* Whether the numbers are integers, or NaN and infinities. */
int case_is_of_integers(const case_t *c);

/* Whether rows of the product are in groups or have indices. */
int case_has_listed_rows(const case_t *c);

/* Whether that is so, or rows are to have the same bits as such have: a column-major D is not computed as its
 * transpose. */
int case_has_rows_that_stay(const case_t *c);

/* Whether they have, or A and B come by pointers: but for those of a row-major D that stay or are scattered alone. */
int case_is_indirect(const case_t *c);

/* Whether the epilogue is more than alpha * sum + beta * C of halves. */
int case_is_fused(const case_t *c);

#endif
