/* SPDX-License-Identifier: MIT */
#include "api/record.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/append.h"
#include "problem/names.h"
#include "problem/weights_text.h"
#include "select/plan_text.h"
#include "select/problem_class.h"

enum { MOST_LINE = 1024 };

static const char columns[] = "m,n,k,trans_a,trans_b,batch\n";

/* Hashes of lines. */
typedef struct seen_t {
    uint64_t *of;
    size_t count, room;
} seen_t;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1, record_file = -1; /* -1: not asked for */
static seen_t logged, recorded;

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Makes room for one more. At any time, if another thread forks, the child has an array that is whole. */
static int grow(seen_t *seen)
{
    size_t room = seen->room ? 2 * seen->room : 256;
    uint64_t *of = malloc(room * sizeof *of), *before = seen->of;
    if (!of)
        return 0;
    if (before)
        memcpy(of, before, seen->count * sizeof *of);
    seen->of = of, seen->room = room;
    atomic_signal_fence(memory_order_release); /* the array before is freed after that */
    free(before);
    return 1;
}

/* Whether the text is new. Where there is no memory to remember it, it is. */
static int is_new(seen_t *seen, const char *text)
{
    const uint64_t hash = hash_of(text);
    for (size_t i = 0; i < seen->count; i++)
        if (seen->of[i] == hash)
            return 0;
    if (seen->count < seen->room || grow(seen))
        seen->of[seen->count++] = hash;
    return 1;
}

/* Remembers what the file has already: shapes' comments. */
static void remember(const char *path)
{
    char line[MOST_LINE];
    struct stat status;
    FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "r") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "# ", 2) == 0)
            is_new(&recorded, line + 2);
    }
    if (file)
        fclose(file);
}

static int is_on(const char *value)
{
    return value && *value && strcmp(value, "0") != 0;
}

static void say(const char *format, va_list arguments)
{
    char line[MOST_LINE] = "# hgemm: ";
    size_t used = strlen(line);
    vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    strcat(line, "\n");
    append_text(log_file, line);
}

/* record_remark, from within it. */
__attribute__((format(printf, 1, 2))) static void remark(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (log_file >= 0)
        say(format, arguments);
    va_end(arguments);
}

/* The child has the lock of a thread that it does not have. */
static void renew_lock(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void read_environment(void)
{
    const char *log = getenv("HGEMM_LOG"), *record = getenv("HGEMM_RECORD");
    if (is_on(log))
        log_file = strcmp(log, "1") == 0 ? STDERR_FILENO : append_open(log, NULL);
    if (is_on(log) && log_file < 0) { /* whoever asks for a log is told in the other place that logs have */
        const int error = errno;
        log_file = STDERR_FILENO;
        remark("HGEMM_LOG cannot be written: %s: %s", log, strerror(error));
        log_file = -1;
    }
    if (is_on(record)) {
        remember(record);
        record_file = append_open(record, columns);
        if (record_file < 0)
            remark("HGEMM_RECORD is ignored: %s cannot be written: %s", record, strerror(errno));
    }
    if (log_file >= 0 || record_file >= 0)
        pthread_atfork(NULL, NULL, renew_lock);
}

void record_remark(const char *format, ...)
{
    va_list arguments;
    pthread_once(&once, read_environment);
    va_start(arguments, format);
    if (log_file >= 0)
        say(format, arguments);
    va_end(arguments);
}

/* ---- The command --------------------------------------------------------------------------------- */

static void name_device(device_t *device, char *text, size_t bytes)
{
    hgemm_device_info_t info;
    const int is_known = device->ops->info(device, &info) == HGEMM_STATUS_SUCCESS;
    if (is_known && strcmp(info.kind, "cuda") == 0)
        snprintf(text, bytes, "cuda:%d", device->ordinal);
    else
        snprintf(text, bytes, "%s", is_known && strcmp(info.kind, "t4model") == 0 ? "t4emu:time" : "t4emu");
}

/* bench_hgemm's name of hgemm's own choice for such operands, and the options that ask for these. What is a float
 * beside another type is one there, too. */
static void name_operands(const problem_t *p, char name[64], char options[96])
{
    const hgemm_type_t type = p->has_floats ? HGEMM_TYPE_F32 : p->a.type;
    const int is_packed = p->is_packed, is_typed = type != HGEMM_TYPE_F16;
    const char *word = is_typed ? type_names[type] : "", *how = "";
    char weights[WEIGHTS_TEXT] = "";
    if (is_packed)
        form_to_text(&p->packed, weights);
    else if (type == HGEMM_TYPE_F32)
        how = p->accuracy == HGEMM_ACCURACY_16_BITS   ? "_16bits"
              : p->accuracy == HGEMM_ACCURACY_11_BITS ? "_11bits"
                                                      : "";
    else if (type == HGEMM_TYPE_BF16 && p->scales)
        how = !p->b.finds_scale ? "_b_given" : "_found";
    snprintf(options, 96, "%s%s%s%s", is_typed ? " --type " : "", word, is_packed ? " --weights " : "", weights);
    if (p->kernel != HGEMM_KERNEL_AUTO)
        snprintf(name, 64, "%s", kernel_table[p->kernel].info.name);
    else if (is_packed || is_typed)
        snprintf(name, 64, "auto_of_%s%s%s%s", word, is_packed && is_typed ? "_" : "", weights, how);
    else
        snprintf(name, 64, "%s", p->accumulate == HGEMM_ACCUMULATE_F32 ? "auto_f32" : "auto");
}

/* The call as a command of bench_hgemm, which has contiguous and aligned operands. A comment says what else the call
 * has, and which plan was chosen for it. */
static void write_command(device_t *device, const problem_t *p, const plan_t *plan, char line[MOST_LINE])
{
    char name[24], kernel[64], options[192] = "", operands[96], problem[CLASS_TEXT], words[PLAN_TEXT];
    const problem_class_t class = class_of(p);
    size_t used = 0;
    name_device(device, name, sizeof name);
    name_operands(p, kernel, operands);
    if (p->product.alpha != 1)
        used += (size_t)snprintf(options + used, sizeof options - used, " --alpha %.9g", (double)p->product.alpha);
    if (p->product.beta != 0)
        used += (size_t)snprintf(options + used, sizeof options - used, " --beta %.9g", (double)p->product.beta);
    if (p->batch_mode == HGEMM_BATCH_GROUPED && p->a.is_along_k) /* so many rows, of any group alike likely */
        used += (size_t)snprintf(options + used, sizeof options - used, " --experts %" PRId64 ":1", p->batch);
    else if (p->batch != 1)
        used += (size_t)snprintf(options + used, sizeof options - used, " --batch %" PRId64, p->batch);
    snprintf(options + used, sizeof options - used, "%s", operands);
    class_to_text(&class, problem);
    plan_to_text(plan, words);
    snprintf(line, MOST_LINE,
             "bench_hgemm --device %s --trans %s --accumulate %s --kernel '^%s$'%s %" PRId64 "x%" PRId64 "x%" PRId64
             " # %s = %s\n",
             name, transpose_names[class.of[CLASS_op]], accumulate_names[p->accumulate], kernel, options, p->m, p->n,
             p->k, problem, words);
}

/* ---- The shape ----------------------------------------------------------------------------------- */

/* A row of six columns behind a comment that says all of the class. Addresses and sizes that come from the device do
 * not fit such rows, and a plan that was measured serves no invariant problem. */
static void record_shape(const problem_t *p)
{
    char problem[CLASS_TEXT], text[MOST_LINE];
    const problem_class_t class = class_of(p);
    if (p->is_indirect || p->is_invariant || p->kernel != HGEMM_KERNEL_AUTO)
        return;
    class_to_text(&class, problem);
    if (!is_new(&recorded, problem))
        return;
    snprintf(text, sizeof text, "# %s\n%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d,%" PRId64 "\n", problem, p->m, p->n,
             p->k, p->op >> 1, p->op & 1, p->batch);
    append_text(record_file, text);
}

void record_call(device_t *device, const problem_t *p, const plan_t *plan)
{
    char line[MOST_LINE];
    pthread_once(&once, read_environment);
    if ((log_file < 0 && record_file < 0) || p->k == 0)
        return;
    pthread_mutex_lock(&mutex);
    if (log_file >= 0) {
        write_command(device, p, plan, line);
        if (is_new(&logged, line))
            append_text(log_file, line);
    }
    if (record_file >= 0)
        record_shape(p);
    pthread_mutex_unlock(&mutex);
}
