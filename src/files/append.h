/* SPDX-License-Identifier: MIT */
/* Files to whose end several processes write: the library's log and record, and the door's. */
#ifndef HGEMM_APPEND_H
#define HGEMM_APPEND_H

/*
 * Opens a file for that, and makes it if there is none. An empty one gets the header first, unless that is NULL: of
 * processes that start together one writes it, before any of them writes more. A FIFO without a reader is refused, not
 * waited for. Gives -1 on failure; errno says why.
 */
int append_open(const char *path, const char *header);

/* Writes by one call, so that lines of several processes do not mix. What cannot be written is lost. */
void append_text(int file, const char *text);

#endif
