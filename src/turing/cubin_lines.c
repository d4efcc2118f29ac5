/* SPDX-License-Identifier: MIT */
/* cubin_lines.c - .debug_line, DWARF 2 to 4, to the source lines of a kernel's instructions. */
#include "cubin.h"

#include <string.h>

static uint64_t uleb(span_t *s)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t b = emu_get(s, 1);
        if (shift < 64)
            v |= (b & 127) << shift;
        if (!(b & 128) || s->bad)
            return v;
    }
}

static int64_t sleb(span_t *s)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint64_t b;
    do {
        b = emu_get(s, 1);
        if (shift < 64)
            v |= (b & 127) << shift;
        shift += 7;
    } while (b & 128 && !s->bad);
    if (shift < 64 && b & 64)
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

/* A string inside the span, or "" and bad. */
static const char *text(span_t *s)
{
    const uint8_t *nul = s->p < s->end ? memchr(s->p, 0, (size_t)(s->end - s->p)) : NULL;
    if (!nul) {
        s->bad = true;
        s->p = s->end;
        return "";
    }
    const char *t = (const char *)s->p;
    s->p = nul + 1;
    return t;
}

typedef struct line_program {
    uint8_t min_length, line_range, opcode_base;
    int8_t line_base;
    uint8_t lengths[256];
    const char **files; /* by number, from 1 */
    size_t n_files;
} line_program_t;

/* What the rows of one sequence are written to. */
typedef struct line_sink {
    turing_line_t *lines;
    size_t n;
    size_t filled; /* instructions before this one have their line */
    turing_line_t last;
} line_sink_t;

static void line_row(line_sink_t *k, uint64_t address, turing_line_t line)
{
    uint64_t until = address / TURING_INSN_BYTES;
    for (; k->filled < k->n && k->filled < until; k->filled++)
        k->lines[k->filled] = k->last;
    k->last = line;
}

static bool line_header(elf_t *e, span_t *s, unsigned version, line_program_t *p)
{
    span_t h = emu_sub(s, emu_get(s, 4));
    p->min_length = (uint8_t)emu_get(&h, 1);
    if (version >= 4)
        emu_get(&h, 1);
    emu_get(&h, 1);
    p->line_base = (int8_t)emu_get(&h, 1);
    p->line_range = (uint8_t)emu_get(&h, 1);
    p->opcode_base = (uint8_t)emu_get(&h, 1);
    for (unsigned i = 1; i < p->opcode_base; i++)
        p->lengths[i] = (uint8_t)emu_get(&h, 1);
    if (h.bad || !p->line_range)
        return false;

    span_t dirs = h;
    while (*text(&h))
        ;
    size_t room = (size_t)(h.end - h.p) / 4 + 2; /* an entry has at least four bytes */
    if (h.bad || !(p->files = emu_own(e->module, room, sizeof *p->files)))
        return false;
    for (p->n_files = 1; p->n_files < room; p->n_files++) {
        const char *name = text(&h), *dir = "";
        if (!*name)
            break;
        uint64_t d = uleb(&h);
        uleb(&h);
        uleb(&h);
        span_t search = dirs;
        for (uint64_t i = 0; i < d && !search.bad; i++)
            if (!*(dir = text(&search)))
                break;
        if (name[0] == '/')
            dir = "";
        if (!(p->files[p->n_files] = emu_own_text(e->module, dir, *dir ? "/" : "", name)))
            return false;
    }
    return !h.bad && !s->bad;
}

/* Which kernel a DW_LNE_set_address at this offset of .debug_line names. */
static const symbol_t *address_symbol(const elf_t *e, size_t debug_line, uint64_t offset)
{
    for (size_t i = 1; i < e->n_sections; i++) {
        const section_t *t = &e->sections[i];
        if ((t->type != SHT_REL && t->type != SHT_RELA) || t->info != debug_line || !t->data)
            continue;
        span_t s = emu_bytes_of(t);
        for (uint64_t n = t->size / (t->type == SHT_RELA ? 24 : 16); n; n--) {
            reloc_t r = emu_next_reloc(&s, t->type == SHT_RELA);
            if (r.offset == offset && r.symbol < e->n_symbols)
                return &e->symbols[r.symbol];
        }
    }
    return NULL;
}

/* One sequence of rows, up to its end or the end of the program. */
static bool line_sequence(const elf_t *e, span_t *s, const line_program_t *p, const uint8_t *section, size_t debug_line,
                          const symbol_t *kernel, line_sink_t *sink)
{
    uint64_t address = 0, file = 1;
    int64_t line = 1;
    bool here = false;
    while (s->p < s->end && !s->bad) {
        unsigned op = (unsigned)emu_get(s, 1);
        bool row = false;
        if (op >= p->opcode_base) {
            unsigned step = op - p->opcode_base;
            address += (uint64_t)(step / p->line_range) * p->min_length;
            line += p->line_base + (int)(step % p->line_range);
            row = true;
        } else if (op == 0) {
            span_t x = emu_sub(s, uleb(s));
            unsigned ext = (unsigned)emu_get(&x, 1);
            if (ext == 1) { /* end_sequence */
                if (here)
                    line_row(sink, address, (turing_line_t){NULL, 0});
                return !s->bad;
            }
            if (ext == 2) { /* set_address */
                const symbol_t *y = address_symbol(e, debug_line, (uint64_t)(x.p - section));
                address = emu_get(&x, 8);
                here = y && y->section == kernel->section && !x.bad;
            }
        } else
            switch (op) {
            case 1: row = true; break;
            case 2: address += uleb(s) * p->min_length; break;
            case 3: line = (int64_t)((uint64_t)line + (uint64_t)sleb(s)); break;
            case 4: file = uleb(s); break;
            case 8: address += (uint64_t)((255u - p->opcode_base) / p->line_range) * p->min_length; break;
            case 9: address += emu_get(s, 2); break;
            default:
                for (unsigned i = 0; i < p->lengths[op]; i++)
                    uleb(s);
                break;
            }
        if (row && here)
            line_row(sink, address,
                     (turing_line_t){file < p->n_files ? p->files[file] : NULL, line > 0 ? (uint32_t)line : 0});
    }
    return !s->bad;
}

/* Lines are a courtesy: a table of a newer version leaves them out. */
bool emu_read_lines(elf_t *e, turing_kernel_t *k, const symbol_t *kernel)
{
    section_t *debug = emu_find_section(e, ".debug_line", "");
    if (!debug || !debug->data || !k->n_insns)
        return true;
    line_sink_t sink = {.n = k->n_insns};
    if (!(sink.lines = emu_own(e->module, sink.n, sizeof *sink.lines)))
        return emu_out_of_memory(e->err);
    span_t all = emu_bytes_of(debug);
    bool any = false;
    while (all.p < all.end) {
        span_t unit = emu_sub(&all, emu_get(&all, 4));
        unsigned version = (unsigned)emu_get(&unit, 2);
        if (all.bad || unit.bad)
            return turing_fail(e->err, "section .debug_line is damaged");
        if (version < 2 || version > 4)
            continue;
        line_program_t p = {0};
        if (!line_header(e, &unit, version, &p))
            return turing_fail(e->err, "the header of .debug_line is damaged");
        while (unit.p < unit.end) {
            sink.filled = 0;
            sink.last = (turing_line_t){NULL, 0};
            if (!line_sequence(e, &unit, &p, debug->data, (size_t)(debug - e->sections), kernel, &sink))
                return turing_fail(e->err, "the program of .debug_line is damaged");
        }
    }
    for (size_t i = 0; i < sink.n; i++)
        any = any || sink.lines[i].file;
    k->lines = any ? sink.lines : NULL;
    return true;
}
