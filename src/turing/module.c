/* SPDX-License-Identifier: MIT */
/*
 * module.c - modules, and how they are opened: a cubin as it is (cubin.c), or a fatbin, which is a sequence of
 * containers of cubins and PTX texts. Input is not trusted.
 */
#include "cubin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

void *emu_own(turing_module_t *m, size_t count, size_t size)
{
    void **list = realloc(m->owned, (m->n_owned + 1) * sizeof *list);
    if (!list)
        return NULL;
    m->owned = list;
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (p)
        m->owned[m->n_owned++] = p;
    return p;
}

char *emu_own_text(turing_module_t *m, const char *a, const char *b, const char *c)
{
    size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = emu_own(m, n, 1);
    if (text)
        snprintf(text, n, "%s%s%s", a, b, c);
    return text;
}

bool emu_out_of_memory(turing_error_t *err)
{
    return turing_fail(err, "out of memory");
}

/* ---- fatbins ---------------------------------------------------------------------------------- */

/* LZ4 block format: a token holds the lengths of a run of literals and of a copy
 * from earlier output (at least four bytes); 15 is continued in further bytes. */
static bool unpack_lz4(span_t in, uint8_t *out, size_t size)
{
    size_t n = 0;
    while (in.p < in.end) {
        unsigned token = (unsigned)emu_get(&in, 1);
        uint64_t run = token >> 4, copy = token & 15, more;
        if (run == 15)
            do
                run += more = emu_get(&in, 1);
            while (more == 255);
        if (in.bad || run > (uint64_t)(in.end - in.p) || run > size - n)
            return false;
        memcpy(out + n, in.p, (size_t)run);
        in.p += run;
        n += (size_t)run;
        if (in.p == in.end)
            break;
        size_t distance = (size_t)emu_get(&in, 2);
        if (copy == 15)
            do
                copy += more = emu_get(&in, 1);
            while (more == 255);
        copy += 4;
        if (in.bad || !distance || distance > n || copy > size - n)
            return false;
        for (; copy; copy--, n++)
            out[n] = out[n - distance];
    }
    return n == size;
}

enum {
    FATBIN_MAGIC = 0xba55ed50,
    FATBIN_CUBIN = 2, /* entry kind; 1 is PTX */
    FATBIN_LZ4 = 0x2000,
    FATBIN_ZSTD = 0x8000
};

/* Container: magic 4, version 2, header size 2, size of the entries 8.
 * Entry: kind 2, version 2, header size 4, padded size 8, packed size 4, -, minor 2,
 * major 2, architecture 4, name 4 4, flags 8, -, unpacked size 8. */
static bool fatbin_entry(turing_module_t *m, span_t *s, unsigned *found, unsigned *other, turing_error_t *err)
{
    const uint8_t *start = s->p;
    unsigned kind = (unsigned)emu_get(s, 2);
    emu_get(s, 2);
    uint64_t header = emu_get(s, 4), padded = emu_get(s, 8), packed = emu_get(s, 4);
    emu_get(s, 4), emu_get(s, 2), emu_get(s, 2);
    unsigned arch = (unsigned)emu_get(s, 4);
    emu_get(s, 4), emu_get(s, 4);
    uint64_t flags = emu_get(s, 8);
    emu_get(s, 8);
    uint64_t unpacked = emu_get(s, 8);
    if (s->bad || header < 64 || header > (uint64_t)(s->end - start))
        return turing_fail(err, "damaged fatbin entry");
    s->p = start + header;
    span_t body = emu_sub(s, padded);
    if (s->bad)
        return turing_fail(err, "a fatbin entry runs past the end");
    if (kind != FATBIN_CUBIN)
        return true;
    if (arch != EMU_SM) {
        *other = arch;
        return true;
    }
    ++*found;
    if (!(flags & (FATBIN_LZ4 | FATBIN_ZSTD)))
        return emu_read_cubin(m, body.p, (size_t)(body.end - body.p), err);
    span_t in = emu_sub(&body, packed);
    if (body.bad || unpacked > EMU_MOST_BYTES || !unpacked)
        return turing_fail(err, "damaged size of a compressed fatbin entry");
    uint8_t *out = malloc((size_t)unpacked);
    if (!out)
        return emu_out_of_memory(err);
    bool ok = flags & FATBIN_ZSTD ? ZSTD_decompress(out, (size_t)unpacked, in.p, (size_t)(in.end - in.p)) == unpacked
                                  : unpack_lz4(in, out, (size_t)unpacked);
    ok = ok ? emu_read_cubin(m, out, (size_t)unpacked, err) : turing_fail(err, "damaged compressed fatbin entry");
    free(out);
    return ok;
}

static bool fatbin(turing_module_t *m, span_t s, turing_error_t *err)
{
    unsigned found = 0, other = 0;
    while (s.p < s.end) {
        const uint8_t *start = s.p;
        if (emu_get(&s, 4) != FATBIN_MAGIC) {
            /* containers are padded to eight bytes */
            if (start[0] == 0 && start != s.end) {
                s.p = start + 1;
                s.bad = false;
                continue;
            }
            return turing_fail(err, "damaged fatbin container");
        }
        emu_get(&s, 2);
        uint64_t header = emu_get(&s, 2), size = emu_get(&s, 8);
        if (s.bad || header < 16 || header > (uint64_t)(s.end - start))
            return turing_fail(err, "damaged fatbin container");
        s.p = start + header;
        span_t entries = emu_sub(&s, size);
        if (s.bad)
            return turing_fail(err, "truncated fatbin");
        while (entries.p < entries.end)
            if (!fatbin_entry(m, &entries, &found, &other, err))
                return false;
    }
    if (!found && other)
        return turing_fail(err, "the fatbin holds a cubin for sm_%u, none for sm_%d", other, EMU_SM);
    return found || turing_fail(err, "the fatbin holds no cubin for sm_%d", EMU_SM);
}

/* ---- interface ----------------------------------------------------------------------------------- */

turing_module_t *turing_module_open(const void *data, size_t size, turing_error_t *err)
{
    return turing_module_open_at(data, size, TURING_GLOBAL_BASE, err);
}

turing_module_t *turing_module_open_at(const void *data, size_t size, uint64_t base, turing_error_t *err)
{
    turing_module_t *m = calloc(1, sizeof *m);
    if (!m) {
        emu_out_of_memory(err);
        return NULL;
    }
    m->base = m->next_global = base;
    span_t s = {data, (const uint8_t *)data + size, false};
    span_t head = s;
    uint32_t magic = (uint32_t)emu_get(&head, 4);
    bool ok;
    if (magic == FATBIN_MAGIC)
        ok = fatbin(m, s, err);
    else if (magic == 0x464c457f)
        ok = emu_read_cubin(m, data, size, err);
    else
        ok = turing_fail(err, "neither a cubin nor a fatbin");
    if (ok)
        return m;
    turing_module_close(m);
    return NULL;
}

turing_module_t *turing_module_open_file(const char *path, turing_error_t *err)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    uint8_t *data = NULL;
    turing_module_t *m = NULL;
    struct stat about;
    if (f && !fstat(fileno(f), &about) && S_ISDIR(about.st_mode))
        errno = EISDIR; /* whose size means nothing */
    else if (f && !fseek(f, 0, SEEK_END))
        size = ftell(f);
    if (size < 0 || fseek(f, 0, SEEK_SET))
        turing_fail(err, "%.200s: %s", path, strerror(errno));
    else if (!(data = malloc((size_t)size + 1)))
        emu_out_of_memory(err);
    else if (fread(data, 1, (size_t)size, f) != (size_t)size)
        turing_fail(err, "%.200s: cannot be read", path);
    else {
        turing_error_t why = {""};
        if (!(m = turing_module_open(data, (size_t)size, &why)))
            turing_fail(err, "%.200s: %.300s", path, why.text);
    }
    free(data);
    if (f)
        fclose(f);
    return m;
}

void turing_module_close(turing_module_t *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_owned; i++)
        free(m->owned[i]);
    free(m->owned);
    free(m->kernels);
    free(m->globals);
    free(m->symbols);
    free(m);
}

size_t turing_module_kernel_count(const turing_module_t *m)
{
    return m->n_kernels;
}

const turing_kernel_t *turing_module_kernel(const turing_module_t *m, size_t index)
{
    return index < m->n_kernels ? &m->kernels[index] : NULL;
}

const turing_kernel_t *turing_module_find(const turing_module_t *m, const char *name)
{
    for (size_t i = 0; i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i].name, name))
            return &m->kernels[i];
    return NULL;
}

const turing_global_t *turing_module_global(const turing_module_t *m, size_t index)
{
    return index < m->n_globals ? &m->globals[index] : NULL;
}

const turing_symbol_t *turing_module_symbol(const turing_module_t *m, size_t index)
{
    return index < m->n_symbols ? &m->symbols[index] : NULL;
}

const turing_symbol_t *turing_module_find_symbol(const turing_module_t *m, const char *name)
{
    for (size_t i = 0; i < m->n_symbols; i++)
        if (!strcmp(m->symbols[i].name, name))
            return &m->symbols[i];
    return NULL;
}

uint64_t turing_module_end(const turing_module_t *m)
{
    return m->next_global;
}
