/* SPDX-License-Identifier: MIT */
/*
 * Feeds fuzz_one with changed seeds for some seconds.
 *
 *     fuzz_X SECONDS [FILE]...     FILE: what the fuzzer's seeds are made of, where they are
 *     fuzz_X --again INPUT         runs one input, such as the fuzz_X.input that a failed run leaves
 */
#include "fuzz.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/* The input that is run, in a file which outlives the program. */
typedef struct kept_t {
    uint64_t size;
    uint8_t data[MOST_INPUT];
} kept_t;

static kept_t *kept;
static char kept_path[4096];

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    exit(1);
}

void fuzz_check(int condition, const char *what)
{
    if (condition)
        return;
    printf("%s: run it again by --again\n", kept_path);
    fail(what);
}

unsigned fuzz_byte(fuzz_source_t *source)
{
    if (source->size == 0)
        return 0;
    source->size--;
    return *source->data++;
}

static const int64_t ends[] = {
    0,         1,         2,         7,         8,         9,         16,        64,        127,        128,
    512,       1000,      4096,      32768,     65535,     65536,     -1,        INT32_MAX, UINT32_MAX, INT64_MAX,
    INT64_MIN, 1LL << 31, 1LL << 32, 1LL << 40, 1LL << 47, 1LL << 61, 1LL << 62, 3LL << 61, 1LL << 33,  1LL << 30,
};
enum { ENDS = sizeof ends / sizeof ends[0] };

int64_t fuzz_number(fuzz_source_t *source)
{
    const unsigned kind = fuzz_byte(source);
    if (kind < 4 * ENDS)
        return (int64_t)((uint64_t)ends[kind / 4] + (kind & 3) - 1);
    if (kind < 224)
        return fuzz_byte(source) + 1;
    uint64_t number = 0;
    for (unsigned i = 0; i < (kind - 224) / 4 + 1; i++)
        number = number << 8 | fuzz_byte(source);
    return (int64_t)number;
}

/* ---- Changes ---------------------------------------------------------------------------------------- */

static uint8_t input[MOST_INPUT], other[MOST_INPUT];
static size_t size, other_size;
static rng_t rng;
static int word_count;

static size_t below(size_t count)
{
    return (size_t)(rng_next(&rng) % (count ? count : 1));
}

/* Puts bytes in the place of `count` others. */
static void replace(size_t at, size_t count, const void *by, size_t by_size)
{
    if (size - count + by_size > MOST_INPUT)
        return;
    memmove(input + at + by_size, input + at + count, size - at - count);
    memcpy(input + at, by, by_size);
    size = size - count + by_size;
}

/* A decimal number at or behind a place becomes another. */
static void change_number(size_t at)
{
    char text[24];
    while (at < size && (input[at] < '0' || input[at] > '9'))
        at++;
    size_t end = at;
    while (end < size && input[end] >= '0' && input[end] <= '9')
        end++;
    if (below(2))
        snprintf(text, sizeof text, "%" PRId64, ends[below(ENDS)]);
    else
        snprintf(text, sizeof text, "%zu", below((size_t)1 << below(34)));
    replace(at, end - at, text, strlen(text));
}

static void change(void)
{
    const size_t at = below(size + 1), length = below(below(4) ? 8 : 200), left = size - at;
    const size_t count = length < left ? length : left;
    uint8_t byte = (uint8_t)rng_next(&rng), block[256];
    switch (below(9)) {
    case 0: replace(at, left > 0, &byte, 1); break;
    case 1:
        if (left)
            input[at] ^= (uint8_t)(1u << below(8));
        break;
    case 2: replace(at, count, "", 0); break;
    case 3: /* a part of it again, elsewhere */
        memcpy(block, input + at, count);
        replace(below(size + 1), 0, block, count);
        break;
    case 4:
        if (other_size) {
            const size_t from = below(other_size), rest = other_size - from;
            replace(at, count, other + from, length < rest ? length : rest);
        }
        break;
    case 5: {
        const char *word = fuzz_words[below((size_t)word_count)];
        replace(at, 0, word, strlen(word));
        break;
    }
    case 6: size = below(8) ? size : at; break;
    case 7: /* a number in binary */
        if (left >= 8) {
            const int64_t number = ends[below(ENDS)];
            memcpy(input + at, &number, below(2) ? 8 : 4);
        }
        break;
    default: change_number(at);
    }
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

static void run(void)
{
    memcpy(kept->data, input, size);
    kept->size = size;
    fuzz_one(kept->data, size);
}

static void open_kept(const char *program)
{
    const char *name = strrchr(program, '/');
    snprintf(kept_path, sizeof kept_path, "%s.input", name ? name + 1 : program);
    const int file = open(kept_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof *kept) != 0)
        fail("cannot write beside itself");
    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (kept == MAP_FAILED)
        fail("mmap");
    close(file);
}

static void run_again(const char *path)
{
    kept_t *whole = calloc(1, sizeof *whole);
    FILE *file = fopen(path, "rb");
    if (!whole || !file || fread(whole, 1, sizeof *whole, file) < sizeof whole->size || whole->size > MOST_INPUT)
        fail("no input of a fuzzer");
    fclose(file);
    fuzz_one(whole->data, whole->size);
    free(whole);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--again") == 0) {
        run_again(argv[2]);
        return 0;
    }
    if (argc < 2 || atof(argv[1]) <= 0)
        return 2;
    open_kept(argv[0]);
    rng.state = test_seed();
    int seeds = 0;
    while (fuzz_words[word_count])
        word_count++;
    while ((size = fuzz_seed(seeds, argv + 2, input)) != 0) {
        run();
        seeds++;
    }
    if (seeds == 0)
        fail("there is no seed");
    const double end = seconds() + atof(argv[1]);
    long runs = seeds;
    for (; seconds() < end; runs++) {
        size = fuzz_seed((int)below((size_t)seeds), argv + 2, input);
        other_size = fuzz_seed((int)below((size_t)seeds), argv + 2, other);
        for (size_t changes = 1 + below(8); changes > 0; changes--)
            change();
        run();
    }
    printf("%ld inputs\n", runs);
    munmap(kept, sizeof *kept);
    unlink(kept_path);
    return 0;
}
