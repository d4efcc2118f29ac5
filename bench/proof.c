/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "calls.h"
#include "error_model.h"
#include "operands.h"
#include "proof.h"

/* Of other operands than halves the peers' are rounded to halves, TF32's further on, and ours to what a call promises.
 */
static double rounding_of_operands(const contestant_t *c)
{
    if (c->kind == CUBLAS_TF32 || c->accuracy == HGEMM_ACCURACY_11_BITS)
        return ERROR_HALF;
    if (c->accuracy == HGEMM_ACCURACY_16_BITS)
        return ERROR_HALF / 32;
    return typed() && c->form == AS_HALVES ? ERROR_HALF : 0;
}

void verify(contestant_t *c, const problem_t *p, const set_t *set, char *apart, void *host)
{
    const size_t bytes = (size_t)(p->batch * p->size_c) * element_bytes(c->form);
    const struct operands_t *from = &set->as[c->form];
    float alpha = bench.options.alpha, beta = bench.options.beta;
    if (p->exact) /* scalars that keep integers integers, and 0 and 1, for which kernels may have code of their own */
        alpha = alpha == 0 || alpha == 1 ? alpha : 2, beta = beta == 0 || beta == 1 ? beta : -3;
    if (c->kind == CEILING || c->kind == COPY || c->result.failure)
        return;

    int separate = p->exact && (c->kind == KERNEL || c->kind == PLAN);
    char *d = separate ? apart : from->c;
    memset(host, 0xff, bytes); /* NaN */
    if (!succeeds(c, hgemm_upload(bench.handle, d, separate || beta == 0 ? host : stored_c(c->form), bytes)) ||
        (separate && !succeeds(c, hgemm_upload(bench.handle, from->c, stored_c(c->form), bytes))) ||
        !enqueue(c, p, set, d, alpha, beta) || !succeeds(c, hgemm_synchronize(bench.handle)) ||
        !succeeds(c, hgemm_download(bench.handle, host, d, bytes)))
        return;
    if ((c->kind == CUBLAS || c->kind == CUTLASS) &&
        c->accumulate == HGEMM_ACCUMULATE_F16) { /* their scalars are halves */
        alpha = hgemm_half_to_float(hgemm_half_from_float(alpha));
        beta = hgemm_half_to_float(hgemm_half_from_float(beta));
    }
    const hgemm_type_t type = form_type(c->form);
    const made_t made = {.d = host,
                         .type = type,
                         .alpha = alpha,
                         .beta = beta,
                         .accumulate = c->accumulate,
                         .is_float = type == HGEMM_TYPE_F32 && !form_is_packed(c->form),
                         .operands = rounding_of_operands(c),
                         .epilogue = c->epilogue};
    c->result.failure = problem_verify(p, &made, &c->result.error, c->failure);
}
