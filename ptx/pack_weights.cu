/* SPDX-License-Identifier: MIT */
/* pack_weights: codes, scales and zeros of weights into the order in which tensor cores take them (src/table/packed.h). A thread
 * has a chunk of 16 bytes of codes; those after them a scale each, with its zero. */
#include "insn.cuh"
#include "../src/table/packed.h"

extern "C" __global__ void __launch_bounds__(HGEMM_PACK_THREADS) HGEMM_VARIANT(const pack_args_t args)
{
    const long long i = (long long)block_index() * HGEMM_PACK_THREADS + thread_index(), chunks = packed_chunks(&args.form);
    const unsigned char *const codes = (const unsigned char *)args.codes;
    if (i < chunks) {
        const b128 v = {packed_word(&args.form, codes, i, 0), packed_word(&args.form, codes, i, 1),
                        packed_word(&args.form, codes, i, 2), packed_word(&args.form, codes, i, 3)};
        st_global((char *)args.packed + i * 16, v);
    } else if (i - chunks < packed_scales(&args.form)) {
        pack_scale(&args, i - chunks);
    }
}
