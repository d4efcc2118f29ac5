/* SPDX-License-Identifier: MIT */
/*
 * turing_hmma_test - HMMA arithmetic on random bit patterns: every code path of
 * this CPU against a slow reference that works on 512-bit integers and knows
 * nothing of how the fast ones are made.
 *
 * The reference holds a term as an integer multiple of 2^-320, in 512 bits of
 * 32-bit limbs, so that cutting, adding and rounding are operations on bits.
 */
#include "hmma.h"
#include "turing_test.h"

#include <math.h>

enum { UNIT = -320, LIMBS = 16 };

typedef struct big {
    uint32_t limb[LIMBS]; /* little-endian, two's complement */
} big_t;

static big_t big_negate(big_t x)
{
    uint64_t carry = 1;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint32_t)~x.limb[i];
        x.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return x;
}

static big_t big_add(big_t x, big_t y)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)x.limb[i] + y.limb[i];
        x.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return x;
}

static bool big_bit(const big_t *x, int exponent)
{
    int i = exponent - UNIT;
    return x->limb[i / 32] >> i % 32 & 1;
}

/* m * 2^exponent */
static big_t big_make(uint32_t m, int exponent)
{
    big_t x = {{0}};
    int at = exponent - UNIT;
    uint64_t wide = (uint64_t)m << at % 32;
    x.limb[at / 32] = (uint32_t)wide;
    x.limb[at / 32 + 1] = (uint32_t)(wide >> 32);
    return x;
}

/* Clears the bits below 2^exponent of a number that is not negative. */
static big_t big_cut(big_t x, int exponent)
{
    for (int i = 0; i < exponent - UNIT && i < 32 * LIMBS; i++)
        x.limb[i / 32] &= ~(1u << i % 32);
    return x;
}

static int big_top(const big_t *x) /* exponent of the highest bit, or UNIT - 1 */
{
    for (int i = 32 * LIMBS - 1; i >= 0; i--)
        if (x->limb[i / 32] >> i % 32 & 1)
            return i + UNIT;
    return UNIT - 1;
}

typedef struct parts {
    uint32_t m; /* integer significand */
    int scale;  /* value = m * 2^scale */
    int e;      /* exponent as the model counts it */
    bool negative, inf, nan;
} parts_t;

static parts_t parts(uint32_t x, bool is_float)
{
    const int fraction = is_float ? 23 : 10, bias = is_float ? 127 : 15, top = is_float ? 255 : 31;
    parts_t p = {.m = x & ((1u << fraction) - 1)};
    int e = (int)(x >> fraction) & top;
    p.negative = x >> (is_float ? 31 : 15) & 1;
    p.inf = e == top && p.m == 0;
    p.nan = e == top && p.m != 0;
    if (e)
        p.m |= 1u << fraction;
    p.e = (e ? e : 1) - bias;
    p.scale = p.e - fraction;
    return p;
}

static uint32_t reference(bool f32, int fraction, const uint16_t a[8], const uint16_t b[8], uint32_t c)
{
    parts_t t[9];
    bool nan = false, plus = false, minus = false;
    t[8] = parts(c, f32);
    for (int k = 0; k < 8; k++) {
        parts_t x = parts(a[k], false), y = parts(b[k], false);
        t[k] =
            (parts_t){.m = x.m * y.m, .scale = x.scale + y.scale, .e = x.e + y.e, .negative = x.negative != y.negative};
        t[k].inf = x.inf || y.inf;
        t[k].nan = x.nan || y.nan || (x.inf && y.m == 0) || (y.inf && x.m == 0);
    }
    int e = -10000;
    for (int k = 0; k < 9; k++) {
        nan |= t[k].nan;
        plus |= t[k].inf && !t[k].negative;
        minus |= t[k].inf && t[k].negative;
        if (t[k].m && t[k].e > e)
            e = t[k].e;
    }
    if (nan || (plus && minus))
        return f32 ? 0x7fffffff : 0x7fff;
    if (plus || minus)
        return (f32 ? 0x7f800000 : 0x7c00) | (minus ? f32 ? 0x80000000u : 0x8000 : 0);
    big_t sum = {{0}};
    for (int k = 0; k < 9; k++)
        if (t[k].m) {
            big_t x = big_cut(big_make(t[k].m, t[k].scale), e - fraction);
            sum = big_add(sum, t[k].negative ? big_negate(x) : x);
        }
    const bool negative = sum.limb[LIMBS - 1] >> 31;
    if (negative)
        sum = big_negate(sum);
    const int top = big_top(&sum);
    if (top < UNIT)
        return 0;
    const int kept_bits = f32 ? 23 : 10, least = f32 ? -126 : -14;
    const int last = (top < least ? least : top) - kept_bits; /* exponent of the last place */
    uint32_t kept = 0;
    for (int i = 0; i <= kept_bits; i++)
        kept |= (uint32_t)big_bit(&sum, last + i) << i;
    if (!f32) {
        big_t below = sum, high = big_cut(sum, last);
        below = big_add(below, big_negate(high));
        const bool half = big_bit(&below, last - 1);
        big_t rest = big_add(below, big_negate(half ? big_make(1, last - 1) : (big_t){{0}}));
        if (half && (big_top(&rest) >= UNIT || (kept & 1)))
            kept++;
    }
    uint32_t bits = ((uint32_t)((top < least ? least : top) - least) << kept_bits) + kept;
    if (!f32 && bits > 0x7c00)
        bits = 0x7c00;
    return bits | (negative ? f32 ? 0x80000000u : 0x8000 : 0);
}

/* Patterns from tame to wild. */
static void fill(uint64_t *state, int kind, uint32_t *words, int n, bool floats)
{
    for (int i = 0; i < n; i++) {
        uint32_t x = random_word(state), choice = random_word(state) & 7;
        switch (kind) {
        case 0: break;                                                            /* anything               */
        case 1: x &= floats ? 0xbf7fffff : 0xbbffbbff; break;                     /* finite                 */
        case 2: x &= floats ? 0x807fffff : 0x87ff87ff; break;                     /* tiny and subnormal     */
        case 3: x = choice < 5 ? x & 0x80008000u : x & 0xbfffbfff; break;         /* zeros, both signs */
        case 4: x = (x & 0x83ff83ff) | 0x3c003c00; break;                         /* one exponent           */
        case 5: x = (x & 0x80018001) | (floats ? 0x3f800000 : 0x3c003c00); break; /* cancelling */
        default: x = choice ? x & 0xbfffbfff : x | (floats ? 0x7f800000 : 0x7c007c00); break; /* a few specials */
        }
        words[i] = x;
    }
}

static void compare(turing_hmma_fn *path, const char *name, int rounds)
{
    uint64_t state = 1234567;
    for (int round = 0; round < rounds; round++) {
        uint32_t a[2][32], b[32], c[4][32], d[4][32];
        uint16_t ha[16][8], hb[8][8], hc[16][8], hd[16][8];
        const bool f32 = round & 1;
        const int fraction = 24 + (round >> 1 & 1);
        fill(&state, (round >> 2) % 7, a[0], 64, false);
        fill(&state, (round >> 2) / 7 % 7, b, 32, false);
        fill(&state, (round >> 2) / 49 % 7, c[0], 128, f32);
        memcpy(ha, a, sizeof ha);
        memcpy(hb, b, sizeof hb);
        memcpy(hc, c, sizeof hc);
        memcpy(d, c, sizeof d);
        path(f32, fraction, (const uint32_t(*)[32])a, b, (const uint32_t(*)[32])d, d);
        memcpy(hd, d, sizeof hd);
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++) {
                const int row = i / 8 * 2 + j % 2, lane = i % 8 * 4 + j / 2;
                const uint32_t x = f32 ? c[row][lane] : hc[i][j], got = f32 ? d[row][lane] : hd[i][j];
                const uint32_t want = reference(f32, fraction, ha[i], hb[j], x);
                if (got != want) {
                    CHECK(false, "%s, round %d, output (%d,%d): %08x, expected %08x", name, round, i, j, got, want);
                    return;
                }
            }
    }
}

/* Values worked out by hand. */
static void examples(void)
{
    uint16_t a[16][8] = {{0}}, bt[8][8] = {{0}}, c[16][8] = {{0}}, d[16][8];
    float cf[16][8] = {{0}}, df[16][8];
    a[0][0] = 0x3c00; /* 1 * 1 + 2^-24 * 1: below the float's last place, kept by the sum */
    a[0][1] = 0x0001;
    bt[0][0] = bt[0][1] = 0x3c00;
    turing_hmma_1688(true, TURING_TENSOR_TURING, a[0], bt[0], cf[0], df[0]);
    CHECK(df[0][0] == 1.0f && !signbit(df[1][0]), "%a", (double)df[0][0]);
    cf[0][0] = -1.0f; /* and exact once the ones cancel */
    turing_hmma_1688(true, TURING_TENSOR_TURING, a[0], bt[0], cf[0], df[0]);
    CHECK(df[0][0] == 0x1p-24f, "%a", (double)df[0][0]);
    a[0][2] = 0x0001; /* 2^-24 * 2^-1 is one bit too low for Turing, not for Hopper */
    bt[0][2] = 0x3800;
    turing_hmma_1688(true, TURING_TENSOR_TURING, a[0], bt[0], cf[0], df[0]);
    CHECK(df[0][0] == 0x1p-24f, "%a", (double)df[0][0]);
    turing_hmma_1688(true, TURING_TENSOR_HOPPER, a[0], bt[0], cf[0], df[0]);
    CHECK(df[0][0] == 0x1.8p-24f, "%a", (double)df[0][0]);
    memset(a, 0, sizeof a);
    memset(bt, 0, sizeof bt);
    c[0][0] = 0x8000; /* -0 + 0 is +0 */
    c[1][0] = 0x7c01;
    c[2][0] = 0xfc00;
    a[3][0] = bt[0][0] = 0x7bff; /* overflow rounds to Inf */
    turing_hmma_1688(false, TURING_TENSOR_TURING, a[0], bt[0], c[0], d[0]);
    CHECK(d[0][0] == 0 && d[1][0] == 0x7fff && d[2][0] == 0xfc00 && d[3][0] == 0x7c00, "%04x %04x %04x %04x", d[0][0],
          d[1][0], d[2][0], d[3][0]);
}

int main(void)
{
    enum { ROUNDS = 7 * 7 * 7 * 4 };
    examples();
    compare(turing_hmma_portable, "portable", ROUNDS);
    if (turing_hmma_avx2())
        compare(turing_hmma_avx2(), "AVX2", ROUNDS);
    if (turing_hmma_avx512())
        compare(turing_hmma_avx512(), "AVX-512", ROUNDS);
    if (!failures)
        printf("all as expected:%s%s portable\n", turing_hmma_avx512() ? " AVX-512," : "",
               turing_hmma_avx2() ? " AVX2," : "");
    return failures != 0;
}
