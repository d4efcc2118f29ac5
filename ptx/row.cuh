/* SPDX-License-Identifier: MIT */
/*
 * A row of the table (src/table/kernels.def), and what follows from it: a kernel variant is a row, the storage of A and B,
 * and how they are accessed. Everything else in this folder is a template over a variant V.
 */
#pragma once
#include "floats.cuh"
#include "operand.cuh"
#include "packed.cuh"
#include "../src/table/args.h"
#include "../src/table/tile_facts.h"

#if HGEMM_PACKED_B
struct arguments : kernel_args_t { scales_t scales; packed_form_t packed; };
static_assert(sizeof(arguments) == sizeof(packed_args_t), "the host lays the parameter out otherwise");
static DEVICE scales_t scales_of(const arguments &args) { return args.scales; }
#elif HGEMM_BF16
struct arguments : kernel_args_t { scales_t scales; };
static_assert(sizeof(arguments) == sizeof(bf16_args_t), "the host lays the parameter out otherwise");
static DEVICE scales_t scales_of(const arguments &args) { return args.scales; }
#else
typedef kernel_args_t arguments;
static DEVICE scales_t scales_of(const arguments &) { return {}; }
#endif

enum accumulator { f16, f32 };

/* What A and B are in memory. On their way to shared memory bfloat16 become halves by a scale for the operand, and floats
 * two halves each, by scales for each row of A and column of B. */
enum operands { OF_HALVES, OF_BFLOATS, OF_FLOATS };

/* A row of the table as a type, row_<name>, and t4_<name> with the columns that ON_T4 replaces: it becomes the machine
 * code for a T4, where a row has that. The two differ in the order of blocks, in prefetches, in the order of
 * instructions, and in what warps outside of D do: not in any bit of D. */
struct row_defaults {
    static constexpr int LDS_GAP = 0, STS_FIRST = 0, STS_GAP = 0, LDG_LAG = 0;
    struct bf16_schedule { static constexpr int LDS_GAP = 0; };
    static constexpr bool T4_ROW = false, PACKED = false, TABLES = false;
    static constexpr accuracy ACCURACY = TO_F32;
};
#define BLOCK(m, n, k) static constexpr int BM = m, BN = n, BK = k;
#define WARP(m, n, k) static constexpr int WM = m, WN = n, WK = k;
#define STAGES(count) static constexpr int STAGES = count;
#define ACC(type) static constexpr accumulator ACC = type;
#define PER_SM(t4, newer) static constexpr int BLOCKS = t4, NEWER_BLOCKS = newer;
#define WEIGHTS(access) static constexpr bool PACKED = true; /* B is packed weights */
#define TABLES() static constexpr bool TABLES = true;      /* whose codes are by tables */
#define ACCURACY(level) static constexpr accuracy ACCURACY = TO_##level;
#define WALK(group, prefetch) static constexpr int GROUP = group, PREFETCH = prefetch;
#define SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag) \
    static constexpr int LDS_GAP = lds_gap, STS_FIRST = sts_first, STS_GAP = sts_gap, LDG_LAG = ldg_lag;
#define BF16_SCHEDULE(lds_gap, sts_first, sts_gap, ldg_lag, cvt_lead, cvt_gap) \
    struct bf16_schedule { \
        static constexpr int LDS_GAP = lds_gap, STS_FIRST = sts_first, STS_GAP = sts_gap, LDG_LAG = ldg_lag; \
        static constexpr int CVT_LEAD = cvt_lead, CVT_GAP = cvt_gap; \
    };
#define HGEMM_KERNEL(rung, name, columns, ...) \
    struct row_##name : row_defaults { columns }; \
    struct t4_##name : row_##name { __VA_ARGS__ static constexpr bool T4_ROW = true; };
#include "../src/table/kernels.def"

/* The schedule of a main loop: that of the row, or what the row has for bfloat16. */
template <class SPEC, operands ARE, bool IS_OWN = ARE == OF_BFLOATS && (SPEC::bf16_schedule::LDS_GAP > 0)> struct schedule_of {
    static constexpr int LDS_GAP = SPEC::LDS_GAP, STS_FIRST = SPEC::STS_FIRST, STS_GAP = SPEC::STS_GAP;
    static constexpr int LDG_LAG = SPEC::LDG_LAG, CVT_LEAD = STS_FIRST < 8 ? STS_FIRST : 8, CVT_GAP = CVT_LEAD / 4;
};
template <class SPEC> struct schedule_of<SPEC, OF_BFLOATS, true> : SPEC::bf16_schedule {};

/* A k-tile of one operand: who loads what. */
template <operands ARE, int X, int BK, bool ALONG_K, int THREADS, access HOW, bool GATHERS>
struct operand_of : operand<X, BK, ALONG_K, THREADS, HOW, GATHERS> {};
template <int X, int BK, bool ALONG_K, int THREADS, access HOW, bool GATHERS>
struct operand_of<OF_FLOATS, X, BK, ALONG_K, THREADS, HOW, GATHERS> : float_operand<X, BK, ALONG_K, THREADS, HOW, GATHERS> {};

/* The same of B, which may be packed weights. */
template <bool IS_PACKED, operands ARE, int X, int BK, bool ALONG_K, int THREADS, access HOW>
struct second_operand : operand_of<ARE, X, BK, ALONG_K, THREADS, HOW, false> {};
template <operands ARE, int X, int BK, bool ALONG_K, int THREADS, access HOW>
struct second_operand<true, ARE, X, BK, ALONG_K, THREADS, HOW> : packed_operand {};

template <class SPEC, bool A_ALONG_K, bool B_ALONG_K, access HOW, bool IS_INDIRECT, operands THEY_ARE> struct variant {
    typedef SPEC spec; /* the row of the table */
    typedef schedule_of<SPEC, THEY_ARE> schedule;
    static constexpr bool A_K_CONTIGUOUS = A_ALONG_K, B_K_CONTIGUOUS = B_ALONG_K;
    static constexpr access ACCESS = HOW;
    static constexpr accumulator ACC = spec::ACC;
    static constexpr bool INDIRECT = IS_INDIRECT; /* batches of pointers, groups, gathered rows of A */
    static constexpr bool CUTS_INDIRECT = spec::PACKED; /* and these, too, may be cut along k */
    static constexpr operands ARE = THEY_ARE;
    static constexpr bool CONVERTS = ARE == OF_BFLOATS; /* chunks of A and B become halves in their registers, */
    static constexpr bool SCALED = CONVERTS;            /* by scales, which divide sums; of two launches one may be unneeded */
    static constexpr int PARTS = ARE == OF_FLOATS && SPEC::ACCURACY != TO_11_BITS ? 2 : 1; /* halves that an element becomes */
    static constexpr bool FUSES = HGEMM_CAN_FUSE(spec::BM, spec::BN, HOW > X8);
    static constexpr bool ACTIVATES = HOW == X16; /* it has the fastest way for smooth activations, too, which is long */

    /* ---- the tile */

    static constexpr int BM = spec::BM, BN = spec::BN, BK = spec::BK, WM = spec::WM, WN = spec::WN, WK = spec::WK;
    static constexpr int MN_WARPS = BM / WM * (BN / WN); /* warp tiles in the block's tile of D */
    static constexpr int K_WARPS = HGEMM_K_WARPS(BK, WK); /* warps that share one, each for WK of a k-tile's k's */
    static constexpr int THREADS = HGEMM_THREADS(BM, BN, BK, WM, WN, WK);
    static constexpr int MT = WM / 16, NT = WN / 8; /* mma tiles of a warp tile along m and n */
    static constexpr int MMAS = MT * NT;            /* mma instructions of a warp in a slice, which is 8 k's */
    static constexpr int SLICES = WK / 8;           /* of a warp in a k-tile */
    static constexpr int B_LDSMS = spec::PACKED ? 0 : (NT + 3) / 4, LDSMS = B_LDSMS + (MT + 1) / 2; /* ldmatrix of a slice */
    static_assert(WM % 64 == 0 || WM == 32 || WM == 16, "fragment_xor needs it");
    static_assert(WN % 64 == 0 || WN == 32 || WN == 16, "fragment_xor needs it");
    static_assert(SLICES % 2 == 0, "the two fragments of the tuned loop alternate");
    static_assert(BK >= 2 * HGEMM_LEAST_TAIL || THEY_ARE == OF_FLOATS, "the first two k-tiles are not deep enough"); /* floats load no more than there is */

    /* A warp's accumulators. (The second parameter makes the specialization of an mma's a partial one, which a class
     * may contain.) */
    template <accumulator, class> struct sums_of { typedef u32 type[2]; };
    template <class ANY_TYPE> struct sums_of<f32, ANY_TYPE> { typedef float type[4]; };
    typedef typename sums_of<ACC, void>::type sums[MT][NT];

    /* Of K_WARPS warps, OWNERS store OWN_M rows of their common tile each: the first OWN_THREADS of the block. */
    static constexpr int OWNERS = MT < K_WARPS ? MT : K_WARPS;
    static constexpr int OWN_M = WM / OWNERS, OWN_MT = MT / OWNERS, OWN_THREADS = MN_WARPS * OWNERS * 32;
    static_assert(MT % OWNERS == 0, "the rows of a tile are not shared evenly");

    /* ---- the k-tiles of A and B */

    using A = operand_of<ARE, BM, BK, A_K_CONTIGUOUS, THREADS, ACCESS, INDIRECT>;
    using B = second_operand<spec::PACKED, ARE, BN, BK, B_K_CONTIGUOUS, THREADS, ACCESS>;
    static constexpr int STAGE = (A::BYTES + B::BYTES) * PARTS; /* bytes of a k-tile in shared memory */
    static constexpr int MAIN_BYTES = HGEMM_MAIN_BYTES(spec::STAGES, BM, spec::PACKED ? 0 : BN, BK) * PARTS;
    static_assert(MAIN_BYTES == spec::STAGES * STAGE, "the host counts the bytes of shared memory otherwise");
    static constexpr int SLOTS = A::LOADS + B::LOADS; /* chunks of a thread in a k-tile: those of A come first */

    /* ---- registers and occupancy */

    /* Whether a thread has registers to spare beside its accumulators and fragments. Where it has none, values are
     * recomputed, and loops unrolled that need a counter. */
    static constexpr bool SPARE_REGISTERS = MMAS < 64;

    /* Occupancy that ptxas must allow for (__launch_bounds__). Large unaligned variants need too many registers for
     * that of newer GPUs; so do unaligned ones of packed weights. */
    static constexpr int MIN_BLOCKS = spec::PACKED && ACCESS > X8 && spec::BLOCKS > 1 ? spec::BLOCKS - 1 : ACCESS <= X8 || MMAS < 32 ? spec::NEWER_BLOCKS : spec::BLOCKS;

    /* The tuned loop takes two k-tiles a turn, so that stages are constants, if a thread has enough registers: for
     * accumulators, two fragments and a k-tile, and for all else an empirical number. */
    static constexpr int ACC_WORDS = MMAS * (ACC == f32 ? 4 : 2); /* of a thread's accumulators */
    static constexpr int LIVE_REGISTERS = ACC_WORDS + 2 * (2 * MT + NT) + 4 * SLOTS;
    static constexpr int OTHER_REGISTERS = ACCESS == X16 ? 65 : 127;
    static constexpr int SM_SHARE = HGEMM_SM_REGISTERS / (MIN_BLOCKS * THREADS);
    static constexpr int REGISTERS = SM_SHARE < HGEMM_THREAD_REGISTERS ? SM_SHARE : HGEMM_THREAD_REGISTERS;
    static constexpr bool TIGHT = REGISTERS - ACC_WORDS < 150; /* an epilogue has few beside the accumulators */
    static constexpr bool IN_PAIRS = ACCESS <= X8 && LIVE_REGISTERS + OTHER_REGISTERS <= REGISTERS && MMAS >= 8;

    /* ---- what differs between a T4 and newer GPUs */

    /* A global load on Turing adds a 32-bit offset to a base that all threads share. Newer GPUs compute the sum with
     * instructions of their own, and each that writes a register takes a clock or two from the tensor cores. So every
     * row of A or B has a pointer, unless threads are few and thus have many rows, or the row of the table is a
     * T4's, or for packed weights, which take as many registers. */
    static constexpr bool ROW_POINTERS = !spec::T4_ROW && !spec::PACKED && ACCESS <= X8 && THREADS > 128;

    /* Whether warps whose tile lies outside of D idle, and leave the tensor cores to others. Not for the widest tile
     * with ANY, for want of registers. On newer GPUs only for large tiles that have a multiprocessor to themselves:
     * others lose more than they gain. So do the widest, and f32 where warps divide k. */
    static constexpr bool IDLES_NEWER =
        spec::NEWER_BLOCKS == 1 && MMAS >= 32 && BN <= 128 && (ACC == f16 || K_WARPS == 1);
    static constexpr bool IDLES_T4 = ACCESS <= X8 || BN <= 128;
    static constexpr bool IDLES = ARE != OF_FLOATS && MN_WARPS > 1 && (spec::T4_ROW ? IDLES_T4 : IDLES_NEWER);

    /* Blocks that have one part of k of a tile come after those that have whole tiles, so that these start together. In
     * a T4's rows with two blocks on an SM they come first: at the end, a part that runs longest would leave the place
     * beside it empty. */
    static constexpr bool PARTS_FIRST = spec::T4_ROW && spec::BLOCKS > 1;
};
