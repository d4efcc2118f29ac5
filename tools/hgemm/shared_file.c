/* SPDX-License-Identifier: MIT */
#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

enum { MOST_PATH = 4096, MOST_LINKS = 40 };

/* The two after each other, to be freed. */
static char *join(const char *first, size_t length, const char *second)
{
    char *joined = malloc(length + strlen(second) + 1);
    if (!joined)
        tool_fail("there is no memory left");
    memcpy(joined, first, length);
    strcpy(joined + length, second);
    return joined;
}

const char *shared_file_follow(const char *path)
{
    char target[MOST_PATH];
    for (int i = 0; i < MOST_LINKS; i++) {
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            return path;
        target[length] = '\0';
        const char *folder_end = target[0] == '/' ? NULL : strrchr(path, '/');
        path = join(path, folder_end ? (size_t)(folder_end - path) + 1 : 0, target);
    }
    tool_fail("%s: too many symbolic links", path);
}

/* Locks the file at the path; 0 if another file was there by the time that the lock was had. */
static int lock_current(const char *path, int lock)
{
    struct stat locked, current;
    int failed;
    while ((failed = flock(lock, LOCK_EX)) != 0 && errno == EINTR) {
    }
    if (failed)
        fprintf(stderr, "hgemm: %s cannot be locked, so no other process may write it now: %s\n", path,
                strerror(errno));
    return fstat(lock, &locked) == 0 && stat(path, &current) == 0 && locked.st_dev == current.st_dev &&
           locked.st_ino == current.st_ino;
}

shared_file_t shared_file_begin(const char *path)
{
    for (;;) {
        int lock = open(path, O_RDWR | O_CLOEXEC);
        if (lock < 0 && (errno == EACCES || errno == EROFS))
            lock = open(path, O_RDONLY | O_CLOEXEC);
        if (lock < 0 && errno != ENOENT)
            tool_fail("cannot open %s: %s", path, strerror(errno));
        if (lock < 0 || lock_current(path, lock))
            return (shared_file_t){.path = path, .lock = lock};
        close(lock);
    }
}

/* As the file that is replaced may be accessed, or a new one. */
static mode_t mode_of(const shared_file_t *file)
{
    struct stat status;
    if (file->lock >= 0 && fstat(file->lock, &status) == 0)
        return status.st_mode & 07777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

FILE *shared_file_write(shared_file_t *file)
{
    file->new_path = join(file->path, strlen(file->path), ".XXXXXX");
    const int descriptor = mkstemp(file->new_path);
    if (descriptor < 0)
        tool_fail("cannot write %s: %s", file->new_path, strerror(errno));
    fchmod(descriptor, mode_of(file));
    file->stream = fdopen(descriptor, "w");
    if (!file->stream)
        tool_fail("there is no memory left");
    return file->stream;
}

/* Gives the new file its name. */
static int publish(const shared_file_t *file)
{
    if (file->lock >= 0)
        return rename(file->new_path, file->path);
    if (link(file->new_path, file->path) == 0)
        return unlink(file->new_path);
    return errno == EEXIST ? -1 : rename(file->new_path, file->path); /* some file systems have no links */
}

int shared_file_end(shared_file_t *file)
{
    const int failed = ferror(file->stream);
    const int is_written = fclose(file->stream) == 0 && !failed;
    const int is_published = is_written && publish(file) == 0;
    const int error = errno;
    if (!is_published)
        unlink(file->new_path);
    if (!is_published && !(is_written && file->lock < 0 && error == EEXIST))
        tool_fail("cannot write %s: %s", file->path, strerror(error));
    if (file->lock >= 0)
        close(file->lock);
    free(file->new_path);
    return is_published;
}
