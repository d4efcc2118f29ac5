/* SPDX-License-Identifier: MIT */
/* A call as its caller describes it: which operands it accesses, and where they lie. */
#ifndef HGEMM_CALL_H
#define HGEMM_CALL_H

#include "device/device.h"
#include "problem/types.h"
#include "table/packed.h"

typedef enum operand_t {
    OPERAND_A,
    OPERAND_B,
    OPERAND_C,
    OPERAND_D,
    OPERAND_BIAS,
    OPERAND_GATE,
    OPERAND_ALPHA, /* alpha_pointer */
    OPERAND_BETA,
    OPERAND_GROUP_ENDS,
    OPERAND_GATHER_A,
    OPERAND_SCATTER_D,
    OPERAND_SCALE_A, /* scale_a_pointer */
    OPERAND_SCALE_B,
    OPERAND_COUNT
} operand_t;

/* The factors of a product, A and B, where they are told of together. */
enum { FACTOR_A = 1, FACTOR_B = 2 };

typedef struct call_t {
    hgemm_desc_t desc; /* of today's size */
    unsigned accessed; /* operands that it reads or writes, bit 1 << OPERAND_x for each: none where D has no element */
    int scaled;        /* FACTOR_A | FACTOR_B: those that are multiplied by one scale for all of it */
    int has_floats;    /* A and B are read, and one of them is of floats */
    packed_form_t packed; /* of B, where desc.weights is not NULL */
} call_t;

/* They see, from the descriptor alone, what is accessed: first what types have no say in; then, of types that are
 * checked or not read, the rest. That takes packed weights, and forgets those that are not read; if these cannot be,
 * `words` says why. A scalar in device memory may have any value. */
void see_operands(call_t *call);
hgemm_status_t see_types(call_t *call, char words[DEVICE_DETAIL]);

static inline int accesses(const call_t *call, operand_t operand)
{
    return call->accessed >> operand & 1u;
}

/* A batch of stored matrices: `lines` rows (column-major: columns) of `width` contiguous elements. */
typedef struct view_t {
    const void *data; /* the first matrix, or the device's array of pointers */
    int is_known;     /* the host knows which memory the elements are in; else they come by pointers or by indices */
    int alignment;    /* bytes that the address must be a multiple of */
    int bytes;        /* of an element */
    int64_t lines, width, ld;
    int64_t batch, stride;
} view_t;

/* Where an operand that is accessed lies. */
view_t view_operand(const call_t *call, operand_t operand);

/* Whether D and C, which is read, are the same matrices. */
int d_is_c(const hgemm_desc_t *desc);

/* Whether D has no element, or is C and stays as it is. */
int is_idle_call(const call_t *call);

#endif
