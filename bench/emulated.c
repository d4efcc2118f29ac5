/* SPDX-License-Identifier: MIT */
/*
 * What the emulated T4 counts while it runs the kernels' machine code. These are figures of an
 * emulator, never times: they stand beside measurements, not among them, and say so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "emulated.h"
#include "timing.h"
#include "turing/launch.h"

/* Wavefronts or sectors that were needed, over the fewest that the bytes could need. */
static double ratio(uint64_t actual, uint64_t ideal)
{
    return ideal ? (double)actual / (double)ideal : 0;
}

/* The share of the main loop in which the tensor cores are busy, if nothing but the busiest unit
 * limits it. A sub-core has its own units, but all four share the one for loads and stores. */
static double tensor_share(const turing_loop_t *loop)
{
    const double units[] = {loop->tensor_cycles,  loop->alu_cycles,   loop->fma_cycles,    loop->half_cycles,
                            loop->uniform_cycles, loop->issue_cycles, 4 * loop->lsu_cycles};
    double busiest = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i] > busiest)
            busiest = units[i];
    return busiest > 0 ? 100 * loop->tensor_cycles / busiest : 0;
}

/* X(name in CSV and JSON, column's title, its format, value of the counters `c`). Instructions per HMMA are those of
 * the main loop, as tools/dump_sass.sh has them: the rest of a kernel weighs less, the longer k is. */
#define FIGURES(X)                                                                                                 \
    X("blocks_per_sm", "blk/SM", "%7.0f", (double)c->occupancy.blocks)                                             \
    X("hmma", "HMMA", "%11.0f", (double)c->pipe[TURING_PIPE_TENSOR])                                               \
    X("instructions_per_hmma", "instr/HMMA", "%11.3f", ratio(c->loop.insns, c->loop.pipe[TURING_PIPE_TENSOR]))     \
    X("shared_waves_per_ideal", "shared/ideal", "%13.3f", ratio(c->total.shared_waves, c->total.shared_ideal))     \
    X("global_sectors_per_ideal", "global/ideal", "%13.3f", ratio(c->total.global_sectors, c->total.global_ideal)) \
    X("partial_sectors", "partial st.", "%12.0f", (double)c->total.partial_sectors)                                \
    X("l2_bytes", "L2 bytes", "%12.0f", (double)c->l2_bytes)                                                       \
    X("dram_bytes", "DRAM bytes", "%12.0f", (double)c->dram_bytes)                                                 \
    X("operations_per_dram_byte", "op/DRAM byte", "%13.1f", c->intensity)                                          \
    X("tensor_percent_of_loop", "tensor %", "%9.1f", tensor_share(&c->loop))

static turing_counters_t *counters; /* of the group's contestants */

static void count_group(group_t *g, const problem_t *p, const set_t *sets, int set_count)
{
    (void)set_count;
    for (int i = 0; i < g->count; i++) {
        if (g->contestants[i].result.failure)
            continue;
        internals_count(bench.handle, &counters[i]);
        enqueue(&g->contestants[i], p, &sets[0], sets[0].as[g->contestants[i].form].c, bench.options.alpha,
                bench.options.beta);
        internals_count(bench.handle, NULL);
    }
}

static void print_table(FILE *file, const group_t *g)
{
    fprintf(file, "\n%s, emulated T4\n  %-22s", g->name, "kernel");
#define FIGURE(name, title, format, value) fprintf(file, "%*s", atoi(&format[1]), title);
    FIGURES(FIGURE)
#undef FIGURE
    fprintf(file, " rel error\n");
    for (int i = 0; i < g->count; i++) {
        const gbench_case_t *r = &g->contestants[i].result;
        fprintf(file, "  %-22s", r->name);
        if (r->failure) {
            fprintf(file, " %s\n", r->failure);
            continue;
        }
        const turing_counters_t *c = &counters[i];
#define FIGURE(name, title, format, value) fprintf(file, format, value);
        FIGURES(FIGURE)
#undef FIGURE
        fprintf(file, "   %.1e  %s\n", r->error, r->note ? r->note : "");
    }
}

static void print_csv(FILE *file, const group_t *g)
{
    for (int i = 0; i < g->count; i++) {
        const gbench_case_t *r = &g->contestants[i].result;
        const turing_counters_t *c = &counters[i];
        fprintf(file, "%s,%s,%s", g->name, r->name, r->note ? r->note : "");
#define FIGURE(name, title, format, value) fprintf(file, ",%.6g", r->failure ? 0 : (double)(value));
        FIGURES(FIGURE)
#undef FIGURE
        fprintf(file, ",%.3e,\"%s\"\n", r->error, r->failure ? r->failure : "");
    }
}

static void print_json(FILE *file, const group_t *g)
{
    for (int i = 0; i < g->count; i++) {
        const gbench_case_t *r = &g->contestants[i].result;
        const turing_counters_t *c = &counters[i];
        fprintf(file, "%s\n{\"problem\": \"%s\", \"kernel\": \"%s\"", g->number == 1 && i == 0 ? "" : ",", g->name,
                r->name);
        if (r->note)
            fprintf(file, ", \"note\": \"%s\"", r->note);
        fprintf(file, ", \"images\": \"%s\"", r->images);
        if (r->failure) {
            fprintf(file, ", \"failure\": \"");
            for (const char *text = r->failure; *text; text++)
                fputc(*text == '"' || *text == '\\' ? '\'' : *text, file);
            fprintf(file, "\"}");
            continue;
        }
#define FIGURE(name, title, format, value) fprintf(file, ", \"" name "\": %.6g", (double)(value));
        FIGURES(FIGURE)
#undef FIGURE
        fprintf(file, ", \"relative_error\": %.3e}", r->error);
    }
}

int print_emulated(group_t *groups, int count)
{
    const options_t *o = &bench.options;
    const int json = strcmp(o->format, "json") == 0, csv = strcmp(o->format, "csv") == 0;
    FILE *file = o->out ? fopen(o->out, "w") : stdout;
    int failures = 0;
    if (!file)
        return -1;
    if (json)
        fprintf(file,
                "{\n\"context\": {\n  \"gpu\": \"%s\",\n  \"hgemm\": \"%s\",\n"
                "  \"witness\": \"emulated\",\n  \"alpha\": \"%g\",\n  \"beta\": "
                "\"%g\"\n},\n\"results\": [",
                bench.info.name, version(), (double)o->alpha, (double)o->beta);
    if (csv) {
        fprintf(file, "# witness: emulated\nproblem,kernel,note");
#define FIGURE(name, title, format, value) fprintf(file, "," name);
        FIGURES(FIGURE)
#undef FIGURE
        fprintf(file, ",relative_error,failure\n");
    }
    for (int i = 0; i < count; i++) {
        group_t *g = &groups[i];
        counters = calloc((size_t)g->count, sizeof *counters);
        if (!counters)
            break;
        prove_group(g, count_group);
        (json ? print_json : csv ? print_csv : print_table)(file, g);
        if (o->out && (json || csv))
            print_table(stdout, g);
        fflush(file);
        for (int j = 0; j < g->count; j++) {
            failures += g->contestants[j].result.failure != NULL;
            turing_counters_free(&counters[j]);
        }
        free(counters);
    }
    if (json)
        fprintf(file, "\n]\n}\n");
    if (o->out && fclose(file) != 0)
        return -1;
    return failures;
}
