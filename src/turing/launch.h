/* SPDX-License-Identifier: MIT */
/*
 * launch.h - device memory, kernel launches, checks, counters and modelled time.
 *
 *   turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
 *   uint64_t x = turing_memory_alloc(mem, bytes);
 *   turing_memory_write(mem, x, host, bytes, &err);
 *   turing_launch_t l = { .grid = {8, 8, 1}, .block = {128, 1, 1}, .params = p, .param_bytes = sizeof p };
 *   if (!turing_launch(kernel, mem, &l, &err)) ...
 *   turing_memory_read(mem, x, host, bytes, &err);
 *
 * A device address is a number, never a host pointer: an access that no
 * allocation covers is found, to the byte.
 *
 * Threads: a turing_memory_t is used by one call at a time; different ones are
 * independent.  turing_launch() returns when the grid is done; it runs blocks
 * on several threads and gives the same bits whatever their number.
 */
#ifndef TURING_LAUNCH_H
#define TURING_LAUNCH_H

#include "turing.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- device memory ---------------------------------------------------------- */

typedef struct turing_memory turing_memory_t;

enum {
    /* Remember which bytes were ever written (a byte of shadow per byte), so
     * that TURING_CHECK_MEMORY finds reads of the others. */
    TURING_MEMORY_TRACK = 1
};

/* NULL when the host is out of memory. */
turing_memory_t *turing_memory_create(unsigned flags);
void turing_memory_destroy(turing_memory_t *mem);

/* Fresh bytes at a device address that is a multiple of 256, with at least
 * 256 unmapped bytes on either side; contents are unspecified and count as
 * never written.  0 when the host is out of memory or bytes is 0. */
uint64_t turing_memory_alloc(turing_memory_t *mem, size_t bytes);

/* Binds host storage of the caller at a chosen device address, counted as
 * written.  It stays the caller's and must outlive the binding.  False when
 * the range is empty, wraps, or overlaps another allocation. */
bool turing_memory_bind(turing_memory_t *mem, uint64_t address, void *host, size_t bytes, turing_error_t *err);

/* The same with storage of its own, all zero. */
bool turing_memory_place(turing_memory_t *mem, uint64_t address, size_t bytes, turing_error_t *err);

/* Places a module's variables as it holds them, for its kernels to be launched on this memory; and removes them. */
bool turing_module_map(const turing_module_t *module, turing_memory_t *mem, turing_error_t *err);
void turing_module_unmap(const turing_module_t *module, turing_memory_t *mem);

/* What malloc of device code can give out in all: 8 MiB, unless it was set before the first launch that may call it. */
uint64_t turing_memory_heap_bytes(const turing_memory_t *mem);
bool turing_memory_set_heap(turing_memory_t *mem, uint64_t bytes, turing_error_t *err);

/* What holds the address, or false. */
bool turing_memory_range(const turing_memory_t *mem, uint64_t address, uint64_t *base, uint64_t *bytes);

/* Releases an allocation or a binding by its first address. */
bool turing_memory_free(turing_memory_t *mem, uint64_t address, turing_error_t *err);

/* Empties the L2 cache that the timing model keeps between launches: the next one is like a program's first. */
void turing_memory_empty_l2(turing_memory_t *mem);

/* Copies between host and device; [address, address + bytes) must lie inside
 * one allocation.  Writing and filling count as written. */
bool turing_memory_write(turing_memory_t *mem, uint64_t address, const void *from, size_t bytes, turing_error_t *err);
bool turing_memory_read(turing_memory_t *mem, uint64_t address, void *to, size_t bytes, turing_error_t *err);
bool turing_memory_fill(turing_memory_t *mem, uint64_t address, uint8_t value, size_t bytes, turing_error_t *err);
bool turing_memory_copy(turing_memory_t *mem, uint64_t to, uint64_t from, size_t bytes, turing_error_t *err);

/* ---- what a checked launch reports -------------------------------------------- */

enum {
    /* Out-of-bounds and misaligned accesses, reads of bytes never written. */
    TURING_CHECK_MEMORY = 1,
    /* Unordered accesses to one address, over every order that barriers allow. */
    TURING_CHECK_RACE = 2,
    /* Stall counts and scoreboards of the control words. */
    TURING_CHECK_SCHEDULE = 4,
    /* Divergence where a whole warp is needed, barriers that never fill. */
    TURING_CHECK_CONVERGENCE = 8,
    TURING_CHECK_ALL = 15,
    /* Several threads that store one value are a race, too; else that is TURING_SAME_VALUE, a note. */
    TURING_CHECK_SAME_VALUE = 16,
    /* Nothing in a launch: memory that its owner does not free (src/face). */
    TURING_CHECK_LEAKS = 32
};

/* Adds the checks of a list: memory, race, schedule, convergence, same-value and leaks, all or 1, none or 0, apart by
 * commas or blanks. Returns NULL, or where in the list the first word begins that is none of these. */
const char *turing_checks_from(const char *list, unsigned *checks);

typedef enum turing_violation_kind {
    TURING_OUT_OF_BOUNDS, /* memory */
    TURING_MISALIGNED,
    TURING_UNINITIALISED,   /* a value that nobody wrote decides a branch, is part of an address, or is stored for the
                               host */
    TURING_RACE,            /* race */
    TURING_LANE_CONFLICT,   /* two lanes of one store, one address, two values */
    TURING_STALL_TOO_SHORT, /* schedule */
    TURING_SCOREBOARD_MISSED,
    TURING_SOURCE_OVERWRITTEN,
    TURING_DIVERGENT, /* convergence */
    TURING_BARRIER_MISMATCH,
    TURING_SAME_VALUE, /* race: no violation, and told by turing_launch_t.found only */
    TURING_VIOLATION_COUNT
} turing_violation_kind_t;

typedef enum turing_space {
    TURING_SPACE_NONE,
    TURING_SPACE_GLOBAL,
    TURING_SPACE_SHARED,
    TURING_SPACE_LOCAL,
    TURING_SPACE_CONSTANT
} turing_space_t;

enum { TURING_NO_LANE = 32 };

typedef struct turing_violation {
    turing_violation_kind_t kind;
    const char *kernel;
    uint32_t code;    /* address of the instruction                     */
    const char *insn; /* its disassembly                                */
    const char *file; /* source line, or NULL                           */
    uint32_t line;
    uint32_t block[3];
    uint32_t warp; /* within the block                               */
    uint32_t lane; /* TURING_NO_LANE: the warp as a whole            */
    turing_space_t space;
    uint64_t address; /* in that space                                  */
    uint32_t bytes;
    bool has_other; /* the other party of a race or hazard            */
    uint32_t other_code;
    uint32_t other_warp;
    uint64_t other_block; /* linear index                                   */
    uint64_t count;       /* how often this instruction did this; the rest
                           * describes the first time                       */
    const char *what;     /* one sentence: the facts                        */
    const char *advice;   /* one sentence: what to do about it              */
} turing_violation_t;

/* Strings live for the call only. */
typedef void turing_report_fn(void *user, const turing_violation_t *violation);

/* Text of device code: not terminated. */
typedef void turing_print_fn(void *user, const char *text, size_t bytes);

const char *turing_violation_name(turing_violation_kind_t kind);

/* Tells each undefined value that a kernel stored in this range (turing_launch_t.host_reads), once for each pair of
 * instructions that read and stored it, as a violation of the one that read it; returns how many. */
uint64_t turing_memory_undefined(turing_memory_t *mem, uint64_t address, size_t bytes, turing_report_fn *report,
                                 void *user);

/* One line of text for people; returns its length, always terminates. */
size_t turing_violation_text(const turing_violation_t *violation, char *text, size_t size);

/* ---- counters ------------------------------------------------------------------- */

/* What one instruction, or a whole kernel, did in a launch.  A warp-wide
 * instruction is one issue; it counts unless every lane was switched off. */
typedef struct turing_count {
    uint64_t issued;          /* warp instructions                              */
    uint64_t predicated_off;  /* issued with no lane on                         */
    uint64_t lanes;           /* lanes on, summed                               */
    uint64_t shared_waves;    /* shared-memory wavefronts of 128 B, actual      */
    uint64_t shared_ideal;    /* and the fewest that the bytes need             */
    uint64_t global_requests; /* warp-wide global accesses                      */
    uint64_t global_sectors;  /* distinct 32 B sectors touched, per request     */
    uint64_t global_ideal;    /* sectors that the distinct bytes would fill     */
    uint64_t global_bytes;    /* bytes asked for, lanes summed                  */
    uint64_t global_stores;   /* requests, sectors of stores and atomics,       */
    uint64_t store_sectors;   /* included above                                 */
    uint64_t partial_sectors; /* sectors that a store did not fill              */
} turing_count_t;

enum {
    TURING_T4_SMS = 40,
    TURING_T4_WARPS = 32,
    TURING_T4_BLOCKS = 16,
    TURING_T4_REGISTERS = 65536,
    TURING_T4_SHARED = 65536
};

typedef struct turing_loop {
    bool found;
    uint32_t first, last; /* code addresses: target and backward branch     */
    uint32_t insns;
    uint32_t pipe[TURING_PIPE_COUNT]; /* instructions                            */
    uint32_t stall_cycles;            /* sum of the stall counts                        */
    /* Cycles a warp's iteration holds each unit of one of the four sub-cores
     * (the LSU is shared by all four), from published rates. */
    double tensor_cycles, alu_cycles, fma_cycles, half_cycles, uniform_cycles, issue_cycles;
    double lsu_cycles; /* shared-memory wavefronts as counted, or ideal
                        * where nothing was counted                      */
} turing_loop_t;

typedef struct turing_occupancy {
    uint32_t blocks; /* per SM                                         */
    uint32_t warps;
    const char *limit; /* "registers", "shared", "warps" or "blocks"     */
} turing_occupancy_t;

typedef struct turing_counters {
    uint32_t n_insns;
    turing_count_t *insn; /* one per instruction of the kernel              */
    turing_count_t total;
    uint64_t pipe[TURING_PIPE_COUNT]; /* issued                                  */
    uint64_t op[TURING_OP_COUNT];
    uint64_t blocks, warps;
    uint64_t l1_requests; /* global requests                                */
    uint64_t l2_bytes;    /* 32 B per sector and request                    */
    uint64_t dram_bytes;  /* compulsory: distinct sectors of the launch     */
    uint64_t flops;       /* of HMMA: 2 m n k each                          */
    double intensity;     /* flops per compulsory byte                      */
    turing_occupancy_t occupancy;
    turing_loop_t loop;
} turing_counters_t;

void turing_counters_free(turing_counters_t *counters);

/* Sums per source line: calls `each` for every line that executed, in the
 * order of first appearance in the code. */
void turing_counters_lines(const turing_counters_t *counters, const turing_kernel_t *kernel,
                           void (*each)(void *user, turing_line_t line, const turing_count_t *count), void *user);

turing_occupancy_t turing_occupancy(const turing_kernel_t *kernel, uint32_t threads, uint32_t dynamic_shared);

/* Static: the innermost loop with most HMMA.  `counters` may be NULL. */
turing_loop_t turing_main_loop(const turing_kernel_t *kernel, const turing_counters_t *counters);

/* ---- modelled time --------------------------------------------------------------------- */

/* Why a sub-core with warps issued nothing: what the warp that issued next had waited for. */
#define TURING_STALLS(X)                                                                      \
    X(MEMORY, "global memory")   /* a scoreboard that a global access releases, or a fence */ \
    X(SHARED, "shared memory")   /* one of another instruction of the load/store unit      */ \
    X(QUEUE, "load/store queue") /* the sub-core's, which was full                         */ \
    X(TENSOR, "tensor core")     /* the one before still multiplied                        */ \
    X(PIPE, "other pipes")       /* busy, or a scoreboard of theirs                        */ \
    X(BARRIER, "barrier")                                                                     \
    X(FIXED, "stall counts") /* of the control word, and taken branches                */
typedef enum turing_stall {
#define X(name, text) TURING_STALL_##name,
    TURING_STALLS(X)
#undef X
        TURING_STALL_COUNT
} turing_stall_t;

const char *turing_stall_name(turing_stall_t stall);

enum { TURING_T4_MHZ = 1590 };

/* What a model of the T4 says that a launch takes.  It is no measurement: see
 * docs/emulator.md for what it models and from which sources.  All figures add
 * up over launches.  Times are cycles of 1590 MHz; those of a unit are averages
 * over all of its kind on the chip, so that its share is its time over `cycles`. */
typedef struct turing_time {
    double cycles;                    /* from the first block's start to the end of the last warp and store */
    double tensor;                    /* the 160 tensor cores multiply                */
    double lsu;                       /* the 40 load/store units are busy             */
    double dram;                      /* the 16 channels are busy                     */
    double stall[TURING_STALL_COUNT]; /* of the 160 sub-cores                  */
    /* Not in `cycles`: the most that fetching code, constants and page entries for the first time adds, where
     * a launch of the kernel went just before, and on a GPU that has been idle. */
    double warm_start, cold_start;
    double paused; /* not in `cycles` either: what a pair of events around a launch of an idle GPU shows beside it */
    uint64_t instructions;            /* warp instructions issued                     */
    uint64_t l2_sectors;              /* of 32 bytes, read and written, in L2         */
    uint64_t l2_hits;                 /* of these: present or on their way, or stored */
    uint64_t dram_read, dram_written; /* bytes                                 */
} turing_time_t;

/* The constants of the model by their names in time.def, which explains them. */
typedef struct turing_clock {
#define TIME(name, value, low, high, kind, what, source) double name;
#include "time.def"
#undef TIME
} turing_clock_t;

/* Those that the model has. */
extern const turing_clock_t turing_clock;

/* Changes one constant; false, and nothing is changed, where none has that name or it cannot have that value. */
bool turing_clock_set(turing_clock_t *clock, const char *name, double value);

void turing_time_add(turing_time_t *sum, const turing_time_t *time);

/* An instruction that a modelled multiprocessor issued, for pictures of what runs beside what. */
typedef struct turing_issue {
    uint32_t sm, sub_core;
    uint32_t warp;     /* its place among those of the multiprocessor                  */
    double issued;     /* cycle                                                        */
    double begin, end; /* cycles in which it keeps its pipe, or the load/store unit, busy */
    const turing_insn_t *insn;
} turing_issue_t;

/* Gets every instruction that has a lane on, those of one sub-core in the order of their cycles. */
typedef void turing_watch_fn(void *user, const turing_issue_t *issue);

/* ---- launch ------------------------------------------------------------------------ */

typedef enum turing_tensor {
    TURING_TENSOR_TURING, /* sums kept to 24 fractional bits of the largest term */
    TURING_TENSOR_HOPPER  /* 25, to compare bit for bit with such a GPU          */
} turing_tensor_t;

/* What ended a launch, as far as callers must tell it. */
typedef enum turing_failure {
    TURING_FAILED_OTHER,   /* it did not begin, mostly */
    TURING_FAILED_ADDRESS, /* an access that no memory backs */
    TURING_FAILED_MISALIGNED,
    TURING_FAILED_ASSERT,
    TURING_FAILED_TRAP,
    TURING_FAILED_INSTRUCTION, /* one that cannot be executed */
    TURING_FAILED_STUCK        /* dead-lock, or past the limit of instructions */
} turing_failure_t;

typedef struct turing_launch {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic                                   */
    uint32_t stack_bytes;  /* of a thread, for frames of functions beyond what the kernel is known to need; 0: 1024 */
    const void *params;    /* laid out as turing_kernel_t.params says   */
    size_t param_bytes;
    /* Its blocks may wait for each other all at once, as cooperative_groups' grid.sync() does: the grid must
     * fit on a T4 as a whole. Without it grid.sync() traps. */
    bool cooperative;
    turing_tensor_t tensor;
    unsigned threads;               /* host threads, 0: one per core             */
    uint64_t max_warp_instructions; /* a warp that runs longer is an error; 0: 2^32 */
    uint32_t seconds;               /* in which no block ends, after which the launch is stuck; 0: no limit */
    unsigned checks;                /* TURING_CHECK_*                            */
    turing_report_fn *report;       /* gets each violation once, at the end      */
    turing_report_fn *found;        /* gets each when it is first found, one at a time */
    turing_print_fn *print;         /* gets what printf and assert of the kernel print  */
    void *user;                     /* of all three                               */
    /* What it stores of values that nobody wrote is told when the host reads it, by turing_memory_undefined(); else at
     * once. */
    bool host_reads;
    turing_failure_t *failure;   /* filled if not NULL, where the launch fails */
    turing_counters_t *counters; /* filled if not NULL; turing_counters_free  */
    /* Filled if not NULL.  Then one host thread runs the blocks, in the order in
     * which the modelled multiprocessors take them, and the modelled L2 begins
     * with what the last such launch on this memory left in it. */
    turing_time_t *time;
    const turing_clock_t *clock; /* constants other than turing_clock, or NULL */
    turing_watch_fn *watch;      /* told of every issue if not NULL, where `time` is given */
    void *watch_user;
    /* With `time` and without checks: leaves out what decides no branch, no address and no predicate,
     * so that time and counters are the same but results are not computed.  Memory that they would be
     * in counts as absent until it is written again: whoever needs it gets an error. */
    bool dry;
} turing_launch_t;

/* A launch's dynamic shared memory, as far as a T4 has so much: one that may have more has a multiprocessor to itself.
 */
uint32_t turing_resident_shared(const turing_kernel_t *kernel, const turing_launch_t *launch);

/* Does the kernel wait for its whole grid, so that it needs `cooperative`? */
bool turing_waits_for_grid(const turing_kernel_t *kernel);

/* The first instruction of the kernel itself that cannot be executed at all, or NULL: textures and surfaces, and what
 * the emulator does not know. A kernel with a texture is not launched; functions of its file fail when they get to one.
 * `why` gets a sentence. */
const turing_insn_t *turing_unsupported(const turing_kernel_t *kernel, turing_error_t *why);

/* Runs the grid.  False and `err` when the launch cannot run on a T4, memory
 * is short, or the kernel executes something unknown or fatal (with checks on,
 * violations are reported instead and execution goes on where it can).
 * `violations`, if not NULL, gets the number reported.  The caller's rounding
 * mode plays no part and stays as it is. */
bool turing_launch(const turing_kernel_t *kernel, turing_memory_t *mem, const turing_launch_t *launch,
                   uint64_t *violations, turing_error_t *err);

/* ---- tensor-core arithmetic, on its own ------------------------------------------------ */

/* D = A B + C as HMMA.1688 computes it.  a is 16x8, bt is B transposed, 8x8
 * (row n holds column n of B), row-major halves.  c and d are 16x8: halves
 * (f32 false) or floats.  d may be c.  Finds the fastest path of this CPU. */
void turing_hmma_1688(bool f32, turing_tensor_t tensor, const uint16_t *a, const uint16_t *bt, const void *c, void *d);

#ifdef __cplusplus
}
#endif

#endif
