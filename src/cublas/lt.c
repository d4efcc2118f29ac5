/* SPDX-License-Identifier: MIT */
/*
 * cublasLtMatmul. Its descriptors are opaque: they are read by the library's own getters, at each call, since a program
 * may change them between two. The algorithm and the workspace that the program passes are the real library's.
 */
#include "abi.h"
#include "product.h"
#include "real.h"

/* The arguments that say what to compute. */
typedef struct call_t {
    void *desc;
    const void *alpha, *beta;
    const void *a, *b, *c;
    void *d;
    void *layout_a, *layout_b, *layout_c, *layout_d;
} call_t;

typedef struct layout_t {
    int32_t type, order, batch;
    uint32_t batch_mode;
    uint64_t rows, columns;
    int64_t ld, stride;
} layout_t;

typedef struct operation_t {
    int32_t compute, scale_type, pointer_mode, op_a, op_b, op_c, fill, bias_type;
    uint32_t epilogue;
    const void *bias;
    int64_t bias_stride;
} operation_t;

/* An attribute and where its value goes; one that an old library does not know keeps what is there. */
typedef struct attribute_t {
    int attribute;
    void *value;
    size_t size;
    int is_optional;
} attribute_t;

/* Both kinds of descriptors have getters of this type. */
typedef cublasLtMatmulDescGetAttribute_fn getter_t;

static int read_attributes(getter_t *get, void *descriptor, const attribute_t *attributes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const attribute_t *wanted = &attributes[i];
        size_t written = 0;
        int status = get(descriptor, wanted->attribute, wanted->value, wanted->size, &written);
        if (status != BLAS_STATUS_SUCCESS ? !wanted->is_optional : written != wanted->size)
            return 0;
    }
    return 1;
}

#define READ(get, descriptor, ...)                                       \
    read_attributes(get, descriptor, (const attribute_t[]){__VA_ARGS__}, \
                    sizeof((const attribute_t[]){__VA_ARGS__}) / sizeof(attribute_t))
#define NEEDED(attribute, value)              \
    {                                         \
        attribute, &(value), sizeof(value), 0 \
    }
#define OPTIONAL(attribute, value)            \
    {                                         \
        attribute, &(value), sizeof(value), 1 \
    }

static int read_layout(getter_t *get, void *descriptor, layout_t *layout)
{
    *layout = (layout_t){.batch_mode = LT_BATCH_MODE_STRIDED};
    return descriptor &&
           READ(get, descriptor, NEEDED(LT_LAYOUT_TYPE, layout->type), NEEDED(LT_LAYOUT_ORDER, layout->order),
                NEEDED(LT_LAYOUT_ROWS, layout->rows), NEEDED(LT_LAYOUT_COLS, layout->columns),
                NEEDED(LT_LAYOUT_LD, layout->ld), NEEDED(LT_LAYOUT_BATCH_COUNT, layout->batch),
                NEEDED(LT_LAYOUT_STRIDED_BATCH_OFFSET, layout->stride),
                OPTIONAL(LT_LAYOUT_BATCH_MODE, layout->batch_mode));
}

/* Reads what the operation is. Gives NULL, or why it is not one of hgemm's. */
static const char *read_operation(getter_t *get, void *descriptor, operation_t *op)
{
    int32_t sm_count = 0;
    const void *scales[6] = {NULL};
    *op = (operation_t){.bias_type = -1};
    if (!descriptor ||
        !READ(get, descriptor, NEEDED(LT_DESC_COMPUTE_TYPE, op->compute), NEEDED(LT_DESC_SCALE_TYPE, op->scale_type),
              NEEDED(LT_DESC_POINTER_MODE, op->pointer_mode), NEEDED(LT_DESC_TRANSA, op->op_a),
              NEEDED(LT_DESC_TRANSB, op->op_b), NEEDED(LT_DESC_TRANSC, op->op_c), NEEDED(LT_DESC_FILL_MODE, op->fill),
              NEEDED(LT_DESC_EPILOGUE, op->epilogue), OPTIONAL(LT_DESC_SM_COUNT_TARGET, sm_count),
              OPTIONAL(LT_DESC_A_SCALE_POINTER, scales[0]), OPTIONAL(LT_DESC_B_SCALE_POINTER, scales[1]),
              OPTIONAL(LT_DESC_C_SCALE_POINTER, scales[2]), OPTIONAL(LT_DESC_D_SCALE_POINTER, scales[3]),
              OPTIONAL(LT_DESC_AMAX_D_POINTER, scales[4]), OPTIONAL(LT_DESC_D_OUT_SCALE_POINTER, scales[5])))
        return "the operation's descriptor cannot be read";
    for (int i = 0; i < 6; i++)
        if (scales[i])
            return "the descriptor asks for scale factors or maxima";
    if (sm_count != 0)
        return "the descriptor is to use a part of the multiprocessors";
    if (op->op_c != BLAS_OP_N || op->fill != BLAS_FILL_MODE_FULL)
        return "the descriptor asks for a part or the transpose of C";
    if (op->epilogue & LT_EPILOGUE_BIAS &&
        !READ(get, descriptor, NEEDED(LT_DESC_BIAS_POINTER, op->bias),
              OPTIONAL(LT_DESC_BIAS_BATCH_STRIDE, op->bias_stride), OPTIONAL(LT_DESC_BIAS_DATA_TYPE, op->bias_type)))
        return "the operation's descriptor cannot be read";
    return NULL;
}

/* The epilogue. A bias has a value for each row of D, of D's type where the descriptor does not say. */
static const char *describe_epilogue(const operation_t *op, int type_d, hgemm_desc_t *desc)
{
    static const struct {
        uint32_t epilogue;
        hgemm_activation_t activation;
    } known[] = {
        {LT_EPILOGUE_DEFAULT, HGEMM_ACTIVATION_NONE},   {LT_EPILOGUE_BIAS, HGEMM_ACTIVATION_NONE},
        {LT_EPILOGUE_RELU, HGEMM_ACTIVATION_RELU},      {LT_EPILOGUE_RELU_BIAS, HGEMM_ACTIVATION_RELU},
        {LT_EPILOGUE_GELU, HGEMM_ACTIVATION_GELU_TANH}, {LT_EPILOGUE_GELU_BIAS, HGEMM_ACTIVATION_GELU_TANH},
    };
    size_t i = 0, count = sizeof known / sizeof known[0];
    while (i < count && known[i].epilogue != op->epilogue)
        i++;
    if (i == count)
        return "hgemm has no such epilogue";
    desc->activation = known[i].activation;
    if (!(op->epilogue & LT_EPILOGUE_BIAS))
        return NULL;
    if (!op->bias || (op->bias_type != -1 && op->bias_type != type_d))
        return "the bias is NULL, or of another type than D";
    if (desc->batch_mode != HGEMM_BATCH_STRIDED)
        return "the matrices are given by pointers, and the bias is not known to be";
    desc->bias = op->bias;
    desc->bias_mode = HGEMM_BIAS_PER_ROW;
    desc->type_bias = desc->type_d;
    desc->stride_bias = op->bias_stride;
    return NULL;
}

/* Whether a layout holds a rows x columns matrix and has D's batch. */
static int layout_holds(const layout_t *layout, uint64_t rows, uint64_t columns, const layout_t *d)
{
    uint64_t line = layout->order == LT_ORDER_COL ? layout->rows : layout->columns;
    return layout->rows == rows && layout->columns == columns && layout->ld >= 1 && (uint64_t)layout->ld >= line &&
           layout->batch == d->batch && layout->batch_mode == d->batch_mode;
}

static int is_plain(const layout_t *layout)
{
    return layout->order == LT_ORDER_COL || layout->order == LT_ORDER_ROW;
}

static hgemm_op_t flip(hgemm_op_t op, int is_flipped)
{
    return is_flipped ? (op == HGEMM_OP_N ? HGEMM_OP_T : HGEMM_OP_N) : op;
}

static const char *describe_matrices(const call_t *call, const operation_t *op, const layout_t layouts[4],
                                     product_t *product)
{
    hgemm_desc_t *desc = &product->desc;
    const layout_t *a = &layouts[0], *b = &layouts[1], *c = &layouts[2], *d = &layouts[3];
    if (!product_op(op->op_a, &desc->op_a) || !product_op(op->op_b, &desc->op_b))
        return "an operation is none of N, T and C";
    int k_is_in_columns = desc->op_a == HGEMM_OP_N, b_is_plain = desc->op_b == HGEMM_OP_N;
    uint64_t m = d->rows, n = d->columns, k = k_is_in_columns ? a->columns : a->rows;
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX)
        return "a size is over 2^31 - 1";
    desc->m = (int64_t)m, desc->n = (int64_t)n, desc->k = (int64_t)k;
    desc->batch = d->batch;
    const char *why = product_types(a->type, b->type, d->type, desc);
    if (why || c->type != d->type)
        return why ? why : "C is not of the type of D";
    why = product_compute(product, op->compute);
    if (why)
        return why;
    int is_half = desc->accumulate == HGEMM_ACCUMULATE_F16;
    if (op->scale_type != (is_half ? BLAS_R_16F : BLAS_R_32F))
        return "the scale type is not the compute type's";
    if (!is_plain(a) || !is_plain(b) || !is_plain(d) || c->order != d->order)
        return "an order is neither column- nor row-major, or C's is not D's";
    if (m == 0 || n == 0 || k == 0 || d->batch <= 0 || !call->a || !call->b || !call->d ||
        !layout_holds(a, k_is_in_columns ? m : k, k_is_in_columns ? k : m, d) ||
        !layout_holds(b, b_is_plain ? k : n, b_is_plain ? n : k, d) || !layout_holds(c, m, n, d) ||
        !layout_holds(d, m, n, d) || d->batch_mode > LT_BATCH_MODE_POINTER_ARRAY)
        return "an argument is for cuBLAS to judge";
    /* A matrix of the other order is the transpose of one of D's. */
    desc->layout = d->order == LT_ORDER_COL ? HGEMM_COL_MAJOR : HGEMM_ROW_MAJOR;
    desc->op_a = flip(desc->op_a, a->order != d->order);
    desc->op_b = flip(desc->op_b, b->order != d->order);
    desc->batch_mode = d->batch_mode == LT_BATCH_MODE_STRIDED ? HGEMM_BATCH_STRIDED : HGEMM_BATCH_POINTERS;
    desc->a = call->a, desc->lda = a->ld, desc->stride_a = a->stride;
    desc->b = call->b, desc->ldb = b->ld, desc->stride_b = b->stride;
    desc->c = call->c, desc->ldc = c->ld, desc->stride_c = c->stride;
    desc->d = call->d, desc->ldd = d->ld, desc->stride_d = d->stride;
    return NULL;
}

static const char *describe(const call_t *call, product_t *product)
{
    hgemm_desc_t *desc = &product->desc;
    getter_t *get_layout = REAL(cublasLtMatrixLayoutGetAttribute), *get = REAL(cublasLtMatmulDescGetAttribute);
    void *const descriptors[4] = {call->layout_a, call->layout_b, call->layout_c, call->layout_d};
    layout_t layouts[4];
    operation_t op;
    if (!get || !get_layout)
        return "the real cuBLASLt was not found";
    for (int i = 0; i < 4; i++) {
        if (i == 3 && descriptors[3] == descriptors[2])
            layouts[3] = layouts[2];
        else if (!read_layout(get_layout, descriptors[i], &layouts[i]))
            return "a layout cannot be read";
    }
    const char *why = read_operation(get, call->desc, &op);
    if (!why)
        why = describe_matrices(call, &op, layouts, product);
    if (!why)
        why = describe_epilogue(&op, layouts[3].type, desc);
    if (!why)
        why = product_scalars(product, op.pointer_mode, call->alpha, call->beta);
    if (!why && !call->c && (desc->beta != 0 || desc->beta_pointer || product->half_beta))
        why = "an argument is for cuBLAS to judge";
    return why;
}

static int take(void *handle, void *stream, const call_t *call)
{
    product_t product = {.entry = "cublasLtMatmul", .stream = stream};
    if (!door_is_open())
        return 0;
    hgemm_desc_init(&product.desc);
    product.why = handle ? describe(call, &product) : "the handle is NULL";
    return door_run(&product);
}

DOOR_EXPORT int cublasLtMatmul(LT_PARAMETERS(int));

int cublasLtMatmul(LT_PARAMETERS(int))
{
    const call_t call = {desc, alpha, beta, a, b, c, d, layout_a, layout_b, layout_c, layout_d};
    if (take(handle, stream, &call))
        return BLAS_STATUS_SUCCESS;
    return REAL_CALL(cublasLtMatmul, (LT_ARGUMENTS));
}
