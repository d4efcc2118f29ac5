/* SPDX-License-Identifier: MIT */
/*
 * turing_time_test CUBIN [IMAGE:SYMBOL...] - the timing model, held to published figures of a T4
 * that come out of several of its constants, and to what must be true of any T4. All is
 * modelled; nothing here was measured.
 */
#include "turing_gemm.h"
#include "turing_test.h"

#define GHZ (TURING_T4_MHZ / 1e3)

typedef struct timed_args {
    uint64_t d, a;
    uint32_t n, x;
} timed_args_t;

typedef struct bench {
    const turing_module_t *module;
    turing_memory_t *mem;
    timed_args_t args;
} bench_t;

enum { MANY = 16 << 20 }; /* bytes of the large buffers: four times the L2 */

static bool try_launch(bench_t *b, const char *name, uint32_t blocks, uint32_t threads, uint32_t shared, bool dry,
                       turing_time_t *time, turing_error_t *err)
{
    turing_launch_t l = {.grid = {blocks, 1, 1},
                         .block = {threads, 1, 1},
                         .shared_bytes = shared,
                         .params = &b->args,
                         .param_bytes = sizeof b->args,
                         .time = time,
                         .dry = dry};
    return turing_launch(find_or_die(b->module, name), b->mem, &l, NULL, err);
}

static turing_time_t launch(bench_t *b, const char *name, uint32_t blocks, uint32_t threads, uint32_t shared)
{
    turing_time_t time;
    turing_error_t err = {""};
    CHECK(try_launch(b, name, blocks, threads, shared, false, &time, &err), "%s", err.text);
    return time;
}

/* Cycles per turn, without what comes before and after the loop. */
static double per_turn(bench_t *b, const char *name, uint32_t blocks, uint32_t threads, uint32_t shared, uint32_t x)
{
    b->args.x = x;
    b->args.n = 10;
    const double few = launch(b, name, blocks, threads, shared).cycles;
    b->args.n = 30;
    return (launch(b, name, blocks, threads, shared).cycles - few) / 20;
}

static void near(const char *what, double value, double low, double high)
{
    printf("modelled  %-58s %9.2f  (%g to %g)\n", what, value, low, high);
    CHECK(value >= low && value <= high, "%s: %.3f", what, value);
}

static void tensor_cores(bench_t *b)
{
    near("cycles of independent HMMA", per_turn(b, "time_products", 40, 256, 0, 0) / 128, 8.06, 8.1);
    near("cycles of dependent HMMA", per_turn(b, "time_chained_products", 40, 128, 0, 0) / 64, 14, 14.2);
    near("cycles of dependent IMAD", per_turn(b, "time_integers", 40, 128, 0, 3) / 64, 4, 5.2);
    const turing_time_t t = launch(b, "time_products", 40, 256, 0);
    CHECK(t.tensor > 0.9 * t.cycles && t.tensor <= t.cycles, "tensor cores multiply for %.0f of %.0f cycles", t.tensor,
          t.cycles);
    CHECK(t.stall[TURING_STALL_TENSOR] > 0.7 * t.cycles, "sub-cores wait %.0f cycles for tensor cores",
          t.stall[TURING_STALL_TENSOR]);
}

static void shared_memory(bench_t *b)
{
    const double bytes = 8 * 64 * 512; /* of the 8 warps of a block, a turn */
    near("bytes a cycle of LDS.128 on an SM", bytes / per_turn(b, "time_loads", 40, 256, 16384, 16), 58, 64);
    near("bytes a cycle of LDSM.x4 on an SM", bytes / per_turn(b, "time_matrices", 40, 256, 16384, 16), 58, 64);
    near("LDS.128 with two-way conflicts", bytes / per_turn(b, "time_loads", 40, 256, 16384, 32), 29, 32);
    near("LDSM.x4 with eight-way conflicts", bytes / per_turn(b, "time_matrices", 40, 256, 16384, 128), 7.5, 8);
    near("cycles from a shared load to its dependent one", per_turn(b, "time_shared_chase", 40, 32, 4096, 0) / 64, 19,
         23);
    /* STS.128 holds the unit of four sub-cores for 10 cycles, 5 HMMA hold a tensor core for 40. */
    near("cycles of an STS.128 and 5 HMMA", per_turn(b, "time_stores_by_5", 40, 256, 65536, 0) / 24, 40, 42);
    near("cycles of an STS.128 and 2 HMMA, more than their 16", per_turn(b, "time_stores_by_2", 40, 256, 65536, 0) / 60,
         39, 41);
    const turing_time_t t = launch(b, "time_stores_by_2", 40, 256, 65536);
    CHECK(t.stall[TURING_STALL_QUEUE] > 0.3 * t.cycles, "a full queue holds sub-cores for %.0f of %.0f cycles",
          t.stall[TURING_STALL_QUEUE], t.cycles);
}

/* A chain through `bytes` from a on, in steps of an odd number of lines. */
static void make_chain(bench_t *b, size_t bytes)
{
    uint64_t *chain = calloc(bytes, 1);
    for (size_t i = 0; chain && i < bytes; i += 128)
        chain[i / 8] = b->args.a + (i + 37 * 128) % bytes;
    CHECK(chain && turing_memory_write(b->mem, b->args.a, chain, bytes, NULL), "no chain");
    free(chain);
}

static void memory(bench_t *b)
{
    make_chain(b, MANY);
    b->args.n = 30;
    near("cycles from a DRAM load to its dependent one", launch(b, "time_global_chase", 1, 32, 0).cycles / (30 * 64),
         400, 1200);
    make_chain(b, 1 << 16);
    launch(b, "time_global_chase", 1, 32, 0); /* brings the chain to the L2 */
    near("cycles from an L2 load to its dependent one", per_turn(b, "time_global_chase", 1, 32, 0, 0) / 64, 188, 236);
    b->args.x = 1;
    b->args.n = MANY / 16;
    turing_time_t t = launch(b, "time_read", 160, 256, 0);
    near("GB/s of reading from DRAM", MANY / t.cycles * GHZ, 240, 261);
    CHECK(t.dram_read >= MANY - (2 << 20) && t.dram_read < MANY * 1.01, "%llu bytes were read",
          (unsigned long long)t.dram_read);
    CHECK(t.dram > 0.9 * t.cycles && t.dram <= t.cycles, "DRAM is busy for %.0f of %.0f cycles", t.dram, t.cycles);
    launch(b, "time_copy", 160, 256, 0);     /* leaves the L2 full of what is to be written, */
    t = launch(b, "time_copy", 160, 256, 0); /* which the next launch has to write           */
    near("GB/s of copying in DRAM, read and written", 2.0 * MANY / t.cycles * GHZ, 198, 221);
    b->args.n = (1 << 20) / 16;
    launch(b, "time_read", 160, 256, 0); /* brings it there */
    const turing_time_t once = launch(b, "time_read", 160, 256, 0);
    b->args.x = 21;
    t = launch(b, "time_read", 160, 256, 0);
    near("GB/s of reading from L2", 20.0 * (1 << 20) / (t.cycles - once.cycles) * GHZ, 1100, 1270);
    CHECK(t.l2_sectors >= 21u << 15 && 1000 * t.l2_hits >= 999 * t.l2_sectors, "%llu of %llu sectors were in L2",
          (unsigned long long)t.l2_hits, (unsigned long long)t.l2_sectors);
}

/* A first pass through the code costs 3 or 9 cycles more for each instruction that is executed (JIA, figure 3.6). */
static void start_up(bench_t *b)
{
    b->args.n = 10;
    const turing_kernel_t *k = find_or_die(b->module, "time_products");
    const turing_time_t t = launch(b, "time_products", 40, 256, 0), alone = launch(b, "time_products", 1, 32, 0);
    const double code = (t.cold_start - t.warm_start - 472 - turing_clock.dram_latency) / 6;
    near("instructions that a launch fetches, of a kernel's", code / k->n_insns, 0.5, 1);
    near("cycles of fetching one from L2", (t.warm_start - 215) / code, 3, 3);
    CHECK(t.warm_start == alone.warm_start && t.cold_start == alone.cold_start,
          "start-up depends on the grid: %.0f, %.0f", t.warm_start, alone.warm_start);
    near("us that events show beside a launch after a pause, without its code", (t.paused - t.cold_start) / GHZ / 1e3,
         2, 10);
}

static void blocks_and_barriers(bench_t *b)
{
    b->args.n = 20;
    const double chain = 20 * 64 * 14.0;
    const double full = launch(b, "time_products", 40, 256, 65536).cycles;
    near("times that 41 blocks, one to an SM, take of 40", launch(b, "time_products", 41, 256, 65536).cycles / full,
         1.85, 2.1);
    near("times that 80 blocks, two to an SM, take of 40", launch(b, "time_products", 80, 256, 32768).cycles / full,
         1.8, 2.0);
    const double waiting = launch(b, "time_chained_products", 40, 128, 65536).cycles;
    near("the same of blocks that leave the pipe idle",
         launch(b, "time_chained_products", 80, 128, 32768).cycles / waiting, 1.1, 1.2);
    b->args.x = 0;
    near("times of a chain that two warps take at once", launch(b, "time_barrier", 40, 64, 0).cycles / chain, 1, 1.15);
    b->args.x = 1;
    near("and that they take in turn", launch(b, "time_barrier", 40, 64, 0).cycles / chain, 2, 2.15);
}

/* Kernels of blocks and warps that wait for each other give the results that they should. */
static void results(bench_t *b)
{
    enum { WORDS = 4096 };
    static const struct {
        const char *name;
        uint32_t blocks, threads, pointers;
    } cases[] = {
        {"produce_consume", 2, 64, 1}, {"in_turn", 60, 64, 2}, {"last_block", 50, 64, 4}, {"histogram", 50, 64, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const turing_kernel_t *k = find_or_die(b->module, cases[i].name);
        static uint32_t out[3][4][WORDS];
        turing_time_t time[3];
        for (int timed = 0; timed < 3; timed++) { /* not, yes, dry */
            turing_memory_t *mem = turing_memory_create(0);
            uint64_t params[5] = {0}, state = 7;
            for (uint32_t j = 0; j < cases[i].pointers; j++) {
                memset(out[timed][j], 0, sizeof out[timed][j]);
                for (int w = 0; w < WORDS && j == 0 && i > 1; w++)
                    out[timed][j][w] = random_word(&state);
                params[j] = upload(mem, out[timed][j], sizeof out[timed][j]);
            }
            params[cases[i].pointers] = cases[i].pointers == 2 && i == 3 ? WORDS : 1;
            turing_error_t err = {""};
            turing_launch_t l = {.grid = {cases[i].blocks, 1, 1},
                                 .block = {cases[i].threads, 1, 1},
                                 .params = params,
                                 .param_bytes = k->param_bytes,
                                 .time = timed ? &time[timed] : NULL,
                                 .dry = timed == 2};
            CHECK(turing_launch(k, mem, &l, NULL, &err), "%s", err.text);
            for (uint32_t j = 0; j < cases[i].pointers; j++)
                turing_memory_read(mem, params[j], out[timed][j], sizeof out[timed][j], NULL);
            turing_memory_destroy(mem);
        }
        if (!strcmp(cases[i].name, "in_turn"))
            near("cycles from one block's turn to the next one's", time[1].cycles / cases[i].blocks, 3 * 188, 6 * 188);
        CHECK(!memcmp(out[0], out[1], sizeof out[0]), "%s: the timed launch gives other results", cases[i].name);
        CHECK(!memcmp(&time[1], &time[2], sizeof *time), "%s: dry, it takes %.0f cycles, not %.0f", cases[i].name,
              time[2].cycles, time[1].cycles);
    }
}

/* A launch whose warps fault as they start says so. */
static void faults(bench_t *b)
{
    timed_args_t args = {.d = b->args.d, .a = 1 << 20, .n = 1};
    turing_time_t time;
    turing_error_t err = {""};
    turing_launch_t l = {
        .grid = {100, 1, 1}, .block = {64, 1, 1}, .params = &args, .param_bytes = sizeof args, .time = &time};
    CHECK(!turing_launch(find_or_die(b->module, "time_global_chase"), b->mem, &l, NULL, &err),
          "a load from nowhere is no error");
    CHECK(strstr(err.text, "out of bounds"), "a load from nowhere: %s", err.text);
}

/* What a dry launch leaves out is missed: by the host, by a launch that needs it, by one that computes. */
static void absent_results(bench_t *b)
{
    enum { BYTES = 160 * 256 * 16 };
    const uint64_t a = b->args.a, d = b->args.d;
    uint64_t word = 0;
    turing_error_t err = {""};
    turing_time_t time, again;
    turing_memory_fill(b->mem, d, 0, MANY, NULL);
    b->args.n = BYTES / 16;
    CHECK(try_launch(b, "time_copy", 160, 256, 0, true, &time, &err), "%s", err.text);
    CHECK(!turing_memory_read(b->mem, d + BYTES - 8, &word, 8, &err) && strstr(err.text, "dry launch"),
          "memory that was left out is read: %s", err.text);
    CHECK(turing_memory_read(b->mem, d + BYTES, &word, 8, &err), "memory that was not left out: %s", err.text);
    CHECK(turing_memory_copy(b->mem, d + MANY / 2, d, 64, &err) &&
              !turing_memory_read(b->mem, d + MANY / 2, &word, 8, &err),
          "a copy of what was left out is there");
    b->args.a = d;
    b->args.n = 1;
    for (int dry = 0; dry < 2; dry++) {
        CHECK(!try_launch(b, "time_global_chase", 1, 32, 0, dry, &time, &err) && strstr(err.text, "dry launch"),
              "addresses that were left out are followed: %s", err.text);
    }
    turing_memory_write(b->mem, d, &b->args.a, 8, NULL);
    CHECK(try_launch(b, "time_global_chase", 1, 32, 0, false, &time, &err), "addresses that are there: %s", err.text);
    turing_memory_write(b->mem, d, &b->args.a, 8, NULL);
    CHECK(try_launch(b, "time_global_chase", 1, 32, 0, true, &again, &err) && again.cycles == time.cycles,
          "dry, a chain of loads takes %.0f cycles, not %.0f: %s", again.cycles, time.cycles, err.text);
    b->args.a = a;
    b->args.n = BYTES / 16;
    launch(b, "time_copy", 160, 256, 0);
    CHECK(turing_memory_read(b->mem, d, &word, 8, &err), "memory that is written again: %s", err.text);
    turing_memory_fill(b->mem, d, 0, MANY, NULL);
    /* sums that are spilled decide nothing */
    b->args.n = 9;
    time = launch(b, "time_spilled", 1, 32, 0);
    CHECK(try_launch(b, "time_spilled", 1, 32, 0, true, &again, &err) && again.instructions == time.instructions,
          "dry, spilled sums take %llu instructions, not %llu: %s", (unsigned long long)again.instructions,
          (unsigned long long)time.instructions, err.text);
    turing_memory_fill(b->mem, d, 0, MANY, NULL);
}

/* ---- the library's kernels ------------------------------------------------------------------------ */

typedef struct product {
    turing_time_t time;
    turing_counters_t counters;
    uint16_t *d;
} product_t;

enum { M = 1280, N = 1024, K = 256 };

static product_t multiply(const turing_kernel_t *k, const kernel_t *t, bool dry)
{
    const size_t bytes[4] = {M * K * 2, K * N * 2, M * N * 2, M * N * 2};
    product_t p = {.d = malloc(bytes[3])};
    turing_memory_t *mem = turing_memory_create(0);
    kernel_args_t args = {.lda = K, .ldb = N, .ldc = N, .ldd = N, .m = M, .n = N, .k = K, .alpha = 1, .beta = 1};
    take_whole_tiles(&args, t);
    uint64_t at[4], state = 3;
    for (int i = 0; i < 4; i++) {
        uint16_t *x = malloc(bytes[i]);
        for (size_t j = 0; j < bytes[i] / 2; j++)
            x[j] = (uint16_t)(random_word(&state) & 0xbfff); /* finite, below 2 */
        at[i] = upload(mem, x, bytes[i]);
        free(x);
    }
    memcpy(&args, at, sizeof at);
    turing_error_t err = {""};
    turing_launch_t l = {.grid = {(uint32_t)args.whole_tiles, 1, 1},
                         .block = {t->info.threads, 1, 1},
                         .shared_bytes = t->info.shared_bytes,
                         .params = &args,
                         .param_bytes = k->param_bytes,
                         .counters = &p.counters,
                         .time = &p.time,
                         .dry = dry};
    CHECK(turing_launch(k, mem, &l, NULL, &err), "%s", err.text);
    CHECK(turing_memory_read(mem, at[3], p.d, bytes[3], NULL) != dry, "%s computes %s", t->info.name,
          dry ? "although it need not" : "nothing");
    turing_memory_destroy(mem);
    return p;
}

static void bounds(const char *symbol, const product_t *p)
{
    const turing_loop_t *loop = &p->counters.loop;
    const turing_time_t *t = &p->time;
    if (!loop->found)
        return;
    const double turns = (double)p->counters.insn[loop->last / TURING_INSN_BYTES].issued;
    const double unit[] = {loop->tensor_cycles, loop->alu_cycles,     loop->fma_cycles,    loop->half_cycles,
                           loop->issue_cycles,  loop->uniform_cycles, 4 * loop->lsu_cycles};
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        CHECK(t->cycles >= turns * unit[i] / (4 * TURING_T4_SMS), "%s: %.0f cycles, but unit %zu alone needs %.0f",
              symbol, t->cycles, i, turns * unit[i] / (4 * TURING_T4_SMS));
    CHECK(t->tensor < t->cycles && t->lsu < t->cycles && t->dram < t->cycles,
          "%s: a unit is busy for more than all of the time", symbol);
    CHECK(t->dram_read >= 2ull * (M * K + K * N + M * N), "%s reads %llu bytes", symbol,
          (unsigned long long)t->dram_read);
    CHECK(t->instructions == p->counters.total.issued, "%s: %llu instructions", symbol,
          (unsigned long long)t->instructions);
    double stalls = 0;
    for (int i = 0; i < TURING_STALL_COUNT; i++)
        stalls += t->stall[i];
    CHECK(stalls + (double)t->instructions / (4 * TURING_T4_SMS) <= t->cycles, "%s waits for %.0f of %.0f cycles",
          symbol, stalls, t->cycles);
}

static void kernels(int n, char **images)
{
    double conflicted = 0, before = 0; /* cycles of k1, and of the rung before */
    for (int i = 0; i < n; i++) {
        char path[1024];
        const char *symbol = split_image(images[i], path, sizeof path);
        const kernel_t *t = symbol ? kernel_of(symbol) : NULL;
        if (!t)
            exit(2);
        turing_module_t *module = open_or_die(path);
        const turing_kernel_t *k = find_or_die(module, symbol);
        product_t p = multiply(k, t, false), dry = multiply(k, t, true);
        CHECK(!memcmp(&p.time, &dry.time, sizeof p.time) &&
                  !memcmp(&p.counters.total, &dry.counters.total, sizeof p.counters.total),
              "%s: dry, it takes %.0f cycles, not %.0f", symbol, dry.time.cycles, p.time.cycles);
        free(dry.d);
        turing_counters_free(&dry.counters);
        printf("modelled  %-18s %9.0f cycles, %4.1f%% multiplying, %4.1f%% loading and storing, %4.1f%% DRAM\n", symbol,
               p.time.cycles, 100 * p.time.tensor / p.time.cycles, 100 * p.time.lsu / p.time.cycles,
               100 * p.time.dram / p.time.cycles);
        bounds(symbol, &p);
        if (symbol[1] == '1')
            conflicted = p.time.cycles;
        else if (symbol[1] <= '4')
            CHECK(!conflicted || p.time.cycles * 1.5 < conflicted, "%s is not much faster than one with bank conflicts",
                  symbol);
        /* The ladder's tile; k3 needs more than these 8 k-tiles to be faster than k2. */
        if (symbol[1] == '3' || symbol[1] == '4' || !strcmp(symbol, "k5_128x128_nn")) {
            CHECK(!before || p.time.cycles < before, "%s is not faster than the rung before", symbol);
            before = p.time.cycles;
        }
        if (i == 0) {
            product_t again = multiply(k, t, false);
            CHECK(again.time.cycles == p.time.cycles && !memcmp(&again.time, &p.time, sizeof p.time),
                  "%s: %.3f cycles, then %.3f", symbol, p.time.cycles, again.time.cycles);
            free(again.d);
            turing_counters_free(&again.counters);
        }
        free(p.d);
        turing_counters_free(&p.counters);
        turing_module_close(module);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    turing_module_t *module = open_or_die(argv[1]);
    bench_t b = {.module = module, .mem = turing_memory_create(0)};
    b.args.a = upload(b.mem, NULL, MANY);
    b.args.d = upload(b.mem, NULL, MANY);
    turing_memory_fill(b.mem, b.args.a, 0, MANY, NULL);
    tensor_cores(&b);
    shared_memory(&b);
    memory(&b);
    start_up(&b);
    blocks_and_barriers(&b);
    results(&b);
    faults(&b);
    absent_results(&b);
    turing_memory_destroy(b.mem);
    turing_module_close(module);
    kernels(argc - 2, argv + 2);
    return failures != 0;
}
