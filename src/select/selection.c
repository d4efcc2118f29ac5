/* SPDX-License-Identifier: MIT */
/*
 * Which kernel runs a problem, and into how many parts it cuts k. What was measured goes first. Else every plan of the
 * tuned rung and of thin kernels that can run the problem is priced by the cost model, and the cheapest wins. A new row
 * of the table takes part without a change here, and what this build does not have takes none.
 */
#include "select/selection.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "problem/names.h"
#include "select/cost.h"
#include "select/family.h"
#include "select/mma.h"
#include "select/problem_class.h"

enum {
    MOST_SPLITS = 256,
    MOST_SPLIT_ROUNDS = 4, /* of parts */
};

/* A plan that cuts k into parts of `part` steps, for all tiles but the first `whole_tiles`. */
static plan_t make_plan(const problem_t *p, variant_t variant, int64_t tiles, int64_t whole_tiles, int64_t part)
{
    int is_split = part < steps_of(p, variant);
    int64_t k_split = is_split ? part * kernel_table[variant.kernel].info.block_k : p->k;
    return (plan_t){.variant = variant,
                    .tiles = tiles,
                    .whole_tiles = is_split ? whole_tiles : tiles,
                    .splits = is_split ? (int)ceil_div(p->k, k_split) : 1,
                    .k_split = k_split,
                    .scales = p->scales};
}

/* What is looked for, and the cheapest plans found so far. */
typedef struct ranking_t {
    const problem_t *p;
    const machine_t *machine;
    size_t workspace; /* bytes for the sums of split tiles */
    int copies;       /* that plans are made for */
    priced_plan_t *best;
    int most, count;
} ranking_t;

/* Prices a plan and inserts it among the cheapest. Of plans that cost the same, the first stays ahead. */
static void consider(ranking_t *s, const price_t *price, plan_t plan)
{
    double clocks = plan_clocks(s->p, s->machine, price, &plan);
    int at = s->count < s->most ? s->count++ : s->most;
    plan.copies = s->copies;
    for (; at > 0 && s->best[at - 1].clocks > clocks; at--)
        if (at < s->most)
            s->best[at] = s->best[at - 1];
    if (at < s->most)
        s->best[at] = (priced_plan_t){plan, clocks};
}

/* The most parts for `split_tiles` tiles of `steps` steps that are worth a try, if so many are `likely`, and fit in the
 * workspace. */
static double most_splits(const ranking_t *s, const price_t *price, int64_t split_tiles, int64_t likely, int64_t steps)
{
    double bytes = (double)s->workspace - HGEMM_WORKSPACE_TILES * 4.0;
    double room = bytes / ((double)split_tiles * price->sum_bytes);
    double blocks = (double)MOST_SPLIT_ROUNDS * price->multiprocessors * price->resident;
    return fmin(fmin(MOST_SPLITS, room), fmin((double)(steps / price->least_steps), blocks / (double)likely));
}

/* Considers numbers of splits for all tiles but the first `whole_tiles`: each up to 8, then ever fewer. */
static void try_splits(ranking_t *s, const price_t *price, variant_t variant, int64_t tiles, int64_t whole_tiles)
{
    const int64_t matrices = s->p->matrices, split_tiles = saturated_product(tiles - whole_tiles, matrices);
    if (s->p->keeps_k_whole || matrices > MOST_GRID_Y || split_tiles > HGEMM_WORKSPACE_TILES)
        return;
    const int64_t likely = (likely_tiles(s->p, &kernel_table[variant.kernel].info) - whole_tiles) * matrices;
    int64_t steps = steps_of(s->p, variant);
    double most = most_splits(s, price, split_tiles, likely, steps);
    for (int splits = 2, last = 1; splits <= most; splits += splits < 8 ? 1 : splits / 8) {
        int64_t even = ceil_div(steps, splits), uneven = long_part(s->p, price, split_tiles, steps, splits);
        plan_t plan = make_plan(s->p, variant, tiles, whole_tiles, even);
        if (plan.splits > last) /* rounding parts up to whole steps may have given the last number again */
            consider(s, price, plan);
        if (uneven > even)
            consider(s, price, make_plan(s->p, variant, tiles, whole_tiles, uneven));
        last = plan.splits;
    }
}

/* Considers the plans of a variant: no tile split, all of them, or those that would not fill the last round. */
static void try_variant(ranking_t *s, variant_t variant)
{
    const kernel_t *kernel = &kernel_table[variant.kernel];
    const image_t *image = variant_image(variant);
    int is_for_t4 = kernel->blocks > 0;
    if (!image || (s->machine->is_newer ? kernel->is_for_t4_alone : !is_for_t4))
        return;
    price_t price = price_variant(s->p, variant, image, s->copies, s->machine);
    int64_t tiles = problem_tiles(s->p, &kernel->info);
    int64_t slots = (int64_t)price.multiprocessors * price.resident;
    /* Newer GPUs' kernels of few warps are made for two blocks on a multiprocessor. */
    if (!is_for_t4 && kernel->info.threads <= ONE_WARP_EACH &&
        (double)tiles * (double)s->p->matrices <= price.multiprocessors)
        return;
    /* A block of teams is alone on its multiprocessor: nothing works beside its start and its end in a second round. */
    if (kernel->has_teams && (double)tiles * (double)s->p->matrices > price.multiprocessors)
        return;
    consider(s, &price, make_plan(s->p, variant, tiles, tiles, steps_of(s->p, variant)));
    const family_info_t *family = &family_table[kernel_table[variant.kernel].family];
    if (!can_split(variant.kernel) || kernel->has_teams) /* whose parts others overtake (note 461) */
        return;
    if (family->cuts && !family->cuts(s->p, variant.kernel))
        return;
    try_splits(s, &price, variant, tiles, 0);
    const int64_t likely = likely_tiles(s->p, &kernel->info);
    if (s->p->matrices == 1 && likely > slots && likely % slots)
        try_splits(s, &price, variant, tiles, likely / slots * slots);
}

/* Considers all variants that run the problem, on the operands or on copies. */
static void try_kernels(ranking_t *s)
{
    variant_t variant;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++) {
        if (kernel_table[kernel].is_plain || !has_way(kernel, s->p->is_indirect, s->p->factors))
            continue;
        const family_info_t *family = &family_table[kernel_table[kernel].family];
        if ((!family->is_drawn || family->is_drawn(s->p, s->machine, kernel)) &&
            find_variant(s->p, kernel, s->copies, &variant))
            try_variant(s, variant);
    }
}

static int has_room_for_scales(const problem_t *p, size_t workspace_bytes)
{
    return !p->scales || (int64_t)workspace_bytes >= HGEMM_WORKSPACE_TILES * 4 + scale_bytes(p->scales);
}

int rank_plans(const problem_t *p, const machine_t *machine, size_t workspace_bytes, priced_plan_t *best, int most)
{
    ranking_t s = {.p = p, .machine = machine, .workspace = workspace_bytes, .best = best, .most = most};
    if (!has_room_for_scales(p, workspace_bytes))
        return 0;
    s.workspace -= (size_t)scale_bytes(p->scales);
    try_kernels(&s);
    s.copies = possible_copies(p, workspace_bytes);
    s.workspace -= (size_t)copied_bytes(p, s.copies);
    if (s.copies)
        try_kernels(&s);
    return s.count;
}

double estimate_clocks(const problem_t *p, const machine_t *machine, const plan_t *plan)
{
    price_t price = price_variant(p, plan->variant, variant_image(plan->variant), plan->copies, machine);
    return plan_clocks(p, machine, &price, plan);
}

int measured_plan(const problem_t *p, const machine_t *machine, size_t workspace_bytes, plan_t *plan)
{
    const measured_t *measured = machine->measured;
    return measured && p->kernel == HGEMM_KERNEL_AUTO && !p->is_invariant &&
           measured->find(measured->entries, p, plan) && !plan_fault(p, workspace_bytes, plan);
}

hgemm_status_t select_plan(const problem_t *p, const machine_t *machine, size_t workspace_bytes, plan_t *plan)
{
    priced_plan_t best;
    variant_t variant;
    if (p->kernel != HGEMM_KERNEL_AUTO) {
        if (!find_variant(p, p->kernel, 0, &variant) || !has_room_for_scales(p, workspace_bytes))
            return HGEMM_STATUS_NOT_SUPPORTED;
        int64_t tiles = problem_tiles(p, &kernel_table[p->kernel].info);
        *plan = make_plan(p, variant, tiles, tiles, steps_of(p, variant));
        return HGEMM_STATUS_SUCCESS;
    }
    if (measured_plan(p, machine, workspace_bytes, plan))
        return HGEMM_STATUS_SUCCESS;
    if (rank_plans(p, machine, workspace_bytes, &best, 1) == 0)
        return HGEMM_STATUS_NOT_SUPPORTED;
    *plan = best.plan;
    return HGEMM_STATUS_SUCCESS;
}

void describe_unsupported(const problem_t *p, char words[DEVICE_DETAIL])
{
    const kernel_t *kernel = &kernel_table[p->kernel];
    const int is_named = p->kernel != HGEMM_KERNEL_AUTO;
    const problem_class_t class = class_of(p);
    char problem[CLASS_TEXT], unsaid[48] = ""; /* the words of a class leave out its first kinds */
    class_to_text(&class, problem);
    if (p->is_packed)
        snprintf(unsaid, sizeof unsaid, ", B of packed %s", code_names[p->packed.code]);
    else if (p->has_floats && p->accuracy == HGEMM_ACCURACY_F32)
        snprintf(unsaid, sizeof unsaid, " accuracy %s", accuracy_names[p->accuracy]);
    const char *needs = "";
    if (kernel->is_plain)
        needs = " It is there to be read, and covers nn, F16 sums, and rows of A, B, C and D in whole, 16-byte aligned "
                "chunks, without a fused epilogue.";
    snprintf(words, DEVICE_DETAIL, "%s%s this row-major problem: %s%s.%s%s",
             is_named ? kernel->info.name : "No kernel covers", is_named ? " does not cover" : "", problem, unsaid,
             p->scales ? " Scales of bfloat16 that a call is to find need a workspace of more than 64 KiB, too." : "",
             needs);
}
