/* SPDX-License-Identifier: MIT */
/*
 * turing_latency_test [--table] FILE... - no result of fixed latency is read sooner in ptxas's code than latency.c
 * says: all straight code of all kernels of cubins and fatbins, executed or not. Files without code for sm_75 are
 * passed over. --table prints the least distance by file of registers, producer and reader, how often the pair was met,
 * and what latency.c says.
 */
#include "turing_test.h"

#include "latency.h"

enum { SLOT_UR = 256, SLOT_P = 320, SLOT_UP = 328, SLOTS = 336, READS = 6 };

typedef struct write {
    const turing_insn_t *insn; /* NULL: nobody, or a unit of variable latency */
    uint64_t at;
} write_t;

static const uint16_t first_slot[TURING_FILE_COUNT] = {0, SLOT_UR, SLOT_P, SLOT_UP, SLOTS};
static const char *const reads[READS] = {"register", "uniform register", "predicate", "uniform predicate",
                                         "guard",    "uniform guard"};
static const char *const units[UNITS] = {"ALU",  "IMAD",   "IMAD.WIDE", "float",   "half",   "uniform", "ULDC",
                                         "CS2R", "memory", "XU",        "control", "tensor", "double"};
static struct {
    unsigned least, needed;
    uint64_t met;
} pairs[READS][UNIT_FIXED][UNITS];

static void look(const turing_kernel_t *k, const turing_insn_t *in, const turing_access_t *a, const write_t *w,
                 uint64_t now)
{
    const bool predicate = a->file == TURING_FILE_P || a->file == TURING_FILE_UP;
    const station_t from = emu_station(w->insn), to = emu_station(in);
    const bool is_guard =
        predicate &&
        ((in->guard.reg == a->first && in->guard.uniform == (a->file == TURING_FILE_UP)) || to.unit == UNIT_CONTROL);
    /* written where the reader is switched off */
    if (w->insn->guard.reg != TURING_PT && w->insn->guard.reg == in->guard.reg && w->insn->guard.neg != in->guard.neg)
        return;
    const unsigned distance = (unsigned)(now - w->at),
                   need = emu_latency((unit_t)from.unit, to, (turing_file_t)a->file, is_guard);
    const int read = is_guard ? (a->file == TURING_FILE_P ? 4 : 5) : a->file;
    if (!pairs[read][from.unit][to.unit].met++ || distance < pairs[read][from.unit][to.unit].least)
        pairs[read][from.unit][to.unit].least = distance;
    pairs[read][from.unit][to.unit].needed = need;
    char one[TURING_TEXT_MAX], other[TURING_TEXT_MAX];
    turing_disasm(w->insn, one);
    turing_disasm(in, other);
    CHECK(distance >= need, "%s+0x%x: %s reads what %s wrote %u cycles before, not %u", k->name, in->addr, other, one,
          distance, need);
}

/* Code addresses that other code jumps to, or returns to. */
static uint8_t *entries(const turing_kernel_t *k)
{
    uint8_t *entry = calloc(k->n_insns + 1, 1);
    for (uint32_t i = 0; entry && i < k->n_insns; i++) {
        const turing_insn_t *in = &k->insns[i];
        if (in->target >= 0 && in->target / TURING_INSN_BYTES < k->n_insns)
            entry[in->target / TURING_INSN_BYTES] = 1;
    }
    return entry;
}

static void sweep(const turing_kernel_t *k)
{
    static write_t last[SLOTS];
    uint8_t *entry = entries(k);
    uint64_t now = 0;
    for (uint32_t i = 0; entry && i < k->n_insns; i++) {
        const turing_insn_t *in = &k->insns[i];
        const turing_op_t op = (turing_op_t)in->op;
        turing_access_t access[TURING_ACCESS_MAX];
        const int n = turing_insn_access(in, access);
        if (entry[i])
            memset(last, 0, sizeof last);
        for (int write = 0; write < 2; write++)
            for (int a = 0; a < n; a++)
                for (unsigned r = 0; access[a].write == write && access[a].file != TURING_FILE_B && r < access[a].count;
                     r++) {
                    write_t *w = &last[first_slot[access[a].file] + access[a].first + r];
                    if (write)
                        *w = (write_t){emu_station(in).unit < UNIT_FIXED ? in : NULL, now};
                    else if (w->insn)
                        look(k, in, &access[a], w, now);
                }
        now += op == TURING_ERRBAR ? 16 : in->ctl.stall ? in->ctl.stall : 1;
        /* where another warp's or lane's code may come between, or control does not go on */
        const bool goes_on = turing_op_pipe(op) != TURING_PIPE_CONTROL || op == TURING_NOP || op == TURING_DEPBAR ||
                             op == TURING_BSSY || op == TURING_BMOV || op == TURING_BAR ||
                             ((op == TURING_BRA || op == TURING_EXIT) && in->guard.reg != TURING_PT);
        if (!goes_on)
            memset(last, 0, sizeof last);
    }
    memset(last, 0, sizeof last);
    free(entry);
}

int main(int argc, char **argv)
{
    const bool table = argc > 1 && !strcmp(argv[1], "--table");
    unsigned kernels = 0;
    for (int f = table ? 2 : 1; f < argc; f++) {
        turing_module_t *module = turing_module_open_file(argv[f], NULL);
        const turing_kernel_t *k;
        for (size_t i = 0; module && (k = turing_module_kernel(module, i)); i++, kernels++)
            if (!k->unusable)
                sweep(k);
        turing_module_close(module);
    }
    for (int r = 0; table && r < READS; r++)
        for (int from = 0; from < UNIT_FIXED; from++)
            for (int to = 0; to < UNITS; to++)
                if (pairs[r][from][to].met)
                    printf("%-17s of %-9s read by %-9s: least %3u, of %llu, needs %u\n", reads[r], units[from],
                           units[to], pairs[r][from][to].least, (unsigned long long)pairs[r][from][to].met,
                           pairs[r][from][to].needed);
    printf("%u kernels\n", kernels);
    CHECK(kernels, "no kernel");
    return failures != 0;
}
