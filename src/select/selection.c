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

/* A plan that splits no tile. */
static plan_t whole_plan(const problem_t *p, variant_t variant, int64_t tiles)
{
    return (plan_t){
        .variant = variant, .tiles = tiles, .whole_tiles = tiles, .splits = 1, .k_split = p->k, .scales = p->scales};
}

/* What is looked for, and the cheapest plans found so far. */
typedef struct ranking_t {
    const problem_t *p;
    const machine_t *machine;
    size_t workspace;  /* bytes for the sums of split tiles */
    int copies;        /* that plans are made for */
    prelude_t prelude; /* what they cost, among others */
    priced_plan_t *best;
    int most, count;
    double limit; /* clocks beyond which a plan is none of them */
} ranking_t;

/* Inserts a plan among the cheapest. Of plans that cost the same, the first stays ahead. */
static void consider(ranking_t *s, const plan_t *plan, double clocks)
{
    int at = s->count < s->most ? s->count++ : s->most;
    for (; at > 0 && s->best[at - 1].clocks > clocks; at--)
        if (at < s->most)
            s->best[at] = s->best[at - 1];
    if (at < s->most)
        s->best[at] = (priced_plan_t){*plan, clocks};
    s->limit = s->count < s->most ? INFINITY : s->best[s->most - 1].clocks;
}

/* Considers a plan that cuts k into parts of `part` steps, as `plan` has tiles. */
static void try_part(ranking_t *s, const price_t *price, const parts_t *parts, plan_t plan, int64_t part)
{
    plan.k_split = part * kernel_table[plan.variant.kernel].info.block_k;
    plan.splits = (int)((price->steps + part - 1) / part);
    consider(s, &plan, parts_clocks(s->p, price, parts, &plan, s->limit));
}

/* The most parts for `split_tiles` tiles that are worth a try, if so many are `likely`, and fit in the workspace. */
static double most_splits(const ranking_t *s, const price_t *price, int64_t split_tiles, int64_t likely)
{
    const double bytes = (double)s->workspace - HGEMM_WORKSPACE_TILES * 4.0;
    const double room = bytes / ((double)split_tiles * price->sum_bytes);
    const double blocks = (double)MOST_SPLIT_ROUNDS * (double)price->places;
    return fmin(fmin(MOST_SPLITS, room), fmin((double)(price->steps / price->least_steps), blocks / (double)likely));
}

/* Considers numbers of splits for all tiles but the first `whole_tiles` of a plan that splits none: each up to 8, then
 * ever fewer. */
static void try_splits(ranking_t *s, const price_t *price, const plan_t *whole, int64_t whole_tiles)
{
    const int64_t matrices = s->p->matrices, split_tiles = saturated_product(price->tiles - whole_tiles, matrices);
    if (s->p->keeps_k_whole || matrices > MOST_GRID_Y || split_tiles > HGEMM_WORKSPACE_TILES)
        return;
    const double most = most_splits(s, price, split_tiles, (price->likely - whole_tiles) * matrices);
    if (most < 2)
        return;
    const parts_t parts = price_parts(s->p, whole->variant, price, whole_tiles, s->limit);
    if (parts.before > s->limit)
        return;
    plan_t plan = *whole;
    plan.whole_tiles = whole_tiles;
    int64_t last = 0; /* part */
    for (int splits = 2; splits <= most; splits += splits < 8 ? 1 : splits / 8) {
        const int64_t even = (price->steps + splits - 1) / splits,
                      uneven = price->may_be_uneven ? long_part(price, split_tiles, splits) : 0;
        if (even != last) /* rounding parts up to whole steps may have given the last one again */
            try_part(s, price, &parts, plan, even);
        if (uneven > even)
            try_part(s, price, &parts, plan, uneven);
        last = even;
    }
}

/* Whether a kernel is for as many blocks as the problem has on the multiprocessors that there are. Newer GPUs' kernels
 * of few warps are made for two on one. A block of teams is alone there: nothing works beside its start and its end in
 * a second round. */
static int suits_multiprocessors(const ranking_t *s, const kernel_t *kernel)
{
    const int wants_two = kernel->blocks == 0 && kernel->info.threads <= ONE_WARP_EACH;
    if (!wants_two && !kernel->has_teams)
        return 1;
    const double blocks = (double)problem_tiles(s->p, &kernel->info) * (double)s->p->matrices;
    return (!wants_two || blocks > s->machine->multiprocessors) &&
           (!kernel->has_teams || blocks <= s->machine->multiprocessors);
}

/* Considers the plans of a variant: no tile split, all of them, or those that would not fill the last round. */
static void try_variant(ranking_t *s, variant_t variant)
{
    const kernel_t *kernel = &kernel_table[variant.kernel];
    if (!suits_multiprocessors(s, kernel))
        return;
    const image_t *image = variant_image(variant);
    if (!image)
        return;
    const price_t price = price_variant(s->p, variant, image, &s->prelude, s->machine);
    plan_t plan = whole_plan(s->p, variant, price.tiles);
    plan.copies = s->copies;
    consider(s, &plan, whole_clocks(s->p, &price, &plan, s->limit));
    const family_info_t *family = &family_table[kernel->family];
    if (!can_split(variant.kernel) || kernel->has_teams) /* whose parts others overtake (note 461) */
        return;
    if (family->cuts && !family->cuts(s->p, variant.kernel))
        return;
    try_splits(s, &price, &plan, 0);
    if (s->p->matrices == 1 && price.likely > price.places && price.likely % price.places)
        try_splits(s, &price, &plan, price.likely / price.places * price.places);
}

/* Considers all variants that run the problem, on the operands or on copies. */
static void try_kernels(ranking_t *s)
{
    const problem_t *p = s->p;
    const int is_newer = s->machine->is_newer;
    variant_t variant;
    s->prelude = prelude_of(p, s->copies, s->machine);
    for (int kernel = next_kernel(KERNEL_NONE, p->is_indirect, p->factors); kernel < KERNEL_END;
         kernel = next_kernel(kernel, p->is_indirect, p->factors)) {
        const kernel_t *row = &kernel_table[kernel];
        const family_info_t *family = &family_table[row->family];
        const int is_of_machine = is_newer ? !row->is_for_t4_alone : row->blocks > 0;
        if (!row->is_plain && is_of_machine && (!family->is_drawn || family->is_drawn(p, s->machine, kernel)) &&
            find_variant(p, kernel, s->copies, &variant))
            try_variant(s, variant);
    }
}

static int has_room_for_scales(const problem_t *p, size_t workspace_bytes)
{
    return !p->scales || (int64_t)workspace_bytes >= HGEMM_WORKSPACE_TILES * 4 + scale_bytes(p->scales);
}

int rank_plans(const problem_t *p, const machine_t *machine, size_t workspace_bytes, priced_plan_t *best, int most)
{
    ranking_t s = {
        .p = p, .machine = machine, .workspace = workspace_bytes, .best = best, .most = most, .limit = INFINITY};
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
    const prelude_t prelude = prelude_of(p, plan->copies, machine);
    const price_t price = price_variant(p, plan->variant, variant_image(plan->variant), &prelude, machine);
    if (plan->splits == 1 || plan->whole_tiles >= price.likely)
        return whole_clocks(p, &price, plan, INFINITY);
    const parts_t parts = price_parts(p, plan->variant, &price, plan->whole_tiles, INFINITY);
    return parts_clocks(p, &price, &parts, plan, INFINITY);
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
        *plan = whole_plan(p, variant, problem_tiles(p, &kernel_table[p->kernel].info));
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
