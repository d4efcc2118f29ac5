/* SPDX-License-Identifier: MIT */
/*
 * finder.c - libturing_finder.so, by which the dynamic linker finds the libraries of this folder wherever a
 * program looks for CUDA's: by a path of its own (RPATH, which goes before LD_LIBRARY_PATH), or by a whole path.
 *
 * It is loaded by LD_AUDIT, apart from the program: see rtld-audit(7).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];

unsigned la_version(unsigned version)
{
    Dl_info self;
    void *here;
    char *(*const function)(const char *, uintptr_t *, unsigned) = la_objsearch;
    memcpy(&here, &function, sizeof here);
    if (dladdr(here, &self) && strlen(self.dli_fname) < sizeof folder) {
        strcpy(folder, self.dli_fname);
        char *slash = strrchr(folder, '/');
        *(slash ? slash : folder) = 0;
    }
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* What is asked for is found here if it has the name of a library that is here. */
char *la_objsearch(const char *name, uintptr_t *from, unsigned step)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", "libcudart.so.12", "libcudart.so.13"};
    static __thread char path[PATH_MAX + 32];
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    (void)from;
    for (size_t i = 0; step == LA_SER_ORIG && i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 1 ? names[0] : names[i]);
        if (!strcmp(base, names[i]) && !access(path, R_OK))
            return path;
    }
    return (char *)name;
}
