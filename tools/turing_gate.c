/* SPDX-License-Identifier: MIT */
/*
 * turing_gate.c - the exit status of a program, and files for a CI.
 *
 * What the program's processes find they add to a file (src/face/findings.h), so nothing that the program does with an
 * error, or with its own exit status, hides it.
 */
#define _GNU_SOURCE
#include "turing_gate.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOUND = 99, REFUSED = 2, FIELDS = 5 };

typedef struct record {
    char *text, *field[FIELDS]; /* mark, kind, kernel, line, words */
} record_t;

typedef struct records {
    record_t *at;
    size_t n;
} records_t;

static pid_t child;

static void forward(int signal)
{
    if (child > 0)
        kill(child, signal);
}

/* Puts a path before those that a variable of the environment holds. */
static void prepend(const char *variable, const char *first, const char *name)
{
    const char *old = getenv(variable);
    char *path = malloc(strlen(first) + strlen(name) + (old ? strlen(old) : 0) + 2);
    if (!path)
        return;
    sprintf(path, "%s%s%s%s", first, name, old && *old ? ":" : "", old ? old : "");
    setenv(variable, path, 1);
    free(path);
}

static int start(const char *folder, char **argv)
{
    child = fork();
    if (child < 0)
        return -1;
    if (child)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    prepend("LD_LIBRARY_PATH", folder, "");
    prepend("LD_AUDIT", folder, TURING_FINDER);
    execvp(argv[0], argv);
    fprintf(stderr, "turing: %s: %s\n", argv[0], strerror(errno));
    _exit(REFUSED);
}

static bool read_records(FILE *f, records_t *all)
{
    char *text = NULL;
    size_t size = 0;
    while (getline(&text, &size, f) > 0) {
        record_t *grown = realloc(all->at, (all->n + 1) * sizeof *grown);
        if (!grown)
            break;
        all->at = grown;
        record_t *r = &grown[all->n];
        *r = (record_t){.text = strdup(text)};
        char *rest = r->text;
        if (!rest)
            break;
        rest[strcspn(rest, "\n")] = 0;
        for (int i = 0; i < FIELDS; i++) {
            char *field = i < FIELDS - 1 ? strsep(&rest, "\t") : rest;
            r->field[i] = field ? field : "";
        }
        all->n++;
    }
    free(text);
    return !ferror(f);
}

static size_t count(const records_t *all, const char *mark)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += !strcmp(all->at[i].field[0], mark);
    return n;
}

static bool is_finding(const record_t *r)
{
    return !strcmp(r->field[0], "found") || !strcmp(r->field[0], "allowed");
}

/* Whether one before it has the same kind, kernel and line. */
static bool is_known(const records_t *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(all->at[k].field[1], all->at[i].field[1]) && !strcmp(all->at[k].field[2], all->at[i].field[2]) &&
            !strcmp(all->at[k].field[3], all->at[i].field[3]))
            return true;
    return false;
}

static bool close_file(FILE *f, const char *path)
{
    const bool ok = f && !ferror(f);
    if (!f || fclose(f) || !ok) {
        fprintf(stderr, "turing: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

/* Those that were allowed before stay so. */
static bool write_allowed(const char *path, const records_t *all)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fputs("# kind, kernel, line, apart by tabs; * is any: turing exec --allow\n", f);
        for (size_t i = 0; i < all->n; i++)
            if (is_finding(&all->at[i]) && !is_known(all, i))
                fprintf(f, "%s\t%s\t%s\n", all->at[i].field[1], all->at[i].field[2], all->at[i].field[3]);
    }
    return close_file(f, path);
}

static void print_xml(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc((unsigned char)*text < 32 ? ' ' : *text, f);
        }
}

static void print_case(FILE *f, const char *program, const record_t *r)
{
    fputs("  <testcase classname=\"", f);
    print_xml(f, program);
    fputs("\" name=\"", f);
    print_xml(f, r->field[1]);
    fputs(", ", f);
    print_xml(f, r->field[2]);
    fputs(", ", f);
    print_xml(f, r->field[3]);
    fprintf(f, "\">\n    <%s", !strcmp(r->field[0], "allowed") ? "skipped" : "failure");
    fputs(" message=\"", f);
    print_xml(f, r->field[4]);
    fputs("\"/>\n  </testcase>\n", f);
}

/* A case for the program, which fails by its own exit status, and one for each finding. */
static bool write_junit(const char *path, const char *program, const records_t *all, int status)
{
    FILE *f = fopen(path, "w");
    if (f) {
        const size_t found = count(all, "found"), allowed = count(all, "allowed"), failures = found + (status != 0);
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", f);
        print_xml(f, program);
        fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n  <testcase classname=\"", found + allowed + 1,
                failures, allowed);
        print_xml(f, program);
        if (status)
            fprintf(f, "\" name=\"exit status\">\n    <failure message=\"the exit status is %d\"/>\n  </testcase>\n",
                    status);
        else
            fputs("\" name=\"exit status\"/>\n", f);
        for (size_t i = 0; i < all->n; i++)
            if (is_finding(&all->at[i]))
                print_case(f, program, &all->at[i]);
        fputs("</testsuite>\n", f);
    }
    return close_file(f, path);
}

/* As a shell has it: 128 and the signal that ended it. */
static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return REFUSED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int turing_gate_run(const turing_gate_t *gate, const char *folder, char **argv)
{
    char path[] = "/tmp/turing-findings-XXXXXX";
    records_t all = {NULL, 0};
    const int file = mkstemp(path);
    FILE *f = file >= 0 ? fdopen(file, "r") : NULL;
    if (!f || setenv("TURING_FINDINGS", path, 1)) {
        fprintf(stderr, "turing: %s: %s\n", path, strerror(errno));
        return REFUSED;
    }
    signal(SIGINT, SIG_IGN); /* of a terminal: the program has it, too */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, forward);
    signal(SIGHUP, forward);
    int status = start(folder, argv) ? REFUSED : wait_for(child);
    bool ok = read_records(f, &all);
    fclose(f);
    unlink(path);
    const size_t found = count(&all, "found"), allowed = count(&all, "allowed");
    if (gate->allow_to)
        ok = write_allowed(gate->allow_to, &all) && ok;
    if (gate->junit)
        ok = write_junit(gate->junit, argv[0], &all, status) && ok;
    if (found || allowed)
        fprintf(stderr, "turing: %zu found, %zu allowed\n", found, allowed);
    status = !ok || (count(&all, "refused") && !count(&all, "used")) ? REFUSED : found ? FOUND : status;
    for (size_t i = 0; i < all.n; i++)
        free(all.at[i].text);
    free(all.at);
    return status;
}
