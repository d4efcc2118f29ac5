/* SPDX-License-Identifier: MIT */
/*
 * turing_mutation_test IMAGE:SYMBOL... - how many seeded faults are found?
 *
 * Faults are put into the machine code of real kernels, one at a time, in
 * instructions that a run executes.  A fault is found when the decoder refuses
 * the code, a checker reports, the launch fails, or the result differs.  Some
 * faults do nothing (a stall longer than need be, a wait that another covers,
 * an operand whose new value is the same), so the share found stays below 1.
 * Each kind of fault has its own floor, for a checker that finds nothing is
 * hardly seen in the share of all.
 */
#include "turing_gemm.h"
#include "turing_test.h"

/* ---- one run ------------------------------------------------------------------------------- */

typedef struct run {
    bool ok;
    found_t found;
    turing_error_t err;
    uint16_t *d;
    size_t bytes;
} run_t;

/* An odd and an even number of k-tiles: double buffers end in different halves. */
static const uint32_t depths[] = {136, 72};
enum { DEPTHS = 2 };

/* A bit more than one tile each way, so that edges are there; rows of D padded. */
static run_t run(const turing_kernel_t *k, const kernel_t *t, uint32_t depth, uint64_t limit,
                 turing_counters_t *counters)
{
    const uint32_t m = t->info.block_m + 16, n = t->info.block_n + 24, pad = 8;
    run_t r = {.err = {""}, .bytes = (size_t)m * (n + pad) * 2};
    uint64_t state = 5;
    uint16_t *a = malloc((size_t)m * depth * 2), *b = malloc((size_t)n * depth * 2), *c = malloc(r.bytes);
    r.d = malloc(r.bytes);
    if (!a || !b || !c || !r.d)
        exit(1);
    for (size_t i = 0; i < (size_t)m * depth; i++)
        a[i] = (uint16_t)((random_word(&state) & 0x83ff) | 0x3800);
    for (size_t i = 0; i < (size_t)n * depth; i++)
        b[i] = (uint16_t)((random_word(&state) & 0x83ff) | 0x3800);
    for (size_t i = 0; i < r.bytes / 2; i++)
        c[i] = (uint16_t)((random_word(&state) & 0x83ff) | 0x3c00);
    memset(r.d, 0x7e, r.bytes);
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    const uint64_t at[4] = {upload(mem, a, (size_t)m * depth * 2), upload(mem, b, (size_t)n * depth * 2),
                            upload(mem, c, r.bytes), upload(mem, r.d, r.bytes)};
    kernel_args_t args = {.lda = depth,
                          .ldb = n,
                          .ldc = n + pad,
                          .ldd = n + pad,
                          .m = (int)m,
                          .n = (int)n,
                          .k = (int)depth,
                          .alpha = 0.5f,
                          .beta = 2};
    take_whole_tiles(&args, t);
    memcpy(&args, at, sizeof at);
    uint8_t params[sizeof args];
    memset(params, 0, sizeof params);
    memcpy(params, &args, sizeof args);
    const uint32_t blocks =
        ((m + t->info.block_m - 1) / t->info.block_m) * ((n + t->info.block_n - 1) / t->info.block_n);
    turing_launch_t l = {.grid = {blocks, 1, 1},
                         .block = {t->info.threads, 1, 1},
                         .shared_bytes = t->info.shared_bytes,
                         .params = params,
                         .param_bytes = k->param_bytes,
                         .checks = counters ? 0 : TURING_CHECK_ALL,
                         .report = note,
                         .user = &r.found,
                         .max_warp_instructions = limit,
                         .counters = counters};
    r.ok = turing_launch(k, mem, &l, NULL, &r.err);
    turing_memory_read(mem, at[3], r.d, r.bytes, NULL);
    turing_memory_destroy(mem);
    free(a);
    free(b);
    free(c);
    return r;
}

/* ---- faults ----------------------------------------------------------------------------------- */

typedef struct code {
    uint64_t lo, hi;
} code_t;

static uint64_t control_bits(const turing_insn_t *in)
{
    return in->raw[1] >> 41 << 41;
}

static bool drop_barrier(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    if (in->op != TURING_BAR)
        return false;
    *c = (code_t){0x7918, control_bits(in)}; /* NOP */
    return true;
}

static bool shorten_stall(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    const turing_pipe_t pipe = turing_op_pipe((turing_op_t)in->op);
    if (in->ctl.stall < 4 || in->op == TURING_IMAD_WIDE || pipe == TURING_PIPE_LSU || pipe == TURING_PIPE_TENSOR ||
        pipe == TURING_PIPE_XU || pipe == TURING_PIPE_CONTROL)
        return false; /* there a stall paces the unit and guards nothing */
    c->hi = (c->hi & ~(UINT64_C(15) << 41)) | UINT64_C(1) << 41;
    return true;
}

static bool drop_wait(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    if (!in->ctl.wait)
        return false;
    c->hi &= ~(UINT64_C(63) << 52);
    return true;
}

static bool drop_scoreboard(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    if (in->ctl.wbarrier == 7 || turing_op_pipe((turing_op_t)in->op) == TURING_PIPE_TENSOR)
        return false; /* HMMA finishes in order: one scoreboard stands for many */
    c->hi |= UINT64_C(7) << 46;
    return true;
}

/* A bit of the constant of an XOR, or of a shared-memory offset. */
static bool shift_swizzle(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    if (in->op == TURING_LOP3 && in->m.lut == 0x3c && in->src[1].kind == TURING_IMM) {
        c->lo ^= UINT64_C(1) << (32 + 4 + random_word(state) % 4);
        return true;
    }
    if (in->op == TURING_LDSM || in->op == TURING_STS || in->op == TURING_LDS) {
        c->lo ^= UINT64_C(1) << (40 + 4 + random_word(state) % 4);
        return true;
    }
    return false;
}

/* A bit of the number of a register that is read. */
static bool flip_operand(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    const turing_pipe_t pipe = turing_op_pipe((turing_op_t)in->op);
    if (pipe == TURING_PIPE_CONTROL || !in->n_src)
        return false;
    const unsigned bit = pipe == TURING_PIPE_TENSOR ? 1 + random_word(state) % 4 : random_word(state) % 5;
    if (in->src[0].kind == TURING_REG && in->src[0].reg != TURING_RZ && in->src[0].reg == (c->lo >> 24 & 255))
        c->lo ^= UINT64_C(1) << (24 + bit);
    else if (in->src[0].kind == TURING_REG && in->src[0].reg != TURING_RZ && in->src[0].reg == (c->lo >> 32 & 255))
        c->lo ^= UINT64_C(1) << (32 + bit);
    else
        return false;
    return true;
}

/* A store or load one size wider. */
static bool widen_access(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    const bool memory = in->op == TURING_STG || in->op == TURING_ST || in->op == TURING_STS || in->op == TURING_LDG ||
                        in->op == TURING_LDS;
    if (!memory || in->mem.bytes == 16)
        return false;
    c->hi = (c->hi & ~(UINT64_C(7) << 9)) | (uint64_t)(in->mem.bytes == 8 ? 6 : in->mem.bytes == 4 ? 5 : 4) << 9;
    return true;
}

/* The predicate that guards an access at the edge. */
static bool drop_guard(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    const bool global = in->op == TURING_STG || in->op == TURING_LDG || in->op == TURING_LD || in->op == TURING_ST;
    if (!global || in->guard.reg == TURING_PT)
        return false;
    c->lo |= UINT64_C(7) << 12;
    c->lo &= ~(UINT64_C(1) << 15);
    return true;
}

/* Less for greater, and so on. */
static bool flip_comparison(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    if (in->op != TURING_ISETP)
        return false;
    c->hi ^= UINT64_C(7) << 12;
    return true;
}

/* A multiply that is left out. */
static bool drop_multiply(const turing_insn_t *in, uint64_t *state, code_t *c)
{
    (void)state;
    if (in->op != TURING_HMMA_1688)
        return false;
    *c = (code_t){0x7918, control_bits(in)};
    return true;
}

static const struct {
    const char *name;
    bool (*apply)(const turing_insn_t *in, uint64_t *state, code_t *c);
    uint32_t most;  /* per kernel */
    uint32_t floor; /* percent to be found: some 8 less than when it was set */
} faults[] = {
    {"barrier dropped", drop_barrier, 8, 70},
    {"stall shortened", shorten_stall, 24, 60},
    {"wait dropped", drop_wait, 32, 72},
    {"scoreboard dropped", drop_scoreboard, 24, 82},
    {"swizzle shifted", shift_swizzle, 32, 92},
    {"operand bit flipped", flip_operand, 32, 87},
    {"access widened", widen_access, 12, 92},
    {"guard dropped", drop_guard, 16, 62},
    {"comparison flipped", flip_comparison, 16, 66},
    {"multiply dropped", drop_multiply, 8, 88},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static bool is_found(const turing_kernel_t *k, const kernel_t *t, uint32_t at, code_t c, uint64_t limit,
                     const run_t right[DEPTHS])
{
    turing_insn_t *copy = malloc(k->n_insns * sizeof *copy);
    if (!copy)
        exit(1);
    memcpy(copy, k->insns, k->n_insns * sizeof *copy);
    bool found = !turing_decode(&copy[at], c.lo, c.hi, k->insns[at].addr, NULL);
    for (int i = 0; i < DEPTHS && !found; i++) {
        turing_kernel_t wrong = *k;
        wrong.insns = copy;
        run_t r = run(&wrong, t, depths[i], limit, NULL);
        found = !r.ok || r.found.first[0] || memcmp(r.d, right[i].d, right[i].bytes);
        free(r.d);
    }
    free(copy);
    return found;
}

static void mutate(const turing_kernel_t *k, const kernel_t *t, uint32_t tried[FAULTS], uint32_t found[FAULTS],
                   bool verbose)
{
    turing_counters_t counters;
    run_t plain = run(k, t, depths[0], 0, &counters), right[DEPTHS];
    for (int i = 0; i < DEPTHS; i++) {
        right[i] = run(k, t, depths[i], 0, NULL);
        CHECK(right[i].ok && !right[i].found.first[0], "%s: %s%s", k->name, right[i].err.text, right[i].found.first);
    }
    CHECK(plain.ok && !memcmp(plain.d, right[0].d, plain.bytes), "%s: checkers change the result", k->name);
    const uint64_t limit = 4 * counters.total.issued + 10000;
    uint64_t state = 99;
    for (int f = 0; f < FAULTS && plain.ok; f++) {
        uint32_t sites = 0;
        for (int pass = 0; pass < 2; pass++) {
            /* first count the sites, then take them evenly */
            const uint32_t step = pass && sites > faults[f].most ? (sites + faults[f].most - 1) / faults[f].most : 1;
            uint32_t site = 0;
            for (uint32_t i = 0; i < k->n_insns; i++) {
                const turing_insn_t *in = &k->insns[i];
                code_t c = {in->raw[0], in->raw[1]};
                const turing_count_t *n = &counters.insn[i];
                if (n->issued == n->predicated_off || !faults[f].apply(in, &state, &c))
                    continue;
                if (pass && site % step == 0) {
                    tried[f]++;
                    bool hit = is_found(k, t, i, c, limit, right);
                    found[f] += hit;
                    if (!hit && verbose) {
                        char text[TURING_TEXT_MAX];
                        turing_disasm(in, text);
                        printf("    not found: %s, %s+0x%x %s\n", faults[f].name, k->name, in->addr, text);
                    }
                }
                site++;
            }
            sites = site;
        }
    }
    turing_counters_free(&counters);
    free(plain.d);
    for (int i = 0; i < DEPTHS; i++)
        free(right[i].d);
}

int main(int argc, char **argv)
{
    uint32_t tried[FAULTS] = {0}, found[FAULTS] = {0}, all_tried = 0, all_found = 0;
    if (argc < 2)
        return 2;
    for (int i = 1; i < argc; i++) {
        char path[1024];
        const char *symbol = split_image(argv[i], path, sizeof path);
        const kernel_t *t = symbol ? kernel_of(symbol) : NULL;
        if (!t)
            return 2;
        turing_module_t *module = open_or_die(path);
        mutate(find_or_die(module, symbol), t, tried, found, getenv("VERBOSE") != NULL);
        turing_module_close(module);
    }
    for (int f = 0; f < FAULTS; f++) {
        printf("%-20s %4u of %4u found\n", faults[f].name, found[f], tried[f]);
        CHECK(tried[f] && found[f] * 100 >= faults[f].floor * tried[f], "%s: less than %u%%", faults[f].name,
              faults[f].floor);
        all_tried += tried[f];
        all_found += found[f];
    }
    printf("%-20s %4u of %4u found\n", "all", all_found, all_tried);
    CHECK(all_found * 100 >= 85 * all_tried, "%u of %u", all_found, all_tried);
    return failures != 0;
}
