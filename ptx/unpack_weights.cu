/* SPDX-License-Identifier: MIT */
/* unpack_weights: a matrix of numbers from packed weights (src/table/packed.h). Threads stand side by side along k, and walk over
 * rows. */
#include "insn.cuh"
#include "../src/table/packed.h"

extern "C" __global__ void __launch_bounds__(HGEMM_PACK_THREADS) HGEMM_VARIANT(const pack_args_t args)
{
    const long long k = (long long)block_index() * HGEMM_PACK_THREADS + thread_index();
    if (k >= args.form.k) return;
    for (long long row = batch_index(); row < args.form.n; row += HGEMM_UNPACK_ROWS) unpack_element(&args, row, k);
}
