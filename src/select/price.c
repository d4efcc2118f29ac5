/* SPDX-License-Identifier: MIT */
#include "select/price.h"

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
