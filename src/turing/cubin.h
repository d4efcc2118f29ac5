/* SPDX-License-Identifier: MIT */
/* What cubin.c, cubin_lines.c and module.c know of a module that is being read. */
#ifndef TURING_CUBIN_H
#define TURING_CUBIN_H

#include "turing.h"

#include <elf.h>

enum {
    EMU_SM = 75,             /* whose code modules have */
    EMU_MOST_BYTES = 1 << 28 /* of what a file claims beyond its own size */
};

/* A stretch of bytes; reading past the end gives zeros and sets `bad`. */
typedef struct span {
    const uint8_t *p, *end;
    bool bad;
} span_t;

uint64_t emu_get(span_t *s, unsigned bytes); /* little-endian */
span_t emu_sub(span_t *s, uint64_t bytes);

struct turing_module {
    turing_kernel_t *kernels;
    size_t n_kernels;
    turing_global_t *globals;
    size_t n_globals;
    turing_symbol_t *symbols;
    size_t n_symbols;
    uint64_t base, next_global;
    void **owned; /* every other allocation of the module */
    size_t n_owned;
};

/* Zeroed memory that the module owns; NULL where there is none. */
void *emu_own(turing_module_t *m, size_t count, size_t size);
char *emu_own_text(turing_module_t *m, const char *a, const char *b, const char *c); /* one after the other */
bool emu_out_of_memory(turing_error_t *err);

typedef struct section {
    const char *name;
    uint32_t name_at, type, link, info;
    uint64_t flags, size;
    const uint8_t *data; /* NULL: no bits in the file */
    uint64_t address;    /* .nv.global*, .nv.constant3 */
    uint32_t code_base;  /* of functions outside kernels: where they stand behind each kernel */
    uint8_t *patched;    /* writable copy of data, made for relocations */
    bool relocated;
} section_t;

typedef struct symbol {
    const char *name;
    uint64_t value, size;
    uint32_t section;
    uint8_t type, other;
} symbol_t;

typedef struct elf {
    turing_module_t *module;
    const uint8_t *image;
    size_t size;
    section_t *sections;
    size_t n_sections;
    symbol_t *symbols;
    size_t n_symbols;
    uint32_t functions, code_end; /* where functions outside kernels begin and end; 0: there are none */
    turing_error_t *err;
} elf_t;

typedef struct reloc {
    uint64_t offset, addend;
    uint32_t type, symbol;
} reloc_t;

span_t emu_bytes_of(const section_t *s);
section_t *emu_find_section(elf_t *e, const char *prefix, const char *name);
reloc_t emu_next_reloc(span_t *s, bool has_addends);

/* Gives the kernel its instructions' source lines, where there are any. */
bool emu_read_lines(elf_t *e, turing_kernel_t *k, const symbol_t *kernel);

/* Adds what an ELF image has to the module. */
bool emu_read_cubin(turing_module_t *m, const uint8_t *data, size_t size, turing_error_t *err);

#endif
