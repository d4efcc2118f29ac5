/* SPDX-License-Identifier: MIT */
#include "inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "device/t4emu.h"

/* ---- the device ------------------------------------------------------------------------------- */

extern const image_t bench_images[]; /* ceiling_f16, ceiling_f32 */
extern const int bench_image_count;

int inside_ordinal(hgemm_handle_t handle)
{
    return handle->device->ordinal;
}

hgemm_status_t inside_event_create(hgemm_handle_t handle, void **event)
{
    return handle->device->ops->event_create(handle->device, event);
}

hgemm_status_t inside_event_record(hgemm_handle_t handle, void *event)
{
    return handle->device->ops->event_record(handle->device, event, NULL);
}

hgemm_status_t inside_event_elapsed(hgemm_handle_t handle, void *from, void *to, double *seconds)
{
    float milliseconds = 0;
    hgemm_status_t status = handle->device->ops->event_elapsed(handle->device, from, to, &milliseconds);
    *seconds = (double)milliseconds * 1e-3;
    return status;
}

void inside_event_destroy(hgemm_handle_t handle, void *event)
{
    handle->device->ops->event_destroy(handle->device, event);
}

hgemm_status_t inside_load_ceiling(hgemm_handle_t handle, hgemm_accumulate_t accumulate, void **function)
{
    const char *symbol = accumulate == HGEMM_ACCUMULATE_F16 ? "ceiling_f16" : "ceiling_f32";
    for (int i = 0; i < bench_image_count; i++)
        if (strcmp(bench_images[i].symbol, symbol) == 0)
            return handle->device->ops->load(handle->device, &bench_images[i], 0, function);
    return HGEMM_STATUS_NOT_SUPPORTED;
}

hgemm_status_t inside_launch(hgemm_handle_t handle, void *function, int blocks, int threads, const void *args,
                             size_t args_size)
{
    launch_t launch = {{(unsigned)blocks, 1, 1}, (unsigned)threads, 0, args, args_size};
    return handle->device->ops->launch(handle->device, NULL, function, &launch);
}

/* ---- selection -------------------------------------------------------------------------------- */

struct inside_plan_t {
    plan_t plan;
    int64_t k; /* of the problem */
};

int inside_rank_plans(hgemm_handle_t handle, const hgemm_desc_t *desc, int most, inside_plan_t **plans)
{
    hgemm_desc_t row = normalise(desc);
    priced_plan_t *best = calloc((size_t)most + 1, sizeof *best);
    int ranked = best ? rank_plans(&row, &handle->machine, handle->workspace_bytes, best, most) : 0, count = 0;
    for (int i = 0; i < ranked; i++) {
        inside_plan_t *plan = malloc(sizeof *plan);
        if (!plan)
            break;
        *plan = (inside_plan_t){best[i].plan, row.k};
        plans[count++] = plan;
    }
    free(best);
    return count;
}

hgemm_status_t inside_run_plan(hgemm_handle_t handle, const inside_plan_t *plan, const hgemm_desc_t *desc)
{
    hgemm_desc_t row = normalise(desc);
    return handle_launch(handle, &row, &plan->plan);
}

void inside_describe_plan(const inside_plan_t *p, char words[INSIDE_WORDS])
{
    const plan_t *plan = &p->plan;
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    int64_t steps = (p->k + info->block_k - 1) / info->block_k, even = (steps + plan->splits - 1) / plan->splits;
    size_t used = (size_t)snprintf(words, INSIDE_WORDS, "%s%s%s", info->name, plan->copies ? " copy" : "",
                                   plan->splits > 1 && plan->whole_tiles ? " tail" : "");
    if (plan->splits > 1 && plan->k_split == even * info->block_k)
        snprintf(words + used, INSIDE_WORDS - used, " k/%d", plan->splits);
    else if (plan->splits > 1)
        snprintf(words + used, INSIDE_WORDS - used, " %dx%" PRId64 "+%" PRId64, plan->splits - 1, plan->k_split,
                 p->k - (plan->splits - 1) * plan->k_split);
}

hgemm_status_t inside_describe_choice(hgemm_handle_t handle, const hgemm_desc_t *desc, char words[INSIDE_WORDS])
{
    const machine_t *machine = handle ? &handle->machine : &machine_t4;
    hgemm_desc_t row = normalise(desc);
    inside_plan_t chosen = {.k = row.k};
    hgemm_status_t status =
        select_plan(&row, machine, handle ? handle->workspace_bytes : machine->workspace_bytes, &chosen.plan);
    if (status == HGEMM_STATUS_SUCCESS)
        inside_describe_plan(&chosen, words);
    return status;
}

int inside_blocks_on_t4(int kernel)
{
    return kernel_table[kernel].blocks;
}

/* ---- the emulated T4 -------------------------------------------------------------------------- */

#ifdef HGEMM_EMULATOR
void inside_count(hgemm_handle_t handle, struct turing_counters *counters)
{
    device_t4emu_count(handle->device, counters);
}

hgemm_status_t inside_run_emulated(hgemm_handle_t handle, const struct turing_kernel *kernel,
                                   struct turing_launch *launch)
{
    return device_t4emu_run(handle->device, kernel, launch);
}
#endif

int inside_is_plain(int kernel)
{
    return kernel_table[kernel].is_plain;
}
