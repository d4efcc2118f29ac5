/* SPDX-License-Identifier: MIT */
/* turing run FILE - runs a kernel of any cubin as a small text says. */
#include "turing_run.h"

#include "launch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: turing run FILE\n"
    "\n"
    "Runs a kernel of any cubin on an emulated T4 as a text says. A line of FILE is one statement; # begins\n"
    "a comment; paths are relative to the working folder.\n"
    "\n"
    "  cubin PATH                      cubin or fatbin\n"
    "  kernel NAME                     may be left out where there is only one\n"
    "  grid X [Y [Z]]                  blocks, 1 1 1\n"
    "  block X [Y [Z]]                 threads, 32 1 1\n"
    "  shared BYTES                    dynamic shared memory\n"
    "  tensor turing | hopper          rounding of HMMA\n"
    "  threads N                       of the host\n"
    "  checks all | none | memory race schedule convergence\n"
    "  buffer NAME TYPE COUNT INIT     device memory; TYPE is u8 u16 u32 i32 f16 f32;\n"
    "                                  INIT is none (never written), fill V, ramp,\n"
    "                                  random SEED LOW HIGH, or file PATH\n"
    "  arg NAME [+BYTES] | TYPE VALUE  the next parameter: an address, or a scalar\n"
    "                                  u32 i32 u64 i64 f16 f32\n"
    "  print NAME [FIRST [COUNT]]      after the run\n"
    "  dump NAME PATH                  after the run, as raw bytes\n"
    "  counters                        what the kernel did\n"
    "  lines                           the same by source line\n"
    "  time                            how long a model says that a T4 would take\n"
    "\n"
    "Exit status 0: ran, nothing found; 1: violations; 2: could not run.\n";

enum { MOST_BUFFERS = 64, MOST_WORDS = 16, MOST_OUTPUTS = 64, LINE = 1024 };

typedef struct buffer {
    char name[64];
    char type[8];
    size_t count;
    uint64_t address;
} buffer_t;

typedef struct output {
    size_t buffer, first, count;
    char path[512]; /* empty: print */
} output_t;

typedef struct job {
    turing_module_t *module;
    const turing_kernel_t *kernel;
    turing_memory_t *mem;
    turing_launch_t launch;
    uint8_t params[4096];
    uint32_t n_args;
    buffer_t buffer[MOST_BUFFERS];
    size_t n_buffers;
    output_t output[MOST_OUTPUTS];
    size_t n_outputs;
    bool counters, lines, time;
    const char *path;
    unsigned line;
} job_t;

static bool complain(const job_t *job, const char *what, const char *detail)
{
    fprintf(stderr, "turing: %s:%u: %s%s%s\n", job->path, job->line, what, detail ? ": " : "", detail ? detail : "");
    return false;
}

/* ---- values ------------------------------------------------------------------------ */

static size_t size_of(const char *type)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = {{"u8", 1}, {"u16", 2}, {"f16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4}, {"u64", 8}, {"i64", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].name))
            return types[i].size;
    return 0;
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31;
    double m = h & 1023, v = e == 31 ? (m != 0 ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static uint16_t half_bits(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    v = fabs(v);
    if (isnan(v))
        return 0x7fff;
    if (v >= 65520)
        return sign | 0x7c00;
    int e;
    frexp(v, &e);
    if (e < -13)
        e = -13;
    long m = lrint(ldexp(v, 11 - e)); /* with the hidden bit, which lifts the exponent by one */
    return sign | (uint16_t)(((e + 13) << 10) + m);
}

static void encode(const char *type, double v, void *out)
{
    const float f = (float)v;
    const uint16_t h = half_bits(v);
    const uint64_t u = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
    if (!strcmp(type, "f32"))
        memcpy(out, &f, 4);
    else if (!strcmp(type, "f16"))
        memcpy(out, &h, 2);
    else
        memcpy(out, &u, size_of(type));
}

static void print_value(const char *type, const void *p)
{
    uint64_t u = 0;
    float f;
    memcpy(&u, p, size_of(type));
    memcpy(&f, &u, 4);
    if (!strcmp(type, "f32"))
        printf(" %.9g", (double)f);
    else if (!strcmp(type, "f16"))
        printf(" %.6g", half_value((uint16_t)u));
    else if (!strcmp(type, "i32"))
        printf(" %" PRId32, (int32_t)u);
    else
        printf(" %" PRIu64, u);
}

/* ---- statements ------------------------------------------------------------------------ */

static buffer_t *find_buffer(job_t *job, const char *name)
{
    for (size_t i = 0; i < job->n_buffers; i++)
        if (!strcmp(job->buffer[i].name, name))
            return &job->buffer[i];
    return NULL;
}

static bool load_file(const char *path, uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "rb");
    bool ok = f && fread(data, 1, size, f) == size;
    if (f)
        fclose(f);
    return ok;
}

static bool add_buffer(job_t *job, int n, char **w)
{
    buffer_t *b = &job->buffer[job->n_buffers];
    if (n < 5 || job->n_buffers == MOST_BUFFERS || strlen(w[1]) >= sizeof b->name || find_buffer(job, w[1]))
        return complain(job, "buffer NAME TYPE COUNT INIT", NULL);
    const size_t size = size_of(w[2]);
    *b = (buffer_t){.count = strtoull(w[3], NULL, 0)};
    if (!size || !b->count)
        return complain(job, "unknown type or no elements", w[2]);
    strcpy(b->name, w[1]);
    strcpy(b->type, w[2]);
    const size_t bytes = size * b->count;
    b->address = turing_memory_alloc(job->mem, bytes);
    uint8_t *data = calloc(b->count, size);
    if (!b->address || !data) {
        free(data);
        return complain(job, "out of memory", w[1]);
    }
    job->n_buffers++;
    bool ok = true, none = !strcmp(w[4], "none");
    if (!strcmp(w[4], "fill") && n == 6)
        for (size_t i = 0; i < b->count; i++)
            encode(b->type, strtod(w[5], NULL), data + i * size);
    else if (!strcmp(w[4], "ramp"))
        for (size_t i = 0; i < b->count; i++)
            encode(b->type, (double)i, data + i * size);
    else if (!strcmp(w[4], "random") && n == 8) {
        uint64_t state = strtoull(w[5], NULL, 0) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        const double low = strtod(w[6], NULL), high = strtod(w[7], NULL);
        for (size_t i = 0; i < b->count; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            encode(b->type, low + (high - low) * ldexp((double)(state >> 11), -53), data + i * size);
        }
    } else if (!strcmp(w[4], "file") && n == 6)
        ok = load_file(w[5], data, bytes) || complain(job, "cannot read enough bytes", w[5]);
    else if (!none)
        ok = complain(job, "unknown INIT", w[4]);
    if (ok && !none)
        turing_memory_write(job->mem, b->address, data, bytes, NULL);
    free(data);
    return ok;
}

static bool add_arg(job_t *job, int n, char **w)
{
    if (!job->kernel)
        return complain(job, "arg before kernel", NULL);
    if (n < 2 || job->n_args == job->kernel->n_params)
        return complain(job, "arg: too few words, or more than the kernel has parameters", NULL);
    const turing_param_t *p = &job->kernel->params[job->n_args];
    if (p->offset + p->size > sizeof job->params)
        return complain(job, "too many parameter bytes", NULL);
    const buffer_t *b = find_buffer(job, w[1]);
    if (b) {
        const uint64_t address = b->address + (n > 2 ? strtoull(w[2], NULL, 0) : 0);
        if (p->size != 8)
            return complain(job, "this parameter is no address", w[1]);
        memcpy(job->params + p->offset, &address, 8);
    } else {
        const size_t size = size_of(w[1]);
        if (!size || n != 3)
            return complain(job, "neither a buffer nor TYPE VALUE", w[1]);
        if (p->size != size)
            return complain(job, "this parameter has another size", w[1]);
        if (w[1][0] == 'f')
            encode(w[1], strtod(w[2], NULL), job->params + p->offset);
        else {
            const uint64_t u = w[2][0] == '-' ? (uint64_t)strtoll(w[2], NULL, 0) : strtoull(w[2], NULL, 0);
            memcpy(job->params + p->offset, &u, size);
        }
    }
    job->n_args++;
    return true;
}

static bool set_checks(job_t *job, int n, char **w)
{
    static const char *const names[] = {"memory", "race", "schedule", "convergence"};
    for (int i = 1; i < n; i++) {
        unsigned bit = 0;
        for (unsigned k = 0; k < 4; k++)
            bit |= strcmp(w[i], names[k]) ? 0 : 1u << k;
        if (!strcmp(w[i], "all"))
            bit = TURING_CHECK_ALL;
        else if (!bit && strcmp(w[i], "none"))
            return complain(job, "unknown check", w[i]);
        job->launch.checks |= bit;
    }
    return true;
}

static void dimensions(uint32_t to[3], int n, char **w)
{
    for (int i = 0; i < 3; i++)
        to[i] = i + 1 < n ? (uint32_t)strtoul(w[i + 1], NULL, 0) : 1;
}

static bool add_output(job_t *job, int n, char **w)
{
    const buffer_t *b = n > 1 ? find_buffer(job, w[1]) : NULL;
    if (!b || job->n_outputs == MOST_OUTPUTS)
        return complain(job, "no such buffer", n > 1 ? w[1] : NULL);
    output_t *o = &job->output[job->n_outputs++];
    *o = (output_t){.buffer = (size_t)(b - job->buffer), .count = b->count};
    if (!strcmp(w[0], "dump")) {
        if (n != 3 || strlen(w[2]) >= sizeof o->path)
            return complain(job, "dump NAME PATH", NULL);
        strcpy(o->path, w[2]);
        return true;
    }
    if (n > 2)
        o->first = strtoull(w[2], NULL, 0);
    if (o->first > b->count)
        o->first = b->count;
    o->count -= o->first;
    if (n > 3 && strtoull(w[3], NULL, 0) < o->count)
        o->count = strtoull(w[3], NULL, 0);
    return true;
}

static bool open_cubin(job_t *job, const char *path)
{
    turing_error_t err;
    if (job->module)
        return complain(job, "a second cubin", path);
    job->module = turing_module_open_file(path, &err);
    if (!job->module)
        return complain(job, "cannot open", err.text);
    if (turing_module_kernel_count(job->module) == 1)
        job->kernel = turing_module_kernel(job->module, 0);
    return true;
}

static bool statement(job_t *job, int n, char **w)
{
    if (!strcmp(w[0], "cubin") && n == 2)
        return open_cubin(job, w[1]);
    if (!strcmp(w[0], "kernel") && n == 2) {
        job->kernel = job->module ? turing_module_find(job->module, w[1]) : NULL;
        return job->kernel || complain(job, "no such kernel", w[1]);
    }
    if (!strcmp(w[0], "grid"))
        dimensions(job->launch.grid, n, w);
    else if (!strcmp(w[0], "block"))
        dimensions(job->launch.block, n, w);
    else if (!strcmp(w[0], "shared") && n == 2)
        job->launch.shared_bytes = (uint32_t)strtoul(w[1], NULL, 0);
    else if (!strcmp(w[0], "threads") && n == 2)
        job->launch.threads = (unsigned)strtoul(w[1], NULL, 0);
    else if (!strcmp(w[0], "tensor") && n == 2)
        job->launch.tensor = strcmp(w[1], "hopper") ? TURING_TENSOR_TURING : TURING_TENSOR_HOPPER;
    else if (!strcmp(w[0], "checks"))
        return set_checks(job, n, w);
    else if (!strcmp(w[0], "buffer"))
        return add_buffer(job, n, w);
    else if (!strcmp(w[0], "arg"))
        return add_arg(job, n, w);
    else if (!strcmp(w[0], "print") || !strcmp(w[0], "dump"))
        return add_output(job, n, w);
    else if (!strcmp(w[0], "counters"))
        job->counters = true;
    else if (!strcmp(w[0], "lines"))
        job->lines = true;
    else if (!strcmp(w[0], "time"))
        job->time = true;
    else
        return complain(job, "unknown statement", w[0]);
    return true;
}

static bool read_job(job_t *job)
{
    FILE *f = fopen(job->path, "r");
    if (!f)
        return complain(job, "cannot open", NULL);
    bool ok = true;
    char line[LINE];
    while (ok && fgets(line, sizeof line, f)) {
        char *w[MOST_WORDS], *comment = strchr(line, '#');
        int n = 0;
        job->line++;
        if (comment)
            *comment = 0;
        for (char *p = strtok(line, " \t\r\n"); p && n < MOST_WORDS; p = strtok(NULL, " \t\r\n"))
            w[n++] = p;
        if (n)
            ok = statement(job, n, w);
    }
    fclose(f);
    if (ok && !job->kernel)
        ok = complain(job, "no kernel named", NULL);
    if (ok && job->n_args != job->kernel->n_params)
        ok = complain(job, "too few arg statements for", job->kernel->name);
    return ok;
}

/* ---- results ---------------------------------------------------------------------------------- */

static void print_violation(void *user, const turing_violation_t *v)
{
    (void)user;
    char text[1024];
    turing_violation_text(v, text, sizeof text);
    printf("%s\n", text);
}

static void print_counters(const job_t *job, const turing_counters_t *c)
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

static void print_time(const turing_time_t *t)
{
    const double percent = t->cycles > 0 ? 100 / t->cycles : 0;
    printf("modelled on a T4 at %d MHz, not measured:\n", TURING_T4_MHZ);
    printf("  time                %.0f cycles, %.2f us\n", t->cycles, t->cycles / TURING_T4_MHZ);
    printf("  start-up, not in it up to %.2f us warm, %.2f us cold\n", t->warm_start / TURING_T4_MHZ,
           t->cold_start / TURING_T4_MHZ);
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

static void print_line(void *user, turing_line_t line, const turing_count_t *c)
{
    (void)user;
    printf("  %s:%u: issued %" PRIu64 ", shared %" PRIu64 "/%" PRIu64 ", sectors %" PRIu64 "/%" PRIu64 "\n",
           line.file ? line.file : "?", line.line, c->issued, c->shared_waves, c->shared_ideal, c->global_sectors,
           c->global_ideal);
}

static bool write_output(job_t *job, const output_t *o)
{
    const buffer_t *b = &job->buffer[o->buffer];
    const size_t size = size_of(b->type);
    uint8_t *data = malloc(o->count * size + 1);
    bool ok = data && turing_memory_read(job->mem, b->address + o->first * size, data, o->count * size, NULL);
    if (ok && o->path[0]) {
        FILE *f = fopen(o->path, "wb");
        ok = f && fwrite(data, size, o->count, f) == o->count;
        ok = f && !fclose(f) && ok;
        if (!ok)
            complain(job, "cannot write", o->path);
    } else if (ok) {
        printf("%s[%zu..%zu]:", b->name, o->first, o->first + o->count);
        for (size_t i = 0; i < o->count; i++)
            print_value(b->type, data + i * size);
        printf("\n");
    }
    free(data);
    return ok;
}

static int run_job(job_t *job)
{
    turing_counters_t counters;
    turing_time_t time;
    turing_error_t err = {""};
    uint64_t violations = 0;
    if (job->counters || job->lines)
        job->launch.counters = &counters;
    if (job->time)
        job->launch.time = &time;
    job->launch.params = job->params;
    job->launch.param_bytes = job->kernel->param_bytes;
    job->launch.report = print_violation;
    if (!turing_launch(job->kernel, job->mem, &job->launch, &violations, &err)) {
        fprintf(stderr, "turing: %s\n", err.text);
        return 2;
    }
    bool ok = true;
    for (size_t i = 0; i < job->n_outputs; i++)
        ok = write_output(job, &job->output[i]) && ok;
    if (job->counters)
        print_counters(job, &counters);
    if (job->time)
        print_time(&time);
    if (job->lines)
        turing_counters_lines(&counters, job->kernel, print_line, NULL);
    if (job->launch.counters)
        turing_counters_free(&counters);
    return !ok ? 2 : violations ? 1 : 0;
}

int turing_run(int argc, char **argv)
{
    if (argc == 1 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))) {
        fputs(help, stdout);
        return 0;
    }
    if (argc != 1 || argv[0][0] == '-') {
        fputs("turing: run takes one FILE. Try turing run --help.\n", stderr);
        return 2;
    }
    job_t *job = calloc(1, sizeof *job);
    if (!job)
        return 2;
    job->path = argv[0];
    job->launch = (turing_launch_t){.grid = {1, 1, 1}, .block = {32, 1, 1}};
    job->mem = turing_memory_create(TURING_MEMORY_TRACK);
    const int status = job->mem && read_job(job) ? run_job(job) : 2;
    turing_memory_destroy(job->mem);
    if (job->module)
        turing_module_close(job->module);
    free(job);
    return status;
}
