/* SPDX-License-Identifier: MIT */
/* Version and statuses. */
#include "hgemm.h"

#include <stddef.h>

typedef struct status_words_t {
    const char *name;
    const char *words;
} status_words_t;

#ifdef HGEMM_EMULATOR
#define OR_EMULATOR ", or use the emulated T4, \"t4emu\""
#define OR_NAME " or \"t4emu\""
#else
#define OR_EMULATOR ""
#define OR_NAME ""
#endif

/* Whole sentences, for the words of hgemm_error_detail are sentences that follow. */
#define STATUS(status, words) [HGEMM_STATUS_##status] = {"HGEMM_STATUS_" #status, words}
#define INVALID_LD(letter, name) \
    STATUS(INVALID_LD##letter, "ld" name " is less than a stored row (column-major: column) has elements.")
#define NOT_A_MULTIPLE(operand, name) \
    STATUS(MISALIGNED_##operand, "The address of " name " is not a multiple of its element's bytes.")
static const status_words_t table[] = {
    STATUS(SUCCESS, "Success."),
    STATUS(INVALID_HANDLE, "The handle, or a pointer that the call needs, is NULL."),
    STATUS(INVALID_DESC, "The descriptor is NULL or was not initialised: call hgemm_desc_init first."),
    STATUS(INVALID_LAYOUT, "The layout is neither HGEMM_ROW_MAJOR nor HGEMM_COL_MAJOR."),
    STATUS(INVALID_OP, "op_a or op_b is neither HGEMM_OP_N nor HGEMM_OP_T."),
    STATUS(INVALID_ACCUMULATE, "accumulate is neither HGEMM_ACCUMULATE_F16 nor HGEMM_ACCUMULATE_F32."),
    STATUS(INVALID_KERNEL, "No kernel has this number: use HGEMM_KERNEL_AUTO or 1 to hgemm_kernel_count()."),
    STATUS(INVALID_M, "m is negative."),
    STATUS(INVALID_N, "n is negative."),
    STATUS(INVALID_K, "k is negative."),
    STATUS(INVALID_BATCH, "batch is negative."),
    INVALID_LD(A, "a"),
    INVALID_LD(B, "b"),
    INVALID_LD(C, "c"),
    INVALID_LD(D, "d"),
    STATUS(TOO_LARGE, "m, n, k or the number of groups is over 2^31 - 1, or an operand spans over 2^62 bytes."),
    STATUS(NULL_A, "A would be read and is NULL."),
    STATUS(NULL_B, "B would be read and is NULL."),
    STATUS(NULL_C, "C would be read and is NULL: pass a pointer, or 0 for beta."),
    STATUS(NULL_D, "D would be written and is NULL."),
    NOT_A_MULTIPLE(A, "A"),
    NOT_A_MULTIPLE(B, "B"),
    NOT_A_MULTIPLE(C, "C"),
    NOT_A_MULTIPLE(D, "D"),
    STATUS(OVERLAP,
           "D overlaps what the call reads without being C, or the D's of a batch overlap: keep them apart, or "
           "pass D as C with one type, leading dimension and stride."),
    STATUS(NOT_SUPPORTED, "No kernel, or not the one asked for, covers this call."),
    STATUS(INVALID_DEVICE, "The device's name is not understood, or it has no such ordinal: use \"cuda\", "
                           "\"cuda:N\"" OR_NAME "."),
    STATUS(NO_DRIVER,
           "The CUDA driver (libcuda.so.1) was not found or is too old: install a current one" OR_EMULATOR "."),
    STATUS(NO_DEVICE, "The CUDA driver found no GPU: check nvidia-smi" OR_EMULATOR "."),
    STATUS(OLD_DEVICE, "The GPU is older than compute capability 7.5 (Turing)."),
    STATUS(OUT_OF_MEMORY, "Host or device memory ran out."),
    STATUS(DEVICE_ERROR, "The device reported an error."),
    STATUS(INVALID_TYPE, "A type is not an hgemm_type_t that its operand can have."),
    STATUS(INVALID_ACTIVATION, "The activation is not an hgemm_activation_t."),
    STATUS(INVALID_FLAGS, "flags has bits that are none of HGEMM_FLAG_*."),
    STATUS(INVALID_BIAS, "bias_mode is neither HGEMM_BIAS_PER_COLUMN nor HGEMM_BIAS_PER_ROW."),
    STATUS(INVALID_BATCH_MODE, "batch_mode is not an hgemm_batch_mode_t."),
    STATUS(INVALID_ALIGNMENT, "alignment is neither 0 nor a power of two."),
    STATUS(INVALID_INDEX, "index_type is neither HGEMM_INDEX_I32 nor HGEMM_INDEX_I64."),
    INVALID_LD(GATE, "gate"),
    STATUS(NULL_GROUP_ENDS, "The batch is grouped and group_ends is NULL."),
    NOT_A_MULTIPLE(BIAS, "the bias"),
    NOT_A_MULTIPLE(GATE, "the gate"),
    NOT_A_MULTIPLE(SCALAR, "a scalar or a scale"),
    NOT_A_MULTIPLE(INDEX, "group_ends, gather_a or scatter_d"),
    STATUS(MISALIGNED_WORKSPACE, "The workspace's address is not a multiple of 128."),
    STATUS(INVALID_PLAN, "The plan is not one for this library, device and call: make it anew."),
    STATUS(INVALID_TUNING, "The tuning file cannot be used: what was loaded before stays."),
    STATUS(INVALID_SCALE, "A scale is neither 0 nor a power of two from 2^-112 to 2^126."),
    STATUS(INVALID_WEIGHTS, "The weights' description was not initialised, or a field of it cannot be."),
    STATUS(INVALID_ACCURACY,
           "accuracy is none of HGEMM_ACCURACY_F32, HGEMM_ACCURACY_16_BITS and HGEMM_ACCURACY_11_BITS."),
};

_Static_assert(sizeof table / sizeof table[0] == HGEMM_STATUS_COUNT_, "a status has no words");

static const status_words_t *find(hgemm_status_t status)
{
    static const status_words_t unknown = {"HGEMM_STATUS_UNKNOWN", "Not a status of this library."};
    size_t index = (size_t)status;
    return index < HGEMM_STATUS_COUNT_ && table[index].name ? &table[index] : &unknown;
}

const char *hgemm_status_name(hgemm_status_t status)
{
    return find(status)->name;
}

const char *hgemm_status_string(hgemm_status_t status)
{
    return find(status)->words;
}

int hgemm_version(void)
{
    return HGEMM_VERSION_MAJOR * 10000 + HGEMM_VERSION_MINOR * 100 + HGEMM_VERSION_PATCH;
}
