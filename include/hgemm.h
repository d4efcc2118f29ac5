/* SPDX-License-Identifier: MIT */
/*
 * hgemm - matrix multiplication for NVIDIA Turing (T4, sm_75)
 *
 *     D = act(alpha * op(A) * op(B) + beta * C + bias) * gate
 *
 * A and B hold IEEE 754 binary16 numbers ("halves") in device memory, or both hold bfloat16, or floats, or
 * one holds floats and the other either; B may be packed weights of 4 or 8 bits. C and D hold halves, bfloat16 or
 * floats. op(X) is X or its transpose. op(A) is m x k, op(B) is k x n, C and D are m x n. D may be C. Bias, activation
 * and gate are optional.
 *
 * Contents
 *     1. Version                     5. One call: hgemm_run, hgemm_run_f32
 *     2. Statuses                    6. The whole problem: hgemm_desc_t
 *     3. Handles, devices, streams   7. The kernels
 *     4. Device memory               8. What runs: hgemm_select, plans, tuning
 *
 * Shapes and layouts. m, n, k, leading dimensions and strides are counted in elements. In a
 * row-major matrix element (i, j) is at X[i * ld + j], so ld >= its number of stored columns; in
 * a column-major one it is at X[i + j * ld], so ld >= its number of stored rows. The stored shape
 * is the one before op: with op_a = HGEMM_OP_T, A is stored as k x m. What lies between the rows of
 * A and B may be read, and reaches no element of D.
 *
 * What is read. Where beta == 0, C is not read; where k == 0 or alpha == 0, A and B are not; where m, n or
 * batch is 0, nothing is read or written. (A scalar in device memory counts as one that is not 0.) Of what
 * is not accessed nothing is checked: its pointer may be NULL, and its leading dimension, stride and type
 * may be anything.
 *
 * Alignment. Any pointer that is a multiple of its elements' bytes and any leading dimension work; packed weights
 * are at a multiple of 16 bytes. Calls are fastest where all pointers are, and leading dimensions and contiguous
 * extents are multiples of 8.
 *
 * Aliasing. D may be C: the same pointer, type, leading dimension and, with batch > 1, stride. Otherwise
 * no element of D may lie in anything that the call reads, nor in another D of the batch. Such an overlap
 * is found and refused: element by element where leading dimensions and strides agree in bytes or do not
 * matter (so two blocks of columns of one large matrix may serve as A and D), by address range where they
 * differ. What is reached by pointers or indices in device memory is the caller's to keep apart.
 *
 * Numbers. alpha * acc + beta * c and what follows it is computed in single precision and rounded once to
 * the type of D. NaN and infinity that are read propagate as IEEE 754 says. Where a part of a sum goes beyond the
 * accumulator, D is infinite or NaN.
 * The same call on the same device with the same library and tuning file gives the same bits, run after run. It is the
 * same call if its descriptor is the same, and addresses are the same modulo 16 bytes. The same numbers laid out
 * otherwise may go to another kernel, which rounds otherwise; so may those of a handle that got no workspace (below).
 *
 * Streams. Every call that computes is asynchronous: it enqueues on the handle's stream and
 * returns. It allocates nothing and can be captured into a CUDA graph once what it runs is loaded:
 * by hgemm_prepare or a run before, with the same handle, the same descriptor and addresses that are
 * the same modulo 16 bytes.
 *
 * Threads. One thread uses a handle at a time. Different handles are independent: while calls of one are captured,
 * in whatever mode, others may be created, used and destroyed. (What waits for the legacy default
 * stream, NULL, ends the capture of a stream that is not a non-blocking one, by the rules of CUDA.)
 *
 * Workspace. A handle owns device memory, which hgemm_create allocates: 32 MiB on a T4, and on newer GPUs a
 * 512th of their memory, between 32 and 256 MiB. hgemm_set_workspace lets the caller's take its place. The parts of
 * a product with a long k meet there, and on newer GPUs large operands that are not aligned are copied there,
 * aligned, and floats as halves. For these the handle's own workspace grows there, when a plan that needs it is chosen:
 * to a 128th of the memory at most, or 1 GiB; what it was before stays until hgemm_destroy. So what one handle enqueues
 * on different streams, or in graphs that it was captured into, must not run at the same time: use a handle for each.
 * Where the memory cannot be had, or a copy does not fit, the same calls run without it, but those that are to find a
 * scale of bfloat16 in it: these are an HGEMM_STATUS_NOT_SUPPORTED.
 *
 * Errors. Every function that can fail returns a status. Arguments are checked in a fixed order before
 * anything is touched: handle; descriptor; enumerations and types; m n k batch; leading dimensions; sizes;
 * pointers (NULL, then alignment); overlap; support. hgemm_status_string says in a sentence what is wrong,
 * hgemm_error_detail in another which value it was. The library never exits or
 * aborts, and prints only what the environment's HGEMM_LOG and HGEMM_RECORD ask for (docs/tuning.md).
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
#define HGEMM_VERSION_MINOR 2
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

/* The status's name, such as "HGEMM_STATUS_INVALID_LDA". Never NULL. */
HGEMM_API const char *hgemm_status_name(hgemm_status_t status);

/* A sentence that says what is wrong and what to do. The words of hgemm_error_detail are sentences that may follow it.
 * Never NULL. */
HGEMM_API const char *hgemm_status_string(hgemm_status_t status);

/* ---- 3. Handles, devices, streams --------------------------------------------------------- */

typedef struct hgemm_handle *hgemm_handle_t;

/*
 * Opens a device. `device` is
 *     "cuda"      the first usable GPU          "cuda:N"  the GPU of ordinal N
 *     "t4emu"     a T4 that is emulated: the kernels' sm_75 machine code, executed on the CPU
 *     NULL or ""  what the environment variable HGEMM_DEVICE says, otherwise the first usable GPU
 *                 or, where there is none, the emulated T4
 *
 * THE EMULATED T4 IS THOUSANDS OF TIMES SLOWER THAN A GPU. It is for learning and testing. Whoever does not want it
 * passes "cuda", or sets the environment variable HGEMM_REQUIRE_GPU to 1: where no GPU is usable, hgemm_create then
 * fails, and hgemm_error_detail(NULL) says why none is. Whoever passes NULL can ask hgemm_get_device_info: is_emulated
 * and fallback tell what was opened and why.
 *
 * "t4emu:OPTION,..." takes the options
 *     check       watch the kernel: an access out of bounds or to memory never written, a race or
 *                 a hazard of the schedule makes the call an HGEMM_STATUS_DEVICE_ERROR whose
 *                 detail is the report
 *     hopper      round in the tensor cores as a Hopper GPU does, to compare results bit for bit
 *     newer       have the library take it for an H100: what it chooses there, executed by the T4's machine code. Not
 *                 with time
 *     time        for bench_hgemm, whose events then tell modelled time: what a timing model, not a
 *                 measurement, says that the kernels take on a T4 at 1590 MHz. To the functions below
 *                 it changes the device's name and kind only
 *     dry         with time: launches between two events are timed without being computed, several times
 *                 as fast. What they would have written is missing until it is written again: to
 *                 download it, or to multiply it, is an HGEMM_STATUS_DEVICE_ERROR
 * Every emulated T4 is a machine of its own: its memory belongs to one handle, and goes with it.
 * Its calls are complete when they return. A build without the emulator knows no "t4emu".
 *
 * A GPU is usable if it is of compute capability 7.5 or newer and the driver can run what the build made for it. A GPU
 * of 7.5 runs machine code, for which the driver's CUDA release must be of the major release of the nvcc that built the
 * library, or newer (12.x: driver 525, 13.x: driver 580). A newer GPU runs PTX, for which the driver's release must be
 * no older than nvcc's. See https://docs.nvidia.com/deploy/cuda-compatibility, Minor Version Compatibility. Another
 * driver is an HGEMM_STATUS_NO_DRIVER.
 *
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

/* Says what the last failure of this handle was: which value was wrong, or what the device said. It is "" where there
 * is no more to say than the status does. With NULL it speaks of the last hgemm_create or hgemm_select that failed on
 * this thread. The words are whole sentences: print them after that of the status. They stay until the next call with
 * the handle (the next hgemm_create or hgemm_select of the thread). Never NULL. */
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

HGEMM_API hgemm_status_t hgemm_get_device_info(hgemm_handle_t handle, hgemm_device_info_t *info);

/* ---- 4. Device memory --------------------------------------------------------------------- */
/*
 * These are small helpers, so that one program runs on every device. Memory of the CUDA runtime or driver
 * serves as well. Copies are ordered on the handle's stream; both return when host memory may be
 * used again. A device pointer must not be dereferenced by the host.
 */
HGEMM_API hgemm_status_t hgemm_malloc(hgemm_handle_t handle, void **pointer, size_t bytes);
HGEMM_API hgemm_status_t hgemm_free(hgemm_handle_t handle, void *pointer);
HGEMM_API hgemm_status_t hgemm_upload(hgemm_handle_t handle, void *device, const void *host, size_t bytes);
HGEMM_API hgemm_status_t hgemm_download(hgemm_handle_t handle, void *host, const void *device, size_t bytes);

/* Calls that follow use `bytes` of the caller's device memory as their workspace. `pointer` must be a multiple of 128,
 * and the memory serve nothing else until another takes its place or the handle is destroyed. Its first 64 KiB are
 * cleared on the handle's stream, and the call waits for that, so do not make it during a capture. With fewer bytes
 * than that, calls run without a workspace. NULL and 0 give the handle its own again. Graphs that were captured before
 * go on using what they were captured with. */
HGEMM_API hgemm_status_t hgemm_set_workspace(hgemm_handle_t handle, void *pointer, size_t bytes);

/* They convert between a float and the bits of a half, to nearest even; NaN stays NaN. */
HGEMM_API uint16_t hgemm_half_from_float(float value);
HGEMM_API float hgemm_half_to_float(uint16_t bits);

/* ---- 5. One call -------------------------------------------------------------------------- */

typedef enum hgemm_layout_t { HGEMM_ROW_MAJOR = 0, HGEMM_COL_MAJOR = 1 } hgemm_layout_t;
typedef enum hgemm_op_t { HGEMM_OP_N = 0, HGEMM_OP_T = 1 } hgemm_op_t;

/*
 * C = alpha * op(A) * op(B) + beta * C by the kernel that hgemm_select chooses. a, b and c are device
 * pointers to halves. c is both C and D: where beta is 0, a c that is NULL is an HGEMM_STATUS_NULL_D.
 *
 * hgemm_run sums in half precision. It is the fastest, but a sum overflows beyond 65504 and loses small terms beside
 * large ones. hgemm_run_f32 sums in single precision: only what is stored must fit a half.
 */
HGEMM_API hgemm_status_t hgemm_run(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t op_a, hgemm_op_t op_b,
                                   int64_t m, int64_t n, int64_t k, float alpha, const void *a, int64_t lda,
                                   const void *b, int64_t ldb, float beta, void *c, int64_t ldc);
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

/* Its name, such as "gelu_tanh"; NULL for what is no activation, such as the value past the last one. */
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
    HGEMM_FLAG_HALVES_IN_A = 2,     /* A is of HGEMM_TYPE_F32, and was made of halves or of bfloat16: see FP32 below */
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
 * Weights of 4 or 8 bits: an n x k matrix W of codes, of which `group` along k have a scale, and a zero, in common. An
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

/* Makes the first `size` bytes such a struct: all of it by the caller's header. */
HGEMM_API void hgemm_weights_init_sized(hgemm_weights_t *weights, size_t size);

static inline void hgemm_weights_init(hgemm_weights_t *weights)
{
    hgemm_weights_init_sized(weights, sizeof *weights);
}

/* Writes how many bytes the packed form takes, a multiple of 128: codes, scales and zeros, n and k rounded up. */
HGEMM_API hgemm_status_t hgemm_weights_bytes(const hgemm_weights_t *weights, size_t *bytes);

/*
 * Packs weights, once: into the order in which tensor cores take them. What is packed is contiguous, row by row of W: n
 * rows of k codes; n rows of a scale for each group; for HGEMM_ZERO_CODE n rows of a byte for each group, signed where
 * codes are, and at least -8 where these have 4 bits; for HGEMM_ZERO_OFFSET n rows of an offset for each group. Else
 * zeros is not looked at. `packed` takes hgemm_weights_bytes, at a multiple of 16 bytes.
 *
 * Where `handle` is NULL, all is host memory, and the call packs there; else it is device memory, and the call
 * enqueues. Both write the same bytes. A group with a code that is NaN gets a scale that is NaN. hgemm_error_detail
 * says which value was wrong, with NULL after a call without a handle. What is read and what is written may not
 * overlap.
 *
 * The first call of a handle, of this kind or the next, loads its kernel: make it before a graph capture.
 */
HGEMM_API hgemm_status_t hgemm_pack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *codes,
                                            const void *scales, const void *zeros, void *packed);

/* Writes columns of W from its packed form, `count` from number `first` on: n rows of so many elements, `ld` apart,
 * rounded to the type once, from FP32 arithmetic. All of W: from 0, k of them. */
HGEMM_API hgemm_status_t hgemm_unpack_weights(hgemm_handle_t handle, const hgemm_weights_t *weights, const void *packed,
                                              int64_t first, int64_t count, hgemm_type_t type, void *matrix,
                                              int64_t ld);

/*
 * Everything a call can say:
 *
 *     D = act(alpha * op(A) * op(B) + beta * C + bias) * gate
 *
 * in single precision, rounded once to the type of D. Start from hgemm_desc_init and set what differs; what is 0 or
 * NULL adds nothing. With batch > 1, matrix number i of X begins stride_x elements after number i - 1; a stride
 * of 0 shares one A, B, C, bias or gate among all (D's must keep the outputs apart).
 *
 * All features combine, with every transpose and alignment. What the kernels of this version do not cover is
 * an HGEMM_STATUS_NOT_SUPPORTED, whose detail names what they lack (docs/contract.md lists it).
 *
 * Scalars. Where alpha_pointer is not NULL, alpha is the float there when the kernel runs, and `alpha` is not looked
 * at; so is beta, each by itself. Checks take such a scalar for one that is not 0. On the device one that is 0
 * reads no A and B, or no C, as on the host.
 *
 * Batches of pointers. a, b, c, d and, where they are not NULL, bias and gate are device arrays of `batch` device
 * pointers, aligned to 8 bytes; strides are not looked at. Every pointer is a multiple of `alignment` bytes, which
 * lets faster kernels run; 0 promises no more than that of its elements. None may be NULL that is accessed.
 *
 * Grouped batches. Group g, of 0 to batch - 1, multiplies the rows group_ends[g - 1] (0 for the first)
 * to group_ends[g] - 1 of op(A) by the matrix b + g * stride_b, with the bias bias + g * stride_bias, into the same
 * rows of D, with those of C and gate. (A bias per row is read at the row's number in D.) m is the number of rows of
 * op(A), C, D and gate over all groups, at least group_ends[batch - 1]: rows from there on are not written. group_ends
 * is in device memory and must not decrease; a group may be empty. stride_a, stride_c, stride_d and stride_gate are not
 * looked at.
 *
 * Indices. With gather_a row i of op(A) is row gather_a[i] of the stored one. With scatter_d row i of the product goes
 * to row scatter_d[i] of D, and C, gate and a bias per row are read at that row. Both have m indices, in device memory,
 * for all matrices of a batch. Indices that lead out of a matrix or name a row of D twice are the caller's to avoid.
 *
 * Groups, gather_a and scatter_d speak of rows of the mathematical matrices, in column-major layout, too.
 *
 * FP32. A and B of HGEMM_TYPE_F32 become two halves each on their way to the tensor cores, and a product of them three.
 * Sums are HGEMM_ACCUMULATE_F32. D is as exact as that of FP32 arithmetic, for all of FP32's range: docs/contract.md
 * has the bound. `accuracy` allows less, for two products or one; a call may get more than it asks for. Beside a float
 * the other operand may be HGEMM_TYPE_F16 or HGEMM_TYPE_BF16, which needs two products for FP32's accuracy. So does one
 * of HGEMM_TYPE_F32 that has HGEMM_FLAG_HALVES_IN_A or _B, whose elements have 11 significant bits at most; those that
 * have more may be rounded to them.
 *
 * BF16. A and B of HGEMM_TYPE_BF16 become halves on their way to the tensor cores, each operand multiplied by a power
 * of two, its scale, of which the sums are divided again. Sums are HGEMM_ACCUMULATE_F32. An element x is exact where
 * |x| * scale is at least 2^-17 and below 2^16; a smaller one is rounded, by 2^-25 / scale at most; a larger one
 * becomes infinity. Where scale_a is 0 and scale_a_pointer NULL, the call finds the scale, with the help of the
 * workspace: it brings the operand's largest finite magnitude, in all matrices of the batch, to between 2^12 and 2^16.
 * Then no finite element becomes infinite, and each of at least 2^-29 of the largest one is exact. For that it reads a
 * sample of the operand; if that misses numbers that matter, it reads all of it and computes D a second time
 * (docs/contract.md). A scale of the caller's is a power of two from 2^-112 to 2^126; in device memory, where no check
 * sees it, its exponent counts and is clamped to that. hgemm_find_scale finds the scale of weights once and for all.
 * By pointers, in groups and gathered, both scales are the caller's.
 *
 * Weights. Where `weights` is not NULL, b is what hgemm_pack_weights made of W, and B is its transpose: op_b is
 * HGEMM_OP_T, n and k are those of W, ldb and type_b are not looked at, b is a multiple of 16 bytes, and stride_b
 * counts bytes, a multiple of 16. Pointers of a batch are multiples of 16 bytes, too, whatever `alignment` promises of
 * A. The layout is row-major, op_a is HGEMM_OP_N, A is of halves or of bfloat16, and sums are HGEMM_ACCUMULATE_F32. The
 * struct is looked at during the call only.
 */
typedef struct hgemm_desc_t {
    size_t size; /* of this struct, by the caller's header, as hgemm_desc_init left it */
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
    /* Since 0.2. A descriptor of 0.1's size is one with zeros from here on. */
    hgemm_type_t type_a, type_b, type_c, type_d; /* A and B alike, F16, BF16 or F32, or one is F32 */
    hgemm_activation_t activation;
    unsigned flags; /* HGEMM_FLAG_* */
    hgemm_bias_t bias_mode;
    hgemm_type_t type_bias;
    const void *bias; /* NULL: none. n or m contiguous values */
    int64_t stride_bias;
    const void *gate; /* NULL: none. m x n in D's layout */
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

/* Makes the first `size` bytes a descriptor: all of it by the caller's header, which may be older than the library. For
 * callers from other languages; those of C and C++ call hgemm_desc_init. */
HGEMM_API void hgemm_desc_init_sized(hgemm_desc_t *desc, size_t size);

/* Row-major, no transpose, half accumulation, automatic kernel, batch 1, alpha 1, beta 0, all
 * else 0. NULL is allowed. */
static inline void hgemm_desc_init(hgemm_desc_t *desc)
{
    hgemm_desc_init_sized(desc, sizeof *desc);
}

HGEMM_API hgemm_status_t hgemm_run_desc(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Chooses the kernel that hgemm_run_desc would use and loads it, so that the call itself does neither: call it before a
 * graph capture or a timing. What is loaded stays. A handle remembers 256 choices, four of each hash. Where four
 * other problems took this one's place, the call chooses the same once more, which takes the host some
 * microseconds. After hgemm_load_tuning or hgemm_set_workspace the choice may be another. */
HGEMM_API hgemm_status_t hgemm_prepare(hgemm_handle_t handle, const hgemm_desc_t *desc);

/* Writes the scale of a matrix of HGEMM_TYPE_BF16 to device memory, for scale_a_pointer or scale_b_pointer: the power
 * of two that brings its largest finite magnitude to 2^15 or above, 2^126 at most. `lines` are its rows in memory
 * (row-major: rows; column-major: columns) of `width` elements, `ld` apart. Enqueued on the handle's stream, as a
 * product is. */
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

/* Kernels are numbered 1 .. hgemm_kernel_count(), in the order of the ladder. */
HGEMM_API int hgemm_kernel_count(void);
HGEMM_API hgemm_status_t hgemm_get_kernel_info(int kernel, hgemm_kernel_info_t *info);

/* The number of the kernel of that name, 0 where there is none. */
HGEMM_API int hgemm_find_kernel(const char *name);

/* ---- 8. What runs ------------------------------------------------------------------------- */

/*
 * Writes to `*kernel` the number of the kernel that would run on a T4 (40 multiprocessors), 0 where
 * the call has nothing to compute. It needs no device: it is a pure function of the descriptor, and checks that as
 * hgemm_run_desc does, except that pointers count by their alignment only, and by whether D is C. They may be NULL,
 * which is aligned, and may overlap. Another GPU may be given another kernel. A kernel for aligned operands may run on
 * copies of others, which a call that names it does not make.
 */
HGEMM_API hgemm_status_t hgemm_select(const hgemm_desc_t *desc, int *kernel);

/*
 * A plan is what a call would run: a kernel, into how many parts it cuts k, what it copies first. It can be looked at,
 * kept, written as text, and run in the place of what hgemm_run_desc would choose.
 *
 * A plan is for one problem on one kind of device: it runs calls with the same layout, transposes, accumulator, sizes,
 * leading dimensions, strides of A and B, flags and alignment of A and B (multiples of 16 bytes, of 8, or others),
 * whose epilogue is plain or is not as that of the plan's call. (Plain: halves in C and D, no bias, activation, gate,
 * scatter_d or scalars in device memory.) Pointers, scalars, ldc and ldd may be others.
 *
 * Threads and lifetime. A plan holds no device memory and does not change: it outlives the handle that it was made
 * with, serves any handle on a device of the same name, and several threads at a time, each with a handle of its own.
 *
 * Capture. hgemm_plan_create and hgemm_plan_from_text load what the plan runs, for their handle: hgemm_plan_run with
 * that handle then allocates nothing and can be captured into a graph. With another handle the first run loads.
 *
 * Workspace. A plan fits the workspace that the handle has when the plan is made, and says how much it needs
 * (workspace_bytes). A run with a handle that has less, and whose own cannot grow, is refused. So who brings the memory
 * makes the plan with the handle's own, asks, and calls hgemm_set_workspace with that much or more.
 */
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

/* The plan of what hgemm_run_desc would run. The descriptor is checked as there; pointers count by their alignment only
 * and by whether D is C, as in hgemm_select. `*plan` is written on success only. */
HGEMM_API hgemm_status_t hgemm_plan_create(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc);

HGEMM_API hgemm_status_t hgemm_plan_get_info(hgemm_plan_t plan, hgemm_plan_info_t *info);

/* Runs the call by the plan: hgemm_run_desc in all else. A plan of another device or problem, or that needs more
 * workspace, is an HGEMM_STATUS_INVALID_PLAN, and nothing is touched. */
HGEMM_API hgemm_status_t hgemm_plan_run(hgemm_plan_t plan, hgemm_handle_t handle, const hgemm_desc_t *desc);

/* They write a plan as one line of text, without the line's end, and make a plan of such a text for a call. The text
 * names the library's version, the device, the problem as a row-major one, and the kernel. A text of another version,
 * device or problem is an HGEMM_STATUS_INVALID_PLAN, and so is one that is no plan or cannot run the call. */
enum { HGEMM_PLAN_TEXT = 768 }; /* bytes, with the zero at the end */
HGEMM_API hgemm_status_t hgemm_plan_get_text(hgemm_plan_t plan, char text[HGEMM_PLAN_TEXT]);
HGEMM_API hgemm_status_t hgemm_plan_from_text(hgemm_plan_t *plan, hgemm_handle_t handle, const hgemm_desc_t *desc,
                                              const char *text);

/* NULL is allowed. */
HGEMM_API void hgemm_plan_destroy(hgemm_plan_t plan);

/*
 * Takes from a file of `hgemm tune` which plans are the fastest on this very device: they go before the choice of the
 * cost model, for the problems that it lists, in calls that name no kernel. NULL ends the use of a file. The
 * environment's HGEMM_TUNING names the file that hgemm_create loads.
 *
 * A file of another library, device or driver, or with a line that is not understood, is not used at all: this call
 * then is an HGEMM_STATUS_INVALID_TUNING, whose detail says why, and hgemm_create goes on without, and says why where
 * HGEMM_LOG asks for it. An entry that does not fit a handle's workspace gives way to the cost model. A file changes
 * what a call computes no more than another kernel's rounding does, and makes none fail. Calls that are
 * HGEMM_FLAG_BATCH_INVARIANT, gathered, grouped, of pointers, or scattered in column-major layout look at no file.
 * hgemm_plan_info_t.is_tuned tells whether one lists a call.
 */
HGEMM_API hgemm_status_t hgemm_load_tuning(hgemm_handle_t handle, const char *path);

/*
 * What the tuning file says of a call beside cuBLAS: `*ratio` is cuBLAS's time in times of the plan that the call would
 * run, above 1 where hgemm is the faster; 0 where the file has no such entry, or there is no file. A call with an
 * epilogue was compared with cuBLAS's product alone. The descriptor is checked as by hgemm_plan_create; nothing is
 * loaded or enqueued, and the handle's stream may be captured.
 */
HGEMM_API hgemm_status_t hgemm_get_cublas_ratio(hgemm_handle_t handle, const hgemm_desc_t *desc, double *ratio);

#ifdef __cplusplus
}
#endif
#endif
