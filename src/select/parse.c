/* SPDX-License-Identifier: MIT */
#include "select/parse.h"

#include <string.h>

int take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    const char *end = *text + length;
    if (strncmp(*text, word, length) != 0 || (*end != ' ' && *end != '\0'))
        return 0;
    *text = *end == ' ' ? end + 1 : end;
    return 1;
}

int take_one_of(const char **text, const char *const words[], int count)
{
    for (int i = 0; i < count; i++)
        if (words[i] && take_word(text, words[i]))
            return i;
    return -1;
}

int take_number_until(const char **text, char end, int64_t most, int64_t *number)
{
    const char *at = *text;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        int digit = *at - '0';
        if (value > (most - digit) / 10)
            return 0;
        value = 10 * value + digit;
    }
    if (at == *text || (*at != end && (*at != '\0' || end != ' ')))
        return 0;
    *text = *at ? at + 1 : at;
    *number = value;
    return 1;
}

int take_number(const char **text, int64_t most, int64_t *number)
{
    return take_number_until(text, ' ', most, number);
}
