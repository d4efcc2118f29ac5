/* SPDX-License-Identifier: MIT */
#include "problems.h"

hgemm_desc_t problem(hgemm_accumulate_t accumulate, int64_t m, int64_t n, int64_t k)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.accumulate = accumulate;
    desc.m = m, desc.n = n, desc.k = k;
    desc.lda = k ? k : 1, desc.ldb = desc.ldc = desc.ldd = n;
    return desc;
}

static int64_t random_extent(rng_t *rng)
{
    int64_t extent = rng_between(rng, 1, INT64_C(1) << rng_between(rng, 0, 14));
    return rng_between(rng, 0, 1) ? (extent + 7) & ~INT64_C(7) : extent;
}

hgemm_desc_t random_problem(rng_t *rng)
{
    hgemm_desc_t desc =
        problem((hgemm_accumulate_t)rng_between(rng, 0, 1), random_extent(rng), random_extent(rng), random_extent(rng));
    desc.layout = (hgemm_layout_t)rng_between(rng, 0, 1);
    desc.op_a = (hgemm_op_t)rng_between(rng, 0, 1), desc.op_b = (hgemm_op_t)rng_between(rng, 0, 1);
    desc.lda = desc.ldb = desc.ldc = desc.ldd = 16384 + rng_between(rng, 0, 1) * rng_between(rng, 0, 9);
    desc.a = (void *)(uintptr_t)(4096 + (rng_between(rng, 0, 3) ? 0 : 2 * rng_between(rng, 0, 9)));
    desc.batch = rng_between(rng, 0, 3) ? 1 : rng_between(rng, 1, 50);
    return desc;
}

hgemm_status_t select_for_t4(const hgemm_desc_t *desc, size_t workspace, plan_t *plan)
{
    return select_plan(problem_of(desc), &machine_t4, workspace, plan);
}

machine_t a_newer_gpu(void)
{
    return machine_of(&(hgemm_device_info_t){.compute_major = 9, .multiprocessors = 132, .l2_bytes = 50 << 20});
}
