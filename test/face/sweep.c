/* SPDX-License-Identifier: MIT */
/*
 * sweep LIBRARY < NAMES - calls every entry point that is named with arguments that make no sense: all zero, and each
 * of the first six in turn the address of memory that is no handle of CUDA's. None may crash. To be run by `turing
 * exec`.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIED = 6, WORDS = 16 };
typedef long call_fn(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long);

static long memory[1 << 13]; /* zeros, of which no call needs more */

/* Functions that they call are the caller's business: these call what they are given. */
static bool calls_back(const char *name)
{
    return strstr(name, "HostFunc") || strstr(name, "AddCallback");
}

static void call_all(call_fn *f, const char *name)
{
    for (int varied = -1; varied < (calls_back(name) ? 0 : VARIED); varied++) {
        long a[WORDS] = {0};
        if (varied >= 0)
            a[varied] = (long)memory;
        memset(memory, 0, sizeof memory);
        f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
    }
}

/* Makes a context current, by either library. */
static bool start(void *library)
{
    int (*const runtime)(void *) = (int (*)(void *))dlsym(library, "cudaFree");
    int (*const init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*const retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*const set)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    void *context = NULL;
    return runtime ? !runtime(NULL) : init && retain && set && !init(0) && !retain(&context, 0) && !set(context);
}

int main(int argc, char **argv)
{
    char name[256];
    unsigned calls = 0, crashed = 0, missing = 0;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library || !start(library)) {
        printf("no %s\n", argc == 2 ? argv[1] : "library");
        return 1;
    }
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = 0;
        void *const entry = dlsym(library, name);
        call_fn *f;
        memcpy(&f, &entry, sizeof f);
        missing += !entry;
        fflush(stdout);
        int status = 0;
        const pid_t child = entry ? fork() : -1;
        if (child == 0) {
            call_all(f, name);
            _exit(0);
        }
        calls++;
        if (child > 0 && (waitpid(child, &status, 0) != child || status)) {
            printf("%s: ended with status 0x%x\n", name, status);
            crashed++;
        }
    }
    printf("%u entry points, %u missing, %u crashed\n", calls, missing, crashed);
    return missing || crashed || !calls;
}
