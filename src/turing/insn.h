/* SPDX-License-Identifier: MIT */
/*
 * insn.h - one decoded sm_75 instruction, laid out for an interpreter.
 *
 * turing_decode() (decode.c) fills a turing_insn_t from 128 bits and refuses
 * any bit it cannot account for.  Everything here is already unpacked: an
 * executor never looks at the 128 bits again.
 *
 * Conventions
 *   - Sources stand in the order in which the disassembly prints them,
 *     whatever field of the encoding they came from.
 *   - Register 255 is RZ, uniform register 63 is URZ, predicate 7 is PT / UPT.
 *     Reads of them give zero / true, writes vanish.
 *   - Modifiers are small integers in `m`; a field an opcode does not have is 0.
 *   - Addresses are byte offsets inside the kernel's code.
 */
#ifndef TURING_INSN_H
#define TURING_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TURING_RZ = 255, TURING_URZ = 63, TURING_PT = 7, TURING_INSN_BYTES = 16 };

/* Which unit executes an opcode. */
/* clang-format off */
#define TURING_PIPES(X) \
    X(ALU, "alu") X(FMA, "fma") X(FMA64, "fp64") X(HALF, "half") X(TENSOR, "tensor") \
    X(XU, "xu") X(LSU, "lsu") X(TEX, "tex") X(UNIFORM, "uniform") X(CONTROL, "control")
/* clang-format on */
typedef enum turing_pipe {
#define X(name, text) TURING_PIPE_##name,
    TURING_PIPES(X)
#undef X
        TURING_PIPE_COUNT
} turing_pipe_t;

/* Every operation, with its pipe.  One name per meaning, not per encoding:
 * operand forms share a name, IMAD / IMAD.WIDE / IMAD.HI do not. */
/* clang-format off */
#define TURING_OPS(X) \
    /* integer and logic */ \
    X(IADD3, ALU) X(LEA, ALU) X(LOP3, ALU) X(SHF, ALU) X(PRMT, ALU) X(SEL, ALU) X(MOV, ALU) X(ISETP, ALU) \
    X(IMNMX, ALU) X(IABS, ALU) X(SGXT, ALU) X(BMSK, ALU) X(VABSDIFF, ALU) X(VABSDIFF4, ALU) X(PLOP3, ALU) \
    X(P2R, ALU) X(R2P, ALU) X(CS2R, ALU) X(VOTE, ALU) X(LEPC, ALU) \
    X(IMAD, FMA) X(IMAD_WIDE, FMA) X(IMAD_HI, FMA) X(IDP, FMA) \
    X(POPC, XU) X(FLO, XU) X(BREV, XU) X(I2I, ALU) X(I2IP, ALU) \
    /* float */ \
    X(FADD, FMA) X(FMUL, FMA) X(FFMA, FMA) X(FSWZADD, FMA) \
    X(FSEL, ALU) X(FMNMX, ALU) X(FSET, ALU) X(FSETP, ALU) X(FCHK, XU) X(MUFU, XU) \
    X(F2F, XU) X(F2I, XU) X(I2F, XU) X(FRND, XU) \
    X(DADD, FMA64) X(DMUL, FMA64) X(DFMA, FMA64) X(DSETP, FMA64) \
    X(HADD2, HALF) X(HMUL2, HALF) X(HFMA2, HALF) X(HSET2, HALF) X(HSETP2, HALF) \
    X(HMMA_1688, TENSOR) X(HMMA_884, TENSOR) X(IMMA, TENSOR) X(BMMA, TENSOR) X(MOVM, TENSOR) \
    /* memory */ \
    X(LDG, LSU) X(STG, LSU) X(LDS, LSU) X(STS, LSU) X(LDL, LSU) X(STL, LSU) X(LD, LSU) X(ST, LSU) \
    X(LDSM, LSU) X(LDC, LSU) X(ATOM, LSU) X(ATOM_CAS, LSU) X(ATOMG, LSU) X(ATOMG_CAS, LSU) \
    X(ATOMS, LSU) X(ATOMS_CAS, LSU) X(RED, LSU) X(SHFL, LSU) X(MATCH, LSU) X(QSPC, LSU) \
    X(MEMBAR, LSU) X(ERRBAR, LSU) X(CCTL, LSU) X(CCTLL, LSU) X(CCTLT, LSU) \
    X(S2R, LSU) X(R2UR, LSU) X(B2R, LSU) X(S2UR, LSU) \
    /* uniform datapath */ \
    X(UIADD3, UNIFORM) X(ULEA, UNIFORM) X(ULOP3, UNIFORM) X(USHF, UNIFORM) X(UPRMT, UNIFORM) X(USEL, UNIFORM) \
    X(UMOV, UNIFORM) X(UISETP, UNIFORM) X(UIMAD, UNIFORM) X(UIMAD_WIDE, UNIFORM) X(UIMAD_HI, UNIFORM) \
    X(UPLOP3, UNIFORM) X(UP2UR, UNIFORM) X(UR2UP, UNIFORM) X(UFLO, UNIFORM) X(UBREV, UNIFORM) X(UPOPC, UNIFORM) \
    X(USGXT, UNIFORM) X(UBMSK, UNIFORM) X(ULDC, UNIFORM) X(VOTEU, UNIFORM) \
    /* control */ \
    X(BRA, CONTROL) X(BRX, CONTROL) X(BRXU, CONTROL) X(JMP, CONTROL) X(JMX, CONTROL) X(JMXU, CONTROL) \
    X(CALL_REL, CONTROL) X(CALL_ABS, CONTROL) X(RET_REL, CONTROL) X(RET_ABS, CONTROL) \
    X(EXIT, CONTROL) X(KILL, CONTROL) X(BSSY, CONTROL) X(BSYNC, CONTROL) X(BREAK, CONTROL) \
    X(BMOV, CONTROL) X(WARPSYNC, CONTROL) X(YIELD, CONTROL) X(NANOSLEEP, CONTROL) X(BAR, CONTROL) \
    X(DEPBAR, CONTROL) X(NOP, CONTROL) X(BPT, CONTROL) X(RTT, CONTROL) X(PMTRIG, CONTROL) \
    /* texture and surface: decoded and printed, not meant to be executed */ \
    X(TEX, TEX) X(TLD, TEX) X(TLD4, TEX) X(TXD, TEX) X(TXQ, TEX) X(TMML, TEX) X(SULD, TEX) X(SUST, TEX) \
    X(SURED, TEX) X(SUATOM, TEX)
/* clang-format on */
typedef enum turing_op {
#define X(name, pipe) TURING_##name,
    TURING_OPS(X)
#undef X
        TURING_OP_COUNT
} turing_op_t;

/* ---- modifier values ------------------------------------------------------ */

/* m.cmp: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered (float only).
 * Integer T is 7, float T is 15. */
enum { TURING_CMP_LT = 1, TURING_CMP_EQ = 2, TURING_CMP_GT = 4, TURING_CMP_UNORDERED = 8 };

/* m.bop: how a comparison is combined with the source predicate. */
enum { TURING_BOP_AND, TURING_BOP_OR, TURING_BOP_XOR };

/* m.rnd */
enum { TURING_RN, TURING_RM, TURING_RP, TURING_RZERO };

/* m.type (result / only type) and m.stype (source type of a conversion). */
typedef enum turing_type {
    TURING_U8,
    TURING_S8,
    TURING_U16,
    TURING_S16,
    TURING_U32,
    TURING_S32,
    TURING_U64,
    TURING_S64,
    TURING_F16,
    TURING_F32,
    TURING_F64,
    TURING_B32,
    TURING_B64,
    TURING_B128,
    TURING_F16X2,
    TURING_BU128 /* LDG.U.128 */,
    TURING_U4,
    TURING_S4,
    TURING_TYPE_COUNT
} turing_type_t;

/* m.func of MUFU */
enum {
    TURING_MUFU_COS,
    TURING_MUFU_SIN,
    TURING_MUFU_EX2,
    TURING_MUFU_LG2,
    TURING_MUFU_RCP,
    TURING_MUFU_RSQ,
    TURING_MUFU_RCP64H,
    TURING_MUFU_RSQ64H,
    TURING_MUFU_SQRT,
    TURING_MUFU_TANH
};

/* m.func of ATOM, ATOMG, ATOMS, RED (CAS has ops of its own) */
enum {
    TURING_ATOM_ADD,
    TURING_ATOM_MIN,
    TURING_ATOM_MAX,
    TURING_ATOM_INC,
    TURING_ATOM_DEC,
    TURING_ATOM_AND,
    TURING_ATOM_OR,
    TURING_ATOM_XOR,
    TURING_ATOM_EXCH,
    TURING_ATOM_SAFEADD
};

/* m.func of SHFL; of VOTE and VOTEU; of BAR; of BMOV; of MEMBAR (order) */
enum { TURING_SHFL_IDX, TURING_SHFL_UP, TURING_SHFL_DOWN, TURING_SHFL_BFLY };
enum { TURING_VOTE_ALL, TURING_VOTE_ANY, TURING_VOTE_EQ };
enum { TURING_BAR_SYNC, TURING_BAR_ARV, TURING_BAR_RED, TURING_BAR_SCAN, TURING_BAR_SYNCALL };
enum { TURING_RED_POPC, TURING_RED_AND, TURING_RED_OR }; /* m.red of BAR.RED */

/* m.scope of loads, stores, atomics, MEMBAR */
enum { TURING_SCOPE_CTA, TURING_SCOPE_SM, TURING_SCOPE_GPU, TURING_SCOPE_SYS };

/* m.order of loads and stores */
enum { TURING_ORDER_CONSTANT, TURING_ORDER_WEAK, TURING_ORDER_STRONG, TURING_ORDER_MMIO };

/* turing_operand_t.sel of half operands: which halves feed (low, high) lanes. */
enum { TURING_H1_H0, TURING_SEL_F32, TURING_H0_H0, TURING_H1_H1 };

/* Special registers (m.sreg of S2R, S2UR, CS2R); others are decoded too. */
enum {
    TURING_SR_LANEID = 0x00,
    TURING_SR_VIRTCFG = 0x02,
    TURING_SR_VIRTID = 0x03,
    TURING_SR_TID = 0x20,
    TURING_SR_TID_X = 0x21,
    TURING_SR_TID_Y = 0x22,
    TURING_SR_TID_Z = 0x23,
    TURING_SR_CTAID_X = 0x25,
    TURING_SR_CTAID_Y = 0x26,
    TURING_SR_CTAID_Z = 0x27,
    TURING_SR_NTID = 0x28,
    TURING_SR_EQMASK = 0x38,
    TURING_SR_LTMASK = 0x39,
    TURING_SR_LEMASK = 0x3a,
    TURING_SR_GTMASK = 0x3b,
    TURING_SR_GEMASK = 0x3c,
    TURING_SR_CLOCKLO = 0x50,
    TURING_SR_CLOCKHI = 0x51,
    TURING_SR_GLOBALTIMERLO = 0x52,
    TURING_SR_GLOBALTIMERHI = 0x53,
    TURING_SRZ = 0xff
};

/* ---- operands -------------------------------------------------------------- */

typedef enum turing_kind {
    TURING_NONE,
    TURING_REG,      /* R[reg .. reg+n-1]                                   */
    TURING_UREG,     /* UR[reg .. reg+n-1]                                  */
    TURING_IMM,      /* imm; for a 64-bit float operand its high word       */
    TURING_CONST,    /* c[bank][imm], n words                               */
    TURING_CONST_R,  /* c[bank][R[reg] + imm]: LDC                          */
    TURING_CONST_UR, /* c[bank][UR[reg] + imm]: ULDC, LDC                   */
    TURING_BINDLESS, /* c[UR[reg]][imm]: UR pair holds a constant bank handle */
    TURING_BARRIER,  /* convergence barrier B[reg]                          */
    TURING_STATE     /* warp state named by reg (MACTIVE ...): BMOV         */
} turing_kind_t;

typedef struct turing_operand {
    uint8_t kind;
    uint8_t reg;   /* register, uniform register or barrier number           */
    uint8_t n;     /* 32-bit words read or written                            */
    uint8_t bank;  /* constant bank                                           */
    uint8_t neg;   /* arithmetic negation; IADD3.X and LOP-like: see `inv`    */
    uint8_t abs;   /* absolute value, applied before neg                      */
    uint8_t inv;   /* bitwise complement                                      */
    uint8_t sel;   /* half selection TURING_H*; other sub-word selectors      */
    uint8_t reuse; /* operand cache hint of the control word                  */
    uint8_t slot;  /* register read port: 0 A, 1 B, 2 C (the reuse bit); 255 none */
    uint32_t imm;  /* immediate bits, or byte offset in the constant bank     */
} turing_operand_t;

typedef struct turing_pred {
    uint8_t reg; /* 7 is PT                       */
    uint8_t neg;
    uint8_t uniform; /* UP file                       */
    uint8_t present; /* the opcode has this operand   */
} turing_pred_t;

/* Address of a memory operand:
 *   (base << scale) + uniform + offset
 * base 255 and uniform 63 contribute nothing. */
typedef struct turing_mem {
    uint8_t present;
    uint8_t base;       /* R                                          */
    uint8_t base_words; /* 1: zero-extended 32 bit, 2: 64-bit pair    */
    uint8_t uniform;    /* UR                                         */
    uint8_t uniform_words;
    uint8_t scale;     /* log2 of the multiplier: 0, 2, 3 or 4       */
    uint8_t bytes;     /* bytes per thread: 1 2 4 8 16               */
    uint8_t is_signed; /* sign-extend a sub-word load                */
    uint8_t reuse;
    int32_t offset;
} turing_mem_t;

typedef struct turing_mods {
    uint8_t cmp, bop, rnd, type, stype, func, red, order, scope, sreg;
    uint8_t lut, lut2; /* LOP3; PLOP3 has one per destination            */
    uint8_t ftz, sat, dnz;
    uint8_t x;           /* .X / .EX: carry (borrow) in                    */
    uint8_t hi;          /* .HI: upper word of the shifted pair            */
    uint8_t right, wrap; /* SHF: direction, .W                             */
    uint8_t is_signed;   /* integer ops with a .U32 form: 1 = signed       */
    uint8_t shift;       /* LEA, ULEA                                      */
    uint8_t sx32;        /* LEA.HI.SX32                                    */
    uint8_t count;       /* LDSM: matrices 1 2 4                           */
    uint8_t trans;       /* LDSM .T                                        */
    uint8_t f32;         /* HMMA: float accumulator; HADD2.F32: float result */
    uint8_t bf;          /* xSET.BF: result 1.0 instead of all ones        */
    uint8_t mask;        /* byte mask or lane-op mask: P2R, R2P, MOV       */
    uint8_t byte;        /* P2R.Bn, R2P.Bn, I2F.Bn, F2I.. source byte      */
    uint8_t sh;          /* FLO.SH                                         */
    uint8_t ntz;         /* F2I.NTZ                                        */
    uint8_t cache;       /* eviction hint of loads and stores              */
    uint8_t clear;       /* BMOV.CLEAR                                     */
    uint8_t inc;         /* CALL.INC / RET.DEC as encoded                  */
    uint8_t conv;        /* branch .CONV / .DIV / .U as encoded            */
    uint8_t defer;       /* BAR .DEFER_BLOCKING                            */
    uint8_t fmt, aux;    /* opcode-specific rest, see isa.def              */
} turing_mods_t;

/* Control word, bits 105-125. */
typedef struct turing_control {
    uint8_t stall;    /* cycles until the next issue of this warp            */
    uint8_t yield;    /* 1: the scheduler may prefer another warp            */
    uint8_t wbarrier; /* scoreboard released when results are written; 7 none */
    uint8_t rbarrier; /* scoreboard released when sources are read; 7 none   */
    uint8_t wait;     /* mask of scoreboards to wait for before issue        */
    /* Fixed-latency opcodes: bit i keeps what read port i fetched for the next
     * instruction.  Others carry 0..5 here, without a known meaning. */
    uint8_t reuse;
} turing_control_t;

/* Five sources occur in texture opcodes only, whose src[0] is a second
 * destination; elsewhere there are at most three. */
enum { TURING_SRC_MAX = 5 };

typedef struct turing_insn {
    uint8_t op;    /* turing_op_t                                          */
    uint8_t n_src; /* used entries of src                                  */
    uint16_t row;  /* row of the instruction table (for the disassembler)  */
    uint32_t addr; /* byte offset in the kernel                            */
    turing_pred_t guard;
    turing_operand_t dst; /* kind NONE, REG, UREG, BARRIER or STATE       */
    turing_operand_t src[TURING_SRC_MAX];
    turing_pred_t pdst[2];
    turing_pred_t psrc[3];
    turing_mem_t mem;
    turing_mods_t m;
    turing_control_t ctl;
    /* BRA, BSSY, CALL, RET, JMP, BRX: code address.  Where a register takes
     * part (BRX, RET, CALL.REL R) the destination is target + register pair. */
    int64_t target;
    uint64_t raw[2]; /* the 128 bits, low word first                         */
} turing_insn_t;

/* ---- what an instruction touches -------------------------------------------- */

typedef enum turing_file {
    TURING_FILE_R,
    TURING_FILE_UR,
    TURING_FILE_P,
    TURING_FILE_UP,
    TURING_FILE_B,
    TURING_FILE_COUNT
} turing_file_t;

typedef struct turing_access {
    uint8_t file;
    uint8_t first, count; /* registers first .. first+count-1; never RZ, URZ, PT */
    uint8_t write;
    uint8_t slot; /* reads of R: encoding slot 0 A, 1 B, 2 C (the reuse bit); else 255 */
} turing_access_t;

enum { TURING_ACCESS_MAX = 24 };

/* Registers, predicates and barriers that the instruction reads and writes,
 * guard included.  Returns how many entries of `out` it filled. */
int turing_insn_access(const turing_insn_t *insn, turing_access_t out[TURING_ACCESS_MAX]);

turing_pipe_t turing_op_pipe(turing_op_t op);
const char *turing_op_name(turing_op_t op); /* "IADD3", "IMAD.WIDE" */
const char *turing_pipe_name(turing_pipe_t pipe);

#endif
