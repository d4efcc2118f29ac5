/* SPDX-License-Identifier: MIT */
#include "operands.h"

#include <stdlib.h>

#include "calls.h"

/* The operands of the problem in hand, on the host; b is NULL where it is packed. */
static struct stored_t {
    void *a, *b, *c;
} stored[FORMS];

const void *stored_c(form_t form)
{
    return stored[form].c;
}

static size_t padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Whether a contestant of the group takes the operands so. */
static int takes(const group_t *g, form_t form)
{
    for (int i = 0; i < g->count; i++)
        if (g->contestants[i].form == form && g->contestants[i].kind != CEILING && g->contestants[i].kind != COPY)
            return 1;
    return 0;
}

room_t room_of(const group_t *g, form_t form)
{
    const problem_t p = problem_of(bench.options.layout, &g->shape);
    const size_t element = element_bytes(form), batch = (size_t)p.batch;
    if (!takes(g, form))
        return (room_t){0, 0, 0};
    return (room_t){padded(batch * (size_t)p.size_a * element),
                    padded((size_t)p.matrices * bytes_of_b(&g->shape, form)),
                    padded(batch * (size_t)p.size_c * element)};
}

void forget_stored(void)
{
    for (int form = 0; form < FORMS; form++) {
        free(stored[form].a), free(stored[form].b), free(stored[form].c);
        stored[form] = (struct stored_t){NULL, NULL, NULL};
    }
}

hgemm_status_t store(const group_t *g, const problem_t *p)
{
    forget_stored();
    for (form_t form = AS_HALVES; form < FORMS; form++) {
        const hgemm_type_t type = form_type(form);
        struct stored_t *to = &stored[form];
        if (!takes(g, form))
            continue;
        to->a = fill_elements(p->a, p->batch * p->size_a, type);
        to->b = form_is_packed(form) ? NULL : fill_elements(p->b, p->matrices * p->size_b, type);
        to->c = fill_elements(p->c, p->batch * p->size_c, type);
        if (!to->a || !to->c || (!to->b && !form_is_packed(form)))
            return HGEMM_STATUS_OUT_OF_MEMORY;
    }
    return HGEMM_STATUS_SUCCESS;
}

hgemm_status_t upload_set(const group_t *g, const problem_t *p, const set_t *set)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (form_t form = AS_HALVES; form < FORMS && status == HGEMM_STATUS_SUCCESS; form++) {
        const struct operands_t *to = &set->as[form];
        const size_t element = element_bytes(form), batch = (size_t)p->batch;
        if (!takes(g, form))
            continue;
        status = hgemm_upload(bench.handle, to->a, stored[form].a, batch * (size_t)p->size_a * element);
        if (status == HGEMM_STATUS_SUCCESS)
            status = hgemm_upload(bench.handle, to->b, form_is_packed(form) ? p->weights.packed : stored[form].b,
                                  (size_t)p->matrices * bytes_of_b(&g->shape, form));
        if (status == HGEMM_STATUS_SUCCESS)
            status = hgemm_upload(bench.handle, to->c, stored[form].c, batch * (size_t)p->size_c * element);
    }
    return status;
}

hgemm_status_t upload_ends(const problem_t *p, char *at)
{
    bench.ends = (const int32_t *)(const void *)at;
    return p->is_grouped ? hgemm_upload(bench.handle, at, p->ends, (size_t)p->matrices * sizeof *p->ends)
                         : HGEMM_STATUS_SUCCESS;
}

hgemm_status_t upload_sets(const group_t *g, const problem_t *p, const set_t *sets, int count)
{
    hgemm_status_t status = HGEMM_STATUS_SUCCESS;
    for (int i = 0; i < count && status == HGEMM_STATUS_SUCCESS; i++)
        status = upload_set(g, p, &sets[i]);
    return status;
}

char *lay_out(char *at, const room_t rooms[FORMS], set_t *sets, int count)
{
    for (int i = 0; i < count; i++)
        for (int form = 0; form < FORMS; form++) {
            const room_t *r = &rooms[form];
            sets[i].as[form] = (struct operands_t){at, at + r->a, at + r->a + r->b};
            at += r->a + r->b + r->c;
        }
    return at;
}
