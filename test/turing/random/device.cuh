/* SPDX-License-Identifier: MIT */
/* device.cuh - prelude.h's functions as the GPU's instructions, a thread each. */
#pragma once

#define FN static __device__ __forceinline__
#define NOINLINE static __device__ __noinline__
#define CONSTANT static __device__ __constant__ const
#define KERNEL(n) extern "C" __global__ void __launch_bounds__(64) n(PARAMETERS)
#define EACH_BLOCK const u32 g = blockIdx.x;
#define EACH_THREAD for (u32 t = threadIdx.x, once = 1; once; once = 0)
#define PHASE __syncthreads();
#define SHARED(type, name, count) __shared__ type name[count];
#define KEPT kept_t kept = {0, 0, 0, 0};

#define ASM1(name, to, from, text, t, f)                \
    FN to name(from a)                                  \
    {                                                   \
        to r;                                           \
        asm(text " %0, %1;" : "=" t(r) : f(a));         \
        return r;                                       \
    }
#define ASM2(name, to, from, text, t, f)                        \
    FN to name(from a, from b)                                  \
    {                                                           \
        to r;                                                   \
        asm(text " %0, %1, %2;" : "=" t(r) : f(a), f(b));       \
        return r;                                               \
    }
#define ASM3(name, to, from, text, t, f)                                \
    FN to name(from a, from b, from c)                                  \
    {                                                                   \
        to r;                                                           \
        asm(text " %0, %1, %2, %3;" : "=" t(r) : f(a), f(b), f(c));     \
        return r;                                                       \
    }

FN u32 raw32(f32 x) { return __float_as_uint(x); }
FN u64 raw64(f64 x) { return (u64)__double_as_longlong(x); }
FN f32 f_of(u32 x) { return __uint_as_float(x); }
FN f64 d_of(u64 x) { return __longlong_as_double((s64)x); }

FN u32 popc(u32 x) { return __popc(x); }
FN u32 popcl(u64 x) { return __popcll(x); }
FN u32 clz(u32 x) { return __clz((int)x); }
FN u32 clzl(u64 x) { return __clzll((s64)x); }
FN u32 ffs_(u32 x) { return __ffs((int)x); }
FN u32 ffsl_(u64 x) { return __ffsll((s64)x); }
FN u32 brev(u32 x) { return __brev(x); }
FN u64 brevl(u64 x) { return __brevll(x); }
ASM1(bfind_u, u32, u32, "bfind.u32", "r", "r")
ASM1(bfind_s, u32, s32, "bfind.s32", "r", "r")
ASM1(bfind_sh, u32, u32, "bfind.shiftamt.u32", "r", "r")
ASM1(bfind_ul, u32, u64, "bfind.u64", "r", "l")
ASM3(bfe_u, u32, u32, "bfe.u32", "r", "r")
ASM3(bfe_s, u32, u32, "bfe.s32", "r", "r")
FN u32 bfi(u32 a, u32 b, u32 p, u32 n)
{
    u32 r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(p), "r"(n));
    return r;
}
FN u32 perm(u32 a, u32 b, u32 s) { return __byte_perm(a, b, s); }
ASM3(prmt, u32, u32, "prmt.b32", "r", "r")
ASM3(prmt_f4e, u32, u32, "prmt.b32.f4e", "r", "r")
ASM3(prmt_b4e, u32, u32, "prmt.b32.b4e", "r", "r")
ASM3(prmt_rc8, u32, u32, "prmt.b32.rc8", "r", "r")
ASM3(prmt_ecl, u32, u32, "prmt.b32.ecl", "r", "r")
ASM3(prmt_ecr, u32, u32, "prmt.b32.ecr", "r", "r")
ASM3(prmt_rc16, u32, u32, "prmt.b32.rc16", "r", "r")
FN u32 fun_l(u32 a, u32 b, u32 s) { return __funnelshift_l(a, b, s); }
FN u32 fun_r(u32 a, u32 b, u32 s) { return __funnelshift_r(a, b, s); }
FN u32 fun_lc(u32 a, u32 b, u32 s) { return __funnelshift_lc(a, b, s); }
FN u32 fun_rc(u32 a, u32 b, u32 s) { return __funnelshift_rc(a, b, s); }
ASM2(shl_c, u32, u32, "shl.b32", "r", "r") /* counts past the width give zeros or signs */
ASM2(shr_c, u32, u32, "shr.u32", "r", "r")
ASM2(sar_c, u32, u32, "shr.s32", "r", "r")
FN u32 mulhi_u(u32 a, u32 b) { return __umulhi(a, b); }
FN s32 mulhi_s(s32 a, s32 b) { return __mulhi(a, b); }
FN u64 mulhi_ul(u64 a, u64 b) { return __umul64hi(a, b); }
FN s64 mulhi_sl(s64 a, s64 b) { return __mul64hi(a, b); }
ASM3(madhi_u, u32, u32, "mad.hi.u32", "r", "r")
ASM3(madhi_s, u32, u32, "mad.hi.s32", "r", "r")
ASM3(madhi_ul, u64, u64, "mad.hi.u64", "l", "l")
FN u32 mul24_u(u32 a, u32 b) { return __umul24(a, b); }
FN s32 mul24_s(s32 a, s32 b) { return __mul24(a, b); }
FN s32 dp4_s(s32 a, s32 b, s32 c) { return __dp4a(a, b, c); }
FN u32 dp4_u(u32 a, u32 b, u32 c) { return __dp4a(a, b, c); }
ASM3(dp4_su, s32, s32, "dp4a.s32.u32", "r", "r")
ASM3(dp4_us, s32, s32, "dp4a.u32.s32", "r", "r")
ASM3(dp2l_s, s32, s32, "dp2a.lo.s32.s32", "r", "r")
ASM3(dp2h_s, s32, s32, "dp2a.hi.s32.s32", "r", "r")
ASM3(dp2l_u, u32, u32, "dp2a.lo.u32.u32", "r", "r")
ASM3(dp2h_u, u32, u32, "dp2a.hi.u32.u32", "r", "r")
ASM3(dp2h_us, s32, s32, "dp2a.hi.u32.s32", "r", "r")
FN u32 sad_s(s32 a, s32 b, u32 c) { return __sad(a, b, c); }
FN u32 sad_u(u32 a, u32 b, u32 c) { return __usad(a, b, c); }
FN u32 vabs4(u32 a, u32 b) { return __vabsdiffu4(a, b); }
FN u32 vsad4(u32 a, u32 b) { return __vsadu4(a, b); }
FN u32 vsads4(u32 a, u32 b) { return __vsads4(a, b); }
ASM1(sat_s8, s32, s32, "cvt.sat.s8.s32", "r", "r")
ASM1(sat_u8, u32, s32, "cvt.sat.u8.s32", "r", "r")
ASM1(sat_s16, s32, s32, "cvt.sat.s16.s32", "r", "r")
ASM1(sat_u16, u32, s32, "cvt.sat.u16.s32", "r", "r")
ASM2(pack_s16, u32, s32, "cvt.pack.sat.s16.s32", "r", "r")
ASM2(pack_u16, u32, s32, "cvt.pack.sat.u16.s32", "r", "r")
FN u32 pack_s8(s32 a, s32 b, u32 c)
{
    u32 r;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
FN u32 pack_u8(s32 a, s32 b, u32 c)
{
    u32 r;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
FN s32 min_s(s32 a, s32 b) { return min(a, b); }
FN s32 max_s(s32 a, s32 b) { return max(a, b); }
FN u32 min_u(u32 a, u32 b) { return min(a, b); }
FN u32 max_u(u32 a, u32 b) { return max(a, b); }
FN s64 min_sl(s64 a, s64 b) { return min(a, b); }
FN s64 max_sl(s64 a, s64 b) { return max(a, b); }
FN u64 min_ul(u64 a, u64 b) { return min(a, b); }
FN u64 max_ul(u64 a, u64 b) { return max(a, b); }
FN u32 abs_s(s32 a) { return (u32)abs(a); }
FN u64 abs_sl(s64 a) { return (u64)llabs(a); }

FN f32 f_add(f32 a, f32 b) { return a + b; }
FN f32 f_sub(f32 a, f32 b) { return a - b; }
FN f32 f_mul(f32 a, f32 b) { return a * b; }
FN f32 f_div(f32 a, f32 b) { return a / b; }
FN f32 f_fma(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
FN f32 f_min(f32 a, f32 b) { return fminf(a, b); }
FN f32 f_max(f32 a, f32 b) { return fmaxf(a, b); }
FN f32 f_sqrt(f32 a) { return sqrtf(a); }
FN f32 f_neg(f32 a) { return -a; }
FN f32 f_abs(f32 a) { return fabsf(a); }
FN f32 f_sat(f32 a) { return __saturatef(a); }
FN f32 f_rint(f32 a) { return rintf(a); }
FN f32 f_floor(f32 a) { return floorf(a); }
FN f32 f_ceil(f32 a) { return ceilf(a); }
FN f32 f_trunc(f32 a) { return truncf(a); }
FN u32 f_lt(f32 a, f32 b) { return a < b; }
FN u32 f_le(f32 a, f32 b) { return a <= b; }
FN u32 f_eq(f32 a, f32 b) { return a == b; }
FN u32 f_ne(f32 a, f32 b) { return a != b; }
FN u32 f_nlt(f32 a, f32 b) { return !(a < b); }
FN u32 f_nle(f32 a, f32 b) { return !(a <= b); }
FN u32 f_nan(f32 a, f32 b) { return isnan(a) || isnan(b); }
FN u32 f_num(f32 a, f32 b) { return !isnan(a) && !isnan(b); }
FN f32 f_set(f32 a, f32 b)
{
    f32 r;
#ifdef FTZ
    asm("set.lt.ftz.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
#else
    asm("set.lt.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
#endif
    return r;
}
#define ROUNDED2(name, op) \
    FN f32 f_##name##_rz(f32 a, f32 b) { return __f##op##_rz(a, b); } \
    FN f32 f_##name##_ru(f32 a, f32 b) { return __f##op##_ru(a, b); } \
    FN f32 f_##name##_rd(f32 a, f32 b) { return __f##op##_rd(a, b); } \
    FN f64 d_##name##_rz(f64 a, f64 b) { return __d##op##_rz(a, b); } \
    FN f64 d_##name##_ru(f64 a, f64 b) { return __d##op##_ru(a, b); } \
    FN f64 d_##name##_rd(f64 a, f64 b) { return __d##op##_rd(a, b); }
ROUNDED2(add, add)
ROUNDED2(mul, mul)
ROUNDED2(div, div)
FN f32 f_fma_rz(f32 a, f32 b, f32 c) { return __fmaf_rz(a, b, c); }
FN f32 f_fma_ru(f32 a, f32 b, f32 c) { return __fmaf_ru(a, b, c); }
FN f32 f_fma_rd(f32 a, f32 b, f32 c) { return __fmaf_rd(a, b, c); }
FN f64 d_fma_rz(f64 a, f64 b, f64 c) { return __fma_rz(a, b, c); }
FN f64 d_fma_ru(f64 a, f64 b, f64 c) { return __fma_ru(a, b, c); }
FN f64 d_fma_rd(f64 a, f64 b, f64 c) { return __fma_rd(a, b, c); }

FN f64 d_add(f64 a, f64 b) { return a + b; }
FN f64 d_sub(f64 a, f64 b) { return a - b; }
FN f64 d_mul(f64 a, f64 b) { return a * b; }
FN f64 d_div(f64 a, f64 b) { return a / b; }
FN f64 d_fma(f64 a, f64 b, f64 c) { return fma(a, b, c); }
FN f64 d_min(f64 a, f64 b) { return fmin(a, b); }
FN f64 d_max(f64 a, f64 b) { return fmax(a, b); }
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
FN u32 d_num(f64 a, f64 b) { return !isnan(a) && !isnan(b); }

/* conversions */
#define FROM_FLOATS(to, type, word, code)                                          \
    FN to f_##type##_rn(f32 a) { return __float2##word##_rn(a); }                  \
    FN to f_##type##_rz(f32 a) { return __float2##word##_rz(a); }                  \
    FN to f_##type##_ru(f32 a) { return __float2##word##_ru(a); }                  \
    FN to f_##type##_rd(f32 a) { return __float2##word##_rd(a); }                  \
    FN to d_##type##_rn(f64 a) { return __double2##word##_rn(a); }                 \
    FN to d_##type##_rz(f64 a) { return __double2##word##_rz(a); }                 \
    FN to d_##type##_ru(f64 a) { return __double2##word##_ru(a); }                 \
    FN to d_##type##_rd(f64 a) { return __double2##word##_rd(a); }                 \
    FN f32 type##_f_rn(to a) { return __##word##2float_rn(a); }                    \
    FN f32 type##_f_rz(to a) { return __##word##2float_rz(a); }                    \
    FN f32 type##_f_ru(to a) { return __##word##2float_ru(a); }                    \
    FN f32 type##_f_rd(to a) { return __##word##2float_rd(a); }
FROM_FLOATS(s32, s, int, "r")
FROM_FLOATS(u32, u, uint, "r")
FROM_FLOATS(s64, sl, ll, "l")
FROM_FLOATS(u64, ul, ull, "l")
#define INTS_TO_DOUBLE(type, word)                              \
    FN f64 type##_d_rz(type##_t a) { return __##word##2double_rz(a); } \
    FN f64 type##_d_ru(type##_t a) { return __##word##2double_ru(a); } \
    FN f64 type##_d_rd(type##_t a) { return __##word##2double_rd(a); }
typedef s64 sl_t;
typedef u64 ul_t;
INTS_TO_DOUBLE(sl, ll)
INTS_TO_DOUBLE(ul, ull)
#ifdef FTZ
#define CVT_F(to) "cvt.rzi.ftz." to ".f32"
#else
#define CVT_F(to) "cvt.rzi." to ".f32"
#endif
ASM1(f_u8_, u16, f32, CVT_F("u8"), "h", "f")
ASM1(f_s8_, s16, f32, CVT_F("s8"), "h", "f")
ASM1(f_u16, u16, f32, CVT_F("u16"), "h", "f")
ASM1(f_s16, s16, f32, CVT_F("s16"), "h", "f")
FN u8 f_u8(f32 a) { return (u8)f_u8_(a); }
FN s8 f_s8(f32 a) { return (s8)f_s8_(a); }
FN f32 d_f(f64 a) { return (f32)a; }
FN f32 d_f_rz(f64 a) { return __double2float_rz(a); }
FN f32 d_f_ru(f64 a) { return __double2float_ru(a); }
FN f32 d_f_rd(f64 a) { return __double2float_rd(a); }
FN f64 f_d(f32 a) { return (f64)a; }

/* halves */
ASM2(h_add, h16, h16, "add.rn.f16", "h", "h")
ASM2(h_sub, h16, h16, "sub.rn.f16", "h", "h")
ASM2(h_mul, h16, h16, "mul.rn.f16", "h", "h")
ASM3(h_fma, h16, h16, "fma.rn.f16", "h", "h")
ASM2(h_add_sat, h16, h16, "add.rn.sat.f16", "h", "h")
ASM3(h_fma_sat, h16, h16, "fma.rn.sat.f16", "h", "h")
ASM2(h_add_ftz, h16, h16, "add.rn.ftz.f16", "h", "h")
ASM2(h_mul_ftz, h16, h16, "mul.rn.ftz.f16", "h", "h")
ASM1(h_neg, h16, h16, "neg.f16", "h", "h")
ASM1(h_abs, h16, h16, "abs.f16", "h", "h")
ASM2(h2_add, h32, h32, "add.rn.f16x2", "r", "r")
ASM2(h2_sub, h32, h32, "sub.rn.f16x2", "r", "r")
ASM2(h2_mul, h32, h32, "mul.rn.f16x2", "r", "r")
ASM3(h2_fma, h32, h32, "fma.rn.f16x2", "r", "r")
ASM2(h2_mul_sat, h32, h32, "mul.rn.sat.f16x2", "r", "r")
ASM3(h2_fma_ftz, h32, h32, "fma.rn.ftz.f16x2", "r", "r")
ASM1(h2_neg, h32, h32, "neg.f16x2", "r", "r")
ASM1(h2_abs, h32, h32, "abs.f16x2", "r", "r")
#define HALF_COMPARE(name)                                                                                              \
    FN u32 h_##name(h16 a, h16 b)                                                                                       \
    {                                                                                                                   \
        u32 r;                                                                                                          \
        asm("{.reg .pred p; setp." #name ".f16 p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "h"(a), "h"(b));          \
        return r;                                                                                                       \
    }                                                                                                                   \
    FN u32 h2_##name(h32 a, h32 b)                                                                                      \
    {                                                                                                                   \
        u32 r;                                                                                                          \
        asm("{.reg .pred p, q; .reg .u32 s; setp." #name ".f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; selp.u32 s, 2, 0, q;" \
            "or.b32 %0, %0, s;}" : "=r"(r) : "r"(a), "r"(b));                                                           \
        return r;                                                                                                       \
    }                                                                                                                   \
    FN h32 h2_set_##name(h32 a, h32 b)                                                                                  \
    {                                                                                                                   \
        u32 r;                                                                                                          \
        asm("set." #name ".f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                        \
        return r;                                                                                                       \
    }                                                                                                                   \
    FN u32 h2_mask_##name(h32 a, h32 b)                                                                                 \
    {                                                                                                                   \
        u32 r;                                                                                                          \
        asm("set." #name ".u32.f16 %0, %1, %2;" : "=r"(r) : "h"((u16)a), "h"((u16)(b >> 16)));                          \
        return r;                                                                                                       \
    }
HALF_COMPARE(lt)
HALF_COMPARE(le)
HALF_COMPARE(gt)
HALF_COMPARE(ge)
HALF_COMPARE(eq)
HALF_COMPARE(ne)
HALF_COMPARE(ltu)
HALF_COMPARE(leu)
HALF_COMPARE(gtu)
HALF_COMPARE(geu)
HALF_COMPARE(equ)
HALF_COMPARE(neu)
HALF_COMPARE(num)
HALF_COMPARE(nan)
#ifdef FTZ
ASM1(f_h, h16, f32, "cvt.rn.ftz.f16.f32", "h", "f")
#else
ASM1(f_h, h16, f32, "cvt.rn.f16.f32", "h", "f")
#endif
ASM1(f_h_rz, h16, f32, "cvt.rz.f16.f32", "h", "f")
ASM1(f_h_rm, h16, f32, "cvt.rm.f16.f32", "h", "f")
ASM1(f_h_rp, h16, f32, "cvt.rp.f16.f32", "h", "f")
ASM1(d_h, h16, f64, "cvt.rn.f16.f64", "h", "d")
ASM1(h_f, f32, h16, "cvt.f32.f16", "f", "h")
ASM1(h_d, f64, h16, "cvt.f64.f16", "d", "h")
ASM1(h_s, s32, h16, "cvt.rzi.s32.f16", "r", "h")
ASM1(h_u, u32, h16, "cvt.rni.u32.f16", "r", "h")
ASM1(h_s16, s16, h16, "cvt.rmi.s16.f16", "h", "h")
ASM1(h_sl, s64, h16, "cvt.rpi.s64.f16", "l", "h")
ASM1(s_h, h16, s32, "cvt.rn.f16.s32", "h", "r")
ASM1(u_h, h16, u32, "cvt.rz.f16.u32", "h", "r")
ASM1(s16_h, h16, s16, "cvt.rn.f16.s16", "h", "h")
ASM1(u16_h, h16, u16, "cvt.rp.f16.u16", "h", "h")
ASM1(sl_h, h16, s64, "cvt.rn.f16.s64", "h", "l")
ASM1(h_rint, h16, h16, "cvt.rni.f16.f16", "h", "h")
ASM1(h_floor, h16, h16, "cvt.rmi.f16.f16", "h", "h")
ASM1(h_ceil, h16, h16, "cvt.rpi.f16.f16", "h", "h")
ASM1(h_trunc, h16, h16, "cvt.rzi.f16.f16", "h", "h")

/* atomics; a warp */
#define ATOMIC(name, type, call) FN type name(type *at, type x) { return call; }
#define ATOMICS(s, type)                                  \
    ATOMIC(atom_min_##s, type, atomicMin(at, x))          \
    ATOMIC(atom_max_##s, type, atomicMax(at, x))
#define ATOMICS_U(s, type)                                \
    ATOMIC(atom_add_##s, type, atomicAdd(at, x))          \
    ATOMIC(atom_and_##s, type, atomicAnd(at, x))          \
    ATOMIC(atom_or_##s, type, atomicOr(at, x))            \
    ATOMIC(atom_xor_##s, type, atomicXor(at, x))          \
    ATOMIC(atom_exch_##s, type, atomicExch(at, x))        \
    FN type atom_cas_##s(type *at, type c, type x) { return atomicCAS(at, c, x); }
ATOMICS(u, u32)
ATOMICS(s, s32)
ATOMICS(ul, u64)
ATOMICS(sl, s64)
ATOMICS_U(u, u32)
ATOMICS_U(ul, u64)
ATOMIC(atom_add_s, s32, atomicAdd(at, x))
ATOMIC(atom_inc_u, u32, atomicInc(at, x))
ATOMIC(atom_dec_u, u32, atomicDec(at, x))
ATOMIC(atom_add_f, f32, atomicAdd(at, x)) /* of global memory: flushes subnormals, in and out */
ATOMIC(atom_add_fs, f32, atomicAdd(at, x)) /* of shared memory: does not */
ATOMIC(atom_add_d, f64, atomicAdd(at, x))
FN h32 atom_add_h2(h32 *at, h32 x)
{
    h32 r;
    asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(r) : "l"(at), "r"(x) : "memory");
    return r;
}
FN u16 atom_cas_h(u16 *at, u16 c, u16 x) { return atomicCAS((unsigned short *)at, c, x); }

#define SHFL_XOR(to, from, n) kept.to = __shfl_xor_sync(~0u, kept.from, n);
#define SHFL_UP(to, from, n) kept.to = __shfl_up_sync(~0u, kept.from, n);
#define SHFL_DOWN(to, from, n) kept.to = __shfl_down_sync(~0u, kept.from, n);
#define SHFL_IDX(to, from, by) kept.to = __shfl_sync(~0u, kept.from, (int)(kept.by & 31));
#define SHFL_XOR_IN(to, from, n, width) kept.to = __shfl_xor_sync(~0u, kept.from, n, width);
#define SHFL_DOWN_IN(to, from, n, width) kept.to = __shfl_down_sync(~0u, kept.from, n, width);
#define SHFL_UP_BY(to, from, by) kept.to = __shfl_up_sync(~0u, kept.from, X & 31);
#define BALLOT(to, from, c) kept.to = __ballot_sync(~0u, kept.from < (c));
#define ALL(to, from, c) kept.to = __all_sync(~0u, kept.from < (c)) != 0;
#define ANY(to, from, c) kept.to = __any_sync(~0u, kept.from == (c)) != 0;
#define MATCH_ANY(to, from) kept.to = __match_any_sync(~0u, kept.from & 3);
#define MATCH_ANY_L(to, from) kept.to = __match_any_sync(~0u, kept.from & 0x100000001ull);
#define MATCH_ALL(to, from)                                   \
    {                                                         \
        int all;                                              \
        kept.to = __match_all_sync(~0u, kept.from & 1, &all); \
        kept.to ^= (u32)(all != 0) << 3;                      \
    }
#define COUNT_IF(to, from, c) kept.to = (u32)__syncthreads_count(kept.from < (c));
#define AND_IF(to, from, c) kept.to = __syncthreads_and(kept.from != (c)) != 0;
#define OR_IF(to, from, c) kept.to = __syncthreads_or(kept.from == (c)) != 0;
FN u32 lane_lt(u32 t)
{
    u32 r;
    (void)t;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
    return r;
}
FN u32 lane_ge(u32 t)
{
    u32 r;
    (void)t;
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r));
    return r;
}
FN u32 lane(u32 t)
{
    u32 r;
    (void)t;
    asm("mov.u32 %0, %%laneid;" : "=r"(r));
    return r;
}
