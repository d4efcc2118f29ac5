/* SPDX-License-Identifier: MIT */
/* What the subcommands of `hgemm` share. */
#ifndef HGEMM_TOOL_H
#define HGEMM_TOOL_H

#include "hgemm.h"

/* A subcommand: its arguments begin with its name. Returns the exit status: 0, 1 on a failure, 2 where the arguments
 * make no sense. */
int tool_tune(int argc, char **argv);
int tool_plan(int argc, char **argv);
int tool_devices(int argc, char **argv);
int tool_bench(int argc, char **argv);

/* Ends the program with 2 for arguments that make no sense, or with 1 on a failure. */
__attribute__((format(printf, 1, 2), noreturn)) void tool_refuse(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void tool_fail(const char *format, ...);

/* Ends the program with 1, and the words of a status and of its handle, unless it is success. */
void tool_must(hgemm_handle_t handle, hgemm_status_t status);

/* Opens a device, NULL being the default one. */
hgemm_handle_t tool_open(const char *device);

/* The number that an option has, between two. */
double tool_number(const char *option, const char *text, double least, double most);

#endif
