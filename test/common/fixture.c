/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MARK = 0x5555 };

fake_device_t fake;
struct hgemm_handle handle;
_Alignas(16) uint16_t a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], d[ELEMENTS];

int set_up(void **state)
{
    (void)state;
    fake_device_init(&fake);
    memset(&handle, 0, sizeof handle);
    handle.device = &fake.base;
    handle.machine = machine_t4;
    for (int i = 0; i < ELEMENTS; i++) {
        a[i] = hgemm_half_from_float((float)(i % 7 - 3));
        b[i] = hgemm_half_from_float((float)(i % 5 - 2));
        c[i] = hgemm_half_from_float((float)(i % 11 - 5));
        d[i] = MARK;
    }
    return 0;
}

hgemm_desc_t small(void)
{
    hgemm_desc_t desc;
    hgemm_desc_init(&desc);
    desc.m = 8, desc.n = 16, desc.k = 24;
    desc.alpha = 1, desc.beta = 1;
    desc.a = a, desc.lda = 24;
    desc.b = b, desc.ldb = 16;
    desc.c = c, desc.ldc = 16;
    desc.d = d, desc.ldd = 16;
    return desc;
}

void *elsewhere(uint64_t bytes)
{
    return (void *)((UINT64_C(1) << 60) + bytes);
}

int d_is_untouched(void)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (d[i] != MARK)
            return 0;
    return 1;
}

void assert_idle(const hgemm_desc_t *desc, hgemm_status_t expected)
{
    assert_status(hgemm_prepare(&handle, desc), expected);
    assert_status(hgemm_run_desc(&handle, desc), expected);
    assert_int_equal(fake.launches, 0);
    assert_int_equal(fake.loads, 0);
    assert_true(d_is_untouched());
}

/* Begins with a letter, for it may begin with the name of an argument, and ends with one full stop. */
static int is_a_sentence(const char *text)
{
    size_t length = strlen(text);
    return length > 2 && isalpha((unsigned char)text[0]) && text[length - 1] == '.' && text[length - 2] != '.';
}

void assert_refused(const hgemm_desc_t *desc, hgemm_status_t expected, const char *word)
{
    handle.device->detail[0] = '\0';
    assert_idle(desc, expected);
    const char *words = hgemm_error_detail(&handle);
    if (!strstr(words, word) || !is_a_sentence(words) || !is_a_sentence(hgemm_status_string(expected)))
        fail_msg("\"%s %s\" are not sentences with \"%s\"", hgemm_status_string(expected), words, word);
}

void assert_valid(const hgemm_desc_t *desc)
{
    hgemm_status_t status = hgemm_prepare(&handle, desc);
    if (status != HGEMM_STATUS_NOT_SUPPORTED)
        assert_status(status, HGEMM_STATUS_SUCCESS);
    memset(handle.functions, 0, sizeof handle.functions);
    fake.loads = 0;
    assert_int_equal(fake.launches, 0);
    assert_true(d_is_untouched());
}
