/* SPDX-License-Identifier: MIT */
/* Which images a handle launches: what a row of results depends on (tools/evidence/images.py). */
#ifndef HGEMM_BENCH_LAUNCHED_H
#define HGEMM_BENCH_LAUNCHED_H

#include "hgemm.h"

/* Bytes of the symbols of a call. It launches four images at most: realign, scale, its kernel, recompute. */
enum { LAUNCHED_WORDS = 256 };

/* To be called right after the handle was created. A program has one such handle. */
void launched_open(hgemm_handle_t handle);

/* From now on the symbols of launched images are added to `words`, which is "" or has some: each once, with blanks
 * between them. NULL ends it. */
void launched_into(char words[LAUNCHED_WORDS]);

#endif
