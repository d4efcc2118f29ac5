/* SPDX-License-Identifier: MIT */
/*
 * One function for each PTX instruction that the kernels use, and nothing else; all exist on sm_75.
 * Section numbers are those of the PTX ISA 9.0. Addresses in shared memory are 32-bit offsets in the
 * .shared state space. A half, and a packed pair of halves, travel in 32-bit registers.
 */
#pragma once

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct b128 { u32 x, y, z, w; };

#define DEVICE __device__ __forceinline__ /* all functions are inlined: a call would have to spill registers */

/* ---- 9.7.14.5 warp-level matrix multiply: mma.m16n8k8 --------------------------------------
 * D[16][8] += A[16][8] * B[8][8]. With g = lane / 4 and t = lane % 4, a lane holds of
 *   A: a[0] from row g, a[1] from row g + 8: the elements of columns 2t and 2t + 1
 *   B: b    from column g: the elements of rows 2t and 2t + 1
 *   D: from rows g and g + 8: the elements of columns 2t and 2t + 1 (a pair of halves, or two floats) */

static DEVICE void mma_m16n8k8(u32 (&d)[2], const u32 (&a)[2], u32 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(b));
}

static DEVICE void mma_m16n8k8(float (&d)[4], const u32 (&a)[2], u32 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
}

/* The same, if `when`: alike for all lanes. */
static DEVICE void mma_m16n8k8(float (&d)[4], const u32 (&a)[2], u32 b, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %7, 0;"
                 " @p mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b), "r"((u32)when));
}

/* The same where D is zero before. */
static DEVICE void mma_m16n8k8_from_zero(float (&d)[4], const u32 (&a)[2], u32 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b), "f"(0.0f));
}

/* ---- 9.7.14.5.15 ldmatrix --------------------------------------------------------------------
 * Loads four or two 8x8 matrices of halves. Lane l passes the address of row l % 8, 16 bytes, of matrix
 * l / 8. From each matrix it receives elements 2t and 2t + 1 of row g, or with .trans of column g: the
 * fragments of mma.m16n8k8. Of two matrices lanes 0 to 15 pass the rows, but on sm_75 the others must pass
 * valid addresses, too. */

static DEVICE void ldmatrix_x4(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address));
}

static DEVICE void ldmatrix_x4_trans(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address));
}

static DEVICE void ldmatrix_x2(u32 &r0, u32 &r1, u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address));
}

static DEVICE void ldmatrix_x2_trans(u32 &r0, u32 &r1, u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address));
}

/* ---- 9.7.9 data movement: ld, st, mov -------------------------------------------------------
 * Global loads and the 16-byte store take a condition. If it is false, nothing is accessed, and the destination
 * of a load keeps its value. A predicate inside the asm costs no branch. */

static DEVICE void ld_global(b128 &v, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.v4.b32 {%0,%1,%2,%3}, [%4];}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(p), "r"((u32)when));
}

/* The same for what is read once: other lines stay in the caches longer. */
static DEVICE void ld_global_once(b128 &v, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.cs.v4.b32 {%0,%1,%2,%3}, [%4];}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(p), "r"((u32)when));
}

static DEVICE void ld_global(u32 &x, u32 &y, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.global.v2.b32 {%0,%1}, [%2];}"
                 : "+r"(x), "+r"(y) : "l"(p), "r"((u32)when));
}

static DEVICE void ld_global_half(u32 &half, const char *p, bool when)
{
    asm volatile("{.reg .pred p; .reg .b16 h; setp.ne.u32 p, %2, 0; mov.b16 h, 0;"
                 " @p ld.global.b16 h, [%1]; @p cvt.u32.u16 %0, h;}" : "+r"(half) : "l"(p), "r"((u32)when));
}

static DEVICE void ld_global_word(u32 &x, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.b32 %0, [%1];}"
                 : "+r"(x) : "l"(p), "r"((u32)when));
}

/* The same through a generic address, for the main loop. A generic address may alias shared memory, so ptxas
 * keeps these loads where the source has them among the st.shared, which preserves the tuned schedule. If the
 * condition is false, the destination is undefined: it is an output only, so that ptxas is free to load into
 * another register than the one that a store still reads. */
static DEVICE void ld_generic(b128 &v, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.v4.b32 {%0,%1,%2,%3}, [%4];}"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "r"((u32)when));
}

static DEVICE void ld_generic(u32 &x, u32 &y, const char *p, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.v2.b32 {%0,%1}, [%2];}"
                 : "=r"(x), "=r"(y) : "l"(p), "r"((u32)when));
}

/* p itself, of 64 bits. What follows from it is computed where it is needed, not once before a loop, to lie in registers. */
template <class T> static DEVICE T in_place(T p)
{
    asm volatile("" : "+l"(p));
    return p;
}

/* 9.7.9.15 prefetch: starts to fetch the cache line at p to L2. */
static DEVICE void prefetch_l2(const char *p)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
}

static DEVICE void st_global(char *p, const b128 &v, bool when = true)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p st.global.v4.b32 [%0], {%1,%2,%3,%4};}"
                 :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((u32)when) : "memory");
}

static DEVICE void st_global(char *p, u32 x, u32 y, bool when)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.global.v2.b32 [%0], {%1,%2};}"
                 :: "l"(p), "r"(x), "r"(y), "r"((u32)when) : "memory");
}

static DEVICE void st_global_half(char *p, u32 half)
{
    asm volatile("{.reg .b16 h; cvt.u16.u32 h, %1; st.global.b16 [%0], h;}" :: "l"(p), "r"(half) : "memory");
}

static DEVICE void st_global_word(char *p, u32 v)
{
    asm volatile("st.global.b32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}

/* For a word that several threads write, of several blocks: relaxed, so that this is no race (8.7). */
static DEVICE void st_global_common(u32 *p, u32 v)
{
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}

static DEVICE void ld_shared(b128 &v, u32 address)
{
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
}

static DEVICE void st_shared(u32 address, const b128 &v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
}

static DEVICE void ld_shared_word(u32 &v, u32 address)
{
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address));
}

static DEVICE void st_shared_word(u32 address, u32 v)
{
    asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(v));
}

static DEVICE void st_shared_words(u32 address, u32 x, u32 y)
{
    asm volatile("st.shared.v2.b32 [%0], {%1,%2};" :: "r"(address), "r"(x), "r"(y));
}

/* 9.7.13 red: the word at an address becomes the larger, or the smaller, of itself and x. */
static DEVICE void max_shared(u32 address, u32 x)
{
    asm volatile("red.shared.max.u32 [%0], %1;" :: "r"(address), "r"(x) : "memory");
}
static DEVICE void min_shared(u32 address, u32 x)
{
    asm volatile("red.shared.min.u32 [%0], %1;" :: "r"(address), "r"(x) : "memory");
}

static DEVICE void st_shared(u32 address, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1,%2};" :: "r"(address), "f"(x), "f"(y));
}

/* ---- 9.7.9 prmt; 9.7.13 bar; 9.7.9.21 cvt ----------------------------------------------------- */

/* Byte i of the result is the byte of hi:lo (0 to 7, from the lowest) that nibble i of the selector names. */
static DEVICE u32 permute(u32 lo, u32 hi, u32 selector)
{
    u32 r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(selector));
    return r;
}

static DEVICE void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
/* A barrier, and whether x is true of any thread of the block. */
static DEVICE bool any_at_barrier(bool x)
{
    u32 any;
    asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q;}"
                 : "=r"(any) : "r"((u32)x) : "memory");
    return any;
}
static DEVICE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

/* 9.7.12 exit: here, and not by a jump to where other threads end, for that code may not have been fetched yet. */
static DEVICE void leave() { asm volatile("exit;"); }

/* Whether x is true of all lanes. ptxas knows that the answer is one for the warp: code that branches on it may still
 * use uniform registers, and counts as converged. */
static DEVICE bool all_lanes(bool x)
{
    u32 all;
    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.all.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
                 : "=r"(all)
                 : "r"((u32)x));
    return all;
}

/* The lanes for which x is true, and v of another lane: of a given one, of that `by` below (its own where there is
 * none), of that whose number differs in the bits of `across`. 9.7.13 vote, 9.7.9 shfl. */
static DEVICE u32 lanes_where(bool x)
{
    u32 lanes;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;}" : "=r"(lanes) : "r"((u32)x));
    return lanes;
}
static DEVICE u32 from_lane(u32 v, u32 lane)
{
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(v) : "r"(lane));
    return v;
}
static DEVICE u32 from_below(u32 v, u32 by)
{
    asm volatile("shfl.sync.up.b32 %0, %0, %1, 0, 0xffffffff;" : "+r"(v) : "r"(by));
    return v;
}
static DEVICE u32 from_across(u32 v, u32 across)
{
    asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(v) : "r"(across));
    return v;
}

static DEVICE float half_to_float(u32 half)
{
    float f;
    asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(f) : "r"(half));
    return f;
}

/* The same, and no sooner: all halves of a thread as floats would be more than it has registers. */
static DEVICE float half_to_float_here(u32 half)
{
    float f;
    asm volatile("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(f) : "r"(half));
    return f;
}

/* 2^x, with a relative error of 2^-22.5 at most, and 1 / x, with one of 2^-23 (9.7.3 ex2, rcp). */
static DEVICE float exp2_approx(float x)
{
    float f;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(f) : "f"(x));
    return f;
}

static DEVICE float reciprocal_approx(float x)
{
    float f;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(f) : "f"(x));
    return f;
}

/* Two floats as a pair of halves, each rounded to nearest even. */
static DEVICE u32 pack_halves(float lo, float hi)
{
    u32 r;
    asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
        : "=r"(r) : "f"(lo), "f"(hi));
    return r;
}

/* The same one by one: the half next to x, a half as a float, two as a pair. */
static DEVICE u16 to_half(float x)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
static DEVICE float to_float(u16 half)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
    return f;
}
static DEVICE u32 pair_of(u16 lo, u16 hi)
{
    u32 r;
    asm("mov.b32 %0, {%1, %2};" : "=r"(r) : "h"(lo), "h"(hi));
    return r;
}

/* 9.7.4 fma: of three pairs of halves. */
static DEVICE u32 fma_halves(u32 x, u32 y, u32 z)
{
    u32 r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    return r;
}

/* 9.7.4 add: of two pairs of halves, each sum rounded to nearest even. */
static DEVICE u32 add_halves(u32 x, u32 y)
{
    u32 r;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    return r;
}

/* 9.7.7 set: of a pair of halves those that are negative become 0, and -0 too. NaN stays. */
static DEVICE u32 relu_of_pair(u32 x)
{
    u32 keep;
    asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(keep) : "r"(x), "r"(0));
    return x & keep;
}

/* ---- 9.7.13 atom -----------------------------------------------------------------------------------
 * Release and acquire. Between two barriers of its block, one thread's atomic orders the whole block: a
 * block that adds later sees all that blocks which added earlier had written before (memory consistency
 * model: causality order). A fence in every thread would do the same, but takes longer. */

static DEVICE u32 atomic_add(u32 *p, u32 x)
{
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(x) : "memory");
    return old;
}

/* ---- 10 special registers -------------------------------------------------------------------- */

/* volatile: read anew by each call, so that a value needed before and after the main loop occupies no
 * register in between. */
static DEVICE u32 thread_index()
{
    u32 v;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
    return v;
}

static DEVICE u32 block_index()
{
    u32 v;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(v));
    return v;
}

/* Blocks of the grid, along x. */
static DEVICE u32 block_count()
{
    u32 v;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(v));
    return v;
}

static DEVICE u32 batch_index()
{
    u32 v;
    asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(v));
    return v;
}

static DEVICE u32 operand_index()
{
    u32 v;
    asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(v));
    return v;
}

/* The address at which dynamic shared memory begins. */
extern __shared__ __align__(1024) char dynamic_shared[];
static DEVICE u32 shared_base()
{
    u32 address;
    asm("{.reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a;}" : "=r"(address) : "l"(dynamic_shared));
    return address;
}
