/* SPDX-License-Identifier: MIT */
/* turing_run.h - the command `turing run`. */
#ifndef TURING_RUN_H
#define TURING_RUN_H

int turing_run(int argc, char **argv);

#endif
