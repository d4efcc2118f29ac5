/* SPDX-License-Identifier: MIT */
#include "select/fma.h"

#include <math.h>

#include "table/warp_facts.h"

enum {
    FLOAT_BYTES = 4,
    UNIT = 4, /* floats that a thread loads at once, if they are aligned */
};

pace_t fma_pace(const problem_t *p, variant_t variant, const price_t *price, double tiles, sharers_t sharers)
{
    const machine_t *machine = price->machine;
    const costs_t *costs = price->costs;
    (void)tiles;
    const hgemm_kernel_info_t *info = &kernel_table[variant.kernel].info;
    const double m = fmin((double)p->m, info->block_m), n = fmin((double)p->n, info->block_n);
    const double k = fmin((double)p->k, info->block_k);
    const double words_a = p->a.whole >= UNIT ? 0 : info->block_m * info->block_k;
    const double words_b = p->b.whole >= UNIT ? 0 : info->block_n * info->block_k;
    const double macs = (double)info->block_m * info->block_n * k;
    const int lanes_n = HGEMM_FP32_LANES_N(info->warp_n), lanes_m = 32 / lanes_n;
    const double read =
        info->threads / 32.0 * (info->warp_m / lanes_m + info->warp_n / lanes_n) * k; /* words of a lane each */
    const double own = FLOAT_BYTES * k * (m / sharers.a + n / sharers.b);             /* from DRAM */
    const double pipes =
        fmax(macs / costs->rate_fma_macs + read * costs->clocks_fma_read + (words_a + words_b) * costs->clocks_fma_word,
             FLOAT_BYTES * k * (m + n) / costs->rate_l2_bytes);
    return (pace_t){.lone = fmax(pipes, own / costs->rate_dram_bytes_alone),
                    .beside = fmax(pipes, own / costs->rate_dram_bytes_alone),
                    .latency = costs->clocks_fma_step + costs->factor_fma_exposed * pipes +
                               ((words_a > 0) + (words_b > 0)) * costs->clocks_fma_unaligned,
                    .dram = own / costs->rate_dram_bytes / machine->multiprocessors,
                    .store = costs->factor_fma_store * m * n * FLOAT_BYTES / costs->rate_dram_bytes /
                             machine->multiprocessors};
}

launch_shape_t fma_shape(const problem_t *p, const plan_t *plan, const machine_t *machine)
{
    const int64_t longest = plan->whole_tiles > 0 ? p->k : plan->k_split; /* k's of a block */
    (void)machine;
    return (launch_shape_t){
        .blocks = plan_blocks(plan),
        .shared_bytes =
            kernel_table[plan->variant.kernel].info.shared_bytes + kept_sums_bytes(plan->variant.kernel, longest),
    };
}

void price_fma(const problem_t *p, variant_t variant, price_t *price)
{
    (void)p, (void)variant;
    price->end = price->overlap = price->costs->clocks_fma_block;
    price->launch = price->turnover = 0;
}
