/* SPDX-License-Identifier: MIT */
/*
 * What k5 and its kin are written in: tile<V> has the verbs for a variant V, by the names that their loops use.
 *
 *   row.cuh        a row of the table and what follows from it: sizes, registers, what a T4 does otherwise
 *   position.cuh   where a block and a warp stand
 *   operand.cuh    a k-tile of A or B: who loads what, where it lies; edges of the matrix and unaligned rows
 *   pipeline.cuh   fetch (global memory -> registers), commit (registers -> shared memory), load_one (shared memory ->
 *                  fragments)
 *   sums.cuh       warps and blocks that share a tile of D add up
 *   stage.cuh      sums through shared memory
 *   scaled.cuh     sums of bfloat16 operands become D where D is nothing else
 *   epilogue.cuh   a sum becomes an element of D
 *   output.cuh     store (accumulators -> D)
 */
#pragma once
#include "output.cuh"
#include "pipeline.cuh"

template <class V> struct tile : V {
    using variant = V;
    using block = ::block<V>;
    using warp = ::warp<V>;
    using fragments = ::fragments<V>;
    using pipeline = ::pipeline<V>;
    typedef typename V::sums sums;
    static constexpr u32 C_PARTS = ::C_PARTS<V>;

    /* Whether a launch for bfloat16 has nothing to do. */
    static DEVICE bool is_unneeded(const arguments &args) { return V::SCALED && ::is_unneeded(scales_of(args).only_after); }
    static DEVICE void clear(sums &acc) { ::clear<V>(acc); }
    static DEVICE void store(const arguments &args, const block &at, sums &acc) { ::store(args, at, acc); }
    static DEVICE void prefetch_c(const arguments &args, const block &at, u32 part) { ::prefetch_c(args, at, part); }
    static DEVICE bool is_outside(const arguments &args, const block &at, const warp &w)
    {
        return ::is_outside(args, at, w);
    }
};

/* The kernel of the variant that the build asks for: HGEMM_VARIANT is its symbol, HGEMM_ROW its row, HGEMM_OP_A and
 * HGEMM_OP_B are 1 if that operand is transposed, HGEMM_ACCESS is an access, HGEMM_INDIRECT and HGEMM_BF16 are 0 or 1. HGEMM_T4 is defined for the machine
 * code of a row with columns of the T4's own. */
#ifdef HGEMM_T4
#define HGEMM_ROW_TYPE(name) t4_##name
#else
#define HGEMM_ROW_TYPE(name) row_##name
#endif
#define HGEMM_ROW_TYPE_OF(name) HGEMM_ROW_TYPE(name) /* expands `name` first */
#define HGEMM_ENTRY(rung) HGEMM_ENTRY_OF(rung, HGEMM_BF16 ? OF_BFLOATS : OF_HALVES)
#define HGEMM_ENTRY_OF(rung, operands)                                                                             \
    using built = variant<HGEMM_ROW_TYPE_OF(HGEMM_ROW), !HGEMM_OP_A, HGEMM_OP_B, HGEMM_ACCESS, HGEMM_INDIRECT, operands>; \
    extern "C" __global__ void __launch_bounds__(built::THREADS, built::MIN_BLOCKS) HGEMM_VARIANT(const arguments args) \
    {                                                                                                              \
        rung<tile<built>>(args);                                                                                   \
    }
