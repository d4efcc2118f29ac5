/* SPDX-License-Identifier: MIT */
/*
 * turing_people_test CUBIN - kernels of the kinds that people write (turing_people.cu) run right
 * and without an alarm with every check on; what is wrong with the others is said, and nothing hangs.
 */
#include "turing_test.h"

#include <math.h>

static turing_module_t *module;

typedef struct result {
    bool ok;
    found_t found, at_once;
    turing_failure_t failure;
    turing_error_t err;
    char printed[1024];
    size_t n_printed;
} result_t;

static void at_once(void *user, const turing_violation_t *v)
{
    note(&((result_t *)user)->at_once, v);
}

static void at_end(void *user, const turing_violation_t *v)
{
    note(&((result_t *)user)->found, v);
}

static void printed(void *user, const char *text, size_t bytes)
{
    result_t *r = user;
    if (bytes < sizeof r->printed - r->n_printed) {
        memcpy(r->printed + r->n_printed, text, bytes);
        r->n_printed += bytes;
    }
}

static result_t run(const char *name, turing_memory_t *mem, uint32_t grid, uint32_t block, const uint64_t *args,
                    unsigned checks)
{
    const turing_kernel_t *k = find_or_die(module, name);
    const params_t params = params_of(k, args);
    result_t r = {.err = {""}};
    turing_launch_t l = {.grid = {grid, 1, 1},
                         .block = {block, 1, 1},
                         .params = params.bytes,
                         .param_bytes = k->param_bytes,
                         .cooperative = turing_waits_for_grid(k) || !strncmp(name, "grid_", 5),
                         .checks = checks,
                         .report = at_end,
                         .found = at_once,
                         .print = printed,
                         .user = &r,
                         .failure = &r.failure,
                         .max_warp_instructions = 10 * 1000 * 1000};
    r.ok = turing_launch(k, mem, &l, NULL, &r.err);
    CHECK(!memcmp(r.found.count, r.at_once.count, sizeof r.found.count), "%s: findings at once and at the end differ",
          name);
    return r;
}

static void run_clean(const char *name, turing_memory_t *mem, uint32_t grid, uint32_t block, const uint64_t *args)
{
    result_t r = run(name, mem, grid, block, args, TURING_CHECK_ALL);
    CHECK(r.ok, "%s: %s", name, r.err.text);
    CHECK(!r.found.first[0], "%s: %s", name, r.found.first);
}

static turing_memory_t *memory(void)
{
    turing_error_t err = {""};
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    CHECK(mem && turing_module_map(module, mem, &err), "%s", err.text);
    return mem;
}

/* Reads n words of 32 bits. */
static const int32_t *words(turing_memory_t *mem, uint64_t address, size_t n)
{
    static int32_t data[4096];
    turing_error_t err = {""};
    CHECK(turing_memory_read(mem, address, data, 4 * n, &err), "%s", err.text);
    return data;
}

#define EQUAL(name, i, is, want) \
    CHECK((is) == (want), "%s[%d] is %lld, not %lld", name, i, (long long)(is), (long long)(want))

/* ---- module variables ------------------------------------------------------------- */

static void variables(void)
{
    turing_memory_t *mem = memory();
    uint64_t args[2] = {upload(mem, NULL, 256)};
    const turing_symbol_t *weights = turing_module_find_symbol(module, "weights"),
                          *visits = turing_module_find_symbol(module, "visits");
    CHECK(weights && visits && weights->size == 16 && visits->size == 4, "symbols");
    for (int set = 0; weights && visits && set < 2; set++) {
        float w[4] = {1, 2, 3, 4}, d[64];
        if (set) {
            w[2] = -5;
            turing_memory_write(mem, weights->address, w, sizeof w, NULL);
        }
        run_clean("module_variables", mem, 2, 32, args);
        turing_memory_read(mem, args[0], d, sizeof d, NULL);
        for (int i = 0; i < 64; i++)
            EQUAL("module_variables", i, d[i], w[i & 3] * (float)(1 << (i >> 2 & 3)));
        EQUAL("visits", 0, *words(mem, visits->address, 1), 64 * (set + 1));
    }
    turing_module_unmap(module, mem);
    CHECK(!weights || !turing_memory_range(mem, weights->address, &args[0], &args[1]), "still mapped");
    turing_memory_destroy(mem);
}

static void modules_apart(const char *path)
{
    turing_error_t err = {""};
    FILE *f = fopen(path, "rb");
    static uint8_t image[1 << 20];
    const size_t size = f ? fread(image, 1, sizeof image, f) : 0;
    turing_module_t *second = turing_module_open_at(image, size, turing_module_end(module), &err);
    turing_memory_t *mem = memory();
    CHECK(second && turing_module_map(second, mem, &err), "%s", err.text);
    turing_module_close(second);
    turing_memory_destroy(mem);
    if (f)
        fclose(f);
}

static void pointers(void)
{
    turing_memory_t *mem = memory();
    int32_t a[32];
    for (int i = 0; i < 32; i++)
        a[i] = i;
    const uint64_t args[3] = {upload(mem, a, sizeof a), upload(mem, NULL, sizeof a), 1};
    run_clean("function_table", mem, 1, 32, args);
    for (int i = 0; i < 32; i++)
        EQUAL("function_table", i, words(mem, args[1], 32)[i], i & 1 ? 2 * i : i + 1);
    run_clean("virtual_functions", mem, 1, 32, args);
    for (int i = 0; i < 32; i++)
        EQUAL("virtual_functions", i, words(mem, args[1], 32)[i], i & 1 ? i * i : 3 * i);
    run_clean("flag_last", mem, 1, 32, args);
    for (int i = 0; i < 32; i++)
        EQUAL("flag_last", i, words(mem, args[1], 32)[i], -i);
    turing_memory_destroy(mem);
}

/* ---- the device's runtime ------------------------------------------------------------ */

static void system_calls(void)
{
    turing_memory_t *mem = memory();
    const int32_t a[32] = {0, 1, 2, -9, 5};
    const uint64_t args[2] = {upload(mem, a, sizeof a)};
    result_t r = run("prints", mem, 1, 32, args, TURING_CHECK_ALL);
    CHECK(r.ok && !strcmp(r.printed, "-9  1.50 text z|7   |1099511627776|ff %\n"), "%s%s", r.err.text, r.printed);
    r = run("bad_assert", mem, 1, 32, args, TURING_CHECK_ALL);
    CHECK(!r.ok && r.failure == TURING_FAILED_ASSERT && strstr(r.printed, "thread: [4,0,0] Assertion `a[") &&
              strstr(r.err.text, "turing_people.cu:"),
          "%s%s", r.err.text, r.printed);

    const uint64_t d[2] = {upload(mem, NULL, 4 * 256)};
    for (int again = 0; again < 2; again++) { /* what was freed can be had again */
        run_clean("allocates", mem, 2, 128, d);
        for (int i = 0; i < 256; i++)
            EQUAL("allocates", i, words(mem, d[0], 256)[i], i);
    }
    for (uint64_t fault = 0; fault < 4; fault++) {
        const uint64_t both[2] = {d[0], fault};
        r = run("bad_heap", mem, 1, 1, both, TURING_CHECK_ALL);
        if (fault == 0)
            CHECK(r.ok && !r.found.first[0], "%s%s", r.err.text, r.found.first);
        else if (fault == 3)
            CHECK(!r.ok && strstr(r.err.text, "free already"), "%s", r.err.text);
        else
            CHECK(r.found.count[TURING_OUT_OF_BOUNDS] == 1, "heap fault %d: %s%s", (int)fault, r.err.text,
                  r.found.first);
    }
    CHECK(!turing_memory_set_heap(mem, 1, NULL), "the size of a heap in use was changed");
    turing_memory_destroy(mem);

    mem = memory(); /* a heap that is too small gives null */
    turing_memory_set_heap(mem, 64, NULL);
    const uint64_t none[2] = {upload(mem, NULL, 4 * 256)};
    r = run("allocates", mem, 2, 128, none, 0);
    CHECK(!r.ok && r.failure == TURING_FAILED_ADDRESS, "%s", r.err.text);
    turing_memory_destroy(mem);
}

static int ascending(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void recursion(void)
{
    enum { LANES = 32, EACH = 40 };
    turing_memory_t *mem = memory();
    uint64_t state = 7;
    int32_t a[LANES * EACH];
    for (int i = 0; i < LANES * EACH; i++)
        a[i] = (int32_t)(random_word(&state) % 1000);
    const uint64_t args[2] = {upload(mem, a, sizeof a), EACH};
    run_clean("sorts", mem, 1, LANES, args);
    for (int l = 0; l < LANES; l++)
        qsort(a + l * EACH, EACH, sizeof *a, ascending);
    for (int i = 0; i < LANES * EACH; i++)
        EQUAL("sorts", i, words(mem, args[0], LANES * EACH)[i], a[i]);
    turing_memory_destroy(mem);
}

/* ---- bank 0 ------------------------------------------------------------------------------ */

static void machine(void)
{
    turing_memory_t *mem = memory();
    const uint64_t args[2] = {upload(mem, NULL, 4 * 512), upload(mem, NULL, 4 * 512)};
    run_clean("machine", mem, 1, 1, args);
    EQUAL("nsmid", 0, words(mem, args[0], 1)[0], TURING_T4_SMS);
    run_clean("grid_sync", mem, 4, 128, args);
    for (int i = 0; i < 512; i++)
        EQUAL("grid_sync", i, words(mem, args[1], 512)[i], 511 - i);
    run_clean("grid_call", mem, 4, 128, args);
    for (int i = 0; i < 512; i++)
        EQUAL("grid_call", i, words(mem, args[1], 512)[i], 511 - i + 2);
    run_clean("half_warp_sum", mem, 1, 16, args);
    EQUAL("half_warp_sum", 0, words(mem, args[1], 1)[0], 15 * 16 / 2 + 16 * 2);
    result_t bad = run("bad_half_warp_sum", mem, 1, 16, args, TURING_CHECK_ALL);
    CHECK(bad.found.count[TURING_DIVERGENT], "bad_half_warp_sum: nothing was found");
    result_t vote = run("early_vote", mem, 1, 32, args, 0);
    EQUAL("early_vote", 0, words(mem, args[0], 1)[0], 0xffff);
    CHECK(vote.ok, "early_vote: %s", vote.err.text);
    bad = run("bad_masks", mem, 1, 32, args, 0);
    CHECK(!bad.ok && bad.failure == TURING_FAILED_STUCK && strstr(bad.err.text, "lanes 0x0000ffff wait at") &&
              strstr(bad.err.text, "lanes 0xffff0000 wait at"),
          "bad_masks: %s", bad.err.text);
    run_clean("grid_of_few", mem, 4, 128, args);
    for (int i = 0; i < 10; i++)
        EQUAL("grid_of_few", i, words(mem, args[1], 10)[i], 9 - i);
    result_t r = run("grid_sync", mem, 1000, 1024, args, 0);
    CHECK(!r.ok && strstr(r.err.text, "a T4 holds 40 at a time"), "%s", r.err.text);
    turing_memory_destroy(mem);
}

/* ---- atomics, locks, flags ------------------------------------------------------------------ */

static void order(void)
{
    turing_memory_t *mem = memory();
    const uint64_t zero = 0;
    int32_t a[128];
    for (int i = 0; i < 128; i++)
        a[i] = i * 3;
    const uint64_t words_in = upload(mem, a, sizeof a), d = upload(mem, NULL, 4096);
    const uint64_t cas[4] = {upload(mem, &zero, 4), upload(mem, &zero, 4), upload(mem, &zero, 8),
                             upload(mem, &zero, 8)};
    run_clean("cas_loops", mem, 2, 96, cas);
    EQUAL("cas_loops", 0, *words(mem, cas[0], 1), 100);
    EQUAL("cas_loops", 1, *words(mem, cas[1], 1), 192);
    double sum = 0;
    turing_memory_read(mem, cas[2], &sum, 8, NULL);
    EQUAL("cas_loops", 2, sum, 96);
    EQUAL("cas_loops", 3, *words(mem, cas[3], 1), 0x5a005600); /* 192 and 96 */

    const uint64_t args[3] = {d, 0, 0};
    run_clean("shared_cas", mem, 2, 96, args);
    EQUAL("shared_cas", 0, *words(mem, d, 1), 288 * 1000000 + 96 * 1000 + 192);
    run_clean("shared_lock", mem, 2, 128, args);
    EQUAL("shared_lock", 1, words(mem, d, 2)[1], 128);
    run_clean("shared_flag", mem, 1, 64, args);
    EQUAL("shared_flag", 0, *words(mem, d, 1), 42);
    const uint64_t barrier[2] = {words_in, d};
    run_clean("block_barrier", mem, 1, 128, barrier);
    EQUAL("block_barrier", 5, words(mem, d, 128)[5], 122 * 3);
    const uint64_t last[3] = {upload(mem, &zero, 4), upload(mem, NULL, 64), d};
    run_clean("last_block", mem, 8, 64, last);
    EQUAL("last_block", 0, *words(mem, d, 1), 28);
    EQUAL("last_block", 1, *words(mem, last[0], 1), 0);
    for (uint64_t fault = 1; fault < 3; fault++) {
        const uint64_t both[2] = {d, fault};
        result_t r = run("bad_order", mem, 1, 128, both, TURING_CHECK_ALL);
        CHECK(r.ok && r.found.count[TURING_RACE] > 0, "order fault %d is not found: %s", (int)fault, r.err.text);
    }
    turing_memory_destroy(mem);
}

/* ---- what never ends ------------------------------------------------------------------------- */

static void endless(void)
{
    static const char *const says[] = {"", "endless loop?; warp 0 runs, 0x", "; warp 0 runs, 0x",
                                       "32 of 64 threads arrived and no warp can run; warp 0 waits at barrier 0, 0x"};
    turing_memory_t *mem = memory();
    const uint32_t zero = 0;
    for (uint64_t fault = 0; fault < 4; fault++) {
        const uint64_t args[2] = {upload(mem, &zero, 4), fault};
        result_t r = run("bad_endless", mem, 1, 64, args, 0);
        if (!fault)
            CHECK(r.ok, "%s", r.err.text);
        else
            CHECK(!r.ok && r.failure == TURING_FAILED_STUCK && strstr(r.err.text, says[fault]) &&
                      strstr(r.err.text, "turing_people.cu:"),
                  "fault %d: %s", (int)fault, r.err.text);
    }
    const uint64_t d[1] = {upload(mem, NULL, 33 * 4)};
    result_t r = run("bad_shuffle", mem, 1, 32, d, TURING_CHECK_CONVERGENCE);
    CHECK(r.ok && r.found.count[TURING_BARRIER_MISMATCH] + r.found.count[TURING_DIVERGENT] > 0, "%s", r.err.text);
    r = run("bad_shuffle", mem, 1, 32, d, 0);
    CHECK(r.ok && words(mem, d[0], 33)[0] == 1 && words(mem, d[0], 33)[31] == 31, "%s", r.err.text);
    turing_memory_destroy(mem);
}

/* ---- instructions ------------------------------------------------------------------------------ */

static int32_t clamp(int32_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void lanes(void)
{
    turing_memory_t *mem = memory();
    uint64_t state = 99;
    int32_t a[32], b[32];
    double x[32], y[32];
    static const int32_t edges[] = {0,     -1,     255,   256,   -128,      -129,     32767,
                                    32768, -32768, 65535, 65536, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 32; i++) {
        a[i] = i < 13 ? edges[i] : (int32_t)random_word(&state);
        b[i] = i % 3 ? (int32_t)random_word(&state) % 70000 : a[(i * 7) % 32];
        x[i] = i % 8 == 1 ? NAN : i % 8 == 2 ? -0.0 : i % 8 == 3 ? 0.0 : (double)a[i];
        y[i] = i % 16 == 9 ? NAN : i % 8 == 2 ? 0.0 : i % 8 == 3 ? -0.0 : i % 8 == 4 ? NAN : (double)b[i];
    }
    const uint64_t packs[3] = {upload(mem, a, sizeof a), upload(mem, b, sizeof b), upload(mem, NULL, 4 * 256)};
    run_clean("packs", mem, 1, 32, packs);
    const uint32_t *d = (const uint32_t *)words(mem, packs[2], 256);
    for (int i = 0; i < 32; i++, d += 8) {
        uint32_t diff = 0, sum = 0;
        for (int k = 0; k < 4; k++) {
            const int p = (int)((uint32_t)a[i] >> 8 * k & 255), q = (int)((uint32_t)b[i] >> 8 * k & 255);
            diff |= (uint32_t)abs(p - q) << 8 * k;
            sum += (uint32_t)abs(p - q);
        }
        const uint32_t u = (uint32_t)a[i], v = (uint32_t)b[i];
        const uint32_t want[8] = {
            7u << 16 | (uint32_t)clamp(a[i], 0, 255) << 8 | (uint32_t)clamp(b[i], 0, 255),
            7u << 16 | ((uint32_t)clamp(a[i], -128, 127) & 255) << 8 | ((uint32_t)clamp(b[i], -128, 127) & 255),
            (uint32_t)clamp(a[i], -32768, 32767) << 16 | ((uint32_t)clamp(b[i], -32768, 32767) & 65535),
            (uint32_t)clamp(a[i], 0, 65535) << 16 | (uint32_t)clamp(b[i], 0, 65535),
            diff,
            sum,
            (a[i] > b[i] ? u - v : v - u) + 5,
            (u > v ? u - v : v - u) + 5};
        for (int k = 0; k < 8; k++)
            CHECK(d[k] == want[k], "packs %d of (%d, %d): 0x%08x, expected 0x%08x", k, a[i], b[i], d[k], want[k]);
    }

    const uint64_t extremes[3] = {upload(mem, x, sizeof x), upload(mem, y, sizeof y), upload(mem, NULL, 512)};
    run_clean("extremes", mem, 1, 32, extremes);
    double e[64];
    turing_memory_read(mem, extremes[2], e, sizeof e, NULL);
    for (int i = 0; i < 32; i++) {
        const bool zeros = x[i] == 0 && y[i] == 0;
        const double lo = fmin(x[i], y[i]), hi = fmax(x[i], y[i]);
        CHECK((isnan(lo) ? isnan(e[2 * i]) && isnan(e[2 * i + 1]) : e[2 * i] == lo && e[2 * i + 1] == hi) &&
                  (!zeros || (!!signbit(e[2 * i]) == (signbit(x[i]) || signbit(y[i])) &&
                              !!signbit(e[2 * i + 1]) == (signbit(x[i]) && signbit(y[i])))),
              "extremes of %g and %g: %g, %g", x[i], y[i], e[2 * i], e[2 * i + 1]);
    }

    int32_t same[32];
    for (int i = 0; i < 32; i++)
        same[i] = i % 5;
    const uint64_t matches[2] = {upload(mem, same, sizeof same), upload(mem, NULL, 384)};
    run_clean("matches", mem, 1, 32, matches);
    d = (const uint32_t *)words(mem, matches[1], 96);
    for (int i = 0; i < 32; i++) {
        uint32_t mask = 0;
        for (int k = 0; k < 32; k++)
            mask |= (uint32_t)(same[k] == same[i]) << k;
        CHECK(d[i] == mask && d[32 + i] == mask && d[64 + i] == 0, "matches[%d]: 0x%08x 0x%08x 0x%x", i, d[i],
              d[32 + i], d[64 + i]); /* all lanes and 1 for true: 0 */
    }
    turing_memory_destroy(mem);
}

static int part(const uint32_t *row, int bits, int k, bool is_signed)
{
    const int v = (int)(row[k * bits / 32] >> k * bits % 32 & ((1u << bits) - 1));
    return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static void products(void)
{
    turing_memory_t *mem = memory();
    uint64_t state = 5;
    uint32_t a[32], b[32];
    for (int i = 0; i < 32; i++)
        a[i] = random_word(&state), b[i] = random_word(&state) ^ random_word(&state) << 16;
    const uint64_t args[5] = {upload(mem, a, sizeof a), upload(mem, b, sizeof b), upload(mem, NULL, 256),
                              upload(mem, NULL, 256), upload(mem, NULL, 256)};
    run_clean("products", mem, 1, 32, args);
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 8; column++) {
            int64_t s8 = 1 + column % 2, u4 = 0, b1 = 0;
            const uint32_t *x = a + 4 * row, *y = b + 4 * column;
            for (int k = 0; k < 16; k++)
                s8 += part(x, 8, k, true) * part(y, 8, k, false);
            for (int k = 0; k < 32; k++)
                u4 += part(x, 4, k, false) * part(y, 4, k, false);
            for (int k = 0; k < 128; k++)
                b1 += part(x, 1, k, false) ^ part(y, 1, k, false);
            EQUAL("s8", row * 8 + column, words(mem, args[2], 64)[row * 8 + column], s8);
            EQUAL("u4", row * 8 + column, words(mem, args[3], 64)[row * 8 + column], u4);
            EQUAL("b1", row * 8 + column, words(mem, args[4], 64)[row * 8 + column], b1);
        }
    /* small integers as halves: exact */
    uint16_t ha[32], hb[32];
    float f[64];
    static const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0x4200, 0xbc00, 0xc000, 0x4400};
    static const int values[] = {0, 1, 2, 3, -1, -2, 4};
    int ia[32], ib[32];
    for (int i = 0; i < 32; i++) {
        const uint32_t p = random_word(&state) % 7, q = random_word(&state) % 7;
        ha[i] = halves[p], ia[i] = values[p];
        hb[i] = halves[q], ib[i] = values[q];
    }
    const uint64_t volta[4] = {upload(mem, ha, sizeof ha), upload(mem, hb, sizeof hb), upload(mem, NULL, 256),
                               upload(mem, NULL, 128)};
    run_clean("volta_products", mem, 1, 32, volta);
    turing_memory_read(mem, volta[2], f, sizeof f, NULL);
    uint16_t h[64];
    turing_memory_read(mem, volta[3], h, sizeof h, NULL);
    for (int i = 0; i < 64; i++) {
        int sum = 0;
        for (int k = 0; k < 4; k++)
            sum += ia[i / 8 * 4 + k] * ib[i % 8 * 4 + k];
        EQUAL("volta f32", i, f[i], sum);
        const int e = h[i] >> 10 & 31;
        const double v = e ? ldexp(1024 + (h[i] & 1023), e - 25) : 0;
        EQUAL("volta f16", i, h[i] >> 15 ? -v : v, sum);
    }
    turing_memory_destroy(mem);
}

static void refusals(void)
{
    turing_memory_t *mem = memory();
    turing_error_t why;
    const uint64_t args[2] = {1, upload(mem, NULL, 128)};
    result_t r = run("bad_texture", mem, 1, 32, args, 0);
    CHECK(!r.ok && strstr(r.err.text, "(TLD.") && strstr(r.err.text, ".h:") && strstr(r.err.text, "textures"), "%s",
          r.err.text);
    CHECK(turing_unsupported(find_or_die(module, "bad_texture"), &why) && !strcmp(why.text, r.err.text), "%s",
          why.text);
    CHECK(!turing_unsupported(find_or_die(module, "products"), &why), "%s", why.text);
    turing_memory_destroy(mem);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    module = open_or_die(argv[1]);
    variables();
    modules_apart(argv[1]);
    pointers();
    system_calls();
    recursion();
    machine();
    order();
    endless();
    lanes();
    products();
    refusals();
    turing_module_close(module);
    if (!failures)
        printf("all as expected\n");
    return failures != 0;
}
