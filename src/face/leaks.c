/* SPDX-License-Identifier: MIT */
/* leaks.c - device memory that the program has not freed when it ends, where that is looked for (--check=leaks). */
#include "findings.h"

#include <stdlib.h>

typedef struct taken {
    CUdeviceptr address;
    size_t bytes;
    unsigned long long number; /* of the allocation, from 1 on */
} taken_t;

static taken_t *taken;
static size_t n_taken, capacity;
static unsigned long long count;

void leak_begin(CUdeviceptr address, size_t bytes)
{
    if (!(machine.checks & TURING_CHECK_LEAKS))
        return;
    count++;
    if (n_taken == capacity) {
        taken_t *grown = realloc(taken, (2 * capacity + 64) * sizeof *grown);
        if (!grown)
            return;
        taken = grown;
        capacity = 2 * capacity + 64;
    }
    taken[n_taken++] = (taken_t){address, bytes, count};
}

void leak_end(CUdeviceptr address)
{
    for (size_t i = n_taken; i--;)
        if (taken[i].address == address) {
            taken[i] = taken[--n_taken];
            return;
        }
}

static int by_number(const void *a, const void *b)
{
    const taken_t *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

__attribute__((destructor)) static void tell(void)
{
    char words[160], bytes[32];
    if (n_taken)
        qsort(taken, n_taken, sizeof *taken, by_number);
    for (size_t i = 0; i < n_taken; i++) {
        snprintf(bytes, sizeof bytes, "%zu bytes", taken[i].bytes);
        snprintf(words, sizeof words, "leak: %s at 0x%llx, of allocation %llu, are not freed when the program ends",
                 bytes, taken[i].address, taken[i].number);
        findings_told("leak", "-", bytes, words);
    }
    free(taken);
}
