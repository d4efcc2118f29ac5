/* SPDX-License-Identifier: MIT */
#include "gemm_run.h"

#include "gemm_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
fail(char *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, CASE_WHY, format, arguments);
    va_end(arguments);
    return 0;
}

/* ---- Which kernels cover a case: the test's own reading of the contract ------------------------- */

int64_t far_distance(const hgemm_kernel_info_t *info)
{
    int64_t lines = info->block_m > info->block_n ? info->block_m : info->block_n;
    lines = lines > info->block_k ? lines : info->block_k;
    return (INT64_C(1) << 31) / lines;
}

/* Whether groups of `width` elements along the rows of an operand are aligned and whole. */
static int has_aligned(const operands_t *o, int which, int width)
{
    const case_t *c = o->c;
    const matrix_t *x = &o->x[which];
    if (x->width % width || x->ld % width)
        return 0;
    if (c->batch_mode == HGEMM_BATCH_POINTERS)
        return c->alignment >= x->element * width;
    int has_strides = c->batch != 1 && (which == B || c->batch_mode != HGEMM_BATCH_GROUPED);
    return c->offset[which] % width == 0 && (!has_strides || x->stride % width == 0);
}

/* Where A and B are not read, they may be of any type. */
static factors_t case_factors(const case_t *c)
{
    return case_reads_factors(c) ? factors_of((hgemm_type_t)c->type[A], (hgemm_type_t)c->type[B]) : FACTORS_halves;
}

/* Which access a kernel needs, on the operands or on copies of some; ACCESS_COUNT where none will do. Copies are
 * aligned, and their rows are long. A kernel with one variant for all needs none. */
static access_t needed_access(const operands_t *o, int kernel, int copies)
{
    const case_t *c = o->c;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int row_major = c->layout == HGEMM_ROW_MAJOR, is_indirect = case_is_indirect(c);
    const int is_turned = !row_major && !case_has_rows_that_stay(c); /* the kernel computes D^T */
    int overshoots = 0, by_m = row_major == (c->op_a == HGEMM_OP_T);
    const int is_mixed = case_reads_factors(c) && case_has_floats(c) && c->type[A] != c->type[B];
    if (copies && kernel_table[kernel].is_plain)
        return ACCESS_COUNT; /* the rows of a copy may end within a chunk */
    if (kernel_table[kernel].access == ACCESS_one)
        return (copies != 0) != is_mixed ? ACCESS_COUNT : ACCESS_x16;
    if (!case_reads_factors(c))
        return ACCESS_x16;
    for (int which = A; which <= B; which++) {
        int by_k = row_major == ((which == A ? c->op_a : c->op_b) == HGEMM_OP_N); /* rows of A are then along k */
        int64_t block = (which == A) != is_turned ? info->block_m : info->block_n, extent = which == A ? c->m : c->n;
        if (copies & (which == A ? FACTOR_A : FACTOR_B))
            continue;
        if (o->x[which].ld >= far_distance(info))
            return ACCESS_far;
        if ((which == A ? !by_k : by_k) && (block - extent % block) % block > 16 * o->x[which].ld)
            overshoots = 1; /* a tile's missing columns reach too far */
    }
    if (copies)
        return overshoots && !case_has_floats(c) ? ACCESS_COUNT : ACCESS_x16;
    if (is_mixed)
        return ACCESS_far;
    access_t access = ACCESS_any;
    if (case_has_floats(c) && has_aligned(o, A, 4) && has_aligned(o, B, 4)) /* columns are clamped */
        access = ACCESS_x16;
    for (int width = 4; width <= 8 && !overshoots && !case_has_floats(c); width *= 2)
        if (has_aligned(o, A, width) && has_aligned(o, B, width))
            access = width == 8 ? ACCESS_x16 : ACCESS_x8;
    /* Groups and gathered rows may begin at any column of a transposed A, and gathers come in whole chunks or single
     * elements. */
    if (is_indirect && (access != ACCESS_x16 || (by_m && (c->batch_mode == HGEMM_BATCH_GROUPED || c->gather))))
        access = c->gather ? ACCESS_far : ACCESS_any;
    return access_from(access, is_indirect, case_factors(c));
}

int has_variant(const case_t *c, int kernel, access_t access)
{
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int row_major = c->layout == HGEMM_ROW_MAJOR;
    const int is_of_floats = case_factors(c) == FACTORS_f32;
    int op = 2 * (int)c->op_a + (int)c->op_b;
    if (!row_major)
        op = case_has_rows_that_stay(c) ? 3 - op : 2 * (int)c->op_b + (int)c->op_a;
    if (case_is_fused(c) && !HGEMM_CAN_FUSE(info->block_m, info->block_n, access >= ACCESS_any))
        return 0;
    if (c->invariant && (!c->kernel || is_of_floats) && kernel != hgemm_find_kernel("single_128x64") &&
        !(info->block_k == 64 && info->warp_k == 32))
        return 0;
    if (is_of_floats && (c->invariant ? HGEMM_ACCURACY_F32 : c->accuracy) < (int64_t)kernel_table[kernel].accuracy)
        return 0;
    int sums_fit = info->accumulate == (hgemm_accumulate_t)c->accumulate ||
                   (info->stages == 0 && !kernel_table[kernel].limits[LIMIT_f32]);
    const variant_t variant = {kernel, variant_op(kernel, op), access, case_is_indirect(c), case_factors(c)};
    return sums_fit && access < ACCESS_COUNT && variant_exists(variant) && variant_image(variant);
}

int is_drawn_from(hgemm_handle_t handle, int kernel)
{
    const kernel_t *row = &kernel_table[kernel];
    return !kernel_table[kernel].is_plain && (row->blocks > 0 || handle->machine.is_newer);
}

/* What no kernel does. */
static int is_beyond_all(const case_t *c)
{
    const factors_t factors = case_factors(c);
    if (factors == FACTORS_COUNT)
        return 1;
    const int finds = !c->scaled && (c->batch_mode != HGEMM_BATCH_STRIDED || c->gather || c->invariant);
    if (factors == FACTORS_f32)
        return c->accumulate == HGEMM_ACCUMULATE_F16;
    return have_scales(factors) && (c->accumulate == HGEMM_ACCUMULATE_F16 || finds);
}

/* Whether D stays as it is: it has no element, or is C and nothing else goes into it. */
static int is_idle(const case_t *c)
{
    return !case_has_output(c) || (!case_reads_factors(c) && c->in_place && c->beta == 1 && !c->beta_device &&
                                   !c->bias && !c->gate && !c->activation);
}

/* Whether a rung that is there to be read writes such a D. */
static int is_plain_case(const operands_t *o)
{
    const case_t *c = o->c;
    return !case_is_fused(c) && has_aligned(o, c->in_place ? C : D, 8) && (c->beta == 0 || has_aligned(o, C, 8));
}

/* Which cases a named kernel covers, and automatic selection: that may make copies by itself. */
static int is_covered(hgemm_handle_t handle, const operands_t *o, int copies)
{
    const case_t *c = o->c;
    if (is_idle(c))
        return 1;
    if (is_beyond_all(c))
        return 0;
    if (c->kernel) {
        const int kernel = (int)c->kernel;
        if ((kernel_table[kernel].is_plain && !is_plain_case(o)))
            return 0;
        access_t access = copies ? needed_access(o, kernel, copies) : ACCESS_COUNT;
        return has_variant(c, kernel, access == ACCESS_COUNT ? needed_access(o, kernel, 0) : access);
    }
    const int width = case_has_floats(c) ? 4 : 8, is_mixed = case_has_floats(c) && c->type[A] != c->type[B];
    int unaligned = (has_aligned(o, A, width) && !(is_mixed && c->type[A] != HGEMM_TYPE_F32) ? 0 : FACTOR_A) |
                    (has_aligned(o, B, width) && !(is_mixed && c->type[B] != HGEMM_TYPE_F32) ? 0 : FACTOR_B);
    int can_copy = case_reads_factors(c) && c->batch == 1 && !case_is_indirect(c) &&
                   (is_mixed || !(has_aligned(o, A, 4) && has_aligned(o, B, 4)));
    for (int kernel = 1; kernel < KERNEL_END; kernel++)
        if (is_drawn_from(handle, kernel) &&
            (has_variant(c, kernel, needed_access(o, kernel, 0)) ||
             ((can_copy || copies) && has_variant(c, kernel, needed_access(o, kernel, unaligned)))))
            return 1;
    return 0;
}

/* ---- The call ---------------------------------------------------------------------------------- */

/* A plan on copies, of a row-major call: that of a problem whose operands are aligned. Where a kernel wants no such,
 * since it reaches too far beyond an operand that is not copied, the status is not success, or the plan has no copies.
 */
static hgemm_status_t select_on_copies(hgemm_handle_t handle, const hgemm_desc_t *desc, const problem_t *p, int copies,
                                       plan_t *plan)
{
    if (kernel_table[p->kernel].is_plain)
        return HGEMM_STATUS_NOT_SUPPORTED;
    hgemm_desc_t like = *desc;
    like.m = (desc->m + 7) & -8, like.n = (desc->n + 7) & -8, like.k = (desc->k + 7) & -8;
    if (copies & FACTOR_A)
        like.a = NULL, like.lda = copy_of(p, FACTOR_A).ld, like.type_a = copied_type(p, desc->type_a);
    if (copies & FACTOR_B)
        like.b = NULL, like.ldb = copy_of(p, FACTOR_B).ld, like.type_b = copied_type(p, desc->type_b);
    const problem_t aligned = normalise(&like);
    if (aligned.op != p->op) /* it has a lone column, which lies along */
        return HGEMM_STATUS_NOT_SUPPORTED;
    hgemm_status_t status = select_plan(&aligned, &handle->machine, handle->workspace_bytes / 2, plan);
    if (status == HGEMM_STATUS_SUCCESS && plan->variant.access == ACCESS_x16)
        plan->copies = copies;
    return status;
}

/* Copies and tails are not asked for through the library's interface, and what is worth one is too large for
 * the emulator. */
static hgemm_status_t run(hgemm_handle_t handle, const operands_t *o, int copies)
{
    const case_t *c = o->c;
    plan_t plan;
    if (is_beyond_all(c) || (!copies && !(c->tail && case_has_output(c) && case_reads_factors(c))))
        return hgemm_run_desc(handle, &o->desc);
    const problem_t p = normalise(&o->desc);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    if (!copies || select_on_copies(handle, &o->desc, &p, copies, &plan) != HGEMM_STATUS_SUCCESS || !plan.copies)
        status = select_plan(&p, &handle->machine, handle->workspace_bytes / 2, &plan);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    const hgemm_kernel_info_t *info = &kernel_table[plan.variant.kernel].info;
    const int64_t block_k = info->block_k, steps = (c->k + block_k - 1) / block_k;
    if (c->tail && steps > 1) {
        plan_t tail = plan;
        tail.whole_tiles = plan.tiles / 2;
        tail.k_split = (steps * c->tail + 3) / 4 * block_k;
        tail.splits = (int)((c->k + tail.k_split - 1) / tail.k_split);
        if (!plan_fault(&p, handle->workspace_bytes, &tail))
            plan = tail;
    }
    return handle_launch(handle, &p, &plan);
}

/* ---- The check --------------------------------------------------------------------------------- */

enum { FEW = 128 }; /* of fewer errors one mean in some 100,000 is more than it should be */

static int check_values(operands_t *o, char *why)
{
    const case_t *c = o->c;
    const buffer_t *b = operands_of_d(o);
    const int written = c->in_place ? C : D;
    int64_t wrong = 0;
    double squares = 0; /* of the errors */
    char first[256] = "";
    reference_t r;
    reference_create(&r, o);
    for (int64_t e = 0; e < o->row_count * c->n; e++) {
        const product_row_t *row = &o->rows[e / c->n];
        const unsigned char *at = b->after + operands_at(o, written, row->shared, row->d, e % c->n);
        double got = value_of(o->x[D].type, at);
        squares += pow(got - r.value[e], 2);
        if (reference_agrees(c, at, r.value[e], r.error[e]) || wrong++)
            continue;
        snprintf(first, sizeof first,
                 "matrix %" PRId64 " element (%" PRId64 ", %" PRId64 ") is %.9g, want %.9g within %.3g", row->shared,
                 row->d, e % c->n, got, r.value[e], reference_is_exact(c) ? 0.0 : r.error[e]);
    }
    reference_destroy(&r);
    if (wrong)
        return fail(why, "%" PRId64 " wrong, the first: %s", wrong, first);
    /* Where operands share a matrix, or rows of A repeat, errors do, too. */
    double count = (double)(o->row_count * c->n), distinct = count;
    if (o->x[A].batch == 1 && o->x[B].batch == 1 && c->batch > 1 && c->batch_mode != HGEMM_BATCH_GROUPED)
        distinct /= (double)c->batch;
    if (c->gather)
        distinct /= 3;
    double deviation = sqrt(squares / count), most = reference_deviation(c, distinct);
    if (distinct >= FEW && c->fill == BOUNDED && !(deviation <= most))
        return fail(why, "errors have a root mean square of %.3g, want %.3g at most", deviation, most);
    return 1;
}

/* Whether elements of D may depend on other rows of A, or other columns of B, than their own: where scales are found
 * for all of an operand, or for a row and a column of floats together. */
static int may_depend_on_others(const case_t *c, int which)
{
    const factors_t factors = case_factors(c);
    if (have_scales(factors))
        return !c->scaled;
    return factors == FACTORS_f32 && !(c->invariant && which == A);
}

/* The same bits again, whatever other elements are made of. */
static int check_again(hgemm_handle_t handle, operands_t *o, int copies, char *why)
{
    const case_t *c = o->c;
    const buffer_t *d = operands_of_d(o);
    rng_t rng = {c->seed + 1};
    unsigned char *once = must(malloc(d->bytes)), *stays = must(malloc((size_t)(o->row_count + c->n)));
    const staying_t staying = {stays, stays + o->row_count, may_depend_on_others(c, A), may_depend_on_others(c, B)};
    memcpy(once, d->after, d->bytes);
    for (int64_t i = 0; i < o->row_count + c->n; i++)
        stays[i] = rng_between(&rng, 0, 3) != 0;
    operands_redraw_others(o, &staying, &rng);
    operands_upload(o, handle);
    hgemm_status_t status = run(handle, o, copies);
    operands_download(o, handle);
    int is_right = 1;
    if (status != HGEMM_STATUS_SUCCESS)
        is_right = fail(why, "the second run: %s (%s)", hgemm_status_name(status), hgemm_error_detail(handle));
    for (int64_t e = 0; is_right && e < o->row_count * c->n; e++) {
        const product_row_t *row = &o->rows[e / c->n];
        const size_t at = operands_at(o, c->in_place ? C : D, row->shared, row->d, e % c->n);
        if (staying.rows[e / c->n] && staying.columns[e % c->n] &&
            memcmp(once + at, d->after + at, (size_t)o->x[D].element) != 0)
            is_right = fail(
                why, "among other neighbours matrix %" PRId64 " element (%" PRId64 ", %" PRId64 ") is %.9g, was %.9g",
                row->shared, row->d, e % c->n, value_of(o->x[D].type, d->after + at),
                value_of(o->x[D].type, once + at));
    }
    free(once);
    free(stays);
    return is_right;
}

static int check(hgemm_handle_t handle, operands_t *o, outcome_t *outcome)
{
    const case_t *c = o->c;
    char *why = outcome->why;
    const problem_t p = normalise(&o->desc);
    const int copies = c->copies && case_has_output(c) && case_reads_factors(c) ? copies_needed(&p) : 0;
    const int covered = is_covered(handle, o, copies);
    char words[200];
    operands_upload(o, handle);
    hgemm_status_t status = run(handle, o, copies);
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_synchronize(handle);
    if (status != (covered ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_NOT_SUPPORTED)) {
        hgemm_device_info_t info;
        fail(why, "%s (%s)", hgemm_status_name(status), hgemm_error_detail(handle));
        outcome->device_is_lost = status == HGEMM_STATUS_DEVICE_ERROR &&
                                  hgemm_get_device_info(handle, &info) == HGEMM_STATUS_SUCCESS && !info.is_emulated;
        return 0;
    }
    operands_download(o, handle);
    if (operands_damage(o, covered && !is_idle(c), words))
        return fail(why, "%s", words);
    if (!covered || is_idle(c))
        return 1;
    outcome->is_computed = 1;
    return check_values(o, why) && check_again(handle, o, copies, why);
}

void case_run(hgemm_handle_t handle, const case_t *c, outcome_t *outcome)
{
    operands_t o;
    *outcome = (outcome_t){0};
    operands_create(&o, c, handle);
    outcome->is_right = check(handle, &o, outcome);
    if (!outcome->device_is_lost)
        operands_destroy(&o, handle);
}
