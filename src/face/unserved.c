/* SPDX-License-Identifier: MIT */
/* unserved.c - what is said of entry points that are not served. */
#include "machine.h"

#include <string.h>

/* Told once: a program may ask for it again and again. Callers may hold the lock or not. */
CUresult turing_face_not_served(const char *name)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const char *told[1024];
    static size_t n;
    size_t i = 0;
    pthread_mutex_lock(&mutex);
    while (i < n && strcmp(told[i], name))
        i++;
    if (i == n && n < sizeof told / sizeof *told) {
        told[n++] = name;
        machine_say("%s: not served on the emulated T4", name);
    }
    pthread_mutex_unlock(&mutex);
    machine_log(name, "not served");
    return CUDA_ERROR_NOT_SUPPORTED;
}
