/* SPDX-License-Identifier: MIT */
/* turing_test.h - what the emulator's tests share: checks, random words, launches. */
#ifndef TURING_TEST_H
#define TURING_TEST_H

#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition, ...)                                      \
    do {                                                           \
        if (!(condition)) {                                        \
            failures++;                                            \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                   \
            printf("\n");                                          \
        }                                                          \
    } while (0)

static inline uint32_t random_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 16);
}

typedef struct found {
    uint64_t count[TURING_VIOLATION_COUNT];
    char first[1024];
} found_t;

static inline void note(void *user, const turing_violation_t *v)
{
    found_t *f = user;
    if (!f->first[0])
        turing_violation_text(v, f->first, sizeof f->first);
    f->count[v->kind]++;
}

/* LEA.X of a complement, which it takes after the shift, ~(x << s), as Mesa's compiler for these GPUs has it, too.
 * ptxas 13.0 was seen to make it of (~x) << s alone, so that code is wrong. */
static inline bool complements_shifted(const turing_kernel_t *k)
{
    for (uint32_t i = 0; i < k->n_insns && i < k->n_own; i++) {
        const turing_insn_t *in = &k->insns[i];
        if ((in->op == TURING_LEA || in->op == TURING_ULEA) && in->m.x && !in->m.hi && in->src[0].inv && in->m.shift)
            return true;
    }
    return false;
}

static inline turing_module_t *open_or_die(const char *path)
{
    turing_error_t err;
    turing_module_t *m = turing_module_open_file(path, &err);
    if (!m) {
        printf("%s\n", err.text);
        exit(1);
    }
    return m;
}

static inline const turing_kernel_t *find_or_die(const turing_module_t *m, const char *name)
{
    const turing_kernel_t *k = turing_module_find(m, name);
    if (!k) {
        printf("no kernel %s\n", name);
        exit(1);
    }
    return k;
}

/* A kernel's parameters: words of 8 or 4 bytes at its offsets. */
typedef struct params {
    uint8_t bytes[256];
} params_t;

static inline params_t params_of(const turing_kernel_t *k, const uint64_t *args)
{
    params_t p = {{0}};
    for (uint32_t i = 0; i < k->n_params; i++)
        memcpy(p.bytes + k->params[i].offset, &args[i], k->params[i].size);
    return p;
}

static inline uint64_t upload(turing_memory_t *mem, const void *data, size_t bytes)
{
    uint64_t at = turing_memory_alloc(mem, bytes);
    if (!at || (data && !turing_memory_write(mem, at, data, bytes, NULL))) {
        printf("out of memory\n");
        exit(1);
    }
    return at;
}

#endif
