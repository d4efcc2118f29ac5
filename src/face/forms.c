/* SPDX-License-Identifier: MIT */
/* forms.c - says in the log which of a kernel's instructions are of a form that no test has met: forms.def. */
#include "machine.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

void forms_log(function_t *f)
{
    static char told[MOST][TURING_TEXT_MAX]; /* of this kernel; all of it under the machine's lock */
    const turing_kernel_t *k = f->kernel;
    unsigned n = 0;
    if (f->forms_told || !machine_logs())
        return;
    f->forms_told = true;
    for (uint32_t i = 0; i < k->n_insns && n < MOST; i++) {
        unsigned same = 0;
        turing_form(&k->insns[i], told[n]);
        if (turing_form_met(told[n]))
            continue;
        while (strcmp(told[same], told[n]) != 0)
            same++;
        if (same < n)
            continue;
        char line[TURING_TEXT_MAX + 64];
        snprintf(line, sizeof line, "no test has met the form of 0x%x, %.200s", k->insns[i].addr, told[n]);
        machine_log(k->name, line);
        n++;
    }
}
