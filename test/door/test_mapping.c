/* SPDX-License-Identifier: MIT */
/* Random calls of cuBLAS become descriptors that mean the same, and give the right results on the emulated T4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "calls.h"
#include "groups.h"

static void calls_become_descriptors(void **state)
{
    (void)state;
    void *handle = make_handle();
    for (int entry = 0; entry < ENTRIES; entry++)
        for (int i = 0; i < (entry == ENTRY_cublasLtMatmul ? 400 : 60); i++)
            try_one(entry, handle);
    assert_true(widenings > 0 && runs_of_floats > ENTRIES);
}

static void results_are_right_on_the_emulator(void **state)
{
    (void)state;
    void *handle = make_handle(), *memory;
    const char *asked = getenv("HGEMM_DEVICE"); /* t4emu:check, say */
    assert_int_equal(__real_hgemm_create(&emulator, asked && *asked ? asked : "t4emu"), HGEMM_STATUS_SUCCESS);
    assert_int_equal(__real_hgemm_malloc(emulator, &memory, ARENA), HGEMM_STATUS_SUCCESS);
    device_base = memory;
    draws_floats = HAS_FLOATS;
    for (int entry = 0; entry < ENTRIES; entry++)
        for (int i = 0; i < (entry == ENTRY_cublasLtMatmul             ? 60
                             : entries[entry].is_single && !HAS_FLOATS ? 0
                                                                       : 10);
             i++)
            try_one(entry, handle);
    assert_true(widenings > 0 && (runs_of_floats > ENTRIES || !HAS_FLOATS));
    __real_hgemm_destroy(emulator);
}

int test_mapping(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(calls_become_descriptors)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}

int test_emulated(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_right_on_the_emulator)};
    return cmocka_run_group_tests(tests, NULL, destroy_handles);
}
