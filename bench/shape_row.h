/* SPDX-License-Identifier: MIT */
/* Files of shapes: CSV whose first line names its columns. HGEMM_RECORD makes such files, bench_hgemm and hgemm tune
 * read them. */
#ifndef HGEMM_SHAPE_ROW_H
#define HGEMM_SHAPE_ROW_H

#include <stdint.h>

enum { SHAPE_M, SHAPE_N, SHAPE_K, SHAPE_TRANS_A, SHAPE_TRANS_B, SHAPE_BATCH, SHAPE_COLUMNS };

/* The columns in the order of the line that names them, which it changes: how many, or 0 where m, n and k are not
 * among them, or one is twice or unknown. */
int shape_row_header(char *line, int columns[SHAPE_COLUMNS]);

/* Writes the values of a row, and leaves those of other columns as they are. 0 where the line has not as many numbers,
 * or a side or the batch is 0. Neither line has its end. */
int shape_row_values(const char *line, const int *columns, int count, int64_t value[SHAPE_COLUMNS]);

#endif
