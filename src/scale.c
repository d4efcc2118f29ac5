/* SPDX-License-Identifier: MIT */
#include "scale.h"

/* What the kernel scale does for `batch` matrices, of which a block reads some rows. */
static scale_operand_t scale_operand(int64_t lines, int64_t width, const void *from, int64_t ld, int64_t batch,
                                     int64_t stride, float *scale)
{
    int log_across = 0;
    while (INT64_C(8) << log_across < width && 1 << log_across < HGEMM_SCALE_THREADS)
        log_across++;
    return (scale_operand_t){.from = from,
                             .scale = scale,
                             .ld = ld,
                             .stride = stride,
                             .batch = stride == 0 ? 1 : batch,
                             .lines = (int)lines,
                             .width = (int)width,
                             .log_across = log_across};
}

/* Blocks that share one of `count` operands: so many that each has several rows for a thread, no more than run at one
 * time, and one where they have no place to meet. */
static unsigned scale_blocks(const hgemm_handle_t handle, const scale_operand_t *x, unsigned count)
{
    enum { ROWS = 4, RESIDENT = 3 }; /* RESIDENT: of a multiprocessor, by their registers */
    const int64_t rows = HGEMM_SCALE_THREADS >> x->log_across, blocks = ceil_div(x->lines, ROWS * rows);
    int64_t most = handle->machine.multiprocessors * RESIDENT / (int64_t)count;
    most = most < HGEMM_SCALE_BLOCKS ? most : HGEMM_SCALE_BLOCKS;
    if (handle->workspace_bytes < HGEMM_WORKSPACE_TILES * 4 + (size_t)scale_bytes(COPY_A))
        most = 1;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
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
    for (unsigned i = 0; i < count; i++) {
        const unsigned own = scale_blocks(handle, &args->operand[i], count);
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
    if (status != HGEMM_STATUS_SUCCESS && args->blocks > 1)
        handle_forget_parts(handle);
    return status;
}

hgemm_status_t find_scales(hgemm_handle_t handle, const plan_t *plan, hgemm_desc_t *p)
{
    scale_args_t args = {0};
    scale_space_t *space = scale_space(handle);
    unsigned count = 0;
    if (plan->scales & COPY_A) {
        const copy_t a = copy_of(p, COPY_A);
        p->scale_a_pointer = &space->scale[0];
        args.operand[count++] = scale_operand(a.lines, a.width, p->a, p->lda, p->batch, p->stride_a, &space->scale[0]);
    }
    if (plan->scales & COPY_B) {
        const copy_t b = copy_of(p, COPY_B);
        p->scale_b_pointer = &space->scale[1];
        args.operand[count++] = scale_operand(b.lines, b.width, p->b, p->ldb, p->batch, p->stride_b, &space->scale[1]);
    }
    return launch_scale(handle, &args, count);
}

hgemm_status_t find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix, int64_t ld,
                          float *scale)
{
    scale_args_t args = {.operand[0] = scale_operand(lines, width, matrix, ld, 1, 0, scale)};
    hgemm_status_t status = handle_load_scale(handle);
    return status == HGEMM_STATUS_SUCCESS ? launch_scale(handle, &args, 1) : status;
}
