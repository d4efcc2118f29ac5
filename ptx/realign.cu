/* SPDX-License-Identifier: MIT */
/*
 * realign: copies of A and B whose rows begin at multiples of 128 bytes, in the workspace.
 *
 * Idea      A matrix that is not aligned costs every load of the product twice: it is loaded in
 *           two pieces, which touch more cache lines. Where that is more than reading it once and
 *           writing it once, the product runs on a copy, by the variant for aligned matrices.
 *           Rows are filled with zeros up to whole chunks, so a last chunk along k adds nothing.
 * Grid      blockIdx.z is the operand; EACH chunks of 16 bytes a thread, 256 threads.
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
    constexpr int EACH = HGEMM_REALIGN_CHUNKS;
    const realign_operand p = operand_index() == 0 ? args.operand[0] : args.operand[1];
    const char *const from = (const char *)p.from;
    const u64 ld = p.ld * 2, to_ld = p.to_ld * 2;
    const u32 across = ((u32)p.width + 7) / 8, chunks = p.lines * across;
    const source whole = {from, from, from + (p.lines - 1) * ld + p.width * 2, ld, 0, 0};
    chunk<ANY> c[EACH];
    const char *chunk_at[EACH];
    u32 shift[EACH], line[EACH], first[EACH];
    bool at_end[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const u32 index = (block_index() * EACH + e) * HGEMM_REALIGN_THREADS + thread_index();
        line[e] = divide(index, across, p.of_width);
        first[e] = index - line[e] * across;
        const char *const at = from + line[e] * ld + first[e] * 16;
        shift[e] = (u32)(u64)at % 16;
        chunk_at[e] = at - shift[e];
        at_end[e] = chunk_at[e] < whole.begin || chunk_at[e] + 32 > whole.end;
        c[e].read(chunk_at[e], 0, index < chunks && !at_end[e], false);
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        if (line[e] >= (u32)p.lines) continue;
        if (at_end[e]) c[e].read_end(whole, chunk_at[e]);
        st_global((char *)p.to + line[e] * to_ld + first[e] * 16, first_halves(c[e].get(shift[e]), p.width - (int)first[e] * 8));
    }
}
