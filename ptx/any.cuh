/* SPDX-License-Identifier: MIT */
/* Eight elements of a row of D: with whatever beside their sums, of any types, in rows of any alignment and order. */
#pragma once
#include "finish.cuh"
#include "position.cuh"
#include "stage.cuh"

/* C, D, bias or gate, from the first of a lane's eight columns on. APART: they may be column-major. */
template <bool APART> struct any_operand {
    char *at; /* in row 0; NULL: there is no such operand */
    u64 ld;   /* bytes from row to row */
    u64 step; /* APART: from column to column */
    u32 type;
    bool whole; /* eight columns are there, contiguous and aligned in every row */

    /* `matrix`: where the operand's begins. */
    DEVICE any_operand(const char *matrix, long long ld_elements, u32 type, u32 column, int count, bool by_columns)
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
template <bool APART> struct any_elements {
    u32 fused;
    int count; /* those of the eight columns that D has */
    scalars by;
    bool drops_sums;
    const void *scatter;
    any_operand<APART> c, d, bias, gate;
    float per_column[8]; /* the bias; one per row is added to it */

    template <template <class> class PLACE, class V> /* where a block stands */
    DEVICE any_elements(const arguments &args, const PLACE<V> &where, u32 column)
        : fused(args.fused), count(column < args.n ? (int)minimum(args.n - column, 8) : 0), by{args.alpha, args.beta},
          scatter(args.scatter_d),
          c(of<V>(args, args.c, args.ldc, args.stride_c, HGEMM_FUSED_TYPE_C, where.shared_matrix(args), column)),
          d(of<V>(args, args.d, args.ldd, args.stride_d, HGEMM_FUSED_TYPE_D, where.shared_matrix(args), column)),
          bias(of<V>(args, args.bias, 1, args.stride_bias, HGEMM_FUSED_TYPE_BIAS, where.own_matrix(args), column)),
          gate(of<V>(args, args.gate, args.ldgate, args.stride_gate, HGEMM_FUSED_TYPE_GATE, where.shared_matrix(args),
                     column))
    {
        u32 bits;
        if (args.alpha_pointer)
            ld_global_word(bits, (const char *)args.alpha_pointer, true), by.alpha = __uint_as_float(bits);
        if (args.beta_pointer)
            ld_global_word(bits, (const char *)args.beta_pointer, true), by.beta = __uint_as_float(bits);
        /* As the host has it where alpha is 0: a zero that leaves beta * C as it is. */
        drops_sums = by.alpha == 0;
        if (drops_sums) by.alpha = by.no_bias();
        if (!by.reads_c()) c.at = nullptr;
        if (!bias.at || fused & HGEMM_FUSED_BIAS_PER_ROW) {
#pragma unroll
            for (int e = 0; e < 8; ++e) per_column[e] = by.no_bias();
        } else {
            bias.whole = count == 8 && ((u64)bias.at & 15) == 0;
            values_of(per_column, bias.load(0, count), bias.type);
            bias.at = nullptr;
        }
    }

    /* Stores eight elements of a row of D. */
    template <format F> DEVICE void store(const eight_sums<F> &sums, u32 product_row) const
    {
        const long long row =
            scatter ? listed_row(scatter, fused & HGEMM_FUSED_INDEX_64, product_row) : product_row;
        const eight_elements cs = c.load(row, count), gates = gate.load(row, count);
        float x[8], per_row[8] = {by.no_bias()};
        if (bias.at) values_of(per_row, load_elements(bias.at + row * bias.ld, bias.type, false, 1), bias.type);
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = drops_sums ? 0 : sums.at(e);
        auto biases = [&](float (&f)[8]) {
#pragma unroll
            for (int e = 0; e < 8; ++e) f[e] = per_column[e] + per_row[0];
        };
        finish(x, by, values_if(true, biases), values_if(c.at, [&](float (&f)[8]) { values_of(f, cs, c.type); }),
               fused >> HGEMM_FUSED_ACTIVATION & HGEMM_FUSED_ACTIVATION_MASK,
               values_if(gate.at, [&](float (&f)[8]) { values_of(f, gates, gate.type); }));
        store_elements<APART>(d.at + row * d.ld, d.type, d.whole, count, x, d.step);
    }

private:
    template <class V>
    DEVICE any_operand<APART> of(const arguments &args, const void *first, long long ld, long long stride, int shift,
                                 u32 index, u32 column) const
    {
        const u32 type = fused >> shift & HGEMM_FUSED_TYPE_MASK;
        const bool is_bias = shift == HGEMM_FUSED_TYPE_BIAS;
        return any_operand<APART>(first ? matrix_at<V>(args, first, stride, bytes_of(type), index) : nullptr, ld, type,
                                  is_bias && fused & HGEMM_FUSED_BIAS_PER_ROW ? 0 : column, count,
                                  !is_bias && is_by_columns<APART>(args));
    }
};

/* Stores the first `count` of eight elements of halves that have nothing but alpha, beta and C beside their sums.
 * whole: there are eight, and aligned. */
static DEVICE void store_halves(const eight_sums<FLOATS> &sums, const scalars &by, const char *c, bool c_whole, char *d,
                                bool d_whole, int count)
{
    float x[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = sums.at(e);
    finish(x, by, [&](float (&f)[8]) {
        const eight_elements cs = by.reads_c() ? load_elements(c, F16, c_whole, count) : eight_elements{};
        values_of(f, cs, F16);
    });
    store_elements(d, F16, d_whole, count, x);
}
