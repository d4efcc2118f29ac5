/* SPDX-License-Identifier: MIT */
/* launch.c - kernels are run, what is wrong with them is told, and what they took is added up. */
#include "findings.h"

#include <stdlib.h>
#include <string.h>

/* ---- modelled time ------------------------------------------------------------------------ */

typedef struct row {
    char *name;
    unsigned long long calls;
    turing_time_t sum;
    double least, most; /* us */
    struct row *next;
} row_t;

static row_t *rows;

static row_t *row_of(const char *name)
{
    row_t *r = rows;
    while (r && strcmp(r->name, name))
        r = r->next;
    if (!r && (r = calloc(1, sizeof *r))) {
        if (!(r->name = strdup(name))) {
            free(r);
            return NULL;
        }
        r->next = rows;
        rows = r;
    }
    return r;
}

static void add_time(const char *name, const turing_time_t *time)
{
    const double us = time->cycles / TURING_T4_MHZ;
    row_t *r = row_of(name);
    machine.modelled_us += us;
    if (!r)
        return;
    r->least = !r->calls || us < r->least ? us : r->least;
    r->most = us > r->most ? us : r->most;
    r->calls++;
    turing_time_add(&r->sum, time);
}

static int by_time(const void *a, const void *b)
{
    const double x = (*(row_t *const *)a)->sum.cycles, y = (*(row_t *const *)b)->sum.cycles;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* What most of the issue slots waited for. */
static void print_row(const row_t *r)
{
    int worst = 0;
    for (int i = 1; i < TURING_STALL_COUNT; i++)
        if (r->sum.stall[i] > r->sum.stall[worst])
            worst = i;
    const double cycles = r->sum.cycles > 0 ? r->sum.cycles : 1, us = r->sum.cycles / TURING_T4_MHZ;
    fprintf(stderr, "%6.1f%% %10.2f %6llu %10.2f %10.2f %10.2f  %5.1f%% %5.1f%%  %s %.0f%%  %s\n",
            machine.modelled_us > 0 ? 100 * us / machine.modelled_us : 0, us, r->calls, us / (double)r->calls, r->least,
            r->most, 100 * r->sum.dram / cycles, 100 * r->sum.tensor / cycles, turing_stall_name((turing_stall_t)worst),
            100 * r->sum.stall[worst] / cycles, r->name);
}

__attribute__((destructor)) static void print_table(void)
{
    size_t n = 0, i = 0;
    for (const row_t *r = rows; r; r = r->next)
        n++;
    row_t **sorted = n ? calloc(n, sizeof *sorted) : NULL;
    if (!sorted)
        return;
    for (row_t *r = rows; r; r = r->next)
        sorted[i++] = r;
    qsort(sorted, n, sizeof *sorted, by_time);
    fflush(stdout);
    fprintf(stderr,
            "turing: modelled on a T4 at %d MHz, not measured; us without the start of each launch\n"
            "   time   total us  calls         us      least       most   DRAM tensor  waits most for, kernel\n",
            TURING_T4_MHZ);
    for (i = 0; i < n; i++)
        print_row(sorted[i]);
    free(sorted);
}

/* ---- what a kernel prints, and how it fails ---------------------------------------------------- */

static void print(void *user, const char *text, size_t bytes)
{
    (void)user;
    machine.printed = true;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}

static const char *name_of(turing_failure_t failure)
{
    switch (failure) {
    case TURING_FAILED_ADDRESS: return "out of bounds";
    case TURING_FAILED_MISALIGNED: return "misaligned";
    case TURING_FAILED_ASSERT: return "assertion";
    case TURING_FAILED_TRAP: return "trap";
    case TURING_FAILED_INSTRUCTION: return "instruction";
    case TURING_FAILED_STUCK: return "stuck";
    default: return "failure";
    }
}

static CUresult error_of(turing_failure_t failure)
{
    switch (failure) {
    case TURING_FAILED_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case TURING_FAILED_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case TURING_FAILED_ASSERT: return CUDA_ERROR_ASSERT;
    case TURING_FAILED_INSTRUCTION: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case TURING_FAILED_STUCK: return CUDA_ERROR_LAUNCH_TIMEOUT;
    default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}

/* ---- launches ---------------------------------------------------------------------------------- */

static bool gather(const turing_kernel_t *k, void **params, void **extra, uint8_t bytes[MOST_PARAMETERS])
{
    if (k->param_bytes > MOST_PARAMETERS || (!params && !extra && k->param_bytes))
        return false;
    memset(bytes, 0, k->param_bytes);
    for (uint32_t i = 0; params && i < k->n_params; i++)
        if (!params[i])
            return false;
        else
            memcpy(bytes + k->params[i].offset, params[i], k->params[i].size);
    const void *buffer = NULL;
    size_t size = 0;
    for (int i = 0; !params && extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
            size = *(size_t *)extra[i + 1];
        else
            return false;
    if (buffer)
        memcpy(bytes, buffer, size < k->param_bytes ? size : k->param_bytes);
    return true;
}

/* What CUDA finds wrong before it launches; the launch itself says the rest. */
static CUresult check(const function_t *f, const unsigned grid[3], const unsigned block[3], unsigned shared,
                      bool cooperative)
{
    const turing_kernel_t *k = f->kernel;
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535 || !threads ||
        threads > 1024 || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned limit = f->max_dynamic_shared     ? (unsigned)f->max_dynamic_shared
                           : k->shared_bytes < 49152 ? 49152 - k->shared_bytes
                                                     : 0;
    if (shared > limit) {
        machine_say("%s: %u bytes of dynamic shared memory, and %u are allowed: "
                    "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES allows more",
                    k->name, shared, limit);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (k->max_threads && threads > k->max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (!turing_occupancy(k, (uint32_t)threads, shared).blocks)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (cooperative && blocks > (uint64_t)TURING_T4_SMS * turing_occupancy(k, (uint32_t)threads, shared).blocks)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

CUresult launch(function_t *f, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **params,
                void **extra, bool cooperative)
{
    uint8_t bytes[MOST_PARAMETERS];
    turing_error_t err;
    turing_time_t time;
    turing_failure_t failure = TURING_FAILED_OTHER;
    findings_t findings = {0, CUDA_SUCCESS};
    if (!function_known(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!gather(f->kernel, params, extra, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = check(f, grid, block, shared_bytes, cooperative);
    if (r != CUDA_SUCCESS)
        return r;
    const turing_kernel_t *k = f->kernel;
    if (k->unusable || turing_unsupported(k, &err)) {
        machine_say("%s", k->unusable ? k->unusable : err.text);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    turing_launch_t l = {.grid = {grid[0], grid[1], grid[2]},
                         .block = {block[0], block[1], block[2]},
                         .shared_bytes = shared_bytes,
                         .stack_bytes = (uint32_t)context_stack_bytes(),
                         .params = bytes,
                         .param_bytes = k->param_bytes,
                         .cooperative = cooperative};
    machine_log(k->name, "launched");
    forms_log(f);
    if (machine.host.run)
        return machine.host.run(machine.host.user, k, &l) ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
    l.threads = machine.threads;
    l.max_warp_instructions = machine.limit;
    l.checks = machine.checks;
    l.seconds = machine.time ? 0 : machine.seconds; /* blocks that are timed run side by side, and end together */
    l.host_reads = true;
    l.found = findings_found;
    l.print = print;
    l.user = &findings;
    l.failure = &failure;
    l.time = machine.time ? &time : NULL;
    if (!turing_launch(k, machine.mem, &l, NULL, &err)) {
        findings_told(name_of(failure), k->name, "-", err.text);
        machine.sticky = findings.count ? findings.error : error_of(failure);
    } else if (findings.count)
        machine.sticky = findings_error(&findings);
    else if (machine.time)
        add_time(k->name, &time);
    /* as CUDA has it, a launch succeeds and what comes after it fails */
    return machine.blocking ? machine.sticky : CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    BEGIN_ON(stream);
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    END(launch((function_t *)function, grid, block, shared, params, extra, false));
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                           unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params)
{
    BEGIN_ON(stream);
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    END(launch((function_t *)function, grid, block, shared, params, NULL, true));
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    BEGIN;
    bool cooperative = false;
    if (!config || (config->numAttrs && !config->attrs))
        END(CUDA_ERROR_INVALID_VALUE);
    if (!stream_known(config->hStream))
        END(CUDA_ERROR_INVALID_HANDLE);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = a->value.cooperative;
        else if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
                 a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z > 1)
            END(not_served("a cluster of blocks, which a T4 does not have"));
    }
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ},
                   block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    END(launch((function_t *)function, grid, block, config->sharedMemBytes, params, extra, cooperative));
}

/* On the host, in the order of the stream; it may call the driver. */
CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user)
{
    BEGIN_ON(stream);
    machine_end(CUDA_SUCCESS);
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    function(user);
    return CUDA_SUCCESS;
}
