#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random kernels as C, for prelude.h: kernels.py SEED COUNT prints a batch. Compiled by nvcc it is a cubin, by gcc a library
whose table `batch` holds the same kernels in the host's own arithmetic. batches.py compiles and runs many.

Code that nvcc 13.0 itself compiles wrongly is not drawn: 64-bit parameters shifted by 31 (they are multiplied by -2^31), 16-bit
integers times -1 shifted right (without the wrap at 16 bits), a 16-bit parameter in the place of two halves (its neighbour comes
with it), bfe.s32 with constants beyond 31, a choice between -1 and -0 (by -Xcicc -O1), cvt.sat of -x, which may be -2^31 (its
-x > 254 becomes x <= -255), and with -ftz=true cvt.sat.s16 of a float that was rounded up or down (they become one F2I.S16 without
FTZ): cvt.sat has a max before it. One fault shows in the machine code alone, and turing_random leaves such kernels out:
(~x << 35 | y) + z becomes LEA.X ~x, which is ~(x << 3), where (~x) << 3 is meant. Each was looked up in the machine code, which
does as the emulator says."""
import random
import sys

# By type: expressions of it, with their weights. {u32} is an expression of that type, {n32} and {n64} a shift count, {k32} and
# {k64} a constant, {odd32} and {odd64} a divisor.
RULES = {
    "u32": """
        9 ({u32} + {u32})
        9 ({u32} - {u32})
        6 ({u32} * {u32})
        3 ({u32} * {u32} + {u32})
        3 ({u32} - {u32} * {u32})
        4 ({u32} & {u32})
        4 ({u32} | {u32})
        4 ({u32} ^ {u32})
        2 (~{u32})
        2 (0u - {u32})
        6 ({u32} << {n32})
        6 ({u32} >> {n32})
        3 (({u32} << {n32}) + {u32})
        3 ({u32} - ({u32} << {n32}))
        2 (({u32} << {n32}) - {u32})
        3 ({u32} - ({u32} >> {n32}))
        2 ({u32} + (u32)({s32} >> {n32}))
        2 ({u32} << ({u32} & 31))
        2 ({u32} >> ({u32} & 31))
        2 (u32)({s32} >> {n32})
        2 (u32)({s32} >> ({u32} & 31))
        1 shl_c({u32}, {u32} & 63)
        1 shr_c({u32}, {u32} & 63)
        1 sar_c({u32}, {u32} & 63)
        1 fun_l({u32}, {u32}, {u32})
        1 fun_r({u32}, {u32}, {u32})
        1 fun_lc({u32}, {u32}, {u32} & 63)
        1 fun_rc({u32}, {u32}, {u32} & 63)
        1 fun_l({u32}, {u32}, {n32})
        1 fun_r({u32}, {u32}, {n32})
        4 ({b} ? {u32} : {u32})
        2 ({b} && {b} ? {u32} : {u32})
        2 (u32){b}
        1 (0u - {b})
        2 min_u({u32}, {u32})
        2 max_u({u32}, {u32})
        2 (u32)min_s({s32}, {s32})
        2 (u32)max_s({s32}, {s32})
        2 abs_s({s32})
        2 mulhi_u({u32}, {u32})
        1 (u32)mulhi_s({s32}, {s32})
        1 madhi_u({u32}, {u32}, {u32})
        1 madhi_s({u32}, {u32}, {u32})
        1 mul24_u({u32}, {u32})
        1 (u32)mul24_s({s32}, {s32})
        2 ({u32} / {odd32})
        2 ({u32} % {odd32})
        1 ({u32} / ({u32} | 1u))
        1 ({u32} % ({u32} | 1u))
        3 (u32)({u64} >> {n64})
        3 (u32){u64}
        2 (({u32} >> {n32}) & {mask})
        1 bfe_u({u32}, {u32} & 31, {u32} & 31)
        1 bfe_u({u32}, {u32} & 63, {u32} & 63)
        1 bfe_s({u32}, {u32} & 31, {u32} & 31)
        1 bfe_s({u32}, {n32}, {n32})
        1 bfi({u32}, {u32}, {n32}, {n32})
        1 bfi({u32}, {u32}, {u32} & 31, {u32} & 31)
        1 popc({u32})
        1 popcl({u64})
        1 popc(~{u32})
        1 clz({u32})
        1 clz(~{u32})
        1 clzl({u64})
        1 ffs_({u32})
        1 ffsl_({u64})
        1 bfind_u({u32})
        1 bfind_s({s32})
        1 bfind_sh({u32})
        1 bfind_ul({u64})
        1 brev({u32})
        2 perm({u32}, {u32}, {k32})
        1 perm({u32}, {u32}, {u32})
        1 prmt({u32}, {u32}, {u32})
        1 prmt({u32}, {k32}, {u32})
        1 prmt_{prmt}({u32}, {u32}, {u32} & 3)
        1 (u32)dp4_s({s32}, {s32}, {s32})
        1 dp4_u({u32}, {u32}, {u32})
        1 (u32)dp4_su({s32}, {s32}, {s32})
        1 (u32)dp4_us({s32}, {s32}, {s32})
        1 (u32)dp2l_s({s32}, {s32}, {s32})
        1 (u32)dp2h_s({s32}, {s32}, {s32})
        1 dp2l_u({u32}, {u32}, {u32})
        1 dp2h_u({u32}, {u32}, {u32})
        1 (u32)dp2h_us({s32}, {s32}, {s32})
        1 sad_s({s32}, {s32}, {u32})
        1 sad_u({u32}, {u32}, {u32})
        1 vabs4({u32}, {u32})
        1 vsad4({u32}, {u32})
        1 vsads4({u32}, {u32})
        1 (u32)sat_s8(max_s({s32}, -2147483647))
        1 sat_u8(max_s({s32}, -2147483647))
        1 (u32)sat_s16(max_s({s32}, -2147483647))
        1 sat_u16(max_s({s32}, -2147483647))
        1 pack_s16({s32}, {s32})
        1 pack_u16({s32}, {s32})
        1 pack_s8({s32}, {s32}, {u32})
        1 pack_u8({s32}, {s32}, {u32})
        2 (u32){u16}
        2 (u32){u8}
        2 (u32){s16}
        2 (u32){s8}
        2 f_bits({f32})
        1 f_u_{rnd}({f32})
        1 d_u_{rnd}({f64})
        1 h_u({h16})
        1 h_bits({h16})
        1 h2_bits({h32})
    """,
    "s32": """
        5 (s32){u32}
        3 (s32)({u32} + {u32})
        3 (s32)({u32} - {u32})
        2 (s32)({u32} * {u32})
        3 ({s32} >> {n32})
        2 ({s32} / {odd32s})
        2 ({s32} % {odd32s})
        1 ({s32} / 2)
        1 ({s32} / {pow2})
        1 ({s32} % {pow2})
        1 ({s32} / (s32)(({u32} & 0x7fffffffu) | 1u))
        1 ({s32} % (s32)(({u32} & 0x7fffffffu) | 1u))
        2 min_s({s32}, {s32})
        2 max_s({s32}, {s32})
        2 ({b} ? {s32} : {s32})
        2 (s32){s8}
        2 (s32){s16}
        2 (s32){s64}
        2 f_s_{rnd}({f32})
        1 d_s_{rnd}({f64})
        1 h_s({h16})
    """,
    "u64": """
        9 ({u64} + {u64})
        9 ({u64} - {u64})
        4 ({u64} * {u64})
        3 ((u64){u32} * {u32})
        3 ((u64){u32} * {u32} + {u64})
        2 ({u64} - (u64){u32} * {u32})
        2 (u64)((s64){s32} * {s32})
        2 ({u64} + (u64)((s64){s32} * {s32}))
        3 ({u64} & {u64})
        3 ({u64} | {u64})
        3 ({u64} ^ {u64})
        3 (~{u64})
        2 (0ull - {u64})
        6 ({u64} << {n64})
        5 ({u64} >> {n64})
        4 (({u64} << {n64}) + {u64})
        5 ({u64} - ({u64} << {n64}))
        2 (({u64} << {n64}) - {u64})
        2 ((({u64} << {n64}) + ~{u64}) << {n30})
        2 ((({u64} << {n33}) + {u64}) << {n30})
        1 ({u64} + ({u64} << 3) + ((u64){u32} << {n33}))
        2 ((u64){u32} << 32 | {u32})
        2 ({u64} + ((u64){u32} << 32))
        2 ({u64} + (u64)((s64){s32} << {n64}))
        2 ({u64} << ({u32} & 63))
        2 ({u64} >> ({u32} & 63))
        2 (u64)({s64} >> {n64})
        1 (u64)({s64} >> ({u32} & 63))
        4 ({b} ? {u64} : {u64})
        2 min_ul({u64}, {u64})
        2 max_ul({u64}, {u64})
        1 (u64)min_sl({s64}, {s64})
        1 (u64)max_sl({s64}, {s64})
        1 abs_sl({s64})
        1 mulhi_ul({u64}, {u64})
        1 (u64)mulhi_sl({s64}, {s64})
        1 madhi_ul({u64}, {u64}, {u64})
        2 ({u64} / {odd64})
        2 ({u64} % {odd64})
        1 ({u64} / ({u64} | 1u))
        1 ({u64} % ({u64} | 1u))
        1 ({u64} / ((u64){u32} | 1u))
        1 brevl({u64})
        3 (u64){u32}
        3 (u64){s32}
        1 (u64){u16}
        1 (u64){s8}
        2 d_bits({f64})
        1 f_ul_{rnd}({f32})
        1 d_ul_{rnd}({f64})
        1 (u64)h_sl({h16})
    """,
    "s64": """
        6 (s64){u64}
        3 (s64){s32}
        3 ({s64} >> {n64})
        2 ((s64){s32} * {s32})
        1 ({s64} / {odd64s})
        1 ({s64} % {odd64s})
        1 ({s64} / {pow2})
        1 ({s64} / (s64)(({u64} >> 1) | 1u))
        1 ({s64} % (s64)(({u64} >> 1) | 1u))
        2 min_sl({s64}, {s64})
        2 max_sl({s64}, {s64})
        2 ({b} ? {s64} : {s64})
        1 f_sl_{rnd}({f32})
        1 d_sl_{rnd}({f64})
    """,
    "u16": "4 (u16)({u16} + {u16})\n3 (u16)({u16} - {u16})\n3 (u16)((u32){u16} * {u16})\n3 (u16){u32}\n2 (u16)({u16} >> {n16})\n2 (u16)({u16} << {n16})"
           "\n2 (u16)({b} ? {u16} : {u16})\n1 f_u16({f32})\n1 (u16)({u32} >> {n32})\n1 (u16)({u16} / {odd16})\n1 (u16)({u16} % {odd16})\n1 (u16){u8}"
           "\n1 (u16)({u16} ^ {u16})",
    "s16": "4 (s16)({u16} + {u16})\n3 (s16){u32}\n3 (s16)({s16} >> {n16})\n2 (s16)({s16} / {odd16})\n1 f_s16({f32})\n1 h_s16({h16})\n2 (s16)({b} ? {s16} : {s16})"
           "\n1 (s16){s8}\n1 (s16)({s16} < {s16} ? {s16} : {s16})",
    "u8": "4 (u8)({u8} + {u8})\n3 (u8)({u8} * {u8})\n3 (u8){u32}\n2 (u8)({u8} >> {n8})\n1 f_u8({f32})\n2 (u8)({b} ? {u8} : {u8})\n1 (u8)({u8} / {odd8})\n1 (u8)~{u8}"
          "\n1 (u8)({u64} >> {n64})",
    "s8": "4 (s8)({u8} + {u8})\n3 (s8){u32}\n2 (s8)({s8} >> {n8})\n1 f_s8({f32})\n2 (s8)({b} ? {s8} : {s8})\n1 (s8)({s8} / {odd8})",
    "b": """
        3 ({u32} {cmp} {u32})
        3 ({s32} {cmp} {s32})
        3 ({u64} {cmp} {u64})
        3 ({s64} {cmp} {s64})
        1 ({u16} {cmp} {u16})
        1 ({s16} {cmp} {s16})
        1 ({u8} {cmp} {u8})
        1 ({s8} {cmp} {s8})
        2 ({u32} {cmp} {k32})
        2 (({u32} & {k32}) != 0)
        2 ({b} && {b})
        2 ({b} || {b})
        1 ({b} != {b})
        1 (!{b})
        1 (({u32} >> {n32} & 1) != 0)
        3 (f_{fcmp}({f32}, {f32}) != 0)
        2 (d_{dcmp}({f64}, {f64}) != 0)
        1 (h_{hcmp}({h16}, {h16}) != 0)
        1 (h2_{hcmp}({h32}, {h32}) == {two})
    """,
    "f32": """
        6 f_add({f32}, {f32})
        4 f_sub({f32}, {f32})
        6 f_mul({f32}, {f32})
        6 f_fma({f32}, {f32}, {f32})
        2 f_fma(f_neg({f32}), {f32}, {f32})
        2 f_fma({f32}, {f32}, f_neg({f32}))
        2 f_add(f_abs({f32}), {f32})
        1 f_add({f32}, f_neg(f_abs({f32})))
        2 f_div({f32}, {f32})
        1 f_div(1.0f, {f32})
        2 f_sqrt(f_abs({f32}))
        3 f_min({f32}, {f32})
        3 f_max({f32}, {f32})
        1 f_max(f_abs({f32}), {f32})
        2 f_neg({f32})
        2 f_abs({f32})
        2 f_sat(f_add({f32}, {f32}))
        1 f_sat(f_mul({f32}, {f32}))
        1 f_sat(f_fma({f32}, {f32}, {f32}))
        1 f_sat({f32})
        1 f_rint({f32})
        1 f_floor({f32})
        1 f_ceil({f32})
        1 f_trunc({f32})
        1 f_set({f32}, {f32})
        4 ({b} ? {f32} : {f32})
        2 (f_{fcmp}({f32}, {f32}) ? {f32} : {f32})
        1 f_add_{dir}({f32}, {f32})
        1 f_mul_{dir}({f32}, {f32})
        1 f_div_{dir}({f32}, {f32})
        1 f_fma_{dir}({f32}, {f32}, {f32})
        2 s_f_{rnd}({s32})
        2 u_f_{rnd}({u32})
        1 sl_f_{rnd}({s64})
        1 ul_f_{rnd}({u64})
        1 s_f_rn((s32){s16})
        1 s_f_rn((s32){s8})
        1 u_f_rn((u32){u16})
        1 u_f_rn((u32){u8})
        1 u_f_rn({u32} >> {eight} & 255)
        2 d_f({f64})
        1 d_f_{dir}({f64})
        2 h_f({h16})
        1 h_f((h16)({h32} >> 16))
        1 f_of({u32})
    """,
    "f64": """
        6 d_add({f64}, {f64})
        4 d_sub({f64}, {f64})
        6 d_mul({f64}, {f64})
        6 d_fma({f64}, {f64}, {f64})
        1 d_fma(d_neg({f64}), {f64}, {f64})
        1 d_fma({f64}, {f64}, d_neg({f64}))
        1 d_add(d_abs({f64}), {f64})
        2 d_div({f64}, {f64})
        1 d_div(1.0, {f64})
        1 d_sqrt(d_abs({f64}))
        2 d_min({f64}, {f64})
        2 d_max({f64}, {f64})
        1 d_neg({f64})
        1 d_abs({f64})
        1 d_rint({f64})
        1 d_floor({f64})
        1 d_ceil({f64})
        1 d_trunc({f64})
        3 ({b} ? {f64} : {f64})
        2 (d_{dcmp}({f64}, {f64}) ? {f64} : {f64})
        1 d_add_{dir}({f64}, {f64})
        1 d_mul_{dir}({f64}, {f64})
        1 d_div_{dir}({f64}, {f64})
        1 d_fma_{dir}({f64}, {f64}, {f64})
        2 (f64){s32}
        2 (f64){u32}
        1 (f64){s64}
        1 (f64){u64}
        1 (f64){u8}
        1 (f64){s16}
        1 sl_d_{dir}({s64})
        1 ul_d_{dir}({u64})
        2 f_d({f32})
        1 h_d({h16})
        1 d_of({u64})
    """,
    "h16": "4 h_add({h16}, {h16})\n3 h_sub({h16}, {h16})\n4 h_mul({h16}, {h16})\n4 h_fma({h16}, {h16}, {h16})\n1 h_add_sat({h16}, {h16})\n1 h_fma_sat({h16}, {h16}, {h16})"
           "\n1 h_add_ftz({h16}, {h16})\n1 h_mul_ftz({h16}, {h16})\n1 h_neg({h16})\n1 h_abs({h16})\n1 h_fma(h_neg({h16}), {h16}, {h16})\n1 h_add({h16}, h_abs({h16}))"
           "\n2 f_h({f32})\n1 f_h_{hdir}({f32})\n1 d_h({f64})\n1 s_h({s32})\n1 u_h({u32})\n1 s16_h({s16})\n1 u16_h({u16})\n1 sl_h({s64})"
           "\n1 h_rint({h16})\n1 h_floor({h16})\n1 h_ceil({h16})\n1 h_trunc({h16})\n2 (h16)({b} ? {h16} : {h16})\n2 (h16){h32}\n2 (h16)({h32} >> 16)\n1 (h16){u32}",
    "h32": "4 h2_add({h32}, {h32})\n3 h2_sub({h32}, {h32})\n4 h2_mul({h32}, {h32})\n4 h2_fma({h32}, {h32}, {h32})\n1 h2_mul_sat({h32}, {h32})\n1 h2_fma_ftz({h32}, {h32}, {h32})"
           "\n1 h2_neg({h32})\n1 h2_abs({h32})\n1 h2_fma(h2_neg({h32}), {h32}, {h32})\n1 h2_add({h32}, h2_neg({h32}))\n1 h2_mul({h32}, h2_abs({h32}))"
           "\n2 h2_set_{hcmp}({h32}, {h32})\n1 h2_mask_{hcmp}({h32}, {h32})\n2 ({b} ? {h32} : {h32})\n2 ((u32){h16} | (u32){h16} << 16)\n1 ({u32} ^ 0x80000000u)"
           "\n2 h2_fma({h32}, {h2k}, {h32})\n2 h2_add({h32}, {h2k})\n2 h2_mul({h32}, {h2k})",
}
# By type: what a thread has, and what a block has in common.
OWN = {
    "u64": "v.a v.b (u64)v.p (u64)v.x (u64)v.y", "s64": "v.p v.r (s64)v.q (s64)v.m (s64)v.a", "u32": "v.x v.y v.z t (u32)v.a (u32)v.q",
    "s32": "v.q v.m (s32)v.x (s32)t", "u16": "v.h v.i (u16)v.x", "s16": "v.j v.k (s16)v.y", "u8": "v.c v.l (u8)v.y", "s8": "v.n v.u (s8)v.z",
    "f32": "v.f v.g v.o", "f64": "v.d v.e", "h16": "v.s v.t", "h32": "v.v v.w", "b": "(v.x<v.y) (v.q<0) (v.a<v.b) (t<40)",
}
COMMON = {
    "u64": "A B (u64)X (u64)P in[0].a", "s64": "P (s64)Q (s64)A in[0].p", "u32": "X Y (u32)A g in[0].x", "s32": "Q (s32)X (s32)g in[0].q",
    "u16": "H (u16)X", "s16": "J (s16)Y", "u8": "C (u8)X", "s8": "N (s8)Y", "f32": "F G", "f64": "D", "h16": "(h16)V (h16)(V>>16)", "h32": "V",
    "b": "(X<Y) (Q<0) (A<B) (g==0)",
}
CONSTANTS32 = [0, 1, 2, 3, 5, 7, 10, 16, 31, 32, 63, 100, 255, 256, 1000, 4096, 32767, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0xDEADBEEF]
CONSTANTS64 = CONSTANTS32 + [2**32, 2**32 + 1, 2**33, 2**40 - 1, 2**63, 2**63 - 1, 2**64 - 1, 2**64 - 2**32, 0x123456789ABCDEF0]
FLOATS = ["0.0", "1.0", "-1.0", "0.5", "2.0", "3.25", "1e-3", "1e10", "-123.456", "16777216.0", "0.1"]
ODD = [3, 5, 7, 9, 10, 11, 13, 25, 60, 100, 125, 127, 255, 641, 1000, 3600, 10007, 65535]
TYPES = [t for t in RULES if t != "b"]
BITS = {"f32": "f_bits(%s)", "f64": "d_bits(%s)", "h16": "h_bits(%s)", "h32": "h2_bits(%s)"}


def parsed(text):
    rows = [line.strip().split(" ", 1) for line in text.strip().splitlines()]
    return [int(weight) for weight, _ in rows], [rule for _, rule in rows]


RULES = {kind: parsed(text) for kind, text in RULES.items()}


def literal(kind, rnd):
    """A constant of a type, as C."""
    if kind in ("f32", "f64"):
        return rnd.choice(FLOATS) + ("f" if kind == "f32" else "")
    if kind == "u64":
        return "%dull" % rnd.choice(CONSTANTS64)
    if kind == "h16":
        return "(h16)%d" % rnd.choice([0, 0x3C00, 0xBC00, 0x3800, 0x4200, 0x7BFF, 0x0001, 0x8000])
    if kind == "h32":
        return "0x%xu" % rnd.choice([0x3C003C00, 0x38004200, 0xBC003C00, 0x00000000, 0x40000001])
    if kind == "b":
        return rnd.choice(["1", "(X != 77)"])
    value = rnd.choice([c for c in CONSTANTS32 if kind not in ("u16", "s16") or c & 0xFFFF != 0xFFFF]) # times -1 in 16 bits ptxas forgets to wrap
    return "%du" % value if kind == "u32" else "(%s)%d" % (kind, value) if kind != "s64" else "(s64)%dll" % (value - 2**31)


# What was once wrong, or refused: a batch has some of them.
CORNERS = parsed("""
    2 u64 A - (v.a << {n64})
    2 u64 v.b - (v.a << {n32})
    2 u64 (((u64)(s64)v.q << {n33}) + ~v.a) << {n32}
    1 u64 v.a % 1000000000000ull + v.a / {odd64}
    1 u64 (u64)((s64)v.b % (s64)(v.a >> 1 | 1u))
    1 u64 mulhi_ul(v.a, v.b) + v.a * v.b
    1 f32 u_f_rn(v.x >> {eight} & 255)
    1 f32 s_f_rn((s32)(s16)(v.x >> 16))
    1 f32 ul_f_{rnd}(~v.a << 32)
    1 f64 sl_d_{dir}((s64)-4294967296ll)
    1 f32 h_f((h16)(v.v >> 16))
    1 s32 h_s((h16)(v.v >> 16))
    1 s32 d_s_{rnd}(v.d)
    1 h16 f_h_rz(v.f)
    1 h16 h_{round}((h16)(v.w >> 16))
    1 f32 f_div(1.0f, f_of(v.x & 0x807fffffu))
    1 u32 pack_u8(v.q, v.m, v.x >> 16)
    1 s32 sat_s8(v.q)
    1 u32 sat_u16(Q)
    1 u32 vabs4(v.x, v.y)
""")


class Kernel:
    """One kernel: its variables, and how deep its statements nest."""

    def __init__(self, rnd, number):
        self.rnd, self.number = rnd, number
        self.names = {}  # name -> type, of variables that may be read
        self.fixed = set()  # of these, what no statement may write
        self.count = 0
        self.apart = []  # what stands before the kernel: functions that are called, tables in constant memory
        self.pure = False  # only variables and constants, as in a function of its own
        self.common = rnd.random() < 0.2  # mostly values that a block has in common
        self.kinds = rnd.choice([TYPES, TYPES, ["u64", "s64", "u32", "s32"], ["u32", "s32", "u16", "u8", "s16", "s8"], ["f32", "u32", "s32"],
                                 ["f64", "s64", "f32"], ["h16", "h32", "f32"]])

    # ---- expressions

    def leaf(self, kind):
        rnd = self.rnd
        have = [n for n, k in self.names.items() if k == kind]
        r = rnd.random()
        if have and (r < 0.5 or self.pure and r < 0.8):
            return rnd.choice(have)
        if r < 0.62 or self.pure:
            return "(a == b)" if self.pure and kind == "b" else literal(kind, rnd)
        common = r < 0.95 if self.common else r < 0.72
        return rnd.choice((COMMON if common else OWN)[kind].split())

    def special(self, name):
        rnd = self.rnd
        if name in RULES:
            return None
        simple = {
            "n32": lambda: rnd.randrange(1, 32), "n64": lambda: rnd.choice([1, 2, 3, 4, 5, 8, 12, 16, 30, 32, 33, 40, 48, 63]),
            "n30": lambda: rnd.randrange(1, 31), "n33": lambda: rnd.randrange(33, 41), "n16": lambda: rnd.randrange(1, 16), "n8": lambda: rnd.randrange(1, 8), "eight": lambda: rnd.choice([0, 8, 16, 24]),
            "k32": lambda: "%du" % rnd.choice(CONSTANTS32 + [rnd.getrandbits(32)]), "k64": lambda: "%dull" % rnd.choice(CONSTANTS64),
            "mask": lambda: "%du" % (2**rnd.randrange(1, 20) - 1), "odd32": lambda: "%du" % rnd.choice(ODD + [0x80000000, 0xFFFFFFFF, 6, 12, 48]),
            "odd32s": lambda: "(%d)" % rnd.choice(ODD + [-3, -7, -1000, 6]), "odd64": lambda: "%dull" % rnd.choice(ODD + [10**9 + 7, 10**12, 2**32 + 1, 6]),
            "odd64s": lambda: "(%dll)" % rnd.choice(ODD + [-3, -10**10, 10**9 + 7]), "odd16": lambda: rnd.choice([3, 5, 7, 10, 100, 641]),
            "odd8": lambda: rnd.choice([3, 5, 7, 10]), "pow2": lambda: 2**rnd.randrange(1, 12), "two": lambda: "%du" % rnd.randrange(4),
            "cmp": lambda: rnd.choice(["<", "<=", ">", ">=", "==", "!="]), "rnd": lambda: rnd.choice(["rn", "rz", "ru", "rd"]),
            "dir": lambda: rnd.choice(["rz", "ru", "rd"]), "hdir": lambda: rnd.choice(["rz", "rm", "rp"]),
            "fcmp": lambda: rnd.choice(["lt", "le", "eq", "ne", "nlt", "nle", "nan", "num"]), "dcmp": lambda: rnd.choice(["lt", "le", "eq", "ne", "nlt", "nle", "num"]),
            "hcmp": lambda: rnd.choice(["lt", "le", "gt", "ge", "eq", "ne", "ltu", "leu", "gtu", "geu", "equ", "neu", "num", "nan"]),
            "prmt": lambda: rnd.choice(["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]), "h2k": lambda: literal("h32", rnd),
            "round": lambda: rnd.choice(["rint", "floor", "ceil", "trunc"]),
        }
        return str(simple[name]())

    def expression(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        weights, rules = RULES[kind]
        return self.written_out(self.rnd.choices(rules, weights)[0], depth)

    def written_out(self, rule, depth):
        out = []
        at = 0
        while at < len(rule):
            if rule[at] != "{":
                out.append(rule[at])
                at += 1
                continue
            end = rule.index("}", at)
            name = rule[at + 1:end]
            out.append(self.special(name) or self.expression(name, depth - 1 - (self.rnd.random() < 0.3)))
            at = end + 1
        return "".join(out)

    # ---- statements

    def new(self, kind, value):
        name = "v%d" % self.count
        self.count += 1
        self.names[name] = kind
        return "%s %s = %s;" % (kind, name, value)

    def inside(self, count, depth):
        """Statements in braces, whose variables end there."""
        before = dict(self.names)
        text = self.statements(count, depth)
        self.names = before
        return "{ " + text + " }"

    def condition(self):
        return self.expression("b", self.rnd.randrange(0, 2))

    def statement(self, depth):
        rnd = self.rnd
        r = rnd.random()
        kind = rnd.choice(self.kinds)
        mine = [n for n, k in self.names.items() if n not in self.fixed]
        if r < 0.45 or not mine:
            return self.new(kind, self.expression(kind, rnd.randrange(1, 4)))
        if r < 0.6:
            name = rnd.choice(mine)
            return "%s = %s;" % (name, self.expression(self.names[name], rnd.randrange(1, 4)))
        if r < 0.70 and depth:
            other = " else " + self.inside(rnd.randrange(1, 3), depth - 1) if rnd.random() < 0.5 else ""
            return "if (%s) %s%s" % (self.condition(), self.inside(rnd.randrange(1, 3), depth - 1), other)
        if r < 0.78 and depth:
            return self.loop(depth)
        if r < 0.82 and depth:
            cases = ["case %d: %s break;" % (i * rnd.choice([1, 1, 3]) + 1 if i else 0, self.inside(1, depth - 1)) for i in range(rnd.randrange(3, 7))]
            seen, unique = set(), []
            for c in cases:
                if c.split(":")[0] not in seen:
                    seen.add(c.split(":")[0])
                    unique.append(c)
            return "switch (%s & 7) { %s default: %s }" % (self.expression("u32", 1), " ".join(unique), self.inside(1, depth - 1))
        if r < 0.84:
            return rnd.choice([self.called, self.table, self.dense_switch])(mine)
        if r < 0.89:
            return self.local_array()
        return self.memory()

    def loop(self, depth):
        rnd = self.rnd
        i = "i%d" % self.count
        self.count += 1
        self.names[i] = "u32"
        self.fixed.add(i)
        bound = rnd.choice(["%du" % rnd.randrange(2, 9), "(%s & 7)" % self.expression("u32", 1)])
        leave = " if (%s) %s;" % (self.condition(), rnd.choice(["break", "continue"])) if rnd.random() < 0.4 else ""
        text = "for (u32 %s = 0; %s < %s; %s++) { %s%s %s }" % (i, i, bound, i, self.inside(1, 0), leave, self.inside(rnd.randrange(1, 3), depth - 1))
        del self.names[i]
        return text

    def called(self, mine):
        """A function that is not inlined."""
        rnd = self.rnd
        name = "f%d_%d" % (self.number, len(self.apart))
        kind, a, b = (rnd.choice(["u32", "u64", "s32", "f32", "f64", "u16"]) for _ in range(3))
        names, self.names, self.pure = self.names, {"a": a, "b": b}, True
        value = self.expression(kind, 2)
        self.names, self.pure = names, False
        self.apart.append("NOINLINE %s %s(%s a, %s b) { return %s; }\n" % (kind, name, a, b, value))
        return self.new(kind, "%s(%s, %s)" % (name, self.expression(a, 1), self.expression(b, 1)))

    def table(self, mine):
        """Constant memory by an index."""
        kind = self.rnd.choice(["u8", "s8", "u16", "u32", "s32", "u64", "f32", "f64"])
        name = "c%d_%d" % (self.number, len(self.apart))
        self.apart.append("CONSTANT %s %s[16] = { %s };\n" % (kind, name, ", ".join(literal(kind, self.rnd) for _ in range(16))))
        return self.new(kind, "%s[%s & 15]" % (name, self.expression("u32", 1)))

    def dense_switch(self, mine):
        """So many cases that the compiler jumps by a table."""
        name = self.rnd.choice(mine)
        cases = ["case %d: %s = %s; break;" % (i, name, self.expression(self.names[name], self.rnd.randrange(1, 3))) for i in range(self.rnd.randrange(7, 13))]
        return "switch (%s & 15) { %s }" % (self.expression("u32", 1), " ".join(cases))

    def local_array(self):
        rnd = self.rnd
        kind = rnd.choice(["u32", "u64", "u16", "u8", "f32", "s8", "s16"])
        name = "r%d" % self.count
        fill = self.expression(kind, 1)
        value = self.expression(kind, 1)
        place, read = self.expression("u32", 1), self.expression("u32", 1)
        return "%s %s[8]; for (int i = 0; i < 8; i++) %s[i] = (%s)(%s + (%s)i); %s[%s & 7] = %s; " % (
            kind, name, name, kind, fill, kind, name, place, value) + self.new(kind, "%s[%s & 7]" % (name, read))

    def memory(self):
        """Reads `in` as an array of any type, from its start or backwards from its end; writes to the thread's own part of `mem`."""
        rnd = self.rnd
        kind = rnd.choice(["u8", "s8", "u16", "s16", "u32", "u64", "f32", "f64", "vec2", "vec4", "own", "own"])
        size = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "f32": 4, "u64": 8, "f64": 8, "vec2": 8, "vec4": 16, "own": 0}[kind]
        if kind == "own":
            kind = rnd.choice(["u8", "s8", "u16", "s16", "u32", "u64", "vec2", "vec4"])
            size = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "u64": 8, "vec2": 8, "vec4": 16}[kind]
            n = 128 // size
            at = "((%s *)(mem + (u64)(t + g * THREADS) * MEM_BYTES))" % kind
            index = rnd.choice(["(%s & %d)" % (self.expression("u32", 1), n - 1), "%d" % rnd.randrange(n), "(%s %% %du)" % (self.expression("u64", 1), n)])
            if kind[0] == "v":
                fields = ["%s[%s].%s = %s;" % (at, index, f, self.expression("u32", 1)) for f in ("xy" if kind == "vec2" else "xyzw")]
                whole = "{ %s w; %s %s[%s] = w; } " % (kind, " ".join("w.%s = %s;" % (f, self.expression("u32", 1)) for f in ("xy" if kind == "vec2" else "xyzw")), at, index)
                return rnd.choice([whole, whole, fields[0]]) + self.new("u32", "%s[%s].y" % (at, index))
            return "%s[%s] = %s; " % (at, index, self.expression(kind, 1)) + self.new(kind, "%s[%s]" % (at, index))
        n = 128 * 128 // size
        at = "((const %s *)in)" % kind
        index = rnd.choice([
            "(%s & %d)" % (self.expression("u32", 1), n - 1),
            "(%s %% %dull)" % (self.expression("u64", 1), n),
            "(t * %d + %d)" % (rnd.choice([1, 2, 4, 8]), rnd.randrange(8)),
            "(s64)%d - (s64)(%s & %d) * %d" % (n - 1, self.expression("u32", 1), 63, rnd.choice([1, 2, 4, 8])),
            "%d - (s32)(%s & 31) * %d" % (n - 1, self.expression("u32", 1), rnd.choice([1, 3, 8])),
            "(%s & 63) * 4 + (%s & 3)" % (self.expression("u64", 1), self.expression("u32", 0)),
        ])
        if kind[0] == "v":
            fields = "xy" if kind == "vec2" else "xyzw"
            name = "w%d" % self.count
            return "const %s %s = %s[%s]; " % (kind, name, at, index) + self.new("u32", " ^ ".join("%s.%s * %du" % (name, f, 2 * i + 1) for i, f in enumerate(fields)))
        return self.new(kind, "%s[%s]" % (at, index))

    def statements(self, count, depth):
        return " ".join(self.statement(depth) for _ in range(count))

    def results(self, first, last):
        """Writes words first to last - 1 of the thread's results: every variable counts."""
        names = list(self.names.items())
        words = ["0"] * (last - first)
        for i, (name, kind) in enumerate(names):
            at = i % len(words)
            value = "(u64)" + BITS.get(kind, "%s") % name
            words[at] = value if words[at] == "0" else "%s * 31u + %s" % (words[at], value)
        return " ".join("out[(u64)(t + g * THREADS) * OUT_WORDS + %d] = %s;" % (first + i, w) for i, w in enumerate(words))

    # ---- whole kernels

    def text(self):
        rnd = self.rnd
        form = rnd.choices(["corner", "expression", "program", "blocks", "atomics"], [6, 36, 34, 14, 10])[0]
        body = "EACH_BLOCK "
        start = "const in_t v = in[t + g * THREADS]; (void)v; "
        if form == "corner":
            kind, rule = rnd.choices(CORNERS[1], CORNERS[0])[0].split(" ", 1)
            body += "{ EACH_THREAD { " + start + self.new(kind, self.written_out(rule, 1)) + self.results(0, 1) + " } }"
        elif form == "expression":
            kind = rnd.choice(self.kinds)
            a = "EACH_THREAD { " + start + self.new(kind, self.expression(kind, rnd.randrange(2, 5)))
            if rnd.random() < 0.5:
                other = rnd.choice(self.kinds)
                a += self.new(other, self.expression(other, rnd.randrange(2, 4)))
            body += "{ " + a + self.results(0, 2) + " } }"
        elif form == "program":
            body += "{ EACH_THREAD { " + start + self.statements(rnd.randrange(3, 9), 2) + self.results(0, 8) + " } }"
        else:
            body += "{ KEPT "
            middle = self.blocks() if form == "blocks" else self.atomics()
            body += middle + " }"
        return "%sKERNEL(k%d) { %s }\n" % ("".join(self.apart), self.number, body)

    START = "const in_t v = in[t + g * THREADS]; (void)v; "

    def blocks(self):
        """Values pass through shared memory, or from lane to lane."""
        rnd = self.rnd
        kind = rnd.choice(["u32", "u64", "u16", "u8", "s16", "f32"])
        text = "SHARED(%s, sh, 64) EACH_THREAD { " % kind + self.START + self.statements(rnd.randrange(1, 4), 1)
        text += " sh[t] = %s; kept.a = %s; kept.b = %s; kept.x = %s; } PHASE " % (
            self.expression(kind, 1), self.expression("u64", 1), self.expression("u64", 1), self.expression("u32", 1))
        self.names = {}
        for _ in range(rnd.randrange(0, 4)):
            to, source = rnd.choice([("y", "x"), ("x", "y"), ("a", "b"), ("b", "a"), ("y", "y")])
            small = to in "xy" and source in "xy"
            calls = ["SHFL_XOR({}, {}, %du)" % rnd.randrange(32), "SHFL_UP({}, {}, %du)" % rnd.randrange(1, 32), "SHFL_DOWN({}, {}, %du)" % rnd.randrange(1, 32),
                     "SHFL_IDX({}, {}, x)", "SHFL_XOR_IN({}, {}, %du, 8)" % rnd.randrange(8), "SHFL_DOWN_IN({}, {}, %du, 16)" % rnd.randrange(16), "SHFL_UP_BY({}, {}, x)"]
            if small:
                calls += ["BALLOT({}, {}, X)", "ALL({}, {}, 0xfffffff0u)", "ANY({}, {}, X)", "MATCH_ANY({}, {})", "MATCH_ALL({}, {})",
                          "COUNT_IF({}, {}, Y)", "AND_IF({}, {}, 5u)", "OR_IF({}, {}, 0u)"]
            elif to in "ab":
                calls += ["MATCH_ANY_L({}, {})"]
            text += rnd.choice(calls).format(to, source) + " "
        text += "EACH_THREAD { " + self.START
        self.names = {"kept.a": "u64", "kept.b": "u64", "kept.x": "u32", "kept.y": "u32"}
        self.fixed |= set(self.names)
        text += self.new(kind, "sh[(t * %d + %s) & 63]" % (rnd.choice([1, 3, 5, 7]), rnd.choice(["%du" % rnd.randrange(64), "X", self.expression("u32", 1)])))
        if rnd.random() < 0.3:
            text += self.new("u32", "%s(t)" % rnd.choice(["lane", "lane_lt", "lane_ge"]))
        return text + self.statements(rnd.randrange(1, 4), 1) + self.results(0, 8) + " }"

    def atomics(self):
        """In places of one's own with what they return; in places that all share without it, where the order does not matter."""
        rnd = self.rnd
        s = rnd.choice(["u", "u", "s", "ul", "ul", "sl"])
        kind = {"u": "u32", "s": "s32", "ul": "u64", "sl": "s64"}[s]
        shared = rnd.random() < 0.6
        names = {"u": "add min max and or xor inc dec", "s": "add min max", "ul": "add min max and or xor", "sl": "min max"}[s]
        op = rnd.choice(names.split())
        text = "SHARED(%s, cells, CELLS) SHARED(u64, own, 64) EACH_THREAD { " % kind
        text += "if (t < CELLS) cells[t] = (%s)(X + t * 77u); own[t] = A; } PHASE EACH_THREAD { " % kind + self.START
        text += self.statements(rnd.randrange(1, 3), 1)
        value = "X" if op in ("inc", "dec") else self.expression(kind, 1)
        place = "&cells[%s & (CELLS - 1)]" % self.expression("u32", 1) if shared else "(%s *)(mem + MEM_BYTES * IN_COUNT) + (%s & (CELLS - 1))" % (
            kind, self.expression("u32", 1))
        call = "atom_%s_%s(%s, %s);" % (op, s, place, value)
        text += " if (%s) %s" % (self.condition(), call) if rnd.random() < 0.4 else " " + call
        for _ in range(rnd.randrange(1, 3)):
            mine = "own + t" if rnd.random() < 0.5 else "(mem + (u64)(t + g * THREADS) * MEM_BYTES)"
            in_shared = mine == "own + t"
            what = rnd.choice(["u", "s", "ul", "sl", "u", "ul", "cas", "exch", "f", "d", "h2", "h"])
            if what == "cas":
                w = rnd.choice(["u", "ul"])
                k = {"u": "u32", "ul": "u64"}[w]
                text += " " + self.new(k, "atom_cas_%s((%s *)(%s), %s, %s)" % (w, k, mine, rnd.choice(["(%s)A" % k, "0", self.expression(k, 1)]), self.expression(k, 1)))
            elif what == "exch":
                w = rnd.choice(["u", "ul"])
                k = {"u": "u32", "ul": "u64"}[w]
                text += " " + self.new(k, "atom_exch_%s((%s *)(%s), %s)" % (w, k, mine, self.expression(k, 1)))
            elif what == "f":
                text += " *(f32 *)(%s) = f_of(f_bits(%s));" % (mine, self.expression("f32", 1))
                text += " " + self.new("f32", "atom_add_%s((f32 *)(%s), f_of(f_bits(%s)))" % ("fs" if in_shared else "f", mine, self.expression("f32", 1)))
                text += " *(u32 *)(%s) = f_bits(*(f32 *)(%s));" % (mine, mine)
            elif what == "d":
                text += " " + self.new("f64", "atom_add_d((f64 *)(%s), %s)" % (mine, self.expression("f64", 1)))
                text += " *(u64 *)(%s) = d_bits(*(f64 *)(%s));" % (mine, mine)
            elif what == "h2":
                text += " " + self.new("h32", "atom_add_h2((h32 *)(%s), %s)" % (mine, self.expression("h32", 1)))
                text += " *(u32 *)(%s) = h2_bits(*(u32 *)(%s));" % (mine, mine)
            elif what == "h":
                text += " " + self.new("u16", "atom_cas_h((u16 *)(%s), %s, %s)" % (mine, rnd.choice(["(u16)A", "0"]), self.expression("u16", 1)))
            else:
                k = {"u": "u32", "s": "s32", "ul": "u64", "sl": "s64"}[what]
                o = rnd.choice({"u": "add min max and or xor inc dec", "s": "add min max", "ul": "add min max and or xor", "sl": "min max"}[what].split())
                text += " " + self.new(k, "atom_%s_%s((%s *)(%s), %s)" % (o, what, k, mine, self.expression(k, 1)))
        text += self.results(0, 6) + " } PHASE EACH_THREAD { "
        self.names = {}
        text += "out[(u64)(t + g * THREADS) * OUT_WORDS + 6] = (u64)cells[t & (CELLS - 1)]; out[(u64)(t + g * THREADS) * OUT_WORDS + 7] = own[t]; }"
        return text


def batch(seed, count):
    out = ["/* kernels.py %d %d */\n#include \"prelude.h\"\n" % (seed, count)]
    for i in range(count):
        out.append(Kernel(random.Random(seed * 100003 + i), i).text())
    out.append("#ifndef __CUDACC__\ntypedef void kernel_t(PARAMETERS);\nkernel_t *const batch[] = { %s 0 };\n#endif\n" % " ".join("k%d," % i for i in range(count)))
    return "".join(out)


if __name__ == "__main__":
    sys.stdout.write(batch(int(sys.argv[1]), int(sys.argv[2])))
