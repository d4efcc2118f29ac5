/* SPDX-License-Identifier: MIT */
/* turing_gate.h - turing exec's program as a child, whose findings decide the exit status (inside the tool). */
#ifndef TURING_GATE_H
#define TURING_GATE_H

#define TURING_FINDER "/libturing_finder.so" /* in the face's folder: src/face/finder.c */

typedef struct turing_gate {
    const char *allow_to, *junit; /* files to be written, or NULL */
} turing_gate_t;

/* Runs argv on the face in `folder`, and returns the exit status. */
int turing_gate_run(const turing_gate_t *gate, const char *folder, char **argv);

#endif
