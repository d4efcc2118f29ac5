/* SPDX-License-Identifier: MIT */
/* handles.c - which handles were given out and are not ended yet: a set of pointers, each of a kind. */
#include "machine.h"

#include <stdlib.h>

typedef union node {
    struct {
        union node *next;
        handle_kind_t kind;
    };
    max_align_t alignment; /* of the object, which follows */
} node_t;

enum { BUCKETS = 1024 };
static node_t *table[BUCKETS];

static node_t **find(handle_kind_t kind, const void *handle)
{
    node_t **at = &table[((uintptr_t)handle >> 4) % BUCKETS];
    while (*at && (*at + 1 != handle || (*at)->kind != kind))
        at = &(*at)->next;
    return at;
}

void *handle_new(handle_kind_t kind, size_t bytes)
{
    node_t *n = calloc(1, sizeof *n + bytes);
    if (!n)
        return NULL;
    node_t **bucket = &table[((uintptr_t)(n + 1) >> 4) % BUCKETS];
    n->kind = kind;
    n->next = *bucket;
    *bucket = n;
    return n + 1;
}

bool handle_is(handle_kind_t kind, const void *handle)
{
    return handle && *find(kind, handle);
}

bool handle_end(handle_kind_t kind, void *handle)
{
    node_t **at = find(kind, handle), *n = *at;
    if (!handle || !n)
        return false;
    *at = n->next;
    free(n);
    return true;
}
