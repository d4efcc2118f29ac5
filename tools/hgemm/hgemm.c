/* SPDX-License-Identifier: MIT */
/* The command `hgemm`: its subcommands, and what they share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static const char usage[] =
    "Usage: hgemm COMMAND [options]...\n"
    "\n"
    "  tune       measures which plans are the fastest here, for a file that the library loads\n"
    "  plan       shows what runs a shape, and why\n"
    "  devices    shows what the library can run on\n"
    "  bench      runs bench_hgemm\n"
    "\n"
    "hgemm COMMAND --help tells more. hgemm --version prints the library's version.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"tune", tool_tune}, {"plan", tool_plan}, {"devices", tool_devices}, {"bench", tool_bench}};

static void say(const char *format, va_list arguments)
{
    fputs("hgemm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void tool_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    exit(2);
}

void tool_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    exit(1);
}

void tool_must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS)
        tool_fail("%s %s", hgemm_status_string(status), hgemm_error_detail(handle));
}

hgemm_handle_t tool_open(const char *device)
{
    hgemm_handle_t handle = NULL;
    tool_must(NULL, hgemm_create(&handle, device));
    return handle;
}

double tool_number(const char *option, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        tool_refuse("%s takes a number from %g to %g, not %s", option, least, most, text);
    return value;
}

int tool_bench(int argc, char **argv)
{
    static const char *const places[] = {"bench_hgemm", "bench/bench_hgemm"}; /* installed, in a build folder */
    char folder[4096], path[4200];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    (void)argc;
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    for (int i = 0; slash && i < 2; i++) {
        slash[1] = '\0';
        snprintf(path, sizeof path, "%s%s", folder, places[i]);
        execv(path, argv);
    }
    execvp("bench_hgemm", argv);
    tool_fail("cannot run bench_hgemm, which builds with -DHGEMM_BENCH=ON have: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        int version = hgemm_version();
        printf("hgemm %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "hgemm: there is no command %s\n", argv[1]);
    fputs("Try hgemm --help.\n", stderr);
    return 2;
}
