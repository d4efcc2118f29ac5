/* SPDX-License-Identifier: MIT */
/*
 * Options name a form of packed weights by one word:
 *
 *     CODES[:GROUP[:ZEROS[:SCALES]]]          int4:128   uint4:128:code   int8:0:none:f32   nf4
 *
 *     CODES    int4, uint4, int8, uint8, e4m3; or a table of 16 values: nf4, fp4 (both of bitsandbytes), mxfp4
 *     GROUP    k's that share a scale, 0: all of a row. Default 128; of nf4 and fp4 64, of mxfp4 32
 *     ZEROS    none, code, offset. Default none
 *     SCALES   their type: f16, bf16, f32. Default f16; of nf4 and fp4 f32, of mxfp4 bf16
 */
#ifndef HGEMM_WEIGHTS_TEXT_H
#define HGEMM_WEIGHTS_TEXT_H

#include "hgemm.h"
#include "table/packed.h"

#define WEIGHTS_TEXT_HELP                                                                             \
    "  --weights WORD      B is packed weights, CODES[:GROUP[:ZEROS[:SCALES]]]: int4, uint4, int8,\n" \
    "                      uint8, e4m3, nf4, fp4, mxfp4; k's that share a scale, 0: all of a row;\n"  \
    "                      none, code, offset; f16, bf16, f32. \"int4\" is int4:128:none:f16,\n"      \
    "                      \"nf4\" and \"fp4\" have :64:none:f32, \"mxfp4\" has :32:none:bf16\n"

/* Writes weights whose n and k are 0. Returns NULL, or what is wrong with the word. */
const char *weights_from_text(const char *text, hgemm_weights_t *weights);

enum { WEIGHTS_TEXT = 48 };

/* The whole word. Weights of a table that none of these names has are written as nf4. */
void weights_to_text(const hgemm_weights_t *weights, char text[WEIGHTS_TEXT]);
void form_to_text(const packed_form_t *form, char text[WEIGHTS_TEXT]);

#endif
