/* SPDX-License-Identifier: MIT */
/* For fit_costs.py: the cost model with constants that can be changed, for products of floats on an H100. Linked with
 * the library's objects, but for price.c, whose place it takes. */
#include <string.h>

#include "select/cost.h"
#include "select/plan_text.h"
#include "select/price.h"
#include "select/selection.h"

enum { MOST_RANKED = 3000 };
static const double CLOCKS_IN_US = 1980;

static costs_t costs = {
#define COST(name, t4, t4_source, newer, newer_source) .name = (newer),
#include "select/costs.def"
};

const costs_t *costs_of(const machine_t *machine)
{
    (void)machine;
    return &costs;
}

double *fit_cost(const char *name)
{
#define COST(field, t4, t4_source, newer, newer_source) \
    if (strcmp(name, #field) == 0)                      \
        return &costs.field;
#include "select/costs.def"
    return NULL;
}

static machine_t an_h100(void)
{
    const hgemm_device_info_t info = {
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20};
    return machine_of(&info);
}

/* m, n, k, and 1 where A or B is transposed. */
static problem_t product_of(const long long shape[5])
{
    hgemm_desc_t p;
    hgemm_desc_init(&p);
    p.type_a = p.type_b = p.type_c = p.type_d = p.type_bias = HGEMM_TYPE_F32;
    p.accumulate = HGEMM_ACCUMULATE_F32;
    p.m = shape[0], p.n = shape[1], p.k = shape[2];
    p.op_a = shape[3] ? HGEMM_OP_T : HGEMM_OP_N, p.op_b = shape[4] ? HGEMM_OP_T : HGEMM_OP_N;
    p.lda = shape[3] ? p.m : p.k, p.ldb = shape[4] ? p.k : p.n, p.ldc = p.ldd = p.n;
    return normalise(&p);
}

/* Ranks all plans of a product: their labels, plans and microseconds, the cheapest first. Returns how many there are.
 */
int fit_rank(const long long shape[5], int most, char labels[][PLAN_LABEL], plan_t *plans, double *us)
{
    static priced_plan_t ranked[MOST_RANKED];
    const problem_t p = product_of(shape);
    const machine_t machine = an_h100();
    const int count = rank_plans(&p, &machine, machine.most_workspace, ranked, most < MOST_RANKED ? most : MOST_RANKED);
    for (int i = 0; i < count; i++) {
        plan_to_label(&ranked[i].plan, p.k, labels[i]);
        plans[i] = ranked[i].plan, us[i] = ranked[i].clocks / CLOCKS_IN_US;
    }
    return count;
}

double fit_us(const long long shape[5], const plan_t *plan)
{
    const problem_t p = product_of(shape);
    const machine_t machine = an_h100();
    return estimate_clocks(&p, &machine, plan) / CLOCKS_IN_US;
}

int fit_plan_bytes(void)
{
    return sizeof(plan_t);
}
