/* SPDX-License-Identifier: MIT */
/* Version and statuses. */
#include "hgemm.h"

#include <stddef.h>

typedef struct status_words_t {
    const char *name;
    const char *words;
} status_words_t;

#define STATUS(status, words) [HGEMM_STATUS_##status] = {"HGEMM_STATUS_" #status, words}
static const status_words_t table[] = {
    STATUS(SUCCESS, "success"),
    STATUS(INVALID_HANDLE, "the handle, or a pointer that the call needs, is NULL"),
    STATUS(INVALID_DESC, "the descriptor is NULL or was not initialised: call hgemm_desc_init first"),
    STATUS(INVALID_LAYOUT, "layout is neither HGEMM_ROW_MAJOR nor HGEMM_COL_MAJOR"),
    STATUS(INVALID_OP, "op_a or op_b is neither HGEMM_OP_N nor HGEMM_OP_T"),
    STATUS(INVALID_ACCUMULATE, "accumulate is neither HGEMM_ACCUMULATE_F16 nor HGEMM_ACCUMULATE_F32"),
    STATUS(INVALID_KERNEL, "no kernel has this number: use HGEMM_KERNEL_AUTO or 1 to "
                           "hgemm_kernel_count()"),
    STATUS(INVALID_M, "m is negative"),
    STATUS(INVALID_N, "n is negative"),
    STATUS(INVALID_K, "k is negative"),
    STATUS(INVALID_BATCH, "batch is negative"),
    STATUS(INVALID_LDA, "lda is less than 1 or than a stored row (column-major: column) of A"),
    STATUS(INVALID_LDB, "ldb is less than 1 or than a stored row (column-major: column) of B"),
    STATUS(INVALID_LDC, "ldc is less than 1 or than a stored row (column-major: column) of C"),
    STATUS(INVALID_LDD, "ldd is less than 1 or than a stored row (column-major: column) of D"),
    STATUS(TOO_LARGE, "m, n or k is over 2^31 - 1, or the matrices of a batch span over 2^63 bytes"),
    STATUS(NULL_A, "A would be read and is NULL"),
    STATUS(NULL_B, "B would be read and is NULL"),
    STATUS(NULL_C, "C would be read and is NULL: pass a pointer or beta = 0"),
    STATUS(NULL_D, "D would be written and is NULL"),
    STATUS(MISALIGNED_A, "the address of A is odd: halves are 2 bytes"),
    STATUS(MISALIGNED_B, "the address of B is odd: halves are 2 bytes"),
    STATUS(MISALIGNED_C, "the address of C is odd: halves are 2 bytes"),
    STATUS(MISALIGNED_D, "the address of D is odd: halves are 2 bytes"),
    STATUS(OVERLAP, "D overlaps C without being C, or the D's of a batch overlap: keep them "
                    "apart or pass D as C, with one leading dimension and stride"),
    STATUS(NOT_SUPPORTED, "the kernel asked for does not cover this accumulation, transpose, alignment "
                          "or size: use HGEMM_KERNEL_AUTO"),
    STATUS(INVALID_DEVICE, "the device's name is not understood or it has no such ordinal: use "
                           "\"cuda\", \"cuda:N\" or \"t4emu\""),
    STATUS(NO_DRIVER, "the CUDA driver (libcuda.so.1) was not found or is too old: install a current "
                      "one, or use the emulated T4, \"t4emu\""),
    STATUS(NO_DEVICE, "the CUDA driver found no GPU: the emulated T4 is \"t4emu\""),
    STATUS(OLD_DEVICE, "the GPU is older than compute capability 7.5 (Turing)"),
    STATUS(OUT_OF_MEMORY, "host or device memory ran out"),
    STATUS(DEVICE_ERROR, "the device reported an error: see hgemm_error_detail"),
};

_Static_assert(sizeof table / sizeof table[0] == HGEMM_STATUS_COUNT_, "a status has no words");

static const status_words_t *find(hgemm_status_t status)
{
    static const status_words_t unknown = {"HGEMM_STATUS_UNKNOWN", "not a status of this library"};
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
