/* SPDX-License-Identifier: MIT */
/*
 * Short tiles: the last row of tiles, where D has few rows there. Their loop leaves out the mma's of the others, and they come
 * last: so one that ends early makes way for another, and all large tiles start at once (note 490).
 */
#pragma once
#include "../src/table/short_rows.h"
#include "tile.cuh"

/* Whether a tile that begins with row m0 is one. */
static DEVICE bool is_short(const arguments &args, u32 m0) { return args.m - m0 <= HGEMM_SHORT_ROWS; }

/* A variant whose short tiles come last. */
template <class V> struct short_last : V {};

template <class V> struct block<short_last<V>> : block<V> {
    DEVICE explicit block(const arguments &args) : ::block<V>(args)
    {
        static_assert(!V::INDIRECT, "groups have rows of tiles of their own");
        constexpr u32 GROUP = V::spec::GROUP;
        const u32 columns = this->tile_columns, whole = this->tile_rows - 1; /* rows of tiles before the last */
        if (!is_short(args, whole * V::BM)) return;
        const u32 tile = assignment<V>(args, this->tile_rows * columns).tile, group = tile / (GROUP * columns);
        const bool is_last = tile >= whole * columns;
        const u32 top = is_last ? whole : group * GROUP, height = is_last ? 1 : minimum(whole - top, GROUP);
        const u32 rest = tile - top * columns, column = rest / height;
        this->m0 = this->a.x0 = (top + rest - column * height) * V::BM;
        this->n0 = this->b.x0 = column * V::BN;
    }
};
