/* SPDX-License-Identifier: MIT */
/* A program that was compiled with the header of an older library, whose descriptor was smaller: hgemm_desc_init writes
 * no more than that, and calls take it. */
#include <hgemm.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                        \
    do {                                        \
        if (!(condition)) {                     \
            printf("FAILED: %s\n", #condition); \
            return 1;                           \
        }                                       \
    } while (0)

int main(void)
{
    struct {
        hgemm_desc_t desc;
        unsigned char behind[512];
    } memory;
    int kernel = 0, is_touched = 0;
    memset(&memory, 0x55, sizeof memory);
    hgemm_desc_init(&memory.desc);
    for (size_t i = 0; i < sizeof memory.behind; i++)
        is_touched |= memory.behind[i] != 0x55;
    CHECK(!is_touched);

    hgemm_desc_t *desc = &memory.desc;
    CHECK(sizeof *desc == offsetof(hgemm_desc_t, stride_d) + sizeof desc->stride_d); /* the header is old */
    CHECK(desc->size == sizeof *desc && desc->batch == 1 && desc->alpha == 1 && desc->beta == 0 && !desc->d &&
          !desc->lda);
    desc->m = desc->n = desc->k = desc->lda = desc->ldb = desc->ldc = desc->ldd = 1024;
    CHECK(hgemm_select(desc, &kernel) == HGEMM_STATUS_SUCCESS);
    CHECK(kernel > 0);
    return 0;
}
