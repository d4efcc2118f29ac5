/* SPDX-License-Identifier: MIT */
#include "shape_row.h"

#include "select/parse.h"

#include <string.h>

int shape_row_header(char *line, int columns[SHAPE_COLUMNS])
{
    static const char *const names[SHAPE_COLUMNS] = {"m", "n", "k", "trans_a", "trans_b", "batch"};
    int count = 0;
    unsigned seen = 0;
    for (char *rest, *item = strtok_r(line, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        int column = 0;
        while (column < SHAPE_COLUMNS && strcmp(item, names[column]) != 0)
            column++;
        if (column == SHAPE_COLUMNS || (seen & 1u << column))
            return 0;
        seen |= 1u << column;
        columns[count++] = column;
    }
    return (seen & 7u) == 7u ? count : 0;
}

int shape_row_values(const char *line, const int *columns, int count, int64_t value[SHAPE_COLUMNS])
{
    for (int i = 0; i < count; i++) {
        const int column = columns[i], may_be_zero = column == SHAPE_TRANS_A || column == SHAPE_TRANS_B;
        if (!(i + 1 < count ? take_number_until(&line, ',', INT32_MAX, &value[column])
                            : take_number(&line, INT32_MAX, &value[column])))
            return 0;
        if (!may_be_zero && value[column] == 0)
            return 0;
    }
    return *line == '\0';
}
