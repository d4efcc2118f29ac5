/* SPDX-License-Identifier: MIT */
/* turing run FILE - runs kernels of any cubin as a small text says. */
#include "turing_run.h"

#include "turing_job.h"
#include "turing_results.h"
#include "turing_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: turing run FILE\n"
    "\n"
    "Runs kernels of any cubin on an emulated T4 as a text says. A line of FILE is one statement; # begins\n"
    "a comment; paths are relative to the working folder.\n"
    "\n"
    "  cubin PATH                      cubin or fatbin\n"
    "  kernel NAME                     its name, or a part of it that no other has (C++ mangles names);\n"
    "                                  may be left out where there is only one\n"
    "  grid X [Y [Z]]                  blocks, 1 1 1\n"
    "  block X [Y [Z]]                 threads, 32 1 1\n"
    "  shared BYTES                    dynamic shared memory\n"
    "  tensor turing | hopper          rounding of HMMA\n"
    "  threads N                       of the host\n"
    "  limit N                         instructions of a warp, after which it is in an endless loop\n"
    "  checks all | none | memory race schedule convergence\n"
    "  buffer NAME TYPE COUNT INIT     device memory; TYPE is u8 i8 u16 i16 f16 u32 i32 f32 u64 i64 f64;\n"
    "                                  INIT is none (never written), fill V, ramp,\n"
    "                                  random SEED LOW HIGH, or file PATH\n"
    "  symbol NAME TYPE COUNT INIT     the same of a __device__ or __constant__ variable;\n"
    "                                  none leaves it as the cubin has it\n"
    "  arg NAME [+BYTES] | TYPE VALUE  the next parameter: an address, or a scalar; several of these\n"
    "                                  in a line are the members of a struct\n"
    "  arg hex DIGITS                  the next parameter, byte by byte\n"
    "  print NAME [FIRST [COUNT]]      after the launch\n"
    "  dump NAME PATH                  after the launch, as raw bytes\n"
    "  expect NAME FIRST V [V ...]     after the launch: elements from FIRST on are these\n"
    "  expect NAME file PATH [TOL]     or all are those of a file of raw bytes, within TOL\n"
    "  counters                        what the kernel did\n"
    "  lines                           the same by source line\n"
    "  time [dry]                      how long a model says that a T4 would take; dry: without results\n"
    "  clock NAME VALUE                another constant of that model, by its name in src/turing/time.def\n"
    "  launch                          now; further args, and statements that are to change, are for\n"
    "                                  the next launch. Without it there is one at the end\n"
    "\n"
    "Exit status 0: ran, nothing found; 1: violations, or not what was expected; 2: could not run.\n";

/* ---- statements ------------------------------------------------------------------------ */

/* The number that a word is: none is taken for 0. */
static bool read_count(const job_t *job, const char *word, uint64_t most, uint64_t *count)
{
    return count_parse(word, most, count) || complain(job, "no number that can be here", word);
}

static bool read_real(const job_t *job, const char *word, double *value)
{
    return real_parse(word, value) || complain(job, "no number", word);
}

static buffer_t *find_buffer(job_t *job, const char *name)
{
    for (size_t i = 0; i < job->n_buffers; i++)
        if (!strcmp(job->buffer[i].name, name))
            return &job->buffer[i];
    return NULL;
}

/* The kernels whose names hold the text; returns false. */
static bool list_kernels(const job_t *job, const char *part)
{
    enum { MOST = 20 };
    const turing_kernel_t *k;
    int n = 0;
    for (size_t i = 0; (k = turing_module_kernel(job->module, i)); i++)
        if (strstr(k->name, part) && n++ < MOST)
            fprintf(stderr, "    %s\n", k->name);
    if (n > MOST)
        fprintf(stderr, "    and %d more\n", n - MOST);
    return false;
}

static bool name_kernel(job_t *job, const char *name)
{
    if (!job->module)
        return complain(job, "kernel before cubin", NULL);
    const turing_kernel_t *k, *found = turing_module_find(job->module, name);
    int n = found ? 1 : 0;
    for (size_t i = 0; n != 1 && (k = turing_module_kernel(job->module, i)); i++)
        if (strstr(k->name, name)) {
            found = k;
            if (++n > 1)
                break;
            for (k = turing_module_kernel(job->module, ++i); k; k = turing_module_kernel(job->module, ++i))
                n += strstr(k->name, name) != NULL;
            break;
        }
    if (n != 1) {
        complain(job, n ? "more than one kernel has this in its name" : "no such kernel; there are", name);
        return list_kernels(job, n ? name : "");
    }
    job->kernel = found;
    job->n_args = 0;
    return true;
}

/* Where a variable of the module is; 0 and a complaint if it has none such, or a smaller one. */
static uint64_t find_symbol(const job_t *job, const char *name, size_t bytes)
{
    const turing_symbol_t *y = job->module ? turing_module_find_symbol(job->module, name) : NULL;
    if (!y || y->size < bytes) {
        complain(job, y ? "the variable is smaller" : "no such __device__ or __constant__ variable", name);
        for (size_t i = 0; !y && job->module && (y = turing_module_symbol(job->module, i)); i++, y = NULL)
            fprintf(stderr, "    %s: %llu bytes\n", turing_module_symbol(job->module, i)->name,
                    (unsigned long long)turing_module_symbol(job->module, i)->size);
        return 0;
    }
    return y->address;
}

static bool add_buffer(job_t *job, int n, char **w)
{
    const bool symbol = !strcmp(w[0], "symbol");
    buffer_t *b = &job->buffer[job->n_buffers];
    if (n < 5 || job->n_buffers == MOST_BUFFERS || strlen(w[1]) >= sizeof b->name || find_buffer(job, w[1]))
        return complain(job, symbol ? "symbol NAME TYPE COUNT INIT" : "buffer NAME TYPE COUNT INIT", NULL);
    const size_t size = value_size(w[2]);
    uint64_t count, seed;
    double low, high;
    if (!read_count(job, w[3], SIZE_MAX / 8, &count))
        return false;
    *b = (buffer_t){.count = count};
    if (!size || !b->count)
        return complain(job, "unknown type or no elements", w[2]);
    if (!strcmp(w[4], "fill") && n == 6 && !value_parse(w[2], w[5], &seed))
        return complain(job, "no number of the buffer's type", w[5]);
    strcpy(b->name, w[1]);
    strcpy(b->type, w[2]);
    const size_t bytes = size * b->count;
    b->address = symbol ? find_symbol(job, w[1], bytes) : turing_memory_alloc(job->mem, bytes);
    uint8_t *data = calloc(b->count, size);
    if (symbol && !b->address) {
        free(data);
        return false;
    }
    if (!b->address || !data) {
        free(data);
        return complain(job, "out of memory", w[1]);
    }
    job->n_buffers++;
    bool ok = true, none = !strcmp(w[4], "none");
    if (!strcmp(w[4], "fill") && n == 6)
        for (size_t i = 0; i < b->count; i++)
            value_parse(b->type, w[5], data + i * size);
    else if (!strcmp(w[4], "ramp"))
        for (size_t i = 0; i < b->count; i++)
            value_encode(b->type, (double)i, data + i * size);
    else if (!strcmp(w[4], "random") && n == 8) {
        ok = read_count(job, w[5], UINT64_MAX, &seed) && read_real(job, w[6], &low) && read_real(job, w[7], &high);
        uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
        for (size_t i = 0; ok && i < b->count; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value_encode(b->type, low + (high - low) * ldexp((double)(state >> 11), -53), data + i * size);
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

static bool set_hex(job_t *job, const turing_param_t *p, const char *digits)
{
    if (strlen(digits) != 2 * p->size)
        return complain(job, "arg hex: not two digits for each byte of the parameter", digits);
    for (uint32_t i = 0; i < p->size; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
            return complain(job, "arg hex: no hexadecimal digits", digits);
        job->params[p->offset + i] = (uint8_t)byte;
    }
    return true;
}

/* Members one after another, each at a multiple of its size. */
static bool set_members(job_t *job, const turing_param_t *p, int n, char **w)
{
    uint32_t at = 0;
    for (int i = 1; i < n;) {
        const buffer_t *b = find_buffer(job, w[i]);
        const uint32_t size = b ? 8 : (uint32_t)value_size(w[i]);
        uint64_t bits = 0;
        if (b) {
            bits = b->address;
            i++;
            uint64_t bytes = 0;
            if (i < n && w[i][0] == '+' && !read_count(job, w[i++] + 1, UINT64_MAX, &bytes))
                return false;
            bits += bytes;
        } else if (!size || i + 1 == n || !value_parse(w[i], w[i + 1], &bits))
            return complain(job, "neither a buffer nor TYPE VALUE", w[i]);
        else
            i += 2;
        at = (at + size - 1) / size * size;
        if (at + size > p->size)
            break;
        memcpy(job->params + p->offset + at, &bits, size);
        at += size;
        if (i == n && (at == p->size || (at > size && at + 8 > p->size))) /* padding may follow members */
            return true;
    }
    char sizes[80];
    snprintf(sizes, sizeof sizes, "%s, parameter %u has %u bytes", w[1], job->n_args, p->size);
    return complain(job, "this parameter has another size", sizes);
}

static bool add_arg(job_t *job, int n, char **w)
{
    if (!job->kernel) {
        complain(job, "arg before kernel: say first which kernel it is for", NULL);
        return job->module ? list_kernels(job, "") : false;
    }
    if (n < 2)
        return complain(job, "arg NAME [+BYTES], arg TYPE VALUE, or arg hex DIGITS", NULL);
    if (job->n_args == job->kernel->n_params)
        return complain(job, "an arg too many: the kernel has no further parameter", job->kernel->name);
    const turing_param_t *p = &job->kernel->params[job->n_args];
    if (p->offset + p->size > sizeof job->params)
        return complain(job, "too many parameter bytes", NULL);
    const bool ok = !strcmp(w[1], "hex") && n == 3 ? set_hex(job, p, w[2]) : set_members(job, p, n, w);
    job->n_args += ok;
    return ok;
}

static bool set_checks(job_t *job, int n, char **w)
{
    for (int i = 1; i < n; i++)
        if (turing_checks_from(w[i], &job->launch.checks))
            return complain(job, "unknown check", w[i]);
    return true;
}

static bool set_dimensions(const job_t *job, uint32_t to[3], int n, char **w)
{
    if (n < 2 || n > 4)
        return complain(job, "one to three numbers must follow", w[0]);
    for (int i = 0; i < 3; i++) {
        uint64_t extent = 1;
        if (i + 1 < n && !read_count(job, w[i + 1], UINT32_MAX, &extent))
            return false;
        to[i] = (uint32_t)extent;
    }
    return true;
}

/* The number of a statement that has one. */
static bool set_number(job_t *job, const char *name, const char *word)
{
    const bool is_limit = !strcmp(name, "limit");
    uint64_t number;
    if (!read_count(job, word, is_limit ? UINT64_MAX : !strcmp(name, "threads") ? MOST_THREADS : UINT32_MAX, &number))
        return false;
    if (is_limit)
        job->launch.max_warp_instructions = number;
    else if (!strcmp(name, "threads"))
        job->launch.threads = (unsigned)number;
    else
        job->launch.shared_bytes = (uint32_t)number;
    return true;
}

static bool add_expectation(job_t *job, output_t *o, int n, char **w)
{
    o->what = EXPECT;
    if (n > 3 && !strcmp(w[2], "file")) {
        if (n > 5 || strlen(w[3]) >= sizeof o->path)
            return complain(job, "expect NAME file PATH [TOL]", NULL);
        strcpy(o->path, w[3]);
        return n == 4 || read_real(job, w[4], &o->tolerance);
    }
    if (n < 4)
        return complain(job, "expect NAME FIRST V [V ...]", NULL);
    uint64_t first;
    if (!read_count(job, w[2], SIZE_MAX, &first))
        return false;
    o->first = first;
    if (o->first > o->count || (size_t)(n - 3) > o->count - o->first)
        return complain(job, "the buffer ends before", w[n - 1]);
    o->count = (size_t)(n - 3);
    if (!(o->values = calloc(o->count, sizeof *o->values)))
        return complain(job, "out of memory", NULL);
    const char *type = job->buffer[o->buffer].type;
    for (size_t i = 0; i < o->count; i++) {
        uint64_t bits = 0;
        if (!value_parse(type, w[3 + i], &bits))
            return complain(job, "no number of the buffer's type", w[3 + i]);
        o->values[i] = value_decode(type, &bits);
    }
    return true;
}

static bool add_output(job_t *job, int n, char **w)
{
    const buffer_t *b = n > 1 ? find_buffer(job, w[1]) : NULL;
    if (!b || job->n_outputs == MOST_OUTPUTS)
        return complain(job, "no such buffer", n > 1 ? w[1] : NULL);
    output_t *o = &job->output[job->n_outputs++];
    *o = (output_t){.what = PRINT, .buffer = (size_t)(b - job->buffer), .count = b->count, .line = job->line};
    if (!strcmp(w[0], "expect"))
        return add_expectation(job, o, n, w);
    if (!strcmp(w[0], "dump")) {
        o->what = DUMP;
        if (n != 3 || strlen(w[2]) >= sizeof o->path)
            return complain(job, "dump NAME PATH", NULL);
        strcpy(o->path, w[2]);
        return true;
    }
    uint64_t first = 0, count = SIZE_MAX;
    if ((n > 2 && !read_count(job, w[2], SIZE_MAX, &first)) || (n > 3 && !read_count(job, w[3], SIZE_MAX, &count)))
        return false;
    o->first = first < b->count ? first : b->count;
    o->count = count < b->count - o->first ? count : b->count - o->first;
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
    return turing_module_map(job->module, job->mem, &err) || complain(job, "cannot place its variables", err.text);
}

/* ---- the launch -------------------------------------------------------------------------------- */

static bool launch(job_t *job)
{
    turing_counters_t counters;
    turing_time_t time;
    turing_error_t err = {""};
    uint64_t violations = 0;
    if (!job->kernel) {
        complain(job, "no kernel named", NULL);
        return job->module ? list_kernels(job, "") : false;
    }
    if (job->n_args != job->kernel->n_params)
        return complain(job, "too few arg statements for", job->kernel->name);
    job->launch.counters = job->counters || job->lines ? &counters : NULL;
    job->launch.time = job->time ? &time : NULL;
    job->launch.clock = &job->clock;
    job->launch.params = job->params;
    job->launch.param_bytes = job->kernel->param_bytes;
    job->launch.cooperative = turing_waits_for_grid(job->kernel);
    job->launch.found = print_violation;
    job->launch.report = print_count;
    job->launch.print = print_text;
    job->launched = true;
    const bool ran = turing_launch(job->kernel, job->mem, &job->launch, &violations, &err);
    fflush(stdout);
    if (!ran) {
        fprintf(stderr, "turing: %s\n", err.text);
        return false;
    }
    job->violations += violations;
    job->n_args = 0;
    const bool ok = write_outputs(job);
    if (job->counters)
        print_counters(job, &counters);
    if (job->time)
        print_time(&time);
    if (job->lines)
        turing_counters_lines(&counters, job->kernel, print_line, NULL);
    if (job->launch.counters)
        turing_counters_free(&counters);
    return ok;
}

/* ---- the file ------------------------------------------------------------------------------------ */

static bool set_clock(job_t *job, const char *name, const char *text)
{
    double value;
    if (!read_real(job, text, &value))
        return false;
    return turing_clock_set(&job->clock, name, value) || complain(job, "no such constant, or no value for it", name);
}

static bool statement(job_t *job, int n, char **w)
{
    if (!strcmp(w[0], "cubin") && n == 2)
        return open_cubin(job, w[1]);
    if (!strcmp(w[0], "kernel") && n == 2)
        return name_kernel(job, w[1]);
    if (!strcmp(w[0], "grid"))
        return set_dimensions(job, job->launch.grid, n, w);
    else if (!strcmp(w[0], "block"))
        return set_dimensions(job, job->launch.block, n, w);
    else if ((!strcmp(w[0], "shared") || !strcmp(w[0], "threads") || !strcmp(w[0], "limit")) && n == 2)
        return set_number(job, w[0], w[1]);
    else if (!strcmp(w[0], "tensor") && n == 2 && (!strcmp(w[1], "turing") || !strcmp(w[1], "hopper")))
        job->launch.tensor = strcmp(w[1], "hopper") ? TURING_TENSOR_TURING : TURING_TENSOR_HOPPER;
    else if (!strcmp(w[0], "checks"))
        return set_checks(job, n, w);
    else if (!strcmp(w[0], "launch") && n == 1)
        return launch(job);
    else if (!strcmp(w[0], "buffer") || !strcmp(w[0], "symbol"))
        return add_buffer(job, n, w);
    else if (!strcmp(w[0], "arg"))
        return add_arg(job, n, w);
    else if (!strcmp(w[0], "print") || !strcmp(w[0], "dump") || !strcmp(w[0], "expect"))
        return add_output(job, n, w);
    else if (!strcmp(w[0], "counters"))
        job->counters = true;
    else if (!strcmp(w[0], "lines"))
        job->lines = true;
    else if (!strcmp(w[0], "time") && (n == 1 || (n == 2 && !strcmp(w[1], "dry")))) {
        job->time = true;
        job->launch.dry = n == 2;
    } else if (!strcmp(w[0], "clock") && n == 3)
        return set_clock(job, w[1], w[2]);
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
        const bool is_cut = strlen(line) + 1 == sizeof line && line[sizeof line - 2] != '\n';
        int n = 0;
        job->line++;
        if (comment)
            *comment = 0;
        for (char *p = strtok(line, " \t\r\n"); p && n < MOST_WORDS; p = strtok(NULL, " \t\r\n"))
            w[n++] = p;
        if (is_cut || n == MOST_WORDS)
            ok = complain(job, "the line is too long", NULL);
        else if (n)
            ok = statement(job, n, w);
    }
    fclose(f);
    return ok && (job->launched ? write_outputs(job) : launch(job));
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
    job->clock = turing_clock;
    job->launch = (turing_launch_t){.grid = {1, 1, 1}, .block = {32, 1, 1}};
    job->mem = turing_memory_create(TURING_MEMORY_TRACK);
    const int status = !job->mem || !read_job(job) ? 2 : job->violations || job->differs ? 1 : 0;
    turing_memory_destroy(job->mem);
    if (job->module)
        turing_module_close(job->module);
    free(job);
    return status;
}
