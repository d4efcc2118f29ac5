/* SPDX-License-Identifier: MIT */
/*
 * turing_check_test CUBIN - every checker bites: faults written into kernels of
 * turing_kernels.cu are reported as what they are, at the right address, and
 * the same kernels without the fault are clean.
 */
#include "turing_test.h"

static turing_module_t *module;

typedef struct outcome {
    bool ok;
    found_t found;
    turing_violation_t first;
    char advice[256];
    turing_error_t err;
} outcome_t;

static void keep(void *user, const turing_violation_t *v)
{
    outcome_t *o = user;
    note(&o->found, v);
    if (!o->first.count) {
        o->first = *v;
        snprintf(o->advice, sizeof o->advice, "%s", v->advice);
    }
}

static outcome_t run(const turing_kernel_t *k, turing_memory_t *mem, uint32_t grid, uint32_t block,
                     const uint64_t *args, unsigned checks)
{
    const params_t params = params_of(k, args);
    outcome_t o = {.err = {""}};
    turing_launch_t l = {.grid = {grid, 1, 1},
                         .block = {block, 1, 1},
                         .params = params.bytes,
                         .param_bytes = k->param_bytes,
                         .checks = checks,
                         .report = keep,
                         .user = &o,
                         .max_warp_instructions = 10 * 1000 * 1000};
    o.ok = turing_launch(k, mem, &l, NULL, &o.err);
    return o;
}

static uint64_t others(const outcome_t *o, turing_violation_kind_t kind)
{
    uint64_t n = 0;
    for (int i = 0; i < TURING_VIOLATION_COUNT; i++)
        n += i == (int)kind ? 0 : o->found.count[i];
    return n;
}

static void expect(const char *name, uint32_t fault, const outcome_t *o, turing_violation_kind_t kind)
{
    CHECK(o->found.count[kind] > 0, "%s %u: no %s; %s%s", name, fault, turing_violation_name(kind), o->found.first,
          o->err.text);
    CHECK(!others(o, kind), "%s %u: %s", name, fault, o->found.first);
    CHECK(o->first.file && strstr(o->first.file, "turing_kernels.cu") && o->first.line, "%s %u: no source line", name,
          fault);
    CHECK(o->advice[0], "%s %u: no advice", name, fault);
}

static void expect_clean(const char *name, uint32_t fault, const outcome_t *o)
{
    CHECK(o->ok && !o->found.first[0], "%s %u: %s%s", name, fault, o->found.first, o->err.text);
}

/* ---- memory -------------------------------------------------------------------------- */

static void memory(void)
{
    static const struct {
        turing_violation_kind_t kind;
        turing_space_t space;
        int64_t offset; /* from the buffer, or in shared memory */
        uint32_t lane;
    } want[7] = {
        [1] = {TURING_OUT_OF_BOUNDS, TURING_SPACE_GLOBAL, 256, 0},
        [2] = {TURING_MISALIGNED, TURING_SPACE_GLOBAL, 14, 3},
        [3] = {TURING_UNINITIALISED, TURING_SPACE_GLOBAL, 0, 0},
        [4] = {TURING_UNINITIALISED, TURING_SPACE_SHARED, 4, 0},
        [5] = {TURING_OUT_OF_BOUNDS, TURING_SPACE_SHARED, 256, 16},
        [6] = {TURING_OUT_OF_BOUNDS, TURING_SPACE_GLOBAL, -4, 1},
    };
    for (uint32_t fault = 0; fault < 7; fault++) {
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        const uint64_t d = upload(mem, NULL, 256), unwritten = upload(mem, NULL, 256);
        const uint64_t args[4] = {d, unwritten, 64, fault};
        outcome_t o = run(find_or_die(module, "faulty_memory"), mem, 1, 64, args, TURING_CHECK_MEMORY);
        if (!fault)
            expect_clean("faulty_memory", fault, &o);
        else {
            expect("faulty_memory", fault, &o, want[fault].kind);
            const uint64_t base = want[fault].space == TURING_SPACE_SHARED ? 0 : fault == 3 ? unwritten : d;
            CHECK(o.first.space == want[fault].space && o.first.address == base + (uint64_t)want[fault].offset &&
                      o.first.lane == want[fault].lane,
                  "fault %u: %s", fault, o.found.first);
        }
        turing_memory_destroy(mem);
    }
}

/* Lanes that pass no row of an ldmatrix must still pass a valid address: an error, for what becomes of it is undefined.
 */
static void unused_rows(void)
{
    for (uint32_t fault = 7; fault < 9; fault++) {
        turing_memory_t *mem = turing_memory_create(0);
        const uint64_t args[4] = {upload(mem, NULL, 256), 0, 64, fault};
        outcome_t o = run(find_or_die(module, "faulty_memory"), mem, 1, 64, args, 0);
        if (fault == 7)
            CHECK(!o.ok && strstr(o.err.text, "lane 16: shared address") && strstr(o.err.text, "out of bounds"), "%s",
                  o.err.text);
        else
            expect_clean("faulty_memory", fault, &o);
        turing_memory_destroy(mem);
    }
}

/* ---- races ------------------------------------------------------------------------------- */

static void races(void)
{
    for (uint32_t fault = 0; fault < 6; fault++) {
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        const uint64_t args[2] = {upload(mem, NULL, 4 * 256), fault};
        outcome_t o = run(find_or_die(module, "faulty_race"), mem, 2, 128, args, TURING_CHECK_RACE);
        if (fault == 0)
            expect_clean("faulty_race", fault, &o);
        else if (fault == 3 || fault == 4)
            CHECK(o.found.count[TURING_RACE] && o.found.count[TURING_LANE_CONFLICT], "fault %u: %s", fault,
                  o.found.first);
        else {
            expect("faulty_race", fault, &o, TURING_RACE);
            CHECK(o.first.has_other && (fault != 5 || o.first.other_block == 0), "fault %u: %s", fault, o.found.first);
        }
        turing_memory_destroy(mem);
    }
    /* a flag without a fence orders nothing */
    for (uint32_t fence = 0; fence < 2; fence++) {
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        uint32_t zeros[64] = {0};
        const uint64_t args[3] = {upload(mem, zeros, sizeof zeros), upload(mem, zeros, 4), fence};
        outcome_t o = run(find_or_die(module, "in_turn"), mem, 4, 64, args, TURING_CHECK_RACE);
        if (fence)
            expect_clean("in_turn", fence, &o);
        else
            expect("in_turn", fence, &o, TURING_RACE);
        turing_memory_destroy(mem);
    }
}

/* ---- convergence ------------------------------------------------------------------------------ */

static void convergence(void)
{
    for (uint32_t fault = 0; fault < 6; fault++) {
        turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
        uint32_t zeros[64] = {0};
        const uint64_t args[2] = {upload(mem, zeros, sizeof zeros), fault};
        outcome_t o = run(find_or_die(module, "faulty_convergence"), mem, 1, 64, args, TURING_CHECK_CONVERGENCE);
        if (fault == 0)
            expect_clean("faulty_convergence", fault, &o);
        else if (fault == 2) {
            expect("faulty_convergence", fault, &o, TURING_BARRIER_MISMATCH);
            CHECK(!o.ok && strstr(o.err.text, "for ever"), "%s", o.err.text);
        } else
            CHECK(o.found.count[TURING_DIVERGENT], "fault %u: %s%s", fault, o.found.first, o.err.text);
        /* without the checker it is an error, not a guess */
        if (fault == 1 || fault == 3 || fault == 4) {
            outcome_t plain = run(find_or_die(module, "faulty_convergence"), mem, 1, 64, args, 0);
            CHECK(!plain.ok && strstr(plain.err.text, "faulty_convergence+0x"), "fault %u: %s", fault, plain.err.text);
        }
        turing_memory_destroy(mem);
    }
}

/* ---- schedule: control words changed, results the same -------------------------------------------- */

typedef enum change { NO_STALL, NO_WAIT, NO_WRITE_BARRIER, CHANGES } change_t;

/* Alters one control word, if that is a fault.  Memory instructions, HMMA and
 * branches pace their unit with stalls, which is no matter of correctness, and
 * HMMA finishes in order, so that one scoreboard can stand for many. */
static bool alter(turing_insn_t *in, change_t change)
{
    turing_control_t *c = &in->ctl;
    const turing_pipe_t pipe = turing_op_pipe((turing_op_t)in->op);
    switch (change) {
    case NO_STALL:
        if (c->stall < 4 || in->op == TURING_IMAD_WIDE || pipe == TURING_PIPE_LSU || pipe == TURING_PIPE_TENSOR ||
            pipe == TURING_PIPE_CONTROL)
            return false;
        c->stall = 1;
        return true;
    case NO_WAIT:
        if (!c->wait || pipe == TURING_PIPE_TENSOR)
            return false;
        c->wait = 0;
        return true;
    default:
        if (c->wbarrier == 7 || pipe == TURING_PIPE_TENSOR)
            return false;
        c->wbarrier = 7;
        return true;
    }
}

static outcome_t run_gemm(const turing_kernel_t *k, turing_counters_t *counters)
{
    enum { M = 64, K = 64 };
    static uint16_t matrix[M * K];
    turing_memory_t *mem = turing_memory_create(TURING_MEMORY_TRACK);
    const uint64_t pointers[3] = {upload(mem, matrix, sizeof matrix), upload(mem, matrix, sizeof matrix),
                                  upload(mem, NULL, sizeof matrix)};
    const uint32_t sizes[2] = {M, K};
    uint8_t params[32];
    outcome_t o = {.err = {""}};
    memcpy(params, pointers, 24);
    memcpy(params + 24, sizes, 8);
    turing_launch_t l = {.grid = {1, 1, 1},
                         .block = {128, 1, 1},
                         .params = params,
                         .param_bytes = 32,
                         .counters = counters,
                         .checks = counters ? 0 : TURING_CHECK_SCHEDULE,
                         .report = keep,
                         .user = &o};
    o.ok = turing_launch(k, mem, &l, NULL, &o.err);
    turing_memory_destroy(mem);
    return o;
}

static void schedule(void)
{
    const turing_kernel_t *k = find_or_die(module, "gemm_f16");
    turing_counters_t executed;
    outcome_t plain = run_gemm(k, &executed), clean = run_gemm(k, NULL);
    CHECK(plain.ok, "%s", plain.err.text);
    expect_clean("gemm_f16", 0, &clean);
    turing_insn_t *copy = malloc(k->n_insns * sizeof *copy);
    /* Some stalls and waits are longer than they need be, or covered by others. */
    static const uint32_t floor_percent[CHANGES] = {75, 75, 90};
    static const char *const names[CHANGES] = {"stalls", "waits", "write barriers"};
    for (int change = 0; plain.ok && copy && change < CHANGES; change++) {
        uint32_t tried = 0, caught = 0;
        for (uint32_t i = 0; i < k->n_insns; i++) {
            memcpy(copy, k->insns, k->n_insns * sizeof *copy);
            if (executed.insn[i].issued == executed.insn[i].predicated_off || !alter(&copy[i], (change_t)change))
                continue;
            turing_kernel_t wrong = *k;
            wrong.insns = copy;
            outcome_t o = run_gemm(&wrong, NULL);
            tried++;
            caught += o.found.first[0] != 0;
        }
        printf("%s removed: %u, found: %u\n", names[change], tried, caught);
        CHECK(tried && caught * 100 >= floor_percent[change] * tried, "%s: %u of %u", names[change], caught, tried);
    }
    free(copy);
    turing_counters_free(&executed);
}

/* ---- schedule: distances, one by one --------------------------------------------------------------------- */

/* Two instructions and an exit, the second so many cycles after the first: is the stall found too short? */
static bool too_short(const uint64_t first[2], const uint64_t second[2], unsigned distance)
{
    static const uint64_t leave[2] = {0x000000000000794d, 0x000fea0003800000};
    const uint64_t stalls = UINT64_C(15) << (105 - 64);
    turing_kernel_t k = *find_or_die(module, "gemm_f16");
    turing_insn_t insns[3];
    turing_error_t err;
    const uint64_t spaced = (first[1] & ~stalls) | (uint64_t)distance << (105 - 64);
    CHECK(turing_decode(&insns[0], first[0], spaced, 0, &err) &&
              turing_decode(&insns[1], second[0], second[1], 16, &err) &&
              turing_decode(&insns[2], leave[0], leave[1], 32, &err),
          "%s", err.text);
    k.insns = insns;
    k.n_insns = 3;
    k.lines = NULL;
    const outcome_t o = run_gemm(&k, NULL);
    CHECK(o.ok, "%s", o.err.text);
    return o.found.count[TURING_STALL_TOO_SHORT] != 0;
}

static void distances(void)
{
    static const uint64_t wide[2] = {0x0000000502087225, 0x000fc80007800006} /* IMAD.WIDE.U32 R8, P0, R2, R5, R6 */,
                          high[2] = {0x0000000502087227, 0x000fc80007800006} /* IMAD.HI.U32 R8, P0, R2, R5, R6 */,
                          add[2] = {0x0000000502087210, 0x000fc80007f1e0ff} /* IADD3 R8, P0, R2, R5, RZ */,
                          add_x[2] = {0x000000ffff0b7210, 0x000fe400007fe4ff} /* IADD3.X R11, RZ, RZ, RZ, P0, !PT */,
                          imad_x[2] = {0x000000ffff0b7224, 0x000fe400000e06ff} /* IMAD.X R11, RZ, RZ, RZ, P0 */,
                          guarded[2] = {0x000000ffff0b0210, 0x000fe40007ffe0ff} /* @P0 IADD3 R11, RZ, RZ, RZ */,
                          reads[2] = {0x000000ff080b7210, 0x000fe40007ffe0ff} /* IADD3 R11, R8, RZ, RZ */;
    static const struct {
        const char *what;
        const uint64_t *first, *second;
        unsigned need;
    } pairs[] = {{"the carry of IMAD.WIDE to IADD3.X", wide, add_x, 5},
                 {"the carry of IMAD.WIDE to IMAD.X", wide, imad_x, 4},
                 {"the carry of IMAD.HI to IADD3.X", high, add_x, 5},
                 {"the carry of IMAD.HI to IMAD.X", high, imad_x, 4},
                 {"the carry of IADD3 to IADD3.X", add, add_x, 4},
                 {"the carry of IADD3 to IMAD.X", add, imad_x, 5},
                 {"a guard", add, guarded, 12},
                 {"the product of IMAD.WIDE to IADD3", wide, reads, 5},
                 {"a sum to IADD3", add, reads, 4}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK(!too_short(pairs[i].first, pairs[i].second, pairs[i].need), "%s: an alarm after %u cycles", pairs[i].what,
              pairs[i].need);
        CHECK(too_short(pairs[i].first, pairs[i].second, pairs[i].need - 1), "%s: no alarm after %u cycles",
              pairs[i].what, pairs[i].need - 1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    module = open_or_die(argv[1]);
    memory();
    unused_rows();
    races();
    convergence();
    schedule();
    distances();
    turing_module_close(module);
    if (!failures)
        printf("all as expected\n");
    return failures != 0;
}
