/* SPDX-License-Identifier: MIT */
#include "error_model.h"

#include <assert.h>
#include <math.h>

double sum_error(hgemm_accumulate_t accumulate, int64_t k, double half)
{
    const double steps = ceil((double)k / 8), v = PRODUCT_VARIANCE;
    if (accumulate == HGEMM_ACCUMULATE_F16)
        return half * sqrt(8 * v * steps * (steps + 1) / 2);
    return ERROR_SINGLE * sqrt(8 * v) * 2 / 3 * pow(steps + 1, 1.5);
}

double float_sum_error(int64_t k)
{
    const double v = PRODUCT_VARIANCE, steps = (double)k;
    return hypot(ERROR_SINGLE * sqrt(v * steps * (steps + 1) / 2), 0x1p-22 * sqrt(v * steps));
}

/*
 * The error of y = act(x), computed in single precision, where x has the error e: at most L e for the function's
 * slope, which is nowhere above 1.13 for the smooth ones, and that of the computation. There exp2 errs by 2^-22 of its
 * value, a reciprocal by 2^-23 (https://docs.nvidia.com/cuda/parallel-thread-execution, ex2.approx and rcp.approx), any
 * other operation by half an ulp, 2^-24; both take what is below the normal numbers for zero.
 *     SiLU, GELU by tanh   y = x / (1 + e) with e = 2^-t. t has an error of 6 roundings at most, 2^-21 of it, which e
 *                          feels as |t| ln 2 times that; then exp2, a sum, a reciprocal and a product: 8 * 2^-24 of y
 *                          at most. Where 1 + e is 2^126 or more, y is 0.
 *     GELU by erf          the same with t = x p(x^2), fitted so that Phi, which 1 / (1 + 2^-t) stands for, is wrong
 *                          by 3.6e-8 at most with p's coefficients as they are rounded. A term of degree i in x^2 goes
 *                          through i + 1 roundings of sums and i of x^2, beside its coefficient's own: together
 *                          24 * 2^-24 of t up to |x| = 4.7, as numbers show, and more beyond, where Phi(-|x|), which it
 *                          multiplies, is below 2^-19. All that is no more than 2^-24 |x| and 2^-20 of y.
 */
typedef struct activation_t {
    double (*value)(double x), (*slope)(double x, double e), (*error)(double x, double y);
    int is_exact;
} activation_t;

#define ACTIVATION(value, is_exact, reference, slope, error) \
    static double value_of_##value(double x)                 \
    {                                                        \
        return reference;                                    \
    }                                                        \
    static double slope_of_##value(double x, double e)       \
    {                                                        \
        (void)x, (void)e;                                    \
        return slope;                                        \
    }                                                        \
    static double error_of_##value(double x, double y)       \
    {                                                        \
        (void)x, (void)y;                                    \
        return error;                                        \
    }
#include "activation_errors.def"

static const activation_t activations[] = {
#define ACTIVATION(value, is_exact, ...) \
    [HGEMM_ACTIVATION_##value] = {value_of_##value, slope_of_##value, error_of_##value, is_exact},
#include "activation_errors.def"
};

/* Every row of the table has one here. */
#define ACTIVATION(value, ...)                                                         \
    static_assert(HGEMM_ACTIVATION_##value < sizeof activations / sizeof *activations, \
                  #value ": nothing is expected of it");
#include "table/activations.def"

double activation_value(hgemm_activation_t activation, double x)
{
    return activations[activation].value(x);
}

double activation_slope(hgemm_activation_t activation, double x, double error)
{
    return activations[activation].slope(x, error);
}

double activation_error(hgemm_activation_t activation, double x, double error)
{
    const double moved = error > 0 ? activation_slope(activation, x, error) * error : 0;
    return moved + activations[activation].error(x, fabs(activation_value(activation, x)) + moved);
}

int activation_is_exact(hgemm_activation_t activation)
{
    return activations[activation].is_exact;
}
