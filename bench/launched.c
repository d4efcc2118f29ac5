/* SPDX-License-Identifier: MIT */
/* Stands between the library and its device, whose functions it puts others before: one hears which image a function is
 * of, one hears that it is launched. */
#include "launched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"

typedef struct loaded_t {
    void *function;
    const char *symbol;
} loaded_t;

static const device_ops_t *inner;
static device_ops_t outer;
static loaded_t *all_loaded;
static int loaded_count;
static char *launched;

static hgemm_status_t load(device_t *device, const image_t *image, unsigned shared_bytes, void **function)
{
    loaded_t *more = realloc(all_loaded, ((size_t)loaded_count + 1) * sizeof *more);
    if (!more)
        return HGEMM_STATUS_OUT_OF_MEMORY;
    all_loaded = more;
    hgemm_status_t status = inner->load(device, image, shared_bytes, function);
    if (status == HGEMM_STATUS_SUCCESS)
        all_loaded[loaded_count++] = (loaded_t){*function, image->symbol};
    return status;
}

static int has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

static void add(const char *symbol)
{
    const size_t length = strlen(launched);
    if (!has_word(launched, symbol))
        snprintf(launched + length, LAUNCHED_WORDS - length, "%s%s", length ? " " : "", symbol);
}

static hgemm_status_t launch(device_t *device, void *stream, void *function, const launch_t *how)
{
    for (int i = 0; i < loaded_count && launched; i++)
        if (all_loaded[i].function == function)
            add(all_loaded[i].symbol);
    return inner->launch(device, stream, function, how);
}

void launched_open(hgemm_handle_t handle)
{
    inner = handle->device->ops;
    outer = *inner;
    outer.load = load, outer.launch = launch;
    handle->device->ops = &outer;
}

void launched_into(char words[LAUNCHED_WORDS])
{
    launched = words;
}
