/* SPDX-License-Identifier: MIT */
/* The values of the public enumerations by name, as plans, options, results and messages have them. */
#ifndef HGEMM_NAMES_H
#define HGEMM_NAMES_H

enum { NAMES = 16 }; /* room for those of one enumeration, and NULL */

/* The names of the values 0, 1, ... of an enumeration; NULL past the last one. */
typedef const char *const names_t[NAMES];

extern names_t layout_names;     /* row col */
extern names_t op_names;         /* n t */
extern names_t accumulate_names; /* f16 f32 */
extern names_t type_names;       /* f16 ... */
extern names_t element_names;    /* the same, then packed: within the library */
extern names_t code_names;       /* int4 uint4 ... */
extern names_t zero_names;       /* none code offset */
extern names_t activation_names; /* none relu ... */
extern names_t bias_mode_names;
extern names_t batch_mode_names;
extern names_t index_type_names;
extern names_t accuracy_names; /* f32 16bits 11bits */

enum {
    ACTIVATION_COUNT = 0
#define ACTIVATION(value, name, ...) +1
#include "table/activations.def"
};

/* How many values there are. */
int name_count(names_t names);

/* The value of that name, -1 if there is none. */
int name_value(names_t names, const char *name);

#endif
