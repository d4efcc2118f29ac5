/* SPDX-License-Identifier: MIT */
#include "emulated.h"

hgemm_handle_t handle;
const uint16_t zeros[N * N];

void open_device(const char *name)
{
    assert_int_equal(hgemm_create(&handle, name), HGEMM_STATUS_SUCCESS);
}

void close_device(void)
{
    assert_int_equal(hgemm_destroy(handle), HGEMM_STATUS_SUCCESS);
}

void *allocate(size_t bytes, const void *contents)
{
    void *p = NULL;
    assert_int_equal(hgemm_malloc(handle, &p, bytes), HGEMM_STATUS_SUCCESS);
    if (contents)
        assert_int_equal(hgemm_upload(handle, p, contents, bytes), HGEMM_STATUS_SUCCESS);
    return p;
}

hgemm_status_t multiply(const void *a, const void *b, void *c)
{
    return hgemm_run(handle, HGEMM_ROW_MAJOR, HGEMM_OP_N, HGEMM_OP_N, N, N, N, 1, a, N, b, N, 0, c, N);
}
