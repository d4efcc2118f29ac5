/* SPDX-License-Identifier: MIT */
/*
 * How many functions of the library a call runs through, none of them inlined, and how often it moves from one file to
 * another: what a reader has to follow, and what a host takes before a GPU has anything to do.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "count_calls.h"
#include "problem/weights_text.h"

enum { MOST_DEPTH = 64 };

static int is_counting, depth, calls, moves;
static const char *files[MOST_DEPTH];

void count_enter(const char *file)
{
    if (!is_counting)
        return;
    calls++;
    moves += depth > 0 && strcmp(file, files[depth - 1]) != 0;
    assert_true(depth < MOST_DEPTH);
    files[depth++] = file;
}

void count_exit(void)
{
    depth -= is_counting;
}

typedef struct count_t {
    int calls, moves;
} count_t;

static count_t count_run(const hgemm_desc_t *desc)
{
    calls = moves = depth = 0;
    is_counting = 1;
    const hgemm_status_t status = hgemm_run_desc(&handle, desc);
    is_counting = 0;
    assert_status(status, HGEMM_STATUS_SUCCESS);
    return (count_t){calls, moves};
}

/* A row by weights of 4096 x 4096, as a language model has them. */
static hgemm_desc_t decode(hgemm_weights_t *weights, const char *word)
{
    hgemm_desc_t desc = small();
    desc.m = 1, desc.n = desc.k = 4096, desc.beta = 0;
    desc.op_b = HGEMM_OP_T;
    desc.accumulate = HGEMM_ACCUMULATE_F32;
    desc.a = elsewhere(0), desc.b = elsewhere(UINT64_C(1) << 50), desc.d = elsewhere(UINT64_C(2) << 50);
    desc.lda = desc.ldb = desc.ldc = desc.ldd = 4096;
    if (word) {
        assert_null(weights_from_text(word, weights));
        weights->n = weights->k = 4096;
        desc.weights = weights;
    }
    return desc;
}

static void counts_are_small(void **state)
{
    (void)state;
    static const struct {
        const char *weights; /* NULL: halves */
        int first, again, moves;
    } most[] = {{NULL, 1200, 100, 30}, {"int4:128", 750, 100, 30}, {"nf4", 900, 100, 30}};
    fake.compute = 0;
    handle.workspace = elsewhere(UINT64_C(3) << 50), handle.workspace_bytes = 32 << 20;
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        hgemm_weights_t weights;
        const hgemm_desc_t desc = decode(&weights, most[i].weights);
        const count_t first = count_run(&desc), again = count_run(&desc);
        printf("%-8s  first %4d calls, %3d moves   again %3d calls, %2d moves\n",
               most[i].weights ? most[i].weights : "halves", first.calls, first.moves, again.calls, again.moves);
        assert_in_range(first.calls, again.calls, most[i].first); /* they are counted */
        assert_in_range(again.calls, 10, most[i].again);
        assert_in_range(again.moves, 2, most[i].moves);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(counts_are_small, set_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
