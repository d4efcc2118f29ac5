/* SPDX-License-Identifier: MIT */
/* What is enqueued for a plan: the search for scales, copies or planes of operands, if it makes them, and the kernel's
 * launches with their arguments; where scales were found in samples, a second search and the same launches again, which
 * do nothing unless a scale was too large; and what has to be recomputed where no scale serves. */
#include "api/handle.h"
#include "api/scale.h"
#include "problem/weights.h"
#include "select/thin.h"

#include <stddef.h>

/* Matrix number `index` of a batch, or the pointer to it. The stride counts elements, of packed weights bytes. */
static void *matrix(const hgemm_desc_t *p, const void *data, hgemm_type_t type, int64_t index, int64_t stride)
{
    if (!data || index == 0) /* what is not there may have any type, a lone matrix any stride */
        return (void *)(uintptr_t)data;
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
        const copy_t copy = copy_of(p, which);
        const hgemm_type_t type = factor_of(p, which).type, copied = copied_type(p, type);
        const int halves = type_table[type].bits / 16,
                  to_halves = type_table[copied].bits / 16; /* of an element's bytes */
        const void **data = which == FACTOR_A ? &p->a : &p->b;
        int64_t *ld = which == FACTOR_A ? &p->lda : &p->ldb, row = copy.ld * halves / 8, own = copy.lines * row;
        end -= copy.bytes;
        args.operand[count++] = (realign_operand_t){.from = *data,
                                                    .to = end,
                                                    .ld = *ld * halves,
                                                    .to_ld = copy.ld * to_halves,
                                                    .lines = (int)copy.lines,
                                                    .width = copy.width * halves,
                                                    .row_chunks = (unsigned)row,
                                                    .inv_row_chunks = HGEMM_RECIPROCAL((unsigned)row),
                                                    .becomes_floats = halves != to_halves,
                                                    .type = type};
        *data = end, *ld = copy.ld;
        chunks = chunks > own ? chunks : own;
    }
    if (has_floats(p)) { /* whatever they were made of */
        p->flags |= (exact_factors(p) & FACTOR_A ? HGEMM_FLAG_HALVES_IN_A : 0) |
                    (exact_factors(p) & FACTOR_B ? HGEMM_FLAG_HALVES_IN_B : 0);
        p->type_a = p->type_b = HGEMM_TYPE_F32;
    }
    launch_t launch = {
        .grid = {(unsigned)((chunks + HGEMM_REALIGN_THREADS - 1) / HGEMM_REALIGN_THREADS), 1, count},
        .threads = HGEMM_REALIGN_THREADS,
        .args = &args,
        .args_size = sizeof args,
    };
    return handle->device->ops->launch(handle->device, handle->stream, handle->realign, &launch);
}

/* Where the planes of A and B are in the workspace, at its end, and their scales behind those of each. */
static planes_t planes_in(const hgemm_handle_t handle, const plan_t *plan, const hgemm_desc_t *p)
{
    const planes_of_t a = planes_of(p, FACTOR_A, plan->variant.kernel),
                      b = planes_of(p, FACTOR_B, plan->variant.kernel);
    char *const at_a = (char *)handle->workspace + handle->workspace_bytes - a.bytes, *const at_b = at_a - b.bytes;
    return (planes_t){.a = at_a,
                      .b = at_b,
                      .scale_a = (const float *)(at_a + a.matrices * a.matrix_bytes),
                      .scale_b = (const float *)(at_b + b.matrices * b.matrix_bytes),
                      .stride_a = a.matrices > 1 ? a.matrix_bytes : 0,
                      .stride_b = b.matrices > 1 ? b.matrix_bytes : 0,
                      .scale_stride_a = a.matrices > 1 ? a.scales : 0,
                      .scale_stride_b = b.matrices > 1 ? b.scales : 0,
                      .a_rows = p->op_a ? 1 : p->lda,
                      .a_ks = p->op_a ? p->lda : 1,
                      .b_columns = p->op_b ? p->ldb : 1,
                      .b_ks = p->op_b ? 1 : p->ldb};
}

/* Enqueues what makes them. */
static hgemm_status_t split(hgemm_handle_t handle, const plan_t *plan, const hgemm_desc_t *p)
{
    const hgemm_kernel_info_t *info = &kernel_table[plan->variant.kernel].info;
    const planes_t planes = planes_in(handle, plan, p);
    split_args_t args = {0};
    launch_t launch = {
        .grid = {1, 1, 2},
        .threads = HGEMM_SPLIT_THREADS,
        .shared_bytes = HGEMM_SPLIT_X * 3 * 4,
        .args = &args,
        .args_size = sizeof args,
    };
    for (int i = 0; i < 2; i++) {
        const int which = i ? FACTOR_B : FACTOR_A;
        const factor_t x = factor_of(p, which);
        const planes_of_t of = planes_of(p, which, plan->variant.kernel);
        const unsigned blocks = (unsigned)(of.scales / HGEMM_SPLIT_X), matrices = (unsigned)of.matrices;
        args.operand[i] = (split_operand_t){
            .from = (const void *)x.address,
            .to = (void *)(uintptr_t)(i ? planes.b : planes.a),
            .scale = (float *)(uintptr_t)(i ? planes.scale_b : planes.scale_a),
            .ld = x.ld,
            .stride = of.matrices > 1 ? x.stride : 0,
            .to_stride = of.matrix_bytes,
            .scale_stride = of.scales,
            .x_size = (int)(i ? p->n : p->m),
            .tile_x = i ? info->block_n : info->block_m,
            .k = (int)p->k,
            .is_along_k = x.is_along_k,
            .is_aligned = operand_is_aligned(p, which, 4),
            .matrices = (int)of.matrices,
            .accuracy = (int)kernel_table[plan->variant.kernel].accuracy,
        };
        launch.grid[0] = launch.grid[0] > blocks ? launch.grid[0] : blocks;
        launch.grid[1] = launch.grid[1] > matrices ? launch.grid[1] : matrices;
    }
    return handle->device->ops->launch(handle->device, handle->stream, handle->split, &launch);
}

/* What kernels of floats are told. */
static unsigned bits_of_floats(const hgemm_desc_t *p)
{
    return (p->flags & HGEMM_FLAG_BATCH_INVARIANT ? HGEMM_FLOATS_EACH_STEP : 0) |
           (exact_factors(p) & FACTOR_A ? HGEMM_FLOATS_EXACT_A : 0) |
           (exact_factors(p) & FACTOR_B ? HGEMM_FLOATS_EXACT_B : 0) |
           (factor_of(p, FACTOR_A).is_along_k ? HGEMM_FLOATS_ALONG_K_A : 0) |
           (factor_of(p, FACTOR_B).is_along_k ? HGEMM_FLOATS_ALONG_K_B : 0) |
           (unsigned)p->type_a << HGEMM_FLOATS_TYPE_A | (unsigned)p->type_b << HGEMM_FLOATS_TYPE_B;
}

/* blockIdx.x counts tiles and parts of tiles, blockIdx.y the batch, in as many launches as the limit
 * of blockIdx.y asks for. (Where warps have tiles, blockIdx.x counts those of all matrices.) The last product tells
 * whether what is not finite is recomputed after it. */
static hgemm_status_t multiply(hgemm_handle_t handle, const hgemm_desc_t *p, const plan_t *plan, search_t search,
                               int recomputes)
{
    const hgemm_kernel_info_t *kernel = &kernel_table[plan->variant.kernel].info;
    const int64_t group = kernel_walk(plan->variant.kernel, handle->machine.has_t4_code).group;
    const int64_t columns = ceil_div(p->n, kernel->block_n), rows = plan->tiles / columns;
    const unsigned batch_mode = p->batch_mode == HGEMM_BATCH_POINTERS  ? HGEMM_INDIRECT_POINTERS
                                : p->batch_mode == HGEMM_BATCH_GROUPED ? HGEMM_INDIRECT_GROUPED
                                                                       : 0;
    const unsigned by_columns = p->layout == HGEMM_COL_MAJOR ? HGEMM_INDIRECT_BY_COLUMNS : 0;
    const int64_t block_warps = kernel_table[plan->variant.kernel].tiles; /* that have tiles; 0: a block has one */
    const int64_t matrices = matrix_count(p), most = block_warps ? INT32_MAX / plan->tiles : MOST_GRID_Y;
    const int64_t split_tiles = plan->tiles - plan->whole_tiles;
    const int thin = is_thin(plan->variant.kernel), splits_first = kernel_table[plan->variant.kernel].splits_first;
    const int64_t longest = plan->whole_tiles > 0 ? p->k : plan->k_split; /* k's of a block */
    const int64_t block_tiles = thin ? thin_block_tiles(p, plan, &handle->machine) : 1;
    const int64_t blocks = thin ? thin_blocks(p, plan, block_tiles) : plan->whole_tiles + split_tiles * plan->splits;
    const planes_t no_planes = {0};
    const packed_form_t none = {0}, form = p->weights ? form_of(p->weights) : none;
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;

    for (int64_t done = 0; status == HGEMM_STATUS_SUCCESS && done < matrices; done += most) {
        const int64_t rest = matrices - done < most ? matrices - done : most;
        packed_args_t args = {
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
                    .inv_split_tiles = HGEMM_RECIPROCAL((unsigned)(block_warps   ? plan->tiles
                                                                   : split_tiles ? split_tiles
                                                                                 : 1)),
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
                    .groups = (int)(block_warps && matrices > 1 ? rest : p->batch),
                    .indirect = batch_mode | by_columns | (has_floats(p) ? bits_of_floats(p) : 0) |
                                (thin ? thin_bits(p, plan) : 0),
                },
            .scales = scales_of(handle, plan, p, search),
            .packed = form,
        };
        const planes_args_t of_planes = {.product = args.product,
                                         .planes = splits_first ? planes_in(handle, plan, p) : no_planes};
        launch_t launch = {
            .grid = {(unsigned)blocks, (unsigned)rest, 1},
            .threads = (unsigned)kernel->threads,
            .shared_bytes = (unsigned)(thin ? thin_shared_bytes(p, plan, block_tiles)
                                            : kernel->shared_bytes + kept_sums_bytes(plan->variant.kernel, longest)),
            .args = splits_first ? (const void *)&of_planes : &args,
            .args_size = splits_first                         ? sizeof of_planes
                         : p->weights                         ? sizeof args
                         : have_scales(plan->variant.factors) ? offsetof(packed_args_t, packed)
                                                              : sizeof args.product,
        };
        if (block_warps)
            launch.grid[0] = (unsigned)ceil_div(plan->tiles * rest, block_warps), launch.grid[1] = 1;
        status = handle->device->ops->launch(handle->device, handle->stream,
                                             handle->functions[variant_index(plan->variant)], &launch);
        if (status != HGEMM_STATUS_SUCCESS && plan->splits > 1)
            handle_forget_parts(handle);
        if (status == HGEMM_STATUS_SUCCESS && recomputes)
            status = recompute(handle, p, &args.product, rest);
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
    if (status == HGEMM_STATUS_SUCCESS && kernel_table[plan->variant.kernel].splits_first)
        status = split(handle, plan, &problem);
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, &problem, plan, search, plan->scales && search == SEARCH_ALL && !is_once(row_major));
    if (search != SEARCH_SAMPLE)
        return status;
    if (status == HGEMM_STATUS_SUCCESS)
        status = find_scales(handle, plan, row_major, SEARCH_AFTER_OVERFLOW);
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, &problem, plan, SEARCH_AFTER_OVERFLOW, 1);
    return status;
}
