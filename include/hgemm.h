/* SPDX-License-Identifier: MIT */
/*
 * hgemm - matrix multiplication for NVIDIA Turing (T4, sm_75)
 *
 *     D = act(alpha * op(A) * op(B) + beta * C + bias) * gate
 *
 * Contents
 *     1. Version                     5. One call: hgemm_run, hgemm_run_f32
 *     2. Statuses                    6. The whole problem: hgemm_desc_t
 *     3. Handles, devices, streams   7. The kernels
 *     4. Device memory               8. What runs: hgemm_select, plans, tuning
 *
 * Above each function stands its contract. All of them share these rules:
 *
 * Units. Sizes, leading dimensions and strides count elements, unless a comment says bytes. A leading dimension is the
 * distance between rows, in column-major layout between columns.
 *
 * Errors. A handle that is NULL is an HGEMM_STATUS_INVALID_HANDLE, and so is another pointer that the function needs.
 * (Operands, descriptors and descriptions of weights have statuses of their own.) Arguments are checked first: a call
 * that refuses one has written nothing and enqueued nothing. Results are written on success only. A function that asks
 * the device for something may return HGEMM_STATUS_OUT_OF_MEMORY and HGEMM_STATUS_DEVICE_ERROR, the latter also for
 * earlier work that failed; what was being written then has no defined contents. The library never exits or aborts, and
 * prints only if the environment's HGEMM_LOG or HGEMM_RECORD asks for it (docs/tuning.md).
 *
 * Threads. One thread at a time uses a handle; different handles are independent. A function without a handle may be
 * called by any thread at any time. A child of fork() gets an HGEMM_STATUS_DEVICE_ERROR for a GPU's handle of its
 * parent.
 *
 * Stream. A function that enqueues does so on the handle's stream, and returns without waiting. The others neither
 * enqueue nor wait, unless their comment says so. Pointers, streams and events of the CUDA runtime work as they are:
 * the library uses the device's primary context, and restores the caller's context before it returns.
 *
 * docs/contract.md has what a product guarantees beyond that: layouts, aliasing, numbers, capture, the workspace.
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
#define HGEMM_VERSION_MINOR 2
#define HGEMM_VERSION_PATCH 0

/* Returns the version of the library that is linked, as major * 10000 + minor * 100 + patch. */
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
    HGEMM_STATUS_INVALID_LDA,        /* lda is less than a stored row (column-major: column) of A has elements */
    HGEMM_STATUS_INVALID_LDB,
    HGEMM_STATUS_INVALID_LDC,
    HGEMM_STATUS_INVALID_LDD,
    HGEMM_STATUS_TOO_LARGE, /* m, n, k or groups over 2^31 - 1, or an operand that spans over 2^62 bytes */
    HGEMM_STATUS_NULL_A,    /* A would be read and is NULL */
    HGEMM_STATUS_NULL_B,
    HGEMM_STATUS_NULL_C,
    HGEMM_STATUS_NULL_D,       /* D would be written and is NULL */
    HGEMM_STATUS_MISALIGNED_A, /* A would be read and is not a multiple of its elements' bytes */
    HGEMM_STATUS_MISALIGNED_B, /* the same of B; packed weights are at a multiple of 16 bytes */
    HGEMM_STATUS_MISALIGNED_C,
    HGEMM_STATUS_MISALIGNED_D,
    HGEMM_STATUS_OVERLAP,        /* D overlaps what is read and is not C, or the D's of a batch overlap */
    HGEMM_STATUS_NOT_SUPPORTED,  /* the kernel asked for, or every one, does not cover this */
    HGEMM_STATUS_INVALID_DEVICE, /* the device's name is not understood, or no such ordinal */
    HGEMM_STATUS_NO_DRIVER,      /* the CUDA driver's library was not found or is too old for this build */
    HGEMM_STATUS_NO_DEVICE,      /* the driver found no GPU */
    HGEMM_STATUS_OLD_DEVICE,     /* the GPU is older than compute capability 7.5 */
    HGEMM_STATUS_OUT_OF_MEMORY,  /* host or device memory ran out */
    HGEMM_STATUS_DEVICE_ERROR,   /* the driver reported an error: see hgemm_error_detail */
    HGEMM_STATUS_INVALID_TYPE,   /* a type is not an hgemm_type_t that its operand can have */
    HGEMM_STATUS_INVALID_ACTIVATION,
    HGEMM_STATUS_INVALID_FLAGS,
    HGEMM_STATUS_INVALID_BIAS,       /* bias_mode is not an hgemm_bias_t */
    HGEMM_STATUS_INVALID_BATCH_MODE, /* batch_mode is not an hgemm_batch_mode_t */
    HGEMM_STATUS_INVALID_ALIGNMENT,  /* alignment is neither 0 nor a power of two */
    HGEMM_STATUS_INVALID_INDEX,      /* index_type is not an hgemm_index_t */
    HGEMM_STATUS_INVALID_LDGATE,
    HGEMM_STATUS_NULL_GROUP_ENDS, /* the batch is grouped and group_ends is NULL */
    HGEMM_STATUS_MISALIGNED_BIAS,
    HGEMM_STATUS_MISALIGNED_GATE,
    HGEMM_STATUS_MISALIGNED_SCALAR,    /* a pointer to a scalar or a scale is not a multiple of 4 bytes */
    HGEMM_STATUS_MISALIGNED_INDEX,     /* group_ends, gather_a or scatter_d is not one of its index's bytes */
    HGEMM_STATUS_MISALIGNED_WORKSPACE, /* a workspace is not a multiple of 128 bytes */
    HGEMM_STATUS_INVALID_PLAN,         /* a plan, or its text, is not for this library, device and call */
    HGEMM_STATUS_INVALID_TUNING,       /* a tuning file cannot be used */
    HGEMM_STATUS_INVALID_SCALE,        /* scale_a or scale_b is neither 0 nor a power of two from 2^-112 to 2^126 */
    HGEMM_STATUS_INVALID_WEIGHTS,      /* an hgemm_weights_t was not initialised, or one of its fields cannot be */
    HGEMM_STATUS_INVALID_ACCURACY,     /* accuracy is not an hgemm_accuracy_t */
    HGEMM_STATUS_COUNT_                /* number of statuses, not one itself */
} hgemm_status_t;

/* Returns a status's name, such as "HGEMM_STATUS_INVALID_LDA". It is a constant, never NULL: any other number is
 * "HGEMM_STATUS_UNKNOWN". */
HGEMM_API const char *hgemm_status_name(hgemm_status_t status);

/* Returns a sentence that says what is wrong and what to do. It is a constant, never NULL. The words of
 * hgemm_error_detail are sentences that may follow it. */
HGEMM_API const char *hgemm_status_string(hgemm_status_t status);

/* ---- 3. Handles, devices, streams --------------------------------------------------------- */

typedef struct hgemm_handle *hgemm_handle_t;

/*
 * Opens a device and makes a handle of it, with a workspace and a stream, the default one. `device` is
 *     "cuda"      the first usable GPU          "cuda:N"  the GPU of ordinal N
 *     "t4emu"     a T4 that is emulated: the kernels' sm_75 machine code, executed on the CPU
 *     NULL or ""  the name in the environment's HGEMM_DEVICE, otherwise the first usable GPU
 *                 or, where there is none, the emulated T4
 *
 * THE EMULATED T4 IS THOUSANDS OF TIMES SLOWER THAN A GPU. It is for learning and testing. "cuda" as the name, or the
 * environment's HGEMM_REQUIRE_GPU=1, refuses it. hgemm_get_device_info tells what NULL has opened, and why.
 * Every emulated T4 is a machine of its own, whose memory goes with its handle, and its calls are complete when they
 * return. A build without the emulator knows no "t4emu". "t4emu:OPTION,..." takes the options check       watch the
 * kernel: an access out of bounds or to memory never written, a race or a hazard of the schedule makes the call an
 * HGEMM_STATUS_DEVICE_ERROR whose detail is the report hopper      round in the tensor cores as a Hopper GPU does, to
 * compare results bit for bit newer       have the library take it for an H100: what it chooses there, executed by the
 * T4's machine code. Not with time time        for bench_hgemm, whose events then tell modelled time: what a timing
 * model, not a measurement, says that the kernels take on a T4 at 1590 MHz. To the functions below it changes the
 * device's name and kind only dry         with time: launches between two events are timed without being computed,
 * several times as fast. What they would have written is missing until it is written again: to download it, or to
 * multiply it, is an HGEMM_STATUS_DEVICE_ERROR
 *
 * Errors: HGEMM_STATUS_INVALID_DEVICE, NO_DRIVER, NO_DEVICE and OLD_DEVICE; hgemm_error_detail(NULL) says what was
 * wrong with which GPU. No memory for a workspace is no error: the handle works without. A tuning file in HGEMM_TUNING
 * that cannot be used is none either.
 */
HGEMM_API hgemm_status_t hgemm_create(hgemm_handle_t *handle, const char *device);

/* Waits for the handle's stream and frees what the handle holds. NULL is allowed. Work on streams that were set before
 * must have ended, and no graph into which calls of the handle were captured may be launched again: their kernels and
 * their workspace are gone. Free memory of hgemm_malloc before that. A status other than success tells of work that
 * failed; the handle is gone all the same. */
HGEMM_API hgemm_status_t hgemm_destroy(hgemm_handle_t handle);

/* Has calls that follow enqueue on `stream`, a cudaStream_t or CUstream of the handle's device. NULL is the default
 * stream, which a new handle uses. The stream must outlive its use. Nothing is done with it now; calls of one handle on
 * two streams share a workspace, and must not run at the same time. */
HGEMM_API hgemm_status_t hgemm_set_stream(hgemm_handle_t handle, void *stream);

/* Writes the handle's stream to `*stream`. */
HGEMM_API hgemm_status_t hgemm_get_stream(hgemm_handle_t handle, void **stream);

/* Waits until all work on the handle's stream is done, and reports an error that it met. Not while the stream is
 * captured. */
HGEMM_API hgemm_status_t hgemm_synchronize(hgemm_handle_t handle);

/* Says what the last failure of this handle was: which value was wrong, or what the device said. With NULL it speaks of
 * the last call on this thread of hgemm_create, hgemm_select or hgemm_weights_bytes, or without a handle of
 * hgemm_pack_weights or hgemm_unpack_weights. The words are whole sentences, to be printed after that of the status, or
 * "" where there is no more to say; never NULL. They stay until the next call with the handle (with NULL: the next of
 * those calls on the thread). */
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
    int is_emulated;    /* 1: the CPU executes the kernels, thousands of times slower than a GPU */
    char fallback[256]; /* why the emulated T4 was opened though nobody named it: what was wrong with the
                           GPUs or the driver; "" where the device is one that was asked for */
} hgemm_device_info_t;

/* Writes to `*info` what the handle's device is, and why it was opened. */
HGEMM_API hgemm_status_t hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info);

/* ---- 4. Device memory --------------------------------------------------------------------- */
/* So that one program runs on every device. Memory of the CUDA runtime or driver serves as well. The host must not
 * dereference a device pointer. */

/* Allocates `bytes` of device memory, at a multiple of 256, and writes its address to `*pointer`: NULL where `bytes` is
 * 0. It may wait for the device, and is no part of a capture. */
HGEMM_API hgemm_status_t hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes);

/* Frees memory of hgemm_malloc, by a handle of the same device. NULL is allowed. Work that uses the memory must have
 * ended. It may wait for the device, and is no part of a capture. */
HGEMM_API hgemm_status_t hgemm_free(hgemm_handle_t handle, void *pointer);

/* Copies `bytes` from host memory to device memory, in the order of the handle's stream, and waits for that. With 0
 * bytes the pointers may be NULL. It cannot be captured. */
HGEMM_API hgemm_status_t hgemm_upload(hgemm_handle_t handle, void *device, const void *host, size_t bytes);

/* Copies `bytes` from device memory to host memory, in the order of the handle's stream, and waits for that: results of
 * calls before it are there. With 0 bytes the pointers may be NULL. It cannot be captured. */
HGEMM_API hgemm_status_t hgemm_download(hgemm_handle_t handle, void *host, const void *device, size_t bytes);

/* Has calls that follow use `bytes` of the caller's device memory as their workspace. `pointer` is a multiple of 128,
 * else it is an HGEMM_STATUS_MISALIGNED_WORKSPACE, and the memory serves nothing else until another takes its place or
 * the handle is destroyed. Its first 64 KiB are cleared on the handle's stream, and the call waits for that: not while
 * it is captured. With fewer bytes than that, calls run without a workspace. NULL and 0 give the handle its own again,
 * without a wait. Graphs that were captured before go on using what they were captured with. After a failure the
 * workspace is still the one of before. */
HGEMM_API hgemm_status_t hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes);

/* Returns the bits of the half nearest to a float, to even; NaN stays NaN. */
HGEMM_API uint16_t hgemm_half_from_float(float value);

/* Returns the float that a half's bits stand for, exactly. */
HGEMM_API float hgemm_half_to_float(uint16_t bits);

/* ---- 5. One call -------------------------------------------------------------------------- */

typedef enum hgemm_layout_t { HGEMM_ROW_MAJOR = 0, HGEMM_COL_MAJOR = 1 } hgemm_layout_t;
typedef enum hgemm_op_t { HGEMM_OP_N = 0, HGEMM_OP_T = 1 } hgemm_op_t;

/*
 * Computes C = alpha * op(A) * op(B) + beta * C of halves, with FP16 sums: the fastest, but a sum overflows beyond
 * 65504 and loses small terms next to large ones. It is hgemm_run_desc of a descriptor that says this; enqueues.
 *     layout         of A, B and C
 *     op_a, op_b     HGEMM_OP_T: A is stored as k x m instead of m x k, B as n x k instead of k x n
 *     m, n, k        0 is allowed
 *     alpha, beta    where beta is 0, C is not read; where alpha or k is 0, A and B are not, and may be NULL
 *     a, b, c        device memory. c is both C and D: where beta is 0, a c that is NULL is an HGEMM_STATUS_NULL_D
 *     lda, ldb, ldc  at least the elements of a stored row (column-major: column)
 */
HGEMM_API hgemm_status_t hgemm_run(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b,
                                   int64_t m, int64_t n, int64_t k, float alpha, const void *a, int64_t lda,
                                   const void *b, int64_t ldb, float beta, void *c, int64_t ldc);

/* Computes C = alpha * op(A) * op(B) + beta * C of halves, with FP32 sums: only what is stored must fit a half. All
 * else is as with hgemm_run. */
HGEMM_API hgemm_status_t hgemm_run_f32(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b,
                                       int64_t m, int64_t n, int64_t k, float alpha, const void *a, int64_t lda,
                                       const void *b, int64_t ldb, float beta, void *c, int64_t ldc);

/* ---- 6. The whole problem ----------------------------------------------------------------- */

typedef enum hgemm_accumulate_t {
    HGEMM_ACCUMULATE_F16 = 0, /* sums are rounded to half after every 8 products */
    HGEMM_ACCUMULATE_F32 = 1  /* sums are kept in single precision */
} hgemm_accumulate_t;

#define HGEMM_KERNEL_AUTO 0 /* let hgemm_select choose */

typedef enum hgemm_type_t {
    HGEMM_TYPE_F16 = 0, /* IEEE 754 binary16 */
    HGEMM_TYPE_F32 = 1, /* IEEE 754 binary32 */
    HGEMM_TYPE_BF16 = 2 /* bfloat16: the upper half of a binary32 */
} hgemm_type_t;

/* act(x), computed in single precision. */
typedef enum hgemm_activation_t {
    HGEMM_ACTIVATION_NONE = 0,
    HGEMM_ACTIVATION_RELU,      /* max(x, 0); NaN stays NaN */
    HGEMM_ACTIVATION_GELU_TANH, /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))): https://arxiv.org/abs/1606.08415
                                 */
    HGEMM_ACTIVATION_GELU_ERF,  /* x/2 * (1 + erf(x / sqrt(2))): the same paper */
    HGEMM_ACTIVATION_SILU       /* x / (1 + exp(-x)): the same paper */
} hgemm_activation_t;

/* Returns an activation's name, such as "gelu_tanh"; NULL for a number that is no activation, such as the value past
 * the last one. */
HGEMM_API const char *hgemm_activation_name(hgemm_activation_t activation);

typedef enum hgemm_bias_t {
    HGEMM_BIAS_PER_COLUMN = 0, /* n values: D[i][j] gets bias[j] */
    HGEMM_BIAS_PER_ROW = 1     /* m values: D[i][j] gets bias[i] */
} hgemm_bias_t;

typedef enum hgemm_batch_mode_t {
    HGEMM_BATCH_STRIDED = 0,  /* matrix i of X begins stride_x elements after matrix i - 1 */
    HGEMM_BATCH_POINTERS = 1, /* it is where the i-th device pointer says */
    HGEMM_BATCH_GROUPED = 2   /* products of different m, whose rows follow each other */
} hgemm_batch_mode_t;

typedef enum hgemm_index_t { HGEMM_INDEX_I32 = 0, HGEMM_INDEX_I64 = 1 } hgemm_index_t;

enum {
    HGEMM_FLAG_BATCH_INVARIANT = 1, /* row i of D has the same bits whatever m, the batch and the other rows are */
    HGEMM_FLAG_HALVES_IN_A = 2,     /* A is of HGEMM_TYPE_F32, and was made of halves or bfloat16: docs/contract.md */
    HGEMM_FLAG_HALVES_IN_B = 4
};

/* What is promised of D where A or B is of HGEMM_TYPE_F32: bounds are in docs/contract.md. All hold over all of FP32's
 * range. */
typedef enum hgemm_accuracy_t {
    HGEMM_ACCURACY_F32 = 0, /* as FP32 arithmetic */
    HGEMM_ACCURACY_16_BITS, /* as if A and B had been rounded to 16 significant bits */
    HGEMM_ACCURACY_11_BITS  /* as if they had been rounded to 11, which halves have, and TF32 */
} hgemm_accuracy_t;

/*
 * Weights of 4 or 8 bits: an n x k matrix W of codes. `group` of them along k have a scale, and a zero, in common. An
 * element of W is
 *     HGEMM_ZERO_NONE     scale * code
 *     HGEMM_ZERO_CODE     scale * (code - zero), where zero is an integer
 *     HGEMM_ZERO_OFFSET   scale * code + offset
 * It is never formed: products multiply by the code, or by code - zero, both exact, and a group's sum by its scale.
 */
typedef enum hgemm_code_t {
    HGEMM_CODE_INT4 = 0, /* -8 to 7, two in a byte: the one with the smaller k in the low bits */
    HGEMM_CODE_UINT4,    /* 0 to 15, in the same way */
    HGEMM_CODE_INT8,     /* -128 to 127 */
    HGEMM_CODE_UINT8,    /* 0 to 255 */
    HGEMM_CODE_TABLE16,  /* one of 16 halves, by a number of 4 bits, two in a byte. Without zeros */
    HGEMM_CODE_E4M3 /* sign, 4 bits of exponent, 3 of mantissa; no infinity, 0x7f and 0xff are NaN. Without zeros */
} hgemm_code_t;

typedef enum hgemm_zero_t { HGEMM_ZERO_NONE = 0, HGEMM_ZERO_CODE, HGEMM_ZERO_OFFSET } hgemm_zero_t;

/* What packed weights are. `size` is set by hgemm_weights_init, and what is not said is 0: signed codes of 4 bits
 * without zeros, whose scales are halves. */
typedef struct hgemm_weights_t {
    size_t size;  /* of this struct, by the caller's header */
    int64_t n, k; /* of W. Codes of 4 bits: k is even */
    hgemm_code_t code;
    int group; /* 16, 32, 64, 128 or 256 k's, the last group of a row may have less; 0: all k's of a row */
    hgemm_zero_t zero;
    hgemm_type_t type_scale; /* of scales, and of offsets. Powers of two fit HGEMM_TYPE_BF16 */
    uint16_t table[16];      /* HGEMM_CODE_TABLE16: halves, none of them infinite or NaN */
} hgemm_weights_t;

/* Sets the first `size` bytes of a description to zeros, and its `size`. For callers from other languages: C and C++
 * have hgemm_weights_init. NULL is allowed. */
HGEMM_API void hgemm_weights_init_sized(hgemm_weights_t *weights, size_t size);

/* Sets a description of weights to signed codes of 4 bits, without zeros, whose scales are halves, one for a row, and n
 * and k to 0. NULL is allowed. */
static inline void hgemm_weights_init(hgemm_weights_t *weights)
{
    hgemm_weights_init_sized(weights, sizeof *weights);
}

/* Writes how many bytes the packed form takes, a multiple of 128: codes, scales and zeros, n and k rounded up. A
 * description that cannot be is an HGEMM_STATUS_INVALID_WEIGHTS, whose field hgemm_error_detail(NULL) names. */
HGEMM_API hgemm_status_t hgemm_weights_bytes(const hgemm_weights_t *weights, size_t *bytes);

/*
 * Packs weights, once, into the order in which tensor cores take them.
 *     handle   NULL: all is host memory, and the calling thread packs. Else all is device memory, and the call enqueues
 *     codes    n rows of k codes, contiguous
 *     scales   n rows of a scale for each group, contiguous, at a multiple of their bytes
 *     zeros    HGEMM_ZERO_NONE: not looked at. HGEMM_ZERO_OFFSET: n rows of an offset for each group. HGEMM_ZERO_CODE:
 *              n rows of a byte for each group, signed where codes are, -8 or above where these have 4 bits
 *     packed   hgemm_weights_bytes, at a multiple of 16. It overlaps nothing that is read
 * Host and device write the same bytes. A group with a code that is NaN gets a scale that is NaN. Where n or k is 0, no
 * pointer is looked at.
 *
 * Errors: HGEMM_STATUS_INVALID_WEIGHTS; NULL_B, MISALIGNED_B for codes, scales and zeros; NULL_D, MISALIGNED_D for
 * packed; OVERLAP; TOO_LARGE. hgemm_error_detail says which value was wrong, with NULL where the handle is. The first
 * call of a handle loads a kernel: make it before a capture.
 */
HGEMM_API hgemm_status_t hgemm_pack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *codes,
                                            const void *scales, const void *zeros, void *packed);

/* Writes columns of W from its packed form, `count` from number `first` on: n rows of so many elements of `type`, `ld`
 * apart, each rounded once from FP32 arithmetic. All of W: from 0, k of them. Memory is on the host where handle is
 * NULL, else on the device, and the call enqueues; its first one loads a kernel. `matrix` may not overlap `packed`;
 * where n or count is 0, neither is looked at. Errors: HGEMM_STATUS_INVALID_WEIGHTS; INVALID_TYPE; INVALID_K for first
 * and count; INVALID_LDD where ld < count; TOO_LARGE; NULL_B, MISALIGNED_B for packed; NULL_D, MISALIGNED_D for matrix;
 * OVERLAP. */
HGEMM_API hgemm_status_t hgemm_unpack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *packed,
                                              int64_t first, int64_t count, hgemm_type_t type, void *matrix,
                                              int64_t ld);

/* Everything a call can say. Start from hgemm_desc_init and set what differs: a field of 0 or NULL adds nothing.
 * docs/contract.md has the rules of each feature. */
typedef struct hgemm_desc_t {
    size_t size;           /* of this struct, by the caller's header, as hgemm_desc_init left it */
    hgemm_layout_t layout; /* of A, B, C, D and gate */
    hgemm_op_t op_a, op_b;
    hgemm_accumulate_t accumulate;
    int kernel;            /* HGEMM_KERNEL_AUTO, or 1 .. hgemm_kernel_count() */
    int64_t m, n, k;       /* op(A) is m x k, op(B) k x n, C and D m x n; grouped: m rows in all */
    int64_t batch;         /* matrices, or groups */
    float alpha, beta;     /* 0: A and B, or C, are not read */
    const void *a;         /* device memory, all of a to d; HGEMM_BATCH_POINTERS: arrays of addresses */
    int64_t lda, stride_a; /* a stride of 0 shares one matrix among the batch */
    const void *b;         /* with weights: of hgemm_pack_weights, stride_b in bytes, ldb not looked at */
    int64_t ldb, stride_b;
    const void *c;
    int64_t ldc, stride_c;
    void *d; /* may be C: the same pointer, type, leading dimension and stride */
    int64_t ldd, stride_d;
    /* Since 0.2. A descriptor of 0.1's size is one with zeros from here on. */
    hgemm_type_t type_a, type_b, type_c, type_d; /* A and B alike, F16, BF16 or F32, or one is F32 */
    hgemm_activation_t activation;
    unsigned flags; /* HGEMM_FLAG_* */
    hgemm_bias_t bias_mode;
    hgemm_type_t type_bias;
    const void *bias; /* NULL: none. n or m contiguous values */
    int64_t stride_bias;
    const void *gate; /* NULL: none. m x n, in the layout of D */
    int64_t ldgate, stride_gate;
    hgemm_type_t type_gate;
    const float *alpha_pointer, *beta_pointer; /* device memory; NULL: alpha, beta above */
    hgemm_batch_mode_t batch_mode;
    int alignment;                    /* batches of pointers: bytes, a power of two; 0: only of an element */
    const void *group_ends;           /* grouped: `batch` indices */
    const void *gather_a, *scatter_d; /* NULL: none. m indices */
    hgemm_index_t index_type;         /* of group_ends, gather_a and scatter_d */
    float scale_a, scale_b;           /* of A and B that are BF16; 0: found by the call */
    const float *scale_a_pointer, *scale_b_pointer; /* device memory; NULL: scale_a, scale_b */
    /* Since 0.3. */
    const hgemm_weights_t *weights; /* NULL: B is a matrix; else b is packed */
    hgemm_accuracy_t accuracy;      /* of D, where A or B is F32 */
} hgemm_desc_t;

/* Sets the first `size` bytes to a descriptor as hgemm_desc_init makes it, by the caller's header, which may be older
 * than the library. For callers from other languages: C and C++ have hgemm_desc_init. NULL is allowed. */
HGEMM_API void hgemm_desc_init_sized(hgemm_desc_t *desc, size_t size);

/* Sets a descriptor to row-major halves, no transpose, FP16 sums, automatic kernel, batch 1, alpha 1, beta 0, all else
 * 0. NULL is allowed. */
static inline void hgemm_desc_init(hgemm_desc_t *desc)
{
    hgemm_desc_init_sized(desc, sizeof *desc);
}

/* Computes D = act(alpha * op(A) * op(B) + beta * C + bias) * gate as the descriptor says; enqueues. The descriptor and
 * its `weights` are looked at during the call only. The first argument that is wrong is told, in the order of
 * docs/contract.md. An operand that is not read is not checked and may be NULL. A valid call that no kernel can run is
 * an HGEMM_STATUS_NOT_SUPPORTED, whose detail names the missing feature. The first call for a problem chooses and
 * loads; the same call again (docs/contract.md says which one is the same) allocates nothing, and can be captured. */
HGEMM_API hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Chooses the kernel that hgemm_run_desc would use and loads it, so that the call itself does neither: before a capture
 * or a timing. The descriptor is checked as there, pointers and all, and errors are the same; nothing is enqueued. What
 * is loaded stays until hgemm_destroy. A handle remembers 256 choices, four of each hash: where four others took a
 * problem's place, the call chooses once more, which takes the host some microseconds. After hgemm_load_tuning or
 * hgemm_set_workspace the choice may be another. */
HGEMM_API hgemm_status_t hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Finds the scale of a matrix of HGEMM_TYPE_BF16, for scale_a_pointer or scale_b_pointer; enqueues. `*scale`, a float
 * in device memory, becomes the power of two that brings the largest finite magnitude to 2^15 or above, 2^126 at most.
 * `lines` are the matrix's rows in memory (row-major: rows; column-major: columns) of `width` elements, `ld` apart;
 * where either is 0, matrix may be NULL. Errors: HGEMM_STATUS_INVALID_M for lines, INVALID_N for width, INVALID_LDA,
 * TOO_LARGE, NULL_A, MISALIGNED_A, MISALIGNED_SCALAR. The first call of a handle loads a kernel: make it before a
 * capture. */
HGEMM_API hgemm_status_t hgemm_find_scale(hgemm_handle_t handle, int64_t lines, int64_t width, const void *matrix,
                                          int64_t ld, float *scale);

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

/* Returns how many kernels there are: they are numbered from 1 to that, in the order of the ladder. */
HGEMM_API int hgemm_kernel_count(void);

/* Writes what a kernel is to `*info`, by its number. Another number is an HGEMM_STATUS_INVALID_KERNEL. */
HGEMM_API hgemm_status_t hgemm_get_kernel_info(int kernel, hgemm_kernel_info_t *info);

/* Returns the number of the kernel of that name, 0 where there is none or name is NULL. */
HGEMM_API int hgemm_find_kernel(const char *name);

/* ---- 8. What runs ------------------------------------------------------------------------- */

/* Writes to `*kernel` the number of the kernel that would run on a T4, 0 where the call has nothing to compute. It
 * needs no device: it is a function of the descriptor alone, and checks that as hgemm_run_desc does, except that
 * pointers count by their alignment only, and by whether D is C. They may be NULL, which is aligned, and may overlap.
 * Another GPU, a tuning file or a workspace may have another kernel run. hgemm_error_detail(NULL) says what was wrong.
 */
HGEMM_API hgemm_status_t hgemm_select(const hgemm_desc_t *desc, int *kernel);

/* What a call would run: a kernel, into how many parts it cuts k, what it copies first. A plan is for one problem on
 * one kind of device (docs/contract.md says which calls it runs). It does not change and holds no device memory: it
 * outlives its handle, and threads may share it, each with a handle of its own. */
typedef struct hgemm_plan *hgemm_plan_t;

typedef struct hgemm_plan_info_t {
    int kernel;             /* its number; 0: the call has nothing to compute, and all else is 0 */
    int splits;             /* parts of k that meet in the workspace; 1: k is not cut */
    int64_t tiles;          /* block tiles of D, of all matrices */
    int64_t split_tiles;    /* of these, those whose k is cut */
    int copies_a, copies_b; /* 1: the operand is first copied, aligned, to the workspace */
    int is_tuned;           /* 1: from the tuning file; 0: the cost model's choice, or the caller's */
    double seconds;         /* that the cost model expects of it, launch not counted; 0 where the clock is unknown */
    size_t workspace_bytes; /* that it needs */
} hgemm_plan_info_t;

/* Makes the plan of what hgemm_run_desc would run, and loads that for the handle. The descriptor is checked as there,
 * but pointers as by hgemm_select. The plan fits the workspace that the handle has now. Errors as of hgemm_run_desc. */
HGEMM_API hgemm_status_t hgemm_plan_create(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Writes what a plan is to `*info`. */
HGEMM_API hgemm_status_t hgemm_plan_get_info(hgemm_plan_t plan, hgemm_plan_info_t *info);

/* Runs the call by the plan instead of by the library's choice: hgemm_run_desc in all else; enqueues. A plan of another
 * device or problem, or that needs more workspace than the handle has and can get, is an HGEMM_STATUS_INVALID_PLAN.
 * With the handle that the plan was made with it allocates nothing, and can be captured; with another the first run
 * loads. */
HGEMM_API hgemm_status_t hgemm_plan_run(hgemm_plan_t plan, hgemm_handle_t handle, const hgemm_desc_t *desc);

enum { HGEMM_PLAN_TEXT = 768 }; /* bytes of a plan's text, with the zero at the end */

/* Writes a plan as one line of text, without the line's end: the library's version, the device, the problem as a
 * row-major one, the kernel. */
HGEMM_API hgemm_status_t hgemm_plan_get_text(hgemm_plan_t plan, char text[HGEMM_PLAN_TEXT]);

/* Makes a plan for a call from such a text, and loads what it runs. The descriptor is checked as by hgemm_plan_create.
 * A text of another version, device or problem is an HGEMM_STATUS_INVALID_PLAN, and so is one that is no plan or cannot
 * run the call. */
HGEMM_API hgemm_status_t hgemm_plan_from_text(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc,
                                              const char *text);

/* Frees a plan, which no thread uses any more. NULL is allowed. Runs that are enqueued go on. */
HGEMM_API void hgemm_plan_destroy(hgemm_plan_t plan);

/* Takes from a file of `hgemm tune` the plans that are the fastest on this very device, for the problems that it lists.
 * They go before the cost model's choice, in calls that name no kernel. NULL ends the use of a file. A file of another
 * library, device or driver, or with a line that is not understood, is an HGEMM_STATUS_INVALID_TUNING, whose detail
 * says why, and the file of before stays. The environment's HGEMM_TUNING names the file that hgemm_create loads. */
HGEMM_API hgemm_status_t hgemm_load_tuning(hgemm_handle_t handle, const char *path);

/* Writes how a call compares with cuBLAS by the tuning file: cuBLAS's time divided by the time of the plan that the
 * call would run, above 1 where hgemm is the faster; 0 where no file has such an entry. A call with an epilogue was
 * compared with cuBLAS's product alone. The descriptor is checked as by hgemm_plan_create. Nothing is loaded, and the
 * handle's stream may be captured. */
HGEMM_API hgemm_status_t hgemm_get_cublas_ratio(hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio);

#ifdef __cplusplus
}
#endif
#endif
