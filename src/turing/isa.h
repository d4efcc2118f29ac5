/* SPDX-License-Identifier: MIT */
/*
 * isa.h - the instruction table of isa.def as data, and the one parser of its
 * formats.  Internal to decode.c and disasm.c.
 */
#ifndef TURING_ISA_H
#define TURING_ISA_H

#include "insn.h"

typedef struct isa_value {
    uint8_t raw;
    uint8_t value;
    const char *text; /* NULL ends the list */
} isa_value_t;

typedef struct isa_field {
    const char *name;
    uint8_t lo, width;
    uint8_t member;            /* byte offset in turing_mods_t */
    const isa_value_t *values; /* NULL: a number, printed in hex */
} isa_field_t;

typedef struct isa_row {
    uint8_t op;
    uint16_t base;
    const char *forms;
    const char *format;
} isa_row_t;

enum { ISA_UNIFORM_BIT = 91 };

/* One piece of a format. */
typedef enum isa_kind {
    ISA_END,
    ISA_TEXT,     /* `length` characters at `text`  */
    ISA_FIELD,    /* `field`                        */
    ISA_FIXED,    /* bits lo..lo+width-1 == value   */
    ISA_RESERVED, /* unused predicate slot          */
    ISA_OPERAND
} isa_kind_t;

typedef struct isa_element {
    isa_kind_t kind;
    const char *text;
    size_t length;
    const isa_field_t *field;
    uint8_t lo, width;
    uint16_t value;
    /* operands */
    char place; /* letter of isa.def, or ISA_SET and its like */
    char mem;   /* kind of address                    */
    char words; /* count letter, 0: one register      */
    char imm;   /* how an immediate prints            */
    bool uniform, neg, abs, inv, half, sub, hide, either, is_dst;
} isa_element_t;

/* Places that have a name instead of a letter. */
enum { ISA_SET = 1, ISA_LUT, ISA_ALIAS, ISA_SWZ };

/* Where an operand a, b, c, e or r lies. */
typedef struct isa_place {
    enum { ISA_AT_REG, ISA_AT_UREG, ISA_AT_IMM, ISA_AT_CONST } what;
    uint8_t lo; /* 24, 32 or 64 */
} isa_place_t;

/* Address fields of a memory kind; 0 where there is none. */
typedef struct isa_mem {
    char kind;
    uint8_t uniform_lo; /* uniform register, when bit 91 is set */
    uint8_t offset_lo;  /* of a `width`-bit signed offset       */
    uint8_t width;
    uint8_t scale_lo;
    uint8_t wide_lo; /* beside a uniform register: is the base a pair? 0: no 64-bit addresses (.E) */
} isa_mem_t;

size_t turing_isa_rows(const isa_row_t **rows);

/* Reads one piece at *format and advances; ISA_END at the end. */
isa_element_t turing_isa_next(const char **format);

isa_place_t turing_isa_place(const isa_element_t *e, unsigned form);

const isa_mem_t *turing_isa_mem(char kind);

/* Does the row accept bits 0-11 and 91? */
bool turing_isa_row_accepts(const isa_row_t *row, uint64_t lo, uint64_t hi);

/* `width` (at most 64) bits of the instruction from bit `at`. */
uint64_t turing_isa_bits(const uint64_t raw[2], unsigned at, unsigned width);

const char *turing_isa_state_name(unsigned state); /* BMOV states 16..31, or NULL */

#endif
