/* SPDX-License-Identifier: MIT */
#include "turing_job.h"

#include <stdio.h>

bool complain(const job_t *job, const char *what, const char *detail)
{
    fprintf(stderr, "turing: %s:%u: %s%s%s\n", job->path, job->line, what, detail ? ": " : "", detail ? detail : "");
    return false;
}

bool load_file(const char *path, uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "rb");
    bool ok = f && fread(data, 1, size, f) == size;
    if (f)
        fclose(f);
    return ok;
}
