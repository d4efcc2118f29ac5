/* SPDX-License-Identifier: MIT */
#include "gemm_random.h"

#include "problem/names.h"

#include <string.h>

/* ---- Drawing ----------------------------------------------------------------------------------- */

/* A length that is as often small as large, and a multiple of 8 half of the time. */
static int64_t random_length(rng_t *rng, int64_t most)
{
    int64_t bound = 1;
    while (bound < most && rng_between(rng, 0, 3))
        bound *= 2;
    int64_t length = rng_between(rng, 0, bound < most ? bound : most);
    return rng_between(rng, 0, 1) ? length : length & ~INT64_C(7);
}

/* One of m, n and k, seldom 0. */
static int64_t random_extent(rng_t *rng, int64_t most)
{
    int64_t length = random_length(rng, most);
    return length || rng_between(rng, 0, 15) == 0 ? length : rng_between(rng, 1, 40);
}

/* 1 once in `of` times. */
static int64_t once_in(rng_t *rng, int64_t of)
{
    return rng_between(rng, 1, of) == 1;
}

static int64_t random_type(rng_t *rng)
{
    static const int64_t types[] = {HGEMM_TYPE_F16, HGEMM_TYPE_F16, HGEMM_TYPE_F32, HGEMM_TYPE_BF16};
    return types[rng_between(rng, 0, 3)];
}

static void draw_batch(case_t *c, rng_t *rng)
{
    static const int64_t alignments[] = {0, 0, 1, 2, 4, 8, 16, 64};
    c->batch_mode = rng_between(rng, HGEMM_BATCH_STRIDED, HGEMM_BATCH_GROUPED);
    c->batch = once_in(rng, 6) ? rng_between(rng, 0, 70) : rng_between(rng, 1, 5);
    if (c->batch > 5 && rng_between(rng, 0, 1)) /* of a few tiles each */
        c->m = random_extent(rng, 40), c->n = random_extent(rng, 40), c->k = random_extent(rng, 100);
    c->alignment = alignments[rng_between(rng, 0, 7)];
    c->unused = once_in(rng, 3) ? rng_between(rng, 0, c->m) : 0;
}

/* A third are all of halves with scalars of the host, for which kernels have a way of their own. */
static void draw_epilogue(case_t *c, rng_t *rng)
{
    if (rng_between(rng, 0, 1))
        c->activation = rng_between(rng, HGEMM_ACTIVATION_NONE, ACTIVATION_COUNT - 1);
    c->bias = rng_between(rng, NO_BIAS, BIAS_PER_ROW);
    c->gate = once_in(rng, 3);
    if (once_in(rng, 3))
        return;
    for (int which = C; which < OPERANDS; which++)
        c->type[which] = random_type(rng);
    c->alpha_device = once_in(rng, 4);
    c->beta_device = once_in(rng, 4);
}

static void draw_indices(case_t *c, rng_t *rng)
{
    c->gather = rng_between(rng, 0, 1);
    c->scatter = rng_between(rng, 0, 1);
    c->spare = rng_between(rng, 0, 1) ? random_length(rng, 100) : 0;
    c->index_64 = rng_between(rng, 0, 1);
}

/* How operands lie in memory: all is made of groups of 1, 2, 4 or 8 elements. */
static void draw_layout(case_t *c, rng_t *rng)
{
    const int64_t group = rng_between(rng, 0, 1) ? 8 : INT64_C(1) << rng_between(rng, 0, 3);
    for (int which = A; which < OPERANDS; which++) {
        c->pad[which] = random_length(rng, 100) & -group;
        c->offset[which] = rng_between(rng, 0, 15) & -group;
        c->gap[which] = once_in(rng, 5) ? -1 : random_length(rng, 100) & -group;
    }
    c->m = (c->m + group - 1) & -group, c->n = (c->n + group - 1) & -group;
    c->k = (c->k + group - 1) & -group;
    c->spare &= -group;
}

/* Once in eight times one extent is longer than any tile, however small most cases are, and the others are short. */
static void draw_long_extent(case_t *c, rng_t *rng)
{
    enum { LONG = 2000, SHORT = 40 };
    int64_t *const extents[] = {&c->m, &c->n, &c->k};
    if (!once_in(rng, 8))
        return;
    const int64_t which = rng_between(rng, 0, 2);
    for (int i = 0; i < 3; i++)
        *extents[i] = i == which ? rng_between(rng, 1, LONG) : random_extent(rng, SHORT);
}

case_t random_case(rng_t *rng, int64_t most, int copies)
{
    static const double scalars[] = {0, 1, -1, 0.5, 2, 1};
    case_t c = {.kernel = rng_between(rng, 0, 1) ? rng_between(rng, 0, hgemm_kernel_count()) : HGEMM_KERNEL_AUTO,
                .layout = copies || rng_between(rng, 0, 2) ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR,
                .copies = copies,
                .op_a = rng_between(rng, 0, 1),
                .op_b = rng_between(rng, 0, 1),
                .m = random_extent(rng, most),
                .n = random_extent(rng, most),
                .k = random_extent(rng, most),
                .batch = 1,
                .alpha = scalars[rng_between(rng, 0, 5)],
                .beta = scalars[rng_between(rng, 0, 5)],
                .in_place = once_in(rng, 3),
                .null = rng_between(rng, 0, 1),
                .tight = rng_between(rng, 0, 1),
                .fill = rng_between(rng, EXACT, SPECIAL)};
    draw_long_extent(&c, rng);
    hgemm_kernel_info_t info;
    c.accumulate = rng_between(rng, 0, 1);
    if (hgemm_get_kernel_info((int)c.kernel, &info) == HGEMM_STATUS_SUCCESS &&
        kernel_table[c.kernel].family != FAMILY_thin && kernel_table[c.kernel].family != FAMILY_tiny)
        c.accumulate = (int64_t)info.accumulate;
    if (rng_between(rng, 0, 2))
        draw_epilogue(&c, rng);
    if (!copies && rng_between(rng, 0, 1))
        draw_batch(&c, rng);
    if (!copies && once_in(rng, 3))
        draw_indices(&c, rng);
    else if (c.batch_mode == HGEMM_BATCH_GROUPED)
        c.index_64 = rng_between(rng, 0, 1);
    c.invariant = once_in(rng, 6);
    if (once_in(rng, 5))
        c.tail = rng_between(rng, 1, 3);
    if (once_in(rng, 6)) {
        c.type[A] = c.type[B] = HGEMM_TYPE_BF16;
        c.scaled = rng_between(rng, 0, 2);
        if (!c.kernel && !once_in(rng, 8))
            c.accumulate = HGEMM_ACCUMULATE_F32;
    } else if (once_in(rng, 6)) {
        c.type[A] = c.type[B] = HGEMM_TYPE_F32;
        if (once_in(rng, 3)) /* beside another type */
            c.type[rng_between(rng, A, B)] = rng_between(rng, 0, 1) ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16;
        if (once_in(rng, 2))
            c.accuracy = rng_between(rng, HGEMM_ACCURACY_F32, HGEMM_ACCURACY_11_BITS);
        if (c.fill == BOUNDED && once_in(rng, 2))
            c.fill = SPREAD;
        if (once_in(rng, 3)) /* integers, which are halves */
            c.exact = rng_between(rng, 1, 3);
        if (!once_in(rng, 8))
            c.accumulate = HGEMM_ACCUMULATE_F32;
        while (c.kernel && !kernel_table[c.kernel].limits[LIMIT_f32] && !once_in(rng, 99))
            c.kernel = rng_between(rng, 1, KERNEL_END - 1);
    } else if (once_in(rng, 100)) {
        c.type[B] = HGEMM_TYPE_BF16;
    }
    draw_layout(&c, rng);
    if (c.accumulate == HGEMM_ACCUMULATE_F32 && case_is_of_integers(&c))
        c.alpha *= 0x1p-6; /* keeps sums of larger integers within a half */
    if (!case_is_of_integers(&c) && rng_between(rng, 0, 1))
        c.alpha *= 0.7, c.beta *= 0.3;
    c.seed = rng_next(rng);
    case_settle(&c);
    return c;
}

/* ---- Shrinking --------------------------------------------------------------------------------- */

/* Runs the smaller case; where it fails, too, it takes the place of the other. */
static int fails_too(hgemm_handle_t handle, case_t *c, case_t smaller, outcome_t *outcome)
{
    outcome_t other;
    case_settle(&smaller);
    if (outcome->device_is_lost || memcmp(&smaller, c, sizeof smaller) == 0)
        return 0;
    case_run(handle, &smaller, &other);
    if (other.is_right)
        return 0;
    *c = smaller, *outcome = other;
    return 1;
}

static int shrink_integer(hgemm_handle_t handle, case_t *c, int which, outcome_t *outcome)
{
    const int64_t value = *case_integer(c, which), tries[] = {0, 1, value / 2, value - 1};
    for (int t = 0; t < 4; t++) {
        case_t smaller = *c;
        *case_integer(&smaller, which) = tries[t];
        int is_smaller = value < 0 ? tries[t] == 0 : tries[t] >= 0 && tries[t] < value;
        if (is_smaller && fails_too(handle, c, smaller, outcome))
            return 1;
    }
    return 0;
}

static int shrink_scalars(hgemm_handle_t handle, case_t *c, outcome_t *outcome)
{
    case_t smaller = *c;
    smaller.alpha = 1;
    int has_shrunk = fails_too(handle, c, smaller, outcome);
    smaller = *c;
    smaller.beta = 0;
    return fails_too(handle, c, smaller, outcome) || has_shrunk;
}

void shrink_case(hgemm_handle_t handle, case_t *c, outcome_t *outcome)
{
    for (int has_shrunk = 1; has_shrunk;) {
        has_shrunk = shrink_scalars(handle, c, outcome);
        for (int i = 0; i < case_integers(); i++)
            has_shrunk |= shrink_integer(handle, c, i, outcome);
    }
}
