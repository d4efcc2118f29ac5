/* SPDX-License-Identifier: MIT */
/*
 * turing.h - an sm_75 machine on the CPU: modules, kernels, disassembly.
 *
 * The library holds no global state and prints nothing.  A module is
 * immutable once opened, so any number of threads may use it at a time.
 * What fails says why in the turing_error_t that the caller passed (or NULL).
 */
#ifndef TURING_TURING_H
#define TURING_TURING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "insn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ----------------------------------------------------------------- */

typedef struct turing_error {
    char text[1024]; /* always terminated */
} turing_error_t;

/* Formats into err->text if err is not NULL; always returns false. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool turing_fail(turing_error_t *err, const char *format, ...);

/* ---- one instruction ---------------------------------------------------------- */

/* Decodes the instruction at code address `addr`.  False, with the address and
 * the offending bits in `err`, when any of the 128 bits is not understood. */
bool turing_decode(turing_insn_t *insn, uint64_t lo, uint64_t hi, uint32_t addr, turing_error_t *err);

enum { TURING_TEXT_MAX = 256 };

/* The text that nvdisasm prints, guard included, without the final " ;".
 * Returns its length; `text` is always terminated. */
size_t turing_disasm(const turing_insn_t *insn, char text[TURING_TEXT_MAX]);

/* The form of an instruction: the same text with the kinds of its operands for what they are (R, UR, P, UP, B, an
 * immediate i, a constant c), without guard and reuse. "IADD3.X R, R, ~c, R, P, P" is one. */
size_t turing_form(const turing_insn_t *insn, char text[TURING_TEXT_MAX]);

/* Was an instruction of this form executed in a test that compares results? forms.def lists them. */
bool turing_form_met(const char *form);

/* The control word, "wait:read:write:yield:stall":
 *   --2---:-:0:-:02   wait for scoreboard 2; release 0 when written; stall 2
 * Column n of the first field is scoreboard n; Y stands where the warp yields. */
size_t turing_disasm_control(const turing_insn_t *insn, char text[TURING_TEXT_MAX]);

/* ---- modules and kernels ------------------------------------------------------- */

typedef struct turing_module turing_module_t;

typedef struct turing_param {
    uint32_t offset; /* in the parameter block, bytes */
    uint32_t size;
} turing_param_t;

typedef struct turing_line {
    const char *file; /* NULL where the cubin carries no line */
    uint32_t line;
} turing_line_t;

enum { TURING_BANKS = 8, TURING_BANK_BYTES = 65536 };
enum { TURING_MOST_LOCAL = 512 << 10 }; /* bytes of a thread: CUDA C++ Programming Guide, "Technical Specifications" */

typedef struct turing_bank {
    const uint8_t *data; /* NULL: the kernel has no such bank */
    uint32_t size;
    uint64_t address; /* of the module-scope variable that it is, whose memory a launch reads if mapped; else 0 */
} turing_bank_t;

typedef struct turing_kernel {
    const char *name;
    const char *unusable; /* NULL, or why the code cannot be executed: an
                           * unknown instruction, an unresolved address. `insns`
                           * is NULL then; the other fields are still true.   */
    uint32_t registers;
    uint32_t shared_bytes; /* static                                  */
    uint32_t local_bytes;  /* per thread, stack included              */
    uint32_t barriers;     /* named barriers used                     */
    uint32_t max_threads;  /* 0: not stated                           */
    uint32_t param_base;   /* offset of the parameters in bank 0      */
    uint32_t param_bytes;
    uint32_t n_params;
    const turing_param_t *params;     /* in order of declaration               */
    turing_bank_t bank[TURING_BANKS]; /* images; bank 0 holds driver values and parameters */
    uint32_t code_bytes;
    const uint8_t *code; /* 16 bytes an instruction, relocated      */
    uint32_t n_insns;
    uint32_t n_own;             /* of these, the kernel's own: functions of its file stand behind them, called or not */
    const turing_insn_t *insns; /* decoded, address order                  */
    const turing_line_t *lines; /* one per instruction, or NULL            */
} turing_kernel_t;

/* Module-scope __device__ and __constant__ variables, by section. The code holds their
 * addresses as literals, so whoever launches must map `size` bytes at `address`, starting
 * as `init`: turing_module_map() of launch.h does. */
typedef struct turing_global {
    uint64_t address;
    uint64_t size;
    const uint8_t *init; /* NULL: all zero */
} turing_global_t;

/* One such variable by its name in the cubin, which for C++ is mangled. */
typedef struct turing_symbol {
    const char *name;
    uint64_t address, size;
    bool managed; /* __managed__: the host reads and writes it at its address, too */
} turing_symbol_t;

/* Where the variables of a module stand, unless its opener says otherwise: far from any host address, and
 * from device addresses of a real driver. */
#define TURING_GLOBAL_BASE UINT64_C(0x600000000000)

/* Opens an sm_75 cubin, or the sm_75 cubins inside a fatbin (plain, LZ4 or zstd),
 * from memory. The bytes are copied. NULL and `err` when it is anything else, or
 * damaged. Modules that are in use together need a base of their own each, beyond the
 * turing_module_end() of the one before. */
turing_module_t *turing_module_open(const void *data, size_t size, turing_error_t *err);
turing_module_t *turing_module_open_at(const void *data, size_t size, uint64_t base, turing_error_t *err);
turing_module_t *turing_module_open_file(const char *path, turing_error_t *err);
void turing_module_close(turing_module_t *module);

size_t turing_module_kernel_count(const turing_module_t *module);

/* By position, in file order; NULL past the end. */
const turing_kernel_t *turing_module_kernel(const turing_module_t *module, size_t index);

/* By exact name; NULL if there is none. */
const turing_kernel_t *turing_module_find(const turing_module_t *module, const char *name);

/* These are NULL past the end. */
const turing_global_t *turing_module_global(const turing_module_t *module, size_t index);
const turing_symbol_t *turing_module_symbol(const turing_module_t *module, size_t index);
const turing_symbol_t *turing_module_find_symbol(const turing_module_t *module, const char *name);
uint64_t turing_module_end(const turing_module_t *module);

#ifdef __cplusplus
}
#endif

/* Launching, checking and counting: launch.h. */
#endif
