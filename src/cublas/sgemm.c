/* SPDX-License-Identifier: MIT */
/*
 * The longer of two floors, and what any kernel takes to start and end:
 *
 *     multiply-adds at the GPU's full FP32 rate, as if no lane ever waited or computed beyond the edge of D
 *     each matrix once through DRAM
 *
 * So an error of the estimate gives a product to cuBLAS that hgemm would have run as fast, not the other way. Both this
 * and the time that hgemm expects are clocks of the same multiprocessors: the clock at which the GPU runs cancels out.
 */
#include "sgemm.h"

static const double macs_a_clock = 64;     /* FP32 lanes of a Turing multiprocessor: published */
static const double bytes_a_clock = 3.9;   /* of DRAM, a multiprocessor's share: what hgemm's cost model has for a T4 */
static const double clocks_of_ends = 5000; /* of hgemm's own smallest product by that model, about */

double sgemm_seconds(const hgemm_desc_t *desc, const hgemm_device_info_t *gpu)
{
    const double m = (double)desc->m, n = (double)desc->n, k = (double)desc->k, batch = (double)desc->batch;
    const int is_strided = desc->batch_mode == HGEMM_BATCH_STRIDED;
    const double of_a = is_strided && desc->stride_a == 0 ? 1 : batch; /* matrices */
    const double of_b = is_strided && desc->stride_b == 0 ? 1 : batch;
    const double macs = batch * m * n * k, bytes = sizeof(float) * (of_a * m * k + of_b * k * n + batch * m * n);
    const double of_macs = macs / macs_a_clock, of_bytes = bytes / bytes_a_clock;
    const double clocks = (of_macs > of_bytes ? of_macs : of_bytes) / gpu->multiprocessors + clocks_of_ends;
    return gpu->clock_khz > 0 ? clocks / (1e3 * gpu->clock_khz) : 0;
}
