/* SPDX-License-Identifier: MIT */
#include "select/plan_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "select/parse.h"

static const char *const copy_names[] = {[FACTOR_A] = "a", [FACTOR_B] = "b", [FACTOR_A | FACTOR_B] = "ab"};

void plan_to_label(const plan_t *plan, int64_t k, char label[PLAN_LABEL])
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const int64_t steps = ceil_div(k, info->block_k), even = ceil_div(steps, plan->splits);
    const size_t used = (size_t)snprintf(label, PLAN_LABEL, "%s%s%s", info->name, plan->copies ? " copy" : "",
                                         plan->splits > 1 && plan->whole_tiles ? " tail" : "");
    if (plan->splits > 1 && plan->k_split == even * info->block_k)
        snprintf(label + used, PLAN_LABEL - used, " k/%d", plan->splits);
    else if (plan->splits > 1)
        snprintf(label + used, PLAN_LABEL - used, " %dx%" PRId64 "+%" PRId64, plan->splits - 1, plan->k_split,
                 k - (plan->splits - 1) * plan->k_split);
}

void plan_to_text(const plan_t *plan, char text[PLAN_TEXT])
{
    int length = snprintf(text, PLAN_TEXT, "%s %s %s", kernel_table[plan->variant.kernel].info.name,
                          transpose_names[plan->variant.op], access_names[plan->variant.access]);
    if (plan->splits > 1)
        length += snprintf(text + length, PLAN_TEXT - (size_t)length, " whole %" PRId64 " splits %d k %" PRId64,
                           plan->whole_tiles, plan->splits, plan->k_split);
    if (plan->copies)
        snprintf(text + length, PLAN_TEXT - (size_t)length, " copies %s", copy_names[plan->copies]);
}

static int take_kernel(const char **text)
{
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++)
        if (take_word(text, kernel_table[kernel].info.name))
            return kernel;
    return KERNEL_NONE;
}

const char *plan_from_text(const char *text, const problem_t *p, plan_t *plan)
{
    int kernel = take_kernel(&text);
    if (!kernel)
        return "no kernel has the name that the plan begins with";
    int op = take_one_of(&text, transpose_names, VARIANT_OPS);
    int access = op < 0 ? -1 : take_one_of(&text, access_names, ACCESS_COUNT);
    if (access < 0)
        return "the kernel's name is not followed by transposes (nn, nt, tn, tt) and access (x16, x8, any, far)";
    int64_t tiles = problem_tiles(p, &kernel_table[kernel].info), splits = 1;
    variant_t variant = variant_for(p, kernel, (access_t)access);
    variant.op = op; /* which plan_fault looks at */
    *plan = (plan_t){variant, tiles, tiles, 1, p->k, 0, p->scales};
    if (take_word(&text, "whole")) {
        if (!take_number(&text, INT32_MAX, &plan->whole_tiles) || !take_word(&text, "splits") ||
            !take_number(&text, INT32_MAX, &splits) || !take_word(&text, "k") ||
            !take_number(&text, INT32_MAX, &plan->k_split))
            return "tiles whose k is split are told of as: whole TILES splits PARTS k LENGTH";
        if (splits < 2)
            return "a k that is split has at least two parts";
        plan->splits = (int)splits;
    }
    if (take_word(&text, "copies")) {
        plan->copies = take_one_of(&text, copy_names, (int)(sizeof copy_names / sizeof copy_names[0]));
        if (plan->copies < 0)
            return "the operands that are copied are a, b or ab";
    }
    return *text ? "more words follow than a plan has" : NULL;
}
