/* SPDX-License-Identifier: MIT */
/*
 * Packed weights: where the codes, scales and zeros of an n x k matrix W lie. C11 and CUDA C++ read this file, so that
 * host and device pack and unpack by the same lines.
 *
 * Codes. Strips of 32 rows of W, which are 32 columns of the product; a strip is a sequence of units along k. A unit
 * is 512 bytes, 16 for each lane of a warp, and has 32 k's of 4 bits or 16 k's of 8. With g = lane / 4, t = lane % 4 a
 * lane has what mma.m16n8k8 wants as B: of four mma tiles j, columns 8 j + g, the k's 2 t and 2 t + 1 of a slice of 8.
 *
 * Of 4 bits, word s is slice s: the pair of tile j in bits 4 j and 4 j + 16, from where one mask takes it as two
 * halves; of TABLE16 it is in byte j, which is looked up as one.
 *
 * Of 8 bits, words 2 s and 2 s + 1 are slice s: bytes of the pair of tile 0, then 1; then of 2, then 3.
 *
 * Signed codes are made unsigned: their sign bit is flipped, and 8 or 128 is added to zeros.
 *
 * Scales. For each strip and group 32 of them: 8 for each t, which are columns 2 t and 2 t + 1 of every tile j, as an
 * mma's sums are. Offsets, which follow the scales, lie in the same way.
 *
 * Zeros. For each strip and group 32 bytes: 4 for each g, of its column in every tile j.
 *
 * k is rounded up to a multiple of HGEMM_PACKED_K, and n to that of a strip: what is added is zero, scales included.
 */
#ifndef HGEMM_PACKED_H
#define HGEMM_PACKED_H

#define HGEMM_PACKED_STRIP 32
#define HGEMM_PACKED_UNIT 512
#define HGEMM_PACKED_K 128

/* Of hgemm_code_t, hgemm_zero_t and hgemm_type_t, which CUDA C++ does not see. The host checks that they agree. */
enum packed_codes_t {
#define CODE(value, ...) PACKED_##value,
#include "codes.def"
};
enum packed_zeros_t { PACKED_NO_ZEROS, PACKED_ZERO_CODES, PACKED_OFFSETS };
enum packed_types_t {
#define TYPE(value, ...) PACKED_##value,
#include "types.def"
};

/* Packed weights as kernels see them. */
typedef struct packed_form_t {
    int n, k;
    int code, zero, type_scale;
    int log_group;                        /* k's of a group, as a power of two; 30: all of a row */
    int groups, slots;                    /* of a row of W; and of one in packed weights */
    long long scales_at, zeros_at, bytes; /* where scales, and zeros or offsets, begin; the end of all */
    unsigned short table[16];
    unsigned lookup[8]; /* the table's low bytes, and its high ones */
} packed_form_t;

/* The parameter of the kernels pack_weights and unpack_weights. */
typedef struct pack_args_t {
    packed_form_t form;
    const void *codes, *scales, *zeros;
    void *packed;
    void *matrix; /* unpack: columns first to first + count - 1 of W, of this type, rows ld elements apart */
    long long ld;
    int type, first, count;
} pack_args_t;

#define HGEMM_PACK_THREADS 128
#define HGEMM_UNPACK_STRIPS 65535 /* that are walked over at one time, where there are so many */

#ifdef __CUDACC__
#define HGEMM_PACKED static __device__ __forceinline__
#else
#define HGEMM_PACKED static inline
#endif

HGEMM_PACKED int packed_bits(const packed_form_t *form)
{
#define CODE(value, name, bits, ...) ((bits) == 8 && form->code == PACKED_##value) ||
    return
#include "codes.def"
        0 ? 8 : 4;
}

/* Strips; and units and chunks of 16 bytes of codes in a strip, and in all. */
HGEMM_PACKED long long packed_strips(const packed_form_t *form)
{
    return ((long long)form->n + HGEMM_PACKED_STRIP - 1) / HGEMM_PACKED_STRIP;
}
HGEMM_PACKED long long packed_units(const packed_form_t *form)
{
    const long long k = ((long long)form->k + HGEMM_PACKED_K - 1) / HGEMM_PACKED_K * HGEMM_PACKED_K;
    return k * packed_bits(form) * HGEMM_PACKED_STRIP / 8 / HGEMM_PACKED_UNIT;
}
HGEMM_PACKED long long packed_chunks(const packed_form_t *form)
{
    return packed_strips(form) * packed_units(form) * (HGEMM_PACKED_UNIT / 16);
}

HGEMM_PACKED int packed_scale_bytes(const packed_form_t *form)
{
    return form->type_scale == PACKED_F32 ? 4 : 2;
}

/* Scales, with those that are added. */
HGEMM_PACKED long long packed_scales(const packed_form_t *form)
{
    return packed_strips(form) * form->slots * HGEMM_PACKED_STRIP;
}

/* A code as it is given, 0 outside of W. */
HGEMM_PACKED unsigned given_code(const packed_form_t *form, const unsigned char *codes, long long row, long long k)
{
    if (row >= form->n || k >= form->k)
        return 0;
    if (packed_bits(form) == 8)
        return codes[row * form->k + k];
    return codes[row * (form->k / 2) + k / 2] >> (k % 2 * 4) & 15u;
}

/* What is added, modulo the codes, to make them unsigned. */
HGEMM_PACKED unsigned packed_bias(const packed_form_t *form)
{
#define CODE(value, name, bits, kind, lowest, ...) (lowest) < 0 && form->code == PACKED_##value ? (unsigned)-(lowest):
    return
#include "codes.def"
        0;
}

/* Word w of chunk number `chunk` of the codes. */
HGEMM_PACKED unsigned packed_word(const packed_form_t *form, const unsigned char *codes, long long chunk, int w)
{
    const long long unit = chunk / 32, strip = unit / packed_units(form);
    const int lane = (int)(chunk % 32), is_8 = packed_bits(form) == 8;
    const long long k = unit % packed_units(form) * (is_8 ? 16 : 32) + (is_8 ? w / 2 : w) * 8 + lane % 4 * 2;
    const int first = is_8 ? w % 2 * 2 : 0, tiles = is_8 ? 2 : 4;
    unsigned word = 0;
    for (int j = 0; j < tiles; j++)
        for (int e = 0; e < 2; e++) {
            const unsigned code =
                given_code(form, codes, strip * HGEMM_PACKED_STRIP + (first + j) * 8 + lane / 4, k + e);
            const int at = is_8 ? j * 16 + e * 8 : form->code == PACKED_TABLE16 ? j * 8 + e * 4 : j * 4 + e * 16;
            word |= (code ^ packed_bias(form)) << at;
        }
    return word;
}

/* The row of W that scale number i of a strip is of, within the strip; and zero number i. */
HGEMM_PACKED int packed_scale_row(int i)
{
    return i / 2 % 4 * 8 + i / 8 * 2 + i % 2;
}
HGEMM_PACKED int packed_zero_row(int i)
{
    return i % 4 * 8 + i / 4;
}

/* Whether a group has a code that is NaN. */
HGEMM_PACKED int has_nan(const packed_form_t *form, const unsigned char *codes, long long row, int group)
{
    if (form->code != PACKED_E4M3)
        return 0;
    const long long begin = (long long)group << form->log_group, after = (long long)(group + 1) << form->log_group;
    for (long long k = begin; k < after && k < form->k; k++)
        if ((given_code(form, codes, row, k) & 0x7f) == 0x7f)
            return 1;
    return 0;
}

/* Writes scale number i, with its offset or zero. */
HGEMM_PACKED void pack_scale(const pack_args_t *args, long long i)
{
    const packed_form_t *form = &args->form;
    const long long strip = i / HGEMM_PACKED_STRIP / form->slots;
    const int group = (int)(i / HGEMM_PACKED_STRIP % form->slots), place = (int)(i % HGEMM_PACKED_STRIP);
    const long long row = strip * HGEMM_PACKED_STRIP + packed_scale_row(place);
    const long long zero_row = strip * HGEMM_PACKED_STRIP + packed_zero_row(place);
    const long long from = row * form->groups + group;
    const int is_there = row < form->n && group < form->groups;
    const int is_nan = is_there && has_nan(form, (const unsigned char *)args->codes, row, group);
    char *const packed = (char *)args->packed;
    if (packed_scale_bytes(form) == 4) {
        ((unsigned *)(packed + form->scales_at))[i] = is_nan     ? 0x7fc00000u
                                                      : is_there ? ((const unsigned *)args->scales)[from]
                                                                 : 0;
        if (form->zero == PACKED_OFFSETS)
            ((unsigned *)(packed + form->zeros_at))[i] = is_there ? ((const unsigned *)args->zeros)[from] : 0;
    } else {
        ((unsigned short *)(packed + form->scales_at))[i] =
            (unsigned short)(is_nan     ? 0x7fff
                             : is_there ? ((const unsigned short *)args->scales)[from]
                                        : 0);
        if (form->zero == PACKED_OFFSETS)
            ((unsigned short *)(packed + form->zeros_at))[i] =
                (unsigned short)(is_there ? ((const unsigned short *)args->zeros)[from] : 0);
    }
    if (form->zero == PACKED_ZERO_CODES) {
        const int is_zero_there = zero_row < form->n && group < form->groups;
        const unsigned zero = is_zero_there ? ((const unsigned char *)args->zeros)[zero_row * form->groups + group] : 0;
        ((unsigned char *)(packed + form->zeros_at))[i] = (unsigned char)(zero + packed_bias(form));
    }
}

/* ---- Back ----------------------------------------------------------------------------------------------------------
 */

/* A code as it is packed. */
HGEMM_PACKED unsigned packed_code(const packed_form_t *form, const unsigned char *packed, long long row, long long k)
{
    const int is_8 = packed_bits(form) == 8, depth = is_8 ? 16 : 32, column = (int)(row % HGEMM_PACKED_STRIP);
    const int slice = (int)(k % depth / 8), t = (int)(k % 8 / 2), e = (int)(k % 2), j = column / 8;
    const long long unit = row / HGEMM_PACKED_STRIP * packed_units(form) + k / depth;
    const long long at = unit * HGEMM_PACKED_UNIT + (column % 8 * 4 + t) * 16;
    if (is_8)
        return packed[at + slice * 8 + j * 2 + e];
    if (form->code == PACKED_TABLE16)
        return packed[at + slice * 4 + j] >> (e * 4) & 15u;
    return packed[at + slice * 4 + e * 2 + j / 2] >> (j % 2 * 4) & 15u;
}

/* Where a row's scale lies among those of its strip and group, and its zero. */
HGEMM_PACKED int packed_scale_place(int row)
{
    return row % 8 / 2 * 8 + row / 8 * 2 + row % 2;
}
HGEMM_PACKED int packed_zero_place(int row)
{
    return row % 8 * 4 + row / 8;
}

#ifdef __CUDACC__
#include "../../ptx/insn.cuh"
#define FLOAT_OF_HALF(bits) half_to_float(bits)
#define HALF_OF_FLOAT(x) (pack_halves(x, 0) & 0xffff)
#define FLOAT_OF_BITS(bits) __uint_as_float(bits)
#define BITS_OF_FLOAT(x) __float_as_uint(x)
#define FMA(x, y, z) __fmaf_rn(x, y, z)
#else
#include "hgemm.h"
#include <math.h>
#include <string.h>
#define FLOAT_OF_HALF(bits) hgemm_half_to_float((uint16_t)(bits))
#define HALF_OF_FLOAT(x) hgemm_half_from_float(x)
#define FMA(x, y, z) fmaf(x, y, z)
HGEMM_PACKED float FLOAT_OF_BITS(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
HGEMM_PACKED unsigned BITS_OF_FLOAT(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
#endif

/* k's of a unit; and the units of a strip in which columns that are unpacked lie. */
HGEMM_PACKED int packed_depth(const packed_form_t *form)
{
    return packed_bits(form) == 8 ? 16 : 32;
}
HGEMM_PACKED long long unpacked_units(const pack_args_t *args)
{
    const int depth = packed_depth(&args->form);
    return (args->first + args->count - 1) / depth - args->first / depth + 1;
}

/* Scale, or offset, number i of those that begin at p. */
HGEMM_PACKED float packed_float(const packed_form_t *form, const char *p, long long i)
{
    if (form->type_scale == PACKED_F32)
        return ((const float *)p)[i];
    const unsigned bits = ((const unsigned short *)p)[i];
    return form->type_scale == PACKED_F16 ? FLOAT_OF_HALF(bits) : FLOAT_OF_BITS(bits << 16);
}

/* An element of W, rounded to single precision. */
HGEMM_PACKED float packed_element(const packed_form_t *form, const char *packed, long long row, long long k)
{
    const unsigned code = packed_code(form, (const unsigned char *)packed, row, k);
    const int in_strip = (int)(row % HGEMM_PACKED_STRIP);
    const long long first = (row / HGEMM_PACKED_STRIP * form->slots + (k >> form->log_group)) * HGEMM_PACKED_STRIP;
    const long long place = first + packed_scale_place(in_strip);
    const float scale = packed_float(form, packed + form->scales_at, place);
    if (form->code == PACKED_TABLE16)
        return scale * FLOAT_OF_HALF(form->table[code]);
    if (form->code == PACKED_E4M3) /* a half's exponent has a bit more, and its bias is 8 more */
        return (code & 0x7f) == 0x7f ? scale : scale * (256 * FLOAT_OF_HALF((code & 0x80) << 8 | (code & 0x7f) << 7));
    if (form->zero == PACKED_OFFSETS)
        return FMA(scale, (float)((int)code - (int)packed_bias(form)),
                   packed_float(form, packed + form->zeros_at, place));
    const unsigned zero = form->zero == PACKED_ZERO_CODES
                              ? ((const unsigned char *)(packed + form->zeros_at))[first + packed_zero_place(in_strip)]
                              : packed_bias(form);
    return scale * (float)((int)code - (int)zero);
}

/* The bfloat16 of a number, to nearest even; NaN stays NaN. */
HGEMM_PACKED unsigned bfloat_of_float(float x)
{
    const unsigned bits = BITS_OF_FLOAT(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/* Writes an element of the matrix that is unpacked. */
HGEMM_PACKED void unpack_element(const pack_args_t *args, long long row, long long k)
{
    const float x = packed_element(&args->form, (const char *)args->packed, row, k);
    const long long at = row * args->ld + k - args->first;
    if (args->type == PACKED_F32)
        ((float *)args->matrix)[at] = x;
    else if (args->type == PACKED_F16)
        ((unsigned short *)args->matrix)[at] = (unsigned short)HALF_OF_FLOAT(x);
    else
        ((unsigned short *)args->matrix)[at] = (unsigned short)bfloat_of_float(x);
}

#endif
