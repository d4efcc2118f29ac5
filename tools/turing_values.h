/* SPDX-License-Identifier: MIT */
/* Numbers of the types u8 i8 u16 i16 f16 u32 i32 f32 u64 i64 f64, as text and as bytes. */
#ifndef TURING_VALUES_H
#define TURING_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t value_size(const char *type); /* 0: there is no such type */
void value_encode(const char *type, double value, void *out);
bool value_parse(const char *type, const char *text, void *out); /* false: it is no such number */
double value_decode(const char *type, const void *bytes);
/* A count or an address; a real number. False: the text is none, or more than `most`. */
bool count_parse(const char *text, uint64_t most, uint64_t *count);
bool real_parse(const char *text, double *value);
void value_print(const char *type, const void *bytes); /* a blank before it */

#endif
