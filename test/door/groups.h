/* SPDX-License-Identifier: MIT */
/* The door's tests, by what they look at; each gives how many failed. */
#ifndef TEST_DOOR_GROUPS_H
#define TEST_DOOR_GROUPS_H

int test_mapping(void);
int test_emulated(void);
int test_declined(void);
int test_streams(void);
int test_policy(const char *expected);          /* "hit" or "miss" */
int test_floats(const char *const expected[3]); /* "hit", "miss" or "model", of what test_policy.c says */
int test_log(void);
int test_log_of_floats(void);
int test_cost(void);
int test_old(void);
int test_child(void);
int test_forks(void);

#endif
