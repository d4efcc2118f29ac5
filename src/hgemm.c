/* SPDX-License-Identifier: MIT */
/*
 * hgemm_run and its kin, from top to bottom:
 *     check     the descriptor, in the order that hgemm.h promises
 *     normalise to a row-major problem
 *     select    the kernel (plan.c)
 *     launch    it on the handle's device
 */
#include "hgemm.h"

#include "handle.h"
#include "plan.h"

void hgemm_desc_init(hgemm_desc_t *desc)
{
    if (desc)
        *desc = (hgemm_desc_t){.size = sizeof *desc, .batch = 1, .alpha = 1};
}

/* ---- Check ------------------------------------------------------------------------------------ */

/* A batch of stored matrices: `lines` rows (column-major: columns) of `width` contiguous elements. */
typedef struct view_t {
    const void *data;
    int64_t lines, width, ld;
    int64_t batch, stride;
} view_t;

typedef struct views_t {
    view_t a, b, c, d;
} views_t;

static views_t view_operands(const hgemm_desc_t *desc)
{
    int row_major = desc->layout == HGEMM_ROW_MAJOR;
    int a_along_k = row_major == (desc->op_a == HGEMM_OP_N); /* k is A's contiguous dimension */
    int b_along_n = row_major == (desc->op_b == HGEMM_OP_N);
    int64_t m = desc->m, n = desc->n, k = desc->k, batch = desc->batch;
    int64_t lines = row_major ? m : n, width = row_major ? n : m;
    return (views_t){
        .a = {desc->a, a_along_k ? m : k, a_along_k ? k : m, desc->lda, batch, desc->stride_a},
        .b = {desc->b, b_along_n ? k : n, b_along_n ? n : k, desc->ldb, batch, desc->stride_b},
        .c = {desc->c, lines, width, desc->ldc, batch, desc->stride_c},
        .d = {desc->d, lines, width, desc->ldd, batch, desc->stride_d},
    };
}

static int output_is_empty(const hgemm_desc_t *desc)
{
    return desc->m == 0 || desc->n == 0 || desc->batch == 0;
}

static int reads_operands(const hgemm_desc_t *desc)
{
    return desc->k != 0 && desc->alpha != 0;
}

static int reads_c(const hgemm_desc_t *desc)
{
    return desc->beta != 0;
}

static int d_is_c(const hgemm_desc_t *desc)
{
    return desc->d == desc->c && desc->ldd == desc->ldc && (desc->batch == 1 || desc->stride_d == desc->stride_c);
}

static int nothing_to_compute(const hgemm_desc_t *desc)
{
    return output_is_empty(desc) || (!reads_operands(desc) && desc->beta == 1 && d_is_c(desc));
}

static hgemm_status_t check_enums(const hgemm_desc_t *desc)
{
    if (desc->layout != HGEMM_ROW_MAJOR && desc->layout != HGEMM_COL_MAJOR)
        return HGEMM_STATUS_INVALID_LAYOUT;
    if ((desc->op_a != HGEMM_OP_N && desc->op_a != HGEMM_OP_T) ||
        (desc->op_b != HGEMM_OP_N && desc->op_b != HGEMM_OP_T))
        return HGEMM_STATUS_INVALID_OP;
    if (desc->accumulate != HGEMM_ACCUMULATE_F16 && desc->accumulate != HGEMM_ACCUMULATE_F32)
        return HGEMM_STATUS_INVALID_ACCUMULATE;
    if (desc->kernel < HGEMM_KERNEL_AUTO || desc->kernel > hgemm_kernel_count())
        return HGEMM_STATUS_INVALID_KERNEL;
    return HGEMM_STATUS_SUCCESS;
}

static int leading_dimension_holds(const view_t *view)
{
    return view->ld >= 1 && view->ld >= view->width;
}

/* Whether the batch spans at most 2^62 elements, so that every distance between two of them fits 63 bits
 * of bytes. A stride may be negative. */
static int extent_holds(const view_t *view)
{
    const int64_t most = INT64_C(1) << 62;
    if (view->lines == 0 || view->width == 0 || view->batch == 0)
        return 1;
    if (view->lines - 1 > (most - view->width) / view->ld)
        return 0;
    int64_t extent = (view->lines - 1) * view->ld + view->width;
    int64_t jumps = view->batch - 1;
    if (jumps == 0)
        return 1;
    if (view->stride < -most)
        return 0;
    int64_t distance = view->stride < 0 ? -view->stride : view->stride;
    return distance <= (most - extent) / jumps;
}

static hgemm_status_t check_shape(const hgemm_desc_t *desc, const views_t *views)
{
    if (desc->m < 0)
        return HGEMM_STATUS_INVALID_M;
    if (desc->n < 0)
        return HGEMM_STATUS_INVALID_N;
    if (desc->k < 0)
        return HGEMM_STATUS_INVALID_K;
    if (desc->batch < 0)
        return HGEMM_STATUS_INVALID_BATCH;
    if (!leading_dimension_holds(&views->a))
        return HGEMM_STATUS_INVALID_LDA;
    if (!leading_dimension_holds(&views->b))
        return HGEMM_STATUS_INVALID_LDB;
    if (!leading_dimension_holds(&views->c))
        return HGEMM_STATUS_INVALID_LDC;
    if (!leading_dimension_holds(&views->d))
        return HGEMM_STATUS_INVALID_LDD;
    if (desc->m > INT32_MAX || desc->n > INT32_MAX || desc->k > INT32_MAX || !extent_holds(&views->a) ||
        !extent_holds(&views->b) || !extent_holds(&views->c) || !extent_holds(&views->d))
        return HGEMM_STATUS_TOO_LARGE;
    return HGEMM_STATUS_SUCCESS;
}

static int misaligned(const void *pointer)
{
    return (uintptr_t)pointer % 2 != 0;
}

static hgemm_status_t check_null(const hgemm_desc_t *desc)
{
    if (reads_operands(desc) && !desc->a)
        return HGEMM_STATUS_NULL_A;
    if (reads_operands(desc) && !desc->b)
        return HGEMM_STATUS_NULL_B;
    if (reads_c(desc) && !desc->c)
        return HGEMM_STATUS_NULL_C;
    if (!desc->d)
        return HGEMM_STATUS_NULL_D;
    return HGEMM_STATUS_SUCCESS;
}

static hgemm_status_t check_alignment(const hgemm_desc_t *desc)
{
    if (reads_operands(desc) && misaligned(desc->a))
        return HGEMM_STATUS_MISALIGNED_A;
    if (reads_operands(desc) && misaligned(desc->b))
        return HGEMM_STATUS_MISALIGNED_B;
    if (reads_c(desc) && misaligned(desc->c))
        return HGEMM_STATUS_MISALIGNED_C;
    if (misaligned(desc->d))
        return HGEMM_STATUS_MISALIGNED_D;
    return HGEMM_STATUS_SUCCESS;
}

static int64_t absolute(int64_t value)
{
    return value < 0 ? -value : value;
}

/* Elements from the first to past the last of one matrix. */
static int64_t extent(const view_t *view)
{
    return (view->lines - 1) * view->ld + view->width;
}

/* Whether step * x % ld is in low .. high for an x of 0 .. most, where 0 < low <= high < ld and step < ld. The
 * multiples of step that lie in that range, without % ld, are seen at once; else x passes ld so and so often, y, and
 * comes into the range where -ld * y % step does: a smaller problem of the same kind, as in Euclid's algorithm. */
static int comes_into(uint64_t step, uint64_t ld, uint64_t low, uint64_t high, uint64_t most)
{
    for (;;) {
        if (step > ld / 2) { /* backwards the steps are smaller */
            uint64_t last = ld - low;
            step = ld - step, low = ld - high, high = last;
        }
        if (low > step * most)
            return 0;
        if (high - high % step >= low)
            return 1;
        most = (step * most - low) / ld;
        uint64_t past = ld % step;
        ld = step, low %= step, high %= step;
        step = past ? ld - past : 0;
    }
}

/* Whether two batches of one shape, leading dimension and stride share an element. The second
 * begins `offset` elements after the first; `same`: they are one batch, of which no matrix is
 * compared with itself. */
static int batches_meet(const view_t *view, int64_t offset, int same)
{
    /* Matrices whose distance offset + jump * stride is at most `span` meet where that is line * ld + column
     * with |column| < width: |line| < lines then. */
    int64_t last = view->batch - 1, step = last > 0 ? absolute(view->stride) : 0, span = extent(view) - 1;
    int64_t from = same ? 1 : -last, to = last, around = 2 * (view->width - 1);
    if (step == 0 && same)
        return last > 0;
    if (step == 0) {
        from = to = 0;
        if (absolute(offset) > span)
            return 0;
    } else {
        int64_t begin = (-span - offset) / step, end = (span - offset) / step;
        begin += offset + begin * step < -span;
        end -= offset + end * step > span;
        from = from > begin ? from : begin;
        to = to < end ? to : end;
    }
    if (from > to || around >= view->ld - 1)
        return from <= to;
    int64_t column =
        (offset + from * step + view->width - 1) % view->ld; /* of the first, from where it begins to meet */
    column += column < 0 ? view->ld : 0;
    return column <= around ||
           comes_into((uint64_t)(step % view->ld), (uint64_t)view->ld, (uint64_t)(view->ld - column),
                      (uint64_t)(view->ld - column + around), (uint64_t)(to - from));
}

/* Addresses, in bytes, from the lowest to past the highest element of a batch. */
static void address_range(const view_t *view, uintptr_t *begin, uintptr_t *end)
{
    int64_t travel = (view->batch - 1) * view->stride;
    *begin = (uintptr_t)view->data + 2 * (uintptr_t)(travel < 0 ? travel : 0);
    *end = (uintptr_t)view->data + 2 * (uintptr_t)((travel > 0 ? travel : 0) + extent(view));
}

static int overlaps_c(const hgemm_desc_t *desc, const views_t *views)
{
    uintptr_t c_begin, c_end, d_begin, d_end;
    address_range(&views->c, &c_begin, &c_end);
    address_range(&views->d, &d_begin, &d_end);
    if (c_end <= d_begin || d_end <= c_begin || d_is_c(desc))
        return 0;
    int comparable = desc->ldc == desc->ldd && (desc->batch == 1 || desc->stride_c == desc->stride_d);
    if (!comparable)
        return 1;
    intptr_t bytes = (intptr_t)((uintptr_t)desc->d - (uintptr_t)desc->c);
    return batches_meet(&views->d, bytes / 2, 0);
}

/* The data pointers: what is read or written must be there, aligned, and D apart. */
static hgemm_status_t check_pointers(const hgemm_desc_t *desc, const views_t *views)
{
    hgemm_status_t status = check_null(desc);
    if (status == HGEMM_STATUS_SUCCESS)
        status = check_alignment(desc);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    if (batches_meet(&views->d, 0, 1) || (reads_c(desc) && overlaps_c(desc, views)))
        return HGEMM_STATUS_OVERLAP;
    return HGEMM_STATUS_SUCCESS;
}

/* ---- Normalise -------------------------------------------------------------------------------- */

/*
 * The same problem, row-major. A column-major matrix is the row-major one of its transpose, so
 * D = op(A) op(B) turns into D^T = op(B)^T op(A)^T: the operands trade places, and so do m and n.
 *
 * Where A and B are not read, k is 0 and the kernel's sum is +0. alpha is then a zero of the sign
 * that leaves beta * C as it is, -0 included, and that gives +0 where C is not read either.
 */
hgemm_desc_t normalise(const hgemm_desc_t *desc)
{
    hgemm_desc_t p = *desc;
    if (desc->layout == HGEMM_COL_MAJOR) {
        p.layout = HGEMM_ROW_MAJOR;
        p.op_a = desc->op_b, p.op_b = desc->op_a;
        p.m = desc->n, p.n = desc->m;
        p.a = desc->b, p.lda = desc->ldb, p.stride_a = desc->stride_b;
        p.b = desc->a, p.ldb = desc->lda, p.stride_b = desc->stride_a;
    }
    if (!reads_operands(desc)) {
        p.k = 0;
        p.alpha = reads_c(desc) ? -0.0f : 0.0f;
    }
    return p;
}

/* ---- Launch ----------------------------------------------------------------------------------- */

/* Matrix number `index` of a batch. */
static void *matrix(const void *data, int64_t index, int64_t stride)
{
    return (void *)((uintptr_t)data + 2 * ((uintptr_t)index * (uintptr_t)stride));
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
            .a = matrix(p->a, done, p->stride_a),
            .b = matrix(p->b, done, p->stride_b),
            .c = matrix(p->c, done, p->stride_c),
            .d = matrix(p->d, done, p->stride_d),
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
            .beta = p->beta,
            .whole_tiles = (int)plan->whole_tiles,
            .k_split = (int)plan->k_split,
            .splits = plan->splits,
            .inv_split_tiles = HGEMM_RECIPROCAL((unsigned)(split_tiles ? split_tiles : 1)),
            .inv_group_tiles = HGEMM_RECIPROCAL((unsigned)(group * columns)),
            .inv_last_rows = HGEMM_RECIPROCAL((unsigned)(rows % group ? rows % group : group)),
            .workspace = handle->workspace,
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

/* ---- The calls -------------------------------------------------------------------------------- */

/* Checks all but the pointers' values and fills `views`. */
static hgemm_status_t check(const hgemm_desc_t *desc, views_t *views)
{
    if (!desc || desc->size != sizeof *desc)
        return HGEMM_STATUS_INVALID_DESC;
    hgemm_status_t status = check_enums(desc);
    if (status != HGEMM_STATUS_SUCCESS)
        return status;
    *views = view_operands(desc);
    return check_shape(desc, views);
}

/* Checks the call and chooses its plan; KERNEL_NONE where there is nothing to compute. */
static hgemm_status_t prepare(hgemm_handle_t handle, const hgemm_desc_t *desc, hgemm_desc_t *problem, plan_t *plan)
{
    views_t views;
    if (!handle)
        return HGEMM_STATUS_INVALID_HANDLE;
    plan->variant.kernel = KERNEL_NONE;
    hgemm_status_t status = check(desc, &views);
    if (status == HGEMM_STATUS_SUCCESS && !nothing_to_compute(desc)) {
        status = check_pointers(desc, &views);
        if (status == HGEMM_STATUS_SUCCESS) {
            *problem = normalise(desc);
            status = handle_choose(handle, problem, plan);
        }
    }
    if (status != HGEMM_STATUS_SUCCESS)
        handle->device->detail[0] = '\0'; /* the device has no words for this */
    return status;
}

hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    hgemm_desc_t problem;
    plan_t plan;
    hgemm_status_t status = prepare(handle, desc, &problem, &plan);
    if (status != HGEMM_STATUS_SUCCESS || plan.variant.kernel == KERNEL_NONE)
        return status;
    return handle_launch(handle, &problem, &plan);
}

hgemm_status_t hgemm_run(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b, int64_t m,
                         int64_t n, int64_t k, float alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                         float beta, void *c, int64_t ldc)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.layout = layout;
    desc.op_a = op_a, desc.op_b = op_b;
    desc.m = m, desc.n = n, desc.k = k;
    desc.alpha = alpha, desc.beta = beta;
    desc.a = a, desc.lda = lda;
    desc.b = b, desc.ldb = ldb;
    desc.c = c, desc.ldc = ldc;
    desc.d = c, desc.ldd = ldc;
    return hgemm_run_desc(handle, &desc);
}

hgemm_status_t hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc)
{
    hgemm_desc_t problem;
    plan_t plan;
    hgemm_status_t status = prepare(handle, desc, &problem, &plan);
    if (status != HGEMM_STATUS_SUCCESS || plan.variant.kernel == KERNEL_NONE)
        return status;
    return handle_load(handle, &plan);
}

hgemm_status_t hgemm_select(const hgemm_desc_t *desc, int *kernel)
{
    views_t views;
    plan_t plan = {.variant.kernel = KERNEL_NONE};
    if (!kernel)
        return HGEMM_STATUS_INVALID_HANDLE;
    hgemm_status_t status = check(desc, &views);
    if (status == HGEMM_STATUS_SUCCESS && !nothing_to_compute(desc)) {
        status = check_alignment(desc);
        if (status == HGEMM_STATUS_SUCCESS) {
            hgemm_desc_t problem = normalise(desc);
            status = select_plan(&problem, &machine_t4, machine_t4.workspace_bytes, &plan);
        }
    }
    if (status == HGEMM_STATUS_SUCCESS)
        *kernel = plan.variant.kernel;
    return status;
}
