/* SPDX-License-Identifier: MIT */
/* A handle on a device that only records, operands for it, and what must hold for every call that is refused. */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device.h"

enum { ELEMENTS = 4096 };

extern fake_device_t fake;
extern struct hgemm_handle handle;
extern uint16_t a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], d[ELEMENTS];

/* A fresh handle and operands: small integers, and in d a mark. */
int set_up(void **state);

/* 8 x 16 x 24, row-major, all apart. */
hgemm_desc_t small(void);

/* An address that no array has, `bytes` after others of these. */
void *elsewhere(uint64_t bytes);

/* Whether d holds only the mark. */
int d_is_untouched(void);

#define assert_status(call, expected) assert_string_equal(hgemm_status_name(call), hgemm_status_name(expected))

/* Both calls that take a descriptor answer so, nothing is loaded or launched, and d is as it was. */
void assert_idle(const hgemm_desc_t *desc, hgemm_status_t expected);

/* The same for a failure; its words contain `word` and read, after those of the status, as sentences. */
void assert_refused(const hgemm_desc_t *desc, hgemm_status_t expected, const char *word);

/* Nothing is wrong with the call, whether the kernels cover it or not; nothing is launched. */
void assert_valid(const hgemm_desc_t *desc);

#endif
