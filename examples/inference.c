/* SPDX-License-Identifier: MIT */
/*
 * The dense products of a transformer, each by one call: linear layers, SwiGLU, attention, experts. docs/inference.md
 * goes through them. main() runs each of the functions on the default device and compares with the CPU.
 *
 * Matrices are row-major and have no gaps. A weight is out x in, as torch.nn.Linear has it: y = x * weight^T.
 */
#include <hgemm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 20, WIDTH = 64, HIDDEN = 96, HEADS = 4, SIZE = WIDTH / HEADS, EXPERTS = 3, CHOICES = 2 };
enum { SEQUENCES = 3, PAIRS = SEQUENCES * HEADS, SLOTS = TOKENS * CHOICES };

/* The status says what went wrong, the handle's detail what the device said of it. */
static void must(hgemm_handle_t handle, hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS) {
        fprintf(stderr, "%s %s\n", hgemm_status_string(status), hgemm_error_detail(handle));
        exit(1);
    }
}

/* ---- the products -------------------------------------------------------------------------- */

/* y = x * weight^T for `rows` rows of x, summed in single precision. */
static hgemm_desc_t dense(int64_t rows, int64_t in, int64_t out, const void *x, const void *weight, void *y)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.op_b = HGEMM_OP_T;
    desc.m = rows, desc.n = out, desc.k = in;
    desc.a = x, desc.lda = in;
    desc.b = weight, desc.ldb = in;
    desc.d = y, desc.ldd = out;
    return desc;
}

/* h = gelu(x * weight^T + bias) */
static void linear(hgemm_handle_t handle, const void *x, const void *weight, const void *bias, void *h)
{
    hgemm_desc_t desc = dense(TOKENS, WIDTH, HIDDEN, x, weight, h);
    desc.bias = bias; /* HIDDEN halves, one for each column of h */
    desc.activation = HGEMM_ACTIVATION_GELU_TANH;
    must(handle, hgemm_run_desc(handle, &desc));
}

/* y = x + h * weight^T: beta * C is the residual. y may be x. */
static void add_residual(hgemm_handle_t handle, const void *x, const void *h, const void *weight, void *y)
{
    hgemm_desc_t desc = dense(TOKENS, HIDDEN, WIDTH, h, weight, y);
    desc.beta = 1;
    desc.c = x, desc.ldc = WIDTH;
    must(handle, hgemm_run_desc(handle, &desc));
}

/* h = silu(x * gate^T) * (x * up^T). `other` is room for the second factor. */
static void swiglu(hgemm_handle_t handle, const void *x, const void *gate, const void *up, void *other, void *h)
{
    hgemm_desc_t desc = dense(TOKENS, WIDTH, HIDDEN, x, up, other);
    must(handle, hgemm_run_desc(handle, &desc));

    desc = dense(TOKENS, WIDTH, HIDDEN, x, gate, h);
    desc.activation = HGEMM_ACTIVATION_SILU;
    desc.gate = other, desc.ldgate = HIDDEN; /* multiplies what the activation gives */
    must(handle, hgemm_run_desc(handle, &desc));
}

/* scores = q * k^T / sqrt(SIZE) for every head, as floats for the softmax. Heads lie side by side in a row of q and k.
 */
static void scores_of_heads(hgemm_handle_t handle, const void *q, const void *k, float *scores)
{
    hgemm_desc_t desc = dense(TOKENS, SIZE, TOKENS, q, k, scores);
    desc.batch = HEADS;
    desc.lda = WIDTH, desc.stride_a = SIZE;
    desc.ldb = WIDTH, desc.stride_b = SIZE;
    desc.type_d = HGEMM_TYPE_F32, desc.stride_d = TOKENS * TOKENS;
    desc.alpha = 1 / sqrtf(SIZE);
    must(handle, hgemm_run_desc(handle, &desc));
}

/* The same for one new token of each sequence, whose keys are wherever its cache is. `queries`, `keys` and `scores` are
 * arrays in device memory: PAIRS device pointers each, one for each head of each sequence. */
static void scores_of_caches(hgemm_handle_t handle, const void *queries, const void *keys, void *scores)
{
    hgemm_desc_t desc = dense(1, SIZE, TOKENS, queries, keys, scores);
    desc.batch = PAIRS, desc.batch_mode = HGEMM_BATCH_POINTERS;
    desc.alignment = 16; /* every pointer is a multiple of 16 bytes */
    desc.lda = desc.ldb = WIDTH;
    desc.type_d = HGEMM_TYPE_F32;
    desc.alpha = 1 / sqrtf(SIZE);
    must(handle, hgemm_run_desc(handle, &desc));
}

/* Each token goes to CHOICES experts: it has so many slots, and a router has sorted all slots by their expert. In
 * device memory, `ends` says where each expert's slots end, `tokens` which token a slot is of, `rows` which row of y it
 * is for: token * CHOICES + choice. `h` is room for SLOTS x HIDDEN halves. */
static void experts(hgemm_handle_t handle, const void *x, const void *up, const void *down, const int32_t *ends,
                    const int32_t *tokens, const int32_t *rows, void *h, void *y)
{
    hgemm_desc_t desc = dense(SLOTS, WIDTH, HIDDEN, x, up, h);
    desc.batch = EXPERTS, desc.batch_mode = HGEMM_BATCH_GROUPED;
    desc.group_ends = ends; /* the host need not know it */
    desc.stride_b = HIDDEN * WIDTH;
    desc.gather_a = tokens; /* x has TOKENS rows, the product SLOTS */
    desc.activation = HGEMM_ACTIVATION_RELU;
    must(handle, hgemm_run_desc(handle, &desc));

    desc = dense(SLOTS, HIDDEN, WIDTH, h, down, y);
    desc.batch = EXPERTS, desc.batch_mode = HGEMM_BATCH_GROUPED;
    desc.group_ends = ends;
    desc.stride_b = WIDTH * HIDDEN;
    desc.scatter_d = rows; /* back to the order of tokens */
    must(handle, hgemm_run_desc(handle, &desc));
}

/* out[token] = the sum of its CHOICES rows of y, each times its weight: a batch of products of 1 x CHOICES. */
static void combine(hgemm_handle_t handle, const void *weights, const void *y, void *out)
{
    hgemm_desc_t desc = dense(1, CHOICES, WIDTH, weights, y, out);
    desc.op_b = HGEMM_OP_N, desc.ldb = WIDTH;
    desc.batch = TOKENS;
    desc.stride_a = CHOICES, desc.stride_b = CHOICES * WIDTH, desc.stride_d = WIDTH;
    must(handle, hgemm_run_desc(handle, &desc));
}

/* A linear layer whose rows have the same bits, however many others they are computed with. */
static void invariant_linear(hgemm_handle_t handle, int64_t rows, const void *x, const void *weight, void *h)
{
    hgemm_desc_t desc = dense(rows, WIDTH, HIDDEN, x, weight, h);
    desc.flags = HGEMM_FLAG_BATCH_INVARIANT;
    must(handle, hgemm_run_desc(handle, &desc));
}

/* A linear layer in FP32, as exact as FP32 arithmetic. Its weights may have been stored as halves. */
static void float_linear(hgemm_handle_t handle, const float *x, const void *weight, hgemm_type_t type_weight, float *h)
{
    hgemm_desc_t desc = dense(TOKENS, WIDTH, HIDDEN, x, weight, h);
    desc.type_a = desc.type_d = HGEMM_TYPE_F32;
    desc.type_b = type_weight; /* HGEMM_TYPE_F32, HGEMM_TYPE_F16 or HGEMM_TYPE_BF16 */
    must(handle, hgemm_run_desc(handle, &desc));
}

/* A layer whose scale is read from device memory each time that it runs. */
static hgemm_desc_t scaled_linear(const void *x, const void *weight, const float *scale, void *h)
{
    hgemm_desc_t desc = dense(TOKENS, WIDTH, HIDDEN, x, weight, h);
    desc.alpha_pointer = scale;
    return desc;
}

/* What goes before a capture: then hgemm_run_desc allocates nothing and loads nothing. */
static void prepare_capture(hgemm_handle_t handle, const hgemm_desc_t *desc, void *workspace, size_t bytes)
{
    must(handle, hgemm_set_workspace(handle, workspace, bytes)); /* of the caller's, a multiple of 128 bytes */
    must(handle, hgemm_prepare(handle, desc));
}

/* ---- the same on the CPU ------------------------------------------------------------------- */

enum { WORKSPACE = 4 << 20 };

static uint16_t x[TOKENS * WIDTH], k[TOKENS * WIDTH], weight[EXPERTS * HIDDEN * WIDTH], down[EXPERTS * WIDTH * HIDDEN],
    bias[HIDDEN], shares[TOKENS * CHOICES], hidden[SLOTS * HIDDEN], other[SLOTS * HIDDEN], y[SLOTS * WIDTH],
    out[TOKENS * WIDTH];
static float scores[HEADS * TOKENS * TOKENS], float_x[TOKENS * WIDTH], float_weight[HIDDEN * WIDTH],
    float_h[TOKENS * HIDDEN];

static void *owned[32]; /* device memory, to be freed */
static int owned_count;

static void *allocate(hgemm_handle_t handle, size_t bytes)
{
    must(handle, hgemm_malloc(handle, &owned[owned_count], bytes));
    return owned[owned_count++];
}

static void *to_device(hgemm_handle_t handle, const void *host, size_t bytes)
{
    void *device = allocate(handle, bytes);
    must(handle, hgemm_upload(handle, device, host, bytes));
    return device;
}

/* Multiples of 1/8 in [-1, 1]: sums of their products are exact. */
static void fill(uint16_t *halves, int count)
{
    for (int i = 0; i < count; i++)
        halves[i] = hgemm_half_from_float((float)(rand() % 17 - 8) / 8);
}

static double at(const uint16_t *halves, int i)
{
    return hgemm_half_to_float(halves[i]);
}

/* The product of `count` neighbours each. */
static double dot(const uint16_t *a, const uint16_t *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += at(a, i) * at(b, i);
    return sum;
}

static double gelu(double value)
{
    return value / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (value + 0.044715 * value * value * value)));
}

static double silu(double value)
{
    return value / (1 + exp(-value));
}

/* Whether a result is not the half (or float) nearest to what is wanted, up to the error of single precision. */
static int is_wrong(double got, double want)
{
    return !(fabs(got - want) <= fabs(want) / 1024 + 1e-6);
}

static int report(const char *what, int wrong)
{
    printf("%-16s %s\n", what, wrong ? "differs from the CPU's" : "as the CPU's");
    return wrong != 0;
}

int main(void)
{
    hgemm_handle_t handle = NULL;
    must(NULL, hgemm_create(&handle, NULL));
    fill(x, TOKENS * WIDTH), fill(k, TOKENS * WIDTH), fill(weight, EXPERTS * HIDDEN * WIDTH);
    fill(down, EXPERTS * WIDTH * HIDDEN), fill(bias, HIDDEN), fill(shares, TOKENS * CHOICES);
    char *dev_x = to_device(handle, x, sizeof x), *dev_k = to_device(handle, k, sizeof k);
    char *dev_weight = to_device(handle, weight, sizeof weight), *dev_down = to_device(handle, down, sizeof down);
    void *dev_bias = to_device(handle, bias, sizeof bias), *dev_shares = to_device(handle, shares, sizeof shares);
    void *dev_hidden = allocate(handle, sizeof hidden), *dev_other = allocate(handle, sizeof other);
    void *dev_y = allocate(handle, sizeof y), *dev_out = allocate(handle, sizeof out);
    char *dev_scores = allocate(handle, sizeof scores);
    int failures = 0, wrong = 0;

    linear(handle, dev_x, dev_weight, dev_bias, dev_hidden);
    add_residual(handle, dev_x, dev_hidden, dev_down, dev_y);
    must(handle, hgemm_download(handle, hidden, dev_hidden, sizeof hidden));
    must(handle, hgemm_download(handle, y, dev_y, sizeof y));
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        wrong += is_wrong(at(hidden, i),
                          gelu(dot(x + i / HIDDEN * WIDTH, weight + i % HIDDEN * WIDTH, WIDTH) + at(bias, i % HIDDEN)));
    failures += report("linear", wrong);
    wrong = 0;
    for (int i = 0; i < TOKENS * WIDTH; i++)
        wrong += is_wrong(at(y, i), at(x, i) + dot(hidden + i / WIDTH * HIDDEN, down + i % WIDTH * HIDDEN, HIDDEN));
    failures += report("residual", wrong);

    swiglu(handle, dev_x, dev_weight, dev_weight + HIDDEN * WIDTH * 2, dev_other, dev_hidden);
    must(handle, hgemm_download(handle, hidden, dev_hidden, sizeof hidden));
    must(handle, hgemm_download(handle, other, dev_other, sizeof other));
    wrong = 0;
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        const uint16_t *row = x + i / HIDDEN * WIDTH;
        wrong += is_wrong(at(other, i), dot(row, weight + (HIDDEN + i % HIDDEN) * WIDTH, WIDTH));
        wrong += is_wrong(at(hidden, i), silu(dot(row, weight + i % HIDDEN * WIDTH, WIDTH)) * at(other, i));
    }
    failures += report("SwiGLU", wrong);

    scores_of_heads(handle, dev_x, dev_k, (float *)(void *)dev_scores);
    must(handle, hgemm_download(handle, scores, dev_scores, sizeof scores));
    wrong = 0;
    for (int i = 0; i < HEADS * TOKENS * TOKENS; i++) {
        int head = i / (TOKENS * TOKENS), query = i / TOKENS % TOKENS, key = i % TOKENS;
        wrong += is_wrong(scores[i], dot(x + query * WIDTH + head * SIZE, k + key * WIDTH + head * SIZE, SIZE) / 4);
    }
    failures += report("attention", wrong);

    /* Sequence s asks with token s. All have the same keys here. */
    void *pointers[3][PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
        int sequence = pair / HEADS, head = pair % HEADS;
        pointers[0][pair] = dev_x + (sequence * WIDTH + head * SIZE) * 2;
        pointers[1][pair] = dev_k + head * SIZE * 2;
        pointers[2][pair] = dev_scores + (PAIRS - 1 - pair) * TOKENS * 4;
    }
    void *dev_pointers[3];
    for (int i = 0; i < 3; i++)
        dev_pointers[i] = to_device(handle, pointers[i], sizeof pointers[i]);
    scores_of_caches(handle, dev_pointers[0], dev_pointers[1], dev_pointers[2]);
    must(handle, hgemm_download(handle, scores, dev_scores, PAIRS * TOKENS * 4));
    wrong = 0;
    for (int i = 0; i < PAIRS * TOKENS; i++) {
        int pair = PAIRS - 1 - i / TOKENS, column = pair % HEADS * SIZE;
        wrong += is_wrong(scores[i], dot(x + pair / HEADS * WIDTH + column, k + i % TOKENS * WIDTH + column, SIZE) / 4);
    }
    failures += report("caches", wrong);

    /* Choice c of a token is expert (token + c) % EXPERTS, but expert 1 is left without work. */
    int32_t ends[EXPERTS], tokens[SLOTS], rows[SLOTS], expert_of[SLOTS], slots = 0;
    for (int expert = 0; expert < EXPERTS; expert++) {
        for (int row = 0; row < SLOTS; row++) {
            int chosen = (row / CHOICES + row % CHOICES) % EXPERTS;
            if ((chosen == 1 ? 2 : chosen) == expert)
                tokens[slots] = row / CHOICES, expert_of[row] = expert, rows[slots++] = row;
        }
        ends[expert] = slots;
    }
    experts(handle, dev_x, dev_weight, dev_down, to_device(handle, ends, sizeof ends),
            to_device(handle, tokens, sizeof tokens), to_device(handle, rows, sizeof rows), dev_hidden, dev_y);
    combine(handle, dev_shares, dev_y, dev_out);
    must(handle, hgemm_download(handle, hidden, dev_hidden, sizeof hidden));
    must(handle, hgemm_download(handle, y, dev_y, sizeof y));
    must(handle, hgemm_download(handle, out, dev_out, sizeof out));
    wrong = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        int expert = expert_of[rows[slot]];
        for (int i = 0; i < HIDDEN; i++)
            wrong += is_wrong(at(hidden, slot * HIDDEN + i),
                              fmax(0, dot(x + tokens[slot] * WIDTH, weight + (expert * HIDDEN + i) * WIDTH, WIDTH)));
        for (int i = 0; i < WIDTH; i++)
            wrong += is_wrong(at(y, rows[slot] * WIDTH + i),
                              dot(hidden + slot * HIDDEN, down + (expert * WIDTH + i) * HIDDEN, HIDDEN));
    }
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        int row = i / WIDTH * CHOICES, column = i % WIDTH;
        double want =
            at(shares, row) * at(y, row * WIDTH + column) + at(shares, row + 1) * at(y, (row + 1) * WIDTH + column);
        wrong += is_wrong(at(out, i), want);
    }
    failures += report("experts", wrong);

    /* All rows, then the last one alone. */
    invariant_linear(handle, TOKENS, dev_x, dev_weight, dev_hidden);
    invariant_linear(handle, 1, dev_x + (TOKENS - 1) * WIDTH * 2, dev_weight, dev_other);
    must(handle, hgemm_download(handle, hidden, dev_hidden, sizeof hidden));
    must(handle, hgemm_download(handle, other, dev_other, sizeof other));
    wrong = memcmp(hidden + (TOKENS - 1) * HIDDEN, other, HIDDEN * 2) != 0;
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        wrong += is_wrong(at(hidden, i), dot(x + i / HIDDEN * WIDTH, weight + i % HIDDEN * WIDTH, WIDTH));
    failures += report("batch invariance", wrong);

    /* In FP32 with weights of halves, then with the same as floats. */
    for (int i = 0; i < TOKENS * WIDTH; i++)
        float_x[i] = (float)at(x, i) * 0x1p-20f + 1; /* no half has so many bits */
    for (int i = 0; i < HIDDEN * WIDTH; i++)
        float_weight[i] = (float)at(weight, i);
    const void *const dev_float_x = to_device(handle, float_x, sizeof float_x);
    void *const dev_float_h = allocate(handle, sizeof float_h);
    wrong = 0;
    for (int is_float = 0; is_float < 2; is_float++) {
        float_linear(handle, dev_float_x, is_float ? to_device(handle, float_weight, sizeof float_weight) : dev_weight,
                     is_float ? HGEMM_TYPE_F32 : HGEMM_TYPE_F16, dev_float_h);
        must(handle, hgemm_download(handle, float_h, dev_float_h, sizeof float_h));
        for (int i = 0; i < TOKENS * HIDDEN; i++) {
            double sum = 0, absolute = 0;
            for (int l = 0; l < WIDTH; l++) {
                const double product = (double)float_x[i / HIDDEN * WIDTH + l] * at(weight, i % HIDDEN * WIDTH + l);
                sum += product, absolute += fabs(product);
            }
            wrong += !(fabs((double)float_h[i] - sum) <= 40 * 0x1p-24 * absolute);
        }
    }
    failures += report("FP32", wrong);

    void *workspace = allocate(handle, WORKSPACE);
    float scale = 0.5f, *dev_scale = to_device(handle, &scale, sizeof scale);
    hgemm_desc_t desc = scaled_linear(dev_x, dev_weight, dev_scale, dev_hidden);
    prepare_capture(handle, &desc, workspace, WORKSPACE);
    wrong = 0;
    for (scale = 2; scale <= 3; scale++) {
        must(handle, hgemm_upload(handle, dev_scale, &scale, sizeof scale));
        must(handle, hgemm_run_desc(handle, &desc));
        must(handle, hgemm_download(handle, hidden, dev_hidden, sizeof hidden));
        for (int i = 0; i < TOKENS * HIDDEN; i++)
            wrong += is_wrong(at(hidden, i), scale * dot(x + i / HIDDEN * WIDTH, weight + i % HIDDEN * WIDTH, WIDTH));
    }
    failures += report("device scalar", wrong);

    must(handle, hgemm_set_workspace(handle, NULL, 0));
    while (owned_count > 0)
        must(handle, hgemm_free(handle, owned[--owned_count]));
    must(NULL, hgemm_destroy(handle));
    return failures != 0;
}
