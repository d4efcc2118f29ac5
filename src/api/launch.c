/* SPDX-License-Identifier: MIT */
/* What is enqueued for a plan: the search for scales, copies of operands, if it makes them, and the kernel's
 * launches with their arguments; where scales were found in samples, a second search and the same launches again, which
 * do nothing unless a scale was too large; and what has to be recomputed where no scale serves. */
#include "api/handle.h"
#include "api/scale.h"
#include "problem/weights.h"
#include "select/family.h"

#include <stddef.h>

/* Enqueues the copies that the plan has, to the end of the workspace, and lets the problem speak of
 * them. */
static hgemm_status_t realign(hgemm_handle_t handle, const plan_t *plan, problem_t *p)
{
    realign_args_t args = {0};
    char *end = (char *)handle->workspace + handle->workspace_bytes - scale_bytes(plan->scales);
    int64_t chunks = 0;
    unsigned count = 0;
    for (int which = FACTOR_A; which <= FACTOR_B; which <<= 1) {
        if (!(plan->copies & which))
            continue;
        factor_t *x = which == FACTOR_A ? &p->a : &p->b;
        const copy_t copy = copy_of(p, which);
        const hgemm_type_t copied = copied_type(p, x->type);
        const int halves = type_table[x->type].bits / 16,
                  to_halves = type_table[copied].bits / 16; /* of an element's bytes */
        const int64_t row = copy.ld * halves / 8, own = copy.lines * row;
        end -= copy.bytes;
        args.operand[count++] = (realign_operand_t){.from = x->data,
                                                    .to = end,
                                                    .ld = x->ld * halves,
                                                    .to_ld = copy.ld * to_halves,
                                                    .lines = (int)copy.lines,
                                                    .width = copy.width * halves,
                                                    .row_chunks = (unsigned)row,
                                                    .inv_row_chunks = HGEMM_RECIPROCAL((unsigned)row),
                                                    .becomes_floats = halves != to_halves,
                                                    .type = x->type};
        x->data = end, x->address = (uintptr_t)end, x->ld = copy.ld, x->type = copied;
        chunks = chunks > own ? chunks : own;
    }
    p->product.a = p->a.data, p->product.lda = p->a.ld;
    p->product.b = p->b.data, p->product.ldb = p->b.ld;
    launch_t launch = {
        .grid = {(unsigned)((chunks + HGEMM_REALIGN_THREADS - 1) / HGEMM_REALIGN_THREADS), 1, count},
        .threads = HGEMM_REALIGN_THREADS,
        .args = &args,
        .args_size = sizeof args,
    };
    return handle->device->ops->launch(handle->device, handle->stream, handle->realign, &launch);
}

/* What kernels are told in `indirect` (args.h), which are compiled for it; those of floats in any case. */
static unsigned indirect_bits(const problem_t *p)
{
    const unsigned bits = (p->batch_mode == HGEMM_BATCH_POINTERS ? HGEMM_INDIRECT_POINTERS : 0) |
                          (p->batch_mode == HGEMM_BATCH_GROUPED ? HGEMM_INDIRECT_GROUPED : 0) |
                          (p->is_col_major ? HGEMM_INDIRECT_BY_COLUMNS : 0);
    if (!p->has_floats)
        return bits;
    return bits | (p->is_invariant ? HGEMM_FLOATS_EACH_STEP : 0) | (p->a.is_exact ? HGEMM_FLOATS_EXACT_A : 0) |
           (p->b.is_exact ? HGEMM_FLOATS_EXACT_B : 0) | (p->a.is_along_k ? HGEMM_FLOATS_ALONG_K_A : 0) |
           (p->b.is_along_k ? HGEMM_FLOATS_ALONG_K_B : 0) | (unsigned)p->a.type << HGEMM_FLOATS_TYPE_A |
           (unsigned)p->b.type << HGEMM_FLOATS_TYPE_B;
}

/* An operand so many matrices on. */
static const void *advanced(const problem_t *p, const void *data, hgemm_type_t type, int64_t stride, int64_t count)
{
    if (!data)
        return NULL;
    const uintptr_t step = p->batch_mode == HGEMM_BATCH_POINTERS ? sizeof(void *) : (uintptr_t)type_bytes(type, stride);
    return (const void *)((uintptr_t)data + (uintptr_t)count * step);
}

/* Has the product speak of the matrices of the batch from number `count` of these on. */
static void advance(const problem_t *p, kernel_args_t *product, int64_t count)
{
    product->a = advanced(p, product->a, p->a.type, p->a.stride, count);
    product->b = advanced(p, product->b, p->b.type, p->b.stride, count); /* of packed weights it counts bytes */
    product->c = advanced(p, product->c, p->type_c, product->stride_c, count);
    product->d = (void *)(uintptr_t)advanced(p, product->d, p->type_d, product->stride_d, count);
    product->bias = advanced(p, product->bias, p->type_bias, product->stride_bias, count);
    product->gate = advanced(p, product->gate, p->type_gate, product->stride_gate, count);
}

/* blockIdx.x counts tiles and parts of tiles, blockIdx.y the batch, in as many launches as the limit
 * of blockIdx.y asks for. (Where warps have tiles, blockIdx.x counts those of all matrices.) The last product tells
 * whether what is not finite is recomputed after it. */
static hgemm_status_t multiply(hgemm_handle_t handle, const problem_t *p, const plan_t *plan, search_t search,
                               int recomputes)
{
    const kernel_t *row = &kernel_table[plan->variant.kernel];
    const hgemm_kernel_info_t *kernel = &row->info;
    const int64_t group = kernel_walk(plan->variant.kernel, handle->machine.has_t4_code).group;
    const int64_t columns = ceil_div(p->n, kernel->block_n), rows = plan->tiles / columns;
    const int64_t most = row->tiles ? INT32_MAX / plan->tiles : MOST_GRID_Y; /* matrices of a launch */
    const int64_t split_tiles = plan->tiles - plan->whole_tiles;
    const family_info_t *family = &family_table[kernel_table[plan->variant.kernel].family];
    const launch_shape_t shape =
        family->shape ? family->shape(p, plan, &handle->machine)
                      : (launch_shape_t){.blocks = plan_blocks(plan), .shared_bytes = kernel->shared_bytes};
    union {
        kernel_args_t product; /* with which the other begins */
        packed_args_t packed;
    } args = {.packed = {.packed = p->packed, .scales = scales_of(handle, plan, p, search)}};
    kernel_args_t *const product = &args.product;
    launch_t launch = {
        .grid = {(unsigned)shape.blocks},
        .threads = (unsigned)kernel->threads,
        .shared_bytes = (unsigned)shape.shared_bytes,
        .args = &args,
        .args_size = p->is_packed                         ? sizeof args.packed
                     : have_scales(plan->variant.factors) ? offsetof(packed_args_t, packed)
                                                          : sizeof args.product,
    };
    *product = p->product;
    product->whole_tiles = (int)plan->whole_tiles, product->k_split = (int)plan->k_split;
    product->splits = plan->splits;
    product->inv_split_tiles = HGEMM_RECIPROCAL((unsigned)(row->tiles ? plan->tiles : split_tiles ? split_tiles : 1));
    product->inv_group_tiles = HGEMM_RECIPROCAL((unsigned)(group * columns));
    product->inv_last_rows = HGEMM_RECIPROCAL((unsigned)(rows % group ? rows % group : group));
    product->workspace = handle->workspace;
    product->groups = (int)p->batch;
    product->indirect = indirect_bits(p) | shape.bits;

    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int64_t rest = p->matrices; status == HGEMM_STATUS_SUCCESS && rest > 0; rest -= most) {
        const int64_t now = rest < most ? rest : most;
        launch.grid[1] = (unsigned)now, launch.grid[2] = 1;
        if (row->tiles) {
            launch.grid[0] = (unsigned)ceil_div(plan->tiles * now, row->tiles), launch.grid[1] = 1;
            product->groups = (int)(p->matrices > 1 ? now : p->batch);
        }
        status = handle->device->ops->launch(handle->device, handle->stream,
                                             handle->functions[variant_index(plan->variant)], &launch);
        if (status != HGEMM_STATUS_SUCCESS && plan->splits > 1)
            handle_forget_parts(handle);
        if (status == HGEMM_STATUS_SUCCESS && recomputes)
            status = recompute(handle, p, product, now);
        if (rest > most)
            advance(p, product, most);
    }
    return status;
}

hgemm_status_t handle_launch(hgemm_handle_t handle, const problem_t *p, const plan_t *plan)
{
    const search_t search = plan->scales ? first_search(&handle->machine, plan->scales, p) : SEARCH_ALL;
    const problem_t *multiplied = p;
    problem_t copied;
    hgemm_status_t status = handle_load(handle, plan);
    if (status == HGEMM_STATUS_SUCCESS && plan->scales)
        status = find_scales(handle, plan, p, search);
    if (status == HGEMM_STATUS_SUCCESS && plan->copies) {
        copied = *p;
        status = realign(handle, plan, &copied);
        multiplied = &copied;
    }
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, multiplied, plan, search, plan->scales && search == SEARCH_ALL && !is_once(p));
    if (search != SEARCH_SAMPLE)
        return status;
    if (status == HGEMM_STATUS_SUCCESS)
        status = find_scales(handle, plan, p, SEARCH_AFTER_OVERFLOW);
    if (status == HGEMM_STATUS_SUCCESS)
        status = multiply(handle, multiplied, plan, SEARCH_AFTER_OVERFLOW, 1);
    return status;
}
