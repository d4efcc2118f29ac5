/* SPDX-License-Identifier: MIT */
/*
 * Runs a case and checks it:
 *   - D is what the reference says, element by element, and the errors of a bounded fill are together as small as they
 *     should be.
 *   - Nothing else has changed, and D only where the product has rows.
 *   - A second run gives an element the same bits, whatever stands in other rows and columns: any bits.
 *   - A kernel that does not cover the case says so, and writes nothing; one that does runs it.
 */
#ifndef TEST_GEMM_RUN_H
#define TEST_GEMM_RUN_H

#include "gemm_case.h"
#include "api/handle.h"

enum { CASE_WHY = 1400 };

typedef struct outcome_t {
    int is_right;
    int is_computed;    /* a kernel ran; else there was nothing to do, or no kernel covers the case, as should be */
    int device_is_lost; /* an error on a GPU: nothing that follows would mean anything */
    char why[CASE_WHY]; /* words for the first thing that is not right */
} outcome_t;

void case_run(hgemm_handle_t handle, const case_t *c, outcome_t *outcome);

/* The leading dimension from which a tile of the kernel spans 2^32 bytes. */
int64_t far_distance(const hgemm_kernel_info_t *info);

/* Whether automatic selection has the kernel to draw from. */
int is_drawn_from(hgemm_handle_t handle, int kernel);

/* Whether a kernel covers a case with that access, and this build has its code. */
int has_variant(const case_t *c, int kernel, access_t access);

#endif
