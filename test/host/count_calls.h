/* SPDX-License-Identifier: MIT */
/* Included before each source of the library that test_calls is made of: each function tells, on entry and exit, of
 * which file it is. */
#ifndef TEST_COUNT_CALLS_H
#define TEST_COUNT_CALLS_H

void count_enter(const char *file);
void count_exit(void);

#ifdef COUNTED_FILE /* a source of the library */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* of what the compiler declares itself */
__attribute__((used, no_instrument_function)) static void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function, (void)caller;
    count_enter(COUNTED_FILE);
}

__attribute__((used, no_instrument_function)) static void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
    count_exit();
}
#pragma GCC diagnostic pop
#endif

#endif
