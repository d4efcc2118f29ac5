/* SPDX-License-Identifier: MIT */
#include "error_model.h"

#include <math.h>

double sum_error(hgemm_accumulate_t accumulate, int64_t k, double half)
{
    const double steps = ceil((double)k / 8), v = PRODUCT_VARIANCE;
    if (accumulate == HGEMM_ACCUMULATE_F16)
        return half * sqrt(8 * v * steps * (steps + 1) / 2);
    return ERROR_SINGLE * sqrt(8 * v) * 2 / 3 * pow(steps + 1, 1.5);
}
