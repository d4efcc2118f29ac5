/* SPDX-License-Identifier: MIT */
/* A text file that several processes rewrite, each with what the others have added. */
#ifndef HGEMM_TOOL_SHARED_FILE_H
#define HGEMM_TOOL_SHARED_FILE_H

#include <stdio.h>

/* The path to which a path leads through symbolic links, so that these stay when the file is replaced. Whether there is
 * a file is another question. Lasts until the process ends. */
const char *shared_file_follow(const char *path);

typedef struct shared_file_t {
    const char *path;
    int lock; /* on the file that is to be replaced; -1: there was none */
    char *new_path;
    FILE *stream; /* to it */
} shared_file_t;

/* Waits until no other process is between begin and end. What is then read at the path is what will be replaced. */
shared_file_t shared_file_begin(const char *path);

/* Where to write what becomes the file. */
FILE *shared_file_write(shared_file_t *file);

/* Whoever reads the file meanwhile finds the old one or the new one. Returns 0, and nothing has changed, where there
 * was no file and another process has made one since: begin again, with what that has. */
int shared_file_end(shared_file_t *file);

#endif
