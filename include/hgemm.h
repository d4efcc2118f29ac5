/* SPDX-License-Identifier: MIT */
/*
 * hgemm - half-precision matrix multiplication for NVIDIA Turing (T4, sm_75)
 *
 *     D = alpha * op(A) * op(B) + beta * C
 *
 * A, B, C and D hold IEEE 754 binary16 numbers ("halves") in device memory. op(X) is X or its
 * transpose. op(A) is m x k, op(B) is k x n, C and D are m x n. D may be C.
 *
 * Contents
 *     1. Version                     5. One call: hgemm_run
 *     2. Statuses                    6. The whole problem: hgemm_desc_t
 *     3. Handles, devices, streams   7. The kernels
 *     4. Device memory               8. What runs: hgemm_select
 *
 * Shapes and layouts. m, n, k, leading dimensions and strides are counted in elements. In a
 * row-major matrix element (i, j) is at X[i * ld + j], so ld >= its number of stored columns; in
 * a column-major one it is at X[i + j * ld], so ld >= its number of stored rows. The stored shape
 * is the one before op: with op_a = HGEMM_OP_T, A is stored as k x m. A leading dimension is
 * checked even where the matrix has no element or is not read; it must be at least 1. What lies
 * between the rows of A and B may be read, and reaches no element of D.
 *
 * Alignment. Any pointer that is a multiple of 2 bytes and any leading dimension work. Fastest:
 * pointers that are multiples of 16 bytes, leading dimensions and contiguous extents of 8.
 *
 * Aliasing. D may be C: the same pointer, leading dimension and, with batch > 1, stride. Otherwise
 * no element of D may lie in A, B or C that are read. An overlap of D with C, or of the D's of one
 * batch, is found and refused: element by element where leading dimensions and strides agree (so
 * two blocks of columns of one large matrix may serve as C and D), by address range where they
 * differ. An overlap with A or B is the caller's to avoid.
 *
 * Numbers. alpha * acc + beta * c is computed in single precision and rounded once to half.
 * NaN and infinity that are read propagate as IEEE 754 says. Where beta == 0, C is not read;
 * where k == 0 or alpha == 0, A and B are not read. Pointers that are not read may be NULL.
 * The same call on the same device with the same library gives the same bits, run after run: the same
 * descriptor, with addresses that are the same modulo 16 bytes. The same numbers laid out otherwise may be
 * given another kernel, which rounds otherwise, and so may a handle that got no workspace (below).
 *
 * Streams. Every call that computes is asynchronous: it enqueues on the handle's stream and
 * returns. It allocates nothing and can be captured into a CUDA graph once what it runs is loaded:
 * by hgemm_prepare or a run before, with the same handle, the same descriptor and addresses that are
 * the same modulo 16 bytes.
 *
 * Threads. One handle is used by one thread at a time. Different handles are independent: also while calls of one
 * are captured, in whatever mode, others may be created, used and destroyed. (What waits for the legacy default
 * stream, NULL, ends the capture of a stream that is not a non-blocking one, by the rules of CUDA.)
 *
 * Workspace. A handle owns device memory, made by hgemm_create: 32 MiB on a T4, on newer GPUs a
 * 512th of theirs, between 32 and 256 MiB. The parts of a product with a long k meet there, and on
 * newer GPUs large operands that are not aligned are copied there, aligned. So what one handle
 * enqueues on different streams, or in graphs that it was captured into, must not run at the same
 * time: use a handle for each. Where the memory cannot be had, or a copy does not fit, the same
 * calls run without it.
 *
 * Errors. Every function that can fail returns a status. Arguments are checked in a fixed order
 * before anything is touched: handle, enumerations, m n k batch, leading dimensions, sizes,
 * pointers that would be accessed (NULL, then alignment), overlap, support. The library never
 * prints, exits or aborts.
 *
 * Pointers, streams and events of the CUDA runtime work as they are: the library uses the
 * device's primary context and restores the caller's current context before it returns.
 */
#ifndef HGEMM_H
#define HGEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HGEMM_SHARED) && defined(__GNUC__)
#define HGEMM_API __attribute__((visibility("default")))
#else
#define HGEMM_API
#endif

/* ---- 1. Version --------------------------------------------------------------------------- */

#define HGEMM_VERSION_MAJOR 0
#define HGEMM_VERSION_MINOR 1
#define HGEMM_VERSION_PATCH 0

/* The version of the library that is linked, as major * 10000 + minor * 100 + patch. */
HGEMM_API int hgemm_version(void);

/* ---- 2. Statuses -------------------------------------------------------------------------- */

typedef enum hgemm_status_t {
    HGEMM_STATUS_SUCCESS = 0,
    HGEMM_STATUS_INVALID_HANDLE,     /* the handle, or a pointer that the call needs, is NULL */
    HGEMM_STATUS_INVALID_DESC,       /* descriptor is NULL or was not initialised */
    HGEMM_STATUS_INVALID_LAYOUT,     /* layout is not an hgemm_layout_t */
    HGEMM_STATUS_INVALID_OP,         /* op_a or op_b is not an hgemm_op_t */
    HGEMM_STATUS_INVALID_ACCUMULATE, /* accumulate is not an hgemm_accumulate_t */
    HGEMM_STATUS_INVALID_KERNEL,     /* kernel is not in [0, hgemm_kernel_count()] */
    HGEMM_STATUS_INVALID_M,          /* m < 0 */
    HGEMM_STATUS_INVALID_N,          /* n < 0 */
    HGEMM_STATUS_INVALID_K,          /* k < 0 */
    HGEMM_STATUS_INVALID_BATCH,      /* batch < 0 */
    HGEMM_STATUS_INVALID_LDA,        /* lda < max(1, stored row or column of A) */
    HGEMM_STATUS_INVALID_LDB,
    HGEMM_STATUS_INVALID_LDC,
    HGEMM_STATUS_INVALID_LDD,
    HGEMM_STATUS_TOO_LARGE, /* m, n or k over 2^31 - 1, or a batch that spans over 2^63 bytes */
    HGEMM_STATUS_NULL_A,    /* A would be read and is NULL */
    HGEMM_STATUS_NULL_B,
    HGEMM_STATUS_NULL_C,
    HGEMM_STATUS_NULL_D,       /* D would be written and is NULL */
    HGEMM_STATUS_MISALIGNED_A, /* A would be read and is not a multiple of 2 bytes */
    HGEMM_STATUS_MISALIGNED_B,
    HGEMM_STATUS_MISALIGNED_C,
    HGEMM_STATUS_MISALIGNED_D,
    HGEMM_STATUS_OVERLAP,        /* D overlaps C and is not C, or the D's of a batch overlap */
    HGEMM_STATUS_NOT_SUPPORTED,  /* the kernel asked for, or every one, does not cover this */
    HGEMM_STATUS_INVALID_DEVICE, /* the device's name is not understood, or no such ordinal */
    HGEMM_STATUS_NO_DRIVER,      /* the CUDA driver's library was not found or is too old */
    HGEMM_STATUS_NO_DEVICE,      /* the driver found no GPU */
    HGEMM_STATUS_OLD_DEVICE,     /* the GPU is older than compute capability 7.5 */
    HGEMM_STATUS_OUT_OF_MEMORY,  /* host or device memory ran out */
    HGEMM_STATUS_DEVICE_ERROR,   /* the driver reported an error: see hgemm_error_detail */
    HGEMM_STATUS_COUNT_          /* number of statuses, not one itself */
} hgemm_status_t;

/* The status's name, such as "HGEMM_STATUS_INVALID_LDA". Never NULL. */
HGEMM_API const char *hgemm_status_name(hgemm_status_t status);

/* One sentence that says what is wrong and what to do. Never NULL. */
HGEMM_API const char *hgemm_status_string(hgemm_status_t status);

/* ---- 3. Handles, devices, streams --------------------------------------------------------- */

typedef struct hgemm_handle *hgemm_handle_t;

/*
 * Opens a device. `device` is
 *     "cuda"      the first usable GPU          "cuda:N"  the GPU of ordinal N
 *     "t4emu"     a T4 that is emulated: the kernels' sm_75 machine code, executed on the CPU
 *     NULL or ""  what the environment variable HGEMM_DEVICE says, otherwise the first usable GPU
 *                 or, where there is none, the emulated T4
 * "t4emu:OPTION,..." takes the options
 *     check       watch the kernel: an access out of bounds or to memory never written, a race or
 *                 a hazard of the schedule makes the call an HGEMM_STATUS_DEVICE_ERROR whose
 *                 detail is the report
 *     hopper      round in the tensor cores as a Hopper GPU does, to compare results bit for bit
 *     time        for bench_hgemm, whose events then tell modelled time: what a timing model, not a
 *                 measurement, says that the kernels take on a T4 at 1590 MHz. To the functions below
 *                 it changes the device's name and kind only
 * Every emulated T4 is a machine of its own: its memory belongs to one handle, and goes with it.
 * Its calls are complete when they return. A build without the emulator knows no "t4emu".
 * `*handle` is written on success only.
 */
HGEMM_API hgemm_status_t hgemm_create(hgemm_handle_t *handle, const char *device);

/* Waits for the handle's stream and frees what the handle holds. What it enqueued on streams that were set before
 * must have ended, and no graph into which its calls were captured may be launched again: their kernels and
 * their workspace are gone. NULL is allowed. */
HGEMM_API hgemm_status_t hgemm_destroy(hgemm_handle_t handle);

/* Calls that follow enqueue on `stream`, a cudaStream_t or CUstream of the handle's device. NULL
 * is the default stream, which a new handle uses. The stream must outlive its use. */
HGEMM_API hgemm_status_t hgemm_set_stream(hgemm_handle_t handle, void *stream);
HGEMM_API hgemm_status_t hgemm_get_stream(hgemm_handle_t handle, void **stream);

/* Waits until all work on the handle's stream is done and reports an error that it met. */
HGEMM_API hgemm_status_t hgemm_synchronize(hgemm_handle_t handle);

/* The device's words for the last failure of this handle, "" where it had none to say; with NULL,
 * for the last hgemm_create that failed on this thread. Valid until the next call with the handle
 * (the next hgemm_create of the thread). Never NULL. */
HGEMM_API const char *hgemm_error_detail(hgemm_handle_t handle);

typedef struct hgemm_device_info_t {
    char name[128];    /* such as "Tesla T4" */
    char kind[16];     /* "cuda", "t4emu", or "t4model": t4emu with the option time */
    int compute_major; /* compute capability */
    int compute_minor;
    int multiprocessors;
    int clock_khz; /* highest SM clock, 0 where unknown */
    size_t memory_bytes;
    size_t l2_bytes;
    int driver_version; /* as cuDriverGetVersion: 13000 is 13.0; 0 without a driver */
} hgemm_device_info_t;

HGEMM_API hgemm_status_t hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info);

/* ---- 4. Device memory --------------------------------------------------------------------- */
/*
 * Small helpers, so that one program runs on every device. Memory of the CUDA runtime or driver
 * serves as well. Copies are ordered on the handle's stream; both return when host memory may be
 * used again. A device pointer must not be dereferenced by the host.
 */
HGEMM_API hgemm_status_t hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes);
HGEMM_API hgemm_status_t hgemm_free(hgemm_handle_t handle, void *pointer);
HGEMM_API hgemm_status_t hgemm_upload(hgemm_handle_t handle, void *device, const void *host, size_t bytes);
HGEMM_API hgemm_status_t hgemm_download(hgemm_handle_t handle, void *host, const void *device, size_t bytes);

/* Conversion between float and the bits of a half: to nearest even, NaN stays NaN. */
HGEMM_API uint16_t hgemm_half_from_float(float value);
HGEMM_API float hgemm_half_to_float(uint16_t bits);

/* ---- 5. One call -------------------------------------------------------------------------- */

typedef enum hgemm_layout_t { HGEMM_ROW_MAJOR = 0, HGEMM_COL_MAJOR = 1 } hgemm_layout_t;
typedef enum hgemm_op_t { HGEMM_OP_N = 0, HGEMM_OP_T = 1 } hgemm_op_t;

/*
 * C = alpha * op(A) * op(B) + beta * C, accumulated in half precision by the kernel that
 * hgemm_select chooses. a, b and c are device pointers to halves. c is both C and D: where beta
 * is 0, a c that is NULL is an HGEMM_STATUS_NULL_D.
 */
HGEMM_API hgemm_status_t hgemm_run(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b,
                                   int64_t m, int64_t n, int64_t k, float alpha, const void *a, int64_t lda,
                                   const void *b, int64_t ldb, float beta, void *c, int64_t ldc);

/* ---- 6. The whole problem ----------------------------------------------------------------- */

typedef enum hgemm_accumulate_t {
    HGEMM_ACCUMULATE_F16 = 0, /* sums are rounded to half after every 8 products */
    HGEMM_ACCUMULATE_F32 = 1  /* sums are kept in single precision */
} hgemm_accumulate_t;

#define HGEMM_KERNEL_AUTO 0 /* let hgemm_select choose */

/*
 * Everything a call can say. Start from hgemm_desc_init and set what differs. With batch > 1,
 * matrix number i of X begins stride_x elements after number i - 1; a stride of 0 shares one A,
 * B or C among all (D's must keep the outputs apart).
 */
typedef struct hgemm_desc_t {
    size_t size; /* of this struct, as hgemm_desc_init found it: leave it as it is */
    hgemm_layout_t layout;
    hgemm_op_t op_a, op_b;
    hgemm_accumulate_t accumulate;
    int kernel; /* HGEMM_KERNEL_AUTO, or 1 .. hgemm_kernel_count() */
    int64_t m, n, k;
    int64_t batch;
    float alpha, beta;
    const void *a;
    int64_t lda, stride_a;
    const void *b;
    int64_t ldb, stride_b;
    const void *c;
    int64_t ldc, stride_c;
    void *d;
    int64_t ldd, stride_d;
} hgemm_desc_t;

/* Row-major, no transpose, half accumulation, automatic kernel, batch 1, alpha 1, beta 0, all
 * sizes, strides and pointers 0. */
HGEMM_API void hgemm_desc_init(hgemm_desc_t *desc);

HGEMM_API hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Chooses the kernel that hgemm_run_desc would use and loads it, so that the call itself does neither
 * (before a graph capture, before a timing). What is loaded stays. The choice is remembered until that
 * for another problem takes its place, one of 256 by a hash: the call then chooses the same once more,
 * which takes the host some microseconds. */
HGEMM_API hgemm_status_t hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* ---- 7. The kernels ----------------------------------------------------------------------- */

/* Bits of hgemm_kernel_info_t.ops: which transposes of the row-major problem a kernel covers
 * (first letter op_a, second op_b). A column-major problem is run as the row-major problem of the
 * transposed matrices, D^T = op(B)^T * op(A)^T: op_a and op_b then trade places. */
enum { HGEMM_OPS_NN = 1, HGEMM_OPS_NT = 2, HGEMM_OPS_TN = 4, HGEMM_OPS_TT = 8 };

typedef struct hgemm_kernel_info_t {
    const char *name; /* "k1_tiled": the name in the source, the benchmark and the docs */
    const char *rung; /* the rung of the ladder it belongs to, such as "k5_tuned" */
    hgemm_accumulate_t accumulate;
    int block_m, block_n, block_k; /* tile of a thread block */
    int warp_m, warp_n, warp_k;    /* tile of a warp: block_k / warp_k warps share a tile of D */
    int stages;                    /* copies of the block's tile in shared memory */
    int threads;                   /* threads of a block */
    int registers;                 /* registers of a thread on sm_75, largest over the variants */
    int shared_bytes;              /* dynamic shared memory of a block */
    unsigned ops;                  /* HGEMM_OPS_* */
    int any_alignment;             /* 0: only 16-byte pointers and multiples of 8, and no rows so short that
                                      a tile's missing columns reach 16 rows on: a width of 8 by 256 */
} hgemm_kernel_info_t;

/* Kernels are numbered 1 .. hgemm_kernel_count(), in the order of the ladder. */
HGEMM_API int hgemm_kernel_count(void);
HGEMM_API hgemm_status_t hgemm_get_kernel_info(int kernel, hgemm_kernel_info_t *info);

/* The number of the kernel of that name, 0 where there is none. */
HGEMM_API int hgemm_find_kernel(const char *name);

/* ---- 8. What runs ------------------------------------------------------------------------- */

/*
 * Writes to `*kernel` the number of the kernel that would run on a T4 (40 multiprocessors), 0 where
 * the call has nothing to compute. Needs no device: a pure function of the descriptor, which is
 * checked as hgemm_run_desc does except that pointers count by their alignment only, and by whether D
 * is C. They may be NULL, which is aligned, and may overlap. Another GPU may be given another kernel. One for
 * aligned operands may run on copies of others, which a call that names it does not make.
 */
HGEMM_API hgemm_status_t hgemm_select(const hgemm_desc_t *desc, int *kernel);

#ifdef __cplusplus
}
#endif
#endif
