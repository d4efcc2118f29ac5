/* SPDX-License-Identifier: MIT */
#include "select/price.h"

#include <math.h>

static const costs_t t4_costs = {
#define COST(name, t4, t4_source, newer, newer_source) .name = (t4),
#include "select/costs.def"
};

static const costs_t newer_costs = {
#define COST(name, t4, t4_source, newer, newer_source) .name = (newer),
#include "select/costs.def"
};

const costs_t *costs_of(const machine_t *machine)
{
    return machine->is_newer ? &newer_costs : &t4_costs;
}

double lines_there(const costs_t *costs, int side, double extent)
{
    return side - (side - fmin(side, extent)) * (1 - costs->factor_missing_lines);
}

double overlapped(double a, double b, double exponent)
{
    return pow(pow(a, exponent) + pow(b, exponent), 1 / exponent);
}
