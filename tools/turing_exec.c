/* SPDX-License-Identifier: MIT */
/* turing exec, turing env - CUDA programs whose libcuda and libcudart are the emulated T4. */
#include "turing_exec.h"
#include "turing_gate.h"
#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const char help[] =
    "Usage: turing exec [OPTION...] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs a CUDA program, whose libcuda and libcudart are the emulated T4.\n"
    "\n"
    "  --check, --check=LIST  out-of-bounds accesses, values that nobody wrote, races, schedule and divergence are "
    "told\n"
    "                         and are errors; LIST has some of memory,race,schedule,convergence, same-value,leaks\n"
    "  --keep-going           what is found is told, and is no error to the program\n"
    "  --allow FILE           findings that FILE names are neither told nor counted\n"
    "  --write-allow FILE     writes FILE with what was found\n"
    "  --junit FILE           writes what was found as JUnit's XML\n"
    "  --seconds N            in which no block of a kernel ends, after which it goes nowhere; 0: never; 30\n"
    "  --time                 a table of its kernels and their modelled time at the end\n"
    "  --log                  the calls of CUDA that it makes, and which are not served\n"
    "\n"
    "Exit status: 99 where something was found, whatever the program's is; 2 where the program cannot run here, or "
    "the\n"
    "arguments were not understood; else the program's.\n";

static int usage(void)
{
    fputs("turing: exec takes options, PROGRAM [ARGUMENT...]. Try turing exec --help.\n", stderr);
    return 2;
}

/* A word that is no check must not end in a run without it, which would look like one that passed. */
static bool sets_checks(const char *list)
{
    unsigned checks = 0;
    const char *unknown = turing_checks_from(list, &checks);
    if (unknown)
        fprintf(stderr, "turing: unknown check %s; there are memory, race, schedule, convergence, same-value, leaks\n",
                unknown);
    return !unknown && !setenv("TURING_CHECK", list, 1);
}

/* Sets the variable that an option with an argument is; false: it is none, or has none. */
static bool sets_variable(char **argv, bool has_next, turing_gate_t *gate)
{
    if (!has_next)
        return false;
    if (!strcmp(argv[0], "--allow"))
        return !setenv("TURING_ALLOW", argv[1], 1);
    if (!strcmp(argv[0], "--seconds"))
        return !setenv("TURING_SECONDS", argv[1], 1);
    if (!strcmp(argv[0], "--write-allow"))
        gate->allow_to = argv[1];
    else if (!strcmp(argv[0], "--junit"))
        gate->junit = argv[1];
    else
        return false;
    return true;
}

int turing_exec(int argc, char **argv)
{
    turing_gate_t gate = {NULL, NULL};
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
        else if (!strcmp(argv[0], "--keep-going"))
            setenv("TURING_KEEP_GOING", "1", 1);
        else if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) {
            fputs(help, stdout);
            return 0;
        } else if (sets_variable(argv, argc > 1, &gate))
            argc--, argv++;
        else
            return usage();
    if (!argc)
        return usage();
    const char *allow = getenv("TURING_ALLOW");
    if (allow && *allow && access(allow, R_OK)) {
        fprintf(stderr, "turing: %s: %s\n", allow, strerror(errno));
        return 2;
    }
    const char *folder = face_folder();
    if (!folder)
        return 2;
    return turing_gate_run(&gate, folder, argv);
}

int turing_env(int argc, char **argv)
{
    (void)argv;
    const char *folder = argc ? NULL : face_folder();
    if (!folder)
        return 2;
    printf("export LD_LIBRARY_PATH='%s'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n", folder);
    printf("export LD_AUDIT='%s" TURING_FINDER "'\"${LD_AUDIT:+:$LD_AUDIT}\"\n", folder);
    return 0;
}
