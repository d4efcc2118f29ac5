/* SPDX-License-Identifier: MIT */
/* What a fuzzer is: a program of fuzz_main.c, which makes inputs, and of one file that takes them. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_INPUT = 1 << 20 };

/* Takes an input, of whatever bytes. What must hold of the result is fuzz_check's to say; that no memory is misused and
 * nothing overflows, the sanitizers'. */
void fuzz_one(const uint8_t *data, size_t size);

/* Inputs to begin with, which are changed: as many as there are, by number. `files` are the command line's. Returns
 * how many bytes it wrote, 0 where there is no such input. */
size_t fuzz_seed(int number, char **files, uint8_t data[MOST_INPUT]);

/* Words that inputs are made of, which end with a NULL. */
extern const char *const fuzz_words[];

/* Ends the program, and tells of the input, unless the condition holds. */
void fuzz_check(int condition, const char *what);

/* Takes numbers from an input, zeros past its end. */
typedef struct fuzz_source_t {
    const uint8_t *data;
    size_t size;
} fuzz_source_t;

unsigned fuzz_byte(fuzz_source_t *source);
int64_t fuzz_number(fuzz_source_t *source); /* often a size, or one at which something ends */

#endif
