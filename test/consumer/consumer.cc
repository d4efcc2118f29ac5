/* SPDX-License-Identifier: MIT */
/* A C++ program that knows the public header alone. */
#include <hgemm.h>

#include <cstdio>

int main()
{
    hgemm_desc_t desc;
    int kernel = 0;
    hgemm_desc_init(&desc);
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = desc.ldd = 1024;
    desc.op_b = HGEMM_OP_T;
    hgemm_status_t status = hgemm_select(&desc, &kernel);
    hgemm_kernel_info_t info;
    if (status == HGEMM_STATUS_SUCCESS)
        status = hgemm_get_kernel_info(kernel, &info);
    if (status != HGEMM_STATUS_SUCCESS) {
        std::printf("%s: %s\n", hgemm_status_name(status), hgemm_status_string(status));
        return 1;
    }
    std::printf("hgemm %d would run %s\n", hgemm_version(), info.name);
    return 0;
}
