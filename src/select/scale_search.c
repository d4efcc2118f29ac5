/* SPDX-License-Identifier: MIT */
#include "select/scale_search.h"

#include "problem/problem.h"

enum {
    /* Operands that a product reads from this many bytes on are sampled. A sample, and two launches that do nothing,
     * take as long as to read so many more: by the T4's model, and by what searches take on an H100. */
    SAMPLED_BYTES = 1 << 20,
    SAMPLED_BYTES_NEWER = 12 << 20
};

/* Of the operand whose scale is to be found, in all matrices; 0 of one that has its scale. */
static double bytes_of(const problem_t *p, int scales, int which)
{
    const factor_t *x = factor_of(p, which);
    const double matrices = x->stride == 0 ? 1 : (double)p->batch;
    return scales & which ? x->bytes * (double)x->lines * (double)x->width * matrices : 0;
}

int is_once(const problem_t *p)
{
    return (p->product.c && p->product.c == p->product.d) || p->is_invariant;
}

search_t first_search(const machine_t *machine, int scales, const problem_t *p)
{
    const double bytes = bytes_of(p, scales, FACTOR_A) + bytes_of(p, scales, FACTOR_B);
    const double least = machine->is_newer ? SAMPLED_BYTES_NEWER : SAMPLED_BYTES;
    return bytes < least || is_once(p) ? SEARCH_ALL : SEARCH_SAMPLE;
}

double searched_bytes(const machine_t *machine, int scales, const problem_t *p)
{
    const int is_sample = first_search(machine, scales, p) == SEARCH_SAMPLE;
    double all = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which <<= 1) {
        const double bytes = bytes_of(p, scales, which);
        all += is_sample && bytes > 2 * SAMPLE_BYTES ? 2 * SAMPLE_BYTES : bytes;
    }
    return all;
}
