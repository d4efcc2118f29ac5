/* SPDX-License-Identifier: MIT */
/* Calls by packed weights that nobody chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "problem/names.h"
#include "weights_product.h"

#include <stdio.h>

static hgemm_handle_t handle;
static rng_t rng = {1};

/* Of all that a descriptor can say beside packed weights. */
static void calls_at_random(void **state)
{
    (void)state;
    enum { CALLS = 150, MOST_EXPERTS = 4 };
    for (int i = 0; i < CALLS; i++) {
        const int kind = (int)rng_between(&rng, 0, WEIGHTS_KINDS - 1),
                  group = weights_groups[rng_between(&rng, 0, WEIGHTS_GROUPS - 1)];
        const int experts = rng_between(&rng, 0, 1) ? (int)rng_between(&rng, 2, MOST_EXPERTS) : 1;
        const int64_t n = rng_between(&rng, 1, 140), k = (rng_between(&rng, 0, 1) ? 8 : 2) * rng_between(&rng, 1, 45);
        const hgemm_type_t type_scale = (hgemm_type_t)rng_between(&rng, 0, 2);
        given_t w[MOST_EXPERTS];
        for (int e = 0; e < experts; e++)
            w[e] = weights_give(&rng, weights_kinds[kind].code, weights_kinds[kind].zero, type_scale, group, n, k, 0);
        const int mode = experts == 1 ? 0 : (int)rng_between(&rng, 0, 3); /* strided, shared, grouped, pointers */
        weights_product_t c = {.w = w,
                               .experts = experts,
                               .m = rng_between(&rng, 0, 3) ? rng_between(&rng, 1, 40) : rng_between(&rng, 41, 140),
                               .type_a = rng_between(&rng, 0, 2) ? HGEMM_TYPE_F16 : HGEMM_TYPE_BF16,
                               .type_d = (hgemm_type_t)rng_between(&rng, 0, 2),
                               .lda_more = (int)rng_between(&rng, 0, 1) * (int)rng_between(&rng, 1, 9),
                               .shift = (int)rng_between(&rng, 0, 3) == 0,
                               .is_shared = mode == 1,
                               .is_grouped = mode == 2,
                               .has_pointers = mode == 3,
                               .alpha = rng_between(&rng, 0, 1) ? -0.75F : 0,
                               .beta = rng_between(&rng, 0, 1) ? 0.5F : 0,
                               .has_bias = (int)rng_between(&rng, 0, 1),
                               .has_gate = rng_between(&rng, 0, 2) == 0,
                               .bias_mode = rng_between(&rng, 0, 1) ? HGEMM_BIAS_PER_ROW : HGEMM_BIAS_PER_COLUMN,
                               .type_other = (hgemm_type_t)rng_between(&rng, 0, 2),
                               .activation =
                                   (hgemm_activation_t)rng_between(&rng, HGEMM_ACTIVATION_NONE, ACTIVATION_COUNT - 1),
                               .flags = rng_between(&rng, 0, 4) ? 0 : HGEMM_FLAG_BATCH_INVARIANT,
                               .has_scalars_there = rng_between(&rng, 0, 3) == 0,
                               .has_wide_indices = (int)rng_between(&rng, 0, 1)};
        c.has_gate = c.has_gate && !c.has_pointers; /* whose bias and gate are arrays of pointers, too */
        c.has_bias = c.has_bias && !c.has_pointers;
        c.is_gathered = mode == 2 && rng_between(&rng, 0, 1), c.is_scattered = mode == 2 && rng_between(&rng, 0, 1);
        if (k % 8 == 0 && c.lda_more % 8 == 0 && c.shift == 0 && rng_between(&rng, 0, 1)) /* what every kernel takes, */
            c.kernel = mode < 2 ? weights_kernel_for((int)rng_between(&rng, 0, WEIGHTS_KERNELS - 1), kind, group)
                                : weights_kernels[rng_between(&rng, 0, 1)]; /* or two do */
        if (c.type_a == HGEMM_TYPE_BF16 && c.type_d != HGEMM_TYPE_F16 && mode < 2 && !c.flags && !c.is_gathered &&
            c.beta == 0 && rng_between(&rng, 0, 1)) /* the call finds its scale, and may compute D twice */
            c.outlier = 1e12F;
        char what[64];
        snprintf(what, sizeof what, "call %d, mode %d, kernel %s", i, mode, c.kernel ? c.kernel : "auto");
        weights_check(handle, &rng, &c, what, NULL);
        for (int e = 0; e < experts; e++)
            weights_forget(&w[e]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_at_random)};
    rng.state = test_seed();
    handle = test_open();
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hgemm_destroy(handle);
    return failures;
}
