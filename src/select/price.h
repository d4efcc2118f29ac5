/* SPDX-License-Identifier: MIT */
/* What the cost model counts with: a machine's constants (costs.def), and what a variant costs by them. */
#ifndef HGEMM_PRICE_H
#define HGEMM_PRICE_H

#include <math.h>

#include "select/machine.h"

typedef struct costs_t {
#define COST(name, t4, t4_source, newer, newer_source) double name;
#include "select/costs.def"
} costs_t;

const costs_t *costs_of(const machine_t *machine);

/* What a step of a block costs while a given number of tiles run at one time, in clocks. */
typedef struct pace_t {
    double lone;    /* pipes, if the block has its multiprocessor to itself */
    double beside;  /* pipes, for each of several blocks */
    double latency; /* least clocks of a step, however idle the pipes are */
    double dram;    /* DRAM of the whole GPU */
    double store;   /* the same for storing a tile of D, once a block */
} pace_t;

/* Of the same, for kernels whose k-tiles feed tensor cores, what does not depend on which tiles run. */
typedef struct step_t {
    double lone, beside;       /* pipes of a block alone, and of one beside others, before conversions */
    double conversions;        /* what these add to both */
    double latency;            /* what adds to a step's */
    double lines_k;            /* k's that the problem has of it */
    double bytes_a, bytes_b;   /* of a tile's lines of A and of B that the problem has, for each k */
    double opened_a, opened_b; /* DRAM's time for a byte of them, in that for a byte of whole lines */
    double rows_a, rows_b;     /* in memory, of a k-tile */
    double tile_bytes;         /* in memory, of all lines */
    double elements;           /* of A and B that pass through shared memory: packed weights do not */
    double store;              /* DRAM's clocks for a tile of D */
} step_t;

/* What a variant costs on a machine, as far as it does not depend on how k is split. */
typedef struct price_t {
    const machine_t *machine;
    const costs_t *costs; /* of the machine */
    walk_t walk;          /* of the kernel, there */
    int64_t tiles;        /* of one matrix, ... */
    int64_t likely;       /* ... and those of them that have rows of D */
    int64_t steps;        /* of a whole tile: its k-tiles */
    double rows, columns; /* of tiles: in a column of D, of a group if there are any; in a row */
    int multiprocessors;
    int resident;           /* blocks of a multiprocessor at one time */
    int64_t places;         /* for blocks, of all multiprocessors */
    int least_steps;        /* of a part of k */
    double launch;          /* clocks before the first block starts, once */
    double end;             /* clocks of a block beside its steps: its start, its epilogue */
    double overlap;         /* what of that blocks of a multiprocessor overlap */
    double turnover;        /* clocks from a lone block to the next one on its multiprocessor */
    double sum_bytes;       /* of the sums of a block's tile */
    double latency_overlap; /* how pipes and latency overlap: the exponent of overlapped(), or 0: the longer of them
                               counts */
    int may_be_uneven;      /* parts of k may be: a shorter last one (cost.c) */
    double steps_between;   /* a part's end and the start of the next one, in steps */
    step_t step;            /* of such kernels */
    pace_t pace;            /* of whole tiles, if every multiprocessor is full */
} price_t;

/* How many blocks share one read from DRAM: of the rows of A that a tile needs, and of the columns of B. */
typedef struct sharers_t {
    double a, b;
} sharers_t;

/* Lines along a side of a tile of which the problem has `extent`: those, and of the others what the machine's costs
 * count. */
static inline double lines_there(const costs_t *costs, int side, double extent)
{
    return side - (side - fmin(side, extent)) * (1 - costs->factor_missing_lines);
}

/* Two times that overlap, but not perfectly: from their sum (exponent 1) towards the longer one (a large one). */
static inline double overlapped(double a, double b, double exponent)
{
    return pow(pow(a, exponent) + pow(b, exponent), 1 / exponent);
}

enum { LINE_BYTES = 128 }; /* of the L2 cache and, opened as one, of DRAM */

enum { STORED_BYTES = 2 }; /* whatever the type of D: costs are fitted to those of halves */

#endif
