/* SPDX-License-Identifier: MIT */
/* turing exec, turing env - CUDA programs whose libcuda and libcudart are the emulated T4. */
#include "turing_exec.h"
#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FINDER "/libturing_finder.so" /* in that folder: src/face/finder.c */

/* The folder of the libraries: beside this program, or where it is installed to. */
static const char *face_folder(void)
{
    static char folder[PATH_MAX + 64];
    static const char *const places[] = {"turing_face", "../lib/turing_face", "../lib64/turing_face",
                                         "../lib/x86_64-linux-gnu/turing_face"};
    char self[PATH_MAX], library[PATH_MAX + 96];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return NULL;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(folder, sizeof folder, "%s/%s", self, places[i]);
        snprintf(library, sizeof library, "%s/libcuda.so.1", folder);
        if (!access(library, R_OK))
            return folder;
    }
    fprintf(stderr, "turing: no folder turing_face with libcuda.so.1 beside %s\n", self);
    return NULL;
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

static int usage(void)
{
    fputs("turing: exec takes [--check[=LIST]] [--time] [--log] PROGRAM [ARGUMENT...]. Try turing --help.\n", stderr);
    return 2;
}

/* A word that is no check must not end in a run without it, which would look like one that passed. */
static bool sets_checks(const char *list)
{
    unsigned checks = 0;
    const char *unknown = turing_checks_from(list, &checks);
    if (unknown)
        fprintf(stderr, "turing: unknown check %s; there are memory, race, schedule, convergence\n", unknown);
    return !unknown && !setenv("TURING_CHECK", list, 1);
}

int turing_exec(int argc, char **argv)
{
    for (; argc && argv[0][0] == '-'; argc--, argv++)
        if (!strcmp(argv[0], "--check"))
            setenv("TURING_CHECK", "all", 1);
        else if (!strncmp(argv[0], "--check=", 8)) {
            if (!sets_checks(argv[0] + 8))
                return 2;
        } else if (!strcmp(argv[0], "--time"))
            setenv("TURING_TIME", "1", 1);
        else if (!strcmp(argv[0], "--log"))
            setenv("TURING_LOG", "1", 1);
        else
            return usage();
    if (!argc)
        return usage();
    const char *folder = face_folder();
    if (!folder)
        return 2;
    prepend("LD_LIBRARY_PATH", folder, "");
    prepend("LD_AUDIT", folder, FINDER);
    execvp(argv[0], argv);
    fprintf(stderr, "turing: %s: %s\n", argv[0], strerror(errno));
    return 2;
}

int turing_env(int argc, char **argv)
{
    (void)argv;
    const char *folder = argc ? NULL : face_folder();
    if (!folder)
        return 2;
    printf("export LD_LIBRARY_PATH='%s'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n", folder);
    printf("export LD_AUDIT='%s" FINDER "'\"${LD_AUDIT:+:$LD_AUDIT}\"\n", folder);
    return 0;
}
