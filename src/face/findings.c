/* SPDX-License-Identifier: MIT */
#include "findings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rule {
    char *kind, *kernel, *line;
    struct rule *next;
} rule_t;

static rule_t *rules;

static void read_rules(void)
{
    static bool done;
    const char *path = getenv("TURING_ALLOW");
    char *text = NULL;
    size_t size = 0;
    if (done || !path || !*path)
        return;
    done = true;
    FILE *f = fopen(path, "r");
    if (!f) {
        machine_say("TURING_ALLOW: %s: %s; nothing is allowed", path, strerror(errno));
        return;
    }
    while (getline(&text, &size, f) > 0) {
        rule_t *r = *text == '#' ? NULL : calloc(1, sizeof *r);
        if (!r)
            continue;
        char *rest = text;
        text[strcspn(text, "\r\n")] = 0;
        const char *kind = strsep(&rest, "\t"), *kernel = strsep(&rest, "\t"), *line = strsep(&rest, "\t");
        if (kernel && line)
            *r = (rule_t){strdup(kind), strdup(kernel), strdup(line), rules};
        if (!r->kind || !r->kernel || !r->line) {
            if (*kind)
                machine_say("TURING_ALLOW: %s: \"%s\" is no kind, kernel and line, apart by tabs", path, kind);
            free(r->kind), free(r->kernel), free(r->line), free(r);
            continue;
        }
        rules = r;
    }
    free(text);
    fclose(f);
}

static bool fits(const char *rule, const char *is)
{
    return !strcmp(rule, "*") || !strcmp(rule, is);
}

static bool is_allowed(const char *kind, const char *kernel, const char *line)
{
    read_rules();
    for (const rule_t *r = rules; r; r = r->next)
        if (fits(r->kind, kind) && fits(r->kernel, kernel) && fits(r->line, line))
            return true;
    return false;
}

/* A line in one write, so that those of several processes do not mix. */
static void record(const char *mark, const char *kind, const char *kernel, const char *line, const char *words)
{
    const char *path = getenv("TURING_FINDINGS");
    const int file = path && *path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    char text[4096];
    if (file < 0)
        return;
    int n = snprintf(text, sizeof text - 1, "%s\t%s\t%s\t%s\t%s", mark, kind, kernel, line, words);
    n = n < (int)sizeof text - 2 ? n : (int)sizeof text - 2;
    text[n++] = '\n';
    if (write(file, text, (size_t)n) != n)
        machine_say("%s: %s", path, strerror(errno));
    close(file);
}

/* "FILE:LINE" of an instruction, without folders; where the program has no lines: the instruction's address. */
static void place(const turing_violation_t *v, char text[160])
{
    const char *name = v->file ? strrchr(v->file, '/') : NULL;
    if (v->file)
        snprintf(text, 160, "%.140s:%u", name ? name + 1 : v->file, v->line);
    else
        snprintf(text, 160, "+0x%x", v->code);
}

void findings_found(void *user, const turing_violation_t *v)
{
    findings_t *f = user;
    char words[2048], line[160];
    turing_violation_text(v, words, sizeof words);
    char *times = strrchr(words, '('); /* it is told as it happens: of the first time */
    if (times && !strcmp(times, "(1 times)") && times > words)
        times[-1] = 0;
    if (v->kind == TURING_SAME_VALUE) {
        machine_say("note: %s", words);
        return;
    }
    place(v, line);
    if (is_allowed(turing_violation_name(v->kind), v->kernel, line)) {
        record("allowed", turing_violation_name(v->kind), v->kernel, line, words);
        return;
    }
    const CUresult error = v->kind == TURING_OUT_OF_BOUNDS ? CUDA_ERROR_ILLEGAL_ADDRESS
                           : v->kind == TURING_MISALIGNED  ? CUDA_ERROR_MISALIGNED_ADDRESS
                                                           : CUDA_ERROR_LAUNCH_FAILED;
    if (!f->count++ || error != CUDA_ERROR_LAUNCH_FAILED)
        f->error = error;
    machine_say("%s", words);
    record("found", turing_violation_name(v->kind), v->kernel, line, words);
}

void findings_told(const char *kind, const char *kernel, const char *line, const char *words)
{
    const bool allowed = machine.checks && is_allowed(kind, kernel, line);
    if (!allowed)
        machine_say("%s", words);
    if (machine.checks)
        record(allowed ? "allowed" : "found", kind, kernel, line, words);
}

void findings_refused(const char *words)
{
    machine_say("%s", words);
    record("refused", "-", "-", "-", words);
}

void findings_used(void)
{
    static bool told;
    if (!told)
        record("used", "-", "-", "-", "");
    told = true;
}

CUresult findings_error(const findings_t *f)
{
    return f->count && !machine.keep_going ? f->error : CUDA_SUCCESS;
}
