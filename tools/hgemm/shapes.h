/* SPDX-License-Identifier: MIT */
/* The problems that a command is about: from its arguments, from files. */
#ifndef HGEMM_TOOL_SHAPES_H
#define HGEMM_TOOL_SHAPES_H

#include "problem/weights_text.h"
#include "select/problem_class.h"

typedef struct shapes_t {
    problem_class_t *of; /* no two the same, in the order in which they came */
    int count;
} shapes_t;

/* What an argument or a row of a file does not say. */
typedef struct shapes_options_t {
    hgemm_layout_t layout;
    unsigned accumulate; /* bits 1 << HGEMM_ACCUMULATE_*; 0: F16 */
    unsigned ops;        /* bits 1 << (2 * op_a + op_b), for arguments; 0: nn */
    int64_t batch;
    hgemm_weights_t weights; /* of size 0: B is a matrix */
} shapes_options_t;

/* Their parts of --help, and of options: each takes what follows an option of that name. */
#define SHAPES_HELP                                                                                                \
    "  shape               N (a square), MxNxK, or a problem as the files name it, in quotes:\n"                   \
    "                      \"f32 nt 16x4096x4096 lda 8192\"\n"                                                     \
    "  --shapes FILE       CSV whose first line names its columns: m, n, k and, where wanted, trans_a,\n"          \
    "                      trans_b (1: transposed) and batch; HGEMM_RECORD=FILE makes one of what an\n"            \
    "                      application calls\n"                                                                    \
    "  --layout row|col    of shapes and files; default row\n"                                                     \
    "  --accumulate LIST   of f16, f32, for shapes and rows that do not say; default f16\n"                        \
    "  --trans LIST        of nn, nt, tn, tt (op_a, op_b), for shapes that do not say; default nn\n"               \
    "  --batch N           matrices of a strided batch, for shapes that do not say; default 1\n" WEIGHTS_TEXT_HELP \
    "                      for shapes and rows that do not say; these are then f32 nt, in row layout\n"
void shapes_take_layout(shapes_options_t *options, const char *text);
void shapes_take_accumulate(shapes_options_t *options, const char *list);
void shapes_take_trans(shapes_options_t *options, const char *list);
void shapes_take_batch(shapes_options_t *options, const char *text);
void shapes_take_weights(shapes_options_t *options, const char *text);

/* Adds what an argument or a file names, unless it is there. Ends the program where that is no shape. */
void shapes_add_argument(shapes_t *shapes, const shapes_options_t *options, const char *text);
void shapes_add_file(shapes_t *shapes, const shapes_options_t *options, const char *path);
void shapes_add(shapes_t *shapes, const problem_class_t *problem);

#endif
