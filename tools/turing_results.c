/* SPDX-License-Identifier: MIT */
/* Findings, counts, times, and buffers. */
#include "turing_results.h"

#include "turing_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void print_violation(void *user, const turing_violation_t *v)
{
    (void)user;
    char text[1024];
    turing_violation_text(v, text, sizeof text);
    printf("%s\n", text);
    fflush(stdout);
}

void print_count(void *user, const turing_violation_t *v)
{
    (void)user;
    if (v->count > 1)
        printf("%s: %s+0x%x: %llu times in all\n", turing_violation_name(v->kind), v->kernel, v->code,
               (unsigned long long)v->count);
}

void print_text(void *user, const char *text, size_t bytes)
{
    (void)user;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}

void print_counters(const job_t *job, const turing_counters_t *c)
{
    const turing_count_t *t = &c->total;
    printf("emulated, not measured:\n");
    printf("  warp instructions   %" PRIu64 " (%" PRIu64 " with no lane on)\n", t->issued, t->predicated_off);
    for (int i = 0; i < TURING_PIPE_COUNT; i++)
        if (c->pipe[i])
            printf("    %-17s %" PRIu64 "\n", turing_pipe_name((turing_pipe_t)i), c->pipe[i]);
    printf("  shared wavefronts   %" PRIu64 ", ideal %" PRIu64 "\n", t->shared_waves, t->shared_ideal);
    printf("  global sectors      %" PRIu64 " in %" PRIu64 " requests, ideal %" PRIu64 "; partly stored %" PRIu64 "\n",
           t->global_sectors, t->global_requests, t->global_ideal, t->partial_sectors);
    printf("  bytes               %" PRIu64 " asked for, %" PRIu64 " from L2, %" PRIu64 " distinct\n", t->global_bytes,
           c->l2_bytes, c->dram_bytes);
    printf("  flops of HMMA       %" PRIu64 ", %.1f per distinct byte\n", c->flops, c->intensity);
    printf("  registers           %u; on a T4 %u blocks (%u warps) per SM, limited by %s\n", job->kernel->registers,
           c->occupancy.blocks, c->occupancy.warps, c->occupancy.limit);
    const turing_loop_t *l = &c->loop;
    if (l->found)
        printf("  main loop           0x%x-0x%x, %u instructions; cycles an iteration holds its sub-core: tensor %.0f, "
               "alu %.0f, fma %.0f, half %.0f, uniform %.0f, issue %.0f, stalls %u; and the SM's load/store unit, per "
               "warp: %.0f\n",
               l->first, l->last, l->insns, l->tensor_cycles, l->alu_cycles, l->fma_cycles, l->half_cycles,
               l->uniform_cycles, l->issue_cycles, l->stall_cycles, l->lsu_cycles);
}

void print_time(const turing_time_t *t)
{
    const double percent = t->cycles > 0 ? 100 / t->cycles : 0;
    printf("modelled on a T4 at %d MHz, not measured:\n", TURING_T4_MHZ);
    printf("  time                %.0f cycles, %.2f us\n", t->cycles, t->cycles / TURING_T4_MHZ);
    printf("  start-up, not in it up to %.2f us warm, %.2f us cold\n", t->warm_start / TURING_T4_MHZ,
           t->cold_start / TURING_T4_MHZ);
    printf("  events would say    %.2f us after a pause\n", (t->cycles + t->paused) / TURING_T4_MHZ);
    printf("  busy                tensor cores %.1f%%, load/store units %.1f%%, DRAM %.1f%%, issue %.1f%%\n",
           percent * t->tensor, percent * t->lsu, percent * t->dram,
           percent * (double)t->instructions / (4 * TURING_T4_SMS));
    printf("  L2                  %" PRIu64 " sectors, %.1f%% hits\n", t->l2_sectors,
           t->l2_sectors ? 100 * (double)t->l2_hits / (double)t->l2_sectors : 0);
    printf("  DRAM                %" PRIu64 " bytes read, %" PRIu64 " written\n", t->dram_read, t->dram_written);
    printf("  no issue, for       ");
    for (int i = 0; i < TURING_STALL_COUNT; i++)
        printf("%s%s %.1f%%", i ? ", " : "", turing_stall_name((turing_stall_t)i), percent * t->stall[i]);
    printf("\n");
}

void print_line(void *user, turing_line_t line, const turing_count_t *c)
{
    (void)user;
    printf("  %s:%u: issued %" PRIu64 ", shared %" PRIu64 "/%" PRIu64 ", sectors %" PRIu64 "/%" PRIu64 "\n",
           line.file ? line.file : "?", line.line, c->issued, c->shared_waves, c->shared_ideal, c->global_sectors,
           c->global_ideal);
}

/* Does the buffer hold what was expected? Complains about the first element that differs. */
static bool compare(job_t *job, const output_t *o, const uint8_t *data)
{
    const buffer_t *b = &job->buffer[o->buffer];
    const size_t size = value_size(b->type);
    uint8_t *wanted = o->values ? NULL : malloc(o->count * size + 1);
    if (!o->values && (!wanted || !load_file(o->path, wanted, o->count * size))) {
        free(wanted);
        return complain(job, "cannot read enough bytes", o->path);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < o->count; i++) {
        const double is = value_decode(b->type, data + i * size),
                     want = o->values ? o->values[i] : value_decode(b->type, wanted + i * size);
        if (is == want || (isnan(is) && isnan(want)) || fabs(is - want) <= o->tolerance)
            continue;
        if (!wrong++)
            printf("%s:%u: %s[%zu] is %.9g, expected %.9g", job->path, o->line, b->name, o->first + i, is, want);
    }
    if (wrong)
        printf(" (%zu of %zu elements differ)\n", wrong, o->count);
    free(wanted);
    job->differs = job->differs || wrong;
    return true;
}

static bool write_file(job_t *job, const char *path, const uint8_t *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, bytes, f) == bytes;
    ok = f && !fclose(f) && ok;
    return ok || complain(job, "cannot write", path);
}

static bool write_output(job_t *job, const output_t *o)
{
    const buffer_t *b = &job->buffer[o->buffer];
    const size_t size = value_size(b->type);
    uint8_t *data = malloc(o->count * size + 1);
    bool ok = data && turing_memory_read(job->mem, b->address + o->first * size, data, o->count * size, NULL);
    if (ok && o->what == DUMP)
        ok = write_file(job, o->path, data, o->count * size);
    else if (ok && o->what == EXPECT)
        ok = compare(job, o, data);
    else if (ok) {
        printf("%s[%zu..%zu]:", b->name, o->first, o->first + o->count);
        for (size_t i = 0; i < o->count; i++)
            value_print(b->type, data + i * size);
        printf("\n");
    }
    free(data);
    return ok;
}

bool write_outputs(job_t *job)
{
    bool ok = true;
    for (size_t i = 0; i < job->n_outputs; i++) {
        ok = write_output(job, &job->output[i]) && ok;
        free(job->output[i].values);
    }
    job->n_outputs = 0;
    return ok;
}
