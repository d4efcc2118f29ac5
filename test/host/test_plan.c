/* SPDX-License-Identifier: MIT */
/*
 * What holds of every plan, whichever is preferred: it can run, it fits the workspace, a named kernel is honoured, and
 * it depends on the problem alone. What is preferred is in test_price.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "problems.h"

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
        assert_int_equal(copies_needed(problem_of(&desc)), which);
        int count = rank_plans(problem_of(&desc), &machine_t4, machine_t4.workspace_bytes, ranked, MOST);
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
        hgemm_weights_t weights;
        hgemm_weights_init(&weights);
        weights.n = desc.n, weights.k = desc.k, weights.group = 128;
        if (kernel_table[kernel].takes_tables_only)
            weights.code = HGEMM_CODE_TABLE16;
        if (kernel_table[kernel].limits[LIMIT_weights])
            desc.op_b = HGEMM_OP_T, desc.weights = &weights, desc.type_b = HGEMM_TYPE_PACKED;
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
        const problem_class_t problem = class_of(problem_of(&desc)), of_other = class_of(problem_of(&other));
        assert_int_equal(class_compare(&problem, &of_other), 0);
        assert_true(class_hash(&problem) == class_hash(&of_other));
        assert_int_equal(select_plan(problem_of(&desc), machine, machine->workspace_bytes, &plan),
                         HGEMM_STATUS_SUCCESS);
        assert_int_equal(select_plan(problem_of(&other), machine, machine->workspace_bytes, &again),
                         HGEMM_STATUS_SUCCESS);
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
            const problem_class_t of_changed = class_of(problem_of(&changed[c]));
            const int is_same = class_compare(&problem, &of_changed) == 0;
            assert_false(is_same && c < ALWAYS);
            if (!is_same)
                continue;
            assert_int_equal(select_plan(problem_of(&changed[c]), machine, machine->workspace_bytes, &again),
                             HGEMM_STATUS_SUCCESS);
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
        int count = rank_plans(problem_of(&desc), machine, machine->workspace_bytes, ranked, MOST);
        assert_in_range(count, 1, MOST);
        assert_int_equal(select_plan(problem_of(&desc), machine, machine->workspace_bytes, &chosen),
                         HGEMM_STATUS_SUCCESS);
        assert_true(same_plan(&ranked[0].plan, &chosen));
        for (int j = 1; j < count; j++) {
            assert_true(ranked[j - 1].clocks <= ranked[j].clocks);
            for (int other = 0; other < j; other++)
                assert_false(same_plan(&ranked[other].plan, &ranked[j].plan));
        }
        for (int j = 0; j < count; j++)
            assert_true(estimate_clocks(problem_of(&desc), machine, &ranked[j].plan) == ranked[j].clocks);
        int fewer = rank_plans(problem_of(&desc), machine, machine->workspace_bytes, few, FEW);
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

        /* Asked for by name it is accepted; and others, an eighth of all in turn, are accepted or refused, never
         * replaced. */
        for (int asked = 1; asked <= hgemm_kernel_count(); asked++) {
            if (asked != kernel && asked % 8 != i % 8)
                continue;
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
        int count = rank_plans(problem_of(&desc), machine, workspace, ranked, MOST);
        for (int j = 0; j < count; j++) {
            const plan_t *plan = &ranked[j].plan;
            const char *fault = plan_fault(problem_of(&desc), workspace, plan);
            if (fault)
                fail_msg("%s", fault);
            int64_t needed = plan_workspace(problem_of(&desc), plan);
            assert_in_range(needed, 0, workspace);
            const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
            int64_t bytes = plan->splits == 1
                                ? 0
                                : (plan->tiles - plan->whole_tiles) * plan->splits * desc.batch * info->block_m *
                                      info->block_n * (info->accumulate == HGEMM_ACCUMULATE_F32 ? 4 : 2);
            bytes += plan->copies & FACTOR_A ? copy_of(problem_of(&desc), FACTOR_A).bytes : 0;
            bytes += plan->copies & FACTOR_B ? copy_of(problem_of(&desc), FACTOR_B).bytes : 0;
            assert_int_equal(needed, bytes ? bytes + HGEMM_WORKSPACE_TILES * 4 : 0);
            if (needed)
                assert_string_equal(plan_fault(problem_of(&desc), (size_t)needed - 1, plan),
                                    "the workspace is too small");
            split += plan->splits > 1, copied += plan->copies != 0;
        }
    }
    assert_true(split > 1000 && copied > 1000);
}

/* Selection draws from kernels for newer GPUs there alone, and from those for a T4 alone on a T4 alone. */
static void kernels_are_drawn_where_they_are_for(void **state)
{
    (void)state;
    enum { MOST = 40 };
    const machine_t newer = a_newer_gpu(), *const machines[] = {&machine_t4, &newer};
    int elsewhere[2] = {0};
    for (int on_newer = 0; on_newer < 2; on_newer++)
        for (int floats = 0; floats < 2; floats++)
            for (int64_t side = 256; side <= 4096; side *= 4) {
                hgemm_desc_t desc = problem(HGEMM_ACCUMULATE_F32, side, side, side);
                priced_plan_t ranked[MOST];
                desc.type_a = desc.type_b = floats ? HGEMM_TYPE_F32 : HGEMM_TYPE_F16;
                const int count =
                    rank_plans(problem_of(&desc), machines[on_newer], machines[on_newer]->most_workspace, ranked, MOST);
                for (int i = 0; i < count; i++) {
                    const kernel_t *kernel = &kernel_table[ranked[i].plan.variant.kernel];
                    assert_true(on_newer ? !kernel->is_for_t4_alone : kernel->blocks > 0);
                    elsewhere[on_newer] += on_newer ? kernel->blocks == 0 : kernel->is_for_t4_alone;
                }
            }
    assert_true(elsewhere[0] > 0 && elsewhere[1] > 0);
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
    assert_null(plan_fault(problem_of(&desc), room, &good));
    assert_null(plan_fault(problem_of(&desc), 0, &whole));
    assert_null(plan_fault(problem_of(&odd), room, &on_copy));
    plan_t general = whole; /* slower, and as correct */
    general.variant.access = ACCESS_far;
    assert_null(plan_fault(problem_of(&desc), 0, &general));
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
        const char *fault = plan_fault(problem_of(p), room, &plan);
        if (!fault || !strstr(fault, changes[i].words))
            fail_msg("change %d: %s, want %s", (int)i, fault ? fault : "no fault", changes[i].words);
    }
    plan_t plain = on_copy; /* whose rows end within a chunk, of which k1 to k4 read all or nothing */
    plain.variant.kernel = KERNEL_k4_fastindex;
    plain.tiles = plain.whole_tiles = problem_tiles(problem_of(&odd), &kernel_table[KERNEL_k4_fastindex].info);
    assert_non_null(strstr(plan_fault(problem_of(&odd), room, &plain), "does not run the problem"));
    hgemm_desc_t batch = desc;
    batch.batch = 4000; /* 4000 * 5 tiles */
    assert_non_null(strstr(plan_fault(problem_of(&batch), (size_t)1 << 40, &good), "counters"));
    hgemm_desc_t invariant = desc;
    invariant.flags = HGEMM_FLAG_BATCH_INVARIANT;
    assert_null(plan_fault(problem_of(&invariant), room, &whole));
    assert_non_null(strstr(plan_fault(problem_of(&invariant), room, &good), "must not be split"));
    hgemm_desc_t gathered = desc;
    plan_t by_index = good;
    gathered.gather_a = &gathered;
    assert_non_null(strstr(plan_fault(problem_of(&gathered), room, &good), "pointers and indices"));
    by_index.variant.indirect = 1;
    assert_non_null(strstr(plan_fault(problem_of(&desc), room, &by_index), "pointers and indices"));
    assert_non_null(strstr(plan_fault(problem_of(&gathered), room, &by_index), "must not be split"));
    by_index = whole, by_index.variant.indirect = 1;
    assert_null(plan_fault(problem_of(&gathered), room, &by_index));
    hgemm_desc_t fused = desc; /* a wide tile with 2-byte alignment has no registers for an epilogue */
    plan_t wide = {.variant = {KERNEL_k5_256x256, 0, ACCESS_any, 0, 0}, 4, 4, 1, 2048, 0};
    fused.activation = HGEMM_ACTIVATION_RELU;
    assert_null(plan_fault(problem_of(&desc), room, &wide));
    assert_non_null(strstr(plan_fault(problem_of(&fused), room, &wide), "access"));
    const plan_t rung = {.variant = {KERNEL_k4_fastindex, 0, ACCESS_x16, 0, 0}, 12, 0, 4, 512, 0};
    assert_non_null(strstr(plan_fault(problem_of(&desc), room, &rung), "cannot split k"));
}

static int asked; /* problems that find_measured was asked for */

static int find_measured(const void *entries, const problem_t *p, plan_t *plan)
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
    assert_int_equal(select_plan(problem_of(&desc), &machine_t4, machine.workspace_bytes, &modelled),
                     HGEMM_STATUS_SUCCESS);
    assert_false(same_plan(&modelled, &entry));
    assert_int_equal(select_plan(problem_of(&desc), &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(same_plan(&plan, &entry));
    assert_int_equal(asked, 1);
    assert_int_equal(select_plan(problem_of(&desc), &machine, 0, &plan),
                     HGEMM_STATUS_SUCCESS); /* no room for its sums */
    assert_int_equal(plan.splits, 1);
    desc.kernel = KERNEL_k1_tiled;
    assert_int_equal(select_plan(problem_of(&desc), &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_int_equal(plan.variant.kernel, KERNEL_k1_tiled);
    assert_int_equal(asked, 2);
    desc.kernel = HGEMM_KERNEL_AUTO;
    desc.m = 999;
    assert_int_equal(select_plan(problem_of(&desc), &machine_t4, machine.workspace_bytes, &modelled),
                     HGEMM_STATUS_SUCCESS);
    assert_int_equal(select_plan(problem_of(&desc), &machine, machine.workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    assert_true(same_plan(&plan, &modelled));
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
        cmocka_unit_test(kernels_are_drawn_where_they_are_for),
        cmocka_unit_test(faults_of_plans_are_named),
        cmocka_unit_test(measured_plans_go_first),
        cmocka_unit_test(splits_cover_k_and_fit),
        cmocka_unit_test(copies_do_not_lengthen_other_rows),
        cmocka_unit_test(machines_follow_from_the_device),
        cmocka_unit_test(a_named_kernel_takes_k_whole),
        cmocka_unit_test(layouts_are_treated_alike),
        cmocka_unit_test(tiles_that_span_many_rows_read_no_chunks),
        cmocka_unit_test(only_the_problem_counts),
        cmocka_unit_test(grids_that_are_too_large_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
