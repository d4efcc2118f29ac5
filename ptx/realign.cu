/* SPDX-License-Identifier: MIT */
/*
 * realign: copies of A and B whose rows begin at multiples of 128 bytes, in the workspace.
 *
 * Idea      If a matrix is not aligned, the product loads every chunk of it in two pieces, which
 *           touch more cache lines. Where that costs more than to read and write the matrix once,
 *           the product runs on a copy, by the variant for aligned matrices. Rows of the copy are
 *           padded with zeros, so that a last, partial chunk along k adds nothing.
 * Types     Beside an operand of floats, one of halves or bfloat16 becomes floats here.
 * Grid      A thread copies a chunk of 16 bytes; blockIdx.z is the operand.
 */
#include "operand.cuh"
#include "../src/table/args.h"

extern "C" __global__ void __launch_bounds__(HGEMM_REALIGN_THREADS) HGEMM_VARIANT(const realign_args_t args)
{
    const realign_operand_t copy = operand_index() == 0 ? args.operand[0] : args.operand[1];
    const char *const from = (const char *)copy.from;
    const u64 ld = copy.ld * HALF_BYTES, to_ld = copy.to_ld * HALF_BYTES; /* in bytes */
    const panel matrix = {from, from, from + (copy.lines - 1) * ld + copy.width * HALF_BYTES, ld, 0, 0, nullptr, false, F16};
    const u32 row_chunks = copy.row_chunks, index = block_index() * HGEMM_REALIGN_THREADS + thread_index();
    const u32 line = divide(index, row_chunks, copy.inv_row_chunks), column = index - line * row_chunks; /* in chunks */
    if (line >= (u32)copy.lines) return;
    const char *const at = from + line * ld + column * 16;
    const u32 shift = (u32)(u64)at % 16;
    const char *const aligned = at - shift;
    chunk<ANY> c;
    if (aligned >= matrix.begin && aligned + 32 <= matrix.end) c.load_or_zero(aligned, true, true);
    else c.load_inside(matrix, aligned);
    const long long left = copy.width - column * 8ll;
    const b128 live = first_halves(c.extract(shift), left < 8 ? (int)left : 8);
    char *const to = (char *)copy.to + line * to_ld + column * (copy.becomes_floats ? 32ll : 16ll);
    if (!copy.becomes_floats) {
        st_global(to, live);
        return;
    }
    const u32 pairs[4] = {live.x, live.y, live.z, live.w};
    u32 f[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const u32 half = e % 2 ? pairs[e / 2] >> 16 : pairs[e / 2] & 0xffff;
        f[e] = copy.type == F16 ? __float_as_uint(half_to_float(half)) : half << 16;
    }
    st_global(to, b128{f[0], f[1], f[2], f[3]});
    st_global(to + 16, b128{f[4], f[5], f[6], f[7]});
}
