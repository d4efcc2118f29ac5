/* SPDX-License-Identifier: MIT */
#include "experts.h"

#include <stdlib.h>

int32_t *experts_ends(const shape_t *s)
{
    int32_t *ends = calloc((size_t)s->batch, sizeof *ends);
    int64_t *order = malloc((size_t)s->batch * sizeof *order); /* the first ones are those that the token takes */
    uint64_t seed = 6;
    for (int64_t i = 0; order && i < s->batch; i++)
        order[i] = i;
    for (int64_t token = 0; ends && order && token < s->m; token++)
        for (int64_t i = 0; i < s->top; i++) {
            const int64_t from = i + (int64_t)(fill_random(&seed) % (uint64_t)(s->batch - i)), taken = order[from];
            order[from] = order[i], order[i] = taken;
            ends[taken]++;
        }
    for (int64_t i = 1; ends && i < s->batch; i++)
        ends[i] += ends[i - 1];
    if (!order) {
        free(ends);
        ends = NULL;
    }
    free(order);
    return ends;
}

int64_t experts_hit(const shape_t *s)
{
    int32_t *ends = experts_ends(s);
    int64_t hit = 0;
    for (int64_t i = 0; ends && i < s->batch; i++)
        hit += ends[i] > (i ? ends[i - 1] : 0);
    free(ends);
    return hit;
}
