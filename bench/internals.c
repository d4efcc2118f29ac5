/* SPDX-License-Identifier: MIT */
#include "internals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "device/t4emu.h"
#include "face/guest.h"
#include "select/feasible.h"
#include "select/plan_text.h"

/* ---- the device ------------------------------------------------------------------------------- */

extern const image_t bench_images[]; /* ceiling_f16, ceiling_f32 */
extern const int bench_image_count;

int internals_ordinal(hgemm_handle_t handle)
{
    return handle->device->ordinal;
}

hgemm_status_t internals_event_create(hgemm_handle_t handle, void **event)
{
    return handle->device->ops->event_create(handle->device, event);
}

hgemm_status_t internals_event_record(hgemm_handle_t handle, void *event)
{
    return handle->device->ops->event_record(handle->device, event, NULL);
}

hgemm_status_t internals_event_elapsed(hgemm_handle_t handle, void *from, void *to, double *seconds)
{
    float milliseconds = 0;
    hgemm_status_t status = handle->device->ops->event_elapsed(handle->device, from, to, &milliseconds);
    *seconds = (double)milliseconds * 1e-3;
    return status;
}

void internals_event_destroy(hgemm_handle_t handle, void *event)
{
    handle->device->ops->event_destroy(handle->device, event);
}

hgemm_status_t internals_load_ceiling(hgemm_handle_t handle, hgemm_accumulate_t accumulate, void **function)
{
    const char *symbol = accumulate == HGEMM_ACCUMULATE_F16 ? "ceiling_f16" : "ceiling_f32";
    for (int i = 0; i < bench_image_count; i++)
        if (strcmp(bench_images[i].symbol, symbol) == 0)
            return handle->device->ops->load(handle->device, &bench_images[i], 0, function);
    return HGEMM_STATUS_NOT_SUPPORTED;
}

hgemm_status_t internals_launch(hgemm_handle_t handle, void *function, int blocks, int threads, const void *args,
                                size_t args_size)
{
    launch_t launch = {{(unsigned)blocks, 1, 1}, (unsigned)threads, 0, args, args_size};
    return handle->device->ops->launch(handle->device, NULL, function, &launch);
}

/* ---- selection -------------------------------------------------------------------------------- */

struct internals_plan_t {
    plan_t plan;
    int64_t k; /* of the problem */
};

int internals_rank_plans(hgemm_handle_t handle, const hgemm_desc_t *desc, int most, internals_plan_t **plans)
{
    const problem_t row = normalise(desc);
    priced_plan_t *best = calloc((size_t)most + 1, sizeof *best);
    int ranked = best ? rank_plans(&row, &handle->machine, handle_room(handle), best, most) : 0, count = 0;
    for (int i = 0; i < ranked; i++) {
        internals_plan_t *plan = malloc(sizeof *plan);
        if (!plan)
            break;
        *plan = (internals_plan_t){best[i].plan, row.k};
        plans[count++] = plan;
    }
    free(best);
    return count;
}

hgemm_status_t internals_run_plan(hgemm_handle_t handle, const internals_plan_t *plan, const hgemm_desc_t *desc)
{
    const problem_t row = normalise(desc);
    const size_t bytes = (size_t)plan_workspace(&row, &plan->plan);
    return handle_make_room(handle, bytes) ? handle_launch(handle, &row, &plan->plan) : HGEMM_STATUS_OUT_OF_MEMORY;
}

void internals_describe_plan(const internals_plan_t *plan, char words[INTERNALS_WORDS])
{
    plan_to_label(&plan->plan, plan->k, words);
}

hgemm_status_t internals_describe_choice(hgemm_handle_t handle, const hgemm_device_info_t *info,
                                         const hgemm_desc_t *desc, char words[INTERNALS_WORDS])
{
    const machine_t machine = handle ? handle->machine : info ? machine_of(info) : machine_t4;
    const problem_t row = normalise(desc);
    internals_plan_t chosen = {.k = row.k};
    hgemm_status_t status =
        select_plan(&row, &machine, handle ? handle_room(handle) : machine.most_workspace, &chosen.plan);
    if (status == HGEMM_STATUS_SUCCESS)
        internals_describe_plan(&chosen, words);
    return status;
}

int internals_blocks_on_t4(int kernel)
{
    return kernel_table[kernel].blocks;
}

/* ---- the emulated T4 -------------------------------------------------------------------------- */

#ifdef HGEMM_EMULATOR
void internals_count(hgemm_handle_t handle, struct turing_counters *counters)
{
    device_t4emu_count(handle->device, counters);
}

static bool run_guest(void *user, const turing_kernel_t *kernel, turing_launch_t *launch)
{
    return device_t4emu_run(user, kernel, launch) == HGEMM_STATUS_SUCCESS;
}

void internals_receive(hgemm_handle_t handle, internals_visit_fn *visit)
{
    visit(&(face_host_t){device_t4emu_memory(handle->device), run_guest, handle->device});
}
#endif

/* ---- the model's time ---------------------------------------------------------------------------- */

#ifdef HGEMM_EMULATOR
static turing_time_t beside;
static turing_clock_t constants; /* of the model, once one was set */
static int constants_are_own;
#endif

int internals_set_clock(hgemm_handle_t handle, const char *name, double value)
{
#ifdef HGEMM_EMULATOR
    if (!constants_are_own)
        constants = turing_clock, constants_are_own = 1;
    if (!turing_clock_set(&constants, name, value))
        return 0;
    device_t4emu_clock(handle->device, &constants);
    return 1;
#else
    (void)handle, (void)name, (void)value;
    return 0;
#endif
}

void internals_empty_l2(hgemm_handle_t handle)
{
#ifdef HGEMM_EMULATOR
    turing_memory_empty_l2(device_t4emu_memory(handle->device));
#else
    (void)handle;
#endif
}

void internals_begin_beside(hgemm_handle_t handle)
{
#ifdef HGEMM_EMULATOR
    beside = (turing_time_t){0};
    device_t4emu_time(handle->device, &beside);
#else
    (void)handle;
#endif
}

double internals_end_beside(hgemm_handle_t handle)
{
#ifdef HGEMM_EMULATOR
    device_t4emu_time(handle->device, NULL);
    return (beside.cold_start + (constants_are_own ? constants.event : turing_clock.event)) / (TURING_T4_MHZ * 1e6);
#else
    (void)handle;
    return 0;
#endif
}

int internals_is_plain(int kernel)
{
    return kernel_table[kernel].is_plain;
}
