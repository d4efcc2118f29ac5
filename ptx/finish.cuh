/* SPDX-License-Identifier: MIT */
/*
 * Where a sum becomes an element of D, of every kernel of the table but the rungs of the ladder:
 *
 *   finish(x, scalars, ...)   D = act(alpha * sum + bias + beta * C) * gate
 *   finish(x, scaling)        D = sum * alpha, or divided by the scales of A and B, and nothing else
 *
 * All is computed in single precision and rounded once, to the type of D. Policies (store.cuh) may leave out what
 * changes no bit. A new activation is a row of src/table/activations.def, a function here, a constant in hgemm.h.
 */
#pragma once
#include "convert.cuh"
#include "row.cuh"
#include "elements.cuh"

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

/* Replaces N numbers by the function of activation `how`, which is of a kind: compares it with those from HOW down,
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

/* alpha and beta. A sum of zeros is +0 where no C is read; -0 in a bias's place leaves beta * C as it is. */
struct scalars {
    float alpha, beta;
    DEVICE bool reads_c() const { return beta != 0; }
    DEVICE float no_bias() const { return reads_c() ? -0.0f : 0.0f; }
};

/* What an element has beside its sum: values that fill(f) writes, if they are there. */
template <class F> struct beside {
    bool is_there;
    F fill;
};
template <class F> static DEVICE beside<F> values_if(bool is_there, F fill) { return beside<F>{is_there, fill}; }
struct no_values {
    static constexpr bool is_there = false;
    template <int N> static DEVICE void fill(float (&)[N]) {}
};
template <class X> constexpr bool IS_NONE = false;
template <> constexpr bool IS_NONE<no_values> = true;

/* Elements of D in the place of their sums. Without a bias, C is there, if of zeros: so a zero is +0. */
template <int N, class BIAS, class C, class GATE>
static DEVICE void finish(float (&x)[N], const scalars &by, const BIAS &bias, const C &c, u32 how, const GATE &gate)
{
    float f[N];
    bias.fill(f);
#pragma unroll
    for (int e = 0; e < N; ++e) x[e] = IS_NONE<BIAS> ? __fmul_rn(by.alpha, x[e]) : __fmaf_rn(by.alpha, x[e], f[e]);
    if (c.is_there) {
        c.fill(f);
#pragma unroll
        for (int e = 0; e < N; ++e) x[e] = __fmaf_rn(by.beta, f[e], x[e]);
    }
    activate(x, how);
    if (gate.is_there) {
        gate.fill(f);
#pragma unroll
        for (int e = 0; e < N; ++e) x[e] *= f[e];
    }
}

/* The same of alpha, beta and C alone. */
template <int N, class C> static DEVICE void finish(float (&x)[N], const scalars &by, C fill_c)
{
    finish(x, by, no_values(), values_if(true, fill_c), NONE, no_values());
}

/* What sums are multiplied by where that is all: alpha; or a power of two that scales of A and B ask for, as two of
 * them, both above 1 or both below, where their product may be no float. */
struct scaling {
    float first, second;
    float zero; /* that is added: -0 leaves a zero as it is, +0 makes it +0 */

    DEVICE explicit scaling(float alpha) : first(alpha), second(1), zero(0) {}
    DEVICE explicit scaling(const arguments &args)
    {
        const int log_a = log2_of(power_of_two(scales_of(args).a, scales_of(args).a_pointer));
        const int log_ab = log_a + log2_of(power_of_two(scales_of(args).b, scales_of(args).b_pointer));
        const int part = log_ab < -126 || log_ab > 126 ? log_ab >> 1 : log_ab;
        first = power_of_two(-part), second = power_of_two(part - log_ab), zero = -0.0f;
    }
    DEVICE bool is_two() const { return second != 1; }
};

static DEVICE float finish(float sum, const scaling &by)
{
    const float x = __fmaf_rn(sum, by.first, by.zero);
    return by.is_two() ? __fmul_rn(x, by.second) : x;
}
template <int N> static DEVICE void finish(float (&x)[N], const scaling &by)
{
#pragma unroll
    for (int e = 0; e < N; ++e) x[e] = __fmaf_rn(x[e], by.first, by.zero);
    if (by.is_two()) {
#pragma unroll
        for (int e = 0; e < N; ++e) x[e] = __fmul_rn(x[e], by.second);
    }
}
