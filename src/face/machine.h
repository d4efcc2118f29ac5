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
 * From low to high the files are machine, handles, unserved, findings, leaks and device; context; memory; stream;
 * share, pool and managed; allocation, pointer, copy and module; forms and launch; older; names. None calls one that is
 * higher.
 *
 * What fails while a kernel runs stays: the calls that follow return it, until the context is
 * destroyed or reset.
 *
 * Options come from the environment, when cuInit is called, which fails where one makes no sense:
 *   TURING_CHECK=LIST   all, or some of memory,race,schedule,convergence, and same-value,leaks
 *   TURING_TIME=1       a table of kernels and their modelled time at the end
 *   TURING_LOG=1|PATH   names of the entry points as they are called
 *   TURING_LIMIT=N      instructions of a warp, after which it is in an endless loop
 *   TURING_SECONDS=N    in which no block of a kernel ends, which is not timed: it goes nowhere; 0: never. 30
 *   TURING_KEEP_GOING=1 what checks find is said, and is no error to the program
 *   TURING_ALLOW=PATH, TURING_FINDINGS=PATH  findings.h
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
    bool time, blocking, keep_going;
    bool printed; /* device code has called printf */
    uint64_t limit;
    uint32_t seconds;
    double modelled_us; /* of all launches so far */
    face_host_t host;   /* whose machine this is; without memory: it is our own */
} machine_t;

extern machine_t machine;

enum { MACHINE_MEMORY_MB = 15109 /* that a T4 has left of its 16 GB */, GREATEST_PRIORITY = -5 /* of a stream */ };

CUresult machine_init(void);

CUresult machine_end(CUresult result);
void machine_log(const char *entry_point, const char *what);
bool machine_logs(void);
void machine_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* on standard error */

/* Forgets all memory and what went wrong. */
void machine_reset(void);

#define BEGIN                                     \
    do {                                          \
        CUresult begun = context_begin(__func__); \
        if (begun != CUDA_SUCCESS)                \
            return begun;                         \
    } while (0)
#define END(result) return machine_end(result)

/* Ends it with what a check said; where all is well, `value` is what was asked for. */
#define ANSWER(check, out, value)     \
    do {                              \
        const CUresult ok_ = (check); \
        if (ok_ == CUDA_SUCCESS)      \
            *(out) = (value);         \
        END(ok_);                     \
    } while (0)
static inline CUresult asked(const void *out)
{
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The same for what a stream is to do. */
#define BEGIN_ON(stream)                                   \
    BEGIN;                                                 \
    do {                                                   \
        if (!stream_known(stream))                         \
            return machine_end(CUDA_ERROR_INVALID_HANDLE); \
    } while (0)

/* What needs no context: only the lock is taken. */
void machine_lock(const char *entry_point);
#define ALWAYS machine_lock(__func__)

/* ---- handles: handles.c ---- */
typedef enum handle_kind { HANDLE_CONTEXT, HANDLE_STREAM, HANDLE_EVENT, HANDLE_POOL, HANDLE_MODULE } handle_kind_t;
void *handle_new(handle_kind_t kind, size_t bytes); /* zeros, which are known until handle_end; NULL: out of memory */
bool handle_is(handle_kind_t kind, const void *handle);
bool handle_end(handle_kind_t kind, void *handle); /* false: it is none */

/* ---- the device, contexts, streams: device.c, context.c, stream.c ---- */
CUresult device_ok(CUdevice device, const void *out); /* what is wrong with a device, or where an answer is to be put */
/* Takes the lock. What is not CUDA_SUCCESS is to be returned at once: the lock is free then. */
CUresult context_begin(const char *entry_point);
CUcontext context_here(void); /* which is live where BEGIN went well; so for the next */
size_t context_stack_bytes(void);
bool stream_known(CUstream stream);
/* Of cudaProfiler.h, which is in no package that tools/setup.sh fetches. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* ---- memory: memory.c ---- */
enum { ALLOCATION_STEP = 512 /* bytes: of an allocation, and of a pitch */ };
static inline void *host(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static inline CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}
bool is_device(CUdeviceptr address);
bool is_mapped(CUdeviceptr address, size_t bytes); /* of the host */
CUresult allocate(CUdeviceptr *address, size_t bytes);
CUresult done(bool ok, const turing_error_t *err); /* what a failed access to memory means; the reason is told */
bool is_pinned(CUdeviceptr address);               /* an address of host memory that was allocated or registered here */
void leak_begin(CUdeviceptr address, size_t bytes); /* leaks.c: it was allocated */
void leak_end(CUdeviceptr address);
void share_end(CUdeviceptr address); /* share.c: where it was a file, it is none any more */
void pool_end(CUdeviceptr address);  /* pool.c: where it was of a pool, the pool has it back */

/* ---- managed memory: managed.c ---- */
/* What was advised of a page, and where it was prefetched to; -1 is the host. */
typedef struct advice {
    bool read_mostly, preferred, by_device, by_host, prefetched;
    signed char preferred_at, prefetched_to;
} advice_t;

typedef struct pinned {
    void *pointer;
    size_t bytes;
    bool ours, managed; /* freed by us; not ours: registered, or a variable */
    advice_t *advice;   /* of each page, or NULL: none was given */
    struct pinned *next;
} pinned_t;
pinned_t *pinned_at(CUdeviceptr address); /* the one that holds an address, or NULL */
CUresult pin(void *pointer, size_t bytes, bool ours, bool managed);
CUresult pin_new(void **pointer, size_t bytes, bool managed);
CUresult unpin(const void *pointer, bool ours, bool managed); /* which it must be */
/* Lets the host see a module's variables, which include managed ones, at their addresses. */
CUresult managed_map(const turing_module_t *code);
void managed_unmap(const turing_module_t *code);

/* ---- launches: launch.c ---- */
typedef struct module module_t;
enum { MOST_PARAMETERS = 32764, OLDER_PARAMETERS = 4096 };
typedef struct function {
    const turing_kernel_t *kernel;
    module_t *module;
    int max_dynamic_shared, carveout; /* one more than it is */
    bool forms_told;                  /* forms_log() was here */
    struct older_call *older;         /* what older.c collects for a launch, or NULL */
} function_t;

bool function_known(const function_t *function); /* module.c: an entry of a module that is loaded */
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
/* unserved.c: it is told, once for each name; libcudart calls it, too. */
CUresult turing_face_not_served(const char *name);
#define not_served turing_face_not_served

typedef struct error_name {
    CUresult value;
    const char *name;
} error_name_t;
extern const error_name_t error_names[];
extern const unsigned error_name_count;

#endif
