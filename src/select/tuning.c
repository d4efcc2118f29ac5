/* SPDX-License-Identifier: MIT */
#include "select/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "select/plan_text.h"
#include "select/problem_class.h"

enum { HEADER_LINES = 4, MOST_LINE = 1024, SHOWN = 100 /* characters of a line that is not understood */ };

typedef struct entry_t {
    problem_class_t problem;
    plan_t plan;
    double cublas_ratio; /* 0: not compared */
    int line;
} entry_t;

struct tuning_t {
    measured_t measured;
    entry_t *entries; /* sorted by problem */
    size_t count, room;
};

void tuning_header(const hgemm_device_info_t *info, char text[TUNING_HEADER])
{
    char driver[32] = "none";
    if (info->driver_version)
        snprintf(driver, sizeof driver, "%d.%d", info->driver_version / 1000, info->driver_version % 1000 / 10);
    snprintf(text, TUNING_HEADER, "hgemm tuning 1\nlibrary %d.%d.%d\ndevice %s\ndriver %s\n", HGEMM_VERSION_MAJOR,
             HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, info->name, driver);
}

static int compare_entries(const void *one, const void *other)
{
    return class_compare(&((const entry_t *)one)->problem, &((const entry_t *)other)->problem);
}

static const entry_t *find_entry(const tuning_t *tuning, const problem_t *p)
{
    const entry_t wanted = {.problem = class_of(p)};
    if (tuning->count == 0) /* there is no array to search */
        return NULL;
    return bsearch(&wanted, tuning->entries, tuning->count, sizeof *tuning->entries, compare_entries);
}

/* measured_t.find */
static int find(const void *entries, const problem_t *p, struct plan_t *plan)
{
    const entry_t *entry = find_entry(entries, p);
    if (entry)
        *plan = entry->plan;
    return entry != NULL;
}

static const char ratio_word[] = " cublas ";

void tuning_ratio_to_text(double ratio, char text[TUNING_RATIO])
{
    const long thousandths = ratio < 1e-3 ? 1 : ratio < 1e6 ? (long)(ratio * 1000 + 0.5) : 999999999;
    snprintf(text, TUNING_RATIO, "%s%ld.%03ld", ratio_word, thousandths / 1000, thousandths % 1000);
}

/* Cuts a ratio off the end of a plan's words; 0 if what stands there is none. In any locale its point is a point. */
static int take_ratio(char *plan, double *ratio)
{
    static const char digits[] = "0123456789";
    char *word = strstr(plan, ratio_word);
    *ratio = 0;
    if (!word)
        return 1;
    *word = '\0';
    const char *number = word + strlen(ratio_word);
    const size_t whole = strspn(number, digits);
    if (whole < 1 || whole > 6 || number[whole] != '.' || strspn(number + whole + 1, digits) != 3 || number[whole + 4])
        return 0;
    *ratio = (double)(strtol(number, NULL, 10) * 1000 + strtol(number + whole + 1, NULL, 10)) / 1000;
    return *ratio > 0;
}

const char *tuning_fault(const problem_t *p)
{
    return p->is_indirect || p->is_invariant
               ? "problems that are invariant, gathered, grouped or of pointers are not tuned"
               : NULL;
}

/* What is wrong with an entry, whose line becomes words; NULL if nothing is. */
static const char *parse_entry(char *line, entry_t *entry)
{
    hgemm_desc_t example;
    hgemm_weights_t weights;
    problem_t p;
    char *comment = strchr(line, '#');
    size_t length = comment ? (size_t)(comment - line) : strlen(line);
    while (length > 0 && line[length - 1] == ' ')
        length--;
    line[length] = '\0';
    char *plan = strstr(line, " = ");
    if (!plan)
        return "a problem and its plan are joined by \" = \"";
    *plan = '\0';
    const char *fault = class_from_text(line, &entry->problem);
    if (!fault)
        fault = class_example(&entry->problem, &example, &weights);
    if (!fault) {
        p = normalise(&example);
        fault = tuning_fault(&p);
    }
    if (!fault && !take_ratio(plan + 3, &entry->cublas_ratio))
        fault = "cublas is followed by its time in times of the plan, such as 1.250";
    if (!fault)
        fault = plan_from_text(plan + 3, &p, &entry->plan);
    if (fault)
        return fault;
    entry->problem = class_of(&p); /* a lone column may have been written as either */
    return plan_fault(&p, INT64_MAX, &entry->plan);
}

/* Whether the line is that of the header; else `why` says where they differ. */
static int check_header(const char *line, int number, const char *header, char *why)
{
    const char *wanted = header;
    for (int i = 1; i < number; i++)
        wanted = strchr(wanted, '\n') + 1;
    size_t length = strcspn(wanted, "\n");
    if (strlen(line) == length && strncmp(line, wanted, length) == 0)
        return 1;
    snprintf(why, DEVICE_DETAIL, "is for others: its line %d is \"%.*s\", not \"%.*s\".", number, SHOWN, line,
             (int)length, wanted);
    return 0;
}

static int add(tuning_t *tuning, const entry_t *entry)
{
    if (tuning->count == tuning->room) {
        size_t room = tuning->room ? 2 * tuning->room : 64;
        entry_t *entries = realloc(tuning->entries, room * sizeof *entries);
        if (!entries)
            return 0;
        tuning->entries = entries, tuning->room = room;
    }
    tuning->entries[tuning->count++] = *entry;
    return 1;
}

/* Takes a line without its end; 0 if the file cannot be used. */
static int take_line(tuning_t *tuning, char *line, int number, const char *header, char *why)
{
    if (number <= HEADER_LINES)
        return check_header(line, number, header, why);
    if (line[0] == '\0' || line[0] == '#')
        return 1;
    entry_t entry = {.line = number};
    const char *fault = parse_entry(line, &entry);
    if (!fault && !add(tuning, &entry))
        fault = "there is no memory left";
    if (fault)
        snprintf(why, DEVICE_DETAIL, "has a line %d that cannot be used: %s.", number, fault);
    return !fault;
}

/* Reads all lines; 0 if the file cannot be used. */
static int take_lines(tuning_t *tuning, FILE *file, const char *header, char *why)
{
    char line[MOST_LINE];
    int number = 0;
    while (fgets(line, sizeof line, file)) {
        size_t length = strlen(line);
        number++;
        if (length == 0 || (line[length - 1] != '\n' && !feof(file))) {
            snprintf(why, DEVICE_DETAIL, "has a line %d that is no text, or too long.", number);
            return 0;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (!take_line(tuning, line, number, header, why))
            return 0;
    }
    if (ferror(file))
        snprintf(why, DEVICE_DETAIL, "cannot be read: %s.", strerror(errno));
    else if (number < HEADER_LINES)
        snprintf(why, DEVICE_DETAIL, "is no tuning file: it has %d lines.", number);
    return !ferror(file) && number >= HEADER_LINES;
}

/* Sorts the entries; 0 if a problem has two. */
static int sort_entries(tuning_t *tuning, char *why)
{
    if (tuning->count > 0)
        qsort(tuning->entries, tuning->count, sizeof *tuning->entries, compare_entries);
    for (size_t i = 1; i < tuning->count; i++)
        if (compare_entries(&tuning->entries[i - 1], &tuning->entries[i]) == 0) {
            snprintf(why, DEVICE_DETAIL, "has one problem twice, in lines %d and %d.", tuning->entries[i - 1].line,
                     tuning->entries[i].line);
            return 0;
        }
    return 1;
}

/* Opens a regular file. No other is waited for, as a FIFO would be that nobody writes. */
static FILE *open_file(const char *path, char *why)
{
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int is_regular = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = is_regular ? fdopen(descriptor, "r") : NULL;
    if (file)
        return file;
    if (descriptor >= 0 && !is_regular)
        snprintf(why, DEVICE_DETAIL, "is no regular file.");
    else
        snprintf(why, DEVICE_DETAIL, "cannot be opened: %s.", strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return NULL;
}

tuning_t *tuning_read(const char *path, const hgemm_device_info_t *info, char why[DEVICE_DETAIL])
{
    char header[TUNING_HEADER];
    FILE *file = open_file(path, why);
    if (!file)
        return NULL;
    tuning_t *tuning = calloc(1, sizeof *tuning);
    tuning_header(info, header);
    if (!tuning)
        snprintf(why, DEVICE_DETAIL, "cannot be read: there is no memory left.");
    else if (!take_lines(tuning, file, header, why) || !sort_entries(tuning, why)) {
        tuning_free(tuning);
        tuning = NULL;
    }
    fclose(file);
    if (tuning)
        tuning->measured = (measured_t){find, tuning};
    return tuning;
}

const measured_t *tuning_measured(const tuning_t *tuning)
{
    return tuning ? &tuning->measured : NULL;
}

double tuning_cublas_ratio(const tuning_t *tuning, const problem_t *p)
{
    const entry_t *entry = tuning ? find_entry(tuning, p) : NULL;
    return entry ? entry->cublas_ratio : 0;
}

void tuning_free(tuning_t *tuning)
{
    if (tuning)
        free(tuning->entries);
    free(tuning);
}
