/* SPDX-License-Identifier: MIT */
/*
 * realign: copies of A and B whose rows begin at multiples of 128 bytes, in the workspace.
 *
 * Idea      A matrix that is not aligned costs every load of the product twice: it is loaded in
 *           two pieces, which touch more cache lines. Where that is more than reading it once and
 *           writing it once, the product runs on a copy, by the variant for aligned matrices.
 *           Rows are filled with zeros, so a last chunk along k adds nothing.
 * Grid      blockIdx.z is the operand; a chunk of 16 bytes a thread.
 */
#include "tile.cuh"

struct realign_operand {
#define HGEMM_REALIGN(type, name) type name;
#include "../src/kernels.def"
#undef HGEMM_REALIGN
};
struct realign_args { realign_operand operand[2]; };

extern "C" __global__ void __launch_bounds__(HGEMM_REALIGN_THREADS) HGEMM_VARIANT(const realign_args args)
{
    const realign_operand p = operand_index() == 0 ? args.operand[0] : args.operand[1];
    const char *const from = (const char *)p.from;
    const u64 ld = p.ld * 2, to_ld = p.to_ld * 2;
    const source whole = {from, from, from + (p.lines - 1) * ld + p.width * 2, ld, 0, 0};
    const u32 across = (u32)p.to_ld / 8, index = block_index() * HGEMM_REALIGN_THREADS + thread_index();
    const u32 line = divide(index, across, p.inv_row_chunks), first = index - line * across;
    if (line >= (u32)p.lines) return;
    const char *const at = from + line * ld + first * 16;
    const u32 shift = (u32)(u64)at % 16;
    const char *const down = at - shift; /* to where loads are aligned */
    chunk<ANY> c;
    if (down >= whole.begin && down + 32 <= whole.end) c.read(down, true, true);
    else c.read_end(whole, down);
    st_global((char *)p.to + line * to_ld + first * 16, first_halves(c.get(shift), p.width - (int)first * 8));
}
