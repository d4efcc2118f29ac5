/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

machine_t machine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;

enum { MOST_THREADS = 1024, SECONDS = 30, MOST_SECONDS = 1000000 };

/* ---- options -------------------------------------------------------------------------- */

static bool read_checks(void)
{
    const char *list = getenv("TURING_CHECK"), *unknown = turing_checks_from(list ? list : "", &machine.checks);
    if (unknown)
        machine_say("TURING_CHECK: unknown check %s", unknown);
    return !unknown;
}

/* A number in a variable of the environment; 0 where there is none. */
static bool read_number(const char *name, uint64_t most, uint64_t *number)
{
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    *number = text ? strtoull(text, &end, 0) : 0;
    if (!text || (!*end && !errno && *number <= most && !strchr(text, '-')))
        return true;
    machine_say("%s: %s is no number from 0 to %llu", name, text, (unsigned long long)most);
    return false;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0");
}

static bool open_log(void)
{
    const char *path = getenv("TURING_LOG");
    if (!is_set("TURING_LOG"))
        return true;
    log_file = strcmp(path, "1") ? fopen(path, "a") : stderr;
    if (!log_file)
        machine_say("TURING_LOG: cannot open %s", path);
    else
        setvbuf(log_file, NULL, _IOLBF, 0);
    return log_file;
}

/* Whether all options make sense. One that does not is told of, once, and no kernel runs: a run without the check that
 * was meant would look like one that passed it. */
static bool read_options(void)
{
    uint64_t threads, seconds;
    bool ok = open_log();
    ok &= read_checks();
    ok &= read_number("TURING_LIMIT", UINT64_MAX, &machine.limit);
    ok &= read_number("TURING_THREADS", MOST_THREADS, &threads);
    ok &= read_number("TURING_SECONDS", MOST_SECONDS, &seconds);
    machine.threads = (unsigned)threads;
    machine.seconds = getenv("TURING_SECONDS") ? (uint32_t)seconds : SECONDS;
    machine.keep_going = is_set("TURING_KEEP_GOING");
    machine.time = is_set("TURING_TIME");
    machine.blocking = is_set("CUDA_LAUNCH_BLOCKING");
    return ok;
}

/* ---- the machine ------------------------------------------------------------------------ */

CUresult machine_init(void)
{
    if (machine.initialized)
        return CUDA_SUCCESS;
    if (machine.refused || !read_options()) {
        machine.refused = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
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

bool machine_logs(void)
{
    return log_file;
}

void machine_lock(const char *entry_point)
{
    pthread_mutex_lock(&lock);
    machine_log(entry_point, "");
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
