/* SPDX-License-Identifier: MIT */
/* forms.c - which forms of instructions were executed in kernels whose results are right: forms.def. */
#include "turing.h"

#include <stdlib.h>
#include <string.h>

/* In the order of strcmp. */
static const char *const met[] = {
#define FORM(witness, text) text,
#include "forms.def"
#undef FORM
};

static int order(const void *a, const void *b)
{
    return strcmp(a, *(const char *const *)b);
}

bool turing_form_met(const char *form)
{
    return bsearch(form, met, sizeof met / sizeof *met, sizeof *met, order) != NULL;
}
