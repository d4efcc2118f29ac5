/* SPDX-License-Identifier: MIT */
#ifndef TURING_EXEC_H
#define TURING_EXEC_H

/* turing exec, turing env: arguments after the command's name; return the exit status. */
int turing_exec(int argc, char **argv);
int turing_env(int argc, char **argv);

#endif
