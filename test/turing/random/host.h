/* SPDX-License-Identifier: MIT */
/* host.h - prelude.h's functions in the host's own arithmetic, a block's threads one after another. */
#ifndef HOST_H
#define HOST_H

/* A line for each function, as device.cuh has them. */
/* clang-format off */
#include <fenv.h>
#include <math.h>
#include <string.h>

#define FN __attribute__((unused)) static inline
#define NOINLINE __attribute__((unused)) static
#define CONSTANT __attribute__((unused)) static const
#define KERNEL(n) static void n(PARAMETERS)
#define EACH_BLOCK for (u32 g = 0; g < BLOCKS; g++)
#define EACH_THREAD for (u32 t = 0; t < THREADS; t++)
#define PHASE
#define SHARED(type, name, count) type name[count];
#define KEPT kept_t all_kept[THREADS] = {{0, 0, 0, 0}};
#define kept all_kept[t]

FN u32 raw32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
FN u64 raw64(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }
FN f32 f_of(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }
FN f64 d_of(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }

/* ---- integers ---- */
FN u32 popc(u32 x) { return (u32)__builtin_popcount(x); }
FN u32 popcl(u64 x) { return (u32)__builtin_popcountll(x); }
FN u32 clz(u32 x) { return x ? (u32)__builtin_clz(x) : 32; }
FN u32 clzl(u64 x) { return x ? (u32)__builtin_clzll(x) : 64; }
FN u32 ffs_(u32 x) { return (u32)__builtin_ffs((int)x); }
FN u32 ffsl_(u64 x) { return (u32)__builtin_ffsll((long long)x); }
FN u32 brev(u32 x)
{
    u32 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1) << (31 - i);
    return r;
}
FN u64 brevl(u64 x) { return (u64)brev((u32)x) << 32 | brev((u32)(x >> 32)); }
FN u32 bfind_u(u32 x) { return x ? 31 - clz(x) : ~0u; }
FN u32 bfind_s(s32 x) { return bfind_u(x < 0 ? ~(u32)x : (u32)x); }
FN u32 bfind_sh(u32 x) { return x ? clz(x) : ~0u; }
FN u32 bfind_ul(u64 x) { return x ? 63 - clzl(x) : ~0u; }
FN u32 bfe_u(u32 a, u32 p, u32 n)
{
    p &= 255, n &= 255;
    const u64 v = p < 32 ? a >> p : 0;
    return (u32)(n < 32 ? v & ((1ull << n) - 1) : v);
}
FN u32 bfe_s(u32 a, u32 p, u32 n)
{
    p &= 255, n &= 255;
    u32 r = 0;
    const u32 last = n ? p + n - 1 : 0, sign = n ? a >> (last < 31 ? last : 31) & 1 : 0;
    for (u32 i = 0; i < 32; i++)
        r |= (i < n && p + i < 32 ? a >> (p + i) & 1 : sign) << i;
    return r;
}
FN u32 bfi(u32 a, u32 b, u32 p, u32 n)
{
    p &= 255, n &= 255;
    for (u32 i = 0; i < n && p + i < 32; i++)
        b = (b & ~(1u << (p + i))) | (i < 32 ? a >> i & 1 : 0) << (p + i);
    return b;
}
FN u32 prmt(u32 a, u32 b, u32 s)
{
    const u64 v = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        u32 byte = (u32)(v >> 8 * (s >> 4 * i & 7)) & 255;
        if (s >> (4 * i + 3) & 1)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}
FN u32 perm(u32 a, u32 b, u32 s) { return prmt(a, b, s & 0x7777); }
FN u32 pick(u32 a, u32 b, u32 i0, u32 i1, u32 i2, u32 i3) { return perm(a, b, i0 | i1 << 4 | i2 << 8 | i3 << 12); }
FN u32 prmt_f4e(u32 a, u32 b, u32 s) { s &= 3; return pick(a, b, s, s + 1, s + 2, s + 3); }
FN u32 prmt_b4e(u32 a, u32 b, u32 s) { s &= 3; return pick(a, b, s, (s + 7) & 7, (s + 6) & 7, (s + 5) & 7); }
FN u32 prmt_rc8(u32 a, u32 b, u32 s) { s &= 3; return pick(a, b, s, s, s, s); }
FN u32 prmt_ecl(u32 a, u32 b, u32 s) { s &= 3; return pick(a, b, s, s > 1 ? s : 1, s > 2 ? s : 2, 3); }
FN u32 prmt_ecr(u32 a, u32 b, u32 s) { s &= 3; return pick(a, b, 0, s < 1 ? s : 1, s < 2 ? s : 2, s); }
FN u32 prmt_rc16(u32 a, u32 b, u32 s) { s = s & 1 ? 2 : 0; return pick(a, b, s, s + 1, s, s + 1); }
FN u32 fun_l(u32 a, u32 b, u32 s) { return (u32)((((u64)b << 32 | a) << (s & 31)) >> 32); }
FN u32 fun_r(u32 a, u32 b, u32 s) { return (u32)(((u64)b << 32 | a) >> (s & 31)); }
FN u32 fun_lc(u32 a, u32 b, u32 s) { return s >= 32 ? a : fun_l(a, b, s); }
FN u32 fun_rc(u32 a, u32 b, u32 s) { return s >= 32 ? b : fun_r(a, b, s); }
FN u32 shl_c(u32 a, u32 s) { return s > 31 ? 0 : a << s; }
FN u32 shr_c(u32 a, u32 s) { return s > 31 ? 0 : a >> s; }
FN u32 sar_c(u32 a, u32 s) { return (u32)((s32)a >> (s > 31 ? 31 : s)); }
FN u32 mulhi_u(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
FN s32 mulhi_s(s32 a, s32 b) { return (s32)(((s64)a * b) >> 32); }
FN u64 mulhi_ul(u64 a, u64 b) { return (u64)(((unsigned __int128)a * b) >> 64); }
FN s64 mulhi_sl(s64 a, s64 b) { return (s64)(((__int128)a * b) >> 64); }
FN u32 madhi_u(u32 a, u32 b, u32 c) { return mulhi_u(a, b) + c; }
FN u32 madhi_s(u32 a, u32 b, u32 c) { return (u32)mulhi_s((s32)a, (s32)b) + c; }
FN u64 madhi_ul(u64 a, u64 b, u64 c) { return mulhi_ul(a, b) + c; }
FN u32 mul24_u(u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }
FN s32 mul24_s(s32 a, s32 b) { return (s32)((u32)((s32)((u32)a << 8) >> 8) * (u32)((s32)((u32)b << 8) >> 8)); }
FN u32 dot4(u32 a, u32 b, u32 c, int sa, int sb)
{
    for (int i = 0; i < 4; i++)
        c += (u32)((sa ? (s8)(a >> 8 * i) : (u8)(a >> 8 * i)) * (sb ? (s8)(b >> 8 * i) : (u8)(b >> 8 * i)));
    return c;
}
FN u32 dot2(u32 a, u32 b, u32 c, int sa, int sb)
{
    for (int i = 0; i < 2; i++)
        c += (u32)((sa ? (s16)(a >> 16 * i) : (u16)(a >> 16 * i)) * (sb ? (s8)(b >> 8 * i) : (u8)(b >> 8 * i)));
    return c;
}
FN s32 dp4_s(s32 a, s32 b, s32 c) { return (s32)dot4((u32)a, (u32)b, (u32)c, 1, 1); }
FN u32 dp4_u(u32 a, u32 b, u32 c) { return dot4(a, b, c, 0, 0); }
FN s32 dp4_su(s32 a, s32 b, s32 c) { return (s32)dot4((u32)a, (u32)b, (u32)c, 1, 0); }
FN s32 dp4_us(s32 a, s32 b, s32 c) { return (s32)dot4((u32)a, (u32)b, (u32)c, 0, 1); }
FN s32 dp2l_s(s32 a, s32 b, s32 c) { return (s32)dot2((u32)a, (u32)b, (u32)c, 1, 1); }
FN s32 dp2h_s(s32 a, s32 b, s32 c) { return (s32)dot2((u32)a, (u32)b >> 16, (u32)c, 1, 1); }
FN u32 dp2l_u(u32 a, u32 b, u32 c) { return dot2(a, b, c, 0, 0); }
FN u32 dp2h_u(u32 a, u32 b, u32 c) { return dot2(a, b >> 16, c, 0, 0); }
FN s32 dp2h_us(s32 a, s32 b, s32 c) { return (s32)dot2((u32)a, (u32)b >> 16, (u32)c, 0, 1); }
FN u32 sad_s(s32 a, s32 b, u32 c) { return c + (a > b ? (u32)a - (u32)b : (u32)b - (u32)a); }
FN u32 sad_u(u32 a, u32 b, u32 c) { return c + (a > b ? a - b : b - a); }
FN u32 bytes_apart(u32 a, u32 b, int is_signed, int sum)
{
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        const s32 x = is_signed ? (s8)(a >> 8 * i) : (u8)(a >> 8 * i), y = is_signed ? (s8)(b >> 8 * i) : (u8)(b >> 8 * i);
        r += (u32)(x > y ? x - y : y - x) << (sum ? 0 : 8 * i);
    }
    return r;
}
FN u32 vabs4(u32 a, u32 b) { return bytes_apart(a, b, 0, 0); }
FN u32 vsad4(u32 a, u32 b) { return bytes_apart(a, b, 0, 1); }
FN u32 vsads4(u32 a, u32 b) { return bytes_apart(a, b, 1, 1); }
FN s32 within(s32 x, s32 low, s32 high) { return x < low ? low : x > high ? high : x; }
FN s32 sat_s8(s32 x) { return within(x, -128, 127); }
FN u32 sat_u8(s32 x) { return (u32)within(x, 0, 255); }
FN s32 sat_s16(s32 x) { return within(x, -32768, 32767); }
FN u32 sat_u16(s32 x) { return (u32)within(x, 0, 65535); }
FN u32 pack_s16(s32 a, s32 b) { return (u32)sat_s16(a) << 16 | (u16)sat_s16(b); }
FN u32 pack_u16(s32 a, s32 b) { return sat_u16(a) << 16 | sat_u16(b); }
FN u32 pack_s8(s32 a, s32 b, u32 c) { return c << 16 | (u32)(u8)sat_s8(a) << 8 | (u8)sat_s8(b); }
FN u32 pack_u8(s32 a, s32 b, u32 c) { return c << 16 | sat_u8(a) << 8 | sat_u8(b); }
FN s32 min_s(s32 a, s32 b) { return a < b ? a : b; }
FN s32 max_s(s32 a, s32 b) { return a > b ? a : b; }
FN u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
FN u32 max_u(u32 a, u32 b) { return a > b ? a : b; }
FN s64 min_sl(s64 a, s64 b) { return a < b ? a : b; }
FN s64 max_sl(s64 a, s64 b) { return a > b ? a : b; }
FN u64 min_ul(u64 a, u64 b) { return a < b ? a : b; }
FN u64 max_ul(u64 a, u64 b) { return a > b ? a : b; }
FN u32 abs_s(s32 a) { return a < 0 ? 0u - (u32)a : (u32)a; }
FN u64 abs_sl(s64 a) { return a < 0 ? 0ull - (u64)a : (u64)a; }

/* ---- floats: z() is what -ftz=true does to operands and results ---- */
FN f32 z(f32 x)
{
#ifdef FTZ
    return x != 0 && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
#else
    return x;
#endif
}
#define ROUNDED(mode, type, expression) \
    fesetround(mode);                   \
    volatile type r_ = expression;      \
    fesetround(FE_TONEAREST);           \
    return r_;
FN f32 f_add(f32 a, f32 b) { return z(z(a) + z(b)); }
FN f32 f_sub(f32 a, f32 b) { return z(z(a) - z(b)); }
FN f32 f_mul(f32 a, f32 b) { return z(z(a) * z(b)); }
FN f32 f_div(f32 a, f32 b) { return z(z(a) / z(b)); }
FN f32 f_fma(f32 a, f32 b, f32 c) { return z(fmaf(z(a), z(b), z(c))); }
FN f32 f_min(f32 a, f32 b)
{
    a = z(a), b = z(b);
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
FN f32 f_max(f32 a, f32 b)
{
    a = z(a), b = z(b);
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}
FN f32 f_sqrt(f32 a) { return sqrtf(z(a)); }
FN f32 f_neg(f32 a) { return z(-a); }
FN f32 f_abs(f32 a) { return z(fabsf(a)); }
FN f32 f_sat(f32 a) { return a > 0 ? (a < 1 ? z(a) : 1) : 0; }
FN f32 f_rint(f32 a) { return rintf(z(a)); }
FN f32 f_floor(f32 a) { return floorf(z(a)); }
FN f32 f_ceil(f32 a) { return ceilf(z(a)); }
FN f32 f_trunc(f32 a) { return truncf(z(a)); }
FN u32 f_lt(f32 a, f32 b) { return z(a) < z(b); }
FN u32 f_le(f32 a, f32 b) { return z(a) <= z(b); }
FN u32 f_eq(f32 a, f32 b) { return z(a) == z(b); }
FN u32 f_ne(f32 a, f32 b) { return z(a) != z(b); }
FN u32 f_nlt(f32 a, f32 b) { return !(z(a) < z(b)); }
FN u32 f_nle(f32 a, f32 b) { return !(z(a) <= z(b)); }
FN u32 f_nan(f32 a, f32 b) { return a != a || b != b; }
FN u32 f_num(f32 a, f32 b) { return a == a && b == b; }
FN f32 f_set(f32 a, f32 b) { return z(a) < z(b) ? 1 : 0; }
#define OPERATORS(mode, suffix)                                                                                       \
    FN f32 f_add_##suffix(f32 x, f32 y) { volatile f32 a = z(x), b = z(y); ROUNDED(mode, f32, a + b) }                \
    FN f32 f_mul_##suffix(f32 x, f32 y) { volatile f32 a = z(x), b = z(y); ROUNDED(mode, f32, a * b) }                \
    FN f32 f_div_##suffix(f32 x, f32 y) { volatile f32 a = z(x), b = z(y); ROUNDED(mode, f32, a / b) }                \
    FN f32 f_fma_##suffix(f32 x, f32 y, f32 w) { volatile f32 a = z(x), b = z(y), c = z(w); ROUNDED(mode, f32, fmaf(a, b, c)) } \
    FN f64 d_add_##suffix(f64 x, f64 y) { volatile f64 a = x, b = y; ROUNDED(mode, f64, a + b) }                      \
    FN f64 d_mul_##suffix(f64 x, f64 y) { volatile f64 a = x, b = y; ROUNDED(mode, f64, a * b) }                      \
    FN f64 d_div_##suffix(f64 x, f64 y) { volatile f64 a = x, b = y; ROUNDED(mode, f64, a / b) }                      \
    FN f64 d_fma_##suffix(f64 x, f64 y, f64 w) { volatile f64 a = x, b = y, c = w; ROUNDED(mode, f64, fma(a, b, c)) } \
    FN f32 d_f_##suffix(f64 x) { volatile f64 a = x; ROUNDED(mode, f32, (f32)a) }                                     \
    FN f32 s_f_##suffix(s32 x) { volatile s32 a = x; ROUNDED(mode, f32, (f32)a) }                                     \
    FN f32 u_f_##suffix(u32 x) { volatile u32 a = x; ROUNDED(mode, f32, (f32)a) }                                     \
    FN f32 sl_f_##suffix(s64 x) { volatile s64 a = x; ROUNDED(mode, f32, (f32)a) }                                    \
    FN f32 ul_f_##suffix(u64 x) { return whole_to_float(x, #suffix); }                                                \
    FN f64 sl_d_##suffix(s64 x) { volatile s64 a = x; ROUNDED(mode, f64, (f64)a) }                                    \
    FN f64 ul_d_##suffix(u64 x) { return whole_to_double(x, #suffix); }

/* Integers of 64 bits to floats by hand, as compilers halve those beyond 2^63 first. */
FN u64 cut(u64 x, int bits, const char *mode, int *shift)
{
    const int width = 64 - (int)clzl(x);
    *shift = width > bits ? width - bits : 0;
    u64 kept_ = *shift ? x >> *shift : x;
    const u64 rest = *shift ? x & ((1ull << *shift) - 1) : 0, half = *shift ? 1ull << (*shift - 1) : 0;
    if (!strcmp(mode, "ru") ? rest != 0 : !strcmp(mode, "rn") ? rest > half || (rest && rest == half && (kept_ & 1)) : 0)
        kept_++;
    return kept_;
}
FN f32 whole_to_float(u64 x, const char *mode) { int s; const u64 v = cut(x, 24, mode, &s); return ldexpf((f32)v, s); }
FN f64 whole_to_double(u64 x, const char *mode) { int s; const u64 v = cut(x, 53, mode, &s); return ldexp((f64)v, s); }
OPERATORS(FE_TOWARDZERO, rz)
OPERATORS(FE_UPWARD, ru)
OPERATORS(FE_DOWNWARD, rd)
FN f32 s_f_rn(s32 x) { return (f32)x; }
FN f32 u_f_rn(u32 x) { return (f32)x; }
FN f32 sl_f_rn(s64 x) { return (f32)x; }
FN f32 ul_f_rn(u64 x) { return whole_to_float(x, "rn"); }

FN f64 d_add(f64 a, f64 b) { return a + b; }
FN f64 d_sub(f64 a, f64 b) { return a - b; }
FN f64 d_mul(f64 a, f64 b) { return a * b; }
FN f64 d_div(f64 a, f64 b) { return a / b; }
FN f64 d_fma(f64 a, f64 b, f64 c) { return fma(a, b, c); }
FN f64 d_min(f64 a, f64 b) { return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b; }
FN f64 d_max(f64 a, f64 b) { return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b; }
FN f64 d_sqrt(f64 a) { return sqrt(a); }
FN f64 d_neg(f64 a) { return -a; }
FN f64 d_abs(f64 a) { return fabs(a); }
FN f64 d_rint(f64 a) { return rint(a); }
FN f64 d_floor(f64 a) { return floor(a); }
FN f64 d_ceil(f64 a) { return ceil(a); }
FN f64 d_trunc(f64 a) { return trunc(a); }
FN u32 d_lt(f64 a, f64 b) { return a < b; }
FN u32 d_le(f64 a, f64 b) { return a <= b; }
FN u32 d_eq(f64 a, f64 b) { return a == b; }
FN u32 d_ne(f64 a, f64 b) { return a != b; }
FN u32 d_nlt(f64 a, f64 b) { return !(a < b); }
FN u32 d_nle(f64 a, f64 b) { return !(a <= b); }
FN u32 d_num(f64 a, f64 b) { return a == a && b == b; }

/* ---- to integers: saturated; a NaN is 0, or the sign bit where a double or 64 bits take part ---- */
FN s64 to_s(f64 x, int bits, int wide)
{
    const f64 high = ldexp(1, bits - 1);
    if (x != x)
        return wide ? (s64)(~0ull << (bits - 1)) : 0;
    return x >= high ? (s64)((1ull << (bits - 1)) - 1) : x < -high ? (s64)(~0ull << (bits - 1)) : (s64)x;
}
FN u64 to_u(f64 x, int bits, int wide)
{
    const f64 high = ldexp(1, bits);
    if (x != x)
        return wide ? 1ull << (bits - 1) : 0;
    return x >= high ? ~0ull >> (64 - bits) : x < 0 ? 0 : (u64)x;
}
#define TO_INTEGERS(suffix, round)                                             \
    FN s32 f_s_##suffix(f32 x) { return (s32)to_s(round((f64)z(x)), 32, 0); }  \
    FN u32 f_u_##suffix(f32 x) { return (u32)to_u(round((f64)z(x)), 32, 0); }  \
    FN s64 f_sl_##suffix(f32 x) { return to_s(round((f64)z(x)), 64, 1); }      \
    FN u64 f_ul_##suffix(f32 x) { return to_u(round((f64)z(x)), 64, 1); }      \
    FN s32 d_s_##suffix(f64 x) { return (s32)to_s(round(x), 32, 1); }          \
    FN u32 d_u_##suffix(f64 x) { return (u32)to_u(round(x), 32, 1); }          \
    FN s64 d_sl_##suffix(f64 x) { return to_s(round(x), 64, 1); }              \
    FN u64 d_ul_##suffix(f64 x) { return to_u(round(x), 64, 1); }
TO_INTEGERS(rn, rint)
TO_INTEGERS(rz, trunc)
TO_INTEGERS(ru, ceil)
TO_INTEGERS(rd, floor)
FN u8 f_u8(f32 x) { return (u8)to_u(trunc((f64)z(x)), 8, 0); }
FN s8 f_s8(f32 x) { return (s8)to_s(trunc((f64)z(x)), 8, 0); }
FN u16 f_u16(f32 x) { return (u16)to_u(trunc((f64)z(x)), 16, 0); }
FN s16 f_s16(f32 x) { return (s16)to_s(trunc((f64)z(x)), 16, 0); }
FN f32 d_f(f64 a) { return z((f32)a); }
FN f64 f_d(f32 a) { return (f64)z(a); }

/* ---- halves, by doubles ---- */
FN f64 h_d(h16 h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const f64 x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -x : x;
}
FN f32 h_f(h16 h) { return (f32)h_d(h); }
/* The half of x: mode 'n' to nearest even, 'z' toward zero, 'm' down, 'p' up. */
FN h16 to_half(f64 x, char mode)
{
    const u32 sign = signbit(x) ? 0x8000u : 0;
    if (x != x)
        return 0x7fff;
    const f64 m = fabs(x);
    const int up = mode == 'p' ? !sign : mode == 'm' ? sign != 0 : 0;
    if (m == 0)
        return (h16)sign;
    if (m == INFINITY)
        return (h16)(sign | 0x7c00u);
    if (m >= 65536 || (mode == 'n' && m >= 65520))
        return (h16)(sign | (mode == 'n' || up ? 0x7c00u : 0x7bffu));
    int e;
    frexp(m, &e);
    const int unit = e - 11 > -24 ? e - 11 : -24;
    const f64 scaled = ldexp(m, -unit), cut_ = mode == 'n' ? rint(scaled) : up ? ceil(scaled) : floor(scaled);
    const u32 n = (u32)cut_; /* of 2^unit, below 2049 */
    return (h16)(sign | (unit == -24 && n < 1024 ? n : (u32)((unit + 24) << 10) + n));
}
/* A sum of doubles that keeps, by an odd last bit, that it is not exact. */
FN f64 odd_sum(f64 a, f64 b)
{
    const f64 s = a + b, v = s - a, rest = (a - (s - v)) + (b - v);
    if (rest == 0 || !isfinite(s))
        return s;
    u64 bits = raw64(s);
    if (!(bits & 1))
        bits += (rest > 0) == (s > 0) ? 1 : ~0ull;
    return d_of(bits);
}
FN h16 h_zero(h16 h) { return (h & 0x7c00) ? h : (h16)(h & 0x8000); }
FN h16 h_sat(h16 h) { return (h & 0x7fff) > 0x7c00 || h >> 15 ? 0 : h > 0x3c00 ? 0x3c00 : h; }
FN h16 h_add(h16 a, h16 b) { return to_half(h_d(a) + h_d(b), 'n'); }
FN h16 h_sub(h16 a, h16 b) { return to_half(h_d(a) - h_d(b), 'n'); }
FN h16 h_mul(h16 a, h16 b) { return to_half(h_d(a) * h_d(b), 'n'); }
FN h16 h_fma(h16 a, h16 b, h16 c) { return to_half(odd_sum(h_d(a) * h_d(b), h_d(c)), 'n'); }
FN h16 h_add_sat(h16 a, h16 b) { return h_sat(h_add(a, b)); }
FN h16 h_fma_sat(h16 a, h16 b, h16 c) { return h_sat(h_fma(a, b, c)); }
FN h16 h_add_ftz(h16 a, h16 b) { return h_zero(h_add(h_zero(a), h_zero(b))); }
FN h16 h_mul_ftz(h16 a, h16 b) { return h_zero(h_mul(h_zero(a), h_zero(b))); }
FN h16 h_neg(h16 a) { return (h16)(a ^ 0x8000); }
FN h16 h_abs(h16 a) { return (h16)(a & 0x7fff); }
#define LOW(x) ((h16)(x))
#define HIGH(x) ((h16)((x) >> 16))
FN h32 both(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
FN h32 h2_add(h32 a, h32 b) { return both(h_add(LOW(a), LOW(b)), h_add(HIGH(a), HIGH(b))); }
FN h32 h2_sub(h32 a, h32 b) { return both(h_sub(LOW(a), LOW(b)), h_sub(HIGH(a), HIGH(b))); }
FN h32 h2_mul(h32 a, h32 b) { return both(h_mul(LOW(a), LOW(b)), h_mul(HIGH(a), HIGH(b))); }
FN h32 h2_fma(h32 a, h32 b, h32 c) { return both(h_fma(LOW(a), LOW(b), LOW(c)), h_fma(HIGH(a), HIGH(b), HIGH(c))); }
FN h32 h2_mul_sat(h32 a, h32 b) { return both(h_sat(h_mul(LOW(a), LOW(b))), h_sat(h_mul(HIGH(a), HIGH(b)))); }
FN h16 h_fma_ftz(h16 a, h16 b, h16 c) { return h_zero(h_fma(h_zero(a), h_zero(b), h_zero(c))); }
FN h32 h2_fma_ftz(h32 a, h32 b, h32 c) { return both(h_fma_ftz(LOW(a), LOW(b), LOW(c)), h_fma_ftz(HIGH(a), HIGH(b), HIGH(c))); }
FN h32 h2_neg(h32 a) { return a ^ 0x80008000u; }
FN h32 h2_abs(h32 a) { return a & 0x7fff7fffu; }
#define HALF_COMPARE(name, ordered, either)                                                                         \
    FN u32 h_##name(h16 x, h16 y)                                                                                   \
    {                                                                                                               \
        const f64 a = h_d(x), b = h_d(y);                                                                           \
        return a != a || b != b ? either : (ordered);                                                               \
    }                                                                                                               \
    FN u32 h2_##name(h32 a, h32 b) { return h_##name(LOW(a), LOW(b)) | h_##name(HIGH(a), HIGH(b)) << 1; }           \
    FN h32 h2_set_##name(h32 a, h32 b) { return both(h_##name(LOW(a), LOW(b)) * 0x3c00u, h_##name(HIGH(a), HIGH(b)) * 0x3c00u); } \
    FN u32 h2_mask_##name(h32 a, h32 b) { return 0u - h_##name(LOW(a), HIGH(b)); }
HALF_COMPARE(lt, a < b, 0)
HALF_COMPARE(le, a <= b, 0)
HALF_COMPARE(gt, a > b, 0)
HALF_COMPARE(ge, a >= b, 0)
HALF_COMPARE(eq, a == b, 0)
HALF_COMPARE(ne, a != b, 0)
HALF_COMPARE(ltu, a < b, 1)
HALF_COMPARE(leu, a <= b, 1)
HALF_COMPARE(gtu, a > b, 1)
HALF_COMPARE(geu, a >= b, 1)
HALF_COMPARE(equ, a == b, 1)
HALF_COMPARE(neu, a != b, 1)
HALF_COMPARE(num, 1, 0)
HALF_COMPARE(nan, 0, 1)
FN h16 f_h(f32 x) { return to_half((f64)z(x), 'n'); }
FN h16 f_h_rz(f32 x) { return to_half((f64)x, 'z'); }
FN h16 f_h_rm(f32 x) { return to_half((f64)x, 'm'); }
FN h16 f_h_rp(f32 x) { return to_half((f64)x, 'p'); }
FN h16 d_h(f64 x) { return to_half(x, 'n'); }
FN s32 h_s(h16 h) { return (s32)to_s(trunc(h_d(h)), 32, 0); }
FN u32 h_u(h16 h) { return (u32)to_u(rint(h_d(h)), 32, 0); }
FN s16 h_s16(h16 h) { return (s16)to_s(floor(h_d(h)), 16, 0); }
FN s64 h_sl(h16 h) { return to_s(ceil(h_d(h)), 64, 1); }
FN h16 s_h(s32 x) { return to_half((f64)x, 'n'); }
FN h16 u_h(u32 x) { return to_half((f64)x, 'z'); }
FN h16 s16_h(s16 x) { return to_half((f64)x, 'n'); }
FN h16 u16_h(u16 x) { return to_half((f64)x, 'p'); }
FN h16 sl_h(s64 x) { return to_half((f64)x, 'n'); } /* beyond 65520 all are infinite; below it x is exact in a double */
FN h16 h_rint(h16 h) { return to_half(rint(h_d(h)), 'n'); }
FN h16 h_floor(h16 h) { return to_half(floor(h_d(h)), 'n'); }
FN h16 h_ceil(h16 h) { return to_half(ceil(h_d(h)), 'n'); }
FN h16 h_trunc(h16 h) { return to_half(trunc(h_d(h)), 'n'); }

/* ---- atomics: threads come one after another ---- */
#define ATOMIC(name, type, value)   \
    FN type name(type *at, type x)  \
    {                               \
        const type old = *at;       \
        *at = (value);              \
        return old;                 \
    }
#define ATOMICS(s, type)                                \
    ATOMIC(atom_min_##s, type, x < old ? x : old)       \
    ATOMIC(atom_max_##s, type, x > old ? x : old)
#define ATOMICS_U(s, type)                              \
    ATOMIC(atom_add_##s, type, old + x)                 \
    ATOMIC(atom_and_##s, type, old & x)                 \
    ATOMIC(atom_or_##s, type, old | x)                  \
    ATOMIC(atom_xor_##s, type, old ^ x)                 \
    ATOMIC(atom_exch_##s, type, x)                      \
    FN type atom_cas_##s(type *at, type c, type x)      \
    {                                                   \
        const type old = *at;                           \
        *at = old == c ? x : old;                       \
        return old;                                     \
    }
ATOMICS(u, u32)
ATOMICS(s, s32)
ATOMICS(ul, u64)
ATOMICS(sl, s64)
ATOMICS_U(u, u32)
ATOMICS_U(ul, u64)
ATOMIC(atom_add_s, s32, (s32)((u32)old + (u32)x))
ATOMIC(atom_inc_u, u32, old >= x ? 0 : old + 1)
ATOMIC(atom_dec_u, u32, old == 0 || old > x ? x : old - 1)
FN f32 flush(f32 x) { return x != 0 && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
ATOMIC(atom_add_f, f32, flush(flush(old) + flush(x)))
ATOMIC(atom_add_fs, f32, old + x)
ATOMIC(atom_add_d, f64, old + x)
ATOMIC(atom_add_h2, h32, h2_add(old, x))
FN u16 atom_cas_h(u16 *at, u16 c, u16 x)
{
    const u16 old = *at;
    *at = old == c ? x : old;
    return old;
}

/* ---- a warp: every lane has kept its value before one reads another's ---- */
#define LANES(to, value)                                       \
    for (u32 t = 0, from_ = 0; t < THREADS; t++, (void)from_)  \
        all_to_[t] = (value);                                  \
    for (u32 t = 0; t < THREADS; t++)                          \
        kept.to = all_to_[t];
#define OTHER(from, other) all_kept[(t & ~31u) + ((other) & 31u)].from
#define SHFL(to, from, condition, other)                                        \
    {                                                                           \
        u64 all_to_[THREADS];                                                   \
        LANES(to, (condition) ? (u64)OTHER(from, other) : (u64)kept.from)       \
    }
#define SHFL_XOR(to, from, n) SHFL(to, from, 1, (t & 31) ^ (n))
#define SHFL_UP(to, from, n) SHFL(to, from, (t & 31) >= (n), (t & 31) - (n))
#define SHFL_DOWN(to, from, n) SHFL(to, from, (t & 31) + (n) < 32, (t & 31) + (n))
#define SHFL_IDX(to, from, by) SHFL(to, from, 1, (u32)kept.by)
#define SHFL_XOR_IN(to, from, n, width) SHFL(to, from, (n) < (width), (t & 31) ^ (n))
#define SHFL_DOWN_IN(to, from, n, width) SHFL(to, from, (t & ((width) - 1)) + (n) < (width), (t & 31) + (n))
#define SHFL_UP_BY(to, from, by) SHFL(to, from, (t & 31) >= (X & 31), (t & 31) - (X & 31))
#define VOTE(to, from, condition, value)                        \
    {                                                           \
        u64 all_to_[THREADS];                                   \
        LANES(to, ({                                            \
            u64 v_ = 0, n_ = 0;                                 \
            for (u32 l = 0; l < 32; l++) {                      \
                const u64 x = (u64)OTHER(from, l), mine = (u64)kept.from; \
                (void)x, (void)mine;                            \
                if (condition)                                  \
                    v_ |= 1ull << l, n_++;                      \
            }                                                   \
            (value);                                            \
        }))                                                     \
    }
#define BALLOT(to, from, c) VOTE(to, from, x < (c), v_)
#define ALL(to, from, c) VOTE(to, from, x < (c), n_ == 32)
#define ANY(to, from, c) VOTE(to, from, x == (c), n_ != 0)
#define MATCH_ANY(to, from) VOTE(to, from, (x & 3) == (mine & 3), v_)
#define MATCH_ANY_L(to, from) VOTE(to, from, ((x ^ mine) & 0x100000001ull) == 0, v_)
#define MATCH_ALL(to, from) VOTE(to, from, ((x ^ mine) & 1) == 0, n_ == 32 ? 0xfffffff7ull : 0)
#define BLOCK_VOTE(to, from, condition, value)       \
    {                                                \
        u32 n_ = 0;                                  \
        for (u32 t = 0; t < THREADS; t++) {          \
            const u64 x = (u64)kept.from;            \
            n_ += (condition);                       \
        }                                            \
        for (u32 t = 0; t < THREADS; t++)            \
            kept.to = (value);                       \
    }
#define COUNT_IF(to, from, c) BLOCK_VOTE(to, from, x < (c), n_)
#define AND_IF(to, from, c) BLOCK_VOTE(to, from, x != (c), n_ == THREADS)
#define OR_IF(to, from, c) BLOCK_VOTE(to, from, x == (c), n_ != 0)
FN u32 lane(u32 t) { return t & 31; }
FN u32 lane_lt(u32 t) { return (1u << (t & 31)) - 1; }
FN u32 lane_ge(u32 t) { return ~0u << (t & 31); }
/* clang-format on */
#endif
