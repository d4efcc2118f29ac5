/* SPDX-License-Identifier: MIT */
#include "files/append.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void append_text(int file, const char *text)
{
    ssize_t written = write(file, text, strlen(text));
    (void)written;
}

/* Where a file system has no locks, the header is written without. */
static void begin(int file, const char *header)
{
    struct stat status;
    int locked;
    while ((locked = flock(file, LOCK_EX)) != 0 && errno == EINTR) {
    }
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
        append_text(file, header);
    if (locked == 0)
        flock(file, LOCK_UN);
}

int append_open(const char *path, const char *header)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (file < 0)
        return -1;
    fcntl(file, F_SETFL, O_APPEND); /* writes wait for a reader that is slow */
    if (header)
        begin(file, header);
    return file;
}
