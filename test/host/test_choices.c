/* SPDX-License-Identifier: MIT */
/*
 * What the cost model chooses, held against recorded times of many plans of the same problems (bench_hgemm --plans):
 * the choice need not be the plan that it was, but it must be among the fast ones. Problems whose choice was not timed
 * then say nothing, and must be few. Arguments: results of a T4 by its model, a colon, results of an H100.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "problem/weights_text.h"
#include "problem_of.h"
#include "select/plan_text.h"

enum { MOST_LINE = 4096, MOST_PLANS = 64 };

typedef struct recorded_t {
    char label[PLAN_LABEL];
    double us;
} recorded_t;

/* What came of problems so far: the times of choices in those of the fastest plans. */
typedef struct tally_t {
    int problems, known;
    double log_loss, worst;
    char worst_problem[32 + 2 + 64 + 2 + PLAN_LABEL];
} tally_t;

/* A problem of a results file with the plans that were timed; and what came of all of them so far, packed weights
 * apart. */
typedef struct judge_t {
    const machine_t *machine;
    char operands[32]; /* of the file: packed weights in words, or empty */
    char problem[64];
    recorded_t plans[MOST_PLANS];
    int count;
    tally_t halves, packed;
} judge_t;

/* What a plan's label tells of the problem: the type of sums, and whether B is packed weights. */
typedef enum sort_t { SUMS_F16, SUMS_F32, PACKED_B, SORTS } sort_t;

static sort_t sort_of(const char *label)
{
    return strncmp(label, "weights_", 8) == 0 ? PACKED_B : strstr(label, "_f32") ? SUMS_F32 : SUMS_F16;
}

static const recorded_t *fastest_of(const judge_t *j, sort_t sort)
{
    const recorded_t *fastest = NULL;
    for (int i = 0; i < j->count; i++)
        if (sort_of(j->plans[i].label) == sort && (!fastest || j->plans[i].us < fastest->us))
            fastest = &j->plans[i];
    return fastest;
}

/* Judges today's choice for problems of one sort, if plans for such were timed. */
static void judge_sort(judge_t *j, sort_t sort)
{
    const recorded_t *const fastest = fastest_of(j, sort);
    hgemm_weights_t weights;
    long long m, n, k;
    char op[3], label[PLAN_LABEL];
    hgemm_desc_t p;
    plan_t plan;
    if (!fastest || sscanf(j->problem, "%lldx%lldx%lld %2s row", &m, &n, &k, op) != 4 || strstr(j->problem, "batch"))
        return;
    hgemm_desc_init(&p);
    p.accumulate = sort == SUMS_F16 ? HGEMM_ACCUMULATE_F16 : HGEMM_ACCUMULATE_F32;
    p.op_a = op[0] == 't' ? HGEMM_OP_T : HGEMM_OP_N, p.op_b = op[1] == 't' ? HGEMM_OP_T : HGEMM_OP_N;
    p.m = m, p.n = n, p.k = k, p.ldc = p.ldd = n;
    p.lda = p.op_a == HGEMM_OP_T ? m : k, p.ldb = p.op_b == HGEMM_OP_T ? k : n;
    if (sort == PACKED_B) {
        const char *text = strncmp(j->operands, "bf16_", 5) == 0 ? j->operands + 5 : j->operands;
        hgemm_weights_init(&weights);
        if (weights_from_text(text, &weights))
            fail_msg("%s are no weights", j->operands);
        weights.n = n, weights.k = k;
        p.weights = &weights;
        if (text != j->operands) {
            p.type_a = p.type_c = p.type_d = p.type_bias = HGEMM_TYPE_BF16;
            p.scale_a = p.scale_b = 1;
        }
    }
    assert_int_equal(select_plan(problem_of(&p), j->machine, j->machine->workspace_bytes, &plan), HGEMM_STATUS_SUCCESS);
    plan_to_label(&plan, p.k, label);
    tally_t *tally = sort == PACKED_B ? &j->packed : &j->halves;
    tally->problems++;
    for (int i = 0; i < j->count; i++)
        if (strcmp(j->plans[i].label, label) == 0) {
            const double loss = j->plans[i].us / fastest->us;
            tally->known++;
            tally->log_loss += log(loss);
            if (loss > tally->worst) {
                tally->worst = loss;
                snprintf(tally->worst_problem, sizeof tally->worst_problem, "%s %s, %s", j->operands, j->problem,
                         label);
            }
            return;
        }
}

static void judge_problem(judge_t *j)
{
    for (int sort = 0; sort < SORTS; sort++)
        judge_sort(j, (sort_t)sort);
    j->count = 0;
}

static void read_results(judge_t *j, const char *path)
{
    char line[MOST_LINE], problem[64], kernel[96];
    double us;
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    j->operands[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        const char *median = strstr(line, "\"median_us\": ");
        if (sscanf(line, " \"operands\": \"%31[^\"]\"", j->operands) == 1)
            continue;
        if (sscanf(line, "{\"problem\": \"%63[^\"]\", \"kernel\": \"%95[^\"]\"", problem, kernel) != 2 || !median)
            continue;
        if (strcmp(problem, j->problem) != 0) {
            judge_problem(j);
            snprintf(j->problem, sizeof j->problem, "%s", problem);
        }
        if (strncmp(kernel, "plan ", 5) == 0 && sscanf(median, "\"median_us\": %lf", &us) == 1 &&
            j->count < MOST_PLANS) {
            recorded_t *plan = &j->plans[j->count++];
            snprintf(plan->label, sizeof plan->label, "%.63s", kernel + 5);
            plan->us = us;
        }
    }
    fclose(file);
    judge_problem(j);
}

static int argument_count;
static char **arguments;

typedef struct limits_t {
    double mean, worst;
} limits_t;

/* Whether choices were within the limits, of which it prints how near they came. */
static int is_fast(const tally_t *tally, limits_t most)
{
    const double loss = exp(tally->log_loss / (tally->known ? tally->known : 1));
    printf("%d choices, %d of them timed: %.3f times the fastest plan, at most %.3f: %s\n", tally->problems,
           tally->known, loss, tally->worst, tally->worst_problem);
    return tally->problems > 20 && tally->known > 3 * tally->problems / 4 && loss < most.mean &&
           tally->worst < most.worst;
}

static void judge(const machine_t *machine, int begin, int end, limits_t halves, limits_t packed)
{
    judge_t j = {.machine = machine};
    for (int i = begin; i < end; i++)
        read_results(&j, arguments[i]);
    const int halves_are_fast = is_fast(&j.halves, halves), packed_are_fast = is_fast(&j.packed, packed);
    assert_true(halves_are_fast && packed_are_fast);
}

static int colon(void)
{
    int at = 1;
    while (at < argument_count && strcmp(arguments[at], ":") != 0)
        at++;
    return at;
}

static void choices_for_a_t4_are_fast(void **state)
{
    (void)state;
    judge(&machine_t4, 1, colon(), (limits_t){1.03, 1.2}, (limits_t){1.01, 1.07});
}

static void choices_for_an_h100_are_fast(void **state)
{
    (void)state;
    const hgemm_device_info_t info = {
        .compute_major = 9, .multiprocessors = 132, .memory_bytes = (size_t)80 << 30, .l2_bytes = 50 << 20};
    const machine_t newer = machine_of(&info);
    judge(&newer, colon() + 1, argument_count, (limits_t){1.03, 1.25}, (limits_t){1.02, 1.09});
}

int main(int argc, char **argv)
{
    argument_count = argc, arguments = argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_for_a_t4_are_fast),
        cmocka_unit_test(choices_for_an_h100_are_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
