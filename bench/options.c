/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "commit.h"
#include "problem/names.h"
#include "problem/weights_text.h"
#include "shape_row.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: bench_hgemm [options] [shape[,shape...]]...\n"
    "\n"
    "Times the kernels of hgemm, cuBLAS, CUTLASS and the mma.m16n8k8 ceiling in alternation, and\n"
    "verifies every result before it counts. Without a GPU it prints what an emulated T4 counts while\n"
    "it runs the kernels' machine code; --device t4emu:time prints what a T4 would take by a model.\n"
    "\n"
    "  shape               N (a square), MxNxK, or FROM:TO:STEP (squares); default 1024,2048,4096\n"
    "  --shapes FILE       CSV whose first line names its columns: m, n, k and, where wanted, trans_a,\n"
    "                      trans_b (1: transposed) and batch\n"
    "  --batch N           strided batches of N products, for shapes whose file has no column batch;\n"
    "                      beside cublasHgemmStridedBatched, cublasGemmStridedBatchedEx and CUTLASS's\n"
    "                      batched mode\n"
    "  --experts N:TOP     grouped products: each of m tokens takes TOP of N experts at random, a row for each.\n"
    "                      Row-major; beside a product of cuBLAS's for each expert that has rows\n"
    "  --trans LIST        of nn, nt, tn, tt (op_a, op_b); default nn\n"
    "  --layout row|col    default row\n"
    "  --type TYPE         of A, B, C and D: f16 (default), bf16 or f32. Beside hgemm's product of halves with\n"
    "                      FP32 sums, and what cuBLAS has: SGEMM and, where there is one, TF32, whose errors\n"
    "                      differ a thousandfold. Of f32 CUTLASS's kernels for FP32 units and hgemm's lower\n"
    "                      accuracies, too; t4emu:time,dry cannot time most of the latter. Of bf16 scales are\n"
    "                      given; and found by the call, for A or for both, but with t4emu:time,dry\n" WEIGHTS_TEXT_HELP
    "                      A, C and D are then f16 or bf16. Row-major, nt; beside products of halves,\n"
    "                      hgemm's and cuBLAS's\n"
    "  --kernel REGEX      only kernels whose name matches (\"auto\" is hgemm's own choice)\n"
    "  --cutlass REGEX     of CUTLASS only configurations whose name matches, such as\n"
    "                      \"64x128x32 align8 k/4 parallel\"; default all. For shapes of which is known\n"
    "                      which are the fastest: to try all takes long where time is modelled\n"
    "  --plans N           also the N plans (kernel, splits of k, copies) that selection's model finds\n"
    "                      cheapest, each by itself: what the choice loses to the best\n"
    "  --epilogues         also hgemm's own choice with a bias and each activation\n"
    "  --accumulate LIST   of f16, f32; default f16\n"
    "  --alpha X --beta X  default 1 and 0\n"
    "  --mode burst        one launch at a time, each after a pause in which the GPU cools "
    "(default)\n"
    "  --mode first        one launch at a time which finds nothing in the L2 cache; t4emu:time only\n"
    "  --mode continuous   launches back to back\n"
    "  --energy            continuous, in repetitions of 0.5 s or more, with watts and pJ per\n"
    "                      operation by the GPU's energy counter (whole board; every 20 to 100 "
    "ms)\n"
    "  --reps N            repetitions, of which medians and quartiles are shown; default 21,\n"
    "                      and 3 where time is modelled, which depends on what caches hold alone\n"
    "  --min-time S        length of a continuous repetition in seconds; default 0.02\n"
    "  --peers LIST        of ceiling, copy, cublas, cutlass, none; default all that are there.\n"
    "                      The environment's HGEMM_CUBLAS_LIBRARY and HGEMM_PEERS_LIBRARY may say where\n"
    "  --device NAME       default is the environment's HGEMM_DEVICE, else the first GPU, else t4emu:\n"
    "                        cuda, cuda:N    the first usable GPU, the GPU of that ordinal: measured\n"
    "                        t4emu           a T4 emulated on the CPU: counts, no times (also t4emu:check)\n"
    "                        t4emu:time      a timing model of it at 1590 MHz: modelled times, beside\n"
    "                                        published ones of cuBLAS on a T4 (row-major squares); on two\n"
    "                                        cores 1024 takes a second or two a kernel, 4096 minutes\n"
    "  --choices DEVICE    nothing is timed and no GPU is needed: prints as JSON what hgemm chooses on a GPU\n"
    "                      of which results say such a \"device\":\n"
    "                      \"compute capability 9.0, 132 multiprocessors, 81079 MiB of memory, 51200 KiB of\n"
    "                      L2 cache\"\n"
    "  --clock NAME=VALUE[,NAME=VALUE]\n"
    "                      constants of the timing model, of t4emu:time (docs/emulator.md)\n"
    "  --format F          table, csv or json\n"
    "  --out FILE          write the format there, and the table to stdout\n"
    "  --version           print the library's version, commit and compiler of kernels\n"
    "\n"
    "Exit status: 0, 1 where a result was wrong or could not be had, 2 where the arguments are.\n";

const char *version(void)
{
    static char text[128];
    snprintf(text, sizeof text, "%d.%d.%d, commit %s, nvcc %s", HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR,
             HGEMM_VERSION_PATCH, HGEMM_COMMIT, HGEMM_NVCC_VERSION);
    return text;
}

static void refuse(const char *what, const char *text)
{
    fprintf(stderr, "bench_hgemm: %s: %s\nTry --help.\n", what, text);
    exit(2);
}

/* Adds a shape that is not there yet. */
static void add_shape(options_t *o, shape_t shape)
{
    for (int i = 0; i < o->shape_count; i++) {
        const shape_t *s = &o->shapes[i];
        if (s->m == shape.m && s->n == shape.n && s->k == shape.k && s->batch == shape.batch && s->top == shape.top &&
            s->op_a == shape.op_a && s->op_b == shape.op_b)
            return;
    }
    shape_t *shapes = realloc(o->shapes, (size_t)(o->shape_count + 1) * sizeof *shapes);
    if (!shapes)
        refuse("out of memory", "shapes");
    o->shapes = shapes;
    o->shapes[o->shape_count++] = shape;
}

static int in_range(long long v)
{
    return v >= 1 && v <= INT32_MAX;
}

/* One shape or range of the command line; transposes come later. */
static void parse_shape(options_t *o, const char *text)
{
    long long m, n, k;
    int end = 0;
    if (sscanf(text, "%lldx%lldx%lld%n", &m, &n, &k, &end) == 3 && !text[end] && in_range(m) && in_range(n) &&
        in_range(k)) {
        add_shape(o, (shape_t){.m = m, .n = n, .k = k});
        return;
    }
    long long from, to, step;
    int fields = sscanf(text, "%lld%n:%lld:%lld%n", &from, &end, &to, &step, &end);
    if (fields == 1)
        to = from, step = 1;
    if ((fields != 1 && fields != 3) || text[end] || !in_range(from) || !in_range(to) || step < 1 || from > to)
        refuse("not a shape", text);
    for (long long side = from; side <= to; side += step)
        add_shape(o, (shape_t){.m = side, .n = side, .k = side});
}

static void parse_file(options_t *o, const char *path)
{
    char line[512];
    int columns[SHAPE_COLUMNS], count, rows = 0;
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file))
        refuse("cannot read", path);
    line[strcspn(line, "\r\n")] = '\0';
    count = shape_row_header(line, columns);
    if (!count)
        refuse("its first line must name the columns m,n,k and may name trans_a,trans_b,batch", path);
    while (fgets(line, sizeof line, file)) {
        int64_t value[SHAPE_COLUMNS] = {0};
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (!shape_row_values(line, columns, count, value))
            refuse("not a shape", line);
        rows++;
        add_shape(o, (shape_t){.m = value[SHAPE_M],
                               .n = value[SHAPE_N],
                               .k = value[SHAPE_K],
                               .batch = value[SHAPE_BATCH],
                               .op_a = value[SHAPE_TRANS_A] ? HGEMM_OP_T : HGEMM_OP_N,
                               .op_b = value[SHAPE_TRANS_B] ? HGEMM_OP_T : HGEMM_OP_N});
    }
    fclose(file);
    if (!rows) /* the default shapes would take their place */
        refuse("it has no shapes", path);
}

static void each_item(char *list, options_t *o, void (*take)(options_t *, const char *))
{
    for (char *rest, *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        take(o, item);
}

static void parse_accumulate(options_t *o, const char *text)
{
    const int value = name_value(accumulate_names, text);
    if (value < 0)
        refuse("--accumulate takes f16 and f32", text);
    o->accumulate |= 1U << value;
}

static void parse_peer(options_t *o, const char *text)
{
    if (strcmp(text, "ceiling") == 0)
        o->peers |= PEER_CEILING;
    else if (strcmp(text, "copy") == 0)
        o->peers |= PEER_COPY;
    else if (strcmp(text, "cublas") == 0)
        o->peers |= PEER_CUBLAS;
    else if (strcmp(text, "cutlass") == 0)
        o->peers |= PEER_CUTLASS;
    else if (strcmp(text, "none") != 0)
        refuse("--peers takes ceiling, copy, cublas, cutlass and none", text);
}

/* Every shape with every transpose, in the order of the shapes. */
static void multiply_transposes(options_t *o, char *list)
{
    shape_t *shapes = o->shapes;
    int count = o->shape_count;
    char *end = list + strlen(list);
    o->shapes = NULL;
    o->shape_count = 0;
    for (int s = 0; s < count; s++)
        for (const char *t = list; t < end; t += 3) {
            if (!strchr("nt", t[0]) || !strchr("nt", t[1]) || t + 2 > end || (t[2] && t[2] != ','))
                refuse("--trans takes nn, nt, tn and tt", list);
            shape_t shape = shapes[s];
            shape.op_a = t[0] == 't' ? HGEMM_OP_T : HGEMM_OP_N;
            shape.op_b = t[1] == 't' ? HGEMM_OP_T : HGEMM_OP_N;
            add_shape(o, shape);
        }
    free(shapes);
}

void shape_name(const shape_t *s, char name[SHAPE_NAME])
{
    int used = snprintf(name, SHAPE_NAME, "%lldx%lldx%lld %c%c", (long long)s->m, (long long)s->n, (long long)s->k,
                        s->op_a ? 't' : 'n', s->op_b ? 't' : 'n');
    if (s->top)
        snprintf(name + used, (size_t)(SHAPE_NAME - used), " experts %lld:%lld", (long long)s->batch,
                 (long long)s->top);
    else if (s->batch > 1)
        snprintf(name + used, (size_t)(SHAPE_NAME - used), " batch %lld", (long long)s->batch);
}

/* Each shape's m are tokens, for whose rows there are such experts. */
static void take_experts(options_t *o, const char *text)
{
    long long experts, top;
    int end = 0;
    if (sscanf(text, "%lld:%lld%n", &experts, &top, &end) != 2 || text[end] || top < 1 || top > experts ||
        !in_range(experts))
        refuse("--experts takes how many there are and how many of them a token takes, such as 8:2", text);
    if (o->layout != HGEMM_ROW_MAJOR)
        refuse("products of experts are row-major", layout_names[o->layout]);
    for (int i = 0; i < o->shape_count; i++) {
        shape_t *s = &o->shapes[i];
        char name[SHAPE_NAME];
        shape_name(s, name);
        if (s->op_a != HGEMM_OP_N || s->batch > 1 || s->m > INT32_MAX / top)
            refuse("products of experts are nn or nt, of one batch and 2^31 - 1 rows at most", name);
        s->batch = experts, s->top = top;
    }
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        refuse("not a number", text);
    return value;
}

/* The option's whole number, `least` at least. */
static int whole(const char *option, const char *text, int least)
{
    char *end, words[96];
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > INT32_MAX) {
        snprintf(words, sizeof words, "%s takes a whole number, %d at least", option, least);
        refuse(words, text);
    }
    return (int)value;
}

static hgemm_layout_t layout_named(const char *text)
{
    const int value = name_value(layout_names, text);
    if (value < 0)
        refuse("--layout is row or col", text);
    return (hgemm_layout_t)value;
}

static void parse_weights(fill_t *fill, const char *text)
{
    const char *wrong = weights_from_text(text, &fill->weights);
    if (wrong)
        refuse(wrong, text);
    fill->is_packed = 1;
}

static hgemm_type_t type_named(const char *text)
{
    const int value = name_value(type_names, text);
    if (value < 0)
        refuse("--type takes f16, bf16 and f32", text);
    return (hgemm_type_t)value;
}

/* What goes with other operands than halves. */
static void settle_operands(options_t *o)
{
    const fill_t *fill = &o->fill;
    const char *type = type_names[fill->type];
    char weights[WEIGHTS_TEXT];
    weights_to_text(&fill->weights, weights);
    if (fill->is_packed)
        snprintf(o->operands, sizeof o->operands, "%s%s%s", fill->type == HGEMM_TYPE_F16 ? "" : type,
                 fill->type == HGEMM_TYPE_F16 ? "" : "_", weights);
    else
        snprintf(o->operands, sizeof o->operands, "%s", type);
    if (!fill->is_packed && fill->type == HGEMM_TYPE_F16)
        return;
    if (fill->is_packed && fill->type == HGEMM_TYPE_F32)
        refuse("beside packed weights --type takes f16 and bf16", type);
    if (fill->is_packed && o->layout != HGEMM_ROW_MAJOR)
        refuse("products by packed weights are row-major", layout_names[o->layout]);
    for (int i = 0; fill->is_packed && i < o->shape_count; i++)
        if (o->shapes[i].op_a != HGEMM_OP_N || o->shapes[i].op_b != HGEMM_OP_T) {
            char name[SHAPE_NAME];
            shape_name(&o->shapes[i], name);
            refuse("products by packed weights are nt", name);
        }
    if (o->accumulate & 1U << HGEMM_ACCUMULATE_F16)
        refuse("sums are f32, as --accumulate may say", o->operands);
    if (o->epilogues)
        refuse("--epilogues are timed of halves", o->operands);
    o->accumulate = 1U << HGEMM_ACCUMULATE_F32;
}

static void parse_mode(options_t *o, const char *text)
{
    o->continuous = strcmp(text, "continuous") == 0;
    o->first = strcmp(text, "first") == 0;
    if (!o->continuous && !o->first && strcmp(text, "burst") != 0)
        refuse("--mode is burst, first or continuous", text);
}

void options_parse(options_t *o, int argc, char **argv)
{
    enum {
        SHAPES = 1,
        TRANS,
        EVERY_BATCH,
        EXPERTS,
        LAYOUT,
        TYPE,
        WEIGHTS,
        KERNEL,
        CUTLASS_NAMES,
        ACCUMULATE,
        ALPHA,
        BETA,
        MODE,
        ENERGY,
        REPS,
        MIN_TIME,
        PEERS,
        PLANS,
        EPILOGUES,
        DEVICE,
        CHOICES,
        CLOCK,
        FORMAT,
        OUT,
        VERSION,
        HELP
    };
    static const struct option known[] = {{"shapes", 1, NULL, SHAPES},
                                          {"trans", 1, NULL, TRANS},
                                          {"batch", 1, NULL, EVERY_BATCH},
                                          {"experts", 1, NULL, EXPERTS},
                                          {"layout", 1, NULL, LAYOUT},
                                          {"type", 1, NULL, TYPE},
                                          {"weights", 1, NULL, WEIGHTS},
                                          {"kernel", 1, NULL, KERNEL},
                                          {"cutlass", 1, NULL, CUTLASS_NAMES},
                                          {"accumulate", 1, NULL, ACCUMULATE},
                                          {"alpha", 1, NULL, ALPHA},
                                          {"beta", 1, NULL, BETA},
                                          {"mode", 1, NULL, MODE},
                                          {"energy", 0, NULL, ENERGY},
                                          {"reps", 1, NULL, REPS},
                                          {"min-time", 1, NULL, MIN_TIME},
                                          {"peers", 1, NULL, PEERS},
                                          {"plans", 1, NULL, PLANS},
                                          {"device", 1, NULL, DEVICE},
                                          {"choices", 1, NULL, CHOICES},
                                          {"clock", 1, NULL, CLOCK},
                                          {"format", 1, NULL, FORMAT},
                                          {"out", 1, NULL, OUT},
                                          {"version", 0, NULL, VERSION},
                                          {"epilogues", 0, NULL, EPILOGUES},
                                          {"help", 0, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    const char *kernels = ".";
    char *trans = NULL, *experts = NULL;
    int64_t batch = 1;
    *o = (options_t){.alpha = 1,
                     .min_time = 0.02,
                     .peers = PEER_CEILING | PEER_COPY | PEER_CUBLAS | PEER_CUTLASS,
                     .format = "table"};
    hgemm_weights_init(&o->fill.weights);

    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case SHAPES: parse_file(o, optarg); break;
        case TRANS: trans = optarg; break;
        case EVERY_BATCH: batch = whole("--batch", optarg, 1); break;
        case EXPERTS: experts = optarg; break;
        case LAYOUT: o->layout = layout_named(optarg); break;
        case TYPE: o->fill.type = type_named(optarg); break;
        case WEIGHTS: parse_weights(&o->fill, optarg); break;
        case KERNEL: kernels = optarg; break;
        case CUTLASS_NAMES: o->cutlass_regex = optarg; break;
        case ACCUMULATE: each_item(optarg, o, parse_accumulate); break;
        case ALPHA: o->alpha = (float)number(optarg); break;
        case BETA: o->beta = (float)number(optarg); break;
        case MODE: parse_mode(o, optarg); break;
        case ENERGY: o->energy = 1; break;
        case REPS: o->repetitions = whole("--reps", optarg, 1); break;
        case MIN_TIME: o->min_time = number(optarg); break;
        case PEERS:
            o->peers = 0;
            each_item(optarg, o, parse_peer);
            break;
        case PLANS: o->plans = whole("--plans", optarg, 0); break;
        case EPILOGUES: o->epilogues = 1; break;
        case DEVICE: o->device = optarg; break;
        case CHOICES: o->choices = optarg; break;
        case CLOCK: o->clock = optarg; break;
        case FORMAT: o->format = optarg; break;
        case OUT: o->out = optarg; break;
        case VERSION: puts(version()); exit(0);
        case HELP: fputs(usage, stdout); exit(0);
        default: fputs("Try --help.\n", stderr); exit(2);
        }
    while (optind < argc)
        each_item(argv[optind++], o, parse_shape);
    o->shapes_are_default = o->shape_count == 0;
    if (o->shapes_are_default)
        for (int side = 1024; side <= 4096; side *= 2)
            add_shape(o, (shape_t){.m = side, .n = side, .k = side});
    for (int i = 0; i < o->shape_count; i++)
        if (o->shapes[i].batch == 0) /* its file has no such column */
            o->shapes[i].batch = batch;
    static char only_nt[] = "nt";
    if (trans || o->fill.is_packed)
        multiply_transposes(o, trans ? trans : only_nt);
    settle_operands(o);
    if (experts)
        take_experts(o, experts);
    if (!o->accumulate)
        o->accumulate = 1U << HGEMM_ACCUMULATE_F16;
    if (o->energy) {
        o->continuous = 1;
        o->min_time = o->min_time > 0.5 ? o->min_time : 0.5;
    }
    if (strcmp(o->format, "table") != 0 && strcmp(o->format, "csv") != 0 && strcmp(o->format, "json") != 0)
        refuse("--format is table, csv or json", o->format);
    if (regcomp(&o->kernels, kernels, REG_EXTENDED | REG_NOSUB) != 0)
        refuse("--kernel is not a regular expression", kernels);
    if (regcomp(&o->cutlass, o->cutlass_regex ? o->cutlass_regex : ".", REG_EXTENDED | REG_NOSUB) != 0)
        refuse("--cutlass is not a regular expression", o->cutlass_regex);
}
