/* SPDX-License-Identifier: MIT */
/*
 * exec_float.c - float, half, double and tensor instructions, conversions.
 *
 * Results are IEEE's for everything but MUFU, whose hardware tables are not
 * public: here its results are the correctly rounded ones (subnormal ones zeros), which is within
 * the documented error of the unit but need not be the same bits.
 */
#include "exec.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

enum { NAN_F32 = 0x7fffffff, NAN_F16 = 0x7fff };

static float as_float(uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return f;
}

static uint32_t float_bits(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}

static double as_double(uint32_t lo, uint32_t hi)
{
    uint64_t x = (uint64_t)hi << 32 | lo;
    double d;
    memcpy(&d, &x, 8);
    return d;
}

static uint64_t double_bits(double d)
{
    uint64_t x;
    memcpy(&x, &d, 8);
    return x;
}

static float half_value(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    if ((h & 0x7c00) == 0x7c00)
        return as_float(sign | 0x7f800000 | magnitude);
    return as_float(sign | float_bits(as_float(magnitude) * 0x1p112f));
}

static uint16_t half_bits(double x, unsigned rnd)
{
    uint64_t bits = double_bits(x), frac = bits & ((UINT64_C(1) << 52) - 1);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    int exp = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exp == 1024)
        return frac ? NAN_F16 : sign | 0x7c00;
    if (exp == -1023)
        return sign; /* a subnormal double cannot come from halves or floats in one step */
    frac |= UINT64_C(1) << 52;
    const int quantum = (exp < -14 ? -14 : exp) - 10, shift = 52 - exp + quantum; /* at least 42 */
    uint64_t kept = shift > 63 ? 0 : frac >> shift;
    uint64_t half = shift > 63 ? 0 : UINT64_C(1) << (shift - 1), rest = shift > 63 ? 1 : frac & (2 * half - 1);
    bool up = false;
    switch (rnd) {
    case TURING_RN: up = shift <= 63 && (rest > half || (rest == half && (kept & 1))); break;
    case TURING_RM: up = rest && sign; break;
    case TURING_RP: up = rest && !sign; break;
    default: break;
    }
    uint64_t r = ((uint64_t)(quantum + 24) << 10) + kept + up;
    if (r < 0x7c00)
        return sign | (uint16_t)r;
    bool to_largest = rnd == TURING_RZERO || (rnd == TURING_RM && !sign) || (rnd == TURING_RP && sign);
    return sign | (to_largest ? 0x7bff : 0x7c00);
}

static const int host_rounding[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* x * y + z under a rounding mode; the volatiles keep it between the calls. */
static float fma_rounded(float x, float y, float z, unsigned rnd)
{
    if (rnd == TURING_RN)
        return fmaf(x, y, z);
    volatile float vx = x, vy = y, vz = z;
    fesetround(host_rounding[rnd]);
    volatile float r = fmaf(vx, vy, vz);
    fesetround(FE_TONEAREST);
    return r;
}

static double fma_rounded_double(double x, double y, double z, unsigned rnd)
{
    if (rnd == TURING_RN)
        return fma(x, y, z);
    volatile double vx = x, vy = y, vz = z;
    fesetround(host_rounding[rnd]);
    volatile double r = fma(vx, vy, vz);
    fesetround(FE_TONEAREST);
    return r;
}

static float flush(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

/* ---- float ------------------------------------------------------------------------ */

static float float_source(const warp_t *w, const op_t *o, int i, int l)
{
    const turing_operand_t *s = &o->in->src[i];
    uint32_t x = w->r[o->src[i]][l];
    if (s->abs)
        x &= 0x7fffffff;
    if (s->neg)
        x ^= 0x80000000u;
    return o->in->m.ftz ? flush(as_float(x)) : as_float(x);
}

static uint32_t float_result(const op_t *o, float r)
{
    if (isnan(r))
        return o->in->m.sat ? 0 : NAN_F32;
    if (o->in->m.ftz)
        r = flush(r);
    if (o->in->m.sat)
        r = r > 1 ? 1 : r > 0 ? r : 0;
    return float_bits(r);
}

static void op_fadd(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH
        t[l] = float_result(o, fma_rounded(float_source(w, o, 0, l), 1, float_source(w, o, 1, l), o->in->m.rnd));
    put(w, o->d, t, on);
}

static void op_fmul(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH {
        float a = float_source(w, o, 0, l), b = float_source(w, o, 1, l);
        /* adding a zero of the product's sign keeps -0 */
        float zero = signbit(a) != signbit(b) ? -0.0f : 0.0f;
        t[l] = float_result(o, fma_rounded(a, b, zero, o->in->m.rnd));
    }
    put(w, o->d, t, on);
}

static void op_ffma(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH
        t[l] = float_result(
            o, fma_rounded(float_source(w, o, 0, l), float_source(w, o, 1, l), float_source(w, o, 2, l), o->in->m.rnd));
    put(w, o->d, t, on);
}

static void op_fsel(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], p = pred(w, o, 0);
    EACH
        t[l] = float_bits(float_source(w, o, p >> l & 1 ? 0 : 1, l));
    put(w, o->d, t, on);
}

static void op_fmnmx(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], p = pred(w, o, 0);
    EACH {
        float a = float_source(w, o, 0, l), b = float_source(w, o, 1, l);
        if (isnan(a) || isnan(b))
            t[l] = isnan(a) && isnan(b) ? NAN_F32 : float_bits(isnan(a) ? b : a);
        else {
            bool less = a < b || (a == b && signbit(a) && !signbit(b));
            t[l] = float_bits(less == (p >> l & 1) ? a : b);
        }
    }
    put(w, o->d, t, on);
}

/* Less, equal, greater, unordered: the bits of m.cmp. */
static unsigned relation(double a, double b)
{
    return isnan(a) || isnan(b) ? TURING_CMP_UNORDERED : a < b ? TURING_CMP_LT : a == b ? TURING_CMP_EQ : TURING_CMP_GT;
}

static uint32_t combined(uint32_t x, uint32_t with, unsigned bop)
{
    return bop == TURING_BOP_AND ? x & with : bop == TURING_BOP_OR ? x | with : x ^ with;
}

static void set_predicates(warp_t *w, const op_t *o, uint32_t hit, uint32_t on)
{
    uint32_t with = pred(w, o, 0);
    put_pred(w, o->pdst[0], combined(hit, with, o->in->m.bop), on);
    put_pred(w, o->pdst[1], combined(~hit, with, o->in->m.bop), on);
}

static uint32_t float_compare(const warp_t *w, const op_t *o)
{
    uint32_t hit = 0;
    EACH {
        unsigned r = relation(float_source(w, o, 0, l), float_source(w, o, 1, l));
        hit |= (uint32_t)((o->in->m.cmp & r) != 0) << l;
    }
    return hit;
}

static void op_fsetp(warp_t *w, const op_t *o, uint32_t on)
{
    set_predicates(w, o, float_compare(w, o), on);
}

static void op_fset(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], hit = combined(float_compare(w, o), pred(w, o, 0), o->in->m.bop);
    EACH
        t[l] = hit >> l & 1 ? 0x3f800000 : 0;
    put(w, o->d, t, on);
}

/* Whether a / b needs the slow path.  The fast one (reciprocal, two steps of
 * Newton's) is exact while nothing in it leaves the normal range; the hardware's
 * own bounds are not public, and either path rounds correctly. */
static void op_fchk(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t slow = 0;
    EACH {
        int a = (int)(float_bits(float_source(w, o, 0, l)) >> 23 & 255),
            b = (int)(float_bits(float_source(w, o, 1, l)) >> 23 & 255);
        bool fast = a >= 26 && a <= 253 && b >= 2 && b <= 251 && a - b > -124 && a - b < 124;
        slow |= (uint32_t)!fast << l;
    }
    put_pred(w, o->pdst[0], slow, on);
}

/* From the upper word of a double to that of the result. */
static void op_mufu_64h(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH {
        double x = as_double(0, float_bits(float_source(w, o, 0, l)));
        t[l] = (uint32_t)(double_bits(o->in->m.func == TURING_MUFU_RCP64H ? 1 / x : 1 / sqrt(x)) >> 32);
    }
    put(w, o->d, t, on);
}

/* Subnormal floats are zeros to it, as operands and as results, with .FTZ or without: ptxas scales them, or relies on
 * it. */
static void op_mufu(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    const double turn = 6.283185307179586476925;
    EACH {
        double x = flush(float_source(w, o, 0, l)), r;
        switch (o->in->m.func) {
        case TURING_MUFU_COS: r = cos(x * turn); break; /* the argument is in turns */
        case TURING_MUFU_SIN: r = sin(x * turn); break;
        case TURING_MUFU_EX2: r = exp2(x); break;
        case TURING_MUFU_LG2: r = log2(x); break;
        case TURING_MUFU_RCP: r = 1 / x; break;
        case TURING_MUFU_RSQ: r = 1 / sqrt(x); break;
        case TURING_MUFU_SQRT: r = sqrt(x); break;
        default: r = tanh(x); break;
        }
        t[l] = float_result(o, flush((float)r));
    }
    put(w, o->d, t, on);
}

/* ---- conversions -------------------------------------------------------------------------- */

static double conversion_source(const warp_t *w, const op_t *o, unsigned type, int l)
{
    const turing_operand_t *s = &o->in->src[0];
    uint32_t x = w->r[o->src[0]][l];
    double v;
    if (type == TURING_F64)
        v = as_double(x, w->r[o->src[0] + 1][l]);
    else if (type == TURING_F16)
        v = half_value((uint16_t)(x >> 16 * s->sel));
    else
        v = o->in->m.ftz ? flush(as_float(x)) : as_float(x);
    if (s->abs)
        v = fabs(v);
    return s->neg ? -v : v;
}

static float narrow_to_float(double v, unsigned rnd)
{
    if (rnd == TURING_RN)
        return (float)v;
    volatile double x = v;
    fesetround(host_rounding[rnd]);
    volatile float r = (float)x;
    fesetround(FE_TONEAREST);
    return r;
}

static void put_float(warp_t *w, const op_t *o, const double v[LANES], uint32_t on)
{
    uint32_t t[LANES], hi[LANES];
    const unsigned rnd = o->in->m.rnd;
    EACH {
        if (o->in->m.type == TURING_F16)
            t[l] = half_bits(v[l], rnd);
        else if (o->in->m.type == TURING_F32)
            t[l] = float_result(o, narrow_to_float(v[l], rnd));
        else {
            uint64_t x = isnan(v[l]) ? UINT64_C(0x7fffffffffffffff) : double_bits(v[l]);
            t[l] = (uint32_t)x;
            hi[l] = (uint32_t)(x >> 32);
        }
    }
    put(w, o->d, t, on);
    if (o->in->m.type == TURING_F64)
        put(w, o->d + 1u, hi, on);
}

static void op_f2f(warp_t *w, const op_t *o, uint32_t on)
{
    double v[LANES];
    EACH
        v[l] = conversion_source(w, o, o->in->m.stype, l);
    put_float(w, o, v, on);
}

static double to_integer(double v, unsigned rnd)
{
    switch (rnd) {
    case TURING_RM: return floor(v);
    case TURING_RP: return ceil(v);
    case TURING_RZERO: return trunc(v);
    default: return nearbyint(v);
    }
}

static void op_frnd(warp_t *w, const op_t *o, uint32_t on)
{
    double v[LANES];
    EACH
        v[l] = to_integer(conversion_source(w, o, o->in->m.stype, l), o->in->m.rnd);
    put_float(w, o, v, on);
}

/* Out of range saturates. NaN gives 0, or the bit of the sign where a double or an integer of 64 bits takes part (PTX
 * ISA, cvt). */
static void op_f2i(warp_t *w, const op_t *o, uint32_t on)
{
    static const uint8_t bits[] = {8, 8, 16, 16, 32, 32, 64, 64};
    uint32_t t[LANES], hi[LANES];
    const unsigned type = o->in->m.type, n = bits[type];
    const bool is_signed = type & 1;
    EACH {
        double v = to_integer(conversion_source(w, o, o->in->m.stype, l), o->in->m.rnd);
        double limit = ldexp(1, (int)(is_signed ? n - 1 : n));
        uint64_t x;
        if (isnan(v))
            x = n == 64 || o->in->m.stype == TURING_F64 ? UINT64_C(1) << (n - 1) : 0;
        else if (v >= limit)
            x = is_signed ? (UINT64_C(1) << (n - 1)) - 1 : n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
        else if (is_signed)
            x = v < -limit ? UINT64_C(0) - (UINT64_C(1) << (n - 1)) : (uint64_t)(int64_t)v;
        else
            x = v < 0 ? 0 : (uint64_t)v;
        t[l] = (uint32_t)x;
        hi[l] = (uint32_t)(x >> 32);
    }
    put(w, o->d, t, on);
    if (n == 64)
        put(w, o->d + 1u, hi, on);
}

static void op_i2f(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], hi[LANES];
    const turing_mods_t *m = &o->in->m;
    const uint32_t *lo = w->r[o->src[0]], *up = w->r[o->src[0] + 1];
    const bool wide = m->stype == TURING_U64 || m->stype == TURING_S64;
    const unsigned part = o->in->src[0].sel; /* .B1 to .B3, .H1 */
    EACH {
        int64_t x = lo[l];
        switch (m->stype) {
        case TURING_U8: x = lo[l] >> 8 * part & 255; break;
        case TURING_S8: x = (int8_t)(lo[l] >> 8 * part); break;
        case TURING_U16: x = lo[l] >> 16 * part & 0xffff; break;
        case TURING_S16: x = (int16_t)(lo[l] >> 16 * part); break;
        case TURING_S32: x = (int32_t)lo[l]; break;
        default: break;
        }
        if (wide)
            x = (int64_t)((uint64_t)up[l] << 32 | lo[l]);
        /* One rounding, of the integer, in the mode asked for. */
        volatile int64_t vx = x;
        fesetround(host_rounding[m->rnd]);
        volatile float f = m->stype == TURING_U64 ? (float)(uint64_t)vx : (float)vx;
        volatile double d = m->stype == TURING_U64 ? (double)(uint64_t)vx : (double)vx;
        fesetround(FE_TONEAREST);
        uint64_t bits = m->type == TURING_F64   ? double_bits(d)
                        : m->type == TURING_F16 ? half_bits(wide ? (double)f : d, m->rnd)
                                                : float_bits(f);
        t[l] = (uint32_t)bits;
        hi[l] = (uint32_t)(bits >> 32);
    }
    put(w, o->d, t, on);
    if (m->type == TURING_F64)
        put(w, o->d + 1u, hi, on);
}

/* ---- double ------------------------------------------------------------------------------------ */

static double double_source(const warp_t *w, const op_t *o, int i, int l)
{
    double v = as_double(w->r[o->src[i]][l], w->r[o->src[i] + 1][l]);
    if (o->in->src[i].abs)
        v = fabs(v);
    return o->in->src[i].neg ? -v : v;
}

static void op_double(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t lo[LANES], hi[LANES];
    EACH {
        double a = double_source(w, o, 0, l), b = double_source(w, o, 1, l), r;
        if (o->in->op == TURING_DADD)
            r = fma_rounded_double(a, 1, b, o->in->m.rnd);
        else if (o->in->op == TURING_DMUL)
            r = fma_rounded_double(a, b, signbit(a) != signbit(b) ? -0.0 : 0.0, o->in->m.rnd);
        else
            r = fma_rounded_double(a, b, double_source(w, o, 2, l), o->in->m.rnd);
        uint64_t x = isnan(r) ? UINT64_C(0xfff8000000000000) : double_bits(r);
        lo[l] = (uint32_t)x;
        hi[l] = (uint32_t)(x >> 32);
    }
    put(w, o->d, lo, on);
    put(w, o->d + 1u, hi, on);
}

static void op_dsetp(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t hit = 0;
    EACH
        hit |= (uint32_t)((o->in->m.cmp & relation(double_source(w, o, 0, l), double_source(w, o, 1, l))) != 0) << l;
    set_predicates(w, o, hit, on);
}

/* .MIN, .MAX: the first predicate says that the result is the first operand, the second that it is the NaN
 * of the second. A zero with a sign is less than one without. */
static void op_dsetp_pick(warp_t *w, const op_t *o, uint32_t on)
{
    const bool least = o->in->m.cmp == 0;
    uint32_t first = 0, nan = 0;
    EACH {
        const double a = double_source(w, o, 0, l), b = double_source(w, o, 1, l);
        const bool less = a < b || (a == b && signbit(a) && !signbit(b));
        const bool picks = isnan(b) ? !isnan(a) : !isnan(a) && (least ? less : !less && (a != b || signbit(b)));
        first |= (uint32_t)picks << l;
        nan |= (uint32_t)(isnan(a) && isnan(b)) << l;
    }
    put_pred(w, o->pdst[0], first, on);
    put_pred(w, o->pdst[1], nan, on);
}

/* ---- half --------------------------------------------------------------------------------------- */

/* A float as a source counts as the half that it is cut to: ptxas makes cvt.rz.f16.f32 of a HADD2 of one. */
static double half_source(const warp_t *w, const op_t *o, int i, int l, int part)
{
    const turing_operand_t *s = &o->in->src[i];
    uint32_t x = w->r[o->src[i]][l];
    const bool high = s->sel == TURING_H1_H1 || (s->sel == TURING_H1_H0 && part);
    uint16_t h = s->sel == TURING_SEL_F32 ? half_bits(as_float(x), TURING_RZERO) : (uint16_t)(high ? x >> 16 : x);
    if (o->in->m.ftz && !(h & 0x7c00))
        h &= 0x8000;
    double v = half_value(h);
    if (s->abs)
        v = fabs(v);
    return s->neg ? -v : v;
}

static uint16_t half_result(const op_t *o, double r)
{
    if (o->in->m.sat)
        r = r > 1 ? 1 : r > 0 ? r : 0;
    uint16_t h = half_bits(r, TURING_RN);
    return o->in->m.ftz && !(h & 0x7c00) ? h & 0x8000 : h;
}

/*
 * Doubles hold what one rounding to half needs.  A product of halves is exact.
 * Its sum with a third half is exact unless the two lie more than 53 bits
 * apart; the smaller is then below 2^-30 of the larger's last place, and only
 * its sign could matter, at a midpoint, which the larger is not: it is either
 * a half itself, or a product so large beside the least half that the sum
 * stays within 53 bits.
 */
static double half_compute(const warp_t *w, const op_t *o, int l, int part)
{
    double a = half_source(w, o, 0, l, part), b = half_source(w, o, 1, l, part);
    switch (o->in->op) {
    case TURING_HADD2: return a + b;
    case TURING_HMUL2: return a * b;
    default: return a * b + half_source(w, o, 2, l, part);
    }
}

static void op_half(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH
        t[l] = half_result(o, half_compute(w, o, l, 0)) | (uint32_t)half_result(o, half_compute(w, o, l, 1)) << 16;
    put(w, o->d, t, on);
}

/* HADD2.F32: the sum of the low halves as a float. */
static void op_half_to_float(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES];
    EACH
        t[l] = float_result(o, (float)half_compute(w, o, l, 0));
    put(w, o->d, t, on);
}

static void half_compare(const warp_t *w, const op_t *o, uint32_t hit[2])
{
    hit[0] = hit[1] = 0;
    for (int part = 0; part < 2; part++)
        EACH {
            unsigned r = relation(half_source(w, o, 0, l, part), half_source(w, o, 1, l, part));
            hit[part] |= (uint32_t)((o->in->m.cmp & r) != 0) << l;
        }
}

static void op_hsetp2(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t hit[2], with = pred(w, o, 0);
    half_compare(w, o, hit);
    if (o->in->m.aux) { /* .H_AND: both halves, and its complement */
        uint32_t both = hit[0] & hit[1];
        hit[0] = both;
        hit[1] = ~both;
    }
    put_pred(w, o->pdst[0], combined(hit[0], with, o->in->m.bop), on);
    put_pred(w, o->pdst[1], combined(hit[1], with, o->in->m.bop), on);
}

static void op_hset2(warp_t *w, const op_t *o, uint32_t on)
{
    uint32_t t[LANES], hit[2], with = pred(w, o, 0), yes = o->in->m.bf ? 0x3c00 : 0xffff;
    half_compare(w, o, hit);
    for (int part = 0; part < 2; part++)
        hit[part] = combined(hit[part], with, o->in->m.bop);
    EACH
        t[l] = (hit[0] >> l & 1 ? yes : 0) | (hit[1] >> l & 1 ? yes << 16 : 0);
    put(w, o->d, t, on);
}

uint32_t emu_add_half2(uint32_t x, uint32_t y)
{
    uint32_t lo = half_bits((double)half_value((uint16_t)x) + half_value((uint16_t)y), TURING_RN);
    return lo |
           (uint32_t)half_bits((double)half_value((uint16_t)(x >> 16)) + half_value((uint16_t)(y >> 16)), TURING_RN)
               << 16;
}

/* ---- selection ------------------------------------------------------------------------------------- */

static void select_half(op_t *o)
{
    const turing_mods_t *m = &o->in->m;
    if (m->dnz)
        return;
    if (!m->f32)
        o->fn = op_half;
    else if (o->in->op != TURING_HFMA2)
        o->fn = op_half_to_float;
}

void emu_select_float(op_t *o)
{
    const turing_insn_t *in = o->in;
    switch (in->op) {
    case TURING_FADD: o->fn = op_fadd; break;
    case TURING_FMUL: o->fn = in->m.dnz || in->m.aux ? NULL : op_fmul; break;
    case TURING_FFMA: o->fn = in->m.dnz ? NULL : op_ffma; break;
    case TURING_FSEL: o->fn = op_fsel; break;
    case TURING_FMNMX: o->fn = op_fmnmx; break;
    case TURING_FSETP: o->fn = op_fsetp; break;
    case TURING_FSET: o->fn = op_fset; break;
    case TURING_FCHK: o->fn = op_fchk; break;
    case TURING_MUFU:
        o->fn = in->m.func == TURING_MUFU_RCP64H || in->m.func == TURING_MUFU_RSQ64H ? op_mufu_64h : op_mufu;
        break;
    case TURING_F2F: o->fn = op_f2f; break;
    case TURING_FRND: o->fn = op_frnd; break;
    case TURING_F2I: o->fn = op_f2i; break;
    case TURING_I2F: o->fn = op_i2f; break;
    case TURING_DADD:
    case TURING_DMUL:
    case TURING_DFMA: o->fn = op_double; break;
    case TURING_DSETP: o->fn = in->m.cmp == 0 || in->m.cmp == 15 ? op_dsetp_pick : op_dsetp; break;
    case TURING_HADD2:
    case TURING_HMUL2:
    case TURING_HFMA2: select_half(o); break;
    case TURING_HSETP2: o->fn = op_hsetp2; break;
    case TURING_HSET2: o->fn = op_hset2; break;
    default: break;
    }
}
