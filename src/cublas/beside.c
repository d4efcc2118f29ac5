/* SPDX-License-Identifier: MIT */
/*
 * hgemm's functions, for the door: each hands on to the libhgemm.so that lies beside the door, which the first call
 * opens. It is not linked, for then its names would come before those of a program that has an hgemm of its own, and a
 * process that multiplies nothing would load it. Where it is not there, or is of another interface, a status is
 * NOT_SUPPORTED and its name the words that say so.
 *
 * HGEMM_BESIDE is the file's name, HGEMM_ABI the version of its symbols.
 */
#define _GNU_SOURCE /* dladdr, dlvsym */
#include "hgemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE HGEMM_STATUS_NOT_SUPPORTED

/* X(type, return or nothing, name, parameters, arguments, what it gives where there is no library) */
#define FUNCTIONS(X)                                                                                                   \
    X(hgemm_status_t, return, create, (hgemm_handle_t * handle, const char *device), (handle, device), NONE)           \
    X(hgemm_status_t, return, destroy, (hgemm_handle_t handle), (handle), NONE)                                        \
    X(const char *, return, error_detail, (hgemm_handle_t handle), (handle), fault)                                    \
    X(const char *, return, status_name, (hgemm_status_t status), (status), fault)                                     \
    X(const char *, return, activation_name, (hgemm_activation_t activation), (activation), fault)                     \
    X(float, return, half_to_float, (uint16_t bits), (bits), 0)                                                        \
    X(hgemm_status_t, return, get_device_info, (hgemm_handle_t handle, hgemm_device_info_t * info), (handle, info),    \
      NONE)                                                                                                            \
    X(hgemm_status_t, return, malloc, (hgemm_handle_t handle, void **pointer, size_t bytes), (handle, pointer, bytes), \
      NONE)                                                                                                            \
    X(hgemm_status_t, return, set_stream, (hgemm_handle_t handle, void *stream), (handle, stream), NONE)               \
    X(hgemm_status_t, return, set_workspace, (hgemm_handle_t handle, void *pointer, size_t bytes),                     \
      (handle, pointer, bytes), NONE)                                                                                  \
    X(void, , desc_init_sized, (hgemm_desc_t * desc, size_t size), (desc, size), )                                     \
    X(hgemm_status_t, return, prepare, (hgemm_handle_t handle, const hgemm_desc_t *desc), (handle, desc), NONE)        \
    X(hgemm_status_t, return, run_desc, (hgemm_handle_t handle, const hgemm_desc_t *desc), (handle, desc), NONE)       \
    X(hgemm_status_t, return, get_cublas_ratio, (hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio),      \
      (handle, desc, ratio), NONE)                                                                                     \
    X(hgemm_status_t, return, plan_create, (hgemm_plan_t * plan, hgemm_handle_t handle, const hgemm_desc_t *desc),     \
      (plan, handle, desc), NONE)                                                                                      \
    X(hgemm_status_t, return, plan_get_info, (hgemm_plan_t plan, hgemm_plan_info_t * info), (plan, info), NONE)        \
    X(void, , plan_destroy, (hgemm_plan_t plan), (plan), )

#define X(type, give, name, parameters, ...) type(*name) parameters;
static struct {
    FUNCTIONS(X)
} beside;
#undef X

static char fault[128]; /* "": there is none */

/* Links to the door may lie anywhere. */
static void *open_beside(void)
{
    static const char here;
    Dl_info door;
    char *file = dladdr(&here, &door) ? realpath(door.dli_fname, NULL) : NULL, path[4096];
    const char *name = file ? strrchr(file, '/') : NULL;
    int length = name ? snprintf(path, sizeof path, "%.*s/%s", (int)(name - file), file, HGEMM_BESIDE) : -1;
    free(file);
    return length > 0 && length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void open_library(void)
{
    void *library = open_beside();
    int complete = library != NULL;
#define X(type, give, name, ...)                                                      \
    {                                                                                 \
        void *address = complete ? dlvsym(library, "hgemm_" #name, HGEMM_ABI) : NULL; \
        memcpy(&beside.name, &address, sizeof address);                               \
        complete = address != NULL;                                                   \
    }
    FUNCTIONS(X)
#undef X
    if (!complete)
        snprintf(fault, sizeof fault, "%s, which belongs beside libhgemm_cublas.so, %s", HGEMM_BESIDE,
                 library ? "is of another release" : "cannot be opened");
}

static int is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return fault[0] == '\0';
}

#define X(type, give, name, parameters, arguments, none) \
    type hgemm_##name parameters                         \
    {                                                    \
        if (!is_there())                                 \
            return none;                                 \
        give beside.name arguments;                      \
    }
FUNCTIONS(X)
