/* SPDX-License-Identifier: MIT */
/*
 * What the cost model prefers, and why: each test has a property of a GPU or of a kernel, and products whose choice
 * shows that the model knows it. test_choices compares its choices with recorded times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "problems.h"

/* On a GPU whose tensor cores leave loads no time, large products run on aligned copies of what is
 * not aligned, where the workspace holds them; on a T4 that does not pay. */
static void copies_are_made_where_they_pay(void **state)
{
    (void)state;
    machine_t newer = machine_of(&(hgemm_device_info_t){
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20});
    rng_t rng = {test_seed()};
    hgemm_desc_t desc;
    plan_t plan;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 4095;
    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, FACTOR_A | FACTOR_B);
    assert_int_equal(plan.variant.access, ACCESS_x16);
    assert_int_equal(select_plan(problem_of(&desc), &newer, 32 << 20, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, 0); /* no room */
    assert_int_equal(plan.variant.access, ACCESS_any);
    assert_int_equal(select_plan(problem_of(&desc), &machine_t4, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, 0);
    desc.n = 100, desc.k = desc.lda = 4096; /* only B is not aligned */
    desc.m = 100000;
    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, FACTOR_B);
    assert_int_equal(copy_of(problem_of(&desc), FACTOR_B).bytes, 4096 * 128 * 2);

    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 2047; /* one that pays, but for the batch */
    desc.stride_a = desc.stride_b = desc.stride_d = 2047 * 2047;
    for (desc.batch = 1; desc.batch < 3; desc.batch++) {
        assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.copies, desc.batch == 1 ? FACTOR_A | FACTOR_B : 0);
    }

    int copied = 0, aligned_alone = 0;
    for (int i = 0; i < 20000; i++) {
        desc = random_problem(&rng);
        desc.layout = HGEMM_ROW_MAJOR;
        size_t workspace = (size_t)rng_between(&rng, 0, (int64_t)newer.workspace_bytes);
        assert_int_equal(select_plan(problem_of(&desc), &newer, workspace, &plan), HGEMM_STATUS_SUCCESS);
        if (!plan.copies)
            continue;
        const hgemm_kernel_info_t *info = &kernel_table[plan.variant.kernel].info;
        int64_t sums = plan.splits == 1 ? 0
                                        : (plan.tiles - plan.whole_tiles) * plan.splits * info->block_m *
                                              info->block_n * (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
        int64_t bytes = plan.copies & FACTOR_A ? copy_of(problem_of(&desc), FACTOR_A).bytes : 0;
        bytes += plan.copies & FACTOR_B ? copy_of(problem_of(&desc), FACTOR_B).bytes : 0;
        assert_int_equal(desc.batch, 1); /* one matrix is what realign copies */
        assert_int_equal(plan.copies, copies_needed(problem_of(&desc)));
        assert_int_equal(plan.variant.access, ACCESS_x16);
        assert_true(HGEMM_WORKSPACE_TILES * 4 + sums + bytes <= (int64_t)workspace);
        copied++, aligned_alone += kernel_table[plan.variant.kernel].access == ACCESS_x16;
    }
    assert_true(copied > 100 && aligned_alone > 10); /* kernels for aligned operands alone take part, too */
}

/* 40 tiles of 32x128 wait for a T4's DRAM; one that follows by itself takes long, too, whatever DRAM could bring it
 * meanwhile: with a fortieth more bytes the T4 model needs a quarter more time. */
static void a_second_wave_has_its_own_time(void **state)
{
    (void)state;
    const int64_t columns[] = {40 * 128, 40 * 128 + 96};
    double clocks[2];
    for (int i = 0; i < 2; i++) {
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 16, columns[i], 1032);
        plan_t plan;
        desc.kernel = KERNEL_k5_32x128;
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        clocks[i] = estimate_clocks(problem_of(&desc), &machine_t4, &plan);
    }
    assert_true(clocks[1] > 1.1 * clocks[0]);
}

/* Automatic selection draws from the tuned rung and thin kernels only, and from all of them: on a T4, but for rows that
 * are not for one. */
static void every_tuned_kernel_has_its_use(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    int uses[KERNEL_END] = {0}, newer_uses[KERNEL_END] = {0};
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int64_t m = 2; m <= 8192; m *= 2)
            for (int64_t n = 2; n <= 8192; n *= 2)
                for (int64_t k = 2; k <= 8192; k *= 4) {
                    hgemm_desc_t desc = problem((hgemm_accumulate_t)accumulate, m, n, k);
                    int kernel = 0;
                    plan_t plan;
                    assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
                    uses[kernel]++;
                    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan),
                                     HGEMM_STATUS_SUCCESS);
                    newer_uses[plan.variant.kernel]++;
                    const kernel_t *chosen = &kernel_table[plan.variant.kernel];
                    if (!chosen->blocks && chosen->info.threads == 128) /* slow where one of its blocks is alone */
                        assert_true(plan.tiles > newer.multiprocessors);
                }
    for (int64_t i = 6 * 2; i < 6 * 28; i++) { /* of floats: ever more rows, or columns, k long or short */
        const int64_t some = INT64_C(1) << i / 12, other = i / 6 % 2 ? 1024 : some, k = i / 3 % 2 ? 1024 : 16;
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, other, i / 6 % 2 ? some : 1024, k);
        plan_t plan;
        desc.type_a = desc.type_b = HGEMM_TYPE_F32, desc.accuracy = (hgemm_accuracy_t)(i % 3);
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        uses[plan.variant.kernel]++;
        assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        newer_uses[plan.variant.kernel]++;
    }
    for (int i = 0; i < 8 * 14; i++) { /* by packed weights, integers or by a table: 1, 2, 3, 4, 6, 8 rows, and more */
        const int64_t rows = ((2 + i / 4 % 2) << i / 8) / 2;
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, rows, i % 2 ? 1024 : 4096, 4096);
        hgemm_weights_t weights;
        plan_t plan;
        hgemm_weights_init(&weights);
        weights.n = desc.n, weights.k = 4096, weights.group = i / 2 % 2 ? 64 : 128;
        weights.code = i / 2 % 2 ? HGEMM_CODE_TABLE16 : HGEMM_CODE_INT4;
        desc.op_b = HGEMM_OP_T, desc.weights = &weights, desc.type_b = HGEMM_TYPE_PACKED, desc.ldb = 0;
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        uses[plan.variant.kernel]++;
        assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        newer_uses[plan.variant.kernel]++;
    }
    /* Thin ones have theirs where a side or k is longer: m, n, k in turn. */
    for (int64_t thin = 1; thin <= 8; thin++)
        for (int64_t other = 1; other <= 128; other *= 2)
            for (int64_t extent = 1 << 14; extent <= 1 << 20; extent *= 4)
                for (int side = 0; side < 3; side++) {
                    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, side == 0 ? extent : thin,
                                                side == 1 ? extent : thin, side == 2 ? extent : other);
                    plan_t plan;
                    assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
                    uses[plan.variant.kernel]++;
                    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan),
                                     HGEMM_STATUS_SUCCESS);
                    newer_uses[plan.variant.kernel]++;
                }
    for (int kernel = 1; kernel < KERNEL_END; kernel++) {
        int tuned = !kernel_table[kernel].is_plain;
        if ((tuned && kernel_table[kernel].blocks) != (uses[kernel] > 0) || tuned < (newer_uses[kernel] > 0) ||
            (tuned && uses[kernel] + newer_uses[kernel] == 0))
            fail_msg("%s is chosen %d times for a T4, %d for a newer GPU", kernel_table[kernel].info.name, uses[kernel],
                     newer_uses[kernel]);
    }
}

/* Experts of packed weights: of few tiles all are cut, of many those that would not fill the last round, of as many as
 * are likely, and none where a row's bits must not depend on others. Of halves none are. */
static void experts_are_cut_where_a_t4_would_idle(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n;
        int is_packed, is_cut, has_whole;
        unsigned flags;
    } cases[] = {
        {2, 4096, 1, 0, 1, 0},
        {2, 1024, 1, 1, 0, 0},
        {16, 4096, 1, 1, 1, 0},
        {64, 4096, 1, 1, 1, 0},
        {128, 4096, 1, 1, 1, 0},
        {16, 4096, 0, 0, 1, 0},
        {16, 4096, 1, 0, 1, HGEMM_FLAG_BATCH_INVARIANT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, cases[i].m, cases[i].n, 4096);
        hgemm_weights_t weights;
        plan_t plan;
        int ends[8] = {0};
        hgemm_weights_init(&weights);
        weights.n = cases[i].n, weights.k = 4096, weights.group = 128;
        desc.op_b = HGEMM_OP_T, desc.ldb = 4096, desc.flags = cases[i].flags;
        desc.batch = 8, desc.batch_mode = HGEMM_BATCH_GROUPED, desc.group_ends = ends;
        if (cases[i].is_packed)
            desc.weights = &weights, desc.type_b = HGEMM_TYPE_PACKED, desc.ldb = 0;
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_null(plan_fault(problem_of(&desc), machine_t4.workspace_bytes, &plan));
        if (cases[i].is_packed && cases[i].m == 128) /* two tiles of 16 rows in a group read its weights twice */
            assert_int_equal(kernel_table[plan.variant.kernel].info.block_m, 32);
        if ((plan.splits > 1) != cases[i].is_cut || (plan.whole_tiles > 0) != cases[i].has_whole)
            fail_msg("case %d: %d parts of tiles from number %d of %d on", (int)i, plan.splits, (int)plan.whole_tiles,
                     (int)plan.tiles);
    }
}

/* One row of blocks cannot fill a T4 with large tiles; a large square must use them. */
static void tiles_grow_with_the_problem(void **state)
{
    (void)state;
    hgemm_kernel_info_t small, large;
    int kernel = 0;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        hgemm_desc_t desc = problem((hgemm_accumulate_t)accumulate, 256, 256, 1024);
        assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
        assert_int_equal(hgemm_get_kernel_info(kernel, &small), HGEMM_STATUS_SUCCESS);
        desc = problem((hgemm_accumulate_t)accumulate, 8192, 8192, 8192);
        assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
        assert_int_equal(hgemm_get_kernel_info(kernel, &large), HGEMM_STATUS_SUCCESS);
        assert_true(small.block_m * small.block_n < large.block_m * large.block_n);
    }
}

/* Clocks that the model expects of a kernel with k whole, and of the choice, on a machine. */
static double clocks_of_kernel(hgemm_desc_t desc, int kernel, const machine_t *machine)
{
    plan_t plan;
    desc.kernel = kernel;
    assert_int_equal(select_plan(problem_of(&desc), machine, machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    return estimate_clocks(problem_of(&desc), machine, &plan);
}

static double clocks_of_choice(const hgemm_desc_t *desc, const machine_t *machine)
{
    plan_t plan;
    assert_int_equal(select_plan(problem_of(desc), machine, machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    return estimate_clocks(problem_of(desc), machine, &plan);
}

/* 49 tiles of 128x128 or 81 of 1025: a few more than a T4 has places for. Cut in parts these few take little; whole,
 * the T4 model needs 2 to 40% more time, of whichever kernel. */
static void few_tiles_too_many_are_better_cut(void **state)
{
    (void)state;
    const int64_t sides[] = {848, 1025};
    for (int i = 0; i < 2; i++) {
        const hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, sides[i], sides[i], sides[i]);
        const double least = 1.01 * clocks_of_choice(&desc, &machine_t4);
        variant_t variant;
        for (int kernel = 1; kernel < KERNEL_END; kernel++)
            if (!kernel_table[kernel].is_plain && kernel_table[kernel].family != FAMILY_thin &&
                kernel_table[kernel].blocks && find_variant(problem_of(&desc), kernel, 0, &variant) &&
                clocks_of_kernel(desc, kernel, &machine_t4) < least)
                fail_msg("%s is as fast with k whole", kernel_table[kernel].info.name);
    }
}

/* Rows of 5056 bytes begin in the middle of every other line of DRAM, those of 5120 at lines, which are opened once: by
 * the T4 model 16 rows take 7% longer, for 1% fewer bytes. */
static void lines_opened_twice_are_priced(void **state)
{
    (void)state;
    const hgemm_desc_t whole = problem(HGEMM_ACCUMULATE_F16, 16, 2560, 4096),
                       apart = problem(HGEMM_ACCUMULATE_F16, 16, 2528, 4096);
    const char *const names[] = {"k5_16x64", "k5_64x64"};
    for (int i = 0; i < 2; i++) {
        const int kernel = hgemm_find_kernel(names[i]);
        const double more = clocks_of_kernel(apart, kernel, &machine_t4) / clocks_of_kernel(whole, kernel, &machine_t4);
        assert_true(more > 1.05 && more < 1.10);
    }
}

/* Scales of 32 MiB of weights are found in a sample of 512 KiB at most: by the T4 model in 13 us, a tenth of the
 * product's time. */
static void a_sample_is_priced_as_such(void **state)
{
    (void)state;
    double clocks[2];
    for (int is_given = 0; is_given < 2; is_given++) {
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, 16, 4096, 4096);
        plan_t plan;
        desc.type_a = desc.type_b = HGEMM_TYPE_BF16;
        desc.scale_a = desc.scale_b = is_given ? 1 : 0;
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        clocks[is_given] = estimate_clocks(problem_of(&desc), &machine_t4, &plan);
    }
    assert_true(clocks[0] > clocks[1] && clocks[0] < 1.15 * clocks[1]);
}

/* Parts of k that the cheapest plan of a kernel has. */
static int parts_of_k(const hgemm_desc_t *desc, int kernel, const machine_t *machine)
{
    enum { MOST = 400 };
    static priced_plan_t ranked[MOST];
    const int count = rank_plans(problem_of(desc), machine, machine->workspace_bytes, ranked, MOST);
    for (int i = 0; i < count; i++)
        if (ranked[i].plan.variant.kernel == kernel)
            return ranked[i].plan.splits;
    fail_msg("%s has no plan", kernel_table[kernel].info.name);
    return 0;
}

/* The conversion of BF16 takes a tile of many chunks, or a block of many steps, longer than FP16: by the T4 model 1024
 * takes 57 us by 128x128 and 54 by 256x128, which are level for FP16; on an H100 16 rows take 13.0 us in two parts of k
 * and 10.8 in four. */
static void a_conversion_has_its_price(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    double ratio[2], choice[2];
    int parts[2];
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        hgemm_desc_t square = problem(HGEMM_ACCUMULATE_F32, 1024, 1024, 1024);
        hgemm_desc_t rows = problem(HGEMM_ACCUMULATE_F32, 16, 4096, 4096);
        if (is_bf16) {
            square.type_a = square.type_b = rows.type_a = rows.type_b = HGEMM_TYPE_BF16;
            square.scale_a = square.scale_b = rows.scale_a = rows.scale_b = 1;
        }
        ratio[is_bf16] = clocks_of_kernel(square, KERNEL_k5_128x128_f32, &machine_t4) /
                         clocks_of_kernel(square, KERNEL_k5_256x128_f32, &machine_t4);
        choice[is_bf16] = clocks_of_choice(&square, &machine_t4);
        parts[is_bf16] = parts_of_k(&rows, KERNEL_k5_16x64_f32, &newer);
    }
    assert_true(ratio[1] > 1.02 * ratio[0]);
    assert_true(choice[1] > 1.02 * choice[0]);
    assert_true(parts[1] > parts[0]);
}

/* A tile's sums cost less where D has few of its rows, and chunks in two loads more than in one. By the T4 model these
 * decide by 40 and 10% on what 16x48x848 and 35x700x2048 are run by. */
static void few_rows_have_few_sums_and_half_chunks_two_loads(void **state)
{
    (void)state;
    const hgemm_desc_t few = problem(HGEMM_ACCUMULATE_F32, 16, 48, 848),
                       full = problem(HGEMM_ACCUMULATE_F32, 64, 48, 848);
    assert_true(parts_of_k(&few, KERNEL_k5_64x32_f32, &machine_t4) >=
                parts_of_k(&full, KERNEL_k5_64x32_f32, &machine_t4));
    assert_true(clocks_of_kernel(few, KERNEL_k5_64x32_f32, &machine_t4) <
                clocks_of_kernel(full, KERNEL_k5_64x32_f32, &machine_t4));
    const hgemm_desc_t halves = problem(HGEMM_ACCUMULATE_F16, 35, 700, 2048);
    const hgemm_desc_t whole = problem(HGEMM_ACCUMULATE_F16, 35, 704, 2048);
    for (int i = 0; i < 2; i++) {
        const int kernel = i ? KERNEL_k5_64x64 : KERNEL_k5_128x128;
        assert_true(clocks_of_kernel(halves, kernel, &machine_t4) >
                    1.02 * clocks_of_kernel(whole, kernel, &machine_t4));
    }
}

/* What a block does before and after its k-tiles nothing overlaps where it is alone: many short ones come in pairs. */
static void short_blocks_are_not_alone(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 48000, 3072, 1024);
    plan_t plan;
    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(kernel_table[plan.variant.kernel].newer_blocks > 1);
    desc = problem(HGEMM_ACCUMULATE_F16, 8192, 8192, 8192);
    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(kernel_table[plan.variant.kernel].newer_blocks, 1);
}

/* DRAM serves one stream per multiprocessor better than two: the longest sums leave a newer GPU's last four idle. */
static void long_sums_have_a_block_per_multiprocessor(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 16, 1024, 500000);
    plan_t plan;
    assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    int64_t blocks = plan.tiles * plan.splits;
    assert_true(blocks > 3 * newer.multiprocessors / 4 && blocks <= newer.multiprocessors);
}

/* Ten rows fit a tile of 16; one of 64 would be mostly beyond the matrix. */
static void few_unaligned_rows_take_a_flat_tile(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    const machine_t *machines[] = {&machine_t4, &newer};
    for (int i = 0; i < 2; i++) {
        const hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 10, 1952, 457);
        plan_t plan;
        assert_int_equal(select_plan(problem_of(&desc), machines[i], machines[i]->workspace_bytes, &plan),
                         HGEMM_STATUS_SUCCESS);
        assert_int_equal(kernel_table[plan.variant.kernel].info.block_m, 16);
    }
}

/* A single row with weights whose rows are not aligned streams them by a thin kernel; tensor cores take what is
 * aligned, or runs along k, or has a second row. Dots are thin if they have four columns at most, or are so long that D
 * is nothing. On a T4 tensor cores take those of more columns, and of long rows what takes two passes over much that
 * the L2 cache does not keep, or whose weights run along k for long: the T4 model needs 10 to 150% more time for thin
 * ones. Of more columns than two a kernel whose warps have tiles takes what is left: 8x65536x8 in 8 us, not 13,
 * 32768x6x32 in 11, not 31. Lines that are swept take 19 us at 4x32768x64 on a T4, not 22. */
static void thin_kernels_have_their_products(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        hgemm_op_t op_b;
        int kernel[2]; /* for a T4, a newer GPU; KERNEL_NONE: any that is not thin */
    } rows[] = {
        {1, 50257, 768, HGEMM_OP_N, {KERNEL_thin_8x512, KERNEL_thin_8x512}},
        {1, 50257, 768, HGEMM_OP_T, {KERNEL_NONE, KERNEL_NONE}},
        {1, 50256, 768, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {2, 50257, 768, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {1, 1000000, 1, HGEMM_OP_N, {KERNEL_thin_8x512, KERNEL_thin_8x512}},
        {4, 4, 4096, HGEMM_OP_N, {KERNEL_thin_8x8, KERNEL_thin_8x8}},
        {8, 8, 4096, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {8, 8, 65536, HGEMM_OP_N, {KERNEL_NONE, KERNEL_thin_8x8}},
        {8, 5, 65536, HGEMM_OP_N, {KERNEL_thin_8x8, KERNEL_thin_8x8}},
        {8, 65536, 64, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {8, 65536, 8, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {4, 65536, 64, HGEMM_OP_N, {KERNEL_thin_8x512, KERNEL_NONE}},
        {4, 32768, 64, HGEMM_OP_T, {KERNEL_thin_8x512, KERNEL_thin_8x512}}, /* swept */
        {300000, 1, 64, HGEMM_OP_N, {KERNEL_thin_512x8, KERNEL_thin_512x8}},
        {20000, 1, 256, HGEMM_OP_N, {KERNEL_thin_512x8, KERNEL_thin_512x8}},
        {32768, 8, 64, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {32768, 2, 64, HGEMM_OP_N, {KERNEL_thin_512x8, KERNEL_thin_512x8}},
        {32768, 6, 32, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {10, 1, 8, HGEMM_OP_T, {KERNEL_NONE, KERNEL_NONE}},
    };
    const machine_t newer = a_newer_gpu();
    const machine_t *machines[] = {&machine_t4, &newer};
    for (int i = 0; i < 2; i++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, rows[r].m, rows[r].n, rows[r].k);
            plan_t plan;
            desc.op_b = rows[r].op_b, desc.ldb = desc.op_b == HGEMM_OP_T ? desc.k : desc.n;
            assert_int_equal(select_plan(problem_of(&desc), machines[i], machines[i]->workspace_bytes, &plan),
                             HGEMM_STATUS_SUCCESS);
            int chosen = kernel_table[plan.variant.kernel].family == FAMILY_thin ? plan.variant.kernel : KERNEL_NONE;
            if (chosen != rows[r].kernel[i])
                fail_msg("%s: %s for row %zu", i ? "newer" : "T4", kernel_table[plan.variant.kernel].info.name, r);
        }
}

/* A tile of which D has few rows and columns reads no more than these: parts of k are bound by latency, and a T4 has
 * one for each multiprocessor. With 16 of them the T4 model needs 25 to 55% more time. */
static void small_dots_fill_a_t4(void **state)
{
    (void)state;
    static const int64_t sides[][2] = {{8, 8}, {16, 8}, {8, 16}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        for (int64_t k = 32768; k <= 262144; k *= 2) {
            hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, sides[i][0], sides[i][1], k);
            plan_t plan;
            assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
            assert_int_not_equal(kernel_table[plan.variant.kernel].family, FAMILY_thin);
            assert_in_range(plan.tiles * plan.splits, 3 * machine_t4.multiprocessors / 4, machine_t4.multiprocessors);
        }
}

/* On an H100 (note 421) FP32 units multiply what has short sums, tensor cores what has long ones; few rows have a tile
 * of few; and a copy of floats is dear. */
static void floats_have_their_kernels(void **state)
{
    (void)state;
    const machine_t newer = machine_of(&(hgemm_device_info_t){
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20});
    static const struct {
        int64_t m, n, k, batch, pad;
        const char *kernel;
    } cases[] = {
        {128, 128, 32, 128, 0, "fma_64x64"},       {256, 256, 256, 32, 0, "single_128x64"},
        {64, 64, 64, 256, 0, "fma_64x64"},         {32, 32, 32, 1024, 0, "fma_32x32"},
        {2048, 2048, 16, 1, 0, "fma_64x64"},       {2048, 2048, 2048, 1, 0, "single_128x64"},
        {1024, 1024, 1024, 1, 0, "single_128x64"}, {32, 4096, 4096, 1, 0, "single_32x64"},
        {32, 4096, 4096, 1, 1, "fma_32x32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hgemm_desc_t desc;
        plan_t plan;
        hgemm_desc_init(&desc);
        desc.type_a = desc.type_b = desc.type_c = desc.type_d = desc.type_bias = HGEMM_TYPE_F32;
        desc.accumulate = HGEMM_ACCUMULATE_F32;
        desc.op_b = HGEMM_OP_T;
        desc.m = cases[i].m, desc.n = cases[i].n, desc.k = cases[i].k, desc.batch = cases[i].batch;
        desc.lda = desc.ldb = desc.k + cases[i].pad, desc.ldc = desc.ldd = desc.n;
        desc.stride_a = desc.m * desc.lda, desc.stride_b = desc.n * desc.ldb, desc.stride_d = desc.m * desc.n;
        assert_int_equal(select_plan(problem_of(&desc), &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_string_equal(kernel_table[plan.variant.kernel].info.name, cases[i].kernel);
    }
}

/* Whoever asks for less accuracy gets a kernel that multiplies less, if the GPU has one: two products of halves in the
 * place of three, or one. */
static void accuracies_have_their_kernels(void **state)
{
    (void)state;
    static const char *const kernels[2][3] = {{"single_128x128", "single16_256x128", "single11_128x128"},
                                              {"single_128x64", "single_128x64", "single11_128x128"}};
    static const int64_t sides[] = {2048, 3072, 4096, 5040, 8192};
    const machine_t newer = a_newer_gpu();
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        for (int is_newer = 0; is_newer < 2; is_newer++) {
            const machine_t *machine = is_newer ? &newer : &machine_t4;
            double clocks[3];
            for (int level = HGEMM_ACCURACY_F32; level <= HGEMM_ACCURACY_11_BITS; level++) {
                hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, sides[i], sides[i], sides[i]);
                plan_t plan;
                desc.type_a = desc.type_b = desc.type_c = desc.type_d = desc.type_bias = HGEMM_TYPE_F32;
                desc.accuracy = (hgemm_accuracy_t)level;
                assert_int_equal(select_plan(problem_of(&desc), machine, machine->workspace_bytes, &plan),
                                 HGEMM_STATUS_SUCCESS);
                assert_string_equal(kernel_table[plan.variant.kernel].info.name, kernels[is_newer][level]);
                clocks[level] = estimate_clocks(problem_of(&desc), machine, &plan);
            }
            assert_true(clocks[2] < 0.7 * clocks[0] && (is_newer || clocks[1] < 0.8 * clocks[0]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_made_where_they_pay),
        cmocka_unit_test(a_second_wave_has_its_own_time),
        cmocka_unit_test(every_tuned_kernel_has_its_use),
        cmocka_unit_test(experts_are_cut_where_a_t4_would_idle),
        cmocka_unit_test(tiles_grow_with_the_problem),
        cmocka_unit_test(few_tiles_too_many_are_better_cut),
        cmocka_unit_test(lines_opened_twice_are_priced),
        cmocka_unit_test(a_sample_is_priced_as_such),
        cmocka_unit_test(a_conversion_has_its_price),
        cmocka_unit_test(few_rows_have_few_sums_and_half_chunks_two_loads),
        cmocka_unit_test(short_blocks_are_not_alone),
        cmocka_unit_test(long_sums_have_a_block_per_multiprocessor),
        cmocka_unit_test(few_unaligned_rows_take_a_flat_tile),
        cmocka_unit_test(thin_kernels_have_their_products),
        cmocka_unit_test(small_dots_fill_a_t4),
        cmocka_unit_test(floats_have_their_kernels),
        cmocka_unit_test(accuracies_have_their_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
