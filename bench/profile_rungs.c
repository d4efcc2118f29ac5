/* SPDX-License-Identifier: MIT */
/*
 * What each rung of the ladder waits for on the timing model of a T4, as JSON for docs/ladder.md:
 *
 *     profile_rungs [N [CYCLES]] >bench/results/t4model/rungs.json
 *
 * Multiplies two N x N matrices (default 2048) on the device t4emu:time by k1 to k4, and by the plan that hgemm
 * chooses. Beside the model's totals it writes a timeline: what keeps the tensor core of one sub-core and the
 * load/store unit of its multiprocessor busy, in a window of CYCLES cycles (default 3000) midway through its first
 * tile. Nothing here is measured. Exit status: 0; 1 where the model could not run; 2 where the arguments are wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "launched.h"
#include "api/handle.h"
#include "device/t4emu.h"
#include "turing/launch.h"

enum { MOST_SPANS = 1 << 14 };

/* What a span of time is spent on. OTHER are the issues of instructions that are neither. */
typedef enum work_t { HMMA, LDSM, STS, LDG, OTHER, WORK_COUNT } work_t;

static const char *const work_names[WORK_COUNT] = {"hmma", "ldsm", "sts", "ldg", "other"};

typedef struct span_t {
    work_t work;
    uint32_t warp;
    double begin, end;
} span_t;

/* The window, and what happened in it on the first multiprocessor: everything in its load/store unit, all else on
 * its first sub-core. */
typedef struct timeline_t {
    double begin, end;
    double first_exit; /* of a warp, or 0 */
    span_t spans[MOST_SPANS];
    int count, lost;
} timeline_t;

static timeline_t timeline;

static const char usage[] =
    "Usage: profile_rungs [N [CYCLES]]\n"
    "\n"
    "Writes as JSON what each rung of the ladder waits for on the timing model of a T4, for a product of N x N\n"
    "matrices (8 to 8192, default 2048: under a minute), and what keeps one sub-core busy for CYCLES cycles\n"
    "(default 3000) midway through its first tile. Nothing is measured.\n";

static work_t work_of(const turing_insn_t *insn)
{
    switch (insn->op) {
    case TURING_HMMA_1688: return HMMA;
    case TURING_LDSM: return LDSM;
    case TURING_STS: return STS;
    case TURING_LDG:
    case TURING_LD: return LDG;
    default: return OTHER;
    }
}

static void keep_span(void *user, const turing_issue_t *issue)
{
    timeline_t *t = user;
    const work_t work = work_of(issue->insn);
    if (issue->sm != 0 || ((work == HMMA || work == OTHER) && issue->sub_core != 0))
        return;
    span_t span = {work, issue->warp, issue->begin, issue->end};
    if (work == OTHER)
        span.begin = issue->issued, span.end = issue->issued + 1;
    if (span.end <= t->begin || span.begin >= t->end)
        return;
    for (int i = t->count; i-- > 0 && i >= t->count - 16;) { /* joins the last span of its kind and warp */
        span_t *last = &t->spans[i];
        if (last->work == work && last->warp == span.warp && span.begin - last->end < 0.5) {
            last->end = span.end;
            return;
        }
        if (last->work == work)
            break;
    }
    if (t->count == MOST_SPANS)
        t->lost = 1;
    else
        t->spans[t->count++] = span;
}

static void find_exit(void *user, const turing_issue_t *issue)
{
    timeline_t *t = user;
    if (issue->sm == 0 && issue->insn->op == TURING_EXIT && (t->first_exit == 0 || issue->issued < t->first_exit))
        t->first_exit = issue->issued;
}

static void print_timeline(void)
{
    printf("\"timeline\": {\"cycles\": %.0f", timeline.end - timeline.begin);
    for (int work = 0; work < WORK_COUNT; work++) {
        const char *separator = "";
        printf(", \"%s\": [", work_names[work]);
        for (int i = 0; i < timeline.count; i++) {
            const span_t *s = &timeline.spans[i];
            if (s->work != (work_t)work)
                continue;
            printf("%s[%.0f, %.0f, %u]", separator, s->begin - timeline.begin, s->end - s->begin, s->warp);
            separator = ", ";
        }
        printf("]");
    }
    printf("}");
}

static void print_result(int first, int64_t size, const char *rung, const char *note, const char *images,
                         const turing_time_t *t)
{
    const double percent = 100 / t->cycles, side = (double)size;
    const double us = t->cycles / TURING_T4_MHZ;
    double idle = 100 - percent * (double)t->instructions / (4 * TURING_T4_SMS);
    printf("%s\n{\"problem\": \"%lldx%lldx%lld nn row\", \"kernel\": \"%s\", ", first ? "" : ",", (long long)size,
           (long long)size, (long long)size, rung);
    if (strcmp(note, rung) != 0)
        printf("\"note\": \"%s\", ", note);
    printf("\"images\": \"%s\", \"modelled_us\": %.2f, \"tflops\": %.2f, \"percent\": {\"tensor\": %.2f, \"lsu\": "
           "%.2f, \"dram\": %.2f, "
           "\"issue\": %.2f}, \"waits\": {",
           images, us, 2 * side * side * side / us * 1e-6, percent * t->tensor, percent * t->lsu, percent * t->dram,
           100 - idle);
    for (int i = 0; i < TURING_STALL_COUNT; i++) {
        printf("\"%s\": %.2f, ", turing_stall_name((turing_stall_t)i), percent * t->stall[i]);
        idle -= percent * t->stall[i];
    }
    printf("\"no warps\": %.2f},\n ", idle > 0 ? idle : 0);
    print_timeline();
    printf("}");
}

/* A launch to learn how long it takes, and when its first warp ends; and one more to watch the window. */
static hgemm_status_t profile(hgemm_handle_t handle, const hgemm_desc_t *desc, double window, turing_time_t *time)
{
    *time = (turing_time_t){0};
    turing_time_t again = {0};
    timeline.first_exit = 0;
    device_t4emu_time(handle->device, time);
    device_t4emu_watch(handle->device, find_exit, &timeline);
    hgemm_status_t status = hgemm_run_desc(handle, desc);
    timeline.begin = timeline.first_exit / 2;
    timeline.end = timeline.begin + window;
    timeline.count = 0;
    device_t4emu_time(handle->device, &again);
    device_t4emu_watch(handle->device, keep_span, &timeline);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_run_desc(handle, desc);
    device_t4emu_watch(handle->device, NULL, NULL);
    device_t4emu_time(handle->device, NULL);
    return timeline.lost ? HGEMM_STATUS_TOO_LARGE : status;
}

static int failed(hgemm_handle_t handle, hgemm_status_t status)
{
    fprintf(stderr, "profile_rungs: %s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
    return 1;
}

int main(int argc, char **argv)
{
    const long size = argc > 1 ? strtol(argv[1], NULL, 10) : 2048;
    const double window = argc > 2 ? strtod(argv[2], NULL) : 3000;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("%s", usage);
        return 0;
    }
    if (argc > 3 || size < 8 || size > 8192 || !(window > 0)) {
        fprintf(stderr, "%s", usage);
        return 2;
    }
    hgemm_handle_t handle = NULL;
    hgemm_status_t status = hgemm_create(&handle, "t4emu:time");
    if (status != HGEMM_STATUS_SUCCESS)
        return failed(NULL, status);
    launched_open(handle);
    const size_t elements = (size_t)size * (size_t)size, bytes = elements * 2;
    void *a = NULL, *b = NULL, *d = NULL;
    uint16_t *host = malloc(bytes);
    if (!host || hgemm_malloc(handle, &a, bytes) || hgemm_malloc(handle, &b, bytes) || hgemm_malloc(handle, &d, bytes))
        return failed(handle, HGEMM_STATUS_OUT_OF_MEMORY);
    for (size_t i = 0; i < elements; i++)
        host[i] = hgemm_half_from_float((float)(i * 2654435761u % 2048) / 1024 - 1);
    if (hgemm_upload(handle, a, host, bytes) || hgemm_upload(handle, b, host, bytes))
        return failed(handle, HGEMM_STATUS_DEVICE_ERROR);
    free(host);

    printf("{\n\"context\": {\n  \"gpu\": \"Tesla T4 (timing model)\",\n  \"clocks\": \"%d MHz\",\n"
           "  \"hgemm\": \"%d.%d.%d, commit %s, nvcc %s\",\n  \"witness\": \"modelled\",\n  \"alpha\": \"1\",\n"
           "  \"beta\": \"0\"\n},\n\"results\": [",
           TURING_T4_MHZ, HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, HGEMM_COMMIT,
           HGEMM_NVCC_VERSION);
    const char *rung = "";
    int shown = 0;
    for (int kernel = 1; kernel <= hgemm_kernel_count(); kernel++) {
        hgemm_kernel_info_t info;
        hgemm_get_kernel_info(kernel, &info);
        if (strcmp(info.rung, rung) == 0 || info.stages == 0 || /* thin kernels are no rung, k0_naive takes too long, */
            !kernel_table[kernel].limits[LIMIT_align])          /* and some are not for matrices of halves */
            continue;
        rung = info.rung;
        hgemm_desc_t desc;
        hgemm_desc_init(&desc);
        desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = size;
        desc.a = a, desc.b = b, desc.c = desc.d = d;
        desc.kernel = strcmp(rung, info.name) == 0 ? kernel : HGEMM_KERNEL_AUTO; /* a family: the one chosen */
        turing_time_t time;
        char images[LAUNCHED_WORDS] = "";
        int chosen = kernel;
        status = desc.kernel == HGEMM_KERNEL_AUTO ? hgemm_select(&desc, &chosen) : HGEMM_STATUS_SUCCESS;
        launched_into(images);
        if (status == HGEMM_STATUS_SUCCESS)
            status = profile(handle, &desc, window, &time);
        launched_into(NULL);
        if (status == HGEMM_STATUS_NOT_SUPPORTED) /* this build has no machine code for it */
            continue;
        if (status != HGEMM_STATUS_SUCCESS)
            return failed(handle, status);
        hgemm_get_kernel_info(chosen, &info);
        print_result(!shown++, size, rung, info.name, images, &time);
    }
    printf("\n]\n}\n");
    hgemm_free(handle, a);
    hgemm_free(handle, b);
    hgemm_free(handle, d);
    return hgemm_destroy(handle) != HGEMM_STATUS_SUCCESS;
}
