/* SPDX-License-Identifier: MIT */
/* A C11 program that knows the public header alone. */
#include <hgemm.h>

#include <stdio.h>

int main(void)
{
    hgemm_desc_t desc;
    int kernel = 0;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 1024;
    hgemm_status_t status = hgemm_select(&desc, &kernel);
    hgemm_kernel_info_t info;
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_get_kernel_info(kernel, &info);
    if (status != HGEMM_STATUS_SUCCESS) {
        printf("%s: %s\n", hgemm_status_name(status), hgemm_status_string(status));
        return 1;
    }
    printf("hgemm %d would run %s\n", hgemm_version(), info.name);
    return 0;
}
