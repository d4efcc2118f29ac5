/* SPDX-License-Identifier: MIT */
/*
 * Short tiles: the last row of tiles, where D has few rows there. Their loop leaves out the mma's of the others, and they come
 * last: so one that ends early makes way for another, and all large tiles start at once (note 490).
 */
#pragma once
#include "row.cuh"
#include "../src/table/short_rows.h"

/* Whether a tile that begins with row m0 is one. */
static DEVICE bool is_short(const arguments &args, u32 m0) { return args.m - m0 <= HGEMM_SHORT_ROWS; }
