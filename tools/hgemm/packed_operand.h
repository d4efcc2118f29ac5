/* SPDX-License-Identifier: MIT */
/* Packed weights to time plans on. */
#ifndef HGEMM_TOOL_PACKED_OPERAND_H
#define HGEMM_TOOL_PACKED_OPERAND_H

#include "hgemm.h"

/* Gives weights of a table one: -8 to 7. */
void packed_operand_table(hgemm_weights_t *weights);

/*
 * Packs weights of that table, or of others, into host memory of hgemm_weights_bytes at a multiple of 16: whose
 * elements are -1, 0 and 1, or from 7 to 9 where codes without a sign have no zeros; or whose codes and scales are
 * random. 0 where there is no memory.
 */
int packed_operand_write(const hgemm_weights_t *weights, int is_exact, uint64_t seed, void *packed);

#endif
