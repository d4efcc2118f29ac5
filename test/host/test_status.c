/* SPDX-License-Identifier: MIT */
/* Every status has a name of its own and words of its own; the version is the header's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include "hgemm.h"

static void statuses_are_distinct(void **state)
{
    (void)state;
    for (int i = 0; i < HGEMM_STATUS_COUNT_; i++) {
        const char *name = hgemm_status_name((hgemm_status_t)i);
        const char *words = hgemm_status_string((hgemm_status_t)i);
        assert_int_equal(strncmp(name, "HGEMM_STATUS_", 13), 0);
        assert_string_not_equal(name, "HGEMM_STATUS_UNKNOWN");
        assert_true(strlen(words) >= strlen("Success."));
        assert_true(words[strlen(words) - 1] == '.' && words[strlen(words) - 2] != '.');
        assert_true(isalpha((unsigned char)words[0]));
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(name, hgemm_status_name((hgemm_status_t)j));
            assert_string_not_equal(words, hgemm_status_string((hgemm_status_t)j));
        }
    }
    assert_string_equal(hgemm_status_name(HGEMM_STATUS_SUCCESS), "HGEMM_STATUS_SUCCESS");
    assert_string_equal(hgemm_status_name(HGEMM_STATUS_DEVICE_ERROR), "HGEMM_STATUS_DEVICE_ERROR");
}

/* Programs were compiled with these numbers: what is added comes after them. */
static void numbers_stay(void **state)
{
    (void)state;
    assert_int_equal(HGEMM_STATUS_INVALID_HANDLE, 1);
    assert_int_equal(HGEMM_STATUS_TOO_LARGE, 15);
    assert_int_equal(HGEMM_STATUS_OVERLAP, 24);
    assert_int_equal(HGEMM_STATUS_DEVICE_ERROR, 31);
    assert_int_equal(HGEMM_STATUS_INVALID_TYPE, 32);
    assert_int_equal(HGEMM_STATUS_MISALIGNED_WORKSPACE, 45);
    assert_int_equal(HGEMM_STATUS_INVALID_PLAN, 46);
    assert_int_equal(HGEMM_STATUS_INVALID_TUNING, 47);
}

/* A build without the emulator advises nobody to use it. */
static void advice_can_be_followed(void **state)
{
    (void)state;
    int advised = 0;
    for (int i = 0; i < HGEMM_STATUS_COUNT_; i++)
        advised += strstr(hgemm_status_string((hgemm_status_t)i), "emu") != NULL;
    assert_int_equal(advised, HAS_EMULATOR ? 3 : 0);
}

static void other_numbers_are_not_statuses(void **state)
{
    (void)state;
    const int others[] = {-1, HGEMM_STATUS_COUNT_, HGEMM_STATUS_COUNT_ + 1000, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(hgemm_status_name((hgemm_status_t)others[i]), "HGEMM_STATUS_UNKNOWN");
        assert_non_null(hgemm_status_string((hgemm_status_t)others[i]));
    }
}

static void version_is_the_header_s(void **state)
{
    (void)state;
    assert_int_equal(hgemm_version(), HGEMM_VERSION_MAJOR * 10000 + HGEMM_VERSION_MINOR * 100 + HGEMM_VERSION_PATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_distinct),   cmocka_unit_test(numbers_stay),
        cmocka_unit_test(advice_can_be_followed),  cmocka_unit_test(other_numbers_are_not_statuses),
        cmocka_unit_test(version_is_the_header_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
