/* SPDX-License-Identifier: MIT */
/* Every kernel for bfloat16 notices numbers that a sample has not met, wherever they are. */
#include "sampled.h"

#include <stdlib.h>
#include <string.h>

/* The kernel's plan for a problem, whose k is in so many parts for all tiles. */
static plan_t plan_of(const product_t *p, int kernel, int splits)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    hgemm_desc_t placed = p->desc;
    placed.a = placed.b = placed.d = workspace; /* aligned, as all allocations are */
    const problem_t row_major = normalise(&placed);
    plan_t plan = {.splits = splits, .scales = FACTOR_A | FACTOR_B};
    assert_true(find_variant(&row_major, kernel, 0, &plan.variant));
    plan.tiles = problem_tiles(&row_major, info);
    plan.whole_tiles = splits > 1 ? 0 : plan.tiles;
    plan.k_split = splits > 1 ? ceil_div(ceil_div(p->k, splits), info->block_k) * info->block_k : p->k;
    assert_null(plan_fault(&row_major, WORKSPACE, &plan));
    return plan;
}

/* An outlier at the given row of A, or column of B, changes a row or a column of D. */
static void assert_noticed(product_t *p, const plan_t *plan, const double *sums, int64_t row, int64_t column)
{
    double *want = must(malloc((size_t)(p->m * p->n) * sizeof *want));
    const int64_t q = row >= 0 ? k_of_a(p, row, 0) : k_of_b(p, column, 0);
    uint16_t *const at = row >= 0 ? a_at(p, row, q) : b_at(p, q, column);
    const uint16_t before = *at;
    memcpy(want, sums, (size_t)(p->m * p->n) * sizeof *want);
    for (int64_t i = 0; i < p->m && row < 0; i++)
        want[i * p->n + column] += (OUTLIER - value(before)) * value(*a_at(p, i, q));
    for (int64_t j = 0; j < p->n && row >= 0; j++)
        want[row * p->n + j] += (OUTLIER - value(before)) * value(*b_at(p, q, j));
    *at = bits_of(OUTLIER);
    run(p, plan);
    *at = before;
    if (space.found.overflow != 1)
        fail_msg("%s, op %d, access %d, parts %d: an overflow in row %d, column %d is not noticed",
                 kernel_table[plan->variant.kernel].info.name, plan->variant.op, plan->variant.access, plan->splits,
                 (int)row, (int)column);
    assert_sums(p, want);
    free(want);
}

/* In the last row and column of a tile, and of D. */
static void test_kernel(int kernel, int op, int64_t gap, int splits)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int64_t m = info->block_m + 8 - gap, n = info->block_n + 8 - gap, shorter = m < n ? m : n;
    product_t p = make(op / 2, op % 2, m, n, (ceil_div(520 << 10, 2 * shorter) + 63) / 64 * 64, gap);
    const plan_t plan = plan_of(&p, kernel, splits);
    double *sums = reference(&p);
    if (op == 0) {
        run(&p, &plan);
        assert_sums(&p, sums);
        assert_int_equal(space.found.overflow, 0);
    }
    assert_noticed(&p, &plan, sums, info->block_m - 1, -1);
    assert_noticed(&p, &plan, sums, -1, info->block_n - 1);
    if (op == 1) {
        assert_noticed(&p, &plan, sums, m - 1, -1);
        assert_noticed(&p, &plan, sums, -1, n - 1);
    }
    free(sums);
    discard(&p);
}

static void every_kernel_notices_an_overflow(void **state)
{
    (void)state;
    int kernels = 0;
    for (int kernel = KERNEL_NONE + 1; kernel < KERNEL_END; kernel++) {
        if (!kernel_table[kernel].limits[LIMIT_bf16])
            continue;
        kernels++;
        for (int op = 0; op < VARIANT_OPS; op++) {
            test_kernel(kernel, op, 0, 1);
            if (kernel_table[kernel].limits[LIMIT_bf16] > ACCESS_any)
                test_kernel(kernel, op, 1, 1);
        }
        test_kernel(kernel, 1, 0, 3);
    }
    assert_true(kernels > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_notices_an_overflow),
    };
    return run_sampled(tests);
}
