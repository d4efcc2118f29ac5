/* SPDX-License-Identifier: MIT */
/*
 * realign: copies of A and B whose rows begin at multiples of 128 bytes, in the workspace.
 *
 * Idea      If a matrix is not aligned, the product loads every chunk of it in two pieces, which
 *           touch more cache lines. Where that costs more than to read and write the matrix once,
 *           the product runs on a copy, by the variant for aligned matrices. Rows of the copy are
 *           padded with zeros, so that a last, partial chunk along k adds nothing.
 * Grid      A thread copies a chunk of 16 bytes; blockIdx.z is the operand.
 */
#include "operand.cuh"
#include "../src/table/args.h"

extern "C" __global__ void __launch_bounds__(HGEMM_REALIGN_THREADS) HGEMM_VARIANT(const realign_args_t args)
{
    const realign_operand_t copy = operand_index() == 0 ? args.operand[0] : args.operand[1];
    const char *const from = (const char *)copy.from;
    const u64 ld = copy.ld * HALF_BYTES, to_ld = copy.to_ld * HALF_BYTES; /* in bytes */
    const panel matrix = {from, from, from + (copy.lines - 1) * ld + copy.width * HALF_BYTES, ld, 0, 0, nullptr, false};
    const u32 row_chunks = (u32)copy.to_ld / 8, index = block_index() * HGEMM_REALIGN_THREADS + thread_index();
    const u32 line = divide(index, row_chunks, copy.inv_row_chunks), column = index - line * row_chunks; /* in chunks */
    if (line >= (u32)copy.lines) return;
    const char *const at = from + line * ld + column * 16;
    const u32 shift = (u32)(u64)at % 16;
    const char *const aligned = at - shift;
    chunk<ANY> c;
    if (aligned >= matrix.begin && aligned + 32 <= matrix.end) c.load_or_zero(aligned, true, true);
    else c.load_inside(matrix, aligned);
    const b128 live = first_halves(c.extract(shift), copy.width - (int)column * 8);
    st_global((char *)copy.to + line * to_ld + column * 16, live);
}
