/* SPDX-License-Identifier: MIT */
/*
 * machine.h - the emulated T4 of this process, as the entry points of libcuda see it: its
 * memory, its options, what went wrong.
 *
 * Everything is done when it is asked for, one thing at a time: a stream's work is over when
 * the call that enqueues it returns, which is an order that CUDA allows.  An entry point begins
 * with BEGIN, which takes the lock, and returns with END, which gives it back:
 *
 *   CUresult CUDAAPI cuSomething(int x)
 *   {
 *       BEGIN;
 *       END(x < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
 *   }
 *
 * What fails while a kernel runs stays: the calls that follow return it, until the context is
 * destroyed or reset.
 *
 * Options come from the environment, when cuInit is called, which fails where one makes no sense:
 *   TURING_CHECK=LIST   all, or some of memory,race,schedule,convergence
 *   TURING_TIME=1       a table of kernels and their modelled time at the end
 *   TURING_LOG=1|PATH   names of the entry points as they are called
 *   TURING_LIMIT=N      instructions of a warp, after which it is in an endless loop
 *   TURING_THREADS=N    of the host that run blocks
 */
#ifndef FACE_MACHINE_H
#define FACE_MACHINE_H

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>

#include "face/guest.h"

typedef struct machine {
    bool initialized, refused; /* options that make no sense */
    turing_memory_t *mem;
    uint64_t used, next_base; /* bytes given out; where the next module's variables stand */
    CUresult sticky;
    unsigned checks, threads;
    bool time, blocking;
    uint64_t limit;
    double modelled_us; /* of all launches so far */
    face_host_t host;   /* whose machine this is; without memory: it is our own */
} machine_t;

extern machine_t machine;

enum { MACHINE_MEMORY_MB = 15109 /* that a T4 has left of its 16 GB */ };

CUresult machine_init(void);

/* Takes the lock. What is not CUDA_SUCCESS is to be returned at once: the lock is free then. */
CUresult machine_begin(const char *entry_point);
CUresult machine_end(CUresult result);
void machine_log(const char *entry_point, const char *what);
bool machine_logs(void);
void machine_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* on standard error */

/* Forgets all memory and what went wrong. */
void machine_reset(void);

#define BEGIN                                     \
    do {                                          \
        CUresult begun = machine_begin(__func__); \
        if (begun != CUDA_SUCCESS)                \
            return begun;                         \
    } while (0)
#define END(result) return machine_end(result)

/* What needs no context: only the lock is taken. */
void machine_lock(const char *entry_point);
#define ALWAYS machine_lock(__func__)

/* ---- contexts: context.c ---- */
bool context_current(void);
/* Of cudaProfiler.h, which is in no package that tools/setup.sh fetches. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* ---- memory: memory.c ---- */
static inline void *host(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static inline CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}
bool is_device(CUdeviceptr address);
CUresult done(bool ok, const turing_error_t *err); /* what a failed access to memory means; the reason is told */
bool is_pinned(CUdeviceptr address);               /* an address of host memory that was allocated or registered here */
void share_end(CUdeviceptr address);               /* share.c: memory that is freed may be a file */

/* ---- launches: launch.c ---- */
typedef struct module module_t;
enum { MOST_PARAMETERS = 4096 };
typedef struct function {
    const turing_kernel_t *kernel;
    module_t *module;
    int max_dynamic_shared;
    bool forms_told;          /* forms_log() was here */
    struct older_call *older; /* what older.c collects for a launch, or NULL */
} function_t;

CUresult launch(function_t *function, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
                void **params, void **extra, bool cooperative);

/* ---- forms.c: what of a kernel no test has met, to the log, once ---- */
void forms_log(function_t *function);

/* ---- names: names.c, and what the build makes of cuda.h ---- */
typedef struct entry_point {
    const char *name;
    void *function, *stub; /* the same: not served */
} entry_point_t;
extern const entry_point_t entry_points[];
extern const unsigned entry_point_count;
CUresult not_served(const char *name);

typedef struct error_name {
    CUresult value;
    const char *name;
} error_name_t;
extern const error_name_t error_names[];
extern const unsigned error_name_count;

#endif
