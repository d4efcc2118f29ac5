/* SPDX-License-Identifier: MIT */
/*
 * hmma.c - HMMA.1688, exactly as the published model of the Turing tensor core
 * has it (MMA-Sim): each output is one fused sum of nine terms, C and eight
 * products.
 *
 *   1. A term is significand x 2^exponent.  Significands are not normalised: a
 *      subnormal half keeps exponent -14, a product of two halves has the sum
 *      of their exponents and a significand in [1, 4).
 *   2. Every term is cut toward zero to a multiple of 2^(E - F), where E is the
 *      largest exponent of a term that is not zero and F is 24 (Hopper: 25).
 *   3. The cut terms are added exactly.
 *   4. The sum is rounded once: to nearest even for halves, toward zero for floats.
 *
 * A zero sum is +0.  NaN, Inf - Inf and Inf * 0 give 0x7fff or 0x7fffffff.
 *
 * In units of 2^(E - F) a product is below 2^(F+2) and C below 2^(F+1), so the
 * sum is below 8 * 2^27 * (2047/2048)^2 + 2^26 < 2^31: 32-bit integers hold it.
 */
#include "hmma.h"

#include "launch.h"
#include "transpose.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86 1
#include <immintrin.h>
#endif

enum { NO_EXPONENT = -1000 };

typedef struct term {
    int32_t sig; /* value = sig * 2^(exp - 10); floats: 2^(exp - 23) */
    int32_t exp; /* NO_EXPONENT for zero: it never is the largest       */
} term_t;

static term_t half_term(uint16_t h)
{
    int32_t exp = h >> 10 & 31, sig = h & 1023;
    if (exp)
        sig |= 1024;
    else
        exp = 1;
    return (term_t){h & 0x8000 ? -sig : sig, sig ? exp - 15 : NO_EXPONENT};
}

static term_t float_term(uint32_t f)
{
    int32_t exp = f >> 23 & 255, sig = f & 0x7fffff;
    if (exp)
        sig |= 0x800000;
    else
        exp = 1;
    return (term_t){f >> 31 ? -sig : sig, sig ? exp - 127 : NO_EXPONENT};
}

/* value * 2^-shift, cut toward zero; a negative shift is exact. */
static int32_t cut(int32_t value, int shift)
{
    if (shift <= 0)
        return value * (1 << -shift);
    if (shift > 31)
        return 0;
    return value < 0 ? -(-value >> shift) : value >> shift;
}

/* Position of the highest bit of x, which is not 0. */
static int top_bit(uint32_t x)
{
    int n = 0;
    for (int step = 16; step; step >>= 1)
        if (x >> step) {
            x >>= step;
            n += step;
        }
    return n;
}

/* sum * 2^unit as a half, to nearest even. */
static uint16_t round_half(int32_t sum, int unit)
{
    uint32_t sign = sum < 0 ? 0x8000 : 0, mag = sum < 0 ? 0u - (uint32_t)sum : (uint32_t)sum;
    if (!mag)
        return 0;
    int exp = top_bit(mag) + unit; /* of the leading bit       */
    int quantum = (exp < -14 ? -14 : exp) - 10;
    int shift = quantum - unit; /* bits below the last kept */
    uint32_t kept;
    if (shift <= 0)
        kept = mag << -shift;
    else if (shift > 32)
        kept = 0;
    else {
        uint64_t wide = mag, half = 1ull << (shift - 1), rest = wide & (2 * half - 1);
        kept = (uint32_t)(wide >> shift);
        if (rest > half || (rest == half && (kept & 1)))
            kept++;
    }
    /* kept carries the hidden bit, which bumps the exponent field by one; a
     * carry out of the rounding does the same. */
    uint32_t bits = ((uint32_t)(quantum + 10 + 14) << 10) + kept;
    return (uint16_t)(sign | (bits > 0x7c00 ? 0x7c00 : bits));
}

/* sum * 2^unit as a float, toward zero. */
static uint32_t cut_float(int32_t sum, int unit)
{
    uint32_t sign = sum < 0 ? 0x80000000u : 0, mag = sum < 0 ? 0u - (uint32_t)sum : (uint32_t)sum;
    if (!mag)
        return 0;
    int exp = top_bit(mag) + unit;
    int quantum = (exp < -126 ? -126 : exp) - 23, shift = quantum - unit;
    uint32_t kept = shift <= 0 ? mag << -shift : shift > 31 ? 0 : mag >> shift;
    return sign | (((uint32_t)(quantum + 23 + 126) << 23) + kept);
}

static bool half_special(uint16_t h)
{
    return (h & 0x7c00) == 0x7c00;
}

/* The output when some input is Inf or NaN: 0 finite after all, else 1 and bits. */
static bool special(bool f32, const uint16_t *a, const uint16_t *b, uint32_t c, uint32_t *out)
{
    uint32_t frac = f32 ? c & 0x7fffff : c & 1023, exps = f32 ? c >> 23 & 255 : c >> 10 & 31;
    uint32_t sign = f32 ? c >> 31 : c >> 15;
    bool nan = false, inf[2] = {false, false};
    if (exps == (f32 ? 255u : 31u)) {
        nan = frac != 0;
        inf[sign] = frac == 0;
    }
    for (int k = 0; k < 8; k++) {
        uint16_t x = a[k], y = b[k];
        if (!half_special(x) && !half_special(y))
            continue;
        if ((half_special(x) && (x & 1023)) || (half_special(y) && (y & 1023)) || !(x & 0x7fff) || !(y & 0x7fff))
            nan = true;
        else
            inf[(x ^ y) >> 15] = true;
    }
    if (nan || (inf[0] && inf[1]))
        *out = f32 ? 0x7fffffff : 0x7fff;
    else if (inf[0] || inf[1])
        *out = (f32 ? 0x7f800000u : 0x7c00u) | (inf[1] ? (f32 ? 0x80000000u : 0x8000u) : 0);
    else
        return false;
    return true;
}

static uint32_t fused_sum(bool f32, int fraction, const term_t a[8], const term_t b[8], term_t c)
{
    int top = c.exp;
    for (int k = 0; k < 8; k++)
        if (a[k].exp + b[k].exp > top)
            top = a[k].exp + b[k].exp;
    if (top < NO_EXPONENT / 2) /* nothing but zeros */
        return 0;
    int32_t sum = cut(c.sig, (f32 ? 23 : 10) - fraction + top - c.exp);
    for (int k = 0; k < 8; k++)
        sum += cut(a[k].sig * b[k].sig, 20 - fraction + top - a[k].exp - b[k].exp);
    return f32 ? cut_float(sum, top - fraction) : round_half(sum, top - fraction);
}

void turing_hmma_portable(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                          const uint32_t (*c)[32], uint32_t (*d)[32])
{
    uint16_t ha[16][8], hb[8][8], hc[16][8] = {{0}};
    term_t ta[16][8], tb[8][8];
    uint32_t out[16][8];
    bool row_special[16] = {false}, col_special[8] = {false};
    memcpy(ha, a, sizeof ha);
    memcpy(hb, b, sizeof hb);
    if (!f32)
        memcpy(hc, c, sizeof hc);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 8; k++) {
            ta[i][k] = half_term(ha[i][k]);
            row_special[i] |= half_special(ha[i][k]);
        }
    for (int j = 0; j < 8; j++)
        for (int k = 0; k < 8; k++) {
            tb[j][k] = half_term(hb[j][k]);
            col_special[j] |= half_special(hb[j][k]);
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            uint32_t x = f32 ? c[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2] : hc[i][j];
            bool c_special = f32 ? (x & 0x7f800000) == 0x7f800000 : half_special((uint16_t)x);
            if (!(row_special[i] || col_special[j] || c_special) || !special(f32, ha[i], hb[j], x, &out[i][j]))
                out[i][j] = fused_sum(f32, fraction, ta[i], tb[j], f32 ? float_term(x) : half_term((uint16_t)x));
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++)
            if (f32)
                d[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2] = out[i][j];
            else
                hc[i][j] = (uint16_t)out[i][j];
    if (!f32)
        memcpy(d, hc, sizeof hc);
}

#ifdef HAVE_X86
/*
 * The vector form keeps terms as floats.  A product of halves has 22 bits, so
 * the float product is exact, and so is its scaling by 2^(F - E), a power of
 * two (a scaled term that leaves the float range downward is below one unit
 * and is cut to zero anyway).  Conversion to integer then cuts toward zero:
 * step 2 above.  Exponents are carried as powers of two, so that E comes from
 * multiplications and maxima, and zeros (power 0) never win.
 *
 * E is clamped from below at -28, the least exponent of a product.  It can lie
 * lower only when all products are zero: for halves the sum is then C, which
 * needs no cutting at any E up to -14 + 14; for floats C is passed through.
 *
 * Rounding to a half goes through a float: a sum of 2^24 or more first has its
 * low 7 bits folded into one sticky bit, which leaves at least 17 bits, enough
 * for the final conversion to round as if from the exact sum.
 */
enum { POW_MIN_HALF = (127 - 14) << 23, POW_MIN_FLOAT = 1 << 23, POW_MIN_PRODUCT = (127 - 28) << 23 };

#define AVX2 __attribute__((target("avx2,f16c")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,f16c")))

AVX2 static inline bool any_special(bool f32, const uint32_t a[2][32], const uint32_t b[32], const uint32_t (*c)[32])
{
    const __m256i top = _mm256_set1_epi16(0x7c00);
    __m256i hit = _mm256_setzero_si256();
    for (int i = 0; i < 12; i++) {
        const uint32_t *p = i < 8 ? a[i / 4] + i % 4 * 8 : b + 8 * (i - 8);
        __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)p), top);
        hit = _mm256_or_si256(hit, _mm256_cmpeq_epi16(x, top));
    }
    const __m256i ftop = f32 ? _mm256_set1_epi32(0x7f800000) : top;
    for (int i = 0; i < (f32 ? 16 : 8); i++) {
        __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(c[i / 4] + i % 4 * 8)), ftop);
        hit = _mm256_or_si256(hit, f32 ? _mm256_cmpeq_epi32(x, ftop) : _mm256_cmpeq_epi16(x, ftop));
    }
    return !_mm256_testz_si256(hit, hit);
}

/* 2^exponent of each value, unnormalised below `least`; 0 for zero. */
AVX2 static inline __m256 power_of(__m256 x, int least)
{
    __m256i p = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7f800000));
    p = _mm256_max_epi32(p, _mm256_set1_epi32(least));
    return _mm256_and_ps(_mm256_castsi256_ps(p), _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_OQ));
}

/* Where any_special: `finite` computes all outputs, of which those with Inf or NaN among their inputs, and no others,
 * come out wrong. They follow from these inputs alone, and are put right. */
static void hmma_with_specials(turing_hmma_fn *finite, bool f32, int fraction, const uint32_t a[2][32],
                               const uint32_t b[32], const uint32_t (*c)[32], uint32_t (*d)[32])
{
    uint16_t ha[16][8], hb[8][8], hc[16][8] = {{0}}, hd[16][8];
    uint32_t fc[4][32] = {{0}};
    bool row_special[16] = {false}, col_special[8] = {false};
    memcpy(ha, a, sizeof ha); /* d may be any of them */
    memcpy(hb, b, sizeof hb);
    memcpy(f32 ? (void *)fc : hc, c, f32 ? sizeof fc : sizeof hc);
    finite(f32, fraction, a, b, c, d);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 8; k++)
            row_special[i] |= half_special(ha[i][k]);
    for (int j = 0; j < 8; j++)
        for (int k = 0; k < 8; k++)
            col_special[j] |= half_special(hb[j][k]);
    memcpy(hd, d, sizeof hd); /* of halves */
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            const uint32_t x = f32 ? fc[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2] : hc[i][j];
            const bool c_special = f32 ? (x & 0x7f800000) == 0x7f800000 : half_special((uint16_t)x);
            uint32_t out;
            if (!(row_special[i] || col_special[j] || c_special) || !special(f32, ha[i], hb[j], x, &out))
                continue;
            if (f32)
                d[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2] = out;
            else
                hd[i][j] = (uint16_t)out;
        }
    if (!f32)
        memcpy(d, hd, sizeof hd);
}

AVX2 static void finite_avx2(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                             const uint32_t (*c)[32], uint32_t (*d)[32])
{
    __m128i hb[8];
    __m256 vb[8], pb[8];
    _Alignas(32) float va[16][8], pa[16][8];
    for (int k = 0; k < 8; k++)
        hb[k] = _mm_loadu_si128((const __m128i *)(b + 4 * k));
    emu_transpose_8x8(hb);
    for (int k = 0; k < 8; k++) {
        vb[k] = _mm256_cvtph_ps(hb[k]);
        pb[k] = power_of(vb[k], POW_MIN_HALF);
    }
    for (int i = 0; i < 16; i++) {
        __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(a[i / 8] + i % 8 * 4)));
        _mm256_store_ps(va[i], x);
        _mm256_store_ps(pa[i], power_of(x, POW_MIN_HALF));
    }
    const __m256i sign_bit = _mm256_set1_epi32((int)0x80000000u);
    for (int i = 0; i < 16; i++) {
        const uint32_t *c0 = c[f32 ? i / 8 * 2 : i / 8] + i % 8 * 4;
        __m256 vc;
        if (f32) {
            __m128 x = _mm_loadu_ps((const float *)c0), y = _mm_loadu_ps((const float *)(c0 + 32));
            vc = _mm256_set_m128(_mm_unpackhi_ps(x, y), _mm_unpacklo_ps(x, y));
        } else
            vc = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)c0));

        __m256 top = power_of(vc, f32 ? POW_MIN_FLOAT : POW_MIN_HALF);
        for (int k = 0; k < 8; k++)
            top = _mm256_max_ps(top, _mm256_mul_ps(_mm256_set1_ps(pa[i][k]), pb[k]));
        __m256i e = _mm256_castps_si256(top), floor = _mm256_set1_epi32(POW_MIN_PRODUCT);
        __m256i alone = _mm256_cmpgt_epi32(floor, e);
        e = _mm256_max_epi32(e, floor);
        __m256 scale =
            _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32((int)((254u + (unsigned)fraction) << 23)), e));
        __m256 unit = _mm256_castsi256_ps(_mm256_sub_epi32(e, _mm256_set1_epi32(fraction << 23)));

        __m256i sum = _mm256_cvttps_epi32(_mm256_mul_ps(vc, scale));
        for (int k = 0; k < 8; k++) {
            __m256 p = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(va[i][k]), vb[k]), scale);
            sum = _mm256_add_epi32(sum, _mm256_cvttps_epi32(p));
        }

        __m256i sign = _mm256_and_si256(sum, sign_bit), mag = _mm256_abs_epi32(sum);
        if (f32) {
            __m256 y = _mm256_cvtepi32_ps(mag);
            __m256i over = _mm256_cmpgt_epi32(_mm256_cvttps_epi32(y), mag);
            y = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), over));
            y = _mm256_or_ps(_mm256_mul_ps(y, unit), _mm256_castsi256_ps(sign));
            y = _mm256_blendv_ps(y, _mm256_add_ps(vc, _mm256_setzero_ps()), _mm256_castsi256_ps(alone));
            __m128 lo = _mm256_castps256_ps128(y), hi = _mm256_extractf128_ps(y, 1);
            float *out = (float *)(d[i / 8 * 2] + i % 8 * 4);
            _mm_storeu_ps(out, _mm_shuffle_ps(lo, hi, _MM_SHUFFLE(2, 0, 2, 0)));
            _mm_storeu_ps(out + 32, _mm_shuffle_ps(lo, hi, _MM_SHUFFLE(3, 1, 3, 1)));
        } else {
            const __m256i low = _mm256_set1_epi32(127);
            __m256i rest = _mm256_and_si256(mag, low), kept = _mm256_andnot_si256(low, mag);
            __m256i sticky =
                _mm256_andnot_si256(_mm256_cmpeq_epi32(rest, _mm256_setzero_si256()), _mm256_set1_epi32(128));
            __m256i large = _mm256_cmpgt_epi32(mag, _mm256_set1_epi32((1 << 24) - 1));
            mag = _mm256_blendv_epi8(mag, _mm256_or_si256(kept, sticky), large);
            __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(mag), unit);
            y = _mm256_or_ps(y, _mm256_castsi256_ps(sign));
            _mm_storeu_si128((__m128i *)(d[i / 8] + i % 8 * 4), _mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
        }
    }
}

AVX2 static void hmma_avx2(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                           const uint32_t (*c)[32], uint32_t (*d)[32])
{
    if (any_special(f32, a, b, c))
        hmma_with_specials(finite_avx2, f32, fraction, a, b, c, d);
    else
        finite_avx2(f32, fraction, a, b, c, d);
}

/* emu_transpose_8x8 in each 128-bit half. */
AVX2 static inline void interleave_two_8x8(const __m256i in[8], __m256i out[8])
{
    for (int i = 0; i < 4; i++) {
        out[2 * i] = _mm256_unpacklo_epi16(in[i], in[i + 4]);
        out[2 * i + 1] = _mm256_unpackhi_epi16(in[i], in[i + 4]);
    }
}

AVX2 static inline void transpose_two_8x8(__m256i r[8])
{
    __m256i s[8];
    interleave_two_8x8(r, s);
    interleave_two_8x8(s, r);
    interleave_two_8x8(r, s);
    for (int i = 0; i < 8; i++)
        r[i] = s[i];
}

/* A 16x8 matrix of halves as its eight columns. */
AVX2 static inline void load_columns(const uint32_t (*m)[32], __m256i col[8])
{
    for (int i = 0; i < 8; i++)
        col[i] = _mm256_loadu2_m128i((const __m128i *)(m[1] + 4 * i), (const __m128i *)(m[0] + 4 * i));
    transpose_two_8x8(col);
}

AVX512 static inline __m512 power_of_16(__m512 x, int least)
{
    __m512i p = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7f800000));
    p = _mm512_max_epi32(p, _mm512_set1_epi32(least));
    return _mm512_castsi512_ps(_mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ), p));
}

/* 4x4 transposes within 128-bit quarters: out[r] quarter q = words 4q + r of in[0..3]. */
AVX512 static inline void interleave_4(const __m512 in[4], __m512 out[4])
{
    __m512 a = _mm512_unpacklo_ps(in[0], in[1]), b = _mm512_unpackhi_ps(in[0], in[1]);
    __m512 c = _mm512_unpacklo_ps(in[2], in[3]), d = _mm512_unpackhi_ps(in[2], in[3]);
    out[0] = _mm512_shuffle_ps(a, c, _MM_SHUFFLE(1, 0, 1, 0));
    out[1] = _mm512_shuffle_ps(a, c, _MM_SHUFFLE(3, 2, 3, 2));
    out[2] = _mm512_shuffle_ps(b, d, _MM_SHUFFLE(1, 0, 1, 0));
    out[3] = _mm512_shuffle_ps(b, d, _MM_SHUFFLE(3, 2, 3, 2));
}

/* The same with a column of 16 outputs to a vector. */
AVX512 static void finite_avx512(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                                 const uint32_t (*c)[32], uint32_t (*d)[32])
{
    __m256i half[8];
    __m512 va[8], pa[8], vc[8], y[8];
    _Alignas(64) float vb[8][8], pb[8][8];
    load_columns(a, half);
    for (int k = 0; k < 8; k++) {
        va[k] = _mm512_cvtph_ps(half[k]);
        pa[k] = power_of_16(va[k], POW_MIN_HALF);
    }
    for (int j = 0; j < 8; j += 2) {
        __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(b + 4 * j)));
        _mm512_store_ps(vb[j], x);
        _mm512_store_ps(pb[j], power_of_16(x, POW_MIN_HALF));
    }
    if (f32)
        for (int q = 0; q < 2; q++) {
            __m512 row[4], col[4];
            for (int r = 0; r < 4; r++) { /* quarter q of row[r]: the four columns of row 4 q + r */
                __m256 lo = _mm256_loadu2_m128((const float *)c[q] + 4 * r + 16, (const float *)c[q] + 4 * r);
                __m256 hi = _mm256_loadu2_m128((const float *)c[q + 2] + 4 * r + 16, (const float *)c[q + 2] + 4 * r);
                row[r] = _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
            }
            interleave_4(row, col);
            for (int t = 0; t < 4; t++)
                vc[2 * t + q] = col[t];
        }
    else {
        load_columns(c, half);
        for (int j = 0; j < 8; j++)
            vc[j] = _mm512_cvtph_ps(half[j]);
    }
    for (int j = 0; j < 8; j++) {
        __m512 top = power_of_16(vc[j], f32 ? POW_MIN_FLOAT : POW_MIN_HALF);
        for (int k = 0; k < 8; k++)
            top = _mm512_max_ps(top, _mm512_mul_ps(pa[k], _mm512_set1_ps(pb[j][k])));
        __m512i e = _mm512_castps_si512(top), floor = _mm512_set1_epi32(POW_MIN_PRODUCT);
        __mmask16 alone = _mm512_cmpgt_epi32_mask(floor, e);
        e = _mm512_max_epi32(e, floor);
        __m512 scale =
            _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32((int)((254u + (unsigned)fraction) << 23)), e));
        __m512 unit = _mm512_castsi512_ps(_mm512_sub_epi32(e, _mm512_set1_epi32(fraction << 23)));
        __m512i sum = _mm512_cvttps_epi32(_mm512_mul_ps(vc[j], scale));
        for (int k = 0; k < 8; k++) {
            __m512 p = _mm512_mul_ps(_mm512_mul_ps(va[k], _mm512_set1_ps(vb[j][k])), scale);
            sum = _mm512_add_epi32(sum, _mm512_cvttps_epi32(p));
        }
        __m512 x = _mm512_cvt_roundepi32_ps(sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        if (f32) {
            x = _mm512_mul_ps(x, unit);
            y[j] = _mm512_mask_add_ps(x, alone, vc[j], _mm512_setzero_ps());
        } else {
            /* Cut to a float, then made odd where that lost something. */
            __mmask16 lost = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(x), sum);
            __m512i odd =
                _mm512_mask_or_epi32(_mm512_castps_si512(x), lost, _mm512_castps_si512(x), _mm512_set1_epi32(1));
            half[j] = _mm512_cvtps_ph(_mm512_mul_ps(_mm512_castsi512_ps(odd), unit), _MM_FROUND_TO_NEAREST_INT);
        }
    }
    if (f32)
        for (int q = 0; q < 2; q++) {
            __m512 col[4] = {y[q], y[2 + q], y[4 + q], y[6 + q]}, row[4];
            interleave_4(col, row);
            for (int r = 0; r < 4; r++) {
                __m256 lo = _mm512_castps512_ps256(row[r]), hi = _mm512_extractf32x8_ps(row[r], 1);
                _mm256_storeu2_m128((float *)d[q] + 4 * r + 16, (float *)d[q] + 4 * r, lo);
                _mm256_storeu2_m128((float *)d[q + 2] + 4 * r + 16, (float *)d[q + 2] + 4 * r, hi);
            }
        }
    else {
        transpose_two_8x8(half);
        for (int i = 0; i < 8; i++)
            _mm256_storeu2_m128i((__m128i *)(d[1] + 4 * i), (__m128i *)(d[0] + 4 * i), half[i]);
    }
}

AVX512 static void hmma_avx512(bool f32, int fraction, const uint32_t a[2][32], const uint32_t b[32],
                               const uint32_t (*c)[32], uint32_t (*d)[32])
{
    if (any_special(f32, a, b, c))
        hmma_with_specials(finite_avx512, f32, fraction, a, b, c, d);
    else
        finite_avx512(f32, fraction, a, b, c, d);
}
#endif

turing_hmma_fn *turing_hmma_avx2(void)
{
#ifdef HAVE_X86
    if (__builtin_cpu_supports("avx2")) /* such a CPU has F16C too */
        return hmma_avx2;
#endif
    return NULL;
}

turing_hmma_fn *turing_hmma_avx512(void)
{
#ifdef HAVE_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2"))
        return hmma_avx512;
#endif
    return NULL;
}

turing_hmma_fn *turing_hmma_best(void)
{
    if (turing_hmma_avx512())
        return turing_hmma_avx512();
    return turing_hmma_avx2() ? turing_hmma_avx2() : turing_hmma_portable;
}

void turing_hmma_1688(bool f32, turing_tensor_t tensor, const uint16_t *a, const uint16_t *bt, const void *c, void *d)
{
    uint32_t ra[2][32], rb[32], rc[4][32];
    memcpy(ra, a, sizeof ra);
    memcpy(rb, bt, sizeof rb);
    if (!f32)
        memcpy(rc, c, 2 * sizeof rc[0]);
    else
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++)
                memcpy(&rc[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2], (const float *)c + 8 * i + j, 4);
    turing_hmma_best()(f32, turing_tensor_fraction(tensor), ra, rb, rc, rc);
    if (!f32)
        memcpy(d, rc, 2 * sizeof rc[0]);
    else
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++)
                memcpy((float *)d + 8 * i + j, &rc[i / 8 * 2 + j % 2][i % 8 * 4 + j / 2], 4);
}
