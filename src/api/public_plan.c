/* SPDX-License-Identifier: MIT */
/* Plans as callers have them: made, looked at, written, read back, run. */
#include "hgemm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/check.h"
#include "api/handle.h"
#include "select/feasible.h"
#include "select/plan_text.h"
#include "select/problem_class.h"

struct hgemm_plan {
    problem_class_t problem;
    plan_t plan; /* of KERNEL_NONE: there is nothing to compute, and the problem is all zeros */
    char device[sizeof((hgemm_device_info_t *)0)->name];
    hgemm_plan_info_t info;
};

/* For a pointer of that name that is NULL, or the handle. */
static hgemm_status_t refuse_null(hgemm_handle_t handle, const char *name)
{
    if (handle)
        snprintf(handle->device->detail, DEVICE_DETAIL, "%s is NULL.", name);
    return HGEMM_STATUS_INVALID_HANDLE;
}

/* What the public sees of a plan for a problem. */
static hgemm_plan_info_t describe(hgemm_handle_t handle, hgemm_layout_t layout, const problem_t *p, const plan_t *plan)
{
    const double clock = (double)handle->info.clock_khz * 1e3;
    const int is_row_major = layout == HGEMM_ROW_MAJOR;
    return (hgemm_plan_info_t){
        .kernel = plan->variant.kernel,
        .splits = plan->splits,
        .tiles = saturated_product(plan->tiles, p->matrices),
        .split_tiles = saturated_product(plan->tiles - plan->whole_tiles, p->matrices),
        .copies_a = (plan->copies & (is_row_major ? FACTOR_A : FACTOR_B)) != 0,
        .copies_b = (plan->copies & (is_row_major ? FACTOR_B : FACTOR_A)) != 0,
        .seconds = clock > 0 ? estimate_clocks(p, &handle->machine, plan) / clock : 0,
        .workspace_bytes = (size_t)plan_workspace(p, plan),
    };
}

/* Loads what the plan runs and makes the caller's plan of it. */
static hgemm_status_t make(hgemm_plan_t *made, hgemm_handle_t handle, hgemm_layout_t layout, const problem_t *p,
                           const plan_t *chosen)
{
    const int has_kernel = chosen->variant.kernel != KERNEL_NONE;
    hgemm_status_t status = has_kernel ? handle_load(handle, chosen) : HGEMM_STATUS_SUCCESS;
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    struct hgemm_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    memcpy(plan->device, handle->info.name, sizeof plan->device);
    if (has_kernel) {
        plan_t measured;
        plan->problem = class_of(p);
        plan->plan = *chosen;
        plan->info = describe(handle, layout, p, chosen);
        plan->info.is_tuned =
            measured_plan(p, &handle->machine, handle_room(handle), &measured) && same_plan(&measured, chosen);
    }
    *made = plan;
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_plan_create(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    problem_t problem;
    plan_t chosen = {.variant.kernel = KERNEL_NONE};
    if (!handle || !plan)
        return refuse_null(handle, "plan");
    hgemm_status_t status = check_call(desc, CHECK_ALIGNMENT, &problem, handle->device->detail);
    if (status != HGEMM_STATUS_SUCCESS)
        return status; /* its reason is told */
    if (!problem.is_idle)
        status = handle_choose(handle, &problem, &chosen);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        describe_unsupported(&problem, handle->device->detail);
    return status == HGEMM_STATUS_SUCCESS ? make(plan, handle, desc->layout, &problem, &chosen) : status;
}

hgemm_status_t hgemm_plan_get_info(hgemm_plan_t plan, hgemm_plan_info_t *info)
{
    if (!plan || !info)
        return HGEMM_STATUS_INVALID_HANDLE;
    *info = plan->info;
    return HGEMM_STATUS_SUCCESS;
}

void hgemm_plan_destroy(hgemm_plan_t plan)
{
    free(plan);
}

hgemm_status_t hgemm_get_cublas_ratio(hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio)
{
    problem_t problem;
    plan_t measured;
    if (!handle || !ratio)
        return refuse_null(handle, "ratio");
    hgemm_status_t status = check_call(desc, CHECK_ALIGNMENT, &problem, handle->device->detail);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const int has_entry = !problem.is_idle && measured_plan(&problem, &handle->machine, handle_room(handle), &measured);
    *ratio = has_entry ? tuning_cublas_ratio(handle->tuning, &problem) : 0;
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Running --------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static hgemm_status_t refuse(hgemm_handle_t handle, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(handle->device->detail, DEVICE_DETAIL, format, arguments);
    va_end(arguments);
    return HGEMM_STATUS_INVALID_PLAN;
}

/* Words for a plan of nothing, or of a class. */
static const char *name_problem(int kernel, const problem_class_t *problem, char text[CLASS_TEXT])
{
    snprintf(text, CLASS_TEXT, "nothing");
    if (kernel != KERNEL_NONE)
        class_to_text(problem, text);
    return text;
}

/* Whether the plan, which is for the handle's device, runs a problem. */
static hgemm_status_t check_problem(hgemm_plan_t plan, hgemm_handle_t handle, const problem_t *p)
{
    char words[2][CLASS_TEXT];
    const problem_class_t problem = class_of(p);
    if (plan->plan.variant.kernel == KERNEL_NONE || class_compare(&problem, &plan->problem) != 0)
        return refuse(handle, "The plan is for %s, the call is %s.",
                      name_problem(plan->plan.variant.kernel, &plan->problem, words[0]),
                      name_problem(!KERNEL_NONE, &problem, words[1]));
    if (p->kernel != HGEMM_KERNEL_AUTO && p->kernel != plan->plan.variant.kernel)
        return refuse(handle, "The plan runs %s, the call names %s.", kernel_table[plan->plan.variant.kernel].info.name,
                      kernel_table[p->kernel].info.name);
    if (kernel_table[plan->plan.variant.kernel].is_plain && !is_plain_result(p)) /* no class tells of C and D */
        return refuse(handle, "The plan runs %s, which needs C and D in aligned rows and no fused epilogue.",
                      kernel_table[plan->plan.variant.kernel].info.name);
    if (!handle_make_room(handle, plan->info.workspace_bytes))
        return refuse(handle, "The plan needs a workspace of %zu bytes, the handle has %zu.",
                      plan->info.workspace_bytes, handle->workspace_bytes);
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_plan_run(hgemm_plan_t plan, hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    problem_t problem;
    if (!handle || !plan)
        return refuse_null(handle, "plan");
    hgemm_status_t status = check_call(desc, CHECK_MEMORY, &problem, handle->device->detail);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if (strcmp(plan->device, handle->info.name) != 0)
        return refuse(handle, "The plan is for the device \"%s\", the handle's is \"%s\".", plan->device,
                      handle->info.name);
    if (problem.is_idle)
        return HGEMM_STATUS_SUCCESS;
    status = check_problem(plan, handle, &problem);
    return status == HGEMM_STATUS_SUCCESS ? handle_launch(handle, &problem, &plan->plan) : status;
}

/* ---- Text ------------------------------------------------------------------------------------------ */

/* "hgemm 0.2.0 | Tesla T4 | f16 nn 512x512x512 | k5_64x64 nn x16" */
static const char separator[] = " | ";

static void write_library(char text[32])
{
    snprintf(text, 32, "hgemm %d.%d.%d", HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH);
}

hgemm_status_t hgemm_plan_get_text(hgemm_plan_t plan, char text[HGEMM_PLAN_TEXT])
{
    char library[32], problem[CLASS_TEXT], words[PLAN_TEXT] = "nothing";
    if (!plan || !text)
        return HGEMM_STATUS_INVALID_HANDLE;
    write_library(library);
    if (plan->plan.variant.kernel != KERNEL_NONE)
        plan_to_text(&plan->plan, words);
    snprintf(text, HGEMM_PLAN_TEXT, "%s%s%s%s%s%s%s", library, separator, plan->device, separator,
             name_problem(plan->plan.variant.kernel, &plan->problem, problem), separator, words);
    return HGEMM_STATUS_SUCCESS;
}

/* Goes past the part of a text that must be `wanted`; else says what it is instead. */
static hgemm_status_t take_part(hgemm_handle_t handle, const char **text, const char *what, const char *wanted)
{
    const char *end = strstr(*text, separator);
    size_t length = end ? (size_t)(end - *text) : strlen(*text);
    if (!end)
        return refuse(handle, "The text is no plan: it ends where the %s should be.", what);
    if (length != strlen(wanted) || strncmp(*text, wanted, length) != 0)
        return refuse(handle, "The plan is for the %s \"%.*s\", not \"%s\".", what, length < 200 ? (int)length : 200,
                      *text, wanted);
    *text = end + strlen(separator);
    return HGEMM_STATUS_SUCCESS;
}

/* Reads the last part of a text, a plan for the problem, or for none. */
static hgemm_status_t take_plan(hgemm_handle_t handle, const char *text, const problem_t *p, plan_t *plan)
{
    if (p->is_idle && strcmp(text, "nothing") != 0)
        return refuse(handle, "The call has nothing to compute, but the plan has.");
    if (p->is_idle)
        return HGEMM_STATUS_SUCCESS;
    const char *fault = plan_from_text(text, p, plan);
    if (!fault && p->kernel != HGEMM_KERNEL_AUTO && p->kernel != plan->variant.kernel)
        fault = "the call names another kernel";
    if (!fault)
        fault = plan_fault(p, handle_room(handle), plan);
    if (!fault && !handle_make_room(handle, (size_t)plan_workspace(p, plan)))
        fault = "the workspace is too small, and cannot grow";
    return fault ? refuse(handle, "The plan cannot run the call: %s.", fault) : HGEMM_STATUS_SUCCESS;
}

hgemm_status_t hgemm_plan_from_text(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc,
                                    const char *text)
{
    problem_t problem;
    plan_t read = {.variant.kernel = KERNEL_NONE};
    char library[32], words[CLASS_TEXT];
    if (!handle || !plan || !text)
        return refuse_null(handle, plan ? "text" : "plan");
    hgemm_status_t status = check_call(desc, CHECK_ALIGNMENT, &problem, handle->device->detail);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    problem_class_t class = {{0}};
    if (!problem.is_idle)
        class = class_of(&problem);
    write_library(library);
    status = take_part(handle, &text, "library", library);
    if (status == HGEMM_STATUS_SUCCESS)
        status = take_part(handle, &text, "device", handle->info.name);
    if (status == HGEMM_STATUS_SUCCESS)
        status = take_part(handle, &text, "problem", name_problem(!problem.is_idle, &class, words));
    if (status == HGEMM_STATUS_SUCCESS)
        status = take_plan(handle, text, &problem, &read);
    return status == HGEMM_STATUS_SUCCESS ? make(plan, handle, desc->layout, &problem, &read) : status;
}
