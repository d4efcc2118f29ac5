/* SPDX-License-Identifier: MIT */
/*
 * Measures which plans are the fastest on a device and writes them to a tuning file (src/select/tuning.h). A shape's
 * plans take turns in alternation. The default stays unless another is faster beyond noise, twice: where it was found
 * to be the fastest of many, and once more against the default alone. What is chosen then takes turns with cuBLAS, if
 * there is one, and the file has the ratio of the two.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "select/plan_text.h"
#include "shapes.h"
#include "shared_file.h"
#include "stopwatch.h"
#include "tool.h"
#include "select/tuning.h"

static const char usage[] =
    "Usage: hgemm tune [options] [shape]...\n"
    "\n"
    "Measures the plans that may be the fastest for each shape, and writes the fastest to a file, which the\n"
    "library loads where HGEMM_TUNING names it or hgemm_load_tuning is called. A shape that the file lists\n"
    "already is left out, so that a run which was interrupted goes on where it was. Ends with a failure where\n"
    "the file is of another device, driver or version.\n"
    "\n" SHAPES_HELP "  --out FILE          the tuning file; default hgemm.tuning\n"
    "  --again             measures shapes that the file lists, too\n"
    "  --plans N           that are measured of each shape, those that the cost model finds cheapest;\n"
    "                      default 12\n"
    "  --reps N            repetitions of each plan, whose medians count; default 15, and 3 where time is\n"
    "                      modelled\n"
    "  --margin PERCENT    by which a plan must be faster than the default; default 1\n"
    "  --no-cublas         does not time the chosen plan beside cuBLAS, as is done on a GPU where libcublas is\n"
    "                      found: by the dynamic linker, or at the path in HGEMM_CUBLAS_LIBRARY\n"
    "  --budget SECONDS    after which no further shape is begun; one always is\n"
    "  --check             writes nothing: times what the file chooses against the default, for the shapes\n"
    "                      given or, where none is, for all that the file lists. Ends with 1 where it is\n"
    "                      slower beyond noise\n"
    "  --device NAME       cuda, cuda:N, or t4emu:time, which models the time of a T4; default is the\n"
    "                      environment's HGEMM_DEVICE, else the first GPU\n"
    "\n"
    "Exit status: 0, also where the budget ended; 1 on a failure; 2 where the arguments make no sense.\n";

typedef struct options_t {
    shapes_options_t shapes;
    const char *device, *out;
    int again, plans, repetitions, is_check, no_cublas;
    double margin, budget; /* a share; seconds, 0: none */
} options_t;

static options_t options;
static hgemm_handle_t handle;
static cublas_t *cublas; /* NULL: none */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Statistics ------------------------------------------------------------------------------------ */

static int compare_doubles(const void *one, const void *other)
{
    double x = *(const double *)one, y = *(const double *)other;
    return (x > y) - (x < y);
}

/* The value that a share of them does not exceed; sorts them. */
static double quantile(double *values, int count, double share)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    double at = share * (count - 1);
    int below = (int)at;
    return below + 1 < count ? values[below] + (at - below) * (values[below + 1] - values[below]) : values[below];
}

static double median_of(const double *values, int count)
{
    double *copy = malloc((size_t)count * sizeof *copy);
    if (!copy)
        tool_fail("there is no memory left");
    memcpy(copy, values, (size_t)count * sizeof *copy);
    double median = quantile(copy, count, 0.5);
    free(copy);
    return median;
}

/* Whether times are shorter than others, which alternated with them: by the margin in the median of the ratios, and in
 * three quarters of all. */
static int is_faster(const double *seconds, const double *than, int count)
{
    double *ratios = malloc((size_t)count * sizeof *ratios);
    if (!ratios)
        tool_fail("there is no memory left");
    for (int i = 0; i < count; i++)
        ratios[i] = seconds[i] / than[i];
    int faster = quantile(ratios, count, 0.75) < 1 && quantile(ratios, count, 0.5) < 1 - options.margin;
    free(ratios);
    return faster;
}

/* ---- The rows of the file ------------------------------------------------------------------------------ */

typedef struct row_t {
    problem_class_t problem;
    char *line;      /* as it is in the file */
    int is_measured; /* by this process; else it was found in the file */
} row_t;

static row_t *rows;
static int row_count;

static int find_row(const problem_class_t *problem)
{
    for (int i = 0; i < row_count; i++)
        if (class_compare(&rows[i].problem, problem) == 0)
            return i;
    return -1;
}

/* Puts a line in the place of that for the same problem, or beside others. One of the file gives way to what was
 * measured. */
static void put_row(const problem_class_t *problem, const char *line, int is_measured)
{
    int at = find_row(problem);
    if (at >= 0 && rows[at].is_measured && !is_measured)
        return;
    char *copy = strdup(line);
    row_t *more = at < 0 ? realloc(rows, (size_t)(row_count + 1) * sizeof *rows) : rows;
    if (!copy || !more)
        tool_fail("there is no memory left");
    rows = more;
    if (at < 0)
        at = row_count++;
    else
        free(rows[at].line);
    rows[at] = (row_t){*problem, copy, is_measured};
}

/* Takes the lines that the file has now, if there is one. The library has the last word on whether it can be used. */
static void read_rows(void)
{
    char line[1024], problem[1024];
    int kept = 0;
    for (int i = 0; i < row_count; i++)
        if (rows[i].is_measured)
            rows[kept++] = rows[i];
        else
            free(rows[i].line);
    row_count = kept;
    if (access(options.out, F_OK) != 0 && errno == ENOENT)
        return;
    tool_must(handle, hgemm_load_tuning(handle, options.out));
    tool_must(handle, hgemm_load_tuning(handle, NULL));
    FILE *file = fopen(options.out, "r");
    while (file && fgets(line, sizeof line, file)) {
        problem_class_t class;
        line[strcspn(line, "\r\n")] = '\0';
        strcpy(problem, line);
        char *end = strstr(problem, " = ");
        if (end)
            *end = '\0';
        if (end && !class_from_text(problem, &class))
            put_row(&class, line, 0);
    }
    if (!file || ferror(file))
        tool_fail("cannot read %s: %s", options.out, strerror(errno));
    fclose(file);
}

static int compare_rows(const void *one, const void *other)
{
    return class_compare(&((const row_t *)one)->problem, &((const row_t *)other)->problem);
}

static void write_rows(FILE *file)
{
    char header[TUNING_HEADER];
    tuning_header(&handle->info, header);
    fputs(header, file);
    if (row_count > 0)
        qsort(rows, (size_t)row_count, sizeof *rows, compare_rows);
    for (int i = 0; i < row_count; i++)
        fprintf(file, "%s\n", rows[i].line);
}

/* Adds what was measured to what the file has by now. */
static void update_file(void)
{
    shared_file_t file;
    do {
        file = shared_file_begin(options.out);
        read_rows();
        write_rows(shared_file_write(&file));
    } while (!shared_file_end(&file));
}

/* ---- A shape --------------------------------------------------------------------------------------- */

/* The default plan and others that may be faster; returns how many. */
static int find_candidates(const stopwatch_t *watch, plan_t *plans)
{
    const problem_t problem = stopwatch_problem(watch), *const p = &problem;
    priced_plan_t *ranked = calloc((size_t)options.plans, sizeof *ranked);
    int count = 0;
    if (!ranked)
        tool_fail("there is no memory left");
    if (select_plan(p, &handle->machine, handle->workspace_bytes, &plans[0]) == HGEMM_STATUS_SUCCESS)
        count = 1;
    int most = count ? rank_plans(p, &handle->machine, handle->workspace_bytes, ranked, options.plans) : 0;
    for (int i = 0; i < most; i++)
        if (!same_plan(&ranked[i].plan, &plans[0]) && count < options.plans)
            plans[count++] = ranked[i].plan;
    free(ranked);
    return count;
}

/* Leaves the plans whose results agree with the default's; returns how many, 0 if the default fails. */
static int prove(stopwatch_t *watch, const char *name, plan_t *plans, int count)
{
    int proved = 0;
    for (int i = 0; i < count; i++) {
        const char *fault;
        char words[PLAN_TEXT];
        plan_to_text(&plans[i], words);
        if (stopwatch_prove(watch, &plans[i], &fault))
            plans[proved++] = plans[i];
        else
            fprintf(stderr, "hgemm: %s by %s does not count: %s\n", name, words, fault);
        if (proved == 0)
            return 0;
    }
    return proved;
}

static void must_time(stopwatch_t *watch, const plan_t *const plans[], int count, double *seconds)
{
    const char *fault;
    if (!stopwatch_time(watch, plans, count, options.repetitions, seconds, &fault))
        tool_fail("a launch failed: %s", fault);
}

/* The plan to use: plans[0], the default, or one that is faster. Writes the medians of both. */
static const plan_t *choose(stopwatch_t *watch, const plan_t *plans, int count, double *chosen, double *by_default)
{
    const int reps = options.repetitions;
    const plan_t **all = calloc((size_t)count, sizeof *all);
    double *seconds = calloc((size_t)count * (size_t)reps, sizeof *seconds);
    int best = 0;
    if (!all || !seconds)
        tool_fail("there is no memory left");
    for (int i = 0; i < count; i++)
        all[i] = &plans[i];
    must_time(watch, all, count, seconds);
    for (int i = 1; i < count; i++)
        if (median_of(seconds + i * reps, reps) < median_of(seconds + best * reps, reps))
            best = i;
    *by_default = *chosen = median_of(seconds, reps);
    if (best && is_faster(seconds + best * reps, seconds, reps)) {
        must_time(watch, (const plan_t *[]){&plans[0], &plans[best]}, 2, seconds);
        *by_default = *chosen = median_of(seconds, reps);
        if (is_faster(seconds + reps, seconds, reps))
            *chosen = median_of(seconds + reps, reps);
        else
            best = 0;
    } else {
        best = 0;
    }
    free(all);
    free(seconds);
    return &plans[best];
}

/* Whether cuBLAS computes what the plans do, and so can be compared with; before the first turn. */
static int prove_cublas(stopwatch_t *watch, const char *name)
{
    const char *fault;
    if (stopwatch_problem(watch).is_packed) /* which cuBLAS does not take */
        return 0;
    stopwatch_set_cublas(watch, cublas);
    if (!cublas || stopwatch_prove(watch, NULL, &fault))
        return cublas != NULL;
    fprintf(stderr, "hgemm: %s is not compared with cuBLAS: %s\n", name, fault);
    return 0;
}

/* cuBLAS's time in times of the plan's: the median of repetitions in which the two took turns. */
static double compare_cublas(stopwatch_t *watch, const plan_t *plan)
{
    const int reps = options.repetitions;
    double *seconds = calloc(2 * (size_t)reps, sizeof *seconds);
    if (!seconds)
        tool_fail("there is no memory left");
    must_time(watch, (const plan_t *[]){plan, NULL}, 2, seconds);
    for (int i = 0; i < reps; i++)
        seconds[i] = seconds[reps + i] / seconds[i];
    double ratio = median_of(seconds, reps);
    free(seconds);
    return ratio;
}

/* Measures a shape and notes the result; 0 if it cannot be had. */
static int tune_shape(const problem_class_t *problem, const char *name)
{
    hgemm_desc_t example;
    hgemm_weights_t weights;
    problem_t p;
    const char *fault = class_example(problem, &example, &weights);
    const char *witness = strcmp(handle->info.kind, "t4model") == 0 ? "modelled" : "measured";
    if (!fault) {
        p = normalise(&example);
        fault = tuning_fault(&p);
    }
    stopwatch_t *watch = fault ? NULL : stopwatch_open(handle, problem, &fault);
    plan_t *plans = calloc((size_t)options.plans, sizeof *plans);
    char words[PLAN_TEXT], line[1024], ratio[TUNING_RATIO] = "";
    double chosen, by_default;
    if (!plans)
        tool_fail("there is no memory left");
    int count = watch ? prove(watch, name, plans, find_candidates(watch, plans)) : 0;
    if (count > 0) {
        const int has_rival = prove_cublas(watch, name);
        const plan_t *plan = choose(watch, plans, count, &chosen, &by_default);
        plan_to_text(plan, words);
        if (has_rival)
            tuning_ratio_to_text(compare_cublas(watch, plan), ratio);
        snprintf(line, sizeof line, "%s = %s%s # %s: %.2f us, by default %.2f us", name, words, ratio, witness,
                 chosen * 1e6, by_default * 1e6);
        put_row(problem, line, 1);
        printf("%s\n", line);
        fflush(stdout);
    } else {
        fprintf(stderr, "hgemm: %s is left out: %s\n", name, watch ? "its default plan does not run" : fault);
    }
    free(plans);
    stopwatch_close(watch);
    return count > 0;
}

static int tune(const shapes_t *shapes)
{
    const double start = now();
    int failures = 0, left = 0, begun = 0;
    for (int i = 0; i < shapes->count; i++) {
        char name[CLASS_TEXT];
        class_to_text(&shapes->of[i], name);
        if (!options.again && find_row(&shapes->of[i]) >= 0) {
            fprintf(stderr, "[%d/%d] %s: is in %s\n", i + 1, shapes->count, name, options.out);
            continue;
        }
        if (options.budget > 0 && begun > 0 && now() - start > options.budget) {
            left++;
            continue;
        }
        begun++;
        fprintf(stderr, "[%d/%d] %s: measuring\n", i + 1, shapes->count, name);
        if (tune_shape(&shapes->of[i], name))
            update_file();
        else
            failures++;
    }
    if (left)
        fprintf(stderr, "hgemm: %g seconds are over: %d of %d shapes are left; the same command goes on with them\n",
                options.budget, left, shapes->count);
    return failures > 0;
}

/* ---- What the file is worth ------------------------------------------------------------------------ */

/* Times what the library chooses with the file and without; 1 if it is slower with it, twice. */
static int is_slower(const problem_class_t *problem)
{
    const char *fault;
    char name[CLASS_TEXT], words[2][PLAN_TEXT];
    plan_t plans[2];
    stopwatch_t *watch = stopwatch_open(handle, problem, &fault);
    double *seconds = calloc(2 * (size_t)options.repetitions, sizeof *seconds);
    if (!watch || !seconds)
        tool_fail("cannot be timed: %s", watch ? "there is no memory left" : fault);
    class_to_text(problem, name);
    const problem_t p = stopwatch_problem(watch);
    for (int tuned = 0; tuned < 2; tuned++) {
        tool_must(handle, hgemm_load_tuning(handle, tuned ? options.out : NULL));
        tool_must(handle, handle_choose(handle, &p, &plans[tuned]));
        plan_to_text(&plans[tuned], words[tuned]);
    }
    double *tuned = seconds + options.repetitions;
    int slower = 1;
    for (int look = 0; look < 2 && slower; look++) {
        must_time(watch, (const plan_t *[]){&plans[0], &plans[1]}, 2, seconds);
        slower = !same_plan(&plans[0], &plans[1]) && is_faster(seconds, tuned, options.repetitions);
    }
    printf("%s: %s %.2f us, by default %s %.2f us%s\n", name, words[1], 1e6 * median_of(tuned, options.repetitions),
           words[0], 1e6 * median_of(seconds, options.repetitions), slower ? ": SLOWER" : "");
    fflush(stdout);
    stopwatch_close(watch);
    free(seconds);
    return slower;
}

static int check(shapes_t *shapes)
{
    int slower = 0;
    if (row_count == 0)
        tool_fail("%s lists nothing", options.out);
    for (int i = 0; i < row_count && shapes->count < row_count; i++)
        shapes_add(shapes, &rows[i].problem);
    for (int i = 0; i < shapes->count; i++)
        slower += is_slower(&shapes->of[i]);
    printf("%d of %d shapes are slower than by default\n", slower, shapes->count);
    return slower > 0;
}

/* ---- The command ----------------------------------------------------------------------------------- */

static void parse(int argc, char **argv, shapes_t *shapes)
{
    enum {
        SHAPES = 1,
        LAYOUT,
        ACCUMULATE,
        TRANS,
        BATCH,
        WEIGHTS,
        OUTPUT,
        AGAIN,
        PLANS,
        REPS,
        MARGIN,
        BUDGET,
        NO_CUBLAS,
        CHECK,
        DEVICE,
        HELP
    };
    static const struct option known[] = {
        {"shapes", 1, NULL, SHAPES},       {"layout", 1, NULL, LAYOUT}, {"accumulate", 1, NULL, ACCUMULATE},
        {"trans", 1, NULL, TRANS},         {"batch", 1, NULL, BATCH},   {"weights", 1, NULL, WEIGHTS},
        {"out", 1, NULL, OUTPUT},          {"again", 0, NULL, AGAIN},   {"plans", 1, NULL, PLANS},
        {"reps", 1, NULL, REPS},           {"margin", 1, NULL, MARGIN}, {"budget", 1, NULL, BUDGET},
        {"check", 0, NULL, CHECK},         {"device", 1, NULL, DEVICE}, {"help", 0, NULL, HELP},
        {"no-cublas", 0, NULL, NO_CUBLAS}, {NULL, 0, NULL, 0}};
    enum { MOST_FILES = 64 };
    const char *files[MOST_FILES];
    int file_count = 0;
    options = (options_t){.out = "hgemm.tuning", .plans = 12, .margin = 0.01};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case SHAPES:
            if (file_count == MOST_FILES)
                tool_refuse("more than %d files", MOST_FILES);
            files[file_count++] = optarg;
            break;
        case LAYOUT: shapes_take_layout(&options.shapes, optarg); break;
        case ACCUMULATE: shapes_take_accumulate(&options.shapes, optarg); break;
        case TRANS: shapes_take_trans(&options.shapes, optarg); break;
        case BATCH: shapes_take_batch(&options.shapes, optarg); break;
        case WEIGHTS: shapes_take_weights(&options.shapes, optarg); break;
        case OUTPUT: options.out = optarg; break;
        case AGAIN: options.again = 1; break;
        case PLANS: options.plans = (int)tool_number("--plans", optarg, 1, 1000); break;
        case REPS: options.repetitions = (int)tool_number("--reps", optarg, 1, 10000); break;
        case MARGIN: options.margin = tool_number("--margin", optarg, 0, 100) / 100; break;
        case BUDGET: options.budget = tool_number("--budget", optarg, 0, 1e9); break;
        case NO_CUBLAS: options.no_cublas = 1; break;
        case CHECK: options.is_check = 1; break;
        case DEVICE: options.device = optarg; break;
        case HELP: fputs(usage, stdout); exit(0);
        default: fputs("Try hgemm tune --help.\n", stderr); exit(2);
        }
    for (int i = 0; i < file_count; i++)
        shapes_add_file(shapes, &options.shapes, files[i]);
    while (optind < argc)
        shapes_add_argument(shapes, &options.shapes, argv[optind++]);
    if (shapes->count == 0 && !options.is_check)
        tool_refuse("no shape is given; try hgemm tune --help");
}

/* On a GPU, if it can be had. */
static void open_cublas(void)
{
    char why[CUBLAS_WORDS];
    if (strcmp(handle->info.kind, "cuda") != 0 || options.no_cublas || options.is_check)
        return;
    cublas = cublas_open(handle->device->ordinal, why);
    if (!cublas)
        fprintf(stderr, "hgemm: no comparison with cuBLAS: %s\n", why);
}

int tool_tune(int argc, char **argv)
{
    shapes_t shapes = {0};
    parse(argc, argv, &shapes);
    unsetenv("HGEMM_TUNING"); /* the default is what selection chooses without */
    unsetenv("HGEMM_RECORD");
    handle = tool_open(options.device);
    if (strcmp(handle->info.kind, "t4emu") == 0)
        tool_fail("the emulated T4 has no times; --device t4emu:time models those of a T4");
    if (!options.repetitions)
        options.repetitions = strcmp(handle->info.kind, "t4model") == 0 ? 3 : 15;
    options.out = shared_file_follow(options.out);
    read_rows();
    open_cublas();
    int status = options.is_check ? check(&shapes) : tune(&shapes);
    for (int i = 0; i < row_count; i++)
        free(rows[i].line);
    free(rows);
    free(shapes.of);
    cublas_close(cublas);
    tool_must(NULL, hgemm_destroy(handle));
    return status;
}
