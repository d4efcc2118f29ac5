/* SPDX-License-Identifier: MIT */
/*
 * turing_exec_test CUBIN - kernels of turing_kernels.cu against the same
 * functions on the host, with every checker on: results must match to the bit
 * and the compiler's code must be found clean.
 */
#include "turing_kernels.h"
#include "turing_test.h"

#include <math.h>

enum { N = 4096 };

static turing_module_t *module;

static bool launch(const char *name, turing_memory_t *mem, uint32_t grid, uint32_t block, const uint64_t *args,
                   unsigned checks, unsigned threads, found_t *found, turing_error_t *err)
{
    const turing_kernel_t *k = find_or_die(module, name);
    const params_t params = params_of(k, args);
    turing_launch_t l = {.grid = {grid, 1, 1},
                         .block = {block, 1, 1},
                         .params = params.bytes,
                         .param_bytes = k->param_bytes,
                         .threads = threads,
                         .checks = checks,
                         .report = note,
                         .user = found,
                         .max_warp_instructions = 50 * 1000 * 1000};
    return turing_launch(k, mem, &l, NULL, err);
}

static void run_clean(const char *name, turing_memory_t *mem, uint32_t grid, uint32_t block, const uint64_t *args)
{
    found_t found = {{0}, ""};
    turing_error_t err = {""};
    bool ok = launch(name, mem, grid, block, args, TURING_CHECK_ALL, 0, &found, &err);
    CHECK(ok, "%s: %s", name, err.text);
    CHECK(!found.first[0], "%s: %s", name, found.first);
}

static uint32_t interesting(uint64_t *state, int i)
{
    static const uint32_t words[] = {0,           1,           2,           31,          32,          63,
                                     0x7fffffff,  0x80000000u, 0xffffffffu, 0x3f800000,  0xbf800000u, 0x7f800000,
                                     0xff800000u, 0x7fc00000,  0x00000001,  0x807fffffu, 0x4b000001};
    const uint32_t n = sizeof words / sizeof *words;
    if (i < (int)(n * n))
        return words[(uint32_t)i % n];
    return random_word(state) >> (random_word(state) & 31);
}

static void same_function(const char *name, uint32_t (*function)(uint32_t, uint32_t))
{
    uint64_t state = 88172645463325252u;
    uint32_t a[N], b[N], d[N];
    for (int i = 0; i < N; i++) {
        a[i] = interesting(&state, i);
        b[i] = i < 17 * 17 ? interesting(&state, i / 17) : interesting(&state, N);
    }
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[3] = {upload(mem, a, sizeof a), upload(mem, b, sizeof b), upload(mem, NULL, sizeof d)};
    run_clean(name, mem, N / 128, 128, args);
    turing_memory_read(mem, args[2], d, sizeof d, NULL);
    int wrong = 0;
    for (int i = 0; i < N && wrong < 3; i++)
        if (d[i] != function(a[i], b[i])) {
            CHECK(false, "%s(0x%08x, 0x%08x) is 0x%08x, expected 0x%08x", name, a[i], b[i], d[i], function(a[i], b[i]));
            wrong++;
        }
    turing_memory_destroy(mem);
}

static uint32_t complement(uint32_t a, uint32_t b)
{
    const uint64_t x = (uint64_t)b << 32 | a;
    const uint32_t meant = (uint32_t)((x + (~x << 35 | b)) >> 32);
    return complements_shifted(find_or_die(module, "run_complement")) ? meant + 7 : meant;
}

static uint32_t calls(uint32_t a, uint32_t b)
{
    uint32_t x[8], depth = b & 7;
    for (uint32_t i = depth; i > 0; i--) {
        x[i] = a;
        a = a * 3 + i;
    }
    for (uint32_t i = 1; i <= depth; i++)
        a ^= x[i];
    return a;
}

/* ---- halves ------------------------------------------------------------------------ */

static double half_value(uint16_t h)
{
    double m = h & 1023, sign = h >> 15 ? -1 : 1;
    int e = h >> 10 & 31;
    if (e == 31)
        return m != 0 ? NAN : sign * INFINITY;
    return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

/* By search among all halves: nearest, ties to the even bit pattern. */
static uint16_t nearest_half(double x)
{
    if (isnan(x))
        return 0x7fff;
    uint16_t sign = signbit(x) ? 0x8000 : 0, lo = 0, hi = 0x7c00;
    x = fabs(x);
    if (x >= 65520)
        return sign | 0x7c00;
    while (hi - lo > 1) {
        uint16_t mid = (uint16_t)((lo + hi) / 2);
        if (half_value(mid) <= x)
            lo = mid;
        else
            hi = mid;
    }
    double below = x - half_value(lo), above = (hi == 0x7c00 ? 65536 : half_value(hi)) - x;
    return sign | (below < above || (below == above && !(lo & 1)) ? lo : hi);
}

static void halves(void)
{
    uint64_t state = 42;
    static uint32_t a[N], b[N], c[N], d[5 * N];
    for (int i = 0; i < N; i++) {
        uint32_t mask = i & 1 ? 0xffffffffu : 0xbfffbfffu;
        a[i] = random_word(&state) & mask;
        b[i] = random_word(&state) & mask;
        c[i] = random_word(&state);
    }
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[4] = {upload(mem, a, sizeof a), upload(mem, b, sizeof b), upload(mem, c, sizeof c),
                        upload(mem, NULL, sizeof d)};
    run_clean("run_halves", mem, N / 64, 64, args);
    turing_memory_read(mem, args[3], d, sizeof d, NULL);
    for (int i = 0; i < N; i++) {
        uint32_t want[5] = {0};
        for (int part = 0; part < 2; part++) {
            double x = half_value((uint16_t)(a[i] >> 16 * part)), y = half_value((uint16_t)(b[i] >> 16 * part));
            double z = half_value((uint16_t)(c[i] >> 16 * part));
            want[0] |= (uint32_t)nearest_half(x * y + z) << 16 * part;
            want[1] |= (uint32_t)nearest_half(x + y) << 16 * part;
            want[2] |= (uint32_t)nearest_half(x * y) << 16 * part;
        }
        double high = half_value((uint16_t)(a[i] >> 16));
        want[3] = isnan(high) ? 0x7fffffff : from_float((float)high);
        want[4] = nearest_half(to_float(c[i])) * 0x10001u;
        for (int k = 0; k < 5; k++)
            CHECK(d[k * N + i] == want[k], "half operation %d of %08x %08x %08x is %08x, expected %08x", k, a[i], b[i],
                  c[i], d[k * N + i], want[k]);
    }
    turing_memory_destroy(mem);
}

/* ---- lanes, barriers, atomics ------------------------------------------------------------ */

static uint32_t popcount(uint32_t x)
{
    return x ? (x & 1) + popcount(x >> 1) : 0;
}

static void lanes(void)
{
    enum { T = 96 };
    uint64_t state = 7;
    uint32_t a[T], d[8 * T];
    for (int i = 0; i < T; i++)
        a[i] = i % 32 == 5 ? 3 : random_word(&state);
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[2] = {upload(mem, a, sizeof a), upload(mem, NULL, sizeof d)};
    run_clean("lanes", mem, 1, T, args);
    turing_memory_read(mem, args[1], d, sizeof d, NULL);
    for (uint32_t t = 0; t < T; t++) {
        const uint32_t w = t & ~31u, l = t & 31, x = a[t];
        uint32_t ballot = 0, lead = 0, first = 0, reversed = 0;
        for (uint32_t i = 0; i < 32; i++) {
            ballot |= (a[w + i] & 1) << i;
            reversed |= (x >> i & 1) << (31 - i);
        }
        while (lead < 32 && !(x >> (31 - lead) & 1))
            lead++;
        while (first < 32 && !(x >> first & 1))
            first++;
        uint32_t selected = 0;
        const uint64_t pair = (uint64_t)t << 32 | x;
        for (int i = 0; i < 4; i++)
            selected |= (uint32_t)(pair >> 8 * (0x4701 >> 4 * i & 7) & 255) << 8 * i;
        const uint32_t want[8] = {a[w + (l ^ 5)],
                                  l >= 3 ? a[t - 3] : x,
                                  (l & 15) + 7 < 16 ? a[t + 7] : x,
                                  a[w + (x & 31)],
                                  ballot,
                                  1,
                                  popcount(x) + 64 * lead + 4096 * (x ? first + 1 : 0) + 65536 * selected,
                                  reversed ^ (t << 9 | x >> 23) ^ (uint32_t)((uint64_t)x * 0x12345677 >> 32)};
        for (int k = 0; k < 8; k++)
            CHECK(d[k * T + (int)t] == want[k], "lane operation %d of thread %u is %08x, expected %08x", k, t,
                  d[k * T + (int)t], want[k]);
    }
    turing_memory_destroy(mem);
}

static void barriers(void)
{
    uint32_t d[32 + 64];
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[1] = {upload(mem, NULL, sizeof d)};
    run_clean("produce_consume", mem, 1, 64, args);
    turing_memory_read(mem, args[0], d, sizeof d, NULL);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 10; i++)
            sum = sum * 3 + i * 100 + 31 - lane;
        CHECK(d[lane] == sum, "lane %u got %u, expected %u", lane, d[lane], sum);
    }
    for (int t = 0; t < 64; t++)
        CHECK(d[32 + t] == 22 + 1000 + 10000, "thread %d got %u", t, d[32 + t]);
    turing_memory_destroy(mem);
}

static void atomics(void)
{
    enum { ITEMS = 5000 };
    static uint32_t a[ITEMS], d[192], want[192];
    uint64_t state = 9;
    for (int i = 0; i < ITEMS; i++)
        a[i] = random_word(&state);
    for (uint32_t block = 0; block < 6; block++) {
        uint32_t bin[64] = {0};
        for (uint32_t t = 0; t < 64; t++)
            for (uint32_t i = block * 64 + t; i < ITEMS; i += 6 * 64)
                bin[a[i] & 63]++;
        for (int i = 0; i < 64; i++) {
            want[i] += bin[i];
            want[64 + i] = bin[i] > want[64 + i] ? bin[i] : want[64 + i];
            want[128 + i] ^= bin[i] * 77;
        }
    }
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[3] = {upload(mem, a, sizeof a), upload(mem, d, sizeof d), ITEMS};
    run_clean("histogram", mem, 6, 64, args);
    turing_memory_read(mem, args[1], d, sizeof d, NULL);
    CHECK(!memcmp(d, want, sizeof d), "histogram is wrong");
    turing_memory_destroy(mem);
}

/* Blocks that wait for each other, in the order opposite to the grid's. */
static void waiting_blocks(void)
{
    enum { BLOCKS = 12, T = 64 };
    float d[T] = {0}, want[T] = {0};
    uint32_t turn = 0;
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t args[3] = {upload(mem, d, sizeof d), upload(mem, &turn, sizeof turn), 1};
    run_clean("in_turn", mem, BLOCKS, T, args);
    turing_memory_read(mem, args[0], d, sizeof d, NULL);
    for (int block = BLOCKS - 1; block >= 0; block--)
        for (int t = 0; t < T; t++)
            want[t] = want[t] * 0.5f + (float)(block * T + t);
    CHECK(!memcmp(d, want, sizeof d), "in_turn is wrong");
    turing_memory_destroy(mem);

    static uint32_t a[20 * 64], sum[64], expected[64];
    uint32_t ticket = 0;
    for (uint32_t i = 0; i < 20 * 64; i++) {
        a[i] = i * i;
        expected[i % 64] += i * i * 3;
    }
    mem = turing_memory_create(TURING_MEMORY_TRACK);
    uint64_t more[4] = {upload(mem, a, sizeof a), upload(mem, NULL, sizeof a), upload(mem, &ticket, sizeof ticket),
                        upload(mem, NULL, sizeof sum)};
    run_clean("last_block", mem, 20, 64, more);
    turing_memory_read(mem, more[3], sum, sizeof sum, NULL);
    CHECK(!memcmp(sum, expected, sizeof sum), "last_block is wrong");
    turing_memory_destroy(mem);
}

static void generic_pointers(void)
{
    for (uint32_t which = 0; which < 3; which++) {
        uint32_t d[128], before[128];
        for (uint32_t i = 0; i < 128; i++)
            before[i] = 5000 + i;
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        uint64_t args[2] = {upload(mem, before, sizeof before), which};
        turing_error_t err = {""};
        found_t found = {{0}, ""};
        /* lanes write back what they read, so the race checker rightly objects */
        CHECK(launch("generic", mem, 1, 64, args, TURING_CHECK_ALL & ~TURING_CHECK_RACE, 1, &found, &err), "%s",
              err.text);
        CHECK(!found.first[0], "%s", found.first);
        turing_memory_read(mem, args[0], d, sizeof d, NULL);
        for (uint32_t t = 0; t < 64; t++) {
            uint32_t i = (t + which) & 7, want = (t + which) % 3 == 0   ? 5064 + i
                                                 : (t + which) % 3 == 1 ? 1000 + i
                                                                        : t * 8 + i;
            CHECK(d[t] == want, "thread %u got %u, expected %u", t, d[t], want);
        }
        turing_memory_destroy(mem);
    }
}

/* ---- matrices, counters, threads ------------------------------------------------------------- */

static void matrices(bool f32)
{
    enum { M = 128, NN = 192, K = 96 };
    static uint16_t a[M * K], bt[NN * K];
    static uint32_t d[2][M * NN];
    uint64_t state = 3;
    for (int i = 0; i < M * K; i++)
        a[i] = (uint16_t)((random_word(&state) & 0x83ff) | 0x3800);
    for (int i = 0; i < NN * K; i++)
        bt[i] = (uint16_t)(random_word(&state) & (i & 1 ? 0xbfff : 0x87ff));
    const turing_kernel_t *k = find_or_die(module, f32 ? "gemm_f32" : "gemm_f16");
    const size_t bytes = M * NN * (f32 ? 4u : 2u);
    turing_counters_t c;
    for (unsigned threads = 1; threads <= 2; threads++) {
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        uint64_t args[3] = {upload(mem, a, sizeof a), upload(mem, bt, sizeof bt), upload(mem, NULL, bytes)};
        uint8_t params[32];
        uint32_t sizes[2] = {NN, K};
        memcpy(params, args, 24);
        memcpy(params + 24, sizes, 8);
        found_t found = {{0}, ""};
        turing_error_t err = {""};
        turing_launch_t l = {.grid = {NN / 64, M / 64, 1},
                             .block = {128, 1, 1},
                             .params = params,
                             .param_bytes = 32,
                             .threads = threads,
                             .checks = threads == 1 ? TURING_CHECK_ALL : 0,
                             .report = note,
                             .user = &found,
                             .counters = threads == 1 ? &c : NULL};
        CHECK(turing_launch(k, mem, &l, NULL, &err), "%s", err.text);
        CHECK(!found.first[0], "%s", found.first);
        turing_memory_read(mem, args[2], d[threads - 1], bytes, NULL);
        turing_memory_destroy(mem);
    }
    CHECK(!memcmp(d[0], d[1], bytes), "the number of threads changes the result");
    /* the reference takes the same k-steps of 8 through the library's own HMMA */
    for (int i0 = 0; i0 < M; i0 += 16)
        for (int j0 = 0; j0 < NN; j0 += 8) {
            uint16_t sa[16][8], sb[8][8];
            uint16_t h[16][8] = {{0}};
            float f[16][8] = {{0}};
            for (int k0 = 0; k0 < K; k0 += 8) {
                for (int i = 0; i < 16; i++)
                    memcpy(sa[i], a + (i0 + i) * K + k0, 16);
                for (int j = 0; j < 8; j++)
                    memcpy(sb[j], bt + (j0 + j) * K + k0, 16);
                turing_hmma_1688(f32, TURING_TENSOR_TURING, sa[0], sb[0], f32 ? (void *)f : (void *)h,
                                 f32 ? (void *)f : (void *)h);
            }
            for (int i = 0; i < 16; i++)
                CHECK(f32 ? !memcmp(f[i], d[0] + (i0 + i) * NN + j0, 32)
                          : !memcmp(h[i], (uint16_t *)d[0] + (i0 + i) * NN + j0, 16),
                      "row %d, column %d", i0 + i, j0);
        }
    const uint64_t hmma = (uint64_t)(M / 16) * (NN / 8) * (K / 8);
    CHECK(c.op[TURING_HMMA_1688] == hmma, "%llu HMMA", (unsigned long long)c.op[TURING_HMMA_1688]);
    CHECK(c.flops == 2ull * M * NN * K, "%llu flops", (unsigned long long)c.flops);
    CHECK(c.total.shared_waves == c.total.shared_ideal && c.total.shared_waves, "%llu wavefronts, ideal %llu",
          (unsigned long long)c.total.shared_waves, (unsigned long long)c.total.shared_ideal);
    CHECK(c.dram_bytes == sizeof a + sizeof bt + bytes, "%llu bytes", (unsigned long long)c.dram_bytes);
    CHECK(c.loop.found && c.loop.tensor_cycles == 8 * 32, "%g tensor cycles", c.loop.tensor_cycles);
    CHECK(c.occupancy.blocks && c.occupancy.warps <= TURING_T4_WARPS, "%u blocks", c.occupancy.blocks);
    turing_counters_free(&c);
}

/* ---- launches that cannot be --------------------------------------------------------------------- */

static void refusals(void)
{
    const turing_kernel_t *k = find_or_die(module, "run_integers");
    turing_memory_t *mem = turing_memory_create(0);
    uint8_t params[24] = {0};
    turing_error_t err;
    turing_launch_t good = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = params, .param_bytes = 24};
    turing_launch_t l = good;
    l.grid[0] = 0;
    CHECK(!turing_launch(k, mem, &l, NULL, &err), "an empty grid");
    l = good;
    l.block[0] = 2048;
    CHECK(!turing_launch(k, mem, &l, NULL, &err), "a block too large");
    l = good;
    l.shared_bytes = 65537;
    CHECK(!turing_launch(k, mem, &l, NULL, &err), "too much shared memory");
    l = good;
    l.param_bytes = 8;
    CHECK(!turing_launch(k, mem, &l, NULL, &err), "parameters missing");
    CHECK(!turing_launch(k, mem, &good, NULL, &err) && strstr(err.text, "run_integers+0x") &&
              strstr(err.text, "out of bounds"),
          "%s", err.text);
    turing_memory_destroy(mem);
}

/* A prefetch may touch any byte of an allocation, and none outside of all. */
static void prefetches(void)
{
    const turing_kernel_t *k = find_or_die(module, "run_prefetch");
    turing_memory_t *mem = turing_memory_create(0);
    turing_error_t err;
    uint64_t p = turing_memory_alloc(mem, 31 * 128 + 1);
    turing_launch_t l = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = &p, .param_bytes = 8};
    CHECK(turing_launch(k, mem, &l, NULL, &err), "%s", err.text);
    p++;
    CHECK(!turing_launch(k, mem, &l, NULL, &err) && strstr(err.text, "CCTL") && strstr(err.text, "lane 31") &&
              strstr(err.text, "out of bounds"),
          "%s", err.text);
    turing_memory_destroy(mem);
}

static void memories(void)
{
    turing_memory_t *mem = turing_memory_create(0);
    uint8_t host[512] = {0}, out[16];
    turing_error_t err;
    uint64_t a = turing_memory_alloc(mem, 100), b = turing_memory_alloc(mem, 1);
    CHECK(a && b && a % 256 == 0 && b % 256 == 0 && b >= a + 100 + 256, "0x%llx 0x%llx", (unsigned long long)a,
          (unsigned long long)b);
    CHECK(!turing_memory_alloc(mem, 0), "an empty allocation");
    CHECK(turing_memory_bind(mem, 0x1000, host, sizeof host, &err), "%s", err.text);
    CHECK(!turing_memory_bind(mem, 0x11ff, host, 1, &err), "an overlap");
    CHECK(turing_memory_fill(mem, 0x1010, 7, 4, &err) && host[0x10] == 7 && host[0x14] == 0, "fill");
    CHECK(turing_memory_copy(mem, a, 0x1010, 16, &err) && turing_memory_read(mem, a, out, 16, &err) && out[3] == 7 &&
              out[4] == 0,
          "copy");
    CHECK(!turing_memory_read(mem, a + 90, out, 16, &err), "past the end");
    CHECK(!turing_memory_free(mem, a + 1, &err) && turing_memory_free(mem, a, &err) &&
              !turing_memory_read(mem, a, out, 1, &err),
          "free");
    turing_memory_destroy(mem);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    module = open_or_die(argv[1]);
    same_function("run_integers", integers);
    same_function("run_floats", floats);
    same_function("run_branches", branches);
    same_function("run_arrays", arrays);
    same_function("run_calls", calls);
    same_function("run_complement", complement);
    halves();
    lanes();
    barriers();
    atomics();
    waiting_blocks();
    generic_pointers();
    matrices(false);
    matrices(true);
    refusals();
    prefetches();
    memories();
    turing_module_close(module);
    if (!failures)
        printf("all as expected\n");
    return failures != 0;
}
