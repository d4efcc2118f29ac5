/* SPDX-License-Identifier: MIT */
/*
 * findings.h - what checks found: said, left out where a list allows it, and recorded for `turing exec`.
 *
 * The list (TURING_ALLOW) has a finding a line: kind, kernel and FILE:LINE, apart by tabs; "*" is any of them. The
 * record (TURING_FINDINGS) is a file to which each process adds a line for each finding: the same three, and the words.
 */
#ifndef FACE_FINDINGS_H
#define FACE_FINDINGS_H

#include "face/machine.h"

typedef struct findings {
    uint64_t count;
    CUresult error; /* of the first one that CUDA has an error for, else of the first */
} findings_t;

void findings_found(void *user, const turing_violation_t *v); /* a turing_report_fn; `user` is a findings_t */
/* What no check of the launch tells, such as a kernel that ended by a fault. */
void findings_told(const char *kind, const char *kernel, const char *line, const char *words);
/* A library of the program's is one that cannot run here, which the line says. */
void findings_refused(const char *words);
/* Some library makes use of a context. */
void findings_used(void);
/* The error that the findings are, to those that go on: none. */
CUresult findings_error(const findings_t *f);

#endif
