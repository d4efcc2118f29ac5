/* SPDX-License-Identifier: MIT */
/* Plans: whatever selection answers can run, an explicit kernel is honoured, each tuned kernel has its
 * use, and the answer depends on the problem alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "api/handle.h"
#include "util.h"

static hgemm_desc_t problem(hgemm_accumulate_t accumulate, int64_t m, int64_t n, int64_t k)
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

static hgemm_desc_t random_problem(rng_t *rng)
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

/* The plan that runs on a T4. */
static hgemm_status_t select_for_t4(const hgemm_desc_t *desc, size_t workspace, plan_t *plan)
{
    hgemm_desc_t p = normalise(desc);
    return select_plan(&p, &machine_t4, workspace, plan);
}

/* The parts of a split k cover it, none is empty, and their sums fit the workspace. Where all parts but the last are
 * longer than they need be, multiprocessors that have none of those end the last ones in that time. */
static void splits_cover_k_and_fit(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    int split = 0, tail = 0, uneven = 0;
    for (int i = 0; i < 20000; i++) {
        hgemm_desc_t desc = random_problem(&rng);
        plan_t plan;
        desc.layout = HGEMM_ROW_MAJOR;
        size_t workspace = (size_t)rng_between(&rng, 0, machine_t4.workspace_bytes);
        assert_int_equal(select_for_t4(&desc, workspace, &plan), HGEMM_STATUS_SUCCESS);
        const hgemm_kernel_info_t *info = &kernel_table[plan.variant.kernel].info;
        assert_int_equal(plan.tiles, tile_count(info, desc.m, desc.n));
        int64_t tiles = (plan.tiles - plan.whole_tiles) * desc.batch;
        assert_true(plan.splits >= 1 && plan.k_split * plan.splits >= desc.k);
        if (plan.splits == 1) {
            assert_true(plan.k_split >= desc.k && tiles == 0);
            continue;
        }
        split++;
        tail += plan.whole_tiles > 0;
        assert_true(tiles > 0 && plan.whole_tiles >= 0);
        assert_true(plan.k_split > 0 && plan.k_split % info->block_k == 0);
        assert_true(plan.k_split * (plan.splits - 1) < desc.k);
        assert_true(tiles <= HGEMM_WORKSPACE_TILES);
        assert_true(HGEMM_WORKSPACE_TILES * 4 + tiles * plan.splits * info->block_m * info->block_n *
                                                    (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2) <=
                    (int64_t)workspace);
        int64_t steps = (desc.k + info->block_k - 1) / info->block_k, part = plan.k_split / info->block_k;
        if (part == (steps + plan.splits - 1) / plan.splits)
            continue;
        uneven++;
        assert_int_equal(desc.batch, 1); /* whose long parts all start first */
        int64_t last = steps - (plan.splits - 1) * part,
                others = machine_t4.multiprocessors - (plan.splits - 1) * tiles;
        assert_true(others > 0 && (tiles + others - 1) / others * last <= part);
    }
    assert_true(split > 100 && tail > 100 && split - tail > 100 && uneven > 100);
}

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
    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, FACTOR_A | FACTOR_B);
    assert_int_equal(plan.variant.access, ACCESS_x16);
    assert_int_equal(select_plan(&desc, &newer, 32 << 20, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, 0); /* no room */
    assert_int_equal(plan.variant.access, ACCESS_any);
    assert_int_equal(select_plan(&desc, &machine_t4, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, 0);
    desc.n = 100, desc.k = desc.lda = 4096; /* only B is not aligned */
    desc.m = 100000;
    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.copies, FACTOR_B);
    assert_int_equal(copy_of(&desc, FACTOR_B).bytes, 4096 * 128 * 2);

    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 2047; /* one that pays, but for the batch */
    desc.stride_a = desc.stride_b = desc.stride_d = 2047 * 2047;
    for (desc.batch = 1; desc.batch < 3; desc.batch++) {
        assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.copies, desc.batch == 1 ? FACTOR_A | FACTOR_B : 0);
    }

    int copied = 0, aligned_alone = 0;
    for (int i = 0; i < 20000; i++) {
        desc = random_problem(&rng);
        desc.layout = HGEMM_ROW_MAJOR;
        size_t workspace = (size_t)rng_between(&rng, 0, (int64_t)newer.workspace_bytes);
        assert_int_equal(select_plan(&desc, &newer, workspace, &plan), HGEMM_STATUS_SUCCESS);
        if (!plan.copies)
            continue;
        const hgemm_kernel_info_t *info = &kernel_table[plan.variant.kernel].info;
        int64_t sums = plan.splits == 1 ? 0
                                        : (plan.tiles - plan.whole_tiles) * plan.splits * info->block_m *
                                              info->block_n * (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
        int64_t bytes = plan.copies & FACTOR_A ? copy_of(&desc, FACTOR_A).bytes : 0;
        bytes += plan.copies & FACTOR_B ? copy_of(&desc, FACTOR_B).bytes : 0;
        assert_int_equal(desc.batch, 1); /* one matrix is what realign copies */
        assert_int_equal(plan.copies, copies_needed(&desc));
        assert_int_equal(plan.variant.access, ACCESS_x16);
        assert_true(HGEMM_WORKSPACE_TILES * 4 + sums + bytes <= (int64_t)workspace);
        copied++, aligned_alone += kernel_table[plan.variant.kernel].access == ACCESS_x16;
    }
    assert_true(copied > 100 && aligned_alone > 10); /* kernels for aligned operands alone take part, too */
}

/* A copy makes one operand fit for a variant for 16 bytes. The other one, aligned as it is, may have rows so short
 * that a tile would reach beyond its end. */
static void copies_do_not_lengthen_other_rows(void **state)
{
    (void)state;
    enum { MOST = 400 };
    static priced_plan_t ranked[MOST];
    int copied = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which++) { /* what is copied; the other one has rows of 8 */
        hgemm_desc_t desc =
            problem(HGEMM_ACCUMULATE_F16, which == FACTOR_A ? 512 : 8, which == FACTOR_A ? 8 : 512, 512);
        desc.op_a = desc.op_b = which == FACTOR_A ? HGEMM_OP_N : HGEMM_OP_T;
        desc.lda = which == FACTOR_A ? 513 : 8, desc.ldb = which == FACTOR_A ? 8 : 513;
        assert_int_equal(copies_needed(&desc), which);
        int count = rank_plans(&desc, &machine_t4, machine_t4.workspace_bytes, ranked, MOST);
        for (int i = 0; i < count; i++) {
            const hgemm_kernel_info_t *info = &kernel_table[ranked[i].plan.variant.kernel].info;
            if (ranked[i].plan.copies)
                copied++, assert_true((which == FACTOR_A ? info->block_n : info->block_m) <= 128);
        }
    }
    assert_true(copied > 10);
}

/* The workspace is as large as the header tells, and threads are what the compute capability has. */
static void machines_follow_from_the_device(void **state)
{
    (void)state;
    static const struct {
        int compute_major;
        size_t memory_gib, workspace_mib;
        int threads;
    } cases[] = {{7, 15, 32, 1024},  {7, 48, 32, 1024},    {8, 8, 32, 1536},
                 {9, 80, 160, 2048}, {10, 192, 256, 2048}, {12, 32, 64, 1536}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const machine_t machine = machine_of(&(hgemm_device_info_t){
            .compute_major = cases[i].compute_major, .multiprocessors = 40, .memory_bytes = cases[i].memory_gib << 30});
        assert_int_equal(machine.workspace_bytes, cases[i].workspace_mib << 20);
        assert_int_equal(machine.threads, cases[i].threads);
    }
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
        clocks[i] = estimate_clocks(&desc, &machine_t4, &plan);
    }
    assert_true(clocks[1] > 1.1 * clocks[0]);
}

static void a_named_kernel_takes_k_whole(void **state)
{
    (void)state;
    for (int kernel = 1; kernel < KERNEL_END; kernel++) {
        hgemm_desc_t desc;
        plan_t plan;
        hgemm_desc_init(&desc);
        desc.m = desc.n = 64, desc.k = 1 << 20;
        desc.lda = desc.ldb = desc.ldc = desc.ldd = 1 << 20;
        desc.kernel = kernel, desc.accumulate = kernel_table[kernel].info.accumulate;
        if (kernel_table[kernel].limits[LIMIT_f32])
            desc.type_a = desc.type_b = HGEMM_TYPE_F32, desc.accuracy = kernel_table[kernel].accuracy;
        if (kernel_table[kernel].splits_first) /* whose operands become planes in the workspace */
            desc.k = 1 << 14;
        hgemm_weights_t weights;
        hgemm_weights_init(&weights);
        weights.n = desc.n, weights.k = desc.k, weights.group = 128;
        if (kernel_table[kernel].limits[LIMIT_weights])
            desc.op_b = HGEMM_OP_T, desc.weights = &weights, desc.type_b = HGEMM_TYPE_PACKED;
        if (kernel_table[kernel].info.shared_bytes > T4_SHARED) {
            assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_NOT_SUPPORTED);
            continue;
        }
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.splits, 1);
        desc.kernel = HGEMM_KERNEL_AUTO; /* the same problem is worth splitting */
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_true(plan.splits > 1);
        assert_int_equal(select_for_t4(&desc, 0, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.splits, 1);
    }
}

/* A class holds what the choice depends on, and nothing else. */
static void problems_of_one_class_have_one_plan(void **state)
{
    (void)state;
    enum { CHANGES = 13, ALWAYS = 9 /* of the first ones the class is always another */ };
    rng_t rng = {test_seed()};
    const machine_t newer = machine_of(&(hgemm_device_info_t){
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20});
    for (int i = 0; i < 5000; i++) {
        const machine_t *machine = rng_between(&rng, 0, 1) ? &machine_t4 : &newer;
        hgemm_desc_t desc = random_problem(&rng);
        plan_t plan, again;
        desc.layout = HGEMM_ROW_MAJOR;
        desc.b = (void *)(uintptr_t)(4096 + 2 * rng_between(&rng, 0, 9));
        hgemm_desc_t other = desc;
        other.a = (const char *)desc.a + 16 * rng_between(&rng, 0, 99);
        other.b = (const char *)desc.b + 16 * rng_between(&rng, 0, 99);
        other.c = other.d = (void *)(uintptr_t)(2 * rng_between(&rng, 1, 99));
        other.ldc += rng_between(&rng, 0, 9), other.ldd += rng_between(&rng, 0, 9);
        other.stride_c = rng_between(&rng, 0, 9), other.stride_d = rng_between(&rng, 0, 9);
        other.alpha = 3, other.beta = (float)rng_between(&rng, 0, 1);
        const problem_class_t problem = class_of(&desc), of_other = class_of(&other);
        assert_int_equal(class_compare(&problem, &of_other), 0);
        assert_true(class_hash(&problem) == class_hash(&of_other));
        assert_int_equal(select_plan(&desc, machine, machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(select_plan(&other, machine, machine->workspace_bytes, &again), HGEMM_STATUS_SUCCESS);
        assert_true(same_plan(&plan, &again));

        hgemm_desc_t changed[CHANGES];
        for (int c = 0; c < CHANGES; c++)
            changed[c] = desc;
        changed[0].m++, changed[1].n++, changed[2].k++, changed[3].lda++, changed[4].ldb++, changed[5].batch++;
        changed[6].accumulate = (hgemm_accumulate_t)!desc.accumulate;
        changed[7].op_a = (hgemm_op_t)!desc.op_a, changed[8].op_b = (hgemm_op_t)!desc.op_b;
        changed[9].stride_a++, changed[10].stride_b++;
        changed[11].a = (const char *)desc.a + 2, changed[12].b = (const char *)desc.b + 2;
        for (int c = 0; c < CHANGES; c++) {
            const problem_class_t of_changed = class_of(&changed[c]);
            const int is_same = class_compare(&problem, &of_changed) == 0;
            assert_false(is_same && c < ALWAYS);
            if (!is_same)
                continue;
            assert_int_equal(select_plan(&changed[c], machine, machine->workspace_bytes, &again), HGEMM_STATUS_SUCCESS);
            assert_true(same_plan(&plan, &again));
        }
    }
}

/* The ranking begins with the choice, rises, names no plan twice, and a shorter one is its beginning. */
static void the_choice_leads_the_ranking(void **state)
{
    (void)state;
    enum { MOST = 40, FEW = 7 };
    rng_t rng = {test_seed()};
    hgemm_device_info_t info = {
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20};
    const machine_t newer = machine_of(&info);
    int longest = 0;
    for (int i = 0; i < 500; i++) {
        hgemm_desc_t desc = random_problem(&rng);
        const machine_t *machine = rng_between(&rng, 0, 1) ? &machine_t4 : &newer;
        priced_plan_t ranked[MOST], few[FEW];
        plan_t chosen;
        desc.layout = HGEMM_ROW_MAJOR;
        int count = rank_plans(&desc, machine, machine->workspace_bytes, ranked, MOST);
        assert_in_range(count, 1, MOST);
        assert_int_equal(select_plan(&desc, machine, machine->workspace_bytes, &chosen), HGEMM_STATUS_SUCCESS);
        assert_true(same_plan(&ranked[0].plan, &chosen));
        for (int j = 1; j < count; j++) {
            assert_true(ranked[j - 1].clocks <= ranked[j].clocks);
            for (int other = 0; other < j; other++)
                assert_false(same_plan(&ranked[other].plan, &ranked[j].plan));
        }
        int fewer = rank_plans(&desc, machine, machine->workspace_bytes, few, FEW);
        assert_int_equal(fewer, count < FEW ? count : FEW);
        for (int j = 0; j < fewer; j++)
            assert_true(same_plan(&few[j].plan, &ranked[j].plan));
        longest = count > longest ? count : longest;
    }
    assert_int_equal(longest, MOST);
}

static void whatever_is_chosen_can_run(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 20000; i++) {
        hgemm_desc_t desc = random_problem(&rng);
        int kernel = 0;
        plan_t plan;
        hgemm_kernel_info_t info;
        assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
        assert_in_range(kernel, 1, hgemm_kernel_count());
        assert_int_equal(hgemm_get_kernel_info(kernel, &info), HGEMM_STATUS_SUCCESS);
        assert_true(info.accumulate == desc.accumulate || !info.stages); /* these have f32 sums for both */
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        const variant_t variant = plan.variant;
        assert_int_equal(variant.kernel, kernel);
        assert_true(info.ops >> variant.op & 1);
        assert_true(variant.access <= kernel_table[kernel].access);
        assert_non_null(variant_image(variant));
        if (desc.lda % 8 && desc.ldb % 8 && !plan.copies &&
            info.stages) /* what is not aligned never runs as if it were */
            assert_true(variant.access >= ACCESS_x8);
        if (desc.lda % 4 && desc.ldb % 4 && !plan.copies && info.stages)
            assert_true(variant.access >= ACCESS_any);

        /* Asked for by name it is accepted; and it is accepted or refused, never replaced. */
        for (int asked = 1; asked <= hgemm_kernel_count(); asked++) {
            hgemm_desc_t explicit = desc;
            int given = 0;
            explicit.kernel = asked;
            hgemm_status_t status = hgemm_select(&explicit, &given);
            if (status == HGEMM_STATUS_SUCCESS)
                assert_int_equal(given, asked);
            else
                assert_int_equal(status, HGEMM_STATUS_NOT_SUPPORTED);
            hgemm_kernel_info_t other;
            assert_int_equal(hgemm_get_kernel_info(asked, &other), HGEMM_STATUS_SUCCESS);
            int sums_fit = other.accumulate == desc.accumulate || other.stages == 0;
            int covers = sums_fit && (other.ops >> variant.op & 1) && kernel_table[asked].limits[LIMIT_align];
            if (!covers || other.any_alignment) /* else it depends on the alignment */
                assert_int_equal(status == HGEMM_STATUS_SUCCESS, covers);
            if (asked == kernel && !plan.copies)
                assert_int_equal(status, HGEMM_STATUS_SUCCESS);
        }
    }
}

/* The column-major problem is the row-major one of the transposes, so the same kernel runs. */
static void layouts_are_treated_alike(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 2000; i++) {
        hgemm_desc_t row = random_problem(&rng), column;
        row.layout = HGEMM_ROW_MAJOR;
        column = row;
        column.layout = HGEMM_COL_MAJOR;
        column.op_a = row.op_b, column.op_b = row.op_a;
        column.m = row.n, column.n = row.m;
        column.a = row.b, column.b = row.a;
        column.lda = row.ldb, column.ldb = row.lda;
        int first = 0, second = 0;
        assert_int_equal(hgemm_select(&row, &first), HGEMM_STATUS_SUCCESS);
        assert_int_equal(hgemm_select(&column, &second), HGEMM_STATUS_SUCCESS);
        assert_int_equal(first, second);
    }
}

static machine_t a_newer_gpu(void)
{
    return machine_of(&(hgemm_device_info_t){.compute_major = 9, .multiprocessors = 132, .l2_bytes = 50 << 20});
}

/* Plans that are found have no fault, on a T4 and on newer GPUs, and need no more workspace than there is. */
static void plans_that_are_found_have_no_fault(void **state)
{
    (void)state;
    enum { MOST = 20 };
    rng_t rng = {test_seed()};
    const machine_t newer = a_newer_gpu();
    int split = 0, copied = 0;
    for (int i = 0; i < 2000; i++) {
        const machine_t *machine = rng_between(&rng, 0, 1) ? &machine_t4 : &newer;
        size_t workspace = (size_t)rng_between(&rng, 0, (int64_t)machine->workspace_bytes);
        hgemm_desc_t desc = random_problem(&rng);
        priced_plan_t ranked[MOST];
        desc.layout = HGEMM_ROW_MAJOR;
        int count = rank_plans(&desc, machine, workspace, ranked, MOST);
        for (int j = 0; j < count; j++) {
            const plan_t *plan = &ranked[j].plan;
            const char *fault = plan_fault(&desc, workspace, plan);
            if (fault)
                fail_msg("%s", fault);
            int64_t needed = plan_workspace(&desc, plan);
            assert_in_range(needed, 0, workspace);
            const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
            int64_t bytes = plan->splits == 1
                                ? 0
                                : (plan->tiles - plan->whole_tiles) * plan->splits * desc.batch * info->block_m *
                                      info->block_n * (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
            bytes += plan->copies & FACTOR_A ? copy_of(&desc, FACTOR_A).bytes : 0;
            bytes += plan->copies & FACTOR_B ? copy_of(&desc, FACTOR_B).bytes : 0;
            assert_int_equal(needed, bytes ? bytes + HGEMM_WORKSPACE_TILES * 4 : 0);
            if (needed)
                assert_string_equal(plan_fault(&desc, (size_t)needed - 1, plan), "the workspace is too small");
            split += plan->splits > 1, copied += plan->copies != 0;
        }
    }
    assert_true(split > 1000 && copied > 1000);
}

/* A plan from elsewhere is refused in words, whatever is wrong with it. */
static void faults_of_plans_are_named(void **state)
{
    (void)state;
    const hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 300, 400, 2048);
    hgemm_desc_t odd = problem(HGEMM_ACCUMULATE_F16, 512, 512, 509);
    const plan_t good = {.variant = {KERNEL_k5_64x64, 0, ACCESS_x16, 0, 0}, 35, 30, 4, 512, 0};
    const plan_t whole = {.variant = {KERNEL_k5_64x64, 0, ACCESS_x16, 0, 0}, 35, 35, 1, 2048, 0};
    const plan_t on_copy = {.variant = {KERNEL_k5_64x64, 0, ACCESS_x16, 0, 0}, 64, 64, 1, 509, FACTOR_A};
    const size_t room = 32 << 20;
    assert_null(plan_fault(&desc, room, &good));
    assert_null(plan_fault(&desc, 0, &whole));
    assert_null(plan_fault(&odd, room, &on_copy));
    plan_t general = whole; /* slower, and as correct */
    general.variant.access = ACCESS_far;
    assert_null(plan_fault(&desc, 0, &general));
    const struct {
        const plan_t *from;
        size_t offset;
        int64_t value;
        const char *words;
    } changes[] = {
#define CHANGE(from, member, value, words) {&(from), offsetof(plan_t, member), value, words}
        CHANGE(good, variant.kernel, 0, "no such kernel"),
        CHANGE(good, variant.kernel, KERNEL_END, "no such kernel"),
        CHANGE(good, variant.kernel, KERNEL_k5_64x64_f32, "does not run the problem"),
        CHANGE(good, variant.kernel, KERNEL_k1_tiled, "tiles are not those"),
        CHANGE(good, variant.op, 1, "transposes"),
        CHANGE(good, variant.access, ACCESS_COUNT, "access"),
        CHANGE(on_copy, copies, 0, "access"),
        CHANGE(on_copy, copies, FACTOR_A | FACTOR_B, "copies"),
        CHANGE(good, copies, FACTOR_A, "copies"),
        CHANGE(good, tiles, 36, "tiles are not those"),
        CHANGE(good, whole_tiles, -1, "no tile is left"),
        CHANGE(good, whole_tiles, 35, "no tile is left"),
        CHANGE(whole, whole_tiles, 34, "neither whole nor split"),
        CHANGE(whole, k_split, 2112, "neither whole nor split"),
        CHANGE(good, k_split, 520, "whole steps"),
        CHANGE(good, k_split, 448, "whole steps"),
        CHANGE(good, k_split, 0, "whole steps"),
        CHANGE(good, splits, 5, "whole steps"),
        CHANGE(good, splits, 0, "whole steps"),
#undef CHANGE
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        plan_t plan = *changes[i].from;
        const hgemm_desc_t *p = changes[i].from == &on_copy ? &odd : &desc;
        char *member = (char *)&plan + changes[i].offset;
        if (changes[i].offset == offsetof(plan_t, k_split) || changes[i].offset == offsetof(plan_t, tiles) ||
            changes[i].offset == offsetof(plan_t, whole_tiles))
            *(int64_t *)(void *)member = changes[i].value;
        else
            *(int *)(void *)member = (int)changes[i].value;
        const char *fault = plan_fault(p, room, &plan);
        if (!fault || !strstr(fault, changes[i].words))
            fail_msg("change %d: %s, want %s", (int)i, fault ? fault : "no fault", changes[i].words);
    }
    hgemm_desc_t batch = desc;
    batch.batch = 4000; /* 4000 * 5 tiles */
    assert_non_null(strstr(plan_fault(&batch, (size_t)1 << 40, &good), "counters"));
    hgemm_desc_t invariant = desc;
    invariant.flags = HGEMM_FLAG_BATCH_INVARIANT;
    assert_null(plan_fault(&invariant, room, &whole));
    assert_non_null(strstr(plan_fault(&invariant, room, &good), "must not be split"));
    hgemm_desc_t gathered = desc;
    plan_t by_index = good;
    gathered.gather_a = &gathered;
    assert_non_null(strstr(plan_fault(&gathered, room, &good), "pointers and indices"));
    by_index.variant.indirect = 1;
    assert_non_null(strstr(plan_fault(&desc, room, &by_index), "pointers and indices"));
    assert_non_null(strstr(plan_fault(&gathered, room, &by_index), "must not be split"));
    by_index = whole, by_index.variant.indirect = 1;
    assert_null(plan_fault(&gathered, room, &by_index));
    hgemm_desc_t fused = desc; /* a wide tile with 2-byte alignment has no registers for an epilogue */
    plan_t wide = {.variant = {KERNEL_k5_256x256, 0, ACCESS_any, 0, 0}, 4, 4, 1, 2048, 0};
    fused.activation = HGEMM_ACTIVATION_RELU;
    assert_null(plan_fault(&desc, room, &wide));
    assert_non_null(strstr(plan_fault(&fused, room, &wide), "access"));
    const plan_t rung = {.variant = {KERNEL_k4_fastindex, 0, ACCESS_x16, 0, 0}, 12, 0, 4, 512, 0};
    assert_non_null(strstr(plan_fault(&desc, room, &rung), "cannot split k"));
}

static int asked; /* problems that find_measured was asked for */

static int find_measured(const void *entries, const hgemm_desc_t *p, plan_t *plan)
{
    const plan_t *entry = (const plan_t *)entries;
    asked++;
    *plan = *entry;
    return p->m != 999;
}

/* A measured plan goes before the model's, but not before a kernel that the caller names; where it cannot run, or
 * nothing was measured, the model chooses. */
static void measured_plans_go_first(void **state)
{
    (void)state;
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 300, 400, 2048);
    const plan_t entry = {.variant = {KERNEL_k5_64x64, 0, ACCESS_x16, 0, 0}, 35, 30, 4, 512, 0};
    const measured_t measured = {find_measured, &entry};
    machine_t machine = machine_t4;
    plan_t plan, modelled;
    machine.measured = &measured;
    asked = 0;
    assert_int_equal(select_plan(&desc, &machine_t4, machine.workspace_bytes, &modelled), HGEMM_STATUS_SUCCESS);
    assert_false(same_plan(&modelled, &entry));
    assert_int_equal(select_plan(&desc, &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(same_plan(&plan, &entry));
    assert_int_equal(asked, 1);
    assert_int_equal(select_plan(&desc, &machine, 0, &plan), HGEMM_STATUS_SUCCESS); /* no room for its sums */
    assert_int_equal(plan.splits, 1);
    desc.kernel = KERNEL_k1_tiled;
    assert_int_equal(select_plan(&desc, &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.variant.kernel, KERNEL_k1_tiled);
    assert_int_equal(asked, 2);
    desc.kernel = HGEMM_KERNEL_AUTO;
    desc.m = 999;
    assert_int_equal(select_plan(&desc, &machine_t4, machine.workspace_bytes, &modelled), HGEMM_STATUS_SUCCESS);
    assert_int_equal(select_plan(&desc, &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(same_plan(&plan, &modelled));
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
                    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
                    newer_uses[plan.variant.kernel]++;
                    const kernel_t *chosen = &kernel_table[plan.variant.kernel];
                    if (!chosen->blocks && chosen->info.threads == 128) /* slow where one of its blocks is alone */
                        assert_true(plan.tiles > newer.multiprocessors);
                }
    for (int64_t i = 3 * 2; i < 3 * 28; i++) { /* of floats: ever more rows, or columns */
        const int64_t some = INT64_C(1) << i / 6;
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, i / 3 % 2 ? 1024 : some, i / 3 % 2 ? some : 1024, 1024);
        plan_t plan;
        desc.type_a = desc.type_b = HGEMM_TYPE_F32, desc.accuracy = (hgemm_accuracy_t)(i % 3);
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        uses[plan.variant.kernel]++;
        assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        newer_uses[plan.variant.kernel]++;
    }
    for (int64_t m = 1; m <= 8192; m *= 2) { /* by packed weights */
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, m, 4096, 4096);
        hgemm_weights_t weights;
        plan_t plan;
        hgemm_weights_init(&weights);
        weights.n = weights.k = 4096, weights.group = 128;
        desc.op_b = HGEMM_OP_T, desc.weights = &weights, desc.type_b = HGEMM_TYPE_PACKED, desc.ldb = 0;
        assert_int_equal(select_for_t4(&desc, machine_t4.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        uses[plan.variant.kernel]++;
        assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
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
                    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
                    newer_uses[plan.variant.kernel]++;
                }
    for (int kernel = 1; kernel < KERNEL_END; kernel++) {
        int tuned = is_selectable(kernel);
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
        {2, 4096, 1, 0, 1, 0},  {2, 1024, 1, 1, 0, 0},  {16, 4096, 1, 1, 1, 0},
        {64, 4096, 1, 1, 1, 0}, {16, 4096, 0, 0, 1, 0}, {16, 4096, 1, 0, 1, HGEMM_FLAG_BATCH_INVARIANT},
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
        assert_null(plan_fault(&desc, machine_t4.workspace_bytes, &plan));
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
    assert_int_equal(select_plan(&desc, machine, machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    return estimate_clocks(&desc, machine, &plan);
}

static double clocks_of_choice(const hgemm_desc_t *desc, const machine_t *machine)
{
    plan_t plan;
    assert_int_equal(select_plan(desc, machine, machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    return estimate_clocks(desc, machine, &plan);
}

/* 49 tiles of 128x128 or 81 of 1025: a few more than a T4 has places for. Cut in parts these few take little; whole,
 * the T4 model needs 3 to 40% more time, of whichever kernel. */
static void few_tiles_too_many_are_better_cut(void **state)
{
    (void)state;
    const int64_t sides[] = {848, 1025};
    for (int i = 0; i < 2; i++) {
        const hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, sides[i], sides[i], sides[i]);
        const double least = 1.02 * clocks_of_choice(&desc, &machine_t4);
        variant_t variant;
        for (int kernel = 1; kernel < KERNEL_END; kernel++)
            if (is_selectable(kernel) && !is_thin(kernel) && kernel_table[kernel].blocks &&
                find_variant(&desc, kernel, 0, &variant) && clocks_of_kernel(desc, kernel, &machine_t4) < least)
                fail_msg("%s is as fast with k whole", kernel_table[kernel].info.name);
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
        clocks[is_given] = estimate_clocks(&desc, &machine_t4, &plan);
    }
    assert_true(clocks[0] > clocks[1] && clocks[0] < 1.15 * clocks[1]);
}

/* Parts of k that the cheapest plan of a kernel has. */
static int parts_of_k(const hgemm_desc_t *desc, int kernel, const machine_t *machine)
{
    enum { MOST = 400 };
    static priced_plan_t ranked[MOST];
    const int count = rank_plans(desc, machine, machine->workspace_bytes, ranked, MOST);
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
    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(kernel_table[plan.variant.kernel].newer_blocks > 1);
    desc = problem(HGEMM_ACCUMULATE_F16, 8192, 8192, 8192);
    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(kernel_table[plan.variant.kernel].newer_blocks, 1);
}

/* DRAM serves one stream per multiprocessor better than two: the longest sums leave a newer GPU's last four idle. */
static void long_sums_have_a_block_per_multiprocessor(void **state)
{
    (void)state;
    const machine_t newer = a_newer_gpu();
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 16, 1024, 500000);
    plan_t plan;
    assert_int_equal(select_plan(&desc, &newer, newer.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
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
        assert_int_equal(select_plan(&desc, machines[i], machines[i]->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(kernel_table[plan.variant.kernel].info.block_m, 16);
    }
}

/* A single row with weights whose rows are not aligned streams them by a thin kernel; tensor cores take what is
 * aligned, or runs along k, or has a second row. Dots are thin if they have four columns at most, or are so long that D
 * is nothing. On a T4 tensor cores take those of more columns, and of long rows what takes two passes over much that
 * the L2 cache does not keep, or whose weights run along k for long: the T4 model needs 10 to 150% more time for thin
 * ones. Of more columns than two a kernel whose warps have tiles takes what is left: 8x65536x8 in 8 us, not 13,
 * 32768x6x32 in 11, not 31. */
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
        {4, 32768, 64, HGEMM_OP_T, {KERNEL_NONE, KERNEL_NONE}},
        {32768, 8, 64, HGEMM_OP_N, {KERNEL_NONE, KERNEL_NONE}},
        {32768, 2, 64, HGEMM_OP_N, {KERNEL_thin_512x8, KERNEL_NONE}},
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
            assert_int_equal(select_plan(&desc, machines[i], machines[i]->workspace_bytes, &plan),
                             HGEMM_STATUS_SUCCESS);
            int chosen = is_thin(plan.variant.kernel) ? plan.variant.kernel : KERNEL_NONE;
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
            assert_int_equal(is_thin(plan.variant.kernel), 0);
            assert_in_range(plan.tiles * plan.splits, 3 * machine_t4.multiprocessors / 4, machine_t4.multiprocessors);
        }
}

/* The loop reads what follows a row of B for columns that B has not, but must not read past its end: rows so
 * short that a tile spans more than 16 of them are read element by element, or not at all. */
static void tiles_that_span_many_rows_read_no_chunks(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int64_t n, ldb;
        hgemm_status_t status;
        access_t access;
    } cases[] = {
        {"k5_256x256", 8, 8, HGEMM_STATUS_SUCCESS, ACCESS_any}, /* 248 columns, 31 rows */
        {"k5_256x256", 16, 16, HGEMM_STATUS_SUCCESS, ACCESS_x16},
        {"k5_256x256", 8, 16, HGEMM_STATUS_SUCCESS, ACCESS_x16},
        {"k5_256x256", 264, 264, HGEMM_STATUS_SUCCESS, ACCESS_x16},
        {"k5_64x128", 8, 8, HGEMM_STATUS_SUCCESS, ACCESS_x16},
        {"k5_64x128", 4, 4, HGEMM_STATUS_SUCCESS, ACCESS_any},
        {"k5_128x256", 8, 8, HGEMM_STATUS_NOT_SUPPORTED, ACCESS_any},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 512, cases[i].n, 512);
        plan_t plan;
        desc.ldb = cases[i].ldb;
        desc.kernel = hgemm_find_kernel(cases[i].kernel);
        assert_int_equal(select_for_t4(&desc, 0, &plan), cases[i].status);
        if (cases[i].status == HGEMM_STATUS_SUCCESS)
            assert_int_equal(plan.variant.access, cases[i].access);
        desc.op_b = HGEMM_OP_T, desc.ldb = 512; /* its rows are along k */
        assert_int_equal(select_for_t4(&desc, 0, &plan), HGEMM_STATUS_SUCCESS);
        assert_int_equal(plan.variant.access, ACCESS_x16);
    }
}

/* Data plays no part: pointers count by their alignment only, scalars by being zero. */
static void only_the_problem_counts(void **state)
{
    (void)state;
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 300, 400, 512);
    int first = 0, second = -1;
    assert_int_equal(hgemm_select(&desc, &first), HGEMM_STATUS_SUCCESS);
    desc.a = (void *)64, desc.b = (void *)64, desc.c = desc.d = (void *)64;
    desc.alpha = -3, desc.beta = 2;
    assert_int_equal(hgemm_select(&desc, &second), HGEMM_STATUS_SUCCESS);
    assert_int_equal(first, second);
    desc.a = (void *)65;
    assert_int_equal(hgemm_select(&desc, &second), HGEMM_STATUS_MISALIGNED_A);
    desc.alpha = 0;
    assert_int_equal(hgemm_select(&desc, &second), HGEMM_STATUS_SUCCESS);
    desc.beta = 1;
    assert_int_equal(hgemm_select(&desc, &second), HGEMM_STATUS_SUCCESS);
    assert_int_equal(second, 0);
    desc.batch = 0, desc.beta = 0;
    assert_int_equal(hgemm_select(&desc, &second), HGEMM_STATUS_SUCCESS);
    assert_int_equal(second, 0);
}

/* A grid has at most 2^31 - 1 blocks along x. */
static void grids_that_are_too_large_are_refused(void **state)
{
    (void)state;
    int kernel = 0;
    hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F16, 1 << 30, 1 << 30, 0);
    desc.beta = 2;
    assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_NOT_SUPPORTED);
    desc = problem(HGEMM_ACCUMULATE_F16, INT32_MAX, 1, 1);
    assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
    desc = problem(HGEMM_ACCUMULATE_F16, 1000, 1000, 1000); /* pointers may overlap here, so D's too */
    desc.batch = INT64_MAX;
    assert_int_equal(hgemm_select(&desc, &kernel), HGEMM_STATUS_SUCCESS);
    hgemm_kernel_info_t info = {.block_m = 64, .block_n = 64};
    assert_true(tile_count(&info, INT32_MAX, INT32_MAX) == INT64_C(1) << 50);
    assert_true(tile_count(&info, 64, 64) == 1 && tile_count(&info, 65, 129) == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_chosen_can_run),
        cmocka_unit_test(the_choice_leads_the_ranking),
        cmocka_unit_test(problems_of_one_class_have_one_plan),
        cmocka_unit_test(plans_that_are_found_have_no_fault),
        cmocka_unit_test(faults_of_plans_are_named),
        cmocka_unit_test(measured_plans_go_first),
        cmocka_unit_test(splits_cover_k_and_fit),
        cmocka_unit_test(copies_are_made_where_they_pay),
        cmocka_unit_test(copies_do_not_lengthen_other_rows),
        cmocka_unit_test(machines_follow_from_the_device),
        cmocka_unit_test(a_second_wave_has_its_own_time),
        cmocka_unit_test(a_named_kernel_takes_k_whole),
        cmocka_unit_test(layouts_are_treated_alike),
        cmocka_unit_test(every_tuned_kernel_has_its_use),
        cmocka_unit_test(experts_are_cut_where_a_t4_would_idle),
        cmocka_unit_test(tiles_grow_with_the_problem),
        cmocka_unit_test(few_tiles_too_many_are_better_cut),
        cmocka_unit_test(a_sample_is_priced_as_such),
        cmocka_unit_test(a_conversion_has_its_price),
        cmocka_unit_test(few_rows_have_few_sums_and_half_chunks_two_loads),
        cmocka_unit_test(short_blocks_are_not_alone),
        cmocka_unit_test(long_sums_have_a_block_per_multiprocessor),
        cmocka_unit_test(few_unaligned_rows_take_a_flat_tile),
        cmocka_unit_test(thin_kernels_have_their_products),
        cmocka_unit_test(small_dots_fill_a_t4),
        cmocka_unit_test(tiles_that_span_many_rows_read_no_chunks),
        cmocka_unit_test(only_the_problem_counts),
        cmocka_unit_test(grids_that_are_too_large_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
