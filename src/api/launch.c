/* SPDX-License-Identifier: MIT */
/* What is enqueued for a plan: the search for scales and copies of operands, if it makes them, and the kernel's
 * launches with their arguments; where scales were found in samples, a second search and the same launches again, which
 * do nothing unless a scale was too large. */
#include "api/handle.h"
#include "api/scale.h"

/* Matrix number `index` of a batch, or the pointer to it. */
static void *matrix(const hgemm_desc_t *p, const void *data, hgemm_type_t type, int64_t index, int64_t stride)
{
    if (!data) /* what is not there may have any type */
        return NULL;
    const uintptr_t step = p->batch_mode == HGEMM_BATCH_POINTERS ? sizeof(void *) : (uintptr_t)type_bytes(type, stride);
    return (void *)((uintptr_t)data + (uintptr_t)index * step);
}

/* Enqueues the copies that the plan has, to the end of the workspace, and lets the problem speak of
 * them. */
static hgemm_status_t realign(hgemm_handle_t handle, const plan_t *plan, hgemm_desc_t *p)
{
    realign_args_t args = {0};
    char *end = (char *)handle->workspace + handle->workspace_bytes - scale_bytes(plan->scales);
    int64_t chunks = 0;
    unsigned count = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which <<= 1) {
        if (!(plan->copies & which))
            continue;
        copy_t copy = copy_of(p, which);
        const void **data = which == FACTOR_A ? &p->a : &p->b;
        int64_t *ld = which == FACTOR_A ? &p->lda : &p->ldb, own = copy.lines * (copy.ld / 8);
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

/* Columns, or rows, that D is thin in. */
static int64_t thin_columns(const hgemm_desc_t *p, const hgemm_kernel_info_t *info)
{
    return info->block_m >= info->block_n ? p->n : p->m;
}

/* How many tiles, side by side, a block of a thin kernel has. Where D has a column or two, a tile is less work than
 * what a block does once, or waits for. So a block may have four tiles, or two, in as few rounds of blocks as that
 * takes. */
static int64_t tiles_of_block(const hgemm_desc_t *p, const plan_t *plan, const machine_t *machine, int64_t matrices)
{
    const kernel_t *kernel = &kernel_table[plan->variant.kernel];
    const int64_t columns = thin_columns(p, &kernel->info);
    if (!is_thin(plan->variant.kernel) || kernel->info.block_m == kernel->info.block_n || columns > HGEMM_FEW_COLUMNS ||
        plan->splits > 1)
        return 1;
    const int64_t slots = machine->multiprocessors * (machine->is_newer ? kernel->newer_blocks : kernel->blocks);
    const int64_t tiles = plan->tiles * matrices, most = 4 / columns;
    const int64_t even = ceil_div(tiles, slots * ceil_div(tiles, slots * most));
    return even < plan->tiles ? even : plan->tiles;
}

/* Of a thin kernel as many as a block's sums take: so more blocks run at one time. */
static int shared_bytes(const hgemm_desc_t *p, const plan_t *plan, int64_t tiles)
{
    const int kernel = plan->variant.kernel;
    const hgemm_kernel_info_t *info = &kernel_table[kernel].info;
    const int64_t columns = thin_columns(p, info) * tiles;
    if (is_streamed(p, kernel) && plan->splits == 1)
        return HGEMM_STREAMED_SUMS * 4;
    return is_thin(kernel) && columns < 8 ? info->shared_bytes / 8 * (int)columns : info->shared_bytes;
}

/* Blocks for the tiles and parts of a matrix. */
static int64_t block_count(const hgemm_desc_t *p, const plan_t *plan, int64_t tiles)
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    if (is_streamed(p, plan->variant.kernel) && plan->splits == 1)
        return ceil_div(info->block_m > info->block_n ? p->m : p->n, HGEMM_STREAMED_LINES);
    return ceil_div(plan->whole_tiles, tiles) + (plan->tiles - plan->whole_tiles) * plan->splits;
}

/* blockIdx.x counts tiles and parts of tiles, blockIdx.y the batch, in as many launches as the limit
 * of blockIdx.y asks for. */
static hgemm_status_t multiply(hgemm_handle_t handle, const hgemm_desc_t *p, const plan_t *plan, search_t search)
{
    const hgemm_kernel_info_t *kernel = &kernel_table[plan->variant.kernel].info;
    const int64_t group = kernel_walk(plan->variant.kernel, handle->machine.has_t4_code).group;
    const int64_t columns = ceil_div(p->n, kernel->block_n), rows = plan->tiles / columns;
    const unsigned batch_mode = p->batch_mode == HGEMM_BATCH_POINTERS  ? HGEMM_INDIRECT_POINTERS
                                : p->batch_mode == HGEMM_BATCH_GROUPED ? HGEMM_INDIRECT_GROUPED
                                                                       : 0;
    const unsigned by_columns = p->layout == HGEMM_COL_MAJOR ? HGEMM_INDIRECT_BY_COLUMNS : 0;
    const int64_t matrices = matrix_count(p);
    const int64_t split_tiles = plan->tiles - plan->whole_tiles;
    const int64_t block_tiles = tiles_of_block(p, plan, &handle->machine, matrices);
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;

    for (int64_t done = 0; status == HGEMM_STATUS_SUCCESS && done < matrices; done += MOST_GRID_Y) {
        int64_t rest = matrices - done;
        bf16_args_t args = {
            .product =
                {
                    .a = matrix(p, p->a, p->type_a, done, p->stride_a),
                    .b = matrix(p, p->b, p->type_b, done, p->stride_b),
                    .c = matrix(p, p->c, p->type_c, done, p->stride_c),
                    .d = matrix(p, p->d, p->type_d, done, p->stride_d),
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
                    .bias = matrix(p, p->bias, p->type_bias, done, p->stride_bias),
                    .gate = matrix(p, p->gate, p->type_gate, done, p->stride_gate),
                    .stride_bias = p->stride_bias,
                    .ldgate = p->ldgate,
                    .stride_gate = p->stride_gate,
                    .alpha_pointer = p->alpha_pointer,
                    .beta_pointer = p->beta_pointer,
                    .scatter_d = p->scatter_d,
                    .gather_a = p->gather_a,
                    .group_ends = p->group_ends,
                    .groups = (int)p->batch,
                    .indirect = batch_mode | by_columns,
                },
            .scales = scales_of(handle, plan, p, search),
        };
        launch_t launch = {
            .grid = {(unsigned)block_count(p, plan, block_tiles), (unsigned)(rest < MOST_GRID_Y ? rest : MOST_GRID_Y),
                     1},
            .threads = (unsigned)kernel->threads,
            .shared_bytes = (unsigned)shared_bytes(p, plan, block_tiles),
            .args = &args,
            .args_size = have_scales(plan->variant.factors) ? sizeof args : sizeof args.product,
        };
        status = handle->device->ops->launch(handle->device, handle->stream,
                                             handle->functions[variant_index(plan->variant)], &launch);
        if (status != HGEMM_STATUS_SUCCESS && plan->splits > 1)
            handle_forget_parts(handle);
    }
    return status;
}

hgemm_status_t handle_launch(hgemm_handle_t handle, const hgemm_desc_t *row_major, const plan_t *plan)
{
    const search_t search = first_search(&handle->machine, plan->scales, row_major);
    hgemm_desc_t problem = *row_major;
    hgemm_status_t status = handle_load(handle, plan);
    if (status == HGEMM_STATUS_SUCCESS && plan->scales)
        status = find_scales(handle, plan, row_major, search);
    if (status == HGEMM_STATUS_SUCCESS && plan->copies)
        status = realign(handle, plan, &problem);
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, &problem, plan, search);
    if (search != SEARCH_SAMPLE)
        return status;
    if (status == HGEMM_STATUS_SUCCESS)
        status = find_scales(handle, plan, row_major, SEARCH_AFTER_OVERFLOW);
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, &problem, plan, SEARCH_AFTER_OVERFLOW);
    return status;
}
