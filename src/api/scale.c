/* SPDX-License-Identifier: MIT */
#include "api/scale.h"

#include "problem/weights.h"

/* The matrices of an operand as the kernel reads them, all of their elements. Those of a batch that follow each other
 * are one with more rows. */
static scale_operand_t scale_operand(int64_t lines, int64_t width, const void *from, int64_t ld, int64_t batch,
                                     int64_t stride, float *scale)
{
    const int is_one = batch > 1 && stride % lines == 0 && stride / lines == ld && lines <= INT32_MAX / batch;
    return (scale_operand_t){.from = from,
                             .scale = scale,
                             .ld = ld,
                             .stride = is_one ? 0 : stride,
                             .batch = is_one || stride == 0 ? 1 : batch,
                             .lines = (int)(is_one ? lines * batch : lines),
                             .width = (int)width};
}

/* Types that have scales are all of this one, for which the kernel is made. */
static double bytes_of(const scale_operand_t *x)
{
    return (double)type_bytes(HGEMM_TYPE_BF16, 1) * x->lines * x->width * (double)x->batch;
}

static int64_t segments_of(const scale_operand_t *x)
{
    return ceil_div(x->width, HGEMM_SCALE_SEGMENT);
}

/* Leaves a sample: of so many segments that follow each other, in a row and in a column, one. Where rows are short,
 * whole rows are left out. */
static void take_sample(scale_operand_t *x)
{
    int log_every = 0;
    while (bytes_of(x) / (double)(INT64_C(2) << log_every) >= SAMPLE_BYTES && INT64_C(2) << log_every <= x->lines)
        log_every++;
    x->room = log_every ? HGEMM_SCALE_SAMPLE_ROOM : 0;
    for (; INT64_C(1) << log_every > segments_of(x); log_every--) {
        x->lines = (int)ceil_div(x->lines, 2);
        x->ld *= 2;
    }
    x->log_every = log_every;
}

/* Threads stand side by side along what is read of a row, as far as a block has them. */
static void spread_threads(scale_operand_t *x)
{
    const int64_t sampled = ceil_div(segments_of(x), INT64_C(1) << x->log_every) * HGEMM_SCALE_SEGMENT;
    const int64_t width = x->log_every ? sampled : x->width;
    while (INT64_C(8) << x->log_across < width && 1 << x->log_across < HGEMM_SCALE_THREADS)
        x->log_across++;
    /* A few rows go to threads of their own: what is usual shows in theirs. */
    while (x->log_across > 0 && x->lines <= HGEMM_SCALE_THREADS / 32 && HGEMM_SCALE_THREADS >> x->log_across < x->lines)
        x->log_across--;
}

/* Blocks for one of `count` operands: so many for a matrix that each has several rows for a thread, as many for further
 * matrices of a batch, no more than run at one time, and one where they have no place to meet. */
static unsigned share_blocks(const hgemm_handle_t handle, scale_operand_t *x, unsigned count)
{
    enum { ROWS = 4, RESIDENT = 3 }; /* RESIDENT: of a multiprocessor, by their registers */
    const int64_t rows = HGEMM_SCALE_THREADS >> x->log_across;
    int64_t each = ceil_div(x->lines, ROWS * rows), most = handle->machine.multiprocessors * RESIDENT / (int64_t)count;
    most = most < HGEMM_SCALE_BLOCKS ? most : HGEMM_SCALE_BLOCKS;
    if (most < 1 || handle->workspace_bytes < HGEMM_WORKSPACE_TILES * 4 + (size_t)scale_bytes(FACTOR_A))
        most = 1;
    each = each < 1 ? 1 : each < most ? each : most;
    x->blocks = (unsigned)each;
    return (unsigned)(x->batch < most / each ? x->batch * each : most / each * each);
}

/* NULL where there is no workspace: a lone block needs no place to meet others. */
static scale_space_t *scale_space(const hgemm_handle_t handle)
{
    if (!handle->workspace)
        return NULL;
    return (scale_space_t *)((char *)handle->workspace + handle->workspace_bytes) - 1;
}

static hgemm_status_t launch_scale(hgemm_handle_t handle, scale_args_t *args, unsigned count)
{
    scale_space_t *space = scale_space(handle);
    args->operands = count;
    for (unsigned i = 0; i < count; i++) {
        spread_threads(&args->operand[i]);
        const unsigned own = share_blocks(handle, &args->operand[i], count);
        args->blocks = args->blocks > own ? args->blocks : own;
        args->operand[i].partial = space ? space->partial[i] : NULL;
        args->operand[i].arrived =
            space ? (unsigned *)handle->workspace + i : NULL; /* counters of split tiles, before any is split */
    }
    launch_t launch = {
        .grid = {args->blocks, 1, count},
        .threads = HGEMM_SCALE_THREADS,
        .shared_bytes = HGEMM_SCALE_THREADS / 32 * 4,
        .args = args,
        .args_size = sizeof *args,
    };
    hgemm_status_t status = handle->device->ops->launch(handle->device, handle->stream, handle->scale, &launch);
    if (status != HGEMM_STATUS_SUCCESS && (args->blocks > 1 || args->found))
        handle_forget_parts(handle);
    return status;
}

/* The operands whose scales are to be found; returns how many. */
static unsigned list_operands(int scales, const problem_t *p, scale_space_t *space, scale_operand_t x[2])
{
    unsigned count = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which <<= 1) {
        const factor_t *f = factor_of(p, which);
        if (scales & which)
            x[count++] = scale_operand(f->lines, f->width, f->data, f->ld, p->batch, f->stride,
                                       space ? &space->scale[which == FACTOR_B] : NULL);
    }
    return count;
}

hgemm_status_t find_scales(hgemm_handle_t handle, const plan_t *plan, const problem_t *p, search_t search)
{
    scale_space_t *space = scale_space(handle);
    scale_args_t args = {.found = is_once(p) ? NULL : &space->found,
                         .finished = (unsigned *)handle->workspace + 2,
                         .is_sample = search == SEARCH_SAMPLE,
                         .only_after = search == SEARCH_AFTER_OVERFLOW ? &space->found.overflow : NULL};
    const unsigned count = list_operands(plan->scales, p, space, args.operand);
    for (unsigned i = 0; i < count && search == SEARCH_SAMPLE; i++)
        take_sample(&args.operand[i]);
    return launch_scale(handle, &args, count);
}

scales_t scales_of(const hgemm_handle_t handle, const plan_t *plan, const problem_t *p, search_t search)
{
    scale_space_t *space = scale_space(handle);
    return (scales_t){.a = p->a.scale,
                      .b = p->b.scale,
                      .a_pointer = plan->scales & FACTOR_A ? &space->scale[0] : p->a.scale_pointer,
                      .b_pointer = plan->scales & FACTOR_B ? &space->scale[1] : p->b.scale_pointer,
                      .overflow = search == SEARCH_SAMPLE ? &space->found.overflow : NULL,
                      .only_after = search == SEARCH_AFTER_OVERFLOW ? &space->found.again : NULL};
}

hgemm_status_t recompute(hgemm_handle_t handle, const problem_t *p, const kernel_args_t *product, int64_t matrices)
{
    enum { RESIDENT = 2 }; /* blocks of a multiprocessor */
    const int64_t tiles = ceil_div(p->m, HGEMM_RECOMPUTE_TILE) * ceil_div(p->n, HGEMM_RECOMPUTE_TILE);
    const int64_t most = (int64_t)handle->machine.multiprocessors * RESIDENT;
    recompute_args_t args = {.product = *product,
                             .a_rows = p->a.is_along_k ? p->a.ld : 1,
                             .a_ks = p->a.is_along_k ? 1 : p->a.ld,
                             .b_columns = !p->b.is_along_k ? 1 : p->b.ld,
                             .b_ks = !p->b.is_along_k ? p->b.ld : 1,
                             .batch = matrices,
                             .only_after = &scale_space(handle)->found.outlier,
                             .packed = p->packed};
    launch_t launch = {
        .grid = {(unsigned)(matrices < most / tiles ? matrices * tiles : most), 1, 1},
        .threads = HGEMM_RECOMPUTE_THREADS,
        .shared_bytes = HGEMM_RECOMPUTE_SHARED,
        .args = &args,
        .args_size = sizeof args,
    };
    return handle->device->ops->launch(handle->device, handle->stream, handle->recompute, &launch);
}

hgemm_status_t find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix, int64_t ld,
                          float *scale)
{
    scale_args_t args = {.operand[0] = scale_operand(lines, width, matrix, ld, 1, 0, scale)};
    hgemm_status_t status = handle_load_scale(handle);
    return status == HGEMM_STATUS_SUCCESS ? launch_scale(handle, &args, 1) : status;
}
