/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

machine_t machine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;

/* ---- options -------------------------------------------------------------------------- */

static unsigned parse_checks(const char *text)
{
    static const char *const names[] = {"memory", "race", "schedule", "convergence"};
    unsigned checks = 0;
    char *copy = strdup(text ? text : ""), *rest = copy;
    for (char *word; copy && (word = strsep(&rest, ", "));) {
        unsigned bit = !strcmp(word, "all") || !strcmp(word, "1") ? TURING_CHECK_ALL : 0;
        for (unsigned i = 0; i < 4; i++)
            bit |= strcmp(word, names[i]) ? 0 : 1u << i;
        if (!bit && *word && strcmp(word, "none") && strcmp(word, "0"))
            machine_say("TURING_CHECK: unknown check %s", word);
        checks |= bit;
    }
    free(copy);
    return checks;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0");
}

static void open_log(void)
{
    const char *path = getenv("TURING_LOG");
    if (!is_set("TURING_LOG"))
        return;
    log_file = strcmp(path, "1") ? fopen(path, "a") : stderr;
    if (!log_file)
        machine_say("TURING_LOG: cannot open %s", path);
    else
        setvbuf(log_file, NULL, _IOLBF, 0);
}

/* ---- the machine ------------------------------------------------------------------------ */

CUresult machine_init(void)
{
    if (machine.initialized)
        return CUDA_SUCCESS;
    const char *limit = getenv("TURING_LIMIT"), *threads = getenv("TURING_THREADS");
    open_log();
    machine.checks = parse_checks(getenv("TURING_CHECK"));
    machine.time = is_set("TURING_TIME");
    machine.blocking = is_set("CUDA_LAUNCH_BLOCKING");
    machine.limit = limit ? strtoull(limit, NULL, 0) : 0;
    machine.threads = threads ? (unsigned)strtoul(threads, NULL, 0) : 0;
    machine.next_base = TURING_GLOBAL_BASE;
    machine.mem = machine.host.memory;
    if (!machine.mem)
        machine.mem = turing_memory_create(machine.checks & TURING_CHECK_MEMORY ? TURING_MEMORY_TRACK : 0);
    machine.initialized = machine.mem;
    return machine.mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void turing_face_visit(const face_host_t *host)
{
    machine.host = *host;
}

void machine_say(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fputs("turing: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void machine_log(const char *entry_point, const char *what)
{
    if (log_file)
        fprintf(log_file, "%s%s%s\n", entry_point, *what ? ": " : "", what);
}

void machine_lock(const char *entry_point)
{
    pthread_mutex_lock(&lock);
    machine_log(entry_point, "");
}

CUresult machine_begin(const char *entry_point)
{
    machine_lock(entry_point);
    if (!machine.initialized)
        return machine_end(CUDA_ERROR_NOT_INITIALIZED);
    if (!context_current())
        return machine_end(CUDA_ERROR_INVALID_CONTEXT);
    return machine.sticky == CUDA_SUCCESS ? CUDA_SUCCESS : machine_end(machine.sticky);
}

CUresult machine_end(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

void machine_reset(void)
{
    machine.sticky = CUDA_SUCCESS;
}
