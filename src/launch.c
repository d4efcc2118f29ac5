/* SPDX-License-Identifier: MIT */
/* What is enqueued for a plan: copies of operands, if it makes them, and the kernel's launches with their arguments. */
#include "handle.h"

/* Matrix number `index` of a batch. */
static void *matrix(const void *data, hgemm_type_t type, int64_t index, int64_t stride)
{
    return (void *)((uintptr_t)data + (uintptr_t)type_bytes(type) * ((uintptr_t)index * (uintptr_t)stride));
}

/* Enqueues the copies that the plan has, to the end of the workspace, and lets the problem speak of
 * them. */
static hgemm_status_t realign(hgemm_handle_t handle, const plan_t *plan, hgemm_desc_t *p)
{
    realign_args_t args = {0};
    char *end = (char *)handle->workspace + handle->workspace_bytes;
    int64_t chunks = 0;
    unsigned count = 0;
    for (int which = COPY_A; which <= COPY_B; which <<= 1) {
        if (!(plan->copies & which))
            continue;
        copy_t copy = copy_of(p, which);
        const void **data = which == COPY_A ? &p->a : &p->b;
        int64_t *ld = which == COPY_A ? &p->lda : &p->ldb, own = copy.lines * (copy.ld / 8);
        end -= copy.bytes;
        args.operand[count++] = (realign_operand_t){
            *data, end, *ld, copy.ld, (int)copy.lines, (int)copy.width, HGEMM_RECIPROCAL((unsigned)(copy.ld / 8))};
        *data = end, *ld = copy.ld;
        chunks = chunks > own ? chunks : own;
    }
    launch_t launch = {
        .grid = {(unsigned)((chunks + HGEMM_REALIGN_THREADS - 1) / HGEMM_REALIGN_THREADS), 1, count},
        .threads = HGEMM_REALIGN_THREADS,
        .args = &args,
        .args_size = sizeof args,
    };
    return handle->device->ops->launch(handle->device, handle->stream, handle->realign, &launch);
}

/* What the kernel is told of a fused epilogue; 0 if the call has nothing of it. */
static unsigned fused_bits(const hgemm_desc_t *p)
{
    unsigned bits = (unsigned)p->type_c << HGEMM_FUSED_TYPE_C | (unsigned)p->type_d << HGEMM_FUSED_TYPE_D |
                    (unsigned)p->activation << HGEMM_FUSED_ACTIVATION;
    if (p->bias)
        bits |= (unsigned)p->type_bias << HGEMM_FUSED_TYPE_BIAS | HGEMM_FUSED |
                (p->bias_mode == HGEMM_BIAS_PER_ROW ? HGEMM_FUSED_BIAS_PER_ROW : 0);
    if (p->gate)
        bits |= (unsigned)p->type_gate << HGEMM_FUSED_TYPE_GATE | HGEMM_FUSED;
    if (p->scatter_d)
        bits |= HGEMM_FUSED | (p->index_type == HGEMM_INDEX_I64 ? HGEMM_FUSED_INDEX_64 : 0);
    return bits || p->alpha_pointer || p->beta_pointer ? bits | HGEMM_FUSED : 0;
}

/* blockIdx.x counts tiles and parts of tiles, blockIdx.y the batch, in as many launches as the limit
 * of blockIdx.y asks for. */
hgemm_status_t handle_launch(hgemm_handle_t handle, const hgemm_desc_t *row_major, const plan_t *plan)
{
    const hgemm_kernel_info_t *kernel = &kernel_table[plan->variant.kernel].info;
    const int64_t group = kernel_walk(plan->variant.kernel, !handle->machine.is_newer).group;
    const int64_t rows = (row_major->m + kernel->block_m - 1) / kernel->block_m, columns = plan->tiles / rows;
    const int64_t split_tiles = plan->tiles - plan->whole_tiles;
    hgemm_desc_t problem = *row_major;
    const hgemm_desc_t *p = &problem;
    hgemm_status_t status = handle_load(handle, plan);
    if (status == HGEMM_STATUS_SUCCESS && plan->copies)
        status = realign(handle, plan, &problem);

    for (int64_t done = 0; status == HGEMM_STATUS_SUCCESS && done < p->batch; done += MOST_GRID_Y) {
        int64_t rest = p->batch - done;
        kernel_args_t args = {
            .a = matrix(p->a, p->type_a, done, p->stride_a),
            .b = matrix(p->b, p->type_b, done, p->stride_b),
            .c = p->c ? matrix(p->c, p->type_c, done, p->stride_c) : NULL,
            .d = matrix(p->d, p->type_d, done, p->stride_d),
            .lda = p->lda,
            .ldb = p->ldb,
            .ldc = p->ldc,
            .ldd = p->ldd,
            .stride_a = p->stride_a,
            .stride_b = p->stride_b,
            .stride_c = p->stride_c,
            .stride_d = p->stride_d,
            .m = (int)p->m,
            .n = (int)p->n,
            .k = (int)p->k,
            .alpha = p->alpha,
            .beta = p->beta_pointer ? 0 : p->beta, /* the kernel prefetches C if it is not 0 */
            .whole_tiles = (int)plan->whole_tiles,
            .k_split = (int)plan->k_split,
            .splits = plan->splits,
            .inv_split_tiles = HGEMM_RECIPROCAL((unsigned)(split_tiles ? split_tiles : 1)),
            .inv_group_tiles = HGEMM_RECIPROCAL((unsigned)(group * columns)),
            .inv_last_rows = HGEMM_RECIPROCAL((unsigned)(rows % group ? rows % group : group)),
            .workspace = handle->workspace,
            .fused = fused_bits(p),
            .bias = p->bias ? matrix(p->bias, p->type_bias, done, p->stride_bias) : NULL,
            .gate = p->gate ? matrix(p->gate, p->type_gate, done, p->stride_gate) : NULL,
            .stride_bias = p->stride_bias,
            .ldgate = p->ldgate,
            .stride_gate = p->stride_gate,
            .alpha_pointer = p->alpha_pointer,
            .beta_pointer = p->beta_pointer,
            .scatter_d = p->scatter_d,
        };
        launch_t launch = {
            .grid = {(unsigned)(plan->whole_tiles + split_tiles * plan->splits),
                     (unsigned)(rest < MOST_GRID_Y ? rest : MOST_GRID_Y), 1},
            .threads = (unsigned)kernel->threads,
            .shared_bytes = (unsigned)kernel->shared_bytes,
            .args = &args,
            .args_size = sizeof args,
        };
        status = handle->device->ops->launch(handle->device, handle->stream,
                                             handle->functions[variant_index(plan->variant)], &launch);
        if (status != HGEMM_STATUS_SUCCESS && plan->splits > 1)
            handle_forget_parts(handle);
    }
    return status;
}
