/* SPDX-License-Identifier: MIT */
/* Files to whose end several processes write: one header, at the head, and whole lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/append.h"

enum { PROCESSES = 6, ROUNDS = 60, LINES = 10 };

static const char header[] = "header\n";
static char path[64];

/* A child that waits for the others, as `gate` shows, and then writes its lines. */
static void start_child(const int gate[2], int number)
{
    char byte, line[200];
    if (fork() != 0)
        return;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0) /* its end: the parent has let all go */
        _exit(1);
    const int file = append_open(path, header);
    for (int i = 0; i < LINES; i++) {
        memset(line, 'a' + number, sizeof line);
        strcpy(line + 150, "\n");
        append_text(file, line);
    }
    _exit(file < 0);
}

static void processes_that_start_together_write_one_header(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int gate[2], status, lines = 0;
        char line[256];
        unlink(path);
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < PROCESSES; i++)
            start_child(gate, i);
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < PROCESSES; i++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        assert_string_equal(line, header);
        for (; fgets(line, sizeof line, file); lines++)
            if (strlen(line) != 151 || strspn(line, (const char[]){line[0], '\0'}) != 150)
                fail_msg("line %d is of several: %s", lines, line);
        fclose(file);
        assert_int_equal(lines, PROCESSES * LINES);
    }
}

static void a_file_that_has_something_keeps_its_head(void **state)
{
    (void)state;
    char text[64] = "";
    unlink(path);
    for (int i = 0; i < 2; i++) {
        const int opened = append_open(path, i ? header : NULL);
        assert_true(opened >= 0);
        append_text(opened, "line\n");
        close(opened);
    }
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof text, file), 10);
    fclose(file);
    assert_string_equal(text, "line\nline\n");
}

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    assert_int_equal(append_open("/nonexistent/file", header), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(append_open("/", header), -1);
    assert_int_equal(errno, EISDIR);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(append_open(path, header), -1);
    assert_int_equal(errno, ENXIO);
    unlink(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_that_start_together_write_one_header),
        cmocka_unit_test(a_file_that_has_something_keeps_its_head),
        cmocka_unit_test(what_cannot_be_written_is_told),
    };
    snprintf(path, sizeof path, "test_append.%ld", (long)getpid());
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failures;
}
