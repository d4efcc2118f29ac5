/* SPDX-License-Identifier: MIT */
/*
 * cubin.c - a cubin to kernels.
 *
 * A cubin is an ELF file (machine 190) with, for a kernel k:
 *   .text.k           code; sh_info bits 24-31 hold the register count
 *   .nv.info.k        attributes: parameters, thread limits, barriers
 *   .nv.info          attributes of all functions, by symbol: registers, stack
 *   .nv.constantN.k   constant bank N (0: driver values and parameters)
 *   .nv.constantN     constant bank N of every kernel (3 user, 4 addresses)
 *   .nv.shared.k      static shared memory, its size only
 *   .nv.global[.init] module-scope variables
 *   .nv.constant3     also __constant__ variables, which the host may set
 *   .debug_line       source lines, DWARF 2 to 4
 *
 * Input is not trusted: every read is inside a span that was checked against the
 * image, every count is bounded by the bytes that back it.
 */
#include "cubin.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EM_NVIDIA = 190,
    ABI_CUDA_11 = 0x33, /* EI_OSABI: architecture in bits 0-7 of e_flags  */
    ABI_CUDA_13 = 0x41, /* architecture in bits 8-15                      */
    ENTRY_POINT = 0x10, /* st_other: a kernel                             */
    MANAGED = 0x04,     /* st_other: a variable of managed memory         */
    DEFAULT_PARAM_BASE = 0x160,
    MAX_SHARED = 65536
};

/* Relocations: 64-bit address in data; low and high half in a 32-bit immediate; the target of a call. */
enum {
    RELOC_64 = 0x02,
    RELOC_LO = 0x38,
    RELOC_HI = 0x39,
    RELOC_CALL = 0x3a,
    RELOC_KERNEL_LO = 0x3e,
    RELOC_KERNEL_HI = 0x3f
};

enum { PAGE = 4096 };
#define NOWHERE UINT64_C(0x7ffff0000000) /* no code has this address */

uint64_t emu_get(span_t *s, unsigned bytes)
{
    uint64_t v = 0;
    if ((size_t)(s->end - s->p) < bytes) {
        s->bad = true;
        s->p = s->end;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)s->p[i] << (8 * i);
    s->p += bytes;
    return v;
}

span_t emu_sub(span_t *s, uint64_t bytes)
{
    span_t r = {s->p, s->p, false};
    if (bytes > (uint64_t)(s->end - s->p))
        s->bad = true, bytes = (uint64_t)(s->end - s->p);
    r.end = s->p += bytes;
    return r;
}

/* ---- sections and symbols --------------------------------------------------------------- */

span_t emu_bytes_of(const section_t *s)
{
    const uint8_t *data = s->patched ? s->patched : s->data;
    return (span_t){data, data ? data + s->size : data, false};
}

section_t *emu_find_section(elf_t *e, const char *prefix, const char *name)
{
    size_t n = strlen(prefix);
    for (size_t i = 1; i < e->n_sections; i++)
        if (!strncmp(e->sections[i].name, prefix, n) && !strcmp(e->sections[i].name + n, name))
            return &e->sections[i];
    return NULL;
}

/* The string at that offset of a string table; NULL where there is none. */
static const char *string(const elf_t *e, size_t table, uint64_t offset)
{
    const section_t *t = table < e->n_sections ? &e->sections[table] : NULL;
    if (!t || t->type != SHT_STRTAB || !t->data || offset >= t->size || !memchr(t->data + offset, 0, t->size - offset))
        return NULL;
    return (const char *)t->data + offset;
}

static bool read_sections(elf_t *e, const Elf64_Ehdr *header)
{
    const size_t count = header->e_shnum;
    if (!count || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > e->size ||
        count > (e->size - header->e_shoff) / sizeof(Elf64_Shdr))
        return turing_fail(e->err, "damaged ELF section table");
    if (!(e->sections = calloc(count, sizeof *e->sections)))
        return emu_out_of_memory(e->err);
    e->n_sections = count;
    for (size_t i = 1; i < count; i++) {
        Elf64_Shdr h;
        memcpy(&h, e->image + header->e_shoff + i * sizeof h, sizeof h);
        e->sections[i] = (section_t){.name_at = h.sh_name,
                                     .type = h.sh_type,
                                     .link = h.sh_link,
                                     .info = h.sh_info,
                                     .flags = h.sh_flags,
                                     .size = h.sh_size};
        if (h.sh_type == SHT_NOBITS)
            continue;
        if (h.sh_offset > e->size || h.sh_size > e->size - h.sh_offset)
            return turing_fail(e->err, "ELF section %zu lies outside the file", i);
        e->sections[i].data = e->image + h.sh_offset;
    }
    for (size_t i = 1; i < count; i++) {
        section_t *s = &e->sections[i];
        if (!(s->name = string(e, header->e_shstrndx, s->name_at)))
            return turing_fail(e->err, "damaged name of ELF section %zu", i);
        if (s->type == SHT_NOBITS && s->size > EMU_MOST_BYTES)
            return turing_fail(e->err, "section %s claims %llu bytes", s->name, (unsigned long long)s->size);
    }
    return true;
}

static bool read_symbols(elf_t *e)
{
    section_t *table = NULL;
    size_t index = 0;
    for (size_t i = 1; i < e->n_sections && !table; i++)
        if (e->sections[i].type == SHT_SYMTAB)
            table = &e->sections[index = i];
    if (!table || !table->data)
        return turing_fail(e->err, "the cubin has no symbol table");
    if (table->link >= e->n_sections || e->sections[table->link].type != SHT_STRTAB)
        return turing_fail(e->err, "the symbol table has no string table");
    e->n_symbols = (size_t)(table->size / 24);
    if (!(e->symbols = calloc(e->n_symbols + 1, sizeof *e->symbols)))
        return emu_out_of_memory(e->err);
    span_t s = emu_bytes_of(table);
    for (size_t i = 0; i < e->n_symbols; i++) {
        symbol_t *y = &e->symbols[i];
        uint64_t name = emu_get(&s, 4);
        y->type = (uint8_t)(emu_get(&s, 1) & 15);
        y->other = (uint8_t)emu_get(&s, 1);
        y->section = (uint32_t)emu_get(&s, 2);
        y->value = emu_get(&s, 8);
        y->size = emu_get(&s, 8);
        if (!(y->name = string(e, table->link, name)))
            return turing_fail(e->err, "damaged name of symbol %zu", i);
        if (y->section >= e->n_sections)
            y->section = 0; /* undefined, absolute, common */
    }
    return true;
}

/* ---- module-scope variables and relocations -------------------------------------------- */

static bool is_module_data(const section_t *s)
{
    return s->size &&
           (!strcmp(s->name, ".nv.global") || !strcmp(s->name, ".nv.global.init") || !strcmp(s->name, ".nv.constant3"));
}

static bool place_globals(elf_t *e)
{
    turing_module_t *m = e->module;
    for (size_t i = 1; i < e->n_sections; i++) {
        section_t *s = &e->sections[i];
        if (!is_module_data(s))
            continue;
        turing_global_t *list = realloc(m->globals, (m->n_globals + 1) * sizeof *list);
        if (!list)
            return emu_out_of_memory(e->err);
        m->globals = list;
        s->address = m->next_global;
        m->next_global += (s->size + PAGE - 1) / PAGE * PAGE + PAGE; /* with a hole between */
        m->globals[m->n_globals++] = (turing_global_t){s->address, s->size, NULL};
        if (s->data) {
            if (!(s->patched = emu_own(m, s->size, 1)))
                return emu_out_of_memory(e->err);
            memcpy(s->patched, s->data, s->size);
            m->globals[m->n_globals - 1].init = s->patched;
        }
    }
    for (size_t i = 1; i < e->n_symbols; i++) {
        const symbol_t *y = &e->symbols[i];
        const section_t *s = &e->sections[y->section];
        if (y->type != STT_OBJECT || !y->section || !s->address || y->value > s->size || y->size > s->size - y->value)
            continue;
        turing_symbol_t *list = realloc(m->symbols, (m->n_symbols + 1) * sizeof *list);
        if (!list)
            return emu_out_of_memory(e->err);
        m->symbols = list;
        char *name = emu_own_text(m, y->name, "", "");
        if (!name)
            return emu_out_of_memory(e->err);
        m->symbols[m->n_symbols++] =
            (turing_symbol_t){name, s->address + y->value, y->size, .managed = y->other & MANAGED};
    }
    return true;
}

static bool is_rela(const section_t *s)
{
    return s->type == SHT_RELA;
}

reloc_t emu_next_reloc(span_t *s, bool has_addends)
{
    reloc_t r = {.offset = emu_get(s, 8)};
    r.type = (uint32_t)emu_get(s, 4);
    r.symbol = (uint32_t)emu_get(s, 4);
    r.addend = has_addends ? emu_get(s, 8) : 0;
    return r;
}

/* Code addresses are relative to the start of their kernel; so is a symbol of the
 * kernel's own section. Functions of the device's runtime stand at addresses that no
 * kernel has. */
static bool symbol_address(const elf_t *e, uint32_t index, const section_t *code, uint64_t *address)
{
    if (index >= e->n_symbols)
        return false;
    const symbol_t *y = &e->symbols[index];
    if (!y->section)
        return emu_system_address(y->name, address);
    const section_t *s = &e->sections[y->section];
    *address = y->value + s->address + s->code_base;
    if (s->code_base)
        return true;
    return s->address || s == code;
}

/* The absolute target of a CALL, in bits 34 to 80 in units of four bytes. */
static void set_call(uint8_t *at, uint64_t target)
{
    enum { FIRST = 34, BITS = 47 };
    for (unsigned i = 0; i < BITS; i++) {
        const unsigned bit = FIRST + i;
        at[bit / 8] = (uint8_t)((at[bit / 8] & ~(1u << bit % 8)) | (unsigned)(target >> 2 >> i & 1) << bit % 8);
    }
}

/* Applies the relocations of one section to its writable copy. What cannot be
 * resolved (a function of the driver, say) is left as it is in data; in code it
 * makes the kernel unusable, and `why` says so. */
static bool relocate(elf_t *e, section_t *target, char *why, size_t why_size)
{
    if (target->relocated)
        return true;
    target->relocated = true;
    size_t index = (size_t)(target - e->sections);
    bool is_code = target->flags & SHF_EXECINSTR;
    for (size_t i = 1; i < e->n_sections; i++) {
        const section_t *table = &e->sections[i];
        if ((table->type != SHT_REL && table->type != SHT_RELA) || table->info != index || !table->data)
            continue;
        unsigned entry = is_rela(table) ? 24 : 16;
        span_t s = emu_bytes_of(table);
        for (uint64_t n = table->size / entry; n; n--) {
            reloc_t r = emu_next_reloc(&s, is_rela(table));
            uint64_t value;
            unsigned bytes = r.type == RELOC_64 ? 8 : 16;
            if (r.offset > target->size || target->size - r.offset < bytes)
                return turing_fail(e->err, "a relocation of %s lies outside it", target->name);
            bool known =
                is_code ? r.type == RELOC_LO || r.type == RELOC_HI || r.type == RELOC_CALL : r.type == RELOC_64;
            if (!known || !symbol_address(e, r.symbol, target, &value)) {
                if (is_code && !why[0] && (r.type == RELOC_KERNEL_LO || r.type == RELOC_KERNEL_HI))
                    snprintf(why, why_size,
                             "0x%04llx: starts the kernel %.80s from device code (dynamic parallelism), "
                             "which the emulator does not do",
                             (unsigned long long)r.offset, r.symbol < e->n_symbols ? e->symbols[r.symbol].name : "?");
                else if (is_code && !why[0])
                    snprintf(why, why_size, "0x%04llx: unresolved relocation of type 0x%x against %.80s",
                             (unsigned long long)r.offset, r.type,
                             r.symbol < e->n_symbols ? e->symbols[r.symbol].name : "?");
                if (r.type == RELOC_CALL && is_code)
                    set_call(target->patched + r.offset, NOWHERE); /* who comes there is told */
                continue;
            }
            uint8_t *at = target->patched + r.offset;
            if (r.type == RELOC_CALL) {
                set_call(at, value);
                continue;
            }
            unsigned width = is_code ? 4 : 8;
            at += is_code ? 4 : 0; /* the immediate: bits 32-63 */
            if (!is_rela(table))
                for (unsigned b = 0; b < width; b++)
                    r.addend |= (uint64_t)at[b] << (8 * b);
            value += r.addend;
            if (r.type == RELOC_HI)
                value >>= 32;
            for (unsigned b = 0; b < width; b++)
                at[b] = (uint8_t)(value >> (8 * b));
        }
    }
    return true;
}

static bool patch(elf_t *e, section_t *s, char *why, size_t why_size)
{
    if (!s->data)
        return turing_fail(e->err, "section %s has no bits", s->name);
    if (!s->patched) {
        if (!(s->patched = emu_own(e->module, s->size, 1)))
            return emu_out_of_memory(e->err);
        memcpy(s->patched, s->data, s->size);
    }
    return relocate(e, s, why, why_size);
}

/* ---- attributes ------------------------------------------------------------------------ */

/* .nv.info is a sequence of (format, attribute, value); format 4 carries the size
 * of what follows in place of a value. */
enum {
    INFO_SIZED = 4,
    INFO_MAX_THREADS = 0x05,
    INFO_PARAM_CBANK = 0x0a,
    INFO_REQNTID = 0x10,
    INFO_FRAME_SIZE = 0x11,
    INFO_MIN_STACK_SIZE = 0x12,
    INFO_PARAM = 0x17,
    INFO_PARAM_SIZE = 0x19,
    INFO_REGISTERS = 0x2f,
    INFO_LARGE_PARAM = 0x45, /* as INFO_PARAM, of a kernel whose parameters are beyond 4 KiB */
    INFO_BARRIERS = 0x4c
};

static bool damaged_info(elf_t *e, const section_t *s)
{
    return turing_fail(e->err, "section %s is damaged", s->name);
}

static bool function_info(elf_t *e, turing_kernel_t *k, uint32_t symbol)
{
    const section_t *info = emu_find_section(e, ".nv.info", "");
    if (!info || !info->data)
        return true;
    span_t s = emu_bytes_of(info);
    while (s.p < s.end && !s.bad) {
        unsigned format = (unsigned)emu_get(&s, 1), attribute = (unsigned)emu_get(&s, 1),
                 value = (unsigned)emu_get(&s, 2);
        span_t v = emu_sub(&s, format == INFO_SIZED ? value : 0);
        if (attribute != INFO_REGISTERS && attribute != INFO_FRAME_SIZE && attribute != INFO_MIN_STACK_SIZE)
            continue;
        uint32_t who = (uint32_t)emu_get(&v, 4), what = (uint32_t)emu_get(&v, 4);
        if (v.bad)
            return damaged_info(e, info);
        if (who != symbol)
            continue;
        if (attribute == INFO_REGISTERS)
            k->registers = what;
        else if (attribute == INFO_MIN_STACK_SIZE && what == UINT32_MAX)
            continue; /* not known: it calls what is linked later, or itself */
        else if (what > k->local_bytes)
            k->local_bytes = what;
    }
    return !s.bad || damaged_info(e, info);
}

static bool kernel_info(elf_t *e, turing_kernel_t *k)
{
    const section_t *info = emu_find_section(e, ".nv.info.", k->name);
    k->param_base = DEFAULT_PARAM_BASE;
    if (!info || !info->data)
        return true;
    turing_param_t *params = emu_own(e->module, info->size / 16 + 1, sizeof *params);
    if (!params)
        return emu_out_of_memory(e->err);
    size_t limit = info->size / 16 + 1;
    bool *seen = calloc(limit, sizeof *seen);
    if (!seen)
        return emu_out_of_memory(e->err);
    bool ok = true;
    span_t s = emu_bytes_of(info);
    while (s.p < s.end && !s.bad && ok) {
        unsigned format = (unsigned)emu_get(&s, 1), attribute = (unsigned)emu_get(&s, 1),
                 value = (unsigned)emu_get(&s, 2);
        span_t v = emu_sub(&s, format == INFO_SIZED ? value : 0);
        uint64_t x, y, z;
        switch (attribute) {
        case INFO_MAX_THREADS:
        case INFO_REQNTID:
            x = emu_get(&v, 4), y = emu_get(&v, 4), z = emu_get(&v, 4);
            ok = x <= 1024 && y <= 1024 && z <= 64;
            k->max_threads = ok ? (uint32_t)(x * y * z) : 0;
            break;
        case INFO_PARAM_CBANK:
            emu_get(&v, 4);
            k->param_base = (uint32_t)emu_get(&v, 2);
            k->param_bytes = (uint32_t)emu_get(&v, 2);
            break;
        case INFO_PARAM:
        case INFO_LARGE_PARAM: {
            emu_get(&v, 4);
            size_t ordinal = (size_t)emu_get(&v, 2);
            uint32_t offset = (uint32_t)emu_get(&v, 2), size = (uint32_t)emu_get(&v, 4);
            size = attribute == INFO_PARAM ? size >> 18 : size & 0xffff;
            if (!(ok = ordinal < limit && !seen[ordinal]))
                break;
            seen[ordinal] = true;
            params[ordinal] = (turing_param_t){offset, size};
            k->n_params++;
            break;
        }
        case INFO_PARAM_SIZE:
            if (format != INFO_SIZED && !k->param_bytes)
                k->param_bytes = value;
            break;
        case INFO_BARRIERS: k->barriers = value & 0xff; break;
        default: break;
        }
        ok = ok && !v.bad;
    }
    ok = ok && !s.bad;
    for (uint32_t i = 0; ok && i < k->n_params; i++)
        ok = seen[i] && (uint64_t)params[i].offset + params[i].size <= k->param_bytes;
    free(seen);
    k->params = params;
    return ok || damaged_info(e, info);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static bool constant_banks(elf_t *e, turing_kernel_t *k)
{
    for (unsigned b = 0; b < TURING_BANKS; b++) {
        char prefix[32], why[8] = "";
        snprintf(prefix, sizeof prefix, ".nv.constant%u.", b);
        section_t *s = emu_find_section(e, prefix, k->name);
        if (!s) {
            prefix[strlen(prefix) - 1] = 0;
            s = emu_find_section(e, prefix, "");
        }
        if (!s || !s->size)
            continue;
        if (s->size > TURING_BANK_BYTES)
            return turing_fail(e->err, "section %s is larger than a constant bank", s->name);
        if (!patch(e, s, why, sizeof why))
            return false;
        k->bank[b] = (turing_bank_t){s->patched, (uint32_t)s->size, s->address};
    }
    return k->param_base + k->param_bytes <= TURING_BANK_BYTES ||
           turing_fail(e->err, "the parameters of %s do not fit a constant bank", k->name);
}

static bool decode_code(elf_t *e, turing_kernel_t *k, const char *why)
{
    turing_error_t bad;
    turing_insn_t *insns = NULL;
    size_t n = k->code_bytes / TURING_INSN_BYTES;
    if (!why[0] && !(insns = emu_own(e->module, n, sizeof *insns)))
        return emu_out_of_memory(e->err);
    span_t s = {k->code, k->code + k->code_bytes, false};
    for (size_t i = 0; i < n && !why[0]; i++) {
        uint64_t lo = emu_get(&s, 8), hi = emu_get(&s, 8);
        if (!turing_decode(&insns[i], lo, hi, (uint32_t)(i * TURING_INSN_BYTES), &bad))
            why = bad.text;
    }
    if (why[0])
        return (k->unusable = emu_own_text(e->module, why, "", "")) || emu_out_of_memory(e->err);
    k->insns = insns;
    k->n_insns = (uint32_t)n;
    return true;
}

static bool is_kernel_section(const elf_t *e, size_t index)
{
    for (size_t i = 1; i < e->n_symbols; i++)
        if (e->symbols[i].section == index && e->symbols[i].type == STT_FUNC && e->symbols[i].other & ENTRY_POINT)
            return true;
    return false;
}

/* Functions in sections of their own, as -rdc and -G make them, stand behind each kernel, at the same
 * addresses for all, so that pointers to them mean the same everywhere. */
static bool place_functions(elf_t *e)
{
    enum { ALIGNMENT = 128, MOST = 1 << 26 };
    uint64_t end = 0;
    bool any = false;
    for (int own = 0; own < 2; own++) {
        end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        e->functions = (uint32_t)end;
        for (size_t i = 1; i < e->n_sections; i++) {
            section_t *s = &e->sections[i];
            if (!(s->flags & SHF_EXECINSTR) || !s->data || !s->size || is_kernel_section(e, i) == own)
                continue;
            if (!own)
                end = s->size > end ? s->size : end;
            else {
                s->code_base = (uint32_t)end;
                end += (s->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                any = true;
            }
            if (end > MOST)
                return turing_fail(e->err, "%s: too much code", s->name);
        }
    }
    e->code_end = (uint32_t)end;
    e->functions = any ? e->functions : 0;
    return true;
}

static bool append_functions(elf_t *e, turing_kernel_t *k, char *why, size_t why_size)
{
    static const uint64_t nop[2] = {UINT64_C(0x7918), UINT64_C(0x000fc00000000000)};
    uint8_t *code = emu_own(e->module, e->code_end, 1);
    if (!code)
        return emu_out_of_memory(e->err);
    for (uint32_t at = 0; at < e->code_end; at += sizeof nop)
        memcpy(code + at, nop, sizeof nop);
    memcpy(code, k->code, k->code_bytes);
    for (size_t i = 1; i < e->n_sections; i++) {
        section_t *s = &e->sections[i];
        char unresolved[160] = "";
        if (!s->code_base)
            continue;
        if (!patch(e, s, s->relocated ? why : unresolved, s->relocated ? why_size : sizeof unresolved))
            return false;
        memcpy(code + s->code_base, s->patched, s->size);
    }
    k->code = code;
    k->code_bytes = e->code_end;
    return true;
}

static bool add_kernel(elf_t *e, uint32_t index)
{
    turing_module_t *m = e->module;
    const symbol_t *y = &e->symbols[index];
    section_t *code = &e->sections[y->section];
    char why[160] = "";
    if (!(code->flags & SHF_EXECINSTR) || !code->data || y->value)
        return turing_fail(e->err, "kernel %s has no code section of its own", y->name);
    if (!code->size || code->size % TURING_INSN_BYTES || code->size > UINT32_MAX)
        return turing_fail(e->err, "section %s holds no whole number of instructions", code->name);
    turing_kernel_t *list = realloc(m->kernels, (m->n_kernels + 1) * sizeof *list);
    if (!list)
        return emu_out_of_memory(e->err);
    m->kernels = list;
    turing_kernel_t *k = &list[m->n_kernels];
    *k = (turing_kernel_t){
        .registers = code->info >> 24,
        .barriers = code->flags >> 20 & 0x7f, /* before CUDA 13; later an attribute */
        .code_bytes = (uint32_t)code->size,
        .n_own = (uint32_t)(code->size / TURING_INSN_BYTES),
    };
    if (!(k->name = emu_own_text(m, y->name, "", "")))
        return emu_out_of_memory(e->err);
    m->n_kernels++;

    const section_t *shared = emu_find_section(e, ".nv.shared.", k->name);
    if (shared && shared->size > MAX_SHARED)
        return turing_fail(e->err, "section %s is larger than shared memory", shared->name);
    k->shared_bytes = shared ? (uint32_t)shared->size : 0;
    if (!kernel_info(e, k) || !function_info(e, k, index) || !constant_banks(e, k))
        return false;
    if (k->registers > 255)
        return turing_fail(e->err, "kernel %s claims %u registers", k->name, k->registers);
    if (k->local_bytes > TURING_MOST_LOCAL)
        return turing_fail(e->err, "kernel %s claims %u bytes of local memory, a thread has %d", k->name,
                           k->local_bytes, TURING_MOST_LOCAL);
    if (!patch(e, code, why, sizeof why))
        return false;
    k->code = code->patched;
    if (e->functions && !append_functions(e, k, why, sizeof why))
        return false;
    return decode_code(e, k, why) && emu_read_lines(e, k, y);
}

static unsigned architecture(const Elf64_Ehdr *h)
{
    return h->e_ident[EI_OSABI] == ABI_CUDA_13 ? h->e_flags >> 8 & 0xff : h->e_flags & 0xff;
}

static bool read_elf(elf_t *e)
{
    Elf64_Ehdr h;
    if (e->size < SELFMAG || memcmp(e->image, ELFMAG, SELFMAG))
        return turing_fail(e->err, "not an ELF file");
    if (e->size < sizeof h)
        return turing_fail(e->err, "damaged ELF header");
    memcpy(&h, e->image, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
        return turing_fail(e->err, "not a 64-bit little-endian cubin");
    if (h.e_machine != EM_NVIDIA)
        return turing_fail(e->err, "an ELF file for machine %u, not a cubin", h.e_machine);
    if (h.e_ident[EI_OSABI] != ABI_CUDA_11 && h.e_ident[EI_OSABI] != ABI_CUDA_13)
        return turing_fail(e->err, "a cubin of an unknown ABI (0x%x)", h.e_ident[EI_OSABI]);
    if (architecture(&h) != EMU_SM)
        return turing_fail(e->err, "a cubin for sm_%u, not sm_%d", architecture(&h), EMU_SM);
    if (h.e_type != ET_EXEC)
        return turing_fail(e->err, "a relocatable cubin: link it first");
    if (!read_sections(e, &h) || !read_symbols(e) || !place_globals(e) || !place_functions(e))
        return false;
    for (size_t i = 1; i < e->n_sections; i++) {
        char why[8] = "";
        if (is_module_data(&e->sections[i]) && e->sections[i].patched && !relocate(e, &e->sections[i], why, sizeof why))
            return false;
    }
    for (uint32_t i = 1; i < e->n_symbols; i++) {
        const symbol_t *y = &e->symbols[i];
        if (y->type == STT_FUNC && y->other & ENTRY_POINT && y->section && !add_kernel(e, i))
            return false;
    }
    return true;
}

bool emu_read_cubin(turing_module_t *m, const uint8_t *data, size_t size, turing_error_t *err)
{
    elf_t e = {.module = m, .image = data, .size = size, .err = err};
    const bool ok = read_elf(&e);
    free(e.sections);
    free(e.symbols);
    return ok;
}
