/* SPDX-License-Identifier: MIT */
/* Functions that read words, which one blank separates. Each goes past what it finds; if it finds nothing, the text
 * stays where it was. */
#ifndef HGEMM_PARSE_H
#define HGEMM_PARSE_H

#include <stdint.h>

/* Whether that word comes next. It may itself have blanks. */
int take_word(const char **text, const char *word);

/* The index of the word that comes next among `count`, of which NULL is none; -1 if none of them comes. */
int take_one_of(const char **text, const char *const words[], int count);

/* Whether a whole number of at most `most` comes next, not negative. It may end at the blank or, where `end` is not
 * that, at this character. */
int take_number_until(const char **text, char end, int64_t most, int64_t *number);
int take_number(const char **text, int64_t most, int64_t *number);

#endif
