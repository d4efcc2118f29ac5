/* SPDX-License-Identifier: MIT */
/* A handle on the emulated T4, and a small product on it. */
#ifndef TEST_EMULATED_H
#define TEST_EMULATED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/handle.h"

enum { N = 16, BYTES = N * N * 2 };

extern hgemm_handle_t handle;
extern const uint16_t zeros[N * N];

void open_device(const char *name); /* sets handle */
void close_device(void);

/* Device memory, with `contents` if there are any. */
void *allocate(size_t bytes, const void *contents);

/* C = A B of N x N. */
hgemm_status_t multiply(const void *a, const void *b, void *c);

#endif
