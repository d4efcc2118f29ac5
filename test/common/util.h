/* SPDX-License-Identifier: MIT */
/* What several tests need: random numbers, a device or a skip, options from the environment. */
#ifndef TEST_UTIL_H
#define TEST_UTIL_H

#include "hgemm.h"

enum { TEST_SKIPPED = 77 }; /* exit status that CTest reports as skipped */

/* A small generator of its own, so that a seed gives the same numbers everywhere. */
typedef struct rng_t {
    uint64_t state;
} rng_t;

uint64_t rng_next(rng_t *rng);
int64_t rng_between(rng_t *rng, int64_t lowest, int64_t highest); /* both included */
double rng_symmetric(rng_t *rng);                                 /* in [-1, 1) */

/* HGEMM_TEST_SEED or, without it, the clock. Printed, so that a run can be repeated. */
uint64_t test_seed(void);

/* Whether HGEMM_TEST_FULL asks for the long lists, made for a GPU. */
int test_full(void);

/* Opens the default device; where there is none, says so and exits with TEST_SKIPPED. */
hgemm_handle_t test_open(void);

/* Ends the test with a message unless `status` is what it must be. */
void expect_status(hgemm_handle_t handle, hgemm_status_t status, hgemm_status_t expected, const char *what);

/* Ends the test with a message unless the condition holds. */
void expect_true(int condition, const char *what);

#endif
