/* SPDX-License-Identifier: MIT */
/* Packed weights as a caller describes them: what is wrong with that, and their form in memory. */
#ifndef HGEMM_WEIGHTS_H
#define HGEMM_WEIGHTS_H

#include "device/device.h"
#include "table/packed.h"

/* Takes a struct of the size that this version has, and writes its form. On failure `words` says which value cannot be.
 */
hgemm_status_t take_weights(const hgemm_weights_t *weights, packed_form_t *form, char words[DEVICE_DETAIL]);

/* Bytes of one of them, with its share of scales and zeros. */
double weight_bytes(const packed_form_t *form);

/* k's of a group; 0: all of a row. */
int packed_group(const packed_form_t *form);

#endif
