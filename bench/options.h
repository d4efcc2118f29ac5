/* SPDX-License-Identifier: MIT */
/* The command line of bench_hgemm. */
#ifndef HGEMM_BENCH_OPTIONS_H
#define HGEMM_BENCH_OPTIONS_H

#include <regex.h>

#include "verify.h"

enum { PEER_CEILING = 1, PEER_CUBLAS = 2, PEER_CUTLASS = 4, PEER_COPY = 8 };

typedef struct options_t {
    const char *device; /* as hgemm_create takes it, NULL: the default */
    shape_t *shapes;    /* each shape with each of the transposes asked for */
    int shape_count;
    int shapes_are_default;    /* none was asked for */
    regex_t kernels;           /* names of the kernels to time; "auto" is one */
    regex_t cutlass;           /* names of CUTLASS's configurations that may take part ... */
    const char *cutlass_regex; /* ... as it was given, NULL: all */
    hgemm_layout_t layout;
    fill_t fill;       /* what A and B are */
    char operands[64]; /* the same in a word, such as "f32", "int4:128:none:f16" or "bf16_int4:128:none:f16" */
    float alpha, beta;
    unsigned accumulate;      /* bit HGEMM_ACCUMULATE_*: kernels of which accumulators */
    int continuous;           /* launches back to back instead of single ones after a pause */
    int first;                /* each launch finds nothing in the L2 cache */
    int energy;               /* read the GPU's energy counter too: continuous, longer repetitions */
    int repetitions;          /* 0: as many as suit the device */
    double min_time;          /* seconds of a continuous repetition, at least */
    unsigned peers;           /* PEER_*: what is timed too, where it is there */
    int epilogues;            /* time automatic selection with epilogues, too */
    int plans;                /* of automatic selection that are timed too, the cheapest by its model */
    const char *choices;      /* of which device what is chosen is printed, and nothing timed; NULL: none */
    const char *clock;        /* constants of the timing model, as they were given; NULL: its own */
    const char *format, *out; /* table, csv or json; NULL: stdout */
} options_t;

enum { SHAPE_NAME = 96 };

/* "512x512x64 nt", "512x512x64 nt batch 384", "16x4096x4096 nt experts 8:2". */
void shape_name(const shape_t *shape, char name[SHAPE_NAME]);

/* The library's, its commit and the compiler of its kernels. */
const char *version(void);

/* Fills in what the arguments say. Exits with 0 after --help and --version, with 2 where they make no sense. */
void options_parse(options_t *options, int argc, char **argv);

#endif
