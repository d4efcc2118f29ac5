/* SPDX-License-Identifier: MIT */
#include "sampled.h"

#include "table/args.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hgemm_handle_t handle;
char *workspace;
rng_t rng = {1};
scale_space_t space;

uint16_t bits_of(double x)
{
    uint16_t bits;
    store_value(HGEMM_TYPE_BF16, &bits, x);
    return bits;
}

double value(uint16_t bits)
{
    return value_of(HGEMM_TYPE_BF16, &bits);
}

static stored_t store(int64_t lines, int64_t width, int64_t gap)
{
    stored_t s = {.lines = lines, .width = width, .ld = width + gap, .every = 1, .every_row = 1};
    int64_t segments = (width + 63) / 64;
    s.x = must(calloc((size_t)(lines * s.ld), sizeof *s.x));
    while (lines * width * 2 / (2 * s.every) >= 256 << 10 && 2 * s.every <= lines)
        s.every *= 2;
    for (; s.every > segments; s.every /= 2)
        s.every_row *= 2;
    return s;
}

/* As args.h has it. */
static int is_sampled(const stored_t *s, int64_t line, int64_t column)
{
    return line % s->every_row == 0 && (line / s->every_row * 11 - column / 64) % s->every == 0;
}

product_t make(int op_a, int op_b, int64_t m, int64_t n, int64_t k, int64_t gap)
{
    product_t p = {.op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k * (handle->machine.is_newer ? 12 : 1)};
    p.a = op_a ? store(p.k, m, gap) : store(m, p.k, gap);
    p.b = op_b ? store(n, p.k, gap) : store(p.k, n, gap);
    p.d = must(malloc((size_t)(m * n) * sizeof *p.d));
    for (int which = 0; which < 2; which++) {
        const stored_t *s = which ? &p.b : &p.a;
        for (int64_t i = 0; i < s->lines * s->ld; i++)
            s->x[i] = i % s->ld < s->width ? bits_of((double)rng_between(&rng, -1, 1)) : 0x7fff;
    }
    hgemm_desc_init(&p.desc);
    p.desc.accumulate = HGEMM_ACCUMULATE_F32;
    p.desc.type_a = p.desc.type_b = HGEMM_TYPE_BF16, p.desc.type_d = HGEMM_TYPE_F32;
    p.desc.op_a = op_a ? HGEMM_OP_T : HGEMM_OP_N, p.desc.op_b = op_b ? HGEMM_OP_T : HGEMM_OP_N;
    p.desc.m = m, p.desc.n = n, p.desc.k = p.k;
    p.desc.lda = p.a.ld, p.desc.ldb = p.b.ld, p.desc.ldd = n;
    return p;
}

void discard(product_t *p)
{
    free(p->a.x), free(p->b.x), free(p->d);
}

uint16_t *a_at(const product_t *p, int64_t i, int64_t q)
{
    return &p->a.x[p->op_a ? q * p->a.ld + i : i * p->a.ld + q];
}

uint16_t *b_at(const product_t *p, int64_t q, int64_t j)
{
    return &p->b.x[p->op_b ? j * p->b.ld + q : q * p->b.ld + j];
}

int64_t k_of_a(const product_t *p, int64_t i, int sampled)
{
    int64_t q = 0;
    while (q < p->k && is_sampled(&p->a, p->op_a ? q : i, p->op_a ? i : q) != sampled)
        q++;
    assert_true(q < p->k);
    return q;
}

int64_t k_of_b(const product_t *p, int64_t j, int sampled)
{
    int64_t q = 0;
    while (q < p->k && is_sampled(&p->b, p->op_b ? j : q, p->op_b ? q : j) != sampled)
        q++;
    assert_true(q < p->k);
    return q;
}

double *reference(const product_t *p)
{
    double *sums = must(malloc((size_t)(p->m * p->n) * sizeof *sums));
    float *b = must(malloc((size_t)(p->n * p->k) * sizeof *b)), *row = must(malloc((size_t)p->k * sizeof *row));
    for (int64_t i = 0; i < p->n * p->k; i++)
        b[i] = (float)value(*b_at(p, i % p->k, i / p->k));
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t q = 0; q < p->k; q++)
            row[q] = (float)value(*a_at(p, i, q));
        for (int64_t j = 0; j < p->n; j++) {
            const float *const column = &b[j * p->k];
            double sum = 0;
            for (int64_t q = 0; q < p->k; q++)
                sum += (double)row[q] * (double)column[q];
            sums[i * p->n + j] = sum;
        }
    }
    free(b), free(row);
    return sums;
}

void *place(const void *host, size_t bytes)
{
    void *device;
    expect_status(handle, hgemm_malloc(handle, &device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_upload(handle, device, host, bytes), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    return device;
}

void take(void *host, const void *device, size_t bytes)
{
    expect_status(handle, hgemm_download(handle, host, device, bytes), HGEMM_STATUS_SUCCESS, "hgemm_download");
}

void release(const void *device)
{
    expect_status(handle, hgemm_free(handle, (void *)device), HGEMM_STATUS_SUCCESS, "hgemm_free");
}

void run_with(product_t *p, const plan_t *plan, const float *c, int c_is_d)
{
    const size_t bytes = (size_t)(p->m * p->n) * sizeof *p->d;
    char *const end = workspace + WORKSPACE - sizeof space;
    hgemm_desc_t *desc = &p->desc;
    memset(p->d, 0xff, bytes);
    memset(&space, UNTOUCHED & 0xff, sizeof space);
    expect_status(handle, hgemm_upload(handle, end, &space, sizeof space), HGEMM_STATUS_SUCCESS, "hgemm_upload");
    desc->a = place(p->a.x, (size_t)(p->a.lines * p->a.ld) * 2);
    desc->b = place(p->b.x, (size_t)(p->b.lines * p->b.ld) * 2);
    desc->d = place(c_is_d ? c : p->d, bytes);
    desc->c = c_is_d ? desc->d : c ? place(c, bytes) : NULL;
    const problem_t row_major = normalise(desc);
    const hgemm_status_t status = plan ? handle_launch(handle, &row_major, plan) : hgemm_run_desc(handle, desc);
    expect_status(handle, status, HGEMM_STATUS_SUCCESS, "the product");
    take(p->d, desc->d, bytes);
    take(&space, end, sizeof space);
    release(desc->a), release(desc->b), release(desc->d);
    if (!c_is_d)
        release(desc->c);
}

void run(product_t *p, const plan_t *plan)
{
    run_with(p, plan, NULL, 0);
}

void assert_sums(const product_t *p, const double *sums)
{
    for (int64_t i = 0; i < p->m * p->n; i++)
        if (isnan(sums[i]) ? !isnan(p->d[i]) : (double)p->d[i] != sums[i])
            fail_msg("row %d, column %d is %.9g, want %.9g", (int)(i / p->n), (int)(i % p->n), (double)p->d[i],
                     sums[i]);
}

void sampled_open(void)
{
    handle = test_open();
    expect_status(handle, hgemm_malloc(handle, (void **)&workspace, WORKSPACE), HGEMM_STATUS_SUCCESS, "hgemm_malloc");
    expect_status(handle, hgemm_set_workspace(handle, workspace, WORKSPACE), HGEMM_STATUS_SUCCESS,
                  "hgemm_set_workspace");
}

int sampled_close(int failed)
{
    release(workspace);
    return hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS ? failed : 1;
}
