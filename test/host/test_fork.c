/* SPDX-License-Identifier: MIT */
/*
 * Children of a process whose threads are in calls: they wait for no thread that they do not have. (What becomes of a
 * GPU's handle, test_driver shows.)
 */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 150 };

static atomic_int is_over;

/* A call that no handle has had, which is logged. */
static int make_call(int number)
{
    static fake_device_t device;
    static struct hgemm_handle fresh;
    fake_device_init(&device);
    device.compute = 0;
    memset(&fresh, 0, sizeof fresh);
    fresh.device = &device.base, fresh.machine = machine_t4;
    hgemm_desc_t desc = small();
    desc.m = 1 + number % 3000, desc.n = 16 + number / 3000;
    desc.ldb = desc.ldc = desc.ldd = desc.n;
    desc.a = elsewhere(0), desc.b = elsewhere(1 << 24), desc.c = desc.d = elsewhere(1 << 25);
    return hgemm_prepare(&fresh, &desc) == HGEMM_STATUS_SUCCESS;
}

static void *make_calls(void *succeeded)
{
    *(int *)succeeded = 1;
    for (int i = 0; !is_over; i++)
        *(int *)succeeded &= make_call(i);
    return NULL;
}

/* Forks while a thread calls, each child to call once, which hangs where it takes as many seconds. */
static void children_succeed(void *(*calls)(void *), int forks, unsigned seconds, int (*call)(int))
{
    pthread_t thread;
    int succeeded;
    is_over = 0;
    assert_int_equal(pthread_create(&thread, NULL, calls, &succeeded), 0);
    for (int i = 0; i < forks; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(seconds);
            _exit(!call(1000000 + i));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    assert_true(succeeded);
}

static void a_child_logs(void **state)
{
    (void)state;
    children_succeed(make_calls, FORKS, 20, make_call);
}

#ifdef HAS_EMULATOR

static int multiply(int number)
{
    (void)number;
    hgemm_handle_t made;
    void *x;
    uint16_t one = hgemm_half_from_float(1), product = 0;
    if (hgemm_create(&made, "t4emu") || hgemm_malloc(made, &x, 3 * 256) || hgemm_upload(made, x, &one, 2) ||
        hgemm_run(made, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, 1, 1, 1, 2, x, 1, x, 1, 0, (char *)x + 256, 1) ||
        hgemm_download(made, &product, (char *)x + 256, 2) || hgemm_destroy(made))
        return 0;
    return product == hgemm_half_from_float(2);
}

static void *multiply_on(void *succeeded)
{
    *(int *)succeeded = 1;
    while (!is_over)
        *(int *)succeeded &= multiply(0);
    return NULL;
}

static void a_child_emulates(void **state)
{
    (void)state;
    children_succeed(multiply_on, 10, 60, multiply);
}

#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_logs),
#ifdef HAS_EMULATOR
        cmocka_unit_test(a_child_emulates),
#endif
    };
    setenv("HGEMM_LOG", "/dev/null", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
