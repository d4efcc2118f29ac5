/* SPDX-License-Identifier: MIT */
/*
 * exec.h - the interpreter's own form of a kernel and the state it works on.
 *
 * A kernel is lowered once per launch into an array of op_t, one per
 * instruction.  A warp's register file is a stack of rows of 32 words, one word
 * per lane.  Everything an instruction can read has a row: registers, zeros for
 * RZ, uniform registers (all lanes equal), and a row for each constant and
 * immediate of the kernel.  So an operand is one row number, whatever its form,
 * and the uniform datapath runs through the same code as the vector one.
 */
#ifndef TURING_EXEC_H
#define TURING_EXEC_H

#include "hmma.h"
#include "memory.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LANES = 32 };
enum { ALL_LANES = 0xffffffffu }; /* apart, for an enumeration with it is unsigned */

/* Rows.  Operands of up to four words are consecutive rows, RZ included. */
enum {
    ROW_ZERO = 256,    /* four rows of zeros; reads of RZ and URZ */
    ROW_SINK = 260,    /* four rows nobody reads; writes to them  */
    ROW_UNIFORM = 264, /* UR0..UR62                               */
    ROW_CONSTANTS = 328
};

/* Predicates, each a mask of lanes: P0-P6, PT, UP0-UP6, UPT, a sink. */
enum { PRED_UNIFORM = 8, PRED_TRUE = 7, PRED_SINK = 16, PRED_COUNT = 17 };

typedef uint32_t row_t[LANES];
typedef struct op op_t;
typedef struct warp warp_t;
typedef struct block block_t;
typedef struct worker worker_t;
typedef struct machine machine_t;

/* Executes one instruction for the lanes in `on`, which is not 0. */
typedef void op_fn(warp_t *w, const op_t *o, uint32_t on);

/* What the main loop does around op_fn. */
typedef enum flow {
    FLOW_PLAIN,     /* nothing                                             */
    FLOW_STOPPING,  /* may set warp_t.stop                                 */
    FLOW_CONTROL,   /* may change pc, lanes or split: exec_flow.c            */
    FLOW_IDLE,      /* not executed at all                                 */
    FLOW_BLOCKED,   /* a dry launch cannot go on from there                */
    FLOW_UNFORESEEN /* no path of it was found to lead there               */
} flow_t;

struct op {
    op_fn *fn;
    uint16_t d, src[4];       /* rows                                     */
    uint8_t guard, guard_xor; /* predicate, and 1 when negated            */
    uint8_t flow;
    uint8_t uniform; /* uniform datapath: all lanes or none      */
    uint8_t idle;    /* what it computes or moves is left out: dry.c   */
    uint8_t pdst[2];
    uint8_t psrc[3], psrc_xor[3];
    uint16_t addr_base, addr_uniform; /* memory operand: rows             */
    uint32_t target;                  /* instruction index of a direct branch     */
    const turing_insn_t *in;
};

typedef enum stop {
    RUNNING,
    STOP_BARRIER, /* waits at a named barrier                            */
    STOP_YIELD,   /* polls memory: let other blocks run                  */
    STOP_TURN,    /* loops: let other warps of the block run              */
    STOP_TRACED,  /* its trace is full                                   */
    STOP_EXIT,
    STOP_FAULT /* worker_t.error says why                             */
} stop_t;

enum { WAIT_NONE = -1, WAIT_WARPSYNC = 16 };

/* Lanes that share a program counter and are not running now. */
typedef struct split {
    uint32_t mask, pc;
    int wait;      /* convergence barrier 0-15, WAIT_WARPSYNC, WAIT_NONE  */
    uint32_t need; /* WAIT_WARPSYNC: the lanes to meet                    */
} split_t;

typedef struct schedule schedule_t; /* check_schedule.c */
typedef struct race race_t;         /* check_race.c     */
typedef struct define define_t;     /* define.h         */
typedef struct trace trace_t;       /* trace.h          */

struct warp {
    row_t *r;
    uint32_t p[PRED_COUNT];
    uint32_t pc;     /* instruction index                        */
    uint32_t active; /* lanes that run now                       */
    uint32_t alive;  /* lanes that have not exited               */
    int n_splits;
    split_t split[LANES];
    row_t barrier[16]; /* convergence barriers: participants, per lane */
    row_t called;      /* instruction of the last call, per lane        */
    stop_t stop;
    bool stored;          /* since the last barrier, where divergence is looked for */
    int waits_at;         /* named barrier, or -1                     */
    uint32_t index;       /* in the block                             */
    uint32_t threads;     /* lanes that exist                         */
    uint32_t spins;       /* backward branches while split            */
    uint32_t loops;       /* backward branches since the last turn of others */
    row_t barrier_result; /* of BAR.RED, for B2R                      */
    uint64_t issued;
    alloc_t *hit;       /* allocation of the last global access     */
    uint8_t *local;     /* local_bytes per lane                     */
    uint32_t local_low; /* from there on it was used by this block */
    uint8_t *local_valid;
    uint8_t *local_undefined; /* bits of what was written */
    bool has_undefined;       /* any such bit */
    uint8_t *local_absent;    /* as alloc_t has; NULL: not a dry launch */
    schedule_t *schedule;
    define_t *define;
    trace_t *trace; /* what the timing model will replay, or NULL */
    block_t *block;
};

typedef struct named_barrier {
    uint32_t expected; /* threads; 0: not in use                   */
    uint32_t arrived;
    uint32_t sync_warps;     /* warps that wait                          */
    uint32_t code;           /* of the first arrival                     */
    uint32_t popc, all, any; /* BAR.RED                                  */
} named_barrier_t;

struct block {
    worker_t *worker;
    uint32_t id[3];
    uint64_t linear;
    uint32_t n_warps, live;
    warp_t *warp;
    uint8_t *shared;
    uint8_t *shared_valid;
    uint8_t *shared_undefined; /* bits of what was written */
    bool has_undefined;        /* any such bit */
    uint8_t *shared_absent;    /* as alloc_t has; NULL: not a dry launch */
    named_barrier_t barrier[16];
    uint32_t polls;    /* strong loads and atomics since last resumed */
    uint32_t patience; /* so many of them let others run, where races are looked for */
    race_t *race;
    void *storage;
};

/* Violations found by one worker: one record per instruction and kind. */
typedef struct finding {
    turing_violation_t v;
    uint64_t order;       /* linear block index of the first          */
    uint32_t forgiven_by; /* as of site_t                             */
    char what[256];
} finding_t;

struct worker {
    machine_t *m;
    bool failed;
    turing_failure_t failure;
    turing_error_t error;
    turing_count_t *count; /* per instruction, or NULL                 */
    uint32_t changes;      /* of memory by strong stores and atomics   */
    finding_t **finding;   /* [instruction * TURING_VIOLATION_COUNT + kind] */
};

typedef struct global_race global_race_t;

/* One launch; read-only while workers run, but for the atomics. */
struct machine {
    const turing_kernel_t *kernel;
    turing_memory_t *mem;
    const turing_launch_t *launch;
    op_t *ops;
    uint32_t n_ops;
    row_t *constants;
    uint32_t n_constants;
    uint8_t *bank0;
    uint64_t bank0_address;      /* of a copy in global memory, for pointers to parameters; 0: there are none */
    uint64_t grid_barrier;       /* of a cooperative launch                  */
    struct grid_sync *grid_sync; /* of one that may call the system: system.c */
    uint32_t threads;            /* of a block                               */
    uint32_t n_warps;
    uint32_t shared_bytes, local_bytes;
    bool has_stack; /* local memory holds frames of called functions */
    uint64_t n_blocks;
    uint32_t resident; /* blocks that a T4 would hold at a time    */
    uint64_t max_issued;
    _Atomic uint64_t progress_ns; /* when a block ended last */
    bool ordered;                 /* results depend on the order of blocks    */
    bool dry;                     /* idle instructions are left out           */
    unsigned checks;
    turing_hmma_fn *hmma;
    int fraction;
    uint32_t granule; /* bytes of shared and global race cells    */
    global_race_t *global_race;
    _Atomic uint8_t **sector_seen;    /* a byte per 32 B sector of each allocation */
    struct plan *plans;               /* check_schedule.c                         */
    struct define_plan *define_plans; /* check_define.c                           */
    _Atomic bool has_undefined;       /* global memory has undefined bits that were stored */
    turing_bank_t bank[TURING_BANKS]; /* the kernel's, or what is mapped of them  */
    pthread_mutex_t atomics;          /* global read-modify-writes                */
    pthread_mutex_t finding;          /* launch->found is being called            */
    bool *announced;                  /* [as worker_t.finding]: it was            */
    _Atomic uint64_t next_block;
    _Atomic bool stop_all;
};

/* Generic addresses inside these windows are shared and local memory. */
#define SHARED_WINDOW UINT64_C(0x0000010000000000)
#define LOCAL_WINDOW UINT64_C(0x0000020000000000)
enum { WINDOW_BYTES = 1 << 24 };

/* ---- lower.c ---- */
bool emu_lower_kernel(machine_t *m, turing_error_t *err);
void emu_lower_free(machine_t *m);

/* ---- dry.c: finds the idle instructions; false: out of memory ---- */
bool emu_dry_open(machine_t *m);

/* ---- exec_alu.c, exec_lanes.c, exec_float.c, exec_mem.c, exec_tensor.c: fill op->fn, or leave it NULL ---- */
#define EACH for (int l = 0; l < LANES; l++)

/* The rows that an instruction reads, and one for its result. */
#define SOURCES                                                                      \
    const uint32_t *a = w->r[o->src[0]], *b = w->r[o->src[1]], *c = w->r[o->src[2]]; \
    uint32_t t[LANES];                                                               \
    (void)a, (void)b, (void)c

void emu_select_alu(op_t *o);
void emu_select_lanes(op_t *o);
void emu_select_float(op_t *o);
void emu_select_memory(op_t *o);
void emu_select_tensor(op_t *o);
uint32_t emu_add_half2(uint32_t x, uint32_t y);

/* ---- exec_flow.c ---- */
void emu_run_warp(warp_t *w);

/* ---- exec.c ---- */
block_t *emu_block_create(worker_t *worker); /* storage, for one block after another; NULL: out of memory */
void emu_block_free(block_t *b);
void emu_block_start(block_t *b, uint64_t linear);
/* Local memory from `address` on is about to be used: what a block has not reached yet holds an older block's bytes. */
void emu_local_lower(warp_t *w, uint32_t address);
static inline void emu_local_reach(warp_t *w, uint32_t address)
{
    if (address < w->local_low)
        emu_local_lower(w, address);
}
/* Runs a warp that can run to its next stopping point, and frees those that it was waited for by. */
stop_t emu_block_step(block_t *b, warp_t *w);
void emu_block_deadlock(block_t *b);
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void emu_fault_as(warp_t *w, const op_t *o, turing_failure_t kind, const char *format, ...);
/* "; warp 0 waits at barrier 0, 0x120 at FILE:LINE; ..." of those that have not exited; returns text. */
const char *emu_where(const block_t *b, char *text, size_t size);
#define emu_fault(w, o, ...) emu_fault_as(w, o, TURING_FAILED_OTHER, __VA_ARGS__)

/* Has the launch gone on for longer than it may without the end of a block? */
bool emu_out_of_time(machine_t *m);

/* ---- check.c ---- */
typedef struct site {
    turing_space_t space;
    uint64_t address;
    uint32_t lane, bytes;
    bool has_other;
    uint32_t other_code, other_warp;
    uint64_t other_block;
    uint32_t forgiven_by; /* index + 1 of a load: no finding after all if emu_race_forgives() it */
} site_t;
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
void emu_report(warp_t *w, const op_t *o, turing_violation_kind_t kind, site_t site, const char *what, ...);
const char *emu_advice(turing_violation_kind_t kind);
uint64_t emu_report_all(machine_t *m, worker_t *workers, unsigned n);

/* ---- check_memory.c: returns the lanes whose access may be carried out ---- */
typedef enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } access_t;
uint32_t emu_check_memory(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                          const uint64_t address[LANES], uint32_t bytes);

/* ---- check_race.c ---- */
bool emu_race_open(machine_t *m);
void emu_race_close(machine_t *m);
race_t *emu_race_block(block_t *b);
void emu_race_block_free(race_t *race);
void emu_race_start(block_t *b);
void emu_race_arrive(warp_t *w, int barrier);
void emu_race_barrier(block_t *b, int barrier, uint32_t syncing);
void emu_race_fence(warp_t *w, uint32_t on, bool of_gpu);
void emu_race_sync(warp_t *w, uint32_t lanes); /* these lanes of the warp met */
/* Forgets accesses to global memory that is new to its user. */
void emu_race_forget(machine_t *m, uint64_t address, uint64_t bytes);
/* Is the load at this index one that an atomic follows? */
bool emu_race_forgives(const machine_t *m, uint32_t index);
void emu_race_access(warp_t *w, const op_t *o, uint32_t on, turing_space_t space, access_t kind,
                     const uint64_t address[LANES], uint32_t bytes);
/* A strong load (acquire) or store (release) or atomic (both). */
void emu_race_strong(warp_t *w, uint32_t on, access_t kind, const uint64_t address[LANES]);

/* ---- check_schedule.c ---- */
bool emu_schedule_open(machine_t *m, turing_error_t *err);
void emu_schedule_close(machine_t *m);
size_t emu_schedule_bytes(const machine_t *m);
void emu_schedule_start(warp_t *w);
void emu_schedule_issue(warp_t *w, const op_t *o, uint32_t on);

/* ---- count.c ---- */
void emu_count_issue(warp_t *w, const op_t *o, uint32_t on);
void emu_count_global(warp_t *w, const op_t *o, uint32_t on, access_t kind, const uint64_t address[LANES],
                      uint32_t bytes);
void emu_count_shared(warp_t *w, const op_t *o, uint32_t waves, uint32_t words);
/* Wavefronts that a shared-memory access takes, and how many distinct words it moves. */
uint32_t emu_shared_waves(uint32_t on, const uint64_t address[LANES], uint32_t bytes, uint32_t *words);
bool emu_count_open(machine_t *m);
void emu_count_close(machine_t *m);
bool emu_count_finish(machine_t *m, worker_t *workers, unsigned n);

/* ---- time.c: the timing model, which trace.h feeds ---- */
void emu_time_run(worker_t *worker); /* the whole grid; fills launch->time */

static inline bool watched(const warp_t *w)
{
    const worker_t *worker = w->block->worker;
    return worker->count || worker->m->checks || w->trace;
}

static inline uint32_t pred(const warp_t *w, const op_t *o, int i)
{
    return w->p[o->psrc[i]] ^ (0u - o->psrc_xor[i]);
}

/* Stores t into row d for the lanes in `on`. */
static inline void put(warp_t *w, unsigned d, const uint32_t t[LANES], uint32_t on)
{
    uint32_t *r = w->r[d];
    if (on == ALL_LANES)
        for (int l = 0; l < LANES; l++)
            r[l] = t[l];
    else
        for (int l = 0; l < LANES; l++)
            if (on >> l & 1)
                r[l] = t[l];
}

static inline void put_pred(warp_t *w, unsigned p, uint32_t value, uint32_t on)
{
    w->p[p] = (w->p[p] & ~on) | (value & on);
}

#endif
