/* SPDX-License-Identifier: MIT */
/* Packed weights as a caller describes them: what is wrong with that, and their form in memory. */
#ifndef HGEMM_WEIGHTS_H
#define HGEMM_WEIGHTS_H

#include "device/device.h"
#include "table/packed.h"

/* Takes a struct of the size that this version has, and writes its form. On failure `words` says which value cannot be.
 */
hgemm_status_t take_weights(const hgemm_weights_t *weights, packed_form_t *form, char words[DEVICE_DETAIL]);

/* The form of weights that were taken before. */
packed_form_t form_of(const hgemm_weights_t *weights);

/* Bytes of one of them, with its share of scales and zeros. */
double weight_bytes(const hgemm_weights_t *weights);

#endif
