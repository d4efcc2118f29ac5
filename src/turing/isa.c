/* SPDX-License-Identifier: MIT */
#include "isa.h"

#include <string.h>

/* ---- the tables ----------------------------------------------------------------- */

#define E(raw, text, value) {raw, value, text},
#define FIELD(name, lo, width, member, values) static const isa_value_t values_##name[] = {values{0, 0, NULL}};
#define HEX(name, lo, width, member)
#include "isa.def"

#define FIELD(name, lo, width, member, values) {#name, lo, width, offsetof(turing_mods_t, member), values_##name},
#define HEX(name, lo, width, member) {#name, lo, width, offsetof(turing_mods_t, member), NULL},
static const isa_field_t fields[] = {
#include "isa.def"
};
#undef E

#define ROW(op, base, forms, format) {TURING_##op, base, forms, format},
static const isa_row_t rows[] = {
#include "isa.def"
};

static const isa_mem_t mem_kinds[] = {
    {'G', 32, 40, 24, 0, 90}, /* LDG, QSPC                              */
    {'g', 64, 40, 24, 0, 90}, /* STG, RED, ST with a uniform register   */
    {'h', 64, 40, 24, 0, 70}, /* ATOM, ATOMG                            */
    {'c', 0, 40, 24, 0, 90},  /* compare and swap: no uniform register  */
    {'L', 32, 32, 32, 0, 90}, /* LD: 24 bits from 40 beside a uniform register */
    {'l', 0, 32, 32, 0, 90},  /* ST, CCTL                               */
    {'s', 32, 40, 24, 78, 0}, /* LDS                                    */
    {'S', 64, 40, 24, 78, 0}, /* STS, ATOMS                             */
    {'k', 32, 40, 24, 0, 0},  /* LDL, LDSM                              */
    {'K', 64, 40, 24, 0, 0},  /* STL                                    */
};

size_t turing_isa_rows(const isa_row_t **out)
{
    *out = rows;
    return sizeof rows / sizeof *rows;
}

const isa_mem_t *turing_isa_mem(char kind)
{
    for (size_t i = 0; i < sizeof mem_kinds / sizeof *mem_kinds; i++)
        if (mem_kinds[i].kind == kind)
            return &mem_kinds[i];
    return NULL;
}

const char *turing_isa_state_name(unsigned state)
{
    static const char *const names[] = {
        "THREAD_STATE_ENUM.0",
        "THREAD_STATE_ENUM.1",
        "THREAD_STATE_ENUM.2",
        "THREAD_STATE_ENUM.3",
        "THREAD_STATE_ENUM.4",
        "TRAP_RETURN_PC.LO",
        "TRAP_RETURN_PC.HI",
        "TRAP_RETURN_MASK",
        "MEXITED",
        "MKILL",
        "MACTIVE",
        "MATEXIT",
        "OPT_STACK",
        "API_CALL_DEPTH",
        "ATEXIT_PC.LO",
        "ATEXIT_PC.HI",
    };
    return state >= 16 && state < 32 ? names[state - 16] : NULL;
}

uint64_t turing_isa_bits(const uint64_t raw[2], unsigned at, unsigned width)
{
    uint64_t v = at >= 64 ? raw[1] >> (at - 64) : raw[0] >> at;
    if (at < 64 && at + width > 64)
        v |= raw[1] << (64 - at);
    return width >= 64 ? v : v & ((UINT64_C(1) << width) - 1);
}

bool turing_isa_row_accepts(const isa_row_t *row, uint64_t lo, uint64_t hi)
{
    if ((lo & 0x1ff) != row->base)
        return false;
    char form = (char)('0' + (lo >> 9 & 7));
    bool uniform = hi >> (ISA_UNIFORM_BIT - 64) & 1;
    for (const char *f = row->forms; *f; f++)
        if (*f == form && (f[1] == 'u') == uniform)
            return true;
    return false;
}

/* The operand forms, bits 9-11: which of the sources b (second) and c (third)
 * comes from bits 32-63 as something other than a register; the other one is
 * then the register at bit 64. */
isa_place_t turing_isa_place(const isa_element_t *e, unsigned form)
{
    static const uint8_t kinds[8] = {
        [1] = ISA_AT_REG,   [2] = ISA_AT_IMM,  [3] = ISA_AT_CONST, [4] = ISA_AT_IMM,
        [5] = ISA_AT_CONST, [6] = ISA_AT_UREG, [7] = ISA_AT_UREG,
    };
    isa_place_t p = {ISA_AT_REG, 32};
    bool third = form == 2 || form == 3 || form == 7;
    switch (e->place) {
    case 'a': p.lo = 24; break;
    case 'r': p.lo = e->lo; break;
    case 'b':
        if (third)
            p.lo = 64;
        else
            p.what = kinds[form];
        break;
    case 'c':
        if (third)
            p.what = kinds[form];
        else
            p.lo = 64;
        break;
    default: /* e, g */ p.what = kinds[form]; break;
    }
    if (e->uniform && p.what == ISA_AT_REG)
        p.what = ISA_AT_UREG;
    return p;
}

/* ---- the format parser ------------------------------------------------------------ */

static unsigned number(const char **s)
{
    unsigned n = 0;
    while (**s >= '0' && **s <= '9')
        n = 10 * n + (unsigned)(*(*s)++ - '0');
    return n;
}

static void operand(isa_element_t *e, const char *s, const char *end)
{
    static const struct {
        const char *name;
        char place;
    } named[] = {{"set", ISA_SET}, {"lut", ISA_LUT}, {"alias", ISA_ALIAS}, {"swz", ISA_SWZ}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if ((size_t)(end - s) == strlen(named[i].name) && !strncmp(s, named[i].name, (size_t)(end - s))) {
            e->place = named[i].place;
            return;
        }

    if (*s == 'u') {
        e->uniform = true;
        s++;
    }
    e->place = *s++;
    if (e->place == 'm')
        e->mem = *s++;
    else if (strchr("rxBSpqntoTA", e->place)) {
        e->lo = (uint8_t)number(&s);
        if (*s == ':') {
            s++;
            e->width = (uint8_t)number(&s);
        }
    }
    for (; s < end; s++)
        switch (*s) {
        case '-': e->neg = true; break;
        case '|': e->abs = true; break;
        case '~': e->inv = true; break;
        case 'h': e->half = true; break;
        case 's': e->sub = true; break;
        case '?': e->hide = true; break;
        case 'U': e->either = true; break;
        case '>': e->is_dst = true; break;
        case 'i':
        case 'x':
        case 'f':
        case 'F':
        case 'H': e->imm = *s; break;
        default: e->words = *s; break;
        }
}

isa_element_t turing_isa_next(const char **format)
{
    isa_element_t e = {.kind = ISA_END};
    const char *s = *format;
    if (!*s)
        return e;
    if (*s != '{') {
        e.kind = ISA_TEXT;
        e.text = s;
        e.length = strcspn(s, "{");
        *format = s + e.length;
        return e;
    }
    const char *end = strchr(++s, '}');
    *format = end + 1;
    if (*s == '=' || *s == '~') {
        e.kind = *s++ == '=' ? ISA_FIXED : ISA_RESERVED;
        e.lo = (uint8_t)number(&s);
        s++;
        e.width = (uint8_t)number(&s);
        if (e.kind == ISA_FIXED) {
            s++;
            e.value = (uint16_t)number(&s);
        }
    } else if (*s == '%') {
        e.kind = ISA_OPERAND;
        operand(&e, s + 1, end);
    } else {
        e.kind = ISA_FIELD;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strlen(fields[i].name) == (size_t)(end - s) && !strncmp(fields[i].name, s, (size_t)(end - s)))
                e.field = &fields[i];
    }
    return e;
}
