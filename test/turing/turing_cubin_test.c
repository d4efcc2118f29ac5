/* SPDX-License-Identifier: MIT */
/*
 * turing_cubin_test CUBIN - one cubin in every wrapping: alone, and in fatbins plain, LZ4 and zstd,
 * first or last of several. Each gives the same kernels. What is for another architecture, another
 * machine or not linked is refused by name.
 */
#include "turing_test.h"

#include <zstd.h>

enum { HEADER = 16, ENTRY = 64, LZ4 = 0x2000, ZSTD = 0x8000 };

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Lengths beyond 15 go on in bytes of up to 255. */
static size_t put_length(uint8_t *at, size_t length)
{
    size_t n = 0;
    for (length -= 15; length >= 255; length -= 255)
        at[n++] = 255;
    at[n++] = (uint8_t)length;
    return n;
}

static size_t lz4_sequence(uint8_t *at, const uint8_t *literals, size_t run, size_t copy)
{
    uint8_t *const start = at++;
    *start = (uint8_t)((run < 15 ? run : 15) << 4 | (copy < 4 ? 0 : copy - 4 < 15 ? copy - 4 : 15));
    if (run >= 15)
        at += put_length(at, run);
    memcpy(at, literals, run);
    at += run;
    if (copy) {
        put(at, 1, 2); /* repeats the last byte */
        at += 2;
        if (copy - 4 >= 15)
            at += put_length(at, copy - 4);
    }
    return (size_t)(at - start);
}

/* An LZ4 block that knows literals and repeated bytes. */
static size_t pack_lz4(uint8_t *out, const uint8_t *in, size_t size)
{
    size_t n = 0, literals = 0;
    for (size_t i = 1; i < size; i++) {
        size_t copy = 0;
        while (i + copy < size && in[i + copy] == in[i - 1])
            copy++;
        if (copy < 4 || i + copy == size)
            continue;
        n += lz4_sequence(out + n, in + literals, i - literals, copy);
        literals = i += copy;
    }
    return n + lz4_sequence(out + n, in + literals, size - literals, 0);
}

/* Appends an entry of the container that starts at `fatbin`; returns the new size. */
static size_t add_entry(uint8_t *fatbin, size_t size, unsigned kind, unsigned sm, unsigned flags, const uint8_t *data,
                        size_t bytes)
{
    if (!size) {
        put(fatbin, 0xba55ed50, 4);
        put(fatbin + 4, 1, 2);
        put(fatbin + 6, HEADER, 2);
        size = HEADER;
    }
    uint8_t *const e = fatbin + size, *const body = e + ENTRY;
    size_t packed = bytes;
    memset(e, 0, ENTRY);
    if (flags & LZ4)
        packed = pack_lz4(body, data, bytes);
    else if (flags & ZSTD)
        packed = ZSTD_compress(body, 2 * bytes + 1024, data, bytes, 3);
    else
        memcpy(body, data, bytes);
    const size_t padded = (packed + 7) / 8 * 8;
    memset(body + packed, 0, padded - packed);
    put(e, kind, 2);
    put(e + 2, 0x101, 2);
    put(e + 4, ENTRY, 4);
    put(e + 8, padded, 8);
    put(e + 16, flags ? packed : 0, 4);
    put(e + 28, sm, 4);
    put(e + 40, 0x11 | flags, 8);
    put(e + 56, flags ? bytes : 0, 8);
    size += ENTRY + padded;
    put(fatbin + 8, size - HEADER, 8);
    return size;
}

static void check_same(const turing_module_t *a, const uint8_t *data, size_t size, const char *what)
{
    turing_error_t err = {""};
    turing_module_t *b = turing_module_open(data, size, &err);
    CHECK(b, "%s: %s", what, err.text);
    if (!b)
        return;
    CHECK(turing_module_kernel_count(b) == turing_module_kernel_count(a), "%s", what);
    const turing_kernel_t *x;
    for (size_t i = 0; (x = turing_module_kernel(a, i)); i++) {
        const turing_kernel_t *y = turing_module_find(b, x->name);
        CHECK(y && y->code_bytes == x->code_bytes && !memcmp(y->code, x->code, x->code_bytes), "%s: %s", what, x->name);
        CHECK(y && y->registers == x->registers && y->shared_bytes == x->shared_bytes &&
                  y->param_bytes == x->param_bytes && y->n_params == x->n_params && y->local_bytes == x->local_bytes,
              "%s: %s", what, x->name);
    }
    turing_module_close(b);
}

static void check_refused(const uint8_t *data, size_t size, const char *word)
{
    turing_error_t err = {""};
    turing_module_t *m = turing_module_open(data, size, &err);
    CHECK(!m && strstr(err.text, word), "\"%s\" does not say \"%s\"", err.text, word);
    turing_module_close(m);
}

static void check_kernels(const turing_module_t *m)
{
    const turing_kernel_t *k;
    size_t with_lines = 0, n = turing_module_kernel_count(m);
    for (size_t i = 0; (k = turing_module_kernel(m, i)); i++) {
        CHECK(!k->unusable && k->n_insns * (size_t)TURING_INSN_BYTES == k->code_bytes, "%s", k->name);
        CHECK(k->registers > 0 && k->registers <= 255, "%s: %u registers", k->name, k->registers);
        CHECK(k->param_base == 0x160, "%s: parameters at 0x%x", k->name, k->param_base);
        CHECK(!k->param_bytes || k->bank[0].size == k->param_base + k->param_bytes, "%s: bank 0", k->name);
        for (uint32_t p = 1; p < k->n_params; p++)
            CHECK(k->params[p].offset >= k->params[p - 1].offset + k->params[p - 1].size, "%s: parameter %u", k->name,
                  p);
        for (uint32_t r = 0; r < k->n_insns; r++) {
            turing_access_t access[TURING_ACCESS_MAX];
            for (int a = turing_insn_access(&k->insns[r], access); a-- > 0;)
                CHECK(access[a].file != TURING_FILE_R || access[a].first + access[a].count <= (int)k->registers,
                      "%s+0x%x: register %u of %u", k->name, r * TURING_INSN_BYTES, access[a].first, k->registers);
        }
        with_lines += k->lines && k->lines[0].file && k->lines[0].line > 0;
    }
    CHECK(n > 0 && with_lines == n, "%zu of %zu kernels have source lines", with_lines, n);
    CHECK(!turing_module_kernel(m, n) && !turing_module_find(m, "no such kernel"), "what is not there");
}

/* A copy whose functions all claim that much local memory: a word of .nv.info, behind each one's number. */
static void claim_local(uint8_t *copy, const uint8_t *cubin, size_t size, uint32_t bytes)
{
    static const uint8_t frame_size[] = {4, 0x11, 8, 0};
    memcpy(copy, cubin, size);
    for (size_t at = 0; at + 12 <= size; at += 4)
        if (!memcmp(cubin + at, frame_size, sizeof frame_size))
            put(copy + at + 8, bytes, 4);
}

static void check_local_memory(uint8_t *copy, const uint8_t *cubin, size_t size)
{
    claim_local(copy, cubin, size, 512 << 10);
    turing_module_t *m = turing_module_open(copy, size, NULL);
    CHECK(m && turing_module_kernel(m, 0)->local_bytes == 512 << 10, "512 KiB of local memory");
    turing_module_close(m);
    claim_local(copy, cubin, size, (512 << 10) + 1);
    check_refused(copy, size, "claims 524289 bytes of local memory");
    claim_local(copy, cubin, size, UINT32_MAX);
    check_refused(copy, size, "claims 4294967295 bytes of local memory");
}

int main(int argc, char **argv)
{
    static uint8_t cubin[1 << 21], fatbin[1 << 23];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    const size_t size = file ? fread(cubin, 1, sizeof cubin, file) : 0;
    if (file)
        fclose(file);
    if (size < 64 || size == sizeof cubin) {
        printf("no cubin\n");
        return 1;
    }
    turing_module_t *m = open_or_die(argv[1]);
    check_kernels(m);

    static const struct {
        const char *name;
        unsigned flags;
    } wrappings[] = {{"plain", 0}, {"LZ4", LZ4}, {"zstd", ZSTD}};
    static const uint8_t ptx[] = "a text";
    for (size_t i = 0; i < sizeof wrappings / sizeof *wrappings; i++) {
        const unsigned flags = wrappings[i].flags;
        size_t n = add_entry(fatbin, 0, 2, 75, flags, cubin, size);
        check_same(m, fatbin, n, wrappings[i].name);
        check_refused(fatbin, n - 8, "fatbin");

        n = add_entry(fatbin, 0, 1, 75, 0, ptx, sizeof ptx);
        n = add_entry(fatbin, n, 2, 80, flags, cubin, size);
        check_refused(fatbin, n, "sm_80");
        n = add_entry(fatbin, n, 2, 75, flags, cubin, size);
        check_same(m, fatbin, n, "last of three");
        n += add_entry(fatbin + n, 0, 1, 75, 0, ptx, sizeof ptx);
        check_same(m, fatbin, n, "two containers");
    }
    const size_t zstd = add_entry(fatbin, 0, 2, 75, ZSTD, cubin, size);
    fatbin[zstd - 40] ^= 0xff;
    put(fatbin + HEADER + 56, size + 1, 8);
    check_refused(fatbin, zstd, "compressed");
    const size_t lz4 = add_entry(fatbin, 0, 2, 75, LZ4, cubin, size);
    put(fatbin + HEADER + 56, size - 1, 8);
    check_refused(fatbin, lz4, "compressed");
    check_refused(fatbin, HEADER, "fatbin");
    const size_t only_ptx = add_entry(fatbin, 0, 1, 75, 0, ptx, sizeof ptx);
    check_refused(fatbin, only_ptx, "no cubin");

    check_local_memory(fatbin, cubin, size);

    /* ELF header: machine at 18, type at 16, flags at 48 */
    cubin[18] = 62;
    check_refused(cubin, size, "machine 62");
    cubin[18] = 190;
    cubin[16] = 1;
    check_refused(cubin, size, "relocatable");
    cubin[16] = 2;
    cubin[48] ^= 75 ^ 80;
    cubin[49] ^= 75 ^ 80;
    check_refused(cubin, size, "sm_");
    check_refused(cubin + 1, size - 1, "neither");
    check_refused(cubin, 0, "neither");
    check_refused(cubin, 20, "ELF");
    turing_module_close(m);
    return failures != 0;
}
