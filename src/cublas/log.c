/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "files/append.h"
#include "real.h"
#include "settings.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What tells one product from another. Zeroed before it is filled, so that bytes can be compared. */
typedef struct kind_t {
    const char *entry, *why;
    int is_described;
    hgemm_layout_t layout;
    hgemm_op_t op_a, op_b;
    hgemm_accumulate_t accumulate;
    hgemm_type_t type_a, type_d;
    hgemm_accuracy_t accuracy;
    hgemm_activation_t activation;
    hgemm_batch_mode_t batch_mode;
    int has_bias;
    int64_t m, n, k, batch, lda, ldb, ldd;
} kind_t;

typedef struct note_t {
    kind_t kind;
    uint64_t count; /* 0: a free place */
} note_t;

enum { NOTES = 4096, LINE = 512, MOST_TEXT = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static note_t notes[NOTES]; /* by hash, with the next free place where that is taken */
static int note_count;
static uint64_t hits, misses, beyond;       /* beyond: calls that found no place */
static int log_file = -1, record_file = -1; /* -1: none */
static int is_forked;                       /* a parent process counted, too */
static int counts_are_others;               /* what is counted so far is a parent's */

int log_is_on(void)
{
    const settings_t *asked = settings();
    return asked->log || asked->summary || asked->record;
}

/* Writes a line whole, since processes may share the file. */
__attribute__((format(printf, 2, 3))) static void print_to(int file, const char *format, ...)
{
    char text[MOST_TEXT];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text)
        text[sizeof text - 2] = '\n';
    append_text(file, text);
}

/* Opens what a setting names; -1 where that fails, of which it tells. */
static int open_output(const char *path, const char *header)
{
    const int file = strcmp(path, "1") == 0 ? STDERR_FILENO : append_open(path, header);
    if (file < 0)
        print_to(STDERR_FILENO, "hgemm_cublas: cannot write %s: %s\n", path, strerror(errno));
    return file;
}

/* The child has the lock of a thread that it does not have, and counts anew. */
static void begin_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    is_forked = counts_are_others = 1;
}

static void open_once(void)
{
    const settings_t *asked = settings();
    pthread_atfork(NULL, NULL, begin_child);
    if (asked->log)
        log_file = open_output(asked->log, NULL);
    if (log_file >= 0 && asked->unknown)
        print_to(log_file, "hgemm_cublas: HGEMM_CUBLAS is \"%s\", none of everywhere, nowhere and faster: nowhere\n",
                 asked->unknown);
    if (log_file >= 0 && asked->unknown_floats)
        print_to(log_file, "hgemm_cublas: HGEMM_CUBLAS_F32 is \"%s\", none of on, off, f32, 16bits and 11bits: off\n",
                 asked->unknown_floats);
    if (asked->record)
        record_file = open_output(asked->record, "m,n,k,trans_a,trans_b,batch\n"
                                                 "# Column-major: bench_hgemm --layout col --shapes FILE\n");
}

static kind_t kind_of(const product_t *product)
{
    const hgemm_desc_t *desc = &product->desc;
    kind_t kind;
    memset(&kind, 0, sizeof kind);
    kind.entry = product->entry, kind.why = product->why;
    kind.is_described = product->is_described;
    kind.layout = desc->layout;
    kind.op_a = desc->op_a, kind.op_b = desc->op_b;
    kind.accumulate = desc->accumulate;
    kind.type_a = desc->type_a;
    kind.type_d = desc->type_d;
    kind.accuracy = desc->accuracy;
    kind.activation = desc->activation;
    kind.batch_mode = desc->batch_mode;
    kind.has_bias = desc->bias != NULL;
    kind.m = desc->m, kind.n = desc->n, kind.k = desc->k, kind.batch = desc->batch;
    kind.lda = desc->lda, kind.ldb = desc->ldb, kind.ldd = desc->ldd;
    return kind;
}

/* FNV-1a over the bytes. */
static size_t hash_of(const kind_t *kind)
{
    const unsigned char *bytes = (const unsigned char *)kind;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *kind; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash >> 32);
}

/* The note of such products, a new one where none has come; NULL where there is no place. */
static note_t *find_note(const kind_t *kind)
{
    for (size_t i = 0, at = hash_of(kind); i < NOTES; i++, at++) {
        note_t *note = &notes[at % NOTES];
        if (note->count && memcmp(&note->kind, kind, sizeof *kind) == 0)
            return note;
        if (note->count)
            continue;
        if (note_count == NOTES - 1)
            return NULL;
        note_count++;
        note->kind = *kind;
        return note;
    }
    return NULL;
}

static void print_kind(char line[LINE], const kind_t *kind)
{
    static const char *const types[] = {"f16", "f32", "bf16"};          /* hgemm_type_t */
    static const char *const of_factors[] = {"", "A,B f32 ", "bf16 "};  /* the same */
    static const char *const accuracies[] = {"", "16bits ", "11bits "}; /* hgemm_accuracy_t */
    const char *activation = kind->activation == HGEMM_ACTIVATION_NONE ? NULL : hgemm_activation_name(kind->activation);
    int end =
        snprintf(line, LINE, "%s %s %c%c %" PRId64 "x%" PRId64 "x%" PRId64, kind->why ? "miss" : "hit ", kind->entry,
                 kind->op_a == HGEMM_OP_N ? 'N' : 'T', kind->op_b == HGEMM_OP_N ? 'N' : 'T', kind->m, kind->n, kind->k);
    if (kind->batch != 1)
        end += snprintf(line + end, LINE - (size_t)end, " batch %" PRId64 "%s", kind->batch,
                        kind->batch_mode == HGEMM_BATCH_POINTERS ? " of pointers" : "");
    if (kind->is_described)
        end += snprintf(line + end, LINE - (size_t)end,
                        " %s lda %" PRId64 " ldb %" PRId64 " ldd %" PRId64 " %s%ssums %s D %s%s%s%s",
                        kind->layout == HGEMM_COL_MAJOR ? "column-major" : "row-major", kind->lda, kind->ldb, kind->ldd,
                        of_factors[kind->type_a], accuracies[kind->accuracy],
                        kind->accumulate == HGEMM_ACCUMULATE_F16 ? "f16" : "f32", types[kind->type_d],
                        kind->has_bias ? " bias" : "", activation ? " " : "", activation ? activation : "");
    if (kind->why)
        snprintf(line + end, LINE - (size_t)end, ": %s", kind->why);
}

/* A line for bench_hgemm, after one for those who read it. A row-major product is the column-major one of the
 * transposes. */
static void record(const kind_t *kind, const char *words)
{
    int swap = kind->layout == HGEMM_ROW_MAJOR;
    print_to(record_file, "# %s\n%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d,%" PRId64 "\n", words,
             swap ? kind->n : kind->m, swap ? kind->m : kind->n, kind->k,
             (swap ? kind->op_b : kind->op_a) == HGEMM_OP_T, (swap ? kind->op_a : kind->op_b) == HGEMM_OP_T,
             kind->batch);
}

static void forget_others(void)
{
    if (!counts_are_others)
        return;
    memset(notes, 0, sizeof notes);
    note_count = 0;
    hits = misses = beyond = 0;
    counts_are_others = 0;
}

void log_product(const product_t *product)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kind_t kind = kind_of(product);
    pthread_once(&once, open_once);
    pthread_mutex_lock(&lock);
    forget_others();
    note_t *note = find_note(&kind);
    product->why ? misses++ : hits++;
    if (!note)
        beyond++;
    else if (++note->count == 1) {
        char line[LINE];
        print_kind(line, &kind);
        if (log_file >= 0)
            print_to(log_file, "hgemm_cublas: %s%s%s%s\n", line, product->detail[0] ? " (" : "", product->detail,
                     product->detail[0] ? ")" : "");
        if (record_file >= 0 && kind.is_described)
            record(&kind, line);
    }
    pthread_mutex_unlock(&lock);
}

static int more_first(const void *left, const void *right)
{
    uint64_t of_left = ((const note_t *)left)->count, of_right = ((const note_t *)right)->count;
    return (of_left < of_right) - (of_left > of_right);
}

/* At exit, when no other thread calls any more. A process that has no cuBLAS, such as a shell that starts the program,
 * and a child that has multiplied nothing have nothing to say. */
__attribute__((destructor)) static void summarise(void)
{
    const char *path = settings()->summary;
    if (!path)
        return;
    forget_others();
    if (hits + misses == 0 && (is_forked || !real_is_loaded()))
        return;
    char *text = NULL;
    size_t size;
    FILE *summary = open_memstream(&text, &size);
    if (!summary)
        return;
    fprintf(summary, "hgemm_cublas: %" PRIu64 " hits, %" PRIu64 " misses\n", hits, misses);
    qsort(notes, NOTES, sizeof notes[0], more_first);
    for (int i = 0; i < note_count; i++) {
        char line[LINE];
        print_kind(line, &notes[i].kind);
        fprintf(summary, "hgemm_cublas: %8" PRIu64 " %s\n", notes[i].count, line);
    }
    if (beyond)
        fprintf(summary, "hgemm_cublas: %8" PRIu64 " calls of further kinds\n", beyond);
    const int file = fclose(summary) == 0 ? open_output(path, NULL) : -1;
    if (file >= 0)
        append_text(file, text);
    free(text);
}
