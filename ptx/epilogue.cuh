/* SPDX-License-Identifier: MIT */
/*
 * Where a sum becomes an element of D. Every path of output.cuh calls a finish(), or takes the shortcut finish_plain()
 * where is_plain() allows it:
 *
 *   epilogue         D = alpha * sum + beta * C, of halves
 *   fused_epilogue   D = act(alpha * sum + bias + beta * C) * gate, of any types
 *
 * All is computed in single precision and rounded once, to the type of D; whichever way output.cuh takes, to the same bits.
 * A new activation is a row of src/table/activations.def, a function here, and a constant in hgemm.h.
 */
#pragma once
#include "position.cuh"
#include "stage.cuh"
#include "typed.cuh"

struct epilogue {
    float alpha, beta;

    DEVICE bool reads_c() const { return beta != 0; }

    /* D = alpha * sum + beta * C, of one element, in single precision; c is a half. */
    DEVICE float finish(float sum, u32 c) const { return finish_float(sum, half_to_float(c)); }
    DEVICE float finish_float(float sum, float c) const { return add_c(__fmul_rn(alpha, sum), c); }

    /* The same in two steps, with a bias. */
    DEVICE float scaled(float sum, float bias) const { return __fmaf_rn(alpha, sum, bias); }
    DEVICE float add_c(float x, float c) const { return __fmaf_rn(beta, c, x); }

    /* The same of eight neighbours in a row, rounded. */
    template <format F> DEVICE b128 finish(const eight_sums<F> &x, const b128 &c) const
    {
        const u32 cs[4] = {c.x, c.y, c.z, c.w};
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = pack_halves(finish(x.at(2 * e), cs[e]), finish(x.at(2 * e + 1), cs[e] >> 16));
        return b128{d[0], d[1], d[2], d[3]};
    }

    /* Whether D is the rounded sum and nothing else. */
    DEVICE bool is_plain() const { return alpha == 1 && !reads_c(); }

    /* What finish() would then give: the addition turns -0 into 0, as there. HALVES take a bias of halves with it, which
     * a fused epilogue would add to the same bits: 24 bits are twice 11 and two, so that to round twice does no harm. */
    template <format F> static DEVICE b128 finish_plain(const eight_sums<F> &x, const b128 &bias)
    {
        const u32 bs[4] = {bias.x, bias.y, bias.z, bias.w};
        u32 d[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            d[e] = F == ROUNDED  ? x.v[e]
                   : F == FLOATS ? pack_halves(x.at(2 * e), x.at(2 * e + 1))
                                 : add_halves(x.v[e], bs[e]);
        return b128{d[0], d[1], d[2], d[3]};
    }
};

/* Numbers of the activations, which are those of hgemm_activation_t, and the kinds that activations.def speaks of. */
enum activation {
#define ACTIVATION(value, ...) value,
#include "../src/table/activations.def"
    ACTIVATIONS
};
enum activation_kind { AS_IS, EACH, LOGISTIC };

/* ---- EACH: of an element. ReLU(-0) is 0, as that of a negative number which a half has as -0 must be. */

static DEVICE float each_relu(float x) { return x <= 0 ? 0 : x; }

/*
 * ---- LOGISTIC: x / (1 + 2^-t), x times the logistic function of t ln 2, where t is x times a polynomial of x^2
 *
 *   SiLU           t = x / ln 2
 *   GELU, tanh     0.5 x (1 + tanh u) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): t = 2 u / ln 2
 *                  (https://arxiv.org/abs/1606.08415)
 *   GELU, erf      x Phi(x), with the normal distribution's Phi. t is log2(Phi(x) / (1 - Phi(x))), fitted so that the
 *                  error of Phi is 2.9e-8 at most, everywhere
 *
 * The functions give t.
 */
static DEVICE float turn_silu(float x) { return x * 1.44269504f; }
static DEVICE float turn_gelu_tanh(float x) { return x * (2.30220819f + 0.10294324f * (x * x)); }
static DEVICE float turn_gelu_erf(float x)
{
    const float w = x * x;
    float p = 5.06723747e-9f;
    p = p * w - 3.81631309e-7f, p = p * w + 1.14398340e-5f, p = p * w - 1.59579937e-4f;
    p = p * w - 9.40492277e-5f, p = p * w + 0.104835123f, p = p * w + 2.30220938f;
    return x * p;
}

/* ---- A row of the table: `of` is its device function. */
template <int HOW> struct activation_row;
#define AS_IS_FUNCTION(name) x
#define EACH_FUNCTION(name) each_##name(x)
#define LOGISTIC_FUNCTION(name) turn_##name(x)
#define ACTIVATION(value, name, kind, ...) \
    template <> struct activation_row<value> { \
        static constexpr activation_kind KIND = kind; \
        static DEVICE float of(float x) { return kind##_FUNCTION(name); } \
    };
#include "../src/table/activations.def"
#undef AS_IS_FUNCTION
#undef EACH_FUNCTION
#undef LOGISTIC_FUNCTION

/* Bits of the activations of a kind; the first and the last of bits. */
template <activation_kind KIND> constexpr u32 BITS_OF = 0
#define ACTIVATION(value, name, kind, ...) | (KIND == kind ? 1u << value : 0)
#include "../src/table/activations.def"
    ;
template <u32 BITS> constexpr int FIRST_BIT = BITS & 1 ? 0 : 1 + FIRST_BIT<(BITS >> 1)>;
template <> constexpr int FIRST_BIT<0> = 0;
template <u32 BITS> constexpr int LAST_BIT = 1 + LAST_BIT<(BITS >> 1)>;
template <> constexpr int LAST_BIT<0> = -1;

/* Replaces N numbers by the function of activation `how`, which is of a kind: compares it with those from HOW downwards,
 * and takes it for the last one of the kind if it is none of these and CERTAIN. */
template <activation_kind KIND, bool CERTAIN, int HOW = ACTIVATIONS - 1, int N>
static DEVICE void replace_each(float (&x)[N], u32 how)
{
    constexpr int LAST = LAST_BIT<BITS_OF<KIND>>;
    if constexpr (HOW < 0) {
        if (CERTAIN)
#pragma unroll
            for (int i = 0; i < N; ++i) x[i] = activation_row<LAST>::of(x[i]);
    } else if constexpr (activation_row<HOW>::KIND != KIND || (CERTAIN && HOW == LAST)) {
        replace_each<KIND, CERTAIN, HOW - 1>(x, how);
    } else if (how == HOW) {
#pragma unroll
        for (int i = 0; i < N; ++i) x[i] = activation_row<HOW>::of(x[i]);
    } else {
        replace_each<KIND, CERTAIN, HOW - 1>(x, how);
    }
}

/* Each element has a reciprocal of its own: one for two, 1 / a = b / (a b), would have an element's bits depend on its
 * neighbour. 2^-t may be 0 or infinite, and then x stays, or becomes a zero of its sign; of -infinity, NaN. */
template <int N> static DEVICE void times_logistic(float (&x)[N], u32 how)
{
    float t[N];
#pragma unroll
    for (int i = 0; i < N; ++i) t[i] = x[i];
    replace_each<LOGISTIC, true>(t, how);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] *= reciprocal_approx(1 + exp2_approx(-t[i]));
}

/* Where the LOGISTIC ones are the last ones, one comparison tells them from the others. */
template <int N> static DEVICE void activate(float (&x)[N], u32 how)
{
    constexpr u32 BITS = BITS_OF<LOGISTIC>, FIRST = FIRST_BIT<BITS>;
    constexpr bool ARE_LAST = BITS >> FIRST == (1u << (ACTIVATIONS - FIRST)) - 1;
    if (ARE_LAST ? how > FIRST - 1 : (BITS >> how & 1) != 0) times_logistic(x, how);
    else replace_each<EACH, false>(x, how);
}

/* ReLU of rounded halves. */
static DEVICE b128 relu_halves(const b128 &x)
{
    return b128{relu_of_pair(x.x), relu_of_pair(x.y), relu_of_pair(x.z), relu_of_pair(x.w)};
}

/* What a fused epilogue adds to aligned chunks of halves: a bias for each column, an activation, a gate. */
struct extras {
    u32 how;          /* activation */
    const char *gate; /* at the lane's columns of row 0; NULL: none */
    float bias[8];    /* of the lane's columns */
};

/* N rows of eight elements, aligned and of two bytes each, with extras. */
template <type T, format F, int N>
static DEVICE void finish_with(b128 (&d)[N], const eight_sums<F> (&sums)[N], const b128 (&cs)[N],
                               const b128 (&gates)[N], const epilogue &end, const extras &more)
{
    float x[N * 8];
    auto at = [](const b128 (&v)[N], int e) { /* an element of N rows */
        const u32 pairs[4] = {v[e / 8].x, v[e / 8].y, v[e / 8].z, v[e / 8].w};
        return value_in_pair<T>(pairs[e % 8 / 2], e % 2);
    };
#pragma unroll
    for (int e = 0; e < N * 8; ++e) x[e] = end.scaled(sums[e / 8].at(e % 8), more.bias[e % 8]);
    if (end.reads_c())
#pragma unroll
        for (int e = 0; e < N * 8; ++e) x[e] = end.add_c(x[e], at(cs, e));
    activate(x, more.how);
    if (more.gate)
#pragma unroll
        for (int e = 0; e < N * 8; ++e) x[e] *= at(gates, e);
#pragma unroll
    for (int q = 0; q < N; ++q) {
        const float *const y = &x[q * 8];
        d[q] = b128{pair_of<T>(y[0], y[1]), pair_of<T>(y[2], y[3]), pair_of<T>(y[4], y[5]), pair_of<T>(y[6], y[7])};
    }
}

/* C, D, bias or gate, from the first of a lane's eight columns on. APART: they may be column-major. */
template <bool APART> struct fused_operand {
    char *at; /* in row 0; NULL: there is no such operand */
    u64 ld;   /* bytes from row to row */
    u64 step; /* APART: from column to column */
    u32 type;
    bool whole; /* eight columns are there, contiguous and aligned in every row */

    /* `matrix`: where the operand's begins. */
    DEVICE fused_operand(const char *matrix, long long ld_elements, u32 type, u32 column, int count, bool by_columns)
        : type(type)
    {
        const u64 line = (u64)ld_elements * bytes_of(type), size = bytes_of(type);
        ld = by_columns ? size : line, step = by_columns ? line : size;
        at = matrix ? (char *)matrix + column * step : nullptr;
        whole = count == 8 && !by_columns && (((u64)at | ld) & 15) == 0;
    }
    DEVICE eight_elements load(long long row, int count) const
    {
        return load_elements<APART>(at + row * ld, type, whole, at ? count : 0, step);
    }
};

/* Whether C, D and gate are column-major. */
template <bool APART> static DEVICE bool is_by_columns(const arguments &args)
{
    return APART && args.indirect & HGEMM_INDIRECT_BY_COLUMNS;
}

/* What a lane needs for eight columns of D, from `column` on. */
template <bool APART> struct fused_epilogue {
    u32 fused;
    int count; /* those of the eight columns that D has */
    float alpha, beta;
    bool drops_sums;
    const void *scatter;
    fused_operand<APART> c, d, bias, gate;
    float none;          /* of a bias that is not there: -0 beside C, which leaves beta * C as it is */
    float per_column[8]; /* the bias */

    DEVICE u32 type_at(int shift) const { return fused >> shift & HGEMM_FUSED_TYPE_MASK; }

    template <template <class> class PLACE, class V> /* where a block stands */
    DEVICE fused_epilogue(const arguments &args, const PLACE<V> &where, u32 column)
        : fused(args.fused), count(column < args.n ? (int)minimum(args.n - column, 8) : 0), alpha(args.alpha),
          beta(args.beta), scatter(args.scatter_d),
          c(operand_at<V>(args, args.c, args.stride_c, HGEMM_FUSED_TYPE_C, where.shared_matrix(args)), args.ldc,
            type_at(HGEMM_FUSED_TYPE_C), column, count, is_by_columns<APART>(args)),
          d(operand_at<V>(args, args.d, args.stride_d, HGEMM_FUSED_TYPE_D, where.shared_matrix(args)), args.ldd,
            type_at(HGEMM_FUSED_TYPE_D), column, count, is_by_columns<APART>(args)),
          bias(operand_at<V>(args, args.bias, args.stride_bias, HGEMM_FUSED_TYPE_BIAS, where.own_matrix(args)), 1,
               type_at(HGEMM_FUSED_TYPE_BIAS), fused & HGEMM_FUSED_BIAS_PER_ROW ? 0 : column, count, false),
          gate(operand_at<V>(args, args.gate, args.stride_gate, HGEMM_FUSED_TYPE_GATE, where.shared_matrix(args)), args.ldgate,
               type_at(HGEMM_FUSED_TYPE_GATE), column, count, is_by_columns<APART>(args))
    {
        u32 bits;
        if (args.alpha_pointer) ld_global_word(bits, (const char *)args.alpha_pointer, true), alpha = __uint_as_float(bits);
        if (args.beta_pointer) ld_global_word(bits, (const char *)args.beta_pointer, true), beta = __uint_as_float(bits);
        /* As the host has it where alpha is 0: a zero that leaves beta * C as it is. */
        drops_sums = alpha == 0;
        if (drops_sums) alpha = beta != 0 ? -0.0f : 0.0f;
        if (beta == 0) c.at = nullptr;
        none = beta != 0 ? -0.0f : 0.0f;
        if (!bias.at || fused & HGEMM_FUSED_BIAS_PER_ROW) {
#pragma unroll
            for (int e = 0; e < 8; ++e) per_column[e] = none;
        } else {
            bias.whole = count == 8 && ((u64)bias.at & 15) == 0;
            values_of(per_column, bias.load(0, count), bias.type);
            bias.at = nullptr;
        }
    }

    /* Stores eight elements of a row of D. */
    template <format F> DEVICE void finish(const eight_sums<F> &sums, u32 product_row) const
    {
        const long long row = scatter ? listed_row(scatter, fused & HGEMM_FUSED_INDEX_64, product_row) : product_row;
        const eight_elements cs = c.load(row, count), gates = gate.load(row, count);
        float x[8], f[8], shift = none;
        if (bias.at) {
            values_of(f, load_elements(bias.at + row * bias.ld, bias.type, false, 1), bias.type);
            shift = f[0];
        }
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = __fmaf_rn(alpha, drops_sums ? 0 : sums.at(e), per_column[e] + shift);
        if (c.at) {
            values_of(f, cs, c.type);
#pragma unroll
            for (int e = 0; e < 8; ++e) x[e] = __fmaf_rn(beta, f[e], x[e]);
        }
        activate(x, fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK);
        if (gate.at) {
            values_of(f, gates, gate.type);
#pragma unroll
            for (int e = 0; e < 8; ++e) x[e] *= f[e];
        }
        store_elements<APART>(d.at + row * d.ld, d.type, d.whole, count, x, d.step);
    }

private:
    template <class V>
    DEVICE const char *operand_at(const arguments &args, const void *first, long long stride, int shift, u32 index) const
    {
        return first ? matrix_at<V>(args, first, stride, bytes_of(type_at(shift)), index) : nullptr;
    }
};
